"""Where the parts of one die lie: columns along both sides, rows at both ends, a band in the middle, and bundles of cores around it.

A bundle (a streaming multiprocessor) is a tile of cores with its registers and its L1. Tiles fill the room above and below the band in
rows, all of one area; a row of k tiles is as high as k tiles of that area are across the room, so that nothing is left over. What else
there is lies in rows beside the band, as the network and the schedulers between cores and cache do, but for links to other dies, which lie
at the sides where these are.
"""

from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import Final

from crossopt.crossflow.dies import SLACK
from crossopt.reports.drawing.bars import Part
from crossopt.reports.drawing.svg import HUES, Titles, box, boxes, hue, letter, line, picture, text_line, width_of

Block = tuple[float, float, float, float]
"""Left, top, width and height in metres."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Which parts of a die lie where, by name; a name that the die lacks takes no room."""

    sides: str
    """Along both sides, halved."""
    ends: tuple[str, str]
    """At both ends, or where another die lies at one of them together at the other."""
    band: str
    outer: str
    """Where other dies lie, outside of all else but the sides."""
    bundled: tuple[str, str, str]
    """Parts of each bundle: what fills it, a strip on its left side, and one at its foot."""
    bundles: int
    """Of one die; parts of bundles lie in rows as all else where it is zero."""


@dataclass(frozen=True, slots=True)
class Lying:
    """A part, and its blocks; those of bundles are many small ones."""

    name: str
    blocks: tuple[Block, ...]
    tiled: bool = False


_SQUARE: Final = 1.0
"""Width over height that tiles of a bundle have as nearly as rows of them allow."""


def parts_on(plan: Plan, areas: dict[str, float], die: Block, joints: tuple[bool, bool] = (False, False)) -> Iterator[Lying]:
    """All parts of one die, each with the area that it has in square metres. `joints` says whether other dies lie above and below.

    Dies are alike: the last one of a row is the first one turned by half a turn, so that each joint has links on both of its sides, and
    the wires to other devices lie on the free sides. Between two others a die has them beside the controllers of its stacks."""
    match joints:
        case False, True:
            yield from _first(plan, areas, die)
        case True, False:
            yield from (replace(lying, blocks=tuple(_turned(block, die) for block in lying.blocks)) for lying in _first(plan, areas, die))
        case True, True:
            yield from _between(plan, areas, die)
        case _:
            yield from _alone(plan, areas, die)


def _turned(block: Block, die: Block) -> Block:
    """By half a turn around the middle of the die."""
    x, y, width, height = block
    return 2.0 * die[0] + die[2] - x - width, 2.0 * die[1] + die[3] - y - height, width, height


def _alone(plan: Plan, areas: dict[str, float], die: Block) -> Iterator[Lying]:
    """Controllers along both sides, wires at both ends."""
    x, y, width, height = yield from _columns((plan.sides,), areas, die)
    rows = [areas.get(name, 0.0) / width for name in plan.ends]
    for name, row, at in zip(plan.ends, rows, (y, y + height - rows[1]), strict=True):
        if row:
            yield Lying(name, ((x, at, width, row),))
    yield from _inner(plan, areas, (x, y + rows[0], width, height - sum(rows)))


def _first(plan: Plan, areas: dict[str, float], die: Block) -> Iterator[Lying]:
    """Controllers along both sides, all wires above, and what joins the next die below."""
    x, y, width, height = yield from _columns((plan.sides,), areas, die)
    row, outer = (sum(areas.get(name, 0.0) for name in names) / width for names in (plan.ends, (plan.outer,)))
    left = x
    for name in plan.ends if row else ():
        wide = areas.get(name, 0.0) / row
        if wide:
            yield Lying(name, ((left, y, wide, row),))
        left += wide
    if outer:
        yield Lying(plan.outer, ((x, y + height - outer, width, outer),))
    yield from _inner(plan, areas, (x, y + row, width, height - row - outer))


def _between(plan: Plan, areas: dict[str, float], die: Block) -> Iterator[Lying]:
    """Controllers and wires along both sides, and what joins other dies at both ends."""
    x, y, width, height = yield from _columns((plan.ends[0], plan.sides, plan.ends[1]), areas, die)
    outer = areas.get(plan.outer, 0.0) / 2.0 / width
    if outer:
        yield Lying(plan.outer, ((x, y, width, outer), (x, y + height - outer, width, outer)))
    yield from _inner(plan, areas, (x, y + outer, width, height - 2.0 * outer))


def _columns(names: tuple[str, ...], areas: dict[str, float], die: Block) -> Generator[Lying, None, Block]:
    """Parts in a column along each side, halved, one below the other; what is left between the two columns."""
    x, y, width, height = die
    column = sum(areas.get(name, 0.0) for name in names) / 2.0 / height
    at = y
    for name in names if column else ():
        high = areas.get(name, 0.0) / 2.0 / column
        if high:
            yield Lying(name, ((x, at, column, high), (x + width - column, at, column, high)))
        at += high
    return x + column, y, width - 2.0 * column, height


def _inner(plan: Plan, areas: dict[str, float], room: Block) -> Iterator[Lying]:
    """The band with what lies beside it, half on each side, and the bundles above and below."""
    x, y, width, height = room
    placed = {plan.sides, *plan.ends, plan.band, plan.outer, *(plan.bundled if plan.bundles else ())}
    beside = [(name, area / 2.0 / width) for name, area in areas.items() if name not in placed and area]
    upper = ceil(plan.bundles / 2) / plan.bundles if plan.bundles else 0.5
    band = areas.get(plan.band, 0.0) / width
    left = height - band - 2.0 * sum(row for _, row in beside)
    at = y + upper * left
    for name, row in beside:
        below = y + height - (at - y) - (1.0 - 2.0 * upper) * left - row
        yield Lying(name, ((x, at, width, row), (x, below, width, row)))
        at += row
    if band:
        yield Lying(plan.band, ((x, at, width, band),))
    if plan.bundles:
        halves = ((x, y, width, upper * left), (x, y + height - (1.0 - upper) * left, width, (1.0 - upper) * left))
        yield from _bundles(plan, areas, (halves, (ceil(plan.bundles / 2), plan.bundles // 2)))


def _bundles(plan: Plan, areas: dict[str, float], halves: tuple[Sequence[Block], Sequence[int]]) -> Iterator[Lying]:
    """What fills the bundles as one block above the band and one below, and the strips of each of them."""
    filling, side, foot = plan.bundled
    shares = [areas.get(name, 0.0) for name in plan.bundled]
    yield Lying(filling, tuple(block for block, count in zip(*halves, strict=True) if count))
    tiles = [tile for block, count in zip(*halves, strict=True) for tile in _tiles(block, count)]
    low = shares[2] / sum(shares)
    strip = shares[1] / (shares[0] + shares[1])
    if strip:
        yield Lying(side, tuple((x, y, strip * width, (1.0 - low) * height) for x, y, width, height in tiles), tiled=True)
    if low:
        yield Lying(foot, tuple((x, y + (1.0 - low) * height, width, low * height) for x, y, width, height in tiles), tiled=True)


def _tiles(room: Block, count: int) -> Iterator[Block]:
    """A room in so many tiles of one area, in rows of as many as make them about square, or one more."""
    x, y, width, height = room
    if not count:
        return
    rows = min(max(round(sqrt(count * height / width * _SQUARE)), 1), count)
    for row in range(rows):
        tiles = count * (row + 1) // rows - count * row // rows
        high = height * tiles / count
        yield from ((x + width * column / tiles, y, width / tiles, high) for column in range(tiles))
        y += high


# A chip seen from above, to scale: dies with their parts, stacks of memory on both sides of their row, and the package around them.
#
# What is drawn has the areas that the model gives it; where a part lies is the usual order on accelerators that are sold (controllers
# beside their stacks, links at the ends, a shared cache between two arrays of multiprocessors), since the model says nothing of places.

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
    on_dies: bool = False
    """Whether the stacks lie on the dies, as outlines."""


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
    for block in [] if floor.on_dies else stacks:
        body += _labelled(placed(_within(block)), "hollow", "HBM")
    for number, die in enumerate(dies):
        lying = parts_on(floor.plan, _areas(floor), die, (number > 0, number < floor.dies - 1))
        body += _die(floor, [(part_lying, [placed(block) for block in part_lying.blocks]) for part_lying in lying], names)
    body += [box(*placed(_within(block)), "roof", tip="HBM stack") for block in stacks if floor.on_dies]
    body += _ruler(high * scale + 16.0, scale)
    return Chip(tuple(body), high * scale + 30.0, (across, along), (wide, high))


def _areas(floor: Floor) -> dict[str, float]:
    """Square metres of each part on one die."""
    return {part.label: part.value / floor.dies for part in floor.parts}


def _die(floor: Floor, lying: Sequence[tuple[Lying, list[Block]]], names: bool) -> Iterator[str]:
    """The parts of one die; letters of what bundles hold are in the legend, and those of their cores lie above all of them."""
    parts, above = {part.label: part for part in floor.parts}, list[str]()
    for lying_part, blocks in lying:
        part = parts[lying_part.name]
        tip, label = f"{part.label}: {part.shown}", part.label if names else letter(part.colour)
        if lying_part.tiled:
            yield boxes(blocks, hue(part.colour), tip)
            continue
        empty = part.label == floor.empty
        for block in blocks:
            shape, *written = _labelled(block, "ground" if empty else f"{hue(part.colour)} cut", label, "t" if empty else "on", tip)
            yield shape
            above += [*_behind(block, label, part.colour), *written] if written and lying_part.name in floor.plan.bundled else written
    yield from above


def _behind(block: Block, label: str, colour: int) -> Iterator[str]:
    """The ground of a label that lies on bundles."""
    x, y, width, height = block
    wide = width_of(label, _SIZES[0]) + 8.0
    if wide <= width:
        yield box(x + (width - wide) / 2.0, y + height / 2.0 - 8.0, wide, 16.0, hue(colour), 3.0)


def _stacks(floor: Floor, die: Block) -> Iterator[Block]:
    """Those of one die: half of them on each side of the row, the left one first, in the middle of the die's side; or in rows on it."""
    (edge, depth), (_, top, across, along), each = floor.stack, die, floor.stacks // floor.dies
    if floor.on_dies:
        sizes = [(wide, high, int(across / wide * SLACK)) for wide, high in ((depth, edge), (edge, depth))]
        wide, high, columns = next(size for size in sizes if size[2] * int(along / size[1] * SLACK) >= each)
        for number in range(each):
            yield number % columns * wide, top + number // columns * high, wide, high
        return
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
    shape = [box(x, y, width, height, kind, tip=tip)]
    size = next((size for size in _SIZES if width_of(label, size) + 3.0 <= width and height >= size), None)
    if size is None:
        return shape
    return [*shape, text_line(x + width / 2.0, y + height / 2.0 + 0.35 * size, label, ink, "middle", size)]


def _ruler(y: float, scale: float) -> list[str]:
    end = _RULER * scale
    ends = [line([(x, y - 4.0), (x, y + 4.0)], "roof") for x in (0.8, end)]
    return [line([(0.8, y), (end, y)], "roof"), *ends, text_line(end + 8.0, y + 4.0, "10 mm")]


def _legend(floor: Floor, sides: tuple[tuple[float, float], tuple[float, float]], room: tuple[float, float, float]) -> Iterator[str]:
    """Every part with its letter and area, and the sizes of die, stacks and package, from a left and a top to a right end."""
    (die, package), (left, top, right), area = sides, room, sides[0][0] * sides[0][1]
    for number, part in enumerate(floor.parts):
        y = top + 19.0 * number
        empty = part.label == floor.empty
        yield box(left, y, 22.0, 15.0, "hollow" if empty else hue(part.colour), 3.0)
        yield text_line(left + 11.0, y + 11.5, letter(part.colour), "t" if empty else "on", "middle")
        yield text_line(left + 30.0, y + 12.0, part.label)
        yield text_line(right, y + 12.0, part.shown, "t n", "end")
    y = top + 12.0 + 19.0 * len(floor.parts)
    sizes = [(f"{floor.dies} dies" if floor.dies > 1 else "die", f"{_sides(*die)}, {area * 1e6:.0f} mm^2")]
    bundles = floor.plan.bundles * floor.dies
    bundled = sum(part.value for part in floor.parts if part.label in floor.plan.bundled)
    sizes += [(f"{bundles:,} bundles of cores", f"{bundled / bundles * 1e6:.2f} mm^2 each")] if bundles else []
    sizes += [(f"{floor.stacks} HBM stacks", _sides(*floor.stack))] if floor.stacks else []
    package_row = ("package", f"{_sides(*package)}, {package[0] * package[1] * 1e6:.0f} mm^2")
    for number, (name, size) in enumerate([*sizes, package_row]):
        yield text_line(left, y + 12.0 + 19.0 * number, name)
        yield text_line(right, y + 12.0 + 19.0 * number, size, "t n", "end")


def _sides(*sides: float) -> str:
    return " x ".join(f"{side * 1e3:.1f}" for side in sides) + " mm"


# A plan as a grid of devices: each replica a block, its pipeline stages columns, the devices of a stage below each other.

WIDE: Final = 520.0
"""Of the picture, where it stands beside words."""
_LEAST: Final = 5.0
"""Pixels of a device and its margin, below which replicas are left out."""
_MOST: Final = 22.0
_DEVICES_BETWEEN: Final = 3.0
"""Pixels between replicas."""
_DEVICES_HIGH, _HIGH_NARROW = 250.0, 170.0
_GAP: Final = 24.0


@dataclass(frozen=True, slots=True)
class Grid:
    """How many replicas there are, of how many stages each, of how many devices each."""

    replicas: int
    stages: int
    width: int

    @property
    def devices(self) -> int:
        return self.replicas * self.stages * self.width


@dataclass(frozen=True, slots=True)
class _Layout:
    """Replicas in a row and rows, the pixels of a device, and how many replicas are drawn."""

    across: int
    device: float
    shown: int


def sketch(titles: Titles, floor: Floor | None, grid: Grid) -> str:
    """The chip from above, to scale, and beside it the devices of the plan."""
    high = _HIGH_NARROW if titles.narrow else _DEVICES_HIGH
    body, left, bottom = list[str](), 0.0, 0.0
    if floor is not None:
        half = (titles.width - _GAP) / 2.0
        chip = chip_in(floor, (half, high - 52.0), names=True)
        body += [text_line(0.0, 11.0, "the chip, to scale", "m"), f'<g transform="translate(0 20)">{"".join(chip.body)}</g>']
        left, bottom = half + _GAP, 20.0 + chip.height
    layout = _layout(grid, titles.width - left, high - 42.0)
    body += [text_line(left, 11.0, f"{grid.devices:,} devices", "m"), *_blocks(grid, layout, left, 20.0)]
    rows = ceil(layout.shown / layout.across)
    end = 20.0 + rows * (grid.width * layout.device + _DEVICES_BETWEEN)
    if layout.shown < grid.replicas:
        body.append(text_line(left, end + 14.0, f"and {grid.replicas - layout.shown:,} more replicas", "m"))
        end += 20.0
    return picture(titles, max(bottom, end) + 2.0, body)


def _layout(grid: Grid, wide: float, high: float) -> _Layout:
    """The largest devices with which all replicas find room, or as many replicas as find room where those would be too small to see."""

    def size(across: int, rows: int) -> float:
        return min((wide / across - _DEVICES_BETWEEN) / grid.stages, (high / rows - _DEVICES_BETWEEN) / grid.width, _MOST)

    across = max(range(1, grid.replicas + 1), key=lambda count: size(count, ceil(grid.replicas / count)))
    device = size(across, ceil(grid.replicas / across))
    if device >= _LEAST:
        return _Layout(across, device, grid.replicas)
    device = min(_LEAST, size(1, 1))
    across = max(int(wide / (grid.stages * device + _DEVICES_BETWEEN)), 1)
    rows = max(int((high - 16.0) / (grid.width * device + _DEVICES_BETWEEN)), 1)
    return _Layout(across, device, min(across * rows, grid.replicas))


def _blocks(grid: Grid, layout: _Layout, left: float, top: float) -> Sequence[str]:
    """The devices of a stage have one colour in all replicas, and so are one shape of the picture."""
    shapes, device = defaultdict[int, list[tuple[float, float, float, float]]](list), layout.device
    margin = 1.0 if device > 4.0 else 0.3
    for replica in range(layout.shown):
        x = left + replica % layout.across * (grid.stages * device + _DEVICES_BETWEEN)
        y = top + replica // layout.across * (grid.width * device + _DEVICES_BETWEEN)
        for stage in range(grid.stages):
            for row in range(grid.width):
                shapes[stage].append((x + stage * device, y + row * device, device - margin, device - margin))
    of = f" of {grid.width:,} devices" if grid.width > 1 else ""
    names = [f"stage {stage + 1} of {grid.stages}{of}, in {grid.replicas:,} replicas" for stage in range(grid.stages)]
    alone = f"{grid.replicas:,} replicas of one stage{of}"
    return [boxes(shapes[stage], hue(stage % HUES), names[stage] if grid.stages > 1 else alone) for stage in range(grid.stages)]
