"""The notebooks of the documentation run from top to bottom, are short, and are stored without outputs."""

import ast
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from crossopt.reports.results import Plot
from tests.paths import ROOT

pytestmark = pytest.mark.docs

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells_of(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]  # type: ignore[no-any-return]


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["design-a-chip", "place-a-graph", "plan-a-run"]


@each
def test_it_is_short_and_has_no_outputs(path: Path) -> None:
    cells = cells_of(path)
    assert 8 <= len(cells) <= 15
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
    assert len({cell["id"] for cell in cells}) == len(cells)


@pytest.mark.skipif(find_spec("pandas") is None, reason="the notebooks show data frames of pandas")
@each
def test_it_runs_and_all_that_it_solves_is_proved(path: Path) -> None:
    """Cell by cell in one namespace, as a kernel does; the last expression of a cell is what it shows."""
    known, shown = dict[str, Any](), list[Any]()
    for cell in (cell for cell in cells_of(path) if cell["cell_type"] == "code"):
        *body, last = ast.parse("".join(cell["source"])).body
        final = isinstance(last, ast.Expr)
        exec(compile(ast.Module(body if final else [*body, last], []), path.name, "exec"), known)  # noqa: S102 - it is ours
        if isinstance(last, ast.Expr):
            shown.append(eval(compile(ast.Expression(last.value), path.name, "eval"), known))  # noqa: S307 - it is ours
    pictures = [value for value in shown if isinstance(value, Plot)]
    assert pictures
    assert all(picture.svg.startswith("<svg") or "<svg" in picture.svg[:200] for picture in pictures)
    frames = [value for value in shown if hasattr(value, "columns") and "proved" in value.columns]
    assert frames
    assert all(frame["proved"].all() for frame in frames)
    assert not any(value is False for value in shown)
