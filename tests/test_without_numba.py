"""What a plain installation does without numba: small graphs are answered as with it, large ones name what to install."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from crossopt.formulation.compiled import INSTALL
from crossopt.reports.cli import main
from crossopt.solvers.sharding.engines import _UNCOMPILED as MOST

pytestmark = pytest.mark.process
FIGURES = ("value", "bound", "status", "answer")


def without_numba(*words: str) -> subprocess.CompletedProcess[str]:
    """A command in a process that finds no numba."""
    program = f"import sys; sys.modules['numba'] = None; from crossopt.reports.cli import main; raise SystemExit(main({list(words)!r}))"
    return subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=600, check=False)


def test_strategies_of_a_shipped_model_are_found_and_proved_as_by_compiled_loops(tmp_path: Path) -> None:
    plain, compiled = tmp_path / "plain.json", tmp_path / "compiled.json"
    done = without_numba("solve", "gpt3-13b-on-4x8", "--out", str(plain))
    assert (done.returncode, INSTALL in " ".join(done.stdout.split())) == (0, True), done.stderr
    assert main(["solve", "gpt3-13b-on-4x8", "--out", str(compiled)]) == 0
    one, other = (json.loads(path.read_text(encoding="utf-8")) for path in (plain, compiled))
    assert one["value"] == one["bound"]
    assert [one[name] for name in FIGURES] == [other[name] for name in FIGURES]
    assert without_numba("check", str(plain)).returncode == 0


@pytest.mark.parametrize("name", ["quickstart", "gpt3-13b-on-8", "three-models-4096"])
def test_other_kinds_need_no_compiler(name: str) -> None:
    done = without_numba("solve", name, "--strict")
    assert (done.returncode, INSTALL in " ".join((done.stdout + done.stderr).split())) == (0, False), done.stderr


def test_a_graph_with_more_pairs_than_python_handles_names_what_to_install(tmp_path: Path) -> None:
    """A pair of nodes with so many strategies that their matrix is too large."""
    count = int(MOST**0.5) + 1
    nodes = {"intervals": [[0, 1], [0, 1]], "costs": [[1] * count] * 2, "usages": [[1] * count] * 2}
    edges = {"nodes": [[0, 1]], "costs": [[1] * count**2]}
    problem = tmp_path / "problem.json"
    problem.write_text(json.dumps({"problem": {"nodes": nodes, "edges": edges, "usage_limit": 9}}), encoding="utf-8")
    done = without_numba("solve", str(problem))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"there are {count**2:,} pairs of strategies, and without numba at most {MOST:,} are handled ({INSTALL})" in done.stderr


def test_compile_says_that_there_is_nothing_to_compile() -> None:
    done = without_numba("compile")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"there is nothing to compile, as numba is not installed ({INSTALL})" in done.stderr
