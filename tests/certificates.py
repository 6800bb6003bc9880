"""Edits of VIPR certificates, and the truth about a model in one by looking at all integer points near 0."""

import random
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import dropwhile, product
from math import inf

import highspy

from crossopt.solvers.vipr import Checked, check

Terms = tuple[tuple[int, Fraction], ...]
Row = tuple[str, Fraction, Terms]
FEW = 4
"""Variables of a model all of whose integer points near 0 are looked at."""


def is_true(text: str, checked: Checked) -> bool:
    """Whether no integer point near 0 is better than what was proved of the model in a certificate."""
    minimise, variables, _, costs, rows = model_in(text)
    values, bound = values_near(variables, costs, rows), checked.low if minimise else checked.high
    if checked.infeasible:
        return not values
    return bound is None or not values or (min(values) >= bound if minimise else max(values) <= bound)


def holds(text: str) -> bool:
    """The same of a model of any size that a check accepts: of many variables a solver says what the optimum is."""
    checked = check(text)
    minimise, variables, integers, costs, rows = model_in(text)
    if variables <= FEW:
        return is_true(text, checked)
    bound = checked.low if minimise else checked.high
    if bound is None and not checked.infeasible:
        return True
    try:
        optimum = best_by_solver(minimise, variables, integers, costs, rows)
    except OverflowError:  # a coefficient beyond floating point, of which the solver says nothing
        return True
    if checked.infeasible or bound is None:
        return optimum is None
    off = Fraction(0) if optimum is None else (bound - Fraction(optimum)) * (1 if minimise else -1)
    return off <= max(Fraction(1), abs(bound)) / 10**6


def best_by_solver(minimise: bool, variables: int, integers: frozenset[int], costs: Terms, rows: tuple[Row, ...]) -> float | None:
    """The optimum by HiGHS, in floating point; None where it finds no solution."""
    solver, factors = highspy.Highs(), dict(costs)
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", 0.0)
    names = [
        solver.addVariable(
            -inf,
            inf,
            float(factors.get(place, 0)),
            highspy.HighsVarType.kInteger if place in integers else highspy.HighsVarType.kContinuous,
        )
        for place in range(variables)
    ]
    for sense, right, terms in rows:
        low, high = (float(right) if sense in "EG" else -inf), (float(right) if sense in "EL" else inf)
        solver.addRow(low, high, len(terms), [names[place].index for place, _ in terms], [float(factor) for _, factor in terms])
    solver.changeObjectiveSense(highspy.ObjSense.kMinimize if minimise else highspy.ObjSense.kMaximize)
    solver.run()
    found = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(solver.getInfo().objective_function_value) if found else None


def model_in(text: str) -> tuple[bool, int, frozenset[int], Terms, tuple[Row, ...]]:
    """Whether a certificate minimises, how many variables there are, which stand at integers, costs and constraints."""
    lines = dropwhile(lambda line: not line.strip() or line.lstrip().startswith("%"), text.split("\n"))
    words = iter(re.findall(r"\S+", " ".join(lines), re.ASCII))

    def skip(count: int) -> list[str]:
        return [next(words) for _ in range(count)]

    def terms(count: int) -> Terms:
        return tuple((int(place), Fraction(value)) for place, value in (skip(2) for _ in range(count)))

    variables = int(skip(4)[3])
    skip(variables)
    integers = frozenset(map(int, skip(int(skip(2)[1]))))
    minimise = skip(2)[1] == "min"
    costs, rows = terms(int(next(words))), list[Row]()
    for _ in range(int(skip(3)[1])):
        _, sense, right, count = skip(4)
        rows.append((sense, Fraction(right), costs if count == "OBJ" else terms(int(count))))
    return minimise, variables, integers, costs, tuple(rows)


@lru_cache(maxsize=64)
def values_near(variables: int, costs: Terms, rows: tuple[Row, ...], reach: int = 6) -> list[Fraction]:
    """The objective at every integer point near 0 that keeps the rows; most edits leave them as they are."""
    found = []
    for point in product(range(-reach, reach + 1), repeat=variables):
        sides = ((sense, sum(factor * point[place] for place, factor in own) - right) for sense, right, own in rows)
        if all(off == 0 if sense == "E" else off >= 0 if sense == "G" else off <= 0 for sense, off in sides):
            found.append(sum((factor * point[place] for place, factor in costs), start=Fraction(0)))
    return found


def edited(text: str, seed: int, count: int) -> Iterator[str]:
    """The text with one or two words or lines changed."""
    draw, tokens, lines = random.Random(seed), text.split(), text.split("\n")
    for _ in range(count):
        pieces, joint = (lines[:], "\n") if draw.random() < 0.3 else (text.replace("\n", " \n ").split(" "), " ")
        for _ in range(draw.choice((1, 1, 2))):
            at, other = draw.randrange(len(pieces)), draw.randrange(len(pieces))
            match draw.randrange(5):
                case 0:
                    del pieces[at]
                case 1:
                    pieces.insert(at, pieces[other])
                case 2:
                    pieces[at], pieces[other] = pieces[other], pieces[at]
                case 3:
                    pieces[at] = draw.choice(tokens)
                case _:
                    pieces[at] = draw.choice(("0", "1", "-1", "2", "1/2", "L", "G", "E", "lin", "rnd", "asm", "OBJ", "inf", "-inf"))
        yield joint.join(pieces)
