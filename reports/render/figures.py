"""A picture of ours as a page of PDF, with its font embedded: the few shapes that `reports/drawing/svg.py` writes, drawn by reportlab.

Sizes are those of the picture in points, three quarters of its pixels. The font is Bitstream Vera Sans, which comes with reportlab, and has
the widths by which words were fitted.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from io import BytesIO
from typing import Any, Final
from xml.etree import ElementTree

from reportlab.lib.colors import HexColor
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from crossopt.reports.drawing.svg import WIDTH, box, hue, text_line, width_of
from crossopt.reports.render.html import Page
from crossopt.reports.render.style import alone

_POINTS: Final = 0.75
_RULE: Final = re.compile(r"\.([\w-]+)\{([^}]*)\}")
_WAY: Final = re.compile(r"([MLHVhvCz])([^MLHVhvCz]*)")
_FONTS: Final = {"400": "Vera", "600": "VeraBd", "700": "VeraBd"}
Looks = dict[str, str]


def pdf_of(svg: str) -> bytes:
    """The page; the same bytes for the same picture."""
    root = ElementTree.fromstring(svg)
    wide, high = map(float, (root.get("viewBox") or "0 0 1 1").split()[2:])
    for name in set(_FONTS.values()):
        pdfmetrics.registerFont(TTFont(name, f"{name}.ttf"))
    out = BytesIO()
    canvas = Canvas(out, pagesize=(wide * _POINTS, high * _POINTS), invariant=1, initialFontName="Vera")
    canvas.setTitle(root[0].text or "")
    canvas.scale(_POINTS, -_POINTS)
    canvas.translate(0.0, -high)
    rules = [(name, dict(part.split(":", 1) for part in looks.split(";") if ":" in part)) for name, looks in _RULE.findall(svg)]
    for shape in root:
        _draw(canvas, shape, rules)
    canvas.save()
    return out.getvalue()


def _draw(canvas: Any, shape: ElementTree.Element, rules: Sequence[tuple[str, Looks]]) -> None:  # noqa: ANN401 - reportlab has no types
    tag = shape.tag.rpartition("}")[2]
    if tag == "g":
        across, down = map(float, re.findall(r"[\d.-]+", shape.get("transform") or "translate(0 0)"))
        canvas.saveState()
        canvas.translate(across, down)
        for inner in shape:
            _draw(canvas, inner, rules)
        canvas.restoreState()
        return
    kinds = (shape.get("class") or "").split()
    looks = {"fill": "#000", "stroke": "none", **{key: value for name, found in rules if name in kinds for key, value in found.items()}}
    if tag == "text":
        _write(canvas, shape, looks)
    elif tag in ("rect", "circle", "path", "polyline"):
        canvas.saveState()
        fills, strokes = _set(canvas, looks)
        _outline(canvas, tag, shape, (strokes, fills))
        canvas.restoreState()


def _set(canvas: Any, looks: Looks) -> tuple[int, int]:  # noqa: ANN401
    """Colours and widths; whether a shape is filled, and whether it has a line."""
    fills, strokes = (looks[name] not in ("none", "transparent") for name in ("fill", "stroke"))
    if fills:
        canvas.setFillColor(HexColor(_long(looks["fill"])))
    if strokes:
        canvas.setStrokeColor(HexColor(_long(looks["stroke"])))
        canvas.setStrokeAlpha(float(looks.get("stroke-opacity", "1")))
        canvas.setLineWidth(float(looks.get("stroke-width", "1")))
        canvas.setDash([float(part) for part in looks.get("stroke-dasharray", "").split()])
    return int(fills), int(strokes)


def _long(colour: str) -> str:
    return f"#{''.join(2 * sign for sign in colour[1:])}" if len(colour) == 4 else colour


def _outline(canvas: Any, tag: str, shape: ElementTree.Element, fill_and_stroke: tuple[int, int]) -> None:  # noqa: ANN401
    number = {name: float(shape.get(name) or 0.0) for name in ("x", "y", "width", "height", "rx", "cx", "cy", "r")}
    sides = (number["x"], number["y"], number["width"], number["height"])
    if tag == "circle":
        canvas.circle(number["cx"], number["cy"], number["r"], *fill_and_stroke)
    elif tag == "rect" and number["rx"]:
        canvas.roundRect(*sides, min(number["rx"], sides[2] / 2.0, sides[3] / 2.0), *fill_and_stroke)
    elif tag == "rect":
        canvas.rect(*sides, *fill_and_stroke)
    else:
        canvas.drawPath(_path(canvas, tag, shape), *fill_and_stroke)


def _path(canvas: Any, tag: str, shape: ElementTree.Element) -> Any:  # noqa: ANN401
    """Lines through points, or a way of moves, level and upright steps and curves."""
    path = canvas.beginPath()
    if tag == "polyline":
        points = [tuple(map(float, pair.split(","))) for pair in (shape.get("points") or "").split()]
        path.moveTo(*points[0])
        for point in points[1:]:
            path.lineTo(*point)
        return path
    x = y = 0.0
    for step, rest in _WAY.findall(shape.get("d") or ""):
        found = [float(part) for part in re.findall(r"-?[\d.]+", rest)]
        match step:
            case "M":
                x, y = found
                path.moveTo(x, y)
            case "h":
                x += found[0]
                path.lineTo(x, y)
            case "v":
                y += found[0]
                path.lineTo(x, y)
            case "C":
                path.curveTo(*found)
                x, y = found[-2:]
            case _:
                path.close()
    return path


def _write(canvas: Any, shape: ElementTree.Element, looks: Looks) -> None:  # noqa: ANN401
    """Words, upright on a page whose heights count downwards; signs that the font lacks are told by a question mark."""
    font, size = _FONTS[looks.get("font-weight", "400")], float(shape.get("font-size") or 12.0)
    known = pdfmetrics.getFont(font).face.charToGlyph
    text = "".join(sign if ord(sign) in known else "?" for sign in shape.text or "")
    wide = pdfmetrics.stringWidth(text, font, size)
    back = {"middle": wide / 2.0, "end": wide}.get(shape.get("text-anchor") or "", 0.0)
    canvas.saveState()
    canvas.setFillColor(HexColor(_long(looks["fill"])))
    canvas.setFont(font, size)
    canvas.translate(float(shape.get("x") or 0.0) - back, float(shape.get("y") or 0.0))
    canvas.scale(1.0, -1.0)
    canvas.drawString(0.0, 0.0, text)
    canvas.restoreState()


# The pictures of a page as files that stand alone: with their colours in them, and with what their letters stand for below them.

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
