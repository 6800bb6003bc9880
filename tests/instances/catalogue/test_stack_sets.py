"""Sets of constants by stack: which one prices, what is said of it, what is taken over, and mistakes in them."""

import re
from dataclasses import replace

import pytest

from crossopt.crossflow.fields import Given
from crossopt.crossflow.hardware import Link, Memory
from crossopt.instances.catalogue.entries import (
    OWN,
    STACKS,
    USUAL,
    DeviceEntry,
    NetworkEntry,
    StackEntry,
    check_stacks,
    completed,
    constants_for,
    lender,
    set_text,
)
from crossopt.instances.catalogue.registry import build_device, constants_of, device, entry_text, launched_by, names, technology
from tests.solvers.codesign.questions import ask

H100 = """\
kind: codesign
workload: {model: llama3-8b, global_batch: 64}
cluster: {devices: 16}
hardware: h100-sxm
"""
SHARES = ", as shares of megatron-core's there and here"
FITTED = StackEntry({"matrix": 0.5}, "1.0 on", rows={"one": 30, "two": 10}, error=0.05, left_out={"one": 0.06, "two": 0.1})


def test_a_question_without_a_stack_is_priced_by_the_set_of_the_usual_one() -> None:
    usual = H100.replace("h100-sxm", "gb200-nvl72")
    assert ask(usual).hardware == ask(f"{usual}stack: {USUAL}\n").hardware
    assert ask(H100).hardware != ask(f"{H100}stack: fsdp\n").hardware
    entry = device("gb200-nvl72")
    assert constants_for(entry.stacks, None) == entry.stacks[USUAL].constants
    assert constants_for(entry.stacks, OWN) == {}
    assert launched_by(built := build_device(entry, "gb200-nvl72", "bf16", 2), entry, OWN) is built


def test_chips_of_a_technology_are_priced_by_the_set_of_the_stack_on_its_device() -> None:
    made, entry = technology("accelerator-4nm"), device("h100-sxm")
    for stack in (None, "fsdp"):
        wanted = launched_by(build_device(entry, "h100-sxm", "bf16", 2), entry, stack)
        assert constants_of(made, "accelerator-4nm", None, stack) == (wanted.efficiency, wanted.variants)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("", "h100-sxm; taken over from a100-80g"),
        ("hardware: gb200-nvl72\n", "as no stack is named; fitted to 53 runs of 2 sources, 9.0% off when a source is"),
        ("stack: fsdp\n", "h100-sxm with fsdp (FSDP1 and FSDP2, 2023 to 2025); fitted to 79 runs of 3 sources, 7.2% off when a source is"),
        ("stack: torchtitan\n", "h100-sxm with torchtitan (FSDP2, 2024 and 2025); taken over from h100-sxm with fsdp"),
        ("hardware: h200\nstack: fsdp\n", "h200 with fsdp (FSDP1 and FSDP2, 2023 to 2025); taken over from h100-sxm with fsdp"),
        ("hardware: b200\nstack: fsdp\n", "b200 with fsdp (FSDP2, 2025); taken over from h100-sxm with fsdp, as shares of megatron-core's"),
        ("hardware: b300\nstack: torchtitan\n", "b300 with torchtitan (FSDP2, 2025); taken over from h100-sxm with fsdp, as shares of"),
        ("hardware: v100-32g\nworkload: {model: llama3-8b, global_batch: 64, precision: fp16}\n", "v100-32g; taken over from a100-80g"),
        ("hardware: a100-80g\nstack: fsdp\n", "a100-80g with fsdp, which has no set of its own there: the device's constants (Megatron of"),
        ("hardware: mi300x\n", "mi300x with megatron-core (ROCm 6 of 2025), as no stack is named; guessed, fitted to no run"),
        ("efficiency: {matrix: 0.6}\n", "taken over from a100-80g; but matrix as the question has it"),
        ("factors: {efficiency: {kernel: 2, host: 2}}\n", "; but host, kernel as the question has them"),
    ],
)  # fmt: skip
def test_the_answer_says_which_set_priced_it(settings: str, words: str) -> None:
    kept = "".join(line for line in H100.splitlines(keepends=True) if f"\n{line.partition(':')[0]}:" not in f"\n{settings}")
    assert words in ask(kept + settings).priced_by


def test_chips_say_whose_constants_price_them() -> None:
    free = "kind: codesign\nworkload: {model: gpt3-125m, global_batch: 64}\ncluster: {devices: 8}\n"
    assert ask(f"{free}technology: accelerator-7nm\n").priced_by.startswith("a100-80g (Megatron of 2021 and 2022, FSDP1); fitted")
    assert ask(f"{free}technology: {{base: accelerator-7nm, constants: ideal}}\n").priced_by == "the model's defaults, fitted to no run"
    assert ask(f"{free}technology: v100-class\n").priced_by == "the own constants of v100-class, fitted to no run"


def test_what_is_taken_over_is_what_it_is_taken_from() -> None:
    """A set that names its origin has that one's constants, to the digit."""
    seen = 0
    for name in names("hardware"):
        for entry in device(name).stacks.values():
            if entry.taken_over:
                origin, stack = lender(entry)
                wanted = device(origin).stacks[stack].constants
                if entry.taken_over.endswith(SHARES):
                    there, here = _usual(origin), _usual(name)
                    wanted = {constant: float(f"{value / there[constant] * here[constant]:.4g}") for constant, value in wanted.items()}
                assert entry.constants == wanted, (name, entry.taken_over)
                seen += 1
    assert seen > 16


def _usual(name: str) -> dict[str, float]:
    """Constants that price the usual stack on a device."""
    entry = device(name)
    return entry.efficiency | constants_for(entry.stacks, USUAL)


def test_a_device_of_ones_own_carries_the_sets_of_its_class_and_says_so() -> None:
    network = Given(NetworkEntry, {"node": Given(Link, {"bandwidth": 300e9})})
    sheet = Given(DeviceEntry, {"peak": {"bf16": 800e12}, "dram": Memory(96 * 2**30, 3e12), "network": network})
    built = completed(sheet, device)
    assert (built.like, built.taken_over) == ("h100-sxm", "a100-80g")
    assert {one.taken_over for one in built.stacks.values()} == {"h100-sxm with fsdp"}
    assert not any(one.rows or one.left_out for one in built.stacks.values()), "nothing was fitted to it"
    own = completed(Given(DeviceEntry, {**sheet.values, "efficiency": {"matrix": 0.6}}), device)
    assert (own.taken_over, own.stacks) == ("", {})
    assert set_text("mine", own, None) == "mine; guessed, fitted to no run"
    assert set_text("mine", replace(own, stacks={USUAL: FITTED}), USUAL) == (
        "mine with megatron-core (1.0 on); fitted to 40 runs of 2 sources, 7.0% off when a source is left out"
    )
    assert set_text("mine", replace(own, efficiency={}), None) == "mine; the model's defaults, fitted to no run"


def test_what_is_shown_of_a_device_says_where_each_set_is_from() -> None:
    shown = entry_text("hardware", "h100-sxm")
    assert "#   its own constants: taken over from a100-80g\n" in shown
    assert (
        "#   stack: fsdp (FSDP1 and FSDP2, 2023 to 2025): fitted to 79 runs of mosaicml/llm-foundry training benchmarks, torchtitan"
        in shown
    )
    assert "#   stack: deepspeed (on kernels of PyTorch): taken over from h100-sxm with fsdp\n" in shown


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rows": {"one": 3}, "taken_over": "a100-80g", "error": 0.1}, "fitted to rows or taken over from another (give one of both)"),
        ({"rows": {"one": 3}}, "error: a set that was fitted to rows says how far off they are"),
        ({"left_out": {"two": 0.1}}, "left_out: the set was not fitted to rows of 'two' (name them under rows)"),
    ],
)
def test_a_set_that_says_two_things_is_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        StackEntry({"matrix": 0.5}, **given)  # type: ignore[arg-type]


def test_a_set_of_no_stack_or_with_no_constant_is_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("stacks: 'megatron-cor' is no stack (did you mean 'megatron-core'?)")):
        check_stacks({"megatron-cor": StackEntry({})})
    with pytest.raises(ValueError, match=re.escape(f"stacks: 'jax' is no stack (one of {', '.join(STACKS)})")):
        check_stacks({"jax": StackEntry({})})
    with pytest.raises(ValueError, match=re.escape("stacks.fsdp.constants.matrx: the model has no such constant")):
        check_stacks({"fsdp": StackEntry({"matrx": 0.5})})
