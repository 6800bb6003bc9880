"""Which kernels stand for a trace, as an integer program, from within and from without.

    y_k    whether kernel k is chosen, 0 or 1;  x_k  how often it runs, 0 to n_k
    y_k <= x_k <= n_k y_k
    sum of T_k y_k >= c T                                    T_k is the time of all runs of k in the trace, c the coverage
    (1 - d) s A <= sum of (A_k / n_k) x_k <= (1 + d) s A     for each total A
    the fewest y, or the fewest x

Figures are divided by a power of two q and rounded. Rounded in favour of a choice, every benchmark is a solution, so that no bound of it is
above a benchmark: that is the outer model. Rounded against it, every solution is a benchmark: that is the inner one, where good ones are
looked for. Where all figures are whole and small, q is 1 and both are the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from crossopt.formulation.model import Linear, Model, Variable
from crossopt.instances.traces.benchmark.question import BenchmarkQuestion

_BITS = 30
"""Of the greatest figure of a row."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The model, and its variables by kernels."""

    model: Model
    chosen: tuple[Variable, ...]
    runs: tuple[Variable, ...]


def selection(question: BenchmarkQuestion, inner: bool, without: str = "") -> Selection:
    """The inner or the outer model, or either of them without one of the totals."""
    kernels, file = question.kernels, question.file
    chosen = tuple(Variable(f"chosen {place}") for place in range(len(kernels)))
    runs = tuple(Variable(f"runs {place}", 0, kernel.runs) for place, kernel in enumerate(kernels))
    rows = list[Linear]()
    for place, (y, x, kernel) in enumerate(zip(chosen, runs, kernels, strict=True)):
        rows.append(Linear(f"once {place}", ((1, x), (-1, y)), low=0))
        rows.append(Linear(f"only {place}", ((1, x), (-kernel.runs, y)), high=0))
    rows += _at_least("coverage", [Fraction(kernel.time) for kernel in kernels], chosen, file.coverage * question.time, inner)
    for total, named in enumerate(question.totals):
        if named == without:
            continue
        figures = [Fraction(kernel.sums[total], kernel.runs) for kernel in kernels]
        wanted = file.share * question.sums[total]
        rows += _at_least(f"{named}, least", figures, runs, (1 - file.deviation) * wanted, inner)
        rows += _at_least(f"{named}, most", [-figure for figure in figures], runs, -(1 + file.deviation) * wanted, inner)
    for most, variables, name in ((file.kernels, chosen, "kernels"), (file.runs, runs, "runs")):
        if most is not None:
            rows.append(Linear(name, tuple((1, variable) for variable in variables), high=most))
    asked = chosen if file.objective == "kernels" else runs
    return Selection(Model((*chosen, *runs), tuple(rows), tuple((1, variable) for variable in asked)), chosen, runs)


def _at_least(name: str, figures: list[Fraction], variables: tuple[Variable, ...], least: Fraction, inner: bool) -> Iterator[Linear]:
    """sum of figure * variable >= least, rounded; no row where nothing is asked."""
    largest = max(*(abs(figure) * variable.high for figure, variable in zip(figures, variables, strict=True)), abs(least), Fraction(1))
    whole = all(figure.denominator == 1 for figure in (*figures, least))
    shift = _BITS - floor(largest).bit_length()
    scale = Fraction(1) if whole and shift >= 0 else Fraction(2) ** shift
    rounding = floor if inner else ceil
    terms = tuple((rounding(figure * scale), variable) for figure, variable in zip(figures, variables, strict=True))
    kept = tuple(term for term in terms if term[0])
    if kept:
        yield Linear(name, kept, low=ceil(least * scale))
    elif least > 0:
        yield Linear(name, ((1, variables[0]),), low=variables[0].high + 1, high=None)
