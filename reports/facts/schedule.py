"""What a report shows of a step over time: every pass of every microbatch on every stage, and what follows once, as plain data.

A stage's passes take what `crossflow.pipeline` charges it for one microbatch, with the forward part of the embedding and the head as
`crossflow.operators` has it. The model's time of the pipeline is a closed form, exact for equal stages; of uneven ones, and
where pairs alone hide exchanges of experts, it may differ from the passes in their order, by a margin that is told.
"""

from dataclasses import astuple, dataclass

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.hardware import Cluster, Hardware
from crossopt.crossflow.layer import Pass, forward_pass
from crossopt.crossflow.layout import lay_out
from crossopt.crossflow.operators import EMBEDDING_FORWARD, HEAD_FORWARD
from crossopt.crossflow.pipeline import Terms, exposed_exchange, full_backward, passes, step_time, unheld_time, window
from crossopt.crossflow.plan import Plan, Schedule, table
from crossopt.crossflow.schedule import Run, Work, schedule
from crossopt.crossflow.stages import chunk_sizes
from crossopt.crossflow.transformer import mean_over_kinds, parts_of, ranks, terms
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import Instance
from crossopt.solvers.codesign.answer import ChosenDesign, candidate_in, design_of

MOST = 60_000
"""Most passes that are simulated one by one."""
_NEAR = 1e-9


@dataclass(frozen=True, slots=True)
class Passes:
    """Seconds of one microbatch on one stage, by what is done."""

    forward: float
    sent: float
    """Communication of the forward pass that nothing hides."""
    again: float
    """Recomputation, with its own communication."""
    backward: float
    returned: float
    """Communication of the backward pass that nothing hides."""
    weights: float = 0.0
    """Gradients of weights, where they are put off; else they are part of `backward`."""
    shares: tuple[float, ...] = ()
    """Which share of the layers each chunk holds, where chunks differ."""

    @property
    def ahead(self) -> float:
        return self.forward + self.sent

    @property
    def back(self) -> float:
        return self.again + self.backward + self.returned

    @property
    def total(self) -> float:
        return self.ahead + self.back + self.weights

    @property
    def work(self) -> Work:
        return Work(self.ahead, self.back, self.weights, self.shares)


@dataclass(frozen=True, slots=True)
class Step:
    """One training step. Microbatches in the middle that run like those before them are left out: `skipped` of them."""

    passes: tuple[Passes, ...]
    """One for each stage; where microbatches go both ways for each device, of its two stages the mean."""
    runs: tuple[Run, ...]
    """Those of the microbatches that are not skipped, as if there were no others."""
    microbatches: int
    chunks: int
    skipped: int
    drained: float
    """When the last pass of all microbatches ends."""
    pipeline: float
    """When it ends by the model's closed form."""
    after: tuple[tuple[str, float], ...]
    """What follows once, in this order."""
    total: float
    """Seconds of the step, as the model prices it."""
    both_ways: bool = False
    """Whether the second half of the microbatches goes up the stages."""


def step_of(instance: Instance, design: ChosenDesign) -> Step | None:
    """The step of a checked design; None for other workloads than a transformer, and where there are too many passes."""
    chosen = candidate_in(instance, design)
    workload, plan = instance.workload, chosen.plan
    if not isinstance(workload, Transformer) or not isinstance(plan, Plan):
        return None
    return step_on(workload, design_of(instance, chosen).hardware, instance.cluster, plan)


def step_on(model: Transformer, hardware: Hardware, cluster: Cluster, plan: Plan) -> Step | None:
    """The step of a plan on a device."""
    plans = table([plan])
    needed = terms(model, hardware, plans, parts_of(model, hardware, cluster, plans))
    stages = stage_passes(model, hardware, cluster, plan, needed)
    count = model.global_batch // (plan.microbatch * plan.data)
    found = _periodic(stages, count, plan.interleave, plan.schedule)
    if found is None:
        return None
    runs, skipped = found
    after = (
        ("gradient exchange", _number(exposed_exchange(needed))),
        ("weight publication", _number(needed.publish)),
        ("optimizer", _number(needed.optimizer)),
        ("overhead", _number(needed.overhead)),
        ("shared links", _number(step_time(needed) - unheld_time(needed))),
    )
    total = _number(step_time(needed))
    return Step(
        passes=stages,
        runs=tuple(runs),
        microbatches=count,
        chunks=plan.interleave,
        skipped=skipped,
        drained=max(run.end for run in runs) + skipped * max(stage.total for stage in stages),
        pipeline=total - sum(seconds for _, seconds in after),
        after=tuple((name, seconds) for name, seconds in after if seconds > 0.0),
        total=total,
        both_ways=plan.schedule == "dualpipe",
    )


def _exchanged(ahead: Pass) -> Real:
    """Exposed exchanges of a layer."""
    return ahead.exchanges() + np.maximum(ahead.context.hidden - ahead.core.time, 0.0)


def stage_passes(model: Transformer, hardware: Hardware, cluster: Cluster, plan: Plan, needed: Terms) -> tuple[Passes, ...]:
    """What each stage does for one microbatch; the parts add up to its slot in `crossflow.pipeline`."""
    plans = table([plan])
    parts = parts_of(model, hardware, cluster, plans)
    group = ranks(plans, lay_out(plans, cluster))
    forward, backward = passes(needed)
    split, messages = needed.split, needed.interleave * needed.transfer
    weights = needed.weights if plan.schedule != "1f1b" else np.float64(0.0)
    before = needed.inputs if plan.schedule not in ("1f1b", "dualpipe") else backward
    exposed = [window(split.least * way, needed.hidden_transfer, messages, needed.lost) - split.least * way for way in (forward, before)]
    inner = mean_over_kinds(model, lambda kind: _exchanged(forward_pass(kind, group, hardware)))
    sent = inner + (forward - needed.forward)
    layer = parts.layer
    if plan.expert_exchange == "hidden":
        inner = (layer.tensor + layer.context + layer.expert) * (needed.forward / (needed.forward + needed.backward))
        sent = inner + (forward - needed.forward)
    returned = (layer.tensor + layer.context + layer.expert) - inner + (backward - full_backward(needed))
    again = layer.recompute
    found = []
    for stage in range(plan.pipeline):
        layers = _number(split.on(np.float64(stage)))
        first, last = stage == 0, stage == (0 if plan.schedule == "zero-bubble-v" else plan.pipeline - 1)
        edges = [(needed.embedding, EMBEDDING_FORWARD)] * first + [(needed.head, HEAD_FORWARD)] * last
        beside = [sum(_number(time) * (share if way == 0 else 1.0 - share) for time, share in edges) for way in (0, 1)]
        found.append(
            Passes(
                forward=layers * _number(forward - sent) + beside[0],
                sent=layers * _number(sent) + _number(exposed[0]),
                again=layers * _number(again),
                backward=layers * _number(backward - again - returned - weights) + beside[1],
                returned=layers * _number(returned) + _number(exposed[1]),
                weights=layers * _number(weights),
                shares=_shares(int(layers), plan.interleave, first=first),
            )
        )
    return tuple(map(_mean, found, reversed(found))) if plan.schedule == "dualpipe" else tuple(found)


def _mean(first: Passes, second: Passes) -> Passes:
    """What a device with two stages does for one microbatch."""
    return Passes(*((a + b) / 2.0 for a, b in zip(astuple(first)[:6], astuple(second)[:6], strict=True)))


def _shares(layers: int, chunks: int, *, first: bool) -> tuple[float, ...]:
    return tuple(size / layers for size in chunk_sizes(layers, chunks, first=first)) if layers % chunks else ()


def _periodic(stages: tuple[Passes, ...], count: int, chunks: int, kind: Schedule) -> tuple[list[Run], int] | None:
    """The passes of all microbatches; where they are too many, of so few that as many more as there are stages take just as often the
    slowest stage's time, and how many microbatches are left out. None where those are too many too."""
    works = [stage.work for stage in stages]
    turn, slowest = len(stages), max(stage.total for stage in stages)
    most = MOST // ((2 if kind == "1f1b" else 3) * turn * chunks)
    if count <= most:
        return schedule(works, count, chunks, kind), 0
    some = count % turn + 4 * turn
    while some + turn <= most:
        shorter, longer = (schedule(works, number, chunks, kind) for number in (some, some + turn))
        if abs(_end(longer) - _end(shorter) - turn * slowest) <= _NEAR * turn * slowest:
            return shorter, count - some
        some += 4 * turn
    return None


def _end(runs: list[Run]) -> float:
    return max(run.end for run in runs)


def _number(value: object) -> float:
    return float(np.asarray(value).reshape(-1)[0])
