"""What a report shows of the operators of a layer: FLOPs, bytes that cross into each memory, and seconds, for one microbatch on one device.

FLOPs and bytes are those that the model charges energy for: an operator's energy on a device where a FLOP, or a byte of one memory, costs a
joule and nothing else does. So they are counted by the formulas that price the operator, and by no others.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Final, Literal

import numpy as np

from crossopt.crossflow.edges import head
from crossopt.crossflow.exchanges.context import around_attention
from crossopt.crossflow.hardware import Cluster, Hardware, Link
from crossopt.crossflow.kernels.layer_kernels import attention_core, attention_core_backward, element_wise
from crossopt.crossflow.layer import trained_costs
from crossopt.crossflow.layout import lay_out
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.projections import WIDE, adapters, named_projections
from crossopt.crossflow.ranks import Ranks
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.roofline import Cost, backward_costs, product_cost
from crossopt.crossflow.transformer import ranks
from crossopt.crossflow.workload import NARROW, Transformer, feed_forward_kinds, layer_kinds
from crossopt.instances.codesign.instance import Instance
from crossopt.solvers.codesign.answer import ChosenDesign, candidate_in, design_of

Level = Literal["dram", "l2", "l1", "registers"]
MEMORIES: Final[tuple[tuple[str, Level], ...]] = (("memory", "dram"), ("L2", "l2"), ("L1", "l1"), ("registers", "registers"))
"""Levels as people call them, and as the model does, outermost first."""


@dataclass(frozen=True, slots=True)
class Work:
    """One operator in one direction."""

    name: str
    backward: bool
    seconds: float
    flops: float
    moved: tuple[float, ...]
    """Bytes that cross into each of `MEMORIES`."""


@dataclass(frozen=True, slots=True)
class Roofs:
    """The operators and what bounds them."""

    works: tuple[Work, ...]
    matrix: float
    """FLOP/s of the matrix engines."""
    vector: float
    bandwidths: tuple[float, ...]
    """Bytes a second of each of `MEMORIES`."""


def roofs_of(instance: Instance, design: ChosenDesign) -> Roofs | None:
    """Those of a checked design; None for other workloads than a transformer."""
    chosen = candidate_in(instance, design)
    if not isinstance(instance.workload, Transformer) or not isinstance(chosen.plan, Plan):
        return None
    return roofs_on(instance.workload, design_of(instance, chosen).hardware, instance.cluster, chosen.plan)


def roofs_on(model: Transformer, hardware: Hardware, cluster: Cluster, plan: Plan) -> Roofs:
    """Those of a plan on a device."""
    plans = table([plan])
    group = ranks(plans, lay_out(plans, cluster))
    still = replace(hardware, links=tuple(Link(np.inf, 0.0) for _ in hardware.links))
    counted = [_energies(model, group, device) for device in (_flops(still), *_bytes(still))]
    works = tuple(
        Work(name, back, _number(cost.time), counted[0][name, back], tuple(amounts[name, back] for amounts in counted[1:]))
        for name, back, cost in _costs(model, group, still)
    )
    return Roofs(
        works=works,
        matrix=float(hardware.throughput),
        vector=float(hardware.vector_throughput),
        bandwidths=tuple(float(getattr(hardware, level).bandwidth) for _, level in MEMORIES),
    )


def _energies(model: Transformer, group: Ranks, hardware: Hardware) -> dict[tuple[str, bool], float]:
    return {(name, back): _number(cost.energy) for name, back, cost in _costs(model, group, hardware)}


def _flops(hardware: Hardware) -> Hardware:
    """A device on which a FLOP costs a joule and nothing else does."""
    silent = {level: replace(getattr(hardware, level), energy=0.0) for _, level in MEMORIES}
    return replace(hardware, energy_per_flop=1.0, **silent)


def _bytes(hardware: Hardware) -> Iterator[Hardware]:
    """Devices on which a byte into one of the memories does."""
    silent = replace(_flops(hardware), energy_per_flop=0.0)
    for _, level in MEMORIES:
        one = replace(getattr(silent, level), energy=1.0)
        yield replace(silent, **{level: one})


def _costs(model: Transformer, group: Ranks, hardware: Hardware) -> Iterator[tuple[str, bool, Cost]]:
    """Every operator of a layer, and the head, which is priced in both directions together. Where the first layers are dense, their own
    operators follow; where some layers have a window, their attention does. Attention is with what puts its steps together where keys and
    values come by in a ring."""
    kinds = [kind for _, kind in feed_forward_kinds(model)]
    for kind, what, only in [(kinds[-1], "", ()), *((kind, "dense ", ("inner product", "outer product")) for kind in kinds[:-1])]:
        for name, product in named_projections(kind, group):
            if not only or name in only:
                size = model.activation_bytes if name in WIDE else model.value_bytes
                yield what + name, False, product_cost(product, size, hardware)
                [backward] = trained_costs((product,), model, size, hardware)
                yield what + name, True, backward
    if model.lora_rank:
        beside = adapters(kinds[-1], group)
        yield "adapters", False, reduce(add, (product_cost(product, model.activation_bytes, hardware) for product in beside))
        yield "adapters", True, reduce(add, backward_costs(beside, model.activation_bytes, hardware))
    for number, (_, kind) in enumerate(layer_kinds(kinds[-1])):
        what = "attention in a window" if number else "attention"
        for back, core in enumerate((attention_core, attention_core_backward)):
            yield what, bool(back), around_attention(core(kind, group, hardware), kind, group, hardware, bool(back))[0]
    model = kinds[-1]
    for back in (False, True):
        side = element_wise(model, group, hardware, back)
        yield "norms", back, side.norms
        yield "additions", back, side.residuals
        yield "activation", back, side.activation
        if model.experts > 1:
            yield "routing", back, side.routing
        if model.precision in NARROW:
            yield "casts", back, side.casts
    yield "head and loss", True, head(model, group, hardware)


def _number(value: object) -> float:
    return float(np.asarray(value).reshape(-1)[0])
