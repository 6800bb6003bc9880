"""Assignment 6: what another square millimetre buys. Copy this file to solution.py and fill the holes."""

from pathlib import Path
from typing import Any

import yaml

Point = list[float]
"""Two figures of which less is better."""


def front(points: list[Point]) -> list[int]:
    """The places of the points that nothing beats, of equal points one."""
    raise NotImplementedError("front is still a hole")


def hypervolume(points: list[Point], corner: Point) -> float:
    """The area that is no better than some point and better than the corner."""
    raise NotImplementedError("hypervolume is still a hole")


def few(points: list[Point], corner: Point, count: int) -> list[int]:
    """The places of at most `count` points whose hypervolume is as large as possible."""
    raise NotImplementedError("few is still a hole")


def splits(parts: list[list[list[int]]]) -> list[list[int]]:
    """For each point of the front of total area and total time one split: the place of the option of each part."""
    raise NotImplementedError("splits is still a hole")


def designs(question: dict[str, Any], count: int) -> list[dict[str, float]]:
    """At most `count` designs, each {"plan": row, "chip": column, "step_time": seconds, "die_area": mm^2}."""
    raise NotImplementedError("designs is still a hole")


if __name__ == "__main__":  # `python solution.py` prints what the functions say of instance.yaml
    given = yaml.safe_load(Path(__file__).with_name("instance.yaml").read_text(encoding="utf-8"))
    print("front", front(given["points"]))
    print("hypervolume", hypervolume(given["points"], given["corner"]))
    print("few", few(given["few"]["points"], given["corner"], given["few"]["count"]))
    print("splits", splits(given["parts"]))
    print("designs", designs(given["question"], given["count"]))
