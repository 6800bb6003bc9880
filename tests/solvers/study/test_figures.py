"""The figures of a comparison, on runs that one can follow by hand."""

from dataclasses import replace

import pytest

from crossopt.instances.errors import VerificationError
from crossopt.reports.render.html import html
from crossopt.reports.render.html import page as page_file
from crossopt.reports.render.terminal import terminal
from crossopt.reports.sheets.sheet import Table
from crossopt.reports.sheets.study import course_text, partial_text, refuted_text, study_sheet
from crossopt.solvers.codesign.engines import SEARCHERS
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.study.figures import (
    NEVER,
    Spread,
    bound_of,
    cell,
    consistency_faults,
    courses,
    covered_questions,
    flips_along,
    gains_along,
    level_from,
    overall,
    values_along,
)
from crossopt.solvers.study.records import Study
from crossopt.solvers.sweeps.listed import Axis
from tests.solvers.study.runs import LOST, RUN, planned, searched, study_of


def study_text(study: Study) -> str:
    """What a terminal shows, on one line."""
    return " ".join(terminal(study_sheet(study)).split())


def study_page(study: Study) -> str:
    return page_file(html(study_sheet(study), {}))


def test_an_engine_with_a_proof_is_near_before_it_has_proved() -> None:
    found = cell(study_of(RUN), 0, "boxes")
    assert found is not None
    assert found.above == Spread(0.0, 0.0, 0.0)
    assert found.near == Spread(2.0, 2.0, 2.0)
    assert found.proved == Spread(4.0, 4.0, 4.0)


def test_a_design_a_hundredth_above_the_bound_is_near() -> None:
    found = cell(study_of(RUN, searched(1.01 * 100.0), searched(101.1, 1)), 0, "random")
    assert found is not None
    assert found.near is not None
    assert (found.near.least, found.near.most) == (1.0, NEVER)


def test_of_several_seeds_the_median_and_the_range_count_and_a_run_without_a_design_is_the_worst() -> None:
    study = study_of(RUN, searched(150.0, 0), searched(100.0, 1), searched(125.0, 2))
    found = cell(study, 0, "random")
    assert found is not None
    assert (found.value, found.above) == (Spread(125.0, 100.0, 150.0), Spread(0.25, 0.0, 0.5))
    assert found.near == Spread(NEVER, 1.0, NEVER)
    assert found.run.value == 125.0
    even = cell(study_of(RUN, searched(150.0, 0), searched(100.0, 1)), 0, "random")
    assert even is not None
    assert (even.value.middle, even.run.value) == (125.0, 150.0)
    failed = cell(study_of(RUN, searched(100.0), replace(LOST, seed=1)), 0, "random")
    assert failed is not None
    assert failed.above == Spread(NEVER, 0.0, NEVER)
    assert failed.run.design is None


def test_distances_are_from_the_best_bound_of_all() -> None:
    weak = replace(RUN, engine="milp", answered_by="milp", status="FEASIBLE", value=102.0, bound=80.0, proved=False)
    study = study_of(weak, RUN)
    assert bound_of(study, 0) == 100.0
    found = cell(study, 0, "milp")
    assert found is not None
    assert found.above is not None
    assert found.above.middle == pytest.approx(0.02)
    assert found.near == Spread(NEVER, NEVER, NEVER)


def test_without_a_bound_there_is_no_distance_and_without_a_design_nothing_to_be_near() -> None:
    alone = cell(study_of(searched(3.0)), 0, "random")
    assert alone is not None
    assert (alone.above, alone.near) == (None, None)
    none = replace(RUN, status="INFEASIBLE", value=None, bound=None, design=None, verified=False)
    found = cell(study_of(none), 0, "boxes")
    assert found is not None
    assert (found.above, found.proved.middle) == (None, 4.0)
    assert cell(study_of(RUN), 0, "milp") is None


def test_an_engine_that_does_not_tell_its_way_is_near_when_it_is_done() -> None:
    found = cell(study_of(RUN, replace(searched(100.2), trace=())), 0, "random")
    assert found is not None
    assert found.near == Spread(3.0, 3.0, 3.0)


def test_over_all_questions_the_median_counts() -> None:
    at, axes = (("a",), ("b",), ("c",)), (Axis("x", "x", ("a", "b", "c")),)
    runs = [run for place, gap in enumerate((1.5, 1.0, 1.1)) for run in (replace(RUN, question=place), searched(100.0 * gap, 0, place))]
    found = overall(study_of(*runs, at=at, axes=axes), "random")
    assert found.above is not None
    assert (found.questions, found.near, found.proved) == (3, 1, 0)
    assert found.above.middle == pytest.approx(0.1)
    assert found.near_after == Spread(NEVER, 1.0, NEVER)


def test_questions_without_a_design_stand_beside_the_others_with_a_count_of_their_own() -> None:
    at, axes = (("a",), ("b",), ("c",)), (Axis("x", "x", ("a", "b", "c")),)
    refuted = replace(RUN, status="INFEASIBLE", value=None, bound=None, design=None, verified=False, seconds=90.0)
    pairs = [(replace(one, question=place), replace(LOST, question=place)) for place, one in enumerate((RUN, refuted, refuted))]
    study = study_of(*(run for pair in pairs for run in pair), at=at, axes=axes)
    found, lost = overall(study, "boxes"), overall(study, "random")
    assert (found.questions, found.near, found.proved, found.refuted) == (1, 1, 1, 2)
    assert found.proved_after == Spread(4.0, 4.0, 4.0)
    assert (lost.questions, lost.near, lost.proved, lost.refuted) == (1, 0, 0, 0)
    assert refuted_text(study) == "2 questions beside these without a design, proved by boxes of 2"
    assert refuted_text(study_of(RUN)) == ""
    table = study_sheet(study).sections[0].parts[0]
    assert isinstance(table, Table)
    assert [column.texts[0] for column in table.columns] == ["boxes", "0.00%", "0.00%", "1 of 1", "1 of 1", "2"]
    assert "Over the questions that have a design and a bound" in study_page(study)


def test_figures_are_headed_as_distances_only_where_there_is_a_bound() -> None:
    axes, at = (Axis("questions", "questions", ("one", "two")),), (("one",), ("two",))
    found = [searched(110.0, question=place) for place in (0, 1)]
    assert "Values, as no engine proved a bound (of" in study_text(study_of(*found, at=at, axes=axes))
    assert "How far above the bound, or the value where no bound was proved (of" in study_text(study_of(RUN, *found, at=at, axes=axes))


def test_engines_that_contradict_each_other_are_refused() -> None:
    consistency_faults("q", [RUN, searched(100.0)])
    with pytest.raises(VerificationError, match=r"q: boxes proves a bound of 100\.0, and random finds a design of 99\.9"):
        consistency_faults("q", [RUN, searched(99.9)])
    none = replace(RUN, status="INFEASIBLE", value=None, bound=None, design=None)
    with pytest.raises(VerificationError, match="proves that there is no design"):
        consistency_faults("q", [none, searched(1e9)])


def test_a_course_has_its_values_its_steps_and_its_flips() -> None:
    axes = (Axis("node", "n", ("14", "7", "5", "3")), Axis("memory", "m", ("old", "new")))
    at = tuple((node, memory) for node in axes[0].values for memory in axes[1].values)
    values = {"old": (100.0, 50.0, 47.0, 46.0), "new": (90.0, 45.0, 30.0, 20.0)}
    plans = {"old": "AABB", "new": "AAAA"}
    places = [axes[0].values.index(node) for node, _ in at]
    runs = [
        planned(plans[memory][place], values[memory][place], number)
        for number, ((_, memory), place) in enumerate(zip(at, places, strict=True))
    ]
    study = study_of(*runs, at=at, axes=axes)
    old, new = courses(study)
    assert (old.name, new.name) == ("old", "new")
    assert values_along(study, old) == values["old"]
    assert flips_along(study, old) == (False, False, True, False)
    assert not any(flips_along(study, new))
    assert [gain and round(gain, 3) for gain in gains_along(values["old"])] == [None, 0.5, 0.06, 0.021]
    assert (level_from(values["old"]), level_from(values["new"])) == (1, None)


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ((4.0, 2.0, 1.0), None),
        ((4.0, 3.9, 3.8), 0),
        ((4.0, 2.0, 1.9), 1),
        ((4.0, 3.9, 2.0), None),
        ((4.0, 3.9, None), None),
        ((4.0,), None),
    ],
)
def test_a_course_levels_off_where_no_later_step_gains_a_tenth(values: tuple[float | None, ...], place: int | None) -> None:
    assert level_from(values) == place


def partly(study: Study) -> Study:
    """The study as an interrupt left it."""
    return replace(study, stopped="interrupted")


def test_of_an_interrupted_comparison_nothing_is_said_of_what_was_not_asked() -> None:
    axes, at = (Axis("devices", "n", ("128", "256", "512", "1024")),), (("128",), ("256",), ("512",), ("1024",))
    runs = [planned("A", 100.0, 0), searched(101.0, question=0), planned("A", 60.0, 1), searched(61.0, question=1)]
    study = partly(study_of(*runs, replace(searched(59.0, question=2), seed=0), at=at, axes=axes))
    study = replace(study, plan=replace(study.plan, seeds=1))
    [course] = courses(study)
    assert covered_questions(study) == (0, 1)
    assert values_along(study, course) == (100.0, 60.0, None, None)
    assert course_text(study, course.questions) == ["not asked of every engine at 512, 1024", "one plan at the others"]
    assert overall(study, "random").questions == 2
    text, page = study_text(study), study_page(study)
    for words in ("no design at", "one plan throughout", "none found", "gains 10 %"):
        assert words not in text
        assert words not in page.partition("<script")[0]
    assert "not whole: 2 of 4 questions were asked of every engine" in text
    assert "not whole: 2 of 4 questions were asked of every engine" in page
    sheet = study_sheet(study)
    table = sheet.sections[1].parts[-1]
    assert isinstance(table, Table)
    assert [column.texts[3] for column in table.columns if column.head not in ("unit", "bound")] == [
        "1024",
        "not asked",
        "not run",
        "not run",
    ]
    assert ("asked of every engine", "2 of 4") in sheet.figures


def test_seeds_that_are_missing_leave_a_question_half_asked() -> None:
    study = study_of(RUN, searched(101.0), searched(102.0, seed=1))
    assert covered_questions(study) == (0,)
    assert covered_questions(partly(study)) == ()
    assert "not whole: 0 of 1 question was asked of every engine" in partial_text(partly(study))


def test_what_nobody_found_is_no_proof_that_there_is_none_and_plans_are_compared_across_gaps() -> None:
    axes, at = (Axis("x", "x", ("a", "b", "c")),), (("a",), ("b",), ("c",))
    lost = replace(LOST, engine="boxes", answered_by="boxes", question=1)
    study = study_of(planned("A", 3.0, 0), lost, planned("B", 2.0, 2), at=at, axes=axes)
    assert course_text(study, (0, 1, 2)) == ["none found at b", "another plan at c"]
    refuted = replace(lost, status="INFEASIBLE", proved=True)
    study = study_of(planned("A", 3.0, 0), refuted, planned("A", 2.0, 2), at=at, axes=axes)
    assert course_text(study, (0, 1, 2)) == ["no design at b", "one plan at the others"]


def test_engines_that_search_by_a_seed_are_those_that_families_name() -> None:
    assert {*SEARCHERS, "alternating"} == FAMILY.searching
    assert FAMILY.seeded <= set(FAMILY.engines)
