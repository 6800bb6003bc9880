"""The command `sweep`: what it keeps, tells and refuses, whatever happens to its processes and to its folder."""

import csv
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable
from gzip import decompress
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from crossopt.reports import arguments
from crossopt.reports.cli import main
from crossopt.solvers.sweeps import listed
from crossopt.solvers.sweeps.store import STUDY, Failure, keep, keep_failure, kept_at, listing
from tests.commands import exit_code
from tests.paths import INSTANCES
from tests.reports.browser import opened

Captured = pytest.CaptureFixture[str]
STUDY_OF_TWO = f"""\
kind: study
title: "Two kinds, and one question twice"
instances:
  - tiny
  - {{instance: tiny, name: the same, settings: {{objective: step_time}}}}
  - {{instance: tiny, name: too little, settings: {{cluster.reserved_memory: 79 GiB}}}}
  - {{instance: "{INSTANCES / "stages" / "gpt2-two-versions.yaml"}", name: chain}}
engines: [auto]
"""
MANY = """\
kind: study
title: Many
instances: [tiny]
sweep:
  - {name: devices, setting: cluster.devices, values: [8, 16]}
  - {name: batch, setting: workload.global_batch, values: [BATCHES]}
engines: [expert]
"""


def study(folder: Path, text: str, batches: int = 6) -> Path:
    path = folder / "study.yaml"
    path.write_text(text.replace("BATCHES", ", ".join(str(64 * number) for number in range(1, batches + 1))), encoding="utf-8")
    return path


def swept(path: Path, store: Path, *more: str) -> int:
    return main(["sweep", str(path), "--store", str(store), "--workers", "2", *more])


def table(store: Path, capsys: Captured, *more: str) -> str:
    capsys.readouterr()
    assert main(["sweep", "table", str(store), *more]) == 0
    return capsys.readouterr().out


def rows(text: str) -> list[dict[str, str]]:
    return [*csv.DictReader(StringIO(text))]


def results(store: Path) -> list[Path]:
    return sorted((store / "results").glob("*/*.json"))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with answers to questions of two kinds."""
    folder = tmp_path_factory.mktemp("two kinds")
    assert swept(study(folder, STUDY_OF_TWO), folder / "runs") == 0
    return folder / "runs"


def test_questions_of_any_kind_are_answered_and_what_is_asked_twice_is_solved_once(two: Path, capsys: Captured) -> None:
    found = rows(table(two, capsys))
    assert [(row["question"], row["kind"], row["status"]) for row in found] == [
        ("tiny", "codesign", "OPTIMAL"),
        ("the same", "codesign", "OPTIMAL"),
        ("too little", "codesign", "INFEASIBLE"),
        ("chain", "chain", "OPTIMAL"),
    ]
    assert (found[0]["value"], found[0]["plan"]) == (found[1]["value"], found[1]["plan"])
    assert (found[0]["plan.tensor"], found[0]["chip.name"], found[2]["plan.tensor"]) == ("1", "a100-80g", "")
    assert 0.0 < float(found[0]["share_of_peak"]) < 1.0
    assert found[0]["design.step_time in s"] == found[0]["value"]
    assert 0.0 < float(found[0]["design.average_power in W"]) < float(found[0]["design.power in W"]) == 400.0
    assert 2**33 < float(found[0]["design.memory in bytes"]) < 80 * 2**30
    assert found[3]["answer.stages"].startswith("[4, 3")
    assert len(results(two)) == 3


def test_every_answer_is_a_file_that_check_takes(two: Path, capsys: Captured) -> None:
    for path in results(two):
        assert main(["check", str(path)]) == 0
    assert main(["sweep", "check", str(two)]) == 0
    assert "3 of 3 results checked" in capsys.readouterr().out


@pytest.mark.thorough
def test_what_is_there_is_not_asked_again_and_a_new_value_asks_only_what_is_new(few: Path, tmp_path: Path, capsys: Captured) -> None:
    store = tmp_path / "runs"
    shutil.copytree(few, store)
    assert swept(study(tmp_path, MANY, 1), store) == 0
    assert "nothing was left to ask" in capsys.readouterr().out
    before = results(store)
    assert swept(study(tmp_path, MANY, 2), store, "--dry-run") == 0
    assert "2 are finished, 2 would be run now" in capsys.readouterr().out
    assert swept(study(tmp_path, MANY, 2), store) == 0
    assert "4 answered" in (told := capsys.readouterr().out)
    assert "2 of them run now" in told
    assert set(before) < set(results(store))


def test_other_code_takes_no_answer_of_this_one(tmp_path: Path, two: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr(listed, "code_digest", lambda: "another")
    assert main(["sweep", str(study(tmp_path, STUDY_OF_TWO)), "--store", str(two), "--dry-run"]) == 0
    assert "0 are finished" in capsys.readouterr().out


EDITS: dict[str, Callable[[Path], object]] = {
    "edited or cut off": lambda path: path.write_text(path.read_text(encoding="utf-8").replace('"proved": false', '"proved": true')),
    "or cut off": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "its question differs from its file name": lambda path: keep(path.parents[2], path.name.partition(".")[0], OTHER[0]),
    "it is no result": lambda path: keep(path.parents[2], path.name.partition(".")[0], "[]\n"),
}
OTHER = [""]


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two answers, and the study beside it."""
    folder = tmp_path_factory.mktemp("few")
    assert swept(study(folder, MANY, 1), folder / "runs") == 0  # a rule proves nothing, and does all that was asked
    assert main(["sweep", "status", str(folder / "runs")]) == 0
    return folder / "runs"


@pytest.mark.parametrize("words", EDITS)
def test_results_that_are_not_what_was_written_are_named_and_not_used(words: str, few: Path, tmp_path: Path, capsys: Captured) -> None:
    store = tmp_path / "runs"
    shutil.copytree(few, store)
    first, second = results(store)
    whole, OTHER[0] = table(store, capsys), second.read_text(encoding="utf-8")
    EDITS[words](first)
    if words.startswith(("its question", "it is")):
        first.unlink()
    assert main(["sweep", "status", str(store)]) == 12
    told = capsys.readouterr()
    assert words in " ".join(told.out.split())
    assert f"`crossopt sweep FILE --store {store}` runs what is left" in " ".join(told.out.split())
    assert "some runs are not finished (exit code 12)" in told.err
    assert main(["sweep", "check", str(store)]) == 30
    assert "REFUSED" in capsys.readouterr().out
    assert [row["status"] for row in rows(table(store, capsys))].count("NOT ASKED") == 1
    if words == "edited or cut off":
        assert swept(few.parent / "study.yaml", store) == 0  # asked again
        assert table(store, capsys) == whole
        assert main(["sweep", "status", str(store)]) == 0
        assert "(another file answers in its place: this one may be deleted)" in " ".join(capsys.readouterr().out.split())


def swapped(data: dict[str, Any], first: int, last: int) -> None:
    """The two points change what is between these places."""
    one, other = data["points"]
    one[first:last], other[first:last] = other[first:last], one[first:last]


LISTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "a name": lambda data: data["points"][0].__setitem__(0, "tiny"),
    "names swapped": lambda data: swapped(data, 0, 1),
    "values swapped": lambda data: swapped(data, 2, 3),
    "names and values swapped": lambda data: swapped(data, 0, 3),
    "a setting": lambda data: data["axes"][0].__setitem__(1, "workload.global_batch"),
    "a point dropped": lambda data: (data["points"].pop(), data["runs"].pop()),
    "a run dropped": lambda data: data["runs"].pop(),
    "runs of two points swapped": lambda data: [row.__setitem__(0, 1 - row[0]) for row in data["runs"]],
}


@pytest.mark.parametrize("words", LISTS)
def test_a_list_with_names_that_are_not_those_of_its_questions_is_refused(words: str, few: Path, tmp_path: Path, capsys: Captured) -> None:
    store = tmp_path / "runs"
    shutil.copytree(few, store)
    assert main(["sweep", "check", str(store)]) == 0
    data = json.loads((store / STUDY).read_text(encoding="utf-8"))
    LISTS[words](data)
    (store / STUDY).write_text(json.dumps(data), encoding="utf-8")
    capsys.readouterr()
    assert main(["sweep", "check", str(store)]) == 30
    assert "REFUSED" in capsys.readouterr().out


def test_tables_take_columns_and_times_and_other_forms(two: Path, tmp_path: Path, capsys: Captured) -> None:
    assert "seconds" not in table(two, capsys).splitlines()[0]
    assert float(rows(table(two, capsys, "--seconds"))[0]["seconds"]) > 0.0
    assert table(two, capsys, "--columns", "question,status").splitlines()[1] == "tiny,OPTIMAL"
    assert table(two, capsys, "--as", "markdown", "--columns", "question,status").splitlines()[1:3] == [
        "| --- | --- |",
        "| tiny | OPTIMAL |",
    ]
    assert main(["sweep", "table", str(two), "--out", str(tmp_path / "table.csv")]) == 0
    assert (tmp_path / "table.csv").read_text(encoding="utf-8") == table(two, capsys)
    assert main(["sweep", "index", str(two)]) == 0
    with sqlite3.connect(two / "index.sqlite") as base:
        assert base.execute("SELECT count(*) FROM runs WHERE status = 'OPTIMAL'").fetchall() == [(3,)]
    base.close()


def test_an_index_without_room_is_one_sentence_and_leaves_nothing(two: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    class Full:
        def __init__(self, path: Path) -> None:
            path.touch()
            raise sqlite3.OperationalError("database or disk is full")

    before = sorted(two.iterdir())
    monkeypatch.setattr(sqlite3, "connect", Full)
    assert main(["sweep", "index", str(two)]) == 3
    assert capsys.readouterr().err == f"{two / 'index.sqlite'}: database or disk is full\n"
    assert sorted(two.iterdir()) == before


def test_a_form_that_needs_another_package_says_so(two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for more, words in ((("--out", str(tmp_path / "x.parquet")), "this needs pyarrow (`pip install pyarrow`"), ((), "say where it goes")):
        with pytest.raises(SystemExit):
            main(["sweep", "table", str(two), "--as", "parquet", *more])
        assert words in capsys.readouterr().err


def test_a_page_stands_alone_and_reads_without_its_script(few: Path, tmp_path: Path, capsys: Captured) -> None:
    page = tmp_path / "page.html"
    assert main(["sweep", "table", str(few), "--as", "html", "--out", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert "proved, as the files say" not in text  # of a rule that proves nothing
    assert "No proof was repeated for this page" in text
    assert ">step time in s</text>" in text
    assert len(re.findall(r'text-anchor="end">[\d.]+</text>', text.split('class="for-narrow"')[0])) >= 2
    shown = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    for row in rows(table(few, capsys)):
        assert f"{float(row['value']):.5g}</td>" in shown
    assert re.findall(r"(?:src|href)=\"(?!data:)", text) == []
    saved = re.search(r'href="data:application/gzip;base64,([^"]*)"', text)
    assert saved
    assert decompress(b64decode(saved[1])).decode() == table(few, capsys)
    assert json.loads(re.findall(r'id="axes">(.*?)</script>', text)[0]) == ["axis devices", "batch"]


DRAWN = """new Promise(done => {
  const look = () => document.querySelector("#drawn td") ? done(document.querySelector("#drawn td").title) : setTimeout(look, 10);
  look();
})"""
"""What the first cell of the table says that the script draws, once it is there."""


@pytest.mark.browser
def test_a_browser_lets_axes_be_chosen_and_saves_the_table(few: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["sweep", "table", str(few), "--as", "html", "--out", str(page)]) == 0
    view = opened(page, 400)
    drawn = view.run(DRAWN)
    assert drawn.startswith("question: 8, 64\naxis devices: 8\nbatch: 64\n")
    assert view.run("document.getElementById('csv').download").endswith(".csv")
    view.run("words = document.getElementById('words'), words.value = 'no such run', words.oninput()")
    assert view.run("[...document.querySelectorAll('#runs tbody tr')].every(row => row.hidden)")
    assert view.run("document.documentElement.scrollWidth") == 400
    assert view.complaints() == []
    view.close()


def test_parquet_has_the_same_figures(few: Path, tmp_path: Path, capsys: Captured) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow does not come along")
    assert main(["sweep", "table", str(few), "--as", "parquet", "--out", str(tmp_path / "table.parquet")]) == 0
    kept = parquet.read_table(tmp_path / "table.parquet").to_pylist()
    told = rows(table(few, capsys))
    assert [(one["question"], one["value"], one["axis devices"]) for one in kept] == [
        (row["question"], float(row["value"]), row["axis devices"]) for row in told
    ]


def test_a_list_that_was_cut_off_is_written_anew_and_answers_stay(few: Path, tmp_path: Path, capsys: Captured) -> None:
    store = tmp_path / "runs"
    shutil.copytree(few, store)
    whole = (store / STUDY).read_bytes()
    (store / STUDY).write_bytes(whole[:200])
    assert main(["sweep", "status", str(store)]) == 3
    assert "writes it anew; what was answered stays" in capsys.readouterr().err
    assert swept(few.parent / "study.yaml", store) == 0
    assert "nothing was left to ask" in capsys.readouterr().out
    assert (store / STUDY).read_bytes() == whole


def test_questions_are_not_read_again_where_nothing_changed(few: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr("crossopt.solvers.sweeps.asking.ask", None)
    assert swept(few.parent / "study.yaml", few) == 0
    assert "nothing was left to ask" in capsys.readouterr().out


def test_what_makes_no_sense_is_refused_in_one_sentence(two: Path, tmp_path: Path, capsys: Captured) -> None:
    path, file = str(study(tmp_path, MANY)), tmp_path / "file"
    file.write_text("here\n", encoding="utf-8")
    store = ("--store", str(tmp_path / "runs"))
    for words, given in (
        ("--store: name a folder for the results", (path,)),
        ("this is one question (`crossopt solve tiny` answers it)", ("tiny", *store)),
        ("a sweep runs one study", (path, path, *store)),
        ("sweep status: say of what", ("status",)),
        ("--shard: '4/4' is no shard", (path, *store, "--shard", "4/4")),
        ("'all' is not a value of --retry", (path, *store, "--retry", "all")),
        ("'0' is no count", (path, *store, "--workers", "0")),
        ("--memory: 'much' is no size", (path, *store, "--memory", "much")),
        ("--time-limit: 'soon' is no time", (path, *store, "--time-limit", "soon")),
        ("--as: this does not apply to `sweep FILE`", (path, *store, "--as", "csv")),
        ("--workers: this does not apply to `sweep table`", ("table", str(two), "--workers", "2")),
        ("--columns: there is no column 'energy' (did you mean design.energy?)", ("table", str(two), "--columns", "energy")),
        ("there is no column 'vlaue' (did you mean value?)", ("table", str(two), "--columns", "vlaue")),
        ("this folder stores the study 'Two kinds, and one question twice'", (path, "--store", str(two))),
        ("this folder holds other files", (path, "--store", str(tmp_path))),
        ("this is a file (name a folder)", (path, "--store", str(file))),
        ("this folder stores no sweep", ("status", str(tmp_path))),
        ("say for which batch system", ("script", path, *store)),
    ):
        code = exit_code(["sweep", *given])
        told = capsys.readouterr()
        assert (code, told.out, words in " ".join(told.err.split())) == (2, "", True), (words, told.err)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "study.yaml"]


@pytest.mark.parametrize("where", ["/proc/1/here", "/sys/here"])
def test_a_folder_that_cannot_be_written_is_told(where: str, tmp_path: Path, capsys: Captured) -> None:
    if not Path(where).parent.is_dir():
        pytest.skip(f"no {where} here")
    assert main(["sweep", str(study(tmp_path, MANY)), "--store", where]) == 3
    assert capsys.readouterr().err.startswith(where)


def test_answers_are_read_where_nothing_can_be_written(two: Path, capsys: Captured) -> None:
    """A folder that is whole is only looked at."""
    before = table(two, capsys)
    dates = {path: path.stat().st_mtime_ns for path in two.rglob("*")}
    assert swept(study(two.parent, STUDY_OF_TWO), two) == 0
    assert main(["sweep", "status", str(two)]) == 0
    assert table(two, capsys) == before
    assert {path: path.stat().st_mtime_ns for path in two.rglob("*")} == dates


def test_all_faults_of_all_points_are_told_at_once_and_nothing_is_asked(tmp_path: Path, capsys: Captured) -> None:
    text = MANY.replace("[8, 16]", "[8, none]").replace("engines: [expert]", "engines: [expert, cuts]").replace("[tiny]", "[tiny, tinny]")
    assert main(["sweep", str(study(tmp_path, text)), "--store", str(tmp_path / "runs")]) == 3
    told = capsys.readouterr().err
    for words in ("there is no question 'tinny'", "there is no engine 'cuts' for joint designs", "sweep[0].values[1]: cluster.devices:"):
        assert words in told
    assert not (tmp_path / "runs").exists()


@pytest.mark.process
def test_an_axis_without_values_and_too_many_points_are_refused(tmp_path: Path) -> None:
    """A million points are counted, not listed: in less memory than 300 MB."""
    values = ", ".join(str(number) for number in range(1, 101))
    axes = "".join(f"  - {{setting: {name}, values: [{values}]}}\n" for name in ("a", "b", "c"))
    many = tmp_path / "many.yaml"
    many.write_text(f"kind: study\ntitle: t\ninstances: [tiny]\nengines: [auto]\nsweep:\n{axes}", encoding="utf-8")
    empty = study(tmp_path, MANY.replace("[8, 16]", "[]"))
    program = (
        "from crossopt.reports.cli import main\n"
        f"codes = [main(['sweep', name, '--dry-run']) for name in {[str(many), str(empty)]!r}]\n"
        "most = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"  # what the parent had counts elsewhere
        "print(codes, int(most.split()[1]) < 300_000)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "[3, 3] True\n"
    assert "1,000,000 questions are more than the 50,000 that may be asked at once" in done.stderr
    assert "an axis has values" in done.stderr


@pytest.mark.thorough
def test_only_runs_that_failed_or_ran_out_of_time_are_asked_again_where_that_is_said(tmp_path: Path, capsys: Captured) -> None:
    text = (
        MANY.replace("engines: [expert]", "engines: [cuts]").replace("[tiny]", "[gpt3-175b-pathfinding-large]").replace("[8, 16]", "[1024]")
    )
    text = text.replace("[cuts]", "[random]\ntime_limit: 50 ms")
    store, path = tmp_path / "runs", study(tmp_path, text, 1)
    assert swept(path, store) == 0  # searchers go on until their time is over
    assert [row["stopped"] for row in rows(table(store, capsys))] == ["time limit"]
    for retry, asked in (("failed", "nothing was left to ask"), ("failed,limit", "1 of them run now")):
        assert swept(path, store, "--retry", retry) == 0
        assert asked in capsys.readouterr().out


@pytest.mark.thorough
def test_a_sweep_ends_by_what_an_engine_that_proves_left_open_and_status_says_how_to_go_on(tmp_path: Path, capsys: Captured) -> None:
    """Boxes whose time is over before they have a bound; then a failure that is written there by hand."""
    text = "kind: study\ntitle: t\ninstances: [gpt3-175b-pathfinding-large]\nengines: [boxes]\ntime_limit: 1 ms\n"
    path, store = study(tmp_path, text), tmp_path / "runs"
    assert swept(path, store) == 11
    assert "0 proved, 1 without a proof, 1 of them stopped by time" in said(capsys)
    [row] = listing(store).rows
    for file in kept_at(store, row.key):
        file.unlink()
    keep_failure(store, row.key, Failure("it broke", 1, 1, ""))
    assert main(["sweep", "status", str(store)]) == 1
    assert f"boxes: it broke `crossopt sweep FILE --store {store} --retry failed` asks these again" in said(capsys)


def said(capsys: Captured) -> str:
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.process
def test_the_script_for_slurm_is_one_that_bash_reads(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "a folder's name"
    folder.mkdir()
    given = ["--slurm", "--shards", "40", "--memory", "4GiB", "--retry", "failed"]
    assert main(["sweep", "script", str(study(folder, MANY)), "--store", str(folder / "runs"), *given]) == 0
    text = capsys.readouterr().out
    assert "#SBATCH --array=0-39\n" in text
    (tmp_path / "script").write_text(text, encoding="utf-8")
    assert subprocess.run(["bash", "-n", str(tmp_path / "script")], capture_output=True, check=False).stderr == b""
    echoed = text.replace("exec crossopt", "printf '%s\\n'")
    done = subprocess.run(
        ["bash"], input=echoed, env={"SLURM_ARRAY_TASK_ID": "3", "PATH": os.environ["PATH"]}, capture_output=True, text=True, check=True
    )
    expected = [str(folder / "study.yaml"), "--store", str(folder / "runs"), "--workers", "1", "--shard", "3/40"]
    assert done.stdout.splitlines() == ["sweep", *expected, "--memory", "4GiB", "--retry", "failed"]


def test_the_folder_says_what_was_asked_last(two: Path) -> None:
    listed = json.loads((two / STUDY).read_text(encoding="utf-8"))
    assert [point[0] for point in listed["points"]] == ["tiny", "the same", "too little", "chain"]
    assert set(arguments.OF_ACTIONS) == set(arguments.ACTIONS)
