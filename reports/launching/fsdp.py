"""PyTorch's own sharded data parallelism (`fully_shard`) as the lines of Python that set it up, as of PyTorch 2.8."""

import ast

from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Transformer
from crossopt.reports.launching.options import Export, Setting, Settings, options_of, peft, unknown_shapes, whole, windowed

OPTIONS = options_of(
    "pytorch/pytorch torch/distributed/fsdp/_fully_shard/_fully_shard.py, _fsdp_api.py",
    "2.8",
    """init_device_mesh.mesh_shape MixedPrecisionPolicy.param_dtype MixedPrecisionPolicy.reduce_dtype fully_shard.reshard_after_forward
    DistributedDataParallel.device_mesh apply_activation_checkpointing.check_fn set_requires_gradient_sync.requires_gradient_sync
    set_reshard_after_backward.reshard_after_backward split.split_size create_selective_checkpoint_contexts.policy_fn_or_list""",
)
_IMPORTS = (
    "import torch",
    "from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing",
    "from torch.distributed.device_mesh import init_device_mesh",
    "from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard",
    "from torch.nn.parallel import DistributedDataParallel",
)
_SELECTIVE = (
    "from functools import partial",
    "from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper",
    "from torch.utils.checkpoint import create_selective_checkpoint_contexts",
)
_POLICY = "create_selective_checkpoint_contexts.policy_fn_or_list"
_DTYPES = {"bf16": "torch.bfloat16", "fp16": "torch.float16", "fp32": "torch.float32"}


def settings(model: Transformer, plan: Plan) -> tuple[Setting, ...]:
    """Arguments of calls, by their names."""
    make = OPTIONS.setting
    found = [
        make("init_device_mesh.mesh_shape", *_mesh(plan)),
        make("split.split_size", plan.microbatch, "samples a replica takes at a time"),
    ]
    if plan.recompute != "none":
        found.append(make("apply_activation_checkpointing.check_fn", "is_layer", "layers are computed again in the backward pass"))
    if plan.recompute == "elements":
        found.append(make(_POLICY, "keeps_products", "but for attention and products, of which all but the last are kept"))
    if plan.zero == 0:
        return (*found, make("DistributedDataParallel.device_mesh", "mesh", "replicas with weights of their own"))
    dtype = _DTYPES.get(model.precision, model.precision)
    reduced = "torch.float32" if model.gradient_bytes >= 4.0 else dtype
    given_up = "weights are gathered for each layer and given up" if plan.zero == 3 else "gathered weights are kept"
    found.append(make("MixedPrecisionPolicy.param_dtype", dtype, "of weights in work"))
    found.append(make("MixedPrecisionPolicy.reduce_dtype", reduced, "of gradients that are summed"))
    found.append(make("fully_shard.reshard_after_forward", plan.zero == 3, given_up))
    if plan.zero < 3:
        words = "weights are kept between microbatches"
        found.append(make("set_reshard_after_backward.reshard_after_backward", "last", words))
    if plan.zero == 1:
        words = "gradients are summed once a step"
        found.append(make("set_requires_gradient_sync.requires_gradient_sync", "last", words))
    return tuple(found)


def _mesh(plan: Plan) -> tuple[str, str]:
    if not plan.shard:
        return f"({plan.data},)", "replicas"
    return f"({plan.data // plan.shard}, {plan.shard})", "groups of replicas, and those of a group, which share"


def written(model: Transformer, plan: Plan, found: tuple[Setting, ...]) -> str:
    """Lines of Python with these arguments."""
    values = {setting.name: setting.value for setting in found}
    imports = (*_IMPORTS, *(_SELECTIVE if _POLICY in values else ()))
    lines = [*imports, "", f'mesh = init_device_mesh("cuda", mesh_shape={values["init_device_mesh.mesh_shape"]})', *_recomputed(values)]
    if "fully_shard.reshard_after_forward" in values:
        dtypes = ", ".join(f"{name}={values[f'MixedPrecisionPolicy.{name}']}" for name in ("param_dtype", "reduce_dtype"))
        lines += [
            f"policy = MixedPrecisionPolicy({dtypes})",
            "for part in (*model.layers, model):",
            f"    fully_shard(part, mesh=mesh, mp_policy=policy, reshard_after_forward={values['fully_shard.reshard_after_forward']})",
        ]
    else:
        lines.append("model = DistributedDataParallel(model, device_mesh=mesh)")
    lines.append(f"microbatches = samples.split(split_size={values['split.split_size']})")
    lines += ["for number, microbatch in enumerate(microbatches):", "    last = number + 1 == len(microbatches)"]
    lines += [
        f"    model.{call}({keyword}=last)"
        for call, keyword in (
            ("set_reshard_after_backward", "reshard_after_backward"),
            ("set_requires_gradient_sync", "requires_gradient_sync"),
        )
        if f"{call}.{keyword}" in values
    ]
    dtype = "None" if model.precision == "fp32" or plan.zero else _DTYPES[model.precision]
    around = "" if dtype == "None" else f"    with torch.autocast('cuda', dtype={dtype}):\n    "
    return "\n".join([*lines, f"{around}    loss_of(model, microbatch).backward()"])


def _recomputed(values: Settings) -> tuple[str, ...]:
    if _POLICY in values:
        contexts = f"lambda: create_selective_checkpoint_contexts(policy_fn_or_list={values[_POLICY]})"
        return (
            f"wrapper = partial(checkpoint_wrapper, context_fn={contexts})",
            "apply_activation_checkpointing(model, checkpoint_wrapper_fn=wrapper, check_fn=is_layer)",
        )
    return ("apply_activation_checkpointing(model, check_fn=is_layer)",) if "apply_activation_checkpointing.check_fn" in values else ()


def parsed(text: str) -> Settings:
    """The arguments of all calls in the lines."""
    found = dict[str, str | None]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            call = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
            found |= {f"{call}.{keyword.arg}": ast.unparse(keyword.value) for keyword in node.keywords}
    return found


def read(given: Settings, model: Transformer, devices: int) -> Plan:
    """The plan that these lines launch."""
    del model
    groups, *rest = (int(part) for part in str(given["init_device_mesh.mesh_shape"]).strip("(),").split(","))
    data = groups * (rest[0] if rest else 1)
    if data != devices:
        raise ValueError(f"there are {devices} devices, and the mesh has {data}")
    sharded = given.get("fully_shard.reshard_after_forward")
    once = "set_requires_gradient_sync.requires_gradient_sync" in given
    return Plan(
        data=data,
        microbatch=whole(given, "split.split_size"),
        recompute="elements" if _POLICY in given else "full" if "apply_activation_checkpointing.check_fn" in given else "none",
        zero=0 if sharded is None else 3 if sharded == "True" else 1 if once else 2,
        overlap="data" if data > 1 else "none",
        shard=rest[0] if rest else 0,
    )


def remarks(model: Transformer, plan: Plan) -> tuple[str, ...]:
    """The network is the user's own."""
    del plan
    shapes = f"{model.layers} layers, hidden {model.hidden}, {model.heads} heads, {model.attention_groups} key-value heads"
    more = f"feed-forward {model.ffn}, vocabulary {model.vocabulary}, sequence {model.sequence}"
    beside = peft(model, "before fully_shard say") | windowed(model, "the model's own code")
    return (f"the network is the model's own code: {shapes}, {more}", *unknown_shapes(model, "", beside))


EXPORT = Export("fsdp", OPTIONS, settings, written, parsed, read, remarks)
