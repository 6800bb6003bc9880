"""Points of a study that stand in a CSV file of the user's: which column says where on the first axis, and which what was measured."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from crossopt.instances.errors import InstanceError
from crossopt.instances.files.tables import Cells, columns_of, number, read_table
from crossopt.instances.files.units import nearest, parse_number, quoted
from crossopt.instances.studies.sections import AgainstSection

Told = Callable[[str, str], None]
"""Takes a key of the section, and what is wrong there."""


def with_points(section: AgainstSection, axis: Sequence[str], folder: Path, told: Told) -> AgainstSection:
    """The section with the points of its file; as it is where it names none, or where something is wrong, which is told."""
    if not section.file:
        for key in ("at", "figure", "rows"):
            if getattr(section, key):
                told(key, f"this says where points stand in a file (write `file:` beside it, or leave `{key}` out)")
        return section
    if section.points:
        told("points", "points are written here or in a file (leave `points` out, or `file`)")
    elif not (section.at and section.figure):
        told("file", "say which columns of the file are meant (`at:` for the value on the first axis, `figure:` for what was measured)")
    elif axis:  # a study without axes is told so anyway
        return _read(section, axis, folder, told)
    return section


def _read(section: AgainstSection, axis: Sequence[str], folder: Path, told: Told) -> AgainstSection:
    """Every row that is meant and stands at a value of the axis, once."""
    needed = tuple(dict.fromkeys((section.at, section.figure, *section.rows)))
    path = folder / section.file
    try:
        columns = columns_of(path)
        if missing := [name for name in needed if name not in columns]:
            guess = nearest(missing[0], columns)
            remedy = (
                f"did you mean {guess[0]!r}?"
                if guess
                else f"one of {', '.join(map(quoted, columns[:_SHOWN])) or 'none, as the file is empty'}"
            )
            told("file", f"{section.file} has no column {quoted(missing[0])} ({remedy})")
            return section
        table = read_table(path, needed, needed, "measured point")
    except InstanceError as error:
        told("file", "; ".join(f"{error.source}:{fault.line}: {fault.message}" for fault in error.faults))
        return section
    meant = [row for row in table.lines if all(row.given.get(name) == text for name, text in section.rows.items())]
    points, faults = dict[str, float](), list[str]()
    for row in meant:
        faults += _take(row, section, axis, points)
    if not faults and not points:
        which = f"of its {len(table.lines):,} rows {len(meant):,} are meant, and none stands at {', '.join(axis)}"
        faults = [f"{which} (look at `at:`{' and `rows:`' if section.rows else ''})"]
    if faults:
        told("file", f"{section.file}: {'; '.join(faults[:_TOLD])}{'; and more' * (len(faults) > _TOLD)}")
        return section
    return replace(section, points=points)


_TOLD, _SHOWN = 3, 12


def _take(row: Cells, section: AgainstSection, axis: Sequence[str], points: dict[str, float]) -> list[str]:
    """Put the point of a row among the others, where it stands at a value of the axis; what is wrong with it."""
    if row.fault:
        return [f"line {row.line}: {row.fault}"]
    at, faults = _value_at(row.given[section.at], axis), list[str]()
    if at is None:
        return []
    figure = number(row.given, section.figure, faults)
    if at in points and figure is not None:
        return [f"line {row.line}: there is a point at {at} already (say by `rows:` which are meant)"]
    if figure is not None:
        points[at] = figure
    return [f"line {row.line}: {fault}" for fault in faults]


def _value_at(text: str, axis: Sequence[str]) -> str | None:
    """The value of the axis that a cell means: the same text, or the same number."""
    return next((value for value in axis if value == text or _same_number(value, text)), None)


def _same_number(one: str, other: str) -> bool:
    try:
        return parse_number(one) == parse_number(other)
    except ValueError:
        return False
