"""What words of a table of runs mean: frameworks, precisions, what is computed again, what is shared out."""

from pathlib import Path

import pytest

from crossopt.instances.measured.runs import device_for, family_of, framework_of, precision_of, recompute_of, scaling_of, shard_of, zero_of
from tests.instances.measured.test_runs import one, reason


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "runs.csv"


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("full (use_checkpoint true)", "full"),
        ("none (flash attention)", "none"),
        ("per-op selective", "selective"),
        ("selective (attention)", "selective"),
        ("elements", "elements"),
        ("selective-elements", "selective-elements"),
        ("False", "none"),
    ],
)
def test_words_for_recomputation(word: str, meaning: str) -> None:
    assert recompute_of(word) == meaning


@pytest.mark.parametrize(
    ("word", "stage"),
    [
        ("ZeRO-0", 0),
        ("ZeRO-1 group 8 (-1 = all)", 1),
        ("hybrid ZeRO-1 over 8", 1),
        ("OverlappedDistributedOptimizer", 1),
        ("distributed optimizer", 1),
        ("FSDP SHARD_GRAD_OP", 2),
        ("FSDP FULL_SHARD", 3),
        ("FSDP2", 3),
        ("FSDP 64", 3),
        ("ZeRO-3", 3),
        ("HSDP", 3),
        ("none", 0),
    ],
)
def test_words_for_sharing(word: str, stage: int) -> None:
    assert zero_of(word) == stage


@pytest.mark.parametrize(("degrees", "word"), [({}, "ZeRO-9"), ({}, "ZeRO-10"), ({"tp": "8", "dp": "1"}, "ZeRO-9")])
def test_a_stage_that_there_is_not_is_refused_also_where_nobody_shares(degrees: dict[str, str], word: str, tmp_path: Path) -> None:
    assert reason(tmp_path / "runs.csv", {**degrees, "zero_fsdp": word}) == f"zero_fsdp '{word}' is not understood"


def test_words_for_groups_of_ranks_that_share() -> None:
    for word, ranks in (
        ("ZeRO-1 group 16 (-1 = all)", 16),
        ("ZeRO-1 group -1 (-1 = all)", 0),
        ("hybrid ZeRO-1 over 8", 8),
        ("HSDP", 4),
        ("FSDP 64", 0),
    ):
        assert shard_of(word, 4) == ranks


@pytest.mark.parametrize(
    ("word", "meaning"),
    [("FP8", "tensorwise"), ("FP8-CS (FP8-MX)", "tensorwise"), ("MXFP8", "blocks"), ("NVFP4", "blocks"), ("fp8 delayed", "delayed")],
)
def test_words_for_precisions_may_say_what_scales_are_taken_from(word: str, meaning: str) -> None:
    assert scaling_of(word) == meaning
    assert scaling_of(word, "delayed") == ("delayed" if word == "FP8" else meaning), "a stack's own where nothing is said"


@pytest.mark.parametrize(
    ("word", "meaning"),
    [("amp_bf16", "bf16"), ("bf16/fp16", "bf16"), ("FP8-CS (FP8-MX)", "fp8"), ("MXFP8", "fp8"), ("fp16", "fp16"), ("NVFP4", "fp4")],
)
def test_words_for_precisions(word: str, meaning: str) -> None:
    assert precision_of(word) == meaning


@pytest.mark.parametrize(
    ("column", "word", "why"),
    [
        ("zero_fsdp", "some", "is not understood"),
        ("zero_fsdp", "ZeRO (see note)", "is not understood"),
        ("recompute", "sometimes", "is not understood"),
        ("framework", "Megatorn-LM", "framework 'Megatorn-LM' is not understood (one of Megatron-LM, Megatron-DeepSpeed, "),
        ("time_kind", "estimated", "time_kind 'estimated' is not understood (measured or derived)"),
        ("precision", "NVFP4", "does not compute in fp4"),
        ("precision", "fp8", "does not compute in fp8"),
    ],
)
def test_words_that_mean_nothing_here_reject_their_row(column: str, word: str, why: str, file: Path) -> None:
    assert why in reason(file, {column: word})


def test_an_early_framework_cannot_run_on_a_later_device() -> None:
    """'Megatron-LM' alone means the stack of 2021 on an A100 and its successor on an H100."""
    assert framework_of("Megatron-LM", "a100-80g").attention == "unfused"
    assert framework_of("Megatron-LM", "h100-sxm").attention == "flash"


@pytest.mark.parametrize(
    ("word", "gpu", "gradient", "overlap", "zero"),
    [
        ("Megatron-DeepSpeed", "a100-80g", 4.0, "none", 0),
        ("Megatron-LM", "a100-80g", 4.0, "none", 0),
        ("Megatron-Core", "h100-sxm", 4.0, "both", 1),
        ("NeMo/Megatron-Core", "h100-sxm", 2.0, "both", 1),
        ("Megatron-Bridge", "h100-sxm", 2.0, "both", 1),
        ("Composer FSDP", "a100-40g", 4.0, "data", 3),
        ("torchtitan", "h100-sxm", 4.0, "data", 3),
        ("PyTorch DDP", "a100-80g", 4.0, "data", 0),
        ("Fully Sharded Data Parallel", "a100-80g", 2.0, "data", 3),
    ],
)
def test_frameworks_have_their_own_exchanges(word: str, gpu: str, gradient: float, overlap: str, zero: int) -> None:
    stack = framework_of(word, gpu)
    assert (stack.gradient_bytes.get("bf16", stack.gradient_bytes[""]), stack.overlap, stack.zero) == (gradient, overlap, zero)


@pytest.mark.parametrize(
    ("word", "source", "scaling", "gradient", "logit"),
    [
        ("NeMo/Megatron-Core", "NeMo 24.07 performance summary", "delayed", 4.0, 4.0),
        ("NeMo/Megatron-Core", "benchmarking recipes v25.04.01 2025-05-21", "delayed", 2.0, 4.0),
        ("NeMo", "runs of 2048 devices", "delayed", 2.0, 4.0),
        ("Megatron-Bridge", "performance summary 26.02 NeMo Container", "tensorwise", 2.0, 2.0),
        ("Megatron-Core", "NeMo 24.07", "tensorwise", 4.0, 4.0),
    ],
)
def test_a_run_has_the_defaults_of_the_edition_that_launched_it(
    word: str, source: str, scaling: str, gradient: float, logit: float, file: Path
) -> None:
    found = one(file, {"gpu": "H100", "framework": word, "source": source, "precision": "FP8"}).workload
    assert (found.scaling, found.gradient_bytes, found.logit_bytes) == (scaling, gradient, logit)
    assert one(file, {"gpu": "H100", "framework": word, "source": source, "precision": "MXFP8"}).workload.scaling == "blocks"


@pytest.mark.parametrize(
    ("word", "precision", "size", "scattered"),
    [
        ("Megatron-DeepSpeed", "bf16", 4.0, False),
        ("Megatron-DeepSpeed", "fp16", 2.0, True),
        ("Megatron-LM", "bf16", 4.0, True),
        ("Megatron-LM", "fp16", 2.0, True),
    ],
)
def test_gradients_of_early_bfloat16_runs_are_summed_in_single_precision(
    word: str, precision: str, size: float, scattered: bool, file: Path
) -> None:
    workload = one(file, {"framework": word, "precision": precision}).workload
    assert (workload.gradient_bytes, workload.scattered_gradients) == (size, scattered)


@pytest.mark.parametrize(("word", "hidden"), [("Megatron-Core", True), ("NeMo", True), ("MLPerf", True), ("Megatron-LM", False)])
def test_megatron_core_hides_what_its_readme_says_that_it_hides(word: str, hidden: bool, file: Path) -> None:
    """Exchanges of tensor ranks and the gather of updated weights; and it sends whole messages."""
    run = one(file, {"framework": word, "tp": "2", "dp": "4"})
    assert run.workload.whole_messages is hidden
    assert (run.plan.tensor_exchange == "hidden", run.workload.hides_publication) == (hidden, hidden)


def test_composer_on_pytorch_2_reduces_in_single_precision_and_stops_early(file: Path) -> None:
    """And on PyTorch 1.13, in its mode PURE, neither; nor does anybody else's checkpoint that is not PyTorch's."""
    for word, note, size, early in (
        ("Composer FSDP", "MP mode DEFAULT; grad accum 4", 4.0, True),
        ("Composer FSDP", "MP mode PURE; grad accum 1", 2.0, False),
        ("PyTorch FSDP + compile", "", 2.0, True),
        ("Megatron-DeepSpeed", "", 4.0, False),
    ):
        workload = one(file, {"framework": word, "precision": "bf16", "note": note}).workload
        assert (workload.gradient_bytes, workload.stops_early) == (size, early)


def test_torchtitan_calls_selective_what_keeps_attention_and_every_other_product(file: Path) -> None:
    """And its asynchronous tensor parallelism is told by a note alone; its devices were held to 500 W, with 2.4 TB/s."""
    row = {"framework": "torchtitan", "gpu": "H100-96GB HBM2e 500W", "precision": "bf16", "pp": "1", "dp": "8", "recompute": "selective"}
    plain, told = (one(file, {**row, "source": "torchtitan benchmarks", "note": note}) for note in ("vanilla TP", "async TP"))
    assert plain.plan.recompute == told.plan.recompute == "elements+second-products"
    assert (plain.plan.tensor_exchange, told.plan.tensor_exchange) == ("exposed", "hidden")
    eager = one(file, {**row, "source": "torchtitan benchmarks", "note": "no compile (seq 8192 recalled)"})
    assert (eager.workload.eager, plain.workload.eager) == (True, False)
    held, elsewhere = (device_for(one(file, {**row, "source": source})) for source in ("torchtitan benchmarks", "a paper"))
    assert (held.power, held.dram.bandwidth, elsewhere.power, elsewhere.dram.bandwidth) == (500.0, 2.4e12, 700.0, 3.35e12)
    assert held.throughput == pytest.approx(elsewhere.throughput * (395 / 595) ** (1 / 3))
    assert one(file, {**row, "framework": "Megatron-Core"}).plan.recompute == "selective"


def test_fused_attention_of_2022_is_slower_but_where_constants_were_fitted_to_it(file: Path) -> None:
    on = [one(file, {"framework": "Composer FSDP", "precision": "bf16", "gpu": gpu, "pp": "1", "dp": "8"}) for gpu in ("H100", "A100-80GB")]
    assert [row.workload.attention_rate for row in on] == [pytest.approx((1.3 * 2.5) ** -0.5), 1.0]


def test_internevo_sums_gradients_everywhere_and_broadcasts_whole_matrices(file: Path) -> None:
    workload = one(file, {"framework": "InternEvo", "precision": "bf16"}).workload
    assert (workload.gradient_bytes, workload.scattered_gradients, workload.broadcasts) == (2.0, False, True)
    assert workload.gradient_traffic == 6.0
    assert not one(file, {"framework": "Megatron-LLaMA", "precision": "bf16"}).workload.broadcasts


@pytest.mark.parametrize("word", ["Megatron-DeepSpeed", "Megatron + Deepspeed 3D (new branch)"])
def test_an_early_pipeline_cannot_run_on_a_later_device(word: str) -> None:
    assert framework_of(word, "h100-sxm") == framework_of("Megatron-Core", "h100-sxm")
    assert framework_of(word, "v100-32g").all_reduces == {"bf16"}


def test_a_narrow_feed_forward_part_is_gated() -> None:
    assert family_of("a model", 4096, 11008).gated
    assert not family_of("a model", 4096, 16384).gated
