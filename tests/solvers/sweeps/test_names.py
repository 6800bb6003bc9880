"""Names of questions and axes stand for what was asked: a table of forgeries, each refused."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from crossopt.instances.errors import InstanceError
from crossopt.instances.studies.study import read_study
from crossopt.solvers.sweeps.asking import ask
from crossopt.solvers.sweeps.listed import Axis, Point, name_faults, question_digest
from tests.every import every
from tests.samples import PROFILE

Points = list[Point]
Axes = list[Axis]
STUDY = """\
kind: study
title: names
instances: [tiny, {instance: quickstart, name: other}]
settings: {cluster.devices_per_node: 4}
sweep:
  - {setting: cluster.devices, values: [8, 16], name: devices, beside: {workload.global_batch: [32, 64]}}
  - {setting: cluster.reserved_memory, values: [1 GiB, 2 GiB]}
engines: [auto]
"""


def asked(folder: Path, text: str = STUDY, *settings: str) -> tuple[Axes, Points]:
    path = folder / "study.yaml"
    path.write_text(text, encoding="utf-8")
    sweep = ask(read_study(path), settings)
    return list(sweep.axes), list(sweep.points)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Axes, Points]:
    return asked(tmp_path_factory.mktemp("names"))


def swap(points: Points, first: int, second: int, *names: str) -> None:
    """Two points change these names."""
    one, other = points[first], points[second]
    points[first] = replace(one, **{name: getattr(other, name) for name in names})
    points[second] = replace(other, **{name: getattr(one, name) for name in names})


def with_setting(points: Points, place: int, setting: str) -> None:
    """What was asked at a point had a further setting."""
    document = dict(points[place].document or {})
    document["settings"] = [*document["settings"], setting]
    points[place] = replace(points[place], document=document, digest=question_digest("codesign", document))


def in_gigabytes(axes: Axes, points: Points) -> None:
    axes[1] = replace(axes[1], values=("1 GB", "2 GB"))
    points[:] = [replace(one, name=one.name.replace("GiB", "GB"), at=(one.at[0], one.at[1].replace("GiB", "GB"))) for one in points]


FORGED: dict[str, Callable[[Axes, Points], object]] = {
    "names swapped": lambda _, points: swap(points, 0, 1, "name"),
    "values swapped": lambda _, points: swap(points, 0, 1, "at"),
    "names and values swapped": lambda _, points: swap(points, 0, 2, "name", "at"),
    "questions swapped": lambda _, points: swap(points, 0, 1, "digest", "document"),
    "digests swapped": lambda _, points: swap(points, 0, 1, "digest"),
    "a name": lambda _, points: points.__setitem__(0, replace(points[0], name="tiny, 9, 1 GiB")),
    "a value that is none": lambda _, points: points.__setitem__(0, replace(points[0], name="tiny, 9, 1 GiB", at=("9", "1 GiB"))),
    "a subject of one point": lambda _, points: points.__setitem__(0, replace(points[0], subject="tyni")),
    "subjects of two points swapped": lambda _, points: swap(points, 0, 4, "subject", "name"),
    "a point dropped": lambda _, points: points.pop(1),
    "the last point dropped": lambda _, points: points.pop(),
    "a point twice": lambda _, points: points.insert(1, points[1]),
    "a point of a subject moved": lambda _, points: points.append(points.pop(0)),
    "points turned around": lambda _, points: points.reverse(),
    "another setting": lambda axes, _: axes.__setitem__(0, replace(axes[0], setting="cluster.devices_per_node")),
    "another setting beside": lambda axes, _: axes.__setitem__(0, replace(axes[0], beside=(("workload.global_batch", ("64", "32")),))),
    "a value beside is missing": lambda axes, _: axes.__setitem__(0, replace(axes[0], beside=(("workload.global_batch", ("32",)),))),
    "values turned around": lambda axes, _: axes.__setitem__(0, replace(axes[0], values=("16", "8"))),
    "a value dropped": lambda axes, _: axes.__setitem__(0, replace(axes[0], values=("8",))),
    "a value twice": lambda axes, _: axes.__setitem__(0, replace(axes[0], values=("8", "8"))),
    "another unit": in_gigabytes,
    "axes of one name": lambda axes, _: axes.__setitem__(0, replace(axes[0], name=axes[1].name)),
    "axes swapped": lambda axes, _: axes.reverse(),
    "an axis dropped": lambda axes, _: axes.pop(),
    "a value overruled": lambda _, points: with_setting(points, 1, "cluster.devices=32"),
    "a further setting": lambda _, points: with_setting(points, 1, "objective=power"),
    "what is beside overruled": lambda _, points: with_setting(points, 1, "workload.global_batch=96"),
}


def test_names_that_are_as_they_were_asked_have_no_fault(told: tuple[Axes, Points]) -> None:
    assert name_faults(*told) == []
    axes, points = told
    assert name_faults(axes, [replace(point, document=None) for point in points[:4]] + points[4:]) == [], "unanswered points too"


@every("words", FORGED)
def test_a_forged_name_is_refused(words: str, told: tuple[Axes, Points]) -> None:
    axes, points = list(told[0]), list(told[1])
    FORGED[words](axes, points)
    assert name_faults(axes, points) != []


def test_one_answer_of_a_subject_holds_the_names_of_those_without(told: tuple[Axes, Points]) -> None:
    axes, points = told
    few = [point if number in (1, 5) else replace(point, document=None) for number, point in enumerate(points)]
    assert name_faults(axes, few) == []
    swap(few, 2, 3, "digest")
    assert len(name_faults(axes, few)) == 2


def test_settings_of_an_authors_file_are_held_as_they_are_listed(tmp_path: Path) -> None:
    (tmp_path / "profile.txt").write_text(PROFILE, encoding="utf-8")
    text = "kind: study\ntitle: t\ninstances: [profile.txt]\nsweep: [{setting: devices, values: [2, 3]}]\nengines: [auto]\n"
    axes, points = asked(tmp_path, text)
    assert name_faults(axes, points) == []
    swap(points, 0, 1, "at", "name")
    assert len(name_faults(axes, points)) == 1, "the order"
    axes[0] = replace(axes[0], values=("3", "2"))
    assert len(name_faults(axes, points)) == 2, "both questions"


@every("settings", [("cluster.devices=32",), ("cluster.reserved_memory=3 GiB",), ("workload.global_batch=128",)])
def test_an_axis_that_another_setting_overrules_is_refused_before_anything_is_asked(settings: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match=r"sweep\[\d\]\.setting: another setting takes its place"):
        asked(tmp_path, STUDY, *settings)


@every(
    "sweep",
    [
        "{setting: cluster.devices, values: [8, 16], beside: {cluster.devices: [8, 8]}}",
        "{setting: cluster.devices, values: [8, 16]}, {name: again, setting: cluster.devices, values: [8, 4]}",
        "{setting: description, values: [one, other]}",
    ],
)
def test_points_that_ask_one_question_are_refused(sweep: str, tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match=r"sweep\[0\]\.setting: .* asks the same question as "):
        asked(tmp_path, f"kind: study\ntitle: t\ninstances: [tiny]\nsweep: [{sweep}]\nengines: [auto]\n")


def test_a_list_of_points_that_ask_one_question_is_refused(told: tuple[Axes, Points]) -> None:
    axes, (first, *_) = told
    own = (replace(axes[0], values=("8", "16"), beside=(("cluster.devices", ("8", "8")),)),)
    base = dict(first.document or {})
    document = base | {"settings": [*base["settings"], "cluster.devices=8"]}
    asking = [
        replace(first, name=f"tiny, {at}", at=(at,), document=document, digest=question_digest("codesign", document)) for at in ("8", "16")
    ]
    assert name_faults(own, asking) == ["tiny, 16: its question is that of tiny, 8"]
