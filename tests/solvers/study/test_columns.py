"""Derived columns and expectations: arithmetic that never narrows, claims that bounds allow, and every mistake at its place."""

from dataclasses import replace
from fractions import Fraction
from math import nextafter
from pathlib import Path

import pytest

from crossopt.instances.errors import InstanceError
from crossopt.instances.studies.study import (
    Claims,
    DerivedSection,
    ExpectedSection,
    MeasuredSection,
    parse_claim,
    parse_formula,
    points_of,
    read_study,
)
from crossopt.reports.cli import main
from crossopt.solvers.study.columns import Ends, figure_of, verdict_of, with_columns
from crossopt.solvers.study.records import Study
from crossopt.solvers.sweeps.listed import Axis
from tests.every import every
from tests.solvers.study.runs import planned, study_of

KNOWN = {"a": Ends(1.0, 2.0), "b": Ends(4.0, 8.0), "c": Ends(-1.0, 1.0)}
FIGURES = {
    "a + b": (5.0, 10.0),
    "a - b": (-7.0, -2.0),
    "c * b": (-8.0, 8.0),
    "b / a": (2.0, 8.0),
    "a ** -2": (0.25, 1.0),
    "-abs(c)": (-1.0, 0.0),
    "min(a, b, 3)": (1.0, 2.0),
    "max(sqrt(b), log(exp(a)))": (2.0, 8.0**0.5),
}
NOTHING = ["a / c", "c ** 2", "sqrt(c)", "log(c)", "exp(b * 1000)", "1 / 0", "missing + 1"]
NO_FORMULAS = {
    "": "this is no formula",
    "a +": "this is no formula",
    "(" * 300: "this is no formula",
    "a" * 401: "401 signs",
    "__import__('os')": "there is no function",
    "a.b.c": "and nothing else",
    "[1]": "and nothing else",
    "'text'": "and nothing else",
    "1e999": "and nothing else",
    "a < b < 1": "one comparison",
    "a == b": "one comparison",
    "a < b": "this compares",
    "at(a)": "names a place",
    "abs(a, b)": "takes one figure",
    "abs(a, x=1)": "only `at` names places",
    "+".join(["a"] * 60): "too deep",
}


@pytest.mark.parametrize("text", FIGURES)
def test_figures_lie_between_ends_that_are_rounded_outward(text: str) -> None:
    found = figure_of(parse_formula(text), KNOWN.get, lambda call: None)
    assert found is not None
    least, most = FIGURES[text]
    assert (found.least, found.most) == pytest.approx((least, most), rel=1e-15, abs=1e-300)
    assert found.least <= least
    assert found.most >= most


@pytest.mark.parametrize("text", NOTHING)
def test_what_has_no_value_says_nothing(text: str) -> None:
    assert figure_of(parse_formula(text), KNOWN.get, lambda call: None) is None


@every("text", NO_FORMULAS)
def test_what_is_no_formula_is_told_in_words(text: str) -> None:
    with pytest.raises(ValueError, match=NO_FORMULAS[text]):
        parse_formula(text)


def test_a_claim_holds_only_where_it_holds_of_all_that_bounds_allow() -> None:
    told = {
        text: verdict_of(parse_claim(text), KNOWN.get, lambda call: None)
        for text in ("a < b", "b <= a", "a < 1.5", "a >= 1", "a < 1", "x < 1")
    }
    assert told == {"a < b": "held", "b <= a": "failed", "a < 1.5": "open", "a >= 1": "held", "a < 1": "failed", "x < 1": None}


def scaled(*claims: ExpectedSection, against: tuple[MeasuredSection, ...] = ()) -> Study:
    """Two questions on an axis: 10 s, proved to 1 %, and 6 s, proved."""
    axis = Axis("chips used", "x", ("8", "16"))
    first = replace(planned("a", 10.0, 0), bound=9.9, proved=False, status="FEASIBLE")
    study = study_of(first, planned("b", 6.0, 1), at=(("8",), ("16",)), axes=(axis,))
    derive = (DerivedSection("rate", "chips_used / optimum"), DerivedSection("gain", "before(optimum) / optimum"))
    return with_columns(replace(study, plan=replace(study.plan, claims=Claims(derive, claims, against))), ())


def test_columns_carry_bounds_and_look_along_the_axis() -> None:
    rate, gain = scaled().derived
    assert rate.ends[0] == (nextafter(0.8, 0.0), 8.0 / 9.9)
    assert Fraction(8) / Fraction(9.9) <= Fraction(8.0 / 9.9)
    assert gain.ends[0] is None
    assert gain.ends[1] is not None
    assert gain.ends[1] == pytest.approx((1.65, 10.0 / 6.0))


def test_expectations_say_where_they_fail_and_what_bounds_leave_open() -> None:
    claims = (
        ExpectedSection("faster", "optimum < before(optimum)"),
        ExpectedSection("by far", "gain > 2", source="somebody"),
        ExpectedSection("as told", "optimum < 9.95"),
        ExpectedSection("there", "at(value, chips_used=16) < 7", {"chips used": "8"}),
        ExpectedSection("nowhere", "gain > 1", {"chips used": "8"}),
    )
    points = MeasuredSection("theirs", "rate", {"8": 0.8, "16": 1.0}, "them", within=0.1)
    found = [(one.verdict, one.words) for one in scaled(*claims, against=(points,)).findings]
    assert found == [
        ("held", "at 1 place"),
        ("failed", "fails at 16, of 1"),
        ("open", "undecided at 8, of 2"),
        ("held", "at 1 place"),
        ("open", "nothing is known where it would hold"),
        ("failed", "fails at 16, of 2"),
    ]


STUDY = """\
kind: study
title: A few
instances: [tiny]
sweep:
  - {name: devices, setting: cluster.devices, values: [8, 16], beside: {workload.global_batch: [64, 128]}}
engines: [auto]
derive:
  - {name: rate, formula: tokens / optimum}
expect:
  - {says: it falls, claim: optimum < before(optimum)}
  - {says: a plan has parts, claim: plan.data * plan.tensor >= 8}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "study.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_settings_change_in_step_with_an_axis(tmp_path: Path) -> None:
    settings = [[setting.text for setting in point.settings] for point in points_of(read_study(written(tmp_path, STUDY)))]
    assert settings == [["cluster.devices=8", "workload.global_batch=64"], ["cluster.devices=16", "workload.global_batch=128"]]


def test_every_mistake_is_told_where_it_stands(tmp_path: Path) -> None:
    text = STUDY.replace("[64, 128]", "[64]").replace("tokens / optimum}", "token / optimum}\n  - {name: devices, formula: 1}")
    text = text.replace("claim: optimum < before(optimum)", "claim: 'at(optimum, device=8) < 1'").replace("plan.data *", "plan.dta *")
    text += "against:\n  - {name: x, column: rat, points: {9: 1}, source: y, where: {devices: 7}}\n"
    with pytest.raises(InstanceError) as caught:
        read_study(written(tmp_path, text))
    told = [f"{fault.path}: {fault.message}" for fault in caught.value.faults]
    for number, words in enumerate(
        (
            "sweep[0].beside: settings beside an axis have a value for each",
            "derive[0].formula: there is no column 'token' (one of",
            "derive[1].name: 'devices' is taken",
            "expect[0].claim: there is no axis 'device' (one of devices, subject; did you mean 'devices'?)",
            "expect[1].claim: there is no `plan` 'dta'",
            "against[0].column: there is no derived column 'rat'",
            "against[0].points: devices has no value '9'",
            "against[0].where: devices has no value '7' (one of 8, 16)",
        )
    ):
        assert words in told[number]


AGAINST = """\
against:
  - {name: theirs, column: rate, source: them, file: points.csv, at: gpus, figure: rate, rows: {plan: zero}, within: 10 %}
"""
POINTS = "gpus,plan,rate\n8,zero,11\n16.0,zero,22\n32,zero,9\n8,none,5\n"


def test_measured_points_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_text(POINTS, encoding="utf-8")
    (section,) = read_study(written(tmp_path, STUDY + AGAINST)).file.claims.against
    assert (section.points, section.within, section.source) == ({"8": 11.0, "16": 22.0}, 0.1, "them")


@pytest.mark.parametrize(
    ("change", "points", "words"),
    [
        (("", ""), "gpus,plan,rate\n8,zero,fast\n16,zero\n", "points.csv: line 2: rate: 'fast' is no number"),
        (("", ""), "gpus,plan,rate\n8,zero,1\n8,zero,2\n", "line 3: there is a point at 8 already (say by `rows:` which are meant)"),
        (("", ""), "gpu,plan,rate\n8,zero,1\n", "points.csv has no column 'gpus' (did you mean 'gpu'?)"),
        (("plan: zero", "plan: none"), "gpus,plan,rate\n4,none,1\n", "of its 1 rows 1 are meant, and none stands at 8, 16"),
        (("points.csv", "other.csv"), POINTS, "there is no such file (check the name and the folder)"),
        (("at: gpus, ", ""), POINTS, "say which columns of the file are meant"),
        (("at: gpus", "points: {8: 1}, at: gpus"), POINTS, "points are written here or in a file"),
        (
            ("file: points.csv, at: gpus, figure: rate, rows", "points: {8: 1}, rows"),
            POINTS,
            "write `file:` beside it, or leave `rows` out",
        ),
    ],
)
def test_a_file_of_points_that_is_none_is_told_in_one_sentence(change: tuple[str, str], points: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_text(points, encoding="utf-8")
    with pytest.raises(InstanceError) as caught:
        read_study(written(tmp_path, STUDY + AGAINST.replace(*change)))
    (fault,) = caught.value.faults
    assert words in fault.message


def test_a_study_that_is_otherwise_than_it_expects_ends_so_and_its_edits_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, page = tmp_path / "runs.json", tmp_path / "page.html"
    assert main(["compare", str(written(tmp_path, STUDY)), "--out", str(runs), "--chart", str(page)]) == 13
    told = capsys.readouterr().out
    assert "Expected: 1 held, 1 failed." in told
    assert "failed  it falls: fails at 16, of 1" in told
    assert "it falls" in page.read_text(encoding="utf-8")
    assert main(["check", str(runs)]) == 0
    whole = runs.read_text(encoding="utf-8")
    for old, new in (('"failed"', '"held"'), ("optimum < before(optimum)", "optimum > before(optimum)"), ('"tokens / optimum"', '"1"')):
        runs.write_text(whole.replace(old, new, 1), encoding="utf-8")
        assert main(["check", str(runs)]) == 30
    runs.write_text(whole.replace('"tokens / optimum"', '"tokens +"'), encoding="utf-8")
    assert main(["check", str(runs)]) == 30
    capsys.readouterr()
