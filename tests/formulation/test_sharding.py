"""Sharding formulations: reductions, messages, fixing, trees and dual bounds against brute force."""

from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import pairwise
from time import monotonic

import numpy as np
import pytest

from crossopt.crossflow.arrays import Ints
from crossopt.formulation.certificate import proved_bound
from crossopt.formulation.sharding.core import Core, NothingAllowedError, cost_of, in_use, timeline_of, unreduced
from crossopt.formulation.sharding.dual import Dual, bound_of, fixed, message_offsets, no_dual
from crossopt.formulation.sharding.integer import choice_of, leaf_of_dual
from crossopt.formulation.sharding.reductions import STEPS, ContradictionError, Reduction, contract, eliminate, reduced, size_of
from crossopt.formulation.sharding.tree import Branch, branched, closes
from crossopt.instances.errors import SolverError
from crossopt.instances.sharding.problem import FORBIDDEN
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.sharding import integer as closing
from crossopt.solvers.sharding.integer import close, milp
from crossopt.solvers.sharding.judge import weigh
from crossopt.solvers.sharding.messages import ascent_of, climb, memory_costs, proof_of
from crossopt.solvers.sharding.run import EnoughError, Run
from tests.every import every
from tests.extent import some
from tests.instances.sharding.cores import cores
from tests.instances.sharding.tiny import choices_of, least, peak, tiny

# Bounds that whole numbers prove, against every choice of tiny problems.


def _random_dual(core: Core, seed: int) -> Dual:
    random = np.random.default_rng(seed)
    first, second = (int(offsets[-1]) for offsets in message_offsets(core))
    times = np.unique(random.integers(0, 11, 4))
    prices = random.integers(0, 5, len(times)) * (core.limit is not None)
    return Dual(int(random.integers(1, 9)), times, prices, random.integers(-30, 30, first), random.integers(-30, 30, second))


@every("seed", range(60))
def test_any_prices_and_messages_bound_every_choice(seed: int) -> None:
    problem = tiny(seed)
    core, best = unreduced(problem), least(problem)
    bounds = [bound_of(core, _random_dual(core, 7 * seed + part)) for part in range(5)]
    assert best is None or max(bounds) <= best


@every("seed", some(range(60), 20))
def test_a_dual_of_a_reduced_core_is_a_leaf_about_its_integer_model(seed: int) -> None:
    try:
        core = reduced(unreduced(tiny(seed, nodes=6))).core
    except ContradictionError:
        return
    choice, random = choice_of(core), np.random.default_rng(seed)
    times = np.array(choice.times, np.int64)
    dual = replace(_random_dual(core, seed), times=times, prices=random.integers(0, 5, len(times)))
    assert proved_bound(choice.model, leaf_of_dual(core, choice, dual)) == bound_of(core, dual)


def test_the_bound_is_that_of_the_formula_for_some() -> None:
    """Choice by choice the formula's sum, without any minimum, is the cost and what the memory in use leaves of the limit."""
    seen = 0
    for seed in range(80):
        core = unreduced(tiny(seed, nodes=2, most=3))
        dual = _random_dual(core, seed)
        for chosen, cost in choices_of(core):
            alone = _only(core, chosen)
            taken = sum(
                price * sum(use for start, end, use in _lives(core, chosen) if start <= time < end)
                for time, price in zip(dual.times.tolist(), dual.prices.tolist(), strict=True)
            )
            paid = (core.limit or 0) * int(dual.prices.sum())
            assert bound_of(alone, dual) == -((-cost * dual.scale - taken + paid) // dual.scale)
            seen += 1
    assert seen > 100


def _only(core: Core, chosen: Ints) -> Core:
    """The core where everything but one choice is forbidden."""
    costs = np.full_like(core.costs, FORBIDDEN)
    places = core.offsets[:-1] + chosen
    costs[places] = core.costs[places]
    entries = np.full_like(core.entries, FORBIDDEN)
    pairs = core.entry_offsets[:-1] + chosen[core.firsts] * core.counts[core.seconds] + chosen[core.seconds]
    entries[pairs] = core.entries[pairs]
    return replace(core, costs=costs, entries=entries)


def _lives(core: Core, chosen: Ints) -> list[tuple[int, int, int]]:
    taken = core.usages[core.usage_offsets[:-1] + chosen[core.member_nodes]]
    return list(zip(core.member_starts.tolist(), core.member_ends.tolist(), taken.tolist(), strict=True))


def test_a_node_that_allows_nothing_is_told() -> None:
    core = unreduced(tiny(0))
    assert bound_of(replace(core, costs=np.full_like(core.costs, FORBIDDEN)), no_dual(core)) == FORBIDDEN


def test_messages_that_add_up_to_what_is_forbidden_are_refused() -> None:
    """Messages of 127 are lost in floating point beside one of 2^61 - 256."""
    core = unreduced(next(problem for seed in range(200) if (problem := tiny(seed)).firsts.tolist().count(0) > 2))
    dual, (starts, _) = no_dual(core), message_offsets(core)
    own = [edge for edge in range(len(core.firsts)) if core.firsts[edge] == 0]
    for edge, figure in zip(own, (FORBIDDEN - 256, *(127 for _ in own[1:])), strict=True):
        dual.to_firsts[starts[edge] : starts[edge + 1]] = figure
    with pytest.raises(ValueError, match="smaller scale"):
        bound_of(core, dual)


def test_what_is_no_dual_is_refused() -> None:
    core = unreduced(next(problem for seed in range(40) if len((problem := tiny(seed)).firsts) > 3 and problem.limit is not None))
    none = no_dual(core)
    one = np.ones(1, np.int64)
    broken = [
        (replace(none, scale=0), "a scale of 0"),
        (replace(none, times=one), "each price needs its time"),
        (replace(none, times=one, prices=-one), "below 0"),
        (replace(none, to_firsts=one[:0]), "none of this core"),
        (replace(none, scale=1 << 60), "smaller scale"),
        (replace(none, times=one, prices=one << 62), "smaller scale"),
    ]
    for dual, said in broken:
        with pytest.raises(ValueError, match=said):
            bound_of(core, dual)
    with pytest.raises(ValueError, match="no limit"):
        bound_of(replace(core, limit=None), replace(none, times=one, prices=one))


# Reduced costs keep every choice that is better than the value, and bounds prove a value where none is left.


@pytest.mark.parametrize("below_best", [0, 1, 5])
def test_every_better_choice_stays(below_best: int) -> None:
    """Whatever the dual; its prices and messages are drawn."""
    dropped = kept = 0
    for seed in range(80):
        core, random = unreduced(tiny(seed)), np.random.default_rng(seed)
        choices = choices_of(core)
        if not choices:
            continue
        first, second = (int(offsets[-1]) for offsets in message_offsets(core))
        times = np.arange(0, 10, 3)
        prices = random.integers(0, 2, 4) * (core.limit is not None)
        dual = Dual(int(random.integers(1, 4)), times, prices, random.integers(-3, 3, first), random.integers(-3, 3, second))
        below = sorted(cost for _, cost in choices)[len(choices) // 3] + below_best
        better = sorted(cost for _, cost in choices if cost < below)
        try:
            done = fixed(core, dual, below)
        except NothingAllowedError:
            assert not better
            continue
        left = [(done.back(chosen), cost) for chosen, cost in choices_of(done.core)]
        assert all(cost_of(core, chosen) == cost for chosen, cost in left)
        assert sorted(cost for _, cost in left if cost < below) == better
        dropped += len(core.costs) - len(done.core.costs) + int((done.core.entries >= FORBIDDEN).sum())
        kept += len(better)
    assert dropped > 100
    assert kept > 100


def test_what_is_as_dear_as_the_value_goes() -> None:
    core = next(core for seed in range(40) if choices_of(core := replace(unreduced(tiny(seed)), limit=None)))
    best = min(cost for _, cost in choices_of(core))
    first, second = (int(offsets[-1]) for offsets in message_offsets(core))
    dual = Dual(1, np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(first, np.int64), np.zeros(second, np.int64))
    assert bound_of(core, dual) <= best
    with pytest.raises(NothingAllowedError):
        fixed(core, dual, bound_of(core, dual))


# Rows of memory, messages and multipliers, against every choice of tiny problems.


@every("core", cores)
def test_rows_of_the_timeline_tell_the_peak(core: Core) -> None:
    random = np.random.default_rng(7)
    timeline = timeline_of(core)
    for _ in range(5):
        chosen = random.integers(0, core.counts)
        used = in_use(core, timeline, chosen)
        assert used.max(initial=0) == (peak(core, chosen) if core.limit is not None else 0)
        multipliers = random.random(len(timeline.times))
        paid = memory_costs(core, timeline, multipliers)[core.offsets[:-1] + chosen].sum()
        assert paid * max(core.limit or 0, 1) == pytest.approx(float(used @ multipliers))


@every("core", cores)
def test_messages_never_pass_the_optimum(core: Core) -> None:
    best = min((cost for _, cost in choices_of(core)), default=None)
    ascent = ascent_of(core)
    bounds: list[float] = []

    def going(bound: float) -> bool:
        bounds.append(bound)
        return len(bounds) < 60

    climb(ascent, going)
    dual, bound = proof_of(ascent, partial(bound_of, core))
    assert bound == bound_of(core, dual)
    assert best is None or bound <= best
    assert bound >= ascent.best - 1e-3 * max(abs(ascent.best), 1.0)
    if core.limit is None:
        assert all(later >= sooner - 1e-6 for sooner, later in pairwise(bounds))


@every("core", lambda: [core for core in cores() if core.limit])
def test_directions_that_cancel_lead_nowhere_far(core: Core) -> None:
    """The step stays within a few times what one along the last excess of memory would be."""
    ascent = ascent_of(core)
    over = np.zeros(len(ascent.multipliers))

    def cancelling(bound: float) -> bool:
        over[:] = in_use(core, ascent.timeline, ascent.labels) / (core.limit or 1) - 1.0
        over[over < 0.0] = 0.0
        ascent.direction = -over / 9.0 * (1.0 - 1e-2)
        return True

    climb(ascent, cancelling, 1)
    far = float(np.linalg.norm(ascent.multipliers)) * float(np.linalg.norm(over))
    assert far <= 0.5 * ascent.stride * (abs(ascent.best) + 1.0)


def test_messages_on_trees_without_limit_reach_the_optimum() -> None:
    """There the relaxation is exact, whatever the costs."""
    seen = 0
    for core in cores():
        if core.limit is not None or not _forest(core):
            continue
        ascent = ascent_of(core)
        climb(ascent, lambda _: True, 30)
        assert proof_of(ascent, partial(bound_of, core))[1] == min(cost for _, cost in choices_of(core))
        seen += 1
    assert seen > 3


def _forest(core: Core) -> bool:
    roots = list(range(len(core)))

    def root(node: int) -> int:
        return node if roots[node] == node else root(roots[node])

    for first, second in zip(core.firsts.tolist(), core.seconds.tolist(), strict=True):
        if root(first) == root(second):
            return False
        roots[root(first)] = root(second)
    return True


# Each reduction alone and all together, against every choice of tiny problems.

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


# Proofs in whole numbers: they close at the optimum, never above it, and not with a step less.


def _solved(core: Core) -> Run:
    run = Run(core, Limits(), unwatched, monotonic())
    with suppress(EnoughError):
        milp(run)
    return run


def _closed(core: Core) -> Run:
    run = _solved(core)
    close(run)
    return run


def _proves(core: Core, value: int, steps: tuple[Dual | Branch, ...]) -> bool:
    try:
        return closes(core, value, iter(steps))
    except ValueError:  # with another value other strategies are left, and the next step is none of that core
        return False


def test_steps_close_at_the_optimum_and_not_above() -> None:
    branches = proofs = 0
    for seed in range(48):
        core = unreduced(tiny(seed, nodes=6))
        best = min((cost for _, cost in choices_of(core)), default=None)
        if best is None:
            continue
        run = _closed(core)
        assert run.cost == best
        if not run.steps:
            continue
        proofs += 1
        branches += sum(isinstance(step, Branch) for step in run.steps)
        assert closes(core, best, iter(run.steps))
        assert not _proves(core, best + 1, run.steps)
        assert not _proves(core, best, run.steps[:-1])
    assert proofs > 16
    assert branches > 2


@every("core", cores)
def test_duals_about_what_others_left_prove_together(core: Core) -> None:
    """Also when a better choice is found after the first of them fixed strategies; and what is left maps back at its cost."""
    choices = sorted(choices_of(core), key=lambda pair: pair[1])
    if not choices:
        return
    run = Run(core, Limits(), unwatched, monotonic())
    assert run.offer(choices[-1][0])
    run.bound_proved(no_dual(core))
    for turn in (1, 2):
        rest = run.narrowed()
        if rest is None:
            assert run.cost == run.bound == choices[0][1]
            assert closes(core, choices[0][1], iter(run.steps))
            return
        assert len(rest.duals) <= turn
        assert min((cost for _, cost in choices_of(rest.core)), default=run.cost) == choices[0][1]
        for chosen, cost in choices_of(rest.core):
            assert cost_of(core, rest.back(chosen)) == cost
        run.bound_proved(_climbed(rest.core), rest)
        assert run.dual_bound is not None
        assert run.dual_bound <= choices[0][1]
        run.offer(choices[len(choices) // (2 * turn)][0])
        assert closes(core, run.dual_bound, iter(run.duals))
        assert not _proves(core, choices[0][1] + 1, tuple(replace(dual, below=dual.below - 1) for dual in run.duals))


def _climbed(core: Core) -> Dual:
    """What a few rounds of messages prove."""
    ascent = ascent_of(core)
    climb(ascent, lambda _: True, 4)
    return proof_of(ascent, partial(bound_of, core))[0]


def _random_steps(core: Core, random: np.random.Generator) -> list[Dual | Branch]:
    """Duals of the core as it stands first, then whatever: nothing that they close may be false."""
    first, second = (int(offsets[-1]) for offsets in message_offsets(core))
    times = np.arange(0, 9, 2)
    prices = random.integers(0, 3, len(times)) * (core.limit is not None)
    dual = Dual(1, times, prices, random.integers(-2, 3, first), random.integers(-2, 3, second), below=int(random.integers(-9, 99)))
    return [dual, *(Branch(int(random.integers(0, 3)), random.integers(0, 4, 2)) for _ in range(30))]


@every("seed", some(range(40), 15))
def test_no_steps_close_above_the_optimum(seed: int) -> None:
    core, random = unreduced(tiny(seed)), np.random.default_rng(seed)
    best = min((cost for _, cost in choices_of(core)), default=None)
    if best is None:
        return
    for _ in range(10):
        with suppress(ValueError):
            assert not closes(core, best + 1, iter(_random_steps(core, random)))


def test_a_branch_parts_all_choices() -> None:
    for seed in range(20):
        core = unreduced(tiny(seed))
        node = int(core.counts.argmax())
        parts = [part for part in branched(core, Branch(node, np.array([0]))) if part is not None]
        costs = [cost for part in parts for _, cost in choices_of(part)]
        assert min(costs, default=None) == min((cost for _, cost in choices_of(core)), default=None)


def test_steps_of_another_core_are_refused() -> None:
    core = unreduced(tiny(2))
    with pytest.raises(ValueError, match="no node 99"):
        closes(core, 10**9, iter([Branch(99, np.array([0]))]))
    none = no_dual(core)
    with pytest.raises(ValueError, match="none of this core"):
        closes(core, 10**9, iter([replace(none, to_firsts=np.zeros(len(none.to_firsts) + 1, np.int64))]))


@pytest.mark.parametrize("failure", [SolverError, MemoryError, KeyboardInterrupt])
def test_a_failure_while_closing_leaves_the_answer_as_it_was(failure: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def fails(*_: object) -> None:
        nonlocal asked
        asked += 1
        raise failure

    for seed in range(10):
        run = _solved(unreduced(tiny(seed, nodes=6)))
        with monkeypatch.context() as patch:
            patch.setattr(closing, "relaxation", fails)
            close(run)
        assert run.steps == () or len(run.steps) == 1
    assert asked > 0


def test_a_proof_is_given_up_where_its_branches_would_be_too_deep(monkeypatch: pytest.MonkeyPatch) -> None:
    def depths_tried(deepest: int) -> int:
        monkeypatch.setattr(closing, "DEEPEST", deepest)
        return sum(bool(_closed(unreduced(tiny(seed, nodes=6))).steps) for seed in range(25))

    assert depths_tried(0) < depths_tried(200)
