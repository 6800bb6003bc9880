"""Why no benchmark keeps all limits: each limit that is in the way alone, with the nearest figure at which there is a benchmark.

One limit after another is widened as far as it takes while the others stay. The figure is of a benchmark that was found, and the nearest
there is where the solver had time to show that.
"""

from dataclasses import replace
from fractions import Fraction
from math import ceil
from time import monotonic

from crossopt.formulation.traces.selection import PARTS, Lever, selection
from crossopt.instances.traces.benchmark.question import BenchmarkQuestion, mix_of
from crossopt.solvers.backends.answer import Spend
from crossopt.solvers.backends.milp import highs

_LEAST = 0.1
"""Seconds for any look."""


def reasons(question: BenchmarkQuestion, seconds: float) -> tuple[str, ...]:
    """In words; where no single limit is known to be in the way, what all of them ask together."""
    levers, deadline, found = _levers(question), monotonic() + seconds, list[str]()
    for place, lever in enumerate(levers):
        left = max((deadline - monotonic()) / (len(levers) - place), _LEAST)
        asked = selection(question, inner=True, widened=lever)
        told = highs(asked.model, Spend(left))
        if told.value is not None and told.values is not None:
            found.append(_words(question, lever, told.value, [told.values[variable] for variable in asked.runs]))
    return tuple(found) or (_together(question, max(deadline - monotonic(), _LEAST)),)


def _together(question: BenchmarkQuestion, seconds: float) -> str:
    """Where no limit alone is known to be in the way: the totals that are to be met without all others."""
    file = question.file
    none = f"deviation: no runs of any kernels come within {float(file.deviation):.4%} of every total and keep the other limits"
    alone = replace(question, file=replace(file, mix=None, coverage=Fraction(0), kernels=None, runs=None))
    value = highs(selection(alone, inner=True, widened="deviation").model, Spend(seconds)).value
    return none if value is None else f"{none}; without these some come within {value / PARTS:.2%}"


def _levers(question: BenchmarkQuestion) -> tuple[Lever, ...]:
    """The limits that can be wider."""
    file = question.file
    given: tuple[tuple[Lever, bool], ...] = (
        ("deviation", file.deviation < 1),
        ("mix", file.mix is not None),
        ("coverage", file.coverage > 0),
        ("kernels", file.kernels is not None),
        ("runs", file.runs is not None),
    )
    return tuple(lever for lever, is_given in given if is_given)


def _words(question: BenchmarkQuestion, lever: Lever, value: int, runs: list[int]) -> str:
    file = question.file
    if lever == "deviation":
        none = f"deviation: no runs of any kernels come within {float(file.deviation):.4%} of every total"
        none += "" if file.mix is None else f" with a mix within {float(file.mix):.4%}"
        return f"{none}; some come within {value / PARTS:.2%}"
    if lever == "mix":
        within = ceil(mix_of(question, runs) * PARTS) / PARTS
        return f"mix: with all other limits none is within {float(file.mix or 0):.4%}; some are within {within:.2%}"
    if lever == "coverage":
        return f"coverage: with all other limits none has {float(file.coverage):.4%}; some have {float(file.coverage) - value / PARTS:.2%}"
    return f"{lever}: with all other limits none has {getattr(file, lever):,} or fewer; some have {value:,}"
