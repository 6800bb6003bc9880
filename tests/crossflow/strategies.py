"""Random transformers and plans for property tests."""

from random import Random

from hypothesis import strategies as st

from crossopt.crossflow.plan import OFFLOAD, OVERLAP, PLACEMENTS, SCHEDULES, Plan, broken_rules
from crossopt.crossflow.recomputation import RECOMPUTE, sets_of
from crossopt.crossflow.workload import Transformer

_RECOMPUTED = (
    *RECOMPUTE,
    *("full-1", "full-2"),
    *sets_of(("attention-norm", "feed-forward-norm", "dense-activation", "expert-activation", "up-projections", "selective")),
)

MODELS = (
    Transformer("gelu", layers=12, hidden=1536, heads=12, ffn=6144, vocabulary=32000, sequence=1024, global_batch=192),
    Transformer(
        "unfused",
        layers=14,
        hidden=1024,
        heads=16,
        ffn=4096,
        vocabulary=50257,
        sequence=2048,
        global_batch=96,
        attention="unfused",
        dropout=True,
    ),
    Transformer(
        "grouped",
        layers=16,
        hidden=2048,
        heads=32,
        kv_heads=8,
        ffn=5632,
        vocabulary=128256,
        sequence=4096,
        global_batch=64,
        gated=True,
        tied=False,
        learned_positions=False,
        biases=False,
    ),
    Transformer(
        "experts",
        layers=8,
        hidden=1024,
        heads=16,
        kv_heads=8,
        ffn=3584,
        vocabulary=32000,
        sequence=2048,
        global_batch=128,
        gated=True,
        experts=8,
        experts_per_token=2,
        capacity_factor=1.25,
    ),
    Transformer(
        "latents",
        layers=11,
        hidden=1024,
        heads=16,
        head_size=64,
        ffn=4096,
        vocabulary=32000,
        sequence=2048,
        global_batch=128,
        gated=True,
        tied=False,
        learned_positions=False,
        biases=("router",),
        experts=8,
        experts_per_token=2,
        expert_ffn=1024,
        shared_experts=1,
        dense_layers=3,
        query_rank=512,
        kv_rank=256,
        rope_size=32,
        value_size=64,
        prediction_layers=1,
    ),
    Transformer(
        "windows",
        layers=12,
        hidden=1024,
        heads=16,
        kv_heads=4,
        head_size=128,
        ffn=4096,
        vocabulary=64000,
        sequence=4096,
        global_batch=64,
        gated=True,
        learned_positions=False,
        biases=False,
        window=512,
        global_layers=2,
        qk_norm=True,
        norms=4,
        attention_cap=True,
        logit_cap=True,
        sinks=True,
    ),
    Transformer(
        "parallel",
        layers=8,
        hidden=2048,
        heads=16,
        kv_heads=1,
        ffn=8192,
        vocabulary=65024,
        sequence=2048,
        global_batch=64,
        learned_positions=False,
        biases=("norms",),
        norms=1,
        parallel_blocks=True,
        attention="unfused",
        attention_cap=True,
    ),
    Transformer(
        "adapters",
        layers=9,
        hidden=1024,
        heads=16,
        kv_heads=8,
        ffn=3584,
        vocabulary=32000,
        sequence=2048,
        global_batch=128,
        gated=True,
        experts=4,
        experts_per_token=2,
        dense_layers=1,
        lora_rank=16,
    ),
)


@st.composite
def plans(draw: st.DrawFn, model: Transformer, devices: int) -> Plan:
    """A plan that keeps every rule for this model on this many devices."""
    return draw(
        st.builds(
            _plan,
            st.integers(0, 2**32 - 1),
            st.just(model),
            st.just(devices),
        )
    )


def _plan(seed: int, model: Transformer, devices: int) -> Plan:
    """The first of a seeded stream of random plans that keeps every rule."""
    random = Random(seed)  # a draw from an array costs more than the rules do
    divisors = [part for part in range(1, devices + 1) if devices % part == 0]
    while True:
        tensor, context, pipeline = (random.choice(divisors) for _ in range(3))
        if devices % (tensor * context * pipeline):
            continue
        data, expert = devices // (tensor * context * pipeline), random.choice([1, 2, 4])
        microbatch, interleave = random.choice([1, 2, 3, 4]), random.choice([1, 2, 3])
        plan = Plan(
            tensor=tensor,
            context=context,
            pipeline=pipeline,
            data=data,
            expert=expert,
            microbatch=microbatch,
            interleave=interleave,
            sequence_parallel=random.choice([False, True]),
            recompute=random.choice(_RECOMPUTED),
            zero=random.randrange(4),
            overlap=random.choice(OVERLAP),
            offload=random.choice(OFFLOAD),
            placement=random.choice(PLACEMENTS),
            shard=random.choice((0, 0, context, 2 * context, 4 * context)),
            schedule=random.choice(SCHEDULES),
            tensor_exchange=random.choice(["exposed", "hidden"]),
            expert_exchange=random.choice(["exposed", "exposed", "hidden"]),
            expert_tensor=random.choice([0, 0, 1, 2]),
            first_stage_layers=random.choice([0, 0, 1, 2, 3]),
            last_stage_layers=random.choice([0, 0, 1, 2, 3]),
        )
        if (
            (data % expert and not plan.expert_tensor)
            or model.heads % tensor
            or model.global_batch % (data * microbatch)
            or pipeline * interleave > model.layers
        ):
            continue  # most break one of these, which is seen sooner so than by all the rules
        if not broken_rules(model, plan, devices):
            return plan
