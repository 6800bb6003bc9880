"""What a command loads: help and validation answer at once because they wait for no solver."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.instances.placement.test_formats import document, written
from tests.paths import INSTANCES

SLOW = ("highspy", "networkx", "ortools", "pulp")
"""Packages that take from a third of a second to over a second to import."""


def loaded(*arguments: str) -> set[str]:
    """The packages that are loaded after a command ran in a fresh process."""
    program = (
        "import sys\n"
        "from crossopt.reports.cli import main\n"
        "try:\n"
        f"    main({list(arguments)!r})\n"
        "except SystemExit:\n"
        "    pass\n"
        "sys.stderr.write('\\n' + ' '.join(sorted({name.removeprefix('crossopt.').partition('.')[0] for name in sys.modules})))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600)
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("solve", "--help"), ("validate", str(INSTANCES / "tiny.yaml")), ("list", "hardware"), ("solve", "nothing.yaml")],
    ids=" ".join,
)
def test_commands_that_solve_nothing_load_no_solver(arguments: tuple[str, ...]) -> None:
    assert loaded(*arguments).isdisjoint(SLOW)


@pytest.mark.parametrize("arguments", [("--help",), ("solve", "--help"), ()], ids=" ".join)
def test_help_does_not_even_wait_for_numpy(arguments: tuple[str, ...]) -> None:
    assert loaded(*arguments).isdisjoint({*SLOW, "numpy", "yaml"})


def test_checking_and_drawing_a_result_loads_neither_models_nor_solvers(tmp_path: Path) -> None:
    target = tmp_path / "answer.json"
    loaded("solve", str(INSTANCES / "tiny.yaml"), "--engine", "boxes", "--out", str(target))
    assert loaded("check", str(target)).isdisjoint({*SLOW, "formulation"})
    assert loaded("report", str(target), "--out", str(tmp_path / "page.html")).isdisjoint({*SLOW, "formulation"})
    loaded("compare", "tiny", "--engines", "boxes,expert", "--out", str(target))
    assert loaded("check", str(target)).isdisjoint({*SLOW, "formulation"})
    assert loaded("report", str(target), "--out", str(tmp_path / "page.html")).isdisjoint({*SLOW, "formulation"})
    graph = written(tmp_path, document(maxSizePerFPGA=24.0))
    assert "formulation" in loaded("solve", str(graph), "--out", str(target))
    assert loaded("check", str(target)).isdisjoint({*SLOW, "formulation"})
    problem = tmp_path / "problem.json"
    nodes = {"intervals": [[0, 1]], "costs": [[1]], "usages": [[2]]}
    problem.write_text(json.dumps({"problem": {"nodes": nodes, "edges": {"nodes": [], "costs": []}, "usage_limit": 1}}))
    assert loaded("solve", str(problem), "--out", str(target)) >= {"formulation", "numba"}
    assert loaded("check", str(target)).isdisjoint({*SLOW, "formulation", "numba"})


def test_the_walk_sees_what_is_loaded() -> None:
    assert {"numpy", "yaml", "crossflow", "instances"} <= loaded("validate", str(INSTANCES / "tiny.yaml"))
