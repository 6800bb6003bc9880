"""Stages of a network, and their judge: time, memory and rules of every stage, recomputed layer by layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from crossopt.instances.files.units import bytes_beyond
from crossopt.instances.stages.piper import MOST_MICROBATCHES, Configuration, PiperQuestion
from crossopt.solvers.answer import Verdict

# Stages of a network: by rows of the graph, as searches take them, and by the names of its layers, as results say them.


@dataclass(frozen=True, slots=True)
class Stage:
    """Layers that run together, first stage first: their rows, replicas, devices of a replica, and the configuration of each layer."""

    rows: tuple[int, ...]
    data: int
    tensor: int
    configurations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NamedStage:
    """A stage as results write it: its layers by id, each with its configuration."""

    data: int
    tensor: int
    nodes: tuple[str, ...]
    configurations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PiperPlan:
    """All of them, first stage first."""

    stages: tuple[NamedStage, ...]


def named(question: PiperQuestion, stages: Sequence[Stage]) -> PiperPlan:
    """Stages in words."""
    ids = question.graph.ids
    return PiperPlan(
        tuple(NamedStage(stage.data, stage.tensor, tuple(str(ids[row]) for row in stage.rows), stage.configurations) for stage in stages)
    )


def stages_in(question: PiperQuestion, plan: PiperPlan) -> tuple[Stage, ...]:
    """The stages back; a ValueError in words where they name what the graph does not have."""
    rows = {str(name): row for row, name in enumerate(question.graph.ids)}
    unknown = [name for stage in plan.stages for name in stage.nodes if name not in rows]
    if unknown:
        raise ValueError(f"node {unknown[0]} is not in the graph")
    return tuple(Stage(tuple(rows[name] for name in stage.nodes), stage.data, stage.tensor, stage.configurations) for stage in plan.stages)


# The judge of Piper's stages: time, memory and rules of every stage, recomputed from the graph of the file, layer by layer.
#
# It shares nothing with the search. Times are sums of exact fractions, rounded once; memory is counted in whole bytes.

LISTED = 4


@dataclass(frozen=True, slots=True)
class StageLoad:
    """What one stage does for one sample, in seconds, and what it keeps on each device."""

    compute: float
    transfer: float
    """To and from other stages."""
    exchange: float
    """Of parameters between replicas."""
    total: float
    under_way: int
    """Microbatches whose activations are kept."""
    memory: int
    devices: int


@dataclass(frozen=True, slots=True)
class PiperLoads:
    """What every stage does, first stage first."""

    loads: tuple[StageLoad, ...]


def judge(question: PiperQuestion, plan: PiperPlan) -> Verdict[PiperLoads]:
    """The word on stages by name."""
    return judge_rows(question, stages_in(question, plan))


def judge_rows(question: PiperQuestion, stages: Sequence[Stage]) -> Verdict[PiperLoads]:
    """Loads, value and broken rules; a ValueError where the stages do not hold every layer once, in configurations that are offered."""
    chosen = _chosen(question, stages)
    stage_of = {row: number for number, stage in enumerate(stages) for row in stage.rows}
    if sorted(stage_of) != list(range(len(question.graph))) or sum(len(stage.rows) for stage in stages) != len(stage_of):
        raise ValueError("stages hold every layer of the graph once")
    later, loads = 0, list[StageLoad]()
    for number in range(len(stages) - 1, -1, -1):
        later += stages[number].data
        loads.append(_load(question, stages[number], chosen[number], _boundary(question, stage_of, number, chosen[number]), later))
    loads.reverse()
    broken = (*_order(question, stage_of), *_shares(question, stages), *_memory(question, loads))
    return Verdict(max(load.total for load in loads), broken, PiperLoads(tuple(loads)))


def _chosen(question: PiperQuestion, stages: Sequence[Stage]) -> list[dict[int, Configuration]]:
    """The configuration of every layer of every stage."""
    found = []
    for number, stage in enumerate(stages):
        if not stage.rows or not 1 <= stage.data <= MOST_MICROBATCHES or len(stage.rows) != len(stage.configurations):
            raise ValueError(f"stage {number + 1} needs a layer, replicas that can be, and a configuration for each layer")
        options = {}
        for row, name in zip(stage.rows, stage.configurations, strict=True):
            if not 0 <= row < len(question.graph):
                raise ValueError(f"there is no layer in row {row}")
            offered = [option for option in question.graph.offers[row].get(stage.tensor, ()) if option.name == name]
            if not offered:
                raise ValueError(f"node {question.graph.ids[row]} offers no {name!r} on {stage.tensor} devices")
            options[row] = offered[0]
        found.append(options)
    return found


def _boundary(question: PiperQuestion, stage_of: dict[int, int], number: int, chosen: dict[int, Configuration]) -> Fraction:
    """Bytes of a sample that cross the boundary of a stage one way."""
    total = Fraction(0)
    for (start, end), size in zip(question.graph.edges, question.graph.sizes, strict=True):
        if stage_of[end] == number != stage_of[start]:
            total += Fraction(size) + Fraction(chosen[end].entering.get(start, 0.0))
        elif stage_of[start] == number != stage_of[end]:
            total += Fraction(size) + Fraction(chosen[start].leaving.get(end, 0.0))
    return total


def _load(question: PiperQuestion, stage: Stage, chosen: dict[int, Configuration], boundary: Fraction, later: int) -> StageLoad:
    bandwidth = Fraction(question.bandwidth)
    compute = sum((Fraction(option.time) for option in chosen.values()), Fraction(0)) / stage.data
    transfer = 2 * boundary / stage.data / bandwidth
    parameters = sum((Fraction(option.parameters) for option in chosen.values()), Fraction(0))
    exchange = 4 * (stage.data - 1) * parameters / (stage.data * question.microbatches) / bandwidth
    under_way = -(-later // stage.data)
    memory = sum(option.stashed * under_way + option.fixed for option in chosen.values())
    total = compute + transfer + exchange
    return StageLoad(float(compute), float(transfer), float(exchange), float(total), under_way, memory, stage.data * stage.tensor)


def _order(question: PiperQuestion, stage_of: dict[int, int]) -> tuple[str, ...]:
    """Edges that lead back to an earlier stage."""
    ids = question.graph.ids
    back = [(ids[start], ids[end]) for start, end in question.graph.edges if stage_of[start] > stage_of[end]]
    shown = ", ".join(f"{start} -> {end}" for start, end in back[:LISTED])
    return (f"edges lead back to an earlier stage: {shown}{', ...' if len(back) > LISTED else ''}",) if back else ()


def _shares(question: PiperQuestion, stages: Sequence[Stage]) -> tuple[str, ...]:
    """Numbers of replicas that do not divide the batch or are not allowed, and devices that are not there."""
    degrees, devices = question.degrees, sum(stage.data * stage.tensor for stage in stages)
    shown = f"{', '.join(map(str, degrees[:8]))}{', ...' if len(degrees) > 8 else ''}"
    broken = [
        f"stage {number + 1} has {stage.data} replicas, and it takes one of {shown}"
        for number, stage in enumerate(stages)
        if stage.data not in degrees
    ]
    if devices > question.devices:
        broken.append(f"{devices} devices are taken of {question.devices}")
    if sum(stage.data for stage in stages) > question.microbatches:
        broken.append(f"{sum(stage.data for stage in stages)} replicas share {question.microbatches} microbatches")
    return tuple(broken)


def _memory(question: PiperQuestion, loads: Sequence[StageLoad]) -> tuple[str, ...]:
    return tuple(
        f"stage {number + 1} breaks the memory of a device: {bytes_beyond(load.memory, question.memory, 'of')}"
        for number, load in enumerate(loads)
        if load.memory > question.memory
    )
