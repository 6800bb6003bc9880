"""Number of ring flows that share a link when parallel dimensions are placed on groups of square meshes.

The rule is that of DeepFlow (Ardalani et al., https://arxiv.org/abs/2211.03309; `deviceMapping.py` in nanocad-lab/DeepFlow).
Placement: the first dimension runs up and down the columns of its block. Each further dimension steps through blocks that hold all the
dimensions before it, along the rows, there and back. A block is as tall as the first dimension, then as wide as needed, then taller.
What outgrows a group goes on in the next one.
Flows: all dimensions talk at once, each member to the next. More than two members close a ring, unless the dimension is a chain.
Routes: along x first, then along y, walked from the left device to the right one. Between groups: from the lower group along x to its last
column, along y there, over its cross link of that row, one however far the higher group is, then along x in that group.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from math import ceil, prod

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.crossflow.bill import Bill, Items, PlanCosts, price_table
from crossopt.crossflow.collectives import (
    Exchange,
    Members,
    all_gather,
    all_reduce_time,
    all_to_all,
    each,
    exchange_energy,
    exchange_time,
    members_on_levels,
    ring_all_reduce,
)
from crossopt.crossflow.hardware import Cluster, Hardware, Link, devices_in, within_power
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.roofline import NOTHING, Cost, Product, product_cost
from crossopt.crossflow.workload import Gemm


@dataclass(frozen=True, slots=True)
class Mesh:
    """`groups` meshes of `side` x `side` devices, with one cross link per row between groups."""

    side: int
    groups: int = 1

    def __post_init__(self) -> None:
        if self.side < 1 or self.groups < 1:
            raise ValueError(f"a mesh needs a side and groups of at least 1, not {self.side} and {self.groups}")

    @property
    def devices(self) -> int:
        return self.side * self.side * self.groups


@dataclass(frozen=True, slots=True)
class LinkLoads:
    """Flows on the busiest link inside a group and between groups (0: unused), and the dimensions that leave a group."""

    inside: int
    across: int
    crossing: frozenset[str]


def link_loads(mesh: Mesh, sizes: Sequence[tuple[str, int]], chains: frozenset[str] = frozenset()) -> LinkLoads:
    """Flows on the busiest links if the dimensions, (name, size) in layout order, all communicate at once.

    A flow can count on the bandwidth of its link divided by this load.
    """
    _check_names([name for name, _ in sizes], chains)
    sites = placement(mesh, [size for _, size in sizes])
    flows = {name: _flows(sites, axis, name in chains) for axis, (name, _) in enumerate(sizes, start=1)}
    crossing = frozenset(name for name, (start, end) in flows.items() if np.any(start[0] != end[0]))
    start, end = (np.concatenate(ends, axis=1) for ends in zip(*flows.values(), strict=True))
    return LinkLoads(*_busiest(mesh, start, end), crossing)


def placement(mesh: Mesh, sizes: Sequence[int]) -> Ints:
    """Group, column and row of every device, of shape (3, *sizes) and indexed by the device's rank in each dimension."""
    _check_sizes(mesh, sizes)
    region = _Block(mesh.side, mesh.side, mesh.groups)
    active = [size for size in sizes if size > 1] or [1]  # a single member takes no place in the order
    index = np.indices(active, dtype=np.int64)
    sites = np.zeros((3, *active), dtype=np.int64)
    for axis in range(len(active) - 1, 0, -1):
        block = _block(active[:axis], region)
        sites += _along_rows(index[axis], block, region)
        region = block
    sites += _along_columns(index[0], region)
    return sites.reshape(3, *sizes)


@dataclass(frozen=True, slots=True)
class _Block:
    """A rectangle of devices inside one group, or several whole groups."""

    width: int
    height: int
    groups: int


def _check_names(names: Sequence[str], chains: frozenset[str]) -> None:
    if not names or len(set(names)) < len(names):
        raise ValueError(f"a layout names each dimension once, and at least one, not '{', '.join(names)}'")
    if unknown := chains.difference(names):
        raise ValueError(f"the chains '{', '.join(sorted(unknown))}' are not among the dimensions '{', '.join(names)}'")


def _check_sizes(mesh: Mesh, sizes: Sequence[int]) -> None:
    if min(sizes, default=1) < 1:
        raise ValueError(f"every dimension needs at least 1 member, not {_product(sizes)}")
    if prod(sizes) != mesh.devices:
        raise ValueError(f"the dimensions {_product(sizes)} hold {prod(sizes)} devices, but the mesh has {mesh.devices}")


def _product(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


def _block(sizes: Sequence[int], region: _Block) -> _Block:
    """The block filled by dimensions of these sizes: the first along y, the rest along x, then along y again."""
    area = region.width * region.height
    groups = max(1, prod(sizes) // area)
    devices = prod(sizes) // groups
    height = max(min(sizes[0], region.height), devices // region.width)
    block = _Block(devices // height, height, groups)
    exact = block.width * height * groups == prod(sizes)
    if not exact or region.width % block.width or region.height % height:
        raise ValueError(f"dimensions {_product(sizes)} fill no whole blocks of {region.groups} x {region.width} x {region.height} devices")
    return block


def _along_rows(index: Ints, block: _Block, region: _Block) -> Ints:
    """Group, column and row of the first device of a block; blocks are numbered row by row in alternating direction."""
    columns = region.width // block.width
    group, rank = np.divmod(index, columns * (region.height // block.height))
    row, column = _there_and_back(rank, columns)
    return np.stack([group * block.groups, column * block.width, row * block.height])


def _along_columns(index: Ints, region: _Block) -> Ints:
    """Group, column and row of a device; devices are numbered column by column in alternating direction."""
    group, rank = np.divmod(index, region.width * region.height)
    column, row = _there_and_back(rank, region.height)
    return np.stack([group, column, row])


def _there_and_back(rank: Ints, length: int) -> tuple[Ints, Ints]:
    """Line and position of a step of a walk that alternates direction with each line."""
    line, position = np.divmod(rank, length)
    return line, np.where(line % 2, length - 1 - position, position)


def _flows(sites: Ints, axis: int, is_chain: bool) -> tuple[Ints, Ints]:
    """Start and end sites, each of shape (3, flows), of messages from each member of a dimension to the next."""
    size = sites.shape[axis]
    members = np.arange(size - 1 if is_chain or size <= 2 else size)
    start, end = sites.take(members, axis), sites.take((members + 1) % size, axis)
    return start.reshape(3, -1), end.reshape(3, -1)


def _busiest(mesh: Mesh, start: Ints, end: Ints) -> tuple[int, int]:
    """Flows on the busiest link inside a group and on the busiest between groups."""
    backward = (end[0] < start[0]) | ((end[0] == start[0]) & (end[1] < start[1]))
    group, x, y = np.where(backward, end, start)
    far_group, far_x, far_y = np.where(backward, start, end)
    leaves, down = group != far_group, far_y < y
    turn = np.where(leaves, mesh.side - 1, far_x)

    along_x = _cover(mesh, group, y, x, turn)
    along_x += _cover(mesh, far_group, far_y, np.zeros_like(x), np.where(leaves, far_x, 0))
    # Two conventions of the source: up and down share the port of the device a hop leaves, hence the shift by `down`,
    # and the column on the way to another group is that of the group where the flow starts, not where its route does.
    along_y = _cover(mesh, start[0], turn, np.minimum(y, far_y) + down, np.maximum(y, far_y) + down)
    across = np.bincount((group * mesh.side + far_y)[leaves], minlength=1)
    return int(max(along_x.max(), along_y.max())), int(across.max())


def _cover(mesh: Mesh, group: Ints, line: Ints, low: Ints, high: Ints) -> Ints:
    """Number of the spans low <= place < high that cover each place of each line of each group."""
    change = np.zeros((mesh.groups, mesh.side, mesh.side + 1), dtype=np.int64)
    np.add.at(change, (group, line, low), 1)
    np.add.at(change, (group, line, high), -1)
    return change.cumsum(axis=-1)


# A matrix product C[M, N] = A[M, K] B[K, N] on a grid of devices: each device's products and exchanges, forward and backward.
#
# B are weights, A and C pass from product to product. Two cuts (Ardalani et al. 2022, arXiv 2211.03309), over r rows and c columns:
#
#                     inner                                  rows-columns
#     forward         M x K/r x N                            M/r x K x N/c
#                     scatter the sum of M x N over r        gather M/r x N over c
#     backward, dA    gather M x N over r                    gather M/r x N over c
#                     M x N x K/r                            M/r x N x K/c
#     backward, dB    (the same M x N)                       gather M x N/c over r, exchange K x M for K/r x M over r
#                     K/r x M x N                            K/r x M x N/c
#     weights         K/r x N                                K x N/c forward, K/c x N backward
#     own gradients   K/r x N                                K/r x N/c
#
# In the rows-columns cut each rank updates the weights whose gradients it owns; then they are gathered over the rows, and exchanged over
# the columns into the second form, once a step. Sizes that do not divide are those of the fullest device.


@dataclass(frozen=True, slots=True)
class Grid:
    """The ranks that share a product, and the placement of a plan's groups on the network."""

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
    def output_members(self) -> Members:
        """Ranks over which the columns of a result are split."""
        return self.row_members if self.inner else self.column_members


@dataclass(frozen=True, slots=True)
class Share:
    """Work and communication of one device for a distributed product."""

    products: tuple[Product, ...]
    exchanges: tuple[Exchange, ...]


def grid(plan: KernelPlan, cluster: Cluster) -> Grid:
    """Place a plan on the network: columns on neighbouring devices, then rows, layers and data."""
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


def forward(product: Product, value_bytes: float, cut: Grid) -> Share:
    """C = A B."""
    rows, depth, columns = _sizes(product)
    if cut.inner:
        scatter = all_gather(value_bytes * rows * columns, cut.row_members)
        return Share((Product(rows, _part(depth, cut.rows), columns),), (scatter,))
    height = _part(rows, cut.rows)
    gather = all_gather(value_bytes * height * columns, cut.column_members)
    return Share((Product(height, depth, _part(columns, cut.columns)),), (gather,))


def backward(product: Product, value_bytes: float, cut: Grid) -> Share:
    """dA = dC B^T and dB = A^T dC."""
    by_input, by_weight = input_gradient(product, value_bytes, cut), weight_gradient(product, value_bytes, cut)
    return Share(by_input.products + by_weight.products, by_input.exchanges + by_weight.exchanges)


def input_gradient(product: Product, value_bytes: float, cut: Grid) -> Share:
    """dA = dC B^T. With an inner split it needs only what the weight gradient has gathered."""
    rows, depth, columns = _sizes(product)
    if cut.inner:
        return Share((Product(rows, columns, _part(depth, cut.rows)),), ())
    height = _part(rows, cut.rows)
    gather = all_gather(value_bytes * height * columns, cut.column_members)
    return Share((Product(height, columns, _part(depth, cut.columns)),), (gather,))


def weight_gradient(product: Product, value_bytes: float, cut: Grid) -> Share:
    """dB = A^T dC."""
    rows, depth, columns = _sizes(product)
    gather = gather_output_gradient(product, value_bytes, cut)
    if cut.inner:
        return Share((Product(_part(depth, cut.rows), rows, columns),), (gather,))
    transpose = all_to_all(value_bytes * depth * _part(rows, cut.rows), cut.row_members)
    return Share((Product(_part(depth, cut.rows), rows, _part(columns, cut.columns)),), (transpose, gather))


def gather_output_gradient(product: Product, value_bytes: float, cut: Grid) -> Exchange:
    """All-gather of all rows of dC for the columns whose weights the rank owns."""
    rows, _, columns = _sizes(product)
    return all_gather(value_bytes * rows * _part(columns, cut.columns), cut.row_members)


def reduce_gradients(size: float, cut: Grid, links: tuple[Link, ...]) -> Cost:
    """Seconds and joules per device to reduce `size` bytes of gradients, of all ranks of a grid, over the replicas."""
    own = size / cut.ranks
    return Cost(all_reduce_time(own, cut.data_members, links), exchange_energy(ring_all_reduce(own, cut.data_members), links), 0.0)


def publish_weights(size: float, cut: Grid, links: tuple[Link, ...]) -> Cost:
    """Seconds and joules per device to gather `size` bytes of updated weights, of all ranks, for forward products."""
    return NOTHING if cut.inner else exchange_cost((all_gather(size / cut.columns, cut.row_members),), links)


def transpose_weights(size: float, cut: Grid, links: tuple[Link, ...]) -> Cost:
    """Seconds and joules per device to convert `size` bytes of weights, of all ranks, to the layout of backward products."""
    return exchange_cost((all_to_all(size / cut.columns, cut.column_members),), links)


def products_cost(share: Share, value_bytes: float, hardware: Hardware) -> Cost:
    """Cost of a device's products in sequence."""
    return _total(product_cost(product, value_bytes, hardware) for product in share.products)


def exchange_cost(exchanges: tuple[Exchange, ...], links: tuple[Link, ...]) -> Cost:
    """Seconds and joules of a device's communication in sequence, counted as no kernels."""
    return _total(Cost(exchange_time(exchange, links), exchange_energy(exchange, links), 0.0) for exchange in exchanges)


def _total(costs: Iterable[Cost]) -> Cost:
    return reduce(Cost.__add__, costs, NOTHING)


def _layout(plan: KernelPlan) -> tuple[tuple[str, int], ...]:
    """The dimensions of a plan, innermost first."""
    return (("columns", plan.columns), ("rows", plan.rows), ("layers", plan.layers), ("data", plan.data))


def _sizes(product: Product) -> tuple[float, float, float]:
    return float(product.rows), float(product.depth), float(product.columns)


def _part(size: float, ranks: int) -> float:
    return float(ceil(size / ranks))


# The price of one distributed matrix product, forward only: for tests and teaching.


def bill(gemm: Gemm, hardware: Hardware, cluster: Cluster, plan: KernelPlan) -> Bill:
    """The cost breakdown of a plan, which must satisfy `crossflow.kernels.kernel_plan.broken_rules`."""
    full = Product(float(gemm.rows), float(gemm.depth), float(gemm.columns))
    share = forward(full, gemm.value_bytes, grid(plan, cluster))
    product, exchange = products_cost(share, gemm.value_bytes, hardware), exchange_cost(share.exchanges, hardware.links)
    launched = np.maximum(product.time, hardware.efficiency.host * product.kernels)
    work = plan.devices * (product.energy + exchange.energy)
    time = within_power(launched + exchange.time, work, plan.devices, hardware)
    wait = time - (launched + exchange.time)
    return Bill(
        step_time=time,
        time=(("matrix products", product.time), ("launch", launched - product.time), ("exchange", exchange.time), ("power limit", wait)),
        memory=memory(gemm, plan),
        energy=work + plan.devices * (hardware.idle_power * time),
        flops=2.0 * gemm.rows * gemm.depth * gemm.columns,
    )


def price(gemm: Gemm, hardware: Hardware, cluster: Cluster, plans: Sequence[KernelPlan]) -> PlanCosts:
    """Costs of every plan on every device."""
    return price_table((bill(gemm, hardware, cluster, plan) for plan in plans), devices_in(hardware))


def memory(gemm: Gemm, plan: KernelPlan) -> Items:
    """Bytes by use on one device; a result that is reduced or gathered is held in full."""
    rows, depth, columns = float(gemm.rows), float(gemm.depth), float(gemm.columns)
    if plan.split == "inner":
        sizes = rows * depth / plan.rows, depth / plan.rows * columns, rows * columns
    else:
        sizes = rows / plan.rows * depth, depth * columns / plan.columns, rows / plan.rows * columns
    return tuple((name, gemm.value_bytes * size) for name, size in zip(("input", "weights", "result"), sizes, strict=True))
