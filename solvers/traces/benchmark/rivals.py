"""Rules to compare with: a share of every kernel's runs, rounded; the highest averages; the largest in proportion; kernels dropped."""

from fractions import Fraction
from heapq import heapify, heapreplace
from math import floor

from crossopt.instances.traces.benchmark.question import BenchmarkQuestion
from crossopt.solvers.answer import Rival
from crossopt.solvers.traces.benchmark.answer import Runs
from crossopt.solvers.traces.benchmark.shrink import shrunk


def rivals_of(question: BenchmarkQuestion, seed: int, deadline: float) -> tuple[Rival[Runs], ...]:
    """All rules, and kernels dropped one after another from rounded shares."""
    shares = rounded(question)
    rows = [("rounded shares", shares), ("highest averages", apportioned(question)), ("largest kernels", largest(question))]
    left = shrunk(question, shares, seed, deadline)
    dropped = Rival("smallest dropped", None, left, "" if left else "no descent meets every limit")
    return (*(Rival(name, None, answer) for name, answer in rows), dropped)


def rounded(question: BenchmarkQuestion) -> Runs:
    """The share of each kernel's runs, to the nearest."""
    return Runs(tuple(floor(question.file.share * kernel.runs + Fraction(1, 2)) for kernel in question.kernels))


def apportioned(question: BenchmarkQuestion) -> Runs:
    """The share of all runs, one after another to the kernel with the most runs for those that it has (D'Hondt 1878)."""
    counts = [kernel.runs for kernel in question.kernels]
    found = [0] * len(counts)
    heap = [(Fraction(-count), place) for place, count in enumerate(counts)]
    heapify(heap)
    for _ in range(floor(question.file.share * sum(counts) + Fraction(1, 2))):
        place = heap[0][1]
        found[place] += 1
        left = Fraction(-counts[place], found[place] + 1) if found[place] < counts[place] else Fraction(0)
        heapreplace(heap, (left, place))
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
