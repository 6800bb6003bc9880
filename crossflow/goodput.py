"""Share of useful time of a run with failures: checkpoints, failures and restarts at scale.

Failures come at random, one in M = (mean time of a device) / devices seconds; a checkpoint takes C seconds, a restart R. A stretch of W
seconds of work with its checkpoint takes, with all that is done again,

    E(W) = M exp(R / M) (exp((W + C) / M) - 1)

in the mean, where restarts may fail too (Daly 2006, "A higher order estimate of the optimum checkpoint interval"). W / E(W) is greatest
where (1 - W / M) exp((W + C) / M) = 1: the left side falls in W from exp(C / M) >= 1 to 0 at W = M, so that there is one such W and no
other is as good. sqrt(2 C M) is near it (Young 1974).
"""

from math import exp, expm1, inf, sqrt

from crossopt.crossflow.records import dataclass


@dataclass(frozen=True, slots=True)
class Failures:
    """Seconds."""

    mean_time: float
    """Mean seconds between two failures of one device."""
    checkpoint: float
    restart: float

    def __post_init__(self) -> None:
        if self.mean_time <= 0.0 or self.checkpoint <= 0.0 or self.restart < 0.0:
            raise ValueError("mean time and checkpoint are above 0 seconds, and the restart is at least 0")


@dataclass(frozen=True, slots=True)
class Goodput:
    """The goodput of a run and the checkpoint interval that gives it."""

    between: float
    """Mean seconds between two failures of the run."""
    interval: float
    """Optimal seconds of work between two checkpoints."""
    share: float
    """Share of the time spent on work that is not lost."""


def goodput(failures: Failures, devices: int) -> Goodput:
    """The optimal checkpoint interval and the goodput that results."""
    between = failures.mean_time / devices
    interval = best_interval(failures.checkpoint, between)
    return Goodput(between, interval, lasting_share(failures, between, interval))


def best_interval(checkpoint: float, between: float) -> float:
    """The largest W at which 1 - W / M is above exp(-(W + C) / M), by bisection down to neighbouring floats."""
    low, high = 0.0, between
    while low < (middle := (low + high) / 2.0) < high:
        low, high = (middle, high) if 1.0 - middle / between > exp(-(middle + checkpoint) / between) else (low, middle)
    return low or young_interval(checkpoint, between)


def young_interval(checkpoint: float, between: float) -> float:
    """sqrt(2 C M)."""
    return sqrt(2.0 * checkpoint * between)


def lasting_share(failures: Failures, between: float, interval: float) -> float:
    """W / E(W)."""
    stretch, again = (interval + failures.checkpoint) / between, failures.restart / between
    taken = between * exp(again) * expm1(stretch) if stretch + again < _LARGEST else inf
    return interval / taken


_LARGEST = 700.0
"""Exponent beyond which exp overflows."""
