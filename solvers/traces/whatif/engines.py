"""Engines that choose changes: branch and bound, enumeration, greedy baselines by gain per cost, and exchanges."""

from dataclasses import replace
from math import inf
from time import monotonic

from crossopt.formulation.traces.whatif import Model, all_choices, model_of, packed
from crossopt.instances.errors import RefusedError
from crossopt.instances.traces.whatif import WhatIfQuestion
from crossopt.solvers.answer import Limits, Progress, SearchOutcome, Watch
from crossopt.solvers.proofs import Chosen, RecomputableBound
from crossopt.solvers.traces.whatif.family import Changes, reasons_of
from crossopt.solvers.traces.whatif.search import (
    Search,
    baselines_of,
    choices_by_rules,
    exchanged,
    gains_of,
    greedy,
    in_turn,
    leaner,
    made,
    measured,
)

# Engines: branch and bound, enumeration, greedy rules by gain per cost, and exchanges.


def branches(question: WhatIfQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Changes]:
    """The optimum with the tree that proves it."""
    if not limits.seconds:
        return SearchOutcome(None, engine="branches", stopped="time limit")
    began = monotonic()
    deadline, model = began + limits.seconds, model_of(question)
    gains = gains_of(model)
    search = Search(model, gains, in_turn(model, gains))

    def tell(now: Search) -> None:
        best, message = now.best, f"{len(now.choices):,} choices"
        value = None if best is None else model.value(now.value)
        watch(Progress(message, value, model.value(now.bound), lambda: None if best is None else made(question.names, best)))

    ended = search.run(deadline, tell)
    answer = None if search.best is None else leaner(model, search.best)
    proof = Chosen(f"a tree of {len(search.choices):,} choices", packed(list(search.steps())))
    known, rows = monotonic() - began, choices_by_rules(model, gains)
    rows += [exchanged(model, rows, limits.seed, deadline)] if rows else []
    return SearchOutcome(
        None if answer is None else made(question.names, answer),
        model.value(search.bound),
        proof,
        "branches",
        "complete" if ended else "time limit",
        () if answer is not None or not ended else reasons_of(question, model),
        baselines=baselines_of(question.names, rows),
        seconds=known,
    )


def enumerate_all(question: WhatIfQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Changes]:
    """Every choice that keeps the rules."""
    if not limits.seconds:
        return SearchOutcome(None, engine="enumerate", stopped="time limit")
    del watch
    model = model_of(question)
    try:
        choices = all_choices(model.rules)
    except ValueError as error:
        raise RefusedError(f"{error} (`branches` answers)") from error
    values = model.bounds(choices)
    least = min(values, default=inf)
    answer = None if least == inf else made(question.names, leaner(model, choices[values.index(least)][0]))
    proof = RecomputableBound(f"{len(choices):,} choices looked at")
    return SearchOutcome(answer, model.value(least), proof, "enumerate", reasons=() if answer else reasons_of(question, model))


def by_gain(question: WhatIfQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Changes]:
    """The most gain for its cost first; no proof."""
    del limits, watch
    model = model_of(question)
    return _ruled(question, model, greedy(model, gains_of(model)), "greedy")


def by_measure(question: WhatIfQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Changes]:
    """Greedy by gain per cost, measured again after each change; no proof."""
    del limits, watch
    model = model_of(question)
    return _ruled(question, model, measured(model), "measured")


def by_exchange(question: WhatIfQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Changes]:
    """Exchanges from both rules and from drawn choices; no proof."""
    if not limits.seconds:
        return SearchOutcome(None, engine="exchange", stopped="time limit")
    del watch
    deadline, model = monotonic() + limits.seconds, model_of(question)
    inside = exchanged(model, [greedy(model, gains_of(model)), measured(model)], limits.seed, deadline)
    return replace(_ruled(question, model, inside, "exchange"), stopped="time limit" if monotonic() > deadline else "complete")


def _ruled(question: WhatIfQuestion, model: Model, inside: int | None, engine: str) -> SearchOutcome[Changes]:
    late = inside is None or model.bounds([(inside, model.rules.all & ~inside)]) == [inf]
    return SearchOutcome(None if late or inside is None else made(question.names, inside), engine=engine)
