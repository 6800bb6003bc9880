"""Which part of a trace is kept: a window of time, or one step that the profiler marked.

Of a thread the calls are kept that begin within it, and of a device the work that these launch, whenever it runs: so a step's kernels stay
together although they run behind their launches, as far as nothing of the steps before and behind them does. A step lasts from where it
was marked to begin, and no less than was marked: threads have gaps ahead of their first calls and behind their last ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crossopt.instances.traces.packed import refuse


@dataclass(frozen=True, slots=True)
class Window:
    """Nanoseconds from the first event, from this one on and before that one, as far as they are told; or a step by its number."""

    begin: int | None = None
    end: int | None = None
    step: int | None = None

    def __bool__(self) -> bool:
        return self != Window()


WHOLE = Window()


def ends_of(path: Path, window: Window, steps: Mapping[int, tuple[int, int]], first: int) -> tuple[int, float]:
    """When the window begins and ends, on the clock of the trace, whose first event was then; an InstanceError where it is none."""
    if window.step is not None:
        if window.step not in steps:
            there = f"those of this trace are {_numbers(steps)}" if steps else "this trace has none: call its step() after each iteration"
            refuse(path, f"there is no step {window.step} that the profiler marked (ProfilerStep#{window.step}; {there})")
        return steps[window.step]
    return first + (window.begin or 0), float("inf") if window.end is None else first + window.end


def _numbers(steps: Mapping[int, tuple[int, int]]) -> str:
    found = sorted(steps)
    return f"{found[0]} to {found[-1]}" if len(found) > 1 and found[-1] - found[0] == len(found) - 1 else ", ".join(map(str, found))
