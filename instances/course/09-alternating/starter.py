"""Assignment 9: alternating against joint. Copy this file to solution.py and fill the holes."""

from pathlib import Path

import yaml

Table = list[list[float | None]]
"""Times, a row for each plan and a column for each chip; None where a limit is broken."""


def alternate(times: Table, chip: int) -> list[list[int]]:
    """The designs [plan, chip] of an alternation from this chip, one after the other."""
    raise NotImplementedError("alternate is still a hole")


def sticks(times: Table) -> list[list[int]]:
    """The designs above the best that no step of an alternation leaves."""
    raise NotImplementedError("sticks is still a hole")


def failing(times: Table) -> list[int]:
    """The chips from which an alternation does not end at the best time."""
    raise NotImplementedError("failing is still a hole")


def lost(times: Table, chip: int) -> float:
    """How many times the best time it is where an alternation from this chip ends."""
    raise NotImplementedError("lost is still a hole")


def trap(plans: int, chips: int, ratio: int) -> list[list[int]]:
    """Times from 1 to 1000 with which it ends at `ratio` times the best or above, from every chip but one."""
    raise NotImplementedError("trap is still a hole")


def interaction(times: list[list[float]]) -> float:
    """The largest |t[p][c] + t[q][d] - t[p][d] - t[q][c]|."""
    raise NotImplementedError("interaction is still a hole")


if __name__ == "__main__":  # `python solution.py` prints what the functions say of instance.yaml
    given = yaml.safe_load(Path(__file__).with_name("instance.yaml").read_text(encoding="utf-8"))
    print("alternate", alternate(given["times"], given["chip"]))
    print("sticks", sticks(given["times"]))
    print("failing", failing(given["times"]))
    print("lost", lost(given["times"], given["chip"]))
    print("trap", trap(**given["trap"]))
    print("interaction", interaction(given["sum"]))
