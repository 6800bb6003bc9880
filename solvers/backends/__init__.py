"""Solvers behind one face: `(Model, Spend) -> Answer`. Each is named in one file, and imported only when it is asked."""

from collections.abc import Callable

from formulation.model import Model
from solvers.backends.answer import Answer, SolverError, Spend
from solvers.backends.cpsat import cpsat
from solvers.backends.milp import cbc, gurobi, highs, scip

__all__ = ["BACKENDS", "Backend", "Spend", "backend"]

Backend = Callable[[Model, Spend], Answer]

BACKENDS: dict[str, Backend] = {"cbc": cbc, "cpsat": cpsat, "gurobi": gurobi, "highs": highs, "scip": scip}


def backend(name: str) -> Backend:
    """The backend of that name."""
    if name not in BACKENDS:
        raise SolverError(f"no solver is called {name!r}; there are {', '.join(BACKENDS)}")
    return BACKENDS[name]
