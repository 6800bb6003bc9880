"""DeepSpeed's JSON configuration, and what its pipeline and checkpointing take in Python, as of release 0.18."""

import json
from typing import Any

from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Transformer
from crossopt.reports.launching.options import Export, Setting, Settings, frozen, options_of, peft, unknown_shapes, whole_number, windowed

OPTIONS = options_of(
    "DeepSpeed 0.18",
    "deepspeedai/DeepSpeed docs/_pages/config-json.md, deepspeed/runtime/pipe/module.py",
    "0.18.2",
    """train_batch_size train_micro_batch_size_per_gpu gradient_accumulation_steps bf16.enabled fp16.enabled data_types.grad_accum_dtype
    zero_optimization.stage zero_optimization.overlap_comm zero_optimization.stage3_prefetch_bucket_size
    zero_optimization.offload_param.device tensor_parallel.autotp_size
    pipeline.activation_checkpoint_interval PipelineModule.num_stages PipelineModule.partition_method""",
    "gradient_checkpointing_enable",
)
_CODE = ("PipelineModule.", "gradient_checkpointing_enable")
"""Of these the model's code takes care."""
_SHARED = (
    "build the network under `with deepspeed.zero.Init(config_dict_or_path=...):` (Hugging Face's HfDeepSpeedConfig does so): "
    "otherwise each device holds all of it before it is shared out"
)


def settings(model: Transformer, plan: Plan) -> tuple[Setting, ...]:
    """Keys of the configuration by their paths, and arguments in Python."""
    make = OPTIONS.setting
    hidden = plan.overlap in {"data", "both"}
    found = [
        make("train_batch_size", model.global_batch, "samples of a step"),
        make("train_micro_batch_size_per_gpu", plan.microbatch, "samples a replica takes at a time"),
        make("gradient_accumulation_steps", model.global_batch // (plan.microbatch * plan.data), f"microbatches of {plan.data} replicas"),
        make("zero_optimization.stage", plan.zero, "what replicas share: 1 optimizer state, 2 and gradients, 3 and weights"),
        make("zero_optimization.overlap_comm", json.dumps(hidden), "whether exchange goes on behind the backward pass"),
    ]
    if plan.zero == 3 and not hidden:
        found.append(make("zero_optimization.stage3_prefetch_bucket_size", 0, "weights are gathered when they are needed"))
    if plan.offload == "weights":
        found.append(make("zero_optimization.offload_param.device", '"cpu"', "weights are kept in the host's memory"))
    if plan.tensor > 1:
        found.append(make("tensor_parallel.autotp_size", plan.tensor, "heads and widths of a layer over so many devices"))
    if model.precision in {"bf16", "fp16"}:
        found.append(make(f"{model.precision}.enabled", "true", "the precision of weights and activations"))
        dtype = "fp32" if model.gradient_bytes >= 4.0 else model.precision
        found.append(make("data_types.grad_accum_dtype", json.dumps(dtype), "of gradients that are summed"))
    if plan.recompute == "full" and plan.pipeline > 1:
        found.append(make("pipeline.activation_checkpoint_interval", 1, "every layer is computed again in the backward pass"))
    return (*found, *_code(plan))


def _code(plan: Plan) -> list[Setting]:
    make = OPTIONS.setting
    if plan.pipeline > 1:
        return [
            make("PipelineModule.num_stages", plan.pipeline, "stages of layers"),
            make("PipelineModule.partition_method", '"type:Layer"', "as many layers of this class each"),
        ]
    if plan.recompute == "full":
        return [make("gradient_checkpointing_enable", None, "the model computes its layers again in the backward pass")]
    return []


def written(model: Transformer, plan: Plan, found: tuple[Setting, ...]) -> str:
    """The configuration, and calls of the model's code below it."""
    del model, plan
    document, calls = dict[str, Any](), dict[str, list[str]]()
    for setting in found:
        if setting.name.startswith(_CODE):
            call, _, keyword = setting.name.partition(".")
            calls.setdefault(call, []).extend([f"{keyword}={setting.value}"] if keyword else [])
            continue
        *path, key = setting.name.split(".")
        section = document
        for part in path:
            section = section.setdefault(part, {})
        section[key] = json.loads(str(setting.value))
    lines = [f"# python: {call}({', '.join(arguments)})" for call, arguments in calls.items()]
    return "\n".join([json.dumps(document, indent=2), *(["", *lines] if lines else [])])


def parsed(text: str) -> Settings:
    """The settings in what was written."""
    lines = text.splitlines()
    found: dict[str, str | None] = _flat(json.loads("\n".join(line for line in lines if not line.startswith("#"))), "")
    for line in lines:
        if line.startswith("# python: "):
            call, _, arguments = line.removeprefix("# python: ").rstrip(")").partition("(")
            found |= {call: None} if not arguments else {}
            for argument in arguments.split(", ") if arguments else ():
                keyword, _, value = argument.partition("=")
                found[f"{call}.{keyword}"] = value
    return found


def _flat(document: dict[str, Any], path: str) -> dict[str, str | None]:
    found = dict[str, str | None]()
    for key, value in document.items():
        found |= _flat(value, f"{path}{key}.") if isinstance(value, dict) else {f"{path}{key}": json.dumps(value)}
    return found


def read(given: Settings, model: Transformer, devices: int) -> Plan:
    """The plan that these settings launch."""
    del model
    tensor, pipeline = whole_number(given, "tensor_parallel.autotp_size"), whole_number(given, "PipelineModule.num_stages")
    zero, data = whole_number(given, "zero_optimization.stage", 0), devices // (tensor * pipeline)
    microbatch, steps = whole_number(given, "train_micro_batch_size_per_gpu"), whole_number(given, "gradient_accumulation_steps")
    if whole_number(given, "train_batch_size") != microbatch * steps * data:
        raise ValueError("the batch is not that of the microbatches of all replicas")
    unsharded = pipeline > 1 or zero == 0
    hidden = given.get("zero_optimization.overlap_comm") == "true" and not unsharded
    again = "gradient_checkpointing_enable" in given or whole_number(given, "pipeline.activation_checkpoint_interval", 0) > 0
    return Plan(
        tensor=tensor,
        pipeline=pipeline,
        data=data,
        microbatch=microbatch,
        recompute="full" if again else "none",
        zero=zero,
        overlap="data" if hidden else "none",
        offload="weights" if "zero_optimization.offload_param.device" in given else "none",
    )


def remarks(model: Transformer, plan: Plan) -> tuple[str, ...]:
    """The network is the user's own."""
    shapes = f"{model.layers} layers, hidden {model.hidden}, {model.heads} heads, {model.attention_groups} key-value heads"
    more = f"feed-forward {model.ffn}, vocabulary {model.vocabulary}, sequence {model.sequence}"
    named = ("`Layer` stands for the class of the model's layers",) if plan.pipeline > 1 else ()
    shared = (_SHARED,) if plan.zero == 3 else ()
    before = "before deepspeed.initialize say"
    return (
        f"the network is the model's own code: {shapes}, {more}",
        *named,
        *shared,
        *unknown_shapes(model, "", peft(model, before) | frozen(model, before) | windowed(model, "the model's own code")),
    )


EXPORT = Export("deepspeed", OPTIONS, settings, written, parsed, read, remarks)
