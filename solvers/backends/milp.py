"""Mixed-integer linear solvers, through PuLP: HiGHS first, CBC as a foil, Gurobi and SCIP where they are installed.

They work in floating point, with tolerances. What they say is therefore read with care:

    values      rounded to the nearest integers; `judged` then holds them against the model itself, not against its linear form
    bound       HiGHS keeps one that PuLP does not pass on, so it is read from HiGHS. A millionth of it is given away before it is rounded
                up to an integer. Only where HiGHS calls the model solved, at a gap of zero, and the value has eight digits at most, is
                the value the bound as well: beyond, half a unit is less than what its tolerances leave of a sum.
    status      PuLP calls a solve "Optimal" that a time limit ended, with or without a solution. Only HiGHS' own status counts, and
                `sol_status` for the other solvers.
    CBC         prints about eight digits and has been wrong on costs that need more. What it finds is held against the model like all
                else; what it proves is not believed, so that FEASIBLE is the most it is given credit for, except where the ranges of the
                variables alone show that nothing can be better.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from math import ceil, isfinite
from typing import Any

from crossopt.formulation.linearize import lifted, linearize
from crossopt.formulation.model import EXACT, Model, Values, Variable
from crossopt.instances.errors import SolverError
from crossopt.solvers.backends.answer import Answer, Course, Reply, Spend, Stopped, attended, hinted, judged
from crossopt.solvers.backends.rows import exact, printable, rows_of

GIVEN_AWAY = 1e-6
"""The share of a bound in floating point that is not believed."""

MOST_DIGITS = 10**8
"""Values below this are proved to the unit where HiGHS calls the model solved."""

Foreign = Any
"""A thing of PuLP or HiGHS, which state no types."""
Columns = Mapping[Variable, Foreign]
"""The PuLP variable of each variable."""


@dataclass(frozen=True, slots=True)
class Program:
    """A solver that PuLP drives as it stands."""

    name: str
    make: Callable[[Spend, float | None], Foreign]
    package: str | None
    """Where to get it; None for the one that comes with PuLP."""


@dataclass(frozen=True, slots=True)
class Fractional:
    """The best solution where integers may be fractions: its objective, None where there is none, and the figure of each variable."""

    value: float | None
    figures: Mapping[Variable, float]


Relaxation = Callable[[Mapping[Variable, int], float], Fractional]
"""Solves with these variables fixed, in so many seconds."""


def highs(model: Model, spend: Spend) -> Answer:
    """The best solution and the best bound that HiGHS finds."""
    course, linear = Course(model), linearize(model)
    problem, columns = problem_of(linear)
    hint = hinted(model, spend)
    start = lifted(model, hint) if len(hint) == len(model.variables) else hint
    work = partial(_run_highs, problem, columns, start, spend, course)
    name = f"highs {version('highspy')}"
    reply = attended(work, _no_stop, course, spend.watch, name)
    return judged(model, _of_first(model, reply), course, name, spend.hint)


def cbc(model: Model, spend: Spend) -> Answer:
    """The best solution that CBC finds, without proof."""
    return _driven(Program("cbc", _make_cbc, None), model, spend)


def gurobi(model: Model, spend: Spend) -> Answer:
    """The best solution that Gurobi finds, if it is here; its bound only where it says that the model is solved."""
    return _driven(Program("gurobi", _make_gurobi, "gurobipy"), model, spend)


def scip(model: Model, spend: Spend) -> Answer:
    """The best solution that SCIP finds, if it is here; its bound only where it says that the model is solved."""
    return _driven(Program("scip", _make_scip, "pyscipopt"), model, spend)


def problem_of(linear: Model) -> tuple[Foreign, Columns]:
    """The PuLP problem of a model in linear rows, and its variables there.

    Names are short and safe in every file format. The constant is a column that is fixed at 1, since PuLP's files drop constants; so is an
    objective without terms, since HiGHS calls a model without columns empty, and looks at none of its rows.
    """
    import pulp

    problem = pulp.LpProblem("crossopt", pulp.LpMinimize if linear.minimise else pulp.LpMaximize)
    columns = {v: problem.add_variable(f"x{place}", v.low, v.high, pulp.LpInteger) for place, v in enumerate(linear.variables)}
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
    """The best objective where integers may be fractions, in floating point and so no bound as it stands; None without one."""
    try:
        return relaxation(model)({}, seconds).value
    except (TimeoutError, SolverError):
        return None


def relaxation(model: Model) -> Relaxation:
    """The model with fractions for integers, for HiGHS to solve with some variables fixed; a TimeoutError where time is up."""
    import pulp
    from highspy import HighsModelStatus as Ended

    problem, columns = problem_of(linearize(model))
    for column in problem.variables():
        column.cat = pulp.LpContinuous

    def solved(fixed: Mapping[Variable, int], seconds: float) -> Fractional:
        for variable, column in columns.items():
            column.lowBound, column.upBound = (fixed[variable],) * 2 if variable in fixed else (variable.low, variable.high)
        problem.solve(pulp.HiGHS(msg=False, threads=1, timeLimit=seconds if isfinite(seconds) else None))
        if problem.sol_status == pulp.LpSolutionOptimal:
            found = {variable: columns[variable].varValue for variable in model.variables}
            figures = {variable: float(variable.low if figure is None else figure) for variable, figure in found.items()}
            return Fractional(float(pulp.value(problem.objective)), figures)
        status = problem.solverModel.getModelStatus()
        if status in {Ended.kInfeasible, Ended.kUnboundedOrInfeasible}:  # ranges are finite, so that nothing is unbounded
            return Fractional(None, {})
        if status == Ended.kTimeLimit:
            raise TimeoutError
        raise SolverError(f"highs gave up on a relaxation: {problem.solverModel.modelStatusToString(status)}")

    return solved


def _run_highs(problem: Foreign, columns: Columns, start: Values, spend: Spend, course: Course) -> Reply:
    """One solve, in the steps of PuLP's own `solve`, with a start between them and the end read from HiGHS."""
    import pulp
    from highspy import cb

    engine = pulp.HiGHS(
        msg=False,
        gapRel=spend.gap,
        threads=spend.workers,
        timeLimit=_left(spend, course),
        random_seed=spend.seed,
        callbackTuple=(partial(_listen, course), None),
        callbacksToActivate=[cb.HighsCallbackType.kCallbackMipInterrupt, cb.HighsCallbackType.kCallbackMipImprovingSolution],
    )
    engine.createAndConfigureSolver(problem)
    engine.buildSolverModel(problem)
    places = {column.name: place for place, column in enumerate(problem.variables())}
    known = [(places[columns[variable].name], value) for variable, value in start.items() if columns[variable].name in places]
    if known:
        problem.solverModel.setSolution(len(known), [place for place, _ in known], [float(value) for _, value in known])
    engine.callSolver(problem)
    figures = {variable: places.get(column.name) for variable, column in columns.items()}
    return _reply_of_highs(problem.solverModel, figures, spend, course)


def _reply_of_highs(solver: Foreign, places: Mapping[Variable, int | None], spend: Spend, course: Course) -> Reply:
    from highspy import HighsModelStatus as Ended
    from highspy import SolutionStatus

    status, info, sign = solver.getModelStatus(), solver.getInfo(), course.model.sign
    if status in {Ended.kInfeasible, Ended.kUnboundedOrInfeasible}:
        return Reply(infeasible=True, values=None, value=None, bound=None, stopped="complete")
    reasons: dict[Foreign, Stopped] = {
        Ended.kOptimal: "gap",
        Ended.kTimeLimit: "time limit",
        Ended.kInterrupt: "interrupted",
    }
    if status not in reasons:
        raise SolverError(f"highs gave up: {solver.modelStatusToString(status)}")
    values, value = None, None
    if info.primal_solution_status == int(SolutionStatus.kSolutionStatusFeasible):
        figures = solver.getSolution().col_value
        values = {variable: variable.low if place is None else figures[place] for variable, place in places.items()}
        value = sign * info.objective_function_value
    solved = status == Ended.kOptimal and spend.gap == 0 and value is not None and abs(value) < MOST_DIGITS
    bound = round(value) if solved and value is not None else sound(sign, info.mip_dual_bound)
    return Reply(infeasible=False, values=values, value=value, bound=bound, stopped=reasons[status])


def _listen(course: Course, kind: int, message: str, seen: Foreign, reply: Foreign, nothing: None) -> None:
    """What HiGHS calls again and again: notes what is known, and hands it the wish to stop."""
    del kind, message, nothing
    sign = course.model.sign
    value = round(sign * seen.mip_primal_bound) if abs(seen.mip_primal_bound) < EXACT else None
    course.note(value, sound(sign, seen.mip_dual_bound))
    reply.user_interrupt = course.stopping


def sound(sign: int, figure: float) -> int | None:
    """The integer bound that a bound in floating point, of the minimising form, is good for."""
    return sign * ceil(figure - GIVEN_AWAY * max(1.0, abs(figure))) if abs(figure) < EXACT else None


def _driven(program: Program, model: Model, spend: Spend) -> Answer:
    """What a solver finds that PuLP drives from end to end, and that cannot be asked to stop but by its time limit."""
    course, linear = Course(model), linearize(model)
    hinted(model, spend)
    engine = program.make(spend, _left(spend, course))
    if not engine.available():
        get = f"pip install {program.package}" if program.package else "the one that comes with PuLP does not run on this machine"
        raise SolverError(f"{program.name} is not here: {get}, or take cpsat or highs, which always are")
    problem, columns = problem_of(linear)
    printable(linear)
    from_where = f"{program.package} {version(program.package)}" if program.package else f"of PuLP {version('pulp')}"
    name = f"{program.name} ({from_where})"
    reply = attended(partial(_run_driven, program, engine, problem, columns, spend, course), _no_stop, course, spend.watch, name)
    return judged(model, _of_first(model, reply), course, name, spend.hint)


def _run_driven(program: Program, engine: Foreign, problem: Foreign, columns: Columns, spend: Spend, course: Course) -> Reply:
    import pulp

    try:
        problem.solve(engine)
    except pulp.PulpSolverError as error:
        raise SolverError(f"{program.name} failed: {error}") from error
    believed = program.package is not None
    if believed and problem.status == pulp.LpStatusInfeasible:
        return Reply(infeasible=True, values=None, value=None, bound=None, stopped="complete")
    if problem.sol_status not in {pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible}:
        return Reply(infeasible=False, values=None, value=None, bound=None, stopped=_why(spend, course))
    values = {variable: variable.low if column.varValue is None else column.varValue for variable, column in columns.items()}
    value = pulp.value(problem.objective)
    solved = believed and problem.sol_status == pulp.LpSolutionOptimal and spend.gap == 0
    return Reply(infeasible=False, values=values, value=value, bound=round(value) if solved else None, stopped=_why(spend, course))


def _make_cbc(spend: Spend, seconds: float | None) -> Foreign:
    import pulp
    from pulp.apis.coin_api import pulp_cbc_path

    seed = [f"randomSeed {spend.seed}", f"randomCbcSeed {spend.seed}"]
    return pulp.COIN_CMD(path=pulp_cbc_path, msg=False, gapRel=spend.gap, threads=spend.workers, timeLimit=seconds, options=seed)


def _make_gurobi(spend: Spend, seconds: float | None) -> Foreign:
    import pulp

    return pulp.GUROBI(msg=False, manageEnv=True, gapRel=spend.gap, timeLimit=seconds, Threads=spend.workers, Seed=spend.seed)


def _make_scip(spend: Spend, seconds: float | None) -> Foreign:
    import pulp

    return pulp.SCIP_PY(msg=False, gapRel=spend.gap, timeLimit=seconds, threads=spend.workers)


def _left(spend: Spend, course: Course) -> float | None:
    """The seconds that remain; None where there is no limit."""
    return max(spend.seconds - course.seconds, 0.0) if isfinite(spend.seconds) else None


def _why(spend: Spend, course: Course) -> Stopped:
    if course.stopping:
        return "interrupted"
    if course.seconds >= spend.seconds:
        return "time limit"
    return "gap" if spend.gap else "no proof"


def _of_first(model: Model, reply: Reply) -> Reply:
    """The reply about the model from one about its linear form."""
    return reply if reply.values is None else replace(reply, values={variable: reply.values[variable] for variable in model.variables})


def _no_stop() -> None:
    """For solvers that look at `course.stopping` themselves, or that cannot be stopped."""
