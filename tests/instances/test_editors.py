"""The schemas that editors use, and the tables of keys that people read, are those that the types give."""

import json
from pathlib import Path

import pytest

from crossopt.instances.files.document import read_file
from crossopt.instances.files.schema import read_as
from crossopt.instances.kinds import KINDS
from crossopt.instances.schema_export import FORMS, reference_text, schema_path, schema_text, support_text
from tests.paths import INSTANCES


@pytest.mark.parametrize("form", FORMS)
def test_the_committed_schema_is_current(form: str) -> None:
    """Write it anew with `make schema`."""
    assert schema_path(form, INSTANCES).read_text(encoding="utf-8") == schema_text(form)


def test_every_key_of_every_file_has_its_meaning_and_says_what_it_takes() -> None:
    rows = [line.split(" | ") for line in reference_text().splitlines() if line.startswith("| `")]
    assert len(rows) > 200
    assert [row[0] for row in rows if len(row) == 4 and not (row[1].strip() and row[3].strip(" |"))] == []


def test_a_table_says_what_a_key_takes_its_default_and_its_meaning() -> None:
    rows = set(reference_text().splitlines())
    assert "| `zero` | whole number from 0 to 3 · list · range | `0` | " in {
        row[: row.index("ZeRO stage")] for row in rows if row.startswith("| `zero`")
    }
    assert "| `wafer_diameter` | length | `300 mm` | of the wafer |" in rows
    assert "| `workloads` | list of [sharing](#codesign-sharing) |  | several workloads on one chip, each with its own plan |" in rows
    assert "| `memories` | by name: [generation](#technology-generation) | **needed** | generations of stacked memory |" in rows


@pytest.mark.parametrize(
    ("form", "files"),
    [
        ("placement", "placement/*.yaml"),
        ("sharding", "sharding/*.yaml"),
        ("network", "network/three-*.yaml"),
        ("collective", "network/all-reduce-*.yaml"),
        ("what-if", "traces/two-*.yaml"),
        ("benchmark", "traces/a-third-*.yaml"),
        ("chain", "stages/*.yaml"),
        ("device", "registry/hardware/*.yaml"),
        ("technology", "registry/technologies/*.yaml"),
        ("model", "registry/workloads/*.yaml"),
    ],
)
def test_what_comes_along_is_of_the_forms_that_are_described(form: str, files: str) -> None:
    paths = sorted(INSTANCES.glob(files))
    assert paths
    for path in paths:
        assert read_as(FORMS[form], read_file(path), faults := []) is not None, faults


def test_the_schema_knows_every_choice_of_a_question() -> None:
    choices = json.loads(schema_text())["$defs"]["ChoicesSection"]["properties"]
    assert {"tensor", "compute_area", "hbm_stacks", "recompute"} <= choices.keys()


def test_every_kind_of_question_has_a_schema_that_knows_its_name() -> None:
    for kind in (kind for kind, row in KINDS.items() if not row.question.startswith("tests.")):
        schema = json.loads(schema_text(kind))
        record = schema["$defs"][schema["$ref"].rpartition("/")[2]]
        assert record["properties"]["kind"]["enum"] == [kind]


def test_every_shipped_question_names_the_schema_for_editors() -> None:
    for path in sorted(Path(INSTANCES).glob("*.yaml")):
        assert path.read_text(encoding="utf-8").startswith("# yaml-language-server: $schema=codesign.schema.json\n"), path.name


def test_the_support_matrix_says_of_each_device_and_stack_what_its_figures_rest_on() -> None:
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in support_text().splitlines()]
    cells = {(row[0].strip("| `"), stack): cell for row in rows for stack, cell in zip(head[1:], row[1:], strict=True)}
    assert {name for name, _ in cells} == {path.stem for path in (INSTANCES / "registry/hardware").glob("*.yaml")}
    assert cells["h100-sxm", "fsdp"].startswith("**measured**: fitted to ")
    assert cells["a100-80g", "torchtitan"].startswith("measured on the device: the device's constants, fitted to ")
    assert cells["b200", "fsdp"].startswith("derived: taken over from h100-sxm with fsdp")
    assert {cell.split(":")[0] for cell in cells.values()} == {"**measured**", "measured on the device", "derived"}
