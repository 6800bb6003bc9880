"""The chosen plan as settings of training stacks: every degree is there, multiplies to the devices, and gaps are told."""

import json
import re

import pytest

from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Transformer
from crossopt.reports.cli import main
from crossopt.reports.launch import STACKS, launch_text
from tests.every import every
from tests.paths import INSTANCES

MODEL = Transformer("m", layers=96, hidden=12288, heads=96, ffn=49152, vocabulary=51200, sequence=2048, global_batch=1536)
PLAN = Plan(tensor=8, pipeline=4, data=32, microbatch=2, interleave=6, sequence_parallel=True, recompute="full", zero=1, overlap="both")


def settings(stack: str, plan: Plan = PLAN) -> dict[str, str]:
    return dict(setting.partition(" ")[::2] for setting, _ in STACKS[stack](MODEL, plan).settings)


def test_megatron_by_hand() -> None:
    assert settings("megatron") == {
        "--tensor-model-parallel-size": "8",
        "--pipeline-model-parallel-size": "4",
        "--context-parallel-size": "1",
        "--micro-batch-size": "2",
        "--global-batch-size": "1536",
        "--sequence-parallel": "",
        "--num-virtual-stages-per-pipeline-rank": "6",
        "--recompute-granularity": "full",
        "--recompute-method": "uniform",
        "--recompute-num-layers": "1",
        "--use-distributed-optimizer": "",
        "--overlap-grad-reduce": "",
        "--overlap-param-gather": "",
    }
    assert STACKS["megatron"](MODEL, PLAN).missing == ()


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_degrees_of_torchtitan_multiply_to_the_devices(zero: int) -> None:
    plan = Plan(tensor=2, context=2, pipeline=2, data=8, zero=zero, overlap="data")
    degrees = [
        int(value)
        for name, value in settings("torchtitan", plan).items()
        if re.search(r"(tensor|context|pipeline|shard|replicate).*degree", name)
    ]
    product = 1
    for degree in degrees:
        product *= degree
    assert product == 64


def test_deepspeed_is_a_configuration_whose_batch_adds_up() -> None:
    text = launch_text("q", "deepspeed", MODEL, PLAN)
    document = json.loads(text[text.index("{") : text.rindex("}\n\n") + 1])
    assert document["train_batch_size"] == 32 * document["train_micro_batch_size_per_gpu"] * document["gradient_accumulation_steps"]
    assert document["zero_optimization"] == {"stage": 1, "overlap_comm": True}


def test_what_is_offloaded_has_its_settings() -> None:
    plan = Plan(data=8, zero=3, offload="all")
    assert settings("megatron", plan)["--cpu-offloading-num-layers"] == "93"
    assert {"--optimizer-cpu-offload", "--cpu-offloading-weights", "--cpu-offloading-activations"} < settings("megatron", plan).keys()
    document = json.loads(settings("deepspeed", plan)["zero_optimization:"])
    assert document["offload_optimizer"] == document["offload_param"] == {"device": "cpu"}
    assert not any("offload" in name for stack in STACKS for name in settings(stack))


@every(
    ("stack", "plan", "word"),
    [
        ("megatron", Plan(data=8, zero=3), "FSDP"),
        ("megatron", Plan(pipeline=5, data=8), "do not divide"),
        ("torchtitan", Plan(data=8, zero=1), "ZeRO-1"),
        ("torchtitan", Plan(tensor=8), "sequence parallelism"),
        ("deepspeed", Plan(pipeline=4, interleave=2), "one chunk"),
        ("deepspeed", Plan(tensor=4), "tensor parallelism of 4"),
        ("megatron", Plan(pipeline=2, data=8, offload="activations"), "without a pipeline"),
        ("torchtitan", Plan(data=8, zero=3, offload="all"), "no offloading of activations"),
        ("deepspeed", Plan(data=8, zero=3, offload="activations-optimizer"), "cpu_checkpointing"),
        ("megatron", Plan(data=8, placement="tensor-context-pipeline-data"), "laid out tensor-context-pipeline-data"),
    ],
)
def test_what_a_stack_cannot_do_is_told(stack: str, plan: Plan, word: str) -> None:
    assert any(word in sentence for sentence in STACKS[stack](MODEL, plan).missing)


def test_the_command_writes_what_can_be_pasted(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    target = f"{tmp_path}/result.json"
    assert main(["solve", str(INSTANCES / "tiny.yaml"), "--out", target]) == 0
    capsys.readouterr()
    assert main(["export", target, "--as", "megatron"]) == 0
    out = capsys.readouterr().out
    assert "--tensor-model-parallel-size 1 \\\n" in out
    assert "--micro-batch-size 2" in out
