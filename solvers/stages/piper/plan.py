"""Stages of a network: by rows of the graph, as searches take them, and by the names of its layers, as results say them."""

from collections.abc import Sequence
from dataclasses import dataclass

from crossopt.instances.stages.piper.graph import PiperQuestion


@dataclass(frozen=True, slots=True)
class Stage:
    """Layers that run together, first stage first: their rows, replicas, devices of a replica, and the configuration of each layer."""

    rows: tuple[int, ...]
    data: int
    tensor: int
    configurations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NamedStage:
    """The same in words: its layers by id, each with its configuration."""

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
        raise ValueError(f"node {unknown[0]} is none of the graph")
    return tuple(Stage(tuple(rows[name] for name in stage.nodes), stage.data, stage.tensor, stage.configurations) for stage in plan.stages)
