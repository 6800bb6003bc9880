"""Workloads as a question gives them by name and by shape."""

from dataclasses import replace

import pytest

from crossopt.crossflow.workload import Gemm, Lstm, Transformer
from crossopt.instances.catalogue.workload import WorkloadSection
from crossopt.instances.errors import Fault
from crossopt.instances.files.document import read_text
from crossopt.instances.files.schema import read_as
from tests.instances.catalogue.sections import built, faults_of

SHAPE = Transformer("", global_batch=1, layers=2, hidden=64, heads=4, ffn=256, vocabulary=1000, sequence=128)


def test_a_named_network_takes_its_shape_from_the_registry_and_its_batch_from_the_question() -> None:
    workload = built(WorkloadSection(model="gpt3-175b", global_batch=(1536,)))
    assert isinstance(workload, Transformer)
    assert (workload.name, workload.layers, workload.hidden, workload.heads) == ("gpt3-175b", 96, 12288, 96)
    assert (workload.sequence, workload.global_batch, workload.precision) == (2048, 1536, "bf16")
    assert (workload.attention, workload.dropout, workload.capacity_factor) == ("flash", False, 1.0)
    assert (workload.gradient_bytes, workload.optimizer_bytes) == (4.0, 12.0)


def test_the_fullest_of_spread_experts_is_a_tenth_fuller_where_nothing_is_said() -> None:
    workload = built(WorkloadSection(model="mixtral-8x7b", global_batch=(8,)))
    assert isinstance(workload, Transformer)
    assert (workload.capacity_factor, workload.fullest(1.0), workload.fullest(4.0)) == (1.1, 1.0, 1.1)


def test_the_question_overrides_what_training_changes() -> None:
    section = WorkloadSection(
        model="mixtral-8x7b",
        global_batch=(8,),
        sequence=4096,
        precision="fp8",
        attention="unfused",
        dropout=True,
        capacity_factor=1.25,
        gradient_bytes=2.0,
        optimizer_bytes=0.0,
        logit_bytes=2.0,
    )
    workload = built(section)
    assert isinstance(workload, Transformer)
    assert (workload.sequence, workload.precision, workload.attention, workload.dropout) == (4096, "fp8", "unfused", True)
    assert (workload.capacity_factor, workload.gradient_bytes, workload.optimizer_bytes, workload.logit_bytes) == (1.25, 2.0, 0.0, 2.0)
    assert (workload.experts, workload.experts_per_token) == (8, 2)


def test_dropout_is_the_networks_own_unless_the_question_says_otherwise() -> None:
    section = WorkloadSection(model="megatron-22b", global_batch=(4,))
    usual, without = built(section), built(replace(section, dropout=False))
    assert isinstance(usual, Transformer) and isinstance(without, Transformer)
    assert usual.dropout
    assert usual == replace(without, dropout=True)


def test_a_shape_in_the_question_is_taken_whole() -> None:
    shape = replace(
        SHAPE, kv_heads=2, head_size=32, gated=True, tied=False, learned_positions=False, biases=False, experts=4, experts_per_token=2
    )
    workload = built(WorkloadSection(transformer=shape, global_batch=(16,)))
    assert isinstance(workload, Transformer)
    assert workload.name == "transformer"
    names = ("kv_heads", "head_size", "gated", "tied", "learned_positions", "biases", "experts", "experts_per_token")
    assert [getattr(workload, name) for name in names] == [2, 32, True, False, False, False, 4, 2]


def test_an_lstm_has_its_own_defaults() -> None:
    shape = Lstm("", global_batch=1, layers=2, hidden=128, vocabulary=1000, sequence=20)
    expected = Lstm("lstm", 2, 128, 1000, 20, 64, precision="fp16", gradient_bytes=2.0, optimizer_bytes=0.0)
    section = WorkloadSection(lstm=shape, global_batch=(64,), precision="fp16")
    assert built(section) == expected
    assert built(replace(section, sequence=40, optimizer_bytes=8.0)) == replace(expected, sequence=40, optimizer_bytes=8.0)


def test_a_matrix_product_needs_no_batch() -> None:
    section = WorkloadSection(gemm=Gemm("", rows=8, depth=16, columns=32), precision="fp16")
    assert built(section) == Gemm("gemm", 8, 16, 32, "fp16")
    assert built(WorkloadSection(model="gemm-4096")) == Gemm("gemm-4096", 4096, 4096, 4096, "bf16")


WAYS = "(give exactly one of model, transformer, lstm, gemm, config)"


@pytest.mark.parametrize(
    ("section", "faults"),
    [
        (WorkloadSection(global_batch=(8,)), [("", f"no network is given {WAYS}")]),
        (WorkloadSection(model="gpt3-175b", transformer=SHAPE), [("transformer", f"model and transformer are given at once {WAYS}")]),
        (
            WorkloadSection(model="gpt3-175", global_batch=(8,)),
            [("model", "'gpt3-175' is no known workload (did you mean 'gpt3-175b'? see `crossopt list workloads`)")],
        ),
        (
            WorkloadSection(model="gpt3-175b"),
            [("global_batch", "this key is missing, the samples of one optimizer step are needed (for example 512)")],
        ),
        (
            WorkloadSection(transformer=SHAPE, capacity_factor=1.5),
            [
                ("capacity_factor", "a network without experts has no capacity_factor (remove it)"),
                ("global_batch", "this key is missing, the samples of one optimizer step are needed (for example 512)"),
            ],
        ),
        (
            WorkloadSection(model="deepflow-lstm", global_batch=(8,), dropout=True),
            [("dropout", "an LSTM has no dropout (remove it)")],
        ),
        (
            WorkloadSection(model="deepflow-lstm", global_batch=(8,), lora_rank=8),
            [("lora_rank", "an LSTM has no lora_rank (remove it)")],
        ),
        (
            WorkloadSection(model="gemm-4096", global_batch=(8,), sequence=8),
            [
                ("global_batch", "a matrix product has no global_batch (remove it)"),
                ("sequence", "a matrix product has no sequence (remove it)"),
            ],
        ),
    ],
)
def test_every_fault_is_reported_at_its_key(section: WorkloadSection, faults: list[tuple[str, str]]) -> None:
    assert faults_of(section) == faults


def test_shapes_that_do_not_go_together_are_refused_where_they_stand() -> None:
    text = "transformer: {layers: 2, hidden: 64, heads: 3, ffn: 256, vocabulary: 1000, sequence: 128}\nglobal_batch: 8"
    faults: list[Fault] = []
    assert read_as(WorkloadSection, read_text(text, "question.yaml"), faults) is None
    assert faults == [Fault(1, 14, "transformer", "hidden 64 is not a multiple of heads 3: give head_size")]
