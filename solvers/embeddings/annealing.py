"""Plans of embedding tables with the least sum of the slowest of each phase, by simulated annealing towards targets of all phases.

The cost of a plan is the square of what devices are above the targets and their memory. A step weighs all swaps and moves of the pieces of
a device, or all ways of a table, and takes one at random, the more likely the lower its cost is.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from random import Random
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Ints
from crossopt.formulation.embeddings import Way
from crossopt.instances.embeddings.options import SPREADS, Spread
from crossopt.solvers.embeddings.local import Plan, memory_of, phases_of

_SLACK, _HOT, _COLD = 0.008, 0.16, 1e-4
"""How far targets are above the least of all phases at first, and temperatures at the beginning and the end, in squares of that."""
_NEARER, _FAR, _LOWERED = 0.5, 0.1, 0.3
"""Of the gap, how far targets are above the least where all are met; a gap that is far; and of a smaller one what targets are lower."""
_STEPS, _LEAST_STEPS, _TURN, _SHIFTED = 100, 30_000, 50, 0.01
"""Steps for each table while the temperature falls, and at least; those between two looks, and the part of the slack that each shifts."""
_NODES, _RETAKEN = 0.2, 0.08
"""Of all steps, those of pieces on nodes, and those that give a table another way."""
_WORST, _ABOVE, _HERE = 0.3, 0.5, 0.7
"""Of all steps, those on devices by their cost, and on any above its target; of tables, those of such a device."""
_PIECES, _PARTNERS, _NOISE = 32, 2_000, 1 << 18
"""Pieces of a device and partners that are weighed at once, and random figures that are drawn in advance."""
_PATIENT = 4.0
"""Seconds of annealing for a second of patience."""


@dataclass(slots=True)
class _Items:
    """Pieces that are free to move, each on a block of devices: one, or a node. An empty one on each block comes last."""

    width: int
    """Devices of a block."""
    owners: list[tuple[int, int]]
    """Table and piece."""
    sizes: Array
    """By figure and piece."""
    where: Ints
    on: list[list[int]]
    """Pieces of each block."""


@dataclass(slots=True)
class Annealing:
    """A plan on its way to targets of all phases, with its figures: times by phase, and memory by tier."""

    plan: Plan
    random: Random
    scale: Array
    """What is 1 of each figure: a time, or the room of a tier."""
    targets: Array
    noise: Array
    temperature: float = 0.0
    over: Array = field(default_factory=lambda: np.zeros((0, 0)))
    """By figure and device, how far it is above its target."""
    costs: Array = field(default_factory=lambda: np.zeros(0))
    """Of each device."""
    items: tuple[_Items, ...] = ()
    known: dict[int, tuple[Array, Ints, dict[Spread, Ints]]] = field(default_factory=dict)
    """Sizes of all ways of a type, their pieces, and places of those of each spread."""

    def reload(self) -> None:
        """Everything anew after a table has taken another way."""
        self.items = self._items(1, "device"), self._items(self.plan.form.per_node, "node")
        self.refill()

    def refill(self) -> None:
        """Figures of all devices anew."""
        figures = np.concatenate([self.plan.loads, self.plan.memory], axis=1)
        self.over = np.ascontiguousarray((figures / self.scale - self.targets).T)
        self.costs = _squares(self.over)

    def _items(self, width: int, spread: Spread) -> _Items:
        plan, blocks = self.plan, self.plan.form.devices // width
        owners, own, where = list[tuple[int, int]](), list[Array](), list[int]()
        on = [list[int]() for _ in range(blocks)]
        for table, (way, places) in enumerate(zip(plan.ways, plan.places, strict=True)):
            if way is not None and way.spread == spread and not way.distinct:
                for piece, index in enumerate(places):
                    on[index].append(len(owners))
                    owners.append((table, piece))
                own += [self._size(way)] * len(places)
                where += places
        sizes = np.concatenate([np.array(own).reshape(-1, len(self.scale)), np.zeros((blocks, len(self.scale)))]).T
        return _Items(width, owners, np.ascontiguousarray(sizes), np.array([*where, *range(blocks)], int), on)

    def _size(self, way: Way) -> Array:
        size: Array = np.concatenate([phases_of(way), memory_of(way)]) / self.scale
        return size

    def _likely(self, changes: Array) -> int:
        """The place of a change of the cost, the more likely the lower it is; -1 for none of them."""
        start = self.random.randrange(len(self.noise) - changes.size)
        noise = self.temperature * self.noise[start : start + changes.size + 1]
        found = (changes.ravel() - noise[1:]).argmin()
        return int(found) if changes.flat[found] - noise[found + 1] < -noise[0] else -1

    def device(self) -> int:
        """A device, rather one above its targets."""
        kind = self.random.random()
        sums = np.cumsum(self.costs if kind < _WORST else self.costs > 0.0)
        if kind > _WORST + _ABOVE or not sums[-1]:
            return self.random.randrange(len(sums))
        return min(int(np.searchsorted(sums, self.random.random() * sums[-1], side="right")), len(sums) - 1)

    def swap(self, items: _Items) -> None:
        """Swap a piece with another one, or with an empty one."""
        width, where = items.width, items.where
        block = self.device() // width
        own = items.on[block]
        if not own:
            return
        own = self.random.sample(own, min(len(own), _PIECES if width == 1 else 1))
        others = np.arange(len(where))
        if len(others) > _PARTNERS:
            others = np.array(self.random.sample(range(len(where)), _PARTNERS))
        there = where[others]
        changes = np.zeros((len(own), len(others)))
        for size, over in zip(items.sizes, self.over, strict=True):
            if over.max() + size.max() <= 0.0:
                continue
            change, blocks = size[own][:, None] - size[others], over.reshape(-1, width)
            for after in (blocks[block] - change[..., None], blocks[there] + change[..., None]):
                np.maximum(after, 0.0, out=after)
                changes += np.einsum("ijk,ijk->ij", after, after) if width > 1 else np.square(after[..., 0])
        before = self.costs.reshape(-1, width).sum(axis=1)
        changes -= before[there] + before[block]
        changes[:, there == block] = inf
        if (found := self._likely(changes)) >= 0:
            row, column = divmod(found, len(others))
            self._exchange(items, own[row], int(others[column]))

    def _exchange(self, items: _Items, item: int, other: int) -> None:
        first, second = int(items.where[item]), int(items.where[other])
        self._move(items, item, second)
        if other < len(items.owners):
            self._move(items, other, first)
        for block in (first, second):
            devices = slice(block * items.width, (block + 1) * items.width)
            self.costs[devices] = _squares(self.over[:, devices])

    def _move(self, items: _Items, item: int, block: int) -> None:
        plan, old, (table, piece) = self.plan, int(items.where[item]), items.owners[item]
        way, places = plan.ways[table], list(plan.places[table])
        if way is None:
            return
        for index, sign in ((old, -1.0), (block, 1.0)):
            devices = slice(index * items.width, (index + 1) * items.width)
            self.over[:, devices] += sign * items.sizes[:, item, None]
            plan.loads[devices] += sign * phases_of(way)
            plan.memory[devices] += sign * memory_of(way)
        items.on[old].remove(item)
        items.on[block].append(item)
        items.where[item] = places[piece] = block
        plan.places[table] = tuple(places)

    def _least(self, way: Way, rest: Array) -> tuple[float, tuple[int, ...]]:
        """Where the pieces of a way add least to the cost, each on its own, and how much."""
        form = self.plan.form
        after = _squares(self.over + self._size(way)[:, None]) - rest
        if way.spread == "all":
            return float(after.sum()), ()
        first = 0
        if way.spread == "node":
            after = after.reshape(-1, form.per_node).sum(axis=1)
        elif way.spread == "neighbours":
            blocks = after.reshape(-1, form.per_node)
            first = int(np.sort(blocks, axis=1)[:, : way.pieces].sum(axis=1).argmin()) * form.per_node
            after = after[first : first + form.per_node]
        order = np.argsort(after, kind="stable")[: way.pieces]
        return float(after[order].sum()), tuple(sorted(first + int(order[piece % len(order)]) for piece in range(way.pieces)))

    def _least_of(self, kind: int, rest: Array) -> Array:
        """What each way of a type adds to the cost at least."""
        form, known = self.plan.form, self.known.get(kind)
        if known is None:
            ways = form.ways[kind]
            sizes = np.array([self._size(way) for way in ways])
            by_spread = {
                spread: np.array([rank for rank, way in enumerate(ways) if way.spread == spread], int) for spread in SPREADS.values()
            }
            known = self.known[kind] = sizes, np.array([way.pieces for way in ways]), by_spread
        sizes, pieces, by_spread = known
        after = np.zeros((len(sizes), form.devices))
        for size, over in zip(sizes.T, self.over, strict=True):
            if over.max() + size.max() > 0.0:
                after += np.square(np.maximum(over + size[:, None], 0.0))
        after -= rest
        found = after.sum(axis=1)
        for spread, ranks in by_spread.items():
            if spread == "all" or not len(ranks):
                continue
            own = after[ranks]
            if spread != "device":
                own = own.reshape(len(ranks), -1, form.per_node)
            if spread == "node":
                own = own.sum(axis=2)
            count = np.minimum(pieces[ranks], own.shape[-1]) - 1
            sums = np.cumsum(np.sort(own, axis=-1), axis=-1) if count.any() else own.min(axis=-1, keepdims=True)
            found[ranks] = sums[np.arange(len(ranks)), ..., count].reshape(len(ranks), -1).min(axis=1)
        return np.asarray(found)

    def retake(self) -> None:
        """Give a table another way, or other places."""
        plan, form, device = self.plan, self.plan.form, self.device()
        node, table = device // form.per_node, self.random.randrange(len(form.types))
        if self.random.random() < _HERE:
            held = enumerate(zip(plan.ways, plan.places, strict=True))
            here = [own for own, (way, places) in held if way and (node if way.spread == "node" else device) in places]
            table = self.random.choice(here) if here else table
        old, places, kind, before = plan.ways[table], plan.places[table], form.types[table], float(self.costs.sum())
        if old is None:
            return
        plan.take(table)
        self.refill()
        rest = self.costs
        rank = self._likely(self._least_of(kind, rest) + float(rest.sum()) - before)
        if rank >= 0:
            way = form.ways[kind][rank]
            plan.put(table, way, self._least(way, rest)[1])
            self.reload()
        else:
            plan.put(table, old, places)
            self.refill()

    def aim(self, targets: Array) -> None:
        """Take other targets of phases."""
        self.over[: len(targets)] -= (targets - self.targets[: len(targets)])[:, None]
        self.targets[: len(targets)] = targets
        self.costs = _squares(self.over)

    def shifted(self, slack: float) -> Array:
        """Targets of the same sum, after a part of the slack goes to phases with more above them."""
        phases = self.plan.loads.shape[1]
        targets, above = self.targets[:phases], np.maximum(self.over[:phases], 0.0).sum(axis=1)
        used = self.plan.loads.any(axis=0)
        if not above.any() or not used.any():
            return targets.copy()
        shifted = np.maximum(targets + _SHIFTED * slack * (above / above.sum() - used / used.sum()), 0.0)
        found: Array = shifted * (targets.sum() / shifted.sum())
        return found


def _squares(over: Array) -> Array:
    above = np.maximum(over, 0.0)
    found: Array = np.einsum("i...,i...->...", above, above)
    return found


def height_of(plan: Plan) -> float:
    """The sum of the slowest of each phase of a plan that fits."""
    return inf if plan.overfull else float(plan.loads.max(axis=0).sum())


def balance_phases(
    plan: Plan, least: Array, target: float, deadline: float, patience: float, random: Random, seen: Callable[[Plan], None]
) -> Plan:
    """The best plan on the way to targets above the least of each phase, until its sum is a target, or time is up."""
    best, lowest, unit = plan, height_of(plan), max(float(least.sum()), 1e-300)
    end, first = min(deadline, monotonic() + _PATIENT * patience), True
    noise = np.random.default_rng(random.getrandbits(32)).gumbel(size=_NOISE)
    scale, room = np.concatenate([np.full(len(least), unit), plan.room]), np.array(plan.form.capacity) / plan.room
    while lowest > target and monotonic() < end:
        gap = lowest / unit - 1.0
        if first or gap > _FAR:
            slack = min(max(_NEARER * gap, 1e-6), _SLACK)
            mean = float(plan.loads.mean(axis=0).sum()) / unit
            targets = least / unit * max(1.0 + slack, (1.0 + 0.25 * slack) * mean)
        else:
            slack, above = _LOWERED * gap, best.loads.max(axis=0) - least
            targets = (least + above * (1.0 - _LOWERED)) / unit
        walk = Annealing(best.copy(), random, scale, np.concatenate([targets, room]), noise)
        found = _cooled(walk, slack, (lowest, target), end, seen)
        best, lowest, first = (best, lowest, False) if found is None else (found, height_of(found), False)
    return best


def _cooled(walk: Annealing, slack: float, sums: tuple[float, float], end: float, seen: Callable[[Plan], None]) -> Plan | None:
    """The best plan of a walk while its temperature falls, if it is below the first of two sums; the second one is low enough."""
    plan, random, began, best, (lowest, target) = walk.plan, walk.random, monotonic(), None, sums
    phases, turns = plan.loads.shape[1], max(_STEPS * len(plan.ways), _LEAST_STEPS) // _TURN
    walk.reload()
    for turn in range(turns):
        if (now := monotonic()) >= end or lowest <= target:
            break
        walk.temperature = slack * slack * _HOT * (_COLD / _HOT) ** max(turn / turns, (now - began) / (end - began))
        for _ in range(_TURN):
            kind = random.random()
            if kind < _RETAKEN:
                walk.retake()
            else:
                walk.swap(walk.items[kind < _RETAKEN + _NODES])
        height = height_of(plan)
        if height < lowest:
            best, lowest = plan.copy(), height
            seen(best)
        total = float(walk.targets[:phases].sum())
        nearer = 1.0 if walk.costs.any() or total <= 1.0 else (1.0 + _NEARER * (total - 1.0)) / total
        walk.aim(nearer * walk.shifted(slack))
    return best
