"""What is in doubt of a device beside its constants."""

from crossopt.crossflow.hardware import Doubt, Hardware
from tests.solvers.codesign.questions import ask

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
