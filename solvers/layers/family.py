"""Strategies of layers as a problem type."""

from typing import Any

from crossopt.instances.layers.question import LayersQuestion
from crossopt.solvers.family import ProblemType, lazy_import
from crossopt.solvers.layers.judge import BY_ALL, BY_CHIPS, BY_FRONTIER, BY_TREE, LayerChoices, LayerTotals, judge, prove

_FRONTIER = lazy_import("crossopt.solvers.layers.engines", "frontier")


def _described(question: LayersQuestion) -> dict[str, Any]:
    return {"unit": question.unit}


FAMILY: ProblemType[LayersQuestion, LayerChoices, LayerTotals] = ProblemType(
    kind="layers",
    what="choice",
    unit="",
    answer=LayerChoices,
    details=LayerTotals,
    engines={"auto": _FRONTIER, "frontier": _FRONTIER, "exhaustive": lazy_import("crossopt.solvers.layers.engines", "exhaustive")},
    judge=judge,
    judged="figures of every layer, budgets and ties",
    prove=prove,
    proof_labels=frozenset({BY_FRONTIER, BY_TREE, BY_CHIPS, BY_ALL}),
    described=_described,
)
