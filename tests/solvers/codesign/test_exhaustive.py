"""The oracle: what a plain loop over every design finds, by paper and pencil, and prices that do not depend on their block."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields, is_dataclass, replace
from functools import reduce
from itertools import product
from math import inf
from operator import or_
from typing import Any

import numpy as np
import pytest

import crossopt
from crossopt.crossflow import transformer
from crossopt.crossflow.arrays import Array, Ints, distinct
from crossopt.crossflow.bill import PlanCosts
from crossopt.crossflow.evaluate import Evaluation, evaluate
from crossopt.crossflow.hardware import Efficiency, Hardware, take
from crossopt.crossflow.kernels import distributed_product, lstm
from crossopt.crossflow.memory import memory_without_layers
from crossopt.crossflow.parameters import parameters
from crossopt.crossflow.plan import Plan, Plans
from crossopt.crossflow.plan import joined as joined_tables
from crossopt.crossflow.plan import rows_of as plan_rows
from crossopt.crossflow.transformer import sharding
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.registry import device
from crossopt.instances.codesign import space
from crossopt.instances.codesign.boxes import Boxes, Corners, chips_at, corners, full_box, grid, option_indices
from crossopt.instances.codesign.instance import FreeHardware, Goal, Instance
from crossopt.instances.codesign.plan_choices import codes_of, with_settings
from crossopt.instances.codesign.plan_groups import family_blocks
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import (
    AnyPlans,
    buildable,
    device_at,
    draw_plans,
    hardware_choice,
    hardware_points,
    plan_blocks,
    plan_values,
)
from crossopt.instances.errors import ModelError
from crossopt.solvers.answer import Limits, Progress, less_rounding
from crossopt.solvers.codesign import exhaustive as engine
from crossopt.solvers.codesign import objective
from crossopt.solvers.codesign.answer import Candidate, DesignResult, candidate, design_of
from crossopt.solvers.codesign.exhaustive import Found, search
from crossopt.solvers.codesign.judge import verify
from crossopt.solvers.codesign.objective import (
    OBJECTIVES,
    Limited,
    deciding_memory_of,
    host_memory_of,
    joined,
    least_memory_of,
    memory_of,
    rows_of,
    spent,
    times_and_values,
    value,
    values,
    values_of,
)
from crossopt.solvers.proofs import Conflict, Enumerated
from tests.offloading_questions import slow_link
from tests.once import once
from tests.paths import INSTANCES
from tests.solvers.codesign.any_questions import any_question
from tests.solvers.codesign.asking import answered, checked
from tests.solvers.codesign.questions import GEMM, LSTM, TINY_FREE, ask, random_question
from tests.stack_questions import stack_question

# The oracle: it finds what a plain loop over every design finds, whatever its blocks are, and says so when it did not look at all.

SEEDS = (1, 3, 5, 8, 25, 29)
"""Of few designs, since each is priced on its own; one question has none."""
QUESTIONS = {
    "tiny": read_instance(INSTANCES / "tiny.yaml"),
    "tight": read_instance(INSTANCES / "tiny.yaml", ("workload.model=gpt3-13b", "microbatch=[1, 2, 4]", "zero=[0, 1]")),
    "free": ask(TINY_FREE),
    "lstm": ask(LSTM),
    "gemm": ask(GEMM),
}


def plausible(progress: Progress) -> None:
    assert 0.0 < share_done(progress) <= 1.0


def share_done(progress: Progress) -> float:
    return float(progress.label.split()[0].removesuffix("%")) / 100.0


def every_candidate(instance: Instance) -> Iterator[Candidate]:
    """Every design of a question, one by one."""
    for plans in plan_blocks(instance):
        for row in range(len(plans)):
            for point in range(hardware_points(instance)):
                yield candidate(plans, row, point)


@once
def values_one_by_one(instance: Instance) -> dict[Candidate, float]:
    """The designs that keep every limit, each priced on its own by the full model."""
    found = {}
    for chosen in every_candidate(instance):
        try:
            design = design_of(instance, chosen)
        except ValueError:  # a chip without cores, memory or links
            continue
        evaluation = evaluate(instance.workload, design, instance.budget, instance.prices)
        if evaluation.feasible:
            found[chosen] = value(instance, evaluation)
    return found


def options_one_by_one(instance: Instance, expected: dict[Candidate, float], share: float) -> dict[str, list[Any]]:
    """The options that occur among designs within a share of the best, by looking at every one of them."""
    hardware = instance.hardware.options if isinstance(instance.hardware, FreeHardware) else ()
    near = [chosen for chosen, number in expected.items() if number <= min(expected.values()) * share]
    chosen = [{**hardware_choice(instance, one.point), **asdict(one.plan)} for one in near]
    open_ones = [(name, options) for name, options in (*hardware, *plan_values(instance)) if len(options) > 1]
    return {name: [option for option in options if any(one[name] == option for one in chosen)] for name, options in open_ones}


def assert_found(instance: Instance, found: Found, expected: dict[Candidate, float]) -> None:
    best = min(expected.values())
    assert found.value == best
    assert found.best is not None
    assert expected[found.best] == best
    assert found.space.feasible == len(expected)
    assert found.space.ties == sum(number == best for number in expected.values())
    assert found.space.within_1_percent == sum(number <= best * 1.01 for number in expected.values())
    assert found.space.within_5_percent == sum(number <= best * 1.05 for number in expected.values())
    for share in (1.0, 1.01, 1.05):
        assert {choice.name: choice.within(best * share) for choice in found.space.near} == options_one_by_one(instance, expected, share)
    if found.space.error is None:
        assert found.space.within_error is None
    else:
        assert found.space.within_error == sum(number <= best * (1.0 + found.space.error) for number in expected.values())


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_oracle_agrees_with_a_plain_loop_over_every_design(name: str) -> None:
    instance = QUESTIONS[name]
    found, expected = search(instance, plausible), values_one_by_one(instance)
    assert_found(instance, found, expected)
    assert found.space.designs == sum(1 for _ in every_candidate(instance))
    assert found.stopped == "complete"


def test_memory_decides_in_one_of_these_questions() -> None:
    """Some designs of it fill the memory nearly, others nearly fit: a limit that is off by a tenth would be noticed."""
    shares = []
    for chosen in every_candidate(QUESTIONS["tight"]):
        [memory] = evaluate(QUESTIONS["tight"].workload, design_of(QUESTIONS["tight"], chosen)).limits
        shares.append(memory.share)
    assert any(0.9 < share <= 1.0 for share in shares)
    assert any(1.0 < share < 1.1 for share in shares)


@pytest.mark.parametrize("seeds", [SEEDS[:1], pytest.param(SEEDS[1:], marks=pytest.mark.slow)], ids=["some", "more"])
def test_the_oracle_agrees_with_a_plain_loop_on_random_questions(seeds: tuple[int, ...]) -> None:
    for seed in seeds:
        assert_the_oracle_agrees_with_a_plain_loop(seed)


def assert_the_oracle_agrees_with_a_plain_loop(seed: int) -> None:
    """Dense and sparse models, fixed and free hardware, all three objectives, loose and hard budgets."""
    instance = random_question(seed)
    found, expected = search(instance, plausible), values_one_by_one(instance)
    if expected:
        assert_found(instance, found, expected)
    else:
        assert (found.best, found.value, found.space.feasible) == (None, None, 0)
        assert found.conflicts == conflicts_one_by_one(instance)


def conflicts_in(result: DesignResult) -> tuple[Conflict, ...]:
    assert isinstance(result.proof, Enumerated)
    return result.proof.conflicts


def conflicts_one_by_one(instance: Instance) -> tuple[Conflict, ...]:
    """How many designs keep each limit, and the least share of it that any needs, by evaluating every design."""
    kept: dict[str, int] = {}
    share: dict[str, float] = {}
    for chosen in every_candidate(instance):
        try:
            design = design_of(instance, chosen)
        except ValueError:
            continue
        for limit in evaluate(instance.workload, design, instance.budget, instance.prices).limits:
            kept[limit.name] = kept.get(limit.name, 0) + limit.satisfied
            share[limit.name] = min(share.get(limit.name, float("inf")), limit.used / limit.available)
    order = ("die area", "package area", "reticle", "power", "power density", "memory")
    return tuple(Conflict(name, kept[name], share[name]) for name in order if name in kept)


def test_a_die_of_exactly_its_budget_in_decimals_keeps_it() -> None:
    """189.8 + 26.9 + 82 + 41 + 46.7 + 4 x 4.05 mm^2 are 402.6 mm^2, though not in floating point."""
    text = (
        "kind: codesign\nworkload: {model: deepflow-lstm, global_batch: 4096, precision: fp16}\n"
        "cluster: {devices: 64, devices_per_node: 1}\n"
        "technology: {base: v100-class, logic: 7nm, memory: hbm2e-16, network: step-4}\n"
        "budget: {die_area: 402.6 mm^2, package_area: 6000 mm^2, power: 3000 W}\n"
        "choices: {compute_area: [100 mm^2, 189.8 mm^2], registers_area: 26.9 mm^2, l1_area: 82 mm^2, l2_area: 41 mm^2,"
        " network_area: 46.7 mm^2, hbm_stacks: 4, split: rows-columns, rows: 8, columns: 8}\n"
    )
    dearer = crossopt.solve(text.replace("402.6", "403"))
    for name in ("exhaustive", "boxes"):
        answer = crossopt.solve(text, engine=name)
        assert (answer.proved, answer.value) == (True, dearer.value)
        assert crossopt.check(answer).accepted
    assert crossopt.solve(text.replace("402.6", "402.5999")).value > dearer.value


@pytest.mark.parametrize("budget", ["power: 100 W", "die_area: 300 mm^2", "package_area: 500 mm^2"])
def test_a_limit_that_no_design_keeps_is_told_with_the_least_violation(budget: str) -> None:
    """An A100 draws 400 W on 826 mm^2 in a package of 1584 mm^2, whatever the plan."""
    name, _, amount = budget.partition(": ")
    instance = read_instance(INSTANCES / "tiny.yaml", (f"budget.{name}={amount}",))
    result = answered(instance)
    assert (result.status, result.answer, result.bound, result.proved) == ("INFEASIBLE", None, None, True)
    conflicts = conflicts_in(result)
    assert conflicts == conflicts_one_by_one(instance)
    broken = next(conflict for conflict in conflicts if conflict.limit == name.replace("_", " "))
    used = {"power": 400.0, "die_area": 826.0, "package_area": 1584.0}[name]
    assert broken.kept_by == 0
    assert broken.least_share == pytest.approx(used / float(amount.split()[0]))


def test_a_model_that_fits_no_device_is_told_by_how_much() -> None:
    """175e9 weights of 18 bytes over eight devices are 394 GB for each, of 79.1 GiB."""
    instance = read_instance(INSTANCES / "tiny.yaml", ("workload.model=gpt3-175b", "tensor=4", "pipeline=2", "recompute=full"))
    [conflict] = conflicts_in(answered(instance))
    assert (conflict.limit, conflict.kept_by) == ("memory", 0)
    assert conflict.least_share is not None
    assert 394e9 / (79.1 * 2**30) < conflict.least_share < 1.3 * 394e9 / (79.1 * 2**30)


def test_rules_that_leave_no_plan_are_the_conflict() -> None:
    result = answered(read_instance(INSTANCES / "tiny.yaml", ("tensor=8", "pipeline=1")))
    assert result.status == "INFEASIBLE"
    assert "rule: tensor divides the 12 heads" in {conflict.limit for conflict in conflicts_in(result)}


def test_chips_of_which_none_can_be_built_are_the_conflict() -> None:
    result = answered(ask(TINY_FREE, "compute_area=0.001 mm^2"))
    assert result.status == "INFEASIBLE"
    [conflict] = conflicts_in(result)
    assert conflict.limit.startswith("chip: every chip has no cores")


@pytest.mark.parametrize("name", ["free", "lstm", "tiny"])
@pytest.mark.parametrize(("prices", "points", "combinations"), [(1, 1, 1), (10, 3, 5), (1 << 22, 1 << 14, 3)])
def test_the_size_of_the_blocks_does_not_matter(
    name: str, prices: int, points: int, combinations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = search(QUESTIONS[name], plausible)
    monkeypatch.setattr(engine, "PRICES", prices)
    monkeypatch.setattr(engine, "_POINTS", points)
    monkeypatch.setattr(space, "_FEW", 0)
    monkeypatch.setattr(space, "_COMBINATIONS", combinations)
    monkeypatch.setattr(space, "_KERNEL_COMBINATIONS", combinations)
    small = search(QUESTIONS[name], plausible)
    assert (small.value, small.space, small.conflicts) == (usual.value, usual.space, usual.conflicts)


def test_of_equal_designs_the_first_one_is_kept_and_all_are_counted() -> None:
    """With a single device in each group overlap and placement change nothing, so that every plan ties with others."""
    instance = read_instance(
        INSTANCES / "tiny.yaml",
        (
            "tensor=1",
            "pipeline=1",
            "microbatch=1",
            "recompute=none",
            "placement=[tensor-context-data-pipeline, tensor-context-pipeline-data]",
        ),
    )
    found = search(instance, plausible)
    assert (found.space.feasible, found.space.ties) == (2, 2)
    assert found.best == next(every_candidate(instance))


def test_no_time_at_all_gives_no_design_and_claims_nothing() -> None:
    result = answered(QUESTIONS["free"], limits=Limits(seconds=0.0))
    assert (result.status, result.stopped, result.proved, result.bound, result.value) == ("UNKNOWN", "time limit", False, None, None)


def test_a_time_limit_keeps_the_best_design_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock jumps past the deadline after the first block."""
    monkeypatch.setattr(engine, "_POINTS", 5)
    monkeypatch.setattr(engine, "_FIRST", 1)
    seen: list[Progress] = []
    monkeypatch.setattr(engine, "monotonic", lambda: 100.0 if seen else 0.0)
    found = search(QUESTIONS["free"], seen.append, deadline=50.0)
    assert found.stopped == "time limit"
    assert found.best is not None
    assert found.value == values_one_by_one(QUESTIONS["free"])[found.best]


def test_an_interrupt_returns_the_best_design_so_far_verified_and_without_a_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_POINTS", 6)

    def impatient(progress: Progress) -> None:
        if progress.best is not None:
            raise KeyboardInterrupt

    result = answered(QUESTIONS["free"], watch=impatient)
    assert (result.status, result.stopped, result.proved, result.bound, result.gap) == ("FEASIBLE", "interrupted", False, None, None)
    assert result.answer is not None
    assert result.proof is None
    assert result.value is not None
    assert result.value >= (search(QUESTIONS["free"], plausible).value or 0.0)


def test_progress_grows_to_the_whole_and_counts_every_design(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_POINTS", 5)
    monkeypatch.setattr(space, "_FEW", 0)
    monkeypatch.setattr(space, "_COMBINATIONS", 3)
    seen: list[Progress] = []
    found = search(QUESTIONS["free"], seen.append)
    assert [share_done(progress) for progress in seen] == sorted(share_done(progress) for progress in seen)
    assert seen[-1].label == f"100%  {found.space.designs:,} designs"


def test_the_trace_only_ever_improves() -> None:
    result = answered(random_question(0))
    values = [best for _, best, _ in result.trace if best is not None]
    assert values == sorted(values, reverse=True)
    assert values[-1] == result.value


@pytest.mark.parametrize("setting", ["cluster.node.bandwidth=1e-320 GB/s", "cluster.node.latency=1e305 s"])
def test_figures_that_overflow_the_model_are_an_error_and_no_answer(setting: str) -> None:
    """A not-a-number compares with nothing, so that a minimum over it would be wrong in silence."""
    with pytest.raises(ModelError, match="no finite value"):
        answered(read_instance(INSTANCES / "tiny.yaml", (setting,)))


def _priced_otherwise(monkeypatch: pytest.MonkeyPatch, change: Callable[[Array], Array]) -> tuple[DesignResult, tuple[str, ...]]:
    """The answer to the smallest question by an enumeration that has other prices than the model, and what a check with them refuses."""

    def wrong(*arguments: Any) -> tuple[Array, Array, Limited]:  # noqa: ANN401
        times, found, limited = times_and_values(*arguments)
        return times, change(found), limited

    with monkeypatch.context() as during:
        during.setattr(engine, "times_and_values", wrong)
        result = answered(QUESTIONS["tiny"])
        return result, checked(result).refused


@pytest.mark.parametrize("towards", [0.0, inf])
def test_an_enumeration_that_rounds_otherwise_than_the_judge_keeps_its_answer(monkeypatch: pytest.MonkeyPatch, towards: float) -> None:
    """With the judge's value, a bound that is lower by the difference, and no claim of an optimum; a check finds nothing wrong."""
    best = answered(QUESTIONS["tiny"])
    result, refused = _priced_otherwise(monkeypatch, lambda values: np.nextafter(values, towards))
    assert (result.value, result.answer) == (best.value, best.answer)
    assert result.bound is not None
    assert result.value is not None
    assert result.bound == less_rounding(result.value) < result.value
    assert (result.proved, result.status) == (False, "FEASIBLE")
    assert [note for note in result.notes if "lowered by the possible rounding error" in note]
    assert refused == ()


@pytest.mark.parametrize("factor", [0.99, 1.01])
def test_an_enumeration_that_the_full_model_contradicts_tells_no_bound(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    result, refused = _priced_otherwise(monkeypatch, lambda values: values * factor)
    assert result.value == answered(QUESTIONS["tiny"]).value
    assert (result.bound, result.proof, result.proved, result.status) == (None, None, False, "FEASIBLE")
    assert [note for note in result.notes if "more than rounding" in note]
    assert refused == checked(result).refused == ()


def test_the_best_design_of_a_larger_space_is_never_worse() -> None:
    """More options can only help: the narrow question's designs are all in the wide one."""
    narrow = search(read_instance(INSTANCES / "tiny.yaml"), plausible).value
    wide = search(read_instance(INSTANCES / "tiny.yaml", ("microbatch=[1, 2, 4, 8]", "overlap=[none, data]")), plausible).value
    assert narrow is not None
    assert wide is not None
    assert wide <= narrow


# --- what near designs have in common ------------------------------------------------------------------------------------------------


def test_some_choices_differ_near_the_best_and_others_do_not() -> None:
    """The comparison with a plain loop says little unless both happen, for chips and for plans."""
    kinds = set()
    for seed in SEEDS:
        found = search(random_question(seed), plausible)
        for choice in found.space.near:
            near = len(choice.within((found.value or 0.0) * 1.05))
            kinds.add((choice.name in dict(random_question(seed).plan_options), near == 1, near == choice.of))
    assert kinds >= {(True, True, False), (True, False, True), (False, True, False), (False, False, True)}


# --- designs within the model's error -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("error", "some"), [(0.0, 0), (0.02, 0), (0.07, 0), (0.3, 1), (0.8, 3), (5.0, 15)])
def test_designs_within_the_error_are_counted_however_large_it_is(error: float, some: int) -> None:
    """More than the 5 % that are always counted, too; the count grows from the best alone to nearly all 24 designs."""
    instance = QUESTIONS["tiny"]
    assert isinstance(instance.hardware, Hardware)
    wide = replace(instance, hardware=replace(instance.hardware, error=error))
    found, expected = search(wide, plausible), values_one_by_one(instance)
    assert_found(wide, found, expected)
    assert found.space.error == error
    assert found.space.within_error is not None
    assert found.space.within_error > some


def test_the_error_is_the_calibrations_and_there_is_none_where_nothing_was_measured() -> None:
    """The V100 and free chips were not fitted, newer devices carry constants of another; nobody measured energies."""
    calibration = device("a100-80g").calibration
    assert calibration is not None
    assert search(QUESTIONS["tiny"], plausible).space.error == calibration.error
    assert search(QUESTIONS["free"], plausible).space.error is None
    for setting in ("hardware=h100-sxm", "objective=energy_per_token", "efficiency={matrix: 0.8}"):
        space = search(read_instance(INSTANCES / "tiny.yaml", (setting,)), plausible).space
        assert (space.error, space.within_error) == (None, None), setting


# The shipped question `tiny` by paper and pencil: how many designs it has, what one of them holds, and what none can beat.
#
# GPT-3 125M: 12 layers of width h = 768 with a = 12 heads and f = 3072, vocabulary V = 50257, sequence s = 2048 (Brown et al. 2020).
# Eight A100 of 312 TFLOP/s and 79.1 GiB; a global batch of 64 samples.

TINY = read_instance(INSTANCES / "tiny.yaml")

LAYER_WEIGHTS = 7_087_872
# queries, keys, values, output:  4 h^2 = 2,359,296 and biases 4 h = 3,072
# feed-forward:                   2 h f = 4,718,592 and biases f + h = 3,840
# two norms, scale and shift:     4 h = 3,072
# together                        7,087,872
OTHER_WEIGHTS = 40_171_776
# token table V h = 38,597,376, positions s h = 1,572,864, final norm 2 h = 1,536


def designs() -> list[Candidate]:
    return [candidate(plans, row, 0) for plans in plan_blocks(TINY) for row in range(len(plans))]


def evaluation(plan: Plan) -> Evaluation:
    return verify(TINY, Candidate(0, plan)).details


def test_there_are_six_layouts_and_twenty_four_designs() -> None:
    """Tensor 1, 2, 4 times pipeline 1, 2 leave data 8, 4, 4, 2, 2, 1: six layouts, times two microbatches, times two recomputations.

    1, 2 and 4 divide 12 heads, 768 and 3072; two stages hold 12 layers; data x microbatch is at most 8 x 2, which divides 64: every
    combination is a plan.
    """
    layouts = {(1, 1, 8), (1, 2, 4), (2, 1, 4), (2, 2, 2), (4, 1, 2), (4, 2, 1)}
    modes: tuple[str, ...] = ("none", "full")
    expected = {
        Plan(tensor=tensor, pipeline=pipeline, data=data, microbatch=microbatch, recompute=recompute)
        for (tensor, pipeline, data), microbatch, recompute in product(layouts, (1, 2), modes)
    }
    assert len(expected) == 24
    assert {chosen.plan for chosen in designs()} == expected
    space = search(TINY, lambda _: None).space
    assert (space.designs, space.feasible, space.unbuilt) == (24, 24, 0)


def test_the_model_has_125_million_weights() -> None:
    """12 x 7,087,872 + 40,171,776 = 125,226,240."""
    assert isinstance(TINY.workload, Transformer)
    assert parameters(TINY.workload) == 12 * LAYER_WEIGHTS + OTHER_WEIGHTS == 125_226_240


def test_the_memory_of_the_undivided_model_with_full_recomputation_is_the_sum_of_its_parts() -> None:
    """Data 8, microbatch 1: every device holds all 125,226,240 weights."""
    memory = dict(evaluation(Plan(data=8, recompute="full")).memory)
    assert memory["weights"] == 2 * 125_226_240
    assert memory["gradients"] == 4 * 125_226_240
    assert memory["optimizer"] == 12 * 125_226_240  # single-precision weights and two moments of Adam
    tokens, width, vocabulary = 2048, 768, 50257
    inputs = 12 * 2 * tokens * width  # the input of each layer, two bytes a value
    ends = 4 * tokens * (width + vocabulary)  # input of the head and logits, four bytes a value
    assert memory["activations"] == inputs + ends
    assert memory["reserved"] == 4 * 2**30
    # The working set: what the loss takes beside the 4 bytes of a logit that are kept, or what the backward pass computes anew of one
    # layer, if that is more. Bytes a token and unit of width: 8 for what norms and residuals keep, 8 for queries, keys, values and their
    # result, 16 for both sides of the GELU, less 2 for the input that was kept all along; and 4 bytes a token and head for fused attention.
    brought_back = tokens * width * (8 + 8 + 16 - 2) + 4 * tokens * 12
    assert memory["working"] == (6 - 4) * tokens * 50_257 > brought_back


def test_tensor_parallel_ranks_share_all_weights_but_norms_and_positions() -> None:
    """Tensor 4: norms (3,072 a layer, 1,536 at the end), positions and nothing else are on every rank.

    Weights of a rank: 12 ((7,087,872 - 3,072) / 4 + 3,072) + 38,597,376 / 4 + 1,572,864 + 1,536 = 32,515,008.
    """
    memory = dict(evaluation(Plan(tensor=4, data=2)).memory)
    assert memory["weights"] == 2 * (12 * (7_084_800 // 4 + 3_072) + 38_597_376 // 4 + 1_572_864 + 1_536) == 2 * 32_515_008


def test_no_design_beats_the_arithmetic_at_the_peak() -> None:
    """6 B s (12 (4 h^2 + 2 h f + 2 s h) + h V) = 6 x 131,072 x 161,280,768 FLOPs on eight times 312 TFLOP/s are 50.8 ms."""
    products = 12 * (2_359_296 + 4_718_592 + 2 * 2048 * 768) + 38_597_376
    assert products == 161_280_768
    flops = 6 * 64 * 2048 * products
    floor = flops / (8 * 312e12)
    times = [evaluation(chosen.plan).step_time for chosen in designs()]  # type: ignore[arg-type]
    assert all(time > floor for time in times)
    best = min(times)
    assert evaluation(Plan(data=8)).flops == flops
    assert floor < best < 4 * floor


def test_recomputation_never_pays_where_memory_is_plenty() -> None:
    """Every design without it fits, and it only adds a forward pass."""
    for chosen in designs():
        plan = chosen.plan
        assert isinstance(plan, Plan)
        if plan.recompute == "full":
            without = Plan(plan.tensor, pipeline=plan.pipeline, data=plan.data, microbatch=plan.microbatch)
            assert evaluation(without).step_time < evaluation(plan).step_time


def test_the_optimum_is_the_least_of_the_twenty_four() -> None:
    """A model of a quarter of a gigabyte on one node needs no splitting: data parallel alone, and the larger microbatch."""
    values = {chosen: verify(TINY, chosen).value for chosen in designs()}
    found = search(TINY, lambda _: None)
    assert found.value == min(values.values())
    assert found.best is not None
    assert values[found.best] == found.value
    assert found.best.plan == Plan(data=8, microbatch=2)


@pytest.mark.parametrize("tensor", [1, 2, 4])
def test_two_stages_of_one_microbatch_each_wait_for_each_other(tensor: int) -> None:
    """The share of the bubble falls with the microbatches: (p - 1) / m = 1 / (64 / (data x microbatch))."""
    data = 8 // (2 * tensor)
    one, two = (evaluation(Plan(tensor=tensor, pipeline=2, data=data, microbatch=size)) for size in (1, 2))
    bubbles = [dict(one.breakdown)["pipeline bubble"] / one.step_time, dict(two.breakdown)["pipeline bubble"] / two.step_time]
    assert 0.0 < bubbles[0] < bubbles[1]


# PlanCosts of blocks of designs: memory without time is the memory of the price, and no value that is none gets through.


@pytest.mark.parametrize(
    ("instance", "price"),
    [(ask(LSTM), lstm.price), (ask(GEMM), distributed_product.price), (read_instance(INSTANCES / "tiny.yaml"), transformer.price)],
)
def test_memory_without_time_is_the_memory_of_the_price(instance: Instance, price: Callable[..., PlanCosts]) -> None:
    plans = joined(list(plan_blocks(instance)))
    prices = price(instance.workload, device_at(instance, 0), instance.cluster, plans)
    assert len(plans) > 1
    assert np.array_equal(memory_of(instance.workload, plans), prices.memory[:, 0])


@pytest.mark.parametrize(
    "instance",
    [
        read_instance(INSTANCES / "tiny.yaml"),
        slow_link("recompute=[none, selective, full]", "recompute_layers=[0, 1]", "offload=[none, activations]"),
    ],
)
def test_the_thriftiest_member_is_that_of_each_mode_on_its_own(instance: Instance) -> None:
    """To the last bit, though the modes are looked at together."""
    blocks = [block.heads for block in family_blocks(instance)]
    heads = with_settings(joined_tables([some for some in blocks if isinstance(some, Plans)]), {"offload": 0})
    offload = reduce(or_, codes_of(instance, "offload"))
    modes = [with_settings(heads, {"offload": offload, "recompute": mode}) for mode in codes_of(instance, "recompute")]
    assert len(modes) > 1
    assert np.array_equal(least_memory_of(instance, heads), np.min([memory_of(instance.workload, plans) for plans in modes], axis=0))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_what_fits_by_bounds_and_by_the_thriftiest_mode_alone_is_what_fits(share: float) -> None:
    """On devices with more and with less room than heads need, alone and together; bounds are below the least of all modes."""
    instance = stack_question("", experts=True)
    heads = joined_tables([block.heads for block in family_blocks(instance) if isinstance(block.heads, Plans)])
    heads = plan_rows(heads, np.arange(0, len(heads), len(heads) // 4_000 + 1))
    assert isinstance(instance.workload, Transformer)
    least, device = least_memory_of(instance, heads), device_at(instance, 0)
    rooms = [float(np.quantile(least, of)) + device.reserved_memory for of in (share, 0.3)]
    devices = [replace(device, dram=replace(device.dram, capacity=room)) for room in rooms]
    for some in (devices[:1], devices):
        found = deciding_memory_of(instance, heads, some)
        for one in some:
            assert np.array_equal(found + one.reserved_memory <= one.dram.capacity, least + one.reserved_memory <= one.dram.capacity)
            assert 0 < (least + one.reserved_memory <= one.dram.capacity).sum() < len(least)
    thrifty = with_settings(heads, {"offload": reduce(or_, codes_of(instance, "offload"))})
    assert (memory_without_layers(instance.workload, sharding(instance.workload, thrifty))[:, 0] <= least).all()


@pytest.mark.parametrize("experts", [False, True])
def test_memory_is_that_of_each_plan_though_equal_ones_are_looked_at_once(monkeypatch: pytest.MonkeyPatch, experts: bool) -> None:
    """To the last bit, with every setting open."""
    instance = stack_question("", experts=experts)
    plans = draw_plans(instance, np.random.default_rng(1), 4_000)
    assert isinstance(plans, Plans)
    needed, least = memory_of(instance.workload, plans), least_memory_of(instance, plans)
    assert len(plans) < objective._MANY
    monkeypatch.setattr(objective, "_MANY", 1)
    assert len(distinct(*(getattr(plans, name) for name in objective._KEPT_BY))[0]) < len(plans)
    assert np.array_equal(memory_of(instance.workload, plans), needed)
    assert np.array_equal(least_memory_of(instance, plans), least)


@pytest.mark.parametrize("setting", ["cluster.node.latency=1e305 s", "cluster.node.bandwidth=1e-320 GB/s"])
def test_a_value_that_is_not_finite_is_an_error(setting: str) -> None:
    instance = read_instance(INSTANCES / "tiny.yaml", (setting,))
    space = grid(instance)
    with pytest.raises(ModelError, match="no finite value"):
        values_of(instance, corners(instance, space, full_box(space)), joined(list(plan_blocks(instance))))


def test_chips_that_are_none_have_no_value() -> None:
    """Without cores nothing is computed, and nothing is said of it either."""
    for question in (TINY_FREE, LSTM):
        instance = ask(question, "compute_area=0.001 mm^2")
        space = grid(instance)
        assert np.all(values_of(instance, corners(instance, space, full_box(space)), joined(list(plan_blocks(instance)))) == np.inf)


# A price does not depend on the plans and chips that are priced beside it, to the last bit.
#
# A step's price is a formula of numbers. Blocks of plans and chips only compute it for many of these at once; so every figure of a plan on
# a chip has the same bits alone, in any block, in any order, and by the judge, who looks at one design.

_GATHERED_BEHIND = """\
kind: codesign
workload: {{model: {model}, global_batch: {batch}, sequence: {sequence}}}
cluster: {{devices: {devices}}}
hardware: h100-sxm
stack: megatron-core
choices:
  tensor: [1, 2, 4, 8]
  pipeline: [1, 2, 4, 8]
  overlap: [none, both]
  sequence_parallel: [false, true]
  zero: 1
  microbatch: [1, 2]
  recompute: [none, full]
"""


@pytest.mark.parametrize(("model", "batch", "sequence", "devices"), [("gpt3-13b", 128, 2048, 8), ("llama3-8b", 24, 1024, 16)])
def test_a_best_plan_without_overlap_is_priced_alike_beside_plans_with_it(model: str, batch: int, sequence: int, devices: int) -> None:
    """Megatron-Core gathers updated weights behind the first forward pass where overlap is on."""
    question = ask(_GATHERED_BEHIND.format(model=model, batch=batch, sequence=sequence, devices=devices))
    result = answered(question)
    assert result.proved
    assert checked(result).refused == ()
    plans, space = joined(list(plan_blocks(question))), grid(question)
    chips = corners(question, space, full_box(space))
    together = values_of(question, chips, plans)
    alone = [values_of(question, chips, rows_of(plans, np.array([row]))) for row in range(len(plans))]
    assert np.array_equal(together, np.concatenate(alone))


ALONE = ("plan alone", "chip alone", "both alone")
PLANS, CHIPS = 64, 32
"""At the most, of a drawn question."""
ROWS, COLUMNS, SINGLE, JUDGED = 8, 6, 2, 3
"""Of these so many plans alone on all chips, chips alone with all plans, plans alone on one chip, and designs that the judge prices."""


def test_a_price_is_the_same_alone_in_a_block_and_by_the_judge() -> None:
    pairs, faults = compared(range(15))
    assert not faults
    assert min(pairs[way] for way in (*ALONE, "shuffled", "split", "judged", "generated alone")) > 20


@pytest.mark.slow
def test_100000_prices_are_the_same_alone_in_a_block_and_by_the_judge() -> None:
    pairs, start = Counter[str](), 1_000
    while sum(pairs[way] for way in ALONE) < 100_000:
        more, faults = compared(range(start, start + 50))
        assert not faults
        pairs, start = pairs + more, start + 50
    print(dict(pairs))


def compared(seeds: range) -> tuple[Counter[str], list[str]]:
    """How many pairs of a plan and a chip were priced twice in each way, and each figure that differs, with its question."""
    pairs, faults = Counter[str](), list[str]()
    for seed in seeds:
        random = np.random.default_rng([seed, 7])
        question = any_question(seed)
        question = replace(question, goal=Goal(1e12, int(question.workload.tokens), question.cluster.devices, rent=2.79, lasting=0.97))
        plans, points = _plans(question, random), _points(question, random)
        with np.errstate(all="ignore"):
            if len(plans) and len(points):
                space = grid(question)
                places = np.stack([option_indices(space, point) for point in points.tolist()])
                boxed = corners(question, space, Boxes(places, places))
                every = _figures(question, boxed.hardware, plans)
                found = (*_again(question, random, plans, points, every), *_judged(question, random, plans, points, boxed, every))
                faults += [f"seed {seed}: {way}: {name}" for way, _, names in found for name in names]
                pairs.update({"questions": 1})
                for way, count, _ in found:
                    pairs[way] += count
    return pairs, faults


def _plans(question: Instance, random: np.random.Generator) -> AnyPlans:
    drawn = draw_plans(question, random, 400)
    return rows_of(drawn, random.permutation(len(drawn))[:PLANS])


def _points(question: Instance, random: np.random.Generator) -> Ints:
    """Points of chips that can be built."""
    every = hardware_points(question)
    drawn = np.unique(random.integers(every, size=3 * CHIPS)) if every > 3 * CHIPS else np.arange(every)
    built = np.broadcast_to(buildable(chips_at(question, drawn).hardware), drawn.shape)
    return random.permutation(drawn[built])[:CHIPS]


BlockInvarianceFound = tuple[str, int, list[str]]
"""A way to price again, how many pairs were, and the figures that differ."""


def _again(
    question: Instance, random: np.random.Generator, plans: AnyPlans, points: Ints, every: dict[str, Array]
) -> Iterator[BlockInvarianceFound]:
    chips = chips_at(question, points).hardware
    yield "chip, not box", len(plans) * len(points), _unlike(every, _figures(question, chips, plans))
    alone = {place: chips_at(question, points[[place]]).hardware for place in random.permutation(len(points))[:COLUMNS].tolist()}
    for place, chip in alone.items():
        yield "generated alone", 1, _unlike(_leaves(take(chips, np.array([place]))), _leaves(chip))
        yield "chip alone", len(plans), _unlike(_part(every, slice(None), [place]), _figures(question, chip, plans))
    for row in random.permutation(len(plans))[:ROWS]:
        one = rows_of(plans, np.array([row]))
        yield "plan alone", len(points), _unlike(_part(every, [row], slice(None)), _figures(question, chips, one))
        for place in [*alone][:SINGLE]:
            yield "both alone", 1, _unlike(_part(every, [row], [place]), _figures(question, alone[place], one))
    rows, columns = random.permutation(len(plans)), random.permutation(len(points))
    shuffled = _figures(question, take(chips, columns), rows_of(plans, rows))
    yield "shuffled", len(plans) * len(points), _unlike(_part(_part(every, rows, slice(None)), slice(None), columns), shuffled)
    some = rows[: int(random.integers(1, len(rows) + 1))]
    yield "split", len(some) * len(points), _unlike(_part(every, some, slice(None)), _figures(question, chips, rows_of(plans, some)))


def _judged(
    question: Instance, random: np.random.Generator, plans: AnyPlans, points: Ints, boxed: Corners, every: dict[str, Array]
) -> Iterator[BlockInvarianceFound]:
    every = every | {"limited value": values_of(question, boxed, plans)}
    for _ in range(JUDGED):
        row, place = int(random.integers(len(plans))), int(random.integers(len(points)))
        verdict = verify(question, candidate(plans, row, int(points[place])))
        found, needed = verdict.details, 0.0
        for _, size in found.memory[:-1]:  # the last is what the framework reserves
            needed += size
        figures = {name: OBJECTIVES[name].one(question, found) for name in _named(question)}
        figures |= {"energy": found.energy, "memory": needed, "limited value": np.inf if verdict.violations else verdict.value}
        yield "judged", 1, _unlike(figures, _part(every, [row], [place]))


def _figures(question: Instance, chips: Hardware, plans: AnyPlans) -> dict[str, Array]:
    """All that is said of plans (rows) on chips (columns)."""
    taken = spent(question.workload, chips, question.cluster, plans)
    memory, host = memory_of(question.workload, plans), host_memory_of(question.workload, plans)
    found = {name: values(replace(question, objective=name), taken, chips) for name in _named(question)}
    found |= {"energy": taken.energy, "memory": memory[:, None], "host": host[:, None]}
    return {name: np.broadcast_to(some, taken.step_time.shape) for name, some in found.items()}


def _named(question: Instance) -> list[str]:
    """Objectives by what one set of constants says."""
    unpriced = {*(() if question.prices else ("cost_per_token",)), *(() if question.goal else ("run_cost",))}
    unpriced |= set() if question.sites else {"mean_step_time"}
    return [name for name in OBJECTIVES if name not in {"worst_step_time", *unpriced}]


def _part(figures: dict[str, Array], rows: Any, columns: Any) -> dict[str, Array]:  # noqa: ANN401 - whatever indexes an array
    return {name: some[rows][:, columns] for name, some in figures.items()}


def _unlike(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [name for name, some in one.items() if not np.array_equal(np.squeeze(some), np.squeeze(other[name]), equal_nan=True)]


def _leaves(record: Any, path: str = "") -> dict[str, Any]:  # noqa: ANN401 - the parts of a chip
    """Every figure of a chip by its name."""
    found: dict[str, Any] = {}
    for field in fields(record):
        part, name = getattr(record, field.name), f"{path}{field.name}"
        if field.name == "links":
            found |= {key: figure for place, link in enumerate(part) for key, figure in _leaves(link, f"{name}[{place}].").items()}
        elif is_dataclass(part) and not isinstance(part, Efficiency):
            found |= _leaves(part, f"{name}.")
        elif isinstance(part, int | float | np.ndarray):
            found[name] = part
    return found


@pytest.mark.parametrize(("reticle", "found"), [(542, "OPTIMAL"), (541, "INFEASIBLE")])
def test_dies_of_exactly_the_reticle_are_within_it(reticle: int, found: str) -> None:
    """In floats a third of 1,626 mm^2 is above 542 mm^2."""
    text = f"""
kind: codesign
workload: {{transformer: {{layers: 4, hidden: 512, heads: 8, ffn: 1024, vocabulary: 8192, sequence: 512}}, global_batch: 16}}
cluster: {{devices: 8, devices_per_node: 2}}
technology: accelerator-7nm
budget: {{die_area: 5000 mm^2, package_area: 20000 mm^2, power: 2000 W, reticle: {reticle} mm^2, power_density: 9 W/mm^2}}
choices: {{die_area: 1626 mm^2, dies: 3, hbm_stacks: 6, compute_power: 300 W, tensor: [1, 2]}}
"""
    for by in ("exhaustive", "boxes"):
        assert answered(ask(text), by).status == found
