"""Bytes that an NPU sends on each dimension for a collective, and its time where chunks keep every dimension busy.

With n_i members of the group along dimension i, innermost first, and s bytes at each NPU:

    all_reduce      2 s (n - 1) / n, then s / n goes on to the next dimension
    reduce_scatter  half of that
    all_gather      s (n - 1) outermost first, then s n goes on inwards
    all_to_all      s (n - 1) / n on each, s unchanged

    time = max over i of  bytes_i / bandwidth_i

The form of LIBRA (William Won et al., ISPASS 2024, arXiv 2109.11762): perfect pipelining, no latency. Below any schedule of chunks in the
natural order.
"""

from collections.abc import Sequence
from fractions import Fraction

from crossopt.crossflow.astra.dimension import Collective


def fluid_bytes(collective: Collective, size: float, members: Sequence[int]) -> tuple[float, ...]:
    """Bytes on each dimension, exact before one rounding; none where the group has one member."""
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
    return tuple(map(float, found))
