"""The bound of an integer model that whole numbers prove: a tree that is looked for behind the wall (`backends.walk`).

A search that crashes or is late costs its tree and nothing else; whoever takes a tree counts it anew (`formulation.certificate`).
"""

from collections.abc import Callable
from math import inf
from time import monotonic

from crossopt.formulation.model import Model
from crossopt.solvers.backends.line import version
from crossopt.solvers.backends.patience import allowed
from crossopt.solvers.backends.walk import Traced, begin, go_on, unproved
from crossopt.solvers.backends.wall import KEYS, LateError, Place

Tighten = Callable[[tuple[int, ...]], Model | None]
"""The model with more rows after those that it has, where a solution says too much; None where it is as it should be."""


def as_it_is(values: tuple[int, ...]) -> None:
    """No more rows."""
    del values


def trace(model: Model, claim: int | None = None, seconds: float = inf, most: int = 10_000, tighten: Tighten = as_it_is) -> Traced:
    """A tree that proves that no solution is better than the claim; without a claim, the best solution and its proof.

    A claim that a solution is better than is refuted by it, unless `tighten` has a model with more rows, which that solution breaks. The
    tree is about the last model."""
    place, key, deadline = Place("highs", f"highs {version('highspy')}"), next(KEYS), monotonic() + allowed(seconds, model)
    try:
        found: Traced = place.ask(begin, key, model, claim, deadline, most, until=deadline)
        while found.stopped == "refuted" and found.values is not None:
            tightened = tighten(found.values)
            if tightened is None:
                break
            model = tightened
            found = place.ask(go_on, key, model, until=deadline)
    except LateError:
        return unproved(model)
    else:
        return found
    finally:
        place.forget(key)
        place.close()
