"""The integer model of latency, solved from the best placement that is known; its solution in slots."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from math import isinf
from time import monotonic

import numpy as np

from crossopt.formulation.model import Values, real, violations
from crossopt.formulation.placement.throughput import Latency, latency_model
from crossopt.instances.errors import FailedError
from crossopt.instances.placement.question import PlacementQuestion
from crossopt.solvers.answer import Baseline, Limits, Progress, SearchOutcome, Watch, gap_between
from crossopt.solvers.backends import backend
from crossopt.solvers.backends.answer import Event, Spend
from crossopt.solvers.placement.answer import LEAST_GAP, Placement, baseline_of, ended, placement_of
from crossopt.solvers.placement.certificates import branched
from crossopt.solvers.placement.judge import judge_latency
from crossopt.solvers.placement.latency import paths, search
from crossopt.solvers.placement.latency.assembly import assembled
from crossopt.solvers.placement.latency.cuts import CutTables, cut_tables
from crossopt.solvers.placement.latency.flow import CPU, Flow, flow_of, greedy, latency_rules, placed, replayed, rows_placed, tidy, timed
from crossopt.solvers.proofs import OnPath, Proof, UnverifiedBound

_WORKERS = 2
_GUARD = 1e-9
"""Share by which the value of a replay in floats is raised before it limits the model."""
LARGEST_MODEL = 60_000
"""Nodes times pieces for which a model is not too large to be worth it."""


@dataclass(frozen=True, slots=True)
class Exactly:
    """What a solver found."""

    slot: list[int] | None
    """Of every row."""
    bound: float
    solver: str
    stopped: str
    limit: float
    """Milliseconds that the model goes up to."""
    notes: tuple[str, ...] = ()
    """That it did not end by itself."""


def exactly(
    question: PlacementQuestion,
    flow: Flow,
    slot: list[int],
    least: float,
    until: float,
    gap: float,
    seed: int,
    watch: Callable[[float | None, float | None], None],
    workers: int = _WORKERS,
) -> Exactly:
    """The best placement by CP-SAT, from the slot of every row of one that is known, and a bound below which nothing need be looked for.

    It ends at a time of the monotonic clock, which writing the model counts in.
    """
    greatest = timed(flow, slot)[0] * (1.0 + _GUARD)
    model = latency_model(question, least, greatest)
    hint = values_at(model, flow, slot)
    quantum = model.figures.quantum

    def show(event: Event) -> bool:
        watch(None if event.value is None else real(event.value, quantum), None if event.bound is None else real(event.bound, quantum))
        return False

    hinted = None if violations(model.model, hint) else hint
    seconds = max(until - monotonic(), 0.0)
    answer = backend("cpsat")(model.model, Spend(seconds=seconds, gap=gap, workers=workers, seed=seed, hint=hinted, watch=show))
    found = None if answer.values is None else slots_in(model, answer.values)
    bound = least if answer.bound is None else real(answer.bound, quantum)
    stopped = answer.stopped if answer.stopped in {"time limit", "interrupted"} else "complete"
    name, notes = f"{answer.solver}, in whole quanta of {quantum:.1e} ms", (answer.note,) if answer.note else ()
    return Exactly(found, bound, name, stopped, greatest, notes)


def slots_in(model: Latency, values: Values) -> list[int]:
    """The slot of every row."""
    return [next((s for s, x in enumerate(line) if values[x]), CPU) for line in model.on]


def values_at(model: Latency, flow: Flow, slot: list[int]) -> Values:
    """The values of a placement, its accelerators numbered as their first slots start and every piece in the first slot left."""
    figures, slots = model.figures, flow.slots
    in_quanta = replace(flow, accelerator=figures.accelerator, cpu=figures.cpu, transfer=figures.transfer)
    done = [int(end) for end in timed(in_quanta, slot)[1]]
    taken, given = _crossed(model, slot)
    load = [0] * slots
    for row, number in enumerate(slot):
        if number != CPU:
            load[number] += figures.accelerator[row]
    for row, number in (*taken, *given):
        load[number] += figures.transfer[row]
    end = {number: done[row] for row, number in enumerate(slot) if number != CPU}
    name = _renamed(flow, {number: moment - load[number] for number, moment in end.items()}, max(done))
    values = {x: int(slot[row] != CPU and name[slot[row]] == s) for row, line in enumerate(model.on) for s, x in enumerate(line)}
    values |= {x: int(slot[row] == CPU) for row, x in enumerate(model.cpu)}
    for lines, pairs in ((model.taken, taken), (model.given, given)):
        there = {(row, name[number]) for row, number in pairs}
        values |= {x: int((row, s) in there) for row, line in enumerate(lines) for s, x in enumerate(line)}
    ends = {name[number]: (moment - load[number], moment) for number, moment in end.items()}
    last = 0
    for s in range(slots):
        last = 0 if not s % flow.pieces else last
        idle = max(done) if not s % flow.pieces else last
        values[model.start[s]], values[model.end[s]] = ends.get(s, (idle, idle))
        last = values[model.end[s]]
    values |= dict(zip(model.done, done, strict=True))
    values[model.through] = max(*done, model.through.low)
    return values


def _crossed(model: Latency, slot: list[int]) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Which rows' outputs each slot takes in, and hands out."""
    pairs = [(row, slot[row], slot[taker]) for row, takers in enumerate(model.after) for taker in takers if slot[taker] != slot[row]]
    return {(row, there) for row, _, there in pairs if there != CPU}, {(row, here) for row, here, _ in pairs if here != CPU}


def _renamed(flow: Flow, starts: dict[int, int], last: int) -> dict[int, int]:
    """New numbers of slots."""
    by_accelerator: dict[int, list[int]] = {}
    for slot in sorted(starts):
        by_accelerator.setdefault(slot // flow.pieces, []).append(slot)
    order = sorted(by_accelerator.values(), key=lambda places: min(last, starts[places[0]]))
    return {slot: number * flow.pieces + rank for number, places in enumerate(order) for rank, slot in enumerate(places)}


# Answers how soon one sample is through: pieces along orders, made better, a bound from paths of the data, then the integer model.

NAME = "latency"
_PROOF, _CRITICAL = "a dynamic program along a path of the data", "the longest path of the data"
_CUTS = "a dynamic program from cut to cut of the data"
_LOOKING, _CUTTING, _BOUNDING, _SEARCHING = 0.15, 0.4, 0.5, 0.6
"""Shares of the time limit: for paths before cuts, for cuts, for sharper bounds of paths, and for the search for better pieces."""
_ENDING = 0.95
"""Share of the time limit when the solver is asked to end, which it takes some time to do."""
_ORDERS, _MOVES, _IDLE = (50, 5), (2_000, 100), 4
"""What a round of searching tries at most, and for each block; and rounds without a better placement after which it ends."""
_WRITING = 1e-3
"""Seconds that the integer model should be given for each node and piece, without which it is not tried."""

Known = tuple[float, list[int]]
"""The value of a placement by its replay, and the slots of its blocks or rows."""


@dataclass(slots=True)
class _Course:
    """The best so far."""

    watch: Watch
    limits: Limits
    best: Known
    """Of blocks."""
    bound: float = 0.0
    proof: Proof = field(default_factory=lambda: OnPath(_CRITICAL, "least", 0))
    shown: tuple[float, Proof] | None = None
    """The highest bound that is no word; None where that is the bound."""
    stopped: str = "complete"
    rows: Known | None = None
    """Of rows, where the integer model has found better."""
    began: float = field(default_factory=monotonic)
    trace: list[tuple[float, float | None, float | None]] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    answer: Callable[[], Placement] | None = None
    """The best so far, for who keeps answers on the way."""

    @property
    def value(self) -> float:
        return self.best[0] if self.rows is None else min(self.rows[0], self.best[0])

    def see(self, found: Known | None = None, bound: float = 0.0, proof: Proof | None = None) -> None:
        """Take in what a step found, a bound with its proof."""
        before = (self.value, self.bound)
        self.best = min(self.best, found) if found else self.best
        if proof is not None and bound > self.bound:
            self.shown = (self.bound, self.proof) if isinstance(proof, UnverifiedBound) and self.shown is None else self.shown
            self.bound, self.proof = bound, proof
        if (self.value, self.bound) != before:
            self.trace.append((monotonic() - self.began, self.value, self.bound))
        self.watch(Progress(NAME, self.value, self.bound, self.answer))

    def left(self, share: float = 1.0) -> float:
        """Seconds until this share of the time limit is over."""
        return max(self.began + share * self.limits.seconds - monotonic(), 0.0)

    def late(self, share: float = 1.0) -> bool:
        self.watch(Progress(NAME, self.value, self.bound, self.answer))
        return not self.left(share)

    @property
    def closed(self) -> bool:
        return self._near(self.bound)

    def _near(self, bound: float) -> bool:
        return gap_between(self.value, bound) <= max(self.limits.gap, LEAST_GAP)

    def proved(self) -> tuple[float, Proof]:
        """The bound with its proof; one that anybody can show again before a word, where both are as near as was asked."""
        return self.shown if self.shown is not None and self._near(self.shown[0]) else (self.bound, self.proof)


def latency(question: PlacementQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Placement]:
    """The placement through which a sample goes soonest, and no sooner than which any goes."""
    began, flow = monotonic(), flow_of(question)
    everywhere = [CPU] * len(flow.blocks)
    course = _Course(watch, limits, (replayed(flow, everywhere), everywhere), began=began)

    def answer() -> Placement:
        slots = tidy(flow, _rows(flow, course.best[1]) if course.rows is None else course.rows[1])
        return placement_of(question, *rows_placed(flow, slots))

    course.answer = answer
    course.see()
    try:
        for _ in _steps(question, flow, course):
            if course.closed:
                break
            if course.late():
                course.stopped = "time limit"
                break
    except KeyboardInterrupt:
        course.stopped = "interrupted"
    except FailedError as error:  # what was known before its solver failed holds
        course.stopped, course.notes = "interrupted", (f"the engine {NAME} ended early: {error}",)
    bound, proof = course.proved()
    found = SearchOutcome(answer(), bound, proof, stopped=course.stopped, notes=course.notes, trace=tuple(course.trace))
    return ended(question, NAME, found, baselines_of(question, flow), began)


def _steps(question: PlacementQuestion, flow: Flow, course: _Course) -> Iterator[None]:
    """What is done, a little at a time."""
    first = greedy(question, flow)
    course.see((replayed(flow, first), first))
    yield
    cuts = list[CutTables]()
    for bound, proof in _bounds(question, course, cuts):
        course.see(bound=bound, proof=proof)
        yield
    course.see(search.first_pieces(flow, course.late))
    yield
    for own in cuts:
        course.see(assembled(question, flow, own, course.limits.seed, lambda: course.late(_SEARCHING)))
        yield
    product = len(question.graph) * flow.slots
    solving = 0 < product <= LARGEST_MODEL and (1.0 - _SEARCHING) * course.limits.seconds >= _WRITING * product
    share = _SEARCHING if solving else 1.0
    ending = solving or isinf(course.limits.seconds)
    tries = [min(most, each * len(flow.blocks)) for most, each in (_ORDERS, _MOVES)]
    idle = 0
    for seed in count(course.limits.seed):
        if (ending and idle >= _IDLE) or (seed > course.limits.seed and course.late(share)):
            break
        before = course.best[0]
        course.see(search.near_orders(flow, course.best[1], tries[0], seed, lambda: course.late(share)))
        yield
        course.see(search.annealed(flow, course.best[1], tries[1], seed, lambda: course.late(share)))
        yield
        idle = 0 if course.best[0] < before else idle + 1
    if solving:
        _solve(question, flow, course)
    yield


def _bounds(question: PlacementQuestion, course: _Course, cuts: list[CutTables]) -> Iterator[tuple[float, Proof]]:
    """Of the longest path, then by dynamic programming along some paths and from cut to cut, and then with what lies beside the paths.

    `cuts` gets the tables from cut to cut, the best bound first: each is a placement too, if the inner pieces of its parts are found.
    """
    scaled, tables = paths.scaled_question(question), []
    yield paths.critical_path(scaled), OnPath(_CRITICAL, "least", 0)
    for figure, path in paths.weighed(scaled).items():
        if len(path) > paths.LARGEST:
            continue
        beside = paths.between(scaled, path)
        tables.append((figure, path, beside, *paths.least_pieces(scaled, path, beside)))
        yield paths.least_time(scaled, path, *tables[-1][3:]), OnPath(_PROOF, figure, 0)
    for share in (_LOOKING, _BOUNDING):
        if share == _BOUNDING and not course.closed:
            cuts.extend(sorted(cut_tables(scaled, lambda: course.late(_CUTTING)), key=lambda own: -own.bound()))
            yield max((own.bound() for own in cuts), default=0.0), OnPath(_CUTS, "cuts", 0)
        for figure, path, beside, pieces, size in tables:
            if course.closed:
                return
            sharp, ends = paths.sharper(scaled, beside, pieces, size, partial(course.late, share))
            again = paths.pieces_examined(pieces, ends) <= paths.MOST_REPEATED
            yield paths.least_time(scaled, path, sharp, size), OnPath(_PROOF, figure, ends) if again else UnverifiedBound(_PROOF)


def _solve(question: PlacementQuestion, flow: Flow, course: _Course) -> None:
    """The integer model, for as long as there is."""

    def show(value: float | None, bound: float | None) -> None:
        best = course.value if value is None else min(value, course.value)
        course.watch(Progress("CP-SAT", best, course.bound if bound is None else max(bound, course.bound), course.answer))

    gap = max(course.limits.gap - LEAST_GAP, 0.0)
    rows = _rows(flow, course.best[1])
    limits, until = course.limits, course.began + _ENDING * course.limits.seconds
    answer = exactly(question, flow, rows, course.bound, until, gap, limits.seed, show, max(limits.workers, _WORKERS))
    if answer.slot is not None and judge_latency(question, *rows_placed(flow, answer.slot)).accepted:
        value = timed(flow, answer.slot)[0]
        course.rows = (value, answer.slot) if value < course.best[0] else None
    course.stopped, course.notes = answer.stopped, answer.notes
    left, complete = course.left(), answer.stopped == "complete"
    if complete and (shown := branched(question, answer.limit, answer.bound, course.began, left)):
        course.see(bound=shown[0], proof=shown[1])
    course.see(bound=answer.bound, proof=UnverifiedBound(answer.solver))


def _rows(flow: Flow, slot_of: list[int]) -> list[int]:
    return [slot_of[block] for block in flow.blocks.block_of.tolist()]


def baselines_of(question: PlacementQuestion, flow: Flow) -> tuple[Baseline[Placement], ...]:
    """What is done without a proof: all on CPUs, one accelerator filled after the other, and the best pieces along one order."""
    order = search.along(flow, np.arange(len(flow.blocks)))[1] if flow.slots else None
    known = () if order is None else (baseline_of(question, "one order", *placed(flow, order)),)
    return (*latency_rules(question, flow), *known)
