"""Prices of plans on the budgets, as a proof keeps them: one line a plan, in few digits, and written in one way only."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, inf
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.crossflow.plan import Plans, rows_of
from crossopt.crossflow.workload import Transformer
from crossopt.formulation.certificate import numbers_in, proved_bound, unpacked
from crossopt.formulation.codesign import choices
from crossopt.formulation.codesign.tangent import tangents_at, with_strong_rows
from crossopt.formulation.model import quantum_for
from crossopt.formulation.vipr import IntegerProof
from crossopt.instances.codesign.boxes import Boxes, Corners, Grid, corners, grid
from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion, Portfolio
from crossopt.instances.codesign.space import plan_blocks
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.boxes.branch import root_node
from crossopt.solvers.codesign.objective import joined, memory_of, values_of
from crossopt.solvers.proofs import Exact, WholeProof


@dataclass(frozen=True, slots=True)
class Screen:
    """Of each plan the chips at which it has a tangent, a price for each budget and a share for each tangent."""

    points: tuple[tuple[tuple[int, ...], ...], ...]
    """Of each chip the place of the literal of each part, among those that are left."""
    prices: tuple[tuple[float, ...], ...]
    shares: tuple[tuple[float, ...], ...]


def lines_of(screen: Screen) -> tuple[str, ...]:
    """A line for each plan: chips between commas, prices and shares, between semicolons."""
    return tuple(
        "; ".join((", ".join(" ".join(map(str, point)) for point in points), _reals(prices), _reals(shares)))
        for points, prices, shares in zip(screen.points, screen.prices, screen.shares, strict=True)
    )


def screen_in(lines: Sequence[str]) -> Screen:
    """The screen of such lines; a ValueError where one is none."""
    points, prices, shares = [], [], []
    for line in lines:
        fields = line.split("; ")
        if len(fields) != 3:
            raise ValueError(f"{line[:40]!r} has no chips, prices and shares")
        points.append(tuple(numbers_in(point) for point in fields[0].split(", ")))
        prices.append(_reals_in(fields[1]))
        shares.append(_reals_in(fields[2]))
    return Screen(tuple(points), tuple(prices), tuple(shares))


def _reals(figures: Sequence[float]) -> str:
    return " ".join(repr(figure) for figure in figures)


def _reals_in(text: str) -> tuple[float, ...]:
    found = tuple(float(number) for number in text.split(" ")) if text else ()
    if _reals(found) != text:
        raise ValueError(f"{text[:40]!r} is no line of figures")
    return found


# What a bound of an integer model rests on, made again from the question alone: plans, chips and rows, each with a reason.
#
#     plans        all of them on the best chip there could be; those that are not below the bound there are out
#     screens      tangents at chips that the proof names, with prices and shares that it names: plans that they bound are out, and literals
#                  with which they bound every plan (`formulation.codesign.screen`); any prices prove what they prove
#     model        tangents of the plans that are left, in the strong form, and rows for single chips where these lose a little
#     tree         in the integers of that model no time is below the bound (`formulation.certificate`)
#
# No solver is called or trusted here. The search for a proof takes the same steps (`solvers.codesign.linear.certify`).

_FIGURES, _BLOCK = 1 << 19, 256
"""Figures of tables, and plans, whose tangents are computed together at most."""
TOGETHER = 128
"""Plans up to which all are given a tangent where one is."""
MOST_ROWS, MOST_SCREENS = 150, 8
"""Work limits of the verification of a proof."""
TANGENT, HERE = 0, 1
"""Rows by a tangent of a plan, and for a plan on a single chip."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Plans and literals with which a design may still be below the bound."""

    instance: Instance
    space: Grid
    bound: float
    chip: choices.Chip
    plans: Plans
    needs: Array
    """Bytes of each plan, and those that are reserved."""
    roots: Array
    """No design with the plan takes less, if it is below the bound at all."""

    def __len__(self) -> int:
        return len(self.plans)


def rest_of(instance: Instance, bound: float, deadline: float = inf) -> Rest | None:
    """The plans that are below the bound on the best chip there could be; None where there are none. A TimeoutError where time is up."""
    if not isinstance(instance.workload, Transformer):
        raise ValueError("only plans of transformers have tangents")
    if instance.objective != "step_time" or instance.budget.step_time < inf or instance.ceilings:
        raise ValueError(f"tangents are of step times without a limit, and {instance.objective.replace('_', ' ')} is asked for")
    space = grid(instance)
    root = root_node(instance)
    best = corners(instance, space, root.box)
    parts, found = list[Plans](), [np.zeros(0)]
    for block in plan_blocks(instance):
        if monotonic() >= deadline:
            raise TimeoutError
        values = values_of(instance, best, block)[:, 0]
        open_rows = np.flatnonzero(values < bound)
        if isinstance(block, Plans) and len(open_rows):
            parts, found = [*parts, rows_of(block, open_rows)], [*found, values[open_rows]]
    plans = joined(parts)
    if not isinstance(plans, Plans):
        return None
    chip = choices.chip_of(instance, space, root.box)
    needs = memory_of(instance.workload, plans) + chip.best.reserved_memory
    return Rest(instance, space, bound, chip, plans, needs, np.concatenate(found))


def tangents_of(rest: Rest, which: Ints, points: Ints) -> choices.Tangents:
    """A tangent of each of these plans, at a chip of its own: a row of places of literals."""
    workload, cluster, found = rest.instance.workload, rest.instance.cluster, []
    if not isinstance(workload, Transformer):
        raise TypeError("only plans of transformers have tangents")
    block = max(min(_FIGURES // max(sum(map(len, rest.chip.parts)), 1), _BLOCK), 1)
    for start in range(0, len(which), block):
        rows = slice(start, start + block)
        own = {part.name: points[rows, column][:, None] for column, part in enumerate(rest.chip.parts)}
        found.append(tangents_at(workload, cluster, rest.chip, rest.plans, which[rows], own))
    return choices.join_tangents(found)


def screened(rest: Rest, screen: Screen) -> Rest:
    """What the prices of a screen leave."""
    if not len(screen.points) == len(screen.prices) == len(screen.shares) == len(rest):
        raise ValueError(f"a screen of {len(screen.points)} plans, where {len(rest)} are left")
    sizes = np.array([len(points) for points in screen.points])
    if not sizes.all():
        raise ValueError("a plan without a tangent has no prices")
    places = _points(rest.chip, [point for points in screen.points for point in points])
    every, starts = tangents_of(rest, np.repeat(np.arange(len(rest)), sizes), places), np.cumsum(sizes) - sizes
    bounds, masks = np.full(len(rest), -inf), {part.name: np.zeros(len(part), bool) for part in rest.chip.parts}
    for size in np.unique(sizes):
        which = np.flatnonzero(sizes == size)
        several = [every.rows(starts[which] + stage) for stage in range(int(size))]
        at = choices.At(*(_table([rows[plan] for plan in which]) for rows in (screen.prices, screen.shares)))
        bounds[which] = choices.bounds_at(rest.chip, several, rest.needs[which], rest.bound, at).bounds
        open_rows = np.flatnonzero(bounds[which] < rest.bound)
        if len(open_rows):  # excluded plans need no literals
            several, own = [tangents.rows(open_rows) for tangents in several], choices.At(at.prices[open_rows], at.shares[open_rows])
            found = choices.bounds_at(rest.chip, several, rest.needs[which[open_rows]], rest.bound, own)
            masks = {name: mask | found.literals[name] for name, mask in masks.items()}
    return left_by(rest, bounds, masks)


def left_by(rest: Rest, bounds: Array, masks: dict[str, Mask]) -> Rest:
    """The plans that are not bounded, and the literals of the masks."""
    open_rows = np.flatnonzero(bounds < rest.bound)
    chip = choices.restricted(rest.chip, masks)
    return replace(
        rest, chip=chip, plans=rows_of(rest.plans, open_rows), needs=rest.needs[open_rows], roots=np.maximum(rest.roots, bounds)[open_rows]
    )


def _table(rows: Sequence[Sequence[float]]) -> Array:
    """Rows of one length as an array: multipliers, or shares, of the tangents of each plan; a ValueError if lengths differ."""
    if len({len(row) for row in rows}) > 1:
        raise ValueError("plans with as many tangents need as many prices and shares")
    return np.array(rows, np.float64).reshape(len(rows), -1)


def _points(chip: choices.Chip, rows: Sequence[Sequence[int]]) -> Ints:
    """Places of literals, one row a chip; a ValueError where a part has no such literal."""
    for row in rows:
        if len(row) != len(chip.parts) or not all(0 <= literal < len(part) for literal, part in zip(row, chip.parts, strict=True)):
            raise ValueError(f"{tuple(row)} are no places of literals of the chip")
    return np.array(rows, np.int64).reshape(len(rows), len(chip.parts))


def first_model(rest: Rest) -> choices.Codesign:
    """The integer model of what is left, without tangents."""
    return choices.codesign(rest.chip, rest.plans, rest.needs, rest.roots, _time_limit_of(rest))


def model_of(rest: Rest, rows: Sequence[Sequence[int]]) -> choices.Codesign:
    """The integer model of what is left with these rows; a ValueError where one is no row of it."""
    for row in rows:
        if len(row) < 2 or row[0] not in {TANGENT, HERE} or not 0 <= row[1] < len(rest):
            raise ValueError(f"{tuple(row)} is no row about one of the plans that are left")
        if row[0] == TANGENT and rest.bound == inf:
            raise ValueError("a tangent does not show that there is no design, which may take longer than the model reaches")
    places = _points(rest.chip, [row[2:] for row in rows])
    touched = [index for index, row in enumerate(rows) if row[0] == TANGENT]
    plans = [plans_with(rest, rows[index][1]) for index in touched]
    several = [np.repeat(places[[index]], len(which), axis=0) for index, which in zip(touched, plans, strict=True)]
    every = tangents_of(rest, np.concatenate(plans), np.concatenate(several)) if touched else None
    problem, start = first_model(rest), 0
    for row, point in zip(rows, places, strict=True):
        if row[0] == HERE or every is None:
            problem = with_chip(rest, problem, row[1], point)
        else:
            count = len(plans_with(rest, row[1]))
            problem, start = with_tangent(rest, problem, row[1], every.rows(np.arange(start, start + count))), start + count
    return problem


def plans_with(rest: Rest, plan: int) -> Ints:
    """The plans whose tangents are taken with that of a plan."""
    return np.arange(len(rest)) if len(rest) <= TOGETHER else np.array([plan])


def with_tangent(rest: Rest, problem: choices.Codesign, plan: int, more: choices.Tangents) -> choices.Codesign:
    """A row for the tangent of a plan, lifted by all that are known."""
    row = int(np.flatnonzero(plans_with(rest, plan) == plan)[0])
    return with_strong_rows(choices.known(problem, more), np.array([len(problem.tangents) + row]))


def point_of(chip: choices.Chip, places: Ints) -> choices.Point:
    """The literals of a chip by the names of its parts."""
    return {part.name: int(literal) for part, literal in zip(chip.parts, places, strict=True)}


def price_here(rest: Rest, plan: int, places: Ints) -> tuple[float, bool]:
    """What the full model says of a plan on a chip, and whether the chip keeps the budgets."""
    chosen = rest.chip.places(point_of(rest.chip, places))
    found = corners(rest.instance, rest.space, Boxes(chosen[None], chosen[None]))
    return float(values_of(rest.instance, found, rows_of(rest.plans, np.array([plan])))[0, 0]), bool(found.alive[0])


def with_chip(rest: Rest, problem: choices.Codesign, plan: int, places: Ints) -> choices.Codesign:
    """Rows of one plan on one chip, and on those that offer no more; or that there is no such design."""
    point = point_of(rest.chip, places)
    value, alive = price_here(rest, plan, places)
    if rest.bound == inf and np.isfinite(value):
        raise ValueError(f"there is a design, which takes {value!r} s")
    if not np.isfinite(value):
        return choices.without(problem, point, plan if alive else None)
    plan_alone = rows_of(rest.plans, np.array([plan]))
    best = float(values_of(rest.instance, Corners(choices.compose(rest.chip, point), np.ones(1, bool)), plan_alone)[0, 0])
    problem = choices.with_monotone_row(problem, plan, best, choices.no_more(rest.chip, point))
    return choices.with_monotone_row(problem, plan, value, choices.only(rest.chip, point))


def _time_limit_of(rest: Rest) -> float:
    """The time up to which the model reaches: the bound, up to a whole number of quanta."""
    if rest.bound == inf:
        return 2.0 * float(rest.roots.max(initial=1.0))
    quantum = quantum_for(rest.bound, choices.STEPS)
    return goal_of(rest.bound, quantum) * quantum


def goal_of(bound: float, quantum: float) -> int:
    """The least whole number of quanta that is not below the bound."""
    return ceil(Fraction(bound) / Fraction(quantum))


def reach_of(rest: Rest, problem: choices.Codesign) -> int | None:
    """What must be proved of the model: that no time is below this, or None for no solution at all."""
    return None if rest.bound == inf else goal_of(rest.bound, problem.quantum)


def proof_faults(instance: Instance, bound: float, proof: WholeProof) -> tuple[str, ...]:
    """Why a proof does not show that no design is below the bound; nothing if it does."""
    try:
        return _faults(instance, bound, proof)
    except (ValueError, OverflowError) as error:
        return (f"the tree in whole numbers does not belong to the question: {error}",)


def integer_proof(question: Instance | Portfolio | MultiScaleQuestion, saved: DesignResult) -> IntegerProof | None:
    """The integer model of a proof, with its tree; None of other proofs, and where no plan is left for a model."""
    if not isinstance(question, Instance) or not isinstance(saved.proof, Exact):
        return None
    proof = saved.proof.whole
    rest = _left(question, inf if saved.bound is None else saved.bound, proof)
    if isinstance(rest, str):
        raise ValueError(rest)
    if rest is None:
        return None
    problem = model_of(rest, proof.rows)
    about = (
        f"objective: seconds a step in units of {problem.quantum!r}, never above those of a design; "
        "the model has the plans and the parts of chips that the bound does not rule out at once"
    )
    return IntegerProof(
        problem.model(), unpacked(proof.scale, proof.steps), about=about, unit=problem.quantum, limits=(rest.bound, rest.bound)
    )


def _faults(instance: Instance, bound: float, proof: WholeProof) -> tuple[str, ...]:
    rest = _left(instance, bound, proof)
    if not isinstance(rest, Rest):
        return () if rest is None else (rest,)
    problem = model_of(rest, proof.rows)
    found, goal = proved_bound(problem.model(), unpacked(proof.scale, proof.steps)), reach_of(rest, problem)
    if found is None or (goal is not None and found >= goal):
        return ()
    return (f"the tree in whole numbers proves {found} quanta of {problem.quantum!r} s, and {bound!r} s is told",)


def _left(instance: Instance, bound: float, proof: WholeProof) -> Rest | str | None:
    """What the screens of a proof leave; None where that is no plan, or why they do not belong to the question."""
    if len(proof.rows) > MOST_ROWS or len(set(proof.rows)) < len(proof.rows) or len(proof.screens) > MOST_SCREENS:
        return f"a proof has {MOST_ROWS:,} rows and {MOST_SCREENS} screens at most, none of them twice"
    rest = rest_of(instance, bound)
    for lines in proof.screens:
        if rest is None or not len(rest):
            return "there are more screens than plans ask for"
        rest = screened(rest, screen_in(lines))
    if rest is not None and len(rest):
        return rest
    return "there is a tree where no plan is left" if proof.rows or proof.steps else None
