"""Local search for plans of embedding tables: pieces move, change places, and tables take other ways, from the slowest device on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from random import Random
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Ints
from crossopt.formulation.embeddings import SCALE, Held, Way
from crossopt.formulation.embeddings import Whole as Form
from crossopt.instances.embeddings.options import devices_of

_PENALTY, _DEARER = 20.0, 3
"""Penalty of a device that holds twice its memory, in mean loads, and how often it is raised by this factor where devices stay full."""
_BETTER = 1e-12
_OTHERS, _TAKEN = 24, 9
"""Tables on all devices that are tried at once, and tables that are taken out at once."""
_CHEAPENED, _FEW = 60, 3
"""Tables that take cheaper ways at once, and ways of each that are tried."""
_DIVIDED, _PAIRS = 13, 4
"""Pieces on two devices that are divided in every way, and pairs of devices that are tried at once."""
_PARTNERS = 2_000
"""Pieces that are tried in swaps at once."""


def _penalty(over: Array) -> Array:
    """Of devices that are full beyond their memory, in mean loads: no such device is hidden behind a slow one."""
    found: Array = _PENALTY * over + (over > 0.0)
    return found


@dataclass(slots=True)
class Plan:
    """A plan in floating point: time by phase and memory of each device, and what each table takes."""

    form: Form
    loads: Array
    """By device and phase."""
    memory: Array
    """By device and tier."""
    scale: float
    """Mean load, in which lacking memory is counted."""
    ways: list[Way | None] = field(default_factory=list)
    places: list[tuple[int, ...]] = field(default_factory=list)

    @property
    def room(self) -> Array:
        room: Array = np.maximum(np.array(self.form.capacity, float), 1.0)
        return room

    def heights(self) -> Array:
        """Load of each device, with a penalty for lacking memory."""
        over = np.maximum(self.memory - self.form.capacity, 0.0) / self.room
        heights: Array = self.loads.sum(axis=1) + self.scale * _penalty(over.sum(axis=1))
        return heights

    def copy(self) -> "Plan":
        return Plan(self.form, self.loads.copy(), self.memory.copy(), self.scale, list(self.ways), list(self.places))

    def put(self, table: int, way: Way, places: tuple[int, ...]) -> None:
        self._add(way, places, 1.0)
        self.ways[table], self.places[table] = way, places

    def take(self, table: int) -> None:
        way = self.ways[table]
        if way is not None:
            self._add(way, self.places[table], -1.0)
            self.ways[table], self.places[table] = None, ()

    def _add(self, way: Way, places: tuple[int, ...], sign: float) -> None:
        times, memory = sign * phases_of(way), sign * memory_of(way)
        if way.spread == "all":
            self.loads += times
            self.memory += memory
            return
        for device in devices_of(way.spread, places, self.form.per_node, self.form.devices):
            self.loads[device] += times
            self.memory[device] += memory

    @property
    def overfull(self) -> bool:
        return bool((self.memory > self.form.capacity).any())

    def held(self) -> tuple[Held, ...]:
        return tuple(Held(-1 if way is None else way.index, places) for way, places in zip(self.ways, self.places, strict=True))


_FIGURES = dict[int, tuple[Way, Array, Array]]()


def _figures_of(way: Way) -> tuple[Way, Array, Array]:
    known = _FIGURES.get(id(way))
    if known is None or known[0] is not way:
        if len(_FIGURES) > 1 << 20:
            _FIGURES.clear()
        known = _FIGURES[id(way)] = way, np.array([phase / (1 << SCALE) for phase in way.phases]), np.array(way.memory, float)
    return known


def phases_of(way: Way) -> Array:
    """Milliseconds of a piece by phase."""
    return _figures_of(way)[1]


def memory_of(way: Way) -> Array:
    """Bytes of a piece by tier."""
    return _figures_of(way)[2]


def empty_plan(form: Form, scale: float) -> Plan:
    """A plan of no tables."""
    count = len(form.types)
    phases = len(next(iter(form.ways[0])).phases)
    return Plan(form, np.zeros((form.devices, phases)), np.zeros((form.devices, 3)), scale, [None] * count, [()] * count)


def start_from(form: Form, ways: list[Way], scale: float) -> Plan:
    """Tables in given ways: those on all devices and nodes first, then those first that fill a device most, each where it is lowest."""
    plan, kind_rank = empty_plan(form, scale), {"all": 0, "node": 1, "neighbours": 2, "device": 3}

    def size(way: Way) -> float:
        return max(float(phases_of(way).sum()) / scale, float((memory_of(way) / plan.room).max()))

    for table in sorted(range(len(ways)), key=lambda table: (kind_rank[ways[table].spread], -size(ways[table]), table)):
        plan.put(table, ways[table], insertion(plan, ways[table])[1])
    return plan


def insertion(plan: Plan, way: Way) -> tuple[float, tuple[int, ...]]:
    """Where the pieces of a way are lowest, one after another, and the greatest height there."""
    form, heights = plan.form, plan.heights()
    places = {"device": form.devices, "neighbours": form.per_node, "node": form.devices // form.per_node, "all": 1}[way.spread]
    together = -(-way.pieces // places)
    time, memory = together * float(phases_of(way).sum()), together * memory_of(way)
    over = np.maximum(plan.memory + memory - form.capacity, 0.0) / plan.room
    after = plan.loads.sum(axis=1) + time + plan.scale * _penalty(over.sum(axis=1))
    match way.spread:
        case "all":
            return float(after.max()), ()
        case "node":
            by_node = after.reshape(-1, form.per_node).max(axis=1)
            order = np.argsort(by_node, kind="stable")[: way.pieces]
            return float(by_node[order].max()), tuple(sorted(int(order[piece % len(order)]) for piece in range(way.pieces)))
        case "device" if way.pieces == 1:
            index = int(after.argmin())
            return float(after[index]), (index,)
        case "device":
            order = np.argsort(after, kind="stable")[: way.pieces]
            chosen = [int(order[piece % len(order)]) for piece in range(way.pieces)]
            return float(after[order].max()), tuple(sorted(chosen))
        case _:
            blocks = np.sort(after.reshape(-1, form.per_node), axis=1)
            count = min(way.pieces, form.per_node)
            node = int(blocks[:, count - 1].argmin())
            order = node * form.per_node + np.argsort(after.reshape(-1, form.per_node)[node], kind="stable")[:count]
            chosen = [int(order[piece % count]) for piece in range(way.pieces)]
            return max(float(blocks[node, count - 1]), float(heights.max())), tuple(sorted(chosen))


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """Pieces that are on one device each and free to move to any other."""

    table: Ints
    piece: Ints
    device: Ints
    times: Array
    memory: Array


def items_of(plan: Plan) -> Items:
    """All free pieces of a plan."""
    rows = [
        (table, piece, index)
        for table, (way, places) in enumerate(zip(plan.ways, plan.places, strict=True))
        if way is not None and way.spread == "device" and not way.distinct
        for piece, index in enumerate(places)
    ]
    table, piece, device = (np.array(column, int) for column in zip(*rows, strict=True)) if rows else (np.zeros(0, int),) * 3
    own = [plan.ways[index] for index in table.tolist()]
    times = np.array([phases_of(way) for way in own if way is not None]).reshape(-1, plan.loads.shape[1])
    memory = np.array([memory_of(way) for way in own if way is not None]).reshape(-1, 3)
    return Items(table, piece, device, times, memory)


Step = Callable[[], bool]


@dataclass(slots=True)
class Climb:
    """A plan on its way down, with its free pieces."""

    plan: Plan
    items: Items

    def refresh(self) -> None:
        self.items = items_of(self.plan)

    def retake(self, table: int) -> None:
        """The free pieces of a table anew."""
        plan, items, keep = self.plan, self.items, self.items.table != table
        way, places = plan.ways[table], plan.places[table]
        count = len(places) if way is not None and way.spread == "device" and not way.distinct else 0
        times = phases_of(way)[None].repeat(count, axis=0) if way is not None else np.zeros((0, plan.loads.shape[1]))
        memory = memory_of(way)[None].repeat(count, axis=0) if way is not None else np.zeros((0, 3))
        self.items = Items(
            np.concatenate([items.table[keep], np.full(count, table)]),
            np.concatenate([items.piece[keep], np.arange(count)]),
            np.concatenate([items.device[keep], np.array(places[:count], int)]),
            np.concatenate([items.times[keep], times]),
            np.concatenate([items.memory[keep], memory]),
        )

    def moved(self, item: int, device: int) -> None:
        """Bring a piece to another device."""
        plan, items = self.plan, self.items
        table, piece, old = int(items.table[item]), int(items.piece[item]), int(items.device[item])
        plan.loads[old] -= items.times[item]
        plan.memory[old] -= items.memory[item]
        plan.loads[device] += items.times[item]
        plan.memory[device] += items.memory[item]
        items.device[item] = device
        places = list(plan.places[table])
        places[piece] = device
        plan.places[table] = tuple(places)

    def exchange(self, worst: int) -> bool:
        """The best move or swap that lowers the highest of two devices, the worst and another; whether there was one."""
        plan, items = self.plan, self.items
        own, others = np.flatnonzero(items.device == worst), np.flatnonzero(items.device != worst)
        if not len(own):
            return False
        heights, loads = plan.heights(), plan.loads.sum(axis=1)
        times, top = items.times.sum(axis=1), heights[worst]
        best: tuple[float, int, int, int] = (float(top) * (1.0 - _BETTER), -1, -1, -1)
        moved = self._after(loads[None, :] + times[own, None], plan.memory[None] + items.memory[own, None])
        left = self._after(loads[worst] - times[own], plan.memory[worst] - items.memory[own])
        both = np.maximum(moved, left[:, None])
        both[:, worst] = inf
        index = int(both.argmin())
        row, column = divmod(index, both.shape[1])
        if both[row, column] < best[0]:
            best = float(both[row, column]), int(own[row]), -1, column
        if len(others) > _PARTNERS:
            rank = len(heights) * _PARTNERS // len(others)
            others = others[heights[items.device[others]] <= np.partition(heights, rank)[rank]]
        if len(others):
            change = times[own, None] - times[None, others]
            stored = items.memory[own, None] - items.memory[None, others]
            where = items.device[others]
            here = self._after(loads[worst] - change, plan.memory[worst] - stored)
            there = self._after(loads[where] + change, plan.memory[where] + stored)
            both = np.maximum(here, there)
            index = int(both.argmin())
            row, column = divmod(index, both.shape[1])
            if both[row, column] < best[0]:
                best = float(both[row, column]), int(own[row]), int(others[column]), int(where[column])
        if best[1] < 0:
            return False
        self.moved(best[1], best[3])
        if best[2] >= 0:
            self.moved(best[2], worst)
        return True

    def repartition(self, worst: int) -> bool:
        """The best division of the free pieces of the worst device and another one among both; whether that lowers the worst."""
        plan, items = self.plan, self.items
        heights, loads = plan.heights(), plan.loads.sum(axis=1)
        times, top = items.times.sum(axis=1), float(heights[worst]) * (1.0 - _BETTER)
        tried = 0
        for other in np.argsort(heights, kind="stable").tolist():
            own = np.flatnonzero((items.device == worst) | (items.device == other))
            if other == worst or len(own) > _DIVIDED or tried == _PAIRS:
                continue
            tried += 1
            sums = np.zeros((1, 4))
            for item in own.tolist():
                sums = np.concatenate([sums, sums + np.array([times[item], *items.memory[item]])])
            whole = sums[-1]
            fixed = [
                np.array([loads[device], *plan.memory[device]])
                - np.array([times[own[items.device[own] == device]].sum(), *items.memory[own[items.device[own] == device]].sum(axis=0)])
                for device in (worst, other)
            ]
            here, there = fixed[0] + sums, fixed[1] + whole - sums
            both = np.maximum(self._after(here[:, 0], here[:, 1:]), self._after(there[:, 0], there[:, 1:]))
            best = int(both.argmin())
            if float(both[best]) < top:
                for index, item in enumerate(own.tolist()):
                    wanted = worst if best >> index & 1 else other
                    if int(items.device[item]) != wanted:
                        self.moved(item, wanted)
                return True
        return False

    def _after(self, loads: Array, memory: Array) -> Array:
        """Heights of devices with these loads and memories."""
        over = np.zeros_like(loads)
        for tier in range(3):
            capacity = float(self.plan.form.capacity[tier])
            over += np.maximum(memory[..., tier] - capacity, 0.0) / max(capacity, 1.0)
        return loads + self.plan.scale * _penalty(over) if over.any() else loads

    def other_way(self, worst: int, random: Random) -> bool:
        """Another way or place for a table on the worst device that lowers the highest device it touches; whether there was one."""
        plan = self.plan
        before = plan.heights()
        top = float(before.max())
        here = self._on(worst)
        everywhere = [table for table, way in enumerate(plan.ways) if way is not None and way.spread == "all"]
        random.shuffle(here)
        random.shuffle(everywhere)
        for table in (*here[:_OTHERS], *everywhere[:_OTHERS]):
            old, places = plan.ways[table], plan.places[table]
            if old is None:
                continue
            plan.take(table)
            lowest, best = top * (1.0 - _BETTER), (None, ())
            rest = plan.heights()
            if float(rest.max()) < top:
                for way in plan.form.ways[plan.form.types[table]]:
                    height, chosen = insertion(plan, way)
                    height = max(height, float(rest.max()))
                    if height < lowest and (way is not old or chosen != places):
                        lowest, best = height, (way, chosen)  # type: ignore[assignment]
            if best[0] is not None:
                plan.put(table, best[0], best[1])
                if slowest(plan) < top * (1.0 - _BETTER):
                    self.retake(table)
                    return True
                plan.take(table)
            plan.put(table, old, places)
        return False

    def cheapen(self, random: Random, prices: Array, level: float) -> None:
        """Give some tables the way that costs least at the prices of memory of those that stay below a level."""
        plan = self.plan
        for table in random.sample(range(len(plan.ways)), min(_CHEAPENED, len(plan.ways))):
            old, places = plan.ways[table], plan.places[table]
            if old is None:
                continue
            ways = plan.form.ways[plan.form.types[table]]
            costs = {way.index: way.total / (1 << SCALE) + float(prices @ np.array(way.stored, float)) for way in ways}
            cheaper = sorted((way for way in ways if costs[way.index] < costs[old.index]), key=lambda way: costs[way.index])
            if not cheaper:
                continue
            plan.take(table)
            for way in cheaper[:_FEW]:
                height, chosen = insertion(plan, way)
                if height < level:
                    plan.put(table, way, chosen)
                    break
            else:
                plan.put(table, old, places)
                continue
            self.retake(table)

    def _on(self, device: int) -> list[int]:
        """Tables with pieces on a device, but for those on all devices."""
        plan, node = self.plan, device // self.plan.form.per_node
        return [
            table
            for table, (way, places) in enumerate(zip(plan.ways, plan.places, strict=True))
            if way is not None and (node if way.spread == "node" else device) in places
        ]

    def descend(self, random: Random, deadline: float, *, dividing: bool = True, fitting: bool = False) -> None:
        """Lower the slowest device until no step does, or until all fits; `dividing` where pairs of devices are divided in every way."""
        while monotonic() < deadline and not (fitting and not self.plan.overfull):
            worst = int(self.plan.heights().argmax())
            if not self.exchange(worst) and not (dividing and self.repartition(worst)) and not self.other_way(worst, random):
                return

    def kick(self, random: Random, strength: int) -> None:
        """Swap the slowest device's pieces with others at random."""
        items = self.items
        if len(items.table) < 2:
            return
        worst = int(self.plan.heights().argmax())
        for turn in range(strength):
            own = np.flatnonzero(items.device == worst) if turn % 2 == 0 else np.arange(len(items.table))
            one = int(random.choice(own.tolist())) if len(own) else random.randrange(len(items.table))
            other = random.randrange(len(items.table))
            first, second = int(items.device[one]), int(items.device[other])
            if first == second:
                self.moved(one, random.randrange(self.plan.form.devices))
            else:
                self.moved(one, second)
                self.moved(other, first)

    def recreate(self, random: Random, prices: Array, level: float) -> None:
        """Take some tables out, of the slowest device and of others, and put each back where all stays below a level, or least above it, by
        the way that costs least at the prices of memory."""
        plan = self.plan
        worst = int(plan.heights().argmax())
        here = self._on(worst)
        count = min(random.randint(2, _TAKEN), len(plan.ways))
        taken = random.sample(here, min(len(here), 1 + count // 3))
        taken += [table for table in random.sample(range(len(plan.ways)), count) if table not in taken]
        for table in taken:
            plan.take(table)
        random.shuffle(taken)
        taken.sort(key=lambda table: -max(way.memory[0] for way in plan.form.ways[plan.form.types[table]]) if random.random() < 0.8 else 0)
        for table in taken:
            top = float(plan.heights().max())
            best: tuple[float, float, Way | None, tuple[int, ...]] = (inf, inf, None, ())
            for way in plan.form.ways[plan.form.types[table]]:
                height, places = insertion(plan, way)
                cost = way.total / (1 << SCALE) + float(prices @ np.array(way.stored, float))
                key = max(height, top, level), cost * random.uniform(1.0, 1.1)
                if key < best[:2]:
                    best = *key, way, places
            if best[2] is not None:
                plan.put(table, best[2], best[3])
        self.refresh()


def slowest(plan: Plan) -> float:
    """The greatest height."""
    return float(plan.heights().max())


def improve(
    plan: Plan, target: float, deadline: float, patience: float, random: Random, seen: Callable[[Plan], None], prices: Array
) -> Plan:
    """The best plan of descents and kicks, until the slowest device takes no more than a target, or nothing has improved for some time."""
    climb = Climb(plan.copy(), items_of(plan))
    for _ in range(_DEARER):
        climb.descend(random, deadline, fitting=True)
        if not climb.plan.overfull:
            seen(climb.plan.copy())
            break
        climb.plan.scale *= _PENALTY
    climb.descend(random, deadline)
    best, lowest, since = climb.plan.copy(), slowest(climb.plan), monotonic()
    seen(best)
    while (lowest > target or best.overfull) and monotonic() < min(deadline, since + patience):
        if random.random() < (0.9 if prices.any() else 0.95):
            climb.kick(random, random.randint(2, 6))
        else:
            climb.recreate(random, prices, lowest * random.uniform(0.98, 1.0))
        climb.cheapen(random, prices, lowest)
        climb.descend(random, deadline, dividing=not prices.any() or random.random() < 0.2)
        height = slowest(climb.plan)
        if height < lowest * (1.0 - _BETTER):
            best, lowest, since = climb.plan.copy(), height, monotonic()
            seen(best)
        elif height > lowest * 1.02 or random.random() < 0.2:
            climb.plan = best.copy()
            climb.refresh()
    return best
