"""A plan for a chain of layers, and its judge: the time of a batch and the memory of every stage, layer by layer."""

from dataclasses import dataclass
from math import ceil, fsum

from crossopt.instances.files.units import bytes_beyond
from crossopt.instances.stages.chain import MOST_MICROBATCHES, ChainQuestion, Recompute, Width
from crossopt.solvers.answer import Verdict

# A plan for a chain of layers.


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


# The judge of plans for chains: the time of a batch and the memory of every stage, recomputed layer by layer.
#
# It shares nothing with the search but the formulas, which `solvers.stages.chain.cuts` says; sums are exactly rounded (`math.fsum`).


@dataclass(frozen=True, slots=True)
class ChainLoad:
    """What one stage takes for one microbatch, in seconds, and the bytes on each of its devices."""

    first: int
    layers: int
    compute: float
    transfer: float
    """What of its transfers nothing hides."""
    total: float
    memory: float


@dataclass(frozen=True, slots=True)
class ChainLoads:
    """What every stage takes, first stage first."""

    loads: tuple[ChainLoad, ...]


def judge(question: ChainQuestion, plan: ChainPlan) -> Verdict[ChainLoads]:
    """Seconds of a batch, loads and broken rules of a plan; a ValueError in words where it is none of the question."""
    width = next((width for width in question.widths if width.devices == plan.width), None)
    if width is None:
        raise ValueError(f"the layers have no width {plan.width}")
    if min(plan.stages, default=0) < 1 or sum(plan.stages) != len(question.layers) or min(plan.data, plan.microbatch) < 1:
        raise ValueError(f"the stages of a plan have {len(question.layers)} layers together, and each has one at least")
    if max(plan.data, plan.microbatch) > MOST_MICROBATCHES:
        raise ValueError(f"more than {MOST_MICROBATCHES:,} replicas or microbatches are none that can be")
    firsts = [sum(plan.stages[:number]) for number in range(len(plan.stages))]
    loads = tuple(_load(question, width, plan, number, first) for number, first in enumerate(firsts))
    weights = [fsum(width.parameters[first : first + size]) for first, size in zip(firsts, plan.stages, strict=True)]
    return Verdict(_time(question, plan, loads, weights), (*_rules(question, plan), *_memory(question, loads)), ChainLoads(loads))


def _load(question: ChainQuestion, width: Width, plan: ChainPlan, number: int, first: int) -> ChainLoad:
    rows = range(first, first + plan.stages[number])
    size, overhead = float(plan.microbatch), question.file.overhead
    forward, backward = (fsum(size * float(column[row]) + overhead for row in rows) for column in (width.forward, width.backward))
    came, goes = (size * float(question.entering[row]) / question.file.bandwidth for row in (rows.start, rows.stop))
    waiting = len(plan.stages) - number - 1
    again = plan.recompute == "full" and waiting > 0
    compute = fsum((forward, backward, forward if again else 0.0))
    transfer = fsum((came, max(goes - forward, 0.0) if again else goes))
    activations = size * fsum(width.activations[rows.start : rows.stop])
    stash = size * float(question.entering[first]) if plan.recompute == "full" else activations
    memory = question.file.copies * fsum(width.parameters[rows.start : rows.stop]) + activations + waiting * stash
    return ChainLoad(first, len(rows), compute, transfer, fsum((compute, transfer)), memory)


def _time(question: ChainQuestion, plan: ChainPlan, loads: tuple[ChainLoad, ...], weights: list[float]) -> float:
    """Seconds of a batch."""
    file, share = question.file, (plan.data - 1) / plan.data
    if file.schedule == "flush":
        rounds = ceil(file.microbatches / plan.data) + len(loads) - 1
        return max(load.total for load in loads) * rounds + 4.0 * share * weights[0] / file.bandwidth
    rounds = file.microbatches // (plan.microbatch * plan.data)
    return max(rounds * load.total + 2.0 * share * weight / file.bandwidth for load, weight in zip(loads, weights, strict=True))


def _rules(question: ChainQuestion, plan: ChainPlan) -> list[str]:
    file, used = question.file, plan.width * plan.data * len(plan.stages)
    merged = plan.microbatch * plan.data
    rules = (
        (used <= file.devices, f"{used:,} devices are used, there are {file.devices:,}"),
        (plan.data <= file.microbatches, f"{plan.data:,} replicas share {file.microbatches:,} microbatches"),
        (plan.recompute in file.recompute, f"recompute {plan.recompute} is none of the options"),
        (plan.microbatch in file.microbatch, f"{plan.microbatch} microbatches as one is none of the options"),
        (
            not file.divisible or (file.devices % plan.data == 0 and file.microbatches % plan.data == 0),
            f"{plan.data:,} replicas do not divide {file.devices:,} devices and {file.microbatches:,} microbatches",
        ),
        (
            file.schedule == "flush" or file.microbatches % merged == 0,
            f"{plan.data:,} replicas do not divide the {file.microbatches / plan.microbatch:,.10g} microbatches of a batch",
        ),
        (
            file.schedule == "flush" or file.microbatches // merged >= len(plan.stages),
            f"a batch is shorter than the {len(plan.stages):,} stages, so that two versions are too few",
        ),
    )
    return [sentence for holds, sentence in rules if not holds]


def _memory(question: ChainQuestion, loads: tuple[ChainLoad, ...]) -> list[str]:
    most = max(load.memory for load in loads)
    limit = question.file.memory
    return [f"a stage keeps {bytes_beyond(most, limit, 'on a device of')}"] if most > limit else []
