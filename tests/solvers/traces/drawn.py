"""Random questions about traces, small enough that every choice can be tried."""

import json
from collections.abc import Sequence
from itertools import product
from math import inf
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from crossopt.crossflow.traces import EDGES, KINDS, graph_of
from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read
from crossopt.instances.traces.benchmark import BenchmarkQuestion
from crossopt.instances.traces.graph_file import Trace, document_of
from crossopt.instances.traces.whatif import WhatIfQuestion
from crossopt.solvers.traces.benchmark.family import Runs
from crossopt.solvers.traces.benchmark.family import judge as judge_runs
from crossopt.solvers.traces.whatif.family import Changes, judge
from tests.trace_steps import few_kernels

_ATTEMPTS, _APART = 40, 10**9


def random_trace(draw: Random, count: int, kinds: Sequence[str] = KINDS) -> dict[str, Any]:
    """Operations on a thread and two streams, edges forward in any order of reasons."""
    operations = [
        (draw.choice("abcd"), draw.choice(kinds), draw.choice(("thread", "one", "two")), draw.randint(0, 40)) for _ in range(count)
    ]
    pairs = [(one, two) for two in range(count) for one in range(two) if draw.random() < 0.35]
    edges = [(one, two, draw.choice(EDGES)) for one, two in pairs]
    return document_of(Trace(graph_of(operations, edges, [draw.randint(0, 9) for _ in range(count)])))


def random_change(draw: Random, name: str) -> dict[str, Any]:
    """A change of any transform, with costs."""
    pattern, factor = draw.choice(("a", "b", "*", "c", ["a", "d"])), draw.choice((0, 0.3, 0.5, 0.9, 1.4))
    change = draw.choice(
        (
            {"transform": "scale", "pattern": pattern, "factor": factor},
            {"transform": "amp", "pattern": pattern},
            {"transform": "fuse", "pattern": pattern, "factor": 0.7},
            {"transform": "remove", "pattern": pattern},
            {"transform": "unwait", "pattern": pattern},
            {"transform": "cpu", "factor": factor},
            {"transform": "cuda-graph", "pattern": pattern},
            {"transform": "bandwidth", "times": draw.choice((0.5, 2, 3))},
            {"transform": "latency", "latency": "5 ns", "factor": factor},
            {"transform": "compress", "factor": factor, "overhead": "3 ns"},
            {"transform": "overlap", "gradients": pattern},
            {"transform": "recompute", "pattern": pattern, "before": draw.choice("abcd")},
        )
    )
    costs: dict[str, Any] = {"days": draw.choice((0, 1, 2.5, 3)), "memory": f"{draw.randint(0, 3)} GiB"}
    costs["frees"] = f"{draw.randint(0, 1)} GiB"
    return {"name": name, **change, **costs, "money": f"{draw.randint(0, 3)} USD"}


def changes(seed: int, most: int = 6) -> tuple[WhatIfQuestion, float]:
    """A question, and the least of all choices; infinite where none keeps the rules and the target.

    Changes that change nothing in the trace are refused, and drawn again."""
    question = changes_question(seed, most)
    return question, least_of_all(question)


def changes_question(seed: int, most: int = 6, kinds: Sequence[str] = KINDS) -> WhatIfQuestion:
    """Up to so many changes; of a trace in which hardly any changes something, another is drawn."""
    draw = Random(seed)
    trace = random_trace(draw, draw.randint(4, 14), kinds)
    rows = list[dict[str, Any]]()
    for place in range(draw.randint(1, most)):
        drawn = (random_change(draw, f"c{place}") for _ in range(_ATTEMPTS))
        row = next((one for one in drawn if _says_something(one, trace)), None)
        if row is None:
            return changes_question(seed + _APART, most, kinds)
        if place and draw.random() < 0.3:
            row["requires" if draw.random() < 0.5 else "excludes"] = [f"c{draw.randrange(place)}"]
        rows.append(row)
    objective = draw.choice(("time", "time", "days", "money"))
    document: dict[str, Any] = {"kind": "what-if", "trace": "trace.json", "changes": rows, "objective": objective}
    budgets = {"days": draw.randint(0, 6)} if any(row["days"] for row in rows) else {}
    document |= {"target": f"{draw.randint(20, 200)} ns"} if objective != "time" or draw.random() < 0.3 else {}
    question: WhatIfQuestion = asked(document | {"budgets": budgets}, trace)
    return question


def _says_something(row: dict[str, Any], trace: dict[str, Any]) -> bool:
    try:
        asked({"kind": "what-if", "trace": "trace.json", "changes": [row]}, trace)
    except InstanceError:
        return False
    return True


def asked(document: dict[str, Any], trace: dict[str, Any]) -> Any:  # noqa: ANN401 - a question of either kind
    """The question in such a file, with its trace beside it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "drawn.yaml"
        (Path(folder) / "trace.json").write_text(json.dumps(trace), encoding="utf-8")
        path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
        return read(path, ())


def least_of_all(question: WhatIfQuestion) -> float:
    """By the judge alone."""
    best = inf
    for made in product((False, True), repeat=len(question.names)):
        verdict = judge(question, Changes(tuple(name for name, chosen in zip(question.names, made, strict=True) if chosen)))
        best = best if verdict.violations else min(best, verdict.value)
    return best


def kernels(seed: int) -> tuple[BenchmarkQuestion, float]:
    """A benchmark of up to four kernels, and the least of all choices; infinite where none keeps the limits."""
    question = kernels_question(seed)
    return question, least_kernels(question)


def kernels_question(seed: int, kinds: bool = False) -> BenchmarkQuestion:
    """A benchmark of up to four kernels, perhaps with operations of other kinds and FLOPs."""
    draw = Random(seed)
    rows = [(f"k{place}", draw.randint(1, 60), draw.randint(1, 5)) for place in range(draw.randint(1, 4))]
    document: dict[str, Any] = {"kind": "benchmark", "trace": "trace.json", "objective": draw.choice(("kernels", "runs"))}
    document |= {
        "share": draw.choice((0.2, 0.5, 0.37, 1)),
        "deviation": draw.choice((0, 0.05, 0.3)),
        "coverage": draw.choice((0, 0.6, 0.9)),
        "mix": draw.choice((None, None, 0, 0.1, 0.3)),
    }
    document |= {"totals": draw.sample(("time", "bytes", "runs"), draw.randint(1, 3))}
    trace = document_of(Trace(few_kernels(rows)))
    if kinds:
        trace, document["totals"] = _of_all_kinds(draw, trace)
    question: BenchmarkQuestion = asked(document, trace)
    return question


def _of_all_kinds(draw: Random, trace: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The trace with a copy or a collective beside its kernels, which have FLOPs, and some of its totals."""
    rows, kinds = trace["operations"], draw.sample(("copy", "collective"), draw.randint(1, 2))
    for row in rows:
        row["flops"] = draw.randint(1, 9) * 100
    others = [{"name": kind, "kind": kind, "on": "stream 7", "ns": draw.randint(1, 60), "bytes": 100} for kind in kinds]
    there = ["time", "flops", "kernel time", *(f"{kind} time" for kind in kinds)]
    return {**trace, "operations": [*rows, *others]}, draw.sample(there, draw.randint(1, 3))


def least_kernels(question: BenchmarkQuestion) -> float:
    """By the judge alone."""
    best = inf
    for runs in product(*(range(kernel.runs + 1) for kernel in question.kernels)):
        verdict = judge_runs(question, Runs(runs))
        best = best if verdict.violations else min(best, verdict.value)
    return best
