"""Who chooses changes: branch and bound, every choice looked at, rules of most gain for its cost, and exchanges."""

from dataclasses import replace
from math import inf
from time import monotonic

from crossopt.formulation.traces.whatif import Model, all_choices, model_of, packed
from crossopt.instances.errors import RefusedError
from crossopt.instances.traces.whatif.question import WhatIfQuestion
from crossopt.solvers.answer import Found, Limits, Progress, Watch
from crossopt.solvers.proofs import Chosen, Counted
from crossopt.solvers.traces.whatif.answer import Changes
from crossopt.solvers.traces.whatif.exchange import exchanged
from crossopt.solvers.traces.whatif.rivals import greedy, made, measured, rivals_of
from crossopt.solvers.traces.whatif.search import Search, gains_of, in_turn, leaner


def branches(question: WhatIfQuestion, limits: Limits, watch: Watch) -> Found[Changes]:
    """The optimum with the tree that proves it."""
    if not limits.seconds:
        return Found(None, engine="branches", stopped="time limit")
    began = monotonic()
    deadline, model = began + limits.seconds, model_of(question)
    gains = gains_of(model)
    search = Search(model, gains, in_turn(model, gains))

    def tell(now: Search) -> None:
        best, words = now.best, f"{len(now.choices):,} choices"
        value = None if best is None else model.value(now.value)
        watch(Progress(words, value, model.value(now.bound), lambda: None if best is None else made(question.names, best)))

    ended = search.run(deadline, tell)
    answer = None if search.best is None else leaner(model, search.best)
    proof = Chosen(f"a tree of {len(search.choices):,} choices", packed(list(search.steps())))
    known = monotonic() - began
    return Found(
        None if answer is None else made(question.names, answer),
        model.value(search.bound),
        proof,
        "branches",
        "complete" if ended else "time limit",
        () if answer is not None or not ended else _reasons(question, model),
        rivals=rivals_of(model, question.names, gains, limits.seed, deadline),
        seconds=known,
    )


def enumerate_all(question: WhatIfQuestion, limits: Limits, watch: Watch) -> Found[Changes]:
    """Every choice that keeps the rules."""
    if not limits.seconds:
        return Found(None, engine="enumerate", stopped="time limit")
    del watch
    model = model_of(question)
    try:
        choices = all_choices(model.rules)
    except ValueError as error:
        raise RefusedError(f"{error} (`branches` answers)") from error
    values = model.bounds(choices)
    least = min(values, default=inf)
    answer = None if least == inf else made(question.names, leaner(model, choices[values.index(least)][0]))
    proof = Counted(f"{len(choices):,} choices looked at")
    return Found(answer, model.value(least), proof, "enumerate", reasons=() if answer else _reasons(question, model))


def by_gain(question: WhatIfQuestion, limits: Limits, watch: Watch) -> Found[Changes]:
    """The most gain for its cost first; no proof."""
    del limits, watch
    model = model_of(question)
    return _ruled(question, model, greedy(model, gains_of(model)), "greedy")


def by_measure(question: WhatIfQuestion, limits: Limits, watch: Watch) -> Found[Changes]:
    """The same, measured again after each; no proof."""
    del limits, watch
    model = model_of(question)
    return _ruled(question, model, measured(model), "measured")


def by_exchange(question: WhatIfQuestion, limits: Limits, watch: Watch) -> Found[Changes]:
    """Exchanges from both rules and from drawn choices; no proof."""
    if not limits.seconds:
        return Found(None, engine="exchange", stopped="time limit")
    del watch
    deadline, model = monotonic() + limits.seconds, model_of(question)
    inside = exchanged(model, [greedy(model, gains_of(model)), measured(model)], limits.seed, deadline)
    return replace(_ruled(question, model, inside, "exchange"), stopped="time limit" if monotonic() > deadline else "complete")


def _ruled(question: WhatIfQuestion, model: Model, inside: int | None, engine: str) -> Found[Changes]:
    late = inside is None or model.bounds([(inside, model.rules.all & ~inside)]) == [inf]
    return Found(None if late or inside is None else made(question.names, inside), engine=engine)


def _reasons(question: WhatIfQuestion, model: Model) -> tuple[str, ...]:
    """Why no changes meet the target."""
    least = int(model.spans([(0, 0)])[0])
    if question.target is not None and least > question.target:
        return (f"target: with every change that shortens the trace it takes no less than {least:,} ns",)
    return ("target: no changes within the budgets and rules meet it",)
