"""Assignment 7: symmetry, the bound of a box, and a branch and bound whose tree of boxes is its certificate.

    bound of a box     min sum of w_k / x_k,  low <= x <= high,  sum of x_k <= area, with fractions: the largest over prices l >= 0 of
                       sum of min over x_k of (w_k / x_k + l x_k)  -  l area      (every price gives a bound; Everett 1963)
    tree               a box that is not cut is refuted where the project's own bound of it is not below the value of the design

A tree is verified box by box with the full model's bounds, whatever the program that made it took for bounds.

How many different ways there are to place operators on devices of which some are equal, and which of the same ones stands for all.

Equal devices can be renamed. Of n operators on k equal devices there are P(n, k) = sum over j <= k of S(n, j) ways, S the Stirling numbers
of the second kind; over several kinds they join by W(n) = sum over m of binomial(n, m) P(m, k) W'(n - m).
"""

from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from itertools import product
from math import comb, factorial, inf, isfinite, prod, sqrt
from random import Random
from typing import Any, NamedTuple

import numpy as np

from crossopt.instances.codesign.boxes import Boxes, full_box
from crossopt.solvers.codesign.boxes.branch import cut_scores, sides_of
from crossopt.solvers.grading.marks import (
    FULL,
    SAME,
    Assignment,
    Case,
    Task,
    Verdict,
    apart,
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


def ways(operators: int, kinds: list[int]) -> int:
    """How many ways, with so many equal devices of each kind."""
    found = [int(not number) for number in range(operators + 1)]
    for devices in kinds:
        equal = [sum(_stirling(number)[: devices + 1]) for number in range(operators + 1)]
        found = [sum(comb(n, m) * equal[m] * found[n - m] for m in range(n + 1)) for n in range(operators + 1)]
    return found[operators]


def _stirling(operators: int) -> list[int]:
    """S(n, 0) to S(n, n): S(n, j) = j S(n-1, j) + S(n-1, j-1)."""
    row = [1]
    for _ in range(operators):
        row = [j * (row[j] if j < len(row) else 0) + (row[j - 1] if j else 0) for j in range(len(row) + 1)]
    return row


def first_of_its_kind(places: list[int], kinds: list[int]) -> list[int]:
    """The least list that renaming equal devices makes of it: within a kind, devices in the order in which operators come to them."""
    kind_of = [kind for kind, devices in enumerate(kinds) for _ in range(devices)]
    free = [sum(kinds[:kind]) for kind in range(len(kinds))]
    names: dict[int, int] = {}
    for device in places:
        if device not in names:
            names[device] = free[kind_of[device]]
            free[kind_of[device]] += 1
    return [names[device] for device in places]


Area = tuple[list[int], list[int], list[int], int]
"""Works, least and greatest areas, and the area of all parts together."""
Ends = tuple[tuple[int, ...], tuple[int, ...]]
"""The first and the last places of a box."""

_TIGHT = 1e-6
"""How far a bound may be below the best one with fractions, relatively: the handout says so."""
_FREE = 10
"""A tree may have twice the boxes of the grader's own and so many more, or as many as the plainest rule takes."""
_EARLY = 0.995
_HALVINGS = 200
_CHIPS = """  compute_area: {from: 300 mm^2, to: 600 mm^2, step: 60 mm^2}
  compute_power: [120 W, 160 W, 200 W, 240 W]
  l2_area: [10 mm^2, 40 mm^2, 80 mm^2]
  hbm_stacks: [2, 4, 5, 6]
"""


def tasks(seed: str) -> tuple[Task, ...]:
    """Devices of several kinds; boxes with and without a limit that binds, with one chip and with none; two questions."""
    random, handed = Random(f"{seed}/07"), public("07-bounds-and-boxes")
    given: Area = handed["bound"]["works"], handed["bound"]["low"], handed["bound"]["high"], handed["bound"]["area"]
    placements = [
        tuple(handed["count"].values()),
        *((random.randrange(*ends), [random.randrange(2, 5) for _ in range(kinds)]) for ends, kinds in _COUNTED),
    ]
    placed = [tuple(handed["representative"].values()), *(_placed(random, count) for count in (6, 40, 1))]
    boxes = [_box(random, parts, share) for parts, share in ((7, 0.5), (8, 0.3), (9, 0.7), (6, 1.0), (7, 0.0), (7, -0.1))]
    questions = [(name, text) for name, text in (("given", question("practice")), ("hidden", _hidden(random)))]
    return (
        Task("how many placements differ: count", 6, given_first(_count_case(*given) for given in placements)),
        Task("one for all that are the same: representative", 6, given_first(_representative_case(*given) for given in placed)),
        Task("a bound of a box: bound", 15, given_first(_bound_case(box) for box in (given, *boxes))),
        Task("the best chip, with its tree: branch", 33, given_first(_branch_case(*given) for given in questions)),
    )


_COUNTED = (((3, 5), 1), ((8, 12), 2), ((20, 40), 3))


def question(seed: str) -> str:
    """The question as YAML."""
    return draw_question(Random(f"{seed}/07/question"), "The best chip, with its tree of boxes. A question of assignment 7.", _CHIPS)


def _hidden(random: Random) -> str:
    """The first draw in which it matters that a box is kept whose bound is a little below the best."""
    draws = iter(partial(draw_question, random, "The hidden question of assignment 7.", _CHIPS, batches=MANY_BATCHES), None)
    return next(text for text in draws if needed_leaves(text, _EARLY) < needed_leaves(text))


def judge_count(handed: object, operators: int, kinds: list[int]) -> Verdict:
    """A number of ways, which is whole and right, or what a likely mistake counts."""
    if isinstance(handed, bool) or not isinstance(handed, int):
        return wrong(f"{shown(handed)} is returned where a whole number is meant")
    right = ways(operators, kinds)
    if handed == right:
        return FULL
    devices = sum(kinds)
    slips = {
        devices**operators: "no two placements are taken for the same, although equal devices can be renamed",
        ways(operators, [devices]): "devices of different kinds are taken for equal",
        _full(operators, kinds): "every device is used (devices may stay empty)",
        devices**operators
        // prod(
            factorial(kind) for kind in kinds
        ): "all placements are divided by the orders of devices, but one that leaves devices empty has fewer names",
        prod(
            ways(operators, [kind]) for kind in kinds
        ): "the ways of all operators on each kind are multiplied, but each operator is on one kind alone",
    }
    return (
        nearly(slips[handed])
        if handed in slips
        else wrong(f"{shown(handed)} is returned, which is too {'few' if handed < right else 'many'}")
    )


def _full(operators: int, kinds: list[int]) -> int:
    """Ways that leave no device empty, by inclusion and exclusion over the last device of each kind."""
    found = 0
    for left_out in product((0, 1), repeat=len(kinds)):
        found += (-1) ** sum(left_out) * ways(operators, [kind - out for kind, out in zip(kinds, left_out, strict=True)])
    return found


def judge_representative(handed: object, places: list[int], kinds: list[int]) -> Verdict:
    """The list that stands for all lists that are the same."""
    given = integers_in(handed, len(places))
    if given is None or len(given) != len(places) or not all(0 <= device < sum(kinds) for device in given):
        return wrong(f"a device for each of {len(places)} operators is meant, not {shown(handed)}")
    right = first_of_its_kind(places, kinds)
    if given == right:
        return FULL
    if given == first_of_its_kind(places, [sum(kinds)]):
        return nearly("devices of different kinds are renamed into each other")
    if first_of_its_kind(given, kinds) == right:
        return nearly("this placement is the same, but not the least such list")
    return wrong("another placement, which no renaming of equal devices makes of the one given")


def fractional_bound(works: list[int], low: list[int], high: list[int], area: int) -> float:
    """The best price found by halving; every price gives a bound, so that rounding costs sharpness and not truth."""
    if sum(low) > area:
        return inf
    least, most, best = 0.0, max(work / x**2 for work, x in zip(works, low, strict=True)), -inf
    for price in (least, most):
        best = max(best, _bound_at_price(works, low, high, area, price)[0])
    for _ in range(_HALVINGS):
        price = (least + most) / 2.0
        value, used = _bound_at_price(works, low, high, area, price)
        best = max(best, value)
        least, most = (price, most) if used > area else (least, price)
    return best


def _bound_at_price(works: list[int], low: list[int], high: list[int], area: int, price: float) -> tuple[float, float]:
    """The bound of a price, and the area that parts take at it."""
    taken = [min(max(sqrt(work / price) if price else inf, least), most) for work, least, most in zip(works, low, high, strict=True)]
    return sum(work / x for work, x in zip(works, taken, strict=True)) + price * (sum(taken) - area), sum(taken)


def least_time(works: list[int], low: list[int], high: list[int], area: int) -> float:
    """The least time of whole areas in the box: each mm^2 goes where it saves most, which is exact, since every further one of a part
    saves less (Gross 1956; Fox, Management Science 1966)."""
    if sum(low) > area:
        return inf
    saved = sorted((work / (x + 1) - work / x, part) for part, work in enumerate(works) for x in range(low[part], high[part]))
    more = Counter(part for _, part in saved[: area - sum(low)])
    return sum(work / (least + more[part]) for part, (work, least) in enumerate(zip(works, low, strict=True)))


CORNER = "this is the bound at the upper corner, although all parts together do not fit the area"
LOOSE = "this is a bound, but another price of area gives a higher one"


def judge_bound(handed: object, box: Area) -> Verdict:
    """A bound that is above a chip's time is none; right is the best one with fractions."""
    works, _, high, _ = box
    least, best = least_time(*box), fractional_bound(*box)
    if best == inf:
        return FULL if handed is None else wrong(f"no chip of the box fits the area; None says so, not {shown(handed)}")
    given = number(handed)
    if given is None:
        return wrong(f"{shown(handed)} is returned where a time is meant")
    if given > least * (1.0 + SAME):
        bound, time = apart(given, least)
        return wrong(f"the bound {bound} is above the time of a chip in the box, {time}: it is no bound")
    if given >= best * (1.0 - _TIGHT):
        return FULL
    corner = sum(work / x for work, x in zip(works, high, strict=True))
    bound, at_corner, most = apart(given, corner, best)
    why = f"the bound is {bound}, where the upper corner gives {at_corner} and {most} can be had"
    if same(given, corner):
        return wrong(why, CORNER)
    return nearly(LOOSE, why) if given >= (corner + best) / 2.0 else wrong(why)


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
        if not isinstance(node, list) or len(node) != 4 or integers_in(node[:2], 2) is None:
            raise ValueError(f"a tree is None or [choice, place, lower, upper], not {shown(node)}")
        choice, option = node[:2]
        if not (0 <= choice < len(sizes) and box.low[choice] <= option < box.high[choice]):
            raise ValueError(f"the box {_text(box)} cannot be cut behind place {option} of choice {choice}")
        lower = Leaf(box.low, (*box.high[:choice], option, *box.high[choice + 1 :]))
        upper = Leaf((*box.low[:choice], option + 1, *box.low[choice + 1 :]), box.high)
        left += [(node[3], upper), (node[2], lower)]
    return found


NOT_REFUTED = "boxes are left open that are not refuted: their bound is below the time of the chip"
WASTEFUL = "the tree proves, but boxes are cut that were refuted already, or cut where little is gained"
CLAIMED = "the value is not the time of the chip"


def judge_branch(handed: object, text: str) -> Verdict:
    """The best chip and its time, a tree that proves it, and a small one; each is priced or verified anew."""
    if not isinstance(handed, dict) or set(handed) != {"point", "value", "tree"}:
        return wrong(f"a dictionary with `point`, `value` and `tree` is meant, not {shown(handed)}")
    problem = small(text)
    sizes = problem.space.sizes
    point = integers_in(handed["point"], len(sizes))
    if point is None or len(point) != len(sizes) or not all(0 <= option < size for option, size in zip(point, sizes, strict=True)):
        return wrong(f"the point has a place for each of {len(sizes)} choices, not {shown(handed['point'])}")
    value, claimed = _value(problem, point), number(handed["value"])
    if value == inf:
        return wrong(f"no plan on the chip {shown(point)} keeps every limit")
    if claimed is None or not same(claimed, value):
        return wrong(f"the chip takes {value!r} s, where {shown(handed['value'])} is claimed", CLAIMED)
    return _judge_tree(handed["tree"], value, problem, text)


def _judge_tree(tree: object, value: float, problem: Small, text: str) -> Verdict:
    """Whether a tree proves that no chip is quicker."""
    try:
        leaves = leaves_of(tree, problem.space.sizes)
    except ValueError as error:
        return wrong(str(error))
    if value > (best := least_value(text)):
        took, least = apart(value, best)
        return wrong(f"the chip takes {took} s, {least} s can be had")
    proof, size = _certificate(problem, leaves, value), _size(len(leaves), text)
    return size if proof.share == 1.0 else proof


def _value(problem: Small, point: list[int]) -> float:
    """The least step time on a chip, its best plan priced on its own; infinite where there is none."""
    places = np.array([point], np.int64)
    prices = problem.prices(Boxes(places, places))[:, 0]
    plan = int(np.argmin(prices))
    return problem.judged(plan, int(np.ravel_multi_index(tuple(point), problem.space.sizes))).value if isfinite(prices[plan]) else inf


def _certificate(problem: Small, leaves: list[Leaf], value: float) -> Verdict:
    """Whether the tree refutes all of the question, by the project's bounds."""
    bounds = problem.bounds(Boxes(np.array([leaf.low for leaf in leaves]), np.array([leaf.high for leaf in leaves])))
    open_ones = [(leaf, bound) for leaf, bound in zip(leaves, bounds.tolist(), strict=True) if bound < value]
    if not open_ones:
        return FULL
    first, bound = open_ones[0]
    why = f"{len(open_ones)} of {len(leaves)} boxes, such as {_text(first)} with its bound {apart(bound, value)[0]} s"
    return wrong(why, NOT_REFUTED)


def _size(leaves: int, text: str) -> Verdict:
    needed = needed_leaves(text)
    allowed = max(2 * needed + _FREE, plain_leaves(text))
    why = f"the tree has {leaves} boxes, where {needed} do and {allowed} are allowed"
    return FULL if leaves <= allowed else nearly(WASTEFUL, why)


@cache
def least_value(text: str) -> float:
    """The optimum, all designs priced."""
    problem = small(text)
    return float(problem.bounds(problem.chips()).min())


@cache
def needed_leaves(text: str, share: float = 1.0) -> int:
    """Boxes of the grader's own tree, which cuts where both parts gain most and knows the optimum, or takes so much of it for that."""
    return _leaves(text, share * least_value(text), _where_both_gain)


@cache
def plain_leaves(text: str) -> int:
    """Boxes of the tree that cuts the widest choice in the middle, the first of several."""
    return _leaves(text, least_value(text), _widest_in_the_middle)


def _leaves(text: str, value: float, cut: Callable[[Small, Boxes, float], tuple[Boxes, Boxes]]) -> int:
    """How many boxes are not cut where each is until it is refuted."""
    problem = small(text)
    left, count = [full_box(problem.space)], 0
    while left:
        box = left.pop()
        if problem.bounds(box)[0] >= value:
            count += 1
        else:
            left += cut(problem, box, value)
    return count


def _where_both_gain(problem: Small, box: Boxes, value: float) -> tuple[Boxes, Boxes]:
    sides = _sides(box)
    bounds = problem.bounds(sides).reshape(2, -1)
    at = int(np.argmax(cut_scores(np.minimum(bounds, value))))
    return sides.at(at), sides.at(at + bounds.shape[1])


def _widest_in_the_middle(_: Small, box: Boxes, __: float) -> tuple[Boxes, Boxes]:
    choice = int(np.argmax(box.high[0] - box.low[0]))
    sides = sides_of(box, np.array([choice]), np.array([(int(box.low[0, choice]) + int(box.high[0, choice])) // 2]))
    return sides.at(0), sides.at(1)


def _sides(box: Boxes) -> Boxes:
    """All cuts of a box: the lower parts and then the upper ones."""
    cuts = [(c, option) for c in range(box.low.shape[1]) for option in range(int(box.low[0, c]), int(box.high[0, c]))]
    return sides_of(box, np.array([c for c, _ in cuts]), np.array([option for _, option in cuts]))


@cache
def bounds_of_all(text: str) -> dict[str, float | None]:
    """The bound of every box, by its places; None where it holds no design."""
    problem = small(text)
    ranges = [[(low, high) for low in range(size) for high in range(low, size)] for size in problem.space.sizes]
    every = [Leaf(*zip(*ends, strict=True)) for ends in product(*ranges)]
    bounds = problem.bounds(Boxes(np.array([box.low for box in every]), np.array([box.high for box in every]))).tolist()
    return {_text(box): bound if isfinite(bound) else None for box, bound in zip(every, bounds, strict=True)}


def _text(box: Leaf) -> str:
    return " ".join(f"{low}-{high}" for low, high in zip(*box, strict=True))


def _placed(random: Random, operators: int) -> tuple[list[int], list[int]]:
    """The first draw of several operators in which devices of one kind alone are renamed."""

    def draw() -> tuple[list[int], list[int]]:
        kinds = [random.randrange(2, 5), random.randrange(1, 4)]
        return [random.randrange(sum(kinds)) for _ in range(operators)], kinds

    def tells(places: list[int], kinds: list[int]) -> bool:
        return first_of_its_kind(places, kinds) not in (places, first_of_its_kind(places, [sum(kinds)]))

    return next(found for found in iter(draw, None) if operators == 1 or tells(*found))


def _box(random: Random, parts: int, share: float) -> Area:
    """A box of which so much of what is above its least areas fits, and of more chips than anybody looks at."""
    low = [random.randrange(20, 60) for _ in range(parts)]
    high = [least + random.randrange(16, 40) for least in low]
    works = [random.randrange(500, 20_000) for _ in range(parts)]
    return works, low, high, sum(low) + round(share * (sum(high) - sum(low))) - (1 if share < 0.0 else 0)


def _count_case(operators: int, kinds: list[int]) -> Case:
    text = f"{operators} operators, {' + '.join(map(str, kinds))} devices"
    return Case(text, Call("count", (operators, kinds)), partial(judge_count, operators=operators, kinds=kinds))


def _representative_case(places: list[int], kinds: list[int]) -> Case:
    judge = partial(judge_representative, places=places, kinds=kinds)
    return Case(f"{len(places)} operators", Call("representative", (places, kinds)), judge)


def _bound_case(box: Area) -> Case:
    return Case(f"{len(box[0])} parts in {box[3]} mm^2", Call("bound", box), partial(judge_bound, box=box))


def _branch_case(name: str, text: str) -> Case:
    arguments: tuple[Any, ...] = (list(small(text).space.sizes), bounds_of_all(text))
    return Case(f"the {name} question", Call("branch", arguments), partial(judge_branch, text=text))


TREES = Assignment("07-bounds-and-boxes", "Symmetry, bounds, and a tree of boxes that proves", tasks, seconds=20)
