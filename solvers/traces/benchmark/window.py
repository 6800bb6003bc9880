"""The model where a mix leaves little to choose: kernels that a good benchmark has run in it, others do not, and those between are open.

The relaxation runs most kernels wholly or not at all. Of those that it runs all but the least are held, of those that it does not all but
the next stay out (relaxation induced neighbourhoods: Danna, Rothberg and Le Pape 2005; kernel search: Angelelli, Mansini and Speranza
2010). Next to it is what makes up for most of the mix, s T_k - min over x of |T_k / n_k x - s T_k|. Good benchmarks are found so, and no
bound rests on it.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import floor

from crossopt.formulation.model import Linear, Model
from crossopt.formulation.traces.selection import Selection
from crossopt.instances.traces.benchmark.question import BenchmarkQuestion, Kernel

_AROUND = 20
"""Kernels on either side that are open."""
_DIGITS = 6
"""Of what the relaxation has of a kernel."""


def asks_for_window(question: BenchmarkQuestion) -> bool:
    """Whether the fewest kernels near a mix are asked, of more than a window has."""
    return question.file.mix is not None and question.file.objective == "kernels" and len(question.kernels) > 2 * _AROUND


def window(question: BenchmarkQuestion, inside: Selection, relaxed: Sequence[float]) -> Model:
    """The narrower model around what the relaxation has of each variable, kernels first."""
    taken = [round(figure, _DIGITS) for figure in relaxed[: len(question.kernels)]]
    made_up = [_made_up(kernel, question.file.share) for kernel in question.kernels]
    order = sorted(range(len(taken)), key=lambda place: (-taken[place], -made_up[place], place))
    runs, open_ = max(sum(part >= 1.0 for part in taken) - _AROUND, 0), sum(part > 0.0 for part in taken) + _AROUND
    held = [Linear(f"runs {place}", ((1, inside.chosen[place]),), low=1) for place in order[:runs]]
    none = [Linear(f"none {place}", ((1, inside.chosen[place]),), high=0) for place in order[open_:]]
    model = inside.model
    return Model(model.variables, (*model.constraints, *held, *none), model.objective)


def _made_up(kernel: Kernel, share: Fraction) -> Fraction:
    """ns by which the mix is nearer where the kernel runs as often as is best."""
    below = floor(share * kernel.runs)
    off = min(abs(Fraction(kernel.time * runs, kernel.runs) - share * kernel.time) for runs in (max(below, 1), min(below + 1, kernel.runs)))
    return share * kernel.time - off
