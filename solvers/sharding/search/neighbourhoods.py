"""The search for a choice of strategies and for its bound, side by side: one thread climbs, the other walks.

The climb gives multipliers and labels, by single steps at first and then by cooling. From them a choice is fitted to memory, more than
once, at rising speeds; the best one is walked on, with kicks (regions at multipliers that are drawn, fitted again) and with new fits as the
multipliers become better. In the last part the cost may rise less and less.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Thread

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.formulation.sharding.core import Core, cost_of, in_use
from crossopt.formulation.sharding.dual import Dual
from crossopt.solvers.sharding.messages.ascent import Ascent, ascent_of, climb, proof_of
from crossopt.solvers.sharding.messages.smoothed_ascent import Cooling, cool, cooling_of
from crossopt.solvers.sharding.search.start import fitted
from crossopt.solvers.sharding.search.walk import BEST, SIZES, Walker, pull, walked
from crossopt.solvers.sharding.search.walker import placed, price_whole, walker_of

_FIRST = 0.1
"""The share of the time after which the first choice is fitted."""
_LAST = 0.5
"""From here on one walk to the end."""
_COLD = 0.9
"""From here on the cost of a walk may not rise any more."""
_PATIENCE = 0.3
"""Until this share of the time the first choice may be fitted, before one by simple rules is walked on."""
_TURN = 0.04
"""The share of the time of one turn of the walk before it is looked at again."""
_REPRICED = 0.01
"""The share of the time after which a walk takes the multipliers as they are by then."""
_RISES = (1.3, 1.1, 1.03)
_PROVED = 0.2
"""The share of the time between proofs."""
_LOOSE = 0.05
"""Of the gap: how far a walk may rise above its best."""
_LOOSEST = 0.005
_MOVES, _WORK = 1 << 11, 8_000_000
"""Of a walk before the clock is looked at."""

Clock = Callable[[], float]
"""The share of the time that is gone."""
Report = Callable[[Whole | None, int | None, float], None]
"""Told of labels that are better than all before with their cost, now and then of none, and of the bound in floating point."""
Prove = Callable[[Dual], int]
"""Told of duals whose bound is above those before; counts what they prove, or says by a ValueError that it cannot."""


@dataclass(slots=True)
class Found:
    """The best choice, if any, and the proof of the bound."""

    labels: Whole | None
    cost: int | None
    dual: Dual
    bound: int


@dataclass(slots=True)
class _Quest:
    """What both threads know."""

    core: Core
    ascent: Ascent
    clock: Clock
    report: Report
    walker: Walker
    random: np.random.Generator
    labels: Whole | None = None
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

    def going(self) -> bool:
        proved = self.cost is not None and self.ascent.best > self.cost - 0.5
        return not proved and not self.over.is_set() and self.clock() < 1.0

    def told(self, labels: Whole) -> bool:
        """Keeps a choice that is better than all before and may be chosen; whoever finds one is not believed."""
        cost = cost_of(self.core, labels)
        if cost is None or (self.cost is not None and cost >= self.cost):
            return False
        if self.core.limit is not None and in_use(self.core, self.ascent.timeline, labels).max(initial=0) > self.core.limit:
            return False
        self.labels, self.cost = labels.copy(), cost
        self.report(self.labels, cost, self.ascent.best)
        return True


def searched(core: Core, clock: Clock, seed: int, report: Report, prove: Prove, start: Whole | None = None, threads: bool = True) -> Found:
    """Climbs and walks until the clock says 1; labels to start from may be given. KeyboardInterrupt leaves through it."""
    ascent = ascent_of(core)
    walker = walker_of(core, ascent.labels, ascent.multipliers, seed)
    quest = _Quest(core, ascent, clock, report, walker, np.random.default_rng(seed))
    if start is not None:
        quest.told(start)
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


def _climb(quest: _Quest) -> None:
    try:
        while quest.going():
            _climbed(quest, 1 << 30)
    except Exception as error:  # noqa: BLE001 - whoever walks raises it again
        quest.fault = error
        quest.over.set()


def _climbed(quest: _Quest, most: int) -> None:
    """Rounds of the climb, smoothed once the first part of the time is over."""
    if quest.clock() < _FIRST or quest.ascent.rounds == 0:
        climb(quest.ascent, lambda _: quest.going() and quest.clock() < _FIRST, most)
        return
    if quest.cooling is None:
        quest.cooling = cooling_of(quest.ascent)
    cool(quest.ascent, quest.cooling, lambda: min((quest.clock() - _FIRST) / (1.0 - _FIRST), 1.0), quest.going, most)


def _walk(quest: _Quest, threads: bool, prove: Prove) -> None:
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


def _decoded(quest: _Quest) -> bool:
    """Tells what the climb decoded at best; whether it is better than all before."""
    labels = quest.ascent.feasible
    quest.fitted = quest.fitted or labels is not None
    return labels is not None and quest.told(labels)


def _begin(quest: _Quest, turn: int, done: float) -> Whole | None:
    """From where the next walk begins: the best choice, at first and every other time another one."""
    multipliers, decoded = quest.ascent.best_multipliers, quest.ascent.feasible
    if quest.labels is None or (done < _LAST and turn % 4 == 0):
        return _fit(quest, quest.ascent.labels, multipliers, _RISES[turn // 4 % len(_RISES)])
    if done < _LAST and turn % 4 == 1 and decoded is not None:
        return decoded
    if done < _LAST and turn % 4 == 3:
        return _kicked(quest, quest.labels, multipliers)
    return quest.labels


def _wait(quest: _Quest, share: float, threads: bool) -> None:
    """Lets the climb begin; without threads it climbs here."""
    while quest.going() and (quest.clock() < share or quest.ascent.rounds == 0):
        if threads:
            quest.over.wait(0.01)
        else:
            climb(quest.ascent, lambda _: quest.clock() < share)


def _fit(quest: _Quest, labels: Whole, multipliers: Array, rise: float) -> Whole | None:
    walker = placed(quest.core, quest.walker, labels, multipliers)
    patience = 0.0 if quest.fitted else 1.0 if quest.labels is None else _PATIENCE
    until = max(quest.clock() + _TURN, patience)
    found = fitted(quest.core, walker, multipliers, lambda: quest.going() and quest.clock() < until, rise)
    if found is not None:
        quest.fitted = True
        quest.told(found)
    return found


def _kicked(quest: _Quest, labels: Whole, multipliers: Array) -> Whole | None:
    """Some regions at their best whatever the memory, at multipliers near these, and fitted again."""
    noisy = multipliers * quest.random.lognormal(0.0, 0.3) * quest.random.lognormal(0.0, 0.2, len(multipliers))
    size = int(quest.random.choice(SIZES[2:]))
    walker = placed(quest.core, quest.walker, labels, noisy)
    pull(walker, 1 + len(quest.core) // size, size, False)
    return _fit(quest, walker.standing.labels, noisy, float(quest.random.choice(_RISES)))


def _stretch(quest: _Quest, labels: Whole, since: float, until: float) -> None:
    """Walks from these labels, until the climb decodes better ones; what is better than all before is told."""
    walker = placed(quest.core, quest.walker, labels, quest.ascent.best_multipliers)
    gap = max(float(walker.counts[BEST]) + quest.core.constant - quest.ascent.best, 0.0)
    share = min(_LOOSE * gap / max(abs(float(walker.counts[BEST])), 1.0), _LOOSEST)
    priced_at = since
    while quest.going() and (done := quest.clock()) < until:
        cold = since + (until - since) * _COLD
        walked(walker, _MOVES, _WORK, share * max(cold - done, 0.0) / max(cold - since, 1e-9))
        if not quest.told(walker.best):
            quest.report(None, None, quest.ascent.best)
        if _decoded(quest):
            return
        if done > priced_at + _REPRICED:
            priced_at = done
            walker = walker._replace(prices=price_whole(quest.core, walker.layout, quest.ascent.best_multipliers))
