"""How the time of a chain's optimum grows: `python -m tests.benchmarks.chain_growth` prints tables in Markdown.

A transformer of equal layers at four widths, plain and recomputed, from 24 to 960 layers on 1,024 devices, and of 96 layers on 64 to 65,536
devices. Seconds are those of the processor for the whole answer, with its equal splits, its divisible baseline and the judge, less Python's
start; `search` is the optimum alone.
"""

import os
from dataclasses import replace
from time import process_time

os.environ.setdefault("OMP_NUM_THREADS", "1")

from crossopt.solvers.answer import Limits, Progress
from crossopt.solvers.family import solve
from crossopt.solvers.stages.chain.engine import best_plans
from crossopt.solvers.stages.chain.family import FAMILY
from tests.solvers.stages.chain.chains import SHAPES, asked_of, text_of

LAYERS = (24, 48, 96, 192, 384, 960)
DEVICES = (64, 256, 1_024, 4_096, 16_384, 65_536)


def main() -> None:
    """Print both tables."""
    head = "| {} | seconds | search | stages | replicas |\n|---|---|---|---|---|"
    print("# How the time of a chain's optimum grows\n\n## More layers, 1,024 devices\n")
    print(head.format("layers"))
    for layers in LAYERS:
        print(row(f"{layers:,}", layers, 1_024))
    print("\n## More devices, 96 layers\n")
    print(head.format("devices"))
    for devices in DEVICES:
        print(row(f"{devices:,}", 96, devices))


def row(first: str, layers: int, devices: int) -> str:
    """One line of a table."""
    question = asked_of(text_of(replace(SHAPES["gpt3"], layers=layers, fixed=(1, 1, 1)), devices=devices))
    start = process_time()
    result = solve(FAMILY, question, "cuts", Limits(), silent)
    middle = process_time()
    best = best_plans(question, float("inf") if result.value is None else result.value * 1.5, lambda: None).any
    end = process_time()
    if result.answer is None or not result.proved or abs(best.value / (result.value or 1.0) - 1.0) > 1e-9:
        raise ArithmeticError(f"{layers} layers on {devices} devices: not proved")
    return f"| {first} | {middle - start:.3f} | {end - middle:.3f} | {len(result.answer.stages)} | {result.answer.data} |"


def silent(progress: Progress) -> None:
    del progress


if __name__ == "__main__":
    main()
