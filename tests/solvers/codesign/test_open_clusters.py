"""Batches, numbers of devices and networks as choices: against every one asked for on its own, with every edit of the answer refused."""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crossopt
from crossopt.formulation.codesign.forms import FORMS
from crossopt.instances.codesign.instance import MultiScaleQuestion
from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read_again
from crossopt.reports.cli import main
from crossopt.reports.shown import page_of, text_of
from crossopt.solvers.answer import Limits, Progress, to_text
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.devices import NOT_THE_FASTEST, solve_counts
from tests.solvers.codesign.asking import again, answered, checked, reread
from tests.solvers.codesign.editing import passes, refused, remembering
from tests.solvers.codesign.questions import COUNTED, TINY_FREE, ask
from tests.solvers.codesign.test_agreement import agree

ADDING = """\
kind: codesign
workload: {model: gpt3-6.7b, global_batch: 64, precision: bf16}
cluster: {devices: 64, cluster: {bandwidth: 2 GB/s, reduces: true}}
hardware: a100-80g
choices: {tensor: [2, 4, 8], microbatch: [1, 2, 4], zero: [0, 1]}
"""


POOL = """\
kind: codesign
workload: {model: gpt3-13b, global_batch: 64, precision: bf16}
cluster: {devices: 8, host: HOST}
hardware: a100-40g
choices: {tensor: [1, 8], microbatch: [1, 2], zero: [1, 2], offload: [all]}
"""


def test_switches_that_add_up_may_change_the_plan_and_every_engine_sees_it() -> None:
    """Gradients are then all-reduced by more replicas, where rings had better scatter them for fewer."""
    answers = [crossopt.solve(ADDING, engine=engine) for engine in ("exhaustive", "boxes", "milp", "cpsat")]
    plain = crossopt.solve(ADDING.replace(", reduces: true", ""))
    assert {(answer.plan.data, answer.plan.zero, answer.value) for answer in answers} == {(16, 0, answers[0].value)}
    assert plain.value > 1.2 * answers[0].value
    assert (plain.plan.data, plain.plan.zero) == (8, 1)
    assert all(crossopt.check(answer).accepted for answer in answers)
    saved = to_text(answers[0].result)
    assert checked(reread(json.loads(saved))).accepted
    assert not checked(reread(json.loads(saved.replace("reduces: true", "reduces: false")))).accepted


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("{memory: 0 GiB, bandwidth: 400 GB/s}", "cluster.host.memory: zero is no figure"),
        ("{memory: 4 TiB, bandwidth: 0 GB/s}", "cluster.host.bandwidth: zero is no figure"),
        ("{memory: 4 TiB, bandwidth: 400 GB/s, shared_by: 0}", "'0' is too small"),
        ("{memory: 4 TiB, bandwidth: 400 GB/s, latency: -1 us}", "is negative"),
        ("null", "there is no host to offload to"),
    ],
)
def test_pools_that_hold_nothing_are_refused_in_a_sentence(host: str, message: str) -> None:
    with pytest.raises(InstanceError, match=message) as caught:
        crossopt.solve(POOL.replace("HOST", host))
    assert len(caught.value.faults) == 1


def test_a_pool_smaller_than_what_plans_offload_is_the_reason_that_there_is_none() -> None:
    found = crossopt.solve(POOL.replace("HOST", "{memory: 1 GiB, bandwidth: 400 GB/s, shared_by: 8}"))
    assert found.value is None
    assert found.proved
    assert any("host memory: no design keeps it" in reason for reason in found.result.reasons)
    held = crossopt.solve(POOL.replace("HOST", "{memory: 4 TiB, bandwidth: 400 GB/s, shared_by: 8}"))
    assert held.plan.offload == "all"


# The number of devices as a choice: against every number asked for on its own, with every edit of the answer refused.

FREE = TINY_FREE.replace("devices: 8", "devices: [4, 8, 16]") + (
    "prices: {electricity: 0.1 USD/kWh, lifetime: 4 year, wafer: 9000 USD, stack: 120 USD, package: 900 USD}\n"
)


def counted(text: str, *settings: str) -> MultiScaleQuestion:
    asked = read_again({"text": text, "source": "question.yaml", "settings": list(settings)}, "codesign")
    assert isinstance(asked, MultiScaleQuestion)
    return asked


@cache
def solved(text: str, *settings: str, engine: str = "auto", seconds: float = float("inf")) -> DesignResult:
    return answered(counted(text, *settings), engine, Limits(seconds))


@cache
def alone(text: str, count: int, *settings: str) -> float | None:
    """The optimum of the question with this number of devices."""
    return answered(ask(text, *settings, f"cluster.devices={count}"), "exhaustive").value


@pytest.mark.slow
@pytest.mark.parametrize(("text", "engine"), [(COUNTED, "exhaustive"), (FREE, "boxes")])
@pytest.mark.parametrize("objective", ["step_time", "cost_per_token", "energy_per_token"])
def test_the_best_number_of_devices_is_that_of_the_best_answer(text: str, objective: str, engine: str) -> None:
    setting = f"objective={objective}"
    result = solved(text, setting, engine=engine)
    counts = counted(text, setting).counts
    values = [alone(text, count, setting) for count in counts]
    least = min(value for value in values if value is not None)
    assert (result.status, result.value, result.bound, result.gap) == ("OPTIMAL", least, least, 0.0)
    assert result.answer is not None
    assert result.answer.devices == counts[values.index(least)]
    assert result.answer == result.parts[values.index(least)].answer
    assert [part.value for part in result.parts] == values
    assert checked(again(result)).refused == ()


@pytest.mark.parametrize("text", [COUNTED, pytest.param(FREE, marks=pytest.mark.slow)])
def test_the_fewest_devices_are_the_first_that_keep_the_time_with_its_least_step_and_all_fewer_are_refuted(text: str) -> None:
    times = {count: alone(text, count) for count in counted(text).counts}
    *fewer, last = times
    for count, time in times.items():
        if time is None:
            continue
        result = solved(text, "objective=devices", f"budget.step_time={time!r} s")
        assert (result.status, result.value, result.bound) == ("OPTIMAL", count, count)
        assert result.parts[-1].value == time
        assert [answer.status for answer in result.parts] == ["INFEASIBLE"] * (len(result.parts) - 1) + ["OPTIMAL"]
        assert result.notes == ()
        assert checked(result).refused == ()
    assert len([time for time in times.values() if time is not None]) > 1, "times must differ for this to say anything"
    assert fewer
    none = solved(text, "objective=devices", f"budget.step_time={0.99 * (times[last] or 1.0)!r} s")
    assert (none.status, none.value, none.bound, none.proved) == ("INFEASIBLE", None, None, True)
    assert checked(none).refused == ()
    assert "`crossopt explain FILE --set cluster.devices=16 --set objective=step_time` names what clashes" in told(none)


def test_progress_shows_the_number_of_devices_where_the_fewest_are_asked_for_and_seconds_elsewhere() -> None:
    """A step of 3.8 s is no 3.8 devices."""
    for objective, values in (("devices", {2.0, 4.0, 8.0, 16.0}), ("step_time", None)):
        seen = list[Progress]()
        solve_counts(counted(COUNTED, f"objective={objective}", "budget.step_time=1 s"), "exhaustive", Limits(), seen.append)
        best = {one.best for one in seen if one.best is not None}
        assert best
        assert (best <= values) if values else max(best) < 1.0
        assert all(one.label.startswith("2 devices: ") for one in seen[:1])


PLANLESS = COUNTED.replace("[2, 4, 8, 16]", "[2, 4, 202]")


def test_a_number_of_devices_without_any_plan_is_told_so_and_not_as_a_limit_that_breaks() -> None:
    """202 devices are 101 replicas or more, which no batch of 64 can be dealt to; memory has nothing to do with it."""
    result = solved(PLANLESS)
    assert [part.value is None for part in result.parts] == [False, False, True]
    lines = told(result)
    assert "no plan at all: data x microbatch divides the global batch 64: no" in lines
    assert "no design keeps every limit" not in lines
    assert checked(result).refused == ()
    tight = told(solved(PLANLESS, "budget.step_time=1 us", "objective=devices"))
    assert tight.count("no design keeps every limit") == 2
    assert tight.count("no plan at all") == 1
    assert "--set cluster.devices=4 --set objective=step_time` names what clashes" in tight, "202 devices have no plan to explain"


def test_without_a_proof_for_each_number_nothing_is_proved() -> None:
    late = solved(COUNTED, seconds=0.0)
    assert (late.status, late.value, late.bound, late.stopped) == ("UNKNOWN", None, None, "time limit")
    rule = solved(COUNTED, engine="expert")
    assert (rule.status, rule.bound, rule.proved) == ("FEASIBLE", None, False)
    fewest = solved(COUNTED, "objective=devices", engine="expert")
    assert (fewest.status, fewest.value, fewest.bound, fewest.proved) == ("OPTIMAL", 2.0, 2.0, True)
    assert fewest.notes == (NOT_THE_FASTEST,), "no fewer, but perhaps faster"
    assert (fewest.parts[0].status, fewest.parts[0].proved) == ("FEASIBLE", False)
    for result in (late, rule, fewest):
        assert checked(result).refused == ()


def test_an_interrupt_leaves_the_numbers_that_were_not_looked_at_without_a_bound() -> None:
    seen: list[int] = []

    def interrupting(progress: Progress) -> None:
        del progress
        seen.append(1)
        if len(seen) > 1:
            raise KeyboardInterrupt

    result = answered(counted(COUNTED), "exhaustive", watch=interrupting)
    assert (len(result.parts), result.stopped, result.status, result.bound) == (2, "interrupted", "FEASIBLE", None)
    assert checked(result).refused == ()
    assert "not evaluated (interrupted)" in told(result)


def told(result: DesignResult) -> str:
    """What the terminal shows."""
    return " ".join(text_of("codesign", read_again(result.question, "codesign"), result).split())


def _without_the_best(data: dict[str, Any]) -> None:
    """Deny a design: the whole answer says that the number with the best one has none."""
    best = next(part for part in data["parts"] if part["answer"] == data["answer"])
    best |= {"value": None, "bound": None, "gap": None, "answer": None, "details": None, "status": "INFEASIBLE"}
    best |= {"baselines": [], "trace": []}
    _, other = min((part["value"], place) for place, part in enumerate(data["parts"]) if part["value"] is not None)
    data |= {name: data["parts"][other][name] for name in ("value", "bound", "answer", "details")}


def _cut_short(data: dict[str, Any]) -> None:
    data["parts"].pop()


def _another_question(data: dict[str, Any]) -> None:
    """Answers to an easier question under this one's name."""
    data["question"]["settings"] = ["choices.tensor=1"]


def _swapped(data: dict[str, Any]) -> None:
    data["parts"][0], data["parts"][1] = data["parts"][1], data["parts"][0]


def _fewer_numbers(data: dict[str, Any]) -> None:
    data["question"]["settings"] = ["cluster.devices=[2, 4, 8]"]
    data["parts"].pop()


def _another_answer(data: dict[str, Any]) -> None:
    """The answer for another number of devices, with its own value."""
    other = next(part for part in data["parts"] if part["answer"] != data["answer"])
    data |= {name: other[name] for name in ("value", "bound", "answer", "details")}


def _one_number(data: dict[str, Any]) -> None:
    data["question"]["settings"] = ["cluster.devices=8"]


def _field(name: str, value: object) -> Callable[[dict[str, Any]], None]:
    def edit(data: dict[str, Any]) -> None:
        data[name] = value

    return edit


EDITED = (_without_the_best, _cut_short, _another_question, _another_answer, _swapped, _fewer_numbers, _one_number)
EDITS = {
    **{edit.__name__: edit for edit in EDITED},
    "value": _field("value", 1e-3),
    "bound": _field("bound", 1e-3),
    "gap": _field("gap", 0.1),
    "status": _field("status", "FEASIBLE"),
    "stopped": _field("stopped", "interrupted"),
    "proved": _field("proved", False),
    "gap_asked": _field("gap_asked", 0.5),
    "seconds": _field("seconds", 0.0),
    "notes": _field("notes", [NOT_THE_FASTEST]),
    "engine": _field("engine", "boxes"),
    "baselines": _field("baselines", [{"name": "x", "value": None, "answer": None, "note": "", "seconds": 0.0}]),
    "proof": _field("proof", {"form": "unverified", "by": "hand"}),
    "parts": _field("parts", []),
}


def test_an_answer_that_was_edited_is_refused() -> None:
    """With other words that a result may say, and parts that are answers."""
    text = to_text(solved(COUNTED, "objective=cost_per_token"))
    question = counted(COUNTED, "objective=cost_per_token")
    accepted = []
    with remembering() as family:
        assert passes(family, question, json.loads(text))
        for name, edit in EDITS.items():
            data = json.loads(text)
            edit(data)
            asked = data["question"]["settings"] != ["objective=cost_per_token"]
            accepted += [name] if not (refused(data) if asked else not passes(family, question, data)) else []
    assert accepted == []


def test_every_figure_inside_the_answers_is_checked() -> None:
    data = json.loads(to_text(solved(COUNTED, "objective=devices", "budget.step_time=1 ms")))
    assert data["status"] == "INFEASIBLE"
    for place in range(len(data["parts"])):
        for name, value in (("status", "UNKNOWN"), ("proved", False), ("engine", "boxes"), ("proof", None)):
            edited = copy.deepcopy(data)
            edited["parts"][place][name] = value
            assert checked(reread(edited)).refused, (place, name)
        for name, value in (("by", "a guess"), ("conflicts", []), ("form", "enumerated-together")):
            edited = copy.deepcopy(data)
            edited["parts"][place]["proof"][name] = value
            assert refused(edited), (place, name)


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "fleet.yaml", tmp_path / "answer.json"
    path.write_text(COUNTED, encoding="utf-8")
    assert main(["validate", str(path)]) == 0
    assert "2 devices: 1 hardware point x 12 combinations of plan choices; 4 devices: " in capsys.readouterr().out
    assert main(["solve", str(path), "--set", "objective=cost_per_token", "--out", str(out), "--strict"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("fleet   proved optimal in ")
    assert "2 devices are best, of 4 numbers of devices\n" in text
    assert "USD/token" in text
    assert main(["check", str(out)]) == 0
    assert "16 devices: the proof was repeated" in capsys.readouterr().out
    assert main(["export", str(out)]) == 3
    assert "(solve the best of them on its own: crossopt solve QUESTION --set cluster.devices=2 --out" in capsys.readouterr().err
    assert main(["solve", str(path), "--set", "objective=devices", "--set", "budget.step_time=1 ms"]) == 20
    assert "no design keeps the limits, proved in" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command", [["explain"], ["evaluate"], ["compare"], ["export", "--as", "lp"], ["solve", "--pareto", "step_time,power"]]
)
def test_commands_for_one_number_say_how_to_ask_for_one(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(COUNTED, encoding="utf-8")
    assert main([command[0], str(path), *command[1:]]) == 3
    assert "--set cluster.devices=16" in capsys.readouterr().err


# The batch as a choice: against every batch asked for on its own, per sample or per token, with every edit of the answer refused.

BATCHES = (32, 64, 128)
OPEN = f"workload.global_batch={list(BATCHES)}"
ONE = "cluster.devices=8"


@cache
def batches_solved(text: str, *settings: str, engine: str = "auto") -> DesignResult:
    return answered(counted(text, *settings), engine)


def only(text: str, batch: int, *settings: str) -> float | None:
    """The optimum with one batch."""
    return alone(text, 8, *settings, f"workload.global_batch={batch}")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "engine", "objective"),
    [
        (COUNTED, "exhaustive", ""),
        (FREE, "boxes", "cost_per_token"),
        pytest.param(COUNTED, "exhaustive", "energy_per_token", marks=pytest.mark.slow),
    ],
)
def test_the_best_batch_is_that_of_the_best_answer_per_sample_or_token(text: str, engine: str, objective: str) -> None:
    result = batches_solved(text, OPEN, ONE, *([f"objective={objective}"] if objective else []), engine=engine)
    values = [only(text, batch, f"objective={objective or 'time_per_sample'}") for batch in BATCHES]
    least = min(value for value in values if value is not None)
    assert (result.status, result.value, result.bound, result.gap) == ("OPTIMAL", least, least, 0.0)
    assert result.answer is not None
    assert (result.answer.devices, result.answer.batch) == (8, BATCHES[values.index(least)])
    assert [part.value for part in result.parts] == values
    assert checked(again(result)).refused == ()


def test_the_time_of_a_sample_is_the_step_time_over_the_batch() -> None:
    for batch in BATCHES:
        step = only(COUNTED, batch)
        assert step is not None
        assert only(COUNTED, batch, "objective=time_per_sample") == step / batch


def test_the_answer_says_by_what_batches_are_compared() -> None:
    words = " ".join(told(batches_solved(COUNTED, OPEN, ONE)).split())
    assert "question 3 batches, batch 128 is best, proved" in words
    assert "batches are compared by the time of a sample, as a smaller one has the shorter step; how well each of them learns" in words
    assert "The design with batch 128" in words
    asked, result = counted(COUNTED, OPEN, ONE), batches_solved(COUNTED, OPEN, ONE)
    page = str(page_of("codesign", asked, result, {}))
    assert "With which batch, of 32, 64 or 128, can" in page
    assert "batches are compared by the time of a sample" in page


def test_numbers_of_devices_and_batches_are_asked_about_in_pairs() -> None:
    result = batches_solved(COUNTED, OPEN, "objective=cost_per_token", "cluster.devices=[4, 16]")
    pairs = [(devices, batch) for devices in (4, 16) for batch in BATCHES]
    values = [alone(COUNTED, devices, "objective=cost_per_token", f"workload.global_batch={batch}") for devices, batch in pairs]
    assert [part.value for part in result.parts] == values
    least = min(value for value in values if value is not None)
    assert result.answer is not None
    assert (result.answer.devices, result.answer.batch) == pairs[values.index(least)]
    assert checked(result).refused == ()


def test_the_fewest_devices_that_are_done_in_time_with_any_of_the_batches() -> None:
    """A run of 512 x 512 x 128 tokens is 512 steps of the greatest batch; 4 devices are in time with that one alone."""
    tokens = 512 * 512 * 128
    seconds = {(devices, batch): alone(COUNTED, devices, f"workload.global_batch={batch}") for devices in (2, 4) for batch in BATCHES}
    runs = {pair: tokens / (512 * pair[1]) * step for pair, step in seconds.items() if step is not None}
    second, first = sorted(runs[4, batch] for batch in BATCHES)[1::-1]
    assert first < second < min(runs[2, batch] for batch in BATCHES)
    goal = f"goal={{tokens: {tokens}, deadline: {(first + second) / 2!r} s}}"
    result = batches_solved(COUNTED, OPEN, "objective=devices", goal)
    assert (result.status, result.value, result.bound) == ("OPTIMAL", 4.0, 4.0)
    assert result.answer is not None
    assert runs[4, result.answer.batch] == first
    assert checked(result).refused == ()


def test_an_export_says_how_to_have_the_best_batch_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question, answers, one = (tmp_path / name for name in ("batches.yaml", "answers.json", "one.json"))
    question.write_text(COUNTED, encoding="utf-8")
    settings = [part for one in (OPEN, ONE) for part in ("--set", one)]
    assert main(["solve", str(question), *settings, "--out", str(answers)]) == 0
    capsys.readouterr()
    assert main(["export", str(answers), "--as", "fsdp"]) == 3
    told = capsys.readouterr().err
    assert "on its own: crossopt solve QUESTION --set workload.global_batch=128 --out FILE)" in told
    assert main(["solve", str(question), *settings, "--set", "workload.global_batch=128", "--out", str(one)]) == 0
    assert main(["export", str(one), "--as", "megatron"]) == 0


# Sizes, bandwidths and shares of a network as choices: against every network asked for on its own, whatever its shapes.

NETWORKS_FIXED = """\
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
NETWORKS_FREE = TINY_FREE.replace("cluster: {devices: 8, devices_per_node: 4}", "cluster: {devices: 8, network: NETWORK}").replace(
    "  compute_area", "  network_area: [4 mm^2, 12 mm^2]\n  network_edge: [0.05, 0.1]\n  compute_area"
)


@cache
def networks_solved(*settings: str) -> DesignResult:
    return answered(counted(NETWORKS_FIXED, *settings), "auto")


def test_the_best_network_is_that_of_the_best_answer_to_each_written_alone() -> None:
    """Sizes multiply to sixteen, and of four pairs of bandwidths those beyond the limit are left out."""
    sizes = [(inner, outer) for inner, outer in product((1, 2, 4, 8, 16), (2, 8)) if inner * outer == 16]
    pairs = [(inner, outer) for inner, outer in product((10, 30), (20, 30)) if inner + outer <= 40]
    values = [
        answered(ask(NETWORKS_FIXED, f"cluster.network=[{_one(inner, 'ring', slow)}, {_one(outer, 'rails', fast)}]")).value
        for (inner, outer), (slow, fast) in product(sizes, pairs)
    ]
    result, least = networks_solved(), min(value for value in values if value is not None)
    assert [part.value for part in result.parts] == values
    assert (result.status, result.value, result.bound) == ("OPTIMAL", least, least)
    assert result.answer is not None
    assert result.answer.network == counted(NETWORKS_FIXED).scales[values.index(least)].network
    assert checked(again(result)).refused == ()


def _one(size: int, shape: str, speed: int) -> str:
    return f"{{size: {size}, shape: {shape}, bandwidth: {speed} GB/s}}"


def test_an_answer_about_another_network_is_refused() -> None:
    result = networks_solved()
    assert result.answer is not None
    [another, *_] = {place.network for place in counted(NETWORKS_FIXED).scales} - {result.answer.network}
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
    asked = ask(NETWORKS_FREE.replace("NETWORK", "[{size: 8, shape: ring, links: node, share: 0.02}]"), *SHARED)
    [first, *_] = agree(asked, form, solvers)
    evaluation = first.details.evaluation
    assert evaluation is not None
    assert evaluation.breakdown["shared links"] > 0.1 * evaluation.step_time


def _agree(network: str, objective: str, *settings: str) -> None:
    text = NETWORKS_FREE.replace("NETWORK", network)
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
    text = (
        NETWORKS_FIXED.partition("cluster:")[0]
        + "cluster: {devices: 2, network: ["
        + wide
        + "], network_bandwidth: LEAST}\nhardware: a100-40g\n"
    )
    assert prod(ask(text.replace("LEAST", "8 GB/s")).cluster.level_sizes) == 2
    with pytest.raises(InstanceError, match="495 networks are left open, more than the 64"):
        ask(text.replace("LEAST", "12 GB/s"))
    with pytest.raises(InstanceError, match="at least 1,000 networks are left open"):
        ask(text.replace("LEAST", "400 GB/s"))
    with pytest.raises(InstanceError, match="no sizes of those listed multiply to the 4194304 devices"):
        ask(
            NETWORKS_FIXED,
            "cluster.devices=4194304",
            f"cluster.network=[{'{size: divisors}, ' * 7}{{size: 3}}]",
            "cluster.network_bandwidth=~",
        )


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
        ask(NETWORKS_FIXED, *settings)
    assert told in str(raised.value)
    assert "1 fault" in str(raised.value)


def test_an_answer_tells_every_network_and_the_best_in_full(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, saved = tmp_path / "question.yaml", tmp_path / "found.json"
    path.write_text(NETWORKS_FIXED, encoding="utf-8")
    assert main(["solve", str(path), "--verbose", "--out", str(saved)]) == 0
    text = capsys.readouterr().out
    best = (
        counted(NETWORKS_FIXED).part_name(counted(NETWORKS_FIXED).scales.index(networks_solved().answer.scale))
        if networks_solved().answer
        else ""
    )
    assert f"question   4 networks, {best} is best, proved in" in text
    assert all(place.network in text for place in counted(NETWORKS_FIXED).scales)
    assert "each network" in str(page_of("codesign", counted(NETWORKS_FIXED), networks_solved(), {}).sections)
    assert main(["export", str(saved), "--as", "torchtitan"]) == 3
    assert "here are answers about 4 networks, and one is needed" in capsys.readouterr().err
    for command in (["evaluate"], ["explain"], ["solve", "--pareto", "step_time,energy_per_token"]):
        assert main([command[0], str(path), *command[1:]]) == 3
        [line, _] = capsys.readouterr().err.splitlines()
        assert "--set cluster.network.0.size=" in line
