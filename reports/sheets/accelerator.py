"""The sheet of a chip with schedules and stages: parts of the die, schedules on cores, stages of every network, and rules beside them."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from math import inf, sqrt
from typing import Any, Final, TypeAlias

import numpy as np

from crossopt.crossflow.accelerator import area_parts, chip_area
from crossopt.crossflow.arrays import Ints
from crossopt.formulation.accelerator.bounds import Pricing, Setting
from crossopt.formulation.accelerator.schedule import MOST_STATES
from crossopt.instances.accelerator.built import BuiltChips, Rated
from crossopt.instances.accelerator.networks import Layer, Network
from crossopt.instances.accelerator.question import AcceleratorQuestion, ChipsSection, chip_count, designs_of, size_of
from crossopt.instances.files.units import format_quantity, rounded_quantity
from crossopt.reports.drawing.axes import Segment, Track
from crossopt.reports.drawing.bars import Part
from crossopt.reports.drawing.floorplan import Floor, Plan, floorplan
from crossopt.reports.drawing.graph import MOST, Graph, drawn
from crossopt.reports.sheets.amounts import several, time_of
from crossopt.reports.sheets.sheet import (
    Column,
    Picture,
    Section,
    Sheet,
    Table,
    Timeline,
    answer_sheet,
    baselines_in,
    counts,
    names,
    with_sections,
)
from crossopt.reports.sheets.stages import Pace, Stage, on_devices, stages_section
from crossopt.solvers.accelerator.judge import (
    AcceleratorFigures,
    AcceleratorPlan,
    BuiltChip,
    ChipAnswer,
    LayerSchedule,
    NetworkFigures,
    NetworkPlan,
    PassCycles,
)
from crossopt.solvers.answer import Result

_PACE = Pace(("compute", "transfer that nothing hides"), "a microbatch")
_GANTT = "Operators on all cores run alone; others take a core of their type."
_ASKS = {
    "time": "time of a batch",
    "area": "die area",
    "devices": "chips in use",
    "energy": "energy of a batch",
    "cost": "cost of a batch",
}
_SENTENCES = {
    "time": "make a batch of {} quickest",
    "area": "of {} take the least area in the time",
    "devices": "of {} take the fewest chips in the time",
    "energy": "take the least energy for a batch of {}",
    "cost": "make a batch of {} cheapest",
}
_MOST_BUNDLES = 1024
"""Tensor cores that are drawn one by one."""
_DRAWN = 12
"""Schedules that are drawn; the table has all."""


@dataclass(frozen=True, slots=True)
class StageChip:
    """The quickest chip for some stages with the same layers, of those the smallest, and seconds that they compute on it."""

    stages: tuple[int, ...]
    chip: ChipAnswer | BuiltChip
    seconds: float


def sheet(question: AcceleratorQuestion, result: Result[AcceleratorPlan, AcceleratorFigures]) -> Sheet:
    """What is shown."""
    file, answer, said = question.file, result.answer, result.details
    sections: tuple[Section, ...] = ()
    if answer is not None and said is not None:
        sections = (*_die(answer.chip, said), *_networks(question, answer, said))
    several_networks = len(question.networks) > 1
    made = answer_sheet(
        result,
        "plan",
        f"Which chip, schedules and stages {_SENTENCES[file.objective].format(question.name)}?",
        asks=f"{_ASKS[file.objective]}{' at the mean throughput' * several_networks}",
        summary="" if answer is None else chip_text(answer.chip),
        looked_at=f"{size_of(question)}, 10^{designs_of(question):.0f} designs",
        answer_rows=()
        if answer is None
        else (("chip", chip_text(answer.chip)), *((plan.network, plan_text(plan)) for plan in answer.plans)),
        figures=() if said is None else _figures(question, said),
        given=(
            ("chips", f"{chip_count(question):,} {'of the template' if question.built is None else 'of a technology'}"),
            ("networks", ", ".join(f"{network.name} ({len(network):,} layers)" for network in question.networks)),
            ("devices", f"{file.devices:,}, {format_quantity(file.memory, 'bytes')}, {format_quantity(file.bandwidth, 'bandwidth')}"),
            ("batch", f"{file.batch:,} {_counted(question)}"),
            ("designs", f"10^{designs_of(question):.1f}"),
        ),
        notes=(*_uncharged(question, answer), *_at_ends(question, answer), *_batches(question), *result.notes),
        judged="operator by operator",
        next_step="" if answer is None else "`crossopt export RESULT --as plan` writes chip, split points and schedules",
    )
    beside = ["" if baseline.answer is None else _baseline_text(baseline.answer) for baseline in result.baselines]
    return with_sections(made, *sections, baselines_in("plan", result, result.baselines, beside))


def chip_text(chip: ChipAnswer | BuiltChip) -> str:
    """A chip on one line."""
    if isinstance(chip, BuiltChip):
        return " · ".join(f"{name.replace('_', ' ')} {_choice_text(name, value)}" for name, value in chip.choices.items()) or "usual chip"
    tensor = f"{several(chip.tensor_cores, 'tensor core')} of {chip.width} x {chip.depth}"
    return f"{tensor} · {several(chip.vector_cores, 'vector core')} of {chip.width} · {chip.buffer} MiB"


def plan_text(plan: NetworkPlan) -> str:
    """A plan of a network on one line."""
    devices = plan.data * sum(stage.tensor for stage in plan.stages[: len(plan.stages) // plan.interleave])
    kinds = [(stage.tensor, stage.recompute) for stage in plan.stages]
    runs = [f"{len(list(run))} x tensor {tensor}{', recomputed' * (again == 'full')}" for (tensor, again), run in groupby(kinds)]
    full = {"1f1b": "", "interleaved": f", {plan.interleave} chunks a device", "two-weights": ", without flushes"}[plan.pipeline]
    return f"{on_devices(len(plan.stages), devices)}, data {plan.data:,}, microbatch {plan.microbatch:,}{full}: {'; '.join(runs)}"


def _figures(question: AcceleratorQuestion, said: AcceleratorFigures) -> tuple[tuple[str, str], ...]:
    """What is shown beside the objective."""
    area = ("die area", f"{said.area * 1e6:.4g} mm^2")
    limit = question.file.time_limit
    limited = "" if limit is None else f", of {time_of(limit)} that it may take"
    seconds = ("time of a batch", f"{time_of(said.seconds)}{limited}")
    shown = {"time": (area,), "area": (seconds,)}.get(question.file.objective, (seconds, area))
    return (*shown, *_throughputs(question, said))


def _baseline_text(answer: AcceleratorPlan) -> str:
    return "; ".join([chip_text(answer.chip), *(plan_text(plan) for plan in answer.plans)])


def _counted(question: AcceleratorQuestion) -> str:
    """What a batch counts: a graph on chips of a technology was imported with the batch of a microbatch."""
    return "samples" if question.built is None or all(network.reduced for network in question.networks) else "batches of the graph"


def _uncharged(question: AcceleratorQuestion, answer: AcceleratorPlan | None) -> tuple[str, ...]:
    """That later stages sum their gradients for nothing, where some do."""
    plans = () if answer is None or question.file.gradients == "every" else answer.plans
    if not any(plan.data > 1 and len(plan.stages) > 1 for plan in plans):
        return ()
    return ("only the sum of the first stage's gradients is charged, as in PHAZE (`gradients: every` waits for the largest sum)",)


def _at_ends(question: AcceleratorQuestion, answer: AcceleratorPlan | None) -> tuple[str, ...]:
    """Parts of a chip that are at an end of their options, beyond which a better chip may lie."""
    if answer is None:
        return ()
    if isinstance(answer.chip, BuiltChip):
        options = {} if question.built is None else dict(question.built.options)
        chosen = [(name, value, options[name]) for name, value in answer.chip.choices.items()]
        shown = [f"{name.replace('_', ' ')} ({_choice_text(name, value)})" for name, value, own in chosen if _is_end(value, own)]
    else:
        usual, asked, chip = ChipsSection(), question.file.chips, asdict(answer.chip)
        own = [(name, chip[name], getattr(asked, name), getattr(usual, name)) for name in chip]
        shown = [
            f"{name.replace('_', ' ')} ({value})" for name, value, some, every in own if _is_end(value, some) and not _is_end(value, every)
        ]
    return (f"at an end of its options, beyond which a better chip may lie: {', '.join(shown)}",) if shown else ()


def _is_end(value: float, options: Sequence[float]) -> bool:
    return len(options) > 1 and value in (min(options), max(options))


def _batches(question: AcceleratorQuestion) -> Iterator[str]:
    """What a sample is where the batch of an imported graph is another one than usual."""
    for network in question.networks:
        graph = network.imported
        if graph is None or network.reduced or not graph.inputs:
            continue
        samples = (graph.tensors[graph.inputs[0]] or (1,))[0]
        if question.built is not None and samples == 1:
            yield f"{network.name} was imported with a batch of 1: a microbatch is a sample (`crossopt import --set batch=16` enlarges it)"
        if question.built is None and samples > 1:
            yield f"{network.name} was imported with a batch of {samples:,}, which counts as one sample here"


def _throughputs(question: AcceleratorQuestion, said: AcceleratorFigures) -> tuple[tuple[str, str], ...]:
    if len(question.networks) == 1:
        return (("throughput", f"{question.file.batch / said.networks[0].seconds:.5g} {_counted(question)}/s"),)
    pairs = zip(question.networks, said.networks, strict=True)
    return tuple(
        (network.name, f"{question.file.batch / item.seconds:.5g} {_counted(question)}/s, {time_of(item.seconds)} a batch")
        for network, item in pairs
    )


def _choice_text(name: str, value: float) -> str:
    dimension = name.rpartition("_")[2]
    return rounded_quantity(value, dimension, 4) if dimension in ("area", "power") else f"{value:,.0f}"


def _split_points(network: Network, plan: NetworkPlan) -> list[str] | None:
    """The first layers of stages; none where a stage takes branches out of the network's order, which no split of that order gives."""
    in_order = tuple(name for stage in plan.stages for name in stage.layers) == tuple(network.names)
    return [stage.layers[0] for stage in plan.stages[1:]] if in_order else None


def chip_document(question: AcceleratorQuestion, result: Result[AcceleratorPlan, AcceleratorFigures]) -> dict[str, Any]:
    """The chip as a table, and for each network the layers at which its pipeline is split, stages, and schedules on the cores."""
    answer, said = result.answer, result.details
    if answer is None or said is None:
        return {}
    chip = answer.chip.choices if isinstance(answer.chip, BuiltChip) else asdict(answer.chip)
    networks = dict[str, Any]()
    for network, plan in zip(question.networks, answer.plans, strict=True):
        kinds = {layer.name: layer for layer in network.kinds}
        networks[network.name] = {
            "microbatch": plan.microbatch,
            "pipelines": plan.data,
            "pipeline": plan.pipeline,
            "interleave": plan.interleave,
            "split_points": _split_points(network, plan),
            "stages": [asdict(stage) for stage in plan.stages],
            "schedules": [
                {
                    "layer": schedule.layer,
                    "pass": "backward" if schedule.backward else "forward",
                    "tensor": schedule.tensor,
                    "operators": [
                        {"name": name, "start": start, "cores": "all" if whole else "one"}
                        for name, start, whole in zip(
                            kinds[schedule.layer].pass_graph(schedule.backward).names, schedule.starts, schedule.on_all, strict=True
                        )
                    ],
                }
                for schedule in plan.schedules
            ],
        }
    return {"chip": {**chip, "area_mm2": said.area * 1e6}, "networks": networks}


def _die(chip: ChipAnswer | BuiltChip, said: AcceleratorFigures) -> Iterator[Section]:
    """Parts of the die with their areas."""
    if isinstance(chip, BuiltChip):
        return
    parts = area_parts(chip.columns())
    texts = tuple(f"{area * 1e6:.4g} mm^2" for area in parts.values())
    shares = tuple(area / said.area for area in parts.values())
    table = Table(
        (
            names("part", parts),
            Column("area", texts, tuple(parts.values()), "area in m^2"),
            Column("share", tuple(f"{share:.1%}" for share in shares), shares, "share"),
        )
    )
    yield Section("The die", (_floorplan(parts, chip), table))


def _floorplan(parts: dict[str, float], chip: ChipAnswer) -> Picture:
    """The die from above, where parts lie as is usual: the template knows no places."""
    shown = tuple(Part(name, area, f"{area * 1e6:.4g} mm^2", row) for row, (name, area) in enumerate(parts.items()))
    bundles = chip.tensor_cores if chip.tensor_cores <= _MOST_BUNDLES else 0
    bundled = ("tensor cores, multipliers", "tensor cores, buffers", "")
    plan = Plan("", ("vector cores, lanes", "vector cores, buffers"), "shared buffer", "", bundled, bundles)
    side = sqrt(sum(parts.values()))
    floor = Floor(tuple(sorted(shown, key=lambda part: -part.value)), plan, "", 0, (0.0, 0.0), (side, side), 0.0)
    described = f"A die of {', '.join(f'{part.label} {part.shown}' for part in shown)}."
    caption = "Areas are those of the template, to scale; it knows no places, so that parts lie in the usual order."
    return Picture(
        lambda titles: floorplan(titles, floor), "", caption, title="The chip from above, to scale", described=described, zooms=False
    )


def _cut(network: Network, plan: NetworkPlan, prefix: str) -> Iterator[Section]:
    """Layers as a graph, each with the number of its stage."""
    if not 1 < len(network) <= MOST:
        return
    stage_of = {name: number for number, stage in enumerate(plan.stages) for name in stage.layers}
    groups = tuple(stage_of[name] for name in network.names)
    arcs = tuple((earlier, layer) for layer, before in enumerate(network.before) for earlier in before)
    labels = tuple(str(group + 1) for group in groups)
    tips = tuple(f"{name}: stage {group + 1}" for name, group in zip(network.names, groups, strict=True))
    graph = Graph(arcs, groups, labels, (False,) * len(groups), tips)
    described = f"{len(groups):,} layers in {len(plan.stages):,} stages; every arc leads from a layer to one that needs it."
    caption = "Numbers and colours are stages; the pipeline is cut where they change."
    yield Section(
        f"{prefix}the cut of the graph" if prefix else "The cut of the graph",
        (Picture(lambda titles: drawn(titles, graph), "", caption, title="Layers by stage", described=described),),
    )


def _networks(question: AcceleratorQuestion, answer: AcceleratorPlan, said: AcceleratorFigures) -> Iterator[Section]:
    wishes = stage_chips(question, answer, said)
    for row, (network, plan, figures) in enumerate(zip(question.networks, answer.plans, said.networks, strict=True)):
        prefix = f"{network.name}: " if len(question.networks) > 1 else ""
        yield from _cut(network, plan, prefix)
        yield from _stages(question, plan, figures, prefix)
        yield _wishes(answer.chip, figures, wishes[row], prefix)
        if isinstance(answer.chip, ChipAnswer):
            yield _schedules(question, network, plan, figures, answer.chip, prefix)


def _stages(question: AcceleratorQuestion, plan: NetworkPlan, figures: NetworkFigures, prefix: str) -> Iterator[Section]:
    stages = [
        Stage(
            label=f"stage {number}",
            runs=_runs(stage.layers, stage.tensor, stage.recompute == "full"),
            work=(load.compute, load.transfer),
            total=load.total,
            memory=load.memory,
        )
        for number, (stage, load) in enumerate(zip(plan.stages, figures.stages, strict=True), 1)
    ]
    yield stages_section(stages, _PACE, question.file.memory, f"{prefix}the stages" if prefix else "The stages")


def _wishes(chip: ChipAnswer | BuiltChip, figures: NetworkFigures, wishes: Sequence[StageChip], prefix: str) -> Section:
    """For each stage the chip that it would take alone, and the parts of the die that are larger on it."""
    own, parts = _parts(chip), [_parts(wish.chip) for wish in wishes]
    larger = [[(name, area - own[name]) for name, area in each.items() if area > own[name]] for each in parts]
    seconds = [figures.stages[wish.stages[0]].compute for wish in wishes]
    saved = [max(1.0 - item.seconds / here, 0.0) if here else 0.0 for item, here in zip(wishes, seconds, strict=True)]
    table = Table(
        (
            names("stages", (_numbers(wish.stages) for wish in wishes)),
            Column("compute", tuple(map(time_of, seconds)), tuple(seconds), "compute in s"),
            Column("alone", tuple(time_of(wish.seconds) for wish in wishes), tuple(wish.seconds for wish in wishes), "compute alone in s"),
            Column("saved", tuple(f"{item:.1%}" for item in saved), tuple(saved), "saved share"),
            names("larger", (", ".join(f"{name} {area * 1e6:+.4g} mm^2" for name, area in row) or "-" for row in larger)),
            names("chip alone", (_unlike(wish.chip, chip) for wish in wishes)),
        )
    )
    title = "what each stage would take of the die, at no more area"
    return Section(f"{prefix}{title}" if prefix else title.capitalize(), (table,))


def _unlike(chip: ChipAnswer | BuiltChip, own: ChipAnswer | BuiltChip) -> str:
    """The chip of a stage beside that of the plan; of one of a technology what differs."""
    if chip == own:
        return "the same"
    if isinstance(chip, BuiltChip) and isinstance(own, BuiltChip):
        return chip_text(BuiltChip({name: value for name, value in chip.choices.items() if value != own.choices[name]}))
    return chip_text(chip)


def _parts(chip: ChipAnswer | BuiltChip) -> dict[str, float]:
    """Areas of parts of the die; of chips of a technology those that are chosen."""
    if isinstance(chip, ChipAnswer):
        return area_parts(chip.columns())
    return {name.removesuffix("_area").replace("_", " "): value for name, value in chip.choices.items() if name.endswith("_area")}


def _numbers(stages: Sequence[int]) -> str:
    """Numbers of stages, those in a row by their ends."""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(stages), lambda pair: pair[1] - pair[0])]
    return ", ".join(str(run[0] + 1) if len(run) == 1 else f"{run[0] + 1} to {run[-1] + 1}" for run in runs)


def _runs(layers: Sequence[str], tensor: int, again: bool) -> str:
    ends = layers[0] if len(layers) == 1 else f"{layers[0]} to {layers[-1]}"
    return f"{ends} ({len(layers):,}), tensor {tensor}{', recomputed' * again}"


def _schedules(
    question: AcceleratorQuestion, network: Network, plan: NetworkPlan, figures: NetworkFigures, chip: ChipAnswer, prefix: str
) -> Section:
    """Schedules of the passes of layers on the cores."""
    kinds = {layer.name: layer for layer in network.kinds}
    pictures = []
    for schedule, cycles in list(zip(plan.schedules, figures.passes, strict=True))[:_DRAWN]:
        operators = _operators(question, kinds[schedule.layer], schedule, plan.microbatch, chip)
        label = _pass_name(schedule)
        tracks = tuple(Track(f"{label}, {side}", tuple(_segments(operators, row)), "") for row, side in enumerate(("tensor", "vector")))
        scale = question.file.clock / 1e3
        shown = tuple(
            Track(track.label, tuple(_scaled(segment, scale) for segment in track.segments), f"{cycles.cycles / scale:.5g} ms")
            for track in tracks
        )
        pictures.append(Timeline(("on all cores", "on one core"), shown, cycles.cycles / scale, "ms for a microbatch", label, _GANTT))
    rows = figures.passes
    table = Table(
        (
            names("pass", (_pass_name(row) for row in rows)),
            counts("cycles", [row.cycles for row in rows]),
            counts("all on all cores", [row.one_by_one for row in rows]),
            *([counts("memory traffic", [row.moving for row in rows])] if question.file.memory_bandwidth is not None else []),
            Column(
                "saved",
                tuple(f"{1.0 - row.cycles / row.one_by_one:.2%}" if row.one_by_one else "-" for row in rows),
                tuple(1.0 - row.cycles / row.one_by_one if row.one_by_one else None for row in rows),
                "saved share",
            ),
        )
    )
    return Section(f"{prefix}the schedules on the cores" if prefix else "The schedules on the cores", (*pictures, table))


def _pass_name(schedule: LayerSchedule | PassCycles) -> str:
    return f"{schedule.layer} {'backward' if schedule.backward else 'forward'} at tensor {schedule.tensor}"


def _operators(
    question: AcceleratorQuestion, layer: Layer, schedule: LayerSchedule, samples: int, chip: ChipAnswer
) -> list[tuple[int, int, bool, tuple[int, int]]]:
    """Starts, ends, whether on all cores, and cores of the operators that take any time."""
    found, graph = list[tuple[int, int, bool, tuple[int, int]]](), layer.pass_graph(schedule.backward)
    cycles = layer.cycles(schedule.backward, schedule.tensor, samples, chip.columns(), question.rates)
    for row, (start, on_all, uses) in enumerate(zip(schedule.starts, schedule.on_all, graph.uses, strict=True)):
        whole = int(cycles[on_all][row, 0])
        if whole:
            found.append((start, start + whole, on_all, uses))
    return found


def _segments(operators: Sequence[tuple[int, int, bool, tuple[int, int]]], side: int) -> Iterator[Segment]:
    """Operators of a type of cores, those beside each other in lanes of their own."""
    ends = list[int]()
    lanes = list[tuple[int, int, bool, int]]()
    for start, end, on_all, uses in sorted(operators):
        if not on_all and not uses[side]:
            continue
        lane = next((row for row, busy in enumerate(ends) if busy <= start), len(ends))
        ends[lane : lane + 1] = [end]
        lanes.append((start, end, on_all, lane))
    for start, end, on_all, lane in lanes:
        yield Segment(float(start), float(end), 0 if on_all else 1, lane, max(len(ends), 1))


def _scaled(segment: Segment, scale: float) -> Segment:
    return replace(segment, start=segment.start / scale, end=segment.end / scale)


# The chip that each stage of a plan would take alone, of no larger area than the chip of the plan: what part of the die it wants.

_MOST_SCHEDULED: Final = 40
"""Chips whose schedules are searched for a stage."""


Alike: TypeAlias = tuple[tuple[int, ...], int, bool]
"""Layers of a stage by kind, its tensor degree, and whether its forward pass runs again."""


def stage_chips(question: AcceleratorQuestion, answer: AcceleratorPlan, said: AcceleratorFigures) -> list[tuple[StageChip, ...]]:
    """By network. Of many chips of a technology a coarser grid is looked at, and the chip of the plan."""
    found = list[tuple[StageChip, ...]]()
    chips = _small(question, answer.chip)
    for row, (plan, figures) in enumerate(zip(answer.plans, said.networks, strict=True)):
        own = list[StageChip]()
        for (layers, tensor, again), stages in _alike(question, row, plan).items():
            setting, work = Setting(row, plan.microbatch, tensor), (layers, again)
            if isinstance(chips, _Grid):
                least = max(figures.stages[number].memory for number in stages)
                own.append(StageChip(tuple(stages), *chips.quickest(question, setting, work, min(least, question.file.memory))))
            else:
                own.append(StageChip(tuple(stages), *_quickest(*chips, setting, work)))
        found.append(tuple(own))
    return found


def _alike(question: AcceleratorQuestion, row: int, plan: NetworkPlan) -> dict[Alike, list[int]]:
    """Stages with the same layers."""
    network, found = question.networks[row], dict[Alike, list[int]]()
    kind_of = dict(zip(network.names, network.kind_of, strict=True))
    for number, stage in enumerate(plan.stages):
        layers = np.bincount([kind_of[name] for name in stage.layers], minlength=len(network.kinds))
        again = stage.recompute == "full" and number < len(plan.stages) - 1 and question.file.passes == "training"
        found.setdefault((tuple(layers.tolist()), stage.tensor, again), []).append(number)
    return found


def _small(question: AcceleratorQuestion, chip: ChipAnswer | BuiltChip) -> "tuple[Pricing, Ints] | _Grid":
    """Chips of no larger area: prices with their order by area, or a grid of a technology."""
    if isinstance(chip, BuiltChip):
        if question.built is None:
            raise ValueError("the question asks for a chip of the template")
        own = [[values.index(chip.choices[name]) for name, values in question.built.options]]
        places = np.concatenate([np.array(own, np.int64).reshape(1, -1), question.built.every()])
        rated = question.built.rated(places, places)
        areas = np.asarray(rated.hardware.die_area)
        rows = np.flatnonzero(rated.fits & (areas <= areas[0]))
        return _Grid(question.built, places[rows], rated.at(rows))
    areas = chip_area(question.chips)
    small = areas <= chip_area(chip.columns())[0]
    return Pricing(question, MOST_STATES, question.chips.at(small)), np.argsort(areas[small], kind="stable")


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """Chips of a technology."""

    built: BuiltChips
    places: Ints
    rated: Rated

    def quickest(
        self, question: AcceleratorQuestion, setting: Setting, work: tuple[tuple[int, ...], bool], least: float
    ) -> tuple[BuiltChip, float]:
        """The first quickest chip with so much memory, for so many layers of each kind, and seconds."""
        passes = np.array([1.0 + work[1], 1.0])[: len(question.directions)]
        every = self.rated.seconds(question.networks[setting.network], setting.tensor, question.file.bandwidth)
        seconds = np.einsum("k,p,kpc->c", np.array(work[0], np.float64), passes, every[:, : len(passes)])
        row = int(np.where(self.rated.memory >= least, seconds, inf).argmin())
        return BuiltChip(self.built.chosen(self.places[row])), float(seconds[row])


def _quickest(pricing: Pricing, order: Ints, setting: Setting, work: tuple[tuple[int, ...], bool]) -> tuple[ChipAnswer, float]:
    """The chip on which so many layers of each kind compute quickest, and seconds: bounds of all, and schedules while they count."""
    (layers, again), clock = work, pricing.question.file.clock
    passes = [1 + again, 1][: len(pricing.question.directions)]
    bounds = np.einsum("k,p,kpc->c", np.array(layers, np.float64), np.array(passes, np.float64), pricing.least(setting))
    best, chosen = inf, 0
    for chip in order[np.argsort(bounds[order], kind="stable")][:_MOST_SCHEDULED].tolist():
        if bounds[chip] >= best:
            break
        cycles = sum(
            count * times * pricing.schedule(chip, setting, kind, backward).cycles
            for kind, count in enumerate(layers)
            for times, backward in zip(passes, pricing.question.directions, strict=True)
            if count
        )
        if cycles < best:
            best, chosen = float(cycles), chip
    return ChipAnswer(*(int(column[chosen]) for column in pricing.chips.columns())), best / clock
