"""A chip with schedules and stages, its judge operator by operator, and the proof of a bound carried out anew."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, fsum, inf
from typing import Final

import numpy as np

from crossopt.crossflow.accelerator import Chips, chip_area
from crossopt.crossflow.arrays import Array
from crossopt.crossflow.stages import microbatches_in_flight
from crossopt.formulation.accelerator.bounds import Pricing, is_bounded
from crossopt.formulation.accelerator.schedule import MOST_STATES
from crossopt.instances.accelerator.networks import Layer
from crossopt.instances.accelerator.question import AcceleratorQuestion, PipelineSchedule, Recompute
from crossopt.instances.files.units import bytes_beyond, exact
from crossopt.solvers.answer import Progress, Result, Verdict, Watch
from crossopt.solvers.family import Proved
from crossopt.solvers.proofs import RecomputableBound, UnverifiedBound

BY_SETS: Final = "bounds of sets of chips, and schedules of single chips"
LEAST_WORK, NO_PLAN = "the chip with the least work", "no such plan keeps the limits"
"""Notes of baselines."""


_NO_CHIP = 1 << 31
"""No figure of a chip is as large."""
_FILLED: Final = 3
"""Times that an interleaved pipeline is filled, after which its passes repeat."""


@dataclass(frozen=True, slots=True)
class ChipAnswer:
    """A chip of the template."""

    tensor_cores: int
    vector_cores: int
    width: int
    depth: int
    buffer: int
    """MiB."""

    def columns(self) -> Chips:
        """The chip as a column of one; a ValueError where a figure is none of any chip."""
        figures = (self.tensor_cores, self.vector_cores, self.width, self.depth, self.buffer)
        if not all(0 <= figure < _NO_CHIP for figure in figures):
            raise ValueError("the chip is none of the question: a figure is below zero or beyond all chips")
        return Chips(*(np.array([figure], np.int64) for figure in figures))


@dataclass(frozen=True, slots=True)
class BuiltChip:
    """A chip of a technology: what is chosen of it, in SI units."""

    choices: dict[str, float]


@dataclass(frozen=True, slots=True)
class LayerSchedule:
    """A pass of a layer on the cores of the chip: operators on all cores, and starts, in the order of the pass."""

    layer: str
    tensor: int
    backward: bool
    on_all: tuple[bool, ...]
    starts: tuple[int, ...]
    """Cycles from the start of the pass."""


@dataclass(frozen=True, slots=True)
class StageAnswer:
    """Layers of a stage, its tensor degree, and whether activations are computed again."""

    layers: tuple[str, ...]
    tensor: int
    recompute: Recompute


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """The plan of a network: stages of a pipeline, pipelines, schedules on the cores, and whether each batch fills its pipeline anew."""

    network: str
    microbatch: int
    data: int
    stages: tuple[StageAnswer, ...]
    schedules: tuple[LayerSchedule, ...]
    pipeline: PipelineSchedule = "1f1b"
    interleave: int = 1
    """Stages that each device holds: with n devices in a pipeline those that are n apart."""


@dataclass(frozen=True, slots=True)
class AcceleratorPlan:
    """The chip, and a plan for each network."""

    chip: ChipAnswer | BuiltChip
    plans: tuple[NetworkPlan, ...]


@dataclass(frozen=True, slots=True)
class StageLoad:
    """Seconds of a stage for a microbatch, and bytes on each of its devices."""

    compute: float
    transfer: float
    """What of its transfers nothing hides."""
    total: float
    memory: float


@dataclass(frozen=True, slots=True)
class PassCycles:
    """Cycles of a pass of a layer, what it would take with each operator on all cores, and those of its memory traffic."""

    layer: str
    tensor: int
    backward: bool
    cycles: int
    one_by_one: int
    moving: int


@dataclass(frozen=True, slots=True)
class NetworkFigures:
    """Figures of the plan of a network."""

    seconds: float
    """Of a batch."""
    devices: int
    stages: tuple[StageLoad, ...]
    passes: tuple[PassCycles, ...]
    gradients: float
    """Seconds to sum gradients, in that of a batch."""


@dataclass(frozen=True, slots=True)
class AcceleratorFigures:
    """The area of the chip in square metres, seconds of a batch at the mean throughput, and figures by network."""

    area: float
    seconds: float
    networks: tuple[NetworkFigures, ...]


def judge(question: AcceleratorQuestion, answer: AcceleratorPlan) -> Verdict[AcceleratorFigures]:
    """The objective of a plan, with times at the mean throughput; a ValueError where the answer does not belong to the question."""
    area = _area(question, answer.chip)
    if [plan.network for plan in answer.plans] != [network.name for network in question.networks]:
        raise ValueError("a plan is needed for each network, in the order of the question")
    violations, figures = list[str](), list[NetworkFigures]()
    for row, plan in enumerate(answer.plans):
        figures.append(_NetworkJudge(question, row, plan, answer.chip).figures(violations))
    rates = [1.0 / figure.seconds if figure.seconds else inf for figure in figures]
    seconds = figures[0].seconds if len(figures) == 1 else len(figures) / fsum(rates)
    limit = question.file.time_limit
    if limit is not None and seconds > limit:
        violations.append(f"a batch takes {seconds!r} s, the limit is {limit!r} s")
    weight, devices = _weight(question, answer.chip), figures[0].devices
    value = {"time": seconds, "devices": float(devices), "area": area}.get(question.file.objective, weight * devices * seconds)
    return Verdict(value, tuple(violations), AcceleratorFigures(area, seconds, tuple(figures)))


def _weight(question: AcceleratorQuestion, chip: ChipAnswer | BuiltChip) -> float:
    """What the chip adds to the objective."""
    if isinstance(chip, ChipAnswer) or question.built is None:
        return float(question.weights(chip.columns())[0]) if isinstance(chip, ChipAnswer) else inf
    return float(question.weights(question.built.find(chip.choices))[0])


def _area(question: AcceleratorQuestion, chip: ChipAnswer | BuiltChip) -> float:
    """Square metres of the die; a ValueError where the chip is none of the question."""
    if isinstance(chip, BuiltChip):
        if question.built is None:
            raise ValueError("the question asks for a chip of the template")
        return float(np.asarray(question.built.find(chip.choices).hardware.die_area)[0])
    pairs = zip(question.chips.columns(), chip.columns().columns(), strict=True)
    if question.built is not None or not np.logical_and.reduce([own == other for own, other in pairs]).any():
        raise ValueError("the chip is none of the question, or breaks its limits of the area")
    return float(chip_area(chip.columns())[0])


def _float(seconds: Fraction) -> float:
    """The nearest float; infinite where there is none as large."""
    try:
        return float(seconds)
    except OverflowError:
        return inf


class _NetworkJudge:
    """The judge of the plan of one network."""

    def __init__(self, question: AcceleratorQuestion, row: int, plan: NetworkPlan, chip: ChipAnswer | BuiltChip) -> None:
        self.question, self.network, self.plan = question, question.networks[row], plan
        self.chip = chip if isinstance(chip, ChipAnswer) else None
        self.built, self.memory = dict[int, Array](), question.file.memory
        if isinstance(chip, BuiltChip) and question.built is not None:
            own, file = question.built.find(chip.choices), question.file
            self.built = {tensor: own.seconds(self.network, tensor, file.bandwidth)[:, :, 0] for tensor in file.tensor}
            self.memory = min(self.memory, float(own.memory[0]))
        self.prefix = f"{plan.network}: " if len(question.networks) > 1 else ""
        file = question.file
        if plan.microbatch not in file.microbatch or not 1 <= plan.data <= file.devices or not plan.stages:
            raise ValueError("microbatch or pipelines are none of the question")
        for stage in plan.stages:
            if stage.tensor not in file.tensor or stage.recompute not in ("none", "full"):
                raise ValueError(f"a stage has tensor degree {stage.tensor}, which is none of the question")
        turns = plan.interleave
        if plan.pipeline == "interleaved" and (turns not in file.interleave or len(plan.stages) % turns or len(plan.stages) < 2 * turns):
            raise ValueError(f"{len(plan.stages)} stages are not shared by devices with {turns} chunks each, as the question has them")
        if turns < 1 or (plan.pipeline != "interleaved" and turns != 1):
            raise ValueError(f"devices have {turns} chunks each in a pipeline that is not interleaved")
        self.groups = len(plan.stages) // turns

    def figures(self, violations: list[str]) -> NetworkFigures:
        """Figures of the plan; adds broken rules."""
        file, plan = self.question.file, self.plan
        stages = self._layers_of_stages()
        passes = self._passes()
        cycles = {(item.layer, item.tensor, item.backward): item.cycles for item in passes}
        timed = [self._load(number, layers, self._seconds(number, layers, cycles)) for number, layers in enumerate(stages)]
        loads, slowest = [load for load, _ in timed], max(seconds for _, seconds in timed)
        if plan.interleave > 1:
            loads = [replace(load, memory=self._played(number % self.groups, stages)) for number, load in enumerate(loads)]
        rounds = ceil(file.batch // plan.microbatch / plan.data) if plan.interleave == 1 else self._filled() * len(loads)
        rounds += 0 if plan.pipeline == "two-weights" else self.groups - 1
        parameters = [
            fsum(self._layer(layer).parameters.on_device(stage.tensor) for layer in layers)
            for stage, layers in zip(plan.stages, stages, strict=True)
        ]
        waited = parameters[0] if file.gradients == "first" else max(parameters)
        training = file.passes == "training"
        gradients = Fraction(4 * (plan.data - 1), plan.data) * Fraction(waited) / exact(file.bandwidth) if training else Fraction(0)
        devices = plan.data * sum(stage.tensor for stage in plan.stages[: self.groups])
        violations += [self.prefix + rule for rule in (*self._rules(devices), *self._memory_rules(loads))]
        return NetworkFigures(_float(slowest * rounds + gradients), devices, tuple(loads), passes, _float(gradients))

    def _layer(self, row: int) -> Layer:
        return self.network.kinds[self.network.kind_of[row]]

    def _layers_of_stages(self) -> list[list[int]]:
        """Layers of the stages by row; a ValueError unless each is in one stage, and none before what it needs."""
        rows = {name: row for row, name in enumerate(self.network.names)}
        unknown = [name for stage in self.plan.stages for name in stage.layers if name not in rows]
        if unknown:
            raise ValueError(f"there is no layer {unknown[0]!r}")
        found = [[rows[name] for name in stage.layers] for stage in self.plan.stages]
        stage_of = {row: number for number, layers in enumerate(found) for row in layers}
        if sum(map(len, found)) != len(rows) or len(stage_of) != len(rows) or not all(found):
            raise ValueError("each layer is in one stage, and each stage has one at the least")
        if any(stage_of[earlier] > stage_of[row] for row, before in enumerate(self.network.before) for earlier in before):
            raise ValueError("a layer is in a stage before one that it needs")
        return found

    def _passes(self) -> tuple[PassCycles, ...]:
        """Cycles of all passes; a ValueError for schedules that cannot run, that are missing, or that nothing needs."""
        stages = zip(self.plan.stages, self._layers_of_stages(), strict=True)
        kinds = {(self.network.kind_of[row], stage.tensor) for stage, rows in stages for row in rows}
        needed = {(*kind, backward) for kind in kinds for backward in self.question.directions}
        names = {layer.name: kind for kind, layer in enumerate(self.network.kinds)}
        found = dict[tuple[int, int, bool], PassCycles]()
        for schedule in self.plan.schedules:
            key = (names.get(schedule.layer, -1), schedule.tensor, schedule.backward)
            if key not in needed or key in found:
                raise ValueError(f"a schedule of {schedule.layer} at tensor degree {schedule.tensor} is needed by no stage, or twice")
            found[key] = self._cycles(key, schedule)
        if len(found) < len(needed) and self.chip is not None:
            raise ValueError("a layer has no schedule")
        return tuple(found.values())

    def _cycles(self, key: tuple[int, int, bool], schedule: LayerSchedule) -> PassCycles:
        """Cycles of a pass, all of whose operators run where and when the schedule says."""
        kind, tensor, backward = key
        layer = self.network.kinds[kind]
        if self.chip is None:
            raise ValueError("chips of a technology have no schedules")
        graph, chip = layer.pass_graph(backward), self.chip.columns()
        *cycles, moving = layer.cycles(backward, tensor, self.plan.microbatch, chip, self.question.rates)
        if not len(schedule.starts) == len(schedule.on_all) == len(layer.operators) or min(schedule.starts) < 0:
            raise ValueError(f"the schedule of {layer.name} has not as many starts as operators")
        if not np.isfinite(cycles[0]).all():
            raise ValueError(f"the chip has no core for an operator of {layer.name}")
        one, every = ([int(figure) for figure in side[:, 0]] for side in cycles)
        ends = [
            start + (every if on_all else one)[row]
            for row, (start, on_all) in enumerate(zip(schedule.starts, schedule.on_all, strict=True))
        ]
        for row, before in enumerate(graph.before):
            if any(ends[earlier] > schedule.starts[row] for earlier in before):
                raise ValueError(f"{graph.names[row]} of {layer.name} starts before what it needs has ended")
        for moment in {start for start, end in zip(schedule.starts, ends, strict=True) if end > start}:
            running = [row for row, end in enumerate(ends) if schedule.starts[row] <= moment < end]
            alone = len(running) == 1 or not any(schedule.on_all[row] for row in running)
            used = [sum(graph.uses[row][side] for row in running) for side in (0, 1)]
            if not alone or (len(running) > 1 and (used[0] > self.chip.tensor_cores or used[1] > self.chip.vector_cores)):
                raise ValueError(f"operators of {layer.name} run beside each other on more cores than there are")
        return PassCycles(layer.name, tensor, backward, max(*ends, int(moving[0])), sum(every), int(moving[0]))

    def _seconds(self, number: int, layers: list[int], cycles: dict[tuple[str, int, bool], int]) -> list[Fraction]:
        """Seconds of the passes of a stage, exactly, so that a batch of just the limit keeps it."""
        found, tensor, clock = list[Fraction](), self.plan.stages[number].tensor, exact(self.question.file.clock)
        for backward in self.question.directions:
            if self.chip is None:
                found.append(
                    sum((Fraction(float(self.built[tensor][self.network.kind_of[row], int(backward)])) for row in layers), Fraction(0))
                )
            else:
                found.append(sum(cycles[self._layer(row).name, tensor, backward] for row in layers) / clock)
        return found

    def _load(self, number: int, layers: list[int], passes: list[Fraction]) -> tuple[StageLoad, Fraction]:
        """What a stage does and keeps, and its seconds exactly."""
        file, plan, stage = self.question.file, self.plan, self.plan.stages[number]
        earlier = {self.network.names.index(name) for item in plan.stages[:number] for name in item.layers}
        moved = (Fraction(plan.microbatch * self._passing(inside)) for inside in (earlier, earlier | set(layers)))
        came, goes = (size / exact(file.bandwidth) for size in moved)
        waiting = len(plan.stages) - number - 1
        again = stage.recompute == "full" and waiting > 0 and file.passes == "training"
        compute = sum(passes, passes[0] if again else Fraction(0))
        transfer = came + (max(goes - passes[0], Fraction(0)) if again else goes)
        parameters, activations, stash = self._kept(number, layers)
        training = file.passes == "training"
        memory = parameters + activations + waiting * stash if training else parameters + activations
        return StageLoad(_float(compute), _float(transfer), _float(compute + transfer), memory), compute + transfer

    def _kept(self, number: int, layers: list[int]) -> tuple[float, float, float]:
        """Bytes of a stage on a device: parameters with their copies, activations, and a microbatch that waits for its backward pass."""
        file, plan, tensor = self.question.file, self.plan, self.plan.stages[number].tensor
        copies = file.copies + (plan.pipeline == "two-weights") if file.passes == "training" else 1
        parameters = copies * fsum(self._layer(row).parameters.on_device(tensor) for row in layers)
        activations = fsum(self._layer(row).activations.on_device(tensor, plan.microbatch) for row in layers)
        earlier = {self.network.names.index(name) for item in plan.stages[:number] for name in item.layers}
        again = plan.stages[number].recompute == "full"
        return parameters, activations, plan.microbatch * self._passing(earlier) if again else activations

    def _filled(self) -> int:
        """Times that all groups of devices are filled with microbatches."""
        return -(-(self.question.file.batch // self.plan.microbatch) // (self.plan.data * self.groups))

    def _played(self, group: int, stages: list[list[int]]) -> float:
        """Most bytes on a device of a group in any pass of an interleaved pipeline, pass by pass until they repeat."""
        groups, turns = self.groups, self.plan.interleave
        kept = [self._kept(number, stages[number]) for number in range(group, len(stages), groups)]
        filled = min(self._filled(), _FILLED)
        order = [chunk for _ in range(filled) for chunk in range(turns) for _ in range(groups)]
        ahead = round(float(microbatches_in_flight(group, groups, turns, filled * groups)) * turns) - 1
        flight, most = [0] * turns, 0.0
        for step in range(len(order) + ahead):
            runs = list[tuple[int, int]]()
            runs += [(order[step], 1)] if step < len(order) else []
            runs += [(turns - 1 - order[step - ahead], -1)] if step >= ahead else []
            for chunk, change in runs:
                flight[chunk] += max(change, 0)
                waiting = [(flight[index] - (index == chunk)) * stash for index, (_, _, stash) in enumerate(kept)]
                most = max(most, fsum((*(stored for stored, _, _ in kept), *waiting, kept[chunk][1])))
                flight[chunk] += min(change, 0)
        return most

    def _passing(self, inside: set[int]) -> float:
        """Bytes of a sample that leave a set of layers."""
        leaving = {item for row, before in enumerate(self.network.before) if row not in inside for item in before if item in inside}
        return fsum(float(ceil(self._layer(item).output)) for item in leaving)

    def _rules(self, devices: int) -> list[str]:
        file, plan = self.question.file, self.plan
        microbatches = file.batch // plan.microbatch
        kinds = {(stage.tensor, stage.recompute) for stage in plan.stages}
        rules = (
            (devices <= file.devices, f"{devices:,} devices are used, there are {file.devices:,}"),
            (plan.pipeline in file.pipeline, "the pipeline runs as no option of the question says"),
            (
                plan.interleave == 1 or len({stage.tensor for stage in plan.stages}) == 1,
                "the stages of an interleaved pipeline differ in tensor degree",
            ),
            (plan.data <= microbatches, f"{plan.data:,} pipelines share {microbatches:,} microbatches"),
            (all(stage.recompute in file.recompute for stage in plan.stages), "a stage recomputes as no option of the question says"),
            (not file.uniform or len(kinds) == 1, "the stages differ in tensor degree or recomputation"),
            (
                not file.divisible or (file.devices % plan.data == 0 and microbatches % plan.data == 0),
                f"{plan.data:,} pipelines do not divide {file.devices:,} devices and {microbatches:,} microbatches",
            ),
        )
        return [sentence for holds, sentence in rules if not holds]

    def _memory_rules(self, loads: list[StageLoad]) -> list[str]:
        most, limit = max(load.memory for load in loads), self.memory
        return [f"a stage keeps {bytes_beyond(most, limit, 'on a device of')}"] if most > limit else []


def prove(question: AcceleratorQuestion, saved: Result[AcceleratorPlan, AcceleratorFigures], watch: Watch) -> Proved:
    """Bound sets of chips anew, and schedule layers of single chips where that is needed."""
    if isinstance(saved.proof, UnverifiedBound):
        return Proved((f"the bound is reported by {saved.proved_by}, not proved again",), unverified=True)
    if not isinstance(saved.proof, RecomputableBound):
        return Proved(refused=("proof: a bound of chips is carried out anew, or it is none",))
    watch(Progress("the proof", None))
    value = inf if saved.bound is None else float(saved.bound)
    holds, sets = is_bounded(Pricing(question, MOST_STATES), value)
    if not holds:
        claimed = "that nothing is possible" if value == inf else f"that none is below {value!r}"
        return Proved(refused=(f"bound: some chip may have a plan, the result says {claimed}",))
    return Proved((f"the bounds of {sets:,} sets of chips were computed again",), by=BY_SETS)
