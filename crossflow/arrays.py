"""Array types, and functions that find equal inputs so that each is computed once."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Real: TypeAlias = float | Array
"""A float, or an array of floats over many designs. Every formula takes both and gives the same bits."""

_DENSE = 1 << 22


def power(base: Real, exponent: Real) -> Real:
    """`base ** exponent` with the same bits for a scalar and at any position of an array.

    `**` is another routine for a number than for an array, and numpy takes shortcuts for an exponent of 2 or -1 that all have in common.
    """
    full = np.broadcast_arrays(np.atleast_1d(base), exponent)
    found = np.power(*(np.array(figure, np.float64) for figure in full))
    return found if np.ndim(base) or np.ndim(exponent) else found[0]


def distinct(*columns: Ints) -> tuple[Ints, Ints]:
    """Row of the first occurrence of each distinct combination of columns, and each row's combination number.

    Costs are then computed once a combination and gathered. Columns hold non-negative integers.
    """
    key = np.zeros(columns[0].shape, np.int64)
    for column in columns:
        values, codes = _codes(column)
        key = key * len(values) + codes
        if len(values) and key.max(initial=0) >= _DENSE:
            key = _codes(key)[1]
    _, number = _codes(key)
    first = np.zeros(number.max(initial=-1) + 1, np.int64)
    first[number[::-1]] = np.arange(len(key) - 1, -1, -1)  # of several writes to one place the last stays: the first row
    return first, number


def _codes(column: Ints) -> tuple[Ints, Ints]:
    """The distinct values of a column, ascending, and each row's index among them; without sorting where values are small."""
    top = int(column.max(initial=0))
    if top >= _DENSE:
        values, codes = np.unique(column, return_inverse=True)
        return values, codes.reshape(column.shape)
    present = np.zeros(top + 1, bool)
    present[column] = True
    values = np.flatnonzero(present)
    index_of = np.zeros(top + 1, np.int64)
    index_of[values] = np.arange(len(values))
    return values, index_of[column]
