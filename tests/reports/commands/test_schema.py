"""Where schemas are, and the settings by which editors find them."""

import json
import tomllib
from pathlib import Path

import pytest

from crossopt.instances.kinds import KINDS
from crossopt.instances.schema_export import FORMS, QUESTION, question_schema_text, schema_path
from crossopt.reports.arguments import EDITORS
from crossopt.reports.cli import main
from crossopt.reports.commands.schema import schemas
from tests.paths import INSTANCES


def test_there_is_a_schema_of_every_form_and_one_of_all_questions(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(schemas()) == {QUESTION, *FORMS}
    assert main(["schema"]) == 0
    listed = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert {name: Path(path).is_file() for name, path in listed.items()} == dict.fromkeys([QUESTION, *FORMS], True)
    assert main(["schema", "placement"]) == 0
    assert capsys.readouterr().out == f"{listed['placement']}\n"


def test_the_schema_of_all_questions_refers_to_that_of_each_kind() -> None:
    """Write it anew with `make schema`."""
    path = schema_path(QUESTION, INSTANCES)
    assert path.read_text(encoding="utf-8") == question_schema_text()
    document = json.loads(question_schema_text())
    referred = {rule["if"]["properties"]["kind"]["const"]: path.parent / rule["then"]["$ref"] for rule in document["allOf"]}
    assert set(referred) == set(document["properties"]["kind"]["enum"]) == set(KINDS) & set(FORMS)
    assert {kind: target.resolve() for kind, target in referred.items()} == {
        kind: schema_path(kind, INSTANCES).resolve() for kind in referred
    }


def test_a_form_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["schema", "placment"])
    assert "placment: there is no such schema (there are question, " in capsys.readouterr().err


def test_settings_of_vscode_go_beside_those_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = str(schemas()[QUESTION])
    assert main(["schema", "--editor", "vscode"]) == 0
    assert json.loads(capsys.readouterr().out) == {"yaml.schemas": {path: ["*.crossopt.yaml", "questions/*.yaml"]}}
    target = Path(".vscode/settings.json")
    for _ in range(2):
        assert main(["schema", "--editor", "vscode", "--files", "a/*.yaml", "--write"]) == 0
        assert json.loads(target.read_text(encoding="utf-8")) == {"yaml.schemas": {path: ["a/*.yaml"]}}
    target.write_text('{"editor.rulers": [140], "yaml.schemas": {"other.json": ["b.yaml"]}}', encoding="utf-8")
    assert main(["schema", "device", "--editor", "vscode", "--files", "d.yaml", "--write"]) == 0
    merged = json.loads(target.read_text(encoding="utf-8"))
    assert merged == {"editor.rulers": [140], "yaml.schemas": {"other.json": ["b.yaml"], str(schemas()["device"]): ["d.yaml"]}}


@pytest.mark.parametrize("there", ["// a comment\n{}", "[]", '{"yaml.schemas": 3}'])
def test_settings_that_cannot_be_merged_stay(
    there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".vscode").mkdir()
    Path(".vscode/settings.json").write_text(there, encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["schema", "--editor", "vscode", "--write"])
    assert "--write: .vscode/settings.json is there already and stays as it is" in capsys.readouterr().err
    assert Path(".vscode/settings.json").read_text(encoding="utf-8") == there


def test_every_editor_is_told_the_path_and_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = str(schemas()[QUESTION])
    for editor in EDITORS:
        assert main(["schema", "--editor", editor, "--files", "x.yaml"]) == 0
        printed = capsys.readouterr().out
        assert (path in printed, "x.yaml" in printed or editor == "modeline") == (True, True)
    assert printed == f"# yaml-language-server: $schema={path}\n"
    assert main(["schema", "--editor", "helix", "--write"]) == 0
    written = tomllib.loads(Path(".helix/languages.toml").read_text(encoding="utf-8"))
    assert written["language-server"]["yaml-language-server"]["config"]["yaml"]["schemas"] == {
        path: ["*.crossopt.yaml", "questions/*.yaml"]
    }
    with pytest.raises(SystemExit):
        main(["schema", "--editor", "helix", "--write"])
    with pytest.raises(SystemExit):
        main(["schema", "--editor", "modeline", "--write"])
    assert "--write: say which editor" in capsys.readouterr().err
