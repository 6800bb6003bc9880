"""Bounds on benchmarks counted anew: a tree about the outer model in whole numbers, or every choice looked at; no engine is asked."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import inf, prod

from crossopt.formulation.certificate import bound_of_tree, integer_form, unpacked
from crossopt.formulation.traces.selection import selection
from crossopt.instances.traces.benchmark import BenchmarkQuestion, mix_of
from crossopt.solvers.answer import Result, Watch
from crossopt.solvers.family import Proved
from crossopt.solvers.proofs import Integers, RecomputableBound, UnverifiedBound
from crossopt.solvers.traces.benchmark.judge import Runs, Stands

_MOST_STEPS, _MOST_CHOICES = 100_000, 200_000
_LARGEST = 62
"""Bits of a scale."""


def prove(question: BenchmarkQuestion, saved: Result[Runs, Stands], _: Watch) -> Proved:
    """The bound counted anew."""
    proof = saved.proof
    try:
        if isinstance(proof, Integers):
            shown, by = _of_tree(question, proof), "a tree of branches in whole numbers"
            done = f"a tree of {len(proof.steps):,} steps was counted anew in whole numbers"
        elif isinstance(proof, RecomputableBound):
            shown, count = least_of_all(question)[::2]
            by, done = f"{count:,} choices looked at", f"{count:,} choices were looked at again"
        elif isinstance(proof, UnverifiedBound):
            return Proved((f"that there is none is the word of {proof.by}, not proved anew",), _contradicted(saved), told=True)
        else:
            return Proved((), ("proof: bounds on benchmarks are shown by a tree or by looking at all",))
    except (ValueError, OverflowError) as error:
        return Proved((), (f"proof: {error}",))
    said = inf if saved.bound is None else saved.bound
    fault = f"bound: its proof shows {shown!r}, the result says that none is below {said!r}"
    return Proved((done,), () if said <= shown else (fault,), by=by)


def _contradicted(saved: Result[Runs, Stands]) -> tuple[str, ...]:
    """A word says that there is no benchmark, and nothing of those that are there."""
    return () if saved.value is None else ("proof: bounds of benchmarks are nobody's word",)


def _of_tree(question: BenchmarkQuestion, proof: Integers) -> float:
    if len(proof.steps) > _MOST_STEPS or proof.scale.bit_length() > _LARGEST + 1:
        raise ValueError("the tree is larger than any that a check looks at")
    bound = bound_of_tree(integer_form(selection(question, inner=False).model), unpacked(proof.scale, proof.steps))
    return inf if bound is None else bound


def least_of_all(question: BenchmarkQuestion) -> tuple[float, Runs | None, int]:
    """The least value, an answer that has it, and the number of choices; a ValueError where these are too many to look at."""
    count = prod(kernel.runs + 1 for kernel in question.kernels)
    if count > _MOST_CHOICES:
        raise ValueError(f"{count:.3g} choices are more than {_MOST_CHOICES:,}")
    best, answer, by_runs = inf, None, question.file.objective == "runs"
    for runs in product(*(range(kernel.runs + 1) for kernel in question.kernels)):
        value = sum(runs) if by_runs else sum(one > 0 for one in runs)
        if value < best and all(_limits_hold(question, runs)):
            best, answer = value, Runs(runs)
    return best, answer, count


def _limits_hold(question: BenchmarkQuestion, runs: tuple[int, ...]) -> Iterator[bool]:
    """Whether each limit is kept."""
    kernels, file = question.kernels, question.file
    yield file.kernels is None or sum(one > 0 for one in runs) <= file.kernels
    yield file.runs is None or sum(runs) <= file.runs
    yield sum(kernel.time for kernel, one in zip(kernels, runs, strict=True) if one) >= file.coverage * question.time
    yield file.mix is None or mix_of(question, runs) <= file.mix
    for total, whole_sum in enumerate(question.sums):
        has = sum((Fraction(kernel.sums[total] * one, kernel.runs) for kernel, one in zip(kernels, runs, strict=True)), start=Fraction(0))
        yield abs(has - file.share * whole_sum) <= file.deviation * file.share * whole_sum
