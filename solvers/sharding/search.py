"""Large-neighbourhood search for strategies beside the ascent of their bound: one thread climbs, the other walks."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from threading import Event, Thread
from time import monotonic
from typing import NamedTuple

import numpy as np

from crossopt.crossflow.arrays import Array, Ints
from crossopt.formulation.compiled import Seed, compiled, draw_below, seed_of
from crossopt.formulation.sharding.core import Back, Core, cost_of, in_use
from crossopt.formulation.sharding.dual import Dual
from crossopt.solvers.sharding import regions
from crossopt.solvers.sharding.messages import (
    Ascent,
    Cooling,
    ascent_of,
    climb,
    cool,
    cooling_of,
    memory_costs,
    proof_of,
    settled,
    start_at,
)
from crossopt.solvers.sharding.run import Rest, Run

# Large neighbourhoods one after the other, within hard memory (Shaw, 1998; record-to-record travel: Dueck, 1993).
#
# A move takes a region of the graph, holds all around it, finds the best choice of the region with memory at its multipliers times a rate
# that is drawn, and lets it stand where memory is kept and the cost stays within a share of the best one found. Sizes of regions that gain
# more for the work are drawn more often.

SIZES = np.array([6, 20, 80, 400, 2000], np.int64)
RATES = np.array([0, 1, 3, 4, 6], np.int64)
"""In quarters of the multipliers."""
RATE_ONE = 4
BEST, TRIED, STOOD, BETTER = range(4)


class Walker(NamedTuple):
    """Who searches: where it stands, its best choice, and room to work."""

    layout: regions.Layout
    standing: regions.Standing
    region: regions.Region
    events: regions.Events
    arcs: Ints
    prices: Ints
    """What the memory of each strategy costs at the multipliers."""
    best: Ints
    counts: Ints
    """The cost of the best choice; moves tried, those that stand, those that found a new best."""
    gains: Array
    """What each size gained lately, and the work that it took."""
    seed: Seed


@compiled
def walked(walker: Walker, moves: int, work: int, share: float) -> None:
    """Some moves, until `work` is done; the cost may rise to (1 + share) times the best."""
    region = walker.region
    region.sizes[regions.WORK] = 0
    for _ in range(moves):
        before, cost = region.sizes[regions.WORK], walker.standing.figures[0]
        size = _drawn_size(walker)
        _move(walker, SIZES[size], share)
        walker.gains[size, 0] = 0.999 * walker.gains[size, 0] + max(cost - walker.standing.figures[0], 0)
        walker.gains[size, 1] = 0.999 * walker.gains[size, 1] + (region.sizes[regions.WORK] - before)
        if region.sizes[regions.WORK] >= work:
            break


@compiled
def _drawn_size(walker: Walker) -> int:
    """By what a size gained for its work; each now and then."""
    kinds = len(SIZES)
    total = 0.0
    for size in range(kinds):
        total += walker.gains[size, 0] / (walker.gains[size, 1] + 1.0)
    if total <= 0.0 or draw_below(walker.seed, 4) == 0:
        return _fair(walker.seed, kinds)
    left = total * draw_below(walker.seed, 1 << 30) / (1 << 30)
    for size in range(kinds):
        left -= walker.gains[size, 0] / (walker.gains[size, 1] + 1.0)
        if left < 0.0:
            return size
    return kinds - 1


@compiled
def _fair(seed: Seed, kinds: int) -> int:
    """Small ones twice as often as the next."""
    size = 0
    while size < kinds - 1 and draw_below(seed, 2) == 0:
        size += 1
    return size


@compiled
def _move(walker: Walker, size: int, share: float) -> None:
    layout, standing, region = walker.layout, walker.standing, walker.region
    nodes = len(standing.labels)
    size = min(size, nodes, len(region.labels))
    apart = size >= 12 and draw_below(walker.seed, 4) == 0
    count = regions.gathered(layout, region, walker.seed, draw_below(walker.seed, nodes), size // 2 if apart else size, int(np.int64(0)))
    if apart:
        count = regions.gathered(layout, region, walker.seed, draw_below(walker.seed, nodes), size, count)
    region.sizes[regions.NODES] = count
    rate = RATES[draw_below(walker.seed, len(RATES))]
    inner = regions.opened(layout, standing, region, walker.prices, rate, walker.arcs)
    regions.best_choice(region, walker.seed)
    region.sizes[regions.WORK] += 64 * count
    more = regions.difference(layout, standing, region, walker.arcs, inner)
    walker.counts[TRIED] += 1
    if standing.figures[0] + more <= walker.counts[BEST] + share * abs(walker.counts[BEST]):
        regions.changes_of(layout, standing, region, walker.events)
        if walker.events.filled[0] == 0 or regions.fits(standing, walker.events):
            _stand(walker, more)
    regions.closed(region)


@compiled
def _stand(walker: Walker, more: int) -> None:
    standing, region = walker.standing, walker.region
    for here in range(region.sizes[regions.NODES]):
        if region.labels[here] != standing.labels[region.nodes[here]]:
            regions.moved(walker.layout, standing, region.nodes[here], region.labels[here])
    standing.figures[0] += more
    walker.counts[STOOD] += 1
    if standing.figures[0] < walker.counts[BEST]:
        walker.counts[BEST] = standing.figures[0]
        walker.counts[BETTER] += 1
        walker.best[:] = standing.labels


@compiled
def pull(walker: Walker, moves: int, size: int, hard: bool) -> None:
    """Regions at the multipliers whatever they cost; where memory is `hard`, only those that keep it."""
    standing, region = walker.standing, walker.region
    for _ in range(moves):
        start = draw_below(walker.seed, len(standing.labels))
        region.sizes[regions.NODES] = regions.gathered(
            walker.layout, region, walker.seed, start, min(size, len(region.labels)), int(np.int64(0))
        )
        inner = regions.opened(walker.layout, standing, region, walker.prices, int(np.int64(RATE_ONE)), walker.arcs)
        regions.best_choice(region, walker.seed)
        more = regions.difference(walker.layout, standing, region, walker.arcs, inner)
        regions.changes_of(walker.layout, standing, region, walker.events)
        if not hard or walker.events.filled[0] == 0 or regions.fits(standing, walker.events):
            _stand(walker, more)
        regions.closed(region)


# A walker made ready: laid out, priced, with room to work.


def integer_prices(core: Core, layout: regions.Layout, multipliers: Array) -> Ints:
    """What the memory of each strategy costs, in whole numbers below the wall."""
    prices = np.rint(np.minimum(memory_costs(core, layout.timeline, multipliers), layout.wall >> 4))
    return np.asarray(prices.astype(np.int64))


def walker_of(core: Core, labels: Ints, multipliers: Array, number: int) -> Walker:
    """A walker that stands at these labels; `number` seeds its draws."""
    layout = regions.layout_of(core)
    most = int(min(SIZES[-1], len(core)))
    region = regions.region_of(layout.entries, len(core), int(core.counts.max(initial=1)), most)
    arcs, gains = np.zeros(len(region.bases), np.int64), np.zeros((len(SIZES), 2))
    standing = regions.standing_of(core, layout, labels)
    room = (region, regions.events_of(layout, most), arcs, integer_prices(core, layout, multipliers))
    return Walker(layout, standing, *room, labels.copy(), np.zeros(4, np.int64), gains, seed_of(number))._replace(
        counts=np.array([standing.figures[0], 0, 0, 0], np.int64)
    )


def placed(core: Core, walker: Walker, labels: Ints, multipliers: Array) -> Walker:
    """The walker at other labels, which are its best, and other multipliers."""
    standing = regions.standing_of(core, walker.layout, labels)
    counts = np.zeros_like(walker.counts)
    counts[BEST] = standing.figures[0]
    return walker._replace(standing=standing, best=labels.copy(), counts=counts, prices=integer_prices(core, walker.layout, multipliers))


# A first choice that keeps memory: multipliers rise wherever too much is in use until regions, each at its best, fit.

RISE = 1.3
_SOFT = 60
"""Rounds in which memory may move from time to time before none may be added where the limit is broken."""

_MOVES_OF_START = 4
"""Moves between two checks of the clock."""


@np.errstate(over="ignore", invalid="ignore")
def fitted(core: Core, walker: Walker, multipliers: Array, going: Callable[[], bool], rise: float = RISE) -> Ints | None:
    """Labels that may be chosen, or None where time ended before; the walker says from where, and what it has room for."""
    multipliers, labels = multipliers.copy(), walker.standing.labels.copy()
    rounds = 0
    while going():
        used = in_use(core, walker.layout.timeline, labels)
        over = used > (used.max(initial=0) if core.limit is None else core.limit)
        if not over.any() and cost_of(core, labels) is not None:
            return labels
        some = multipliers[multipliers > 0.0]
        least = some.mean() / 8.0 if len(some) else abs(float(walker.standing.figures[0])) / max(len(used), 1) + 1.0
        multipliers[over] = np.maximum(multipliers[over] * rise, least)
        prices = integer_prices(core, walker.layout, multipliers)
        walker = walker._replace(standing=regions.standing_of(core, walker.layout, labels), prices=prices)
        size = int(SIZES[-1] if rounds % 2 == 0 else SIZES[-2])
        moves = 1 + 2 * len(core) // size
        while moves > 0 and going():
            pull(walker, min(moves, _MOVES_OF_START), size, rounds >= _SOFT)
            moves -= _MOVES_OF_START
        labels = walker.standing.labels
        rounds += 1
    return None


# The search for a choice of strategies and for its bound, side by side: one thread climbs, the other walks.
#
# The climb gives multipliers and labels, by single steps at first and then by cooling. From them a choice is fitted to memory, more than
# once, at rising speeds; the best one is walked on, with kicks (regions at multipliers that are drawn, fitted again) and with new fits as
# the multipliers become better. In the last part the cost may rise less and less.

_FIRST = 0.1
"""The share of the time after which the first choice is fitted."""
_LAST = 0.5
"""From here on one walk to the end."""
_COLD = 0.9
"""From here on the cost of a walk may not rise any more."""
_PATIENCE = 0.3
"""Until this share of the time the first choice may be fitted, before one by simple rules is walked on."""
_WARM = 1.0
"""How long before its beginning a climb from multipliers counts as begun, as a multiple of its time."""
_TURN = 0.04
"""Share of the time for one turn of the walk between two checks."""
_REPRICED = 0.01
"""The share of the time after which a walk takes the multipliers as they are by then."""
_RISES = (1.3, 1.1, 1.03)
_PROVED = 0.2
"""The share of the time between proofs."""
_LOOSE = 0.05
"""Of the gap: how far a walk may rise above its best."""
_LOOSEST = 0.005
_MOVES_OF_WALK, _WORK = 1 << 11, 8_000_000
"""Moves, and work, of a walk between two checks of the clock."""

Clock = Callable[[], float]
"""The share of the time that is gone."""
Report = Callable[[Ints | None, int | None, float], None]
"""Told of labels that are better than all before with their cost, now and then of none, and of the bound in floating point."""
Prove = Callable[[Dual], int]
"""Told of duals whose bound is above those before; counts what they prove, or says by a ValueError that it cannot."""


@dataclass(slots=True)
class Found:
    """The best choice, if any, and the proof of the bound."""

    labels: Ints | None
    cost: int | None
    dual: Dual
    bound: int


@dataclass(slots=True)
class _SharedState:
    """What both threads know."""

    core: Core
    ascent: Ascent
    clock: Clock
    report: Report
    walker: Walker
    random: np.random.Generator
    labels: Ints | None = None
    cost: int | None = None
    over: Event = field(default_factory=Event)
    fault: Exception | None = None
    """Of the climb."""
    fitted: bool = False
    """Whether a choice was found that the multipliers led to."""
    proved: float = -np.inf
    """The bound in floating point that was last proved, and when."""
    proved_at: float = 0.0
    cooling: Cooling | None = None
    """Of the climb, from `_FIRST` on."""
    warm: bool = False
    """Whether the climb began at multipliers."""

    def going(self) -> bool:
        proved = self.cost is not None and self.ascent.best > self.cost - 0.5
        return not proved and not self.over.is_set() and self.clock() < 1.0

    def offer(self, labels: Ints) -> bool:
        """Evaluate a choice anew, whatever its source claims, and keep it if it is allowed and better than the best so far."""
        cost = cost_of(self.core, labels)
        if cost is None or (self.cost is not None and cost >= self.cost):
            return False
        if self.core.limit is not None and in_use(self.core, self.ascent.timeline, labels).max(initial=0) > self.core.limit:
            return False
        self.labels, self.cost = labels.copy(), cost
        self.report(self.labels, cost, self.ascent.best)
        return True


def searched(
    core: Core,
    clock: Clock,
    seed: int,
    report: Report,
    prove: Prove,
    start: Ints | None = None,
    threads: bool = True,
    dual: Dual | None = None,
) -> Found:
    """Climbs and walks until the clock says 1; labels or a dual to start from may be given. KeyboardInterrupt leaves through it."""
    ascent = ascent_of(core)
    if dual is not None:
        start_at(ascent, dual)
    walker = walker_of(core, ascent.labels, ascent.multipliers, seed)
    quest = _SharedState(core, ascent, clock, report, walker, np.random.default_rng(seed))
    quest.warm = dual is not None
    if start is not None:
        quest.offer(start)
    climber = Thread(target=_climb, args=(quest,), daemon=True)
    if threads:
        climber.start()
    try:
        _walk(quest, threads, prove)
    finally:
        quest.over.set()
        if threads:
            climber.join()
        if quest.fault is not None:
            raise quest.fault
        dual, bound = proof_of(quest.ascent, prove)
    return Found(quest.labels, quest.cost, dual, bound)


def _climb(quest: _SharedState) -> None:
    try:
        while quest.going():
            _climbed(quest, 1 << 30)
    except Exception as error:  # noqa: BLE001 - the main thread raises it again
        quest.fault = error
        quest.over.set()


def _climbed(quest: _SharedState, most: int) -> None:
    """Rounds of the climb, smoothed once the first part of the time is over, or at once where it began at multipliers."""
    if not quest.warm and (quest.clock() < _FIRST or quest.ascent.rounds == 0):
        climb(quest.ascent, lambda _: quest.going() and quest.clock() < _FIRST, most)
        return
    if quest.cooling is None:
        settled(quest.ascent)
        quest.cooling = cooling_of(quest.ascent)
    begun = -_WARM if quest.warm else _FIRST
    cool(quest.ascent, quest.cooling, lambda: min((quest.clock() - begun) / (1.0 - begun), 1.0), quest.going, most)


def _walk(quest: _SharedState, threads: bool, prove: Prove) -> None:
    _wait(quest, _FIRST, threads)
    turn = 0
    while quest.going():
        if not threads:
            _climbed(quest, 1)
        _decoded(quest)
        done = quest.clock()
        if done > quest.proved_at + _PROVED and quest.ascent.best > quest.proved:
            quest.proved, quest.proved_at = quest.ascent.best, done
            proof_of(quest.ascent, prove)
        labels = _begin(quest, turn, done)
        if labels is not None:
            until = 1.0 if done >= _LAST else min(done + _TURN, 1.0)
            _stretch(quest, labels, done, until)
        turn += 1
    _decoded(quest)


def _decoded(quest: _SharedState) -> bool:
    """Tells what the climb decoded at best; whether it is better than all before."""
    labels = quest.ascent.feasible
    quest.fitted = quest.fitted or labels is not None
    return labels is not None and quest.offer(labels)


def _begin(quest: _SharedState, turn: int, done: float) -> Ints | None:
    """From where the next walk begins: the best choice, at first and every other time another one."""
    multipliers, decoded = quest.ascent.best_multipliers, quest.ascent.feasible
    if quest.labels is None or (done < _LAST and turn % 4 == 0):
        return _fit(quest, quest.ascent.labels, multipliers, _RISES[turn // 4 % len(_RISES)])
    if done < _LAST and turn % 4 == 1 and decoded is not None:
        return decoded
    if done < _LAST and turn % 4 == 3:
        return _kicked(quest, quest.labels, multipliers)
    return quest.labels


def _wait(quest: _SharedState, share: float, threads: bool) -> None:
    """Lets the climb begin; without threads it climbs here."""
    while quest.going() and (quest.clock() < share or quest.ascent.rounds == 0):
        if threads:
            quest.over.wait(0.01)
        else:
            climb(quest.ascent, lambda _: quest.clock() < share)


def _fit(quest: _SharedState, labels: Ints, multipliers: Array, rise: float) -> Ints | None:
    walker = placed(quest.core, quest.walker, labels, multipliers)
    patience = 0.0 if quest.fitted else 1.0 if quest.labels is None else _PATIENCE
    until = max(quest.clock() + _TURN, patience)
    found = fitted(quest.core, walker, multipliers, lambda: quest.going() and quest.clock() < until, rise)
    if found is not None:
        quest.fitted = True
        quest.offer(found)
    return found


def _kicked(quest: _SharedState, labels: Ints, multipliers: Array) -> Ints | None:
    """Some regions at their best whatever the memory, at multipliers near these, and fitted again."""
    noisy = multipliers * quest.random.lognormal(0.0, 0.3) * quest.random.lognormal(0.0, 0.2, len(multipliers))
    size = int(quest.random.choice(SIZES[2:]))
    walker = placed(quest.core, quest.walker, labels, noisy)
    pull(walker, 1 + len(quest.core) // size, size, False)
    return _fit(quest, walker.standing.labels, noisy, float(quest.random.choice(_RISES)))


def _stretch(quest: _SharedState, labels: Ints, since: float, until: float) -> None:
    """Walk from these labels until the ascent decodes better ones; report each choice better than all before."""
    walker = placed(quest.core, quest.walker, labels, quest.ascent.best_multipliers)
    gap = max(float(walker.counts[BEST]) + quest.core.constant - quest.ascent.best, 0.0)
    share = min(_LOOSE * gap / max(abs(float(walker.counts[BEST])), 1.0), _LOOSEST)
    priced_at = since
    while quest.going() and (done := quest.clock()) < until:
        cold = since + (until - since) * _COLD
        walked(walker, _MOVES_OF_WALK, _WORK, share * max(cold - done, 0.0) / max(cold - since, 1e-9))
        if not quest.offer(walker.best):
            quest.report(None, None, quest.ascent.best)
        if _decoded(quest):
            return
        if done > priced_at + _REPRICED:
            priced_at = done
            walker = walker._replace(prices=integer_prices(quest.core, walker.layout, quest.ascent.best_multipliers))


# The search for a run: as long as there is time, or so many steps that the same seed leads to the same choice.
#
# The first search takes the time that its bound needs, or half of it where the bound is far. The next one begins at its multipliers, with
# other draws, on what the proof of the bound leaves that may be better than the best choice: there passes and moves take less time, and
# walks lead to nothing that is known to be worse. Where a bound on the way leaves much less, the next one begins at once.

_NARROWER = 0.5
"""The share of the pairs that is so much less."""
_SHARE, _SHORTEST = 0.5, 5.0
"""Of the time that is left, what a search takes, and the least seconds."""
_FAR = 0.01
"""Of the cost, a gap from which a bound is far."""
_ROUNDS, _STEPS = 60, 120
"""Of the climb, plain and smoothed each; checks of the clock that a walk has after them."""


def search_for(run: Run, seconds: float, suffices: Callable[[Rest], bool] = lambda _: False) -> bool:
    """Offers choices and bounds for so long, or until they are as near as was asked, or leave a rest that suffices, as is returned."""
    run.label = "multipliers and neighbourhoods"
    until, seed = monotonic() + seconds, run.limits.seed
    rest: Rest | None = run.everything
    while rest is not None and not run.near and (left := until - monotonic()) > 0.0:
        if rest.duals and suffices(rest):
            return True
        rest = _searched(run, rest, min(left, max(_SHARE * left, _SHORTEST)) if rest.duals else left, seed, suffices)
        seed += 1
    return False


def _searched(run: Run, rest: Rest, seconds: float, seed: int, suffices: Callable[[Rest], bool]) -> Rest | None:
    """Offers choices of a rest and bounds until its proof leaves much less or what suffices, or the time is up; what it leaves."""
    began, narrower = monotonic(), list[Rest]()

    def clock() -> float:
        done = (monotonic() - began) / seconds
        return 1.0 if narrower or run.near or (done > _SHARE and not rest.duals and _far(run)) else done

    def prove(dual: Dual) -> int:
        bound = run.bound_proved(dual, rest)
        if not narrower and not run.near and clock() < 1.0:
            left = run.narrowed()
            narrower.extend([left] if left and (left.core.pairs <= _NARROWER * rest.core.pairs or suffices(left)) else [])
        return bound

    start = run.chosen if rest.core is run.core else None
    dual = rest.duals[-1] if rest.duals else None
    if dual is not None and rest.times is not None:
        dual = replace(dual, times=np.searchsorted(rest.times, dual.times))
    searched(rest.core, clock, seed, partial(_report, run, rest.back), prove, start, dual=dual)
    return narrower[0] if narrower else run.narrowed()


def _far(run: Run) -> bool:
    """Whether so much is open that better choices are worth more than a closer bound."""
    return run.cost is not None and run.dual_bound is not None and run.cost - run.dual_bound > _FAR * abs(run.cost)


def search_shortly(run: Run, seconds: float) -> None:
    """Offers what a climb of so many rounds bounds, and then what walks of so many steps find, or as many as the time allows."""
    run.label = "multipliers and neighbourhoods"
    ascent, steps, until = ascent_of(run.core), count(1), monotonic() + seconds

    def going() -> bool:
        return not run.enough() and monotonic() < until

    climb(ascent, lambda _: going(), _ROUNDS)
    cooling = cooling_of(ascent)
    for turn in range(_ROUNDS):
        cool(ascent, cooling, partial(float, turn / _ROUNDS), going, 1)
    proof_of(ascent, run.bound_proved)
    walker = walker_of(run.core, ascent.labels, ascent.multipliers, run.limits.seed)
    random = np.random.default_rng(run.limits.seed)
    report = partial(_report, run, np.array)
    quest = _SharedState(run.core, ascent, lambda: next(steps) / _STEPS if going() else 1.0, report, walker, random)
    if run.chosen is not None:
        quest.offer(run.chosen)
    fit = _begin(quest, 0, quest.clock())
    labels = quest.labels if fit is None else fit
    while quest.going() and labels is not None:
        _stretch(quest, labels, quest.clock(), 1.0)
        labels = quest.labels


def _report(run: Run, back: Back, labels: Ints | None, cost: int | None, bound: float) -> None:
    del cost, bound  # the run counts them itself
    if labels is not None:
        run.offer(back(labels))
    run.show()
