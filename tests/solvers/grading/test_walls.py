"""What a submission cannot do, shown by submissions that try it; and that what they break is told in a sentence."""

import os
import py_compile
from collections.abc import Sequence
from pathlib import Path

import pytest

from crossopt.solvers.grading import grade as grading
from crossopt.solvers.grading.assignments.layer import LAYER
from crossopt.solvers.grading.grade import SOLUTIONS
from crossopt.solvers.grading.marks import figure
from crossopt.solvers.grading.running import Call, run
from crossopt.solvers.grading.walls import REFUSED as REFUSED_CODE
from crossopt.solvers.grading.walls import exposed, missing
from tests.solvers.grading.programs import grade_of, written

pytestmark = [pytest.mark.skipif(missing() is not None, reason=f"programs cannot be walled in here: {missing()}"), pytest.mark.course]


IMPORTS = "import ctypes, os, pathlib, resource, signal, socket, subprocess, sys\n"


def attempts(folder: Path, lines: Sequence[str]) -> list[str]:
    """What is said of a program that does one thing in each of its functions and then returns."""
    functions = (f"def f{number}():\n    {line}\n    return 1\n" for number, line in enumerate(lines))
    folder.mkdir(exist_ok=True)
    written(folder / "in", IMPORTS + "".join(functions))
    calls = [Call(f"f{number}", ()) for number in range(len(lines))]
    return [found.failure or "done" for found in run(folder / "in" / "solution.py", calls, 5, walls=True)]


def attempt(folder: Path, line: str) -> str:
    """The points that are lost by a program that does one thing and then returns the right figure."""
    (mark,) = grade_of(folder / "in", f"{IMPORTS}def one():\n    {line}\n    return 1\n", "one").marks
    return mark.why[0] if mark.why else "done"


REFUSED = (
    "pathlib.Path('{outside}/new').write_text('x')",
    "pathlib.Path('{outside}/kept').write_text('x')",
    "os.truncate('{outside}/kept', 0)",
    "os.remove('{outside}/kept')",
    "os.rename('{outside}/kept', 'mine')",
    "os.link('{outside}/kept', 'mine')",
    "os.symlink('{outside}/kept', 'link')",
    "os.chmod('{outside}/kept', 0)",
    "os.utime('{outside}/kept')",
    "pathlib.Path('{outside}/kept').read_text()",
    "os.listdir('/proc')",
    "os.fork()",
    "os.execv('/bin/true', ['true'])",
    "os.posix_spawn('/bin/true', ['true'], {{}})",
    "subprocess.run(['true'])",
    "socket.socket()",
    "socket.create_connection(('127.0.0.1', 9))",
    "os.kill({grader}, signal.SIGTERM)",
    "os.pidfd_open({grader})",
    "resource.prlimit({grader}, resource.RLIMIT_CPU, (1, 1))",
    "os.setpriority(os.PRIO_PROCESS, {grader}, 19)",
    "os.sched_setaffinity({grader}, [0])",
    "os.memfd_create('more than the limit of memory')",
)


def test_nothing_outside_its_folder_is_touched_and_no_other_process(tmp_path: Path) -> None:
    kept = tmp_path / "outside" / "kept"
    kept.parent.mkdir()
    kept.write_text("as it was")
    before = kept.stat()
    said = attempts(tmp_path, [line.format(outside=kept.parent, grader=os.getpid()) for line in REFUSED])
    done = [
        f"{line}: {text}" for line, text in zip(REFUSED, said, strict=True) if "PermissionError" not in text and "cross-device" not in text
    ]
    assert done == []
    assert [path.name for path in kept.parent.iterdir()] == ["kept"]
    assert kept.read_text() == "as it was"
    assert (before.st_mode, before.st_mtime_ns, before.st_nlink) == (kept.stat().st_mode, kept.stat().st_mtime_ns, 1)


NOT_HANDED_IN = (
    "exec('1')",
    "eval('1 + 1')",
    "vars(sys.modules['builtins'])['ex' + 'ec']('1')",
    "import timeit; timeit.timeit(setup='x = 1', number=1)",
    "import runpy; pathlib.Path('notes.txt').write_text('x = 1'); runpy.run_path('notes.txt')",
    "pathlib.Path('mine.py').write_text('x = 1'); import mine",
    "pathlib.Path('solution.py').write_text('x = 1'); del sys.modules['solution']; import solution",
    "import zipfile; zipfile.ZipFile('results.dat', 'w').writestr('mine.py', 'x = 1'); sys.path.insert(0, 'results.dat'); import mine",
    "pathlib.Path('mine.pyc').write_bytes(READY); import mine",
    "import marshal; marshal.loads(READY[16:])",
    "import pickle; pickle.loads(b'cbuiltins\\nlen\\n.')",
    "import types; types.FunctionType(f0.__code__, {})",
    "f0.__code__.replace(co_name='x')",
    "import importlib._bootstrap as loader; loader._call_with_frames_removed(compile, 'x = 1', '/usr/lib/mine.py', 'exec')",
    "import typing; typing.ForwardRef('+'.join('1' * 200))",
)
OF_LIBRARIES = (
    "import collections; collections.namedtuple('A', 'a b')",
    "import dataclasses; dataclasses.make_dataclass('A', ['a'])",
    "import ast; ast.literal_eval('[1]')",
    "import typing; typing.Optional['A']",
    "import networkx; networkx.dag_longest_path(networkx.DiGraph([(1, 2)]))",
    "import pulp; pulp.LpProblem().solve(pulp.HiGHS(msg=False))",
)


def test_only_what_was_handed_in_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is decoded, written, unpacked or overwritten; what libraries make of names is."""
    ready = py_compile.compile(str(written(tmp_path / "ready", "x = 1\n") / "solution.py"), str(tmp_path / "ready.pyc"), doraise=True)
    assert ready
    monkeypatch.setattr(f"{__name__}.IMPORTS", f"{IMPORTS}READY = {Path(ready).read_bytes()!r}\n")
    said = attempts(tmp_path / "tried", NOT_HANDED_IN)
    assert {line: text for line, text in zip(NOT_HANDED_IN, said, strict=True) if REFUSED_CODE not in text} == {}
    assert attempts(tmp_path / "meant", OF_LIBRARIES) == ["done"] * len(OF_LIBRARIES)


def test_limits_cannot_be_raised(tmp_path: Path) -> None:
    (said,) = attempts(tmp_path, ["resource.setrlimit(resource.RLIMIT_AS, (-1, -1))"])
    assert "ValueError" in said or "PermissionError" in said


def test_a_shell_starts_nothing(tmp_path: Path) -> None:
    """`os.system` says so by its value alone."""
    said = attempt(tmp_path, f"assert os.system('touch {tmp_path}/new') == 0")
    assert "AssertionError" in said
    assert not (tmp_path / "new").exists()


def test_the_judges_and_the_solutions_cannot_be_read(tmp_path: Path) -> None:
    lines = (
        "import crossopt",
        "import crossopt.solvers.grading.assignments.layer",
        f"open({str(SOLUTIONS / LAYER.name / 'solution.py')!r})",
    )
    silenced = tuple(f"sys.meta_path.pop(0); {line}" for line in lines)  # the walls hold without the sentence that explains them
    for told in (attempts(tmp_path / "told", lines), attempts(tmp_path / "silenced", silenced)):
        assert [said.split(":")[0] in {"PermissionError", "ModuleNotFoundError"} for said in told] == [True] * 3


def test_what_lies_among_the_libraries_is_exposed() -> None:
    assert exposed(Path(pytest.__file__))
    assert not exposed(SOLUTIONS)


def test_no_variable_of_the_grader_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSOPT_COURSE_SEED", "kept by the instructor")
    assert "KeyError" in attempt(tmp_path, "os.environ['CROSSOPT_COURSE_SEED']")


def test_what_harms_nobody_is_allowed(tmp_path: Path) -> None:
    lines = ("pathlib.Path('notes').write_text('mine')", "import numpy, threading", "print('x' * 100000)", "import pulp, ortools")
    assert attempts(tmp_path, lines) == ["done"] * len(lines)
    assert sorted(path.name for path in (tmp_path / "in").iterdir()) == ["solution.py"]


def test_a_loop_without_end_is_stopped_and_what_was_answered_counts(tmp_path: Path) -> None:
    program = "def one():\n    return 1\n\n\ndef other():\n    while True:\n        pass\n"
    first, second = grade_of(tmp_path / "in", program, "one", "other", seconds=1).marks
    assert (first.points, second.points) == (10.0, 0.0)
    assert second.why[0].startswith("every case: stopped after 1 s")


@pytest.mark.slow
def test_nothing_is_left_of_folders_in_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    line = "[(os.mkdir('d'), os.chdir('d')) for _ in range(1200)]; os.mkdir('closed', 0)"
    assert attempts(tmp_path, [line]) == ["done"]
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_further_loops_have_less_time_and_what_is_right_has_enough(tmp_path: Path) -> None:
    loops = "".join(f"def {name}():\n    while True:\n        pass\n" for name in ("one", "two", "three"))
    grade = grade_of(tmp_path / "in", f"{loops}def four():\n    return 1\n", "one", "two", "three", "four", seconds=2)
    assert [mark.why[0].split(" s ")[0] for mark in grade.marks[:3]] == [f"every case: stopped after {seconds}" for seconds in (2, 2, 1)]
    assert grade.marks[3].points == 10.0


def test_a_sleeper_is_stopped(tmp_path: Path) -> None:
    (mark,) = grade_of(tmp_path / "in", "import time\n\n\ndef one():\n    time.sleep(60)\n", "one", seconds=1).marks
    assert "stopped after 1 s" in mark.why[0]


TOLD = {
    "return bytearray(4 << 30)": "MemoryError",
    "open('much', 'wb').write(bytes(64 << 20))": "File too large",
    "raise SystemExit": "SystemExit",
    "return float('nan')": "not a number (nan)",
    "return 1j": "a complex is returned",
    "x = []; x.append(x); return x": "ValueError",
    "os._exit(7)": "exit code 7",
}


def test_what_goes_wrong_is_told(tmp_path: Path) -> None:
    for said, word in zip(attempts(tmp_path, list(TOLD)), TOLD.values(), strict=True):
        assert word in said
    assert "crashed (SIGSEGV)" in attempt(tmp_path, "ctypes.string_at(0)")


@pytest.mark.parametrize("value", [None, True, "1", [1], {}, 10**400, float("nan")])
def test_what_is_no_figure_earns_nothing(value: object) -> None:
    assert "where a figure is meant" in figure(value, 1.0).why


def test_a_program_that_is_no_python_is_told_with_its_line(tmp_path: Path) -> None:
    (mark,) = grade_of(tmp_path / "in", "def one(:\n", "one").marks
    assert "SyntaxError" in mark.why[0]
    assert "line 1 of solution.py" in mark.why[0]


def test_what_it_writes_into_the_answers_is_judged_like_an_answer(tmp_path: Path) -> None:
    """The descriptor of the answers is no secret; there is nothing to gain by it."""
    forge = (
        'def forge(fd):\n    try:\n        os.write(fd, b\'{"points": 10, "value": 2}\\n\')\n    except OSError:\n        pass\n'
        "def one():\n    [forge(fd) for fd in range(3, 256)]\n    return 1\n"
    )
    (mark,) = grade_of(tmp_path / "in", f"{IMPORTS}{forge}", "one").marks
    assert (mark.points, mark.why) == (0.0, ("every case: the figure is 2 times the right one",))


def test_words_of_a_program_come_on_one_line_without_what_a_terminal_obeys(tmp_path: Path) -> None:
    told = attempt(tmp_path, r"raise ValueError('\x1b[2J\x1b]0;title\x07 first\nsecond\r\u202e')")
    assert r"ValueError: \x1b[2J\x1b]0;title\x07 first\nsecond\r\u202e (line 3 of solution.py)" in told
    assert told.isprintable()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("return float('nan')", "not a number (nan) or an infinite figure is returned"),
        ("return [1.0, {'a': float('-inf')}]", "not a number (nan) or an infinite figure is returned"),
        ("return list(range(10_000_000))", "too much is returned (at most 2 MiB are read)"),
        ("import crossopt", "crossopt cannot be imported here"),
        ("import crossopt.solvers.grading.walls", "crossopt cannot be imported here"),
        ("from crossopt import instances", "crossopt cannot be imported here"),
    ],
)
def test_what_cannot_be_returned_or_imported_is_told(tmp_path: Path, line: str, words: str) -> None:
    assert words in attempt(tmp_path, line)


def test_this_package_is_no_part_of_a_program(tmp_path: Path) -> None:
    """Neither handed in, at the top or below, nor written by the program itself, nor compiled."""
    for place, name in (("", "crossopt.py"), ("lib/crossopt", "__init__.py"), ("", "Crossopt-0.1.0-py3-none-any.whl")):
        folder = tmp_path / f"with {name}"
        (folder / place).mkdir(parents=True)
        written(folder / place, "ONE = 1\n", name)
        refused = grade_of(folder, "def one():\n    return 1\n", "one").refused
        assert (place or name) in refused
        assert "has the name of the tool" in refused
    (tmp_path / "packed").mkdir()
    (tmp_path / "packed" / "work.pyc").write_bytes(b"")
    refused = grade_of(tmp_path / "packed", "from work import *\n", "one").refused
    assert refused == "work.pyc is compiled or packed, so that nobody can read it (hand in its source, as .py or .ipynb)"
    writing = "pathlib.Path('crossopt.py').write_text('ONE = 1'); import crossopt; return crossopt.ONE"
    assert "cannot be imported here" in attempt(tmp_path, writing)


def test_a_program_that_is_never_loaded_costs_the_time_of_one_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    monkeypatch.setattr(grading, "run", lambda *asked: (started.append(asked), run(*asked))[1])
    grade = grade_of(tmp_path / "in", "while True:\n    pass\n", "one", "two", "three", "four", "five", "six", seconds=1)
    assert len(started) == 1
    assert len(grade.marks) == 6
    assert all("while it was loaded: stopped after 1 s" in mark.why[0] for mark in grade.marks)


def test_a_loop_in_one_function_costs_the_others_nothing(tmp_path: Path) -> None:
    grade = grade_of(tmp_path / "in", "def one():\n    while True:\n        pass\ndef two():\n    return 1\n", "one", "two", seconds=1)
    assert [mark.points for mark in grade.marks] == [0.0, 10.0]
