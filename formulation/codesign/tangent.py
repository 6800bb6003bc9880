"""Tangents of the step time as rows: the form that the engines use.

Data      for some plans p and chips h a tangent:  T_p(chip) >= c + sum over the parts of a[part, k] z[part, k], for every chip, and as near
          as can be at h. The cost model itself is run on such sums (`separable`)
Choices   those of `codesign_rows`
Rows      those of `codesign_rows`, and for a tangent (c, a) of plan p
              strong      t >= sum over plans q of y[q] C_q + sum a z,   C_q = the most over q's tangents (c', a') of
                                                                               c' + sum over the parts of min over k of (a' - a)[part, k]
              weak        t >= c + sum a z - M (1 - y[p]),               M = c + sum over the parts of max over k of a[part, k] - least t
Objective least t

C_q is by how much plan q is slower than the terms of p tell, whatever the chip: the strong row holds for each q, has no M, and says of each
plan what the weak one says of p alone. With y[p] = 1 it is the tangent.

Why no logarithms, and no pieces of 1/x: a term is a table over the literals of a part. The model's floors, roots and reciprocals are looked
up in it and cost no error. Logarithms remain where two parts multiply, bytes by the size of one memory over the bandwidth of another.
At h the tangent loses what `separable` says, all-reduces by ring or tree and the share of a memory among bundles, and 1e-9 for rounding.
"""

from typing import cast

import numpy as np

from crossopt.crossflow.arrays import Array, Whole, distinct
from crossopt.crossflow.hardware import Cluster, Hardware
from crossopt.crossflow.pipeline import Terms as PipelineTerms
from crossopt.crossflow.pipeline import step_time
from crossopt.crossflow.plan import PLAN_FIELDS, Plans, rows_of
from crossopt.crossflow.transformer import Parts, parts_of, terms
from crossopt.crossflow.workload import Transformer
from crossopt.formulation.codesign.parts import Chip, Point, offered, with_figures
from crossopt.formulation.codesign.rows import Codesign, Tangents, costs
from crossopt.formulation.codesign.separable import Capacity, bound_of, gathered, table_of
from crossopt.formulation.model import Linear, Terms
from crossopt.formulation.rounding import floored

_GUARD = 1.0e-9
"""The share of its largest figures by which a tangent is lowered: some million times the error of its sums."""


def tangents_at(model: Transformer, cluster: Cluster, chip: Chip, plans: Plans, which: Whole, point: Point) -> Tangents:
    """The tangents of some of the plans at one chip."""
    constants, slopes = _tangents(model, cluster, chip, rows_of(plans, which), point)
    return Tangents(which, constants, slopes)


def with_strong_rows(problem: Codesign, which: Whole) -> Codesign:
    """The question with these of its tangents as rows that say something of every plan."""
    return problem.also(*(_strong_row(problem, int(row)) for row in which))


def with_weak_rows(problem: Codesign, which: Whole) -> Codesign:
    """The same with rows that say nothing of other plans: right as well, and the foil of the strong ones."""
    return problem.also(*(_weak_row(problem, int(row)) for row in which))


def lift_row(problem: Codesign, name: str, slopes: Array, every: Array) -> Linear:
    """sum_q y[q] C_q + sum slopes z - t <= 0, with the least slope of each part moved into C, and C_q what q's tangents say beside these.

    `every` is that of each tangent; of a plan without any the root says it.
    """
    starts = starts_of(problem.chip)
    lowest = _least(slopes[None], starts)[0]
    constants = problem.roots - _most(slopes, starts).sum()
    np.maximum.at(constants, problem.tangents.plans, every)
    return Linear(name, (*_slope_terms(problem, slopes, lowest), *costs(problem, constants + lowest.sum())), high=0)


def _strong_row(problem: Codesign, row: int) -> Linear:
    """The row of the tangent as it is."""
    slopes = problem.tangents.slopes[row]
    every = problem.tangents.constants + _least(problem.tangents.slopes - slopes, starts_of(problem.chip)).sum(axis=1)
    return lift_row(problem, f"tangent {row}, plan {problem.tangents.plans[row]}", slopes, every)


def _weak_row(problem: Codesign, row: int) -> Linear:
    """sum a_p z + M y[p] - t <= M - c_p."""
    slopes, plan, starts = problem.tangents.slopes[row], int(problem.tangents.plans[row]), starts_of(problem.chip)
    lowest = _least(slopes[None], starts)[0]
    terms = _slope_terms(problem, slopes, lowest)
    constant = int(floored([problem.tangents.constants[row] + lowest.sum()], problem.quantum)[0])
    largest = _most_of(problem.chip, terms)
    big = max(constant + largest - problem.time.low, 0)
    return Linear(f"weak tangent {row}, plan {plan}", (*terms, (big, problem.choices[plan]), (-1, problem.time)), high=big - constant)


def _slope_terms(problem: Codesign, slopes: Array, lowest: Array) -> Terms:
    """The slopes above the least of each part, floored."""
    sizes = [len(part) for part in problem.chip.parts]
    whole = floored(slopes - np.repeat(lowest, sizes), problem.quantum).tolist()
    literals = (literal for part in problem.chip.parts for literal in part.literals)
    return tuple((cost, literal) for cost, literal in zip(whole, literals, strict=True) if cost)


def _most_of(chip: Chip, terms: Terms) -> int:
    cost = {literal: amount for amount, literal in terms}
    return sum(max(cost.get(literal, 0) for literal in part.literals) for part in chip.parts)


def starts_of(chip: Chip) -> Whole:
    """Where the literals of each part begin."""
    return np.cumsum([0, *map(len, chip.parts)])[:-1]


def _least(slopes: Array, starts: Whole) -> Array:
    return np.minimum.reduceat(slopes, starts, axis=-1)


def _most(slopes: Array, starts: Whole) -> Array:
    return np.maximum.reduceat(slopes, starts, axis=-1)


def terms_at(model: Transformer, cluster: Cluster, chip: Chip, plans: Plans, point: Point) -> PipelineTerms:
    """What a step is made of, each a bound with one term for each part of the chip, as near as can be at one chip."""
    return terms(model, _literals(chip, point), plans, _shared_parts(model, cluster, chip, plans, point))


def _tangents(model: Transformer, cluster: Cluster, chip: Chip, plans: Plans, point: Point) -> tuple[Array, Array]:
    bound = bound_of(step_time(terms_at(model, cluster, chip, plans, point)), point)
    constant = np.broadcast_to(bound.constant, (len(plans), 1))[:, 0]
    tables = [np.broadcast_to(bound.terms.get(part.name, np.zeros(1)), (len(plans), 1, len(part)))[:, 0] for part in chip.parts]
    size = np.abs(constant) + sum(np.abs(table).max(axis=1) for table in tables)
    found = constant - _GUARD * size
    if not np.isfinite(found).all():
        raise ValueError("a difference of lower bounds has found its way into a step time")
    return found, np.concatenate(tables, axis=1)


def _shared_parts(model: Transformer, cluster: Cluster, chip: Chip, plans: Plans, point: Point) -> Parts:
    """The parts of each plan's step, once for all plans that differ only in what `terms` makes of them and meet at one chip."""
    columns = [getattr(plans, name) for name in PLAN_FIELDS if name not in {"interleave", "overlap"}]
    own = {name: place for name, place in point.items() if isinstance(place, np.ndarray)}
    rows, number = distinct(*columns, *(place[:, 0] for place in own.values()))
    there = {name: own[name][rows] if name in own else place for name, place in point.items()}
    return cast(Parts, gathered(parts_of(model, _literals(chip, there), cluster, rows_of(plans, rows)), number, point))


def _literals(chip: Chip, point: Point) -> Hardware:
    """The chip with what each part offers as a table over its literals."""
    tables = {}
    for part in chip.parts:
        figures = {name: table_of(part.name, figure, point) for name, figure in offered(chip, part).items()}
        tables[part.name] = {name: Capacity(table) if name.endswith("capacity") else table for name, table in figures.items()}
    return with_figures(chip, tables)
