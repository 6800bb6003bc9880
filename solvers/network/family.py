"""Bandwidths of a network as a problem type: answers, their judge, and bounds recomputed from multipliers."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import fsum, inf, sqrt
from typing import Any

from crossopt.crossflow.astra.collective import fluid_bytes
from crossopt.formulation.network import (
    Multipliers,
    Options,
    Program,
    bound_of,
    broken_rows,
    cut,
    least_point,
    options_of,
    part_of,
    program_of,
    weighed_bound,
)
from crossopt.instances.files.units import format_quantity
from crossopt.instances.network.question import NetworkFile, NetworkQuestion, WorkloadSection, cost_of, loads_of
from crossopt.solvers.answer import Baseline, Number, Result, Verdict, Watch
from crossopt.solvers.family import ProblemType, Proved, lazy_import, rules_of
from crossopt.solvers.proofs import Tangent, Tangents

# Bandwidths of a network, and their judge: times of the workloads from the question's own figures, the cost, and every limit.

# Bandwidths of a network, and what the judge says of them.


@dataclass(frozen=True, slots=True)
class Bandwidths:
    """Of an NPU on each dimension, bytes a second."""

    bandwidths: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Exchanged:
    """Collectives of one sort: bytes and seconds on each dimension, of which the longest is their time."""

    workload: str
    collective: str
    bytes: tuple[float, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Network:
    """What a network does."""

    times: tuple[float, ...]
    """Seconds of each workload, its work and its collectives."""
    exchanged: tuple[Exchanged, ...]
    total: float
    """Bytes a second of all dimensions together."""
    cost: float | None
    """USD; None where a dimension has no price."""


# The judge of bandwidths: times of the workloads from the question's own figures, the cost, and every limit counted exactly.


def judge(question: NetworkQuestion, answer: Bandwidths) -> Verdict[Network]:
    """Seconds, weighted, of all workloads, or these times the cost; a ValueError if the answer does not belong to the question."""
    rates, file = answer.bandwidths, question.file
    if len(rates) != len(file.dimensions):
        raise ValueError(f"{len(rates)} bandwidths are given for {len(file.dimensions)} dimensions")
    if not all(0.0 < rate < inf for rate in rates):
        raise ValueError("bandwidths must be above 0")
    exchanged = [list(_exchanged(file, workload, rates)) for workload in file.workloads]
    times = tuple(
        fsum((workload.compute, *(max(collective.seconds) for collective in sorts)))
        for workload, sorts in zip(file.workloads, exchanged, strict=True)
    )
    cost = cost_of(file, rates)
    value = fsum(workload.weight * time for workload, time in zip(file.workloads, times, strict=True))
    value = value * cost if file.objective == "time_cost" and cost is not None else value
    details = Network(times, tuple(collective for sorts in exchanged for collective in sorts), fsum(rates), cost)
    return Verdict(value, tuple(_violations(question, rates)), details)


def _exchanged(file: NetworkFile, workload: WorkloadSection, rates: tuple[float, ...]) -> Iterator[Exchanged]:
    for section in workload.collectives:
        sizes = fluid_bytes(section.collective, section.bytes * section.count, section.group)
        seconds = tuple(load / rate for load, rate in zip(loads_of(file, section), rates, strict=True))
        yield Exchanged(workload.name, section.collective, sizes, seconds)


def _violations(question: NetworkQuestion, rates: tuple[float, ...]) -> Iterator[str]:
    dimensions = question.file.dimensions
    for dimension, rate, low, high in zip(dimensions, rates, question.lows, question.highs, strict=True):
        bandwidth = format_quantity(rate, "bandwidth")
        if dimension.options is not None and rate not in dimension.options:
            yield f"{dimension.name}: {bandwidth} is not among the options"
        elif not low <= rate <= high:
            yield f"{dimension.name}: {bandwidth} is not within {format_quantity(low, 'bandwidth')} and its highest value"
    for more, less in question.descending:
        if rates[more] < rates[less]:
            yield f"{dimensions[more].name} has less than {dimensions[less].name}"
    for row in question.rows:
        used = sum(Fraction(factor) * Fraction(rate) for factor, rate in zip(row.factors, rates, strict=True))
        if used > Fraction(row.most):
            yield f"{row.name}: {abs(float(used)) / row.unit:.15g} where {abs(row.most) / row.unit:.15g} is the limit"


# The problem type, and its bounds.

# Why no bandwidths keep the limits: the least ones that keep ends and orders already break one, or the most are too few.


def why_none(question: NetworkQuestion) -> tuple[str, ...]:
    """In words; none where some bandwidths keep all limits."""
    program = program_of(question)
    least = least_point(program, options_of(question))
    if least is None:
        return ("what dimensions have at the least, in the order that is asked for, is more than one of them may have",)
    broken = [row for row in broken_rows(program, least) if min(program.rows[row][0]) >= 0.0]
    if broken:
        names = [question.rows[row].name for row in broken]
        return tuple(f"{name}: the least bandwidths of all dimensions already take more" for name in names)
    minimum, most = question.file.budget.at_least, most_together(question)
    if minimum is not None and most < Fraction(minimum):
        return (f"budget.at_least: all dimensions together may have {float(most) / 1e9:.6g} GB/s at the most",)
    return ()


def most_together(question: NetworkQuestion) -> Fraction | float:
    """The most that all dimensions may have together, within their ends and orders; counted exactly."""
    highs = list(question.highs)
    for more, less in question.descending:
        highs[less] = min(highs[less], highs[more])
    return sum(map(Fraction, highs)) if max(highs) < inf else inf


# Bounds recomputed from multipliers, for every part of the catalogues, without an engine or a solver.

_MOST = 100_000


def prove(question: NetworkQuestion, saved: Result[Bandwidths, Network], _: Watch) -> Proved:
    """Recompute the bound."""
    if not isinstance(saved.proof, Tangents):
        return Proved((), ("proof: bounds on bandwidths are shown by multipliers",))
    try:
        shown = shown_by(question, saved.proof)
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        return Proved((), (f"proof: {error}",))
    claimed = inf if saved.bound is None else saved.bound
    parts = len(saved.proof.tangents)
    fault = f"bound: its multipliers show {shown!r}, the result claims {claimed!r}"
    done = f"a bound was counted anew from the multipliers of {parts:,} programs"
    return Proved((done,), () if claimed <= shown else (fault,), by=_called(question, parts))


def _called(question: NetworkQuestion, programs: int) -> str:
    """What a proof by so many programs is called."""
    if why_none(question):
        return "no bandwidths keep the limits"
    if question.file.objective == "time_cost":
        return f"convex duality at {programs - 1} costs"
    return f"convex duality in {programs:,} parts of the catalogues" if programs > 1 else "convex duality"


def shown_by(question: NetworkQuestion, proof: Tangents) -> float:
    """The bound that multipliers show; infinite where nothing keeps the limits, a ValueError where they do not belong to the question."""
    if why_none(question):
        return inf
    if len(proof.branches) > _MOST or len(proof.tangents) > _MOST:
        raise ValueError(f"more than {_MOST:,} parts exceed the limit of `check`")
    if question.file.objective == "time_cost":
        if proof.branches != (None,) or not 1 <= len(proof.tangents) <= 1_000:
            raise ValueError("time times cost is bounded by multipliers of one part")
        return weighed_bound(question, _multipliers(proof.tangents[0]), [_multipliers(tangent) for tangent in proof.tangents[1:]])[0]
    program, least = program_of(question), inf
    parts = list(_parts(options_of(question), proof.branches))
    if len(parts) != len(proof.tangents):
        raise ValueError(f"{len(proof.tangents)} sets of multipliers are given for {len(parts)} parts")
    for options, tangent in zip(parts, proof.tangents, strict=True):
        own = part_of(program, options)
        least = min(least, inf if own is None else question.compute + bound_of(own, _multipliers(tangent)))
    return least


def _parts(root: Options, branches: tuple[tuple[int, int] | None, ...]) -> Iterator[Options]:
    """The leaves of a tree of branches, which lists each node before its parts, from the root down."""
    waiting = [root]
    for branch in branches:
        if not waiting:
            raise ValueError("there are more branches than parts")
        options = waiting.pop()
        if branch is None:
            yield options
        else:
            waiting += reversed(cut(options, *branch))
    if waiting:
        raise ValueError("a part has neither branches nor multipliers")


def _multipliers(tangent: Tangent) -> Multipliers:
    return Multipliers(tangent.shares, tangent.prices)


# Rules to compare with: as much bandwidth on every dimension, as much money, and shares by the bytes that dimensions carry.
#
# With b_d the weighted bytes of all collectives on dimension d:
#
#     by bytes            B_d ~ b_d, so that all dimensions are busy equally long
#     by root of bytes    B_d ~ sqrt(b_d / p_d), the least of  sum b_d / B_d  for a sum of p_d B_d: Kleinrock's square-root assignment
#                         of capacities (Communication Nets 1964), without the waiting that his messages have; p_d are the prices where
#                         cost is what is limited, and 1 elsewhere
#
# The second is the optimum where each collective uses one dimension alone, as none then waits for the slowest of several.

_HALVINGS, _LITTLE = 60, 1e-6


def baselines_of(question: NetworkQuestion) -> tuple[Baseline[Bandwidths], ...]:
    """All rules; those of money where dimensions have prices."""
    rules = {"equal bandwidths": (1.0,) * len(question.lows)}
    if question.costs is not None and min(question.costs) > 0.0:
        rules["equal spending"] = tuple(1.0 / cost for cost in question.costs)
    rules |= {"by bytes": _bytes_of(question), "by root of bytes": _rooted(question)}
    found = [(name, _along(question, weights)) for name, weights in rules.items()]
    return tuple(Baseline(name, None, answer, "" if answer else "no such bandwidths keep the limits") for name, answer in found)


def equal_split(question: NetworkQuestion) -> Bandwidths | None:
    """As much on every dimension; None where that keeps no limits."""
    return _along(question, (1.0,) * len(question.lows))


def by_bytes(question: NetworkQuestion) -> Bandwidths | None:
    """In proportion to bytes; None where that keeps no limits."""
    return _along(question, _bytes_of(question))


def by_root(question: NetworkQuestion) -> Bandwidths | None:
    """By the root of bytes; None where that keeps no limits."""
    return _along(question, _rooted(question))


def _bytes_of(question: NetworkQuestion) -> tuple[float, ...]:
    """That each dimension carries, by weight, and a little for those that carry nothing."""
    found = [fsum(sent.weight * sent.bytes[dimension] for sent in question.sent) for dimension in range(len(question.lows))]
    least = max(found) * _LITTLE or 1.0
    return tuple(max(size, least) for size in found)


def _rooted(question: NetworkQuestion) -> tuple[float, ...]:
    prices = (1.0,) * len(question.lows)
    if question.costs is not None and min(question.costs) > 0.0 and question.file.budget.total is None:
        prices = question.costs
    return tuple(sqrt(size / price) for size, price in zip(_bytes_of(question), prices, strict=True))


def _along(question: NetworkQuestion, weights: tuple[float, ...]) -> Bandwidths | None:
    """The most in these proportions, but for ends and options, that the budgets let be; for `time_cost` the least that they ask for."""
    program = part_of(program_of(question), options_of(question))
    if program is None:
        return None
    lacking = question.file.budget.at_least is not None
    low, high = 0.0, max(rate / weight for rate, weight in zip((_reach(program)), weights, strict=True))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = not broken_rows(program, _at(question, program, weights, middle))
        low, high = (low, middle) if fits == lacking else (middle, high)
    point = _at(question, program, weights, high if lacking else low)
    return None if broken_rows(program, point) else Bandwidths(point)


def _reach(program: Program) -> list[float]:
    least_sum = max([-most for most in program.most], default=0.0)
    return [high if high < inf else 4.0 * low + 2.0 * least_sum for low, high in zip(program.lows, program.highs, strict=True)]


def _at(question: NetworkQuestion, program: Program, weights: tuple[float, ...], share: float) -> tuple[float, ...]:
    found = list[float]()
    for weight, low, high, options in zip(weights, program.lows, program.highs, options_of(question), strict=True):
        wanted = min(max(share * weight, low), high)
        found.append(wanted if options is None else max(option for option in options if option <= wanted))
    return tuple(found)


# Bandwidths of a network as a family of questions: what is asked again, who answers, who judges, what proves.

_ENGINES = "crossopt.solvers.network.engines"
_TANGENTS = lazy_import(_ENGINES, "tangents")


def _described(question: NetworkQuestion) -> dict[str, Any]:
    return {"unit": "s" if question.file.objective == "time" else "s USD"}


def _lowered(question: NetworkQuestion, bound: Number) -> Number:
    """The bound less what the judge's sums may lose."""
    del question
    return bound * (1.0 - 2.0**-44)


FAMILY: ProblemType[NetworkQuestion, Bandwidths, Network] = ProblemType(
    kind="network",
    what="network",
    unit="s",
    answer=Bandwidths,
    details=Network,
    engines={
        "auto": _TANGENTS,
        "tangents": _TANGENTS,
        "equal": lazy_import(_ENGINES, "equal"),
        "bytes": lazy_import(_ENGINES, "in_proportion"),
        "root": lazy_import(_ENGINES, "by_the_root"),
    },
    judge=judge,
    judged="times, cost, budgets, orders",
    prove=prove,
    reasons=lambda question, _: why_none(question),
    rules=rules_of(baselines_of, "tangents"),
    proof_labels=frozenset(
        {"convex duality", "convex duality in N parts of the catalogues", "convex duality at N costs", "no bandwidths keep the limits"}
    ),
    described=_described,
    least_gap=1e-7,
    lowered=_lowered,
)
