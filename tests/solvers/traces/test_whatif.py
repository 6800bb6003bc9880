"""Changes of a trace: branch and bound against every choice by the judge, and a case by hand."""

from dataclasses import replace
from itertools import product
from math import inf

import pytest

from crossopt.instances.question import read
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.checking import check_answer
from crossopt.solvers.family import solve
from crossopt.solvers.proofs import Chosen
from crossopt.solvers.traces.whatif.family import FAMILY
from crossopt.solvers.traces.whatif.judge import Changes, judge
from tests.paths import INSTANCES
from tests.solvers.traces.drawn import asked, changes

HAND = {
    "trace": 1,
    "operations": [
        {"name": "gemm", "kind": "kernel", "on": "s", "ns": 60},
        {"name": "reduce", "kind": "collective", "on": "t", "ns": 50},
        {"name": "end", "kind": "kernel", "on": "s", "ns": 10},
    ],
    "edges": [[0, 2, "stream"], [1, 2, "wait"]],
}

RULES = {"by gain for cost", "gain measured anew"}


@pytest.mark.parametrize("seeds", [range(10), pytest.param(range(10, 210), marks=pytest.mark.slow)], ids=["quick", "all"])
def test_branches_find_what_looking_at_every_choice_finds(seeds: range) -> None:
    for seed in seeds:
        question, true = changes(seed, 5 if seeds.start == 0 else 9)
        for engine in ("branches", "enumerate"):
            result = solve(FAMILY, question, engine, Limits(), unwatched)
            assert (inf if result.value is None else result.value, result.proved) == (true, True), (seed, engine)
            assert check_answer(FAMILY, result, question).accepted


def test_neither_of_two_changes_pays_alone_that_save_much_together() -> None:
    """gemm and reduce run beside each other: half of gemm saves 10 of 70, half of reduce nothing, both 30. The cheap one alone saves 5.
    Measured again behind half of gemm, half of reduce saves 20 for 2 days and the cheap one 5 for 1."""
    rows = [
        {"name": "half gemm", "transform": "scale", "pattern": "gemm", "factor": 0.5, "days": 2},
        {"name": "half reduce", "transform": "bandwidth", "times": 2, "days": 2},
        {"name": "half end", "transform": "scale", "pattern": "end", "factor": 0.5, "days": 1},
    ]
    question = asked({"kind": "what-if", "trace": "trace.json", "changes": rows, "budgets": {"days": 4}}, HAND)
    result = solve(FAMILY, question, "auto", Limits(), unwatched)
    assert (result.value, result.answer) == (40, Changes(("half gemm", "half reduce")))
    assert {rival.name: rival.value for rival in result.rivals} == {
        "best change alone": 60,
        "by gain for cost": 55,
        "gain measured anew": 40,
        "sum of single gains": 55,
        "all that fit in turn": 40,
        "exchange search": 40,
    }
    again = solve(FAMILY, question, "measured", Limits(), unwatched)
    assert (again.answer, again.proved) == (result.answer, False)
    rows = [{**row, "money": "1 USD"} for row in rows]
    costly = {"kind": "what-if", "trace": "trace.json", "changes": rows, "objective": "money", "target": "55 ns"}
    assert solve(FAMILY, asked(costly, HAND), "measured", Limits(), unwatched).answer == Changes(("half gemm", "half reduce"))
    nothing = asked({"kind": "what-if", "trace": "trace.json", "changes": rows, "budgets": {"days": 0}}, HAND)
    assert solve(FAMILY, nothing, "auto", Limits(), unwatched).answer == Changes(())


def test_rules_keep_no_change_that_saves_nothing_beside_the_others() -> None:
    """Overlap saves most alone, and nothing once the links are faster; what it cost is room for others."""
    question = read(INSTANCES / "traces" / "two-weeks-of-work.yaml", ("budgets.days=8",))
    for engine in ("greedy", "measured"):
        made = solve(FAMILY, question, engine, Limits(), unwatched).answer
        whole = judge(question, made)
        assert "overlapped gradients" not in made.changes
        assert all(judge(question, Changes(tuple(one for one in made.changes if one != less))).value > whole.value for less in made.changes)


def test_no_rule_beats_exchanges_and_no_exchange_improves_on_them() -> None:
    """Each change that is made or not, and each that is made for another, with the rules kept: the judge finds none better."""
    for seed in range(20):
        question, true = changes(seed, 6)
        found = solve(FAMILY, question, "exchange", Limits(seed=seed), unwatched)
        if found.value is None:
            continue
        rivals = solve(FAMILY, question, "branches", Limits(), unwatched).rivals
        assert true <= found.value <= min((one.value for one in rivals if one.name in RULES and one.value is not None), default=inf)
        inside = set(found.answer.changes)
        for one, other in product(question.names, repeat=2):
            near = judge(question, Changes(tuple(name for name in question.names if name in inside ^ {one} ^ ({other} - {one}))))
            assert near.violations or near.value >= found.value
    assert solve(FAMILY, read(INSTANCES / "traces" / "two-weeks-of-work.yaml", ()), "exchange", Limits(), unwatched).value == 3_274_000


def test_a_tree_that_leaves_a_choice_out_is_refused() -> None:
    question = read(INSTANCES / "traces" / "two-weeks-of-work.yaml", ())
    result = solve(FAMILY, question, "auto", Limits(), unwatched)
    assert isinstance(result.proof, Chosen)
    assert check_answer(FAMILY, result, question).accepted
    for steps in ("-", result.proof.steps[:-2], f"{result.proof.steps} -", "0 0 - - -", "99 - -", " ", "-1"):
        forged = replace(result, proof=replace(result.proof, steps=steps))
        assert not check_answer(FAMILY, forged, question).accepted
