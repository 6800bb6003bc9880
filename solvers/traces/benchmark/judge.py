"""Kernels that run so often, and their judge: every total from the trace's own figures, as fractions without rounding."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from crossopt.instances.traces.benchmark import BenchmarkQuestion, mix_of
from crossopt.solvers.answer import Verdict

# Kernels that run so often, and what the judge says of them.


@dataclass(frozen=True, slots=True)
class Runs:
    """How often each kernel of the question runs, in its order."""

    runs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Met:
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
    totals: tuple[Met, ...]


# The judge of benchmarks: every total from the trace's own figures, as fractions without rounding.


def judge(question: BenchmarkQuestion, answer: Runs) -> Verdict[Stands]:
    """How many kernels, or runs of them; a ValueError where the answer is none of the question."""
    kernels, file = question.kernels, question.file
    if len(answer.runs) != len(kernels):
        raise ValueError(f"{len(answer.runs)} numbers of runs are given for {len(kernels)} kernels")
    if any(not 0 <= runs <= kernel.runs for runs, kernel in zip(answer.runs, kernels, strict=True)):
        raise ValueError("a kernel runs no more often than in the trace")
    count, runs = sum(one > 0 for one in answer.runs), sum(answer.runs)
    covered = sum(kernel.time for kernel, one in zip(kernels, answer.runs, strict=True) if one)
    has = [
        sum((Fraction(kernel.sums[total] * one, kernel.runs) for kernel, one in zip(kernels, answer.runs, strict=True)), start=Fraction(0))
        for total in range(len(question.totals))
    ]
    off = [abs(one / (file.share * whole) - 1) for one, whole in zip(has, question.sums, strict=True)]
    met = tuple(
        Met(name, float(file.share * whole), float(one), float(away))
        for name, whole, one, away in zip(question.totals, question.sums, has, off, strict=True)
    )
    mix = mix_of(question, answer.runs)
    details = Stands(count, runs, covered / question.time, float(mix), met)
    broken = list(_violations(question, details))
    if Fraction(covered) < file.coverage * question.time:
        broken.append(f"coverage: {details.coverage:.4%} where {float(file.coverage):.4%} is asked")
    if file.mix is not None and mix > file.mix:
        broken.append(f"mix: off by {details.mix:.4%} where {float(file.mix):.4%} is the limit")
    broken += [
        f"{one.total}: off by {one.deviation:.4%} where {float(file.deviation):.4%} is the limit"
        for one, away in zip(met, off, strict=True)
        if away > file.deviation
    ]
    return Verdict(count if file.objective == "kernels" else runs, tuple(broken), details)


def _violations(question: BenchmarkQuestion, details: Stands) -> Iterator[str]:
    for key, used in (("kernels", details.kernels), ("runs", details.runs)):
        most = getattr(question.file, key)
        if most is not None and used > most:
            yield f"{key}: {used:,} where {most:,} is the limit"
