"""Loads of mesh links: worked by hand, against a hop-by-hop walk, and against the public code's own factors."""

import csv
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.kernels.distributed_product import LinkLoads, Mesh, link_loads, placement
from tests.paths import reference

DERATES = "crossflow/derates.csv"
NAMES = ("kp1", "kp2", "dp", "lp")
NOTHING = frozenset[str]()
CHAINS = frozenset({"lp"})

Layout = tuple[Mesh, tuple[tuple[str, int], ...]]


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Powers of two dealt to the four dimensions, in any order, on a mesh that they fill."""
    side, groups = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    dealt = Counter(draw(st.lists(st.sampled_from(NAMES), min_size=2 * side + groups, max_size=2 * side + groups)))
    return Mesh(2**side, 2**groups), tuple((name, 2 ** dealt[name]) for name in draw(st.permutations(NAMES)))


# By hand.


def test_a_single_device_loads_no_link() -> None:
    assert link_loads(Mesh(1), (("dp", 1), ("lp", 1))) == LinkLoads(0, 0, NOTHING)


def test_a_ring_of_four_has_a_link_of_its_own_on_every_side_of_the_square() -> None:
    assert link_loads(Mesh(2), (("dp", 4),)) == LinkLoads(1, 0, NOTHING)


def test_the_way_back_of_a_long_ring_is_its_second_load() -> None:
    """On 4 x 4 the ring runs up and down the columns and home along the first row, over a link that it already used."""
    assert link_loads(Mesh(4), (("dp", 16),)) == LinkLoads(2, 0, NOTHING)
    assert link_loads(Mesh(8), (("dp", 64),)) == LinkLoads(2, 0, NOTHING)


def test_a_chain_does_not_come_back() -> None:
    assert link_loads(Mesh(4), (("lp", 16),), CHAINS) == LinkLoads(1, 0, NOTHING)
    assert link_loads(Mesh(1, 4), (("lp", 4),), CHAINS) == LinkLoads(0, 1, CHAINS)


def test_two_dimensions_share_links() -> None:
    assert link_loads(Mesh(8), (("kp2", 2), ("dp", 32))) == LinkLoads(4, 0, NOTHING)
    assert link_loads(Mesh(8), (("dp", 32), ("kp2", 2))) == LinkLoads(4, 0, NOTHING)


def test_a_ring_of_groups_comes_home_over_the_cross_link_of_the_first() -> None:
    assert link_loads(Mesh(1, 2), (("dp", 2),)) == LinkLoads(0, 1, frozenset({"dp"}))
    assert link_loads(Mesh(1, 4), (("dp", 4),)) == LinkLoads(0, 2, frozenset({"dp"}))


def test_devices_of_a_row_share_its_cross_link() -> None:
    """Two 2 x 2 groups, each a ring of its own: a row's two devices send over its one cross link, the left one along the ring's link."""
    assert link_loads(Mesh(2, 2), (("kp1", 4), ("dp", 2))) == LinkLoads(2, 2, frozenset({"dp"}))


def test_the_first_dimension_runs_up_and_down_the_columns() -> None:
    group, x, y = placement(Mesh(2, 2), (8,))
    assert group.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert x.tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
    assert y.tolist() == [0, 1, 1, 0, 0, 1, 1, 0]


def test_the_second_dimension_runs_along_the_rows_and_back() -> None:
    _, x, y = placement(Mesh(4), (2, 8))
    assert x.tolist() == [[0, 1, 2, 3, 3, 2, 1, 0]] * 2
    assert y.tolist() == [[0, 0, 0, 0, 2, 2, 2, 2], [1, 1, 1, 1, 3, 3, 3, 3]]


# Against the rule, walked hop by hop.


def flows(sites: np.ndarray, sizes: tuple[tuple[str, int], ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for rank in np.ndindex(sites.shape[1:]):
        for axis, (name, size) in enumerate(sizes):
            if rank[axis] < (size if size > 2 and name not in CHAINS else size - 1):
                following = (*rank[:axis], (rank[axis] + 1) % size, *rank[axis + 1 :])
                yield tuple(sites[(slice(None), *rank)].tolist()), tuple(sites[(slice(None), *following)].tolist())


def hops(side: int, start: tuple[int, ...], end: tuple[int, ...]) -> Iterator[tuple[str, int, int, int]]:
    """Ports that a flow leaves by: (kind, group, x, y)."""
    (group, x, y), (far_group, far_x, far_y) = (start, end) if start[:2] <= end[:2] else (end, start)
    turn = far_x if group == far_group else side - 1
    yield from (("x", group, place, y) for place in range(x, turn))
    yield from (("y", start[0], turn, place) for place in range(y, far_y, 1 if far_y > y else -1))
    if group != far_group:
        yield "cross", group, 0, far_y
        yield from (("x", far_group, place, far_y) for place in range(far_x))


@given(layouts())
def test_loads_equal_those_of_a_walk_hop_by_hop(layout: Layout) -> None:
    mesh, sizes = layout
    routes = flows(placement(mesh, [size for _, size in sizes]), sizes)
    ports = Counter(port for start, end in routes for port in hops(mesh.side, start, end))
    inside = max((load for port, load in ports.items() if port[0] != "cross"), default=0)
    across = max((load for port, load in ports.items() if port[0] == "cross"), default=0)
    loads = link_loads(mesh, sizes, CHAINS)
    assert (loads.inside, loads.across) == (inside, across)


# Whatever the layout.


@given(layouts())
def test_every_device_is_placed_once(layout: Layout) -> None:
    mesh, sizes = layout
    group, x, y = placement(mesh, [size for _, size in sizes]).reshape(3, -1)
    assert sorted((group * mesh.side + y) * mesh.side + x) == list(range(mesh.devices))
    assert max(x.max(), y.max()) < mesh.side


@given(layouts())
def test_devices_that_talk_load_a_link_and_only_groups_that_talk_load_a_cross_link(layout: Layout) -> None:
    mesh, sizes = layout
    loads = link_loads(mesh, sizes, CHAINS)
    assert (loads.inside + loads.across > 0) == (mesh.devices > 1)
    assert (loads.across > 0) == (mesh.groups > 1) == bool(loads.crossing)


@given(layouts())
def test_a_chain_never_loads_links_more_than_a_ring(layout: Layout) -> None:
    chain, ring = link_loads(*layout, CHAINS), link_loads(*layout)
    assert chain.inside <= ring.inside
    assert chain.across <= ring.across
    assert chain.crossing == ring.crossing


@given(layouts(), st.permutations(NAMES))
def test_only_the_sizes_and_their_order_count_not_the_names(layout: Layout, names: list[str]) -> None:
    """So dimensions of one size may swap their places, and with them whether they cross."""
    mesh, sizes = layout
    renamed = dict(zip(NAMES, names, strict=True))
    loads = link_loads(mesh, sizes)
    expected = LinkLoads(loads.inside, loads.across, frozenset(renamed[name] for name in loads.crossing))
    assert link_loads(mesh, [(renamed[name], size) for name, size in sizes]) == expected


@given(layouts(), st.integers(0, 4))
def test_a_dimension_of_one_member_may_stand_anywhere(layout: Layout, place: int) -> None:
    mesh, sizes = layout
    assert link_loads(mesh, (*sizes[:place], ("idle", 1), *sizes[place:]), CHAINS) == link_loads(mesh, sizes, CHAINS)


# Input that has no answer.


@pytest.mark.parametrize(
    ("mesh", "sizes", "chains", "message"),
    [
        (Mesh(2), (("dp", 2), ("lp", 3)), NOTHING, "dimensions 2 x 3 hold 6 devices, but the mesh has 4"),
        (Mesh(2), (("dp", -2), ("lp", -2)), NOTHING, "at least 1 member, not -2 x -2"),
        (Mesh(2), (("dp", 2), ("dp", 2)), NOTHING, "each dimension once, and at least one, not 'dp, dp'"),
        (Mesh(1), (), NOTHING, "at least one, not ''"),
        (Mesh(2), (("dp", 4),), CHAINS, "chains 'lp' are not among the dimensions 'dp'"),
        (Mesh(6), (("dp", 4), ("lp", 9)), NOTHING, "dimensions 4 fill no whole blocks of 1 x 6 x 6 devices"),
        (Mesh(6), (("dp", 9), ("lp", 4)), NOTHING, "dimensions 9 fill no whole blocks of 1 x 6 x 6 devices"),
        (Mesh(12), (("dp", 4), ("kp1", 9), ("lp", 4)), NOTHING, "dimensions 4 x 9 fill no whole blocks of 1 x 12 x 12 devices"),
        (Mesh(2, 9), (("dp", 6), ("lp", 6)), NOTHING, "dimensions 6 fill no whole blocks of 9 x 2 x 2 devices"),
    ],
)
def test_a_layout_that_does_not_fit_is_refused(
    mesh: Mesh, sizes: tuple[tuple[str, int], ...], chains: frozenset[str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        link_loads(mesh, sizes, chains)


@pytest.mark.parametrize(("side", "groups"), [(0, 1), (1, 0)])
def test_a_mesh_has_devices(side: int, groups: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Mesh(side, groups)


# Golden data.


@pytest.mark.data
def test_loads_equal_the_factors_of_the_public_code() -> None:
    """Factors computed with nanocad-lab/DeepFlow: layouts of 64 devices on four shapes of machine."""
    with reference(DERATES).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 400
    for row in rows:
        sizes = [(name, int(row[name])) for name in row["order(y-first)"].split(">")]
        expected = LinkLoads(
            int(row["intra_derate"]), int(row["inter_derate"]), frozenset(name for name in NAMES if row[f"cross_{name}"] == "1")
        )
        assert link_loads(Mesh(int(row["wafer_dim"]), int(row["num_wafer"])), sizes, CHAINS) == expected, row
