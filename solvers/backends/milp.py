"""Mixed-integer linear solvers through PuLP: HiGHS, CBC for comparison, and Gurobi and SCIP if they are installed.

They work in floating point with tolerances, so their results are verified:

    values      are rounded to the nearest integers; `judged` checks them against the model itself, not against its linearization
    bound       is read from HiGHS, as PuLP does not expose it. It is weakened by one part in a million and then rounded up to an integer.
                The value is also the bound only if HiGHS reports optimality at a gap of zero and the value has at most eight digits:
                with more digits, half a unit is below the solver's tolerances on a sum.
    status      PuLP reports "Optimal" after a time limit, with or without a solution. Only HiGHS' own status counts, and `sol_status` of
                the other solvers.
    CBC         prints about eight digits, and has been wrong on costs with more. Its solutions are verified like all others, its bounds are
                ignored, so that its answers are FEASIBLE, except if the ranges of the variables alone prove optimality.

Linear rows are written as files and floating point need them: one-sided, under short names, with exactly representable numbers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from math import ceil, isfinite
from time import monotonic
from typing import Any
from weakref import finalize

from crossopt.formulation.model import EXACT, ExactlyOne, Linear, Model, Terms, Values, Variable, lifted, linearize, reach
from crossopt.instances.errors import INVALID, FailedError, SolverError
from crossopt.solvers.backends.answer import MOST, Allowed, Answer, RawReply, SolverBackend, Spend, Stopped, answered
from crossopt.solvers.backends.answer import allowed as allowed_for
from crossopt.solvers.backends.cpsat import cpsat_backend
from crossopt.solvers.backends.wall import KEYS, LateError, Line, SolverProcess, left_until, named, version

DIGITS = 10**12
"""PuLP writes files with twelve digits; larger numbers would lose their last digits."""
Row = tuple[str, Terms, int, int]
"""Name, terms, PuLP's sense (-1 for <=, 0 for ==, 1 for >=) and right-hand side."""


def rows_of(linear: Model) -> Iterator[Row]:
    """One-sided and equality rows, with short names: `r7` for the eighth row of the model, `r7_low` and `r7_high` if it is two-sided."""
    for index, row in enumerate(linear.constraints):
        name = f"r{index}"
        if isinstance(row, ExactlyOne):
            yield name, tuple((1, variable) for variable in row.variables), 0, 1
            continue
        if not isinstance(row, Linear) or row.given is not None:
            raise TypeError(f"{row.name}: not a plain linear row; `linearize` makes it one")
        exact(row.name, row.terms)
        if row.low is not None and row.low == row.high:
            yield name, row.terms, 0, row.low
            continue
        if row.low is not None:
            yield f"{name}_low", row.terms, 1, row.low
        if row.high is not None:
            yield f"{name}_high", row.terms, -1, row.high


def printable(linear: Model) -> None:
    """A ValueError for a model with numbers of more digits than PuLP writes to files."""
    limits = [limit for row in linear.constraints if isinstance(row, Linear) for limit in (row.low, row.high) if limit is not None]
    factors = [c for row in linear.constraints if isinstance(row, Linear) for c, _ in row.terms] + [c for c, _ in linear.objective]
    ranges = [end for variable in linear.variables for end in (variable.low, variable.high)]
    largest = max(map(abs, (*limits, *factors, *ranges, linear.constant)))
    if largest > DIGITS:
        raise ValueError(f"the number {largest} has more digits than the file keeps; use a coarser quantum")


def exact(name: str, terms: Terms) -> None:
    """A ValueError for a sum that floating point cannot represent exactly."""
    least, most = reach(terms)
    if max(-least, most) > EXACT:
        raise ValueError(f"{name}: its terms may add up to more than 2**53, too much for floating point; use cpsat or a coarser quantum")


GIVEN_AWAY = 1e-6
"""The relative amount by which a floating-point bound is weakened."""

MOST_DIGITS = 10**8
"""Values below this are exact to the unit if HiGHS reports optimality."""

Foreign = Any
"""An object of PuLP or HiGHS, which have no type annotations."""
Columns = Mapping[Variable, Foreign]
"""The PuLP variable of each variable."""


@dataclass(frozen=True, slots=True)
class Program:
    """A solver that PuLP runs."""

    make: Callable[[Allowed, float | None], Foreign]
    package: str | None
    """The Python package; None for the solver that PuLP includes."""


@dataclass(frozen=True, slots=True)
class Fractional:
    """Solution of the linear relaxation: its objective, None if it is infeasible, and the value of each variable."""

    value: float | None
    figures: Mapping[Variable, float]


Relaxation = Callable[[Mapping[Variable, int], float], Fractional]
"""Solves the relaxation with these variables fixed, within a time limit in seconds."""


def highs(model: Model, spend: Spend) -> Answer:
    """The best solution and the best bound that HiGHS finds."""
    return answered(model, spend, highs_backend(), cpsat_backend)


def highs_backend() -> SolverBackend:
    """The backend that runs HiGHS in a child process."""
    return SolverBackend("highs", _highs_name(), run_highs)


def cbc(model: Model, spend: Spend) -> Answer:
    """The best solution that CBC finds, without proof."""
    return _driven("cbc", model, spend)


def gurobi(model: Model, spend: Spend) -> Answer:
    """The best solution that Gurobi finds, if it is installed; its bound only if it reports optimality."""
    return _driven("gurobi", model, spend)


def scip(model: Model, spend: Spend) -> Answer:
    """The best solution that SCIP finds, if it is installed; its bound only if it reports optimality."""
    return _driven("scip", model, spend)


def problem_of(linear: Model) -> tuple[Foreign, Columns]:
    """The PuLP problem of a linear model, and its PuLP variables.

    Names are short and valid in every file format. The constant is a column fixed at 1, as PuLP's files drop constants; so is an objective
    without terms, as HiGHS reports a model without columns as empty and ignores its rows.
    """
    import pulp

    problem = pulp.LpProblem("crossopt", pulp.LpMinimize if linear.minimise else pulp.LpMaximize)
    columns = {v: problem.add_variable(f"x{index}", v.low, v.high, pulp.LpInteger) for index, v in enumerate(linear.variables)}
    cost = [(columns[variable], coefficient) for coefficient, variable in linear.objective]
    if linear.constant or not cost:
        cost.append((problem.add_variable("one", 1, 1, pulp.LpInteger), linear.constant))
    problem += pulp.LpAffineExpression(cost)
    exact("objective", linear.objective)
    for name, terms, sense, limit in rows_of(linear):
        sum_of_terms = pulp.LpAffineExpression([(columns[variable], coefficient) for coefficient, variable in terms])
        problem += pulp.LpConstraint(sum_of_terms, sense, name, limit)
    return problem, columns


def relaxed(model: Model, seconds: float) -> float | None:
    """The optimum of the linear relaxation, in floating point and so not a safe bound; None if there is none."""
    try:
        return relaxation(model)({}, seconds).value
    except (TimeoutError, SolverError):
        return None


def relaxation(model: Model) -> Relaxation:
    """The linear relaxation in a HiGHS process, to be solved with some variables fixed; a TimeoutError at the time limit."""
    process, key = SolverProcess("highs", _highs_name()), next(KEYS)
    places = {variable: at for at, variable in enumerate(model.variables)}
    process.ask(_store_relaxation, key, model, until=monotonic() + MOST)

    def solved(fixed: Mapping[Variable, int], seconds: float) -> Fractional:
        at_values, deadline = {places[variable]: value for variable, value in fixed.items()}, monotonic() + allowed_for(seconds, model)
        try:
            value, figures = process.ask(_relax, key, at_values, deadline, until=deadline)
        except LateError as error:
            raise TimeoutError from error
        if value is not None and len(figures) != len(places):
            raise SolverError(f"{process.name} {INVALID}: {len(figures)} values for {len(places)} variables")
        return Fractional(value, dict(zip(model.variables, figures, strict=False)))

    finalize(solved, process.forget, key)
    return solved


def _store_relaxation(line: Line, key: int, model: Model) -> None:
    """In the solver process: store a model for relaxations."""
    import pulp

    problem, columns = problem_of(linearize(model))
    for column in problem.variables():
        column.cat = pulp.LpContinuous
    line.cache[key] = (model, problem, columns)


def _relax(line: Line, key: int, fixed: Mapping[int, int], deadline: float) -> tuple[float | None, list[float]]:
    """In the solver process: value and variables of a relaxation with some variables fixed."""
    import pulp
    from highspy import HighsModelStatus as Ended

    model, problem, columns = line.cache[key]
    values = {model.variables[index]: value for index, value in fixed.items()}
    for variable, column in columns.items():
        column.lowBound, column.upBound = (values[variable],) * 2 if variable in values else (variable.low, variable.high)
    with named(_highs_name()):
        problem.solve(pulp.HiGHS(msg=False, threads=1, timeLimit=left_until(deadline) if isfinite(deadline) else None))
    if problem.sol_status == pulp.LpSolutionOptimal:
        found = [columns[variable].varValue for variable in model.variables]
        figures = [float(variable.low if figure is None else figure) for variable, figure in zip(model.variables, found, strict=True)]
        return float(pulp.value(problem.objective)), figures
    status = problem.solverModel.getModelStatus()
    if status in {Ended.kInfeasible, Ended.kUnboundedOrInfeasible}:  # ranges are finite, so the model is not unbounded
        return None, []
    if status == Ended.kTimeLimit:
        raise TimeoutError
    raise FailedError(f"highs gave up on a relaxation: {problem.solverModel.modelStatusToString(status)}")


def run_highs(line: Line, model: Model, allowed: Allowed) -> RawReply:
    """One solve, in the solver process."""
    problem, columns = problem_of(linearize(model))
    hint = {model.variables[index]: value for index, value in allowed.hint}
    start = lifted(model, hint) if len(hint) == len(model.variables) else hint
    with named(_highs_name()):
        return _run_highs(line, model, problem, columns, start, allowed)


def _run_highs(line: Line, model: Model, problem: Foreign, columns: Columns, start: Values, allowed: Allowed) -> RawReply:
    """The steps of PuLP's own `solve`, with a MIP start, and with the result read from HiGHS."""
    import pulp
    from highspy import HighsModelStatus, cb

    places = {column.name: index for index, column in enumerate(problem.variables())}
    known = [(places[columns[variable].name], value) for variable, value in start.items() if columns[variable].name in places]
    figures = [places.get(columns[variable].name) for variable in model.variables]
    engine = pulp.HiGHS(
        msg=False,
        gapRel=allowed.gap,
        threads=allowed.workers,
        timeLimit=left_until(allowed.deadline) if isfinite(allowed.deadline) else None,
        random_seed=allowed.seed,
        callbackTuple=(partial(_listen, line, model, figures, cb.HighsCallbackType.kCallbackMipImprovingSolution), None),
        callbacksToActivate=[cb.HighsCallbackType.kCallbackMipInterrupt, cb.HighsCallbackType.kCallbackMipImprovingSolution],
    )
    engine.createAndConfigureSolver(problem)
    engine.buildSolverModel(problem)
    if known:
        problem.solverModel.setSolution(len(known), [index for index, _ in known], [float(value) for _, value in known])
    engine.callSolver(problem)
    if problem.solverModel.getModelStatus() == HighsModelStatus.kSolveError:  # presolve of 1.12 keeps rows that its answer breaks
        problem.solverModel.setOptionValue("presolve", "off")
        problem.solverModel.clearSolver()
        engine.callSolver(problem)
    return _reply_of_highs(problem.solverModel, figures, model, allowed.gap)


def _reply_of_highs(solver: Foreign, places: list[int | None], model: Model, gap: float) -> RawReply:
    from highspy import HighsModelStatus as Ended
    from highspy import SolutionStatus

    status, info, sign = solver.getModelStatus(), solver.getInfo(), model.sign
    if status in {Ended.kInfeasible, Ended.kUnboundedOrInfeasible}:
        return True, None, None, None, "complete"
    reasons: dict[Foreign, Stopped] = {Ended.kOptimal: "gap", Ended.kTimeLimit: "time limit", Ended.kInterrupt: "interrupted"}
    if status not in reasons:
        raise FailedError(f"highs gave up: {solver.modelStatusToString(status)}")
    values, value = None, None
    if info.primal_solution_status == int(SolutionStatus.kSolutionStatusFeasible):
        values = _in_order(model, places, solver.getSolution().col_value)
        value = sign * info.objective_function_value
    solved = status == Ended.kOptimal and gap == 0 and value is not None and abs(value) < MOST_DIGITS
    bound = round(value) if solved and value is not None else sound(sign, info.mip_dual_bound)
    return False, values, value, bound, reasons[status]


def _in_order(model: Model, places: list[int | None], figures: Sequence[float]) -> list[float]:
    """The values of the model's variables; a variable in no row and no cost has its lower bound."""
    return [float(variable.low if index is None else figures[index]) for variable, index in zip(model.variables, places, strict=True)]


def _listen(
    line: Line,
    model: Model,
    places: list[int | None],
    improving: Foreign,
    kind: Foreign,
    message: str,
    seen: Foreign,
    reply: Foreign,
    nothing: None,
) -> None:
    """The callback of HiGHS: reports progress, and passes on requests to stop."""
    del message, nothing
    sign = model.sign
    value = round(sign * seen.mip_primal_bound) if abs(seen.mip_primal_bound) < EXACT else None
    better = int(kind) == int(improving)
    line.tell((value, sound(sign, seen.mip_dual_bound), _in_order(model, places, seen.mip_solution) if better else None))
    reply.user_interrupt = line.stopping


def sound(sign: int, figure: float) -> int | None:
    """The safe integer bound of a floating-point bound of the minimisation form."""
    return sign * ceil(figure - GIVEN_AWAY * max(1.0, abs(figure))) if abs(figure) < EXACT else None


def _driven(program: str, model: Model, spend: Spend) -> Answer:
    """The answer of a solver that PuLP runs, which stops only at its time limit, or when its process is terminated."""
    package = PROGRAMS[program].package
    if package is not None and find_spec(package) is None:
        raise SolverError(f"{program} is not installed: pip install {package}, or use cpsat or highs, which are always available")
    from_where = f"{package} {version(package)}" if package else f"of PuLP {version('pulp')}"
    name = f"{program} ({from_where})"
    return answered(model, spend, SolverBackend(program, name, _RUNS[program]), cpsat_backend)


def run_driven(line: Line, model: Model, allowed: Allowed, program: str) -> RawReply:
    """One solve, in the solver process."""
    import pulp

    driver, linear = PROGRAMS[program], linearize(model)
    seconds = left_until(allowed.deadline) if isfinite(allowed.deadline) else None
    engine = driver.make(allowed, seconds)
    if not engine.available():
        get = f"pip install {driver.package}" if driver.package else "the one that comes with PuLP does not run on this machine"
        raise SolverError(f"{program} is not available: {get}, or use cpsat or highs, which are always available")
    problem, columns = problem_of(linear)
    printable(linear)
    try:
        problem.solve(engine)
    except pulp.PulpSolverError as error:
        raise FailedError(f"{program} failed: {error}") from error
    believed, stopped = driver.package is not None, _why(line, allowed)
    if believed and problem.status == pulp.LpStatusInfeasible:
        return True, None, None, None, "complete"
    if problem.sol_status not in {pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible}:
        return False, None, None, None, stopped
    found = [columns[variable].varValue for variable in model.variables]
    figures = [variable.low if figure is None else figure for variable, figure in zip(model.variables, found, strict=True)]
    value = pulp.value(problem.objective)
    solved = believed and problem.sol_status == pulp.LpSolutionOptimal and allowed.gap == 0
    return False, figures, value, round(value) if solved else None, stopped


def _make_cbc(spend: Allowed, seconds: float | None) -> Foreign:
    import pulp
    from pulp.apis.coin_api import pulp_cbc_path

    seed = [f"randomSeed {spend.seed}", f"randomCbcSeed {spend.seed}"]
    return pulp.COIN_CMD(path=pulp_cbc_path, msg=False, gapRel=spend.gap, threads=spend.workers, timeLimit=seconds, options=seed)


def _make_gurobi(spend: Allowed, seconds: float | None) -> Foreign:
    import pulp

    return pulp.GUROBI(msg=False, manageEnv=True, gapRel=spend.gap, timeLimit=seconds, Threads=spend.workers, Seed=spend.seed)


def _make_scip(spend: Allowed, seconds: float | None) -> Foreign:
    import pulp

    return pulp.SCIP_PY(msg=False, gapRel=spend.gap, timeLimit=seconds, threads=spend.workers)


def _why(line: Line, allowed: Allowed) -> Stopped:
    if line.stopping:
        return "interrupted"
    if monotonic() >= allowed.deadline:
        return "time limit"
    return "gap" if allowed.gap else "no proof"


def _highs_name() -> str:
    return f"highs {version('highspy')}"


PROGRAMS = {"cbc": Program(_make_cbc, None), "gurobi": Program(_make_gurobi, "gurobipy"), "scip": Program(_make_scip, "pyscipopt")}
"""Solvers that PuLP runs, by their names."""
_RUNS = {name: partial(run_driven, program=name) for name in PROGRAMS}
