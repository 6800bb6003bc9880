"""Benchmarks that represent traces as a problem type, and recomputation of their bounds without an engine."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heapreplace
from itertools import product
from math import floor, inf, prod
from typing import Any

from crossopt.formulation.certificate import bound_of_tree, integer_form, unpacked
from crossopt.formulation.traces.selection import selection
from crossopt.formulation.vipr import IntegerProof
from crossopt.instances.traces.benchmark import BenchmarkQuestion, mix_of
from crossopt.solvers.answer import Baseline, Result, Verdict, Watch
from crossopt.solvers.family import ProblemType, Proved, baseline_names, lazy_import, no_reasons, rules_of
from crossopt.solvers.proofs import Integers, RecomputableBound, UnverifiedBound

# Kernels that run so often, and their judge: every total from the trace's own figures, as fractions without rounding.

# Kernels that run so often, and what the judge says of them.


@dataclass(frozen=True, slots=True)
class Runs:
    """How often each kernel of the question runs, in its order."""

    runs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReachedTotal:
    """A total: the share of the trace's that is wanted, what the benchmark has, and the share by which it is off."""

    total: str
    wanted: float
    has: float
    deviation: float


@dataclass(frozen=True, slots=True)
class Stands:
    """How the benchmark stands for the trace."""

    kernels: int
    runs: int
    coverage: float
    """Of the time of the trace, all runs of the chosen kernels."""
    mix: float
    """The share of its time that it gives to other kernels than the trace."""
    totals: tuple[ReachedTotal, ...]


# The judge of benchmarks: every total from the trace's own figures, as fractions without rounding.


def judge(question: BenchmarkQuestion, answer: Runs) -> Verdict[Stands]:
    """How many kernels, or runs of them; a ValueError if the answer does not belong to the question."""
    kernels, file = question.kernels, question.file
    if len(answer.runs) != len(kernels):
        raise ValueError(f"{len(answer.runs)} numbers of runs are given for {len(kernels)} kernels")
    if any(not 0 <= runs <= kernel.runs for runs, kernel in zip(answer.runs, kernels, strict=True)):
        raise ValueError("a kernel runs no more often than in the trace")
    count, runs = sum(taken > 0 for taken in answer.runs), sum(answer.runs)
    covered = sum(kernel.time for kernel, taken in zip(kernels, answer.runs, strict=True) if taken)
    has = [
        sum(
            (Fraction(kernel.sums[total] * taken, kernel.runs) for kernel, taken in zip(kernels, answer.runs, strict=True)),
            start=Fraction(0),
        )
        for total in range(len(question.totals))
    ]
    off = [abs(part / (file.share * total) - 1) for part, total in zip(has, question.sums, strict=True)]
    totals = tuple(
        ReachedTotal(name, float(file.share * total), float(part), float(away))
        for name, total, part, away in zip(question.totals, question.sums, has, off, strict=True)
    )
    mix = mix_of(question, answer.runs)
    details = Stands(count, runs, covered / question.time, float(mix), totals)
    broken = list(_violations(question, details))
    if Fraction(covered) < file.coverage * question.time:
        broken.append(f"coverage: {details.coverage:.4%} where {float(file.coverage):.4%} is asked")
    if file.mix is not None and mix > file.mix:
        broken.append(f"mix: off by {details.mix:.4%} where {float(file.mix):.4%} is the limit")
    broken += [
        f"{total.total}: off by {total.deviation:.4%} where {float(file.deviation):.4%} is the limit"
        for total, away in zip(totals, off, strict=True)
        if away > file.deviation
    ]
    return Verdict(count if file.objective == "kernels" else runs, tuple(broken), details)


def _violations(question: BenchmarkQuestion, details: Stands) -> Iterator[str]:
    for key, used in (("kernels", details.kernels), ("runs", details.runs)):
        most = getattr(question.file, key)
        if most is not None and used > most:
            yield f"{key}: {used:,} where {most:,} is the limit"


# Verification of bounds: an exact tree of the outer model, or enumeration; no engine is called.

_MOST_STEPS, _MOST_CHOICES = 100_000, 200_000
_LARGEST = 62
"""Bits of a scale."""


def prove(question: BenchmarkQuestion, saved: Result[Runs, Stands], _: Watch) -> Proved:
    """Recompute the bound."""
    proof = saved.proof
    try:
        if isinstance(proof, Integers):
            shown, by = _of_tree(question, proof), "a tree of branches in whole numbers"
            done = f"a tree of {len(proof.steps):,} steps was counted anew in whole numbers"
        elif isinstance(proof, RecomputableBound):
            shown, count = least_of_all(question)[::2]
            by, done = f"{count:,} choices looked at", f"{count:,} choices were enumerated again"
        elif isinstance(proof, UnverifiedBound):
            return Proved((f"that there is none is reported by {proof.by}, not proved again",), _contradicted(saved), unverified=True)
        else:
            return Proved((), ("proof: bounds on benchmarks are proved by a tree or by enumeration",))
    except (ValueError, OverflowError) as error:
        return Proved((), (f"proof: {error}",))
    claimed = inf if saved.bound is None else saved.bound
    fault = f"bound: its proof shows {shown!r}, the result claims {claimed!r}"
    return Proved((done,), () if claimed <= shown else (fault,), by=by)


def _contradicted(saved: Result[Runs, Stands]) -> tuple[str, ...]:
    """A word says that there is no benchmark, and nothing of those that are there."""
    return () if saved.value is None else ("proof: bounds of benchmarks are never solver-reported",)


def _of_tree(question: BenchmarkQuestion, proof: Integers) -> float:
    if len(proof.steps) > _MOST_STEPS or proof.scale.bit_length() > _LARGEST + 1:
        raise ValueError("the tree is larger than the limit of `check`")
    bound = bound_of_tree(integer_form(selection(question, inner=False).model), unpacked(proof.scale, proof.steps))
    return inf if bound is None else bound


def integer_proof(question: BenchmarkQuestion, saved: Result[Runs, Stands]) -> IntegerProof | None:
    """The outer model with its tree, and the benchmark as a solution of it."""
    if not isinstance(saved.proof, Integers):
        return None
    outer, runs = selection(question, inner=False), () if saved.answer is None else saved.answer.runs
    known = dict(zip((*outer.runs, *outer.chosen), (*runs, *(int(count > 0) for count in runs)), strict=True)) if runs else None
    about = f"objective: {question.file.objective}; coefficients are rounded so that every benchmark within the limits is a solution"
    return IntegerProof(outer.model, unpacked(saved.proof.scale, saved.proof.steps), known, about)


def least_of_all(question: BenchmarkQuestion) -> tuple[float, Runs | None, int]:
    """The least value, an answer that has it, and the number of choices; a ValueError where these are too many to look at."""
    count = prod(kernel.runs + 1 for kernel in question.kernels)
    if count > _MOST_CHOICES:
        raise ValueError(f"{count:.3g} choices are more than {_MOST_CHOICES:,}")
    best, answer, by_runs = inf, None, question.file.objective == "runs"
    for runs in product(*(range(kernel.runs + 1) for kernel in question.kernels)):
        value = sum(runs) if by_runs else sum(taken > 0 for taken in runs)
        if value < best and all(_limits_hold(question, runs)):
            best, answer = value, Runs(runs)
    return best, answer, count


def _limits_hold(question: BenchmarkQuestion, runs: tuple[int, ...]) -> Iterator[bool]:
    """Whether each limit is kept."""
    kernels, file = question.kernels, question.file
    yield file.kernels is None or sum(run > 0 for run in runs) <= file.kernels
    yield file.runs is None or sum(runs) <= file.runs
    yield sum(kernel.time for kernel, run in zip(kernels, runs, strict=True) if run) >= file.coverage * question.time
    yield file.mix is None or mix_of(question, runs) <= file.mix
    for total, whole_sum in enumerate(question.sums):
        has = sum((Fraction(kernel.sums[total] * run, kernel.runs) for kernel, run in zip(kernels, runs, strict=True)), start=Fraction(0))
        yield abs(has - file.share * whole_sum) <= file.deviation * file.share * whole_sum


# Rules to compare with, which a check carries out again.


def rules_of_benchmark(question: BenchmarkQuestion) -> tuple[Baseline[Runs], ...]:
    """A share of every kernel's runs, rounded; the highest averages; the largest in proportion."""
    rows = [("rounded shares", rounded(question)), ("highest averages", apportioned(question)), ("largest kernels", largest(question))]
    return tuple(Baseline(name, None, answer) for name, answer in rows)


def rounded(question: BenchmarkQuestion) -> Runs:
    """The share of each kernel's runs, to the nearest."""
    return Runs(tuple(floor(question.file.share * kernel.runs + Fraction(1, 2)) for kernel in question.kernels))


def apportioned(question: BenchmarkQuestion) -> Runs:
    """The share of all runs, one after another to the kernel with the most runs for those that it has (D'Hondt 1878)."""
    counts = [kernel.runs for kernel in question.kernels]
    found = [0] * len(counts)
    heap = [(Fraction(-count), kernel) for kernel, count in enumerate(counts)]
    heapify(heap)
    for _ in range(floor(question.file.share * sum(counts) + Fraction(1, 2))):
        kernel = heap[0][1]
        found[kernel] += 1
        left = Fraction(-counts[kernel], found[kernel] + 1) if found[kernel] < counts[kernel] else Fraction(0)
        heapreplace(heap, (left, kernel))
    return Runs(tuple(found))


def largest(question: BenchmarkQuestion) -> Runs:
    """As many kernels as the coverage asks for, those with most time first, all in the same proportion to the share of time."""
    covered, count = 0, 0
    for kernel in question.kernels:
        if covered >= question.file.coverage * question.time and count:
            break
        covered, count = covered + kernel.time, count + 1
    part = question.file.share * question.time / covered
    runs = [min(max(floor(part * kernel.runs + Fraction(1, 2)), 1), kernel.runs) for kernel in question.kernels[:count]]
    return Runs((*runs, *[0] * (len(question.kernels) - count)))


# Benchmarks that stand for traces as a family of questions: what is asked again, who answers, who judges, what proves.

_ENGINES = "crossopt.solvers.traces.benchmark.engines"
_PROGRAM = lazy_import(_ENGINES, "program")


def _described(question: BenchmarkQuestion) -> dict[str, Any]:
    return {"unit": question.file.objective}


FAMILY: ProblemType[BenchmarkQuestion, Runs, Stands] = ProblemType(
    kind="benchmark",
    what="benchmark",
    unit="kernels",
    answer=Runs,
    details=Stands,
    engines={
        "auto": _PROGRAM,
        "highs": _PROGRAM,
        "exhaustive": lazy_import(_ENGINES, "exhaustive"),
        "rounding": lazy_import(_ENGINES, "rounding"),
        "apportion": lazy_import(_ENGINES, "apportion"),
        "largest": lazy_import(_ENGINES, "largest_first"),
        "dropping": lazy_import(_ENGINES, "dropping"),
    },
    seeded=frozenset({"dropping", "auto", "highs", "exhaustive"}),
    judge=judge,
    judged="totals, coverage, numbers of kernels and runs",
    prove=prove,
    reasons=no_reasons,
    rules=rules_of(rules_of_benchmark, "highs", "exhaustive"),
    searched=lambda question: baseline_names("smallest dropped", reason="no descent meets every limit", always=("highs", "exhaustive")),
    proof_labels=frozenset({"a tree of branches in whole numbers", "N choices looked at"}),
    described=_described,
    integer_proof=integer_proof,
)
