"""Integer engines for strategies: the marginal model by HiGHS and CP-SAT, its relaxation, and bounds that duals certify."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil, floor, isinf
from time import monotonic
from typing import Literal

import numpy as np

from crossopt.crossflow.arrays import Array, Ints
from crossopt.formulation.model import Program
from crossopt.formulation.sharding import integer
from crossopt.formulation.sharding.core import Back, Core, piece_indices
from crossopt.formulation.sharding.dual import Dual
from crossopt.formulation.sharding.tree import DEEPEST, Branch, Left, Step, after, composed, left_by, parted
from crossopt.instances.errors import RefusedError, SolverError
from crossopt.instances.sharding.problem import FORBIDDEN
from crossopt.solvers.answer import Limits
from crossopt.solvers.backends import Spend, backend
from crossopt.solvers.backends.answer import Event
from crossopt.solvers.backends.arrays import Session, SolveMonitor
from crossopt.solvers.sharding.local import descend
from crossopt.solvers.sharding.run import EnoughError, Rest, Run

# The linear relaxation of a core, with rows of memory as it needs them.

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
    times: Ints
    price: float | None
    """Of what is above the limit, per hundredth of it and in the model's unit; None where nothing may be."""

    def add(self, over: Ints) -> None:
        """Rows for the worst of these times, some apart from each other."""
        new: list[int] = []
        for time in over.tolist():
            if len(new) < _ROWS and all(abs(time - other) >= _APART for other in new):
                new.append(time)
        self.times = np.concatenate([self.times, np.array(new, np.int64)])
        self.session.add(integer.memory_rows(self.core, np.array(new, np.int64)), self.price)


def modelled(
    core: Core, limits: Limits, programmed: Callable[[Core], Program] = integer.program_of, price: float | None = None
) -> Modelled:
    """The model without rows for memory."""
    program = programmed(core)
    session = Session(program, limits.workers, limits.seed)
    return Modelled(core, session, program.unit, len(program.rows.lows), np.zeros(0, np.int64), price)


def relaxation(
    model: Modelled, seconds: float, stop: Callable[[], bool], suffices: Callable[[Dual], bool]
) -> Array | Literal["infeasible", "stopped"]:
    """The shares of strategies, once the rows keep the limit or a dual on the way suffices."""
    while True:
        found = model.session.relaxed(seconds, SolveMonitor(stop))
        if found.ending != "solved":
            return found.ending
        shares = found.columns[: len(model.core.costs)]
        dual = integer.dual_of(model.core, model.unit, found.duals[: model.rows], model.times, found.duals[model.rows :])
        over, _ = integer.fractional_memory(model.core, shares)
        over = over[~np.isin(over, model.times)]
        if suffices(dual) or not len(over):
            return shares
        if stop():
            return "stopped"
        model.add(over)


# A proof without trust in a solver: duals of the relaxation at every node of a small tree.
#
# Once the best choice is known, or none seems to be allowed, the duals fix most strategies. What is left is branched at the node where the
# relaxation mixes strategies of the most different memory, until whole numbers close every branch (formulation.sharding.tree), or until it
# takes too long. So that there are duals where the limit cannot be kept, what is above it has a price here instead of being forbidden.
#
# A solver keeps costs to a millionth, so that something a little better may be left. What the relaxation of a branch comes near to is
# offered, and where it is better the proof begins anew below its cost.

_MOST_NODES = 2_000
_SHARE, _LEAST = 1.0, 5.0
"""Where there is no time limit: of the seconds that the answer took so far, and at least so many."""
_PRICE = 1e7
_INTEGRALITY = 1e-6
_PROGRESS = 0.8
"""A dual that leaves more than this share of the strategies calls for a branch."""


class _GivenUpError(Exception):
    """It takes too long, the branches are too deep, or a solver has no duals."""


class _BetterError(Exception):
    """A better choice was found on the way."""


def close(run: Run) -> None:
    """Proves that nothing is better than the best choice of a run, or that there is none, within the time; else leaves it as it is."""
    run.label = "proof in whole numbers"
    spent = monotonic() - run.began
    deadline = monotonic() + (max(_LEAST, _SHARE * spent) if isinf(run.left) else max(run.left, 0.0))
    while run.dual is not None and run.rest is not None:
        closing = _Closing(run, run.aim, deadline)
        try:
            closing.steps += run.duals
            closing.close(left_by(run.rest.core, run.dual, run.aim), run.rest.back, 0)
        except _BetterError:
            continue
        except (_GivenUpError, SolverError, MemoryError, KeyboardInterrupt):
            return
        run.closed(tuple(closing.steps))
        return


class _Closing:
    """The steps so far."""

    __slots__ = ("deadline", "nodes", "run", "steps", "value")

    def __init__(self, run: Run, value: int, deadline: float) -> None:
        self.run, self.value, self.deadline = run, value, deadline
        self.steps: list[Step] = []
        self.nodes = 0

    def close(self, left: Left | None, back: Back, depth: int) -> None:
        """Adds the steps that close what is left of a core, from which `back` leads to the core of the run."""
        while left is not None:
            core, back = left.core, composed(back, left.back)
            self.nodes += 1
            dual, shares = self._relaxed(core)
            self.steps.append(dual)
            left = left_by(core, dual, self.value)
            if left is None:
                return
            if len(shares) >= len(core.costs):
                self._offer(back(chosen_by(core, shares)))
            if len(left.core.costs) > _PROGRESS * len(core.costs) and len(shares) == len(core.costs):
                if depth == DEEPEST:
                    raise _GivenUpError
                self.steps.pop()
                branch = _branch(core, shares)
                self.steps.append(branch)
                for part in parted(core, branch):
                    self.close(part, back, depth + 1)
                return

    def _offer(self, chosen: Ints) -> None:
        if self.run.offer(chosen) and self.run.aim < self.value:
            raise _BetterError

    def _relaxed(self, core: Core) -> tuple[Dual, Array]:
        if self.nodes > _MOST_NODES or self._late():
            raise _GivenUpError
        best: list[Dual] = []

        def keep(dual: Dual) -> bool:
            best[:] = [dual]
            return after(core, dual, self.value) is None

        found = relaxation(modelled(core, self.run.limits, price=_PRICE), self.deadline - monotonic(), self._late, keep)
        if isinstance(found, str):
            raise _GivenUpError
        return best[0], found

    def _late(self) -> bool:
        self.run.show()
        return monotonic() > self.deadline


def _branch(core: Core, shares: Array) -> Branch:
    """At the mixed node whose mixture spreads the memory of its largest member most, with its largest share on the one side.

    Memory is where mixtures gain most: half of a node here and half there just fill the limit. Of nodes without memory, the most mixed one.
    """
    taken = np.zeros(len(core.costs))
    np.maximum.at(taken, piece_indices(core.offsets, core.member_nodes), core.usages)
    mean = np.repeat(np.add.reduceat(taken * shares, core.offsets[:-1]), core.counts)
    spread = np.add.reduceat(np.abs(taken - mean) * shares, core.offsets[:-1])
    apart = np.add.reduceat(np.minimum(shares, 1.0 - shares), core.offsets[:-1])
    mixed = (core.counts > 1) & (apart > _INTEGRALITY)
    order = np.lexsort((-apart, -spread, ~mixed, core.counts < 2))
    node = int(order[0])
    largest = int(shares[core.offsets[node] : core.offsets[node + 1]].argmax())
    return Branch(node, np.array([largest]))


# The engines `milp` and `weak`: the marginal model by HiGHS, with memory rows where a solution breaks the limit.
#
# A choice by simple rules is there at once. Then the linear relaxation, until its rows keep the limit. Its duals, rounded to whole numbers,
# give an exact bound, and with a known value they fix what cannot be part of anything better. Then the integer model;
# each solution is held against the core in whole numbers, and where it breaks the limit at a time that has a row, as floating point can
# overlook, that choice is ruled out there.
#
# What HiGHS says is never a proof to the last unit, nor that there is no choice. It counts in floating point, keeps rows and whole numbers
# to a millionth and reduced costs to a tenth of that, and its bounds have been above the optimum where costs are near 1e11. So a millionth
# of each bound is given away, and a millionth of the model's unit for every node and edge, since each choice takes one column of each of
# them. What it calls the best is a reason to look for a proof in whole numbers (solvers.sharding.integer.certify_bound).

_SMALLER = 0.5
"""Where no more than this share of the pairs is left, a model of its own is worth its relaxation."""
_TOLERANCE = 1e-6
"""To which HiGHS keeps a column."""
_WHOLE_UNIT = 0.5
"""Costs are whole: less than this below a solution there is nothing better."""


def milp(run: Run) -> None:
    """Offers choices and bounds until they meet, or an EnoughError. Multipliers of a search leave the model less from the start."""
    run.tick()
    if run.cost is None:
        descend(run)
    run.label = "linear relaxation"
    rest = run.narrowed() if run.dual is not None and run.dual.to_firsts.any() else run.everything
    if rest is None:
        return
    model = modelled(rest.core, run.limits)
    smaller = run.narrowed() if _relax(model, run, rest) else None
    if smaller is None:
        return
    small = smaller.core.pairs <= _SMALLER * rest.core.pairs
    _solve(modelled(smaller.core, run.limits) if small else model, run, (smaller if small else rest).back)


def weak(run: Run) -> None:
    """Offer choices and bounds of the weak integer model, to compare with; its relaxation proves nothing worth keeping."""
    run.tick()
    run.label = "weak integer model"
    _solve(modelled(run.core, run.limits, integer.weak_program_of), run, np.array)


def _relax(model: Modelled, run: Run, rest: Rest) -> bool:
    """Bounds by the relaxation with all the rows that it needs; whether there may be a choice at all."""

    def keep(dual: Dual) -> bool:
        run.bound_proved(dual, rest)
        return False

    found = relaxation(model, run.left, run.enough, keep)
    if not isinstance(found, str):
        return True
    if found == "stopped":
        raise EnoughError(model.session.late)
    _tell_none(model, run)
    return False


def _solve(model: Modelled, run: Run, back: Back) -> None:
    run.label = "integer model"
    while True:
        gap = _gap(model, run)
        found = model.session.solved(run.left, (_WHOLE_UNIT / model.unit, gap), _look(model, run, back))
        if found.ending == "infeasible":
            _tell_none(model, run)
            return
        chosen = None if found.columns is None else chosen_by(model.core, found.columns)
        _tell(model, run, found.bound)
        over = integer.chosen_memory(model.core, chosen)[0] if chosen is not None else model.times
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
            model.session.add(integer.cover_row(model.core, chosen, int(over[0])))
        run.tick()


def _gap(model: Modelled, run: Run) -> float:
    """What HiGHS has to reach, so that its bound is as near as was asked once it is lowered."""
    given_away = 2.0 * (_TOLERANCE + _not_believed(model) / max(run.cost or 1, 1))
    return max(run.limits.gap - given_away, 0.0)


def _not_believed(model: Modelled) -> int:
    """What bounds may be wrong by, besides their millionth."""
    return ceil(_TOLERANCE * model.unit * (len(model.core) + len(model.core.firsts)))


def _tell(model: Modelled, run: Run, bound: float) -> None:
    """A bound of the model, which holds for the problem too unless a better choice is known."""
    if np.isfinite(bound):
        lowered = floor(bound * model.unit) + model.core.constant - _not_believed(model)
        run.bound_in_floats(lowered, model.session.name)


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


def chosen_by(core: Core, columns: Array) -> Ints:
    """The strategy of each node that has the largest share."""
    shares = columns[: len(core.costs)]
    ranked = np.lexsort((-shares, np.repeat(np.arange(len(core)), core.counts)))
    return np.asarray(ranked[core.offsets[:-1]] - core.offsets[:-1])


def _look(model: Modelled, run: Run, back: Back) -> SolveMonitor:
    """Takes what the solver tells while it runs, and says when it is enough."""

    def stop() -> bool:
        columns, look.columns = look.columns, None
        if columns is not None:
            chosen = chosen_by(model.core, columns)
            if not len(integer.chosen_memory(model.core, chosen)[0]):
                run.offer(back(chosen))
        return run.enough()

    look = SolveMonitor(stop)
    return look


# The engine `cpsat`: the marginal model in whole numbers, for problems that are small once they are reduced.

_MOST = 30_000
"""Entries of matrices; beyond, writing the model takes longer than other engines take to solve it."""


def cpsat(run: Run) -> None:
    """Offers the best choice that CP-SAT finds, and tells its bound."""
    run.tick()
    if run.core.pairs > _MOST:
        raise RefusedError(
            f"cpsat is for small problems: {run.core.pairs:,} pairs are left, {_MOST:,} at most can be written (take --engine milp)"
        )
    run.label = "whole numbers"
    try:
        choice = integer.choice_of(run.core)
    except ValueError as error:
        raise RefusedError(f"cpsat counts in numbers below 2^53, and here {error} (take --engine auto)") from error
    spend = Spend(max(run.left, 0.0), run.limits.gap, run.limits.workers, run.limits.seed, watch=partial(_seen, run))
    answer = backend("cpsat")(choice.model, spend)
    if answer.status == "INFEASIBLE":
        run.bound_told(FORBIDDEN, answer.solver)
        return
    if answer.values is not None:
        run.offer(integer.chosen_in(choice, answer.values))
    if answer.bound is not None:
        run.bound_told(answer.bound if run.cost is None else min(answer.bound, run.cost), answer.solver)
    if answer.stopped in {"time limit", "interrupted"}:
        raise EnoughError(answer.note)


def _seen(run: Run, event: Event) -> bool:
    if event.bound is not None and event.value is not None:
        run.bound_told(event.bound, "cpsat")
    return run.enough()
