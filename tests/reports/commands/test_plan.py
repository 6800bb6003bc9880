"""The command `plan`: a training run in one line, its verdict, and the question that it keeps."""

from pathlib import Path
from types import SimpleNamespace

import pytest

import crossopt
from crossopt.instances.errors import RefusedError
from crossopt.instances.question import read
from crossopt.reports.cli import main
from crossopt.tests.every import every

SMALL = ["plan", "gpt3-125m", "--gpus", "8xa100-80g"]
Captured = pytest.CaptureFixture[str]


def test_a_verdict_has_a_plan_a_proof_doubts_and_what_to_do_next(capsys: Captured, tmp_path: Path) -> None:
    saved, result = tmp_path / "run.yaml", tmp_path / "run.json"
    options = ["--tokens", "300B", "--deadline", "60d", "--rent", "1.5", "--save", str(saved), "--out", str(result)]
    assert main([*SMALL, *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split()[0] for line in lines if line.startswith("  ") and line[2:3].strip()]
    assert rows[:6] == ["plan", "step", "speed", "run", "rent", "memory"]
    assert rows[-1] == "next"
    assert "proof" in rows
    assert len(lines) <= 26
    asked = read(saved)
    assert (asked.goal.tokens, asked.cluster.devices) == (300e9, 8)
    assert main(["check", str(result)]) == 0
    capsys.readouterr()
    assert main(["solve", str(saved), "--engine", "boxes"]) == 0
    assert lines[0].split("   ")[1].split(" on ")[0] in capsys.readouterr().out, "solve says the same days"


def test_a_deadline_that_is_missed_is_said_with_the_devices_that_it_takes(capsys: Captured) -> None:
    assert main([*SMALL, "--tokens", "300B", "--deadline", "1d"]) == 20
    out = " ".join(capsys.readouterr().out.split())
    assert "times the deadline, proved; at least about" in out


def test_fewer_devices_are_compared_where_they_are_asked_for(capsys: Captured) -> None:
    asked = ["plan", "gpt3-125m", "--gpus", "16xa100-80g", "--tokens", "10B"]
    assert main([*asked, "--cheapest", "--rent", "1"]) == 0
    cheap = capsys.readouterr().out
    assert "Devices beside each other" in cheap
    costs = [
        int(line.split(" USD")[0].split()[-1].replace(",", ""))
        for line in cheap.partition("beside each other")[2].splitlines()
        if " USD " in line
    ]
    assert len(costs) == 2
    assert f"{min(costs):,} USD" in cheap.splitlines()[0]
    assert main([*asked, "--fewest", "--deadline", "1d"]) == 0
    assert "on 8 a100-80g" in capsys.readouterr().out.splitlines()[0]


def test_where_nothing_fits_the_limit_is_named(capsys: Captured) -> None:
    assert main(["plan", "llama3-405b", "--gpus", "1xa100-80g"]) == 20
    out = " ".join(capsys.readouterr().out.split())
    assert "no plan fits on 1 a100-80g, proved" in out
    assert "memory: every plan needs at least" in out


@every(
    ("arguments", "message"),
    [
        (["--deadline", "9d"], "--deadline: the length of the run is needed with it"),
        (["--tokens", "1T", "--deadline", "30"], "--deadline: 30 has no unit (write 30d for days)"),
        (["--tokens", "many"], "--tokens: 'many' is no count"),
        (["--cheapest"], "--cheapest: the price of a device and an hour is needed"),
        (["--tokens", "1T", "--deadline", "soon"], "--deadline: 'soon'"),
        (["--tokens", "1T", "--rent", "cheap"], "--rent: 'cheap"),
        (["--context", "0"], "--context: '0' is no count (write for example 8k)"),
        (["--batch", "x"], "--batch: 'x' is no count"),
        (["--precision", "fp3"], "crossopt: --precision: 'fp3' is unknown (did you mean 'fp32'?)"),
        (["--stack", "nemo"], "crossopt: --stack: 'nemo' is unknown"),
    ],
)
def test_what_is_wrong_is_said_with_its_option(arguments: list[str], message: str, capsys: Captured) -> None:
    try:
        code = main([*SMALL, *arguments])
    except SystemExit as ended:
        code = int(str(ended.code))
    assert code in {2, 3}
    assert message in capsys.readouterr().err


def test_python_gives_the_plan_with_its_verdict() -> None:
    answer = crossopt.plan("gpt3-125m", "8xa100-80g", tokens=10e9, batch=64)
    assert (answer.proved, answer.answer.design.plan.data) == (True, 8)
    assert answer.text.startswith("gpt3-125m-8xa100-80g   ")
    assert answer.text.count("\n") < 26
    with pytest.raises(ValueError, match=r"^--tokens: 'some' is no count"):
        crossopt.plan("gpt3-125m", "8xa100-80g", tokens="some")


def test_a_data_frame_needs_a_package_that_makes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = crossopt.solve("tiny")
    seen = {}
    monkeypatch.setattr("crossopt.reports.api.find_spec", lambda name: name == "polars" or None)
    monkeypatch.setattr(
        "crossopt.reports.api.import_module", lambda name: SimpleNamespace(DataFrame=lambda rows: seen.setdefault(name, rows))
    )
    assert answer.to_frame() == answer.table()
    assert list(seen) == ["polars"]
    monkeypatch.setattr("crossopt.reports.api.find_spec", lambda name: None)
    with pytest.raises(RefusedError, match="needs pandas or polars"):
        answer.to_frame()


def test_only_whole_nodes_are_tried_and_a_likely_delay_is_said(capsys: Captured) -> None:
    """24 devices are three nodes: half of them would be one and a half."""
    assert main(["plan", "gpt3-125m", "--gpus", "24xa100-80g", "--batch", "48", "--tokens", "1B", "--fewest", "--deadline", "9d"]) == 0
    assert "on 24 a100-80g" in capsys.readouterr().out.splitlines()[0]
    answer = crossopt.plan("gpt3-125m", "8xa100-80g", tokens="10B")
    days = answer.value * -(-10e9 // (2048 * 2048)) / 86400.0
    assert main([*SMALL, "--tokens", "10B", "--deadline", f"{days * 1.001:.9f} d"]) == 0
    assert "which may miss the deadline" in " ".join(capsys.readouterr().out.split())
