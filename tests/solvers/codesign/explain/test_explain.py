"""Explanations: a clash is one, each of its members is needed for it, and every figure is that of a question solved again."""

from dataclasses import replace
from functools import cache

import pytest

from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.reports.cli import main
from crossopt.reports.facts.building import Built
from crossopt.reports.sheets.codesign.explain import Why, answer_text
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.boxes.search import search
from crossopt.solvers.codesign.explain.conflict import BUDGETS, MEMORY, Member, clash, lift
from crossopt.solvers.codesign.explain.relief import Relief, Unopened, range_ends, relief, unopened, with_stops
from tests.once import once
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import answered
from tests.solvers.codesign.questions import TINY_FREE, ask, random_question

TINY = str(INSTANCES / "tiny.yaml")


def silent(progress: object) -> None:
    del progress


@once
def value_of(instance: Instance) -> float | None:
    return search(instance, silent, Spend()).value


def names(members: tuple[Member, ...] | None) -> list[str]:
    assert members is not None
    return [member.name for member in members]


def test_a_model_that_is_too_large_clashes_with_the_memory_alone() -> None:
    """GPT-3 175B on eight devices: 175e9 weights of at least 18 bytes with their optimizer state and gradients are 394 GB a device."""
    members = clash(read_instance(INSTANCES / "tiny.yaml", ("workload.model=gpt3-175b",)), silent)
    assert names(members) == [MEMORY]
    assert members is not None
    assert members[0].allowed == pytest.approx((79.1 * 2**30,))
    assert members[0].least == pytest.approx(175e9 * 18 / 8, rel=0.02)


def test_choices_that_keep_a_model_in_too_few_pieces_are_told_with_the_memory() -> None:
    settings = ("pipeline=[1, 2, 4]", "zero=0", "tensor=[1, 2, 4, 8]")
    members = clash(read_instance(INSTANCES / "gpt3-175b-1024xa100.yaml", settings), silent)
    assert names(members) == [MEMORY, "tensor", "pipeline", "zero"]


def test_a_budget_that_no_chip_keeps_is_told_with_the_least_that_one_takes() -> None:
    members = clash(ask(TINY_FREE, "budget.power=50 W"), silent)
    assert names(members) == ["power"]
    assert members is not None
    assert members[0].least is not None
    assert members[0].least > 50.0


SEEDS = (0, 1, 3, 5, 6, 8, 9, 11)
"""Each budget and the memory are too small in some of them."""


@cache
def hopeless(seed: int) -> Instance:
    """A random question whose budgets or memory are too small for any design, by turns."""
    question = random_question(seed)
    if seed % 2:
        return replace(question, hardware=replace(question.hardware, reserved_memory=1e12))
    return replace(question, budget=replace(question.budget, **{BUDGETS[seed // 2 % 3]: 1e-6}))


@once
def clash_in(instance: Instance) -> tuple[Member, ...] | None:
    return clash(instance, silent)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_lifting_any_member_of_a_clash_leaves_a_design_and_lifting_none_does_not(seed: int) -> None:
    instance = hopeless(seed)
    if value_of(instance) is not None:
        return
    members = clash_in(instance)
    if members is None:
        return
    everything = (MEMORY, *BUDGETS, *(name for name, _ in instance.plan_options))
    others = tuple(name for name in everything if name not in names(members))
    assert value_of(lift(instance, others)) is None, "the members alone leave no design"
    for name in names(members):
        assert value_of(lift(instance, (*others, name))) is not None, name


@pytest.mark.slow
def test_there_are_random_clashes_of_several_kinds() -> None:
    """The test above would say nothing without them."""
    found = [tuple(names(members)) for seed in SEEDS if value_of(hopeless(seed)) is None and (members := clash_in(hopeless(seed)))]
    assert len(found) >= 5
    assert len(set(found)) >= 2


def test_more_of_a_budget_is_worth_what_the_question_with_more_of_it_says() -> None:
    instance = ask(TINY_FREE, "budget.power=300 W")
    reliefs = {one.name: one for one in relief(instance, answered(instance), silent, Spend())}
    assert reliefs["power"].value == value_of(ask(TINY_FREE, f"budget.power={300.0 * 1.1!r} W"))


def test_a_limit_that_a_range_stops_says_so_with_what_both_together_buy() -> None:
    """A larger die alone holds no larger array than the range has, and a larger array alone finds no room."""
    model = "workload={model: gpt3-1.3b, global_batch: 64}"
    chosen = ("compute_area=[260 mm^2, 300 mm^2]", "compute_power=400 W", "hbm_stacks=4", "pipeline=1")
    chosen = (*chosen, "budget={die_area: 600 mm^2, power: 400 W}")
    instance = ask(TINY_FREE, model, *chosen)
    result = answered(instance)
    ends = range_ends(instance, result, silent, Spend())
    assert [(end.name, end.beyond, end.value) for end in ends] == [("compute_area", pytest.approx(3.4e-4), result.value)]
    alone = Relief("die_area", 600e-6, 660e-6, value_of(ask(TINY_FREE, model, *chosen, f"budget.die_area={600 * 1.1!r} mm^2")))
    assert alone.value == result.value
    [stopped] = with_stops(instance, result, (alone,), ends, silent, Spend())
    both = value_of(ask(TINY_FREE, model, *chosen, "compute_area=[300 mm^2, 340 mm^2]", f"budget.die_area={600 * 1.1!r} mm^2"))
    assert [(end.name, end.value) for end in stopped.stopped_by] == [("compute_area", both)]
    assert both is not None
    assert result.value is not None
    assert both < result.value


def test_what_is_worth_little_is_told_so_with_what_binds_beside_it() -> None:
    """A limit of which a tenth more saves 0.3 % does not bind, though nothing else of the limits does; ports of L2 that save 1.2 % do."""
    result = answered(ask(TINY_FREE))
    assert result.value is not None
    power, area = (Relief(name, 400.0, 440.0, share * result.value) for name, share in (("power", 0.997), ("die_area", 1.0)))
    building = ((Built("L2: 3 TB/s, of 3 TB/s", True, None), 0.012), (Built("clock: 1.4 GHz", True, None), 0.001))
    parts = (Unopened("registers_power", True, 0.99 * result.value), Unopened("l1_area", False, 0.999 * result.value))
    said = answer_text(result, Why((power, area), building=building, unopened=parts)).splitlines()
    assert said[2:5] == [
        "  binds beside: L2 of the technology (1.20%), registers power a tenth more (1.00%)",
        "  no limit binds by much",
        "  worth little: power (0.30% less by a tenth more)",
    ]
    assert "  L2: 3 TB/s, of 3 TB/s; binds: a tenth more 1.20% less" in said
    assert "  clock: 1.4 GHz; full, worth little (0.10%)" in said
    most, more = replace(power, value=0.97 * result.value), replace(area, value=0.98 * result.value)
    much = answer_text(result, Why((more, most), building=building)).splitlines()
    assert much[2:4] == ["  binding: power, die area", "  binds beside: L2 of the technology (1.20%)"]


def test_the_command_tells_a_clash_and_exits_as_infeasible(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", TINY, "--set", "workload.model=gpt3-175b"]) == 20
    out = capsys.readouterr().out
    assert "these clash" in out
    assert "memory: 79.1 GiB at most; what the others leave needs at least" in out


def test_the_command_tells_what_a_forced_choice_costs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", TINY, "--force", "tensor=2"]) == 0
    out = capsys.readouterr().out
    best, other = value_of(read_instance(INSTANCES / "tiny.yaml")), value_of(read_instance(INSTANCES / "tiny.yaml", ("tensor=2",)))
    assert best is not None
    assert other is not None
    assert f"{other / best - 1.0:.2%} more" in out


@pytest.mark.thorough
def test_a_part_that_nobody_opened_is_asked_with_a_tenth_more_and_less() -> None:
    """As if somebody had chosen so much of it; what is a choice, or follows from stacks, is not asked."""
    instance = ask(TINY_FREE)
    free = instance.hardware
    assert isinstance(free, FreeHardware)
    found = unopened(instance, answered(instance), silent, Spend())
    assert {one.name for one in found}.isdisjoint({*dict(free.options), "hbm_area", "hbm_power"})
    seen = [one for one in found if one.name == "node_network_power"]
    assert [one.more for one in seen] == [True, False]
    for one, share in zip(seen, (1.1, 0.9), strict=True):
        opened = ask(TINY_FREE, f"node_network_power={share * free.powers.intra * free.power!r} W")
        assert one.value == pytest.approx(value_of(opened), rel=1e-12)
    assert seen[0].value != seen[1].value
