"""Published planners: their parts against other ways to compute them, and their schedules against the judge."""

import importlib
from functools import cache
from itertools import product
from math import inf
from random import Random
from typing import Any

import numpy as np
import pytest

from crossopt.instances.errors import RefusedError
from crossopt.instances.memory.graph import MemoryGraph
from crossopt.instances.question import read_given
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.backends.arrays import Session, SolveMonitor
from crossopt.solvers.family import solve
from crossopt.solvers.memory import planners
from crossopt.solvers.memory.family import FAMILY
from crossopt.solvers.memory.judge import Schedule, extra_units, judge, least_extra, stages_of
from crossopt.solvers.memory.planners import (
    Unit,
    attention_of,
    blocks_of,
    by_rounding,
    checkmate_relaxation,
    cuts_of,
    evaluations,
    greedy_knapsack,
    knapsack_of,
    revolve,
    rounded_schedule,
    sac_milp,
    schedules_of_planners,
    split_at,
)
from crossopt.solvers.memory.rules import longest_gaps, peak_of
from tests.reports.test_checkpointing import network
from tests.solvers.memory.drawn import draw_budget, draw_graph, question_of


@cache
def fewest(length: int, slots: int) -> float:
    """Forward steps of a chain by a look at every split."""
    if length == 1:
        return 0
    if slots == 0:
        return length * (length - 1) // 2
    return min(split + fewest(length - split, slots - 1) + fewest(split, slots) for split in range(1, length))


def by_splits(length: int, slots: int) -> int:
    if length == 1:
        return 0
    if slots == 0:
        return length * (length - 1) // 2
    split = split_at(length, slots)
    return split + by_splits(length - split, slots - 1) + by_splits(split, slots)


def test_splits_of_a_chain_take_the_fewest_steps() -> None:
    for slots in range(1, 7):
        for length in range(2, 45):
            assert by_splits(length, slots) == fewest(length, slots) == evaluations(length, slots), (length, slots)


def chain(length: int) -> MemoryGraph:
    """Each backward node reads the gradient, and the input of its layer."""
    inputs = [(), *((node - 1,) for node in range(1, length))]
    inputs += [tuple(sorted({length + place - 1, length - 2 - place} - {-1})) for place in range(length)]
    count = 2 * length
    return MemoryGraph(
        tuple(f"n{node}" for node in range(count)), (1,) * count, (1,) * count, (0,) * count,
        (False,) * length + (True,) * length, tuple(inputs),
    )  # fmt: skip


@pytest.mark.parametrize(("length", "slots"), [(8, 2), (12, 3), (30, 4), (30, 7), (55, 9)])
def test_revolve_keeps_its_number_of_checkpoints(length: int, slots: int) -> None:
    """Beside them are the gradient that is read, the one that is computed, and the output that runs or is read."""
    graph, order = chain(length), revolve(chain(length), slots)
    assert peak_of(graph, order) <= slots + 4 < graph.plain_peak
    assert extra_units(graph, order) <= evaluations(length, slots)
    stages_of(order)


@pytest.mark.parametrize("seed", range(6))
def test_planners_give_schedules_that_compute_what_is_read(seed: int) -> None:
    graph = network(seed, 7)
    budget = max(graph.floors) + (graph.plain_peak - max(graph.floors)) // 2
    found = schedules_of_planners(graph, budget, 9, inf)
    assert {"Griewank", "greedy knapsack", "knapsack", "blocks"} == set(found)
    question = question_of(graph, budget, repetitions=9)
    best = solve(FAMILY, question, "auto", Limits(10.0), unwatched)
    for name, order in found.items():
        verdict = judge(question, Schedule(order))
        assert bool(verdict.violations) == (peak_of(graph, order) > budget), name
        assert best.bound is None or verdict.violations or verdict.value >= best.bound


def test_cuts_are_outputs_that_alone_lead_on() -> None:
    for seed in range(20):
        graph = network(seed, 8)
        forward = range(8)
        alone = [node for node in forward if all(source >= node for later in forward if later > node for source in graph.inputs[later])]
        assert list(cuts_of(graph)) == alone
        for most in (1, 3, 8):
            blocks = blocks_of(graph, most)
            assert sorted(node for block in blocks for node in block) == list(forward)
            assert {block[-1] for block in blocks} <= set(alone)


@pytest.mark.parametrize("seed", range(6))
def test_the_knapsack_is_the_best_of_all_sets_where_shares_are_whole(seed: int) -> None:
    random = Random(seed)
    weights = [random.randint(1, 1500) for _ in range(10)]
    shares, times = [weight / 10_000 for weight in weights], [float(random.randint(0, 30)) for _ in weights]
    for most in (0.0, 0.1, 0.4, 1.0):
        sets = [chosen for chosen in product((0, 1), repeat=10) if sum(np.multiply(weights, chosen)) <= round(most * 10_000)]
        kept = knapsack_of(shares, times).kept(most)
        assert sum(weights[item] for item in kept) <= round(most * 10_000)
        assert sum(times[item] for item in kept) == max(float(np.dot(times, chosen)) for chosen in sets)
        greedy = greedy_knapsack(shares, times, most)
        assert sum(times[item] for item in greedy) <= sum(times[item] for item in kept)


def test_rounded_shares_may_be_over_the_capacity_and_schedules_never_are() -> None:
    """As reported about PyTorch (pytorch/pytorch issue 197871)."""
    shares = [0.100049] * 9 + [0.099559]
    kept = knapsack_of(shares, [1.0] * 10, 1.0).kept(0.9)
    assert sum(shares[item] for item in kept) > 0.9
    for seed in range(3):
        graph = network(seed, 6)
        budget = (max(graph.floors) + graph.plain_peak) // 2
        result = solve(FAMILY, question_of(graph, budget), "auto", Limits(10.0), unwatched)
        assert all(one.value is None or peak_of(graph, one.answer.order) <= budget for one in result.baselines if one.answer)


def test_the_milp_drops_the_cheapest_share_that_makes_room() -> None:
    line = ((1.0, 0.0),)
    units = [Unit(10.0, 10.0, 1.0, 10.0, 5.0, line), Unit(10.0, 10.0, 1.0, 20.0, 3.0, line), Unit(10.0, 10.0, 1.0, 30.0, 9.0, line)]
    assert sac_milp(units, 31.0, gap=0.0) == pytest.approx([0.0, 0.0, 0.0])
    assert sac_milp(units, 25.0, gap=0.0) == pytest.approx([0.0, 0.6, 0.0])  # of the second, which is cheapest for a byte
    assert sac_milp(units, 15.0, gap=0.0) == pytest.approx([0.6, 1.0, 0.0])
    assert sac_milp(units, 5.0) is None
    wide = [Unit(10.0, 20.0, 1.0, 10.0, 5.0, line), Unit(10.0, 10.0, 1.0, 20.0, 3.0, line)]
    assert sac_milp(wide, 20.0, gap=0.0) == pytest.approx([0.55, 0.0])  # half of it only makes up for what is kept inside


def torch_module(name: str) -> Any:  # noqa: ANN401
    pytest.importorskip("torch")
    return importlib.import_module(name)


@pytest.mark.parametrize("seed", range(5))
def test_knapsacks_are_those_of_an_installed_pytorch(seed: int) -> None:
    real, random = torch_module("torch._functorch._activation_checkpointing.knapsack"), Random(seed)
    sizes = [random.randint(1, 1000) for _ in range(25)]
    shares, times = [size / sum(sizes) for size in sizes], [float(random.randint(1, 50)) for _ in sizes]
    for most in (0.05, 0.3, 0.5, 0.77, 1.0):
        assert greedy_knapsack(shares, times, most) == real.greedy_knapsack(shares, times, most)[1]
        assert knapsack_of(shares, times).kept(most) == real.dp_knapsack(shares, times, most)[1]


@pytest.mark.parametrize("seed", range(6))
def test_the_relaxation_of_checkmate_is_below_the_optimum(seed: int) -> None:
    random = Random(f"rounding {seed}")
    graph = draw_graph(random, random.randint(4, 8))
    budget = max(draw_budget(random, graph), *graph.floors)
    best, order = least_extra(graph, budget, 99, 10**6)
    relaxation = checkmate_relaxation(graph, budget)
    solved = Session(relaxation.program(), 1, 0).relaxed(20.0, SolveMonitor(lambda: False))
    if best is not None:
        assert solved.ending == "solved"
        assert solved.value * (max(graph.times) or 1) <= best + 1e-6 * (best + 1)
        assert extra_units(graph, rounded_schedule(graph, _carried(graph, order))) == best
    for rounded in by_rounding(graph, budget, inf):
        judge(question_of(graph, graph.plain_peak, 99), Schedule(rounded))  # computes what is read


def _carried(graph: MemoryGraph, order: tuple[int, ...]) -> set[tuple[int, int]]:
    """Which outputs are in memory from one stage to the next."""
    stages, found, latest = stages_of(order), set[tuple[int, int]](), dict[int, int]()
    for node, stage in zip(order, stages, strict=True):
        for source in graph.inputs[node]:
            found |= {(later, source) for later in range(latest[source] + 1, stage + 1)}
        latest[node] = stage
    return found


def test_engines_of_planners_answer_or_say_what_they_take() -> None:
    graph = network(3, 12)
    question = question_of(graph, max(graph.floors) + (graph.plain_peak - max(graph.floors)) * 3 // 4, repetitions=9)
    best = solve(FAMILY, question, "auto", Limits(10.0), unwatched)
    for engine in ("sac-milp", "rounding"):
        found = solve(FAMILY, question, engine, Limits(10.0), unwatched)
        assert found.bound is None
        assert not found.proved
        assert found.value is None or (best.value is not None and found.value >= best.value)
    long = question_of(chain(50), 40)
    with pytest.raises(RefusedError, match=r"up to 80 nodes"):
        planners.rounding(long, Limits(1.0), unwatched)
    text = "kind: memory\nobjective: peak\nnodes:\n  a: {time: 1, bytes: 1 B}\n"
    with pytest.raises(RefusedError, match="a budget and a batch that are given"):
        planners.sac(read_given(text, "memory", ()), Limits(1.0), unwatched)


def test_attention_is_found_by_the_names_of_its_nodes() -> None:
    graph = network(0, 4)
    names = ("scores", "softmax", "mixed", "out", *graph.names[4:])
    plain = MemoryGraph(
        names, graph.times, graph.sizes, graph.workspaces, graph.backward, ((), (0,), (1,), (2,), (1, 3), (0, 4), (5,), (6,))
    )
    assert attention_of(plain, longest_gaps(plain)) == {0, 1}
