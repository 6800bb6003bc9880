"""Sends, and what the judge says of them."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sends:
    """Every send (chunk, link by its place, step at which it sets out), as asked: of a reduce-scatter over turned links and times."""

    sends: tuple[tuple[int, int, int], ...]


def in_order(sends: Sequence[tuple[int, int, int]]) -> Sends:
    """By their steps, and those of a step by their links."""
    return Sends(tuple(sorted(sends, key=lambda send: (send[2], send[1]))))


@dataclass(frozen=True, slots=True)
class Used:
    """How long each link works."""

    busy: tuple[int, ...]
    """Steps, by link."""
    received: tuple[int, ...]
    """The step at which each NPU has all."""
