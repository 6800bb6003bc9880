"""What every kind of question promises, held for all of them at once: each kind brings only samples (`tests.samples`).

A toy kind stands among them: one row of the table of kinds, one file, and every command works.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

import pytest

from crossopt.formulation.vipr import vipr_certificate
from crossopt.instances.errors import InstanceError, RefusedError, VerificationError
from crossopt.instances.files.dataclass_json import to_plain
from crossopt.instances.kinds import KINDS, Kind
from crossopt.instances.question import read as read_question
from crossopt.instances.question import read_again
from crossopt.reports import shown
from crossopt.reports.cli import main
from crossopt.reports.commands.report import page_of
from crossopt.reports.render.html import page as page_text
from crossopt.reports.render.html import text_html
from crossopt.reports.sheets.sheet import Sheet
from crossopt.reports.shown import digest_of, sheet_of, text_of
from crossopt.reports.shown import page_of as page_of_result
from crossopt.solvers import vipr
from crossopt.solvers.answer import Limits, Result, claimed_lower_bound, result_in, to_text, unwatched
from crossopt.solvers.checking import check, check_answer, faults_but_proof
from crossopt.solvers.family import UNLIKE, certify, engine_of, family_of, solve
from tests.extent import FULL
from tests.once import once
from tests.paths import ROOT
from tests.reports.look import embedded, looked_at, mixed_cells
from tests.samples import SAMPLES

KINDS["knapsack"] = Kind("things in a sack", "tests.toy", family="tests.toy")
EACH = pytest.mark.parametrize("kind", [kind for kind, row in KINDS.items() if row.family])
FREE = {"seconds", "versions", "seed", "notes", "trace"}
"""What a result says of the machine and the moment, which nobody can say again."""
NEW: tuple[object, ...] = ("x", "", 123.5, None, 3, -1, True, 10**400, [], {})
SHOWING = {(key,) for key in ("limit", "prices", "block", "states", "longest", "beside", "tangents")}
"""Limits, prices, blocks, paths and multipliers that show a bound: others that show it too are a proof of it (placement's `test_prove`)."""
WITH_TREES = {"benchmark", "sharding"}
"""Kinds of whose samples some are proved by a tree about an integer model; of placements and joint designs larger questions are."""
FEW = NEW[::3]
"""Deep inside, of further samples, and in answers to narrower questions: whatever is refused in one place of a kind is in the other.

Of further samples each place has one of them in turn, unless the slow tests run."""


@cache
def folder() -> Path:
    return Path(tempfile.mkdtemp())


def questions(kind: str) -> list[Path]:
    """The samples of a kind as files."""
    assert kind in SAMPLES, f"the kind {kind} has no questions in SAMPLES of tests/samples.py to hold it to what all kinds promise"
    sample, found = SAMPLES[kind], []
    for place, text in enumerate(sample.texts):
        path = folder() / f"{kind}-{place}{sample.suffix}"
        path.write_text(text, encoding="utf-8")
        found.append(path)
    for name, text in sample.files:
        (folder() / name).write_text(text, encoding="utf-8")
    return found


@cache
def read(path: Path, settings: tuple[str, ...] = ()) -> Any:  # noqa: ANN401 - a question of any kind
    return read_question(path, settings)


@once
def question_in(saved: Mapping[str, Any], kind: str) -> Any:  # noqa: ANN401 - a question of any kind
    """The question that a result holds, with the tables that pricing made for it before."""
    return read_again(saved, kind, folder())


@cache
def results(kind: str) -> tuple[Result[Any, Any], ...]:
    """What every engine says of every sample, and of the impossible one."""
    family = family_of(kind)
    found = [result for path in questions(kind) for result in answers(kind, path)]
    impossible = read(questions(kind)[0], SAMPLES[kind].impossible)
    return (*found, solve(family, impossible, next(iter(family.engines)), Limits(), unwatched))


SHEETS: dict[int, Sheet] = {}
SEARCHED_REASONS = {"accelerator", "benchmark", "knapsack"}


@pytest.fixture
def made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sheet of a result, which prices plans, is made once for all that is drawn of it."""

    def made(kind: str, question: object, result: Result[Any, Any]) -> Sheet:
        if id(result) not in SHEETS:
            SHEETS[id(result)] = sheet_of(kind, question, result)
        return SHEETS[id(result)]

    monkeypatch.setattr(shown, "sheet_of", made)


@cache
def answers(kind: str, path: Path, seconds: float | None = None) -> tuple[Result[Any, Any], ...]:
    """What every engine says that answers such a question; the first one must, and comes to its end. Nobody changes an answer."""
    family, found, limits = family_of(kind), [], Limits(SAMPLES[kind].seconds if seconds is None else seconds)
    for engine in family.engines:
        with suppress(*([] if engine == "auto" else [RefusedError])):
            found.append(solve(family, read(path), engine, Limits() if engine == "auto" and seconds is None else limits, unwatched))
    return tuple(found)


def edits(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:  # noqa: ANN401
    """The place of every value of a result, lists and mappings too."""
    alike = path[:1] == ("parts",) and len(path) > 2 and path[1] != 0  # parts are looked at one as the other
    free = path and (alike or inside(path)[0] in FREE)
    if path and not free:
        yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from edits(value, (*path, key)) if not free else ()


def inside(path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The place within the answer to a narrower question, where it lies in one."""
    return inside(path[2:]) if path[0] == "parts" and len(path) > 2 else path


@EACH
def test_every_kind_has_samples_and_an_engine_that_is_asked_first(kind: str) -> None:
    assert next(iter(family_of(kind).engines)) == "auto"
    found = results(kind)
    assert any(result.status == "OPTIMAL" for result in found)
    assert found[-1].status == "INFEASIBLE"
    assert found[-1].reasons


@EACH
def test_results_survive_json_and_are_accepted(kind: str) -> None:
    family = family_of(kind)
    for result in results(kind):
        again = result_in(json.loads(to_text(result)), family.answer, family.details)
        assert again == result
        report = check(family, again, folder())
        assert report.refused == ()
        assert not report.unverified or result.unverified, "what rests on a report is not called proved"


@EACH
def test_proofs_that_are_trees_about_integer_models_become_certificates(kind: str) -> None:
    """The checker of VIPR finds the bound of the result, no value of an answer below it, and where values are whole the answer itself."""
    family, found = family_of(kind), 0
    for result in results(kind):
        bound = claimed_lower_bound(result)
        proof = None if bound is None else family.integer_proof(question_in(result.question, kind), result)
        if proof is None or bound is None:
            continue
        certificate, found = vipr_certificate(proof), found + 1
        checked = vipr.check(certificate.text)
        assert (checked.low, checked.infeasible) == (certificate.bound, certificate.bound is None)
        shown = proof.shown(certificate.bound)
        assert shown >= bound if result.proved else shown <= inf
        assert result.value is None or shown <= result.value
        assert proof.known is None or checked.high == result.value
    assert (found > 0) == (kind in WITH_TREES)


@EACH
@pytest.mark.parametrize("all_values", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["quick", "all"])
def test_every_single_edit_is_refused(kind: str, all_values: bool) -> None:
    """Or it says the same: what a result does not show again from its question, it must not hold."""
    for number, sample in enumerate(questions(kind)):
        result = answers(kind, sample)[0]
        whole, question = json.loads(to_text(result)), question_in(result.question, kind)
        places = [path for path in edits(whole) if not _says_nothing(path, whole)]
        few = [inside(path) != path or len(path) > 4 or number > 0 for path in places]
        one = not all_values and (number > 0 or not FULL)
        values = [(FEW[turn % len(FEW)],) if one else FEW if fewer else NEW for turn, fewer in enumerate(few)]
        news = [(path, new) for path, several in zip(places, values, strict=True) for new in several]
        assert [(path, new) for path, new in news if _passes(kind, whole, path, new, question)] == []


@EACH
def test_baselines_have_the_names_notes_and_values_of_their_kind(kind: str) -> None:
    """Names and notes that are others, figures that cannot be, a baseline twice, and where it is certain, one less."""
    family, forged = family_of(kind), list[Result[Any, Any]]()
    for result in (result for result in results(kind) if kind != "knapsack"):  # a toy without a declaration
        question = question_in(result.question, kind)
        others = [own for own in family.searched(question) if not own.always] if family.searched else []
        for number, own in enumerate(result.baselines):
            before, after = result.baselines[:number], result.baselines[number + 1 :]
            changes: tuple[dict[str, Any], ...] = ({"name": own.name + "x"}, {"note": own.note + "x"}, {"seconds": -1.0})
            several = [(*before, replace(own, **change), *after) for change in changes]
            several += [] if any(re.fullmatch(other.name, own.name) for other in others) else [(*before, *after)]
            several += [(*result.baselines, replace(own, seconds=own.seconds))]
            chosen = several if FULL else [several[len(forged) % len(several)]]
            forged += [replace(result, baselines=baselines) for baselines in chosen]
    assert [one.baselines for one in forged if not faults_but_proof(family, one, question_in(one.question, kind))] == []


@EACH
def test_a_proof_is_no_other_engines(kind: str) -> None:
    family = family_of(kind)
    for result in results(kind):
        for engine in {*family.engines} - {*family.provers.get(result.proved_by, family.engines)}:
            assert faults_but_proof(family, replace(result, engine=engine), question_in(result.question, kind))


@EACH
def test_a_proof_is_called_what_it_is_with_its_figures(kind: str) -> None:
    """Each figure one more, and each other thing that proofs of the kind are called; whose word a bound is nothing shows."""
    family, named = family_of(kind), {result.proof.by: result for result in results(kind) if result.proof and not result.unverified}
    for by, result in named.items():
        more = [f"{by[: at.start()]}{int(at[0].replace(',', '')) + 1:,}{by[at.end() :]}" for at in re.finditer("[0-9][0-9,]*", by)]
        others = [one for one in family.proof_labels if "N" not in one and one != by]
        question = question_in(result.question, kind)
        forged = [replace(result, proof=replace(result.proof, by=words)) for words in (*more, *others)]
        assert [one.proof.by for one in forged if check_answer(family, one, question).accepted] == [], by


def _passes(kind: str, whole: Any, path: tuple[str | int, ...], new: object, question: Any) -> bool:  # noqa: ANN401
    """Whether a result is accepted with another value in one place; its question is read again where that is the place."""
    place = whole
    for step in path[:-1]:
        place = place[step]
    old = place[path[-1]]
    if old == new or type(old) is type(new) is bool:
        return False
    place[path[-1]] = new
    accepted = passes(family_of(kind), whole, None if path[0] == "question" else question)
    place[path[-1]] = old
    return accepted


def _says_nothing(path: tuple[str | int, ...], whole: Any) -> bool:  # noqa: ANN401
    """Names and notes of baselines, one that keeps no rule, who proved, where a file lay, how near was asked, and steps on the way.

    What shows a bound again may be other than it was, as long as it shows it.
    """
    words = (path[0] == "baselines" and path[-1] in {"name", "note"}) or path[-1] == "seconds"
    words |= path[0] == "baselines" and path[-1] == "answer" and whole["baselines"][path[1]]["value"] is None
    return (
        words
        or path in {("baselines",), ("question", "source")}
        or path[:2] == ("proof", "by")
        or path[:3] == ("proof", "certificate", "steps")  # other steps that prove the same bound are a proof of it
        or (path[0] == "proof" and path[1:2] in SHOWING)
        or path[0] in {"gap_asked", "reasons", "engine", "trace"}
    )


def passes(family: Any, data: Any, question: Any = None) -> bool:  # noqa: ANN401
    """Whether a result is accepted, as an answer to this question or to the one that it holds."""
    try:
        result = result_in(data, family.answer, family.details)
        report = check(family, result, folder()) if question is None else check_answer(family, result, question)
    except ValueError:
        return False
    return report.accepted


@EACH
def test_engines_agree(kind: str) -> None:
    """No proved answer is above another, and no bound is above any answer."""
    family = family_of(kind)
    for path in questions(kind):
        found = answers(kind, path)
        least = min(result.value for result in found if result.value is not None)
        assert [result.engine for result in found if result.bound is not None and result.bound > least] == []
        near = pytest.approx(least, rel=max(family.least_gap, 1e-15))
        assert [result.value for result in found if result.status == "OPTIMAL" and result.value != near] == []


@EACH
def test_a_worse_answer_that_claims_to_be_the_best_is_refused(kind: str) -> None:
    """All that the file says of it is true but that nothing is better."""
    family, claims = family_of(kind), 0
    for path in questions(kind):
        question, found = read(path), answers(kind, path)
        [best, *_] = [result for result in found if result.proved]
        for answer in told(found) if path != questions(kind)[0] else [*told(found), *left(kind)]:
            verdict = family.judge(question, answer)
            if verdict.violations or best.value is None or not verdict.value > best.value * (1.0 + 1e-9):
                continue
            claims += 1
            claim = replace(best, answer=answer, details=verdict.details, value=verdict.value, bound=verdict.value, trace=(), baselines=())
            assert not check_answer(family, claim, question).accepted
        none = replace(best, status="INFEASIBLE", answer=None, details=None, value=None, bound=inf, trace=(), baselines=(), reasons=("so",))
        assert not check_answer(family, none, question).accepted
    assert claims > 0, f"no sample of {kind} has an answer that is not the best one: say in `worse` of tests/samples.py what leaves one"


@EACH
def test_a_judge_sees_what_the_impossible_sample_forbids(kind: str) -> None:
    """The best answer of the sample is no answer to that question, whatever engines say."""
    [best, *_] = [result for result in answers(kind, questions(kind)[0]) if result.proved]
    impossible = read(questions(kind)[0], SAMPLES[kind].impossible)
    with suppress(ValueError):
        assert family_of(kind).judge(impossible, best.answer).violations


def told(found: tuple[Result[Any, Any], ...]) -> list[Any]:
    """The answers of engines and of the baselines beside them, each once."""
    answers = [one.answer for result in found for one in (result, *result.baselines) if one.answer is not None]
    return list({to_json(answer): answer for answer in answers}.values())


def left(kind: str) -> list[Any]:
    """What the engine that is asked first says to the first question where its best answers are forbidden."""
    if not SAMPLES[kind].worse:
        return []
    question = read(questions(kind)[0], SAMPLES[kind].worse)
    return [solve(family_of(kind), question, "auto", Limits(), unwatched).answer]


def to_json(answer: object) -> str:
    return json.dumps(to_plain(answer), sort_keys=True)


@EACH
def test_no_time_is_an_answer_without_a_proof_or_with_one_that_holds(kind: str) -> None:
    family = family_of(kind)
    for result in (result for path in questions(kind) for result in answers(kind, path, 0.0)):
        assert result.stopped in {"time limit", "complete"}
        assert check(family, result, folder()).accepted


@EACH
def test_other_reasons_for_infeasibility_are_refused(kind: str) -> None:
    """Except of kinds whose reasons take a search."""
    *_, none = results(kind)
    question = question_in(none.question, kind)
    assert none.value is None and none.proved and check_answer(family_of(kind), none, question).accepted
    report = check_answer(family_of(kind), replace(none, reasons=("another limit",)), question)
    assert report.accepted if kind in SEARCHED_REASONS else "REFUSED: reasons: " in str(report)


@EACH
def test_strangers_are_refused_in_words(kind: str) -> None:
    family, path = family_of(kind), questions(kind)[0]
    with pytest.raises(RefusedError, match=f"the engine 'nobody' answers no question of kind {kind}"):
        engine_of(family, "nobody")
    with pytest.raises(InstanceError, match="unknown key"):
        read(path, ("stranger=1",))
    with pytest.raises(ValueError, match="this is not a result of format 3"):
        result_in({"format": 1, "kind": kind}, family.answer, family.details)


@EACH
def test_every_command_works(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    path, target = str(questions(kind)[0]), str(tmp_path / "answer.json")
    monkeypatch.chdir(tmp_path)
    assert main(["validate", path]) == 0
    assert main(["solve", path, "--out", target]) == 0
    assert main(["check", target]) == 0
    seconds = [] if SAMPLES[kind].seconds == float("inf") else ["--time-limit", f"{SAMPLES[kind].seconds} s"]
    assert main(["compare", path, *seconds]) == 0
    for form in ("html", "text", "csv", "markdown", "latex"):
        assert main(["report", target, "--as", form]) == 0
    said = capsys.readouterr()
    assert main(["report", target, "--as", "csv", "--out", "-"]) == 0
    value, rows = json.loads(Path(target).read_text(encoding="utf-8"))["value"], capsys.readouterr().out
    assert str(value) in rows, "every table of figures begins with the answer"
    assert [line for line in said.err.splitlines() if not re.match(r" *[\d.]+ s  ", line)] == []  # progress, where a machine is slow
    assert max(map(len, said.out.splitlines())) < 140
    Path(target).write_text(Path(target).read_text().replace('"status": "OPTIMAL"', '"status": "UNKNOWN"'), encoding="utf-8")
    assert main(["check", target]) == 30
    for form in ("html", "latex"):
        assert main(["report", target, "--as", form, "--out", "drawn"]) == 30
    assert not Path("drawn").exists()
    impossible = [word for setting in SAMPLES[kind].impossible for word in ("--set", setting)]
    assert main(["solve", path, *impossible]) == 20


@EACH
@pytest.mark.usefixtures("made_once")
def test_what_is_shown_says_the_value_and_who_proved_it(kind: str) -> None:
    for result in results(kind):
        question = question_in(result.question, kind)
        text = text_of(kind, question, result)
        assert str(result.question["name"]) in text
        assert result.proved_by in " ".join(text.split())
        by_hand = kind == "codesign"  # its own texts say four digits with the unit that suits them
        digits = (
            ()
            if result.value is None or by_hand
            else (f"{result.value:.7g}", f"{result.value / 10**6:.7g} ms", f"{result.value / 10**9:.7g} s")
        )
        assert not digits or any(words in text.replace(",", "") for words in digits), "in whole ns, ms or s"
        assert digest_of(kind, question, result).value == result.value
        assert digest_of(kind, question, result).is_answer, "also without a unit, a value and a bound"
        assert by_hand or max(map(len, text.splitlines())) <= 80


@EACH
@pytest.mark.usefixtures("made_once")
def test_the_short_answer_has_its_rows_in_one_order_and_at_most_15_lines(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was chosen, its value, what it means, baselines, reasons, proof, notes, caveats, next step; no line is wider than the screen.
    What ranks several questions stands below."""
    ends = ("baselines", "why", "proof", "note", "caveat", "next")
    for result in results(kind):
        question = question_in(result.question, kind)
        for columns, most in ((60, 22), (80, 15), (120, 15)):
            monkeypatch.setenv("COLUMNS", str(columns))
            text = text_of(kind, question, result, verbose=False)
            lines = text.splitlines()
            assert len(text.partition("\n\n  Ranking\n")[0].splitlines()) <= most, text
            assert max(map(len, lines)) <= columns, text
            assert lines[0].startswith(f"{result.question['name']}   ")
        labels = [row[0] for row in shown.sheet_of(kind, question, result).brief()]
        known = [label for label in labels if label in ends]
        assert known == sorted(known, key=ends.index), labels
        assert labels[-1] == "next"
        assert "proof" in labels
        assert labels.index(known[0]) == len(labels) - len(known), "what was chosen and what it means comes first"
        assert "could not be drawn" not in text


@EACH
@pytest.mark.usefixtures("made_once")
def test_a_page_begins_with_the_rows_of_the_short_answer_in_their_order(kind: str) -> None:
    """The last row, of what to do next, lacks options of the command line."""
    for result in results(kind):
        question = question_in(result.question, kind)
        *rows, (last, _) = shown.sheet_of(kind, question, result).brief()
        page = page_text(page_of_result(kind, question, result, {}))
        first = page[page.index("<main>") : page.index("<section")]
        said = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", first)
        assert [(name, text.replace("\N{NO-BREAK SPACE}", " ")) for name, text in said[:-1]] == [
            (text_html(name), text_html(text).replace("\N{NO-BREAK SPACE}", " ")) for name, text in rows
        ]
        assert said[-1][0] == last
        assert "--verbose" not in said[-1][1]
        assert "--out" not in said[-1][1]


@EACH
@pytest.mark.usefixtures("made_once")
def test_tables_for_programs_have_figures_as_figures(kind: str) -> None:
    for result in results(kind):
        assert mixed_cells(digest_of(kind, question_in(result.question, kind), result)) == []


@EACH
def test_a_page_stands_on_its_own_holds_its_result_and_is_drawn_the_same_again(kind: str) -> None:
    for number, result in enumerate((*(answers(kind, path)[0] for path in questions(kind)), results(kind)[-1])):
        saved = folder() / f"{kind}-{number}-drawn.json"
        saved.write_text(to_text(result), encoding="utf-8")
        page = page_of(saved)
        assert page == page_of(saved)
        assert "script" not in looked_at(page).tags
        assert embedded(page) == json.loads(saved.read_text(encoding="utf-8"))


SEARCHED = {
    *("divisible", "exchange search", "smallest dropped", "TACOS, best of 200", "one order"),
    *("FlexFlow's Markov chain", "one-hot rows without relayouts", "one-hot rows without conversions"),
    *("at the peak", "blocks", "cheapest a byte", "greedy knapsack", "Griewank", "knapsack", "segments", "selective"),
}
"""Baselines that take a search, a time limit or a seed, which a check does not find again."""


RULED = (
    "benchmark",
    "chain",
    "collective",
    "fleet",
    "instances",
    "layers",
    "memory",
    "network",
    "placement",
    "pipedream",
    "pipelines",
    "synthesis",
    "what-if",
)


@pytest.mark.parametrize("kind", RULED)
def test_the_optimum_is_no_answer_of_a_rule(kind: str) -> None:
    """A check carries out rules again: with the optimum as what a rule finds, a result is refused."""
    for result in (result for result in results(kind) if result.answer is not None and not result.parts):
        question = question_in(result.question, kind)
        for place, baseline in enumerate(result.baselines):
            for note in {baseline.note, ""} if baseline.answer != result.answer and baseline.name not in SEARCHED else ():
                forged = replace(baseline, answer=result.answer, value=result.value, note=note)
                baselines = (*result.baselines[:place], forged, *result.baselines[place + 1 :])
                assert faults_but_proof(family_of(kind), replace(result, baselines=baselines), question), baseline.name


@pytest.mark.process
def test_a_check_loads_no_engine_and_no_solver(tmp_path: Path) -> None:
    """A proof that the same code wrote and checks proves nothing. One process checks an answer of each kind and says what it loads."""
    targets = {kind: str(tmp_path / f"{kind}.json") for kind, row in KINDS.items() if row.family}
    for kind, target in targets.items():
        Path(target).write_text(to_text(answers(kind, questions(kind)[0])[0]), encoding="utf-8")
    program = (
        "import sys\nimport tests.test_families\nfrom crossopt.reports.cli import main\n"
        f"for kind, target in {targets!r}.items():\n"
        "    main(['check', target])\n    print(kind, *sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = {line.split()[0]: line.split()[1:] for line in done.stderr.splitlines()[-len(targets) :]}
    assert list(loaded) == list(targets)
    for kind, names in loaded.items():
        assert [name for name in names if name.partition(".")[0] in {"ortools", "highspy", "pulp"}] == [], kind
        assert [name for name in names if _answers(name)] == [], kind
    own = {name.rpartition(".")[2] for name in loaded["piper"] if ".stages.piper." in name and name.startswith("crossopt.solvers")}
    assert own == {"family", "judge"}, "a check counts with nothing that the search does"


def _answers(module: str) -> bool:
    return module.startswith("crossopt.solvers") and module.rpartition(".")[2] in {"engine", "engines", "backends"}


def test_what_no_check_would_accept_is_no_result() -> None:
    """An engine that calls itself what it is not, and a bound that nothing proves."""
    family, question = family_of("knapsack"), read(questions("knapsack")[0])
    found = engine_of(family, "exhaustive")(question, Limits(), unwatched)
    with pytest.raises(VerificationError, match="reports the unknown name 'nobody'"):
        certify(family, question, replace(found, engine="nobody"), Limits(), 0.0)
    with pytest.raises(VerificationError, match="reports a bound without the label of its proof"):
        certify(family, question, replace(found, proof=None), Limits(), 0.0)


def test_whole_numbers_have_no_rounding() -> None:
    """An engine that is one off has other values than the judge, and no bound of these."""
    family, question = family_of("knapsack"), read(questions("knapsack")[0])
    found = engine_of(family, "exhaustive")(question, Limits(), unwatched)
    value = certify(family, question, found, Limits(), 0.0).value
    assert isinstance(value, int)
    large = replace(family, judge=lambda asked, taken: replace(family.judge(asked, taken), value=10**12))
    result = certify(large, question, replace(found, value=10**12 + 1), Limits(), 0.0)
    assert (result.value, result.bound, result.proved) == (10**12, None, False)
    assert result.notes[-1].startswith(UNLIKE)
