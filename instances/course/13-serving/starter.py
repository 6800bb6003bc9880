"""Assignment 13: workers that serve requests. Copy this file to solution.py and complete the functions."""

from pathlib import Path

import yaml


def together(prefill: int, decode: int, batch: int, output: int) -> list[float]:
    """[milliseconds for a token, requests a second] of a worker that computes prompts between its steps."""
    raise NotImplementedError("together is still a hole")


def choose(table: list[list[int]], ttft: int, tpot: int, rate: int) -> list[int]:
    """[row, copies]: copies of one worker that keep both limits and serve the rate on the fewest devices."""
    raise NotImplementedError("choose is still a hole")


def best_rates(kinds: list[list[int]], devices: int) -> list[int]:
    """The best rate on at most 0, 1, ... `devices` devices."""
    raise NotImplementedError("best_rates is still a hole")


def apart(prefill: list[list[int]], decode: list[list[int]], devices: int) -> list[list[int]]:
    """How many workers of each kind serve most requests, for prompts and for tokens."""
    raise NotImplementedError("apart is still a hole")


def bound(prefill: list[list[int]], decode: list[list[int]], devices: int) -> float:
    """A rate that no workers exceed."""
    raise NotImplementedError("bound is still a hole")


if __name__ == "__main__":  # `python solution.py` prints what the functions return for instance.yaml
    given = yaml.safe_load(Path(__file__).with_name("instance.yaml").read_text(encoding="utf-8"))
    print("together", together(*given["step"]))
    print("choose", choose(given["table"], given["ttft"], given["tpot"], given["rate"]))
    print("best_rates", best_rates(given["prefill"], given["devices"]))
    print("apart", apart(given["prefill"], given["decode"], given["devices"]))
    print("bound", bound(given["prefill"], given["decode"], given["devices"]))
