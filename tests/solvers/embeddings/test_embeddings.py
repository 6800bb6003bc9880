"""Embedding tables: costs by published figures, every plan of small questions, proofs, drawn tables, and sentences."""

import csv
import json
from dataclasses import replace
from math import fsum, inf, nextafter
from random import Random
from time import monotonic
from typing import Any, get_args

import numpy as np
import pytest

from crossopt.crossflow.embeddings import (
    FULL_BLOCK,
    INDEX,
    NARROWEST_LOOKUP,
    Bandwidths,
    Group,
    Kernel,
    Lookups,
    Misses,
    Sent,
    Sharding,
    buffer_bytes,
    kernel_bandwidth,
    row_shards,
    shard_cost,
    shard_storage,
    state_bytes,
)
from crossopt.formulation.embeddings import places_of, whole
from crossopt.instances.embeddings.options import devices_of
from crossopt.instances.embeddings.question import EmbeddingsQuestion
from crossopt.instances.embeddings.tables import cache_statistics, random_tables, tables_in
from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read_given
from crossopt.reports.sheets.embeddings import plan_document
from crossopt.solvers.answer import Limits, Progress, Result, unwatched
from crossopt.solvers.checking import check_answer, faults_but_proof, solve_and_verify
from crossopt.solvers.embeddings import engines
from crossopt.solvers.embeddings.annealing import balance_phases, height_of
from crossopt.solvers.embeddings.baselines import by_key, greedy_proposals, plan_of
from crossopt.solvers.embeddings.family import FAMILY
from crossopt.solvers.embeddings.judge import BY_PHASES, EmbeddingPlan, TablePlan, judge, prove
from crossopt.solvers.embeddings.local import start_from
from crossopt.solvers.embeddings.prices import by_regions, cheap_small_pieces, cheapest, flat, in_small_pieces, relaxed
from crossopt.solvers.family import certify, incumbent_of
from crossopt.solvers.proofs import PhaseLeaf, PricedCounts, PricedPhases, PricedTiers
from tests.paths import reference
from tests.solvers.embeddings.drawn import drawn

PLAIN = """\
kind: embeddings
tables:
- {name: a, rows: 100, dimension: 64}
- {name: b, rows: 100, dimension: 64}
- {name: c, rows: 100, dimension: 64}
cluster: {devices: 2, hbm: 2 MiB, ddr: 0 B, ssd: 0 B}
choices: {sharding: [table, row], kernel: [fused]}
"""
RATES = Bandwidths(963146416.128, 34359738.368, 104857.6, 644245094.4, 13421772.8)
NAMES: dict[str, Sharding] = {
    "data_parallel": "data",
    "table_wise": "table",
    "column_wise": "column",
    "table_column_wise": "table-column",
    "row_wise": "row",
    "table_row_wise": "table-row",
    "grid_shard": "grid",
}


def ask(text: str) -> EmbeddingsQuestion:
    question: EmbeddingsQuestion = read_given(text, "embeddings")
    return question


def solved(question: EmbeddingsQuestion, seconds: float = inf) -> Result[Any, Any]:
    return solve_and_verify(FAMILY, question, "auto", Limits(seconds=seconds), unwatched)


def off(found: float, expected: float) -> float:
    return abs(found - expected) / abs(expected) if expected else abs(found)


def as_kernel(name: str) -> Kernel:
    assert name in get_args(Kernel)
    return name  # type: ignore[return-value]


GOLDEN = [
    ("data", "dense", (9.356002212235228e-05, 0.0, 0.00018712004424470456, 0.000225593945387348)),
    ("table", "fused", (0.000327460077428233, 6.357828776041667e-05, 0.000654920154856466, 6.357828776041667e-05)),
    ("table", "fused_uvm", (0.09179115295410156, 6.357828776041667e-05, 0.18358230590820312, 6.357828776041667e-05)),
    ("table", "fused_uvm_caching", (0.01432837509527439, 6.357828776041667e-05, 0.02865675019054878, 6.357828776041667e-05)),
    ("row", "fused", (6.804365245261984e-05, 6.357828776041667e-05, 0.0001360873049052397, 0.00016798276699240525)),
    ("row", "fused_uvm", (0.019073486328125, 6.357828776041667e-05, 0.03814697265625, 0.029329458872477215)),
    ("row", "fused_uvm_caching", (0.0029773246951219513, 6.357828776041667e-05, 0.0059546493902439025, 0.004631910866838161)),
]
"""Published in TorchRec's tests: one table of 100 x 10 in fp32 on two devices, 512 samples each."""


@pytest.mark.parametrize(("sharding", "kernel", "expected"), GOLDEN)
def test_a_shard_costs_what_torchrec_publishes(sharding: Sharding, kernel: Kernel, expected: tuple[float, ...]) -> None:
    cost = shard_cost(Lookups(100, 10, 1.0, 1.0, 4), sharding, kernel, 10, Group(2, 2, 512, RATES), Sent((4, 4), (4, 4)))
    assert all(off(one, other) <= 1e-15 for one, other in zip(cost.figures, (*expected, 0.0), strict=True))


@pytest.mark.data
def test_all_published_costs() -> None:
    data = json.loads((reference("embeddings") / "torchrec_golden.json").read_text())
    for setting, kernel, sharding, shards, *expected in [*data["shard_cost"], *data["total_cost"]]:
        given = data["settings"][setting]
        rates = replace(RATES, intra=given.get("intra_node_bandwidth", RATES.intra), inter=given.get("inter_node_bandwidth", RATES.inter))
        width = given["bytes_per_element"]
        table = Lookups(given["rows"], given["dimension"], given["pooling"], 1.0, width, given["weighted"], given["pooled"])
        group = Group(given["devices"], given["devices_per_node"], given["batch_per_device"], rates, setting != "inference")
        wide, scattered = given.get("all_to_all_bytes", width), given.get("reduce_scatter_bytes", width)
        cost = shard_cost(table, NAMES[sharding], as_kernel(kernel), table.dimension, group, Sent((wide, wide), (scattered, scattered)))
        if len(expected) == 1:
            assert off(sum(cost.figures), expected[0]) <= 1e-15, (setting, kernel, sharding, shards)
        else:
            assert all(off(one, other) <= 1e-15 for one, other in zip((*cost.figures[:4], cost.input_message), expected, strict=True))
    given = data["settings"]["prefetch"]
    misses = Misses(given["miss_rate"], given["unique_lookups"])
    for kernel, sharding, _, expected in data["prefetch_compute"]:
        table, group = Lookups(given["rows"], given["dimension"], 1.0, 1.0, 4), Group(2, 2, 512, RATES)
        cost = shard_cost(table, NAMES[sharding], as_kernel(kernel), 10, group, Sent((4, 4), (4, 4)), given["cache_ratio"], misses)
        assert off(cost.prefetch, expected) <= 1e-15
    for name, speed in data["kernel_bandwidth"].items():
        if isinstance(speed, dict):
            assert all(kernel_bandwidth(as_kernel(name), RATES, float(share)) == one for share, one in speed.items())
        elif not isinstance(speed, str) and not name.endswith("pipeline"):
            assert kernel_bandwidth(as_kernel(name), RATES) == speed


@pytest.mark.data
def test_published_constants() -> None:
    data = json.loads((reference("embeddings") / "torchrec_golden.json").read_text())
    known, cluster = data["constants"], ask(PLAIN.replace("{devices: 2, hbm: 2 MiB, ddr: 0 B, ssd: 0 B}", "{devices: 2}")).file.cluster
    rates = (RATES.hbm, RATES.host, RATES.ssd, RATES.intra, RATES.inter)
    names = ("hbm_bandwidth", "hbm_to_ddr_bandwidth", "ssd_bandwidth", "intra_node_bandwidth", "inter_node_bandwidth")
    own = (cluster.hbm_bandwidth, cluster.host_bandwidth, cluster.ssd_bandwidth, cluster.intra_node_bandwidth, cluster.inter_node_bandwidth)
    for rate, usual, name in zip(rates, own, names, strict=True):
        assert rate == known[name]
        assert off(usual / 1000.0, known[name]) <= 1e-15, name
    assert (FULL_BLOCK, NARROWEST_LOOKUP, INDEX, cluster.ssd) == (
        known["full_block_dimension"],
        known["smallest_lookup_dimension"],
        known["index_bytes"],
        known["ssd_bytes"],
    )


@pytest.mark.data
def test_all_recomputed_costs() -> None:
    with (reference("embeddings") / "torchrec_recomputed.csv").open() as file:
        for row in csv.DictReader(file):
            x = {key: float(value) for key, value in row.items() if key not in {"id", "kernel", "sharding"} and value}
            table = Lookups(int(x["rows"]), int(x["dimension"]), x["pooling"], x["poolings"], x["bytes_per_element"])
            table = replace(table, weighted=bool(x["weighted"]), pooled=bool(x["pooled"]))
            group = Group(int(x["devices"]), int(x["devices_per_node"]), int(x["batch"]), RATES, prefetching=bool(x["prefetch_pipeline"]))
            sent = Sent((x["fwd_a2a_bytes"], x["bwd_a2a_bytes"]), (x["fwd_rs_bytes"], x["bwd_rs_bytes"]))
            misses = Misses(x["miss_rate"], x["unique_lookups"]) if "miss_rate" in x else None
            kernel, sharding = as_kernel(row["kernel"]), NAMES[row["sharding"]]
            cost = shard_cost(table, sharding, kernel, int(x["shard_columns"]), group, sent, x.get("cache_ratio", 0.2), misses)
            names = ("fwd_compute", "fwd_comms", "bwd_compute", "bwd_comms", "prefetch_compute", "input_dist_comms")
            assert all(off(one, x[name]) <= 1e-15 for one, name in zip((*cost.figures, cost.input_message), names, strict=True)), row["id"]


@pytest.mark.data
def test_published_bytes() -> None:
    for case in json.loads((reference("embeddings") / "torchrec_golden.json").read_text())["storage"]:
        if "shards" in case:
            optimizer = {"SGD": "sgd", None: "none", "rowwise Adagrad": "rowwise_adagrad"}[case["optimizer"]]
            copied = case["sharding"] == "data_parallel"
            own = [
                state_bytes(case["storage"], case["shape"], shard, optimizer, case["cache_ratio"], copied)  # type: ignore[arg-type]
                for shard in case["shards"]
            ]
            assert own == case["expect"]
        elif "input_bytes" in case:
            passes = 10 if "passes" in case["table"] else None
            for at_peak in (False, True):
                held = buffer_bytes(case["pipeline"], case["input_bytes"], case["output_bytes"], case["table"] != "in HBM", at_peak, passes)
                assert held == case["expect"]["embedding_at_peak" if at_peak else "embedding_not_at_peak"]
        elif case["what"] == "rows of each shard":
            assert list(row_shards(case["rows"], case["devices"])) == case["expect"]
        elif "batch_per_device" in case:
            table = Lookups(case["rows"], case["dimension"], 1.0, 1.0, case["bytes_per_element"])
            group = Group(case["devices"], case["devices"], case["batch_per_device"], RATES)
            assert shard_storage(table, "table", "fused", case["rows"], case["dimension"], group, "none").hbm == case["expect"]


def test_rows_are_cut_in_equal_blocks_of_which_the_last_may_be_empty() -> None:
    assert row_shards(1000, 2) == (500, 500)
    assert row_shards(10, 4) == (3, 3, 3, 1)
    assert row_shards(9, 8) == (2, 2, 2, 2, 1, 0, 0, 0)


# Every plan.


def least_of_all(question: EmbeddingsQuestion) -> float:
    """The least value of every plan, by sums in floating point; the judge says what those near the least take."""
    group = question.group
    if question.file.objective == "fewest_devices":
        most = 1e300 if question.within is None else question.within
        return next((float(devices) for devices in question.counts if least_of_all(question.on(devices)) <= most), inf)
    tables = list[list[tuple[TablePlan, Any, Any]]]()
    for kind in question.types:
        own = list[tuple[TablePlan, Any, Any]]()
        for option in question.options[kind]:
            for places in places_of(option, group.devices, group.per_node):
                loads, memory = np.zeros((group.devices, len(option.figures))), np.zeros((group.devices, 3))
                for device in devices_of(option.spread, places, group.per_node, group.devices):
                    loads[device] += option.figures
                    memory[device] += option.memory
                own.append((TablePlan(option.option, places), loads, memory))
        tables.append(own)
    if not all(tables):
        return inf
    loads, memory = np.zeros((1, group.devices, len(tables[0][0][1][0]))), np.zeros((1, group.devices, 3))
    chosen = np.zeros((1, 0), int)
    for own in tables:
        count, each = len(loads), len(own)
        loads = (loads[:, None] + np.array([one for _, one, _ in own])[None]).reshape(count * each, *loads.shape[1:])
        memory = (memory[:, None] + np.array([one for _, _, one in own])[None]).reshape(count * each, *memory.shape[1:])
        chosen = np.concatenate([np.repeat(chosen, each, axis=0), np.tile(np.arange(each), count)[:, None]], axis=1)
        fits = (memory <= np.array(question.capacity)).all(axis=(1, 2))
        loads, memory, chosen = loads[fits], memory[fits], chosen[fits]
    if not len(loads):
        return inf
    values = loads.max(axis=1).sum(axis=1) if question.file.objective == "step" else loads.sum(axis=2).max(axis=1)
    near = np.flatnonzero(values <= values.min() * (1.0 + 1e-12))[:200]
    plans = [EmbeddingPlan(tuple(own[place][0] for own, place in zip(tables, chosen[one], strict=True))) for one in near]
    verdicts = [judge(question, plan) for plan in plans]
    assert all(verdict.accepted for verdict in verdicts)
    return min(float(verdict.value) for verdict in verdicts)


def ways_of(question: EmbeddingsQuestion) -> int:
    count, group = 1, question.group
    for kind in question.types:
        count *= sum(sum(1 for _ in places_of(option, group.devices, group.per_node)) for option in question.options[kind])
    return count


def _as_every_plan(seeds: range) -> int:
    """Compare the engine with every plan; how many questions were small enough."""
    compared = 0
    for seed in seeds:
        question = drawn(seed)
        if ways_of(question) > 1_500_000:
            continue
        compared += 1
        result, least = solved(question), least_of_all(question)
        assert (result.value if result.value is not None else inf) == least, seed
        assert result.status == ("INFEASIBLE" if least == inf else "OPTIMAL"), seed
        assert check_answer(FAMILY, result, question).accepted, seed
    return compared


def test_small_questions_as_by_a_look_at_every_plan() -> None:
    assert _as_every_plan(range(12)) >= 9


@pytest.mark.thorough
def test_500_small_questions_as_by_a_look_at_every_plan() -> None:
    assert _as_every_plan(range(12, 612)) >= 500


# Proofs, and what may never happen.


def test_a_third_table_is_cut_by_rows_where_two_fit() -> None:
    question = ask(PLAIN.replace("2 MiB", "0.58 MB"))
    result = solved(question)
    assert result.status == "OPTIMAL"
    assert sorted(held.option.sharding for held in result.answer.tables).count("row") >= 1


def test_edits_of_a_proof_are_refused() -> None:
    question = ask(PLAIN)
    result = solved(question)
    assert check_answer(FAMILY, result, question).accepted
    proof = result.proof
    assert isinstance(proof, PricedTiers)
    assert result.bound is not None
    for forged in (
        replace(proof, prices=(float("nan"), 0.0, 0.0)),
        replace(proof, prices=(-1.0, 0.0, 0.0)),
        replace(proof, prices=(0.0,)),
        replace(proof, nodes=-1),
        replace(proof, nodes=10**9),
        replace(proof, prices=(1.0, 0.0, 0.0), limit=None, nodes=0),
        replace(proof, weights=((0, 0, -1),), nodes=0),
        replace(proof, weights=((0, 0, 1 << 21),), nodes=0),
        replace(proof, weights=((0, 0, 1 << 20), (0, 0, 1)), nodes=0),
        replace(proof, weights=((0, 3, 1),), nodes=0),
        replace(proof, weights=((1, 0, 1),), nodes=0),
    ):
        assert not check_answer(FAMILY, replace(result, proof=forged), question).accepted, forged


STEPS = """\
kind: embeddings
tables: {count: 40, seed: 3}
cluster: {devices: 16}
objective: step
"""


def test_regions_of_phases_bound_more_than_prices_alone_and_edits_are_refused() -> None:
    question = ask(STEPS)
    ways = flat(whole(question))
    prices = np.zeros(3)
    result = solve_and_verify(FAMILY, question, "local", Limits(seconds=2.0), unwatched)
    loose = relaxed(ways, None, 60.0, prices)
    assert loose is not None
    regions = by_regions(ways, loose, float(result.value or inf), 60.0)
    assert regions is not None
    assert regions.bound > 1.01 * (loose.priced.bound or 0.0)
    leaves = tuple(PhaseLeaf((0.0, 0.0, 0.0), own.weights, own.floors) for own in regions.leaves)
    leaves = tuple(
        replace(leaf, prices=tuple(float(price) for price in own.prices)) for leaf, own in zip(leaves, regions.leaves, strict=True)
    )
    proof = PricedPhases(BY_PHASES, regions.cuts, leaves)
    shown = replace(result, proof=proof, bound=min(regions.bound, float(result.value or inf)))
    assert prove(question, shown, unwatched).refused == ()
    first = proof.cuts[0]
    assert first is not None
    for forged in (
        replace(proof, cuts=(None,), leaves=leaves[:1]),
        replace(proof, cuts=proof.cuts[:-1]),
        replace(proof, leaves=leaves[:-1]),
        replace(proof, leaves=(*leaves, leaves[0])),
        replace(proof, leaves=(replace(leaves[0], floors=()), *leaves[1:])),
        replace(proof, leaves=(replace(leaves[0], floors=(-1,) * 5), *leaves[1:])),
        replace(proof, leaves=tuple(replace(leaf, floors=(1 << 20,) * 5, weights=((0, 0, 1),)) for leaf in leaves)),
        replace(proof, leaves=(replace(leaves[0], prices=(-1.0, 0.0, 0.0)), *leaves[1:])),
        replace(proof, cuts=((0, float("nan")), *proof.cuts[1:])),
        replace(proof, cuts=((7, first[1]), *proof.cuts[1:])),
        replace(proof, cuts=((first[0], 1e-6 * first[1]), *proof.cuts[1:])),
    ):
        assert prove(question, replace(shown, proof=forged), unwatched).refused, forged
    assert prove(question, replace(shown, bound=1.001 * regions.bound), unwatched).refused


@pytest.mark.parametrize("memory", ["", ", hbm: 3 GiB, ddr: 4 GiB"])
def test_annealing_lowers_the_sum_of_all_phases_and_keeps_count_of_devices(memory: str) -> None:
    question = ask(STEPS.replace("devices: 16", f"devices: 16, devices_per_node: 4{memory}"))
    ways = flat(whole(question))
    loose = relaxed(ways, None, 60.0, np.zeros(3))
    assert loose is not None
    small = in_small_pieces(ways, loose, 60.0)
    assert small is not None
    cheap, slowest = cheap_small_pieces(ways, np.zeros(3), 1.0)
    assert (loose.priced.bound or inf) <= slowest.sum()
    for own in (loose.ways[0], small.ways[0], cheap):
        start = start_from(ways.form, own, 1.0)
        lower = 0.99 * float(start.loads.max(axis=0).sum())
        found = balance_phases(start, loose.slowest, lower, monotonic() + 20.0, 60.0, Random(1), lambda plan: None)
        verdict = judge(question, plan_of(question, found.held()))
        assert verdict.accepted
        assert off(height_of(found), float(verdict.value)) <= 1e-12
        assert (loose.priced.bound or inf) <= float(verdict.value) <= lower


def test_without_its_relaxation_a_step_begins_from_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    question = ask(STEPS.replace("count: 40", "count: 300").replace("devices: 16", "devices: 32"))
    monkeypatch.setattr(engines, "relaxed", lambda *given: None)
    monkeypatch.setattr(engines, "balance_phases", lambda plan, *given: plan)
    ((_, value, bound),) = engines.local(question, Limits(seconds=20.0, gap=0.2), unwatched).trace
    ways = flat(whole(question))
    cheapest_ways = [ways.ways[own] for own in cheapest(ways, np.zeros(3), np.ones(len(ways.ways), bool))[list(ways.form.types)]]
    assert (bound or inf) < (value or inf) < 0.85 * height_of(start_from(ways.form, cheapest_ways, 1.0))


def _regions_stay_below_every_plan(seeds: range) -> int:
    """Bounds by regions, from values that are too high and too low, beside the least of all plans; how many have regions."""
    compared = 0
    for seed in seeds:
        question = drawn(seed)
        form = whole(question)
        if question.file.objective != "step" or ways_of(question) > 200_000 or not all(form.ways):
            continue
        ways, least = flat(form), least_of_all(question)
        loose = relaxed(ways, None, 60.0, np.zeros(3))
        for value in (1.3, 1.01) if loose is not None and least < inf else ():
            assert loose is not None
            regions = by_regions(ways, loose, value * least, 60.0)
            compared += regions is not None
            assert regions is None or regions.bound <= least, seed
    return compared


def test_bounds_by_regions_stay_below_every_plan() -> None:
    assert _regions_stay_below_every_plan(range(12)) >= 2


@pytest.mark.thorough
def test_100_bounds_by_regions_stay_below_every_plan() -> None:
    assert _regions_stay_below_every_plan(range(12, 212)) >= 40


def test_edits_of_a_proof_of_the_fewest_devices_are_refused() -> None:
    text = PLAIN.replace("hbm: 2 MiB", "hbm: 0.45 MB").replace("kind: embeddings", "kind: embeddings\nobjective: fewest_devices")
    question = ask(text.replace("devices: 2,", "devices: 4,"))
    result = solved(question)
    assert (result.status, result.value, len(result.answer.tables)) == ("OPTIMAL", 3, 3)
    assert check_answer(FAMILY, result, question).accepted
    proof = result.proof
    assert isinstance(proof, PricedCounts)
    first, second = proof.tiers
    for bound, forged in (
        (3, replace(proof, tiers=())),
        (3, replace(proof, tiers=(first,))),
        (4, replace(proof, tiers=(first, second, second))),
        (3, replace(proof, tiers=(replace(first, prices=(0.0, 0.0, 0.0)), second))),
        (3, replace(proof, tiers=(first, second) * 3)),
        (3, replace(proof, tiers=(first, replace(second, by="all plans")))),
        (3, first),
    ):
        assert not check_answer(FAMILY, replace(result, proof=forged, bound=bound), question).accepted, forged
    for devices in (None, 2, 4, 5):
        assert not check_answer(FAMILY, replace(result, answer=replace(result.answer, devices=devices)), question).accepted
    assert plan_document(question, result)["world_size"] == 3
    late = ask(text.replace("kind: embeddings", "kind: embeddings\nwithin: 0.0001 ms"))
    assert solved(late).status == "INFEASIBLE"
    assert check_answer(FAMILY, solved(late), late).accepted


ONE_TABLE = """
kind: embeddings
objective: fewest_devices
tables:
- {name: a, rows: 80000, dimension: 64, pooling: 0.5, pooled: false, dtype: fp16}
cluster: {devices: 1, hbm: 268 MB, ddr: 10 MB, ssd: 0 B}
choices: {sharding: [table], kernel: [fused]}
batch: 128
"""


def test_a_limit_on_the_time_may_be_what_the_plan_takes_and_a_sum_that_rounds_down_to_it_is_found() -> None:
    other = ONE_TABLE.replace("pooled: false, dtype: fp16", "pooling: 3").replace("pooling: 0.5, ", "").replace("80000", "100")
    for text in (ONE_TABLE, other, *(other.replace("batch: 128", f"batch: {batch}") for batch in (3, 16, 50))):
        slowest = solved(ask(text)).details.slowest
        question = ask(f"{text}within: {slowest!r} ms\n")
        result = solved(question)
        assert (result.status, result.value, result.details.slowest) == ("OPTIMAL", 1, slowest)
        assert check_answer(FAMILY, result, question).accepted
        assert solved(ask(f"{text}within: {nextafter(slowest, 0.0)!r} ms\n")).status == "INFEASIBLE"


def test_a_share_of_memory_is_kept_back_to_the_byte() -> None:
    assert ask(ONE_TABLE.replace("hbm: 268 MB", "hbm: 10 MB, reserve: 0.9")).capacity[0] == 1_000_000


SIZES = (83, 87, 73, 79, 68, 78, 73, 66, 59, 118, 77, 87, 53)
"""Thousands of rows of tables that lack no memory on four devices, but some device is always too full."""
TIGHT = (
    "kind: embeddings\nobjective: fewest_devices\ntables:\n"
    + "".join(f"- {{name: t{number}, rows: {rows}000, dimension: 256, pooling: 1}}\n" for number, rows in enumerate(SIZES))
    + "cluster: {devices: 6, devices_per_node: 6, hbm: 267 MB, ddr: 0 B, ssd: 0 B}\nchoices: {sharding: [table], kernel: [fused]}\n"
)


def test_an_undecided_number_of_devices_is_taken_up_again_after_a_larger_one_has_a_plan() -> None:
    question = ask(TIGHT)
    result = solved(question, 5.0)
    assert (result.status, result.value, result.stopped) == ("OPTIMAL", 5, "complete")
    assert check_answer(FAMILY, result, question).accepted
    assert isinstance(result.proof, PricedCounts)
    assert result.proof.tiers[-1].nodes > 2_000


@pytest.mark.parametrize("again", ["decided", "interrupted", "undecided"])
def test_a_try_without_a_decision_is_not_final(again: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PLAIN.replace("kind: embeddings", "kind: embeddings\nobjective: fewest_devices")
    question, real, tried = ask(text.replace("devices: 2,", "devices: 4,")), engines._on_devices, list[int]()

    def first_in_vain(question: EmbeddingsQuestion, *given: *tuple[float | None, float, int, int]) -> tuple[object, object]:
        devices = question.group.devices
        tried.append(devices)
        if devices < 4 and (again == "undecided" or tried.count(devices) == 1):
            return None, None
        if again == "interrupted" and tried.count(devices) > 1:
            raise KeyboardInterrupt
        return real(question, *given)

    monkeypatch.setattr(engines, "_on_devices", first_in_vain)
    result = solved(question, 0.5 if again == "undecided" else inf)
    expected = {"decided": (1, 1, "complete"), "interrupted": (4, 1, "interrupted"), "undecided": (4, 1, "time limit")}[again]
    assert (result.value, result.bound, result.stopped) == expected
    assert tried[:5] == [1, 2, 3, 4, 1]
    assert check_answer(FAMILY, result, question).accepted


def test_more_memory_and_bandwidth_are_never_worse() -> None:
    base = PLAIN.replace("choices: {sharding: [table, row], kernel: [fused]}\n", "").replace("ddr: 0 B", "ddr: 1 GiB")
    for key, values in (("hbm", ("0.3 MB", "0.6 MB", "4 MB")), ("inter_node_bandwidth", ("1 GB/s", "99 GB/s"))):
        text = base.replace("hbm: 2 MiB, ", "").replace("devices: 2,", "devices: 2, devices_per_node: 1,")
        found = [solved(ask(text.replace("ssd: 0 B", f"ssd: 0 B, {key}: {value}"))).value or inf for value in values]
        assert found == sorted(found, reverse=True)


def test_reasons_name_the_largest_table_or_the_sum() -> None:
    large = ask(PLAIN.replace("rows: 100, ", "rows: 100000, ", 1).replace("[table, row]", "[table]"))
    result = solved(large)
    assert result.status == "INFEASIBLE"
    assert "the table a takes 25.05 MiB of HBM, more than a device has: allow row or column" in result.reasons[0]
    assert check_answer(FAMILY, result, large).accepted
    own = ask(PLAIN.replace("rows: 100, dimension: 64", "rows: 100000, dimension: 64, sharding: [table]", 1))
    assert "more than a device has: allow row or column" in solved(own).reasons[0]
    summed = solved(ask(PLAIN.replace("2 MiB", "0.3 MiB")))
    assert summed.status == "INFEASIBLE"
    assert "2 devices have" in summed.reasons[0]


@pytest.mark.data
@pytest.mark.parametrize("number", range(7))
def test_tables_whole_on_one_device_as_well_as_known(number: int) -> None:
    folder = reference("embeddings")
    known = json.loads((folder / "tables_expected.json").read_text())["results"][number]
    text = (folder / f"{known['instance']}.json").read_text()
    tables = tables_in(text, "tables").tables
    lines = [
        f"- {{name: {one.name}, rows: {one.rows}, dimension: {one.dimension}, pooling: {one.pooling}, batch_fraction: {one.fraction}, "
        f"dtype: {one.dtype}, weighted: {str(one.weighted).lower()}, pooled: {str(one.pooled).lower()}}}"
        for one in tables
    ]
    cluster = f"{{devices: {known['devices']}, hbm: {known['hbm_bytes']} B}}"
    choices = "{sharding: [table], kernel: [fused]}"
    question = ask("\n".join(["kind: embeddings", f"cluster: {cluster}", f"choices: {choices}", "tables:", *lines]) + "\n")
    result = solved(question, 8.0)
    if known["status"] == "infeasible":
        assert result.status == "INFEASIBLE"
        return
    assert sum(options[0].memory[0] for options in (question.options[kind] for kind in question.types)) == known["memory_bytes"]
    loads = [options[0].time for options in (question.options[kind] for kind in question.types)]
    assert off(fsum(loads) / known["devices"], known["mean_load_ms"]) <= 1e-14
    assert off(max(loads), known["largest_load_ms"]) <= 1e-15
    assert result.value is not None
    assert result.bound is not None
    assert result.gap is not None
    assert off(result.bound, known["bound_ms"]) <= 1e-14
    assert result.gap <= 1e-3


@pytest.mark.data
def test_drawn_tables_are_those_of_the_data() -> None:
    for count, seed in ((24, 20261124), (80, 20261180)):
        text = (reference("embeddings") / f"tables_{count}.json").read_text()
        assert tables_in(text, "tables").tables == random_tables(count, seed)


def test_a_larger_cache_misses_less() -> None:
    table = random_tables(5, 1)[3]
    rates = [cache_statistics(table, 100_000.0, share)[0] for share in (0.0, 0.1, 0.5, 1.0)]
    assert rates[0] == 1.0
    assert rates == sorted(rates, reverse=True)
    assert cache_statistics(table, 1e12, 0.2)[1] == table.rows


def test_columns_on_ssd_and_those_of_a_grid_lie_apart() -> None:
    text = PLAIN.replace("[table, row], kernel: [fused]", "[column, grid], kernel: [fused, key_value], columns: [2], narrowest: 8")
    question = ask(text.replace("devices: 2,", "devices: 4, devices_per_node: 2,").replace("ssd: 0 B", "ssd: 1 GB"))
    offered = {(option.option.sharding, option.option.kernel): option for option in question.options[0]}
    apart = {("column", "key_value"): (0, 0), ("grid", "fused"): (1, 1), ("grid", "key_value"): (0, 0)}
    for form, places in (*apart.items(), (("column", "fused"), (3, 3))):
        assert offered[form].distinct == (form in apart)
        plan = EmbeddingPlan((TablePlan(offered[form].option, places),) * 3)
        if form in apart:
            with pytest.raises(ValueError, match="two of its pieces are on one"):
                judge(question, plan)
        else:
            assert judge(question, plan).details is not None
    with pytest.raises(InstanceError, match="no sharding and kernel is left"):
        ask(text.replace("columns: [2]", "columns: [8], distinct: true").replace("[column, grid]", "[column]"))


# Baselines and integer models.


@pytest.mark.data
@pytest.mark.parametrize("number", range(6))
def test_greedy_rules_as_published(number: int) -> None:
    known = json.loads((reference("embeddings") / "tables_expected.json").read_text())["results"][number]
    count = int(known["instance"].rpartition("_")[2])
    seed = {24: 20261124, 80: 20261180, 856: 20261956}[count]
    cluster = f"{{devices: {known['devices']}, devices_per_node: {min(8, known['devices'])}, hbm: {known['hbm_bytes']} B}}"
    choices = "{sharding: [table], kernel: [fused]}"
    question = ask(f"kind: embeddings\ntables: {{count: {count}, seed: {seed}}}\ncluster: {cluster}\nchoices: {choices}\n")
    for key, expected in known["greedy_ms"].items():
        plan = by_key(question, {"lookup": "lookups"}.get(key, key))
        assert (plan is None) == (expected is None)
        assert plan is None or off(float(judge(question, plan).value), expected) <= 1e-14


def test_baselines_are_plans_and_none_is_below_the_bound() -> None:
    question = ask(PLAIN.replace("choices: {sharding: [table, row], kernel: [fused]}\n", "").replace("ddr: 0 B", "ddr: 1 GiB"))
    result = solved(question)
    names = [one.name for one in result.baselines]
    assert {"TorchRec greedy", "TorchRec uniform", "TorchRec grid", "TorchRec dynamic programming", "greedy by size"} <= set(names)
    assert result.bound is not None
    assert all(one.value is None or one.value >= result.bound for one in result.baselines)
    own = {one.name: one for one in result.baselines}
    exchanged = replace(own["TorchRec greedy"], name="greedy by size")
    for edited in (result.baselines[:-1], tuple(exchanged if one.name == exchanged.name else one for one in result.baselines)):
        assert edited != result.baselines
        (fault,) = faults_but_proof(FAMILY, replace(result, baselines=edited), question)
        assert fault.startswith("baselines: greedy by size ") and " follow by rule, and here are greedy by " in fault


def test_the_greedy_proposer_takes_the_table_that_stores_most_next() -> None:
    text = PLAIN.replace("rows: 100, dimension: 64", "rows: 100, dimension: 10").replace("- {name: c, rows: 100, dimension: 10}\n", "")
    question = ask(text.replace("[table, row], kernel: [fused]", "[row, table-row, data], kernel: [fused, dense]"))
    shardings = [option.option.sharding for option in question.options[0]]
    found = [tuple(shardings[index] for index in proposal) for proposal in greedy_proposals(question)]
    assert found[:3] == [("row", "row"), ("table-row", "row"), ("data", "row")]


@pytest.mark.parametrize("name", ["baselines", "improve"])
def test_an_answer_that_is_cut_off_keeps_its_bound(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    question, real = ask(STEPS.replace("step", "slowest_device").replace("40", "12").replace("16", "4")), getattr(engines, name)

    def interrupted(*given: object) -> None:
        if name == "improve":
            real(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(engines, name, interrupted)
    engine = "local" if name == "improve" else "auto"
    result = solve_and_verify(FAMILY, question, engine, Limits(seconds=4.0), unwatched)
    assert result.value is not None
    assert result.bound is not None
    assert check_answer(FAMILY, result, question).accepted


@pytest.mark.parametrize("objective", ["step", "slowest_device"])
def test_every_plan_on_the_way_has_a_bound_that_is_accepted(objective: str) -> None:
    """What a search that is ended where it hears nothing leaves behind."""
    question, seen = ask(STEPS.replace("step", objective)), list[Progress]()
    engines.local(question, Limits(seconds=1.0), seen.append)
    assert seen
    for progress in (seen[0], seen[-1]):
        found = incumbent_of(progress, "local", "interrupted")
        result = certify(FAMILY, question, found, Limits(), 0.0)
        assert 0.0 < (result.bound or 0.0) <= (result.value or 0.0)
        assert check_answer(FAMILY, result, question).accepted
        assert not check_answer(FAMILY, replace(result, bound=1.01 * (result.bound or 0.0)), question).accepted


@pytest.mark.parametrize("engine", ["cpsat", "highs"])
def test_integer_models_have_the_same_optimum(engine: str) -> None:
    for seed in (2,):
        question = drawn(seed)
        mine, other = solved(question), solve_and_verify(FAMILY, question, engine, Limits(seconds=90.0), unwatched)
        assert other.value == mine.value
        assert (other.bound is None) == (mine.bound is None)


# Files and faults.

FORMS = (
    '[{"name": "a", "num_embeddings": 10, "embedding_dim": 8, "feature_names": ["f", "g"], "data_type": "FP16", "pooling": "SUM"}]',
    '{"tables": [{"name": "a", "row": 10, "dim": 8, "pooling_factor": 1.0, "batch_fraction": 2, "dtype": "fp16"}]}',
    "name,rows,dimension,pooling,batch_fraction,dtype\na,10,8,1,2,fp16\n",
    '{"columns": ["name", "rows", "dimension", "batch_fraction", "dtype"], "tables": [["a", 10, 8, 2, "fp16"]]}',
    '{"tables": {"a": {"hash_size": 10, "dimension": 8, "batch_fraction": 2, "dtype": "fp16"}}}',
)


@pytest.mark.parametrize("text", FORMS)
def test_lists_of_several_tools_are_one_table(text: str) -> None:
    assert tables_in(text, "tables").tables == tables_in(FORMS[2], "tables").tables


CONFIGURATION = {
    "num_embeddings": 10, "embedding_dim": 8, "name": "a", "data_type": "FP16", "feature_names": ["f", "g"], "weight_init_max": None,
    "init_fn": "functools.partial(<function uniform_>)", "need_pos": False, "input_dim": None, "use_virtual_table": False,
}  # fmt: skip
CONSTRAINT = {
    "sharding_types": ["table_wise", "row_wise"], "compute_kernels": ["fused"], "pooling_factors": [3.0, 5.0], "num_poolings": [1.0, 0.5],
    "is_weighted": True, "min_partition": None, "cache_params": None,
}  # fmt: skip


def test_configurations_and_constraints_of_torchrec_are_read() -> None:
    bag = {**CONFIGURATION, "pooling": "PoolingType.SUM"}
    text = json.dumps({"tables": [bag], "constraints": {"a": CONSTRAINT}})
    table = tables_in(text, "tables").tables[0]
    assert (table.name, table.rows, table.dimension, table.dtype) == ("a", 10, 8, "fp16")
    assert (table.weighted, table.pooled, table.sharding, table.kernel) == (True, True, ("table", "row"), ("fused",))
    assert (table.pooling * table.fraction, table.fraction) == (3.0 + 0.5 * 5.0, 1.5)
    assert not tables_in(json.dumps([CONFIGURATION]), "tables").tables[0].pooled


STRANGE = (
    ({"min_partition": 64}, "min_partition: this is not taken over (say `choices: {narrowest: N}`)"),
    ({"sharding_types": ["diagonal"]}, "sharding: 'diagonal' is none of table_wise"),
    ({"pooling_factors": [1.0]}, "1 pooling_factors and 2 num_poolings are given"),
    ({"pooling_factors": [0.5, 3.0]}, "features below 1 beside others are not merged"),
    ({"pooling_factors": 3}, "pooling_factors: a list of numbers is needed"),
    ({"use_virtual_table": True}, "virtual tables are not modelled"),
)


@pytest.mark.parametrize(("change", "sentence"), STRANGE)
def test_constraints_that_cannot_be_taken_over_are_refused(change: dict[str, Any], sentence: str) -> None:
    text = json.dumps({"tables": [CONFIGURATION], "constraints": {"a": CONSTRAINT | change}})
    with pytest.raises(InstanceError) as refused:
        tables_in(text, "tables")
    assert sentence in str(refused.value)


FAULTS = {
    "name,rows,dimension\na,10,8,7\n": "it has more cells than the file has columns",
    "name,rows,dimension\na,-10,8\n": "rows: '-10' is no number from 0 on",
    "name,rows,dimension\na,0,8\n": "rows: 0 is not from 1 to",
    "name,rows,dimension,pooling\na,10,8,inf\n": "pooling: 'inf' is no number from 0 on",
    "name,rows,dimension\na,nan,8\n": "rows: 'nan' is no number from 0 on",
    "name,rows,dimension\n": "there are no tables",
    "": "the file is empty",
    '{"tables": [{"name": "a", "rows": 10, "dimension": 8}], "constraints": {"b": {}}}': "constraints: there is no table 'b'",
    '[{"rows": 10, "dimension": 8, "pooling_factor": 0}]': "pooling: it is 0, so that no sample looks a row up (leave the table out)",
    '[{"rows": 10.5, "dimension": 8}]': "rows: 10.5 is no whole number",
    '[{"rows": NaN, "dimension": 8}]': "NaN is no number that JSON knows",
    '[{"rows": "x", "dimension": 8}]': "rows: 'x' is no number from 0 on",
    '[{"rows": 10}]': "dimension is missing",
    '[{"rows": 10, "dimension": 8, "colour": 1}]': "there is no key 'colour' of a table",
    '[{"name": "a", "rows": 1, "dimension": 8}, {"name": "a", "rows": 1, "dimension": 8}]': "two tables are called 'a'",
    '[{"rows": 10, "dimension": 8, "bin_0": 0.5, "bin_1": 0.5}]': "2 shares are given, 17 are needed",
    '[{"rows": 10, "dimension": 8, "reuse": [' + "0.05, " * 16 + "0.05]}]": "its shares add up to 0.85, not to 1",
    '[{"rows": 10, "dimension": 8, "dtype": "fp12"}]': "there is no 'fp12'",
    "[]": "there are no tables",
    '{"a": 1}': "a list of tables, or a mapping with `tables` is needed",
    '{"columns": ["rows"], "tables": [[1, 2]]}': "it has not one cell for each column",
}


@pytest.mark.parametrize("text", FAULTS)
def test_a_faulty_list_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(InstanceError) as refused:
        tables_in(text, "tables")
    assert FAULTS[text] in str(refused.value)


def test_a_million_tables_are_refused_in_a_sentence() -> None:
    with pytest.raises(InstanceError, match=r"1,000,000 tables are more than the 20,000 that are answered"):
        tables_in("rows,dimension\n" + "8,8\n" * 1_000_000, "tables")
    with pytest.raises(InstanceError, match=r"1,000,000 tables are more than the 20,000 that are answered"):
        tables_in("[" + ",".join(["{}"] * 1_000_000) + "]", "tables")


QUESTIONS = {
    "cluster: {devices: 2, ": ("cluster: {devices: 3, devices_per_node: 2, ", "3 devices are no whole number of nodes of 2"),
    "cluster: {devices: 2,": ("cluster: {", "how many devices are there?"),
    "name: b": ("name: a", "two tables are called 'a'"),
    "rows: 100, dimension: 64}\ncl": (
        "rows: 1, dimension: 64, sharding: [row]}\ncl",
        "no sharding and kernel is left for the table 'c' of 1 x 64",
    ),
    "[table, row]": ("[data]", "copies of tables (data) need the kernel dense"),
    "[table, row], kernel: [fused]": (
        "[table, column], kernel: [fused], columns: [7]",
        "the columns of no table can be cut in 7",
    ),
    "dimension: 64}\ncl": ("dimension: 64, pooling: 0}\ncl", "no sample looks a row up"),
    "rows: 100, dimension: 64}\ncluster": ("rows: .nan, dimension: 64}\ncluster", "rows"),
}


@pytest.mark.parametrize("before", QUESTIONS)
def test_a_faulty_question_is_refused_in_a_sentence(before: str) -> None:
    after, sentence = QUESTIONS[before]
    assert before in PLAIN
    with pytest.raises(InstanceError) as refused:
        ask(PLAIN.replace(before, after))
    assert sentence in str(refused.value)


def test_a_plan_that_is_none_of_the_question_is_refused() -> None:
    question = ask(PLAIN)
    plan = solved(question).answer
    whole = next(place for place, held in enumerate(plan.tables) if held.places)
    for held in (
        replace(plan.tables[whole], places=(2,)),
        replace(plan.tables[whole], places=()),
        TablePlan(plan.tables[whole].option, (0, 1)),
    ):
        with pytest.raises(ValueError, match=r"the table .: "):
            judge(question, replace(plan, tables=(*plan.tables[:whole], held, *plan.tables[whole + 1 :])))
    with pytest.raises(ValueError, match="tables are placed, and there are"):
        judge(question, EmbeddingPlan(plan.tables[1:]))
