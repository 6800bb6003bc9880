"""Colour on a terminal, where it helps: what is proved, what binds, what is refused, titles and bars. Nothing is told by colour alone.

None where text goes elsewhere, where the variable NO_COLOR is set to anything (https://no-color.org) or TERM says that there is none.
"""

import os
import re
import sys
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
    """The same words."""
    for rule, colour in _RULES:
        text = rule.sub(rf"{colour}\g<0>{_END}", text)
    return text


def wants_colour() -> bool:
    """Whether standard output is a terminal that shows it, and nobody said that they want none."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "") in ("", "dumb"):
        return False
    try:
        return sys.stdout.isatty()
    except (AttributeError, ValueError):
        return False
