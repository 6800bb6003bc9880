"""Which columns of a table fit beside each other on a sheet of paper, and how wide those of running text are.

A table stands in one column of a page with two where all of it fits there, else across the page. LaTeX's `article` of ten points has the
narrowest of the usual ones: a column of 229.5 points, and a line of 345 where the page has one. Letters are as wide as Computer Modern's
of eight points, which is `\\footnotesize`. Heads are broken between words. Long text columns share what figures leave; where that is too
little, columns go on in a further table, beside the words that say which row it is.
"""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from textwrap import wrap
from typing import Final
from unicodedata import decomposition

from crossopt.reports.render.tables import DIGITS, SAID, Digest, Table, digest, is_number, row_written, six_digits, titled, written
from crossopt.reports.sheets.sheet import Amount, Bound, Cell, Sheet

Places = tuple[tuple[int, float | None], ...]
"""Columns by their place, with the share of the line that running text has; None for one as wide as its longest entry."""


@dataclass(frozen=True, slots=True)
class PaperSheet:
    """Columns beside each other, and whether they go across a page with two columns."""

    columns: Places
    wide: bool

    @property
    def line(self) -> float:
        """The points that there are at least."""
        return LINE if self.wide else COLUMN


COLUMN: Final = 229.5
LINE: Final = 345.0
GAP: Final = 8
"""Points between columns."""
_WIDE: Final = 120.0
"""Points of an entry from which on its column is one of running text."""
_HEAD: Final = 10
"""Letters of a line of a head that are always allowed."""
_BROKEN: Final = 50.0
"""Points from which on it may become one, where there is no room."""
_LEAST: Final = 72.0
"""Points that a column of running text has at least: an inch."""
_MOST: Final = 0.6
"""The share of a line that all columns of running text have at most."""
_POINTS: Final = {
    **dict.fromkeys("!',.:;[]`ilfj", 2.6),
    **dict.fromkeys("-I()rts", 3.4),
    **dict.fromkeys("cez", 3.8),
    **dict.fromkeys("$*/0123456789^ago{}~<>?J ", 4.4),
    **dict.fromkeys("kqvxySbdhnpu_", 4.8),
    **dict.fromkeys("ZLF", 5.6),
    **dict.fromkeys("EPBCTw", 6.2),
}
_OTHERS, _WIDEST = 6.7, dict.fromkeys('#%mM"|W', 8.8)
"""Points of letters by the TFM file of cmr8; capitals and signs that are not named have 6.7, as have those that are no ASCII."""


def width(text: str) -> float:
    """Points that a text takes at most."""
    return sum(_POINTS.get(sign, _WIDEST.get(sign, _OTHERS)) for sign in text)


def head_lines(head: str, cells: Sequence[str]) -> list[str]:
    """A head in lines that are little longer than what stands below it."""
    return wrap(head, max([_HEAD, *map(len, cells)]), break_long_words=False) or [""]


def lines_of(text: str, points: float) -> int:
    """How many lines a text takes in a column of this width, broken between words."""
    lines, used = 1, 0.0
    for word in text.split():
        used += width(word) + (width(" ") if used else 0.0)
        if used > points:
            lines, used = lines + 1, width(word)
    return lines


def sheets(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[bool]) -> list[PaperSheet]:
    """All columns on one sheet if they fit; else several, each of which begins with the words that rows begin with."""
    columns = _measured(heads, rows, numbers)
    every = range(len(columns))
    if single := _sheet(every, columns):
        return [single]
    keys = _keys(columns)
    found, group = list[PaperSheet](), list[int]()
    for column in every[len(keys) :]:
        if group and not _sheet([*keys, *group, column], columns):
            found.append(_placed([*keys, *group], columns))
            group = []
        group.append(column)
    return [*found, _placed([*keys, *group], columns)]


@dataclass(frozen=True, slots=True)
class _Column:
    """What decides about a column: the points of its longest entry and of its longest word, and whether it holds figures alone."""

    longest: float
    longest_word: float
    number: bool


def _measured(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[bool]) -> list[_Column]:
    found = list[_Column]()
    for column, (head, number) in enumerate(zip(heads, numbers, strict=True)):
        cells = [row[column] for row in rows]
        lines = head_lines(head, cells)
        pieces = [piece for text in (*cells, *lines) for piece in re.split(r"\s|(?<=-)", text)]
        found.append(_Column(max(map(width, (*cells, *lines))), max(map(width, pieces)), number))
    return found


def _keys(columns: Sequence[_Column]) -> list[int]:
    """The columns of words at the front, as many of them as leave room for each other column; the first of all at least."""
    count = next((number for number, column in enumerate(columns) if column.number), len(columns))
    for last in range(count, 1, -1):
        keys = list(range(last))
        if last < len(columns) and all(_sheet([*keys, number], columns) for number in range(last, len(columns))):
            return keys
    return [0]


def _sheet(places: Sequence[int], columns: Sequence[_Column]) -> PaperSheet | None:
    """The columns in one of a page if they fit there, else across it; None where there is no room."""
    for wide in (False, True):
        if found := _fitting(places, columns, LINE if wide else COLUMN):
            return PaperSheet(found, wide)
    return None


def _fitting(places: Sequence[int], columns: Sequence[_Column], line: float) -> Places | None:
    """The columns beside each other, the fewest of them as running text."""
    text_columns = sorted((column for column in places if not columns[column].number), key=lambda column: -columns[column].longest)
    first = sum(columns[column].longest > _WIDE for column in text_columns)
    most = sum(columns[column].longest > _BROKEN for column in text_columns)
    for count in range(first, most + 1):
        running = set(text_columns[:count])
        taken = sum(GAP + (0.0 if column in running else columns[column].longest) for column in places)
        if not count and taken <= line:
            return tuple((column, None) for column in places)
        share = int(100.0 * min(1.0 - taken / line, _MOST) / max(count, 1)) / 100.0
        if count and share * line >= max(_LEAST, *(columns[column].longest_word for column in running)):
            return tuple((column, share if column in running else None) for column in places)
    return None


def _placed(places: Sequence[int], columns: Sequence[_Column]) -> PaperSheet:
    """As they fit; a column for which no sheet is wide enough stands out of it."""
    share = int(100.0 * _LEAST / LINE + 1.0) / 100.0
    return _sheet(places, columns) or PaperSheet(
        tuple((column, share if columns[column].longest > _WIDE else None) for column in places), True
    )


# Tables as LaTeX, to be `\input`: rules of booktabs where a document loads it and plain lines where it does not, a label for each table,
# accents as commands, and signs that the usual fonts lack by their number. Figures have four digits, which papers have room for.

_LINES: Final = 40
"""Of the rows of a table, which leave room for its head and its caption on a page."""
_LATEX_MOST: Final = 80
"""Rows of a table that are printed."""
_DIGITS: Final = 4
_LABEL: Final = "%label%"
_LATEX_HEAD: Final = (
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
    return "".join(part if not index else f"{'``' if index % 2 else _CLOSED}{part}" for index, part in enumerate(parts))


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


def latex(tables: Sequence[tuple[str, Table]], file: str = "", title: str = "") -> str:
    """The text of a file to be taken in by others: labels begin with the name `file`, the first caption with what the `title` is called."""
    seen, found = Counter[str](), ["\n".join(_LATEX_HEAD)]
    for index, (name, table) in enumerate(tables):
        if len(table.rows) > _LATEX_MOST:
            what = escape_signs(written(titled(name, table)))
            found.append(f"% {what}: left out, as a paper has no room for {len(table.rows):,} rows; --as csv has them.")
            continue
        for number, part in _tabulars(titled(title if index == 0 and title else name, table), _without_empty_columns(table)):
            slug = re.sub(r"[^a-z0-9]+", "-", f"{file} {titled(name, table)}{number}".lower()).strip("-")
            seen[slug] += 1
            label = slug if seen[slug] == 1 else f"{slug}-{seen[slug]}"
            found.append(part.replace(_LABEL, rf"\label{{tab:{label}}}", 1))
    return "\n\n".join(found) + "\n"


def _without_empty_columns(table: Table) -> Table:
    """The table without columns, but for the first, that tell nothing in any row."""
    filled = [column for column in range(len(table.heads)) if not column or any(row[column] not in (None, "") for row in table.rows)]
    rows = tuple(tuple(row[column] for column in filled) for row in table.rows)
    return replace(table, heads=tuple(table.heads[column] for column in filled), rows=rows)


def _tabulars(title: str, table: Table) -> Iterator[tuple[str, str]]:
    """Numbers and tables, as many tables as its columns need sheets, and as its rows do."""
    numbers = [is_number(table, column) for column in range(len(table.heads))]
    rows = [row_written(row, _figure, _DIGITS) for row in table.rows]
    parts = [(sheet, lines) for sheet in sheets(table.heads, rows, numbers) for lines in _pages(sheet, rows)]
    for ordinal, (sheet, lines) in enumerate(parts, 1):
        number = f" ({ordinal} of {len(parts)})" if len(parts) > 1 else ""
        heads = [head_lines(table.heads[column], [row[column] for row in rows]) for column, _ in sheet.columns]
        cells = [[line[column] for column, _ in sheet.columns] for line in lines]
        yield number, _tabular(f"{title}{number}", sheet, [numbers[column] for column, _ in sheet.columns], _bottom(heads), cells)


def _pages(sheet: PaperSheet, rows: Sequence[Sequence[str]]) -> list[list[Sequence[str]]]:
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


def _tabular(title: str, sheet: PaperSheet, numbers: Sequence[bool], heads: Sequence[Sequence[str]], rows: Sequence[Sequence[str]]) -> str:
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


# Tables for papers and spreadsheets: values, bounds, designs, breakdowns and baselines of results as LaTeX, CSV, Markdown or plain text.
#
# CSV is one long table, a figure a line, with every digit; LaTeX rounds to four digits, the others to six, and bounds down.

_LINE: Final = 44
_NOT_PROVED: Final = "No proof was repeated here: verdicts are what the files state; `crossopt check FILE` repeats them."
_FIRST_LINE: Final = {"latex": f"% {_NOT_PROVED}\n", "markdown": f"{_NOT_PROVED}\n\n", "text": f"{_NOT_PROVED}\n\n"}
"""The first line; a spreadsheet has its heads there, and its verdicts say so alone."""


def paper(kind: str, digests: Sequence[Digest], files: Sequence[str]) -> str:
    """The text of a file of this kind; `files` are the names of the results' files."""
    names, unproved = names_of(digests, files), any(digest.verdict.endswith(SAID) for digest in digests)
    tables = tables_of(digests, names)
    text = _captioned(tables, digests, names, files) if kind == "latex" else FORMATS[kind](tables)
    return f"{_FIRST_LINE.get(kind, '') if unproved else ''}{text}"


def sheet_in(form: str, sheet: Sheet, data: object) -> str:
    """A sheet as a file of this form, tables or a page, with the data that it was made of."""
    if form == "html":
        from crossopt.reports.render.html import html, page  # noqa: PLC0415

        return page(html(sheet, data))
    return FORMATS[form]([("", table) for table in digest(sheet).tables if table.rows])


def _captioned(tables: Sequence[tuple[str, Table]], digests: Sequence[Digest], names: Sequence[str], files: Sequence[str]) -> str:
    """LaTeX with short captions: one result is named in the first alone, and of several a study, whose title is long, by its file."""
    stems = [Path(file).stem for file in files]
    if len(digests) == 1:
        return latex([("", table) for _, table in tables], stems[0], names[0])
    short = {
        name: name if entry.is_answer or stems.count(stem) > 1 else stem for entry, name, stem in zip(digests, names, stems, strict=True)
    }
    return latex([(short.get(name, ""), table) for name, table in tables])


def tables_of(digests: Sequence[Digest], names: Sequence[str]) -> list[tuple[str, Table]]:
    """Figures of all results that are one answer each, their answers and proofs, and then the tables of each with its name."""
    single = [(name, entry) for name, entry in zip(names, digests, strict=True) if entry.is_answer]
    figures = tuple((name, *_figures(entry)) for name, entry in single)
    proofs = tuple((name, entry.design, entry.verdict, entry.prover) for name, entry in single)
    heads = ("result", "minimised", "unit", "value", "bound", "gap in %", "engine", "seconds")
    first = [("", Table("Results", heads, figures)), ("", Table("Answers and proofs", ("result", "answer", "verdict", "proof"), proofs))]
    return (first if single else []) + [
        (name, table) for name, entry in zip(names, digests, strict=True) for table in entry.tables if table.rows
    ]


def _figures(entry: Digest) -> tuple[Cell, ...]:
    bound = None if entry.bound is None else Bound(entry.bound)
    gap = None if entry.gap is None else 100.0 * entry.gap
    return entry.asks, entry.unit, entry.value, bound, gap, entry.engine, entry.seconds


def names_of(digests: Sequence[Digest], files: Sequence[str]) -> list[str]:
    """What results are called: as their questions, with the file where that is not enough, and with a number where neither is."""
    counts = Counter(entry.name for entry in digests)
    found = [entry.name if counts[entry.name] == 1 else f"{entry.name} ({file})" for entry, file in zip(digests, files, strict=True)]
    again = Counter(found)
    return [name if again[name] == 1 else f"{name} {number}" for number, name in enumerate(found, 1)]


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
                unit = f" in {cell.unit}" if isinstance(cell, Amount) else ""
                writer.writerow([harmless(cell) for cell in (whose, table.title, line, f"{head}{unit}")] + [_digits(cell)])
    return out.getvalue()


def _digits(cell: Cell) -> str:
    match cell:
        case None:
            return ""
        case Bound() | Amount():
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
        for index in range(max(len(cell) for cell in row)):
            cells = [cell[index] if index < len(cell) else "" for cell in row]
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
