"""Benchmarks that stand for traces as a family of questions: what is asked again, who answers, who judges, what proves."""

from typing import Any

from crossopt.instances.traces.benchmark import BenchmarkQuestion
from crossopt.solvers.family import ProblemType, lazy_import
from crossopt.solvers.traces.benchmark.judge import Runs, Stands, judge
from crossopt.solvers.traces.benchmark.prove import prove

_ENGINES = "crossopt.solvers.traces.benchmark.engines"
_PROGRAM = lazy_import(_ENGINES, "program")


def _described(question: BenchmarkQuestion) -> dict[str, Any]:
    return {"unit": question.file.objective}


FAMILY: ProblemType[BenchmarkQuestion, Runs, Stands] = ProblemType(
    kind="benchmark",
    what="benchmark",
    unit="kernels",
    answer=Runs,
    details=Stands,
    engines={
        "auto": _PROGRAM,
        "highs": _PROGRAM,
        "exhaustive": lazy_import(_ENGINES, "exhaustive"),
        "rounding": lazy_import(_ENGINES, "rounding"),
        "apportion": lazy_import(_ENGINES, "apportion"),
        "largest": lazy_import(_ENGINES, "largest_first"),
        "dropping": lazy_import(_ENGINES, "dropping"),
    },
    seeded=frozenset({"dropping", "auto", "highs", "exhaustive"}),
    judge=judge,
    judged="totals, coverage, numbers of kernels and runs",
    prove=prove,
    said=frozenset({"a tree of branches in whole numbers", "N choices looked at"}),
    described=_described,
)
