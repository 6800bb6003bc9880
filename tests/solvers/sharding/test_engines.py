"""Engines of sharding against every choice of tiny problems, and on large public problems that are changed."""

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from itertools import count, product
from math import inf
from pathlib import Path
from time import monotonic
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from crossopt.crossflow.arrays import Ints
from crossopt.formulation.compiled import seed_of
from crossopt.formulation.sharding.core import Core, cost_of, in_use, unreduced
from crossopt.formulation.sharding.dual import Dual, bound_of, no_dual
from crossopt.formulation.sharding.integer import chosen_memory, cover_row, memory_rows, program_of
from crossopt.formulation.sharding.reductions import ContradictionError, reduced
from crossopt.formulation.sharding.tree import closes
from crossopt.instances.errors import RefusedError
from crossopt.instances.question import read
from crossopt.instances.sharding.problem import FORBIDDEN, Problem
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.instances.sharding.reading import read_problem
from crossopt.reports.cli import main
from crossopt.solvers import family
from crossopt.solvers.answer import Limits, Progress, Watch, unwatched
from crossopt.solvers.backends.arrays import Session, SolveMonitor
from crossopt.solvers.sharding import engines, exhaustive, integer, judge, messages, run, search
from crossopt.solvers.sharding import engines as searching
from crossopt.solvers.sharding import engines as warming
from crossopt.solvers.sharding.engines import ENGINES, MESSAGE, quick, simplest, warm_search, warmed
from crossopt.solvers.sharding.exhaustive import best_of_all, choices_in
from crossopt.solvers.sharding.integer import close, milp
from crossopt.solvers.sharding.judge import BY_EVERY, BY_TREE, EXACT_PROOFS, Answer, peak_of, weigh
from crossopt.solvers.sharding.messages import (
    Ascent,
    State,
    ascent_of,
    climb,
    cool,
    cooling_of,
    network_of,
    passed,
    proof_of,
    smoothed,
    state_of,
)
from crossopt.solvers.sharding.regions import (
    NODES,
    Layout,
    best_choice,
    changes_of,
    closed,
    difference,
    events_of,
    fits,
    gathered,
    layout_of,
    least_slack,
    moved,
    opened,
    region_of,
    standing_of,
)
from crossopt.solvers.sharding.run import EnoughError, Run
from crossopt.solvers.sharding.search import Clock, Prove, Report, searched
from tests.every import every
from tests.instances.sharding.cores import cores
from tests.instances.sharding.files import answered, checked, written
from tests.instances.sharding.tiny import choices_of, least, peak, tiny
from tests.paths import reference

# Every choice looked at: the same optimum as one by one, and the same words.


@pytest.mark.parametrize("at_once", [7, 1 << 22])
def test_the_best_of_all_is_the_best_one_by_one(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(exhaustive, "_AT_ONCE", at_once)
    none = 0
    for core in cores()[:40]:
        costs, best = [cost for _, cost in choices_of(core)], best_of_all(core)
        assert (None if best is None else best.cost) == min(costs, default=None)
        if best is not None:
            assert cost_of(core, best.chosen) == best.cost
            assert core.limit is None or peak(core, best.chosen) <= core.limit
        none += best is None
    assert none > 2


def test_what_reductions_leave_has_the_optimum_of_the_problem() -> None:
    looked_at = 0
    for seed in range(30):
        problem = tiny(seed, nodes=6)
        try:
            core = reduced(unreduced(problem)).core
        except ContradictionError:
            continue
        best = best_of_all(core)
        assert (None if best is None else best.cost) == least(problem)
        looked_at += choices_in(core) > 1
    assert looked_at > 10


def test_few_choices_need_no_solver_and_are_proved_anew(tmp_path: Path) -> None:
    proved = 0
    for seed in range(60):
        result = answered(read(written(tmp_path, seed)), "auto", Limits(), unwatched)
        assert result.engine in {"auto", "exhaustive"}
        report = checked(result, tmp_path)
        assert report.refused == ()
        assert not report.unverified
        proved += result.proved_by == BY_EVERY and result.value is not None
    assert proved > 2


def test_that_no_choice_fits_is_proved_anew_too(tmp_path: Path) -> None:
    """Two nodes of which one must take much: what each takes at least fits, and every strategy has an allowed partner."""
    nodes = {"intervals": [[0, 5], [0, 5]], "costs": [[1, 2], [1, 2]], "usages": [[1, 9], [1, 9]]}
    edges = {"nodes": [[0, 1]], "costs": [[10**18, 0, 0, 0]]}
    path = tmp_path / "problem.json"
    path.write_text(json.dumps({"problem": {"nodes": nodes, "edges": edges, "usage_limit": 8}}))
    result = answered(read(path), "auto", Limits(), unwatched)
    assert (result.status, result.proved_by) == ("INFEASIBLE", BY_EVERY)
    report = checked(result, tmp_path)
    assert report.refused == ()
    assert not report.unverified
    edited = replace(result, reasons=("it is too much",))
    assert checked(edited, tmp_path).refused == (
        "reasons: no choice takes allowed strategies and pairs only and keeps the limit of 8 bytes at every time",
    )


def test_a_choice_that_is_not_the_best_is_refused(tmp_path: Path) -> None:
    """Even where everything else in the result was edited to fit it."""
    refused = 0
    for seed in range(60):
        problem = tiny(seed)
        result = answered(read(written(tmp_path, seed)), "exhaustive", Limits(), unwatched)
        verdicts = {choice: weigh(problem, choice) for choice in product(*(range(count) for count in problem.counts))}
        worse = [choice for choice, verdict in verdicts.items() if not verdict.violations and verdict.cost > (result.value or 0)]
        if result.proved_by == BY_EVERY and worse:
            said = verdicts[worse[0]]
            edited = replace(
                result,
                answer=judge.Strategies(worse[0]),
                value=said.cost,
                bound=said.cost,
                details=judge.Meaning(said.peak, said.peak_time, ()),
                trace=(),
            )
            assert checked(edited, tmp_path).refused == (f"bound: a choice costs {result.value:,}, below {said.cost:,}",)
            refused += 1
    assert refused > 1


@pytest.mark.data
def test_many_choices_are_refused_in_words() -> None:
    question = read(reference("sharding/asplos-2025-iopddl-G.json.gz"))
    with pytest.raises(RefusedError, match="exhaustive is for 10,000 choices at most"):
        answered(question, "exhaustive", Limits(), unwatched)


def test_the_greatest_costs_are_counted_exactly() -> None:
    core = next(core for core in cores() if choices_in(core) > 4 and best_of_all(core) is not None)
    allowed = core.costs < FORBIDDEN
    costs = np.where(allowed, core.costs + (1 << 56) - 1, FORBIDDEN)
    dear, best = replace(core, costs=costs), best_of_all(core)
    found = best_of_all(dear)
    assert best is not None
    assert found is not None
    assert found.cost == best.cost + len(core) * ((1 << 56) - 1)


def test_results_name_the_engines_there_are() -> None:
    assert set(judge.ENGINES) == {"auto", *ENGINES}


# Dynamic programming over regions, against every choice of tiny problems.


def _value(layout: Layout, labels: Ints, prices: Ints) -> int:
    """With forbidden entries as the layout has them."""
    total = int((layout.costs + prices)[layout.offsets[:-1] + labels].sum())
    for node in range(len(labels)):
        for arc in range(layout.arcs.starts[node], layout.arcs.starts[node + 1]):
            other = layout.arcs.others[arc]
            if other < node:
                place = layout.arcs.bases[arc] + labels[node] * layout.arcs.steps[arc] + labels[other] * layout.arcs.strides[arc]
                total += int(layout.entries[place])
    return total


@every("seed", range(200))
def test_a_region_ends_at_its_best_choice_or_no_worse(seed: int) -> None:
    random = np.random.default_rng(seed)
    core = unreduced(tiny(seed, nodes=6, most=3))
    layout = layout_of(core)
    labels = random.integers(0, core.counts)
    standing = standing_of(core, layout, labels)
    prices = random.integers(0, 9, len(core.costs))
    region = region_of(layout.entries, len(core), int(core.counts.max()), 6)
    state = seed_of(seed)
    arcs = np.zeros(len(region.bases), np.int64)
    region.sizes[NODES] = gathered(layout, region, state, int(random.integers(6)), 4, 0)
    inside = region.nodes[: region.sizes[NODES]].copy()
    inner = opened(layout, standing, region, prices, 4, arcs)
    best_choice(region, state)
    found = labels.copy()
    found[inside] = region.labels[: len(inside)]
    assert difference(layout, standing, region, arcs, inner) == _value(layout, found, 0 * prices) - _value(layout, labels, 0 * prices)
    closed(region)
    assert np.all(region.marks == -1)
    choices = []
    for choice in product(*(range(size) for size in core.counts[inside])):
        tried = labels.copy()
        tried[inside] = choice
        choices.append(_value(layout, tried, prices))
    value = _value(layout, found, prices)
    assert value <= _value(layout, labels, prices)
    if inner < 6:  # four nodes with all six edges cannot be eliminated
        assert value == min(choices)


def test_a_move_fits_where_the_choice_that_it_leads_to_keeps_the_limit() -> None:
    """From a choice that keeps it, to any labels of some nodes."""
    fitting, breaking = 0, 0
    for seed in range(300):
        core, random = unreduced(tiny(seed, nodes=6, most=3)), np.random.default_rng(seed)
        known = choices_of(core)
        if core.limit is None or not known:
            continue
        labels, layout = known[seed % len(known)][0], layout_of(core)
        standing, events = standing_of(core, layout, labels), events_of(layout, 4)
        region = region_of(layout.entries, len(core), int(core.counts.max()), 6)
        count = region.sizes[NODES] = gathered(layout, region, seed_of(seed), seed % 6, 4, 0)
        found = labels.copy()
        found[region.nodes[:count]] = region.labels[:count] = random.integers(0, core.counts[region.nodes[:count]])
        changes_of(layout, standing, region, events)
        fit = bool(events.filled[0] == 0 or fits(standing, events))
        assert fit == (len(chosen_memory(core, found)[0]) == 0)
        fitting, breaking = fitting + fit, breaking + (not fit)
    assert min(fitting, breaking) > 10


# The integer model against every choice of tiny problems, and its parts by hand.


def _run(core: Core, seconds: float = float("inf")) -> Run:
    return Run(core, Limits(seconds), unwatched, monotonic())


def _solved(run: Run) -> None:
    with suppress(EnoughError):  # value and bound met
        milp(run)


@pytest.mark.parametrize("reduce_first", [False, True])
def test_value_and_bound_are_the_optimum(reduce_first: bool) -> None:
    infeasible = 0
    for seed in range(40):
        problem = tiny(seed)
        best, core, back = least(problem), unreduced(problem), np.array
        if reduce_first:
            try:
                done = reduced(core)
            except ContradictionError:
                assert best is None
                continue
            core, back = done.core, done.back
        run = _run(core)
        run.bound_proved(no_dual(core))
        _solved(run)
        assert run.cost == best
        true = FORBIDDEN if best is None else best
        if run.bound != true:  # the report of HiGHS is no proof, but a reason to look for one
            assert run.said_by.startswith("highs ")
            close(run)
        assert run.bound == true
        assert run.proved_by in EXACT_PROOFS
        infeasible += best is None
        if best is not None:
            assert weigh(problem, back(run.chosen).tolist()).cost == best
            assert run.dual is not None
            assert run.dual_bound == bound_of(core, run.dual) <= best
    assert infeasible or reduce_first


def test_a_known_value_leaves_only_what_is_better() -> None:
    """Started from the worst choice as well as from the best one."""
    for seed in range(40):
        core = unreduced(tiny(seed, nodes=4))
        choices = sorted(choices_of(core), key=lambda pair: pair[1])
        for chosen, _ in choices[:1] + choices[-1:]:
            run = _run(core)
            assert run.offer(chosen)
            _solved(run)
            if run.bound != run.cost:
                close(run)
            assert run.cost == run.bound == choices[0][1]


def test_a_proof_that_meets_something_better_begins_anew_below_it() -> None:
    """As where a solver calls the best what is a millionth too dear: the proof ends with the optimum, from the worst choice too."""
    better = 0
    for seed in range(40):
        core = unreduced(tiny(seed, nodes=5))
        choices = sorted(choices_of(core), key=lambda pair: pair[1])
        if not choices:
            continue
        run = _run(core)
        run.bound_proved(no_dual(core))
        assert run.offer(choices[-1][0])
        run.best_said("a solver")
        close(run)
        assert (run.cost, run.bound, run.proved_by) == (choices[0][1], choices[0][1], BY_TREE)
        assert closes(core, choices[0][1], iter(run.steps))
        better += bool(run.notes)
    assert better > 10


@pytest.mark.parametrize(("bound", "told"), [(2.5, 12), (2.0, 12), (-0.25, 9), (float("inf"), None)])
def test_a_bound_of_the_solver_is_rounded_down(monkeypatch: pytest.MonkeyPatch, bound: float, told: int | None) -> None:
    monkeypatch.setattr(integer, "_not_believed", lambda model: 0)
    given = list[int]()
    model: Any = SimpleNamespace(unit=1.0, core=SimpleNamespace(constant=10), session=SimpleNamespace(name="highs"))
    run: Any = SimpleNamespace(bound_in_floats=lambda value, by: given.append(value))
    integer._tell(model, run, bound)
    assert given == ([] if told is None else [told])


def test_rows_of_memory_say_what_the_limit_says() -> None:
    """Each choice keeps the row of a time where it keeps the limit then; what a cover rules out breaks the limit, itself included."""
    broken = 0
    for seed in range(60):
        core = unreduced(tiny(seed))
        if core.limit is None or not len(core.member_nodes):
            continue
        random = np.random.default_rng(seed)
        for _ in range(20):
            chosen = random.integers(0, core.counts)
            other = random.integers(0, core.counts)
            over, by = chosen_memory(core, chosen)
            times = np.unique(core.member_starts)
            rows = memory_rows(core, times)
            taken = np.zeros(len(core.costs))
            taken[core.offsets[:-1] + chosen] = 1.0
            sums = np.array([rows.factors[a:b] @ taken[rows.columns[a:b]] for a, b in zip(rows.starts, rows.starts[1:], strict=False)])
            assert set(times[sums > rows.highs + 1e-6].tolist()) == set(over.tolist())
            if len(over):
                broken += 1
                cover = cover_row(core, chosen, int(over[0]))
                assert np.isin(core.offsets[:-1] + chosen, cover.columns).sum() > cover.highs[0]
                if np.isin(core.offsets[:-1] + other, cover.columns).sum() > cover.highs[0]:
                    assert over[0] in chosen_memory(core, other)[0]
                assert by[0] > 0
    assert broken > 50


def _some_core() -> Core:
    """One with choices that are allowed, and others."""
    cores = (unreduced(tiny(seed)) for seed in range(40))
    return next(core for core in cores if 0 < len(choices_of(core)) < np.prod(core.counts))


def test_no_time_leaves_what_was_known() -> None:
    core = _some_core()
    chosen, cost = max(choices_of(core), key=lambda pair: pair[1])
    run = _run(core, seconds=0.0)
    run.offer(chosen)
    with pytest.raises(EnoughError):
        milp(run)
    assert run.cost == cost


def test_a_choice_that_breaks_a_rule_is_not_kept() -> None:
    core = _some_core()
    allowed = {tuple(chosen.tolist()) for chosen, _ in choices_of(core)}
    run = _run(core)
    assert not any(run.offer(np.array(choice)) for choice in np.ndindex(*core.counts) if choice not in allowed)
    assert run.cost is None


def test_a_bound_above_a_choice_is_taken_back() -> None:
    """A solver that lies costs neither the choice nor what was proved without it."""
    core = _some_core()
    chosen, cost = max(choices_of(core), key=lambda pair: pair[1])
    run = _run(core)
    proved = run.bound_proved(no_dual(core))
    run.bound_told(cost + 1, "a liar")
    assert run.offer(chosen)
    assert (run.cost, run.bound) == (cost, proved)
    run.bound_told(cost, "a liar")
    assert run.bound == proved
    assert "a liar" in run.notes[0]


@pytest.mark.data
def test_highs_stops_when_it_is_asked() -> None:
    problem = read_problem(reference("sharding/asplos-2025-iopddl-B.json.gz")).problem
    session = Session(program_of(reduced(unreduced(problem)).core), 1, 0)
    looks = count(1)
    assert session.relaxed(float("inf"), SolveMonitor(lambda: next(looks) >= 3)).ending == "stopped"
    assert next(looks) == 4, "whoever said yes is not asked again"


# What stands and moves, and the search, against every choice of tiny problems.


def _turns(most: int) -> Clock:
    """A clock that goes on whenever it is looked at, so that a search is the same each time."""
    looks = count()
    return lambda: next(looks) / most


@every("core", lambda: cores()[:30])
def test_what_stands_stays_right_as_it_moves(core: Core) -> None:
    random = np.random.default_rng(3)
    layout = layout_of(core)
    labels = random.integers(0, core.counts)
    standing = standing_of(core, layout, labels)
    before = in_use(core, layout.timeline, labels)
    for _ in range(6):
        node = int(random.integers(len(core)))
        moved(layout, standing, node, int(random.integers(core.counts[node])))
    fresh = standing_of(core, layout, standing.labels)
    assert np.array_equal(fresh.sums, standing.sums)
    used = in_use(core, layout.timeline, standing.labels)
    first = standing_of(core, layout, labels).slack
    assert np.array_equal(standing.slack, first + before - used)
    if len(used) > 1:
        low, high = sorted(random.integers(0, len(used) + 1, 2).tolist())
        if low < high:
            assert least_slack(standing, low, high) == standing.slack[low:high].min()


@every("core", cores)
def test_the_search_finds_the_optimum_of_tiny_problems(core: Core) -> None:
    choices = choices_of(core)
    told: list[int] = []

    def report(labels: Ints | None, cost: int | None, bound: float) -> None:
        if labels is not None and cost is not None:
            assert cost_of(core, labels) == cost
            told.append(cost)

    found = searched(core, _turns(60), 1, report, lambda dual: bound_of(core, dual), threads=False)
    assert (found.labels is None) == (not choices)
    if found.labels is not None and found.cost is not None:
        best = min(cost for _, cost in choices)
        assert told[-1] == found.cost == best >= found.bound == bound_of(core, found.dual)
        assert core.limit is None or peak(core, found.labels) <= core.limit


def test_the_same_seed_finds_the_same_choice() -> None:
    for core in cores()[:20:2]:
        one, other = (searched(core, _turns(40), 1, lambda *_: None, partial(bound_of, core), threads=False) for _ in range(2))
        assert (one.labels is None) == (other.labels is None)
        assert one.labels is None or np.array_equal(one.labels, other.labels)


def test_a_short_search_before_the_model_leaves_the_optimum_and_repeats_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its multipliers leave less to relax, and prove a bound together with those of the relaxation of the rest."""
    monkeypatch.setattr(engines, "_SEARCHED", 0)
    searched_first = 0
    for core in cores()[:20:2]:
        choices = choices_of(core)
        if not choices:
            continue
        one, other, full = (_run(core) for _ in range(3))
        for short in (one, other):
            short.bound_proved(no_dual(core))
            search.search_shortly(short, inf)
        assert one.chosen is not None
        assert other.chosen is not None
        assert np.array_equal(one.chosen, other.chosen)
        best = min(cost for _, cost in choices)
        assert one.dual_bound == other.dual_bound <= best <= one.cost
        full.bound_proved(no_dual(core))
        with suppress(EnoughError):
            ENGINES["milp"](full)
        if full.bound != best:
            close(full)
        assert (full.cost, full.bound) == (best, best)
        searched_first += full.dual is not None and bool(full.dual.to_firsts.any())
    assert searched_first > 3


def test_a_search_hands_over_to_the_model_once_its_bound_leaves_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of problems that are too large for the model before: the answer is the model's, proved, and `check` counts it again."""
    for module, name in ((engines, "MOST"), (engines, "_MODELLED"), (engines, "_NEAR"), (search, "_FIRST"), (search, "_PROVED")):
        monkeypatch.setattr(module, name, 0)
    handed = 0
    for seed in range(12):
        question = read(written(tmp_path, seed))
        if handed < 3 and simplest(question) is not None:
            result = answered(question, "auto", Limits(60.0), unwatched)
            assert (result.status, result.value) == ("OPTIMAL", least(question.problem))
            assert result.proved_by in EXACT_PROOFS
            report = checked(result, tmp_path)
            assert (report.accepted, report.unverified) == (True, False)
            handed += result.engine == "milp"
    assert handed == 3


def test_a_search_goes_on_with_what_its_bound_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """By searches that climb a little and draw one choice, with a clock that goes on when it is looked at: the duals about less and less
    prove a bound together, and no optimum is lost."""
    looks, random = count(), np.random.default_rng(5)
    monkeypatch.setattr(search, "monotonic", lambda: float(next(looks)))
    monkeypatch.setattr(search, "_NARROWER", 1.0)

    def few(core: Core, _: Clock, seed: int, report: Report, prove: Prove, start: Ints | None, dual: Dual | None) -> None:
        assert start is None or cost_of(core, start) is not None
        ascent, choices = ascent_of(core), choices_of(core)
        if dual is not None and len(ascent.multipliers):
            messages.start_at(ascent, dual)
            paid = float(dual.prices.sum()) * (core.limit or 1) / dual.scale
            assert ascent.multipliers.sum() == pytest.approx(paid)
        climb(ascent, lambda _: True, 1 + seed)
        if choices:
            report(*choices[random.integers(len(choices))], 0.0)
        proof_of(ascent, prove)

    monkeypatch.setattr(search, "searched", few)
    longest = 0
    for core in cores()[:40]:
        run, best = _run(core), min((cost for _, cost in choices_of(core)), default=FORBIDDEN)
        search.search_for(run, 50.0)
        assert run.dual_bound is not None
        assert run.dual_bound <= best <= (FORBIDDEN if run.cost is None else run.cost)
        assert run.rest is not None
        assert best in (run.cost, FORBIDDEN, *(cost for _, cost in choices_of(run.rest.core)))
        assert closes(core, run.aim if run.steps else run.dual_bound, iter(run.steps or run.duals))
        longest = max(longest, len(run.duals))
    assert longest > 2


def test_a_bound_whose_proof_no_result_holds_replaces_none_that_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where not even the first proof fits, the best bound counts as before."""
    spared = 0
    for core in cores():
        choices = sorted(choices_of(core), key=lambda pair: pair[1])
        first = no_dual(core)
        for room in (run.figures_in([first]), 0):
            monkeypatch.setattr(run, "STORED", room)
            one = _run(core)
            one.bound_proved(first)
            rest = one.narrowed() if choices and one.offer(choices[-1][0]) else None
            if rest is None:
                continue
            ascent, before = ascent_of(rest.core), one.dual_bound
            climb(ascent, lambda _: True, 4)
            dual, bound = proof_of(ascent, lambda dual, rest=rest: bound_of(rest.core, dual))
            one.bound_proved(dual, rest)
            assert before is not None
            fits = not room or run.figures_in((*rest.duals, dual)) <= room
            assert one.bound == one.dual_bound == (max(before, min(bound, rest.below)) if fits else before)
            spared += bound > before and not fits
    assert spared > 2


def test_a_search_in_two_threads_ends_in_time_and_keeps_what_it_was_given() -> None:
    core = next(core for core in cores() if core.limit is not None and choices_of(core))
    given = min(choices_of(core), key=lambda choice: choice[1])
    found = searched(core, _turns(300), 5, lambda *_: None, lambda dual: bound_of(core, dual), start=given[0])
    assert found.cost == given[1] >= found.bound


def test_what_is_decoded_late_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The climb may find something during the last walk."""
    core = next(core for core in cores() if len({cost for _, cost in choices_of(core)}) > 1)
    worst, best = (by(choices_of(core), key=lambda choice: choice[1]) for by in (max, min))
    ascent, looks = ascent_of(core), count()

    def clock() -> float:
        return next(looks) / 100

    def climbed(*_: object) -> None:
        ascent.rounds += 1

    def walked(*_: object) -> None:
        if clock() > 0.7:
            ascent.feasible = best[0]

    for name, instead in (
        ("ascent_of", lambda _: ascent),
        ("climb", climbed),
        ("cool", climbed),
        ("walked", walked),
        ("fitted", lambda *_: None),
    ):
        monkeypatch.setattr(search, name, instead)
    found = search.searched(core, clock, 1, lambda *_: None, lambda dual: bound_of(core, dual), worst[0], threads=False)
    assert found.cost == best[1]


# Smoothed passes at falling heat, against every choice of tiny problems and against plain passes.


def _cooled(core: Core, rounds: int) -> Ascent:
    ascent, turns = ascent_of(core), count(1)
    climb(ascent, lambda _: True, 1)
    cool(ascent, cooling_of(ascent), lambda: next(turns) / rounds, lambda: True, rounds)
    return ascent


@every("core", cores)
def test_cooled_bounds_never_pass_the_optimum(core: Core) -> None:
    best = min((cost for _, cost in choices_of(core)), default=None)
    ascent = _cooled(core, 12)
    dual, bound = proof_of(ascent, partial(bound_of, core))
    assert bound == bound_of(core, dual)
    assert best is None or bound <= best
    assert bound >= ascent.best - 1e-3 * max(abs(ascent.best), 1.0)


@pytest.mark.data
@pytest.mark.slow
def test_cooling_goes_on_where_single_steps_stand_still() -> None:
    """After hundreds of rounds as many passes gain several times as much: 25 to 90 times as the last digits of floats fall."""
    core = reduced(unreduced(read(reference("sharding/asplos-2025-iopddl-V.json.gz")).problem)).core
    ascent, turns = ascent_of(core), count(1)
    climb(ascent, lambda _: True, 300)
    before = ascent.best
    stepped = replace(ascent, state=State(*(figures.copy() for figures in ascent.state)))
    climb(stepped, lambda _: True, 25 * 19 // 3)
    cool(ascent, cooling_of(ascent), lambda: next(turns) / 25, lambda: True, 25)
    assert ascent.best - before > 3.0 * (stepped.best - before)


def test_the_heat_falls_with_the_share_of_the_time_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    ascent, heats, shares = ascent_of(cores()[0]), list[float](), iter((0.0, 0.5, 1.0))
    climb(ascent, lambda _: True, 1)
    cooling = cooling_of(ascent)
    monkeypatch.setattr(messages, "smoothed", lambda network, state, weights, heat, forward: heats.append(heat) or 0.0)
    monkeypatch.setattr(messages, "_smoothed_step", lambda *_: None)
    cool(ascent, cooling, lambda: next(shares), lambda: True, 3)
    assert sorted(heats, reverse=True) == heats
    assert [heat / cooling.heat for heat in heats[:: len(heats) // 3]] == pytest.approx([1.0, 0.003**0.5, 0.003])


@every("core", lambda: cores()[:40])
@pytest.mark.parametrize("heat", [1e-3, 1.0, 100.0])
def test_a_smoothed_pass_gains_no_more_than_a_plain_one(core: Core, heat: float) -> None:
    network, weights = network_of(core), np.zeros(len(core.costs))
    plain, soft = state_of(core, network), state_of(core, network)
    gained = smoothed(network, soft, weights, heat, True)
    assert gained <= passed(network, plain, True) + 1e-9
    assert np.add.reduceat(weights, core.offsets[:-1]) == pytest.approx(1.0)


# Large public problems, changed: other limits, other orders, other costs, more edges; each ends with a choice and a bound that hold.

_SECONDS = 15.0


def _just_enough(problem: Problem) -> Problem:
    least = np.minimum.reduceat(problem.usages, problem.offsets[:-1])
    return replace(problem, limit=int(1.02 * peak_of(problem, least)[0]))


def _twice_the_memory(problem: Problem) -> Problem:
    return replace(problem, limit=2 * (problem.limit or 0))


def _no_limit(problem: Problem) -> Problem:
    return replace(problem, limit=None)


def _halved(problem: Problem) -> Problem:
    costs, entries = (np.where(figures < FORBIDDEN, figures // 2, figures) for figures in (problem.costs, problem.entries))
    return replace(problem, costs=costs, entries=entries)


def _edges_twice(problem: Problem) -> Problem:
    return replace(
        problem,
        firsts=np.tile(problem.firsts, 2),
        seconds=np.tile(problem.seconds, 2),
        entry_offsets=np.concatenate([problem.entry_offsets, problem.entry_offsets[1:] + len(problem.entries)]),
        entries=np.tile(problem.entries, 2),
    )


def _other_order(problem: Problem) -> Problem:
    order = _order(problem)
    places = np.concatenate([np.arange(problem.offsets[node], problem.offsets[node + 1]) for node in order])
    return replace(
        problem,
        offsets=np.concatenate([[0], np.cumsum(problem.counts[order])]),
        costs=problem.costs[places],
        usages=problem.usages[places],
        starts=problem.starts[order],
        ends=problem.ends[order],
        firsts=np.argsort(order)[problem.firsts],
        seconds=np.argsort(order)[problem.seconds],
    )


def _order(problem: Problem) -> Ints:
    return np.random.default_rng(11).permutation(len(problem))


@lru_cache
def _original(letter: str) -> tuple[ShardingQuestion, Answer]:
    question = read(reference(f"sharding/asplos-2025-iopddl-{letter}.json.gz"))
    return question, answered(question, "auto", Limits(_SECONDS), unwatched)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("letter", ["K", "M", "R"])
@pytest.mark.parametrize("change", [_just_enough, _twice_the_memory, _no_limit, _halved, _edges_twice, _other_order])
def test_changed_problems_end_with_choices_and_bounds_that_hold(letter: str, change: Callable[[Problem], Problem]) -> None:
    """What the unchanged problem was given is priced as a choice of the changed one: no bound is above it."""
    question, before = _original(letter)
    problem = change(question.problem)
    result = answered(replace(question, problem=problem), "auto", Limits(_SECONDS), unwatched)
    assert result.answer is not None
    assert result.value is not None
    assert result.bound is not None
    assert weigh(problem, result.answer.strategies).violations == ()
    assert 0 < result.bound <= result.value
    assert before.answer is not None
    known = np.asarray(before.answer.strategies)
    known = known[_order(problem)] if change is _other_order else known
    verdict = weigh(problem, known.tolist())
    assert verdict.violations or result.bound <= verdict.cost


# What is compiled before the clock starts: all that a solve calls, so that none of its time goes there.


def _compiled() -> dict[str, set[str]]:
    """For what arguments each compiled function was asked so far."""
    functions = (
        (f"{function.__module__}.{name}", function)
        for module in [
            module
            for name, module in sys.modules.items()
            if name.startswith(("crossopt.formulation.sharding", "crossopt.solvers.sharding"))
        ]
        for name, function in vars(module).items()
        if hasattr(function, "signatures") and hasattr(function, "py_func")
    )
    return {name: set(map(str, function.signatures)) for name, function in functions}


def test_a_solve_compiles_nothing_that_was_not_compiled_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "_LOADED", -1.0)
    said: list[Progress] = []
    warmed(said.append, lambda: False)
    warm_search(said.append, lambda: False)
    before = _compiled()
    assert sum(map(bool, before.values())) > 10
    assert all(before[f"crossopt.solvers.sharding.messages.{name}"] for name in ("passed", "smoothed"))
    for seed in range(8):
        question = read(written(tmp_path, seed))
        for engine in ("auto", "milp", "local", "search"):
            answered(question, engine, Limits(0.3), unwatched)
    assert _compiled() == before
    assert {progress.label for progress in said} == {MESSAGE}


@pytest.mark.parametrize(("module", "name", "engine"), [(engines, "warmed", "greedy"), (searching, "warm_search", "search")])
def test_a_limit_counts_what_is_compiled_and_leaves_the_simplest_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, engine: str
) -> None:
    """Whoever would have to compile for a minute answers within the second that was asked for, by a rule that needs no compiled code."""
    question = next(asked for seed in range(20) if quick(asked := read(written(tmp_path, seed)), inf) is not None)
    plain = answered(question, engine, Limits(30.0), unwatched)
    compiled: list[float] = []
    honest = getattr(module, name)

    def slow(watch: Watch, late: Callable[[], bool]) -> None:
        compiled.append(60.0)
        honest(watch, late)

    for place in (engines, run, searching, family):
        monkeypatch.setattr(place, "monotonic", lambda: monotonic() + sum(compiled))
    monkeypatch.setattr(module, name, slow)
    result = answered(question, engine, Limits(30.0), unwatched)
    assert compiled == [60.0]
    assert plain.value is not None
    assert result.value is not None
    assert (result.stopped, plain.value <= result.value) == ("time limit", True)
    assert module is searching or result.bound is None


def test_a_choice_without_machine_code_is_there_while_that_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the simplest rule finds nothing and the time ends while the code is compiled, the greedy choice of that time is the answer."""
    asked = (read(written(tmp_path, seed)) for seed in range(200))
    question = next(each for each in asked if engines.simplest(each) is None and quick(each, inf) is not None)
    monkeypatch.setattr(engines, "_LOADED", -1.0)
    monkeypatch.setattr(engines, "_AT_ONCE", -1.0)
    seen: list[object] = []

    def late(watch: Watch, late: Callable[[], bool]) -> None:
        watch(Progress(engines.MESSAGE, None))
        raise run.EnoughError

    monkeypatch.setattr(engines, "warmed", late)
    result = answered(question, "auto", Limits(30.0), lambda progress: seen.append(progress.answer and progress.answer()))
    assert result.answer == quick(question, inf) == seen[-1]
    assert result.stopped == "time limit"


def test_a_short_limit_has_a_choice_before_anything_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may end while a single function is compiled, which tells nothing."""
    asked = (read(written(tmp_path, seed)) for seed in range(200))
    question = next(each for each in asked if engines.simplest(each) is None and quick(each, inf) is not None)
    seen: list[object] = []

    def late(_watch: Watch, _late: Callable[[], bool]) -> None:
        assert seen == [quick(question, inf)]
        raise run.EnoughError

    monkeypatch.setattr(engines, "warmed", late)
    result = answered(question, "auto", Limits(5.0), lambda progress: seen.append(progress.answer and progress.answer()))
    assert (result.answer, result.stopped) == (seen[0], "time limit")


def test_the_command_compiles_what_a_solve_would_wait_for(capsys: pytest.CaptureFixture[str]) -> None:
    before = _compiled()
    assert main(["compile"]) == 0
    assert "compiled" in capsys.readouterr().out
    assert all(_compiled()[name] >= asked for name, asked in before.items())
    assert sum(map(bool, _compiled().values())) > 10


def test_the_simplest_rules_give_choices_that_keep_every_limit_or_none(tmp_path: Path) -> None:
    found = 0
    for seed in range(30):
        question = read(written(tmp_path, seed))
        chosen = quick(question, inf)
        assert chosen is None or not weigh(question.problem, chosen.strategies).violations
        assert simplest(question) is None or simplest(question) == chosen
        assert quick(question, 0.0) == simplest(question)
        found += chosen is not None
    assert found > 10
