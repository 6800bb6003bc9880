"""All ideals of an order: sets that hold whatever must come before each of their members, as masks of bits."""

from collections.abc import Sequence


def every_ideal(before: Sequence[int], most: int) -> list[int] | None:
    """From the smallest to that of all members, by size and then by mask; None as soon as there are more than so many.

    `before` are the members that each needs, as masks; no member needs itself.
    """
    after: list[list[int]] = [[] for _ in before]
    for member, needed in enumerate(before):
        left = needed
        while left:
            after[(left & -left).bit_length() - 1].append(member)
            left &= left - 1
    layer = {0: sum(1 << member for member, needed in enumerate(before) if not needed)}
    found = [0]
    while layer:
        following: dict[int, int] = {}
        for mask, ready in layer.items():
            left = ready
            while left:
                bit = left & -left
                left ^= bit
                if mask | bit not in following:
                    following[mask | bit] = ready ^ bit | _freed(mask | bit, after[bit.bit_length() - 1], before)
            if len(found) + len(following) > most:
                return None
        found += sorted(following)
        layer = following
    return found


def _freed(mask: int, after: Sequence[int], before: Sequence[int]) -> int:
    """Those of some members that need nothing outside."""
    return sum(1 << member for member in after if not before[member] & ~mask)
