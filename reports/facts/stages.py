"""What a report shows of a plan in stages, whichever family it is of: what every stage takes and keeps, as plain data."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod
from typing import Any

from crossopt.instances.files.units import format_quantity
from crossopt.instances.stages.chain import ChainQuestion
from crossopt.instances.stages.pipedream.question import PipelineQuestion
from crossopt.instances.stages.piper.graph import PiperQuestion
from crossopt.solvers.answer import Result
from crossopt.solvers.stages.chain.judge import ChainLoads
from crossopt.solvers.stages.chain.plan import ChainPlan
from crossopt.solvers.stages.pipedream.judge import PipedreamLoads, StageLoad
from crossopt.solvers.stages.pipedream.plan import PipedreamPlan, Stage
from crossopt.solvers.stages.piper.judge import PiperLoads
from crossopt.solvers.stages.piper.plan import NamedStage, PiperPlan


@dataclass(frozen=True, slots=True)
class StageFacts:
    """One stage: seconds of each kind of work, one after another, and of what runs beside it; and the bytes on a device."""

    label: str
    words: str
    work: tuple[float, ...]
    beside: float
    total: float
    memory: float | None
    size: str = ""
    """How much a stage holds, where stages in a row may be alike."""
    holds: str = ""
    """What it holds, by name, where the words do not tell."""

    @property
    def runs(self) -> str:
        """All that runs there."""
        return f"{self.words}; {self.holds}" if self.holds else self.words


@dataclass(frozen=True, slots=True)
class Staged:
    """A plan in stages with the question that it answers."""

    name: str
    sentence: str
    terms: tuple[tuple[str, str], ...]
    work: tuple[str, ...]
    """What the kinds of work are called."""
    beside: str
    """What runs beside it; empty where nothing does."""
    pace: str
    """What a stage's time is for."""
    value: str
    """What the value is called."""
    plan: str
    stages: tuple[StageFacts, ...]
    capacity: float
    notes: tuple[str, ...]
    judged: str
    """How the judge goes about it."""
    rivals: tuple[str, ...]
    """Words for the plan of each."""
    among: str = ""
    """Which plans a bound is of, where not of all."""


def staged(question: Any, result: Result[Any, Any]) -> Staged:  # noqa: ANN401 - of any of these kinds
    """What is shown of an answer in stages."""
    return _STAGED[result.kind](question, result)


def _pipedream(question: PipelineQuestion, result: Result[PipedreamPlan, PipedreamLoads]) -> Staged:
    """The stages of a profile."""
    count, left_out = len(question.profile.ids), question.profile.left_out
    devices = " x ".join(f"{level.members:,}" for level in question.levels)
    speeds = ", ".join(format_quantity(level.bandwidth, "bandwidth") for level in question.levels)
    memory = "not limited" if question.memory == float("inf") else format_quantity(question.memory, "bytes")
    terms: tuple[tuple[str, str], ...] = (
        ("profile", f"{count:,} nodes"),
        ("devices", devices),
        ("bandwidth of a member", speeds),
        ("memory of a device", memory),
    )
    if question.compatible:
        terms = (*terms, ("plans", "with the cuts and charges of the public optimizer of PipeDream"))
    pairs = list(zip(result.answer.stages, result.details.loads, strict=True)) if result.answer and result.details else []
    grouped = len({stage.group for stage, _ in pairs}) > 1
    stages = tuple(
        StageFacts(
            label=f"stage {number} x {load.devices:,}",
            words=_nodes(stage, load, grouped),
            work=(load.compute, load.synchronise),
            beside=load.transfer,
            total=load.total,
            memory=load.memory,
        )
        for number, (stage, load) in enumerate(pairs, 1)
    )
    return Staged(
        name=question.name,
        sentence=f"Which nodes of {question.name} form a stage, and on how many devices does each run, so that the slowest is fast?",
        terms=terms,
        work=("compute", "sum of gradients"),
        beside="transfers",
        pace="a minibatch",
        value="slowest stage",
        plan=_pipedream_plan(result.answer),
        stages=stages,
        capacity=question.memory,
        notes=(f"of no cost, inputs and unused outputs, {_several(len(left_out), 'node')}: {_shortly(left_out)}",) if left_out else (),
        judged="node by node on the profile of the file",
        rivals=tuple(_pipedream_plan(rival.answer) for rival in result.rivals),
        among=" with the cuts and charges of the public optimizer" if question.compatible else "",
    )


def _pipedream_plan(plan: PipedreamPlan | None) -> str:
    return _on_devices(len(plan.stages), sum(prod(stage.replicas) for stage in plan.stages)) if plan else ""


def _nodes(stage: Stage, load: StageLoad, grouped: bool) -> str:
    """The nodes of a stage, with its group where there are several, and its parameters where its memory is open."""
    group = f" of group {'.'.join(str(place + 1) for place in stage.group)}" if grouped else ""
    kept = f", {format_quantity(load.parameters, 'bytes')} of parameters" if load.memory is None else ""
    return f"{_several(len(stage.nodes), 'node')}{group}: {_shortly(stage.nodes)}{kept}"


def _chain(question: ChainQuestion, result: Result[ChainPlan, ChainLoads]) -> Staged:
    """The stages of a chain of layers."""
    file = question.file
    terms = (
        ("chain", f"{len(question.layers):,} layers, {file.microbatches:,} microbatches in a batch"),
        (
            "devices",
            f"{file.devices:,}, with {format_quantity(file.memory, 'bytes')} and {format_quantity(file.bandwidth, 'bandwidth')} each",
        ),
        ("schedule", "the pipeline runs empty after a batch" if file.schedule == "flush" else "it never runs empty (two versions)"),
    )
    stages = tuple(
        StageFacts(
            label=f"stage {number}",
            words=f"layers {load.first + 1:,} to {load.first + load.layers:,}",
            work=(load.compute, load.transfer),
            beside=0.0,
            total=load.total,
            memory=load.memory,
            size=_several(load.layers, "layer"),
        )
        for number, load in enumerate(result.details.loads if result.details else (), 1)
    )
    return Staged(
        name=question.name,
        sentence=f"Which stages, replicas, width and recomputation make a batch of {question.name} quickest?",
        terms=terms,
        work=("compute", "transfer that nothing hides"),
        beside="",
        pace="a microbatch",
        value="time of a batch",
        plan=_chain_plan(result.answer),
        stages=stages,
        capacity=file.memory,
        notes=("layers are the nodes of the profile in one order; where it branches, another order may be better",) if file.profile else (),
        judged="layer by layer",
        rivals=tuple(_chain_plan(rival.answer) for rival in result.rivals),
    )


def _chain_plan(plan: ChainPlan | None) -> str:
    if plan is None:
        return ""
    merged = f", {plan.microbatch} microbatches as one" if plan.microbatch > 1 else ""
    again = "no recompute" if plan.recompute == "none" else "full recompute"
    used = _on_devices(len(plan.stages), plan.width * plan.data * len(plan.stages))
    return f"{used}, data {plan.data:,}, width {plan.width:,}{merged}, {again}"


def _piper(question: PiperQuestion, result: Result[PiperPlan, PiperLoads]) -> Staged:
    """The stages of a network with replicas and splits."""
    offers = sum(len(options) for offer in question.graph.offers for options in offer.values())
    memory, bandwidth = format_quantity(question.memory, "bytes"), format_quantity(question.bandwidth, "bandwidth")
    terms = (
        ("network", f"{len(question.graph):,} layers, which offer {offers:,} configurations"),
        ("devices", f"{question.devices:,}, with {memory} and {bandwidth} each"),
        ("microbatches", f"{question.microbatches:,} in a batch"),
    )
    pairs = list(zip(result.answer.stages, result.details.loads, strict=True)) if result.answer and result.details else []
    stages = tuple(
        StageFacts(
            label=f"stage {number}",
            words=f"{_several(stage.data, 'replica')} of {_several(stage.tensor, 'device')}, microbatches under way: {load.under_way:,}",
            work=(load.compute, load.transfer, load.exchange),
            beside=0.0,
            total=load.total,
            memory=float(load.memory),
            holds=f"{_several(len(stage.nodes), 'layer')}, {_ranges(stage.nodes)}: {_counted(stage)}",
        )
        for number, (stage, load) in enumerate(pairs, 1)
    )
    return Staged(
        name=question.name,
        sentence=f"Which stages, replicas, splits and configurations of the layers of {question.name} make a sample quickest?",
        terms=(*terms, *((("without", ", ".join(question.without)),) if question.without else ())),
        work=("compute", "transfer", "exchange"),
        beside="",
        pace="a sample",
        value="time of a sample",
        plan=_piper_plan(result.answer),
        stages=stages,
        capacity=float(question.memory),
        notes=result.notes,
        judged="layer by layer on the graph of the file",
        rivals=tuple(_piper_plan(rival.answer) for rival in result.rivals),
    )


def _piper_plan(plan: PiperPlan | None) -> str:
    return _on_devices(len(plan.stages), sum(stage.data * stage.tensor for stage in plan.stages)) if plan else ""


def _ranges(nodes: Sequence[str]) -> str:
    """Ids, runs of whole numbers as their ends."""
    numbers = sorted(int(name) for name in nodes if name.isascii() and name.isdecimal())
    runs = [list(run) for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])]
    ends = [str(run[0][1]) if len(run) == 1 else f"{run[0][1]}-{run[-1][1]}" for run in runs]
    words = [*ends, *(name for name in nodes if not (name.isascii() and name.isdecimal()))]
    return f"nodes {', '.join(words[:8])}{', ...' if len(words) > 8 else ''}"


def _counted(stage: NamedStage) -> str:
    """The configurations of a stage."""
    return ", ".join(f"{count:,} {name}" for name, count in sorted(Counter(stage.configurations).items()))


def _several(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _on_devices(stages: int, devices: int) -> str:
    return f"{_several(stages, 'stage')} on {_several(devices, 'device')}"


def _shortly(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} to {names[-1]}"


_STAGED: dict[str, Callable[[Any, Any], Staged]] = {"chain": _chain, "pipedream": _pipedream, "piper": _piper}
"""By the kind of the question."""
