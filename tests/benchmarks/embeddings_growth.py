"""How plans of embedding tables grow: `python -m tests.benchmarks.embeddings_growth [--seconds 60] [SIZE ...]` prints Markdown.

Tables are drawn like those of a large recommendation model. A size is TABLES-DEVICES, such as 856-128. Seconds are those of the processor:
for reading and pricing the question, for its bound by prices, for the whole answer, and for `check`; `gap` is what is left open. The last
table repeats a few tables many times, so that they are counted by type.
"""

import os
from argparse import ArgumentParser
from itertools import pairwise
from time import process_time

os.environ.setdefault("OMP_NUM_THREADS", "1")

from crossopt.formulation.embeddings import whole
from crossopt.instances.embeddings.question import EmbeddingsQuestion
from crossopt.instances.embeddings.tables import random_tables
from crossopt.instances.question import read_given
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.checking import check_answer, solve_and_verify
from crossopt.solvers.embeddings.family import FAMILY
from crossopt.solvers.embeddings.prices import best_bound, flat

SIZES = ("100-8", "300-32", "1000-128", "3000-256", "10000-1024")
ALIKE = 50
"""Different tables of the last table."""


def main() -> None:
    """Print all tables."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", default=SIZES)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    print("# How plans of embedding tables grow")
    for objective in ("slowest_device", "step"):
        print(f"\n## {objective}\n\n{_HEAD}", flush=True)
        for size in options.sizes:
            print(row(size, drawn(size, objective), options.seconds), flush=True)
    print(f"\n## slowest_device, {ALIKE} types\n\n{_HEAD}", flush=True)
    for size in options.sizes:
        print(row(size, alike(size), options.seconds), flush=True)


_HEAD = "| tables-devices | value | bound | gap | reading s | bound s | answer s | check s |\n|---|---|---|---|---|---|---|---|"


def _text(tables: str, devices: str, objective: str) -> str:
    return f"kind: embeddings\ntables: {tables}\ncluster: {{devices: {devices}}}\nobjective: {objective}\n"


def drawn(size: str, objective: str) -> str:
    """Tables that all differ."""
    count, _, devices = size.partition("-")
    return _text(f"{{count: {count}, seed: 1}}", devices, objective)


def alike(size: str) -> str:
    """Tables of few types."""
    count, _, devices = size.partition("-")
    types = random_tables(ALIKE, 1)
    lines = list[str]()
    for place in range(int(count)):
        table = types[place % ALIKE]
        figures = f"rows: {table.rows}, dimension: {table.dimension}, pooling: {table.pooling}, batch_fraction: {table.fraction}"
        lines.append(f"\n- {{name: t{place}, {figures}, dtype: {table.dtype}}}")
    return _text("".join(lines), devices, "slowest_device")


def row(size: str, text: str, seconds: float) -> str:
    """A line about a question."""
    times = [process_time()]
    question: EmbeddingsQuestion = read_given(text, "embeddings")
    times.append(process_time())
    best_bound(flat(whole(question)))
    times.append(process_time())
    result = solve_and_verify(FAMILY, question, "auto", Limits(seconds=seconds), unwatched)
    times.append(process_time())
    if not check_answer(FAMILY, result, question).accepted:
        raise ArithmeticError(f"{size}: the check refuses the answer")
    times.append(process_time())
    spent = " | ".join(f"{later - earlier:.1f}" for earlier, later in pairwise(times))
    if result.value is None or result.bound is None or result.gap is None:
        return f"| {size} | {result.status.lower()} | | | {spent} |"
    return f"| {size} | {result.value:.6g} | {result.bound:.6g} | {result.gap:.3%} | {spent} |"


if __name__ == "__main__":
    main()
