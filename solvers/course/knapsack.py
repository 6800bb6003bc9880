"""Assignment 2: which activations to keep in memory and which to compute again, a knapsack; by a table, a bound, and integer models."""

from collections.abc import Sequence
from functools import partial
from random import Random

import numpy as np

from solvers.course.handed_model import solved
from solvers.course.handouts import public
from solvers.course.marks import FULL, Assignment, Case, Task, Verdict, by_gap, figure, shown, whole_numbers
from solvers.course.running import Call

Items = tuple[list[int], list[int], int]
"""Mebibytes and microseconds of each activation, and mebibytes of memory."""
Needs = list[list[int]]
"""Pairs: the first can only be kept together with the second."""

_NEAR, _BOUND_NEAR = 0.1, 0.001
_WRONG_OBJECTIVE = 0.5


def tasks(seed: str) -> tuple[Task, ...]:
    """Sizes that a table takes quickly and no enumeration of subsets does; the last of each kind holds everything or nothing."""
    random, handed = Random(f"{seed}/02"), public("02-knapsack")
    given: Items = handed["sizes"], handed["values"], handed["capacity"]
    many = [given, _items(random, 200, 0.4), _items(random, 120, 0.15), _items(random, 60, 2.0), _items(random, 60, 0.0)]
    few = [given, _items(random, 40, 0.5), _items(random, 30, 0.2), _items(random, 12, 0.0)]
    bound = [given, _items(random, 50, 0.35), _items(random, 20, 0.5), _items(random, 20, 2.0)]
    needing = [(*given, handed["needs"]), *((*_items(random, 14, share), _needs(random, 14)) for share in (0.3, 0.5, 0.7))]
    return (
        Task("the best set by dynamic programming: best_by_table", 35, tuple(_set_case(items) for items in many)),
        Task("the bound of the relaxation: relaxation", 20, tuple(_bound_case(items) for items in bound)),
        Task("an integer model: model", 25, tuple(_model_case("model", items, []) for items in few)),
        Task("with activations that need others: model_with_needs", 20, tuple(_needing_case(one) for one in needing)),
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
    subsets = np.arange(1 << len(sizes))
    kept = [(subsets >> place) & 1 for place in range(len(sizes))]
    worth = sum((one * value for one, value in zip(kept, values, strict=True)), np.zeros_like(subsets))
    right = sum((one * size for one, size in zip(kept, sizes, strict=True)), np.zeros_like(subsets)) <= capacity
    for first, second in needs:
        right &= kept[first] <= kept[second]
    return int(worth[right].max())


def fractional(sizes: Sequence[int], values: Sequence[int], capacity: int) -> float:
    """The best by value for size, the last one in part (Dantzig 1957)."""
    worth, left = 0.0, float(capacity)
    for place in sorted(range(len(sizes)), key=lambda place: -values[place] / sizes[place]):
        share = min(1.0, left / sizes[place])
        worth, left = worth + share * values[place], left - share * sizes[place]
    return worth


def judged_set(chosen: object, items: Items, best: int, needs: Needs) -> Verdict:
    """What a set is worth, beside the best one."""
    sizes, values, capacity = items
    places = whole_numbers(chosen, len(sizes))
    if places is None or len(set(places)) < len(places) or any(not 0 <= place < len(sizes) for place in places):
        return Verdict(0.0, f"{shown(chosen)} is returned where different places from 0 to {len(sizes) - 1} are meant")
    size = sum(sizes[place] for place in places)
    if size > capacity:
        return Verdict(0.0, f"what is kept takes {size} MiB of {capacity} MiB, {size - capacity} too many")
    for first, second in needs:
        if first in places and second not in places:
            return Verdict(0.0, f"{first} is kept without {second}, which it needs")
    worth = sum(values[place] for place in places)
    return _beside(worth, best, f"{worth} us are spared, {best - worth} fewer than by the best set")


def judged_model(handed: object, items: Items, best: int, needs: Needs) -> Verdict:
    """What the best solution of a model is worth, computed from what it keeps and not from its objective."""
    try:
        values, claimed = solved(handed)
        chosen = [place for place in range(len(items[0])) if _kept(values, place)]
    except ValueError as error:
        return Verdict(0.0, str(error))
    verdict = judged_set(chosen, items, best, needs)
    worth = sum(items[1][place] for place in chosen)
    if verdict.share and claimed != worth:
        why = f"the objective says {claimed}, but what is kept spares {worth} us (half the points)"
        return Verdict(verdict.share * _WRONG_OBJECTIVE, f"{verdict.why}; {why}" if verdict.why else why)
    return verdict


def _kept(values: dict[str, int], place: int) -> bool:
    name = f"keep {place}"
    if values.get(name) not in {0, 1}:
        raise ValueError(f"there is no variable {name!r} from 0 to 1 in the model")
    return values[name] == 1


def _beside(worth: int, best: int, why: str) -> Verdict:
    return FULL if worth == best else by_gap((best - worth) / best, _NEAR, why)


def _items(random: Random, count: int, share: float) -> Items:
    """Sizes that follow the values loosely, so that taking the best ratios first is seldom the best."""
    sizes = [random.randrange(20, 200) for _ in range(count)]
    values = [max(1, size + random.randrange(-15, 16)) for size in sizes]
    return sizes, values, round(share * sum(sizes))


def _needs(random: Random, count: int) -> Needs:
    return [random.sample(range(count), 2) for _ in range(count // 2)]


def _set_case(items: Items) -> Case:
    return Case(_words(items), Call("best_by_table", items), partial(judged_set, items=items, best=most(*items), needs=[]))


def _bound_case(items: Items) -> Case:
    return Case(_words(items), Call("relaxation", items), partial(figure, right=fractional(*items), nothing_at=_BOUND_NEAR))


def _model_case(function: str, items: Items, needs: Needs) -> Case:
    return Case(_words(items), Call(function, items), partial(judged_model, items=items, best=most(*items), needs=needs))


def _needing_case(given: tuple[list[int], list[int], int, Needs]) -> Case:
    sizes, values, capacity, needs = given
    items, best = (sizes, values, capacity), most_with_needs(*given)
    return Case(_words(items), Call("model_with_needs", given), partial(judged_model, items=items, best=best, needs=needs))


def _words(items: Items) -> str:
    sizes, _, capacity = items
    return f"{len(sizes)} activations, {capacity} MiB"


KNAPSACK = Assignment("02-knapsack", "Keep or compute again: a knapsack", tasks)
