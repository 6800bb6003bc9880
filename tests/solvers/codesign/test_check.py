"""Checking: a fresh result is accepted; edited figures, made-up claims, and solvers that crash, are late or lie are refused."""

import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any

import pytest

from crossopt.formulation.codesign.forms import FORMS
from crossopt.formulation.model import Model
from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion, Portfolio
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import hardware_points, plan_blocks
from crossopt.instances.errors import SolverError
from crossopt.instances.question import read_again
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits, Progress, SearchOutcome, result_in, to_text, unwatched
from crossopt.solvers.backends import Backend, Spend, backend
from crossopt.solvers.backends.answer import Answer
from crossopt.solvers.checking import check_answer, faults_but_proof
from crossopt.solvers.codesign import claims, prove
from crossopt.solvers.codesign.answer import DesignResult, Designs, EvaluatedDesigns, answer_of, candidate, candidate_in
from crossopt.solvers.codesign.boxes.branch import root_node
from crossopt.solvers.codesign.claims import by_boxes, enumerated, relaxed
from crossopt.solvers.codesign.combined import engines, workloads
from crossopt.solvers.codesign.engines import SEARCHERS
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.codesign.judge import judge, verify
from crossopt.solvers.codesign.linear import refine as loop
from crossopt.solvers.codesign.linear.refine import LEAST_GAP, Refined, refine
from crossopt.solvers.family import certify, solve
from crossopt.solvers.proofs import Boxes, Enumerated, Proof, Relaxation, Space, Tree, UnverifiedBound
from tests.every import every
from tests.once import once
from tests.paths import INSTANCES
from tests.reports.answers import answer, saved
from tests.samples import DESIGNS
from tests.solvers.backends.test_backends import SMALL
from tests.solvers.codesign.asking import WHOLE, again, answered, checked, reread
from tests.solvers.codesign.editing import Path as KeyPath
from tests.solvers.codesign.editing import accepted_edits, at, edited, leaves, refused
from tests.solvers.codesign.questions import COUNTED, GEMM, LSTM, TINY_FREE, ask, random_question
from tests.solvers.codesign.several_questions import TWO, several
from tests.solvers.codesign.test_linear import WIDE, agrees, cold

# Checking: a fresh result is accepted, and no figure of it can be edited without a reason to refuse it.

TINY = read_instance(INSTANCES / "tiny.yaml")
INFEASIBLE = read_instance(INSTANCES / "tiny.yaml", ("budget.power=100 W",))


@once
def solved(instance: Instance, engine: str = "exhaustive") -> DesignResult:
    return answered(instance, engine)


def written(result: DesignResult) -> dict[str, Any]:
    """The result as plain data."""
    return dict(json.loads(to_text(result)))


@pytest.mark.parametrize("instance", [TINY, INFEASIBLE, ask(TINY_FREE), ask(LSTM), ask(GEMM), *map(random_question, (1, 2, 9, 33, 36))])
def test_a_fresh_result_is_accepted_be_it_feasible_or_not(instance: Instance) -> None:
    report = checked(again(solved(instance)))
    assert report.refused == ()
    assert report.checked[-1].startswith("the proof was repeated")


@pytest.mark.thorough
@every("engine", sorted(FAMILY.engines))
def test_what_every_engine_writes_is_accepted(engine: str) -> None:
    assert checked(answered(ask(TINY_FREE), engine, Limits(seconds=0.1 if engine in SEARCHERS else inf))).accepted


@pytest.mark.parametrize("settings", [("tensor=8", "pipeline=1"), ("workload.model=gpt3-175b",)])
def test_each_kind_of_infeasible_answer_is_accepted(settings: tuple[str, ...]) -> None:
    result = solved(read_instance(INSTANCES / "tiny.yaml", settings))
    assert result.status == "INFEASIBLE"
    assert checked(result).accepted


# --- edits ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("instance", [TINY, INFEASIBLE], ids=["optimal", "infeasible"])
def test_a_result_with_a_part_left_out_or_added_is_refused(instance: Instance) -> None:
    data = written(solved(instance))
    for key in data:
        assert refused({name: value for name, value in data.items() if name != key}), key
        if isinstance(data[key], list) and data[key] and key != "trace":
            assert refused({**data, key: data[key][1:]}), key
            assert refused({**data, key: data[key] * 2}), key
        if isinstance(data[key], dict) and key != "versions":
            assert refused({**data, key: {**data[key], "more": 1}}), key
    assert refused({**data, "more": 1})


@pytest.mark.parametrize(
    ("old", "new"),
    [("tensor: [1, 2, 4]", "tensor: [1, 2]"), ("global_batch: 64", "global_batch: 32"), ("a100-80g", "a100-40g"), ("kind", "kinds")],
)
def test_the_answer_to_another_question_is_refused(old: str, new: str) -> None:
    data = written(solved(TINY))
    assert old in data["question"]["text"]
    data["question"]["text"] = data["question"]["text"].replace(old, new)
    assert refused(data)


# --- coherent lies -------------------------------------------------------------------------------------------------------------------


def with_design(result: DesignResult, instance: Instance, row: int) -> DesignResult:
    """The same claim with another design, all of whose figures are true of it."""
    plans = next(iter(plan_blocks(instance)))
    chosen = candidate(plans, row, 0)
    verdict = verify(instance, chosen)
    answer, value = answer_of(instance, chosen), verdict.value
    assert answer is not None
    return replace(result, answer=answer, details=judge(instance, answer).details, value=value, bound=value, gap=0.0, trace=())


def test_a_worse_design_that_claims_to_be_the_optimum_is_refused() -> None:
    """Everything in the file is true of this design, agrees with the rest and beats the baseline; only a fresh enumeration finds others."""
    instance = random_question(42)
    result = solved(instance)
    (baseline,), plans = result.baselines, len(next(iter(plan_blocks(instance))))
    assert result.value is not None
    assert baseline.value is not None
    others = (with_design(result, instance, row) for row in range(0, plans, 5) if judged_at(instance, row))
    worse = list(islice((other for other in others if other.value is not None and result.value < other.value <= baseline.value), 2))
    assert len(worse) == 2
    for other in worse:
        assert checked(other).refused == (f"bound: no design is below {result.value!r}, the result says {other.value!r}",)


def judged_at(instance: Instance, row: int) -> bool:
    """Whether the design keeps every limit."""
    return not verify(instance, candidate(next(iter(plan_blocks(instance))), row, 0)).violations


def test_a_feasible_question_that_is_claimed_to_be_infeasible_is_refused() -> None:
    empty = {"value": None, "bound": None, "gap": None, "answer": None, "details": None, "baselines": (), "trace": ()}
    claim = replace(solved(TINY), status="INFEASIBLE", **empty)  # type: ignore[arg-type]
    assert "space: there are feasible designs where one was found, and only there" in checked(claim).refused
    assert isinstance(claim.proof, Enumerated)
    none = replace(claim.proof.space, feasible=0, ties=0, within_1_percent=0, within_5_percent=0, within_error=0, near=())
    assert any("bound" in reason for reason in checked(replace(claim, proof=replace(claim.proof, space=none))).refused)


def test_a_design_over_its_limits_is_refused() -> None:
    """The design of a question without a budget, put into the answer to one with a budget that it breaks."""
    bold = replace(solved(TINY), question=solved(INFEASIBLE).question)
    assert "the design breaks a rule: power: 400 of 100" in checked(bold).refused


def test_a_bound_without_a_proof_is_refused() -> None:
    result = solved(TINY, "expert")
    claim = replace(result, bound=result.value, gap=0.0)
    assert not checked(claim).accepted
    assert not checked(replace(claim, proved=True, status="OPTIMAL")).accepted


def test_an_engine_that_proves_nothing_cannot_be_told_to_have_proved_it() -> None:
    assert not checked(replace(solved(TINY), engine="expert")).accepted


def test_an_interrupted_check_accepts_nothing() -> None:
    def impatient(progress: Progress) -> None:
        raise KeyboardInterrupt

    report = checked(solved(TINY), impatient)
    assert report.refused == ("the proof was not completed: interrupted",)


def test_an_answer_that_was_cut_short_is_accepted_for_what_it_claims() -> None:
    def impatient(progress: Progress) -> None:
        raise KeyboardInterrupt

    result = answered(TINY, watch=impatient)
    assert (result.status, result.proved) == ("FEASIBLE", False)
    assert checked(result).accepted
    assert not checked(replace(result, proved=True, status="OPTIMAL", bound=result.value, gap=0.0)).accepted


def test_a_search_that_was_stopped_without_a_design_tells_no_bound_and_is_accepted() -> None:
    """Where there is no design a search has a bound on what is left to be looked at, of which nothing can be said yet."""
    found: SearchOutcome[Designs] = SearchOutcome(
        None, 1.0, solved(INFEASIBLE, "boxes").proof, "boxes", "time limit", trace=((0.1, None, 1.0),)
    )
    result = certify(FAMILY, INFEASIBLE, found, WHOLE, 0.2)
    assert (result.status, result.bound, result.proof, result.proved_by) == ("UNKNOWN", None, None, "")
    assert checked(again(result)).accepted


# --- files that are no results -------------------------------------------------------------------------------------------------------


@every(
    ("change", "message"),
    [
        ({"format": 1}, "this is not a result of format 3 (solve the question again: `crossopt solve FILE --out RESULT.json`)"),
        ({"format": 2}, "this is not a result of format 3 (solve the question again: `crossopt solve FILE --out RESULT.json`)"),
        ({"value": "fast"}, "value: 'fast' is no finite number"),
        ({"value": 10**400}, f"value: '1{'0' * 39}' is no finite number"),
        ({"value": True}, "value: 'True' is no finite number"),
        ({"status": "GOOD"}, "status: 'GOOD' is no known word"),
        ({"question": []}, "question: '[]' is no mapping"),
        (
            {"proof": 5},
            "proof.form: 'None' is none of unverified, recomputable, steps, enumerated, enumerated-together, "
            "boxes, relaxed, exact, parts, multipliers, surrounded, swept, on-path, branched, tangents, weighed, chosen, integers, "
            "priced, priced-tree, priced-chips, retained, memory-levels, priced-tiers, priced-phases, priced-systems, priced-counts",
        ),
        ({"proof": {"form": "enumerated", "by": "", "conflicts": [], "space": 5}}, "proof.space: a mapping is needed"),
        ({"proof": {"form": "enumerated", "by": "", "conflicts": [], "space": {}}}, "proof.space.designs: this key is missing"),
        ({"answer": {}}, "answer.alone: this key is missing"),
        ({"trace": [[1.0, 2.0]]}, "trace[0]: 3 items are needed"),
        ({"trace": 3}, "trace: '3' is no list"),
        ({"more": 1}, "more: this key is unknown"),
        ({"seed": 1.5}, "seed: '1.5' is no whole number"),
        ({"proved": 1}, "proved: '1' is no true or false"),
    ],
)
def test_a_file_that_is_no_result_says_where_in_plain_words(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as raised:
        reread({**written(solved(TINY)), **change})
    assert str(raised.value) == message


def test_a_result_on_a_hugging_face_config_stands_without_that_file(tmp_path: Path) -> None:
    """The shapes travel in the result, so that it can be checked anywhere."""
    shapes = {"hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 4, "num_attention_heads": 8, "vocab_size": 1000}
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "llama", "max_position_embeddings": 256, **shapes}), encoding="utf-8")
    asked = tmp_path / "question.yaml"
    asked.write_text(
        "kind: codesign\nworkload: {config: config.json, global_batch: 8, sequence: 256}\ncluster: {devices: 4}\nhardware: a100-80g\n",
        encoding="utf-8",
    )
    result = solved(read_instance(asked))
    config.unlink()
    assert checked(again(result)).accepted


# --- what the model leaves open -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        (("details", "shares", 0, "evaluation", "likely", 0), "details.shares[0].evaluation.likely"),
        (("details", "shares", 0, "evaluation", "likely", 1), "details.shares[0].evaluation.likely"),
        (("proof", "space", "within_error"), "space"),
        (("proof", "space", "error"), "space"),
    ],
)
def test_a_narrower_range_and_a_smaller_error_are_refused(place: tuple[Any, ...], reason: str) -> None:
    data = written(solved(TINY))
    value = at(data, place)
    assert isinstance(value, int | float)
    for other in (value + 1, value * 0.999) if isinstance(value, float) else (value + 1, value - 1):
        report = checked(reread(edited(data, place, other)))
        assert any(fault.startswith(reason) for fault in report.refused)
    assert refused(edited(data, place, None))


@pytest.mark.slow
def test_a_made_up_tree_that_is_too_deep_is_refused_and_no_fault_of_the_program() -> None:
    """Hundreds of options, cut off one at a time, for an interpreter that follows fewer calls than that."""
    wide = "compute_power={from: 100 W, to: 400 W, count: 600}"
    instance = ask(TINY_FREE, wide, "compute_area=200 mm^2", "hbm_stacks=2", "budget.power=1000 W")
    result = solved(instance, "boxes")
    assert isinstance(result.proof, Boxes)
    names = [name for name, values in instance.hardware.options]  # type: ignore[union-attr]
    cuts: list[tuple[tuple[int, int, int], ...] | None] = []
    high = int(root_node(instance).box.high[0, names.index("compute_power")])
    cuts += [((names.index("compute_power"), 0, last),) for last in range(high - 1, -1, -1)]
    tree = replace(result.proof.tree, boxes=2 * len(cuts) + 1, cuts=(*cuts, *(None for _ in range(len(cuts) + 1))))
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    try:
        report = checked(replace(result, proof=by_boxes(tree)))
    finally:
        sys.setrecursionlimit(usual)
    assert "the tree of cuts is too deep to follow" in report.refused


@pytest.mark.parametrize("number", [1 << 63, 1 << 64, 10**30, (1 << 31) + 1])
def test_numbers_too_large_for_a_plan_are_none_of_its_options(number: int) -> None:
    for name in ("tensor", "microbatch", "shard"):
        design = solved(TINY).answer.design
        with pytest.raises(ValueError, match=f"{name} {number} is not among the options"):
            candidate_in(TINY, replace(design, plan=replace(design.plan, **{name: number})))


# Claims that were made up: a solver's word against a feasible question, proofs of other engines, counts that cannot be.

NOTHING: dict[str, Any] = {
    **dict.fromkeys(("value", "bound", "gap", "answer", "details")),
    **dict.fromkeys(("baselines", "trace"), ()),
    "status": "INFEASIBLE",
    "proved": True,
}
SOLVED = Relaxation("highs 1.12.0", 3, 10, "strong", 4)
MANY = Space(10**15, 7, 1, 1, 1, 0, 10**12, 1000)
CUT = Tree(10, 2, (5,), (1,), (1,), 1, (None,))
IMPOSSIBLE = "budget.power=1 W"


@once
def without_design(instance: Instance, engine: str) -> DesignResult:
    """A result that says on a solver's word that there is no design."""
    relaxation = replace(SOLVED, solver="cpsat 9.14" if engine == "cpsat" else SOLVED.solver)
    return replace(solved(instance, "boxes"), engine=engine, proof=relaxed(relaxation), **{**NOTHING, "status": "UNKNOWN", "proved": False})


def file_of(folder: Path, result: DesignResult) -> Path:
    path = folder / "answer.json"
    path.write_text(to_text(result), encoding="utf-8")
    return path


@pytest.mark.parametrize("engine", ["milp", "cpsat"])
def test_that_there_is_no_design_is_refuted_by_a_design(engine: str) -> None:
    report = checked(without_design(ask(TINY_FREE), engine))
    assert any(reason.startswith("there is a design of") for reason in report.refused)


@pytest.mark.parametrize("engine", ["milp", "cpsat"])
def test_that_there_is_no_design_is_proved_anew_or_told(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where boxes come to an end it is proved; where they have no time it is the solver's word, in the last line too."""
    claim = without_design(ask(TINY_FREE, IMPOSSIBLE), engine)
    monkeypatch.setattr("crossopt.solvers.codesign.prove._LOOK", float("inf"))
    report = checked(claim)
    assert report.refused == ()
    assert not report.unverified
    monkeypatch.setattr("crossopt.solvers.codesign.prove._LOOK", -1.0)
    report = checked(claim)
    assert (report.refused, report.unverified) == ((), True)
    assert main(["check", str(file_of(tmp_path, claim))]) == 0
    assert capsys.readouterr().out.endswith("accepted, except the bound, which is solver-reported and was not proved again\n")
    assert main(["report", str(file_of(tmp_path, claim)), "--out", "-"]) == 0
    page = capsys.readouterr().out
    assert "reported: no design" in page
    assert "by the report of" in page
    assert "proved: no design" not in page


def test_what_a_solver_tells_is_not_called_proved_on_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = answered(ask(TINY_FREE), "milp", Limits(form="log"))
    assert (result.proved, result.settled, result.unverified, result.status) == (False, True, True, "FEASIBLE")
    assert main(["report", str(file_of(tmp_path, result)), "--out", "-"]) == 0
    page = capsys.readouterr().out
    assert "solver-reported" in page
    assert "proved optimal" not in page
    assert "proved within" not in page


Change = Callable[[Any], Proof | None]


@every(
    ("engine", "change", "said"),
    [
        *((engine, lambda _: enumerated(MANY, ()), f"proof: the engine {engine} has no such proof") for engine in ("boxes", "expert")),
        *((engine, lambda _: by_boxes(CUT), f"proof: the engine {engine} has no such proof") for engine in ("exhaustive", "milp")),
        *((engine, lambda _: relaxed(SOLVED), f"proof: the engine {engine} has no such proof") for engine in ("boxes",)),
        *((engine, lambda _: UnverifiedBound("hand"), f"proof: the engine {engine} has no such proof") for engine in ("boxes", "milp")),
        *((engine, lambda _: None, "a proof needs a bound or infeasibility, and the reverse") for engine in ("exhaustive", "milp")),
        *((engine, lambda proof: replace(proof, by="hand"), "proof: it is ") for engine in ("boxes", "exhaustive", "milp")),
        ("milp", lambda _: relaxed(replace(SOLVED, solver="cpsat 9.14")), "engine: milp does not solve by cpsat 9.14"),
        ("milp", lambda _: relaxed(replace(SOLVED, form="sealed by the court")), "relaxation: there is no form 'sealed by the court'"),
        ("milp", lambda _: relaxed(replace(SOLVED, plans=10**15)), "relaxation: such numbers cannot be"),
        ("milp", lambda _: relaxed(replace(SOLVED, solver="")), "relaxation: a solver is named without a round, or a round without one"),
    ],
)
def test_proofs_of_others_are_neither_accepted_nor_drawn(
    engine: str, change: Change, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = solved(ask(TINY_FREE), engine)
    forged = replace(result, proof=change(result.proof))
    assert any(reason.startswith(said) for reason in checked(forged).refused)
    assert main(["report", str(file_of(tmp_path, forged)), "--out", str(tmp_path / "page.html")]) == 30
    assert "verification failed" in capsys.readouterr().err
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("field", ["designs", "hardware_points", "plans", "boxes"])
@pytest.mark.parametrize("engine", ["exhaustive", "boxes"])
def test_counts_are_counted_anew_before_they_are_drawn(engine: str, field: str, tmp_path: Path) -> None:
    """Also where the words of the proof were made to fit."""
    result = solved(ask(TINY_FREE), engine)
    proof = result.proof
    assert isinstance(proof, Enumerated | Boxes)
    block = proof.space if isinstance(proof, Enumerated) else proof.tree
    if not hasattr(block, field):
        return
    said = getattr(block, field)
    changed: dict[str, Any] = {field: tuple(one + 1 for one in said) if isinstance(said, tuple) else said + 1}
    more = replace(block, **changed)
    forged = replace(result, proof=by_boxes(more) if isinstance(more, Tree) else enumerated(more, ()))
    assert not checked(forged).accepted
    assert main(["report", str(file_of(tmp_path, forged)), "--out", str(tmp_path / "page.html")]) == 30


def test_an_unproved_enumeration_counts_nothing_that_could_be_false() -> None:
    def impatient(progress: Progress) -> None:
        raise KeyboardInterrupt

    instance = ask(TINY_FREE)
    cut_short = answered(instance, "exhaustive", WHOLE, impatient)
    assert (cut_short.proved, cut_short.proof) == (False, None)
    assert [note.partition(" ")[2] for note in cut_short.notes] == ["of the designs that were priced keep every limit"]
    assert checked(cut_short).accepted
    whole = solved(instance, "exhaustive").proof
    for proof in (enumerated(MANY, ()), whole):
        assert not checked(replace(cut_short, proof=proof)).accepted


def test_plans_are_counted_only_where_they_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = ask(TINY_FREE)
    result = solved(instance, "exhaustive")
    assert isinstance(result.proof, Enumerated)
    assert claims.plans_of(instance) == result.proof.space.plans
    monkeypatch.setattr(claims, "_FEW", 0)
    assert claims.plans_of(instance) is None
    assert claims.faults_of(instance, result) == []


@pytest.mark.slow
def test_answers_for_several_numbers_of_devices_say_what_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question, target = tmp_path / "question.yaml", tmp_path / "answer.json"
    question.write_text(COUNTED, encoding="utf-8")
    told = "accepted, except the bound, which is solver-reported and was not proved again"
    for words, last in (("milp --form log", told), ("milp", "accepted"), ("boxes", "accepted")):
        assert main(["solve", str(question), "--engine", *words.split(), "--out", str(target)]) == 0
        capsys.readouterr()
        assert main(["check", str(target)]) == 0
        assert capsys.readouterr().out.endswith(f"{target}: {last}\n")
        assert main(["report", str(target), "--out", "-"]) == 0
        assert ("solver-reported" in capsys.readouterr().out) == (last == told)


def test_a_forged_answer_for_one_number_of_devices_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question, target = tmp_path / "question.yaml", tmp_path / "answer.json"
    question.write_text(COUNTED, encoding="utf-8")
    assert main(["solve", str(question), "--engine", "boxes", "--out", str(target)]) == 0
    data = json.loads(target.read_text(encoding="utf-8"))
    data["parts"][0]["proof"] = None
    target.write_text(json.dumps(data), encoding="utf-8")
    for command in (["check", str(target)], ["report", str(target), "--out", str(tmp_path / "page.html")]):
        assert main(command) == 30
        written = capsys.readouterr()
        assert "a proof needs a bound or infeasibility, and the reverse" in written.out + written.err


# What a sceptic tried on saved joint designs: ways that claim bounds, whole numbers with points, fronts without ends or questions.


def doubted_refused(data: dict[str, Any], question: Any) -> tuple[str, ...]:  # noqa: ANN401 - of either form
    return check_answer(FAMILY, result_in(data, Designs, EvaluatedDesigns), question).refused


@pytest.mark.parametrize("engine", ["descent", "boxes"])
def test_a_way_tells_no_bound_above_the_one_that_is_told(engine: str) -> None:
    instance = ask(TINY_FREE)
    data = json.loads(to_text(solve(FAMILY, instance, engine, Limits(), unwatched)))
    assert doubted_refused(data, instance) == ()
    data["trace"] = [[0.01, data["value"], 1.01 * data["value"]]]
    assert "the trace does not close in on the value" in doubted_refused(data, instance)


@pytest.mark.parametrize("name", ["tensor", "pipeline", "microbatch", "zero"])
def test_whole_numbers_of_a_plan_have_no_point(name: str) -> None:
    instance = ask(TINY_FREE)
    data = json.loads(to_text(solve(FAMILY, instance, "exhaustive", Limits(), unwatched)))
    plan = data["answer"]["designs"][0]["plan"]
    plan[name] = float(plan[name])
    with pytest.raises(ValueError, match="is no whole number"):
        doubted_refused(data, instance)


def portfolio() -> Portfolio:
    found: Portfolio = read_again({"source": "q.yaml", "text": DESIGNS, "settings": [], "workload": None}, "codesign")
    return found


def test_a_search_for_regrets_that_is_stopped_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The optima alone are told with an answer or the proof that there is none, and with nothing less."""
    found = engines.FINDERS["boxes"]

    def stopped(*arguments: Any) -> Any:  # noqa: ANN401
        return engines.replace(found(*arguments), answer=None, value=None, bound=0.0, stopped="time limit", trace=())

    monkeypatch.setitem(engines.FINDERS, "boxes", stopped)
    result = solve(FAMILY, portfolio(), "boxes", Limits(), unwatched)
    assert (result.status, result.parts) == ("UNKNOWN", ())
    assert check_answer(FAMILY, result, portfolio()).accepted


def test_trees_of_several_workloads_are_believed_where_bounds_are_monotone(monkeypatch: pytest.MonkeyPatch) -> None:
    result = solve(FAMILY, portfolio(), "boxes", Limits(), unwatched)
    assert check_answer(FAMILY, result, portfolio()).accepted

    def broken(part: object) -> None:
        raise workloads.RefusedError("bounds are broken")

    monkeypatch.setattr(workloads, "refuse_broken_bounds", broken)
    assert "bounds are broken" in check_answer(FAMILY, result, portfolio()).refused


def front(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    question, target = tmp_path / "q.yaml", tmp_path / "front.json"
    question.write_text(TINY_FREE.replace("[100 W, 400 W]", "[60 W, 400 W]").replace("[2, 4]", "4"), encoding="utf-8")
    assert main(["solve", str(question), "--pareto", "step_time,power", "--out", str(target)]) == 0
    return target, json.loads(target.read_text(encoding="utf-8"))


@pytest.mark.thorough
def test_a_front_says_how_near_its_ends_are_and_needs_questions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, data = front(tmp_path)
    data["points"][0]["result"]["gap_asked"] = 1e-15
    target.write_text(json.dumps(data), encoding="utf-8")
    assert main(["check", str(target)]) == 30
    assert "they have one gap that was asked for" in capsys.readouterr().out
    for point in data["points"]:
        point["result"]["gap_asked"] = 0.999
    target.write_text(json.dumps(data), encoding="utf-8")
    main(["check", str(target)])
    assert "by more than 99.90%" in capsys.readouterr().out
    for question in ({}, {"settings": 5}, {"settings": []}):
        data["points"][0]["result"]["question"] = question
        target.write_text(json.dumps(data), encoding="utf-8")
        assert (main(["check", str(target)]), main(["report", str(target)])) == (3, 3)
    assert "internal error" not in capsys.readouterr().err


# Every single edit of a saved answer about joint designs is refused: of one workload or several, of several batches, proved or not.

FREE = ("trace", "versions", "notes", "question.text", "question.source", "baselines.0.seconds", "seconds", "seed", "gap_asked")
"""Measured, or chosen by the solver's user: they claim nothing about the question. An edited text is another question, which is tested
beside."""
NEAR = ("proof", "space", "near")
EDITS_WHOLE = {"answer", "value", "bound", "gap", "status", "proof", "details"}


def tiny(*settings: str) -> Instance:
    return read_instance(INSTANCES / "tiny.yaml", settings)


def batches() -> MultiScaleQuestion:
    settings = ["workload.global_batch=[32, 64, 128]", "cluster.devices=8"]
    asked = read_again({"text": COUNTED, "source": "question.yaml", "settings": settings}, "codesign")
    assert isinstance(asked, MultiScaleQuestion)
    return asked


def edits_claims(data: dict[str, Any]) -> list[KeyPath]:
    """The leaves that say something about the question or its answer; in parts only what they do not share with an answer of their own.

    A cut may be moved to another place that proves the same; the tests of the tree say when not.
    """
    found = []
    for path in leaves(data):
        inner = path[2:] if path[0] == "parts" else path
        if not (path[0] == "parts" and len(path) > 3) and "cuts" not in inner and not ".".join(map(str, inner)).startswith(FREE):
            found.append(path)
    return found


@pytest.mark.parametrize("share", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("question", "engine", "edited_here", "least"),
    [
        pytest.param(tiny, "exhaustive", lambda path: True, 70, id="optimal"),
        pytest.param(lambda: tiny("budget.power=100 W"), "exhaustive", lambda path: True, 15, id="infeasible"),
        pytest.param(lambda: ask(TINY_FREE, "objective=die_area"), "exhaustive", lambda path: path[:3] == NEAR, 10, id="near"),
        pytest.param(lambda: ask(TINY_FREE), "plan-only", lambda path: path[0] not in {"engine", "stopped"}, 70, id="unproved"),
        pytest.param(lambda: several(TWO), "boxes", lambda path: True, 100, id="several"),
        pytest.param(lambda: several(TWO, "budget.power=60 W"), "boxes", lambda path: True, 20, id="several-infeasible"),
        pytest.param(
            lambda: several(TWO, "combine=worst_regret", "workloads.0.weight=null"),
            "exhaustive",
            lambda path: True,
            100,
            id="regret",
            marks=pytest.mark.slow,
        ),
        pytest.param(batches, "auto", lambda path: path[0] in EDITS_WHOLE and path != ("proof", "by"), 20, id="batches"),
    ],
)
def test_every_single_edit_is_refused(
    question: Callable[[], Instance | Portfolio | MultiScaleQuestion],
    engine: str,
    edited_here: Callable[[KeyPath], bool],
    least: int,
    share: int,
) -> None:
    """An unproved design may be said to come from any engine that proves nothing: nothing follows from that."""
    asked = question()
    data = json.loads(to_text(answered(asked, engine)))
    paths = [path for path in edits_claims(data) if edited_here(path)]
    assert len(paths) > least
    assert accepted_edits(asked, data, paths[::share]) == []


def test_near_designs_without_one_of_their_choices_are_refused() -> None:
    """Hardware choices too, with figures as options."""
    data = json.loads(to_text(answered(ask(TINY_FREE, "objective=die_area"))))
    near = at(data, NEAR)
    assert {choice["name"] for choice in near} >= {"compute_area", "hbm_stacks", "recompute"}
    for choice in near:
        assert refused(edited(data, NEAR, [other for other in near if other is not choice]))


# Claims that would keep a check busy: what is too much to be carried out again is told, and what takes long says how far it is.


@cache
def large() -> DesignResult:
    """A design of 7e15, which nobody has enumerated."""
    return answered(read_instance(INSTANCES / "gpt3-175b-pathfinding-large.yaml"), "boxes", Limits(gap=0.5))


def test_a_claim_that_more_designs_were_enumerated_than_anybody_can_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    found, instance = large(), read_instance(INSTANCES / "gpt3-175b-pathfinding-large.yaml")
    assert isinstance(found.proof, Boxes)
    [plans] = found.proof.tree.plans
    points = hardware_points(instance)
    proof = enumerated(Space(plans * points, 10, 1, 1, 1, 0, points, plans), ())
    monkeypatch.setattr(prove.exhaustive, "search", None)  # nobody begins with it
    claimed = replace(
        found, engine="exhaustive", proof=proof, bound=found.value, gap=0.0, gap_asked=0.0, status="OPTIMAL", proved=True, trace=()
    )
    report = checked(claimed)
    assert "a bound without a repeatable proof must not be called proved" in report.refused[-1]
    assert report.unverified
    assert "designs were enumerated is told, not done anew (at most 10,000,000,000 are)" in report.checked[-1]
    other = replace(claimed, proof=enumerated(Space(10**15, 10, 1, 1, 1, 0, points, plans), ()))
    assert f"space.designs: {plans * points} follows, the result says {10**15}" in checked(other).refused


def test_who_enumerates_more_than_a_check_does_tells_so_and_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own check would refuse it else."""
    few, question = answered(read_instance(INSTANCES / "tiny.yaml")), INSTANCES / "tiny.yaml"
    monkeypatch.setattr(claims, "COUNTED_AGAIN", 10)
    for instance in (read_instance(question), read_instance(question, ("budget.step_time=1 ns",))):
        told = answered(instance)
        assert (told.status, told.proved, told.settled) == ("FEASIBLE" if told.answer else "UNKNOWN", False, True)
        assert faults_but_proof(FAMILY, told, instance) == []
        report = checked(again(told))
        assert (report.refused, report.unverified) == ((), told.answer is not None)  # boxes show at once that there is none
        assert "enumeration of every design" in " ".join(answer(told).split())
    assert "a bound without a repeatable proof must not be called proved" in checked(few).refused[-1]
    monkeypatch.undo()
    assert "proof: the engine exhaustive has no such proof" in checked(told).refused


def test_the_same_of_several_workloads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "COUNTED_AGAIN", 10)
    told = answered(several(TWO))
    assert (told.status, told.proved, told.settled) == ("FEASIBLE", False, True)
    report = checked(again(told))
    assert (report.refused, report.unverified) == ((), True)
    assert "solver-reported" in " ".join(answer(told).split())


def test_a_check_says_how_far_down_the_tree_it_is() -> None:
    told = list[Progress]()
    assert checked(large(), told.append).accepted
    assert told[0].label.endswith("boxes bounded anew")
    assert (told[0].best, told[0].bound) == (large().value, large().bound)


# Solvers that crash, are missing, are late or lie: one sentence, and never a wrong proof.

ENGINE_OF = {"highs": "milp", "cpsat": "cpsat"}
CRASHES = {"highs": ("milp", "_run_highs"), "cpsat": ("cpsat", "_listener")}
EACH = pytest.mark.parametrize("name", ENGINE_OF)


NOTHING_HIDDEN = ("zero=[0, 1]", "overlap=none", "compute_power={from: 100 W, to: 260 W, step: 20 W}")
"""With which the best recipe is far enough from the optimum that solvers are asked, more than once."""


def quickstart() -> Instance:
    return read_instance(INSTANCES / "quickstart.yaml", NOTHING_HIDDEN)


def with_backend(solve: Backend, within: float | None = None) -> Refined:
    return refine(quickstart(), solve, FORMS["strong"], LEAST_GAP, 60.0, unwatched, within=within)


def crash(*given: object) -> None:
    raise RuntimeError("out of luck")


@pytest.mark.thorough
@EACH
@pytest.mark.usefixtures("solvers_inside")
def test_a_solver_that_crashes_is_named_in_a_sentence(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Inside of it, in its own thread; the command line says the same of the design that was known before."""
    module, function = CRASHES[name]
    monkeypatch.setattr(sys.modules[f"crossopt.solvers.backends.{module}"], function, crash)
    with pytest.raises(SolverError, match=rf"{name} \S+ failed: RuntimeError: out of luck"):
        backend(name)(SMALL, Spend())
    target = tmp_path / "result.json"
    settings = [f"--set={one}" for one in NOTHING_HIDDEN]
    assert main(["solve", "quickstart", *settings, "--engine", ENGINE_OF[name], "--out", str(target)]) == 0
    written = " ".join(capsys.readouterr().out.split())
    assert f"the engine {ENGINE_OF[name]} ended early: {name} " in written
    assert "failed: RuntimeError: out of luck" in written
    assert saved(target).status == "FEASIBLE"
    assert main(["check", str(target)]) == 0


@pytest.mark.usefixtures("solvers_inside")
@pytest.mark.parametrize(("name", "package"), [("highs", "highspy"), ("highs", "pulp"), ("cpsat", "ortools")])
def test_a_solver_that_is_missing_says_how_to_get_it(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [module for module in sys.modules if module.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SolverError, match=f"{name} is not here: pip install {package}, or take another engine, such as boxes"):
        backend(name)(SMALL, Spend())


def lying(lie: Callable[[Answer], Answer]) -> Backend:
    """HiGHS, with something else said of each answer."""
    return lambda model, spend: lie(backend("highs")(model, spend))


def nothing(answer: Answer) -> Answer:
    return replace(answer, status="INFEASIBLE", values=None, value=None, bound=None)


def beyond(answer: Answer) -> Answer:
    """A bound a thousandth above the optimum."""
    return answer if answer.bound is None else replace(answer, bound=answer.bound + answer.bound // 1000)


def test_a_model_that_holds_a_known_design_is_not_called_infeasible() -> None:
    with pytest.raises(
        SolverError, match=r"returned an invalid result: its bound on the step time is \S+ s, and there is a design of \d\.\d+ s"
    ):
        with_backend(lying(nothing), within=0.0)


def test_a_bound_above_a_known_design_is_refused() -> None:
    with pytest.raises(SolverError, match="returned an invalid result: its bound on the step time is"):
        with_backend(lying(beyond), within=0.01)


def test_a_bound_above_a_design_that_is_found_later_is_refused() -> None:
    """From a cold start no design is known when the solver lies; its own next solution gives it away."""
    instance = ask(TINY_FREE, *WIDE)

    def solve(model: Model, spend: Spend) -> Answer:
        answer = backend("highs")(model, spend)
        return answer if answer.bound is None else replace(answer, bound=3 * answer.bound)

    with pytest.raises(SolverError, match="returned an invalid result: its bound on the step time is"):
        loop.refine_among(instance, cold(instance), solve, FORMS["strong"], LEAST_GAP, time.monotonic() + 60, unwatched)


def test_a_solver_that_gives_up_leaves_the_design_and_a_bound_without_a_proof() -> None:
    found = with_backend(lambda model, spend: replace(backend("highs")(model, replace(spend, seconds=0.0)), values=None, value=None))
    assert found.stopped == "time limit"
    assert found.value is not None
    assert found.bound is not None
    assert found.bound < (1.0 - LEAST_GAP) * found.value


@pytest.mark.slow
@EACH
def test_no_solver_is_asked_when_the_time_is_up_and_each_gets_what_is_left(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that goes on by a second whenever it is looked at."""
    now, asked, last = [1000.0], [], [0.0]

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    def solve(model: Model, spend: Spend) -> Answer:
        last[0] = now[0]
        asked.append(spend.seconds)
        return backend(name)(model, replace(spend, seconds=60.0))

    instance = quickstart()
    left = loop.survivors(instance, float("inf"))
    monkeypatch.setattr(loop, "monotonic", clock)
    full = loop.refine_among(instance, left, solve, FORMS["strong"], LEAST_GAP, 1e6, unwatched)
    assert agrees(full, full.value)
    count, now[0] = len(asked), 1000.0
    asked.clear()
    deadline = last[0] - 3.0
    found = loop.refine_among(instance, left, solve, FORMS["strong"], LEAST_GAP, deadline, unwatched)
    assert found.stopped == "time limit"
    assert 0 < len(asked) < count
    assert asked == sorted(asked, reverse=True)
    assert last[0] <= deadline


@EACH
@pytest.mark.slow
def test_time_limits_are_kept(name: str) -> None:
    """On the largest question, which takes every solver minutes."""
    instance = read_instance(INSTANCES / "gpt3-175b-pathfinding-large.yaml")
    result = answered(instance, ENGINE_OF[name], Limits(2.0))
    assert (result.stopped, result.proved) == ("time limit", False)
