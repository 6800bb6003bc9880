"""Free chips that serve: boxes against every chip, bounds of boxes, proofs, and sentences."""

import re
from dataclasses import replace
from itertools import product
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from crossopt.instances.codesign.boxes import Boxes
from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read_given
from crossopt.instances.serving.chip import choice_at
from crossopt.instances.serving.question import ServingQuestion, with_chip
from crossopt.solvers.answer import Limits, SearchOutcome, unwatched
from crossopt.solvers.checking import check, solve_and_verify
from crossopt.solvers.family import family_of
from crossopt.solvers.serving.chips import bounds_of
from crossopt.solvers.serving.engines import exhaustive, program
from crossopt.solvers.serving.judge import ServingPlan, best_of, judge, table_of, value_of

CHIP = """\
kind: serving
model: llama3-8b
devices: 16
objective: devices
requests: {input: 1000, output: 100, rate: 60}
limits: {ttft: 200 ms, tpot: 10 ms}
choices: {tensor: [1, 2], batch: [16, 64], prefill_batch: 1}
chip:
  technology: accelerator-4nm
  budget: {die_area: 815 mm^2, power: 700 W}
  choices:
    compute_area: [260 mm^2, 340 mm^2, 420 mm^2]
    hbm_stacks: [1, 3, 5]
    node_network_area: [10 mm^2, 30 mm^2]
"""


def ask(text: str) -> ServingQuestion:
    question: ServingQuestion = read_given(text, "serving")
    return question


@pytest.mark.parametrize(
    ("edits", "level"),
    [
        ((), "p95"),
        ((), "mean"),
        pytest.param((("objective: devices", "objective: die_area"),), "p95", marks=pytest.mark.thorough),
        ((("objective: devices", "objective: energy"), ("hbm_stacks: [1, 3, 5]", "compute_power: [250 W, 350 W, 450 W]")), "p95"),
        pytest.param((("objective: devices", "objective: throughput"), (", rate: 60", "")), "p95", marks=pytest.mark.thorough),
        ((("objective: devices", "objective: throughput"), (", rate: 60", ""), ("batch: 1}", "batch: 1, mode: together}")), "mean"),
    ],
)
def test_the_best_chip_as_by_the_program_on_each(edits: tuple[tuple[str, str], ...], level: str) -> None:
    text = CHIP.replace("10 ms", f"10 ms, at: {level}")
    for edit in edits:
        text = text.replace(*edit)
    question = ask(text)
    found, looked = program(question, Limits(), unwatched), exhaustive(question, Limits(), unwatched)
    assert found.answer is not None
    assert found.stopped == looked.stopped == "complete"
    verdict = judge(question, found.answer)
    assert verdict.violations == ()
    assert verdict.value == found.value == found.bound == looked.value


@pytest.mark.parametrize("objective", ["die_area", pytest.param("energy", marks=pytest.mark.thorough)])
def test_two_kinds_of_chips_as_by_a_look_at_all_pairs(objective: str) -> None:
    """The cores of a chip of prefill workers are another area than those of decode workers; `check` repeats the bound."""
    text = CHIP.replace("[260 mm^2, 340 mm^2, 420 mm^2]", "[160 mm^2, 420 mm^2]").replace("devices: 16", "devices: 40")
    text = text.replace("[1, 3, 5]", "[3, 5]").replace("[10 mm^2, 30 mm^2]", "10 mm^2")
    text = text.replace("objective: devices", f"objective: {objective}").replace("output: 100", "output: 400").replace("10 ms", "6 ms")
    question = ask(text.replace("chip:\n", "chip:\n  kinds: 2\n"))
    family: Any = family_of("serving")
    found, looked = solve_and_verify(family, question, "auto", Limits(), unwatched), exhaustive(question, Limits(), unwatched)
    assert found.value == found.bound == looked.value
    assert [baseline.name for baseline in found.baselines] == ["one kind of chip"]
    assert found.baselines[0].value == program(ask(text), Limits(), unwatched).value > found.value
    assert check(family, found, Path()).accepted
    same = replace(found, answer=replace(found.answer, decode_chip=found.answer.chip))
    high = replace(found, bound=found.bound * 1.01, value=found.value * 1.01)
    assert not check(family, same, Path()).accepted
    assert not check(family, high, Path()).accepted


@pytest.mark.thorough
def test_no_chip_of_a_box_is_below_its_bound() -> None:
    random = Random(7)
    for objective in ("die_area", "energy", "throughput"):
        question = ask(CHIP.replace("objective: devices", f"objective: {objective}"))
        chip = question.chip
        assert chip is not None
        sizes = chip.space.sizes
        values: dict[tuple[int, ...], float] = {}
        for places in product(*map(range, sizes)):
            try:
                known = with_chip(question, choice_at(chip, np.array(places)))
            except ValueError:
                continue
            best = best_of(known, table_of(known))
            values[places] = inf if best is None else float(value_of(known, best.rate, best.devices, best.cost))
        ends = [[sorted(random.choices(range(size), k=2)) for size in sizes] for _ in range(20)]
        low, high = (np.array([[pair[side] for pair in box] for box in ends]) for side in range(2))
        bounds = bounds_of(question, Boxes(low, high))
        for first, last, bound in zip(low, high, bounds, strict=True):
            inside = [value for places, value in values.items() if (first <= places).all() and (places <= last).all()]
            assert bound <= min(inside, default=inf)
        assert len({bound for bound in bounds if bound < inf}) > 1


def test_edits_of_the_chip_and_bounds_that_are_too_high_are_refused() -> None:
    family: Any = family_of("serving")
    question = ask(CHIP.replace("objective: devices", "objective: die_area"))
    result = solve_and_verify(family, question, "auto", Limits(), unwatched)
    assert check(family, result, Path()).accepted
    for change in ({"hbm_stacks": 2}, {"compute_area": 0.0}, {"dies": 2}):
        forged = replace(result, answer=replace(result.answer, chip={**result.answer.chip, **change}))
        assert not check(family, forged, Path()).accepted
    assert not check(family, replace(result, answer=replace(result.answer, chip={})), Path()).accepted
    high = replace(result, bound=result.bound * 1.01, value=result.value * 1.01)
    assert any(text.startswith(("bound: a chip has the value", "value")) for text in check(family, high, Path()).refused)


def test_limits_that_no_chip_keeps_are_proved() -> None:
    found = program(ask(CHIP.replace("tpot: 10 ms", "tpot: 0.1 ms")), Limits(), unwatched)
    assert (found.answer, found.bound) == (None, inf)
    assert found.reasons[0].startswith("tpot: 0.1 ms are asked, no worker takes less than ")


@pytest.mark.parametrize("names", [("power",), ("die_area",), ("die_area", "power")])
def test_a_budget_that_is_too_small_is_named_with_what_a_chip_takes_that_serves(names: tuple[str, ...]) -> None:
    units = {"power": "W", "die_area": "mm^2"}

    def asked(amounts: list[float]) -> SearchOutcome[ServingPlan]:
        usual = {"die_area": "815 mm^2", "power": "700 W"}
        budget = usual | {name: f"{amount} {units[name]}" for name, amount in zip(names, amounts, strict=True)}
        text = CHIP.replace("die_area: 815 mm^2, power: 700 W", ", ".join(f"{name}: {amount}" for name, amount in budget.items()))
        return program(ask(text), Limits(), unwatched)

    found = asked([150.0] * len(names))
    assert found.bound == inf
    sentence = " ".join(found.reasons)
    assert sentence.startswith(f"{' and '.join(names)}: no chip within 150 ")
    taken = [float(figure) for figure in re.findall(r"([0-9.]+) (?:W|mm\^2)", sentence)][len(names) :]
    assert asked([amount * 1.001 for amount in taken]).answer is not None
    if len(names) == 1:
        assert asked([taken[0] * 0.98]).answer is None


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (("devices: 16", "devices: 16\nhardware: h200"), "hardware is not needed where the chip is free"),
        (("accelerator-4nm", "accelerator-9nm"), "accelerator-9nm"),
        (("hbm_stacks: [1, 3, 5]", "hbm_stacks: [0]"), "hbm_stacks"),
        (("tensor: [1, 2]", "tensor: 16"), "16 ranks are more than the 8 of which exchanges are priced"),
        (("choices: {tensor", "choices: {weights: fp4, tensor"), "has no peak in fp4"),
        (("chip:\n", "chip:\n  kinds: 3\n"), "chip.kinds"),
        (("batch: [16, 64], prefill_batch: 1}\nchip:\n", "mode: together}\nchip:\n  kinds: 2\n"), "workers that do both have one chip"),
    ],
)
def test_faults_of_chips_are_sentences(edit: tuple[str, str], message: str) -> None:
    with pytest.raises(InstanceError) as caught:
        ask(CHIP.replace(*edit))
    assert message in str(caught.value)


BEYOND = """\
kind: serving
model: llama3-8b
engine: sglang
objective: die_area
requests: {input: 1, output: 100, rate: 5}
devices: 1
choices: {tensor: [1, 4], batch: 4, prefill_batch: 2, mode: [together, apart], chunk: 512, cache: fp8}
rent: 3 USD
chip:
  technology: accelerator-4nm
  choices: {compute_area: [400 mm^2, 440 mm^2], hbm_stacks: [1, 5], l2_area: [20 mm^2, 60 mm^2]}
  budget: {power: 500 W}
limits: {tpot: 10 ms, at: mean}
speculation: {accepted: {1: 1.8, 3: 2.6}}
"""


def test_chips_whose_best_figures_together_are_no_chip_are_infeasible_for_a_reason() -> None:
    question = ask(BEYOND)
    found = solve_and_verify(family_of("serving"), question, "auto", Limits(), unwatched)
    assert (found.status, found.reasons) == (
        "INFEASIBLE",
        ("chip: the budgets leave no chip with both throughput and memory bandwidth",),
    )


def test_chips_without_power_for_memory_are_infeasible_for_a_reason() -> None:
    text = (
        CHIP.replace("power: 700 W", "power: 400 W")
        .replace("  choices:\n", "  choices:\n    compute_power: 400 W\n")
        .replace("10 ms", "0.1 ms")
    )
    found = solve_and_verify(family_of("serving"), ask(text), "auto", Limits(), unwatched)
    assert found.reasons == ("chip: the budgets leave no chip with both throughput and memory bandwidth",)
