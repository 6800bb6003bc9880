"""CP-SAT of OR-Tools: it takes every type of constraint directly and works in integers, so its bound needs no rounding.

The bound is `inner_objective_lower_bound`, the solver's own integer; `best_objective_bound` is a floating-point copy of it. An unset field
reads 0, which is not a bound: after an early stop, 0 is ignored.
"""

from collections.abc import Mapping
from importlib import import_module
from itertools import pairwise
from math import isfinite
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, assert_never

from crossopt.formulation.model import EXACT, Constraint, ExactlyOne, Linear, Model, Scheduled, Shop, Table, Variable, Way
from crossopt.instances.errors import SolverError
from crossopt.solvers.backends.answer import Allowed, Answer, RawReply, SolverBackend, Spend, Stopped, answered
from crossopt.solvers.backends.wall import LateError, Line, SolverProcess, left_until, named, version

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

Columns = Mapping[Variable, "cp_model.IntVar"]


def cpsat(model: Model, spend: Spend) -> Answer:
    """The best solution and the best bound that CP-SAT finds."""
    return answered(model, spend, cpsat_backend(), lambda: import_module("crossopt.solvers.backends.milp").highs_backend())


def cpsat_backend() -> SolverBackend:
    """The backend that runs CP-SAT in a child process."""
    return SolverBackend("cpsat", f"cpsat {version('ortools')}", run_cpsat)


def run_cpsat(line: Line, model: Model, allowed: Allowed) -> RawReply:
    """One solve, in the solver process."""
    from ortools.sat.python import cp_model

    posted, columns = post_model(model)
    for index, value in allowed.hint:
        posted.add_hint(columns[model.variables[index]], value)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = allowed.workers
    solver.parameters.random_seed = allowed.seed
    solver.parameters.relative_gap_limit = allowed.gap
    solver.parameters.catch_sigint_signal = False  # the parent process handles Ctrl-C; the solver's own handler would persist
    if isfinite(allowed.deadline):
        solver.parameters.max_time_in_seconds = left_until(allowed.deadline)
    solver.best_bound_callback = lambda bound: line.tell((None, _integer(bound), None))
    line.stop = solver.stop_search
    name = f"cpsat {version('ortools')}"
    with named(name):
        status = solver.status_name(solver.solve(posted, _listener(line, model, list(columns.values()))))
        if status == "MODEL_INVALID":
            raise SolverError(f"cpsat rejects the model: {posted.validate()}")
        return _reply(solver, status, columns, model, line)


def post_model(model: Model) -> "tuple[cp_model.CpModel, Columns]":
    """The CP-SAT model and its variables; names are short, as in every exported file."""
    from ortools.sat.python import cp_model

    posted = cp_model.CpModel()
    columns = {variable: posted.new_int_var(variable.low, variable.high, f"x{index}") for index, variable in enumerate(model.variables)}
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
    """Add one constraint to the CP-SAT model."""
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
    """Write the CP-SAT proto of a model: text if the file's name ends in .txt or .textproto, else binary."""
    posted, _ = post_model(model)
    if not posted.export_to_file(str(path)):
        raise OSError(f"{path} cannot be written")


def _listener(line: Line, model: Model, columns: "list[cp_model.IntVar]") -> "cp_model.CpSolverSolutionCallback":
    """A callback that reports each improved solution."""
    from ortools.sat.python import cp_model

    class Listener(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            value = model.constant if not model.objective else _integer(self.objective_value)
            line.tell((value, None, [self.value(column) for column in columns]))

    return Listener()


def _reply(solver: "cp_model.CpSolver", status: str, columns: Columns, model: Model, line: Line) -> RawReply:
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


def _integer(figure: float) -> int | None:
    """The integer value of an all-integer objective; None if it is beyond the exact integers of floating point."""
    return round(figure) if abs(figure) < EXACT else None


# --- schedules -----------------------------------------------------------------------------------------------------------------------


def scheduled(shop: Shop, seconds: float, workers: int, seed: int) -> Scheduled:
    """The best schedule of a job shop that CP-SAT finds below `shop.most`, and its bound; only `shop.least` after a timeout."""
    process, deadline = SolverProcess("cpsat", f"cpsat {version('ortools')}"), monotonic() + seconds
    try:
        found: Scheduled = process.ask(run_shop, shop, deadline, workers, seed, until=deadline + 1.0)
    except LateError:
        return Scheduled(shop.least)
    finally:
        process.close()
    return found


def run_shop(line: Line, shop: Shop, deadline: float, workers: int, seed: int) -> Scheduled:
    """Solve one job shop, in the solver process."""
    from ortools.sat.python import cp_model

    posted = cp_model.CpModel()
    end = posted.new_int_var(shop.least, shop.most, "end")
    machines: dict[int, list[cp_model.IntervalVar]] = {}
    chosen, starts = list[list[cp_model.IntVar]](), list[dict[tuple[int, int], cp_model.IntVar]]()
    for job in range(shop.jobs):
        ways, own = post_job(posted, shop, job, end, machines)
        chosen.append(ways)
        starts.append(own)
    for intervals in machines.values():
        posted.add_no_overlap(intervals)
    places = [cp_model.LinearExpr.weighted_sum(ways, list(range(len(ways)))) for ways in chosen]
    for first, second in pairwise(places):  # jobs are identical: order them by their routes to break the symmetry
        posted.add(first <= second)
    posted.minimize(end)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = workers
    solver.parameters.random_seed = seed
    solver.parameters.catch_sigint_signal = False
    solver.parameters.max_time_in_seconds = left_until(deadline)
    line.stop = solver.stop_search
    with named(f"cpsat {version('ortools')}"):
        status = solver.status_name(solver.solve(posted))
    if status not in {"OPTIMAL", "FEASIBLE"}:
        return Scheduled(shop.most if status == "INFEASIBLE" else shop.least)
    taken = [next(index for index, literal in enumerate(ways) if solver.value(literal)) for ways in chosen]
    began = tuple(tuple(solver.value(own[visit]) for visit in visits_of(shop.ways[way])) for way, own in zip(taken, starts, strict=True))
    return Scheduled(max(solver.response_proto.inner_objective_lower_bound, shop.least), tuple(taken), began)


def visits_of(way: Way) -> list[tuple[int, int]]:
    """The machines of a route, each with the number of earlier visits to it."""
    machines = [machine for machine, _ in way]
    return [(machine, machines[:index].count(machine)) for index, machine in enumerate(machines)]


def post_job(
    posted: "cp_model.CpModel", shop: Shop, job: int, end: "cp_model.IntVar", machines: "dict[int, list[cp_model.IntervalVar]]"
) -> "tuple[list[cp_model.IntVar], dict[tuple[int, int], cp_model.IntVar]]":
    """Add a job: exactly one of its routes, and an interval for each visit, with precedences along the chosen route."""
    from ortools.sat.python import cp_model

    ways = [posted.new_bool_var(f"w{job}_{index}") for index in range(len(shop.ways))]
    posted.add_exactly_one(ways)
    starts, ends = dict[tuple[int, int], cp_model.IntVar](), dict[tuple[int, int], cp_model.IntVar]()
    times = [dict(zip(visits_of(way), (time for _, time in way), strict=True)) for way in shop.ways]
    for visit in visits_of(shop.ways[0]):
        own = [time[visit] for time in times]
        name = f"{job}_{visit[0]}_{visit[1]}"
        length = posted.new_int_var_from_domain(cp_model.Domain.from_values(own), f"d{name}")
        posted.add(length == cp_model.LinearExpr.weighted_sum(ways, own))
        starts[visit], ends[visit] = (posted.new_int_var(0, shop.most, f"{mark}{name}") for mark in "se")
        machines.setdefault(visit[0], []).append(posted.new_interval_var(starts[visit], length, ends[visit], f"i{name}"))
        posted.add(ends[visit] <= end)
    for index, way in enumerate(shop.ways):
        for before, after in pairwise(visits_of(way)):
            posted.add(ends[before] <= starts[after]).only_enforce_if(ways[index])
    return ways, starts
