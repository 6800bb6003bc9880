"""A plan for a chain of layers."""

from dataclasses import dataclass

from crossopt.instances.stages.chain import Recompute


@dataclass(frozen=True, slots=True)
class ChainPlan:
    """How many layers each stage has, in their order, and what else is chosen."""

    width: int
    """Devices of a stage."""
    recompute: Recompute
    microbatch: int
    """Microbatches of the question that run as one."""
    data: int
    """Replicas of the pipeline."""
    stages: tuple[int, ...]


def even(layers: int, stages: int) -> tuple[int, ...]:
    """As many layers to a stage as the rounded mean, while one is left for each stage behind it; the last takes the rest."""
    mean, sizes, left = (2 * layers + stages) // (2 * stages), list[int](), layers
    for behind in range(stages - 1, 0, -1):
        sizes.append(max(1, min(mean, left - behind)))
        left -= sizes[-1]
    return (*sizes, left)
