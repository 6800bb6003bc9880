"""Who orders chunks: a search that ends at its bound or when its time is over, and the rules of the simulator."""

from functools import partial
from math import inf
from random import Random
from time import monotonic

from crossopt.formulation.network.orders import asked_of, least_time
from crossopt.instances.network.collective.question import CollectiveQuestion
from crossopt.solvers.answer import Found, Limits, Progress, Watch
from crossopt.solvers.network.collective.answer import Chunks
from crossopt.solvers.network.collective.rivals import best, rivals_of
from crossopt.solvers.network.collective.search import Walk, weights_of
from crossopt.solvers.proofs import Weighed

_PATIENCE = 4.0
"""Seconds of exchanges at random where nobody gives a limit."""


def search(question: CollectiveQuestion, limits: Limits, watch: Watch) -> Found[Chunks]:
    """The best chunks of every number, by rules first, then by exchanges at random; proved where they meet the bound."""
    if not limits.seconds:
        return Found(None, engine="search", stopped="time limit")
    began = monotonic()
    deadline = began + (min(limits.seconds, _PATIENCE) if limits.seconds == inf else limits.seconds)
    options = question.file.chunks
    asked = [asked_of(question, option) for option in options]
    weights = tuple(weights_of(one) for one in asked)
    bounds = [least_time(one, own) for one, own in zip(asked, weights, strict=True)]
    proof, bound = Weighed("loads of dimensions", weights), min(bounds)
    if question.deadline is not None and bound > question.deadline:
        reason = f"deadline: no chunks of any number take less than {bound:,} ns, by what they ask of the dimensions"
        return Found(None, inf, proof, "search", reasons=(reason,))
    walks, known, stopped = list[Walk](), inf, "complete"
    for place in sorted(range(len(options)), key=bounds.__getitem__):
        if bounds[place] < known and (not walks or monotonic() < deadline):
            walks.append(Walk(asked[place], options[place], Random(limits.seed)))
            walks[-1].rules(bounds[place], deadline)
            known = min(known, walks[-1].value)
            watch(Progress(f"{options[place]} chunks", known, bound, partial(_best, tuple(walks))))
    open_walks = [one for one in walks if bounds[options.index(one.option)] < known]
    while open_walks and known > bound:
        if monotonic() > deadline:
            stopped = "time limit" if limits.seconds < inf else "complete"
            break
        for walk in open_walks:
            walk.step()
        known = min(one.value for one in walks)
        open_walks = [one for one in open_walks if bounds[options.index(one.option)] < known]
        watch(Progress("exchanges", known, bound, partial(_best, tuple(walks))))
    answer = _best(tuple(walks))
    late = question.deadline is not None and known > question.deadline
    return Found(None if late else answer, bound, proof, "search", stopped, rivals=rivals_of(question))


def _best(walks: tuple[Walk, ...]) -> Chunks | None:
    return min(walks, key=lambda one: one.value).best if walks else None


def by_rule(name: str, engine: str, question: CollectiveQuestion, limits: Limits, watch: Watch) -> Found[Chunks]:
    """A rule of the simulator; no proof."""
    del limits, watch
    found = best(question, name)
    from crossopt.solvers.network.collective.judge import judge  # noqa: PLC0415 - a rule may miss the deadline

    return Found(None if judge(question, found).violations else found, engine=engine)
