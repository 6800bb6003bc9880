"""Constants of the registry, of devices, kernels and stacks: their sets, provenance and doubts, and mistakes in them."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from crossopt.crossflow.fields import Given
from crossopt.crossflow.hardware import Doubt, Efficiency, Hardware, Link, Memory
from crossopt.crossflow.kernels.fitted import CollectiveConstants, ProductConstants
from crossopt.instances.catalogue import registry
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
    kernel_constants,
    lender,
    set_text,
)
from crossopt.instances.catalogue.registry import (
    build_device,
    constants_of,
    device,
    efficiency_with,
    entry_text,
    launched_by,
    names,
    technology,
)
from crossopt.instances.catalogue.uncertain import Range
from crossopt.instances.codesign.instance import FreeHardware
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import devices
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.document import read_text
from crossopt.instances.files.schema import read_as
from tests.paths import INSTANCES
from tests.solvers.codesign.questions import TINY_FREE, ask

# Fitted constants of the registry: three sets, their error and its provenance, and mistakes in them.


def test_a_device_has_its_optimistic_and_its_pessimistic_constants_and_the_error_of_its_calibration() -> None:
    entry = device("a100-80g")
    assert entry.calibration is not None
    built = build_device(entry, "a100-80g", "bf16", 1)
    assert built.variants == (efficiency_with(entry.optimistic), efficiency_with(entry.pessimistic))
    assert built.error == entry.calibration.error
    newer, older = (build_device(device(name), name, "fp16", 1) for name in ("h100-sxm", "v100-32g"))  # their own, of no stack
    lucky, unlucky = built.variants
    carried = (replace(lucky, routing=14e-6), unlucky)  # of the wait of routers there is a shorter figure
    assert (newer.variants, newer.error) == (carried, None), "the newer device carries the constants, nothing was fitted to it"
    assert (older.variants, older.error) == (built.variants, None), "so does the older one"


def test_what_a_set_does_not_name_is_as_in_the_central_one() -> None:
    entry = replace(device("a100-80g"), optimistic={"matrix": 0.9}, pessimistic={"matrix": 0.5})
    built = build_device(entry, "a100-80g", "bf16", 1)
    assert built.variants == tuple(replace(built.efficiency, matrix=matrix) for matrix in (0.9, 0.5))


def test_the_error_of_a_calibration_is_that_of_its_sources_as_the_fit_weighs_them() -> None:
    """A source of n rows weighs n^0.4 in all."""
    calibration = device("a100-80g").calibration
    assert calibration is not None
    weights = {source: rows**0.4 for source, rows in calibration.rows.items()}
    pooled = sum(weights[source] * error for source, error in calibration.errors.items()) / sum(weights.values())
    assert calibration.error == pytest.approx(pooled, abs=1e-4)


def test_every_fitted_constant_has_an_interval_and_a_value_in_each_set() -> None:
    entry = device("a100-80g")
    assert entry.calibration is not None
    assert set(entry.calibration.uncertainty) == set(entry.efficiency) == set(entry.optimistic) == set(entry.pessimistic)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (r"(?s)\npessimistic:.*?(?=\ncalibration:)", "", "optimistic and pessimistic constants belong together"),
        (r"(optimistic:[^\n]*\n  matrix:) [0-9.]+", r"\1 -0.1", "'-0.1' is too small (at least 0)"),
        (r"(optimistic:[^\n]*\n  matrix:) [0-9.]+", r"\1 good", "good"),
        (r"(\n    matrix:) \[[^\]]*\]", r"\1 [0.7]", "uncertainty.matrix: two figures are needed, the lower one first"),
        (r"(\n    matrix:) \[[^\]]*\]", r"\1 [0.8, 0.7]", "uncertainty.matrix: two figures are needed, the lower one first"),
        (r"(\n  below: {[^:]*:) [0-9.]+", r"\1 1.5", "is too large (at most 1)"),
        (r"\n  error: [0-9.]+", "", "calibration.error: this key is missing"),
    ],
)
def test_fitted_sections_with_a_mistake_are_refused(
    old: str, new: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (registry._FOLDER / "hardware/a100-80g.yaml").read_text(encoding="utf-8")
    changed, count = re.subn(old, new, text)
    assert count == 1
    (tmp_path / "hardware").mkdir()
    (tmp_path / "hardware/mine.yaml").write_text(changed, encoding="utf-8")
    monkeypatch.setattr(registry, "_FOLDER", tmp_path)
    with pytest.raises(InstanceError, match=re.escape(message)):
        device.__wrapped__("mine")


def test_a_set_with_an_unknown_constant_is_refused() -> None:
    with pytest.raises(ValueError, match="matrx: the model has no such constant"):
        replace(device("a100-80g"), optimistic={"matrx": 0.9})


def test_a_constant_that_a_question_gives_leaves_no_other_sets_and_no_error_to_speak_of() -> None:
    """The sets and the error are those of constants that were fitted together; with another one in them, no run was compared."""
    usual, given = (read_instance(INSTANCES / "tiny.yaml", settings).hardware for settings in ((), ("efficiency={matrix: 0.66}",)))
    assert isinstance(usual, Hardware)
    assert isinstance(given, Hardware)
    assert (len(usual.variants), given.variants) == (2, ())
    assert (given.efficiency, given.error) == (replace(usual.efficiency, matrix=0.66), None)
    assert usual.error == build_device(device("a100-80g"), "a100-80g", "bf16", 1).error


FITTED = "technology={base: accelerator-7nm, constants: a100-80g}"


def free(*settings: str) -> FreeHardware:
    hardware = ask(TINY_FREE, *settings).hardware
    assert isinstance(hardware, FreeHardware)
    return hardware


def test_chips_of_a_technology_take_all_three_sets_of_the_device_that_the_question_names() -> None:
    fitted = build_device(device("a100-80g"), "a100-80g", "bf16", 1)
    ideal, named = free("technology={base: accelerator-7nm, constants: ideal}"), free(FITTED)
    assert free() == named, "what the technology names where the question names none"
    assert (ideal.efficiency, ideal.variants) == (Efficiency(), ()), "the defaults, and nothing tells how far they are off"
    assert (named.efficiency, named.variants) == (fitted.efficiency, fitted.variants)
    chips = devices(ask(TINY_FREE, FITTED), 4, 12).hardware
    assert (chips.efficiency, chips.variants, chips.error) == (fitted.efficiency, fitted.variants, None), (
        "nothing was fitted to these chips"
    )


def test_a_technology_of_the_users_own_may_name_the_device_itself() -> None:
    entry = replace(technology("accelerator-7nm"), constants="a100-80g")
    assert constants_of(entry, "mine", None) == (free(FITTED).efficiency, free(FITTED).variants)
    with pytest.raises(ValueError, match="efficiency and constants are both given"):
        replace(entry, efficiency={"matrix": 0.7})


def test_a_constant_that_a_question_gives_leaves_chips_without_other_sets_too() -> None:
    given = free(FITTED, "efficiency={matrix: 0.66}")
    assert (given.efficiency, given.variants) == (replace(free(FITTED).efficiency, matrix=0.66), ())


@pytest.mark.parametrize(
    ("technology", "message"),
    [
        ("{base: accelerator-7nm, constants: a100-80}", "'a100-80' is no known device (did you mean 'a100-80g'?"),
        ("{base: v100-class, logic: 7nm, constants: a100-80g}", "v100-class has constants of its own, with which those of a100-80g do not"),
    ],
)
def test_a_device_whose_constants_a_technology_cannot_take_is_refused(technology: str, message: str) -> None:
    with pytest.raises(InstanceError, match=re.escape(message)):
        ask(TINY_FREE, f"technology={technology}")


def test_a_technology_takes_no_constants_of_a_device_without_other_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = replace(device("v100-32g"), optimistic={}, pessimistic={})
    monkeypatch.setattr(registry, "device", lambda name: plain if name == "v100-32g" else device(name))
    with pytest.raises(ValueError, match=re.escape("v100-32g has no optimistic and pessimistic constants (one of a100-40g, a100-80g,")):
        constants_of(technology("accelerator-7nm"), "accelerator-7nm", "v100-32g")


# Constants of kernels in a device's file: whose they are by their name, and what is refused.

PRODUCT = {"launch": 3e-6, "matrix": 0.8, "fill": 64.0, "stream": 0.9, "step": 1e-10}
COLLECTIVE = {"step": 2e-6, "start": 1e-6, "rate": 0.4, "large_start": 1e-5, "large_rate": 1.0, "pairing": 0.0}


def test_the_first_word_of_a_kind_says_which_constants_it_has() -> None:
    assert kernel_constants("bfloat16 cublas", PRODUCT) == ProductConstants(3e-6, 0.8, 64.0, 0.9, 1e-10)
    found = kernel_constants("all_reduce NCCL", {**COLLECTIVE, "switch": 65536.0})
    assert found == CollectiveConstants(2e-6, 1e-6, 0.4, 1e-5, 1.0, 0.0, 65536.0)


@pytest.mark.parametrize(
    ("kind", "figures", "message"),
    [
        ("softmax", PRODUCT, "kernels.softmax: 'softmax' is no kind of kernels (one of bfloat16, "),
        ("fp8", {**PRODUCT, "casts": 1.0}, r"kernels.fp8.constants.casts: such kernels have no such constant \(did you mean 'cast'\?\)"),
        ("fp8", {"launch": 1e-6}, "kernels.fp8.constants.matrix: this constant is missing; "),
        ("fp8", {**PRODUCT, "fill": 0.0}, "kernels.fp8.constants.fill: 0 is out of range, a number above 0 is needed"),
        ("alltoall NCCL", COLLECTIVE, "kernels.alltoall NCCL.constants.switch: this constant is missing"),
    ],
)
def test_what_is_wrong_is_told(kind: str, figures: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(one of", r"\(one of")):
        kernel_constants(kind, figures)


@pytest.mark.parametrize(
    ("launch", "message"),
    [("3e-6", ""), ("0", "kernels.fp8 lib.constants.launch: 0 is out of range, a number above 0 is needed"), ("-1", "-1")],
)
def test_a_device_s_file_holds_them(launch: str, message: str) -> None:
    """And they change nothing else that is known of the device."""
    fitted = f'"fp8 lib": {{constants: {{launch: {launch}, matrix: 0.8, fill: 64, stream: 0.9, step: 1e-10}}, rows: 20, error: 0.05}}'
    faults = list[Fault]()
    sheet = read_as(Given[DeviceEntry], read_text(f"{entry_text('hardware', 'gb200-nvl72')}\nkernels: {{{fitted}}}\n", "h100.yaml"), faults)
    assert [message in fault.message for fault in faults] == [True] * bool(message)
    if sheet is not None:
        assert sheet.values["kernels"]["fp8 lib"].constants["fill"] == 64.0
        assert replace(completed(sheet, device), kernels={}) == device("gb200-nvl72")


# Sets of constants by stack: which one prices, what is said of it, what is taken over, and mistakes in them.

H100 = """\
kind: codesign
workload: {model: llama3-8b, global_batch: 64}
cluster: {devices: 16}
hardware: h100-sxm
"""
SHARES = ", as shares of megatron-core's there and here"
STACK_SETS_FITTED = StackEntry({"matrix": 0.5}, "1.0 on", rows={"one": 30, "two": 10}, error=0.05, left_out={"one": 0.06, "two": 0.1})


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
        ("hardware: a100-80g\nstack: fsdp\n", "a100-80g with fsdp: uncalibrated"),
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
    assert set_text("mine", replace(own, stacks={USUAL: STACK_SETS_FITTED}), USUAL) == (
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


# What is in doubt of a device beside its constants.

QUESTION = """
kind: codesign
workload: {model: llama3.1-8b, global_batch: 64}
cluster: {devices: 64}
hardware: h100-sxm
stack: fsdp
"""


def test_l2_and_links_vary_where_no_run_says_how_far_off_all_are_together() -> None:
    """FSDP ran on up to 512 H100: for more, or B200, sources say between what L2 and links lie, but for those that are given."""

    def doubts(*settings: str) -> tuple[Doubt, ...]:
        found = ask(QUESTION, *settings).hardware
        assert isinstance(found, Hardware)
        return found.doubts

    assert doubts() == ()
    fast, slow = doubts("hardware=b200")
    assert (fast.l2, slow.l2) == (1.44, 0.73)
    assert (slow.bandwidths, slow.ring_latencies) == ((0.83, 0.89), (1.0, 1.07))
    assert doubts("hardware=b200", "cluster.cluster.bandwidth=40 GB/s")[1].bandwidths == (0.83, 1.0)
    assert doubts("hardware=b200", "efficiency={matrix: 0.7}") == ()
    assert doubts("cluster.devices=1024", "workload.global_batch=1024")[1].bandwidths == (0.91, 0.89)


def ranges(*settings: str) -> dict[str, Range]:
    return {one.name: one for one in ask(TINY_FREE, "tensor=1", "pipeline=1", *settings).ranges}


def test_clocks_voltages_energies_and_what_kernels_keep_busy_have_ranges_of_their_own() -> None:
    """At 7 nm the highest clock is the nominal one, below which no technology has its highest; kernels keep 0.82 of the cores busy."""
    found = ranges()
    assert {f"core.{name}" for name in ("maximum_frequency", "threshold_voltage", "margin_voltage")} <= found.keys()
    assert {f"{level}.energy_per_bit" for level in ("registers", "l1", "l2")} <= found.keys()
    clock, busy = found["core.maximum_frequency"], found["sustained.compute"]
    assert (clock.low, clock.high) == (1.0, 1.065)
    assert (busy.low, busy.high) == pytest.approx((0.8, 1.2))
    assert not [name for name in found if name.startswith("die_links.")], "of one die there are no links"
    assert {"die_links.links_per_metre", "die_links.energy_per_bit"} <= ranges("dies=[1, 2]").keys()
    for name, one in ranges("dies=[1, 2]").items():
        section, figure = name.split(".")
        if section != "efficiency":
            for end in (one.low, one.high):
                ask(TINY_FREE, "tensor=1", "pipeline=1", "dies=[1, 2]", f"factors.{section}.{figure}={end!r}")


def test_kernels_keep_cores_so_much_busier_and_no_busier_than_all() -> None:
    """A chip whose cores work a tenth more in products draws a tenth more of what they switch beyond clocks and control."""
    chips = [ask(TINY_FREE, f"factors={{sustained: {{compute: {share}}}}}").hardware for share in (1.0, 1.1)]
    assert all(isinstance(chip, FreeHardware) for chip in chips)
    shares = [chip.technology.sustained[0].core for chip in chips if isinstance(chip, FreeHardware)]
    assert shares == pytest.approx([0.82, 0.902])
    with pytest.raises(InstanceError, match=r"factors.sustained: compute becomes 1.025 in some kernels, a share of at most 1 is needed"):
        ask(TINY_FREE, "factors={sustained: {compute: 1.25}}")
