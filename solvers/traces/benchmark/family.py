"""Benchmarks that stand for traces as a family of questions: what is asked again, who answers, who judges, what proves."""

from typing import Any

from crossopt.instances.traces.benchmark import BenchmarkQuestion
from crossopt.solvers.family import Family, later
from crossopt.solvers.traces.benchmark.judge import Runs, Stands, judge
from crossopt.solvers.traces.benchmark.prove import prove

_ENGINES = "crossopt.solvers.traces.benchmark.engines"
_PROGRAM = later(_ENGINES, "program")


def _described(question: BenchmarkQuestion) -> dict[str, Any]:
    return {"unit": question.file.objective}


FAMILY: Family[BenchmarkQuestion, Runs, Stands] = Family(
    kind="benchmark",
    what="benchmark",
    unit="kernels",
    answer=Runs,
    details=Stands,
    engines={
        "auto": _PROGRAM,
        "highs": _PROGRAM,
        "exhaustive": later(_ENGINES, "exhaustive"),
        "rounding": later(_ENGINES, "rounding"),
        "apportion": later(_ENGINES, "apportion"),
        "largest": later(_ENGINES, "largest_first"),
        "dropping": later(_ENGINES, "dropping"),
    },
    seeded=frozenset({"dropping", "auto", "highs", "exhaustive"}),
    judge=judge,
    judged="totals, coverage, numbers of kernels and runs",
    prove=prove,
    said=frozenset({"a tree of branches in whole numbers", "N choices looked at"}),
    described=_described,
)
