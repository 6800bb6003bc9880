"""Chunks of a collective as a problem type: answers, their judge by the exact model, and bounds recomputed in integer ns."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import inf

from crossopt.crossflow.astra.collective import (
    Chunk,
    Operation,
    chunk_sizes,
    equal_chunks,
    jobs_of,
    run_shop,
    themis_chunks,
    time_collective,
)
from crossopt.formulation.network import chunk_loads, least_time
from crossopt.instances.network.collective import CollectiveQuestion
from crossopt.solvers.answer import Baseline, Result, Verdict, Watch
from crossopt.solvers.family import ProblemType, Proved, lazy_import, rules_of
from crossopt.solvers.proofs import UnverifiedBound, Weighed

# Chunks of a collective in their orders, and their judge: every phase by the exact model, in the sequence that is given.

# Chunks in their orders, and what the judge says of them.


@dataclass(frozen=True, slots=True)
class Chunks:
    """How many, in which order each passes the dimensions, and who follows whom on each dimension."""

    chunks: int
    """One of the question's options."""
    orders: tuple[tuple[int, ...], ...]
    sequences: tuple[tuple[int, ...], ...]
    """Of each dimension the chunks by their numbers; one that comes back stands there twice."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One phase of a chunk."""

    chunk: int
    dimension: int
    collective: str
    bytes: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """When everything runs, ns."""

    busy: tuple[int, ...]
    """Of each dimension."""
    fifo: int
    """What the same chunks take in the simulator, where every dimension serves first who came first."""
    runs: tuple[Ran, ...]


# The judge of chunks: every phase by the exact model, one after another on each dimension in the sequence that is given.


def judge(question: CollectiveQuestion, answer: Chunks) -> Verdict[Schedule]:
    """ns until the last chunk is done; a ValueError if the answer does not belong to the question."""
    if answer.chunks not in question.options:
        raise ValueError(f"{answer.chunks} chunks are not among the options")
    sizes, count = chunk_sizes(question.size, answer.chunks), len(question.network.dimensions)
    if len(answer.orders) != len(sizes) or any(sorted(order) != list(range(count)) for order in answer.orders):
        raise ValueError(f"each of {len(sizes)} chunks passes each of {count} dimensions")
    chunks = [Chunk(size, order) for size, order in zip(sizes, answer.orders, strict=True)]
    jobs = jobs_of(chunks, question.collective, question.network, "two_way")
    expected = [
        Counter(chunk for chunk, job in enumerate(jobs) for phase in job if phase.phase.dimension == level) for level in range(count)
    ]
    if [Counter(sequence) for sequence in answer.sequences] != expected:
        raise ValueError("a sequence names each chunk as often as it comes to the dimension")
    runs = _run(jobs, answer)
    value = max(run.end for run in runs)
    busy = tuple(sum(run.end - run.start for run in runs if run.dimension == level) for level in range(count))
    fifo = time_collective(chunks, question.collective, question.network, "two_way").time
    late = question.deadline is not None and value > question.deadline
    violations = (f"it takes {value:,} ns, the deadline is {question.deadline:,} ns",) if late else ()
    return Verdict(value, violations, Schedule(busy, fifo, tuple(runs)))


def _run(jobs: list[list[Operation]], answer: Chunks) -> list[Ran]:
    """Every phase as soon as its chunk and its dimension are free, in the sequences; a ValueError where all wait for each other."""
    phase_of, free, came, served = [0] * len(jobs), [0] * len(answer.sequences), [0] * len(jobs), [0] * len(answer.sequences)
    runs, going = list[Ran](), True
    while going:
        going = False
        for dimension, sequence in enumerate(answer.sequences):
            while served[dimension] < len(sequence):
                chunk = sequence[served[dimension]]
                operation = jobs[chunk][phase_of[chunk]]
                if operation.phase.dimension != dimension:
                    break
                start = max(free[dimension], came[chunk])
                end = start + operation.duration
                runs.append(Ran(chunk, dimension, operation.phase.collective, operation.phase.bytes, start, end))
                free[dimension] = came[chunk] = end
                phase_of[chunk] += 1
                served[dimension] += 1
                going = True
    if any(number < len(sequence) for number, sequence in zip(served, answer.sequences, strict=True)):
        raise ValueError("the chunks wait for each other in a cycle (deadlock)")
    return sorted(runs, key=lambda run: (run.start, run.dimension))


# The problem type.

# Bounds recomputed in integer ns: all numbers of chunks by order if these are few, weights of dimensions otherwise.

BY = "loads of dimensions"


def reason_of(least: int) -> str:
    """Why the deadline cannot be kept."""
    return f"deadline: no chunks of any number take less than {least:,} ns, by what they ask of the dimensions"


def prove(question: CollectiveQuestion, saved: Result[Chunks, Schedule], _: Watch) -> Proved:
    """Recompute the bound."""
    proof, options = saved.proof, question.options
    if isinstance(proof, UnverifiedBound):
        return Proved((f"the bound is reported by {proof.by}, not proved again",), unverified=True)
    if not isinstance(proof, Weighed) or len(proof.weights) != len(options):
        return Proved((), ("proof: bounds on chunks are shown by weights of dimensions for each number of chunks",))
    try:
        shown = min(least_time(chunk_loads(question, option), own) for option, own in zip(options, proof.weights, strict=True))
    except ValueError as error:
        return Proved((), (f"proof: {error}",))
    if saved.bound is None:
        impossible = question.deadline is not None and shown > question.deadline
        fault = f"bound: it shows no more than {shown:,} ns, the result says that nothing is possible"
        return Proved((_text(options),), () if impossible else (fault,), by=BY)
    fault = f"bound: it shows no more than {shown!r} ns, the result claims {saved.bound!r}"
    return Proved((_text(options),), () if saved.bound <= shown and saved.bound < inf else (fault,), by=BY)


def _text(options: tuple[int, ...]) -> str:
    return f"what {', '.join(map(str, options))} chunks ask of the dimensions was counted anew"


def _reasons(question: CollectiveQuestion, saved: Result[Chunks, Schedule]) -> tuple[str, ...] | None:
    """Why the deadline cannot be kept, by the weights of the proof."""
    if not isinstance(saved.proof, Weighed):
        return None
    loads = zip(question.options, saved.proof.weights, strict=True)
    return (reason_of(min(least_time(chunk_loads(question, option), own) for option, own in loads)),)


# Rules to compare with, as the simulator runs them, which a check carries out again.


def rules_of_collective(question: CollectiveQuestion) -> tuple[Baseline[Chunks], ...]:
    """All chunks in the natural order, and in Themis's orders, each with the number of chunks that suits it best."""
    return tuple(Baseline(name, None, best(question, name)) for name in RULES)


def best(question: CollectiveQuestion, rule: str) -> Chunks:
    """The number of chunks that suits a rule best."""
    found = [as_run(question, option, RULES[rule](question, option)) for option in question.options]
    return min(found, key=lambda run: run[0])[1]


def natural(question: CollectiveQuestion, option: int) -> list[Chunk]:
    """Equal chunks, this many, each with the natural order of dimensions."""
    return equal_chunks(question.collective, question.size, option, len(question.network.dimensions))


def themis(question: CollectiveQuestion, option: int) -> list[Chunk]:
    """By the bandwidth that an NPU really drives; chunks that do not divide stay as large as the others."""
    dimensions = question.network.dimensions
    driven = [dimension.driven for dimension in dimensions]
    chunks = themis_chunks(question.collective, question.size, option, dimensions, driven)
    sizes = chunk_sizes(question.size, option)
    return [Chunk(size, chunk.order) for size, chunk in zip(sizes, chunks, strict=True)]


RULES = {"natural order": natural, "Themis": themis}


def as_run(question: CollectiveQuestion, option: int, chunks: Sequence[Chunk]) -> tuple[int, Chunks]:
    """What the simulator makes of chunks, first come first served, and who follows whom there."""
    jobs = jobs_of(chunks, question.collective, question.network, "two_way")
    runs = sorted(run_shop(jobs), key=lambda run: run.start)
    places = range(len(question.network.dimensions))
    sequences = tuple(tuple(run.chunk for run in runs if jobs[run.chunk][run.phase].phase.dimension == dimension) for dimension in places)
    return max(run.end for run in runs), Chunks(option, tuple(chunk.order for chunk in chunks), sequences)


# Chunks of a collective as a family of questions: what is asked again, who answers, who judges, what proves.

_ENGINES = "crossopt.solvers.network.collective.engines"
_AUTO, _SEARCH, _RULE = (lazy_import(_ENGINES, name) for name in ("auto", "search", "by_rule"))

FAMILY: ProblemType[CollectiveQuestion, Chunks, Schedule] = ProblemType(
    kind="collective",
    what="schedule",
    unit="ns",
    answer=Chunks,
    details=Schedule,
    engines={
        "auto": _AUTO,
        "cpsat": _AUTO,
        "search": _SEARCH,
        "themis": partial(_RULE, "Themis", "themis"),
        "natural": partial(_RULE, "natural order", "natural"),
    },
    judge=judge,
    judged="phases, sequences, deadline",
    prove=prove,
    reasons=_reasons,
    rules=rules_of(rules_of_collective, "search", "cpsat"),
    proof_labels=frozenset({"loads of dimensions"}),
    reporting=("cpsat",),
    seeded=frozenset({"auto", "cpsat", "search"}),
)
