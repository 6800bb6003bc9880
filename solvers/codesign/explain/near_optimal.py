"""What every design near the optimum has in common, proved without counting designs: for each choice the options that can occur.

Every figure answers a question of yes or no: is there a design of at most the limit with this choice so restricted? A dive finds most of
those that there are; where there is none, branch and bound refutes it, with the limit in place of a best value. Options of a plan are
asked one by one. Hardware choices are asked from both ends by halves: whether any design has less than the least option known to occur,
and more than the greatest one. What is refuted for one choice narrows the questions about all others.
"""

from dataclasses import replace
from time import monotonic
from typing import Any

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.crossflow.records import dataclass
from crossopt.instances.codesign.boxes import Boxes, Grid, corners, grid, option_indices, tightened
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import AnyPlans, plan_blocks, plan_values
from crossopt.solvers.answer import Progress, Watch
from crossopt.solvers.codesign.answer import Candidate, DesignResult, candidate_in
from crossopt.solvers.codesign.boxes.branch import Incumbent, Node, Spend, branch, chip_moves, dive, root_node
from crossopt.solvers.codesign.exhaustive import setting_indices
from crossopt.solvers.codesign.objective import joined, rows_of, values_of

_FEW = 8
"""So few hardware options between the ends are asked one by one, too."""
_SHARE = 4.0
"""One question may take this part of the time that is left."""
_MOVED = 16
"""Plans with which chips around one are priced."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is proved of the options of one choice, in ascending order for hardware."""

    name: str
    options: tuple[Any, ...]
    occur: tuple[bool, ...]
    """A design within the limit was found with this option."""
    never: tuple[bool, ...]
    """No design within the limit has it."""
    asked_between: bool
    """Whether options between the least and the greatest one that occurs were asked; of many only the ends are."""


@dataclass(frozen=True, slots=True)
class Near:
    """What is known of all designs of at most the limit."""

    limit: float
    choices: tuple[Known, ...]


@dataclass(slots=True)
class _State:
    """The designs that may be within the limit, and what is known of each choice so far."""

    instance: Instance
    space: Grid
    limit: float
    box: Boxes
    plans: AnyPlans
    """Those that are within the limit on the best chip there could be."""
    alive: Mask
    """Which of them have no option that is out."""
    places: dict[str, Ints]
    """For every choice of a plan, the place of each plan's option."""
    occur: dict[str, Mask]
    never: dict[str, Mask]
    watch: Watch
    deadline: float
    stopped: bool = False

    @property
    def above(self) -> float:
        """The least number above the limit: a best value that any design within the limit improves on."""
        return float(np.nextafter(self.limit, np.inf))


def near_optimum(instance: Instance, result: DesignResult, gap: float, watch: Watch, deadline: float) -> Near | None:
    """What the designs within this gap of a proved optimum have in common; None where the optimum is not proved."""
    if result.value is None or result.answer is None or not result.proved:
        return None

    def hear(progress: Progress) -> None:
        watch(replace(progress, best=result.value))

    return near(instance, candidate_in(instance, result.answer.design), result.value * (1.0 + gap), hear, deadline)


def near(instance: Instance, best: Candidate, limit: float, watch: Watch, deadline: float) -> Near:
    """What the designs of at most the limit have in common; the best one is one of them. What is not decided in time stays open."""
    state = _state(instance, limit, watch, deadline)
    try:
        _see(state, option_indices(state.space, best.point)[None], np.flatnonzero(state.alive))
        for name in state.places:
            _ask_options(state, name)
        for choice in range(len(state.space.sizes)):
            _ask_ends(state, choice)
        for choice in range(len(state.space.sizes)):
            _ask_between(state, choice)
    except KeyboardInterrupt:
        state.stopped = True
    return Near(limit, _known(state))


def _state(instance: Instance, limit: float, watch: Watch, deadline: float) -> _State:
    """Every plan on the best chip there could be; those above the limit are out."""
    space = grid(instance)
    root = root_node(instance)
    chip = corners(instance, space, root.box)
    near_ones = [rows_of(block, np.flatnonzero(values_of(instance, chip, block)[:, 0] <= limit)) for block in plan_blocks(instance)]
    plans, options = joined(near_ones), {name: values for name, values in plan_values(instance) if len(values) > 1}
    rows = np.arange(len(plans))
    places = {name: setting_indices(plans, rows, name, values) for name, values in options.items()}
    sizes = {**dict(zip(space.names, space.sizes, strict=True)), **{name: len(values) for name, values in options.items()}}
    occur, never = ({name: np.zeros(size, bool) for name, size in sizes.items()} for _ in range(2))
    for choice, name in enumerate(space.names):
        never[name][: root.box.low[0, choice]] = never[name][root.box.high[0, choice] + 1 :] = True
    return _State(instance, space, limit, root.box, plans, np.ones(len(plans), bool), places, occur, never, watch, deadline)


def _ask_options(state: _State, name: str) -> None:
    """Each option of a plan that was not seen yet."""
    for option in range(len(state.occur[name])):
        rows = np.flatnonzero(state.alive & (state.places[name] == option))
        if not state.occur[name][option] and _refuted(state, state.box, rows):
            state.never[name][option] = True
            state.alive[rows] = False


def _ask_ends(state: _State, choice: int) -> None:
    """From both ends of a hardware choice by halves, up to the least and down to the greatest option that occurs."""
    seen = state.occur[state.space.names[choice]]
    while (low := int(state.box.low[0, choice])) < (least := _ends(seen)[0]):
        if not _without(state, choice, low, (low + least - 1) // 2) and _ends(seen)[0] == least:
            break  # neither refuted nor found in time
    while (high := int(state.box.high[0, choice])) > (most := _ends(seen)[1]):
        if not _without(state, choice, (high + most + 2) // 2, high) and _ends(seen)[1] == most:
            break


def _ask_between(state: _State, choice: int) -> None:
    """Single options between the ends, where they are few."""
    seen = state.occur[state.space.names[choice]]
    low, high = _ends(seen)
    for option in range(low + 1, high) if high - low <= _FEW else ():
        if not seen[option]:
            _without(state, choice, option, option)


def _ends(seen: Mask) -> tuple[int, int]:
    """The first and the last place that was seen."""
    return int(np.argmax(seen)), len(seen) - 1 - int(np.argmax(seen[::-1]))


def _without(state: _State, choice: int, first: int, last: int) -> bool:
    """Whether no design within the limit has an option of a hardware choice from the first to the last."""
    low, high = state.box.low.copy(), state.box.high.copy()
    low[0, choice], high[0, choice] = first, last
    if not _refuted(state, Boxes(low, high), np.flatnonzero(state.alive)):
        return False
    state.never[state.space.names[choice]][first : last + 1] = True
    low, high = state.box.low.copy(), state.box.high.copy()
    if first == low[0, choice]:
        low[0, choice] = last + 1
    elif last == high[0, choice]:
        high[0, choice] = first - 1
    state.box = Boxes(low, high)
    return True


def _refuted(state: _State, box: Boxes, rows: Ints) -> bool:
    """Whether no design within the limit is in the box with one of these plans; one that is found is noted."""
    if not len(rows):
        return True
    if state.stopped or monotonic() >= state.deadline:
        return False
    instance, space = state.instance, state.space
    plans, node = rows_of(state.plans, rows), Node(tightened(instance, space, box))
    bounds = values_of(instance, corners(instance, space, node.box), plans)[:, 0]
    below = np.flatnonzero(bounds <= state.limit)
    if not len(below):
        return True
    rows, plans, bounds = rows[below], rows_of(plans, below), bounds[below]
    places = dive(instance, space, node.box, plans)
    if places is not None and _see(state, places[None], rows):
        return False
    return _searched(state, node, rows, plans, bounds)


def _searched(state: _State, node: Node, rows: Ints, plans: AnyPlans, bounds: Array) -> bool:
    """Whether branch and bound refutes these plans in the box; a design that it finds within the limit is noted."""
    start, began = Incumbent(state.above, node.box.low[0], None), monotonic()
    spend = Spend(began + (state.deadline - began) / _SHARE, target=state.limit)
    search = branch(state.instance, state.space, node, plans, bounds, start, _progress_of(state), spend)
    state.stopped = state.stopped or search.stopped == "interrupted"
    if search.best.plan is None:
        return search.stopped == "complete"
    _see(state, search.best.places[None], rows)
    return False


def _see(state: _State, chips: Ints, rows: Ints) -> bool:
    """Note the options of all designs within the limit of these plans on one chip, and of a few of the plans on the chips around it;
    whether there is one on the chip itself."""
    table = _prices(state, chips, rows)[:, 0]
    near = rows[table <= state.limit]
    if not len(near):
        return False
    for name, places in state.places.items():
        state.occur[name][places[near]] = True
    moved = np.concatenate([chips, chip_moves(state.space, chips[0])])
    best = rows[np.argsort(table, kind="stable")[:_MOVED]]
    within = (_prices(state, moved, best) <= state.limit).any(axis=0)
    for choice, name in enumerate(state.space.names):
        state.occur[name][moved[within, choice]] = True
    return True


def _prices(state: _State, chips: Ints, rows: Ints) -> Array:
    return values_of(state.instance, corners(state.instance, state.space, Boxes(chips, chips)), rows_of(state.plans, rows))


def _progress_of(state: _State) -> Watch:
    """The progress of one question, beside that of all."""
    decided = sum(int((state.occur[name] | state.never[name]).sum()) for name in state.occur)
    label = f"{decided:,} of {sum(map(len, state.occur.values())):,} options decided"

    def hear(progress: Progress) -> None:
        state.watch(Progress(f"{label}; {progress.label}", None))

    return hear


def _known(state: _State) -> tuple[Known, ...]:
    hardware = {name: tuple(float(value) for value in values) for name, values in zip(state.space.names, state.space.options, strict=True)}
    options = {**hardware, **{name: values for name, values in plan_values(state.instance) if name in state.places}}
    many = {name for name in hardware if (ends := _ends(state.occur[name]))[1] - ends[0] > _FEW}
    every = ((name, values, state.occur[name].tolist(), state.never[name].tolist()) for name, values in options.items())
    return tuple(
        Known(name, values, tuple(occur), tuple(never), name not in many) for name, values, occur, never in every if len(values) > 1
    )
