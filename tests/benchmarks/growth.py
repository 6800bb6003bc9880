"""How a proof's cost grows: `python -m tests.benchmarks.growth [--out FILE]` prints tables in Markdown.

The question with everything open is asked with coarser and finer grids, and on fewer and more devices; each in a process of its own, on one
core, with `boxes`. Seconds are those of the processor from start to end, tables of the model and the reading of the question included.
`--brute-force` adds one question that enumeration answers as well, which takes some twenty minutes.
"""

import json
import os
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

HEAD = "| {first} | designs | seconds | boxes | plans | groups | promising plans | peak memory |\n|---|---|---|---|---|---|---|---|\n"
RANGES = {
    "compute_area": ("300 mm^2", "640 mm^2", 35),
    "compute_power": ("100 W", "290 W", 39),
    "l2_area": ("10 mm^2", "130 mm^2", 13),
    "l2_power": ("20 W", "120 W", 11),
    "l1_area": ("10 mm^2", "50 mm^2", 5),
    "registers_power": ("20 W", "60 W", 9),
    "node_network_area": ("10 mm^2", "50 mm^2", 9),
    "node_network_power": ("10 W", "40 W", 7),
    "network_area": ("2 mm^2", "10 mm^2", 5),
    "network_power": ("1 W", "10 W", 10),
}
"""Choices of the large question with their numbers of options."""
FINENESS = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.4)
DEVICES = (8, 64, 512, 4096, 16384, 65536)
FINE = (
    "compute_area={from: 300 mm^2, to: 700 mm^2, count: 201}",
    "compute_power={from: 100 W, to: 260 W, count: 161}",
    "l2_area={from: 10 mm^2, to: 160 mm^2, count: 76}",
    "tensor=[1, 2, 4, 8]",
)

PROGRAM = """
import json, resource, sys, time
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import hardware_points
from crossopt.solvers.codesign.boxes import search as boxes
from crossopt.solvers.codesign import exhaustive
from crossopt.solvers.codesign.boxes.branch import Spend
name, engine, *settings = json.loads(sys.argv[1])
asked = read_instance(name, tuple(settings))
if engine == "boxes":
    found = boxes.search(asked, lambda progress: None, Spend())
    counts = [len(found.cuts), found.plans, found.groups, found.promising]
    designs = found.plans * hardware_points(asked)
else:
    found = exhaustive.search(asked, lambda progress: None)
    counts, designs = [0, found.space.plans, 0, 0], found.space.designs
seconds, peak = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([designs, found.value, seconds, *counts, peak, found.stopped]))
"""


def main() -> None:
    """Print the tables, and write them where `--out` says."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--brute-force", action="store_true")
    options = parser.parse_args()
    text = _INTRODUCTION + over_designs() + over_devices() + (against_enumeration() if options.brute_force else "")
    print(text, end="")
    if options.out:
        options.out.write_text(text, encoding="utf-8")


def over_designs() -> str:
    """From a few million designs to more than 1e18."""
    rows = "".join(row(f"{share:g}", *finer(share)) for share in FINENESS)
    return f"## More options\n\nEach range of the large question with so many times its options.\n\n{HEAD.format(first='options')}{rows}\n"


def finer(share: float) -> tuple[str, ...]:
    """Settings that give each range so many times its options."""
    counts = {name: max(2, round(count * share)) for name, (_, _, count) in RANGES.items()}
    return tuple(f"{name}={{from: {low}, to: {high}, count: {counts[name]}}}" for name, (low, high, _) in RANGES.items())


def over_devices() -> str:
    """From one node to 65,536 devices."""
    asked = ("workload={model: gpt3-13b, global_batch: 65536, precision: bf16}",)
    rows = "".join(row(f"{devices:,}", *asked, f"cluster.devices={devices}") for devices in DEVICES)
    return f"## More devices\n\nThe same chips for GPT-3 13B, 65,536 samples a step.\n\n{HEAD.format(first='devices')}{rows}\n"


def against_enumeration() -> str:
    """One question, answered both ways; the values must be the same to the last bit."""
    fast, slow = (run("instances/quickstart.yaml", engine, *FINE) for engine in ("boxes", "exhaustive"))
    if fast[1] != slow[1] or fast[0] != slow[0]:
        raise ArithmeticError(f"boxes find {fast[:2]}, enumeration {slow[:2]}")
    words = f"{fast[0]:,.0f} designs: enumeration {slow[2]:,.0f} s, boxes {fast[2]:.2f} s, {slow[2] / fast[2]:,.0f} times as fast"
    return f"## Against enumeration\n\n{words}; both find {fast[1]!r} s.\n"


def row(first: str, *settings: str) -> str:
    """One line of a table."""
    designs, value, seconds, boxes, plans, groups, promising, peak, stopped = run(
        "instances/gpt3-175b-pathfinding-large.yaml", "boxes", *settings
    )
    if stopped != "complete":
        raise ArithmeticError(f"not proved: {stopped}")
    print(f"{first}: {seconds:.1f} s", file=sys.stderr)
    none = "" if value is not None else " (no design)"
    return f"| {first} | {designs:.1e}{none} | {seconds:.1f} | {boxes:,} | {plans:,} | {groups:,} | {promising:,} | {peak:.0f} MiB |\n"


def run(*words: str) -> list[float]:
    """What the program prints."""
    output = subprocess.run([sys.executable, "-c", PROGRAM, json.dumps(words)], check=True, capture_output=True, text=True).stdout
    found: list[float] = json.loads(output)
    return found


_INTRODUCTION = """\
# How the cost of a proof grows

Written by `python -m tests.benchmarks.growth`. Seconds are of one core of a virtual machine, without what other programs take of it, from
start to proof.

"""

if __name__ == "__main__":
    main()
