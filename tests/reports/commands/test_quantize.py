"""The command `quantize`: what its one line asks is the question that it keeps, and each wrong option is refused by its name."""

import json
import re
from pathlib import Path

import pytest

from crossopt.instances.catalogue.registry import device
from crossopt.instances.operators.graph_file import graph_text
from crossopt.reports.cli import main
from tests.commands import exit_code
from tests.every import every
from tests.instances.layers.test_network import small

ASKED = ("--hardware", "h100-sxm", "--formats", "fp8")


@pytest.fixture
def network(tmp_path: Path) -> str:
    path = tmp_path / "net.json"
    path.write_text(graph_text(small()), encoding="utf-8")
    return str(path)


def test_a_device_may_be_a_file_of_the_user(network: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kernels that are launched at once save the launches of all five operators and of a conversion; the saved result holds the file."""
    assert main(["list", "hardware", "--show", "h100-sxm"]) == 0
    sheet, own, out = capsys.readouterr().out, tmp_path / "graphs.yaml", tmp_path / "result.json"
    launch = device("h100-sxm").efficiency
    own.write_text(re.sub(r"(?m)^(  kernel:) .*", r"\1 0.0", sheet, count=1), encoding="utf-8")
    values = []
    for hardware in ("h100-sxm", str(own)):
        line = ["quantize", network, "--hardware", hardware, "--formats", "fp8", "--save", str(tmp_path / "kept.yaml"), "--out", str(out)]
        assert main(line) == 0
        values.append(json.loads(out.read_text(encoding="utf-8"))["value"])
    assert launch is not None and values[0] - values[1] == pytest.approx(6.0 * float(launch["kernel"]), rel=1e-6)
    assert 'hardware: "graphs.yaml"' in (tmp_path / "kept.yaml").read_text(encoding="utf-8")
    own.write_text("peak: {bf16: fast}\n", encoding="utf-8")
    assert main(["check", str(out)]) == 0
    capsys.readouterr()
    assert main(["quantize", network, "--hardware", str(own), "--formats", "fp8"]) == 3
    assert "graphs.yaml:1:14: peak.bf16: 'fast'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["quantize", network, "--hardware", str(tmp_path / "none.yaml"), "--formats", "fp8"])
    assert "none.yaml: there is no such file" in capsys.readouterr().err


def test_the_question_that_is_kept_has_the_same_answer(network: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    losses = tmp_path / "given" / "losses.csv"
    losses.parent.mkdir()
    losses.write_text(f"layer,format,quality\n{small().nodes[0].name},fp8,0.5\n", encoding="utf-8")
    saved, out, again = tmp_path / "kept" / "asked.yaml", tmp_path / "result.json", tmp_path / "again.json"
    saved.parent.mkdir()
    line = [network, *ASKED, "--losses", str(losses), "--budget", "quality=1", "--save", str(saved), "--out", str(out)]
    assert main(["quantize", *line]) == 0
    assert "proved optimal" in capsys.readouterr().out.splitlines()[0]
    assert main(["check", str(out)]) == 0
    assert main(["solve", str(saved), "--out", str(again)]) == 0
    one, other = (json.loads(path.read_text(encoding="utf-8")) for path in (out, again))
    assert (one["value"], one["answer"]) == (other["value"], other["answer"])
    assert one["value"] == one["bound"]


def test_a_device_is_named_by_the_beginning_of_its_name(network: str, tmp_path: Path) -> None:
    saved = tmp_path / "asked.yaml"
    assert main(["quantize", network, "--hardware", "h100", "--formats", "fp8", "--save", str(saved)]) == 0
    assert 'hardware: "h100-sxm"' in saved.read_text(encoding="utf-8")


def test_a_table_of_losses_is_written_to_be_filled_in(network: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "losses.csv"
    assert main(["quantize", network, *ASKED[:2], "--formats", "fp8, int8", "--losses-template", str(table)]) == 0
    assert "6 rows; fill in the column quality" in capsys.readouterr().out
    lines = table.read_text(encoding="utf-8").splitlines()
    assert lines[:3] == [
        "layer,format,quality,operator,weights,macs",
        f"a0,fp8,,convolution,{256 * 256 * 9},{64 * 196 * 256 * 256 * 9}",
        f"a0,int8,,convolution,{256 * 256 * 9},{64 * 196 * 256 * 256 * 9}",
    ]
    asked = [network, *ASKED, "--losses", str(table), "--budget", "quality=1"]
    assert main(["quantize", *asked]) == 3
    assert "more is empty (fill it in, or take the rows out)" in capsys.readouterr().err
    table.write_text("\n".join(line.replace(",,", ",0.25,") for line in lines), encoding="utf-8")
    assert main(["quantize", *asked]) == 0
    assert "quality 0.5 of 1" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(SystemExit):
        main(["quantize", network, *ASKED[:2], "--formats", "fp7", "--losses-template", str(table)])
    assert "--formats: 'fp7' (one of fp32, tf32" in capsys.readouterr().err


def test_a_batch_that_does_not_divide_is_answered_with_one_that_does(network: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["quantize", network, *ASKED[:2], "--devices", "48"])
    assert "take a multiple of them as the batch, such as --set batch=48" in capsys.readouterr().err


def test_layers_are_split_over_devices_in_one_line(network: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved, out, again = tmp_path / "asked.yaml", tmp_path / "result.json", tmp_path / "again.json"
    line = [network, *ASKED[:2], "--devices", "8", "--splits", "batch, features", "--training", "--save", str(saved), "--out", str(out)]
    assert main(["quantize", *line, "--verbose"]) == 0
    printed = capsys.readouterr().out
    assert all(text in printed for text in ("relayouts", "devices", "MLSL's closed form", "relayouts between layers come on top"))
    assert main(["check", str(out)]) == 0
    assert main(["solve", str(saved), "--out", str(again)]) == 0
    one, other = (json.loads(path.read_text(encoding="utf-8")) for path in (out, again))
    assert (one["value"], one["answer"]) == (other["value"], other["answer"])
    assert "batch" in one["answer"]["strategies"]


def test_a_wrong_row_of_losses_is_refused_with_its_file_and_line(
    network: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    line = ["quantize", network, *ASKED, "--losses", "losses.csv", "--budget", "quality=1"]
    Path("losses.csv").write_text(f"layer,format,quality\n{small().nodes[0].name},fp8,high\n", encoding="utf-8")
    assert main(line) == 3
    assert "losses.csv:2:1: quality: 'high' is no loss of quality" in capsys.readouterr().err
    Path("losses.csv").write_text("layer,quality\n", encoding="utf-8")
    assert main(line) == 3
    assert "losses.csv:1:1: the column format is missing" in capsys.readouterr().err
    Path("losses.csv").write_text(f"layer,format,quality\n{small().nodes[0].name},fp8,0.5\n", encoding="utf-8-sig")  # as spreadsheets do
    assert main(line) == 0


def test_a_budget_that_no_choice_keeps_is_proved_and_said_with_its_least(network: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quantize", network, *ASKED, "--budget", "size=1B"]) == 20
    out = " ".join(capsys.readouterr().out.split())
    assert "B, above its budget of 1 B" in out


@every(
    ("line", "message"),
    [
        (("--hardware", "h1000", "--formats", "fp8"), "--hardware: 'h1000' is no known device"),
        (("--hardware", "h100-sxm", "--formats", "fp9"), "--formats: 'fp9' is unknown (did you mean 'fp8'?)"),
        (("--hardware", "h100-sxm", "--formats", "int4"), "say its dense peak by --peak int4=SPEED, such as int4=2PFLOP/s"),
        (
            (*ASKED, "--budget", "quality=1"),
            "--budget quality: what layers lose of the quality is needed (add --losses FILE.csv; --losses-template",
        ),
        ((*ASKED, "--peak", "int8"), "--peak int8: FORMAT=SPEED is needed"),
        ((*ASKED, "--peak", "int8=0TFLOP/s"), "--peak: zero is no figure to work with (give one above 0)"),
        ((*ASKED, "--budget", "speed=2"), "--budget speed=2: FIGURE=AMOUNT is needed, of time,"),
        ((*ASKED, "--budget", "size=1MB", "--budget", "size=2MB"), "--budget size=2MB: size is given twice (keep one)"),
        ((*ASKED, "--budget", "time=2kg"), "--budget time: '2kg' has the unknown unit 'kg'"),
        ((*ASKED, "--losses", "nowhere.csv"), "--losses nowhere.csv: there is no such file (check the name and the folder)"),
        ((*ASKED, "--minimize", "speed"), "--minimize: 'speed' is unknown"),
        ((*ASKED, "--tie", "all"), "--tie: 'all' is unknown"),
        (ASKED[:2], "--formats: name those to choose among, such as fp8, or give --devices"),
        ((*ASKED[:2], "--devices", "3"), "--devices: a batch of 64 has no equal parts for 3 devices"),
        ((*ASKED[:2], "--devices", "many"), "--devices: 'many'"),
        ((*ASKED[:2], "--devices", "8", "--splits", "tensor"), "--splits: 'tensor' is unknown"),
        ((*ASKED, "--splits", "batch"), "--splits: operators are split over devices where --devices is given"),
    ],
)
def test_a_wrong_option_is_refused_by_its_name(
    line: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "net.json"
    path.write_text(graph_text(small()), encoding="utf-8")
    code = exit_code(["quantize", str(path), *line])
    assert code == 2
    assert message in capsys.readouterr().err
