"""Sheets of plans in stages: of a chain of layers, of a profile, and of a network with replicas and splits."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod
from typing import Any

from crossopt.instances.files.units import format_quantity
from crossopt.instances.stages.chain import ChainQuestion
from crossopt.instances.stages.pipedream import PipelineQuestion
from crossopt.instances.stages.piper import PiperQuestion
from crossopt.reports.drawing.axes import Segment, Track
from crossopt.reports.sheets.amounts import several, time_of
from crossopt.reports.sheets.sheet import (
    Pairs,
    Section,
    Sheet,
    Table,
    Timeline,
    answer_sheet,
    baselines_in,
    memory,
    names,
    times,
    with_sections,
)
from crossopt.solvers.answer import Result
from crossopt.solvers.stages.chain.judge import ChainLoads, ChainPlan
from crossopt.solvers.stages.pipedream.judge import PipedreamLoads, PipedreamPlan, StageLoad
from crossopt.solvers.stages.pipedream.judge import Stage as Nodes
from crossopt.solvers.stages.piper.judge import NamedStage, PiperLoads, PiperPlan
from crossopt.solvers.stages.piper.judge import StageLoad as PiperStageLoad

# What the sheets of all plans in stages share: a timeline and a table of the stages, and the plans beside.

_DRAWN = 64
"""Stages in the picture, the first ones; the table has all."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: seconds of each kind of work, one after another, and of what runs beside it; and the bytes on a device."""

    label: str
    runs: str
    """What it runs, in words."""
    work: tuple[float, ...]
    total: float
    memory: float | None
    beside: float = 0.0


@dataclass(frozen=True, slots=True)
class Pace:
    """What the times of stages are called."""

    work: tuple[str, ...]
    """Kinds of work."""
    of: str
    """What a stage's time is for."""
    beside: str = ""
    """What runs beside the work; empty where nothing does."""

    @property
    def kinds(self) -> tuple[str, ...]:
        return (*self.work, *((self.beside,) if self.beside else ()))


def with_stages(
    sheet: Sheet, result: Result[Any, Any], stages: Sequence[Stage], pace: Pace, capacity: float, baselines: Sequence[str]
) -> Sheet:
    """The sheet with what every stage takes, of devices with so much memory, and the plans of the baselines, which words tell."""
    beside = baselines_in("plan", result, result.baselines, baselines)
    return with_sections(sheet, *([stages_section(stages, pace, capacity)] if stages else []), beside)


def stages_section(stages: Sequence[Stage], pace: Pace, capacity: float, title: str = "The stages") -> Section:
    """A timeline and a table of the stages."""
    slowest, shown = max(stage.total for stage in stages), stages[:_DRAWN]
    tracks = tuple(Track(stage.label, tuple(_segments(stage, pace)), f"{stage.total * 1e3:.5g} ms") for stage in shown)
    first = f"The slowest of {several(len(stages), 'stage')} takes {time_of(slowest)} for {pace.of}."
    beside = f" {pace.beside.capitalize()} run beside the work, in the lower lane." if pace.beside else ""
    left_out = f" The first {_DRAWN} stages are shown." if len(stages) > _DRAWN else ""
    work = [times(name, [stage.work[index] for stage in stages]) for index, name in enumerate(pace.work)]
    work += [times(pace.beside, [stage.beside for stage in stages])] if pace.beside else []
    table = Table(
        (
            names("stage", (stage.label for stage in stages)),
            names("runs", (stage.runs for stage in stages)),
            *work,
            times("in all", [stage.total for stage in stages]),
            memory([stage.memory for stage in stages], capacity),
        )
    )
    return Section(
        title,
        (Timeline(pace.kinds, tracks, slowest * 1e3, f"ms for {pace.of}", "the pace", f"{first}{beside}{left_out}"), table),
    )


def stage_rows(stages: Sequence[Stage], pace: Pace, capacity: float) -> Pairs:
    """The slowest stage and the fullest memory, for the short answer."""
    if not stages:
        return ()
    slowest = max(stages, key=lambda stage: stage.total)
    fullest = max(stages, key=lambda stage: stage.memory or 0.0)
    full = f"{memory([fullest.memory], capacity).texts[0]} on a device of {fullest.label}" if fullest.memory else ""
    return ("slowest stage", f"{slowest.label}, {time_of(slowest.total)} for {pace.of}: {slowest.runs}"), ("memory", full)


def _segments(stage: Stage, pace: Pace) -> Iterator[Segment]:
    at, lanes = 0.0, 2 if pace.beside else 1
    for index, part in enumerate(stage.work):
        yield Segment(at * 1e3, (at + part) * 1e3, index, 0, lanes)
        at += part
    if pace.beside:
        yield Segment(0.0, stage.beside * 1e3, len(stage.work), 1, lanes)


def on_devices(stages: int, devices: int) -> str:
    """How large a plan is."""
    return f"{several(stages, 'stage')} on {several(devices, 'device')}"


# The sheet of a chain of layers.

_CHAIN_PACE = Pace(("compute", "transfer that nothing hides"), "a microbatch")
_BRANCHES = "layers are the nodes of the profile in one order; where it branches, another order may be better"


def chain_sheet(question: ChainQuestion, result: Result[ChainPlan, ChainLoads]) -> Sheet:
    """What is shown."""
    file = question.file
    each = f"{format_quantity(file.memory, 'bytes')} and {format_quantity(file.bandwidth, 'bandwidth')}"
    stages = [
        Stage(
            label=f"stage {number}",
            runs=f"layers {load.first + 1:,} to {load.first + load.layers:,}",
            work=(load.compute, load.transfer),
            total=load.total,
            memory=load.memory,
        )
        for number, load in enumerate(result.details.loads if result.details else (), 1)
    ]
    sheet = answer_sheet(
        result,
        "plan",
        f"Which stages, replicas, width and recomputation make a batch of {question.name} quickest?",
        asks="time of a batch",
        summary=_chain_text(result.answer),
        given=(
            ("chain", f"{len(question.layers):,} layers, {file.microbatches:,} microbatches in a batch"),
            ("devices", f"{file.devices:,}, with {each} each"),
            ("schedule", "the pipeline runs empty after a batch" if file.schedule == "flush" else "it never runs empty (two versions)"),
        ),
        meaning_rows=stage_rows(stages, _CHAIN_PACE, file.memory),
        notes=(_BRANCHES,) if file.profile else (),
        judged="layer by layer",
    )
    return with_stages(sheet, result, stages, _CHAIN_PACE, file.memory, [_chain_text(baseline.answer) for baseline in result.baselines])


def _chain_text(plan: ChainPlan | None) -> str:
    if plan is None:
        return ""
    merged = f", {plan.microbatch} microbatches as one" if plan.microbatch > 1 else ""
    again = "no recompute" if plan.recompute == "none" else "full recompute"
    used = on_devices(len(plan.stages), plan.width * plan.data * len(plan.stages))
    return f"{used}, data {plan.data:,}, width {plan.width:,}{merged}, {again}"


# The sheet of the stages of a profile.

_PACE = Pace(("compute", "sum of gradients"), "a minibatch", beside="transfers")
_OF_OTHERS = "with the cuts and charges of the public optimizer"


def pipedream_sheet(question: PipelineQuestion, result: Result[PipedreamPlan, PipedreamLoads]) -> Sheet:
    """What is shown."""
    left_out = question.profile.left_out
    pairs = list(zip(result.answer.stages, result.details.loads, strict=True)) if result.answer and result.details else []
    grouped = len({stage.group for stage, _ in pairs}) > 1
    stages = [
        Stage(
            label=f"stage {number} x {load.devices:,}",
            runs=_nodes(stage, load, grouped),
            work=(load.compute, load.synchronise),
            total=load.total,
            memory=load.memory,
            beside=load.transfer,
        )
        for number, (stage, load) in enumerate(pairs, 1)
    ]
    sheet = answer_sheet(
        result,
        "plan",
        f"Which nodes of {question.name} form a stage, and on how many devices does each run, so that the slowest is fast?",
        asks="slowest stage",
        summary=_text(result.answer),
        given=_pipedream_given(question),
        meaning_rows=stage_rows(stages, _PACE, question.memory)[1:],
        notes=(_left_out(left_out),) if left_out else (),
        among=f" {_OF_OTHERS}" if question.compatible else "",
        judged="node by node on the profile of the file",
    )
    return with_stages(sheet, result, stages, _PACE, question.memory, [_text(baseline.answer) for baseline in result.baselines])


def _left_out(nodes: tuple[str, ...]) -> str:
    """Which nodes cost nothing."""
    return f"left out, as they cost nothing (inputs, unused outputs): {several(len(nodes), 'node')}, {_shortly(nodes)}"


def _pipedream_given(question: PipelineQuestion) -> tuple[tuple[str, str], ...]:
    speeds = ", ".join(format_quantity(level.bandwidth, "bandwidth") for level in question.levels)
    return (
        ("profile", f"{len(question.profile.ids):,} nodes"),
        ("devices", " x ".join(f"{level.members:,}" for level in question.levels)),
        ("bandwidth of a member", speeds),
        ("memory of a device", "not limited" if question.memory == float("inf") else format_quantity(question.memory, "bytes")),
        *((("plans", f"{_OF_OTHERS} of PipeDream"),) if question.compatible else ()),
    )


def _text(plan: PipedreamPlan | None) -> str:
    return on_devices(len(plan.stages), sum(prod(stage.replicas) for stage in plan.stages)) if plan else ""


def _nodes(stage: Nodes, load: StageLoad, grouped: bool) -> str:
    """The nodes of a stage, with its group where there are several, and its parameters where its memory is open."""
    group = f" of group {'.'.join(str(index + 1) for index in stage.group)}" if grouped else ""
    size = f", {format_quantity(load.parameters, 'bytes')} of parameters" if load.memory is None else ""
    return f"{several(len(stage.nodes), 'node')}{group}: {_shortly(stage.nodes)}{size}"


def _shortly(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} to {names[-1]}"


# The sheet of the stages of a network, with replicas and splits.

_PIPER_PACE = Pace(("compute", "transfer", "exchange"), "a sample")


def piper_sheet(question: PiperQuestion, result: Result[PiperPlan, PiperLoads]) -> Sheet:
    """What is shown."""
    pairs = zip(result.answer.stages, result.details.loads, strict=True) if result.answer and result.details else ()
    stages = [
        Stage(
            label=f"stage {number}",
            runs=_runs(stage, load),
            work=(load.compute, load.transfer, load.exchange),
            total=load.total,
            memory=float(load.memory),
        )
        for number, (stage, load) in enumerate(pairs, 1)
    ]
    sheet = answer_sheet(
        result,
        "plan",
        f"Which stages, replicas, splits and configurations of the layers of {question.name} make a sample quickest?",
        asks="time of a sample",
        summary=_piper_text(result.answer),
        given=_given(question),
        meaning_rows=stage_rows(stages, _PIPER_PACE, float(question.memory)),
        notes=result.notes,
        judged="layer by layer on the graph of the file",
    )
    return with_stages(
        sheet, result, stages, _PIPER_PACE, float(question.memory), [_piper_text(baseline.answer) for baseline in result.baselines]
    )


def _given(question: PiperQuestion) -> tuple[tuple[str, str], ...]:
    offers = sum(len(options) for offer in question.graph.offers for options in offer.values())
    memory, bandwidth = format_quantity(question.memory, "bytes"), format_quantity(question.bandwidth, "bandwidth")
    return (
        ("network", f"{len(question.graph):,} layers, which offer {offers:,} configurations"),
        ("devices", f"{question.devices:,}, with {memory} and {bandwidth} each"),
        ("microbatches", f"{question.microbatches:,} in a batch"),
        *((("without", ", ".join(question.without)),) if question.without else ()),
    )


def _piper_text(plan: PiperPlan | None) -> str:
    return on_devices(len(plan.stages), sum(stage.data * stage.tensor for stage in plan.stages)) if plan else ""


def _runs(stage: NamedStage, load: PiperStageLoad) -> str:
    where = f"{several(stage.data, 'replica')} of {several(stage.tensor, 'device')}, microbatches under way: {load.under_way:,}"
    configurations = ", ".join(f"{count:,} {name}" for name, count in sorted(Counter(stage.configurations).items()))
    return f"{where}; {several(len(stage.nodes), 'layer')}, {_ranges(stage.nodes)}: {configurations}"


def _ranges(nodes: Sequence[str]) -> str:
    """Ids, runs of whole numbers as their ends."""
    numbers = sorted(int(name) for name in nodes if name.isascii() and name.isdecimal())
    runs = [list(run) for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])]
    ends = [str(run[0][1]) if len(run) == 1 else f"{run[0][1]}-{run[-1][1]}" for run in runs]
    names = [*ends, *(name for name in nodes if not (name.isascii() and name.isdecimal()))]
    return f"nodes {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"
