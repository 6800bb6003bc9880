"""What is asked, and how answers become points: a verdict recomputes what is handed in and explains each lost point."""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, isfinite
from pathlib import Path
from typing import Any

from crossopt.solvers.grading.walls.running import Call

SAME = 1e-9
"""The relative error up to which two computations of the same figure are the same: rounding in another order. The handouts say so."""

_SIGNS = 500
"""Of a sentence about a lost point."""
_DIGITS = 17
"""Tell any two figures apart."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The share of the points that an answer earns, from 0 to 1, and why not more."""

    share: float
    why: str = ""


FULL = Verdict(1.0)


@dataclass(frozen=True, slots=True)
class Case:
    """One call with hidden arguments, what to call it in front of students, and who judges what it returns."""

    name: str
    call: Call
    judge: Callable[[Any], Verdict]


@dataclass(frozen=True, slots=True)
class Task:
    """A part of an assignment: its cases share its points evenly."""

    name: str
    points: int
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """What a task earned, and a sentence for each case that lost points."""

    name: str
    points: float
    out_of: int
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Assignment:
    """What is asked, drawn from a seed: functions of a program, and the seconds that each task may take; or a file that `judge` reads."""

    name: str
    title: str
    tasks: Callable[[str], tuple[Task, ...]]
    seconds: int = 10
    handed: str = "solution.py"
    """The file that is handed in."""
    judge: Callable[[Path, str], tuple[Mark, ...]] | None = None
    """The marks of a folder; where it is None the file is a program, whose functions the tasks call."""


@dataclass(frozen=True, slots=True)
class Grade:
    """All marks of a submission. `refused` says why nothing could be looked at, `note` what was missing in the grading itself."""

    assignment: str
    marks: tuple[Mark, ...]
    refused: str = ""
    note: str = ""

    @property
    def points(self) -> float:
        return round(sum(mark.points for mark in self.marks), 2)

    @property
    def out_of(self) -> int:
        return sum(mark.out_of for mark in self.marks)


def by_gap(gap: float, nothing_at: float, why: str) -> Verdict:
    """All points without a gap, none from `nothing_at` on, and in between in proportion, in whole hundredths rounded down."""
    share = max(0.0, 1.0 - gap / nothing_at) if isfinite(gap) else 0.0
    return FULL if gap <= SAME else Verdict(floor(min(share, 0.99) * 100.0) / 100.0, why)


def figure(value: object, right: float, nothing_at: float = 0.1) -> Verdict:
    """A figure beside the right one."""
    if (given := number(value)) is None:
        return Verdict(0.0, f"{shown(value)} is returned where a figure is meant")
    if right == 0.0:
        return FULL if given == 0.0 else Verdict(0.0, f"{given:.6g} is returned where 0 is right")
    ratio, _ = apart(given / right, 1.0, digits=4)
    return by_gap(abs(given - right) / abs(right), nothing_at, f"the figure is {ratio} times the right one")


def apart(*figures: float, digits: int = 6) -> list[str]:
    """Figures in so many digits, or in as many more as different ones need to look different."""
    for more in range(digits, _DIGITS):
        texts = [f"{figure:.{more}g}" for figure in figures]
        if len(set(texts)) == len(set(figures)):
            return texts
    return [repr(figure) for figure in figures]


def number(value: object) -> float | None:
    """A finite figure; None for anything else, truth values among it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if isfinite(value) else None
    except OverflowError:
        return None


def numbers(value: object, most: int) -> list[float] | None:
    """A list of at most so many finite figures; None for anything else."""
    if not isinstance(value, list) or len(value) > most:
        return None
    found = [number(entry) for entry in value]
    return None if None in found else [entry for entry in found if entry is not None]


def whole_numbers(value: object, most: int) -> list[int] | None:
    """A list of at most so many whole numbers; None for anything else."""
    if not isinstance(value, list) or len(value) > most or any(isinstance(entry, bool) or not isinstance(entry, int) for entry in value):
        return None
    return value


def printable(text: str) -> str:
    """A program's words on one line: signs that a terminal would obey are shown as their escapes, and the end of a long text left out."""
    kept = text if len(text) <= _SIGNS else f"{text[:_SIGNS]}..."
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in kept)


def shown(value: object) -> str:
    """A value in a few signs."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
