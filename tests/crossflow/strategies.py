"""Random transformers and plans for property tests."""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product
from math import prod

import numpy as np
from hypothesis import strategies as st

from crossopt.crossflow.arrays import Ints
from crossopt.crossflow.kernels.kernel_plan import SPLITS, KernelPlan, Split, broken_rules
from crossopt.crossflow.plan import OFFLOAD, OVERLAP, PLACEMENTS, SCHEDULES, TENSOR_EXCHANGES, Plan, Plans, code, plan_at, rules
from crossopt.crossflow.recomputation import RECOMPUTE, WHOLE_PARTS, sets_of
from crossopt.crossflow.workload import Gemm, Lstm, Transformer

_RECOMPUTED = (
    *RECOMPUTE,
    *("full-1", "full-2"),
    *sets_of(("attention-norm", "feed-forward-norm", "dense-activation", "expert-activation", "up-projections", "selective")),
    *sets_of(("norms", "selective", *WHOLE_PARTS)),
)
_CODES = [code("recompute", word) for word in _RECOMPUTED]

MODELS = (
    Transformer("gelu", layers=12, hidden=1536, heads=12, ffn=6144, vocabulary=32000, sequence=1024, global_batch=192),
    Transformer("unfused", layers=14, hidden=1024, heads=16, ffn=4096, vocabulary=50257, sequence=2048, global_batch=96,
        attention="unfused", dropout=True),
    Transformer("grouped", layers=16, hidden=2048, heads=32, kv_heads=8, ffn=5632, vocabulary=128256, sequence=4096, global_batch=64,
        gated=True, tied=False, learned_positions=False, biases=False),
    Transformer("experts", layers=8, hidden=1024, heads=16, kv_heads=8, ffn=3584, vocabulary=32000, sequence=2048, global_batch=128,
        gated=True, experts=8, experts_per_token=2, capacity_factor=1.25),
    Transformer("latents", layers=11, hidden=1024, heads=16, head_size=64, ffn=4096, vocabulary=32000, sequence=2048, global_batch=128,
        gated=True, tied=False, learned_positions=False, biases=("router",), experts=8, experts_per_token=2, expert_ffn=1024,
        shared_experts=1, dense_layers=3, query_rank=512, kv_rank=256, rope_size=32, value_size=64, prediction_layers=1),
    Transformer("windows", layers=12, hidden=1024, heads=16, kv_heads=4, head_size=128, ffn=4096, vocabulary=64000, sequence=4096,
        global_batch=64, gated=True, learned_positions=False, biases=False, window=512, global_layers=2, qk_norm=True, norms=4,
        attention_cap=True, logit_cap=True, sinks=True),
    Transformer("parallel", layers=8, hidden=2048, heads=16, kv_heads=1, ffn=8192, vocabulary=65024, sequence=2048, global_batch=64,
        learned_positions=False, biases=("norms",), norms=1, parallel_blocks=True, attention="unfused", attention_cap=True),
    Transformer("adapters", layers=9, hidden=1024, heads=16, kv_heads=8, ffn=3584, vocabulary=32000, sequence=2048, global_batch=128,
        gated=True, experts=4, experts_per_token=2, dense_layers=1, lora_rank=16),
)  # fmt: skip


@st.composite
def plans(draw: st.DrawFn, model: Transformer, devices: int) -> Plan:
    """A plan that keeps every rule for this model on this many devices."""
    return draw(st.builds(_plan, st.integers(0, 2**32 - 1), st.just(model), st.just(devices)))


def _plan(seed: int, model: Transformer, devices: int) -> Plan:
    """The first of a seeded stream of random plans that keeps every rule; few do, so that hundreds are looked at together."""
    random = np.random.default_rng(seed)
    while True:
        drawn = drawn_plans(random, model, devices, 256)
        sound = np.logical_and.reduce([holds for _, holds in rules(model, drawn, devices)])
        if sound.any():
            return plan_at(drawn, int(np.argmax(sound)))


@cache
def _layouts(devices: int) -> Ints:
    """Degrees of tensor, context, pipeline and data parallelism, in columns, whose product is the number of devices."""
    divisors = [part for part in range(1, devices + 1) if devices % part == 0]
    return np.array([degrees for degrees in product(divisors, repeat=4) if prod(degrees) == devices]).T


def drawn_plans(random: np.random.Generator, model: Transformer, devices: int, count: int) -> Plans:
    """So many plans at random, each on all devices, with ranks for experts where there are some."""
    tensor, context, pipeline, data = random.choice(_layouts(devices), count, axis=1)
    usual = random.choice([0, 0, 1, 2, 3], (2, count))
    by_sequence = np.where(tensor > 1, random.integers(0, 2, count), 0)
    return Plans(
        tensor=tensor,
        context=context,
        pipeline=pipeline,
        data=data,
        expert=random.choice([1, 2, 4] if model.experts > 1 else [1], count),
        microbatch=random.integers(1, 5, count),
        interleave=random.integers(1, 4, count),
        sequence_parallel=by_sequence,
        recompute=random.choice(_CODES, count),
        zero=random.integers(0, 4, count),
        overlap=random.integers(0, len(OVERLAP), count),
        offload=random.integers(0, len(OFFLOAD), count),
        placement=random.integers(0, len(PLACEMENTS), count),
        shard=random.choice([0, 0, 1, 2, 4], count) * context,
        schedule=random.integers(0, len(SCHEDULES), count),
        first_stage_layers=usual[0],
        last_stage_layers=usual[1],
        expert_tensor=random.choice([0, 0, 1, 2], count),
        tensor_exchange=by_sequence * random.integers(0, len(TENSOR_EXCHANGES), count),
        expert_exchange=random.choice([0, 0, 1], count),
    )


def kernel_plans(
    workload: Lstm | Gemm,
    devices: int,
    splits: Iterable[Split] = SPLITS,
    rows: Sequence[int] | None = None,
    columns: Sequence[int] | None = None,
    data: Sequence[int] | None = None,
    layers: Sequence[int] | None = None,
) -> tuple[KernelPlan, ...]:
    """All plans for these devices with degrees from those given, or from the divisors of `devices`."""
    divisors = tuple(degree for degree in range(1, devices + 1) if devices % degree == 0)
    degrees = (divisors if options is None else options for options in (rows, columns, data, layers))
    plans = (KernelPlan(split, *choice) for split, choice in product(splits, tuple(product(*degrees))))
    return tuple(plan for plan in plans if plan.devices == devices and not broken_rules(workload, plan, devices))
