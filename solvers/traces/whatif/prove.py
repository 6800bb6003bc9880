"""Bounds on changes carried out anew: the tree is gone down again, or every choice is looked at; no engine is asked."""

from collections.abc import Sequence
from math import inf

from crossopt.formulation.traces.whatif import Model, all_choices, model_of, shown_by, unpacked
from crossopt.instances.traces.whatif.question import WhatIfQuestion
from crossopt.solvers.answer import Result, Watch
from crossopt.solvers.family import Proved
from crossopt.solvers.proofs import Chosen, Counted
from crossopt.solvers.traces.whatif.answer import Changed, Changes

_MOST = 1_000_000
"""Steps of a tree that a check looks at."""


def prove(question: WhatIfQuestion, saved: Result[Changes, Changed], _: Watch) -> Proved:
    """The bound counted anew."""
    model, proof = model_of(question), saved.proof
    try:
        if isinstance(proof, Chosen):
            steps = unpacked(proof.steps)
            shown, by = _of_tree(model, steps), f"a tree of {len(steps):,} choices"
            done = f"the tree of {len(steps):,} choices was gone down again, each bounded by a replay"
        elif isinstance(proof, Counted):
            choices = all_choices(model.rules)
            shown, by = model.value(min(model.bounds(choices), default=inf)), f"{len(choices):,} choices looked at"
            done = f"{len(choices):,} choices were looked at again"
        else:
            return Proved((), ("proof: bounds on changes are shown by a tree or by looking at all",))
    except (ValueError, OverflowError) as error:
        return Proved((), (f"proof: {error}",))
    said = inf if saved.bound is None else saved.bound
    fault = f"bound: its proof shows {shown!r}, the result says that none is below {said!r}"
    order = (f"of times that were not measured: {question.trace.order}",) if question.trace.order else ()
    return Proved((done, *order), () if said <= shown else (fault,), by=by)


def _of_tree(model: Model, steps: Sequence[int]) -> float:
    if len(steps) > _MOST:
        raise ValueError(f"more than {_MOST:,} choices are none that a check looks at")
    return shown_by(model, steps)
