"""How the work on strategies grows: `python -m tests.benchmarks.sharding_growth FOLDER` prints Markdown.

FOLDER holds problems (.json or .json.gz). The first table times reading, reductions, a pass of messages and a move of the search,
file by file; the second compares a pass in machine code with the same in numpy.
"""

from argparse import ArgumentParser
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from time import perf_counter

import numpy as np

from crossopt.formulation.sharding.core import Core, timeline_of, unreduced
from crossopt.formulation.sharding.reductions import reduced
from crossopt.instances.sharding.reading import read_problem
from crossopt.solvers.sharding import search
from crossopt.solvers.sharding.messages import Network, State, network_of, passed, state_of
from crossopt.solvers.sharding.search import walker_of


def main() -> None:
    """Print the tables, and write them where `--out` says."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    files = sorted(options.folder.glob("*-*.json*"), key=lambda path: path.stat().st_size)
    lines = []
    for line in chain(growth(files), compiled(files)):
        print(line, flush=True)
        lines.append(line)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


def letter_of(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".json").split("-")[-1]


def growth(files: list[Path]) -> Iterator[str]:
    """How time and memory grow with the nodes: reading, reductions, passes of messages and moves of the search."""
    yield "# How the work grows\n"
    yield "| file | nodes | strategies | entries | read s | reduce s | nodes left | entries left | pass ms | move ms |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for path in files:
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
        search.walked(walker, 1, 1, 0.01)
        start = perf_counter()
        search.walked(walker, 500, 1 << 40, 0.01)
        moving = (perf_counter() - start) / 500
        sizes = f"{len(problem):,} | {len(problem.costs):,} | {len(problem.entries):,}"
        left = f"{len(core):,} | {len(core.entries):,}"
        times = f"{read - began:.1f} | {done - read:.1f} | {left} | {1e3 * passing:.1f} | {1e3 * moving:.2f}"
        yield f"| {letter_of(path)} | {sizes} | {times} |"


def _walker(core: Core) -> search.Walker:
    """Where every node takes its first strategy."""
    return walker_of(core, np.zeros(len(core), np.int64), np.zeros(len(timeline_of(core).times)), 0)


def compiled(files: list[Path]) -> Iterator[str]:
    """Passes of messages in machine code beside the same in numpy, one edge at a time; both must gain the same."""
    yield "\n# Machine code and numpy\n\nOne forward pass of messages over the reduced problem.\n"
    yield "| file | compiled ms | numpy ms | times |"
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
