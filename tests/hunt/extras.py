"""Settings that drawn questions seldom or never have, laid over them at random."""

import re
from collections.abc import Iterable
from contextlib import suppress
from random import Random
from typing import Any

from crossopt.instances.codesign.instance import Portfolio
from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read_again

_LATENT = (
    "layers: 6, hidden: 512, heads: 8, ffn: 1024, vocabulary: 8192, sequence: 512, head_size: 64, "
    "kv_rank: 64, rope_size: 32, value_size: 64, biases: []"
)
_SITES = "groups: 2, bandwidth: 10 Gbit/s, sync_every: [1, 10]"
_STEPS = "quality: [{sync_every: 1, compression: 1, steps: 1}, {steps: 1.2}]"
_SITE_SETTINGS = (
    f"bytes_per_parameter: 4, {_STEPS}",
    f"compression: [0.25, 1], {_STEPS}",
    f"straggler: 0.1, {_STEPS}",
    f"scaling: [{{nodes: 8, share: 0.9}}, {{nodes: 32, share: 0.8}}], {_STEPS}",
    f"fragments: [1, 2], overlap_steps: [0, 1], {_STEPS}",
    "quality: [{sync_every: 10, steps: 1.05, groups: 2, exchange: synchronous, overlap_steps: 0, compression: 1}, {steps: 1.2}]",
)
_SECOND_LINK = "latency: 2 us, setup: 3 us, ring_latency: 9 us"
_BOUGHT = "{device: 30000 USD, node: 9000 USD, lifetime: 4 year, electricity: 0.1 USD/kWh, pue: 1.2}"
_MORE_PRICES = "wafer: 9000 USD, wafer_diameter: 0.3 m, defects_per_square_metre: 900, clustering: 2, stack: 120 USD, package: 900 USD"
_JOINED_PRICES = f"{_MORE_PRICES}, interposer: 1 USD/mm^2, bonding_loss: 0.1, lane: 3 USD"
_PRICED = "prices={electricity: 0.1 USD/kWh, lifetime: 4 year, "
_AREAS = ("compute", "registers", "l1", "l2", "network", "node_network")
_HOST = "cluster.host={memory: 64 GiB, bandwidth: 20 GB/s}"
_CHOICES = (
    *(f"choices.{part}_area=[10 mm^2, 30 mm^2]" for part in _AREAS),
    *(f"choices.{part}_power=[10 W, 30 W]" for part in (*_AREAS, "hbm")),
    *(f"choices.{part}_edge=[0.3, 0.6]" for part in ("hbm", "network", "node_network")),
    "choices.die_area=[600 mm^2, 800 mm^2]",
    "choices.dies=[1, 2]",
    "choices.hbm_stacks=[2, 4]",
    *(f"{_HOST} ; choices.offload=[none, {moved}]" for moved in ("weights", "activations", "optimizer", "weights-optimizer", "all")),
    f"{_HOST} ; choices.offload=[activations-optimizer, weights-activations]",
    *(f"choices.overlap=[none, {hidden}]" for hidden in ("data", "pipeline", "both")),
    *(f"choices.schedule=[1f1b, {schedule}] ; choices.pipeline=[2, 4]" for schedule in ("zero-bubble", "zero-bubble-v", "dualpipe")),
    "choices.tensor_exchange=[exposed, hidden] ; choices.tensor=[2, 4]",
    "choices.expert=[2, 4] ; choices.expert_exchange=[exposed, hidden] ; choices.expert_tensor=[0, 1]",
    "choices.zero=[2, 3] ; choices.shard=[0, 2]",
    "choices.context=[1, 2]",
    "choices.interleave=[1, 2] ; choices.pipeline=[2]",
    "choices.recompute=[none, full] ; choices.recompute_layers=[0, 1]",
    "choices.first_stage_layers=[0, 1] ; choices.pipeline=[2]",
    "choices.last_stage_layers=[0, 1] ; choices.pipeline=[2]",
)
_NETWORKS = (
    f"[{{size: 2, links: node, share: 0.5}}, {{size: 4, links: cluster, {_SECOND_LINK}}}]",
    "[{size: 2, bandwidth: [50 GB/s, 100 GB/s]}, {size: 4, shape: rails, bandwidth: 30 GB/s, reduces: true}]",
    "[{size: divisors, links: node}, {size: divisors, shape: ring, bandwidth: 30 GB/s}]",
    "[{size: 2, links: node}, {size: 2, links: pod, shape: fully_connected}, {size: 2, links: cluster}]",
    "[{size: 2, bandwidth: [50 GB/s, 70 GB/s]}, {size: 4, shape: ring, bandwidth: 20 GB/s}], network_bandwidth: 80 GB/s",
)
_CLUSTERS = (
    "cluster.devices_per_pod=4 ; cluster.pod={bandwidth: 90 GB/s, latency: 4 us, setup: 3 us, ring_latency: 5 us}",
    f"cluster.node={{bandwidth: 200 GB/s, {_SECOND_LINK}}}",
    f"cluster.cluster={{bandwidth: 20 GB/s, {_SECOND_LINK}}}",
    "cluster.node={reduces: true} ; cluster.cluster={bandwidth: 5 GB/s, latency: 5 us, reduces: true}",
    *(f"cluster={{devices: 8, network: {network}}}" for network in _NETWORKS),
    "cluster.host={memory: 64 GiB, bandwidth: 20 GB/s, energy: 9 pJ/bit}",
    "cluster.reserved_memory=1 GiB",
    "cluster.failures={mean_time: 20000 h, checkpoint: 10 s, restart: 5 min}",
    "cluster.devices=[4, 8]",
    "cluster.devices=[4, 8] ; objective=devices ; budget.step_time=60 ms",
    "workload.global_batch=[16, 32] ; objective=time_per_sample",
    "cluster.host={memory: 64 GiB, bandwidth: 20 GB/s, latency: 5 us, shared_by: 4} ; choices.offload=[none, optimizer]",
    "cluster.devices_per_pod=4 ; cluster.pod={bandwidth: 90 GB/s, latency: 4 us, reduces: true}",
    *(f"sites={{{_SITES}, {setting}}} ; objective=mean_step_time" for setting in _SITE_SETTINGS),
    f"sites={{{_SITES}, {_STEPS}}} ; objective=mean_step_time ; budget.mean_step_time=90 ms",
    "sites={groups: 2, bandwidth: 10 Gbit/s, exchange: asynchronous, quality: [{exchange: asynchronous, steps: 1.1}, {steps: 1.2}]} ; "
    "objective=mean_step_time",
)
_TRANSFORMERS = (
    *("head_size=32", "gated=true", "activation=gelu", "activation=clamped-quick-gelu", "activation=usual", "tied=false", "dropout=true"),
    *("learned_positions=true", "biases=[queries-keys-values, projection, feed-forward, router, norms, head]", "expert_ffn=512"),
    *("shared_experts=1", "expert_groups=2", "dense_layers=1", "window=128", "qk_norm=true", "norms=4", "parallel_blocks=true"),
    *("sinks=true", "attention_cap=true", "logit_cap=true", "prediction_layers=1"),
)
_FREE = "hardware=null ; available=null ; chip={technology: accelerator-7nm, choices: {compute_area: %s}}"
_TWO, _SMALL = _FREE % "[300 mm^2, 440 mm^2]", _FREE % "300 mm^2"
_SPLITS = ("", "split: [rows-columns, inner], ", "split: inner, rows: [1, 2], ")
_LSTM = "{layers: 2, hidden: 512, vocabulary: 1000, sequence: 8, gates: 4"
_WORKLOADS = (
    *(f"workload.transformer.{setting}" for setting in _TRANSFORMERS),
    "workload.transformer.expert_groups=2 ; workload.transformer.groups_per_token=1",
    "workload.transformer.window=128 ; workload.transformer.global_layers=2",
    f"workload.transformer={{{_LATENT}}}",
    f"workload.transformer={{{_LATENT}, query_rank: 128}}",
    "workload.transformer.tied=false ; workload.frozen_layers=2",
    *(f"workload.precision={precision}" for precision in ("fp32", "bf16", "fp16")),
    *(f"hardware=b200 ; workload.precision={precision}" for precision in ("fp8", "fp4")),
    *(f"hardware=h100-sxm ; workload.precision=fp8 ; workload.scaling={how}" for how in ("delayed", "tensorwise", "blocks", "rows")),
    *("workload.sequence=256", "workload.attention=unfused", "workload.attention=flash", "workload.dropout=true", "workload.lora_rank=8"),
    *("workload.capacity_factor=1.2", "workload.expert_dispatch=nodes", "workload.expert_dispatch=copies", "workload.gradient_bytes=2"),
    *("workload.gradient_traffic=2", "workload.optimizer_bytes=8", "workload.logit_bytes=4", "workload.logit_peak_bytes=8"),
    *(f"workload={{gemm: {{rows: 2048, depth: 1024, columns: 4096}}}} ; choices={{{split}data: [1, 2, 4, 8]}}" for split in _SPLITS),
    *(f"workload={{lstm: {_LSTM}}}, global_batch: 64}} ; choices={{{split}data: [1, 2, 4, 8]}}" for split in _SPLITS),
)
_OTHERS = (
    *("budget.step_time=60 ms", "budget.die_area=1000 mm^2", "budget.package_area=3000 mm^2", "budget.power=900 W"),
    *("budget.power_density=1 W/mm^2", "budget.reticle=858 mm^2", "budget.time_per_sample=2 ms", "budget.worst_step_time=90 ms"),
    *("budget.energy_per_token=0.01 J", "budget.rated_energy_per_token=0.01 J", "budget.cost_per_token=0.0001 USD"),
    "goal={tokens: 1e9, deadline: 3 d, target: 2 d}",
    "goal={tokens: 1e9, budget: 900 USD, rent: 2 USD, by: slowest}",
    f"goal={{tokens: 1e9, purchase: {_BOUGHT}, by: central}}",
    "goal={tokens: 1e9, rent: 2 USD} ; objective=run_cost",
    "hardware=a100-80g ; goal={tokens: 1e9, rents: {a100-80g: 2.5 USD}}",
    "goal={tokens: 1e9, rent: 2 USD} ; budget.run_cost=900 USD",
    f"{_PRICED}device: 9000 USD}} ; objective=cost_per_token",
    f"{_PRICED}{_MORE_PRICES}}} ; objective=cost_per_token",
    f"{_PRICED}{_JOINED_PRICES}}} ; choices.dies=[1, 2]",
    *("efficiency={overlap_loss: 0.1}", "factors={}", "combine=worst_regret", "combine=weighted_sum"),
    "sets=ranges ; objective=worst_step_time",
    "sets=[{efficiency: {matrix: 0.5}}] ; objective=worst_step_time",
    *(f"objective={name}" for name in ("time_per_sample", "worst_step_time", "rated_energy_per_token", "die_area", "power")),
    *(f"stack={name}" for name in ("megatron-core", "torchtitan", "deepspeed", "fsdp")),
)
EXTRAS: dict[str, tuple[str, ...]] = {
    "codesign": (*_CHOICES, *_CLUSTERS, *_WORKLOADS, *_OTHERS),
    "chain": (
        *("overhead=5 us", "divisible=true", "recompute=full", "recompute=none", "copies=2", "schedule=two-versions", "schedule=flush"),
        *("layers.0.count=2", "layers.1.name=second", "microbatch=[1, 2]", "microbatch={from: 1, to: 4, factor: 2}"),
        "fixed={stages: 2, data: 1, width: 1}",
    ),
    "network": (
        *("part_groups=whole", "part_groups=links", "together=[{dimensions: [d0], at_most: 60 GB/s}]", "workloads.0.collectives.0.count=3"),
        "dimensions.0.tier=null ; dimensions.0.prices={link: 1, switch: 2, nic: 3}",
        "dimensions.0.options=null ; dimensions.0.bandwidth=50 GB/s",
        "dimensions.0.options=null ; dimensions.0.at_least=50 GB/s ; dimensions.0.at_most=50 GB/s",
        "objective=time",
        "dimensions.0.options=null ; dimensions.0.bandwidth=50 GB/s ; objective=time_cost ; budget={at_least: 20 GB/s}",
        "dimensions.0.options={from: 10 GB/s, to: 90 GB/s, step: 40 GB/s}",
    ),
    "collective": (
        *("chunks=[1]", "chunks={from: 1, to: 2, step: 1}", "active_chunks=1", "deadline=900 us"),
        "endpoint={delay: 10 ns, memory: 100 GB/s}",
    ),
    "synthesis": (*("deadline=9", "step=2 us", "chunks=1", "name=other"), "links=null ; root=null ; layout={shape: torus, size: [2, 2]}"),
    "what-if": (
        *("changes.0.kinds=[kernel, copy, collective]", "changes.0.kinds=[host, gap, wait]", "budgets.days=3"),
        *(f"changes.0={{name: c0, transform: cuda-graph, pattern: '*', longest_gap: {gap} ns, days: 1}}" for gap in (3, 9)),
        "changes.0={name: c0, transform: unwait, pattern: '*', days: 1}",
        "changes.0={name: c0, transform: fuse, pattern: '*', factor: 0.7, days: 1}",
        *("budgets.memory=2 GiB", "budgets.money=3 USD", "objective=days ; target=90 ns", "objective=money ; target=90 ns"),
    ),
    "benchmark": (
        *(f"totals=[time, {name}]" for name in ("kernel time", "runs", "bytes")),
        *("kinds=[kernel, copy]", "kinds=[collective, kernel]", "kernels=2", "runs=3"),
    ),
    "pipedream": ("straight=true", "compression=4", "memory=3 MB", "compatible=true"),
    "memory": (
        "block=2 B",
        "repetitions=2",
        "objective=peak",
        "objective=peak ; most_extra_time=9",
        "objective=time",
        "fixed=2 B",
        "nodes.n2.backward=true",
    ),
    "layers": (
        *(
            "training=true",
            "training=true ; optimizer_bytes=8",
            "training=true ; hidden_gradients=0.5",
            "objective=size",
            "objective=energy",
        ),
        *("budget.die_area=700 mm^2", "budget.package_area=3000 mm^2", "budget.power=250 W"),
    ),
    "instances": (
        "objective=latency",
        "objective=throughput",
        "memory_per_instance=2 GiB ; memory=9 GiB",
        "idle_threads=true",
        "sockets=2",
        "work=8e9 ; peak=1 TFLOP/s",
    ),
    "serving": (
        *(f"speculation={{accepted: {accepted}}}" for accepted in ("{1: 1.6}", "{1: 1.8, 3: 2.6}", "{2: 1}")),
        "speculation={accepted: {2: 2.1}, layers: 2}",
        *(
            "choices.data=[1, 2]",
            "choices.data=2 ; choices.tensor=[2, 4]",
            "choices.shapes=one",
            "choices.shapes=any",
            "choices.weights=fp4",
        ),
        f"{_TWO} ; objective=energy",
        f"{_TWO} ; chip.kinds=2 ; objective=devices ; choices.mode=apart",
        *("requests.cached=200", "requests.cached=40 ; requests.input=300", "engine=eager"),
        "requests=null ; classes={short: {input: 300, output: 2, rate: 5, cached: 50}} ; objective=devices",
        "hardware=[h100-sxm, h200] ; available={h100-sxm: 2, h200: 3} ; rent=null ; rents={h100-sxm: 3 USD, h200: 4 USD} ; objective=cost",
        *(
            f"{_SMALL} ; chip.choices.{setting}"
            for setting in (
                *("compute_power=[150 W, 300 W]", "l2_area=[60 mm^2, 77 mm^2]", "dies=[1, 2]"),
                *("network_area=[4 mm^2, 8 mm^2]", "node_network_area=[4 mm^2, 8 mm^2]"),
            )
        ),
        *(
            f"{_TWO} ; chip.budget.{setting}"
            for setting in ("die_area=700 mm^2", "power=500 W", "package_area=3000 mm^2", "reticle=600 mm^2", "power_density=1 W/mm^2")
        ),
    ),
    "accelerator": (
        *(
            "passes=training",
            "copies=2",
            "divisible=true",
            "uniform=true",
            "fixed={stages: 1, data: 1}",
            "fixed={stages: 2, data: 1, tensor: 1}",
        ),
        *("power={chip: 5 W, area: 0.5 W/mm^2}", "prices.lifetime=2 year"),
    ),
    "embeddings": (
        *("training=false", "training=true", "optimizer=sgd", "optimizer=adam", "optimizer=rowwise_adagrad", "optimizer=none"),
        *(f"pipeline={name}" for name in ("none", "train_sparse_dist", "train_prefetch_sparse_dist")),
        *(f"cluster.{name}_bandwidth=90 GB/s" for name in ("hbm", "host", "inter_node", "intra_node", "ssd")),
        "statistics=true ; tables.0.kernel=fused_uvm_caching ; choices.cache=[0.2]",
        *("cluster.reserve=0.1", "cluster.dense=1 MB", "tables.0.batch_fraction=0.5", f"tables.0.reuse=[0.5, 0.5{', 0' * 15}]"),
        *(f"tables.0.dtype={dtype}" for dtype in ("bf16", "fp8", "int8", "int4", "int2")),
        *(
            f"tables.0.kernel={kernel}"
            for kernel in ("dense", "fused", "fused_uvm", "fused_uvm_caching ; choices.cache=[0.2]", "key_value")
        ),
        *(f"tables.0.sharding={name}" for name in ("table", "row", "column", "data", "grid", "table-row", "table-column")),
        *(f"messages={{all_to_all: {a}, all_to_all_backward: {b}, reduce_scatter: 4, all_gather: {a}}}" for a, b in ((1, 2), (2, 4))),
    ),
    "piper": (
        *("without=data", "without=tensor", "without=recompute", "time_unit=ms", "time_unit=s", "microbatches=4", "memory=60 B"),
        *("bandwidth=2 B/s", "devices=3"),
    ),
}
"""Settings by kinds of questions; those that only make sense together stand in one row."""


def extras_of(kind: str, random: Random, most: int) -> list[str]:
    """Up to so many settings, drawn."""
    extras = sorted(EXTRAS.get(kind, ()), key=lambda _: random.random())[:most]
    return extras[: random.choice((0, most // 3, 2 * most // 3, most))]


def with_extras(question: Any, kind: str, extras: Iterable[str]) -> Any:  # noqa: ANN401 - of any kind
    """The question with those of the settings that its reader takes, one after another."""
    if not getattr(question, "document", None) or "text" not in question.document:
        return question
    workload = "workloads.0." if isinstance(question, Portfolio) else "workload."
    for extra in extras:
        settings = [re.sub(r"^workload\.", workload, setting) for setting in extra.split(" ; ")]
        with suppress(InstanceError):
            question = read_again({**question.document, "settings": [*question.document["settings"], *settings]}, kind)
    return question
