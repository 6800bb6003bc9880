"""Measured serving: reading and rejecting rows, errors by hand, fits that find known constants, and what the command prints."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from crossopt.crossflow.serving.steps import Engine
from crossopt.instances.catalogue.engines import ENGINES, constants_of_engine
from crossopt.instances.errors import InstanceError
from crossopt.instances.measured.serving import Copy, Served, is_serving, read_served
from crossopt.reports.api import accuracy
from crossopt.reports.cli import main
from crossopt.solvers.measured.serving import PricedRun, errors_of, price_served, serving_errors
from tests.benchmarks.serving import fit_engine
from tests.paths import reference

HEAD = "model,gpu,engine,engine_version,mode,precision,tp,pp,dp,moe_ep,isl,osl,batch,ttft_ms,tpot_ms,flag"
ROWS = """\
Llama-3.1-70B,H100,vllm,,together,fp8,4,1,1,,1024,1024,16,121.4,13.19,
Llama-3.1-70B,H100,vllm,,together,fp8,8,1,1,,1024,1024,16,93,11.39,
Llama-3.1-70B,H100,vllm,,together,fp8,8,1,1,,1024,1024,64,184.8,15.45,kv16
gpt-oss-120b,H200,trtllm,1.2.0,together,fp4,2,1,1,2,1024,1024,32,300,8,
"""
REJECTED = {
    "Llama-3.1-70B,H100,vllm,,apart,fp8,4,1,1,,1024,1024,16,121,13,": "not stated: d_tp, d_batch, p_tp",
    "Llama-3.1-70B,H100,vllm,,beside,fp8,4,1,1,,1024,1024,16,121,13,": "mode: 'beside' is unknown",
    "DeepSeek-R1,GB200,trtllm,,together,fp8,16,1,1,,1024,1024,16,121,13,": "exchanges of more than 8 tensor ranks are not priced",
    "Llama-3.1-70B,H100,vllm,,together,fp8,4,1,1,,1024,1024,64,121,13,kv8+queue": "do not fit, so that requests wait",
    "Llama-3.1-70B,H100,vllm,,together,fp8,4,1,2,,1024,1024,16,121,13,": "data-parallel ranks of a model without experts are copies",
    "Llama-9,H100,vllm,,together,fp8,4,1,1,,1024,1024,16,121,13,": "'Llama-9' is no model of the registry",
    "Llama-3.1-70B,Z900,vllm,,together,fp8,4,1,1,,1024,1024,16,121,13,": "no device of the registry",
    "Llama-3.1-70B,H100,tgi,,together,fp8,4,1,1,,1024,1024,16,121,13,": "engine: 'tgi' is unknown",
    "Llama-3.1-70B,A100,vllm,,together,fp8,4,1,1,,1024,1024,16,121,13,": "a100-80g does not compute in fp8",
    "Llama-3.1-70B,H100,vllm,,together,fp8,3,1,1,,1024,1024,16,121,13,": "3 tensor ranks do not share 64 heads",
    "Llama-3.1-70B,H100,vllm,,together,fp8,4,1,1,,,1024,16,121,13,": "not stated: isl",
    "Llama-3.1-70B,H100,vllm,,together,fp8,4,1,1,,1024,1024,16,121,,": "no time is stated",
    "Llama-3.1-70B,H100,vllm,,together,fp9,4,1,1,,1024,1024,16,121,13,": "precision: 'fp9' is unknown",
    "Llama-3.1-70B,H100,vllm,,together,fp8,4,1,1,,1024,1024,0,121,13,": "batch: '0' is out of range",
    "Llama-3.1-70B,H100,vllm,,together,fp8,4,1": "the row has 8 cells",
}


def table(tmp_path: Path, rows: str) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text(f"{HEAD}\n{rows}", encoding="utf-8")
    return path


def measured(tmp_path: Path) -> tuple[Served, ...]:
    return read_served(table(tmp_path, ROWS)).measured


def test_rows_are_read_with_what_engines_do_by_default(tmp_path: Path) -> None:
    runs = measured(tmp_path)
    assert [run.cache for run in runs] == ["bf16", "bf16", "bf16", "fp8"]
    assert [run.weights for run in runs] == ["fp8", "fp8", "fp8", "int4"]
    assert (runs[3].expert, runs[3].gpu, runs[3].shape.experts) == (2, "h200", 128)
    assert (runs[0].output_time, runs[0].first_token) == (pytest.approx(0.01319), pytest.approx(0.1214))


def test_models_whose_names_differ_by_a_point_have_their_own_shapes(tmp_path: Path) -> None:
    rows = [f"{name},A100,vllm,,together,bf16,1,1,1,,1024,1024,16,121,13," for name in ("GPT3-13B", "GPT3-1.3B", "Llama-3.1-8B")]
    shapes = [run.shape for run in read_served(table(tmp_path, "\n".join(rows))).measured]
    assert [(shape.layers, shape.hidden) for shape in shapes] == [(40, 5120), (24, 2048), (32, 4096)]


@pytest.mark.parametrize(("row", "reason"), REJECTED.items())
def test_rows_that_cannot_be_priced_have_a_reason(row: str, reason: str, tmp_path: Path) -> None:
    runs = read_served(table(tmp_path, f"{ROWS}{row}\n"))
    assert len(runs.measured) == 4
    assert [reason in one.reason for one in runs.rejected] == [True]
    assert runs.rejected[0].line == 6


def test_files_are_known_by_their_columns(tmp_path: Path) -> None:
    assert is_serving(table(tmp_path, ROWS))
    other = tmp_path / "other.csv"
    other.write_text("model,gpu,tp,batch,note\na,b,1,1,\n", encoding="utf-8")
    assert not is_serving(other)
    for missing, other_name in (("tpot_ms", "tpot"), ("isl", "isls")):
        broken = table(tmp_path, ROWS)
        broken.write_text(broken.read_text(encoding="utf-8").replace(missing, other_name), encoding="utf-8")
        assert is_serving(broken)
        with pytest.raises(InstanceError, match=f"{missing}: this column is missing .is '{other_name}' meant"):
            read_served(broken)
    with pytest.raises(InstanceError, match="no rows"):
        read_served(table(tmp_path, ""))


def test_errors_by_hand(tmp_path: Path) -> None:
    run, other, third, _ = measured(tmp_path)
    rows = [
        PricedRun(replace(run, output_time=0.010, first_token=0.1), 0.011, 0.09),
        PricedRun(replace(other, output_time=0.020, first_token=None), 0.018, 0.09),
        PricedRun(replace(third, output_time=0.040, first_token=0.1), 0.040, 0.12),
    ]
    found = errors_of("all", rows)
    assert found.output_time == pytest.approx((0.1 + 0.1 + 0.0) / 3)
    assert found.output_bias == pytest.approx(0.0)
    assert found.first_token == pytest.approx((0.1 + 0.2) / 2)
    assert found.tau == 1.0
    assert found.whole is None
    assert found.regret == 0.0
    wrong = [rows[0], replace(rows[1], output_time=0.001), rows[2]]
    assert errors_of("all", wrong).regret == pytest.approx(1 - (16 / (0.020 * 8)) / (16 / (0.010 * 4)))


def test_rows_of_one_group_have_the_same_prices_alone(tmp_path: Path) -> None:
    runs = measured(tmp_path)
    together = price_served(runs)
    assert [price_served([run])[0] for run in runs] == list(together)
    labels = [line.label for line in serving_errors(together)]
    assert labels == ["trtllm, gpt-oss-120b on h200", "vllm, Llama-3.1-70B on h100-sxm", "all"]


def test_queues_rule_where_more_than_one_request_waits(tmp_path: Path) -> None:
    """By Little's law: of 8 requests in flight, with 1 s before the first token and 6.99 s after it, 1.001 wait for it on average."""
    run, *_ = measured(tmp_path)
    times = {"batch": 8, "output": 700, "first_token": 1.0}
    at, below = replace(run, **times, output_time=7.001 / 699), replace(run, **times, output_time=6.99 / 699)
    assert (at.queued, below.queued) == (False, True)
    rows = [PricedRun(at, 0.01, 0.8), PricedRun(below, 0.01, 0.4)]
    found = errors_of("all", rows)
    assert (found.first_token, found.queued, found.queued_first_token) == (pytest.approx(0.2), 1, pytest.approx(0.6))
    assert not replace(run, output_time=None).queued
    waiting = replace(at, prefill=Copy(4, 1, 1, 1, 1, waiting=20))
    assert waiting.queued


def test_a_scheduler_that_polls_rarely_delays_first_tokens(tmp_path: Path) -> None:
    """Half the steps between two polls, by the column or by the scripts of public runs."""
    path = tmp_path / "polled.csv"
    head = "model,gpu,engine,precision,tp,isl,osl,batch,recv_interval,ttft_ms,tpot_ms\n"
    lines = ("DeepSeek-V3,B200,sglang,fp8,8,1024,1024,16,,200,10", "DeepSeek-V3,B200,sglang,fp8,8,1024,1024,16,1,200,10")
    path.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    often, always = price_served(read_served(path).measured)
    assert (often.run.polled, always.run.polled, often.run.weights) == (30, 1, "fp8-block")
    assert often.first_token - always.first_token == pytest.approx(14.5 * always.output_time, rel=0.2)
    assert often.output_time == always.output_time


@pytest.mark.thorough
def test_a_fit_finds_the_constants_that_made_the_times(tmp_path: Path) -> None:
    """Two models tell the seconds of a step from those between its kernels, of which one has more."""
    rows = [
        f"{name},H100,vllm,,together,fp8,{tensor},1,1,,{length},512,{batch},1,1,"
        for name, tensor in (("Llama-3.1-70B", 4), ("Llama-3.1-70B", 8), ("Llama-3.1-8B", 1))
        for batch in (2, 64)
        for length in (500, 3000)
    ]
    runs, true = read_served(table(tmp_path, "\n".join(rows))).measured, Engine(2.0e-6, 5.0e-4, 2.0e-5, first=1.5, arrival=0.03, wait=0.1)
    made = [
        replace(run, output_time=priced.output_time, first_token=priced.first_token)
        for run, priced in zip(runs, price_served(runs, true), strict=True)
    ]
    found = fit_engine(made)
    for name in ("gap", "host", "request", "first", "arrival", "wait"):
        assert getattr(found, name) == pytest.approx(getattr(true, name), rel=0.02)


def test_the_command_prints_errors_and_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(table(tmp_path, f"{ROWS}{next(iter(REJECTED))}\n"))
    assert main(["accuracy", path]) == 0
    text = capsys.readouterr().out
    assert "5 rows of serving, 4 priced, 1 rejected" in text
    assert "vllm, Llama-3.1-70B on h100-sxm" in text
    assert "not stated: d_tp" in text
    assert max(map(len, text.splitlines())) < 120
    assert main(["accuracy", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(accuracy(path)))
    for option, message in ((("--by", "gpu"), "these do not apply to serving"), (("--as", "csv"), "serving is printed as text")):
        with pytest.raises(SystemExit):
            main(["accuracy", path, *option])
        assert message in capsys.readouterr().err


def test_workers_apart_have_a_time_each(tmp_path: Path) -> None:
    """Times per output token of the decode worker with its share of the requests in flight, and to the first of the prefill worker."""
    path = tmp_path / "apart.csv"
    head = "model,gpu,engine,mode,precision,tp,isl,osl,batch,concurrency,d_workers,d_tp,d_batch,p_tp,p_batch,ttft_ms,tpot_ms\n"
    row = "Llama-3.1-70B,H100,vllm,apart,fp8,,1024,1024,,{},{},8,{},4,,200,20\n"
    path.write_text(head + row.format(64, 2, "") + row.format("", "", 32) + row.format(64, "", ""), encoding="utf-8")
    runs = read_served(path)
    assert [one.reason for one in runs.rejected] == [
        "requests in flight are those of several decode workers, of which the number is not stated"
    ]
    first, second = price_served(runs.measured)
    assert (first.run.batch, first.run.tensor, first.run.prefill) == (32, 8, Copy(4, 1, 1, 1, 1))
    assert (first.output_time, first.first_token) == (second.output_time, second.first_token)
    together = price_served(read_served(table(tmp_path, ROWS.replace(",8,1,1,,1024,1024,16,", ",8,1,1,,1024,1024,32,"))).measured)[1]
    assert 0.5 * together.output_time < first.output_time < together.output_time
    assert next(serving_errors([first, second])).label == "vllm, Llama-3.1-70B on h100-sxm apart"


def test_whole_requests_are_priced(tmp_path: Path) -> None:
    path = tmp_path / "latency.csv"
    path.write_text("model,gpu,tp,isl,osl,batch,latency_s\nLlama-2-7B,A100,1,200,200,1,2.19\n", encoding="utf-8")
    [row] = price_served(read_served(path).measured)
    assert (row.run.engine, row.run.cache, row.run.weights) == ("eager", "bf16", "bf16")
    assert row.whole == row.first_token + 199 * row.output_time
    assert row.errors[2] == row.whole / 2.19 - 1.0


@pytest.mark.data
def test_public_runs_that_no_constant_was_fitted_to() -> None:
    """Groups of models with experts, and the order of settings within a model, device and lengths."""
    runs = read_served(reference("serving/silicon.csv"))
    lines = {line.label: line for line in serving_errors(price_served(runs.measured))}
    held_back = {
        "vllm, gpt-oss-120b on h200": 0.16,
        "sglang, DeepSeek-R1 on h200": 0.16,
        "trtllm 1.0.0rc3, Qwen3-235B-A22B on h100-sxm": 0.16,
        "vllm, MiniMax-M2.5 on b200": 0.16,
        "vllm, MiniMax-M2.5 on h200": 0.16,
        "vllm, Kimi-K2.5 on h200": 0.16,
    }
    assert [name for name, most in held_back.items() if (lines[name].output_time or 1.0) > most] == []
    first = {
        "vllm, Kimi-K2.5 on h200": 0.25,
        "vllm, Kimi-K2.5 on b200": 0.25,
        "vllm, MiniMax-M2.5 on b200": 0.25,
        "vllm, MiniMax-M2.5 on h200": 0.25,
        "vllm, Qwen3-235B-A22B on h200": 0.25,
        "sglang, DeepSeek-R1 on b200": 0.25,
        "all": 0.25,
    }
    assert [name for name, most in first.items() if (lines[name].first_token or 1.0) > most] == []
    for engine, entry in ENGINES.items():
        worst = max((line.output_time or 0.0 for name, line in lines.items() if name.startswith(f"{engine},")), default=0.03)
        assert f"{worst * 100.0:.0f} %" in entry.dense + entry.with_experts
        late = max((line.first_token or 0.0 for name, line in lines.items() if name.startswith(f"{engine},")), default=0.0)
        assert not late or f"{late * 100.0:.0f} %" in entry.dense + entry.with_experts
    assert (lines["all"].tau or 0.0) > 0.8
    assert (lines["all"].regret or 1.0) < 0.03


@pytest.mark.data
def test_whole_requests_that_no_constant_was_fitted_to() -> None:
    rows = price_served(read_served(reference("serving/imec.csv")).measured)
    held_back = [row for row in rows if (row.run.model, row.run.gpu) != ("Llama-2-7B", "a100-80g")]
    assert len(held_back) == 11
    assert sum(abs(row.errors[2] or 0.0) for row in held_back) / 11 < 0.06


def test_versions_are_told_by_their_first_figures() -> None:
    assert constants_of_engine("vllm", "0.18.0") == constants_of_engine("vllm")
