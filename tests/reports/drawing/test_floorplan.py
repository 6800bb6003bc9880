"""A chip from above: every part by its area, and nothing on anything else."""

from dataclasses import replace
from itertools import combinations
from math import sqrt
from xml.etree import ElementTree

import pytest

from crossopt.instances.codesign.space import device_at
from crossopt.reports.drawing.bars import Part
from crossopt.reports.drawing.floorplan import Floor, Plan, chip_in, floorplan, parts_on
from crossopt.reports.facts.design import chip_of
from crossopt.reports.sheets.codesign.machine import floor_of
from tests.reports.drawing.test_svg import TITLES
from tests.solvers.codesign.asking import answered
from tests.solvers.codesign.questions import TINY_FREE, ask

MM2 = 1e-6
PARTS = tuple(
    Part(name, area * MM2, f"{area} mm^2", place)
    for place, (name, area) in enumerate(
        {
            "compute": 400.0,
            "registers": 40.0,
            "L2": 80.0,
            "HBM": 40.0,
            "node network": 24.0,
            "network": 8.0,
            "filler": 46.0,
            "L1": 20.0,
        }.items()
    )
)
DIE = (sqrt(658 * MM2 * 26 / 33), sqrt(658 * MM2 * 33 / 26))
ON_DIE = Plan("HBM", ("node network", "network"), "L2", "links between dies", ("compute", "registers", "L1"), 7)
FLOOR = Floor(PARTS, ON_DIE, "filler", 5, (0.0105, 0.0105), DIE, 0.0005)


def rectangles(floor: Floor) -> list[tuple[str, float, float, float, float]]:
    """Class and sides of all that is drawn but the legend, in pixels; the package first."""
    found = ElementTree.fromstring(floorplan(TITLES, floor)).iter("rect")
    rows = [(one.get("class", ""), *(float(one.get(side, "0")) for side in ("x", "y", "width", "height"))) for one in found]
    return [row for row in rows if row[1] < 440.0]


@pytest.mark.parametrize("dies", [1, 2])
def test_parts_and_stacks_have_their_areas_on_one_scale(dies: int) -> None:
    die = (DIE[0] / sqrt(dies), DIE[1] / sqrt(dies))
    floor = replace(FLOOR, stacks=dies * (4 - dies), dies=dies, die=die)
    drawn = rectangles(floor)
    pixels = {part.label: 0.0 for part in PARTS}
    names = {"ground": "filler", **{f"k{part.colour} cut": part.label for part in PARTS}}
    for kind, _, _, width, height in drawn:
        if kind in names:
            pixels[names[kind]] += width * height
    scale = pixels["compute"] / 460.0  # with the registers and the L1 of each bundle
    assert {name: pixels[name] / scale for name in ("L2", "filler")} == pytest.approx({"L2": 80.0, "filler": 46.0}, rel=0.02)
    stacks = [width * height for kind, _, _, width, height in drawn if kind == "hollow"]
    assert len(stacks) == dies * (4 - dies)
    assert stacks[0] / scale == pytest.approx(100.0, rel=0.02)  # 10 mm by 10 mm, and half a millimetre between two


@pytest.mark.parametrize("bundles", [1, 7, 115, 132])
def test_each_bundle_has_its_registers_and_its_l1_to_scale(bundles: int) -> None:
    """In its own tile, all of one area, above and below L2: square millimetres as the parts have them."""
    areas = {part.label: part.value for part in PARTS}
    found = {one.name: one for one in parts_on(replace(ON_DIE, bundles=bundles), areas, (0.0, 0.0, *DIE))}
    for name in ("registers", "L1"):
        sizes = [width * height for _, _, width, height in found[name].blocks]
        assert len(sizes) == bundles
        assert sizes == pytest.approx([areas[name] / bundles] * bundles)
    cores = found["compute"].blocks
    assert sum(width * height for _, _, width, height in cores) == pytest.approx(460.0 * MM2)
    for x, y, width, height in (*found["registers"].blocks, *found["L1"].blocks):
        assert any(
            left <= x + 1e-9 and top <= y + 1e-9 and x + width <= left + wide + 1e-9 and y + height <= top + high + 1e-9
            for left, top, wide, high in cores
        )
    if bundles > 1:
        whole = sum(width * height for name, one in found.items() if not one.tiled for _, _, width, height in one.blocks)
        assert whole == pytest.approx(DIE[0] * DIE[1])


def lying(dies: int) -> list[dict[str, tuple[tuple[float, float, float, float], ...]]]:
    """Where parts of each die lie, one below the other, with 12 mm^2 of links between them on each."""
    areas, (across, along) = {part.label: part.value for part in PARTS} | {"links between dies": 12.0 * MM2, "filler": 34.0 * MM2}, DIE
    found = [parts_on(ON_DIE, areas, (0.0, number * along, across, along), (number > 0, number < dies - 1)) for number in range(dies)]
    return [{one.name: one.blocks for one in parts} for parts in found]


def test_the_second_of_two_dies_is_the_first_one_turned_with_links_between_them_where_they_meet() -> None:
    """And with all wires to other devices away from there."""
    (across, along), (first, second) = DIE, lying(2)
    for name, blocks in first.items():
        turned = {(across - x - width, 2.0 * along - y - height, width, height) for x, y, width, height in blocks}
        assert sorted(second[name]) == [pytest.approx(block, abs=1e-12) for block in sorted(turned)], name
    [(_, top, wide, high)], [(_, other, _, _)] = first["links between dies"], second["links between dies"]
    assert top + high == pytest.approx(along) == pytest.approx(other)
    assert wide * high == pytest.approx(12.0 * MM2)
    for name in ("node network", "network"):
        assert [block[1] for block in first[name]] == [pytest.approx(0.0)]


@pytest.mark.parametrize("dies", [2, 3, 4])
def test_each_die_of_a_row_has_every_part_on_its_area_alone(dies: int) -> None:
    areas = {part.label: part.value for part in PARTS} | {"links between dies": 12.0 * MM2, "filler": 34.0 * MM2}
    for number, parts in enumerate(lying(dies)):
        plain = {name: blocks for name, blocks in parts.items() if name not in ("compute", "registers", "L1")}
        for name, blocks in plain.items():
            assert sum(width * height for _, _, width, height in blocks) == pytest.approx(areas[name]), name
        for (x, y, wide, high), (to, down, broad, tall) in combinations([one for blocks in plain.values() for one in blocks], 2):
            assert min(x + wide, to + broad) - max(x, to) <= 1e-9 or min(y + high, down + tall) - max(y, down) <= 1e-9
        assert all(
            number * DIE[1] - 1e-9 <= y and y + high <= (number + 1) * DIE[1] + 1e-9 for one in plain.values() for _, y, _, high in one
        )


def test_nothing_lies_on_anything_else_and_all_lies_on_the_package() -> None:
    (_, left, top, wide, high), *every = rectangles(FLOOR)
    rest = [row for row in every if not row[0].removeprefix("k").isdigit()]  # but for the ground of a label
    for _, x, y, width, height in rest:
        assert left <= x
        assert top <= y
        assert x + width <= left + wide + 0.1
        assert y + height <= top + high + 0.1
    for (_, x, y, width, height), (_, to, down, broad, tall) in combinations(rest, 2):
        assert min(x + width, to + broad) - max(x, to) <= 0.2 or min(y + height, down + tall) - max(y, down) <= 0.2


def test_the_same_chip_is_drawn_by_the_same_bytes() -> None:
    assert floorplan(TITLES, FLOOR) == floorplan(TITLES, FLOOR)


@pytest.mark.parametrize("chosen", [("hbm_stacks=6",), ("hbm_stacks=4",), ("dies=2", "hbm_stacks=6")])
def test_the_box_that_is_drawn_is_the_package_that_is_limited_and_paid(chosen: tuple[str, ...]) -> None:
    budget = "budget={die_area: 2500 mm^2, package_area: 6000 mm^2, power: 2000 W, reticle: 2000 mm^2}"
    asked = ask(TINY_FREE, budget, "tensor=1", "pipeline=1", "compute_area=460 mm^2", "compute_power=180 W", *chosen)
    result = answered(asked)
    design = result.answer.design
    assert design is not None
    floor = floor_of(chip_of(asked, design))
    assert floor is not None
    wide, high = chip_in(floor, (400.0, 400.0)).package
    assert wide * high == pytest.approx(device_at(asked, 0).package_area)
