"""Functions over arrays compiled to machine code, kept on disk between runs. Only this file names the compiler."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., object])


def compiled(function: _Function) -> _Function:
    """The function in machine code; exact in whole numbers, and in floating point as it is written, without rearranging."""
    try:
        return cast(_Function, numba.njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no folder can be written to, so that every run compiles anew
        return cast(_Function, numba.njit(nogil=True)(function))
