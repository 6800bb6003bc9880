"""Where tests find the instances and, where it is there, the reference data."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
INSTANCES = ROOT / "instances"
DATA = ROOT / "../shared/data"
NO_DATA = "reference data not found at ../shared/data"
"""What every test says that is skipped for want of a file there; they are counted at the end of a run."""


def reference(name: str) -> Path:
    """A file or folder of the reference data; skips the test that calls this where it is absent."""
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{NO_DATA}: {name}")
    return path
