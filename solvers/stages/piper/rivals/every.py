"""What is done without the whole search: without one kind of parallelism or recomputation (each exact where the search is), with the
greedy choice of configurations of the published program, and with equal stages."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from crossopt.instances.stages.piper.graph import narrowed
from crossopt.solvers.answer import Rival
from crossopt.solvers.stages.piper.cuts.choose import price_of
from crossopt.solvers.stages.piper.cuts.fronts import Bundling
from crossopt.solvers.stages.piper.cuts.options import Options, options_of
from crossopt.solvers.stages.piper.cuts.search import Known, Price, search
from crossopt.solvers.stages.piper.cuts.tables import Tables, only, tables_of
from crossopt.solvers.stages.piper.plan import PiperPlan, Stage, named
from crossopt.solvers.stages.piper.rivals.equal import equal_stages
from crossopt.solvers.stages.piper.rivals.greedy import greedy_front, greedy_price

_NOTHING = "finds nothing that keeps the limits"
_MOST_STAGES = 20_000
"""Stages up to which other choices of configurations are tried, as they need tables of their own."""


def rivals_of(options: Options, tables: Tables, clock: Callable[[], None]) -> Iterator[Rival[PiperPlan]]:
    """Every rule's value, or why it has none; a rule that is what was asked is left out."""
    question = options.question
    if "data" not in question.without:
        alone = replace(tables, degrees=np.ones(1, np.int64))
        yield _searched("no data parallelism", options, alone, clock)
    if "tensor" not in question.without and int(tables.tensor.max(initial=1)) > 1:
        yield _searched("no tensor degrees", options, only(tables, tables.tensor == 1), clock)
    small = len(tables.start) <= _MOST_STAGES
    if "recompute" not in question.without and small:
        fewer = narrowed(question, ("recompute",))
        if not all(fewer.graph.offers):
            yield Rival("no recomputation", None, None, "a layer is offered with recomputation only")
        elif fewer.graph.offers != question.graph.offers:
            own = options_of(fewer, replace(options.network, graph=fewer.graph))
            yield _searched("no recomputation", own, tables_of(own, tables.cuts, Bundling(), clock), clock)
    if small:
        greedy = tables_of(options, tables.cuts, Bundling(), clock, rule=greedy_front)
        yield _found("greedy choice", options, greedy, greedy_price(options, greedy), clock)
    for name, stages in equal_stages(question, clock).items():
        yield _rival(name, options, stages)


def _searched(name: str, options: Options, tables: Tables, clock: Callable[[], None]) -> Rival[PiperPlan]:
    return _found(name, options, tables, price_of(options, tables.cuts), clock)


def _found(name: str, options: Options, tables: Tables, price: Price, clock: Callable[[], None]) -> Rival[PiperPlan]:
    known = Known()
    search(known, tables, 0.0, price, clock)
    return _rival(name, options, known.stages)


def _rival(name: str, options: Options, stages: tuple[Stage, ...] | None) -> Rival[PiperPlan]:
    return Rival(name, None, None, _NOTHING) if stages is None else Rival(name, None, named(options.question, stages))
