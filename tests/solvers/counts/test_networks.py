"""Networks on fleets: passes against graphs of each batch, fleets against a look at everything, monotony, and bad input."""

from dataclasses import replace
from itertools import product
from math import ceil, inf, isqrt
from pathlib import Path
from random import Random

import numpy as np
import pytest
import yaml

from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.operator_costs import batch_of, columns_of, graph_costs, merged_nodes, passes
from crossopt.crossflow.operator_graph import OperatorGraph, folded, values_in
from crossopt.instances.catalogue.formats import BITS, Format, device_in
from crossopt.instances.catalogue.registry import device
from crossopt.instances.counts.fleet import FleetQuestion
from crossopt.instances.errors import InstanceError
from crossopt.instances.operators.graph_file import graph_text
from crossopt.instances.question import read
from crossopt.reports.sheets.counts import fleet_sheet
from crossopt.solvers.answer import Limits, Result, unwatched
from crossopt.solvers.checking import check
from crossopt.solvers.counts.fleet import FAMILY, Fleet, FleetUse
from crossopt.solvers.family import solve
from tests.instances.layers.image_networks import Builder, alexnet, bottleneck, resnet50
from tests.paths import ROOT
from tests.solvers.counts.drawn import best_fleet, fleet_in


def small(batch: int) -> OperatorGraph:
    net = Builder(batch, 32)
    net.conv("stem", 64, 7, 2, 3, norm=True)
    net.relu("stem.relu")
    bottleneck(net, "block", 64, 2, first=True)
    net.dense("fc", 100)
    return net.graph("small")


BUILT = {"small": small, "alexnet": alexnet}


def asked(folder: Path, document: dict[str, object]) -> FleetQuestion:
    for name, build in BUILT.items():
        (folder / f"{name}.json").write_text(graph_text(build(1)), encoding="utf-8")
    (folder / "question.yaml").write_text(yaml.safe_dump({"kind": "fleet", **document}, sort_keys=False), encoding="utf-8")
    question = read(folder / "question.yaml")
    assert isinstance(question, FleetQuestion)
    return question


def solved(question: FleetQuestion) -> Result[Fleet, FleetUse]:
    return solve(FAMILY, question, "auto", Limits(), unwatched)


def test_norms_and_activations_merge_where_nothing_else_takes_what_they_take() -> None:
    """ResNet-50 has 53 norms behind convolutions, and 49 activations behind norms or sums; of AlexNet 7 activations are left."""
    graph = resnet50(1)
    assert (graph.macs, len(graph)) == (4_089_184_256, 175)
    assert [len(merged_nodes(graph, merging)) for merging in ("none", "norms", "activations")] == [0, 53, 102]
    assert len(merged_nodes(alexnet(1), "activations")) == 7
    taken_twice = replace(graph, outputs=(*graph.outputs, "stem"))
    assert len(merged_nodes(taken_twice, "norms")) == 52
    other = replace(graph, nodes=tuple(replace(node, source="LayerNormalization") for node in graph.nodes))
    assert not merged_nodes(other, "norms")


@pytest.mark.parametrize("build", [small, alexnet])
def test_a_pass_at_a_batch_is_that_of_the_graph_of_this_batch(build: object) -> None:
    hardware = device_in_format("h100-sxm", "bf16")
    found = passes(build(2), "none", [0.5, 1.0, 4.0], 2.0, hardware)  # type: ignore[operator]
    for batch, time in zip((1, 2, 8), found.time.tolist(), strict=True):
        graph = build(batch)  # type: ignore[operator]
        assert time == pytest.approx(np.sum(graph_costs(columns_of(graph), 2.0, hardware).forward.time), rel=1e-12)


def wide(batch: int, times: int, ends: int) -> OperatorGraph:
    """`small` with so many times its inner channels, and so many times the channels of its input and output."""
    net = Builder(batch, 32)
    net.tensors["image"] = (batch, 3 * ends, 32, 32)
    net.conv("stem", 64 * times, 7, 2, 3, norm=True)
    net.relu("stem.relu")
    bottleneck(net, "block", 64 * times, 2, first=True)
    net.dense("fc", 100 * ends)
    return net.graph("small")


@pytest.mark.parametrize(("fold", "times"), [(1, 1), (4, 2), (9, 3)])
def test_a_folded_network_is_the_one_that_is_built_so_wide(fold: int, times: int) -> None:
    found, built = folded(small(1), fold), wide(1, times, fold)
    assert [node.product for node in found.nodes] == [node.product for node in built.nodes]
    for graph in (found, built):
        assert batch_of(graph) == 1
    assert [figures(found, name) for name in found.tensors] == [figures(built, name) for name in built.tensors]
    assert (found.parameters, found.macs) == (built.parameters, built.macs)


def figures(graph: OperatorGraph, name: str) -> int:
    return values_in([name], graph.tensors)


def test_folds_that_are_no_squares_are_rounded_up() -> None:
    """sqrt(2) 64 = 90.5 channels are 96, and sqrt(3) 10 = 17.3 are 18."""
    found = {node.name: node.product for node in folded(small(2), 2).nodes}
    assert (found["stem"], found["fc"]) == ((2 * 16 * 16, 7 * 7 * 6, 96, 1), (2, found["fc"][1], 200, 1))  # type: ignore[index]
    net = Builder(1, 32)
    net.conv("odd", 10, 3)
    net.dense("fc", 5)
    assert [node.product for node in folded(net.graph("odd"), 3).nodes if node.product] == [(1024, 81, 18, 1), (1, 18432, 15, 1)]


def test_folds_are_offered_and_taken_where_they_serve_more(tmp_path: Path) -> None:
    """Four images in one make narrow layers wider: more requests a second, with the same proof."""
    shipped = str(ROOT / "instances/counts/resnet50.json")
    document: dict[str, object] = {
        "classes": {"small": 1_000_000},
        "networks": {"small": {"graph": shipped, "batches": [1, 4, 256]}},
        "devices": {"h100-sxm": {"price": 2}},
    }
    plain = asked(tmp_path, document).runs["small", "h100-sxm"]
    document["networks"]["small"]["folds"] = [1, 4]  # type: ignore[index]
    question = asked(tmp_path, document)
    run, found = question.runs["small", "h100-sxm"], solved(question)
    assert (plain.fold, run.fold) == (1, 4)
    assert run.rate > plain.rate
    hardware = device_in_format("h100-sxm", "bf16")
    alone = passes(folded(resnet50(1), 4), "activations", [run.batch / 4], 2.0, hardware).time
    assert run.rate == pytest.approx(run.batch / alone[0], rel=1e-12)
    brief = fleet_sheet(question, found).brief()
    assert dict(brief)["small"] == "batch 256 folded by 4 in bf16 on h100-sxm"
    notes = [text.split(",")[0] for label, text in brief if label == "note"]
    assert {
        "networks are launched operator by operator (PyTorch eager): engines that compile them",
        "small: folded networks are trained anew",
    } <= set(notes)
    family: object = FAMILY
    assert found.proved and check(family, found, Path()).accepted  # type: ignore[arg-type]


def drawn(seed: int) -> dict[str, object]:
    """Two networks on up to three kinds of devices, with limits that leave some pairs out."""
    random = Random(f"networks {seed}")
    networks = {
        name: {
            "graph": f"{name}.json",
            "latency": f"{random.choice((0.3, 1, 4))} ms",
            "formats": random.choice((["bf16"], ["fp16", "int8"], ["fp8", "bf16"])),
            "batches": sorted(random.sample((1, 2, 4, 8, 16, 32), 3)),
            "merging": random.choice(("none", "norms", "activations")),
        }
        for name in BUILT
    }
    kinds = random.sample(("a100-80g", "h100-sxm", "b200", "v100-32g"), random.randint(1, 3))
    devices = {kind: {"price": random.choice((1, 1.5, 2.35, 4))} | ({"available": 2} if random.random() < 0.3 else {}) for kind in kinds}
    document: dict[str, object] = {"classes": {"small": random.choice((9_000, 80_000)), "alexnet": random.choice((5_000, 40_000))}}
    document |= {"networks": networks, "devices": devices, "objective": random.choice(("cost", "utilisation"))}
    return document


def by_hand(document: dict[str, object]) -> dict[tuple[str, str], float]:
    """The greatest rate of each network on each device, of all batches, folds of the small one and formats, each from its own graph."""
    rates: dict[tuple[str, str], float] = {}
    for (name, network), (kind, own) in product(document["networks"].items(), document["devices"].items()):  # type: ignore[attr-defined]
        hardware_name = own.get("hardware", kind)
        entry = device(hardware_name)
        for dtype, batch, fold in product(network["formats"], network["batches"], network.get("folds", [1])):
            if (dtype not in entry.peak and dtype not in entry.integer_peak) or batch % fold:
                continue
            graph = BUILT[name](batch) if fold == 1 else wide(batch // fold, isqrt(fold), fold)
            hardware = device_in_format(hardware_name, dtype)
            left = [node for number, node in enumerate(graph.nodes) if number not in merged_nodes(graph, network["merging"])]
            costs = graph_costs(columns_of(replace(graph, nodes=tuple(left))), BITS[dtype] / 8, hardware).forward.time
            time = float(np.sum(costs))
            if 2 * time <= float(network["latency"].split()[0]) / 1e3:
                rates[name, kind] = max(rates.get((name, kind), 0.0), batch / time)
    return rates


def device_in_format(kind: str, dtype: Format) -> Hardware:
    return device_in(device(kind), kind, dtype, (dtype,), {}).formats[dtype]


@pytest.mark.parametrize("seed", range(12))
def test_the_best_fleet_as_by_a_look_at_everything(seed: int, tmp_path: Path) -> None:
    document = drawn(seed)
    rates = by_hand(document)
    if {name for name, _ in rates} != set(BUILT):
        with pytest.raises(InstanceError, match=r"networks\.(small|alexnet)\.(latency|formats): "):
            asked(tmp_path, document)
        return
    question = asked(tmp_path, document)
    assert {key: run.rate for key, run in question.runs.items()} == pytest.approx(rates, rel=1e-9)
    kinds = list(question.kinds)
    plain = {
        "classes": document["classes"],
        "devices": {
            kind: {**document["devices"][kind], "rates": {name: run.rate for (name, on), run in question.runs.items() if on == kind}}  # type: ignore[index]
            | ({"price": question.peaks[kind] / 1e12} if document["objective"] == "utilisation" else {})
            for kind in kinds
        },
    }
    found, least = solved(question), best_fleet(fleet_in(plain))
    assert (found.value, found.proved) == ((None if least == inf else least), True)
    if found.details is not None and found.answer is not None:
        work = sum(2.0 * BUILT[name](1).macs * rate for name, rate in document["classes"].items())  # type: ignore[attr-defined]
        peak = sum(question.peaks[kind] * count for kind, count in found.answer.devices.items())
        assert found.details.achieved == pytest.approx(work / peak, rel=1e-12)


def test_a_tighter_limit_never_serves_more_and_larger_batches_use_more_of_the_peak(tmp_path: Path) -> None:
    document = drawn(1) | {"devices": {"h100-sxm": {"price": 2}}, "objective": "cost"}
    document["networks"] = {name: {"graph": f"{name}.json", "latency": "8 ms"} for name in BUILT}
    rates = []
    for latency in ("8 ms", "2 ms", "0.8 ms"):
        document["networks"]["alexnet"]["latency"] = latency  # type: ignore[index]
        rates.append(asked(tmp_path, document).runs["alexnet", "h100-sxm"].rate)
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > rates[2]
    used = []
    for batch in (1, 4, 16, 64, 256):
        document["networks"]["small"] = {"graph": "small.json", "batches": batch}  # type: ignore[index]
        used.append(asked(tmp_path, document).runs["small", "h100-sxm"].utilisation)
    assert used == sorted(used)
    assert used[-1] > 4 * used[0]


def test_the_shipped_question_is_proved_and_checked() -> None:
    question = read(ROOT / "instances/counts/image-networks-on-gpus.yaml")
    found = solved(question)
    assert found.proved
    family: object = FAMILY
    assert check(family, found, Path()).accepted  # type: ignore[arg-type]
    assert found.answer is not None and found.details is not None
    forged = replace(found, details=replace(found.details, achieved=0.9))
    assert not check(family, forged, Path()).accepted  # type: ignore[arg-type]
    rows = dict(fleet_sheet(question, found).brief())
    assert rows["resnet50"].startswith("batch ")
    assert ceil(found.value or 0) == ceil(sum(question.file.devices[kind].price * n for kind, n in found.answer.devices.items()))


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        ({"networks": {"small": {"graph": "none.json"}}}, "networks.small.graph: "),
        ({"networks": {"tiny": {"graph": "small.json"}}}, "networks.tiny: there is no class 'tiny'"),
        ({"networks": {"small": {"graph": "small.json", "latency": "1 us"}}}, "networks.small.latency: 1 us are asked, and h100-sxm"),
        ({"networks": {"small": {"graph": "small.json", "formats": ["fp4"]}}}, "networks.small.formats: no device has memory"),
        ({"networks": {"small": {"graph": "small.json", "formats": []}}}, "networks.small.formats: "),
        ({"networks": {"small": {"graph": "small.json", "folds": [1, 3]}}}, "networks.small.folds: no batch is a multiple of 3"),
        ({"networks": {"small": {"graph": "small.json", "folds": 25}}}, "networks.small.folds: at most 16 requests are folded"),
        ({"networks": {"small": {"graph": "small.json", "batches": 100_000}}}, "networks.small.batches: 1 to 64 batches of up to 65,536"),
        ({"devices": {"h100": {"price": 1}}}, "devices.h100: "),
        ({"devices": {"mine": {"price": 1, "hardware": "none.yaml"}}}, "none.yaml:1:1: there is no such file"),
        (
            {"devices": {"h100-sxm": {"price": 1, "rates": {"small": 3}}}},
            "devices.h100-sxm.rates.small: the rate of a class with a network",
        ),
        ({"classes": {"small": 10, "chat": 2}}, "classes.chat: no device serves this class"),
        ({"classes": {"small": 10, "chat": 2}, "objective": "utilisation"}, "objective: the work of 'chat' is not known"),
    ],
)
def test_faults_are_sentences(edit: dict[str, object], sentence: str, tmp_path: Path) -> None:
    document: dict[str, object] = {
        "classes": {"small": 10},
        "networks": {"small": {"graph": "small.json"}},
        "devices": {"h100-sxm": {"price": 1}},
    }
    with pytest.raises(InstanceError) as caught:
        asked(tmp_path, document | edit)
    assert len(caught.value.faults) == 1
    assert sentence in str(caught.value)
