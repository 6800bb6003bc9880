"""The expert rule: it chooses what a practitioner would, it keeps every limit, and it never beats the optimum."""

from pathlib import Path

import pytest

from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.plan import Plan
from crossopt.instances.catalogue.registry import ladder
from crossopt.instances.codesign import space
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import combinations, device_at, hardware_choice, hardware_points
from crossopt.solvers.answer import Limits
from crossopt.solvers.codesign.baselines.megatron import expert_design, expert_point
from crossopt.solvers.codesign.exhaustive import search
from crossopt.solvers.codesign.judge import verify
from tests.every import every
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import answered
from tests.solvers.codesign.questions import GEMM, LSTM, TINY_FREE, ask, random_question
from tests.solvers.codesign.several_questions import TWO, several

SMALL = {
    name: path for name, path in ladder().items() if name in {"tiny", "small", "quickstart", "mixtral-8x7b-64xh100", "deepflow-lstm-64"}
}


def silent(progress: object) -> None:
    del progress


@pytest.mark.parametrize("path", SMALL.values(), ids=SMALL)
def test_the_rule_never_beats_the_optimum(path: Path) -> None:
    instance = read_instance(path)
    optimum, chosen = search(instance, silent).value, expert_design(instance)
    assert optimum is not None
    assert chosen is not None
    assert verify(instance, chosen).value >= optimum


@pytest.mark.thorough
@every("seed", range(20))
def test_the_rule_keeps_every_limit_or_gives_no_design(seed: int) -> None:
    instance = random_question(seed)
    found, chosen = search(instance, silent), expert_design(instance)
    if chosen is None:
        return
    verdict = verify(instance, chosen)
    assert verdict.accepted
    assert found.value is not None
    assert verdict.value >= found.value


@pytest.mark.thorough
def test_there_are_random_questions_of_both_kinds() -> None:
    """The test above would say nothing if the rule never found a design."""
    chosen = [expert_design(random_question(seed)) for seed in range(40)]
    assert sum(design is None for design in chosen) >= 5
    assert sum(design is not None for design in chosen) >= 15


def planned(instance: Instance) -> Plan:
    chosen = expert_design(instance)
    assert chosen is not None
    assert isinstance(chosen.plan, Plan)
    return chosen.plan


def test_a_model_that_one_device_holds_is_only_spread_over_data() -> None:
    """Tensor and pipeline parallelism cost exchange and bubbles, and only pay for memory (Narayanan et al. 2021, takeaway 1)."""
    assert planned(read_instance(INSTANCES / "tiny.yaml")) == Plan(data=8, microbatch=2)


def test_a_model_that_a_node_cannot_hold_is_split_over_the_node_first_and_then_over_stages() -> None:
    """GPT-3 175B on 64 A100 of 85.9 GB in nodes of eight, by hand.

    Tensor parallelism takes the node. A weight costs 2 + 4 bytes and its optimizer state 12, shared by the replicas (ZeRO 1). Two stages
    leave four replicas: 175e9 / 16 x (6 + 12 / 4) = 98 GB do not fit. Four stages leave two: 175e9 / 32 x (6 + 12 / 2) = 66 GB do, with
    4.3 GB reserved and 9.7 GB of activations under selective recomputation.
    """
    question = read_instance(
        INSTANCES / "gpt3-175b-1024xa100.yaml",
        ("cluster.devices=64", "workload.global_batch=64", "zero=[0, 1]", "interleave=1", "overlap=none", "microbatch=[1, 2]"),
    )
    plan = planned(question)
    assert (plan.tensor, plan.sequence_parallel, plan.zero) == (8, True, 1)
    assert (plan.pipeline, plan.data) == (4, 2)
    assert plan.recompute == "selective"


def test_more_devices_become_replicas_and_never_more_stages() -> None:
    """Once the model fits, the rule adds replicas; with more of them to share the optimizer's state, fewer stages are needed."""
    settings = ("zero=[0, 1]", "interleave=1", "overlap=none", "microbatch=1")
    small, large = (
        planned(
            read_instance(INSTANCES / "gpt3-175b-1024xa100.yaml", (*settings, f"cluster.devices={devices}", "workload.global_batch=256"))
        )
        for devices in (256, 512)
    )
    assert large.tensor == small.tensor == 8
    assert large.pipeline <= small.pipeline
    assert large.data >= 2 * small.data


def test_the_rule_takes_the_most_memory_and_then_the_most_compute_that_the_budget_holds() -> None:
    instance = ask(TINY_FREE, "budget.power=400 W", "budget.package_area=1500 mm^2")
    point = expert_point(instance)
    assert point is not None
    assert hardware_choice(instance, point)["hbm_stacks"] == 4
    within = [other for other in range(hardware_points(instance)) if _within(instance, other)]
    best = max((device_at(instance, other) for other in within), key=lambda device: (device.dram.capacity, device.throughput))
    assert device_at(instance, point).throughput == best.throughput


def _within(instance: Instance, point: int) -> bool:
    try:
        device = device_at(instance, point)
    except ValueError:
        return False
    budget = instance.budget
    return bool(device.die_area <= budget.die_area and device.package_area <= budget.package_area and device.power <= budget.power)


def test_a_device_over_its_budget_is_never_taken() -> None:
    instance = read_instance(INSTANCES / "tiny.yaml", ("budget.power=100 W",))
    assert isinstance(instance.hardware, Hardware)
    assert expert_point(instance) is None
    assert expert_design(instance) is None


@pytest.mark.parametrize("text", [LSTM, GEMM])
def test_kernels_are_spread_over_data_first(text: str) -> None:
    instance = ask(text)
    chosen = expert_design(instance)
    assert chosen is not None
    assert verify(instance, chosen).accepted
    assert chosen.plan.data == max(plan.data for plans in space.plan_blocks(instance) for plan in plans)  # type: ignore[union-attr]


@pytest.mark.parametrize("seed", [0, 6, 9, 22, 44])
def test_the_size_of_the_blocks_does_not_change_the_rule(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is widest in a node is asked of all plans, not of those that happen to be looked at together."""
    instance = random_question(seed)
    usual = expert_design(instance)
    monkeypatch.setattr(space, "_FEW", 0)
    monkeypatch.setattr(space, "_COMBINATIONS", max(1, combinations(instance) // 7))
    assert expert_design(instance) == usual


@pytest.mark.parametrize("name", ["expert", "plan-only", "hardware-only"])
def test_rivals_claim_no_proof_and_lie_between_the_rule_and_the_optimum(name: str) -> None:
    instance = ask(TINY_FREE)
    result, optimum, chosen = answered(instance, name), search(instance, silent).value, expert_design(instance)
    assert (result.status, result.proved, result.bound, result.gap, result.rivals) == ("FEASIBLE", False, None, None, ())
    assert result.value is not None
    assert optimum is not None
    assert chosen is not None
    assert optimum <= result.value <= verify(instance, chosen).value


@pytest.mark.parametrize("name", ["expert", "plan-only", "hardware-only"])
def test_rivals_keep_the_time_limit(name: str) -> None:
    """A million chips take longer to rank than no time at all."""
    wide = ask(TINY_FREE, "compute_area={from: 200 mm^2, to: 400 mm^2, count: 1000}", "compute_power={from: 100 W, to: 300 W, count: 1000}")
    result = answered(wide, name, Limits(seconds=0.0))
    assert (result.status, result.stopped, result.value) == ("UNKNOWN", "time limit", None)


def test_many_options_do_not_lead_the_rule_over_the_budget() -> None:
    """Among 500 options the greatest one that keeps the budgets is taken, not one of the same stretch of options that breaks them."""
    options = ("compute_area={from: 200 mm^2, to: 500 mm^2, count: 500}", "compute_power={from: 60 W, to: 300 W, count: 500}")
    wide = ask(TINY_FREE, *options, "budget.power=258 W")
    point = expert_point(wide)
    assert point is not None
    assert _within(wide, point)
    choice = hardware_choice(wide, point)
    powers = dict(wide.hardware.options)["compute_power"]  # type: ignore[union-attr]
    assert not _within(wide, space.hardware_point(wide, {**choice, "compute_power": powers[powers.index(choice["compute_power"]) + 1]}))


def test_a_design_of_the_rule_that_takes_too_long_is_none() -> None:
    """The rule knows of memory and of the chip's budgets, but of no limit on the step time."""
    usual = answered(ask(TINY_FREE, "objective=power"), "expert")
    limit = f"budget.step_time={usual.details.evaluation.step_time * (1.0 - 2.0**-40)!r} s"
    for engine in ("expert", "plan-only", "hardware-only"):
        result = answered(ask(TINY_FREE, "objective=power", limit), engine)
        assert result.answer is None or result.details.evaluation.feasible
    late = answered(ask(TINY_FREE, "objective=power", limit), "expert")
    assert (late.status, late.answer) == ("UNKNOWN", None)
    assert late.notes[0].startswith("what the rule chooses breaks a limit: step time: ")
    several_late = answered(several(TWO, "objective=power", "budget.step_time=1 ms"), "expert")
    assert (several_late.status, several_late.answer) == ("UNKNOWN", None)
