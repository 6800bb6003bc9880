"""Instances and fleets as JSON for other programs."""

import json
from pathlib import Path

import pytest

from crossopt.reports.cli import main
from tests.samples import FLEET_OF_KINDS, INSTANCES, PIPELINES


def exported(text: str, folder: Path, capsys: pytest.CaptureFixture[str], *settings: str) -> list[dict[str, object]]:
    (folder / "question.yaml").write_text(text, encoding="utf-8")
    target = str(folder / "answer.json")
    words = [word for setting in settings for word in ("--set", setting)]
    assert main(["solve", str(folder / "question.yaml"), *words, "--out", target]) == 0
    capsys.readouterr()
    assert main(["export", target, "--as", "replicas"]) == 0
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return found


def test_instances_are_written_with_their_latency(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exported(INSTANCES, tmp_path, capsys) == [{"instances": 2, "threads": 2, "batch": 4, "latency_s": 0.0305}]
    several = exported(INSTANCES, tmp_path, capsys, "sockets=2")
    assert [group["socket"] for group in several] == [0, 1]


def test_replicas_are_written_with_the_requests_that_each_kind_serves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = exported(FLEET_OF_KINDS, tmp_path, capsys)
    sent: dict[str, float] = {}
    for row in rows:
        for name, rate in dict(row["requests_per_second"]).items():  # type: ignore[call-overload]
            sent[name] = sent.get(name, 0.0) + rate
    assert sent == pytest.approx({"short": 12.0, "long": 3.0, "batch": 7.5})
    assert all(row["replicas"] for row in rows)


def test_nodes_are_written_with_their_layers_and_what_they_send(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = exported(PIPELINES, tmp_path, capsys)
    ends = [(int(str(row["first_layer"])), int(str(row["layers"])), row["tokens_per_second"]) for row in rows]
    assert sum(sent["sink"] for first, layers, sent in ends if first + layers == 6) == 2 * 41.5  # type: ignore[index]


def test_what_has_no_replicas_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "question.yaml").write_text(INSTANCES, encoding="utf-8")
    target = tmp_path / "answer.json"
    assert main(["solve", str(tmp_path / "question.yaml"), "--set", "latency=1 ms", "--out", str(target)]) == 20
    assert main(["export", str(target), "--as", "replicas"]) != 0
    assert "there is no configuration in this result" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["export", str(target), "--as", "strategies"])
    assert "take --as replicas" in capsys.readouterr().err
    assert main(["solve", str(tmp_path / "question.yaml"), "--out", str(target)]) == 0
    target.write_text(target.read_text(encoding="utf-8").replace('"value": 0.0305', '"value": 0.03'), encoding="utf-8")
    assert main(["export", str(target), "--as", "replicas"]) != 0
    assert "this result is not sound" in capsys.readouterr().err
