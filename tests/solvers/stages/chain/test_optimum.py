"""Plans for chains: golden optima, every plan of small chains, figures by hand, and what is never worse."""

from dataclasses import replace

import pytest

from crossopt.solvers.answer import Limits
from crossopt.solvers.family import solve
from crossopt.solvers.stages.chain.engine import best_plans, equal_splits
from crossopt.solvers.stages.chain.family import FAMILY
from crossopt.solvers.stages.chain.judge import ChainPlan, even, judge
from crossopt.solvers.stages.chain.prove import every_plan, least_of_all
from tests.solvers.stages.chain.chains import SHAPES, answered, asked_of, random_chain, text_of

GOLDEN = {
    ("bert", "none"): (0.1956659621345883, 1, 256, 4, 0.2630260519291469),
    ("bert", "full"): (0.19848368379236858, 1, 512, 2, 0.2630260519291469),
    ("gpt2", "none"): (0.6252912217410407, 1, 128, 8, 0.9703138347035363),
    ("gpt2", "full"): (0.7217094413933298, 1, 256, 4, 0.9855585132129607),
    ("gpt72", "none"): (3.3767011328323377, 1, 256, 4, 31.426042093936164),
    ("gpt72", "full"): (3.9294263171713686, 1, 128, 8, 41.85523222072188),
    ("gpt3", "none"): (86.72937565629293, 1, 26, 38, 245.4528902866281),
    ("gpt3", "full"): (94.49189336167915, 1, 31, 33, 255.13784992234233),
}
"""Seconds of a batch, width, replicas and stages by the public program of PHAZE, and seconds of the plan to compare with."""


@pytest.mark.parametrize("name", GOLDEN)
def test_the_optimum_is_that_of_the_public_program(name: tuple[str, str]) -> None:
    seconds, width, data, stages, fixed = GOLDEN[name]
    result = answered(asked_of(text_of(SHAPES[name[0]], f"recompute: {name[1]}")))
    assert result.status == "OPTIMAL"
    assert result.value == pytest.approx(seconds, rel=1e-12)
    assert result.answer is not None
    assert (result.answer.width, result.answer.data, len(result.answer.stages)) == (width, data, stages)
    rivals = {rival.name: rival.value for rival in result.rivals}
    assert rivals["fixed plan"] == pytest.approx(fixed, rel=1e-12)


def test_both_ways_to_recompute_are_looked_at_together() -> None:
    result = answered(asked_of(text_of(SHAPES["gpt3"])))
    assert result.value == pytest.approx(GOLDEN["gpt3", "none"][0], rel=1e-12)
    assert {"divisible", "equal split", "fixed, stored", "fixed, recomputed"} == {rival.name for rival in result.rivals}


def test_divisible_replicas_divide_and_are_the_rival_of_free_ones() -> None:
    free, bound = (answered(asked_of(text_of(SHAPES["gpt3"], f"divisible: {word}"))) for word in ("false", "true"))
    assert bound.answer is not None
    assert 1024 % bound.answer.data == 4096 % bound.answer.data == 0
    assert bound.value == next(rival.value for rival in free.rivals if rival.name == "divisible")
    assert (free.value or 0.0) < (bound.value or 0.0)


SCHEDULES = {
    "flush": "",
    "divisible": "divisible: true",
    "recompute": "recompute: full",
    "adam": "copies: 3",
    "two versions": "schedule: two-versions\noverhead: 2 ms",
    "two versions, divisible": "schedule: two-versions\ndivisible: true",
}


@pytest.mark.parametrize("more", SCHEDULES.values())
@pytest.mark.parametrize("widths", [(1,), (1, 2)])
def test_no_plan_of_a_small_chain_is_better_and_one_is_as_good(more: str, widths: tuple[int, ...]) -> None:
    found = set()
    for seed in range(12):
        question = asked_of(random_chain(seed, 4 + seed % 3, widths, more))
        verdicts = (judge(question, plan) for plan in every_plan(question))
        true = min((verdict.value for verdict in verdicts if not verdict.violations), default=float("inf"))
        best = best_plans(question, equal_splits(question, lambda: None).divisible.value, lambda: None).any
        assert best.value == pytest.approx(true, rel=1e-12)
        if best.plan is not None:
            verdict = judge(question, best.plan)
            assert verdict.violations == ()
            assert verdict.value == pytest.approx(best.value, rel=1e-13)
        found.add(best.plan and len(best.plan.stages))
    assert len(found) > 2


@pytest.mark.parametrize("schedule", ["flush", "two-versions"])
def test_merged_microbatches_and_the_divisible_rival_are_exact_too(schedule: str) -> None:
    merged = "microbatch: [1, 2]\n" if schedule == "two-versions" else ""
    for seed in range(8):
        text = random_chain(seed, 5, (1, 2), f"schedule: {schedule}\n{merged}overhead: 3 ms").replace(
            "microbatches: 1\n", "microbatches: 8\n"
        )
        question = asked_of(text)
        result = answered(question)
        least, bound = least_of_all(question), least_of_all(replace(question, file=replace(question.file, divisible=True)))
        assert (result.value or float("inf")) == pytest.approx(least, rel=1e-12)
        rival = next(rival.value for rival in result.rivals if rival.name == "divisible")
        assert (rival or float("inf")) == pytest.approx(bound, rel=1e-12)


HAND = """\
kind: chain
devices: 4
memory: 100 B
bandwidth: 1 kB/s
microbatches: 8
layers:
  - {output: 10 B, widths: {1: {forward: 1 s, backward: 2 s, parameters: 4 B, activations: 6 B}}}
  - {output: 99 B, widths: {1: {forward: 3 s, backward: 4 s, parameters: 8 B, activations: 5 B}}}
"""


def test_a_chain_by_hand() -> None:
    """Two stages: 3 + 0.01 s and 7 + 0.01 s, ten bytes between them; two replicas do four microbatches each."""
    plan = ChainPlan(1, "none", 1, 2, (1, 1))
    found = judge(asked_of(HAND), plan)
    assert [load.total for load in found.details.loads] == pytest.approx([3.01, 7.01], rel=1e-15)
    assert [load.memory for load in found.details.loads] == [2 * 4 + 6 + 6, 2 * 8 + 5]
    assert found.value == pytest.approx(7.01 * (4 + 1) + 4 * 0.5 * 4 / 1000, rel=1e-15)
    again = judge(asked_of(HAND), replace(plan, recompute="full"))
    assert [load.total for load in again.details.loads] == pytest.approx([4.0, 7.01], rel=1e-15)
    assert [load.memory for load in again.details.loads] == [2 * 4 + 6 + 0, 2 * 8 + 5]
    merged = asked_of(HAND.replace("layers:", "schedule: two-versions\nmicrobatch: [1, 2]\noverhead: 0.5 s\nlayers:"))
    large = judge(merged, replace(plan, microbatch=2))
    assert [load.total for load in large.details.loads] == pytest.approx([2 * 3.01 + 1.0, 2 * 7.01 + 1.0], rel=1e-15)
    assert [load.memory for load in large.details.loads] == [2 * 4 + 12 + 12, 2 * 8 + 10]
    assert large.value == pytest.approx(2 * 15.02 + 2 * 0.5 * 8 / 1000, rel=1e-15)


def test_more_devices_and_more_memory_are_never_worse() -> None:
    for more in ("", "schedule: two-versions"):
        text = random_chain(5, 12, (1, 2), more).replace("microbatches: 1\n", "microbatches: 12\n")
        values = [_least(text, devices, 80) for devices in (2, 5, 9, 30, 100)]
        assert values == sorted(values, reverse=True)
        values = [_least(text, 12, memory) for memory in (20, 60, 100, 1000)]
        assert values == sorted(values, reverse=True)
        assert values[-1] < float("inf")


def _least(text: str, devices: int, memory: int) -> float:
    lines = (f"devices: {devices}" if line.startswith("devices") else line for line in text.splitlines())
    lines = (f"memory: {memory} MB" if line.startswith("memory") else line for line in lines)
    value = answered(asked_of("\n".join(lines))).value
    return float("inf") if value is None else value


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (ChainPlan(2, "none", 1, 1, (1, 1)), "no width 2"),
        (ChainPlan(1, "none", 1, 1, (1,)), "have 2 layers together"),
        (ChainPlan(1, "none", 1, 1, (2, 0)), "have 2 layers together"),
        (ChainPlan(1, "none", 1, 0, (2,)), "have 2 layers together"),
    ],
)
def test_what_is_no_plan_is_refused_in_words(plan: ChainPlan, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        judge(asked_of(HAND), plan)


def test_broken_rules_are_told() -> None:
    question = asked_of(
        HAND.replace("100 B", "20 B").replace("layers:", "schedule: two-versions\ndivisible: true\nrecompute: none\nlayers:")
    )
    told = " ".join(judge(question, ChainPlan(1, "full", 2, 5, (1, 1))).violations)
    for words in (
        *("10 devices are used, there are 4", "recompute full is none", "2 microbatches as one is none", "5 replicas do not divide 4"),
        *("5 replicas do not divide the 4 microbatches", "a batch is shorter than the 2 stages", "keeps 26 B on a device of 20 B"),
    ):
        assert words in told


def test_even_stages_have_the_rounded_mean_and_the_last_the_rest() -> None:
    assert even(26, 8) == (3, 3, 3, 3, 3, 3, 3, 5)
    assert even(50, 32) == (2,) * 18 + (1,) * 14
    assert even(4, 4) == (1, 1, 1, 1)
    assert even(7, 1) == (7,)
    assert all(sum(even(n, s)) == n and len(even(n, s)) == s and min(even(n, s)) > 0 for n in range(1, 40) for s in range(1, n + 1))


def test_the_best_known_is_left_where_the_time_is_over() -> None:
    result = solve(FAMILY, asked_of(text_of(SHAPES["gpt72"])), "cuts", Limits(seconds=0.0), lambda progress: None)
    assert (result.status, result.stopped, result.bound) == ("UNKNOWN", "time limit", None)
