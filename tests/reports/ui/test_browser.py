"""The page of `crossopt ui` in a real browser, as wide as a phone and as a desk: form, YAML, faults, sliders, a proof, comparisons."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra `ui` is not installed")
pytest.importorskip("uvicorn", reason="the extra `ui` is not installed")

from tests.paths import ROOT
from tests.reports.browser import View, opened
from tests.reports.pages.test_browser import CONTRAST

pytestmark = pytest.mark.browser

WIDTHS = (400, 1280)
SAVED = ROOT / "reports/gallery/quickstart.json"
DROP = """
(() => {
  const files = new DataTransfer();
  for (const [name, text] of %s) files.items.add(new File([text], name));
  dispatchEvent(new DragEvent("drop", {dataTransfer: files, bubbles: true, cancelable: true}));
})()
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address that the command prints."""
    command = [sys.executable, "-m", "crossopt", "ui", "quickstart", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    found = re.search(r"http\S+", process.stdout.readline())
    assert found
    yield found[0]
    process.terminate()
    process.communicate(timeout=30)


@pytest.fixture(params=WIDTHS)
def view(address: str, request: pytest.FixtureRequest) -> Iterator[View]:
    """The page with the question that the command named, priced; nobody may complain of it afterwards, and it fits its window."""
    one = opened(address, request.param)
    until(one, "!!document.querySelector('#price .tiles')")
    yield one
    assert one.run("document.documentElement.scrollWidth <= innerWidth")
    assert one.complaints() == []
    one.close()


def until(view: View, script: str) -> None:
    """Wait until this holds."""
    for _ in range(600):
        if view.run(script):
            return
        time.sleep(0.1)
    raise AssertionError(f"{script} never came true; the page says {view.run('document.body.innerText')}")


def words(view: View, selector: str) -> str:
    text: str = view.run(f"document.querySelector({json.dumps(selector)}).innerText")
    return text.replace("\N{NO-BREAK SPACE}", " ")


def change(view: View, selector: str, value: str, event: str = "change") -> None:
    """What a person does with a field."""
    view.run(
        f"(node => {{ node.value = {json.dumps(value)}; node.dispatchEvent(new Event({json.dumps(event)}, {{bubbles: true}})); }})"
        f"(document.querySelector({json.dumps(selector)}))"
    )


def text_of(view: View) -> str:
    text: str = view.run("document.getElementById('yaml').value")
    return text


def test_the_key_leaves_the_address_and_a_reload_loses_nothing(view: View) -> None:
    assert view.run("location.search") == ""
    change(view, "[id='field-cluster.devices']", "32")
    until(view, "document.getElementById('yaml').value.includes('devices: 32,')")
    view.run("window.old = true; location.reload()")
    until(view, "!window.old && !!document.querySelector('#price .tiles')")
    assert "devices: 32," in text_of(view), "a page that is loaded again goes on with its text"


def test_the_form_and_the_yaml_change_each_other(view: View) -> None:
    change(view, "[id='field-cluster.devices']", "128")
    until(view, "document.getElementById('yaml').value.includes('devices: 128,')")
    assert text_of(view).startswith("# yaml-language-server"), "comments stay"
    change(view, "#yaml", text_of(view).replace("devices: 128,", "devices: 32,"), "input")
    until(view, "document.getElementById('field-cluster.devices').value === '32'")
    view.run("document.getElementById('field-choices.zero-0').click()")
    until(view, "document.getElementById('yaml').value.includes('zero: [1, 2, 3]')")
    change(view, "[data-path='budget'] > .add", "step_time")
    until(view, "document.getElementById('yaml').value.includes('power: 400 W, step_time: ')")
    view.run("document.querySelector('[aria-label=\"remove choices.interleave\"]').click()")
    until(view, "!document.getElementById('yaml').value.includes('interleave')")


def test_faults_stand_at_their_field_and_at_their_line(view: View) -> None:
    change(view, "#yaml", text_of(view).replace("bf16", "bf17").replace("devices: 64", "devices: many"), "input")
    until(view, "document.querySelectorAll('#form .fault').length === 2")
    assert words(view, "[data-path='workload.precision'] .fault").endswith("'bf17' is unknown (did you mean 'bf16'?)")
    assert "'many' is not a number" in words(view, "[data-path='cluster.devices'] .fault")
    assert view.run("[...document.querySelectorAll('#gutter .bad')].map(one => one.textContent).join()") == "5,6"
    assert view.run("document.getElementById('go').disabled")
    view.run("document.querySelector('#faults button').click()")
    assert view.run("document.getElementById('yaml').selectionStart") == text_of(view).index("bf17")
    change(view, "#yaml", "a: [1", "input")
    until(view, "document.querySelector('#faults').innerText.includes('not closed')")


def test_a_slider_prices_another_design(view: View) -> None:
    before = words(view, "#price .tile b")
    change(view, "#lever-microbatch", "3", "input")
    until(view, f"document.querySelector('#price .tile b').innerText !== {json.dumps(before)}")
    assert "microbatch 8" in words(view, "#price .answer")
    assert re.search(r"priced in \d+ ms", words(view, "#price"))
    change(view, "#lever-tensor", "6", "input")
    change(view, "#lever-pipeline", "6", "input")
    until(view, "!!document.querySelector('#price .refused')")
    assert "no tensor x context x pipeline x data is the 64 devices" in words(view, "#price .refused")


def test_a_search_is_drawn_to_its_proof_and_stands_beside_a_rule(view: View) -> None:
    for count, engine in enumerate(("auto", "recipes"), int(view.run("document.querySelectorAll('#rows tr').length")) + 1):
        change(view, "#engine", engine)
        view.run("document.getElementById('solving').requestSubmit()")
        until(view, f"document.querySelectorAll('#rows tr').length === {count}")
        until(view, "!!document.querySelector('#frames iframe')?.contentDocument?.querySelector('.first .verdict')")
    assert view.run("[...document.querySelectorAll('#rows tr')].slice(-2).map(row => row.querySelector('.verdict').innerText).join()") == (
        "proved optimal,not proved"
    )
    assert view.run("document.querySelectorAll('#chart path.step').length") == 1, "a rule has no bound"
    view.run("[...document.querySelectorAll('#rows input')].slice(-2).forEach(one => one.click())")
    view.run("document.getElementById('compare').click()")
    until(view, "!!document.querySelector('#frames iframe')?.contentDocument?.body?.innerText.includes('Beside each other')")
    assert view.run("document.querySelector('#frames iframe').contentDocument.querySelectorAll('article').length") == 2
    until(view, "document.querySelector('#frames iframe').clientHeight > 2000")


def test_saved_results_and_questions_are_opened_by_dropping_them(view: View) -> None:
    listed = view.run("document.querySelectorAll('#rows tr').length")
    tiny = (ROOT / "instances/tiny.yaml").read_text(encoding="utf-8")
    view.run(DROP % json.dumps([["mine.yaml", tiny], ["saved.json", SAVED.read_text(encoding="utf-8")], ["a.csv", "a,b\n1,2\n"]]))
    until(view, f"document.querySelectorAll('#rows tr').length === {listed + 1}")
    until(view, "!!document.querySelector('#rows tr:last-child .badge')")
    assert "checked: accepted" in words(view, "#rows tr:last-child")
    assert text_of(view) == tiny
    until(view, "document.getElementById('said').innerText.includes('this is a table, not a question')")


@pytest.mark.parametrize("dark", [False, True])
def test_all_words_of_the_page_stand_out(dark: bool, address: str, tmp_path: Path) -> None:
    view = opened(address, 1280, dark=dark)
    until(view, "!!document.querySelector('#price .tiles')")
    change(view, "#yaml", text_of(view).replace("bf16", "bf17"), "input")
    until(view, "document.querySelectorAll('#form .fault').length === 1")
    assert view.run(CONTRAST) == []
    view.close()
