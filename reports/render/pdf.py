"""A picture of ours as a page of PDF, with its font embedded: the few shapes that `reports/drawing/svg.py` writes, drawn by reportlab.

Sizes are those of the picture in points, three quarters of its pixels. The font is Bitstream Vera Sans, which comes with reportlab, and has
the widths by which words were fitted.
"""

import re
from collections.abc import Sequence
from io import BytesIO
from typing import Any, Final
from xml.etree import ElementTree

from reportlab.lib.colors import HexColor
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

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
