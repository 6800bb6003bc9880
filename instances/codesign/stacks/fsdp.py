"""What PyTorch's own sharded data parallelism (FSDP2, `fully_shard`) launches in a training loop of one's own, as of PyTorch 2.8."""

from typing import Final

from crossopt.instances.codesign.stacks.table import Edition, Fact, Row, Source, Stack

_SHARD: Final = Source("pytorch/pytorch", "torch/distributed/fsdp/_fully_shard/_fully_shard.py", "2.8")
_POLICY: Final = Source("pytorch/pytorch", "torch/distributed/fsdp/_fully_shard/_fsdp_api.py", "2.8")
_CHECKPOINT: Final = Source("pytorch/pytorch", "torch/utils/checkpoint.py", "2.8")

STACK: Final = Stack(
    "fsdp",
    "PyTorch's fully_shard (FSDP2) in a loop of one's own",
    (
        Row("tensor is 1", Fact("tensor", (1,)), _SHARD),
        Row("context is 1", Fact("context", (1,)), _SHARD),
        Row("there is no pipeline", Fact("pipeline", (1,)), _SHARD),
        Row("experts are not spread", Fact("expert", (1,)), _SHARD),
        Row("nor have they ranks of their own", Fact("expert_tensor", (0,)), _SHARD),
        Row(
            "ranks are laid out tensor-context-data-pipeline",
            Fact("placement", ("tensor-context-data-pipeline",)),
            _SHARD,
        ),
        Row("ranks that share hide their exchange, always", Fact("data is hidden", (1,)), _SHARD, (Fact("data", above=1),)),
        Row(
            "all is computed again, elements (by create_selective_checkpoint_contexts), or nothing",
            Fact("recompute", ("none", "elements", "full")),
            _CHECKPOINT,
        ),
        Row("nothing is offloaded layer by layer", Fact("offload", ("none",)), _POLICY),
        Row("the precision is fp32, bf16 or fp16", Fact("precision", ("fp32", "bf16", "fp16")), _POLICY),
    ),
    editions=(Edition("2.0", "PyTorch", {"stops_early": False}), Edition("2.1", "PyTorch")),
    also=(
        (
            "PyTorch's cross_entropy in single precision takes 12 bytes a logit in its backward pass: log_softmax, which is kept, "
            "the gradient by it and that by its input",
            Source("pytorch/pytorch", "tools/autograd/derivatives.yaml", "2.8"),
        ),
    ),
    decided=("overlap",),
    logit_peak_bytes=12.0,
    stops_early=True,  # torch/utils/checkpoint.py, _enable_checkpoint_early_stop, without reentrant autograd
)
