"""Explanations, deciding constants and near-optimal designs: each figure is that of a question solved again, or of counting."""

import json
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from crossopt.instances.catalogue.uncertain import Range
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.reports.cli import main
from crossopt.reports.facts.building import Built
from crossopt.reports.sheets.codesign.design import near_text
from crossopt.reports.sheets.codesign.explain import Terms, Why, answer_text
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.boxes.search import search
from crossopt.solvers.codesign.exhaustive import Found
from crossopt.solvers.codesign.exhaustive import search as exhaustive_search
from crossopt.solvers.codesign.explain import near_optimal as module
from crossopt.solvers.codesign.explain.conflict import BUDGETS, MEMORY, Member, UndecidedError, clash, lift
from crossopt.solvers.codesign.explain.deciding import Deciding, asked_by, deciding, moved_by, opened_in, value_of
from crossopt.solvers.codesign.explain.near_optimal import Known, Near, near_optimum
from crossopt.solvers.codesign.explain.relief import Relief, Unopened, range_ends, relief, unopened, with_stops
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.family import solve
from tests.every import every
from tests.once import once
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import answered
from tests.solvers.codesign.questions import GEMM, LSTM, TINY_FREE, ask, random_question

# Explanations: a clash is one, each of its members is needed for it, and every figure is that of a question solved again.

TINY = str(INSTANCES / "tiny.yaml")


@once
def explain_value_of(instance: Instance) -> float | None:
    return search(instance, unwatched, Spend()).value


def names(members: tuple[Member, ...] | None) -> list[str]:
    assert members is not None
    return [member.name for member in members]


def test_a_model_that_is_too_large_clashes_with_the_memory_alone() -> None:
    """GPT-3 175B on eight devices: 175e9 weights of at least 18 bytes with their optimizer state and gradients are 394 GB a device."""
    members = clash(read_instance(INSTANCES / "tiny.yaml", ("workload.model=gpt3-175b",)), unwatched)
    assert names(members) == [MEMORY]
    assert members is not None
    assert members[0].allowed == pytest.approx((79.1 * 2**30,))
    assert members[0].least == pytest.approx(175e9 * 18 / 8, rel=0.02)


def test_choices_that_keep_a_model_in_too_few_pieces_are_told_with_the_memory() -> None:
    settings = ("pipeline=[1, 2, 4]", "zero=0", "tensor=[1, 2, 4, 8]")
    members = clash(read_instance(INSTANCES / "gpt3-175b-1024xa100.yaml", settings), unwatched)
    assert names(members) == [MEMORY, "tensor", "pipeline", "zero"]


def test_a_host_without_room_clashes_with_offloading_and_nothing_is_warned_of() -> None:
    text = TINY_FREE.partition("technology:")[0] + "hardware: a100-80g\nchoices: {offload: [activations, all], data: divisors}\n"
    settings = ("cluster.host={memory: 1 MiB, bandwidth: 4 GB/s}", "workload.global_batch=16", "cluster.devices=4")
    members = clash(ask(text, *settings), unwatched)
    assert members is not None
    assert "offload" in {member.name for member in members}


def test_a_budget_that_no_chip_keeps_is_told_with_the_least_that_one_takes() -> None:
    members = clash(ask(TINY_FREE, "budget.power=50 W"), unwatched)
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
    return clash(instance, unwatched)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_lifting_any_member_of_a_clash_leaves_a_design_and_lifting_none_does_not(seed: int) -> None:
    instance = hopeless(seed)
    if explain_value_of(instance) is not None:
        return
    members = clash_in(instance)
    if members is None:
        return
    everything = (MEMORY, *BUDGETS, *(name for name, _ in instance.plan_options))
    others = tuple(name for name in everything if name not in names(members))
    assert explain_value_of(lift(instance, others)) is None, "the members alone leave no design"
    for name in names(members):
        assert explain_value_of(lift(instance, (*others, name))) is not None, name


@pytest.mark.slow
def test_there_are_random_clashes_of_several_kinds() -> None:
    """The test above would say nothing without them."""
    found = [tuple(names(members)) for seed in SEEDS if explain_value_of(hopeless(seed)) is None and (members := clash_in(hopeless(seed)))]
    assert len(found) >= 5
    assert len(set(found)) >= 2


def test_more_of_a_budget_is_worth_what_the_question_with_more_of_it_says() -> None:
    instance = ask(TINY_FREE, "budget.power=300 W")
    reliefs = {one.name: one for one in relief(instance, answered(instance), unwatched, Spend())}
    assert reliefs["power"].value == explain_value_of(ask(TINY_FREE, f"budget.power={300.0 * 1.1!r} W"))


def test_a_limit_that_a_range_stops_says_so_with_what_both_together_buy() -> None:
    """A larger die alone holds no larger array than the range has, and a larger array alone finds no room."""
    model = "workload={model: gpt3-1.3b, global_batch: 64}"
    chosen = ("compute_area=[260 mm^2, 300 mm^2]", "compute_power=400 W", "hbm_stacks=4", "pipeline=1")
    chosen = (*chosen, "budget={die_area: 600 mm^2, power: 400 W}")
    instance = ask(TINY_FREE, model, *chosen)
    result = answered(instance)
    ends = range_ends(instance, result, unwatched, Spend())
    assert [(end.name, end.beyond, end.value) for end in ends] == [("compute_area", pytest.approx(3.4e-4), result.value)]
    alone = Relief("die_area", 600e-6, 660e-6, explain_value_of(ask(TINY_FREE, model, *chosen, f"budget.die_area={600 * 1.1!r} mm^2")))
    assert alone.value == result.value
    [stopped] = with_stops(instance, result, (alone,), ends, unwatched, Spend())
    both = explain_value_of(ask(TINY_FREE, model, *chosen, "compute_area=[300 mm^2, 340 mm^2]", f"budget.die_area={600 * 1.1!r} mm^2"))
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
    said = answer_text(result, Terms("s"), Why((power, area), building=building, unopened=parts)).splitlines()
    assert said[2:5] == [
        "  binds beside: L2 of the technology (1.20%), registers power a tenth more (1.00%)",
        "  no limit binds by much",
        "  worth little: power (0.30% less by a tenth more)",
    ]
    assert "  L2: 3 TB/s, of 3 TB/s; binds: a tenth more 1.20% less" in said
    assert "  clock: 1.4 GHz; full, worth little (0.10%)" in said
    most, more = replace(power, value=0.97 * result.value), replace(area, value=0.98 * result.value)
    much = answer_text(result, Terms("s"), Why((more, most), building=building)).splitlines()
    assert much[2:4] == ["  binding: power, die area", "  binds beside: L2 of the technology (1.20%)"]


def test_the_command_tells_a_clash_and_exits_as_infeasible(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", TINY, "--set", "workload.model=gpt3-175b"]) == 20
    out = capsys.readouterr().out
    assert "one restriction alone leaves none" in out
    assert "memory: 79.1 GiB at most; without any other limit every design needs at least" in out


RUN = "goal={tokens: 1e9, rent: 2 USD, deadline: 1 d, budget: 1000 USD}"


def test_a_run_is_explained_in_days_and_money(capsys: pytest.CaptureFixture[str]) -> None:
    """7,630 steps of 152.1 ms are 19.35 minutes; on 8 devices at 2 USD an hour they cost 5.16 USD. A deadline binds nothing, and half of
    the time is too little, as is half of the money."""
    assert main(["explain", TINY, "--set", RUN, "--force", "tensor=2"]) == 0
    out = capsys.readouterr().out
    assert "tiny: 152.1 ms, a run of 19.35 minutes and 5 USD is the optimum" in out
    assert "deadline 1.1 days instead of 1 day: nothing better" in out
    assert "with tensor=2: 244.7 ms, a run of 31.12 minutes and 8 USD, 60.86% more" in out
    assert main(["explain", TINY, "--set", RUN, "--json"]) == 0
    [record] = json.loads(capsys.readouterr().out)
    assert record["run_seconds"] == pytest.approx(7630 * record["value"])
    assert record["run_usd"] == pytest.approx(record["run_seconds"] * 16.0 / 3600.0)
    assert main(["explain", TINY, "--set", RUN, "--set", "goal.deadline=10 min"]) == 20
    out = capsys.readouterr().out
    assert re.search(r"deadline: 10 minutes at most; without any other limit every design needs at least 1[0-9.]+ minutes", out)
    assert "deadline: the fastest design that keeps the other limits is done after" in out
    assert main(["explain", TINY, "--set", RUN, "--set", "goal.budget=3 USD"]) == 20
    assert re.search(r"budget: 3 USD at most; without any other limit every design needs at least [45] USD", capsys.readouterr().out)
    assert main(["explain", TINY, "--set", "budget.step_time=0.1 s"]) == 20
    assert "step time: 100 ms at most; without any other limit every design needs at least" in capsys.readouterr().out


def test_why_a_forced_choice_is_worse_or_impossible_is_said_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """A rule of plans, a limit, or what takes longer."""
    assert main(["explain", TINY, "--force", "tensor=2"]) == 0
    worse = " ".join(capsys.readouterr().out.split())
    assert re.search(r"of its step of 245 ms the optimum saves 92.6 ms \(37.8%\): .*tensor exchange 28.9 ms", worse)
    assert main(["explain", TINY, "--set", "budget.step_time=0.2 s", "--force", "tensor=2"]) == 0
    limited = " ".join(capsys.readouterr().out.split())
    assert "with tensor=2 there is no design: every one needs at least 243.5 ms, of 200 ms that step time allows" in limited
    assert "as microbatch is one of 1, 2" in limited
    asked = ["--set", "workload={model: llama3-8b, global_batch: 16}", "--set", "cluster.devices=32", "--set", "stack=megatron-core"]
    assert main(["explain", TINY, *asked, "--set", "hardware=h100-sxm", "--set", "choices=all", "--force", "tensor=16"]) == 0
    ruled = " ".join(capsys.readouterr().out.split())
    assert "with tensor=16 there is no design: megatron-core: TP divides the KV heads (tensor: 16): no combination keeps that" in ruled


def test_the_command_tells_what_a_forced_choice_costs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", TINY, "--force", "tensor=2"]) == 0
    out = capsys.readouterr().out
    best, other = (
        explain_value_of(read_instance(INSTANCES / "tiny.yaml")),
        explain_value_of(read_instance(INSTANCES / "tiny.yaml", ("tensor=2",))),
    )
    assert best is not None
    assert other is not None
    assert f"{other / best - 1.0:.2%} more" in out


@pytest.mark.thorough
def test_a_part_that_nobody_opened_is_asked_with_a_tenth_more_and_less() -> None:
    """As if somebody had chosen so much of it; what is a choice, or follows from stacks, is not asked."""
    instance = ask(TINY_FREE)
    free = instance.hardware
    assert isinstance(free, FreeHardware)
    found = unopened(instance, answered(instance), unwatched, Spend())
    assert {one.name for one in found}.isdisjoint({*dict(free.options), "hbm_area", "hbm_power"})
    seen = [one for one in found if one.name == "node_network_power"]
    assert [one.more for one in seen] == [True, False]
    for one, share in zip(seen, (1.1, 0.9), strict=True):
        opened = ask(TINY_FREE, f"node_network_power={share * free.powers.intra * free.power!r} W")
        assert one.value == pytest.approx(explain_value_of(opened), rel=1e-12)
    assert seen[0].value != seen[1].value


# Which constants decide: every end is the optimum of its own question, and what is kept there is the design of before.

RANGES = (
    Range("network", "latency", 0.5, 2.0, "nobody"),
    Range("core", "area", 0.5, 1.5, "nobody"),
    Range("dram", "energy_per_bit", 1.0, 3.0, "nobody"),
)
"""Eight devices in nodes of four; at three times the energy four stacks take some 200 W more."""


FEW = ("tensor=1", "recompute=none")


def asked(*settings: str) -> Instance:
    return replace(ask(TINY_FREE, *FEW, *settings), ranges=RANGES)


@cache
def found(seconds: float = 60.0) -> Deciding:
    return deciding(asked(), lambda setting: ask(TINY_FREE, *FEW, setting), Limits(seconds), unwatched, lambda known: None)


@pytest.mark.thorough
def test_every_end_is_the_optimum_that_enumeration_finds_and_the_largest_swing_comes_first() -> None:
    told = found()
    assert told.stopped == "complete"
    swings = []
    for one in told.constants:
        for end in one.ends:
            other = solve(FAMILY, ask(TINY_FREE, *FEW, f"factors.{one.name}={end.factor!r}"), "exhaustive", Limits(), unwatched)
            assert (end.value, end.proved) == (other.value, True)
        swings.append(max(abs(moved_by(told.central, end) or 0.0) for end in one.ends))
    assert swings == sorted(swings, reverse=True)
    assert {one.name for one in told.constants} == {one.name for one in RANGES}


def test_an_end_says_what_becomes_of_the_design_of_before() -> None:
    """Energy of the stacks moves a limit and no second: where the design keeps it, it has the time that it had."""
    told = found()
    central, ends = told.central, next(one.ends for one in told.constants if one.section == "dram")
    assert central.same
    assert (central.value_of_design, ends[0].value_of_design) == (central.value, central.value)
    dear = ends[1]
    assert dear.value_of_design == central.value if dear.same else (dear.value_of_design is None and dear.broken[0].startswith("power: "))


@pytest.mark.parametrize("seconds", [0.0, 1e-9])
def test_what_there_was_no_time_for_is_not_told(seconds: float) -> None:
    told = found(seconds)
    assert told.stopped == "time limit"
    assert all(end is None for one in told.constants for end in (one.low, one.high))


def test_what_steps_and_closed_parts_do_is_told_apart_from_what_a_constant_does() -> None:
    """Cores draw up to 176 W, closed: with half as much again for each 400 of them are slower, but next to nothing with 220 W. A chip that
    follows has everything that the question has, and more."""
    one, closed = Range("core", "nominal_power", 1.0, 1.5, "nobody"), TINY_FREE.replace("  compute_power: [100 W, 400 W]\n", "")
    fixed = ("budget.power=600 W", "compute_area=[200 mm^2, 400 mm^2]", "hbm_stacks=4", "tensor=1", "pipeline=1", "recompute=none")
    asked_here = replace(ask(closed, *fixed), ranges=(one,))
    told = deciding(asked_here, lambda setting: ask(closed, *fixed, setting), Limits(), unwatched, lambda known: None)
    [decided], central = told.constants, told.central
    assert decided.high is not None
    by_grid, moved = asked_by(central, decided.high), moved_by(central, decided.high)
    assert by_grid is not None
    assert moved is not None
    assert 0.0 < moved < by_grid / 2.0
    assert decided.high.followed is not None
    assert (dict(decided.high.followed.opened)["compute_power"] or 1.0) > by_grid / 4.0
    for end, setting in ((central, ()), (decided.high, (f"factors.{one.name}=1.5",))):
        question, chip = ask(closed, *fixed, *setting), end.followed
        assert chip is not None
        assert chip.value <= (end.value or 0.0)
        assert value_of(question, chip.design) == chip.value
        assert chip.opened == opened_in(question, chip.design, chip.value)
        assert all(worth is None or worth > 0.0 for _, worth in chip.opened)


# What near-optimal designs have in common, by proof: it is what counting all designs finds, and short of time nothing false is said.

WIDE = (
    "compute_area={from: 300 mm^2, to: 600 mm^2, step: 25 mm^2}",
    "compute_power={from: 100 W, to: 300 W, step: 40 W}",
    "hbm_stacks=[6, 2, 5]",
    "tensor=1",
)
"""More options than are asked one by one, some out of order; 425 mm^2 is no multiple of a bundle that helps, 400 and 450 are."""
SMALL = [
    read_instance(INSTANCES / "tiny.yaml"),
    ask(TINY_FREE, *WIDE),
    ask(TINY_FREE, *WIDE, "objective=die_area", "budget.step_time=0.4 s"),
    ask(LSTM, "compute_area={from: 100 mm^2, to: 300 mm^2, step: 20 mm^2}"),
    ask(GEMM),
    *map(random_question, (1, 2, 9, 14, 17, 22, 24, 36, 44)),
]
GAPS = ((0.0, 8), (0.02, 2), (0.05, 8))
"""With so many hardware options between the ends asked one by one."""


@once
def solved(instance: Instance) -> DesignResult:
    return answered(instance, "boxes")


def found_near(instance: Instance, gap: float, deadline: float = float("inf")) -> Near:
    near = near_optimum(instance, solved(instance), gap, unwatched, deadline)
    assert near is not None
    return near


@once
def known_near(instance: Instance, gap: float, few: int) -> Near:
    """The same, asked once, with so many hardware options between the ends asked one by one."""
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(module, "_FEW", few)
        return found_near(instance, gap)


@once
def enumerated(instance: Instance) -> Found:
    return exhaustive_search(instance, unwatched)


def counted(instance: Instance, limit: float) -> dict[str, set[object]]:
    """The options that occur among designs up to the limit, by enumeration."""
    return {choice.name: set(choice.within(limit)) for choice in enumerated(instance).space.near}


def options_of(known: Known, mask: tuple[bool, ...]) -> set[object]:
    return {option for option, holds in zip(known.options, mask, strict=True) if holds}


def feasible() -> list[Instance]:
    return [instance for instance in SMALL if enumerated(instance).value is not None]


@pytest.mark.slow
@pytest.mark.parametrize(("gap", "few"), GAPS)
@every("instance", feasible)
def test_what_is_proved_is_what_enumeration_counts(instance: Instance, gap: float, few: int) -> None:
    near = known_near(instance, gap, few)
    expected = counted(instance, near.limit)
    assert {known.name for known in near.choices} == expected.keys()
    for known in near.choices:
        occur, never = options_of(known, known.occur), options_of(known, known.never)
        assert not never & expected[known.name], known.name
        if known.asked_between:
            assert occur == expected[known.name], known.name
            assert occur | never == set(known.options)
        else:
            ends = [place for place, holds in enumerate(known.occur) if holds]
            truth = [place for place, option in enumerate(known.options) if option in expected[known.name]]
            assert (ends[0], ends[-1]) == (truth[0], truth[-1]), known.name
            assert all(known.never[place] for place in range(len(known.options)) if not ends[0] <= place <= ends[-1])


@pytest.mark.slow
def test_these_questions_have_gaps_between_ends_and_choices_that_do_not_matter() -> None:
    """The comparison would say little without them."""
    near = [known for instance in feasible() for known in known_near(instance, 0.05, 8).choices]
    assert any(not known.asked_between and sum(known.never) > 2 for known in known_near(SMALL[1], 0.02, 2).choices)
    assert any(all(known.occur) for known in near)
    assert any(sum(known.occur) == 1 for known in near)
    ends = [(np.flatnonzero(known.occur), np.array(known.never)) for known in near]
    assert any(never[found[0] : found[-1]].any() for found, never in ends), "no option between the ends is refuted"


def test_the_search_alone_decides_what_dives_do_not_find(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "dive", lambda *_: None)
    for instance in (SMALL[1], random_question(24)):
        near = found_near(instance, 0.02)
        expected = counted(instance, near.limit)
        for known in near.choices:
            if known.asked_between:
                assert options_of(known, known.occur) == expected[known.name]


@pytest.mark.parametrize("looks", (0, 9))
def test_short_of_time_nothing_false_is_said(looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock jumps past the deadline after so many looks at it."""
    instance = SMALL[1]
    expected = counted(instance, known_near(instance, 0.05, 8).limit)
    result, clock = solved(instance), iter([0.0] * looks)
    monkeypatch.setattr(module, "monotonic", lambda: next(clock, 100.0))
    near = near_optimum(instance, result, 0.05, unwatched, 50.0)
    assert near is not None
    for known in near.choices:
        assert options_of(known, known.occur) <= expected[known.name]
        assert not options_of(known, known.never) & expected[known.name]
    if not looks:
        assert "; not decided in time whether " in near_text(near, 0.05)


def test_a_search_that_is_stopped_refutes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    instance, whole = SMALL[1], module.branch
    expected = counted(instance, known_near(instance, 0.3, 8).limit)
    monkeypatch.setattr(module, "dive", lambda *_: None)
    monkeypatch.setattr(module, "branch", lambda *given: whole(*given[:-1], Spend(deadline=0.0)))
    near = found_near(instance, 0.3)
    for known in near.choices:
        assert not options_of(known, known.never) & expected[known.name]
    assert any(not (occurs or never) for known in near.choices for occurs, never in zip(known.occur, known.never, strict=True))


def test_an_interrupt_leaves_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "dive", interrupted)
    assert any("not decided" in line for line in near_text(found_near(SMALL[1], 0.01), 0.01).splitlines())


def test_nothing_is_said_without_a_proved_optimum() -> None:
    result = answered(SMALL[1], "boxes", Limits(seconds=0.0))
    assert near_optimum(SMALL[1], result, 0.01, unwatched, float("inf")) is None
    assert "not known, as the optimum was not proved in time" in near_text(None, 0.01)


def test_the_words_name_only_what_was_asked() -> None:
    many = tuple(float(watts) for watts in range(20))
    long = Known("l2_power", many, (*(False,) * 4, *(True, False) * 7, True, True), (*(True,) * 4, *(False,) * 16), False)
    plan = Known("zero", (0, 1, 2, 3), (False, True, False, False), (True, False, False, True), True)
    every = Known("registers_power", many, (True,) * 20, (False,) * 20, False)
    text = near_text(Near(1.0, (long, plan, every)), 0.015)
    assert "within 1.5 % of the optimum" in text
    assert "    l2 given between 4 W and 19 W\n" in text
    assert "    registers given between 0 W and 19 W\n" in text
    assert "every option" not in text
    assert "    ZeRO-1; not decided in time whether ZeRO-2, too\n" in text


def test_the_command_says_it_beside_its_other_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(INSTANCES / "tiny.yaml"), "--near", "20%"]) == 0
    out = capsys.readouterr().out
    assert "no limit binds" in out
    assert "designs within 20 % of the optimum, by proof:\n    all have " in out


def test_a_gap_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["explain", str(INSTANCES / "tiny.yaml"), "--near", "wide"])
    assert stopped.value.code == 2
    assert "'wide' is no gap (write for example 0.1% or 0.001)" in capsys.readouterr().err


def test_a_clash_that_is_not_decided_in_time_names_no_limit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A search that was cut off has no design either: to count it would keep limits lifted that clash."""
    question = read_instance(INSTANCES / "tiny.yaml", ("workload.model=gpt3-175b",))
    with pytest.raises(UndecidedError):
        clash(question, unwatched, deadline=0.0)
    assert clash(question, unwatched) == clash(question, unwatched, deadline=1e300)
    monkeypatch.setattr("crossopt.solvers.codesign.explain.conflict.monotonic", lambda: float("inf"))
    assert main(["explain", TINY, "--set", "workload.model=gpt3-175b", "--time-limit", "9 s"]) == 20
    assert "no design keeps every limit; which limits clash was not decided in time" in " ".join(capsys.readouterr().out.split())


def test_who_is_hurried_goes_without_a_design_rather_than_beyond_the_deadline() -> None:
    question = ask(TINY_FREE)
    assert search(question, unwatched, Spend(0.0)).value is not None
    found = search(question, unwatched, Spend(0.0), hurried=True)
    assert (found.value, found.stopped) == (None, "time limit")
