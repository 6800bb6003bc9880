"""A question whose chip can follow when a constant changes: areas and powers in steps a quarter as large, and parts that are closed with a
quarter more of their usual power and area, or a fifth less area.

Where a constant changes, the best chip of a question may be held back by what the question leaves open, and not by the constant: bits of
registers that take a fifth more leave registers that draw no more than usual too slow for the cores, and of cores in steps of 20 mm^2 the
next fewer ones may be far too few. How far such a question's optimum moves says what the constant does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from time import monotonic
from typing import Any, Final

from crossopt.instances.catalogue.chips import PART_OF, fed_by_ports, followers
from crossopt.instances.catalogue.uncertain import Range
from crossopt.instances.codesign.instance import FreeHardware, Instance, Options
from crossopt.instances.errors import ModelError
from crossopt.solvers.answer import Limits, Number, Progress, Watch
from crossopt.solvers.codesign.answer import ChosenDesign, DesignResult, candidate_in, chosen_design
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.boxes.search import search
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.codesign.judge import verify
from crossopt.solvers.codesign.objective import unit_of
from crossopt.solvers.family import solve

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


def following(question: Instance) -> Instance | None:
    """The question with such a chip; None where the device is given."""
    free = question.hardware
    if not isinstance(free, FreeHardware):
        return None
    steps = tuple((name, _finer(name, options)) for name, options in free.options)
    return replace(question, hardware=replace(free, options=(*steps, *_closed(free))))


def followed(question: Instance, design: ChosenDesign | None, seconds: float, watch: Watch) -> Followed | None:
    """Its optimum, from a design of the question itself on; None where there is none, or none was proved in time."""
    easier, free = following(question), question.hardware
    if easier is None or not isinstance(free, FreeHardware):
        return None
    usual = None if design is None else candidate_in(easier, _with(design, _usual(free) | design.hardware.choices))
    seen = search(easier, watch, Spend(monotonic() + seconds), usual, near=True)
    if seen.best is None or seen.value is None or seen.stopped != "complete":
        return None
    best = _usual_again(question, chosen_design(easier, seen.best), seen.value)
    return Followed(seen.value, best, opened_in(question, best, seen.value))


def value_of(question: Instance, design: ChosenDesign) -> float | None:
    """What a design has in the question of a chip that can follow; None where it is none, or breaks a limit."""
    easier = following(question)
    if easier is None:
        return None
    try:
        verdict = verify(easier, candidate_in(easier, design))
    except ValueError:
        return None
    return verdict.value if verdict.accepted else None


def opened_in(question: Instance, design: ChosenDesign, value: float) -> tuple[tuple[str, float | None], ...]:
    """The closed parts of which a design of that value has more or less than usual, and what that is worth."""
    found, free = [], question.hardware
    for name, usual in _usual(free).items() if isinstance(free, FreeHardware) else ():
        if design.hardware.choices.get(name, usual) != usual:
            without = value_of(question, _with(design, {name: usual}))
            found.append((name, None if without is None else without / value - 1.0))
    return tuple(found)


def _usual_again(question: Instance, design: ChosenDesign, value: float) -> ChosenDesign:
    """The design with closed parts as they usually are, as far as that leaves its value."""
    usual = _usual(question.hardware) if isinstance(question.hardware, FreeHardware) else {}
    for name, amount in usual.items():
        tried = _with(design, {name: amount})
        design = tried if value_of(question, tried) == value else design
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
    """Options of the parts closed in the question; registers and L1 have their area by the cores."""
    shares = {"power": _POWERS, "area": _AREAS}
    return tuple((name, tuple(share * usual for share in shares[name.rpartition("_")[2]])) for name, usual in _usual(free).items())


def _usual(free: FreeHardware) -> dict[str, float]:
    """What each part usually has, of the areas and powers that are closed in the question and follow from no other choice."""
    opened = tuple(name for name, _ in free.options)
    known = {f"{level}_area" for level in followers(free.technology, opened)} | {
        f"{level}_power" for level in fed_by_ports(free.technology)
    }
    usual = {f"{name}_power": getattr(free.powers, PART_OF[name]) * free.power for name in _CLOSED}
    if free.technology.upper_dies is None:
        usual |= {f"{name}_area": getattr(free.areas, PART_OF[name]) * free.die_area for name in _CLOSED}
    return {name: amount for name, amount in usual.items() if amount > 0.0 and name not in opened and name not in known}


# Which constants decide an answer: the proven optimum with each of them at either end of its range, one at a time.
#
# Every end is a question of its own, that of the user with one factor more, answered and proved by the same engine; `crossopt solve
# QUESTION --set factors.core.area=1.2` is one of them. Beside its optimum stands what the design that is best with all constants as they
# are stated would do there: a constant may move the figure without moving the choice. And beside both stands the optimum of a chip that can
# follow (`following`): what the constant does, and not the steps and the closed parts of the question.

_SHARE = 1.5
"""Times an even share of the time that is left an end may take, so that one that is hard leaves some to the others."""
Ask = Callable[[str], Instance]
"""The question with one more setting."""


@dataclass(frozen=True, slots=True)
class End:
    """The optimum with a constant at one end of its range."""

    factor: float
    value: float | None
    """None where there is no design, or none was found in time."""
    bound: float | None
    proved: bool
    """That this is the optimum, or that there is no design."""
    design: ChosenDesign | None
    same: bool
    """Whether this is the design that is best with all constants as they are."""
    value_of_design: float | None
    """What that design has here; None where it breaks a limit, or cannot be built."""
    broken: tuple[str, ...]
    """Why it has nothing."""
    followed: Followed | None = None
    """The optimum of a chip that can follow; None where the device is given, or it was not proved in time."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A constant, and what its ends come to; None where there was no time."""

    section: str
    figure: str
    source: str
    low: End | None
    high: End | None

    @property
    def name(self) -> str:
        return f"{self.section}.{self.figure}"

    @property
    def ends(self) -> tuple[End, ...]:
        return tuple(end for end in (self.low, self.high) if end is not None)


@dataclass(frozen=True, slots=True)
class Deciding:
    """The optimum with all constants as they are, and what each of them makes of it, those that move it most first."""

    name: str
    unit: str
    objective: str
    central: End
    constants: tuple[Decided, ...]
    stopped: str
    seconds: float


def deciding(question: Instance, ask: Ask, limits: Limits, watch: Watch, hear: Callable[[Deciding], None]) -> Deciding:
    """All ends of all constants, as far as the time limit, which is for all of them together, allows; `hear` hears what is known so far."""
    began, constants = monotonic(), list[Decided]()
    deadline, ends = began + limits.seconds, 2 * len(question.ranges)
    result = _solved(question, limits, watch, "all constants as they are")
    central, stopped = _end(question, 1.0, result, result.answer.design if result.answer else None), result.stopped

    def known() -> Deciding:
        ordered = ranked(central, tuple(constants))
        return Deciding(question.name, unit_of(question), question.objective, central, ordered, stopped, monotonic() - began)

    hear(known())
    for constant in question.ranges if central.value is not None and stopped == "complete" else ():
        found: list[End | None] = []
        for factor in (constant.low, constant.high):
            left = deadline - monotonic()
            share = left * min(1.0, _SHARE / (ends - 2 * len(constants) - len(found)))
            message = f"{2 * len(constants) + len(found)} of {ends} ends known, {constant.name} x {factor:.3g}"
            try:
                found.append(_at(ask, constant, factor, replace(limits, seconds=share), watch, message, central) if left > 0.0 else None)
            except KeyboardInterrupt:
                stopped, deadline = "interrupted", began
                found.append(None)
        constants.append(Decided(constant.section, constant.figure, constant.source, found[0], found[1]))
        hear(known())
    try:
        if stopped == "complete" and central.value is not None:
            central = _with_followed(question, central, deadline - monotonic(), watch, "as they are")
        for index, known_one in enumerate(constants if central.followed else ()):
            constants[index] = _followed_at(ask, known_one, central, (deadline, len(constants) - index), watch)
            hear(known())
    except KeyboardInterrupt:
        stopped = "interrupted"
    if stopped == "complete" and any(end is None or not end.proved for constant in constants for end in (constant.low, constant.high)):
        stopped = "time limit"
    return known()


def ranked(central: End, constants: tuple[Decided, ...]) -> tuple[Decided, ...]:
    """Those first that move the optimum most; of equal ones in the order in which they come."""
    return tuple(sorted(constants, key=lambda constant: -swing(central, constant)))


def swing(central: End, constant: Decided) -> float:
    """How far the optimum moves at the most, as a share; infinitely where there is no design at an end, not at all where none is proved."""
    moved = [moved_by(central, end) for end in constant.ends if end.proved or end.followed]
    return max((float("inf") if share is None else abs(share) for share in moved), default=0.0)


def moved_by(central: End, end: End) -> float | None:
    """How far a constant moves the optimum, as a share: that of a chip that can follow, where both are known, and else that of the
    question; None where there is no design."""
    if central.followed is not None and end.followed is not None:
        return end.followed.value / central.followed.value - 1.0
    return asked_by(central, end)


def asked_by(central: End, end: End) -> float | None:
    """How far a constant moves the optimum of the question itself, with its steps and closed parts; None where either is unknown."""
    return end.value / central.value - 1.0 if end.value is not None and central.value else None


def _followed_at(ask: Ask, constant: Decided, central: End, time: tuple[float, int], watch: Watch) -> Decided:
    """The constant with what a chip that can follow makes of its ends, as far as the time allows that is left for so many constants."""
    (deadline, left), ends = time, list[End | None]()
    for end in (constant.low, constant.high):
        share = (deadline - monotonic()) * min(1.0, _SHARE / (2 * left - len(ends)))
        if end is None or end.factor == 1.0:
            ends.append(end and central)
        elif share > 0.0:
            question = ask(f"factors.{constant.name}={end.factor!r}")
            ends.append(_with_followed(question, end, share, watch, f"{constant.name} x {end.factor:.3g}"))
        else:
            ends.append(end)
    return replace(constant, low=ends[0], high=ends[1])


def _with_followed(question: Instance, end: End, seconds: float, watch: Watch, label: str) -> End:
    def hear(progress: Progress) -> None:
        watch(replace(progress, label=f"a chip that follows, {label}; {progress.label}"))

    return replace(end, followed=followed(question, end.design, seconds, hear))


def _at(ask: Ask, constant: Range, factor: float, limits: Limits, watch: Watch, label: str, central: End) -> End | None:
    """The optimum with a constant at one end; the one that is known where that is no change."""
    if factor == 1.0:
        return central
    question = ask(f"factors.{constant.name}={factor!r}")
    result = _solved(question, limits, watch, label)
    if result.stopped == "interrupted":
        raise KeyboardInterrupt
    return _end(question, factor, result, central.design)


def _solved(question: Instance, limits: Limits, watch: Watch, label: str) -> DesignResult:
    def hear(progress: Progress) -> None:
        watch(replace(progress, label=f"{label}; {progress.label}"))

    return solve(FAMILY, question, "auto", limits, hear)


def _end(question: Instance, factor: float, result: DesignResult, before: ChosenDesign | None) -> End:
    design = result.answer.design if result.answer else None
    value_before, broken = kept_there(question, before)
    same = same_choices(design, before)
    proved = result.settled and result.proved
    return End(factor, result.value, result.bound, proved, design, same, value_before, broken)


def same_choices(first: ChosenDesign | None, second: ChosenDesign | None) -> bool:
    """Whether two designs have the same hardware and the same plan."""
    return first is not None and second is not None and (first.hardware, first.plan) == (second.hardware, second.plan)


def kept_there(question: Instance, before: ChosenDesign | None) -> tuple[float | None, tuple[str, ...]]:
    """What a design has in this question, or why it has nothing."""
    if before is None:
        return None, ()
    try:
        verdict = verify(question, candidate_in(question, before))
    except (ValueError, ModelError) as error:
        return None, (str(error),)
    return (verdict.value if verdict.accepted else None), verdict.violations
