"""The engine `search`: messages, multipliers and large neighbourhoods for problems that no integer model holds."""

from collections.abc import Callable
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.solvers.sharding.compile_ahead import warm_search
from crossopt.solvers.sharding.run import EnoughError, Run
from crossopt.solvers.sharding.search.local import greedy
from crossopt.solvers.sharding.search.neighbourhoods import searched

_HORIZON = 120.0
"""Seconds of a search that nobody limits."""
_SPARED, _WRITTEN = 0.04, 1.0
"""Of the time, for the last proof, the way back and the judge; up to twice as much where that is not even the second that writing takes."""


def search(run: Run) -> None:
    """Offers choices and bounds until the time is up, or an EnoughError."""
    run.tick()
    warm_search(run.watch, lambda: run.left <= 0.0)
    _search(run, max(min(run.left - spared(run.limits.seconds), _HORIZON if np.isinf(run.limits.seconds) else np.inf), 0.0))
    if np.isfinite(run.limits.seconds) and not run.near:
        raise EnoughError


def spared(seconds: float) -> float:
    """What a search leaves of its time to those who come after it."""
    return max(_SPARED * seconds, min(_WRITTEN, 2.0 * _SPARED * seconds)) if np.isfinite(seconds) else 0.0


def _search(run: Run, seconds: float) -> None:
    if run.chosen is None:
        greedy(run)
    run.words = "multipliers and neighbourhoods"
    searched(run.core, _clock(run, seconds), run.limits.seed, _reporting(run), run.bound_proved, run.chosen)


def _clock(run: Run, seconds: float) -> Callable[[], float]:
    began = monotonic()

    def clock() -> float:
        return 1.0 if run.near or seconds <= 0.0 else (monotonic() - began) / seconds

    return clock


def _reporting(run: Run) -> Callable[[Whole | None, int | None, float], None]:
    def report(labels: Whole | None, cost: int | None, bound: float) -> None:
        del cost, bound  # the run counts them itself
        if labels is not None:
            run.offer(labels)
        run.show()

    return report
