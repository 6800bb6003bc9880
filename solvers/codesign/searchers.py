"""Searchers: baselines that look for good designs and prove nothing; the neighbourhood in which they move, and their time limit."""

from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import product
from time import monotonic
from typing import Any, Final

import numpy as np

from crossopt.crossflow.arrays import Array, Ints
from crossopt.crossflow.kernels.kernel_plan import SPLITS, KernelPlan
from crossopt.crossflow.plan import PLAN_FIELDS, Plan, Plans, code, table
from crossopt.crossflow.records import dataclass
from crossopt.instances.codesign.boxes import Boxes, Grid, corners, full_box, grid, option_indices, point_number, tightened
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import AnyPlans, draw_plans, hardware_points
from crossopt.instances.errors import RefusedError, install_text
from crossopt.solvers.answer import Limits, Progress, SearchOutcome, Start, Watch, unwatched
from crossopt.solvers.codesign.answer import Candidate, Designs, answer_of, candidate, candidate_in
from crossopt.solvers.codesign.boxes.branch import chip_moves, incumbent_of
from crossopt.solvers.codesign.megatron import expert_point, on_chip, with_plan
from crossopt.solvers.codesign.objective import hosted, joined, memory_of, rows_of, values_of
from crossopt.solvers.codesign.recipes import recipes_design

# The neighbourhood of a design in which searchers move, their steps, and the driver that holds them to their time.

# What a searcher walks in: designs as places of the hardware choices and the row of a plan, and the looks it takes at them.
#
# Plans are a table, sorted by layout (the degrees of parallelism), so that the plans of one layout are neighbours in it. Prices are taken
# of some plans on some chips, every plan on every chip: that costs hardly more than the pairs alone, and whatever is good among them
# counts.

_PLANS = 1 << 20
"""Combinations of plan choices up to which all plans are in the table; of more, so many are drawn."""
_LAYOUT = {True: ("tensor", "context", "pipeline", "data"), False: ("rows", "columns", "layers", "data")}
_DRAWS = 1024
_BLOCK, _POOL = 4096, 1024
"""Plans priced together, and plans from which is chosen on other chips than the first."""


@dataclass(frozen=True, slots=True)
class Question:
    """The designs of an instance."""

    instance: Instance
    space: Grid
    box: Boxes
    """Ends of the hardware choices beyond which no chip keeps the budgets."""
    plans: AnyPlans
    """Those that fit the best chip there could be."""
    layouts: Ints
    """The layout of each plan, ascending."""
    firsts: Ints
    """The first plan of each layout."""
    settings: Ints
    """The other settings of each plan that are not the same for all, one column each."""
    start: Candidate | None
    """The best recipe's design, from which engines that prove begin, too; none where no recipe has one, or where the start is cold."""

    @property
    def width(self) -> int:
        """Designs that are evaluated together: few if plans are priced one by one, many if there is only one chip."""
        if not isinstance(self.plans, Plans):
            return 16
        return 64 if self.space.points > 1 else 128


@dataclass(frozen=True, slots=True)
class Look:
    """Prices of plans (rows) on chips (columns), infinite where one does not fit the other."""

    places: Ints
    """Of the chips, one row each."""
    rows: Ints
    """Of the plans in the table."""
    values: Array
    distinct: int
    """Different designs among them; where no chip was found to look at, the draws that it took to find none."""

    @property
    def value(self) -> float:
        """The least."""
        return float(self.values.min(initial=np.inf))

    @property
    def best(self) -> tuple[Ints, int]:
        """The chip and the plan with the least value."""
        row, column = np.unravel_index(int(np.argmin(self.values)), self.values.shape)
        return self.places[column], int(self.rows[row])

    @property
    def pairs(self) -> Array:
        """The values of the first plan on the first chip, of the second on the second, and so on."""
        return self.values.diagonal()


def search_space(instance: Instance, random: np.random.Generator, deadline: float, start: Start = "recipe") -> Question:
    """The designs of the instance; no plans where no chip keeps the budgets. A TimeoutError if the recipes take too long."""
    space = grid(instance)
    box = tightened(instance, space, full_box(space))
    chip = corners(instance, space, box)
    plans, first = draw_plans(instance, random, _PLANS), recipes_design(instance, deadline) if start == "recipe" else None
    if first is not None:
        plans = _with_plan(plans, first.plan)
    hardware = chip.hardware
    if len(plans):
        fitting = memory_of(instance.workload, plans) + hardware.reserved_memory <= hardware.dram.capacity
        plans = rows_of(plans, np.flatnonzero(fitting & chip.alive & hosted(instance, plans)))
    layouts, settings = _columns(plans)
    order = np.argsort(layouts, kind="stable")
    layouts, settings = layouts[order], settings[order]
    firsts = np.searchsorted(layouts, np.arange(layouts[-1] + 1 if len(layouts) else 0))
    return Question(instance, space, box, rows_of(plans, order), layouts, firsts, settings, first)


def look(question: Question, places: Ints, rows: Ints) -> Look:
    """Price every plan on every chip, each different one once."""
    chips, chip_of = _different(places)
    plans, plan_of = np.unique(rows, return_inverse=True)
    devices = corners(question.instance, question.space, Boxes(chips, chips))
    values = values_of(question.instance, devices, rows_of(question.plans, plans))
    return Look(places, rows, values[plan_of.reshape(-1)[:, None], chip_of[None]], values.size or _DRAWS)


def alive(question: Question, places: Ints) -> Ints:
    """Which of the chips keep the budgets."""
    if not len(places):
        return np.zeros(0, np.int64)
    return np.flatnonzero(corners(question.instance, question.space, Boxes(places, places)).alive)


def draw_chips(question: Question, random: np.random.Generator, count: int) -> Ints:
    """At most so many chips that keep the budgets, each equally likely; perhaps none where they are rare."""
    sampled = random.integers(question.box.low[0], question.box.high[0] + 1, size=(_DRAWS, len(question.space.sizes)))
    return sampled[alive(question, sampled)[:count]]


def draw_rows(question: Question, random: np.random.Generator, count: int) -> Ints:
    """So many plans, each equally likely."""
    return random.integers(len(question.plans), size=count)


def started(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """Looks of which the last one holds a design to start from: the best recipe's, or else random ones until some keep every limit."""
    if question.start is not None:
        row = row_of(question.plans, question.start.plan)
        yield look(question, option_indices(question.space, question.start.point)[None], np.array([row]))
        return
    value = np.inf
    while not value < np.inf:
        seen = look(question, draw_chips(question, random, question.width), draw_rows(question, random, question.width))
        value = seen.value
        yield seen


def pooled(question: Question, chips: Ints, count: int = _POOL) -> Generator[Look, None, tuple[Ints, Array]]:
    """Looks at all plans on each chip; the rows of the best plans of each, ascending, from which is chosen for others, and their values."""
    rows, values = np.zeros(0, np.int64), np.zeros((0, len(chips)))
    for start in range(0, len(question.plans), _BLOCK):
        seen = look(question, chips, np.arange(start, min(start + _BLOCK, len(question.plans))))
        yield seen
        rows, values = np.concatenate([rows, seen.rows]), np.concatenate([values, seen.values])
        best = np.unique(np.argsort(values, axis=0, kind="stable")[:count])
        rows, values = rows[best], values[best]
    return rows, values


def row_of(plans: AnyPlans, plan: Plan | KernelPlan) -> int | None:
    """The row of a plan in a table; None if it is not there."""
    if not isinstance(plans, Plans):
        return plans.index(plan) if plan in plans else None
    same = np.ones(len(plans), bool)
    for name in PLAN_FIELDS:
        same &= getattr(plans, name) == code(name, getattr(plan, name))
    return int(np.argmax(same)) if same.any() else None


def _with_plan(plans: AnyPlans, plan: Plan | KernelPlan) -> AnyPlans:
    """The table with this plan in it: a sample may lack the recipe's."""
    if row_of(plans, plan) is not None:
        return plans
    return joined([plans, table([plan]) if isinstance(plan, Plan) else (plan,)])


def _columns(plans: AnyPlans) -> tuple[Ints, Ints]:
    """The layout of each plan, and its other settings that are not the same for all plans."""
    tabular = isinstance(plans, Plans)
    names = _LAYOUT[tabular]
    if isinstance(plans, Plans):
        columns = {name: getattr(plans, name) for name in PLAN_FIELDS}
    else:
        columns = {name: np.array([getattr(plan, name) for plan in plans], np.int64) for name in names}
        columns["split"] = np.array([SPLITS.index(plan.split) for plan in plans], np.int64)
    if not len(plans):
        return np.zeros(0, np.int64), np.zeros((0, 0), np.int64)
    degrees = np.column_stack([columns.pop(name) for name in names])
    layouts = np.unique(degrees, axis=0, return_inverse=True)[1].reshape(-1)
    others = [column for column in columns.values() if (column != column[0]).any()]
    return layouts, np.column_stack([np.zeros((len(plans), 0), np.int64), *others])


def _different(places: Ints) -> tuple[Ints, Ints]:
    """The different rows, and for each row which of them it is."""
    if not places.shape[1] or not len(places):
        return places[:1], np.zeros(len(places), np.int64)
    chips, chip_of = np.unique(places, axis=0, return_inverse=True)
    return chips, chip_of.reshape(-1)


# Steps from one design to another: one hardware choice or two, one setting of the plan.

_TRIES = 4
"""Chips that are tried for each changed one, since most of those around a good chip break a budget."""


def change_chips(question: Question, random: np.random.Generator, places: Ints) -> Ints:
    """Each chip with one choice moved, or one up and another one down, to a chip that keeps the budgets; itself if none is found.

    A choice moves by 1, 2, 4, 8, ... options, each equally likely.
    """
    count, choices = places.shape
    if not choices or not count:
        return places
    tried, every = np.repeat(places, _TRIES, axis=0), np.arange(count * _TRIES)
    sizes = question.box.high[0] - question.box.low[0] + 1
    first, second = random.integers(choices, size=(2, len(tried)))
    sign, both = random.choice([-1, 1], size=len(tried)), random.random(len(tried)) < 0.5
    tried[every, first] += sign * _steps(random, sizes[first])
    tried[every, second] -= np.where(both & (first != second), sign * _steps(random, sizes[second]), 0)
    tried = np.clip(tried, question.box.low[0], question.box.high[0])
    moved = np.flatnonzero((tried != np.repeat(places, _TRIES, axis=0)).any(axis=1))
    moved = moved[alive(question, tried[moved])]
    owners, where = np.unique(moved // _TRIES, return_index=True)
    found = places.copy()
    found[owners] = tried[moved[where]]
    return found


def change_plans(question: Question, random: np.random.Generator, rows: Ints) -> Ints:
    """Each plan with one setting changed; where that is no plan, the nearest one that is.

    The layout is one setting. Any other setting is taken over from a random plan of the same layout.
    """
    kinds = random.integers(question.settings.shape[1] + 1, size=len(rows))
    layouts, wanted = question.layouts[rows], question.settings[rows]
    layouts = np.where(kinds == 0, random.integers(len(question.firsts), size=len(rows)), layouts)
    first, last = _ends(question, layouts)
    others = question.settings[random.integers(first, last)]
    every = np.flatnonzero(kinds)
    wanted[every, kinds[every] - 1] = others[every, kinds[every] - 1]
    return nearest(question, layouts, wanted)


def nearest(question: Question, layouts: Ints, wanted: Ints) -> Ints:
    """For each layout the plan of it with the fewest settings other than wanted."""
    first, last = _ends(question, layouts)
    found = first.copy()
    for row, (start, stop, other) in enumerate(zip(first, last, wanted, strict=True)):
        found[row] += np.argmin((question.settings[start:stop] != other).sum(axis=1))
    return found


def _steps(random: np.random.Generator, sizes: Ints) -> Ints:
    """1, 2, 4, 8, ... less than the number of options."""
    powers = np.ceil(np.log2(np.maximum(sizes, 2))).astype(np.int64)
    return 1 << random.integers(powers)


def _ends(question: Question, layouts: Ints) -> tuple[Ints, Ints]:
    """First row of each layout, and the row after its last."""
    ends = np.append(question.firsts[1:], len(question.layouts))
    return question.firsts[layouts], ends[layouts]


# Runs a searcher: holds it to its time and its patience, keeps the best design of all, and has it certified.

Searcher = Callable[[Question, np.random.Generator], Iterator[Look]]

_PATIENCE = 1 << 20
"""Designs priced since the last improvement after which a searcher gives up."""
_IDLE = 20.0
"""Seconds since the last improvement after which it gives up too where there is no time limit."""
_LEAST = 16
"""Designs that a look counts for at least."""
_ROUNDS = 10
"""The patience in small questions, as a multiple of all their designs."""


def searched(name: str, searcher: Searcher, instance: Instance, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """The best design that the searcher sees in time. It depends on nothing but the seed as long as the time is long enough."""
    began = monotonic()
    deadline = began + limits.seconds
    random = np.random.default_rng(limits.seed)
    best: Candidate | None = None
    value, stopped, gained = np.inf, "complete", began
    notes: tuple[str, ...] = ()
    trace: list[tuple[float, float | None, float | None]] = []
    try:
        question = search_space(instance, random, deadline, limits.start)
        patience, left, total = min(_PATIENCE, _ROUNDS * len(question.plans) * question.space.points), 0, 0
        left = patience
        for seen in searcher(question, random) if len(question.plans) else ():
            left, total = left - max(seen.distinct, _LEAST), total + seen.distinct
            if seen.value < value:
                places, row = seen.best
                best, value, left = candidate(question.plans, row, point_number(question.space, places)), seen.value, patience
                gained = monotonic()
                trace.append((monotonic() - began, value, None))
            watch(Progress(f"{total:,} designs priced", value if best else None, answer=partial(answer_of, instance, best)))
            if left <= 0:
                break
            if deadline == np.inf and monotonic() - gained > _IDLE:
                notes = (f"it ended {_IDLE:.0f} s after its last better design (a --time-limit has it search as long as that says)",)
                break
            if monotonic() >= deadline:
                raise TimeoutError
    except TimeoutError:
        stopped = "time limit"
    except KeyboardInterrupt:
        stopped = "interrupted"
    answer = answer_of(instance, best)
    return SearchOutcome(answer, engine=name, stopped=stopped, notes=notes, trace=tuple(trace), value=value if best else None)


# Searchers: baselines without proofs, as generators that yield the designs they evaluated.

# Random sampling from the best recipe's design on: chips that keep the budgets and plans that fit some chip, each equally likely.


def uniform(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """The design that all searchers begin with, then some plans on some chips, again and again, whatever was found before."""
    yield from started(question, random)
    while True:
        yield look(question, draw_chips(question, random, question.width), draw_rows(question, random, question.width))


# Descents from many chips: all plans are priced once on the first chip and on some drawn ones, and the best of each are what there is to
# choose from; then from each chip, the best first, the best plan for it, the first better chip around it for the best few plans, and so on.
#
# That is how the exact search by boxes finds its designs, without its bound: what the bound is worth is what this lacks.

_DRAWN = 8
"""Chips that are drawn beside the first."""
_KEPT = 64
"""The best plans of each chip that stay."""
_DESCENT_PLANS, _DESCENT_CHIPS = 8, 256
"""Plans for which a better chip is searched, and chips that are evaluated together."""


def descent(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """From the first chip and from drawn ones, the best first, and then from others without end."""
    for first in started(question, random):
        yield first
    starts = np.concatenate([first.best[0][None], draw_chips(question, random, _DRAWN)])
    pool, values = yield from pooled(question, starts, _KEPT)
    waiting = [starts[column] for column in np.argsort(values.min(axis=0), kind="stable")]
    while True:
        chips = draw_chips(question, random, 1) if not waiting else np.array([waiting.pop(0)])
        if not len(chips):
            yield look(question, chips, pool[:1])
            continue
        yield from _down(question, random, chips[0], pool)
        if question.space.points == 1:
            return


def _down(question: Question, random: np.random.Generator, places: Ints, pool: Ints) -> Iterator[Look]:
    """The best plans for a chip, and the first better chip for them, until there is none."""
    value = np.inf
    while True:
        seen = look(question, places[None], pool)
        yield seen
        if not seen.value < np.inf:
            return
        rows, value = seen.rows[np.argsort(seen.values[:, 0], kind="stable")[:_DESCENT_PLANS]], min(value, seen.value)
        moves = random.permutation(chip_moves(question.space, places))
        for start in range(0, len(moves), _DESCENT_CHIPS):
            further = look(question, moves[start : start + _DESCENT_CHIPS], rows)
            yield further
            if further.value < value:
                value, places = further.value, further.best[0]
                break
        else:
            return


# A genetic algorithm: a population of designs, uniform crossover of their choices, mutation, and survival of the best.

_MUTATED = 0.8
"""Share of the children whose chip is changed, and of those whose plan is."""
_BASELINES = 2
"""Designs of which the better one becomes a parent."""


def genetic(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """Every child takes each choice from one of two parents; of parents, children and the best design seen, the best live on."""
    for seen in started(question, random):
        best = seen
        yield seen
    chips, rows = _first(question, random, best)
    seen = look(question, chips, rows)
    yield seen
    values = seen.pairs
    while True:
        children, plans = _children(question, random, (chips, rows, values))
        seen = look(question, children, plans)
        best = min(best, seen, key=lambda look: look.value)
        yield seen
        chips = np.concatenate([best.best[0][None], chips, children])
        rows = np.concatenate([[best.best[1]], rows, plans])
        values = np.concatenate([[best.value], values, seen.pairs])
        fittest = _fittest(chips, rows, values, question.width)
        chips, rows, values = chips[fittest], rows[fittest], values[fittest]


def _first(question: Question, random: np.random.Generator, best: Look) -> tuple[Ints, Ints]:
    """The design to start from, changed copies of it, and as many random ones."""
    places, row = best.best
    half = question.width // 2
    chips, rows = np.repeat(places[None], half, axis=0), np.full(half, row)
    chips[1:], rows[1:] = change_chips(question, random, chips[1:]), change_plans(question, random, rows[1:])
    strangers = draw_chips(question, random, half)
    return np.concatenate([chips, strangers]), np.concatenate([rows, draw_rows(question, random, len(strangers))])


def _children(question: Question, random: np.random.Generator, parents: tuple[Ints, Ints, Array]) -> tuple[Ints, Ints]:
    chips, rows, values = parents
    mothers, fathers = (_chosen(random, values, question.width) for _ in range(2))
    from_mother = random.random((question.width, chips.shape[1])) < 0.5
    children = np.where(from_mother, chips[mothers], chips[fathers])
    first, second = rows[mothers], rows[fathers]
    layouts = question.layouts[np.where(random.random(question.width) < 0.5, first, second)]
    from_mother = random.random((question.width, question.settings.shape[1])) < 0.5
    plans = nearest(question, layouts, np.where(from_mother, question.settings[first], question.settings[second]))
    changed = random.random((2, question.width)) < _MUTATED
    children[changed[0]] = change_chips(question, random, children[changed[0]])
    plans[changed[1]] = change_plans(question, random, plans[changed[1]])
    return children, plans


def _chosen(random: np.random.Generator, values: Array, count: int) -> Ints:
    """The best of a few drawn at random, so many times."""
    sampled = random.integers(len(values), size=(_BASELINES, count))
    return np.asarray(sampled[np.argmin(values[sampled], axis=0), np.arange(count)])


def _fittest(chips: Ints, rows: Ints, values: Array, count: int) -> Ints:
    """The best designs, each only once."""
    first = np.sort(np.unique(np.column_stack([rows, chips]), axis=0, return_index=True)[1])
    return first[np.argsort(values[first], kind="stable")[:count]]


# Hardware choices as shares: each option by its value between the least and the greatest one, and back to the nearest option.


def shares_of(question: Question, chips: Ints) -> Array:
    """Each choice of each chip between 0 for its least and 1 for its greatest option."""
    columns = [(options[index] - options[0]) / ((options[-1] - options[0]) or 1.0) for options, index in _by_choice(question, chips)]
    return np.column_stack([np.zeros((len(chips), 0)), *columns])


def _by_choice(question: Question, chips: Ints) -> Iterator[tuple[Array, Ints]]:
    return zip(question.space.options, chips.T, strict=True)


def rounded(question: Question, points: Array) -> Ints:
    """The chips with the options nearest to the shares."""
    found = np.zeros(points.shape, np.int64)
    for choice, options in enumerate(question.space.options):
        wished = options[0] + points[:, choice] * (options[-1] - options[0])
        above = np.clip(np.searchsorted(options, wished), 1, max(1, len(options) - 1))
        nearer = wished - options[above - 1] > options[np.minimum(above, len(options) - 1)] - wished
        found[:, choice] = np.where(nearer, np.minimum(above, len(options) - 1), above - 1)
    return found


# Projected gradient descent with momentum over areas, powers and edges, as DeepFlow searches (Ardalani et al. 2022, arXiv 2211.03309).
#
# Its search moves the shares of area, power and die edge against a gradient by finite differences, in normalised steps with momentum, back
# onto the budgets after every step, from several random starts; parallel plans are tried outside. Here the shares are the options of the
# hardware choices, rounded to the nearest one whenever a chip is priced; differences are taken on both sides; and the plan is chosen anew
# every few steps. Where the hardware is given there is nothing to descend: what is left is the best plan.

_STARTS = 12
_GRADIENT_STEPS = 60
_FIRST, _LAST = 0.05, 0.01
"""Length of a step in units of the ranges of the choices, at the start and at the end of a descent."""
_GRADIENT_KEPT = 0.5
"""Momentum: share of the last step's direction that is kept."""
_WIDTH = 0.05
"""Distance of the differences in units of a choice's range, at least one option."""
_PLANS_EVERY = 6
"""Steps after which the plans are chosen anew."""


def gradient(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """Descents from some chips at once, the best recipe's among the first; then from others."""
    for seen in started(question, random):
        first = seen
        yield seen
    chips = first.best[0][None]
    rows, values = yield from pooled(question, chips)
    pool = rows[np.argsort(values[:, 0], kind="stable")]
    while question.space.points > 1:
        chips = np.concatenate([chips, draw_chips(question, random, _STARTS - len(chips))])
        yield from _gradient_descent(question, chips, pool)
        chips = chips[:0]


def _gradient_descent(question: Question, chips: Ints, pool: Ints) -> Iterator[Look]:
    """So many steps from each of the chips."""
    points, momentum = shares_of(question, chips), np.zeros(chips.shape)
    rows = pool[:1]
    if not len(chips):
        yield look(question, chips, rows)
        return
    for number, length in enumerate(np.geomspace(_FIRST, _LAST, _GRADIENT_STEPS)):
        if number % _PLANS_EVERY == 0:
            seen = look(question, chips, pool)
            yield seen
            rows = pool[np.argmin(seen.values, axis=0)]
        seen, slope = _slope(question, chips, rows)
        yield seen
        momentum = _GRADIENT_KEPT * momentum + (1.0 - _GRADIENT_KEPT) * _unit(slope)
        points = _projected(question, points, np.clip(points - length * _unit(momentum), 0.0, 1.0))
        chips = rounded(question, points)


def _slope(question: Question, chips: Ints, rows: Ints) -> tuple[Look, Array]:
    """Differences of the logarithm of the value over those of each choice, on whichever sides there is a chip."""
    count, choices = chips.shape
    sides = np.repeat(chips[:, None, None], choices, axis=1).repeat(2, axis=2)
    for choice, size in enumerate(question.space.sizes):
        width = max(1, round(_WIDTH * (size - 1)))
        sides[:, choice, :, choice] = np.clip(chips[:, choice, None] + np.array([-width, width]), 0, size - 1)
    seen = look(question, np.concatenate([chips, sides.reshape(-1, choices)]), rows)
    own = seen.values[np.arange(count), np.arange(count)]
    around = seen.values[:, count:].reshape(count, count, choices, 2)[np.arange(count), np.arange(count)]
    at = np.einsum("icsc->ics", shares_of(question, sides.reshape(-1, choices)).reshape(sides.shape))
    here = shares_of(question, chips)
    there = np.isfinite(around)
    around = np.log(np.where(there, around, own[:, None, None]))
    at = np.where(there, at, here[:, :, None])
    apart = at[..., 1] - at[..., 0]
    with np.errstate(invalid="ignore"):
        rise = around[..., 1] - around[..., 0]
    return seen, np.where((apart > 0.0) & np.isfinite(rise), rise / np.where(apart > 0.0, apart, 1.0), 0.0)


def _projected(question: Question, points: Array, wished: Array) -> Array:
    """The points wished for, with as little as possible taken from all areas alike and all powers alike to keep the budgets.

    Where nothing that is tried keeps them, the point stays where it was.
    """
    takes = [0.0, *np.geomspace(1.0 / 64.0, 1.0, 7)]
    pairs = sorted(product(takes, takes), key=sum)
    spans = np.array([options[-1] - options[0] for options in question.space.options])
    share = np.zeros((2, len(spans)))
    for kind, suffix in enumerate(("_area", "_power")):
        of_kind = np.array([name.endswith(suffix) for name in question.space.names])
        widest = float(np.max(spans, where=of_kind, initial=0.0))
        share[kind] = np.where(of_kind & (spans > 0.0), widest / np.where(spans > 0.0, spans, 1.0), 0.0)
    tried = np.clip(wished[:, None] - (np.array(pairs) @ share)[None], 0.0, 1.0)
    chips = rounded(question, tried.reshape(-1, len(spans)))
    good = np.isin(np.arange(len(chips)), alive(question, chips)).reshape(len(points), -1)
    found = tried[np.arange(len(points)), np.argmax(good, axis=1)]
    return np.where(np.any(good, axis=1)[:, None], found, points)


def _unit(vectors: Array) -> Array:
    """The directions scaled to length 1."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1.0e-300))


# Black-box optimizers of the field, by optuna: they see the choices of a design and its value, and nothing of the model.
#
# `tpe` is the tree-structured Parzen estimator (Bergstra et al., NeurIPS 2011), which models good and bad designs choice by choice;
# `cma-es` the evolution strategy with covariance adaptation (Hansen, arXiv 1604.00772); `nsga-ii` a genetic algorithm (Deb et al. 2002);
# `bayesian` the estimator over chips alone, each priced with the best plan for it, as hardware is searched around a mapper (Akiba et al.,
# KDD 2019, arXiv 1907.10902, is optuna).
#
# All begin with the first design known. A chip that breaks a budget is moved towards that design's until it keeps all of them: a black box
# that was told of broken budgets only by a bad value would see hardly anything else.

SAMPLERS: Final = ("nsga-ii", "tpe", "cma-es")
BLACK_BOXES: Final = (*SAMPLERS, "bayesian")
"""All engines that need optuna."""
INSTALLED_BY: Final = install_text("baselines")
_BATCH: Final = 8
"""Designs that are asked for together."""
_WAY: Final = 32
"""Places at which the way from a chip to the recipe's is tried."""
_NONE: Final = 1.0e30
"""The value of a design that fits no memory: worse than all others."""


def has_optuna() -> bool:
    """Whether the black-box optimizers can be asked."""
    return find_spec("optuna") is not None and find_spec("cmaes") is not None


def bayesian(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """Chips by the Parzen estimator, each with the best of the plans that are best on the first chip."""
    for first in started(question, random):
        yield first
    home = first.best[0]
    pool, _ = yield from pooled(question, home[None])
    study = _study("tpe", random)
    while question.space.points > 1:
        trials = [study.ask() for _ in range(_BATCH)]
        chips = _repaired(question, np.array([_chip(question, trial) for trial in trials]), home)
        seen = look(question, chips, pool)
        yield seen
        _tell(study, trials, seen.values.min(axis=0))


def black_box(sampler: str, question: Question, random: np.random.Generator) -> Iterator[Look]:
    """Chip and plan together by a sampler of optuna, for which settings of the plan are numbers: the plan asked for, or the nearest one of
    its layout."""
    for first in started(question, random):
        yield first
    home, row = first.best
    study = _study(sampler, random)
    levels = [np.unique(column) for column in question.settings.T]
    study.enqueue_trial(_text(question, home, row, levels))
    while True:
        trials = [study.ask() for _ in range(_BATCH)]
        chips = _repaired(question, np.array([_chip(question, trial) for trial in trials]), home)
        layouts = np.array([trial.suggest_int("layout", 0, len(question.firsts) - 1) for trial in trials])
        wanted = [[column[trial.suggest_int(f"setting {at}", 0, len(column) - 1)] for at, column in enumerate(levels)] for trial in trials]
        rows = nearest(question, layouts, np.array(wanted, np.int64).reshape(len(trials), len(levels)))
        seen = look(question, chips, rows)
        yield seen
        _tell(study, trials, seen.pairs)


def _study(sampler: str, random: np.random.Generator) -> Any:  # noqa: ANN401 - optuna's own
    """A study of optuna; a RefusedError where that package is absent."""
    if not has_optuna():
        raise RefusedError(f"this engine needs optuna, which is not installed: {INSTALLED_BY}")
    import optuna  # noqa: PLC0415 - an extra, which nothing else needs

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    seed, samplers = int(random.integers(1 << 31)), optuna.samplers
    if sampler == "tpe":
        return optuna.create_study(sampler=samplers.TPESampler(seed=seed, n_startup_trials=32, multivariate=True, constant_liar=True))
    if sampler == "nsga-ii":
        return optuna.create_study(sampler=samplers.NSGAIISampler(seed=seed))
    return optuna.create_study(sampler=samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False))


def _chip(question: Question, trial: Any) -> list[int]:  # noqa: ANN401
    """The places of the hardware choices that a trial asks for."""
    low, high = question.box.low[0], question.box.high[0]
    return [trial.suggest_int(f"chip {at}", int(least), int(most)) for at, (least, most) in enumerate(zip(low, high, strict=True))]


def _text(question: Question, home: Ints, row: int, levels: list[Ints]) -> dict[str, int]:
    """A design as a trial's parameters."""
    plan = {f"setting {at}": int(np.searchsorted(column, question.settings[row, at])) for at, column in enumerate(levels)}
    return {**{f"chip {at}": int(index) for at, index in enumerate(home)}, "layout": int(question.layouts[row]), **plan}


def _repaired(question: Question, chips: Ints, home: Ints) -> Ints:
    """Each chip, or the first one on its way to the chip at home that keeps the budgets."""
    if not chips.shape[1]:
        return chips
    shares = np.linspace(0.0, 1.0, _WAY)[None, :, None]
    way = np.rint(chips[:, None] + shares * (home - chips)[:, None]).astype(np.int64)
    allowed = np.isin(np.arange(len(chips) * _WAY), alive(question, way.reshape(-1, chips.shape[1]))).reshape(len(chips), _WAY)
    allowed[:, -1] = True
    return np.asarray(way[np.arange(len(chips)), np.argmax(allowed, axis=1)])


def _tell(study: Any, trials: list[Any], values: Array) -> None:  # noqa: ANN401
    for trial, value in zip(trials, values, strict=True):
        study.tell(trial, min(float(value), _NONE))


# Alternating: the best plan for a chip, the best chip for that plan, and so on until nothing changes; then again from another chip.
#
# Block coordinate descent over the two halves of a design, each half solved to its optimum by an engine that proves it. That is what two
# teams do who take turns, and the strongest simple baseline of choosing both together: given the time, it never ends above the best plan on
# the best recipe's chip, nor above the best chip for that recipe's plan. Where it ends, neither half alone can be improved, and both
# together perhaps can.

Half = Callable[[Instance, Limits, Watch], SearchOutcome[Designs]]
"""An engine that finds the best plan of a question with one chip, and the best chip of one with one plan."""
Step = tuple[float, Candidate]
"""A design with its value."""
_SEARCHERS_PATIENCE = 12
"""Starts since the last better design after which the search ends."""
_SEARCHERS_DRAWS, _SEARCHERS_ROUNDS = 1024, 64
"""Chips that are drawn together, most of which break a budget, and so often in vain before none is drawn any more."""


def alternating(half: Half, instance: Instance, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """The best design at which turns end, from the best recipe's chip and from its plan first; without a bound.

    The recipe's design is there before, so that no limit ends it above that. A cold start has drawn chips alone."""
    began = monotonic()
    best: Candidate | None = None
    value, stopped, left, starts = np.inf, "complete", _SEARCHERS_PATIENCE, 0
    trace: list[tuple[float, float | None, float | None]] = []
    try:
        recipe = recipes_design(instance, began + limits.seconds) if limits.start == "recipe" else None
        if recipe is not None:
            value = incumbent_of(instance, grid(instance), recipe).value
            if value < np.inf:  # else it breaks a limit of times or of objectives
                best = recipe
                trace.append((monotonic() - began, value, None))
        for starts, turns in enumerate(_descents(half, instance, limits, began, recipe), 1):
            left -= 1
            for cost, design in turns:
                if cost < value:
                    best, value, left = design, cost, _SEARCHERS_PATIENCE
                    trace.append((monotonic() - began, value, None))
                message = f"start {starts:,}, {_SEARCHERS_PATIENCE - left} since the last better design"
                watch(Progress(message, value if best else None, answer=partial(answer_of, instance, best)))
            if left <= 0:
                break
    except TimeoutError:
        stopped = "time limit"
    except KeyboardInterrupt:
        stopped = "interrupted"
    notes = (f"turns were taken from {starts:,} {'start' if starts == 1 else 'starts'}",)
    return SearchOutcome(
        answer_of(instance, best), engine="alternating", stopped=stopped, notes=notes, trace=tuple(trace), value=value if best else None
    )


def _descents(half: Half, instance: Instance, limits: Limits, began: float, recipe: Candidate | None) -> Iterator[Iterator[Step]]:
    """Turns from the best recipe's chip, from its plan, and from chips drawn at random; a TimeoutError where the time is over."""
    ask = partial(_ask, half, instance, limits, began)
    by_rule = limits.start == "recipe" or hardware_points(instance) == 1
    usual = recipe.point if recipe is not None else expert_point(instance) if by_rule else None
    if usual is not None:
        yield _turns(ask, instance, usual)
    if recipe is not None and (first := ask(with_plan(instance, recipe.plan))) is not None:
        yield _turns(ask, instance, first[1].point)
    for point in _random_chips(instance, np.random.default_rng(limits.seed), began + limits.seconds):
        yield _turns(ask, instance, point)


def _turns(ask: Callable[[Instance], Step | None], instance: Instance, point: int) -> Iterator[Step]:
    """A plan for the chip, a chip for the plan, and so on, as long as each is better than the last."""
    value = np.inf
    narrowed = on_chip(instance, point)
    while (found := ask(narrowed)) is not None and found[0] < value:
        yield found
        value, plan = found[0], found[1].plan
        found = ask(with_plan(instance, plan))
        if found is None or not found[0] < value:
            return
        yield found
        value, narrowed = found[0], on_chip(instance, found[1].point)


def _ask(half: Half, instance: Instance, limits: Limits, began: float, narrowed: Instance) -> Step | None:
    """The best design of a narrower question, in words of the whole one; none where no plan fits the chip or no chip the plan."""
    left = limits.seconds - (monotonic() - began)
    if left <= 0.0:
        raise TimeoutError
    found = half(narrowed, replace(limits, seconds=left), unwatched)
    if found.stopped == "interrupted":
        raise KeyboardInterrupt
    if found.answer is None or found.value is None:
        return None
    return float(found.value), candidate_in(instance, found.answer.design)


def _random_chips(instance: Instance, random: np.random.Generator, deadline: float) -> Iterator[int]:
    """Chips that keep the budgets, each equally likely, without end but where they are too rare; none where there is but one."""
    space = grid(instance)
    box, vain = tightened(instance, space, full_box(space)), 0
    while space.points > 1 and vain < _SEARCHERS_ROUNDS:
        places = random.integers(box.low[0], box.high[0] + 1, size=(_SEARCHERS_DRAWS, len(space.sizes)))
        alive = np.flatnonzero(corners(instance, space, Boxes(places, places)).alive)
        vain = 0 if len(alive) else vain + 1
        yield from (point_number(space, places[row]) for row in alive)
        if monotonic() >= deadline:
            raise TimeoutError
