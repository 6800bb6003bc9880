"""Tables for papers and spreadsheets: values, bounds, designs, breakdowns and rivals of results as LaTeX, CSV, Markdown or plain text.

CSV is one long table, a figure a line, with every digit; LaTeX rounds to four digits, the others to six, and bounds down.
"""

import csv
from collections import Counter
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from textwrap import wrap
from typing import Final

from crossopt.reports.render.latex import latex
from crossopt.reports.render.tables import DIGITS, SAID, Digest, Table, digest, is_number, row_written, six_digits, titled, written
from crossopt.reports.sheets.sheet import Bound, Cell, Sheet

_LINE: Final = 44
_NOT_PROVED: Final = "No proof was carried out here: verdicts are as the files say; `crossopt check FILE` proves them anew."
_TOLD: Final = {"latex": f"% {_NOT_PROVED}\n", "markdown": f"{_NOT_PROVED}\n\n", "text": f"{_NOT_PROVED}\n\n"}
"""The first line; a spreadsheet has its heads there, and its verdicts say so alone."""


def paper(kind: str, digests: Sequence[Digest], files: Sequence[str]) -> str:
    """The text of a file of this kind; `files` are the names of the results' files."""
    names, told = names_of(digests, files), any(one.verdict.endswith(SAID) for one in digests)
    tables = tables_of(digests, names)
    text = _captioned(tables, digests, names, files) if kind == "latex" else FORMATS[kind](tables)
    return f"{_TOLD.get(kind, '') if told else ''}{text}"


def sheet_in(form: str, sheet: Sheet, data: object) -> str:
    """A sheet as a file of this form, tables or a page, with the data that it was made of."""
    if form == "html":
        from crossopt.reports.render.html import html  # noqa: PLC0415
        from crossopt.reports.render.page import page  # noqa: PLC0415 - only pages need pictures

        return page(html(sheet, data))
    return FORMATS[form]([("", one) for one in digest(sheet).tables if one.rows])


def _captioned(tables: Sequence[tuple[str, Table]], digests: Sequence[Digest], names: Sequence[str], files: Sequence[str]) -> str:
    """LaTeX with short captions: one result is named in the first alone, and of several a study, whose title is long, by its file."""
    stems = [Path(file).stem for file in files]
    if len(digests) == 1:
        return latex([("", table) for _, table in tables], stems[0], names[0])
    short = {name: name if one.unit or stems.count(stem) > 1 else stem for one, name, stem in zip(digests, names, stems, strict=True)}
    return latex([(short.get(name, ""), table) for name, table in tables])


def tables_of(digests: Sequence[Digest], names: Sequence[str]) -> list[tuple[str, Table]]:
    """Figures of all results that are one answer each, their answers and proofs, and then the tables of each with its name."""
    single = [(name, one) for name, one in zip(names, digests, strict=True) if one.unit]
    figures = tuple((name, *_figures(one)) for name, one in single)
    proofs = tuple((name, one.design, one.verdict, one.prover) for name, one in single)
    heads = ("result", "minimised", "unit", "value", "bound", "gap in %", "engine", "seconds")
    first = [("", Table("Results", heads, figures)), ("", Table("Answers and proofs", ("result", "answer", "verdict", "proof"), proofs))]
    return (first if single else []) + [
        (name, table) for name, one in zip(names, digests, strict=True) for table in one.tables if table.rows
    ]


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


# --- CSV, Markdown, text -------------------------------------------------------------------------------------------------------------


def _csv(tables: Sequence[tuple[str, Table]]) -> str:
    """One line a figure: whose it is, in which table, row and column it stands, and what it is, with every digit."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("result", "table", "row", "column", "value"))
    for name, table in tables:
        for row in table.rows:
            label = written(row[0])
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
            return harmless(written(cell))
    return repr(cell)


def harmless(text: str) -> str:
    """Words that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in {"=", "+", "-", "@"} else text


def _markdown(tables: Sequence[tuple[str, Table]]) -> str:
    return "\n\n".join(_marked(name, table) for name, table in tables) + "\n"


def _marked(name: str, table: Table) -> str:
    lines = [f"**{_plain(titled(name, table))}**", "", _piped([_plain(head) for head in table.heads])]
    lines.append(_piped(["---:" if is_number(table, column) else "---" for column in range(len(table.heads))]))
    return "\n".join([*lines, *(_piped([_plain(cell) for cell in row_written(row, six_digits, DIGITS)]) for row in table.rows)])


def _piped(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>|#" else sign for sign in text)


def _text(tables: Sequence[tuple[str, Table]]) -> str:
    return "\n\n".join(f"{written(titled(name, table))}\n\n{_aligned(table)}" for name, table in tables) + "\n"


def _aligned(table: Table) -> str:
    """Columns below each other; running text goes on in the next line."""
    shown = [[*map(written, table.heads)], *(row_written(row, six_digits, DIGITS) for row in table.rows)]
    rows = [[wrap(cell, _LINE) or [""] for cell in row] for row in shown]
    widths = [max(len(line) for row in rows for line in row[column]) for column in range(len(table.heads))]
    right = [is_number(table, column) for column in range(len(table.heads))]
    lines = []
    for row in rows:
        for place in range(max(len(cell) for cell in row)):
            cells = [cell[place] if place < len(cell) else "" for cell in row]
            padded = (cell.rjust(width) if to else cell.ljust(width) for cell, width, to in zip(cells, widths, right, strict=True))
            lines.append(f"  {'  '.join(padded)}".rstrip())
    return "\n".join(lines)


FORMATS: Final[dict[str, Callable[[Sequence[tuple[str, Table]]], str]]] = {
    "latex": latex,
    "csv": _csv,
    "markdown": _markdown,
    "text": _text,
}
"""How tables are written, by the name of the form."""
