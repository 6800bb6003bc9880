"""Integer proofs in the certificate format VIPR 1.0 of Cheung, Gleixner and Steffy (Verifying Integer Programming Results, IPCO 2017).

A tree of `formulation.certificate` becomes a list of constraints, each with a reason that any checker of the format can repeat:

    CON       two bounds of each variable, then the rows; a row with two different limits is two constraints
    branch    x <= v and x >= v + 1 { asm };  what both parts prove { uns }
    split     sum of the first variables of a row >= 1, and <= 0 { asm };  in the first part, sum of the others <= 0 { lin: row - asm }
    leaf      scale * objective >= s { lin: rows by their multipliers, bounds and branches by what they leave of the costs },
              objective >= ceil(s / scale) { rnd }, since costs and variables are whole
    empty     0 >= s, which is above 0 { lin }

The sum over a split's zeroed variables is used once, by the most negative of what the rows leave of their costs; their lower bounds take up
the rest. All figures are whole but 1 / scale. A constant of the objective is a variable that is fixed to 1.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from crossopt.formulation.certificate import Certificate, Cut, Leaf, Split, Whole, bound_of_tree, integer_form, parts_of
from crossopt.formulation.model import Model, Values, Variable, lifted, linearize, real

_UNPRINTABLE = re.compile(r"[^A-Za-z0-9_.,()\[\]-]+")


@dataclass(frozen=True, slots=True)
class IntegerProof:
    """A model, a tree that bounds it, and what else belongs into a certificate."""

    model: Model
    tree: Certificate
    known: Values | None = None
    """Values of a solution: those of tables, and enough others that the rows leave one value of the rest, or any from the least on."""
    about: str = ""
    """What the objective counts, and what the model leaves out."""
    unit: float = 1.0
    """What 1 of the objective stands for, a power of two."""
    limits: tuple[float, float] = (inf, inf)
    """The model has all answers up to the first, and there is none below the second where it has no solution."""

    def shown(self, bound: int | None) -> int | float:
        """What no answer is below, by a bound of the model, None where it has no solution; infinite where there is no answer."""
        if bound is None:
            return self.limits[1]
        return min(bound if self.unit == 1.0 else real(bound, self.unit), self.limits[0])


@dataclass(frozen=True, slots=True)
class ViprCertificate:
    """A certificate as text, and what it claims of the model as it minimises."""

    text: str
    bound: int | None
    """None where there is no solution."""
    value: int | None
    """Of the solution; None without one."""


def vipr_certificate(proof: IntegerProof, comments: Sequence[str] = ()) -> ViprCertificate:
    """The certificate of a proof, after lines of comment; a ValueError where the tree is none of the model."""
    linear, model = linearize(proof.model), integer_form(proof.model)
    bound, names = bound_of_tree(model, proof.tree), _names(linear.variables)
    values = None
    if proof.known is not None:
        known = lifted(proof.model, proof.known)
        values = completed(model, {index: known[variable] for index, variable in enumerate(linear.variables) if variable in known})
        if values is None:
            raise ValueError("its answer is no solution of the model")
    if model.constant:
        costs, lows, highs = (*model.costs, model.constant), (*model.lows, 1), (*model.highs, 1)
        model, names = replace(model, constant=0, costs=costs, lows=lows, highs=highs), [*names, "constant"]
        values = None if values is None else [*values, 1]
    value = None if values is None else sum(cost * chosen for cost, chosen in zip(model.costs, values, strict=True))
    derived = _Derivations(model, proof.tree.scale)
    if derived.close(proof.tree) != bound:
        raise ValueError("the certificate proves another bound than its tree")
    lines = [*(f"% {_one_line(comment)}" for comment in comments), "VER 1.0", f"VAR {len(names)}", *names]
    lines += [f"INT {len(names)}", " ".join(map(str, range(len(names)))), "OBJ min", _sparse(enumerate(model.costs))]
    lines += [f"CON {len(derived.stated)} {2 * len(names)}", *derived.stated]
    lines.append("RTP infeas" if bound is None else f"RTP range {bound} {'inf' if value is None else value}")
    lines += ["SOL 0"] if values is None else ["SOL 1", f"answer {_sparse(enumerate(values))}"]
    ends = (f"{line} {derived.last.get(index, -1)}" for index, line in enumerate(derived.derived, len(derived.stated)))
    return ViprCertificate("\n".join([*lines, f"DER {len(derived.derived)}", *ends]) + "\n", bound, value)


def _names(variables: Iterable[Variable]) -> list[str]:
    """Names without blanks, none of them twice."""
    return [f"{_UNPRINTABLE.sub('_', variable.name)}.{index}" for index, variable in enumerate(variables)]


def _one_line(text: str) -> str:
    return "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in text)


def _sparse(terms: Iterable[tuple[int, int]]) -> str:
    """The terms that are not 0, after their number."""
    nonzero = [f"{index} {factor}" for index, factor in terms if factor]
    return " ".join([str(len(nonzero)), *nonzero])


@dataclass(frozen=True, slots=True)
class _Box:
    """The ends of each variable, and the constraints that say so."""

    lows: tuple[int, ...]
    highs: tuple[int, ...]
    low_by: tuple[int, ...]
    high_by: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Joined:
    """The assumptions of both parts of a cut."""

    first: int
    second: int


@dataclass(slots=True)
class _Derivations:
    """The constraints of a model, and what was derived from them so far."""

    model: Whole
    scale: int
    stated: list[str] = field(default_factory=list)
    derived: list[str] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    """The right side of each constraint."""
    last: dict[int, int] = field(default_factory=dict)
    """The last constraint that uses one."""
    sides: list[tuple[int | None, int | None]] = field(default_factory=list)
    """The constraints of each row: at least, at most."""
    sums: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Constraints that a sum of variables is at most 0."""
    scaled: str = ""
    """The objective times the scale."""

    def __post_init__(self) -> None:
        for index, (low, high) in enumerate(zip(self.model.lows, self.model.highs, strict=True)):
            self._state(f"low{index} G", low, f"1 {index} 1")
            self._state(f"high{index} L", high, f"1 {index} 1")
        for row, (entries, least, most) in enumerate(zip(self.model.rows, self.model.least, self.model.most, strict=True)):
            terms = _sparse(entries)
            if least is not None and least == most:
                both = self._state(f"row{row} E", least, terms)
                self.sides.append((both, both))
            else:
                below = None if least is None else self._state(f"least{row} G", least, terms)
                self.sides.append((below, None if most is None else self._state(f"most{row} L", most, terms)))
        self.scaled = _sparse((index, self.scale * cost) for index, cost in enumerate(self.model.costs))

    def _state(self, head: str, right: int, terms: str) -> int:
        self.stated.append(f"{head} {right} {terms}")
        self.right.append(right)
        return len(self.right) - 1

    def _derive(self, sense: str, right: int, terms: str, reason: str, used: Iterable[int] = ()) -> int:
        index = len(self.right)
        self.derived.append(f"d{index} {sense} {right} {terms} {{ {reason} }}")
        self.right.append(right)
        self.last.update(dict.fromkeys(used, index))
        return index

    def close(self, tree: Certificate) -> int | None:
        """Derive what a tree proves, its last constraint for the whole model: the bound, or None where there is no solution."""
        count, steps = len(self.model.costs), iter(tree.steps)
        root = _Box(self.model.lows, self.model.highs, tuple(range(0, 2 * count, 2)), tuple(range(1, 2 * count, 2)))
        left: list[_Box | _Joined] = [root]
        done: list[tuple[int, int | None]] = []
        while left:
            part = left.pop()
            if isinstance(part, _Joined):
                second, first = done.pop(), done.pop()
                done.append(self._join(first, second, part))
            elif isinstance(step := next(steps), Leaf):
                done.append(self._leaf(part, step))
            else:
                first_box, second_box, joined = self._cut(part, step)
                left += [joined, second_box, first_box]
        return done[-1][1]

    def _cut(self, box: _Box, cut: Cut) -> tuple[_Box, _Box, _Joined]:
        """Both parts of a cut, each by its assumption."""
        first, second = (replace(box, lows=lows, highs=highs) for lows, highs in parts_of(self.model, box.lows, box.highs, cut))
        if not isinstance(cut, Split):
            index, value = cut.variable, cut.value
            below = self._derive("L", value, f"1 {index} 1", "asm")
            above = self._derive("G", value + 1, f"1 {index} 1", "asm")
            return (
                replace(first, high_by=_with(box.high_by, [index], below)),
                replace(second, low_by=_with(box.low_by, [index], above)),
                _Joined(below, above),
            )
        indices, row = [index for index, _ in self.model.rows[cut.row]], self.sides[cut.row][0]
        ahead, behind = indices[: cut.first], indices[cut.first :]
        ahead_one, ahead_zero = (self._derive(sense, right, _sum(ahead), "asm") for sense, right in (("G", 1), ("L", 0)))
        behind_zero = self._derive("L", 0, _sum(behind), f"lin 2 {row} 1 {ahead_one} -1", [ahead_one])
        self.sums |= {behind_zero: tuple(behind), ahead_zero: tuple(ahead)}
        return (
            replace(first, high_by=_with(box.high_by, behind, behind_zero)),
            replace(second, high_by=_with(box.high_by, ahead, ahead_zero)),
            _Joined(ahead_one, ahead_zero),
        )

    def _leaf(self, box: _Box, leaf: Leaf) -> tuple[int, int | None]:
        """The bound of a leaf; None with an absurdity where it is empty."""
        reduced, used = [0 if leaf.empty else self.scale * cost for cost in self.model.costs], dict[int, int]()
        for row, times in zip(leaf.rows, leaf.times, strict=True):
            side = self.sides[row][0 if times > 0 else 1]
            if side is None or not times:
                continue
            used[side] = used.get(side, 0) + times
            for index, factor in self.model.rows[row]:
                reduced[index] -= times * factor
        most = dict[int, int]()
        for index, cost in enumerate(reduced):
            if cost < 0 and box.high_by[index] in self.sums:
                most[box.high_by[index]] = max(most.get(box.high_by[index], 0), -cost)
        for total, times in most.items():
            used[total] = -times
            for index in self.sums[total]:
                reduced[index] += times
        for index, cost in enumerate(reduced):
            if cost:
                used[(box.low_by if cost > 0 else box.high_by)[index]] = cost
        found, reason = sum(times * self.right[index] for index, times in used.items()), f"lin {_sparse(used.items())}"
        if leaf.empty:
            return self._derive("G", found, "0", reason, used), None
        bound, scaled = -(-found // self.scale), self._derive("G", found, self.scaled, reason, used)
        return self._derive("G", bound, "OBJ", f"rnd 1 {scaled} 1/{self.scale}", [scaled]), bound

    def _join(self, first: tuple[int, int | None], second: tuple[int, int | None], by: _Joined) -> tuple[int, int | None]:
        """What holds of both parts."""
        bounds = [bound for _, bound in (first, second) if bound is not None]
        reason, used = f"uns {first[0]} {by.first} {second[0]} {by.second}", (first[0], by.first, second[0], by.second)
        if not bounds:
            return self._derive("G", 1, "0", reason, used), None
        return self._derive("G", min(bounds), "OBJ", reason, used), min(bounds)


def _with(by: tuple[int, ...], indices: Iterable[int], constraint: int) -> tuple[int, ...]:
    changed = list(by)
    for index in indices:
        changed[index] = constraint
    return tuple(changed)


def _sum(indices: Sequence[int]) -> str:
    return _sparse((index, 1) for index in indices)


def completed(model: Whole, known: dict[int, int]) -> list[int] | None:
    """Values of all variables: those that are known, and of the others the least that the rows allow then, in their order.

    Ends of variables are tightened row by row; None where that leaves a variable without a value. Whether all rows hold is not looked at.
    """
    lows, highs = list(model.lows), list(model.highs)
    for index, value in known.items():
        lows[index], highs[index] = max(value, lows[index]), min(value, highs[index])
    rows_of: list[list[int]] = [[] for _ in lows]
    for row, entries in enumerate(model.rows):
        for index, _ in entries:
            rows_of[index].append(row)
    waiting = list(range(len(model.rows)))
    for following in range(len(lows) + 1):
        while waiting:
            for index in _tightened(model, waiting.pop(), lows, highs):
                if lows[index] > highs[index]:
                    return None
                waiting += rows_of[index]
        if following < len(lows) and lows[following] < highs[following]:
            highs[following] = lows[following]
            waiting += rows_of[following]
    return lows


def _tightened(model: Whole, row: int, lows: list[int], highs: list[int]) -> set[int]:
    """The variables of a row whose ends move, as far as its limits and the other variables say."""
    moved = set[int]()
    for entries, limit in _at_most(model, row):
        least = sum(factor * (lows if factor > 0 else highs)[index] for index, factor in entries)
        for index, factor in entries:
            own = limit - least + factor * (lows if factor > 0 else highs)[index]  # factor * x is no more
            if factor > 0 and own // factor < highs[index]:
                highs[index] = own // factor
                moved.add(index)
            elif factor < 0 and -(own // -factor) > lows[index]:
                lows[index] = -(own // -factor)
                moved.add(index)
    return moved


def _at_most(model: Whole, row: int) -> Iterable[tuple[Sequence[tuple[int, int]], int]]:
    """A row as sums that are at most something."""
    least, most, entries = model.least[row], model.most[row], [entry for entry in model.rows[row] if entry[1]]
    if most is not None:
        yield entries, most
    if least is not None:
        yield [(index, -factor) for index, factor in entries], -least
