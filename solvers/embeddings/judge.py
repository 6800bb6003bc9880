"""Plans of embedding tables, their judge shard by shard, and the proof of a bound carried out anew."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, nextafter
from typing import Final, TypeVar

from crossopt.formulation.embeddings import (
    SCALE,
    SHARES,
    Multipliers,
    Prices,
    Region,
    Whole,
    everywhere,
    lacks_memory,
    milliseconds,
    price_bound,
    search,
    units,
    whole,
)
from crossopt.instances.embeddings.options import FIGURES, TIERS, Option, PricedOption, devices_of, priced
from crossopt.instances.embeddings.question import EmbeddingsQuestion
from crossopt.instances.embeddings.systems import System, SystemFigures
from crossopt.instances.files.units import format_quantity, rounded_quantity
from crossopt.solvers.answer import Progress, Result, Verdict, Watch
from crossopt.solvers.family import Proved
from crossopt.solvers.proofs import PhaseLeaf, PricedCounts, PricedPhases, PricedTiers, UnverifiedBound

BY_PRICES: Final = "prices of memory"
BY_COUNTS: Final = "prices of memory for each number of devices"
BY_PHASES: Final = "prices of memory in regions of the slowest of each phase"
BY_SEARCH: Final = "a search of all plans with prices of memory"
KEYS: Final = ("size", "dimension", "lookups", "size-lookup", "cost", "random")
"""Of greedy rules."""
NO_PROPOSAL, NO_ROOM = "no proposal fits", "no room for some table"
"""Why there is no such baseline."""


def key_name(key: str) -> str:
    """What the greedy rule by a key is called."""
    return "random" if key == "random" else f"greedy by {key}"


MOST_NODES: Final = 2_000_000
"""Nodes of a search that a check repeats."""


@dataclass(frozen=True, slots=True)
class TablePlan:
    """How a table lies: devices of its pieces, or nodes where each piece is cut by rows over a node; none where all devices hold it."""

    option: Option
    places: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class EmbeddingPlan:
    """Tables in the order of the question."""

    tables: tuple[TablePlan, ...]
    system: System | None = None
    """What else was chosen, where the question leaves it open."""
    devices: int | None = None
    """How many there are, where the fewest are asked for."""


@dataclass(frozen=True, slots=True)
class EmbeddingFigures:
    """What a plan does, in milliseconds and bytes."""

    slowest: float
    """Time of the slowest device."""
    step: float
    """Sum of the slowest of each phase."""
    mean: float
    phases: tuple[float, ...]
    """The slowest of each phase, in the order of FIGURES."""
    loads: tuple[float, ...]
    """Time of each device."""
    by_phase: tuple[tuple[float, ...], ...]
    """Time of each device in each phase."""
    memory: tuple[tuple[int, int, int], ...]
    """Bytes of each device by tier."""
    system: SystemFigures | None = None
    """Of what else was chosen; all figures above are of the tables alone."""


def judge(question: EmbeddingsQuestion, answer: EmbeddingPlan) -> Verdict[EmbeddingFigures]:
    """Value, broken limits and figures; a ValueError where a table lies as the question does not offer."""
    group = question.group
    if (question.file.objective == "fewest_devices") != (answer.devices is not None):
        raise ValueError("the number of devices is a part of the answer where the fewest are asked for, and nowhere else")
    if answer.devices is not None:
        return _judged_count(question, answer, answer.devices)
    if len(answer.tables) != len(question.tables):
        raise ValueError(f"{len(answer.tables):,} tables are placed, and there are {len(question.tables):,}")
    everywhere, full = [0] * len(FIGURES), [0] * len(TIERS)
    times = [[0] * len(FIGURES) for _ in range(group.devices)]
    memory = [[0] * len(TIERS) for _ in range(group.devices)]
    offered = [{option.option: option for option in options} for options in question.options]
    for table, kind, held in zip(question.tables, question.types, answer.tables, strict=True):
        if held.option not in offered[kind]:
            raise ValueError(f"the question does not offer {option_text(held.option)} for the table {table.name}")
        option = priced(table, held.option, question.choices, group)
        if fault := _misplaced(question, option, held.places):
            raise ValueError(f"the table {table.name}: {fault}")
        figures = [units(figure) for figure in option.figures]
        where = [(everywhere, full)]
        if option.spread != "all":
            devices = devices_of(option.spread, held.places, group.per_node, group.devices)
            where = [(times[device], memory[device]) for device in devices]
        for own, used in where:
            for index, figure in enumerate(figures):
                own[index] += figure
            for tier, amount in enumerate(option.memory):
                used[tier] += amount
    times = [[sum(pair) for pair in zip(own, everywhere, strict=True)] for own in times]
    memory = [[sum(pair) for pair in zip(used, full, strict=True)] for used in memory]
    loads = [sum(own) for own in times]
    phases = [max(column) for column in zip(*times, strict=True)]
    slowest, step = milliseconds(max(loads)), milliseconds(sum(phases))
    details = EmbeddingFigures(
        slowest=slowest,
        step=step,
        mean=sum(loads) / (len(loads) << SCALE),
        phases=tuple(map(milliseconds, phases)),
        loads=tuple(map(milliseconds, loads)),
        by_phase=tuple(tuple(map(milliseconds, own)) for own in times),
        memory=tuple((used[0], used[1], used[2]) for used in memory),
    )
    return Verdict(step if question.file.objective == "step" else slowest, tuple(_overfull(question, memory)), details)


def _judged_count(question: EmbeddingsQuestion, answer: EmbeddingPlan, devices: int) -> Verdict[EmbeddingFigures]:
    """A plan on so many devices, whose slowest one may have to stay within a time."""
    if devices not in question.counts:
        raise ValueError(f"{devices:,} devices are neither some of one node nor whole nodes of the cluster")
    found, most = judge(question.on(devices), replace(answer, devices=None)), question.within
    late = () if most is None or found.value <= most else (f"the slowest device takes {found.value!r} ms, more than {most!r}",)
    return Verdict(devices, (*found.violations, *late), found.details)


def _misplaced(question: EmbeddingsQuestion, option: PricedOption, places: tuple[int, ...]) -> str:
    """What is wrong with the places of a table; empty if nothing is."""
    spread, count = option.spread, 0 if option.spread == "all" else option.pieces
    if len(places) != count:
        return f"{len(places)} places are given for {count} pieces"
    most = question.nodes if spread == "node" else question.group.devices
    if any(not 0 <= index < most for index in places):
        return f"places are from 0 to {most - 1}"
    if spread == "neighbours" and len({index // question.group.per_node for index in places}) > 1:
        return "its pieces are not all in one node"
    if option.distinct and len(set(places)) < count:
        return f"two of its pieces are on one {'node' if spread == 'node' else 'device'}"
    return ""


def _overfull(question: EmbeddingsQuestion, memory: list[list[int]]) -> Iterator[str]:
    """A sentence for the fullest device of each tier that is too full."""
    for tier, name in enumerate(TIERS):
        used = max(own[tier] for own in memory)
        if used > question.capacity[tier]:
            device = next(index for index, own in enumerate(memory) if own[tier] == used)
            shown, room = (format_quantity(float(amount), "bytes") for amount in (used, question.capacity[tier]))
            yield f"{shown} of {name.upper()} on device {device} are more than {room}"


def option_text(option: Option) -> str:
    """An option in a few words."""
    pieces = f" in {option.columns}" if option.columns > 1 else ""
    cache = f" {option.cache:g}" if option.cache else ""
    return f"{option.sharding}{pieces}, {option.kernel}{cache}"


# The proof of a bound, carried out anew.


def prices_of(proof: PricedTiers | PhaseLeaf) -> Prices:
    """Prices in units for a byte; a ValueError where they are none."""
    if len(proof.prices) != len(TIERS) or any(not isfinite(price) or not 0.0 <= price <= 1e300 for price in proof.prices):
        raise ValueError("prices of memory are one from 0 on for each tier")
    hbm, ddr, ssd = (units(price) for price in proof.prices)
    return hbm, ddr, ssd


def prove(question: EmbeddingsQuestion, saved: Result[EmbeddingPlan, EmbeddingFigures], watch: Watch) -> Proved:
    """Evaluate the bound at the stored prices in whole numbers, and search all plans again where a search proved it."""
    proof = saved.proof
    if isinstance(proof, UnverifiedBound):
        return Proved((f"the bound is reported by {proof.by}, not proved again",), unverified=True)
    claimed = inf if saved.bound is None else float(saved.bound)
    if isinstance(proof, PricedCounts):
        return _by_counts(question, proof, claimed, watch)
    if not isinstance(proof, PricedTiers | PricedPhases):
        return Proved((), ("proof: bounds on embedding tables are proved by prices of memory",))
    try:
        if question.file.objective == "fewest_devices":
            raise ValueError("a bound on the number of devices is proved for each smaller number")
        if isinstance(proof, PricedPhases):
            return _by_phases(question, proof, claimed)
        prices = prices_of(proof)
        watch(Progress("prices of memory", None))
        return _by_search(question, proof, prices, claimed) if proof.nodes else _by_prices(question, proof, prices, claimed)
    except ValueError as error:
        return Proved((), (f"proof: {error}",))


def _by_prices(question: EmbeddingsQuestion, proof: PricedTiers, prices: Prices, claimed: float) -> Proved:
    form = whole(question)
    if claimed == inf:
        if proof.limit is not None or proof.weights:
            raise ValueError("a lack of memory has neither a limit nor weights of tables")
        holds = any(not ways for ways in form.ways) or lacks_memory(form, prices)
        fault = "bound: the prices do not show that memory is lacking"
        return Proved(("memory was added up again at the stored prices",), () if holds else (fault,), by=BY_PRICES)
    if proof.limit is not None and not (isfinite(proof.limit) and proof.limit >= 0.0):
        raise ValueError("a limit is a time from 0 on")
    _check_weights(form, proof.weights, (0,) * (form.phases if all(form.ways) else 0))
    shown = price_bound(form, Multipliers(prices, proof.limit, proof.weights))
    value = inf if shown is None else shown
    fault = f"bound: the prices show {value!r} ms, the result claims {claimed!r}"
    return Proved(("the bound was evaluated again in whole numbers",), () if claimed <= value else (fault,), by=BY_PRICES)


def _check_weights(form: Whole, weights: Iterable[tuple[int, int, int]], floors: tuple[int, ...]) -> None:
    """A ValueError where the weights of a phase do not add up to a whole at most."""
    beside, fault = [*floors], "types of tables of the question have shares of a phase, which add up to a whole at most"
    if any(not 0 <= floor <= SHARES for floor in floors):
        raise ValueError(fault)
    for phase, kind, share in weights:
        if not 0 <= phase < len(beside) or not 0 <= kind < len(form.ways) or share < 0 or share + beside[phase] > SHARES:
            raise ValueError(fault)
        beside[phase] += share


R = TypeVar("R")
"""A part of a tree."""
C = TypeVar("C")
"""Where a part is cut in two."""
L = TypeVar("L")
"""What bounds a part that is not cut."""


def leaves_of(root: R, cuts: Sequence[C | None], leaves: Sequence[L], halves: Callable[[R, C], tuple[R, R]]) -> Iterator[tuple[R, L]]:
    """The parts of a tree of cuts, listed in preorder with None for a leaf, with their bounds; a ValueError where these do not match."""
    parts, bounds = [root], iter(leaves)
    for cut in cuts:
        if not parts:
            raise ValueError("there are more cuts than parts")
        part = parts.pop()
        if cut is not None:
            parts += reversed(halves(part, cut))
        elif (leaf := next(bounds, None)) is None:
            raise ValueError("a part has no bound")
        else:
            yield part, leaf
    if parts or next(bounds, None) is not None:
        raise ValueError("parts or bounds are left over")


def _by_phases(question: EmbeddingsQuestion, proof: PricedPhases, claimed: float) -> Proved:
    """Walk the tree of regions, and evaluate the bound of each leaf."""
    form, least = whole(question), inf
    if not form.step or not all(form.ways):
        raise ValueError("regions of phases are for tables that all fit, where the slowest of each phase counts")

    def halves(region: Region, cut: tuple[int, float]) -> tuple[Region, Region]:
        phase, time = cut
        if not 0 <= phase < form.phases or not isfinite(time) or not region.least[phase] < time < region.below[phase]:
            raise ValueError("a cut is outside of its region")
        return region.halves(phase, time)

    for region, leaf in leaves_of(everywhere(form), proof.cuts, proof.leaves, halves):
        if len(leaf.floors) != form.phases:
            raise ValueError("each phase of a region has a floor")
        _check_weights(form, leaf.weights, leaf.floors)
        shown = price_bound(form, Multipliers(prices_of(leaf), None, leaf.weights, leaf.floors), region)
        least = min(least, inf if shown is None else shown)
    faults = () if claimed <= least else (f"bound: the regions show {least!r} ms, the result claims {claimed!r}",)
    text = f"the bounds of {len(proof.leaves):,} regions of the slowest of each phase were evaluated again"
    return Proved((text,), faults, by=BY_PHASES)


def _by_search(question: EmbeddingsQuestion, proof: PricedTiers, prices: Prices, claimed: float) -> Proved:
    if not 0 < proof.nodes <= MOST_NODES or proof.limit is not None or proof.weights:
        raise ValueError(f"a search has 1 to {MOST_NODES:,} nodes, and neither a limit nor weights of tables")
    found = search(whole(question), prices, None if claimed == inf else least_units(claimed), proof.nodes)
    faults = [] if found.complete else [f"proof: the search takes more than {proof.nodes:,} nodes"]
    if found.value is not None:
        faults.append(f"bound: a plan takes {milliseconds(found.value)!r} ms, the result claims {claimed!r}")
    if found.complete and max(found.nodes, 1) != proof.nodes:
        faults.append(f"proof: the search takes {found.nodes:,} nodes, the result says {proof.nodes:,}")
    return Proved((f"all plans were searched again, in {found.nodes:,} nodes",), tuple(faults), by=BY_SEARCH)


def _by_counts(question: EmbeddingsQuestion, proof: PricedCounts, claimed: float, watch: Watch) -> Proved:
    """Show for each smaller number of devices that there is no plan, or none in time."""
    counts = question.counts
    if question.file.objective != "fewest_devices" or len(proof.tiers) > len(counts):
        return Proved((), ("proof: a bound on the number of devices is for questions about the fewest",))
    shown = (*counts, inf)[len(proof.tiers)]
    faults = [] if claimed <= shown else [f"bound: {shown} devices are not excluded, the result claims {claimed!r}"]
    for devices, tiers in zip(counts, proof.tiers, strict=False):
        watch(Progress(f"{devices:,} devices", None))
        if fault := _not_excluded(question.on(devices), tiers, question.within):
            faults.append(f"proof: {devices:,} devices: {fault}")
            break
    text = f"each number of devices below {shown} was excluded again" if proof.tiers else "a single device is the fewest that there are"
    return Proved((text,), tuple(faults), by=BY_COUNTS)


def _not_excluded(question: EmbeddingsQuestion, proof: PricedTiers, within: float | None) -> str:
    """Why a proof does not show that no plan stays within memory and time; empty if it does."""
    try:
        prices = prices_of(proof)
        beyond = inf if within is None else nextafter(within, inf)
        if proof.nodes:
            shown = _by_search(question, proof, prices, beyond)
        else:
            form = whole(question)
            lacking = not all(form.ways) or (proof.limit is None and not proof.weights and lacks_memory(form, prices))
            shown = _by_prices(question, proof, prices, inf if lacking and proof.limit is None else beyond)
    except ValueError as error:
        return str(error)
    label = f"it is called {proof.by!r}, and is by {shown.by!r}" if proof.by != shown.by else ""
    return shown.refused[0] if shown.refused else label


def least_units(value: float) -> int:
    """Units from which on a time is shown as this one or more."""
    below = units(nextafter(value, -inf)) if value > 0.0 else 0
    middle = (below + units(value)) // 2
    return middle if milliseconds(middle) >= value else middle + 1


# Why no plan fits: the largest table, the sum, or what of both.


def _size(amount: float) -> str:
    return rounded_quantity(float(amount), "bytes")


def reasons_of(question: EmbeddingsQuestion, form: Whole) -> tuple[str, ...]:
    """Sentences, the most telling first."""
    return (
        tuple(_homeless(question, form))
        or tuple(_lacking(question, form))
        or (
            f"no plan of {len(question.tables):,} tables on {question.group.devices:,} devices keeps the memory of each device, "
            "although each table fits alone and each tier suffices by itself",
        )
    )


def _homeless(question: EmbeddingsQuestion, form: Whole) -> Iterator[str]:
    """Tables of which no piece fits into any device."""
    homeless = [table for table, kind in zip(question.tables, question.types, strict=True) if not form.ways[kind]]
    if not homeless:
        return

    def beyond(memory: tuple[int, int, int]) -> int:
        return sum(max(amount - room, 0) for amount, room in zip(memory, question.capacity, strict=True))

    least = {
        table.name: min((option.memory for option in question.options[kind]), key=beyond)
        for table, kind in zip(question.tables, question.types, strict=True)
        if not form.ways[kind]
    }
    worst = max(homeless, key=lambda table: beyond(least[table.name]))
    more = f" ({len(homeless):,} tables are too large)" if len(homeless) > 1 else ""
    allowed = [item for item in question.file.choices.sharding if not worst.sharding or item in worst.sharding]
    unused = [item for item in ("row", "column") if item not in allowed]
    hint = f"allow {' or '.join(unused)}" if unused else "allow another kernel, or take more devices"
    yield f"the piece nearest to fitting of the table {worst.name} takes {_memory(least[worst.name])}, more than a device has{more}: {hint}"


def _memory(amounts: tuple[int, int, int]) -> str:
    shown = [f"{_size(amount)} of {tier.upper()}" for amount, tier in zip(amounts, TIERS, strict=True) if amount]
    return " and ".join(shown)


def _lacking(question: EmbeddingsQuestion, form: Whole) -> Iterator[str]:
    """Tiers that are too small in all, alone or together."""
    devices = question.group.devices
    for tiers in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
        needed = sum(min(sum(way.stored[tier] for tier in tiers) for way in form.ways[kind]) for kind in question.types)
        room = devices * sum(question.capacity[tier] for tier in tiers)
        if needed > room:
            names = " and ".join(TIERS[tier].upper() for tier in tiers)
            yield f"all tables take {_size(needed)} of {names} at least, and {devices:,} devices have {_size(room)}"
            return


def fewest_reason(question: EmbeddingsQuestion) -> str:
    """Why no number of devices suffices."""
    late = "" if question.within is None else f" within {question.within:g} ms"
    return f"up to {question.group.devices:,} devices have no plan{late}"
