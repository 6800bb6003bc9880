"""Stages of a profile as a problem type: baselines, and bounds proved again by a second dynamic program."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import fsum, prod

import numpy as np
from numpy.typing import NDArray

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.instances.stages.pipedream import PipelineQuestion, Profile
from crossopt.solvers.answer import Baseline, Number, Result, Watch
from crossopt.solvers.checking import by_looking_at_all, least_of_few
from crossopt.solvers.family import ProblemType, Proved, lazy_import
from crossopt.solvers.orders import every_ideal
from crossopt.solvers.proofs import RecomputableBound
from crossopt.solvers.stages.pipedream.judge import PipedreamLoads, PipedreamPlan, Stage, judge


def rules(question: PipelineQuestion) -> dict[str, PipedreamPlan]:
    """The plans of simple rules: one device, data parallelism, and a straight pipeline of equal stages."""
    depth, ids = len(question.levels), question.profile.ids
    at_top = (0,) * (depth - 1)
    everywhere = tuple(level.members for level in question.levels)
    return {
        "one device": PipedreamPlan((Stage(ids, at_top, (1,) * depth),)),
        "data parallel": PipedreamPlan((Stage(ids, at_top, everywhere),)),
        "equal stages": _equal(question),
    }


def _equal(question: PipelineQuestion) -> PipedreamPlan:
    """Stages of nearly equal time along one topological order, one stage per device."""
    seconds, members = question.profile.seconds, [level.members for level in question.levels]
    devices = prod(members)
    middle = np.maximum.accumulate(np.cumsum(seconds) - seconds / 2.0)
    stage = np.minimum((middle / max(float(seconds.sum()), 1e-300) * devices).astype(np.int64), devices - 1)
    used = [number for number in range(devices) if (stage == number).any()]
    return PipedreamPlan(
        tuple(
            Stage(tuple(question.profile.ids[row] for row in np.flatnonzero(stage == number)), group, (1,) * len(members))
            for number, group in zip(used, _groups(used, members), strict=True)
        )
    )


def _groups(devices: list[int], members: list[int]) -> list[tuple[int, ...]]:
    """The indices of the groups of each device, the highest level first; groups without a used device are not numbered."""
    sizes = [prod(members[: level + 1]) for level in reversed(range(len(members) - 1))]
    found, group = list[tuple[int, ...]](), [0] * len(sizes)
    for before, device in zip(devices[:1] + devices, devices, strict=False):
        other = next((level for level, size in enumerate(sizes) if before // size != device // size), None)
        if other is not None:
            group[other:] = [group[other] + 1, *[0] * (len(sizes) - other - 1)]
        found.append(tuple(group))
    return found


def baselines_of(question: PipelineQuestion) -> tuple[Baseline[PipedreamPlan], ...]:
    """The plan of every rule, as baselines."""
    return tuple(Baseline(name, None, plan) for name, plan in rules(question).items())


def best_rule(question: PipelineQuestion) -> PipedreamPlan | None:
    """The best feasible plan of the rules; None if no rule gives a feasible plan."""
    feasible = [(verdict.value, plan) for plan in rules(question).values() if not (verdict := judge(question, plan)).violations]
    return min(feasible, key=lambda pair: pair[0])[1] if feasible else None


# A second dynamic program over the cuts of a profile: from the first cut to the last, with every cut and every number of replicas.
#
# It shares no code with the search: the cost of a stage is computed here again from `charges`. There is one table for each level of devices
# and each share of a minibatch, the lowest level first:
#
#     reached[i, s, r, j] = the least time of the slowest stage between cut i and cut j on r members, with s stages still to come
#     whole[i, e]         = the same up to the last cut e, whose last stage sends nothing on at its level
#
# where s is an index only if memory depends on it. Bytes are whole numbers, of which doubles hold all sums exactly.

MOST_CUTS, MOST_STEPS, _CALL = 5_000, 500_000_000, 6_000
"""Cuts before those go that nothing is better for, entries of all tables that are looked at, a few seconds of work, and as many as take as
long as one step for all entries of a cut."""


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """Nodes before each cut, from none to all, none before one that it holds; sums over them."""

    bits: NDArray[np.uint64]
    """The nodes before each as bits."""
    seconds: Array
    parameters: Array
    activation: Array
    crossing: Array
    """Bytes that stages hand over at it."""

    def __len__(self) -> int:
        return len(self.seconds)

    def apart(self, cut: int) -> Mask:
        """Which of those that follow do not hold all that this one holds."""
        return np.asarray((self.bits[cut] & ~self.bits[cut + 1 :]).any(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Stages:
    """Stages from one cut to all that follow, on so many members of a level: seconds, infinite where there is none, and what they keep."""

    cut: int
    members: int
    work: Array
    parameters: Array
    activation: Array


def least_slowest(question: PipelineQuestion) -> float | None:
    """Seconds of the slowest stage of the best plan, as far as doubles tell; infinite where no plan fits, None for too many steps."""
    cuts = cuts_of(question)
    if cuts is None or steps_of(question, len(cuts)) > MOST_STEPS:
        return None
    return float(_least_of_level(question, cuts, {}, len(question.levels) - 1, 1)[0, -1])


def countable(question: PipelineQuestion) -> bool:
    """Whether this program takes no more steps than a check does."""
    cuts = cuts_of(question)
    return cuts is not None and steps_of(question, len(cuts)) <= MOST_STEPS


def steps_of(question: PipelineQuestion, cuts: int) -> int:
    """Approximate number of table entries."""
    found, shares = 0, {1}
    for number, level in enumerate(reversed(question.levels)):
        several = range(1, 2 if question.straight else level.members + 1)
        pairs = cuts**3 // 6 if number else cuts**2 // 2 * _coming(question, cuts)
        found += len(shares) * (pairs * sum(level.members + 1 - replicas for replicas in several) + _CALL * cuts * len(several))
        shares = shares if question.compatible else {share * replicas for share in shares for replicas in several}
    return found


def _coming(question: PipelineQuestion, cuts: int) -> int:
    """How many numbers of stages to come the tables distinguish, at the one level where each stage has its own memory use."""
    limited = question.memory < float("inf") and not question.compatible
    return 1 + (min(question.levels[-1].members, cuts - 1) if limited else 0)


def cuts_of(question: PipelineQuestion) -> Cuts | None:
    """All cuts that plans may have; None where they are too many."""
    profile, before = question.profile, [0] * len(question.profile)
    for start, end in profile.edges:
        before[end] |= 1 << start
    masks = every_ideal(before, MOST_CUTS)
    if masks is None:
        return None
    inside = _members(masks if question.compatible else _without_idle_cuts(question, masks, before), len(profile))
    inside = inside[_hanging_together(inside, profile)] if question.compatible else inside
    handed = _seen(inside, profile) if question.compatible else _handed_on(inside, profile)
    handed[inside.all(axis=1)] = False
    return Cuts(
        bits=_in_text(inside),
        seconds=np.array([fsum(profile.seconds[rows].tolist()) for rows in inside]),
        parameters=inside @ profile.parameters,
        activation=inside @ profile.activation,
        crossing=handed @ profile.activation,
    )


def _members(masks: list[int], count: int) -> Mask:
    """The nodes of each set, a row for each."""
    wide = -(-count // 8)
    packed = np.frombuffer(b"".join(mask.to_bytes(wide, "little") for mask in masks), np.uint8).reshape(len(masks), wide)
    return np.unpackbits(packed, axis=1, count=count, bitorder="little").astype(bool)


def _without_idle_cuts(question: PipelineQuestion, masks: list[int], before: list[int]) -> list[int]:
    """Cuts behind which no node could as well run before them: one that takes no time, keeps nothing and hands nothing on.

    Had a plan such a cut, the same plan with these nodes moved before it would have stages of the same times, and no more to hand over.
    A stage that is left without nodes goes; its devices idle.
    """
    profile, giving, bound = question.profile, {start for start, _ in question.profile.edges}, question.memory < float("inf")
    free = [
        row
        for row in range(len(profile))
        if profile.seconds[row] == profile.parameters[row] == 0.0 and (profile.activation[row] == 0.0 or (row not in giving and not bound))
    ]

    def moved(mask: int) -> int:
        for row in free:  # rows come behind all that they need
            mask |= (before[row] & ~mask == 0) << row
        return mask

    needed = {moved(mask) for mask in masks}
    return sorted(needed, key=lambda mask: (mask.bit_count(), mask)) if len(needed) > 1 else masks


def _in_text(inside: Mask) -> NDArray[np.uint64]:
    wide = np.zeros((len(inside), -(-inside.shape[1] // 64) * 64), bool)
    wide[:, : inside.shape[1]] = inside
    return np.packbits(wide, axis=1, bitorder="little").view(np.uint64)


def _hanging_together(inside: Mask, profile: Profile) -> Mask:
    """Which sets are empty, or hang together with the first node of the profile along edges among them."""
    found, before = inside & (np.arange(len(profile)) == 0), -1
    while before != (before := int(found.sum())):
        for start, end in profile.edges:
            both = inside[:, start] & inside[:, end] & (found[:, start] | found[:, end])
            found[:, start] |= both
            found[:, end] |= both
    return np.asarray((found == inside).all(axis=1))


def _handed_on(inside: Mask, profile: Profile) -> Mask:
    """The nodes of each set whose output is taken outside."""
    found = np.zeros_like(inside)
    for start, end in profile.edges:
        found[:, start] |= inside[:, start] & ~inside[:, end]
    return found


def _seen(inside: Mask, profile: Profile) -> Mask:
    """Those whose output the public optimizer counts: the last nodes, and nodes before one of these that hand on to one not before it."""
    found = inside.copy()
    for start, end in profile.edges:
        found[:, start] &= ~inside[:, end]
    last, feeding = found.copy(), list[set[int]]()
    for node in range(len(profile)):  # rows come behind all that they need
        feeding.append({node_before for start, end in profile.edges if end == node for node_before in (start, *feeding[start])})
        beside = {start for start, end in profile.edges if start in feeding[node] and end not in feeding[node] and end != node}
        found[:, sorted(beside)] |= last[:, [node]]
    return found


Tables = dict[tuple[int, int], NDArray[np.float64]]


def _least_of_level(question: PipelineQuestion, cuts: Cuts, known: Tables, level: int, share: int) -> Array:
    """The least of all stages of one level between two cuts, where levels above split a minibatch so often."""
    if (level, share) in known:
        return known[level, share]
    members, top, count = question.levels[level].members, level == len(question.levels) - 1, len(cuts)
    starts = 1 if top else count
    reached = np.full((starts, _coming(question, count) if top else 1, members + 1, count), np.inf)
    least = np.full((starts, count), np.inf)
    for cut in range(count - 1):
        apart, after = cuts.apart(cut), slice(cut + 1, count)
        parameters, activation = (column[after] - column[cut] for column in (cuts.parameters, cuts.activation))
        for replicas in range(1, 2 if question.straight else members + 1):
            work = np.where(apart, np.inf, _work(question, cuts, known, (level, share, cut, replicas)))
            stages = Stages(cut, replicas, work, parameters, activation)
            _begin(question, cuts, stages, (level, share), reached, least)
            _go_on(question, cuts, stages, (level, share), reached, least)
    known[level, share] = least
    return least


def _work(question: PipelineQuestion, cuts: Cuts, known: Tables, key: tuple[int, int, int, int]) -> Array:
    """Seconds of stages without what their own level adds."""
    level, share, cut, replicas = key
    if level:
        return np.asarray(_least_of_level(question, cuts, known, level - 1, 1 if question.compatible else share * replicas)[cut, cut + 1 :])
    seconds = cuts.seconds[cut + 1 :] - cuts.seconds[cut]
    return np.asarray(seconds if question.compatible else seconds / (replicas * share))


def _load(question: PipelineQuestion, cuts: Cuts, stages: Stages, key: tuple[int, int], first: bool, last: bool) -> Array:
    """Seconds of each stage: compute and gradient all-reduce, or its slowest transfer if that is longer."""
    (level, share), replicas, bandwidth = key, stages.members, question.levels[key[0]].bandwidth
    ring = (replicas - 1) / replicas * stages.parameters / bandwidth
    if question.compatible:
        inner = question.levels[level - 1].members if level and first else 1
        load = (stages.work + 4.0 * (ring / inner)) / replicas
    else:
        load = stages.work + 2.0 * ring
    if question.compression is None:
        return np.asarray(load)
    rate = question.compression * bandwidth * replicas * (1 if question.compatible else share)
    if not first:
        load = np.maximum(load, 2.0 * cuts.crossing[stages.cut] / rate)
    if not (first if question.compatible else last):
        load = np.maximum(load, 2.0 * cuts.crossing[stages.cut + 1 :] / rate)
    return np.asarray(load)


def _begin(question: PipelineQuestion, cuts: Cuts, stages: Stages, key: tuple[int, int], reached: Array, least: Array) -> None:
    """Stages that are the first of their level."""
    start, after = stages.cut if len(reached) > 1 else 0, slice(stages.cut + 1, None)
    if stages.cut != start:
        return
    on, closing = (_load(question, cuts, stages, key, first=True, last=last) for last in (False, True))
    coming, none = np.arange(reached.shape[1]), np.zeros(1, np.int64)
    on = _fitting(question, key[0], stages, (coming, none), on)[:, 0]
    closing = _fitting(question, key[0], stages, (none, none), closing)[0, 0]
    reached[start, :, stages.members, after] = np.minimum(reached[start, :, stages.members, after], on)
    if stages.members == question.levels[key[0]].members or not question.compatible:
        least[start, after] = np.minimum(least[start, after], closing)


def _go_on(question: PipelineQuestion, cuts: Cuts, stages: Stages, key: tuple[int, int], reached: Array, least: Array) -> None:
    """Stages that follow others of their level."""
    level, limited, cut, members = key[0], reached.shape[1] > 1, stages.cut, stages.members
    before, after = reached[: max(cut, 1), ..., cut], slice(cut + 1, None)
    last = question.levels[level].members - members
    if last < 1 or not np.isfinite(before).any():
        return
    on, closing = (_load(question, cuts, stages, key, first=False, last=last) for last in (False, True))
    used, coming = np.arange(1, last + 1), np.arange(1, reached.shape[1] - 1) if limited else np.zeros(1, np.int64)
    on = _fitting(question, level, stages, (coming, used), on)
    goal = reached[: len(before), slice(1, -1) if limited else slice(None), 1 + members :, after]
    np.minimum(goal, np.maximum(before[:, 2 * limited :, 1 : last + 1, None], on), out=goal)
    used = used[-1:] if question.compatible else used
    closing = _fitting(question, level, stages, (np.zeros(1, np.int64), used), closing)[0]
    found = np.maximum(before[:, int(limited), used[0] : last + 1, None], closing).min(axis=1)
    least[: len(before), after] = np.minimum(least[: len(before), after], found)


def _fitting(question: PipelineQuestion, level: int, stages: Stages, counts: tuple[Ints, Ints], load: Array) -> Array:
    """Seconds by stages to come behind these, members used before them, and ends; infinite where the memory does not hold them."""
    if question.memory == float("inf"):
        return load[None, None, :]
    coming, used = counts[0][:, None, None], counts[1][None, :, None]
    if question.compatible:
        left = question.levels[level].members - used - stages.members
        needed = -(-left // stages.members) * (stages.activation + stages.parameters)
    else:
        needed = (coming + 1.0) * (stages.parameters + stages.activation / stages.members)
    shape = (len(coming), used.shape[1], len(load))
    return np.asarray(np.where(np.broadcast_to(needed <= question.memory, shape), load, np.inf))


# Every plan of a small profile, one after the other: the slow path beside the search, which shares no code with it.

MOST_NODES, MOST_PLANS = 10, 3_000
_Nodes = frozenset[int]
_Part = tuple[_Nodes, _Nodes, int]


def least_of_all(question: PipelineQuestion) -> float | None:
    """The least value of any plan, infinite where none keeps the limits; None where there are too many."""
    return None if len(question.profile) > MOST_NODES else least_of_few(question, every_plan(question), judge, MOST_PLANS)


def every_plan(question: PipelineQuestion) -> Iterator[PipedreamPlan]:
    """All plans whose stages follow the data on the devices there are."""
    everything = frozenset(range(len(question.profile)))
    yield from map(PipedreamPlan, _inside(question, len(question.levels) - 1, frozenset(), everything, (), ()))


def _inside(
    question: PipelineQuestion, level: int, start: _Nodes, stop: _Nodes, group: tuple[int, ...], replicas: tuple[int, ...]
) -> Iterator[tuple[Stage, ...]]:
    """All plans of some nodes on the members of one level."""
    for parts in _parts(question, start, stop, question.levels[level].members):
        if not level:
            yield tuple(
                Stage(tuple(question.profile.ids[row] for row in sorted(nodes - before)), group, (count, *replicas))
                for before, nodes, count in parts
            )
            continue
        yield from _together(question, level, parts, group, replicas)


def _together(
    question: PipelineQuestion, level: int, parts: tuple[_Part, ...], group: tuple[int, ...], replicas: tuple[int, ...], number: int = 0
) -> Iterator[tuple[Stage, ...]]:
    """All plans of the parts from one on, each on a group of its own; one after the other, since few may be asked for of very many."""
    if number == len(parts):
        yield ()
        return
    before, nodes, count = parts[number]
    for plan in _inside(question, level - 1, before, nodes, (*group, number), (count, *replicas)):
        for rest in _together(question, level, parts, group, replicas, number + 1):
            yield (*plan, *rest)


def _parts(question: PipelineQuestion, start: _Nodes, stop: _Nodes, members: int) -> Iterator[tuple[_Part, ...]]:
    """All ways to cut some nodes, with the replicas of each part."""
    if start == stop:
        yield ()
        return
    if not members:
        return
    for end in _further(question, start, stop):
        for count in range(1, (1 if question.straight else members) + 1):
            if count <= members:
                for rest in _parts(question, end, stop, members - count):
                    yield ((start, end, count), *rest)


def _further(question: PipelineQuestion, start: _Nodes, stop: _Nodes) -> set[_Nodes]:
    """The sets between the two that hold all that their nodes need, without the smaller one."""
    found, last = set[_Nodes](), {start}
    while last:
        last = {
            nodes | {row}
            for nodes in last
            for row in stop - nodes
            if all(before in nodes for before, after in question.profile.edges if after == row)
        }
        found |= last
    return found


# Verification of bounds: enumeration if plans are few, and otherwise a second dynamic program over all plans.

_ROUNDINGS = 32 * 2.0**-52
"""Of all that a stage can add up: more than sums and products of the program and of the judge are off together."""


def reason_of(question: PipelineQuestion) -> str:
    """Why there is no plan: straight pipelines that use all devices may have too few nodes for them, else memory is short."""
    memory = "every plan has a stage that keeps more than the memory of a device"
    if not (question.straight and question.compatible):
        return memory
    few = f"a straight pipeline on all of {question.devices:,} devices needs as many stages (--compatible uses all)"
    why = ", and the profile cannot be cut into so many" if question.memory == float("inf") else f": there are too few cuts, or {memory}"
    return few + why


def prove(question: PipelineQuestion, saved: Result[PipedreamPlan, PipedreamLoads], _: Watch) -> Proved:
    """Verify the bound by enumeration or by the second dynamic program; otherwise it stays unverified."""
    least = least_of_all(question)
    if least is not None:
        return by_looking_at_all(saved, lambda: least)
    found = least_slowest(question)
    if found is None:
        fault = "proof: repeating it takes more steps than `check` allows"
        return Proved((), (fault,)) if isinstance(saved.proof, RecomputableBound) else by_looking_at_all(saved, lambda: None)
    sure, bound = _less_roundings(question, found, _ROUNDINGS), float("inf") if saved.bound is None else saved.bound
    claim = "that nothing is possible" if saved.bound is None else f"that none is below {saved.bound!r}"
    fault = f"bound: a second dynamic program shows no more than {sure!r} s, the result says {claim}"
    return Proved((f"a second dynamic program covered all stages of {len(question.profile):,} nodes",), () if bound <= sure else (fault,))


def _less_roundings(question: PipelineQuestion, bound: Number, roundings: float) -> Number:
    """The bound less what sums and products lose: of whole bytes only products do, and differences of seconds."""
    profile = question.profile
    if bound == float("inf"):
        return bound
    sizes = np.concatenate([profile.parameters, profile.activation])
    whole = bool((sizes == np.floor(sizes)).all()) and fsum(sizes) < 2.0**53
    lost = bound + fsum(profile.seconds) if whole else all_seconds(question)
    return max(bound - roundings * lost, 0.0)


def all_seconds(question: PipelineQuestion) -> float:
    """More than any stage takes, with what its replicas exchange."""
    profile, slowest = question.profile, min(level.bandwidth for level in question.levels)
    moved = 4.0 * len(question.levels) * fsum(profile.parameters) / slowest
    moved += 0.0 if question.compression is None else 2.0 * fsum(profile.activation) / (question.compression * slowest)
    return fsum(profile.seconds) + moved


# Stages of a profile as a family of questions: what is asked again, who answers, who judges, what proves.

_JUDGE_ROUNDINGS = 64 * 2.0**-52
_CUTS = lazy_import("crossopt.solvers.stages.pipedream.engine", "cuts")


def _lowered(question: PipelineQuestion, bound: Number) -> Number:
    """The bound less more than any stage can be off."""
    return _less_roundings(question, bound, _JUDGE_ROUNDINGS)


def _quick(question: PipelineQuestion, deadline: float) -> PipedreamPlan | None:
    """The plan of the best rule."""
    del deadline  # rules take no time
    return best_rule(question)


FAMILY: ProblemType[PipelineQuestion, PipedreamPlan, PipedreamLoads] = ProblemType(
    kind="pipedream",
    what="plan",
    unit="s",
    answer=PipedreamPlan,
    details=PipedreamLoads,
    engines={"auto": _CUTS, "cuts": _CUTS},
    judge=judge,
    judged="times, transfers, memory, devices, order of the data",
    prove=prove,
    reasons=lambda question, _: (reason_of(question),),
    proof_labels=frozenset({"dynamic programming over all cuts"}),
    rules=lambda question, saved: baselines_of(question),
    quick=_quick,
    least_gap=1e-9,  # sums of floating-point numbers lose less than this
    lowered=_lowered,
)
