"""The house rules that no linter knows: which room enters which, who names solvers, how long functions and files are."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from crossopt.instances import kinds
from tests.paths import ROOT

ROOMS = ("crossflow", "instances", "formulation", "solvers", "reports")
"""A room imports itself and those to its left."""
OF_PACKAGE = [kind.question.split(".") for kind in kinds.KINDS.values() if kind.question.startswith("crossopt.")]
KINDS = {"study", "measured", "grading"} | {module[2] for module in OF_PACKAGE}
"""Folders and files of a kind of question inside a room, or of another use; what all share never imports one, and none imports another."""
MAY_ENTER = {"study": {"codesign"}, "grading": {"codesign"}, "serving": {"codesign"}}
"""Exceptions: the first two, in solvers, ask and grade joint designs; free chips that serve are those of joint designs."""
TABLES = ("instances/__init__.py", "instances/schema_export.py")
"""Files that name the kinds."""
HANDED_OUT = "instances/course/"
"""Programs and tests of students, which print and assert."""
LONGEST_FILE, LONGEST_FUNCTION = 1000, 60
SMALL = 150
"""Lines below which a module with one importer belongs into that."""
SMALL_WITH_ONE_IMPORTER = 4
"""How many of these stand. Lower it whenever some are merged; never raise it."""
LARGEST = 1_000_000
"""Bytes of a file of the repository."""
DEEPEST = 2
"""Folders inside a room, one in another."""
DEEPER: set[str] = set()
"""Folders that are deeper still, until they are flattened."""
OPEN_CYCLES: set[tuple[str, str]] = set()
"""Imports, by importer and imported, that close a cycle until they are gone."""
FILES = {str(path.relative_to(ROOT)): path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))}
OURS = [name for name in FILES if not name.startswith(HANDED_OUT)]


@cache
def trees() -> dict[str, ast.Module]:
    """Every file, parsed when a test asks: while tests are collected nobody shall wait for it."""
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}


@pytest.fixture(scope="module", autouse=True)
def _kept_for_these_tests() -> Iterator[None]:
    """A million objects less for whatever runs later."""
    yield
    trees.cache_clear()
    imports.cache_clear()
    imported_modules.cache_clear()


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Those inside of a statement or a file, without the expressions in them, which are most of a tree."""
    for part in ("body", "handlers", "orelse", "finalbody", "cases"):
        for inner in getattr(node, part, ()):
            yield inner
            yield from statements(inner)


@cache
def imports(tree: ast.AST) -> tuple[str, ...]:
    """Every module that a file names, at the top or inside a function, and each name taken from it."""
    found = list[str]()
    for node in (tree, *statements(tree)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module or '.'}.{alias.name}" for alias in node.names]
    return tuple(found)


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in statements(tree) if isinstance(node, ast.FunctionDef))


def kind_of(parts: list[str]) -> str | None:
    """The kind of question that a file below a room belongs to; None for what all share."""
    return parts[0] if parts and parts[0] in KINDS else None


def forbidden(name: str) -> Iterator[str]:
    """What a file imports against the rule."""
    room, *parts = Path(name).with_suffix("").parts
    for module in imports(trees()[name]):
        if not module.startswith("crossopt."):
            continue
        other, *path = module.split(".")[1:]
        upward = ROOMS.index(other) > ROOMS.index(room) if other in ROOMS else False
        its, own = kind_of(path), kind_of(parts)
        strange = (
            room == other
            and room not in ("crossflow", "reports")
            and its not in {None, own, *MAY_ENTER.get(own or "", set())}
            and name not in TABLES
        )
        if upward or strange:
            yield module


def test_the_walk_sees_all_rooms() -> None:
    assert {name.split("/")[0] for name in FILES} == set(ROOMS)
    assert "crossopt.instances.kinds.kind_of_file" in set(imports(trees()["reports/cli.py"]))


@pytest.mark.parametrize("room", ROOMS)
def test_imports_run_one_way(room: str) -> None:
    """crossflow <- instances <- formulation <- solvers <- reports, and inside a room shared files <- kinds of questions."""
    assert {name: found for name in OURS if name.startswith(f"{room}/") and (found := list(forbidden(name)))} == {}


def test_no_import_is_relative_and_none_leaves_the_package_out() -> None:
    relative = [name for name, tree in trees().items() for node in statements(tree) if isinstance(node, ast.ImportFrom) and node.level]
    bare = [name for name in OURS for module in imports(trees()[name]) if module.split(".")[0] in ROOMS]
    assert (relative, bare) == ([], [])


def test_the_project_file_names_every_package() -> None:
    """And no other, so that the wheel holds what a checkout holds."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    found = {".".join(("crossopt", *Path(name).parent.parts)) for name in FILES if name.endswith("/__init__.py")}
    assert listed == sorted({"crossopt", *found}), "`packages` of pyproject.toml and the folders differ"


def test_the_folder_may_be_called_as_one_likes(tmp_path: Path) -> None:
    """It is the package, whatever its own name; a linter that looks at it shall not mind."""
    linter = shutil.which("ruff", path=str(Path(sys.executable).parent))
    if linter is None:
        pytest.skip("ruff is not installed beside this Python")
    for name in ("pyproject.toml", "__init__.py", "crossflow/__init__.py", "crossflow/cost.py"):
        (tmp_path / "a-b.c" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / "a-b.c" / name)
    done = subprocess.run(
        [linter, "check", "--no-cache", "."], cwd=tmp_path / "a-b.c", capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "All checks passed!\n")


def named(packages: set[str], tree: ast.AST) -> bool:
    return not packages.isdisjoint(module.split(".")[0] for module in imports(tree))


def at_once(tree: ast.Module) -> ast.Module:
    """What of a file runs when it is imported: all but its functions, those of classes too, and what only a type checker reads."""
    flat = [part for node in tree.body for part in (node.body if isinstance(node, ast.ClassDef) else [node])]
    rest = [node for node in flat if not isinstance(node, ast.FunctionDef)]
    return ast.Module([node for node in rest if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")], [])


@pytest.mark.parametrize(
    ("packages", "places"),
    [
        ({"ortools"}, ["solvers/backends/cpsat.py"]),
        ({"pulp"}, ["solvers/backends/milp.py"]),
        ({"highspy"}, ["solvers/backends/arrays.py", "solvers/backends/milp.py", "solvers/backends/whole.py"]),
    ],
    ids=["ortools", "pulp", "highspy"],
)
def test_a_solver_is_named_in_few_files_and_imported_when_it_is_asked(packages: set[str], places: list[str]) -> None:
    """So that it can be replaced in one place, for each form of model, and that nobody waits for it who does not need it."""
    assert [name for name, tree in trees().items() if named(packages, tree)] == places
    assert [place for place in places if named(packages, at_once(trees()[place]))] == []


def test_the_compiler_is_named_in_one_file() -> None:
    assert [name for name, tree in trees().items() if named({"numba"}, tree)] == ["formulation/compiled.py"]


def test_dask_is_named_in_one_file() -> None:
    """Which is imported where it is asked for: it does not come along."""
    assert [name for name, tree in trees().items() if named({"dask", "distributed"}, tree)] == ["solvers/sweeps/on_dask.py"]
    assert not named({"dask", "distributed"}, at_once(trees()["solvers/sweeps/on_dask.py"]))


def test_the_course_is_entered_by_its_own_command_alone() -> None:
    """And by what completes its words."""
    course = ("crossopt.solvers.grading", "crossopt.instances.course")
    entering = {name for name in OURS if any(module.startswith(course) for module in imports(trees()[name]))}
    outside = {name for name in entering if not name.startswith("solvers/grading/")}
    assert outside == {"reports/commands/course.py", "reports/commands/completion.py"}


def test_networkx_is_named_in_one_file_at_most() -> None:
    assert len([name for name, tree in trees().items() if named({"networkx"}, tree)]) <= 1


@pytest.mark.parametrize("name", [name for name in OURS if Path(name).stem in {"judge", "prove", "family", "check", "checking"}])
def test_judges_and_checks_name_no_solver(name: str) -> None:
    """A proof that the same code wrote and checks proves nothing."""
    assert [module for module in imports(trees()[name]) if ".backends" in module or (".engines" in module and "judge" in name)] == []


@pytest.mark.parametrize("room", ROOMS)
def test_files_and_functions_are_short(room: str) -> None:
    names = [name for name in FILES if name.startswith(f"{room}/")]
    assert [name for name in names if len(FILES[name].read_text(encoding="utf-8").splitlines()) > LONGEST_FILE] == []
    lengths = {f"{name}:{node.name}": (node.end_lineno or 0) - node.lineno + 1 for name in names for node in functions(trees()[name])}
    assert {function: lines for function, lines in lengths.items() if lines > LONGEST_FUNCTION} == {}


def test_files_of_tests_are_as_short() -> None:
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")}
    assert {name for name, text in texts.items() if len(text.splitlines()) > LONGEST_FILE} == set()


def test_libraries_print_nothing_and_assert_nothing() -> None:
    """Input is refused by errors with a sentence; `python -O` drops asserts. One file makes constructors of the names of fields."""
    banned = {"print", "eval", "exec", "input"}
    found = [
        (name, node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else "assert")
        for name in OURS
        if re.search(r"\b(print|eval|exec|input)\b|\bassert\b", FILES[name].read_text(encoding="utf-8"))
        for node in ast.walk(trees()[name])
        if isinstance(node, ast.Assert) or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in banned)
    ]
    assert found == [("crossflow/records.py", "exec")]


def test_every_file_says_what_it_is_for() -> None:
    assert [name for name in FILES if not ast.get_docstring(trees()[name])] == []


def test_no_function_hides_its_arguments() -> None:
    assert [(name, node.name) for name, tree in trees().items() for node in functions(tree) if node.args.kwarg] == []


def modules() -> dict[str, str]:
    """Every module of the rooms by its dotted name, with its file."""
    return {".".join(("crossopt", *Path(name).with_suffix("").parts)).removesuffix(".__init__"): name for name in OURS}


@cache
def imported_modules() -> dict[str, frozenset[str]]:
    """Of each module those that it imports, at the top or inside a function; what only a type checker reads does not count."""
    known = modules()
    found: dict[str, frozenset[str]] = {}
    for module, name in known.items():
        names = {dotted for node in without_typing(trees()[name]) for dotted in imports(node)}
        packages = {dotted.rpartition(".")[0] for dotted in names - known.keys()}
        found[module] = frozenset((names | packages) & known.keys() - {module})
    return found


def without_typing(tree: ast.Module) -> Iterator[ast.stmt]:
    return (node for node in tree.body if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"))


def test_no_import_runs_in_a_circle() -> None:
    """Whether at the top or inside a function: two modules that need each other are one."""
    graph = {module: others - {b for a, b in OPEN_CYCLES if a == module} for module, others in imported_modules().items()}
    TopologicalSorter(graph).prepare()  # a CycleError names the cycle


def test_listed_cycles_are_still_open() -> None:
    assert {(a, b) for a, b in OPEN_CYCLES if b not in imported_modules().get(a, ())} == set()


def test_small_modules_with_one_importer_become_fewer() -> None:
    """One follows a subject through fewer files where what only one module needs stands in that."""
    importers: dict[str, set[str]] = {}
    for module, others in imported_modules().items():
        for other in others:
            importers.setdefault(other, set()).add(module)
    small = [
        name
        for module, name in modules().items()
        if len(importers.get(module, ())) == 1
        and not name.endswith("__init__.py")
        and len(FILES[name].read_text(encoding="utf-8").splitlines()) < SMALL
    ]
    assert len(small) <= SMALL_WITH_ONE_IMPORTER, small


def test_folders_are_few_deep() -> None:
    """Two inside a room."""
    deeper = {str(Path(name).parent) for name in OURS if len(Path(name).parent.parts) - 1 > DEEPEST}
    assert deeper <= DEEPER, "put these files into the folder above"
    assert deeper >= DEEPER, "take these off the list"


def test_no_file_is_large_enough_to_be_downloaded_or_built() -> None:
    """What is downloaded or built stays out of the repository: a wheel of 17 MB was committed once."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("this is no checkout of git")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout.split("\0")
    sizes = {name: (ROOT / name).stat().st_size for name in listed if name and (ROOT / name).is_file()}
    assert {name: size for name, size in sizes.items() if size > LARGEST} == {}
