"""Placements beside heuristics and other programs: `python -m tests.benchmarks.placements FOLDER [--out FILE]` prints tables in Markdown.

FOLDER holds graphs in JSON, in any depth; `--authors FILE` adds what their authors' programs found (a CSV file with the columns input,
algorithm, objective), `--experts FOLDER` the experts' splits (GRAPH_expert.json). Every graph is solved in a process of its own: stages to
the proof, any blocks for `--seconds` at the most. `--optimum` prints only how near to the optimum each graph is solved, as stages and on
any devices, or for latency below a folder of that name, beside the best of the simple rules (`make bench-placement`). `--growth` asks
generated graphs with more and more operators and devices instead, and fits how the seconds until a gap of 1 % grow.
"""

import csv
import json
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np

from crossopt.instances.errors import InstanceError
from crossopt.instances.placement.question import read_split
from crossopt.instances.question import read
from crossopt.solvers.placement.comparison import compared_throughput

STAGED = ("one device", "equal stages", "one order", "many orders")
HEURISTICS = ("list by work", "list by rank", "minimum cut", "local search", "annealing")
AUTHORS = {"DP(ideals)": "ideals", "DPL": "one order", "scotch": "Scotch", "local-search(10)": "local search"}
"""Programs in the file of their figures, and what they are called in the table."""

BRACKETS = """Values in brackets break a rule of the question: a device holds more than its memory, or, where another program's value is
below what is proved of all stages, data flow back to an earlier device, as local search and Scotch mind no order of the data."""
ROUNDED = 1e-5
"""What the six digits of a figure lose."""

PROGRAM = """
import json, resource, sys, time
from pathlib import Path
from crossopt.instances.question import read
from crossopt.solvers.answer import Limits
from crossopt.solvers.family import solve
from crossopt.solvers.placement.family import FAMILY
path, contiguity, seconds, devices, settings = json.loads(sys.argv[1])
asked = (*settings, *([f"contiguous={contiguity}"] if contiguity else []), *([] if devices is None else [f"devices={devices}"]))
began = time.monotonic()
question = read(Path(path), asked)
near = []
def watch(progress):
    if not near and progress.best and progress.bound and progress.best - progress.bound <= 0.01 * progress.best < float("inf"):
        near.append(time.monotonic() - began)
found = solve(FAMILY, question, "auto", Limits(seconds or float("inf")), watch)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
took = time.monotonic() - began
if not near and found.gap is not None and found.gap <= 0.01:
    near.append(took)
rules = min(((row.value, row.name) for row in found.baselines if row.value is not None), default=(None, ""))
print(json.dumps([found.value, found.bound, found.gap, found.status, took, peak, len(question.graph), found.proved_by, rules, *near]))
"""

Row = tuple[float | None, float | None, float | None, str, float, float, int, str, float | None, tuple[float | None, str]]
"""Value, bound, gap, status, seconds, MiB, nodes, proof, seconds until a gap of 1 %, and the best of the rules with its name."""


_USE = "`python -m tests.benchmarks.placements FOLDER` prints these tables for a folder of graphs in JSON (`--help` names the options)."


def main() -> None:
    """Print the tables, and write them where `--out` says."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--authors", type=Path)
    parser.add_argument("--experts", type=Path)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--searches", type=float, default=10.0, help="seconds for each of three seeds of each search")
    parser.add_argument("--optimum", action="store_true")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = []
    for line in growth(options.seconds) if options.growth else optimum(options) if options.optimum else published(options):
        print(line, flush=True)
        lines.append(line)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


def solved(
    path: Path | str, contiguity: str, seconds: float | None = None, devices: int | None = None, settings: tuple[str, ...] = ()
) -> Row:
    """What a process of its own answers."""
    asked = json.dumps([str(path), contiguity, seconds, devices, settings])
    done = subprocess.run([sys.executable, "-c", PROGRAM, asked], capture_output=True, text=True, check=True)
    value, bound, gap, status, took, peak, nodes, by, rules, *near = json.loads(done.stdout)
    return value, bound, gap, status, took, peak, nodes, by, near[0] if near else None, (rules[0], rules[1])


def optimum(options: Namespace) -> Iterator[str]:
    """One row a graph and problem: value, bound, gap, and who proves the bound."""
    yield f"## How near to the optimum, at most {options.seconds:g} s each ({date.today():%d %B %Y})\n"
    yield f"| graph | nodes | problem | value, ms | bound, ms | gap | proved by | seconds | best rule |\n|{'---|' * 9}"
    for path in graphs_below(options.folder):
        name, latency = name_of(path, options.folder), "latency" in path.parts
        for problem, contiguity in {"latency": ""}.items() if latency else {"stages": "stages", "any devices": "no"}.items():
            row = solved(path, contiguity, options.seconds, settings=("problem=latency",) if latency else ())
            figures = " | ".join("none" if figure is None else f"{figure:.7g}" for figure in row[:2])
            gap = "" if row[2] is None else "0" if row[3] == "OPTIMAL" else f"{row[2]:.3%}"
            rule = "none" if row[9][0] is None else f"{row[9][0]:.5g}, {row[9][1]}"
            yield f"| {name} | {row[6]} | {problem} | {figures} | {gap} | {row[7]} | {row[4]:.1f} | {rule} |"


def published(options: Namespace) -> Iterator[str]:
    """One row a graph: proofs, heuristics, authors."""
    folder, told = options.folder, figures_of(options.authors)
    graphs = graphs_below(folder)
    yield f"# Placements: proofs, heuristics and the authors' programs\n\n{_USE}\n"
    yield f"Busiest device in milliseconds; seconds of the clock in brackets behind it.\n\n## Stages\n\n{BRACKETS}\n"
    heads = [*STAGED, "experts", *(f"authors: {name}" for name in AUTHORS.values())]
    yield f"| graph | nodes | proved | MiB | {' | '.join(heads)} |\n|---|---|---|---|{'---|' * len(heads)}"
    for path in graphs:
        row = solved(path, "stages")
        baselines = heuristics(path, "stages", options.experts, options.searches, ("many orders",))
        theirs = [held_to(row[1], told[name_of(path, folder)].get(program, "")) for program in AUTHORS]
        cells = [*(baselines.get(name, "") for name in (*STAGED, "expert")), *theirs]
        yield f"| {name_of(path, folder)} | {row[6]} | {proof(row)} | {row[5]:.0f} | {' | '.join(cells)} |"
    yield f"\n## Any operators on any device, at most {options.seconds:g} s each, searches {options.searches:g} s for each of three seeds\n"
    rule = "---|" * (6 + len(HEURISTICS))
    yield f"| graph | value | bound | gap | seconds | MiB | {' | '.join(HEURISTICS)} |\n|{rule}"
    for path in graphs:
        row = solved(path, "no", options.seconds)
        baselines = heuristics(path, "no", None, options.searches, HEURISTICS)
        cells = [baselines.get(name, "") for name in HEURISTICS]
        gap = "" if row[2] is None else f"{row[2]:.3%}"
        yield f"| {name_of(path, folder)} | {row[0]:.6g} | {row[1]:.6g} | {gap} | {row[4]:.0f} | {row[5]:.0f} | {' | '.join(cells)} |"


def graphs_below(folder: Path) -> list[Path]:
    """Graphs with devices; other JSON files are splits, or graphs of other problem types."""
    return sorted(path for path in folder.rglob("*.json") if '"maxFPGAs"' in path.read_text(encoding="utf-8"))


def name_of(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder).with_suffix(""))


def proof(row: Row) -> str:
    """The value with its time, and the gap where it is not the optimum."""
    value = "none" if row[0] is None else f"{row[0]:.7g}"
    return f"{value} ({row[4]:.1f})" if row[3] in {"OPTIMAL", "INFEASIBLE"} else f"{value}, gap {row[2]:.2%} ({row[4]:.1f})"


def held_to(bound: float | None, figure: str) -> str:
    """A figure of another program, in brackets where no answer to the question can have it: it is of placements that break its order."""
    try:
        impossible = bound is not None and float(figure) < bound * (1.0 - ROUNDED)
    except ValueError:
        return figure
    return f"({figure})" if impossible else figure


def heuristics(path: Path, contiguity: str, experts: Path | None, seconds: float, searches: tuple[str, ...]) -> dict[str, str]:
    """Values of the rules and searches, in brackets where they break a rule of the question."""
    question = read(path, (f"contiguous={contiguity}",))
    splits = {}
    with suppress(InstanceError):  # a split of another graph of the same name
        split = expert_split(path, experts)
        splits = {} if split is None else {"expert": read_split(split, question)}
    return {row.name: cell(row.value, row.note) for row in compared_throughput(question, seconds, 3, splits, searches)}


def cell(value: float | None, note: str) -> str:
    text = "none" if value is None else f"{value:.5g}"
    return f"({text})" if note else text


def expert_split(path: Path, experts: Path | None) -> Path | None:
    """The split of the graph, or of its forward pass."""
    names = (path.stem, path.stem.replace("training", "inference")) if experts else ()
    return next((split for name in names if experts and (split := experts / f"{name}_expert.json").exists()), None)


def figures_of(authors: Path | None) -> dict[str, dict[str, str]]:
    """What each program found, by graph."""
    told: dict[str, dict[str, str]] = defaultdict(dict)
    if authors is not None:
        with authors.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                told[row["input"].removeprefix("throughput/")][row["algorithm"]] = row["objective"] or "none"
    return told


LAYERS, DEVICES = (1, 4, 12, 24, 48, 96), (2, 4, 8, 16, 32, 64)
DRAWN = ((100, 8, 1), (1_000, 8, 1), (10_000, 8, 1), (99_980, 8, 2), (10_000, 2, 1), (10_000, 32, 1), (10_000, 256, 1), (99_980, 64, 2))
"""Operators at least, accelerators and seed."""
SHAPE = "{layers: %d, hidden: 2048, heads: 16, ffn: 8192, vocabulary: 32000, sequence: 2048}"


def growth(seconds: float) -> Iterator[str]:
    """Seconds and memory over operators and over devices, on the operators of transformers in training."""
    yield f"## Growth\n\nDrawn graphs, and transformers in training on A100s, operator by operator, at most {seconds:g} s each.\n"
    yield "| graph | nodes | devices | problem | busiest, ms | gap | seconds | to 1 % | MiB |\n|---|---|---|---|---|---|---|---|---|"
    rows = list[tuple[str, str, int, int, float | None]]()
    for least, devices, seed in DRAWN:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "drawn.json"
            path.write_text(json.dumps(drawn(least, devices, seed)), encoding="utf-8")
            for problem, contiguity in {"stages": "stages", "any devices": "no"}.items():
                row = solved(path, contiguity, seconds)
                rows.append(("drawn", problem, row[6], devices, row[8]))
                yield grown("drawn", devices, problem, row)
    pairs = [(layers, 8) for layers in LAYERS] + [(24, devices) for devices in DEVICES if devices != 8]
    for layers, devices in pairs:
        settings = (f"graph.workload={{transformer: {SHAPE % layers}, global_batch: 8}}", "memory=10 TiB")
        for problem, contiguity in {"stages": "stages", "any devices": "no"}.items():
            row = solved(Path("instances/placement/gpt3-13b-on-8.yaml"), contiguity, seconds, devices, settings)
            rows.append(("transformers", problem, row[6], devices, row[8]))
            yield grown(f"{layers} layers", devices, problem, row)
    yield from exponents(rows)


def exponents(rows: list[tuple[str, str, int, int, float | None]]) -> Iterator[str]:
    """How the seconds until a gap of 1 % grow with the operators at a number of devices, and with the devices at a number of operators."""
    yield "\nSeconds until a gap of 1 %, as the power of the operators or devices that fits at least three of the graphs best:\n"
    yield "| graphs | problem | grows with | at | graphs that reach it | exponent |\n|---|---|---|---|---|---|"
    series = defaultdict[tuple[str, str, str, str], list[tuple[int, float | None]]](list)
    for name, problem, nodes, devices, near in rows:
        series[name, problem, "operators", f"{devices} devices"].append((nodes, near))
        series[name, problem, "devices", f"{nodes:,} operators"].append((devices, near))
    for heads, points in series.items():
        reached = [(size, near) for size, near in points if near is not None]
        if len(points) > 2:
            cells = [*heads, f"{len(reached)} of {len(points)}", f"{exponent(reached):.2f}" if len(reached) > 2 else ""]
            yield f"| {' | '.join(cells)} |"


def exponent(points: list[tuple[int, float]]) -> float:
    """The power of the size that fits best, by least squares of logarithms."""
    return float(np.polyfit(np.log([size for size, _ in points]), np.log([seconds for _, seconds in points]), 1)[0])


def grown(name: str, devices: int, problem: str, row: Row) -> str:
    """A row of the table of growth."""
    gap = "" if row[2] is None else "0" if row[3] == "OPTIMAL" else f"{row[2]:.2%}"
    near = "" if row[8] is None else f"{row[8]:.1f}"
    return f"| {name} | {row[6]} | {devices} | {problem} | {row[0]:.6g} | {gap} | {row[4]:.1f} | {near} | {row[5]:.0f} |"


def drawn(least: int, devices: int, seed: int) -> dict[str, object]:
    """A graph of modules that follow each other, each with one to four branches of one to four operators."""
    random, nodes, edges = Random(seed), list[dict[str, object]](), list[tuple[int, int]]()

    def node(time: float) -> int:
        row = {"supportedOnFpga": 1, "cpuLatency": time * 10, "fpgaLatency": time, "isBackwardNode": 0, "size": random.randrange(10**6)}
        nodes.append({"id": len(nodes), **row})
        return len(nodes) - 1

    ends = [node(random.uniform(0.1, 2))]
    while len(nodes) < least:
        sources, branches, ends = ends, random.randint(1, 4), []
        for _ in range(branches):
            last = sources[random.randrange(len(sources))]
            for _ in range(random.randint(1, 4)):
                following = node(random.choice([0.0, random.uniform(0.05, 2)]))
                edges.append((last, following))
                last = following
            ends.append(last)
        if branches > 1:
            joining = node(random.uniform(0.05, 0.5))
            edges += [(end, joining) for end in ends]
            ends = [joining]
    costs = [random.uniform(0, 0.3) for _ in nodes]
    links = [{"sourceId": source, "destId": target, "cost": costs[source]} for source, target in edges]
    return {"maxSizePerFPGA": 1e12, "maxFPGAs": devices, "maxCPUs": 1, "nodes": nodes, "edges": links}


if __name__ == "__main__":
    main()
