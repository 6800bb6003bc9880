"""Graphs of operators on a device as questions about formats: prices by hand, conversions, ties, budgets, and what is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crossopt.crossflow.operator_costs import columns_of, graph_costs
from crossopt.crossflow.operator_graph import Node, OperatorGraph, Shape, Weights, repeated_blocks
from crossopt.crossflow.roofline import stream_cost
from crossopt.instances.catalogue.formats import BITS, device_in
from crossopt.instances.catalogue.registry import build_device, device
from crossopt.instances.errors import InstanceError
from crossopt.instances.layers.problem import chosen
from crossopt.instances.layers.question import LayersQuestion
from crossopt.instances.operators.graph_file import graph_text
from crossopt.instances.question import read
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.family import solve
from crossopt.solvers.layers.family import FAMILY
from crossopt.solvers.layers.judge import LayerChoices, best_of_all, judge, totals_of_rows

WIDE: Shape = (64, 256, 14, 14)


def small(blocks: int = 1) -> OperatorGraph:
    """Blocks of convolution, activation, convolution and addition, and a product at the end."""
    tensors: dict[str, Shape] = {"x": WIDE}
    weights, nodes, before = dict[str, Weights](), list[Node](), "x"
    sides = (64 * 196, 256 * 9, 256, 1)
    for number in range(blocks):
        a, r, c, s = (f"{letter}{number}" for letter in "arcs")
        tensors |= dict.fromkeys((a, r, c, s), WIDE)
        weights |= {f"{one}.w": Weights((256, 256, 3, 3)) for one in (a, c)}
        nodes += [
            Node(a, "convolution", (before,), (a,), (f"{a}.w",), sides, (3, 3)),
            Node(r, "activation", (a,), (r,)),
            Node(c, "convolution", (r,), (c,), (f"{c}.w",), sides, (3, 3)),
            Node(s, "addition", (c, before), (s,)),
        ]
        before = s
    tensors |= {"flat": (64, 256 * 196), "out": (64, 1000)}
    weights["head.w"] = Weights((256 * 196, 1000))
    nodes += [
        Node("flat", "view", (before,), ("flat",)),
        Node("head", "product", ("flat",), ("out",), ("head.w",), (64, 256 * 196, 1000, 1)),
    ]
    return OperatorGraph("small", ("x",), ("out",), tensors, weights, tuple(nodes), repeated_blocks(nodes, tensors, weights))


def asked(
    tmp_path: Path, more: str = "", blocks: int = 1, formats: str = "[fp8]", objective: str = "time", graph: OperatorGraph | None = None
) -> LayersQuestion:
    (tmp_path / "graph.json").write_text(graph_text(graph or small(blocks)), encoding="utf-8")
    path = tmp_path / "question.yaml"
    text = f"kind: layers\nobjective: {objective}\ngraph: graph.json\nhardware: h100-sxm\nformats: {formats}\n{more}"
    path.write_text(text, encoding="utf-8")
    found: LayersQuestion = read(path)
    return found


def seconds(value: Any) -> float:  # noqa: ANN401 - a figure of a cost
    return float(np.asarray(value).item())


def value(question: LayersQuestion, *strategies: str) -> float:
    """Seconds of all layers and links."""
    return question.problem.amount(0, totals_of_rows(question.problem, chosen(question.problem, strategies))[0])


def test_all_in_one_format_is_the_sum_of_all_operators(tmp_path: Path) -> None:
    question, graph = asked(tmp_path), small()
    assert question.problem.layers == ("a0", "r0", "c0", "s0", "head")
    assert question.problem.strategies == (("bf16", "fp8"), ("bf16", "fp8"), ("bf16", "fp8"), ("bf16",), ("bf16", "fp8"))
    costs = graph_costs(columns_of(graph), 2.0, build_device(device("h100-sxm"), "h100-sxm", "bf16", 2))
    assert value(question, *["bf16"] * 5) == pytest.approx(float(np.sum(costs.forward.time)), rel=1e-12)
    trained = asked(tmp_path, "training: true\n")
    assert value(trained, *["bf16"] * 5) == pytest.approx(float(np.sum(costs.forward.time) + np.sum(costs.backward.time)), rel=1e-12)


def test_conversions_are_kernels_that_read_and_write_the_tensor(tmp_path: Path) -> None:
    """The activation writes what the second convolution takes, so that nothing is converted then, and fewer bytes are written."""
    question = asked(tmp_path)
    hardware = build_device(device("h100-sxm"), "h100-sxm", "bf16", 2)
    values = 64.0 * 256 * 196
    cast = seconds(stream_cost(3.0 * values, 0.0, hardware).time)
    alone = value(question, "bf16", "bf16", "fp8", "bf16", "bf16")
    together = value(question, "bf16", "fp8", "fp8", "bf16", "bf16")
    fewer = seconds(stream_cost(4.0 * values, 0.0, hardware).time) - seconds(stream_cost(3.0 * values, 0.0, hardware).time)
    assert alone - together == pytest.approx(cast + fewer, rel=1e-9)
    again = value(question, "bf16", "fp8", "bf16", "bf16", "bf16")  # narrow, and nobody takes it so: written in both
    assert again - value(question, *["bf16"] * 5) == pytest.approx(seconds(stream_cost(2.0 * values, 0.0, hardware).time) - fewer, rel=1e-9)


def test_sizes_and_bit_operations_follow_the_format(tmp_path: Path) -> None:
    question = asked(tmp_path, formats="[fp8, fp4, int4]", more="peaks: {fp4: 4000 TFLOP/s, int4: 4000 TFLOP/s}\n")
    row = {name: place for place, name in enumerate(question.problem.figures)}
    uses = dict(zip(question.problem.strategies[0], question.problem.uses[0].tolist(), strict=True))
    amounts = {
        name: tuple(question.problem.amount(row[figure], one[row[figure]]) for figure in ("size", "bops")) for name, one in uses.items()
    }
    values, macs = 256 * 256 * 9, 64 * 196 * 256 * 256 * 9
    assert amounts == {
        "bf16": (2.0 * values, macs * 256.0),
        "fp8": (1.0 * values, macs * 64.0),
        "fp4": (4.5 / 8 * values, macs * 20.25),
        "int4": (0.5 * values, macs * 16.0),
    }


def test_peaks_of_eight_bits_are_twice_those_of_sixteen() -> None:
    found = device_in(device("h100-sxm"), "h100-sxm", "bf16", ("fp8", "int8"), {})
    assert float(found.formats["fp8"].throughput) / float(found.formats["bf16"].throughput) == pytest.approx(2.0, rel=1e-3)
    same = found.formats["int8"]
    assert (same.throughput, same.wide_share) == (found.formats["fp8"].throughput, found.formats["fp8"].wide_share)
    assert float(same.energy_per_flop) == pytest.approx(float(found.formats["fp8"].energy_per_flop), rel=1e-3)


SENSITIVITIES = "quality: {a0: {fp8: 0.5, fp4: 0.9}, c0: {fp8: 0.25, fp4: 0.75}, head: {fp8: 0.1}}\n"
PEAK = "peaks: {fp4: 3958 TFLOP/s}\n"


@pytest.mark.parametrize("budget", [0.0, 0.1, 0.35, 0.6, 0.85, 2.0])
def test_answers_are_the_best_of_all_choices_and_fall_with_the_budget(tmp_path: Path, budget: float) -> None:
    question = asked(tmp_path, f"{SENSITIVITIES}{PEAK}budgets: {{quality: {budget}}}\n", formats="[fp8, fp4]")
    assert question.problem.strategies[4] == ("bf16", "fp8")  # nothing is said of the last layer in fp4
    found = solve(FAMILY, question, "auto", Limits(), unwatched)
    assert (found.status, found.value) == ("OPTIMAL", best_of_all(question)[0])
    more = asked(tmp_path, f"{SENSITIVITIES}{PEAK}budgets: {{quality: {budget + 0.2}}}\n", formats="[fp8, fp4]")
    wider = solve(FAMILY, more, "auto", Limits(), unwatched)
    assert wider.value is not None and found.value is not None and wider.value <= found.value


def test_ties_cost_in_their_order(tmp_path: Path) -> None:
    """Free layers cost no more than layers of blocks that are alike, and those no more than all of one type."""
    quality = "".join(f"{name}: {{fp8: {0.1 * (place + 1):g}}}, " for place, name in enumerate(("a0", "c0", "a1", "c1", "a2", "c2")))
    values = []
    for tie in ("none", "blocks", "operators"):
        question = asked(tmp_path, f"quality: {{{quality}}}\nbudgets: {{quality: 1.1}}\ntie: {tie}\n", blocks=3)
        found = solve(FAMILY, question, "auto", Limits(), unwatched)
        assert found.value is not None
        values.append(found.value)
    assert values == sorted(values)
    assert values[0] < values[2]


def test_fixed_layers_stay_as_they_are(tmp_path: Path) -> None:
    question = asked(tmp_path, "fixed: {a0: fp8, head: bf16}\n")
    assert (question.problem.strategies[0], question.problem.strategies[4]) == (("fp8",), ("bf16",))
    assert judge(question, LayerChoices(("fp8", "bf16", "bf16", "bf16", "bf16"))).accepted


def test_losses_may_stand_in_a_table(tmp_path: Path) -> None:
    (tmp_path / "loss.csv").write_text("layer,format,quality\na0,fp8,0.5\nhead,fp8,0.25\n", encoding="utf-8")
    question = asked(tmp_path, "quality_file: loss.csv\nbudgets: {quality: 1}\n")
    assert [len(own) for own in question.problem.strategies] == [2, 1, 1, 1, 2]
    (tmp_path / "loss.csv").write_text("layer,format,quality\na0,fp8,nan\nhead,fp8,0.25\nhead,fp8,0.5\n", encoding="utf-8")
    with pytest.raises(InstanceError) as error:
        asked(tmp_path, "quality_file: loss.csv\nbudgets: {quality: 1}\n")
    assert [fault.message for fault in error.value.faults] == [
        "'nan' is no loss of quality (give a number from 0 on)",
        "head in fp8 is given twice (keep one)",
    ]


def test_losses_that_no_choice_can_have_are_named_with_their_reason(tmp_path: Path) -> None:
    quality = "{a0: {fp8: 0.1, int8: 0.2}, c0: {fp8: 0.1, fp4: 0.2}, s0: {fp8: 0.3}, head: {fp8: 0.1, bf16: 0.0}}"
    question = asked(tmp_path, f"quality: {quality}\nfixed: {{head: bf16}}\nbudgets: {{quality: 0.15}}\n")
    assert question.notes == (
        "losses that are not used, as int8 is not among formats: a0 in int8",
        "losses that are not used, as h100-sxm has no peak in fp4: c0 in fp4",
        "losses that are not used, as addition stays in bf16: s0 in fp8",
        "losses that are not used, as the layer is fixed: head in fp8",
    )
    for engine in ("auto", "exhaustive"):
        assert solve(FAMILY, question, engine, Limits(), unwatched).notes[:4] == question.notes
    assert asked(tmp_path, f"{SENSITIVITIES}{PEAK}", formats="[fp8, fp4]").notes == ()


@pytest.mark.parametrize(
    ("more", "formats", "told"),
    [
        ("", "[int4]", "h100-sxm has no peak in int4 (it has fp32, bf16, fp16, fp8, int8; state one: `peaks: {int4: 500 TFLOP/s}`)"),
        ("quality: {heads: {fp8: 1}}\n", "[fp8]", "the graph has no operator 'heads' (did you mean head?)"),
        ("quality: {a0: {fp7: 1}}\n", "[fp8]", "'fp7' is no format"),
        ("fixed: {a0: fp16}\n", "[fp8]", "fp16 is not among the formats of the question (add it to formats)"),
        ("peaks: {fp7: 1 TFLOP/s}\n", "[fp8]", "'fp7' is no format"),
        ("peaks: {int4: 0 PFLOP/s}\n", "[int4]", "peaks.int4: zero is no figure to work with (give one above 0)"),
        ("rates: {fp8: 0}\n", "[fp8]", "rates.fp8: '0' is too small (at least 1e-06)"),
        ("rates: {fp8: 1e-300}\n", "[fp8]", "rates.fp8: '1e-300' is too small (at least 1e-06)"),
        ("choices: {l2_area: [1e300 mm^2]}\n", "[fp8]", "choices.l2_area[0]: '1e300 mm^2' is too large (at most 1000000 mm^2)"),
        ("quality: {a0: {fp8: .nan}}\n", "[fp8]", "nan"),
        ("tied: [[a0, c0]]\n", "[fp8]", "tied are stated where no graph is given (take one of them away)"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(tmp_path: Path, more: str, formats: str, told: str) -> None:
    with pytest.raises(InstanceError) as error:
        asked(tmp_path, more, formats=formats)
    assert told in str(error.value)


def test_a_budget_below_the_least_says_the_least(tmp_path: Path) -> None:
    question = asked(tmp_path, "budgets: {size: 1 MB}\n")
    found = solve(FAMILY, question, "auto", Limits(), unwatched)
    values = 2 * 256 * 256 * 9 + 256 * 196 * 1000
    assert found.status == "INFEASIBLE"
    assert found.reasons == (f"size is at least {values} B, above its budget of 1000000 B",)


def sharing() -> OperatorGraph:
    """The two convolutions of a block have the same weights."""
    graph = small()
    nodes = tuple(replace(node, weights=("a0.w",)) if node.name == "c0" else node for node in graph.nodes)
    return replace(graph, nodes=nodes, weights={name: one for name, one in graph.weights.items() if name != "c0.w"})


def sizes(question: LayersQuestion, *strategies: str) -> float:
    """Bytes of all weights."""
    figure = question.problem.figures.index("size")
    return question.problem.amount(figure, totals_of_rows(question.problem, chosen(question.problem, strategies))[figure])


def test_shared_weights_count_once_and_have_one_format(tmp_path: Path) -> None:
    question = asked(tmp_path, graph=sharing())
    block, head = 256 * 256 * 9, 256 * 196 * 1000
    assert sizes(question, *["bf16"] * 5) == 2.0 * (block + head)
    assert sizes(question, "fp8", "bf16", "fp8", "bf16", "bf16") == block + 2.0 * head
    apart = judge(question, LayerChoices(("fp8", "bf16", "bf16", "bf16", "bf16")))
    assert apart.violations == ("a0 and c0 are tied and differ",)
    budget = asked(tmp_path, f"budgets: {{size: {block + 2 * head} B}}\nfixed: {{head: bf16}}\n", graph=sharing())
    found = solve(FAMILY, budget, "auto", Limits(), unwatched)
    assert (found.status, found.value) == ("OPTIMAL", best_of_all(budget)[0])


@pytest.mark.parametrize("more", ["fixed: {a0: fp8}\n", "quality: {a0: {fp8: 0.1}}\nbudgets: {quality: 1}\n"])
def test_formats_of_shared_weights_are_those_that_all_operators_have(tmp_path: Path, more: str) -> None:
    if "fixed" in more:
        assert asked(tmp_path, more, graph=sharing()).problem.strategies[2] == ("fp8",)
        with pytest.raises(InstanceError, match="a0 and c0 share weights and have no format in common"):
            asked(tmp_path, "fixed: {a0: fp8, c0: bf16}\n", graph=sharing())
    else:
        assert asked(tmp_path, more, graph=sharing()).problem.strategies[0] == ("bf16",)


@pytest.mark.parametrize(("base", "narrow", "copies"), [("bf16", "fp8", 1), ("fp32", "tf32", 0)])
def test_a_table_and_its_head_are_stored_twice_only_in_two_formats(tmp_path: Path, base: str, narrow: str, copies: int) -> None:
    tensors = {"ids": (1, 8), "t": (1, 8, 64), "out": (1, 8, 100)}
    nodes = (Node("table", "embedding", ("ids",), ("t",), ("w",)), Node("head", "product", ("t",), ("out",), ("w",), (8, 64, 100, 1)))
    graph = OperatorGraph("tied", ("ids",), ("out",), dict[str, Shape](tensors), {"w": Weights((100, 64))}, nodes)
    question = asked(tmp_path, f"base: {base}\npeaks: {{tf32: 495 TFLOP/s}}\n", formats=f"[{narrow}]", graph=graph)
    of_base = 6400 * BITS[base] / 8
    assert sizes(question, base, base) == of_base
    assert sizes(question, base, narrow) == of_base + copies * 6400 * BITS[narrow] / 8


def test_weights_that_an_onnx_model_shares_count_once(tmp_path: Path) -> None:
    """Transposed once: the same weights, and 16-bit values."""
    onnx_models = pytest.importorskip("tests.instances.operators.onnx_models")
    from crossopt.instances.operators.onnx_model import read_onnx

    nodes = [
        onnx_models.node("MatMul", ["x", "w"], ["y"]),
        onnx_models.node("Transpose", ["w"], ["turned"], perm=[1, 0]),
        onnx_models.node("MatMul", ["y", "turned"], ["z"]),
    ]
    ends = ([onnx_models.value("x", [4, 16])], [onnx_models.value("z", [4, 16])])
    (tmp_path / "model.onnx").write_bytes(onnx_models.model(nodes, *ends, [onnx_models.weights("w", 16, 32)]).SerializeToString())
    question = asked(tmp_path, graph=read_onnx(tmp_path / "model.onnx"))
    assert (sizes(question, "bf16", "bf16"), sizes(question, "fp8", "fp8")) == (16 * 32 * 2.0, 16 * 32)
    assert len(question.problem.ties) == 1
