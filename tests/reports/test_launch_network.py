"""What settings of training stacks say of the network's training: recipes, optimizer state, fused kernels, and what is not trained."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crossopt.crossflow.evaluate import evaluate
from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.stack_rules import STACKS, broken_rows
from crossopt.instances.codesign.stack_table import Machine
from crossopt.instances.errors import RefusedError
from crossopt.instances.question import read
from crossopt.reports.launching.launch import EXPORTS, launch, launch_text, unsaid_text
from crossopt.reports.launching.options import parsed_flags
from crossopt.solvers.codesign.answer import Candidate, design_of
from tests.solvers.codesign.questions import ask

SHARED = Plan(data=32, zero=1, overlap="data")


def question(model: str, more: str = "") -> Any:  # noqa: ANN401
    return ask(f"kind: codesign\nworkload: {{model: {model}, global_batch: 64{more}}}\ncluster: {{devices: 32}}\nhardware: h100-sxm\n")


def network(model: str, more: str = "") -> Transformer:
    asked = question(model, more).workload
    assert isinstance(asked, Transformer)
    return asked


def settings(name: str, model: Transformer, plan: Plan = SHARED) -> dict[str, str | None]:
    return {setting.name: setting.value for setting in EXPORTS[name].settings(model, plan)}


@pytest.mark.parametrize(
    ("name", "release"), [("megatron", "Megatron-Core 0.15"), ("torchtitan", "0.2.2"), ("deepspeed", "0.18"), ("fsdp", "PyTorch 2.8")]
)
def test_an_export_says_first_what_version_its_settings_are_of(name: str, release: str) -> None:
    text = launch_text(name, question("llama3-8b"), Candidate(0, Plan(data=32, zero=3, overlap="data")))
    assert text.startswith("# for ")
    assert release in text.splitlines()[0]
    assert EXPORTS[name].options.source.split()[0] in " ".join(text.splitlines()[:2])


@pytest.mark.parametrize(
    ("size", "precision", "zero", "moments", "said"),
    [
        (12, "bf16", 1, None, True),
        (10, "bf16", 1, "fp32", True),
        (8, "bf16", 1, "bf16", True),
        (6, "fp8", 3, "bf16", True),
        (8, "fp16", 1, "bf16", True),
        (6, "fp16", 1, None, False),
        (8, "bf16", 0, None, False),
        (7, "bf16", 1, None, False),
    ],
)
def test_optimizer_state_of_fewer_bytes_has_its_arguments_or_is_told(
    size: int, precision: str, zero: int, moments: str | None, said: bool
) -> None:
    """A master weight of 4 bytes, or the 2 that a weight in bf16 has not; and two moments of 4 or 2. Replicas have to share it."""
    model = network("llama3-8b", f", optimizer_bytes: {size}, precision: {precision}")
    plan = replace(SHARED, zero=zero)
    found = settings("megatron", model, plan)
    assert ("--use-precision-aware-optimizer" in found) is (moments is not None)
    assert {found.get(f"--exp-avg{part}-dtype", "fp32") for part in ("", "-sq")} == {moments or "fp32"}
    assert any(words.startswith("optimizer_bytes is") for words in launch("megatron", model, plan).remarks) is not said
    assert launch("megatron", model, plan).plan == plan


@pytest.mark.parametrize("name", ["torchtitan", "deepspeed", "fsdp"])
def test_stacks_without_a_setting_for_small_states_and_logits_tell_it(name: str) -> None:
    model = network("llama3-8b", ", optimizer_bytes: 8, logit_bytes: 2")
    remarks = launch(name, model, Plan(data=32, zero=3, overlap="data")).remarks
    assert {"optimizer_bytes is 8.0, which no setting here says", "logit_bytes is 2.0, which no setting here says"} <= set(remarks)


def test_eight_bits_come_with_the_recipe_of_measured_runs() -> None:
    """Of current scaling; Megatron's own default is delayed."""
    dense, mixed = (settings("megatron", network(name, ", precision: fp8")) for name in ("llama3-8b", "qwen3-235b-a22b"))
    assert (dense["--fp8-format"], dense["--fp8-recipe"]) == ("hybrid", "tensorwise")
    assert "--fp8-recipe" not in settings("megatron", network("llama3-8b"))
    assert {"--moe-grouped-gemm", "--moe-router-padding-for-fp8"} <= mixed.keys() - dense.keys()
    titan = settings("torchtitan", network("llama3-8b", ", precision: fp8"), Plan(data=32, zero=3, overlap="data"))
    assert titan["--model.converters"] == "quantize.linear.float8"
    assert titan["--quantize.linear.float8.recipe_name"] == "tensorwise"


@pytest.mark.parametrize(
    ("name", "scaling", "key"), [("torchtitan", "rows", "--quantize.linear.float8.recipe_name"), ("megatron", "blocks", "--fp8-recipe")]
)
def test_scales_are_said_where_the_stack_has_them_and_refused_where_not(name: str, scaling: str, key: str) -> None:
    plan = Plan(data=32, zero=3, overlap="data")
    mine, other = (network("llama3-8b", f", precision: fp8, scaling: {one}") for one in (scaling, {"rows": "blocks"}.get(scaling, "rows")))
    assert settings(name, mine, plan)[key] == {"rows": "rowwise", "blocks": "blockwise"}[scaling]
    assert not any(words.startswith("scaling is") for words in launch(name, mine, plan).remarks)
    with pytest.raises(RefusedError, match="scaling"):
        launch(name, other, plan)


@pytest.mark.parametrize(("device", "recipe"), [("h100-sxm", "blockwise"), ("b200", "mxfp8")])
def test_scales_of_blocks_are_those_of_the_device(device: str, recipe: str) -> None:
    asked = ask(
        f"kind: codesign\nworkload: {{model: llama3-8b, global_batch: 64, precision: fp8, scaling: blocks}}\ncluster: {{devices: 32}}\n"
        f"hardware: {device}\n"
    )
    assert f"--fp8-recipe {recipe} " in launch_text("megatron", asked, Candidate(0, SHARED))


def test_an_exchange_hidden_over_two_nodes_is_launched_unhidden() -> None:
    """With `--as`, of a question without a stack, too: eight ranks on nodes of four."""
    asked = ask(
        "kind: codesign\nworkload: {model: llama3-8b, global_batch: 64}\ncluster: {devices: 32, devices_per_node: 4}\nhardware: h100-sxm\n"
    )
    plan = Plan(tensor=8, data=4, zero=1, overlap="data", sequence_parallel=True, tensor_exchange="hidden")
    for name, one in (("megatron", plan), ("torchtitan", replace(plan, zero=3))):
        text = launch_text(name, asked, Candidate(0, one))
        assert "launches tensor_exchange exposed in place of hidden" in text
        assert "overlap \\" not in text
        assert "an NVLink domain" in " ".join(text.replace("#", "").split())


@pytest.mark.parametrize(("model", "quicker"), [("llama3-8b", 0), ("llama3.2-1b", 1)])
def test_of_placements_that_are_launched_the_quicker_one_is_taken(model: str, quicker: int) -> None:
    """Megatron-Core launches two of them in place of replicas beside each other, and what these cost depends on the question."""
    asked = question(model)
    plan = Plan(tensor=2, pipeline=4, data=4, zero=1, sequence_parallel=True, placement="data-tensor-context-pipeline")
    both = ("tensor-context-data-pipeline", "tensor-context-pipeline-data")
    designs = [design_of(asked, Candidate(0, replace(plan, placement=placement))) for placement in both]
    times = [evaluate(asked.workload, design, asked.budget, asked.prices).step_time for design in designs]
    assert times[quicker] < times[1 - quicker]
    text = launch_text("megatron", asked, Candidate(0, plan))
    assert f"launches placement {both[quicker]} in place of" in " ".join(text.replace("#", "").split())


def test_torchtitan_launches_what_it_calls_selective() -> None:
    """Attention and every other product are kept; the plan comes back, and other selective checkpoints are not taken for it."""
    model, plan = network("llama3-8b"), Plan(data=32, zero=3, overlap="data", recompute="elements+second-products")
    assert launch("torchtitan", model, plan).plan == plan
    told = settings("torchtitan", model, plan)
    names = ("mode", "selective_ac_option")
    assert [told[f"--activation_checkpoint.{name}"] for name in names] == ["selective", "op"]
    assert "--activation_checkpoint.selective_ac_option" not in settings("torchtitan", model, replace(plan, recompute="full"))
    with pytest.raises(ValueError, match="operator by operator"):
        EXPORTS["torchtitan"].read({**told, "--activation_checkpoint.selective_ac_option": "2"}, model, 32)


def test_fused_kernels_are_asked_for() -> None:
    found = settings("megatron", network("qwen3-235b-a22b"))
    assert {"--moe-permute-fusion", "--moe-router-fusion", "--cross-entropy-loss-fusion", "--manual-gc"} <= found.keys()
    assert not {name for name in settings("megatron", network("llama3-8b")) if name.startswith("--moe")}


@pytest.mark.parametrize(("attention", "backend"), [("flash", "auto"), ("unfused", "unfused")])
def test_the_backend_of_attention_is_what_the_device_is_fastest_with(attention: str, backend: str) -> None:
    """The word flash turns cuDNN's fused attention off, which Transformer Engine prefers on Hopper and later."""
    assert settings("megatron", network("llama3-8b", f", attention: {attention}"))["--attention-backend"] == backend


def test_tensor_exchange_hides_beside_sharing_but_not_beside_megatron_fsdp() -> None:
    """Megatron-LM's arguments.py: Megatron-FSDP refuses CUDA_DEVICE_MAX_CONNECTIONS=1, which tensor ranks want."""
    model = network("llama3-8b")
    hidden = Plan(tensor=2, data=16, sequence_parallel=True, zero=1, overlap="data", tensor_exchange="hidden")
    assert launch("megatron", model, hidden).plan == hidden
    found = launch("megatron", model, replace(hidden, zero=3))
    assert found.plan == replace(hidden, zero=3, tensor_exchange="exposed")
    assert any("CUDA_DEVICE_MAX_CONNECTIONS=1" in words for words in found.instead)
    assert any("Megatron warns of both together" in words for words in found.remarks)


@pytest.mark.parametrize(
    ("model", "name", "flavor", "unsaid"),
    [
        ("llama3-70b", "llama3", "70B", ""),
        ("qwen3-32b", "qwen3", "32B", ""),
        ("qwen3-235b-a22b", "qwen3", "235B-A22B", ""),
        ("deepseek-v3", "deepseek_v3", "671B", "prediction_layers is 1"),
        ("llama2-70b", None, None, ""),
    ],
)
def test_torchtitan_has_flavors_for_its_networks(model: str, name: str | None, flavor: str | None, unsaid: str) -> None:
    found = settings("torchtitan", network(model), Plan(data=32, zero=3, overlap="data"))
    assert (found.get("--model.name"), found.get("--model.flavor")) == (name, flavor)
    words = unsaid_text(STACKS["torchtitan"], network(model), Plan(data=32, zero=3, overlap="data"))
    assert words == (f"no setting of torchtitan says that {unsaid}: that is priced here, and something else is launched" if unsaid else "")


def test_qwen3_goes_without_context_ranks_in_torchtitan() -> None:
    plan = Plan(tensor=2, context=2, data=8, sequence_parallel=True, zero=3, overlap="data")
    rows = [broken_rows(STACKS["torchtitan"], network(model), plan, Machine()) for model in ("llama3-70b", "qwen3-32b")]
    assert [len(broken) for broken in rows] == [0, 1]


def test_gemma_is_launched_by_a_provider_without_context_ranks() -> None:
    model = network("gemma-2-27b")
    plan = Plan(tensor=2, context=2, data=8, sequence_parallel=True)
    assert [row.sentence for row in broken_rows(STACKS["megatron-core"], model, plan, Machine())] == [
        "attention with logit soft-capping (Gemma 2) does not support context parallelism"
    ]
    [words] = [words for words in launch("megatron", model, SHARED).remarks if "Gemma2ModelProvider" in words]
    assert words.startswith("scores and logits are bent by tanh, and results are normed, which no setting here says")
    assert "ask with workload.attention: unfused" in words
    told = launch("megatron", replace(model, attention="unfused"), SHARED).remarks
    assert not any("ask with workload.attention" in words for words in told)


def test_gates_of_gelu_are_the_nearest_that_megatron_has_and_told_as_another_training() -> None:
    """Gemma 2 has gelu_pytorch_tanh; of gated activations Megatron-LM has --swiglu and --quick-geglu alone."""
    model = network("gemma-2-27b")
    found = launch("megatron", model, SHARED)
    assert "--quick-geglu" in found.text
    assert "--swiglu" not in f"{found.text}{found.remarks}"
    assert any(words.startswith("gates are of GELU's tanh form, which no setting here says") for words in found.remarks)
    other = launch("megatron", network("llama3-8b"), SHARED)
    assert "--swiglu" in other.text
    assert not any("GELU" in words for words in other.remarks)


@pytest.mark.parametrize("name", tuple(EXPORTS))
def test_adapters_are_told_at_the_top_and_beside_the_answer(name: str) -> None:
    asked = question("llama3-8b", ", lora_rank: 16")
    plan = Plan(data=32, zero=3, overlap="data")
    lines = launch_text(name, asked, Candidate(0, plan)).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("# NOT AS PRICED: adapters of rank 16"))
    assert first < 6
    assert "adapters of rank 16 stand beside every matrix" in unsaid_text(STACKS[EXPORTS[name].stack], asked.workload, plan)


@pytest.mark.parametrize("zero", [0, 3])
def test_fully_shard_freezes_layers_before_they_are_shared(zero: int) -> None:
    model = network("llama3-8b", ", frozen_layers: 16")
    found = launch("fsdp", model, Plan(data=32, zero=zero, overlap="data"))
    assert settings("fsdp", model, found.plan)["requires_grad_.requires_grad"] == "False"
    frozen = "for part in (model.embedding, *model.layers[:16]):\n        part.requires_grad_(requires_grad=False)\n"
    before, _, after = found.text.partition(frozen)
    assert "fully_shard(part" not in before
    assert "DistributedDataParallel(model" in after or "fully_shard(part" in after
    assert "AdamW([one for one in model.parameters() if one.requires_grad])" in after
    assert unsaid_text(STACKS["fsdp"], model, found.plan) == ""
    for name in ("megatron", "torchtitan", "deepspeed"):
        stack = STACKS[EXPORTS[name].stack]
        assert "layers" in unsaid_text(stack, model, Plan(data=32, zero=3, overlap="data")), name


def test_the_script_says_that_its_stand_in_is_another_network() -> None:
    """Llama 3 8B's 8.03 billion against 32 layers of 4 x 4096^2 and 2 x 4096 x 14336, and two tables of 128,256 x 4096, with biases."""
    text = launch("fsdp", network("llama3-8b"), Plan(data=32, zero=3, overlap="data")).text
    assert "NOT YOUR NETWORK'S TIME OR MEMORY" in text
    assert "# 6.96B weights where yours has 8.03B" in text


def test_rotary_base_and_epsilon_are_those_of_the_registry_or_of_the_configuration(tmp_path: Path) -> None:
    """What neither states is left to the user in a sentence; so is a scaling that Megatron has no two options for."""
    chosen = Candidate(0, SHARED)
    assert "--rotary-base 1000000 \\\n  --norm-epsilon 1e-06\n" in launch_text("megatron", question("qwen3-32b"), chosen)
    assert "take the epsilon of norms (--norm-epsilon) from" in plain(launch_text("megatron", question("gpt3-1.3b"), chosen))
    config = {"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "intermediate_size": 8192}
    config |= {"vocab_size": 128256, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "rope_theta": 5e5}
    for scaling, found, told in (
        (None, {"--rotary-base": "500000", "--norm-epsilon": "1e-05"}, False),
        ({"rope_type": "llama3", "factor": 32.0}, {"--rope-scaling-factor": "32", "--use-rope-scaling": None}, False),
        ({"rope_type": "yarn", "factor": 4.0}, {"--norm-epsilon": "1e-05"}, True),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config | {"rope_scaling": scaling}), encoding="utf-8")
        (tmp_path / "run.yaml").write_text(
            "kind: codesign\nworkload: {config: config.json, sequence: 4096, global_batch: 64}\n"
            "cluster: {devices: 32}\nhardware: h100-sxm\n",
            encoding="utf-8",
        )
        text = launch_text("megatron", read(tmp_path / "run.yaml"), chosen)
        given = parsed_flags(text)
        assert found.items() <= given.items()
        assert ("the base and scaling of rotary positions" in plain(text)) == told == ("--rotary-base" not in given)


def plain(text: str) -> str:
    return " ".join(text.replace("\n#    ", "").split())
