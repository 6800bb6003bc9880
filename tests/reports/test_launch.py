"""The chosen plan as settings of training stacks: every option is one that the stack has, and what is printed reads back as the plan."""

import ast
import builtins
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crossopt.crossflow.plan import Plan, Plans, plan_at
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign import reading
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.codesign.space import combinations, draw_plans
from crossopt.instances.codesign.stack_rules import STACKS
from crossopt.instances.errors import RefusedError
from crossopt.reports.cli import main
from crossopt.reports.launching.launch import EXPORTS, launch, launch_text
from crossopt.reports.launching.megatron import layout
from crossopt.solvers.codesign.answer import Candidate
from tests.paths import INSTANCES
from tests.solvers.codesign.questions import ask

MODEL = Transformer("m", layers=96, hidden=12288, heads=96, ffn=49152, vocabulary=51200, sequence=2048, global_batch=1536)
PLAN = Plan(tensor=8, pipeline=4, data=32, microbatch=2, interleave=6, sequence_parallel=True, recompute="full", zero=1, overlap="both")
LLAMA = "kind: codesign\nworkload: {model: llama3-8b, global_batch: 64}\ncluster: {devices: 16, devices_per_node: 8}\nhardware: h100-sxm\n"
SHAPES = (
    "workload: {model: llama3-8b, global_batch: 128}\ncluster: {devices: 64, host: {memory: 512 GiB, bandwidth: 25 GB/s}}",
    "workload: {model: mixtral-8x7b, global_batch: 256}\ncluster: {devices: 32}",
    "workload: {model: deepseek-v3, global_batch: 64}\ncluster: {devices: 32}",
    "workload: {model: gpt3-175b, global_batch: 96, attention: unfused}\n"
    "cluster: {devices: 48, host: {memory: 512 GiB, bandwidth: 25 GB/s}}",
    "workload: {transformer: {layers: 21, hidden: 1024, heads: 16, ffn: 4096, vocabulary: 1000, sequence: 4096}, global_batch: 24, "
    "precision: fp32}\ncluster: {devices: 12, devices_per_node: 4}",
)


def settings(name: str, plan: Plan = PLAN, model: Transformer = MODEL) -> dict[str, str | None]:
    return {setting.name: setting.value for setting in EXPORTS[name].settings(model, plan)}


def drawn(name: str, count: int) -> list[tuple[Transformer, Plan]]:
    """Plans of questions that name the stack, of dense models and one with experts, even layers and uneven ones."""
    random, found = np.random.default_rng(0), list[tuple[Transformer, Plan]]()
    stack = EXPORTS[name].stack
    for text in SHAPES:
        asked = ask(f"kind: codesign\n{text}\nhardware: h100-sxm\nchoices: all\nstack: {stack}\n")
        plans = draw_plans(asked, random, 200 * count)
        assert isinstance(plans, Plans)
        assert isinstance(asked.workload, Transformer)
        rows = random.integers(len(plans), size=count // len(SHAPES)) if len(plans) else ()
        found += [(asked.workload, plan_at(plans, int(row))) for row in rows]
    return found


def assert_reads_back(name: str, count: int) -> None:
    """Exactly the plan, and not a word of what the stack does otherwise."""
    for model, plan in drawn(name, count):
        found = launch(name, model, plan)
        assert found.plan == plan
        assert found.instead == ()


@pytest.mark.parametrize("name", tuple(EXPORTS))
def test_plans_of_a_stack_read_back_from_what_is_printed(name: str) -> None:
    assert_reads_back(name, 12)


@pytest.mark.slow
@pytest.mark.parametrize("name", tuple(EXPORTS))
def test_a_thousand_plans_of_a_stack_read_back_from_what_is_printed(name: str) -> None:
    assert_reads_back(name, 1000)


@pytest.mark.slow
def test_drawn_plans_are_of_many_kinds() -> None:
    plans = [plan for _, plan in drawn("megatron", 400)]
    assert {plan.zero for plan in plans} == {0, 1, 2, 3}
    assert {"none", "selective", "full", "full-1", "full-2", "up-projections"} < {plan.recompute for plan in plans}
    assert {plan.last_stage_layers > 0 for plan in plans} == {plan.shard > 0 for plan in plans} == {True, False}
    assert {plan.interleave > 1 for plan in plans} == {plan.expert > 1 for plan in plans} == {True, False}
    assert {plan.offload for plan in plans} == {"none", "activations"}
    assert len({plan.placement for plan in plans}) == 2


@pytest.mark.parametrize(
    ("name", "plan"),
    [
        ("megatron", Plan(pipeline=2, data=8, context=2, zero=1, shard=4, overlap="data")),
        ("torchtitan", Plan(data=16, context=2, zero=3, shard=8, overlap="data")),
        ("torchtitan", Plan(pipeline=2, data=16, zero=1, shard=8)),
        ("fsdp", Plan(data=32, zero=3, shard=8, overlap="data")),
        ("fsdp", Plan(data=32, zero=1, shard=4, overlap="data")),
    ],
)
def test_groups_of_ranks_that_share_read_back(name: str, plan: Plan) -> None:
    found = launch(name, llama().workload, plan)  # type: ignore[arg-type]
    assert found.plan == plan
    assert found.instead == ()


def test_deepspeed_shares_among_all_ranks() -> None:
    found = launch("deepspeed", llama().workload, Plan(data=32, zero=3, shard=8, overlap="data"))  # type: ignore[arg-type]
    assert found.plan.shard == 0
    assert any("ZeRO shards over all ranks" in sentence for sentence in found.instead)


def test_megatron_computes_some_layers_of_each_chunk_again() -> None:
    plan = replace(PLAN, recompute="full-2")
    found = settings("megatron", plan)
    names = ("granularity", "method", "num-layers")
    assert [found[f"--recompute-{name}"] for name in names] == ["full", "block", "2"]
    again = Plan(pipeline=4, data=8, interleave=2, recompute="full-2", zero=1, overlap="both")
    assert launch("megatron", llama().workload, again).plan == again  # type: ignore[arg-type]


def test_megatron_by_hand() -> None:
    found = settings("megatron")
    shapes = {
        "--num-layers": "96",
        "--hidden-size": "12288",
        "--num-attention-heads": "96",
        "--vocab-size": "51200",
        "--seq-length": "2048",
    }
    assert shapes.items() <= found.items()
    plan = {name: value for name, value in found.items() if re.search("parallel|batch|recompute|overlap|optimizer|virtual", name)}
    assert plan == {
        "--tensor-model-parallel-size": "8",
        "--pipeline-model-parallel-size": "4",
        "--context-parallel-size": "1",
        "--micro-batch-size": "2",
        "--global-batch-size": "1536",
        "--sequence-parallel": None,
        "--num-virtual-stages-per-pipeline-rank": "6",
        "--recompute-granularity": "full",
        "--recompute-method": "uniform",
        "--recompute-num-layers": "1",
        "--use-distributed-optimizer": None,
        "--overlap-grad-reduce": None,
        "--overlap-param-gather": None,
    }


def test_shared_gradients_and_weights_go_through_megatron_fsdp() -> None:
    found = settings("megatron", Plan(data=8, zero=2, overlap="data"))
    assert found["--data-parallel-sharding-strategy"] == "optim_grads"
    assert {"--use-megatron-fsdp", "--use-distributed-optimizer"} < found.keys()
    assert settings("megatron", Plan(data=8, zero=3, overlap="data"))["--data-parallel-sharding-strategy"] == "optim_grads_params"


def test_layers_that_do_not_divide_are_dealt_to_chunks() -> None:
    """Ten layers on four stages: the model gives the second and the third stage three."""
    model = Transformer("m", layers=10, hidden=64, heads=4, ffn=64, vocabulary=64, sequence=64, global_batch=8)
    assert layout(model, Plan(pipeline=4)) == "Ett|ttt|ttt|ttL"
    assert layout(model, Plan(pipeline=4, interleave=2)) == "Et|tt|tt|t|t|t|t|tL"
    assert layout(model, Plan(pipeline=4, interleave=3)) == "E|t|t|t|t|t|t|t|t|t|t|L"
    assert layout(replace(model, prediction_layers=1), Plan(pipeline=4)) == "Ettt|ttt|ttt|tmL"
    assert settings("megatron", Plan(pipeline=5), model).keys().isdisjoint({"--pipeline-model-parallel-layout"})


def test_a_network_with_latents_has_their_norms() -> None:
    """Megatron-Core's layers leave them out without --qk-layernorm (gpt_layer_specs.py: linear_q_up_proj, linear_kv_up_proj)."""
    asked = ask(f"kind: codesign\n{SHAPES[2]}\nhardware: h100-sxm\n").workload
    assert isinstance(asked, Transformer)
    assert "--qk-layernorm" in settings("megatron", Plan(data=32), asked)
    assert "--qk-layernorm" not in settings("megatron")


def test_tokens_go_once_a_node_by_the_flex_dispatcher() -> None:
    """Where experts lie on one rank alone there is nothing to send, and that dispatcher refuses it."""
    asked = ask(f"kind: codesign\n{SHAPES[2]}\nhardware: h100-sxm\nstack: megatron-core\n").workload
    assert isinstance(asked, Transformer)
    found = launch("megatron", asked, Plan(data=32, expert=32, zero=1))
    given = settings("megatron", Plan(data=32, expert=32, zero=1), asked)
    assert given["--moe-token-dispatcher-type"] == "flex"
    assert "--moe-enable-deepep" in given
    assert given["--moe-router-dtype"] == "fp32"
    assert (given["--moe-router-num-groups"], given["--moe-router-group-topk"]) == ("8", "4")
    assert any("DeepEP is a library of its own" in words for words in found.remarks)
    alone = settings("megatron", Plan(data=32), asked)
    assert alone["--moe-token-dispatcher-type"] == "alltoall"
    assert "--moe-enable-deepep" not in alone


def test_no_device_holds_a_whole_network_that_is_shared_out() -> None:
    """As the Megatron-FSDP user guide and DeepSpeed's documentation of zero.Init say; fully_shard's code is built on no device, too."""
    whole, shared = Plan(data=32, zero=2, overlap="data"), Plan(data=32, zero=3, overlap="data")
    assert "--init-model-with-meta-device" in settings("megatron", shared)
    assert "--init-model-with-meta-device" not in settings("megatron", whole)
    assert any("zero.Init" in words for words in launch("deepspeed", MODEL, shared).remarks)
    assert not any("zero.Init" in words for words in launch("deepspeed", MODEL, whole).remarks)
    assert 'torch.device("meta")' in launch("fsdp", MODEL, shared).text


@pytest.mark.parametrize(
    ("name", "zero", "words"), [("megatron", 1, "--tp-comm-overlap"), ("torchtitan", 3, "--parallelism.enable_async_tensor_parallel")]
)
def test_hidden_tensor_exchange_is_launched_and_read_back(name: str, zero: int, words: str) -> None:
    model = llama().workload
    assert isinstance(model, Transformer)
    plan = Plan(tensor=8, data=2, sequence_parallel=True, tensor_exchange="hidden", zero=zero, overlap="data")
    found = launch(name, model, plan)
    assert words in found.text
    assert (found.plan, found.instead) == (plan, ())


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (Plan(pipeline=4, data=4, last_stage_layers=5), "--decoder-last-pipeline-num-layers 5"),
        (Plan(pipeline=4, data=4, first_stage_layers=6, last_stage_layers=4), "--decoder-first-pipeline-num-layers 6"),
        (Plan(pipeline=4, data=4, interleave=2, first_stage_layers=6, last_stage_layers=6), "--num-virtual-stages-per-pipeline-rank 2"),
        (Plan(pipeline=4, data=4, first_stage_layers=7, last_stage_layers=6), "E" + "|".join("t" * n for n in (7, 10, 9, 6)) + "L"),
        (Plan(pipeline=4, data=4, interleave=2, first_stage_layers=7, last_stage_layers=5), "--pipeline-model-parallel-layout"),
    ],
)
def test_layers_of_the_ends_are_told_megatron_and_read_back(plan: Plan, words: str) -> None:
    """Of 32 layers; as a layout where the stages between do not share the rest evenly, or chunks do not share those of a stage."""
    model = llama().workload
    assert isinstance(model, Transformer)
    found = launch("megatron", model, plan)
    assert words in found.text
    assert (found.plan, found.instead) == (plan, ())


def test_deepspeed_is_a_configuration_whose_batch_adds_up() -> None:
    document = json.loads(launch("deepspeed", MODEL, Plan(data=32, microbatch=2, zero=1)).text)
    assert document["train_batch_size"] == 32 * document["train_micro_batch_size_per_gpu"] * document["gradient_accumulation_steps"]
    assert document["zero_optimization"] == {"stage": 1, "overlap_comm": False}
    away = json.loads(launch("deepspeed", MODEL, Plan(data=32, zero=3, offload="weights")).text)["zero_optimization"]
    assert away["offload_param"] == {"device": "cpu"}


def test_shapes_that_no_setting_says_are_told() -> None:
    model = replace(MODEL, logit_cap=True, norms=4)
    for name in EXPORTS:
        remarks = launch(name, model, Plan(data=8, zero=3, overlap="data")).remarks
        assert {"norms is 4, which no setting here says", "logit_cap is True, which no setting here says"} <= set(remarks)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("megatron", 'Megatron-Bridge has peft=LoRA(dim=16, target_modules=["linear_qkv", "linear_proj", "linear_fc1", "linear_fc2"])'),
        ("torchtitan", "torchtitan of this version has none"),
        ("deepspeed", 'peft.get_peft_model(model, peft.LoraConfig(r=16, target_modules="all-linear"))`'),
        ("fsdp", 'before fully_shard say `peft.get_peft_model(model, peft.LoraConfig(r=16, target_modules="all-linear"))`'),
    ],
)
def test_adapters_and_windows_are_said_with_what_is_to_be_done_about_them(name: str, words: str) -> None:
    remarks = launch(name, replace(MODEL, lora_rank=16), Plan(data=8, zero=3, overlap="data")).remarks
    [told] = [
        line
        for line in remarks
        if line.startswith("adapters of rank 16 stand beside every matrix of the layers, which no setting here says: ")
    ]
    assert words in told
    local = replace(MODEL, window=16, global_layers=1)
    remarks = launch(name, local, Plan(data=8, zero=3, overlap="data")).remarks
    windows = [line for line in remarks if "has to have sliding windows of 16 tokens, but for 1 layers that attend to all tokens" in line]
    assert len(windows) == (name != "megatron"), "Megatron-Core has arguments for them"
    assert not any("lora_rank is" in line or "window is" in line for line in remarks)


@pytest.mark.parametrize("name", tuple(EXPORTS))
def test_an_option_that_a_stack_does_not_have_is_refused(name: str) -> None:
    options = EXPORTS[name].options
    with pytest.raises(ValueError, match="has no such option"):
        options.setting("--no-such-thing", 1)
    first = next(iter(options.names.values()))
    with pytest.raises(ValueError, match="this option takes a value"):
        options.setting(first.name, None)
    assert options.version
    assert EXPORTS[name].stack in STACKS


@pytest.mark.parametrize(
    ("name", "plan", "launched", "word"),
    [
        (
            "megatron",
            Plan(pipeline=2, data=8, zero=2, overlap="data"),
            Plan(pipeline=2, data=8, zero=1, overlap="data"),
            "do not support pipeline parallelism",
        ),
        ("megatron", Plan(data=16, zero=3), Plan(data=16, zero=3, overlap="data"), "always overlap"),
        ("torchtitan", Plan(tensor=4, data=4, zero=3, overlap="data"), None, "sequence parallel"),
        ("torchtitan", Plan(data=16, zero=1, overlap="data"), None, "ZeRO-2, ZeRO-3"),
        ("deepspeed", Plan(pipeline=4, data=4, zero=3), Plan(pipeline=4, data=4, zero=1), "ZeRO-0 or ZeRO-1"),
        ("deepspeed", Plan(pipeline=4, data=4, interleave=2), Plan(pipeline=4, data=4), "not interleaved"),
        ("fsdp", Plan(data=16, zero=3, recompute="selective", overlap="data"), Plan(data=16, zero=3, overlap="data"), "or none"),
    ],
)
def test_what_a_stack_launches_instead_is_the_nearest_plan_and_told(name: str, plan: Plan, launched: Plan | None, word: str) -> None:
    found = launch(name, llama().workload, plan)  # type: ignore[arg-type]
    assert launched is None or found.plan == launched
    assert found.plan != plan
    assert any(word in sentence for sentence in found.instead)


def test_a_setting_that_no_stack_has_is_told_as_such() -> None:
    plan = Plan(data=16, zero=1, placement="data-tensor-context-pipeline")
    assert any("no stack that is known launches placement" in words for words in launch("megatron", llama().workload, plan).instead)  # type: ignore[arg-type]


def test_a_plan_whose_degrees_a_stack_does_not_launch_is_refused() -> None:
    with pytest.raises(RefusedError, match=r"fsdp launches no plan with these degrees: TP is 1; .*--set stack=fsdp"):
        launch("fsdp", llama().workload, Plan(tensor=2, data=8))  # type: ignore[arg-type]


def llama(*settings: str) -> Instance:
    return ask(LLAMA + "choices: all\n", *settings)


def test_both_plans_are_priced_where_a_stack_launches_another_one() -> None:
    text = launch_text("torchtitan", llama(), Candidate(0, Plan(data=16, zero=2, overlap="data")))
    seconds = [float(number) for number in re.findall(r"^# (?:launched|as planned): a step takes ([\d.]+) s", text, re.MULTILINE)]
    assert len(seconds) == 2
    assert seconds[0] > seconds[1]
    assert "torchtitan launches zero 3 in place of 2" in text


def test_a_plan_for_another_stack_is_priced_as_runs_of_that_stack_are() -> None:
    """The export of a question for Megatron-Core says of torchtitan what the question for torchtitan says."""
    plan = Plan(data=16, zero=3, overlap="data")
    texts = {stack: launch_text("torchtitan", llama(f"stack={stack}"), Candidate(0, plan)) for stack in ("megatron-core", "torchtitan")}
    [there] = re.findall(r"^# launched: a step takes ([\d.]+) s.*by the constants of h100-sxm", texts["megatron-core"], re.MULTILINE)
    [own] = re.findall(r"^# on 16 devices, a step takes ([\d.]+) s", texts["torchtitan"], re.MULTILINE)
    assert there == own


def test_an_export_says_whose_constants_stay_where_the_other_stack_cannot_read_the_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A question with all choices that DeepSpeed launches has more of them for torchtitan: here more than a question may have."""
    plan, asked = Plan(data=16, zero=3, overlap="data"), llama("stack=deepspeed", "workload.global_batch=32")
    monkeypatch.setattr(reading, "_MOST_PLANS", combinations(asked))
    text = launch_text("torchtitan", asked, Candidate(0, plan))
    said = " ".join(line.removeprefix("#").strip() for line in text.splitlines() if line.startswith("#"))
    assert "PRICED BY THE CONSTANTS OF deepspeed, not of torchtitan, which cannot read the choices of the question: choices: " in said
    assert "by the constants of h100-sxm" not in said
    monkeypatch.undo()
    assert "PRICED BY" not in launch_text("torchtitan", llama("stack=deepspeed", "workload.global_batch=48"), Candidate(0, plan))


def test_a_plan_that_does_not_fit_as_it_is_launched_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ZeRO-2 in a pipeline would be launched as ZeRO-1, for which the device has not the memory."""
    question, target = tmp_path / "q.yaml", str(tmp_path / "result.json")
    question.write_text(LLAMA.replace("llama3-8b", "llama2-13b").replace("h100-sxm", "a100-40g"))
    choices = ("pipeline=2", "data=8", "recompute=full", "zero=2", "overlap=data")
    assert main(["solve", str(question), *(part for choice in choices for part in ("--set", choice)), "--out", target]) == 0
    capsys.readouterr()
    assert main(["export", target, "--as", "megatron"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert re.search(
        r"launches zero 1 in place of 2, which needs [\d.]+ GiB of 39.3 GiB of memory .*--set stack=megatron-core", captured.err
    )


def test_the_command_writes_what_can_be_pasted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = f"{tmp_path}/result.json"
    assert main(["solve", str(INSTANCES / "tiny.yaml"), "--out", target]) == 0
    capsys.readouterr()
    assert main(["export", target, "--as", "megatron"]) == 0
    out = capsys.readouterr().out
    assert "--tensor-model-parallel-size 1 \\\n" in out
    assert "--micro-batch-size 2" in out


def test_the_command_takes_the_stack_of_the_question(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = f"{tmp_path}/result.json"
    assert main(["solve", str(INSTANCES / "tiny.yaml"), "--set", "stack=fsdp", "--set", "zero=3", "--out", target]) == 0
    capsys.readouterr()
    assert main(["export", target]) == 0
    out = capsys.readouterr().out
    assert "reshard_after_forward=True" in out
    assert "launched: " not in out
    assert read_instance(INSTANCES / "tiny.yaml", ("stack=fsdp",)).stack is not None


@pytest.mark.parametrize(
    "plan", [Plan(data=8, zero=2, recompute="elements", overlap="data"), Plan(data=8, zero=3, shard=4, overlap="data"), Plan(data=8)]
)
def test_fully_shard_is_a_whole_script_whose_names_are_all_known(plan: Plan) -> None:
    """Whatever it names is imported, defined or Python's own; its lines are short, and it says how it is run."""
    text = launch("fsdp", MODEL, plan).text
    tree = ast.parse(text)
    defined = {
        alias.asname or alias.name for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names
    }
    defined |= (
        {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)} | set(dir(builtins)) | {"__name__"}
    )
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    written = {node.id for node in names if isinstance(node.ctx, ast.Store)} | arguments
    assert {node.id for node in names} <= defined | written
    assert max(map(len, text.splitlines())) <= 105
    assert text.startswith("# torchrun --nnodes")
    assert text.endswith("main()")


def test_comments_of_an_export_fit_a_hundred_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = str(tmp_path / "answer.json")
    assert main(["solve", str(INSTANCES / "tiny.yaml"), "--set", "stack=fsdp", "--set", "zero=2", "--out", target]) == 0
    capsys.readouterr()
    assert main(["export", target]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if line.startswith("#")) <= 100
