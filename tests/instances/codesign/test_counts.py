"""Questions that leave the number of devices open: one question for each number, and all faults of all numbers at once."""

from dataclasses import replace
from pathlib import Path

import pytest

from crossopt.instances.catalogue.registry import entry_text, ladder
from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion, Scale
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read, read_again
from crossopt.reports.shown import page_of, text_of
from tests.solvers.codesign.asking import answered, checked
from tests.solvers.codesign.questions import TINY_FREE, ask

TINY = ladder()["tiny"]
OPEN = "cluster.devices=[16, 8, 32]"


def counted(*settings: str, text: str | None = None) -> MultiScaleQuestion:
    found = read_again(
        {"text": text or TINY.read_text(encoding="utf-8"), "source": "question.yaml", "settings": list(settings)}, "codesign"
    )
    assert isinstance(found, MultiScaleQuestion)
    return found


def refused(*settings: str, text: str | None = None) -> list[str]:
    with pytest.raises(InstanceError) as caught:
        counted(*settings, text=text)
    return [f"{fault.path}: {fault.message}" for fault in caught.value.faults]


def test_each_number_is_the_question_in_which_it_is_written() -> None:
    asked = counted(OPEN)
    assert asked.counts == (8, 16, 32)
    for count, part in zip(asked.counts, asked.parts, strict=True):
        alone = read_instance(TINY, (f"cluster.devices={count}",))
        assert replace(part, document={}) == replace(alone, name="question", document={})


def test_a_range_of_numbers() -> None:
    assert counted("cluster.devices={from: 8, to: 64, factor: 2}").counts == (8, 16, 32, 64)


@pytest.mark.parametrize("devices", ["8", "[8]"])
def test_one_number_is_an_ordinary_question(devices: str) -> None:
    assert isinstance(read(TINY, (f"cluster.devices={devices}",)), Instance)


def test_the_fewest_devices_are_questions_about_the_least_step_time() -> None:
    asked = counted(OPEN, "objective=devices")
    assert (asked.objective, {part.objective for part in asked.parts}) == ("devices", {"step_time"})
    [fault] = refused_by_reading("cluster.devices=8", "objective=devices")
    assert fault.startswith("objective: the fewest devices are found among several numbers")


def refused_by_reading(*settings: str) -> list[str]:
    with pytest.raises(InstanceError) as caught:
        read_instance(TINY, settings)
    return [f"{fault.path}: {fault.message}" for fault in caught.value.faults]


def test_the_faults_of_all_numbers_are_told_at_once_and_those_of_all_alike_once() -> None:
    faults, setting = refused("cluster.devices=[8, 12, 13]", "choices.microbatch=[7]"), "[from --set cluster.devices=[8, 12, 13]]"
    assert faults[:2] == [
        f"cluster.devices: 12 devices are no whole number of groups of 8 (make it a multiple of 8) {setting}",
        f"cluster.devices: 13 devices are no whole number of groups of 8 (make it a multiple of 8) {setting}",
    ]
    assert len(faults) == 3
    assert faults[2].startswith("choices.microbatch: 7 does not divide the 64 samples of the global batch")


def test_an_impossible_number_is_told_beside_those_that_are_possible() -> None:
    asked = counted("cluster.devices=[8, 12, 16]")
    assert asked.counts == (8, 16)
    assert asked.impossible == ((Scale(12), "12 devices are no whole number of groups of 8 (make it a multiple of 8)"),)
    result = answered(asked)
    text = text_of("codesign", asked, result)
    assert "no plan at all: 12 devices are no whole number of groups of 8 (make it a" in " ".join(text.split())
    assert text.startswith("question   3 numbers of devices")
    page = page_of("codesign", asked, result, {})
    assert any("12 devices are no whole number of groups of 8" in str(section) for section in page.sections)
    assert checked(result).refused == ()


def test_of_two_numbers_the_one_that_is_possible_is_answered() -> None:
    """With several batches as well, each of which is impossible there."""
    asked = counted("cluster.devices=[8, 12]", "workload.global_batch=[64, 128]", "objective=time_per_sample")
    assert (asked.scales, asked.by_devices) == ((Scale(8, 64), Scale(8, 128)), True)
    assert [place for place, _ in asked.impossible] == [Scale(12, 64), Scale(12, 128)]
    [fault] = refused_by_reading("cluster.devices=[8, 12]")
    assert fault.startswith("cluster.devices: 2 numbers of devices are given, but one is needed (say --set cluster.devices=8;")


def test_where_one_number_is_needed_the_sentence_says_how_to_ask_for_one() -> None:
    [fault] = refused_by_reading(OPEN, "objective=devices")
    assert fault.startswith("cluster.devices: 3 numbers of devices are given, but one is needed (say ")
    assert "--set cluster.devices=32 --set objective=step_time;" in fault


def test_too_many_numbers_are_refused() -> None:
    [fault] = refused("cluster.devices={from: 8, to: 4096}")
    assert fault.startswith("cluster.devices: 4089 numbers of devices are more than the 64 that a question may have")


@pytest.mark.parametrize("devices", ["[]", "[8, 0]", "[8, many]"])
def test_what_is_no_list_of_numbers_is_refused(devices: str) -> None:
    assert all(fault.startswith("cluster.devices") for fault in refused(f"cluster.devices={devices}"))


def test_files_of_the_users_are_inside_the_question_that_is_saved(tmp_path: Path) -> None:
    process, path = tmp_path / "process.yaml", tmp_path / "question.yaml"
    process.write_text(entry_text("technologies", "accelerator-7nm"), encoding="utf-8")
    path.write_text(TINY_FREE.replace("accelerator-7nm", "./process.yaml"), encoding="utf-8")
    asked = read(path, (OPEN,))
    process.unlink()
    assert isinstance(asked, MultiScaleQuestion)
    again = read_again(asked.document, "codesign")
    assert again == asked
    for count, part in zip(asked.counts, asked.parts, strict=True):
        assert part.hardware.options == ask(TINY_FREE, f"cluster.devices={count}").hardware.options  # type: ignore[union-attr]
        assert part.hardware.technology.name == "process"  # type: ignore[union-attr]


def test_of_several_workloads_one_is_named() -> None:
    path = ladder()["two-models-one-chip"]
    devices = read(path).parts[0].cluster.devices  # type: ignore[union-attr]
    settings = (f"cluster.devices=[{devices}, {2 * devices}]",)
    with pytest.raises(InstanceError, match="one workload at a time"):
        read(path, settings)
    first = read(path).parts[0].name  # type: ignore[union-attr]
    asked = read(path, settings, first)
    assert isinstance(asked, MultiScaleQuestion)
    assert [part.cluster.devices for part in asked.parts] == [devices, 2 * devices]
    assert read_again(asked.document, "codesign") == asked


OPEN_GOAL = TINY.read_text(encoding="utf-8").replace("objective: step_time\n", "")
BATCHES = "workload.global_batch=[64, 128]"


def test_each_batch_is_the_question_in_which_it_is_written_about_the_time_of_a_sample() -> None:
    asked = counted(BATCHES, text=OPEN_GOAL)
    assert (asked.counts, asked.batches, asked.objective) == ((8, 8), (64, 128), "time_per_sample")
    for batch, part in zip(asked.batches, asked.parts, strict=True):
        alone = read_instance(TINY, (f"workload.global_batch={batch}", "objective=time_per_sample"))
        assert replace(part, document={}) == replace(alone, name="question", document={})


def test_pairs_of_devices_and_batches_come_in_the_order_of_devices() -> None:
    asked = counted(BATCHES, OPEN, "objective=cost_per_token", "prices={electricity: 0.1 USD/kWh, lifetime: 4 year, device: 9e3 USD}")
    assert asked.scales == tuple(Scale(devices, batch) for devices in (8, 16, 32) for batch in (64, 128))
    assert asked.part_name(1) == "8 devices, batch 128"


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        (
            ("objective=step_time",),
            "objective: steps of different batches do different work",
        ),
        (("objective=devices", OPEN), "objective: the fewest devices for one of several batches need a limit on the whole run"),
        (("budget.step_time=1 s",), "budget.step_time: the same limit on a step asks less of a smaller batch"),
        (("workload.global_batch={from: 1, to: 65}",), "workload.global_batch: 65 batches are more than the 64"),
        ((OPEN, "workload.global_batch={from: 1, to: 22}"), "workload.global_batch: 66 pairs of a number of devices and a batch are more"),
    ],
)
def test_batches_that_cannot_be_compared_are_refused(settings: tuple[str, ...], fault: str) -> None:
    [told] = refused(BATCHES, *settings, text=OPEN_GOAL)
    assert told.startswith(fault)


def test_one_of_several_workloads_and_other_kinds_have_one_batch(tmp_path: Path) -> None:
    text = "kind: codesign\ncluster: {devices: 1}\nhardware: a100-80g\nworkloads:\n" + "  - {model: gpt3-125m, global_batch: [1, 2]}\n"
    assert refused(text=text)[0].startswith("workloads[0].global_batch: several batches, 1, 2, are compared for the only workload")
    mesh = "kind: sharding\nworkload: {model: gpt3-125m, global_batch: [8, 16]}\nhardware: a100-80g\nmesh: [2]\n"
    (tmp_path / "mesh.yaml").write_text(mesh, encoding="utf-8")
    with pytest.raises(InstanceError, match="several batches, 8, 16"):
        read(tmp_path / "mesh.yaml")
