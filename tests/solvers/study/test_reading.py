"""Studies as they are written: what they ask, and every fault at once, where it stands and with its remedy."""

from functools import partial
from pathlib import Path

import pytest

from crossopt.instances.codesign.question import read_instance
from crossopt.instances.errors import InstanceError
from crossopt.instances.studies.study import points_of, read_study
from crossopt.solvers.study.running import ask_by_study
from crossopt.solvers.sweeps.asking import ask, strange_names
from tests.every import every
from tests.paths import INSTANCES

of_designs = partial(strange_names, only="codesign")
STUDY = """\
kind: study
title: A few devices
instances:
  - tiny
  - {instance: own.yaml, name: mine, settings: {tensor: [1, 2], objective: energy_per_token}}
settings: {microbatch: 1}
sweep:
  - {setting: cluster.devices, name: devices, values: [8, 16]}
  - {setting: hardware, values: [a100-80g, h100-sxm]}
engines: [exhaustive, megatron]
time_limit: 2 s
seeds: 2
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "study.yaml"
    path.write_text(text, encoding="utf-8")
    (folder / "own.yaml").write_text((INSTANCES / "tiny.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    return path


def faults(folder: Path, text: str) -> list[tuple[int, int, str, str]]:
    path = written(folder, text)
    with pytest.raises(InstanceError) as caught:
        ask_by_study(read_study(path))
    return [(fault.line, fault.column, fault.path, fault.message) for fault in caught.value.faults]


def test_every_value_of_an_axis_meets_every_other_and_every_instance(tmp_path: Path) -> None:
    study = read_study(written(tmp_path, STUDY))
    points = list(points_of(study, ("seed=1",)))
    assert [point.name for point in points][:3] == ["tiny, 8, a100-80g", "tiny, 8, h100-sxm", "tiny, 16, a100-80g"]
    assert len(points) == 8
    assert [setting.text for setting in points[-1].settings] == [
        *("microbatch=1", "tensor=[1, 2]", "objective=energy_per_token", "cluster.devices=16", "hardware=h100-sxm", "seed=1")
    ]


def test_a_question_of_a_study_is_the_question_with_the_same_settings(tmp_path: Path) -> None:
    asking = ask_by_study(read_study(written(tmp_path, STUDY)))
    own = asking.instances[-1]
    settings = ("microbatch=1", "tensor=[1, 2]", "objective=energy_per_token", "cluster.devices=16", "hardware=h100-sxm")
    same = read_instance(tmp_path / "own.yaml", settings)
    assert (own.cluster, own.plan_options, own.objective, own.hardware) == (same.cluster, same.plan_options, same.objective, same.hardware)
    assert (asking.plan.engines, asking.plan.time_limit, asking.plan.seeds) == (("exhaustive", "expert"), 2.0, 2)
    assert [axis.name for axis in asking.plan.axes] == ["devices", "hardware"]


def test_values_that_are_lists_and_mappings_reach_the_question_as_they_are_written(tmp_path: Path) -> None:
    text = STUDY.replace(
        "{microbatch: 1}", "{workload: {model: gpt3-350m, global_batch: 32, precision: 'bf16'}, data: null, choices.zero: [0, '1']}"
    )
    texts = [setting.text for setting in next(points_of(read_study(written(tmp_path, text)))).settings]
    assert texts[:3] == [
        "workload={model: 'gpt3-350m', global_batch: 32, precision: bf16}".replace("'gpt3-350m'", "gpt3-350m"),
        "data=null",
        "choices.zero=[0, '1']",
    ]


def test_all_faults_of_a_study_are_told_at_once_where_it_names_them(tmp_path: Path) -> None:
    text = (
        STUDY.replace("tensor: [1, 2]", "tensor: [3.5], chips: 4")
        .replace("[8, 16]", "[8, none]")
        .replace("h100-sxm]", "h100-smx]")
        .replace("megatron", "megatorn")
    )
    found = faults(tmp_path, text)
    assert (5, 57, "instances[1].settings.tensor", "choices.tensor[0]: '3.5' is not a whole number") in found
    assert [(line, path) for line, _, path, _ in found] == [
        (5, "instances[1].settings.tensor"),
        (5, "instances[1].settings.chips"),
        (8, "sweep[0].values[1]"),
        (9, "sweep[1].values[1]"),
        (10, "engines[1]"),
    ]
    assert "did you mean 'h100-sxm'?" in found[3][3]
    assert "did you mean 'megatron'?" in found[4][3]


@every(
    ("old", "new", "place", "words"),
    [
        ("  - tiny\n", "  - nothing\n", (4, "instances[0]"), "there is no question 'nothing' (see `crossopt list"),
        ("  - tiny\n", "  - tinny\n", (4, "instances[0]"), "there is no question 'tinny' (did you mean 'tiny'?)"),
        ("{microbatch: 1}", "{clustre.devices: 8}", (6, "settings.clustre.devices"), "unknown key (did you mean 'cluster'?)"),
        ("  - tiny\n", "  - gpt3-13b-on-8\n", (4, "instances[0]"), "asks about operators of a graph on devices"),
        ("name: mine", "name: tiny", (4, "instances"), "two questions are called 'tiny, 8, a100-80g' (give one of them a `name`)"),
        ("[8, 16]", "[]", (8, "sweep[0].values"), "an axis has values"),
        ("[8, 16]", "[8, 8]", (8, "sweep[0].values"), "a value is given twice"),
        ("name: devices", "name: hardware", (8, "sweep"), "two axes have one name"),
        ("[exhaustive, megatron]", "[]", (10, "engines"), "no engine is named"),
        ("[8, 16]", f"[{', '.join(map(str, range(1, 252)))}]", (8, "sweep"), "1,004 questions are more than the 1,000"),
        ("seeds: 2", "seeds: 0", (12, "seeds"), "'0' is too small (at least 1)"),
        ("time_limit: 2 s", "time_limit: soon", (11, "time_limit"), "'soon' does not begin with a number, a time is needed"),
        ("engines:", "engine:", (10, "engine"), "unknown key (did you mean 'engines'?)"),
    ],
)
def test_a_fault_is_told_where_it_stands_with_its_remedy(old: str, new: str, place: tuple[int, str], words: str, tmp_path: Path) -> None:
    found = faults(tmp_path, STUDY.replace(old, new))
    assert [(line, path) for line, _, path, message in found if words in message][:1] == [place], found


def test_an_axis_that_is_misspelt_is_told_once_and_a_value_that_is_wrong_at_the_value(tmp_path: Path) -> None:
    """Of all values in the same words it is the setting's fault; of one of them it is its own. Sweeps tell it the same way."""
    misspelt = STUDY.replace("cluster.devices, name", "cluster.devces, name")
    assert [(line, path) for line, _, path, _ in faults(tmp_path, misspelt)] == [(8, "sweep[0].setting")]
    with pytest.raises(InstanceError) as caught:
        ask(read_study(written(tmp_path, misspelt)))
    assert [fault.path for fault in caught.value.faults] == ["sweep[0].setting"]
    assert [path for _, _, path, _ in faults(tmp_path, STUDY.replace("[8, 16]", "[none, 16]"))] == ["sweep[0].values[0]"]


def test_a_question_with_several_workloads_is_asked_about_one_of_them(tmp_path: Path) -> None:
    text = "kind: study\ntitle: one\nengines: [auto]\ninstances:\n  - {instance: two-models-one-chip}\n"
    [(line, _, path, message)] = faults(tmp_path, text)
    assert (line, path) == (5, "instances[0]")
    assert "here are several" in message
    one = written(tmp_path, text.replace("chip}", "chip, workload: gpt3-13b}"))
    assert ask_by_study(read_study(one)).instances[0].workload.name == "gpt3-13b"


def test_names_that_there_are_none_of_are_told_beside_faults_of_the_form(tmp_path: Path) -> None:
    """Of questions as well as of engines, and each once."""
    text = STUDY.replace("  - tiny\n", "  - tinny\n  - gpt3-13b-on-8\n").replace("own.yaml", "other.yaml").replace("megatron", "megatorn")
    with pytest.raises(InstanceError) as caught:
        read_study(written(tmp_path, text.replace("seeds: 2", "seeds: zero").replace("time_limit", "time_limt")), of_designs)
    assert sorted(fault.path for fault in caught.value.faults) == [
        *("engines[1]", "instances[0]", "instances[1]", "instances[2]", "seeds", "time_limt")
    ]
