"""Integer proofs as VIPR certificates: what a tree proves is what the checker of the format finds, and it is true."""

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from crossopt.formulation.certificate import (
    Branch,
    Certificate,
    Leaf,
    Split,
    Step,
    Whole,
    asks_for_one,
    bound_of_tree,
    excess,
    integer_form,
    parts_of,
)
from crossopt.formulation.model import ExactlyOne, Linear, Model, Variable
from crossopt.formulation.vipr import IntegerProof, completed, vipr_certificate
from crossopt.solvers.vipr import MalformedError, RefutedError, check
from tests.certificates import edited, is_true
from tests.extent import FULL, examples
from tests.formulation.models import models, optimum, solutions


def tree_of(model: Whole, draw: random.Random, deepest: int) -> list[Step]:
    """Branches and splits as they are drawn, and leaves with drawn multipliers; at a single point the row that it breaks."""
    steps = list[Step]()

    def grow(lows: tuple[int, ...], highs: tuple[int, ...], depth: int) -> None:
        cut = None if depth == deepest or lows == highs else drawn_cut(model, lows, highs, draw)
        if cut is None:
            steps.append(drawn_leaf(model, lows, highs, draw))
            return
        steps.append(cut)
        for part in parts_of(model, lows, highs, cut):
            grow(*part, depth + 1)

    grow(model.lows, model.highs, 0)
    return steps


def drawn_cut(model: Whole, lows: tuple[int, ...], highs: tuple[int, ...], draw: random.Random) -> Branch | Split:
    rows = [
        row
        for row, entries in enumerate(model.rows)
        if asks_for_one(model, row) and len(entries) > 1 and not any(lows[place] for place, _ in entries)
    ]
    if rows and draw.random() < 0.6:
        return Split(row := draw.choice(rows), draw.randint(1, len(model.rows[row]) - 1))
    place = draw.choice([place for place, low in enumerate(lows) if low < highs[place]])
    return Branch(place, draw.randint(lows[place], highs[place] - 1))


def drawn_leaf(model: Whole, lows: tuple[int, ...], highs: tuple[int, ...], draw: random.Random) -> Leaf:
    """Any multipliers; where a single row shows that a box is empty, that one."""
    for row in range(len(model.rows)):
        for times, side in ((1, model.least[row]), (-1, model.most[row])):
            leaf = Leaf((row,), (times,), empty=True)
            if side is not None and excess(model, lows, highs, leaf) > 0:
                return leaf
    if lows == highs:
        return Leaf()
    rows, times = draw.sample(range(len(model.rows)), draw.randint(0, len(model.rows))), []
    for row in rows:
        drawn = draw.randint(-9, 9) * draw.choice((1, 1 << 20))
        drawn = drawn if (model.least if drawn > 0 else model.most)[row] is not None else -drawn
        times.append(drawn)
    leaf = Leaf(tuple(rows), tuple(times), empty=True)
    return leaf if excess(model, lows, highs, leaf) > 0 else Leaf(tuple(rows), tuple(times))


def certified(model: Model, draw: random.Random, deepest: int) -> Certificate:
    steps = tuple(tree_of(integer_form(model), draw, deepest))
    divided = any(isinstance(step, Leaf) and not step.empty for step in steps)
    return Certificate(draw.choice((1, 3, 1 << 20)) if divided else 1, steps)


@settings(max_examples=150, deadline=None)
@given(models(), st.randoms(use_true_random=False), st.sampled_from([0, 1, 3, 60]))
def test_a_certificate_proves_what_its_tree_does_and_no_more_than_is_true(model: Model, draw: random.Random, deepest: int) -> None:
    tree, points = certified(model, draw, deepest), solutions(model)
    known = draw.choice(points) if points else None
    found = vipr_certificate(IntegerProof(model, tree, known), ["a tree", "with\nlines"])
    checked = check(found.text)
    best, bound = optimum(model), bound_of_tree(integer_form(model), tree)
    assert checked.comments == ("a tree", "with?lines")
    assert (checked.infeasible, checked.low, found.bound) == (bound is None, bound, bound)
    assert best is None or (bound is not None and model.sign * best >= bound)
    assert known is None or checked.high == found.value == model.sign * model.objective_value(known)
    assert deepest < 60 or found.bound == (None if best is None else model.sign * best)  # down to single points


@examples(25)
@given(models(), st.randoms(use_true_random=False), st.integers(0, 1 << 30))
def test_no_edit_of_a_certificate_proves_what_is_not_true(model: Model, draw: random.Random, seed: int) -> None:
    assume(len(integer_form(model).costs) <= 3)
    points = solutions(model)
    proof = IntegerProof(model, certified(model, draw, 2), draw.choice(points) if points else None)
    text = vipr_certificate(proof).text
    for edit in edited(text, seed, 60 if FULL else 20):
        try:
            found = check(edit)
        except (MalformedError, RefutedError):
            continue
        assert is_true(edit, found), edit


@settings(max_examples=40, deadline=None)
@given(models(), st.randoms(use_true_random=False))
def test_every_last_use_is_the_last(model: Model, draw: random.Random) -> None:
    """So that a checker may forget a constraint as soon as it may."""
    text = vipr_certificate(IntegerProof(model, certified(model, draw, 5))).text
    before, _, derivations = text.partition("DER ")
    first, uses, lasts = int(before.partition("CON ")[2].split()[0]), dict[int, int](), dict[int, int]()
    for place, line in enumerate(derivations.splitlines()[1:], first):
        reason, _, last = line.partition("{ ")[2].partition(" } ")
        words = reason.split()
        used = words[2::2] if words[0] in {"lin", "rnd"} else words[1:]
        uses |= {int(word): place for word in used}
        lasts[place] = int(last)
    assert lasts == {place: uses.get(place, -1) for place in lasts}


def test_a_split_that_is_split_again_is_proved() -> None:
    """Sums of zeroed variables overlap, and each has variables of its own reduced costs."""
    variables = tuple(Variable(f"x{place}") for place in range(5))
    model = Model(variables, (ExactlyOne("one", variables),), tuple(enumerate(variables, 3)))
    steps = (Split(0, 3), Split(0, 1), Leaf((0,), (3,)), Leaf((0,), (4,)), Split(0, 4), Leaf((0,), (6,)), Leaf((0,), (7,)))
    found = vipr_certificate(IntegerProof(model, Certificate(1, steps), dict.fromkeys(variables, 0) | {variables[0]: 1}))
    assert (found.bound, found.value) == (3, 3)
    assert check(found.text).low == 3


@pytest.mark.parametrize("minimise", [True, False])
def test_a_constant_is_part_of_the_objective(minimise: bool) -> None:
    x = Variable("the number", -2, 5)
    model = Model((x,), (Linear("even", ((2, x),), -3, 7),), ((3, x),), 100, minimise)
    found = vipr_certificate(IntegerProof(model, Certificate(1, (Leaf(),)), {x: 1}))
    assert (found.bound, found.value) == ((94, 103) if minimise else (-115, -103))
    checked = check(found.text)
    assert (checked.minimise, checked.low, checked.high) == (True, found.bound, found.value)


@pytest.mark.parametrize(
    "steps", [(), (Leaf(), Leaf()), (Branch(0, 9), Leaf(), Leaf()), (Split(0, 1), Leaf(), Leaf()), (Leaf((9,), (1,)),), (Leaf(empty=True),)]
)
def test_a_tree_of_another_model_is_refused(steps: tuple[Step, ...]) -> None:
    x = Variable("x", 0, 3)
    with pytest.raises(ValueError, match=r"tree|variable|row|step"):
        vipr_certificate(IntegerProof(Model((x,), (Linear("some", ((1, x),), low=1),), ((1, x),)), Certificate(1, steps)))


def test_a_solution_that_breaks_the_model_is_refused() -> None:
    x = Variable("x", 0, 3)
    model = Model((x,), (Linear("some", ((1, x),), low=1),), ((1, x),))
    with pytest.raises(ValueError, match="no solution of the model"):
        vipr_certificate(IntegerProof(model, Certificate(1, (Leaf(),)), {x: 0}))


def test_what_is_not_known_of_a_solution_follows_from_the_rows() -> None:
    """The pair of two choices, and the least number that is not below both costs."""
    a, b, c, d = (Variable(name) for name in "abcd")
    pairs, most = {(p, q): Variable(f"{p.name}{q.name}") for p in (a, b) for q in (c, d)}, Variable("most", 0, 20)
    rows: list[Linear | ExactlyOne] = [ExactlyOne("first", (a, b)), ExactlyOne("second", (c, d))]
    rows += [Linear(p.name, (*((1, y) for pair, y in pairs.items() if p in pair), (-1, p)), 0, 0) for p in (a, b, c, d)]
    rows += [Linear("cost", ((7, pairs[a, d]), (9, pairs[b, d]), (-1, most)), high=0)]
    model = integer_form(Model((a, b, c, d, *pairs.values(), most), tuple(rows), ((1, most),)))
    assert completed(model, {0: 1, 1: 0, 2: 0, 3: 1}) == [1, 0, 0, 1, 0, 1, 0, 0, 7]
    assert completed(model, {0: 1, 1: 1}) is None
