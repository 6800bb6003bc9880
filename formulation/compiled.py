"""Functions over arrays compiled to machine code by numba, and kept on disk between runs. Only this file names the compiler.

numba is optional: without it the same functions run as Python, with the same results, about a hundred times slower.
"""

from collections.abc import Callable
from typing import Final, TypeVar, cast

import numpy as np
import numpy.typing as npt

from crossopt.instances.errors import install_text

try:
    from numba import njit
except ImportError:  # not installed, or not for the numpy beside it
    njit = None

_Function = TypeVar("_Function", bound=Callable[..., object])

COMPILES: Final = njit is not None
INSTALL: Final = install_text("graphs")
"""The command that installs the compiler."""


def compiled(function: _Function) -> _Function:
    """The function in machine code; exact in whole numbers, and in floating point as it is written, without rearranging.

    A literal as an argument would be a type of its own and compile the function once more: callers write `int(np.int64(1))`.
    """
    if not COMPILES:
        return function
    try:
        return cast(_Function, njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no folder can be written to, so that every run compiles anew
        return cast(_Function, njit(nogil=True)(function))


# Random numbers inside compiled loops, the same for the same seed on every machine: xorshift (Marsaglia, 2003).

Seed = npt.NDArray[np.uint64]


def seed_of(number: int) -> Seed:
    """A state of its own for each number from 0 on."""
    return np.random.default_rng(number).integers(1, 1 << 63, 1, np.uint64)


@compiled
def draw_below(seed: Seed, below: int) -> int:
    """A number from 0 to before `below`."""
    state = seed[0]
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    seed[0] = state
    return int(state >> np.uint64(20)) % below
