"""Questions with several workloads: what each of them asks alone, and what is wrong with a file told once and in its place."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from crossopt.instances.codesign.instance import Instance, Portfolio
from crossopt.instances.codesign.question import read_instance, read_question, read_single_scale, saved_single_scale
from crossopt.instances.errors import InstanceError
from tests.every import every

TWO = """\
kind: codesign
workloads:
  - {model: gpt3-125m, global_batch: 64, weight: 2}
  - model: gpt3-350m
    global_batch: 32
    name: middle
    choices: {tensor: [1, 2, 4], zero: 1}
cluster: {devices: 8, devices_per_node: 4}
technology: accelerator-7nm
choices:
  compute_area: [200 mm^2, 400 mm^2]
  tensor: [1, 2]
  microbatch: [1, 2]
"""
ONE = "kind: codesign\nworkload: {model: gpt3-125m, global_batch: 8}\ncluster: {devices: 8}\nhardware: a100-80g\n"


def asked(text: str, *settings: str) -> Instance | Portfolio:
    return saved_single_scale({"text": text, "source": "q.yaml", "settings": list(settings)})


def two(*settings: str) -> Portfolio:
    found = asked(TWO, *settings)
    assert isinstance(found, Portfolio)
    return found


def refusal(text: str, *settings: str) -> str:
    with pytest.raises(InstanceError) as raised:
        asked(text, *settings)
    return str(raised.value)


def test_each_workload_asks_what_it_would_ask_alone() -> None:
    """Word for word the question with `workload` and its own choices in the file's."""
    portfolio = two()
    alone = TWO[: TWO.index("workloads")] + "name: middle\nworkload: {model: gpt3-350m, global_batch: 32}\n" + TWO[TWO.index("cluster") :]
    single = asked(alone.replace("tensor: [1, 2]", "tensor: [1, 2, 4]\n  zero: 1"))
    assert isinstance(single, Instance)
    told = {"document": {}, "unnamed": ()}  # what was not named is told beside the answer for one workload alone
    assert replace(portfolio.parts[1], document={}) == replace(single, **told)
    assert (portfolio.name, portfolio.weights, portfolio.combine) == ("q", (2.0, 1.0), "weighted_sum")
    assert [part.name for part in portfolio.parts] == ["gpt3-125m", "middle"]
    assert dict(portfolio.parts[0].plan_options)["tensor"] == (1, 2)


def test_a_workload_is_asked_for_by_its_name() -> None:
    portfolio = two()
    question = {**portfolio.document, "workload": "middle"}
    assert read_question(question) == portfolio.parts[1]
    assert portfolio.parts[1].document == question


@pytest.mark.parametrize(
    ("text", "workload", "message"),
    [
        (TWO, None, "several (say --workload NAME, one of gpt3-125m, middle)"),
        (TWO, "small", "workloads: 'small' is none of the workloads (one of gpt3-125m, middle)"),
        (ONE, "x", "there is one workload only (name none)"),
    ],
    ids=["none", "unknown", "single"],
)  # fmt: skip
def test_where_one_workload_is_needed_it_must_be_named_and_known(tmp_path: Path, text: str, workload: str | None, message: str) -> None:
    path = tmp_path / "q.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InstanceError) as raised:
        read_instance(path, (), workload)
    assert message in str(raised.value)


def test_a_setting_reaches_into_the_list_and_the_choices_of_all() -> None:
    portfolio = two("workloads.0.weight=3", "workloads.1.choices.tensor=4", "microbatch=1")
    assert portfolio.weights == (3.0, 1.0)
    assert [dict(part.plan_options)["tensor"] for part in portfolio.parts] == [(1, 2), (4,)]
    assert [dict(part.plan_options)["microbatch"] for part in portfolio.parts] == [(1,), (1,)]
    assert two("workloads.1.choices=null").parts[1].plan_options == two("workloads.1.choices.zero=0", "tensor=[1, 2]").parts[0].plan_options


def test_workloads_of_both_kinds_take_the_choices_that_mean_something_to_them() -> None:
    text = TWO.replace("  microbatch: [1, 2]\n", "  microbatch: [1, 2]\n  rows: [1, 2]\n  columns: divisors\n")
    portfolio = asked(text.replace("- {model: gpt3-125m, global_batch: 64, weight: 2}", "- {model: gemm-4096}"))
    assert isinstance(portfolio, Portfolio)
    gemm, transformer = (dict(part.plan_options) for part in portfolio.parts)
    assert (gemm["rows"], gemm["columns"]) == ((1, 2), (1, 2, 4, 8))
    assert transformer["tensor"] == (1, 2, 4)
    assert "this is no choice for a transformer" in refusal(text)


REFUSED = [
    ("weight: 2", "weight: 0", "3:50: workloads[0].weight: zero is no weight (give one above 0, or remove the workload)"),
    ("weight: 2", "weight: -1", "3:50: workloads[0].weight: '-1' is too small (at least 0)"),
    ("weight: 2", "wieght: 2", "3:42: workloads[0].wieght: unknown key (did you mean 'weight'?)"),
    ("cluster:", "combine: worst_regret\ncluster:", "3:50: workloads[0].weight: the worst regret weighs nothing (remove the weight, "),
    ("cluster:", "combine: sum\ncluster:", "8:10: combine: 'sum' is unknown (one of weighted_sum, worst_regret)"),
    (
        "cluster:",
        "workload: {model: gpt3-125m, global_batch: 8}\ncluster:",
        "3:3: workloads: both workload and workloads are given (give exactly one of them)",
    ),
    (
        "zero: 1",
        "zero: 1, hbm_stacks: 4",
        "7:55: workloads[1].choices.hbm_stacks: all workloads have the same chip, so that none chooses of it "
        "(name this under the `choices` of all)",
    ),
    ("zero: 1", "zero: 4", "7:40: workloads[1].choices.zero: '4' is too large (at most 3)"),
    ("[1, 2, 4], zero", "[3], zero", "7:23: workloads[1].choices.tensor: 3 does not divide the 8 devices (write 1, 2, 4, 8)"),
    (
        "microbatch: [1, 2]",
        "microbatch: [64]",
        "13:15: choices.microbatch: 64 does not divide the 32 samples of the global batch (write 1, 2, 4, 8, 16, ...) [for middle]",
    ),
    (
        "tensor: [1, 2]\n",
        "tensor: [1, 2]\n  interleave: [20]\n",
        "13:15: choices.interleave: 20 is more than the 12 layers (write a smaller one) [for gpt3-125m]",
    ),
    ("model: gpt3-350m", "model: gpt5", "4:12: workloads[1].model: 'gpt5' is no known workload"),
    ("technology: accelerator-7nm", "technology: none", "9:13: technology: 'none' is no known technology"),
    ("    global_batch: 32\n", "", "4:5: workloads[1].global_batch: this key is missing, the samples of one optimizer step are needed"),
]


@every(("old", "new", "message"), REFUSED)
def test_a_wrong_question_names_the_place_and_the_remedy(old: str, new: str, message: str) -> None:
    assert old in TWO
    assert f"q.yaml:{message}" in refusal(TWO.replace(old, new, 1))


def test_what_is_wrong_for_all_is_said_once() -> None:
    assert refusal(TWO.replace("accelerator-7nm", "unknown")).endswith("1 fault, nothing solved")


def test_two_workloads_of_one_name_are_told_apart_by_the_reader() -> None:
    assert refusal(TWO.replace("name: middle", "name: gpt3-125m")).count("called 'gpt3-125m' too") == 2


@pytest.mark.parametrize(("setting", "message"), [
    ("workloads.2.weight=3", "there is no item 2 in workloads (its items are 0 to 1)"),
    ("workloads.1.choices.tensor=3", "3 does not divide the 8 devices (write 1, 2, 4, 8) [from --set workloads.1.choices.tensor=3]"),
    ("workloads=[]", "0 workloads are listed, 1 to 16 are needed"),
    ("combine=worst", "combine: 'worst' is unknown"),
])  # fmt: skip
def test_a_wrong_setting_is_refused(setting: str, message: str) -> None:
    assert message in refusal(TWO, setting)


def test_one_workload_has_nothing_to_combine() -> None:
    text = (
        "kind: codesign\nworkload: {model: gpt3-125m, global_batch: 8}\ncombine: weighted_sum\ncluster: {devices: 8}\nhardware: a100-80g\n"
    )
    assert "3:10: combine: there is one workload only, so that nothing is combined (remove this key)" in refusal(text)


def test_the_shapes_of_a_config_travel_with_the_question(tmp_path: Path) -> None:
    """So that a saved result stands without that file."""
    shapes = {"hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 4, "num_attention_heads": 8, "vocab_size": 1000}
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "llama", "max_position_embeddings": 256, **shapes}), encoding="utf-8")
    path = tmp_path / "q.yaml"
    path.write_text(TWO.replace("model: gpt3-350m", "config: config.json\n    sequence: 256"), encoding="utf-8")
    portfolio = read_single_scale(path)
    config.unlink()
    assert isinstance(portfolio, Portfolio)
    again = saved_single_scale(portfolio.document)
    assert isinstance(again, Portfolio)
    assert replace(again.parts[1].workload, name="") == replace(portfolio.parts[1].workload, name="")
