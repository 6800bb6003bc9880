"""Each reduction alone and all together, against every choice of tiny problems."""

from dataclasses import replace

import numpy as np
import pytest

from crossopt.formulation.sharding.core import Core, NothingAllowedError, cost_of, unreduced
from crossopt.formulation.sharding.reductions import STEPS, ContradictionError, Reduction, contract, eliminate, reduced, size_of
from crossopt.instances.sharding.problem import FORBIDDEN
from crossopt.solvers.sharding.judge import weigh
from tests.instances.sharding.tiny import choices_of, least, peak, tiny

FEW, ALL = range(0, 60, 2), range(60)


def _best(core: Core) -> int | None:
    return min((cost for _, cost in choices_of(core)), default=None)


@pytest.mark.parametrize("seeds", [FEW, pytest.param(ALL, marks=pytest.mark.slow)], ids=["few", "all"])
@pytest.mark.parametrize("name", STEPS)
def test_each_keeps_the_optimum_and_its_way_back_costs_the_same(name: str, seeds: range) -> None:
    changed = 0
    for seed in seeds:
        core = unreduced(tiny(seed))
        try:
            done = STEPS[name](core)
        except NothingAllowedError:
            assert _best(replace(core, limit=None)) is None
            continue
        changed += size_of(done.core) != size_of(core)
        assert _best(done.core) == _best(core)
        for chosen, cost in choices_of(done.core):
            back = done.back(chosen)
            assert cost_of(core, back) == cost
            assert core.limit is None or peak(core, back) <= core.limit
    assert changed > 5


def test_all_together_keep_the_optimum_to_the_judge() -> None:
    feasible = gone = 0
    for seed in range(120):
        problem = tiny(seed, nodes=6)
        best = least(problem) if seed < 40 else _best(unreduced(problem))
        try:
            done = reduced(unreduced(problem))
        except ContradictionError as error:
            assert best is None
            assert 0 <= error.node < 6
            gone += 1
            continue
        costs = []
        for chosen, cost in choices_of(done.core):
            verdict = weigh(problem, done.back(chosen).tolist())
            assert verdict.violations == ()
            assert verdict.cost == cost
            costs.append(cost)
        assert min(costs, default=None) == best
        assert size_of(reduced(done.core).core) == done.after
        feasible += best is not None
    assert feasible > 30
    assert gone > 3


def _hand(costs: list[list[int]], edges: dict[tuple[int, int], list[list[int]]], members: list[tuple[int, int, int, list[int]]]) -> Core:
    """A core by hand; members are node, start, end and bytes."""
    lengths = [len(row) for row in costs]
    matrices = [np.array(matrix).ravel() for matrix in edges.values()]
    return Core(
        constant=0,
        offsets=np.cumsum([0, *lengths]),
        costs=np.concatenate([np.array(row) for row in costs]),
        firsts=np.array([first for first, _ in edges], np.int64),
        seconds=np.array([second for _, second in edges], np.int64),
        entry_offsets=np.cumsum([0, *(matrix.size for matrix in matrices)]),
        entries=np.concatenate([np.zeros(0, np.int64), *matrices]),
        member_nodes=np.array([member[0] for member in members], np.int64),
        member_starts=np.array([member[1] for member in members], np.int64),
        member_ends=np.array([member[2] for member in members], np.int64),
        usage_offsets=np.cumsum([0, *(len(member[3]) for member in members)]),
        usages=np.concatenate([np.zeros(0, np.int64), *(np.array(member[3]) for member in members)]),
        limit=10,
    )


X = FORBIDDEN


def test_a_chain_of_determined_nodes_becomes_one_with_all_its_members() -> None:
    follow = [[0, X], [X, 5]]
    core = _hand([[1, 2], [3, 4], [5, 6]], {(0, 1): follow, (1, 2): follow}, [(0, 0, 4, [6, 1]), (1, 1, 3, [5, 2]), (2, 5, 6, [9, 9])])
    done = contract(core)
    assert (len(done.core), len(done.core.firsts), len(done.core.member_nodes)) == (1, 0, 3)
    assert done.core.costs.tolist() == [9, 22]
    assert [done.back(np.array([s])).tolist() for s in (0, 1)] == [[0, 0, 0], [1, 1, 1]]
    assert [peak(done.core, np.array([s])) for s in (0, 1)] == [11, 9]


def test_a_node_between_two_goes_where_no_memory_holds_it() -> None:
    edges = {(0, 1): [[0, 9], [9, 0]], (1, 2): [[0, 7], [7, 0]]}
    free = _hand([[0, 0], [1, 1], [0, 0]], edges, [(0, 0, 1, [1, 11]), (2, 0, 1, [11, 1])])
    done = eliminate(free)
    assert [len(done.core), len(done.core.firsts)] == [2, 1]
    assert done.core.entries.tolist() == [1, 8, 8, 1]
    held = _hand([[0, 0], [1, 1], [0, 0]], edges, [(1, 0, 1, [1, 11])])
    assert eliminate(held).nodes.tolist() == [1]
    assert eliminate(replace(held, member_nodes=held.member_nodes * 0)).nodes.tolist() == [0]


def test_memory_speaks_against_domination() -> None:
    cheap = _hand([[1, 2]], {}, [(0, 0, 2, [9, 3])])
    assert len(STEPS["needless strategies"](cheap).core.costs) == 2
    assert len(STEPS["needless strategies"](replace(cheap, usages=np.array([3, 9]))).core.costs) == 1


def test_a_contradiction_names_a_node_of_the_problem() -> None:
    core = _hand([[0], [1, 2], [0, 0], [0, 0]], {(1, 2): [[0, 0], [0, 0]], (2, 3): [[X, X], [X, X]]}, [])
    with pytest.raises(ContradictionError, match=r"every strategy of node [23] is forbidden"):
        reduced(core)


def test_the_effects_add_up_to_the_difference() -> None:
    done: Reduction = reduced(unreduced(tiny(3, nodes=6)))
    assert sum((step.taken for step in done.steps), done.after) == done.before
