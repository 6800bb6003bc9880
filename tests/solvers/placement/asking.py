"""Placements asked and checked without a file."""

from pathlib import Path

from crossopt.instances.placement.question import PlacementQuestion
from crossopt.solvers.answer import Limits, Watch
from crossopt.solvers.checking import Report, check
from crossopt.solvers.family import solve
from crossopt.solvers.placement.family import FAMILY, Answer


def answered(question: PlacementQuestion, engine: str, limits: Limits, watch: Watch) -> Answer:
    return solve(FAMILY, question, engine, limits, watch)


def checked(result: Answer) -> Report:
    return check(FAMILY, result, Path())
