"""Lists of devices and precisions: a question for each, the best of them, and how far the others are."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from crossopt.instances.catalogue.registry import entry_text
from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion
from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read, read_again
from crossopt.reports.cli import main
from crossopt.reports.sheets.codesign.several import ranking
from crossopt.reports.sheets.sheet import Table
from crossopt.reports.shown import page_of, text_of
from crossopt.solvers.codesign.answer import DesignResult
from tests.extent import some
from tests.solvers.codesign.asking import again, answered, checked

QUESTION = """\
kind: codesign
workload: {model: gpt3-125m, global_batch: 64, sequence: 2048}
cluster: {devices: 8, devices_per_node: 8}
hardware: [a100-40g, h100-sxm, mi300x]
choices: {tensor: [1, 2], microbatch: [1, 2], recompute: [none, full]}
goal: {tokens: 1e12}
objective: run_cost
"""
BOTH = ("hardware=[h100-sxm, b200]", "workload.precision=[bf16, fp8]")


def asked(*settings: str, text: str = QUESTION) -> MultiScaleQuestion:
    found = read_again({"text": text, "source": "question.yaml", "settings": list(settings)}, "codesign")
    assert isinstance(found, MultiScaleQuestion)
    return found


def alone(*settings: str, text: str = QUESTION) -> DesignResult:
    found = read_again({"text": text, "source": "question.yaml", "settings": list(settings)}, "codesign")
    assert isinstance(found, Instance)
    return answered(found)


@pytest.mark.parametrize(
    ("engine", "objective"), some(list(product(("auto", "boxes", "exhaustive"), ("run_cost", "step_time", "energy_per_token"))), 4)
)
def test_each_device_is_answered_as_if_it_were_asked_about_alone(engine: str, objective: str) -> None:
    question = asked(f"objective={objective}")
    result = again(answered(question, engine))
    single = [alone(f"objective={objective}", f"hardware={name}") for name in ("a100-40g", "h100-sxm", "mi300x")]
    values = [one.value for one in single if one.value is not None]
    assert [part.value for part in result.parts] == values
    assert (result.status, result.value, result.bound) == ("OPTIMAL", min(values), min(values))
    assert result.answer is not None
    assert result.answer.network == ("a100-40g", "h100-sxm", "mi300x")[values.index(min(values))]
    assert checked(result).refused == ()


def test_devices_and_precisions_are_asked_about_in_pairs_and_batches_beside_them() -> None:
    question = asked(*BOTH, "workload.global_batch=[32, 64]")
    pairs = [(name, form) for name in ("h100-sxm", "b200") for form in ("bf16", "fp8")]
    assert [place.network for place in question.scales] == [f"{name}, {form}" for name, form in pairs for _ in range(2)]
    assert question.batches == (32, 64) * 4
    result = answered(question)
    single = [
        alone(f"hardware={name}", f"workload.precision={form}", f"workload.global_batch={batch}").value
        for name, form in pairs
        for batch in (32, 64)
    ]
    assert [part.value for part in result.parts] == single
    assert checked(result).refused == ()


def test_the_fewest_devices_are_those_of_any_kind() -> None:
    settings = ("cluster.devices=[4, 8, 16]", "objective=devices", "hardware=[a100-40g, h100-sxm]")
    days = [alone("cluster.devices=4", f"hardware={name}") for name in ("a100-40g", "h100-sxm")]
    steps = [one.details.evaluation.step_time for one in days]
    between = (steps[0] + steps[1]) / 2.0 * -(-(10**12) // (64 * 2048))
    result = answered(asked(*settings, f"goal={{tokens: 1e12, deadline: {between!r} s}}"))
    assert result.answer is not None
    assert (result.value, result.answer.devices, result.answer.network) == (4.0, 4, "h100-sxm")
    assert checked(result).refused == ()


def test_a_forged_comparison_is_refused() -> None:
    result = answered(asked())
    assert result.answer is not None and result.value is not None
    for other in ("a100-40g", "b200", ""):
        if other != result.answer.network:
            assert checked(replace(result, answer=replace(result.answer, network=other))).refused
    assert checked(replace(result, value=result.value * 0.9, bound=result.value * 0.9)).refused
    worst = max(result.parts, key=lambda part: part.value or 0.0)
    place = result.parts.index(worst)
    assert worst.answer is not None
    dearer = worst.answer.at_scale(asked().scales[place])
    assert checked(replace(result, answer=dearer, value=worst.value, details=worst.details)).refused


def test_a_device_that_cannot_be_asked_about_is_told_beside_the_others() -> None:
    question = asked("hardware=[a100-40g, v100-16g]")
    assert [place.network for place in question.scales] == ["a100-40g"]
    assert [(place.network, why) for place, why in question.impossible] == [
        ("v100-16g", "v100-16g does not compute in bf16 (one of fp32, fp16)")
    ]
    text = text_of("codesign", question, answered(question))
    assert "v100-16g does not compute in bf16" in " ".join(text.split())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("hardware=[a100-40g, a100-40g]",), "hardware[1]: it is named twice (name each once)"),
        (("hardware=[a100-40g, h1000]",), "hardware[1]: 'h1000' is no known device"),
        (("hardware=[a100-40g, {peak: {bf16: 1 TFLOP/s}}]",), "hardware[1]: each of several is a name or the path of a file"),
        (("workload.precision=[bf16, int8]",), "workload.precision[1]: 'int8' is no precision (one of fp32, bf16"),
        (("hardware=[v100-16g, v100-32g]",), "v100-16g does not compute in bf16"),
        (("cluster.devices=0",), "cluster.devices: "),
        (("goal.rents={h100-smx: 2 USD}",), "goal.rents.h100-smx: there is no such device (did you mean h100-sxm?"),
        (("goal={tokens: 1e9}", "hardware=[trainium2]"), "objective: what a run costs needs its tokens and a rent"),
    ],
)
def test_a_list_without_sense_is_refused_once(settings: tuple[str, ...], message: str) -> None:
    with pytest.raises(InstanceError) as refused:
        read_again({"text": QUESTION, "source": "question.yaml", "settings": list(settings)}, "codesign")
    assert message in str(refused.value)
    assert str(refused.value).count(message) == 1


def test_each_device_has_its_rent() -> None:
    question = asked("goal.rents={a100-40g: 0.5 USD, h100-sxm: 9 USD}")
    assert [part.goal and part.goal.rent for part in question.parts] == [0.5, 9.0, 3.45]
    given = asked("goal.rent=2 USD", "goal.rents={mi300x: 1 USD}")
    assert [part.goal and part.goal.rent for part in given.parts] == [2.0, 2.0, 1.0]


def test_a_device_of_a_file_is_compared_and_saved_with_the_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.yaml").write_text(entry_text("hardware", "a100-40g").replace("bf16: 312 TFLOP/s", "bf16: 624 TFLOP/s"))
    (tmp_path / "question.yaml").write_text(QUESTION.replace("mi300x", "./mine.yaml").replace("h100-sxm, ", ""))
    out = tmp_path / "out.json"
    assert main(["solve", str(tmp_path / "question.yaml"), "--out", str(out)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "./mine.yaml is best, of 2 kinds of devices" in told
    (tmp_path / "mine.yaml").unlink()
    assert main(["check", str(out)]) == 0


def test_the_table_has_the_best_first_with_days_money_and_proof(tmp_path: Path) -> None:
    question = asked()
    result = answered(question)
    brief = text_of("codesign", question, result, verbose=False)
    table = next(part for part in ranking(question, result).parts if isinstance(part, Table))
    rows = list(zip(*(column.texts for column in table.columns), strict=True))
    order = sorted(range(3), key=lambda place: result.parts[place].value or 0.0)
    assert [row[0] for row in rows] == [question.scales[place].network for place in order]
    for row, place in zip(rows, order, strict=True):
        part = result.parts[place]
        goal = question.parts[place].goal
        assert goal is not None and part.value is not None and result.value is not None
        assert row[-1] == "proved"
        assert f"{part.value:,.0f}" in row
        assert f"{goal.seconds(part.details.evaluation.step_time) / 86400.0:.4g}" in row
        assert row[1] == ("-" if place == order[0] else f"{part.value / result.value - 1.0:.1%}")
    assert len(brief.splitlines()) < 45
    assert [row[-2] for row in rows if row[0] == "mi300x"] == ["guessed"]
    assert "Ranking" in str(page_of("codesign", question, result, {}))


def test_other_commands_say_how_one_of_them_is_asked_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "question.yaml"
    path.write_text(QUESTION)
    assert main(["explain", str(path)]) == 3
    said = capsys.readouterr().err
    assert "hardware: 3 kinds of devices are given, but one is needed (say --set hardware=mi300x" in said
    assert main(["explain", str(path), "--set", "hardware=mi300x"]) == 0
    assert isinstance(read(path, ("hardware=mi300x",)), Instance)
