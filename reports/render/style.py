"""How pages look: colours for light and dark screens and for paper, all in variables, and nothing that has to be fetched."""

import re
from functools import cache
from pathlib import Path
from typing import Final

_LIGHT: Final = (
    "--page:#fff;--panel:#f5f6f8;--ink:#1b2129;--soft:#566170;--rule:#d9dee5;--on:#fff;--good:#1a6b3c;--warn:#9a4a00;"
    "--k0:#2563a8;--k1:#b3490c;--k2:#0f766e;--k3:#8b3a7c;--k4:#7a5c00;--k5:#a1264a;--k6:#4d6b1f;--k7:#5b6470"
)
_DARK: Final = (
    "--page:#12161b;--panel:#1b2128;--ink:#e6e9ed;--soft:#a0abb8;--rule:#343d48;--on:#10151b;--good:#7fd6a0;--warn:#f0a36b;"
    "--k0:#7db4f0;--k1:#f0a36b;--k2:#5ccfc0;--k3:#d99ad0;--k4:#d8bb55;--k5:#f08ba5;--k6:#a9cf6e;--k7:#a7b0bb"
)
"""Words on each of the colours and each of the colours on the page have a contrast of 4.5 or more."""

_MARKS: Final = """
.t{fill:var(--ink)}.m{fill:var(--soft)}.on{fill:var(--on);font-weight:600}.b{font-weight:700}
.cut{stroke:var(--page);stroke-width:1}.fine{stroke-width:.5}
.track{fill:var(--rule)}
.grid{stroke:var(--rule);stroke-width:1;fill:none}
.mark{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:5 3;fill:none}
.pointer{fill:none;stroke-width:1.2}.step{fill:none;stroke-width:2.2}.dashed{stroke-dasharray:7 4}
.arc{fill:none;stroke:var(--soft);stroke-width:1;stroke-opacity:.55}
.moved{stroke:var(--ink);stroke-width:1.6;stroke-opacity:.8}
.roof{fill:none;stroke:var(--ink);stroke-width:1.6}.quiet{stroke:var(--soft)}.ground{fill:var(--page)}
.hollow{fill:var(--page);stroke:var(--ink);stroke-width:1.2}
.none{fill:transparent}
.branch{fill:none;stroke:var(--soft);stroke-width:1}
"""
"""What pictures are drawn with."""


@cache
def style() -> str:
    """The style sheet."""
    dark = f"@media screen and (prefers-color-scheme:dark){{:root{{{_DARK}}}}}"
    rules = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    return f":root{{color-scheme:light dark;{_LIGHT}}}{dark}\n{rules}{_MARKS}{_hues()}"


def alone(picture: str) -> str:
    """A picture as a file of its own: light, with its colours in it rather than in variables, which not every viewer knows."""
    colours = dict(pair.split(":") for pair in _LIGHT.split(";"))
    rules = f"svg{{background:var(--page);font:12px sans-serif}}{_MARKS}{_hues()}"
    sheet = re.sub(r"var\((--\w+)\)", lambda found: colours[found[1]], rules)
    head, rest = picture.split("</desc>", 1)
    opened = head.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return f"{opened}</desc>\n<style>{sheet}</style>{rest}\n"


def _hues() -> str:
    return "".join(
        f".k{index}{{fill:var(--k{index})}}.k{index}-line{{stroke:var(--k{index})}}.b{index}{{background:var(--k{index})}}"
        for index in range(8)
    )
