"""Assignment 7: symmetry, bounds, and a tree of boxes that proves. Copy this file to solution.py and fill the holes."""

from pathlib import Path
from typing import Any

import yaml


def count(operators: int, kinds: list[int]) -> int:
    """In how many ways different operators can be placed on devices, `kinds[i]` of which are equal, up to renaming equal ones."""
    raise NotImplementedError("count is still a hole")


def representative(places: list[int], kinds: list[int]) -> list[int]:
    """The least list that renaming equal devices makes of a placement: the device of each operator."""
    raise NotImplementedError("representative is still a hole")


def bound(works: list[int], low: list[int], high: list[int], area: int) -> float | None:
    """A time that no chip of the box is below; None where none fits the area."""
    raise NotImplementedError("bound is still a hole")


def branch(sizes: list[int], bounds: dict[str, float | None]) -> dict[str, Any]:
    """{"point": places of the best chip, "value": its time, "tree": None or [choice, place, lower, upper]}."""
    raise NotImplementedError("branch is still a hole")


if __name__ == "__main__":  # `python solution.py` prints what the functions say of instance.yaml
    given = yaml.safe_load(Path(__file__).with_name("instance.yaml").read_text(encoding="utf-8"))
    print("count", count(**given["count"]))
    print("representative", representative(**given["representative"]))
    print("bound", bound(**given["bound"]))
    print("branch", branch(**given["branch"]))
