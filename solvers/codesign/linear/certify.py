"""A proof in whole numbers of what a refined integer model told, searched when the bound is known, so that its solver need not be trusted.

    rule out     plans and literals by prices on the budgets, on the chip as the question has it and again on what is left of it
    find a tree  of the integer model of the rest (`solvers.backends.whole`); where a solution is below the bound, the full model says what
                 that design costs, and the model gets tangents there, or rows for that chip where these are met already

Everything is made as the check makes it (`solvers.codesign.linear.whole`), so that what is found here holds there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Ints
from crossopt.formulation.certificate import packed, proved_bound
from crossopt.formulation.codesign.choices import Codesign, Tangents, sought
from crossopt.formulation.model import Model, Variable
from crossopt.instances.codesign.boxes import option_indices
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.errors import ContradictionError, FailedError
from crossopt.solvers.answer import Progress, Watch
from crossopt.solvers.backends.whole import trace
from crossopt.solvers.codesign.answer import Candidate
from crossopt.solvers.codesign.linear import whole
from crossopt.solvers.codesign.linear.refine import Refined
from crossopt.solvers.proofs import WholeProof

_FEW = 64
"""Plans up to which no screen is needed before the tree."""
_TOUCHES = 8
"""Tangents at the largest shares of the relaxation, before anything is cut."""
_STAGES = (6, 3)
"""Tangents of each plan in one screen after another."""
_MOST_PLANS, _MOST_BOXES = 4_000, 4_000
"""Beyond, a proof would be larger than anybody keeps."""
_BEYOND = 1.0 + 1e-5
"""What prices aim at, over the bound: prices of fewer digits shall still reach it."""
_BELOW = 2.0e-5
"""By which a bound is lowered where rounding keeps whole numbers from it: a dozen quanta, a fifth of the least gap that is asked."""
_BLOCK = 1024
"""Plans that are priced together."""


@dataclass(slots=True)
class _Work:
    """The proof as far as it is made."""

    rest: whole.Rest
    deadline: float
    watch: Watch
    value: float | None
    screens: list[tuple[str, ...]] = field(default_factory=list)
    rows: list[tuple[int, ...]] = field(default_factory=list)
    problem: Codesign | None = None

    def left(self) -> float:
        """Seconds; a TimeoutError where there are none."""
        if (left := self.deadline - monotonic()) <= 0.0:
            raise TimeoutError
        label = f"a proof in whole numbers: {len(self.rest):,} plan{'s' * (len(self.rest) != 1)}, {len(self.rows):,} rows"
        self.watch(Progress(label, self.value, self.rest.bound if self.rest.bound < inf else None))
        return left

    def add(self, kind: int, plan: int, places: Ints, more: Tangents | None = None) -> Codesign:
        """The model with one more row."""
        problem = whole.first_model(self.rest) if self.problem is None else self.problem
        self.rows.append((kind, plan, *places.tolist()))
        if more is None:
            self.problem = whole.with_chip(self.rest, problem, plan, places)
        else:
            self.problem = whole.with_tangent(self.rest, problem, plan, more)
        return self.problem


def certify(instance: Instance, found: Refined, form: str, seconds: float, watch: Watch) -> tuple[float, WholeProof] | None:
    """A proof of the bound that was found or of one a little below it, where rounding keeps whole numbers from the former, with that bound;
    or that there is no design. None where none is found in time.

    Only of what came to its end in the usual form: the others are there to be looked at as they are."""
    if found.stopped != "complete" or found.bound is None or form != "strong":
        return None
    deadline = monotonic() + seconds
    try:
        for bound in sorted({found.bound, found.bound * (1.0 - _BELOW)}, reverse=True):
            proof = certify_bound(instance, found.best, found.value, bound, deadline - monotonic(), watch)
            if proof is not None:
                return bound, proof
    except ContradictionError:  # there is a design below the bound, which is false
        raise
    except (TimeoutError, KeyboardInterrupt, ValueError, FailedError):  # a model may be beyond what solvers hold, or end one
        pass
    return None


def certify_bound(
    instance: Instance, best: Candidate | None, value: float | None, bound: float, seconds: float, watch: Watch
) -> WholeProof | None:
    """A proof in whole numbers that no design is below a bound, or that there is none where the bound is infinite; None where none is
    found. A TimeoutError where time is up."""
    deadline = monotonic() + seconds
    rest = whole.rest_of(instance, bound, deadline)
    if rest is None:
        return WholeProof((), (), 1, ())
    if not rest.chip.parts or len(rest) > _MOST_PLANS:
        return None
    return _certified(_Work(rest, deadline, watch, value), best)


def _certified(work: _Work, best: Candidate | None) -> WholeProof | None:
    if best is not None:
        for tangents in _STAGES if len(work.rest) > _FEW else ():
            _screen(work, best, tangents)
            if not len(work.rest):
                return WholeProof(tuple(work.screens), (), 1, ())
        _touch(work, option_indices(work.rest.space, best.point))
    problem = work.problem or whole.first_model(work.rest)
    goal = whole.reach_of(work.rest, problem)
    found = trace(problem.model(), goal, work.left(), _MOST_BOXES, lambda values: _tighter(work, values))
    if not found.proved or (goal is None and found.bound is not None) or len(work.rows) > whole.MOST_ROWS:
        return None
    tree = found.certificate
    proved = proved_bound(whole.model_of(work.rest, work.rows).model(), tree)
    if proved is not None and (goal is None or proved < goal):  # tangents are computed together there, and here one by one
        return None
    return WholeProof(tuple(work.screens), tuple(work.rows), tree.scale, packed(tree))


def _screen(work: _Work, best: Candidate, stages: int) -> None:
    """Prices and shares of every plan, after so many tangents; those that are out keep what they needed."""
    rest, blocks = work.rest, list[whole.Screen]()
    places = option_indices(rest.space, best.point)
    for start in range(0, len(rest), _BLOCK):
        blocks.append(_screen_block(work, np.arange(start, min(start + _BLOCK, len(rest))), places, stages))
    screen = whole.Screen(*(tuple(row for block in blocks for row in getattr(block, name)) for name in ("points", "prices", "shares")))
    work.screens.append(whole.lines_of(screen))
    work.rest = whole.screened(rest, screen)


def _screen_block(work: _Work, rows: Ints, places: Ints, stages: int) -> whole.Screen:
    rest = work.rest
    start = _nearest(rest, places)
    points = np.repeat(start[None], len(rows), axis=0)
    chips = {int(row): [tuple(start.tolist())] for row in rows}
    found = dict[int, tuple[tuple[float, ...], tuple[float, ...]]]()
    several, left = list[Tangents](), rows
    for stage in range(stages):
        work.left()
        several = [*several, whole.tangents_of(rest, left, points)]
        seen, at = sought(rest.chip, several, rest.needs[left], rest.bound * _BEYOND)
        for index, row in enumerate(left.tolist()):
            found[row] = _short(at.prices[index]), _short(at.shares[index])
        open_rows = np.flatnonzero(seen.bounds < rest.bound)
        if not len(open_rows) or stage == stages - 1:
            break
        several, left = [tangents.rows(open_rows) for tangents in several], left[open_rows]
        points = np.stack([seen.places[part.name][open_rows] for part in rest.chip.parts], axis=1)
        for row, point in zip(left.tolist(), points.tolist(), strict=True):
            chips[row].append(tuple(point))
    order = rows.tolist()
    return whole.Screen(
        tuple(tuple(chips[row]) for row in order), tuple(found[row][0] for row in order), tuple(found[row][1] for row in order)
    )


def _short(figures: Array) -> tuple[float, ...]:
    """Any prices prove what they prove: those with fewer digits take less room."""
    return tuple(float(f"{figure:.8g}") for figure in figures.tolist())


def _nearest(rest: whole.Rest, places: Ints) -> Ints:
    """The literals of a chip, or where one of them is out, any."""
    point = rest.chip.point(places)
    return np.array([point[part.name] for part in rest.chip.parts], np.int64)


def _touch(work: _Work, places: Ints) -> None:
    """A tangent at the best design known, and more where the relaxation has its largest shares, until it says nothing new."""
    rest = work.rest
    point, plan = _nearest(rest, places), int(np.argmin(rest.roots))
    for _ in range(_TOUCHES):
        problem = work.add(whole.TANGENT, plan, point, _tangents_at(rest, plan, point))
        found = trace(problem.model(), whole.reach_of(rest, problem), work.left(), 1)
        if found.root is None or found.proved:
            return
        share = dict(zip(_variables(problem), found.root, strict=True))
        plan = int(np.argmax([share[choice] for choice in problem.choices]))
        point = np.array([np.argmax([share[literal] for literal in part.literals]) for part in rest.chip.parts], np.int64)
        if (whole.TANGENT, plan, *point.tolist()) in work.rows:
            return


def _variables(problem: Codesign) -> tuple[Variable, ...]:
    """Those of its model, which grows by rows alone."""
    return (problem.time, *problem.choices, *(literal for part in problem.chip.parts for literal in part.literals))


def _tangents_at(rest: whole.Rest, plan: int, places: Ints) -> Tangents:
    which = whole.plans_with(rest, plan)
    return whole.tangents_of(rest, which, np.repeat(places[None], len(which), axis=0))


def _tighter(work: _Work, values: Sequence[int]) -> Model | None:
    """What the full model says of a solution that is below the bound."""
    rest, problem = work.rest, work.problem or whole.first_model(work.rest)
    chosen = dict(zip(_variables(problem), values, strict=True))
    point, plan = problem.decoded(chosen)
    places = np.array([point[part.name] for part in rest.chip.parts], np.int64)
    value, _ = whole.price_here(rest, plan, places)
    if value < rest.bound:
        raise ContradictionError(f"a bound of {rest.bound:.6g} s was reported, but there is a design of {value:.6g} s")
    work.left()
    if rest.bound < inf and np.isfinite(value) and (whole.TANGENT, plan, *places.tolist()) not in work.rows:
        more = _tangents_at(rest, plan, places)
        exact = more.at(rest.chip, point)[np.flatnonzero(more.plans == plan)[0]]
        if exact >= problem.quantum * (chosen[problem.time] + len(rest.chip.parts) + 2):
            return work.add(whole.TANGENT, plan, places, more).model()
    if (whole.HERE, plan, *places.tolist()) in work.rows:
        return None
    return work.add(whole.HERE, plan, places).model()
