"""What torchtitan is told: degrees, schedules, layers of chunks, and what its versions keep."""

import re
from dataclasses import replace

import numpy as np
import pytest

from crossopt.crossflow.plan import Plan, Schedule
from crossopt.crossflow.workload import Transformer
from crossopt.reports.launching.launch import launch
from tests.reports.test_launch import MODEL, llama, settings


@pytest.mark.parametrize(("schedule", "compiled"), [("1f1b", True), ("zero-bubble", False)])
def test_torchtitan_compiles_as_the_measured_runs_did(schedule: Schedule, compiled: bool) -> None:
    plan = Plan(pipeline=4, data=4, interleave=2, zero=1, schedule=schedule)
    assert ("--compile.enable" in settings("torchtitan", plan)) is compiled


def test_torchtitan_says_what_an_older_pytorch_keeps_on_the_last_stage() -> None:
    """1,536 samples of 2,048 tokens on 32 replicas: 98,304 tokens, of each 51,200 / 8 logits of 2 bytes, 1.17 GiB; none without stages."""
    told = launch("torchtitan", MODEL, Plan(tensor=8, pipeline=4, data=32, sequence_parallel=True, zero=1)).remarks
    assert "1.17 GiB that are not modelled here" in told[0]
    alone = launch("torchtitan", MODEL, Plan(tensor=8, data=128, sequence_parallel=True, zero=3, overlap="data")).remarks
    assert not any("return_outputs" in words for words in alone)


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
def test_degrees_of_torchtitan_multiply_to_the_devices(zero: int) -> None:
    plan = Plan(tensor=2, context=2, pipeline=2, data=8, zero=zero, overlap="data")
    names = r"(tensor|context|pipeline|shard|replicate).*degree"
    degrees = [int(str(value)) for name, value in settings("torchtitan", plan).items() if re.search(names, name)]
    assert int(np.prod(degrees)) == 64


@pytest.mark.parametrize(("schedule", "word"), [("zero-bubble", "InterleavedZeroBubble"), ("zero-bubble-v", "ZBVZeroBubble")])
def test_the_zero_bubble_schedules_of_torchtitan_are_read_back(schedule: Schedule, word: str) -> None:
    plan = Plan(pipeline=4, data=4, interleave=2, zero=1, schedule=schedule)
    model = llama().workload
    assert isinstance(model, Transformer)
    found = launch("torchtitan", model, plan)
    assert (found.plan, found.instead) == (plan, ())
    assert f"--parallelism.pipeline_parallel_schedule {word}" in found.text
    assert any("not compiled" in words for words in found.remarks)
    other = launch("megatron", model, plan)
    assert other.plan.schedule == "1f1b"
    assert f"megatron-core launches schedule 1f1b in place of {schedule}" in other.instead[0]


def test_torchtitan_counts_embedding_and_head_as_layers_where_their_stages_have_fewer() -> None:
    """Of 32 layers: 10 on each of the two stages between, 3 fewer on the first and 5 fewer on the last."""
    model = llama().workload
    assert isinstance(model, Transformer)
    plan = Plan(pipeline=4, data=4, zero=1, first_stage_layers=7, last_stage_layers=5)
    found = settings("torchtitan", plan, model)
    assert found["--parallelism.pipeline_parallel_layers_per_stage"] == "10"
    assert found["--parallelism.pipeline_parallel_first_stage_less_layers"] == "3"
    assert found["--parallelism.pipeline_parallel_last_stage_less_layers"] == "5"
    for one in (plan, replace(plan, interleave=2, first_stage_layers=6, last_stage_layers=6)):
        assert launch("torchtitan", model, one).plan == one
    other = launch("torchtitan", model, replace(plan, first_stage_layers=8, last_stage_layers=5)).plan
    assert (other.first_stage_layers, other.last_stage_layers) == (0, 0)


def test_chunks_of_torchtitan_hold_the_layers_that_the_plan_says() -> None:
    """Without layers per stage it takes two chunks whatever the plan has, and it counts embedding and head as layers unless told not to."""
    found = settings("torchtitan", Plan(pipeline=4, data=8, interleave=6, zero=1))
    assert found["--parallelism.pipeline_parallel_layers_per_stage"] == "4"
    assert found["--parallelism.pipeline_parallel_schedule"] == "Interleaved1F1B"
    assert found["--parallelism.pipeline_parallel_first_stage_less_layers"] == "0"
