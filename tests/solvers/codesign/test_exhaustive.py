"""The oracle: it finds what a plain loop over every design finds, whatever its blocks are, and says so when it did not look at all."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from math import inf
from typing import Any

import numpy as np
import pytest

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.evaluate import evaluate
from crossopt.crossflow.hardware import Hardware
from crossopt.instances.catalogue.registry import device
from crossopt.instances.codesign import space
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import hardware_choice, hardware_points, plan_blocks, plan_values
from crossopt.instances.errors import ModelError
from crossopt.solvers.answer import Limits, Progress, less_rounding
from crossopt.solvers.codesign import exhaustive as engine
from crossopt.solvers.codesign.answer import Candidate, DesignResult, candidate, design_of
from crossopt.solvers.codesign.exhaustive import Found, search
from crossopt.solvers.codesign.objective import value
from crossopt.solvers.codesign.pricing import Limited, times_and_values
from crossopt.solvers.proofs import Conflict, Enumerated
from tests.once import once
from tests.paths import INSTANCES
from tests.solvers.codesign.asking import answered, checked
from tests.solvers.codesign.questions import GEMM, LSTM, TINY_FREE, ask, random_question

SEEDS = (1, 3, 5, 8, 25, 29)
"""Of few designs, since each is priced on its own; one question has none."""
QUESTIONS = {
    "tiny": read_instance(INSTANCES / "tiny.yaml"),
    "tight": read_instance(INSTANCES / "tiny.yaml", ("workload.model=gpt3-13b", "microbatch=[1, 2, 4]", "zero=[0, 1]")),
    "free": ask(TINY_FREE),
    "lstm": ask(LSTM),
    "gemm": ask(GEMM),
}


def silent(progress: Progress) -> None:
    assert 0.0 < share_done(progress) <= 1.0


def share_done(progress: Progress) -> float:
    return float(progress.words.split()[0].removesuffix("%")) / 100.0


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
    found, expected = search(instance, silent), values_one_by_one(instance)
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
    found, expected = search(instance, silent), values_one_by_one(instance)
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
            kept[limit.name] = kept.get(limit.name, 0) + limit.kept
            share[limit.name] = min(share.get(limit.name, float("inf")), limit.used / limit.available)
    order = ("die area", "package area", "reticle", "power", "power density", "memory")
    return tuple(Conflict(name, kept[name], share[name]) for name in order if name in kept)


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
    usual = search(QUESTIONS[name], silent)
    monkeypatch.setattr(engine, "PRICES", prices)
    monkeypatch.setattr(engine, "_POINTS", points)
    monkeypatch.setattr(space, "_FEW", 0)
    monkeypatch.setattr(space, "_COMBINATIONS", combinations)
    monkeypatch.setattr(space, "_KERNEL_COMBINATIONS", combinations)
    small = search(QUESTIONS[name], silent)
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
    found = search(instance, silent)
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
    assert result.value >= (search(QUESTIONS["free"], silent).value or 0.0)


def test_progress_grows_to_the_whole_and_counts_every_design(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_POINTS", 5)
    monkeypatch.setattr(space, "_FEW", 0)
    monkeypatch.setattr(space, "_COMBINATIONS", 3)
    seen: list[Progress] = []
    found = search(QUESTIONS["free"], seen.append)
    assert [share_done(progress) for progress in seen] == sorted(share_done(progress) for progress in seen)
    assert seen[-1].words == f"100%  {found.space.designs:,} designs"


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
    assert [note for note in result.notes if "lowered by what rounding may be" in note]
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
    narrow = search(read_instance(INSTANCES / "tiny.yaml"), silent).value
    wide = search(read_instance(INSTANCES / "tiny.yaml", ("microbatch=[1, 2, 4, 8]", "overlap=[none, data]")), silent).value
    assert narrow is not None
    assert wide is not None
    assert wide <= narrow


# --- what near designs have in common ------------------------------------------------------------------------------------------------


def test_some_choices_differ_near_the_best_and_others_do_not() -> None:
    """The comparison with a plain loop says little unless both happen, for chips and for plans."""
    kinds = set()
    for seed in SEEDS:
        found = search(random_question(seed), silent)
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
    found, expected = search(wide, silent), values_one_by_one(instance)
    assert_found(wide, found, expected)
    assert found.space.error == error
    assert found.space.within_error is not None
    assert found.space.within_error > some


def test_the_error_is_the_calibrations_and_there_is_none_where_nothing_was_measured() -> None:
    """The V100 and free chips were not fitted, newer devices carry constants of another; nobody measured energies."""
    calibration = device("a100-80g").calibration
    assert calibration is not None
    assert search(QUESTIONS["tiny"], silent).space.error == calibration.error
    assert search(QUESTIONS["free"], silent).space.error is None
    for setting in ("hardware=h100-sxm", "objective=energy_per_token", "efficiency={matrix: 0.8}"):
        space = search(read_instance(INSTANCES / "tiny.yaml", (setting,)), silent).space
        assert (space.error, space.within_error) == (None, None), setting
