"""What an engine answers about strategies, as JSON both ways.

The result does not hold the problem, which may be hundreds of megabytes, but names its file and the digest of its text.
"""

from dataclasses import dataclass, field
from typing import Any

from crossopt.instances.sharding.extent import Extent, Taken
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.solvers.answer import Status, Trace, record
from crossopt.solvers.sharding.plans import Chosen, Plan

KIND = "sharding"
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
class Reductions:
    """What was left to choose before and after all of them."""

    before: Extent
    after: Extent
    steps: tuple[Taken, ...]


@dataclass(frozen=True, slots=True)
class ProofStep:
    """A branch, by its node and the strategies of its first part, or a dual in units of 1 / scale (formulation.sharding.tree)."""

    node: int | None
    first: tuple[int, ...]
    scale: int
    times: tuple[int, ...]
    prices: tuple[int, ...]
    to_firsts: tuple[int, ...]
    to_seconds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Certificate:
    """Steps about the reduced problem, and the bound that they prove in whole numbers; beyond every cost, that there is no choice.

    A result has one with its bound, but where every choice was looked at, or where a note says that the proof is too large.
    """

    bound: int
    steps: tuple[ProofStep, ...]


@dataclass(frozen=True, slots=True)
class ShardingResult:
    """An answer with its proof."""

    kind: str
    instance: dict[str, Any]
    engine: str
    status: Status
    stopped: str
    value: int | None
    bound: int | None
    gap: float | None
    gap_asked: float
    proved: bool
    proved_by: str
    strategies: tuple[int, ...] | None
    """Of each node."""
    peak: int | None
    """Bytes in use when most are."""
    peak_time: int | None
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    reductions: Reductions | None
    certificate: Certificate | None
    choices: tuple[Chosen, ...] = ()
    """What the strategies mean, where the cost model made the problem; likewise the plans beside them."""
    plans: tuple[Plan, ...] = ()
    trace: Trace = ()
    seconds: float = 0.0
    seed: int = 0
    versions: dict[str, str] = field(default_factory=dict)


def described(question: ShardingQuestion) -> dict[str, Any]:
    """What a result says of its question: enough to ask it again where the file is."""
    problem = question.problem
    return {
        "name": problem.name,
        "objective": "cost",
        "unit": "" if question.network is None else "ns",
        "nodes": len(problem),
        "edges": len(problem.firsts),
        "strategies": len(problem.costs),
        "limit": problem.limit,
        **question.document,
    }


def from_json(data: object) -> ShardingResult:
    """The result in plain data; a ValueError in words if it is none."""
    found: ShardingResult = record(ShardingResult, data, "")
    return found
