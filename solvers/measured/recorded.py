"""Formulas run once on constants that are not known yet, and then again and again on what may be known: of all that a step time is made
of only what depends on the constants is computed anew.

A `Recorded` value stands for an array whose last axis is over sets of constants. numpy hands every operation on it to this file, which
notes it down and does nothing else; operations on plain arrays are done at once, and so are left behind. Equal operations are noted once,
and those that the result does not need never run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from crossopt.crossflow.arrays import Array, Real

_Run = Callable[..., Any]
Program = Callable[[Mapping[str, Array]], Array]
"""Takes constants by name, gives the figures of a value for each set of them."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A function of earlier values, by their places, and of plain arrays."""

    run: _Run
    places: tuple[int | None, ...]
    """Of each argument that is recorded; None for a plain one."""
    plain: tuple[Any, ...]
    """Each argument that is plain; None for a recorded one."""


@dataclass(slots=True)
class Tape:
    """What was noted down, in order; names of constants come first."""

    names: list[str] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    known: dict[Any, int] = field(default_factory=dict)

    def constant(self, name: str) -> "Recorded":
        """A constant of which nothing is known but its name; all before the first operation."""
        self.names.append(name)
        return Recorded(self, len(self.names) - 1, (1,))

    def note(self, run: _Run, arguments: Sequence[Any], shape: tuple[int, ...]) -> "Recorded":
        """The value of this operation, which is noted down unless an equal one is."""
        plain = [None if isinstance(one, Recorded) else one for one in arguments]
        places = tuple(one.place if isinstance(one, Recorded) else None for one in arguments)
        key = (run, places, tuple(_key(one) for one in plain))
        if key not in self.known:
            self.known[key] = len(self.names) + len(self.operations)
            self.operations.append(Operation(run, places, tuple(plain)))
        return Recorded(self, self.known[key], shape)


@dataclass(frozen=True, slots=True, eq=False)
class Recorded(NDArrayOperatorsMixin):
    """The value at a place of a tape, with the shape that it has for one set of constants."""

    tape: Tape
    place: int
    shape: tuple[int, ...]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:  # noqa: ANN401 - numpy's protocol
        del dtype, copy
        raise TypeError("a recorded value has no figures yet")

    def __getitem__(self, rows: Any) -> "Recorded":  # noqa: ANN401 - what numpy takes
        return self.tape.note(_Rows(_key(rows), rows), (self,), np.empty(self.shape)[rows].shape)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any) -> Any:  # noqa: ANN401 - numpy's protocol
        if method != "__call__":
            return NotImplemented
        return self.tape.note(ufunc, inputs, np.broadcast_shapes(*(np.shape(one) for one in inputs)))

    def __array_function__(self, function: _Run, types: Any, arguments: Any, options: Any) -> Any:  # noqa: ANN401 - numpy's protocol
        del types
        if function not in _FUNCTIONS:
            raise TypeError(f"nothing notes {function.__name__} down")
        return _FUNCTIONS[function](self.tape, *arguments, **options)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Takes some rows; equal to another that takes the same."""

    key: Any
    rows: Any = field(compare=False)

    def __call__(self, value: Array) -> Array:
        return value[self.rows]  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class _Spread:
    """Spreads over rows, with a column for each set of constants."""

    shape: tuple[int, ...]

    def __call__(self, value: Array) -> Array:
        return np.broadcast_to(value, (*self.shape[:-1], value.shape[-1]))


def _stacked(*parts: Array) -> Array:
    width = max(part.shape[-1] for part in parts)
    return np.concatenate([np.broadcast_to(part, (*part.shape[:-1], width)) for part in parts])


def _where(tape: Tape, mask: Any, one: Any, other: Any) -> Recorded:  # noqa: ANN401 - what numpy takes
    return tape.note(np.where, (mask, one, other), np.broadcast_shapes(*(np.shape(part) for part in (mask, one, other))))


def _take(tape: Tape, value: Recorded, rows: Any, axis: int) -> Recorded:  # noqa: ANN401 - what numpy takes
    if axis:
        raise TypeError("only rows can be taken of recorded values")
    del tape
    return value[rows]


def _broadcast_to(tape: Tape, value: Recorded, shape: tuple[int, ...]) -> Recorded:
    if shape[-1] != 1:
        raise TypeError("recorded values have one column for each set of constants")
    return tape.note(_Spread(shape), (value,), shape)


def _any(tape: Tape, value: Recorded) -> bool:
    """Formulas ask so whether a term is there at all; one that depends on a constant is."""
    del tape, value
    return True


def _vstack(tape: Tape, parts: Sequence[Any]) -> Recorded:
    rows = sum(np.shape(part)[0] for part in parts)
    return tape.note(_stacked, tuple(parts), (rows, *np.shape(parts[0])[1:]))


_FUNCTIONS: Mapping[_Run, _Run] = {
    np.where: _where,
    np.take: _take,
    np.broadcast_to: _broadcast_to,
    np.vstack: _vstack,
    np.any: _any,
    np.ndim: lambda tape, value: value.ndim,
    np.shape: lambda tape, value: value.shape,
}


def _key(value: Any) -> Any:  # noqa: ANN401 - what numpy takes
    """What equal values have in common."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, slice):
        return "slice", value.start, value.stop, value.step
    return type(value), value


def program(result: Real | Recorded) -> Program:
    """All that a value needs, to be run on constants, which are arrays over the same sets; each value is dropped after its last use."""
    if not isinstance(result, Recorded):
        return lambda constants: np.asarray(result, np.float64)
    tape, first = result.tape, len(result.tape.names)
    last_use, needed = {result.place: -1}, list[int]()
    for place in range(len(tape.operations) - 1, -1, -1):
        if first + place in last_use:
            needed.append(place)
            for used in tape.operations[place].places:
                if used is not None:
                    last_use.setdefault(used, first + place)
    steps, names = [(first + place, tape.operations[place]) for place in reversed(needed)], tuple(tape.names)

    def run(constants: Mapping[str, Array]) -> Array:
        values: dict[int, Any] = {place: constants[name] for place, name in enumerate(names)}
        for place, one in steps:
            values[place] = one.run(*(plain if used is None else values[used] for used, plain in zip(one.places, one.plain, strict=True)))
            for used in one.places:
                if used is not None and last_use[used] == place:
                    values.pop(used, None)
        return np.asarray(values[result.place])

    return run
