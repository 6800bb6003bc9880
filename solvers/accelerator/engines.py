"""Engines for chips with schedules and stages: sets of chips by their bounds, every chip one by one, and rules to compare with."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import product
from math import inf
from time import monotonic
from typing import Final

import numpy as np

from crossopt.crossflow.accelerator import chip_area
from crossopt.crossflow.arrays import Array
from crossopt.formulation.accelerator import bounds
from crossopt.formulation.accelerator.model import plan_of, schedule_model, stage_model, sums_of
from crossopt.formulation.accelerator.schedule import MOST_STATES, Schedule
from crossopt.formulation.accelerator.stages import Pipelines
from crossopt.instances.accelerator.question import AcceleratorQuestion
from crossopt.instances.errors import RefusedError
from crossopt.instances.files.units import bytes_beyond, format_quantity
from crossopt.solvers.accelerator.family import answer_of, best_of_chip, rules_beside
from crossopt.solvers.accelerator.judge import (
    BY_SETS,
    LEAST_WORK,
    NO_PLAN,
    AcceleratorPlan,
    BuiltChip,
    ChipAnswer,
    judge,
)
from crossopt.solvers.answer import Baseline, Limits, Progress, SearchOutcome, Watch, unwatched
from crossopt.solvers.backends import Spend, backend
from crossopt.solvers.proofs import RecomputableBound, UnverifiedBound

_MOST_OF_MILP: Final = 40
_UNITS_OF_MILP: Final = 2.0**26
"""Of loads: solvers in floating point tell sums of no finer ones."""
_COARSE: Final = 2e-6
"""Gap that such units leave."""
_UNSEARCHED, _SEARCHED, _FINAL = range(3)
"""Whether stages of a set of chips were searched, or its bound is that of its best plan."""
_ALIKE: Final = 5e-10
"""Relative difference of values below which chips of a technology are alike."""
_LARGER: Final = 2.0 ** np.arange(1, 7)
"""Factors of memory that are tried where none suffices."""
_PATIENCE: Final = 5
_GROUP: Final = 10_000.0
"""Square micrometres of a group of chips in PHAZE's search."""


@dataclass(slots=True)
class _Run:
    """What is known so far."""

    question: AcceleratorQuestion
    limits: Limits
    watch: Watch
    began: float
    pricing: bounds.Pricing
    answer: AcceleratorPlan | None = None
    value: float = inf
    first: AcceleratorPlan | None = None
    """The plan of the chip with the least work."""
    cutoff: float = inf
    """The least bound of a chip whose layers have schedules: nothing from there on is looked at."""

    def offer(self, chip: int, bound: float, found: Sequence[bounds.NetworkBest]) -> None:
        """Keep a plan if it is better."""
        if any(not best.plan.stages for best in found):
            return
        self.cutoff = min(self.cutoff, bound)
        answer = answer_of(self.pricing, chip, found)
        verdict = judge(self.question, answer)
        if verdict.accepted and verdict.value < self.value:
            self.answer, self.value = answer, verdict.value

    def show(self, bound: float | None) -> None:
        self.watch(Progress("sets of chips", self.value if self.answer else None, bound, answer=lambda: self.answer))

    @property
    def target(self) -> float:
        """Below which chips are looked for: of a technology many are alike, and one as good as the best is none."""
        return self.cutoff * (1.0 - _ALIKE) if self.pricing.in_boxes else self.cutoff

    @property
    def is_over(self) -> bool:
        return monotonic() - self.began >= self.limits.seconds


def certified(question: AcceleratorQuestion, limits: Limits, watch: Watch) -> SearchOutcome[AcceleratorPlan]:
    """The best chip and plan: sets of chips are split until those with the least bound are chips with schedules."""
    run = _Run(question, limits, watch, monotonic(), bounds.Pricing(question, MOST_STATES))
    bound, notes = _searched(run), tuple(question.equal_layers)
    if run.answer is None and bound == inf:
        return SearchOutcome(None, inf, RecomputableBound(BY_SETS), "certified", reasons=reasons(run.pricing), notes=notes)
    stopped = "time limit" if run.is_over and bound < run.cutoff else "complete"
    seconds = monotonic() - run.began
    return SearchOutcome(
        run.answer,
        None if run.answer is None else min(bound, run.value),
        None if run.answer is None else RecomputableBound(BY_SETS),
        "certified",
        stopped=stopped,
        notes=notes,
        baselines=tuple(_baselines(run)),
        seconds=seconds,
    )


def _searched(run: _Run) -> float:
    """Search; the bound of all chips."""
    pricing = run.pricing
    if not run.is_over and pricing.count:
        first = _first(pricing)
        run.offer(first, *bounds.refined(pricing, first, inf))
        run.first = run.answer
        if np.ptp(pricing.weights) and pricing.question.built is None:
            second = int(bounds.value_bounds(pricing).argmin())
            run.offer(second, *bounds.refined(pricing, second, run.cutoff))
    if not pricing.count:
        return inf
    chips = bounds.screened(pricing, run.cutoff) or (0,)
    order, heap = 0, [(0.0 if run.is_over else bounds.set_bound(pricing, chips, run.cutoff)[0], 0, chips, _SEARCHED)]
    tight = pricing.in_boxes and not run.is_over and bounds.gains(pricing, run.target)
    while heap:
        bound, _, members, known = heappop(heap)
        if known == _FINAL or bound >= run.target * (1.0 - run.limits.gap) or run.is_over:
            return min(bound, run.target)
        if known == _UNSEARCHED and tight and not pricing.is_chip(members):
            order -= 1
            heappush(heap, (max(bound, bounds.set_bound(pricing, members, run.target)[0]), order, members, _SEARCHED))
            continue
        if pricing.is_chip(members):
            low, found = bounds.refined(pricing, members[0], run.target)
            run.offer(members[0], low, found)
            order -= 1
            heappush(heap, (low, order, members, _FINAL))
            run.show(bound)
            continue
        if pricing.in_boxes:
            for low, row in bounds.parts_of(pricing, members[0], run.target):
                order -= 1
                heappush(heap, (max(low, bound), order, (row,), _UNSEARCHED))
            run.show(bound)
            continue
        for half in bounds.halves(pricing, members):
            low = max(bound, bounds.set_bound(pricing, half, run.cutoff)[0])
            order -= 1
            heappush(heap, (low, order, half, _SEARCHED))
        run.show(bound)
    return run.target


def _first(pricing: bounds.Pricing) -> int:
    """The chip with the least work, of a coarse grid if there are many."""
    if pricing.question.built is None or not pricing.in_boxes:
        return int(bounds.work_bounds(pricing)[0].argmin())
    places = pricing.question.built.every()
    first = pricing.count
    pricing.add(places, places)
    return first + int(bounds.work_bounds(pricing, first)[0].argmin()) if pricing.count > first else 0


# Integer programs: PHAZE's for each schedule, and one for chip and stages at each number of stages and pipelines.


def milp(question: AcceleratorQuestion, limits: Limits, watch: Watch) -> SearchOutcome[AcceleratorPlan]:
    """HiGHS on integer programs; small questions with one network on chips of the template."""
    pricing = bounds.Pricing(question, MOST_STATES)
    operators = max(len(layer.operators) for network in question.networks for layer in network.kinds)
    refused = [reason for holds, reason in _beyond_programs(question, pricing.count, operators) if holds]
    if refused:
        raise RefusedError(f"no integer program: {'; '.join(refused)} (take the engine certified)")
    deadline, best = monotonic() + limits.seconds, (inf, -1, bounds.NetworkBest(inf))
    spend = Spend(seed=limits.seed, workers=limits.workers)
    for size in question.file.microbatch:
        times = [_scheduled(pricing, chip, size, (spend, deadline)) for chip in range(pricing.count)]
        watch(Progress("integer programs", None if best[0] == inf else best[0]))
        for found in _staged(pricing, size, times, (spend, deadline)):
            best = min(best, found, key=lambda one: one[0])
    answer = answer_of(pricing, best[1], [best[2]]) if best[0] < inf else None
    if monotonic() > deadline:
        return SearchOutcome(answer, engine="milp", stopped="time limit")
    return SearchOutcome(
        answer,
        best[0],
        UnverifiedBound("highs"),
        "milp",
        reasons=() if answer else reasons(pricing),
        notes=question.equal_layers,
        coarse=_COARSE,
    )


def _beyond_programs(question: AcceleratorQuestion, chips: int, operators: int) -> Iterator[tuple[bool, str]]:
    """What the integer programs do not state, or of what they are for less."""
    file, places, most = question.file, len(question.ideals[0].members), _MOST_OF_MILP
    yield question.built is not None, "chips of a technology are priced by rooflines, not by schedules"
    yield len(question.networks) > 1, f"{len(question.networks)} networks share a chip, programs have one"
    yield file.objective in ("energy", "cost"), f"{file.objective} is a product of devices and time, which no linear row states"
    yield "interleaved" in file.pipeline, "interleaved pipelines have no program"
    yield chips > most, f"{chips:,} chips that no other surpasses are more than {most}"
    yield operators > most, f"{operators:,} operators of a layer are more than {most}"
    yield places > most, f"{places:,} places to cut are more than {most}"


def _scheduled(pricing: bounds.Pricing, chip: int, size: int, spend: tuple[Spend, float]) -> dict[int, Array]:
    """Cycles of all layers on a chip by tensor degree, by PHAZE's program; notes the schedules."""
    found = dict[int, Array]()
    cores = int(pricing.chips.tensor_cores[chip]), int(pricing.chips.vector_cores[chip])
    for setting in pricing.settings(0, size):
        table = np.array(pricing.least(setting)[:, :, chip])
        for kind, layer in enumerate(pricing.question.networks[0].kinds):
            for column, backward in enumerate(pricing.question.directions):
                one, every, moving = pricing.cycles(pricing.chips.at(np.array([chip])), setting, kind, backward)
                if not np.isfinite(one).all():
                    continue
                graph = layer.pass_graph(backward)
                on_one, on_every = ([int(figure) for figure in side[:, 0]] for side in (one, every))
                built = schedule_model(graph, on_one, on_every, cores)
                solved = backend("highs")(built.model, replace(spend[0], seconds=max(spend[1] - monotonic(), 0.0)))
                if solved.values is None or solved.bound is None or solved.value is None:
                    continue
                starts, on_all = (tuple(solved.values[variable] for variable in side) for side in (built.starts, built.on_all))
                pricing.schedules[chip, setting, kind, backward] = Schedule(solved.bound, solved.value, tuple(map(bool, on_all)), starts)
                table[kind, column] = max(solved.bound, float(moving[0]))
        found[setting.tensor] = table
    return found


def _staged(
    pricing: bounds.Pricing, size: int, times: list[dict[int, Array]], spend: tuple[Spend, float]
) -> Iterator[tuple[float, int, bounds.NetworkBest]]:
    """Bounds and plans by the program for stages, for each number of stages and pipelines."""
    chips = [chip for chip, own in enumerate(times) if all(np.isfinite(table).all() for table in own.values())]
    if not chips:
        return
    cuts, memory = pricing.cuts(0), pricing.question.file.memory
    unit = max(pricing.unit(0, size, times[chip], _UNITS_OF_MILP) for chip in chips)
    weight = float(pricing.weights[chips].max()) / _UNITS_OF_MILP
    weights = [int(pricing.weights[chip] / weight) for chip in chips]
    for schedule in pricing.question.file.pipeline:
        shared = pricing.pipelines(size, unit, schedule)
        worth = {"devices": 1.0, "feasible": weight}.get(shared.measure, unit)
        groups = zip(*(pricing.options(0, size, times[chip], unit, (memory, shared.flushes)) for chip in chips), strict=True)
        for options, (stages, data) in product(groups, _pipelines(pricing, shared)):
            if stages * min(item.tensor for item in options[0]) * data > shared.devices or monotonic() > spend[1]:
                continue
            built = stage_model(cuts, options, shared, (stages, data), (sums_of(options[0], shared, data), weights))
            solved = backend("highs")(built.model, replace(spend[0], seconds=max(spend[1] - monotonic(), 0.0)))
            if solved.values is not None and solved.bound is not None:
                row, plan = plan_of(built, cuts, options[0], solved.values, (data, shared.flushes))
                yield solved.bound * worth, chips[row], bounds.NetworkBest(solved.bound * worth, size, plan)


def _pipelines(pricing: bounds.Pricing, shared: Pipelines) -> list[tuple[int, int]]:
    """Numbers of stages and of pipelines."""
    most = min(len(pricing.question.networks[0]), shared.devices)
    counts = shared.replicas().tolist() if shared.measure == "time" else range(1, min(shared.devices, shared.microbatches) + 1)
    return [(stages, data) for stages in range(1, most + 1) for data in counts]


# Rules to compare with.


def _baselines(run: _Run) -> Iterator[Baseline[AcceleratorPlan]]:
    """PHAZE's search, one degree for all stages, all operators on all cores, the reference chip, and a fixed plan, while time is left."""
    question, best = run.question, run.answer
    if best is None:
        return
    yield Baseline("chip first, then stages", None, run.first, LEAST_WORK)
    if isinstance(best.chip, BuiltChip):
        yield from _by_one_degree(run)
        return
    if question.file.objective == "time":
        stopped_early, visited = _hysteresis(run)
        yield Baseline("PHAZE's search", None, stopped_early, f"{visited:,} chips, then {_PATIENCE} groups without gain")
    yield from _by_one_degree(run)
    yield from rules_beside(question, best.chip)


def _by_one_degree(run: _Run) -> Iterator[Baseline[AcceleratorPlan]]:
    """The optimum of plans with one tensor degree and recomputation."""
    if not run.question.file.uniform and not run.is_over:
        uniform = _Run(_uniform(run.question), run.limits, unwatched, run.began, bounds.Pricing(_uniform(run.question), MOST_STATES))
        _searched(uniform)
        yield Baseline("one degree for all stages", None, uniform.answer, "" if uniform.answer else NO_PLAN)
        if uniform.answer is not None:
            pricing, chip = _priced_chip(run, uniform.answer.chip)
            yield best_of_chip("chip for one degree, then stages", pricing, chip)


def _priced_chip(run: _Run, chip: ChipAnswer | BuiltChip) -> tuple[bounds.Pricing, int]:
    """Prices with a row for this chip, and the row."""
    if isinstance(chip, ChipAnswer) or run.question.built is None:
        return bounds.Pricing(run.question, MOST_STATES, chip.columns() if isinstance(chip, ChipAnswer) else bounds.NO_CHIPS), 0
    places = np.array([[values.index(chip.choices[name]) for name, values in run.question.built.options]], np.int64)
    run.pricing.add(places, places)
    return run.pricing, run.pricing.count - 1


def _uniform(question: AcceleratorQuestion) -> AcceleratorQuestion:
    """The question with one tensor degree and recomputation for all stages."""
    return replace(question, file=replace(question.file, uniform=True))


def _hysteresis(run: _Run) -> tuple[AcceleratorPlan | None, int]:
    """PHAZE's outer search: groups of chips of about one area from the largest down, until so many groups in a row bring no gain.

    Plans have one tensor degree and recomputation, as its dynamic program has.
    """
    question = _uniform(run.question)
    groups = np.floor(chip_area(question.chips) * 1e12 / _GROUP)
    best, answer, idle, visited = inf, None, 0, 0
    for group in np.unique(groups)[::-1]:
        members = question.chips.at(groups == group)
        pricing, before = bounds.Pricing(question, MOST_STATES, members), best
        for chip in range(len(members)):
            visited += 1
            bound, found = bounds.refined(pricing, chip, best)
            if bound < best:
                best, answer = bound, answer_of(pricing, chip, found)
        idle = 0 if best < before else idle + 1
        if idle == _PATIENCE or run.is_over:
            break
    return answer, visited


def reasons(pricing: bounds.Pricing) -> tuple[str, ...]:
    """Why there is no plan, with what is least in the way."""
    if not pricing.count:
        return ("no chip of the technology can be built within the limits of area and power (allow more, or smaller parts)",)
    found = list[str]()
    for row, network in enumerate(pricing.question.networks):
        layer, kept = pricing.tightest(row)
        if kept > (memory := pricing.memory(range(pricing.count))):
            beyond = bytes_beyond(kept, memory, "on a device of")
            found.append(f"{network.name}: {layer} alone keeps {beyond}, with the options that need least")
        elif pricing.question.file.time_limit is not None or pricing.bound(row, range(pricing.count)).value == inf:
            found.append(f"{network.name}: {_quickest(pricing, row)}")
    return tuple(found)


def _quickest(pricing: bounds.Pricing, row: int) -> str:
    """Whether the memory or the limit of the time is in the way, and by how much."""
    question = pricing.question
    if question.file.time_limit is None:
        return _crowded(pricing, row)
    free = replace(question, file=replace(question.file, objective="time", time_limit=None))
    run = _Run(free, Limits(), unwatched, monotonic(), bounds.Pricing(free, MOST_STATES))
    _searched(run)
    limit = question.file.time_limit
    if run.answer is None:
        return _crowded(pricing, row)
    return f"the quickest batch takes {run.value:.6g} s, {run.value / limit - 1.0:.3%} above {limit:.6g} s"


def _crowded(pricing: bounds.Pricing, row: int) -> str:
    """That stages need more memory, and how many devices or bytes suffice, where any do; of boxes of chips no bound says so."""
    file, network = pricing.question.file, pricing.question.networks[row]
    found = ["no stages keep the memory of every device, though each layer alone does"]
    if pricing.in_boxes:
        return found[0]
    most = len(network) * max(file.tensor) * max(file.interleave, default=1)
    if (devices := _fewest(pricing, row, max(most, file.devices), file.memory)) < inf:
        found.append(f"{devices:,.0f} devices suffice, there are {file.devices:,}")
    short, ample = file.memory, next((size for size in _LARGER * file.memory if _fewest(pricing, row, file.devices, size) < inf), inf)
    while 1.01 * short < ample < inf:
        middle = 0.5 * (short + ample)
        short, ample = (short, middle) if _fewest(pricing, row, file.devices, middle) < inf else (middle, ample)
    if ample < inf:
        found.append(f"{format_quantity(ample, 'bytes')} suffice, there are {format_quantity(file.memory, 'bytes')}")
    return "; ".join(found)


def _fewest(pricing: bounds.Pricing, row: int, devices: int, memory: float) -> float:
    """The fewest of so many devices with so much memory."""
    file = replace(pricing.question.file, objective="devices", time_limit=None, devices=devices, memory=memory)
    eased = bounds.Pricing(replace(pricing.question, file=file), MOST_STATES, pricing.chips)
    return eased.bound(row, range(eased.count)).value
