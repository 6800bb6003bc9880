"""What a file is, by its content: a question, another tool's graph, or something that asks nothing, which one sentence says."""

import io
import json
from pathlib import Path

import pytest
import yaml

from crossopt.instances.errors import InstanceError
from crossopt.instances.kinds import kind_of_file, question_path, standard_input
from crossopt.instances.question import read, read_again
from crossopt.reports.cli import main
from crossopt.tests.every import every

TINY = question_path(Path("tiny"))
PROFILE = "node1 -- Input -- forward_compute_time=1.0, backward_compute_time=0.0, activation_size=4.0, parameter_size=0.0\n"
MISTAKEN = [
    ("model.onnx", b"\x08\x07\x12\x07pytorch", "this is a model of ONNX, not a question"),
    ("model.safetensors", b"\x40\0\0\0\0\0\0\0{}", "this is a file of weights (safetensors), not a question"),
    ("weights.bin", b"\x40\0\0\0\0\0\0\0{}", "this is a file of weights (safetensors), not a question"),
    ("model.pt", b"PK\x03\x04", "this is a zip archive, such as a checkpoint of PyTorch or a spreadsheet, not a question"),
    ("model.pkl", b"\x80\x04", "this is a pickle of Python, not a question"),
    ("paper.pdf", b"%PDF-1.7", "this is a PDF document, not a question"),
    ("runs.csv", b"gpu,model\n", "this is a table, not a question (`crossopt accuracy`"),
    ("config.json", b'{"hidden_size": 4096, "model_type": "llama"}', "this is the configuration of a model, not a question"),
    ("trace.json", b'{"traceEvents": []}', "this is a trace, not a question (`crossopt import`"),
    ("other.json", b'{"a": 1}', "this JSON is neither a question nor a graph"),
    ("note.txt", b"hello world\n", "this text is neither a question in YAML"),
    ("forecast.yaml", b"kind: forecast\n", "kind: 'forecast' is unknown (one of codesign,"),
    ("close.yaml", b"kind: codesgn\n", "kind: 'codesgn' is unknown (did you mean 'codesign'?"),
]


@every(("name", "data", "message"), MISTAKEN)
def test_a_file_that_asks_nothing_is_named_for_what_it_is(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InstanceError) as refused:
        read(path)
    assert len(refused.value.faults) == 1
    assert message in str(refused.value)


@every(
    ("name", "text", "kind"),
    [
        ("a.json", '{"workload": {}, "kind": "network"}', "network"),
        ("a.json", '{"nodes": [], "edges": []}', "placement"),
        ("a.json", '{"TMPCs": {}}', "piper"),
        ("a.json", '{"problem": {}}', "sharding"),
        ("a.json", "[1, 2", "placement"),
        ("a.txt", PROFILE, "pipedream"),
        ("a.txt", "kind: chain\n", "chain"),
        ("a", '{"kind": "chain"}', "chain"),
        ("a.yaml", "{kind: collective}", "collective"),
    ],
)
def test_the_content_says_what_is_asked(tmp_path: Path, name: str, text: str, kind: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert kind_of_file(path) == kind


def test_a_question_written_as_json_is_the_question_in_yaml(tmp_path: Path) -> None:
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps(yaml.safe_load(TINY.read_text(encoding="utf-8"))), encoding="utf-8")
    asked, first = read(path), read(TINY)
    assert (asked.workload, asked.cluster, asked.plan_options) == (first.workload, first.cluster, first.plan_options)
    assert read_again(asked.document, "codesign").plan_options == first.plan_options


@every("text", [TINY.read_text(encoding="utf-8"), PROFILE.replace("Input", "Linear")])
def test_a_question_is_read_from_standard_input(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    standard_input.cache_clear()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    kept = tmp_path / "kept.json"
    try:
        if text.startswith("node"):
            with pytest.raises(InstanceError, match="standard input"):
                read("-")
            return
        assert main(["solve", "-", "--out", str(kept)]) == 0
        assert capsys.readouterr().out.startswith("standard input   proved optimal in ")
    finally:
        standard_input.cache_clear()
    assert main(["check", str(kept)]) == 0


def test_a_result_is_read_from_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """By all commands that take one; a question is refused there as in a file, and a page gets a name that is no option."""
    kept = tmp_path / "kept.json"
    assert main(["solve", "tiny", "--out", str(kept)]) == 0
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    said = {}
    for name, data, command, code in (
        ("check", kept.read_bytes(), ["check", "-"], 0),
        ("report", kept.read_bytes(), ["report", "-"], 0),
        ("flags", kept.read_bytes(), ["export", "-", "--as", "megatron"], 0),
        ("model", kept.read_bytes(), ["export", "-", "--as", "lp", "--out", "kept.lp"], 0),
        ("question", TINY.read_bytes(), ["export", "-", "--as", "megatron"], 2),
    ):
        standard_input.cache_clear()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        try:
            assert main(command) == code
        except SystemExit as ended:
            assert ended.code == code, name
        finally:
            standard_input.cache_clear()
        said[name] = "".join(capsys.readouterr())
    assert said["check"].endswith("standard input: accepted\n")
    assert said["report"] == "result.html: the report on standard input\n"
    assert "--micro-batch-size 2" in said["flags"]
    assert (tmp_path / "kept.lp").is_file()
    assert "standard input: a question has no plan (name a result of `solve --out`" in said["question"]


@every(
    ("arguments", "message"),
    [
        (["solve", "tiny", "--workers", "0"], "crossopt solve: --workers: 0 is too few (write 1 or more)\n"),
        (["solve", "tiny", "--wrkers", "3"], "crossopt solve: --wrkers: there is no such option (did you mean --workers?)\n"),
        (["solve"], "crossopt solve: the following arguments are required: file (see `crossopt solve --help`)\n"),
    ],
)
def test_a_wrong_option_is_refused_in_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert (ended.value.code, capsys.readouterr().err) == (2, message)
