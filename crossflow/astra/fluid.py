"""Bytes that an NPU sends on each dimension for a collective, and its time where chunks keep every dimension busy.

With n_i members of the group along dimension i, innermost first, and s bytes at each NPU:

    all_reduce      2 s (n - 1) / n, then s / n goes on to the next dimension
    reduce_scatter  half of that
    all_gather      s (n - 1) outermost first, then s n goes on inwards
    all_to_all      s (n - 1) / n on each, s unchanged

    time = max over i of  bytes_i / (share_i bandwidth_i)

    share_i     of a dimension of d where n_i are fewer, as only links among them carry it: (n_i - 1) / (d - 1) where all are joined, and
                1/2 of a ring's neighbours, which pass back and forth on what would go around; 1 of a switch, or where the group is all

    all to all  on a ring bytes pass the links of others: all n floor(n^2 / 4) / n s for each NPU's links, n / 4 for each byte of large
                rings, and of a part of one the middle link floor(n^2 / 4) / n s either way; so (n - 1) / floor(n^2 / 4) of the above

The form of LIBRA (William Won et al., ISPASS 2024, arXiv 2109.11762), where each share is 1: perfect pipelining, no latency. Below any
schedule of chunks in the natural order.
"""

from collections.abc import Sequence
from fractions import Fraction

from crossopt.crossflow.astra.dimension import Collective, Shape


def fluid_bytes(collective: Collective, size: float, members: Sequence[int]) -> tuple[float, ...]:
    """Bytes on each dimension, exact before one rounding; none where the group has one member."""
    return tuple(map(float, _exact(collective, size, members)))


def fluid_loads(collective: Collective, size: float, members: Sequence[int], shares: Sequence[Fraction]) -> tuple[float, ...]:
    """The bytes that would take as long over all of the bandwidth, exact before one rounding."""
    return tuple(float(moved / share) for moved, share in zip(_exact(collective, size, members), shares, strict=True))


def share_of(collective: Collective, shape: Shape, size: int, members: int) -> Fraction:
    """The share of an NPU's bandwidth on a dimension that what a group of so many sends has."""
    if shape == "switch" or members == 1:
        return Fraction(1)
    if shape == "fully_connected":
        return Fraction(members - 1, size - 1)
    passed = Fraction(members - 1, members * members // 4) if collective == "all_to_all" else Fraction(1)
    return passed if members == size else passed / 2


def _exact(collective: Collective, size: float, members: Sequence[int]) -> list[Fraction]:
    left, found = Fraction(size), [Fraction(0)] * len(members)
    places = range(len(members))
    for place in reversed(places) if collective == "all_gather" else places:
        count = members[place]
        if collective == "all_gather":
            found[place], left = left * (count - 1), left * count
        elif collective == "all_to_all":
            found[place] = left * (count - 1) / count
        else:
            ways = 2 if collective == "all_reduce" else 1
            found[place], left = ways * left * (count - 1) / count, left / count
    return found
