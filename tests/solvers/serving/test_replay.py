"""The replay of serving plans: alone, at random, beyond the rate, and beside the formulas."""

from dataclasses import replace
from itertools import pairwise

import pytest

from crossopt.instances.question import read_given
from crossopt.instances.serving.question import ServingQuestion
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.serving.engines import program
from crossopt.solvers.serving.judge import ServingFigures, ServingPlan, judge
from crossopt.solvers.serving.replay import Replayed, _prices, replay

TEXT = """\
kind: serving
model: llama3-8b
hardware: h100-sxm
devices: 4
requests: {input: 1000, output: 50}
choices: {tensor: 1, batch: 16, prefill_batch: 2, mode: MODE}
"""


def planned(mode: str) -> tuple[ServingQuestion, ServingPlan, ServingFigures]:
    question: ServingQuestion = read_given(TEXT.replace("MODE", mode), "serving")
    plan = program(question, Limits(), unwatched).answer
    assert plan is not None
    return question, plan, judge(question, plan).details


def at(rate: float, mode: str, seed: int = 0) -> Replayed:
    question, plan, said = planned(mode)
    asked = replace(question, file=replace(question.file, requests=replace(question.file.requests, rate=rate)))
    found = replay(asked, plan, said, seed)
    assert found is not None
    return found


def test_a_request_alone_takes_its_prefill_and_steps_of_one_sequence() -> None:
    question, plan, _ = planned("together")
    prices, found = _prices(question, plan.workers[0].shape, 1), at(0.01, "together")
    assert found.first == (pytest.approx(prices.pieces[0][0]),) * 3
    assert found.token == (pytest.approx(prices.decode[1]),) * 3


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
    assert (found.share, found.requests) == (8 / 1000, 3 * 8 * 16)
    assert 0.5 * said.tpot < found.token[0] <= said.tpot * 1.05


def test_answers_of_one_token_end_with_their_first() -> None:
    question: ServingQuestion = read_given(TEXT.replace("MODE", "together").replace("output: 50", "output: 1"), "serving")
    plan = program(question, Limits(), unwatched).answer
    assert plan is not None
    found = replay(question, plan, judge(question, plan).details)
    assert found is not None
    assert found.token == ()
    assert found.first[0] > 0.0
