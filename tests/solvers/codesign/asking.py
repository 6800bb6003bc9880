"""Joint designs asked, checked and read back without a file."""

import json
from pathlib import Path

from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion, Portfolio
from crossopt.solvers.answer import Limits, Watch, result_in, to_text, unwatched
from crossopt.solvers.checking import Report, check
from crossopt.solvers.codesign.answer import DesignResult, Designs, EvaluatedDesigns
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.family import solve

WHOLE = Limits()
"""No limits at all."""


def answered(
    question: Instance | Portfolio | MultiScaleQuestion, engine: str = "exhaustive", limits: Limits = WHOLE, watch: Watch = unwatched
) -> DesignResult:
    return solve(FAMILY, question, engine, limits, watch)


def checked(result: DesignResult, watch: Watch = unwatched, cross_check: bool = False) -> Report:
    return check(FAMILY, result, Path(), watch, cross_check)


def reread(data: object) -> DesignResult:
    """The result in plain data, as another process reads it."""
    return result_in(json.loads(json.dumps(data)), Designs, EvaluatedDesigns)


def again(result: DesignResult) -> DesignResult:
    """The result as another process reads it from a file."""
    return reread(json.loads(to_text(result)))
