"""What torchtitan launches through its job configuration, as of 2025."""

from typing import Final

from crossopt.instances.codesign.stacks.table import Edition, Fact, Row, Source, Stack

_REPOSITORY: Final = "pytorch/torchtitan"
_JOB: Final = Source(_REPOSITORY, "torchtitan/config/job_config.py", "6404b932421f")
_CHECKPOINTS: Final = Source(_REPOSITORY, "torchtitan/distributed/activation_checkpoint.py", "0.2")
_STAGES: Final = Source(_REPOSITORY, "torchtitan/distributed/pipeline_parallel.py", "02ef790c7961")
_DIMENSIONS: Final = Source(_REPOSITORY, "torchtitan/distributed/parallel_dims.py", "0119de156de5")
_LLAMA: Final = Source(_REPOSITORY, "torchtitan/models/llama3/infra/parallelize.py", "018740b7aae7")
_QWEN: Final = Source(_REPOSITORY, "torchtitan/models/qwen3/README.md, issue 2077", "02e5389e9760")
_SCHEDULES: Final = Source("pytorch/pytorch", "torch/distributed/pipelining/schedules.py", "2.8")
_SYMMETRIC: Final = Source("pytorch/pytorch", "torch/csrc/distributed/c10d/symm_mem/CUDASymmetricMemory.cu", "029e4735242e")
_STAGE: Final = Source("pytorch/pytorch", "torch/distributed/pipelining/stage.py", "2.8")

SELECTIVE: Final = "elements+second-products"
"""What its option `selective` does operator by operator (`selective_ac_option "op"`): attention and every other product are kept."""
STACK: Final = Stack(
    "torchtitan",
    "torchtitan's job configuration with its Llama, Qwen3 and DeepSeek models",
    (
        Row(
            "ranks are laid out tensor-context-data-pipeline",
            Fact("placement", ("tensor-context-data-pipeline",)),
            _DIMENSIONS,
        ),
        Row("tensor divides the key-value heads", Fact("key-value heads left over", (0,)), _LLAMA),
        Row(
            "twice tensor x context divides the sequence",
            Fact("tokens left by pairs of tensor x context", (0,)),
            _DIMENSIONS,
        ),
        Row(
            "networks whose queries and keys are normed (Qwen3) are without context parallel",
            Fact("context", (1,)),
            _QWEN,
            (Fact("normed queries and keys", (1,)),),
        ),
        Row(
            "tensor parallel comes with sequence parallel",
            Fact("sequence_parallel", (True,)),
            _LLAMA,
            (Fact("tensor", above=1),),
        ),
        Row(
            "pipeline x interleave divides the layers, but for fewer in the first and the last chunk",
            Fact("layers left over", (0,)),
            _STAGES,
            (Fact("pipeline", above=1),),
        ),
        Row(
            "a pipeline has at least as many microbatches as stages",
            Fact("microbatches to spare", above=-1),
            _SCHEDULES,
            (Fact("pipeline", above=1),),
        ),
        Row(
            "hidden tensor exchange is by compiling, without which backward passes are split",
            Fact("tensor_exchange", ("exposed",)),
            _LLAMA,
            (Fact("schedule", above=0),),
        ),
        Row(
            "hidden tensor exchange is where a node's links reach: tensor divides their devices, since symmetric memory of async tensor "
            "parallelism goes over NVLink alone",
            Fact("devices of a node left by tensor", (0,)),
            _SYMMETRIC,
            (Fact("tensor_exchange", ("hidden",)),),
        ),
        Row(
            "no microbatches go both ways (dualpipe)",
            Fact("schedule", ("1f1b", "zero-bubble", "zero-bubble-v")),
            _SCHEDULES,
        ),
        Row(
            "gradients of weights are put off with several chunks a stage (InterleavedZeroBubble, ZBVZeroBubble)",
            Fact("interleave", above=1),
            _SCHEDULES,
            (Fact("schedule", above=0),),
        ),
        Row(
            "a pipeline keeps weights and gradients whole through the step (ZeRO-1)",
            Fact("zero", (1,)),
            _STAGE,
            (Fact("pipeline", above=1), Fact("sharing ranks", above=1)),
        ),
        Row(
            "ranks without a pipeline share gradients or weights (ZeRO-2, ZeRO-3), or have copies of all (ZeRO-0)",
            Fact("zero", (0, 2, 3)),
            _LLAMA,
            (Fact("pipeline", (1,)),),
        ),
        Row(
            "copies of all (ZeRO-0) are without tensor and context parallel",
            Fact("width", (1,)),
            _LLAMA,
            (Fact("zero", (0,)), Fact("sharing ranks", above=1)),
        ),
        Row(
            "ZeRO-2 gathers weights anew for each microbatch, and so has one",
            Fact("microbatches", (1,)),
            _LLAMA,
            (Fact("zero", (2,)),),
        ),
        Row(
            "ranks that share hide their exchange, always, without a pipeline",
            Fact("data is hidden", (1,)),
            _LLAMA,
            (Fact("pipeline", (1,)), Fact("sharing ranks", above=1)),
        ),
        Row(
            "gradients of a pipeline are exchanged after it, unhidden",
            Fact("data is hidden", (0,)),
            _STAGE,
            (Fact("pipeline", above=1),),
        ),
        Row("stages hand on unhidden", Fact("transfers are hidden", (0,)), _SCHEDULES),
        Row(
            "all is computed again, nothing, or operator by operator (elements+second-products)",
            Fact("recompute", ("none", "full", SELECTIVE)),
            _CHECKPOINTS,
        ),
        Row("nothing is offloaded layer by layer", Fact("offload", ("none",)), _JOB),
        Row(
            "experts are spread over replicas alone where tensor x context is 1",
            Fact("width", (1,)),
            _DIMENSIONS,
            (Fact("expert", above=1), Fact("expert_tensor", (0,))),
        ),
        Row("tokens go to their experts unhidden", Fact("expert_exchange", ("exposed",)), _DIMENSIONS),
        Row(
            "each copy of a token goes to its expert by itself",
            Fact("copies go once a node", (0,)),
            _DIMENSIONS,
            (Fact("expert", above=1),),
        ),
        Row("each expert is whole, or split over the tensor ranks", Fact("expert_tensor", (0, 1)), _DIMENSIONS),
        Row(
            "whole experts are spread over all tensor and context ranks",
            Fact("expert left by width", (0,)),
            _DIMENSIONS,
            (Fact("expert_tensor", above=0),),
        ),
        Row(
            "spread experts are with replicas that share (ZeRO above 0)",
            Fact("expert", (1,)),
            _JOB,
            (Fact("zero", (0,)),),
        ),
        Row("the precision is fp32, bf16 or fp8", Fact("precision", ("fp32", "bf16", "fp8")), _JOB),
        Row(
            "scales of 8 bits are of tensors or of their rows",
            Fact("scaling", ("tensorwise", "rows")),
            _JOB,
            (Fact("precision", ("fp8",)),),
        ),
        Row("gradients are exchanged in 4 bytes", Fact("gradient bytes", (4,)), _JOB),
        Row(
            "16 bits need ranks that share, where there are tensor or pipeline ranks",
            Fact("sharing ranks", above=1),
            _JOB,
            (Fact("tensor x pipeline", above=1), Fact("precision", ("bf16", "fp16", "fp8"))),
        ),
    ),
    editions=(Edition("0.2", "torchtitan"),),
    also=(
        (
            "a compiled loss (--compile.enable, whose components are model and loss) takes no more than 4 bytes a logit: the product's 16 "
            "bits, and a gradient of 16; one that is not takes 12, and 16 where the vocabulary is split over tensor ranks",
            Source(_REPOSITORY, "torchtitan/components/loss.py", "00a388d9733c"),
        ),
    ),
    decided=("sequence_parallel", "zero", "overlap"),
    logit_peak_bytes=4.0,
    apart=True,  # wq, wk, wv, w1 and w3 of torchtitan/models/llama3/model/model.py (018740b7)
    stops_early=True,  # a checkpoint_wrapper without reentrant autograd (torchtitan/distributed/activation_checkpoint.py)
    keeps_casts=False,  # pytorch/ao torchao/float8/float8_linear.py, matmul_with_hp_or_float8_args saves input_hp
)
