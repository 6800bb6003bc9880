"""What is done without the whole search: without one kind of parallelism or recomputation (each exact where the search is), with the
greedy choice of configurations of the published program, and with equal stages."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from crossopt.instances.stages.piper.graph import narrowed
from crossopt.solvers.stages.piper.answer import RivalStages
from crossopt.solvers.stages.piper.choose import price_of
from crossopt.solvers.stages.piper.equal import equal_stages
from crossopt.solvers.stages.piper.fronts import Bundling, Front
from crossopt.solvers.stages.piper.judge import judge
from crossopt.solvers.stages.piper.options import Options, options_of
from crossopt.solvers.stages.piper.search import Known, Price, search, seconds_of
from crossopt.solvers.stages.piper.tables import Tables, only, tables_of

_NOTHING = "finds nothing that keeps the limits"
_MOST_STAGES = 20_000
"""Stages up to which other choices of configurations are tried, as they need tables of their own."""


def rivals_of(options: Options, tables: Tables, clock: Callable[[], None]) -> Iterator[RivalStages]:
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
            yield RivalStages("no recomputation", None, "a layer is offered with recomputation only")
        elif fewer.graph.offers != question.graph.offers:
            own = options_of(fewer, replace(options.network, graph=fewer.graph))
            yield _searched("no recomputation", own, tables_of(own, tables.cuts, Bundling(), clock), clock)
    if small:
        greedy = tables_of(options, tables.cuts, Bundling(), clock, rule=greedy_front)
        yield _value("greedy choice", greedy, lambda spans: (seconds_of(greedy, spans), ()), clock)
    for name, stages in equal_stages(question, clock).items():
        verdict = None if stages is None else judge(question, stages)
        value = None if verdict is None or verdict.violations else verdict.value
        yield RivalStages(name, value, "" if value is not None else verdict.violations[0] if verdict else _NOTHING)


def _searched(name: str, options: Options, tables: Tables, clock: Callable[[], None]) -> RivalStages:
    return _value(name, tables, price_of(options, tables.cuts), clock)


def _value(name: str, tables: Tables, price: Price, clock: Callable[[], None]) -> RivalStages:
    known = Known()
    search(known, tables, 0.0, price, clock)
    return RivalStages(name, None, _NOTHING) if known.stages is None else RivalStages(name, known.value)


def greedy_front(layers: Sequence[Front], memory: int, most: int) -> Front:
    """From the quickest configurations, layer by layer the change that saves most memory for the time it costs, until they fit.

    Each layer may change to the configuration that keeps least for a microbatch under way. Points are given by the microbatches that they
    are chosen for, as the memory that fits just these.
    """
    quick = [int(layer.work.argmin()) for layer in layers]
    small = [int((layer.stashed * most + layer.memory).argmin()) for layer in layers]
    figures = [
        [(float(layer.work[row]), float(layer.parameters[row]), int(layer.memory[row]), int(layer.stashed[row])) for row in (one, other)]
        for layer, one, other in zip(layers, quick, small, strict=True)
    ]
    table = np.array(figures).reshape(-1, 2, 4)
    work, parameters, fixed, stashed = (table[:, 0, column] for column in range(4))
    least, slope = table[:, 1, 2].sum(), table[:, 1, 3].sum()
    last = most if slope == 0.0 else min(most, int((memory - least) // slope) + 1)
    under_way = np.arange(1, max(last, 0) + 1)
    saved = (fixed - table[:, 1, 2])[:, None] + (stashed - table[:, 1, 3])[:, None] * (under_way - 1)
    longer = table[:, 1, 0] - work
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(saved > 0.0, saved / longer[:, None], -1.0)
    order = np.argsort(-ratio, axis=0, kind="stable")
    need = fixed.sum() + stashed.sum() * (under_way - 1) - memory
    useful = np.take_along_axis(np.where(saved > 0.0, saved, 0.0), order, axis=0).cumsum(axis=0)
    changes = (useful < need).sum(axis=0) + (need > 0.0)
    fits = changes <= len(layers)
    taken = np.arange(len(layers))[:, None] < changes
    extra = np.where(taken, longer[order], 0.0).sum(axis=0)
    more = np.where(taken, (table[:, 1, 1] - parameters)[order], 0.0).sum(axis=0)
    none = np.zeros(int(fits.sum()), np.int64)
    room = memory - (under_way[fits] - 1)
    return Front(work.sum() + extra[fits], parameters.sum() + more[fits], room, none + 1, none, none)
