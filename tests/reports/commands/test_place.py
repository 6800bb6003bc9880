"""The command `place`: what its one line asks is the question that it keeps, its text says which operators each device has, and each wrong
option is refused by its name."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import crossopt
from crossopt.instances.errors import RefusedError
from crossopt.instances.operators.graph_file import graph_text
from crossopt.reports.cli import main
from tests.commands import exit_code
from tests.every import every
from tests.instances.layers.test_network import small


@pytest.fixture
def network(tmp_path: Path) -> str:
    path = tmp_path / "net.json"
    path.write_text(graph_text(small(3)), encoding="utf-8")
    return str(path)


def test_the_question_that_is_kept_has_the_same_answer(network: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved, out, again = tmp_path / "kept" / "asked.yaml", tmp_path / "result.json", tmp_path / "again.json"
    saved.parent.mkdir()
    options = ("--training", "--contiguous", "no", "--memory", "40GiB", "--bandwidth", "400GB/s")
    assert main(["place", network, "--devices", "2xh100", *options, "--save", str(saved), "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "proved within 0.01%" in text.splitlines()[0]
    assert main(["check", str(out)]) == 0
    assert main(["solve", str(saved), "--out", str(again)]) == 0
    one, other = (json.loads(path.read_text(encoding="utf-8")) for path in (out, again))
    assert (one["value"], one["answer"]) == (other["value"], other["answer"])
    assert crossopt.read(out).question.memory == 40 * 2**30


def test_the_text_names_the_operators_of_each_device_and_how_to_have_all(
    network: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "result.json"
    assert main(["place", network, "--devices", "2xh100", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    flat = " ".join(text.split())
    assert "`export FILE --as devices` for the device of each" in flat
    devices = crossopt.read(out).answer.devices
    shown = flat.partition("devices operators ")[2].partition(" busiest")[0].split(", ")
    for device, part in zip(dict.fromkeys(devices.values()), shown, strict=True):
        named = [name for name, where in devices.items() if where == device]
        assert part == f"{named[0]} to {named[-1]} ({len(named)}) on {device}"
    answer = crossopt.place(network, "2xh100")
    assert json.loads(crossopt.export(answer, "devices")) == devices
    assert main(["export", str(out), "--as", "devices", "--out", str(tmp_path / "devices.json")]) == 0
    assert json.loads((tmp_path / "devices.json").read_text(encoding="utf-8")) == devices


def test_samples_are_counted_where_all_inputs_share_their_first_length(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "net.json", tmp_path / "result.json"
    for inputs, samples, said in (({}, 64, "samples a second {} in batches of 64"), ({"ids": (3, 8)}, 1, "batches a second {}")):
        path.write_text(graph_text(replace(small(), inputs=("x", *inputs), tensors={**small().tensors, **inputs})), encoding="utf-8")
        assert main(["place", str(path), "--devices", "2xh100", "--out", str(out)]) == 0
        value = json.loads(out.read_text(encoding="utf-8"))["value"]
        assert said.format(f"{samples * 1e3 / value:,.0f}" if samples > 1 else f"{1e3 / value:.5g}") in " ".join(
            capsys.readouterr().out.split()
        )


def test_a_latency_says_where_the_cpu_comes_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "question.yaml"
    nodes = "{a: {time: 2 ms}, b: {time: 2 ms, cpu_time: 1 ms, after: [a]}}"
    path.write_text(f"kind: placement\ngraph: {{nodes: {nodes}}}\ndevices: 2\nproblem: latency\n", encoding="utf-8")
    assert main(["solve", str(path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "2 operators on 1 of 2 accelerators and CPU cores" in text
    assert "offers the cores of the host's CPU" in text
    path.write_text(path.read_text(encoding="utf-8").replace(", cpu_time: 1 ms", ""), encoding="utf-8")
    assert main(["solve", str(path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "2 operators on 1 of 2 accelerators operators a and b (2) on accelerator 1" in text
    assert "CPU" not in text


@every(
    ("line", "message"),
    [
        (("--devices", "4xh101"), "--devices: 'h101' is no device that is known"),
        (("--devices", "4xh100,2xb200"), "--devices: operators are placed on devices of one kind"),
        (("--devices", "0xh100"), "--devices: '0xh100' is no number of devices"),
        (("--devices", "2xtpu-v4", "--precision", "fp32"), "--devices: tpu-v4 does not compute in fp32"),
        (("--devices", "2xh100", "--memory", "3 s"), "--memory: '3 s' is a time, "),
        (("--devices", "2xh100", "--bandwidth", "3 s"), "--bandwidth: '3 s' is a time, "),
        (("--devices", "2xh100", "--problem", "latency", "--transfers", "calls"), "--transfers: this does not apply to latency"),
    ],
)
def test_a_wrong_option_is_refused_by_its_name(
    line: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "net.json"
    path.write_text(graph_text(small()), encoding="utf-8")
    code = exit_code(["place", str(path), *line])
    assert code == 2
    assert message in capsys.readouterr().err


def test_python_names_its_arguments(network: str) -> None:
    with pytest.raises(RefusedError, match=r"^devices: 'h101' is no device"):
        crossopt.place(network, "4xh101")
    with pytest.raises(RefusedError, match=r"^memory: '3 s'"):
        crossopt.place(network, "4xh100", memory="3 s")
