"""What a study derives and expects of its answers: a column of ends for each formula, and what came of each expectation.

An expectation is held where it holds for all figures between the ends at all its places, failed where at one of them it holds for none,
and open else: "A beats B" only where the value of A is below the bound of B.

Figures are known between two ends, and arithmetic on them never narrows (Moore 1966): ends are sums, products and quotients in whole
numbers, rounded outward where they have to be rounded. A question that is proved has an optimum whose ends are its bound and its value; so
whatever is derived of it holds of the optimum itself, and of a question that is not proved no more is claimed than its ends allow.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import exp, inf, isfinite, log, nextafter, sqrt
from typing import Final, Literal

from crossopt.crossflow.evaluate import evaluate
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.files.dataclass_json import to_plain
from crossopt.instances.files.units import DIMENSIONS, parse_number, parse_quantity
from crossopt.instances.studies.study import (
    SUBJECT,
    Call,
    Claims,
    Comparison,
    Figure,
    Formula,
    MeasuredSection,
    Name,
    Operation,
    Places,
    as_name,
    faults_of,
    parse_claim,
    parse_formula,
)
from crossopt.solvers.codesign.answer import candidate_in, design_of, evaluation_of
from crossopt.solvers.study.figures import NEVER, best_of, bound_of
from crossopt.solvers.study.records import Derived, Finding, Study

_SHOWN: Final = 6
"""Places that a finding names."""


Verdict = Literal["held", "failed", "open"]


@dataclass(frozen=True, slots=True)
class Ends:
    """The least and the greatest that a figure can be."""

    least: float
    most: float


def exactly(value: float) -> Ends:
    """A figure that is known."""
    return Ends(value, value)


Looked = Callable[[str], Ends | None]
"""What a name stands for; None where it says nothing."""
Elsewhere = Callable[[Call], Ends | None]
"""The same of a formula at another place."""


def figure_of(formula: Formula, named: Looked, elsewhere: Elsewhere) -> Ends | None:
    """Between which ends a formula lies; None where a part of it says nothing or has no value."""
    match formula:
        case Figure(value):
            return exactly(value)
        case Name(text):
            return named(text)
        case Operation(sign, left, right):
            one, other = figure_of(left, named, elsewhere), figure_of(right, named, elsewhere)
            return None if one is None or other is None else _finite(_OPERATIONS[sign], one, other)
        case Call(function, _, _) if function in {"at", "before"}:
            return elsewhere(formula)
        case Call(function, given, _):
            found = [figure_of(one, named, elsewhere) for one in given]
            known = [one for one in found if one is not None]
            return _finite(_FUNCTIONS[function], *known) if len(known) == len(found) else None


def verdict_of(claim: Comparison, named: Looked, elsewhere: Elsewhere) -> Verdict | None:
    """Whether a comparison holds for all figures between the ends, for none, or for some; None where it says nothing."""
    one, other = figure_of(claim.left, named, elsewhere), figure_of(claim.right, named, elsewhere)
    if one is None or other is None:
        return None
    less, more = (one, other) if claim.sign[0] == "<" else (other, one)
    if less.most < more.least or (claim.sign[1:] and less.most <= more.least):
        return "held"
    return "failed" if less.least > more.most or (not claim.sign[1:] and less.least >= more.most) else "open"


def _finite(operation: Callable[..., Ends | None], *given: Ends) -> Ends | None:
    """The result where it is one, of numbers that a computer has."""
    try:
        found = operation(*given)
    except (OverflowError, ValueError):
        return None
    return found if found and isfinite(found.least) and isfinite(found.most) else None


def _nearest(exact: Fraction) -> Ends:
    """The numbers that a computer has on both sides; twice the same where it is one."""
    near = float(exact)
    told = Fraction(near)
    return Ends(near if told <= exact else nextafter(near, -inf), near if told >= exact else nextafter(near, inf))


def _between(*corners: Fraction) -> Ends:
    return Ends(_nearest(min(corners)).least, _nearest(max(corners)).most)


def _exact(one: Ends) -> tuple[Fraction, Fraction]:
    return Fraction(one.least), Fraction(one.most)


def _sum(one: Ends, other: Ends) -> Ends:
    return _between(*(left + right for left, right in zip(_exact(one), _exact(other), strict=True)))


def _difference(one: Ends, other: Ends) -> Ends:
    return _between(Fraction(one.least) - Fraction(other.most), Fraction(one.most) - Fraction(other.least))


def _product(one: Ends, other: Ends) -> Ends:
    return _between(*(left * right for left in _exact(one) for right in _exact(other)))


def _quotient(one: Ends, other: Ends) -> Ends | None:
    if other.least <= 0.0 <= other.most:
        return None
    return _between(*(left / right for left in _exact(one) for right in _exact(other)))


def _wider(*ends: float) -> Ends:
    """Two steps outward: what a library rounds by less than one of them."""
    least, most = min(ends), max(ends)
    return Ends(nextafter(nextafter(least, -inf), -inf), nextafter(nextafter(most, inf), inf))


def _power(one: Ends, other: Ends) -> Ends | None:
    """Of positive figures."""
    if one.least <= 0.0:
        return None
    return _wider(*(left**right for left in (one.least, one.most) for right in (other.least, other.most)))


def _abs(one: Ends) -> Ends:
    ends = (abs(one.least), abs(one.most))
    return Ends(0.0 if one.least <= 0.0 <= one.most else min(ends), max(ends))


def _rising(function: Callable[[float], float]) -> Callable[[Ends], Ends]:
    """A function that rises."""
    return lambda one: _wider(function(one.least), function(one.most))


_OPERATIONS = {"+": _sum, "-": _difference, "*": _product, "/": _quotient, "**": _power}
_FUNCTIONS: dict[str, Callable[..., Ends | None]] = {
    "abs": _abs,
    "sqrt": _rising(sqrt),
    "log": _rising(log),
    "exp": _rising(exp),
    "min": lambda *given: Ends(min(one.least for one in given), min(one.most for one in given)),
    "max": lambda *given: Ends(max(one.least for one in given), max(one.most for one in given)),
}


# --- columns and findings ---------------------------------------------------------------------------------------------------------------


def with_columns(study: Study, instances: Sequence[Instance]) -> Study:
    """The study with what follows from its runs; a ValueError in words where its claims are none."""
    claims = study.plan.claims
    if claims == Claims():
        return study
    if wrong := list(_claim_faults(study)):
        raise ValueError(": ".join(wrong[0]))
    rows = _Rows(study, instances)
    for one in claims.derive:
        rows.derive(one.name, parse_formula(one.formula))
    derived = tuple(Derived(one.name, one.unit, tuple(_pair(ends) for ends in rows.derived[one.name])) for one in claims.derive)
    found = [_finding(rows, one.says, parse_claim(one.claim), one.where, one.source) for one in claims.expect]
    found += [_compared(rows, one) for one in claims.against if one.within is not None]
    return replace(study, derived=derived, findings=tuple(found))


def _claim_faults(study: Study) -> Sequence[tuple[str, str]]:
    """What of the claims is none; the same that the reader of a study looks for, as a saved one may have been edited."""
    axes = {as_name(axis.name): axis.values for axis in study.plan.axes}
    first = as_name(study.plan.axes[0].name) if study.plan.axes else ""
    subjects = tuple(dict.fromkeys(question.subject for question in study.questions))
    try:
        return list(faults_of(study.plan.claims, Places({**axes, SUBJECT: subjects}, first, study.plan.engines)))
    except (TypeError, AttributeError) as error:
        raise ValueError("these are no claims") from error


def _pair(ends: Ends | None) -> tuple[float, float] | None:
    return None if ends is None else (ends.least, ends.most)


class _Rows:
    """The columns of each question, looked up when a formula names them."""

    def __init__(self, study: Study, instances: Sequence[Instance]) -> None:
        self.study, self.instances = study, instances
        self.axes = [as_name(axis.name) for axis in study.plan.axes]
        self.at = [dict(zip([*self.axes, SUBJECT], (*one.at, one.subject), strict=True)) for one in study.questions]
        self.places = {tuple(sorted(at.items())): place for place, at in enumerate(self.at)}
        self.derived = dict[str, list[Ends | None]]()
        self._facts = dict[int, dict[str, Ends]]()

    @cached_property
    def engines(self) -> dict[str, str]:
        """The engines by their names in formulas."""
        return {as_name(engine): engine for engine in self.study.plan.engines}

    def derive(self, name: str, formula: Formula) -> None:
        """One more column."""
        self.derived[name] = [self.figure(formula, place) for place in range(len(self.at))]

    def figure(self, formula: Formula, place: int) -> Ends | None:
        """Between which ends a formula lies at a question."""
        return figure_of(formula, lambda name: self.named(name, place), lambda call: self.elsewhere(call, place))

    def verdict(self, claim: Comparison, place: int) -> Verdict | None:
        """What a comparison comes to there."""
        return verdict_of(claim, lambda name: self.named(name, place), lambda call: self.elsewhere(call, place))

    def elsewhere(self, call: Call, place: int) -> Ends | None:
        """A formula one place to the left on the first axis, or where it is said."""
        at = dict(self.at[place])
        if call.function == "before":
            values = self.study.plan.axes[0].values if self.axes else ()
            step = values.index(at[self.axes[0]]) if values else 0
            if not step:
                return None
            at[self.axes[0]] = values[step - 1]
        at |= {as_name(axis): value for axis, value in call.places}
        other = self.places.get(tuple(sorted(at.items())))
        return None if other is None else self.figure(call.given[0], other)

    def named(self, name: str, place: int) -> Ends | None:
        """What a name stands for at a question."""
        if name in self.derived:
            return self.derived[name][place]
        if name in self.at[place]:
            return _number(self.at[place][name])
        of, dot, part = name.partition(".")
        if of == "found" and dot:
            values = [run.value for run in self.study.runs_of(place, self.engines[part]) if run.value is not None]
            return exactly(min(values)) if values else None
        return self.always(name, place) if not dot else self.facts(place).get(name)

    def always(self, name: str, place: int) -> Ends | None:
        """What every question has; an optimum between its bound and its value, where both are known."""
        bound, best = bound_of(self.study, place), best_of(self.study, place)
        value = best.value if best else None
        match name:
            case "devices":
                return exactly(float(self.instances[place].cluster.devices))
            case "tokens":
                return exactly(float(self.instances[place].workload.tokens))
            case "value":
                return None if value is None else exactly(value)
            case "bound":
                return None if bound is None or bound == NEVER else exactly(bound)
            case _:
                return None if value is None or bound is None else Ends(bound, value)

    def facts(self, place: int) -> dict[str, Ends]:
        """What the full model says of the best design of a question, which is priced when somebody wants to know."""
        if place not in self._facts:
            self._facts[place] = _facts_of(self.study, place, self.instances[place])
        return self._facts[place]


def _facts_of(study: Study, place: int, instance: Instance) -> dict[str, Ends]:
    best = best_of(study, place)
    if best is None or best.design is None:
        return {}
    chosen = design_of(instance, candidate_in(instance, best.design))
    priced = evaluation_of(instance, evaluate(instance.workload, chosen, instance.budget, instance.prices), chosen.plan)
    facts = {f"design.{name}": value for name, value in to_plain(priced).items()} | {"design.memory": sum(priced.memory.values())}
    facts |= {f"plan.{name}": value for name, value in to_plain(best.design.plan).items()}
    facts |= {f"chip.{name}": value for name, value in best.design.hardware.choices.items()}
    facts |= {f"part.{as_name(name)}": value for name, value in priced.breakdown.items()}
    return {name: exactly(float(value)) for name, value in facts.items() if isinstance(value, int | float)}


def _number(text: str) -> Ends | None:
    """A value on an axis as a figure in SI units, where it is one."""
    for dimension in ("", *DIMENSIONS):
        try:
            return exactly(parse_quantity(text, dimension) if dimension else float(parse_number(text)))
        except (ValueError, OverflowError):
            continue
    return None


def _finding(rows: _Rows, says: str, claim: Comparison, where: Mapping[str, str], source: str) -> Finding:
    """What a claim comes to at all its places that it says something of."""
    wanted = {as_name(axis): value for axis, value in where.items()}
    chosen = [place for place, at in enumerate(rows.at) if wanted.items() <= at.items()]
    found = {place: verdict for place in chosen if (verdict := rows.verdict(claim, place)) is not None}
    names = {place: rows.study.questions[place].name for place in found}
    return _judged(says, {names[place]: verdict for place, verdict in found.items()}, source)


def _judged(says: str, found: Mapping[str, Verdict], source: str) -> Finding:
    failed, undecided = ([name for name, verdict in found.items() if verdict == word] for word in ("failed", "open"))
    if not found:
        return Finding(says, "open", "nothing is known where it would hold", source)
    if not failed and not undecided:
        return Finding(says, "held", f"at {len(found):,} place{'s' * (len(found) != 1)}", source)
    words = [f"{what} at {_listed(names)}" for what, names in (("fails", failed), ("undecided", undecided)) if names]
    return Finding(says, "failed" if failed else "open", f"{'; '.join(words)}, of {len(found):,}", source)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{'; '.join(names[:_SHOWN])}{more}"


def _compared(rows: _Rows, points: MeasuredSection) -> Finding:
    """Whether a column is as near to measured points as was expected."""
    found = dict[str, Verdict]()
    for at, figure in points.points.items():
        off = Call("abs", (Operation("-", Operation("/", Name(points.column), Figure(figure)), Figure(1.0)),))
        claim = Comparison("<=", off, Figure(points.within or 0.0))
        one = _finding(rows, "", claim, {**points.where, rows.axes[0]: at}, "")
        if one.words[0] != "n":  # it says something
            found[at] = one.verdict
    says = f"{points.column.replace('_', ' ')} is within {points.within or 0.0:.0%} of {points.name}"
    return _judged(says, found, points.source)
