"""The linear relaxation of a core, with rows of memory as it needs them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.formulation.model import Program
from crossopt.formulation.sharding.core import Core
from crossopt.formulation.sharding.dual import Dual
from crossopt.formulation.sharding.integer import dual_of, fractional_memory, memory_rows, program_of
from crossopt.solvers.answer import Limits
from crossopt.solvers.backends.arrays import Look, Session

_ROWS = 5
"""Rows of memory that come at once."""
_APART = 10
"""Times between them."""


@dataclass(slots=True)
class Modelled:
    """A core in the hands of HiGHS, and the times that have a row."""

    core: Core
    session: Session
    unit: float
    rows: int
    """Without those of memory."""
    times: Whole
    price: float | None
    """Of what is above the limit, per hundredth of it and in the model's unit; None where nothing may be."""

    def add(self, over: Whole) -> None:
        """Rows for the worst of these times, some apart from each other."""
        new: list[int] = []
        for time in over.tolist():
            if len(new) < _ROWS and all(abs(time - other) >= _APART for other in new):
                new.append(time)
        self.times = np.concatenate([self.times, np.array(new, np.int64)])
        self.session.add(memory_rows(self.core, np.array(new, np.int64)), self.price)


def modelled(core: Core, limits: Limits, programmed: Callable[[Core], Program] = program_of, price: float | None = None) -> Modelled:
    """The model without rows for memory."""
    program = programmed(core)
    session = Session(program, limits.workers, limits.seed)
    return Modelled(core, session, program.unit, len(program.rows.lows), np.zeros(0, np.int64), price)


def relaxation(
    model: Modelled, seconds: float, stop: Callable[[], bool], suffices: Callable[[Dual], bool]
) -> Array | Literal["infeasible", "stopped"]:
    """The shares of strategies, once the rows keep the limit or a dual on the way suffices."""
    while True:
        found = model.session.relaxed(seconds, Look(stop))
        if found.ending != "solved":
            return found.ending
        shares = found.columns[: len(model.core.costs)]
        dual = dual_of(model.core, model.unit, found.duals[: model.rows], model.times, found.duals[model.rows :])
        over, _ = fractional_memory(model.core, shares)
        over = over[~np.isin(over, model.times)]
        if suffices(dual) or not len(over):
            return shares
        if stop():
            return "stopped"
        model.add(over)
