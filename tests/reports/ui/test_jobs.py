"""Searches and checks in processes of their own, as the page starts, watches and ends them; and the command that serves it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra `ui` is not installed")
pytest.importorskip("httpx2", reason="the client of starlette's tests is not installed")

from starlette.testclient import TestClient

from crossopt.instances.catalogue.registry import shipped
from crossopt.reports.cli import main
from crossopt.reports.commands.report import page_of
from crossopt.reports.ui.app import Access, Served, application, listening
from crossopt.reports.ui.runs import Desk, _news
from tests.paths import INSTANCES, ROOT

pytestmark = pytest.mark.process

PORT = 8080
HERE = f"http://127.0.0.1:{PORT}"
TINY = (INSTANCES / "tiny.yaml").read_text(encoding="utf-8")
LONG = shipped()["gpt3-175b-pathfinding-large"].read_text(encoding="utf-8")
SAVED = ROOT / "reports/gallery/quickstart.json"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "kept").mkdir()
    one = Served(Access(PORT), Desk(tmp_path / "kept"), tmp_path)
    yield one
    one.desk.close()


@pytest.fixture
def page(served: Served) -> TestClient:
    client = TestClient(application(served), base_url=HERE, headers={"origin": HERE})
    client.get(f"/?token={served.access.token}")
    return client


def post(page: TestClient, to: str, /, **given: object) -> Any:  # noqa: ANN401 - JSON
    return page.post(to, content=json.dumps({"origin": "", "name": "my-run", "engine": "auto", "limit": "60s", **given})).json()


def events(page: TestClient, job: int) -> list[tuple[str, Any]]:
    """All that is told of a job until its end."""
    text = page.get(f"/api/jobs/{job}").text
    return [(name, json.loads(data)) for name, data in re.findall(r"event: (\w+)\ndata: (.*)\n", text)]


def test_a_search_tells_incumbents_as_it_goes_and_ends_with_a_proof(page: TestClient, served: Served) -> None:
    quickstart = shipped()["quickstart"].read_text(encoding="utf-8")
    told = events(page, post(page, "/api/solve", text=quickstart, name="quickstart")["job"])
    rows = [row for name, some in told if name == "progress" for row in some]
    assert (told[0][0], told[0][1]["what"], told[0][1]["unit"], told[-1][0]) == ("begin", "solve", "s", "end")
    assert len(rows) > 1 and min(row["best"] for row in rows) == told[-1][1]["best"]
    assert told[-1][1]["best"] == told[-1][1]["bound"] == json.loads(SAVED.read_text(encoding="utf-8"))["value"]
    row = told[-1][1]["result"]
    assert (row["name"], row["verdict"], row["gap"]) == ("quickstart", "proved optimal", "0.00%")
    assert events(page, row["number"])[-1] == told[-1], "a page that is opened again is told the same"
    saved = page.get(f"/results/{row['number']}.json").json()
    assert saved["question"]["source"].endswith("quickstart.yaml")
    levers = post(page, "/api/levers", text=quickstart, result=row["number"])["levers"]
    priced = post(page, "/api/price", text=quickstart, picks={lever["name"]: lever["at"] for lever in levers})
    assert priced["step_time"] == saved["value"]
    assert "no answer to the question" in post(page, "/api/levers", text=TINY, result=row["number"])["refused"]
    assert [one.name for one in served.desk.results.values()] == ["quickstart"]


def test_a_search_that_is_stopped_keeps_its_best_answer(page: TestClient, served: Served) -> None:
    job = post(page, "/api/solve", text=LONG, limit="10min")["job"]
    until(lambda: '"best": ' in read(served.desk.jobs[job].log) and '"best": null' not in read(served.desk.jobs[job].log).splitlines()[-1])
    post(page, "/api/stop", job=job)
    _, end = events(page, job)[-1]
    assert end["result"]["value"] != "none"
    assert end["bound"] is None or end["bound"] <= end["best"]


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def until(done: Callable[[], object]) -> None:
    for _ in range(1200):
        if done():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come to that")


def test_a_question_that_names_a_file_of_its_folder_is_solved(page: TestClient, served: Served) -> None:
    (served.folder / "sub").mkdir()
    entry = main_text(["list", "hardware", "--show", "a100-80g"])
    (served.folder / "sub" / "mine.yaml").write_text(entry, encoding="utf-8")
    text = TINY.replace("hardware: a100-80g", "hardware: sub/mine.yaml")
    _, end = events(page, post(page, "/api/solve", text=text)["job"])[-1]
    assert end["result"]["verdict"] == "proved optimal", end["said"]


def main_text(words: list[str]) -> str:
    done = subprocess.run([sys.executable, "-m", "crossopt", *words], capture_output=True, text=True, check=True, timeout=60, cwd=ROOT)
    return done.stdout


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"engine": "--help"}, "unknown"),
        ({"engine": "nobody"}, "unknown"),
        ({"limit": "soon"}, "time limit"),
        ({"limit": "60"}, "unit"),
        ({"limit": "nan s"}, "time limit"),
        ({"text": "kind: codesign"}, "missing"),
        ({"name": 7}, "name"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused_before_it_begins(
    given: dict[str, object], words: str, page: TestClient, served: Served
) -> None:
    assert words in post(page, "/api/solve", **{"text": TINY, **given})["refused"]
    assert served.desk.jobs == {}


def test_few_processes_work_at_once_and_all_end_with_the_server(page: TestClient, served: Served) -> None:
    jobs = [post(page, "/api/solve", text=LONG, limit="10min")["job"] for _ in range(2)]
    assert "at work" in post(page, "/api/solve", text=LONG)["refused"]
    served.desk.close()
    assert all(served.desk.jobs[job].code is not None for job in jobs)


def test_a_check_accepts_what_holds(page: TestClient) -> None:
    row = page.post("/api/open?name=quickstart.json", content=SAVED.read_bytes()).json()["result"]
    _, end = events(page, post(page, "/api/check", result=row["number"])["job"])[-1]
    assert (end["result"]["check"]["mood"], end["code"]) == ("accepted", 0)
    assert page.get(f"/results/{row['number']}.html").text == page_of(SAVED, check=True)


def test_a_forged_result_is_refused_by_the_page_or_by_its_check(page: TestClient, tmp_path: Path) -> None:
    data = json.loads(SAVED.read_text(encoding="utf-8"))
    worse = {**data, "value": data["value"] * 0.9, "bound": data["value"] * 0.9}
    assert page.post("/api/open?name=forged.json", content=json.dumps(worse).encode()).json()["refused"]
    tampered = json.loads(json.dumps(data))
    tampered["proof"]["space"]["feasible"] += 1
    row = page.post("/api/open?name=forged.json", content=json.dumps(tampered).encode()).json()["result"]
    _, end = events(page, post(page, "/api/check", result=row["number"])["job"])[-1]
    assert (end["result"]["check"]["mood"], len(end["result"]["check"]["lines"])) == ("refused", 1)
    (tmp_path / "forged.json").write_text(json.dumps(tampered), encoding="utf-8")
    assert page.get(f"/results/{row['number']}.html").text == page_of(tmp_path / "forged.json")


def test_progress_that_moves_nothing_is_told_once() -> None:
    lines = [
        {"seconds": one, "words": f"{one}", "best": best, "bound": bound}
        for one, best, bound in ((0, None, 1.0), (1, 3.0, 1.0), (2, 3.0, 1.0))
    ]
    infinite = {"seconds": 3, "words": "3", "best": float("inf"), "bound": 2.0}
    assert [(row["seconds"], row["best"], row["bound"]) for row in _news([*lines, infinite])] == [
        (0, None, 1.0),
        (2, 3.0, 1.0),
        (3, None, 2.0),
    ]


# --- the command -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_it_is_interrupted(number: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "crossopt", "ui", "tiny", "--no-browser"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    assert re.fullmatch(r"crossopt ui: http://127\.0\.0\.1:\d+/\?token=[\w-]{40,}\n", first)
    until(lambda: list(tmp_path.glob("crossopt-ui-*")))
    time.sleep(0.5)
    process.send_signal(number)
    rest, errors = process.communicate(timeout=30)
    assert (process.returncode, rest.splitlines()[-1], errors) == (0, "ended", "")
    assert list(tmp_path.glob("crossopt-ui-*")) == []


def test_without_the_extra_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("crossopt.reports.commands.ui.find_spec", lambda name: None)
    with pytest.raises(SystemExit) as left:
        main(["ui", "tiny"])
    assert left.value.code == 2
    assert capsys.readouterr().err == (
        "crossopt: ui: the page needs starlette and uvicorn, which are not installed (pip install '.[ui]')\n"
    )


def test_a_port_that_is_taken_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with listening(0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit):
            main(["ui", "--no-browser", "--port", str(port)])
    assert f"--port {port}: address already in use" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("no-such.yaml", None, "no such file"),
        ("graph.json", '{"nodes": [], "edges": []}', "graph of another tool"),
        ("a.csv", "a,b\n", "a table"),
    ],
)
def test_a_file_that_is_no_question_is_refused_by_the_command(
    name: str, text: str | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    with suppress(SystemExit):  # as usage errors leave
        assert main(["ui", str(tmp_path / name), "--no-browser"]) == 3
    assert words in capsys.readouterr().err
