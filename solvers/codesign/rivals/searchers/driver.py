"""Runs a searcher: holds it to its time and its patience, keeps the best design of all, and has it certified."""

from collections.abc import Callable, Iterator
from functools import partial
from time import monotonic

import numpy as np

from crossopt.instances.codesign.boxes import point_number
from crossopt.instances.codesign.instance import Instance
from crossopt.solvers.answer import Found, Limits, Progress, Watch
from crossopt.solvers.codesign.answer import Candidate, Designs, answer_of, candidate
from crossopt.solvers.codesign.rivals.searchers.neighbourhood import Look, Question, asked

Searcher = Callable[[Question, np.random.Generator], Iterator[Look]]

_PATIENCE = 1 << 20
"""Designs priced since the last improvement after which a searcher gives up."""
_IDLE = 20.0
"""Seconds since the last improvement after which it gives up too where there is no time limit."""
_LEAST = 16
"""Designs that a look counts for at least."""
_ROUNDS = 10
"""The same in small questions, as a multiple of all their designs."""


def searched(name: str, searcher: Searcher, instance: Instance, limits: Limits, watch: Watch) -> Found[Designs]:
    """The best design that the searcher sees in time. It depends on nothing but the seed as long as the time is long enough."""
    began = monotonic()
    deadline = began + limits.seconds
    random = np.random.default_rng(limits.seed)
    best: Candidate | None = None
    value, stopped, gained = np.inf, "complete", began
    notes: tuple[str, ...] = ()
    trace: list[tuple[float, float | None, float | None]] = []
    try:
        question = asked(instance, random, deadline)
        patience, left, total = min(_PATIENCE, _ROUNDS * len(question.plans) * question.space.points), 0, 0
        left = patience
        for seen in searcher(question, random) if len(question.plans) else ():
            left, total = left - max(seen.priced, _LEAST), total + seen.priced
            if seen.value < value:
                places, row = seen.best
                best, value, left = candidate(question.plans, row, point_number(question.space, places)), seen.value, patience
                gained = monotonic()
                trace.append((monotonic() - began, value, None))
            watch(Progress(f"{total:,} designs priced", value if best else None, answer=partial(answer_of, instance, best)))
            if left <= 0:
                break
            if deadline == np.inf and monotonic() - gained > _IDLE:
                notes = (f"it ended {_IDLE:.0f} s after its last better design (a --time-limit has it search as long as that says)",)
                break
            if monotonic() >= deadline:
                raise TimeoutError
    except TimeoutError:
        stopped = "time limit"
    except KeyboardInterrupt:
        stopped = "interrupted"
    answer = answer_of(instance, best)
    return Found(answer, engine=name, stopped=stopped, notes=notes, trace=tuple(trace), value=value if best else None)
