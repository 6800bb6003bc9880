"""One step over time: its passes add up to what the model charges, whatever the plan, and its picture shows them all."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from crossopt.crossflow.evaluate import Design, evaluate
from crossopt.crossflow.hardware import Cluster, Hardware
from crossopt.crossflow.pipeline import slots
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.transformer import parts_of, terms
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.question import read_instance
from crossopt.reports.facts import schedule
from crossopt.reports.facts.schedule import Step, step_of, step_on
from crossopt.reports.render.html import Page, page, section_html
from crossopt.reports.sheets.codesign.step import step_section
from tests.paths import INSTANCES
from tests.reports.answers import answered, design_of
from tests.reports.look import faults_in_a_browser, looked_at
from tests.solvers.codesign.questions import GEMM, ask

PLANS = {
    "one stage": Plan(tensor=8, data=128, microbatch=1, recompute="none", zero=3, overlap="data"),
    "1f1b": Plan(tensor=8, pipeline=16, data=8, microbatch=1, recompute="full", sequence_parallel=True, overlap="pipeline"),
    "uneven": Plan(tensor=8, pipeline=64, data=2, microbatch=2, recompute="selective"),
    "interleaved": Plan(tensor=8, pipeline=8, data=16, microbatch=1, interleave=4, recompute="selective", zero=1, overlap="data"),
    "many chunks": Plan(tensor=4, pipeline=32, data=8, microbatch=1, interleave=3, recompute="full", zero=2),
    "few microbatches": Plan(tensor=4, pipeline=4, data=64, microbatch=6, interleave=2),
    "put off": Plan(tensor=8, pipeline=16, data=8, microbatch=1, zero=1, overlap="both", schedule="zero-bubble"),
    "put off, two chunks": Plan(tensor=8, pipeline=8, data=16, microbatch=1, interleave=2, schedule="zero-bubble"),
    "both ways": Plan(tensor=8, pipeline=8, data=16, microbatch=1, zero=1, overlap="both", schedule="dualpipe"),
    "in a v": Plan(tensor=8, pipeline=8, data=16, microbatch=1, interleave=2, schedule="zero-bubble-v"),
}


def asked() -> tuple[Transformer, Hardware, Cluster]:
    instance = read_instance(INSTANCES / "gpt3-175b-1024xa100.yaml", ())
    assert isinstance(instance.workload, Transformer)
    assert isinstance(instance.hardware, Hardware)
    return instance.workload, instance.hardware, instance.cluster


def stepped(name: str) -> Step:
    step = step_on(*asked(), PLANS[name])
    assert step is not None
    return step


@pytest.mark.parametrize("name", PLANS)
def test_passes_and_what_follows_add_up_to_the_step_that_the_model_charges(name: str) -> None:
    model, hardware, cluster = asked()
    step = stepped(name)
    assert step.total == evaluate(model, Design(hardware, cluster, PLANS[name])).step_time
    assert step.pipeline + sum(seconds for _, seconds in step.after) == pytest.approx(step.total, rel=1e-14)
    slowest, late = max(one.total for one in step.passes), max(one.weights for one in step.passes)
    closed = (step.microbatches - 1.0 / step.chunks) * slowest + sum(one.total for one in step.passes) / step.chunks
    closed -= 2.0 * (len(step.passes) - 1.0) * late / step.chunks  # of equal layers, where gradients of weights are put off
    assert step.pipeline == pytest.approx(closed, rel=1e-12) or PLANS[name].schedule in ("zero-bubble-v", "dualpipe")
    plans = table([PLANS[name]])
    slot = slots(terms(model, hardware, plans, parts_of(model, hardware, cluster, plans)))
    assert step.passes[0].total == pytest.approx(float(np.squeeze(slot.first + slot.backward)), rel=1e-12)
    assert step.passes[-1].total == pytest.approx(
        float(np.squeeze((slot.last if len(step.passes) > 1 else slot.first) + slot.backward)), rel=1e-12
    )
    assert all(min(one.forward, one.sent, one.again, one.backward, one.returned) >= 0.0 for one in step.passes)


def test_passes_of_both_ways_end_about_when_the_model_says() -> None:
    """Each device is at work on all microbatches, half of them of each of its stages, which differ by embedding and head alone."""
    step = stepped("both ways")
    assert step.both_ways
    assert step.drained == pytest.approx(step.pipeline, rel=0.01)
    assert {run.chunk for run in step.runs} == {0, 1}


@pytest.mark.parametrize("name", ["one stage", "1f1b", "interleaved", "put off", "put off, two chunks"])
def test_where_the_last_stage_is_the_fullest_the_passes_end_when_the_model_says(name: str) -> None:
    step = stepped(name)
    assert step.passes[-1].total == max(one.total for one in step.passes)
    assert step.drained == pytest.approx(step.pipeline, rel=1e-9)


@pytest.mark.parametrize("name", ["one stage", "1f1b", "interleaved", "many chunks", "put off"])
def test_leaving_microbatches_out_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = stepped(name)
    assert whole.skipped == 0
    monkeypatch.setattr(schedule, "MOST", len(whole.runs) - 1)
    short = stepped(name)
    assert short.skipped > 0
    assert len(short.runs) == len(whole.runs) // whole.microbatches * (whole.microbatches - short.skipped)
    assert short.drained == pytest.approx(whole.drained, rel=1e-9)


def test_too_many_passes_are_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "MOST", 100)
    assert step_on(*asked(), PLANS["1f1b"]) is None
    assert step_section(None).parts == ()


@pytest.mark.parametrize("name", PLANS)
def test_the_picture_says_what_it_shows_and_is_small(name: str) -> None:
    section = section_html(step_section(stepped(name)))
    looked_at(page(Page("step", (section,), {})))
    assert len(section) < 115_000


@pytest.mark.browser
@pytest.mark.parametrize("name", [name if name == "interleaved" else pytest.param(name, marks=pytest.mark.slow) for name in PLANS])
def test_nothing_overlaps_in_a_browser(name: str, tmp_path: Path) -> None:
    text = page(Page("step", (section_html(step_section(stepped(name))),), {}))
    assert faults_in_a_browser(text, tmp_path, 500) == []


def test_all_passes_of_a_short_step_are_drawn() -> None:
    step = stepped("few microbatches")
    text = section_html(step_section(step)).split('class="for-narrow"')[0]
    shapes = re.findall(r'<path class="k(\d) cut fine" d="([^"]*)"', text)
    drawn = Counter[int]()
    for kind, way in shapes:
        drawn[int(kind)] += way.count("M")
    passes = Counter(run.backward for run in step.runs)
    assert (drawn[0], drawn[1]) == (passes[False], passes[True])
    assert "left out" not in text


def test_a_use_keeps_the_letter_that_it_has_already() -> None:
    text = section_html(step_section(stepped("few microbatches"), uses=("compute", "optimizer")))
    keys = dict(re.findall(r'<span class="key"><span class="swatch b\d">(\w)</span> ([^<]*)</span>', text))
    assert (keys["B"], keys["C"]) == ("optimizer", "forward")
    assert "A" not in keys, "nothing is drawn of it"


def test_other_workloads_have_no_such_step() -> None:
    instance = ask(GEMM)
    design = design_of(answered(instance))
    assert step_of(instance, design) is None


def test_stages_that_do_the_same_share_a_row() -> None:
    text = section_html(step_section(stepped("uneven")))
    assert "stages 2 to 33" in text
    assert "stages 34 to 63" in text
