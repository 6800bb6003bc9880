"""Rules of other schools: what they choose keeps to the school, keeps every limit and never beats the optimum."""

import pytest

from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import Plan
from crossopt.instances.codesign.question import read_instance
from crossopt.solvers.answer import Limits
from crossopt.solvers.codesign.baselines.megatron import expert_point
from crossopt.solvers.codesign.baselines.recipes import fsdp_design, pipedream_design
from crossopt.solvers.codesign.exhaustive import search
from crossopt.solvers.codesign.judge import verify
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import answered
from tests.solvers.codesign.questions import GEMM, LSTM, ask, random_question

A100 = INSTANCES / "gpt3-175b-1024xa100.yaml"


def silent(progress: object) -> None:
    del progress


@pytest.mark.parametrize("seed", range(10))
def test_the_rules_keep_every_limit_or_give_no_design(seed: int) -> None:
    instance = random_question(seed)
    optimum, point = search(instance, silent).value, expert_point(instance)
    for chosen in (fsdp_design(instance), pipedream_design(instance)):
        if chosen is not None:
            verdict = verify(instance, chosen)
            assert verdict.accepted
            assert optimum is not None
            assert verdict.value >= optimum
            assert chosen.point == point


@pytest.mark.thorough
def test_both_rules_find_designs_for_some_of_these_questions() -> None:
    for rule in (fsdp_design, pipedream_design):
        assert 3 <= sum(rule(random_question(seed)) is not None for seed in range(20)) < 20


def test_what_is_sharded_recomputes_as_little_and_then_computes_as_much_together_as_fits() -> None:
    """Seven billion parameters on eight devices of 80 GiB: priced one by one, the rule's is the first in its order that fits."""
    settings = ("workload.model=llama2-7b", "cluster.devices=8", "workload.global_batch=64", "microbatch=[1, 2, 4, 8]")
    instance = read_instance(A100, (*settings, "sequence_parallel=false", "overlap=data"))
    chosen = fsdp_design(instance)
    assert chosen is not None
    assert isinstance(chosen.plan, Plan)
    order = [
        Plan(data=8, zero=3, overlap="data", recompute=recompute, microbatch=microbatch)  # type: ignore[arg-type]
        for recompute in ("none", "selective", "full")
        for microbatch in (8, 4, 2, 1)
    ]
    fitting = [plan for plan in order if verify(instance, type(chosen)(0, plan)).accepted]
    assert 0 < len(fitting) < len(order)
    assert chosen.plan == fitting[0]


def test_tensor_parallelism_comes_only_where_sharding_alone_does_not_fit_and_stays_in_the_node() -> None:
    """1,024 replicas do not divide a batch of 1,536, so two devices share a replica."""
    chosen = fsdp_design(read_instance(A100))
    assert chosen is not None
    assert isinstance(chosen.plan, Plan)
    assert (chosen.plan.tensor, chosen.plan.pipeline, chosen.plan.data, chosen.plan.zero) == (2, 1, 512, 3)


def test_without_sharding_among_the_choices_there_is_no_such_design() -> None:
    assert fsdp_design(read_instance(A100, ("zero=[0, 1, 2]",))) is None


def test_the_planner_takes_the_best_width_and_depth_and_recomputes_only_where_needed() -> None:
    small = ("workload.model=gpt3-13b", "cluster.devices=64", "microbatch=[1, 2, 4]")
    instance = read_instance(A100, (*small, "workload.global_batch=256", "overlap=none"))
    chosen = pipedream_design(instance)
    assert chosen is not None
    values: dict[tuple[int, int, str], float] = {}
    plans = [
        Plan(pipeline=depth, data=64 // depth, microbatch=microbatch, recompute=recompute)  # type: ignore[arg-type]
        for depth in (1, 2, 4, 8, 16, 32)
        for microbatch in (1, 2, 4)
        for recompute in ("none", "full")
    ]
    for plan in plans:
        verdict = verify(instance, type(chosen)(0, plan))
        if verdict.accepted:
            shape = (plan.data, plan.pipeline, plan.recompute)
            values[shape] = min(values.get(shape, float("inf")), verdict.value)
    needed = [value for (width, depth, again), value in values.items() if again == "none" or (width, depth, "none") not in values]
    assert verify(instance, chosen).value == min(needed)


def test_layers_of_an_lstm_are_stages_and_a_product_has_none() -> None:
    chosen = pipedream_design(ask(LSTM, "layers=divisors"))
    assert chosen is not None
    assert isinstance(chosen.plan, KernelPlan)
    assert chosen.plan.rows == chosen.plan.columns == 1
    assert pipedream_design(ask(GEMM)) is None
    assert fsdp_design(ask(LSTM)) is None


@pytest.mark.parametrize("name", ["fsdp", "pipedream-flush"])
def test_the_rules_keep_the_time_limit_and_claim_no_proof(name: str) -> None:
    instance = read_instance(A100)
    late, done = (answered(instance, name, Limits(seconds)) for seconds in (0.0, float("inf")))
    assert (late.status, late.stopped) == ("UNKNOWN", "time limit")
    assert (done.status, done.proved, done.bound) == ("FEASIBLE", False, None)
