"""The JSON schema with which editors complete and check questions; `python -m crossopt.instances.editors` prints it."""

import json
import sys

from crossopt.instances.codesign.section import CodesignFile
from crossopt.instances.files.json_schema import json_schema


def schema_text() -> str:
    """The schema of a co-design question as JSON text, the content of `instances/codesign.schema.json`."""
    return json.dumps(json_schema(CodesignFile), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
