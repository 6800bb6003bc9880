"""PyTorch's own sharded data parallelism (`fully_shard`) as the lines of Python that set it up, as of PyTorch 2.8."""

import ast
from pathlib import Path

from crossopt.crossflow.parameters import parameters
from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Transformer
from crossopt.reports.launching.options import Export, Setting, Settings, options_of, peft, unknown_shapes, whole_number, windowed

OPTIONS = options_of(
    "PyTorch 2.8",
    "pytorch/pytorch torch/distributed/fsdp/_fully_shard/_fully_shard.py, _fsdp_api.py, torch/nn/modules/module.py",
    "2.8",
    """init_device_mesh.mesh_shape MixedPrecisionPolicy.param_dtype MixedPrecisionPolicy.reduce_dtype fully_shard.reshard_after_forward
    DistributedDataParallel.device_mesh apply_activation_checkpointing.check_fn set_requires_gradient_sync.requires_gradient_sync
    set_reshard_after_backward.reshard_after_backward split.split_size create_selective_checkpoint_contexts.policy_fn_or_list
    requires_grad_.requires_grad""",
)
_IMPORTS = ("import torch", "from torch import nn", "from torch.distributed.device_mesh import init_device_mesh")
_SHARDED = ("from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard",)
_COPIED = ("from torch.nn.parallel import DistributedDataParallel",)
_AGAIN = ("from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing",)
_SELECTIVE = (
    "from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper",
    "from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts",
)
_KEEPS_PRODUCTS = """\
def keeps_products(context, operation, *arguments, **named):
    \"\"\"What a layer keeps: matrix products and attention; the rest is computed again.\"\"\"
    aten = torch.ops.aten
    kept = {aten.mm.default, aten.bmm.default, aten.addmm.default}
    kept |= {aten._scaled_dot_product_flash_attention.default}
    kept |= {aten._scaled_dot_product_efficient_attention.default}
    return CheckpointPolicy.MUST_SAVE if operation in kept else CheckpointPolicy.PREFER_RECOMPUTE


"""
_STEPS = """\
def main(steps=10):
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = planned()
    optimizer = torch.optim.AdamW({trained})
    for step in range(steps):
        microbatches = samples_of(step).split(split_size={split})
        for number, microbatch in enumerate(microbatches):
            last = number + 1 == len(microbatches)
"""
_END = """\
        optimizer.step()
        optimizer.zero_grad()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()"""
_FROZEN = "requires_grad_.requires_grad"
_POLICY = "create_selective_checkpoint_contexts.policy_fn_or_list"
_DTYPES = {"bf16": "torch.bfloat16", "fp16": "torch.float16", "fp32": "torch.float32"}


def settings(model: Transformer, plan: Plan) -> tuple[Setting, ...]:
    """Arguments of calls, by their names."""
    make = OPTIONS.setting
    found = [
        *([make(_FROZEN, False, "of the embedding and the first layers")] if model.frozen_layers is not None else []),
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
        meaning = "weights are kept between microbatches"
        found.append(make("set_reshard_after_backward.reshard_after_backward", "last", meaning))
    if plan.zero == 1:
        meaning = "gradients are summed once a step"
        found.append(make("set_requires_gradient_sync.requires_gradient_sync", "last", meaning))
    return tuple(found)


def _mesh(plan: Plan) -> tuple[str, str]:
    if not plan.shard:
        return f"({plan.data},)", "replicas"
    return f"({plan.data // plan.shard}, {plan.shard})", "groups of replicas, and those of a group, which share"


def written(model: Transformer, plan: Plan, found: tuple[Setting, ...]) -> str:
    """A script that runs, with these arguments."""
    values = {setting.name: setting.value for setting in found}
    sharded, again = "fully_shard.reshard_after_forward" in values, "apply_activation_checkpointing.check_fn" in values
    chosen = (*(_SELECTIVE if _POLICY in values else ()), *(_AGAIN if again else ()), *(_SHARDED if sharded else _COPIED))
    launched = f"# torchrun --nnodes NODES --nproc-per-node DEVICES train.py, on {plan.devices} devices in all"
    shapes = {name: getattr(model, name) for name in ("vocabulary", "hidden", "heads", "ffn", "layers", "sequence")}
    sizes = {"stand_in": _billions(_stand_in(model)), "weights": _billions(parameters(model))}
    template = Path(__file__).with_name("stand_in.py.in").read_text(encoding="utf-8")
    yours = template.format(share=model.global_batch // plan.data, **shapes, **sizes)
    first = ("import os", *(("from functools import partial",) if _POLICY in values else ()), "")
    head = "\n".join([launched, "", *first, *_IMPORTS, *chosen, "", ""])
    policy = _KEEPS_PRODUCTS if _POLICY in values else ""
    lines = [f'mesh = init_device_mesh("cuda", mesh_shape={values["init_device_mesh.mesh_shape"]})', *_placed(sharded), *_frozen(model)]
    lines += [*_recomputed(values), *(_sharing(values) if sharded else _copying()), "return model"]
    plan_lines = "".join(f"    {line}\n" for line in lines)
    trained = "model.parameters()" if model.frozen_layers is None else "[one for one in model.parameters() if one.requires_grad]"
    steps = _STEPS.format(split=values["split.split_size"], trained=trained)
    return f"{head}\n{policy}{yours}{plan_lines}\n\n{steps}{_work(model, plan, values)}{_END}"


def _stand_in(model: Transformer) -> int:
    """Weights of the script's own network: attention with as many key-value heads as heads, two matrices of a feed-forward part, biases."""
    width = model.hidden
    layer = 4 * width * width + 2 * width * model.ffn + 9 * width + model.ffn
    return model.layers * layer + 2 * model.vocabulary * width + model.vocabulary


def _billions(number: float) -> str:
    return f"{number / 1e9:.3g}B"


def _frozen(model: Transformer) -> tuple[str, ...]:
    """Parts that are not trained, before anything is shared."""
    if model.frozen_layers is None:
        return ()
    return (f"for part in (model.embedding, *model.layers[:{model.frozen_layers}]):", "    part.requires_grad_(requires_grad=False)")


def _placed(sharded: bool) -> tuple[str, ...]:
    """Where weights come to be: whole on no device where they are shared out."""
    if not sharded:
        return ('model = Network().to("cuda")',)
    return ('with torch.device("meta"):', "    model = Network()")


def _sharing(values: Settings) -> tuple[str, ...]:
    dtypes = ", ".join(f"{name}={values[f'MixedPrecisionPolicy.{name}']}" for name in ("param_dtype", "reduce_dtype"))
    return (
        f"policy = MixedPrecisionPolicy({dtypes})",
        "for part in (*model.layers, model):",
        f"    fully_shard(part, mesh=mesh, mp_policy=policy, reshard_after_forward={values['fully_shard.reshard_after_forward']})",
        'model.to_empty(device="cuda")',
        "for weight in model.parameters():  # or load yours",
        "    nn.init.normal_(weight, std=0.02)",
    )


def _copying() -> tuple[str, ...]:
    return ("model = DistributedDataParallel(model, device_mesh=mesh)",)


def _work(model: Transformer, plan: Plan, values: Settings) -> str:
    """What is done with a microbatch."""
    calls = [
        f"model.{call}({keyword}=last)"
        for call, keyword in (
            ("set_reshard_after_backward", "reshard_after_backward"),
            ("set_requires_gradient_sync", "requires_gradient_sync"),
        )
        if f"{call}.{keyword}" in values
    ]
    plain = model.precision == "fp32" or plan.zero
    around = () if plain else (f"with torch.autocast('cuda', dtype={_DTYPES[model.precision]}):",)
    loss = f"{'' if plain else '    '}loss = loss_of(model, microbatch) / len(microbatches)"
    return "".join(f"            {line}\n" for line in (*calls, *around, loss, "loss.backward()"))


def _recomputed(values: Settings) -> tuple[str, ...]:
    if _POLICY in values:
        return (
            f"context = partial(create_selective_checkpoint_contexts, policy_fn_or_list={values[_POLICY]})",
            "wrapper = partial(checkpoint_wrapper, context_fn=context)",
            "apply_activation_checkpointing(model, checkpoint_wrapper_fn=wrapper, check_fn=is_layer)",
        )
    return ("apply_activation_checkpointing(model, check_fn=is_layer)",) if "apply_activation_checkpointing.check_fn" in values else ()


def parsed(text: str) -> Settings:
    """The arguments of all calls in the lines."""
    found = dict[str, str | None]()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            names = [node.func, *(node.args[:1] if ast.unparse(node.func) == "partial" else ())]  # what is called later counts too
            call = next(name.attr if isinstance(name, ast.Attribute) else ast.unparse(name) for name in reversed(names))
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
        microbatch=whole_number(given, "split.split_size"),
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
    own = f"the network is the model's own code: {shapes}, {more}; its layers are priced as compiled ones (part.compile() before "
    own += "fully_shard): left as they are, they keep more activations"
    return (own, *unknown_shapes(model, "frozen_layers", beside))


EXPORT = Export("fsdp", OPTIONS, settings, written, parsed, read, remarks)
