"""Options of engines that launch a serving plan, by what the documentation of each engine says of them."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from crossopt.instances.catalogue.engines import format_in, format_of_config
from crossopt.instances.question import read_given
from crossopt.instances.serving.workers import Shape, left_out, refusal, shapes_of
from crossopt.reports.cli import main
from crossopt.reports.commands.serving import _remarks, _remarks_of_shapes, command_of

REQUESTS = "kind: serving\ndevices: 64\nrequests: {input: 2000, output: 200}\n"


def exported(question: str, form: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What `export` prints of the plan for a question."""
    path, out = folder / "q.yaml", str(folder / "r.json")
    path.write_text(f"{REQUESTS}{question}\n", encoding="utf-8")
    assert main(["solve", str(path), "--out", out]) == 0
    capsys.readouterr()
    assert main(["export", out, "--as", form]) == 0
    return capsys.readouterr().out


def test_graphs_of_tensorrt_llm_are_for_all_requests_that_may_be_in_flight() -> None:
    """By default they end at 128 requests, and are for some numbers alone below; prompts run none."""
    question = read_given(f"{REQUESTS}model: deepseek-v3\nhardware: b200\nengine: trtllm\n", "serving")
    for shape, graphs in (
        (Shape("decode", "", "fp8-block", tensor=8, batch=512, chunk=8192), 512),
        (Shape("both", "", "fp8-block", tensor=8, data=8, batch=512, chunk=8192), 64),
        (Shape("prefill", "", "fp8-block", tensor=8, batch=1, chunk=8192), None),
    ):
        command = command_of("trtllm", question, shape, 0)
        settings = yaml.safe_load(command.split("END")[1].strip("'\n"))
        assert settings.get("cuda_graph_config") == (graphs and {"enable_padding": True, "max_batch_size": graphs})


@pytest.mark.parametrize("form", ["vllm", "dynamo"])
def test_attention_backends_of_hopper_and_blackwell_are_alike_where_caches_pass(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """NixlConnector refuses a handshake between backends, of which vLLM's defaults differ by device."""
    kinds = "hardware: [h200, b200]\navailable: {h200: 2, b200: 2}\n"
    choices = "choices: {mode: apart, tensor: 1, batch: [32, 64], weights: fp8}\nlimits: {ttft: 2 s, tpot: 40 ms}"
    text = exported(f"model: qwen3-32b\n{kinds}{choices}", form, tmp_path, capsys)
    assert "on h200" in text or form == "dynamo"
    assert len(re.findall(r"--kv-transfer-config.*?--attention-backend FLASHINFER", text, re.DOTALL)) == text.count("--kv-transfer-config")
    assert "--attention-backend" not in exported(f"model: qwen3-32b\nhardware: b200\n{choices}", form, tmp_path, capsys)


def test_checkpoints_of_two_formats_have_two_names_and_a_handshake_that_takes_them() -> None:
    """vLLM compares the names of models of both sides."""
    question = read_given(f"{REQUESTS}model: qwen3-32b\nhub: Qwen/Qwen3-32B\nhardware: b200\n", "serving")
    shapes = [Shape("prefill", "", "fp4", batch=1, chunk=8192), Shape("decode", "", "int4", batch=64, chunk=8192)]
    first, second = (command_of("vllm", question, shape, place, shapes) for place, shape in enumerate(shapes))
    assert "vllm serve MODEL_FP4 " in first and "vllm serve MODEL_INT4 " in second
    assert '"enforce_handshake_compat": false' in first and '"enforce_handshake_compat": false' in second
    remarks = " ".join(_remarks_of_shapes("vllm", question, shapes))
    assert "MODEL_FP4 is a checkpoint of Qwen/Qwen3-32B with fp4 weights" in remarks
    assert "load different checkpoints" in remarks
    assert "enforce_handshake_compat" not in command_of("vllm", question, shapes[0], 0, [shapes[0]] * 2)
    one = [replace(shapes[0], weights="bf16"), replace(shapes[1], weights="fp8")]
    assert "--quantization fp8" in (last := command_of("vllm", question, one[1], 1, one)) and "enforce_handshake_compat" not in last


@pytest.mark.parametrize(
    ("model", "hub", "weights", "tensor", "named", "quantized"),
    [
        ("llama3-70b", "meta-llama/Llama-3.3-70B-Instruct", "fp8", 2, "meta-llama/Llama-3.3-70B-Instruct", True),
        ("llama3-70b", "meta-llama/Llama-3.3-70B-Instruct", "fp8", 1, "MODEL_FP8", False),  # 141 GB in 16 bits before
        ("llama3-70b", "nvidia/Llama-3.3-70B-Instruct-FP8", "fp8", 1, "nvidia/Llama-3.3-70B-Instruct-FP8", False),
        ("qwen3-32b", "Qwen/Qwen3-32B-FP8", "fp8-block", 1, "Qwen/Qwen3-32B-FP8", False),
        ("qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B", "fp8-block", 4, "Qwen/Qwen3-235B-A22B-FP8", False),
        ("qwen3-32b", "Qwen/Qwen3-32B-FP8", "bf16", 1, "MODEL_BF16", False),
        ("deepseek-v3", "deepseek-ai/DeepSeek-R1", "fp8-block", 8, "deepseek-ai/DeepSeek-R1", False),
        ("deepseek-v3", "deepseek-ai/DeepSeek-R1", "int4", 8, "MODEL_INT4", False),
    ],
)
def test_workers_load_a_checkpoint_in_the_format_of_the_plan(
    model: str, hub: str, weights: str, tensor: int, named: str, quantized: bool
) -> None:
    """Where the name states another one, that of a checkpoint is left to fill in; 8 bits are made of 16 where these fit, too."""
    question = read_given(f"{REQUESTS}model: {model}\nhub: {hub}\nhardware: h200\nchoices: {{weights: {weights}}}\n", "serving")
    shape = Shape("both", "", weights, tensor=tensor, batch=16, chunk=8192)  # type: ignore[arg-type]
    for engine, start in (("vllm", "vllm serve"), ("sglang", "--model-path")):
        command = command_of(engine, question, shape, 0)
        assert f"{start} {named} " in command
        assert ("--quantization fp8" in command) == quantized


def test_degrees_and_ports_are_those_of_data_parallel_ranks() -> None:
    """Attention data 8 on 8 ranks is vLLM's tensor degree 1, with a port of the side channel for each rank."""
    question = read_given(f"{REQUESTS}model: deepseek-v3\nhardware: h200\n", "serving")
    shapes = [Shape("prefill", "", "fp8-block", tensor=8, batch=1), Shape("decode", "", "fp8-block", tensor=8, data=8, batch=64)]
    remarks = [*_remarks("vllm", question, shapes), *_remarks_of_shapes("vllm", question, shapes)]
    assert any("tensor degrees of prefill and decode workers differ" in text for text in remarks)
    assert any("VLLM_NIXL_SIDE_CHANNEL_PORT" in text and "by 8" in text for text in remarks)
    assert not any("differ" in text for text in _remarks_of_shapes("vllm", question, [shapes[0], shapes[0]]))


def test_unequal_degrees_are_said_of_sglang_but_for_latents() -> None:
    shapes = [Shape("prefill", tensor=1, batch=1), Shape("decode", tensor=2, batch=64)]
    for model, said in (("qwen3-32b", True), ("deepseek-v3", False)):
        question = read_given(f"{REQUESTS}model: {model}\nhardware: h200\nengine: sglang\n", "serving")
        assert any("tensor degrees" in text for text in _remarks_of_shapes("sglang", question, shapes)) == said


def test_prompts_whose_caches_are_being_sent_take_no_slot_of_sglang() -> None:
    question = read_given(f"{REQUESTS}model: qwen3-32b\nhardware: h200\nengine: sglang\n", "serving")
    command = command_of("sglang", question, Shape("prefill", batch=2, chunk=8192), 0)
    assert "--prefill-max-requests 2 " in command and "--max-running-requests" not in command
    decode = command_of("sglang", question, Shape("decode", batch=512, chunk=8192), 0)
    assert "--max-running-requests 512 " in decode and "--cuda-graph-max-bs 512 " in decode


def test_the_frontend_of_a_manifest_sends_equal_prefixes_to_the_same_workers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question = "model: llama3-8b\nhardware: h200\nchoices: {mode: together, tensor: 1, batch: 8}"
    assert "--router-mode" not in exported(question, "dynamo", tmp_path, capsys)
    path, out = tmp_path / "q.yaml", str(tmp_path / "r.json")
    path.write_text(f"{REQUESTS}{question}\n".replace("output: 200", "output: 200, cached: 1500"), encoding="utf-8")
    assert main(["solve", str(path), "--out", out]) == main(["export", out, "--as", "dynamo"]) == 0
    assert "dynamo.frontend --http-port 8000 --router-mode kv" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("Qwen/Qwen3-32B-FP8", "fp8-block"),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", "fp8-block"),
        ("Qwen/Qwen3-32B-AWQ", "int4"),
        ("Qwen/Qwen3-30B-A3B-GPTQ-Int4", "int4"),
        ("nvidia/Llama-3.3-70B-Instruct-FP4", "fp4"),
        ("nvidia/DeepSeek-R1-0528-FP4-v2", "fp4"),
        ("nvidia/Llama-3.1-8B-Instruct-FP8", "fp8"),
        ("RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8-dynamic", "fp8"),
        ("RedHatAI/Qwen3-32B-FP8-block", "fp8-block"),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "int4"),
        ("Qwen/Qwen3-32B", None),
        ("deepseek-ai/DeepSeek-V3-0324", None),
    ],
)
def test_names_on_the_hub_state_formats(name: str, form: str | None) -> None:
    assert format_in(name) == form


def test_the_format_in_the_name_on_the_hub_is_the_default(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A checkpoint with scales of blocks is not priced as one with a scale for each matrix.

    A device without 4-bit floats takes 4-bit weights alone.
    """
    line = ["serve", "Qwen/Qwen3-32B-FP8", "--gpus", "2xh200", "--input", "1000", "--output", "100", "--tpot", "30ms", "--mode", "together"]
    assert main([*line, "--save", str(tmp_path / "q.yaml")]) == 0
    assert "fp8-block weights (the checkpoint's), bf16 cache; quality not priced" in " ".join(capsys.readouterr().out.split())
    for hub, gpu, weights in (
        ("nvidia/Llama-3.3-70B-Instruct-FP4", "b200", "fp4"),
        ("nvidia/Llama-3.3-70B-Instruct-FP4", "h200", "int4"),
        ("Qwen/Qwen3-32B-AWQ", "a100-80g", "int4"),
    ):
        question = read_given(f"{REQUESTS}model: qwen3-32b\nhub: {hub}\nhardware: {gpu}\n", "serving")
        assert question.kinds[0].options.weights == (weights,)


@pytest.mark.parametrize(
    ("model", "engine", "tensor", "expert", "started"),
    [
        ("qwen3-30b-a3b", "vllm", 8, 1, False),  # 768 / 8 = 96
        ("qwen3-235b-a22b", "sglang", 8, 1, False),  # 1,536 / 8 = 192
        ("qwen3-235b-a22b", "sglang", 8, 2, True),  # 1,536 / 4 = 384
        ("qwen3-235b-a22b", "trtllm", 8, 1, True),
        ("deepseek-v3", "vllm", 8, 1, True),  # 2,048 / 8 = 256, and 18,432 / 8 = 2,304 = 18 x 128
        ("llama2-13b", "vllm", 8, 1, False),  # 13,824 / 8 = 1,728 = 13.5 x 128
    ],
)
def test_engines_load_weights_with_scales_of_blocks_in_whole_blocks(
    model: str, engine: str, tensor: int, expert: int, started: bool
) -> None:
    question = read_given(f"{REQUESTS}model: {model}\nhardware: h200\nengine: {engine}\n", "serving")
    shape = Shape("both", "", "fp8-block", tensor=tensor, expert=expert, batch=8)
    assert (refusal(question, shape) == "") == started
    assert not refusal(question, Shape("both", "", "fp8", tensor=tensor, expert=expert, batch=8))


def test_workers_that_an_engine_does_not_start_are_offered_only_where_it_starts_no_others() -> None:
    text = f"{REQUESTS}model: qwen3-30b-a3b\nhardware: h200\nchoices: {{weights: fp8-block, tensor: 8, "
    both = read_given(f"{text}expert: [1, 8]}}\n", "serving")
    assert {shape.expert for shape in shapes_of(both)} == {8}
    assert [reason for reason in left_out(both) if "768 columns on 8 ranks" in reason]
    alone = read_given(f"{text}expert: 1}}\n", "serving")
    assert {shape.expert for shape in shapes_of(alone)} == {1}
    assert left_out(alone) == ()
    pipelines = "model: llama3-8b\nhardware: h200\nchoices: {tensor: 1, batch: 8, pipeline: "
    for mode, offered in (("[1, 2]", {("both", 1), ("both", 2), ("prefill", 1), ("decode", 1)}), ("2", {("both", 2)})):
        assert {(shape.role, shape.pipeline) for shape in shapes_of(read_given(f"{REQUESTS}{pipelines}{mode}}}\n", "serving"))} == offered


@pytest.mark.parametrize(
    ("settings", "form"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block"),
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"type": "float", "num_bits": 8}}}}, "fp8"),
        ({"quant_method": "awq", "bits": 4}, "int4"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "fp4"),
        ({"quant_method": "mxfp4"}, "fp4"),
        ({"quant_method": "bitsandbytes", "bits": 4}, None),
        (None, None),
    ],
)
def test_the_format_in_a_config_is_read(settings: dict[str, object] | None, form: str | None) -> None:
    assert format_of_config({} if settings is None else {"quantization_config": settings}) == form


def test_a_model_in_4_bits_alone_is_served_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On devices that do not compute in 4 bits they are weights alone."""
    for gpu, form in (("h200", "int4"), ("b200", "fp4")):
        out = str(tmp_path / f"{gpu}.json")
        line = [
            "serve",
            "openai/gpt-oss-120b",
            "--gpus",
            f"8x{gpu}",
            "--input",
            "500",
            "--output",
            "100",
            "--mode",
            "together",
            "--out",
            out,
        ]
        assert main(line) == 0
        assert f"{form} weights (the checkpoint's)" in " ".join(capsys.readouterr().out.split())
        assert main(["export", out, "--as", "vllm"]) == 0
        text = capsys.readouterr().out
        assert "vllm serve openai/gpt-oss-120b" in text
        assert "--quantization" not in text
