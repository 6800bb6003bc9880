"""What a command loads: help and validation answer at once because they wait for no solver."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.instances.placement.test_formats import document, written
from tests.paths import INSTANCES

SLOW = ("highspy", "networkx", "ortools", "pulp")
"""Packages that take from a third of a second to over a second to import."""


UNASKED = ("solvers", "formulation", "crossflow.transformer", "crossflow.generator", "crossflow.technology")
"""Modules of ours that reading a question of a named device does without."""
ELSEWHERE = ("importlib.metadata", "numpy.random")
"""Modules of others that take as long as all of a small question."""


def loaded(*arguments: str) -> set[str]:
    """The packages that are loaded after a command ran in a fresh process, those of ours by their rooms."""
    return {name.removeprefix("crossopt.").partition(".")[0] for name in modules(*arguments)}


def modules(*arguments: str) -> set[str]:
    """All modules that are loaded after a command ran in a fresh process."""
    program = (
        "import sys\n"
        "from crossopt.reports.cli import main\n"
        "try:\n"
        f"    main({list(arguments)!r})\n"
        "except SystemExit:\n"
        "    pass\n"
        "sys.stderr.write('\\n' + ' '.join(sorted(sys.modules)))\n"
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


def test_only_who_asks_for_the_version_waits_for_it() -> None:
    assert "importlib.metadata" not in modules("--help")
    assert "importlib.metadata" in modules("--version")
    assert loaded("--version").isdisjoint({*SLOW, "numpy", "yaml"})


def test_validating_loads_neither_an_engine_nor_the_whole_cost_model() -> None:
    found = modules("validate", str(INSTANCES / "tiny.yaml"))
    assert found & {*(f"crossopt.{name}" for name in UNASKED), *ELSEWHERE} == set()


def test_validating_starts_no_threads_and_leaves_the_environment_as_it_was() -> None:
    """Threads for products of matrices take CPU seconds to start; whoever calls `main` may multiply some later."""
    program = (
        "import os\n"
        "from crossopt.reports.cli import main\n"
        "before = dict(os.environ)\n"
        f"main(['validate', {str(INSTANCES / 'tiny.yaml')!r}])\n"
        "tasks = '/proc/self/task'\n"
        "print(before == dict(os.environ), len(os.listdir(tasks)) if os.path.isdir(tasks) else 1)\n"
    )
    clean = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60, env=clean)
    assert done.stdout.splitlines()[-1] == "True 1"


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
