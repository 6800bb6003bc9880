"""Assignment 9: alternating against joint. The best plan for a chip, the best chip for that plan, and so on until nothing changes: where
does it stick, what is lost, and when can chip and plan be chosen one after the other?

    rests       a design that is the quickest of its plan and of its chip: no step of an alternation leaves it
    interaction the largest |t[p][c] + t[q][d] - t[p][d] - t[q][c]|: 0 where every time is a part of the plan and a part of the chip

All questions are small enough to look at every design.

The alternation between plans and chips, where it may rest, and how far both depend on each other, by looking at every design.
"""

from collections.abc import Callable
from functools import cache, partial
from itertools import combinations, pairwise
from math import inf, isfinite
from random import Random
from typing import Any

from crossopt.solvers.grading.marks import (
    FULL,
    Assignment,
    Case,
    Slip,
    Task,
    Verdict,
    figure,
    given_first,
    integers_in,
    nearly,
    public,
    shown,
    wrong,
)
from crossopt.solvers.grading.questions import draw_question, small
from crossopt.solvers.grading.running import Call

Table = list[list[float | None]]
"""Seconds or other times, a row for each plan and a column for each chip; None where a limit is broken."""
Designs = list[list[int]]


def time_of(table: Table, plan: int, chip: int) -> float:
    """Infinite where a limit is broken."""
    time = table[plan][chip]
    return inf if time is None else time


def alternation(table: Table, chip: int, last: bool = False) -> Designs:
    """The designs one after the other; a plan or a chip is changed for a quicker one alone, of several for the first, or for the last."""
    plans, chips = (range(count)[:: -1 if last else 1] for count in (len(table), len(table[0])))
    plan = min(plans, key=lambda p: time_of(table, p, chip))
    if time_of(table, plan, chip) == inf:
        return []
    way = [[plan, chip]]
    while True:
        before = [plan, chip]
        best = min(chips, key=lambda c: time_of(table, plan, c))
        chip = best if time_of(table, plan, best) < time_of(table, plan, chip) else chip
        way += [[plan, chip]] if chip != way[-1][1] else []
        best = min(plans, key=lambda p: time_of(table, p, chip))
        plan = best if time_of(table, best, chip) < time_of(table, plan, chip) else plan
        way += [[plan, chip]] if plan != way[-1][0] else []
        if [plan, chip] == before:
            return way


def least(table: Table) -> float:
    """The best time of all designs."""
    return min(time_of(table, p, c) for p in range(len(table)) for c in range(len(table[0])))


def rests(table: Table) -> Designs:
    """Designs that are the quickest of their plan and of their chip."""
    rows = [min(inf if time is None else time for time in row) for row in table]
    columns = [min(time_of(table, p, c) for p in range(len(table))) for c in range(len(table[0]))]
    found = ((p, c) for p in range(len(table)) for c in range(len(table[0])) if time_of(table, p, c) < inf)
    return [[p, c] for p, c in found if time_of(table, p, c) == rows[p] == columns[c]]


def end(table: Table, chip: int) -> float:
    """Where an alternation from a chip ends; infinite where it cannot begin."""
    way = alternation(table, chip)
    return time_of(table, *way[-1]) if way else inf


def failing(table: Table) -> list[int]:
    """Chips from which it ends above the best, or cannot begin."""
    best = least(table)
    return [chip for chip in range(len(table[0])) if end(table, chip) > best]


def interaction(table: Table) -> float:
    """The largest over all pairs of plans and of chips; every entry is a time."""
    return max(map(abs, interactions(table)))


def interactions(table: Table) -> list[float]:
    """Those of all pairs, each plan before the other and each chip too, with their signs."""
    rows, chips = [[time or 0 for time in row] for row in table], range(len(table[0]))
    return [first[c] + second[d] - first[d] - second[c] for first, second in combinations(rows, 2) for c, d in combinations(chips, 2)]


def of_some(table: Table) -> dict[str, float]:
    """The largest of some pairs alone, or with its sign, by what was left out."""
    turned: Table = [list(column) for column in zip(*table, strict=True)]
    first, first_chip = (max(interaction([lines[0], line]) for line in lines[1:]) for lines in (table, turned))
    beside, beside_chip = (max(interaction(list(pair)) for pair in pairwise(lines)) for lines in (table, turned))
    corner = max(abs(interaction([[row[0], row[c]] for row in (table[0], other)])) for other in table[1:] for c in range(1, len(turned)))
    return {
        "neighbours alone are compared": _of_neighbours(table),
        "all are compared with the first plan and the first chip alone": corner,
        "neighbouring plans alone are compared": beside,
        "neighbouring chips alone are compared": beside_chip,
        "plans are compared with the first one alone": first,
        "chips are compared with the first one alone": first_chip,
        "the sign is kept: what is below 0 counts, too": max(interactions(table)),
    }


def _of_neighbours(table: Table) -> float:
    """The largest of neighbouring plans and neighbouring chips alone."""
    squares = ([row[c : c + 2] for row in pair] for pair in pairwise(table) for c in range(len(table[0]) - 1))
    return max(interaction(square) for square in squares)


def is_alone(table: Table, plan: int, chip: int) -> bool:
    """Whether no other design of its plan or of its chip is as quick."""
    time = table[plan][chip]
    return table[plan].count(time) == [row[chip] for row in table].count(time) == 1


def broken_ties(table: Table) -> Table:
    """Of times that are equal the first is a little shorter: so the first of the quickest is taken, and what it has is not kept."""
    width = len(table[0])
    return [[None if time is None else time + 1e-9 * (p * width + c) for c, time in enumerate(row)] for p, row in enumerate(table)]


_MOST = 1000
"""The greatest time of a trap."""
_CHIPS = """  compute_area: {from: 260 mm^2, to: 600 mm^2, step: 40 mm^2}
  l2_area: [40 mm^2, 80 mm^2]
  hbm_stacks: [1, 2, 3, 4, 5, 6]
"""
_NETWORKS, _BATCHES = ("gpt3-6.7b", "gpt3-13b"), (16, 32, 64)
"""Large networks and few samples: where few stacks hold them with full recomputation alone, and more stacks leave less area for cores."""
_STAIRS = 24
"""Plans and chips of a staircase, whose way has nearly twice as many designs."""
_DRAWS = 200
"""Questions that are drawn in vain before one is taken in which nothing is lost."""


def tasks(seed: str) -> tuple[Task, ...]:
    """Tables with and without limits, with ties, and of the full model; in each something sticks."""
    random, handed = Random(f"{seed}/09"), public("09-alternating")
    given: Table = handed["times"]
    tables = [given, _sticking(random, 5, 7, 0.0), _sticking(random, 12, 9, 0.15), _staircase(random, _STAIRS), _tied(random, 8, 8)]
    ways = [*((table, _longest(table)) for table in tables), (tables[-1], len(tables[-1][0]) - 1)]
    cases = [(given, _worst(given)), *((table, _worst(table)) for table in (_of_the_model(random), tables[2])), ways[3]]
    traps = [tuple(handed["trap"].values()), *((random.randrange(2, 6), random.randrange(2, 7), random.randrange(3, 20)) for _ in range(3))]
    sums = [[list(row) for row in handed["sum"]], _sum(random, 6, 5), _full(random, 5, 6), _full(random, 9, 4), _near_sum(random, 7, 7)]
    return (
        Task("the way of an alternation: alternate", 12, given_first(_way_case(*case) for case in ways)),
        Task("where it may stick: sticks", 12, given_first(_case("sticks", table, judge_sticks) for table in tables)),
        Task("from which chips it fails: failing", 9, given_first(_case("failing", table, judge_failing) for table in tables)),
        Task("what it loses: lost", 9, given_first(_lost_case(*case) for case in cases)),
        Task("a table that traps it: trap", 9, given_first(_trap_case(*case) for case in traps)),
        Task("when nothing can be lost: interaction", 9, given_first(_interaction_case(table) for table in sums)),
    )


ONE_ROUND = "the way ends after one round, although something still changes"
LAST_ALONE = "the end alone is returned, not the way to it"
TWICE = "a design is there twice: it is no step when nothing changes"
NO_START = "the first design, of the chip that it begins with, is left out"
LAST_OF_TIES = "of several that are quickest the last is taken (the first is meant)"
CUT = "the way is cut after some rounds, although something still changes"
ALONE = "a design is left out where another of its plan or of its chip is as quick: nobody leaves it for that"
TIES = "a plan or a chip is changed for one that is as quick (only for a quicker one)"
BEST_TOO = "the best design is among them: it is where an alternation should end"
REACHED = "those that no chip leads to are left out: it may begin with a plan, too, or with what somebody chose"
ROWS = "the quickest chips of plans are taken, whatever else the chip could run"
COLUMNS = "the quickest plans of chips are taken, whatever other chip there is for the plan"
SUCCEEDING = "these are the chips from which it finds the best"
FIRST_STEP = "the best plan of a chip is compared with the best, not the end of its way"
CANNOT_BEGIN = "chips that no plan fits are left out: from those it finds nothing"


def judge_way(handed: object, table: Table, chip: int) -> Verdict:
    """The very way."""
    right = alternation(table, chip)
    given = _designs(handed, table)
    if given is None:
        return wrong(f"designs [plan, chip] are meant, one after the other, not {shown(handed)}")
    if given == right:
        return FULL
    named = {
        ONE_ROUND: given == right[:2],
        LAST_ALONE: given == right[-1:],
        TWICE: given == [*right, *right[-1:]],
        NO_START: given == right[1:],
        TIES: given == alternation(broken_ties(table), chip),
        LAST_OF_TIES: given == alternation(table, chip, last=True),
        CUT: given == right[: len(given)],
    }
    return _named(named, f"{len(given)} designs, where the way has {len(right)} and ends with {right[-1] if right else 'none'}")


def judge_sticks(handed: object, table: Table) -> Verdict:
    """All designs at which it may rest above the best, in any order."""
    given = _designs(handed, table)
    if given is None:
        return wrong(f"a list of designs [plan, chip] is meant, not {shown(handed)}")
    best, all_rests = least(table), rests(table)
    right = [design for design in all_rests if time_of(table, *design) > best]
    if sorted(given) == right:
        return FULL
    reached = {tuple(way[-1]) for chip in range(len(table[0])) if (way := alternation(table, chip))}
    plans, chips = range(len(table)), range(len(table[0]))
    of_plans = [[p, min(chips, key=lambda c, p=p: time_of(table, p, c))] for p in plans]  # type: ignore[misc]
    of_chips = [[min(plans, key=lambda p, c=c: time_of(table, p, c)), c] for c in chips]  # type: ignore[misc]
    named = {
        BEST_TOO: sorted(given) == all_rests,
        REACHED: sorted(given) == [design for design in right if tuple(design) in reached],
        ALONE: sorted(given) == [design for design in right if is_alone(table, *design)],
        ROWS: sorted(given) == sorted(design for design in of_plans if best < time_of(table, *design) < inf),
        COLUMNS: sorted(given) == sorted(design for design in of_chips if best < time_of(table, *design) < inf),
    }
    return _named(named, f"{len(given)} designs are given, where it may stick at {len(right)}")


def judge_failing(handed: object, table: Table) -> Verdict:
    """The chips, in any order."""
    given = integers_in(handed, len(table[0]))
    if given is None:
        return wrong(f"a list of chips is meant, not {shown(handed)}")
    right, best, chips = failing(table), least(table), range(len(table[0]))
    if sorted(given) == right:
        return FULL
    firsts = [min(time_of(table, p, chip) for p in range(len(table))) for chip in chips]
    named = {
        SUCCEEDING: sorted(given) == [chip for chip in chips if chip not in right],
        CANNOT_BEGIN: sorted(given) == [chip for chip in right if alternation(table, chip)],
        FIRST_STEP: sorted(given) == [chip for chip in chips if firsts[chip] > best],
        CUT: sorted(given) in _failing_when_cut(table),
    }
    return _named(named, f"{len(given)} chips are given, where it fails from {len(right)}")


def _failing_when_cut(table: Table) -> list[list[int]]:
    """The chips that fail after two, three, ... designs."""
    chips, best = range(len(table[0])), least(table)
    times = [[time_of(table, *design) for design in alternation(table, chip)] or [inf] for chip in chips]
    return [[chip for chip in chips if times[chip][:most][-1] > best] for most in range(2, max(map(len, times)))]


def _named(named: dict[str, bool], why: str) -> Verdict:
    found = [name for name, so in named.items() if so]
    return nearly(found[0], why, *found[1:]) if found else wrong(why)


def judge_trap(handed: object, plans: int, chips: int, ratio: int) -> Verdict:
    """A table whose every chip but one leads an alternation to an end that is so many times the best at least."""
    rows = handed if isinstance(handed, list) and len(handed) == plans else []
    table: Table = [list(row) for row in (integers_in(row, chips) for row in rows) if row is not None and len(row) == chips]
    if len(table) != plans or not all(time is not None and 1 <= time <= _MOST for row in table for time in row):
        return wrong(f"{plans} rows of {chips} whole numbers from 1 to {_MOST} are meant, not {shown(handed)}")
    best = least(table)
    ends = [end(table, chip) for chip in range(chips)]
    trapped = [time for time in ends if time >= ratio * best]
    if len(trapped) == chips - 1:
        return FULL
    why = f"from {len(trapped)} of {chips} chips it ends at {ratio} times the best or above, from {chips - 1} it should"
    stuck = [time for time in ends if time > best]
    return nearly("it sticks, but not so far above the best as asked for", why) if len(stuck) == chips - 1 else wrong(why)


def _designs(handed: object, table: Table) -> Designs | None:
    most = 4 * len(table) * len(table[0])
    if not isinstance(handed, list) or len(handed) > most:
        return None
    found = [integers_in(entry, 2) for entry in handed]
    good = [design for design in found if design and len(design) == 2 and 0 <= design[0] < len(table) and 0 <= design[1] < len(table[0])]
    return good if len(good) == len(handed) else None


def _sticking(random: Random, plans: int, chips: int, broken: float) -> Table:
    """The first draw of different times in which the ways are long, and some chips fail and others do not."""
    draws = iter(partial(_random_times, random, plans, chips, broken), None)
    return next(table for table in draws if 0 < len(failing(table)) < chips and len(alternation(table, _longest(table))) > 3)


def _staircase(random: Random, stairs: int) -> Table:
    """A table whose way from one chip goes over all plans but one and all chips but one to the best, and a design aside where it sticks."""
    count = stairs + 1
    quick = sorted(random.sample(range(100, 400), 2 * stairs), reverse=True)
    aside = quick.pop(random.randrange(2 * stairs - 1))
    table = [[random.randrange(400, 2000) for _ in range(count)] for _ in range(count)]
    for step, time in enumerate(quick):
        table[step // 2][(step + 1) // 2] = time
    table[stairs][stairs] = aside
    plans, chips = (random.sample(range(count), count) for _ in range(2))
    return [[table[plan][chip] for chip in chips] for plan in plans]


def _random_times(random: Random, plans: int, chips: int, broken: float) -> Table:
    """Different times, of which some break a limit."""
    times = iter(random.sample(range(100, 100 + 9 * plans * chips), plans * chips))
    return [[None if random.random() < broken else next(times) for _ in range(chips)] for _ in range(plans)]


def _tied(random: Random, plans: int, chips: int) -> Table:
    """Few different times: the first draw in which it matters that what is as quick is kept, the first of several taken,
    and that no chip leads to some rest."""

    def draw() -> Table:
        table: Table = [[random.randrange(3, 9) for _ in range(chips)] for _ in range(plans)]
        table[random.randrange(plans)][random.randrange(chips)] = 2
        for row in table:
            row[chips - 1] = None
        return table

    def tells(table: Table) -> bool:
        chip, best = _longest(table), least(table)
        others = (alternation(broken_ties(table), chip), alternation(table, chip, last=True))
        stuck = [design for design in rests(table) if time_of(table, *design) > best]
        ends = [way[-1] for start in range(chips) if (way := alternation(table, start))]
        differs = not all(is_alone(table, *design) for design in stuck) and not all(design in ends for design in stuck)
        return differs and alternation(table, chip) not in others and 1 < len(failing(table)) < chips

    return next(table for table in iter(draw, None) if tells(table))


def _longest(table: Table) -> int:
    """The chip from which the way is longest."""
    return max(range(len(table[0])), key=lambda chip: len(alternation(table, chip)))


def _worst(table: Table) -> int:
    """The chip from which it ends farthest above the best."""
    ends = [end(table, chip) for chip in range(len(table[0]))]
    return max(range(len(ends)), key=lambda chip: ends[chip] if isfinite(ends[chip]) else -inf)


def _of_the_model(random: Random) -> Table:
    """Step times of a small question: the first draw in which alternating loses something, as long as there is one among so many."""
    table: Table = []
    for _ in range(_DRAWS):
        table = _table_of(draw_question(random, "A question of assignment 9.", _CHIPS, _NETWORKS, _BATCHES))
        if least(table) < end(table, _worst(table)) < inf:
            return table
    return table


@cache
def _table_of(text: str) -> Table:
    question = small(text)
    return [[float(time) if isfinite(time) else None for time in row] for row in question.prices(question.chips())]


def _sum(random: Random, plans: int, chips: int) -> Table:
    """A part of the plan and a part of the chip."""
    rows, columns = ([random.randrange(10, 200) for _ in range(count)] for count in (plans, chips))
    return [[row + column for column in columns] for row in rows]


def _near_sum(random: Random, plans: int, chips: int) -> Table:
    """The same, but for one design in the middle."""
    table = _sum(random, plans, chips)
    row = table[random.randrange(2, plans - 1)]
    column = random.randrange(2, chips - 1)
    row[column] = (row[column] or 0) + random.randrange(5, 50)
    return table


def _full(random: Random, plans: int, chips: int) -> Table:
    """The first draw in which less than all pairs, or the largest with its sign, is another figure."""

    def draw() -> Table:
        return [[random.randrange(100, 900) for _ in range(chips)] for _ in range(plans)]

    return next(table for table in iter(draw, None) if max(of_some(table).values()) < interaction(table))


def _case(function: str, table: Table, judge: Callable[..., Verdict], *more: Any) -> Case:  # noqa: ANN401 - whatever is asked
    return Case(_text(table), Call(function, (table, *more)), partial(judge, table=table))


def _text(table: Table) -> str:
    return f"{len(table)} plans, {len(table[0])} chips"


def _way_case(table: Table, chip: int) -> Case:
    return _case("alternate", table, partial(judge_way, chip=chip), chip)


def _lost_case(table: Table, chip: int) -> Case:
    ended, best, first, *later = end(table, chip), least(table), *(time_of(table, *design) for design in alternation(table, chip))
    slips = [
        Slip("the loss is told as a share of the best, not as how many times the best it is", ended / best - 1.0),
        Slip("the ratio is turned round", best / ended),
        Slip("this is the difference, not the ratio", ended - best),
        Slip("this is the end, not what is lost", ended),
        Slip("the first design of the way is compared with the best, not the last", first / best),
        Slip("the first design is compared with the last", first / ended),
        *(Slip(CUT, time / best) for time in later[:-1]),
    ]
    return Case(_text(table), Call("lost", (table, chip)), partial(figure, right=ended / best, slips=slips))


def _trap_case(plans: int, chips: int, ratio: int) -> Case:
    judge = partial(judge_trap, plans=plans, chips=chips, ratio=ratio)
    return Case(f"{plans} plans, {chips} chips, {ratio} times", Call("trap", (plans, chips, ratio)), judge)


def _interaction_case(table: Table) -> Case:
    rows = [[time or 0 for time in row] for row in table]
    right = interaction(table)
    slips = [
        *(Slip(mistake, value) for mistake, value in of_some(table).items()),
        Slip("half of it is returned", right / 2.0),
        Slip("the differences of a plan on two chips are returned", float(max(max(row) - min(row) for row in rows))),
    ]
    return Case(_text(table), Call("interaction", (table,)), partial(figure, right=right, slips=slips))


ALTERNATING = Assignment("09-alternating", "Alternating against joint: when does decomposition fail?", tasks)
