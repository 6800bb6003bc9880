"""Bounds of all chips of a question: what sets of chips need at the least, and the best plan of one chip, with schedules where they count.

A chip with no fewer cores and no smaller arrays runs every schedule of another one as fast. So chips that another one of the question
surpasses are left out. A set of chips is bounded by the least cycles that any of them needs for each layer: the best stages with these
times are no slower than those of any chip of the set. Schedules are searched for single chips alone, and for layers that the best stages
use.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final

import numpy as np

from crossopt.crossflow.accelerator import Chips, chip_area
from crossopt.crossflow.arrays import Array, Ints
from crossopt.formulation.accelerator.interleaved import Chunks, best_interleaved
from crossopt.formulation.accelerator.schedule import Schedule, all_on_all, best_schedule, least_cycles
from crossopt.formulation.accelerator.stages import Cuts, Measure, Option, Pipelines, StagePlan, best_stages, cuts_of
from crossopt.instances.accelerator.question import AcceleratorQuestion, Objective, PipelineSchedule

_MEASURES: Final[Mapping[Objective, Measure]] = {
    "time": "time",
    "area": "feasible",
    "devices": "devices",
    "energy": "device_seconds",
    "cost": "device_seconds",
}
MOST_ENUMERATED: Final = 50_000
"""Chips of a technology that are priced one by one; of more, boxes are."""
_SLICES, _SAMPLES = 64, 8
"""Boxes into which one is cut at once, and options of each part of the chip by which it is decided along which part."""
_LOWERED = 1.0 - 2.0**-50
_NO_PLAN = StagePlan(inf)
_UNITS = 2.0**50
"""Of loads, in all layers together."""


NO_CHIPS = Chips(*(np.zeros(0, np.int64) for _ in range(5)))


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """A network, samples of a microbatch, and a tensor degree, by which cycles differ."""

    network: int
    microbatch: int
    tensor: int


@dataclass(frozen=True, slots=True)
class NetworkBest:
    """The best stages of a network on a chip, or with the least cycles of several."""

    value: float
    microbatch: int = 0
    plan: StagePlan = _NO_PLAN


@dataclass(slots=True)
class Pricing:
    """Cycles and stages of a question, computed once."""

    question: AcceleratorQuestion
    most_states: int
    chips: Chips = field(default_factory=lambda: NO_CHIPS)
    """By default those that no other surpasses, the smallest of each; none for chips of a technology."""
    count: int = 0
    """Number of chips."""
    weights: Array = field(default_factory=lambda: np.zeros(0))
    """What each chip adds to the objective."""
    boxes: list[tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)
    """Lowest and highest places of boxes of chips of a technology, each of which counts as a chip."""
    memories: Array = field(default_factory=lambda: np.zeros(0))
    """Bytes beside each of them."""
    schedules: dict[tuple[int, Setting, int, bool], Schedule] = field(default_factory=dict)
    """By chip, setting, kind of layer and pass."""
    _least: dict[Setting, Array] = field(default_factory=dict)
    _cuts: dict[int, Cuts] = field(default_factory=dict)
    _memory: dict[tuple[Setting, bool, float, int], tuple[Ints, Array]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        built = self.question.built
        if built is not None:
            root = np.zeros((1, len(built.sizes)), np.int64), np.array([built.sizes], np.int64).reshape(1, -1) - 1
            self.add(*(root if self.in_boxes else (built.every(MOST_ENUMERATED),) * 2))
            return
        self.chips = self.chips if len(self.chips) else surpassing(self.question)
        self.count, self.weights = len(self.chips), self.question.weights(self.chips)

    @property
    def in_boxes(self) -> bool:
        """Whether there are too many chips of a technology to price each."""
        return self.question.built is not None and len(self.question.built) > MOST_ENUMERATED

    def add(self, low: Ints, high: Ints) -> Ints:
        """Number boxes of chips of a technology; the rows of those that may hold a chip within the limits, which are numbered on."""
        built, file = self.question.built, self.question.file
        if built is None:
            raise ValueError("chips of the template have no boxes")
        rated = built.rated(low, high)
        rows = np.flatnonzero(rated.fits)
        own = rated.at(rows)
        self.boxes += [(tuple(low[row].tolist()), tuple(high[row].tolist())) for row in rows]
        self.weights = _appended(self.weights, self.question.weights(own), self.count)
        self.memories = _appended(self.memories, np.minimum(own.memory, file.memory), self.count)
        for setting in (item for row in range(len(self.question.networks)) for item in self.settings(row, file.microbatch[0])):
            seconds = own.seconds(self.question.networks[setting.network], setting.tensor, file.bandwidth)
            cycles = seconds[:, : len(self.question.directions)] * file.clock
            self._least[setting] = _appended(self._least.get(setting), cycles, self.count)
        self.count += len(rows)
        return rows

    def keep(self, first: int, rows: Ints) -> None:
        """Forget boxes from a number on, except some, which are numbered anew."""
        self.boxes[first:] = [self.boxes[first + row] for row in rows]
        end = first + len(rows)
        for table in (self.weights, self.memories, *self._least.values()):
            table[..., first:end] = table[..., first + rows]
        self.count = end

    def is_chip(self, members: Sequence[int]) -> bool:
        """Whether a set is of one chip."""
        return len(members) == 1 and (not self.boxes or self.boxes[members[0]][0] == self.boxes[members[0]][1])

    def settings(self, network: int, microbatch: int) -> list[Setting]:
        return [Setting(network, microbatch, tensor) for tensor in self.question.file.tensor]

    def cycles(self, chips: Chips, setting: Setting, kind: int, backward: bool) -> tuple[Array, Array, Array]:
        """Cycles of all operators of a layer on one core and on all, by operator and chip, and of its memory traffic by chip."""
        layer = self.question.networks[setting.network].kinds[kind]
        return layer.cycles(backward, setting.tensor, setting.microbatch, chips, self.question.rates)

    def least(self, setting: Setting) -> Array:
        """Cycles that no schedule is below, by kind of layer, pass and chip."""
        if setting not in self._least:
            rows = []
            for kind, layer in enumerate(self.question.networks[setting.network].kinds):
                for backward in self.question.directions:
                    one, every, moving = self.cycles(self.chips, setting, kind, backward)
                    graph = layer.pass_graph(backward)
                    rows.append(np.maximum(least_cycles(graph, one, every, self.chips.tensor_cores, self.chips.vector_cores), moving))
            self._least[setting] = np.array(rows).reshape(-1, len(self.question.directions), len(self.chips))
        return self._least[setting][:, :, : self.count]

    def schedule(self, chip: int, setting: Setting, kind: int, backward: bool) -> Schedule:
        """The shortest schedule of a layer on a chip."""
        key = (chip, setting, kind, backward)
        if key not in self.schedules:
            own = self.chips.at(np.array([chip]))
            one, every, moving = self.cycles(own, setting, kind, backward)
            graph = self.question.networks[setting.network].kinds[kind].pass_graph(backward)
            cores = int(own.tensor_cores[0]), int(own.vector_cores[0])
            on_one, on_all = ([int(figure) for figure in column[:, 0]] for column in (one, every))
            found, busy = best_schedule(graph, on_one, on_all, cores, self.most_states), int(moving[0])
            self.schedules[key] = replace(found, least=max(found.least, busy), cycles=max(found.cycles, busy))
        return self.schedules[key]

    def all_on_all(self, chip: int) -> None:
        """Note the schedules of a chip that run one operator after another, each on all cores."""
        for network, graph in enumerate(self.question.networks):
            for setting in (item for size in self.question.file.microbatch for item in self.settings(network, size)):
                for kind, layer in enumerate(graph.kinds):
                    for backward in self.question.directions:
                        every = self.cycles(self.chips.at(np.array([chip])), setting, kind, backward)[1]
                        found = all_on_all(layer.pass_graph(backward), [int(figure) for figure in every[:, 0]])
                        self.schedules[chip, setting, kind, backward] = found

    def bound(self, network: int, chips: Sequence[int], cutoff: float = inf) -> NetworkBest:
        """The best stages of a network with the least cycles of any of these chips."""
        best = NetworkBest(cutoff)
        for microbatch in self.question.file.microbatch:
            times = {setting.tensor: self._times(setting, chips) for setting in self.settings(network, microbatch)}
            plan = self.stages(network, microbatch, times, best.value, self.memory(chips))
            if plan.value < best.value:
                best = NetworkBest(plan.value, microbatch, plan)
        return best

    def memory(self, chips: Sequence[int]) -> float:
        """Bytes beside the chip that has most of them."""
        return float(self.memories[list(chips)].max()) if self.boxes else self.question.file.memory

    def _times(self, setting: Setting, chips: Sequence[int]) -> Array:
        """The least cycles of any of the chips, by kind of layer and pass; of single chips with schedules, those of the schedules."""
        found = self.least(setting)[:, :, list(chips)].min(axis=2)
        if len(chips) == 1:
            for kind in range(found.shape[0]):
                for column, backward in enumerate(self.question.directions):
                    known = self.schedules.get((chips[0], setting, kind, backward))
                    found[kind, column] = found[kind, column] if known is None else max(float(known.least), found[kind, column])
        return np.asarray(found)

    def stages(self, network: int, microbatch: int, times: dict[int, Array], cutoff: float, memory: float) -> StagePlan:
        """The best stages with these cycles by tensor degree, below a cutoff."""
        cuts, best = self.cuts(network), StagePlan(cutoff)
        if not any(np.isfinite(table).all() for table in times.values()):
            return best
        unit = self.unit(network, microbatch, times, _UNITS)
        for schedule in self.question.file.pipeline:
            pipelines = self.pipelines(microbatch, unit, schedule)
            if schedule == "interleaved":
                chunks = list(self._chunks(network, microbatch, times, unit))
                best = best_interleaved(cuts, chunks, pipelines, (memory, self.question.file.interleave), best)
                continue
            for options in self.options(network, microbatch, times, unit, (memory, pipelines.flushes)):
                found = best_stages(cuts, options, pipelines, best.value) if options else best
                best = found if found.value < best.value else best
        return best

    def unit(self, network: int, microbatch: int, times: dict[int, Array], units: float) -> float:
        """Seconds of a unit, a power of two, of which no stage takes more than so many."""
        file, cuts = self.question.file, self.cuts(network)
        totals = [float((cuts.layers[-1] @ table).sum()) for table in times.values() if np.isfinite(table).all()]
        seconds = max(totals) / file.clock + microbatch * float(cuts.entering.sum()) / file.bandwidth
        return float(2.0 ** np.ceil(np.log2(max(seconds, 1e-30) * 8.0 / units)))

    def pipelines(self, microbatch: int, unit: float, schedule: PipelineSchedule = "1f1b") -> Pipelines:
        """What all stages share."""
        file = self.question.file
        return Pipelines(
            file.devices,
            file.batch // microbatch,
            self.synced,
            unit,
            file.divisible,
            schedule != "two-weights",
            file.gradients == "every",
            _MEASURES[file.objective],
            inf if file.time_limit is None else file.time_limit,
        )

    def options(
        self, network: int, microbatch: int, times: dict[int, Array], unit: float, memory: tuple[float, bool]
    ) -> Iterator[list[Option]]:
        """What stages cost in a memory, of pipelines with or without flushes, for each group of options that stages may have together."""
        for group in self.groups():
            yield [
                self._option(Setting(network, microbatch, tensor), recompute, only_last, times[tensor], (unit, *memory))
                for tensor, recompute, only_last in group
                if np.isfinite(times[tensor]).all()
            ]

    def _chunks(self, network: int, microbatch: int, times: dict[int, Array], unit: float) -> Iterator[Chunks]:
        """What chunks of interleaved pipelines cost, for each group of options that they may have together; one degree in each."""
        for group in self.groups():
            for tensor in (item for item in self.question.file.tensor if np.isfinite(times[item]).all()):
                setting = Setting(network, microbatch, tensor)
                own = [(again, last) for degree, again, last in group if degree == tensor]
                kept = [self._kept(setting, again) for again, _ in own]
                if own:
                    yield Chunks(
                        tensor,
                        tuple(again for again, _ in own),
                        tuple(last for _, last in own),
                        np.array([self._loads(setting, again, times[tensor], unit) for again, _ in own]),
                        np.array([self.question.file.copies * item[0] for item in kept]),
                        np.array([item[1] for item in kept]),
                        np.array([item[2] for item in kept]),
                        kept[0][0],
                    )

    @property
    def synced(self) -> float:
        """Seconds to sum the gradients of a byte of parameters among infinitely many pipelines."""
        return 4.0 / self.question.file.bandwidth if self.question.file.passes == "training" else 0.0

    def groups(self) -> Iterator[list[tuple[int, bool, bool]]]:
        """Tensor degrees and recomputation that stages may have together, and whether only the last stage may."""
        file = self.question.file
        again = ["none"] if file.passes == "forward" else [item for item in ("none", "full") if item in file.recompute]
        every = [(tensor, item) for tensor in file.tensor for item in again]
        for group in [[item] for item in every] if file.uniform else [every]:
            names = {item for _, item in group}
            found = [(tensor, item == "full", False) for tensor, item in group]
            found += [(tensor, False, True) for tensor, _ in group] if "none" not in names else []
            yield found

    def cuts(self, network: int) -> Cuts:
        """Places to cut a network."""
        if network not in self._cuts:
            ideals, graph = self.question.ideals[network], self.question.networks[network]
            passing = np.array(ideals.passing(graph))
            self._cuts[network] = cuts_of(ideals.kinds(graph), passing, ideals.within)
        return self._cuts[network]

    def _option(self, setting: Setting, recompute: bool, only_last: bool, times: Array, scale: tuple[float, float, bool]) -> Option:
        """What stages cost at one tensor degree and recomputation, in a unit of time, within a memory, with or without flushes."""
        unit, memory, flushes = scale
        loads = self._loads(setting, recompute, times, unit)
        most, parameters = self._stored(setting, recompute, memory, self.question.file.copies + (not flushes))
        return Option(setting.tensor, recompute, loads, 2 if recompute else 1, np.minimum(most, 1) if only_last else most, parameters)

    def _loads(self, setting: Setting, recompute: bool, times: Array, unit: float) -> Array:
        """Whole units of time of a stage for a microbatch, by pair of ideals. Sums of cycles are exact, and rounded down once."""
        file, cuts = self.question.file, self.cuts(setting.network)
        grain = 2.0 ** np.ceil(np.log2(max(float((cuts.layers[-1] @ times).max()), 1.0))) / _UNITS
        cycles = np.floor(times / grain) * grain
        moved = np.floor(setting.microbatch * cuts.entering / file.bandwidth / unit * _LOWERED)
        came, goes = moved[cuts.first], moved[cuts.last]
        passes = [np.floor(cuts.between(item) / file.clock / unit * _LOWERED) for item in cycles.T]
        hidden = np.maximum(passes[0], goes) if recompute else goes
        return np.asarray(came + passes[0] + hidden + (passes[1] if len(passes) > 1 else 0.0), np.float64)

    def _kept(self, setting: Setting, recompute: bool) -> tuple[Array, Array, Array]:
        """Bytes of parameters, activations, and of a microbatch that waits, of a device, by pair of ideals."""
        cuts, kinds = self.cuts(setting.network), self.question.networks[setting.network].kinds
        parameters = cuts.between(np.array([layer.parameters.on_device(setting.tensor) for layer in kinds]))
        activations = cuts.between(np.array([layer.activations.on_device(setting.tensor, setting.microbatch) for layer in kinds]))
        return parameters, activations, setting.microbatch * cuts.entering[cuts.first] if recompute else activations

    def _stored(self, setting: Setting, recompute: bool, memory: float, copies: int) -> tuple[Ints, Array]:
        """How many stages the memory of a stage allows from it to the end, and parameters of a device, by pair of ideals."""
        key = (setting, recompute, memory, copies)
        if key not in self._memory:
            file, (parameters, activations, stash) = self.question.file, self._kept(setting, recompute)
            if file.passes == "forward":
                left, stash = memory - parameters - activations, np.zeros(len(activations))
            else:
                left = memory - copies * parameters - activations
            most = np.where(stash > 0.0, np.floor(np.maximum(left, 0.0) / np.maximum(stash, 1.0)) + 1.0, float(file.devices))
            self._memory[key] = np.where(left < 0.0, 0.0, np.minimum(most, file.devices)).astype(np.int64), parameters
        return self._memory[key]

    def tightest(self, network: int) -> tuple[str, float]:
        """The layer that keeps most on a device with the options that need least, and its bytes."""
        file, graph = self.question.file, self.question.networks[network]
        copies = file.copies + (file.pipeline == ("two-weights",)) if file.passes == "training" else 1
        kept = [
            min(
                copies * layer.parameters.on_device(tensor) + layer.activations.on_device(tensor, size)
                for tensor in file.tensor
                for size in file.microbatch
            )
            for layer in graph.kinds
        ]
        worst = max(range(len(kept)), key=lambda row: kept[row])
        return graph.names[graph.kind_of.index(worst)], kept[worst]


def surpassing(question: AcceleratorQuestion) -> Chips:
    """Chips without those that another one matches or exceeds in cores, sides and, where it counts, buffer; of equal ones the smallest.

    Where larger chips add more to the objective, only equal ones are left out.
    """
    chips = question.chips
    compared = 5 if question.file.memory_bandwidth is not None else 4
    order = np.argsort(chip_area(chips), kind="stable")
    table = np.stack([column[order] for column in chips.columns()[:compared]], axis=1)
    _, first = np.unique(table, axis=0, return_index=True)
    rows = order[np.sort(first)]
    table = np.stack([column[rows] for column in chips.columns()[:compared]], axis=1)
    if question.file.objective not in ("time", "devices"):
        return chips.at(np.sort(rows))
    by_size = np.argsort(-np.log2(np.maximum(table, 1)).sum(axis=1), kind="stable")
    kept = list[int]()
    for row in by_size:
        if not kept or not (table[kept] >= table[row]).all(axis=1).any():
            kept.append(int(row))
    return chips.at(rows[np.sort(np.array(kept))])


def mean_time(values: Sequence[float]) -> float:
    """Seconds of a batch at the mean throughput of several networks."""
    if len(values) == 1:
        return values[0]
    if inf in values:
        return inf
    return len(values) / sum(1.0 / value for value in values) if all(values) else 0.0


def set_bound(pricing: Pricing, chips: Sequence[int], cutoff: float) -> tuple[float, tuple[NetworkBest, ...]]:
    """A value below which no chip of a set is, and the best stages with the least cycles of all; at most the cutoff."""
    weight, several = float(pricing.weights[list(chips)].min()), len(pricing.question.networks) > 1
    most = inf if several else cutoff / weight
    found = tuple(pricing.bound(network, chips, most) for network in range(len(pricing.question.networks)))
    if not several and not found[0].plan.stages:
        return cutoff, found
    return mean_time([item.value for item in found]) * weight, found


def refined(pricing: Pricing, chip: int, cutoff: float) -> tuple[float, tuple[NetworkBest, ...]]:
    """The bound of a chip by stages whose layers all have schedules, or one that is not below the cutoff."""
    while True:
        bound, found = set_bound(pricing, (chip,), cutoff)
        missing = [] if bound >= cutoff else list(_missing(pricing, chip, found))
        for key in missing:
            pricing.schedule(*key)
        if not missing:
            return bound, found


def _appended(known: Array | None, new: Array, count: int) -> Array:
    """A table with more columns from a number on, in one that has room for more."""
    end = count + new.shape[-1]
    if known is None or known.shape[-1] < end:
        grown = np.zeros((*new.shape[:-1], max(2 * end, 64)))
        if known is not None:
            grown[..., :count] = known[..., :count]
        known = grown
    known[..., count:end] = new
    return known


def _missing(pricing: Pricing, chip: int, found: Sequence[NetworkBest]) -> Iterator[tuple[int, Setting, int, bool]]:
    """Schedules that the stages of plans need and that are not known."""
    if pricing.question.built is not None:
        return
    for network, best in enumerate(found):
        for setting in sorted({Setting(network, best.microbatch, stage.tensor) for stage in best.plan.stages}):
            for kind in range(len(pricing.question.networks[network].kinds)):
                for backward in pricing.question.directions:
                    if (chip, setting, kind, backward) not in pricing.schedules:
                        yield chip, setting, kind, backward


def parts_of(pricing: Pricing, row: int, cutoff: float) -> list[tuple[float, int]]:
    """A box of chips of a technology cut into slices along a part of the chip: those that may hold a chip below a cutoff, with bounds by
    their work. The part is that which raises the bounds most where it is a single option."""
    low, high = (np.array(side, np.int64) for side in pricing.boxes[row])
    first, sides = pricing.count, np.flatnonzero(low < high).tolist()
    if len(sides) > 1:
        samples = [np.unique(np.linspace(low[side], high[side], _SAMPLES).astype(np.int64)) for side in sides]
        found = [_sliced(pricing, (low, high), side, (own, own))[0] for side, own in zip(sides, samples, strict=True)]
        most = min(cutoff, max(float(own[own < inf].max(initial=0.0)) for own in found))
        raised = [(float(np.minimum(own.min(), most)), float(np.minimum(own, most).mean())) for own in found]
        sides = [max(zip(raised, (high - low)[sides].tolist(), sides, strict=True))[2]]
        pricing.keep(first, np.zeros(0, np.int64))
    ends = np.unique(np.linspace(low[sides[0]], high[sides[0]] + 1, _SLICES + 1).astype(np.int64))
    bounds = _sliced(pricing, (low, high), sides[0], (ends[:-1], ends[1:] - 1))[1]
    kept = np.flatnonzero(bounds < cutoff)
    pricing.keep(first, kept)
    return [(float(bound), first + number) for number, bound in enumerate(bounds[kept])]


def _sliced(pricing: Pricing, box: tuple[Ints, Ints], side: int, ends: tuple[Ints, Ints]) -> tuple[Array, Array]:
    """Bounds of a box between ends of one side by their work: infinite where no chip is within the limits, and of the others alone."""
    found, first = np.full(len(ends[0]), inf), pricing.count
    lows, highs = (np.where(np.arange(len(own)) == side, end[:, None], own) for own, end in zip(box, ends, strict=True))
    rows = pricing.add(lows, highs)
    own = value_bounds(pricing, first)
    found[rows] = own
    return found, own


def gains(pricing: Pricing, cutoff: float) -> bool:
    """Whether stages bound the box of all chips more tightly than its work does."""
    return set_bound(pricing, (0,), cutoff)[0] > 1.005 * float(value_bounds(pricing)[0])


def halves(pricing: Pricing, members: tuple[int, ...]) -> list[tuple[int, ...]]:
    """A set of chips cut in two where it is longest, on a scale of powers of two."""
    features = _features(pricing, members)
    longest = features[int(np.ptp(features, axis=1).argmax())]
    order = np.argsort(longest, kind="stable")
    middle = len(members) // 2
    return [tuple(members[row] for row in order[:middle]), tuple(members[row] for row in order[middle:])]


def _features(pricing: Pricing, members: tuple[int, ...]) -> Array:
    """Figures in which chips differ: cores and sides, area or price; or seconds of all layers and memory."""
    chips, rows = pricing.chips, list(members)
    if pricing.question.built is not None:
        settings = [item for row in range(len(pricing.question.networks)) for item in pricing.settings(row, 1)]
        tables = [pricing.least(setting)[:, :, rows].reshape(-1, len(rows)) for setting in settings]
        others = [pricing.memories[rows][None, :], pricing.weights[rows][None, :]]
        return np.asarray(np.log2(np.maximum(np.concatenate([*tables, *others]), 1e-30)))
    tensor, vector, width, depth, buffer = (np.log2(np.maximum(column[list(members)], 0.5)) for column in chips.columns())
    units = [tensor + width + depth, vector + width, *([buffer] if pricing.question.file.memory_bandwidth is not None else [])]
    own = [*units, *([] if np.ptp(pricing.weights) and np.ptp(units) else [tensor, vector, width, depth])]
    return np.stack([*own, np.log2(pricing.weights[rows])])


def screened(pricing: Pricing, value: float) -> tuple[int, ...]:
    """Chips that the work of all devices together does not exclude below a value; the box of all, for chips of a technology."""
    if pricing.in_boxes:
        return (0,) if pricing.count else ()
    return tuple(np.flatnonzero(value_bounds(pricing) < value).tolist())


def value_bounds(pricing: Pricing, first: int = 0) -> Array:
    """Values below which no plan of a chip is, by the work of all devices together; infinite where a batch takes too long."""
    file, (seconds, work) = pricing.question.file, work_bounds(pricing, first)
    limit = inf if file.time_limit is None else file.time_limit
    least: dict[Measure, Array] = {
        "time": seconds,
        "device_seconds": work,
        "devices": work / limit,
        "feasible": np.full(pricing.count - first, 1.0 - 1e-9),
    }
    return np.where(seconds <= limit, pricing.weights[first : pricing.count] * least[_MEASURES[file.objective]], inf)


def work_bounds(pricing: Pricing, first: int = 0) -> tuple[Array, Array]:
    """Seconds of a batch, and device-seconds, below which no plan of a chip is, by the work of a batch; of the chips from a number on.

    The slowest stage takes at least the mean of all devices of its pipeline, each stage by its tensor degree; none has more devices
    than the largest degree. A pipeline of one stage sums the gradients of all parameters; S stages take S - 1 rounds more, unless they
    stay full, and with v chunks of each device (S - 1) / v. Of two stages and more, those are best that take as many devices as there
    are, or just fewer.
    """
    file, found = pricing.question.file, []
    turns = max(file.interleave) if "interleaved" in file.pipeline else 1
    for row, network in enumerate(pricing.question.networks):
        counts = np.bincount(np.array(network.kind_of), minlength=len(network.kinds)).astype(np.float64)
        stored = sum(network.kinds[kind].parameters.on_device(max(file.tensor)) for kind in network.kind_of)
        least = np.full((2, pricing.count - first), inf)
        for size in file.microbatch:
            microbatches = file.batch // size
            work = [item.tensor * pricing.least(item)[:, :, first:].sum(axis=1) for item in pricing.settings(row, size)]
            total = counts @ np.min(work, axis=0) / file.clock
            for data in pricing.pipelines(size, 1.0).replicas().tolist():
                rounds, devices, degree = -(-microbatches // data), file.devices // data, max(file.tensor)
                for stages in {1, max(devices // degree, 2), max(-(-devices // degree), 2)}:
                    used = min(stages, len(network), devices)
                    more = (used - 1) / turns if "two-weights" not in file.pipeline else 0.0
                    summed = pricing.synced * stored * (data - 1) / data if used == 1 else 0.0
                    least[0] = np.minimum(least[0], total / min(devices, used * degree) * (rounds + more) + summed)
            least[1] = np.minimum(least[1], total * microbatches)
        found.append(least * (1.0 - 1e-12))
    means = np.array([mean_time([float(own[0, chip]) for own in found]) for chip in range(pricing.count - first)])
    return means, found[0][1]


def is_bounded(pricing: Pricing, value: float) -> tuple[bool, int]:
    """Whether no chip has a plan below a value, and how many sets of chips it took; sets that are not bounded are split."""
    left, sets = [screened(pricing, value)], 0
    coarse = pricing.in_boxes and pricing.count > 0 and not gains(pricing, value)
    while left:
        members = left.pop()
        if not members:
            continue
        sets += 1
        if not (coarse and not pricing.is_chip(members)) and set_bound(pricing, members, value)[0] >= value:
            continue
        if not pricing.is_chip(members):
            boxes = [(row,) for _, row in parts_of(pricing, members[0], value)] if pricing.in_boxes else []
            left += boxes if pricing.in_boxes else halves(pricing, members)
        elif refined(pricing, members[0], value)[0] < value:
            return False, sets
    return True, sets
