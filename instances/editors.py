"""The JSON schema with which editors complete and check questions; `python -m crossopt.instances.editors KIND` prints it."""

import json
import sys
from typing import Any, Final

from crossopt.instances.codesign.section import CodesignFile
from crossopt.instances.files.json_schema import json_schema
from crossopt.instances.placement.section import PlacementFile
from crossopt.instances.sharding.section import ShardingFile
from crossopt.instances.stages.chain import ChainFile
from crossopt.instances.stages.pipedream.question import PipedreamFile
from crossopt.instances.stages.piper.question import PiperFile
from crossopt.instances.study import StudyFile

SECTIONS: Final[dict[str, type[Any]]] = {
    "codesign": CodesignFile,
    "chain": ChainFile,
    "piper": PiperFile,
    "pipedream": PipedreamFile,
    "placement": PlacementFile,
    "sharding": ShardingFile,
    "study": StudyFile,
}
"""What a question of each kind may say."""


def schema_text(kind: str = "codesign") -> str:
    """The schema of a kind of question as JSON text; that of `codesign` is the content of `instances/codesign.schema.json`."""
    return json.dumps(json_schema(SECTIONS[kind]), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text(*sys.argv[1:2]))
