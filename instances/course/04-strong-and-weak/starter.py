"""Assignment 4: the same choice in a strong and in a weak form. Copy this file to solution.py and fill the holes."""

from pathlib import Path

import yaml


def weak_model(costs: list[list[int]], opening: list[int]) -> dict[str, object]:
    """An integer model in which one row for each chip says that networks only run on chips that are built."""
    raise NotImplementedError("weak_model is still a hole")


def strong_model(costs: list[list[int]], opening: list[int]) -> dict[str, object]:
    """An integer model of the same question with as strong a relaxation as you can."""
    raise NotImplementedError("strong_model is still a hole")


def weak_bound(costs: list[list[int]], opening: list[int]) -> float:
    """The best objective of the relaxation of `weak_model`, without any solver."""
    raise NotImplementedError("weak_bound is still a hole")


def prices(costs: list[list[int]], opening: list[int]) -> list[int]:
    """A whole number for each network, such that no chip earns more than it costs, with a large sum."""
    raise NotImplementedError("prices is still a hole")


if __name__ == "__main__":  # `python solution.py` prints what the functions say of instance.yaml
    given = yaml.safe_load(Path(__file__).with_name("instance.yaml").read_text(encoding="utf-8"))
    asked = given["costs"], given["opening"]
    print("weak_model", weak_model(*asked))
    print("strong_model", strong_model(*asked))
    print("weak_bound", weak_bound(*asked))
    print("prices", prices(*asked))
