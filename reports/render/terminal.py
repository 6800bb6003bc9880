"""A sheet for the terminal: 80 columns, figures first, the certificate last."""

from collections.abc import Iterator
from textwrap import wrap
from typing import assert_never

from crossopt.reports.sheet import Bars, Prose, Section, Sheet, Table

_WIDTH, _BAR = 80, 24
_CELL = 28
"""Of a table; longer ones are cut."""


def terminal(sheet: Sheet) -> str:
    """The whole text."""
    lines = [f"{sheet.name}   {sheet.label}", ""]
    wide = max((len(name) for name, _ in sheet.figures), default=0) + 4
    lines += [f"  {name:<{wide}}{figure}" for name, figure in sheet.figures]
    for section in sheet.sections:
        lines += ["", f"  {section.title}", *_section(section)]
    certificate = wrap(f"certificate: {sheet.verdict}", _WIDTH, initial_indent="  ", subsequent_indent="  ")
    return "\n".join([*lines, "", *certificate]) + "\n"


def _section(section: Section) -> Iterator[str]:
    match section:
        case Prose(lines=lines):
            for line in lines:
                yield from wrap(line, _WIDTH, initial_indent="    ", subsequent_indent="    ")
        case Bars():
            yield from _bars(section)
        case Table():
            yield from _table(section)
        case _:
            assert_never(section)


def _bars(bars: Bars) -> Iterator[str]:
    most = max(amount for _, amount, _ in bars.rows) or 1.0
    wide = min(max(len(label) for label, _, _ in bars.rows), _CELL)
    for label, amount, shown in bars.rows:
        yield f"    {label[:_CELL]:<{wide}}  |{'█' * round(_BAR * amount / most):<{_BAR}}|  {shown}"


def _table(table: Table) -> Iterator[str]:
    rows = [table.heads, *table.rows] if any(table.heads) else list(table.rows)
    cut = [[cell if len(cell) <= _CELL else f"{cell[: _CELL - 3]}..." for cell in row] for row in rows]
    if len(table.heads) == 2 and not any(table.heads):  # names with what they are: the text may take the rest of the line
        wide = max(len(row[0]) for row in rows) + 2
        for name, words in rows:
            yield from wrap(words, _WIDTH, initial_indent=f"    {name:<{wide}}", subsequent_indent=" " * (wide + 4)) or [f"    {name}"]
        return
    widths = [max(len(row[place]) for row in cut) for place in range(len(table.heads))]
    for row in cut:
        cells = (
            f"{cell:>{width}}" if place in table.numbers else f"{cell:<{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield f"    {'  '.join(cells)}".rstrip()
