"""The greedy choice of configurations of the published program: in each stage the quickest ones, changed until they fit the memory."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crossopt.crossflow.arrays import Array, Mask, Whole
from crossopt.solvers.stages.piper.cuts.choose import chosen_stage, layers_of
from crossopt.solvers.stages.piper.cuts.fronts import Front
from crossopt.solvers.stages.piper.cuts.network import with_free
from crossopt.solvers.stages.piper.cuts.options import Options
from crossopt.solvers.stages.piper.cuts.search import Price, Span, seconds_of
from crossopt.solvers.stages.piper.cuts.tables import Tables, places_in
from crossopt.solvers.stages.piper.plan import Stage


@dataclass(frozen=True, slots=True, eq=False)
class _Changes:
    """From the quickest configurations, layer by layer the change that saves most memory for the time it costs, until they fit.

    Each layer may change to the configuration that keeps least for a microbatch under way. Columns are microbatches under way.
    """

    quick: list[int]
    small: list[int]
    order: Whole
    """Layers in the order of their changes."""
    taken: Mask
    """Which changes are made."""
    under_way: Whole
    """Columns that fit then, by their microbatches."""
    work: Array
    parameters: Array


def greedy_front(layers: Sequence[Front], memory: int, most: int) -> Front:
    """Points by the microbatches that they are chosen for, as the memory that fits just these."""
    changes = _changes(layers, memory, most)
    none = np.zeros(len(changes.under_way), np.int64)
    return Front(changes.work, changes.parameters, memory - (changes.under_way - 1), none + 1, none, none)


def greedy_price(options: Options, tables: Tables) -> Price:
    """What tells a search in tables of such fronts how long stages take, with the stages."""

    def price(spans: tuple[Span, ...]) -> tuple[float, tuple[Stage, ...]]:
        stages = [_stage(options, tables.cuts[span.lower], tables.cuts[span.upper], span) for span in spans]
        return seconds_of(tables, spans), with_free(options.network, stages)

    return price


def _stage(options: Options, inner: int, outer: int, span: Span) -> Stage:
    question, layers = options.question, layers_of(options, inner, outer, span.tensor)
    changes = _changes(layers, question.memory, min(question.microbatches, question.devices))
    exchange = 4.0 * (span.data - 1) / (question.microbatches * question.bandwidth)
    times = np.where(changes.under_way >= span.under_way, changes.work + exchange * changes.parameters, np.inf)
    column = int(changes.under_way[times.argmin()]) - 1
    changed = set(changes.order[changes.taken[:, column], column].tolist())
    points = [changes.small[place] if place in changed else changes.quick[place] for place in range(len(layers))]
    numbers = [int(layer.joined[point]) for layer, point in zip(layers, points, strict=True)]
    return chosen_stage(options, places_in(outer & ~inner), span, numbers)


def _changes(layers: Sequence[Front], memory: int, most: int) -> _Changes:
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
    return _Changes(quick, small, order, taken, under_way[fits], work.sum() + extra[fits], parameters.sum() + more[fits])
