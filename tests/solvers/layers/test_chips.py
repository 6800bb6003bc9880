"""Free chips for formats and splits of layers: equality with a look at every chip and choice, and refused proofs and questions."""

from dataclasses import replace
from math import inf
from pathlib import Path
from random import Random

import numpy as np
import pytest

from crossopt.crossflow.operator_graph import OperatorGraph
from crossopt.instances.codesign.space import device_at
from crossopt.instances.errors import InstanceError
from crossopt.instances.layers import chips
from crossopt.instances.layers.chips import in_base, screened
from crossopt.instances.layers.question import LayersQuestion
from crossopt.instances.operators.graph_file import graph_text
from crossopt.instances.question import read
from crossopt.solvers.answer import Limits, Result, unwatched
from crossopt.solvers.family import solve
from crossopt.solvers.layers.family import FAMILY
from crossopt.solvers.layers.judge import LayerChoices, LayerTotals, best_of_all, every_choice, judge, prove
from crossopt.solvers.proofs import PricedChips
from tests.extent import FULL
from tests.instances.layers.image_networks import alexnet
from tests.instances.layers.test_network import small
from tests.solvers.layers.test_splits import drawn as drawn_network

CHOICES = "choices: {compute_area: [300 mm^2, 440 mm^2], l2_area: [30 mm^2, 77 mm^2], hbm_stacks: [2, 5]}\n"


def asked(tmp_path: Path, more: str = "", choices: str = CHOICES, objective: str = "time", formats: str = "[int8]") -> LayersQuestion:
    (tmp_path / "graph.json").write_text(graph_text(small()), encoding="utf-8")
    path = tmp_path / "question.yaml"
    rates = "" if "rates" in more else "rates: {int8: 2}\n"
    text = (
        f"kind: layers\nobjective: {objective}\ngraph: graph.json\ntechnology: accelerator-7nm\nformats: {formats}\n{rates}{choices}{more}"
    )
    path.write_text(text, encoding="utf-8")
    found: LayersQuestion = read(path)
    return found


def solved(question: LayersQuestion, gap: float = 0.0) -> Result[LayerChoices, LayerTotals]:
    return solve(FAMILY, question, "auto", Limits(gap=gap), unwatched)


def drawn(seed: int, tmp_path: Path) -> LayersQuestion:
    """Up to eight chips, with or without losses, a format that takes area, and budgets."""
    random = Random(seed)
    parts = {
        "compute_area": "[240 mm^2, 440 mm^2]",
        "compute_power": "[100 W, 176 W]",
        "l2_area": "[20 mm^2, 77 mm^2]",
        "hbm_stacks": "[1, 2, 5]",
    }
    named = random.sample(sorted(parts), random.randint(1, 3))
    choices = f"choices: {{{', '.join(f'{name}: {parts[name]}' for name in named)}}}\n"
    budgets = dict[str, object]()
    more = random.choice(("", "format_area: {int8: 10%}\n", "format_area: {int8: 40%}\n"))
    more += f"training: {random.choice(('true', 'false'))}\n"
    if random.random() < 0.7:
        more += "quality: {a0: {int8: 0.5}, c0: {int8: 0.25}, head: {int8: 0.1}}\n"
        budgets["quality"] = random.choice((0.05, 0.3, 0.6, 2.0))
    objective = random.choice(("time", "time", "energy"))
    if random.random() < 0.4:
        budgets["energy" if objective == "time" else "time"] = random.choice(("40 mJ", "80 mJ")) if objective == "time" else "700 us"
    more += f"budgets: {{{', '.join(f'{name}: {value}' for name, value in budgets.items())}}}\n" if budgets else ""
    return asked(tmp_path, more, choices, objective)


@pytest.mark.parametrize("start", range(5))
def test_answers_are_the_best_of_all_chips_and_choices(tmp_path: Path, start: int) -> None:
    for seed in range(start, 100 if FULL else 5, 5):
        question = drawn(seed, tmp_path)
        assert question.chips is not None
        found, (value, _) = solved(question), best_of_all(question)
        assert found.value == (None if value == inf else value), seed
        assert (found.status, found.proved) == ("INFEASIBLE" if value == inf else "OPTIMAL", True), seed
        proved = prove(question, found, unwatched)
        assert (proved.refused, proved.unverified) == ((), False), seed
        rules = [judge(question, one.answer) for one in found.baselines if one.answer is not None]
        assert all(not rule.accepted or rule.value >= value for rule in rules), seed


def test_bounds_of_all_chips_at_any_prices_are_below_their_best_choice(tmp_path: Path) -> None:
    budget = "quality: {a0: {int8: 0.5}, c0: {int8: 0.25}, head: {int8: 0.1}}\nbudgets: {quality: 0.4}\nformat_area: {int8: 20%}\n"
    question = asked(tmp_path, budget)
    assert question.chips is not None
    best = np.array([best_of_all(question.on_chip(chip))[0] for chip in range(len(question.chips))])
    for price in (0.0, 1e-5, 1e-4, 1e-2):
        assert (screened(question.chips, {"quality": price}) <= best).all(), price
    base = [
        judge(question, LayerChoices(tuple("bf16" for _ in question.problem.layers), chip)).value for chip in range(len(question.chips))
    ]
    assert in_base(question.chips) == pytest.approx(base, rel=1e-12)


def test_chips_are_those_of_joint_designs(tmp_path: Path) -> None:
    question = asked(tmp_path)
    assert question.chips is not None
    (tmp_path / "joint.yaml").write_text(
        "kind: codesign\nworkload: {model: gpt3-13b, global_batch: 8, sequence: 2048, precision: bf16}\ncluster: {devices: 1}\n"
        f"technology: accelerator-7nm\n{CHOICES.replace('}', ', tensor: [1]}')}objective: step_time\n",
        encoding="utf-8",
    )
    joint = read(tmp_path / "joint.yaml")
    (family,) = question.chips.families
    for row, point in enumerate(family.points.tolist()):
        theirs, ours = device_at(joint, point), family.formats["bf16"]
        for part in ("throughput", "vector_throughput", "bundles", "energy_per_flop", "running_power", "die_area", "power"):
            assert getattr(ours, part)[row] == getattr(theirs, part), part
        for level in ("dram", "l2", "l1", "registers"):
            for part in ("capacity", "bandwidth", "energy"):
                assert getattr(getattr(ours, level), part)[row] == getattr(getattr(theirs, level), part), (level, part)


LINKS = "node_network_area: [8 mm^2, 24 mm^2], network_area: [2 mm^2, 6 mm^2]"
"""Choices of links."""


def split_over_devices(tmp_path: Path, graph: OperatorGraph, more: str, choices: str) -> LayersQuestion:
    (tmp_path / "graph.json").write_text(graph_text(graph), encoding="utf-8")
    path = tmp_path / "question.yaml"
    text = f"kind: layers\ngraph: graph.json\ntechnology: accelerator-4nm\nchoices: {{{choices}}}\n{more}"
    path.write_text(text if "objective" in more else f"{text}objective: time\n", encoding="utf-8")
    found: LayersQuestion = read(path)
    return found


def drawn_splits(seed: int, tmp_path: Path) -> LayersQuestion:
    """Up to eight chips with a few splits and formats over 2 to 6 devices, which are one node or several."""
    graph, devices, more = drawn_network(seed)
    random = Random(f"chips {seed}")
    per_node = random.choice([divisor for divisor in (1, 2, 3, devices) if devices % divisor == 0])
    links = LINKS if per_node < devices else LINKS.partition(", network")[0]
    choices = ", ".join(random.sample(["hbm_stacks: [2, 5]", "compute_area: [300 mm^2, 440 mm^2]", links], 2))
    more += f"cluster: {{devices: {devices}, devices_per_node: {per_node}}}\ngroups: [{devices}]\n"
    more += random.choice(("", "splits: [batch, features]\n", "formats: [fp8]\nsplits: [batch]\n"))
    if random.random() < 0.5:
        more += f"budgets: {{size: {random.choice((20, 200, 2_000))} kB}}\n"
    question = split_over_devices(tmp_path, graph, more, choices)
    return question if every_choice(question) < 6_000 else split_over_devices(tmp_path, graph, f"{more}tie: operators\n", choices)


@pytest.mark.parametrize("start", range(5))
def test_splits_and_chips_are_the_best_of_all(tmp_path: Path, start: int) -> None:
    checked = 0
    for seed in range(start, 100 if FULL else 5, 5):
        question = drawn_splits(seed, tmp_path)
        if every_choice(question) > 6_000:
            continue
        assert question.chips is not None
        best = [best_of_all(question.on_chip(chip))[0] for chip in range(len(question.chips))]
        for price in (0.0, 1e-9):
            assert (screened(question.chips, dict.fromkeys(question.budgets, price)) <= np.array(best)).all(), seed
        found = solved(question)
        assert found.value == (None if min(best) == inf else min(best)), seed
        proved = prove(question, found, unwatched)
        assert (found.proved, proved.refused, proved.unverified) == (True, (), False), seed
        rules = [judge(question, own.answer) for own in found.baselines if own.answer is not None]
        assert all(not rule.accepted or rule.value >= min(best) for rule in rules), seed
        checked += 1
    assert checked


def test_links_of_chips_are_those_of_joint_designs_and_more_of_them_cost_no_more(tmp_path: Path) -> None:
    more = "training: true\ncluster: {devices: 16, devices_per_node: 8}\nbudget: {die_area: 850 mm^2, power: 800 W}\n"
    question = split_over_devices(tmp_path, alexnet(512), more, LINKS)
    assert question.chips is not None
    (tmp_path / "joint.yaml").write_text(
        "kind: codesign\nworkload: {model: gpt3-13b, global_batch: 16, sequence: 2048, precision: bf16}\n"
        f"cluster: {{devices: 16, devices_per_node: 8}}\ntechnology: accelerator-4nm\nchoices: {{{LINKS}}}\nobjective: step_time\n",
        encoding="utf-8",
    )
    joint = read(tmp_path / "joint.yaml")
    (family,) = question.chips.families
    ours = family.formats["bf16"].links
    for row, point in enumerate(family.points.tolist()):
        for mine, theirs in zip(ours, device_at(joint, point).links, strict=True):
            assert mine.bandwidth[row] == theirs.bandwidth
            assert (mine.latency, mine.setup, mine.energy) == (theirs.latency, theirs.setup, theirs.energy)
    values = [solved(question.on_chip(chip)).value or inf for chip in range(len(question.chips))]
    assert values[3] == min(values) < values[0] == max(values)
    found = solved(question)
    assert (found.value, found.proved) == (values[3], True)
    names = [own.name for own in found.baselines]
    assert {"data parallel", "one strategy for each type of operator", "splits on the best chip for bf16"} <= {*names}
    assert found.details is not None
    assert found.details.chip["network_bandwidth"] == ours[1].bandwidth[3]


def test_many_networks_are_bounded_by_better_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question = split_over_devices(tmp_path, alexnet(64), "training: true\ncluster: {devices: 16, devices_per_node: 8}\n", LINKS)
    assert question.chips is not None
    exact = screened(question.chips, {})
    monkeypatch.setattr(chips, "_NETWORKS", 1)
    rounded = screened(question.chips, {})
    assert (rounded <= exact).all() and (rounded < exact).any()
    assert rounded == pytest.approx(exact, rel=0.1)


def test_a_format_that_takes_area_is_built_only_where_it_pays(tmp_path: Path) -> None:
    free, dear = (
        solved(asked(tmp_path, f"format_area: {{int8: {share}}}\nrates: {{int8: {rate}}}\n")) for share, rate in (("1%", 2), ("100%", 1))
    )
    assert free.details is not None and dear.details is not None and free.value is not None and dear.value is not None
    assert (free.details.chip["computes_int8"], dear.details.chip["computes_int8"]) == (1.0, 0.0)
    assert free.value <= dear.value == solved(asked(tmp_path, formats="[]")).value


def test_more_area_and_power_cost_no_more(tmp_path: Path) -> None:
    values = [solved(asked(tmp_path, f"budget: {{die_area: {area} mm^2}}\n")).value for area in (560, 700, 815)]
    assert all(value is not None for value in values)
    assert values == sorted(values, reverse=True)  # type: ignore[type-var]
    assert len(set(values)) > 1


def test_what_ties_cost_is_said_of_the_chosen_chip(tmp_path: Path) -> None:
    question = asked(tmp_path, "tie: operators\nquality: {a0: {int8: 0.5}, c0: {int8: 0.25}, head: {int8: 0.1}}\nbudgets: {quality: 0.4}\n")
    found = solved(question)
    assert found.answer is not None and found.value is not None
    apart = question.on_chip(found.answer.chip)
    untied = solved(replace(apart, problem=replace(apart.problem, ties=()), tie="none")).value
    assert untied is not None and untied < found.value
    assert found.notes[-1].startswith(f"on this chip, without ties time is {untied:.6g} s")


def test_claims_about_chips_that_are_no_proof_are_refused(tmp_path: Path) -> None:
    budget = "quality: {a0: {int8: 0.5}, c0: {int8: 0.25}, head: {int8: 0.1}}\nbudgets: {quality: 0.4}\n"
    question = asked(tmp_path, budget)
    found = solved(question)
    assert isinstance(found.proof, PricedChips) and found.bound is not None and found.proof.chips
    proof = found.proof
    assert "a choice costs" in prove(question, replace(found, bound=found.bound * 1.001), unwatched).refused[0]
    fewer = replace(found, proof=PricedChips(proof.by, proof.screens, proof.chips[1:]))
    assert "are not excluded" in prove(question, fewer, unwatched).refused[0]
    for screens in (((-1.0,),), ((float("nan"),),), ((),)):
        assert prove(question, replace(found, proof=PricedChips(proof.by, screens, proof.chips)), unwatched).refused
    for price in (1e200, 1e280, 1e308):
        above = replace(found, bound=found.bound * 2.0, proof=PricedChips(proof.by, ((price,),), ()))
        assert prove(question, above, unwatched).refused, price
    assert found.answer is not None and question.chips is not None
    for chip in (-1, len(question.chips), None):
        with pytest.raises(ValueError, match="chip"):
            judge(question, replace(found.answer, chip=chip))
    nothing = replace(found, value=None, bound=None, answer=None, details=None)
    assert prove(question, nothing, unwatched).refused


def test_a_gap_is_proved_for_all_chips(tmp_path: Path) -> None:
    question = asked(tmp_path)
    found, best = solved(question, gap=0.2), solved(question)
    assert found.value is not None and found.bound is not None and best.value is not None
    assert 0.8 * found.value <= found.bound <= best.value <= found.value
    assert not prove(question, found, unwatched).refused


@pytest.mark.parametrize(
    ("more", "choices", "told"),
    [
        ("", "", "nothing of the chip is left to choose"),
        ("hardware: h100-sxm\n", CHOICES, "hardware is given beside technology, whose chip is free"),
        ("cluster: {devices: 8}\n", CHOICES, "the number of devices in a node of free chips is needed"),
        ("", "choices: {network_area: [4 mm^2]}\n", "no operator is split over devices that these links join"),
        ("cluster: {devices: 8, devices_per_node: 8}\n", "choices: {network_area: [4 mm^2]}\n", "no operator is split over devices that"),
        ("cluster: {devices: 3, devices_per_node: 8}\n", CHOICES, "a batch of 64 has no equal parts for 3 devices"),
        ("rates: {int4: 2}\n", CHOICES, "accelerator-7nm does not compute in int8 (it has bf16, fp16, int4; state its rate"),
        ("budget: {die_area: 100 mm^2}\n", CHOICES, "no chip of the grid can be built within the limits of area and power"),
        ("format_area: {fp7: 10%}\n", CHOICES, "'fp7' is no format"),
        ("", "choices: {l2_area: {from: 1 mm^2, to: 30001 mm^2, step: 1 mm^2}}\n", "chips are more than the 20,000"),
    ],
)
def test_what_cannot_be_asked_of_a_free_chip_is_refused(tmp_path: Path, more: str, choices: str, told: str) -> None:
    with pytest.raises(InstanceError) as error:
        asked(tmp_path, more, choices)
    assert told in str(error.value)


def test_choices_of_a_chip_need_a_technology(tmp_path: Path) -> None:
    (tmp_path / "graph.json").write_text(graph_text(small()), encoding="utf-8")
    path = tmp_path / "question.yaml"
    path.write_text(f"kind: layers\nobjective: time\ngraph: graph.json\nhardware: h100-sxm\nformats: [fp8]\n{CHOICES}", encoding="utf-8")
    with pytest.raises(InstanceError, match="choices is of a free chip"):
        read(path)
    path.write_text("kind: layers\nobjective: time\ngraph: graph.json\ntechnology: accelerator-9nm\nformats: [fp8]\n" + CHOICES)
    with pytest.raises(InstanceError, match="accelerator-9nm"):
        read(path)
