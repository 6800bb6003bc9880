"""Questions: every fault with its place and remedy."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.hardware import Hardware
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.question import read_instance, read_question
from crossopt.instances.errors import InstanceError
from tests.every import every
from tests.extent import examples

FIXED = """\
kind: codesign
workload: {model: gpt3-125m, global_batch: 64}
cluster: {devices: 16, devices_per_node: 8}
hardware: a100-80g
choices:
  tensor: [1, 2]
  pipeline: [1, 2]
"""
FREE = """\
kind: codesign
workload: {model: gpt3-125m, global_batch: 64}
cluster: {devices: 16, devices_per_node: 8}
technology: accelerator-7nm
choices:
  tensor: [1, 2]
"""

REFUSED = [
    (FIXED, "tensor: [1, 2]", "tensr: [1, 2]", "6:3: choices.tensr: unknown key (did you mean 'tensor'?)"),
    (
        FIXED,
        "tensor: [1, 2]",
        "offload: all",
        "6:12: choices.offload: there is no host to offload to (add cluster.host: {memory: 512 GiB, bandwidth: 25 GB/s})",
    ),
    (FIXED, "tensor: [1, 2]", "tensor: []", "6:11: choices.tensor: an empty list leaves nothing to choose (give at least one value)"),
    (FIXED, "[1, 2]\n  pipe", "{from: 4, to: 2}\n  pipe", "6:11: choices.tensor: the range is empty: 'from' is above 'to' (exchange them)"),
    (FIXED, "tensor: [1, 2]", "tensor: [3, 5]", "6:11: choices.tensor: none of 3, 5 divides the 16 devices (write 1, 2, 4, 8, 16)"),
    (
        FIXED,
        "tensor: [1, 2]",
        "microbatch: [3]",
        "6:15: choices.microbatch: 3 does not divide the 64 samples of the global batch (write 1, 2, 4, 8, 16, ...)",
    ),
    (FIXED, "tensor: [1, 2]", "expert: [2]\n  only: expert", "6:11: choices.expert: 2 does not divide the 1 experts (write 1)"),
    (FIXED, "tensor: [1, 2]", "interleave: [13]", "6:15: choices.interleave: 13 is more than the 12 layers (write a smaller one)"),
    (
        FIXED,
        "tensor: [1, 2]",
        "placement: [data]",
        "6:14: choices.placement: 'data' is no order of tensor, context, data and pipeline (for example tensor-context-data-pipeline)",
    ),
    (
        FIXED,
        "tensor: [1, 2]",
        "data: [1]",
        "6:3: choices: no tensor x context x pipeline x data is the 16 devices "
        "(the largest options make 2; add options that multiply to it)",
    ),
    (
        FIXED,
        "tensor: [1, 2]",
        "rows: [2]",
        "6:9: choices.rows: this is no choice for a transformer (one of tensor, context, pipeline, data, expert, expert_tensor, "
        "microbatch, interleave, sequence_parallel, tensor_exchange, expert_exchange, recompute, zero, overlap, offload, schedule, "
        "first_stage_layers, last_stage_layers, placement, shard)",
    ),
    (
        FIXED,
        "tensor: [1, 2]",
        "l2_area: 40 mm^2",
        "6:12: choices.l2_area: the hardware is fixed, so nothing of it can be chosen (give technology instead of hardware)",
    ),
    (FIXED, "devices: 16", "devices: 12", "3:20: cluster.devices: 12 devices are no whole number of groups of 8 (make it a multiple of 8)"),
    (FIXED, "devices: 16", "devices: 8388608", "3:20: cluster.devices: 8388608 devices are more than the 4194304 that a question may have"),
    (  # the divisors of which are looked for by nobody
        FIXED,
        "devices: 16",
        "devices: 1e18",
        "3:20: cluster.devices: 1000000000000000000 devices are more than the 4194304 that a question may have",
    ),
    (FIXED, "devices: 16, ", "", "3:10: cluster.devices: this key is missing, a whole number, a list or a range is needed"),
    (
        FIXED,
        "{devices: 16",
        "{pod: {latency: 5 us}, devices: 16",
        "3:16: cluster.pod: there are no pods (add devices_per_pod, or remove this link)",
    ),
    (
        FIXED,
        "{devices: 16",
        "{node: {bandwidth: 0 GB/s}, devices: 16",
        "3:29: cluster.node.bandwidth: zero is no figure to work with (give one above 0, or remove the key)",
    ),
    (
        FIXED,
        "hardware: a100-80g",
        "hardware: a100",
        "4:11: hardware: 'a100' is no known device (did you mean 'a100-40g' or 'a100-80g'? see `crossopt list hardware`)",
    ),
    (
        FIXED,
        "hardware: a100-80g\n",
        "",
        "1:1: neither hardware nor technology is given (write `hardware:` and a device of `crossopt list hardware`)",
    ),
    (
        FIXED,
        "hardware: a100-80g",
        "hardware: a100-80g\ntechnology: v100-class",
        "4:11: hardware: hardware and technology are both given (keep `hardware` for a device that is bought, "
        "`technology` for a free chip)",
    ),
    (
        FIXED,
        "choices:",
        "budget: {power: 400 Wh}\nchoices:",
        "5:17: budget.power: '400 Wh' is an energy, a power is needed (did you mean '400 W'?)",
    ),
    (
        FIXED,
        "choices:",
        "budget: {power: 0 W}\nchoices:",
        "5:17: budget.power: zero is no figure to work with (give one above 0, or remove the key)",
    ),
    (
        FIXED,
        "choices:",
        "objective: cost_per_token\nchoices:",
        "5:12: objective: a cost needs prices (add a section `prices` with device, what one costs, or take a technology that has prices)",
    ),
    (
        FIXED,
        "choices:",
        "prices: {electricity: 0.1 USD/kWh, lifetime: 4 year}\nchoices:",
        "5:9: prices: exactly one of device and wafer is needed: the price of a whole device, or of a wafer",
    ),
    (
        FIXED,
        "choices:",
        "prices: {electricity: 0.1 USD/kWh, lifetime: 0 s, device: 9 USD}\nchoices:",
        "5:46: prices.lifetime: zero is no figure to work with (give one above 0, or remove the key)",
    ),
    (
        FIXED,
        "choices:",
        "efficiency: {matrix: 0}\nchoices:",
        "5:22: efficiency.matrix: 0.0 is out of range, a share above 0 and up to 1 is needed",
    ),
    (
        FIXED,
        "model: gpt3-125m",
        "model: gpt5",
        "2:19: workload.model: 'gpt5' is no known workload (did you mean 'gpt3-125m'? see `crossopt list workloads`)",
    ),
    (
        f"{FIXED}stack: megatron-core\n",
        "model: gpt3-125m",
        "model: gpt5",
        "2:19: workload.model: 'gpt5' is no known workload (did you mean 'gpt3-125m'? see `crossopt list workloads`)",
    ),
    (FIXED, "model: gpt3-125m, ", "", "2:11: workload: no network is given (give exactly one of model, transformer, lstm, gemm, config)"),
    (
        FIXED,
        "workload: {model: gpt3-125m, global_batch: 64}\n",
        "",
        "1:1: workload: this key is missing, a mapping is needed (or `workloads`, a list of them)",
    ),
    (
        FIXED,
        ", global_batch: 64",
        "",
        "2:11: workload.global_batch: this key is missing, the samples of one optimizer step are needed (for example 512)",
    ),
    (
        FIXED,
        "global_batch: 64",
        "global_batch: 9000000000",
        "2:11: workload: global_batch 9000000000 is more than the 2147483648 that the model can work with",
    ),
    (
        f"{FIXED}  microbatch: divisors\n",
        "global_batch: 64",
        "global_batch: 1e18",
        "2:11: workload: global_batch 1000000000000000000 is more than the 2147483648 that the model can work with",
    ),
    (FIXED, "kind: codesign", "kind: placement", "1:7: kind: 'placement' is unknown (one of codesign)"),
    (
        FIXED,
        "global_batch: 64",
        "global_batch: 64, precision: fp8",
        "4:11: hardware: a100-80g does not compute in fp8 (one of fp32, bf16, fp16)",
    ),
    (
        FREE,
        "global_batch: 64",
        "global_batch: 64, precision: fp32",
        "4:13: technology: accelerator-7nm does not compute in fp32 (one of bf16, fp16)",
    ),
    (
        FREE,
        "technology: accelerator-7nm",
        "technology: {base: v100-class-7nm, logic: 7nm}",
        "4:43: technology.logic: 'v100-class-7nm' names a logic node already (remove one of the two)",
    ),
    (
        FREE,
        "{devices: 16",
        "{node: {latency: 1 us}, devices: 16",
        "3:17: cluster.node: a link of a technology is given whole or not at all (add its bandwidth)",
    ),
]
"""The question, what is written in it, what is written instead, and the one fault that follows."""


def read(text: str, *given: str) -> Instance:
    return read_question({"text": text, "source": "q.yaml", "settings": list(given)})


def refusal(text: str, *given: str) -> str:
    with pytest.raises(InstanceError) as raised:
        read(text, *given)
    return str(raised.value)


@every(("text", "old", "new", "message"), REFUSED)
def test_a_wrong_question_names_the_place_the_value_and_the_remedy(text: str, old: str, new: str, message: str) -> None:
    assert old in text
    assert refusal(text.replace(old, new, 1)) == f"q.yaml:{message}\n1 fault, nothing solved"


def test_both_questions_of_the_table_are_sound_until_they_are_changed() -> None:
    assert isinstance(read(FIXED).hardware, Hardware)
    assert isinstance(read(FREE).hardware, FreeHardware)


def test_faults_of_different_sections_come_together() -> None:
    broken = FIXED.replace("model: gpt3-125m", "model: gpt5").replace("choices:", "budget: {power: 0 W}\nchoices:")
    assert refusal(broken).splitlines()[-1] == "2 faults, nothing solved"


def test_a_question_with_more_designs_than_anyone_can_count_is_refused_at_once() -> None:
    """A range may have 100,000 values, and four of 40,000 have 2.56e18 points, more than have a number."""
    ranges = "".join(
        f"  {name}: {{from: 1 mm^2, to: 2 mm^2, count: 40000}}\n" for name in ("l1_area", "l2_area", "compute_area", "registers_area")
    )
    message = "q.yaml:6:3: choices: 3e+18 hardware points are more than the 1e+18 that a question may have (give fewer options)"
    assert refusal(FREE + ranges) == f"{message}\n1 fault, nothing solved"


@pytest.mark.slow
def test_huge_ranges_of_degrees_cost_no_memory() -> None:
    """Of 100,000 options for each of three degrees only the divisors of the devices can be part of a plan."""
    every = "{from: 1, to: 100000}"
    options = dict(read(FIXED, f"tensor={every}", f"pipeline={every}", f"context={every}").plan_options)
    assert options["tensor"] == options["pipeline"] == options["context"] == (1, 2, 4, 8, 16)


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    cases = {
        tmp_path: "this is a directory (name a YAML file)",
        tmp_path / "none.yaml": "there is no such file (check the name and the folder)",
        Path("/dev/null"): "this is not a regular file (name a YAML file)",
    }
    large = tmp_path / "large.yaml"
    large.write_bytes(b"\x00\xffnonsense" * 1_000_000)
    cases[large] = "10,000,000 bytes are too many for an instance (at most 1,000,000)"
    for path, message in cases.items():
        with pytest.raises(InstanceError) as raised:
            read_instance(path)
        assert str(raised.value) == f"{path}:1:1: {message}\n1 fault, nothing solved"


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_without_permission_says_so(tmp_path: Path) -> None:
    path = tmp_path / "locked.yaml"
    path.write_text(FIXED)
    path.chmod(0)
    with pytest.raises(InstanceError, match=r"the file may not be read \(check its permissions\)"):
        read_instance(path)


def test_an_alias_bomb_is_refused_before_it_expands() -> None:
    bomb = "a: &a [x, x]\n" + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(20))
    assert "anchors such as '&a' are not read (write the values out)" in refusal(bomb)


@examples(100)
@given(st.data())
def test_a_question_with_any_line_spoiled_gives_an_instance_or_an_instance_error(data: st.DataObject) -> None:
    lines = data.draw(st.sampled_from((FIXED, FREE))).splitlines()
    place = data.draw(st.integers(0, len(lines) - 1))
    spoiled = [*lines[:place], data.draw(st.text(st.characters(codec="utf-8"), max_size=30)), *lines[place + 1 :]]
    try:
        assert read("\n".join(spoiled)).cluster.devices == 16
    except InstanceError as error:
        assert error.faults


MANY = """\
kind: codesign
workload: {model: gpt3-125n, global_batch: 64}
cluster: {devices: 16, devices_per_node: 8}
hardware: a100-81g
choices: {tensor: [x, 2], zero: 3}
prices: {electricity: 0.08 USD/kWh, lifetime: 4 year}
efficiency: {speed: 0.5}
"""


def test_mistakes_in_several_sections_are_told_in_one_round() -> None:
    """Those that the values show, and those that only names and figures together do."""
    assert [fault.partition(" ")[0] for fault in refusal(MANY).splitlines()[:-1]] == [
        "q.yaml:2:19:", "q.yaml:4:11:", "q.yaml:5:20:", "q.yaml:6:9:", "q.yaml:7:21:",
    ]  # fmt: skip
    assert len(refusal(MANY.replace("[x, 2]", "[3]")).splitlines()) == 5  # without the product of degrees: the network may have any size


def test_sections_that_cannot_be_read_bring_no_other_faults_with_them() -> None:
    """Options are not held against a cluster that nobody could read."""
    told = refusal(MANY, "cluster.devices=many", "choices={tensor: 7}")
    assert "q.yaml:3:20: cluster.devices: 'many' is not a number [from --set cluster.devices=many]" in told
    assert "choices" not in told


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("kind: codesign", "kind: inference", "1:7: kind: 'inference' is unknown (one of codesign, chain, piper, pipedream, placement, "),
        ("kind: codesign", "kind: codesing", "1:7: kind: 'codesing' is unknown (did you mean 'codesign'? The kinds are codesign, chain, "),
        ("kind: codesign\n", "", "1:1: kind: this key is missing, a word is needed (one of codesign, chain, piper, pipedream, placement, "),
    ],
)  # fmt: skip
def test_an_unknown_kind_names_all_that_there_are_beside_what_else_is_wrong(old: str, new: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "q.yaml"
    path.write_text(MANY.replace(old, new), encoding="utf-8")
    with pytest.raises(InstanceError) as refused:
        read_instance(path)
    assert f"{path}:{told}" in str(refused.value)
    assert "workload.model: 'gpt3-125n' is no known workload" in str(refused.value)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("tp=2", "choices.tp: unknown key (tp is called tensor here) [from --set tp=2]"),
        ("pipeline_model_parallel_size=2", "unknown key (pipeline_model_parallel_size is called pipeline here)"),
        ("dp=2", "unknown key (dp is called data here)"),
        ("cp=2", "unknown key (cp is called context here)"),
        ("ep=2", "unknown key (ep is called expert here)"),
        ("micro-batch-size=2", "unknown key (micro-batch-size is called microbatch here)"),
        ("gbs=8", "choices.gbs: unknown key (gbs is called global_batch here: workload.global_batch)"),
        ("workload.seq_len=8k", "workload.seq_len: unknown key (seq_len is called sequence here)"),
        ("workload.seq_len=8k", "workload.seq_len: '8k' is not a number (write 8192 for 8 x 1024 or 8000 for 8 x 1000)"),
        ("num_layers=8", "unknown key (num_layers is called layers here: workload.transformer.layers)"),
        ("workload.transformer={hidden_size: 8}", "unknown key (hidden_size is called hidden here)"),
        ("cluster.gpus=8", "unknown key (gpus is called devices here)"),
        ("global_batch=8", "choices.global_batch: unknown key (global_batch stands elsewhere: workload.global_batch)"),
        ("workload.global_batch=4M", "'4M' is not a number (write 4000000 for 4 x 1000000 or 4194304 for 4 x 1024 x 1024)"),
        ("workload.global_batch=1,024", "'1,024' is not a number (write '1024', without commas)"),
        ("workload.global_batch=15T", "'15T' is not a number (write 15e12)"),
        ("only=tensor", "'tensor' is unknown (one of expert, expert_tensor, "),
        ("workload.precision=BF16", "'BF16' is unknown (did you mean 'bf16'?)"),
        ("recompute=mla_up_proj", "recompute is 'mla_up_proj', which is called 'up-projections' here"),
        ("recompute=layernorm+moe_act", "which is called 'norms+expert-activation' here (join modules that go together with +)"),
        ("recompute=[none, core_attn]", "choices.recompute[1]: recompute is 'core_attn', which is called 'selective' here"),
        ("recompute_modules=core_attn", "unknown key (recompute_modules is called recompute here)"),
        ("workload.global_batch=7b", "'7b' is not a number (write 7000000000 for 7 x 1000000000 or 7516192768 for "),
    ],
)
def test_what_others_call_it_gets_the_right_remedy(setting: str, told: str) -> None:
    assert told in refusal(FIXED, setting)


def test_unknown_names_are_told_with_whatever_else_is_wrong() -> None:
    """Keys of a section that are none hide neither its network nor the device."""
    told = refusal(FIXED, "workload.gbs=8", "workload.model=meta-llama/Llama-3.1-70B", "hardware=H100", "cluster.gpus=8")
    for words in (
        "workload.model: 'meta-llama/Llama-3.1-70B' is no known workload (did you mean 'llama3-70b'?",
        "hardware: 'H100' is no known device (did you mean 'h100-sxm'?",
        "gbs is called global_batch here",
        "gpus is called devices here",
    ):
        assert told.count(words) == 1, told
