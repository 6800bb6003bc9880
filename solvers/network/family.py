"""Bandwidths of a network as a family of questions: what is asked again, who answers, who judges, what proves."""

from typing import Any

from crossopt.instances.network.question import NetworkQuestion
from crossopt.solvers.answer import Number
from crossopt.solvers.family import Family, later
from crossopt.solvers.network.answer import Bandwidths, Network
from crossopt.solvers.network.judge import judge
from crossopt.solvers.network.prove import prove

_ENGINES = "crossopt.solvers.network.engines"
_TANGENTS = later(_ENGINES, "tangents")


def _described(question: NetworkQuestion) -> dict[str, Any]:
    return {"unit": "s" if question.file.objective == "time" else "s USD"}


def _lowered(question: NetworkQuestion, bound: Number) -> Number:
    """The bound less what the judge's sums may lose."""
    del question
    return bound * (1.0 - 2.0**-44)


FAMILY: Family[NetworkQuestion, Bandwidths, Network] = Family(
    kind="network",
    what="network",
    unit="s",
    answer=Bandwidths,
    details=Network,
    engines={
        "auto": _TANGENTS,
        "tangents": _TANGENTS,
        "equal": later(_ENGINES, "equal"),
        "bytes": later(_ENGINES, "in_proportion"),
        "root": later(_ENGINES, "by_the_root"),
    },
    judge=judge,
    judged="times, cost, budgets, orders",
    prove=prove,
    said=frozenset(
        {
            "convex duality",
            "convex duality in N parts of the catalogues",
            "convex duality at N costs",
            "no bandwidths keep the limits",
        }
    ),
    described=_described,
    least_gap=1e-7,
    lowered=_lowered,
)
