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
    FormulaNames,
    MeasuredSection,
    Name,
    Operation,
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
"""The value of a call that refers to another point; None if unknown."""


def figure_of(formula: Formula, named: Looked, elsewhere: Elsewhere) -> Ends | None:
    """Between which ends a formula lies; None where a part of it says nothing or has no value."""
    match formula:
        case Figure(value):
            return exactly(value)
        case Name(text):
            return named(text)
        case Operation(sign, left, right):
            first, second = figure_of(left, named, elsewhere), figure_of(right, named, elsewhere)
            return None if first is None or second is None else _finite(_OPERATIONS[sign], first, second)
        case Call(function, _, _) if function in {"at", "before"}:
            return elsewhere(formula)
        case Call(function, given, _):
            found = [figure_of(part, named, elsewhere) for part in given]
            known = [ends for ends in found if ends is not None]
            return _finite(_FUNCTIONS[function], *known) if len(known) == len(found) else None


def verdict_of(claim: Comparison, named: Looked, elsewhere: Elsewhere) -> Verdict | None:
    """Whether a comparison holds for all figures between the ends, for none, or for some; None where it says nothing."""
    first, second = figure_of(claim.left, named, elsewhere), figure_of(claim.right, named, elsewhere)
    if first is None or second is None:
        return None
    less, more = (first, second) if claim.sign[0] == "<" else (second, first)
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
    rounded = Fraction(near)
    return Ends(near if rounded <= exact else nextafter(near, -inf), near if rounded >= exact else nextafter(near, inf))


def _between(*corners: Fraction) -> Ends:
    return Ends(_nearest(min(corners)).least, _nearest(max(corners)).most)


def _exact(ends: Ends) -> tuple[Fraction, Fraction]:
    return Fraction(ends.least), Fraction(ends.most)


def _sum(first: Ends, second: Ends) -> Ends:
    return _between(*(left + right for left, right in zip(_exact(first), _exact(second), strict=True)))


def _difference(first: Ends, second: Ends) -> Ends:
    return _between(Fraction(first.least) - Fraction(second.most), Fraction(first.most) - Fraction(second.least))


def _product(first: Ends, second: Ends) -> Ends:
    return _between(*(left * right for left in _exact(first) for right in _exact(second)))


def _quotient(first: Ends, second: Ends) -> Ends | None:
    if second.least <= 0.0 <= second.most:
        return None
    return _between(*(left / right for left in _exact(first) for right in _exact(second)))


def _wider(*ends: float) -> Ends:
    """Two steps outward: what a library rounds by less than one of them."""
    least, most = min(ends), max(ends)
    return Ends(nextafter(nextafter(least, -inf), -inf), nextafter(nextafter(most, inf), inf))


def _power(first: Ends, second: Ends) -> Ends | None:
    """Of positive figures."""
    if first.least <= 0.0:
        return None
    return _wider(*(left**right for left in (first.least, first.most) for right in (second.least, second.most)))


def _abs(figure: Ends) -> Ends:
    ends = (abs(figure.least), abs(figure.most))
    return Ends(0.0 if figure.least <= 0.0 <= figure.most else min(ends), max(ends))


def _rising(function: Callable[[float], float]) -> Callable[[Ends], Ends]:
    """A function that rises."""
    return lambda ends: _wider(function(ends.least), function(ends.most))


_OPERATIONS = {"+": _sum, "-": _difference, "*": _product, "/": _quotient, "**": _power}
_FUNCTIONS: dict[str, Callable[..., Ends | None]] = {
    "abs": _abs,
    "sqrt": _rising(sqrt),
    "log": _rising(log),
    "exp": _rising(exp),
    "min": lambda *given: Ends(min(ends.least for ends in given), min(ends.most for ends in given)),
    "max": lambda *given: Ends(max(ends.least for ends in given), max(ends.most for ends in given)),
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
    for derived_column in claims.derive:
        rows.derive(derived_column.name, parse_formula(derived_column.formula))
    derived = tuple(Derived(column.name, column.unit, tuple(_pair(ends) for ends in rows.derived[column.name])) for column in claims.derive)
    found = [_finding(rows, claim.says, parse_claim(claim.claim), claim.where, claim.source) for claim in claims.expect]
    found += [_compared(rows, points) for points in claims.against if points.within is not None]
    return replace(study, derived=derived, findings=tuple(found))


def _claim_faults(study: Study) -> Sequence[tuple[str, str]]:
    """What of the claims is none; the same that the reader of a study looks for, as a saved one may have been edited."""
    axes = {as_name(axis.name): axis.values for axis in study.plan.axes}
    first = as_name(study.plan.axes[0].name) if study.plan.axes else ""
    subjects = tuple(dict.fromkeys(question.subject for question in study.questions))
    try:
        return list(faults_of(study.plan.claims, FormulaNames({**axes, SUBJECT: subjects}, first, study.plan.engines)))
    except (TypeError, AttributeError) as error:
        raise ValueError("these are no claims") from error


def _pair(ends: Ends | None) -> tuple[float, float] | None:
    return None if ends is None else (ends.least, ends.most)


class _Rows:
    """The columns of each question, looked up when a formula names them."""

    def __init__(self, study: Study, instances: Sequence[Instance]) -> None:
        self.study, self.instances = study, instances
        self.axes = [as_name(axis.name) for axis in study.plan.axes]
        self.at = [dict(zip([*self.axes, SUBJECT], (*question.at, question.subject), strict=True)) for question in study.questions]
        self.places = {tuple(sorted(at.items())): number for number, at in enumerate(self.at)}
        self.derived = dict[str, list[Ends | None]]()
        self._facts = dict[int, dict[str, Ends]]()

    @cached_property
    def engines(self) -> dict[str, str]:
        """The engines by their names in formulas."""
        return {as_name(engine): engine for engine in self.study.plan.engines}

    def derive(self, name: str, formula: Formula) -> None:
        """One more column."""
        self.derived[name] = [self.figure(formula, number) for number in range(len(self.at))]

    def figure(self, formula: Formula, number: int) -> Ends | None:
        """Between which ends a formula lies at a question."""
        return figure_of(formula, lambda name: self.named(name, number), lambda call: self.elsewhere(call, number))

    def verdict(self, claim: Comparison, number: int) -> Verdict | None:
        """What a comparison comes to there."""
        return verdict_of(claim, lambda name: self.named(name, number), lambda call: self.elsewhere(call, number))

    def elsewhere(self, call: Call, number: int) -> Ends | None:
        """A formula one place to the left on the first axis, or where it is said."""
        at = dict(self.at[number])
        if call.function == "before":
            values = self.study.plan.axes[0].values if self.axes else ()
            step = values.index(at[self.axes[0]]) if values else 0
            if not step:
                return None
            at[self.axes[0]] = values[step - 1]
        at |= {as_name(axis): value for axis, value in call.places}
        other = self.places.get(tuple(sorted(at.items())))
        return None if other is None else self.figure(call.given[0], other)

    def named(self, name: str, number: int) -> Ends | None:
        """What a name stands for at a question."""
        if name in self.derived:
            return self.derived[name][number]
        if name in self.at[number]:
            return _number(self.at[number][name])
        of, dot, part = name.partition(".")
        if of == "found" and dot:
            values = [run.value for run in self.study.runs_of(number, self.engines[part]) if run.value is not None]
            return exactly(min(values)) if values else None
        return self.always(name, number) if not dot else self.facts(number).get(name)

    def always(self, name: str, number: int) -> Ends | None:
        """What every question has; an optimum between its bound and its value, where both are known."""
        bound, best = bound_of(self.study, number), best_of(self.study, number)
        value = best.value if best else None
        match name:
            case "devices":
                return exactly(float(self.instances[number].cluster.devices))
            case "tokens":
                return exactly(float(self.instances[number].workload.tokens))
            case "value":
                return None if value is None else exactly(value)
            case "bound":
                return None if bound is None or bound == NEVER else exactly(bound)
            case _:
                return None if value is None or bound is None else Ends(bound, value)

    def facts(self, number: int) -> dict[str, Ends]:
        """Figures that the full model gives the best design of a question, evaluated at the first request."""
        if number not in self._facts:
            self._facts[number] = _facts_of(self.study, number, self.instances[number])
        return self._facts[number]


def _facts_of(study: Study, number: int, instance: Instance) -> dict[str, Ends]:
    best = best_of(study, number)
    if best is None or best.design is None:
        return {}
    chosen = design_of(instance, candidate_in(instance, best.design))
    evaluation = evaluation_of(instance, evaluate(instance.workload, chosen, instance.budget, instance.prices), chosen.plan)
    facts = {f"design.{name}": value for name, value in to_plain(evaluation).items()} | {"design.memory": sum(evaluation.memory.values())}
    facts |= {f"plan.{name}": value for name, value in to_plain(best.design.plan).items()}
    facts |= {f"chip.{name}": value for name, value in best.design.hardware.choices.items()}
    facts |= {f"part.{as_name(name)}": value for name, value in evaluation.breakdown.items()}
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
    chosen = [number for number, at in enumerate(rows.at) if wanted.items() <= at.items()]
    found = {number: verdict for number in chosen if (verdict := rows.verdict(claim, number)) is not None}
    names = {number: rows.study.questions[number].name for number in found}
    return _judged(says, {names[number]: verdict for number, verdict in found.items()}, source)


def _judged(says: str, found: Mapping[str, Verdict], source: str) -> Finding:
    failed, undecided = ([name for name, verdict in found.items() if verdict == outcome] for outcome in ("failed", "open"))
    if not found:
        return Finding(says, "open", "nothing is known where it would hold", source)
    if not failed and not undecided:
        return Finding(says, "held", f"at {len(found):,} place{'s' * (len(found) != 1)}", source)
    parts = [f"{what} at {_first_names(names)}" for what, names in (("fails", failed), ("undecided", undecided)) if names]
    return Finding(says, "failed" if failed else "open", f"{'; '.join(parts)}, of {len(found):,}", source)


def _first_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{'; '.join(names[:_SHOWN])}{more}"


def _compared(rows: _Rows, points: MeasuredSection) -> Finding:
    """Whether a column is as near to measured points as was expected."""
    found = dict[str, Verdict]()
    for at, figure in points.points.items():
        off = Call("abs", (Operation("-", Operation("/", Name(points.column), Figure(figure)), Figure(1.0)),))
        claim = Comparison("<=", off, Figure(points.within or 0.0))
        finding = _finding(rows, "", claim, {**points.where, rows.axes[0]: at}, "")
        if finding.words[0] != "n":  # it says something
            found[at] = finding.verdict
    says = f"{points.column.replace('_', ' ')} is within {points.within or 0.0:.0%} of {points.name}"
    return _judged(says, found, points.source)
