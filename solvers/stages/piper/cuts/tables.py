"""Every stage between two cuts of a network, as figures: how long it takes, and for how many microbatches under way it fits.

seconds(d) = (work + moved + 4 (d - 1) w / (N bandwidth)) / d        work, w from a point of the stage's front (`fronts`)
under way  = 1 + floor((memory - m) / a)                             the most microbatches that the point fits
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crossopt.crossflow.arrays import Array, Mask, Whole
from crossopt.solvers.stages.piper.cuts.fronts import Bundling, Front, joined, nothing, taken_from
from crossopt.solvers.stages.piper.cuts.options import Options, dear, front_of, moved


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Stages as rows, points of a stage next to each other, stages of one pair of cuts too."""

    cuts: tuple[int, ...]
    lower: Whole
    """The cut before each stage, by its number."""
    upper: Whole
    tensor: Whole
    start: Whole
    """The first point of each stage."""
    work: Array
    """Of each point, with what is moved."""
    exchanged: Array
    """Seconds that a replica more takes to exchange parameters."""
    under_way: Whole
    degrees: Whole
    devices: int
    replicas: int
    """At the most, of all stages together."""
    bundled: bool
    """Whether a front had too many points."""

    def seconds(self, degree: int) -> Array:
        """The time of each point."""
        return np.asarray((self.work + (degree - 1) * self.exchanged) / degree)

    def reach(self, limit: float) -> Whole:
        """For each stage and degree, how many microbatches may be under way within the limit; 0 where none."""
        found = np.empty((len(self.start), len(self.degrees)), np.int64)
        for column, degree in enumerate(self.degrees.tolist()):
            kept = np.where(self.seconds(degree) <= limit, self.under_way, 0)
            found[:, column] = np.maximum.reduceat(kept, self.start) if len(kept) else 0
        return found

    def following(self, limit: float) -> float:
        """The least time of any point above a limit; infinite where there is none."""
        least = float("inf")
        for degree in self.degrees.tolist():
            times = self.seconds(degree)
            least = min(least, float(times[times > limit].min(initial=np.inf)))
        return least


Rule = Callable[[Sequence[Front], int, int], Front]
"""From the configurations of each layer of a stage, the memory and the most microbatches under way to what the stage can be."""


def tables_of(options: Options, cuts: Sequence[int], bundling: Bundling, clock: Callable[[], None], rule: Rule | None = None) -> Tables:
    """The tables of all stages between two cuts; `clock` is asked now and then. A rule chooses in place of all that can be chosen."""
    question = options.question
    most = min(question.microbatches, question.devices)
    members = np.array([[bool(cut >> place & 1) for place in range(len(options.network))] for cut in cuts])
    stages: list[tuple[int, int, int, Front]] = []
    for lower, inner in enumerate(cuts):
        known = {inner: dict.fromkeys(options.tensors, nothing())}
        for upper in range(lower + 1, len(cuts)):
            outer = cuts[upper]
            if inner & ~outer:
                continue
            clock()
            fronts = _extended(options, known, inner, outer, bundling)
            known[outer] = fronts
            for tensor, front in fronts.items():
                found = _chosen(options, tensor, (inner, outer), front, bundling, rule)
                seconds = moved(options, tensor, members[lower], members[upper])
                if len(found):
                    stages.append((lower, upper, tensor, _limited(found, question.memory, most, seconds)))
    return _tables(options, tuple(cuts), stages, most)


def _extended(options: Options, known: dict[int, dict[int, Front]], inner: int, outer: int, bundling: Bundling) -> dict[int, Front]:
    """Fronts of a stage by tensor degree, from those of the largest stage within it."""
    nearest = next(cut for cut in reversed(known) if cut & ~outer == 0)
    fronts = known[nearest]
    for place in places_in(outer & ~nearest):
        offered = {tensor: options.plain[tensor][place] for tensor in fronts}
        steps = {
            tensor: joined(fronts[tensor], new, options.question.memory, bundling) for tensor, new in offered.items() if new is not None
        }
        fronts = {tensor: front for tensor, front in steps.items() if len(front)}
    return fronts


def _chosen(options: Options, tensor: int, cut: tuple[int, int], front: Front, bundling: Bundling, rule: Rule | None) -> Front:
    """The front of a stage where traffic depends on configurations, or where a rule chooses; else as it is."""
    extra = dear(options, tensor, *cut)
    if not extra and rule is None:
        return front
    layers = [front_of(options, place, tensor, extra.get(place)) for place in places_in(cut[1] & ~cut[0])]
    if rule is not None:
        question = options.question
        return rule(layers, question.memory, min(question.microbatches, question.devices))
    found = nothing()
    for layer in layers:
        found = joined(found, layer, options.question.memory, bundling)
    return found


def _limited(front: Front, memory: int, most: int, seconds: float) -> Front:
    """The points of a stage by what a search needs of them: work with transfers, parameters, microbatches under way (in `stashed`)."""
    room = memory - front.memory
    under_way = 1 + np.where(front.stashed > 0, room // np.maximum(front.stashed, 1), most)
    under_way = np.minimum(under_way, most)
    order = np.lexsort((-under_way, front.work, front.parameters))
    best = np.maximum.accumulate(under_way[order])
    kept = order[np.concatenate([[True], under_way[order][1:] > best[:-1]])] if np.ptp(front.parameters) == 0.0 else order
    return taken_from(replace(front, work=front.work + seconds, stashed=under_way), kept)


def _tables(options: Options, cuts: tuple[int, ...], stages: list[tuple[int, int, int, Front]], most: int) -> Tables:
    question = options.question
    fronts = [front for _, _, _, front in stages]
    share = 4.0 / (question.microbatches * question.bandwidth)
    lower, upper, tensor = (np.array([stage[column] for stage in stages], np.int64) for column in range(3))
    return Tables(
        cuts=cuts,
        lower=lower,
        upper=upper,
        tensor=tensor,
        start=np.cumsum([0, *map(len, fronts)])[:-1].astype(np.int64),
        work=np.concatenate([np.zeros(0), *(front.work for front in fronts)]),
        exchanged=np.concatenate([np.zeros(0), *(front.parameters for front in fronts)]) * share,
        under_way=np.concatenate([np.zeros(0, np.int64), *(front.stashed for front in fronts)]),
        degrees=np.array(question.degrees, np.int64),
        devices=question.devices,
        replicas=most,
        bundled=any(front.bundled for front in fronts),
    )


def places_in(mask: int) -> list[int]:
    """The layers in a mask."""
    return [place for place in range(mask.bit_length()) if mask >> place & 1]


def only(tables: Tables, kept: Mask) -> Tables:
    """The tables with these stages alone."""
    sizes = np.diff([*tables.start, len(tables.work)])
    points = np.repeat(kept, sizes)
    return replace(
        tables,
        lower=tables.lower[kept],
        upper=tables.upper[kept],
        tensor=tables.tensor[kept],
        start=(np.cumsum(sizes[kept]) - sizes[kept]).astype(np.int64),
        work=tables.work[points],
        exchanged=tables.exchanged[points],
        under_way=tables.under_way[points],
    )
