"""Integer models as students hand them in, in plain data, and their best solutions, found and checked here.

{"variables": {"keep 0": [0, 1], "load": [0, 500]},              least and greatest value of each, whole numbers
 "maximise": {"keep 0": 7},                                      or "minimise"
 "rows": [{"terms": {"keep 0": 3, "load": -1}, "at_most": 0}]}   or "at_least", or "equals"

Whether a model says the question, and not one answer to it, drawn plans tell, which must be held at the right price. The variables that
the handout names are fixed at the plan, the others stay free, and the model is solved with that: a plan that is allowed must have a
solution whose objective is the plan's price, and a plan that is not allowed must have none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic

from crossopt.formulation.model import Linear, Model, Terms, Variable
from crossopt.instances.errors import SolverError
from crossopt.solvers.backends import Spend, backend
from crossopt.solvers.backends.milp import relaxed
from crossopt.solvers.grading.marks import FULL, Verdict, nearly, wrong

MOST_VARIABLES, _ROWS, _TERMS = 2000, 5000, 50_000
_SECONDS = 20.0
"""Of a model, and of all drawn plans of a model together."""
_LIMITS = ("at_most", "at_least", "equals")


def solved(handed: object) -> tuple[dict[str, int], int]:
    """Values of the best solution and its objective; a ValueError in a sentence where there is none."""
    found = _best(read_model(handed), _SECONDS)
    if found is None:
        raise ValueError("the model has no solution")
    return found


def best_with(handed: object, named: Mapping[str, int], seconds: float) -> int | None:
    """The best objective with some variables fixed, of which those that the model does not have are 0; None where that has no solution."""
    model = read_model(handed)
    known = {variable.name: variable for variable in model.variables}
    fixed = [(known[name], value) for name, value in named.items() if name in known]
    absent = any(value for name, value in named.items() if name not in known)
    if absent or any(not variable.low <= value <= variable.high for variable, value in fixed):
        return None
    rows = (Linear(f"{variable.name} is given", ((1, variable),), value, value) for variable, value in fixed)
    found = _best(replace(model, constraints=(*model.constraints, *rows)), seconds)
    return found[1] if found else None


def _best(model: Model, seconds: float) -> tuple[dict[str, int], int] | None:
    """The best solution and its objective; None where there is none, a ValueError where that stays open."""
    try:
        answer = backend("highs")(model, Spend(seconds))
    except SolverError as error:
        raise ValueError(f"the model could not be solved: {error}") from error
    if answer.status == "INFEASIBLE":
        return None
    if answer.status != "OPTIMAL" or answer.values is None or answer.value is None:
        raise ValueError(f"the model was not solved to the end in {_SECONDS:.0f} s")
    return {variable.name: value for variable, value in answer.values.items()}, answer.value


def relaxation(handed: object) -> float:
    """The best objective where the integers may be fractions; a ValueError where there is none."""
    value = relaxed(read_model(handed), _SECONDS)
    if value is None:
        raise ValueError("the relaxation of the model was not solved")
    return value


def read_model(handed: object) -> Model:
    """The model that plain data describe; a ValueError in a sentence where they describe none."""
    if not isinstance(handed, dict) or not {"variables", "rows"} <= set(handed) <= {"variables", "rows", "maximise", "minimise"}:
        raise ValueError("a model is a dictionary with `variables`, `rows` and one of `maximise` and `minimise`")
    objectives = [name for name in ("maximise", "minimise") if name in handed]
    if len(objectives) != 1:
        raise ValueError("a model has one of `maximise` and `minimise`")
    variables, rows = handed["variables"], handed["rows"]
    if not isinstance(variables, dict) or not 0 < len(variables) <= MOST_VARIABLES:
        raise ValueError(f"`variables` is a dictionary of 1 to {MOST_VARIABLES} names, each with its least and greatest value")
    if not isinstance(rows, list) or len(rows) > _ROWS:
        raise ValueError(f"`rows` is a list of at most {_ROWS} rows")
    known = {name: _variable(name, ends) for name, ends in variables.items()}
    constraints = tuple(_constraints(rows, known))
    return Model(tuple(known.values()), constraints, _terms("objective", handed[objectives[0]], known), minimise=objectives == ["minimise"])


def _variable(name: str, ends: object) -> Variable:
    if not (isinstance(ends, list) and len(ends) == 2 and all(_is_integer(end) for end in ends)):
        raise ValueError(f"variable {name!r}: its least and greatest value are meant, such as [0, 1]")
    return Variable(name, ends[0], ends[1])


def _constraints(rows: list[object], known: Mapping[str, Variable]) -> Iterator[Linear]:
    count = 0
    for number, row in enumerate(rows):
        name = f"row {number}"
        if not isinstance(row, dict) or not isinstance(row.get("terms"), dict) or len(row) != 2 or not set(row) & set(_LIMITS):
            raise ValueError(f"{name}: `terms` and one of {', '.join(_LIMITS)} are meant")
        count += len(row["terms"])
        if count > _TERMS:
            raise ValueError(f"the rows have more than {_TERMS} terms")
        ((sense, limit),) = ((key, value) for key, value in row.items() if key != "terms")
        if not _is_integer(limit):
            raise ValueError(f"{name}: {sense} is a whole number")
        low, high = (None if sense == "at_most" else limit), (None if sense == "at_least" else limit)
        yield Linear(name, _terms(name, row["terms"], known), low, high)


def _terms(name: str, terms: object, known: Mapping[str, Variable]) -> Terms:
    if not isinstance(terms, dict):
        raise ValueError(f"{name}: a dictionary of variables and their factors is meant")
    for variable, factor in terms.items():
        if variable not in known:
            raise ValueError(f"{name}: {variable!r} is not among the variables")
        if not _is_integer(factor):
            raise ValueError(f"{name}: the factor of {variable!r} is a whole number")
    return tuple((factor, known[variable]) for variable, factor in terms.items())


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Plan:
    """A value of each named variable, the price of that (None where it is not allowed), and what it is in words."""

    named: Mapping[str, int]
    price: int | None
    label: str


OBJECTIVE = "the objective is not what the plan is worth"


def saying(answer: Verdict, handed: object, plans: Sequence[Plan], wrong_objective: str = "") -> Verdict:
    """What a model is worth whose best solution is that answer: nothing where it does not hold all plans, nearly right where it holds them
    at another price. `wrong_objective` says what was wrong with the objective at the answer, if anything was."""
    if not answer.share:
        return answer
    compared = _compared(handed, plans, wrong_objective)
    return compared if compared.share < answer.share else answer


def _compared(handed: object, plans: Sequence[Plan], off: str) -> Verdict:
    end = monotonic() + _SECONDS
    for plan in plans:
        try:
            price = best_with(handed, plan.named, max(0.0, end - monotonic()))
        except ValueError as error:
            return wrong(f"with {plan.label} given, {error}")
        if plan.price is None and price is not None:
            return wrong(f"the model holds what is not allowed: {plan.label}")
        if plan.price is not None and price is None:
            return wrong(f"the model leaves out what is allowed: {plan.label}")
        if price != plan.price:
            off = off or f"the objective says {price} where {plan.price} is right: {plan.label}"
    return nearly(OBJECTIVE, off) if off else FULL
