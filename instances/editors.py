"""JSON schemas of every kind of file, and the tables of keys in the reference of the site (`docs/hooks.py`).

`python -m crossopt.instances.editors FOLDER` writes the schemas into the folder of the questions (`make reference`).
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from crossopt.crossflow.hardware import Efficiency
from crossopt.instances.catalogue.entries import CONSTANTS, DeviceEntry, ModelEntry, TechnologyEntry, range_of
from crossopt.instances.codesign.section import CodesignFile
from crossopt.instances.codesign.stacks.rules import STACKS
from crossopt.instances.files.json_schema import json_schema, reference, table, units
from crossopt.instances.network.collective import CollectiveFile
from crossopt.instances.network.question import NetworkFile
from crossopt.instances.network.synthesis import SynthesisFile
from crossopt.instances.placement.question import PlacementFile
from crossopt.instances.sharding.question import ShardingFile
from crossopt.instances.stages.chain import ChainFile
from crossopt.instances.stages.pipedream import PipedreamFile
from crossopt.instances.stages.piper import PiperFile
from crossopt.instances.studies.study import StudyFile
from crossopt.instances.traces.benchmark import BenchmarkFile
from crossopt.instances.traces.whatif import WhatIfFile

FORMS: Final[Mapping[str, type[Any]]] = {
    "codesign": CodesignFile,
    "placement": PlacementFile,
    "sharding": ShardingFile,
    "network": NetworkFile,
    "collective": CollectiveFile,
    "synthesis": SynthesisFile,
    "what-if": WhatIfFile,
    "benchmark": BenchmarkFile,
    "chain": ChainFile,
    "pipedream": PipedreamFile,
    "piper": PiperFile,
    "study": StudyFile,
    "device": DeviceEntry,
    "technology": TechnologyEntry,
    "model": ModelEntry,
}
"""Forms of YAML files: a question of each kind, or an entry of a registry."""


def schema_text(form: str = "codesign") -> str:
    """The JSON schema of a form of files."""
    return json.dumps(json_schema(FORMS[form]), indent=1, ensure_ascii=False) + "\n"


def schema_path(form: str, folder: Path) -> Path:
    """Path of a form's schema below the folder of the questions; questions beside it refer to that of the joint design."""
    return folder / f"{form}.schema.json" if form == "codesign" else folder / "schemas" / f"{form}.schema.json"


def reference_text() -> str:
    """All keys, the constants of the model, and the units of quantities."""
    defaults = asdict(Efficiency())
    rows = [(f"`{name}`", slot.unit, range_of(slot), f"`{defaults[name]:g}`", slot.text) for name, slot in CONSTANTS.items()]
    constants = table(("constant", "unit", "takes", "default", "meaning"), rows)
    parts = {"What stacks launch": _stacks(), "Constants of the model": constants, "Units": units()}
    return "\n\n".join([reference(FORMS), *(f"### {heading}\n\n{text}" for heading, text in parts.items())])


def _stacks() -> str:
    """Rules that a stack imposes on plans, with their sources."""
    rows = [(stack.name, row.sentence, str(row.source)) for stack in STACKS.values() for row in stack.rows]
    rows += [(stack.name, f"*no rule:* {words}", str(source)) for stack in STACKS.values() for words, source in stack.also]
    return table(("stack", "what every plan keeps", "read in"), rows)


def main(folder: Path) -> None:
    """Write all schemas."""
    (folder / "schemas").mkdir(exist_ok=True)
    for form in FORMS:
        schema_path(form, folder).write_text(schema_text(form), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
