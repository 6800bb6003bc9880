"""Small functions that draw: shapes and words as SVG text, in classes whose colours the page gives, light or dark, on screen or on paper.

Texts depend on their input only, so that a picture that has not changed gives the same bytes. Widths of words are estimated from above, by
the widest of the usual fonts without serifs (DejaVu Sans), so that a word that fits here fits anywhere.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from typing import Final, Literal

from crossopt.crossflow.records import dataclass

WIDTH: Final = 720.0
"""Of every picture on a wide screen and on paper."""
NARROW: Final = 360.0
"""The width on a phone, for which each picture is drawn a second time with text of equal size."""
HUES: Final = 8
"""Colours that the page has for parts, `k0` to `k7`; parts also carry letters or names, so that colour is never the only cue."""
SIZE: Final = 12.0
OUTLINED: Final = 3.0
"""Pixels from which on a mark has an outline; of a narrower one it would leave nothing."""
_BESIDE: Final = 500.0
_NARROW: Final = frozenset("iljtfrI.,:;'|!()[] /-\"·`")
_WIDE: Final = frozenset("mwMW@%—½…≥≤→")
_EM: Final = {"narrow": 0.42, "wide": 0.98, "capital": 0.76, "other": 0.64}
Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True)
class Titles:
    """What a picture is called, and what it shows in words, for those who cannot see it."""

    name: str
    """As no other picture of the page."""
    title: str
    description: str
    width: float = WIDTH

    @property
    def narrow(self) -> bool:
        """Whether labels have no room beside what they name, and stand above it."""
        return self.width < _BESIDE

    def at(self, width: float) -> "Titles":
        """The titles for a picture of another width on the same page."""
        return replace(self, width=width)


def picture(titles: Titles, height: float, body: Sequence[str]) -> str:
    """A picture as wide as it is to be and so high."""
    name = f"{titles.name}-narrow" if titles.narrow else titles.name
    return "\n".join(
        [
            f'<svg viewBox="0 0 {_number(titles.width)} {_number(height)}" role="img" aria-labelledby="{name}-title {name}-desc">',
            f'<title id="{name}-title">{_escaped(titles.title)}</title>',
            f'<desc id="{name}-desc">{_escaped(titles.description)}</desc>',
            *body,
            "</svg>",
        ]
    )


def box(x: float, y: float, width: float, height: float, kind: str, corner: float = 0.0, tip: str = "") -> str:
    """A rectangle; a tip is what it says to who points at it."""
    rounded = f' rx="{_number(corner)}"' if corner else ""
    sides = f'x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}"{rounded}'
    return f'<rect class="{kind}" {sides}{_closed("rect", tip)}'


def boxes(sides: Sequence[tuple[float, float, float, float]], kind: str, tip: str = "") -> str:
    """Many rectangles (x, y, width, height) as one shape: a fifth of the text that each on its own would take."""
    ways = (f"M{_number(x)} {_number(y)}h{_number(width)}v{_number(height)}h-{_number(width)}z" for x, y, width, height in sides)
    return f'<path class="{kind}" d="{"".join(ways)}"{_closed("path", tip)}'


def line(points: Sequence[tuple[float, float]], kind: str) -> str:
    """A line through points."""
    return f'<polyline class="{kind}" points="{" ".join(f"{_number(x)},{_number(y)}" for x, y in points)}"/>'


def curve(start: tuple[float, float], end: tuple[float, float], kind: str, bow: float = 0.0) -> str:
    """A line that leaves and arrives upright, and swings out to the right by a bow."""
    (x, y), (to, down) = start, end
    middle = (y + down) / 2.0
    bends = f"{_number(x + bow)} {_number(middle)} {_number(to + bow)} {_number(middle)}"
    return f'<path class="{kind}" d="M{_number(x)} {_number(y)}C{bends} {_number(to)} {_number(down)}"/>'


def dot(x: float, y: float, radius: float, kind: str, tip: str = "") -> str:
    """A full circle."""
    return f'<circle class="{kind}" cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}"{_closed("circle", tip)}'


def spot(x: float, y: float, half: float, kind: str, square: bool, tip: str = "") -> str:
    """A full circle or a square of the same width round a place."""
    return box(x - half, y - half, 2.0 * half, 2.0 * half, kind, tip=tip) if square else dot(x, y, half, kind, tip)


def _closed(tag: str, tip: str) -> str:
    """The end of a shape, with what it says; browsers show it without any script."""
    return f"><title>{_escaped(tip)}</title></{tag}>" if tip else "/>"


def text_line(x: float, y: float, text: str, kind: str = "t", anchor: Anchor = "start", size: float = SIZE) -> str:
    """One line of text that stands on the height y."""
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    height = "" if size == SIZE else f' font-size="{_number(size)}"'
    return f'<text class="{kind}" x="{_number(x)}" y="{_number(y)}"{where}{height}>{_escaped(text)}</text>'


def width_of(text: str, size: float = SIZE) -> float:
    """How wide a line of text is at the most."""
    return size * sum(_EM[_kind(sign)] for sign in text)


def widest(texts: Iterable[str]) -> float:
    """How wide the widest of them is at the most."""
    return max(map(width_of, texts), default=0.0)


def fitted(text: str, room: float, size: float = SIZE) -> str:
    """The text, or as much of its beginning as there is room for, with an ellipsis."""
    if width_of(text, size) <= room:
        return text
    shortened = text
    while shortened and width_of(f"{shortened}…", size) > room:
        shortened = shortened[:-1]
    return f"{shortened.rstrip()}…" if shortened else ""


def shortened(text: str, room: float, size: float = SIZE) -> str:
    """The text, or as much of its beginning and of its end as there is room for, as labels often differ in their ends."""
    for left_out in range(len(text) + 1):
        start = (len(text) - left_out + 1) // 2
        shown = text if left_out == 0 else f"{text[:start].rstrip()}…{text[start + left_out :].lstrip()}"
        if width_of(shown, size) <= room:
            return shown
    return ""


def spread(places: Sequence[float], least: float, low: float, high: float) -> list[float]:
    """The places, ascending, moved as little as need be to stand `least` apart between two ends; closer where there is no room."""
    if not places:
        return []
    step = min(least, (high - low) / max(len(places) - 1, 1))
    moved = list[float]()
    for wanted in places:
        moved.append(max(wanted, moved[-1] + step if moved else low))
    limit = high
    for number in range(len(moved) - 1, -1, -1):
        moved[number] = min(moved[number], limit)
        limit = moved[number] - step
    return moved


def beside(heights: Sequence[float], least: float, low: float, high: float) -> list[tuple[int, float]]:
    """Which of the heights comes next, from above, and where words about it stand so that they are apart as `spread` has them."""
    order = sorted(range(len(heights)), key=lambda index: heights[index])
    return list(zip(order, spread([heights[index] for index in order], least, low, high), strict=True))


def letter(index: int) -> str:
    """A, B, ..., Z, AA, AB, ...: what a part is called in its picture and in the table beside it."""
    return (letter(index // 26 - 1) if index >= 26 else "") + chr(ord("A") + index % 26)


def hue(index: int) -> str:
    """The class of a part's colour."""
    return f"k{index % HUES}"


def _kind(sign: str) -> str:
    if sign in _NARROW:
        return "narrow"
    if sign in _WIDE or ord(sign) > 0x2E80:
        return "wide"
    return "capital" if sign.isupper() else "other"


def _escaped(text: str) -> str:
    """Words as people write them, with squares."""
    return escape(text.replace("m^2", "m²"))


def _number(value: float) -> str:
    """At most one decimal place, which is a tenth of a pixel."""
    text = f"{value:.1f}"
    return "0" if text == "-0.0" else text.removesuffix(".0")
