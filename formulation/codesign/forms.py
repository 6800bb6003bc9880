"""The forms in which the co-design question can be written: one set of choices, five ways to say what they cost at least.

    strong      a row per tangent that says something of every plan (`codesign_tangent`); the engines' usual form
    weak        a row per tangent that speaks of its plan alone, behind a big M: the foil
    table       tables of the time over plans and parts of the chip (`codesign_table`); rows for single chips refine it
    classic     1/x of each part's rate by straight pieces, and lines over them (`codesign_reciprocal`)
    log         products as sums of logarithms, exp by its tangents (`codesign_log`)

Each is a relaxation: its optimum is a lower bound. A form begins with what it needs from the start and is tightened, round by round, at a
plan and a chip that the relaxation likes too much. What its rows lose there the loop makes up by rows for that chip.
"""

from collections.abc import Callable
from dataclasses import dataclass

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.codesign.log import with_log_rows
from crossopt.formulation.codesign.parts import Point
from crossopt.formulation.codesign.reciprocal import with_lines, with_pieces
from crossopt.formulation.codesign.rows import Codesign
from crossopt.formulation.codesign.table import with_tables
from crossopt.formulation.codesign.tangent import with_strong_rows, with_weak_rows
from crossopt.instances.codesign.boxes import Grid
from crossopt.instances.codesign.instance import Instance


@dataclass(frozen=True, slots=True)
class Form:
    """How the question begins, and how some of its tangents become rows that touch at a chip."""

    begin: Callable[[Codesign, Instance, Grid], Codesign]
    tighten: Callable[[Codesign, Whole, Point], Codesign]


def _as_it_is(problem: Codesign, instance: Instance, space: Grid) -> Codesign:
    del instance, space
    return problem


def _without_tangents(problem: Codesign, which: Whole, point: Point) -> Codesign:
    del which, point
    return problem


FORMS: dict[str, Form] = {
    "strong": Form(_as_it_is, lambda problem, which, point: with_strong_rows(problem, which)),
    "weak": Form(_as_it_is, lambda problem, which, point: with_weak_rows(problem, which)),
    "table": Form(with_tables, _without_tangents),
    "classic": Form(lambda problem, instance, space: with_pieces(problem), lambda problem, which, point: with_lines(problem, which)),
    "log": Form(_as_it_is, with_log_rows),
}
