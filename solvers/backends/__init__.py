"""Solver backends with one interface, `(Model, Spend) -> Answer`. Each solver is named in one file and imported when first used."""

from collections.abc import Callable
from functools import partial

from crossopt.formulation.model import Model
from crossopt.instances.errors import SolverError
from crossopt.solvers.backends.answer import Answer, Spend
from crossopt.solvers.backends.cpsat import cpsat
from crossopt.solvers.backends.milp import cbc, gurobi, highs, scip
from crossopt.solvers.backends.wall import prepare

__all__ = ["BACKENDS", "Backend", "Spend", "backend"]

Backend = Callable[[Model, Spend], Answer]

BACKENDS: dict[str, Backend] = {"cbc": cbc, "cpsat": cpsat, "gurobi": gurobi, "highs": highs, "scip": scip}


def backend(name: str) -> Backend:
    """The backend of that name; it raises a SolverError if its package is not installed."""
    if name not in BACKENDS:
        raise SolverError(f"no solver is called {name!r}; there are {', '.join(BACKENDS)}")
    prepare(name)  # the process starts while the model is built
    return partial(_solve_by, name)


def _solve_by(name: str, model: Model, spend: Spend) -> Answer:
    try:
        return BACKENDS[name](model, spend)
    except ImportError as error:
        missing = (error.name or name).partition(".")[0]
        raise SolverError(f"{name} is not here: pip install {missing}, or take another engine, such as boxes ({error})") from error
