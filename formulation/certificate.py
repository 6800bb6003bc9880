"""A bound of an integer model that whole numbers prove: a tree of branches, and at each leaf a multiplier for each row.

    branch    on a variable and a value v: first x <= v, then x >= v + 1. Every integer is in one of the two.
    split     of a row that asks for exactly one of some 0/1 variables: first one of its first few, then one of the others.
    leaf      for the box that its branches leave, and any multipliers y of the rows  low_r <= a_r x <= high_r,

        scale c x  >=  sum over rows of  y_r low_r  where y_r > 0,  y_r high_r  where y_r < 0
                     + sum over variables j of the least over the box of  (scale c_j - sum over rows of y_r a_rj) x_j

              (weak duality of linear programs), and as the objective is an integer, the bound is rounded up to one.
              Where nothing is solved, the same without c: a sum above 0 says that no x of the box keeps the rows (Farkas 1902).

Multipliers are whole numbers over one scale. Their origin does not matter: any multipliers give a valid bound, and all is computed
in Python's integers. The steps of a tree stand in one list, a branch before the steps of its first part and these before its second's.
A model is read in its linear form (`linearize`), with the variables and rows in its order.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from crossopt.formulation.model import Constraint, ExactlyOne, Linear, Model, Terms, linearize

DEEPEST = 5_000
"""Largest depth of a tree, which bounds the memory for its boxes."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch on a variable, between two neighbouring values."""

    variable: int
    value: int


@dataclass(frozen=True, slots=True)
class Split:
    """A branch on a row that selects one of several variables: its first few variables, or the others."""

    row: int
    first: int


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf: rows by index, with their multipliers in units of 1 / scale."""

    rows: tuple[int, ...] = ()
    times: tuple[int, ...] = ()
    empty: bool = False
    """Whether the leaf proves infeasibility; otherwise it proves a bound."""


Cut = Branch | Split
Step = Cut | Leaf


@dataclass(frozen=True, slots=True)
class Certificate:
    """A tree in preorder, and the denominator of all multipliers."""

    scale: int
    steps: tuple[Step, ...]


Entries = tuple[tuple[int, int], ...]
"""Indices of variables, and their coefficients."""
Ends = Sequence[int]
"""One end of the box of each variable."""
Box = tuple[tuple[int, ...], tuple[int, ...]]
"""Both ends of each variable."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A linear minimisation model by indices alone."""

    costs: tuple[int, ...]
    constant: int
    lows: tuple[int, ...]
    highs: tuple[int, ...]
    """Upper limits of the variables."""
    rows: tuple[Entries, ...]
    least: tuple[int | None, ...]
    most: tuple[int | None, ...]
    """Limits of the rows; None for an open side."""


def integer_form(model: Model) -> Whole:
    """The linear minimisation form of a model, by indices; objectives to maximise are negated."""
    linear = linearize(model)
    places, sign = {variable: index for index, variable in enumerate(linear.variables)}, model.sign
    costs = [0] * len(linear.variables)
    for cost, variable in linear.objective:
        costs[places[variable]] += sign * cost
    rows, least, most = list[Entries](), list[int | None](), list[int | None]()
    for row in linear.constraints:
        terms, low, high = _sides(row)
        rows.append(tuple((places[variable], factor) for factor, variable in terms))
        least.append(low)
        most.append(high)
    ends = tuple(v.low for v in linear.variables), tuple(v.high for v in linear.variables)
    return Whole(tuple(costs), sign * linear.constant, *ends, tuple(rows), tuple(least), tuple(most))


def _sides(row: Constraint) -> tuple[Terms, int | None, int | None]:
    """A row as a linear expression and its limits."""
    if isinstance(row, ExactlyOne):
        return tuple((1, variable) for variable in row.variables), 1, 1
    if isinstance(row, Linear) and row.given is None:
        return row.terms, row.low, row.high
    raise TypeError(f"{row.name} is no linear row")


def proved_bound(model: Model, certificate: Certificate) -> int | None:
    """The bound proved by the tree for a model; None if it proves infeasibility.

    A ValueError where it is no tree of this model."""
    bound = bound_of_tree(integer_form(model), certificate)
    return None if bound is None else model.sign * bound


def bound_of_tree(form: Whole, certificate: Certificate) -> int | None:
    """The bound proved for a minimisation model: the least over all leaves; None if the tree proves infeasibility.

    A ValueError if it is not a tree of this model.
    """
    if certificate.scale < 1:
        raise ValueError(f"a scale of {certificate.scale} is none")
    boxes = [(form.lows, form.highs, 0)]
    bounds = list[int]()
    for number, step in enumerate(certificate.steps):
        if not boxes:
            raise ValueError("the tree has more steps than its branches ask for")
        lows, highs, depth = boxes.pop()
        if not isinstance(step, Leaf):
            if depth == DEEPEST:
                raise ValueError("the branches are too deep")
            first, second = parts_of(form, lows, highs, step)
            boxes += [(*second, depth + 1), (*first, depth + 1)]
        elif step.empty:
            if not excess(form, lows, highs, step) > 0:
                raise ValueError(f"step {number} does not show that no solution is there")
        else:
            bounds.append(leaf_bound(form, lows, highs, certificate.scale, step))
    if not bounds and certificate.scale != 1:
        raise ValueError("there is a scale and no bound that it divides")
    if boxes:
        raise ValueError(f"the tree ends before {len(boxes)} of its parts")
    return min(bounds, default=None)


def parts_of(form: Whole, lows: Ends, highs: Ends, cut: Cut) -> tuple[Box, Box]:
    """The two boxes of a branch; a ValueError if the branch is invalid or leaves a box empty."""
    return _split(form, lows, highs, cut) if isinstance(cut, Split) else _branched(lows, highs, cut)


def asks_for_one(form: Whole, row: int) -> bool:
    """Whether a row selects exactly one of several 0/1 variables."""
    entries = form.rows[row]
    limits = form.least[row] == 1 and form.most[row] == 1
    return limits and all(factor == 1 and form.lows[variable] >= 0 and form.highs[variable] <= 1 for variable, factor in entries)


def _branched(lows: Ends, highs: Ends, branch: Branch) -> tuple[Box, Box]:
    variable, value = branch.variable, branch.value
    if not 0 <= variable < len(lows):
        raise ValueError(f"there is no variable {variable} to branch on")
    if not lows[variable] <= value < highs[variable]:
        raise ValueError(f"variable {variable} is from {lows[variable]} to {highs[variable]}: {value} leaves a part of it empty")
    below, above = list(highs), list(lows)
    below[variable], above[variable] = value, value + 1
    return (tuple(lows), tuple(below)), (tuple(above), tuple(highs))


def _split(form: Whole, lows: Ends, highs: Ends, split: Split) -> tuple[Box, Box]:
    if not 0 <= split.row < len(form.rows) or not asks_for_one(form, split.row):
        raise ValueError(f"there is no row {split.row} that asks for exactly one of some variables")
    places = [variable for variable, _ in form.rows[split.row]]
    if not 0 < split.first < len(places) or any(lows[variable] > 0 for variable in places):
        raise ValueError(f"row {split.row} cannot be split after {split.first} of its {len(places)} variables")
    return _without(lows, highs, places[split.first :]), _without(lows, highs, places[: split.first])


def _without(lows: Ends, highs: Ends, places: Sequence[int]) -> Box:
    fewer = list(highs)
    for variable in places:
        fewer[variable] = 0
    return tuple(lows), tuple(fewer)


def leaf_bound(form: Whole, lows: Ends, highs: Ends, scale: int, leaf: Leaf) -> int:
    """Lower bound of the objective in the box."""
    found = _least(form, lows, highs, [scale * cost for cost in form.costs], leaf)
    return form.constant - (-found // scale)


def excess(form: Whole, lows: Ends, highs: Ends, leaf: Leaf) -> int:
    """Amount by which the weighted rows exceed what the box can give; if positive, the box is infeasible."""
    return _least(form, lows, highs, [0] * len(form.costs), leaf)


def _least(form: Whole, lows: Ends, highs: Ends, reduced: list[int], leaf: Leaf) -> int:
    """The weighted sum of the rows, and the least remaining cost."""
    if len(leaf.rows) != len(leaf.times):
        raise ValueError("each row needs its multiplier")
    found = 0
    for row, times in zip(leaf.rows, leaf.times, strict=True):
        if not 0 <= row < len(form.rows):
            raise ValueError(f"there is no row {row}")
        side = form.least[row] if times > 0 else form.most[row]
        if not times:
            continue
        if side is None:
            raise ValueError(f"row {row} is open on the side that its multiplier asks for")
        found += times * side
        for variable, factor in form.rows[row]:
            reduced[variable] -= times * factor
    return found + sum(cost * (low if cost > 0 else high) for cost, low, high in zip(reduced, lows, highs, strict=True) if cost)


def packed(certificate: Certificate) -> tuple[str, ...]:
    """The steps as lines of whole numbers.

    A branch is "variable value", a split "(-1 - row) first", a leaf "(1 where it is empty, else 0) row multiplier row multiplier ..."."""
    return tuple(" ".join(map(str, _packed(step))) for step in certificate.steps)


def unpacked(scale: int, lines: Iterable[str]) -> Certificate:
    """The certificate of such lines; a ValueError where one is no step."""
    return Certificate(scale, tuple(_unpacked(numbers_in(line)) for line in lines))


def numbers_in(line: str) -> tuple[int, ...]:
    """Whole numbers between blanks, written in the only way that they are."""
    found = tuple(int(text) for text in line.split(" "))
    if " ".join(map(str, found)) != line:
        raise ValueError(f"{line[:40]!r} is no line of whole numbers")
    return found


def _packed(step: Step) -> tuple[int, ...]:
    if isinstance(step, Branch):
        return step.variable, step.value
    if isinstance(step, Split):
        return -1 - step.row, step.first
    return int(step.empty), *chain.from_iterable(zip(step.rows, step.times, strict=True))


def _unpacked(step: Sequence[int]) -> Step:
    if len(step) == 2:
        return Branch(step[0], step[1]) if step[0] >= 0 else Split(-1 - step[0], step[1])
    if len(step) % 2 == 0 or step[0] not in {0, 1}:
        raise ValueError(f"{len(step)} numbers that begin so are no step of a tree")
    return Leaf(tuple(step[1::2]), tuple(step[2::2]), step[0] == 1)
