"""Engines for rematerialisation: a relaxation by retained outputs with schedules built from it, and the search over all states.

HiGHS solves the relaxation (`formulation.retention`). From what it retains, a schedule is built that repeats nodes as late as possible, and
is replayed. Where its bytes exceed the budget, memory rows, longer paths and entries are added, and HiGHS is asked again. A tree in whole
numbers then proves the bound. A schedule counts as found only after its replay.
"""

from dataclasses import dataclass, field, replace
from itertools import chain
from math import ceil, inf, isinf
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Mask
from crossopt.formulation.certificate import packed
from crossopt.formulation.model import Program, Rows
from crossopt.formulation.retention import MOST_DEPTH, Retention, integer_model, retention_model, stage_model
from crossopt.instances.errors import RefusedError
from crossopt.instances.memory.graph import MemoryGraph
from crossopt.instances.memory.question import MemoryQuestion
from crossopt.solvers.answer import Baseline, Limits, Progress, SearchOutcome, Watch, unwatched
from crossopt.solvers.backends import Spend, backend
from crossopt.solvers.backends.answer import Event
from crossopt.solvers.backends.arrays import Session, SolveMonitor
from crossopt.solvers.backends.whole import trace
from crossopt.solvers.memory import judge
from crossopt.solvers.memory.chains import chain_schedule
from crossopt.solvers.memory.levels import search_levels
from crossopt.solvers.memory.planners import by_blocks, schedules_of_planners
from crossopt.solvers.memory.rules import (
    annealed,
    best_start,
    fetched_earlier,
    late_schedule,
    longest_gaps,
    moved_to_the_host,
    peak_of,
    read_instead,
    repaired,
    schedules_of_rules,
    sets_of_rules,
    toggled,
)
from crossopt.solvers.proofs import RecomputableBound, Retained, UnverifiedBound

Found = SearchOutcome[judge.Schedule]
_PATIENCE = 120.0
"""Seconds of a search without a limit."""
_DEPTHS = (3, 6, MOST_DEPTH)
_MOST_OF_STAGES = 60
"""Nodes of Checkmate's model, of which HiGHS solves few larger ones."""
_FIRST_STAGES, _MOST_STAGES = 12, 96
"""Stages of the first relaxation, and of the last one before stages are added where a schedule exceeds the budget."""
_ROUNDS, _SHRINKS = 8, 6
_FEW_NODES, _FEW_STATES = 14, 20_000
"""Graphs that are searched at once."""
_MANY_NODES = 400
"""Graphs that begin with linear relaxations."""
_SHARES, _LEASTS = (1.0, 0.998, 0.995, 0.99, 0.98, 0.96, 0.93, 0.9), (0.7, 0.3, 0.05, 0.005)
"""Shares of the budget, and numbers above which columns of a linear relaxation count as 1."""
_MOST_OF_PROOF = 40_000
"""Rows from which on a tree is about the first relaxation, as HiGHS takes too long for one node of a larger one."""
_CHAINING = 0.5
"""Seconds for the program of chains, whose answer is a start."""
_RULING = 0.2
"""Share of the time for rules."""
_FEW_STEPS, _STEPS, _ANNEALING = 20, 100, 0.4
"""Steps of annealing for a node where no rule fits, and where a gap stays; and the share of the time for schedules that it takes."""
_SOLVING = 0.5
"""Share of the time for schedules, before the proof."""


def auto(question: MemoryQuestion, limits: Limits, watch: Watch) -> Found:
    """The search over all states of a small graph; else the relaxation with its tree, and that search where these leave a gap."""
    if judge.is_open(question):
        return search_levels(question, auto, limits, watch)
    graph = question.graph
    if limits.seconds and len(graph.names) <= _FEW_NODES and max(graph.floors) <= question.budget < graph.plain_peak:
        try:
            return replace(_searched(question, _FEW_STATES, limits.seconds), engine="exhaustive")
        except judge.ManyStatesError:
            pass
    began = monotonic()
    found = retention(question, limits, watch)
    for engine in (_by_stages, _by_states):
        left = limits.seconds - (monotonic() - began)
        if found.stopped == "complete" and not _closed(question, found, limits.gap) and left > 0.0:
            found = engine(question, found, replace(limits, seconds=left), watch)
    return found


def _by_states(question: MemoryQuestion, found: Found, limits: Limits, watch: Watch) -> Found:
    """What the search over all states of a small graph finds; a schedule alone where transfers run beside computations."""
    del watch
    graph, until = question.graph, monotonic() + limits.seconds
    if len(graph.names) > judge.MOST_NODES_OF_SEARCH:
        return found
    try:
        searched = _searched(replace(question, graph=judge.serial(graph)), judge.MOST_STATES, limits.seconds)
    except judge.ManyStatesError:
        return found
    if searched.answer is None or graph.host is None or not graph.host.overlapped:
        return replace(searched, engine="exhaustive", baselines=found.baselines)
    order = fetched_earlier(graph, searched.answer.order, question.budget, until)
    if found.answer is not None and judge.extra_units(graph, found.answer.order) <= judge.extra_units(graph, order):
        return found
    return replace(found, answer=judge.Schedule(order), engine="auto")


def _by_stages(question: MemoryQuestion, found: Found, limits: Limits, watch: Watch) -> Found:
    """What the relaxation found, with the better schedule of Checkmate's model, if that has one: the bound stays with its proof."""
    graph = question.graph
    if len(graph.names) > _MOST_OF_STAGES or graph.host is not None or question.file.checkpoints:
        return found
    exact = milp(question, limits, watch)
    if exact.answer is None:
        return replace(exact, engine="auto", baselines=found.baselines) if found.answer is None and exact.bound == inf else found
    if found.answer is not None and judge.extra_units(graph, exact.answer.order) >= judge.extra_units(graph, found.answer.order):
        return found
    return replace(found, answer=exact.answer, engine="auto", stopped=exact.stopped if exact.stopped != "complete" else found.stopped)


def _closed(question: MemoryQuestion, found: Found, gap: float) -> bool:
    """Whether the bound is proved, and as near to the value as is asked."""
    if isinstance(found.proof, UnverifiedBound):
        return False
    if found.bound == inf:
        return True
    if found.answer is None or found.bound is None:
        return False
    value = question.value(judge.extra_units(question.graph, found.answer.order))
    return value - found.bound <= gap * abs(value)


def exhaustive(question: MemoryQuestion, limits: Limits, watch: Watch) -> Found:
    """The search over all states of memory."""
    if judge.is_open(question):
        return search_levels(question, exhaustive, limits, watch)
    del watch
    if not limits.seconds:
        return SearchOutcome(None, engine="exhaustive", stopped="time limit")
    if len(question.graph.names) > judge.MOST_NODES_OF_SEARCH:
        raise RefusedError(f"the search over all states takes graphs of up to {judge.MOST_NODES_OF_SEARCH} nodes (take the engine auto)")
    try:
        return replace(_searched(question, judge.MOST_STATES, limits.seconds), engine="exhaustive")
    except judge.ManyStatesError as error:
        beside = question.graph.host is not None and question.graph.host.overlapped
        why = "transfers run beside computations" if beside else f"there are more than {judge.MOST_STATES:,} states of memory"
        raise RefusedError(f"{why} (take the engine auto)") from error


def _searched(question: MemoryQuestion, most: int, seconds: float) -> Found:
    extra, order = judge.least_of_all(question, most, monotonic() + seconds)
    if extra is None:
        return SearchOutcome(None, inf, RecomputableBound(judge.BY_STATES), reasons=judge.reasons_of(question))
    return SearchOutcome(judge.Schedule(order), question.value(extra), RecomputableBound(judge.BY_STATES))


def milp(question: MemoryQuestion, limits: Limits, watch: Watch) -> Found:
    """HiGHS on Checkmate's integer model; its bound is reported, not proved."""
    if judge.is_open(question):
        return search_levels(question, milp, limits, watch)
    graph = question.graph
    if not limits.seconds:
        return SearchOutcome(None, engine="milp", stopped="time limit")
    if len(graph.names) > _MOST_OF_STAGES:
        raise RefusedError(f"Checkmate's model takes graphs of up to {_MOST_OF_STAGES} nodes (take the engine auto)")
    if graph.host is not None or question.file.checkpoints:
        what = "moves nothing to the host" if graph.host is not None else "knows no regions of torch.utils.checkpoint"
        raise RefusedError(f"Checkmate's model {what} (take the engine auto)")
    stages = stage_model(graph, question.budget, question.repetitions)

    def see(event: Event) -> bool:
        value, bound = (None if units is None else question.value(max(units, 0)) for units in (event.value, event.bound))
        watch(Progress("milp", value, bound))
        return False

    seconds = _PATIENCE if isinf(limits.seconds) else limits.seconds
    solved = backend("highs")(stages.model, Spend(seconds, limits.gap, limits.workers, limits.seed, watch=see))
    proof = UnverifiedBound(f"{solved.solver} on Checkmate's model")
    if solved.bound is None:
        return SearchOutcome(None, inf, proof, "milp", reasons=judge.reasons_of(question), solver=solved.solver)
    if solved.values is None:
        return SearchOutcome(None, engine="milp", stopped="time limit", solver=solved.solver)
    order = stages.order(solved.values)
    bound = question.value(max(min(solved.bound, judge.extra_units(graph, order)), 0))
    ended = "complete" if solved.status == "OPTIMAL" else "time limit"
    return SearchOutcome(judge.Schedule(order), bound, proof, "milp", ended, solver=solved.solver)


# The relaxation.


@dataclass(slots=True)
class _Run:
    """State of a search."""

    question: MemoryQuestion
    limits: Limits
    deadline: float
    stages: set[int]
    density: int = _FIRST_STAGES
    """Number of stages, of those above the budget without repetitions."""
    entries: set[tuple[int, int]] = field(default_factory=set)
    depth: int = _DEPTHS[0]
    order: tuple[int, ...] | None = None
    extra: int | None = None
    exhausted: bool = False
    """Whether the time was over."""
    infeasible: bool = False
    """Whether HiGHS says that nothing fits."""
    solved: bool = False
    """Whether HiGHS solved the last relaxation."""
    closed: bool = False
    """Whether the schedule is as good as was asked for, if HiGHS is right."""
    began: float = field(default_factory=monotonic)

    def left(self) -> float:
        return self.deadline - monotonic()


def retention(question: MemoryQuestion, limits: Limits, watch: Watch) -> Found:
    """Schedules from the relaxation, and a tree about it."""
    if judge.is_open(question):
        return search_levels(question, retention, limits, watch)
    graph, plain = question.graph, tuple(range(len(question.graph.names)))
    if not limits.seconds:
        return SearchOutcome(None, engine="retention", stopped="time limit")
    if graph.plain_peak <= question.budget:
        return SearchOutcome(judge.Schedule(plain), question.value(0), RecomputableBound(judge.BY_PLAIN), "retention")
    if max(graph.floors) > question.budget:
        return SearchOutcome(None, inf, RecomputableBound(judge.BY_FLOOR), "retention", reasons=judge.reasons_of(question))
    began, seconds = monotonic(), _PATIENCE if isinf(limits.seconds) else limits.seconds
    run = _Run(question, limits, began + seconds * _SOLVING, _stages_above(graph, question.budget, _FIRST_STAGES))
    rules = _begin(run, seconds, watch)
    if limits.gap >= 1.0 and run.order is not None:  # any schedule is near enough
        return SearchOutcome(judge.Schedule(run.order), question.value(0), RecomputableBound(judge.BY_PLAIN), "retention")
    _search(run, watch)
    if not run.infeasible and not run.closed:
        _anneal(run, _STEPS, watch)
        if question.file.checkpoints:
            for order in dict.fromkeys([*([run.order] if run.order else []), *rules.values()]):
                _take(run, toggled(graph, order, question.budget, run.deadline), watch)
    run.deadline = began + seconds * 0.95
    baselines = tuple(Baseline(name, None, judge.Schedule(order)) for name, order in rules.items())
    return replace(_proved(run), baselines=baselines)


def _begin(run: _Run, seconds: float, watch: Watch) -> dict[str, tuple[int, ...]]:
    """Take schedules that are quick to build; those of rules and planners by name."""
    question, graph, began = run.question, run.question.graph, run.began
    if len(graph.names) > _MANY_NODES:
        _round(run, watch)
    segments = chain_schedule(graph, question.budget, question.repetitions, min(monotonic() + _CHAINING, began + seconds * _RULING / 2))
    if segments is not None:
        _take(run, segments, watch)
    planned = schedules_of_planners(graph, question.budget, question.repetitions, began + seconds * _RULING / 2)
    rules = schedules_of_rules(graph, question.budget, began + seconds * _RULING) | planned
    start = best_start(graph, rules, question.budget) if question.repetitions else None
    if question.file.checkpoints:
        for order in rules.values():
            _take(run, order, watch)
    if start is not None:
        _take(run, start, watch)
    elif run.order is None:
        _anneal(run, _FEW_STEPS, watch, first=True)
    if graph.host is not None:
        _take(run, moved_to_the_host(graph, question.budget, began + seconds * _RULING), watch)
    if graph.host is not None and graph.host.overlapped and run.extra != 0:
        kept = replace(question, graph=replace(graph, host=None))  # whose schedules are among those beside transfers
        found = retention(kept, replace(run.limits, seconds=seconds * _RULING), unwatched)
        if found.answer is not None:
            _take(run, read_instead(graph, found.answer.order, question.budget, monotonic() + seconds * _RULING), watch)
    return rules


def _anneal(run: _Run, steps: int, watch: Watch, first: bool = False) -> None:
    """Take the schedule of annealing."""
    question, graph = run.question, run.question.graph
    if question.repetitions:
        sets = chain(sets_of_rules(graph), by_blocks(graph, longest_gaps(graph)))
        until = monotonic() + (run.deadline - run.began) * _ANNEALING
        order = annealed(graph, sets, question.budget, steps * len(graph.names), until, first, run.limits.seed)
        if order is not None:
            _take(run, order, watch)


def _round(run: _Run, watch: Watch) -> None:
    """Round linear relaxations with budgets that fall until a schedule fits: a good start of a graph for which the model takes long."""
    question = run.question
    for share in _SHARES:
        budget = int(question.budget * share)
        if budget < max(question.graph.floors) or run.left() <= 0.0:
            return
        model = retention_model(question.graph, budget, question.repetitions, run.stages, run.depth)
        if not model.costs:
            return
        relaxed = Session(_program(model), run.limits.workers, run.limits.seed).relaxed(run.left(), SolveMonitor(lambda: False))
        if relaxed.ending != "solved":
            return
        fits = [_take(run, _best_schedule(question, model, relaxed.columns, least), watch) for least in _LEASTS]
        if any(fits):
            return


def _stages_above(graph: MemoryGraph, budget: int, most: int) -> set[int]:
    """Stages above the budget without repetitions, of many the highest among several that follow each other."""
    over = [stage for stage, bytes_ in enumerate(graph.plain_bytes) if bytes_ > budget]
    step = -(-len(over) // most)
    return {max(over[first : first + step], key=lambda stage: graph.plain_bytes[stage]) for first in range(0, len(over), step)}


def _search(run: _Run, watch: Watch) -> None:
    """Solve the relaxation, build a schedule, and add what the schedule violates."""
    graph, budget = run.question.graph, run.question.budget
    for round_ in range(_ROUNDS):
        model = retention_model(graph, budget, run.question.repetitions, run.stages, run.depth, sorted(run.entries), run.extra)
        columns = _solved(run, model)
        if columns is None:
            break
        order = _best_schedule(run.question, model, columns)
        if _take(run, order, watch):
            run.closed = run.solved and judge.extra_units(graph, order) * (1.0 - run.limits.gap) <= _cost(model, columns)
            if run.closed or round_ == _ROUNDS - 1 or not _more_stages(run):
                break
            continue
        if round_ == _ROUNDS - 1:
            break
        dropped = {node: (a, b) for (node, a, b), column in model.gaps.items() if columns[column] > 0.5}
        if run.question.repetitions:
            _take(run, repaired(graph, dropped, budget, min(run.deadline, monotonic() + 1.0)), watch)
        stages, entries = _violations(graph, order, budget)
        if stages <= run.stages and entries <= run.entries:
            deeper = [depth for depth in _DEPTHS if depth > run.depth]
            if not deeper:
                break
            run.depth = deeper[0]
        run.stages |= stages
        run.entries |= entries
    if (run.order is None or (run.question.file.checkpoints and not run.closed)) and not run.exhausted and not run.infeasible:
        _shrink(run, watch)


def _cost(model: Retention, columns: Array) -> float:
    """The time of a solution of the relaxation, with what floats may have lost."""
    return float(np.array(model.costs, float) @ columns) * (1.0 + 1e-6) + 0.5


def _more_stages(run: _Run) -> bool:
    """Take twice as many stages; whether there are new ones."""
    graph, budget, before = run.question.graph, run.question.budget, len(run.stages)
    while run.density < _MOST_STAGES and len(run.stages) == before:
        run.density *= 2
        run.stages |= _stages_above(graph, budget, run.density)
    return len(run.stages) > before


def _shrink(run: _Run, watch: Watch) -> None:
    """Ask for smaller budgets until the schedule keeps the true one."""
    graph, budget = run.question.graph, run.question.budget
    for _ in range(_SHRINKS):
        model = retention_model(graph, budget, run.question.repetitions, run.stages, run.depth, sorted(run.entries))
        columns = _solved(run, model) if max(graph.floors) <= budget else None
        if columns is None:
            break
        order = _best_schedule(run.question, model, columns)
        if _take(run, order, watch):
            break
        budget -= max((peak_of(graph, order) - run.question.budget) // 4, budget // 200, 1)
    run.infeasible = run.exhausted = False


def _take(run: _Run, order: tuple[int, ...], watch: Watch) -> bool:
    """Keep a schedule if it fits and is the best; whether it fits."""
    question = run.question
    if question.file.checkpoints:
        order = judge.regions_of(question.graph, order).order
    counts = np.bincount(np.array([node for node in order if node >= 0]), minlength=len(question.graph.names))
    if peak_of(question.graph, order) > question.budget or int(counts.max()) > question.repetitions + 1:
        return False
    if question.graph.host is not None and question.graph.host.overlapped:
        order = fetched_earlier(question.graph, order, question.budget, run.deadline)
    extra = judge.extra_units(question.graph, order)
    if run.extra is None or extra < run.extra:
        run.order, run.extra = order, extra
        watch(Progress("retention", question.value(extra), answer=lambda: judge.Schedule(order)))
    return True


def _violations(graph: MemoryGraph, order: tuple[int, ...], budget: int) -> tuple[set[int], set[tuple[int, int]]]:
    """Stages whose memory is above the budget, with the one before where a repetition is, and these repetitions."""
    stages, entries = set[int](), set[tuple[int, int]]()
    for node, stage, bytes_ in zip(order, judge.stages_of(order), judge.replay(graph, order).bytes_, strict=True):
        if bytes_ > budget:
            stages.add(stage)
            if node != stage:
                entries.add((judge.node_of(node), stage))
                stages |= {stage - 1} & set(range(len(graph.names)))
    return stages, entries


def _solved(run: _Run, model: Retention) -> Array | None:
    """The columns that HiGHS finds; None without any."""
    if run.left() <= 0.0:
        run.exhausted = True
        return None
    if not model.costs:  # nothing may be repeated
        run.infeasible = True
        return None
    session = Session(_program(model), run.limits.workers, run.limits.seed)
    found = session.solved(run.left(), (0.0, run.limits.gap), SolveMonitor(lambda: False))
    run.solved = found.ending == "solved"
    if found.ending == "infeasible":
        run.infeasible = True
    elif found.columns is None:
        run.exhausted = True
    return found.columns


def _program(model: Retention) -> Program:
    """The relaxation in arrays, with costs near 1 and rows that are scaled to their largest factors."""
    unit = float(max([*model.costs, 1])) / 1e4
    highs, starts, columns, factors = list[float](), [0], list[int](), list[float]()
    for terms, limit in model.rows:
        merged = dict[int, int]()
        for factor, column in terms:
            merged[column] = merged.get(column, 0) + factor
        largest = float(max((abs(factor) for factor in merged.values()), default=1) or 1)
        columns += merged
        factors += [factor / largest for factor in merged.values()]
        starts.append(len(columns))
        highs.append(limit / largest)
    highs_of = np.array([model.highs.get(column, 1) for column in range(len(model.costs))], float)
    rows = Rows(
        np.full(len(highs), -np.inf), np.array(highs, float), np.array(starts), np.array(columns, np.int64), np.array(factors, float)
    )
    return Program(unit, np.array(model.costs, float) / unit, highs_of, np.array(model.binary, bool), rows)


# Schedules from what is retained.


def _best_schedule(question: MemoryQuestion, model: Retention, columns: Array, least: float = 0.5) -> tuple[int, ...]:
    """The schedule of the least peak among three ways to read a solution, in which columns above a number count as 1."""
    graph, chosen = question.graph, columns > least
    end = len(graph.names)
    repeated = {gap for gap, column in model.gaps.items() if chosen[column]}
    loaded = {gap for gap, column in model.read.items() if chosen[column]} - repeated
    repeated |= {(node, graph.last_uses[node], end) for node, column in model.repeated.items() if chosen[column]}
    loaded |= {(node, graph.last_uses[node], end) for node, column in model.read_late.items() if chosen[column]} - repeated
    windows = dict[int, list[tuple[int, int]]]()
    for node, a, b in sorted(repeated | loaded):
        windows.setdefault(node, []).append((a, b))
    staying = set[tuple[int, int, int]]()
    active = [item for item in model.around if chosen[item.root] and chosen[item.literal]]
    first = {(item.gap[0], item.gap[1], item.reader) for item in active if chosen[item.order]}
    staying = {key for item in active if (key := (item.gap[0], item.gap[1], item.reader)) not in first}
    entered = {gap: _entered(model, gap, chosen) for gap in model.gaps}
    ways = [
        late_schedule(graph, windows, entered, staying, loaded),
        late_schedule(graph, windows, {}, staying, loaded),
        late_schedule(graph, windows, {}, set(), loaded),
    ]
    if question.file.checkpoints:
        ways = [judge.regions_of(graph, order).order for order in ways]
    return min(ways, key=lambda order: peak_of(graph, order))


def _entered(model: Retention, gap: tuple[int, int, int], chosen: Mask) -> int:
    """The stage from which on a repeated node is in memory until its gap ends."""
    node, a, b = gap
    stage = b
    for earlier in range(b - 1, a, -1):
        column = model.inside.get((node, earlier))
        if column is not None and not chosen[column]:
            break
        stage = earlier if column is not None else stage
    return stage


# The proof.


def _proved(run: _Run) -> Found:
    """The schedule with the bound of a tree. The tree is about schedules that take less time than the one that is known."""
    question, extra = run.question, run.extra
    if run.left() <= 0.0:
        if run.order is None:
            return SearchOutcome(None, engine="retention", stopped="time limit")
        return SearchOutcome(judge.Schedule(run.order), question.value(0), RecomputableBound(judge.BY_PLAIN), "retention", "time limit")
    goal = None if extra is None else max(ceil(extra - run.limits.gap * (extra + question.base)), 0)
    stages, depth, entries = run.stages, run.depth, tuple(sorted(run.entries))
    model = retention_model(question.graph, question.budget, question.repetitions, stages, depth, entries, goal)
    if len(model.rows) > _MOST_OF_PROOF:
        stages, depth, entries = _stages_above(question.graph, question.budget, _MOST_STAGES), _DEPTHS[0], ()
        model = retention_model(question.graph, question.budget, question.repetitions, stages, depth, entries, goal)
    integers, ordered = integer_model(model)
    claim = None if goal is None else -(-goal // ordered.unit)
    tree = trace(integers, claim, max(run.left(), 0.1), judge.MOST_STEPS // 2, leading=ordered.leading)
    units = None if tree.bound is None else max(tree.bound, 0) * ordered.unit
    if goal is not None:
        units = goal if units is None else min(units, goal)
    proof = Retained(judge.BY_TREE, tuple(sorted(stages)), entries, depth, goal, tree.certificate.scale, packed(tree.certificate))
    if units is None:
        return SearchOutcome(None, inf, proof, "retention", reasons=judge.reasons_of(question))
    if run.order is None or extra is None:
        ended = "time limit" if run.exhausted or run.left() <= 0.0 else "complete"
        return SearchOutcome(None, question.value(units), proof, "retention", ended)
    complete = tree.stopped in {"complete", "refuted"} or units >= extra
    return SearchOutcome(judge.Schedule(run.order), question.value(units), proof, "retention", "complete" if complete else "time limit")
