"""The best stages of a profile, by dynamic programming over its cuts from the last to the first, level by level: exact.

    left[i, e, s, r] = min over k, m of  max(load(i, k, m), left[k, e, s - 1, r - m])

is the slowest stage from cut i to cut e on r members in s stages (s only where memory counts it); a level hands `whole[i, e]`, the least
for all its members, to the level above. For the highest level, e is the end alone. All k are looked at in one step.
"""

from dataclasses import dataclass, field

import numpy as np

from crossopt.crossflow.arrays import Array, Mask, Whole
from crossopt.instances.errors import RefusedError
from crossopt.instances.stages.pipedream.question import PipelineQuestion
from crossopt.solvers.stages.pipedream.charges import Charges, charges_of
from crossopt.solvers.stages.pipedream.ideals import Ideals, Tick
from crossopt.solvers.stages.pipedream.plan import Stage

MOST_INSIDE = 1_500
"""Cuts of a profile for which levels below the highest are solved: they take the cube of it."""


@dataclass(slots=True)
class Search:
    """Tables as they are found, by level and by how often the levels above split a minibatch."""

    question: PipelineQuestion
    ideals: Ideals
    tick: Tick
    found: dict[tuple[int, int], "Tables"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """What is known of the ranges of one level."""

    charges: Charges
    ends: Whole
    left: Array
    """By first cut, end, stages and members: the slowest stage where something comes before."""
    whole: Array
    """By first cut and end, with the first stage as such: the least on all members, or, where some may idle, on any number."""


def best_stages(question: PipelineQuestion, ideals: Ideals, tick: Tick) -> tuple[float, tuple[Stage, ...]]:
    """The least seconds of the slowest stage, and stages that have it; infinite and none where no stages fit."""
    top = len(question.levels) - 1
    if top and len(ideals) > MOST_INSIDE:
        words = f"{len(ideals):,} places to cut it are too many for groups of devices (at most {MOST_INSIDE:,})"
        raise RefusedError(f"{words}: give --devices as one number, or merge nodes that belong together")
    search = Search(question, ideals, tick)
    tables = _tables(search, top, 1)
    value = float(tables.whole[0, 0])
    if value == float("inf"):
        return value, ()
    return value, tuple(_stages(search, top, 1, 0, len(ideals) - 1, (), ()))


def _tables(search: Search, level: int, share: int) -> Tables:
    if (level, share) not in search.found:
        search.found[level, share] = _filled(search, level, share)
    return search.found[level, share]


def _filled(search: Search, level: int, share: int) -> Tables:
    charges, count = charges_of(search.question, search.ideals, level, share), len(search.ideals)
    ends = np.array([count - 1]) if charges.top else np.arange(count)
    members = charges.level.members
    left = np.full((count, len(ends), _stage_counts(search, members), members + 1), np.inf)
    whole = np.full((count, len(ends)), np.inf)
    tables = Tables(charges, ends, left, whole)
    for row in range(count - 2, -1, -1):
        after = search.ideals.after(row)
        if row or not charges.top:
            left[row] = _joined(search, tables, level, share, row, after, first=False)
        if not charges.top:
            whole[row] = _started(search, tables, level, share, row, after)
        elif not row:
            started = _joined(search, tables, level, share, row, after, first=True)
            whole[row] = (started[:, :, members] if charges.compatible else started.min(axis=2)).min(axis=1)
        search.tick(1.0 - (row / count) ** 2 if charges.top else 0.0)
    return tables


def _stage_counts(search: Search, members: int) -> int:
    """How many numbers of stages are told apart: all where own memory counts them, none else."""
    question = search.question
    return 1 if question.compatible or question.memory == float("inf") else min(members, len(search.ideals) - 1)


def _joined(search: Search, tables: Tables, level: int, share: int, row: int, after: Whole, first: bool) -> Array:
    """The slowest stage from a cut to every end, by stages and members."""
    charges = tables.charges
    closing, columns = _ends(charges, after)
    left = tables.left[np.ix_(after, columns)]
    part: Array = np.full(left.shape[1:], np.inf)
    for replicas in range(1, (1 if search.question.straight else charges.level.members) + 1):
        work = _work(search, level, share, row, after, replicas)
        on = charges.load(row, after, work, replicas, first, last=False)
        at_end = charges.load(row, after[closing], work[closing], replicas, first, last=True)
        fits = _fitting(search, charges, row, after, replicas, part.shape[1])
        part[:, :, replicas:] = np.minimum(part[:, :, replicas:], _continued(left, on, fits, replicas))
        closed = at_end if fits is None else np.where(fits[closing, 0, 0], at_end, np.inf)
        part[:, 0, replicas] = np.minimum(part[:, 0, replicas], closed)
    best = np.full(tables.left.shape[1:], np.inf)
    best[columns] = part
    return best


def _ends(charges: Charges, after: Whole) -> tuple[Whole, Whole]:
    """Which of the cuts behind one are ends, and their columns in the tables: all, or at the highest level the last."""
    return (np.array([len(after) - 1]), np.array([0])) if charges.top else (np.arange(len(after)), after)


def _started(search: Search, tables: Tables, level: int, share: int, row: int, after: Whole) -> Array:
    """The least from a cut to every end with all members of a level below the highest, or, where some may idle, on any number."""
    charges, members = tables.charges, tables.charges.level.members
    left = tables.left[np.ix_(after, after)][:, :, 0]
    reach = left if charges.compatible else np.minimum.accumulate(left, axis=2)
    part: Array = np.full(len(after), np.inf)
    for replicas in range(1, (1 if search.question.straight else members) + 1):
        work = _work(search, level, share, row, after, replicas)
        on = charges.load(row, after, work, replicas, first=True, last=False)
        at_end = charges.load(row, after, work, replicas, first=True, last=True)
        fits = _fitting(search, charges, row, after, replicas, 1)
        on = on if fits is None else np.where(fits[:, 0, -1], on, np.inf)
        part = np.minimum(part, np.maximum(reach[:, :, members - replicas], on[:, None]).min(axis=0))
        if not charges.compatible or replicas == members:
            part = np.minimum(part, at_end if fits is None else np.where(fits[:, 0, 0], at_end, np.inf))
    best = np.full(len(tables.ends), np.inf)
    best[after] = part
    return best


def _continued(left: Array, on: Array, fits: Mask | None, replicas: int) -> Array:
    """The least over all next cuts of the slower of a stage and what follows it."""
    after = left[:, :, :, : left.shape[3] - replicas]
    if fits is None:
        return np.asarray(np.maximum(after, on[:, None, None, None]).min(axis=0))
    if left.shape[2] > 1:  # one stage more than what follows
        after = np.concatenate([np.full_like(after[:, :, :1], np.inf), after[:, :, :-1]], axis=2)
    costs = np.where(fits, on[:, None, None], np.inf)[:, None]
    return np.asarray(np.maximum(after, costs).min(axis=0))


def _fitting(search: Search, charges: Charges, row: int, after: Whole, replicas: int, stages: int) -> Mask | None:
    """What fits the memory; None where there is no limit."""
    if search.question.memory == float("inf"):
        return None
    return charges.fits(row, after, replicas, stages, charges.level.members)


def _work(search: Search, level: int, share: int, row: int, after: Whole, replicas: int) -> Array:
    """What the level below says of stages; at the lowest their own time. Own charges split the minibatch there, compatible ones later."""
    question = search.question
    if not level:
        seconds = search.ideals.seconds[after] - search.ideals.seconds[row]
        return np.asarray(seconds if question.compatible else seconds / (replicas * share))
    return np.asarray(_tables(search, level - 1, 1 if question.compatible else share * replicas).whole[row, after])


def _stages(search: Search, level: int, share: int, row: int, end: int, group: tuple[int, ...], replicas: tuple[int, ...]) -> list[Stage]:
    """The stages behind the entry of a range in the tables: every choice is looked for again."""
    found = list[Stage]()
    for number, (start, stop, count) in enumerate(_choices(search, level, share, row, end)):
        if level:
            inner = _stages(search, level - 1, share * count, start, stop, (*group, number), (count, *replicas))
            found += inner
        else:
            nodes = tuple(search.question.profile.ids[node] for node in search.ideals.between(start, stop))
            found.append(Stage(nodes, group, (count, *replicas)))
    return found


def _choices(search: Search, level: int, share: int, row: int, end: int) -> list[tuple[int, int, int]]:
    """The stages of one level within a range: first cut, last cut, replicas."""
    tables = _tables(search, level, 1 if search.question.compatible else share)
    column = int(np.flatnonzero(tables.ends == end)[0])
    started = _joined(search, tables, level, share, row, search.ideals.after(row), first=True)[column]
    members = started.shape[1] - 1
    wanted = float(tables.whole[row, column])
    places = [place for place in np.argwhere(started == wanted).tolist() if place[1] == members or not tables.charges.compatible]
    stages, left = places[0]
    parts, first = list[tuple[int, int, int]](), True
    while row != end:
        stop, count = _choice(search, tables, level, share, (row, end, column), (stages, left), wanted, first)
        parts.append((row, stop, count))
        row, left, first = stop, left - count, False
        stages -= tables.left.shape[2] > 1
        wanted = float(tables.left[row, column, stages, left]) if row != end else 0.0
    return parts


def _choice(
    search: Search, tables: Tables, level: int, share: int, place: tuple[int, int, int], counts: tuple[int, int], wanted: float, first: bool
) -> tuple[int, int]:
    """The next cut and the replicas of a stage with which an entry has its value."""
    (row, end, column), (stages, left), charges = place, counts, tables.charges
    after = search.ideals.after(row)
    staged = tables.left.shape[2] > 1
    for replicas in range(1, left + 1 if not search.question.straight else 2):
        work = _work(search, level, share, row, after, replicas)
        on = charges.load(row, after, work, replicas, first, last=False)
        at_end = charges.load(row, after, work, replicas, first, last=True)
        fits = _fitting(search, charges, row, after, replicas, tables.left.shape[2])
        kept = None if fits is None else np.broadcast_to(fits, (len(after), tables.left.shape[2], charges.level.members + 1 - replicas))
        on = on if kept is None else np.where(kept[:, stages, left - replicas], on, np.inf)
        at_end = at_end if kept is None else np.where(kept[:, 0, 0], at_end, np.inf)
        following = tables.left[after, column, stages - staged, left - replicas] if stages >= staged else np.full(len(after), np.inf)
        values = np.maximum(on, following)
        if left == replicas and not (staged and stages):
            values = np.where(after == end, at_end, values)
        if (hit := np.flatnonzero(values == wanted)).size:
            return int(after[hit[0]]), replicas
    raise ArithmeticError("no choice has the value of its table")
