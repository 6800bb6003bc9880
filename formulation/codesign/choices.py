"""The joint choice of a chip and a plan as literals with the rows that all forms share, and those that cannot be best."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise, product
from math import inf, prod
from typing import Any

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask, Real
from crossopt.crossflow.device import Architecture
from crossopt.crossflow.dies import die_links_area
from crossopt.crossflow.envelope import envelope
from crossopt.crossflow.generator import Split, uncore_steady
from crossopt.crossflow.hardware import Budget as Limits
from crossopt.crossflow.hardware import Hardware, take
from crossopt.crossflow.plan import Plans, plan_at
from crossopt.crossflow.technology import HOLDING, MEMORIES, Activity, Parts
from crossopt.formulation.model import Constraint, ExactlyOne, Linear, Model, Terms, Values, Variable, ceiled, floored, quantum_for
from crossopt.instances.catalogue.chips import PART_OF, followers, split_of, used_dies
from crossopt.instances.codesign.boxes import Boxes, Grid, corners
from crossopt.instances.codesign.instance import FreeHardware, Instance

# The joint choice of a chip and a plan as literals: one choice for each part of the chip, and the rows that all forms share.

# A chip as one choice for each of its parts: cores, registers, L1, L2, stacks, links inside and between nodes, and a larger die.
#
# Data      for each part the combinations of its choices (literals k), and for each of them the best chip that has it, with all other
#           choices free: what the part offers there at the most, and what area and power it takes at the least
# Choices   z[part, k] in {0, 1}, one of them 1 in each part
# Rows      die area      sum of the areas of the parts, with their share of uncore   <= budget
#           package       the same and that of the stacks, or a larger die and that   <= budget
#           power         sum of the least that each part draws, and its uncore at
#                         the least clock, of which cores tell the rest               <= budget, in each of the kernels that draw most
#           reticle       the die area                                                <= dies x reticle
#           upper dies    the same three, where cores lie on dies of their own
#           registers     bytes that the tiles of all bundles take                    <= their capacity; the same of L1
#
# The parts meet only in the die's edge, on which wires depend, and in the number of bundles, on which banks and tiles depend. There each
# literal is taken at its best, so that every row holds for every chip. What a chip really needs, the full model says afterwards.

_STEPS = 1 << 19
"""Quanta in a budget."""
_SLACK = 1.0 + 1.0e-12
"""Sums are computed in an order of their own, so that their last places may differ from the full model's."""
_MOST = 20_000
"""Literals of all parts together."""
_DIE = "die"
_NOTHING = Parts(*[0.0] * len(fields(Parts)))
_OF_CORES, _OF_MEMORIES = ("throughput", "vector_throughput", "bundles"), ("capacity", "bandwidth")

Point = Mapping[str, int | Ints]
"""The literal of each part, by its place."""
Masks = Mapping[str, Mask]
"""Some of the literals of each part."""
Taken = dict[tuple[str, str], Array]
"""Of each budget, what each part takes."""
Amounts = Mapping[str, Array]
"""What each literal takes of a budget, by part; what no part chooses is one number."""


@dataclass(frozen=True, slots=True)
class Part:
    """The literals of one part, those that are on some chip that keeps the budgets."""

    name: str
    choices: tuple[int, ...]
    """Which choices of the question it has."""
    places: Ints
    """For each literal the places of those choices."""
    best: Hardware
    """For each literal the best chip that has it."""
    literals: tuple[Variable, ...]

    def __len__(self) -> int:
        return len(self.places)


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit on a sum over the parts."""

    name: str
    limit: float
    """What is left to the literals when that which cannot be chosen has taken its share."""
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class Chip:
    """All that may be chosen of a chip; no parts where nothing may be."""

    parts: tuple[Part, ...]
    budgets: tuple[Budget, ...]
    root: Boxes
    best: Hardware
    """The best chip that the question allows."""
    levels: tuple[str | None, ...]
    """Which part each network level belongs to; None for links that are given."""
    with_cores: tuple[str, ...] = ()
    """Memories that come with the cores and are no part of their own."""

    def places(self, point: Point) -> Ints:
        """The chip of one literal of each part, as places of the choices."""
        found: Ints = self.root.low[0].copy()
        for part in self.parts:
            found[list(part.choices)] = part.places[point[part.name]]
        return found

    def point(self, places: Ints) -> Point:
        """The literals of a chip that keeps the budgets."""
        rows = {part.name: (part.places == places[list(part.choices)]).all(axis=1) for part in self.parts}
        return {name: int(np.argmax(same)) for name, same in rows.items()}

    def chosen(self, values: Values) -> Point:
        """The literals that are 1."""
        return {part.name: next(index for index, literal in enumerate(part.literals) if values[literal]) for part in self.parts}


def chip_of(instance: Instance, space: Grid, root: Boxes) -> Chip:
    """The parts of the chips in a box; a ValueError in words where their choices have too many combinations."""
    best = corners(instance, space, root)
    device = take(best.hardware, 0)
    if not isinstance(instance.hardware, FreeHardware):
        return Chip((), (), root, device, (None,) * len(device.links))
    sizes = root.high[0] - root.low[0] + 1
    count = sum(prod(int(sizes[choice]) for choice in choices) for choices in _groups(space).values())
    if count > _MOST:
        raise ValueError(f"the parts of the chip have {count:,} combinations of their choices, more than {_MOST:,}; use boxes")
    parts = tuple(_part(instance, space, root, name, choices) for name, choices in _groups(space).items())
    free = instance.hardware
    levels = tuple(level if given is None else None for level, given in zip(free.levels, free.overrides, strict=True))
    names = {part.name for part in parts}
    with_cores = tuple(level for level in followers(free.technology, space.names) if level not in names)
    return Chip(parts, tuple(_budgets(instance, free, space, root, parts)), root, device, levels, with_cores)


def restricted(chip: Chip, masks: Masks) -> Chip:
    """The chip with some of its literals."""
    budgets = (replace(budget, amounts={name: taken[masks[name]] for name, taken in budget.amounts.items()}) for budget in chip.budgets)
    return replace(chip, parts=tuple(_fewer(part, np.flatnonzero(masks[part.name])) for part in chip.parts), budgets=tuple(budgets))


def columns_of(chip: Chip, masks: Masks) -> Ints:
    """The columns of those literals in a table over all of the chip's, part after part."""
    return np.flatnonzero(np.concatenate([np.zeros(0, bool), *(masks[part.name] for part in chip.parts)]))


def _fewer(part: Part, rows: Ints) -> Part:
    literals = tuple(part.literals[row] for row in rows.tolist())
    return replace(part, places=part.places[rows], best=take(part.best, rows), literals=literals)


def chip_rows(chip: Chip) -> Iterator[Constraint]:
    """One literal of each part, and the budgets: usage floored, capacities ceiled."""
    for part in chip.parts:
        yield ExactlyOne(f"one choice of {part.name}", part.literals)
    for budget in chip.budgets:
        largest = max(budget.limit, *(float(amounts.max(initial=0.0)) for amounts in budget.amounts.values()))
        if not largest:  # parts that need none of it: every choice keeps the budget, and there is nothing to divide into steps
            continue
        quantum = quantum_for(largest, _STEPS)
        terms = tuple(
            (amount, literal)
            for part in chip.parts
            if part.name in budget.amounts
            for amount, literal in zip(floored(budget.amounts[part.name], quantum).tolist(), part.literals, strict=True)
            if amount
        )
        yield Linear(f"budget of {budget.name}", terms, high=int(ceiled(budget.limit, quantum)))


def offered(chip: Chip, part: Part) -> dict[str, Array]:
    """What the part decides of a device: each figure for each literal."""
    if part.name == "core":
        figures = {name: getattr(part.best, name) for name in _OF_CORES}
        figures |= {f"{level} {name}": getattr(getattr(part.best, level), name) for level in chip.with_cores for name in _OF_MEMORIES}
    elif part.name in MEMORIES:
        figures = {name: getattr(getattr(part.best, part.name), name) for name in _OF_MEMORIES}
    else:
        levels = (level for level, name in enumerate(chip.levels) if name == part.name)
        figures = {f"link {level}": part.best.links[level].bandwidth for level in levels}
    return {name: np.broadcast_to(np.asarray(figure, np.float64), (len(part),)) for name, figure in figures.items()}


def with_figures(chip: Chip, figures: Mapping[str, Mapping[str, Any]]) -> Hardware:
    """The best chip with other figures for some parts, named as by `offered`."""
    best = chip.best
    cores = dict(figures.get("core", {}))
    given = {level: {name: cores.pop(f"{level} {name}") for name in _OF_MEMORIES} for level in chip.with_cores}
    memories = {name: replace(getattr(best, name), **row) for name, row in {**figures, **given}.items() if name in MEMORIES}
    links = []
    for level, (link, part) in enumerate(zip(best.links, chip.levels, strict=True)):
        links.append(link if part is None or part not in figures else replace(link, bandwidth=figures[part][f"link {level}"]))
    return replace(best, **cores, **memories, links=tuple(links), open_bundles=0.0)


def compose(chip: Chip, point: Point) -> Hardware:
    """The device of which each part offers what its literal does at the most."""
    chosen = {part.name: {name: float(row[point[part.name]]) for name, row in offered(chip, part).items()} for part in chip.parts}
    return with_figures(chip, chosen)


def _groups(space: Grid) -> dict[str, tuple[int, ...]]:
    """The parts of which something is chosen, with the choices of each."""
    groups: dict[str, tuple[int, ...]] = {}
    for choice, name in enumerate(space.names):
        part = PART_OF.get(name.rpartition("_")[0], _DIE)
        groups[part] = (*groups.get(part, ()), choice)
    return groups


def _part(instance: Instance, space: Grid, root: Boxes, name: str, choices: tuple[int, ...]) -> Part:
    ranges = (range(root.low[0, choice], root.high[0, choice] + 1) for choice in choices)
    places = np.array(list(product(*ranges)), np.int64)
    boxes = _with(root, choices, places)
    found = corners(instance, space, boxes)
    alive = np.flatnonzero(found.alive)
    literals = tuple(Variable(f"{name} {number}: {_text(space, choices, places[row])}") for number, row in enumerate(alive))
    return Part(name, choices, places[alive], take(found.hardware, alive), literals)


def _with(root: Boxes, choices: tuple[int, ...], places: Ints) -> Boxes:
    """The box with some choices fixed, once for each row of places."""
    low, high = (np.repeat(ends, len(places), axis=0) for ends in (root.low, root.high))
    low[:, list(choices)] = high[:, list(choices)] = places
    return Boxes(low, high)


def _text(space: Grid, choices: tuple[int, ...], places: Ints) -> str:
    return ", ".join(_option(space.names[choice], space.options[choice][index]) for choice, index in zip(choices, places, strict=True))


def _option(name: str, value: float) -> str:
    """A choice as users write it: an area, a power, or a number."""
    figure = _UNITS[name.rpartition("_")[2]](value) if name.rpartition("_")[2] in _UNITS else f"{value:g}"
    return f"{name.replace('_', ' ')} {figure}"


_UNITS: dict[str, Callable[[float], str]] = {"area": lambda area: f"{area * 1e6:.9g} mm^2", "power": lambda power: f"{power:.9g} W"}


def _budgets(instance: Instance, free: FreeHardware, space: Grid, root: Boxes, parts: tuple[Part, ...]) -> Iterator[Budget]:
    """The rows of the chip, each with its limit less what is not chosen."""
    fixed = _taken(free, space, root, instance.budget)
    least = {kernels: float(fixed[_uncore(kernels), _DIE][0]) for kernels, _ in _kernels(free)}
    chosen = {part.name: _taken(free, space, _with(root, part.choices, part.places), instance.budget, least) for part in parts}
    names, most = [field.name for field in fields(Parts)], instance.budget
    every = [*names, _DIE]
    rows = [("die area", most.die_area, "area", every), ("package area", most.package_area, "package", every)]
    rows += [(name, most.power, name, every) for name, _ in _kernels(free)]
    if np.isfinite(most.one_die):
        rows.append(("reticle", 0.0, "reticle", every))
    if free.technology.upper_dies is not None:
        rows += [("upper dies", most.die_area, "upper", names), ("package area of upper dies", most.package_area, "upper package", names)]
        if np.isfinite(most.one_die):
            rows.append(("reticle of upper dies", 0.0, "upper reticle", every))
    if _DIE in chosen:
        rows.append(("package area of a larger die", most.package_area, "larger", [_DIE, "dram"]))
    rows += [(f"tiles in {level}", 0.0, level, ["core", level]) for level in HOLDING if getattr(free.technology, level).least_per_bundle]
    for name, limit, kind, members in rows:
        if np.isfinite(limit):
            rest = sum(float(fixed[kind, name][0]) for name in members if name not in chosen)
            amounts = {name: chosen[name][kind, name] for name in members if name in chosen}
            given = {name: min(float(some.min(initial=0.0)), 0.0) for name, some in amounts.items()}
            above = {name: some - given[name] for name, some in amounts.items()}
            budget = Budget(name, limit * _SLACK - rest - sum(given.values()), above)
            if sum(float(some.max(initial=0.0)) for some in above.values()) > budget.limit:  # else it holds whatever is chosen
                yield budget


def _taken(free: FreeHardware, space: Grid, boxes: Boxes, limits: Limits, uncore: Mapping[str, float] | None = None) -> Taken:
    """The least that each part takes of each budget, on any chip of each box.

    All parts take the least power of uncore on their area, `uncore` by area where it is told, and cores that make it draw more take what
    that is on the whole die; what of it is steady rises ever less with the area, and so is at least what it is on the largest die by area.
    Bytes are counted with the part that sets their pace."""
    reticle, made = limits.one_die * _SLACK, free.technology
    least, most = (_split(free, space, ends) for ends in (boxes.low, boxes.high))
    best, count = envelope(free.technology, least, most).best, len(boxes)
    beside = best.package_area - least.die_area  # of a larger die no less is free, and its sides are longer
    taken: dict[tuple[str, str], Real] = {("larger", "dram"): beside, ("larger", _DIE): least.die_area}
    largest = np.maximum(np.minimum(most.die_area, limits.die_area * _SLACK), least.die_area)
    steady = uncore_steady(made, largest) / largest - uncore_steady(made, least.die_area) / least.die_area
    density = {kernels: best.beside(busy) / least.die_area + steady for kernels, busy in _kernels(free)}
    taken |= {(_uncore(kernels), _DIE): each for kernels, each in density.items()}
    common = {kernels: np.minimum(each, (uncore or {}).get(kernels, inf)) for kernels, each in density.items()}
    for name in (field.name for field in fields(Parts)):
        area, upper = used_dies(free.technology, replace(_NOTHING, **{name: getattr(least.areas, name)}))
        taken["area", name] = taken["package", name] = taken["reticle", name] = area
        taken["upper", name] = taken["upper package", name] = taken["upper reticle", name] = upper
        for kernels, busy in _kernels(free):
            watts = best.by_itself(name, busy) + (_moved(best, busy) if name == ("dram" if busy.streams else "core") else 0.0)
            above = (density[kernels] - common[kernels]) * least.die_area if name == "core" else 0.0
            taken[kernels, name] = watts + common[kernels] * area + above
    taken["package", "dram"] = taken["area", "dram"] + beside
    taken["upper package", "dram"] = beside
    links = die_links_area(free.technology.die_links, least.die_area, least.dies)
    taken["area", _DIE] = taken["package", _DIE] = links
    for kernels, busy in _kernels(free):
        taken[kernels, _DIE] = best.joints(busy) + common[kernels] * links
    taken["reticle", _DIE], taken["upper reticle", _DIE] = links - reticle * most.dies, -reticle * most.dies
    for level in HOLDING:  # in whole bytes
        taken[level, "core"] = getattr(free.technology, level).least_per_bundle * best.core.bundles
        taken[level, level] = -getattr(best, level).capacity
    for level in followers(free.technology, space.names):
        for kind in ("area", "package", "reticle", "upper", "upper package", "upper reticle", level):
            taken[kind, "core"], taken[kind, level] = taken[kind, "core"] + taken[kind, level], 0.0
    return {key: np.broadcast_to(np.asarray(amount, np.float64), (count,)) for key, amount in taken.items()}


def _moved(best: Architecture, busy: Activity) -> Real:
    """Watts of all bytes of which cores or stacks set the pace: they are counted with these."""
    return sum((best.moved(name, busy) for name in MEMORIES), 0.0)


def _uncore(kernels: str) -> str:
    return f"uncore in {kernels}"


def _kernels(free: FreeHardware) -> Iterator[tuple[str, Activity]]:
    """The kernels that may draw most, each with the name of its row."""
    return ((f"power {number}" if number else "power", busy) for number, busy in enumerate(free.technology.sustained))


def _split(free: FreeHardware, space: Grid, places: Ints) -> Split:
    return split_of(free, {name: space.options[choice][places[:, choice]] for choice, name in enumerate(space.names)})


# The question which chip and which plan make the step shortest, as a choice among literals: what all its forms have in common.
#
# Data      plans p, each with T_p(root), its time on the best chip there could be; the literals k of each part of a chip
# Choices   y[p] in {0, 1}, one of them 1; z[part, k] in {0, 1}, one of them 1 in each part; t integer, the time in quanta
# Rows      budgets         those of `codesign_parts`
#           memory          for each size m of the memory:  sum of y[p] of plans that need more  <=  sum of z[k] of stacks that hold more
#           root            t >= sum of T_p(root) y[p]
#           monotone row    of plan p at a chip h, on which no chip is faster that offers no more than h in any part (`no_more`):
#                           t >= v - (v - T_p(root)) sum of z of literals that offer more - sum over other plans q of (v - T_q(root)) y[q]
#                           with v = T_p(h), and no difference below 0
#           without         a chip that does not keep the budgets after all:  sum of its z  <=  parts - 1
# Objective least t
#
# The monotone row says nothing of chips that offer more in some part: it is weak, and there to end the loop where tangents lose a little.
# Costs are floored: each row is less than one quantum for each part, and one for the plan, below the real one.

STEPS = 1 << 20
"""Quanta in the time of the best design known."""


@dataclass(frozen=True, slots=True)
class Tangents:
    """Lower bounds of the time of plans, one a row: constant + sum over the parts of the slope of the literal that is chosen."""

    plans: Ints
    constants: Array
    slopes: Array
    """One column a literal, part after part."""

    def __len__(self) -> int:
        return len(self.plans)

    def rows(self, rows: Ints) -> "Tangents":
        """Some of them."""
        return Tangents(self.plans[rows], self.constants[rows], self.slopes[rows])

    def columns(self, columns: Ints) -> "Tangents":
        """The tangents over the literals of these columns alone."""
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
        return self.chip.chosen(values), next(index for index, choice in enumerate(self.choices) if values[choice])


def codesign(chip: Chip, plans: Plans, needs: Array, roots: Array, below: float) -> Codesign:
    """The question which of the plans is below a time, on which chip; as yet without tangents."""
    quantum = quantum_for(below, STEPS)
    choices = tuple(Variable(f"plan {index}: {plan_at(plans, index)}") for index in range(len(plans)))
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
    better = [literal for part in problem.chip.parts for literal, good in zip(part.literals, as_good[part.name], strict=True) if not good]
    others = [(drop, choice) for index, (drop, choice) in enumerate(zip(drops, problem.choices, strict=True)) if index != plan]
    terms = tuple((drop, variable) for drop, variable in (*others, *((drops[plan], literal) for literal in better)) if drop)
    least = floored([value], problem.quantum).tolist()[0]
    return problem.also(Linear(f"row {len(problem.rows)}, plan {plan} on this chip", (*terms, (1, problem.time)), low=least))


def without(problem: Codesign, point: Point, plan: int | None) -> Codesign:
    """The question without one chip, for one plan or for all."""
    chosen = [part.literals[point[part.name]] for part in problem.chip.parts] + ([] if plan is None else [problem.choices[plan]])
    what = "this chip" if plan is None else f"plan {plan} on this chip"
    return problem.also(Linear(f"row {len(problem.rows)}, not {what}", tuple((1, variable) for variable in chosen), high=len(chosen) - 1))


def only(chip: Chip, point: Point) -> Masks:
    """The literals of one chip."""
    return {part.name: np.arange(len(part)) == point[part.name] for part in chip.parts}


def no_more(chip: Chip, point: Point) -> Masks:
    """The literals that offer no more than a chip's in anything; with as many bundles, in which the time may rise as well as fall."""
    return {part.name: _no_more(chip, part, int(point[part.name])) for part in chip.parts}


def _no_more(chip: Chip, part: Part, index: int) -> Mask:
    figures = offered(chip, part)
    bundles = figures.pop("bundles", np.zeros(len(part)))
    same: Mask = bundles == bundles[index]
    for figure in figures.values():
        same = same & (figure <= figure[index])
    return same


def costs(problem: Codesign, seconds: Array) -> Terms:
    """seconds of the chosen plan - t, floored."""
    quanta = floored(seconds, problem.quantum).tolist()
    return (*((cost, choice) for cost, choice in zip(quanta, problem.choices, strict=True) if cost), (-1, problem.time))


def _memory_rows(chip: Chip, choices: tuple[Variable, ...], needs: Array) -> Iterator[Constraint]:
    """Plans that need more than some stacks hold are chosen only with stacks that hold more."""
    for part in chip.parts:
        if part.name == "dram":
            capacity = np.asarray(part.best.dram.capacity)
            for size in np.unique(capacity)[:-1]:
                plans = [(1, choice) for choice, need in zip(choices, needs, strict=True) if need > size]
                stacks = [(-1, literal) for literal, size_held in zip(part.literals, capacity, strict=True) if size_held > size]
                if plans:
                    yield Linear(f"plans beyond {size:g} bytes", (*plans, *stacks), high=0)


# Plans and literals that cannot be best, by prices on the budgets (Lagrangian relaxation): gone before an integer model is written.
#
# A price l_b >= 0 on each budget b turns "not more than the limit" into "what is over must be paid", and shares m_j >= 0 that add up to 1
# make one tangent of a plan's tangents j. Then the parts no longer meet, and for every chip that keeps the budgets, whatever the prices,
#
#     T_p(chip)  >=  sum_j m_j c_j  +  sum over parts of min_k ( sum_j m_j a_j[part, k] + sum_b l_b amount_b[part, k] )  -  sum_b l_b
# limit_b
#
# A plan whose bound is not below the time asked is out. So is a literal with which no plan's is: for chips that have it the bound is higher
# by what it costs there above the cheapest literal of its part (fixing by reduced costs, Dantzig, Fulkerson and Johnson 1954). Prices and
# shares are sought for all plans at once by subgradient steps (Polyak 1969): each goes on by (time asked - bound) / |gradient|^2 *
# gradient; that of a price is by how much the cheapest chip is over the budget, in units of its limit, that of a share what its tangent
# says of that chip. There the next tangent of the plan is taken.

_SCREEN_STEPS = 400
_PATIENCE = 6
"""Steps without gain after which a plan goes back to its best prices, with half the stride."""
_GUARD = 1.0e-9
"""The share of the largest figures by which a bound is lowered, for the rounding of its sums."""


@dataclass(frozen=True, slots=True)
class PlanBounds:
    """For each plan the best bound that some prices give, and the cheapest chip there (which may break the budgets)."""

    bounds: Array
    places: dict[str, Ints]
    literals: Masks
    """Those with which some plan may be below the time asked."""


def screening_bounds(chip: Chip, several: Sequence[Tangents], needs: Array, below: float) -> PlanBounds:
    """The bounds of plans of which each list of tangents has one each."""
    return sought(chip, several, needs, below)[0]


def bounds_at(chip: Chip, several: Sequence[Tangents], needs: Array, below: float, at: "At") -> PlanBounds:
    """Bounds that given prices and shares imply, wherever these come from; a ValueError where they are invalid."""
    amounts, limits = _amounts(chip)
    slopes = _fitting(chip, np.stack([tangents.slopes for tangents in several], axis=1), needs)
    constants = np.stack([tangents.constants for tangents in several], axis=1)
    if at.prices.shape != (len(needs), len(limits)) or at.shares.shape != constants.shape:
        raise ValueError("each plan needs a price for each budget and a share for each of its tangents")
    if not all(np.isfinite(figures).all() and (figures >= 0.0).all() for figures in (at.prices, at.shares)):
        raise ValueError("prices and shares are numbers from 0 on")
    at = At(at.prices, at.shares / np.maximum(at.shares.sum(axis=1, keepdims=True), 1.0))
    with np.errstate(over="ignore", invalid="ignore"):
        bounds, places = _bounds(chip, slopes, constants, amounts, limits, at)
        # four times as much as well, so that what sums of three of them come to are numbers
        finite = np.isfinite(4.0 * bounds).all() and np.isfinite(4.0 * (at.prices @ amounts)).all()
    if not finite:
        raise ValueError("these prices are beyond all numbers")
    literals = _open(chip, slopes, amounts, bounds, at, below)
    return PlanBounds(bounds, {part.name: places[:, column] for column, part in enumerate(chip.parts)}, literals)


def sought(chip: Chip, several: Sequence[Tangents], needs: Array, below: float) -> "tuple[PlanBounds, At]":
    """The best bounds that subgradient steps find within a fixed number, with the prices and shares that give them."""
    amounts, limits = _amounts(chip)
    slopes = _fitting(chip, np.stack([tangents.slopes for tangents in several], axis=1), needs)
    constants = np.stack([tangents.constants for tangents in several], axis=1)
    at = At(np.zeros((len(needs), len(limits))), np.full(constants.shape, 1.0 / len(several)))
    best, bounds, places = (
        At(at.prices.copy(), at.shares.copy()),
        np.full(len(needs), -np.inf),
        np.zeros((len(needs), len(chip.parts)), np.int64),
    )
    stride, stuck, left = np.ones(len(needs)), np.zeros(len(needs), np.int64), np.arange(len(needs))
    for _ in range(_SCREEN_STEPS):
        here = at.rows(left)
        found, chosen = _bounds(chip, slopes[left], constants[left], amounts, limits, here)
        better = found > bounds[left]
        gained = left[better]
        bounds[gained], places[gained], stuck = found[better], chosen[better], stuck + 1
        stuck[gained] = 0
        best.take(gained, here.rows(np.flatnonzero(better)))
        over, gradient = _gradient(chip, slopes[left], constants[left], amounts, limits, chosen)
        gradient = gradient / below
        step = (stride[left] * (below - found) / np.maximum((over**2).sum(axis=1) + (gradient**2).sum(axis=1), 1e-30))[:, None]
        at.take(left, At(np.maximum(here.prices + step * over, 0.0), _shares(here.shares + step * gradient / below)))
        back = left[stuck[left] >= _PATIENCE]
        at.take(back, best.rows(back))
        stride[back], stuck[back] = stride[back] / 2.0, 0
        left = left[found < below]
        if not len(left):
            break
    literals = _open(chip, slopes, amounts, bounds, best, below)
    return PlanBounds(bounds, {part.name: places[:, column] for column, part in enumerate(chip.parts)}, literals), best


def _open(chip: Chip, slopes: Array, amounts: Array, bounds: Array, best: "At", below: float) -> Masks:
    """Literals with which the bound of some plan, at its best prices, is below the time."""
    paid = np.einsum("pj,pjk->pk", best.shares, slopes) + best.prices @ amounts
    found = {}
    for part, (start, end) in zip(chip.parts, _columns(chip), strict=True):
        own = paid[:, start:end]
        cheapest = own.min(axis=1, keepdims=True)
        size = np.abs(bounds)[:, None] + np.abs(own) + np.abs(cheapest)
        found[part.name] = (bounds[:, None] + (own - cheapest) - _GUARD * size < below).any(axis=0)
    return found


@dataclass(frozen=True, slots=True)
class At:
    """A row of prices and a row of shares for each plan."""

    prices: Array
    shares: Array

    def rows(self, rows: Ints) -> "At":
        return At(self.prices[rows], self.shares[rows])

    def take(self, rows: Ints, other: "At") -> None:
        self.prices[rows], self.shares[rows] = other.prices, other.shares


def _bounds(chip: Chip, slopes: Array, constants: Array, amounts: Array, limits: Array, here: At) -> tuple[Array, Ints]:
    """The bound of each plan at its prices and shares, and the chip that gives it."""
    prices, shares = here.prices, here.shares
    paid = np.einsum("pj,pjk->pk", shares, slopes) + prices @ amounts
    chosen, least = np.zeros((len(paid), len(chip.parts)), np.int64), (shares * constants).sum(axis=1) - prices @ limits
    size = np.abs(shares * constants).sum(axis=1) + prices @ np.abs(limits)
    for column, (start, end) in enumerate(_columns(chip)):
        chosen[:, column] = np.argmin(paid[:, start:end], axis=1)
        cheapest = np.take_along_axis(paid[:, start:end], chosen[:, [column]], axis=1)[:, 0]
        least, size = least + cheapest, size + np.abs(cheapest)
    return least - _GUARD * size, chosen


def _gradient(chip: Chip, slopes: Array, constants: Array, amounts: Array, limits: Array, chosen: Ints) -> tuple[Array, Array]:
    """By how much the chips are over each budget, and what each tangent says of them less the mean."""
    columns = chosen + np.array([start for start, _ in _columns(chip)])
    values = constants + np.take_along_axis(slopes, columns[:, None, :], axis=2).sum(axis=2)
    return amounts[:, columns].sum(axis=2).T - limits, values - values.mean(axis=1, keepdims=True)


def _shares(wanted: Array) -> Array:
    """The nearest shares that are not negative and add up to 1 (the projection on a simplex)."""
    ordered = -np.sort(-wanted, axis=1)
    excess = (np.cumsum(ordered, axis=1) - 1.0) / np.arange(1, wanted.shape[1] + 1)
    count = (ordered > excess).sum(axis=1)
    found = np.maximum(wanted - excess[np.arange(len(wanted)), count - 1][:, None], 0.0)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _columns(chip: Chip) -> list[tuple[int, int]]:
    ends = np.cumsum([0, *map(len, chip.parts)]).tolist()
    return list(pairwise(ends))


def _amounts(chip: Chip) -> tuple[Array, Array]:
    """What each literal takes of each budget in units of its limit (one row a budget, one column a literal), and the limits so."""
    amounts = [np.concatenate([budget.amounts.get(part.name, np.zeros(len(part))) for part in chip.parts]) for budget in chip.budgets]
    limits = np.array([budget.limit for budget in chip.budgets])
    units = np.where(limits > 0.0, limits, 1.0)
    return np.array(amounts).reshape(len(limits), sum(map(len, chip.parts))) / units[:, None], limits / units


def _fitting(chip: Chip, slopes: Array, needs: Array) -> Array:
    """The slopes, out of reach for stacks that do not hold the plan."""
    capacities = [np.asarray(part.best.dram.capacity) if part.name == "dram" else np.full(len(part), np.inf) for part in chip.parts]
    beyond = needs[:, None] > np.concatenate([np.broadcast_to(row, len(part)) for row, part in zip(capacities, chip.parts, strict=True)])
    return np.where(beyond[:, None, :], 1e6 * (1.0 + np.abs(slopes).max(initial=0.0)), slopes)
