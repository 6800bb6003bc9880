"""The replay of serving plans: alone, at random, beyond the rate, and beside the formulas."""

from dataclasses import replace
from itertools import pairwise

import pytest

from crossopt.instances.catalogue.engines import ENGINES
from crossopt.instances.question import read_given
from crossopt.instances.serving.question import LimitsSection, ServingQuestion
from crossopt.instances.serving.workers import UNITS, shapes_of
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.serving.engines import program
from crossopt.solvers.serving.judge import Copies, ServingFigures, ServingPlan, judge
from crossopt.solvers.serving.replay import (
    Replayed,
    _decode_all,
    _few,
    _Prices,
    _prices,
    _Request,
    _Slots,
    easier_replayed,
    fewest_replayed,
    replay,
)

TEXT = """\
kind: serving
model: llama3-8b
hardware: h100-sxm
devices: 4
requests: {input: 1000, output: 50}
limits: {at: mean}
choices: {tensor: 1, batch: 16, prefill_batch: 2, mode: MODE}
"""


def planned(mode: str) -> tuple[ServingQuestion, ServingPlan, ServingFigures]:
    question: ServingQuestion = read_given(TEXT.replace("MODE", mode), "serving")
    plan = program(question, Limits(), unwatched).answer
    assert plan is not None
    return question, plan, judge(question, plan).details


def at(rate: float, mode: str, seed: int = 0) -> Replayed:
    question, plan, said = planned(mode)
    asked = replace(question, classes=tuple(replace(one, rate=rate) for one in question.classes))
    found = replay(asked, plan, said, seed)
    assert found is not None
    return found


def test_a_request_alone_takes_its_prefill_and_steps_of_one_sequence() -> None:
    question, plan, _ = planned("together")
    prices, found = _prices(question, plan.workers[0].shape, 1), at(0.01, "together")
    assert found.first == (pytest.approx(prices.pieces[0][0][0][0] + float(ENGINES["vllm"].constants.arrival)),) * 3
    assert found.token == (pytest.approx(prices.decode[1]),) * 3


@pytest.mark.parametrize(("mode", "rate"), [("together", 180), ("apart", 150)])
def test_fewer_workers_are_named_only_where_they_carry_the_rate_and_replays_keep_the_limits(mode: str, rate: int) -> None:
    text = (
        TEXT.replace("MODE", mode)
        .replace("devices: 4", "devices: 24\nobjective: devices")
        .replace("output: 50", f"output: 50, rate: {rate}")
    )
    question: ServingQuestion = read_given(text.replace("{at: mean}", "{ttft: 1 s, tpot: 9 ms}"), "serving")
    plan = program(question, Limits(), unwatched).answer
    assert plan is not None
    said = judge(question, plan).details
    fewer = fewest_replayed(question, plan, said)
    assert all(one.count <= copies.count and one.shape == copies.shape for one, copies in zip(fewer, plan.workers, strict=True))
    for role in {one.shape.role for one in fewer}:
        assert sum(one.count * offer.rate for one, offer in zip(fewer, said.offers, strict=True) if one.shape.role == role) >= rate * UNITS
    for seed in range(2) if fewer != plan.workers else ():
        found = replay(question, ServingPlan(fewer), said, seed)
        assert found is not None
        assert found.first[1] <= question.ttft
        assert found.token[1] <= question.tpot
    lax = fewest_replayed(replace(question, file=replace(question.file, limits=LimitsSection(at="p95"))), plan, said)
    assert sum(one.count for one in lax) <= sum(one.count for one in fewer)
    assert all(one.count * offer.rate - offer.rate < rate * UNITS for one, offer in zip(lax, said.offers, strict=True))
    assert sum(one.count for one in fewer) < sum(one.count for one in plan.workers)


def test_other_shapes_on_fewer_devices_keep_the_limits_in_replays_though_not_by_the_formulas() -> None:
    text = (
        TEXT.replace("MODE", "apart")
        .replace("devices: 4", "devices: 24\nobjective: devices")
        .replace("output: 50", "output: 50, rate: 100")
    )
    question: ServingQuestion = read_given(text.replace("{at: mean}", "{ttft: 150 ms, tpot: 9 ms}"), "serving")
    plan = program(question, Limits(), unwatched).answer
    assert plan is not None
    proved = judge(question, plan).details.devices
    found = easier_replayed(question, proved)
    assert found is not None
    workers, devices = found
    other = judge(question, ServingPlan(workers))
    assert devices == other.details.devices < proved
    assert other.violations
    for seed in range(2):
        times = replay(question, ServingPlan(workers), other.details, seed)
        assert times is not None
        assert times.first[1] <= question.ttft
        assert times.token[1] <= question.tpot
    assert easier_replayed(question, devices) is None


@pytest.mark.parametrize("mode", ["together", "apart"])
def test_latencies_rise_with_the_rate_and_percentiles_with_their_percent(mode: str) -> None:
    _, _, said = planned(mode)
    found = [at(share * said.rate, mode) for share in (0.01, 0.5, 0.9, 1.5)]
    for lower, higher in pairwise(found):
        assert lower.first[1] < higher.first[1]
        assert lower.token[0] <= higher.token[0]
    for one in found:
        assert list(one.first) == sorted(one.first)
        assert list(one.token) == sorted(one.token)
    assert found[-1].first[2] > 5 * found[0].first[2]


@pytest.mark.parametrize("mode", ["together", "apart"])
def test_one_seed_is_one_replay(mode: str) -> None:
    assert at(10.0, mode, 1) == at(10.0, mode, 1)
    assert at(10.0, mode, 1) != at(10.0, mode, 2)


@pytest.mark.parametrize("mode", ["together", "apart"])
def test_times_per_token_near_the_rate_are_below_those_with_all_slots_in_use(mode: str) -> None:
    question, plan, said = planned(mode)
    found = replay(question, plan, said)
    assert found is not None
    assert found.rate == 0.9 * said.rate
    assert 0.5 * said.tpot < found.token[0] <= said.tpot * 1.05


def test_few_workers_stand_for_many() -> None:
    question, plan, said = planned("together")
    many = ServingPlan((replace(plan.workers[0], count=1000),))
    found = replay(question, many, replace(said, rate=250 * said.rate))
    assert found is not None
    assert (found.share, found.requests) == (32 / 1000, 40 * 32 * 16)
    assert 0.5 * said.tpot < found.token[0] <= said.tpot * 1.05


def test_answers_of_one_token_end_with_their_first() -> None:
    question: ServingQuestion = read_given(TEXT.replace("MODE", "together").replace("output: 50", "output: 1"), "serving")
    plan = program(question, Limits(), unwatched).answer
    assert plan is not None
    found = replay(question, plan, judge(question, plan).details)
    assert found is not None
    assert found.token == ()
    assert found.first[0] > 0.0


def test_decode_workers_get_sequences_by_their_slots_and_a_wait_for_one_counts_to_the_first_token() -> None:
    """Steps of a second, answers of 3 tokens: one slot and three take four of five requests at once, and the fifth waits for 2 s."""
    prices = _Prices([0.0, 1.0, 1.0, 1.0], (), [2], 1)
    own, requests = [_Slots(prices, 1, 1), _Slots(prices, 3, 3)], [_Request(0.0) for _ in range(5)]
    _decode_all(own, [(0.0, number) for number in range(5)], requests)
    assert [request.first for request in requests] == [0.0, 0.0, 0.0, 0.0, 2.0]
    assert [request.done for request in requests] == [2.0, 2.0, 2.0, 2.0, 4.0]
    assert [worker.steps for worker in own] == [2, 4]


def test_unequal_decode_workers_share_the_rate_so_that_no_token_is_late() -> None:
    text = (
        TEXT.replace("MODE", "apart").replace("tensor: 1, batch: 16", "tensor: [1, 2], batch: [8, 64]").replace("devices: 4", "devices: 5")
    )
    question: ServingQuestion = read_given(text, "serving")
    plan = _unequal(question)
    said = judge(question, plan).details
    found = replay(question, plan, said)
    assert found is not None
    assert found.token[1] <= said.tpot


def _unequal(question: ServingQuestion) -> ServingPlan:
    """A prefill worker, and two decode workers of 8 and of 64 slots."""
    shapes = list(shapes_of(question))
    first = next(shape for shape in shapes if shape.role == "prefill" and shape.tensor == 2)
    second = [next(s for s in shapes if s.role == "decode" and (s.tensor, s.batch) == pair) for pair in ((1, 8), (2, 64))]
    return ServingPlan((Copies(1, first), *(Copies(1, shape) for shape in second)))


def test_the_share_of_few_workers_is_that_of_their_rates_by_role() -> None:
    question, plan, said = planned("apart")
    prefill, decode = plan.workers
    many = ServingPlan((Copies(96, prefill.shape), Copies(32, decode.shape)))
    few, share = _few(question, many, said)
    assert [copies.count for copies in few] == [24, 8]
    assert share == 0.25
    few, share = _few(question, ServingPlan((Copies(127, prefill.shape), Copies(1, decode.shape))), said)
    assert [copies.count for copies in few] == [32, 1]
    assert share == 32 / 127
    assert _few(question, plan, said) == ([*plan.workers], 1.0)


@pytest.mark.parametrize(("devices", "ttft", "tpot", "mode"), [(4, 300, 12, "together"), (8, 150, 12, "apart"), (6, 900, 30, "together")])
def test_the_95th_percentile_of_a_plan_that_leaves_room_is_within_the_limits(devices: int, ttft: int, tpot: int, mode: str) -> None:
    """At the plan's own rate; where a fifth more requests come, one of the limits is exceeded."""
    limits = f"{{ttft: {ttft} ms, tpot: {tpot} ms}}"
    text = TEXT.replace("MODE", mode).replace("{at: mean}", limits).replace("devices: 4", f"devices: {devices}")
    question: ServingQuestion = read_given(text.replace("output: 50", "output: 200"), "serving")
    plan = program(question, Limits(), unwatched).answer
    assert plan is not None
    said = judge(question, plan).details
    found = replay(question, plan, said)
    assert found is not None
    assert found.rate == said.rate
    assert found.first[1] <= question.ttft
    assert found.token[1] <= question.tpot
    assert said.ttft <= question.ttft
    assert said.tpot <= question.tpot


def test_groups_with_attention_of_their_own_bear_the_rate_of_their_plan() -> None:
    """With both kinds of engines: requests come one by one, so that prompts are seldom in all groups at once."""
    rates = []
    for engine in ("sglang", "trtllm"):
        question: ServingQuestion = read_given(
            f"kind: serving\nmodel: deepseek-v3\nhardware: h200\ndevices: 8\nengine: {engine}\nrequests: {{input: 2000, output: 200}}\n"
            "limits: {ttft: 3 s, tpot: 100 ms}\n"
            "choices: {tensor: 8, expert: 8, data: 8, batch: [64, 128], weights: fp8, cache: bf16, mode: together}\n",
            "serving",
        )
        plan = program(question, Limits(), unwatched).answer
        assert plan is not None
        said = judge(question, plan).details
        found = replay(question, plan, said)
        assert found is not None
        assert found.first[1] <= question.ttft
        assert found.token[1] <= question.tpot
        rates.append(said.rate)
    assert max(rates) < 1.5 * min(rates)


def test_a_class_of_few_requests_is_judged_by_its_own_percentiles() -> None:
    """One long prompt of a hundred breaks the limit of all percentiles, though 95 of 100 requests are far within it."""
    text = TEXT.replace("MODE", "together").replace("limits: {at: mean}", "limits: {ttft: 200 ms, at: p95}\nobjective: devices")
    long = ", long: {input: 30000, output: 50, rate: 0.1}"
    firsts = list[tuple[float, ...]]()
    for more in (long, ""):
        classes = f"classes: {{short: {{input: 300, output: 50, rate: 10}}{more}}}"
        question = read_given(text.replace("requests: {input: 1000, output: 50}", classes), "serving")
        plan = ServingPlan((Copies(2, next(shapes_of(question))),))
        found = replay(question, plan, judge(question, plan).details)
        assert found is not None
        firsts.append(found.first)
    assert firsts[0][0] > 0.2 > firsts[1][1]


def test_classes_share_slots_by_their_rates_and_keep_the_limits() -> None:
    text = """\
kind: serving
model: llama3-8b
hardware: h100-sxm
devices: 16
objective: devices
classes: {short: {input: 300, output: 100, rate: 40}, long: {input: 6000, output: 200, rate: 4}}
limits: {ttft: 800 ms, tpot: 20 ms}
choices: {tensor: 1, batch: [16, 32], mode: MODE, pools: POOLS}
"""
    for mode, pools in (("together", "shared"), ("apart", "shared"), ("together", "own")):
        question: ServingQuestion = read_given(text.replace("MODE", mode).replace("POOLS", pools), "serving")
        plan = program(question, Limits(), unwatched).answer
        assert plan is not None
        found = replay(question, plan, judge(question, plan).details)
        assert found is not None
        assert found.rate == pytest.approx(44.0)
        assert found.first[1] <= question.ttft
        assert found.token[1] <= question.tpot
        assert found.first[2] > found.first[0]
