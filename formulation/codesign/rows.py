"""The question which chip and which plan make the step shortest, as a choice among literals: what all its forms have in common.

Data      plans p, each with T_p(root), its time on the best chip there could be; the literals k of each part of a chip
Choices   y[p] in {0, 1}, one of them 1; z[part, k] in {0, 1}, one of them 1 in each part; t integer, the time in quanta
Rows      budgets         those of `codesign_parts`
          memory          for each size m of the memory:  sum of y[p] of plans that need more  <=  sum of z[k] of stacks that hold more
          root            t >= sum of T_p(root) y[p]
          monotone row    of plan p at a chip h, on which no chip is faster that offers no more than h in any part (`no_more`):
                          t >= v - (v - T_p(root)) sum of z of literals that offer more - sum over other plans q of (v - T_q(root)) y[q]
                          with v = T_p(h), and no difference below 0
          without         a chip that does not keep the budgets after all:  sum of its z  <=  parts - 1
Objective least t

The monotone row says nothing of chips that offer more in some part: it is weak, and there to end the loop where tangents lose a little.
Costs are floored: each row is less than one quantum for each part, and one for the plan, below the real one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crossopt.crossflow.arrays import Array, Mask, Whole
from crossopt.crossflow.plan import Plans, plan_at
from crossopt.formulation.codesign.parts import Chip, Masks, Part, Point, chip_rows, offered
from crossopt.formulation.model import Constraint, ExactlyOne, Linear, Model, Terms, Values, Variable
from crossopt.formulation.rounding import floored, quantum_for

STEPS = 1 << 20
"""Quanta in the time of the best design known."""


@dataclass(frozen=True, slots=True)
class Tangents:
    """Lower bounds of the time of plans, one a row: constant + sum over the parts of the slope of the literal that is chosen."""

    plans: Whole
    constants: Array
    slopes: Array
    """One column a literal, part after part."""

    def __len__(self) -> int:
        return len(self.plans)

    def rows(self, rows: Whole) -> "Tangents":
        """Some of them."""
        return Tangents(self.plans[rows], self.constants[rows], self.slopes[rows])

    def columns(self, columns: Whole) -> "Tangents":
        """The same over some of the literals."""
        return Tangents(self.plans, self.constants, self.slopes[:, columns])

    def at(self, chip: Chip, point: Point) -> Array:
        """What they say of one chip."""
        starts = np.cumsum([0, *map(len, chip.parts)])
        columns = [start + point[part.name] for start, part in zip(starts, chip.parts)]  # noqa: B905 - the last start is the end
        return np.asarray(self.constants + self.slopes[:, columns].sum(axis=1))


@dataclass(frozen=True, slots=True)
class Codesign:
    """The question as far as it is written in rows."""

    chip: Chip
    plans: Plans
    needs: Array
    """Bytes of each plan."""
    roots: Array
    """Time of each plan on the best chip there could be."""
    choices: tuple[Variable, ...]
    time: Variable
    quantum: float
    tangents: Tangents
    rows: tuple[Constraint, ...]
    added: tuple[Variable, ...] = ()
    """Variables that a form needs beside the choices."""

    def model(self) -> Model:
        """All rows, for the least time."""
        literals = (literal for part in self.chip.parts for literal in part.literals)
        return Model((self.time, *self.choices, *literals, *self.added), self.rows, ((1, self.time),))

    def also(self, *rows: Constraint) -> "Codesign":
        """The question with more rows."""
        return replace(self, rows=(*self.rows, *rows))

    def decoded(self, values: Values) -> tuple[Point, int]:
        """The chip and the plan that values stand for."""
        return self.chip.chosen(values), next(place for place, choice in enumerate(self.choices) if values[choice])


def codesign(chip: Chip, plans: Plans, needs: Array, roots: Array, below: float) -> Codesign:
    """The question which of the plans is below a time, on which chip; as yet without tangents."""
    quantum = quantum_for(below, STEPS)
    choices = tuple(Variable(f"plan {place}: {plan_at(plans, place)}") for place in range(len(plans)))
    least, most = floored([roots.min(initial=below), below], quantum).tolist()
    nothing = Tangents(np.zeros(0, np.int64), np.zeros(0), np.zeros((0, sum(map(len, chip.parts)))))
    time = Variable("time", min(least, most), most)
    start = Codesign(chip, plans, needs, roots, choices, time, quantum, nothing, ())
    floor_row = Linear("time on the best chip", costs(start, roots), high=0)
    rows = (ExactlyOne("one plan", choices), floor_row, *_memory_rows(chip, choices, needs), *chip_rows(chip))
    return start.also(*rows)


def known(problem: Codesign, more: Tangents) -> Codesign:
    """The question with more tangents to lift rows by, none of them a row yet."""
    return replace(problem, tangents=join_tangents([problem.tangents, more]))


def join_tangents(parts: Sequence[Tangents]) -> Tangents:
    """Several lists of tangents in one."""
    return Tangents(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("plans", "constants", "slopes")))


def with_cutoff(problem: Codesign, below: float) -> Codesign:
    """The question for designs below a time."""
    most = floored([below], problem.quantum).tolist()[0]
    return problem.also(Linear(f"below {below!r}", ((1, problem.time),), high=max(most, problem.time.low)))


def with_monotone_row(problem: Codesign, plan: int, value: float, as_good: Masks) -> Codesign:
    """The question with a row that no chip of these literals brings the plan below the value."""
    drops = (-floored(np.minimum(problem.roots - value, 0.0), problem.quantum)).tolist()
    better = [literal for part in problem.chip.parts for literal, kept in zip(part.literals, as_good[part.name], strict=True) if not kept]
    others = [(drop, choice) for place, (drop, choice) in enumerate(zip(drops, problem.choices, strict=True)) if place != plan]
    terms = tuple((drop, variable) for drop, variable in (*others, *((drops[plan], literal) for literal in better)) if drop)
    least = floored([value], problem.quantum).tolist()[0]
    return problem.also(Linear(f"row {len(problem.rows)}, plan {plan} on this chip", (*terms, (1, problem.time)), low=least))


def without(problem: Codesign, point: Point, plan: int | None) -> Codesign:
    """The question without one chip, for one plan or for all."""
    chosen = [part.literals[point[part.name]] for part in problem.chip.parts] + ([] if plan is None else [problem.choices[plan]])
    words = "this chip" if plan is None else f"plan {plan} on this chip"
    return problem.also(Linear(f"row {len(problem.rows)}, not {words}", tuple((1, variable) for variable in chosen), high=len(chosen) - 1))


def only(chip: Chip, point: Point) -> Masks:
    """The literals of one chip."""
    return {part.name: np.arange(len(part)) == point[part.name] for part in chip.parts}


def no_more(chip: Chip, point: Point) -> Masks:
    """The literals that offer no more than a chip's in anything; with as many bundles, in which the time may rise as well as fall."""
    return {part.name: _no_more(chip, part, int(point[part.name])) for part in chip.parts}


def _no_more(chip: Chip, part: Part, place: int) -> Mask:
    figures = offered(chip, part)
    bundles = figures.pop("bundles", np.zeros(len(part)))
    same: Mask = bundles == bundles[place]
    for figure in figures.values():
        same = same & (figure <= figure[place])
    return same


def costs(problem: Codesign, seconds: Array) -> Terms:
    """seconds of the chosen plan - t, floored."""
    whole = floored(seconds, problem.quantum).tolist()
    return (*((cost, choice) for cost, choice in zip(whole, problem.choices, strict=True) if cost), (-1, problem.time))


def _memory_rows(chip: Chip, choices: tuple[Variable, ...], needs: Array) -> Iterator[Constraint]:
    """Plans that need more than some stacks hold are chosen only with stacks that hold more."""
    for part in chip.parts:
        if part.name == "dram":
            capacity = np.asarray(part.best.dram.capacity)
            for size in np.unique(capacity)[:-1]:
                plans = [(1, choice) for choice, need in zip(choices, needs, strict=True) if need > size]
                stacks = [(-1, literal) for literal, held in zip(part.literals, capacity, strict=True) if held > size]
                if plans:
                    yield Linear(f"plans beyond {size:g} bytes", (*plans, *stacks), high=0)
