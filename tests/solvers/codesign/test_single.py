"""Single designs priced from their choices alone: the same figures, to the last bit, as by the judge, in blocks, and read anew."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crossopt
from crossopt.crossflow.plan import END_STAGES, Plan, Plans, plan_at
from crossopt.crossflow.transformer import price
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.space import device_at, draw_plans, hardware_choice, hardware_points
from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.solvers.codesign.answer import Candidate
from crossopt.solvers.codesign.judge import evaluate_choices, evaluate_single, verify
from tests.extent import FULL

LISTED = ("tiny", "small", "quickstart", "llama3-405b-1024xh100", "mixtral-8x7b-64xh100", "gpt3-175b-512xa100-offload")
OPEN = {
    "kind": "codesign",
    "workload": {"model": "deepseek-v3", "global_batch": 512, "precision": "fp8"},
    "cluster": {"devices": 256},
    "hardware": "h100-sxm",
    "choices": "all",
}
"""Experts, latents, casts, split schedules and stages with fewer layers at the ends."""
Source = str | dict[str, Any]
QUESTIONS: tuple[Source, ...] = (*LISTED, OPEN)
_DRAWN = 40 if FULL else 15
_KEPT = ("tensor", "context", "pipeline", "data", "expert", "microbatch", "expert_tensor", "recompute", *END_STAGES)
"""Settings without which most drawn designs are none."""


def drawn(instance: Instance, count: int = _DRAWN) -> list[Candidate]:
    """Random designs of a question."""
    random = np.random.default_rng(11)
    plans = draw_plans(instance, random, 40 * count)
    assert isinstance(plans, Plans)
    rows = random.permutation(len(plans))[:count]
    return [Candidate(int(random.integers(hardware_points(instance))), plan_at(plans, int(row))) for row in rows]


def choices_of(instance: Instance, design: Candidate) -> dict[str, Any]:
    """The open choices of a design."""
    plan = asdict(design.plan)
    return {**{name: plan[name] for name, values in instance.plan_options if len(values) > 1}, **hardware_choice(instance, design.point)}


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_one_design_costs_what_the_judge_and_the_question_with_its_choices_say(question: Source) -> None:
    instance, counted = crossopt.read(question), 0
    for design in drawn(instance):
        choices = choices_of(instance, design)
        try:
            verdict = verify(instance, design)
        except ValueError:
            with pytest.raises((InstanceError, ValueError)):
                crossopt.evaluate(instance, choices)
            continue
        found = crossopt.evaluate(instance, choices)
        assert (found.value, found.step_time, found.plan) == (verdict.value, verdict.details.step_time, design.plan)
        assert found.figures.likely_by_constants == verdict.details.likely
        assert found.breakdown == dict(verdict.details.breakdown)
        assert found.memory == dict(verdict.details.memory)
        counted += 1
    assert counted > _DRAWN / 4


@pytest.mark.parametrize("question", ("tiny", "quickstart", OPEN), ids=str)
def test_choices_that_come_to_another_setting_are_priced_as_the_question_that_they_leave(question: Source) -> None:
    """As an interleaved schedule without stages: options as they are written, of which few are the plan's own."""
    instance = crossopt.read(question)
    random, alike = np.random.default_rng(5), 0
    free = instance.hardware.options if isinstance(instance.hardware, FreeHardware) else ()
    for design in drawn(instance, 20):
        own = choices_of(instance, design)
        options = (*free, *instance.plan_options)
        choices = {name: values[int(random.integers(len(values)))] for name, values in options if len(values) > 1}
        choices |= {name: own[name] for name in _KEPT if name in own}
        quick = evaluate_choices(instance, choices)
        try:
            read_anew = crossopt.evaluate(question, settings=choices)
        except InstanceError:
            assert quick is None
            continue
        assert quick is None or (quick.evaluation, quick.design) == (read_anew.figures, read_anew.design)
        alike += quick is not None
    assert alike > 2


@pytest.mark.parametrize("question", ("tiny", "llama3-405b-1024xh100", OPEN), ids=str)
def test_one_design_costs_what_it_costs_in_a_block(question: Source) -> None:
    instance = crossopt.read(question)
    plans = draw_plans(instance, np.random.default_rng(3), 400)
    block = price(instance.workload, device_at(instance, 0), instance.cluster, plans)
    for row in range(0, len(plans), max(1, len(plans) // _DRAWN)):
        found = crossopt.evaluate(instance, choices_of(instance, Candidate(0, plan_at(plans, row))))
        assert (found.step_time, found.energy) == (float(block.step_time[row, 0]), float(block.energy[row, 0]))
        assert sum(found.memory.values()) >= float(block.memory[row, 0])


def test_a_question_is_read_once_and_again_when_its_file_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "question.yaml"
    text = crossopt.read("tiny").document["text"]
    path.write_text(text)
    design = {"tensor": 4, "pipeline": 1, "microbatch": 2, "recompute": "none"}
    first, again = crossopt.evaluate(path, design), crossopt.evaluate(path, design)
    assert first.question is again.question
    path.write_text(text.replace("global_batch: 32", "global_batch: 64"))
    assert crossopt.evaluate(path, design).question is not first.question


def test_what_is_no_design_is_said_by_the_question() -> None:
    with pytest.raises(InstanceError, match="several designs are left"):
        crossopt.evaluate("tiny", {"tensor": 4})
    with pytest.raises(InstanceError, match="no tensor x context x pipeline x data is the 8 devices"):
        crossopt.evaluate("tiny", {"tensor": 8, "pipeline": 8, "microbatch": 1, "recompute": "none"})
    with pytest.raises(InstanceError, match=r"choices\.tensr: unknown key"):
        crossopt.evaluate("tiny", {"tensr": 4})
    answer = crossopt.solve("tiny")
    with pytest.raises((RefusedError, ValueError), match="not among the options"):
        crossopt.evaluate("tiny", answer.evaluation.design, settings={"tensor": [1] if answer.plan.tensor > 1 else [2]})


def test_a_plan_beside_the_options_is_priced_all_the_same() -> None:
    """As `--set` lays a value over the question's own."""
    plan = {
        "tensor": 2,
        "pipeline": 1,
        "data": 32,
        "microbatch": 2,
        "interleave": 1,
        "sequence_parallel": True,
        "zero": 1,
        "overlap": "none",
    }
    chip = {"compute_area": "440 mm^2", "l2_area": 5.1e-5, "compute_power": "200 W", "hbm_stacks": 6}
    found = crossopt.evaluate("quickstart", {**plan, "recompute": "none", **chip})
    assert found.hardware.choices["l2_area"] == 5.1e-5
    assert isinstance(found.plan, Plan)
    assert found.plan.tensor == 2
    assert evaluate_single(found.question).value == found.value
