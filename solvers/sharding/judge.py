"""An answer about strategies, and its judge: costs and memory from the arrays of the file and nothing of what found it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.instances.sharding.network import BELONGINGS, Network
from crossopt.instances.sharding.problem import FORBIDDEN, Problem
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.solvers.answer import Result, Verdict

# An answer about strategies, who may prove a bound of it, and what floating-point numbers are believed.

SOLVERS, ASKING_NOBODY = ("milp", "cpsat", "weak"), ("exhaustive", "greedy", "local", "search")
ENGINES = ("auto", *SOLVERS, *ASKING_NOBODY)
"""That a result may name; `auto` where nothing was left to choose an engine for."""
BY_DUAL = "prices of memory and messages along edges, counted in whole numbers"
BY_TREE = f"{BY_DUAL}, branch by branch"
BY_EVERY = "looking at every choice that the reductions leave"
BY_LEAST, BY_PAIRS = "counting the least of each node", "counting the least of what forbidden pairs leave"
BY_ARCS = "arc consistency"
EXACT_PROOFS = (BY_DUAL, BY_TREE, BY_EVERY, BY_LEAST, BY_PAIRS, BY_ARCS)
"""Proofs that anybody can count again; any other one is a solver's word."""
IN_FLOATS = "highs "
"""How the name of a solver begins that counts in floating point: its bounds are `lowered`, and it proves nothing to the unit."""
UNKEPT = "the proof is too large to be saved with the result, so that `check` cannot repeat it"
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


# What a choice of strategies costs and takes, from the arrays of the file and nothing of what found it, and what it means.


@dataclass(frozen=True, slots=True)
class Weighed:
    """The cost of a choice, the memory at its peak, and the rules that it breaks."""

    cost: int
    """Cost of the allowed choices; forbidden costs are among the violations."""
    peak: int
    peak_time: int
    violations: tuple[str, ...]


def judge(question: ShardingQuestion, answer: Strategies) -> Verdict[Meaning]:
    """The verdict on one strategy for each node; a ValueError where it is no such thing."""
    found = weigh(question.problem, answer.strategies)
    return Verdict(found.cost, found.violations, Meaning(found.peak, found.peak_time, chosen_of(question.network, answer.strategies)))


def weigh(problem: Problem, strategies: Sequence[int]) -> Weighed:
    """Cost, memory and violations of one strategy for each node; a ValueError where it is no such choice."""
    try:
        chosen = np.asarray(strategies, np.int64)
    except OverflowError as error:
        raise ValueError("a strategy of that number is none of any node") from error
    if chosen.shape != (len(problem),):
        raise ValueError(f"{len(strategies)} strategies are given for {len(problem)} nodes")
    wrong = np.flatnonzero((chosen < 0) | (chosen >= problem.counts))
    if len(wrong):
        raise ValueError(f"node {wrong[0]} has no strategy {chosen[wrong[0]]}")
    places = problem.offsets[:-1] + chosen
    costs = problem.costs[places]
    widths = problem.counts[problem.seconds]
    pairs = problem.entries[problem.entry_offsets[:-1] + chosen[problem.firsts] * widths + chosen[problem.seconds]]
    peak, time = peak_of(problem, problem.usages[places])
    violations = [f"node {node}: strategy {chosen[node]} is forbidden" for node in np.flatnonzero(costs >= FORBIDDEN)[:10]]
    violations += [
        f"edge {edge} of nodes {problem.firsts[edge]} and {problem.seconds[edge]}: their strategies are forbidden together"
        for edge in np.flatnonzero(pairs >= FORBIDDEN)[:10]
    ]
    if problem.limit is not None and peak > problem.limit:
        violations.append(f"at time {time} {peak:,} bytes are in use, the limit is {problem.limit:,}")
    return Weighed(int(costs[costs < FORBIDDEN].sum() + pairs[pairs < FORBIDDEN].sum()), peak, time, tuple(violations))


def peak_of(problem: Problem, usages: Ints) -> tuple[int, int]:
    """The most memory in use and when; usage changes at starts and ends only."""
    alive = problem.starts < problem.ends
    times = np.concatenate([problem.starts[alive], problem.ends[alive]])
    if not len(times):
        return 0, 0
    changes = np.concatenate([usages[alive], -usages[alive]])
    moments, which = np.unique(times, return_inverse=True)
    in_use = np.zeros(len(moments), np.int64)
    np.add.at(in_use, which, changes)
    in_use = np.cumsum(in_use)
    most = int(in_use.argmax())
    return int(in_use[most]), int(moments[most])


def chosen_of(network: Network | None, strategies: Sequence[int]) -> tuple[Chosen, ...]:
    """The choice in words, operators of all layers together; none where the numbers have no meaning."""
    if network is None:
        return ()
    rows = zip(network.names, network.options, strategies, strict=True)
    counts = Counter((name.rpartition(": ")[2], options[strategy]) for name, options, strategy in rows)
    return tuple(Chosen(name, _text(name, way), count) for (name, way), count in counts.items())


def _text(name: str, way: tuple[str, ...]) -> str:
    """Parts of weights are no features: they are split whichever way the operator needs."""
    belongs = name.rpartition(", ")[2] in BELONGINGS
    return " · ".join("split" if belongs and part == "feature" else part for part in way)
