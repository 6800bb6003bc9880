"""How long a solver may think about a model where nobody set a time limit, so that every engine ends by itself: solvers hang at times.

A minute, and a tenth of a second for each row and each entry of a row, up to six hours: then it is asked to end, and ended.
"""

from math import isinf

from crossopt.formulation.model import Constraint, ExactlyOne, Linear, Model

LEAST, EACH, MOST = 60.0, 0.1, 21_600.0
"""Seconds: for the smallest model, for each row and each entry of a row, and for the largest model."""


def patience(rows: int, entries: int) -> float:
    """Seconds for a model of so many rows, with so many entries in all of them."""
    return min(LEAST + EACH * (rows + entries), MOST)


def patience_for(model: Model) -> float:
    """The same for a model."""
    return patience(len(model.constraints), sum(_entries(row) for row in model.constraints))


def allowed(seconds: float, model: Model) -> float:
    """The seconds that were given, or where these are endless, as many as are right for the model."""
    return patience_for(model) if isinf(seconds) else seconds


def late_words(solver: str, seconds: float) -> str:
    """What is to be said where the patience is over."""
    return f"{solver} did not end within {_in_words(seconds)}; --time-limit allows more"


def _entries(row: Constraint) -> int:
    if isinstance(row, Linear):
        return len(row.terms)
    return len(row.variables) if isinstance(row, ExactlyOne) else len(row.variables) * len(row.rows)


def _in_words(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 600.0 else f"{seconds / 60.0:.0f} min" if seconds < 7200.0 else f"{seconds / 3600.0:.1f} h"
