"""Tables as LaTeX, to be `\\input`: rules of booktabs where a document loads it and plain lines where it does not, a label for each table,
accents as commands, and signs that the usual fonts lack by their number. Figures have four digits, which papers have room for.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final
from unicodedata import decomposition

from crossopt.reports.render.columns import GAP, Sheet, head_lines, lines_of, sheets
from crossopt.reports.render.tables import Table, is_number, row_written, titled, written

_LINES: Final = 40
"""Of the rows of a table, which leave room for its head and its caption on a page."""
_MOST: Final = 80
"""Rows of a table that are printed."""
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


def latex(tables: Sequence[tuple[str, Table]], file: str = "", whole: str = "") -> str:
    """The text of a file to be taken in by others: labels begin with the name `file`, the first caption with what the `whole` is called."""
    seen, found = Counter[str](), ["\n".join(_HEAD)]
    for place, (name, table) in enumerate(tables):
        if len(table.rows) > _MOST:
            what = escape_signs(written(titled(name, table)))
            found.append(f"% {what}: left out, as a paper has no room for {len(table.rows):,} rows; --as csv has them.")
            continue
        for number, part in _tabulars(titled(whole if place == 0 and whole else name, table), _told(table)):
            slug = re.sub(r"[^a-z0-9]+", "-", f"{file} {titled(name, table)}{number}".lower()).strip("-")
            seen[slug] += 1
            label = slug if seen[slug] == 1 else f"{slug}-{seen[slug]}"
            found.append(part.replace(_LABEL, rf"\label{{tab:{label}}}", 1))
    return "\n\n".join(found) + "\n"


def _told(table: Table) -> Table:
    """The table without columns, but for the first, that tell nothing in any row."""
    kept = [column for column in range(len(table.heads)) if not column or any(row[column] not in (None, "") for row in table.rows)]
    rows = tuple(tuple(row[column] for column in kept) for row in table.rows)
    return replace(table, heads=tuple(table.heads[column] for column in kept), rows=rows)


def _tabulars(title: str, table: Table) -> Iterator[tuple[str, str]]:
    """Numbers and tables, as many tables as its columns need sheets, and as its rows do."""
    numbers = [is_number(table, column) for column in range(len(table.heads))]
    rows = [row_written(row, _figure, _DIGITS) for row in table.rows]
    parts = [(sheet, lines) for sheet in sheets(table.heads, rows, numbers) for lines in _pages(sheet, rows)]
    for place, (sheet, lines) in enumerate(parts, 1):
        number = f" ({place} of {len(parts)})" if len(parts) > 1 else ""
        heads = [head_lines(table.heads[column], [row[column] for row in rows]) for column, _ in sheet.columns]
        cells = [[line[column] for column, _ in sheet.columns] for line in lines]
        yield number, _tabular(f"{title}{number}", sheet, [numbers[column] for column, _ in sheet.columns], _bottom(heads), cells)


def _pages(sheet: Sheet, rows: Sequence[Sequence[str]]) -> list[list[Sequence[str]]]:
    """The rows of each page, which are as many as its lines have room for."""
    running = [(column, share * sheet.line) for column, share in sheet.columns if share is not None]
    found, used = list[list[Sequence[str]]](), _LINES
    for row in rows:
        lines = max([1, *(lines_of(row[column], points) for column, points in running)])
        if used + lines > _LINES:
            found.append([])
            used = 0
        found[-1].append(row)
        used += lines
    return found


def _figure(value: float) -> str:
    """Whole numbers from a thousand on with all their digits, up to where powers of ten are shorter."""
    return f"{value:.0f}" if 10.0**_DIGITS <= abs(value) < 1e9 else f"{value:.{_DIGITS}g}"


def _bottom(heads: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Heads of several lines as rows, the last line of each in the last row."""
    most = max(map(len, heads))
    return list(zip(*([""] * (most - len(lines)) + [*lines] for lines in heads), strict=True))


def _tabular(title: str, sheet: Sheet, numbers: Sequence[bool], heads: Sequence[Sequence[str]], rows: Sequence[Sequence[str]]) -> str:
    float_, shares = "table*" if sheet.wide else "table", [share for _, share in sheet.columns]
    kinds = [
        "r" if number else "l" if share is None else f"p{{{share:.2f}\\linewidth}}" for number, share in zip(numbers, shares, strict=True)
    ]
    end = r" \\" if shares[-1] is None else r" \tabularnewline"  # in the last column ragged text takes the short one for itself
    above = [" & ".join(map(escape_signs, row)) + end for row in heads]
    below = [" & ".join(_in(share, cell) for share, cell in zip(shares, row, strict=True)) + end for row in rows]
    return "\n".join(
        [
            rf"\begin{{{float_}}}[{'t' if sheet.wide else 'ht'}]",
            rf"\caption{{{escape_signs(title)}}}{_LABEL}",
            rf"\centering\footnotesize\setlength{{\tabcolsep}}{{{GAP // 2}pt}}",
            rf"\begin{{tabular}}{{{''.join(kinds)}}}",
            r"\toprule",
            *above,
            r"\midrule",
            *below,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\end{{{float_}}}",
        ]
    )


def _in(share: float | None, cell: str) -> str:
    """A cell; running text is not stretched to the width of its column."""
    return escape_signs(cell) if share is None else rf"\raggedright {escape_signs(cell)}"
