"""The neighbourhood of a design in which searchers move, their steps, and the driver that holds them to their time."""

from collections.abc import Callable, Generator, Iterator
from functools import partial
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.crossflow.kernels.kernel_plan import SPLITS, KernelPlan
from crossopt.crossflow.plan import PLAN_FIELDS, Plan, Plans, code, table
from crossopt.crossflow.records import dataclass
from crossopt.instances.codesign.boxes import Boxes, Grid, corners, full_box, grid, places_of, point_number, tightened
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import AnyPlans, draw_plans
from crossopt.solvers.answer import Limits, Progress, SearchOutcome, Start, Watch
from crossopt.solvers.codesign.answer import Candidate, Designs, answer_of, candidate
from crossopt.solvers.codesign.baselines.recipes import recipes_design
from crossopt.solvers.codesign.pricing import hosted, joined, memory_of, rows_of, values_of

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
    layouts: Whole
    """The layout of each plan, ascending."""
    firsts: Whole
    """The first plan of each layout."""
    settings: Whole
    """The other settings of each plan that are not the same for all, one column each."""
    start: Candidate | None
    """The best recipe's design, from which engines that prove begin, too; none where no recipe has one, or where the start is cold."""

    @property
    def width(self) -> int:
        """Designs that are looked at together: few where plans are priced one by one, many where there is but one chip."""
        if not isinstance(self.plans, Plans):
            return 16
        return 64 if self.space.points > 1 else 128


@dataclass(frozen=True, slots=True)
class Look:
    """Prices of plans (rows) on chips (columns), infinite where one does not fit the other."""

    places: Whole
    """Of the chips, one row each."""
    rows: Whole
    """Of the plans in the table."""
    values: Array
    priced: int
    """Different designs among them; where no chip was found to look at, the draws that it took to find none."""

    @property
    def value(self) -> float:
        """The least."""
        return float(self.values.min(initial=np.inf))

    @property
    def best(self) -> tuple[Whole, int]:
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


def look(question: Question, places: Whole, rows: Whole) -> Look:
    """Price every plan on every chip, each different one once."""
    chips, chip_of = _different(places)
    plans, plan_of = np.unique(rows, return_inverse=True)
    devices = corners(question.instance, question.space, Boxes(chips, chips))
    values = values_of(question.instance, devices, rows_of(question.plans, plans))
    return Look(places, rows, values[plan_of.reshape(-1)[:, None], chip_of[None]], values.size or _DRAWS)


def alive(question: Question, places: Whole) -> Whole:
    """Which of the chips keep the budgets."""
    if not len(places):
        return np.zeros(0, np.int64)
    return np.flatnonzero(corners(question.instance, question.space, Boxes(places, places)).alive)


def draw_chips(question: Question, random: np.random.Generator, count: int) -> Whole:
    """At most so many chips that keep the budgets, each equally likely; perhaps none where they are rare."""
    drawn = random.integers(question.box.low[0], question.box.high[0] + 1, size=(_DRAWS, len(question.space.sizes)))
    return drawn[alive(question, drawn)[:count]]


def draw_rows(question: Question, random: np.random.Generator, count: int) -> Whole:
    """So many plans, each equally likely."""
    return random.integers(len(question.plans), size=count)


def started(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """Looks of which the last one holds a design to start from: the best recipe's, or else random ones until some keep every limit."""
    if question.start is not None:
        row = row_of(question.plans, question.start.plan)
        yield look(question, places_of(question.space, question.start.point)[None], np.array([row]))
        return
    value = np.inf
    while not value < np.inf:
        seen = look(question, draw_chips(question, random, question.width), draw_rows(question, random, question.width))
        value = seen.value
        yield seen


def pooled(question: Question, chips: Whole, count: int = _POOL) -> Generator[Look, None, tuple[Whole, Array]]:
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


def _columns(plans: AnyPlans) -> tuple[Whole, Whole]:
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


def _different(places: Whole) -> tuple[Whole, Whole]:
    """The different rows, and for each row which of them it is."""
    if not places.shape[1] or not len(places):
        return places[:1], np.zeros(len(places), np.int64)
    chips, chip_of = np.unique(places, axis=0, return_inverse=True)
    return chips, chip_of.reshape(-1)


# Steps from one design to another: one hardware choice or two, one setting of the plan.

_TRIES = 4
"""Chips that are tried for each changed one, since most of those around a good chip break a budget."""


def change_chips(question: Question, random: np.random.Generator, places: Whole) -> Whole:
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


def change_plans(question: Question, random: np.random.Generator, rows: Whole) -> Whole:
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


def nearest(question: Question, layouts: Whole, wanted: Whole) -> Whole:
    """For each layout the plan of it with the fewest settings other than wanted."""
    first, last = _ends(question, layouts)
    found = first.copy()
    for place, (start, stop, other) in enumerate(zip(first, last, wanted, strict=True)):
        found[place] += np.argmin((question.settings[start:stop] != other).sum(axis=1))
    return found


def _steps(random: np.random.Generator, sizes: Whole) -> Whole:
    """1, 2, 4, 8, ... less than the number of options."""
    powers = np.ceil(np.log2(np.maximum(sizes, 2))).astype(np.int64)
    return 1 << random.integers(powers)


def _ends(question: Question, layouts: Whole) -> tuple[Whole, Whole]:
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
"""The same in small questions, as a multiple of all their designs."""


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
            left, total = left - max(seen.priced, _LEAST), total + seen.priced
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
