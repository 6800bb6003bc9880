"""Placement of the groups of a plan on the network: ranks of each parallel dimension per node, per pod and in total."""

from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.crossflow.collectives import Spread, anywhere, each, either, members_on_levels, together
from crossopt.crossflow.hardware import Cluster
from crossopt.crossflow.plan import DIMENSIONS, PLACEMENTS, Plans
from crossopt.crossflow.records import dataclass

_ORDER = np.array([[name.split("-").index(dimension) for dimension in DIMENSIONS] for name in PLACEMENTS], np.int64)
"""For each placement, the position of each dimension, 0 being innermost."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Spread of each kind of group, with columns over plans to combine with rows over devices. Gradients are reduced over data and context
    ranks together (`shared`); those of expert weights over the ranks that hold the same experts (`routed`). Where experts are folded,
    theirs lie over all ranks of a stage. Where ZeRO shares in groups, these are the ranks of one group, and `across` are those of all
    groups that hold the same part."""

    tensor: Spread
    context: Spread
    pipeline: Spread
    expert: Spread
    shared: Spread
    routed: Spread
    across: Spread
    expert_tensor: Spread
    """Ranks that share an expert if experts are folded; else ranks of one expert."""


def lay_out(plans: Plans, cluster: Cluster) -> Layout:
    """Lay the dimensions on the devices in the order of each plan's placement."""
    degrees = (plans.tensor, plans.context, plans.data, plans.pipeline)
    position = _ORDER[plans.placement]
    strides = [_stride(position, which, degrees) for which in range(len(DIMENSIONS))]
    sizes, apart = cluster.level_sizes, strides[2]
    sharing = np.where(plans.shard > 0, plans.shard // plans.context, plans.data)
    tensor, context, pipeline, data, replicas, across, experts, shares = _spreads(
        (plans.tensor, strides[0]),
        (plans.context, strides[1]),
        (plans.pipeline, strides[3]),
        (sharing, apart),
        (sharing // plans.expert, apart * plans.expert),
        (plans.data // sharing, apart * sharing),
        (plans.expert, apart),
        (np.ones_like(plans.expert), apart),
        sizes=sizes,
    )
    routed = together(context, replicas)
    if np.any(plans.expert_tensor):
        folded = _folded(plans, np.minimum(np.minimum(strides[0], strides[1]), strides[2]), sizes)
        own = np.greater(plans.expert_tensor, 0)[:, None]
        shares, experts, routed = (either(own, new, old) for new, old in zip(folded, (shares, experts, routed), strict=True))
    return Layout(
        tensor=tensor,
        context=context,
        pipeline=pipeline,
        expert=experts,
        shared=together(context, data),
        routed=routed,
        across=across,
        expert_tensor=shares,
    )


def laid_at(layout: Layout, rows: Ints) -> Layout:
    """The layout of some of the plans."""
    return Layout(*(each(lambda part: np.asarray(part)[rows], getattr(layout, field.name)) for field in fields(Layout)))


def in_turn(layout: Layout) -> Layout:
    """The layout with even placement unknown, so that gathers run along one axis after the other. Messages keep their paths."""
    names = (field.name for field in fields(Layout) if field.name not in ("context", "pipeline"))
    return replace(layout, **{name: anywhere(getattr(layout, name)) for name in names})


def _folded(plans: Plans, stride: Ints, sizes: tuple[int, ...]) -> tuple[Spread, Spread, Spread]:
    """Ranks of one expert, of all experts, and replicas of an expert, laid over tensor, context and data ranks together in this order (Liu
    et al. 2025, arXiv:2504.14960): tensor x context x data = expert_tensor x expert x replicas."""
    shares = np.maximum(plans.expert_tensor, 1)
    replicas = np.maximum(plans.tensor * plans.context * plans.data // (shares * plans.expert), 1)
    strides = (stride, stride * shares, stride * shares * plans.expert)
    expert_shares, all_of_them, copies = _spreads(*zip((shares, plans.expert, replicas), strides, strict=True), sizes=sizes)
    return expert_shares, all_of_them, copies


def _spreads(*groups: tuple[Ints, Ints], sizes: tuple[int, ...]) -> Iterator[Spread]:
    """Spread of groups of these degrees and strides, all kinds in one table; for few plans, every table costs the same fixed time."""
    degrees, strides = (np.stack(columns) for columns in zip(*groups, strict=True))
    found = members_on_levels(degrees, strides, sizes)
    return (each(lambda part, row=row: np.asarray(part)[row][:, None], found) for row in range(len(groups)))


def _stride(position: Ints, which: int, degrees: tuple[Ints, ...]) -> Ints:
    """Distance between neighbours of one dimension: the product of the degrees placed inside it."""
    stride = np.ones_like(degrees[0])
    for other, degree in enumerate(degrees):
        stride = stride * np.where(position[:, other] < position[:, which], degree, 1)
    return stride
