"""The integer model against every choice of tiny problems, and its parts by hand."""

from contextlib import suppress
from itertools import count
from time import monotonic

import numpy as np
import pytest

from crossopt.formulation.sharding.core import Core, unreduced
from crossopt.formulation.sharding.dual import bound_of, no_dual
from crossopt.formulation.sharding.integer import chosen_memory, cover_row, memory_rows, program_of
from crossopt.formulation.sharding.reductions import ContradictionError, reduced
from crossopt.instances.sharding.problem import FORBIDDEN
from crossopt.instances.sharding.reading import read_problem
from crossopt.solvers.answer import Limits
from crossopt.solvers.backends.arrays import Look, Session
from crossopt.solvers.sharding.integer import close, milp
from crossopt.solvers.sharding.judge import WHOLE, weigh
from crossopt.solvers.sharding.run import EnoughError, Run
from tests.instances.sharding.tiny import choices_of, least, tiny
from tests.paths import reference


def _run(core: Core, seconds: float = float("inf")) -> Run:
    return Run(core, Limits(seconds), lambda progress: None, monotonic())


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
        if run.bound != true:  # the word of HiGHS is no proof, but a reason to look for one
            assert run.said_by.startswith("highs ")
            close(run)
        assert run.bound == true
        assert run.proved_by in WHOLE
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
    assert session.relaxed(float("inf"), Look(lambda: next(looks) >= 3)).ending == "stopped"
    assert next(looks) == 4, "whoever said yes is not asked again"
