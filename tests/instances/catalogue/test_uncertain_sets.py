"""What is in doubt of a device beside its constants."""

import pytest

from crossopt.crossflow.hardware import Doubt, Hardware
from crossopt.instances.catalogue.uncertain import Range
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
    """At 7 nm the highest clock is the nominal one, below which no technology has its highest; kernels keep 0.82 of the cores busy."""
    found = ranges()
    assert {f"core.{name}" for name in ("maximum_frequency", "threshold_voltage", "margin_voltage")} <= found.keys()
    assert {f"{level}.energy_per_bit" for level in ("registers", "l1", "l2")} <= found.keys()
    clock, busy = found["core.maximum_frequency"], found["sustained.compute"]
    assert (clock.low, clock.high) == (1.0, 1.065)
    assert (busy.low, busy.high) == pytest.approx((0.8, 1.2))
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
    assert shares == pytest.approx([0.82, 0.902])
    with pytest.raises(InstanceError, match=r"factors.sustained: compute becomes 1.025 in some kernels, a share of at most 1 is needed"):
        ask(TINY_FREE, "factors={sustained: {compute: 1.25}}")
