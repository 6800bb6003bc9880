"""HiGHS on a model in arrays, for models too large to be written variable by variable. Rows can be added between solves.

What it says is read with care, as elsewhere: its solution is only a proposal for whoever asked, and of a bound in floating point a
millionth is given away, also where it calls the model solved: at objectives near 1e7 it has called one solved whose optimum is lower. The
bound that it tells along with a better solution is not looked at: HiGHS 1.12 has told one above the optimum there.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from math import isfinite
from typing import Any, Literal

import numpy as np

from crossopt.crossflow.arrays import Array, Mask, Whole
from crossopt.formulation.program import Program, Rows
from crossopt.instances.errors import SolverError
from crossopt.solvers.backends.milp import GIVEN_AWAY

Foreign = Any
Ending = Literal["solved", "infeasible", "stopped"]
_POLL = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Relaxed:
    """What the linear relaxation came to: figures of columns and duals of rows only where it was solved."""

    ending: Ending
    value: float
    columns: Array
    duals: Array


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """What the integer model came to, in its unit: a bound below which no solution is, and the best solution, if there is one."""

    ending: Ending
    bound: float
    columns: Array | None


@dataclass(slots=True)
class Look:
    """A look at a solve while it runs: `stop` is asked again and again whether to end it, and finds here what the solver told last."""

    stop: Callable[[], bool]
    columns: Array | None = None
    """A better solution."""
    stopping: bool = False


class Session:
    """A model that HiGHS holds."""

    __slots__ = ("_solver", "_whole", "name")

    def __init__(self, program: Program, workers: int, seed: int) -> None:
        import highspy

        self.name = f"highs {version('highspy')}"
        self._solver: Foreign = highspy.Highs()
        for option, value in (("output_flag", False), ("threads", workers), ("random_seed", seed)):
            self._solver.setOptionValue(option, value)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(program.costs), len(program.rows.lows)
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = program.costs, np.zeros(len(program.costs)), program.highs
        lp.row_lower_, lp.row_upper_ = program.rows.lows, program.rows.highs
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = _short(program.rows.starts), _short(program.rows.columns)
        lp.a_matrix_.value_ = program.rows.factors
        if self._solver.passModel(lp) == highspy.HighsStatus.kError:
            raise SolverError(f"{self.name} does not take the model")
        self._whole: Mask = program.whole

    def add(self, rows: Rows, price: float | None = None) -> None:
        """More rows, after all others; with a price, each may be broken from above for so much."""
        first = self._solver.getNumRow()
        starts, columns = _short(rows.starts[:-1]), _short(rows.columns)
        self._solver.addRows(len(rows.lows), rows.lows, rows.highs, len(columns), starts, columns, rows.factors)
        for row in range(len(rows.lows) if price is not None else 0):
            self._solver.addCol(price, 0.0, np.inf, 1, np.array([first + row], np.int32), np.array([-1.0]))

    def relaxed(self, seconds: float, look: Look) -> Relaxed:
        """The linear relaxation."""
        import highspy

        self._integral(highspy.HighsVarType.kContinuous)
        ending = self._run(seconds, look)
        solution = self._solver.getSolution()
        none = np.zeros(0)
        if ending != "solved":
            return Relaxed(ending, 0.0, none, none)
        value = float(self._solver.getInfo().objective_function_value)
        return Relaxed(ending, value, np.array(solution.col_value), np.array(solution.row_dual))

    def solved(self, seconds: float, gap: tuple[float, float], look: Look) -> Solved:
        """The integer model, to an absolute and a relative gap."""
        import highspy

        self._integral(highspy.HighsVarType.kInteger)
        self._solver.setOptionValue("mip_abs_gap", gap[0])
        self._solver.setOptionValue("mip_rel_gap", gap[1])
        ending = self._run(seconds, look)
        if ending == "infeasible":
            return Solved(ending, np.inf, None)
        info = self._solver.getInfo()
        found = info.primal_solution_status == int(highspy.SolutionStatus.kSolutionStatusFeasible)
        columns = np.array(self._solver.getSolution().col_value) if found else None
        return Solved(ending, sound(info.mip_dual_bound), columns)

    def _integral(self, kind: Foreign) -> None:
        columns = np.flatnonzero(self._whole).astype(np.int32)
        self._solver.changeColsIntegrality(len(columns), columns, np.full(len(columns), int(kind), np.uint8))

    def _run(self, seconds: float, look: Look) -> Ending:
        from highspy import HighsModelStatus as Ended
        from highspy import cb

        kinds = cb.HighsCallbackType
        asked = (
            kinds.kCallbackMipInterrupt,
            kinds.kCallbackSimplexInterrupt,
            kinds.kCallbackIpmInterrupt,
            kinds.kCallbackMipImprovingSolution,
        )
        self._solver.setCallback(partial(_listen, look, kinds.kCallbackMipImprovingSolution), None)
        for kind in asked:
            self._solver.startCallback(kind)
        limit = self._solver.getRunTime() + seconds if isfinite(seconds) else np.inf
        self._solver.setOptionValue("time_limit", limit)
        _attended(self._solver.run, look)
        status = self._solver.getModelStatus()
        if status == Ended.kOptimal:
            return "solved"
        if status in {Ended.kInfeasible, Ended.kUnboundedOrInfeasible}:
            return "infeasible"
        if status in {Ended.kTimeLimit, Ended.kInterrupt}:
            return "stopped"
        raise SolverError(f"{self.name} gave up: {self._solver.modelStatusToString(status)}")


def sound(figure: float) -> float:
    """A bound in floating point less what is not believed of it."""
    return figure - GIVEN_AWAY * max(1.0, abs(figure)) if isfinite(figure) else -np.inf


def _listen(look: Look, improving: Foreign, kind: Foreign, message: str, seen: Foreign, reply: Foreign, nothing: None) -> None:
    del message, nothing
    if int(kind) == int(improving):
        look.columns = np.array(seen.mip_solution)
    else:
        reply.user_interrupt = look.stopping


def _attended(work: Callable[[], Foreign], look: Look) -> None:
    """Runs the work in a thread of its own; the first Ctrl-C asks it to stop, as the look may."""
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(work)
        while not running.done():
            try:
                wait([running], _POLL)
                look.stopping = look.stopping or look.stop()
            except KeyboardInterrupt:
                if look.stopping:
                    raise
                look.stopping = True
        try:
            running.result()
        except Exception as error:  # a solver may fail in ways that its maker has not thought of
            raise SolverError(f"highs failed: {type(error).__name__}: {error}") from error


def _short(figures: Whole) -> np.typing.NDArray[np.int32]:
    return figures.astype(np.int32)
