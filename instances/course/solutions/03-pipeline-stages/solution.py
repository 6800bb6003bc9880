"""Reference solution of assignment 3."""

from collections.abc import Callable
from functools import cache


def best_stages(times: list[int], messages: list[int], stages: int) -> list[int]:
    """The quickest with each number of stages up to each layer, and where its last stage begins."""
    cost, count = costs(times, messages), len(times)

    @cache
    def best(end: int, left: int) -> tuple[int, int]:
        """The busiest of at most `left` stages up to layer `end`, and the start of the last of them."""
        if left == 1:
            return cost(0, end), 0
        return min((max(best(start, left - 1)[0] if start else 0, cost(start, end)), start) for start in range(end))

    starts, end, left = list[int](), count, stages
    while end:
        end, left = best(end, left)[1], left - 1
        starts.append(end)
    return starts[::-1]


def costs(times: list[int], messages: list[int]) -> Callable[[int, int], int]:
    """The time of a stage from one layer up to another."""
    before = [0]
    for time in times:
        before.append(before[-1] + time)

    def cost(start: int, end: int) -> int:
        return before[end] - before[start] + (messages[start - 1] if start else 0) + messages[end - 1] * (end < len(times))

    return cost


def bound(times: list[int], stages: int) -> int:
    """The longest layer, and an equal share of all."""
    return max(*times, -(-sum(times) // stages))


def model(times: list[int], messages: list[int], stages: int) -> dict[str, object]:
    """The next layer is on the same stage or a later one; `out i of s` is 1 where only layer i of i and i + 1 is on s, `into` likewise."""
    layers, places = range(len(times)), range(stages)
    on = {(i, s): f"layer {i} on {s}" for i in layers for s in places}
    out = {(i, s): f"out {i} of {s}" for i in layers[:-1] for s in places}
    into = {(i, s): f"into {i} of {s}" for i in layers[1:] for s in places}
    variables = {name: [0, 1] for name in (*on.values(), *out.values(), *into.values())}
    most = sum(times) + 2 * sum(messages)
    rows: list[dict[str, object]] = [{"terms": {on[i, s]: 1 for s in places}, "equals": 1} for i in layers]
    for i in layers[:-1]:
        for s in places:
            later = {on[i + 1, t]: 1 for t in places if t >= s} | {on[i, s]: -1}
            rows.append({"terms": later, "at_least": 0})
            rows.append({"terms": {out[i, s]: 1, on[i, s]: -1, on[i + 1, s]: 1}, "at_least": 0})
            rows.append({"terms": {into[i + 1, s]: 1, on[i + 1, s]: -1, on[i, s]: 1}, "at_least": 0})
    for s in places:
        terms = {on[i, s]: times[i] for i in layers}
        terms |= {out[i, s]: messages[i] for i in layers[:-1]} | {into[i, s]: messages[i - 1] for i in layers[1:]}
        rows.append({"terms": terms | {"busiest": -1}, "at_most": 0})
    return {"variables": variables | {"busiest": [0, most]}, "minimise": {"busiest": 1}, "rows": rows}


def fewest_stages(times: list[int], messages: list[int], limit: int) -> list[int]:
    """The fewest stages up to each layer, and where the last of them begins."""
    cost, count = costs(times, messages), len(times)
    fewest = [(0, 0)]
    for end in range(1, count + 1):
        fewest.append(min(((fewest[start][0] + 1, start) for start in range(end) if cost(start, end) <= limit), default=(count + 1, 0)))
    starts, end = [], count
    while end:
        end = fewest[end][1]
        starts.append(end)
    return starts[::-1]
