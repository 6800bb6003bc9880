"""Strategies beside the best that others reached: `python -m tests.benchmarks.shardings FOLDER [--known FILE.csv]` prints Markdown.

FOLDER holds problems (.json or .json.gz). Each is solved by `crossopt solve` in a process of its own, one after the other, for as long as
the column timeout_s of `--known` says, or for `--seconds`; the clock counts everything, from the start of Python on. `--known` (columns
instance, best_known, timeout_s; an instance is the last part of a file's name) adds what others reached. `--growth` sorts by size and times
reading, reductions, passes of messages and moves of the search instead; `--compiled` compares machine code with the same in numpy.
"""

import csv
import json
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from formulation.sharding.core import Core, unreduced
from formulation.sharding.messages import Network, State, network_of, passed, state_of
from formulation.sharding.reducing import reduced
from formulation.sharding.timeline import timeline_of
from instances.sharding.reading import read_problem
from solvers.sharding import walk
from solvers.sharding.walker import walker_of

PROGRAM = """
import resource, sys
from solvers.cli import main
try:
    main(sys.argv[1:])
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, file=sys.stderr)
"""
SPARED = 0.97
"""Of the time that is allowed: what the solver is asked to keep, less what reading takes."""


class Known(NamedTuple):
    """What others reached, and in which time."""

    best: int | None
    seconds: float | None


class Row(NamedTuple):
    """What came out for a file."""

    name: str
    result: dict[str, Any]
    seconds: float
    megabytes: float
    known: Known


def main() -> None:
    """Print the tables, and write them where `--out` says."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--known", type=Path)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    known = known_of(options.known)
    files = sorted(options.folder.glob("*.json*"))
    lines = []
    for line in compiled(files) if options.compiled else growth(files) if options.growth else beside(files, known, options.seconds):
        print(line, flush=True)
        lines.append(line)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


def known_of(path: Path | None) -> dict[str, Known]:
    """Best values and times by instance."""
    if path is None:
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["instance"]: Known(int(row["best_known"]), float(row["timeout_s"])) for row in csv.DictReader(file)}


def letter_of(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".json").split("-")[-1]


def solved(path: Path, seconds: float, known: Known) -> Row:
    """What a process of its own answers in this time, reading included."""
    began = perf_counter()
    read_problem(path)
    reading = perf_counter() - began
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        limit = max(SPARED * seconds - reading - 1.0, 1.0)
        asked = ["solve", str(path), "--time-limit", f"{limit:.1f}", "--out", str(out)]
        began = perf_counter()
        done = subprocess.run([sys.executable, "-c", PROGRAM, *asked], capture_output=True, text=True, check=False)
        took = perf_counter() - began
        if not out.exists():
            raise RuntimeError(f"{path.name}: {done.stderr[-500:]}")
        result = json.loads(out.read_text(encoding="utf-8"))
    return Row(letter_of(path), result, took, float(done.stderr.strip().splitlines()[-1]), known)


def beside(files: list[Path], known: dict[str, Known], seconds: float | None) -> Iterator[str]:
    """One row a file, and the mean of the ratios."""
    yield f"# Strategies beside the best that others reached\n\n{' '.join((__doc__ or '').split())}\n"
    yield "| file | nodes | left | strategies left | value | best known | ratio | bound | gap | seconds | MiB | proved |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    ratios = []
    for path in files:
        others = known.get(letter_of(path), Known(None, None))
        row = solved(path, seconds or others.seconds or 60.0, others)
        ratio = others.best / row.result["value"] if others.best and row.result["value"] else 0.0
        ratios += [ratio] if others.best else []
        yield line_of(row, ratio)
    if ratios:
        yield f"\nMean of best known / value over {len(ratios)} files: {fmean(ratios):.4f}"


def line_of(row: Row, ratio: float) -> str:
    found = row.result
    left = found["reductions"]["after"] if found["reductions"] else {"nodes": 0, "strategies": 0}
    told = [figure if figure is not None else "none" for figure in (found["value"], row.known.best, found["bound"])]
    value, best, bound = (f"{figure:,}" if isinstance(figure, int) else figure for figure in told)
    gap = f"{100 * found['gap']:.2f} %" if found["gap"] is not None else "-"
    sizes = f"{found['instance']['nodes']:,} | {left['nodes']:,} | {left['strategies']:,}"
    proved = "yes" if found["proved"] else "no"
    return (
        f"| {row.name} | {sizes} | {value} | {best} | {ratio:.4f} | {bound} | {gap} | {row.seconds:.0f} | {row.megabytes:.0f} | {proved} |"
    )


def growth(files: list[Path]) -> Iterator[str]:
    """How time and memory grow with the nodes: reading, reductions, passes of messages and moves of the search."""
    yield "# How the work grows\n"
    yield "| file | nodes | strategies | entries | read s | reduce s | nodes left | entries left | pass ms | move ms |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for path in sorted(files, key=lambda path: path.stat().st_size):
        began = perf_counter()
        problem = read_problem(path).problem
        read = perf_counter()
        core = reduced(unreduced(problem)).core
        done = perf_counter()
        network = network_of(core)
        state = state_of(core, network)
        passed(network, state, True)
        start = perf_counter()
        for turn in range(10):
            passed(network, state, turn % 2 == 1)
        passing = (perf_counter() - start) / 10
        walker = _walker(core)
        walk.walked(walker, 1, 1, 0.01)
        start = perf_counter()
        walk.walked(walker, 500, 1 << 40, 0.01)
        moving = (perf_counter() - start) / 500
        sizes = f"{len(problem):,} | {len(problem.costs):,} | {len(problem.entries):,}"
        left = f"{len(core):,} | {len(core.entries):,}"
        times = f"{read - began:.1f} | {done - read:.1f} | {left} | {1e3 * passing:.1f} | {1e3 * moving:.2f}"
        yield f"| {letter_of(path)} | {sizes} | {times} |"


def _walker(core: Core) -> walk.Walker:
    """Where every node takes its first strategy."""
    return walker_of(core, np.zeros(len(core), np.int64), np.zeros(len(timeline_of(core).times)), 0)


def compiled(files: list[Path]) -> Iterator[str]:
    """Passes of messages in machine code beside the same in numpy, one edge at a time; both must gain the same."""
    yield "# Machine code and numpy\n\nOne forward pass of messages over the reduced problem.\n\n| file | compiled ms | numpy ms | times |"
    yield "|---|---|---|---|"
    for path in files:
        core = reduced(unreduced(read_problem(path).problem)).core
        network = network_of(core)
        passed(network, state_of(core, network), True)
        seconds, gains = [], []
        for function in (passed, passed_by_numpy):
            state = state_of(core, network)
            start = perf_counter()
            gains.append(function(network, state, True))
            seconds.append(perf_counter() - start)
        if abs(gains[0] - gains[1]) > 1e-9 * abs(gains[0]):
            raise ArithmeticError(f"{path.name}: compiled code gains {gains[0]}, numpy {gains[1]}")
        yield f"| {letter_of(path)} | {1e3 * seconds[0]:.1f} | {1e3 * seconds[1]:.1f} | {seconds[1] / seconds[0]:.1f} |"


def passed_by_numpy(network: Network, state: State, forward: bool) -> float:
    """The forward pass of `passed`, with labels, a matrix at a time."""
    assert forward
    arcs, offsets, gained = network.arcs, network.message_offsets, 0.0
    for node in range(len(network.offsets) - 1):
        first, middle, last = arcs.starts[node], network.middles[node], arcs.starts[node + 1]
        own = state.potentials[network.offsets[node] : network.offsets[node + 1]]
        total = np.zeros(len(own))
        for arc in range(first, middle):
            matrix = network.entries[network.entry_offsets[arc] : network.entry_offsets[arc + 1]].reshape(-1, len(own))
            back, message = arcs.reverses[arc], state.messages[offsets[arc] : offsets[arc + 1]]
            least = (matrix + state.messages[offsets[back] : offsets[back + 1], None]).min(axis=0)
            own += least + message
            message[:] = -least
            total += matrix[state.labels[arcs.others[arc]]] - least
        state.labels[node] = (total + own).argmin()
        gained += own.min()
        own -= own.min()
        share = 1.0 / max(middle - first, last - middle, 1)
        for arc in range(middle, last):
            state.messages[offsets[arc] : offsets[arc + 1]] += share * own
        own *= max(1.0 - share * (last - middle), 0.0)
    return gained


if __name__ == "__main__":
    main()
