"""Strategies of public problems: `python -m tests.benchmarks.sharding FOLDER [--known FILE.csv] [--out FILE]` prints tables in Markdown.

FOLDER holds problems in JSON, plain or gzipped; `--known` is a CSV file with the columns instance and best_known, and timeout_s where the
contest's own limit of time is to be used instead of `--seconds`. Every problem is solved in a process of its own; seconds are those of the
clock for all of it, from the start of Python to the answer, and beside them those of the processor, which other work does not lengthen.
`--only A,B` takes problems whose names end so.
"""

import csv
import json
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import time
from typing import Any

PROGRAM = """
import json, resource, sys, time
from pathlib import Path
from crossopt.instances.question import read
from crossopt.solvers.answer import Limits
from crossopt.solvers.family import solve
from crossopt.solvers.sharding.judge import EXACT_PROOFS
from crossopt.solvers.sharding.family import FAMILY
path, engine, seconds, began = json.loads(sys.argv[1])
question = read(Path(path))
read = time.time() - began
found = solve(FAMILY, question, engine, Limits(seconds - read), lambda progress: None)
left = getattr(found.proof, "reductions", None)
print(json.dumps({
    "value": found.value, "bound": found.bound, "gap": found.gap, "engine": found.engine, "seconds": time.time() - began, "read": read,
    "exact": found.proved_by in EXACT_PROOFS,
    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    "before": [left.before.nodes, left.before.entries] if left else None,
    "after": [left.after.nodes, left.after.entries] if left else None,
    "reduced": sum(step.seconds for step in left.steps) if left else None,
}))
"""


def main() -> None:
    """Print the tables, and write them where `--out` says."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--known", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = []
    for line in table(options.folder, told_by(options.known), options.seconds, options.engine, options.only):
        print(line, flush=True)
        lines.append(line)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


def told_by(path: Path | None) -> dict[str, dict[str, str]]:
    """Rows of the table of others, by the instance."""
    if path is None:
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {row["instance"]: row for row in csv.DictReader(file)}


def solved(path: Path, engine: str, seconds: float) -> dict[str, Any]:
    """What a process of its own answers."""
    asked, before = json.dumps([str(path), engine, seconds, time()]), getrusage(RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", PROGRAM, asked], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    spent = getrusage(RUSAGE_CHILDREN)
    found["processor"] = spent.ru_utime + spent.ru_stime - before.ru_utime - before.ru_stime
    return found


def table(folder: Path, known: dict[str, dict[str, str]], seconds: float, engine: str, only: str) -> Iterator[str]:
    """One row a problem: what was left to choose, the answer, its proof, and the ratio to what others reached."""
    yield f"# Strategies of public problems\n\n{' '.join((__doc__ or '').split())}\n"
    sizes, times = ("nodes", "left", "pairs", "left"), ("read s", "reduce s")
    heads = ("problem", *sizes, *times, "cost", "bound", "gap", "proof", "best known / cost", "s", "processor s", "MiB")
    yield f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}"
    ratios = []
    for path in sorted(path for path in folder.iterdir() if path.name.endswith((".json", ".json.gz"))):
        name = path.name.removesuffix(".gz").removesuffix(".json")
        letter = name.rpartition("-")[2]
        if only and letter not in only.split(","):
            continue
        other = known.get(name, known.get(letter, {}))
        found = solved(path, engine, float(other.get("timeout_s") or seconds))
        ratio = int(other["best_known"]) / found["value"] if other.get("best_known") and found["value"] else None
        ratios += [ratio] if ratio is not None else []
        yield f"| {' | '.join(_cells(name, found, ratio))} |"
    if ratios:
        yield f"\nMean of best known / cost over {len(ratios)} problems: {sum(ratios) / len(ratios):.4f}."


def _cells(name: str, found: dict[str, Any], ratio: float | None) -> list[str]:
    before, after = found["before"], found["after"]
    sizes = [f"{figure:,}" for pair in zip(before, after, strict=True) for figure in pair] if before else [""] * 4
    value, bound = (f"{found[key]:,}" if found[key] is not None else "none" for key in ("value", "bound"))
    gap = "" if found["gap"] is None else f"{found['gap']:.3%}"
    proof = "whole numbers" if found["exact"] else "told" if found["bound"] is not None else "none"
    times = [f"{found[key]:.1f}" if found[key] is not None else "" for key in ("read", "reduced")]
    share = "" if ratio is None else f"{ratio:.5f}"
    spent = (f"{found['seconds']:.1f}", f"{found['processor']:.1f}")
    return [name, *sizes, *times, value, bound, gap, proof, share, *spent, f"{found['peak']:.0f}"]


if __name__ == "__main__":
    main()
