"""Tiny cores at random, as engines are given them."""

from functools import cache

from crossopt.formulation.sharding.core import Core, NothingAllowedError, unreduced
from crossopt.formulation.sharding.reductions import consistent
from tests.instances.sharding.tiny import tiny


def _allowed(seed: int, nodes: int = 5, most: int = 4) -> Core | None:
    """A tiny core in which each strategy has a partner along each edge; None where nothing is allowed."""
    try:
        return consistent(unreduced(tiny(seed, nodes=nodes, most=most))).core
    except NothingAllowedError:
        return None


@cache
def cores() -> tuple[Core, ...]:
    """Made when a test asks: while tests are collected nobody shall wait for them."""
    return tuple(core for seed in range(80) if (core := _allowed(seed)))
