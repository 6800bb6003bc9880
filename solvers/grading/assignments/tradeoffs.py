"""Assignment 6: fronts of die area and step time, of plain points, of splits whose parts add up, and of the designs of a question.

Figures are added up and designs priced anew by the full model; the front of a question is that of all its designs, as `--pareto` proves it.

Fronts of two figures of which less is better, and what they are worth.

hypervolume of points      the area that at least one of them is no worse than, up to a corner
the best few               best[k][i] = max over j < i of best[k-1][j] + the strip that point i adds to point j, points in order
                           (hypervolume subset selection in two dimensions; Auger, Bader, Brockhoff and Zitzler 2009)
sums of parts              the front of the first parts, joined with every option of the next, thinned to its front again
"""

from collections.abc import Sequence
from functools import cache, partial
from itertools import pairwise
from math import isfinite
from random import Random
from typing import Any

import numpy as np

from crossopt.instances.codesign.space import hardware_points
from crossopt.solvers.grading.marks import (
    FULL,
    SAME,
    Assignment,
    Case,
    Slip,
    Task,
    Verdict,
    apart,
    figure,
    given_first,
    integers_in,
    nearly,
    number,
    public,
    same,
    shown,
    wrong,
)
from crossopt.solvers.grading.questions import MANY_BATCHES, Small, draw_question, small
from crossopt.solvers.grading.running import Call

Point = tuple[float, float]
Parts = list[list[list[int]]]
"""For each part its options, each with two figures that add up over the parts."""


def unbeaten(points: Sequence[Point]) -> list[Point]:
    """The points that none is as good as in both figures and better in one, each once, by rising first figure."""
    found: list[Point] = []
    for point in sorted(set(points)):
        if not found or point[1] < found[-1][1]:
            found.append(point)
    return found


def hypervolume(points: Sequence[Point], corner: Point) -> float:
    """Strip by strip from the least first figure on."""
    inside = [point for point in unbeaten(points) if point[0] < corner[0] and point[1] < corner[1]]
    return float(sum((after[0] - x) * (corner[1] - y) for (x, y), after in pairwise([*inside, corner])))


def most_of_few(points: Sequence[Point], corner: Point, count: int) -> float:
    """The most that so many of the points are worth."""
    order = [point for point in unbeaten(points) if point[0] < corner[0] and point[1] < corner[1]]
    best = [(corner[0] - x) * (corner[1] - y) for x, y in order]
    worth = best
    for _ in range(min(count, len(order)) - 1):
        worth = [max([best[i], *(worth[j] + _added(order[j], order[i], corner) for j in range(i))]) for i in range(len(order))]
    return max(worth, default=0.0)


def _added(before: Point, point: Point, corner: Point) -> float:
    """What a point adds to a front that ends with the one before."""
    return (corner[0] - point[0]) * (before[1] - point[1])


def one_by_one(points: Sequence[Point], corner: Point, count: int) -> list[Point]:
    """Each time the point that adds most, which need not be the best few together."""
    chosen: list[Point] = []
    for _ in range(min(count, len(points))):
        chosen.append(max(points, key=lambda point: hypervolume([*chosen, point], corner)))
    return chosen


def supported(front: Sequence[Point]) -> list[Point]:
    """The points of a front, by rising first figure, that some weighted sum of both figures finds: its lower hull."""
    hull: list[Point] = []
    for point in front:
        while len(hull) > 1 and _turn(hull[-2], hull[-1], point) <= 0.0:
            hull.pop()
        hull.append(point)
    return hull


def _turn(first: Point, second: Point, third: Point) -> float:
    """Above 0 where the way from the first over the second to the third turns left."""
    return (second[0] - first[0]) * (third[1] - first[1]) - (second[1] - first[1]) * (third[0] - first[0])


def split_front(parts: Parts) -> list[Point]:
    """The front of the sums, part after part."""
    found: list[Point] = [(0, 0)]
    for options in parts:
        found = unbeaten([(x + area, y + time) for x, y in found for area, time in options])
    return found


_MOST = 100_000
"""Entries that an answer may have."""
_MM2 = 1e6
"""Square millimetres of a square metre."""
_ROOM = 3.0
"""The corner of a question: so many times the least step time, and the die-area budget."""
_CHIPS = """  compute_area: {from: 320 mm^2, to: 600 mm^2, step: 40 mm^2}
  l2_area: [10 mm^2, 40 mm^2, 80 mm^2]
  hbm_stacks: [2, 4, 6]
"""


def tasks(seed: str) -> tuple[Task, ...]:
    """Points with ties and repeats among them; the question of the handout and one of the seed."""
    random, handed = Random(f"{seed}/06"), public("06-die-area-front")
    sampled = [_points(random, count) for count in (12, 300, 1)]
    fronts = [(_front_points(random, count, most), most) for count, most in ((9, 3), (60, 8), (4, 9))]
    chosen = [(*handed["few"].values(), handed["corner"]), *((points, most, _corner(points)) for points, most in fronts)]
    chosen.append((beyond := _front_points(random, 12, 12), 3, [sorted(point[figure] for point in beyond)[-2] for figure in (0, 1)]))
    parts = [_parts(random, count) for count in (3, 8, 10)]
    questions = [(name, text, most) for name, text in (("given", question("practice")), ("hidden", _hidden(random))) for most in (4, 100)]
    several = [(handed["points"], handed["corner"]), *((points, _corner(points)) for points in sampled)]
    several.insert(1, (sampled[1], [380, 320]))
    return (
        Task("what nothing beats: front", 9, given_first(_front_case(points) for points, _ in several)),
        Task("what a front is worth: hypervolume", 6, given_first(_volume_case(*given) for given in several)),
        Task("the best few of a front: few", 12, given_first(_few_case(*given) for given in chosen)),
        Task("the front of a die-area split: splits", 18, given_first(_splits_case(given) for given in (handed["parts"], *parts))),
        Task("designs of a question, by the full model: designs", 15, given_first((_designs_case(*given) for given in questions), 2)),
    )


def question(seed: str) -> str:
    """The question as YAML."""
    return draw_question(Random(f"{seed}/06/question"), "Which die is worth its area? A question of assignment 6.", _CHIPS)


def _hidden(random: Random) -> str:
    return draw_question(random, "The hidden question of assignment 6.", _CHIPS, batches=MANY_BATCHES)


@cache
def proven_front(text: str) -> tuple[Point, ...]:
    """Seconds and square millimetres of the front of a question: every design is priced, which proves that nothing lies between."""
    problem = small(text)
    times, areas = problem.prices(problem.chips()), problem.areas() * _MM2
    every = [(float(time), float(area)) for time, area in zip(times.min(axis=0), areas, strict=True) if isfinite(time)]
    return tuple(unbeaten(every))


TIES = "points are given that another one beats in one figure and equals in the other"
TWICE = "equal points are given, of which one is enough (a front names each once)"
ENDS = "the ends of the front are missing"
ONE_BY_ONE = "the point that adds most is taken, one after the other: together others are worth more"
GREATEST = "the points that are worth most alone are taken: together others are worth more"
SUPPORTED = "only designs that some weighted sum finds are given: a front has others besides"
QUICKEST = "the quickest designs are taken, whatever they add to the front"


def judge_front(handed: object, points: list[list[int]]) -> Verdict:
    """Places of all that is on the front, and of nothing else; of equal points one."""
    places = integers_in(handed, len(points))
    if places is None or len(set(places)) < len(places) or not all(0 <= index < len(points) for index in places):
        return wrong(f"different places of points from 0 to {len(points) - 1} are meant, not {shown(handed)}")
    right = unbeaten([(x, y) for x, y in points])
    given = [(float(points[index][0]), float(points[index][1])) for index in places]
    verdict = _found(given, right, "beaten by another point")
    if verdict.share:
        return nearly(TWICE) if len(set(given)) < len(given) else verdict
    return verdict


def judge_few(handed: object, points: list[list[int]], corner: list[int], count: int) -> Verdict:
    """What the chosen points are worth: the most that so many can be, or what a likely mistake finds, or less."""
    places = integers_in(handed, len(points))
    if places is None or not all(0 <= index < len(points) for index in places):
        return wrong(f"places of points from 0 to {len(points) - 1} are meant, not {shown(handed)}")
    if len(places) > count:
        return wrong(f"{len(places)} points are chosen of which {count} are allowed")
    plain, end = [(x, y) for x, y in points], (corner[0], corner[1])
    most, worth = most_of_few(plain, end, count), hypervolume([plain[index] for index in places], end)
    if worth >= most * (1.0 - SAME):
        return FULL
    given, right = apart(worth, most)
    why = f"the points are worth {given}, {right} can be had"
    if same(worth, hypervolume(one_by_one(plain, end, count), end)):
        return nearly(ONE_BY_ONE, why)
    alone = sorted(plain, key=lambda point: -hypervolume([point], end))[:count]
    if same(worth, hypervolume(alone, end)):
        return wrong(why, GREATEST)
    return nearly("one point fewer is chosen than allowed", why) if same(worth, most_of_few(plain, end, count - 1)) else wrong(why)


def judge_splits(handed: object, parts: Parts) -> Verdict:
    """Splits by their sums, added up anew."""
    if not isinstance(handed, list) or len(handed) > _MOST:
        return wrong(f"a list of splits is meant, not {shown(handed)}")
    given = []
    for split in handed:
        places = integers_in(split, len(parts))
        if places is None or len(places) != len(parts) or not all(0 <= p < len(some) for p, some in zip(places, parts, strict=True)):
            return wrong(f"a split has a place for each of {len(parts)} parts, not {shown(split)}")
        chosen = [options[index] for index, options in zip(places, parts, strict=True)]
        given.append((float(sum(area for area, _ in chosen)), float(sum(time for _, time in chosen))))
    return _found(given, split_front(parts), "beaten by another split")


def _found(given: Sequence[Point], right: Sequence[Point], beaten: str) -> Verdict:
    """The verdict on points of a front: right if they are the whole front and nothing else. Likely mistakes are named."""
    on_it = set(right)
    strangers = {point for point in given if point not in on_it}
    missing = on_it.difference(given)
    parts = [f"{len(missing)} of the {len(right)} points of the front are missing"] if missing else []
    parts += [f"{len(strangers)} of the given {'is' if len(strangers) == 1 else 'are'} {beaten}"] if strangers else []
    why = " and ".join(parts)
    if not parts:
        return FULL
    if not missing and all(any(x == p[0] or y == p[1] for p in right) for x, y in strangers):
        return nearly(TIES, why)
    if not strangers and missing <= {right[0], right[-1]}:
        return nearly(ENDS, why)
    return wrong(why, SUPPORTED if not strangers and set(given) == set(supported(right)) else "")


def judge_designs(handed: object, text: str, count: int) -> Verdict:
    """Designs priced anew one by one: all of them must be designs of the question, and worth what the best few are."""
    if not isinstance(handed, list) or not 0 < len(handed) <= count or not all(isinstance(entry, dict) for entry in handed):
        return wrong(f"1 to {count} designs are meant, each a dictionary, not {shown(handed)}")
    problem, sound, faults = small(text), list[Point](), list[str]()
    for entry in handed[:_MOST]:
        read = _point_of(problem, entry)
        faults, sound = ([*faults, read], sound) if isinstance(read, str) else (faults, [*sound, read])
    if faults:
        return wrong(f"{faults[0]}{f' (and {len(faults) - 1} more)' if len(faults) > 1 else ''}")
    return _worth(sound, text, problem, count)


def _worth(sound: Sequence[Point], text: str, problem: Small, count: int) -> Verdict:
    """What designs are worth beside the best few of the proven front."""
    corner, front, efficient = corner_of(problem), proven_front(text), unbeaten(sound)
    most, worth = most_of_few(front, corner, count), hypervolume(efficient, corner)
    complete, why = worth >= most * (1.0 - SAME), f"the designs are worth {worth / most:.2%} of what {count} of the proven front are"
    if len(efficient) < len(sound):
        beaten = f"{len(sound) - len(efficient)} of the designs are beaten by others of them, or given twice"
        return nearly("designs are given that others of them beat", beaten) if complete else wrong(beaten)
    if complete:
        return FULL
    names = {ONE_BY_ONE: hypervolume(one_by_one(front, corner, count), corner), SUPPORTED: most_of_few(supported(front), corner, count)}
    found = [name for name, other in names.items() if same(worth, other)]
    if found:
        return nearly(found[0], why, *found[1:])
    return wrong(why, QUICKEST if same(worth, hypervolume(front[:count], corner)) else "")


def _point_of(problem: Small, entry: dict[str, Any]) -> Point | str:
    """Seconds and square millimetres of a design; a sentence where it is none, or not what it claims."""
    plan, chip = entry.get("plan"), entry.get("chip")
    if not _is_index(plan, len(problem.plans)) or not _is_index(chip, hardware_points(problem.instance)):
        return f"a design has the places of a plan and a chip, not {shown(entry)}"
    try:
        verdict = problem.judged(int(plan), int(chip))  # type: ignore[arg-type]
    except ValueError as error:
        return f"plan {plan} on chip {chip} is no design: {error}"
    if verdict.violations:
        return f"plan {plan} on chip {chip} is no design: it breaks a limit, in SI units: {verdict.violations[0]}"
    true = verdict.value, verdict.details.die_area * _MM2
    for name, figure_there in zip(("step_time", "die_area"), true, strict=True):
        claimed = number(entry.get(name))
        if claimed is None or abs(claimed - figure_there) > SAME * figure_there:
            right, _ = apart(figure_there, claimed or 0.0)
            return f"plan {plan} on chip {chip} has the {name} {right}, where {shown(entry.get(name))} is claimed"
    return true


def _is_index(value: object, count: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < count


def corner_of(problem: Small) -> Point:
    """Three times the least step time, and the budget of die area."""
    return _ROOM * float(problem.bounds(problem.chips()).min()), problem.instance.budget.die_area * _MM2


@cache
def _plain(text: str) -> dict[str, Any]:
    """The question as it is handed to a program: chips with their areas, plans, and the step time of each plan on each chip."""
    problem = small(text)
    times, areas = problem.prices(problem.chips()), problem.areas() * _MM2
    chips = [{"die_area": float(area), "choices": problem.choice(chip)} for chip, area in enumerate(areas)]
    rows = [[float(time) if np.isfinite(time) else None for time in row] for row in times]
    corner = corner_of(problem)
    plans = [str(problem.plan(row)) for row in range(len(problem.plans))]
    return {"chips": chips, "plans": plans, "step_time": rows, "corner": {"step_time": corner[0], "die_area": corner[1]}}


def _points(random: Random, count: int) -> list[list[int]]:
    """Points near a falling curve, some of them twice and some equal in one figure."""
    points = [[x, round(40_000 / x) + random.randrange(60)] for x in (random.randrange(100, 500) for _ in range(count))]
    return [*points, *random.sample(points, min(3, count)), *([point[0], point[1] + 7] for point in points[:2])]


def _front_points(random: Random, count: int, few: int) -> list[list[int]]:
    """Points of which none beats another, in no order: the first draw in which taking them one by one is not the best where it can fail."""

    def draw() -> list[list[int]]:
        first, second = (sorted(random.sample(range(100, 900), count)) for _ in range(2))
        return [[x, y] for x, y in zip(first, reversed(second), strict=True)]

    points = next(found for found in iter(draw, None) if few >= count or _one_by_one_fails(found, few))
    random.shuffle(points)
    return points


def _one_by_one_fails(points: list[list[int]], few: int) -> bool:
    plain, corner = [(x, y) for x, y in points], _corner(points)
    end = corner[0], corner[1]
    return hypervolume(one_by_one(plain, end, few), end) < most_of_few(plain, end, few)


def _parts(random: Random, count: int) -> Parts:
    """Options that take the more area the less time they take, and one that is worth nothing."""
    return [_options(random, random.randrange(400, 4000)) for _ in range(count)]


def _options(random: Random, work: int) -> list[list[int]]:
    areas = sorted(random.sample(range(5, 60), 4))
    return [*([area, round(work / area) + random.randrange(10)] for area in areas), [areas[-1] + 3, round(work / areas[0])]]


def _corner(points: Sequence[Sequence[int]]) -> list[int]:
    return [max(point[0] for point in points) + 20, max(point[1] for point in points) + 20]


def _front_case(points: list[list[int]]) -> Case:
    return Case(f"{len(points)} points", Call("front", (points,)), partial(judge_front, points=points))


def _volume_case(points: list[list[int]], corner: list[int]) -> Case:
    plain, end = [(x, y) for x, y in points], (corner[0], corner[1])
    front = unbeaten(plain)
    slips = [
        Slip("rectangles are added up, also where they overlap", sum(hypervolume([point], end) for point in set(plain))),
        Slip("rectangles of the front are added up, also where they overlap", sum(hypervolume([point], end) for point in front)),
        Slip("the area below the front is counted, not that up to the corner", float(end[0] * end[1]) - hypervolume(plain, end)),
        Slip("the first point of the front is left out", hypervolume(front[1:], end)),
        Slip("the last point of the front is left out", hypervolume(front[:-1], end)),
        Slip("points beyond the corner are counted, too", _beyond(front, end)),
    ]
    return Case(f"{len(points)} points", Call("hypervolume", (points, corner)), partial(figure, right=hypervolume(plain, end), slips=slips))


def _beyond(front: Sequence[Point], corner: Point) -> float:
    """Strips of all points, of those beyond the corner with a minus."""
    return float(sum((after[0] - x) * (corner[1] - y) for (x, y), after in pairwise([*front, corner])))


def _few_case(points: list[list[int]], count: int, corner: list[int]) -> Case:
    judge = partial(judge_few, points=points, corner=corner, count=count)
    return Case(f"{count} of {len(points)} points", Call("few", (points, corner, count)), judge)


def _splits_case(parts: Parts) -> Case:
    return Case(f"{len(parts)} parts", Call("splits", (parts,)), partial(judge_splits, parts=parts))


def _designs_case(name: str, text: str, count: int) -> Case:
    title = f"the {name} question, at most {count} designs"
    return Case(title, Call("designs", (_plain(text), count)), partial(judge_designs, text=text, count=count))


TRADEOFFS = Assignment("06-die-area-front", "What another square millimetre buys: a proven front", tasks, seconds=20)
