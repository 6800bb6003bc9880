"""The sheet of a network: bandwidth of every dimension, what each collective sends there, how long it takes and who waits for whom."""

from collections.abc import Iterator, Sequence
from math import prod

from crossopt.formulation.network.program import total_time
from crossopt.instances.files.units import format_quantity
from crossopt.instances.network.question import NetworkFile, NetworkQuestion, shares_of
from crossopt.reports.drawing.timeline import Segment, Track
from crossopt.reports.sheets.sheet import Column, Section, Sheet, Table, Timeline, answer_sheet, baselines_in, counts, names, times
from crossopt.solvers.answer import Result
from crossopt.solvers.network.judge import Bandwidths, Network

_SHAPES = {"ring": "ring", "fully_connected": "fully connected", "switch": "switch"}


def sheet(question: NetworkQuestion, result: Result[Bandwidths, Network]) -> Sheet:
    """What is shown."""
    file, details, summary, sections = question.file, result.details, "", tuple[Section, ...]()
    rates = result.answer.bandwidths if result.answer else ()
    if details is not None:
        summary = f"{format_quantity(details.total, 'bandwidth')} to an NPU"
        parts = (_dimensions(question, rates), _exchanged(question, details), _workloads(question, details))
        sections = (*parts, _reached(question, rates))
    figures = [("cost", f"{details.cost:,.0f} USD")] if details is not None and details.cost is not None else []
    words = [_text(rival.answer) for rival in result.rivals]
    return answer_sheet(
        result,
        "network",
        _sentence(question),
        asks="time" if file.objective == "time" else "time times cost",
        summary=summary,
        figures=tuple(figures),
        given=_given(question),
        sections=(*sections, baselines_in("network", result, result.rivals, words)),
        notes=("collectives keep every dimension busy, without latency, and hide behind nothing", *_parts(file)),
        judged="collective by collective",
    )


def _sentence(question: NetworkQuestion) -> str:
    aim = "the workloads are quickest" if question.file.objective == "time" else "time times cost of the workloads is least"
    return f"Which bandwidth does each of the {len(question.lows)} dimensions of {question.name} have, so that {aim}?"


def _given(question: NetworkQuestion) -> tuple[tuple[str, str], ...]:
    file, budget = question.file, question.file.budget
    shapes = " x ".join(f"{_SHAPES[one.shape]} {one.size}" for one in file.dimensions)
    rows = [("network", f"{shapes}, {prod(one.size for one in file.dimensions):,} NPUs")]
    amounts = (("total", budget.total, "bandwidth"), ("cost", budget.cost, "money"), ("together at least", budget.at_least, "bandwidth"))
    rows += [(name, format_quantity(amount, unit)) for name, amount, unit in amounts if amount is not None]
    rows += [("no less than the next one", ", ".join(file.descending))] if file.descending else []
    rows += [(" and ".join(one.dimensions), f"{format_quantity(one.at_most, 'bandwidth')} together at the most") for one in file.together]
    return tuple(rows)


def _parts(file: NetworkFile) -> Iterator[str]:
    """Dimensions of which a group has only the links among its own, or on which what it sends passes those of others."""
    sections = [section for workload in file.workloads for section in workload.collectives]
    told = dict[tuple[int, bool, int], float]()
    for section in sections:
        for place, share in enumerate(shares_of(file, section)):
            told[place, section.collective == "all_to_all" and file.dimensions[place].shape == "ring", section.group[place]] = float(share)
    for (place, passes, members), part in sorted(told.items()):
        one = file.dimensions[place]
        words = "as all to all it passes the links of others" if passes else "on the links among them"
        if part < 1.0:
            yield f"{members} of the {one.size} of {one.name} have {part:.1%} of its bandwidth, {words}"


def _text(answer: Bandwidths | None) -> str:
    return "" if answer is None else ", ".join(f"{rate / 1e9:.5g}" for rate in answer.bandwidths) + " GB/s"


def _gigabytes(head: str, rates: Sequence[float]) -> Column:
    return Column(f"{head} GB/s", tuple(f"{rate / 1e9:.6g}" for rate in rates), tuple(rates), f"{head} in B/s")


def _dimensions(question: NetworkQuestion, rates: Sequence[float]) -> Section:
    dimensions, total = question.file.dimensions, sum(rates)
    columns = [
        names("dimension", (one.name for one in dimensions)),
        names("shape", (_SHAPES[one.shape] for one in dimensions)),
        counts("NPUs", [one.size for one in dimensions]),
        _gigabytes("bandwidth", rates),
        Column("share", tuple(f"{rate / total:.1%}" for rate in rates), tuple(rate / total for rate in rates)),
    ]
    if question.costs is not None:
        costs = [price * rate for price, rate in zip(question.costs, rates, strict=True)]
        columns.append(Column("cost USD", tuple(f"{cost:,.0f}" for cost in costs), tuple(costs)))
    return Section("Bandwidth of every dimension", (Table(tuple(columns)),))


def _exchanged(question: NetworkQuestion, details: Network) -> Section:
    """A lane for each dimension of each collective, as long as it is busy; the longest is the collective's time."""
    numbered = list(enumerate(details.exchanged, 1))
    rows = [(one, place) for _, one in numbered for place in range(len(one.bytes)) if one.bytes[place]]
    numbers = [number for number, one in numbered for size in one.bytes if size]
    labels = [f"{number}: {one.workload}, {one.collective.replace('_', '-')}" for number, (one, _) in zip(numbers, rows, strict=True)]
    dimensions = [question.file.dimensions[place].name for _, place in rows]
    seconds, waits = [one.seconds[place] for one, place in rows], [max(one.seconds) for one, _ in rows]
    sizes = [one.bytes[place] for one, place in rows]
    busy = [own / whole for own, whole in zip(seconds, waits, strict=True)]
    table = Table(
        (
            names("collectives", labels),
            names("dimension", dimensions),
            Column("MB", tuple(f"{size / 1e6:.6g}" for size in sizes), tuple(sizes), "bytes"),
            times("time", seconds),
            Column("busy", tuple(f"{share:.0%}" for share in busy), tuple(busy)),
        )
    )
    longest = max(seconds, default=0.0)
    tracks = tuple(
        Track(f"{number}: {name}", (Segment(0.0, own, 0), Segment(own, whole, 1, low=True)), f"{size / 1e6:.6g} MB, {own / whole:.0%} busy")
        for number, name, size, own, whole in zip(numbers, dimensions, sizes, seconds, waits, strict=True)
    )
    words = "The slowest dimension of a collective sets its time; the others wait for it."
    drawn = Timeline(("sends", "waits"), tracks[:40], longest, "s of a collective", "the longest", words)
    return Section("What every dimension sends", (drawn, table))


def _workloads(question: NetworkQuestion, details: Network) -> Section:
    workloads = question.file.workloads
    shares = [(time - one.compute) / time if time else 0.0 for one, time in zip(workloads, details.times, strict=True)]
    columns = (
        names("workload", (one.name for one in workloads)),
        times("work", [one.compute for one in workloads]),
        times("whole", details.times),
        Column("exchange", tuple(f"{share:.1%}" for share in shares), tuple(shares)),
        names("weight", (f"{one.weight:g}" for one in workloads)),
    )
    return Section("Time of every workload", (Table(columns),))


_REACHED = (0.9, 0.8, 0.7)
"""Shares of a bandwidth that links reach in practice; what routing and congestion control take is one of these."""


def _reached(question: NetworkQuestion, rates: Sequence[float]) -> Section:
    """How much longer the workloads take where one dimension reaches less of its bandwidth."""
    whole = total_time(question, rates)
    columns = [names("dimension", (one.name for one in question.file.dimensions))]
    for share in _REACHED:
        lowered = [[rate * share if place == own else rate for place, rate in enumerate(rates)] for own in range(len(rates))]
        longer = [total_time(question, one) / whole - 1.0 for one in lowered]
        columns.append(Column(f"at {share:.0%}", tuple(f"+{one:.2%}" for one in longer), tuple(longer)))
    words = "How much longer all takes where one dimension reaches only a share of its bandwidth, the others all of it:"
    return Section("If less bandwidth is reached", (words, Table(tuple(columns))))
