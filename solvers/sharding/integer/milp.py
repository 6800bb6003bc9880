"""The engines `milp` and `weak`: the marginal model by HiGHS, with memory rows where a solution breaks the limit.

A choice by simple rules is there at once. Then the linear relaxation, until its rows keep the limit. Its duals, rounded to whole numbers,
give a bound that nobody needs to believe, and with a known value they fix what cannot be part of anything better. Then the integer model;
each solution is held against the core in whole numbers, and where it breaks the limit at a time that has a row, as floating point can
overlook, that choice is ruled out there.

What HiGHS says is never a proof to the last unit, nor that there is no choice. It counts in floating point, keeps rows and whole numbers
to a millionth and reduced costs to a tenth of that, and its bounds have been above the optimum where costs are near 1e11. So a millionth of
each bound is given away, and a millionth of the model's unit for every node and edge, since each choice takes one column of each of them.
What it calls the best is a reason to look for a proof in whole numbers (solvers.sharding.integer.certify_bound).
"""

from math import ceil, floor

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.formulation.sharding.core import Back, Core, NothingAllowedError, Reduced, unchanged
from crossopt.formulation.sharding.dual import fixed
from crossopt.formulation.sharding.integer import chosen_memory, cover_row, weak_program_of
from crossopt.formulation.sharding.reductions import ContradictionError, reduced
from crossopt.solvers.backends.arrays import Look
from crossopt.solvers.sharding.integer.relaxation import Modelled, modelled, relaxation
from crossopt.solvers.sharding.run import EnoughError, Run
from crossopt.solvers.sharding.search.local import descend

_SMALLER = 0.5
"""Where no more than this share of the pairs is left, a model of its own is worth its relaxation."""
_KEPT = 1e-6
"""To which HiGHS keeps a column."""
_WHOLE_UNIT = 0.5
"""Costs are whole: less than this below a solution there is nothing better."""


def milp(run: Run) -> None:
    """Offers choices and bounds until they meet, or an EnoughError."""
    run.tick()
    if run.cost is None:
        descend(run)
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
        raise EnoughError(model.session.late)
    _tell_none(model, run)
    return False


def _solve(model: Modelled, run: Run, back: Back) -> None:
    run.words = "integer model"
    while True:
        gap = _gap(model, run)
        found = model.session.solved(run.left, (_WHOLE_UNIT / model.unit, gap), _look(model, run, back))
        if found.ending == "infeasible":
            _tell_none(model, run)
            return
        chosen = None if found.columns is None else _chosen(model.core, found.columns)
        _tell(model, run, found.bound)
        over = chosen_memory(model.core, chosen)[0] if chosen is not None else model.times
        if chosen is not None and not len(over):
            run.offer(back(chosen))
        if found.ending == "stopped" or chosen is None:
            raise EnoughError(model.session.late)
        if not len(over):
            if gap == 0:
                run.best_said(model.session.name)
            return
        new = over[~np.isin(over, model.times)]
        if len(new):
            model.add(new)
        else:
            model.session.add(cover_row(model.core, chosen, int(over[0])))
        run.tick()


def _gap(model: Modelled, run: Run) -> float:
    """What HiGHS has to reach, so that its bound is as near as was asked once it is lowered."""
    given_away = 2.0 * (_KEPT + _not_believed(model) / max(run.cost or 1, 1))
    return max(run.limits.gap - given_away, 0.0)


def _not_believed(model: Modelled) -> int:
    """What bounds may be wrong by, besides their millionth."""
    return ceil(_KEPT * model.unit * (len(model.core) + len(model.core.firsts)))


def _tell(model: Modelled, run: Run, bound: float) -> None:
    """A bound of the model, which holds for the problem too unless a better choice is known."""
    if np.isfinite(bound):
        told = floor(bound * model.unit) + model.core.constant - _not_believed(model)
        run.bound_in_floats(told, model.session.name)


def _tell_none(model: Modelled, run: Run) -> None:
    """That HiGHS finds nothing in a model: there is no choice, or, where it is of what may be better than the best one, none is better."""
    by = model.session.name
    if run.cost is None:
        run.best_said(by)
    elif model.core is run.core:
        run.refuted(by, "there is no choice")
    else:
        run.best_said(by)
        run.bound_in_floats(run.cost, by)


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
