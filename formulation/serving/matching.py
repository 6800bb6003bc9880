"""The best rates of copies of workers on any number of devices, by dynamic programs in whole numbers.

    f(g) = max( f(g - 1) , max over kinds i of f(g - g_i) + r_i )          copies of one part on at most g devices
    R(g) = max over x of min( f_P(x) , f_D(g - x) )                        prefill and decode workers together on g

Both f rise with their devices, so that the best x is where they cross. Without a dynamic program, with the greatest rates for a device
d_P and d_D:

    R <= f_P(x) <= x d_P   and   R <= f_D(g - x) <= (g - x) d_D   so that   R <= g d_P d_D / (d_P + d_D)
"""

from collections.abc import Sequence
from fractions import Fraction

Kinds = Sequence[tuple[int, int]]
"""Devices and rate of each kind of worker."""


def rates_on(kinds: Kinds, devices: int) -> tuple[list[int], list[int]]:
    """Best rates on 0 to `devices` devices, and the kind of a last worker of each; -1 where a device is left idle."""
    of_size: dict[int, int] = {}
    for place, (size, rate) in enumerate(kinds):
        if size not in of_size or rate > kinds[of_size[size]][1]:
            of_size[size] = place
    steps = [(size, kinds[place][1], place) for size, place in sorted(of_size.items())]
    best, last = [0] * (devices + 1), [-1] * (devices + 1)
    for count in range(1, devices + 1):
        top, kind = best[count - 1], -1
        for size, rate, place in steps:
            if size > count:
                break
            reached = best[count - size] + rate
            if reached > top:
                top, kind = reached, place
        best[count], last[count] = top, kind
    return best, last


def counts_on(kinds: Kinds, last: Sequence[int], devices: int) -> dict[int, int]:
    """How many workers of each kind reach the best rate."""
    found: dict[int, int] = {}
    while devices > 0:
        kind = last[devices]
        if kind < 0:
            devices -= 1
            continue
        found[kind] = found.get(kind, 0) + 1
        devices -= kinds[kind][0]
    return found


def crossing(first: Sequence[int], second: Sequence[int], devices: int) -> tuple[int, int]:
    """The best rate of two parts on so many devices together, and the devices of the first part."""
    low, high = 0, devices
    while low < high:  # the least x with f_P(x) >= f_D(devices - x)
        middle = (low + high) // 2
        if first[middle] >= second[devices - middle]:
            high = middle
        else:
            low = middle + 1
    reached = [(min(first[x], second[devices - x]), x) for x in (low - 1, low) if x >= 0]
    return max(reached, key=lambda pair: (pair[0], -pair[1]))


def density(kinds: Kinds) -> Fraction:
    """The greatest rate for a device."""
    return max((Fraction(rate, size) for size, rate in kinds), default=Fraction(0))


def together_bound(kinds: Kinds, devices: int) -> Fraction:
    """No copies of these kinds reach more."""
    return devices * density(kinds)


def apart_bound(prefill: Kinds, decode: Kinds, devices: int) -> Fraction:
    """No prefill and decode workers reach more, by the multipliers for which both parts bound alike."""
    first, second = density(prefill), density(decode)
    return devices * first * second / (first + second) if first and second else Fraction(0)
