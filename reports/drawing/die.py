"""Where the parts of one die lie: columns along both sides, rows at both ends, a band in the middle, and bundles of cores around it.

A bundle (a streaming multiprocessor) is a tile of cores with its registers and its L1. Tiles fill the room above and below the band in
rows, all of one area; a row of k tiles is as high as k tiles of that area are across the room, so that nothing is left over. What else
there is lies in rows beside the band, as the network and the schedulers between cores and cache do, but for links to other dies, which lie
at the sides where these are.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import Final

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
            yield from (replace(one, blocks=tuple(_turned(block, die) for block in one.blocks)) for one in _first(plan, areas, die))
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
        yield from ((x + width * place / tiles, y, width / tiles, high) for place in range(tiles))
        y += high
