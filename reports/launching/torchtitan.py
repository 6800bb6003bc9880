"""Settings of torchtitan's job configuration, as of August 2025."""

from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Transformer
from crossopt.reports.launching.options import (
    Export,
    Setting,
    Settings,
    adapted,
    flags,
    options_of,
    parsed_flags,
    unknown_shapes,
    whole,
    windowed,
)

OPTIONS = options_of(
    "pytorch/torchtitan torchtitan/config/job_config.py",
    "6404b932421f, August 2025",
    """--model.name --model.flavor --model.converters --training.local_batch_size --training.global_batch_size --training.seq_len
    --training.mixed_precision_param --training.mixed_precision_reduce --parallelism.data_parallel_replicate_degree
    --parallelism.data_parallel_shard_degree --parallelism.fsdp_reshard_after_forward --parallelism.tensor_parallel_degree
    --parallelism.pipeline_parallel_degree --parallelism.pipeline_parallel_schedule --parallelism.pipeline_parallel_layers_per_stage
    --parallelism.pipeline_parallel_first_stage_less_layers --parallelism.pipeline_parallel_last_stage_less_layers
    --parallelism.pipeline_parallel_microbatch_size --parallelism.context_parallel_degree --parallelism.expert_parallel_degree
    --activation_checkpoint.mode --float8.recipe_name""",
)
_FLAVORS = {(32, 4096, 14336): "8B", (80, 8192, 28672): "70B", (126, 16384, 53248): "405B"}
"""Its Llama 3 models by layers, width and feed-forward width."""
_DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp8": "bfloat16"}


def settings(model: Transformer, plan: Plan) -> tuple[Setting, ...]:
    """All settings, those of the plan first."""
    make, shared = OPTIONS.setting, plan.zero > 0
    found = [
        make("--parallelism.tensor_parallel_degree", plan.tensor, "heads and widths of a layer over so many devices"),
        make("--parallelism.pipeline_parallel_degree", plan.pipeline, "stages of layers"),
        make("--parallelism.context_parallel_degree", plan.context, "the sequence over so many devices"),
        make("--parallelism.data_parallel_shard_degree", plan.data if shared else 1, "replicas that share weights and gradients (FSDP)"),
        make("--parallelism.data_parallel_replicate_degree", 1 if shared else plan.data, "replicas with weights of their own"),
        make("--training.global_batch_size", model.global_batch, "samples of a step"),
        make("--activation_checkpoint.mode", plan.recompute, "what is computed again in the backward pass"),
    ]
    if shared:
        keeps = "always" if plan.zero == 3 else "never"
        words = "gathered weights are given up after each layer" if plan.zero == 3 else "gathered weights are kept until the backward pass"
        found.append(make("--parallelism.fsdp_reshard_after_forward", keeps, words))
    found += _stages(model, plan)
    if plan.expert > 1:
        found.append(make("--parallelism.expert_parallel_degree", plan.expert, "experts over so many of the replicas"))
    return (*found, *_network(model))


def _stages(model: Transformer, plan: Plan) -> list[Setting]:
    """The batch of a replica, and how it goes down the stages."""
    make = OPTIONS.setting
    if plan.pipeline == 1:
        return [make("--training.local_batch_size", plan.microbatch, "samples a replica takes at a time, the rest by accumulation")]
    schedule, layers = "Interleaved1F1B" if plan.interleave > 1 else "1F1B", model.stack // (plan.pipeline * plan.interleave)
    return [
        make("--training.local_batch_size", model.global_batch // plan.data, "samples of a replica in a step"),
        make("--parallelism.pipeline_parallel_microbatch_size", plan.microbatch, "samples that go down the stages together"),
        make("--parallelism.pipeline_parallel_schedule", schedule, f"{plan.interleave} chunks of layers a stage"),
        make("--parallelism.pipeline_parallel_layers_per_stage", layers, "layers of a chunk"),
        make("--parallelism.pipeline_parallel_first_stage_less_layers", 0, "the embedding counts as no layer"),
        make("--parallelism.pipeline_parallel_last_stage_less_layers", 0, "nor does the head"),
    ]


def _network(model: Transformer) -> list[Setting]:
    make, flavor = OPTIONS.setting, _FLAVORS.get((model.layers, model.hidden, model.ffn))
    found = [make("--training.seq_len", model.sequence, "tokens of a sample")]
    if flavor:
        found += [make("--model.name", "llama3", "the network"), make("--model.flavor", flavor, "its size")]
    found.append(make("--training.mixed_precision_param", _DTYPES.get(model.precision, model.precision), "of weights in work"))
    found.append(make("--training.mixed_precision_reduce", "float32", "of gradients that are summed"))
    if model.precision == "fp8":
        found.append(make("--model.converters", "float8", "operands of matrix products in 8 bits"))
        found.append(make("--float8.recipe_name", "rowwise", "with a scale for each row"))
    return found


def read(given: Settings, model: Transformer, devices: int) -> Plan:
    """The plan that these settings launch."""
    tensor, pipeline, context = (whole(given, f"--parallelism.{name}_parallel_degree") for name in ("tensor", "pipeline", "context"))
    shard, copies = (whole(given, f"--parallelism.data_parallel_{name}_degree") for name in ("shard", "replicate"))
    local, pipe = whole(given, "--training.local_batch_size"), "--parallelism.pipeline_parallel"
    layers = whole(given, f"{pipe}_layers_per_stage", model.stack)
    less = whole(given, f"{pipe}_first_stage_less_layers") + whole(given, f"{pipe}_last_stage_less_layers")
    sharded, always = shard * context > 1, given.get("--parallelism.fsdp_reshard_after_forward") == "always"
    if tensor * context * pipeline * shard * copies != devices:
        raise ValueError(f"the degrees do not multiply to the {devices} devices")
    return Plan(
        tensor=tensor,
        context=context,
        pipeline=pipeline,
        data=shard * copies,
        expert=whole(given, "--parallelism.expert_parallel_degree"),
        microbatch=local if pipeline == 1 else whole(given, f"{pipe}_microbatch_size"),
        interleave=1 if pipeline == 1 else -(-(model.stack + less) // layers) // pipeline,
        sequence_parallel=tensor > 1,
        recompute=given.get("--activation_checkpoint.mode") or "none",  # type: ignore[arg-type]
        zero=(1 if pipeline > 1 else 3 if always else 2) if sharded else 0,
        overlap="data" if pipeline == 1 and shard * copies * context > 1 else "none",
    )


def remarks(model: Transformer, _plan: Plan) -> tuple[str, ...]:
    """What its configuration does not say of the network."""
    none = "torchtitan of this version has none, and trains all weights (fully_shard with Hugging Face's PEFT has them: --as fsdp)"
    beside = adapted(model, none) | windowed(model, "the attention of the flavor")
    if (model.layers, model.hidden, model.ffn) in _FLAVORS and model.experts == 1:
        return unknown_shapes(model, "", beside)
    shapes = f"n_layers={model.layers}, dim={model.hidden}, n_heads={model.heads}, n_kv_heads={model.attention_groups}"
    more = f"vocab_size={model.vocabulary}, feed-forward width {model.ffn}"
    routed = f", {model.experts} experts, {model.experts_per_token} a token" if model.experts > 1 else ""
    return (f"the network needs a flavor of its own, with {shapes}, {more}{routed}", *unknown_shapes(model, "", beside))


EXPORT = Export("torchtitan", OPTIONS, settings, lambda _model, _plan, found: flags(found), parsed_flags, read, remarks)
