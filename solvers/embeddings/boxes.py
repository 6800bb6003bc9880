"""Engines for nodes within a budget and strategies of dense layers: boxes of choices, best first; plain questions go to their own engines.

The box with the least bound is halved along its widest axis; a choice alone is answered as a plain question about tables.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import product
from math import inf, isinf
from time import monotonic
from typing import Final

from crossopt.formulation.embeddings import whole
from crossopt.instances.embeddings import systems
from crossopt.instances.embeddings.question import EmbeddingsQuestion
from crossopt.instances.errors import RefusedError
from crossopt.solvers.answer import Baseline, Limits, Progress, SearchOutcome, Watch, unwatched
from crossopt.solvers.embeddings import engines
from crossopt.solvers.embeddings.baselines import baselines
from crossopt.solvers.embeddings.judge import BY_PRICES, EmbeddingPlan
from crossopt.solvers.embeddings.prices import best_bound, flat, lacking_prices
from crossopt.solvers.embeddings.systems import BY_SYSTEMS, full_box, halves, judge, least_of, reasons_of
from crossopt.solvers.proofs import PricedSystems, PricedTiers, SystemLeaf

Found = SearchOutcome[EmbeddingPlan]
Best = tuple[float, EmbeddingPlan | None]
"""A value with its answer."""
_PATIENCE: Final = 120.0
"""Seconds where no limit is given."""
_ALONE, _AGAIN, _COMPARING, _LEAST_COMPARING = 2.9, 10.0, 5.0, 0.3
"""Seconds for a choice alone, for the best one again, for baselines at it, and without which there are none."""
_FIRST_SHARE, _SOLVING, _NEAR, _MOST_CELLS = 0.5, 20.0, 1e-3, 4_000
"""Share of the time for a local search of tables, seconds for an integer model, the gap at which it is not asked, and its largest size."""
_SMALL_TABLES, _SMALL_DEVICES, _MOST_CHOICES = 12, 8, 500
"""Questions of which all plans at a choice are searched, and choices that are looked at one by one."""
Engine = Callable[[EmbeddingsQuestion, Limits, Watch], Found]


def auto(question: EmbeddingsQuestion, limits: Limits, watch: Watch) -> Found:
    """Boxes of choices, or tables alone."""
    return _boxes(question, limits, watch) if question.has_system else tables_alone(question, limits, watch)


def tables_alone(question: EmbeddingsQuestion, limits: Limits, watch: Watch) -> Found:
    """Prices and local search; where these leave a gap, also plans of the integer model, and of baselines that are better.

    Where memory is short, the order of packing decides, and a solver finds plans far from those of a local search. Its bound is not proved
    again, and is only noted.
    """
    cells, began = len(question.tables) * question.group.devices, monotonic()
    if cells > _MOST_CELLS or question.file.objective not in {"slowest_device", "step"}:
        return engines.auto(question, limits, watch)
    found = engines.auto(question, replace(limits, seconds=_FIRST_SHARE * limits.seconds), watch)
    if found.answer is None and found.bound is not None:
        return found
    comparing = min(0.1 * limits.seconds, _COMPARING)
    if found.answer is not None and not found.baselines and comparing >= _LEAST_COMPARING:  # half of the time was too little for them
        found = replace(found, baselines=baselines(question, comparing))
    value = inf if found.answer is None else float(judge(question, found.answer).value)
    if found.bound is not None and value <= found.bound * (1.0 + max(limits.gap, _NEAR)):
        return found
    notes = list(found.notes if found.answer is not None else ())
    plans, solver = [own.answer for own in found.baselines if own.answer is not None], ""
    left = _SOLVING if isinf(limits.seconds) else 0.9 * limits.seconds - (monotonic() - began)
    if left > 0.0:
        solved = engines.highs(question, replace(limits, seconds=left), watch)
        plans, solver = [*plans, *([] if solved.answer is None else [solved.answer])], solved.solver
        if solved.bound is not None and found.bound is not None and found.bound < solved.bound < inf:
            notes.append(f"{solver or 'the solver'} reports that no plan is below {solved.bound:.6g} ms, which is not proved again")
    best: Best = (value, found.answer)
    for plan in plans:
        verdict = judge(question, plan)
        best = (float(verdict.value), plan) if verdict.accepted and verdict.value < best[0] else best
    if best[1] is found.answer:
        return replace(found, notes=tuple(notes), solver=solver)
    trace = (*found.trace, (monotonic() - began, best[0], None if found.bound is None else float(found.bound)))
    return replace(found, answer=best[1], notes=tuple(notes), trace=trace, seconds=monotonic() - began, solver=solver)


def local(question: EmbeddingsQuestion, limits: Limits, watch: Watch) -> Found:
    """Local search of tables."""
    return engines.local(_plain(question, "local"), limits, watch)


def search_all(question: EmbeddingsQuestion, limits: Limits, watch: Watch) -> Found:
    """The search of all plans of tables."""
    return engines.search_all(_plain(question, "search"), limits, watch)


def cpsat(question: EmbeddingsQuestion, limits: Limits, watch: Watch) -> Found:
    """The integer model of tables by CP-SAT."""
    return engines.cpsat(_plain(question, "cpsat"), limits, watch)


def highs(question: EmbeddingsQuestion, limits: Limits, watch: Watch) -> Found:
    """The integer model of tables by HiGHS."""
    return engines.highs(_plain(question, "highs"), limits, watch)


def _plain(question: EmbeddingsQuestion, name: str) -> EmbeddingsQuestion:
    if question.has_system:
        raise RefusedError(f"the engine {name} answers questions about tables alone (take the engine auto for dense layers and nodes)")
    return question


def exhaustive(question: EmbeddingsQuestion, limits: Limits, watch: Watch) -> Found:
    """Every plan at every choice of a small question."""
    if not question.has_system:
        return engines.exhaustive(question, limits, watch)
    began, stopped = monotonic(), "complete"
    best: Best = (inf, None)
    for system in all_systems(question):
        left = limits.seconds - (monotonic() - began)
        if left <= 0.0:
            return SearchOutcome(best[1], engine="exhaustive", stopped="time limit")
        found = engines.exhaustive(systems.fixed_at(question, system), replace(limits, seconds=left), watch)
        stopped = stopped if found.stopped == "complete" else found.stopped
        best = _better(question, found.answer, system, best)
    return SearchOutcome(best[1], engine="exhaustive", stopped=stopped)


def _better(question: EmbeddingsQuestion, plan: EmbeddingPlan | None, system: systems.System, best: Best) -> Best:
    """The better one of a plan at a choice and the best so far."""
    if plan is None:
        return best
    answer = replace(plan, system=system)
    verdict = judge(question, answer)
    return (float(verdict.value), answer) if verdict.accepted and verdict.value < best[0] else best


def all_systems(question: EmbeddingsQuestion) -> Iterator[systems.System]:
    """Every choice within the budget, of few."""
    axes, pairs = systems.all_parts(question), systems.pairs_of(question)
    count = len(pairs)
    for own in axes:
        count *= len(own)
    if count > _MOST_CHOICES:
        raise RefusedError(f"there are {count:,} choices, more than the {_MOST_CHOICES:,} that are looked at (take the engine auto)")
    for parts in product(*axes):
        if systems.within_budget(question, parts):
            for bottom, top in pairs:
                yield systems.System(tuple(part.index for part in parts), bottom, top)


# Boxes, best first.


@dataclass(slots=True)
class _Node:
    """A box with its bound, and the two boxes in which it was cut."""

    box: systems.Box | None
    """None where every choice of it exceeds the budget."""
    bound: float
    leaf: SystemLeaf
    cut: tuple[int, int] | None = None
    parts: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class _Search:
    """Open boxes by their bounds, and the best answer so far."""

    question: EmbeddingsQuestion
    space: systems.Space
    limits: Limits
    watch: Watch
    began: float
    nodes: list[_Node] = field(default_factory=list)
    heap: list[tuple[float, int]] = field(default_factory=list)
    best: Best = (inf, None)
    best_node: int = 0
    solved: float = inf
    """Least bound of choices that were answered alone."""
    trace: list[tuple[float, float | None, float | None]] = field(default_factory=list)

    @property
    def bound(self) -> float:
        return min(self.heap[0][0] if self.heap else inf, self.solved)

    def add(self, box: systems.Box) -> int:
        """A box with its bound."""
        within = systems.tightened(self.question, self.space, box)
        bound, leaf = (inf, SystemLeaf(None, None)) if within is None else _bound_of(self.question, self.space, within)
        # cuts refer to the box before it was tightened, as a check repeats that
        self.nodes.append(_Node(None if within is None else box, bound, leaf))
        if bound < inf:
            heappush(self.heap, (bound, len(self.nodes) - 1))
        return len(self.nodes) - 1

    def offer(self, plan: EmbeddingPlan | None, system: systems.System, number: int) -> None:
        """Keep a plan at a choice if it is better."""
        best = _better(self.question, plan, system, self.best)
        if best is not self.best:
            self.best, self.best_node = best, number
            self.trace.append((monotonic() - self.began, best[0], min(self.bound, best[0])))
            self.watch(Progress("boxes of choices", best[0], min(self.bound, best[0]), answer=lambda: best[1]))


def _bound_of(question: EmbeddingsQuestion, space: systems.Space, box: systems.Box) -> tuple[float, SystemLeaf]:
    """What no choice of a box is below, and its proof."""
    plain, time = least_of(question, space, box)
    form = whole(plain)
    if any(not own for own in form.ways):
        return inf, SystemLeaf(None, PricedTiers(BY_PRICES, None, (0.0, 0.0, 0.0)))
    ways = flat(form)
    if (prices := lacking_prices(ways)) is not None:
        return inf, SystemLeaf(None, PricedTiers(BY_PRICES, None, prices))
    priced = best_bound(ways)
    hbm, ddr, ssd = (float(price) for price in priced.prices)
    bound = priced.bound or 0.0
    return bound + time, SystemLeaf(bound, PricedTiers(BY_PRICES, priced.limit, (hbm, ddr, ssd), priced.weights))


def _boxes(question: EmbeddingsQuestion, limits: Limits, watch: Watch) -> Found:
    """The best choice with the best plan of its tables."""
    if not limits.seconds:
        return SearchOutcome(None, engine="auto", stopped="time limit")
    began = monotonic()
    deadline = began + (_PATIENCE if isinf(limits.seconds) else 0.85 * limits.seconds)
    found = _Search(question, systems.space_of(question), limits, watch, began)
    found.add(full_box(found.space))
    stopped = "complete"
    while found.heap and found.heap[0][0] * (1.0 + limits.gap) < found.best[0]:
        if monotonic() >= deadline:
            stopped = "time limit"
            break
        _open(found, heappop(found.heap)[1], deadline)
    if found.best[1] is not None and found.nodes[found.best_node].bound * (1.0 + limits.gap) < found.best[0]:
        _again(found, deadline)
    return _outcome(found, stopped, limits)


def _open(found: _Search, number: int, deadline: float) -> None:
    """Halve a box, or answer a choice alone."""
    node = found.nodes[number]
    box = node.box
    within = None if box is None else systems.tightened(found.question, found.space, box)
    if box is None or within is None:
        return
    wide = max(range(len(within)), key=lambda axis: (within[axis][1] - within[axis][0], -axis))
    low, high = within[wide]
    if low < high:
        node.cut = (wide, (low + high) // 2)
        first, second = halves(box, *node.cut)
        node.parts = found.add(first), found.add(second)
        return
    system = _system_of(found.space, within)
    _solve(found, number, system, min(_ALONE, max(deadline - monotonic(), 0.1)))
    small = len(found.question.tables) <= _SMALL_TABLES and found.question.group.devices <= _SMALL_DEVICES
    if small and node.bound < found.best[0] and (left := deadline - monotonic()) > 0.0:  # the machine was busy, or the search is long
        _solve(found, number, system, left, engines.search_all)
    found.solved = min(found.solved, node.bound)


def _system_of(space: systems.Space, box: systems.Box) -> systems.System:
    """The single choice of a box."""
    parts = tuple(own[low].index for own, (low, _) in zip(space.axes, box, strict=False))
    return systems.System(parts, *space.pairs[box[-1][0]])


def _solve(found: _Search, number: int, system: systems.System, seconds: float, engine: Engine = engines.auto) -> None:
    """Answer the tables at a choice, with the better one of both bounds."""
    node, plain = found.nodes[number], systems.fixed_at(found.question, system)
    outcome = engine(plain, replace(found.limits, seconds=seconds), unwatched)
    found.offer(outcome.answer, system, number)
    if outcome.bound is None or not isinstance(outcome.proof, PricedTiers):
        return
    time = systems.dense_figures(found.question, systems.chosen_parts(found.question, system), (system.bottom, system.top))[0]
    bound = outcome.bound + time
    if bound > node.bound:
        node.bound, node.leaf = bound, SystemLeaf(None if isinf(outcome.bound) else float(outcome.bound), outcome.proof)


def _again(found: _Search, deadline: float) -> None:
    """The tables at the best choice again, with some of the time that is left."""
    plan, seconds = found.best[1], min(deadline - monotonic(), _AGAIN)
    if plan is not None and plan.system is not None and seconds > _ALONE:
        _solve(found, found.best_node, plan.system, seconds, tables_alone)


def _outcome(found: _Search, stopped: str, limits: Limits) -> Found:
    """What was found, with its proof and baselines at the same choice."""
    bound = min((node.bound for node in found.nodes if node.cut is None), default=inf)
    cuts, leaves, stack = list[tuple[int, int] | None](), list[SystemLeaf](), [0]
    while stack:
        node = found.nodes[stack.pop()]
        cuts.append(node.cut)
        if node.cut is None:
            leaves.append(node.leaf)
        else:
            stack += reversed(node.parts)
    proof = PricedSystems(BY_SYSTEMS, tuple(cuts), tuple(leaves))
    value, plan = found.best
    if plan is None:
        if bound == inf:
            return SearchOutcome(None, inf, proof, "auto", reasons=reasons_of(found.question, proof))
        return SearchOutcome(None, engine="auto", stopped="time limit", notes=("no choice was found whose tables fit",))
    left = min(0.1 * limits.seconds, _COMPARING)
    seconds = monotonic() - found.began
    compared = tuple(_compared(found.question, plan.system, left)) if plan.system and left >= _LEAST_COMPARING else ()
    return SearchOutcome(plan, min(bound, value), proof, "auto", stopped, baselines=compared, trace=tuple(found.trace), seconds=seconds)


def _compared(question: EmbeddingsQuestion, system: systems.System, seconds: float) -> Iterator[Baseline[EmbeddingPlan]]:
    """Baselines of tables at the same choice."""
    for own in baselines(systems.fixed_at(question, system), seconds):
        yield replace(own, answer=None if own.answer is None else replace(own.answer, system=system))
