"""Tangents of the step time as rows, the form that the engines use, from separable lower bounds of the cost model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from crossopt.crossflow.arrays import Array, Ints, Mask, distinct
from crossopt.crossflow.hardware import Cluster, Hardware
from crossopt.crossflow.pipeline import Terms as PipelineTerms
from crossopt.crossflow.pipeline import step_time
from crossopt.crossflow.plan import PLAN_FIELDS, Plans, rows_of
from crossopt.crossflow.transformer import Parts, parts_of, terms
from crossopt.crossflow.workload import Transformer
from crossopt.formulation.codesign.choices import Chip, Codesign, Point, Tangents, costs, offered, with_figures
from crossopt.formulation.model import Linear, Terms, floored

# Lower bounds with one term for each part of a chip, got by running the cost model's own formulas on them.
#
# A chip is one literal for each of its parts: of the cores' literals k with an area and a power, of the L2's, and so on. A quantity q is
# bounded from below by a sum over the parts, each term a table over the literals of its part:
#
#     q(k_1, k_2, ...)  >=  constant + term_1[k_1] + term_2[k_2] + ...
#
# Tables need no linearization of 1/x, floors or square roots: a term is whatever the model says of that literal. The rules:
#
#     one part        any formula, literal by literal: there the bound is the model itself
#     a + b, c a      term by term, for numbers c >= 0
#     max(a, b)       the one that is larger at a chip h that is given; a maximum is above either
#     min(a, b)       a - max(0, most that a - b can be), or the same with b and a; the one that is larger at h
#     u[i] w[j]       (DRAM bytes by the size of the L2, over the bandwidth of the DRAM) the largest alpha[i] + beta[j] that meets u w at h,
#                     from the tangent of exp in logarithms: beta = u_h w_h (1/2 + log(w / w_h)), then alpha[i] = min_j u[i] w[j] - beta[j],
#                     then beta[j] = min_i u[i] w[j] - alpha[i]; since x - log x >= 1, alpha and beta are u_h w_h / 2 at h
#     f(room / n)     (bytes by the size of the L1 a bundle) any formula over both literals, then the largest alpha[i] + beta[j] below it in
#                     the same way, from beta = f_h (1/2 + log(f[i_h, j] / f_h))
#
# At h itself nothing is lost but by min. What is none of these raises, or is not a number, which no sum forgets.

_NOTHING, _ZERO = np.zeros(1), np.zeros(())

ChipPoint = Mapping[str, int | Ints]
"""The literal of each part, by its place: the chip at which bounds shall be close; or a column of them, one for each row of the bounds."""


@dataclass(frozen=True, slots=True, eq=False)
class Separable(NDArrayOperatorsMixin):
    """constant + a table over the literals of each of some parts (their last axis); with a single part the constant is 0."""

    constant: Array
    terms: Mapping[str, Array]
    point: ChipPoint

    def here(self) -> Array:
        """The bound at the given chip."""
        return np.asarray(self.constant + sum((at(table, self.point[part]) for part, table in self.terms.items()), np.float64(0)))

    def least(self) -> Array:
        """The least over all chips."""
        return np.asarray(self.constant + sum((table.min(axis=-1) for table in self.terms.values()), np.float64(0)))

    def most(self) -> Array:
        """The most over all chips."""
        return np.asarray(self.constant + sum((table.max(axis=-1) for table in self.terms.values()), np.float64(0)))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any) -> Any:  # noqa: ANN401 - numpy's protocol
        if method != "__call__":
            return NotImplemented
        inputs = tuple(value.apart() if isinstance(value, Joint) else value for value in inputs)
        parts = {part for value in inputs if isinstance(value, Separable) for part in value.terms}
        if len(parts) == 1:
            return _alone(ufunc, inputs, parts.pop(), self.point)
        if ufunc not in _RULES:
            raise TypeError(f"no rule keeps {ufunc.__name__} of several parts a lower bound")
        return _RULES[ufunc](*(bound_of(value, self.point) for value in inputs))

    def __array_function__(self, function: Callable[..., Any], types: Any, arguments: Any, options: Any) -> Any:  # noqa: ANN401
        del types
        if function is not np.where or options:
            raise TypeError(f"no rule keeps {function.__name__} a lower bound")
        mask, chosen, otherwise = arguments
        return _chosen(np.asarray(mask), bound_of(chosen, self.point), bound_of(otherwise, self.point))


@dataclass(frozen=True, slots=True, eq=False)
class Capacity(NDArrayOperatorsMixin):
    """The size of a memory, which may be shared out among what another part offers."""

    sizes: Separable

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any) -> Any:  # noqa: ANN401
        scaled = ufunc is np.multiply or (ufunc is np.divide and inputs[0] is self)
        sharers = [value for value in inputs if isinstance(value, Separable) and value.terms.keys() != self.sizes.terms.keys()]
        if method != "__call__" or (sharers and not (ufunc is np.divide and scaled)):
            raise TypeError(f"no rule keeps {ufunc.__name__} of a capacity and something else a lower bound")
        if sharers:
            return _joint(self.sizes, sharers[0])
        found = ufunc(*(value.sizes if isinstance(value, Capacity) else value for value in inputs))
        return Capacity(found) if scaled else found


@dataclass(frozen=True, slots=True, eq=False)
class Joint(NDArrayOperatorsMixin):
    """A figure by the literals of one part and the different figures of another one, as last axes."""

    parts: tuple[str, str]
    table: Array
    number: Ints
    """For each literal of the second part which of the figures it has."""
    point: ChipPoint

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any) -> Any:  # noqa: ANN401
        if method != "__call__":
            return NotImplemented
        others = [value for value in inputs if isinstance(value, Separable)]
        if ufunc is np.divide and inputs[0] is self and others and self.parts[1] not in others[0].terms:
            return self._over(others[0])
        if others:
            return ufunc(*(value.apart() if isinstance(value, Joint) else value for value in inputs))
        if any(isinstance(value, Joint) and value.parts != self.parts for value in inputs):
            return ufunc(*(value.apart() if isinstance(value, Joint) else value for value in inputs))
        tables = (value.table if isinstance(value, Joint) else np.asarray(value, np.float64)[..., None, None] for value in inputs)
        return replace(self, table=ufunc(*tables))

    def apart(self) -> Separable:
        """alpha[i] + beta[j] below the table, as large as both can be, and equal at the given chip."""
        return self._spread(self._short())

    def _short(self) -> Separable:
        """Both terms, by the distinct figures of the second part instead of its literals."""
        first, second = self.parts
        figure = self.number[self.point[second]]
        row = at(np.swapaxes(self.table, -1, -2), np.asarray(self.point[first])[..., None])
        here = at(row, figure)[..., None]
        alpha = (self.table - (here * (0.5 + np.log(row / here)))[..., None, :]).min(axis=-1)
        beta = (self.table - alpha[..., :, None]).min(axis=-2)
        return Separable(np.zeros(()), {first: alpha, second: beta}, {**self.point, second: figure})

    def _spread(self, short: Separable) -> Separable:
        """From figures back to literals."""
        second = self.parts[1]
        return Separable(short.constant, {**short.terms, second: short.terms[second][..., self.number]}, self.point)

    def _over(self, other: Separable) -> Separable:
        """The quotient, worked out by figures, of which there are fewer."""
        short = self._short()
        return self._spread(short / replace(other, point=short.point))


def _joint(sizes: Separable, sharers: Separable) -> Joint:
    """Each size over each different number of sharers."""
    [(first, size)], [(second, count)] = sizes.terms.items(), sharers.terms.items()
    figures, number = np.unique(count, return_inverse=True)
    return Joint((first, second), size[..., :, None] / figures, number, sizes.point)


def at(table: Array, index: int | Ints) -> Array:
    """The entries of the literal at one place, or of each row's own."""
    if not isinstance(index, np.ndarray):
        return np.asarray(table[..., index])
    rows = np.broadcast_to(table, (*np.broadcast_shapes(table.shape[:-1], index.shape), table.shape[-1]))
    return np.take_along_axis(rows, np.broadcast_to(index, rows.shape[:-1])[..., None], axis=-1)[..., 0]


def table_of(part: str, values: Array, point: ChipPoint) -> Any:  # noqa: ANN401 - the model's formulas take it for an array
    """What one part decides, by its literals."""
    return _table(part, values, point)


def _table(part: str, values: Array, point: ChipPoint) -> Separable:
    return Separable(_ZERO, {part: values}, point)


def bound_of(value: Any, point: ChipPoint) -> Separable:  # noqa: ANN401
    """The value itself, or a number as a bound without terms."""
    value = value.apart() if isinstance(value, Joint) else value
    return value if isinstance(value, Separable) else Separable(np.asarray(value, np.float64), {}, point)


def gathered(value: Any, rows: Ints, point: ChipPoint) -> Any:  # noqa: ANN401 - numbers, bounds, and records of them
    """Rows of a figure, or of all that are in a record; what has no rows, or one for all, is left as it is."""
    if isinstance(value, Separable | Joint):
        bound = bound_of(value, value.point)
        terms = {part: _rows(table, rows, 3) for part, table in bound.terms.items()}
        return Separable(_rows(bound.constant, rows, 2), terms, point)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: gathered(getattr(value, field.name), rows, point) for field in fields(value)})
    if isinstance(value, tuple):
        return tuple(gathered(item, rows, point) for item in value)
    return _rows(value, rows, 2) if isinstance(value, np.ndarray) else value


def _rows(figures: Array, rows: Ints, axes: int) -> Array:
    """Rows of an array that has as many axes as figures by plan have."""
    return figures[rows] if np.ndim(figures) == axes and len(figures) > 1 else figures


def _parts(bounds: Sequence[Separable]) -> list[str]:
    return sorted({part for bound in bounds for part in bound.terms})


def _alone(ufunc: np.ufunc, inputs: Sequence[Any], part: str, point: ChipPoint) -> Separable:
    """The model's own arithmetic, literal by literal."""
    return _table(part, ufunc(*(_by_literal(value, part) for value in inputs)), point)


def _by_literal(value: Any, part: str) -> Array:  # noqa: ANN401
    """A figure with the literals of a part, the only one that it may have, as its last axis."""
    if not isinstance(value, Separable):
        return np.asarray(value, np.float64)[..., None]
    table = value.terms.get(part, _NOTHING)
    return table if value.constant is _ZERO else value.constant[..., None] + table


def _each(left: Separable, right: Separable, work: Callable[[Array, Array], Array]) -> dict[str, Array]:
    """Some work on the terms of both, 0 where a term is not there."""
    return {part: work(left.terms.get(part, _NOTHING), right.terms.get(part, _NOTHING)) for part in _parts((left, right))}


def _added(left: Separable, right: Separable) -> Separable:
    return Separable(left.constant + right.constant, _each(left, right, np.add), left.point)


def _subtracted(left: Separable, right: Separable) -> Separable:
    """Less a number; the difference of two lower bounds bounds nothing."""
    return replace(left, constant=left.constant - (np.nan if right.terms else right.constant))


def _multiplied(left: Separable, right: Separable) -> Separable:
    if left.terms and right.terms:
        return _distributed(left, right) if len(right.terms) == 1 else _distributed(right, left)
    bound, number = (left, right.constant) if left.terms else (right, left.constant)
    if np.any(number < 0.0):
        raise TypeError("a negative multiple of a lower bound is none")
    return Separable(bound.constant * number, {part: table * number[..., None] for part, table in bound.terms.items()}, bound.point)


def _divided(left: Separable, right: Separable) -> Separable:
    if len(right.terms) > 1:
        raise TypeError("no rule keeps a quotient by a sum a lower bound")
    return _multiplied(left, 1.0 / right if right.terms else replace(right, constant=1.0 / right.constant))


def _distributed(left: Separable, right: Separable) -> Separable:
    """Each term of a sum times what a single other part decides."""
    [(part, factor)] = right.terms.items() if len(right.terms) == 1 else [("", np.zeros(0))]
    if not part or part in left.terms or np.any(factor < 0.0):
        raise TypeError("no rule keeps this product of sums a lower bound")
    products = [_product(table_of(name, table, left.point), right) for name, table in left.terms.items()]
    return sum(products, _table(part, left.constant[..., None] * factor, left.point))


def _product(left: Separable, right: Separable) -> Separable:
    """alpha[i] + beta[j] <= u[i] w[j], as large as both can be, and equal at the given chip."""
    (first, u), (second, w) = *left.terms.items(), *right.terms.items()
    u, w = np.broadcast_arrays(u[..., :, None], w[..., None, :])
    meeting, scale = left.here() * right.here(), right.here()[..., None, None]
    grid, beta = u * w, meeting[..., None, None] * (0.5 + np.log(w / scale))
    alpha = (grid - beta).min(axis=-1)
    return Separable(np.zeros(()), {first: alpha, second: (grid - alpha[..., :, None]).min(axis=-2)}, left.point)


def _larger(left: Separable, right: Separable) -> Separable:
    here = np.stack(np.broadcast_arrays(left.here(), right.here()))
    chosen = _chosen(here[0] >= here[1], left, right)
    return replace(chosen, constant=np.where(np.isnan(here).any(axis=0), np.nan, chosen.constant))


def _smaller(left: Separable, right: Separable) -> Separable:
    """Either less what it may be above the other."""
    first = replace(left, constant=left.constant - np.maximum(_excess(left, right), 0.0))
    second = replace(right, constant=right.constant - np.maximum(_excess(right, left), 0.0))
    return _larger(first, second)


def _excess(left: Separable, right: Separable) -> Array:
    return Separable(left.constant - right.constant, _each(left, right, np.subtract), left.point).most()


def _chosen(mask: Mask, left: Separable, right: Separable) -> Separable:
    terms = _each(left, right, lambda first, second: np.where(mask[..., None], first, second))
    constant = np.where(mask, left.constant, right.constant)
    if len(terms) != 1:
        return Separable(constant, terms, left.point)
    [(part, table)] = terms.items()
    return _table(part, table + constant[..., None], left.point)


_RULES: dict[np.ufunc, Callable[[Separable, Separable], Separable]] = {
    np.add: _added,
    np.subtract: _subtracted,
    np.multiply: _multiplied,
    np.divide: _divided,
    np.maximum: _larger,
    np.minimum: _smaller,
}


# Tangents of the step time as rows: the form that the engines use.
#
# Data      for some plans p and chips h a tangent:  T_p(chip) >= c + sum over the parts of a[part, k] z[part, k], for every chip, and as
#           near as can be at h. The cost model itself is run on such sums (`separable`)
# Choices   those of `codesign_rows`
# Rows      those of `codesign_rows`, and for a tangent (c, a) of plan p
#               strong      t >= sum over plans q of y[q] C_q + sum a z,   C_q = the most over q's tangents (c', a') of
#                                                                                c' + sum over the parts of min over k of (a' - a)[part, k]
#               weak        t >= c + sum a z - M (1 - y[p]),               M = c + sum over the parts of max over k of a[part, k] - least t
# Objective least t
#
# C_q is by how much plan q is slower than the terms of p tell, whatever the chip: the strong row holds for each q, has no M, and says of
# each plan what the weak one says of p alone. With y[p] = 1 it is the tangent.
#
# Why no logarithms, and no pieces of 1/x: a term is a table over the literals of a part. The model's floors, roots and reciprocals are
# looked up in it and cost no error. Logarithms remain where two parts multiply, bytes by the size of one memory over the bandwidth of
# another. At h the tangent loses what `separable` says, all-reduces by ring or tree and the share of a memory among bundles, and 1e-9 for
# rounding.

_GUARD = 1.0e-9
"""The share of its largest figures by which a tangent is lowered: some million times the error of its sums."""


def tangents_at(model: Transformer, cluster: Cluster, chip: Chip, plans: Plans, which: Ints, point: Point) -> Tangents:
    """The tangents of some of the plans at one chip."""
    constants, slopes = _tangents(model, cluster, chip, rows_of(plans, which), point)
    return Tangents(which, constants, slopes)


def with_strong_rows(problem: Codesign, which: Ints) -> Codesign:
    """The question with these of its tangents as rows that say something of every plan."""
    return problem.also(*(_strong_row(problem, int(row)) for row in which))


def with_weak_rows(problem: Codesign, which: Ints) -> Codesign:
    """The question with these of its tangents as rows that constrain their own plan alone: valid, but weaker than `with_strong_rows`."""
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
    quanta = floored(slopes - np.repeat(lowest, sizes), problem.quantum).tolist()
    literals = (literal for part in problem.chip.parts for literal in part.literals)
    return tuple((cost, literal) for cost, literal in zip(quanta, literals, strict=True) if cost)


def _most_of(chip: Chip, terms: Terms) -> int:
    cost = {literal: amount for amount, literal in terms}
    return sum(max(cost.get(literal, 0) for literal in part.literals) for part in chip.parts)


def starts_of(chip: Chip) -> Ints:
    """Where the literals of each part begin."""
    return np.cumsum([0, *map(len, chip.parts)])[:-1]


def _least(slopes: Array, starts: Ints) -> Array:
    return np.minimum.reduceat(slopes, starts, axis=-1)


def _most(slopes: Array, starts: Ints) -> Array:
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
    own = {name: index for name, index in point.items() if isinstance(index, np.ndarray)}
    rows, number = distinct(*columns, *(index[:, 0] for index in own.values()))
    there = {name: own[name][rows] if name in own else index for name, index in point.items()}
    return cast(Parts, gathered(parts_of(model, _literals(chip, there), cluster, rows_of(plans, rows)), number, point))


def _literals(chip: Chip, point: Point) -> Hardware:
    """The chip with what each part offers as a table over its literals."""
    tables = {}
    for part in chip.parts:
        figures = {name: table_of(part.name, figure, point) for name, figure in offered(chip, part).items()}
        tables[part.name] = {name: Capacity(table) if name.endswith("capacity") else table for name, table in figures.items()}
    return with_figures(chip, tables)
