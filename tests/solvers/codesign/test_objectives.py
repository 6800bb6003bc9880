"""Every objective: engines agree on it, limits on the step time are kept, and fronts are fronts."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from crossopt.crossflow.hardware import variants_of
from crossopt.crossflow.plan import Plan, Plans, plan_at, table
from crossopt.instances.codesign.instance import FreeHardware, Goal, Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import devices, hardware_points, plan_blocks
from crossopt.instances.errors import InstanceError
from crossopt.reports.cli import main
from crossopt.reports.render.terminal import terminal
from crossopt.reports.sheets.front import front_sheet
from crossopt.reports.sheets.sheet import Bound, Column, Table
from crossopt.solvers.answer import unwatched
from crossopt.solvers.codesign import exhaustive
from crossopt.solvers.codesign.answer import Candidate, DesignResult, design_of
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.boxes.search import reread, search
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.codesign.judge import verify
from crossopt.solvers.codesign.objective import OBJECTIVES, spent
from crossopt.solvers.fronts import Front, front
from crossopt.solvers.proofs import Enumerated
from tests.extent import some
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import answered, checked
from tests.solvers.codesign.plain_prices import designs_of
from tests.solvers.codesign.questions import TINY_FREE, ask, random_question
from tests.solvers.codesign.test_fronts import FIXED
from tests.solvers.codesign.wide_questions import wide_text

TINY = str(INSTANCES / "tiny.yaml")
NEW = ("rated_energy_per_token", "die_area", "power")


def auto(instance: Instance) -> DesignResult:
    return answered(instance, "auto")


def timed(instance: Instance, share: float) -> Instance:
    """The question with a limit on the step time, between the least and a multiple of it."""
    least = exhaustive.search(replace(instance, objective="step_time"), unwatched).value
    return instance if least is None else replace(instance, budget=replace(instance.budget, step_time=least * share))


@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 6), marks=pytest.mark.slow)], ids=["some", "more"])
def test_boxes_and_enumeration_agree_on_every_objective_with_a_limit_on_the_time(seeds: range) -> None:
    for seed in seeds:
        for objective in NEW:
            assert_boxes_and_enumeration_agree(objective, seed)


def assert_boxes_and_enumeration_agree(objective: str, seed: int) -> None:
    instance = timed(replace(random_question(seed), objective=objective), 1.0 + 0.15 * (seed % 4))
    one, other = search(instance, unwatched, Spend()), exhaustive.search(instance, unwatched)
    assert one.value == other.value
    if one.best is not None:
        verdict = verify(instance, one.best)
        assert verdict.accepted
        assert verdict.value == one.value
        assert verdict.details.step_time <= instance.budget.step_time


def test_a_limit_on_the_step_time_costs_what_the_least_time_is_above_it() -> None:
    """With the least step time as the limit there is a design, below it there is none, and the conflict says by how much."""
    instance = ask(TINY_FREE)
    least = exhaustive.search(instance, unwatched).value
    assert least is not None
    within = replace(instance, objective="power", budget=replace(instance.budget, step_time=least))
    assert auto(within).status == "OPTIMAL"
    beyond = auto(replace(within, budget=replace(within.budget, step_time=least / 2.0)))
    assert beyond.status == "INFEASIBLE"
    assert isinstance(beyond.proof, Enumerated)
    assert max(conflict.least_share or 0.0 for conflict in beyond.proof.conflicts if conflict.limit == "step time") == 2.0
    assert any(reason.startswith("step time: no design keeps it") and "needs is 2 times" in reason for reason in beyond.reasons)


def test_the_worst_step_time_is_that_of_the_slowest_constants() -> None:
    instance = read_instance(TINY, ("objective=worst_step_time",))
    result = answered(instance, "boxes")
    evaluation = result.details.evaluation
    assert evaluation is not None
    assert result.value == evaluation.likely_by_constants[1] > evaluation.step_time
    assert checked(result).accepted
    found = exhaustive.search(instance, unwatched)
    assert found.value == result.value
    assert found.best is not None
    design = design_of(instance, found.best)

    assert isinstance(design.plan, Plan)
    devices = (design.hardware, *variants_of(design.hardware))
    times = [float(spent(instance.workload, device, instance.cluster, table([design.plan])).step_time[0, 0]) for device in devices]
    assert max(times) == result.value


RENTED = ("objective=run_cost", "goal={tokens: 1e12, rent: 2.79 USD}")
FAILING = "cluster.failures={mean_time: 5000 h, checkpoint: 60 s, restart: 10 min}"
BOUGHT = "goal={tokens: 1e12, purchase: {device: 9000 USD, node: 4e4 USD, electricity: 0.1 USD/kWh, pue: 1.3}}"


@pytest.mark.parametrize("more", [(), (FAILING,), ("budget.energy_per_token=0.004 J",)], ids=["plain", "failing", "limited"])
@pytest.mark.parametrize("text", [TINY_FREE, FIXED], ids=["free chip", "fixed chip"])
def test_the_cost_of_a_run_is_the_least_of_all_designs_by_every_engine(text: str, more: tuple[str, ...]) -> None:
    """Against every design by its formulas alone: steps x step time / useful share x devices x rent."""
    question = ask(text, *RENTED, *more)
    least = min(one.figures["run_cost"] for one in designs_of(question))
    for engine in ("exhaustive", "boxes"):
        result = answered(question, engine)
        assert (result.status, result.value, result.bound, result.question["unit"]) == ("OPTIMAL", least, least, "USD")
        assert checked(result).refused == ()


def test_the_cost_of_bought_devices_is_what_is_paid_in_any_case_and_their_power() -> None:
    question = ask(FIXED, "objective=run_cost", BOUGHT)
    result = answered(question, "boxes")
    evaluation = result.details.evaluation
    seconds = -(-(10**12) // question.workload.tokens) * evaluation.step_time
    power = 8 * evaluation.power * 1.3 * seconds * 0.1 / 3.6e6
    assert result.value == pytest.approx(8 * 9000.0 + 4 * 4e4 + power, rel=1e-12)
    assert checked(result).refused == ()


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 12), marks=pytest.mark.slow)], ids=["some", "more"])
def test_boxes_and_enumeration_agree_on_the_cost_of_a_run(seeds: range) -> None:
    for seed in seeds:
        drawn = random_question(seed)
        goal = Goal(1e12, int(drawn.workload.tokens), drawn.cluster.devices, rent=1.0 + seed / 7.0, lasting=1.0 - 0.03 * (seed % 3))
        instance = replace(drawn, objective="run_cost", goal=goal)
        one, other = search(instance, unwatched, Spend()), exhaustive.search(instance, unwatched)
        assert one.value == other.value
        if one.best is not None:
            assert verify(instance, one.best).value == one.value
            assert reread(instance, one.cuts, one.value or 0.0).faults == ()


def test_a_forged_cost_or_a_bound_above_the_least_cost_is_refused() -> None:
    question = ask(FIXED, *RENTED, "choices.microbatch=1", "choices.recompute=full")
    result = answered(question)
    assert result.value is not None
    cheaper = replace(result, value=result.value * 0.99, bound=result.value * 0.99)
    assert any("value" in fault for fault in checked(cheaper).refused)
    every = answered(ask(FIXED, *RENTED))
    assert every.value is not None and every.value < result.value
    worse = replace(result, question=every.question)
    assert checked(worse).refused, "a dearer design with a proof that it is the best"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("objective=run_cost", "goal=null"), "objective: what a run costs needs its tokens and a rent (add goal: {tokens: 15e12})"),
        (("budget.run_cost=5 USD", "goal=null"), "budget.run_cost: what a run costs needs its tokens"),
        (("objective=run_cost", "goal={tokens: 1e9}", "hardware=trainium2"), "there is no list price of this device"),
        ((*RENTED, "cluster.failures={mean_time: 1 s, checkpoint: 60 s, restart: 10 min}"), "no time is left between failures"),
    ],
)
def test_a_cost_that_nothing_gives_is_asked_for(settings: tuple[str, ...], message: str) -> None:
    with pytest.raises(InstanceError) as refused:
        ask(FIXED, *settings)
    assert message in str(refused.value)


def test_a_limit_on_the_cost_is_the_budget_of_the_run() -> None:
    """Both leave the same designs to the least energy, one of which is dearer without."""
    free = answered(ask(FIXED, "objective=energy_per_token", RENTED[1]))
    cheapest = answered(ask(FIXED, *RENTED))
    assert free.value is not None and cheapest.value is not None
    limit = cheapest.value * 1.0001
    by_limit = answered(ask(FIXED, "objective=energy_per_token", RENTED[1], f"budget.run_cost={limit!r} USD"))
    by_goal = answered(ask(FIXED, "objective=energy_per_token", f"goal={{tokens: 1e12, rent: 2.79 USD, budget: {limit!r} USD}}"))
    assert by_limit.value == by_goal.value
    assert by_limit.details.evaluation.step_time <= cheapest.details.evaluation.step_time * 1.0001
    assert checked(by_limit).refused == ()


def test_a_robust_question_needs_a_device_with_several_sets_of_constants() -> None:
    with pytest.raises(
        InstanceError, match=r"needs a device that has them \(such as .* or technology: {base: accelerator-7nm, constants: "
    ):
        ask(TINY_FREE, "technology={base: accelerator-7nm, constants: ideal}", "objective=worst_step_time")
    ask(TINY_FREE, *ROBUST)
    with pytest.raises(InstanceError, match="without a section `efficiency`"):
        ask(TINY_FREE, *ROBUST, "efficiency={matrix: 0.7}")


ROBUST = ("objective=worst_step_time",)


@pytest.mark.thorough
def test_the_worst_step_time_of_a_free_chip_is_that_of_the_slowest_constants_on_the_best_chip_for_it() -> None:
    """Against every design by hand, each set of constants a question of its own."""
    instance = ask(TINY_FREE, *ROBUST)
    free = instance.hardware
    assert isinstance(free, FreeHardware)
    sets = [replace(instance, hardware=replace(free, efficiency=one, variants=())) for one in (free.efficiency, *free.variants)]
    points = [point for point in range(hardware_points(instance)) if not devices(instance, point, point + 1).unbuilt]
    plans = [plan_at(block, row) for block in plan_blocks(instance) if isinstance(block, Plans) for row in range(len(block))]
    worst = [
        max(verdict.details.step_time for verdict in verdicts)
        for point in points
        for plan in plans
        for verdicts in ([verify(asked, Candidate(point, plan)) for asked in sets],)
        if verdicts[0].accepted
    ]
    for engine in ("exhaustive", "boxes"):
        result = answered(instance, engine)
        assert (result.status, result.value, result.bound) == ("OPTIMAL", min(worst), min(worst))
        evaluation = result.details.evaluation
        assert evaluation is not None
        assert evaluation.likely_by_constants[1] == result.value > evaluation.step_time > evaluation.likely_by_constants[0]
        assert checked(result).accepted


def robust_question(seed: int) -> Instance:
    """A question with many choices of the chip, its technology with the constants of a device."""
    return ask(wide_text(seed, choices=6, options=3), "objective=worst_step_time")


@pytest.mark.thorough
@pytest.mark.parametrize("seeds", [some(range(5), 2), pytest.param(range(5, 10), marks=pytest.mark.slow)], ids=["some", "more"])
def test_boxes_and_enumeration_agree_on_the_worst_step_time_of_free_chips(seeds: Sequence[int]) -> None:
    free = [seed for seed in range(60) if "base: accelerator-7nm" in wide_text(seed, 6, 3)]
    for place in seeds:
        assert_they_agree_on_the_worst_step_time(free[place])


def assert_they_agree_on_the_worst_step_time(seed: int) -> None:
    instance = timed(robust_question(seed), 1.0 + 0.15 * (seed % 4))
    one, other = search(instance, unwatched, Spend()), exhaustive.search(instance, unwatched)
    assert one.value == other.value
    if one.best is not None:
        verdict = verify(instance, one.best)
        assert verdict.accepted
        assert verdict.value == one.value == verdict.details.likely[1]
        assert reread(instance, one.cuts, one.value or 0.0).faults == ()


def test_tokens_per_second_and_watt_are_the_reciprocal_of_the_rated_energy() -> None:
    result = answered(ask(TINY_FREE, "objective=rated_energy_per_token"), "boxes")
    evaluation = result.details.evaluation
    assert evaluation is not None
    assert result.value is not None
    assert 1.0 / result.value == pytest.approx(evaluation.tokens_per_second / (8 * evaluation.power), rel=1e-12)


def test_a_front_is_all_designs_that_nothing_beats_in_both_figures() -> None:
    """Against the whole list of designs, by hand."""
    instance = ask(TINY_FREE)
    points = [(point.first, point.second) for point in front(FAMILY, instance, "step_time", "power", 100, auto).points]
    figures = every_design(instance)
    best = {one for one in figures if not any(a <= one[0] and b <= one[1] and (a, b) != one for a, b in figures)}
    assert sorted(best) == points


def every_design(instance: Instance) -> set[tuple[float, float]]:
    """Step time and power of every design that keeps the limits."""
    points = range(hardware_points(instance))
    built = [point for point in points if not devices(instance, point, point + 1).unbuilt]
    plans = [plan_at(block, row) for block in plan_blocks(instance) if isinstance(block, Plans) for row in range(len(block))]
    verdicts = (verify(instance, Candidate(point, plan)) for point in built for plan in plans)
    return {(verdict.details.step_time, verdict.details.power) for verdict in verdicts if verdict.accepted}


@pytest.mark.slow
def test_a_thinned_front_has_its_ends_and_about_as_many_points_as_asked_for() -> None:
    instance = ask(TINY_FREE, "compute_power={from: 60 W, to: 220 W, step: 20 W}", "hbm_stacks=[1, 2, 4, 6]")
    whole, few = (
        [(point.first, point.second) for point in front(FAMILY, instance, "step_time", "power", points, auto).points]
        for points in (1000, 4)
    )
    assert few[0] == whole[0]
    assert few[-1] == whole[-1]
    assert set(few) <= set(whole)
    assert len(few) <= 5 < len(whole)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("step_time", "two different figures are needed, such as step_time,power (of step_time, time_per_sample, "),
        ("step_time,step_time", "two different figures are needed, such as step_time,power (of step_time, time_per_sample, "),
        ("step_time,devices", "'devices' is no figure of a front (there are step_time, time_per_sample, "),
        ("step_tim,power", "'step_tim' is no figure of a front (did you mean step_time? there are step_time, "),
    ],
)
def test_what_is_no_front_is_one_sentence(names: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["solve", TINY, "--pareto", names])
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("reason", "after"), [("time limit", 0), ("interrupted", 1), ("time limit", 2), ("time limit", 3), ("interrupted", 4)]
)
def test_a_front_that_is_stopped_says_so_and_claims_nothing(reason: str, after: int) -> None:
    """Whichever question on the way is stopped, with or without a design by then."""
    for value in (None, 1.0):
        asked: list[Instance] = []

        def stopping(one: Instance, asked: list[Instance] = asked, value: float | None = value) -> DesignResult:
            asked.append(one)
            result = auto(one)
            return replace(result, stopped=reason, proved=False, value=value) if len(asked) > after else result

        found = front(FAMILY, ask(TINY_FREE), "step_time", "power", 100, stopping)
        assert (found.stopped, found.proved) == (reason, False)
        least = 1 if after or value else 0  # the design with the least second figure, where there is no other
        assert len(found.points) == max((after if value else after - 1) // 2, least)


def test_every_point_of_a_front_can_be_checked_as_a_result_and_edits_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "front.json"
    question = tmp_path / "question.yaml"
    question.write_text(TINY_FREE, encoding="utf-8")
    assert main(["solve", str(question), "--pareto", "step_time,power", "--points", "3", "--out", str(target)]) == 0
    assert "each proved" in capsys.readouterr().out
    assert main(["check", str(target)]) == 0
    data = json.loads(target.read_text())
    data["points"][0]["power"] *= 0.9
    target.write_text(json.dumps(data))
    assert main(["check", str(target)]) == 30


def test_the_terminal_shows_the_bound_of_each_point_where_one_is_known() -> None:
    """No bound is rounded up, one that is the value is said to be, and without any there is no column."""
    asked = ask(TINY_FREE)
    found = front(FAMILY, asked, "step_time", "power", 3, auto)
    first = found.points[0]
    assert bounds_in(asked, found)[0].texts[0] == "= value"
    legend = "no design whose step time is that of the line or less has a lower power"
    assert legend in " ".join(terminal(front_sheet(asked, ("step_time", "power"), found)).split())
    lower = replace(first, result=replace(first.result, bound=0.9 * first.second))
    [column] = bounds_in(asked, replace(found, points=(lower, *found.points[1:]), proved=False))
    assert column.exact[0] == Bound(0.9 * first.second)
    assert float(column.texts[0].partition(" ")[0]) <= 0.9 * first.second
    without = tuple(replace(point, result=replace(point.result, bound=None)) for point in found.points)
    assert bounds_in(asked, replace(found, points=without, proved=False)) == []


def bounds_in(asked: Instance, found: Front) -> list[Column]:
    """The column of bounds, where there is one."""
    table = front_sheet(asked, ("step_time", "power"), found).sections[0].parts[0]
    assert isinstance(table, Table)
    return [column for column in table.columns if column.head == "lower bound"]


@pytest.mark.thorough
def test_a_time_limit_holds_for_the_whole_front(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "gpt3-175b-pathfinding-large", "--pareto", "step_time,power", "--time-limit", "0s"]) == 0
    assert "1 design, not proved (time limit)" in capsys.readouterr().out


def test_every_objective_has_a_unit() -> None:
    assert all(objective.unit for objective in OBJECTIVES.values())
