"""What a report shows of a plan in stages, whichever family it is of: what every stage takes and keeps, as plain data."""

from collections import Counter
from dataclasses import dataclass

from crossopt.instances.files.units import format_quantity
from crossopt.instances.stages.chain import ChainQuestion
from crossopt.instances.stages.pipedream.question import PipelineQuestion
from crossopt.instances.stages.piper.graph import PiperQuestion
from crossopt.solvers.answer import Result
from crossopt.solvers.stages.chain.judge import ChainLoads
from crossopt.solvers.stages.chain.plan import ChainPlan
from crossopt.solvers.stages.pipedream.answer import PipelineResult
from crossopt.solvers.stages.piper.answer import NamedStage, PiperResult


@dataclass(frozen=True, slots=True)
class StageFacts:
    """One stage: seconds of each kind of work, one after another, and of what runs beside it; and the bytes on a device."""

    label: str
    words: str
    work: tuple[float, ...]
    beside: float
    total: float
    memory: float | None


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


def staged_pipeline(question: PipelineQuestion, result: PipelineResult) -> Staged:
    """The stages of a profile."""
    count = len(question.profile.ids)
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
    stages = tuple(
        StageFacts(
            label=f"stage {number} x {load.devices:,}",
            words=f"{len(stage.nodes):,} node{'s' * (len(stage.nodes) != 1)}: {_shortly(stage.nodes)}",
            work=(load.compute, load.synchronise),
            beside=load.transfer,
            total=load.total,
            memory=load.memory,
        )
        for number, (stage, load) in enumerate(zip(result.stages, result.loads, strict=True), 1)
    )
    used = sum(load.devices for load in result.loads)
    return Staged(
        name=question.name,
        sentence=f"Which nodes of {question.name} form a stage, and on how many devices does each run, so that the slowest is fast?",
        terms=terms,
        work=("compute", "sum of gradients"),
        beside="transfers",
        pace="a minibatch",
        value="slowest stage",
        plan=f"{len(stages):,} stages on {used:,} devices",
        stages=stages,
        capacity=question.memory,
        notes=(f"Of no cost, inputs and unused outputs: {_shortly(result.left_out)}.",) if result.left_out else (),
    )


def staged_chain(question: ChainQuestion, result: Result[ChainPlan, ChainLoads]) -> Staged:
    """The stages of a chain of layers."""
    file, plan = question.file, result.answer
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
        )
        for number, load in enumerate(result.details.loads if result.details else (), 1)
    )
    merged = f", {plan.microbatch} microbatches as one" if plan and plan.microbatch > 1 else ""
    again = "no recompute" if plan and plan.recompute == "none" else "full recompute"
    words = f"{len(stages):,} stages, data {plan.data:,}, width {plan.width:,}{merged}, {again}" if plan else ""
    return Staged(
        name=question.name,
        sentence=f"Which stages, replicas, width and recomputation make a batch of {question.name} quickest?",
        terms=terms,
        work=("compute", "transfer that nothing hides"),
        beside="",
        pace="a microbatch",
        value="time of a batch",
        plan=words,
        stages=stages,
        capacity=file.memory,
        notes=(),
    )


def staged_piper(question: PiperQuestion, result: PiperResult) -> Staged:
    """The stages of a network with replicas and splits."""
    offers = sum(len(options) for offer in question.graph.offers for options in offer.values())
    memory, bandwidth = format_quantity(question.memory, "bytes"), format_quantity(question.bandwidth, "bandwidth")
    terms = (
        ("network", f"{len(question.graph):,} layers, which offer {offers:,} configurations"),
        ("devices", f"{question.devices:,}, with {memory} and {bandwidth} each"),
        ("microbatches", f"{question.microbatches:,} in a batch"),
    )
    stages = tuple(
        StageFacts(
            label=f"stage {number}",
            words=f"{stage.data:,} replicas of {stage.tensor:,}: {_counted(stage)}",
            work=(stage.load.compute, stage.load.transfer, stage.load.exchange),
            beside=0.0,
            total=stage.load.total,
            memory=float(stage.load.memory),
        )
        for number, stage in enumerate(result.stages, 1)
    )
    return Staged(
        name=str(result.instance["name"]),
        sentence=f"Which stages, replicas, splits and configurations of the layers of {question.name} make a sample quickest?",
        terms=(*terms, *((("left out", ", ".join(question.without)),) if question.without else ())),
        work=("compute", "transfer", "exchange"),
        beside="",
        pace="a sample",
        value="time of a sample",
        plan=f"{len(stages):,} stage{'s' * (len(stages) != 1)} on {result.devices_used:,} devices",
        stages=stages,
        capacity=float(question.memory),
        notes=result.notes,
    )


def _counted(stage: NamedStage) -> str:
    """Layers and configurations of a stage."""
    kinds = Counter(stage.configurations)
    return f"{len(stage.nodes):,} layer{'s' * (len(stage.nodes) != 1)}; {', '.join(f'{kinds[name]:,} {name}' for name in sorted(kinds))}"


def _shortly(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} to {names[-1]}"
