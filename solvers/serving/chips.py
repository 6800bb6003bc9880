"""The best free chip that serves, by boxes of designs: what no chip of a box can exceed, and the search that a check repeats.

A box stands for a device with all its resources at their highest (`instances.serving.chip`). Its workers within the limits are as fast as
any worker of the box, and fit where one fits. For n devices and copies of size s

    f(n) <= max over s, shapes of  floor(n / s) u(c),    c the least power of two that is not below floor(n / s)

with u(c) the rate of each of c copies at which the limits are kept, which rises with c. From f follow the fewest devices or the greatest
rate of prefill and decode workers as for a chip that is known. Boxes that cannot be better than the best chip found are closed, others
halved; chips alone are answered by the dynamic program.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import inf
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Ints
from crossopt.crossflow.hardware import Hardware, take
from crossopt.crossflow.serving.flight import greatest_rate
from crossopt.crossflow.serving.workers import Pool
from crossopt.instances.codesign.boxes import Boxes, full_box, tightened
from crossopt.instances.files.units import rounded_quantity
from crossopt.instances.serving.chip import FreeChip, best_chips, choice_at
from crossopt.instances.serving.question import DECODE_CHIP, PREFILL_CHIP, Role, ServingQuestion, on_hardware, with_chip
from crossopt.instances.serving.workers import UNITS, Shape, columns_of, queued, shapes_of, units_until_first, with_fewer
from crossopt.solvers.answer import Result
from crossopt.solvers.family import Proved
from crossopt.solvers.serving.judge import (
    BY_BOXES,
    Best,
    Copies,
    ServingFigures,
    ServingPlan,
    Table,
    best_of,
    judge,
    modes_of,
    needed_units,
    plan_of,
    rate_sought,
    reasons_of,
    table_of,
    unit_costs,
    value_for_rate,
    value_of,
)

_TOGETHER, _LOOKED, _FIRST = 48, 3, 64
"""Boxes that are bounded together, rounds in which a chip of the best box is tried, and devices that are looked at first."""
_NEAR = 1 << 12
"""Part of a rate to which an upper bound is near."""


@dataclass(frozen=True, slots=True)
class Found:
    """The best chip and plan, and what no chip is better than."""

    plan: ServingPlan | None
    cost: int
    """What the plan counts, where the rate is asked for."""
    value: float
    bound: float
    chips: int
    """Chips that were answered alone."""
    boxes: int
    stopped: str


def search(
    question: ServingQuestion, until: float, hear: Callable[[float, float], None], goal: float = inf, *, any_chip: bool = False
) -> Found:
    """The best chip, or the first one that is found; boxes and chips that are not below the goal are closed."""
    chip, walk, rounds, stopped = _chip_of(question), _Walk(question, goal), 0, "complete"
    walk.keep(tightened(chip.instance, chip.space, full_box(chip.space)))
    while walk.heap and walk.heap[0][0] < walk.value and not (any_chip and walk.best is not None):
        if monotonic() > until:
            stopped = "time limit"
            break
        hear(walk.value, walk.heap[0][0])
        taken = [heappop(walk.heap) for _ in range(min(_TOGETHER, len(walk.heap)))]
        if rounds < _LOOKED:
            rounds += 1
            walk.look((taken[0][2] + taken[0][3] + 1) // 2)
        parts = list[tuple[Ints, Ints]]()
        for bound, _, low, high in taken:
            if bound < walk.value and (low == high).all():
                walk.look(low)
            elif bound < walk.value:
                parts += _halves(low, high)
        if parts:
            walk.keep(
                tightened(chip.instance, chip.space, Boxes(np.stack([low for low, _ in parts]), np.stack([high for _, high in parts])))
            )
    bound = min(walk.value, walk.heap[0][0] if walk.heap else walk.value)
    if walk.table is None or walk.best is None:
        return Found(None, 0, walk.value, bound, walk.chips, walk.boxes, stopped)
    plan = replace(plan_of(with_chip(question, walk.choice), walk.table, walk.best), chip=walk.choice)
    return Found(plan, walk.best.cost, walk.value, bound, walk.chips, walk.boxes, stopped)


def clashes(question: ServingQuestion, until: float) -> tuple[str, ...]:
    """Why no chip serves: budgets without which one does, each with what that one takes, or limits that no chip keeps."""
    budget, found = _chip_of(question).instance.budget, list[str]()
    for name, figure in _BUDGETS:
        limit = least = float(getattr(budget, name))
        most = _taken(question, {name: inf}, figure, until)
        while limit < least * _CLOSE < most < inf:
            middle = (least * most) ** 0.5 if least else most / 2.0
            taken = _taken(question, {name: middle}, figure, until)
            least, most = (middle, most) if taken == inf else (least, taken)
        if limit < most < inf:
            found.append(_clash({name: (limit, most)}))
    if found:
        return tuple(found)
    chip, free = _chip_of(question), dict.fromkeys(dict(_BUDGETS), inf)
    if (hardware := _some_chip(question, free, until)) is not None:
        pairs = {name: (float(getattr(budget, name)), float(getattr(hardware, figure))) for name, figure in _BUDGETS}
        return (_clash({name: pair for name, pair in pairs.items() if pair[1] > pair[0]}),)
    chips = best_chips(chip, full_box(chip.space))
    if not chips.alive[0]:
        return ("chip: the budgets leave no chip with both throughput and memory bandwidth",)
    best = on_hardware(question, take(chips.hardware, 0))
    devices = f" on {question.devices:,} device{'s' * (question.devices != 1)}" if question.file.devices else ""
    general = (f"chip: no chip within the budgets serves the rate within the limits{devices}",)
    try:
        with np.errstate(all="ignore"):
            table = table_of(best)
    except ValueError:  # the best figures of all chips together may be those of no chip, and without a rate
        return general
    return reasons_of(best, table) if monotonic() <= until and best_of(best, table) is None else general


_BUDGETS = (
    ("die_area", "die_area"),
    ("package_area", "package_area"),
    ("power", "power"),
    ("power_density", "power_density"),
    ("reticle", "one_die"),
)
"""Budgets of a chip, with the figure that each limits."""
_CLOSE = 1.01
"""How near to the least what a budget takes is sought."""


def _clash(budgets: Mapping[str, tuple[float, float]]) -> str:
    """A sentence on budgets by what each allows, and what a chip takes that serves."""
    units = {"power": "power", "power_density": "power_per_area"}
    allowed, taken = (
        " and ".join(rounded_quantity(pair[index], units.get(name, "area"), 4) for name, pair in budgets.items()) for index in range(2)
    )
    return f"{' and '.join(budgets)}: no chip within {allowed} serves the rate within the limits, one of {taken} does"


def _some_chip(question: ServingQuestion, budgets: Mapping[str, float], until: float) -> Hardware | None:
    """Some chip that serves with other budgets; None where none was found."""
    chip = _chip_of(question)
    eased = replace(chip, instance=replace(chip.instance, budget=replace(chip.instance.budget, **budgets)))
    found = search(replace(question, chip=eased), until, _unheard, any_chip=True)
    return None if found.plan is None else with_chip(replace(question, chip=eased), found.plan.chip).kinds[0].hardware


def _taken(question: ServingQuestion, budgets: Mapping[str, float], figure: str, until: float) -> float:
    """What some chip that serves with other budgets has of a figure; infinite where none was found."""
    hardware = _some_chip(question, budgets, until)
    return inf if hardware is None else float(getattr(hardware, figure))


_DOWN = 1.0 - 2.0**-50
"""More than what sums and quotients of a few figures lose by rounding."""


def pair_of(question: ServingQuestion, one: Found, until: float) -> Found:
    """The best chip for each part, or the one for both where it is as good.

    What prefill and decode workers cost adds up, and each part reaches the rate on its own, so that the least of a pair is the sum of the
    least of each part. The cache passes at the rate of the slower network of both, and all devices are to be within their number: where the
    sum of both breaks that, it is a bound alone.
    """
    parts = [search(replace(question, part=role), until, _unheard) for role in ("prefill", "decode")]
    first, second = (part.plan for part in parts)
    stopped = next((part.stopped for part in (one, *parts) if part.stopped != "complete"), "complete")
    bound, plan, value = sum(part.bound for part in parts) * _DOWN, one.plan, one.value
    if first is not None and second is not None:
        if stopped == "complete":
            bound = float(value_for_rate(question, sum(part.cost for part in parts)))
        workers = (
            Copies(copies.count, replace(copies.shape, device=name))
            for name, own in ((PREFILL_CHIP, first), (DECODE_CHIP, second))
            for copies in own.workers
        )
        both = ServingPlan(tuple(workers), first.chip, second.chip)
        verdict = judge(question, both)
        if verdict.accepted and verdict.value < value:
            plan, value = both, float(verdict.value)
    if question.file.objective == "devices" and bound > question.devices:
        bound = inf
    bound = min(one.bound, bound)
    return Found(plan, 0, value, bound, sum(part.chips for part in (one, *parts)), sum(part.boxes for part in (one, *parts)), stopped)


@dataclass(slots=True)
class _Walk:
    """Open boxes by their bounds, and the best chip so far."""

    question: ServingQuestion
    value: float
    heap: list[tuple[float, int, Ints, Ints]] = field(default_factory=list)
    choice: dict[str, float] = field(default_factory=dict)
    table: Table | None = None
    best: Best | None = None
    chips: int = 0
    boxes: int = 0

    def keep(self, some: Boxes) -> None:
        """Bound boxes, and keep those that may hold a better chip."""
        for row, bound in enumerate(bounds_of(self.question, some).tolist()):
            if bound < self.value:
                heappush(self.heap, (bound, self.boxes + row, some.low[row], some.high[row]))
        self.boxes += len(some)

    def look(self, places: Ints) -> None:
        """Answer a chip alone."""
        choice = choice_at(_chip_of(self.question), places)
        try:
            known = with_chip(self.question, choice)
        except ValueError:  # beyond a budget
            return
        self.chips += 1
        table = table_of(known)
        best = best_of(known, table)
        value = inf if best is None else float(value_of(known, best.rate, best.devices, best.cost))
        if value < self.value:
            self.choice, self.table, self.best, self.value = choice, table, best, value


def _chip_of(question: ServingQuestion) -> FreeChip:
    if question.chip is None:
        raise ValueError("the question has no free chip")
    return question.chip


def _halves(low: Ints, high: Ints) -> list[tuple[Ints, Ints]]:
    """Both halves of a box, along its widest choice."""
    column = int((high - low).argmax())
    middle, first, second = (low[column] + high[column]) // 2, high.copy(), low.copy()
    first[column], second[column] = middle, middle + 1
    return [(low, first), (second, high)]


def bounds_of(question: ServingQuestion, boxes: Boxes) -> Array:
    """What no chip of each box is below in the objective; infinite where none keeps the limits."""
    found = np.full(len(boxes), inf)
    chips = best_chips(_chip_of(question), boxes)
    if chips.alive.any():
        rows = np.flatnonzero(chips.alive)
        found[rows] = _bounds(question, take(chips.hardware, rows), len(rows))
    return found


def _bounds(question: ServingQuestion, hardware: Hardware, boxes: int) -> Array:
    """The same of devices."""
    known, devices = on_hardware(question, hardware), min(_FIRST, question.devices)
    units = {role: _units_of_role(known, hardware, role) for roles in modes_of(question) for role in roles}
    if rate_sought(question) is None:
        devices = question.devices
    while True:
        values = [_mode_bound(question, [_rates(units[role], devices, boxes) for role in roles]) for roles in modes_of(question)]
        found: Array = np.minimum.reduce(values)
        if devices == question.devices or not np.isinf(found).any():
            return found if rate_sought(question) is None else np.asarray(value_for_rate(question, found * unit_costs(question, hardware)))
        devices = min(2 * devices, question.devices)


Units = dict[int, list[Array]]
"""By size of a worker: upper bounds of the rate of each of 1, 2, 4, ... copies, a column for each box."""


def _mode_bound(question: ServingQuestion, rates: Sequence[Array]) -> Array:
    """Fewest devices for the rate, or the least time between requests on all devices, of one or two parts."""
    most, needed = rates[0].shape[1] - 1, max(needed_units(question), 1)
    if rate_sought(question) is None:
        both = np.minimum(rates[0], rates[1][:, ::-1]).max(axis=1) if len(rates) == 2 else rates[0][:, -1]
        return np.where(both >= needed, UNITS / np.maximum(both, 1.0), inf)
    counts = [np.where((own >= needed).any(axis=1), (own >= needed).argmax(axis=1).astype(np.float64), inf) for own in rates]
    total = sum(counts, start=np.zeros(len(rates[0])))
    return np.where(total <= min(most, question.devices), total, inf)


def _rates(units: Units, devices: int, boxes: int) -> Array:
    """Upper bounds of the rates on 0 to `devices` devices, a row for each box."""
    found, numbers = np.zeros((boxes, devices + 1)), np.arange(devices + 1)
    for size, own in units.items():
        copies = numbers // size
        index = np.minimum(np.ceil(np.log2(np.maximum(copies, 1))).astype(np.int64), len(own) - 1)
        found = np.maximum(found, np.stack(own)[index].T * copies)
    return found


def _units_of_role(question: ServingQuestion, hardware: Hardware, role: Role) -> Units:
    """Rates of each copy, by size and number of copies."""
    groups: dict[tuple[object, ...], list[Shape]] = {}
    for shape in shapes_of(question):
        if shape.role == role:
            own = (shape.weights, shape.cache, shape.chunk, shape.data, shape.drafted, shape.batch if role == "prefill" else 0)
            groups.setdefault(own, []).append(shape)
    found: Units = {}
    for shapes in groups.values():
        _add_group(question, hardware, shapes, found)
    return found


def _add_group(question: ServingQuestion, hardware: Hardware, shapes: Sequence[Shape], found: Units) -> None:
    boxes, kind = len(np.atleast_1d(hardware.bundles)), question.kinds[0]
    every, places = with_fewer(question, shapes)
    rows = np.repeat(np.arange(boxes), len(every))
    priced = columns_of(question, every * boxes, take(hardware, rows), bounded=True)
    columns = {name: column.reshape(boxes, -1) for name, column in priced.items()}
    memory = columns["weights"] + columns["cache"] + columns["working"]
    fits, several = memory <= np.reshape(kind.usable_memory, (-1, 1)), queued(question, shapes[0])
    for shape, own in zip(shapes, places, strict=True):
        size, last = shape.tensor * shape.pipeline, own[-1]
        if size > question.devices:
            continue
        ttft = columns["first" if several and shape.role == "both" else "ttft"][:, last]
        rates, tokens = columns["rate"][:, own], columns["tpot"][:, own]
        within = fits[:, last] & (ttft <= question.ttft) & (tokens[:, 0] <= question.tpot)
        keeping = np.flatnonzero(within)
        top = np.ceil(np.minimum(rates[:, -1], greatest_rate(rates, tokens, question.tpot))[keeping] * UNITS).astype(np.int64)
        pool = Pool(*(columns[name][keeping, last] for name in Pool.__dataclass_fields__))
        levels = found.setdefault(size, [np.zeros(boxes) for _ in range((question.devices // size - 1).bit_length() + 1)])
        for power, best in enumerate(levels):
            units = top
            if question.level != "mean" and shape.role != "decode" and power < _POWERS and len(keeping):
                copies = np.full(len(keeping), float(1 << power))
                units = units_until_first(question.level, question.ttft, shape, pool, copies, top, top // _NEAR + 1)
            best[keeping] = np.maximum(best[keeping], units.astype(np.float64))


_POWERS = 8
"""Numbers of copies beyond which queues are left out of the bound."""


def prove_chip(question: ServingQuestion, saved: Result[ServingPlan, ServingFigures]) -> Proved:
    """Close all boxes of chips that cannot be below the bound, and answer the chips that are left."""
    claimed = inf if saved.bound is None and saved.value is None else saved.bound
    if claimed is None:
        return Proved(())
    if question.file.chip is not None and question.file.chip.kinds > 1:
        found = pair_of(question, search(question, inf, _unheard), inf)
        if found.bound < claimed:
            return Proved(refused=(f"bound: two chips are bounded by {found.bound!r}, the result claims {claimed!r}",))
        return Proved((f"{found.boxes:,} boxes of chips for both parts and each were bounded again",), by=BY_BOXES)
    found = search(question, inf, _unheard, claimed)
    if found.value < claimed:
        return Proved(refused=(f"bound: a chip has the value {found.value!r}, the result claims {claimed!r}",))
    return Proved((f"{found.boxes:,} boxes of chips were bounded again, and {found.chips:,} chips answered",), by=BY_BOXES)


def _unheard(value: float, bound: float) -> None:
    """A proof has no audience."""
    del value, bound
