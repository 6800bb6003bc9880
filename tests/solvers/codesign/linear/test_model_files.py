"""`crossopt export --as lp, mps, cpsat`: any solver that reads the file has the loop's bound, and every name says what it means."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from crossopt.reports.cli import USAGE, main
from crossopt.reports.commands.exit_codes import INFEASIBLE, NO_DESIGN
from tests.solvers.backends.test_export import read_with_highs
from tests.solvers.codesign.asking import answered
from tests.solvers.codesign.linear.test_refine import agrees_with
from tests.solvers.codesign.questions import GEMM, TINY_FREE, ask

pytestmark = pytest.mark.process

SOME = (
    "compute_area={from: 150 mm^2, to: 400 mm^2, step: 50 mm^2}",
    "budget.power=240 W",
    "compute_power=[100 W, 170 W]",
    "l2_area=[20 mm^2, 50 mm^2, 80 mm^2, 120 mm^2]",
)
ENDINGS = {"lp": "lp", "mps": "mps", "cpsat": "textproto"}


def settings(*choices: str) -> list[str]:
    return [word for choice in choices for word in ("--set", choice)]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A question of many chips in each kind of file."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "wide.yaml").write_text(TINY_FREE)
    for kind in ENDINGS:
        assert main(["export", str(folder / "wide.yaml"), *settings(*SOME), "--as", kind, "--out", str(folder), "--within", "50%"]) == 0
    return {kind: folder / f"wide.{ending}" for kind, ending in ENDINGS.items()}


def about(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.with_name(f"{path.name}.names.json").read_text(encoding="utf-8"))["about"])


def with_cbc(path: Path) -> float:
    """By the program that PuLP brings along, which reads the file itself."""
    from pulp.apis.coin_api import pulp_cbc_path

    done = subprocess.run([pulp_cbc_path, str(path), "-solve", "-quit"], check=True, capture_output=True, text=True)
    return float(next(line for line in done.stdout.splitlines() if line.startswith("Objective value")).split()[-1])


def with_cpsat(path: Path) -> float:
    from google.protobuf import text_format
    from ortools.sat.python import cp_model

    model, solver = cp_model.CpModel(), cp_model.CpSolver()
    text_format.Parse(path.read_text(encoding="utf-8"), model.proto)
    assert solver.solve(model) == cp_model.OPTIMAL
    return float(solver.objective_value)


READERS = [("lp", read_with_highs), ("mps", read_with_highs), ("lp", with_cbc), ("mps", with_cbc), ("cpsat", with_cpsat)]


@pytest.mark.parametrize(("kind", "read"), [pytest.param(*one, marks=pytest.mark.slow if one in READERS[1:3] else ()) for one in READERS])
def test_a_solver_that_has_only_the_file_reaches_the_bound_of_the_loop(kind: str, read: Any, written: dict[str, Path]) -> None:  # noqa: ANN401
    told = about(written[kind])
    assert read(written[kind]) == told["optimum_quanta"]
    assert told["optimum_quanta"] * told["quantum_seconds"] == told["bound_seconds"]


def test_the_bound_is_below_the_optimum_and_near_it(written: dict[str, Path]) -> None:
    told = about(written["lp"])
    true = answered(ask(TINY_FREE, *SOME), "exhaustive").value
    assert agrees_with(told["best_design_seconds"], told["bound_seconds"], true)
    assert told["solved"]


def test_a_solution_of_the_file_is_read_in_words(written: dict[str, Path]) -> None:
    """What is 1 in it: one plan and one choice of each part, each in words."""
    import highspy

    names = json.loads(written["lp"].with_name("wide.lp.names.json").read_text(encoding="utf-8"))
    solver = highspy.Highs()
    solver.silent()
    solver.readModel(str(written["lp"]))
    solver.run()
    columns = [solver.getColName(place)[1] for place in range(solver.getNumCol())]
    chosen = [name for name, value in zip(columns, solver.getSolution().col_value, strict=True) if round(value) == 1]
    words = [names["variables"][name] for name in chosen if name in names["variables"]]
    assert sorted(word.split()[0] for word in words) == ["core", "dram", "l2", "plan"]
    assert "microbatch 1 · no recompute" in next(word for word in words if word.startswith("plan"))
    assert {"one plan", "budget of power", "one choice of core"} <= set(names["rows"].values())


def test_designs_within_a_share_stay_in_the_model(tmp_path: Path, written: dict[str, Path]) -> None:
    (tmp_path / "wide.yaml").write_text(TINY_FREE)
    assert main(["export", str(tmp_path / "wide.yaml"), *settings(*SOME), "--as", "lp", "--out", str(tmp_path)]) == 0
    assert about(tmp_path / "wide.lp")["plans"] < about(written["lp"])["plans"]


@pytest.mark.parametrize("kind", ENDINGS)
def test_hardware_that_is_given_has_a_model_too(kind: str, tmp_path: Path) -> None:
    assert main(["export", "tiny", "--as", kind, "--out", str(tmp_path)]) == 0
    told = about(tmp_path / f"tiny.{ENDINGS[kind]}")
    assert agrees_with(told["best_design_seconds"], told["bound_seconds"], told["best_design_seconds"])


def test_the_question_of_a_result_will_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = tmp_path / "answer.json"
    assert main(["solve", "tiny", "--out", str(result)]) == 0
    assert main(["export", str(result), "--as", "mps", "--out", str(tmp_path)]) == 0
    assert "tiny.mps: a linear model in free MPS format" in capsys.readouterr().out


REFUSED = [
    (GEMM, (), "the integer model's engine answers step_time questions of transformers", USAGE),
    (TINY_FREE, ("--set", "budget.power=50 W"), "there is no model to write: no design keeps every limit", INFEASIBLE),
    (TINY_FREE, ("--out", "model.mps"), "--as lp writes a file that ends in .lp (name one, or a folder)", USAGE),
    (TINY_FREE, ("--out", "nowhere/model.lp"), "there is no folder nowhere (make it first)", USAGE),
    (TINY_FREE, ("--out", "/proc/model.lp"), "/proc/model.lp: this cannot be written", USAGE),
    (TINY_FREE, ("--as", "megatron"), "question.yaml: a question has no plan (name a result of `solve --out`", USAGE),
    (TINY_FREE, ("--time-limit", "0s"), "question: time limit before there was an integer model", NO_DESIGN),
    (TINY_FREE, ("--as", "megatron", "--within", "1%"), "--within: this belongs to models (--as lp, mps or cpsat)", USAGE),
]


@pytest.mark.parametrize(("text", "more", "sentence", "code"), REFUSED)
def test_refusals_are_a_sentence_and_write_nothing(
    text: str,
    more: tuple[str, ...],
    sentence: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,  # noqa: ANN401
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("question.yaml").write_text(text)
    try:
        assert main(["export", "question.yaml", "--as", "lp", *more]) == code
    except SystemExit as ended:
        assert ended.code == code
    told = [
        line
        for line in capsys.readouterr().err.splitlines()
        if not line.startswith("no answer, nor a proof that there is none (exit code 10): ")
    ]
    assert sentence in told[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["question.yaml"]
