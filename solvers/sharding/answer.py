"""An answer about strategies, who may prove a bound of it, and what floating-point numbers are believed."""

from dataclasses import dataclass

from crossopt.solvers.answer import Result

SOLVERS, ASKING_NOBODY = ("milp", "cpsat", "weak"), ("exhaustive", "greedy", "local", "search")
ENGINES = ("auto", *SOLVERS, *ASKING_NOBODY)
"""That a result may name; `auto` where nothing was left to choose an engine for."""
BY_DUAL = "prices of memory and messages along edges, counted in whole numbers"
BY_TREE = f"{BY_DUAL}, branch by branch"
BY_EVERY = "looking at every choice that the reductions leave"
BY_LEAST, BY_PAIRS = "counting the least of each node", "counting the least of what forbidden pairs leave"
BY_ARCS = "arc consistency"
WHOLE = (BY_DUAL, BY_TREE, BY_EVERY, BY_LEAST, BY_PAIRS, BY_ARCS)
"""Proofs that anybody can count again; any other one is a solver's word."""
IN_FLOATS = "highs "
"""How the name of a solver begins that counts in floating point: its bounds are `lowered`, and it proves nothing to the unit."""
UNKEPT = "the proof is too large to be kept with the result, so that no check can carry it out anew"
"""A note."""


def lowered(cost: int) -> int:
    """The most that a solver in floating point is believed where it says that nothing costs less: at least a millionth below, and below."""
    return cost - 1 - abs(cost) // 1_000_000


@dataclass(frozen=True, slots=True)
class Strategies:
    """One strategy for each node."""

    strategies: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """How operators of one name are split along each axis of the mesh, and how many of them are."""

    operator: str
    way: str
    count: int


@dataclass(frozen=True, slots=True)
class Meaning:
    """What the judge says of strategies beside their cost."""

    peak: int
    """Bytes in use when most are."""
    peak_time: int
    choices: tuple[Chosen, ...]
    """What the strategies mean, where the cost model made the problem."""


Answer = Result[Strategies, Meaning]
