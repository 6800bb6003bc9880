"""Arguments of Megatron-LM's pretrain scripts for a plan, and the plan of arguments, as Megatron-Core 0.14 and 0.15 have them."""

from functools import reduce
from operator import or_
from typing import Final

from crossopt.crossflow.exchanges.context import by_all_to_all
from crossopt.crossflow.plan import END_STAGES, Plan
from crossopt.crossflow.recomputation import (
    ATTENTION_NORM,
    EXPERT_ACTIVATION,
    EXPERTS,
    MEGATRON,
    SHARED_EXPERTS,
    layers_named,
    number_of,
    word_of,
)
from crossopt.crossflow.sharding import RESIDENT_LAYERS
from crossopt.crossflow.stages import Split, chunk_sizes, split_layers
from crossopt.crossflow.workload import Transformer
from crossopt.reports.launching.megatron_network import PAIRED, SINCE_BLACKWELL, experts, precision, shapes
from crossopt.reports.launching.megatron_options import OPTIONS
from crossopt.reports.launching.megatron_remarks import remarks
from crossopt.reports.launching.options import (
    Export,
    Setting,
    Settings,
    flags,
    parsed_flags,
    whole,
)

_SHARDING = {2: "optim_grads", 3: "optim_grads_params"}
_RECOMPUTE: dict[str, tuple[tuple[str, str | int, str], ...]] = {
    "none": (),
    "selective": (("--recompute-granularity", "selective", "attention's core is computed again in the backward pass"),),
    "full": (
        ("--recompute-granularity", "full", "layers are computed again in the backward pass"),
        ("--recompute-method", "uniform", "every layer alike"),
        ("--recompute-num-layers", 1, "one layer at a time"),
    ),
}
_RECOMPUTE_SOME: Final = ("--recompute-granularity", "selective", "modules of a layer are computed again in the backward pass")
_MODULES: Final = {name: number_of(word) for name, word in MEGATRON.items()}


def settings(model: Transformer, plan: Plan) -> tuple[Setting, ...]:
    """All arguments, those of the plan first."""
    make = OPTIONS.setting
    turned = plan.context > 1 and by_all_to_all(model)
    found = [
        make("--tensor-model-parallel-size", plan.tensor, "heads and widths of a layer over so many devices"),
        make("--pipeline-model-parallel-size", plan.pipeline, "stages of layers"),
        make("--context-parallel-size", plan.context, "the sequence over so many devices"),
        *([make("--cp-comm-type", "a2a", "heads in place of the sequence inside attention")] if turned else []),
        make("--micro-batch-size", plan.microbatch, "samples a replica takes at a time"),
        make("--global-batch-size", model.global_batch, f"samples of a step: {plan.data} replicas do the rest"),
    ]
    found += [make("--sequence-parallel", None, "norms and dropouts over the tensor ranks too")] if plan.sequence_parallel else []
    found += [make("--tp-comm-overlap", None, "exchanges of tensor ranks behind products")] if plan.tensor_exchange == "hidden" else []
    found += [*_split(model, plan), *experts(model, plan)]
    found += [make(*argument) for argument in _recompute(plan.recompute)]
    found += [*_sharing(plan), *_hidden(plan), *_offloaded(model, plan)]
    if plan.placement == "tensor-context-pipeline-data":
        found.append(make("--use-tp-pp-dp-mapping", None, "stages on nearer devices than replicas"))
    return (*found, *precision(model, plan), *shapes(model))


def _recompute(word: str) -> tuple[tuple[str, str | int, str], ...]:
    if word in _RECOMPUTE:
        return _RECOMPUTE[word]
    if not layers_named(word):
        number = number_of(word)
        number &= ~(SHARED_EXPERTS | EXPERT_ACTIVATION) if number & EXPERTS else number
        listed = " ".join(name for name, bits in (_MODULES | {"moe": EXPERTS}).items() if number & bits)
        return (_RECOMPUTE_SOME, ("--recompute-modules", listed, f"{word.replace('+', ', ')}: what they give is not kept"))
    return (
        _RECOMPUTE["full"][0],
        ("--recompute-method", "block", "the first layers of each chunk"),
        ("--recompute-num-layers", word.removeprefix("full-"), "so many of them"),
    )


def _split(model: Transformer, plan: Plan) -> list[Setting]:
    """Chunks of layers; which layers each holds, where they are not even."""
    if plan.pipeline == 1:
        return []
    split = split_of(model, plan)
    told = [
        OPTIONS.setting(
            f"--decoder-{name.split('_')[0]}-pipeline-num-layers", getattr(plan, name), f"layers of the {name.split('_')[0]} stage"
        )
        for name in END_STAGES
        if getattr(plan, name)
    ]
    if told and (split.fuller or model.prediction_layers or any(part % plan.interleave for part in (*split.ends, split.between))):
        return _as_layout(model, plan)
    if told:
        return [*told, *_chunks(plan)]
    if model.stack % (plan.pipeline * plan.interleave) or model.prediction_layers:
        return _as_layout(model, plan)
    return _chunks(plan)


def _as_layout(model: Transformer, plan: Plan) -> list[Setting]:
    words = "which layers (t) each chunk holds, beside embedding (E) and loss (L)"
    return [OPTIONS.setting("--pipeline-model-parallel-layout", layout(model, plan), words)]


def split_of(model: Transformer, plan: Plan) -> Split:
    """How many layers each stage holds."""
    return split_layers(model.stack, *(float(getattr(plan, name)) for name in ("pipeline", *END_STAGES)))


def _chunks(plan: Plan) -> list[Setting]:
    if plan.interleave == 1:
        return []
    return [OPTIONS.setting("--num-virtual-stages-per-pipeline-rank", plan.interleave, "chunks of layers a stage holds")]


def layout(model: Transformer, plan: Plan) -> str:
    """The layers of each chunk in the order of the network, those that predict further tokens (m) last; beside them embedding and loss."""
    split = split_of(model, plan)
    stages = [chunk_sizes(int(split.on(stage)), plan.interleave, first=stage == 0) for stage in range(plan.pipeline)]
    held = [sizes[chunk] for chunk in range(plan.interleave) for sizes in stages]
    letters = iter("t" * model.layers + "m" * model.prediction_layers)
    return "E" + "|".join("".join(next(letters) for _ in range(count)) for count in held) + "L"


def _sharing(plan: Plan) -> list[Setting]:
    """What replicas share."""
    make = OPTIONS.setting
    if plan.zero == 0:
        return []
    found = [make("--use-distributed-optimizer", None, "optimizer state shared by the replicas (ZeRO-1)")]
    if plan.shard:
        copies = plan.data * plan.context // plan.shard
        found.append(make("--num-distributed-optimizer-instances", copies, f"in groups of {plan.shard}: so many hold the same part"))
    if plan.zero == 1:
        return found
    shared = "gradients" if plan.zero == 2 else "gradients and weights"
    return [
        *found,
        make("--use-megatron-fsdp", None, "what is shared is laid out by Megatron-FSDP"),
        make("--data-parallel-sharding-strategy", _SHARDING[plan.zero], f"{shared} shared as well (ZeRO-{plan.zero})"),
        make("--no-gradient-accumulation-fusion", None, "which Megatron-FSDP needs"),
        make("--ckpt-format", "fsdp_dtensor", "which Megatron-FSDP needs"),
        *([make("--init-model-with-meta-device", None, "no device ever holds the whole network")] if plan.zero == 3 else []),
    ]


def _hidden(plan: Plan) -> list[Setting]:
    """What goes on behind work."""
    make, found = OPTIONS.setting, list[Setting]()
    if plan.overlap in {"data", "both"}:
        found.append(make("--overlap-grad-reduce", None, "gradients are summed behind the backward pass"))
        if plan.zero:
            found.append(make("--overlap-param-gather", None, "updated weights are gathered behind the forward pass"))
    if plan.interleave > 1 and plan.overlap in {"none", "data"}:
        found.append(make("--no-overlap-p2p-communication", None, "activations are passed on without hiding"))
    return found


def _offloaded(model: Transformer, plan: Plan) -> list[Setting]:
    if plan.offload == "none":
        return []
    layers = model.stack - int(RESIDENT_LAYERS)
    return [OPTIONS.setting("--cpu-offloading-num-layers", layers, "layers of which activations are kept in the host's memory")]


def read(given: Settings, model: Transformer, devices: int) -> Plan:
    """The plan that these arguments launch."""
    tensor, context, pipeline = (whole(given, f"--{name}-parallel-size") for name in ("tensor-model", "context", "pipeline-model"))
    chunks = given.get("--pipeline-model-parallel-layout")
    interleave = len(chunks.split("|")) // pipeline if chunks else whole(given, "--num-virtual-stages-per-pipeline-rank")
    expert, split = whole(given, "--expert-model-parallel-size"), whole(given, "--expert-tensor-parallel-size", tensor)
    ends = _ends(given, model, pipeline, str(chunks) if chunks else "")
    strategy = given.get("--data-parallel-sharding-strategy")
    zero = 1 if "--use-distributed-optimizer" in given else 0
    zero = {name: number for number, name in _SHARDING.items()}.get(str(strategy), zero) if "--use-megatron-fsdp" in given else zero
    data = "--overlap-grad-reduce" in given or zero > 1
    instances = whole(given, "--num-distributed-optimizer-instances")
    transfers = interleave > 1 and "--no-overlap-p2p-communication" not in given
    return Plan(
        tensor=tensor,
        context=context,
        pipeline=pipeline,
        data=devices // (tensor * context * pipeline),
        expert=expert,
        tensor_exchange="hidden" if "--tp-comm-overlap" in given else "exposed",
        expert_exchange="hidden" if PAIRED in given else "exposed",
        expert_tensor=0 if split == tensor and (context == 1 or expert == 1) else split,
        microbatch=whole(given, "--micro-batch-size"),
        interleave=interleave,
        first_stage_layers=ends[0],
        last_stage_layers=ends[1],
        sequence_parallel="--sequence-parallel" in given and tensor > 1,
        recompute=_recompute_in(given, model),
        zero=zero,
        overlap=("none", "data", "pipeline", "both")[data + 2 * transfers],
        shard=devices // (tensor * pipeline * instances) if instances > 1 else 0,
        offload="activations" if whole(given, "--cpu-offloading-num-layers", 0) else "none",
        placement=f"tensor-context-{'pipeline-data' if '--use-tp-pp-dp-mapping' in given else 'data-pipeline'}",
    )


def _recompute_in(given: Settings, model: Transformer) -> str:
    """Of a number of layers of each chunk, of all or of none; Megatron takes no number for all layers of a chunk. Some modules of a layer;
    the norm before attention is one with a product there but where there are latents."""
    if modules := given.get("--recompute-modules"):
        number = reduce(or_, (_MODULES[name] for name in modules.split()))
        return word_of(number if model.latent else number & ~ATTENTION_NORM)
    if given.get("--recompute-method") == "block":
        return f"full-{whole(given, '--recompute-num-layers')}"
    return given.get("--recompute-granularity") or "none"


def _ends(given: Settings, model: Transformer, pipeline: int, chunks: str) -> tuple[int, int]:
    """Layers of the first and the last stage, where they are told, or follow from a layout that is not even."""
    if not chunks:
        return whole(given, "--decoder-first-pipeline-num-layers", 0), whole(given, "--decoder-last-pipeline-num-layers", 0)
    counts = [part.count("t") + part.count("m") for part in chunks.split("|")]
    held = [sum(counts[stage::pipeline]) for stage in range(pipeline)]
    for ends in ((0, 0), (held[0], 0), (0, held[-1]), (held[0], held[-1])):
        split = split_layers(model.stack, float(pipeline), *map(float, ends))
        if [int(split.on(float(stage))) for stage in range(pipeline)] == held:
            return ends
    raise ValueError(f"{chunks} is no even layout but for its ends")


EXPORT = Export("megatron-core", OPTIONS, settings, lambda _model, _plan, found: flags(found), parsed_flags, read, remarks, SINCE_BLACKWELL)
