"""A checker of integer proofs in the certificate format VIPR 1.0, which knows nothing of this package and believes no line of a file.

A file states a linear model over integers and reals, a relation to prove about its optimum, solutions, and derived constraints, each with a
reason. Constraints are counted from 0 on, those of the model first. What a reason has to show:

    asm                       nothing: the constraint is assumed, and what is derived from it holds under it
    lin  p  i1 t1 ... ip tp   sum of t * constraint, whose inequalities all point the same way, dominates the constraint
    rnd  p  i1 t1 ... ip tp   the same sum with its right side rounded, where all factors are whole and stand at integers
    uns  i1 l1 i2 l2          i1 and i2 both dominate it, and no integer point is between l1 (a x <= b) and l2 (a x >= b + 1)
    sol                       no solution is better than the best one of the file, which is all that the final bound may then say

A constraint dominates another where it has the same left side and no weaker limit, or is absurd (0 >= 1). The last one must rest on no
assumption and be absurd, or dominate the bound to prove. Names are not looked at. Everything is counted in exact fractions; files that
would take too long are refused.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from typing import Final

LARGEST: Final = 1 << 26
"""Bytes of a file."""
_MOST: Final = 2_000_000
"""Variables, constraints, terms, solutions or derivations."""
_DIGITS, _BITS = 1_000, 1 << 14
"""Signs of a number in a file, and bits of a sum of such."""
_WORK, _ASSUMED = 100_000_000, 10_000_000
"""Additions of whole numbers, of which fractions take more, and assumptions that are listed at once."""
_FRACTION = 20
"""Additions of whole numbers that take as long as one of fractions, at the least."""
_COMMENTS = 100
"""Lines of comment that are passed on."""
_COMMENT = re.compile(r"[^\S\n]*(%[^\n]*)?\n")
_VALUE = re.compile(r"[+-]?(?:[0-9]+(?:/[0-9]+)?|[0-9]+\.[0-9]*|\.[0-9]+)")
_INDEX = re.compile(r"-?[0-9]{1,9}")
_SENSES = {"L": -1, "E": 0, "G": 1}
_CUTOFF = -1
"""Stands among assumptions for the value of the best solution."""

Number = int | Fraction
Terms = Mapping[int, Number]


class MalformedError(ValueError):
    """A file that is not a valid certificate of this format, or too large, with the line of the fault."""

    def __init__(self, sentence: str, line: int = 1) -> None:
        self.line = line
        super().__init__(sentence)


class RefutedError(ValueError):
    """A certificate that does not prove what it claims."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a certificate proves."""

    variables: int
    constraints: int
    derived: int
    solutions: int
    minimise: bool
    infeasible: bool
    low: Number | None
    """No solution of a model that minimises is below this; of one that maximises, there is a solution as good."""
    high: Number | None
    comments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    """A constraint: -1 for at most, 0 for equal, 1 for at least, and what it was assumed under."""

    sense: int
    right: Number
    terms: Terms
    under: frozenset[int] = frozenset()

    @property
    def absurd(self) -> bool:
        return not self.terms and ((self.sense >= 0 and self.right > 0) or (self.sense <= 0 and self.right < 0))

    def dominates(self, other: "_Row") -> bool:
        if self.absurd:
            return True
        if self.terms is not other.terms and self.terms != other.terms:
            return False
        if other.sense == 0:
            return self.sense == 0 and self.right == other.right
        return self.sense in (0, other.sense) and (self.right - other.right) * other.sense >= 0


class _Reader:
    """The words of a file, one after another."""

    __slots__ = ("_at", "_text", "_words")

    def __init__(self, text: str, start: int) -> None:
        self._text, self._at = text, start
        self._words: Iterator[re.Match[str]] = re.compile(r"\S+", re.ASCII).finditer(text, start)

    def refuse(self, sentence: str) -> MalformedError:
        return MalformedError(sentence, self._text.count("\n", 0, self._at) + 1)

    def word(self, what: str) -> str:
        found = next(self._words, None)
        if found is None:
            self._at = len(self._text.rstrip())
            raise self.refuse(f"the file ends where {what} is expected")
        self._at = found.start()
        return found[0]

    def expect(self, *expected: str) -> str:
        named = " or ".join(expected)
        if (found := self.word(named)) not in expected:
            raise self.refuse(f"{_short(found)} stands where {named} is expected")
        return found

    def index(self, what: str, least: int, most: int) -> int:
        token = self.word(what)
        if not _INDEX.fullmatch(token) or not least <= int(token) <= most:
            raise self.refuse(f"{what}: {_short(token)} is no whole number from {least} to {most}")
        return int(token)

    def count(self, what: str) -> int:
        """A number of things, each of which has a word at least."""
        return self.index(f"number of {what}", 0, min(len(self._text), _MOST))

    def value(self, what: str) -> Number:
        return self.as_value(self.word(what), what)

    def as_value(self, token: str, what: str) -> Number:
        if len(token) > _DIGITS or not _VALUE.fullmatch(token):
            raise self.refuse(f"{what}: {_short(token)} is no number (digits, a fraction or a decimal of at most {_DIGITS} signs)")
        above, slash, below = token.partition("/")
        if slash and not below.strip("0"):
            raise self.refuse(f"{what}: {_short(token)} divides by 0")
        return _plain(Fraction(int(above), int(below)) if slash else Fraction(token) if "." in token else int(token))

    def terms(self, what: str, most: int, count: int | None = None) -> dict[int, Number]:
        """Indices from 0 on and a number for each, without those that are 0."""
        found = dict[int, Number]()
        for _ in range(self.count(what) if count is None else count):
            index = self.index(what, 0, most - 1)
            if index in found:
                raise self.refuse(f"{what}: {index} stands there twice")
            found[index] = self.value(what)
        return {index: value for index, value in found.items() if value}

    def end(self) -> None:
        if (found := next(self._words, None)) is not None:
            self._at = found.start()
            raise self.refuse(f"{_short(found[0])} stands after the last derivation")


def _short(token: str) -> str:
    return repr(token if len(token) <= 40 else f"{token[:37]}...")


def _plain(value: Number) -> Number:
    return value.numerator if value.denominator == 1 else value


def _comments(text: str) -> tuple[tuple[str, ...], int]:
    """The lines of comment that a file begins with, and where they end."""
    found, at = list[str](), 0
    while line := _COMMENT.match(text, at):
        found += [line[1][1:].strip()] if line[1] else []
        at = line.end()
    return tuple(found[:_COMMENTS]), at


def check(text: str) -> Checked:
    """What a certificate proves; a MalformedError or a RefutedError with a sentence where it proves nothing."""
    if len(text) > LARGEST:
        raise MalformedError(f"the certificate is larger than {LARGEST} bytes")
    comments, at = _comments(text)
    return _Check(_Reader(text, at)).all(comments)


@dataclass(slots=True)
class _Check:
    """The model of a certificate, and the constraints that hold so far."""

    read: _Reader
    variables: int = 0
    integers: frozenset[int] = frozenset()
    minimise: bool = True
    costs: Terms = field(default_factory=dict)
    rows: dict[int, _Row] = field(default_factory=dict)
    ends: dict[int, list[int]] = field(default_factory=dict)
    """Of a constraint those of which it is the last use."""
    best: Number | None = None
    """The value of the best solution."""
    work: int = 0
    assumed: int = 0

    def all(self, comments: tuple[str, ...]) -> Checked:
        read = self.read
        read.expect("VER")
        read.expect("1.0")
        read.expect("VAR")
        self.variables = read.count("variables")
        for _ in range(self.variables):
            read.word("the name of a variable")
        read.expect("INT")
        self.integers = frozenset(read.index("an integer variable", 0, self.variables - 1) for _ in range(read.count("integers")))
        read.expect("OBJ")
        self.minimise = read.expect("min", "max") == "min"
        self.costs = read.terms("the objective", self.variables)
        read.expect("CON")
        stated = read.count("constraints")
        if read.count("bounds") > stated:
            raise read.refuse("more constraints are bounds than there are")
        for index in range(stated):
            self.rows[index] = self._row()
        infeasible, low, high = self._claim()
        read.expect("SOL")
        solutions = read.count("solutions")
        for _ in range(solutions):
            self._solution(stated)
        self._check_value(low, high)
        read.expect("DER")
        derived = read.count("derivations")
        for index in range(stated, stated + derived):
            self._derivation(index, last=index == stated + derived - 1)
        read.end()
        self._proved(infeasible, low if self.minimise else high, self.rows.get(stated + derived - 1) if derived else None)
        return Checked(self.variables, stated, derived, solutions, self.minimise, infeasible, low, high, comments)

    def _spend(self, additions: int) -> None:
        self.work += additions
        if self.work > _WORK:
            raise self.read.refuse(f"up to here the certificate asks for more than {_WORK:,} additions, which is the limit")

    def _row(self) -> _Row:
        """A constraint in the words of the file."""
        read = self.read
        read.word("the name of a constraint")
        sense, right = _SENSES[read.expect(*_SENSES)], read.value("the right side of a constraint")
        token = read.word("OBJ or a number of terms")
        if token == "OBJ":
            return _Row(sense, right, self.costs)
        if not re.fullmatch("[0-9]{1,9}", token):
            raise read.refuse(f"{_short(token)} stands where OBJ or a number of terms is expected")
        return _Row(sense, right, read.terms("a variable of a constraint", self.variables, int(token)))

    def _claim(self) -> tuple[bool, Number | None, Number | None]:
        """Whether there shall be no solution, else between what the optimum shall be."""
        read = self.read
        read.expect("RTP")
        if read.expect("infeas", "range") == "infeas":
            return True, None, None
        low, high = read.word("a lower bound"), read.word("an upper bound")
        least, most = None if low == "-inf" else read.as_value(low, "RTP"), None if high == "inf" else read.as_value(high, "RTP")
        if least is not None and most is not None and least > most:
            raise RefutedError(f"the optimum is claimed to be from {_shown(least)} to {_shown(most)}, which no number is")
        return False, least, most

    def _solution(self, stated: int) -> None:
        """A solution that keeps the model."""
        read = self.read
        name = _short(read.word("the name of a solution"))
        values = read.terms("a variable of a solution", self.variables)
        if broken := [index for index, value in values.items() if index in self.integers and value.denominator != 1]:
            raise RefutedError(f"solution {name}: variable {broken[0]} is no integer")
        self._spend(stated)
        for index in range(stated):
            row = self.rows[index]
            off = self._sum((values.get(variable, 0), factor) for variable, factor in row.terms.items()) - row.right
            if (row.sense == 0 and off) or row.sense * off < 0:
                raise RefutedError(f"solution {name} breaks constraint {index}")
        value = self._sum((values.get(variable, 0), factor) for variable, factor in self.costs.items())
        if self.best is None or (value < self.best) == self.minimise:
            self.best = value

    def _sum(self, products: Iterable[tuple[Number, Number]]) -> Number:
        total: Number = 0
        for value, factor in products:
            total = self._added(total, value * factor)
        return _plain(total)

    def _added(self, total: Number, more: Number) -> Number:
        """The sum of two numbers, the work of which is counted."""
        total = total + more
        if type(total) is int:
            self._spend(1)
            return total
        bits = total.denominator.bit_length()
        if bits > _BITS:
            raise self.read.refuse(f"a sum has a denominator of more than {_BITS:,} bits, which is the limit")
        self._spend(_FRACTION + bits // 4)
        return total

    def _check_value(self, low: Number | None, high: Number | None) -> None:
        """A solution is as good as the claim says that the optimum is."""
        claimed = high if self.minimise else low
        if claimed is None:
            return
        if self.best is None or (self.best > claimed if self.minimise else self.best < claimed):
            best = "no solution is given" if self.best is None else f"the best solution has {_shown(self.best)}"
            raise RefutedError(f"the optimum is claimed to be {_shown(claimed)} or better, and {best}")

    def _derivation(self, index: int, last: bool) -> None:
        """A constraint with its reason, which must show it."""
        read, row = self.read, self._row()
        read.expect("{")
        match read.expect("asm", "lin", "rnd", "uns", "sol"):
            case "asm":
                under = frozenset({index})
            case "sol":
                under = self._cut_off(index, row)
            case "uns":
                under = self._joined(index, row)
            case name:
                found = self._combined(index, read.terms("a constraint of a sum", index))
                found = self._rounded(index, found) if name == "rnd" else found
                if not found.dominates(row):
                    raise RefutedError(f"constraint {index} does not follow from its sum")
                under = found.under
        read.expect("}")
        ends = read.index("the last use of a constraint", -1, 10**9 - 1)
        self._keep(index, _Row(row.sense, row.right, row.terms, under), ends, last)

    def _keep(self, index: int, row: _Row, ends: int, last: bool) -> None:
        """Hold a constraint until its last use, and let go of those whose last use this was."""
        self.rows[index] = row
        self.assumed += len(row.under)
        if self.assumed > _ASSUMED:
            raise self.read.refuse(f"more than {_ASSUMED:,} assumptions are listed at once, which is the limit")
        if ends >= 0 and not last:
            self.ends.setdefault(max(ends, index), []).append(index)
        for gone in self.ends.pop(index, ()):
            self.assumed -= len(self.rows.pop(gone).under)

    def _used(self, index: int, by: int) -> _Row:
        found = self.rows.get(index)
        if found is None:
            raise RefutedError(f"constraint {by} uses {index} after its last use")
        return found

    def _combined(self, index: int, times: Terms) -> _Row:
        """A sum of constraints, whose inequalities point the same way."""
        sense, right, terms = 0, list[tuple[Number, Number]](), dict[int, Number]()
        under = dict[int, frozenset[int]]()
        for used, factor in times.items():
            row = self._used(used, index)
            points = row.sense if factor > 0 else -row.sense
            if points and sense and points != sense:
                raise RefutedError(f"constraint {index} adds up inequalities that point both ways")
            sense = points or sense
            right.append((factor, row.right))
            for variable, part in row.terms.items():
                terms[variable] = self._added(terms.get(variable, 0), factor * part)
            if row.under:
                under[id(row.under)] = row.under
        nonzero = {variable: _plain(factor) for variable, factor in terms.items() if factor}
        return _Row(sense, self._sum(right), nonzero, self._union(*under.values()))

    def _union(self, *several: frozenset[int]) -> frozenset[int]:
        """All assumptions of several constraints."""
        if len(several) == 1:
            return several[0]
        self._spend(sum(map(len, several)))
        return frozenset().union(*several)

    def _rounded(self, index: int, row: _Row) -> _Row:
        """An inequality among integers, with the next whole number as its right side."""
        if not row.sense:
            raise RefutedError(f"constraint {index} rounds an equation")
        self._refuse_fractions(index, row.terms)
        return _Row(row.sense, ceil(row.right) if row.sense > 0 else floor(row.right), row.terms, row.under)

    def _refuse_fractions(self, index: int, terms: Terms) -> None:
        for variable, factor in terms.items():
            if factor.denominator != 1 or variable not in self.integers:
                raise RefutedError(f"constraint {index} takes variable {variable} as whole, of which it has {_shown(factor)}")

    def _joined(self, index: int, row: _Row) -> frozenset[int]:
        """What holds on both sides of a cut between which no integer point is."""
        first, first_side, second, second_side = (self.read.index("a constraint", 0, index - 1) for _ in range(4))
        self._spend(len(row.terms))
        for part in (first, second):
            if not self._used(part, index).dominates(row):
                raise RefutedError(f"constraint {index} does not follow from {part}")
        below, above = sorted((self._used(first_side, index), self._used(second_side, index)), key=lambda side: side.sense)
        sides = f"constraint {index}: {first_side} and {second_side}"
        self._spend(len(below.terms))
        if (below.sense, above.sense) != (-1, 1) or below.terms != above.terms or above.right != below.right + 1:
            raise RefutedError(f"{sides} are not a x <= b and a x >= b + 1")
        if below.right.denominator != 1:
            raise RefutedError(f"{sides} are cut at {_shown(below.right)}, which is not whole")
        self._refuse_fractions(index, below.terms)
        return self._union(self.rows[first].under - {first_side}, self.rows[second].under - {second_side})

    def _cut_off(self, index: int, row: _Row) -> frozenset[int]:
        """That a solution is better than the best one known."""
        if self.best is None:
            raise RefutedError(f"constraint {index} names the best solution, and none is given")
        integral = all(factor.denominator == 1 and variable in self.integers for variable, factor in self.costs.items())
        step = -1 if self.minimise else 1
        cutoff = _Row(step, self.best + (step if integral else 0), self.costs)
        if not cutoff.dominates(row):
            raise RefutedError(f"constraint {index} says more than that no solution is better than {_shown(self.best)}")
        return frozenset({_CUTOFF})

    def _proved(self, infeasible: bool, bound: Number | None, final: _Row | None) -> None:
        """The last constraint says what was to be proved, under no assumption."""
        if not infeasible and bound is None:
            return
        if final is None:
            raise RefutedError("nothing is derived, and something is to be proved")
        if left := sorted(final.under - {_CUTOFF}):
            raise RefutedError(f"the last constraint rests on the assumption {left[0]}")
        if infeasible:
            if not final.absurd or final.under:
                raise RefutedError("the last constraint does not say that there is no solution")
            return
        if not final.dominates(_Row(1 if self.minimise else -1, bound or 0, self.costs)):
            raise RefutedError(f"the last constraint does not say that no solution is better than {_shown(bound or 0)}")
        if final.under and self.best is not None and bound is not None and (bound - self.best) * (1 if self.minimise else -1) > 0:
            raise RefutedError("the proof leaves out what is no better than the best solution, and claims a bound beyond it")


def _shown(value: Number) -> str:
    text = str(value) if value.numerator.bit_length() < 1000 and value.denominator.bit_length() < 1000 else "a number of many digits"
    return text if len(text) <= 60 else f"{text[:57]}..."


def sentence(checked: Checked) -> str:
    """What is proved, in words."""
    if checked.infeasible:
        return "the integer model has no solution"
    bound, value = (checked.low, checked.high) if checked.minimise else (checked.high, checked.low)
    beyond, good = ("below", "at most") if checked.minimise else ("above", "at least")
    parts = [] if bound is None else [f"no solution of the integer model is {beyond} {_shown(bound)}"]
    parts += [] if value is None else [f"a solution has {good} {_shown(value)}"]
    return ", and ".join(parts) or "the solutions keep the integer model"
