"""The server of `crossopt ui`: who may ask, what it answers about a question, and that a request never reads what it should not."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra `ui` is not installed")
pytest.importorskip("httpx2", reason="the client of starlette's tests is not installed")

from starlette.testclient import TestClient

import crossopt
from crossopt.instances.catalogue.registry import shipped
from crossopt.instances.question import read_given
from crossopt.reports.commands.report import page_of
from crossopt.reports.ui.app import LARGEST_BODY, LARGEST_FILE, Access, Served, application
from crossopt.reports.ui.runs import Desk
from crossopt.solvers.codesign.judge import evaluate_single
from tests.extent import some
from tests.paths import INSTANCES, ROOT

Value = str | list[str] | dict[str, object]
PORT = 8080
HERE = f"http://127.0.0.1:{PORT}"
TINY = (INSTANCES / "tiny.yaml").read_text(encoding="utf-8")
GALLERY = ROOT / "reports/gallery"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    (tmp_path / "kept").mkdir()
    (tmp_path / "work").mkdir()
    one = Served(Access(PORT), Desk(tmp_path / "kept"), tmp_path / "work")
    yield one
    one.desk.close()


@pytest.fixture
def page(served: Served) -> TestClient:
    """A browser that opened the page."""
    client = TestClient(application(served), base_url=HERE, headers={"origin": HERE}, follow_redirects=False)
    assert client.get(f"/?token={served.access.token}").status_code == 200
    return client


def post(page: TestClient, to: str, /, **given: object) -> Any:  # noqa: ANN401 - JSON
    return page.post(to, content=json.dumps({"origin": "", **given})).json()


# --- who may ask -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", ["", "x", "x" * 43, "\u00e9", "%00"])
def test_nothing_is_answered_without_the_token(token: str, served: Served) -> None:
    stranger = TestClient(application(served), base_url=HERE, headers={"origin": HERE, "cookie": f"{served.access.cookie}=forged"})
    for path in ("/", "/page.js", "/api/start", "/results/1.html"):
        answer = stranger.get(path, params={"token": token})
        assert (answer.status_code, "crossopt ui" in answer.text) == (403, True)
    assert stranger.post("/api/read", content=b"{}").status_code == 403


def test_the_token_opens_the_page_alone_and_then_a_cookie_does(served: Served) -> None:
    client = TestClient(application(served), base_url=HERE, headers={"origin": HERE})
    assert client.get(f"/api/start?token={served.access.token}").status_code == 403
    first = client.get(f"/?token={served.access.token}")
    assert first.status_code == 200
    assert {"HttpOnly", "SameSite=strict"} <= {part.strip() for part in first.headers["set-cookie"].split(";")}
    assert client.get("/api/start").status_code == 200


def test_a_ticket_opens_the_page_once(served: Served) -> None:
    """It stands on the command line of a browser, where others may read it."""
    ticket = served.access.ticket
    first, second = (TestClient(application(served), base_url=HERE) for _ in range(2))
    assert first.get("/api/start", params={"token": ticket}).status_code == 403
    assert first.get("/", params={"token": ticket}).status_code == 200
    assert first.get("/api/start").status_code == 200
    assert second.get("/", params={"token": ticket}).status_code == 403
    assert second.get("/", params={"token": ""}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": f"127.0.0.1.evil.example:{PORT}"},
        {"host": "127.0.0.1:9"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_other_pages_and_other_names_of_this_host_are_refused(headers: dict[str, str], page: TestClient) -> None:
    answer = page.post("/api/read", content=json.dumps({"text": TINY, "origin": ""}), headers=headers)
    assert answer.status_code == 403
    assert page.get("/api/start", headers=headers).status_code == 403


def test_what_changes_something_says_where_it_comes_from(page: TestClient) -> None:
    del page.headers["origin"]
    assert page.post("/api/read", content=json.dumps({"text": TINY, "origin": ""})).status_code == 403
    assert page.get("/api/start").status_code == 200


def test_every_answer_forbids_scripts_of_others_and_frames_elsewhere(page: TestClient) -> None:
    for path in ("/", "/page.js", "/api/start", "/nothing"):
        headers = page.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")


def test_the_page_needs_no_style_and_no_script_inside_it(page: TestClient) -> None:
    """Which its policy forbids, and names no other host."""
    texts = [page.get(path).text for path in ("/", "/page.js", "/form.js", "/style.css")]
    assert not any(part in texts[0] for part in ("<style", " style=", "onclick=", "<script>"))
    assert not any(part in text for text in texts for part in ("https://", "@import", "url(", "eval("))


# --- hostile requests ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunked", [False, True])
def test_huge_bodies_are_refused(chunked: bool, page: TestClient) -> None:
    body = b" " * (LARGEST_BODY + 1)
    given = (body[start : start + 65536] for start in range(0, len(body), 65536)) if chunked else body
    answer = page.post("/api/read", content=given)
    assert (answer.status_code, f"{LARGEST_BODY:,}" in answer.text) == (413, True)
    assert page.post("/api/open", content=body).status_code != 413 < LARGEST_FILE


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"text": NaN, "origin": ""}', b'{"text": 1, "origin": ""}', b'{"text": "a: 1"}', b"\xff", b"[" * 100_000]
)
def test_what_is_no_request_is_refused_in_a_sentence(body: bytes, page: TestClient) -> None:
    answer = page.post("/api/read", content=body)
    assert (answer.status_code, bool(answer.json()["refused"])) == (400, True)


@pytest.mark.parametrize(
    "path", ["/../pyproject.toml", "/%2e%2e/pyproject.toml", "/app.py", "/page.js/../app.py", "/api/shipped/..%2f..%2fapp"]
)
def test_no_other_file_is_served(path: str, page: TestClient) -> None:
    answer = page.get(path)
    assert answer.status_code == 404
    assert "import" not in answer.text


OUTSIDE = "cluster: {devices: 8}\nworkload: {config: %s, global_batch: 8, sequence: 128}\nhardware: a100-80g\nkind: codesign\n"


@pytest.mark.parametrize("name", ["/etc/passwd", "../secret.json", "sub/../../secret.json", "link.json"])
def test_a_question_reads_no_file_outside_its_folder(name: str, page: TestClient, served: Served) -> None:
    (served.folder.parent / "secret.json").write_text('{"hidden_size": 64}')
    (served.folder / "sub").mkdir()
    (served.folder / "link.json").symlink_to(served.folder.parent / "secret.json")
    faults = post(page, "/api/read", text=OUTSIDE % name)["faults"]
    assert [(fault["line"], fault["path"]) for fault in faults] == [(2, "workload.config")]
    assert "not in the folder of the question" in faults[0]["message"]


def test_a_shipped_question_reads_shipped_files_and_no_others(page: TestClient) -> None:
    """Files of another kind beside its own, but no path above all of them; it is solved from a copy with links to what it reads."""
    text = (INSTANCES / "counts/image-networks-on-gpus.yaml").read_text(encoding="utf-8")
    own = {"text": text, "origin": "image-networks-on-gpus"}
    assert post(page, "/api/read", **own)["faults"] == []
    for name in ("/etc/passwd", "../../pyproject.toml", "../../instances/layers/alexnet.json", "nowhere/../../../setup.py"):
        (fault,) = post(page, "/api/read", **own | {"text": text.replace("../layers/alexnet.json", name)})["faults"]
        assert "not in the folder of the question" in fault["message"], name
    assert "not in the folder of the question" in str(
        post(page, "/api/read", text=text.replace("resnet50.json", "../layers/alexnet.json"))["faults"]
    )


def test_a_question_reads_files_of_its_folder(page: TestClient, served: Served) -> None:
    (served.folder / "config.json").write_text('{"model_type": "made-up"}')
    (fault,) = post(page, "/api/read", text=OUTSIDE % "config.json")["faults"]
    assert "folder of the question" not in fault["message"]


def test_a_file_that_a_question_names_is_read_again_when_it_changed(page: TestClient, served: Served) -> None:
    entry = (INSTANCES / "registry/hardware/a100-80g.yaml").read_text(encoding="utf-8")
    (served.folder / "mine.yaml").write_text(entry, encoding="utf-8")
    text = TINY.replace("hardware: a100-80g", "hardware: ./mine.yaml")
    assert post(page, "/api/price", text=text, picks={})["step_time"] > 0.0
    (served.folder / "mine.yaml").write_text("no: device\n", encoding="utf-8")
    assert post(page, "/api/read", text=text)["faults"]


# --- the question ----------------------------------------------------------------------------------------------------------------------


def test_every_shipped_question_that_one_engine_answers_is_listed_opened_and_read(page: TestClient) -> None:
    rows = page.get("/api/start").json()["shipped"]
    assert len(rows) > 20
    for row in rows:
        text = page.get(f"/api/shipped/{row['name']}").json()["text"]
        told = post(page, "/api/read", text=text, origin=row["name"])
        assert (row["name"], told["faults"]) == (row["name"], [])
        assert told["engines"] and told["size"] and told["tree"]
        assert page.get(f"/api/schema/{told['kind']}").json()["$defs"]


def test_all_faults_are_told_at_once_with_their_places(page: TestClient) -> None:
    wrong = TINY.replace("devices: 8,", "devices: many,").replace("bf16", "bf17")
    faults = post(page, "/api/read", text=wrong)["faults"]
    assert [(fault["line"], fault["path"]) for fault in faults] == [(5, "workload.precision"), (6, "cluster.devices")]
    assert "did you mean 'bf16'?" in faults[0]["message"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1", "not closed"),
        ("kind: serving\ncluster: {devices: 8}", "unknown"),
        ("a: &x 1\nb: *x", "anchors"),
        ("kind: study\ntitle: x", "ask many questions"),
        ("{" * 50, "levels"),
        ("\u202ea: 1", "not text"),
        ("a: \ud800", "not text"),
        ("kind: codesign\ncluster: {devices: .nan}", "not a number"),
    ],
)
def test_bad_yaml_and_unknown_kinds_are_faults(text: str, words: str, page: TestClient) -> None:
    faults = post(page, "/api/read", text=text)["faults"]
    assert words in " ".join(fault["message"] for fault in faults)


# --- edits -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value", "before", "after"),
    [
        (["cluster", "devices"], "16", "devices: 8,", "devices: 16,"),
        (["choices", "tensor"], ["1", "8"], "tensor: [1, 2, 4]", "tensor: [1, 8]"),
        (["choices", "zero"], "1", "recompute: [none, full]", "recompute: [none, full]\n  zero: 1"),
        (["goal", "tokens"], "1e12", "objective: step_time", "objective: step_time\ngoal: {tokens: 1e12}"),
        (["description"], "a: b # c", "description: GPT-3 125M on one node of eight A100, 24 designs", "description: 'a: b # c'"),
        (["choices", "tensor", 3], "8", "tensor: [1, 2, 4]", "tensor: [1, 2, 4, 8]"),
    ],
)
def test_an_edit_of_the_form_changes_its_place_in_the_text_alone(
    path: list[Any], value: Value, before: str, after: str, page: TestClient
) -> None:
    assert post(page, "/api/edit", text=TINY, path=path, value=value, remove=False)["text"] == TINY.replace(before, after)


@pytest.mark.parametrize(
    ("path", "gone"),
    [
        (["choices", "microbatch"], "  microbatch: [1, 2]\n"),
        (["cluster", "devices_per_node"], ", devices_per_node: 8"),
        (["workload", "model"], "model: gpt3-125m, "),
        (["objective"], "objective: step_time\n"),
    ],
)
def test_a_key_that_is_removed_takes_its_line_or_its_comma_along(path: list[str], gone: str, page: TestClient) -> None:
    assert gone in TINY
    assert post(page, "/api/edit", text=TINY, path=path, value=None, remove=True)["text"] == TINY.replace(gone, "")


@pytest.mark.parametrize(
    "text", ["a: {b: 1}\n", "a:\n  b: 1\n", "a:\n- b: 1\n", "a:\n", "a: >\n  long\n  words\nb: 2\n", 'a: "x\\ty"\n', "# only\na: ~\n"]
)
@pytest.mark.parametrize(("path", "value"), [(["a"], "7"), (["b"], {"c": ["1", "x, y", "null", ""]}), (["a"], {"k": "- v"})])
def test_an_edit_gives_what_was_asked_for_however_the_text_is_written(text: str, path: list[str], value: Value, page: TestClient) -> None:
    before = post(page, "/api/read", text=text)["tree"]
    edited = post(page, "/api/edit", text=text, path=path, value=value, remove=False)["text"]
    assert post(page, "/api/read", text=edited)["tree"] == {**before, path[0]: value}


@pytest.mark.parametrize("path", [["a", 5], ["a", 0, "b"], [0], ["list", 9], ["list", -1]])
def test_an_edit_nowhere_is_refused(path: list[Any], page: TestClient) -> None:
    assert "there is no" in post(page, "/api/edit", text="a: 1\nlist: [1]\n", path=path, value="1", remove=False)["refused"]


# --- one design ------------------------------------------------------------------------------------------------------------------------


def test_a_design_is_priced_as_evaluate_prices_it(page: TestClient) -> None:
    levers = post(page, "/api/levers", text=TINY)["levers"]
    assert [lever["name"] for lever in levers] == ["tensor", "pipeline", "microbatch", "recompute"]
    picks = {"tensor": 1, "pipeline": 0, "microbatch": 1, "recompute": 1}
    told = post(page, "/api/price", text=TINY, picks=picks)
    alone = evaluate_single(read_given(TINY, "codesign", ("tensor=2", "pipeline=1", "microbatch=2", "recompute=full")))
    assert told["step_time"] == alone.evaluation.step_time
    assert told["feasible"] and "full recompute" in told["drawn"] and told["milliseconds"] > 0.0


@pytest.mark.parametrize("name", some([name for name, path in shipped().items() if path.parent.name == "instances"], 6))
def test_levers_begin_at_a_design_that_has_a_price(name: str, page: TestClient) -> None:
    text = shipped()[name].read_text(encoding="utf-8")
    told = post(page, "/api/levers", text=text, origin=name)
    if "refused" in told:
        assert "workloads" in text
        return
    priced = post(page, "/api/price", text=text, origin=name, picks={lever["name"]: lever["at"] for lever in told["levers"]})
    assert priced.get("refused") is None
    assert priced["step_time"] > 0.0


def test_levers_begin_at_the_best_design_where_it_is_found_soon(page: TestClient) -> None:
    told = post(page, "/api/levers", text=TINY)
    assert told["begins"] == "The sliders begin at the best design."
    priced = post(page, "/api/price", text=TINY, picks={lever["name"]: lever["at"] for lever in told["levers"]})
    assert priced["step_time"] == crossopt.solve("tiny").value


def test_sentences_on_a_run_stand_below_its_tiles(page: TestClient) -> None:
    """Tiles hold single figures: days, money; whether the deadline is met and what rents for what are rows."""
    text = f"{TINY}\ngoal: {{tokens: 3e11, target: 1 d, rent: 2 USD}}\n"
    levers = post(page, "/api/levers", text=text)["levers"]
    drawn = post(page, "/api/price", text=text, picks={lever["name"]: lever["at"] for lever in levers})["drawn"]
    tiles = re.findall(r'<div class="tile"><b[^>]*>([^<]*)</b><span>([^<]*)</span>', drawn)
    assert {"run", "cost", "step time"} <= {label for _, label in tiles}
    assert all(len(value) < 25 for value, _ in tiles)
    assert "<dt>deadline</dt><dd>1 day: MISSED" in drawn


def test_chips_are_priced_at_their_options_to_the_last_bit(page: TestClient) -> None:
    text = shipped()["quickstart"].read_text(encoding="utf-8")
    picks = {"compute_area": 6, "l2_area": 2, "compute_power": 2, "hbm_stacks": 3, "microbatch": 2, "zero": 3, "overlap": 1}
    told = post(page, "/api/price", text=text, origin="quickstart", picks=picks)
    saved = json.loads((GALLERY / "quickstart.json").read_text(encoding="utf-8"))
    assert (told["step_time"], told["feasible"]) == (saved["value"], True)


@pytest.mark.parametrize(
    ("picks", "words"),
    [
        ({"tensor": 9}, "has no option 9"),
        ({"tensor": -1}, "has no option"),
        ({"tensor": True}, ""),
        ({"nothing": 1}, ""),
        ({"tensor": 1e308}, ""),
    ],
)
def test_an_option_that_is_none_is_refused(picks: dict[str, Any], words: str, page: TestClient) -> None:
    told = post(page, "/api/price", text=TINY, picks=picks)
    assert words in told.get("refused", "")
    assert bool(words) != ("step_time" in told)


def test_a_design_that_is_none_says_why(page: TestClient) -> None:
    text = shipped()["quickstart"].read_text(encoding="utf-8")
    told = post(page, "/api/price", text=text, picks={"tensor": 6, "pipeline": 6})
    assert "no tensor x context x pipeline x data is the 64 devices" in told["refused"]


# --- results ---------------------------------------------------------------------------------------------------------------------------


def test_a_saved_result_is_opened_and_shown_as_what_its_file_says(page: TestClient) -> None:
    row = page.post("/api/open?name=quickstart.json", content=(GALLERY / "quickstart.json").read_bytes()).json()["result"]
    assert (row["name"], row["check"]) == ("quickstart.json", None)
    shown = page.get(f"/results/{row['number']}.html")
    assert shown.text == page_of(GALLERY / "quickstart.json")
    assert shown.headers["content-security-policy"] == "frame-ancestors 'self'"
    assert page.get(f"/results/{row['number']}.json").json() == json.loads((GALLERY / "quickstart.json").read_text(encoding="utf-8"))


def test_two_results_are_drawn_on_one_page(page: TestClient) -> None:
    names = ("quickstart", "all-reduce-torus")
    rows = [page.post(f"/api/open?name={name}.json", content=(GALLERY / f"{name}.json").read_bytes()).json()["result"] for name in names]
    text = page.get(f"/results/{'-'.join(str(row['number']) for row in rows)}.html").text
    assert text == page_of(*(GALLERY / f"{name}.json" for name in names))


def test_a_question_that_is_dropped_goes_into_the_form(page: TestClient) -> None:
    told = page.post("/api/open?name=my-run.yaml", content=TINY.encode()).json()
    assert told == {"question": TINY, "name": "my-run"}


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("x.json", b'{"format": 3, "kind": "codesign"', "not JSON"),
        ("x.json", b'{"format": 99, "kind": "codesign"}', "another version"),
        ("x.json", b'{"format": 3, "kind": "nothing", "question": {}}', "has no page"),
        ("x.json", b'{"model_type": "llama"}', "configuration of a model"),
        ("runs.csv", b"a,b\n1,2\n", "table"),
        ("x.onnx", b"\x08\x01", "ONNX"),
        ("x.yaml", b"\xff\xfe", "UTF-8"),
        ("graph.json", b'{"nodes": [], "edges": []}', "graph of another tool"),
    ],
)
def test_a_file_that_is_neither_is_refused_with_what_it_is(name: str, data: bytes, words: str, page: TestClient, served: Served) -> None:
    answer = page.post("/api/open", params={"name": name}, content=data)
    assert words in answer.json()["refused"]
    assert served.desk.results == {}


@pytest.mark.parametrize("name", ["../../x.json", "/etc/x.json", "a\0b", "", "x" * 5000])
def test_the_name_of_a_file_leads_nowhere(name: str, page: TestClient, served: Served) -> None:
    page.post("/api/open", params={"name": name}, content=(GALLERY / "quickstart.json").read_bytes())
    assert all(path.parent == served.desk.folder for path in (one.path for one in served.desk.results.values()))
    assert list(served.folder.iterdir()) == []


def test_results_that_are_not_there_are_refused(page: TestClient) -> None:
    assert page.get("/results/7.html").status_code == 404
    assert page.get("/results/7.json").status_code == 404
    assert page.get("/api/jobs/7").status_code == 404
    assert "no such result" in post(page, "/api/check", result=7)["refused"]
