"""Edits of VIPR certificates, and the truth about a model in one by looking at all integer points near 0."""

import random
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import dropwhile, product

from crossopt.solvers.vipr import Checked

Terms = tuple[tuple[int, Fraction], ...]
Row = tuple[str, Fraction, Terms]


def is_true(text: str, checked: Checked) -> bool:
    """Whether no integer point near 0 is better than what was proved of the model in a certificate."""
    minimise, variables, costs, rows = model_in(text)
    values, bound = values_near(variables, costs, rows), checked.low if minimise else checked.high
    if checked.infeasible:
        return not values
    return bound is None or not values or (min(values) >= bound if minimise else max(values) <= bound)


def model_in(text: str) -> tuple[bool, int, Terms, tuple[Row, ...]]:
    """Whether a certificate minimises, how many variables there are, costs and constraints."""
    lines = dropwhile(lambda line: not line.strip() or line.lstrip().startswith("%"), text.split("\n"))
    words = iter(" ".join(lines).split())

    def skip(count: int) -> list[str]:
        return [next(words) for _ in range(count)]

    def terms(count: int) -> Terms:
        return tuple((int(place), Fraction(value)) for place, value in (skip(2) for _ in range(count)))

    variables = int(skip(4)[3])
    skip(variables + 1)
    skip(int(next(words)))
    minimise = skip(2)[1] == "min"
    costs, rows = terms(int(next(words))), list[Row]()
    for _ in range(int(skip(3)[1])):
        _, sense, right, count = skip(4)
        rows.append((sense, Fraction(right), costs if count == "OBJ" else terms(int(count))))
    return minimise, variables, costs, tuple(rows)


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
