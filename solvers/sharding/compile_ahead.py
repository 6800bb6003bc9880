"""Compiles what is not compiled yet: a small problem goes through every function that is compiled.

The first run of an installation takes up to a minute for that, which its time limit counts; `crossopt compile` does it ahead. Later runs
find the machine code on disk within a fraction of a second.
"""

from collections.abc import Callable
from math import inf
from time import monotonic

import numpy as np

from crossopt.formulation.sharding.core import unreduced
from crossopt.formulation.sharding.dual import fixed, no_dual
from crossopt.formulation.sharding.reductions import reduced
from crossopt.instances.sharding.problem import FORBIDDEN, Problem, offsets_of
from crossopt.solvers.answer import Limits, Progress, Watch
from crossopt.solvers.sharding.local import descend
from crossopt.solvers.sharding.messages import ascent_of, climb, cool, cooling_of
from crossopt.solvers.sharding.run import EnoughError, Run
from crossopt.solvers.sharding.search import pull, walked, walker_of

MESSAGE = "compiling, once per installation (`crossopt compile` does it ahead)"
_NODES, _STRATEGIES = 8, 3
_FAR = 10_000
"""Above all costs, so that the proof leaves nothing out."""
_LOADED = 2.0
"""Seconds in which code that is compiled has long been loaded."""


def warmed(watch: Watch, late: Callable[[], bool]) -> None:
    """Has the reductions, the rules and the proof work on a small problem; an EnoughError where it gets late."""
    told = _telling(watch, late)
    core = unreduced(_problem())
    reduced(core, told)
    run = Run(core, Limits(inf), lambda _: told(), monotonic())
    descend(run)
    told()
    fixed(core, no_dual(core), _FAR)
    told()


def warm_search(watch: Watch, late: Callable[[], bool]) -> None:
    """The same of the search."""
    told = _telling(watch, late)
    core = unreduced(_problem())
    ascent = ascent_of(core)
    climb(ascent, lambda _: False)
    told()
    cool(ascent, cooling_of(ascent), lambda: 0.0, lambda: True, 1)
    told()
    walker = walker_of(core, ascent.labels, ascent.multipliers, 0)
    pull(walker, 1, _NODES, False)
    told()
    walked(walker, 1, 1, 0.0)
    told()


def _telling(watch: Watch, late: Callable[[], bool]) -> Callable[[], None]:
    """Tells of compiling where it takes longer than finding it compiled, and ends it where it gets late."""
    began = monotonic()

    def told() -> None:
        if monotonic() - began > _LOADED:
            watch(Progress(MESSAGE, None))
        if late():
            raise EnoughError

    return told


def _problem() -> Problem:
    """A ring with chords whose figures follow no pattern, with a forbidden pair and a limit that binds."""
    random = np.random.default_rng(1)
    firsts = np.concatenate([np.arange(_NODES), np.arange(0, _NODES, 2)])
    seconds = np.concatenate([(np.arange(_NODES) + 1) % _NODES, (np.arange(0, _NODES, 2) + 3) % _NODES])
    entries = random.integers(0, 50, len(firsts) * _STRATEGIES**2)
    entries[4] = FORBIDDEN
    return Problem(
        name="warm",
        offsets=offsets_of([_STRATEGIES] * _NODES),
        costs=random.integers(0, 50, _NODES * _STRATEGIES),
        usages=random.integers(1, 9, _NODES * _STRATEGIES),
        starts=np.zeros(_NODES, np.int64),
        ends=np.arange(2, 2 + _NODES),
        firsts=firsts,
        seconds=seconds,
        entry_offsets=offsets_of([_STRATEGIES**2] * len(firsts)),
        entries=entries,
        limit=4 * _NODES,
    )
