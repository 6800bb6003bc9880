"""Models as files that other programs read, with a second file that says which name stands for what.

    .lp, .mps               the linear form; `x3` is the fourth variable, `r7_low` the lower side of the eighth row
    .txt, .textproto, .pb   CP-SAT's own form, text or binary; its rows have no names

Beside `model.lp` lies `model.lp.names.json` with the full names: {"variables": {"x3": "tensor = 4"}, "rows": {"r7": "memory of stage 0"}}.
The column `one`, where there is one, is fixed at 1 and carries the constant of the objective.
"""

import json
from pathlib import Path

from crossopt.formulation.model import Model, linearize
from crossopt.solvers.backends.cpsat import write_proto
from crossopt.solvers.backends.milp import printable, problem_of


def write_lp(model: Model, path: Path) -> Path:
    """Writes the linear form in CPLEX LP format; gives the path of the names."""
    linear = linearize(model)
    printable(linear)
    problem_of(linear)[0].writeLP(str(path))
    return _write_names(linear, path)


def write_mps(model: Model, path: Path) -> Path:
    """Writes the linear form in free MPS format; gives the path of its names. Only a maximum states its sense, which CBC cannot read."""
    linear = linearize(model)
    printable(linear)
    problem_of(linear)[0].writeMPS(str(path), with_objsense=not model.minimise)
    return _write_names(linear, path)


def write_cpsat(model: Model, path: Path) -> Path:
    """Writes CP-SAT's protocol buffer; gives the path of the names."""
    write_proto(model, path)
    return _write_names(model, path)


def _write_names(model: Model, path: Path) -> Path:
    """Short name to full name, in the order of the model."""
    names = path.with_name(f"{path.name}.names.json")
    variables = {f"x{place}": variable.name for place, variable in enumerate(model.variables)}
    rows = {f"r{place}": row.name for place, row in enumerate(model.constraints)}
    names.write_text(json.dumps({"variables": variables, "rows": rows}, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return names
