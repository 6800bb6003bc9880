"""Every choice looked at: the same optimum as one by one, and the same words."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from crossopt.formulation.sharding.core import cost_of, unreduced
from crossopt.formulation.sharding.reductions import ContradictionError, reduced
from crossopt.instances.errors import RefusedError
from crossopt.instances.question import read
from crossopt.instances.sharding.problem import FORBIDDEN
from crossopt.solvers.answer import Limits
from crossopt.solvers.sharding import exhaustive as every
from crossopt.solvers.sharding import judge
from crossopt.solvers.sharding.engines import ENGINES
from crossopt.solvers.sharding.exhaustive import best_of_all, choices_in
from crossopt.solvers.sharding.judge import BY_EVERY, weigh
from tests.instances.sharding.cores import cores
from tests.instances.sharding.files import answered, checked, written
from tests.instances.sharding.tiny import choices_of, least, peak, tiny
from tests.paths import reference


@pytest.mark.parametrize("at_once", [7, 1 << 22])
def test_the_best_of_all_is_the_best_one_by_one(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(every, "_AT_ONCE", at_once)
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
        result = answered(read(written(tmp_path, seed)), "auto", Limits(), lambda progress: None)
        assert result.engine in {"auto", "exhaustive"}
        report = checked(result, tmp_path)
        assert report.refused == ()
        assert not report.told
        proved += result.proved_by == BY_EVERY and result.value is not None
    assert proved > 2


def test_that_no_choice_fits_is_proved_anew_too(tmp_path: Path) -> None:
    """Two nodes of which one must take much: what each takes at least fits, and every strategy has an allowed partner."""
    nodes = {"intervals": [[0, 5], [0, 5]], "costs": [[1, 2], [1, 2]], "usages": [[1, 9], [1, 9]]}
    edges = {"nodes": [[0, 1]], "costs": [[10**18, 0, 0, 0]]}
    path = tmp_path / "problem.json"
    path.write_text(json.dumps({"problem": {"nodes": nodes, "edges": edges, "usage_limit": 8}}))
    result = answered(read(path), "auto", Limits(), lambda progress: None)
    assert (result.status, result.proved_by) == ("INFEASIBLE", BY_EVERY)
    report = checked(result, tmp_path)
    assert report.refused == ()
    assert not report.told
    edited = replace(result, reasons=("it is too much",))
    assert checked(edited, tmp_path).refused == (
        "reasons: no choice takes allowed strategies and pairs only and keeps the limit of 8 bytes at every time",
    )


def test_a_choice_that_is_not_the_best_is_refused(tmp_path: Path) -> None:
    """Even where everything else in the result was edited to fit it."""
    refused = 0
    for seed in range(60):
        problem = tiny(seed)
        result = answered(read(written(tmp_path, seed)), "exhaustive", Limits(), lambda progress: None)
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
        answered(question, "exhaustive", Limits(), lambda progress: None)


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
