"""Serving plans, their judge worker by worker, and the proof of a bound carried out anew."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, inf, isfinite
from typing import Final

from crossopt.formulation.serving.matching import Kinds, apart_bound, crossing, density, rates_on, together_bound
from crossopt.instances.serving.question import MOST_DEVICES, ServingQuestion
from crossopt.instances.serving.workers import UNITS, Offer, Shape, broken, floors, priced, shapes_of
from crossopt.solvers.answer import Progress, Result, Verdict, Watch
from crossopt.solvers.family import Proved

BY_PROGRAM: Final = "dynamic programming"
_HOUR, _MILLION = 3600.0, 1.0e6


@dataclass(frozen=True, slots=True)
class Copies:
    """Some workers of one shape."""

    count: int
    shape: Shape


@dataclass(frozen=True, slots=True)
class ServingPlan:
    """Workers that serve together: all of the role both, or of prefill and decode."""

    workers: tuple[Copies, ...]


@dataclass(frozen=True, slots=True)
class ServingFigures:
    """What a plan does."""

    rate: float
    """Requests a second."""
    devices: int
    ttft: float
    tpot: float
    """Seconds, of the slowest worker."""
    tokens_per_device: float
    """Output tokens a second and device."""
    tokens_per_user: float
    """Output tokens a second of one request."""
    cost: float | None
    """Dollars for a million output tokens; None without a rent."""
    offers: tuple[Offer, ...]
    """The price of each shape, in the order of the plan."""


def judge(question: ServingQuestion, answer: ServingPlan) -> Verdict[ServingFigures]:
    """Value, broken limits and figures; a ValueError where a worker is none of the question."""
    if not answer.workers or any(copies.count < 1 for copies in answer.workers):
        raise ValueError("a plan has at least one worker, and of each shape at least one")
    if max(copies.count for copies in answer.workers) > MOST_DEVICES:
        raise ValueError(f"no plan has more than {MOST_DEVICES:,} workers of a shape")
    shapes = [copies.shape for copies in answer.workers]
    if len(set(shapes)) < len(shapes):
        raise ValueError("a shape is named twice (add the numbers of its workers up)")
    offered = set(shapes_of(question))
    if strange := [shape for shape in shapes if shape not in offered]:
        raise ValueError(f"the question offers no worker like {shape_text(strange[0])}")
    offers = priced(question, shapes)
    totals = {role: sum(c.count * o.rate for c, o in zip(answer.workers, offers, strict=True) if c.shape.role == role) for role in _ROLES}
    devices = sum(copies.count * offer.devices for copies, offer in zip(answer.workers, offers, strict=True))
    apart = min(totals["prefill"], totals["decode"])
    violations = [f"{shape_text(offer.shape)} breaks its limit of {name}" for offer in offers for name in broken(question, offer)]
    if totals["both"] and (totals["prefill"] or totals["decode"]):
        violations.append("workers that do both stand beside others")
    if not totals["both"] and not apart:
        violations.append("prefill or decode workers are missing")
    rate = totals["both"] or apart
    if devices > question.devices:
        violations.append(f"{devices:,} devices are more than {question.devices:,}")
    if rate < needed_units(question):
        violations.append(f"{rate / UNITS:.6g} requests a second are fewer than {question.file.requests.rate:g}")
    value = value_of(question, rate, devices) if rate else inf
    return Verdict(value, tuple(violations), _figures(question, rate, devices, offers))


_ROLES: Final = ("both", "prefill", "decode")


def needed_units(question: ServingQuestion) -> int:
    """The rate that is asked for, in units, rounded up."""
    rate = question.file.requests.rate
    return 0 if rate is None else ceil(Fraction(rate) * UNITS)


def value_of(question: ServingQuestion, rate: int, devices: int) -> float | int:
    """The objective of so many units on so many devices."""
    match question.file.objective:
        case "devices":
            return devices
        case "throughput":
            return UNITS / rate
        case "cost":
            return cost_of(question, rate, devices)


def cost_of(question: ServingQuestion, rate: int, devices: int) -> float:
    """Dollars for a million output tokens."""
    return question.rent / _HOUR * _MILLION * UNITS / question.file.requests.output * (devices / rate)


def _figures(question: ServingQuestion, rate: int, devices: int, offers: tuple[Offer, ...]) -> ServingFigures:
    tpot = max(offer.tpot for offer in offers)
    tokens = rate / UNITS * question.file.requests.output
    return ServingFigures(
        rate=rate / UNITS,
        devices=devices,
        ttft=max(offer.ttft for offer in offers),
        tpot=tpot,
        tokens_per_device=tokens / devices,
        tokens_per_user=1.0 / tpot if tpot else 0.0,
        cost=cost_of(question, rate, devices) if isfinite(question.rent) and rate else None,
        offers=offers,
    )


def shape_text(shape: Shape) -> str:
    """A worker in a few words."""
    return shape.name or f"{brief_shape_text(shape)}, {shape.weights} weights, {shape.cache} cache"


def brief_shape_text(shape: Shape) -> str:
    """A worker without its formats."""
    if shape.name:
        return shape.name
    split = f"tensor {shape.tensor}" + (f" x pipeline {shape.pipeline}" if shape.pipeline > 1 else "")
    split += f" x expert {shape.expert}" if shape.expert > 1 else ""
    role = {"both": "", "prefill": "prefill ", "decode": "decode "}[shape.role]
    return f"{role}{split}, batch {shape.batch}"


# The best plan by the dynamic program: what the engine answers, and what a check carries out anew.


@dataclass(frozen=True, slots=True)
class Table:
    """Workers within the limits, by role, with the best rates on every number of devices."""

    offers: dict[str, tuple[Offer, ...]]
    best: dict[str, list[int]]
    last: dict[str, list[int]]
    shapes: int
    """Workers that were priced."""
    within: dict[str, int]
    """Of all of them those that keep each limit."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best rate on a number of devices, and how it is split."""

    rate: int
    devices: int
    prefill: int
    """Devices of the prefill workers; -1 where workers do both."""


def table_of(question: ServingQuestion) -> Table:
    """All workers, priced, and the dynamic program of each role."""
    every = priced(question, shapes_of(question))
    kept: dict[str, list[Offer]] = {role: [] for role in _ROLES}
    within = dict.fromkeys(("memory", "ttft", "tpot"), 0)
    for offer in every:
        faults = broken(question, offer)
        for name in within:
            within[name] += name not in faults
        if not faults:
            kept[offer.shape.role].append(offer)
    devices = _most_devices(question, kept)
    found = {role: rates_on([(offer.devices, offer.rate) for offer in offers], devices) for role, offers in kept.items()}
    return Table(
        {role: tuple(offers) for role, offers in kept.items()},
        {role: pair[0] for role, pair in found.items()},
        {role: pair[1] for role, pair in found.items()},
        len(every),
        within,
    )


def kinds_of(offers: tuple[Offer, ...] | list[Offer]) -> Kinds:
    """Devices and rates alone."""
    return [(offer.devices, offer.rate) for offer in offers]


def _most_devices(question: ServingQuestion, kept: dict[str, list[Offer]]) -> int:
    """Devices on which the best is looked for: those of the question, or as many as the rate needs for sure."""
    if question.file.objective != "devices":
        return question.devices
    needed, fewest = needed_units(question), MOST_DEVICES
    dense = {role: density(kinds_of(offers)) for role, offers in kept.items()}
    for roles in (("both",), ("prefill", "decode")):
        if all(dense[role] for role in roles):
            largest = sum(max(offer.devices for offer in kept[role]) for role in roles)
            fewest = min(fewest, ceil(sum(needed / dense[role] for role in roles)) + largest)
    return min(fewest, question.devices)


def best_on(table: Table, devices: int) -> Best:
    """The best rate on at most so many devices; workers that do both where apart gives no more."""
    both = table.best["both"][devices]
    rate, prefill = crossing(table.best["prefill"], table.best["decode"], devices)
    return Best(both, devices, -1) if both >= rate else Best(rate, devices, prefill)


def best_of(question: ServingQuestion, table: Table) -> Best | None:
    """The best plan of the question; None where none keeps the limits."""
    most, needed = len(table.best["both"]) - 1, max(needed_units(question), 1)
    top = best_on(table, most)
    if top.rate < needed:
        return None
    if question.file.objective == "cost":
        every = (best_on(table, devices) for devices in range(1, most + 1))
        enough = [best for best in every if best.rate >= needed]
        return min(enough, key=lambda best: (Fraction(best.devices, best.rate), best.devices))
    least = top.rate if question.file.objective == "throughput" else needed
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if best_on(table, middle).rate >= least else (middle + 1, high)
    return best_on(table, low)


def prove(question: ServingQuestion, saved: Result[ServingPlan, ServingFigures], watch: Watch) -> Proved:
    """Price every worker again, carry out the dynamic program, and hold it beside the bound by multipliers."""
    watch(Progress("the proof", None))
    table = table_of(question)
    best = best_of(question, table)
    least = inf if best is None else value_of(question, best.rate, best.devices)
    claimed = inf if saved.bound is None and saved.value is None else saved.bound
    if claimed is not None and claimed > least:
        return Proved(refused=(f"bound: a plan has the value {least!r}, the result claims {claimed!r}",))
    devices = len(table.best["both"]) - 1
    bound = multiplier_bound(table, devices)
    top = best_on(table, devices).rate
    if top > bound:
        return Proved(refused=("bound: the dynamic program is above the bound by multipliers (please report this)",))
    done = f"{table.shapes:,} workers were priced again, and the dynamic program over {devices:,} devices was carried out anew"
    beside = f"multipliers alone bound the rate of {devices:,} devices by {float(bound / UNITS):.6g} a second"
    return Proved((done, *((beside,) if bound else ())), by=BY_PROGRAM)


def multiplier_bound(table: Table, devices: int) -> Fraction:
    """Units that no plan on so many devices exceeds, without the dynamic program."""
    kinds = {role: kinds_of(offers) for role, offers in table.offers.items()}
    return max(together_bound(kinds["both"], devices), apart_bound(kinds["prefill"], kinds["decode"], devices))


def reasons_of(question: ServingQuestion, table: Table) -> tuple[str, ...]:
    """Why no plan keeps the limits: limits that no worker keeps alone, or that none keeps together, or the rate."""
    free = replace(question, file=replace(question.file, limits=type(question.file.limits)()))
    every = [offer for offer in priced(free, shapes_of(free)) if "memory" not in broken(free, offer)]
    if not _complete({offer.shape.role for offer in every}):
        return (
            f"memory: no worker fits into {question.usable_memory / 1e9:.4g} GB of a device (more ranks or narrower weights are needed)",
        )
    found = list[str]()
    for name, limit, roles in (("tpot", question.tpot, ("both", "decode")), ("ttft", question.ttft, ("both", "prefill"))):
        amounts = [getattr(offer, name) for offer in every if offer.shape.role in roles]
        if amounts and min(amounts) > limit:
            floor = floors(question).get(name)
            streamed = f"; the weights alone pass from memory in {floor * 1e3:.4g} ms" if floor else ""
            found.append(f"{name}: {limit * 1e3:.4g} ms are asked, no worker takes less than {min(amounts) * 1e3:.4g} ms{streamed}")
    if found:
        return tuple(found)
    if not _complete({role for role, offers in table.offers.items() if offers}):
        return ("ttft and tpot: each can be kept, no worker that fits into memory keeps both",)
    devices = len(table.best["both"]) - 1
    if not (top := best_on(table, devices)).rate:
        fewest = min(offer.devices for offers in table.offers.values() for offer in offers)
        return (f"devices: a worker needs {fewest:,}, more than the {question.devices:,} of the question",)
    return (f"rate: {question.file.requests.rate:g} a second are asked, {devices:,} devices serve {top.rate / UNITS:.6g} at most",)


def _complete(roles: set[str]) -> bool:
    """Whether workers of these parts serve requests."""
    return "both" in roles or {"prefill", "decode"} <= roles
