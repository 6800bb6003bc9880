"""The engine `cpsat`: the marginal model in whole numbers, for problems that are small once they are reduced."""

from functools import partial

from crossopt.formulation.sharding.integer import choice_of, chosen_in
from crossopt.instances.errors import RefusedError
from crossopt.instances.sharding.problem import FORBIDDEN
from crossopt.solvers.backends import Spend, backend
from crossopt.solvers.backends.answer import Event
from crossopt.solvers.sharding.run import EnoughError, Run

_MOST = 30_000
"""Entries of matrices; beyond, writing the model takes longer than other engines take to solve it."""


def cpsat(run: Run) -> None:
    """Offers the best choice that CP-SAT finds, and tells its bound."""
    run.tick()
    if run.core.pairs > _MOST:
        raise RefusedError(
            f"cpsat is for small problems: {run.core.pairs:,} pairs are left, {_MOST:,} at most can be written (take --engine milp)"
        )
    run.words = "whole numbers"
    try:
        choice = choice_of(run.core)
    except ValueError as error:
        raise RefusedError(f"cpsat counts in numbers below 2^53, and here {error} (take --engine auto)") from error
    spend = Spend(max(run.left, 0.0), run.limits.gap, run.limits.workers, run.limits.seed, watch=partial(_seen, run))
    answer = backend("cpsat")(choice.model, spend)
    if answer.status == "INFEASIBLE":
        run.bound_told(FORBIDDEN, answer.solver)
        return
    if answer.values is not None:
        run.offer(chosen_in(choice, answer.values))
    if answer.bound is not None:
        run.bound_told(answer.bound if run.cost is None else min(answer.bound, run.cost), answer.solver)
    if answer.stopped in {"time limit", "interrupted"}:
        raise EnoughError(answer.note)


def _seen(run: Run, event: Event) -> bool:
    if event.bound is not None and event.value is not None:
        run.bound_told(event.bound, "cpsat")
    return run.enough()
