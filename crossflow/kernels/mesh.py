"""How many ring flows share a link when parallel dimensions are laid on groups of square meshes.

The rule is that of DeepFlow (Ardalani et al., https://arxiv.org/abs/2211.03309; `deviceMapping.py` in nanocad-lab/DeepFlow).
Placement: the first dimension runs up and down the columns of its block. Each further dimension steps through blocks that hold all the
dimensions before it, along the rows, there and back. A block is as tall as the first dimension, then as wide as needed, then taller.
What outgrows a group goes on in the next one.
Flows: all dimensions talk at once, each member to the next. More than two members close a ring, unless the dimension is a chain.
Routes: along x first, then along y, walked from the left device to the right one. Between groups: from the lower group along x to its last
column, along y there, over its cross link of that row, one however far the higher group is, then along x in that group.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from crossopt.crossflow.arrays import Whole


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
    """Flows on the busiest links when the dimensions, (name, size) in layout order, all talk at once.

    A flow can count on the bandwidth of its link divided by this load.
    """
    _check_names([name for name, _ in sizes], chains)
    sites = placement(mesh, [size for _, size in sizes])
    flows = {name: _flows(sites, axis, name in chains) for axis, (name, _) in enumerate(sizes, start=1)}
    crossing = frozenset(name for name, (start, end) in flows.items() if np.any(start[0] != end[0]))
    start, end = (np.concatenate(ends, axis=1) for ends in zip(*flows.values(), strict=True))
    return LinkLoads(*_busiest(mesh, start, end), crossing)


def placement(mesh: Mesh, sizes: Sequence[int]) -> Whole:
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
    """The block that dimensions of these sizes fill: the first along y, the rest along x, then along y again."""
    area = region.width * region.height
    groups = max(1, prod(sizes) // area)
    devices = prod(sizes) // groups
    height = max(min(sizes[0], region.height), devices // region.width)
    block = _Block(devices // height, height, groups)
    exact = block.width * height * groups == prod(sizes)
    if not exact or region.width % block.width or region.height % height:
        raise ValueError(f"dimensions {_product(sizes)} fill no whole blocks of {region.groups} x {region.width} x {region.height} devices")
    return block


def _along_rows(index: Whole, block: _Block, region: _Block) -> Whole:
    """Group, column and row of the first device of a block, counted through the region row by row, there and back."""
    columns = region.width // block.width
    group, rank = np.divmod(index, columns * (region.height // block.height))
    row, column = _there_and_back(rank, columns)
    return np.stack([group * block.groups, column * block.width, row * block.height])


def _along_columns(index: Whole, region: _Block) -> Whole:
    """Group, column and row of a device, counted through the region column by column, up and down."""
    group, rank = np.divmod(index, region.width * region.height)
    column, row = _there_and_back(rank, region.height)
    return np.stack([group, column, row])


def _there_and_back(rank: Whole, length: int) -> tuple[Whole, Whole]:
    """The line and the place in it of a walk that turns round at the end of every line."""
    line, place = np.divmod(rank, length)
    return line, np.where(line % 2, length - 1 - place, place)


def _flows(sites: Whole, axis: int, is_chain: bool) -> tuple[Whole, Whole]:
    """Start and end sites, each of shape (3, flows), of each member of a dimension talking to the next."""
    size = sites.shape[axis]
    members = np.arange(size - 1 if is_chain or size <= 2 else size)
    start, end = sites.take(members, axis), sites.take((members + 1) % size, axis)
    return start.reshape(3, -1), end.reshape(3, -1)


def _busiest(mesh: Mesh, start: Whole, end: Whole) -> tuple[int, int]:
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


def _cover(mesh: Mesh, group: Whole, line: Whole, low: Whole, high: Whole) -> Whole:
    """How many of the spans low <= place < high cover each place of each line of each group."""
    change = np.zeros((mesh.groups, mesh.side, mesh.side + 1), dtype=np.int64)
    np.add.at(change, (group, line, low), 1)
    np.add.at(change, (group, line, high), -1)
    return change.cumsum(axis=-1)
