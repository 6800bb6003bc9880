"""How much of what is drawn a run tries: all of it where CROSSOPT_EXAMPLES is `full`, as in .ci/run and `make test-all`; a share else."""

import os
from collections.abc import Sequence
from typing import TypeVar

from hypothesis import settings

FULL = os.environ.get("CROSSOPT_EXAMPLES") == "full"
Case = TypeVar("Case")


def examples(number: int) -> settings:
    """Settings of a test with this many drawn examples, or a quarter of them, but ten at least."""
    return settings(max_examples=number if FULL else max(number // 4, min(number, 10)))


def some(cases: Sequence[Case], number: int) -> Sequence[Case]:
    """The cases, or this many of them, from the first to the last."""
    if FULL or len(cases) <= number:
        return cases
    return [cases[round(place * (len(cases) - 1) / max(number - 1, 1))] for place in range(number)]
