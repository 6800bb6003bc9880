"""The page of chips that would be built says what the solver finds today, and its rules refuse what could not be built."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from crossopt.crossflow.hardware import Hardware
from tests.benchmarks.would_it_be_built import PAGE, QUESTIONS, Asked, Chip, faults, found, page

pytestmark = pytest.mark.docs

SMALLEST = next(asked for asked in QUESTIONS if asked.area == 500)
"""A smaller die leaves fewer chips, so that its proof takes a quarter of the time of any other."""


@cache
def smallest() -> Chip:
    return found(SMALLEST)


def rows(text: str) -> set[tuple[str, ...]]:
    """The cells of each line but for the seconds that a proof took."""
    lines = (line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| "))
    return {tuple(cells[:2] + cells[3:]) if len(cells) == 8 else tuple(cells) for cells in lines}


def said(chip: Chip) -> bool:
    return rows(page([chip])) <= rows(PAGE.read_text(encoding="utf-8"))


def test_the_page_says_what_is_found_today() -> None:
    assert said(smallest())
    assert faults(smallest()) == ()


@pytest.mark.slow
@pytest.mark.parametrize("asked", [asked for asked in QUESTIONS if asked is not SMALLEST], ids=Asked.words)
def test_the_rest_of_the_page_does_too(asked: Asked) -> None:
    assert said(found(asked))


def with_memory(level: str, **factors: float) -> Hardware:
    chip = smallest().hardware
    memory = getattr(chip, level)
    return replace(chip, **{level: replace(memory, **{name: factor * getattr(memory, name) for name, factor in factors.items()})})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda: replace(smallest().hardware, power_density=1.9e6), "1.9 W/mm^2, 1 at most"),
        (lambda: with_memory("dram", capacity=4.0), "16 stacks, 4 at most"),
        (lambda: with_memory("l2", bandwidth=10.0), " bytes/s of L2 over what its banks give, 1 at most"),
        (lambda: with_memory("l2", bandwidth=0.8), " of L2's bytes/s from memory, 0.761905 at most"),
        (
            lambda: replace(with_memory("l2", bandwidth=0.7), dram=with_memory("dram", bandwidth=0.5).dram),
            " of the peak, that L2 of devices that are sold feeds, are missing, 0 at most",
        ),
        (lambda: with_memory("l1", bandwidth=0.5), " times what L1 gives that the cores take, 1.05 at most"),
        (lambda: with_memory("registers", bandwidth=0.5), " times what registers give that the cores take, 1.05 at most"),
        (lambda: with_memory("l1", capacity=0.5), " KiB of L1 a bundle that are missing, 0 at most"),
        (lambda: with_memory("registers", capacity=0.5), " KiB of registers a bundle that are missing, 0 at most"),
    ],
)
def test_chips_that_could_not_be_built_are_refused(change: Any, words: str) -> None:  # noqa: ANN401
    [fault] = faults(replace(smallest(), hardware=change()))
    assert fault.endswith(words)
