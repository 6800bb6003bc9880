"""The house rules that no linter knows: which room may enter which, where solvers may be named, and how long a function may be."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import ROOT

ROOMS = ("crossflow", "instances", "formulation", "solvers", "reports")
MAY_IMPORT = {
    "crossflow": {"crossflow"},
    "instances": {"crossflow", "instances"},
    "formulation": {"crossflow", "instances", "formulation"},
    "solvers": {"crossflow", "instances", "formulation", "solvers"},
    "reports": {"reports"},
}
ALSO = {
    "solvers/cli.py": {"reports.text", "reports.accuracy", "reports.launch", "reports.pareto"},
    "solvers/explaining.py": {"reports.explain", "reports.near", "reports.relaxation"},
    "reports/relaxation.py": {"solvers.relaxing"},
    "reports/text.py": {"solvers.result", "instances.units"},
    "reports/accuracy.py": {"solvers.accuracy"},
    "reports/near.py": {"solvers.near", "solvers.result", "instances.units"},
    "solvers/placement/command.py": {"reports.placement"},
    "reports/placement.py": {"instances.placement.graph", "instances.units", "solvers.placement.answer", "solvers.placement.judge"},
    "solvers/sharding/command.py": {"reports.sharding"},
    "reports/sharding.py": {
        *(
            "instances.sharding.extent",
            "instances.sharding.question",
            "instances.units",
            "reports.text",
            "solvers.sharding.answer",
            "solvers.sharding.comparison",
            "solvers.sharding.plans",
        ),
    },
    "solvers/pipeline/command.py": {"reports.pipeline"},
    "solvers/chain/command.py": {"reports.chain"},
    "reports/chain.py": {
        *("instances.pipeline.chain", "instances.units"),
        *("solvers.chain.answer", "solvers.chain.judge", "solvers.chain.plan"),
    },
    "reports/pipeline.py": {"solvers.pipeline.answer", "solvers.pipeline.judge", "solvers.pipeline.plan", "instances.units"},
    "solvers/piper/command.py": {"reports.piper"},
    "reports/piper.py": {"solvers.piper.answer", "instances.units"},
    "reports/launch.py": {"crossflow.memory", "crossflow.plan", "crossflow.workload"},
    "reports/pareto.py": {"solvers.pareto"},
    "reports/several.py": {"reports.text", "solvers.result", "solvers.several.result"},
    "solvers/several/command.py": {"reports.several"},
    "reports/counts.py": {"reports.text", "solvers.counts.result", "solvers.result"},
    "solvers/counts/command.py": {"reports.counts"},
    "solvers/reporting/command.py": {
        *("reports.digest", "reports.pages.counts", "reports.pages.design", "reports.pages.front", "reports.pages.placement"),
        *("reports.pages.several", "reports.pages.shell", "reports.pages.stages", "reports.pages.together", "reports.paper"),
        *("reports.pages.study", "reports.pages.relaxation", "reports.pages.sharding", "reports.study_digest", "reports.study_runs"),
    },
    "reports/digest.py": {
        *(
            "solvers.certify",
            "solvers.counts.result",
            "solvers.pareto",
            "solvers.placement.answer",
            "solvers.reporting.stages",
            "solvers.result",
        ),
        "solvers.several.result",
    },
    "reports/pages/linear.py": {"solvers.reporting.terms"},
    "reports/pages/machine.py": {"solvers.reporting.network", "solvers.reporting.roofline"},
    "reports/pages/sharding.py": {"instances.units", "solvers.sharding.answer"},
    "reports/pages/relaxation.py": {"solvers.certify", "solvers.relaxing"},
    "reports/pages/step.py": {"solvers.reporting.schedule"},
    "solvers/study/command.py": {"reports.study", "reports.pages.study"},
    "reports/study.py": {"solvers.study.figures", "solvers.study.records"},
    "reports/study_digest.py": {"solvers.study.figures", "solvers.study.records"},
    "reports/study_runs.py": {"solvers.study.figures", "solvers.study.records"},
    "reports/pages/study.py": {"solvers.study.figures", "solvers.study.records"},
    "reports/pages/evaluated.py": {"solvers.reporting.facts"},
    "reports/pages/counts.py": {"solvers.counts.result", "solvers.reporting.facts", "solvers.result"},
    "reports/pages/several.py": {"solvers.reporting.facts", "solvers.several.result"},
    "reports/pages/front.py": {"solvers.pareto", "solvers.reporting.facts"},
    "reports/pages/design.py": {"solvers.reporting.facts", "solvers.result"},
    "reports/pages/stages.py": {
        *("solvers.chain.answer", "solvers.pipeline.answer", "solvers.piper.answer", "solvers.reporting.stages"),
    },
    "reports/pages/placement.py": {
        *("instances.units", "solvers.placement.answer", "solvers.placement.judge", "solvers.reporting.placement"),
    },
    "solvers/course/command.py": {"reports.course"},
    "reports/course.py": {"solvers.course.marks"},
    "reports/explain.py": {"solvers.explain", "solvers.result", "instances.units"},
}
"""Single modules that a single file may import beside its room's."""
HANDED_OUT = "instances/course/"
"""Programs and tests of students, which print and assert."""
LONGEST_FILE, LONGEST_FUNCTION = 400, 50
FILES = {str(path.relative_to(ROOT)): path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}


def imports(tree: ast.Module) -> Iterator[str]:
    """Every module that a file names, at the top or inside a function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "."


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_the_walk_sees_all_rooms() -> None:
    assert {name.split("/")[0] for name in FILES} == set(ROOMS)
    assert "instances.reading" in set(imports(TREES["solvers/cli.py"]))


@pytest.mark.parametrize("name", FILES)
def test_imports_run_one_way(name: str) -> None:
    """crossflow <- instances <- formulation <- solvers; reports read results only, and only the command line calls them."""
    allowed = MAY_IMPORT[name.split("/", maxsplit=1)[0]]
    rooms = [module for module in imports(TREES[name]) if module.split(".")[0] in ROOMS]
    assert [module for module in rooms if module.split(".")[0] not in allowed and module not in ALSO.get(name, set())] == []


def test_no_import_is_relative() -> None:
    assert [name for name, tree in TREES.items() for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level] == []


def named(packages: set[str], tree: ast.Module) -> bool:
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
        ({"highspy"}, ["solvers/backends/arrays.py", "solvers/backends/milp.py"]),
    ],
    ids=["ortools", "pulp", "highspy"],
)
def test_a_solver_is_named_in_few_files_and_imported_when_it_is_asked(packages: set[str], places: list[str]) -> None:
    """So that it can be replaced in one place, for each form of model, and that nobody waits for it who does not need it."""
    assert [name for name, tree in TREES.items() if named(packages, tree)] == places
    assert [place for place in places if named(packages, at_once(TREES[place]))] == []


def test_the_compiler_is_named_in_one_file() -> None:
    assert [name for name, tree in TREES.items() if named({"numba"}, tree)] == ["formulation/compiled.py"]


def test_networkx_is_named_in_one_file_at_most() -> None:
    assert len([name for name, tree in TREES.items() if named({"networkx"}, tree)]) <= 1


def test_the_cost_model_and_the_questions_know_no_solver() -> None:
    solvers = {"ortools", "pulp", "highspy"}
    inner = [name for name in FILES if not name.startswith("solvers/")]
    assert [name for name in inner if solvers & {module.split(".")[0] for module in imports(TREES[name])}] == []


def test_the_check_names_no_solver_and_no_formulation() -> None:
    """A proof that the same code wrote and checks proves nothing."""
    for name in ("solvers/check.py", "solvers/verify.py"):
        assert not {module.split(".")[0] for module in imports(TREES[name])} & {"formulation", "ortools", "pulp", "highspy"}


@pytest.mark.parametrize("name", FILES)
def test_files_and_functions_are_short(name: str) -> None:
    assert len(FILES[name].read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE
    long = {node.name: (node.end_lineno or 0) - node.lineno + 1 for node in functions(TREES[name])}
    assert {function: lines for function, lines in long.items() if lines > LONGEST_FUNCTION} == {}


@pytest.mark.parametrize("name", [name for name in FILES if not name.startswith(HANDED_OUT)])
def test_libraries_print_nothing_and_assert_nothing(name: str) -> None:
    """Input is refused by errors with a sentence; `python -O` drops asserts."""
    for node in ast.walk(TREES[name]):
        assert not isinstance(node, ast.Assert)
        assert not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"print", "eval", "exec", "input"})


@pytest.mark.parametrize("name", FILES)
def test_every_file_says_what_it_is_for(name: str) -> None:
    assert ast.get_docstring(TREES[name])


def test_no_function_hides_its_arguments() -> None:
    bags = [(name, node.name) for name, tree in TREES.items() for node in functions(tree) if node.args.kwarg]
    assert bags == []


def test_every_package_says_that_it_is_typed() -> None:
    assert [room for room in ROOMS if not (Path(ROOT) / room / "py.typed").exists()] == []
