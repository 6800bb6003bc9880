"""The hunt for false proofs and for files that break a command: ten minutes of it, and that it finds what it should."""

import json
import os
import signal
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random

import pytest

from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read_again
from crossopt.solvers.family import Proved
from tests.hunt import __main__ as hunt
from tests.hunt import files, fronts, held, liars, relations
from tests.hunt.__main__ import PARTS, hunted
from tests.hunt.corpus import VALIDATE, Original
from tests.hunt.coverage import ALL, COLUMNS, options_of, sum_of, table_of, totals_of
from tests.hunt.drawn import CHIPS, DRAWS, PLAIN, Drawn, least_design
from tests.hunt.extras import EXTRAS
from tests.hunt.mutants import mutant
from tests.samples import CHAIN, PROFILE
from tests.solvers.codesign.questions import ask

pytestmark = pytest.mark.process

QUICK = ("placement", "strategies", "chain", "split stages")


def test_some_of_every_quick_kind_is_hunted_and_nothing_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in QUICK:
        assert held.hunt(DRAWS[name](3), Random(3), tries=4)["forged"] >= 4
    monkeypatch.setattr(hunt, "monotonic", count().__next__)  # a second between looks at the clock: time for one question
    bags = hunted(["strategies"], seconds=3, seed=5, edits=2, folder=tmp_path)
    assert (bags["strategies"].questions, bags["strategies"].findings) == (1, [])


def test_questions_that_follow_from_an_answer_are_hunted_and_a_limit_that_loses_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Drawn("codesign", ask(PLAIN[0].format(chip=CHIPS[0])), least_design(ask(PLAIN[0].format(chip=CHIPS[0]))), ("exhaustive",))
    assert held.hunt(drawn, Random(1), tries=0)["related"] == 2
    limits = relations.RULES["codesign"].limits
    lower = relations.Rules(lambda *asked: (replace(limit, figure=limit.figure * 0.999) for limit in limits(*asked)))
    monkeypatch.setitem(relations.RULES, "codesign", lower)
    monkeypatch.setattr(relations, "RELATIONS", (relations.at_a_figure,))
    with pytest.raises(held.FindingError, match="at a figure: exhaustive: it proves that there is nothing"):
        held.hunt(drawn, Random(1), tries=0)


def test_a_question_that_does_not_end_is_found_and_the_next_ones_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hunt, "monotonic", count().__next__)
    monkeypatch.setattr(hunt, "LONG", 0.05)
    answers = iter((lambda: all(number for number in count(1)), lambda: True))
    monkeypatch.setitem(hunt.LIES, "false infeasible", lambda seed, random: Counter(forged=next(answers)()))
    bag = hunted(["false infeasible"], seconds=5, seed=1, edits=0, folder=tmp_path)["false infeasible"]
    assert (bag.questions, bag.said["forged"]) == (1, 1)
    assert bag.findings == ["false infeasible, seed 1: it has not ended after 0 s of the processor"]


def test_of_a_trace_in_which_no_change_changes_anything_another_is_drawn() -> None:
    assert DRAWS["changes of a trace"].question(700_025).names


def test_the_options_of_a_question_are_counted_and_those_seldom_compared_marked() -> None:
    text = """\
kind: codesign
workload: {model: gpt3-125m, global_batch: 64}
cluster: {devices: 8, network: [{size: 4, shape: ring, bandwidth: 90 GB/s}, {size: 2, shape: switch, bandwidth: 25 GB/s}]}
hardware: h100-sxm
stack: fsdp
choices: {tensor: [1, 2], pipeline: 1, zero: [1, 3], overlap: data}
"""
    own = options_of(ask(text))
    said = ("choices.tensor", "choices.zero: 1", "choices.zero: 3", "choices.overlap: data", "choices.overlap: none", "choices.pipeline")
    assert [option in own for option in said] == [True, True, True, True, False, False]
    assert {"stack: fsdp", "shape: ring", "shape: switch", "objective: step_time", "form: dense", "form: one"} <= own
    columns = {column: Counter(dict.fromkeys(own, 50)) for column in COLUMNS}
    marked = {line.split("  ")[0] for line in table_of(columns).splitlines() if line.endswith("few")}
    assert marked == {*ALL} - own


def test_what_several_runs_printed_is_added_up_and_an_option_compared_often_enough_in_all_of_them_is_not_marked() -> None:
    logs = []
    for compared in (20, 1_230):
        columns = {column: Counter({ALL[0]: compared, ALL[1]: 24}) for column in COLUMNS}
        sums = {"questions": 7, "compared": compared, "forged": 1_000, "files": 3, "findings": 1}
        logs.append(table_of(columns) + totals_of(sums, {"full disk": 2, "sweep: clock": compared}, columns["compared"]))
    *rows, faults, total = sum_of(logs).splitlines()
    assert [row.split() for row in rows[1:3]] == [[ALL[0], *["1,250"] * 3], [ALL[1], *["48"] * 3, "few"]]
    assert faults == "faults: 4 full disk, 1,250 sweep: clock"
    few = f"{len(ALL) - 1:,} of {len(ALL):,} options were compared in fewer than 50 questions"
    assert total == f"sums: 14 questions, 1,250 compared, 2,000 forged, 6 files, 1,254 faults, 2 findings; {few}"


def test_each_rare_setting_of_joint_designs_is_taken_by_a_plain_question() -> None:
    plain = [{"text": text.format(chip=chip), "source": "question.yaml", "settings": []} for text in PLAIN for chip in CHIPS[:3]]

    def taken(extra: str) -> bool:
        for document in plain:
            with suppress(InstanceError):
                return read_again({**document, "settings": extra.split(" ; ")}, "codesign") is not None
        return False

    left = [extra for extra in EXTRAS["codesign"] if not extra.startswith("combine=")]  # of several workloads alone
    assert [extra for extra in left if not taken(extra)] == []


def test_a_check_that_believes_everything_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some edit of some result raises its bound; whoever does not carry the proof out anew accepts that."""
    found = held.family_of
    monkeypatch.setattr(held, "family_of", lambda kind: replace(found(kind), prove=lambda *given: Proved()))
    with pytest.raises(held.FindingError, match="nothing is below"):
        for seed in range(1, 40):
            held.hunt(DRAWS["chain"](seed), Random(seed), tries=60)


def test_a_forged_tree_is_refused_and_found_out_where_everything_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    lie = liars.LIES["false infeasible"]
    assert lie(1, Random(1))["with a tree"] >= 1
    monkeypatch.setattr(liars, "FAMILY", replace(liars.FAMILY, prove=lambda *given: Proved()))
    with pytest.raises(held.FindingError, match="a forged INFEASIBLE with the bound None is accepted"):
        lie(1, Random(1))


@pytest.mark.parametrize(
    ("name", "text"),
    [("chain.yaml", CHAIN.encode()), ("profile.txt", PROFILE.encode()), ("a.json", b'{"a": [1, 2, {"b": 3.5}], "c": "d"}')],
)
def test_a_file_is_hit_in_the_same_way_by_the_same_seed(name: str, text: bytes) -> None:
    several = [mutant(name, text, [text], Random(seed)) for seed in range(60)]
    assert several == [mutant(name, text, [text], Random(seed)) for seed in range(60)]
    assert len(set(several)) >= 40


def seen_of(original: Original, folder: Path, count: int) -> files.Seen:
    given, seen = folder / "given", files.Seen()
    given.mkdir(parents=True)
    files.hit_files(given, 0, folder / "kept", lambda _: None, seen, count)
    return seen


def test_files_are_hit_and_answered_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = Original("chain.yaml", CHAIN.encode(), "question chain", VALIDATE)
    monkeypatch.setattr(files, "corpus", lambda given: [original])
    seen = seen_of(original, tmp_path, 30)
    assert (seen.files, seen.findings) == (30, [])
    assert set(seen.endings) <= {"validate 0", "validate 3"}


@pytest.mark.parametrize(("how", "told"), [("fails", "ends with 1"), ("hangs", "takes more than"), ("dies", "the process ended with -9")])
def test_a_command_that_breaks_on_a_file_is_found_and_the_file_kept(
    how: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def main(line: list[str]) -> int:
        if how == "dies" and Path(line[1]).read_bytes() != b"sound":
            os.kill(os.getpid(), signal.SIGKILL)
        while how == "hangs" and Path(line[1]).read_bytes() != b"sound":
            pass
        return int(Path(line[1]).read_bytes() != b"sound")

    original = Original("one.txt", b"sound", "text", VALIDATE)
    monkeypatch.setattr(files, "corpus", lambda given: [original])
    monkeypatch.setattr(files, "SECONDS", 0.05)
    monkeypatch.setattr(files.cli, "main", main)
    seen = seen_of(original, tmp_path, 3)
    assert seen.files == 3
    assert seen.findings
    assert all(told in finding for finding in seen.findings)
    assert len(list((tmp_path / "kept").iterdir())) == len(seen.findings)


def claim(**more: object) -> bytes:
    return json.dumps({"kind": "chain", "question": {"text": "x"}, "value": 5.0, "bound": 5.0, "proved": True, **more}).encode()


@pytest.mark.parametrize(
    ("edited", "last", "found"),
    [
        (claim(), "accepted", ""),
        (claim(value=4.0), "accepted", "the value 4.0, and none is below 5.0"),
        (claim(value=7.0, bound=6.0), "accepted", "the bound 6.0, and 5.0 is reached"),
        (claim(value=None, bound=None), "accepted", "there is no answer, and 5.0 is reached"),
        (claim(value=7.0, bound=6.0, proved=False), "accepted, except the bound, which is solver-reported and was not proved again", ""),
        (claim(value=4.0, question={"text": "y"}), "accepted", ""),
    ],
)
def test_a_false_claim_that_was_accepted_is_found(edited: bytes, last: str, found: str) -> None:
    truths = files.truths_of([Original("one.result.json", claim(), "result chain", ())])
    faults = files.passed(edited, f"checked\nFILE: {last}\n", truths)
    assert len(faults) == bool(found)
    assert all(found in fault for fault in faults)


def test_a_front_with_a_point_too_few_is_found_and_what_is_near_the_optimum_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fronts.hunt_near(5, Random(5), 0)[1]["options"] >= 4
    assert fronts.hunt_front(4, Random(4), 2)[1]["points"] == 2
    found = fronts.front
    monkeypatch.setattr(fronts, "front", lambda *given: replace(found(*given), points=found(*given).points[1:]))
    with pytest.raises(held.FindingError, match="the front of"):
        fronts.hunt_front(4, Random(4), 2)


@pytest.mark.slow
def test_ten_minutes_of_hunting_find_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bags = hunted(list(PARTS), seconds=600.0, seed=20_261, edits=25, folder=tmp_path)
    with capsys.disabled():
        print({name: (bag.questions, bag.said) for name, bag in bags.items()})
    assert [finding for bag in bags.values() for finding in bag.findings] == []
