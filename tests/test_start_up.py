"""What a command loads: help and validation answer at once because they wait for no solver."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crossopt.reports.cli import main
from tests.instances.placement.test_formats import document, written
from tests.paths import INSTANCES

pytestmark = pytest.mark.process

SLOW = ("highspy", "networkx", "ortools", "pulp")
"""Packages that take from a third of a second to over a second to import."""


UNASKED = ("solvers", "formulation", "crossflow.transformer", "crossflow.generator")
"""Modules of ours that reading a question of a named device does without."""
ELSEWHERE = ("importlib.metadata", "numpy.random")
"""Modules of others that take as long as all of a small question."""


def rooms(found: set[str]) -> set[str]:
    """The packages of modules, those of ours by their rooms."""
    return {name.removeprefix("crossopt.").partition(".")[0] for name in found}


def modules(*commands: tuple[str, ...]) -> list[set[str]]:
    """All modules that are loaded after each of some commands, which run one after the other in a fresh process."""
    program = (
        "import sys\n"
        "from crossopt.reports.cli import main\n"
        f"for words in {[list(words) for words in commands]!r}:\n"
        "    try:\n"
        "        main(words)\n"
        "    except SystemExit:\n"
        "        pass\n"
        "    sys.stderr.write('\\nLOADED ' + ' '.join(sorted(sys.modules)) + '\\n')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600)
    found = [set(line.split()[1:]) for line in done.stderr.splitlines() if line.startswith("LOADED ")]
    assert len(found) == len(commands), done.stderr
    return found


def test_help_and_the_version_do_not_even_wait_for_numpy() -> None:
    for found in modules(("--help",), ("solve", "--help"), (), ("--version",)):
        assert rooms(found).isdisjoint({*SLOW, "numpy", "yaml", "importlib.metadata"})


def test_commands_that_solve_nothing_load_no_solver_nor_the_whole_cost_model() -> None:
    tiny = str(INSTANCES / "tiny.yaml")
    validated, listed, missing = modules(("validate", tiny), ("list", "hardware"), ("solve", "nothing.yaml"))
    assert {"numpy", "yaml", "crossflow", "instances"} <= rooms(validated)  # so that the walk sees what is loaded
    assert validated & {*(f"crossopt.{name}" for name in UNASKED), *ELSEWHERE} == set()
    for found in (validated, listed, missing):
        assert rooms(found).isdisjoint(SLOW)


def test_commands_load_few_modules_of_ours() -> None:
    """Lower a number whenever modules are merged, or loaded when they are asked for; each costs about a millisecond."""
    most = {("--help",): 8, ("validate", "tiny"): 50, ("solve", "tiny"): 105}
    loaded = {words: {name for name in modules(words)[0] if name.startswith("crossopt.")} for words in most}
    files = {words: [name for name in found if not any(other.startswith(f"{name}.") for other in found)] for words, found in loaded.items()}
    assert {words: len(found) for words, found in files.items() if len(found) > most[words]} == {}
    assert len({name.rpartition(".")[0] for name in files["solve", "tiny"]}) <= 14, "a small question passes more folders"


def test_few_functions_of_classes_are_compiled_for_a_small_question() -> None:
    """Those of the standard decorator took two fifths of its time; `crossflow.records` compiles one for a class."""
    program = (
        "import sys\n"
        "from dataclasses import is_dataclass\n"
        "from crossopt.reports.cli import main\n"
        "main(['solve', 'tiny'])\n"
        "seen, compiled = 0, []\n"
        "for name in [name for name in sys.modules if name.startswith('crossopt.')]:\n"
        "    for value in vars(sys.modules[name]).values():\n"
        "        if isinstance(value, type) and value.__module__ == name and is_dataclass(value):\n"
        "            methods = [method for method in vars(value).values() if hasattr(method, '__code__')]\n"
        "            seen += 1\n"
        "            compiled += [f'{name}.{value.__name__}'] * sum(one.__code__.co_filename == '<string>' for one in methods)\n"
        "print(seen > 200, len(compiled) - seen, *sorted({one for one in compiled if compiled.count(one) > 1}))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600)
    many, more, *which = done.stdout.splitlines()[-1].split()
    assert (many, int(more) < 80) == ("True", True), which


def test_a_small_question_opens_each_of_its_files_once() -> None:
    program = (
        "import sys\n"
        "from crossopt.reports.cli import main\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == 'open' else None)\n"
        "main(['solve', 'tiny'])\n"
        "print(*(name for name in opened if name.endswith('.yaml')))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600)
    opened = [Path(name).stem for name in done.stdout.splitlines()[-1].split()]
    assert sorted(opened) == ["a100-80g", "gpt3-125m", "tiny"]


def test_garbage_is_looked_for_seldom_where_the_process_is_a_command_and_as_ever_where_main_is_called() -> None:
    program = (
        "import gc, sys\n"
        "from crossopt.reports.cli import main\n"
        "sys.argv[1:] = ['list', 'hardware']\n"
        "main({})\n"
        "print(gc.get_threshold()[0])\n"
    )
    said = [
        subprocess.run([sys.executable, "-c", program.format(given)], capture_output=True, text=True, check=True, timeout=600).stdout
        for given in ("", "sys.argv[1:]")
    ]
    usual = subprocess.run(
        [sys.executable, "-c", "import gc; print(gc.get_threshold()[0])"], capture_output=True, text=True, check=True
    ).stdout
    assert [int(text.splitlines()[-1]) for text in said] == [5000, int(usual)]


def test_the_package_runs_as_the_script_does() -> None:
    done = [
        subprocess.run([*command, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
        for command in ([sys.executable, "-m", "crossopt"], [str(Path(sys.executable).with_name("crossopt"))])
    ]
    assert done[0] == done[1] != ""


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
    """Results of every way to find them, which are checked before anything is solved in that process."""
    graph = written(tmp_path, document(maxSizePerFPGA=24.0))
    problem = tmp_path / "problem.json"
    nodes = {"intervals": [[0, 1]], "costs": [[1]], "usages": [[2]]}
    problem.write_text(json.dumps({"problem": {"nodes": nodes, "edges": {"nodes": [], "costs": []}, "usage_limit": 1}}))
    solved = {
        "boxes": ("solve", str(INSTANCES / "tiny.yaml"), "--engine", "boxes"),
        "study": ("compare", "tiny", "--engines", "boxes,expert"),
        "placed": ("solve", str(graph)),
        "sharded": ("solve", str(problem)),
    }
    targets = {name: str(tmp_path / f"{name}-answer.json") for name in solved}
    for name, words in solved.items():
        main([*words, "--out", targets[name]])
    looked_at = [("check", target) for target in targets.values()]
    looked_at += [("report", targets[name], "--out", str(tmp_path / "page.html")) for name in ("boxes", "study")]
    looked_at.sort(key=lambda words: words[1] == targets["placed"])  # the modules of earlier commands stay
    *quick, checked, placed, sharded = modules(*looked_at, solved["placed"], solved["sharded"])
    for found in quick:
        assert rooms(found).isdisjoint({*SLOW, "formulation", "numba"})
    assert rooms(checked).isdisjoint({*SLOW, "numba"} - {"networkx"})  # rules are carried out again on the blocks of the graph
    assert "formulation" in rooms(placed)
    assert rooms(sharded) >= {"formulation", "numba"}
