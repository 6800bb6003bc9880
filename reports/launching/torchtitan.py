"""Settings of torchtitan's job configuration, as of its releases 0.2.0 to 0.2.2."""

from crossopt.crossflow.plan import END_STAGES, Plan, Schedule
from crossopt.crossflow.rare_exchanges import Groups
from crossopt.crossflow.stages import split_layers
from crossopt.crossflow.workload import Transformer
from crossopt.instances.errors import RefusedError
from crossopt.reports.launching.options import (
    Export,
    Setting,
    Settings,
    adapted,
    flags,
    options_of,
    parsed_flags,
    unknown_shapes,
    whole_number,
    windowed,
)

OPTIONS = options_of(
    "torchtitan 0.2, up to 0.2.2; later ones name networks by --module and --config",
    "pytorch/torchtitan torchtitan/config/job_config.py",
    "pull request 2386 ended it",
    """--model.name --model.flavor --model.converters --training.local_batch_size --training.global_batch_size --training.seq_len
    --training.mixed_precision_param --training.mixed_precision_reduce --parallelism.data_parallel_replicate_degree
    --parallelism.data_parallel_shard_degree --parallelism.fsdp_reshard_after_forward --parallelism.tensor_parallel_degree
    --parallelism.pipeline_parallel_degree --parallelism.pipeline_parallel_schedule --parallelism.pipeline_parallel_layers_per_stage
    --parallelism.pipeline_parallel_first_stage_less_layers --parallelism.pipeline_parallel_last_stage_less_layers
    --parallelism.pipeline_parallel_microbatch_size --parallelism.context_parallel_degree --parallelism.expert_parallel_degree
    --parallelism.expert_tensor_parallel_degree
    --activation_checkpoint.mode --activation_checkpoint.selective_ac_option --quantize.linear.float8.recipe_name
    --training.steps --training.dataset --training.dataset_path --training.max_norm --optimizer.lr --lr_scheduler.warmup_steps
    --lr_scheduler.decay_type --lr_scheduler.min_lr_factor --checkpoint.interval --checkpoint.keep_latest_k --model.hf_assets_path
    --job.dump_folder""",
    "--compile.enable --parallelism.enable_async_tensor_parallel --checkpoint.enable",
)
_FLAVORS = {
    (32, 4096, 14336, 32, 8, 128256): ("llama3", "8B"),
    (80, 8192, 28672, 64, 8, 128256): ("llama3", "70B"),
    (126, 16384, 53248, 128, 8, 128256): ("llama3", "405B"),
    (28, 1024, 3072, 16, 8, 151936): ("qwen3", "0.6B"),
    (28, 2048, 6144, 16, 8, 151936): ("qwen3", "1.7B"),
    (36, 2560, 9728, 32, 8, 151936): ("qwen3", "4B"),
    (36, 4096, 12288, 32, 8, 151936): ("qwen3", "8B"),
    (40, 5120, 17408, 40, 8, 151936): ("qwen3", "14B"),
    (64, 5120, 25600, 64, 8, 151936): ("qwen3", "32B"),
    (48, 2048, 6144, 32, 4, 151936): ("qwen3", "30B-A3B"),
    (94, 4096, 12288, 64, 4, 151936): ("qwen3", "235B-A22B"),
    (61, 7168, 18432, 128, 128, 129280): ("deepseek_v3", "671B"),
}
"""Its networks by layers, widths, heads, key-value heads and vocabulary (torchtitan/models/NAME/__init__.py)."""
_OF_FLAVORS = {
    "llama3": "",
    "qwen3": "qk_norm expert_ffn",
    "deepseek_v3": "expert_ffn shared_experts dense_layers expert_groups groups_per_token query_rank kv_rank rope_size value_size",
}
"""Shapes that a flavor has."""
_SCHEDULES: dict[tuple[Schedule, bool], str] = {
    ("1f1b", False): "1F1B",
    ("1f1b", True): "Interleaved1F1B",
    ("zero-bubble", True): "InterleavedZeroBubble",
    ("zero-bubble-v", True): "ZBVZeroBubble",
}
"""By whether a stage has several chunks."""
_STAGED = "its Qwen3 names no pipeline among its features (models/qwen3/README.md): look for a pipelining_fn in its train spec"
_RECIPES = {"tensorwise": ("tensorwise", "with a scale for each tensor"), "rows": ("rowwise", "with a scale for each row")}
SELECTIVE = "elements+second-products"
"""Effect of its option `selective` in operator mode (`selective_ac_option "op"`): attention and every other product are stored."""
_MODES = {SELECTIVE: "selective"}
_DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp8": "bfloat16"}


def settings(model: Transformer, plan: Plan) -> tuple[Setting, ...]:
    """All settings, those of the plan first."""
    make, shared = OPTIONS.setting, plan.zero > 0
    shard = (plan.shard // plan.context or plan.data) if shared else 1
    found = [
        make("--parallelism.tensor_parallel_degree", plan.tensor, "heads and widths of a layer over so many devices"),
        make("--parallelism.pipeline_parallel_degree", plan.pipeline, "stages of layers"),
        make("--parallelism.context_parallel_degree", plan.context, "the sequence over so many devices"),
        make("--parallelism.data_parallel_shard_degree", shard, "replicas that share weights and gradients (FSDP)"),
        make("--parallelism.data_parallel_replicate_degree", plan.data // shard, "replicas, or groups of them, with weights of their own"),
        make("--training.global_batch_size", model.global_batch, "samples of a step"),
        make("--activation_checkpoint.mode", _MODES.get(plan.recompute, plan.recompute), "what is computed again in the backward pass"),
    ]
    if plan.recompute == SELECTIVE:
        found.append(make("--activation_checkpoint.selective_ac_option", "op", "attention and every other product are kept"))
    if shared:
        keeps = "always" if plan.zero == 3 else "never"
        text = "gathered weights are given up after each layer" if plan.zero == 3 else "gathered weights are kept until the backward pass"
        found.append(make("--parallelism.fsdp_reshard_after_forward", keeps, text))
    if plan.schedule == "1f1b":
        found.append(make("--compile.enable", None, "layers are compiled, as in the runs that the constants are held to"))
    if plan.tensor_exchange == "hidden":
        found.append(make("--parallelism.enable_async_tensor_parallel", None, "exchanges of tensor ranks behind products"))
    found += _stages(model, plan)
    if plan.expert > 1:
        found.append(make("--parallelism.expert_parallel_degree", plan.expert, "experts over so many of the replicas, or of all ranks"))
        found.append(make("--parallelism.expert_tensor_parallel_degree", plan.expert_tensor or plan.tensor, "ranks for each expert"))
    return (*found, *_network(model))


def _stages(model: Transformer, plan: Plan) -> list[Setting]:
    """The batch of a replica, and how it goes down the stages."""
    make = OPTIONS.setting
    if plan.pipeline == 1:
        return [make("--training.local_batch_size", plan.microbatch, "samples a replica takes at a time, the rest by accumulation")]
    split = split_layers(model.stack, *(float(getattr(plan, name)) for name in ("pipeline", *END_STAGES)))
    between = int(split.middle() if plan.pipeline > 2 else max(split.first(), split.last()))
    schedule, layers = _SCHEDULES[plan.schedule, plan.interleave > 1], between // plan.interleave
    first, last = (between - int(end) for end in (split.first(), split.last()))
    return [
        make("--training.local_batch_size", model.global_batch // plan.data, "samples of a replica in a step"),
        make("--parallelism.pipeline_parallel_microbatch_size", plan.microbatch, "samples that go down the stages together"),
        make("--parallelism.pipeline_parallel_schedule", schedule, f"{plan.interleave} chunks of layers a stage"),
        make("--parallelism.pipeline_parallel_layers_per_stage", layers, "layers of a chunk"),
        make("--parallelism.pipeline_parallel_first_stage_less_layers", first, "for how many layers the embedding counts"),
        make("--parallelism.pipeline_parallel_last_stage_less_layers", last, "and the head"),
    ]


def _flavor(model: Transformer) -> tuple[str, str] | None:
    """The name of the network and of its size, where it has these shapes."""
    return _FLAVORS.get((model.layers, model.hidden, model.ffn, model.heads, model.attention_groups, model.vocabulary))


def _network(model: Transformer) -> list[Setting]:
    make, flavor = OPTIONS.setting, _flavor(model)
    found = [make("--training.seq_len", model.sequence, "tokens of a sample")]
    if flavor:
        found += [make("--model.name", flavor[0], "the network"), make("--model.flavor", flavor[1], "its size")]
    found.append(make("--training.mixed_precision_param", _DTYPES.get(model.precision, model.precision), "of weights in work"))
    found.append(make("--training.mixed_precision_reduce", "float32", "of gradients that are summed"))
    if model.precision == "fp8":
        found.append(make("--model.converters", "quantize.linear.float8", "operands of matrix products in 8 bits"))
        found.append(make("--quantize.linear.float8.recipe_name", *_RECIPES[model.scaling]))
    return found


def read(given: Settings, model: Transformer, devices: int) -> Plan:
    """The plan that these settings launch."""
    tensor, pipeline, context = (whole_number(given, f"--parallelism.{name}_parallel_degree") for name in ("tensor", "pipeline", "context"))
    shard, copies = (whole_number(given, f"--parallelism.data_parallel_{name}_degree") for name in ("shard", "replicate"))
    local, pipe = whole_number(given, "--training.local_batch_size"), "--parallelism.pipeline_parallel"
    layers = whole_number(given, f"{pipe}_layers_per_stage", model.stack)
    expert, split = (
        whole_number(given, "--parallelism.expert_parallel_degree"),
        whole_number(given, "--parallelism.expert_tensor_parallel_degree", tensor),
    )
    less = [whole_number(given, f"{pipe}_{name.removesuffix('_layers')}_less_layers", 0) for name in END_STAGES]
    interleave = 1 if pipeline == 1 else -(-(model.stack + sum(less)) // layers) // pipeline
    sharded, always = shard * context > 1, given.get("--parallelism.fsdp_reshard_after_forward") == "always"
    if tensor * context * pipeline * shard * copies != devices:
        raise ValueError(f"the degrees do not multiply to the {devices} devices")
    return Plan(
        tensor=tensor,
        context=context,
        pipeline=pipeline,
        data=shard * copies,
        expert=expert,
        tensor_exchange="hidden" if "--parallelism.enable_async_tensor_parallel" in given else "exposed",
        expert_tensor=0 if split == tensor and (context == 1 or expert == 1) else split,
        microbatch=local if pipeline == 1 else whole_number(given, f"{pipe}_microbatch_size"),
        interleave=interleave,
        first_stage_layers=interleave * layers - less[0] if less[0] else 0,
        last_stage_layers=interleave * layers - less[1] if less[1] else 0,
        sequence_parallel=tensor > 1,
        recompute=_recomputed(given),
        schedule=_kind_of(str(given.get(f"{pipe}_schedule", "1F1B"))),
        zero=(1 if pipeline > 1 else 3 if always else 2) if sharded else 0,
        shard=shard * context if sharded and copies > 1 else 0,
        overlap="data" if pipeline == 1 and shard * copies * context > 1 else "none",
    )


def _recomputed(given: Settings) -> str:
    mode = str(given.get("--activation_checkpoint.mode") or "none")
    if mode == "selective" and given.get("--activation_checkpoint.selective_ac_option") != "op":
        raise ValueError(
            "of selective checkpoints those operator by operator alone are known here (--activation_checkpoint.selective_ac_option op)"
        )
    return SELECTIVE if mode == "selective" else mode


def _kind_of(schedule: str) -> Schedule:
    return next(kind for (kind, _), name in _SCHEDULES.items() if name == schedule)


def remarks(model: Transformer, plan: Plan) -> tuple[str, ...]:
    """What its schedule goes without, and what its configuration does not say of the network."""
    split = ("stages whose backward passes are split are not compiled (--compile.enable stays off)",) if plan.schedule != "1f1b" else ()
    return (*_kept_outputs(model, plan), *split, *_unsaid(model, plan))


def _kept_outputs(model: Transformer, plan: Plan) -> tuple[str, ...]:
    """What the last stage kept of every microbatch, until schedules took `return_outputs` (pytorch/pytorch pull request 165822 of
    2025-10-18, which pytorch/torchtitan pull request 1922 uses): the logits of its part of the vocabulary."""
    if plan.pipeline == 1:
        return ()
    logits = model.global_batch / plan.data * model.sequence / plan.context * model.vocabulary / plan.tensor
    gibibytes = logits * model.activation_bytes / 2**30
    return (
        "stages need PyTorch 2.10 or newer, whose schedules take return_outputs: older ones keep the logits of all microbatches on the "
        f"last stage, {gibibytes:.2f} GiB that are not modelled here",
    )


def _unsaid(model: Transformer, plan: Plan) -> tuple[str, ...]:
    none = "torchtitan of this version has none (fully_shard with Hugging Face's PEFT has them: --as fsdp)"
    beside = adapted(model, none) | windowed(model, "the attention of the flavor")
    if flavor := _flavor(model):
        staged = (_STAGED,) if flavor[0] == "qwen3" and plan.pipeline > 1 else ()
        return (*staged, *unknown_shapes(model, f"{_OF_FLAVORS[flavor[0]]} scaling", beside))
    shapes = f"n_layers={model.layers}, dim={model.hidden}, n_heads={model.heads}, n_kv_heads={model.attention_groups}"
    more = f"vocab_size={model.vocabulary}, feed-forward width {model.ffn}"
    routed = f", {model.experts} experts, {model.experts_per_token} a token" if model.experts > 1 else ""
    return (f"the network needs a flavor of its own, with {shapes}, {more}{routed}", *unknown_shapes(model, "scaling", beside))


EXPORT = Export("torchtitan", OPTIONS, settings, lambda _model, _plan, found: flags(found), parsed_flags, read, remarks)


# Groups that exchange rarely: options of torchft (`torchtitan/experiments/ft`).

_FP8 = 0.5
"""What torchft sends with `should_quantize`, over bf16 (torchft/quantization.py)."""


def site_settings(name: str, sites: Groups, step: float) -> tuple[Setting, ...]:
    """The options of one group; a RefusedError where the stack has none."""
    way = sites.ways[sites.chosen(step)]
    if sites.groups == 1:
        return ()
    if name != "torchtitan":
        raise RefusedError(f"--as {name}: groups that exchange every {way.every} steps are launched by torchtitan alone (--as torchtitan)")
    if way.asynchronous:
        raise RefusedError("--as torchtitan: torchft has no asynchronous groups (--set sites.exchange=synchronous)")
    own = "--fault_tolerance."
    found = [
        Setting(f"{own}enable", None, "groups are replicas of torchft, which needs its lighthouse (TORCHFT_LIGHTHOUSE)"),
        Setting(f"{own}group_size", str(sites.groups), "groups; each is a run of its own"),
        Setting(f"{own}replica_id", "$GROUP", "this group, from 0"),
        Setting(f"{own}min_replica_size", str(sites.groups), "no step without all groups"),
    ]
    if way.learns_alike:
        return tuple(found)
    found.append(Setting(f"{own}semi_sync_method", "diloco", "groups exchange rarely"))
    found.append(Setting(f"{own}sync_steps", str(way.every), "steps between two exchanges"))
    if way.fragments > 1:
        found.append(Setting(f"{own}num_fragments", str(way.fragments), "parts of the network, one after the other"))
    if way.overlap:
        found.append(Setting(f"{own}fragment_sync_delay", str(way.overlap), "steps that run before an exchange must have arrived"))
    if way.compression < 1.0:
        found.append(Setting(f"{own}should_quantize", None, f"sends {_FP8:g} of bf16; {way.compression:g} is priced"))
    return tuple(found)


def with_sites(text: str, sites: Groups, batch: int, found: tuple[Setting, ...]) -> str:
    """The command line of one group, with the global batch of all groups, as torchft divides it."""
    option = "--training.global_batch_size"
    return (
        text.replace(f"{option} {batch}", f"{option} {batch * sites.groups}")
        + " \\\n  "
        + flags(found).replace("'$GROUP'", '"${GROUP:?the number of this group, from 0}"')
    )
