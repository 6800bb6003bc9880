"""The examples of the page about Python run as they stand."""

import re
from pathlib import Path

import pytest

from tests.paths import ROOT

PAGE = ROOT / "docs" / "get-started" / "python.md"


@pytest.mark.docs
def test_the_examples_of_the_page_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) > 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block.replace("1 min", "20 s"), str(PAGE), "exec"), names)  # noqa: S102 - our own page
    assert {"roofline.svg", "plan.html", "front.svg"} <= {path.name for path in tmp_path.iterdir()}
