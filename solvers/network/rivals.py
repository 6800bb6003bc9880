"""Rules to compare with: as much bandwidth on every dimension, and as much money at the prices."""

from math import inf

from crossopt.formulation.network.asked import options_of, part_of, program_of
from crossopt.formulation.network.program import Program, broken_rows
from crossopt.instances.network.question import NetworkQuestion
from crossopt.solvers.answer import Rival
from crossopt.solvers.network.answer import Bandwidths

_HALVINGS = 60


def rivals_of(question: NetworkQuestion) -> tuple[Rival[Bandwidths], ...]:
    """Both rules; those of money where dimensions have prices."""
    rules = [("equal bandwidths", (1.0,) * len(question.lows))]
    if question.costs is not None and min(question.costs) > 0.0:
        rules.append(("equal spending", tuple(1.0 / cost for cost in question.costs)))
    found = [(name, _along(question, weights)) for name, weights in rules]
    return tuple(Rival(name, None, answer, "" if answer else "no such bandwidths keep the limits") for name, answer in found)


def equal_split(question: NetworkQuestion) -> Bandwidths | None:
    """As much on every dimension; None where that keeps no limits."""
    return _along(question, (1.0,) * len(question.lows))


def _along(question: NetworkQuestion, weights: tuple[float, ...]) -> Bandwidths | None:
    """The most in these proportions, but for ends and options, that the budgets let be; for `time_cost` the least that they ask for."""
    program = part_of(program_of(question), options_of(question))
    if program is None:
        return None
    lacking = question.file.budget.at_least is not None
    low, high = 0.0, max(one / weight for one, weight in zip((_reach(program)), weights, strict=True))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = not broken_rows(program, _at(question, program, weights, middle))
        low, high = (low, middle) if fits == lacking else (middle, high)
    point = _at(question, program, weights, high if lacking else low)
    return None if broken_rows(program, point) else Bandwidths(point)


def _reach(program: Program) -> list[float]:
    asked = max([-most for most in program.most], default=0.0)
    return [high if high < inf else 4.0 * low + 2.0 * asked for low, high in zip(program.lows, program.highs, strict=True)]


def _at(question: NetworkQuestion, program: Program, weights: tuple[float, ...], share: float) -> tuple[float, ...]:
    found = list[float]()
    for weight, low, high, options in zip(weights, program.lows, program.highs, options_of(question), strict=True):
        wanted = min(max(share * weight, low), high)
        found.append(wanted if options is None else max(option for option in options if option <= wanted))
    return tuple(found)
