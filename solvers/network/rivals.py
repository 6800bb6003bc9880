"""Rules to compare with: as much bandwidth on every dimension, as much money, and shares by the bytes that dimensions carry.

With b_d the weighted bytes of all collectives on dimension d:

    by bytes            B_d ~ b_d, so that all dimensions are busy equally long
    by root of bytes    B_d ~ sqrt(b_d / p_d), the least of  sum b_d / B_d  for a sum of p_d B_d: Kleinrock's square-root assignment
                        of capacities (Communication Nets 1964), without the waiting that his messages have; p_d are the prices where
                        cost is what is limited, and 1 elsewhere

The second is the optimum where each collective uses one dimension alone, as none then waits for the slowest of several.
"""

from math import fsum, inf, sqrt

from crossopt.formulation.network.program import Program, broken_rows, options_of, part_of, program_of
from crossopt.instances.network.question import NetworkQuestion
from crossopt.solvers.answer import Rival
from crossopt.solvers.network.answer import Bandwidths

_HALVINGS, _LITTLE = 60, 1e-6


def rivals_of(question: NetworkQuestion) -> tuple[Rival[Bandwidths], ...]:
    """All rules; those of money where dimensions have prices."""
    rules = {"equal bandwidths": (1.0,) * len(question.lows)}
    if question.costs is not None and min(question.costs) > 0.0:
        rules["equal spending"] = tuple(1.0 / cost for cost in question.costs)
    rules |= {"by bytes": _bytes_of(question), "by root of bytes": _rooted(question)}
    found = [(name, _along(question, weights)) for name, weights in rules.items()]
    return tuple(Rival(name, None, answer, "" if answer else "no such bandwidths keep the limits") for name, answer in found)


def equal_split(question: NetworkQuestion) -> Bandwidths | None:
    """As much on every dimension; None where that keeps no limits."""
    return _along(question, (1.0,) * len(question.lows))


def by_bytes(question: NetworkQuestion) -> Bandwidths | None:
    """In proportion to bytes; None where that keeps no limits."""
    return _along(question, _bytes_of(question))


def by_root(question: NetworkQuestion) -> Bandwidths | None:
    """By the root of bytes; None where that keeps no limits."""
    return _along(question, _rooted(question))


def _bytes_of(question: NetworkQuestion) -> tuple[float, ...]:
    """That each dimension carries, by weight, and a little for those that carry nothing."""
    found = [fsum(sent.weight * sent.bytes[place] for sent in question.sent) for place in range(len(question.lows))]
    least = max(found) * _LITTLE or 1.0
    return tuple(max(one, least) for one in found)


def _rooted(question: NetworkQuestion) -> tuple[float, ...]:
    prices = (1.0,) * len(question.lows)
    if question.costs is not None and min(question.costs) > 0.0 and question.file.budget.total is None:
        prices = question.costs
    return tuple(sqrt(size / price) for size, price in zip(_bytes_of(question), prices, strict=True))


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
