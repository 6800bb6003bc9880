"""The schema that editors use is the one that the types give."""

import json
from pathlib import Path

from crossopt.instances.editors import SECTIONS, schema_text
from crossopt.instances.kinds import KINDS
from tests.paths import INSTANCES


def test_the_committed_schema_is_current() -> None:
    """Write it anew with `make schema`."""
    assert (INSTANCES / "codesign.schema.json").read_text(encoding="utf-8") == schema_text()


def test_the_schema_knows_every_choice_of_a_question() -> None:
    choices = json.loads(schema_text())["$defs"]["ChoicesSection"]["properties"]
    assert {"tensor", "compute_area", "hbm_stacks", "recompute"} <= choices.keys()


def test_every_kind_of_question_has_a_schema_that_knows_its_name() -> None:
    assert SECTIONS.keys() == KINDS.keys()
    for kind in KINDS:
        schema = json.loads(schema_text(kind))
        record = schema["$defs"][schema["$ref"].rpartition("/")[2]]
        assert record["properties"]["kind"]["enum"] == [kind]


def test_every_shipped_question_names_the_schema_for_editors() -> None:
    for path in sorted(Path(INSTANCES).glob("*.yaml")):
        assert path.read_text(encoding="utf-8").startswith("# yaml-language-server: $schema=codesign.schema.json\n"), path.name
