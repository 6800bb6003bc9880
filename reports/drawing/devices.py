"""A plan as a grid of devices: each replica a block, its pipeline stages columns, the devices of a stage below each other."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from crossopt.reports.drawing.floorplan import Floor, chip_in
from crossopt.reports.drawing.svg import HUES, Titles, boxes, hue, picture, words

WIDE: Final = 520.0
"""Of the picture, where it stands beside words."""
_LEAST: Final = 5.0
"""Pixels of a device and its margin, below which replicas are left out."""
_MOST: Final = 22.0
_BETWEEN: Final = 3.0
"""Pixels between replicas."""
_HIGH, _HIGH_NARROW = 250.0, 170.0
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
    drawn: int


def sketch(titles: Titles, floor: Floor | None, grid: Grid) -> str:
    """The chip from above, to scale, and beside it the devices of the plan."""
    high = _HIGH_NARROW if titles.narrow else _HIGH
    body, left, bottom = list[str](), 0.0, 0.0
    if floor is not None:
        half = (titles.width - _GAP) / 2.0
        chip = chip_in(floor, (half, high - 52.0), names=True)
        body += [words(0.0, 11.0, "the chip, to scale", "m"), f'<g transform="translate(0 20)">{"".join(chip.body)}</g>']
        left, bottom = half + _GAP, 20.0 + chip.height
    layout = _layout(grid, titles.width - left, high - 42.0)
    body += [words(left, 11.0, f"{grid.devices:,} devices", "m"), *_blocks(grid, layout, left, 20.0)]
    rows = ceil(layout.drawn / layout.across)
    end = 20.0 + rows * (grid.width * layout.device + _BETWEEN)
    if layout.drawn < grid.replicas:
        body.append(words(left, end + 14.0, f"and {grid.replicas - layout.drawn:,} more replicas", "m"))
        end += 20.0
    return picture(titles, max(bottom, end) + 2.0, body)


def _layout(grid: Grid, wide: float, high: float) -> _Layout:
    """The largest devices with which all replicas find room, or as many replicas as find room where those would be too small to see."""

    def size(across: int, rows: int) -> float:
        return min((wide / across - _BETWEEN) / grid.stages, (high / rows - _BETWEEN) / grid.width, _MOST)

    across = max(range(1, grid.replicas + 1), key=lambda count: size(count, ceil(grid.replicas / count)))
    device = size(across, ceil(grid.replicas / across))
    if device >= _LEAST:
        return _Layout(across, device, grid.replicas)
    device = min(_LEAST, size(1, 1))
    across = max(int(wide / (grid.stages * device + _BETWEEN)), 1)
    rows = max(int((high - 16.0) / (grid.width * device + _BETWEEN)), 1)
    return _Layout(across, device, min(across * rows, grid.replicas))


def _blocks(grid: Grid, layout: _Layout, left: float, top: float) -> Sequence[str]:
    """The devices of a stage have one colour in all replicas, and so are one shape of the picture."""
    shapes, device = defaultdict[int, list[tuple[float, float, float, float]]](list), layout.device
    margin = 1.0 if device > 4.0 else 0.3
    for replica in range(layout.drawn):
        x = left + replica % layout.across * (grid.stages * device + _BETWEEN)
        y = top + replica // layout.across * (grid.width * device + _BETWEEN)
        for stage in range(grid.stages):
            for row in range(grid.width):
                shapes[stage].append((x + stage * device, y + row * device, device - margin, device - margin))
    of = f" of {grid.width:,} devices" if grid.width > 1 else ""
    names = [f"stage {stage + 1} of {grid.stages}{of}, in {grid.replicas:,} replicas" for stage in range(grid.stages)]
    alone = f"{grid.replicas:,} replicas of one stage{of}"
    return [boxes(shapes[stage], hue(stage % HUES), names[stage] if grid.stages > 1 else alone) for stage in range(grid.stages)]
