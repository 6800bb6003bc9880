"""Formulas in a file: numbers, names, sums, products, powers, a few functions, and one comparison; nothing else, so that nothing is run.

    tokens / optimum / devices                               a figure
    optimum < at(optimum, memory='hbm1')                     what holds or does not
    abs(speedup - 0.559) <= 0.08

A text is parsed as Python reads an expression (module `ast`) and turned into the few kinds of nodes below; all else is refused.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Final

LONGEST: Final = 400
"""Signs of a formula."""
_DEEPEST: Final = 40
FUNCTIONS: Final = {"abs": 1, "sqrt": 1, "log": 1, "exp": 1, "before": 1, "at": 1, "min": 2, "max": 2}
"""How many figures each takes; `min` and `max` take two or more, `at` also names places."""
_SIGNS: Final = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
_COMPARED: Final = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that is written out."""

    value: float


@dataclass(frozen=True, slots=True)
class Name:
    """`optimum`, or `plan.tensor`."""

    text: str


@dataclass(frozen=True, slots=True)
class Operation:
    """Two formulas with a sign between them."""

    sign: str
    left: "Formula"
    right: "Formula"


@dataclass(frozen=True, slots=True)
class Call:
    """A function of formulas; `places` are those that `at` names."""

    function: str
    given: tuple["Formula", ...]
    places: tuple[tuple[str, str], ...] = ()


Formula = Figure | Name | Operation | Call


@dataclass(frozen=True, slots=True)
class Comparison:
    """What holds or does not."""

    sign: str
    left: Formula
    right: Formula


def parse_formula(text: str) -> Formula:
    """The formula in a text; a ValueError in words where it is none."""
    found = _read(_tree(text))
    if isinstance(found, Comparison):
        raise ValueError("this compares, and a figure is needed (leave the comparison out)")
    return found


def parse_claim(text: str) -> Comparison:
    """The comparison in a text; a ValueError in words where it is none."""
    found = _read(_tree(text))
    if not isinstance(found, Comparison):
        raise ValueError("this is a figure, and something that holds or does not is needed (compare by < <= > >=)")
    return found


def names_in(formula: Formula | Comparison) -> Iterator[str]:
    """Every name that it has."""
    match formula:
        case Name(text):
            yield text
        case Operation(_, left, right) | Comparison(_, left, right):
            yield from names_in(left)
            yield from names_in(right)
        case Call(_, given, _):
            for one in given:
                yield from names_in(one)
        case Figure():
            return


def places_in(formula: Formula | Comparison) -> Iterator[tuple[str, str]]:
    """Every place that `at` names."""
    match formula:
        case Operation(_, left, right) | Comparison(_, left, right):
            yield from places_in(left)
            yield from places_in(right)
        case Call(_, given, places):
            yield from places
            for one in given:
                yield from places_in(one)
        case _:
            return


def _tree(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise ValueError(f"this formula has {len(text):,} signs (write {LONGEST} or fewer; derive a part of it before)")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise ValueError("this is no formula (for example `tokens / optimum / devices`)") from error


def _read(tree: ast.expr) -> Formula | Comparison:
    if isinstance(tree, ast.Compare):
        sign = _COMPARED.get(type(tree.ops[0]))
        if len(tree.ops) > 1 or sign is None:
            raise ValueError("one comparison by < <= > >= is taken (write one line for each; of equal figures `abs(a - b) <= 0.01 * b`)")
        return Comparison(sign, _figure(tree.left, 0), _figure(tree.comparators[0], 0))
    return _figure(tree, 0)


def _figure(tree: ast.expr, depth: int) -> Formula:
    if depth > _DEEPEST:
        raise ValueError("this formula is too deep (derive a part of it before)")
    match tree:
        case ast.Constant(value=bool() | str() | bytes() | None):
            pass
        case ast.Constant(value=int() | float() as value) if _fits(value):
            return Figure(float(value))
        case ast.Name(id=text):
            return Name(text)
        case ast.Attribute(value=ast.Name(id=text), attr=part):
            return Name(f"{text}.{part}")
        case ast.UnaryOp(op=ast.USub(), operand=inside):
            return Operation("-", Figure(0.0), _figure(inside, depth + 1))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _SIGNS:
            return Operation(_SIGNS[type(op)], _figure(left, depth + 1), _figure(right, depth + 1))
        case ast.Call(func=ast.Name(id=name), args=given, keywords=places):
            return _call(name, given, places, depth)
        case _:
            pass
    raise ValueError("a formula has numbers, names, + - * / **, parentheses and functions (" + ", ".join(FUNCTIONS) + "), and nothing else")


def _fits(value: float) -> bool:
    try:
        return isfinite(float(value))
    except OverflowError:
        return False


def _call(name: str, given: list[ast.expr], places: list[ast.keyword], depth: int) -> Call:
    if name not in FUNCTIONS:
        raise ValueError(f"there is no function `{name}` (one of {', '.join(FUNCTIONS)})")
    least = FUNCTIONS[name]
    if len(given) < least or (least == 1 and len(given) > 1):
        raise ValueError(f"`{name}` takes {'one figure' if least == 1 else 'two figures or more'}")
    named = list[tuple[str, str]]()
    for place in places:
        value = place.value.value if isinstance(place.value, ast.Constant) else None
        if name != "at" or place.arg is None or not isinstance(value, str | int | float):
            raise ValueError("only `at` names places, each as axis='value'")
        named.append((place.arg, str(value)))
    if name == "at" and not named:
        raise ValueError("`at` names a place (for example `at(optimum, devices='8')`)")
    return Call(name, tuple(_figure(one, depth + 1) for one in given), tuple(named))
