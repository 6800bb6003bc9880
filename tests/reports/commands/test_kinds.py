"""Which family answers a file."""

from pathlib import Path

import pytest

from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.instances.kinds import KINDS, kind_of_file
from crossopt.reports.cli import main
from crossopt.reports.commands.families import command_of
from tests.paths import ROOT


@pytest.mark.parametrize(
    ("name", "text", "family"),
    [
        ("graph.json", '{"nodes": [], "edges": []}', "placement"),
        ("graph.txt", "node1 -- Input -- forward_compute_time=1.0\n", "pipedream"),
        ("question.yaml", "name: q\nkind: placement\n", "placement"),
        ("question.yaml", 'kind: "placement"\n', "placement"),
        ("question.yaml", "# a chain\nkind: chain\n", "chain"),
        ("question.yaml", "kind: study\ntitle: several\n", "study"),
        ("question.yaml", "name: q\nobjective: step_time\n", "codesign"),
        ("question.yaml", "workload:\n  kind: placement\n", "codesign"),
        ("question.yaml", "kind: another\n", "codesign"),
    ],
)
def test_a_file_belongs_to_a_family_by_its_form_or_its_kind(tmp_path: Path, name: str, text: str, family: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert kind_of_file(path) == family


@pytest.mark.parametrize("command", [["solve"], ["compare"], ["evaluate"], ["validate"], ["explain"]])
@pytest.mark.parametrize("name", ["quickstart", "gpt3-13b-on-8", "joint-vs-single-layer"])
def test_a_result_in_place_of_a_question_is_named_as_such(name: str, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    result = ROOT / "reports/gallery" / f"{name}.json"
    assert main([*command, str(result)]) == 3
    assert capsys.readouterr().err.startswith(f"{result}:1:1: this is a result, not a question (`crossopt check`")


def test_a_front_is_no_design_to_launch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    front = tmp_path / "front.json"
    front.write_text('{"kind": "front", "figures": ["step_time", "power"], "points": []}', encoding="utf-8")
    for form in ("megatron", "lp", "split"):
        with pytest.raises(SystemExit):
            main(["export", str(front), "--as", form])
        assert f"--as {form}: {front} is a front of several designs" in capsys.readouterr().err
    with pytest.raises(InstanceError, match="this is a result"):
        kind_of_file(front)


def test_a_file_that_is_not_there_is_left_to_the_reader() -> None:
    assert kind_of_file(Path("nowhere.yaml")) == "codesign"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_solved(kind: str) -> None:
    assert callable(command_of(kind, "solve"))


def test_a_command_that_a_family_lacks_is_refused_in_words() -> None:
    with pytest.raises(RefusedError, match="does not answer questions about operators"):
        command_of("placement", "calibrate")


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_is_read_as_one_of_the_kind_that_it_says(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "answer.json").write_text(f'{{"format": 3, "kind": "{kind}"}}', encoding="utf-8")
    assert main(["check", str(tmp_path / "answer.json")]) == 3
    assert f"{'derived' if kind == 'study' else 'answer'}: this key is missing" in capsys.readouterr().err


def test_a_study_of_an_earlier_format_is_refused_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs.json").write_text('{"format": 1, "kind": "study"}', encoding="utf-8")
    assert main(["check", str(tmp_path / "runs.json")]) == 3
    assert "these are no runs of format 3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("form", "remedy"),
    [
        ("lp", "export works from a question about joint designs, in YAML, and from its saved result"),
        ("devices", "--out RESULT.json`, then export"),
    ],
)
def test_an_authors_graph_is_told_what_it_is_where_a_result_is_needed(
    form: str, remedy: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = tmp_path / "graph.json"
    graph.write_text('{"nodes": [], "edges": []}', encoding="utf-8")
    with pytest.raises(SystemExit) as left:
        main(["export", str(graph), "--as", form])
    assert left.value.code == 2
    told = capsys.readouterr().err
    assert "this is a file of its authors that asks about operators of a graph on devices, and no result" in told
    assert remedy in told
