"""Embedding tables over devices and tiers as a problem type."""

from crossopt.instances.embeddings.question import EmbeddingsQuestion
from crossopt.solvers.embeddings.judge import BY_PRICES, BY_SEARCH, EmbeddingFigures, EmbeddingPlan, judge, prove
from crossopt.solvers.family import ProblemType, lazy_import

_ENGINES = "crossopt.solvers.embeddings.engines"
FAMILY: ProblemType[EmbeddingsQuestion, EmbeddingPlan, EmbeddingFigures] = ProblemType(
    kind="embeddings",
    what="plan",
    unit="ms",
    answer=EmbeddingPlan,
    details=EmbeddingFigures,
    engines={
        "auto": lazy_import(_ENGINES, "auto"),
        "search": lazy_import(_ENGINES, "search_all"),
        "local": lazy_import(_ENGINES, "local"),
        "cpsat": lazy_import(_ENGINES, "cpsat"),
        "highs": lazy_import(_ENGINES, "highs"),
        "exhaustive": lazy_import(_ENGINES, "exhaustive"),
    },
    judge=judge,
    judged="time and memory of every shard",
    prove=prove,
    proof_labels=frozenset({BY_PRICES, BY_SEARCH}),
    searching=frozenset({"auto", "local"}),
    seeded=frozenset({"auto", "local"}),
)
