"""Nodes within a budget and dense layers beside embedding tables: costs by hand, every choice of drawn questions, proofs, and sentences."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from crossopt.crossflow.recommendation import (
    DenseCost,
    DenseGroup,
    DenseRates,
    Level,
    Strategy,
    interaction_cost,
    interaction_width,
    stack_cost,
)
from crossopt.instances.embeddings.question import EmbeddingsQuestion
from crossopt.instances.embeddings.systems import space_of
from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read_given
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.checking import check_answer, solve_and_verify
from crossopt.solvers.embeddings.family import FAMILY
from crossopt.solvers.embeddings.systems import judge
from crossopt.solvers.proofs import PricedSystems, SystemLeaf
from tests.solvers.embeddings.test_embeddings import ask, least_of_all, solved, ways_of

GROUP = DenseGroup(2, 1, 10, 4.0, "adam", True, DenseRates(1000.0, 500.0, 100.0, 10.0))
"""Two devices with 10 samples each."""


def test_layers_whose_weights_are_copied_cost_products_and_an_all_reduce() -> None:
    cost = stack_cost((3, 5), Strategy("data"), GROUP)
    moved = 4.0 * (3 * 5 + 10 * 3 + 10 * 5)
    assert cost.forward == max(2.0 * 10 * 3 * 5 / 1000.0, moved / 500.0) == moved / 500.0
    reduced = 2 * (1 / 2) * (4.0 * 20) / 100.0
    assert (cost.backward, cost.messages) == (max(2.0 * cost.forward, reduced), reduced)
    assert cost.memory == int(20 * (4.0 * 2 + 8) + 10 * 4.0 * (3 + 5)) + 1


def test_cut_weights_are_gathered_and_cut_columns_send_activations() -> None:
    weights, copied = 4.0 * 20, stack_cost((3, 5), Strategy("data"), GROUP)
    cut = stack_cost((3, 5), Strategy("fsdp"), GROUP)
    assert cut.forward == max(copied.forward, weights / 2 / 100.0)
    assert cut.messages == 2 * (weights / 2 / 100.0) + weights / 2 / 100.0
    columns = stack_cost((3, 5), Strategy("tensor"), GROUP)
    sent = 10 * 4.0 * 3 / 100.0 + 1 / 2 * 10 * 4.0 * 5 / 100.0
    assert columns.forward == 4.0 * (3 * 5 / 2 + 2 * 10 * 3 + 10 * 5) / 500.0 + sent
    assert columns.messages == 2.0 * sent


def test_across_nodes_each_device_sends_its_part() -> None:
    nodes = replace(GROUP, nodes=4)
    weights = 4.0 * 20
    assert stack_cost((3, 5), Strategy("data", "data"), nodes).messages == pytest.approx(weights / 100 + 2 * 0.75 * weights / 2 / 10)
    assert stack_cost((3, 5), Strategy("tensor", "data"), nodes).messages == pytest.approx(
        2 * 0.75 * weights / 2 / 10 + 2 * (10 * 4.0 * 3 / 100 + 0.5 * 10 * 4.0 * 5 / 100)
    )
    assert stack_cost((3, 5), Strategy("fsdp", "fsdp"), nodes).messages == pytest.approx(
        3 * (0.5 * weights / 100 + 0.75 * weights / 2 / 10)
    )
    assert stack_cost((3, 5), Strategy("fsdp", "fsdp"), nodes).memory < stack_cost((3, 5), Strategy("fsdp", "data"), nodes).memory


def test_dot_products_have_a_vector_more_than_tables() -> None:
    assert interaction_width(8, [8, 8, 8], "dot") == 8 + 6
    assert interaction_width(8, [4, 16], "concatenation") == 28
    assert interaction_cost(8, [8, 8, 8], "dot", GROUP).forward == max(2.0 * 10 * 16 * 8 / 1000.0, 4.0 * 10 * (32 + 14) / 500.0)


@pytest.mark.parametrize("name", ["operations", "hbm", "intra", "inter"])
def test_no_figure_rises_with_a_rate(name: str) -> None:
    levels: tuple[Level, ...] = ("data", "fsdp", "tensor")
    for levels_of, size in product(product(levels, levels), (2.0, 4.0)):
        group = replace(GROUP, nodes=3, element=size)
        costs = list[DenseCost]()
        for factor in (1.0, 1.7, 30.0):
            rates = replace(group.rates, **{name: factor * getattr(group.rates, name)})
            costs.append(stack_cost((13, 64, 7, 1), Strategy(*levels_of), replace(group, rates=rates)))
        for slower, faster in pairwise(costs):
            assert faster.forward <= slower.forward
            assert faster.backward <= slower.backward


# Every choice.


def drawn_systems(seed: int) -> EmbeddingsQuestion:
    """Up to 3 tables on 2 devices of one or two nodes, with parts of a node, dense layers, or both."""
    random = Random(f"systems {seed}")
    dimension = random.choice((16, 64))
    tables = [
        {"name": f"t{place}", "rows": random.choice((100, 5_000, 80_000)), "dimension": dimension, "pooling": random.choice((1, 20))}
        for place in range(random.randint(1, 3))
    ]
    size = random.choice((2, 12, 25))
    question: dict[str, object] = {
        "kind": "embeddings",
        "objective": random.choice(("slowest_device", "step")),
        "tables": tables,
        "cluster": {"devices": 2, "devices_per_node": random.choice((1, 2)), "hbm": f"{size} MB", "ddr": "10 MB", "ssd": "0 B"},
        "choices": {"sharding": ["table", "row", "data"], "kernel": ["fused", "fused_uvm", "dense"], "narrowest": 8},
        "batch": random.choice((16, 128)),
    }
    if random.random() < 0.7:
        strategies = random.sample(("data", "fsdp", "tensor"), random.randint(1, 2))
        top = [random.choice((16, 512)), 1]
        dense = {"bottom": [13, random.choice((32, 700)), dimension], "top": top, "strategies": strategies, "throughput": "10 TFLOP/s"}
        question["dense"] = dense | {"tied": random.random() < 0.3}
    if random.random() < 0.7 or "dense" not in question:
        sizes = random.sample((1, 4, 9, 20, 33, 50), random.randint(1, 3))
        hbm = [{"size": f"{one} MB", "bandwidth": f"{random.choice((300, 900, 1500))} GB/s", "price": f"{one * 7} USD"} for one in sizes]
        ddr = [{"size": f"{one} MB", "price": f"{one} USD"} for one in random.sample((0, 8, 30, 99), 2)]
        inter = [{"bandwidth": f"{one} GB/s", "price": f"{one * 2} USD"} for one in random.sample((2, 12, 50), 2)]
        question["node"] = {"budget": f"{random.choice((50, 200, 400, 9_000))} USD", "hbm": hbm, "ddr": ddr, "inter_node": inter}
    return ask(yaml.safe_dump(_with_rare_parts(question, Random(f"rare {seed}"))))


def _with_rare_parts(question: dict[str, Any], random: Random) -> dict[str, Any]:
    """Storage, links within nodes and links to host memory, some of which a node may have; formats and interactions of dense layers."""
    if "node" in question and random.random() < 0.5:
        name, rates = random.choice((("ssd", (1, 4)), ("intra_node", (40, 300)), ("ddr", (9, 30))))
        sizes = {"ssd": (0, 90), "ddr": (8, 40)}.get(name, (None, None))
        question["node"][name] = [
            {**({} if size is None else {"size": f"{size} MB"}), "bandwidth": f"{rate} GB/s", "price": f"{rate} USD"}
            for rate, size in zip(rates, sizes, strict=True)
        ]
    if "dense" in question and random.random() < 0.5:
        question["dense"] |= {"interaction": random.choice(("dot", "concatenation")), "precision": random.choice(("fp32", "fp16", "bf16"))}
        question["dense"] |= {"optimizer": random.choice(("sgd", "adam", "adagrad"))}
    return question


def least_of_systems(question: EmbeddingsQuestion) -> float:
    """The least value at every choice, each written as a question about tables alone."""
    document, settings, best = yaml.safe_load(question.document["text"]), question.document["settings"], inf
    for setting in settings:
        path, _, words = setting.partition("=")
        *above, last = path.split(".")
        inner = document
        for key in above:
            inner = inner[int(key)] if isinstance(inner, list) else inner.setdefault(key, {})
        inner[int(last) if isinstance(inner, list) else last] = yaml.safe_load(words)
    node = document.get("node") or {}
    for parts in product(*(node.get(name) or [{}] for name in PARTS)):
        if node and question.group.per_node * sum(Fraction(str(part.get("price", 0)).split()[0]) for part in parts) > _budget(node):
            continue
        bought = dict(zip(PARTS, parts, strict=True))
        own = {name: part["size"] for name, part in bought.items() if "size" in part}
        own |= {RATES.get(name, f"{name}_bandwidth"): part["bandwidth"] for name, part in bought.items() if "bandwidth" in part}
        for time, memory in _dense_of(question, bought):
            cluster = (
                dict(document["cluster"]) | ({"dense": f"{memory + question.file.cluster.dense!r} B"} if question.file.dense else {}) | own
            )
            plain = {key: value for key, value in document.items() if key not in {"node", "dense"}} | {"cluster": cluster}
            best = min(best, least_of_all(ask(yaml.safe_dump(plain))) + time)
    assert question.file.dense is None or best > 0.0
    return best


PARTS = ("hbm", "ddr", "ssd", "intra_node", "inter_node")
RATES = {"ddr": "host_bandwidth"}
WIDTHS = {"fp32": 4, "fp16": 2, "bf16": 2}


def _budget(node: dict[str, Any]) -> float | Fraction:
    return Fraction(node["budget"].split()[0]) if "budget" in node else inf


def _dense_of(question: EmbeddingsQuestion, bought: dict[str, dict[str, str]]) -> Iterator[tuple[float, int]]:
    """Milliseconds and bytes of dense layers with each pair of strategies."""
    dense, rates = question.file.dense, question.group.bandwidths
    if dense is None:
        yield 0.0, 0
        return
    usual = {"hbm": rates.hbm, "intra_node": rates.intra, "inter_node": rates.inter}
    own = [float(bought[name]["bandwidth"].split()[0]) * 1e6 if "bandwidth" in bought[name] else rate for name, rate in usual.items()]
    shape = (question.group.per_node, question.nodes, question.group.batch, WIDTHS[dense.precision], dense.optimizer)
    group = DenseGroup(*shape, question.file.training, DenseRates(dense.throughput / 1e3, *own))
    dimensions, last = [table.dimension for table in question.tables], dense.bottom[-1]
    across = dense.strategies if question.nodes > 1 else ("data",)
    single = [Strategy(*levels) for levels in product(dense.strategies, across)]
    middle = interaction_cost(last, dimensions, dense.interaction, group)
    width = interaction_width(last, dimensions, dense.interaction)
    for one, other in product(single, single):
        if one == other or not dense.tied:
            bottom, top = stack_cost(dense.bottom, one, group), stack_cost((width, *dense.top), other, group)
            yield bottom.time + middle.time + top.time, bottom.memory + middle.memory + top.memory


def _as_every_choice(seeds: Iterable[int]) -> int:
    compared = 0
    for seed in seeds:
        question = drawn_systems(seed)
        if ways_of(question) > 20_000:
            continue
        compared += 1
        result, least = solved(question), least_of_systems(question)
        assert (inf if result.value is None else result.value) == pytest.approx(least, rel=1e-14), seed
        assert result.status == ("INFEASIBLE" if least == inf else "OPTIMAL"), seed
        assert check_answer(FAMILY, result, question).accepted, seed
    return compared


def test_small_questions_as_by_a_look_at_every_choice() -> None:
    assert _as_every_choice(range(4, 9)) >= 4


@pytest.mark.thorough
def test_100_small_questions_as_by_a_look_at_every_choice() -> None:
    assert _as_every_choice([*range(4), *range(9, 124)]) >= 100


# Proofs, and faults.

TEXT = """\
kind: embeddings
tables:
- {name: a, rows: 20000, dimension: 16, pooling: 20}
- {name: b, rows: 5000, dimension: 16}
cluster: {devices: 2, devices_per_node: 1, hbm: 4 MB, ddr: 2 MB, ssd: 0 B}
choices: {sharding: [table, row], kernel: [fused, fused_uvm]}
batch: 64
dense: {bottom: [13, 64, 16], top: [64, 1], strategies: [data, fsdp]}
node:
  budget: 100 USD
  hbm: [{size: 2 MB, price: 10 USD}, {size: 4 MB, bandwidth: 2 TB/s, price: 50 USD}, {size: 9 MB, price: 400 USD}]
  inter_node: [{bandwidth: 12.5 GB/s}, {bandwidth: 25 GB/s, price: 60 USD}]
"""


@pytest.mark.thorough
def test_edits_of_a_tree_of_boxes_are_refused() -> None:
    question = ask(TEXT)
    result = solved(question)
    assert check_answer(FAMILY, result, question).accepted
    proof = result.proof
    assert isinstance(proof, PricedSystems)
    first, *others = proof.leaves
    forged = [
        replace(proof, leaves=proof.leaves[1:]),
        replace(proof, leaves=(*proof.leaves, first)),
        replace(proof, leaves=(replace(first, bound=1e9), *others)),
        replace(proof, leaves=(SystemLeaf(None, None), *others)),
        replace(proof, cuts=(None,), leaves=(first,)),
        replace(proof, cuts=((9, 0), *proof.cuts[1:])),
        replace(proof, cuts=((0, 7), *proof.cuts[1:])),
        replace(proof, cuts=(), leaves=()),
    ]
    for other in forged:
        assert not check_answer(FAMILY, replace(result, proof=other), question).accepted, other


@pytest.mark.thorough
def test_a_choice_that_is_none_of_the_question_is_refused() -> None:
    question = ask(TEXT)
    plan = solved(question).answer
    dear = replace(plan, system=replace(plan.system, parts=(2, 0, 0, 0, 0)))
    assert "more than the budget" in judge(question, dear).violations[0]
    for system in (
        None,
        replace(plan.system, parts=(3, 0, 0, 0, 0)),
        replace(plan.system, parts=(0,)),
        replace(plan.system, top=Strategy("tensor")),
        replace(plan.system, top=None),
    ):
        with pytest.raises(ValueError, match=r"the question|a part of each list"):
            judge(question, replace(plan, system=system))
    plain = ask(TEXT.partition("dense:")[0])
    with pytest.raises(ValueError, match="nothing but plans of tables"):
        judge(plain, plan)


def test_a_node_beyond_the_budget_and_tables_beyond_every_node_have_reasons() -> None:
    dear = solved(ask(TEXT.replace("100 USD", "5 USD")))
    assert (dear.status, dear.reasons) == ("INFEASIBLE", ("the cheapest node costs 10.00 USD, more than the budget of 5.00 USD",))
    small = solved(ask(TEXT.replace("MB", "kB")))
    assert small.status == "INFEASIBLE"
    assert small.reasons[0].startswith("on the largest parts of each kind: ")
    for result, text in ((dear, TEXT.replace("100 USD", "5 USD")), (small, TEXT.replace("MB", "kB"))):
        assert check_answer(FAMILY, result, ask(text)).accepted
        assert not check_answer(FAMILY, replace(result, reasons=(f"{result.reasons[0]}, or so",)), ask(text)).accepted


def test_a_node_may_cost_exactly_its_budget_in_decimals() -> None:
    """Of one device: 0.1 and 0.2 USD are 0.3 USD."""
    parts = "{budget: 0.3 USD, hbm: [{size: 20 MB, price: 0.1 USD}], inter_node: [{bandwidth: 2 GB/s, price: 0.2 USD}]}"
    tables = "[{name: a, rows: 100, dimension: 16}]"
    question = ask(f"kind: embeddings\ntables: {tables}\ncluster: {{devices: 1, ddr: 0 B, ssd: 0 B}}\nnode: {parts}\n")
    result = solved(question)
    assert (result.status, result.details.system.price) == ("OPTIMAL", 0.3)
    assert check_answer(FAMILY, result, question).accepted


FAULTS = {
    "batch: 64": ("batch: 64\nobjective: fewest_devices", "the fewest devices are asked for tables alone"),
    "bottom: [13, 64, 16]": ("bottom: [16]", "two widths or more make layers"),
    "top: [64, 1]": ("top: []", "one width or more makes layers"),
    "64, 16]": ("64, 32]", "the bottom ends with 32, and the table 'a' has 16 and 1 more (take `interaction: concatenation`)"),
    "[data, fsdp]": ("[pipeline]", "'pipeline' is unknown"),
    "budget: 100 USD": ("budget: 100", "has no unit"),
    "price: 10 USD": ("price: -10 USD", "-10"),
    "{bandwidth: 12.5 GB/s}": ("{bandwidth: 0 GB/s}", "bandwidth"),
    "  hbm: [{size: 2 MB, price: 10 USD}, ": ("  ddr: []\n  hbm: [{price: 10 USD}, ", "size"),
}


@pytest.mark.parametrize("before", FAULTS)
def test_a_faulty_section_is_refused_in_a_sentence(before: str) -> None:
    after, sentence = FAULTS[before]
    assert before in TEXT
    with pytest.raises(InstanceError) as refused:
        ask(TEXT.replace(before, after, 1))
    assert sentence in str(refused.value)


def test_a_node_without_options_and_engines_of_tables_alone_are_refused() -> None:
    with pytest.raises(InstanceError, match="there is nothing to choose"):
        ask(TEXT.partition("\nnode:")[0] + "\nnode: {budget: 100 USD}\n")
    with pytest.raises(Exception, match="answers questions about tables alone"):
        solve_and_verify(FAMILY, ask(TEXT), "cpsat", Limits(), unwatched)


def test_parts_that_are_dearer_and_no_better_are_left_out() -> None:
    question: EmbeddingsQuestion = read_given(TEXT.replace("size: 9 MB", "size: 3 MB"), "embeddings")
    assert [part.index for part in space_of(question).axes[0]] == [0, 1]


def test_figures_of_a_file_that_no_float_holds_are_left_out(tmp_path: Path) -> None:
    tables = {"cluster": {"devices": 2, "hbm_bandwidth": 10**400}, "tables": [{"name": "a", "rows": 10, "dimension": 8}]}
    (tmp_path / "tables.json").write_text(json.dumps(tables), encoding="utf-8")
    text = f"kind: embeddings\ntables: {{file: {tmp_path / 'tables.json'}}}\n"
    found = ask(text).group
    (tmp_path / "tables.json").write_text(json.dumps(tables | {"cluster": {"devices": 2}}), encoding="utf-8")
    assert found == ask(text).group
