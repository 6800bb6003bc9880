"""Chips of the template: areas, shortest schedules, stages, answers equal to a look at everything, refused edits, faults."""

import csv
import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from crossopt.crossflow.accelerator import (
    BUFFER_SIZES,
    Chips,
    OperatorGraph,
    Work,
    area_parts,
    chip_area,
    chips_of,
    operator_cycles,
    reference_area,
    traffic,
)
from crossopt.crossflow.operator_graph import Node, Weights
from crossopt.crossflow.operator_graph import OperatorGraph as ImportedGraph
from crossopt.formulation.accelerator import bounds
from crossopt.formulation.accelerator.model import schedule_model
from crossopt.formulation.accelerator.schedule import best_schedule, least_cycles
from crossopt.formulation.accelerator.stages import Option, Pipelines, StagePlan, StageSearch, best_stages, cuts_of
from crossopt.instances.accelerator.networks import ideals_of, network_in
from crossopt.instances.accelerator.question import AcceleratorQuestion
from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.instances.operators.graph_file import graph_text
from crossopt.instances.question import read
from crossopt.reports.cli import main
from crossopt.reports.sheets.accelerator import chip_document
from crossopt.solvers.accelerator.family import FAMILY
from crossopt.solvers.accelerator.judge import AcceleratorFigures, AcceleratorPlan
from crossopt.solvers.answer import Limits, Result, unwatched
from crossopt.solvers.backends import Spend, backend
from crossopt.solvers.checking import check_answer
from crossopt.solvers.family import solve
from tests.extent import FULL, some
from tests.paths import INSTANCES, reference
from tests.solvers.accelerator.drawn import drawn, drawn_objective, least_of_everything, question_of, shortest

CORES = tuple(1 << power for power in range(13))
SIDES = CORES[1:9]
LAYER: dict[str, Any] = {
    "kind": "accelerator",
    "devices": 4,
    "batch": 8,
    "memory": "1 kB",
    "bandwidth": "1 MB/s",
    "chips": {"tensor_cores": [1, 2], "vector_cores": [1], "width": [2], "depth": [2], "buffer": [2], "least_share": 0},
    "layers": [
        {
            "name": "first",
            "output": "8 B",
            "parameters": "40 B",
            "activations": "20 B",
            "operators": [{"name": "a", "cores": "tensor", "size": 80}],
        },
        {"name": "second", "parameters": "60 B", "operators": [{"name": "b", "cores": "vector", "size": 40}]},
    ],
}


def answered(question: AcceleratorQuestion) -> Result[AcceleratorPlan, AcceleratorFigures]:
    return solve(FAMILY, question, "auto", Limits(), unwatched)


def value_of(question: AcceleratorQuestion) -> float:
    found = answered(question).value
    return inf if found is None else float(found)


def test_the_template_has_the_published_chips_and_areas() -> None:
    chips = chips_of((CORES, CORES, SIDES, SIDES, BUFFER_SIZES), reference_area(), 0.3)
    area = chip_area(chips) * 1e12
    assert reference_area() * 1e12 == pytest.approx(278826676.31216, rel=1e-12)
    assert len(chips) == 29_360
    assert int(((chips.tensor_cores == 1) | (chips.vector_cores == 1)).sum()) == 9_308
    assert area.min() == pytest.approx(3355047.77325, rel=1e-12)
    assert area.sum() == pytest.approx(3938358656612.66, rel=1e-12)
    assert len(np.unique(area // 10_000.0)) == 13_506
    assert sum(area_parts(chips).values()) == pytest.approx(float(chip_area(chips)[0]), rel=1e-12)


@pytest.mark.data
def test_areas_are_those_of_the_list() -> None:
    rows = list(csv.DictReader(reference("phaze/area_samples.csv").read_text().splitlines()))
    columns = [np.array([int(row[key]) for row in rows]) for key in ("num_tc", "num_vc", "width", "depth", "glb")]
    found = chip_area(Chips(*columns[:4], columns[4] >> 20)) * 1e12
    assert found == pytest.approx(np.array([float(row["area"]) for row in rows]), rel=1e-12)


@pytest.mark.parametrize(
    ("tensor", "vector", "side", "least"),
    [
        (1, 1, 256, 833_730),
        (32, 16, 32, 964_449),
        *(pytest.param(*one, marks=pytest.mark.thorough) for one in ((8, 2, 128, 674_498), (4, 4, 64, 1_928_897), (2, 8, 128, 839_729))),
    ],
)
def test_a_layer_of_llama_2_has_its_shortest_schedule(tensor: int, vector: int, side: int, least: int) -> None:
    settings = {"tensor_cores": tensor, "vector_cores": vector, "width": side, "depth": side}
    question = read(INSTANCES / "accelerator/llama2-7b-layer-on-cores.yaml", [f"chips.{key}={one}" for key, one in settings.items()])
    result = answered(question)
    assert result.details is not None
    assert result.status == "OPTIMAL"
    assert result.details.networks[0].passes[0].cycles == 64 * least
    assert result.value == pytest.approx(64 * least / 1.05e9, rel=1e-12)


@pytest.mark.thorough
def test_all_operators_on_all_cores_take_the_published_cycles() -> None:
    question = read(
        INSTANCES / "accelerator/llama2-7b-layer-on-cores.yaml", ["chips.tensor_cores=8", "chips.vector_cores=2", "granularity=1"]
    )
    details = answered(question).details
    assert details is not None
    assert details.networks[0].passes[0].one_by_one == 43_167_784


def drawn_graph(seed: int) -> tuple[OperatorGraph, list[int], list[int], tuple[int, int]]:
    """A graph of up to 7 operators with cycles on one core and on all."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 8))
    before = tuple(tuple(int(one) for one in range(row) if random.random() < 0.25) for row in range(count))
    cores = tuple(str(random.choice(["tensor", "vector", "both"])) for _ in range(count))
    one = [int(cycles) for cycles in random.integers(0, 12, count)]
    every = [int(random.integers(0, cycles + 1)) for cycles in one]
    graph = OperatorGraph(tuple(map(str, range(count))), cores, before)  # type: ignore[arg-type]
    return graph, one, every, (int(random.integers(1, 4)), int(random.integers(1, 4)))


@pytest.mark.parametrize("seed", some(range(400), 60))
def test_schedules_are_the_shortest_of_all(seed: int) -> None:
    graph, one, every, cores = drawn_graph(seed)
    found, least = best_schedule(graph, one, every, cores), shortest(graph, one, every, cores)
    assert found.least == found.cycles == least
    ends = [start + (every if whole else one)[row] for row, (start, whole) in enumerate(zip(found.starts, found.on_all, strict=True))]
    assert max(ends) == found.cycles
    columns = (np.array(cycles, np.float64)[:, None] for cycles in (one, every))
    bound = least_cycles(graph, *columns, *(np.array([count]) for count in cores))  # type: ignore[call-arg, misc]
    assert bound[0] <= least


@pytest.mark.parametrize("seed", some(range(100), 8))
def test_a_search_that_is_cut_short_has_a_bound(seed: int) -> None:
    graph, one, every, cores = drawn_graph(seed)
    found, least = best_schedule(graph, one, every, cores, 2), shortest(graph, one, every, cores)
    assert found.least <= least <= found.cycles


def chain(layers: int, hidden: int, sequence: int, microbatch: int, tensor: tuple[int, ...]) -> tuple[Any, list[Option], Pipelines]:
    """A chain of equal layers between embedding and head, as PHAZE's dynamic program was run on it."""
    bandwidth, memory, unit = 4.0 * 2**30, 80.0 * 2**30, 2.0**-46
    count, edge, peak = layers + 2, 2.0 * microbatch * sequence * hidden, 8 * 128 * 128 * 1.05e9 * 2
    ideals = np.array([[min(row, 1), max(0, min(row - 1, layers)), max(0, row - 1 - layers)] for row in range(count + 1)])
    entering = np.array([0.0, *[edge] * (count - 1), 0.0])
    cuts = cuts_of(ideals, entering, np.triu(np.ones((count + 1, count + 1), bool), 1))
    forward = (24.0 * microbatch * sequence * hidden**2 + 4.0 * microbatch * sequence**2 * hidden) / (0.6 * peak)
    moved, options = np.floor(entering / bandwidth / unit), list[Option]()
    for one in tensor:
        summed = 4.0 * edge / bandwidth * (one - 1) / one
        passes = [np.floor(np.array([0.1 * time / one, time / one + summed, 0.5 * time / one]) / unit) for time in (forward, 2.0 * forward)]
        vocabulary, weights = 100_000.0 * hidden / one, 24.0 * hidden**2 / one
        parameters = cuts.between(np.array([vocabulary, weights, vocabulary]))
        stored = cuts.between(np.array([edge, 34.0 * microbatch * sequence * hidden, 4.0 * edge]) / one)
        ahead, back = (cuts.between(column) for column in passes)
        for again in (False, True):
            came, goes = moved[cuts.first], moved[cuts.last]
            loads = came + ahead + (np.maximum(ahead, goes) if again else goes) + back
            stash = entering[cuts.first] if again else stored
            left = memory - 2.0 * parameters - stored
            most = np.where(left < 0.0, 0.0, np.where(stash > 0.0, np.floor(left / np.maximum(stash, 1.0)) + 1.0, 1e6))
            options.append(Option(one, again, loads, 2 if again else 1, most.astype(np.int64), parameters))
    return cuts, options, Pipelines(1024, 4096 // microbatch, 4.0 / bandwidth, unit)


@pytest.mark.parametrize(
    ("shape", "seconds", "recomputed"),
    [
        ((24, 1024, 512, 8, (1,)), 0.1956659621345883, 0.19848368379236858),
        ((48, 1600, 1024, 2, (1,)), 0.6252912217410407, 0.7217094413933298),
        pytest.param((72, 3072, 1024, 4, (1, 2, 4, 8)), 3.3767011328323377, 3.9294263171713686, marks=pytest.mark.thorough),
        pytest.param((96, 12288, 2048, 1, (1, 2, 4, 8)), 86.72937565629293, 94.49189336167915, marks=pytest.mark.thorough),
    ],
)
def test_stages_of_one_degree_are_those_of_the_public_program(shape: tuple[Any, ...], seconds: float, recomputed: float) -> None:
    cuts, options, shared = chain(*shape)
    stored = min(best_stages(cuts, [option], shared).value for option in options if not option.recompute)
    assert stored == pytest.approx(seconds, rel=1e-9)
    pairs = [
        [one, replace(other, most_stages=np.minimum(other.most_stages, 1))] for other, one in zip(options[::2], options[1::2], strict=True)
    ]
    assert min(best_stages(cuts, pair, shared).value for pair in pairs) == pytest.approx(recomputed, rel=1e-9)


def test_stages_with_degrees_of_their_own_are_quicker() -> None:
    cuts, options, shared = chain(72, 3072, 1024, 4, (1, 2, 4, 8))
    assert best_stages(cuts, options, shared).value == pytest.approx(3.336924810369055, rel=1e-9)
    assert best_stages(cuts, options, shared, 3.3).stages == ()


@cache
def least(seed: int) -> float:
    return least_of_everything(drawn(seed))


@pytest.mark.parametrize("seed", some(range(300), 8))
def test_answers_are_the_best_of_everything_and_are_proved_again(seed: int) -> None:
    question = drawn(seed)
    result = answered(question)
    assert result.proved
    assert (inf if result.value is None else result.value) == pytest.approx(least(seed), rel=1e-9)
    assert check_answer(FAMILY, result, question).accepted


@pytest.mark.parametrize("seed", some(range(300), 6))
def test_answers_with_other_objectives_limits_and_pipelines_are_the_best_of_everything(seed: int) -> None:
    question = drawn_objective(seed)
    result = answered(question)
    assert result.proved
    assert (inf if result.value is None else result.value) == pytest.approx(least_of_everything(question), rel=1e-9)
    assert check_answer(FAMILY, result, question).accepted
    if result.value:
        raised = replace(result, value=result.value * 1.01, bound=result.value * 1.01)
        assert FAMILY.prove(question, raised, unwatched).refused


def test_objectives_are_of_the_chips_in_use() -> None:
    prices = ("power={area: 1 W/mm^2, chip: 2 W}", "prices={chip: 10 USD, area: 1 USD/mm^2, lifetime: 1 h}")
    results = {
        key: answered(question_of(LAYER, f"objective={key}", *prices, "time_limit=1 s")) for key in ("area", "devices", "energy", "cost")
    }
    for key, result in results.items():
        said = result.details
        assert said is not None
        devices, area = said.networks[0].devices, said.area * 1e6
        seconds = devices * said.seconds
        values = {"area": said.area, "devices": devices, "energy": seconds * (area + 2.0), "cost": seconds * (10.0 + area) / 3600.0}
        assert result.value == pytest.approx(values[key], rel=1e-12)
        assert said.seconds <= 1.0


def test_full_pipelines_save_rounds_and_take_a_copy_of_the_parameters() -> None:
    settings = ("devices=2", "memory=200 B")
    values = [value_of(question_of(LAYER, *settings, f"pipeline={one}")) for one in ("[1f1b]", "[two-weights]", "[1f1b, two-weights]")]
    assert values[1] < values[0]
    assert values[2] == values[1]
    assert value_of(question_of(LAYER, "pipeline=[two-weights]", "devices=2", "memory=170 B")) == inf
    assert value_of(question_of(LAYER, "devices=2", "memory=170 B")) < inf


def test_the_gradients_of_every_stage_may_be_waited_for() -> None:
    settings = ("devices=4", "memory=150 B", "layers.0.parameters=10 B")
    first, every = (value_of(question_of(LAYER, *settings, f"gradients={one}")) for one in ("first", "every"))
    assert every > first


@pytest.mark.parametrize("seed", some([seed for seed in range(60) if not FULL or seed % 3], 5))
def test_a_bound_above_the_optimum_is_refused(seed: int) -> None:
    question = drawn(seed)
    result = answered(question)
    if result.value is None or not result.value:
        return
    raised = replace(result, value=result.value * 1.01, bound=result.value * 1.01)
    assert FAMILY.prove(question, raised, unwatched).refused


def test_more_of_anything_is_no_worse() -> None:
    before = value_of(question_of(LAYER))
    for setting in ("devices=8", "memory=2 kB", "bandwidth=2 MB/s", "clock=2 GHz", "chips.width=[2, 4]", "chips.vector_cores=[1, 2]"):
        assert value_of(question_of(LAYER, setting)) <= before


def test_products_move_what_the_bound_of_any_order_says_and_other_operators_their_values_once() -> None:
    buffers = np.array([2, 8])
    product = Work("tensor", 2**30, moved=2.0**20)
    assert traffic(product, buffers) == pytest.approx([2 * 2 * 2**30 / 2**10, 2 * 2 * 2**30 / 2**11])
    assert traffic(replace(product, moved=2.0**40), buffers).tolist() == [2.0**40, 2.0**40]
    assert traffic(Work("vector", 100, 1, 400.0), buffers).tolist() == [400.0, 400.0]
    chip = Chips(*(np.array([figure]) for figure in (1, 1, 256, 256, 2)))
    one, every, moving = operator_cycles(product, chip, 256.0)
    assert one[0] == every[0] == 2**14
    assert moving[0] == 2**14
    assert operator_cycles(product, chip, 128.0)[0][0] == 2**15


def test_the_traffic_of_a_transformer_layer_is_that_of_its_matrices() -> None:
    shape = {"layers": 2, "hidden": 8, "heads": 2, "ffn": 16, "vocabulary": 10, "sequence": 4}
    asks = {key: one for key, one in LAYER.items() if key != "layers"} | {"transformer": shape, "tensor": [1, 2]}
    question = question_of(asks, "memory_bandwidth=1 GB/s")
    network = question.networks[0]
    layer = network.kinds[network.kind_of[1]]
    found = {work.cores + name: work.moved for name, work in zip(layer.graph.names, layer.work(False, 2, 3, question.rates), strict=True)}
    assert found["tensorquery"] == 2 * (3 * 4 * 8 + 3 * 4 * 8 / 2 + 8 * 8 / 2)
    assert found["bothscores"] == 2 * 3 * (2 * 4 * 8 + 2 * 4 * 4) / 2
    assert found["bothdown"] == 2 * (3 * 4 * 16 / 2 + 16 * 8 / 2 + 3 * 4 * 8)
    assert found["vectorsoftmax"] == 2 * 3 * 2 * (2 * 4 * 4) / 2


def test_a_slower_memory_is_no_better_and_makes_the_buffer_count() -> None:
    large = LAYER | {"chips": LAYER["chips"] | {"buffer": [2, 32]}}
    sized = ("layers.0.operators.0.size=1e9", "memory_bandwidth=100 MB/s", "devices=1")
    values = [value_of(question_of(large, *sized[:1], "devices=1"))]
    values += [value_of(question_of(large, *sized, f"memory_bandwidth={rate}")) for rate in ("1 TB/s", "1 GB/s", "1 MB/s")]
    assert values == sorted(values)
    assert values[0] == values[1] < values[3]
    for buffer, settings in ((2, sized[:1]), (32, (*sized[:1], "memory_bandwidth=1 MB/s"))):
        answer = answered(question_of(large, *settings)).answer
        assert answer is not None
        assert answer.chip.buffer == buffer  # type: ignore[union-attr]


def test_the_clock_of_the_public_program_makes_computing_a_thousand_times_slower() -> None:
    alone = ("devices=1", "batch=1", "layers.0.output=0 B")
    slow, fast = (value_of(question_of(LAYER, *alone, f"clock={clock}")) for clock in ("1.05 MHz", "1.05 GHz"))
    assert slow == pytest.approx(1000.0 * fast, rel=1e-12)


def test_several_networks_share_a_chip_and_their_mean_throughput_counts() -> None:
    layers = LAYER["layers"]
    both = {key: one for key, one in LAYER.items() if key != "layers"} | {
        "networks": {"one": {"layers": layers}, "two": {"layers": layers[:1]}}
    }
    apart = [value_of(question_of(LAYER | {"layers": one, "chips": LAYER["chips"] | {"tensor_cores": 2}})) for one in (layers, layers[:1])]
    assert value_of(question_of(both)) == pytest.approx(2.0 / (1.0 / apart[0] + 1.0 / apart[1]), rel=1e-9)


def test_rules_stand_beside_the_optimum() -> None:
    question = question_of(LAYER | {"chips": LAYER["chips"] | {"buffer": [2, 4, 8]}}, "fixed={stages: 2}")
    result = answered(question)
    found = {baseline.name: baseline.value for baseline in result.baselines}
    assert set(found) == {
        "chip first, then stages",
        "PHAZE's search",
        "one degree for all stages",
        "chip for one degree, then stages",
        "all operators on all cores",
        "fixed plan",
    }
    assert result.value is not None
    assert all(value is not None and value >= result.value for value in found.values())
    uniform = next(one for one in result.baselines if one.name == "one degree for all stages")
    exchanged = tuple(replace(uniform, name=one.name) if one.name == "fixed plan" else one for one in result.baselines)
    assert exchanged != result.baselines
    for edited in (exchanged, result.baselines[:-1]):
        (refused,) = check_answer(FAMILY, replace(result, baselines=edited), question).refused
        assert refused.startswith("baselines: all operators on all cores ") and " follow by rule, and here are all operators " in refused


@pytest.mark.thorough
def test_the_search_that_stops_early_ends_far_from_the_optimum() -> None:
    result = answered(read(INSTANCES / "accelerator/bert-large-on-phaze.yaml"))
    found = {baseline.name: baseline for baseline in result.baselines}
    early, own = found["PHAZE's search"], found["reference chip"]
    assert result.value is not None
    assert early.value == pytest.approx(0.1169622, rel=1e-6)
    assert own.value == pytest.approx(0.1244544, rel=1e-6)
    assert found["one degree for all stages"].value == pytest.approx(0.07856268, rel=1e-6)


def test_a_batch_that_takes_little_beside_its_transfers_is_proved() -> None:
    """A unit of loads is a small part of the transfers of all cuts, so that each layer's time must not be rounded down alone."""
    result = answered(read(INSTANCES / "accelerator/bert-large-on-phaze.yaml", ("chips.least_share=0", "chips.area=1000 m^2")))
    assert result.proved
    assert 0.0 <= result.gap < 3e-10


def test_layers_alike_under_two_names_are_scheduled_once() -> None:
    twin = LAYER | {"layers": [*LAYER["layers"], LAYER["layers"][1] | {"name": "third"}]}
    result = answered(question_of(twin))
    assert any("second and third are alike" in note for note in result.notes)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (["memory=100 B", "layers.1.parameters=60 B"], "second alone keeps 120"),
        (
            ["memory=150 B", "devices=1"],
            "no stages keep the memory of every device, though each layer alone does; 2 devices suffice, there are 1; 220.",
        ),
        (["time_limit=1 ns"], "the quickest batch takes 5.33333e-07 s, 53233.333% above 1e-09 s"),
        (["time_limit=1 ns", "objective=area"], "the quickest batch takes 5.33333e-07 s"),
    ],
)
def test_why_there_is_no_plan(settings: list[str], reason: str) -> None:
    result = answered(question_of(LAYER, *settings))
    assert result.status == "INFEASIBLE"
    assert reason in result.reasons[0]


@pytest.mark.parametrize(
    ("settings", "status"), [(["memory=220 B"], "OPTIMAL"), (["memory=219 B"], "INFEASIBLE"), (["devices=2"], "OPTIMAL")]
)
def test_the_memory_and_the_devices_that_suffice_do(settings: list[str], status: str) -> None:
    assert answered(question_of(LAYER, "memory=150 B", "devices=1", *settings)).status == status


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["chips.vector_cores=0"], "no chip has vector cores, which b of second needs"),
        (["chips.area=1 mm^2"], "no chip keeps the area of 1 mm^2"),
        (["chips.area=0 mm^2"], "chips.area"),
        (["chips.width=3"], "3 is no power of two"),
        (["chips.buffer=3"], "a buffer of 3 MiB has no known area"),
        (["memory=0 B"], "no network keeps a memory of 0 bytes"),
        (["bandwidth=0 B/s"], "bandwidth"),
        (["microbatch=3"], "microbatches of 3 samples do not divide"),
        (["tensor=8"], "a stage of 8 devices is larger than all 4"),
        (["workload=llama2-7b"], "one of workload, transformer, layers, graph and networks is needed"),
        (["layers.0.after=[second]", "layers.1.after=[first]"], "the graph of layers has a cycle through first"),
        (["layers.0.after=[third]"], "there is no layer 'third'"),
        (["layers.1.name=first"], "two layers are called 'first'"),
        (["layers.0.operators.0.after=[a]"], "the operators have a cycle through a"),
        (["layers.0.operators.0.after=[z]"], "there is no operator 'z'"),
        (["layers.0.operators=[]"], "a layer has one operator at the least"),
        (["fixed={stages: 2, tensor: 2}"], "2 is not among the tensor degrees"),
        (["passes=forward", "recompute=full"], "nothing is computed again without a backward pass"),
        (["objective=area"], "the least area needs a limit of the time of a batch"),
        (["objective=energy"], "the energy of chips of the template needs their power"),
        (["objective=cost"], "a cost needs prices"),
        (["time_limit=0 s"], "time_limit"),
        (["passes=forward", "pipeline=[two-weights]"], "one schedule of a pipeline without a backward pass"),
    ],
)
def test_faults(settings: list[str], message: str) -> None:
    with pytest.raises(InstanceError, match=message.replace("^", r"\^")):
        question_of(LAYER, *settings)


def test_a_shape_whose_heads_cannot_be_shared_is_refused() -> None:
    shape = {"layers": 2, "hidden": 12, "heads": 3, "ffn": 8, "vocabulary": 10, "sequence": 4}
    with pytest.raises(InstanceError, match="2 devices cannot share 3 heads evenly"):
        question_of({key: one for key, one in LAYER.items() if key != "layers"} | {"transformer": shape, "tensor": [1, 2]})


@pytest.mark.parametrize(
    ("name", "seconds"),
    [("bert-large", 0.048682948), ("gpt2", 0.298301), ("gpt3", 30.1013946), ("opt", 0.476519), ("llama2-7b", 2.93780)],
)
@pytest.mark.thorough
def test_the_best_chip_and_plan_of_published_networks(name: str, seconds: float) -> None:
    result = answered(read(INSTANCES / f"accelerator/{name}-on-phaze.yaml"))
    assert result.status == "OPTIMAL"
    assert result.value == pytest.approx(seconds, rel=1e-4)


@pytest.mark.parametrize(("sizes", "points"), [((300, 400, 200, 100), None), ((300, 200, 400, 100), ["c"])])
def test_stages_that_share_out_branches_have_no_split_points(sizes: tuple[int, ...], points: list[str] | None) -> None:
    """Of a, b and c beside each other, and d, each pair of layers has half the work: a and c, or a and b, which are in order."""
    before = ([], ["a"], ["a"], ["b", "c"])
    layers = [
        {"name": name, "parameters": "40 B", "output": "1 B", "operators": [{"name": "x", "cores": "tensor", "size": size}], "after": after}
        for name, size, after in zip("abcd", sizes, before, strict=True)
    ]
    question = question_of(LAYER | {"layers": layers, "devices": 2, "memory": "200 B", "bandwidth": "1 GB/s"})
    written = chip_document(question, answered(question))["networks"]["network"]
    assert ["".join(stage["layers"]) for stage in written["stages"]] == (["ab", "cd"] if points else ["ac", "bd"])
    assert written["split_points"] == points


def test_edits_of_a_result_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "result.json"
    assert (
        main(["solve", str(INSTANCES / "accelerator/llama2-7b-layer-on-cores.yaml"), "--set", "chips.tensor_cores=1", "--out", str(saved)])
        == 0
    )
    plan = tmp_path / "plan.json"
    assert main(["export", str(saved), "--as", "plan", "--out", str(plan)]) == 0
    written = json.loads(plan.read_text())
    assert written["chip"]["tensor_cores"] == 1
    assert written["networks"]["network"]["split_points"] == []
    assert len(written["networks"]["network"]["schedules"][0]["operators"]) == 34
    true = json.loads(saved.read_text())
    for place, edit in ((("chip", "tensor_cores"), 2), (("plans", 0, "data"), 2), (("plans", 0, "schedules", 0, "starts", 3), 0)):
        edited = json.loads(saved.read_text())
        inner = edited["answer"]
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = edit
        assert edited != true
        (tmp_path / "edited.json").write_text(json.dumps(edited))
        assert main(["check", str(tmp_path / "edited.json")]) == 30
    capsys.readouterr()


def test_the_page_draws_the_die_and_the_cut_of_the_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "question.yaml").write_text(yaml.safe_dump(json.loads(json.dumps(LAYER | {"memory": "150 B"}))))
    page = tmp_path / "page.html"
    assert main(["solve", str(tmp_path / "question.yaml"), "--out", str(tmp_path / "result.json")]) == 0
    assert main(["report", str(tmp_path / "result.json"), "--out", str(page)]) == 0
    written = page.read_text()
    assert "A die of tensor cores, multipliers" in written
    assert "2 layers in 2 stages" in written
    assert "<title>second: stage 2</title>" in written
    capsys.readouterr()


def residual_graph() -> ImportedGraph:
    """Convolution and norm, a branch around two products, a sum, and a product behind it."""
    nodes = (
        Node("first", "convolution", ("x",), ("a",), ("w",), (16, 9, 8, 1), (3, 3), "Conv"),
        Node("norm", "norm", ("a",), ("b",), source="BatchNormalization"),
        Node("left", "product", ("b",), ("c",), ("v",), (16, 8, 8, 1), source="MatMul"),
        Node("relu", "activation", ("c",), ("d",), source="Relu"),
        Node("narrow", "convolution", ("d",), ("e",), ("u",), (16, 9, 1, 8), (3, 3), "Conv"),
        Node("sum", "addition", ("b", "e"), ("f",), source="Add"),
        Node("last", "product", ("f",), ("g",), ("t",), (16, 8, 4, 1), source="MatMul"),
    )
    tensors = {"x": (16, 9), "g": (16, 4)} | dict.fromkeys("abcdef", (16, 8))
    weights = {"w": Weights((9, 8)), "v": Weights((8, 8)), "u": Weights((8, 9)), "t": Weights((8, 4))}
    return ImportedGraph("residual", ("x",), ("g",), tensors, weights, nodes)


def test_an_imported_graph_becomes_layers_of_products_with_what_follows_them_alone() -> None:
    network = network_in(residual_graph(), "residual")
    assert network.names == ("first", "left", "narrow", "sum", "last")
    assert network.before == ((), (0,), (1,), (0, 2), (3,))
    first, left, narrow = (network.kinds[network.kind_of[row]] for row in range(3))
    assert [(one.cores, one.size, one.backward) for one in first.operators] == [("tensor", 16 * 9 * 8, 1), ("vector", 128, 1)]
    assert [one.cores for one in left.operators] == ["tensor", "vector"]
    assert narrow.operators[0].cores == "vector"
    assert (first.parameters.split, first.output, first.activations.split) == (144.0, 256.0, 2.0 * (144 + 128))
    ideals = ideals_of(network)
    assert ideals is not None
    assert ideals.passing(network) == [0.0, 256.0, 512.0, 512.0, 256.0, 0.0]


def test_a_question_names_an_imported_graph(tmp_path: Path) -> None:
    (tmp_path / "graph.json").write_text(graph_text(residual_graph()))
    asks = {key: one for key, one in LAYER.items() if key != "layers"} | {"graph": "graph.json", "memory": "10 kB"}
    (tmp_path / "question.yaml").write_text(yaml.safe_dump(asks))
    question = read(tmp_path / "question.yaml")
    result = answered(question)
    assert result.status == "OPTIMAL"
    assert result.value == pytest.approx(least_of_everything(question), rel=1e-9)
    assert main(["solve", str(tmp_path / "question.yaml"), "--out", str(tmp_path / "result.json")]) == 0
    assert main(["check", str(tmp_path / "result.json")]) == 0


TECHNOLOGY = {
    "name": "accelerator-7nm",
    "compute_area": ["320 mm^2", "400 mm^2"],
    "compute_power": ["120 W", "200 W"],
    "l2_area": ["30 mm^2", "60 mm^2"],
    "hbm_stacks": [2, 5],
    "die_area": "815 mm^2",
    "package_area": "1700 mm^2",
    "power": "400 W",
}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"devices": 1},
        {"memory": "1700 B", "recompute": ["none"]},
        {"passes": "forward", "batch": 1},
        {"tensor": [1, 2], "bandwidth": "1 TB/s", "batch": 1},
        {"objective": "energy", "time_limit": "7 ms"},
        pytest.param({"objective": "area", "time_limit": "1.6 ms", "tensor": [1, 2, 3], "bandwidth": "1 TB/s"}, marks=pytest.mark.thorough),
    ],
)
def test_a_chip_of_a_technology_and_its_stages_are_the_best_of_all(tmp_path: Path, changes: dict[str, Any]) -> None:
    (tmp_path / "graph.json").write_text(graph_text(residual_graph()))
    asks = {"kind": "accelerator", "devices": 3, "batch": 8, "memory": "80 GiB", "bandwidth": "1 GB/s", "graph": "graph.json"}
    (tmp_path / "question.yaml").write_text(yaml.safe_dump(asks | {"technology": TECHNOLOGY} | changes))
    question = read(tmp_path / "question.yaml")
    assert question.built is not None
    assert len(question.built) > 4
    result = answered(question)
    assert result.status == "OPTIMAL"
    assert result.value == pytest.approx(least_of_everything(question), rel=1e-9)
    assert check_answer(FAMILY, result, question).accepted
    assert {baseline.name for baseline in result.baselines} == {
        "chip first, then stages",
        "one degree for all stages",
        "chip for one degree, then stages",
    }
    moved = replace(result.answer, chip=replace(result.answer.chip, choices={"compute_area": 1.0}))  # type: ignore[type-var, union-attr]
    assert not check_answer(FAMILY, replace(result, answer=moved), question).accepted


@pytest.mark.parametrize("changes", [{}, {"memory": "1700 B", "tensor": [1, 2]}, {"objective": "area", "time_limit": "7 ms"}])
def test_boxes_of_chips_of_a_technology_hold_the_best_of_all(
    tmp_path: Path, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "graph.json").write_text(graph_text(residual_graph()))
    asks = {"kind": "accelerator", "devices": 3, "batch": 8, "memory": "80 GiB", "bandwidth": "1 GB/s", "graph": "graph.json"}
    (tmp_path / "question.yaml").write_text(yaml.safe_dump(asks | {"technology": TECHNOLOGY} | changes))
    question = read(tmp_path / "question.yaml")
    usual = answered(question)
    monkeypatch.setattr(bounds, "MOST_ENUMERATED", 2)
    monkeypatch.setattr(bounds, "_SLICES", 2)
    result = answered(question)
    assert result.status == usual.status == "OPTIMAL"
    assert result.value == pytest.approx(usual.value, rel=1e-9)
    assert check_answer(FAMILY, result, question).accepted
    raised = replace(result, value=result.value * 1.01, bound=result.value * 1.01)  # type: ignore[operator]
    assert FAMILY.prove(question, raised, unwatched).refused


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"technology": TECHNOLOGY | {"die_area": "100 mm^2"}}, "no chip of the technology can be built"),
        ({"technology": TECHNOLOGY | {"name": "unknown"}}, "unknown"),
        ({"microbatch": [1, 2]}, "a microbatch on chips of a technology is a sample, or the batch"),
        ({"power": {"chip": "1 W"}}, "chips of a technology have powers of their own"),
        ({"memory_bandwidth": "1 TB/s"}, "chips of a technology have the bandwidth of their stacks"),
        ({"fixed": {"stages": 2}}, "no fixed plan on chips of a technology"),
        ({"chips": {"area": "100 mm^2"}}, "are not chosen together"),
        ({"graph": None, "layers": LAYER["layers"]}, "price a graph or a transformer, not layers"),
    ],
)
def test_faults_of_chips_of_a_technology(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    (tmp_path / "graph.json").write_text(graph_text(residual_graph()))
    asks = {"kind": "accelerator", "devices": 3, "batch": 8, "memory": "80 GiB", "bandwidth": "1 GB/s", "graph": "graph.json"}
    asks = {key: one for key, one in (asks | {"technology": TECHNOLOGY} | changes).items() if one is not None}
    (tmp_path / "question.yaml").write_text(json.dumps(asks))
    with pytest.raises(InstanceError, match=message):
        read(tmp_path / "question.yaml")


def by_programs(question: AcceleratorQuestion) -> Result[AcceleratorPlan, AcceleratorFigures]:
    return solve(FAMILY, question, "milp", Limits(), unwatched)


@pytest.mark.parametrize("seed", some([1, 2, 4, 5, 6, 7, 8, 9, 12, 13, 15, 16, 17, 18], 3))
def test_integer_programs_find_the_same_optimum(seed: int) -> None:
    question = drawn(seed)
    if len(question.networks) > 1:
        return
    found, best = by_programs(question), answered(question)
    assert (found.value is None) == (best.value is None)
    if found.value is not None and best.value is not None and found.bound is not None:
        assert found.value == pytest.approx(best.value, rel=1e-5, abs=1e-12)
        assert found.bound <= best.value
        report = check_answer(FAMILY, found, question)
        assert report.accepted
        assert report.unverified


@pytest.mark.parametrize(
    "changes",
    [
        {"objective": "area", "time_limit": "2 us", "chips": LAYER["chips"] | {"tensor_cores": [1, 2, 4], "least_share": 0}},
        {"objective": "devices", "time_limit": "2 us"},
        {"pipeline": ["1f1b", "two-weights"]},
        {"gradients": "every", "batch": 8},
        {"memory_bandwidth": "1 GB/s", "time_limit": "1 s"},
    ],
)
def test_integer_programs_state_objectives_limits_and_pipelines(changes: dict[str, Any]) -> None:
    question = question_of(LAYER | changes)
    found, best = by_programs(question), answered(question)
    assert best.value is not None
    assert found.value == pytest.approx(best.value, rel=1e-5)


@pytest.mark.parametrize("seed", some(range(40), 6))
def test_the_program_of_a_schedule_has_the_shortest_one(seed: int) -> None:
    graph, one, every, cores = drawn_graph(seed)
    built = schedule_model(graph, one, every, cores)
    solved = backend("highs")(built.model, Spend())
    assert solved.value == shortest(graph, one, every, cores)


def test_integer_programs_refuse_large_questions() -> None:
    with pytest.raises(RefusedError, match="take the engine certified"):
        by_programs(read(INSTANCES / "accelerator/bert-large-on-phaze.yaml"))


@pytest.mark.thorough
@pytest.mark.parametrize("share", [0.0, 0.03])
def test_wide_graphs_of_many_operators_have_a_schedule_and_a_bound(share: float) -> None:
    random, count = np.random.default_rng(100), 60
    before = tuple(tuple(one for one in range(row) if random.random() < share) for row in range(count))
    cores = tuple(str(random.choice(["tensor", "vector"])) for _ in range(count))
    one = [int(cycles) for cycles in random.integers(1, 1000, count)]
    graph = OperatorGraph(tuple(map(str, range(count))), cores, before)  # type: ignore[arg-type]
    found = best_schedule(graph, one, [max(cycles // 4, 1) for cycles in one], (4, 4), 100)
    assert found.least <= found.cycles <= 1.2 * found.least


def test_limits_of_time_and_of_the_largest_sum_are_searched_by_few_tables() -> None:
    random, count = np.random.default_rng(5), 24
    inside = np.tril(np.ones((count + 1, count), np.int64), -1)
    cuts = cuts_of(inside, np.zeros(count + 1), np.triu(np.ones((count + 1, count + 1), bool), 1))
    times, sizes = (random.integers(1, 10**6, count).astype(np.float64) for _ in range(2))
    option = Option(1, False, cuts.between(times), 1, np.full(len(cuts.first), 8), cuts.between(sizes))
    search = StageSearch(cuts, [option], Pipelines(8, 64, 2e-5, 1e-6, every=True), StagePlan(inf))
    fronts, best = {count: [(0.0, 0.0)]}, inf
    for stages in range(1, 9):
        fronts = {
            first: undominated(
                (max(load, times[first:last].sum()), max(most, sizes[first:last].sum()))
                for last, front in fronts.items()
                if last > first
                for load, most in front
            )
            for first in range(count)
        }
        for data in range(1, 8 // stages + 1):
            rounds, rate = -(-64 // data) + stages - 1, 2e-5 * (data - 1) / data
            best = min([best, *(rounds * load * 1e-6 + rate * most for load, most in fronts[0])])
    assert search.solved().value == pytest.approx(best, rel=1e-9)
    assert search.steps < 500


def undominated(pairs: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    found = list[tuple[float, float]]()
    for load, most in sorted(pairs):
        if not found or most < found[-1][1]:
            found.append((load, most))
    return found


@pytest.mark.parametrize("objective", some(["area", "energy", "devices"], 1))
def test_stages_of_a_large_degree_beside_others_keep_a_short_limit(objective: str) -> None:
    asks = {
        "kind": "accelerator",
        "transformer": {"layers": 24, "hidden": 1024, "heads": 16, "ffn": 4096, "vocabulary": 30522, "sequence": 512},
        "chips": {"tensor_cores": 4, "vector_cores": 256, "width": 256, "depth": 256, "buffer": 2},
        "devices": 1024,
        "batch": 4096,
        "tensor": [1, 2, 4, 8],
        "memory": "80 GiB",
        "bandwidth": "4 GiB/s",
        "power": {"chip": "1 W"},
    }
    limited = answered(question_of(asks | {"objective": objective, "time_limit": "0.0487 s"}))
    assert limited.status == "OPTIMAL"
    assert limited.details is not None
    assert limited.details.seconds == pytest.approx(0.04868295, rel=1e-6)


def test_a_transformer_on_chips_of_a_technology_has_the_work_of_its_shape() -> None:
    shape = {"layers": 3, "hidden": 64, "heads": 4, "kv_heads": 2, "ffn": 96, "vocabulary": 200, "sequence": 32, "gated": True}
    asks = {"kind": "accelerator", "devices": 4, "batch": 8, "memory": "80 GiB", "bandwidth": "1 GB/s", "tensor": [1, 2]}
    experts = {"experts": 4, "experts_per_token": 2}
    for more in ({}, experts):
        question = question_of(asks | {"transformer": shape | more, "technology": TECHNOLOGY})
        template = question_of(asks | {"transformer": shape | more}).networks[0]
        network = question.networks[0]
        assert network.names == template.names
        for own, other in zip(network.kinds, template.kinds, strict=True):
            products = [sum(one.size for one in layer.operators if one.cores in ("tensor", "both")) for layer in (own, other)]
            routed = 32 * 64 * 4 if more and own.name == "layer" else 0
            assert products[0] == products[1] + routed
            assert own.parameters.split == pytest.approx(other.parameters.split + other.parameters.whole, rel=0.01)
            assert own.output == other.output or own.name == "head"
        result = answered(question)
        assert result.status == "OPTIMAL"
        assert result.value == pytest.approx(least_of_everything(question), rel=1e-9)
        assert check_answer(FAMILY, result, question).accepted


def test_a_fine_grid_without_a_chip_is_infeasible(tmp_path: Path) -> None:
    """Of a grid with more chips than are priced one by one when it is read."""
    (tmp_path / "graph.json").write_text(graph_text(residual_graph()))
    grid = TECHNOLOGY | {"compute_area": {"from": "100 mm^2", "to": "500 mm^2", "step": "0.05 mm^2"}, "die_area": "100 mm^2"}
    asks = {"kind": "accelerator", "devices": 3, "batch": 8, "memory": "80 GiB", "bandwidth": "1 GB/s", "graph": "graph.json"}
    (tmp_path / "question.yaml").write_text(yaml.safe_dump(asks | {"technology": grid}))
    question = read(tmp_path / "question.yaml")
    result = answered(question)
    assert result.status == "INFEASIBLE"
    assert "no chip of the technology can be built" in result.reasons[0]
    assert check_answer(FAMILY, result, question).accepted


def test_the_answer_names_ends_of_options_and_batches_of_graphs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "graph.json").write_text(graph_text(residual_graph()))
    asks = {"kind": "accelerator", "devices": 3, "batch": 8, "memory": "80 GiB", "bandwidth": "1 GB/s", "graph": "graph.json"}
    (tmp_path / "question.yaml").write_text(yaml.safe_dump(asks | {"technology": TECHNOLOGY}))
    (tmp_path / "template.yaml").write_text(yaml.safe_dump(asks | {"chips": {"tensor_cores": [1, 2], "width": [2, 4]}}))
    texts = []
    for name in ("question", "template"):
        assert main(["solve", str(tmp_path / f"{name}.yaml"), "--verbose"]) == 0
        texts.append(" ".join(capsys.readouterr().out.split()))
    assert "at an end of its options, beyond which a better chip may lie: compute area (" in texts[0]
    assert "residual was imported with a batch of 16, which counts as one sample here" in texts[1]
    assert "width (4)" in texts[1]


@pytest.mark.parametrize(("batch", "cycles"), [(3, 1), (3, 2), (6, 5), (7, 3)])
def test_a_batch_of_exactly_the_limit_keeps_it_and_one_of_a_nanosecond_more_does_not(batch: int, cycles: int) -> None:
    """A vector core of 16 lanes works on 80 values in 5 rounds, at 1 GHz; each sample is a microbatch of its own."""
    operator = {"name": "v", "cores": "vector", "size": 80, "cycles": cycles}
    chips = {"tensor_cores": 1, "vector_cores": 1, "width": 16, "depth": 16, "buffer": 2, "least_share": 0}
    asks = {"kind": "accelerator", "devices": 1, "batch": batch, "memory": "1 MiB", "bandwidth": "1 GB/s", "clock": "1 GHz"}
    asks |= {"passes": "forward", "chips": chips, "layers": [{"name": "a", "operators": [operator]}]}
    nanoseconds = 5 * batch * cycles
    found, none = (
        solve(FAMILY, question_of({**asks, "time_limit": f"{limit} ns"}), "auto", Limits(), unwatched)
        for limit in (nanoseconds, nanoseconds - 1)
    )
    assert (found.value, found.proved) == (nanoseconds / 1e9, True)
    assert (none.status, none.proved) == ("INFEASIBLE", True)
