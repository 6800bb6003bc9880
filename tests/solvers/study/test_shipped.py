"""The studies that come along: their kept runs hold, say what is read from them, and come out the same when a share is run anew."""

from dataclasses import replace
from functools import cache

import pytest

from crossopt.instances.catalogue.registry import shipped
from crossopt.instances.files.saved import kind_of, read_as
from crossopt.instances.kinds import kind_of_file
from crossopt.instances.studies.study import Claims, read_study
from crossopt.reports.sheets.study import share_of
from crossopt.solvers.codesign.answer import ChosenDesign
from crossopt.solvers.study.check import check
from crossopt.solvers.study.figures import best_of, cell, courses, flips_along, gains_along, level_from, overall, values_along
from crossopt.solvers.study.records import Study, from_json
from crossopt.solvers.study.running import Asking, ask_by_study, ask_points, run_all
from tests.benchmarks.studies import GALLERY, STUDIES, TOLD, kept, text_beside, with_table
from tests.paths import INSTANCES

LARGEST = 500_000
JOINT, SCALING = TOLD
RIVALS = ("plan-only", "hardware-only", "recipes", "expert")


@cache
def stored(name: str) -> Study:
    return kept(name)


@cache
def asking(name: str) -> Asking:
    return ask_by_study(read_study(shipped()[name]))


def share(name: str, names: set[str], engines: tuple[str, ...]) -> Study:
    """These questions of a study as subjects of one without axes, asked of these engines, without what follows from other engines."""
    whole = asking(name)
    chosen = [pair for pair in zip(whole.listed.points, whole.instances, strict=True) if pair[0].name in names]
    assert len(chosen) == len(names)
    points = [replace(point, subject=point.name, at=()) for point, _ in chosen]
    plan = replace(whole.plan, engines=engines, claims=Claims(), axes=())
    return run_all(ask_points(plan, points, [instance for _, instance in chosen]), lambda words: None)


def gap_of(study: Study, question: int, engine: str) -> float:
    found = cell(study, question, engine)
    assert found is not None
    assert found.above is not None
    return found.above.middle


def best_design(study: Study, question: int) -> ChosenDesign:
    found = best_of(study, question)
    assert found is not None
    assert found.design is not None
    return found.design


def test_the_studies_that_come_along_are_these() -> None:
    assert {path.stem for path in (INSTANCES / "studies").glob("*.yaml")} == set(STUDIES)
    assert all(kind_of_file(shipped()[name]) == "study" for name in STUDIES)


@pytest.mark.parametrize("name", STUDIES)
def test_what_is_kept_of_a_study_is_of_this_study(name: str) -> None:
    """Its questions, axes and engines are those of the file, so that nobody reads a table of an older one."""
    study, whole = stored(name), asking(name)
    assert study.plan == whole.plan
    assert [(question.name, list(question.settings)) for question in study.questions] == [
        (point.name, list(one.document["settings"])) for point, one in zip(whole.listed.points, whole.instances, strict=True)
    ]
    assert {source.text for source in study.sources} == {one.document["text"] for one in whole.instances}
    assert study.stopped == "complete"


@pytest.mark.parametrize("name", STUDIES)
def test_tables_and_pages_are_those_of_the_runs(name: str) -> None:
    """`python -m tests.benchmarks.studies --tables` writes them anew; the gallery draws its pages from these."""
    if name in TOLD:
        text = text_beside(name).read_text(encoding="utf-8")
        assert with_table(text, stored(name)) == text
    assert (GALLERY / f"{name}.json").stat().st_size < LARGEST


@pytest.mark.parametrize("name", [name for name in STUDIES if name != JOINT])
def test_what_a_study_expects_held(name: str) -> None:
    """That it follows from the runs, and the runs from their designs, is checked where the gallery draws its pages from these."""
    assert {one.verdict for one in stored(name).findings} == {"held"}


# --- joint or single -----------------------------------------------------------------------------------------------------------------


def test_the_joint_optimum_is_proved_and_never_worse() -> None:
    study = stored(JOINT)
    for question in range(len(study.questions)):
        assert gap_of(study, question, "boxes") == 0.0
        assert all(gap_of(study, question, engine) >= 0.0 for engine in RIVALS)
    assert overall(study, "boxes").proved == len(study.questions) == 11


def test_descents_from_many_chips_end_on_all_optima_but_one_and_next_to_that() -> None:
    study = stored(JOINT)
    above = {study.questions[at].name: gap_of(study, at, "descent") for at in range(11)}
    assert {name for name, gap in above.items() if gap > 0.0} <= {"GPT-3 175B at 300 W"}
    assert max(above.values()) < 0.001


def test_taking_turns_finds_most_optima_and_one_half_alone_few() -> None:
    study = stored(JOINT)
    turns = {study.questions[at].name: gap_of(study, at, "alternating") for at in range(11)}
    above = {name: round(gap, 3) for name, gap in turns.items() if gap > 0.0}
    assert above == {"GPT-3 175B at 300 W": 0.001, "GPT-3 175B, energy": 0.0}
    halves = {study.questions[at].name: (gap_of(study, at, "plan-only"), gap_of(study, at, "hardware-only")) for at in range(11)}
    assert not [name for name, pair in halves.items() if turns[name] > min(pair)], "five seconds are enough turns"
    plan, chip = halves.pop("LSTM, 64 chips")
    assert (round(plan, 2), round(chip, 2)) == (0.86, 0.71)
    plans, chips = zip(*halves.values(), strict=True)
    assert (sum(plan < 0.01 for plan in plans), round(max(plans), 2)) == (2, 0.12)
    assert (sum(chip < 0.01 for chip in chips), round(max(chips), 2)) == (9, 0.12)


def test_a_gain_is_worth_what_it_is_compared_with() -> None:
    study = stored(JOINT)
    transformers = [at for at in range(11) if study.questions[at].name != "LSTM, 64 chips"]
    gains = {
        engine: [1.0 - 1.0 / (1.0 + gap_of(study, at, engine)) for at in transformers]
        for engine in ("expert", "recipes", "hardware-only", "alternating")
    }
    assert (round(min(gains["expert"]), 2), round(max(gains["expert"]), 2)) == (0.05, 0.24)
    assert (round(min(gains["recipes"]), 2), round(max(gains["recipes"]), 2)) == (0.0, 0.15)
    assert round(max(gains["hardware-only"]), 2) == 0.11
    assert round(max(gains["alternating"]), 3) == 0.001


@pytest.mark.thorough
def test_a_share_of_the_joint_study_comes_out_the_same() -> None:
    names = {"GPT-3 13B, 64 chips", "Mixtral 8x7B, 64 chips"}
    study, before = share(JOINT, names, ("boxes", *RIVALS)), stored(JOINT)
    assert check(study).accepted
    for question, asked in enumerate(study.questions):
        old = next(place for place, other in enumerate(before.questions) if other.name == asked.name)
        for engine in study.plan.engines:
            assert share_of(gap_of(study, question, engine)) == share_of(gap_of(before, old, engine))
        assert all(gap_of(study, question, engine) >= gap_of(study, question, "boxes") == 0.0 for engine in RIVALS)


# --- scaling -------------------------------------------------------------------------------------------------------------------------


def courses_of(study: Study) -> dict[str, tuple[float, ...]]:
    """The values along each course, all of which have designs."""
    found = {}
    for course in courses(study):
        values = values_along(study, course)
        assert None not in values
        found[course.name] = tuple(value for value in values if value is not None)
    return found


def test_every_point_of_the_scaling_study_is_proved_and_joint_is_never_worse() -> None:
    study = stored(SCALING)
    assert overall(study, "boxes").proved == len(study.questions) == 63
    for question in range(63):
        assert all(gap_of(study, question, engine) >= gap_of(study, question, "boxes") == 0.0 for engine in study.plan.engines)
    restricted = overall(study, "hardware-only").above
    assert restricted is not None
    assert (round(restricted.least, 2), round(restricted.most, 2)) == (0.0, 1.34)


def test_a_node_gains_less_and_less_and_levels_off_first_with_old_memory_on_a_slow_network() -> None:
    found = courses_of(stored(SCALING))
    assert len(found) == 9
    for values in found.values():
        gains = [gain for gain in gains_along(values) if gain is not None]
        assert all(gain > 0.0 for gain in gains)
        assert 0.23 < gains[0] < 0.32
        assert 0.06 < gains[-1] < 0.19
        assert gains[-1] < gains[0] - 0.11
    assert [name for name, values in found.items() if level_from(values) is not None] == ["hbm1, 12.5 GB/s", "hbm2, 12.5 GB/s"]


def test_the_network_is_the_first_wall_and_memory_the_second() -> None:
    found = courses_of(stored(SCALING))
    for memory, least in (("hbm1", 1.9), ("hbm2e-16", 2.0)):
        slow, fast = found[f"{memory}, 12.5 GB/s"], found[f"{memory}, 200 GB/s"]
        assert 1.32 < slow[0] / fast[0] < 1.36
        assert least < slow[-1] / fast[-1] < 2.1
    for network, least in (("12.5 GB/s", 1.2), ("200 GB/s", 1.3)):
        old, new = found[f"hbm1, {network}"], found[f"hbm2e-16, {network}"]
        assert old[0] / new[0] < 1.03
        assert least < old[-1] / new[-1] < 1.32
    oldest, newest = found["hbm1, 12.5 GB/s"], found["hbm2e-16, 200 GB/s"]
    assert (round(oldest[0] / oldest[-1], 1), round(newest[0] / newest[-1], 1)) == (3.0, 5.7)
    assert newest[3] < oldest[-1]


def test_the_plan_changes_along_every_course() -> None:
    study = stored(SCALING)
    for course in courses(study):
        assert 1 <= sum(flips_along(study, course)) <= 4
        plans = [best_design(study, question).plan for question in course.questions]
        assert (plans[0].pipeline == 1) == (course.at[1] != "12.5 GB/s")
        assert all(plan.zero == 1 for plan in plans[2:])
        assert plans[-1].pipeline in {8, 16}
        powers = [best_design(study, question).hardware.choices["hbm_power"] for question in course.questions]
        assert powers[0] == 40.0
        assert powers[-1] >= 80.0


@pytest.mark.slow
def test_a_share_of_the_scaling_study_comes_out_the_same() -> None:
    ends = {f"{node}, {rest}" for node in ("2nm", "1nm") for rest in ("hbm1, 12.5 GB/s", "hbm2e-16, 200 GB/s")}
    study, before = share(SCALING, ends, ("boxes",)), stored(SCALING)
    assert check(study).accepted
    values = {}
    for question, asked in enumerate(study.questions):
        old = next(place for place, other in enumerate(before.questions) if other.name == asked.name)
        run, said = study.runs_of(question)[0], before.runs_of(old, "boxes")[0]
        assert run.proved
        assert run.value is not None
        assert said.value is not None
        assert run.value == pytest.approx(said.value, rel=1e-9)
        values[asked.name] = run.value
    old_memory, new_memory = (values[f"1nm, {rest}"] / values[f"2nm, {rest}"] for rest in ("hbm1, 12.5 GB/s", "hbm2e-16, 200 GB/s"))
    assert new_memory < 0.9 < old_memory


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_a_whole_study_comes_out_the_same(name: str) -> None:
    study, before = run_all(asking(name), lambda words: None), stored(name)
    for run, said in zip(study.runs, before.runs, strict=True):
        assert (run.question, run.engine, run.status) == (said.question, said.engine, said.status)
        assert run.value == pytest.approx(said.value, rel=1e-9)


def test_every_saved_study_is_read_by_this_version() -> None:
    studies = [path for path in GALLERY.glob("*.json") if kind_of(path) == "study"]
    assert len(studies) >= 7
    assert all(read_as(path, from_json).runs for path in studies)
