"""Assignment 11: bits for each layer of a network within a budget, a knapsack with one choice for each layer.

bound   with a price on the budget each layer chooses for itself (Lagrange); the best price gives the bound of the relaxation
best    a table over uses, tied layers as one
front   all losses and uses that no other choice equals or betters in both
chain   the same table where neighbours with different choices use more
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from math import inf
from random import Random

import numpy as np

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

Table = list[list[int]]
"""A figure of each layer and choice."""
Network = tuple[Table, Table]
"""Losses and uses."""
Corners = list[tuple[int, int]]
"""Uses and losses of one layer, from the least use on."""

GREEDY = "the best ratios are taken first, which is not the best choice"
BELOW = "a choice that uses the whole budget is left out"
TIES = "tied layers choose apart"
CHANGES = "what changes between neighbours use is left out"
CORNERS = "prices find corners of the front alone, and points between them are missing"
DOMINATED = "points stay that another one equals or betters in both figures"


def bound(losses: Table, uses: Table, budget: int, price: float) -> float:
    """The least of loss + price (use - budget)."""
    layers = zip(losses, uses, strict=True)
    return sum(min(lost + price * used for lost, used in zip(*layer, strict=True)) for layer in layers) - price * budget


def corners(loss: Sequence[int], use: Sequence[int], hull: bool = True) -> Corners:
    """Choices of falling loss by rising use; on the lower hull alone, or all that no other one betters."""
    found = Corners()
    for point in sorted(zip(use, loss, strict=True)):
        if found and point[1] >= found[-1][1]:
            continue
        while hull and len(found) > 1 and _slope(found[-2], found[-1]) >= _slope(found[-1], point):
            found.pop()
        found.append(point)
    return found


def _slope(first: tuple[int, int], second: tuple[int, int]) -> float:
    return (second[1] - first[1]) / (second[0] - first[0])


def by_steps(network: Network, budget: int, hull: bool = True, in_part: bool = True) -> float:
    """From the least uses, the steps that spare most for their use; the last one in part, or steps as long as they fit."""
    layers = [corners(*layer, hull=hull) for layer in zip(*network, strict=True)]
    total, left = float(sum(layer[0][1] for layer in layers)), budget - sum(layer[0][0] for layer in layers)
    steps = sorted((_slope(*step), step[1][0] - step[0][0]) for layer in layers for step in pairwise(layer))
    for slope, more in steps:
        part = min(more, left) if in_part else more * (more <= left)
        if not in_part and not part:
            break
        total, left = total + slope * part, left - part
    return total


def least(network: Network, budget: int, changes: Sequence[int] = ()) -> float:
    """The least loss within the budget, by a table over uses for each choice of the last layer."""
    tables = list[np.ndarray]()
    for layer, (loss, use) in enumerate(zip(*network, strict=True)):
        change = changes[layer - 1] if layer and changes else 0
        before = tables
        tables = []
        for choice, (lost, used) in enumerate(zip(loss, use, strict=True)):
            reached = np.full(budget + 1, inf)
            for other, table in enumerate(before or [np.zeros(budget + 1)]):
                shift = used + (change if before and other != choice else 0)
                if shift <= budget:
                    reached[shift:] = np.minimum(reached[shift:], table[: budget + 1 - shift] + lost)
            tables.append(reached)
    return float(min(table[budget] for table in tables))


def front(network: Network) -> list[list[int]]:
    """A layer after the other, without what is bettered."""
    points = [(0, 0)]
    for loss, use in zip(*network, strict=True):
        grown = [(u + used, a + lost) for u, a in points for lost, used in zip(loss, use, strict=True)]
        points = corners([lost for _, lost in grown], [used for used, _ in grown], hull=False)
    return [list(point) for point in points]


def merged(network: Network, tied: Table) -> Network:
    """Tied layers as one, of which all figures are added up."""
    second = {pair[1] for pair in tied}
    groups = [[layer, *(b for a, b in tied if a == layer)] for layer in range(len(network[0])) if layer not in second]
    losses, uses = (
        [[sum(column) for column in zip(*(table[layer] for layer in group), strict=True)] for group in groups] for table in network
    )
    return losses, uses


# Judges.


def judge_choices(
    handed: object, network: Network, budget: int, right: float, tied: Table, changes: Sequence[int], mistakes: dict[str, float]
) -> Verdict:
    """Choices are weighed anew: within the budget, ties kept, and of the least loss; or of what a mistake finds."""
    losses = network[0]
    choices = integers_in(handed, len(losses))
    if choices is None or len(choices) != len(losses) or any(not 0 <= item < len(row) for item, row in zip(choices, losses, strict=True)):
        return wrong(f"{shown(handed)} is returned where the place of a choice is meant for each of {len(losses)} layers")
    loss, use = (sum(row[item] for row, item in zip(table, choices, strict=True)) for table in network)
    more = sum(change for change, (one, other) in zip(changes, pairwise(choices), strict=True) if one != other) if changes else 0
    apart = [pair for pair in tied if choices[pair[0]] != choices[pair[1]]]
    if apart:
        why = f"layers {apart[0][0]} and {apart[0][1]} are tied and choose differently"
        return nearly(TIES, why) if loss == mistakes.get(TIES) else wrong(why)
    if use + more > budget:
        why = f"{use + more} is used of {budget}"
        return nearly(CHANGES, why) if loss == mistakes.get(CHANGES) else wrong(why)
    why = f"the loss is {loss}, and {right:.0f} is possible"
    if loss == right:
        return FULL
    named = [name for name, found in mistakes.items() if found == loss]
    return nearly(BELOW, why) if BELOW in named else wrong(why, named[0] if named else "")


def judge_front(handed: object, network: Network) -> Verdict:
    """All points of the front by rising use."""
    right = front(network)
    if not isinstance(handed, list) or any(integers_in(point, 2) is None or len(point) != 2 for point in handed):
        return wrong(f"a list of pairs [use, loss] is meant, not {shown(handed)}")
    if handed == right:
        return FULL
    missing, beyond = ([point for point in one if point not in other] for one, other in ((right, handed), (handed, right)))
    if not missing and not beyond:
        return nearly("points are in another order, or listed twice", f"{len(handed)} points are listed, not by rising use")
    if not missing:
        true = all(_is_reached(network, point) for point in beyond)
        return (
            nearly(DOMINATED, f"{len(beyond)} points are no part of the front") if true else wrong("points are listed that no choice has")
        )
    on_hull = [list(point) for point in corners([lost for _, lost in right], [used for used, _ in right])]
    return wrong(f"{len(missing)} of {len(right)} points are missing", CORNERS if handed == on_hull else "")


def _is_reached(network: Network, point: list[int]) -> bool:
    """Whether some choice has this use and loss."""
    sums = {(0, 0)}
    for loss, use in zip(*network, strict=True):
        sums = {(u + used, a + lost) for u, a in sums for lost, used in zip(loss, use, strict=True)}
    return tuple(point) in sums


# Cases.


def tasks(seed: str) -> tuple[Task, ...]:
    """Networks drawn anew: weights of layers, bits, and losses that fall with the bits, more or less."""
    random, handed = Random(f"{seed}/11"), public("11-mixed-precision")
    losses, sizes, operations = ([row[index] for row in handed["layers"]] for index in (1, 2, 3))
    given, budget, last = (losses, sizes), handed["size"], handed["last"]
    bounds = [(given, budget, handed["price"]), *(_random_prices(random) for _ in range(3))]
    relaxed = [(given, budget), *(_relaxed(random) for _ in range(3)), _relaxed(random, 1.0), _relaxed(random, 0.0)]
    whole = [((losses, operations), handed["operations"], handed["tied"]), *(_tied(random) for _ in range(4))]
    fronts = [(losses[-last:], sizes[-last:]), *(_network(random, 7) for _ in range(3))]
    chains = [((losses, operations), handed["changes"], handed["operations"]), *(_changing(random) for _ in range(3))]
    return (
        Task("the bound at a price: bound", 9, given_first(_bound_case(*bound) for bound in bounds)),
        Task("the bound at the best price: best_bound", 12, given_first(_best_bound_case(*item) for item in relaxed)),
        Task("the best choice, with ties: best", 18, given_first(_best_case(*item) for item in whole)),
        Task("all points of the front: front", 9, given_first(_front_case(front) for front in fronts)),
        Task("with uses of changes along a chain: chain", 12, given_first(_chain_case(*chain) for chain in chains)),
    )


def _network(random: Random, layers: int) -> Network:
    """Two to four choices for each layer, of rising use."""
    losses, uses = Table(), Table()
    for _ in range(layers):
        bits = sorted(random.sample((2, 3, 4, 6, 8, 12, 16), random.randrange(2, 5)))
        weights, loss = random.randrange(2, 20), random.randrange(500, 20_000)
        losses.append(sorted((round(loss * 2.0 ** (-bit / 2.0) * random.uniform(0.5, 1.5)) for bit in bits), reverse=True))
        uses.append([weights * bit for bit in bits])
    return losses, uses


def _between(network: Network, share: float) -> int:
    """A budget between the least and the greatest uses."""
    low, high = (sum(pick(row) for row in network[1]) for pick in (min, max))
    return low + round(share * (high - low))


def _first(draw: Callable[[], tuple[Network, int]], tells: Callable[[Network, int], bool]) -> tuple[Network, int]:
    """The first draw in which likely mistakes show."""
    return next((network, budget) for network, budget in iter(draw, None) if tells(network, budget))


def _random_prices(random: Random) -> tuple[Network, int, float]:
    network = _network(random, 12)
    return network, _between(network, random.uniform(0.2, 0.7)), random.randrange(20, 400) / 4.0


def _relaxed(random: Random, share: float | None = None) -> tuple[Network, int]:
    """Where a share is given, the budget is the least or the greatest use; else one in which a step is taken in part."""

    def draw() -> tuple[Network, int]:
        network = _network(random, 14)
        return network, _between(network, random.uniform(0.2, 0.7) if share is None else share)

    def tells(network: Network, budget: int) -> bool:
        return share is not None or len({by_steps(network, budget), *_relaxations(network, budget).values()}) == 1 + len(
            _relaxations(network, budget)
        )

    return _first(draw, tells)


def _relaxations(network: Network, budget: int) -> dict[str, float]:
    """What likely mistakes make of the best bound."""
    return {
        "the last step is left out instead of taken in part": by_steps(network, budget, in_part=False),
        "steps are taken to choices above the lower hull of a layer": by_steps(network, budget, hull=False),
        "the figure is rounded down (parts of losses count)": float(int(by_steps(network, budget))),
    }


def _snug(network: Network, tied: Table, changes: Sequence[int], share: float) -> int:
    """The least budget at which the best choice of a budget is still the best."""
    network, budget = merged(network, tied), _between(network, share)
    low, right = _between(network, 0.0), least(network, budget, changes)
    while low < budget:
        middle = (low + budget) // 2
        low, budget = (low, middle) if least(network, middle, changes) == right else (middle + 1, budget)
    return budget


def _tied(random: Random) -> tuple[Network, int, Table]:
    """Ties of layers with equally many choices that cost something, a budget that is used up, and ratios that lead astray."""
    while True:
        network = _network(random, 14)
        counts = [len(row) for row in network[0]]
        pairs = [[index, other] for index in range(0, 13, 2) for other in range(index + 1, 14, 2) if counts[index] == counts[other]]
        free = {layer for pair in pairs for layer in pair}
        tied = Table()
        for pair in random.sample(pairs, len(pairs)):
            if free.issuperset(pair):
                tied, free = [*tied, pair], free - set(pair)
        tied = sorted(tied[:3])
        budget = _snug(network, tied, (), random.uniform(0.25, 0.6))
        found = [least(merged(network, tied), budget), *_choices(network, budget, tied).values()]
        if tied and len(set(found)) == len(found):
            return network, budget, tied


def _choices(network: Network, budget: int, tied: Table) -> dict[str, float]:
    """The loss of what likely mistakes choose."""
    one = merged(network, tied)
    return {GREEDY: round(by_steps(one, budget, in_part=False)), BELOW: least(one, budget - 1), TIES: least(network, budget)}


def _changing(random: Random) -> tuple[Network, list[int], int]:
    """Choices of the same places in all layers, and changes that matter."""
    while True:
        network = _network(random, 24)
        network = tuple([row for row, other in zip(table, network[0], strict=True) if len(other) == 3][:9] for table in network)  # type: ignore[assignment]
        if len(network[0]) < 6:
            continue
        changes = [random.randrange(1, 30) for _ in network[0][1:]]
        budget = _snug(network, [], changes, random.uniform(0.25, 0.6))
        found = [least(network, budget, changes), least(network, budget), least(network, budget - 1, changes)]
        if len(set(found)) == 3:
            return network, changes, budget


def _text(network: Network, budget: int) -> str:
    return f"{len(network[0])} layers, a budget of {budget}"


def _bound_case(network: Network, budget: int, price: float) -> Case:
    right = bound(*network, budget, price)
    layers = [list(zip(*layer, strict=True)) for layer in zip(*network, strict=True)]

    def chosen_by(place: int) -> float:
        picked = [min(layer, key=lambda choice: choice[place]) for layer in layers]
        return sum(lost + price * used for lost, used in picked) - price * budget

    slips = [
        Slip("the budget is not subtracted", right + price * budget),
        Slip("the budget is subtracted without its price", right + price * budget - budget),
        Slip("layers choose by their losses alone, without the price", chosen_by(0)),
        Slip("layers choose by their uses alone", chosen_by(1), share=0.0),
    ]
    name = f"{_text(network, budget)}, a price of {price:g}"
    return Case(name, Call("bound", (*network, budget, price)), partial(figure, right=right, slips=slips))


def _best_bound_case(network: Network, budget: int) -> Case:
    slips = [Slip(name, wrongly) for name, wrongly in _relaxations(network, budget).items()]
    slips += [
        Slip("this is the loss of the best choice, not a bound by prices", least(network, budget), share=0.0),
        Slip("this is the bound without a price", float(sum(min(row) for row in network[0])), share=0.0),
        Slip("this is the loss of the least uses", float(sum(corners(*layer)[0][1] for layer in zip(*network, strict=True))), share=0.0),
    ]
    judge = partial(figure, right=by_steps(network, budget), slips=slips)
    return Case(_text(network, budget), Call("best_bound", (*network, budget)), judge)


def _best_case(network: Network, budget: int, tied: Table) -> Case:
    right = least(merged(network, tied), budget)
    judge = partial(
        judge_choices, network=network, budget=budget, right=right, tied=tied, changes=(), mistakes=_choices(network, budget, tied)
    )
    return Case(f"{_text(network, budget)}, {len(tied)} ties", Call("best", (*network, budget, tied)), judge)


def _front_case(network: Network) -> Case:
    return Case(f"{len(network[0])} layers", Call("front", network), partial(judge_front, network=network))


def _chain_case(network: Network, changes: list[int], budget: int) -> Case:
    mistakes = {CHANGES: least(network, budget), BELOW: least(network, budget - 1, changes)}
    right = least(network, budget, changes)
    judge = partial(judge_choices, network=network, budget=budget, right=right, tied=[], changes=changes, mistakes=mistakes)
    return Case(_text(network, budget), Call("chain", (*network, changes, budget)), judge)


PRECISION = Assignment("11-mixed-precision", "Bits for each layer: a knapsack with a choice for each layer", tasks)
