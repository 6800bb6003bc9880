"""Layouts of a tensor on devices against explicit boxes, and the prices of relayouts against hand-made sums of bytes."""

from fractions import Fraction
from itertools import product

import pytest

from crossopt.crossflow.hardware import Link
from crossopt.crossflow.relayouts import NOTHING, Inside, Layout, Network, backward, forward

DEVICES = 12
INSIDE: tuple[Inside, ...] = ("copies", "features", "space")
LAYOUTS = [Layout(group, inside) for group in (1, 2, 3, 4, 6, 12) for inside in INSIDE]
BYTES = 1e9
BANDWIDTH = 1e9


def network(devices: int = DEVICES) -> Network:
    """Devices on one switch whose collectives take the time of their bytes alone."""
    return Network(devices, (devices,), (Link(BANDWIDTH, 0.0, energy=1.0),))


def box(layout: Layout, device: int) -> list[tuple[Fraction, Fraction]]:
    """Batch, features and height of one device, as shares of the extents."""
    parts = DEVICES // layout.group
    place, inside = device // layout.group, device % layout.group
    part = (Fraction(inside, layout.group), Fraction(inside + 1, layout.group))
    everything = (Fraction(0), Fraction(1))
    return [
        (Fraction(place, parts), Fraction(place + 1, parts)),
        part if layout.inside == "features" else everything,
        part if layout.inside == "space" else everything,
    ]


def volume(sides: list[tuple[Fraction, Fraction]]) -> Fraction:
    found = Fraction(1)
    for low, high in sides:
        found *= max(high - low, Fraction(0))
    return found


def missing(old: Layout, needed: Layout, device: int) -> Fraction:
    """Share of the tensor that a device needs and does not have."""
    had, wanted = box(old, device), box(needed, device)
    common = [(max(a[0], b[0]), min(a[1], b[1])) for a, b in zip(had, wanted, strict=True)]
    return volume(wanted) - volume(common)


@pytest.mark.parametrize(("old", "needed"), list(product(LAYOUTS, LAYOUTS)))
def test_relayouts_bring_what_is_missing_and_no_more_than_everything(old: Layout, needed: Layout) -> None:
    most = max(missing(old, needed, device) for device in range(DEVICES))
    seconds, joules = forward(BYTES, old, needed, network())
    assert old.share(DEVICES) == pytest.approx(float(volume(box(old, 0))))
    if most == 0:
        assert (seconds, joules) == NOTHING
    else:
        assert seconds * BANDWIDTH >= float(most) * BYTES * (1 - 1e-12)
        assert seconds * BANDWIDTH <= BYTES * (DEVICES - 1) / DEVICES * (1 + 1e-12)
        assert joules == pytest.approx(DEVICES * seconds * BANDWIDTH)


def gathered(share: float, ranks: int) -> float:
    """Seconds of an all-gather of that share of the tensor."""
    return share * BYTES * (ranks - 1) / ranks / BANDWIDTH


def test_prices_of_the_relayouts_of_node_groups() -> None:
    net, batch, four = network(8), Layout(), Layout(4, "features")
    assert forward(BYTES, batch, Layout(4), net)[0] == pytest.approx(gathered(0.5, 4))
    assert forward(BYTES, four, Layout(4), net)[0] == pytest.approx(gathered(0.5, 4))
    assert forward(BYTES, four, batch, net)[0] == pytest.approx(BYTES / 8 * 3 / 4 / BANDWIDTH)  # all-to-all
    assert forward(BYTES, Layout(4), Layout(8), net)[0] == pytest.approx(gathered(1.0, 2))  # two groups have a half each
    assert forward(BYTES, Layout(8), batch, net) == NOTHING


def test_gradients_are_summed_where_they_are_partial() -> None:
    net, batch, four, whole = network(8), Layout(), Layout(4, "features"), Layout(8)
    for old in (batch, four):  # the reduce-scatter is the all-gather backwards
        assert backward(BYTES, old, Layout(4), net, partial=True) == forward(BYTES, old, Layout(4), net)
    assert backward(BYTES, Layout(4), Layout(4), net, partial=True)[0] == pytest.approx(2 * gathered(0.5, 4))  # an all-reduce
    assert backward(BYTES, whole, batch, net, partial=False)[0] == pytest.approx(gathered(1.0, 8))
    assert backward(BYTES, batch, whole, net, partial=False) == NOTHING
    uneven = network(12)
    routed = backward(BYTES, Layout(4, "features"), Layout(6), uneven, partial=True)[0]
    assert routed == pytest.approx(gathered(0.5, 6) + forward(BYTES, Layout(6, "features"), Layout(4, "features"), uneven)[0])


def test_groups_inside_a_node_have_its_links_alone() -> None:
    """Two nodes of four: the groups of four gather inside, the weights of equal shares are summed between nodes."""
    links = (Link(8e9, 0.0), Link(1e9, 0.0))
    net = Network(8, (4, 8), links)
    assert net.gather(BYTES, 4)[0] == pytest.approx(BYTES * 3 / 4 / 8e9)
    assert net.reduce(BYTES, 2, 4)[0] == pytest.approx(2 * BYTES / 2 / 1e9)
