"""Domination: strategy s of node v is left out where another one, r, costs no more whatever the neighbours do, and takes no more memory.

    c(r) + sum over edges of max over t of [C(r, t) - C(s, t)] <= c(s),   and use(r) <= use(s) for every member of v

with t over what s allows; r must allow all of it (Goldstein 1994, dead-end elimination). Costs along edges may make up for a higher
cost of the node, so all pairs are looked at. Most fail at once: for any strategies t of the neighbours, r must cost no more than s beside
them. One such setting is where the sum starts, so that each edge can only add to it, and the sum ends once it is above 0.
"""

from dataclasses import replace

import numpy as np

from crossopt.crossflow.arrays import Whole
from crossopt.formulation.compiled import compiled
from crossopt.formulation.sharding.core import Core
from crossopt.formulation.sharding.editing import Reduced, incident, named, with_strategies
from crossopt.instances.sharding.problem import FORBIDDEN, offsets_of

_MOST = 1 << 27
"""Entries that are looked at for one node; what is not looked at by then stays."""
_SETTINGS = 4
_SEED = 7919


def undominated(core: Core) -> Reduced:
    """Without the strategies that another one makes needless. Moves are nodes, such a strategy, and the other one."""
    starts, edges = incident(core)
    order = np.argsort(core.member_nodes, kind="stable")
    members = offsets_of(np.bincount(core.member_nodes, minlength=len(core)).astype(np.int64))
    usages = core.usage_offsets[:-1][order]
    instead = _marked(
        core.offsets, core.costs, core.firsts, core.seconds, core.entry_offsets, core.entries, starts, edges, members, usages, core.usages
    )
    done = with_strategies(core, (instead < 0) & (core.costs < FORBIDDEN))
    left_out = np.flatnonzero(instead >= 0)
    return replace(done, moves=np.column_stack([named(core, left_out), instead[left_out]]))


@compiled
def _marked(
    offsets: Whole,
    costs: Whole,
    firsts: Whole,
    seconds: Whole,
    entry_offsets: Whole,
    entries: Whole,
    starts: Whole,
    edges: Whole,
    members: Whole,
    usage_starts: Whole,
    usages: Whole,
) -> Whole:
    """The strategy of the same node that makes each needless; -1 where none does."""
    keep = costs < FORBIDDEN
    instead = np.full(len(costs), -1)
    for node in range(len(offsets) - 1):
        count, begin = offsets[node + 1] - offsets[node], offsets[node]
        if count < 2:
            continue
        degree = starts[node + 1] - starts[node]
        steps = np.empty((degree, 4), np.int64)  # where the entries begin, from strategy to strategy, from t to t, how many t
        for place in range(degree):
            edge, side = edges[starts[node] + place] // 2, edges[starts[node] + place] % 2
            columns = offsets[seconds[edge] + 1] - offsets[seconds[edge]]
            rows = offsets[firsts[edge] + 1] - offsets[firsts[edge]]
            steps[place, 0] = entry_offsets[edge]
            steps[place, 1], steps[place, 2], steps[place, 3] = (columns, 1, columns) if side == 0 else (1, columns, rows)
        taken = usage_starts[members[node] : members[node + 1]]
        settings = _settings(count, steps, entries)
        beside = _beside(costs[begin : begin + count], settings, steps, entries)
        left = _MOST
        for worse in range(count):
            for better in range(count):
                if better == worse or not keep[begin + better] or not keep[begin + worse] or left < 0:
                    continue
                if _fails(beside, better, worse) or not _takes_no_more(taken, usages, better, worse):
                    continue
                makes_needless, looked = _costs_no_more(
                    costs[begin + better] - costs[begin + worse], settings[0], steps, entries, better, worse
                )
                left -= looked
                if makes_needless:
                    keep[begin + worse] = False
                    instead[begin + worse] = better
    return instead


@compiled
def _settings(count: int, steps: Whole, entries: Whole) -> Whole:
    """Strategies of the neighbours: first those that most strategies of the node allow, then some at random."""
    found = np.zeros((_SETTINGS, len(steps)), np.int64)
    state = _SEED
    for place in range(len(steps)):
        begin, step, jump, size = steps[place]
        most = -1
        for against in range(size):
            allowed = 0
            for strategy in range(count):
                if entries[begin + strategy * step + against * jump] < FORBIDDEN:
                    allowed += 1
            if allowed > most:
                most, found[0, place] = allowed, against
        for number in range(1, _SETTINGS):
            state = (state * 1103515245 + 12345) % 2147483648
            found[number, place] = (state >> 8) % size
    return found


@compiled
def _beside(costs: Whole, settings: Whole, steps: Whole, entries: Whole) -> Whole:
    """What each strategy costs beside each setting."""
    found = np.empty((_SETTINGS, len(costs)), np.int64)
    for number in range(_SETTINGS):
        for strategy in range(len(costs)):
            total = costs[strategy]
            for place in range(len(steps)):
                entry = entries[steps[place, 0] + strategy * steps[place, 1] + settings[number, place] * steps[place, 2]]
                total = min(total + entry, FORBIDDEN) if entry < FORBIDDEN and total < FORBIDDEN else FORBIDDEN
            found[number, strategy] = total
    return found


@compiled
def _fails(beside: Whole, better: int, worse: int) -> bool:
    """Whether it costs more beside one of the settings that the worse one allows."""
    found = False
    for number in range(_SETTINGS):
        found |= beside[number, worse] < FORBIDDEN and beside[number, better] > beside[number, worse]
    return found


@compiled
def _takes_no_more(taken: Whole, usages: Whole, better: int, worse: int) -> bool:
    place = 0
    while place < len(taken) and usages[taken[place] + better] <= usages[taken[place] + worse]:
        place += 1
    return place == len(taken)


@compiled
def _costs_no_more(more: int, setting: Whole, steps: Whole, entries: Whole, better: int, worse: int) -> tuple[bool, int]:
    """Whether the sum is 0 at most, and how many entries that took."""
    looked, total, sure = 0, more, True
    for place in range(len(steps)):
        begin, step, jump, _ = steps[place]
        one = entries[begin + better * step + setting[place] * jump]
        other = entries[begin + worse * step + setting[place] * jump]
        if one >= FORBIDDEN or other >= FORBIDDEN:
            sure = False
        else:
            total += one - other
    if sure and total > 0:
        return False, looked
    if not sure:
        total = more
    for place in range(len(steps)):
        begin, step, jump, size = steps[place]
        most, any_allowed = -FORBIDDEN, False
        for against in range(size):
            other = entries[begin + worse * step + against * jump]
            if other >= FORBIDDEN:
                continue
            one = entries[begin + better * step + against * jump]
            looked += 1
            if one >= FORBIDDEN:
                return False, looked
            any_allowed = True
            most = max(most, one - other)
        if not any_allowed:
            return True, looked
        at = begin + setting[place] * jump
        total += most - (entries[at + better * step] - entries[at + worse * step]) if sure else most
        if sure and total > 0:
            return False, looked
    return total <= 0, looked
