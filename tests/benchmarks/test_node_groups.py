"""Lines of the page about groups of devices, computed again."""

from pathlib import Path

import pytest

from tests.benchmarks.node_groups import RULES, int16, row

PAGE = (Path(__file__).parents[2] / "docs/questions/node-groups.md").read_text(encoding="utf-8")
ALL = ("batch", "features", "inputs", "space")


@pytest.mark.parametrize(("network", "devices", "per_device"), [("AlexNet", 64, 32), ("VGG-16", 8, 32), ("ResNet-50", 8, 8)])
def test_lines_of_the_page_are_those_of_today(network: str, devices: int, per_device: int) -> None:
    found = row(network, devices, per_device, "h100-sxm", ALL)
    assert found.proved
    assert found.groups[0] == "batch"
    assert f"{found}\n" in PAGE
    assert all(one is not None and one >= 0.0 for one in found.above)
    assert len(found.above) == len(RULES)


def test_speed_ups_of_whole_numbers_are_below_those_of_the_share() -> None:
    for line in int16("h100-sxm", 64):
        assert f"{line}\n" in PAGE
        proved, most = (float(cell) for cell in line.strip("| ").split(" | ")[2:])
        assert 1.0 < proved <= most
