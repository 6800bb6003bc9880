"""A chip from above: every part by its area, and nothing on anything else."""

from itertools import combinations
from xml.etree import ElementTree

import pytest

from crossopt.reports.drawing.bars import Part
from crossopt.reports.drawing.floorplan import Floor, floorplan
from tests.reports.drawing.test_svg import TITLES

MM2 = 1e-6
PARTS = tuple(
    Part(name, area * MM2, f"{area} mm^2", place)
    for place, (name, area) in enumerate(
        {"compute": 400.0, "registers": 40.0, "L2": 80.0, "HBM": 40.0, "node network": 24.0, "network": 8.0, "left empty": 66.0}.items()
    )
)
FLOOR = Floor(PARTS, "HBM", ("node network", "network"), "L2", "left empty", 5, (0.0105, 0.0105))


def rectangles(floor: Floor) -> list[tuple[str, float, float, float, float]]:
    """Class and sides of all that is drawn but the legend, in pixels; the package first."""
    found = ElementTree.fromstring(floorplan(TITLES, floor)).iter("rect")
    rows = [(one.get("class", ""), *(float(one.get(side, "0")) for side in ("x", "y", "width", "height"))) for one in found]
    return [row for row in rows if row[1] < 440.0]


@pytest.mark.parametrize("dies", [1, 2])
def test_parts_and_stacks_have_their_areas_on_one_scale(dies: int) -> None:
    floor = Floor(PARTS, "HBM", ("node network", "network"), "L2", "left empty", 5, (0.0105, 0.0105), dies)
    drawn = rectangles(floor)
    pixels = {part.label: 0.0 for part in PARTS}
    names = {"ground": "left empty", **{f"k{part.place} cut": part.label for part in PARTS}}
    for kind, _, _, width, height in drawn:
        if kind in names:
            pixels[names[kind]] += width * height
    scale = pixels["compute"] / 400.0
    assert {name: pixels[name] / scale for name in ("L2", "registers", "left empty")} == pytest.approx(
        {"L2": 80.0, "registers": 40.0, "left empty": 66.0}, rel=0.02
    )
    stacks = [width * height for kind, _, _, width, height in drawn if kind == "hollow"]
    assert len(stacks) == 5
    assert stacks[0] / scale == pytest.approx(100.0, rel=0.02)  # 10 mm by 10 mm, and half a millimetre between two


def test_nothing_lies_on_anything_else_and_all_lies_on_the_package() -> None:
    (_, left, top, wide, high), *rest = rectangles(FLOOR)
    for _, x, y, width, height in rest:
        assert left <= x
        assert top <= y
        assert x + width <= left + wide + 0.1
        assert y + height <= top + high + 0.1
    for (_, x, y, width, height), (_, to, down, broad, tall) in combinations(rest, 2):
        assert min(x + width, to + broad) - max(x, to) <= 0.2 or min(y + height, down + tall) - max(y, down) <= 0.2


def test_the_same_chip_is_drawn_by_the_same_bytes() -> None:
    assert floorplan(TITLES, FLOOR) == floorplan(TITLES, FLOOR)
