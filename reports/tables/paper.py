"""Tables for papers and spreadsheets: values, bounds, designs, breakdowns and rivals of results as LaTeX, CSV, Markdown or plain text.

LaTeX needs no package: plain `tabular` with `\\hline`, accents as commands, and signs that the usual fonts lack by their number. CSV is one
long table, a figure a line, with every digit; the others round to six digits, and bounds down.
"""

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from io import StringIO
from textwrap import wrap
from typing import Final
from unicodedata import decomposition

from crossopt.reports.tables.columns import GAP, head_lines, sheets
from crossopt.reports.tables.digest import SAID, Bound, Cell, Digest, Table
from crossopt.reports.texts.design import lowered

_LINE: Final = 44
_ROWS: Final = 40
_NOT_PROVED: Final = "No proof was carried out here: verdicts are as the files say; `crossopt check FILE` proves them anew."
_TOLD: Final = {"latex": f"% {_NOT_PROVED}\n", "markdown": f"{_NOT_PROVED}\n\n", "text": f"{_NOT_PROVED}\n\n"}
"""The first line; a spreadsheet has its heads there, and its verdicts say so alone."""


def paper(kind: str, digests: Sequence[Digest], files: Sequence[str]) -> str:
    """The text of a file of this kind; `files` are the names of the results' files."""
    names, told = names_of(digests, files), any(one.verdict.endswith(SAID) for one in digests)
    return f"{_TOLD.get(kind, '') if told else ''}{FORMATS[kind](tables_of(digests, names))}"


def tables_of(digests: Sequence[Digest], names: Sequence[str]) -> list[tuple[str, Table]]:
    """Figures of all results, their answers and proofs, and then the tables of each with its name."""
    figures = tuple((name, *_figures(one)) for name, one in zip(names, digests, strict=True))
    proofs = tuple((name, one.design, one.verdict, one.prover) for name, one in zip(names, digests, strict=True))
    heads = ("result", "minimised", "unit", "value", "bound", "gap in %", "engine", "seconds")
    first = [("", Table("Results", heads, figures)), ("", Table("Answers and proofs", ("result", "answer", "verdict", "proof"), proofs))]
    return first + [(name, table) for name, one in zip(names, digests, strict=True) for table in one.tables if table.rows]


def _figures(one: Digest) -> tuple[Cell, ...]:
    bound = None if one.bound is None else Bound(one.bound)
    gap = None if one.gap is None else 100.0 * one.gap
    return one.asks, one.unit, one.value, bound, gap, one.engine, one.seconds


def names_of(digests: Sequence[Digest], files: Sequence[str]) -> list[str]:
    """What results are called: as their questions, with the file where that is not enough, and with a number where neither is."""
    counts = Counter(one.name for one in digests)
    found = [one.name if counts[one.name] == 1 else f"{one.name} ({file})" for one, file in zip(digests, files, strict=True)]
    again = Counter(found)
    return [name if again[name] == 1 else f"{name} {place}" for place, name in enumerate(found, 1)]


def _shown(cell: Cell) -> str:
    match cell:
        case None:
            return "-"
        case Bound():
            return lowered(cell.value)
        case str():
            return "".join(sign if sign.isprintable() else " " for sign in cell)
    return f"{cell:.6g}"


def _is_number(table: Table, column: int) -> bool:
    return all(not isinstance(row[column], str) for row in table.rows)


def _titled(name: str, table: Table) -> str:
    return f"{name}: {table.title[0].lower()}{table.title[1:]}" if name else table.title


# --- LaTeX ---------------------------------------------------------------------------------------------------------------------------

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


def _latex(tables: Sequence[tuple[str, Table]]) -> str:
    head = "% Tables of crossopt; \\input this file in any document class, no package is needed."
    return "\n\n".join([head, *(part for name, table in tables for part in _tabulars(name, table))]) + "\n"


def _tabulars(name: str, table: Table) -> Iterator[str]:
    """As many tables as its columns need sheets, and as its rows do."""
    numbers = [_is_number(table, column) for column in range(len(table.heads))]
    rows = [[_shown(cell) for cell in row] for row in table.rows]
    starts = range(0, len(rows), _ROWS)
    parts = [(sheet, rows[start : start + _ROWS]) for sheet in sheets(table.heads, rows, numbers) for start in starts]
    for number, (sheet, lines) in enumerate(parts, 1):
        title = f"{_titled(name, table)}{f' ({number} of {len(parts)})' if len(parts) > 1 else ''}"
        kinds = ["r" if numbers[column] else "l" if share is None else f"p{{{share:.2f}\\linewidth}}" for column, share in sheet]
        heads = [head_lines(table.heads[column], [row[column] for row in rows]) for column, _ in sheet]
        yield _tabular(title, "".join(kinds), _bottom(heads), [[line[column] for column, _ in sheet] for line in lines])


def _bottom(heads: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Heads of several lines as rows, the last line of each in the last row."""
    most = max(map(len, heads))
    return list(zip(*([""] * (most - len(lines)) + [*lines] for lines in heads), strict=True))


def _tabular(title: str, kinds: str, heads: Sequence[Sequence[str]], rows: Sequence[Sequence[str]]) -> str:
    above, below = ([" & ".join(map(escape_signs, row)) + r" \\" for row in part] for part in (heads, rows))
    return "\n".join(
        [
            r"\begin{table}[ht]",
            rf"\caption{{{escape_signs(title)}}}",
            rf"\centering\footnotesize\setlength{{\tabcolsep}}{{{GAP // 2}pt}}",
            rf"\begin{{tabular}}{{{kinds}}}",
            r"\hline",
            *above,
            r"\hline",
            *below,
            r"\hline",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


# --- CSV, Markdown, text -------------------------------------------------------------------------------------------------------------


def _csv(tables: Sequence[tuple[str, Table]]) -> str:
    """One line a figure: whose it is, in which table, row and column it stands, and what it is, with every digit."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("result", "table", "row", "column", "value"))
    for name, table in tables:
        for row in table.rows:
            label = _shown(row[0])
            whose, line = (name, label) if name else (label, "")
            for head, cell in zip(table.heads[1:], row[1:], strict=True):
                writer.writerow([harmless(word) for word in (whose, table.title, line, head)] + [_digits(cell)])
    return out.getvalue()


def _digits(cell: Cell) -> str:
    match cell:
        case None:
            return ""
        case Bound():
            return repr(cell.value)
        case str():
            return harmless(_shown(cell))
    return repr(cell)


def harmless(text: str) -> str:
    """Words that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in {"=", "+", "-", "@"} else text


def _markdown(tables: Sequence[tuple[str, Table]]) -> str:
    return "\n\n".join(_marked(name, table) for name, table in tables) + "\n"


def _marked(name: str, table: Table) -> str:
    lines = [f"**{_plain(_titled(name, table))}**", "", _piped([_plain(head) for head in table.heads])]
    lines.append(_piped(["---:" if _is_number(table, column) else "---" for column in range(len(table.heads))]))
    return "\n".join([*lines, *(_piped([_plain(_shown(cell)) for cell in row]) for row in table.rows)])


def _piped(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>|#" else sign for sign in text)


def _text(tables: Sequence[tuple[str, Table]]) -> str:
    return "\n\n".join(f"{_shown(_titled(name, table))}\n\n{_aligned(table)}" for name, table in tables) + "\n"


def _aligned(table: Table) -> str:
    """Columns below each other; running text goes on in the next line."""
    rows = [[wrap(_shown(cell), _LINE) or [""] for cell in row] for row in ((*table.heads,), *table.rows)]
    widths = [max(len(line) for row in rows for line in row[column]) for column in range(len(table.heads))]
    right = [_is_number(table, column) for column in range(len(table.heads))]
    lines = []
    for row in rows:
        for place in range(max(len(cell) for cell in row)):
            cells = [cell[place] if place < len(cell) else "" for cell in row]
            padded = (cell.rjust(width) if to else cell.ljust(width) for cell, width, to in zip(cells, widths, right, strict=True))
            lines.append(f"  {'  '.join(padded)}".rstrip())
    return "\n".join(lines)


FORMATS: Final[dict[str, Callable[[Sequence[tuple[str, Table]]], str]]] = {
    "latex": _latex,
    "csv": _csv,
    "markdown": _markdown,
    "text": _text,
}
"""How tables are written, by the name of the form."""
