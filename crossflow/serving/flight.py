"""Requests in flight on copies of a worker, whose steps lengthen with their number: what share of the time there are more than so many."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.records import dataclass

# A copy with n requests in flight serves R(n) = n / (P + T(n)) of them a second (`workers`). They share its steps, as in processor sharing,
# where the shares of time follow from the rates alone, whatever the lengths are (Kelly 1979). Where l requests come a second, at random, to
# b slots:
#
#     p(n) = p(0) l / R(1) l / R(2) ... l / R(n),     R(n) = R(b) for n > b
#
# Each of c copies that share their load has as many: the products to the power of c. A request is one more. Time per output token is that
# of the number that so small a share of the time exceeds. All rise with the requests a second and with the seconds of each step.


@dataclass(frozen=True, slots=True)
class Loads:
    """A copy by the number of its requests in flight, from few to all slots; between two numbers figures are in proportion."""

    numbers: Array
    rates: Array
    """Requests a second."""
    tokens: Array
    """Seconds per output token, never less with more requests."""
    logs: Array
    """Of the products of rates of 0, 1, 2, ... requests."""

    @property
    def slots(self) -> int:
        return len(self.logs) - 1


def loads_of(points: Sequence[tuple[float, float, float]]) -> Loads:
    """From numbers of requests, with requests a second and seconds per output token."""
    numbers, rates, tokens = np.array(points, np.float64).T
    each = np.interp(np.arange(1.0, numbers[-1] + 1.0), np.append(0.0, numbers), np.append(0.0, rates))
    return Loads(numbers, rates, np.maximum.accumulate(tokens), np.append(0.0, np.cumsum(np.log(each))))


def share_beyond(loads: Loads, number: int, copies: int, rate: float) -> float:
    """Share of the time with more requests in flight on each of some copies, to each of which so many come a second."""
    left = (rate / float(loads.rates[-1])) ** copies
    if left >= 1.0:
        return 1.0
    powers = copies * (np.arange(len(loads.logs)) * np.log(max(rate, _LEAST)) - loads.logs)
    shares = np.exp(powers - powers.max())
    queued = float(shares[-1]) * left / (1.0 - left)
    return (float(shares[number + 1 :].sum()) + queued) / (float(shares.sum()) + queued)


_LEAST: Final = 1.0e-300


def token_time_beyond(loads: Loads, copies: int, rate: float, share: float) -> float:
    """Seconds per output token with the requests in flight that so small a share of the time exceeds, and one more."""
    low, high = 0, loads.slots - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if share_beyond(loads, middle, copies, rate) <= share else (middle + 1, high)
    return float(np.interp(low + 1.0, loads.numbers, loads.tokens))


def most_within(loads: Loads, limit: float) -> int:
    """Requests in flight at most with which a time per output token is within a limit."""
    return int((np.interp(np.arange(1.0, loads.slots + 1.0), loads.numbers, loads.tokens) <= limit).sum())


def greatest_rate(rates: Array, tokens: Array, limit: float) -> Array:
    """No number of requests within the limit of time per output token serves more a second; columns are numbers, rows workers."""
    tokens = np.maximum.accumulate(tokens, axis=1)
    best = np.where(tokens <= limit, rates, 0.0)
    rise = tokens[:, 1:] - tokens[:, :-1]
    part = np.clip((limit - tokens[:, :-1]) / np.where(rise > 0.0, rise, 1.0), 0.0, 1.0)
    between = np.where(tokens[:, :-1] <= limit, rates[:, :-1] + part * (rates[:, 1:] - rates[:, :-1]), 0.0)
    return np.asarray(np.maximum(best.max(axis=1), between.max(axis=1, initial=0.0)) * _UP)


_UP: Final = 1.0 + 2.0**-48
"""More than what a few operations lose by rounding."""
