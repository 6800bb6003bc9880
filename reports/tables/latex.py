"""Tables as LaTeX, to be `\\input`: rules of booktabs where a document loads it and plain lines where it does not, a label for each table,
accents as commands, and signs that the usual fonts lack by their number. Figures have four digits, which papers have room for.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final
from unicodedata import decomposition

from crossopt.reports.tables.columns import GAP, head_lines, sheets
from crossopt.reports.tables.digest import Table, is_number, row_written, titled

_ROWS: Final = 40
_DIGITS: Final = 4
_LABEL: Final = "%label%"
_HEAD: Final = (
    "% Tables of crossopt; \\input this file in any document class. With \\usepackage{booktabs} its rules are used, else plain lines.",
    r"\providecommand{\toprule}{\hline}\providecommand{\midrule}{\hline}\providecommand{\bottomrule}{\hline}",
)

_SIGNS: Final = {
    **{sign: f"\\{sign}" for sign in "{}$&#_%"},
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\N{MIDDLE DOT}": r"$\cdot$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{RIGHTWARDS ARROW}": r"$\rightarrow$",
    "\N{SUPERSCRIPT TWO}": "$^2$",
    "\N{SUPERSCRIPT THREE}": "$^3$",
    "\N{MICRO SIGN}": r"$\mu$",
    "\N{GREEK SMALL LETTER MU}": r"$\mu$",
    "\N{LESS-THAN OR EQUAL TO}": r"$\leq$",
    "\N{GREATER-THAN OR EQUAL TO}": r"$\geq$",
    "\N{NO-BREAK SPACE}": "~",
    "\N{EN DASH}": "--",
    "\N{EM DASH}": "---",
    "\N{HORIZONTAL ELLIPSIS}": r"\ldots{}",
    "\N{LEFT SINGLE QUOTATION MARK}": "`",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{LEFT DOUBLE QUOTATION MARK}": "``",
    "\N{RIGHT DOUBLE QUOTATION MARK}": "''",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "å": r"\aa{}",
    "Å": r"\AA{}",
    "ß": r"\ss{}",
}
_CLOSED: Final = "''"
_ACCENTS: Final = {"0300": "`", "0301": "'", "0302": "^", "0303": "~", "0308": '"', "0327": "c", "030C": "v", "030A": "r"}


def escape_signs(text: str) -> str:
    """Words as LaTeX prints them."""
    quoted = text.replace("m^2", "m\N{SUPERSCRIPT TWO}").split('"')
    parts = ("".join(map(_sign, part)) for part in quoted)
    return "".join(part if not place else f"{'``' if place % 2 else _CLOSED}{part}" for place, part in enumerate(parts))


def _sign(sign: str) -> str:
    if sign in _SIGNS:
        return _SIGNS[sign]
    if sign.isascii():
        return sign
    letter, _, accent = decomposition(sign).partition(" ")
    if accent in _ACCENTS and letter:
        base = chr(int(letter, 16))
        if base.isascii():
            return f"\\{_ACCENTS[accent]}{{{base}}}"
    return f"[U+{ord(sign):04X}]"


def latex(tables: Sequence[tuple[str, Table]]) -> str:
    """The text of a file to be taken in by others."""
    parts = [part for name, table in tables for part in _tabulars(name, table)]
    seen, found = Counter[str](), list[str]()
    for title, part in parts:
        name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
        seen[name] += 1
        label = name if seen[name] == 1 else f"{name}-{seen[name]}"
        found.append(part.replace(_LABEL, rf"\label{{tab:{label}}}", 1))
    return "\n\n".join(["\n".join(_HEAD), *found]) + "\n"


def _tabulars(name: str, table: Table) -> Iterator[tuple[str, str]]:
    """Titles and tables, as many tables as its columns need sheets, and as its rows do."""
    numbers = [is_number(table, column) for column in range(len(table.heads))]
    rows = [row_written(row, _figure, _DIGITS) for row in table.rows]
    starts = range(0, len(rows), _ROWS)
    parts = [(sheet, rows[start : start + _ROWS]) for sheet in sheets(table.heads, rows, numbers) for start in starts]
    for number, (sheet, lines) in enumerate(parts, 1):
        title = f"{titled(name, table)}{f' ({number} of {len(parts)})' if len(parts) > 1 else ''}"
        kinds = ["r" if numbers[column] else "l" if share is None else f"p{{{share:.2f}\\linewidth}}" for column, share in sheet]
        heads = [head_lines(table.heads[column], [row[column] for row in rows]) for column, _ in sheet]
        yield title, _tabular(title, "".join(kinds), _bottom(heads), [[line[column] for column, _ in sheet] for line in lines])


def _figure(value: float) -> str:
    """Whole numbers from a thousand on with all their digits, up to where powers of ten are shorter."""
    return f"{value:.0f}" if 10.0**_DIGITS <= abs(value) < 1e9 else f"{value:.{_DIGITS}g}"


def _bottom(heads: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Heads of several lines as rows, the last line of each in the last row."""
    most = max(map(len, heads))
    return list(zip(*([""] * (most - len(lines)) + [*lines] for lines in heads), strict=True))


def _tabular(title: str, kinds: str, heads: Sequence[Sequence[str]], rows: Sequence[Sequence[str]]) -> str:
    above, below = ([" & ".join(map(escape_signs, row)) + r" \\" for row in part] for part in (heads, rows))
    return "\n".join(
        [
            r"\begin{table}[ht]",
            rf"\caption{{{escape_signs(title)}}}{_LABEL}",
            rf"\centering\footnotesize\setlength{{\tabcolsep}}{{{GAP // 2}pt}}",
            rf"\begin{{tabular}}{{{kinds}}}",
            r"\toprule",
            *above,
            r"\midrule",
            *below,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )
