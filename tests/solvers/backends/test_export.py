"""Files for other programs: what is read back has the same optimum, and every short name has its full one."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossopt.formulation.model import Linear, Model, Variable, linearize
from crossopt.solvers.backends import backend
from crossopt.solvers.backends.answer import Spend
from crossopt.solvers.codesign.linear.relaxation import write_cpsat, write_lp, write_mps
from tests.formulation.models import models, optimum
from tests.solvers.backends.test_backends import SMALL

PLAIN = {"model.lp": write_lp, "model.mps": write_mps}


def read_with_highs(path: Path) -> float | None:
    """The optimum of a file, in a process of nothing but HiGHS' own reader; None where it has no solution."""
    import highspy

    solver = highspy.Highs()
    solver.silent()
    assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.run()
    if solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return None
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(solver.getInfo().objective_function_value)


@pytest.mark.parametrize("name", PLAIN)
@settings(max_examples=25)
@given(model=models(), constant=st.integers(-9, 9))
def test_a_file_read_back_has_the_same_optimum(name: str, model: Model, constant: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The constant as well, which PuLP's writers drop."""
    path = tmp_path_factory.mktemp("files") / name
    PLAIN[name](replace(model, constant=constant), path)
    assert read_with_highs(path) == optimum(replace(model, constant=constant))


@pytest.mark.parametrize("name", ["model.textproto", "model.pb"])
def test_cpsats_file_read_back_has_the_same_optimum(name: str, tmp_path: Path) -> None:
    from google.protobuf import text_format
    from ortools.sat.python import cp_model

    path = tmp_path / name
    write_cpsat(SMALL, path)
    model = cp_model.CpModel()
    if name.endswith("textproto"):
        text_format.Parse(path.read_text(), model.proto)
    else:
        model.proto.ParseFromString(path.read_bytes())
    assert [variable.name for variable in model.proto.variables] == ["x0", "x1", "x2"]
    solver = cp_model.CpSolver()
    assert solver.solve(model) == cp_model.OPTIMAL
    assert solver.objective_value == backend("cpsat")(SMALL, Spend()).value == 2


@pytest.mark.parametrize("name", PLAIN)
def test_every_name_of_the_file_has_its_full_name(name: str, tmp_path: Path) -> None:
    """Names that no file format bears, and some that PuLP would make one of."""
    odd = (Variable("tensor = 4"), Variable("tensor - 4"), Variable("pipeline [2] ≤ 3"))
    model = Model(odd, (Linear("memory of stage 0, at most 80 GiB", tuple((1, v) for v in odd), 1, 2),), ((1, odd[2]),), 7)
    names = PLAIN[name](model, tmp_path / name)
    assert names == tmp_path / f"{name}.names.json"
    assert json.loads(names.read_text(encoding="utf-8")) == {
        "variables": {f"x{place}": variable.name for place, variable in enumerate(odd)},
        "rows": {"r0": "memory of stage 0, at most 80 GiB"},
    }
    words = set((tmp_path / name).read_text().replace(":", " ").split())
    assert {"x0", "x1", "x2", "one", "r0_low", "r0_high"} <= words


def test_names_cover_the_rows_and_variables_that_the_linear_form_adds(tmp_path: Path) -> None:
    names = json.loads(write_lp(SMALL, tmp_path / "small.lp").read_text())
    linear = linearize(SMALL)
    assert list(names["variables"].values()) == [variable.name for variable in linear.variables]
    assert list(names["rows"].values()) == [row.name for row in linear.constraints]


@pytest.mark.parametrize("name", PLAIN)
def test_numbers_that_a_file_would_shorten_are_refused(name: str, tmp_path: Path) -> None:
    x = Variable("x")
    with pytest.raises(ValueError, match="the number 1234567890123 has more digits than the file keeps"):
        PLAIN[name](Model((x,), (), ((1234567890123, x),)), tmp_path / name)
    assert list(tmp_path.iterdir()) == []
