"""A linear or integer model in arrays, for models of which Python objects would be too many."""

from dataclasses import dataclass

from crossopt.crossflow.arrays import Array, Mask, Whole


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Linear rows: the terms of row r stand from `starts[r]` to `starts[r + 1]`."""

    lows: Array
    highs: Array
    starts: Whole
    columns: Whole
    factors: Array


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A linear or integer model: columns from 0 on whose costs add up to what is minimised, and its rows."""

    unit: float
    """What a cost of 1 stands for."""
    costs: Array
    highs: Array
    """All columns are from 0 on."""
    whole: Mask
    """Which columns are integers."""
    rows: Rows
