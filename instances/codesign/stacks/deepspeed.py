"""What DeepSpeed launches by its JSON configuration, `PipelineModule` and tensor parallelism of its own (AutoTP), as of 2025."""

from typing import Final

from crossopt.crossflow.plan import END_STAGES
from crossopt.instances.codesign.stacks.table import Edition, Fact, Row, Source, Stack

_REPOSITORY: Final = "deepspeedai/DeepSpeed"
_ENGINE: Final = Source(_REPOSITORY, "deepspeed/runtime/pipe/engine.py", "0050fdadcacc")
_SCHEDULE: Final = Source(_REPOSITORY, "deepspeed/runtime/pipe/schedule.py", "0.18.2")
_KEYS: Final = Source(_REPOSITORY, "docs/_pages/config-json.md", "0.18.2")
_TENSOR: Final = Source(_REPOSITORY, "docs/_tutorials/autotp-training.md", "0.18.2")
_TOPOLOGY: Final = Source(_REPOSITORY, "deepspeed/runtime/pipe/topology.py", "0.18.2")

STACK: Final = Stack(
    "deepspeed",
    "DeepSpeed's configuration with PipelineModule or AutoTP",
    (
        Row(
            "ranks are laid out tensor-context-data-pipeline",
            Fact("placement", ("tensor-context-data-pipeline",)),
            _TOPOLOGY,
        ),
        Row("context is 1", Fact("context", (1,)), _KEYS),
        Row("experts are not spread by the configuration", Fact("expert", (1,)), _KEYS),
        Row("tensor ranks exchange unhidden", Fact("tensor_exchange", ("exposed",)), _TENSOR),
        Row("experts are split over the tensor ranks", Fact("expert_tensor", (0,)), _KEYS),
        Row("a stage holds one chunk of layers", Fact("interleave", (1,)), _ENGINE),
        *(Row(f"{name.replace('_', ' ')} are as many as of the others", Fact(name, (0,)), _ENGINE) for name in END_STAGES),
        Row("backward passes are not split", Fact("schedule", ("1f1b",)), _SCHEDULE),
        Row("tensor parallel is without sequence parallel", Fact("sequence_parallel", (False,)), _TENSOR),
        Row("tensor divides the key-value heads", Fact("key-value heads left over", (0,)), _TENSOR),
        Row("tensor parallel is without a pipeline", Fact("pipeline", (1,)), _TENSOR, (Fact("tensor", above=1),)),
        Row("tensor parallel has ZeRO-0, ZeRO-1 or ZeRO-2", Fact("zero", (0, 1, 2)), _TENSOR, (Fact("tensor", above=1),)),
        Row("a pipeline has ZeRO-0 or ZeRO-1", Fact("zero", (0, 1)), _ENGINE, (Fact("pipeline", above=1),)),
        Row("pipeline divides the layers", Fact("layers left over", (0,)), _ENGINE, (Fact("pipeline", above=1),)),
        Row(
            "gradients of a pipeline are exchanged after it, unhidden",
            Fact("data is hidden", (0,)),
            _ENGINE,
            (Fact("pipeline", above=1),),
        ),
        Row("ZeRO-0 hides no exchange", Fact("data is hidden", (0,)), _KEYS, (Fact("zero", (0,)),)),
        Row("stages hand on unhidden", Fact("transfers are hidden", (0,)), _ENGINE),
        Row("all is computed again, or nothing", Fact("recompute", ("none", "full")), _KEYS),
        Row("all ranks share together (MiCS and hpZ are not written out here)", Fact("shard", (0,)), _KEYS),
        Row("activations stay on the device", Fact("activations are away", (0,)), _KEYS),
        Row("weights are offloaded with ZeRO-3", Fact("zero", (3,)), _KEYS, (Fact("weights are away", (1,)),)),
        Row(
            "the optimizer stays on the device: offloaded it works on the host's cores, which are not priced",
            Fact("optimizer is away", (0,)),
            _KEYS,
        ),
        Row("the precision is fp32, bf16 or fp16", Fact("precision", ("fp32", "bf16", "fp16")), _KEYS),
    ),
    editions=(Edition("0.18", "DeepSpeed"),),
    also=(
        (
            "PyTorch's cross_entropy in single precision takes 12 bytes a logit in its backward pass: log_softmax, which is kept, "
            "the gradient by it and that by its input",
            Source("pytorch/pytorch", "tools/autograd/derivatives.yaml", "2.8"),
        ),
    ),
    logit_peak_bytes=12.0,
)
