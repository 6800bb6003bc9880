"""The engine for pipelines: baselines first, then exact dynamic programming over the cuts of the profile."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, fsum
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.instances.errors import RefusedError
from crossopt.instances.stages.pipedream import Level, PipelineQuestion, Profile
from crossopt.solvers.answer import Limits, Progress, SearchOutcome, Watch
from crossopt.solvers.proofs import RecomputableBound, UnverifiedBound
from crossopt.solvers.stages.pipedream.family import baselines_of, best_rule, countable, reason_of
from crossopt.solvers.stages.pipedream.judge import PipedreamPlan, Stage, judge

# Where a profile can be cut: its ideals, sets of nodes that hold all nodes they take data from; a stage is one ideal less a smaller one.
#
# They stand for the antichains of their last nodes, the states of PipeDream's optimizer. Nodes without any figure run as soon as they can.

MOST = 20_000
"""Ideals; pairs of more are too many to look at."""
_BITS = 64
Tick = Callable[[float], None]
"""Told the share of the work that is done; raises to stop."""


@dataclass(frozen=True, slots=True, eq=False)
class Ideals:
    """From the smallest to that of all nodes; what a stage needs is the difference of two rows."""

    seconds: Array
    parameters: Array
    activation: Array
    """Bytes that all nodes of the ideal hand on, to be kept for the backward pass."""
    crossing: Array
    """Bytes that nodes outside take from it."""
    bits: NDArray[np.uint64]
    """The nodes of each as bits."""

    def __len__(self) -> int:
        return len(self.seconds)

    def after(self, row: int) -> Ints:
        """The ideals that hold this one and more."""
        inside = ((self.bits[row] & ~self.bits[row + 1 :]) == 0).all(axis=1)
        return np.asarray(np.flatnonzero(inside) + row + 1)

    def between(self, row: int, end: int) -> tuple[int, ...]:
        """Rows of the profile that the second ideal has and the first has not; all of the second from the first cut of all."""
        left = [int(bits) for bits in (self.bits[end] & ~self.bits[row] if row else self.bits[end])]
        return tuple(number * _BITS + bit for number, bits in enumerate(left) for bit in range(_BITS) if bits >> bit & 1)


def ideals_of(profile: Profile, memory: float, compatible: bool, tick: Tick) -> Ideals:
    """All ideals that matter in an order in which none comes before one that it holds; a RefusedError in words where there are too many.

    Compatible: those that the public optimizer sees. It begins at the first node that takes nothing in; others of the kind come only
    with what needs them, so that all nodes of an ideal hang together with the first, and every ideal that does so is seen. Of an ideal it
    counts the output of its last nodes, and of each node before one of these that also hands on to a node not before it, whether or not
    that one is in the ideal.
    """
    before, after = [0] * len(profile), [0] * len(profile)
    for start, end in profile.edges:
        before[end] |= 1 << start
        after[start] |= 1 << end
    eager = [] if compatible else _eager(profile, memory)
    first = _closed(0, eager, before)
    first = 0 if first == (1 << len(profile)) - 1 else first
    found = _followed(before, after, tick) if compatible else _grown(first, before, eager, tick)
    if max(found) != (1 << len(profile)) - 1:
        lost = next(name for row, name in enumerate(profile.ids) if not max(found, key=int.bit_count) >> row & 1)
        reason = f"node {lost} does not follow from node {profile.ids[0]}, and the public optimizer would not see it"
        raise RefusedError(f"{reason} (leave out --compatible)")
    ideals = sorted({first, *found}, key=int.bit_count)
    crossing = [_seen(ideal, before, after) if compatible else _taken(ideal, after) for ideal in ideals[:-1]] + [0]
    sums = [
        (*(_sum(column, ideal) for column in (profile.seconds, profile.parameters, profile.activation)), _sum(profile.activation, out))
        for ideal, out in zip(ideals, crossing, strict=True)
    ]
    masks = [(1 << _BITS) - 1 << _BITS * number for number in range(-(-len(profile) // _BITS))]
    seconds, parameters, activation, crossed = (np.array(column) for column in zip(*sums, strict=True))
    bits = np.array([[(ideal & mask) >> _BITS * bit for bit, mask in enumerate(masks)] for ideal in ideals], np.uint64)
    return Ideals(seconds, parameters, activation, crossed, bits)


def _eager(profile: Profile, memory: float) -> list[int]:
    """Nodes that no plan is better for having later than all that feed them: they cost nothing, and their output is empty or unused.

    The earlier such a node runs, the less crosses between stages. Unused outputs still count if memory is limited.
    """
    handing = {start for start, _ in profile.edges}
    free = (profile.seconds == 0.0) & (profile.parameters == 0.0)
    light = profile.activation == 0.0
    return [row for row in np.flatnonzero(free).tolist() if light[row] or (row not in handing and memory == float("inf"))]


def _closed(ideal: int, eager: list[int], before: list[int]) -> int:
    """The ideal with all eager nodes that it feeds."""
    for row in eager:
        if not before[row] & ~ideal:
            ideal |= 1 << row
    return ideal


def _grown(first: int, before: list[int], eager: list[int], tick: Tick) -> set[int]:
    """All ideals that hold the first and are closed."""
    found, last = {first}, {first}
    while last:
        larger = {ideal | 1 << row for ideal in last for row, needed in enumerate(before) if not ideal >> row & 1 and not needed & ~ideal}
        last = {_closed(ideal, eager, before) for ideal in larger} - found if eager else larger
        found |= last
        _refuse_many(found)
        tick(0.0)
    return found


def _followed(before: list[int], after: list[int], tick: Tick) -> set[int]:
    """The ideals that grow from the first node along edges, each node with all that it needs."""
    needed = _ancestors(before)
    found, last = {1}, {1}
    while last:
        last = {ideal | needed[row] | 1 << row for ideal in last for row in _members(_union(after, ideal) & ~ideal)} - found
        found |= last
        _refuse_many(found)
        tick(0.0)
    return found


def _refuse_many(found: set[int]) -> None:
    if len(found) > MOST:
        reason = "it branches too much to look at every way to cut it (merge nodes that belong together)"
        raise RefusedError(f"the profile can be cut in more than {MOST:,} places: {reason}")


def _ancestors(before: list[int]) -> list[int]:
    """All nodes from which each follows."""
    found = list[int]()
    for direct in before:
        found.append(direct | _union(found, direct))
    return found


def _taken(ideal: int, after: list[int]) -> int:
    """Nodes of an ideal whose output is taken outside; at the first cut it is of no size."""
    return sum(1 << row for row in _members(ideal) if after[row] & ~ideal)


def _seen(ideal: int, before: list[int], after: list[int]) -> int:
    """The nodes whose output the public optimizer counts."""
    needed = _ancestors(before)
    last = [row for row in _members(ideal) if not after[row] & ideal]
    found = sum(1 << row for row in last)
    for end in last:
        found |= sum(1 << row for row in _members(needed[end] & ~found) if after[row] & ~(needed[end] | 1 << end))
    return found


def _union(sets: list[int], rows: int) -> int:
    union = 0
    for row in _members(rows):
        union |= sets[row]
    return union


def _members(rows: int) -> list[int]:
    """The rows of a set, in their order."""
    found = list[int]()
    while rows:
        found.append((rows & -rows).bit_length() - 1)
        rows &= rows - 1
    return found


def _sum(column: Array, rows: int) -> float:
    """The sum of a set of rows, rounded once."""
    return fsum(column[_members(rows)])


# What a stage costs, for one minibatch: of time T (forward and backward) and W bytes of parameters, on m replicas, links of B bytes/s.
#
#     own         T / m  +  2 (m - 1) / m * W / B
#     compatible  (T  +  4 (m - 1) / m * W / B) / m
#
# Own: replicas split each minibatch between them and sum their gradients once, in a ring in which each sends 2 (m - 1) / m of them
# (Patarasuk and Yuan 2009). Compatible: what the public optimizer of PipeDream (Narayanan et al., SOSP 2019) charges. Its outer division by
# m holds where replicas take whole minibatches in turn and sum their gradients once in m of them; it divides the sum of the first stage of
# a level by the members of the level below, too. Of a stage of a higher level, T is the slowest stage of the best plan below it; own: for 1
# / m of the minibatch, since the sums below do not shrink with it. Own plans may leave devices idle, compatible ones use all.
#
# Own plans are cut behind any nodes that hold all that they need; compatible ones only where, besides, all nodes before the cut hang
# together with the first of the profile along edges among them. The public optimizer grows its cuts from that node along edges and sees no
# other cuts; plans that have others are none of the compatible ones, by the judge too, and a proof says nothing of them. Below the highest
# level that optimizer also subtracts cuts of which neither holds the other; what it then prints is lower than any plan, and is not
# followed.
#
# Transfers run beside the work: activations of a bytes that cross between two stages take 2 a / (R m B), forth and back, on both sides, for
# a compression R. Own charges them always; compatible only where a compression is given, never to the first stage of a level, and to the
# last one of a level below as if it were not the last.
#
# Memory: own, a stage with s stages from itself to the end holds its parameters and its share of its activations s times, once for each
# minibatch on its way: s (W + A / m). Compatible: ceil((r - m) / m) (W + A), where r devices have this stage and those behind it.


@dataclass(frozen=True, slots=True, eq=False)
class Charges:
    """What stages of one level cost."""

    ideals: Ideals
    level: Level
    compatible: bool
    compression: float | None
    memory: float
    inner: int
    """Members of the level below, 1 at the lowest."""
    share: int
    """The minibatch is split into so many parts before it comes here."""
    top: bool
    """Whether no level is above."""

    def load(self, row: int, ends: Ints, work: Array, replicas: int, first: bool, last: bool) -> Array:
        """Seconds of stages from one cut to others, where `work` is what the level below says of them."""
        parameters = self.ideals.parameters[ends] - self.ideals.parameters[row]
        ring = (replicas - 1) / replicas * parameters / self.level.bandwidth
        if self.compatible:
            load = (work + 4.0 * (ring / self.inner if first else ring)) / replicas
            return self._with_transfers(load, row, ends, replicas, came=not first, goes=not first)
        return self._with_transfers(work + 2.0 * ring, row, ends, replicas, came=not first, goes=not last)

    def _with_transfers(self, load: Array, row: int, ends: Ints, replicas: int, came: bool, goes: bool) -> Array:
        """At least the transfers at both ends; nothing crosses at the very end."""
        if self.compression is None:
            return load
        rate = self.compression * self.level.bandwidth * replicas * self.share
        load = np.maximum(load, 2.0 * self.ideals.crossing[row] / rate) if came else load
        return np.maximum(load, 2.0 * self.ideals.crossing[ends] / rate) if goes else load

    def fits(self, row: int, ends: Ints, replicas: int, stages: int, members: int) -> Mask:
        """Whether stages fit the memory: ends, times stages from here to the end, times devices from `replicas` to `members`."""
        parameters = (self.ideals.parameters[ends] - self.ideals.parameters[row])[:, None, None]
        activation = (self.ideals.activation[ends] - self.ideals.activation[row])[:, None, None]
        if self.compatible:
            versions = np.array([ceil((left - replicas) / replicas) for left in range(replicas, members + 1)], np.float64)
            return np.asarray(versions * (activation + parameters) <= self.memory)
        return np.asarray(np.arange(1.0, stages + 1.0)[:, None] * (parameters + activation / replicas) <= self.memory)


def charges_of(question: PipelineQuestion, ideals: Ideals, level: int, share: int) -> Charges:
    """What stages of a level cost where the levels above split a minibatch so often."""
    return Charges(
        ideals=ideals,
        level=question.levels[level],
        compatible=question.compatible,
        compression=question.compression,
        memory=question.memory,
        inner=question.levels[level - 1].members if level else 1,
        share=1 if question.compatible else share,
        top=level == len(question.levels) - 1,
    )


# The best stages of a profile, by dynamic programming over its cuts from the last to the first, level by level: exact.
#
#     left[i, e, s, r] = min over k, m of  max(load(i, k, m), left[k, e, s - 1, r - m])
#
# is the slowest stage from cut i to cut e on r members in s stages (s only where memory counts it); a level hands `whole[i, e]`, the least
# for all its members, to the level above. For the highest level, e is the end alone. All k are looked at in one step.

MOST_INSIDE = 1_500
"""Cuts of a profile for which levels below the highest are solved: they take the cube of it."""


@dataclass(slots=True)
class Search:
    """Tables as they are found, by level and by how often the levels above split a minibatch."""

    question: PipelineQuestion
    ideals: Ideals
    tick: Tick
    found: dict[tuple[int, int], "Tables"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """What is known of the ranges of one level."""

    charges: Charges
    ends: Ints
    left: Array
    """By first cut, end, stages and members: the slowest stage where something comes before."""
    first_stage: Array
    """By first cut and end, with the first stage as such: the least on all members, or, where some may idle, on any number."""


def best_stages(question: PipelineQuestion, ideals: Ideals, tick: Tick) -> tuple[float, tuple[Stage, ...]]:
    """The least seconds of the slowest stage, and stages that have it; infinite and none where no stages fit."""
    top = len(question.levels) - 1
    if top and len(ideals) > MOST_INSIDE:
        reason = f"{len(ideals):,} places to cut it are too many for groups of devices (at most {MOST_INSIDE:,})"
        raise RefusedError(f"{reason}: give --devices as one number, or merge nodes that belong together")
    search = Search(question, ideals, tick)
    tables = _tables(search, top, 1)
    value = float(tables.first_stage[0, 0])
    if value == float("inf"):
        return value, ()
    return value, tuple(_stages(search, top, 1, 0, len(ideals) - 1, (), ()))


def _tables(search: Search, level: int, share: int) -> Tables:
    if (level, share) not in search.found:
        search.found[level, share] = _filled(search, level, share)
    return search.found[level, share]


def _filled(search: Search, level: int, share: int) -> Tables:
    charges, count = charges_of(search.question, search.ideals, level, share), len(search.ideals)
    ends = np.array([count - 1]) if charges.top else np.arange(count)
    members = charges.level.members
    left = np.full((count, len(ends), _stage_counts(search, members), members + 1), np.inf)
    least = np.full((count, len(ends)), np.inf)
    tables = Tables(charges, ends, left, least)
    for row in range(count - 2, -1, -1):
        after = search.ideals.after(row)
        if row or not charges.top:
            left[row] = _joined(search, tables, level, share, row, after, first=False)
        if not charges.top:
            least[row] = _started(search, tables, level, share, row, after)
        elif not row:
            started = _joined(search, tables, level, share, row, after, first=True)
            least[row] = (started[:, :, members] if charges.compatible else started.min(axis=2)).min(axis=1)
        search.tick(1.0 - (row / count) ** 2 if charges.top else 0.0)
    return tables


def _stage_counts(search: Search, members: int) -> int:
    """How many numbers of stages the tables distinguish: all where each stage has its own memory use, else one."""
    question = search.question
    return 1 if question.compatible or question.memory == float("inf") else min(members, len(search.ideals) - 1)


def _joined(search: Search, tables: Tables, level: int, share: int, row: int, after: Ints, first: bool) -> Array:
    """The slowest stage from a cut to every end, by stages and members."""
    charges = tables.charges
    closing, columns = _ends(charges, after)
    left = tables.left[np.ix_(after, columns)]
    part: Array = np.full(left.shape[1:], np.inf)
    for replicas in range(1, (1 if search.question.straight else charges.level.members) + 1):
        work = _work(search, level, share, row, after, replicas)
        on = charges.load(row, after, work, replicas, first, last=False)
        at_end = charges.load(row, after[closing], work[closing], replicas, first, last=True)
        fits = _fitting(search, charges, row, after, replicas, part.shape[1])
        part[:, :, replicas:] = np.minimum(part[:, :, replicas:], _continued(left, on, fits, replicas))
        closed = at_end if fits is None else np.where(fits[closing, 0, 0], at_end, np.inf)
        part[:, 0, replicas] = np.minimum(part[:, 0, replicas], closed)
    best = np.full(tables.left.shape[1:], np.inf)
    best[columns] = part
    return best


def _ends(charges: Charges, after: Ints) -> tuple[Ints, Ints]:
    """Which of the cuts behind one are ends, and their columns in the tables: all, or at the highest level the last."""
    return (np.array([len(after) - 1]), np.array([0])) if charges.top else (np.arange(len(after)), after)


def _started(search: Search, tables: Tables, level: int, share: int, row: int, after: Ints) -> Array:
    """The least from a cut to every end with all members of a level below the highest, or, where some may idle, on any number."""
    charges, members = tables.charges, tables.charges.level.members
    left = tables.left[np.ix_(after, after)][:, :, 0]
    reach = left if charges.compatible else np.minimum.accumulate(left, axis=2)
    part: Array = np.full(len(after), np.inf)
    for replicas in range(1, (1 if search.question.straight else members) + 1):
        work = _work(search, level, share, row, after, replicas)
        on = charges.load(row, after, work, replicas, first=True, last=False)
        at_end = charges.load(row, after, work, replicas, first=True, last=True)
        fits = _fitting(search, charges, row, after, replicas, 1)
        on = on if fits is None else np.where(fits[:, 0, -1], on, np.inf)
        part = np.minimum(part, np.maximum(reach[:, :, members - replicas], on[:, None]).min(axis=0))
        if not charges.compatible or replicas == members:
            part = np.minimum(part, at_end if fits is None else np.where(fits[:, 0, 0], at_end, np.inf))
    best = np.full(len(tables.ends), np.inf)
    best[after] = part
    return best


def _continued(left: Array, on: Array, fits: Mask | None, replicas: int) -> Array:
    """The least over all next cuts of the slower of a stage and what follows it."""
    after = left[:, :, :, : left.shape[3] - replicas]
    if fits is None:
        return np.asarray(np.maximum(after, on[:, None, None, None]).min(axis=0))
    if left.shape[2] > 1:  # one stage more than what follows
        after = np.concatenate([np.full_like(after[:, :, :1], np.inf), after[:, :, :-1]], axis=2)
    costs = np.where(fits, on[:, None, None], np.inf)[:, None]
    return np.asarray(np.maximum(after, costs).min(axis=0))


def _fitting(search: Search, charges: Charges, row: int, after: Ints, replicas: int, stages: int) -> Mask | None:
    """What fits the memory; None where there is no limit."""
    if search.question.memory == float("inf"):
        return None
    return charges.fits(row, after, replicas, stages, charges.level.members)


def _work(search: Search, level: int, share: int, row: int, after: Ints, replicas: int) -> Array:
    """What the level below says of stages; at the lowest their own time. Own charges split the minibatch there, compatible ones later."""
    question = search.question
    if not level:
        seconds = search.ideals.seconds[after] - search.ideals.seconds[row]
        return np.asarray(seconds if question.compatible else seconds / (replicas * share))
    return np.asarray(_tables(search, level - 1, 1 if question.compatible else share * replicas).first_stage[row, after])


def _stages(search: Search, level: int, share: int, row: int, end: int, group: tuple[int, ...], replicas: tuple[int, ...]) -> list[Stage]:
    """The stages behind the entry of a range in the tables: every choice is looked for again."""
    found = list[Stage]()
    for number, (start, stop, count) in enumerate(_choices(search, level, share, row, end)):
        if level:
            inner = _stages(search, level - 1, share * count, start, stop, (*group, number), (count, *replicas))
            found += inner
        else:
            nodes = tuple(search.question.profile.ids[node] for node in search.ideals.between(start, stop))
            found.append(Stage(nodes, group, (count, *replicas)))
    return found


def _choices(search: Search, level: int, share: int, row: int, end: int) -> list[tuple[int, int, int]]:
    """The stages of one level within a range: first cut, last cut, replicas."""
    tables = _tables(search, level, 1 if search.question.compatible else share)
    column = int(np.flatnonzero(tables.ends == end)[0])
    started = _joined(search, tables, level, share, row, search.ideals.after(row), first=True)[column]
    members = started.shape[1] - 1
    wanted = float(tables.first_stage[row, column])
    places = [choice for choice in np.argwhere(started == wanted).tolist() if choice[1] == members or not tables.charges.compatible]
    stages, left = places[0]
    parts, first = list[tuple[int, int, int]](), True
    while row != end:
        stop, count = _choice(search, tables, level, share, (row, end, column), (stages, left), wanted, first)
        parts.append((row, stop, count))
        row, left, first = stop, left - count, False
        stages -= tables.left.shape[2] > 1
        wanted = float(tables.left[row, column, stages, left]) if row != end else 0.0
    return parts


def _choice(
    search: Search, tables: Tables, level: int, share: int, entry: tuple[int, int, int], counts: tuple[int, int], wanted: float, first: bool
) -> tuple[int, int]:
    """The next cut and the replicas of a stage with which an entry has its value."""
    (row, end, column), (stages, left), charges = entry, counts, tables.charges
    after = search.ideals.after(row)
    staged = tables.left.shape[2] > 1
    for replicas in range(1, left + 1 if not search.question.straight else 2):
        work = _work(search, level, share, row, after, replicas)
        on = charges.load(row, after, work, replicas, first, last=False)
        at_end = charges.load(row, after, work, replicas, first, last=True)
        fits = _fitting(search, charges, row, after, replicas, tables.left.shape[2])
        allowed = None if fits is None else np.broadcast_to(fits, (len(after), tables.left.shape[2], charges.level.members + 1 - replicas))
        on = on if allowed is None else np.where(allowed[:, stages, left - replicas], on, np.inf)
        at_end = at_end if allowed is None else np.where(allowed[:, 0, 0], at_end, np.inf)
        following = tables.left[after, column, stages - staged, left - replicas] if stages >= staged else np.full(len(after), np.inf)
        values = np.maximum(on, following)
        if left == replicas and not (staged and stages):
            values = np.where(after == end, at_end, values)
        if (hit := np.flatnonzero(values == wanted)).size:
            return int(after[hit[0]]), replicas
    raise ArithmeticError("no choice has the value of its table")


# The engine for pipelines: rules first, then every way to cut the profile, until the time is over.


class _OverError(Exception):
    """The time is over."""


def cuts(question: PipelineQuestion, limits: Limits, watch: Watch) -> SearchOutcome[PipedreamPlan]:
    """The optimum with its proof; the best rule where the time ends before."""
    began, rule, baselines = monotonic(), best_rule(question), baselines_of(question)
    known = judge(question, rule).value if rule else None

    def tick(share: float) -> None:
        if monotonic() - began > limits.seconds:
            raise _OverError
        watch(Progress(f"cuts, {share:.0%} of the highest level", known, answer=lambda: rule))

    try:
        ideals = ideals_of(question.profile, question.memory, question.compatible, tick)
        value, stages = best_stages(question, ideals, tick)
    except _OverError:
        return SearchOutcome(rule, engine="cuts", stopped="time limit", baselines=baselines)
    except KeyboardInterrupt:
        return SearchOutcome(rule, engine="cuts", stopped="interrupted", baselines=baselines)
    method, reasons = "dynamic programming over all cuts", () if stages else (reason_of(question),)
    proof = RecomputableBound(method) if countable(question) else UnverifiedBound(method)
    return SearchOutcome(PipedreamPlan(stages) if stages else None, value, proof, "cuts", reasons=reasons, baselines=baselines)
