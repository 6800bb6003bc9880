"""Checking: a fresh result is accepted, and no figure of it can be edited without a reason to refuse it."""

import json
import re
import sys
from dataclasses import replace
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any

import pytest

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import plan_blocks
from crossopt.solvers.answer import Limits, Progress, SearchOutcome, to_text
from crossopt.solvers.codesign.answer import DesignResult, Designs, answer_of, candidate, candidate_in
from crossopt.solvers.codesign.boxes.branch import root_node
from crossopt.solvers.codesign.claims import by_boxes
from crossopt.solvers.codesign.engines import SEARCHERS
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.codesign.judge import judge, verify
from crossopt.solvers.family import certify
from crossopt.solvers.proofs import Boxes, Enumerated
from tests.every import every
from tests.once import once
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import WHOLE, again, answered, checked, reread
from tests.solvers.codesign.editing import at, edited, refused
from tests.solvers.codesign.questions import GEMM, LSTM, TINY_FREE, ask, random_question

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
    assert report.checked[-1].startswith("the proof was carried out anew")


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
    """Everything in the file is true of this design, agrees with the rest and beats the rival; only a fresh enumeration finds others."""
    instance = random_question(42)
    result = solved(instance)
    (rival,), plans = result.rivals, len(next(iter(plan_blocks(instance))))
    assert result.value is not None
    assert rival.value is not None
    others = (with_design(result, instance, row) for row in range(0, plans, 5) if judged_at(instance, row))
    worse = list(islice((other for other in others if other.value is not None and result.value < other.value <= rival.value), 2))
    assert len(worse) == 2
    for other in worse:
        assert checked(other).refused == (f"bound: no design is below {result.value!r}, the result says {other.value!r}",)


def judged_at(instance: Instance, row: int) -> bool:
    """Whether the design keeps every limit."""
    return not verify(instance, candidate(next(iter(plan_blocks(instance))), row, 0)).violations


def test_a_feasible_question_that_is_claimed_to_be_infeasible_is_refused() -> None:
    empty = {"value": None, "bound": None, "gap": None, "answer": None, "details": None, "rivals": (), "trace": ()}
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
    assert report.refused == ("the proof was not carried to its end: interrupted",)


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
        ({"format": 1}, "this is no result of format 2 (solve the question again: `crossopt solve FILE --out RESULT.json`)"),
        ({"value": "fast"}, "value: 'fast' is no finite number"),
        ({"value": 10**400}, f"value: '1{'0' * 39}' is no finite number"),
        ({"value": True}, "value: 'True' is no finite number"),
        ({"status": "GOOD"}, "status: 'GOOD' is no known word"),
        ({"question": []}, "question: '[]' is no mapping"),
        (
            {"proof": 5},
            "proof.form: 'None' is none of word, counted, steps, enumerated, enumerated-together, boxes, relaxed, exact, parts, priced, "
            "surrounded, swept, on-path, branched, tangents, weighed, chosen, integers",
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
        with pytest.raises(ValueError, match=f"{name} {number} is none of the options"):
            candidate_in(TINY, replace(design, plan=replace(design.plan, **{name: number})))
