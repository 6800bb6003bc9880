"""Constants of the model fitted to measured step times: formulas recorded once, and robust least squares within bounds."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from crossopt.crossflow.arrays import Array, Mask, Real
from crossopt.crossflow.plan import table
from crossopt.crossflow.transformer import step_times
from crossopt.instances.measured.runs import Measurement, device_for
from crossopt.solvers.measured.accuracy import plan_groups

# Robust least squares within bounds: Levenberg-Marquardt steps with Huber weights, on few parameters and many residuals.
#
#     minimise  sum over rows of  weight * side * huber(residual),   huber(r) = r^2 / 2 up to a width d, then d (|r| - d / 2)
#
# `side` is twice the tilt for residuals below zero and twice (1 - tilt) for the others: 1 for both at a tilt of a half, and asymmetric
# least squares elsewhere, whose minimum is an expectile instead of a mean (Newey and Powell 1987). Residuals are asked for many points at
# once, so that a whole Jacobian costs one call (Marquardt 1963; Huber 1964), and so do the Jacobians of many problems that differ in
# their weights, tilts and starts only.

Residuals = Callable[[Array], Array]
"""Takes points (one a row), gives residuals (one column a point)."""
RoundWatch = Callable[[int, int], None]
"""Told before each round: its number from 1, and how many searches are still going on."""

MIDDLE = 0.5
"""The tilt at which both sides count alike."""
_STEP = 1.0e-3
_DAMPING = (0.1, 1.0, 10.0, 100.0, 1000.0)
_ENOUGH = 1.0e-4


@dataclass(frozen=True, slots=True)
class Problem:
    """Where one search starts, and what each residual counts; rows of no weight are left out."""

    start: Array
    weights: Array
    tilt: float = MIDDLE


@dataclass(frozen=True, slots=True)
class Fit:
    """Where the search ended."""

    point: Array
    loss: float
    rounds: int


@dataclass(frozen=True, slots=True)
class _Search:
    """A search on its way."""

    problem: Problem
    point: Array
    loss: float = float("inf")
    rounds: int = 0
    damping: float = 1.0e-2
    ended: bool = False


def unwatched(number: int, searches: int) -> None:
    """Tells no one."""
    del number, searches


def fit(
    residuals: Residuals, start: Array, low: Array, high: Array, weights: Array, width: float, most_rounds: int = 30, tilt: float = MIDDLE
) -> Fit:
    """A local minimum of the robust sum within the bounds, from `start`; ends when a round gains less than a part in 10,000."""
    [found] = fit_together(residuals, [Problem(start, weights, tilt)], low, high, width, most_rounds)
    return found


def fit_together(
    residuals: Residuals,
    problems: Sequence[Problem],
    low: Array,
    high: Array,
    width: float,
    most_rounds: int = 30,
    watch: RoundWatch = unwatched,
) -> list[Fit]:
    """As `fit` for each problem on its own; all searches take their rounds together, so that each asks for residuals in the same calls."""
    searches = [_Search(problem, np.clip(problem.start, low, high)) for problem in problems]
    for number in range(1, most_rounds + 1):
        if not (going := [index for index, search in enumerate(searches) if not search.ended]):
            break
        watch(number, len(going))
        for index, search in zip(going, _round(residuals, [searches[index] for index in going], low, high, width), strict=True):
            searches[index] = search
    return [Fit(search.point, search.loss, search.rounds) for search in searches]


def _round(residuals: Residuals, searches: Sequence[_Search], low: Array, high: Array, width: float) -> list[_Search]:
    """One step of each search: the Jacobian, a few dampings, and the best of them."""
    parameters = len(low)
    signs = [np.where(search.point + _STEP <= high, 1.0, -1.0) for search in searches]
    near = [np.vstack([search.point, search.point + _STEP * np.diag(sign)]) for search, sign in zip(searches, signs, strict=True)]
    columns = np.split(residuals(np.vstack(near)), np.arange(1, len(searches)) * (parameters + 1), axis=1)
    here = [around[:, 0] for around in columns]
    jacobians = [(around[:, 1:] - around[:, :1]) / _STEP * sign for around, sign in zip(columns, signs, strict=True)]
    candidates = [
        np.array([_step(search, jacobian, now, width, search.damping * factor, low, high) for factor in _DAMPING])
        for search, jacobian, now in zip(searches, jacobians, here, strict=True)
    ]
    tried = np.split(residuals(np.vstack(candidates)), np.arange(1, len(searches)) * len(_DAMPING), axis=1)
    return [
        _moved(search, _loss(now, search.problem, width), points, [_loss(column, search.problem, width) for column in found.T])
        for search, now, points, found in zip(searches, here, candidates, tried, strict=True)
    ]


def _moved(search: _Search, loss: float, candidates: Array, losses: Sequence[float]) -> _Search:
    """The search at the best of the candidates, and ended where that gains little; where it gains nothing, ended where it was."""
    best = int(np.argmin(losses))
    if losses[best] >= loss:
        return replace(search, loss=loss, ended=True)
    gained = 1.0 - losses[best] / loss
    return replace(
        search,
        point=candidates[best],
        loss=losses[best],
        rounds=search.rounds + 1,
        damping=search.damping * _DAMPING[best],
        ended=gained < _ENOUGH,
    )


def _step(search: _Search, jacobian: Array, here: Array, width: float, damping: float, low: Array, high: Array) -> Array:
    """The damped Gauss-Newton step of the reweighted problem, clipped to the bounds; parameters at a bound that pull outwards stay."""
    point, weights = search.point, _sided(here, search.problem)
    steep = weights * np.where(np.abs(here) <= width, 1.0, width / np.maximum(np.abs(here), width))
    slope, curve = jacobian.T @ (steep * here), jacobian.T @ (jacobian * steep[:, None])
    free = ~(((point <= low) & (slope > 0.0)) | ((point >= high) & (slope < 0.0)))
    moved = point.copy()
    inner = curve[np.ix_(free, free)] + damping * np.diag(np.diag(curve)[free] + 1.0e-12)
    moved[free] -= np.linalg.solve(inner, slope[free])
    return np.clip(moved, low, high)


def _loss(residual: Array, problem: Problem, width: float) -> float:
    size = np.abs(residual)
    return float(np.sum(_sided(residual, problem) * np.where(size <= width, size * size / 2.0, width * (size - width / 2.0))))


def _sided(residual: Array, problem: Problem) -> Array:
    """The weight of each row with that of the side of zero on which its residual lies."""
    return problem.weights * np.where(residual < 0.0, 2.0 * problem.tilt, 2.0 * (1.0 - problem.tilt))


# Formulas run once on constants that are not known yet, and then again and again on what may be known: of all that a step time is made
# of only what depends on the constants is computed anew.
#
# A `Recorded` value stands for an array whose last axis is over sets of constants. numpy hands every operation on it to this file, which
# notes it down and does nothing else; operations on plain arrays are done at once, and so are left behind. Equal operations are noted once,
# and those that the result does not need never run.

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
        plain = [None if isinstance(argument, Recorded) else argument for argument in arguments]
        places = tuple(argument.index if isinstance(argument, Recorded) else None for argument in arguments)
        key = (run, places, tuple(_key(argument) for argument in plain))
        if key not in self.known:
            self.known[key] = len(self.names) + len(self.operations)
            self.operations.append(Operation(run, places, tuple(plain)))
        return Recorded(self, self.known[key], shape)


@dataclass(frozen=True, slots=True, eq=False)
class Recorded(NDArrayOperatorsMixin):
    """The value at a place of a tape, with the shape that it has for one set of constants."""

    tape: Tape
    index: int
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
        return self.tape.note(ufunc, inputs, np.broadcast_shapes(*(np.shape(operand) for operand in inputs)))

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


def _where(tape: Tape, mask: Any, chosen: Any, otherwise: Any) -> Recorded:  # noqa: ANN401 - what numpy takes
    return tape.note(np.where, (mask, chosen, otherwise), np.broadcast_shapes(*(np.shape(part) for part in (mask, chosen, otherwise))))


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
    last_use, needed = {result.index: -1}, list[int]()
    for index in range(len(tape.operations) - 1, -1, -1):
        if first + index in last_use:
            needed.append(index)
            for used in tape.operations[index].places:
                if used is not None:
                    last_use.setdefault(used, first + index)
    steps, names = [(first + index, tape.operations[index]) for index in reversed(needed)], tuple(tape.names)

    def run(constants: Mapping[str, Array]) -> Array:
        values: dict[int, Any] = {index: constants[name] for index, name in enumerate(names)}
        for index, operation in steps:
            values[index] = operation.run(
                *(plain if used is None else values[used] for used, plain in zip(operation.places, operation.plain, strict=True))
            )
            for used in operation.places:
                if used is not None and last_use[used] == index:
                    values.pop(used, None)
        return np.asarray(values[result.index])

    return run


# Constants of the model fitted to measured step times, many sets of them at once.
#
#     residual of a row = log(predicted / measured)
#
# Sources count alike whatever their number of rows (weights fall with the 0.6th power of it), and rows far off pull with bounded force.
# The formulas run once on constants that are not known (`measured.recorded`); all sets share the calls of what depends on them, which cost
# nearly the same for one set of constants as for hundreds.

_WIDTH = 0.05
"""Relative errors beyond this count in proportion, not squared: the noise between repeated runs is about 3 %."""
_SOURCE_POWER = 0.6


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of the model that is fitted, and the range that physics and data sheets leave it."""

    name: str
    low: float
    start: float
    high: float


@dataclass(frozen=True, slots=True)
class Task:
    """One set of constants to fit: what each row counts, which side of it counts more, and where the search starts."""

    weights: Array
    tilt: float = MIDDLE
    """Above a half, predictions that are too short count more than those that are too long."""
    start: Array | None = None
    """Values of the constants; their own starts where nothing is said."""


Note = Callable[[str], None]
"""Takes a line that says how far the work is."""


def unnoted(line: str) -> None:
    """Drops it."""
    del line


def fitted(measurements: Sequence[Measurement], constants: tuple[Constant, ...], tasks: Sequence[Task], note: Note = unnoted) -> Array:
    """The constants of each task, one row each."""
    low, high = (np.log([getattr(constant, side) for constant in constants]) for side in ("low", "high"))
    usual = np.array([constant.start for constant in constants])

    def residuals(points: Array) -> Array:
        return np.log(relative(measurements, constants, np.exp(points)))

    def watch(number: int, searches: int) -> None:
        note(f"fit of {len(tasks)} sets of constants, round {number}: {searches} still move")

    problems = [Problem(np.log(usual if task.start is None else task.start), task.weights, task.tilt) for task in tasks]
    return np.exp([found.point for found in fit_together(residuals, problems, low, high, _WIDTH, watch=watch)])


def at_bound(constants: tuple[Constant, ...], point: Array) -> tuple[str, ...]:
    """The constants that ended on a bound: a finding about the data."""
    return tuple(c.name for c, value in zip(constants, point, strict=True) if value <= c.low * 1.001 or value >= c.high * 0.999)


def relative(measurements: Sequence[Measurement], constants: tuple[Constant, ...], points: Array) -> Array:
    """Predicted over measured time: rows against points."""
    names = tuple(constant.name for constant in constants)
    values = {name: np.ascontiguousarray(points[:, column]) for column, name in enumerate(names)}
    quotients = np.empty((len(measurements), len(points)))
    for rows, seconds in _programs(tuple(measurements), names):
        quotients[rows] = seconds(values)
    quotients /= np.array([row.seconds for row in measurements])[:, None]
    return quotients


@lru_cache(maxsize=2)
def _programs(measurements: tuple[Measurement, ...], names: tuple[str, ...]) -> tuple[tuple[list[int], Program], ...]:
    """The step times of rows that are priced together, as programs that take constants: a fit asks for the same rows hundreds of times."""
    return tuple((rows, _program([measurements[row] for row in rows], names)) for rows in plan_groups(measurements))


def _program(rows: Sequence[Measurement], names: tuple[str, ...]) -> Program:
    tape, hardware, run = Tape(), device_for(rows[0]), rows[0]
    unknown: dict[str, Any] = {name: tape.constant(name) for name in names}
    device = replace(hardware, efficiency=replace(hardware.efficiency, **unknown))
    return program(step_times(run.workload, device, run.cluster, table([row.plan for row in rows])))


def row_weights(measurements: Sequence[Measurement], mask: Mask) -> Array:
    """(rows of the source)^-0.6 for the rows that are kept, 0 for the others."""
    count = Counter(row.source for row, keep in zip(measurements, mask, strict=True) if keep)
    return np.array([count[row.source] ** -_SOURCE_POWER if keep else 0.0 for row, keep in zip(measurements, mask, strict=True)])


def source_means(measurements: Sequence[Measurement], values: Array) -> dict[str, float]:
    """The mean of one value a row over the rows of each source."""
    sources = np.array([row.source for row in measurements])
    return {str(source): float(values[sources == source].mean()) for source in dict.fromkeys(sources)}
