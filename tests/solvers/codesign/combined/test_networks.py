"""Sizes, bandwidths and shares of a network as choices: against every network asked for on its own, whatever its shapes."""

from dataclasses import replace
from functools import cache
from itertools import product
from math import prod
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossopt.formulation.codesign.forms import FORMS
from crossopt.instances.codesign.instance import MultiScaleQuestion
from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read_again
from crossopt.reports.cli import main
from crossopt.reports.shown import page_of
from crossopt.solvers.codesign.answer import DesignResult
from tests.solvers.codesign.asking import again, answered, checked
from tests.solvers.codesign.questions import TINY_FREE, ask
from tests.solvers.codesign.test_agreement import agree

FIXED = """\
kind: codesign
workload: {transformer: {layers: 4, hidden: 512, heads: 8, ffn: 2048, vocabulary: 8192, sequence: 512}, global_batch: 64}
cluster:
  devices: 16
  network:
    - {size: divisors, shape: ring, bandwidth: [10 GB/s, 30 GB/s]}
    - {size: [2, 8], shape: rails, bandwidth: [20 GB/s, 30 GB/s]}
  network_bandwidth: 40 GB/s
hardware: a100-40g
choices: {tensor: [1, 2]}
"""
FREE = TINY_FREE.replace("cluster: {devices: 8, devices_per_node: 4}", "cluster: {devices: 8, network: NETWORK}").replace(
    "  compute_area", "  network_area: [4 mm^2, 12 mm^2]\n  network_edge: [0.05, 0.1]\n  compute_area"
)


def counted(text: str, *settings: str) -> MultiScaleQuestion:
    asked = read_again({"text": text, "source": "question.yaml", "settings": list(settings)}, "codesign")
    assert isinstance(asked, MultiScaleQuestion)
    return asked


@cache
def solved(*settings: str) -> DesignResult:
    return answered(counted(FIXED, *settings), "auto")


def test_the_best_network_is_that_of_the_best_answer_to_each_written_alone() -> None:
    """Sizes multiply to sixteen, and of four pairs of bandwidths those beyond the limit are left out."""
    sizes = [(inner, outer) for inner, outer in product((1, 2, 4, 8, 16), (2, 8)) if inner * outer == 16]
    pairs = [(inner, outer) for inner, outer in product((10, 30), (20, 30)) if inner + outer <= 40]
    values = [
        answered(ask(FIXED, f"cluster.network=[{_one(inner, 'ring', slow)}, {_one(outer, 'rails', fast)}]")).value
        for (inner, outer), (slow, fast) in product(sizes, pairs)
    ]
    result, least = solved(), min(value for value in values if value is not None)
    assert [part.value for part in result.parts] == values
    assert (result.status, result.value, result.bound) == ("OPTIMAL", least, least)
    assert result.answer is not None
    assert result.answer.network == counted(FIXED).places[values.index(least)].network
    assert checked(again(result)).refused == ()


def _one(size: int, shape: str, speed: int) -> str:
    return f"{{size: {size}, shape: {shape}, bandwidth: {speed} GB/s}}"


def test_an_answer_about_another_network_is_refused() -> None:
    result = solved()
    assert result.answer is not None
    [another, *_] = {place.network for place in counted(FIXED).places} - {result.answer.network}
    for other in ("", another):
        assert checked(replace(result, answer=replace(result.answer, network=other))).refused
    [part, *_] = result.parts
    assert part.answer is not None
    assert checked(replace(part, answer=replace(part.answer, network="2 x 8"))).refused


@st.composite
def networks(draw: st.DrawFn) -> str:
    """Two or three dimensions of eight devices, with a choice of sizes and of shares of the links of the chip."""
    listed = []
    for place in range(draw(st.integers(2, 3))):
        shape = draw(st.sampled_from(["switch", "ring", "fully_connected", *(["rails"] if place else [])]))
        given_ = draw(st.sampled_from([", bandwidth: [2 GB/s, 9 GB/s]", ", share: [0.25, 0.5]", ", share: 0.02", "", ", links: node"]))
        size = draw(st.sampled_from(["divisors", "[1, 2, 4]", "2"]))
        listed.append(f"{{size: {size}, shape: {shape}{given_}}}")
    return f"[{', '.join(listed)}]"


def test_enumeration_and_boxes_agree_on_a_torus_whose_axes_share_the_wires_of_a_chip() -> None:
    _agree("[{size: 4, shape: ring, share: [0.5, 0.75]}, {size: 2, shape: ring}]", "step_time")


@pytest.mark.slow
@settings(max_examples=12)
@given(networks(), st.sampled_from(["step_time", "energy_per_token"]))
def test_enumeration_and_boxes_agree_on_every_network_of_a_chip(network: str, objective: str) -> None:
    """Chips differ in the wires of their links, which rise with area and edge; each part is a question of its own. Gathers hide behind
    exchanges over the same wires."""
    _agree(network, objective, "choices.zero=[0, 3]", "choices.overlap=[none, both]")


SHARED = ("choices.tensor=[2, 4]", "choices.pipeline=1", "choices.zero=3", "choices.overlap=[none, data]", "choices.microbatch=1")


def test_enumeration_and_boxes_agree_on_a_chip_whose_wires_are_shared() -> None:
    agree_on_shared_wires("strong", ())


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_integer_models_agree_on_a_chip_whose_wires_are_shared(form: str) -> None:
    agree_on_shared_wires(form, ("milp", "cpsat"))


def agree_on_shared_wires(form: str, solvers: tuple[str, ...]) -> None:
    """Steps take as long as the wires are busy, by which network a chip has."""
    asked = ask(FREE.replace("NETWORK", "[{size: 8, shape: ring, links: node, share: 0.02}]"), *SHARED)
    [first, *_] = agree(asked, form, solvers)
    evaluation = first.details.evaluation
    assert evaluation is not None
    assert evaluation.breakdown["shared links"] > 0.1 * evaluation.step_time


def _agree(network: str, objective: str, *settings: str) -> None:
    text = FREE.replace("NETWORK", network)
    try:
        asked = read_again({"text": text, "source": "question.yaml", "settings": [f"objective={objective}", *settings]}, "codesign")
    except InstanceError as refused:
        assert "cluster.network" in str(refused)
        return
    for part in (asked.parts if isinstance(asked, MultiScaleQuestion) else (asked,))[:3]:
        exact, boxed = answered(part, "exhaustive"), answered(part, "boxes")
        assert (exact.value, exact.status) == (boxed.value, boxed.status)
        assert exact.value is None or boxed.bound is None or boxed.bound <= exact.value


def test_no_choice_of_bandwidths_is_followed_to_no_end() -> None:
    """Of a hundred thousand million million networks one keeps to the limit, 495 to one of 4 GB/s more, which 8 may share in so many ways;
    and sizes of which none multiply are refused at once."""
    wide = ", ".join(f"{{size: {2 if place == 7 else 1}, bandwidth: {{from: 1 GB/s, to: 100 GB/s, step: 1 GB/s}}}}" for place in range(8))
    text = FIXED.partition("cluster:")[0] + "cluster: {devices: 2, network: [" + wide + "], network_bandwidth: LEAST}\nhardware: a100-40g\n"
    assert prod(ask(text.replace("LEAST", "8 GB/s")).cluster.level_sizes) == 2
    with pytest.raises(InstanceError, match="495 networks are left open, more than the 64"):
        ask(text.replace("LEAST", "12 GB/s"))
    with pytest.raises(InstanceError, match="at least 1,000 networks are left open"):
        ask(text.replace("LEAST", "400 GB/s"))
    with pytest.raises(InstanceError, match="no sizes of those listed multiply to the 4194304 devices"):
        ask(FIXED, "cluster.devices=4194304", f"cluster.network=[{'{size: divisors}, ' * 7}{{size: 3}}]", "cluster.network_bandwidth=~")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (("cluster.network_bandwidth=29 GB/s",), "cluster.network_bandwidth: even the least bandwidths of the dimensions add up to more"),
        (("cluster.network=~",), "cluster.network_bandwidth: no dimensions are listed"),
        (("cluster.network.1.bandwidth=~",), "cluster.network_bandwidth: a limit on all bandwidths needs that of each dimension"),
        (("cluster.network.1.size=[3, 5]",), "cluster.network: no sizes of those listed multiply to the 16 devices"),
        (("cluster.network.0.bandwidth=[0 GB/s, 1 GB/s]",), "cluster.network[0].bandwidth: zero is no link (leave it out)"),
        (
            (
                "cluster.network=[{size: 4, share: [0.6, 0.7], links: node}, {size: 4, share: [0.5, 0.6], links: node}]",
                "cluster.network_bandwidth=~",
            ),
            "cluster.network: no shares of those listed leave something for each dimension",
        ),
    ],
)
def test_choices_that_leave_no_network_are_told(settings: tuple[str, ...], told: str) -> None:
    with pytest.raises(InstanceError) as raised:
        ask(FIXED, *settings)
    assert told in str(raised.value)
    assert "1 fault" in str(raised.value)


def test_an_answer_tells_every_network_and_the_best_in_full(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, saved = tmp_path / "question.yaml", tmp_path / "found.json"
    path.write_text(FIXED, encoding="utf-8")
    assert main(["solve", str(path), "--out", str(saved)]) == 0
    text = capsys.readouterr().out
    best = counted(FIXED).part_name(counted(FIXED).places.index(solved().answer.place)) if solved().answer else ""
    assert f"question   4 networks, {best} is best, proved in" in text
    assert all(place.network in text for place in counted(FIXED).places)
    assert "each network" in str(page_of("codesign", counted(FIXED), solved(), {}).sections)
    assert main(["export", str(saved), "--as", "torchtitan"]) == 3
    assert "here are answers about 4 networks, and one is needed" in capsys.readouterr().err
    for command in (["evaluate"], ["explain"], ["solve", "--pareto", "step_time,energy_per_token"]):
        assert main([command[0], str(path), *command[1:]]) == 3
        [line, _] = capsys.readouterr().err.splitlines()
        assert "--set cluster.network.0.size=" in line
