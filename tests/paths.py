"""Where tests find the instances and, where it is there, the reference data."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
INSTANCES = ROOT / "instances"


def reference(name: str) -> Path:
    """A file of the reference data; skips the test where it is absent."""
    path = ROOT / "../shared/data" / name
    if not path.exists():
        pytest.skip(f"reference data {name} is not on this machine")
    return path
