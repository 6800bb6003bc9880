"""Logs of requests: reading, plans for them, and the replay step by step."""

from pathlib import Path
from random import Random

import pytest

from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read, read_given
from crossopt.instances.serving.log import classes_of, requests_in
from crossopt.instances.serving.question import ServingQuestion
from crossopt.instances.serving.workers import Offer, priced, shapes_of
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.checking import check, solve_and_verify
from crossopt.solvers.family import family_of
from crossopt.solvers.serving.logged import Logged, _Prices, _Worker, cache_room, replay_log
from crossopt.solvers.serving.replay import percentiles, replay
from tests.paths import reference

TEXT = """\
kind: serving
model: llama3-8b
hardware: h100-sxm
devices: 4
requests: {input: 1000, output: 50}
limits: {at: mean}
choices: {tensor: 1, batch: 16, mode: MODE, prefill_batch: 1, weights: bf16}
"""
LOG = "arrival_s,isl,osl,ttft_ms,tpot_ms,e2e_ms\n" + "".join(
    f"{number * 0.25},{200 + 100 * (number % 5)},{20 + number % 7},50,9,600\n" for number in range(40)
)


def offers(mode: str = "together") -> tuple[ServingQuestion, list[Offer]]:
    question: ServingQuestion = read_given(TEXT.replace("MODE", mode), "serving")
    return question, list(priced(question, shapes_of(question)))


def test_a_request_alone_takes_its_prompt_and_steps_of_one_sequence() -> None:
    question, [offer] = offers()
    request = Logged(3.0, 1000, 50)
    replay_log(question, [(1, offer)], [request])
    prices = _Prices(question, offer.shape, 1050.0)
    assert request.first - 3.0 == pytest.approx(prices.step(1000.0, 1000.0, 0, 0.0, prices.whole(1000.0)))
    assert request.token_time == pytest.approx(prices.step(1.0, 1.0, 1, 1025.5, 0.0))
    assert request.first - 3.0 == pytest.approx(offer.queue[4], rel=0.02)


def test_a_prompt_goes_to_the_worker_that_is_free_first() -> None:
    question, found = offers("apart")
    prefill, decode = (next(offer for offer in found if offer.shape.role == role) for role in ("prefill", "decode"))
    requests = [Logged(at, 1000, 50) for at in (0.0, 0.001, 0.002, 0.003)]
    replay_log(question, [(2, prefill), (2, decode)], requests)
    waits = [request.first - request.arrived for request in requests]
    assert waits[1] == pytest.approx(waits[0], rel=0.05)
    assert 1.5 * waits[0] < waits[2] == pytest.approx(waits[3], rel=0.1)


def test_prompts_share_a_step_up_to_its_tokens_and_wait_for_a_slot() -> None:
    """Of 40 prompts of 1,000 tokens at once, eight are computed in the first step, sixteen have slots, and the rest wait for these."""
    question, [offer] = offers()
    requests = [Logged(0.0, 1000, 50) for _ in range(40)]
    replay_log(question, [(1, offer)], requests)
    firsts = sorted({round(request.first, 9) for request in requests})
    assert [sum(round(request.first, 9) == first for request in requests) for first in firsts[:2]] == [8, 8]
    assert sum(request.first < min(one.done for one in requests) for request in requests) == 16
    assert max(request.done for request in requests) > 2 * min(request.done for request in requests)


def test_a_full_cache_sends_the_last_sequence_back_and_all_are_served() -> None:
    question, [offer] = offers()
    worker = _Worker(_Prices(question, offer.shape, 400.0), offer.shape, 700.0, prefills=True, decodes=True)
    requests = [Logged(0.0, 100, 200) for _ in range(6)]
    for request in requests:
        worker.add(request)
    worker.run(float("inf"))
    assert all(request.done < float("inf") and request.tokens == 200 for request in requests)
    free = [Logged(0.0, 100, 200) for _ in range(6)]
    replay_log(question, [(1, offer)], free)
    assert max(request.done for request in requests) > max(request.done for request in free)
    assert worker.groups[0].held == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("mode", ["together", "apart"])
def test_times_are_those_of_the_replay_of_equal_requests(mode: str) -> None:
    """A log of equal requests at random arrivals has about the percentiles of the replay by lengths alone."""
    question, found = offers(mode)
    workers = [(1, offer) for offer in found if offer.shape.role != "prefill"] + [
        (2, offer) for offer in found if offer.shape.role == "prefill"
    ]
    random, at, requests = Random(1), 0.0, list[Logged]()
    for _ in range(400):
        at += random.expovariate(10.0)
        requests.append(Logged(at, 1000, 50))
    replay_log(question, workers, requests)
    middle = sorted(request.token_time for request in requests)[200]
    decode = next(offer for offer in found if offer.shape.role != "prefill")
    assert 0.8 * decode.queue[6] < middle < 1.2 * decode.tpot
    assert all(request.arrived < request.first < request.done for request in requests)
    assert cache_room(question, decode.shape, decode) > 16 * 1050


def test_a_log_is_planned_for_by_classes_and_replayed(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(LOG)
    path = tmp_path / "q.yaml"
    path.write_text(
        TEXT.replace("MODE", "together")
        .replace("requests: {input: 1000, output: 50}", "log: {file: log.csv, classes: 3}\nobjective: devices")
        .replace("{at: mean}", "{ttft: 500 ms, tpot: 20 ms}")
    )
    question = read(path)
    assert [one.input for one in question.classes] == [239, 400, 562]
    assert question.rate == pytest.approx(40 / (39 * 0.25 * 40 / 39))
    result = solve_and_verify(family_of("serving"), question, "auto", Limits(), unwatched)
    assert check(family_of("serving"), result, tmp_path).accepted
    found = replay(question, result.answer, result.details)
    assert found is not None
    assert found.requests == 40
    assert found.first[1] <= 0.5
    assert found.token[1] <= 0.02
    assert found.whole[0] > found.first[0]


def test_names_and_units_of_public_logs() -> None:
    mooncake = '{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1]}\n'
    mooncake += '{"timestamp": 3000, "input_length": 7, "output_length": 1}\n'
    azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.9799600,110,27\n"
    burst = "Timestamp,Model,Request tokens,Response tokens\n5,A,472,18\n45,A,1087,230\n118.5,B,417,276\n"
    vllm = "run,id,planned_s,queued_s,isl,osl,ttft_ms\nA,0,0.0,0.1,5,6,100\nA,1,2.0,2.1,5,6,\nB,2,9.0,9.1,5,6,1\n"
    assert [one.arrived for one in requests_in(mooncake, "m.jsonl", None)] == [0.0, 3.0]
    assert [(one.arrived, one.input) for one in requests_in(azure, "a.csv", None)] == [(0.0, 4808), (1.0, 110)]
    assert [(own.arrived, own.output) for own in requests_in(burst, "b.csv", None)] == [(0.0, 18), (40.0, 230), (113.5, 276)]
    found = requests_in(vllm, "v.csv", "A")
    assert [(one.arrived, one.first) for one in found] == [(0.0, 0.1), (2.0, None)]
    assert [one.rate for one in classes_of(found, 6)] == [0.25, 0.25]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("isl,osl\n1,2\n1,2\n", "no column has arrivals"),
        ("arrival,osl\n0,2\n1,2\n", "no column has the tokens of the prompt"),
        ("arrival,isl,osl\n0,2,0\n1,2,1\n", "'0' is no number of tokens of the answer"),
        ("arrival,isl,osl\nsoon,2,1\n1,2,1\n", "'soon' is no time"),
        ("arrival,isl,osl\nnan,2,1\n1,2,1\n", "'nan' is no time"),
        ("arrival,isl,osl\n1,2,1\n1,2,1\n", "all requests arrive at once"),
        ("arrival,isl,osl\n1,2,1\n1e300,2,1\n", "the requests arrive over 1e+300 s, more than 1e+09 s"),
        ("arrival,isl,osl\n1,2,1\n", "the log has 1 of the 2 requests or more that make a rate"),
        ('{"arrival": 0, "isl": 1}\n[]\n', "line 2: this is no JSON object"),
        (f'{{"arrival": {"[" * 100_000}', "line 1: this is nested too deep"),
    ],
)
def test_faults_of_logs_are_sentences(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"line|requests") as caught:
        requests_in(text, "log.csv", None)
    assert message in str(caught.value)
    (tmp_path / "log.csv").write_text(text)
    path = tmp_path / "q.yaml"
    path.write_text(TEXT.replace("MODE", "together").replace("requests: {input: 1000, output: 50}", "log: {file: log.csv}"))
    with pytest.raises(InstanceError, match=r"log\.file"):
        read(path)


def test_an_empty_log_is_said_to_be_empty() -> None:
    with pytest.raises(InstanceError, match=r"the file is empty \(name a CSV file with a header and rows\)"):
        requests_in("", "log.csv", None)


@pytest.mark.data
@pytest.mark.parametrize(
    ("run", "setting", "token", "whole"),
    [
        ("L2", "model: llama3.1-8b\ndevices: 1\nchoices: {tensor: 1, batch: 128, ", 0.05, 0.10),
        ("L4", "model: qwen3-30b-a3b\ndevices: 2\nchoices: {tensor: 2, expert: 2, data: 2, batch: 256, ", 0.05, 0.10),
    ],
)
def test_logs_of_vllm_are_replayed_within_a_few_percent(run: str, setting: str, token: float, whole: float) -> None:
    """Mean time per output token, and the 95th percentile of whole requests."""
    path = reference("serving/llmservingsim.csv")
    text = f"kind: serving\nhardware: rtx-pro-6000\nlimits: {{at: mean}}\n{setting}chunk: 2048, weights: bf16, mode: together}}\n"
    question: ServingQuestion = read_given(f"{text}log: {{file: {path}, run: {run}}}\n", "serving")
    result = solve_and_verify(family_of("serving"), question, "auto", Limits(), unwatched)
    found = replay(question, result.answer, result.details)
    assert found is not None
    assert found.mean_token == pytest.approx(sum(one.token or 0.0 for one in question.log) / len(question.log), rel=token)
    assert found.whole[1] == pytest.approx(percentiles([one.whole or 0.0 for one in question.log])[1], rel=whole)
