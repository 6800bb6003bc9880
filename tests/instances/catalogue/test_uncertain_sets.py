"""How far the optimistic and the pessimistic constants of a device lie from the central ones, by stack and precision."""

from dataclasses import replace

import pytest

from crossopt.crossflow.hardware import Doubt, Efficiency, Hardware
from crossopt.instances.catalogue.uncertain import AS_FITTED, Range, spread_of, spread_out
from crossopt.instances.codesign.instance import FreeHardware
from crossopt.instances.errors import InstanceError
from tests.solvers.codesign.questions import TINY_FREE, ask

QUESTION = """
kind: codesign
workload: {model: llama3.1-8b, global_batch: 64}
cluster: {devices: 64}
hardware: h100-sxm
stack: fsdp
"""


def test_ranges_are_as_fitted_but_for_stacks_of_which_more_is_known() -> None:
    assert spread_of("", "a100-80g") == spread_of("fsdp", "a100-40g") == spread_of("megatron-core", "h100-sxm") == AS_FITTED
    fast, slow = spread_of("fsdp", "h100-sxm")
    assert fast < 1.0
    assert slow < 1.0
    assert spread_of("torchtitan", "h200")[1] > 1.0


def test_constants_lie_further_out_by_a_power_and_never_beyond_what_makes_sense(plain: Hardware) -> None:
    central = replace(plain.efficiency, matrix=0.5, kernel=4e-6, stream=0.9, host=0.0)
    fast, slow = replace(central, matrix=0.8, kernel=1e-6, host=1e-6), replace(central, matrix=0.4, kernel=6e-6)
    device = replace(plain, efficiency=central, variants=(fast, slow))
    wide = spread_out(device, (2.0, 2.0))
    assert [one.matrix for one in wide.variants] == pytest.approx([1.0, 0.32])
    assert [one.kernel for one in wide.variants] == pytest.approx([0.25e-6, 9e-6])
    assert [one.stream for one in wide.variants] == [0.9, 0.9]
    assert wide.variants[0].host == 1e-6, "no power leads away from nothing"
    assert wide.efficiency == central
    narrow = spread_out(device, (0.5, 1.0)).variants
    assert narrow[0].matrix == pytest.approx((0.5 * 0.8) ** 0.5)
    assert narrow[1].matrix == pytest.approx(0.4)


def test_a_device_without_sets_has_none_to_spread(plain: Hardware) -> None:
    assert spread_out(plain, (2.0, 2.0)) is plain
    one = replace(plain, variants=(Efficiency(),) * 2)
    assert spread_out(one, AS_FITTED) is one


def test_l2_and_links_vary_where_no_run_says_how_far_off_all_are_together() -> None:
    """FSDP ran on up to 512 H100: for more, or B200, sources say between what L2 and links lie, but for those that are given."""

    def doubts(*settings: str) -> tuple[Doubt, ...]:
        found = ask(QUESTION, *settings).hardware
        assert isinstance(found, Hardware)
        return found.doubts

    assert doubts() == ()
    fast, slow = doubts("hardware=b200")
    assert (fast.l2, slow.l2) == (1.44, 0.73)
    assert (slow.bandwidths, slow.ring_latencies) == ((0.83, 0.89), (1.0, 1.07))
    assert doubts("hardware=b200", "cluster.cluster.bandwidth=40 GB/s")[1].bandwidths == (0.83, 1.0)
    assert doubts("hardware=b200", "efficiency={matrix: 0.7}") == ()
    assert doubts("cluster.devices=1024", "workload.global_batch=1024")[1].bandwidths == (0.91, 0.89)


def ranges(*settings: str) -> dict[str, Range]:
    return {one.name: one for one in ask(TINY_FREE, "tensor=1", "pipeline=1", *settings).ranges}


def test_clocks_voltages_energies_and_what_kernels_keep_busy_have_ranges_of_their_own() -> None:
    """At 7 nm the highest clock is the nominal one, below which no technology has its highest; kernels keep 0.87 of the cores busy."""
    found = ranges()
    assert {f"core.{name}" for name in ("maximum_frequency", "threshold_voltage", "margin_voltage")} <= found.keys()
    assert {f"{level}.energy_per_bit" for level in ("registers", "l1", "l2")} <= found.keys()
    clock, busy = found["core.maximum_frequency"], found["sustained.compute"]
    assert (clock.low, clock.high) == (1.0, 1.065)
    assert (busy.low, busy.high) == pytest.approx((0.8, 1.0 / 0.87))
    assert not [name for name in found if name.startswith("die_links.")], "of one die there are no links"
    assert {"die_links.links_per_metre", "die_links.energy_per_bit"} <= ranges("dies=[1, 2]").keys()
    for name, one in ranges("dies=[1, 2]").items():
        section, figure = name.split(".")
        if section != "efficiency":
            for end in (one.low, one.high):
                ask(TINY_FREE, "tensor=1", "pipeline=1", "dies=[1, 2]", f"factors.{section}.{figure}={end!r}")


def test_kernels_keep_cores_so_much_busier_and_no_busier_than_all() -> None:
    """A chip whose cores work a tenth more in products draws a tenth more of what they switch beyond clocks and control."""
    chips = [ask(TINY_FREE, f"factors={{sustained: {{compute: {share}}}}}").hardware for share in (1.0, 1.1)]
    assert all(isinstance(chip, FreeHardware) for chip in chips)
    shares = [chip.technology.sustained[0].core for chip in chips if isinstance(chip, FreeHardware)]
    assert shares == pytest.approx([0.87, 0.957])
    with pytest.raises(InstanceError, match=r"factors.sustained: compute becomes 1.044 in some kernels, a share of at most 1 is needed"):
        ask(TINY_FREE, "factors={sustained: {compute: 1.2}}")
