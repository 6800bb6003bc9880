"""Bandwidths that rare exchanges need, beside published ones: `python -m tests.benchmarks.rare_exchanges FILE.csv`.

Two forms of tables are read. The first has a row for each method of a simulator of DiLoCo with `exact_gbps` (rules of
arthurdouillard.github.io/diloco). The second has the first point of a grid of 50 from 0.1 to 1,000 Gbit/s with which a paper's simulator
reaches the target (`gbps`, arXiv 2501.18512 and 2503.09799). How far off each row is is printed, and the worst of each table. Of a
machine in groups (a file FILE.json of 15-PF) it prints what they sustain by stragglers that are fitted to small runs.
"""

import csv
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from crossopt.crossflow.rare_exchanges import Exchange, bandwidth_for, fitted_spread, straggling, volume

GRID = tuple(10.0 ** (-1.0 + 4.0 * number / 49.0) for number in range(50))
RUNS = {
    "physics, slowest": ((1024.0, 575.0), (2048.0, 1150.0)),
    "physics": ((1024.0, 662.5), (2048.0, 1200.0)),
    "physics, fastest": ((1024.0, 750.0), (2048.0, 1250.0)),
    "climate": ((2048.0, 1750.0),),
}
"""Times one node on so many nodes, of 15-PF's text (section on weak scaling, recalled)."""
Row = Mapping[str, str]


def way_of(row: Row) -> Exchange:
    """The exchange of a row; without a column of overlap its method says whether a step may run before it has arrived."""
    overlap = int(row["overlap_steps"] or 0) if "overlap_steps" in row else int("overlapped" in row["method"])
    return Exchange(int(row["H"]), int(row["fragments"] or 1), overlap)


def needed(row: Row) -> float:
    """Gbit/s between the groups with which the target is reached."""
    bytes_per_parameter = float(row.get("bytes_per_param") or (0.5 if "fp4" in row["method"] else 2.0))
    groups, way = int(row.get("datacentres") or 2), way_of(row)
    size = 8.0 * volume(1e9 * float(row["params_B"]), bytes_per_parameter, groups, way)
    return bandwidth_for(float(row["target_pct"]) / 100.0, way, float(row["step_s"]), size, groups) / 1e9


def grid_step(bandwidth: float) -> int:
    """The number of the first grid point that reaches a bandwidth; 50 beyond the last."""
    return next((number for number, point in enumerate(GRID) if point >= bandwidth), len(GRID))


def off(row: Row) -> float:
    """Relative error where the exact bandwidth is known; else steps of the grid."""
    if row.get("exact_gbps"):
        return needed(row) / float(row["exact_gbps"]) - 1.0
    stated = row["gbps"].replace(".", "", 1).isdigit()  # beyond the grid it is written `> 1000`
    published = min(range(len(GRID)), key=lambda number: abs(GRID[number] / float(row["gbps"]) - 1.0)) if stated else len(GRID)
    return float(grid_step(needed(row)) - published)


def lines(rows: list[dict[str, str]]) -> Iterator[str]:
    """A line for each row, and the worst."""
    found = [off(row) for row in rows]
    exact = bool(rows[0].get("exact_gbps"))
    for row, error in zip(rows, found, strict=True):
        name = row.get("id") or f"{row['model']} {row['method']} H {row['H']}"
        yield f"{name:<44} {row['target_pct']:>3} % {needed(row):>12.6g} Gbit/s  {f'{error:+.4%}' if exact else f'{error:+.0f} steps'}"
    worst = max(map(abs, found))
    near = sum(abs(error) <= (1e-3 if exact else 2.0) for error in found)
    within, most = ("0.1 %", f"{worst:.4%}") if exact else ("two steps", f"{worst:.0f} steps")
    yield f"{len(rows)} rows, {near} within {within}, the worst {most} off"


def group_lines(machine: Mapping[str, float]) -> Iterator[str]:
    """What 8 and 9 groups sustain, by stragglers of the paper's runs on 1,024 and 2,048 nodes; and one group of all nodes."""
    for name, runs in RUNS.items():
        spread = fitted_spread([(nodes, times / nodes) for nodes, times in runs])
        shares = {groups: 1.0 / straggling(spread, machine["nodes"] / groups) for groups in (1, 8, 9)}
        texts = [f"{groups} groups {share:.1%}, {share * machine['linear_pflops']:.2f} PFLOP/s" for groups, share in shares.items()]
        yield f"{name} (spread {spread:.3f}): {'; '.join(texts)}"


def main() -> None:
    """Print each file that is named."""
    for name in sys.argv[1:]:
        if name.endswith(".json"):
            sys.stdout.writelines(f"{line}\n" for line in group_lines(json.loads(Path(name).read_text(encoding="utf-8"))))
            continue
        with Path(name).open(encoding="utf-8") as file:
            sys.stdout.writelines(f"{line}\n" for line in lines(list(csv.DictReader(file))))


if __name__ == "__main__":
    main()
