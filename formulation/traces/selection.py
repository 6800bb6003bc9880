"""Which kernels stand for a trace, as an integer program, from within and from without.

    y_k    whether kernel k is chosen, 0 or 1;  x_k  how often it runs, 0 to n_k
    y_k <= x_k <= n_k y_k
    sum of T_k y_k >= c T                                    T_k is the time of all runs of k in the trace, c the coverage
    (1 - d) s A <= sum of (A_k / n_k) x_k <= (1 + d) s A     for each total A
    d_k >= |T_k / n_k x_k - s T_k|,  sum of d_k <= 2 m s T                     m is how far the mix may be off
    the fewest y, or the fewest x

Of d_k there are whole parts, 10^7 of s T, up to a part less from without, in rows of whole figures: multipliers of larger ones are of
little use. Where all a and w below are whole in parts no smaller, these are taken, and nothing is rounded.

With a = T_k / n_k, w = s T_k and f(x) = |a x - w| at whole x between 1 and n_k, d_k is in the hull of f for a kernel that runs
and w for one that does not, all of which is said by

    d >= w - a x        d >= w (1 - y) + a x - w y        d >= w (1 - y) + f(v) y + (f(v + 1) - f(v)) (x - v y),  v < w / a < v + 1

the last where v is at least 1. So a part of a kernel is as far off as that part of one that runs and the rest of one that does not.

Figures are divided by a power of two q and rounded, unless they are whole and small in a common unit, where both models are the same.
Rounded in favour of a choice, every benchmark is a solution, so that no bound of it is above a benchmark: that is the outer model. Rounded
against it, every solution is a benchmark: that is the inner one, where good ones are looked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, lcm
from typing import Literal

from crossopt.formulation.model import Linear, Model, Variable
from crossopt.instances.traces.benchmark import BenchmarkQuestion, Kernel

Lever = Literal["deviation", "mix", "coverage", "kernels", "runs"]
PARTS = 10**4
_OF_MIX = 10**7
_BITS = 30
"""Of the greatest figure of a row."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The model, and its variables by kernels."""

    model: Model
    chosen: tuple[Variable, ...]
    runs: tuple[Variable, ...]


def selection(question: BenchmarkQuestion, inner: bool, widened: Lever | None = None) -> Selection:
    """The inner or the outer model; with one limit widened it asks how far, at the least, until there is a benchmark: by how many
    PARTS coverage is missed, within how many totals are met, how many parts mixes are apart, or with how many kernels or runs."""
    kernels, file = question.kernels, question.file
    chosen = tuple(Variable(f"chosen {index}") for index in range(len(kernels)))
    runs = tuple(Variable(f"runs {index}", 0, kernel.runs) for index, kernel in enumerate(kernels))
    rows, spare = list[Linear](), Variable("spare", 0, PARTS)
    for index, (y, x, kernel) in enumerate(zip(chosen, runs, kernels, strict=True)):
        rows.append(Linear(f"once {index}", ((1, x), (-1, y)), low=0))
        rows.append(Linear(f"only {index}", ((1, x), (-kernel.runs, y)), high=0))
    times = [Fraction(kernel.time) for kernel in kernels]
    lacking = ([Fraction(question.time, PARTS)], (spare,)) if widened == "coverage" else ([], ())
    rows += _at_least("coverage", [*times, *lacking[0]], (*chosen, *lacking[1]), file.coverage * question.time, inner)
    rows += _totals(question, runs, spare if widened == "deviation" else None, inner)
    away = _mix(question, chosen, runs, inner, rows, widened == "mix")
    for most, variables, name in ((file.kernels, chosen, "kernels"), (file.runs, runs, "runs")):
        if most is not None and widened != name:
            rows.append(Linear(name, tuple((1, variable) for variable in variables), high=most))
    spares = (spare,) if widened in ("deviation", "coverage") else ()
    objective = away if widened == "mix" else spares or (chosen if (widened or file.objective) == "kernels" else runs)
    return Selection(Model((*chosen, *runs, *away, *spares), tuple(rows), tuple((1, variable) for variable in objective)), chosen, runs)


def limit_of(row: str) -> str:
    """The limit of the question that a row holds, by its name; nothing where it says what runs are."""
    if row.startswith(("once ", "only ")):
        return ""
    total, _, side = row.partition(", ")
    return f"deviation of {total}" if side else "mix" if row.startswith("too ") else row


def _totals(question: BenchmarkQuestion, runs: tuple[Variable, ...], spare: Variable | None, inner: bool) -> Iterator[Linear]:
    """Each total within the deviation, or within that of a variable."""
    for total, named in enumerate(question.totals):
        figures = [Fraction(kernel.sums[total], kernel.runs) for kernel in question.kernels]
        wanted = question.file.share * question.sums[total]
        allowed, each, over = (question.file.deviation, [], ()) if spare is None else (Fraction(0), [wanted / PARTS], (spare,))
        yield from _at_least(f"{named}, least", [*figures, *each], (*runs, *over), (1 - allowed) * wanted, inner)
        less = [*(-figure for figure in figures), *each]
        yield from _at_least(f"{named}, most", less, (*runs, *over), -(1 + allowed) * wanted, inner)


def _mix(
    question: BenchmarkQuestion, chosen: tuple[Variable, ...], runs: tuple[Variable, ...], inner: bool, rows: list[Linear], widened: bool
) -> tuple[Variable, ...]:
    """How far each kernel is off its share of the time, with the rows that hold that."""
    file = question.file
    if file.mix is None:
        return ()
    part = max(file.share * question.time / _OF_MIX, Fraction(question.time, 2**_BITS))
    ends = (figure.denominator for kernel in question.kernels for figure in (Fraction(kernel.time, kernel.runs), file.share * kernel.time))
    common = Fraction(1, lcm(*ends))
    exactly = common >= part and not widened
    part = common if exactly else part
    most = floor(2 * (1 if widened else file.mix) * file.share * question.time / part)
    away = tuple(Variable(f"away {index}", 0, min(most, ceil(kernel.time / part))) for index, kernel in enumerate(question.kernels))
    less = 0 if inner or exactly or not most else 1
    for index, (kernel, y, x, d) in enumerate(zip(question.kernels, chosen, runs, away, strict=True)):
        for name, by_run, by_kernel, least in _off(kernel, file.share):
            figures, variables = [by_run / part, by_kernel / part, *([Fraction(1)] if most else ())], (x, y, *((d,) if most else ()))
            rows += _at_least(f"too {name} {index}", figures, variables, least / part - less, inner, integral=bool(most))
    if not widened:
        rows.append(Linear("mix", tuple((1, d) for d in away), high=most))
    return away


def _off(kernel: Kernel, share: Fraction) -> Iterator[tuple[str, Fraction, Fraction, Fraction]]:
    """Rows  figure * runs + figure * chosen + d >= least  that say how far off a kernel is."""
    each, wanted = Fraction(kernel.time, kernel.runs), share * kernel.time
    yield "few", each, Fraction(0), wanted
    yield "many", -each, 2 * wanted, wanted
    below = floor(share * kernel.runs)
    if below and below < share * kernel.runs:
        off, then = wanted - below * each, (below + 1) * each - wanted
        yield "off", off - then, wanted - off + (then - off) * below, wanted


def _at_least(
    name: str, figures: list[Fraction], variables: tuple[Variable, ...], least: Fraction, inner: bool, *, integral: bool = False
) -> Iterator[Linear]:
    """sum of figure * variable >= least, rounded, to whole figures or as finely as can be; no row where nothing is asked."""
    largest = max(*(abs(figure) * variable.high for figure, variable in zip(figures, variables, strict=True)), abs(least), Fraction(1))
    shift = _BITS - floor(largest).bit_length()
    common = 1 if integral else lcm(*(figure.denominator for figure in (*figures, least)))
    scale = Fraction(common) if integral or floor(largest * common).bit_length() <= _BITS else Fraction(2) ** shift
    rounding = floor if inner else ceil
    terms = tuple((rounding(figure * scale), variable) for figure, variable in zip(figures, variables, strict=True))
    nonzero = tuple(term for term in terms if term[0])
    if nonzero:
        yield Linear(name, nonzero, low=ceil(least * scale))
    elif least > 0:
        yield Linear(name, ((1, variables[0]),), low=variables[0].high + 1, high=None)
