"""Questions that a command line writes: models, devices, counts and what is usual where nothing is said."""

import re
from pathlib import Path

import pytest

from crossopt.instances.catalogue.registry import names
from crossopt.instances.codesign.short import (
    Group,
    Run,
    context_of,
    count_of,
    device_named,
    groups_in,
    model_named,
    question_text,
    samples_in,
)
from crossopt.instances.question import read_given
from crossopt.tests.every import every


@every(
    ("text", "groups"),
    [
        ("256xh100", (Group(256, "h100-sxm"),)),
        ("1,024xh100-sxm", (Group(1024, "h100-sxm"),)),
        ("256xh100,128xb200", (Group(256, "h100-sxm"), Group(128, "b200"))),
        ("8xh20,4xa10", (Group(8, "h20"), Group(4, "a10g"))),
        ("8 x H200, mi300x:16", (Group(8, "h200"), Group(16, "mi300x"))),
    ],
)
def test_devices_are_counted_and_named(text: str, groups: tuple[Group, ...]) -> None:
    assert groups_in(text) == groups


@every(
    ("text", "message"),
    [
        ("h100", "'h100' is no number of devices (write COUNTxDEVICE, such as 256xh100-sxm)"),
        ("8xa100", "'a100' is a100-40g or a100-80g (name one of them)"),
        ("8xb20", "'b20' is no device that is known (did you mean"),
        ("4xa1", "'a1' is no device that is known ("),
        ("8xh10O", "'h10O' is no device that is known ("),
        ("256-512xh100", "several are 256xh100,512xh100, and --fewest seeks the number"),
        ("0xh100", "'0xh100' is no number of devices from 1 to 1,000,000"),
        ("8xh100,8xh100-sxm", "names the same devices twice (name each once)"),
    ],
)
def test_what_is_no_number_of_devices_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        groups_in(text)


@every(
    ("text", "name"),
    [
        ("qwen3-32b", "qwen3-32b"),
        ("Qwen/Qwen3-32B", "qwen3-32b"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama3.1-8b"),
        ("meta-llama/Meta-Llama-3-70B", "llama3-70b"),
        ("mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"),
        ("deepseek-ai/DeepSeek-V3", "deepseek-v3"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-v3"),
        ("meta-llama/Llama-3.1-70B", "llama3-70b"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama3-70b"),
        ("meta-llama/Llama-3.1-405B-Instruct-FP8", "llama3-405b"),
        ("Qwen/Qwen3-235B-A22B-Thinking-2507-FP8", "qwen3-235b-a22b"),
        ("Qwen/Qwen3-30B-A3B-GPTQ-Int4", "qwen3-30b-a3b"),
        ("Qwen/Qwen3-32B-AWQ", "qwen3-32b"),
        ("nvidia/DeepSeek-R1-0528-FP4-v2", "deepseek-v3"),
        ("nvidia/Llama-3.1-8B-Instruct-FP8", "llama3.1-8b"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "llama3.1-8b"),
    ],
)
def test_a_model_is_known_by_its_name_on_the_hub(text: str, name: str) -> None:
    assert model_named(text) == ("model", name)


def test_every_registered_model_is_found_by_its_own_name() -> None:
    """GPT-3 1.3B is not GPT-3 13B."""
    assert {name: model_named(name)[1] for name in names("workloads")} == {name: name for name in names("workloads")}


def test_a_model_that_is_not_known_is_refused_with_the_nearest() -> None:
    """DeepSeek-R1-Distill-Llama-70B and Kimi K2 Thinking are other networks, or in other formats."""
    for text in ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "moonshotai/Kimi-K2-Thinking", "Qwen/Qwen3-8B"):
        with pytest.raises(ValueError, match="is not in the registry"):
            model_named(text)
    with pytest.raises(ValueError, match="did you mean qwen3-32b"):
        model_named("qwen3-33b")


def test_a_model_is_known_by_the_beginning_of_its_name_alone() -> None:
    """A name on the hub is a network of its own, and 1 is no beginning of 1.3 billion."""
    assert model_named("Qwen3-235B") == ("model", "qwen3-235b-a22b")
    assert model_named("gpt-oss") == ("model", "gpt-oss-120b")
    with pytest.raises(ValueError, match=r"did you mean qwen3-235b-a22b or qwen3-30b-a3b or qwen3-32b\?"):
        model_named("qwen3")
    for text in ("openai/gpt-oss", "gpt3-1"):
        with pytest.raises(ValueError, match=r"registr|is known"):
            model_named(text)


@every(
    ("text", "message"),
    [
        ("net.onnx", "'net.onnx' is a graph of operators (name a model or its config.json; `crossopt quantize` takes a graph)"),
        ("run.yaml", "'run.yaml': there is no such file (name a model of"),
        ("some/config.json", "'some/config.json': there is no such file (fetch it with `hf download ORG/MODEL config.json"),
        ("some/Zebra", "'some/Zebra' is not in the registry, and nothing is downloaded (fetch it with `hf download some/Zebra config.json"),
        (".", "'.' is a folder without a config.json (fetch it with"),
    ],
)
def test_what_is_no_model_is_refused_with_the_next_step(text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=re.escape(message)):
        model_named(text)
    (tmp_path / "own.json").write_text("{}", encoding="utf-8")
    assert model_named("own.json") == ("config", "own.json")


def test_counts_and_batches_by_hand() -> None:
    assert (count_of("15T"), count_of("8k", 1024), count_of("2,048"), count_of("1e12"), count_of("2e+12")) == (
        15e12,
        8192,
        2048,
        1e12,
        2e12,
    )
    assert samples_in("512", 8192) == 512
    assert samples_in("4M", 8192) == 512, "4 x 2^20 / 8,192"
    assert samples_in("1k", 8192) == 1, "never less than a sample"
    for text in ("", "x", "-1", "1e99T"):
        with pytest.raises(ValueError, match="is no count"):
            count_of(text)


@every(("devices", "batch"), [(256, 512), (768, 384), (24, 504), (1, 512), (1000, 500), (96, 480)])
def test_the_usual_batch_is_four_million_tokens_in_equal_parts(devices: int, batch: int) -> None:
    """2^22 / 8,192 = 512; of 342 to 682 samples the one with the largest common divisor, 384 of 768, 24 x 21 = 504, and 500 of 1,000."""
    question = read_given(question_text(Run("qwen3-32b", context=8192), Group(devices, "h100-sxm")), "codesign")
    assert question.workload.global_batch == batch


def test_the_written_question_says_what_was_meant() -> None:
    run = Run("llama3-70b", tokens=15e12, deadline="90 d", rent="2.5 USD")
    question = read_given(question_text(run, Group(1024, "h100-sxm")), "codesign")
    assert (question.workload.sequence, question.cluster.devices, question.stack.name) == (8192, 1024, "megatron-core")
    assert (question.goal.tokens, question.goal.deadline, question.goal.rent) == (15e12, 90 * 86400.0, 2.5)
    other = read_given(question_text(Run("llama3-8b"), Group(8, "v100-32g")), "codesign")
    assert other.workload.precision == "fp16", "a V100 has no bf16"
    assert read_given(question_text(Run("llama3-8b"), Group(8, "mi300x")), "codesign").stack is None
    assert context_of(Run("llama3-70b")) == 8192


def test_a_device_is_known_by_the_beginning_of_its_name() -> None:
    assert device_named("H100") == "h100-sxm"
    assert device_named("gb200") == "gb200-nvl72"
    assert device_named("mi300") == "mi300x"


def test_a_path_is_quoted_so_that_it_stays_one_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a: b").mkdir()
    (tmp_path / "a: b/config.json").write_text("{}", encoding="utf-8")
    run, group = Run("a: b/config.json", context=64), Group(8, "h100-sxm")
    assert 'config: "a: b/config.json"' in question_text(run, group)
    assert 'config: "../../a: b/config.json"' in question_text(run, group, Path("kept/here")), "of a question that is saved elsewhere"
