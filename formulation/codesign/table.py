"""Tables of the step time over plans and parts of the chip: the form without any mathematics, for small questions.

Data      for each plan p and each combination (k, l, ...) of literals of some parts the time on the best chip that has them, all other
          choices free; where no such chip keeps the budgets or holds the plan, there is no row
Choices   those of `codesign_rows`; plan = sum of p y[p], and for each part in a table literal = sum of k z[k]; m integer for each table
Rows      those of `codesign_rows`, and for each table    (plan, literal, literal, ..., m) is one of its rows,    t >= m
Objective least t

A table of one part is that part's marginal: what the plan costs at least with that choice. A table of two says what they cost together. A
table of all parts is the question itself, and its optimum the best design, to a quantum. There is no linearization, so no error but that of
rounding down: what a table does not say is what its parts cost together with those that are not in it.

Size is the price: plans times the product of the parts' literals. In a MILP each row becomes a 0/1 variable (`linearize`).
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product
from math import prod

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.crossflow.hardware import take
from crossopt.crossflow.transformer import price
from crossopt.crossflow.workload import Transformer
from crossopt.formulation.codesign.parts import Part
from crossopt.formulation.codesign.rows import Codesign
from crossopt.formulation.model import Linear, Table, Terms, Variable
from crossopt.formulation.rounding import floored
from crossopt.instances.codesign.boxes import Boxes, Grid, corners
from crossopt.instances.codesign.instance import Instance

_MOST = 200_000
"""Rows of a table."""
_USUAL = 20_000
"""Rows of all tables of a question that is not told which to take."""
_PLAN = "plan"


def with_tables(problem: Codesign, instance: Instance, space: Grid) -> Codesign:
    """The question with one table of all its parts if that is small, else with tables of one part and of two, smallest first.

    Parts whose tables would be larger than `_USUAL` rows together are left without: their cost is left at its best. Of hardware that is
    given the bound on the best chip is the price, and where a part has no choice there is no chip: neither has a table.
    """
    sizes = {part.name: len(part) for part in problem.chip.parts}
    if not sizes or not all(sizes.values()):
        return problem
    if len(problem.plans) * prod(sizes.values()) <= _USUAL:
        return with_table(problem, instance, space, tuple(sizes))
    room = _USUAL
    for names in sorted([*combinations(sizes, 1), *combinations(sizes, 2)], key=lambda names: (len(names), prod(sizes[n] for n in names))):
        rows = len(problem.plans) * prod(sizes[name] for name in names)
        if rows <= room:
            problem, room = with_table(problem, instance, space, names), room - rows
    return problem


def with_table(problem: Codesign, instance: Instance, space: Grid, names: Sequence[str]) -> Codesign:
    """The question with a table over its plans and the literals of some parts."""
    parts = [part for part in problem.chip.parts if part.name in names]
    combined = np.array(list(product(*(range(len(part)) for part in parts))), np.int64)
    if len(problem.plans) * len(combined) > _MOST:
        raise ValueError(f"a table of {len(problem.plans) * len(combined):,} rows; at most {_MOST:,}: take fewer parts")
    words = " and ".join(part.name for part in parts)
    least = Variable(f"time by {words}", problem.time.low, problem.time.high)
    times = floored(np.minimum(_times(problem, instance, space, parts, combined), problem.quantum * (least.high + 1)), problem.quantum)
    rows = tuple(
        (plan, *chosen, max(int(times[plan, row]), least.low))
        for row, chosen in enumerate(combined.tolist())
        for plan in range(len(problem.plans))
        if times[plan, row] <= least.high
    )
    problem = _numbered(problem, _PLAN, problem.choices)
    for part in parts:
        problem = _numbered(problem, part.name, part.literals)
    columns = (_number(_PLAN, problem.choices), *(_number(part.name, part.literals) for part in parts), least)
    problem = replace(problem, added=(*problem.added, least))
    return problem.also(
        Table(f"table of {words}", columns, rows), Linear(f"{least.name} is reached", ((1, least), (-1, problem.time)), high=0)
    )


def _times(problem: Codesign, instance: Instance, space: Grid, parts: Sequence[Part], combined: Whole) -> Array:
    """Every plan on the best chip of each combination; infinite where there is none or the plan does not fit it."""
    if not isinstance(instance.workload, Transformer):
        raise TypeError("only plans of transformers have tables")
    low, high = (np.repeat(ends, len(combined), axis=0) for ends in (problem.chip.root.low, problem.chip.root.high))
    for column, part in enumerate(parts):
        low[:, list(part.choices)] = high[:, list(part.choices)] = part.places[combined[:, column]]
    found = corners(instance, space, Boxes(low, high))
    times, alive = np.full((len(problem.plans), len(combined)), np.inf), np.flatnonzero(found.alive)
    if len(alive):
        times[:, alive] = price(instance.workload, take(found.hardware, alive), instance.cluster, problem.plans).step_time
    return np.where(problem.needs[:, None] <= np.asarray(found.hardware.dram.capacity), times, np.inf)


def _numbered(problem: Codesign, name: str, choices: Sequence[Variable]) -> Codesign:
    """The question with the number of what is chosen as a variable, once."""
    number = _number(name, choices)
    if number in problem.added:
        return problem
    row = Linear(f"{number.name} is chosen", (*_weighted(choices), (-1, number)), 0, 0)
    return replace(problem, added=(*problem.added, number)).also(row)


def _weighted(choices: Sequence[Variable]) -> Terms:
    return tuple((place, choice) for place, choice in enumerate(choices) if place)


def _number(name: str, choices: Sequence[Variable]) -> Variable:
    return Variable(f"number of {name}", 0, max(len(choices) - 1, 0))
