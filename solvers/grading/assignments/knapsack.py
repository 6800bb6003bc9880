"""Assignment 2: which activations to keep in memory and which to compute again, a knapsack; by a table, a bound, and integer models."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random

import numpy as np

from crossopt.solvers.grading.handed_model import Plan, saying, solved
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
from crossopt.solvers.grading.running import Call

Items = tuple[list[int], list[int], int]
"""Mebibytes and microseconds of each activation, and mebibytes of memory."""
Needs = list[list[int]]
"""Pairs: the first can only be kept together with the second."""

Question = tuple[list[int], list[int], int, Needs]
"""Activations and their needs."""

_SETS = 4
"""Drawn of each kind, to try a model with."""


def tasks(seed: str) -> tuple[Task, ...]:
    """Sizes that a table takes quickly and no enumeration of subsets does; the last of each kind holds everything or nothing."""
    random, handed = Random(f"{seed}/02"), public("02-knapsack")
    given: Items = handed["sizes"], handed["values"], handed["capacity"]
    rng = Random(f"{seed}/02/plans")
    many = [given, _greedy_fails(random, 200, 0.4), _greedy_fails(random, 120, 0.15), _items(random, 60, 2.0), _items(random, 60, 0.0)]
    many.append(_exactly(random, 60))
    few: list[Question] = [(*ask, []) for ask in (given, _snug(_items(random, 40, 0.5)), _items(random, 30, 0.2), _items(random, 12, 0.0))]
    bound = [given, _items(random, 50, 0.35), _items(random, 20, 0.5), _items(random, 20, 2.0)]
    needing = [(*given, handed["needs"]), *(_snug_with_needs(_items(random, 14, share), _needs(random, 14)) for share in (0.3, 0.5, 0.7))]
    return (
        Task("the best set by dynamic programming: best_by_table", 21, given_first(_set_case(items) for items in many)),
        Task("the bound of the relaxation: relaxation", 12, given_first(_bound_case(items) for items in bound)),
        Task("an integer model: model", 15, given_first(_model_case(ask, rng) for ask in few)),
        Task("with activations that need others: model_with_needs", 12, given_first(_needing_case(ask, rng) for ask in needing)),
    )


def most(sizes: Sequence[int], values: Sequence[int], capacity: int) -> int:
    """best[c] = the most that items worth of c together can have: best[c] = max(best[c], best[c - size] + value) (Bellman 1957)."""
    best = np.zeros(capacity + 1, dtype=np.int64)
    for size, value in zip(sizes, values, strict=True):
        if size <= capacity:
            best[size:] = np.maximum(best[size:], best[: capacity + 1 - size] + value)
    return int(best[capacity])


def most_with_needs(sizes: Sequence[int], values: Sequence[int], capacity: int, needs: Needs) -> int:
    """Of all subsets."""
    return _best_subset(sizes, values, capacity, needs)[0]


def _best_subset(sizes: Sequence[int], values: Sequence[int], capacity: int, needs: Needs) -> tuple[int, int]:
    """What the best subsets spare, and what the smallest of them takes."""
    subsets = np.arange(1 << len(sizes))
    bits = [(subsets >> item) & 1 for item in range(len(sizes))]
    worth, size = (sum((bit * each for bit, each in zip(bits, column, strict=True)), np.zeros_like(subsets)) for column in (values, sizes))
    right = size <= capacity
    for first, second in needs:
        right &= bits[first] <= bits[second]
    best = int(worth[right].max())
    return best, int(size[right & (worth == best)].min())


def fractional(sizes: Sequence[int], values: Sequence[int], capacity: int) -> float:
    """The best by value for size, the last one in part (Dantzig 1957)."""
    return _fractional((sizes, values, capacity), lambda item: -values[item] / sizes[item])


def _fractional(items: tuple[Sequence[int], Sequence[int], int], order: Callable[[int], float]) -> float:
    """The first of an order, the last one in part."""
    (sizes, values, capacity), worth = items, 0.0
    left = float(capacity)
    for item in sorted(range(len(sizes)), key=order):
        share = min(1.0, left / sizes[item])
        worth, left = worth + share * values[item], left - share * sizes[item]
    return worth


def by_ratio(sizes: Sequence[int], values: Sequence[int], capacity: int, stop_at_first: bool = False) -> int:
    """What is spared by the best ratios first, each that still fits; or up to the first that does not."""
    worth, left = 0, capacity
    for item in sorted(range(len(sizes)), key=lambda item: -values[item] / sizes[item]):
        if sizes[item] <= left:
            worth, left = worth + values[item], left - sizes[item]
        elif stop_at_first:
            break
    return worth


def judge_set(chosen: object, items: Items, best: int, needs: Needs) -> Verdict:
    """What a set is worth: as much as the best one, or what a likely mistake finds, or less."""
    sizes, values, capacity = items
    places = integers_in(chosen, len(sizes) * (capacity + 1))
    if places is None or any(not 0 <= item < len(sizes) for item in places):
        return wrong(f"{shown(chosen)} is returned where different places from 0 to {len(sizes) - 1} are meant")
    if len(set(places)) < len(places):
        return wrong(f"{shown(chosen)} is returned where different places are meant", TWICE)
    if broken := _broken(places, items, needs):
        return wrong(broken)
    worth = sum(values[item] for item in places)
    why = f"{worth} us are spared, {best - worth} fewer than by the best set"
    if worth == best:
        return FULL
    if not needs and worth in {by_ratio(*items), by_ratio(*items, stop_at_first=True)}:
        return wrong(why, GREEDY)
    return nearly(BELOW, why) if not needs and capacity and worth == most(sizes, values, capacity - 1) else wrong(why)


def _broken(places: Sequence[int], items: Items, needs: Needs) -> str:
    """Why a set is none that may be kept; nothing where it is one."""
    sizes, _, capacity = items
    size = sum(sizes[item] for item in places)
    if size > capacity:
        return f"what is kept takes {size} MiB of {capacity} MiB, {size - capacity} too many"
    without = [need for need in needs if need[0] in places and need[1] not in places]
    return f"{without[0][0]} is kept without {without[0][1]}, which it needs" if without else ""


GREEDY = "the best ratios are taken first, which is not the best set"
TWICE = "an activation is kept twice (a table that is filled from small memories up may take it again)"
BELOW = "a set that fills the memory exactly is left out"


def judge_model(handed: object, items: Items, best: int, needs: Needs, plans: Sequence[Plan]) -> Verdict:
    """What the best solution of a model is worth, by what it keeps and not by its objective, where the model holds all plans."""
    try:
        values, claimed = solved(handed)
        chosen = [item for item in range(len(items[0])) if _is_kept(values, item)]
    except ValueError as error:
        return wrong(str(error))
    worth = sum(items[1][item] for item in chosen)
    off = "" if claimed == worth else f"the objective says {claimed}, but what is kept spares {worth} us"
    return saying(judge_set(chosen, items, best, needs), handed, plans, off)


def _is_kept(values: dict[str, int], item: int) -> bool:
    name = f"keep {item}"
    if values.get(name) not in {0, 1}:
        raise ValueError(f"there is no variable {name!r} from 0 to 1 in the model")
    return values[name] == 1


def _items(random: Random, count: int, share: float) -> Items:
    """Sizes that follow the values loosely, so that taking the best ratios first is seldom the best."""
    sizes = [random.randrange(20, 200) for _ in range(count)]
    values = [max(1, size + random.randrange(-15, 16)) for size in sizes]
    return sizes, values, round(share * sum(sizes))


def _greedy_fails(random: Random, count: int, share: float) -> Items:
    """The first draw of which the best ratios, and the best set in one mebibyte less, spare less than the best set, and not the same."""
    draws = iter(partial(_items, random, count, share), None)
    return next(items for items in draws if by_ratio(*items) < most(*items) and _tells_less(items))


def _tells_less(items: Items) -> bool:
    """Whether one mebibyte less spares less, and not what the best ratios do."""
    sizes, values, capacity = items
    less = most(sizes, values, capacity - 1)
    return less < most(*items) and less not in {by_ratio(*items), by_ratio(*items, stop_at_first=True)}


def _snug(items: Items) -> Items:
    """The items with the least capacity at which the best set is still the best."""
    sizes, values, capacity = items
    best = most(*items)
    return sizes, values, next(room for room in range(capacity + 1) if most(sizes, values, room) == best)


def _snug_with_needs(items: Items, needs: Needs) -> Question:
    sizes, values, _ = items
    return sizes, values, _best_subset(*items, needs)[1], needs


def _exactly(random: Random, count: int) -> Items:
    """Memory for one activation alone, the smallest that is larger than another: the first draw in which that fits exactly matters."""

    def draw() -> Items:
        sizes, values, _ = _items(random, count, 0.0)
        return sizes, values, sorted(set(sizes))[1]

    return next(items for items in iter(draw, None) if _tells_less(items))


def _needs(random: Random, count: int) -> Needs:
    return [random.sample(range(count), 2) for _ in range(count // 2)]


def _set_case(items: Items) -> Case:
    return Case(_text(items), Call("best_by_table", items), partial(judge_set, items=items, best=most(*items), needs=[]))


def _bound_case(items: Items) -> Case:
    sizes, values, _ = items
    fraction = fractional(*items)
    slips = [
        Slip("the last activation is left out instead of kept in part", by_ratio(*items, stop_at_first=True)),
        Slip("activations that follow are kept whole where one does not fit", by_ratio(*items)),
        Slip("the figure is rounded down (parts of microseconds count)", float(int(fraction))),
        Slip("the figure is rounded", float(round(fraction))),
        Slip("this is the best set, not the relaxation", most(*items), share=0.0),
        Slip("everything is kept, whatever the memory", sum(values), share=0.0),
        Slip("the largest values are taken first, not the best ratios", _fractional(items, lambda item: -values[item]), share=0.0),
        Slip("the smallest sizes are taken first, not the best ratios", _fractional(items, lambda item: sizes[item]), share=0.0),
    ]
    return Case(_text(items), Call("relaxation", items), partial(figure, right=fraction, slips=slips))


def draw_plans(random: Random, items: Items, needs: Needs) -> tuple[Plan, ...]:
    """Sets that fit and keep what they need, some that are a little too large, and for each need one that breaks it alone."""
    sets = [_grown(random, items, needs) for _ in range(_SETS)]
    return (
        *(_plan(chosen, items, None) for chosen in ([], *(fitting for fitting, _ in sets))),
        *(_plan(more, items, "too much") for _, more in sets if more),
        *(_plan(chosen, items, f"{i} is kept without {j}") for chosen, (i, j) in _needing(items, needs)),
    )


def _grown(random: Random, items: Items, needs: Needs) -> tuple[list[int], list[int]]:
    """A set that grows while it fits, each activation with all that it needs, and the first one that does not fit, empty where all do."""
    sizes, _, capacity = items
    chosen = set[int]()
    for item in random.sample(range(len(sizes)), len(sizes)):
        more = chosen | _with_needs(item, needs)
        if sum(sizes[member] for member in more) > capacity:
            return sorted(chosen), sorted(more)
        chosen = more
    return sorted(chosen), []


def _with_needs(item: int, needs: Needs) -> set[int]:
    """An activation, what it needs, what that needs, and so on."""
    found, left = {item}, [item]
    while left:
        member = left.pop()
        further = {j for i, j in needs if i == member} - found
        found, left = found | further, [*left, *further]
    return found


def _needing(items: Items, needs: Needs) -> Iterator[tuple[list[int], tuple[int, int]]]:
    """For each need a set that fits and breaks no other one, where there is such a set."""
    sizes, _, capacity = items
    for i, j in needs:
        chosen = _with_needs(i, [need for need in needs if need != [i, j]])
        if j not in chosen and sum(sizes[item] for item in chosen) <= capacity:
            yield sorted(chosen), (i, j)


def _plan(chosen: list[int], items: Items, fault: str | None) -> Plan:
    sizes, values, capacity = items
    size, worth = (sum(column[item] for item in chosen) for column in (sizes, values))
    text = f"to keep {shown(chosen)}, {size} of {capacity} MiB, sparing {worth} us"
    named = {f"keep {item}": int(item in chosen) for item in range(len(sizes))}
    return Plan(named, worth if fault is None else None, f"{text} ({fault})" if fault else text)


def _model_case(given: Question, random: Random) -> Case:
    sizes, values, capacity, _ = given
    items = sizes, values, capacity
    judge = partial(judge_model, items=items, best=most(*items), needs=[], plans=draw_plans(random, items, []))
    return Case(_text(items), Call("model", items), judge)


def _needing_case(given: Question, random: Random) -> Case:
    sizes, values, capacity, needs = given
    items = sizes, values, capacity
    plans = draw_plans(random, items, needs)
    judge = partial(judge_model, items=items, best=most_with_needs(*given), needs=needs, plans=plans)
    return Case(_text(items), Call("model_with_needs", given), judge)


def _text(items: Items) -> str:
    sizes, _, capacity = items
    return f"{len(sizes)} activations, {capacity} MiB"


KNAPSACK = Assignment("02-knapsack", "Keep or compute again: a knapsack", tasks)
