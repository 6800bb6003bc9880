"""The integer model against the full one: each term below its own figure, the step as both price it, and a section that says so."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from crossopt.crossflow.plan import table
from crossopt.crossflow.workload import Transformer
from crossopt.formulation.codesign.choices import chip_of
from crossopt.formulation.codesign.tangent import tangents_at
from crossopt.instances.codesign.boxes import full_box, grid, option_indices
from crossopt.instances.codesign.instance import Instance
from crossopt.reports.facts.linear import linear_of
from crossopt.reports.facts.uses import STEP, Linearized
from crossopt.reports.render.html import Page, page, section_html
from crossopt.reports.sheets.codesign.design import linear_section
from crossopt.solvers.codesign.answer import DesignResult, candidate_in, relaxation_in
from crossopt.solvers.proofs import Relaxation
from tests.paths import INSTANCES
from tests.reports.answers import answered, design_of, words_of
from tests.reports.look import faults_in_a_browser, looked_at
from tests.solvers.codesign.questions import GEMM, TINY_FREE, ask

FORM = Relaxation("a solver", 1, 7, "strong", 3)
QUICKSTART = (INSTANCES / "quickstart.yaml").read_text(encoding="utf-8")
GIVEN = """\
kind: codesign
workload: {model: gpt3-125m, global_batch: 64}
cluster: {devices: 8, devices_per_node: 4}
hardware: a100-80g
choices: {tensor: [1, 2], pipeline: [1, 2]}
"""


@cache
def quickstart(engine: str) -> tuple[Instance, DesignResult]:
    instance = ask(QUICKSTART)
    return instance, answered(instance, engine)


def linear() -> Linearized:
    instance, result = quickstart("milp")
    relaxation = relaxation_in(result)
    assert relaxation is not None
    found = linear_of(instance, design_of(result), relaxation)
    assert found is not None
    return found


@pytest.mark.slow
def test_no_term_is_above_what_it_bounds() -> None:
    found = linear()
    assert found.chips > 20
    for term in found.terms:
        assert term.linear <= term.full * (1.0 + 1e-12)
        assert term.worst is not None
        assert term.worst >= -1e-12
    assert all(low <= full * (1.0 + 1e-12) for low, full in found.step)
    assert max(1.0 - low / full for low, full in found.step) == pytest.approx(found.terms[-1].worst)


@pytest.mark.slow
def test_the_step_is_the_result_s_and_the_tangent_the_engine_s() -> None:
    instance, result = quickstart("milp")
    step = linear().terms[-1]
    assert step.name == STEP
    assert step.full == pytest.approx(result.value, rel=1e-12)
    chosen, space, model = candidate_in(instance, design_of(result)), grid(instance), instance.workload
    assert isinstance(model, Transformer)
    chip = chip_of(instance, space, full_box(space))
    point = chip.point(option_indices(space, chosen.point))
    tangent = tangents_at(model, instance.cluster, chip, table([chosen.plan]), np.array([0]), point)  # type: ignore[list-item]
    assert float(tangent.at(chip, point)[0]) == pytest.approx(step.linear, rel=1e-7)
    assert float(tangent.at(chip, point)[0]) <= step.linear


def test_the_same_chips_are_drawn_again() -> None:
    assert linear() == linear()


def test_only_results_of_integer_models_have_the_section() -> None:
    _, result = quickstart("boxes")
    assert relaxation_in(result) is None
    assert linear_section(None).parts == ()


def test_a_chip_that_is_given_needs_nothing_linear() -> None:
    instance = ask(GIVEN)
    found = answered(instance)
    given = linear_of(instance, design_of(found), FORM)
    assert given == Linearized("strong", 1, 7, (), 0)
    assert "The chip is given" in words_of(linear_section(given))


def test_where_no_round_ran_the_section_credits_no_form() -> None:
    found = replace(linear(), rounds=0, tangents=1286)
    text = words_of(linear_section(found))
    assert "No round of the integer model ran" in text
    assert "1,286 of them, at the best design known" in text
    for claim in ("The bound was found with", "make the bound"):
        assert claim not in text
        assert claim in words_of(linear_section(replace(found, rounds=2)))
    alone = words_of(linear_section(replace(found, terms=(), tangents=0)))
    assert "No round" in alone
    assert "tangents" not in alone


def test_few_chips_are_drawn_once_each() -> None:
    instance = ask(TINY_FREE)
    found = answered(instance, "milp")
    few = linear_of(instance, design_of(found), FORM)
    assert few is not None
    assert 0 < few.chips < 12


def test_other_workloads_have_none() -> None:
    instance = ask(GEMM)
    found = answered(instance)
    assert linear_of(instance, design_of(found), FORM) is None


def test_a_tangent_above_the_step_would_be_told() -> None:
    found = linear()
    wrong = replace(found, step=((2.0, 1.0), *found.step))
    assert "which no bound may be" in section_html(linear_section(wrong))
    assert "which no bound may be" not in section_html(linear_section(found))


@pytest.mark.browser
@pytest.mark.parametrize("width", [500, pytest.param(1200, marks=pytest.mark.slow)])
def test_the_section_fits_and_nothing_overlaps(width: int, tmp_path: Path) -> None:
    text = page(Page("linear", (section_html(linear_section(linear())),), {}))
    [picture] = looked_at(text).pictures
    assert len([dot for dot in picture.iter("circle") if dot.get("class") == "hollow"]) == linear().chips
    assert faults_in_a_browser(text, tmp_path, width) == []
