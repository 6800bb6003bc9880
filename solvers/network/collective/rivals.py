"""Rules to compare with, as the simulator runs them: all chunks in the natural order, and in Themis's orders."""

from collections.abc import Sequence

from crossopt.crossflow.astra.chunks import Chunk, chunk_sizes, equal_chunks
from crossopt.crossflow.astra.collective import jobs_of
from crossopt.crossflow.astra.flow_shop import run_shop
from crossopt.crossflow.astra.themis import themis_chunks
from crossopt.instances.network.collective.question import CollectiveQuestion
from crossopt.solvers.answer import Rival
from crossopt.solvers.network.collective.answer import Chunks


def rivals_of(question: CollectiveQuestion) -> tuple[Rival[Chunks], ...]:
    """Both, each with the number of chunks that suits it best."""
    return tuple(Rival(name, None, best(question, name)) for name in RULES)


def best(question: CollectiveQuestion, rule: str) -> Chunks:
    """The number of chunks that suits a rule best."""
    found = [as_run(question, option, RULES[rule](question, option)) for option in question.options]
    return min(found, key=lambda one: one[0])[1]


def natural(question: CollectiveQuestion, option: int) -> list[Chunk]:
    return equal_chunks(question.collective, question.size, option, len(question.network.dimensions))


def themis(question: CollectiveQuestion, option: int) -> list[Chunk]:
    """By the bandwidth that an NPU really drives; chunks that do not divide stay as large as the others."""
    dimensions = question.network.dimensions
    driven = [one.driven for one in dimensions]
    chunks = themis_chunks(question.collective, question.size, option, dimensions, driven)
    sizes = chunk_sizes(question.size, option)
    return [Chunk(size, one.order) for size, one in zip(sizes, chunks, strict=True)]


RULES = {"natural order": natural, "Themis": themis}


def as_run(question: CollectiveQuestion, option: int, chunks: Sequence[Chunk]) -> tuple[int, Chunks]:
    """What the simulator makes of chunks, first come first served, and who follows whom there."""
    jobs = jobs_of(chunks, question.collective, question.network, "two_way")
    runs = sorted(run_shop(jobs), key=lambda run: run.start)
    places = range(len(question.network.dimensions))
    sequences = tuple(tuple(run.chunk for run in runs if jobs[run.chunk][run.place].phase.dimension == place) for place in places)
    return max(run.end for run in runs), Chunks(option, tuple(one.order for one in chunks), sequences)
