"""Engines for pipelines: rules, stages of several nodes, moves of layers, and searches of covers and of placements that prove."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from random import Random
from time import monotonic

from crossopt.crossflow.pipelines import Stage
from crossopt.formulation.pipelines import LargeError, best_above, chain_of, closed_bound, counts_model, covering, groups_of, least_rate
from crossopt.instances.counts.pipelines import PipelinesQuestion
from crossopt.instances.errors import RefusedError
from crossopt.solvers.answer import Baseline, Limits, Progress, SearchOutcome, Watch, is_proved
from crossopt.solvers.backends import Spend, backend
from crossopt.solvers.counts.pipelines import (
    BY_CHAINS,
    BY_COVERS,
    BY_WORK,
    Placement,
    flow_of,
    label_of,
    placement_of,
    reasons_of,
    stages_of,
    units_within,
)
from crossopt.solvers.counts.rules import carrying, rules_of_pipelines
from crossopt.solvers.proofs import RecomputableBound, UnverifiedBound

Found = SearchOutcome[Placement]
Stages = tuple[Stage, ...]
_STEPS, _EQUAL = 1_500_000, 0.3
"""Steps of a search for stages, and how often an equal stage replaces another."""
_PATIENCE = 500
"""Moves without a better placement."""
_GRID, _STARTS = 100, 40
"""Rates of stages that are tried where links carry less than the best stages pass, and stages from which layers are moved."""
_UNDECIDED = 12
"""Searches for one rate that may take too many steps."""


class _TimeUpError(Exception):
    """The time is over."""


class _Search:
    """The best placement so far, and the rate that none exceeds, with what proves it."""

    def __init__(self, question: PipelinesQuestion, limits: Limits, watch: Watch, name: str) -> None:
        self.question, self.watch, self.name, self.gap = question, watch, name, limits.gap
        self.began = monotonic()
        self.deadline = self.began + limits.seconds
        self.stages: Stages = ()
        self.starts = list[Stages]()
        """Placements from which layers are moved, too."""
        self.value, self.most, self.label = 0, closed_bound(question), BY_WORK
        self.trail = list[tuple[float, float | None, float | None]]()

    @cached_property
    def baselines(self) -> tuple[Baseline[Placement], ...]:
        """Of rules."""
        return rules_of_pipelines(self.question)

    def tick(self) -> None:
        """Raises once the time is over."""
        if monotonic() >= self.deadline:
            raise _TimeUpError

    def offer(self, stages: Sequence[Stage]) -> int:
        """Keep a placement that passes more than all before; what it passes."""
        value = flow_of(self.question, stages).value
        if value > self.value:
            self.stages, self.value = carrying(self.question, stages), value
            self._tell()
        return value

    def lower(self, most: int, label: str) -> None:
        """No placement passes more than this."""
        if self.question.seconds(most) > self.question.seconds(self.most):
            self.most, self.label = most, label
            self._tell()

    def _tell(self) -> None:
        value, bound = self.question.seconds(self.value), self.question.seconds(self.most)
        if self.value:
            answer = placement_of(self.question, self.stages)
            self.trail.append((monotonic() - self.began, value, bound))
            self.watch(Progress(self.name, value, bound, answer=lambda: answer))

    @property
    def proved(self) -> bool:
        """Whether nothing passes more than the gap allows, or anything."""
        value = self.question.seconds(self.value) if self.value else None
        return is_proved(value, self.question.seconds(self.most), self.gap)

    def outcome(self, stopped: str) -> Found:
        """What is known."""
        bound = self.question.seconds(self.most)
        return SearchOutcome(
            placement_of(self.question, self.stages) if self.value else None,
            bound if self.value or not self.most else None,
            RecomputableBound(self.label),
            self.name,
            stopped,
            reasons=() if self.most else reasons_of(self.question),
            baselines=self.baselines,
            trace=tuple(self.trail),
            value=self.question.seconds(self.value) if self.value else None,
        )


def auto(question: PipelinesQuestion, limits: Limits, watch: Watch) -> Found:
    """Rules and stages, then searches of covers and placements for a proof, then moves of layers between nodes."""
    return _ran(question, limits, watch, "auto", (_rules, _stages, _chain, _covers, _placements, _moves))


def exhaustive(question: PipelinesQuestion, limits: Limits, watch: Watch) -> Found:
    """Every placement; a RefusedError where these are too many."""
    found = _ran(question, limits, watch, "exhaustive", (_placements,))
    if found.stopped == "complete" and found.answer is None and found.bound is None:
        raise RefusedError("there are too many placements to look at each (take the engine auto)")
    return found


def stages(question: PipelinesQuestion, limits: Limits, watch: Watch) -> Found:
    """Stages of nodes that hold the same layers; no proof but by the work of all nodes."""
    return _ran(question, limits, watch, "stages", (_rules, _stages))


def cpsat(question: PipelinesQuestion, limits: Limits, watch: Watch) -> Found:
    """CP-SAT on counts of nodes by their layers, over links that carry any rate; the bound rests on it."""
    search = _Search(question, limits, watch, "cpsat")
    if not limits.seconds or not search.most:
        return search.outcome("time limit" if search.most else "complete")
    built = counts_model(question)
    try:
        found = backend("cpsat")(built.model, Spend(limits.seconds, workers=limits.workers, seed=limits.seed))
    except ValueError as error:
        raise RefusedError(f"{error} (take the engine auto)") from error
    if found.values is not None:
        left = [[*group] for group in built.groups]
        held = [key for key, variable in built.counts.items() for _ in range(found.values[variable])]
        search.offer([question.stage(left[group].pop(), first, count) for group, first, count in held])
    most = min(search.most, (found.bound or 0) * built.unit)
    ended = found.stopped if found.stopped in {"complete", "interrupted"} else "complete" if found.stopped == "gap" else "time limit"
    outcome = replace(search.outcome(ended), solver=found.solver)
    if not search.value or most == search.most:
        return outcome
    return replace(outcome, bound=question.seconds(max(most, search.value)), proof=UnverifiedBound("cpsat"))


Part = Callable[[_Search, Limits], None]


def _ran(question: PipelinesQuestion, limits: Limits, watch: Watch, name: str, parts: Sequence[Part]) -> Found:
    """The outcome of searches one after another, until one proves the best placement."""
    search = _Search(question, limits, watch, name)
    try:
        for part in parts:
            search.tick()
            if search.proved:
                break
            part(search, limits)
    except _TimeUpError:
        return search.outcome("time limit")
    return search.outcome("complete")


def _rules(search: _Search, limits: Limits) -> None:
    del limits
    for baseline in search.baselines:
        if baseline.answer is not None:
            search.offer(stages_of(search.question, baseline.answer))


def _stages(search: _Search, limits: Limits) -> None:
    """Stages of nodes that hold the same layers: those that pass most over any links, and others, where links carry less than that."""
    random = Random(limits.seed)

    def decide(rate: int) -> int:
        found = _Staged(search, rate, random).stages()
        if found is None:
            return 0
        search.offer(found)
        search.starts.append(found)
        return max(least_rate(search.question, found), rate)

    least, most = search.value, _climb(search.value, search.most, decide, optimistic=False)
    for place in range(_GRID if search.value < most else 0):
        with suppress(LargeError):
            decide(least + (most - least) * place // _GRID + 1)


class _Staged:
    """Stages that each pass a rate, by a dynamic program over the nodes of each group that are left."""

    def __init__(self, search: _Search, rate: int, random: Random) -> None:
        self.question, self.tick, self.rate, self.random = search.question, search.tick, rate, random
        groups = groups_of(search.question)
        self.tables, self.nodes = [*groups], [[*nodes] for nodes in groups.values()]
        self.best: dict[tuple[int, ...], tuple[int, int, int, tuple[int, ...]]] = {}
        """By nodes that are left: most layers of their stages, how few of these mix kinds, and layers and nodes of the first one."""
        self.steps = 0

    def stages(self) -> Stages | None:
        """Nodes with their layers; None where there are none. A LargeError after too many steps."""
        left, sizes = tuple(map(len, self.nodes)), list[tuple[int, tuple[int, ...]]]()
        if self._reached(left)[0] < self.question.layers:
            return None
        while sum(count for count, _ in sizes) < self.question.layers:
            _, _, count, used = self.best[left]
            sizes.append((count, used))
            left = tuple(before - taken for before, taken in zip(left, used, strict=True))
        beyond, first, found = sum(count for count, _ in sizes) - self.question.layers, 0, list[Stage]()
        for count, used in sorted(sizes, key=lambda size: (size[1], size[0])):
            fewer = min(beyond, count - 1)
            beyond -= fewer
            found += [
                self.question.stage(self.nodes[group].pop(), first, count - fewer) for group, own in enumerate(used) for _ in range(own)
            ]
            first += count - fewer
        return tuple(found)

    def _reached(self, left: tuple[int, ...]) -> tuple[int, int]:
        """The most layers of stages of these nodes, and how few of these mix kinds, as a number below 0."""
        if left not in self.best:
            best = 0, 0, 0, left
            for count in range(max(map(len, self.tables)), 0, -1):
                rates = [table[count - 1] if count <= len(table) else 0 for table in self.tables]
                for used in self._used(left, rates, 0, self.rate, self.rate):
                    rest, mixed = self._reached(tuple(before - taken for before, taken in zip(left, used, strict=True)))
                    reached = min(count + rest, self.question.layers), mixed - (sum(map(bool, used)) > 1)
                    if reached > best[:2] or (reached == best[:2] and self.random.random() < _EQUAL):
                        best = *reached, count, used
            self.best[left] = best
        return self.best[left][:2]

    def _used(self, left: Sequence[int], rates: Sequence[int], group: int, missing: int, least: int) -> Iterator[tuple[int, ...]]:
        """Numbers of nodes of each group from this one on whose rates bring what is missing, none of which the others do without."""
        self.steps += 1
        if self.steps > _STEPS:
            raise LargeError("the stages take too many steps")
        if not self.steps % 1_024:
            self.tick()
        if group == len(left):
            if missing <= 0 < missing + least:
                yield ()
            return
        rate = rates[group]
        for number in range((min(left[group], max(-(-missing // rate), 0)) if rate else 0) + 1):
            for rest in self._used(left, rates, group + 1, missing - number * rate, min(least, rate) if number else least):
                yield (number, *rest)


def _covers(search: _Search, limits: Limits) -> None:
    """The greatest rate at which the layers can be covered, which no placement exceeds."""
    del limits

    def decide(rate: int) -> int:
        rate = units_within(search.question, search.question.seconds(rate - 1)) + 1  # the next one of another time, as floats tell
        found = covering(search.question, rate, search.tick)
        if found is None:
            search.lower(rate - 1, BY_COVERS)
            return 0
        search.offer(found)
        return least_rate(search.question, found)

    _climb(search.value, search.most, decide, optimistic=True)


def _climb(low: int, high: int, decide: Callable[[int], int], optimistic: bool) -> int:
    """The greatest rate that is reached, between one that is and one that is not: the next rate above the former is tried, then the middle.

    What takes too many steps to decide is taken for reached by an optimist, but not often."""
    near, undecided = optimistic, 0
    while low < high and undecided < _UNDECIDED:
        rate = low + 1 if near else (low + high + 1) // 2
        try:
            reached = decide(rate)
        except LargeError:
            undecided += 1
            low, high = (low, high) if near else (rate, high) if optimistic else (low, rate - 1)
            near = False
            continue
        near, low, high = (not near, reached, high) if reached else (near, low, low if near else rate - 1)
    return low


def _placements(search: _Search, limits: Limits) -> None:
    """Every placement, where these are few."""
    del limits
    try:
        found = best_above(search.question, search.value, search.tick)
    except LargeError:
        return
    if found is not None:
        search.offer(found[0])
    search.lower(search.value, label_of(search.question, units_within(search.question, search.question.seconds(search.value)), search.tick))


def _chain(search: _Search, limits: Limits) -> None:
    """One chain of nodes along links, where nothing else passes any tokens."""
    del limits
    question = search.question
    if search.value:
        return
    try:
        chain = chain_of(question, search.tick)
    except LargeError:
        return
    if chain is None:
        search.lower(0, BY_CHAINS)
    if chain:
        counts, left = [1] * len(chain), question.layers - len(chain)
        for place, node in enumerate(chain):
            more = min(len(question.tables[node]) - 1, left)
            counts[place], left = 1 + more, left - more
        firsts = [*accumulate(counts, initial=0)]
        search.offer([question.stage(*held) for held in zip(chain, firsts, counts, strict=False)])


Held = dict[int, tuple[int, int]]
"""First layer and number of layers of each node that holds any."""


def _moves(search: _Search, limits: Limits) -> None:
    """Random moves of layers from stages and then from the best placement on, each kept unless less passes."""
    random = Random(limits.seed)
    best = sorted(dict.fromkeys(search.starts), key=lambda start: -flow_of(search.question, start).value)
    for start in best[:_STARTS]:
        _moved_from(search, start, random)
    _moved_from(search, search.stages, random)


def _moved_from(search: _Search, stages: Sequence[Stage], random: Random) -> None:
    question, value, since = search.question, flow_of(search.question, stages).value, 0
    held: Held = {stage.node: (stage.first, stage.last - stage.first) for stage in stages}
    while held and since < _PATIENCE and not search.proved:
        search.tick()
        since += 1
        moved = _moved(question, held, random)
        if moved is None:
            continue
        reached = search.offer([question.stage(node, *layers) for node, layers in sorted(moved.items())])
        if reached >= value:
            held, value, since = moved, reached, 0 if reached > value else since


def _moved(question: PipelinesQuestion, held: Held, random: Random) -> Held | None:
    """Neighbouring stages or the layers of two nodes exchanged, a boundary shifted, or a node elsewhere; None where that does not fit."""
    points = sorted({0, question.layers, *(end for first, count in held.values() for end in (first, first + count))})
    new, turn = dict(held), random.random()
    if turn < _ORDER and len(points) > 2:
        start, middle, end = sorted(random.sample(points, 3))
        for node, (first, count) in held.items():
            if any(first < point < first + count for point in (start, middle, end)):
                return None
            by = end - middle if start <= first < middle else start - middle if middle <= first < end else 0
            new[node] = first + by, count
    elif turn < _SHIFT and len(points) > 2:
        point, by = random.choice(points[1:-1]), random.choice((-2, -1, 1, 2))
        for node, (first, count) in held.items():
            begin, end = (one + by if one == point else one for one in (first, first + count))
            new[node] = begin, end - begin
    elif turn < _EXCHANGE:
        one, other = random.sample(range(len(question.nodes)), 2) if len(question.nodes) > 1 else (0, 0)
        new = {node: layers for node, layers in held.items() if node not in {one, other}}
        new |= {node: held[before] for node, before in ((one, other), (other, one)) if before in held}
    else:
        node = random.randrange(len(question.nodes))
        first, last = sorted(random.sample(points, 2))
        new[node] = first, last - first
    fits = all(
        1 <= count <= len(question.tables[node]) and first >= 0 and first + count <= question.layers for node, (first, count) in new.items()
    )
    return new if fits else None


_ORDER, _SHIFT, _EXCHANGE = 0.25, 0.5, 0.75
"""Up to which random number a move is of this kind."""
