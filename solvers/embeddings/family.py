"""Embedding tables over devices and tiers as a problem type."""

from typing import Any

from crossopt.instances.embeddings.question import EmbeddingsQuestion
from crossopt.solvers.embeddings.judge import (
    BY_COUNTS,
    BY_PHASES,
    BY_PRICES,
    BY_SEARCH,
    KEYS,
    NO_PROPOSAL,
    NO_ROOM,
    EmbeddingFigures,
    EmbeddingPlan,
    key_name,
)
from crossopt.solvers.embeddings.systems import BY_SYSTEMS, judge, prove, sentences_of
from crossopt.solvers.family import TOGETHER, BaselineName, ProblemType, baseline_names, lazy_import

_BOXES = "crossopt.solvers.embeddings.boxes"


def _described(question: EmbeddingsQuestion) -> dict[str, Any]:
    return {"unit": "" if question.file.objective == "fewest_devices" else "ms"}


def _baselines(question: EmbeddingsQuestion) -> tuple[BaselineName, ...]:
    del question
    proposers = ("greedy", "greedy by sum", "uniform", "grid", "dynamic programming", "memory-balanced")
    stopped = r"(stopped after [\d,]+ proposals)?"
    proposed = baseline_names(*(f"TorchRec {name}" for name in proposers), note=stopped, reason=NO_PROPOSAL)
    return (*proposed, *baseline_names(*map(key_name, KEYS), reason=NO_ROOM, always=TOGETHER))


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
    searched=_baselines,
    proof_labels=frozenset({BY_PRICES, BY_PHASES, BY_SEARCH, BY_SYSTEMS, BY_COUNTS}),
    reporting=("cpsat", "highs"),
    described=_described,
    searching=frozenset({"auto", "local"}),
    seeded=frozenset({"auto", "local"}),
)
