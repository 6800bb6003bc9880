"""A question whose chip can follow when a constant changes: areas and powers in steps a quarter as large, and parts that are closed with a
quarter more of their usual power and area, or a fifth less area.

Where a constant changes, the best chip of a question may be held back by what the question leaves open, and not by the constant: bits of
registers that take a fifth more leave registers that draw no more than usual too slow for the cores, and of cores in steps of 20 mm^2 the
next fewer ones may be far too few. How far such a question's optimum moves says what the constant does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from time import monotonic
from typing import Any, Final

from crossopt.instances.codesign.chips import PART_OF, fed_by_ports, followers
from crossopt.instances.codesign.instance import FreeHardware, Instance, Options
from crossopt.solvers.answer import Number, Watch
from crossopt.solvers.codesign.answer import ChosenDesign, candidate_in, chosen_design
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.boxes.search import search
from crossopt.solvers.codesign.judge import verify

_QUARTERS: Final = (0.25, 0.5, 0.75)
_CLOSED: Final = ("compute", "registers", "l1", "l2", "node_network", "network")
_POWERS, _AREAS = (1.0, 1.25), (0.8, 1.0, 1.25)
"""Of a part that is closed, over what it usually has."""


@dataclass(frozen=True, slots=True)
class Followed:
    """The proven optimum of a chip that can follow."""

    value: float
    design: ChosenDesign
    opened: tuple[tuple[str, float | None], ...]
    """Which closed parts have more or less than usual there, each with how much worse it is, as a share, with what is usual; None where it
    is no chip then."""


def following(asked: Instance) -> Instance | None:
    """The question with such a chip; None where the device is given."""
    free = asked.hardware
    if not isinstance(free, FreeHardware):
        return None
    steps = tuple((name, _finer(name, options)) for name, options in free.options)
    return replace(asked, hardware=replace(free, options=(*steps, *_closed(free))))


def followed(asked: Instance, design: ChosenDesign | None, seconds: float, watch: Watch) -> Followed | None:
    """Its optimum, from a design of the question itself on; None where there is none, or none was proved in time."""
    easier, free = following(asked), asked.hardware
    if easier is None or not isinstance(free, FreeHardware):
        return None
    usual = None if design is None else candidate_in(easier, _with(design, _usual(free) | design.hardware.choices))
    seen = search(easier, watch, Spend(monotonic() + seconds), usual, near=True)
    if seen.best is None or seen.value is None or seen.stopped != "complete":
        return None
    best = _usual_again(asked, chosen_design(easier, seen.best), seen.value)
    return Followed(seen.value, best, opened_in(asked, best, seen.value))


def value_of(asked: Instance, design: ChosenDesign) -> float | None:
    """What a design has in the question of a chip that can follow; None where it is none, or breaks a limit."""
    easier = following(asked)
    if easier is None:
        return None
    try:
        verdict = verify(easier, candidate_in(easier, design))
    except ValueError:
        return None
    return verdict.value if verdict.accepted else None


def opened_in(asked: Instance, design: ChosenDesign, value: float) -> tuple[tuple[str, float | None], ...]:
    """The closed parts of which a design of that value has more or less than usual, and what that is worth."""
    found, free = [], asked.hardware
    for name, usual in _usual(free).items() if isinstance(free, FreeHardware) else ():
        if design.hardware.choices.get(name, usual) != usual:
            without = value_of(asked, _with(design, {name: usual}))
            found.append((name, None if without is None else without / value - 1.0))
    return tuple(found)


def _usual_again(asked: Instance, design: ChosenDesign, value: float) -> ChosenDesign:
    """The design with closed parts as they usually are, as far as that leaves its value."""
    usual = _usual(asked.hardware) if isinstance(asked.hardware, FreeHardware) else {}
    for name, amount in usual.items():
        tried = _with(design, {name: amount})
        design = tried if value_of(asked, tried) == value else design
    return design


def _with(design: ChosenDesign, choices: Mapping[str, Number]) -> ChosenDesign:
    """The design with other values of some hardware choices."""
    return replace(design, hardware=replace(design.hardware, choices=design.hardware.choices | dict(choices)))


def _finer(name: str, options: tuple[Any, ...]) -> tuple[Any, ...]:
    """Areas and powers with three values more between neighbours."""
    if name.rpartition("_")[2] not in ("area", "power"):
        return options
    between = (low + share * (high - low) for low, high in pairwise(sorted(options)) for share in _QUARTERS)
    return tuple(sorted({*options, *between}))


def _closed(free: FreeHardware) -> Options:
    """The parts that nobody opened; registers and L1 have their area by the cores."""
    shares = {"power": _POWERS, "area": _AREAS}
    return tuple((name, tuple(share * usual for share in shares[name.rpartition("_")[2]])) for name, usual in _usual(free).items())


def _usual(free: FreeHardware) -> dict[str, float]:
    """What each part usually has, of the areas and powers that nobody opened and that no other choice tells."""
    opened = tuple(name for name, _ in free.options)
    told = {f"{level}_area" for level in followers(free.technology, opened)} | {f"{level}_power" for level in fed_by_ports(free.technology)}
    usual = {f"{name}_power": getattr(free.powers, PART_OF[name]) * free.power for name in _CLOSED}
    if free.technology.upper_dies is None:
        usual |= {f"{name}_area": getattr(free.areas, PART_OF[name]) * free.die_area for name in _CLOSED}
    return {name: amount for name, amount in usual.items() if amount > 0.0 and name not in opened and name not in told}
