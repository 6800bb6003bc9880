"""Searches over budgets for the least peak, and over batches: each is a question with a budget and a batch, for the engines of those."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf, isinf
from time import monotonic

from crossopt.instances.memory.question import MemoryQuestion
from crossopt.solvers.answer import Limits, Progress, SearchOutcome, Watch, unwatched
from crossopt.solvers.memory import judge
from crossopt.solvers.memory.rules import peak_of
from crossopt.solvers.proofs import MemoryLevel, MemoryLevels, RecomputableBound, Retained, UnverifiedBound

Found = SearchOutcome[judge.Schedule]
Engine = Callable[[MemoryQuestion, Limits, Watch], Found]
_PATIENCE, _SHARE, _SHARE_OF_A_BATCH = 120.0, 0.3, 0.12
"""Seconds of a search without a limit, and the share of what is left for one question, of those about the largest batch less."""
_MOST_QUESTIONS = 60
_NEAR = 3
"""Batches that are tried one by one."""


@dataclass(slots=True)
class _Search:
    """Answers and proofs so far."""

    question: MemoryQuestion
    engine: Engine
    limits: Limits
    watch: Watch
    deadline: float
    levels: dict[int, MemoryLevel] = field(default_factory=dict)
    best: judge.Schedule | None = None
    value: int | float = inf
    unverified: str = ""
    """A solver whose report a level rests on."""
    asked: int = 0
    late: bool = False
    name: str = "auto"

    def proofs(self) -> list[MemoryLevel]:
        return [self.levels[at] for at in sorted(self.levels)]

    def left(self) -> float:
        return self.deadline - monotonic()

    def solve(self, at: int, gap: float, share: float = _SHARE) -> Found:
        """The answer for a batch or a budget; its bound is kept with its proof."""
        question = self.question
        fixed = question.at(at) if question.batches else question.within(at)
        self.asked += 1
        found = self.engine(fixed, replace(self.limits, seconds=max(self.left() * share, 0.1), gap=gap), unwatched)
        self.name = found.engine
        if found.answer is not None:
            self.take(found.answer.order, at if question.batches else None)
        if found.bound is not None and isinstance(found.proof, Retained | RecomputableBound | UnverifiedBound):
            self.unverified = found.proof.by if isinstance(found.proof, UnverifiedBound) else self.unverified
            least = None if isinf(found.bound) else _units(fixed, found.bound)
            proof = RecomputableBound(judge.BY_FLOOR) if isinstance(found.proof, UnverifiedBound) else found.proof
            self.levels[at] = MemoryLevel(at, least, proof)
        self.late = self.late or found.stopped != "complete"
        return found

    def take(self, order: tuple[int, ...], batch: int | None) -> None:
        """Keep a schedule if it is the best."""
        graph = (self.question if batch is None else self.question.at(batch)).graph
        if self.question.most_extra is not None and judge.extra_units(graph, order) > self.question.most_extra:
            return
        value = judge.value_of(self.question, batch, judge.extra_units(graph, order), peak_of(graph, order))
        if value < self.value:
            self.best = answer = judge.Schedule(order, batch)
            self.value = value
            self.watch(Progress(self.name, value, answer=lambda: answer))

    def outcome(self, bound: int | float) -> Found:
        """The best answer with its bound."""
        proof = UnverifiedBound(self.unverified) if self.unverified else MemoryLevels(judge.BY_LEVELS, tuple(self.proofs()))
        if self.best is None and bound < inf:
            return SearchOutcome(None, engine=self.name, stopped="time limit" if self.late or self.left() <= 0.0 else "complete")
        reasons = (judge.level_reason(self.question),) if bound == inf else ()
        near = self.best is not None and self.value - bound <= self.limits.gap * abs(self.value)
        stopped = "complete" if bound == inf or near or not self.late else "time limit"
        return SearchOutcome(self.best, bound, proof, self.name, stopped, reasons)


def _units(fixed: MemoryQuestion, bound: int | float) -> int:
    """Units of time of a bound on the time of repetitions."""
    units: int = round(bound * 10**fixed.graph.places)
    while fixed.value(units) > bound:
        units -= 1
    return units


def search_levels(question: MemoryQuestion, engine: Engine, limits: Limits, watch: Watch) -> Found:
    """The least peak, the least time of a sample or the largest batch."""
    if not limits.seconds:
        return SearchOutcome(None, stopped="time limit")
    search = _Search(question, engine, limits, watch, monotonic() + (_PATIENCE if isinf(limits.seconds) else limits.seconds) * 0.95)
    if question.file.objective == "peak":
        return _least_peak(search)
    return _largest_batch(search) if question.file.objective == "batch" else _best_batch(search)


def _going(search: _Search) -> bool:
    return search.asked < _MOST_QUESTIONS and search.left() > 0.0


def _least_peak(search: _Search) -> Found:
    """Bisection between the largest budget into which nothing fits, and the least peak that is known."""
    question = search.question
    graph, gap = question.graph, 1.0 if question.most_extra is None else 0.0
    if graph.plain_peak <= question.budget:
        search.take(tuple(range(len(graph.names))), None)
    elif judge.peak_bound(question, ()) <= question.budget:
        search.solve(question.budget, gap)
    low = int(min(judge.peak_bound(question, search.proofs()), question.budget + 1)) - 1  # nothing fits into it
    tried, unknown = low, set[int]()
    while search.best is not None and _going(search):
        if search.value - low - 1 <= search.limits.gap * search.value:
            break
        top = int(search.value) - 1
        budget = (max(tried, low) + top + 1) // 2 if search.asked % 2 or top in unknown else top
        if budget in unknown or not low < budget <= top:  # nothing better is found: prove as much as is possible
            budget = (low + min(unknown, default=top)) // 2
            if min(unknown, default=top) - low <= max(low // 100, 1):
                break
        search.solve(budget, gap)
        if search.value <= budget:
            search.levels.pop(budget, None)
        elif budget in search.levels and judge.is_empty(question, search.levels[budget]):
            low = max(low, budget)
        else:
            unknown.add(budget)
            tried = max(tried, budget) if budget < top else tried
    search.levels = {at: level for at, level in search.levels.items() if at == low}
    return search.outcome(judge.peak_bound(question, search.proofs()))


def _largest_batch(search: _Search) -> Found:
    """Bisection for the largest batch with a schedule, each of which is tried for larger batches, and for the least that is proved not to
    fit."""
    batches = search.question.batches
    _plain_batches(search)
    fits = -1 if search.best is None or search.best.batch is None else batches.index(search.best.batch)
    fails = unknown = sum(1 for _ in judge.bounds_of_batches(search.question, ()))
    while unknown - fits > 1 and _going(search):
        middle = (fits + unknown) // 2
        found = search.solve(batches[middle], 1.0, _SHARE_OF_A_BATCH)
        if found.answer is not None:
            fits = _as_far_as_it_fits(search, found.answer.order, middle)
        else:
            unknown, fails = middle, middle if _empty(search, batches[middle]) else fails
    low = fits
    while fails - max(low, fits) > 1 and _going(search):
        middle = (low + fails) // 2 if low > fits else fits + 1
        found = search.solve(batches[middle], 1.0, _SHARE_OF_A_BATCH)
        if found.answer is not None:
            fits = _as_far_as_it_fits(search, found.answer.order, middle)
        elif _empty(search, batches[middle]):
            fails = middle
        else:
            low = middle
    search.levels = {at: level for at, level in search.levels.items() if level.least is None}
    return search.outcome(judge.batch_bound(search.question, search.proofs()))


def _empty(search: _Search, batch: int) -> bool:
    """Whether it is proved that nothing fits for a batch."""
    return batch in search.levels and search.levels[batch].least is None


def _as_far_as_it_fits(search: _Search, order: tuple[int, ...], place: int) -> int:
    """The last place among the batches up to which a schedule of an earlier one fits."""
    batches = search.question.batches
    while place + 1 < len(batches) and peak_of(search.question.at(batches[place + 1]).graph, order) <= search.question.budget:
        place += 1
    search.take(order, batches[place])
    return place


def _plain_batches(search: _Search) -> None:
    """The schedule without repetitions, with all batches for which it fits."""
    for batch in search.question.batches:
        graph = search.question.at(batch).graph
        if graph.plain_peak > search.question.budget:
            return
        search.take(tuple(range(len(graph.names))), batch)


def _best_batch(search: _Search) -> Found:
    """The batch with the least bound is answered, or first one between it and the next smaller one that was."""
    question, batches = search.question, search.question.batches
    _plain_batches(search)
    while _going(search):
        bounds = dict(judge.bounds_of_batches(question, search.proofs()))
        better = [
            batch for batch, bound in bounds.items() if search.best is None or search.value - bound > search.limits.gap * search.value
        ]
        left = [batch for batch in better if batch not in search.levels]
        if not left:
            break
        batch = min(left, key=lambda one: bounds[one])
        before = max((batches.index(at) for at in search.levels if at < batch), default=0)
        index = batches.index(batch)
        middle = batches[(before + index + 1) // 2]
        search.solve(middle if index - before > _NEAR and middle in left else batch, search.limits.gap)
        if batch not in search.levels and middle not in search.levels:
            search.late = True
            break
    return search.outcome(judge.batch_bound(question, search.proofs()))
