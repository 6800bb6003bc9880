"""Chunks of a collective as a family of questions: what is asked again, who answers, who judges, what proves."""

from functools import partial

from crossopt.instances.network.collective.question import CollectiveQuestion
from crossopt.solvers.family import Family, later
from crossopt.solvers.network.collective.answer import Chunks, Schedule
from crossopt.solvers.network.collective.judge import judge
from crossopt.solvers.network.collective.prove import prove

_ENGINES = "crossopt.solvers.network.collective.engines"
_AUTO, _SEARCH, _RULE = (later(_ENGINES, name) for name in ("auto", "search", "by_rule"))

FAMILY: Family[CollectiveQuestion, Chunks, Schedule] = Family(
    kind="collective",
    what="schedule",
    unit="ns",
    answer=Chunks,
    details=Schedule,
    engines={
        "auto": _AUTO,
        "cpsat": _AUTO,
        "search": _SEARCH,
        "themis": partial(_RULE, "Themis", "themis"),
        "natural": partial(_RULE, "natural order", "natural"),
    },
    judge=judge,
    judged="phases, sequences, deadline",
    prove=prove,
    said=frozenset({"loads of dimensions"}),
    seeded=frozenset({"auto", "cpsat", "search"}),
)
