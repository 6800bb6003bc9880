"""What a study derives from its answers, expects of them and holds against measured runs: the form of it, and what of it is no formula.

Names in formulas are `optimum` (between bound and value), `value`, `bound`, `devices`, `tokens` (of a step), the axes, what was derived
before, and facts of the best design that was found: `plan.tensor`, `chip.hbm_stacks`, `design.power`, `part.compute` (seconds of a step),
`found.expert` (the value that an engine found). `before(x)` is x one place to the left on the first axis, `at(x, axis='value')` that at
another place.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Final

from crossopt.crossflow.fields import Doc, Ratio
from crossopt.crossflow.plan import Plan
from crossopt.instances.files.units import nearest, quoted
from crossopt.instances.studies.arithmetic import Comparison, Formula, names_in, parse_claim, parse_formula, places_in

ALWAYS: Final = ("optimum", "value", "bound", "devices", "tokens")
DESIGN: Final = ("step_time", "energy", "average_power", "power", "die_area", "cost", "flops", "utilisation", "memory")
PLAN: Final = tuple(one.name for one in fields(Plan))
SUBJECT: Final = "subject"


@dataclass(frozen=True, slots=True)
class DerivedSection:
    """A column that follows from others."""

    name: Annotated[str, Doc("one word, by which later formulas call it")]
    formula: Annotated[str, Doc("from the columns of a point, for example `tokens / optimum / devices`")]
    unit: Annotated[str, Doc("of the figures, for pages")] = ""
    drawn: Annotated[bool, Doc("whether a picture shows it along the first axis")] = True


@dataclass(frozen=True, slots=True)
class ExpectedSection:
    """Something that is expected to hold."""

    says: Annotated[str, Doc("in words")]
    claim: Annotated[str, Doc("a comparison of two formulas, with any tolerance in it: `abs(speedup - 0.56) <= 0.08`")]
    where: Annotated[dict[str, str], Doc("only at these values of axes, or of this `subject`; everywhere where nothing is said")] = field(
        default_factory=dict
    )
    source: Annotated[str, Doc("who says so")] = ""


@dataclass(frozen=True, slots=True)
class MeasuredSection:
    """Points that somebody measured, beside a column, as runs keep them."""

    name: str
    column: str
    points: dict[str, float]
    """By values of the first axis."""
    source: str
    where: dict[str, str] = field(default_factory=dict)
    within: float | None = None


@dataclass(frozen=True, slots=True)
class AgainstSection:
    """Points that somebody measured, beside a column, as they are written or stand in a file."""

    name: Annotated[str, Doc("of the points")]
    column: Annotated[str, Doc("a derived column that stands for the same figure")]
    source: Annotated[str, Doc("who measured them")]
    points: Annotated[dict[str, float], Doc("by values of the first axis, where no file has them")] = field(default_factory=dict)
    file: Annotated[str, Doc("a CSV file that has them, by its path from the study on")] = ""
    at: Annotated[str, Doc("its column with values of the first axis; rows at others are left out")] = ""
    figure: Annotated[str, Doc("its column with what was measured")] = ""
    rows: Annotated[dict[str, str], Doc("only rows in which these columns hold these texts")] = field(default_factory=dict)
    where: Annotated[dict[str, str], Doc("values of the other axes, or the `subject`, of the course beside which they stand")] = field(
        default_factory=dict
    )
    within: Annotated[Ratio | None, Doc("the share of a point by which the column may be off, where that is expected")] = None

    @property
    def measured(self) -> "MeasuredSection":
        """As runs keep them."""
        return MeasuredSection(self.name, self.column, self.points, self.source, self.where, self.within)


@dataclass(frozen=True, slots=True)
class Claims:
    """All of it, as runs keep it."""

    derive: tuple[DerivedSection, ...] = ()
    expect: tuple[ExpectedSection, ...] = ()
    against: tuple[MeasuredSection, ...] = ()
    leaves_open: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Places:
    """What formulas may name: the values on each axis and the subjects, by their names in formulas."""

    axes: Mapping[str, Sequence[str]]
    first: str
    engines: Sequence[str]


def as_name(label: str) -> str:
    """A label as formulas write it."""
    return re.sub(r"\W+", "_", label)


def faults_of(claims: Claims, places: Places) -> Iterator[tuple[str, str]]:
    """Every path at which something is wrong, and what."""
    known = [*ALWAYS, *(name for name in places.axes if name != SUBJECT)]
    for number, one in enumerate(claims.derive):
        path = f"derive[{number}]"
        if not one.name.isidentifier() or one.name in known:
            yield f"{path}.name", f"{quoted(one.name)} is taken or no word (write another one, with letters, digits and `_`)"
        yield from _formula_faults(f"{path}.formula", one.formula, False, known, places)
        known.append(one.name)
    for number, wanted in enumerate(claims.expect):
        yield from _formula_faults(f"expect[{number}].claim", wanted.claim, True, known, places)
        yield from _place_faults(f"expect[{number}].where", wanted.where.items(), places)
    derived = [one.name for one in claims.derive]
    for number, points in enumerate(claims.against):
        path = f"against[{number}]"
        if points.column not in derived:
            yield f"{path}.column", _unknown("derived column", points.column, derived)
        yield from _place_faults(f"{path}.where", points.where.items(), places)
        yield from _place_faults(f"{path}.points", [(places.first, at) for at in points.points] if places.first else [], places)
        if not places.first or not points.points:
            yield f"{path}.points", "points stand at values of the first axis of `sweep`, and there are none"
        elif any(not 0.0 < value < float("inf") for value in points.points.values()):
            yield f"{path}.points", "what is measured is above zero"


def _formula_faults(path: str, text: str, compares: bool, known: Sequence[str], places: Places) -> Iterator[tuple[str, str]]:
    try:
        formula: Formula | Comparison = parse_claim(text) if compares else parse_formula(text)
    except ValueError as error:
        yield path, str(error)
        return
    for name in dict.fromkeys(names_in(formula)):
        if fault := _name_fault(name, known, places):
            yield path, fault
    yield from _place_faults(path, places_in(formula), places)


def _name_fault(name: str, known: Sequence[str], places: Places) -> str:
    """What is wrong with a name of a formula; nothing where nothing is."""
    of, dot, part = name.partition(".")
    inside = {"plan": PLAN, "design": DESIGN, "found": [as_name(engine) for engine in places.engines]}
    if not dot:
        return "" if name in known else _unknown("column", name, known)
    if of in {"chip", "part"}:  # choices and uses of time of which each question has its own
        return ""
    if of not in inside:
        return f"there is nothing called {quoted(of)} (one of plan, chip, design, part, found)"
    return "" if part in inside[of] else _unknown(f"`{of}`", part, inside[of])


def _place_faults(path: str, named: Iterable[tuple[str, str]], places: Places) -> Iterator[tuple[str, str]]:
    for axis, value in dict.fromkeys(named):
        known = places.axes.get(as_name(axis))
        if known is None:
            yield path, _unknown("axis", axis, list(places.axes))
        elif value not in known:
            yield path, f"{axis} has no value {quoted(value)} (one of {', '.join(known)})"


def _unknown(what: str, name: str, known: Sequence[str]) -> str:
    guess = nearest(name, known)
    return f"there is no {what} {quoted(name)} (one of {', '.join(known)}{f'; did you mean {guess[0]!r}?' if guess else ''})"
