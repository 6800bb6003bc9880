"""Assignment 3: cut a chain of layers into stages. Copy this file to solution.py and fill the holes."""

from pathlib import Path

import yaml


def best_stages(times: list[int], messages: list[int], stages: int) -> list[int]:
    """The first layer of each of at most `stages` stages, the busiest of which is as quick as possible."""
    raise NotImplementedError("best_stages is still a hole")


def bound(times: list[int], stages: int) -> int:
    """A whole number below which no busiest stage can be, whatever the messages."""
    raise NotImplementedError("bound is still a hole")


def model(times: list[int], messages: list[int], stages: int) -> dict[str, object]:
    """An integer model with variables `layer 0 on 0`, `layer 0 on 1`, ..."""
    raise NotImplementedError("model is still a hole")


def fewest_stages(times: list[int], messages: list[int], limit: int) -> list[int]:
    """The first layer of each stage: as few as possible, each of at most `limit` microseconds."""
    raise NotImplementedError("fewest_stages is still a hole")


if __name__ == "__main__":  # `python solution.py` prints what the functions say of instance.yaml
    given = yaml.safe_load(Path(__file__).with_name("instance.yaml").read_text(encoding="utf-8"))
    chain = given["times"], given["messages"]
    print("best_stages", best_stages(*chain, given["stages"]))
    print("bound", bound(given["times"], given["stages"]))
    print("model", model(*chain, given["stages"]))
    print("fewest_stages", fewest_stages(*chain, given["limit"]))
