"""The chosen plan as settings of training stacks, each with what it does; and what a stack cannot do as the plan has it.

Names are those of Megatron-LM's arguments (megatron/training/arguments.py), of torchtitan's job configuration (`--parallelism.*`,
`--training.*`, `--activation_checkpoint.*`) and of DeepSpeed's JSON configuration, as of 2025.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass

from crossopt.crossflow.memory import RESIDENT_LAYERS
from crossopt.crossflow.plan import DIMENSIONS, Plan
from crossopt.crossflow.workload import Transformer


@dataclass(frozen=True, slots=True)
class Launch:
    """Settings of one stack for one plan."""

    settings: tuple[tuple[str, str], ...]
    """Each with what it does."""
    missing: tuple[str, ...]
    """What of the plan the stack does not do so, in words."""
    joiner: str = " \\\n  "


def launch_text(name: str, stack: str, model: Transformer, plan: Plan) -> str:
    """The settings, ready to paste, then what each of them does."""
    launch, name = STACKS[stack](model, plan), " ".join(name.split())  # of a file perhaps, and what follows a comment is run
    lines = [f"# {name}: {plan}", "", launch.joiner.join(setting for setting, _ in launch.settings), ""]
    if stack == "deepspeed":
        lines = [f"# {name}: {plan}", "", json.dumps(_deepspeed_document(model, plan), indent=2), ""]
    width = max(len(setting) for setting, _ in launch.settings)
    lines += [f"# {setting:<{width}}  {words}" for setting, words in launch.settings]
    lines += [f"# note: {words}" for words in launch.missing]
    return "\n".join(lines) + "\n"


def megatron(model: Transformer, plan: Plan) -> Launch:
    """Arguments of Megatron-LM's pretrain scripts."""
    settings = [
        (f"--tensor-model-parallel-size {plan.tensor}", "heads and widths of a layer over so many devices"),
        (f"--pipeline-model-parallel-size {plan.pipeline}", "stages of layers"),
        (f"--context-parallel-size {plan.context}", "the sequence over so many devices"),
        (f"--micro-batch-size {plan.microbatch}", "samples a replica takes at a time"),
        (f"--global-batch-size {model.global_batch}", f"samples of a step: {plan.data} replicas do the rest"),
    ]
    settings += [("--sequence-parallel", "norms and dropouts over the tensor ranks too")] if plan.sequence_parallel else []
    settings += (
        [(f"--num-virtual-stages-per-pipeline-rank {plan.interleave}", "chunks of layers a stage holds")] if plan.interleave > 1 else []
    )
    settings += [(f"--expert-model-parallel-size {plan.expert}", "experts over so many of the replicas")] if plan.expert > 1 else []
    settings += _MEGATRON_RECOMPUTE[plan.recompute]
    settings += [("--use-distributed-optimizer", "optimizer state shared by the replicas (ZeRO-1)")] if plan.zero >= 1 else []
    if plan.overlap in {"data", "both"}:
        settings.append(("--overlap-grad-reduce", "gradients are summed behind the backward pass"))
        settings += [("--overlap-param-gather", "updated weights are gathered behind the forward pass")] if plan.zero >= 1 else []
    if plan.pipeline > 1 and plan.overlap in {"none", "data"}:
        settings.append(("--no-overlap-p2p-communication", "activations are passed on without hiding"))
    missing = [f"ZeRO-{plan.zero} needs its FSDP instead of the distributed optimizer"] if plan.zero > 1 else []
    missing += [_UNEVEN] if model.layers % (plan.pipeline * plan.interleave) else []
    settings += [("--optimizer-cpu-offload", "optimizer state is kept in the host's memory")] if "optimizer" in offloaded(plan) else []
    for what in (what for what in ("weights", "activations") if what in offloaded(plan)):
        settings.append((f"--cpu-offloading-{what}", f"{what} of layers are kept in the host's memory"))
    if plan.offload not in {"none", "optimizer"}:
        settings.append((f"--cpu-offloading-num-layers {_away(model, plan)}", "layers of a stage that are offloaded"))
        missing += ["its offloading of layers works without a pipeline only"] if plan.pipeline > 1 else []
    return Launch(tuple(settings), (*missing, *_placed(plan)))


def torchtitan(model: Transformer, plan: Plan) -> Launch:
    """Settings of torchtitan's job configuration."""
    sharded = plan.zero >= 2
    local = model.global_batch // plan.data
    settings = [
        (f"--parallelism.tensor_parallel_degree {plan.tensor}", "heads and widths of a layer over so many devices"),
        (f"--parallelism.pipeline_parallel_degree {plan.pipeline}", "stages of layers"),
        (f"--parallelism.context_parallel_degree {plan.context}", "the sequence over so many devices"),
        (f"--parallelism.data_parallel_shard_degree {plan.data if sharded else 1}", "replicas that share weights and gradients (FSDP)"),
        (f"--parallelism.data_parallel_replicate_degree {1 if sharded else plan.data}", "replicas with weights of their own"),
        (f"--training.global_batch_size {model.global_batch}", "samples of a step"),
        (f"--activation_checkpoint.mode {plan.recompute}", "what is computed again in the backward pass"),
    ]
    if plan.pipeline > 1:
        schedule = "Interleaved1F1B" if plan.interleave > 1 else "1F1B"
        settings.append((f"--parallelism.pipeline_parallel_schedule {schedule}", f"{plan.interleave} chunks of layers a stage"))
        settings.append((f"--parallelism.pipeline_parallel_microbatch_size {plan.microbatch}", "samples that go down the stages together"))
        settings.append((f"--training.local_batch_size {local}", "samples of a replica in a step"))
    else:
        settings.append((f"--training.local_batch_size {plan.microbatch}", "samples a replica takes at a time, the rest by accumulation"))
    settings += [(f"--parallelism.expert_parallel_degree {plan.expert}", "experts over so many of the replicas")] if plan.expert > 1 else []
    if plan.zero == 2:
        settings.append(("--parallelism.fsdp_reshard_after_forward never", "gathered weights are kept until the backward pass"))
    missing = ["selective checkpointing there saves chosen operators, not attention's core alone"] if plan.recompute == "selective" else []
    missing += ["it has no optimizer that is shared while weights are not (ZeRO-1)"] if plan.zero == 1 else []
    missing += ["sequence parallelism comes with its tensor parallelism"] if plan.tensor > 1 and not plan.sequence_parallel else []
    if plan.offload != "none":
        settings.append(("--training.enable_cpu_offload", "with FSDP: parameters, gradients and optimizer state in the host's memory"))
        missing += ["it has no offloading of activations"] if "activations" in offloaded(plan) else []
    return Launch(tuple(settings), (*missing, *_placed(plan)))


def deepspeed(model: Transformer, plan: Plan) -> Launch:
    """Keys of DeepSpeed's configuration; tensor and pipeline degrees belong to the model's code."""
    document = _deepspeed_document(model, plan)
    words = {
        "train_batch_size": "samples of a step",
        "train_micro_batch_size_per_gpu": "samples a replica takes at a time",
        "gradient_accumulation_steps": f"microbatches of each of {plan.data} replicas",
        "bf16": "the precision of weights and activations",
        "zero_optimization": "what replicas share: 1 optimizer state, 2 and gradients, 3 and weights",
    }
    settings = tuple((f"{key}: {json.dumps(value)}", words[key]) for key, value in document.items())
    missing = []
    if plan.pipeline > 1:
        missing.append(f"wrap the model in PipelineModule(num_stages={plan.pipeline})")
        missing += ["its pipeline does not shard gradients or weights (ZeRO-2, ZeRO-3)"] if plan.zero > 1 else []
        missing += ["its pipeline has one chunk of layers a stage"] if plan.interleave > 1 else []
    missing += [f"tensor parallelism of {plan.tensor} comes with the model's layers (Megatron-DeepSpeed)"] if plan.tensor > 1 else []
    missing += [f"context parallelism of {plan.context} comes with the model's attention"] if plan.context > 1 else []
    missing += [f"{plan.recompute} recomputation is switched on in the model's code"] if plan.recompute != "none" else []
    missing += (
        ["its cpu_checkpointing takes what recomputation starts from to the host, not all that is kept"]
        if "activations" in offloaded(plan)
        else []
    )
    return Launch(settings, (*missing, *_placed(plan)))


STACKS: dict[str, Callable[[Transformer, Plan], Launch]] = {"megatron": megatron, "torchtitan": torchtitan, "deepspeed": deepspeed}

_MEGATRON_RECOMPUTE = {
    "none": [],
    "selective": [("--recompute-granularity selective", "attention's core is computed again in the backward pass")],
    "full": [
        ("--recompute-granularity full", "layers are computed again in the backward pass"),
        ("--recompute-method uniform", "every layer alike"),
        ("--recompute-num-layers 1", "one layer at a time"),
    ],
}
_UNEVEN = "layers do not divide into stages: give the first and last stage their own with --decoder-first-pipeline-num-layers"


def _placed(plan: Plan) -> tuple[str, ...]:
    """A word on the order of the dimensions where it is not the usual one."""
    usual = "-".join(DIMENSIONS)
    return () if plan.placement == usual else (f"ranks are laid out {plan.placement}, innermost first; the usual order is {usual}",)


def _deepspeed_document(model: Transformer, plan: Plan) -> dict[str, object]:
    return {
        "train_batch_size": model.global_batch,
        "train_micro_batch_size_per_gpu": plan.microbatch,
        "gradient_accumulation_steps": model.global_batch // (plan.microbatch * plan.data),
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": plan.zero, "overlap_comm": plan.overlap in {"data", "both"}, **_deepspeed_offload(plan)},
    }


def _deepspeed_offload(plan: Plan) -> dict[str, object]:
    """Its keys for the host's memory."""
    keys = {"optimizer": "offload_optimizer", "weights": "offload_param"}
    return {key: {"device": "cpu"} for what, key in keys.items() if what in offloaded(plan)}


def offloaded(plan: Plan) -> tuple[str, ...]:
    """What the plan keeps in the host's memory."""
    every = ("weights", "activations", "optimizer")
    return every if plan.offload == "all" else tuple(what for what in every if what in plan.offload)


def _away(model: Transformer, plan: Plan) -> int:
    """Layers of a stage that do not stay on the device."""
    return max(model.layers // plan.pipeline - int(RESIDENT_LAYERS), 0)
