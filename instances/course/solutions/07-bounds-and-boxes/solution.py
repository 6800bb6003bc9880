"""Reference solution of assignment 7."""

from heapq import heappop, heappush
from itertools import count as counting
from math import comb, inf, sqrt
from typing import Any


def count(operators: int, kinds: list[int]) -> int:
    """Operators are dealt out to kinds, and within a kind to groups: S(n, j) = j S(n-1, j) + S(n-1, j-1) ways for j groups."""
    groups = [[1]]
    for n in range(1, operators + 1):
        last = [*groups[-1], 0]
        groups.append([j * last[j] + (last[j - 1] if j else 0) for j in range(n + 1)])
    found = [1] + [0] * operators
    for devices in kinds:
        equal = [sum(row[: devices + 1]) for row in groups]
        found = [sum(comb(n, m) * equal[m] * found[n - m] for m in range(n + 1)) for n in range(operators + 1)]
    return found[operators]


def representative(places: list[int], kinds: list[int]) -> list[int]:
    """Within each kind, devices are numbered in the order in which operators come to them."""
    starts = [sum(kinds[:kind]) for kind in range(len(kinds))]
    names: dict[int, int] = {}
    for place in places:
        if place not in names:
            kind = max(kind for kind, start in enumerate(starts) if start <= place)
            names[place] = starts[kind] + sum(starts[kind] <= other < starts[kind] + kinds[kind] for other in names)
    return [names[place] for place in places]


def bound(works: list[int], low: list[int], high: list[int], area: int) -> float | None:
    """The best of the bounds that prices of area give: sum of min (w / x + l x) - l area."""
    if sum(low) > area:
        return None
    parts = list(zip(works, low, high, strict=True))

    def priced(price: float) -> tuple[float, float]:
        taken = [min(max(sqrt(w / price) if price else inf, least), most) for w, least, most in parts]
        return sum(w / x for w, x in zip(works, taken, strict=True)) + price * (sum(taken) - area), sum(taken)

    least, most, best = 0.0, max(w / x**2 for w, x, _ in parts), priced(0.0)[0]
    for _ in range(100):
        price = (least + most) / 2
        value, used = priced(price)
        best = max(best, value)
        least, most = (price, most) if used > area else (least, price)
    return best


Box = tuple[tuple[int, int], ...]


def branch(sizes: list[int], bounds: dict[str, float | None]) -> dict[str, Any]:
    """A chip to start from, by going down into the better halves; then the box with the least bound first."""

    def least(box: Box) -> float:
        found = bounds[" ".join(f"{low}-{high}" for low, high in box)]
        return inf if found is None else found

    root = tuple((0, size - 1) for size in sizes)
    box = root
    while not single(box):
        box = min((part for cut in cuts_of(box) for part in parts(box, *cut)), key=least)
    value, point, cuts = least(box), box, dict[Box, tuple[int, int]]()
    order, heap = counting(1), [(least(root), 0, root)]
    while heap and heap[0][0] < value:
        here, _, box = heappop(heap)
        if single(box):
            value, point = here, box
            continue

        def told(cut: tuple[int, int], box: Box = box, here: float = here, value: float = value) -> float:
            """The product of what the bounds of both parts gain, up to the value known."""
            lower, upper = (min(least(part), value) - here * (1 - 1e-6) for part in parts(box, *cut))
            return lower * upper

        cuts[box] = max(cuts_of(box), key=told)
        for part in parts(box, *cuts[box]):
            heappush(heap, (least(part), next(order), part))

    def tree(box: Box) -> list[Any] | None:
        if box not in cuts or least(box) >= value:
            return None
        lower, upper = parts(box, *cuts[box])
        return [*cuts[box], tree(lower), tree(upper)]

    return {"point": [low for low, _ in point], "value": value, "tree": tree(root)}


def single(box: Box) -> bool:
    """Whether it holds one chip."""
    return all(low == high for low, high in box)


def cuts_of(box: Box) -> list[tuple[int, int]]:
    """Every choice and place behind which it can be cut."""
    return [(choice, place) for choice, (low, high) in enumerate(box) for place in range(low, high)]


def parts(box: Box, choice: int, place: int) -> tuple[Box, Box]:
    """The lower and the upper part of a box."""
    (low, high), before, behind = box[choice], box[:choice], box[choice + 1 :]
    return (*before, (low, place), *behind), (*before, (place + 1, high), *behind)
