"""Tasks and marks: answers are right, nearly right with the mistake that explains them, or wrong.

What is right in some cases is no more right than a formula that is wrong: a task earns all its points, a part of them where one mistake
with a name explains every case that fails, and else nothing; and what all tasks together earn without any mistake is a mark of its own.

Where the handouts lie, and the public case of each, which students have before them and graders ask for before the hidden ones.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any
from unicodedata import normalize

import yaml

from crossopt import instances
from crossopt.solvers.grading.running import Call

SAME = 1e-9
"""The relative error up to which two computations of the same figure are the same: rounding in another order. The handouts say so."""

_SIGNS = 500
"""Longest sentence about a lost point."""
_DIGITS = 17
"""Digits that distinguish any two figures."""


NEARLY = 0.4
"""The share of its points that a task keeps with one known mistake."""
PRACTICE = "practice"
"""The seed of the practice cases."""
PARTS, WHOLE = 60, 40
"""Points of an assignment for its tasks, and for all of them together without a mistake."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The share of the points that an answer earns (0, NEARLY or 1), why not more, and each mistake that explains it, in a sentence."""

    share: float
    why: str = ""
    mistakes: tuple[str, ...] = ()


FULL = Verdict(1.0)


@dataclass(frozen=True, slots=True)
class Slip:
    """What a likely mistake makes of a figure, and its name in a sentence. Of a grave one nothing is kept."""

    mistake: str
    figure: float
    share: float = NEARLY


@dataclass(frozen=True, slots=True)
class Case:
    """One call with its arguments, what to call it in front of students, and who judges what it returns."""

    name: str
    call: Call
    judge: Callable[[Any], Verdict]
    public: bool = False
    """Whether the case is public: it is reported, and earns nothing."""


@dataclass(frozen=True, slots=True)
class Task:
    """A part of an assignment; its hidden cases are right together or not at all."""

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
    total: int = WHOLE
    """Points for all tasks together."""
    handed: str = "solution.py"
    """The file that is handed in."""
    judge: Callable[[Path, str], tuple[Mark, ...]] | None = None
    """The marks of a folder; where it is None the file is a program, whose functions the tasks call."""
    rank: Callable[[Path, str], float | None] | None = None
    """How far what was found in a folder is above the bound that is proved, relatively, for the board of a class."""


@dataclass(frozen=True, slots=True)
class Grade:
    """All marks of a submission. `refused` says why nothing could be looked at, `note` what was missing in the grading itself, `file` what
    was looked at, and `fault` why no function of the program returned anything."""

    assignment: str
    marks: tuple[Mark, ...]
    refused: str = ""
    note: str = ""
    above: float | None = None
    """Relative distance of the answer from the proved bound, if there is a leaderboard."""
    file: str = ""
    fault: str = ""
    hidden: bool = False
    """Whether it has hidden cases, which are not shown before grades are published."""

    @property
    def points(self) -> float:
        return round(sum(mark.points for mark in self.marks), 2)

    @property
    def out_of(self) -> int:
        return sum(mark.out_of for mark in self.marks)


def nearly(mistake: str, why: str = "", *others: str) -> Verdict:
    """The verdict on an answer that a known mistake explains."""
    return Verdict(NEARLY, why, (mistake, *others))


def wrong(why: str, mistake: str = "") -> Verdict:
    """The verdict on a wrong answer, possibly with a known mistake."""
    return Verdict(0.0, why, (mistake,) if mistake else ())


def given_first(cases: Iterable[Case], public: int = 1) -> tuple[Case, ...]:
    """Cases, of which the first ones are public."""
    return tuple(replace(case, public=number < public) for number, case in enumerate(cases))


def by_gap(gap: float, nearly_at: float, why: str, mistake: str) -> Verdict:
    """Right without a gap, nearly right up to the gap that the mistake explains, wrong otherwise."""
    if gap <= SAME:
        return FULL
    return nearly(mistake, why) if gap <= nearly_at else wrong(why)


def figure(value: object, right: float, slips: Sequence[Slip] = ()) -> Verdict:
    """Compare a figure with the right one, and with the results of likely mistakes."""
    if (given := number(value)) is None:
        return wrong(f"{shown(value)} is returned where a figure is meant")
    if same(given, right):
        return FULL
    why = _beside(given, right)
    found = [slip for slip in slips if same(given, slip.figure) and not same(right, slip.figure)]
    share = max((slip.share for slip in found), default=0.0)
    return Verdict(share, why, tuple(slip.mistake for slip in found if slip.share == share))


def same(given: float, right: float) -> bool:
    """Whether two figures are the same, but for rounding."""
    return abs(given - right) <= SAME * abs(right)


def _beside(given: float, right: float) -> str:
    if right == 0.0:
        return f"{given:.6g} is returned where 0 is right"
    ratio, _ = apart(given / right, 1.0, digits=4)
    return f"the figure is {ratio} times the right one"


def apart(*figures: float, digits: int = 6) -> list[str]:
    """Figures in this many digits, or more if needed to distinguish them."""
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


def integers_in(value: object, most: int) -> list[int] | None:
    """A list of at most so many whole numbers; None for anything else."""
    if not isinstance(value, list) or len(value) > most or any(isinstance(entry, bool) or not isinstance(entry, int) for entry in value):
        return None
    return value


def printable(text: str) -> str:
    """A program's words on one line: signs that a terminal would obey are shown as their escapes, and the end of a long text left out."""
    shortened = text if len(text) <= _SIGNS else f"{text[:_SIGNS]}..."
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in shortened)


def shown(value: object) -> str:
    """A value, shortened."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def seed_of(seed: str, student: str | None) -> str:
    """The seed of a student's cases: the common seed and the student."""
    return f"{seed}/{same_name(student)}" if student and student.strip() else seed


def same_name(student: str) -> str:
    """A name or number as it is compared: in small letters, without blanks around it, and an accent as one sign with its letter, as one
    computer writes it and another one does not (NFC, Unicode Standard Annex 15)."""
    return normalize("NFC", normalize("NFC", student.strip()).casefold())


HANDOUTS = Path(instances.__file__).parent / "course"
BESIDE = "handed_in.py"
"""Header of the public tests of each assignment."""


def public(assignment: str) -> dict[str, Any]:
    """The content of `instance.yaml` of an assignment."""
    return yaml.safe_load((HANDOUTS / assignment / "instance.yaml").read_text(encoding="utf-8"))  # type: ignore[no-any-return]
