"""From spans between cuts to stages of layers: in each stage the quickest configurations that fit, layer by layer."""

from collections.abc import Sequence

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.solvers.stages.piper.cuts.fronts import Bundling, Front, joined, nothing
from crossopt.solvers.stages.piper.cuts.network import with_free
from crossopt.solvers.stages.piper.cuts.options import Options, dear, front_of
from crossopt.solvers.stages.piper.cuts.search import Price, Span
from crossopt.solvers.stages.piper.cuts.tables import places_in
from crossopt.solvers.stages.piper.judge import judge_rows
from crossopt.solvers.stages.piper.plan import Stage

_BUNDLING = Bundling(most=2_048)


def stages_of(options: Options, cuts: Sequence[int], spans: Sequence[Span]) -> tuple[Stage, ...] | None:
    """Stages with all layers of the graph; None where no configurations of a stage were found that fit."""
    stages = []
    for span in spans:
        stage = _stage(options, cuts[span.lower], cuts[span.upper], span)
        if stage is None:
            return None
        stages.append(stage)
    return with_free(options.network, stages)


def price_of(options: Options, cuts: Sequence[int]) -> Price:
    """What tells a search how long stages truly take: the judge."""

    def price(spans: tuple[Span, ...]) -> tuple[float, tuple[Stage, ...] | None]:
        stages = stages_of(options, cuts, spans)
        return (float("inf"), None) if stages is None else (judge_rows(options.question, stages).value, stages)

    return price


def _stage(options: Options, inner: int, outer: int, span: Span) -> Stage | None:
    question, places = options.question, places_in(outer & ~inner)
    exchange = 4.0 * (span.data - 1) / (question.microbatches * question.bandwidth)
    layers = layers_of(options, inner, outer, span.tensor)
    steps, front = list[tuple[Front, Front]](), nothing()
    for layer in layers:
        flat = _flat(layer, exchange, span.under_way)
        front = joined(front, flat, question.memory, _BUNDLING)
        steps.append((front, flat))
    if not len(front):
        return None
    point, chosen = int(front.work.argmin()), list[int]()
    for front, flat in reversed(steps):
        chosen.append(int(flat.joined[front.joined[point]]))
        point = int(front.origin[point])
    return chosen_stage(options, places, span, chosen[::-1])


def layers_of(options: Options, inner: int, outer: int, tensor: int) -> list[Front]:
    """What each layer between two cuts can be."""
    extra = dear(options, tensor, inner, outer)
    return [front_of(options, place, tensor, extra.get(place)) for place in places_in(outer & ~inner)]


def chosen_stage(options: Options, places: Sequence[int], span: Span, numbers: Sequence[int]) -> Stage:
    """The stage of these layers in the configurations of these numbers."""
    rows = [options.network.rows[place] for place in places]
    offered = [options.network.graph.offers[row][span.tensor] for row in rows]
    return Stage(tuple(rows), span.data, span.tensor, tuple(one[number].name for one, number in zip(offered, numbers, strict=True)))


def _flat(layer: Front, exchange: float, under_way: int) -> Front:
    """A layer's points for one number of replicas and of microbatches under way: time and memory alone."""
    none: Array = np.zeros(len(layer))
    memory = layer.memory + layer.stashed * (under_way - 1)
    return Front(layer.work + exchange * layer.parameters, none, memory, none.astype(np.int64), layer.origin, layer.joined)
