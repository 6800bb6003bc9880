"""Assignment 7: symmetry, the bound of a box, and a branch and bound whose tree of boxes is its certificate.

    bound of a box     min sum of w_k / x_k,  low <= x <= high,  sum of x_k <= area, with fractions: the largest over prices l >= 0 of
                       sum of min over x_k of (w_k / x_k + l x_k)  -  l area      (every price gives a bound; Everett 1963)
    tree               a box that is not cut is refuted where the project's own bound of it is not below the value of the design

A tree is verified box by box with the full model's bounds, whatever the program that made it took for bounds.
"""

from functools import cache, partial
from itertools import product
from math import inf, isfinite, prod, sqrt
from random import Random
from typing import Any, NamedTuple

import numpy as np

from crossopt.instances.codesign.boxes import Boxes, whole
from crossopt.solvers.codesign.boxes.cuts import sides_of, told
from crossopt.solvers.grading.assignments.symmetry import first_of_its_kind, ways
from crossopt.solvers.grading.handouts import public
from crossopt.solvers.grading.marks import FULL, SAME, Assignment, Case, Task, Verdict, apart, by_gap, number, shown, whole_numbers
from crossopt.solvers.grading.questions import Small, draw_question, small
from crossopt.solvers.grading.walls.running import Call

Area = tuple[list[int], list[int], list[int], int]
"""Works, least and greatest areas, and the area of all parts together."""
Ends = tuple[tuple[int, ...], tuple[int, ...]]
"""The first and the last places of a box."""

_NEAR = 0.1
_CORNER = 0.4
"""What the bound at the upper corner of a box is worth."""
_VALUE, _CERTIFICATE, _SIZE = 0.4, 0.4, 0.2
_FREE, _WASTED = 10, 3.0
"""A tree may have twice the boxes of the grader's own and so many more; at so many times more than that its size earns nothing."""
_HALVINGS = 200
_CHIPS = """  compute_area: {from: 300 mm^2, to: 600 mm^2, step: 60 mm^2}
  compute_power: [120 W, 160 W, 200 W, 240 W]
  l2_area: [10 mm^2, 40 mm^2, 80 mm^2]
  hbm_stacks: [2, 4, 5, 6]
"""


def tasks(seed: str) -> tuple[Task, ...]:
    """Devices of several kinds; boxes with and without a limit that binds, and one without a chip; two questions."""
    random, handed = Random(f"{seed}/07"), public("07-bounds-and-boxes")
    given: Area = handed["bound"]["works"], handed["bound"]["low"], handed["bound"]["high"], handed["bound"]["area"]
    counted = [
        tuple(handed["count"].values()),
        *((random.randrange(*ends), [random.randrange(2, 5) for _ in range(kinds)]) for ends, kinds in _COUNTED),
    ]
    placed = [tuple(handed["representative"].values()), *(_placed(random, count) for count in (6, 40, 1))]
    boxes = [_box(random, parts, share) for parts, share in ((3, 0.5), (4, 0.3), (4, 0.7), (2, 1.0), (3, -0.1))]
    asked = [(name, text) for name, text in (("given", question("practice")), ("hidden", _hidden(random)))]
    return (
        Task("how many placements differ: count", 10, tuple(_count_case(*one) for one in counted)),
        Task("one for all that are the same: representative", 10, tuple(_representative_case(*one) for one in placed)),
        Task("a bound of a box: bound", 25, tuple(_bound_case(box) for box in (given, *boxes))),
        Task("the best chip, with its tree: branch", 55, tuple(_branch_case(*one) for one in asked)),
    )


_COUNTED = (((3, 5), 1), ((8, 12), 2), ((20, 40), 3))


def question(seed: str) -> str:
    """The question as YAML."""
    return draw_question(Random(f"{seed}/07/question"), "The best chip, with its tree of boxes. A question of assignment 7.", _CHIPS)


def _hidden(random: Random) -> str:
    return draw_question(random, "The hidden question of assignment 7.", _CHIPS)


def judge_count(handed: object, right: int) -> Verdict:
    """A number of ways, which is whole and right or wrong."""
    if isinstance(handed, bool) or not isinstance(handed, int):
        return Verdict(0.0, f"{shown(handed)} is returned where a whole number is meant")
    return FULL if handed == right else Verdict(0.0, f"{shown(handed)} is returned, which is too {'few' if handed < right else 'many'}")


def judge_representative(handed: object, places: list[int], kinds: list[int]) -> Verdict:
    """The list that stands for all lists that are the same."""
    given = whole_numbers(handed, len(places))
    if given is None or len(given) != len(places) or not all(0 <= place < sum(kinds) for place in given):
        return Verdict(0.0, f"a device for each of {len(places)} operators is meant, not {shown(handed)}")
    right = first_of_its_kind(places, kinds)
    if given == right:
        return FULL
    if first_of_its_kind(given, kinds) == right:
        return Verdict(0.5, "a placement that is the same, but not the least such list (half the points)")
    return Verdict(0.0, "another placement, which no renaming of equal devices makes of the one given")


def fractional_bound(works: list[int], low: list[int], high: list[int], area: int) -> float:
    """The best price found by halving; every price gives a bound, so that rounding costs sharpness and not truth."""
    if sum(low) > area:
        return inf
    least, most, best = 0.0, max(work / x**2 for work, x in zip(works, low, strict=True)), -inf
    for price in (least, most):
        best = max(best, _priced(works, low, high, area, price)[0])
    for _ in range(_HALVINGS):
        price = (least + most) / 2.0
        value, used = _priced(works, low, high, area, price)
        best = max(best, value)
        least, most = (price, most) if used > area else (least, price)
    return best


def _priced(works: list[int], low: list[int], high: list[int], area: int, price: float) -> tuple[float, float]:
    """The bound of a price, and the area that parts take at it."""
    taken = [min(max(sqrt(work / price) if price else inf, least), most) for work, least, most in zip(works, low, high, strict=True)]
    return sum(work / x for work, x in zip(works, taken, strict=True)) + price * (sum(taken) - area), sum(taken)


def least_time(works: list[int], low: list[int], high: list[int], area: int) -> float:
    """The least time of whole areas in the box, all of them tried."""
    grids = np.meshgrid(*(np.arange(least, most + 1) for least, most in zip(low, high, strict=True)), indexing="ij")
    times = sum(work / x for work, x in zip(works, grids, strict=True))
    return float(np.where(sum(grids) <= area, times, inf).min())


def judge_bound(handed: object, box: Area) -> Verdict:
    """A bound that is above a chip's time is none; the others earn by how far they come from the corner to the best with fractions."""
    works, _, high, _ = box
    least, best = least_time(*box), fractional_bound(*box)
    if best == inf:
        return FULL if handed is None else Verdict(0.0, f"no chip of the box fits the area; None says so, not {shown(handed)}")
    given = number(handed)
    if given is None:
        return Verdict(0.0, f"{shown(handed)} is returned where a time is meant")
    if given > least * (1.0 + SAME):
        bound, time = apart(given, least)
        return Verdict(0.0, f"the bound {bound} is above the time of a chip in the box, {time}: it is no bound")
    corner = sum(work / x for work, x in zip(works, high, strict=True))
    bound, at_corner, most = apart(given, corner, best)
    why = f"the bound is {bound}, where the upper corner gives {at_corner} and {most} can be had"
    if given < corner * (1.0 - SAME) or best <= corner * (1.0 + SAME):
        near = by_gap(1.0 - given / corner, _NEAR, why)
        return near if best <= corner * (1.0 + SAME) else Verdict(round(_CORNER * near.share, 2), why)
    return by_gap((1.0 - _CORNER) * (best - given) / (best - corner), 1.0, why) if given < best * (1.0 - SAME) else FULL


class Leaf(NamedTuple):
    """A box that a tree does not cut."""

    low: tuple[int, ...]
    high: tuple[int, ...]


def leaves_of(tree: object, sizes: tuple[int, ...]) -> list[Leaf]:
    """The boxes that a tree does not cut; a ValueError in words where it is none. Each cut leaves something on both sides, so that there
    are no more of them than chips."""
    found, left = list[Leaf](), [(tree, Leaf((0,) * len(sizes), tuple(size - 1 for size in sizes)))]
    while left:
        node, box = left.pop()
        if node is None:
            found.append(box)
            continue
        if not isinstance(node, list) or len(node) != 4 or whole_numbers(node[:2], 2) is None:
            raise ValueError(f"a tree is None or [choice, place, lower, upper], not {shown(node)}")
        choice, place = node[:2]
        if not (0 <= choice < len(sizes) and box.low[choice] <= place < box.high[choice]):
            raise ValueError(f"the box {_words(box)} cannot be cut behind place {place} of choice {choice}")
        lower = Leaf(box.low, (*box.high[:choice], place, *box.high[choice + 1 :]))
        upper = Leaf((*box.low[:choice], place + 1, *box.low[choice + 1 :]), box.high)
        left += [(node[3], upper), (node[2], lower)]
    return found


def judge_branch(handed: object, text: str) -> Verdict:
    """Value, certificate and size, each priced or verified anew."""
    if not isinstance(handed, dict) or set(handed) != {"point", "value", "tree"}:
        return Verdict(0.0, f"a dictionary with `point`, `value` and `tree` is meant, not {shown(handed)}")
    asked = small(text)
    point = whole_numbers(handed["point"], len(asked.space.sizes))
    sizes = asked.space.sizes
    if point is None or len(point) != len(sizes) or not all(0 <= place < size for place, size in zip(point, sizes, strict=True)):
        return Verdict(0.0, f"the point has a place for each of {len(sizes)} choices, not {shown(handed['point'])}")
    value = _value(asked, point)
    if value == inf:
        return Verdict(0.0, f"no plan on the chip {shown(point)} keeps every limit")
    best, claimed = least_value(text), number(handed["value"])
    took, least = apart(value, best)
    near = FULL if value <= best else by_gap(value / best - 1.0, _NEAR, f"the chip takes {took} s, {least} s can be had")
    if claimed is None or abs(claimed - value) > SAME * value:
        near = Verdict(0.0, f"the chip takes {value!r} s, where {shown(handed['value'])} is claimed")
    try:
        leaves = leaves_of(handed["tree"], sizes)
    except ValueError as error:
        return Verdict(round(_VALUE * near.share, 2), "; ".join(why for why in (near.why, str(error)) if why))
    proof = _certificate(asked, leaves, value)
    size = _size(len(leaves), needed_leaves(text)) if proof.share == 1.0 else Verdict(0.0, "the size of a tree counts once it proves")
    parts = (near, _VALUE), (proof, _CERTIFICATE), (size, _SIZE)
    share = sum(verdict.share * weight for verdict, weight in parts)
    return FULL if all(one.share == 1.0 for one, _ in parts) else Verdict(share, "; ".join(one.why for one, _ in parts if one.why))


def _value(asked: Small, point: list[int]) -> float:
    """The least step time on a chip, its best plan priced on its own; infinite where there is none."""
    places = np.array([point], np.int64)
    prices = asked.prices(Boxes(places, places))[:, 0]
    plan = int(np.argmin(prices))
    return asked.judged(plan, int(np.ravel_multi_index(tuple(point), asked.space.sizes))).value if isfinite(prices[plan]) else inf


def _certificate(asked: Small, leaves: list[Leaf], value: float) -> Verdict:
    """How much of the question the tree refutes, by the project's bounds."""
    bounds = asked.bounds(Boxes(np.array([leaf.low for leaf in leaves]), np.array([leaf.high for leaf in leaves])))
    open_ones = [(leaf, bound) for leaf, bound in zip(leaves, bounds.tolist(), strict=True) if bound < value]
    if not open_ones:
        return FULL
    chips = sum(prod(high - low + 1 for low, high in zip(*leaf, strict=True)) for leaf, _ in open_ones)
    first, bound = open_ones[0]
    why = f"{len(open_ones)} of {len(leaves)} boxes are not refuted, such as {_words(first)} with its bound {apart(bound, value)[0]} s"
    return by_gap(chips / asked.space.points, 1.0, why)


def _size(leaves: int, needed: int) -> Verdict:
    allowed = 2 * needed + _FREE
    return by_gap(max(0.0, leaves / allowed - 1.0), _WASTED, f"the tree has {leaves} boxes, where {needed} do and {allowed} are allowed")


@cache
def least_value(text: str) -> float:
    """The optimum, all designs priced."""
    asked = small(text)
    return float(asked.bounds(asked.chips()).min())


@cache
def needed_leaves(text: str) -> int:
    """Boxes of the grader's own tree, which cuts where both parts gain most and knows the optimum."""
    asked, best = small(text), least_value(text)
    left, count = [whole(asked.space)], 0
    while left:
        box = left.pop()
        if asked.bounds(box)[0] >= best:
            count += 1
            continue
        sides = _sides(box)
        bounds = asked.bounds(sides).reshape(2, -1)
        at = int(np.argmax(told(np.minimum(bounds, best))))
        left += [sides.at(at), sides.at(at + bounds.shape[1])]
    return count


def _sides(box: Boxes) -> Boxes:
    """All cuts of a box: the lower parts and then the upper ones."""
    cuts = [(c, place) for c in range(box.low.shape[1]) for place in range(int(box.low[0, c]), int(box.high[0, c]))]
    return sides_of(box, np.array([c for c, _ in cuts]), np.array([place for _, place in cuts]))


@cache
def bounds_of_all(text: str) -> dict[str, float | None]:
    """The bound of every box, by its places; None where it holds no design."""
    asked = small(text)
    ranges = [[(low, high) for low in range(size) for high in range(low, size)] for size in asked.space.sizes]
    every = [Leaf(*zip(*ends, strict=True)) for ends in product(*ranges)]
    bounds = asked.bounds(Boxes(np.array([box.low for box in every]), np.array([box.high for box in every]))).tolist()
    return {_words(box): bound if isfinite(bound) else None for box, bound in zip(every, bounds, strict=True)}


def _words(box: Leaf) -> str:
    return " ".join(f"{low}-{high}" for low, high in zip(*box, strict=True))


def _placed(random: Random, operators: int) -> tuple[list[int], list[int]]:
    kinds = [random.randrange(2, 5), random.randrange(1, 4)]
    return [random.randrange(sum(kinds)) for _ in range(operators)], kinds


def _box(random: Random, parts: int, share: float) -> Area:
    """A box of which so much of what is above its least areas fits."""
    low = [random.randrange(20, 60) for _ in range(parts)]
    high = [least + random.randrange(8, 18) for least in low]
    works = [random.randrange(500, 20_000) for _ in range(parts)]
    return works, low, high, sum(low) + round(share * (sum(high) - sum(low))) - (1 if share < 0.0 else 0)


def _count_case(operators: int, kinds: list[int]) -> Case:
    words = f"{operators} operators, {' + '.join(map(str, kinds))} devices"
    return Case(words, Call("count", (operators, kinds)), partial(judge_count, right=ways(operators, kinds)))


def _representative_case(places: list[int], kinds: list[int]) -> Case:
    judge = partial(judge_representative, places=places, kinds=kinds)
    return Case(f"{len(places)} operators", Call("representative", (places, kinds)), judge)


def _bound_case(box: Area) -> Case:
    return Case(f"{len(box[0])} parts in {box[3]} mm^2", Call("bound", box), partial(judge_bound, box=box))


def _branch_case(name: str, text: str) -> Case:
    arguments: tuple[Any, ...] = (list(small(text).space.sizes), bounds_of_all(text))
    return Case(f"the {name} question", Call("branch", arguments), partial(judge_branch, text=text))


TREES = Assignment("07-bounds-and-boxes", "Symmetry, bounds, and a tree of boxes that proves", tasks, seconds=20)
