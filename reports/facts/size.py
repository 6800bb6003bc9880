"""How large a question of joint design is, in words."""

from crossopt.instances.codesign.instance import Counted, Instance, Portfolio
from crossopt.instances.codesign.space import combinations, hardware_points


def size_in_words(asked: Instance | Portfolio | Counted) -> str:
    """How many designs there are to look at, for each number of devices."""
    if not isinstance(asked, Counted):
        return _size_of(asked)
    return "; ".join(f"{count:,} devices: {_size_of(part)}" for count, part in zip(asked.counts, asked.parts, strict=True))


def _size_of(asked: Instance | Portfolio) -> str:
    parts = asked.parts if isinstance(asked, Portfolio) else (asked,)
    points, plans = hardware_points(parts[0]), [combinations(part) for part in parts]
    listed = " x ".join(f"{count:,}" for count in plans)
    one = plans == [1]
    return f"{points:,} hardware point{'s' * (points != 1)} x {listed} combination{'s' * (not one)} of plan choices"
