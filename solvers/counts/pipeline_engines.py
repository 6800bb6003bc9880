"""Engines for pipelines: rules, stages of several nodes, moves of layers, and searches of covers and of placements that prove."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from random import Random
from time import monotonic

from crossopt.crossflow.pipelines import Stage
from crossopt.formulation.pipelines import LargeError, best_above, closed_bound, counts_model, covering, least_rate
from crossopt.instances.counts.pipelines import PipelinesQuestion
from crossopt.instances.errors import RefusedError
from crossopt.solvers.answer import Limits, Progress, SearchOutcome, Watch
from crossopt.solvers.backends import Spend, backend
from crossopt.solvers.counts.pipelines import (
    BY_COVERS,
    BY_WORK,
    Placement,
    flow_of,
    label_of,
    placement_of,
    reasons_of,
    stages_of,
    units_within,
)
from crossopt.solvers.counts.rules import carrying, rules_of_pipelines
from crossopt.solvers.proofs import RecomputableBound, UnverifiedBound

Found = SearchOutcome[Placement]
Stages = tuple[Stage, ...]
_STEPS = 200_000
"""Steps of a search for stages, which proves nothing."""
_PATIENCE = 1_000
"""Moves without a better placement."""
_GRID, _STARTS = 40, 8
"""Rates of stages that are tried where links carry less than the best stages pass, and stages from which layers are moved."""
_TOO_LARGE = 4
"""Searches of covers that may take too many steps."""


class _TimeUpError(Exception):
    """The time is over."""


class _Search:
    """The best placement so far, and the rate that none exceeds, with what proves it."""

    def __init__(self, question: PipelinesQuestion, limits: Limits, watch: Watch, name: str) -> None:
        self.question, self.watch, self.name, self.gap = question, watch, name, limits.gap
        self.began = monotonic()
        self.deadline = self.began + limits.seconds
        self.stages: Stages = ()
        self.starts = list[Stages]()
        """Placements from which layers are moved, too."""
        self.value, self.most, self.label = 0, closed_bound(question), BY_WORK
        self.trail = list[tuple[float, float | None, float | None]]()

    def tick(self) -> None:
        """Raises once the time is over."""
        if monotonic() >= self.deadline:
            raise _TimeUpError

    def offer(self, stages: Sequence[Stage]) -> int:
        """Keep a placement that passes more than all before; what it passes."""
        value = flow_of(self.question, stages).value
        if value > self.value:
            self.stages, self.value = carrying(self.question, stages), value
            self._tell()
        return value

    def lower(self, most: int, label: str) -> None:
        """No placement passes more than this."""
        if most < self.most:
            self.most, self.label = most, label
            self._tell()

    def _tell(self) -> None:
        value, bound = self.question.seconds(self.value), self.question.seconds(self.most)
        if self.value:
            answer = placement_of(self.question, self.stages)
            self.trail.append((monotonic() - self.began, value, bound))
            self.watch(Progress(self.name, value, bound, answer=lambda: answer))

    @property
    def proved(self) -> bool:
        """Whether nothing passes more than the gap allows."""
        return self.most * (1.0 - self.gap) <= self.value

    def outcome(self, stopped: str) -> Found:
        """What is known."""
        bound = self.question.seconds(self.most)
        return SearchOutcome(
            placement_of(self.question, self.stages) if self.value else None,
            bound if self.value or not self.most else None,
            RecomputableBound(self.label),
            self.name,
            stopped,
            reasons=() if self.most else reasons_of(self.question),
            baselines=rules_of_pipelines(self.question),
            trace=tuple(self.trail),
            value=self.question.seconds(self.value) if self.value else None,
        )


def auto(question: PipelinesQuestion, limits: Limits, watch: Watch) -> Found:
    """Rules and stages, then searches of covers and placements for a proof, then moves of layers between nodes."""
    return _ran(question, limits, watch, "auto", (_rules, _stages, _chain, _covers, _placements, _moves))


def exhaustive(question: PipelinesQuestion, limits: Limits, watch: Watch) -> Found:
    """Every placement; a RefusedError where these are too many."""
    found = _ran(question, limits, watch, "exhaustive", (_placements,))
    if found.stopped == "complete" and found.answer is None and found.bound is None:
        raise RefusedError("there are too many placements to look at each (take the engine auto)")
    return found


def stages(question: PipelinesQuestion, limits: Limits, watch: Watch) -> Found:
    """Stages of nodes that hold the same layers; no proof but by the work of all nodes."""
    return _ran(question, limits, watch, "stages", (_rules, _stages))


def cpsat(question: PipelinesQuestion, limits: Limits, watch: Watch) -> Found:
    """CP-SAT on counts of nodes by their layers, over links that carry any rate; the bound rests on it."""
    search = _Search(question, limits, watch, "cpsat")
    if not limits.seconds or not search.most:
        return search.outcome("time limit" if search.most else "complete")
    built = counts_model(question)
    try:
        found = backend("cpsat")(built.model, Spend(limits.seconds, workers=limits.workers, seed=limits.seed))
    except ValueError as error:
        raise RefusedError(f"{error} (take the engine auto)") from error
    if found.values is not None:
        left = [[*group] for group in built.groups]
        held = [key for key, variable in built.counts.items() for _ in range(found.values[variable])]
        search.offer([question.stage(left[group].pop(), first, count) for group, first, count in held])
    most = min(search.most, (found.bound or 0) * built.unit)
    ended = found.stopped if found.stopped in {"complete", "interrupted"} else "complete" if found.stopped == "gap" else "time limit"
    outcome = replace(search.outcome(ended), solver=found.solver)
    if not search.value or most == search.most:
        return outcome
    return replace(outcome, bound=question.seconds(max(most, search.value)), proof=UnverifiedBound("cpsat"))


Part = Callable[[_Search, Limits], None]


def _ran(question: PipelinesQuestion, limits: Limits, watch: Watch, name: str, parts: Sequence[Part]) -> Found:
    """The outcome of searches one after another, until one proves the best placement."""
    search = _Search(question, limits, watch, name)
    try:
        for part in parts:
            search.tick()
            if search.proved:
                break
            part(search, limits)
    except _TimeUpError:
        return search.outcome("time limit")
    return search.outcome("complete")


def _rules(search: _Search, limits: Limits) -> None:
    del limits
    for baseline in rules_of_pipelines(search.question):
        if baseline.answer is not None:
            search.offer(stages_of(search.question, baseline.answer))


def _stages(search: _Search, limits: Limits) -> None:
    """Stages of nodes that hold the same layers: those that pass most over any links, and others, where links carry less than that."""
    del limits

    def decide(rate: int) -> int:
        try:
            found = covering(search.question, rate, search.tick, _STEPS, aligned=True)
        except LargeError:
            return 0
        if found is None:
            return 0
        search.offer(found)
        if found not in search.starts:
            search.starts.append(found)
        return least_rate(search.question, found)

    least, most = search.value, _climb(search.value, search.most, decide)
    for place in range(_GRID if search.value < most else 0):
        decide(least + (most - least) * place // _GRID + 1)


def _covers(search: _Search, limits: Limits) -> None:
    """The greatest rate at which the layers can be covered, which no placement exceeds."""
    del limits
    too_large = 0

    def decide(rate: int) -> int:
        nonlocal too_large
        try:
            found = covering(search.question, rate, search.tick)
        except LargeError:
            too_large += 1
            return rate if too_large < _TOO_LARGE else search.most
        if found is None:
            search.lower(rate - 1, BY_COVERS)
            return 0
        search.offer(found)
        return least_rate(search.question, found)

    _climb(search.value, search.most, decide)


def _climb(low: int, high: int, decide: Callable[[int], int]) -> int:
    """The greatest rate that is reached: of those between what is and what is not, the least and the middle one are tried in turn."""
    near = True
    while low < high:
        rate = low + 1 if near else (low + high + 1) // 2
        reached = decide(rate)
        near, low, high = (not near, reached, high) if reached else (False, low, low if near else rate - 1)
    return low


def _placements(search: _Search, limits: Limits) -> None:
    """Every placement, where these are few."""
    del limits
    try:
        found = best_above(search.question, search.value, search.tick)
    except LargeError:
        return
    if found is not None:
        search.offer(found[0])
    search.lower(search.value, label_of(search.question, units_within(search.question, search.question.seconds(search.value)), search.tick))


def _chain(search: _Search, limits: Limits) -> None:
    """One chain of nodes along links, where nothing else passes any tokens."""
    del limits
    question, steps = search.question, 0
    order = sorted(range(len(question.nodes)), key=lambda node: -len(question.tables[node]))

    def beyond(path: list[int], held: int) -> list[int] | None:
        nonlocal steps
        steps += 1
        search.tick()
        if held >= question.layers and question.links.sink[path[-1]]:
            return path
        row = question.links.between[path[-1]] if path else question.links.source
        if steps > _CHAINS or len(path) == question.layers:
            return None
        following = (node for node in order if row[node] and node not in path)
        found = (beyond([*path, node], held + len(question.tables[node])) for node in following)
        return next((chain for chain in found if chain), None)

    chain = None if search.value else beyond([], 0)
    if chain:
        counts, left = [1] * len(chain), question.layers - len(chain)
        for place, node in enumerate(chain):
            more = min(len(question.tables[node]) - 1, left)
            counts[place], left = 1 + more, left - more
        firsts = [*accumulate(counts, initial=0)]
        search.offer([question.stage(*held) for held in zip(chain, firsts, counts, strict=False)])


Held = dict[int, tuple[int, int]]
"""First layer and number of layers of each node that holds any."""


def _moves(search: _Search, limits: Limits) -> None:
    """Random moves of layers from the best placement and from stages on, each kept unless less passes."""
    random = Random(limits.seed)
    best = sorted(search.starts, key=lambda start: -flow_of(search.question, start).value)
    for start in (search.stages, *best[:_STARTS]):
        if not search.proved:
            _moved_from(search, start, random)


def _moved_from(search: _Search, stages: Sequence[Stage], random: Random) -> None:
    question, value, since = search.question, flow_of(search.question, stages).value, 0
    held: Held = {stage.node: (stage.first, stage.last - stage.first) for stage in stages}
    while held and since < _PATIENCE and not search.proved:
        search.tick()
        since += 1
        moved = _moved(question, held, random)
        if moved is None:
            continue
        reached = search.offer([question.stage(node, *layers) for node, layers in sorted(moved.items())])
        if reached >= value:
            held, value, since = moved, reached, 0 if reached > value else since


def _moved(question: PipelinesQuestion, held: Held, random: Random) -> Held | None:
    """Neighbouring stages or the layers of two nodes exchanged, a boundary shifted, or a node elsewhere; None where that does not fit."""
    points = sorted({0, question.layers, *(end for first, count in held.values() for end in (first, first + count))})
    new, turn = dict(held), random.random()
    if turn < _ORDER and len(points) > 2:
        start, middle, end = sorted(random.sample(points, 3))
        for node, (first, count) in held.items():
            if any(first < point < first + count for point in (start, middle, end)):
                return None
            by = end - middle if start <= first < middle else start - middle if middle <= first < end else 0
            new[node] = first + by, count
    elif turn < _SHIFT and len(points) > 2:
        point, by = random.choice(points[1:-1]), random.choice((-2, -1, 1, 2))
        for node, (first, count) in held.items():
            begin, end = (one + by if one == point else one for one in (first, first + count))
            new[node] = begin, end - begin
    elif turn < _EXCHANGE:
        one, other = random.sample(range(len(question.nodes)), 2) if len(question.nodes) > 1 else (0, 0)
        new = {node: layers for node, layers in held.items() if node not in {one, other}}
        new |= {node: held[before] for node, before in ((one, other), (other, one)) if before in held}
    else:
        node = random.randrange(len(question.nodes))
        first, last = sorted(random.sample(points, 2))
        new[node] = first, last - first
    fits = all(
        1 <= count <= len(question.tables[node]) and first >= 0 and first + count <= question.layers for node, (first, count) in new.items()
    )
    return new if fits else None


_ORDER, _SHIFT, _EXCHANGE = 0.25, 0.5, 0.75
"""Up to which random number a move is of this kind."""
_CHAINS = 20_000
"""Steps of a search for a chain."""
