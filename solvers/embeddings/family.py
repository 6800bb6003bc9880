"""Embedding tables over devices and tiers as a problem type."""

from collections.abc import Sequence
from typing import Any

from crossopt.instances.embeddings.question import EmbeddingsQuestion
from crossopt.solvers.answer import Baseline, Result
from crossopt.solvers.embeddings.judge import (
    BY_COUNTS,
    BY_PHASES,
    BY_PRICES,
    BY_SEARCH,
    NO_PROPOSAL,
    EmbeddingFigures,
    EmbeddingPlan,
)
from crossopt.solvers.embeddings.systems import BY_SYSTEMS, judge, prove, sentences_of
from crossopt.solvers.family import RIVAL, BaselineName, ProblemType, baseline_names, lazy_import

Saved = Result[EmbeddingPlan, EmbeddingFigures]
_BOXES = "crossopt.solvers.embeddings.boxes"


def _described(question: EmbeddingsQuestion) -> dict[str, Any]:
    return {"unit": "" if question.file.objective == "fewest_devices" else "ms"}


def _baselines(question: EmbeddingsQuestion) -> tuple[BaselineName, ...]:
    del question
    proposers = ("greedy", "greedy by sum", "uniform", "grid", "dynamic programming", "memory-balanced")
    stopped = r"(stopped after [\d,]+ proposals)?"
    return baseline_names(*(f"TorchRec {name}" for name in proposers), note=stopped, reason=NO_PROPOSAL)


def _rules(question: EmbeddingsQuestion, saved: Saved) -> Sequence[Baseline[EmbeddingPlan]] | None:
    """Rules by a key at the choice of the answer, beside other baselines: time decides whether there are any."""
    from crossopt.solvers.embeddings.baselines import rules_by_key  # noqa: PLC0415 - `solve` asks none of them

    if all(own.name.startswith(RIVAL) for own in saved.baselines):
        return None
    return rules_by_key(question, saved.answer.system if saved.answer is not None else None)


FAMILY: ProblemType[EmbeddingsQuestion, EmbeddingPlan, EmbeddingFigures] = ProblemType(
    kind="embeddings",
    what="plan",
    unit="ms",
    answer=EmbeddingPlan,
    details=EmbeddingFigures,
    engines={
        "auto": lazy_import(_BOXES, "auto"),
        "search": lazy_import(_BOXES, "search_all"),
        "local": lazy_import(_BOXES, "local"),
        "cpsat": lazy_import(_BOXES, "cpsat"),
        "highs": lazy_import(_BOXES, "highs"),
        "exhaustive": lazy_import(_BOXES, "exhaustive"),
    },
    judge=judge,
    judged="time and memory of every shard",
    prove=prove,
    reasons=sentences_of,
    rules=_rules,
    searched=_baselines,
    proof_labels=frozenset({BY_PRICES, BY_PHASES, BY_SEARCH, BY_SYSTEMS, BY_COUNTS}),
    reporting=("cpsat", "highs"),
    described=_described,
    searching=frozenset({"auto", "local"}),
    seeded=frozenset({"auto", "local"}),
)
