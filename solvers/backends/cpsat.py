"""CP-SAT of OR-Tools: takes every kind of row as it is and works in integers throughout, so its bound needs no rounding.

The bound is `inner_objective_lower_bound`, the integer that the solver itself keeps; the floating-point bound beside it is only a picture
of it. A field that was never set reads 0, which is no bound: where the search ended early, 0 is not believed.
"""

from collections.abc import Mapping
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from crossopt.formulation.model import EXACT, Constraint, ExactlyOne, Linear, Model, Table, Variable
from crossopt.instances.errors import SolverError
from crossopt.solvers.backends.answer import Allowed, Answer, Course, Spend, Stopped, Told, attended, hinted, judged
from crossopt.solvers.backends.line import Line, left_until, named

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

Columns = Mapping[Variable, "cp_model.IntVar"]


def cpsat(model: Model, spend: Spend) -> Answer:
    """The best solution and the best bound that CP-SAT finds."""
    course, name = Course(model), f"cpsat {version('ortools')}"
    hinted(model, spend)
    return judged(model, attended("cpsat", name, run_cpsat, course, spend), course, name, spend.hint)


def run_cpsat(line: Line, model: Model, allowed: Allowed) -> Told:
    """One solve, behind the wall."""
    from ortools.sat.python import cp_model

    posted, columns = post_model(model)
    for place, value in allowed.hint:
        posted.add_hint(columns[model.variables[place]], value)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = allowed.workers
    solver.parameters.random_seed = allowed.seed
    solver.parameters.relative_gap_limit = allowed.gap
    solver.parameters.catch_sigint_signal = False  # Ctrl-C is seen where the work was asked for; the solver's own handler would stay
    if isfinite(allowed.deadline):
        solver.parameters.max_time_in_seconds = left_until(allowed.deadline)
    solver.best_bound_callback = lambda bound: line.tell((None, _whole(bound), None))
    line.stop = solver.stop_search
    name = f"cpsat {version('ortools')}"
    with named(name):
        status = solver.status_name(solver.solve(posted, _listener(line, model, list(columns.values()))))
        if status == "MODEL_INVALID":
            raise SolverError(f"cpsat does not take the model: {posted.validate()}")
        return _reply(solver, status, columns, model, line)


def post_model(model: Model) -> "tuple[cp_model.CpModel, Columns]":
    """The model in CP-SAT's words, and its variables there; names are short, as in every file that is written."""
    from ortools.sat.python import cp_model

    posted = cp_model.CpModel()
    columns = {variable: posted.new_int_var(variable.low, variable.high, f"x{place}") for place, variable in enumerate(model.variables)}
    for constraint in model.constraints:
        post(constraint, posted, columns)
    if model.objective:
        cost = cp_model.LinearExpr.weighted_sum([columns[v] for _, v in model.objective], [c for c, _ in model.objective]) + model.constant
        if model.minimise:
            posted.minimize(cost)
        else:
            posted.maximize(cost)
    return posted, columns


def post(constraint: Constraint, posted: "cp_model.CpModel", columns: Columns) -> None:
    """One row in CP-SAT's words."""
    from ortools.sat.python import cp_model

    match constraint:
        case Linear(terms=terms, low=low, high=high, given=given):
            total = cp_model.LinearExpr.weighted_sum([columns[v] for _, v in terms], [coefficient for coefficient, _ in terms])
            least, most = cp_model.INT_MIN if low is None else low, cp_model.INT_MAX if high is None else high
            row = posted.add_linear_constraint(total, least, most)
            if given is not None:
                row.only_enforce_if(columns[given])
        case ExactlyOne(variables=variables):
            posted.add_exactly_one([columns[variable] for variable in variables])
        case Table(variables=variables, rows=rows):
            posted.add_allowed_assignments([columns[variable] for variable in variables], rows)
        case _:
            assert_never(constraint)


def write_proto(model: Model, path: Path) -> None:
    """The model as CP-SAT keeps it: text where the file's name ends in .txt or .textproto, else binary."""
    posted, _ = post_model(model)
    if not posted.export_to_file(str(path)):
        raise OSError(f"{path} cannot be written")


def _listener(line: Line, model: Model, columns: "list[cp_model.IntVar]") -> "cp_model.CpSolverSolutionCallback":
    """Tells each solution that is better than all before."""
    from ortools.sat.python import cp_model

    class Listener(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            value = model.constant if not model.objective else _whole(self.objective_value)
            line.tell((value, None, [self.value(column) for column in columns]))

    return Listener()


def _reply(solver: "cp_model.CpSolver", status: str, columns: Columns, model: Model, line: Line) -> Told:
    if status == "INFEASIBLE":
        return True, None, None, None, "complete"
    found = status in {"OPTIMAL", "FEASIBLE"}
    figures = [solver.value(column) for column in columns.values()] if found else None
    claimed = solver.objective_value if found and model.objective else None
    inner = solver.response_proto.inner_objective_lower_bound
    unset = not model.objective or (inner == 0 and status != "OPTIMAL")
    bound = None if unset else model.sign * inner + model.constant
    stopped: Stopped = "gap" if status == "OPTIMAL" else "interrupted" if line.stopping else "time limit"
    return False, figures, claimed, bound, stopped


def _whole(figure: float) -> int | None:
    """The integer that a figure of an all-integer objective stands for; None where floating point cannot tell."""
    return round(figure) if abs(figure) < EXACT else None
