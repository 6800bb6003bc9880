"""Colour on a terminal: proofs, binding limits, refusals, titles and bars. Colour is never the only cue.

None where text goes elsewhere, where the variable NO_COLOR is set to anything (https://no-color.org) or TERM says that there is none.
"""

import os
import re
import sys
from contextlib import suppress
from textwrap import wrap
from typing import Final

_END: Final = "\x1b[0m"
_RULES: Final = (
    (re.compile(r"\b(?:not proved|no proof|not answered|binds)\b"), "\x1b[33m"),
    (re.compile(r"(?<!not )\b(?:proved optimal|proved within [\d.]+%|proved|accepted)\b"), "\x1b[32m"),
    (re.compile(r"\b(?:REFUSED|refused)\b"), "\x1b[31m"),
    (re.compile(r"[█▏▎▍▌▋▊▉]+"), "\x1b[34m"),
    (re.compile(r"(?m)^  [A-Za-z]\S*(?: \S+){0,5}$"), "\x1b[1m"),
)


def coloured(text: str) -> str:
    """The text with ANSI colours."""
    for rule, colour in _RULES:
        text = rule.sub(rf"{colour}\g<0>{_END}", text)
    return text


def wants_colour() -> bool:
    """Whether standard output is a terminal with colours, and NO_COLOR is not set."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "") in ("", "dumb"):
        return False
    try:
        return sys.stdout.isatty()
    except (AttributeError, ValueError):
        return False


# How a text stands on the terminal: as wide as that, up to 120 signs, and a hundred where there is none; in colour where there is one.

_LEAST, _MOST, _USUAL = 60, 120, 100
_OF_SHEETS = 80
_HANGING = 4
_TIE = "\N{NO-BREAK SPACE}"
_FULL, _EIGHTHS = "█", " ▏▎▍▌▋▊▉"


def page_width() -> int:
    """Signs on a line."""
    there = _columns()
    return _USUAL if there is None else min(max(there, _LEAST), _MOST)


def sheet_width() -> int:
    """Characters on a line of an answer drawn from a sheet: 80 where there is no terminal."""
    there = _columns()
    return _OF_SHEETS if there is None else min(max(there, _LEAST), _MOST)


def fitted(text: str) -> str:
    """The text with no line that is wider than the terminal, in colour; as it is where there is no terminal, as programs may read it."""
    there = _columns()
    text = text if there is None else "".join(_broken(line, max(there, _LEAST)) for line in text.splitlines(keepends=True))
    return coloured(text) if wants_colour() else text


def wrapped(label: str, text: str) -> list[str]:
    """The text after a label, on as many lines as the page needs, each below the first."""
    indent = " " * len(label)
    lines = wrap(text, page_width(), initial_indent=label, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return lines or [label.rstrip()]


def listed(label: str, items: str) -> list[str]:
    """As `wrapped`, for items between `·`, `;` or `,`, each of which stays on one line."""
    return [line.replace(_TIE, " ") for line in wrapped(label, re.sub(r"(?<![·;,]) (?!·)", _TIE, items))]


def _broken(line: str, width: int) -> str:
    if len(line.rstrip("\n")) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip(" ")))
    inside = wrap(
        line.strip(),
        width,
        initial_indent=indent,
        subsequent_indent=indent + " " * _HANGING,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return "\n".join(inside) + "\n"


def _columns() -> int | None:
    """Of the terminal, as COLUMNS or the system says; None where the text goes elsewhere."""
    if (stated := os.environ.get("COLUMNS", "")).isdecimal() and int(stated):
        return int(stated)
    with suppress(OSError, ValueError, AttributeError):
        if sys.stdout.isatty():
            return os.get_terminal_size(sys.stdout.fileno()).columns or None
    return None


def eighths(share: float, width: int) -> str:
    """A share as a bar of eighths of signs."""
    count = round(share * width * 8)
    return _FULL * (count // 8) + _EIGHTHS[count % 8].strip()
