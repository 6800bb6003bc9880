"""Assignment 11: bits for each layer within a budget. Copy this file to solution.py and complete the functions."""

from pathlib import Path

import yaml

Table = list[list[int]]
"""A figure of each layer and choice: table[layer][choice]."""


def bound(losses: Table, uses: Table, budget: int, price: float) -> float:
    """The least of loss + price (use - budget) over all choices, within the budget or not."""
    raise NotImplementedError("bound is still a hole")


def best_bound(losses: Table, uses: Table, budget: int) -> float:
    """The highest bound of all prices from 0 on."""
    raise NotImplementedError("best_bound is still a hole")


def best(losses: Table, uses: Table, budget: int, tied: list[list[int]]) -> list[int]:
    """The choice of each layer: uses of at most the budget, and the least loss; the layers of each pair of `tied` choose alike."""
    raise NotImplementedError("best is still a hole")


def front(losses: Table, uses: Table) -> list[list[int]]:
    """All [use, loss] that no other choice equals or betters in both, by rising use."""
    raise NotImplementedError("front is still a hole")


def chain(losses: Table, uses: Table, changes: list[int], budget: int) -> list[int]:
    """As `best` without ties; where layers i and i + 1 choose differently, `changes[i]` is used as well."""
    raise NotImplementedError("chain is still a hole")


if __name__ == "__main__":  # `python solution.py` prints what the functions return for instance.yaml
    given = yaml.safe_load(Path(__file__).with_name("instance.yaml").read_text(encoding="utf-8"))
    losses, sizes, operations = ([row[place] for row in given["layers"]] for place in (1, 2, 3))
    print("bound", bound(losses, sizes, given["size"], given["price"]))
    print("best_bound", best_bound(losses, sizes, given["size"]))
    print("best", best(losses, operations, given["operations"], given["tied"]))
    print("front", front(losses[-given["last"] :], sizes[-given["last"] :]))
    print("chain", chain(losses, operations, given["changes"], given["operations"]))
