"""A network as a list of dimensions: the figures of levels where it says the same, shares of the hardware's links, and every fault."""

from dataclasses import replace

import pytest

from crossopt.crossflow.hardware import Hardware
from crossopt.instances.catalogue.registry import device, names
from crossopt.instances.codesign.instance import FreeHardware, MultiScaleQuestion
from crossopt.instances.codesign.question import read_question
from crossopt.instances.codesign.space import device_at
from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read_again
from tests.every import every
from tests.instances.codesign.test_reading import FIXED, FREE, read, refusal

LISTED = FIXED.replace(", devices_per_node: 8", ", network: [{size: 8}, {size: 2}]")


def links(network: str, *settings: str) -> tuple[tuple[str, int, float], ...]:
    """Shape, units and GB/s of every level."""
    hardware = read(LISTED, f"cluster.network={network}", *settings).hardware
    assert isinstance(hardware, Hardware)
    return tuple((link.shape, link.size, float(link.bandwidth) / 1e9) for link in hardware.links)


@every("name", lambda: [name for name in names("hardware") if "bf16" in device(name).peak])
def test_switches_say_what_nodes_and_pods_say_to_the_last_digit(name: str) -> None:
    """On every device, with given links too; on dimensions alone a step is held to what is sent over them."""
    node = device(name).devices_per_node
    cases = (
        (f"cluster={{devices: {4 * node}}}", f"[{{size: {node}}}, {{size: 4}}]"),
        (
            f"cluster={{devices: {16 * node}, devices_per_pod: {4 * node}, node: {{bandwidth: 99 GB/s}}, pod: {{latency: 3 us}}}}",
            f"[{{size: {node}, bandwidth: 99 GB/s}}, {{size: 4, links: pod, latency: 3 us}}, {{size: 4}}]",
        ),
        ("cluster={devices: 16, devices_per_node: 1}", "[{size: 1}, {size: 16, links: cluster}]"),
    )
    for levels, dimensions in cases:
        before = read(FIXED, f"hardware={name}", levels, "data=divisors")
        after = read(FIXED, f"hardware={name}", f"cluster.network={dimensions}", f"cluster.devices={before.cluster.devices}", *_GONE)
        assert (after.cluster, after.hardware) == (replace(before.cluster, are_dimensions=True), before.hardware), name


_GONE = ("cluster.devices_per_node=~",)


def test_they_do_so_of_a_chip_too() -> None:
    before = read(FREE, "cluster.devices_per_node=8", "network_area=[20 mm^2, 30 mm^2]")
    after = read(FREE, "cluster.network=[{size: 8, links: node}, {size: 2}]", "network_area=[20 mm^2, 30 mm^2]", *_GONE)
    assert (after.cluster, after.hardware) == (replace(before.cluster, are_dimensions=True), before.hardware)


@pytest.mark.parametrize(
    ("given", "around"), [("", (14e-6, 14e-6)), (", latency: 2 us", (2e-6, 14e-6)), (", latency: 2 us, ring_latency: 9 us", (9e-6, 14e-6))]
)
def test_a_latency_that_is_given_is_that_of_rings_over_all_ranks_too(given: str, around: tuple[float, ...]) -> None:
    """Between nodes an H100 takes 14 us a step of such rings."""
    settings = ("hardware=h100-sxm", f"cluster.network=[{{size: 2, links: cluster{given}}}, {{size: 8, links: cluster}}]")
    hardware = read(LISTED, *settings).hardware
    assert isinstance(hardware, Hardware)
    assert tuple(max(float(link.latency), float(link.ring_latency)) for link in hardware.links) == pytest.approx(around)


def test_dimensions_share_the_links_that_they_have_in_common() -> None:
    """An A100 has 229 GB/s inside a node of eight and 22 GB/s beyond."""
    assert links("[{size: 4, shape: ring}, {size: 2, shape: ring}, {size: 2}]") == (
        ("ring", 4, 114.5),
        ("ring", 2, 114.5),
        ("switch", 1, 22.0),
    )
    assert links("[{size: 4, shape: ring, share: 0.75}, {size: 2}, {size: 2, shape: rails, bandwidth: 40 GB/s}]") == (
        ("ring", 4, 0.75 * 229.0),
        ("switch", 1, 0.25 * 229.0),
        ("rails", 2, 40.0),
    )
    assert links("[{size: 4}, {size: 2}, {size: 2}]") == (("switch", 1, 229.0), ("switch", 1, 229.0), ("switch", 1, 22.0))
    assert links("[{size: 2, links: cluster, shape: ring}, {size: 8, shape: fully_connected, bandwidth: 7 GB/s}]") == (
        ("ring", 2, 22.0),
        ("fully_connected", 8, 7.0),
    )


def test_shares_of_links_add_up_as_decimals() -> None:
    """0.4 + 0.2 + 0.3 + 0.1 is 1, though not in floating point, and 0.05 + 0.55 + 0.3 leaves 0.1."""
    ring = "{size: 2, shape: ring, links: node, share: "
    assert [row[2] / 229.0 for row in links(f"[{ring}0.4}}, {ring}0.2}}, {ring}0.3}}, {ring}0.1}}]")] == pytest.approx([0.4, 0.2, 0.3, 0.1])
    assert links(f"[{ring}0.05}}, {ring}0.55}}, {ring}0.3}}, {{size: 2, shape: ring, links: node}}]")[3][2] == 22.9
    listed = ", ".join(f"{ring}{share}}}" for share in ("[0.3, 0.4]", "0.2", "0.3", "0.1"))
    several = read_again({"text": LISTED, "source": "question.yaml", "settings": [f"cluster.network=[{listed}]"]}, "codesign")
    assert isinstance(several, MultiScaleQuestion)
    assert [scale.network for scale in several.scales] == [
        f"2 x 2 x 2 x 2 with {first}, 0.2, 0.3, 0.1 of the links" for first in (0.3, 0.4)
    ]


def test_links_of_a_chip_are_shared_as_its_wires_are() -> None:
    """Half of the wires between nodes on each axis of a torus, each of which rises with their area; a given link takes none."""
    asked = "cluster={devices: 16, network: [{size: 4, shape: ring}, {size: 4, shape: ring}]}"
    whole = read(FREE, "cluster={devices: 16, devices_per_node: 1}", "network_area=[20 mm^2, 30 mm^2]")
    torus = read(FREE, asked, "network_area=[20 mm^2, 30 mm^2]")
    assert isinstance(torus.hardware, FreeHardware)
    for point in (0, 1):
        [one], halves = device_at(whole, point).links, device_at(torus, point).links
        assert halves == (replace(one, bandwidth=one.bandwidth / 2.0, shape="ring", size=4),) * 2
    given = read(FREE, asked.replace("4, shape: ring}]", "4, shape: ring, bandwidth: 3 GB/s}]"), "network_area=[20 mm^2, 30 mm^2]")
    assert [float(link.bandwidth) for link in device_at(given, 0).links] == [device_at(whole, 0).links[0].bandwidth, 3e9]


@pytest.mark.parametrize(
    ("network", "told"),
    [
        ("[{size: 8}, {size: 4}]", ["cluster.network: sizes 8 x 4 join 32 devices, and there are 16 (make their product 16)"]),
        ("[]", ["cluster.network: 0 dimensions are listed, 1 to 8 are needed"]),
        (
            "[{size: 8, shape: torus}, {size: 2}]",
            ["cluster.network[0].shape: 'torus' is unknown (one of switch, rails, ring, fully_connected)"],
        ),
        (
            "[{size: 8, bandwidth: 0 GB/s, share: 0.5}, {size: 4, share: 0}, {size: 2, bandwidth: 0 GB/s}]",
            [
                "cluster.network: sizes 8 x 4 x 2 join 64 devices, and there are 16 (make their product 16)",
                "cluster.network[0].bandwidth: zero is no figure to work with (give one above 0, or remove the key)",
                "cluster.network[0].share: a bandwidth that is given is no share of the hardware's links (remove one of the two)",
                "cluster.network[1].share: no share is no link (give one above 0, or remove the dimension)",
                "cluster.network[2].bandwidth: zero is no figure to work with (give one above 0, or remove the key)",
            ],
        ),
        (
            "[{size: 8, shape: ring, reduces: true}, {size: 2, reduces: true}]",
            ["cluster.network[0].reduces: only switches add up what passes them (write shape: switch, or remove this key)"],
        ),
        (
            "[{size: 8, shape: rails}, {size: 2}]",
            ["cluster.network[0].shape: rails join devices of several units, and no dimension lies inside (write switch)"],
        ),
        (
            "[{size: 4, share: 0.7}, {size: 2, share: 0.4}, {size: 2}]",
            ["cluster.network: shares of the node links leave nothing for others, or are above 1 in all (give smaller ones)"],
        ),
        ("[{size: 8, share: 1}, {size: 2, links: node}]", ["cluster.network: shares of the node links leave nothing for others"]),
    ],
)
def test_what_is_wrong_with_a_network_is_told_at_once(network: str, told: list[str]) -> None:
    said = refusal(LISTED, f"cluster.network={network}").splitlines()[:-1]
    assert len(said) == len(told)
    assert all(line.partition(" ")[2].startswith(one) for one, line in zip(told, said, strict=True))


def test_keys_of_levels_beside_dimensions_are_refused_each() -> None:
    said = refusal(LISTED, "cluster.devices_per_node=8", "cluster.node.latency=1 us", "cluster.pod.latency=1 us")
    assert said.count("`network` says how devices are joined (remove this key, or `network`)") == 3
    with pytest.raises(InstanceError, match="a link of a technology is given whole or not at all"):
        read(FREE, "cluster={devices: 16, network: [{size: 16, latency: 1 us}]}")


def test_what_is_in_doubt_of_links_is_that_of_those_whose_figures_they_are() -> None:
    """Of a torus in a node both axes are in doubt as its links are; a bandwidth that is given is in none."""
    asked = ("stack=torchtitan", "hardware=b200", "cluster={devices: 16, network: NETWORK}", "data=divisors")
    node, beyond = (
        read(FIXED, *asked[:2], "cluster={devices: 16}", "data=divisors").hardware.doubts[0].bandwidths  # type: ignore[union-attr]
    )
    for network, factors in (
        ("[{size: 4, shape: ring}, {size: 2, shape: ring}, {size: 2}]", (node, node, beyond)),
        ("[{size: 8, bandwidth: 600 GB/s}, {size: 2, shape: rails}]", (1.0, beyond)),
        ("[{size: 16, links: cluster}]", (beyond,)),
    ):
        hardware = read(FIXED, *(one.replace("NETWORK", network) for one in asked)).hardware
        assert isinstance(hardware, Hardware)
        assert {one.bandwidths for one in hardware.doubts[:1]} == {factors}
    assert node != beyond


def test_a_memory_that_devices_share_gives_each_its_part() -> None:
    own = read_question({"text": _OFFLOADS.format(host="{memory: 64 GiB, bandwidth: 25 GB/s}"), "source": "a", "settings": []})
    pool = read_question(
        {"text": _OFFLOADS.format(host="{memory: 512 GiB, bandwidth: 200 GB/s, shared_by: 8}"), "source": "a", "settings": []}
    )
    assert own.hardware.host == pool.hardware.host


_OFFLOADS = """\
kind: codesign
workload: {{model: gpt3-125m, global_batch: 64}}
cluster: {{devices: 8, host: {host}}}
hardware: a100-80g
choices: {{offload: [none, optimizer]}}
"""
