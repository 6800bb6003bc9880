"""Assignment 5: 1 / x in straight pieces. Copy this file to solution.py and fill the holes."""

from pathlib import Path

import yaml


def worst_error(points: list[float]) -> float:
    """The worst relative error of the chords of 1 / x through neighbouring points."""
    raise NotImplementedError("worst_error is still a hole")


def chord_points(low: float, high: float, error: float) -> list[float]:
    """As few points as possible, from `low` to `high`, whose chords are nowhere off by more than `error`."""
    raise NotImplementedError("chord_points is still a hole")


def tangent_points(low: float, high: float, error: float) -> list[float]:
    """As few points as possible whose largest tangent is nowhere off by more than `error`."""
    raise NotImplementedError("tangent_points is still a hole")


def weights(points: list[float], area: float) -> list[float]:
    """A weight for each point, on two neighbours at most; together 1, and the area."""
    raise NotImplementedError("weights is still a hole")


def best_area(work: float, slope: float, low: float, high: float, error: float) -> dict[str, float]:
    """An `area` of nearly least work / area + slope * area, and a `bound` below which no area of the range is."""
    raise NotImplementedError("best_area is still a hole")


if __name__ == "__main__":  # `python solution.py` prints what the functions say of instance.yaml
    given = yaml.safe_load(Path(__file__).with_name("instance.yaml").read_text(encoding="utf-8"))
    print("worst_error", worst_error(given["points"]))
    print("chord_points", chord_points(**given["range"]))
    print("tangent_points", tangent_points(**given["range"]))
    print("weights", weights(given["points"], given["area"]))
    print("best_area", best_area(**given["cost"], **given["range"]))
