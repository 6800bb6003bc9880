"""The planners that PyTorch ships, run for real on graphs of training steps, beside ours that are written anew, and the optimum.

    python -m tests.benchmarks.torch_planners [GRAPH.json ...] [--shares 0.9 0.8 0.7] [--limit SECONDS]

Needs torch and PuLP (pip install torch pulp; torch 2.13 is what was compared). Graphs default to the shipped one. `sac_milp` of PyTorch
gets the blocks of the graph as modules; its shares are dropped as ours are, and each schedule is replayed. Times are those of repetitions.
"""

import argparse
import sys
from collections.abc import Iterable
from itertools import pairwise
from math import inf
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any

from crossopt.instances.memory.graph import MemoryGraph, graph_in
from crossopt.instances.question import read
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.family import solve
from crossopt.solvers.memory.family import FAMILY
from crossopt.solvers.memory.judge import extra_units
from crossopt.solvers.memory.planners import Unit, by_knapsack, candidates, dropped_outputs, sac_milp, units_of
from crossopt.solvers.memory.rules import dropping, longest_gaps, peak_of
from tests.paths import INSTANCES
from tests.solvers.memory.drawn import question_of

BLOCKS, CAPACITIES = (8, 16), 24
_GIB = float(1 << 30)


def module_graph(units: list[Unit]) -> SimpleNamespace:
    """Units as modules beside each other, in the form of torch.distributed._tools.ilp_utils."""
    longest = max(unit.time for unit in units) or 1.0
    nodes = [
        {
            "index": place,
            "fqn": f"block{place}",
            "pos_fw_post_order": place,
            "is_leaf": False,
            "sac_memory": unit.inside,
            "act_fw_per_module": unit.kept,
            "act_grad_per_module": unit.gradient,
            "act_total": unit.total,
            "param_per_module": 0.0,
            "grad_total": 0.0,
            "sac_runtime": 1e3 * unit.time / longest,
            "slopes": [slope for slope, _ in unit.lines],
            "intercepts": [intercept for _, intercept in unit.lines],
            "n_segments": len(unit.lines),
        }
        for place, unit in enumerate(units)
        if unit.inside
    ]
    for place, node in enumerate(nodes):
        node["index"] = node["pos_fw_post_order"] = place
    names = [str(node["fqn"]) for node in nodes]
    size = len(nodes)
    return SimpleNamespace(
        nodes=nodes, name2node=dict(zip(names, nodes, strict=True)), fw_post_order=names, ad_matrix=[[0] * size for _ in range(size)]
    )


def real_shares(units: list[Unit], budget: float) -> list[float] | None:
    """What PyTorch decides; None where its solver finds nothing."""
    from torch.distributed._tools.sac_ilp import sac_milp as real

    found, _, peak = real(module_graph(units), budget / _GIB)
    return None if peak == -1 else [float(found.get(f"block{place}", 0.0)) for place in range(len(units))]


def estimate(units: list[Unit], shares: list[float]) -> float:
    """Time of repetitions as the MILP counts it."""
    pairs = zip(units, shares, strict=True)
    return sum(
        unit.time * max([slope * share + intercept for slope, intercept in unit.lines] + [0.0]) for unit, share in pairs if share > 0.0
    )


def schedule(graph: MemoryGraph, dropped: Iterable[int]) -> tuple[int, ...]:
    gaps = longest_gaps(graph)
    return dropping(graph, {node: gaps[node] for node in dropped})


def real_knapsack(graph: MemoryGraph, name: str, most: float) -> set[int]:
    """What a knapsack of PyTorch drops."""
    from torch._functorch._activation_checkpointing import knapsack

    nodes = candidates(graph, longest_gaps(graph))
    total = float(sum(graph.sizes[node] for node in nodes))
    call: Any = getattr(knapsack, name)
    return {
        nodes[item] for item in call([graph.sizes[node] / total for node in nodes], [float(graph.times[node]) for node in nodes], most)[2]
    }


def compare(name: str, graph: MemoryGraph, share: float, limit: float) -> None:
    """Lines of one graph and budget."""
    budget = int(graph.plain_peak * share)
    best = solve(FAMILY, question_of(graph, budget), "auto", Limits(limit), unwatched)
    value = None if best.value is None else float(best.value)
    print(f"{name}, {share:.0%}: optimum {_stated(value)}, bound {_stated(best.bound)}")
    gaps = longest_gaps(graph)
    for blocks in BLOCKS:
        pairs = units_of(graph, gaps, blocks)
        units = [unit for unit, _ in pairs]
        began = monotonic()
        real = real_shares(units, budget)
        took, began = monotonic() - began, monotonic()
        ours = sac_milp(units, budget, gap=0.0)
        own = monotonic() - began
        for label, shares, seconds in (("PyTorch's", real, took), ("ours", ours, own)):
            if shares is None:
                print(f"  sac_milp of {len(units)} blocks, {label}: infeasible, {seconds:.2f} s")
                continue
            parts = zip(pairs, shares, strict=True)
            nodes = {node for (unit, listed), part in parts for node in dropped_outputs(graph, listed, part * unit.inside)}
            replayed = _replayed(graph, nodes, budget, value)
            print(f"  sac_milp of {len(units)} blocks, {label}: estimated {estimate(units, shares):.6g}, {replayed}, {seconds:.2f} s")
    for label in ("greedy_knapsack", "dp_knapsack", "ilp_knapsack"):
        sets = [real_knapsack(graph, label, 1.0 - part / CAPACITIES) for part in range(CAPACITIES)]
        same = (
            "" if label == "ilp_knapsack" else f", the same as ours: {sets == list(by_knapsack(graph, gaps, label.startswith('greedy')))}"
        )
        peaks = [peak_of(graph, schedule(graph, nodes)) for nodes in sets]
        fitting = [nodes for nodes, peak in zip(sets, peaks, strict=True) if peak <= budget]
        chosen = min(fitting, key=lambda nodes: extra_units(graph, schedule(graph, nodes)), default=sets[peaks.index(min(peaks))])
        rises = sum(later > earlier for earlier, later in pairwise(peaks))
        print(f"  {label}: {_replayed(graph, chosen, budget, value)}; as its capacity falls, the peak rises {rises} times{same}")


def _replayed(graph: MemoryGraph, nodes: Iterable[int], budget: int, best: float | None) -> str:
    order = schedule(graph, nodes)
    peak, extra = peak_of(graph, order), extra_units(graph, order)
    if peak > budget:
        return f"its peak is {peak / budget - 1.0:.1%} above the budget"
    return f"replayed {extra:.6g}" + (f", {extra / best:.2f} times the optimum" if best else "")


def _stated(figure: float | None) -> str:
    return "none" if figure is None or figure == inf else f"{float(figure):.6g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="*", type=Path)
    parser.add_argument("--shares", nargs="+", type=float, default=[0.9, 0.8, 0.7])
    parser.add_argument("--limit", type=float, default=60.0)
    options = parser.parse_args()
    named = {path.stem: graph_in(path.read_text(encoding="utf-8"), path.name) for path in options.graphs}
    shipped = read(INSTANCES / "memory/two-blocks.yaml")
    for name, graph in (named or {"two-blocks": shipped.graph}).items():
        for share in options.shares:
            compare(name, graph, share, options.limit)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
