"""A matrix product C[M, N] = A[M, K] B[K, N] on a grid of devices: each device's products and exchanges, forward and backward.

B are weights, A and C pass from product to product. Two cuts (Ardalani et al. 2022, arXiv 2211.03309), over r rows and c columns:

                    inner                                  rows-columns
    forward         M x K/r x N                            M/r x K x N/c
                    scatter the sum of M x N over r        gather M/r x N over c
    backward, dA    gather M x N over r                    gather M/r x N over c
                    M x N x K/r                            M/r x N x K/c
    backward, dB    (the same M x N)                       gather M x N/c over r, exchange K x M for K/r x M over r
                    K/r x M x N                            K/r x M x N/c
    weights         K/r x N                                K x N/c forward, K/c x N backward
    own gradients   K/r x N                                K/r x N/c

In the rows-columns cut each rank updates the weights whose gradients it owns; then they are gathered over the rows, and exchanged over
the columns into the second form, once a step. Sizes that do not divide are those of the fullest device.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from math import ceil

import numpy as np

from crossopt.crossflow.collectives import (
    Exchange,
    Members,
    all_gather,
    all_reduce_time,
    all_to_all,
    exchange_energy,
    exchange_time,
    members_on_levels,
    ring_all_reduce,
)
from crossopt.crossflow.exchanges.spread import each
from crossopt.crossflow.hardware import Cluster, Hardware, Link
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.kernels.mesh import Mesh, link_loads
from crossopt.crossflow.roofline import NOTHING, Cost, Product, product_cost


@dataclass(frozen=True, slots=True)
class Grid:
    """The ranks that share a product, and where the groups of a plan lie on the network."""

    inner: bool
    rows: int
    columns: int
    row_members: Members
    column_members: Members
    layer_members: Members
    data_members: Members

    @property
    def ranks(self) -> int:
        return self.rows * self.columns

    @property
    def weight_ranks(self) -> int:
        """Over how many ranks the weights are spread; the ranks of a column hold the same ones."""
        return self.rows if self.inner else self.columns

    @property
    def output_members(self) -> Members:
        """The ranks over which the columns of a result lie."""
        return self.row_members if self.inner else self.column_members


@dataclass(frozen=True, slots=True)
class Share:
    """What one device does of a distributed product."""

    products: tuple[Product, ...]
    exchanges: tuple[Exchange, ...]


def grid(plan: KernelPlan, cluster: Cluster) -> Grid:
    """Lay a plan on the network: columns on neighbouring devices, then rows, layers and data."""
    members, stride = {}, 1
    for name, degree in _layout(plan):
        spread = members_on_levels(np.array(degree), np.array(stride), cluster.level_sizes)
        members[name] = each(float, spread)
        stride *= degree
    return Grid(
        inner=plan.split == "inner",
        rows=plan.rows,
        columns=plan.columns,
        row_members=members["rows"],
        column_members=members["columns"],
        layer_members=members["layers"],
        data_members=members["data"],
    )


def shared_links(links: tuple[Link, ...], plan: KernelPlan, mesh: Mesh) -> tuple[Link, ...]:
    """The links as one ring sees them when all groups of the plan talk at once on groups of square meshes.

    Bandwidth of the level inside a group, then of the level between groups, over the flows on its busiest link. A worst case: in the
    model itself exchanges come one after the other.
    """
    loads = link_loads(mesh, _layout(plan), chains=frozenset({"layers"}))
    flows = (loads.inside, loads.across)[: len(links)]
    return tuple(replace(link, bandwidth=link.bandwidth / max(load, 1)) for link, load in zip(links, flows, strict=True))


def forward(whole: Product, value_bytes: float, cut: Grid) -> Share:
    """C = A B."""
    rows, depth, columns = _sizes(whole)
    if cut.inner:
        scatter = all_gather(value_bytes * rows * columns, cut.row_members)
        return Share((Product(rows, _part(depth, cut.rows), columns),), (scatter,))
    height = _part(rows, cut.rows)
    gather = all_gather(value_bytes * height * columns, cut.column_members)
    return Share((Product(height, depth, _part(columns, cut.columns)),), (gather,))


def backward(whole: Product, value_bytes: float, cut: Grid) -> Share:
    """dA = dC B^T and dB = A^T dC."""
    by_input, by_weight = input_gradient(whole, value_bytes, cut), weight_gradient(whole, value_bytes, cut)
    return Share(by_input.products + by_weight.products, by_input.exchanges + by_weight.exchanges)


def input_gradient(whole: Product, value_bytes: float, cut: Grid) -> Share:
    """dA = dC B^T. With an inner cut it needs no more than the gradient of the weights has gathered."""
    rows, depth, columns = _sizes(whole)
    if cut.inner:
        return Share((Product(rows, columns, _part(depth, cut.rows)),), ())
    height = _part(rows, cut.rows)
    gather = all_gather(value_bytes * height * columns, cut.column_members)
    return Share((Product(height, columns, _part(depth, cut.columns)),), (gather,))


def weight_gradient(whole: Product, value_bytes: float, cut: Grid) -> Share:
    """dB = A^T dC."""
    rows, depth, columns = _sizes(whole)
    gather = gather_output_gradient(whole, value_bytes, cut)
    if cut.inner:
        return Share((Product(_part(depth, cut.rows), rows, columns),), (gather,))
    transpose = all_to_all(value_bytes * depth * _part(rows, cut.rows), cut.row_members)
    return Share((Product(_part(depth, cut.rows), rows, _part(columns, cut.columns)),), (transpose, gather))


def gather_output_gradient(whole: Product, value_bytes: float, cut: Grid) -> Exchange:
    """All rows of dC, in the columns for which the rank owns weights."""
    rows, _, columns = _sizes(whole)
    return all_gather(value_bytes * rows * _part(columns, cut.columns), cut.row_members)


def reduce_gradients(size: float, cut: Grid, links: tuple[Link, ...]) -> Cost:
    """Seconds and joules of a device to add up `size` bytes of gradients, of all ranks of a grid, over the replicas."""
    own = size / cut.ranks
    return Cost(all_reduce_time(own, cut.data_members, links), exchange_energy(ring_all_reduce(own, cut.data_members), links), 0.0)


def publish_weights(size: float, cut: Grid, links: tuple[Link, ...]) -> Cost:
    """Seconds and joules of a device to gather `size` bytes of updated weights, of all ranks, for the forward products."""
    return NOTHING if cut.inner else exchange_cost((all_gather(size / cut.columns, cut.row_members),), links)


def transpose_weights(size: float, cut: Grid, links: tuple[Link, ...]) -> Cost:
    """Seconds and joules of a device to bring `size` bytes of weights, of all ranks, into the form of the backward products."""
    return exchange_cost((all_to_all(size / cut.columns, cut.column_members),), links)


def products_cost(share: Share, value_bytes: float, hardware: Hardware) -> Cost:
    """Cost of a device's products, one after the other."""
    return _total(product_cost(product, value_bytes, hardware) for product in share.products)


def exchange_cost(exchanges: tuple[Exchange, ...], links: tuple[Link, ...]) -> Cost:
    """Seconds and joules of a device's exchanges, one after the other; they count as no kernels."""
    return _total(Cost(exchange_time(exchange, links), exchange_energy(exchange, links), 0.0) for exchange in exchanges)


def _total(costs: Iterable[Cost]) -> Cost:
    return reduce(Cost.__add__, costs, NOTHING)


def _layout(plan: KernelPlan) -> tuple[tuple[str, int], ...]:
    """The dimensions of a plan, innermost first."""
    return (("columns", plan.columns), ("rows", plan.rows), ("layers", plan.layers), ("data", plan.data))


def _sizes(whole: Product) -> tuple[float, float, float]:
    return float(whole.rows), float(whole.depth), float(whole.columns)


def _part(size: float, ranks: int) -> float:
    return float(ceil(size / ranks))
