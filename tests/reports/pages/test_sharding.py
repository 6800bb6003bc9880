"""Pages about strategies: what they show, and results that are refused."""

import json
from pathlib import Path

import pytest

from crossopt.instances.errors import VerificationError
from crossopt.reports.cli import main
from crossopt.reports.commands.report import page_of, tables_on
from crossopt.reports.sheets.amounts import digits, short

ASKED = """
kind: sharding
workload:
  transformer: {layers: 1, hidden: 512, heads: 8, ffn: 2048, vocabulary: 1024, sequence: 512}
  global_batch: 8
hardware: a100-80g
mesh: [4]
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("strategies")
    (folder / "asked.yaml").write_text(ASKED)
    path = folder / "answer.json"
    assert main(["solve", str(folder / "asked.yaml"), "--out", str(path)]) == 0
    return path


def test_the_page_shows_choices_memory_plans_and_the_proof(saved: Path) -> None:
    page = page_of(saved)
    for words in (
        "proved optimal",
        "What is split how",
        "Memory at its peak",
        "Beside Megatron-LM",
        "What is left to choose",
        "in whole numbers",
        "1 layers, hidden size 512, 8 heads",
        "8 samples of 512 tokens in bf16",
        "a100-80g",
        "4 devices, 4 in a node",
    ):
        assert words in page
    value = json.loads(saved.read_text(encoding="utf-8"))["value"]
    assert f"<dt>cost</dt><dd>{short(value, 'ns')}</dd>".replace(" ", "\N{NO-BREAK SPACE}") in page.replace(" ", "\N{NO-BREAK SPACE}")
    assert f"cost {digits(value, 'ns')}" in page
    assert len(page.encode()) < 500_000


def test_the_tables_have_the_choices(saved: Path) -> None:
    text = tables_on("markdown", [saved])
    assert "queries, keys, values" in text
    assert "tensor 4" in text


def test_a_result_without_its_file_has_no_page(saved: Path, tmp_path: Path) -> None:
    data = json.loads(saved.read_text())
    data["question"]["source"] = "gone.yaml"
    path = tmp_path / "alone.json"
    path.write_text(json.dumps(data))
    with pytest.raises(VerificationError, match=r"there is no gone\.yaml"):
        page_of(path)
