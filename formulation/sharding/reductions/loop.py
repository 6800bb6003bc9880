"""All reductions, again and again until none changes anything, and what each round leaves."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.sharding.core import Core
from crossopt.formulation.sharding.editing import Back, NothingAllowedError, Reduced
from crossopt.formulation.sharding.memory import fewer_times, fix_apart
from crossopt.formulation.sharding.reductions.consistency import consistent
from crossopt.formulation.sharding.reductions.contraction import contract
from crossopt.formulation.sharding.reductions.domination import undominated
from crossopt.formulation.sharding.reductions.elimination import eliminate
from crossopt.formulation.sharding.reductions.separation import separate
from crossopt.instances.sharding.extent import NOTHING, Extent, Taken

_MOST_ROUNDS = 20
_Step = Callable[[Core], Reduced]
Seen = Callable[[str, Core, Reduced | NothingAllowedError], None]
STEPS: dict[str, _Step] = {
    "what nothing allows": consistent,
    "edges that come apart": separate,
    "fixed nodes and members": fix_apart,
    "times that fit": fewer_times,
    "needless strategies": undominated,
    "determined nodes": contract,
    "nodes of low degree": eliminate,
}


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """What is left of a core, the way back, and how it came about."""

    core: Core
    back: Back
    before: Extent
    after: Extent
    steps: tuple[Taken, ...]


class ContradictionError(Exception):
    """No choice is allowed, whatever the memory."""

    def __init__(self, node: int) -> None:
        super().__init__(f"every strategy of node {node} is forbidden, by itself or together with what its neighbours may choose")
        self.node = node


def size_of(core: Core) -> Extent:
    """The measures of a core."""
    open_nodes = core.counts > 1
    times = len(np.unique(core.member_starts))
    strategies = int(core.counts[open_nodes].sum())
    return Extent(int(open_nodes.sum()), strategies, len(core.firsts), len(core.entries), len(core.member_nodes), times)


def reduced(core: Core, tick: Callable[[], None] = lambda: None, seen: Seen = lambda name, before, done: None) -> Reduction:
    """The core after all reductions; a ContradictionError where nothing is allowed. `tick` is called between them and may raise; `seen` is
    shown each of them, with the core before it."""
    before = size = size_of(core)
    ways: list[Back] = []
    origins = np.arange(len(core))
    taken = dict.fromkeys(STEPS, NOTHING)
    seconds = dict.fromkeys(STEPS, 0.0)
    for _ in range(_MOST_ROUNDS):
        round_began = size
        for name, step in STEPS.items():
            tick()
            began = monotonic()
            try:
                done = step(core)
            except NothingAllowedError as error:
                seen(name, core, error)
                raise ContradictionError(int(origins[error.node])) from error
            seen(name, core, done)
            core, last, size = done.core, size, size_of(done.core)
            ways.append(done.back)
            origins = np.where(done.nodes < 0, -1, origins[done.nodes])
            taken[name] += last - size
            seconds[name] += monotonic() - began
        if size == round_began:
            break
    taken_away = tuple(Taken(name, taken[name], seconds[name]) for name in STEPS)
    return Reduction(core, partial(_all_back, tuple(reversed(ways))), before, size, taken_away)


def _all_back(ways: tuple[Back, ...], chosen: Whole) -> Whole:
    return reduce(lambda found, back: back(found), ways, chosen)
