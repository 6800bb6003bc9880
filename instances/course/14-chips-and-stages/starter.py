"""Assignment 14: a chip, a schedule on its cores, and stages. Copy this file to solution.py and complete the functions."""

from pathlib import Path

import yaml


def cycles(kinds: list[str], sizes: list[int], per_element: list[int], chip: list[int]) -> list[list[int]]:
    """[cycles on one core, cycles on all cores of its type] of each operator."""
    raise NotImplementedError("cycles is still a hole")


def schedule(before: list[list[int]], kinds: list[str], pairs: list[list[int]], cores: list[int]) -> list[list[int]]:
    """[start, 1 if on all cores else 0] of each operator, so that the last one ends as early as possible."""
    raise NotImplementedError("schedule is still a hole")


def plan(
    forward: list[int],
    backward: list[int],
    sent: list[int],
    stored: list[int],
    kept: list[int],
    devices: int,
    microbatches: int,
    memory: int,
) -> tuple[int, list[int]]:
    """(pipelines, first layers of the stages), so that a batch takes the least time."""
    raise NotImplementedError("plan is still a hole")


def best_chip(
    chips: list[list[int]],
    layers: list[tuple[list[list[int]], list[str], list[int], list[int]]],
    order: list[int],
    chain: list[list[int]],
    limits: list[int],
) -> int:
    """The place of the chip on which a batch takes the least time."""
    raise NotImplementedError("best_chip is still a hole")


def early_stop(areas: list[int], times: list[int], step: int, patience: int) -> int:
    """The place of the chip at which the search over groups of chips ends."""
    raise NotImplementedError("early_stop is still a hole")


if __name__ == "__main__":  # `python solution.py` prints what the functions return for instance.yaml
    given = yaml.safe_load(Path(__file__).with_name("instance.yaml").read_text(encoding="utf-8"))
    kinds_of_layers = [(one["before"], one["kinds"], one["sizes"], one["per_element"]) for one in given["layers"]]
    layer, chip = given["layers"][0], given["chips"][0]
    pairs_of_layer = cycles(layer["kinds"], layer["sizes"], layer["per_element"], chip)
    chain_of = [given[key] for key in ("sent", "stored", "kept")]
    limits_of = [given[key] for key in ("devices", "microbatches", "memory")]
    print("cycles", pairs_of_layer)
    print("schedule", schedule(layer["before"], layer["kinds"], pairs_of_layer, chip[:2]))
    print("plan", plan(given["forward"], [2 * one for one in given["forward"]], *chain_of, *limits_of))
    print("best_chip", best_chip(given["chips"], kinds_of_layers, given["order"], chain_of, limits_of))
    print("early_stop", early_stop(given["areas"], given["times"], given["step"], given["patience"]))
