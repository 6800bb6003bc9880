"""Where the handouts lie, and the public case of each, which students have before them and graders ask for before the hidden ones."""

from pathlib import Path
from typing import Any

import yaml

from crossopt import instances

HANDOUTS = Path(instances.__file__).parent / "course"
BESIDE = "handed_in.py"
"""What the public tests of each assignment begin with."""


def public(assignment: str) -> dict[str, Any]:
    """What `instance.yaml` of an assignment says."""
    return yaml.safe_load((HANDOUTS / assignment / "instance.yaml").read_text(encoding="utf-8"))  # type: ignore[no-any-return]
