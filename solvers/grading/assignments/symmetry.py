"""How many different ways there are to place operators on devices of which some are equal, and which of the same ones stands for all.

Equal devices can be renamed. Of n operators on k equal devices there are P(n, k) = sum over j <= k of S(n, j) ways, S the Stirling numbers
of the second kind; over several kinds they join by W(n) = sum over m of binomial(n, m) P(m, k) W'(n - m).
"""

from math import comb


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
    for place in places:
        if place not in names:
            names[place] = free[kind_of[place]]
            free[kind_of[place]] += 1
    return [names[place] for place in places]
