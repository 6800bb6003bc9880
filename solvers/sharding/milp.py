"""The engines `milp` and `weak`: the marginal model by HiGHS, with memory rows where a solution breaks the limit.

A choice by simple rules is there at once. Then the linear relaxation, until its rows keep the limit. Its duals, rounded to whole numbers,
give a bound that nobody needs to believe, and with a known value they fix what cannot be part of anything better. Then the integer model;
each solution is held against the core in whole numbers, and where it breaks the limit at a time that has a row, as floating point can
overlook, that choice is ruled out there.
"""

from math import ceil

import numpy as np

from crossflow.arrays import Array, Whole
from formulation.sharding.core import Core
from formulation.sharding.editing import Back, NothingAllowedError, Reduced, unchanged
from formulation.sharding.fixing import fixed
from formulation.sharding.implication import weak_program_of
from formulation.sharding.marginal import chosen_memory, cover_row
from formulation.sharding.reducing import ContradictionError, reduced
from instances.sharding.problem import FORBIDDEN
from solvers.backends.arrays import Look
from solvers.sharding.local import descended
from solvers.sharding.relaxing import Modelled, modelled, relaxation
from solvers.sharding.run import EnoughError, Run

_SMALLER = 0.5
"""Where no more than this share of the pairs is left, a model of its own is worth its relaxation."""
_WHOLE_UNIT = 0.5
"""Costs are whole: less than this below a solution there is nothing better."""


def milp(run: Run) -> None:
    """Offers choices and bounds until they meet, or an EnoughError."""
    run.tick()
    if run.cost is None:
        descended(run)
    run.words = "linear relaxation"
    model = modelled(run.core, run.limits)
    if not _relax(model, run):
        return
    rest = _rest(run)
    if rest is None:
        return
    small = rest.core.pairs <= _SMALLER * run.core.pairs
    _solve(modelled(rest.core, run.limits) if small else model, run, rest.back if small else np.array)


def weak(run: Run) -> None:
    """The same with the weak model, to compare with; its relaxation proves nothing that would be worth keeping."""
    run.tick()
    run.words = "weak integer model"
    _solve(modelled(run.core, run.limits, weak_program_of), run, np.array)


def _rest(run: Run) -> Reduced | None:
    """What may be better than the best choice known, by the best dual; None where that is nothing."""
    if run.dual is None or run.cost is None:
        return unchanged(run.core)
    try:
        cut = fixed(run.core, run.dual, run.cost)
        rest = reduced(cut.core)
    except (NothingAllowedError, ContradictionError):
        run.closed((run.dual,))
        return None
    return Reduced(rest.core, lambda chosen: cut.back(rest.back(chosen)), np.arange(len(rest.core)))


def _relax(model: Modelled, run: Run) -> bool:
    """Solves the relaxation with all the rows it needs; False where there is no choice at all."""
    found = relaxation(model, run.left, run.enough, lambda dual: run.bound_proved(dual) < 0)
    if not isinstance(found, str):
        return True
    if found == "stopped":
        raise EnoughError
    run.bound_told(FORBIDDEN, model.session.name)
    return False


def _solve(model: Modelled, run: Run, back: Back) -> None:
    run.words = "integer model"
    while True:
        found = model.session.solved(run.left, (_WHOLE_UNIT / model.unit, run.limits.gap), _look(model, run, back))
        if found.ending == "infeasible":
            run.bound_told(FORBIDDEN if run.cost is None else run.cost, model.session.name)
            return
        chosen = None if found.columns is None else _chosen(model.core, found.columns)
        _tell(model, run, found.bound, exact=found.ending == "solved" and run.limits.gap == 0)
        over = chosen_memory(model.core, chosen)[0] if chosen is not None else model.times
        if chosen is not None and not len(over):
            run.offer(back(chosen))
        if found.ending == "stopped" or chosen is None:
            raise EnoughError
        if not len(over):
            return
        new = over[~np.isin(over, model.times)]
        if len(new):
            model.add(new)
        else:
            model.session.add(cover_row(model.core, chosen, int(over[0])))
        run.tick()


def _tell(model: Modelled, run: Run, bound: float, exact: bool) -> None:
    """A bound of the model, which holds for the problem too unless a better choice is known."""
    if not np.isfinite(bound):
        return
    figure = bound * model.unit
    whole = round(figure) if exact else ceil(figure)
    told = whole + model.core.constant
    run.bound_told(told if run.cost is None else min(told, run.cost), model.session.name)


def _chosen(core: Core, columns: Array) -> Whole:
    """The strategy of each node that has the largest share."""
    shares = columns[: len(core.costs)]
    ranked = np.lexsort((-shares, np.repeat(np.arange(len(core)), core.counts)))
    return np.asarray(ranked[core.offsets[:-1]] - core.offsets[:-1])


def _look(model: Modelled, run: Run, back: Back) -> Look:
    """Takes what the solver tells while it runs, and says when it is enough."""

    def stop() -> bool:
        columns, look.columns = look.columns, None
        if columns is not None:
            chosen = _chosen(model.core, columns)
            if not len(chosen_memory(model.core, chosen)[0]):
                run.offer(back(chosen))
        return run.enough()

    look = Look(stop)
    return look
