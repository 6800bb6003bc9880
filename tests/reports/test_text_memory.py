"""What an answer tells of memory that a plan fills, and of what it costs to leave more of it free."""

from dataclasses import replace

from crossopt.instances.codesign.question import read_instance
from crossopt.reports.facts.repriced import fullness_text
from tests.paths import INSTANCES
from tests.reports.answers import answer, answered, evaluation_of, evaluation_text
from tests.reports.test_text import LLAMA_ON_H100
from tests.solvers.codesign.questions import ask


def test_what_it_costs_to_leave_more_memory_free_is_told_of_few_designs() -> None:
    """Every plan of the small network leaves 8 GiB of 79.1, and none 120; twice the best step is told of a step half as long. Others than
    the fastest are not asked for, nor are too many."""
    small, capacity = read_instance(INSTANCES / "tiny.yaml"), 79.1 * 2**30
    found = answered(small)
    assert found.value is not None
    assert fullness_text(small, 0.99 * capacity, capacity, found.value).endswith("(+0.0%)")
    assert fullness_text(small, 0.99 * capacity, capacity, found.value / 2.0).endswith("(+100.0%)")
    crowded = replace(small, hardware=replace(small.hardware, reserved_memory=60.0 * 2**30))
    assert fullness_text(crowded, 0.99 * capacity, capacity, found.value).endswith("; with so much no plan fits")
    for asked, seconds in ((small, None), (replace(small, objective="cost_per_token"), found.value)):
        assert fullness_text(asked, 0.99 * capacity, capacity, seconds).endswith("reserves so much in every plan)")


def test_of_many_settings_the_best_that_leaves_more_free_is_proved_too() -> None:
    settings = ("choices=all", "cluster.devices=8")
    asked, roomy = ask(LLAMA_ON_H100, *settings), ask(LLAMA_ON_H100, *settings, "cluster.reserved_memory=8 GiB")
    found = answered(roomy)
    assert found.value is not None
    words = fullness_text(asked, 0.99 * 79.1 * 2**30, 79.1 * 2**30, found.value)
    assert "; with it the best is " in words
    assert words.endswith("(+0.0%)")


def test_a_plan_that_fills_the_memory_is_told_what_is_reserved() -> None:
    """Where the question says itself what is reserved, that is its word."""
    asked, capacity = ask(LLAMA_ON_H100), 80.0 * 2**30
    assert fullness_text(asked, 0.99 * capacity, capacity).endswith("(`cluster.reserved_memory: 8 GiB` reserves so much in every plan)")
    assert fullness_text(asked, 0.99 * capacity, capacity).startswith("memory is 99.0% full, with 4 GiB reserved for the framework")
    assert fullness_text(asked, 0.95 * capacity, capacity) == fullness_text(asked, 1.01 * capacity, capacity) == ""
    assert fullness_text(ask(LLAMA_ON_H100, "cluster.reserved_memory=4 GiB"), 0.99 * capacity, capacity) == ""
    small = read_instance(INSTANCES / "tiny.yaml")
    found = answered(small)
    limits = [replace(one, available=1.01 * one.used) if one.name == "memory" else one for one in evaluation_of(found).limits]
    design = found.answer.design
    full = evaluation_text(small, design, replace(evaluation_of(found), limits=tuple(limits)))
    assert "memory is 99.0% full" in full
    assert "% full" not in answer(found, small)
