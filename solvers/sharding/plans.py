"""What a choice for a transformer on a mesh means, in words, and what Megatron-LM's plans cost there."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from crossopt.instances.sharding.network import BELONGINGS, Network
from crossopt.solvers.sharding.judge import judge


@dataclass(frozen=True, slots=True)
class Chosen:
    """How operators of one name are split along each axis of the mesh, and how many of them are."""

    operator: str
    way: str
    count: int


@dataclass(frozen=True, slots=True)
class Plan:
    """One of Megatron-LM's plans."""

    name: str
    value: int | None
    """None where its memory does not fit."""


def chosen_of(network: Network | None, strategies: Sequence[int] | None) -> tuple[Chosen, ...]:
    """The choice in words, operators of all layers together; none where the numbers have no meaning."""
    if network is None or strategies is None:
        return ()
    rows = zip(network.names, network.options, strategies, strict=True)
    counts = Counter((name.rpartition(": ")[2], options[strategy]) for name, options, strategy in rows)
    return tuple(Chosen(name, _words(name, way), count) for (name, way), count in counts.items())


def _words(name: str, way: tuple[str, ...]) -> str:
    """Parts of weights are no features: they are split whichever way the operator needs."""
    belongs = name.rpartition(", ")[2] in BELONGINGS
    return " · ".join("split" if belongs and part == "feature" else part for part in way)


def plans_of(network: Network | None) -> tuple[Plan, ...]:
    """Megatron-LM's plans, the best first."""
    if network is None:
        return ()
    found = [(name, judge(network.problem, choice)) for name, choice in network.rules.items()]
    plans = [Plan(name, None if verdict.violations else verdict.cost) for name, verdict in found]
    return tuple(sorted(plans, key=lambda plan: (plan.value is None, plan.value or 0)))
