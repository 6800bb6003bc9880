"""Strategies of layers: published answers, equality with a look at every choice, monotony in budgets, and proofs that are refused."""

from dataclasses import replace
from itertools import pairwise, product
from math import inf
from pathlib import Path
from random import Random

import numpy as np
import pytest

from crossopt.formulation.layers import core as core_module
from crossopt.formulation.layers import frontier
from crossopt.formulation.layers.core import core_of, steps_of
from crossopt.formulation.layers.frontier import best_prices, dual_of, exchanged, is_within, least_totals, pareto_pass, totals_of
from crossopt.instances.errors import InstanceError
from crossopt.instances.layers.problem import Written, problem_of
from crossopt.instances.layers.question import LayersQuestion
from crossopt.instances.question import read, read_again, read_given
from crossopt.solvers.answer import Limits, Result, unwatched
from crossopt.solvers.family import solve
from crossopt.solvers.layers import engines
from crossopt.solvers.layers.engines import best_by_use
from crossopt.solvers.layers.family import FAMILY
from crossopt.solvers.layers.judge import BY_TREE, LayerChoices, LayerTotals, best_of_all, judge, prove
from crossopt.solvers.proofs import Priced, PricedTree, RecomputableBound
from tests.extent import FULL
from tests.samples import SAMPLES
from tests.solvers.layers.drawn import drawn
from tests.solvers.layers.hawq import document, question

Answered = Result[LayerChoices, LayerTotals]


def solved(asked: LayersQuestion, engine: str = "auto", gap: float = 0.0) -> Answered:
    return solve(FAMILY, asked, engine, Limits(gap=gap), unwatched)


def nothing() -> None:
    """No limit of time."""


@pytest.mark.data
@pytest.mark.parametrize("network", ["resnet18", "resnet50"])
@pytest.mark.parametrize("constraint", ["modelsize", "bops", "latency"])
@pytest.mark.parametrize("level", ["0.75", "0.5", "0.25"])
def test_published_bits_are_optimal_but_for_one_answer(network: str, constraint: str, level: str) -> None:
    """ResNet-50 within a quarter of the size has 0.0719 above all 8 bits, where 0.0801 are published."""
    asked = question(network, constraint, level)
    found = solved(asked)
    assert (found.status, found.proved) == ("OPTIMAL", True)
    assert not prove(asked, found, unwatched).refused
    assert found.answer is not None
    bits = "".join(name[-1] for name in found.answer.strategies)
    key = (network, constraint, float(level))
    published = {(one["network"], one["constraint"], float(one["level"])): one for one in document()["answers"]}.get(key)
    if published is None:
        return  # proved all the same
    assert found.value == pytest.approx(float(published["optimal_objective"]), rel=1e-12)
    assert (bits == published["published_bits"]) is published["optimal_is_published"]
    if key == ("resnet50", "modelsize", 0.25):
        uniform = judge(asked, LayerChoices(("int8",) * len(bits))).value
        theirs = judge(asked, LayerChoices(tuple(f"int{one}" for one in published["published_bits"])))
        assert theirs.accepted
        assert (round(found.value - uniform, 4), round(theirs.value - uniform, 4)) == (0.0719, 0.0801)


@pytest.mark.parametrize("start", range(10))
def test_drawn_questions_have_the_best_of_all_choices(start: int) -> None:
    infeasible = 0
    for seed in range(start, 500 if FULL else 160, 10):
        asked = drawn(seed)
        value, _ = best_of_all(asked)
        found = solved(asked)
        assert found.value == (None if value == inf else value), asked.name
        assert found.status == ("INFEASIBLE" if value == inf else "OPTIMAL"), asked.name
        proved = prove(asked, found, unwatched)
        assert (proved.refused, proved.unverified) == ((), False), asked.name
        infeasible += value == inf
    assert infeasible


def test_wide_fronts_whose_bounds_leave_variables_out_have_the_best_of_all_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of at most two combinations, in place of 65,536, leave out most variables of a graph."""
    monkeypatch.setattr(core_module, "MOST_KEYS", 2)
    wide = 0
    for seed in range(500 if FULL else 80):
        asked = drawn(seed)
        core = core_of(asked.problem)
        steps = steps_of(core)
        every = [totals_of(core, choice) for choice in product(*(range(len(names)) for names in core.strategies))]
        costs = [totals[0] for totals in every if is_within(core, totals)]
        assert dual_of(core, steps, [0.5] * len(core.limits)).bound <= min(costs, default=inf)
        assert all(least <= min(column) for least, column in zip(least_totals(core, steps), zip(*every, strict=True), strict=True))
        found = solved(asked)
        assert found.value == (asked.problem.amount(0, min(costs)) if costs else None), asked.name
        assert found.status == ("OPTIMAL" if costs else "INFEASIBLE"), asked.name
        assert not prove(asked, found, unwatched).refused, asked.name
        wide += any(len(step.known) < len(step.sizes) for step in steps)
    assert wide > 20


@pytest.mark.parametrize("between", ["[]", "[first]", "[first, second, third]", "first"])
def test_a_link_has_two_ends(between: str, tmp_path: Path) -> None:
    text = SAMPLES["layers"].texts[0].replace("between: [first, second]", f"between: {between}")
    with pytest.raises(InstanceError, match=r"links\[0\].between: a list of 2 values is needed, this has [013]"):
        read_again({"text": text, "source": "question.yaml", "settings": []}, "layers")
    edges = f"kind: sharding\nnodes: {{first: {{costs: [1]}}, second: {{costs: [1]}}}}\nedges: [{{between: {between}, costs: [[1]]}}]\n"
    (tmp_path / "edges.yaml").write_text(edges, encoding="utf-8")
    with pytest.raises(InstanceError, match=r"edges\[0\].between: a list of 2 values is needed, this has [013]"):
        read(tmp_path / "edges.yaml")


def test_figures_that_no_total_has_beside_others_are_refused() -> None:
    """Else a budget of 7000.00000002 would refuse the layer of 2e-08 beside 7000, where another strategy takes 4e9."""
    layers = "{a: {strategies: {x: {quality: 4e9}, y: {quality: 7000}}}, b: {strategies: {x: {quality: 2e-08}}}}"
    text = f"kind: layers\nobjective: quality\nbudgets: {{quality: 7000.00000002}}\nlayers: {layers}\n"
    with pytest.raises(InstanceError, match=r"figures of quality from 2.0e-08 to totals of 4.0e\+09 are more than 15 digits apart"):
        read_again({"text": text, "source": "question.yaml", "settings": []}, "layers")
    nearer = read_again({"text": text.replace("4e9", "4e6"), "source": "question.yaml", "settings": []}, "layers")
    assert solve(FAMILY, nearer, "auto", Limits(), unwatched).value == 7000.00000002


def test_totals_beyond_any_number_are_refused() -> None:
    layer = "{strategies: {x: {quality: 1e308, size: 3 kB}, y: {quality: 0.5, size: 20 kB}}}"
    text = f"kind: layers\nobjective: quality\nbudgets: {{size: 20 kB}}\nlayers: {{a: {layer}, b: {layer}}}\n"
    with pytest.raises(InstanceError, match=r"the greatest figures of quality add up to 2.0e\+308"):
        read_again({"text": text, "source": "question.yaml", "settings": []}, "layers")


def test_a_gap_is_proved_by_a_bound_within_it() -> None:
    for seed in range(40):
        found, best = solved(drawn(seed), gap=0.2), solved(drawn(seed))
        if best.value is None:
            continue
        assert found.value is not None and found.bound is not None
        assert found.bound <= best.value <= found.value
        assert found.bound >= 0.8 * found.value
        assert not prove(drawn(seed), found, unwatched).refused


def with_limits(asked: LayersQuestion, limits: tuple[int | None, ...]) -> LayersQuestion:
    return replace(asked, problem=replace(asked.problem, limits=limits))


def test_more_of_a_budget_costs_no_more() -> None:
    for seed in range(60):
        asked = drawn(seed)
        limits = asked.problem.limits
        more = with_limits(asked, tuple(None if one is None else one + one // 3 + 1 for one in limits))
        values = [inf if one.value is None else one.value for one in (solved(asked), solved(more))]
        assert values[1] <= values[0], asked.name


def test_ties_cost_no_less_than_their_layers_apart() -> None:
    for seed in range(60):
        asked = drawn(seed)
        apart = replace(asked, problem=replace(asked.problem, ties=()))
        values = [inf if one.value is None else one.value for one in (solved(apart), solved(asked))]
        assert values[0] <= values[1], asked.name


def test_bounds_of_any_prices_are_below_every_choice_within_the_budgets() -> None:
    random = Random(3)
    for seed in range(80):
        core = core_of(drawn(seed).problem)
        steps = steps_of(core)
        best = [totals_of(core, choice) for choice in product(*(range(len(names)) for names in core.strategies))]
        costs = [totals[0] for totals in best if is_within(core, totals)]
        for _ in range(5):
            prices = [random.choice((0.0, 0.1, 1.0, 7.5)) for _ in core.limits]
            assert dual_of(core, steps, prices).bound <= min(costs, default=inf)
            aim = random.choice((inf, min(costs, default=0) + 1, min(costs, default=5)))
            found = pareto_pass(core, steps, prices, float(aim), nothing)
            below = [cost for cost in costs if cost < aim]
            assert found.cost == (min(below) if below else None), seed


def test_prices_of_one_budget_are_the_best_there_are() -> None:
    """No price on a fine grid has a higher bound."""
    for seed in range(60):
        core = core_of(drawn(seed).problem)
        if len(core.limits) != 1:
            continue
        steps = steps_of(core)
        if not any(is_within(core, totals_of(core, c)) for c in product(*(range(len(names)) for names in core.strategies))):
            continue
        _, best, _ = best_prices(core, steps, nothing)
        grid = max(dual_of(core, steps, [price / 16.0]).bound for price in range(200))
        assert best.bound >= grid - 1e-6 * max(abs(grid), 1.0), seed


def test_prices_of_two_budgets_are_the_best_there_are() -> None:
    """No pair of prices on a grid has a higher bound."""
    seen = 0
    for seed in range(300 if FULL else 100):
        core = core_of(drawn(seed).problem)
        if len(core.limits) != 2:
            continue
        steps = steps_of(core)
        if not any(is_within(core, totals_of(core, c)) for c in product(*(range(len(names)) for names in core.strategies))):
            continue
        _, best, _ = best_prices(core, steps, nothing)
        grid = max(dual_of(core, steps, [one / 4.0, other / 4.0]).bound for one in range(24) for other in range(24))
        assert best.bound >= grid - 1e-6 * max(abs(grid), 1.0), seed
        seen += 1
    assert seen > (10 if FULL else 3)


def test_choices_by_use_are_the_best_within_their_own_use() -> None:
    seen = 0
    for seed in range(120):
        asked = drawn(seed)
        core = core_of(asked.problem)
        if len(core.limits) != 1:
            continue
        every = [totals_of(core, choice) for choice in product(*(range(len(names)) for names in core.strategies))]
        place = next(place for place, limit in enumerate(asked.problem.limits) if limit is not None)
        known = {(asked.problem.amount(place, use), asked.problem.amount(0, value)) for value, use in every}
        found = best_by_use(asked)
        assert found == tuple(sorted(found))
        for use, value in found:
            assert (use, value) in known, seed
            assert value == min(other for limit, other in known if limit <= use), seed
        seen += len(found)
    assert seen > 100


def test_exchanges_end_within_the_budgets_and_cost_no_more() -> None:
    random, gained = Random(5), 0
    for seed in range(80):
        core = core_of(drawn(seed).problem)
        every = list(product(*(range(len(names)) for names in core.strategies)))
        within = [choice for choice in every if is_within(core, totals_of(core, choice))]
        if not within or not core.limits:
            continue
        first, others = random.choice(within), random.sample(every, min(4, len(every)))
        found = exchanged(core, first, others, [1.0] * len(core.limits), nothing)
        totals = totals_of(core, found)
        assert is_within(core, totals), seed
        assert totals[0] <= totals_of(core, first)[0], seed
        gained += totals[0] < totals_of(core, first)[0]
    assert gained > 10


def chain(seed: int, scales: list[float], strategies: int, budgets: dict[str, float]) -> LayersQuestion:
    """Layers with figures of many digits at these scales, and a price where names of neighbours differ."""
    random, names = Random(seed), [f"n{number}" for number in range(len(scales))]
    layers = {
        name: {
            f"s{one}": {
                "time": scale * (random.uniform(1, 2) * 0.7**one),
                "quality": scale * (random.random() * 0.3 * one),
                "size": scale * (random.uniform(0.5, 1.5) * 100.0 / (1 + one)),
            }
            for one in range(strategies)
        }
        for name, scale in zip(names, scales, strict=True)
    }
    pairs = {(f"s{one}", f"s{other}"): {"time": 0.05} for one in range(strategies) for other in range(strategies) if one != other}
    links = [(one, other, pairs) for one, other in pairwise(names)]
    return LayersQuestion("chain", problem_of(Written(layers, links, "time", budgets)), budgets, {})


def long_chain(budgets: dict[str, float]) -> LayersQuestion:
    """100 layers of 6 strategies."""
    return chain(7, [1.0] * 100, 6, budgets)


@pytest.mark.parametrize(("budgets", "gap"), [({"quality": 20.0}, 1e-4), ({"quality": 20.0, "size": 2_100.0}, 2e-4)])
def test_a_long_chain_with_conversions_is_proved(budgets: dict[str, float], gap: float) -> None:
    asked = long_chain(budgets)
    found = solved(asked, gap=gap)
    assert found.proved
    assert found.details is not None and all(share > 0.98 for share in found.details.budget_shares.values())
    assert not prove(asked, found, unwatched).refused


def test_parts_with_prices_of_their_own_prove_what_one_price_leaves_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes of one state, so that choices are cut into parts; each change of the tree that leaves something out is refused."""
    monkeypatch.setattr(engines, "_MOST_OF_PART", 1)
    monkeypatch.setattr(engines, "_PARTS", 10_000)
    trees = 0
    for seed in range(120 if FULL else 14):
        asked = chain(seed, [1.0] * 6, 3, {"quality": 0.8, "size": 250.0})
        found, (value, _) = solved(asked), best_of_all(asked)
        assert found.value == (None if value == inf else value), seed
        assert (found.proved, prove(asked, found, unwatched).refused) == (True, ()), seed
        if not isinstance(found.proof, PricedTree):
            continue
        trees += 1
        assert found.bound is not None
        higher = replace(found, bound=found.bound * 1.01 + 1.0)
        assert "a choice costs" in prove(asked, higher, unwatched).refused[0]
        branches, prices = found.proof.branches, found.proof.prices
        for cut in (PricedTree(BY_TREE, branches, prices[1:]), PricedTree(BY_TREE, branches[:-1], prices[:-1])):
            assert prove(asked, replace(found, proof=cut), unwatched).refused
        strange = PricedTree(BY_TREE, ((10_000, 0), *branches[1:]), prices)
        assert "no branch of this part" in prove(asked, replace(found, proof=strange), unwatched).refused[0]
    assert trees > 3


def test_the_minima_of_two_uses_are_those_of_comparing_all_rows() -> None:
    numbers = np.random.default_rng(1)
    for _ in range(300):
        uses = numbers.integers(0, numbers.integers(2, 30), (numbers.integers(1, 60), 2))
        better = (uses[None, :, :] <= uses[:, None, :]).all(axis=2) & np.tri(len(uses), k=-1, dtype=bool)
        assert frontier._staircase(uses).tolist() == np.flatnonzero(~better.any(axis=1)).tolist()


def test_one_very_large_layer_leaves_no_gap_of_two_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_MOST_OF_PART", 300)
    asked = chain(0, [100.0] + [1.0] * 39, 6, {"quality": 40.0, "size": 8_000.0})
    core = core_of(asked.problem)
    _, dual, _ = best_prices(core, steps_of(core), nothing)
    found = solved(asked)
    assert found.proved and found.value is not None
    assert dual.bound / 10.0 ** asked.problem.decimals[0] < found.value * (1.0 - 1e-3)
    assert isinstance(found.proof, PricedTree)
    assert not prove(asked, found, unwatched).refused


def test_budgets_that_cannot_be_met_together_are_proved_so_by_prices() -> None:
    """Each of them alone can."""
    asked = long_chain({"quality": 6.6, "size": 2_330.0})
    for name in ("quality", "size"):
        assert solved(long_chain({name: asked.budgets[name]}), gap=0.01).value is not None
    found = solved(asked)
    assert found.reasons == ("the budgets are out of reach together, each of them alone is not",)
    assert not prove(asked, found, unwatched).refused


def test_claims_that_are_no_proof_are_refused() -> None:
    asked = drawn(12)
    found = solved(asked)
    assert found.value is not None and isinstance(found.proof, Priced)
    higher = replace(found, bound=found.value * 1.01)
    assert "a choice costs" in prove(asked, higher, unwatched).refused[0]
    none = replace(found, value=None, bound=None, answer=None, details=None)
    assert "something is within all budgets" in prove(asked, none, unwatched).refused[0]
    beyond = replace(found, bound=found.value + 1.0, proof=Priced(found.proof.by, (1e308,) * len(found.proof.prices)))
    assert "prices of budgets are needed, from 0 to 1e+280" in prove(asked, beyond, unwatched).refused[0]
    largest = replace(beyond, proof=Priced(found.proof.by, (1e280,) * len(found.proof.prices)))
    assert "a choice costs" in prove(asked, largest, unwatched).refused[0]
    for prices in ((-1.0,) * len(found.proof.prices), (float("nan"),) * len(found.proof.prices), (*found.proof.prices, 1.0)):
        assert prove(asked, replace(found, proof=Priced(found.proof.by, prices)), unwatched).refused
    assert len(found.proof.prices) > 0


def test_an_enumeration_is_carried_out_anew_and_refused_where_it_claims_too_much() -> None:
    asked = drawn(12)
    found = solved(asked, "exhaustive")
    assert found.value is not None and isinstance(found.proof, RecomputableBound)
    kept = prove(asked, found, unwatched)
    assert (kept.refused, kept.unverified) == ((), False)
    assert prove(asked, replace(found, bound=found.value * 1.01), unwatched).refused
    assert prove(asked, replace(found, value=None, bound=None, answer=None, details=None), unwatched).refused


@pytest.mark.parametrize("budget", [0.34, 1.0, 1e6, 1e300])
def test_totals_have_the_same_digits_whatever_the_budget(budget: float) -> None:
    layers = {"a": {"x": {"time": 0.1065065493129088}}, "b": {"x": {"time": 0.2130130986258177}}}
    problem = problem_of(Written(layers, [], "time", {"time": budget}))
    question = LayersQuestion("budget", problem, {"time": budget}, {})
    found = solve(FAMILY, question, "auto", Limits(), unwatched)
    assert (found.value, found.status) == (0.3195196479387265, "OPTIMAL")
    assert not prove(question, found, unwatched).refused


def test_figures_that_are_decimals_are_exact_and_others_have_sixteen_digits() -> None:
    layers = {"a": {"x": {"time": 0.1, "size": 3.0}, "y": {"time": 0.3, "size": 1.0}}, "b": {"x": {"time": 0.2, "size": 1.0 / 3.0}}}
    problem = problem_of(Written(layers, [], "time", {"size": 3.4}))
    assert problem.decimals[0] == 1
    assert [table[:, 0].tolist() for table in problem.uses] == [[1, 3], [2]]
    assert problem.amount(0, 3) == 0.3
    place = problem.decimals[1]
    assert problem.uses[1][0, 1] == -(-(10**place) // 3)  # upwards
    assert problem.limits[1] == 34 * 10 ** (place - 1)
    assert problem.units_from(0.3) == 3
    assert problem.units_from(0.25) == 3
    assert problem.units_from(inf) is None


def test_a_budget_of_exactly_what_another_objective_found_keeps_that_answer() -> None:
    text = """\
kind: layers
objective: %s
layers:
  a: {strategies: {slow: {time: 3.3333333333333335 ms, energy: 0.3333333333333333 J}, fast: {time: 1.1111111111111112 ms, energy: 1 J}}}
  b: {strategies: {slow: {time: 7.7777777777777777 ms, energy: 0.1428571428571429 J}, fast: {time: 6.6666666666666667 ms, energy: 7 J}}}
"""
    for first, other, unit in (("time", "energy", "s"), ("energy", "time", "J")):
        least = solved(read_given(text % first, "layers"))
        limited = solved(read_given(text % other, "layers", (f"budgets.{first}={least.value!r} {unit}",)))
        assert limited.details is not None
        assert limited.details.totals[first] == least.value
