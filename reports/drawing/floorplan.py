"""A chip seen from above, to scale: dies with their parts, stacks of memory on both sides of their row, and the package around them.

What is drawn has the areas that the model gives it; where a part lies is the usual order on accelerators that are sold (controllers beside
their stacks, links at the ends, a shared cache between two arrays of multiprocessors), since the model says nothing of places.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from crossopt.reports.drawing.bars import Part
from crossopt.reports.drawing.die import Block, Lying, Plan, parts_on
from crossopt.reports.drawing.svg import Titles, box, boxes, hue, letter, line, picture, width_of, words

_BETWEEN: Final = 0.0005
"""Metres that are left free around a stack, half of them on each side."""
_DRAWN, _HIGH, _LEGEND = 430.0, 400.0, 470.0
"""Pixels that the package takes across and down at the most, and where the legend begins."""
_RULER: Final = 0.01
_SIZES: Final = (12.0, 9.0)
"""Of labels, as there is room."""


@dataclass(frozen=True, slots=True)
class Floor:
    """What lies on a package. Parts are those of all dies together, in square metres."""

    parts: tuple[Part, ...]
    plan: Plan
    """Where they lie on each die."""
    empty: str
    stacks: int
    stack: tuple[float, float]
    """Metres of a stack along the die's edge and away from it, with the room around it."""
    die: tuple[float, float]
    """Metres of one die across the row that dies make, and along it."""
    rim: float
    """Metres that are free around all of it."""
    dies: int = 1


@dataclass(frozen=True, slots=True)
class Chip:
    """What is drawn of a chip, how high that is, and the sides of a die and of all that lies on the package."""

    body: tuple[str, ...]
    height: float
    die: tuple[float, float]
    package: tuple[float, float]


def floorplan(titles: Titles, floor: Floor) -> str:
    """The chip with its legend, and a ruler."""
    chip = chip_in(floor, (titles.width - 20.0 if titles.narrow else _DRAWN, _HIGH))
    corner = (0.0, chip.height + 4.0) if titles.narrow else (_LEGEND, 4.0)
    body = [*chip.body, *_legend(floor, (chip.die, chip.package), (*corner, titles.width))]
    return picture(titles, max(chip.height, corner[1] + 19.0 * (len(floor.parts) + 5)), body)


def chip_in(floor: Floor, room: tuple[float, float], *, names: bool = False) -> Chip:
    """The chip in so much room, from the left upper corner, with a ruler; its parts have letters, or their names where those fit."""
    across, along = floor.die
    dies = [(0.0, along * number, across, along) for number in range(floor.dies)]
    stacks = [block for die in dies for block in _stacks(floor, die)]
    left, top, right, bottom = _around([*dies, *stacks])
    wide, high = right - left + 2.0 * floor.rim, bottom - top + 2.0 * floor.rim
    scale = min(room[0] / wide, room[1] / high)

    def placed(block: Block) -> Block:
        x, y, width, height = block
        return (x - left + floor.rim) * scale, (y - top + floor.rim) * scale + 1.0, width * scale, height * scale

    body = [box(*placed((left - floor.rim, top - floor.rim, wide, high)), "track", 4.0)]
    for block in stacks:
        body += _labelled(placed(_within(block)), "hollow", "HBM")
    for number, die in enumerate(dies):
        lying = parts_on(floor.plan, _areas(floor), die, (number > 0, number < floor.dies - 1))
        body += _die(floor, [(one, [placed(block) for block in one.blocks]) for one in lying], names)
    body += _ruler(high * scale + 16.0, scale)
    return Chip(tuple(body), high * scale + 30.0, (across, along), (wide, high))


def _areas(floor: Floor) -> dict[str, float]:
    """Square metres of each part on one die."""
    return {part.label: part.value / floor.dies for part in floor.parts}


def _die(floor: Floor, lying: Sequence[tuple[Lying, list[Block]]], names: bool) -> Iterator[str]:
    """The parts of one die; letters of what bundles hold are in the legend, and those of their cores lie above all of them."""
    parts, above = {part.label: part for part in floor.parts}, list[str]()
    for one, blocks in lying:
        part = parts[one.name]
        tip, label = f"{part.label}: {part.shown}", part.label if names else letter(part.place)
        if one.tiled:
            yield boxes(blocks, hue(part.place), tip)
            continue
        empty = part.label == floor.empty
        for block in blocks:
            drawn, *written = _labelled(block, "ground" if empty else f"{hue(part.place)} cut", label, "t" if empty else "on", tip)
            yield drawn
            above += [*_behind(block, label, part.place), *written] if written and one.name in floor.plan.bundled else written
    yield from above


def _behind(block: Block, label: str, place: int) -> Iterator[str]:
    """The ground of a label that lies on bundles."""
    x, y, width, height = block
    wide = width_of(label, _SIZES[0]) + 8.0
    if wide <= width:
        yield box(x + (width - wide) / 2.0, y + height / 2.0 - 8.0, wide, 16.0, hue(place), 3.0)


def _stacks(floor: Floor, die: Block) -> Iterator[Block]:
    """Those of one die: half of them on each side of the row, the left one first, in the middle of the die's side."""
    (edge, depth), (_, top, across, along), each = floor.stack, die, floor.stacks // floor.dies
    for side, count in enumerate(((each + 1) // 2, each // 2)):
        for number in range(count):
            yield (-depth, across)[side], top + along / 2.0 + (number - count / 2.0) * edge, depth, edge


def _within(block: Block) -> Block:
    x, y, width, height = block
    return x + _BETWEEN / 2.0, y + _BETWEEN / 2.0, width - _BETWEEN, height - _BETWEEN


def _around(blocks: Sequence[Block]) -> Block:
    """Left, top, right and bottom of all."""
    rows = [(x, y, x + width, y + height) for x, y, width, height in blocks]
    lefts, tops, rights, bottoms = zip(*rows, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)


def _labelled(block: Block, kind: str, label: str, ink: str = "t", tip: str = "") -> list[str]:
    """A block with its label where there is room for it, a small one where there is less."""
    x, y, width, height = block
    drawn = [box(x, y, width, height, kind, tip=tip)]
    size = next((size for size in _SIZES if width_of(label, size) + 3.0 <= width and height >= size), None)
    if size is None:
        return drawn
    return [*drawn, words(x + width / 2.0, y + height / 2.0 + 0.35 * size, label, ink, "middle", size)]


def _ruler(y: float, scale: float) -> list[str]:
    end = _RULER * scale
    ends = [line([(x, y - 4.0), (x, y + 4.0)], "roof") for x in (0.8, end)]
    return [line([(0.8, y), (end, y)], "roof"), *ends, words(end + 8.0, y + 4.0, "10 mm")]


def _legend(floor: Floor, sides: tuple[tuple[float, float], tuple[float, float]], room: tuple[float, float, float]) -> Iterator[str]:
    """Every part with its letter and area, and the sizes of die, stacks and package, from a left and a top to a right end."""
    (die, package), (left, top, right), area = sides, room, sides[0][0] * sides[0][1]
    for number, part in enumerate(floor.parts):
        y = top + 19.0 * number
        empty = part.label == floor.empty
        yield box(left, y, 22.0, 15.0, "hollow" if empty else hue(part.place), 3.0)
        yield words(left + 11.0, y + 11.5, letter(part.place), "t" if empty else "on", "middle")
        yield words(left + 30.0, y + 12.0, part.label)
        yield words(right, y + 12.0, part.shown, "t n", "end")
    y = top + 12.0 + 19.0 * len(floor.parts)
    sizes = [(f"{floor.dies} dies" if floor.dies > 1 else "die", f"{_sides(*die)}, {area * 1e6:.0f} mm^2")]
    bundles = floor.plan.bundles * floor.dies
    bundled = sum(part.value for part in floor.parts if part.label in floor.plan.bundled)
    sizes += [(f"{bundles:,} bundles of cores", f"{bundled / bundles * 1e6:.2f} mm^2 each")] if bundles else []
    sizes += [(f"{floor.stacks} HBM stacks", _sides(*floor.stack))] if floor.stacks else []
    whole = ("package", f"{_sides(*package)}, {package[0] * package[1] * 1e6:.0f} mm^2")
    for number, (name, size) in enumerate([*sizes, whole]):
        yield words(left, y + 12.0 + 19.0 * number, name)
        yield words(right, y + 12.0 + 19.0 * number, size, "t n", "end")


def _sides(*sides: float) -> str:
    return " x ".join(f"{side * 1e3:.1f}" for side in sides) + " mm"
