"""Strategies of layers as a problem type."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from crossopt.instances.layers.question import LayersQuestion
from crossopt.solvers.answer import Baseline, Result
from crossopt.solvers.family import BaselineName, ProblemType, baseline_names, lazy_import
from crossopt.solvers.layers.judge import (
    BY_ALL,
    BY_CHIPS,
    BY_FRONTIER,
    BY_TREE,
    RATIO,
    LayerChoices,
    LayerTotals,
    judge,
    prove,
    ratio_greedy,
    reasons_of,
    uniform,
)

_FRONTIER = lazy_import("crossopt.solvers.layers.engines", "frontier")


def _described(question: LayersQuestion) -> dict[str, Any]:
    return {"unit": question.unit}


def _rules(question: LayersQuestion, saved: Result[LayerChoices, LayerTotals]) -> Sequence[Baseline[LayerChoices]] | None:
    """Rules on the chip of the answer."""
    chip = None if saved.answer is None else saved.answer.chip
    if (not saved.baselines and saved.answer is None) or (question.chips is not None and chip is None):
        return None
    asked = question if chip is None else question.on_chip(chip)
    own = [*uniform(asked), Baseline(RATIO, None, ratio_greedy(asked))]
    return [replace(rule, answer=replace(rule.answer, chip=chip)) for rule in own if rule.answer is not None]


def _searched(question: LayersQuestion) -> tuple[BaselineName, ...]:
    names = list(_OF_SPLITS if question.types else ("one-hot rows without conversions",))
    if question.chips is not None:
        what = "formats" if question.chips.parallel is None else "splits"
        names.append(f"{what} on the best chip for {question.chips.request.device.base}")
    return baseline_names(*names)


_OF_SPLITS = ("one strategy for each type of operator", "FlexFlow's Markov chain", "one-hot rows without relayouts")
_PROVERS = dict.fromkeys((BY_FRONTIER, BY_TREE, BY_CHIPS), ("frontier",)) | {BY_ALL: ("exhaustive",)}
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
    reasons=reasons_of,
    rules=_rules,
    searched=_searched,
    proof_labels=frozenset(_PROVERS),
    provers=_PROVERS,
    described=_described,
)
