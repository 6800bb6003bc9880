"""Whole runs: the limits on the step time by hand, and what the answer tells of days and money."""

from dataclasses import replace
from math import inf, nextafter
from random import Random

import pytest

from crossopt.crossflow.goodput import Failures, goodput
from crossopt.instances.catalogue.registry import device, names
from crossopt.instances.codesign.instance import Goal, Purchase
from crossopt.instances.codesign.question import read_question
from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read_again
from crossopt.reports.sheets.codesign.design import run_figures
from crossopt.reports.shown import page_of, text_of
from tests.solvers.codesign.asking import answered, checked
from tests.solvers.codesign.several_questions import TWO

QUESTION = """
kind: codesign
workload: {model: gpt3-125m, global_batch: 64, sequence: 2048, precision: bf16}
cluster: {devices: 8}
hardware: a100-80g
choices: {tensor: [1, 2], microbatch: [1, 2]}
objective: step_time
"""


def asked(goal: str, *settings: str) -> dict[str, object]:
    return {"text": f"{QUESTION}goal: {goal}\n", "source": "question.yaml", "settings": list(settings)}


def test_limits_of_a_run_are_limits_on_the_step_by_hand() -> None:
    """131,072 tokens a step: a billion take 7,630 steps. A day leaves 86,400 / 7,630 s for each; 8 devices at 2 USD an hour cost 16 USD an
    hour, so that 100 USD pay for 22,500 s in all."""
    goal = Goal(1e9, 64 * 2048, 8, deadline=86400.0, budget=100.0, rent=2.0)
    assert goal.steps == 7630
    assert goal.step_time == 22500.0 / 7630
    assert Goal(1e9, 64 * 2048, 8, deadline=86400.0).step_time == 86400.0 / 7630
    assert goal.seconds(2.0) == 15260.0
    assert goal.money(2.0) == pytest.approx(16.0 * 15260.0 / 3600.0, rel=1e-15)
    assert Goal(1e9, 64 * 2048, 8).money(2.0) is None
    assert Goal(1e9, 64 * 2048, 8).step_time == float("inf")


@pytest.mark.parametrize("purchase", [None, Purchase(1000.0, 1e6, 4e3, 1e-7), Purchase(1000.0, power=4e3, electricity=1e-7)])
@pytest.mark.parametrize("lasting", [1.0, 0.93])
def test_limits_of_exactly_what_a_run_takes_keep_it_and_no_longer_step(purchase: Purchase | None, lasting: float) -> None:
    random = Random(1)
    for _ in range(200):
        step = random.uniform(0.01, 9.0)
        run = Goal(random.choice((1e9, 3.3e9)), 64 * 2048, 8, rent=random.choice((1.99, 3.3)), purchase=purchase, lasting=lasting)
        by_time, by_money = replace(run, deadline=run.seconds(step)), replace(run, budget=run.money(step) or inf)
        assert min(by_time.step_time, by_money.step_time) >= step
        assert run.seconds(nextafter(by_time.step_time, inf)) > by_time.deadline
        assert (run.money(nextafter(by_money.step_time, inf)) or inf) > by_money.budget


def test_bought_devices_are_paid_in_full_or_written_off_over_the_run_by_hand() -> None:
    """7,630 steps of 2 s are 15,260 s. Capital of 1,000 USD; 4 kW at 1e-7 USD a joule are 4e-4 USD a second, 6.104 USD for the run."""
    whole = Goal(1e9, 64 * 2048, 8, budget=1010.0, purchase=Purchase(1000.0, power=4e3, electricity=1e-7))
    assert whole.items(2.0) == (("purchase", 1000.0), ("electricity", pytest.approx(6.104, rel=1e-12)))
    assert whole.money(2.0) == pytest.approx(1006.104, rel=1e-12)
    assert whole.step_time == pytest.approx(10.0 / 4e-4 / 7630, rel=1e-12)
    shared = Goal(1e9, 64 * 2048, 8, budget=1010.0, purchase=Purchase(1000.0, lifetime=1e6, power=4e3, electricity=1e-7))
    assert shared.items(2.0) == (("write-off", pytest.approx(15.26, rel=1e-12)), ("electricity", pytest.approx(6.104, rel=1e-12)))
    assert shared.step_time == pytest.approx(1010.0 / (1e-3 + 4e-4) / 7630, rel=1e-12)
    unpowered = Purchase(1000.0)
    assert Goal(1e9, 64 * 2048, 8, budget=1010.0, purchase=unpowered).step_time == inf
    assert Goal(1e9, 64 * 2048, 8, budget=990.0, purchase=unpowered).step_time == 1e-30


def test_the_price_of_all_devices_is_a_sum_of_decimals() -> None:
    """12 x 9,368.6 + 2 x 744.8 USD are 113,912.8 USD, though not in floating point."""
    bought = "{tokens: 1e9, budget: 113912.8 USD, purchase: {device: 9368.6 USD, node: 744.8 USD}}"
    goal = read_question(asked(bought, "cluster={devices: 12, devices_per_node: 6}", "workload.global_batch=12")).goal
    assert goal is not None
    assert goal.step_time == inf


def test_a_purchase_is_that_of_all_devices_and_nodes_at_their_rated_power() -> None:
    """16 devices in two nodes of 8: 16 x 10,000 + 2 x 5,000 USD; 16 x 400 W x 1.5 (a100-80g is rated at 400 W)."""
    words = "purchase: {device: 10000 USD, node: 5000 USD, lifetime: 1 year, electricity: 0.36 USD/kWh, pue: 1.5}"
    instance = read_question(asked(f"{{tokens: 1e9, budget: 500 USD, {words}}}", "cluster.devices=16"))
    assert instance.goal is not None
    assert instance.goal.purchase == Purchase(170_000.0, 365.25 * 86400.0, 9600.0, pytest.approx(1e-7, rel=1e-12))
    result = answered(instance, "exhaustive")
    assert result.value is not None
    items = dict(instance.goal.items(float(result.value)))
    text = " ".join(text_of("codesign", instance, result).split())
    told = (
        f"{sum(items.values()):,.0f} USD of 500 USD · {items['write-off']:,.0f} USD write-off · {items['electricity']:,.0f} USD electricity"
    )
    assert told in text
    assert checked(result).refused == ()


def test_a_purchase_above_the_budget_leaves_no_design_and_that_is_proved() -> None:
    result = answered(read_question(asked("{tokens: 1e9, budget: 100 USD, purchase: {device: 10000 USD}}")), "exhaustive")
    assert (result.status, result.proved) == ("INFEASIBLE", True)
    assert checked(result).refused == ()


def test_a_question_has_the_tighter_of_its_own_limit_and_the_goals() -> None:
    for own, kept in (("1 ms", 1e-3), ("1 h", 86400.0 / 7630)):
        instance = read_question(asked("{tokens: 1e9, deadline: 1 d}", f"budget.step_time={own}"))
        assert instance.budget.step_time == kept


def test_the_answer_tells_days_and_money_and_can_be_checked() -> None:
    instance = read_question(asked("{tokens: 1e9, deadline: 1 d, rent: 2 USD, budget: 1000 USD}"))
    result = answered(instance, "exhaustive")
    assert result.value is not None
    assert instance.goal is not None
    minutes, money = instance.goal.seconds(float(result.value)) / 60.0, instance.goal.money(float(result.value))
    text = " ".join(text_of("codesign", instance, result).split())
    assert f"whole run 1B tokens in 7,630 steps · {minutes:.4g} minutes of 1 day · {money:,.0f} USD of 1,000 USD" in text
    page = page_of("codesign", instance, result, {})
    assert any(f"{minutes:.4g} minutes of 1 day" in str(section) for section in page.sections)
    assert checked(result).refused == ()


def test_days_and_money_have_the_range_of_the_step() -> None:
    """7,630 steps of a second and of two are 7,630 and 15,260 s; 8 devices at 2 USD an hour cost 33.91 and 67.82 USD for them."""
    goal = Goal(1e9, 64 * 2048, 8, deadline=10000.0, budget=60.0, rent=2.0)
    both = "likely 2.119 to 4.239 hours and 34 to 68 USD, at worst past the deadline and the budget (goal.by: slowest"
    assert run_figures(goal, 1.3, (1.0, 2.0))[2].startswith(both)
    kept = run_figures(replace(goal, deadline=20000.0, budget=70.0), 1.3, (1.0, 2.0))
    assert kept[2] == "likely 2.119 to 4.239 hours and 34 to 68 USD"
    assert len(run_figures(goal, 1.3, (1.3, 1.3))) == len(run_figures(goal, 1.3)) == 2


def test_a_deadline_is_held_by_the_slowest_constants_where_that_is_asked() -> None:
    """A deadline between the step by the central constants and that by the slowest is kept by one way of asking alone; and proved so."""
    free = answered(read_question(asked("{tokens: 1e9}")), "exhaustive")
    evaluation = free.details.evaluation
    assert evaluation is not None
    slowest = evaluation.likely[1]
    assert slowest > evaluation.step_time
    for share, status in ((0.99, "INFEASIBLE"), (1.01, "OPTIMAL")):
        goal = f"{{tokens: 1e9, deadline: {7630 * slowest * share} s, by: WAY}}"
        central, held = (read_question(asked(goal.replace("WAY", way))) for way in ("central", "slowest"))
        assert answered(central, "exhaustive").value == free.value
        results = [answered(held, engine) for engine in ("exhaustive", "boxes")]
        assert [result.proved for result in results] == [True, True]
        assert [result.value is None for result in results] == [status == "INFEASIBLE"] * 2
        assert all(checked(result).refused == () for result in results)


def test_the_slowest_constants_are_needed_where_they_are_asked_for() -> None:
    with pytest.raises(InstanceError, match=r"goal\.by: the worst of several sets of constants needs a device that has them"):
        read_question(asked("{tokens: 1e9, deadline: 1 d, by: slowest}", "efficiency={loss_passes: 12}"))


def test_the_slowest_constants_need_a_limit_to_hold() -> None:
    """A deadline, or a budget with a rent, is one; tokens alone are none."""
    with pytest.raises(InstanceError, match=r"goal\.by: the goal has no limit that the slowest constants could hold \(add `deadline`"):
        read_question(asked("{tokens: 1e9, by: slowest}"))
    for limit in ("deadline: 1 d", "budget: 100 USD, rent: 2 USD"):
        assert read_question(asked(f"{{tokens: 1e9, {limit}, by: slowest}}")).ceilings


FAILING = "cluster.failures={mean_time: 1000 h, checkpoint: 60 s, restart: 600 s}"


def test_deadlines_and_budgets_count_the_time_that_failures_take() -> None:
    """On 8 devices one fails in 125 h: the share of the time that lasts is the same for every plan, and shortens the longest step."""
    failing = read_question(asked("{tokens: 1e9, deadline: 1 d, rent: 2 USD}", FAILING))
    share = goodput(Failures(3.6e6, 60.0, 600.0), 8).share
    assert 0.95 < share < 0.99
    assert failing.goal is not None
    assert failing.goal.lasting == share
    assert failing.budget.step_time == failing.goal.step_time == 86400.0 / 7630 * share
    assert failing.goal.seconds(2.0) == 15260.0 / share
    assert failing.goal.money(2.0) == pytest.approx(16.0 * 15260.0 / 3600.0 / share, rel=1e-15)
    assert Goal(1e9, 64 * 2048, 8, deadline=86400.0, lasting=0.0).step_time == 1e-30
    assert Goal(1e9, 64 * 2048, 8, lasting=0.5).step_time == inf


def test_a_run_that_is_done_in_time_only_without_failures_has_no_design() -> None:
    without = answered(read_question(asked("{tokens: 1e9, deadline: 1 d}")), "exhaustive")
    assert without.value is not None
    tight = f"{{tokens: 1e9, deadline: {7630 * float(without.value) * 1.001} s}}"
    assert answered(read_question(asked(tight)), "exhaustive").value == without.value
    failing = read_question(asked(tight, FAILING))
    result = answered(failing, "exhaustive")
    assert (result.status, result.proved) == ("INFEASIBLE", True)
    assert checked(result).refused == ()
    longer = read_question(asked("{tokens: 1e9, deadline: 1 d}", FAILING))
    text = " ".join(text_of("codesign", longer, answered(longer, "exhaustive")).split())
    assert "failures counted, " in text


def test_a_deadline_that_nothing_keeps_is_proved_so() -> None:
    result = answered(read_question(asked("{tokens: 1e12, deadline: 1 h}")), "exhaustive")
    assert (result.status, result.proved) == ("INFEASIBLE", True)
    assert any(reason.startswith("step time: no design keeps it") for reason in result.reasons)


@pytest.mark.parametrize("engine", ["exhaustive", "boxes"])
def test_a_missed_goal_is_told_with_one_that_can_be_kept(engine: str) -> None:
    result = answered(read_question(asked("{tokens: 1e12, deadline: 1 h, rent: 2 USD, budget: 100 USD}")), engine)
    late, dear = result.notes
    assert late.startswith("deadline: the fastest design that keeps the other limits is done after ")
    assert dear.startswith("budget: the run of the fastest design that keeps the other limits costs ")
    enough = [part.split("(write ")[1].split(", or")[0] for part in (late, dear)]
    kept = read_question(asked(f"{{tokens: 1e12, rent: 2 USD, {', '.join(enough)}}}"))
    assert answered(kept, engine).value is not None
    assert checked(result).refused == ()
    text = " ".join(text_of("codesign", kept, result).split())
    assert late in text
    assert dear in text


def test_numbers_of_devices_that_miss_a_deadline_say_by_how_much() -> None:
    asks = read_again(asked("{tokens: 1e12, deadline: 1 h}", "cluster.devices=[4, 8]"), "codesign")
    result = answered(asks)
    text = " ".join(text_of("codesign", asks, result).split())
    assert [len(part.notes) for part in result.parts] == [1, 1]
    assert all(f"no design keeps every limit; {part.notes[0].partition(' (')[0]}" in text for part in result.parts)


def test_a_limit_on_the_step_that_is_missed_is_told_in_seconds() -> None:
    for engine in ("exhaustive", "boxes"):
        result = answered(read_question(asked("{tokens: 1e9}", "budget.step_time=1 us")), engine)
        assert [note.split(" takes ")[0] for note in result.notes] == ["step time: the fastest design that keeps the other limits"]
    both = read_question(asked("{tokens: 1e9, deadline: 1 h}", "workload.model=gpt3-175b"))
    assert answered(both, "boxes").notes == ("without a limit on the step time there is no design either",)


def test_the_smallest_cluster_that_is_done_in_time_is_found() -> None:
    document = asked("{tokens: 1e9, deadline: 1 h}", "cluster.devices=[1, 2, 4, 8]", "objective=devices")
    result = answered(read_again(document, "codesign"))
    assert result.answer is not None
    assert result.answer.devices > 1
    smaller = answered(read_question(asked("{tokens: 1e9, deadline: 1 h}", f"cluster.devices={result.answer.devices // 2}")), "exhaustive")
    assert smaller.value is None


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ("{deadline: 1 d}", "goal.tokens: this key is missing"),
        ("{tokens: 1e9, rent: 2 USD, purchase: {device: 9e3 USD}}", "goal.purchase: devices are rented or bought, here they are both"),
        ("{tokens: 1e9, purchase: {node: 9e3 USD}}", "goal.purchase.device: this key is missing"),
        ("{tokens: 1e9, budget: 5 USD}", "goal.budget: what a run costs needs the rent"),
        ("{tokens: 1e9, rent: 0 USD}", "goal.rent: zero is no figure to work with"),
        ("{tokens: 1e9, deadline: 0 d}", "goal.deadline: zero is no figure to work with"),
    ],
)
def test_a_goal_without_sense_is_refused(goal: str, message: str) -> None:
    with pytest.raises(InstanceError) as refused:
        read_question(asked(goal, "hardware=trainium2"))  # of which no rent is known
    assert message in str(refused.value)


def test_several_workloads_have_no_goal() -> None:
    with pytest.raises(InstanceError) as refused:
        read_again({"text": TWO + "\ngoal: {tokens: 1e9}\n", "source": "question.yaml", "settings": []}, "codesign")
    assert "goal: a whole run is one workload's" in str(refused.value)


def test_a_run_takes_the_list_price_of_its_device_where_the_question_gives_no_rent() -> None:
    listed = device("a100-80g").rent
    assert listed is not None
    plain = read_question(asked("{tokens: 1e9}")).goal
    assert plain is not None
    assert (plain.rent, plain.rent_source) == (listed.price, f"list price of {listed.month}: {listed.source}")
    assert plain.money(2.0) == pytest.approx(8 * listed.price * plain.seconds(2.0) / 3600.0, rel=1e-15)
    given = read_question(asked("{tokens: 1e9, rent: 2 USD}")).goal
    bought = read_question(asked("{tokens: 1e9, purchase: {device: 9e3 USD}}")).goal
    none = read_question(asked("{tokens: 1e9}", "hardware=trainium2")).goal
    assert [(goal.rent, goal.rent_source) for goal in (given, bought, none) if goal] == [(2.0, ""), (None, ""), (None, "")]
    limited = read_question(asked("{tokens: 1e9, budget: 100 USD}"))
    assert limited.budget.step_time == Goal(1e9, 64 * 2048, 8, budget=100.0, rent=listed.price).step_time


def test_an_answer_says_which_rent_it_counts_and_of_when() -> None:
    listed = device("a100-80g").rent
    assert listed is not None
    for goal, words in (("{tokens: 1e9}", f"list price of {listed.month}: {listed.source}"), ("{tokens: 1e9, rent: 2 USD}", "as given")):
        question = read_question(asked(goal))
        result = answered(question, "exhaustive")
        brief, full = (" ".join(text_of("codesign", question, result, verbose=verbose).split()) for verbose in (False, True))
        assert words in full
        assert f"at {question.goal.rent if question.goal else None:,.4g} USD/h" in brief


@pytest.mark.parametrize("name", names("hardware"))
def test_a_registered_rent_has_a_provider_and_a_month(name: str) -> None:
    listed = device(name).rent
    assert (listed is None) == (name in ("h20", "l4", "l40s", "trainium2", "rtx-4090", "rtx-pro-6000"))
    assert listed is None or (0.5 < listed.price < 20.0 and "2023-01" <= listed.month <= "2026-11" and listed.source)
