"""Trees that prove a bound in whole numbers: by hand, against looking at everything, up to the largest numbers, and edited."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.formulation.certificate import Branch, Certificate, Leaf, Split, packed, proved_bound, unpacked
from crossopt.formulation.model import ExactlyOne, Linear, Model, Table, Variable, violations
from crossopt.instances.errors import FailedError
from crossopt.solvers.backends import whole
from crossopt.solvers.backends.whole import Traced, trace
from tests.formulation.models import models, optimum
from tests.solvers.backends import rough_work as rough

A, B, C = (Variable(name, 0, 3) for name in "abc")
ODD = Model((A, B), (Linear("2a + 2b >= 3", ((2, A), (2, B)), low=3),), ((1, A), (1, B)))
"""Least a + b is 2; with fractions it is 3/2, which one multiplier of 1/2 shows and which rounds up to 2."""
NOTHING = Model((A, B), (Linear("2a - 2b = 1", ((2, A), (-2, B)), 1, 1),), ((1, A),))
"""Fractions keep the row and integers do not."""


def by(*steps: Branch | Leaf, scale: int = 1) -> Certificate:
    return Certificate(scale, steps)


def test_a_multiplier_of_a_half_proves_what_its_sum_rounds_up_to() -> None:
    assert proved_bound(ODD, by(Leaf((0,), (1,)), scale=2)) == 2
    assert proved_bound(ODD, by(Leaf((0,), (1,)), scale=3)) == 1
    assert proved_bound(ODD, by(Leaf(), scale=7)) == 0


def test_a_multiplier_that_is_too_large_proves_less_and_never_more() -> None:
    """2 (2a + 2b) >= 6 leaves a + b - 4a - 4b, which is -18 at the most of both."""
    assert proved_bound(ODD, by(Leaf((0,), (2,)))) == 6 - 18


def test_a_branch_is_proved_part_by_part() -> None:
    """Where a <= 1, b is 1 at least; the least of both parts is the bound."""
    assert proved_bound(ODD, by(Branch(0, 1), Leaf((0,), (1,)), Leaf(), scale=2)) == 2
    assert proved_bound(ODD, by(Branch(0, 0), Leaf((0,), (1,)), Leaf(), scale=2)) == 1


ONE = tuple(Variable(f"one {place}") for place in range(4))
KNAPSACK = Model(
    (*ONE,),
    (ExactlyOne("one", ONE), Linear("room", ((5, ONE[0]), (4, ONE[1]), (3, ONE[2]), (1, ONE[3])), high=3)),
    tuple(zip((1, 2, 4, 6), ONE, strict=True)),
)
"""Of the first two, which are cheap, none fits; the relaxation mixes the first and the last."""


def test_a_row_that_asks_for_one_is_split_in_its_first_and_its_others() -> None:
    """Of the first two the least room is 4, more than 3; of the others the least cost is 4. What the row asks for is 1 times 4 there."""
    assert proved_bound(KNAPSACK, by(Split(0, 2), Leaf((0, 1), (4, -1), empty=True), Leaf((0,), (4,)))) == 4
    assert proved_bound(KNAPSACK, by(Split(0, 1), Leaf((0, 1), (5, -1), empty=True), Leaf((0,), (2,)))) == 2
    with pytest.raises(ValueError, match="does not show that no solution"):
        proved_bound(KNAPSACK, by(Split(0, 3), Leaf((0, 1), (4, -1), empty=True), Leaf((0,), (4,))))
    found = trace(KNAPSACK)
    assert (found.bound, found.value, found.values) == (4, 4, (0, 0, 1, 0))


@pytest.mark.parametrize(
    ("split", "words"),
    [
        (Split(1, 1), "no row 1 that asks for exactly one"),
        (Split(2, 1), "no row 2"),
        (Split(-1, 1), "no row -1"),
        (Split(0, 0), "cannot be split after 0 of its 4"),
        (Split(0, 4), "cannot be split after 4 of its 4"),
        (Split(0, -1), "cannot be split after -1"),
    ],
)
def test_other_splits_are_refused(split: Split, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        proved_bound(KNAPSACK, by(split, Leaf(), Leaf()))


def test_a_row_of_integers_or_of_other_factors_is_not_split() -> None:
    """Two of three may be chosen where each counts for a half, and a number of 1 may be 3 and -2."""
    wide = tuple(Variable(name, -2, 3) for name in "xy")
    for model in (
        Model(wide, (Linear("sum", tuple((1, one) for one in wide), 1, 1),), ((1, wide[0]),)),
        Model(ONE, (Linear("half", tuple((2, one) for one in ONE), 2, 2),), ((1, ONE[0]),)),
        Model(ONE, (Linear("one or two", tuple((1, one) for one in ONE), 1, 2),), ((1, ONE[0]),)),
    ):
        with pytest.raises(ValueError, match="no row 0 that asks for exactly one"):
            proved_bound(model, by(Split(0, 1), Leaf(), Leaf()))


def test_a_row_of_which_one_is_chosen_already_is_not_split() -> None:
    with pytest.raises(ValueError, match="cannot be split"):
        proved_bound(KNAPSACK, by(Branch(1, 0), Leaf(), Split(0, 2), Leaf(), Leaf()))


@st.composite
def choosing_models(draw: st.DrawFn) -> Model:
    """Two rows of choices that share two budgets, and a time above what both take: joint designs in small."""
    groups = [tuple(Variable(f"{name} {place}") for place in range(draw(st.integers(2, 5)))) for name in "ab"]
    every, figure = [one for group in groups for one in group], st.integers(0, 20)
    time = Variable("time", 0, 99)
    budgets = [Linear(f"budget {place}", tuple((draw(figure), one) for one in every), high=draw(figure)) for place in range(2)]
    costs = [Linear(f"cost {place}", (*((draw(figure), one) for one in every), (-1, time)), high=0) for place in range(2)]
    rows = (*(ExactlyOne(f"one {place}", group) for place, group in enumerate(groups)), *budgets, *costs)
    return Model((time, *every), rows, ((1, time),))


def by_hand(model: Model) -> int | None:
    """The least time, choice by choice."""
    one, other, *rows = model.constraints
    assert isinstance(one, ExactlyOne)
    assert isinstance(other, ExactlyOne)
    found = []
    for pair in product(one.variables, other.variables):
        sums = [sum(factor for factor, variable in row.terms if variable in pair) for row in rows if isinstance(row, Linear)]
        limits = [row.high for row in rows if isinstance(row, Linear)]
        if all(limit is not None and total <= limit for total, limit in zip(sums[:2], limits[:2], strict=True)):
            found.append(max(sums[2:]))
    return min(found, default=None)


@given(choosing_models(), st.data())
def test_splits_end_at_the_optimum_as_well_and_edits_prove_nothing_wrong(model: Model, data: st.DataObject) -> None:
    found, true = trace(model), by_hand(model)
    assert (found.bound, found.value, found.proved) == (true, true, True)
    assert proved_bound(model, unpacked(found.certificate.scale, packed(found.certificate))) == true
    try:
        bound = proved_bound(model, data.draw(edited(found)))
    except ValueError:
        return
    assert is_no_better(model, bound, true)


@given(choosing_models())
def test_a_claim_grows_rows_where_a_solution_says_too_much(model: Model) -> None:
    """The costs are left out at first, and asked for one by one."""
    first = replace(model, constraints=model.constraints[:-2])
    asked = list[Model]()

    def tighten(values: tuple[int, ...]) -> Model | None:
        if len(asked) == 2:
            return None
        asked.append(replace(model, constraints=model.constraints[: len(model.constraints) - 1 + len(asked)]))
        return asked[-1]

    true = by_hand(model)
    found = trace(first, 99 if true is None else true, tighten=tighten)
    assert found.proved
    last = asked[-1] if asked else first
    assert proved_bound(last, found.certificate) == found.bound
    assert is_no_better(model, found.bound, true)


def test_without_any_time_a_tree_proves_what_its_only_leaf_does() -> None:
    """Nothing was looked at, which is no proof that there is no solution."""
    found = trace(KNAPSACK, 4, seconds=-1.0)
    assert not found.proved
    assert found.bound == proved_bound(KNAPSACK, found.certificate) == 0


def test_a_search_that_dies_is_told_and_costs_its_tree_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole, "begin", rough.die)
    with pytest.raises(FailedError, match=r"highs .* crashed \(SIGKILL\)"):
        trace(KNAPSACK)
    monkeypatch.undo()
    assert trace(KNAPSACK).bound == 4


def test_a_model_that_does_not_grow_is_no_tighter_one() -> None:
    model = replace(ODD, constraints=())
    with pytest.raises(ValueError, match="by rows after its own"):
        trace(ODD, 3, tighten=lambda values: model)


def test_boxes_without_a_solution_are_shown_by_what_rows_ask_for() -> None:
    """Four values of a, and in each 2b is odd: where a = b or less at most -1, else 1 or more; cut at b too."""
    found = trace(NOTHING)
    assert found.bound is None
    assert found.proved
    assert proved_bound(NOTHING, found.certificate) is None
    assert len(found.certificate.steps) > 1


def test_the_bound_of_what_is_maximised_is_above() -> None:
    model = replace(ODD, constraints=(Linear("2a + 2b <= 3", ((2, A), (2, B)), high=3),), minimise=False, constant=10)
    assert proved_bound(model, by(Leaf((0,), (-1,)), scale=2)) == 11
    found = trace(model)
    assert (found.bound, found.value, found.proved) == (11, 11, True)


def test_a_row_of_no_variables_that_asks_for_one_is_shown_to_be_empty() -> None:
    model = Model((A,), (ExactlyOne("none", ()),), ((1, A),))
    assert proved_bound(model, by(Leaf((0,), (1,), empty=True))) is None


def test_tables_and_rows_with_conditions_are_read_in_their_linear_form() -> None:
    choice = Variable("choice")
    rows = (Table("pairs", (A, B), ((0, 3), (1, 1), (3, 0))), Linear("if", ((1, A),), low=2, given=choice))
    model = Model((A, B, choice), rows, ((2, A), (1, B), (-4, choice)))
    found = trace(model)
    assert (found.bound, found.value) == (2, 2)
    assert found.values is not None
    assert not violations(model, dict(zip(model.variables, found.values, strict=True)))


@pytest.mark.parametrize(
    ("certificate", "words"),
    [
        (by(Leaf(), scale=0), "a scale of 0 is none"),
        (by(Leaf(), scale=-1), "a scale of -1 is none"),
        (by(), "ends before 1 of its parts"),
        (by(Branch(0, 1), Leaf()), "ends before 1 of its parts"),
        (by(Leaf(), Leaf()), "more steps than its branches ask for"),
        (by(Branch(2, 1), Leaf(), Leaf()), "no variable 2"),
        (by(Branch(-1, 1), Leaf(), Leaf()), "no variable -1"),
        (by(Branch(0, 3), Leaf(), Leaf()), "leaves a part of it empty"),
        (by(Branch(0, -1), Leaf(), Leaf()), "leaves a part of it empty"),
        (by(Branch(0, 1), Branch(0, 2), Leaf(), Leaf(), Leaf()), "variable 0 is from 0 to 1"),
        (by(Leaf((1,), (1,))), "no row 1"),
        (by(Leaf((-1,), (1,))), "no row -1"),
        (by(Leaf((0,), (-1,))), "open on the side"),
        (by(Leaf((0,), ())), "each row needs its multiplier"),
        (by(Leaf(empty=True)), "does not show that no solution"),
        (by(Leaf((0,), (1,), empty=True)), "does not show that no solution"),
        (by(Leaf((0,), (10,), empty=True), scale=2), "does not show"),
        (by(*(Branch(0, 1),) * 6000), "is from 0 to 1"),
    ],
)
def test_what_is_no_tree_of_the_model_is_refused_in_words(certificate: Certificate, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        proved_bound(ODD, certificate)


def test_steps_are_packed_as_numbers_and_read_back() -> None:
    tree = by(Branch(1, 2), Leaf((0, 3), (-4, 5)), Split(0, 3), Leaf((0,), (7,), empty=True), Leaf(), scale=8)
    lines = ("1 2", "0 0 -4 3 5", "-1 3", "1 0 7", "0")
    assert packed(tree) == lines
    assert unpacked(8, lines) == tree


@pytest.mark.parametrize("line", ["1 2 3 4", "2 0 1", "-1"])
def test_other_numbers_are_no_steps(line: str) -> None:
    with pytest.raises(ValueError, match="no step of a tree"):
        unpacked(1, (line,))


@pytest.mark.parametrize(
    "line", ["", " ", "1  2", "1 2 ", "+1 2", "01 2", "1_0 2", "1.0 2", "1e3 2", "one", "\u0661 2", "1\t2", "-0 1", "9" * 5000]
)
def test_numbers_are_written_in_one_way(line: str) -> None:
    with pytest.raises(ValueError, match=r"no line of whole numbers|invalid literal|digits"):
        unpacked(1, (line,))


def is_no_better(model: Model, bound: int | None, true: int | None) -> bool:
    """Whether nothing is better than the bound, where None says that there is nothing."""
    return true is None if bound is None else true is None or model.sign * bound <= model.sign * true


@given(models())
def test_a_tree_ends_at_the_optimum_that_looking_at_everything_finds(model: Model) -> None:
    found, true = trace(model), optimum(model)
    assert found.proved
    assert (found.bound, found.value) == (true, true)
    assert proved_bound(model, unpacked(found.certificate.scale, packed(found.certificate))) == true


@given(models(), st.integers(1, 4))
def test_a_tree_that_was_stopped_proves_the_bound_that_it_tells(model: Model, most: int) -> None:
    found = trace(model, most=most)
    assert proved_bound(model, found.certificate) == found.bound
    assert is_no_better(model, found.bound, optimum(model))


@given(models(), st.integers(-2, 2))
def test_a_claim_is_proved_or_refuted_by_a_solution(model: Model, off: int) -> None:
    true = optimum(model)
    claim = (0 if true is None else true) + off
    found = trace(model, claim)
    assert found.proved == is_no_better(model, claim, true)
    if found.proved:
        assert found.bound is None or model.sign * found.bound >= model.sign * claim
        assert proved_bound(model, found.certificate) == found.bound
    else:
        assert found.value is not None
        assert model.sign * found.value < model.sign * claim


_EDGE = 2**53


@st.composite
def large_models(draw: st.DrawFn) -> Model:
    """Three choices and an integer whose costs are the largest there may be, or nearly, with rows that are small or as large."""
    variables = (*(Variable(f"choice {place}") for place in range(3)), Variable("number", -60, -60 + draw(st.integers(1, 3))))
    edge = st.integers(_EDGE - 3, _EDGE) | st.integers(-_EDGE, -_EDGE + 3) | st.integers(-3, 3)
    rows = [Linear("some", tuple((draw(st.integers(1, 3)), one) for one in variables[:3]), low=draw(st.integers(0, 4)))]
    terms = tuple((draw(edge), one) for one in variables)
    rows.append(Linear("large", terms, low=-draw(st.integers(0, 60 * _EDGE))))
    return Model(variables, tuple(rows), tuple((draw(edge), one) for one in variables), draw(edge), draw(st.booleans()))


@given(large_models())
def test_no_unit_is_lost_where_costs_add_up_to_a_trillion_million(model: Model) -> None:
    """Of numbers that no float tells from their neighbours."""
    found, true = trace(model), optimum(model)
    assert (found.bound, found.value, found.proved) == (true, true, True)
    assert proved_bound(model, found.certificate) == true


def test_a_single_point_is_a_solution_where_no_relaxation_proposes_it() -> None:
    """Of sums near 1e18 a float tells no unit from the next: cut down to points, the best one is known as what it is."""
    near = _EDGE - 3
    choices, number = tuple(Variable(f"choice {place}") for place in range(3)), Variable("number", -60, -59)
    rows = (Linear("large", ((near, choices[0]), (-near, choices[1]), (near, choices[2]), (1, number)), low=0),)
    cost = ((near, choices[0]), (1, choices[1]), (-near, choices[2]), (near, number))
    model = Model((*choices, number), rows, cost, near, minimise=False)
    found = trace(model)
    assert (found.bound, found.value, found.proved) == (optimum(model), optimum(model), True)


@st.composite
def edited(draw: st.DrawFn, found: Traced) -> Certificate:
    """A certificate with one thing changed: a figure, a step that is gone, twice there or swapped, or the scale."""
    rows, scale = [list(map(int, line.split())) for line in packed(found.certificate)], found.certificate.scale
    place = draw(st.integers(0, len(rows) - 1))
    match draw(st.sampled_from(("figure", "gone", "twice", "swapped", "scale"))):
        case "figure":
            at = draw(st.integers(0, len(rows[place]) - 1))
            rows[place][at] = draw(st.integers(-4, 4) | st.sampled_from((rows[place][at] * 2, -rows[place][at], 10**30, -(10**30))))
        case "gone":
            del rows[place]
        case "twice":
            rows.insert(place, rows[place])
        case "swapped":
            other = draw(st.integers(0, len(rows) - 1))
            rows[place], rows[other] = rows[other], rows[place]
        case _:
            scale = draw(st.sampled_from((0, -scale, 1, scale // 2, scale * 3)))
    return unpacked(scale, [" ".join(map(str, row)) for row in rows])


@given(models(), st.data())
def test_an_edited_tree_is_refused_or_proves_nothing_that_is_wrong(model: Model, data: st.DataObject) -> None:
    found, true = trace(model), optimum(model)
    try:
        bound = proved_bound(model, data.draw(edited(found)))
    except ValueError:
        return
    assert is_no_better(model, bound, true)


@given(models(), st.integers(1, 5), st.lists(st.integers(-9, 9), min_size=20, max_size=20))
def test_any_multipliers_prove_only_what_is_true(model: Model, scale: int, times: list[int]) -> None:
    """Also those of nobody: drawn at random, at every leaf of a cut in two."""
    one = next((place for place, variable in enumerate(model.variables) if variable.high > variable.low), None)
    for count, empty in product(range(4), (False, True)):
        leaf = Leaf(tuple(range(count)), tuple(times[:count]), empty)
        other = Leaf(tuple(range(count)), tuple(times[count : 2 * count]))
        steps = (leaf,) if one is None else (Branch(one, model.variables[one].low), leaf, other)
        try:
            bound = proved_bound(model, Certificate(scale, steps))
        except ValueError:
            continue
        assert is_no_better(model, bound, optimum(model))
