"""Reals become integers here, and in one direction: costs and usage are floored, capacities are ceiled.

    integer cost = floor(cost / quantum),  integer usage = floor(usage / quantum),  integer capacity = ceil(capacity / quantum)

Then each real solution is an integer solution, as floor(u1) + floor(u2) + ... <= u1 + u2 + ... <= capacity <= ceil(capacity), and costs no
more than in reality. So the integer optimum times the quantum never exceeds the real optimum: it is a valid lower bound of the real
problem. It lies below by less than one quantum for each cost that is added.

A quantum is a power of two. Dividing by it is then exact in floating point, and so is the way back: no rounding but the one that is meant.
"""

from fractions import Fraction
from math import floor, frexp, inf, isfinite, log2

import numpy as np
from numpy.typing import ArrayLike

from crossopt.crossflow.arrays import Array, Whole
from crossopt.formulation.model import EXACT


def quantum_for(largest: float, steps: int) -> float:
    """The finest power of two of which `largest` is at most `steps`."""
    if not (isfinite(largest) and largest > 0 and steps >= 1):
        raise ValueError(f"no quantum for values up to {largest} in {steps} steps: a positive number and at least one step are needed")
    quantum = 2.0 ** floor(log2(largest / steps))
    return quantum if largest <= steps * quantum else 2 * quantum


def floored(reals: ArrayLike, quantum: float) -> Whole:
    """Costs or usage in whole quanta, rounded down; `.tolist()` gives the Python integers that a model asks for."""
    values = np.asarray(reals, dtype=np.float64)
    whole = np.floor(_scaled(values, quantum))
    return (whole - (whole * quantum > values)).astype(np.int64)  # a tiny negative value may have been scaled to zero


def ceiled(reals: ArrayLike, quantum: float) -> Whole:
    """Capacities in whole quanta, rounded up."""
    return -floored(-np.asarray(reals, dtype=np.float64), quantum)


def real(quanta: int, quantum: float) -> float:
    """The real number that a bound in quanta stands for, and never one above it."""
    _power_of_two(quantum)
    exact = Fraction(quanta) * Fraction(quantum)
    nearest = float(exact)
    return nearest if Fraction(nearest) <= exact else float(np.nextafter(nearest, -inf))


def rounding_loss(costs: int, quantum: float) -> float:
    """What the integer value of a solution is below its real cost at most, if that many floored costs are added."""
    return costs * quantum


def _scaled(values: Array, quantum: float) -> Array:
    _power_of_two(quantum)
    with np.errstate(over="ignore", under="ignore"):
        scaled = values / quantum
    if not np.all(np.abs(scaled) <= EXACT):
        raise ValueError("a value is not finite or has more than 2**53 quanta; use a coarser quantum")
    return scaled


def _power_of_two(quantum: float) -> None:
    if not (isfinite(quantum) and quantum > 0 and frexp(quantum)[0] == 0.5):
        raise ValueError(f"the quantum {quantum} is not a power of two; `quantum_for` finds one")
