"""Results as analysts use them: attributes, tables, data frames and pictures."""

import re
from math import inf
from pathlib import Path
from xml.etree import ElementTree

import pandas
import pytest

import crossopt
from crossopt.instances.errors import RefusedError
from crossopt.reports.comparisons import EngineRun
from crossopt.reports.results import ALIASES, frame_of
from tests.samples import CHAIN

RUN = """\
workload: {model: gpt3-125m, global_batch: 64}
cluster: {devices: 8}
hardware: a100-80g
choices: {tensor: [1, 2], microbatch: [1, 2]}
goal: {tokens: 1e9, rent: 2 USD}
"""
CHIPS = """\
workload: {model: gpt3-125m, global_batch: 64}
cluster: {devices: 8}
technology: accelerator-7nm
budget: {die_area: 815 mm^2, power: 400 W}
choices: {tensor: [1, 2], compute_area: [300 mm^2, 440 mm^2], hbm_stacks: [4, 6]}
"""


@pytest.fixture(scope="module")
def run() -> crossopt.Answer:
    return crossopt.solve(f"kind: codesign\n{RUN}")


@pytest.fixture(scope="module")
def chip() -> crossopt.Answer:
    return crossopt.solve(f"kind: codesign\n{CHIPS}")


@pytest.fixture(scope="module")
def explained() -> crossopt.Explanation:
    return crossopt.explain(f"kind: codesign\n{CHIPS}")


def test_the_days_of_a_run_are_a_deadline_that_it_keeps() -> None:
    """Seconds by 86,400 round down here: as a deadline that would be too short by a last digit."""
    asked = f"kind: codesign\n{RUN.replace('1e9', '1039e6')}"
    run = crossopt.solve(asked)
    assert run.days is not None
    within = asked.replace("rent:", f"deadline: {run.days!r} d, rent:")
    assert crossopt.solve(within).value == run.value


def test_a_run_of_which_failures_leave_nothing_takes_days_without_end() -> None:
    failures = "{mean_time: 1 s, checkpoint: 10 min, restart: 10 min}"
    run = crossopt.solve(f"kind: codesign\n{RUN.replace('devices: 8', f'devices: 8, failures: {failures}')}")
    assert run.days == inf


def test_an_answer_has_what_an_analyst_asks_for(run: crossopt.Answer) -> None:
    found = run.evaluation
    assert run.has_design
    assert (run.plan, run.step_time, run.mfu, run.memory) == (found.plan, found.step_time, found.mfu, found.memory)
    assert run.value == found.value == run.step_time
    assert run.unit == "s"
    assert found.memory_used == sum(found.memory.values()) == pytest.approx(sum(run.details.evaluation.memory.values()))
    assert found.hfu >= found.mfu == run.details.evaluation.utilisation
    steps = -(-(10**9) // (64 * 2048))
    assert run.days == pytest.approx(steps * run.step_time / 86400)
    assert run.money == pytest.approx(8 * 2.0 * steps * run.step_time / 3600)
    assert run.proof is not None
    assert {one.name for one in run.baselines}
    assert run.trace[-1][1] == run.value


def test_an_answer_without_a_training_plan_says_so() -> None:
    answer = crossopt.solve(CHAIN)
    assert not answer.has_design
    with pytest.raises(RefusedError, match="about chains of layers"):
        _ = answer.mfu
    none = crossopt.solve("tiny", settings={"budget.step_time": "1 ms"})
    with pytest.raises(RefusedError, match="no design keeps every limit"):
        _ = none.plan


def test_answers_over_several_workloads_and_numbers_have_each_evaluation() -> None:
    two = crossopt.solve("two-models-one-chip", time_limit=20)
    assert [one.value for one in two.evaluations] == [share.value for share in two.details.shares]
    counts = crossopt.solve("tiny", settings={"cluster.devices": [4, 8], "tensor": 1})
    assert counts.evaluation.question.cluster.devices == counts.answer.devices
    assert counts.evaluation.figures == counts.details.evaluation


def test_a_chip_has_its_choices_and_pictures(chip: crossopt.Answer, tmp_path: Path) -> None:
    found = chip.evaluation
    assert set(found.hardware.choices) == {"compute_area", "hbm_stacks"}
    assert {limit.name for limit in found.limits} >= {"memory", "die area", "power"}
    assert found.row["hbm_stacks"] == found.hardware.choices["hbm_stacks"]
    names = [*ALIASES, "roofline", "power-is-drawn-by"]
    for name in names:
        picture = chip.plot(name)
        assert ElementTree.fromstring(picture.svg).tag.endswith("svg")
        assert picture._repr_svg_() == picture.svg
    assert chip.plot("breakdown").save(tmp_path / "step.svg").read_text() == chip.plot("breakdown").svg
    pytest.importorskip("reportlab")
    assert chip.plot("roofline").save(tmp_path / "roofline.pdf").read_bytes().startswith(b"%PDF")


def test_one_design_has_the_pictures_of_its_sheet(chip: crossopt.Answer) -> None:
    single = crossopt.evaluate(chip.question, chip)
    assert single.plot().name == "where-the-step-goes"
    without_ids = [re.sub(r"figure-\d+", "figure", one.plot("timeline").svg) for one in (single, chip)]
    assert without_ids[0] == without_ids[1]
    assert str(single).startswith(single.question.name)
    assert "step time" in single._repr_html_()


def test_what_is_printed_fits_on_a_screen_and_what_is_shown_in_lists_on_a_line(run: crossopt.Answer, chip: crossopt.Answer) -> None:
    many = crossopt.sweep(f"kind: codesign\n{RUN}", {"tensor": [1, 2, 4], "microbatch": [1, 2], "cluster.devices": [4, 8]})
    front = crossopt.front(f"kind: codesign\n{CHIPS}", "step_time", "die_area", points=4)
    objects = [run, chip, run.evaluation, many, front, crossopt.compare("tiny", ["boxes", "expert"]), crossopt.explain("tiny")]
    objects += [crossopt.solve(CHAIN), many[0], front[0], run.plot("breakdown")]
    for one in objects:
        assert len(str(one).splitlines()) <= 24, type(one)
        assert "\n" not in repr(one)
        assert len(repr(one)) < 250, type(one)
    assert len(many) == 12
    assert "6 rows more: `to_frame()`" in str(many)
    assert run.evaluation.design.plan_label in str(run.evaluation)
    assert "`text`" in str(run)
    assert "--verbose" not in str(run)
    assert len(run.text) > len(str(run))


@pytest.mark.parametrize("name", ["tiny", "two-models-one-chip", "gpt3-13b-on-8", "gpt2-two-versions", "three-models-4096"])
def test_a_question_is_shown_by_its_type_and_name(name: str) -> None:
    question = crossopt.read(name)
    assert repr(question) == f"<{type(question).__name__} {name}>"


def test_sweeps_and_explanations_are_drawn(explained: crossopt.Explanation) -> None:
    swept = crossopt.sweep("tiny", {"cluster.devices": [4, 8, 7], "tensor": [1, 2]})
    picture = swept.plot()
    assert picture.name == swept.plots[0]
    described = ElementTree.fromstring(picture.svg).findtext("{http://www.w3.org/2000/svg}desc")
    assert described is not None
    value = swept[0].answer.value  # type: ignore[union-attr]
    assert described.startswith(f"tensor=1: {value:.6g}")
    assert described.count("none") == 2
    drawn = explained.plot().svg
    assert all(name in drawn for name in explained.binding)
    idle = [effect.name for effect in explained.effects if effect.reason == "not opened" and not effect.gain]
    assert idle
    assert not any(name in drawn for name in idle)
    with pytest.raises(RefusedError, match="no restriction has a gain"):
        crossopt.explain("tiny", {"budget.step_time": "1 ms"}).plot()
    with pytest.raises(RefusedError, match="no values above zero"):
        crossopt.sweep("tiny", {"budget.step_time": ["1 ms"]}).plot()


def test_an_unknown_picture_names_those_that_there_are(run: crossopt.Answer) -> None:
    with pytest.raises(RefusedError, match=r"'rofline' is no picture of this result \(did you mean 'roofline'\?"):
        run.plot("rofline")
    with pytest.raises(RefusedError, match="several pictures"):
        run.plot("the")


def test_figures_are_rows_of_a_data_frame(run: crossopt.Answer) -> None:
    frame = run.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert run.value in set(frame["value"])
    single = run.evaluation.to_frame().set_index("name")["value"]
    assert single["step time"] == run.step_time
    assert single["days"] == run.days
    assert list(frame_of([run.evaluation.row])["tensor"]) == [run.plan.tensor]


def test_an_explanation_has_the_effect_of_every_limit(chip: crossopt.Answer, explained: crossopt.Explanation) -> None:
    found = explained
    assert found.conflict == ()
    assert str(found) == found.text
    reasons = {effect.reason for effect in found.effects}
    assert {"limit", "range end"} <= reasons
    for effect in found.effects:
        assert effect.gain is None or effect.value is None or effect.gain == max(1.0 - effect.value / float(chip.value or 0), 0.0)
    assert set(found.binding) == {effect.name for effect in found.effects if effect.gain}
    assert list(found.to_frame().columns) == ["workload", "reason", "name", "now", "raised", "value", "gain", "complete"]


def test_an_explanation_of_what_has_no_design_names_the_conflict() -> None:
    found = crossopt.explain("tiny", {"budget.step_time": "1 ms"})
    assert found.conflict == ("step_time",)
    [effect] = found.effects
    assert (effect.now, effect.raised) == (0.001, pytest.approx(crossopt.solve("tiny").value, rel=0.2))


def test_a_comparison_is_a_sequence_of_runs() -> None:
    found = crossopt.compare("tiny", ["boxes", "expert"])
    assert [type(one) for one in found] == [EngineRun] * len(found)
    assert found.best.engine == found[0].engine == "boxes"
    assert list(found.to_frame()["engine"]) == ["boxes", "expert"]
    assert "how-far-above-the-bound-each-engine-ends" in found.plots
    assert found.plot("how-far").svg.startswith("<svg")
    chain = crossopt.compare(CHAIN)
    assert chain.plots == ()
    assert {one.value for one in chain if one.proved} == {chain.best.value}


def test_a_sweep_has_a_row_for_each_combination() -> None:
    found = crossopt.sweep("tiny", {"cluster.devices": [4, 8, 7], "tensor": [1, 2]})
    assert [dict(point.settings) for point in found][:3] == [
        {"cluster.devices": 4, "tensor": 1},
        {"cluster.devices": 4, "tensor": 2},
        {"cluster.devices": 8, "tensor": 1},
    ]
    frame = found.to_frame()
    assert len(frame) == 6
    assert found[5].answer is None
    assert "the 7 devices" in found[5].note
    assert frame["value"].min() == found.best.answer.value  # type: ignore[union-attr]
    assert list(frame["step_time"][:4]) == [point.answer.step_time for point in found[:4]]  # type: ignore[index]
    with pytest.raises(crossopt.InstanceError, match="unknown key"):
        crossopt.sweep("tiny", {"tensr": [1, 2]})


def test_a_front_has_no_point_that_is_worse_in_both() -> None:
    found = crossopt.front(f"kind: codesign\n{CHIPS}", "step_time", "die_area", points=4)
    assert found.proved
    pairs = [(point.first, point.second) for point in found]
    assert pairs == sorted(pairs)
    assert [second for _, second in pairs] == sorted((second for _, second in pairs), reverse=True)
    assert len(pairs) > 1
    assert list(found.to_frame()["die_area"]) == [point.evaluation.figures.die_area for point in found]
    assert found.plot().name == "the-front"
    with pytest.raises(ValueError, match="'speed' is no figure of a front"):
        crossopt.front("tiny", "step_time", "speed")
