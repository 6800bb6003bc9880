"""The command `serve`, the sheet of a serving plan, and command lines of engines."""

import json
import re
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from crossopt.instances.errors import InstanceError
from crossopt.instances.question import read_again, read_given
from crossopt.instances.serving.question import ServingQuestion
from crossopt.instances.serving.workers import Shape
from crossopt.reports.cli import main
from crossopt.reports.commands.asking import read_saved
from crossopt.reports.commands.serving import command_of
from crossopt.reports.render.terminal import terminal
from crossopt.reports.sheets.serving import _short, sheet, workers_texts
from crossopt.reports.sheets.sheet import Breakdown, Picture, Table
from crossopt.solvers.serving.judge import Copies

LINE = ["serve", "llama3-70b", "--gpus", "8xh100", "--input", "2000", "--output", "200", "--tpot", "30ms"]


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def test_the_short_answer_says_plan_latencies_memory_limits_and_doubts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*LINE, "--ttft", "2s", "--rate", "9", "--fewest"]) == 0
    text = said(capsys)
    for part in ("proved optimal", "workers ", "TTFT ", " of 2 s", "TPOT ", " of 30 ms", "USD/h", "weights "):
        assert part in text
    for part in ("of 69.6 GiB", "binds ", "replay p50/p95/p99 at ", "TPOT is 5-6 % off", "proof no plan is below"):
        assert part in text
    assert "in 4 bits" not in text
    assert main(["serve", "qwen3-32b", "--gpus", "1xb200", "--input", "1000", "--output", "100", "--weights", "fp4"]) == 0
    assert "note no dense run in 4 bits is known" in said(capsys)
    assert main([*LINE, "--ttft", "2s", "--cached", "1500"]) == 0
    assert "assumed prompts cached to 75%; fp8 weights, bf16 cache, quality not priced" in said(capsys)
    assert main([*LINE, "--ttft", "2s", "--verbose"]) == 0
    assert re.search(r" tokens: [0-9.]+/s a device, [0-9.]+ a user", said(capsys)), "for which the short answer has no room"


def test_without_a_limit_the_time_to_first_token_is_that_without_queues(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The most throughput keeps workers busy all the time, so that queues have no bound; with a limit they have one."""
    assert main(["serve", "llama3-8b", "--gpus", "1xh100", "--input", "1000", "--output", "200", "--out", str(tmp_path / "r.json")]) == 0
    free = json.loads((tmp_path / "r.json").read_text())["details"]
    capsys.readouterr()
    assert max(free["loads"]) == 1.0
    assert free["ttft"] == free["offers"][0]["ttft"]
    assert main(LINE) == 0
    assert " ms + endless queues (limit it)" in said(capsys), "not the years of a queue near its pole"
    assert main([*LINE, "--ttft", "2s"]) == 0
    assert "endless" not in said(capsys)


def test_what_binds_where_a_rate_is_asked_for_is_what_a_worker_fewer_serves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By hand: copies without queues serve in proportion to their number."""
    line = [*LINE, "--rate", "9/s", "--minimize", "devices", "--at", "mean", "--mode", "together", "--shapes", "one"]
    assert main([*line, "--out", str(tmp_path / "r.json")]) == 0
    text, found = said(capsys), json.loads((tmp_path / "r.json").read_text())
    count, rate = found["answer"]["workers"][0]["count"], found["details"]["rate"]
    assert count > 1
    fewer = rate * (count - 1) / count
    assert fewer < 9.0 <= rate
    assert f"one worker fewer serves {fewer:.4g}/s" in text
    assert f" of 30 ms at {rate:.4g}/s" in text


def test_workers_of_many_shapes_take_four_lines() -> None:
    shapes = [Shape("both", weights="fp8", batch=batch, device="b200", classes="chat") for batch in (1, 2, 4, 8, 16)]
    texts = workers_texts([Copies(2, shape) for shape in shapes])
    assert texts[0] == "2 x tensor 1, batch 1 for chat (all fp8 weights, bf16 cache)"
    assert texts[1:] == ["2 x tensor 1, batch 2 for chat", "2 x tensor 1, batch 4 for chat", "and 2 more shapes"]
    assert workers_texts([Copies(2, shapes[0])]) == ["2 x tensor 1, batch 1 on b200 for chat, fp8 weights, bf16 cache"]


def test_the_question_that_is_kept_has_the_same_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved, out, again = tmp_path / "q.yaml", tmp_path / "r.json", tmp_path / "again.json"
    line = [
        *LINE,
        "--rate",
        "1",
        "--minimize",
        "devices",
        "--cache",
        "fp8,bf16",
        "--mode",
        "together",
        "--rent",
        "2.5",
        "--engine",
        "trtllm",
    ]
    assert main([*line, "--verbose", "--save", str(saved), "--out", str(out)]) == 0
    assert main(["solve", str(saved), "--out", str(again)]) == 0
    assert main(["check", str(out)]) == main(["check", str(again)]) == 0
    assert main(["report", str(out), "--as", "text", "--out", "-"]) == 0
    text = said(capsys)
    assert "kept back by the engine" in text
    assert "2.5 USD for a device and hour" in text


def test_limits_below_the_floor_are_proved_to_clash(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*LINE[:-2], "--tpot", "2ms"]) == 20
    text = said(capsys)
    assert "tpot: 2 ms are asked, no worker takes less than" in text
    assert "the weights alone pass from memory in 2.6" in text


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (("llama3-70b", "llama9"), "'llama9' is no model that is known"),
        (("8xh100", "8xh900"), "h900"),
        (("8xh100", "8xh100,4xh100"), "a kind of device is named twice"),
        (("--tpot", "--at"), "p90, p95, p99"),
        (("30ms", "30"), "--tpot: "),
        (("200", "0"), "--output"),
        (("--tpot", "--weights"), "--weights: '30ms' is unknown"),
        (("--tpot", "--mode"), "--mode: '30ms' is unknown"),
    ],
)
def test_wrong_options_are_refused_by_name(edit: tuple[str, str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([edit[1] if word == edit[0] else word for word in LINE])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


OWN = """\
peak: {bf16: 300 TFLOP/s}
dram: {capacity: 64 GiB, bandwidth: 1 TB/s}
network: {node: {bandwidth: 22 GB/s}}
"""


def test_devices_in_files_are_served_on_and_the_result_holds_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own, out = tmp_path / "own.yaml", tmp_path / "out.json"
    own.write_text(OWN)
    line = ["serve", "llama3-8b", "--gpus", f"4x{own}", "--input", "500", "--output", "100", "--ttft", "2s", "--tpot", "90ms"]
    assert main([*line, "--out", str(out)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "llama3-8b on 4 own" in text
    assert "uncalibrated own has no measured kernels, takes a100-80g's" in text
    own.write_text(OWN.replace("1 TB/s", "2 TB/s"))  # the result stands alone
    assert main(["check", str(out)]) == 0
    assert main(["export", str(out), "--as", "replicas"]) == 0
    forged = tmp_path / "forged.json"
    forged.write_text(out.read_text().replace("bandwidth: 1 TB/s", "bandwidth: 2 TB/s"))
    assert main(["check", str(forged)]) == 30


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (("dram: ", "drm: "), "own.yaml:2:1: drm: unknown key"),
        (("bf16", "fp32"), "has no peak in 16 bits, in which models are served (it has fp32; give bf16 or fp16)"),
        ((OWN, ""), "own.yaml:1:1: the document is empty"),
        (("own.yaml", "no.yaml"), "no.yaml:1:1: there is no such file"),
        (("4xown.yaml", "4xown.yaml,2xA/own.yaml"), "two kinds of devices are called 'own'"),
    ],
)
def test_wrong_files_of_devices_are_refused(
    edit: tuple[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "A").mkdir()
    for place in ("own.yaml", "A/own.yaml"):
        Path(place).write_text(OWN.replace(*edit))
    line = ["serve", "llama3-8b", "--gpus", "4xown.yaml".replace(*edit), "--input", "500", "--output", "100", "--tpot", "90ms"]
    with suppress(SystemExit):
        assert main(line) == 3
    assert message in capsys.readouterr().err


def test_copies_of_heads_are_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "q.yaml"
    path.write_text(
        "kind: serving\nmodel: qwen3-235b-a22b\nhardware: h200\ndevices: 8\nrequests: {input: 8000, output: 100}\n"
        "choices: {tensor: 8, expert: 8, weights: int4, mode: together}\n",
        encoding="utf-8",
    )
    assert main(["solve", str(path), "--verbose"]) == 0
    text = said(capsys)
    assert "4 heads of keys and values on 8 ranks are held 2 times" in text
    assert "products in int4 by a100-80g" in text
    assert "experts are taken at random" in text
    assert "of its training" not in text


@pytest.mark.parametrize(
    ("engine", "flags"),
    [
        (
            "vllm",
            (
                "vllm serve meta-llama/Llama-3-70B",
                "--port 8200",
                "--max-num-seqs ",
                "--max-model-len 8192",
                "NixlConnector",
                "CHANNEL_PORT=5600",
            ),
        ),
        (
            "sglang",
            (
                "--model-path meta-llama/Llama-3-70B",
                "--host 0.0.0.0",
                "--context-length 8192",
                "--disaggregation-mode prefill",
                "bootstrap-port 8998",
                "backend nixl",
            ),
        ),
        (
            "trtllm",
            (
                "trtllm-serve MODEL_FP8",
                "--host 0.0.0.0",
                "--max_seq_len 8192",
                "--max_num_tokens 8192",
                "priced for vllm: other engines differ",
            ),
        ),
    ],
)
def test_engines_are_launched_by_their_options(
    engine: str, flags: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "r.json")
    line = ["serve", "meta-llama/Llama-3-70B", *LINE[2:]]
    assert main([*line, "--mode", "apart", "--context", "8k", "--cached", "500", "--out", out]) == 0
    capsys.readouterr()
    assert main(["export", out, "--as", engine]) == 0
    text = capsys.readouterr().out
    assert "cached tokens of prompts are found on every worker" in text
    assert ("(solve with weights: fp8-block)" in text) == (engine != "trtllm")
    assert [flag for flag in flags if flag not in text] == []


def test_the_answer_shows_the_frontier_and_the_roofline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of workers that no other beats, quicker ones for a user give fewer tokens a device; decode is far below the peak."""
    out, page = tmp_path / "r.json", tmp_path / "page.html"
    assert main([*LINE, "--mode", "apart", "--out", str(out)]) == 0
    assert main(["report", str(out), "--out", str(page)]) == 0
    capsys.readouterr()
    _, result = read_saved(out, "serving")
    question = read_again(result.question, "serving", tmp_path)
    assert isinstance(question, ServingQuestion)
    shown = sheet(question, result)
    sections = {section.title: section.parts for section in shown.sections}
    picture, table = sections["Throughput of a user against that of a device"]
    assert isinstance(picture, Picture) and isinstance(table, Table)
    _, drawn = sections["Workers"]
    assert isinstance(drawn, Breakdown) and drawn.total == result.details.devices
    worker, user, device, _ = table.columns
    assert any("(the plan)" in text for text in worker.texts)
    assert list(user.exact) == sorted(map(float, user.exact), reverse=True)
    assert list(device.exact) == sorted(map(float, device.exact))
    _, table = sections["Roofline of prefill and decode"]
    assert isinstance(table, Table)
    peak, memory = [[float(str(cell)) for cell in table.columns[place].exact] for place in (3, 4)]
    assert 0.3 < peak[0] < 1.0
    assert peak[1] < 0.2 < memory[1] < 1.0
    assert "Roofline of prefill and decode" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("mode", ["apart", "together"])
def test_latencies_are_shown_by_load_up_to_the_first_broken_limit(mode: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At its own rate the plan has the time to first token that its answer states, and no longer time per output token, which falls with
    the load; both rise with the rate, and break a limit next."""
    out = tmp_path / "r.json"
    assert main([*LINE, "--ttft", "600ms", "--mode", mode, "--out", str(out)]) == 0
    capsys.readouterr()
    _, result = read_saved(out, "serving")
    question, said = read_again(result.question, "serving", tmp_path), result.details
    assert isinstance(question, ServingQuestion)
    sections = {section.title: section.parts for section in sheet(question, result).sections}
    first, token, table = sections["Latency against load"]
    assert isinstance(first, Picture) and isinstance(token, Picture) and isinstance(table, Table)
    columns = {column.head: [float(str(cell)) for cell in column.exact] for column in table.columns[:-1]}
    assert columns["requests/s"][9] == pytest.approx(said.rate)
    assert columns["TTFT p95"][9] == pytest.approx(said.ttft, rel=1e-6)
    tokens = columns["TPOT p95"]
    assert 1.3 * tokens[0] < tokens[9] <= said.tpot * (1.0 + 1e-9)
    assert all(column == sorted(column) for column in columns.values())
    for name in ("TTFT", "TPOT"):
        assert all(median <= last for median, last in zip(columns[f"{name} p50"], columns[f"{name} p95"], strict=True))
    verdicts = table.columns[-1].texts
    assert set(verdicts[:10]) == {"kept"}
    assert verdicts[10:] == () or verdicts[10].endswith("broken")


def test_a_model_with_a_dot_in_its_name_keeps_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "llama3.1-8b", "--gpus", "1xh100", "--input", "100", "--output", "20"]) == 0
    assert said(capsys).startswith("llama3.1-8b on 1 h100")


def test_latencies_by_load_end_before_queues_without_end(capsys: pytest.CaptureFixture[str]) -> None:
    """Prefill workers that are busy all the time have years of a queue by the formulas."""
    assert main([*LINE, "--at", "mean", "--mode", "apart", "--verbose"]) == 0
    text = said(capsys)
    assert " 90% " in (table := text.partition("Latency against load")[2].partition("By the formulas")[0])
    assert " 100% " not in table and "e+" not in table
    assert "at which queues grow without end" in text


def test_a_median_that_is_mostly_the_other_percentile_has_no_column(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "qwen3-32b", "--gpus", "4xh200", "--input", "2000", "--output", "500", "--verbose"]) == 0
    head, _, caption = said(capsys).partition("Latency against load")[2].partition("By the formulas")
    assert "requests/s rate p95 p50 p95 limits" in head
    assert "TTFT has the same median where few requests wait" in caption


@pytest.mark.parametrize(("engine", "flag"), [("vllm", "NixlConnector"), ("sglang", "--host 0.0.0.0")])
def test_a_plan_is_written_as_a_manifest_and_as_a_table(engine: str, flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Replicas by devices are those of the plan, in both."""
    out = str(tmp_path / "r.json")
    assert main([*LINE, "--mode", "apart", "--engine", engine, "--out", out]) == 0
    capsys.readouterr()
    assert main(["export", out, "--as", "dynamo"]) == 0
    manifest = yaml.safe_load(capsys.readouterr().out)
    assert manifest["apiVersion"] == "nvidia.com/v1beta1"
    components = {one["name"]: one for one in manifest["spec"]["components"]}
    assert components.pop("Frontend")["type"] == "frontend"
    containers = {name: one["podTemplate"]["spec"]["containers"][0] for name, one in components.items()}
    counts = {name: (components[name]["replicas"], int(one["resources"]["limits"]["nvidia.com/gpu"])) for name, one in containers.items()}
    texts = [one["args"][0] for one in containers.values()]
    assert all(flag in text and "--port" not in text for text in texts)
    assert [
        f"--disaggregation-mode {name.rstrip('0123456789').lower()} " in f"{text} " for name, text in zip(components, texts, strict=True)
    ]
    assert main(["export", out, "--as", "replicas"]) == 0
    table = json.loads(capsys.readouterr().out)
    assert [(row["replicas"], row["devices"]) for row in table] == list(counts.values())
    assert (
        sum(replicas * devices for replicas, devices in counts.values())
        == json.loads(Path(out).read_text(encoding="utf-8"))["details"]["devices"]
    )


def test_no_manifest_is_written_for_tensorrt_llm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "r.json")
    assert main([*LINE, "--engine", "trtllm", "--out", out]) == 0
    capsys.readouterr()
    assert main(["export", out, "--as", "dynamo"]) == 2
    assert "no manifest is written for trtllm" in capsys.readouterr().err


def test_an_engine_without_graphs_is_launched_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "r.json")
    assert main([*LINE, "--engine", "eager", "--out", out]) == 0
    assert "--as vllm" in said(capsys)
    assert main(["export", out, "--as", "vllm"]) == 0
    text = capsys.readouterr().out
    assert "--enforce-eager" in text
    assert "llama3-70b is the name in the registry" in text
    assert "--max-model-len is left out, as no context is stated" in text
    assert "--max-model-len 2200" not in text
    assert "other engines differ" not in text


def test_what_cannot_be_launched_is_refused_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "q.yaml", str(tmp_path / "r.json")
    path.write_text(
        "kind: serving\nrequests: {input: 9, output: 9}\ndevices: 2\nworkers: {one: {role: both, devices: 1, rate: 1}}\n", encoding="utf-8"
    )
    assert main(["solve", str(path), "--out", out]) == 0
    assert main(["export", out, "--as", "vllm"]) == 2
    assert "the workers of this question are stated" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["export", out, "--as", "megatron"])
    assert "take --as vllm or sglang or trtllm" in capsys.readouterr().err


def test_formats_that_are_assumed_are_said_and_those_that_are_named_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(LINE) == 0
    assert "assumed fp8 weights, bf16 cache; quality not priced (--weights, --cache)" in said(capsys)
    assert main([*LINE, "--verbose"]) == 0
    assert "assumed: fp8 weights, bf16 cache; quality not priced" in said(capsys)
    assert main([*LINE, "--weights", "fp8"]) == 0
    assert "assumed bf16 cache; quality not priced (--cache)" in said(capsys)
    assert main([*LINE, "--weights", "fp8", "--cache", "bf16"]) == 0
    assert "assumed" not in said(capsys)


def test_formats_that_are_not_named_are_the_same_with_every_engine() -> None:
    """A comparison of engines is none of formats."""
    text = "kind: serving\nmodel: llama3-70b\nhardware: h200\ndevices: 8\nrequests: {input: 2000, output: 200}\nengine: "
    engines = [read_given(f"{text}{name}\n", "serving").kinds[0].options for name in ("vllm", "sglang", "trtllm", "eager")]
    assert {(one.weights, one.cache) for one in engines} == {(("fp8",), ("bf16",))}


def test_limits_of_means_are_exceeded_in_the_replay_and_those_of_percentiles_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*LINE, "--ttft", "500ms", "--at", "mean"]) == 0
    text = said(capsys)
    assert "beyond TTFT p95 is 1.0" in text
    assert "of 500 ms: limits hold for means alone (--at p95 leaves room)" in text
    assert main([*LINE, "--ttft", "500ms"]) == 0
    text = said(capsys)
    assert "beyond" not in text
    assert "of 30 ms at p95" in text


def test_baselines_stay_in_the_short_answer_of_several_kinds_before_what_is_assumed() -> None:
    """With many lines of workers there is room for one of them, and what the kinds cost alone is what the question asks."""
    rows = [("workers", "a"), ("", "b"), ("", "c"), ("baselines", "h200 alone"), ("assumed", "bf16 cache")]
    made: Any = SimpleNamespace(brief=lambda: rows, shortly=(("cost", "1"),), beside=(("h200 alone", 2.0),), value=1.0)
    for kinds, labels in (((1, 2), ["workers", "", "", "baselines"]), ((1,), ["workers", "", "", "baselines", "assumed"])):
        question: Any = SimpleNamespace(file=SimpleNamespace(objective="cost"), kinds=kinds)
        assert [label for label, _ in _short(made, question)] == labels


def test_a_name_on_the_hub_is_no_model_of_a_file() -> None:
    text = "kind: serving\nmodel: Qwen/Qwen3-32B\nhardware: h200\ndevices: 8\nrequests: {input: 2000, output: 200}\n"
    with pytest.raises(InstanceError) as refused:
        read_given(text, "serving")
    assert "did you mean 'qwen3-32b'?" in str(refused.value)
    assert "a name on the hub belongs in hub: Qwen/Qwen3-32B" in str(refused.value)


def test_the_replay_is_judged_at_the_percentile_of_the_limits(capsys: pytest.CaptureFixture[str]) -> None:
    """The median and 95 of 100 are within a limit that 99 of 100 are not; 90 of 100 are judged where limits hold for those."""
    line = ["serve", "qwen3-32b", "--gpus", "19xh200", "--weights", "fp8", "--input", "3000", "--output", "500", "--ttft", "1s"]
    assert main([*line, "--tpot", "40ms", "--at", "p99"]) == 0
    text = said(capsys)
    assert (
        p99 := re.search(r"beyond TTFT p99 is (1\.\d+) s of 1 s: queues are longer than priced; the replay keeps .* at ([0-9.]+)/s", text)
    )
    assert (rate := re.search(r"rate ([0-9.]+) requests/s", text))
    assert float(p99[1]) > 1.0 and float(p99[2]) < float(rate[1])
    assert main([*line, "--tpot", "40ms", "--at", "p99", "--rate", p99[2]]) == 0
    assert "beyond" not in said(capsys)
    assert main([*line, "--tpot", "25ms", "--rate", "20", "--at", "p90"]) == 0
    assert "replay p50/p90/p99 at 20/s" in said(capsys)


def test_the_plan_is_in_the_frontier_as_it_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A worker that breaks the limit with all slots in use keeps it with fewer, and stands in the table though another beats it."""
    out = tmp_path / "r.json"
    line = ["serve", "qwen3-32b", "--gpus", "64xh200", "--weights", "fp8", "--input", "3000", "--output", "500", "--ttft", "2s"]
    assert main([*line, "--tpot", "25ms", "--rate", "40", "--fewest", "--out", str(out)]) == 0
    capsys.readouterr()
    _, result = read_saved(out, "serving")
    question = read_again(result.question, "serving", tmp_path)
    shown = sheet(question, result)
    assert "Means with all slots in use, before queues" in terminal(shown), "as the page says"
    sections = {section.title: section.parts for section in shown.sections}
    _, table = sections["Throughput of a user against that of a device"]
    assert isinstance(table, Table)
    workers, user, _, limits = table.columns
    [plan] = [index for index, text in enumerate(workers.texts) if text.endswith("(the plan)")]
    assert float(str(user.exact[plan])) < 1.0 / 0.025
    assert limits.texts[plan] == "kept, not full"


def test_several_kinds_are_taken_together_with_what_each_serves_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "r.json"
    line = [word if word != "8xh100" else "4xh100,4xh200" for word in LINE]
    assert main([*line, "--ttft", "1s", "--mode", "together", "--out", str(out)]) == 0
    text = said(capsys)
    for part in ("on h200", "4 h100-sxm and 4 h200", "h200 alone", "h100-sxm alone"):
        assert part in text
    assert main(["check", str(out)]) == main(["export", str(out), "--as", "vllm"]) == 0
    assert main([*line, "--ttft", "1s", "--rate", "1", "--cheapest"]) == 0
    assert "of 1, " in said(capsys)
    with pytest.raises(SystemExit):
        main([*line, "--cheapest"])
    assert "the cheapest devices of several kinds for which rate?" in capsys.readouterr().err


def test_shares_of_rates_and_the_factor_of_queues_are_those_of_the_question(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "q.yaml"
    shares = ["--prefill-share", "0.9", "--decode-share", "0.92", "--ttft-factor", "1.8"]
    assert main([*LINE, *shares, "--context", "8k", "--save", str(path)]) == 0
    text = path.read_text(encoding="utf-8")
    assert 'matching: {"prefill": 0.9, "decode": 0.92, "ttft": 1.8}' in text
    assert "context: 8192" in text
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main([*LINE, "--decode-share", "2"])
    assert "--decode-share: " in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*LINE, "--context", "2k"])
    assert "2,200 tokens of input and output are beyond the context of 2,048" in capsys.readouterr().err


def test_tokens_may_be_in_thousands_and_goals_have_the_names_of_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "q.yaml"
    line = ["serve", "llama3-70b", "--gpus", "8xh100", "--input", "2k", "--output", "200", "--rate", "2", "--rent", "3"]
    assert main([*line, "--fewest", "--save", str(path)]) == 0
    text = path.read_text(encoding="utf-8")
    assert '"input": 2048' in text
    assert 'objective: "devices"' in text
    assert main([*line, "--cheapest", "--save", str(path)]) == 0
    assert 'objective: "cost"' in path.read_text(encoding="utf-8")
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main([*line, "--cheapest", "--fewest"])
    assert "not allowed with argument" in capsys.readouterr().err


def test_money_is_by_the_hour_and_by_tokens_at_the_rate_that_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two devices at 3.6 USD an hour, 4 requests of 500 tokens a second, of which one is asked for: 7.2 USD / 7.2 M and 1.8 M tokens."""
    path = tmp_path / "q.yaml"
    path.write_text(
        "kind: serving\nrequests: {input: 9, output: 500, rate: 1}\ndevices: 2\nrent: 3.6 USD\n"
        "workers: {one: {role: both, devices: 1, rate: 2}}\n",
        encoding="utf-8",
    )
    assert main(["solve", str(path)]) == 0
    assert "money 7.2 USD/h, 1 a million output tokens; 4 at 1/s" in said(capsys)


def test_comparing_engines_ends_where_there_are_too_many_plans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "q.yaml"
    assert main([LINE[0], LINE[1], "--gpus", "64xh100", *LINE[4:], "--save", str(path)]) == 0
    capsys.readouterr()
    assert main(["compare", str(path)]) == 0
    assert "there are more than 2,000,000 plans to look at" in said(capsys)


def test_shares_of_matching_leave_room_for_requests_at_random(capsys: pytest.CaptureFixture[str]) -> None:
    line = [
        "serve",
        "qwen3-32b",
        "--gpus",
        "64xh200",
        "--input",
        "4000",
        "--output",
        "500",
        "--rate",
        "40",
        "--ttft",
        "1s",
        "--tpot",
        "20ms",
    ]
    assert main([*line, "--fewest", "--at", "mean"]) == 0
    assert "beyond TTFT p95 is " in said(capsys)
    assert main([*line, "--fewest", "--at", "mean", "--prefill-share", "0.9", "--decode-share", "0.92", "--ttft-factor", "1.8"]) == 0
    assert "beyond" not in said(capsys)


@pytest.mark.thorough
def test_explaining_says_what_each_change_is_worth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "q.yaml"
    assert main([*LINE, "--ttft", "500ms", "--rate", "4", "--fewest", "--save", str(saved)]) == 0
    capsys.readouterr()
    assert main(["explain", str(saved)]) == 0
    text = said(capsys)
    for part in (
        "with one change",
        "10 % more TTFT",
        "no limit of TPOT",
        "limits at mean",
        "together alone",
        "half as much memory bandwidth again",
        "fp8 cache",
    ):
        assert part in text
    assert main(["explain", str(saved), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    values = {row["change"]: row["value"] for row in found["changes"]}
    better = ["10 % more TTFT", "no limit of TTFT", "limits at mean", "half as much throughput again"]
    assert all(values[name] <= found["value"] for name in better)
    assert min(values["together alone"], values["apart alone"]) == found["value"]
    for words in (["--near", "1%"], ["--force", "mode=apart"]):
        with pytest.raises(SystemExit):
            main(["explain", str(saved), *words])
        assert "does not apply to serving" in capsys.readouterr().err


def test_the_best_workers_of_each_part_matched_are_a_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    """That of AIConfigurator, which its own plan equals where no queue is priced; the plan is the one that it prints for this question."""
    assert main(["solve", "qwen3-32b-on-32-h200"]) == 0
    printed = capsys.readouterr().out
    text = " ".join(printed.split())
    assert len(printed.splitlines()) <= 15
    assert "5 x prefill tensor 4, batch 1" in text
    assert "3 x decode tensor 4, batch 64" in text
    assert "as good: matched" in text


def test_models_with_latents_are_offered_groups_of_one_rank() -> None:
    """As engines serve them; others, and free chips, share attention where nothing is named."""

    def data(text: str) -> tuple[int, ...]:
        file = f"kind: serving\nhardware: h200\ndevices: 8\nrequests: {{input: 2000, output: 200}}\n{text}\n"
        found: tuple[int, ...] = read_given(file, "serving").kinds[0].options.data
        return found

    assert data("model: deepseek-v3") == (1, 8)
    assert data("model: deepseek-v3\nchoices: {tensor: [2, 4]}") == (1, 4)
    assert data("model: deepseek-v3\nchoices: {data: 1}") == data("model: qwen3-235b-a22b") == (1,)


def test_tensorrt_llm_is_launched_with_formats_and_transfers_of_the_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file for each shape, and one for the server in front, with an address for each copy."""
    out = tmp_path / "r.json"
    assert main([*LINE, "--mode", "apart", "--engine", "trtllm", "--cache", "fp8", "--at", "mean", "--out", str(out)]) == 0
    capsys.readouterr()
    assert main(["export", str(out), "--as", "trtllm"]) == 0
    text = capsys.readouterr().out
    files = {name: yaml.safe_load(lines) for name, lines in re.findall(r"(?ms)^cat > (\S+) <<'END'\n(.*?)^END$", text)}
    front = files.pop("disaggregated.yaml")
    workers = json.loads(out.read_text(encoding="utf-8"))["answer"]["workers"]
    assert [f"--extra_llm_api_options {name}" in text for name in files] == [True] * len(workers)
    for worker, settings in zip(workers, files.values(), strict=True):
        prefill = worker["shape"]["role"] == "prefill"
        assert settings["kv_cache_config"] == {"dtype": "fp8", "free_gpu_memory_fraction": 0.9}
        assert settings["cache_transceiver_config"] == {"backend": "UCX", "max_tokens_in_buffer": 2000}
        assert [settings.get(name, False) for name in ("disable_overlap_scheduler", "enable_chunked_prefill")] == [prefill] * 2
        servers = front["context_servers" if prefill else "generation_servers"]
        assert servers["num_instances"] == len(servers["urls"]) == worker["count"]
    assert "MODEL_FP8 is a checkpoint of llama3-70b with fp8 weights" in text


def test_sglang_takes_the_tokens_of_a_step_of_all_groups() -> None:
    """SGLang divides --chunked-prefill-size by --dp-size; vLLM takes --max-num-batched-tokens for each rank."""
    text = "kind: serving\nmodel: deepseek-v3\nhardware: b200\ndevices: 8\nrequests: {input: 2000, output: 200}\n"
    question, shape = read_given(text, "serving"), Shape("prefill", tensor=8, data=8, batch=8, chunk=8192)
    assert "--chunked-prefill-size 65536 " in command_of("sglang", question, shape, 0)
    assert "--max-num-batched-tokens 8192 " in command_of("vllm", question, shape, 0)


@pytest.mark.parametrize("form", ["vllm", "dynamo"])
@pytest.mark.parametrize(("mode", "warned"), [("apart", True), ("together", False)])
def test_pipelines_that_nixl_connector_does_not_start_are_said(
    mode: str, warned: bool, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "q.yaml", str(tmp_path / "r.json")
    choices = f"choices: {{pipeline: 2, tensor: 4, mode: {mode}}}"
    path.write_text(
        f"kind: serving\nmodel: llama3-70b\nhardware: h100-sxm\ndevices: 16\nrequests: {{input: 2000, output: 200}}\n{choices}\n", "utf-8"
    )
    assert main(["solve", str(path), "--out", out]) == 0
    assert ("not started NixlConnector of vllm" in said(capsys)) == warned
    assert main(["export", out, "--as", form]) == 0
    assert ("do not start: NixlConnector of vllm passes no caches between pipelines" in capsys.readouterr().out) == warned


@pytest.mark.thorough
def test_drafts_and_groups_with_attention_of_their_own_are_launched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "r.json"
    line = ["serve", "deepseek-v3", "--gpus", "8xb200", "--input", "2000", "--output", "200", "--mode", "together", "--at", "mean"]
    line += ["--tpot", "20ms"]  # the largest batches are better off without drafts
    assert main([*line, "--data", "8", "--drafts", "3:3.9", "--out", str(out)]) == 0
    assert "attention data 8" in said(capsys)
    options = {
        "vllm": ("--tensor-parallel-size 1 ", "--data-parallel-size 8", '{"method": "mtp", "num_speculative_tokens": 3}'),
        "sglang": ("--tp-size 8 ", "--dp-size 8", "--enable-dp-attention", "--speculative-num-draft-tokens 4"),
        "trtllm": ("--tp_size 8 ", "enable_attention_dp: true", "num_nextn_predict_layers: 3"),
    }
    for engine, parts in options.items():
        assert main(["export", str(out), "--as", engine]) == 0
        text = said(capsys)
        for part in parts:
            assert part in text
    with pytest.raises(SystemExit):
        main([*line, "--drafts", "3"])
    assert "is no pair of drafted tokens and tokens of a step" in capsys.readouterr().err
