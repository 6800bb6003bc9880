"""What a call costs, counted instead of timed: a machine that is slow or busy makes the same calls."""

import sys
from collections.abc import Callable
from types import FrameType


def calls_in(work: Callable[[], object]) -> int:
    """How many functions of Python are entered while this is done, generators as often as they go on."""
    count = 0

    def seen(frame: FrameType, event: str, what: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
