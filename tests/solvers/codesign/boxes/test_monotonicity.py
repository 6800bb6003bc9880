"""Before boxes prove anything: a model that is not monotone on the question is refused by name, and one that is never is."""

from dataclasses import replace

import numpy as np
import pytest

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.bill import Spent
from crossopt.crossflow.hardware import Hardware
from crossopt.instances.catalogue.registry import ladder, names
from crossopt.instances.codesign import asked_before, plan_groups
from crossopt.instances.codesign.boxes import corners, grid, whole
from crossopt.instances.codesign.instance import Instance, Portfolio
from crossopt.instances.codesign.question import read_asked
from crossopt.instances.codesign.space import plan_blocks
from crossopt.instances.errors import RefusedError
from crossopt.solvers.codesign import pricing
from crossopt.solvers.codesign.baselines.recipes import recipes_baselines
from crossopt.solvers.codesign.boxes import search as guard
from crossopt.solvers.codesign.boxes.search import refuse_broken_bounds
from crossopt.solvers.codesign.exhaustive import search
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.codesign.pricing import values_of
from crossopt.solvers.family import judge_baseline
from tests.offloading_questions import slow_link
from tests.solvers.codesign.asking import answered, checked
from tests.solvers.codesign.questions import LSTM, TINY_FREE, ask, random_question

true_spent = pricing.spent


def silent(progress: object) -> None:
    del progress


def slower_with(resource: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time that rises with a resource, by a tenth from none of it to a lot."""

    def spent(workload: object, hardware: Hardware, *others: object) -> Spent:
        figures: dict[str, Array] = {
            "stacks": np.asarray(hardware.dram.capacity) / 100e9,
            "peak": np.asarray(hardware.throughput) / 1e15,
        }
        taken: Spent = true_spent(workload, hardware, *others)  # type: ignore[arg-type]
        return replace(taken, step_time=taken.step_time * (1.0 + 2.0 * figures[resource]))

    monkeypatch.setattr(pricing, "spent", spent)
    monkeypatch.setattr(asked_before, "_LAST", 0)


@pytest.mark.parametrize("engine", ["boxes", "milp", "cpsat"])
def test_a_model_in_which_time_rises_with_a_choice_is_refused_by_its_name(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    slower_with("stacks", monkeypatch)
    with pytest.raises(RefusedError, match=r"step time rises with hbm_stacks on the technology accelerator-7nm; use --engine exhaustive"):
        answered(ask(TINY_FREE), engine)


@pytest.mark.parametrize("engine", ["boxes", "milp"])
def test_a_group_of_plans_with_a_member_that_is_faster_than_its_head_is_refused(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if full recomputation were never faster, which it is where every option moves what it computes again."""
    asked = slow_link()
    assert answered(asked, engine).optimal
    monkeypatch.setattr(asked_before, "_LAST", 0)
    for module in (plan_groups, pricing, guard):
        monkeypatch.setattr(module, "concessions_of", lambda instance: ("recompute", "overlap", "offload"))
    with pytest.raises(RefusedError, match=r"recompute full, .* has less step time than the least of each; use --engine exhaustive"):
        answered(asked, engine)


def test_the_choices_behind_a_resource_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The peak follows from power, and from area where power is there for it."""
    slower_with("peak", monkeypatch)
    with pytest.raises(RefusedError, match="compute_power"):
        refuse_broken_bounds(ask(TINY_FREE, "compute_area=400 mm^2", "compute_power=[50 W, 100 W, 200 W, 390 W]"))


def test_without_the_look_a_false_bound_would_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best design has few stacks; the best chip of the box of all chips has many, and every plan is slower there."""
    slower_with("stacks", monkeypatch)
    instance = ask(TINY_FREE, "compute_area=400 mm^2", "compute_power=100 W")
    true, space = search(instance, silent).value, grid(instance)
    bound = min(float(values_of(instance, corners(instance, space, whole(space)), plans).min()) for plans in plan_blocks(instance))
    assert true is not None
    assert bound > true


def test_a_tree_is_no_proof_where_bounds_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = ask(TINY_FREE)
    result = answered(instance, "boxes")
    slower_with("stacks", monkeypatch)
    rivals = tuple(judge_baseline(FAMILY.judge, instance, rival) for rival in recipes_baselines(instance))
    result = replace(result, rivals=rivals)  # which are chosen by these prices too
    assert any("bounds prove nothing here" in reason for reason in checked(result).refused)


def test_a_host_too_small_for_a_plan_hides_it_from_no_look() -> None:
    """Without limits there is room for what it offloads as well."""
    instance = ask(TINY_FREE, "workload.model=gpt3-13b", "cluster.host={memory: 1 MiB, bandwidth: 20 GB/s}", "offload=[all]", "pipeline=1")
    assert search(instance, silent).value is None
    space, free = grid(instance), guard._without_limits(instance)
    assert all(np.isfinite(values_of(free, corners(free, space, whole(space)), plans)).all() for plans in plan_blocks(free))
    refuse_broken_bounds(instance)


def questions() -> list[Instance]:
    own = [ask(TINY_FREE), ask(LSTM), *map(random_question, range(12))]
    objectives = [ask(TINY_FREE, f"objective={name}") for name in ("energy_per_token", "rated_energy_per_token", "die_area", "power")]
    technologies = [ask(TINY_FREE, f"technology={name}") for name in names("technologies")]
    asked = [read_asked(path) for path in ladder().values()]
    shipped = [part for one in asked for part in (one.parts if isinstance(one, Portfolio) else (one,))]
    return [*own, *objectives, *technologies, *shipped]


@pytest.mark.thorough
def test_no_question_of_the_registry_is_refused() -> None:
    for instance in questions():
        refuse_broken_bounds(instance)


@pytest.mark.slow
def test_no_drawn_question_is_refused() -> None:
    for seed in range(12, 100):
        refuse_broken_bounds(random_question(seed))
