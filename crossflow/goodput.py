"""How much of the time a run that fails now and then gets on: checkpoints, failures and restarts at scale.

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
    """Between two failures of one device."""
    checkpoint: float
    restart: float

    def __post_init__(self) -> None:
        if self.mean_time <= 0.0 or self.checkpoint <= 0.0 or self.restart < 0.0:
            raise ValueError("mean time and checkpoint are above 0 seconds, and the restart is at least 0")


@dataclass(frozen=True, slots=True)
class Goodput:
    """What is left of the time."""

    between: float
    """Seconds between two failures of the run."""
    interval: float
    """Seconds of work between two checkpoints, the best there is."""
    share: float
    """Of the time that is work which lasts."""


def goodput(failures: Failures, devices: int) -> Goodput:
    """The best interval between checkpoints, and what it leaves."""
    between = failures.mean_time / devices
    interval = best_interval(failures.checkpoint, between)
    return Goodput(between, interval, lasting_share(failures, between, interval))


def best_interval(checkpoint: float, between: float) -> float:
    """The W up to which 1 - W / M is above exp(-(W + C) / M), halved in until no number lies between."""
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
"""Beyond it the exponential is more than a number can be."""
