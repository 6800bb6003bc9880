"""The pictures of a page as files that stand alone: with their colours in them, and with what their letters stand for below them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import Final

from crossopt.reports.drawing.svg import WIDTH, box, hue, text_line, width_of
from crossopt.reports.render.html import Page
from crossopt.reports.render.style import alone

_FIGURE: Final = re.compile(r'(?s)<figure[^>]*>\n<div class="for-wide">\n(<svg.*?</svg>)')
_KEY: Final = re.compile(r'<span class="swatch b(\d)">([A-Z]+)</span> ([^<]*)')
_ROW: Final = 20.0
_MARK: Final = 18.0
_GAP: Final = 16.0


@dataclass(frozen=True, slots=True)
class Key:
    """A letter on its colour, and what it stands for."""

    colour: int
    letter: str
    label: str


def figures_of(page: Page) -> list[tuple[str, str]]:
    """Of each picture a name, as no other of the page has it, and the text of its file."""
    found, names = list[tuple[str, str]](), set[str]()
    for part in map(str, page.sections):
        for picture, keys in _in_section(part):
            title = re.sub(r"<[^>]*>", "", picture[picture.index("<title") : picture.index("</title>")])
            name = stem = re.sub(r"[^a-z0-9]+", "-", unescape(title).lower()).strip("-")
            while name in names:
                name = f"{stem}-{len(names) + 1}"
            names.add(name)
            found.append((name, alone(_with_keys(picture, keys))))
    return found


def _in_section(text: str) -> Iterator[tuple[str, list[Key]]]:
    """Each picture with the keys that stand above it or in the table below it."""
    places = list(_FIGURE.finditer(text))
    for number, found in enumerate(places):
        before = text[places[number - 1].end() if number else 0 : found.start()].rpartition('<p class="keys">')
        end = places[number + 1].start() if number + 1 < len(places) else len(text)
        after = text[found.end() : end].partition('<div class="table parts">')
        keys = [Key(int(colour), letter, unescape(label)) for colour, letter, label in _KEY.findall(before[2] if before[1] else after[2])]
        picture = found[1]
        yield picture, [] if all(f">{key.letter}  {key.label}" in picture for key in keys) else keys


def _with_keys(picture: str, keys: list[Key]) -> str:
    """The picture, and below it its keys in as many rows as they need."""
    found = re.match(r'<svg viewBox="0 0 ([\d.]+) ([\d.]+)"', picture)
    if not keys or found is None:
        return picture
    wide, high = float(found[1]), float(found[2])
    body, x, y = list[str](), 0.0, high + 12.0
    for key in keys:
        room = _MARK + 6.0 + width_of(key.label)
        if x and x + room > min(wide, WIDTH):
            x, y = 0.0, y + _ROW
        body += [box(x, y, _MARK, 15.0, hue(key.colour), 3.0), text_line(x + _MARK / 2.0, y + 11.5, key.letter, "on", "middle")]
        body.append(text_line(x + _MARK + 6.0, y + 12.0, key.label))
        x += room + _GAP
    inside = picture.removesuffix("</svg>").replace(found[0], f'<svg viewBox="0 0 {wide:g} {y + _ROW:g}"', 1)
    return "\n".join([inside.rstrip(), *body, "</svg>"])
