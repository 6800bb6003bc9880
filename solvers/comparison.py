"""Engines side by side on one question: those with a proof, rules of thumb, and searchers with several seeds."""

from collections.abc import Sequence

from instances.instance import Instance
from solvers.certify import Limits
from solvers.engines import ENGINES, SEARCHERS
from solvers.result import Result
from solvers.watching import Watch


def compare(instance: Instance, names: Sequence[str], seconds: float, seeds: int, watch: Watch) -> list[Result]:
    """The results of the engines in this order, searchers once for each seed. Only these are cut off: the bound is worth waiting for."""
    return [ENGINES[name](instance, limits, watch) for name in names for limits in _limits(name, seconds, seeds)]


def _limits(name: str, seconds: float, seeds: int) -> list[Limits]:
    return [Limits(seconds, seed) for seed in range(seeds)] if name in SEARCHERS else [Limits()]
