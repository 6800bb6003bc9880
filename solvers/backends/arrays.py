"""HiGHS on models in sparse arrays, for models too large to be built variable by variable. Rows can be added between solves.

Solutions are proposals that the caller verifies. A floating-point bound is weakened by one part in a million, even if HiGHS reports
optimality: at objectives near 1e7 it has reported a model as optimal whose optimum is lower. The bound in callbacks of improved solutions
is ignored: HiGHS 1.12 has reported one above the optimum there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import isfinite, isinf
from time import monotonic
from typing import Any, Literal
from weakref import finalize

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.formulation.model import Program, Rows
from crossopt.instances.errors import INVALID, FailedError, SolverError
from crossopt.solvers.backends.answer import MOST, late_text, patience
from crossopt.solvers.backends.milp import GIVEN_AWAY
from crossopt.solvers.backends.wall import KEYS, LateError, Line, SolverProcess, left_until, named, version

Foreign = Any
Ending = Literal["solved", "infeasible", "stopped"]


@dataclass(frozen=True, slots=True, eq=False)
class Relaxed:
    """Result of the linear relaxation; values of columns and duals of rows only if it was solved to optimality."""

    ending: Ending
    value: float
    columns: Array
    duals: Array


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """Result of the integer model, in its unit: a dual bound, and the best solution, if there is one."""

    ending: Ending
    bound: float
    columns: Array | None


@dataclass(slots=True)
class SolveMonitor:
    """Observes a running solve: `stop` is polled, and can read the last solution here."""

    stop: Callable[[], bool]
    columns: Array | None = None
    """The incumbent."""
    stopping: bool = False


class Session:
    """A model loaded in a HiGHS process; `late` is a remark if the solver exceeded its default time limit."""

    __slots__ = ("__weakref__", "_columns", "_entries", "_key", "_place", "_rows", "late", "name")

    def __init__(self, program: Program, workers: int, seed: int) -> None:
        self.name, self.late = f"highs {version('highspy')}", ""
        self._columns, self._rows, self._entries = len(program.costs), len(program.rows.lows), len(program.rows.columns)
        self._place, self._key = SolverProcess("highs", self.name), next(KEYS)
        self._place.ask(_hold, self._key, program, workers, seed, until=monotonic() + MOST)
        finalize(self, self._place.forget, self._key)

    def add(self, rows: Rows, price: float | None = None) -> None:
        """Append rows; with a price, each row has a slack of that cost per unit above its upper side."""
        self._place.ask(_add, self._key, rows, price, until=monotonic() + MOST)
        self._rows, self._entries = self._rows + len(rows.lows), self._entries + len(rows.columns)
        self._columns += len(rows.lows) if price is not None else 0

    def relaxed(self, seconds: float, look: SolveMonitor) -> Relaxed:
        """Solve the linear relaxation."""
        nothing = np.zeros(0)
        try:
            ending, value, columns, duals = self._ask(_relax, seconds, look)
        except LateError:
            return Relaxed("stopped", 0.0, nothing, nothing)
        if ending == "solved":
            self._hold_to(columns, self._columns, "columns")
            self._hold_to(duals, self._rows, "rows")
        return Relaxed(ending, value, columns, duals)

    def solved(self, seconds: float, gap: tuple[float, float], look: SolveMonitor) -> Solved:
        """Solve the integer model to an absolute and a relative gap."""
        try:
            ending, bound, columns = self._ask(_solve, seconds, look, gap)
        except LateError:
            return Solved("stopped", -np.inf, None)
        if columns is not None:
            self._hold_to(columns, self._columns, "columns")
        return Solved(ending, np.inf if ending == "infeasible" else sound(bound), columns)

    def _ask(self, work: Callable[..., Foreign], seconds: float, look: SolveMonitor, *more: object) -> Foreign:
        endless = isinf(seconds)
        seconds = self._patience if endless else seconds
        deadline = monotonic() + seconds

        def hear(columns: Array) -> None:
            self._hold_to(columns, self._columns, "columns")
            look.columns = columns

        def stop() -> bool:
            look.stopping = look.stopping or look.stop()
            return look.stopping

        ending = "stopped"
        try:
            reply = self._place.ask(work, self._key, deadline, *more, until=deadline, hear=hear, stop=stop)
            ending = reply[0]
        finally:
            self.late = late_text(self.name, seconds) if ending == "stopped" and endless and not look.stopping else ""
        return reply

    @property
    def _patience(self) -> float:
        """Default time limit of a solve in seconds."""
        return patience(self._rows, self._entries)

    def _hold_to(self, figures: Array, number: int, what: str) -> None:
        if figures.shape != (number,) or not np.isfinite(figures).all():
            raise SolverError(f"{self.name} {INVALID}: values of shape {figures.shape} for {number} {what}, or values that are not finite")


@dataclass(slots=True)
class _StoredModel:
    """In the solver process: a HiGHS model, and which of its columns are integers."""

    solver: Foreign
    integral: Mask
    name: str


def _hold(line: Line, key: int, program: Program, workers: int, seed: int) -> None:
    import highspy

    loaded = _StoredModel(highspy.Highs(), program.integral, f"highs {version('highspy')}")
    for option, value in (("output_flag", False), ("threads", workers), ("random_seed", seed)):
        loaded.solver.setOptionValue(option, value)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(program.costs), len(program.rows.lows)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = program.costs, np.zeros(len(program.costs)), program.highs
    lp.row_lower_, lp.row_upper_ = program.rows.lows, program.rows.highs
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = _short(program.rows.starts), _short(program.rows.columns)
    lp.a_matrix_.value_ = program.rows.factors
    if loaded.solver.passModel(lp) == highspy.HighsStatus.kError:
        raise SolverError(f"{loaded.name} rejects the model")
    line.cache[key] = loaded


def _add(line: Line, key: int, rows: Rows, price: float | None) -> None:
    solver = line.cache[key].solver
    first = solver.getNumRow()
    starts, columns = _short(rows.starts[:-1]), _short(rows.columns)
    solver.addRows(len(rows.lows), rows.lows, rows.highs, len(columns), starts, columns, rows.factors)
    for row in range(len(rows.lows) if price is not None else 0):
        solver.addCol(price, 0.0, np.inf, 1, np.array([first + row], np.int32), np.array([-1.0]))


def _relax(line: Line, key: int, deadline: float) -> tuple[Ending, float, Array, Array]:
    import highspy

    loaded = line.cache[key]
    _integral(loaded, highspy.HighsVarType.kContinuous)
    ending = _run(line, loaded, deadline)
    solution, nothing = loaded.solver.getSolution(), np.zeros(0)
    if ending != "solved":
        return ending, 0.0, nothing, nothing
    value = float(loaded.solver.getInfo().objective_function_value)
    return ending, value, np.array(solution.col_value), np.array(solution.row_dual)


def _solve(line: Line, key: int, deadline: float, gap: tuple[float, float]) -> tuple[Ending, float, Array | None]:
    import highspy

    loaded = line.cache[key]
    _integral(loaded, highspy.HighsVarType.kInteger)
    loaded.solver.setOptionValue("mip_abs_gap", gap[0])
    loaded.solver.setOptionValue("mip_rel_gap", gap[1])
    ending = _run(line, loaded, deadline)
    info = loaded.solver.getInfo()
    found = ending != "infeasible" and info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible)
    columns = np.array(loaded.solver.getSolution().col_value) if found else None
    return ending, float(info.mip_dual_bound), columns


def _integral(loaded: _StoredModel, kind: Foreign) -> None:
    columns = np.flatnonzero(loaded.integral).astype(np.int32)
    loaded.solver.changeColsIntegrality(len(columns), columns, np.full(len(columns), int(kind), np.uint8))


def _run(line: Line, loaded: _StoredModel, deadline: float) -> Ending:
    from highspy import HighsModelStatus as Ended
    from highspy import cb

    kinds = cb.HighsCallbackType
    callbacks = (
        kinds.kCallbackMipInterrupt,
        kinds.kCallbackSimplexInterrupt,
        kinds.kCallbackIpmInterrupt,
        kinds.kCallbackMipImprovingSolution,
    )
    loaded.solver.setCallback(partial(_listen, line, kinds.kCallbackMipImprovingSolution), None)
    for kind in callbacks:
        loaded.solver.startCallback(kind)
    limit = loaded.solver.getRunTime() + left_until(deadline) if isfinite(deadline) else np.inf
    loaded.solver.setOptionValue("time_limit", limit)
    with named("highs"):
        loaded.solver.run()
    status = loaded.solver.getModelStatus()
    if status == Ended.kOptimal:
        return "solved"
    if status in {Ended.kInfeasible, Ended.kUnboundedOrInfeasible}:
        return "infeasible"
    if status in {Ended.kTimeLimit, Ended.kInterrupt}:
        return "stopped"
    raise FailedError(f"{loaded.name} gave up: {loaded.solver.modelStatusToString(status)}")


def sound(figure: float) -> float:
    """A floating-point bound, weakened by its numerical tolerance."""
    return figure - GIVEN_AWAY * max(1.0, abs(figure)) if isfinite(figure) else -np.inf


def _listen(line: Line, improving: Foreign, kind: Foreign, message: str, seen: Foreign, reply: Foreign, nothing: None) -> None:
    del message, nothing
    if int(kind) == int(improving):
        line.tell(np.array(seen.mip_solution))
    else:
        reply.user_interrupt = line.stopping


def _short(figures: Ints) -> np.typing.NDArray[np.int32]:
    return figures.astype(np.int32)
