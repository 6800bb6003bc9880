"""Sheets of networks: bandwidths of dimensions, orders of a collective's chunks, and sends over links."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from crossopt.crossflow.astra.collective import SETTINGS, Chunk, Network, Phase, Step, jobs_of, npu_times, steps_of
from crossopt.formulation.network import total_time
from crossopt.instances.files.units import format_quantity
from crossopt.instances.network.collective import CollectiveQuestion, size_of
from crossopt.instances.network.question import NetworkFile, NetworkQuestion, shares_of
from crossopt.instances.network.synthesis import SynthesisQuestion
from crossopt.instances.network.synthesis import size_of as synthesis_size_of
from crossopt.reports.drawing.axes import Segment, Track
from crossopt.reports.sheets.amounts import digits, several, short
from crossopt.reports.sheets.sheet import (
    Column,
    Pairs,
    Part,
    Section,
    Sheet,
    Table,
    Timeline,
    amounts,
    answer_sheet,
    baselines_in,
    counts,
    names,
    times,
)
from crossopt.solvers.answer import Result
from crossopt.solvers.network.collective.family import Chunks, Schedule
from crossopt.solvers.network.family import Bandwidths
from crossopt.solvers.network.family import Network as NetworkAnswer
from crossopt.solvers.network.synthesis.family import Sends, Used

# The sheet of a collective: when every dimension works on which chunk, which orders chunks take, and what each phase is made of.

_MESSAGES = 64
"""NPUs along a dimension of which every message is counted."""
_SAID = 3
"""Orders of the short answer."""
_KINDS = ("reduce_scatter", "all_gather", "all_to_all", "all_reduce")


def collective_sheet(question: CollectiveQuestion, result: Result[Chunks, Schedule]) -> Sheet:
    """What is shown."""
    details, answer, sections, summary = result.details, result.answer, tuple[Section, ...](), ""
    figures, meaning = tuple[tuple[str, str], ...](), tuple[tuple[str, str], ...]()
    if details is not None and answer is not None and result.value is not None:
        summary = _collective_text(answer)
        sections = (_schedule(question, details, int(result.value)), _orders(question, answer), _phases(question, answer))
        figures = (("time under FCFS", short(details.fifo, "ns")),)
        meaning = (("busiest", _busiest(question, details, int(result.value))),)
    sections = (*sections, _simulated(question, result.bound))
    texts = [_collective_text(baseline.answer) for baseline in result.baselines]
    phases = " in phases of reduce-scatter and all-gather" if question.collective == "all_reduce" else ""
    return answer_sheet(
        result,
        "schedule",
        f"How many chunks, and in which orders over the dimensions, make the {question.collective.replace('_', '-')} of "
        f"{question.name} quickest?",
        asks="time",
        summary=summary,
        answer_rows=(("schedule", f"{summary}: {_orders_text(question, answer)}"),) if answer is not None and summary else (),
        figures=figures,
        meaning_rows=meaning,
        given=_collective_given(question),
        sections=(*sections, baselines_in("schedule", result, result.baselines, texts)),
        among=f" of equal chunks{phases}, one chunk at a time on a dimension",
        judged="phase by phase",
    )


def _collective_given(question: CollectiveQuestion) -> tuple[tuple[str, str], ...]:
    links = [
        f"{dim.name}: {dim.algorithm.replace('_', ' and ')}, {format_quantity(dim.bandwidth, 'bandwidth')}, "
        f"{format_quantity(dim.latency, 'time')}"
        for dim in question.file.dimensions
    ]
    deadline = (("deadline", digits(question.deadline, "ns")),) if question.deadline is not None else ()
    return (("collective", size_of(question)), *(("links" if not index else "", line) for index, line in enumerate(links)), *deadline)


def _collective_text(answer: Chunks | None) -> str:
    return "" if answer is None else f"{several(len(answer.orders), 'chunk')} in {several(len(set(answer.orders)), 'order')}"


def _busiest(question: CollectiveQuestion, details: Schedule, value: int) -> str:
    """The dimension that works the longest."""
    longest = max(range(len(details.busy)), key=lambda number: details.busy[number])
    return f"dimension {question.file.dimensions[longest].name}, {details.busy[longest] / value:.1%} of the time"


def _orders_text(question: CollectiveQuestion, answer: Chunks) -> str:
    """The orders that most chunks take."""
    taken = Counter(answer.orders).most_common()
    texts = [" > ".join(question.file.dimensions[dim].name for dim in order) for order, _ in taken[:_SAID]]
    return f"{'; '.join(texts)}{f' and {len(taken) - _SAID} more' if len(taken) > _SAID else ''}"


def _schedule(question: CollectiveQuestion, details: Schedule, value: int) -> Section:
    """A lane for each dimension, and how much of the time it works."""
    tracks, used = [], [kind for kind in _KINDS if any(run.collective == kind for run in details.runs)]
    for number, dimension in enumerate(question.file.dimensions):
        runs = [run for run in details.runs if run.dimension == number]
        segments = tuple(Segment(run.start / 1e6, run.end / 1e6, used.index(run.collective)) for run in runs)
        tracks.append(Track(dimension.name, segments, f"{details.busy[number] / value:.1%} busy"))
    kinds = tuple(kind.replace("_", "-") for kind in used)
    text = f"The last chunk is done after {digits(value, 'ns')}."
    if details.fifo > value:
        text += (
            f" ASTRA-sim serves chunks in order of arrival and takes no other sequence: the time there is {digits(details.fifo, 'ns')} so."
        )
    timeline = Timeline(kinds, tuple(tracks), value / 1e6, "ms", "done", text)
    table = Table(
        (
            names("dimension", (item.name for item in question.file.dimensions)),
            counts("busy ns", list(details.busy)),
            Column("utilisation", tuple(f"{item / value:.1%}" for item in details.busy), tuple(item / value for item in details.busy)),
        )
    )
    return Section("When every dimension works", (timeline, table))


def _orders(question: CollectiveQuestion, answer: Chunks) -> Section:
    taken = Counter(answer.orders)
    dimensions = question.file.dimensions
    rows = [(" > ".join(dimensions[dim].name for dim in order), count) for order, count in taken.most_common()]
    return Section(
        "Orders of the chunks", (Table((names("order", (name for name, _ in rows)), counts("chunks", [count for _, count in rows]))),)
    )


def _phases(question: CollectiveQuestion, answer: Chunks) -> Section:
    """Each phase of a chunk in each order that is taken: a delay at first, and then its steps, one after another."""
    lines = list(_lines(question, answer))
    delay = question.network.endpoint.delay
    start = digits(delay, "ns")
    text = f"A phase takes {start} at first, and then steps x (flight of a message + {start}) + sums of what arrived."
    columns = (
        names("order", (order for order, _, _, _ in lines)),
        names("phase", (phase for _, phase, _, _ in lines)),
        counts("bytes", [size for _, _, size, _ in lines]),
        names("steps", (step for _, _, _, step in lines)),
    )
    return Section("What each phase is made of", (text, Table(columns, most=24)))


def _simulated(question: CollectiveQuestion, bound: float | None) -> Section:
    """What the simulator itself says, by its settings, of every number of chunks."""
    network = replace(question.network, active_chunks=question.file.active_chunks)
    single = len(network.dimensions) == 1
    few = max(dim.size for dim in network.dimensions) <= _MESSAGES
    columns, below = [names("chunks", (f"{option:,}" for option in question.options))], list[str]()
    for name, setting in SETTINGS.items():
        if setting.congestion and not (single and few):
            continue
        if not few and any(dim.algorithm == "direct" and dim.shape == "ring" for dim in network.dimensions):
            continue
        found = [npu_times(question.collective, question.size, option, network, setting)[0] for option in question.options]
        columns.append(counts(f"{name} ns", found))
        if bound is not None and min(found) < bound:
            below.append(name)
    text = f"First come first served, {several(network.active_chunks, 'chunk')} at once on a dimension; Themis counts with single links, "
    text += "and its flexible chunks are of unequal sizes, which the answer is not compared with."
    parts: tuple[Part, ...] = (text, Table(tuple(columns)), *_other_ways(question, network, below))
    return Section("Comparison with ASTRA-sim", parts if len(columns) > 1 else ())


def _other_ways(question: CollectiveQuestion, network: Network, below: Sequence[str]) -> Iterator[str]:
    """Why figures of some settings lie below what is proved here."""
    reasons = [f"{network.active_chunks:,} chunks at once on a dimension, each as if alone"] if network.active_chunks > 1 else []
    if question.collective == "all_reduce" and any(SETTINGS[name].passing != "two_way" for name in below):
        reasons.append("one merged all-reduce in the last dimension instead of a reduce-scatter and an all-gather")
    if any(SETTINGS[name].scheduling == "themis_flexible" for name in below):
        reasons.append("chunks of unequal sizes")
    if reasons and below:
        yield f"Figures of {', '.join(below)} lie below the proved bound, as they are of schedules with {', or with '.join(reasons)}."


def _lines(question: CollectiveQuestion, answer: Chunks) -> Iterator[tuple[str, str, int, str]]:
    size = question.size // answer.chunks
    for order in dict.fromkeys(answer.orders):
        (job,) = jobs_of([Chunk(size, order)], question.collective, question.network, "two_way")
        name = " > ".join(question.file.dimensions[dim].name for dim in order)
        for operation in job:
            phase = operation.phase
            text = f"{phase.collective.replace('_', '-')} on {question.file.dimensions[phase.dimension].name}"
            yield name, text, phase.bytes, f"{_steps(question, phase)} = {operation.duration:,}"
            name = ""


def _steps(question: CollectiveQuestion, phase: Phase) -> str:
    steps = steps_of(phase, question.network.dimensions[phase.dimension], question.network.endpoint)
    delay = question.network.endpoint.delay
    return " + ".join([f"{delay:,}", *(_step(step, delay) for step in steps)])


def _step(step: Step, delay: int) -> str:
    times = f"{step.count:,} x " if step.count > 1 else ""
    return f"{times}({step.flight:,} + {delay:,})" + (f" + {step.reduction:,}" if step.reduction else "")


# The sheet of a network: bandwidth of every dimension, what each collective sends there, how long it takes and who waits for whom.

_SHAPES = {"ring": "ring", "fully_connected": "fully connected", "switch": "switch"}


def network_sheet(question: NetworkQuestion, result: Result[Bandwidths, NetworkAnswer]) -> Sheet:
    """What is shown."""
    file, details, summary, sections = question.file, result.details, "", tuple[Section, ...]()
    rates = result.answer.bandwidths if result.answer else ()
    if details is not None:
        summary = f"{format_quantity(details.total, 'bandwidth')} to an NPU"
        parts = (_dimensions(question, rates), _exchanged(question, details), _workloads(question, details))
        sections = (*parts, _reached(question, rates))
    figures = [("cost", f"{details.cost:,.0f} USD")] if details is not None and details.cost is not None else []
    texts = [_text(baseline.answer) for baseline in result.baselines]
    return answer_sheet(
        result,
        "network",
        _sentence(question),
        asks="time" if file.objective == "time" else "time times cost",
        summary=summary,
        answer_rows=_bandwidth_rows(question, rates),
        figures=tuple(figures),
        meaning_rows=() if details is None else (("step times", _times_text(question, details)),),
        given=_given(question),
        sections=(*sections, baselines_in("network", result, result.baselines, texts)),
        notes=("collectives keep every dimension busy, without latency, and are not overlapped with computation", *_parts(file)),
        judged="collective by collective",
    )


def _sentence(question: NetworkQuestion) -> str:
    aim = "the workloads are quickest" if question.file.objective == "time" else "time times cost of the workloads is least"
    return f"Which bandwidth does each of the {len(question.lows)} dimensions of {question.name} have, so that {aim}?"


def _given(question: NetworkQuestion) -> tuple[tuple[str, str], ...]:
    file, budget = question.file, question.file.budget
    shapes = " x ".join(f"{_SHAPES[dim.shape]} {dim.size}" for dim in file.dimensions)
    rows = [("network", f"{shapes}, {prod(dim.size for dim in file.dimensions):,} NPUs")]
    amounts = (("total", budget.total, "bandwidth"), ("cost", budget.cost, "money"), ("together at least", budget.at_least, "bandwidth"))
    rows += [(name, format_quantity(amount, unit)) for name, amount, unit in amounts if amount is not None]
    rows += [("no less than the next one", ", ".join(file.descending))] if file.descending else []
    rows += [(" and ".join(dim.dimensions), f"{format_quantity(dim.at_most, 'bandwidth')} together at the most") for dim in file.together]
    return tuple(rows)


def _parts(file: NetworkFile) -> Iterator[str]:
    """Dimensions of which a group has only the links among its own, or on which what it sends passes those of others."""
    sections = [section for workload in file.workloads for section in workload.collectives]
    has = dict[tuple[int, bool, int], float]()
    for section in sections:
        for index, share in enumerate(shares_of(file, section)):
            has[index, section.collective == "all_to_all" and file.dimensions[index].shape == "ring", section.group[index]] = float(share)
    for (index, passes, members), part in sorted(has.items()):
        dim = file.dimensions[index]
        text = "as all to all it passes the links of others" if passes else "on the links among them"
        if part < 1.0:
            yield f"{members} of the {dim.size} of {dim.name} have {part:.1%} of its bandwidth, {text}"


def _text(answer: Bandwidths | None) -> str:
    return "" if answer is None else ", ".join(f"{rate / 1e9:.5g}" for rate in answer.bandwidths) + " GB/s"


def _bandwidth_rows(question: NetworkQuestion, rates: Sequence[float]) -> Pairs:
    """The bandwidth of every dimension, for the short answer."""
    texts = [f"{dim.name} {rate / 1e9:.4g} GB/s" for dim, rate in zip(question.file.dimensions, rates, strict=False)]
    return (("bandwidths", " · ".join(texts)),) if texts else ()


def _times_text(question: NetworkQuestion, details: NetworkAnswer) -> str:
    """How long every workload takes."""
    texts = [f"{work.name} {format_quantity(time, 'time')}" for work, time in zip(question.file.workloads, details.times, strict=True)]
    return " · ".join(texts)


def _gigabytes(head: str, rates: Sequence[float]) -> Column:
    return Column(f"{head} GB/s", tuple(f"{rate / 1e9:.6g}" for rate in rates), tuple(rates), f"{head} in B/s")


def _dimensions(question: NetworkQuestion, rates: Sequence[float]) -> Section:
    dimensions, total = question.file.dimensions, sum(rates)
    columns = [
        names("dimension", (dim.name for dim in dimensions)),
        names("shape", (_SHAPES[dim.shape] for dim in dimensions)),
        counts("NPUs", [dim.size for dim in dimensions]),
        _gigabytes("bandwidth", rates),
        Column("share", tuple(f"{rate / total:.1%}" for rate in rates), tuple(rate / total for rate in rates)),
    ]
    if question.costs is not None:
        costs = [price * rate for price, rate in zip(question.costs, rates, strict=True)]
        columns.append(Column("cost USD", tuple(f"{cost:,.0f}" for cost in costs), tuple(costs)))
    return Section("Bandwidth of every dimension", (Table(tuple(columns)),))


def _exchanged(question: NetworkQuestion, details: NetworkAnswer) -> Section:
    """A lane for each dimension of each collective, as long as it is busy; the longest is the collective's time."""
    numbered = list(enumerate(details.exchanged, 1))
    rows = [(sent, level) for _, sent in numbered for level in range(len(sent.bytes)) if sent.bytes[level]]
    numbers = [number for number, sent in numbered for size in sent.bytes if size]
    labels = [f"{number}: {sent.workload}, {sent.collective.replace('_', '-')}" for number, (sent, _) in zip(numbers, rows, strict=True)]
    dimensions = [question.file.dimensions[level].name for _, level in rows]
    seconds, waits = [sent.seconds[level] for sent, level in rows], [max(sent.seconds) for sent, _ in rows]
    sizes = [sent.bytes[level] for sent, level in rows]
    busy = [own / most for own, most in zip(seconds, waits, strict=True)]
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
        Track(f"{number}: {name}", (Segment(0.0, own, 0), Segment(own, most, 1, low=True)), f"{size / 1e6:.6g} MB, {own / most:.0%} busy")
        for number, name, size, own, most in zip(numbers, dimensions, sizes, seconds, waits, strict=True)
    )
    text = "The slowest dimension of a collective sets its time; the others wait for it."
    timeline = Timeline(("sends", "waits"), tracks[:40], longest, "s of a collective", "the longest", text)
    return Section("What every dimension sends", (timeline, table))


def _workloads(question: NetworkQuestion, details: NetworkAnswer) -> Section:
    workloads = question.file.workloads
    shares = [(time - workload.compute) / time if time else 0.0 for workload, time in zip(workloads, details.times, strict=True)]
    columns = (
        names("workload", (workload.name for workload in workloads)),
        times("work", [workload.compute for workload in workloads]),
        times("whole", details.times),
        Column("exchange", tuple(f"{share:.1%}" for share in shares), tuple(shares)),
        amounts("weight", [workload.weight for workload in workloads], lambda weight: f"{weight:g}"),
    )
    return Section("Time of every workload", (Table(columns),))


_REACHED = (0.9, 0.8, 0.7)
"""Shares of a bandwidth that links reach in practice; what routing and congestion control take is one of these."""


def _reached(question: NetworkQuestion, rates: Sequence[float]) -> Section:
    """How much longer the workloads take where one dimension reaches less of its bandwidth."""
    total = total_time(question, rates)
    columns = [names("dimension", (item.name for item in question.file.dimensions))]
    for share in _REACHED:
        lowered = [[rate * share if index == own else rate for index, rate in enumerate(rates)] for own in range(len(rates))]
        longer = [total_time(question, item) / total - 1.0 for item in lowered]
        columns.append(Column(f"at {share:.0%}", tuple(f"+{item:.2%}" for item in longer), tuple(longer)))
    text = "How much longer all takes where one dimension reaches only a share of its bandwidth, the others all of it:"
    return Section("If less bandwidth is reached", (text, Table(tuple(columns))))


# The sheet of sends: every link over time with the chunks it carries, and every step in words.

_MOST_TRACKS = 32


def synthesis_sheet(question: SynthesisQuestion, result: Result[Sends, Used]) -> Sheet:
    """What is shown."""
    sections, summary, figures = tuple[Section, ...](), "", tuple[tuple[str, str], ...]()
    meaning: Pairs = ()
    if result.answer is not None and result.details is not None and result.value is not None:
        steps = int(result.value)
        meaning = (("busiest link", _busiest_link(question, result.details, steps)),)
        summary = several(len(result.answer.sends), "send")
        sections = (_links(question, result.answer, result.details, steps), _sends(question, result.answer, steps))
        if question.file.step is not None:
            figures = (("time", format_quantity(steps * question.file.step, "time")),)
    texts = ["" if baseline.answer is None else several(len(baseline.answer.sends), "send") for baseline in result.baselines]
    return answer_sheet(
        result,
        "schedule",
        f"Over which links does each chunk of {question.name} go, and when, so that all is done soonest?",
        asks="steps",
        summary=summary,
        figures=figures,
        meaning_rows=meaning,
        given=_synthesis_given(question),
        sections=(*sections, baselines_in("schedule", result, result.baselines, texts)),
        judged="send by send",
    )


def _busiest_link(question: SynthesisQuestion, used: Used, steps: int) -> str:
    """The link that carries chunks the longest."""
    busiest = max(range(len(question.links)), key=lambda link: used.busy[link])
    sender, receiver = _ends(question, busiest)
    return f"{sender} > {receiver}, {used.busy[busiest] / steps:.0%} of the steps"


def _synthesis_given(question: SynthesisQuestion) -> tuple[tuple[str, str], ...]:
    step, deadline = question.file.step, question.file.deadline
    rows = [("collective", synthesis_size_of(question))]
    rows += [("step", format_quantity(step, "time"))] if step is not None else []
    rows += [("deadline", several(deadline, "step"))] if deadline is not None else []
    return tuple(rows)


def _sends_in_order(question: SynthesisQuestion, answer: Sends, steps: int) -> Iterator[tuple[int, int, int]]:
    """Every send as it runs: of a reduce-scatter from the last to the first."""
    for chunk, link, step in answer.sends:
        yield chunk, link, steps - step - question.links[link].steps if question.turned else step


def _ends(question: SynthesisQuestion, number: int) -> tuple[int, int]:
    """Who sends to whom over a link as it is."""
    link = question.links[number]
    return (link.receiver, link.sender) if question.turned else (link.sender, link.receiver)


def _links(question: SynthesisQuestion, answer: Sends, used: Used, steps: int) -> Section:
    """A lane for each link, by the NPU whose chunks it carries."""
    owners = sorted(set(question.origins))
    of = "for" if question.turned else "of"
    runs = sorted(_sends_in_order(question, answer, steps), key=lambda send: send[2])
    tracks = []
    for number in sorted(range(len(question.links)), key=lambda link: _ends(question, link)):
        length = question.links[number].steps
        mine = ((owners.index(question.origins[chunk]), step) for chunk, at, step in runs if at == number)
        segments = tuple(Segment(float(step), float(step + length), owner) for owner, step in mine)
        sender, receiver = _ends(question, number)
        tracks.append(Track(f"link {sender}>{receiver}", segments, f"{used.busy[number] / steps:.0%} busy"))
    kinds = tuple(f"chunks {of} NPU {owner}" for owner in owners)
    timeline = Timeline(kinds, tuple(tracks[:_MOST_TRACKS]), float(steps), "steps", "done", f"All is done after {several(steps, 'step')}.")
    left = len(tracks) - _MOST_TRACKS
    more = (f"{several(left, 'further link')} stand in the table below.",) if left > 0 else ()
    return Section("When every link works", (timeline, *more))


def _sends(question: SynthesisQuestion, answer: Sends, steps: int) -> Section:
    """As they run, one after another."""
    in_order = _sends_in_order(question, answer, steps)
    runs = sorted((step, *_ends(question, link), chunk, question.links[link].steps) for chunk, link, step in in_order)
    of, cut = "for" if question.turned else "of", question.file.chunks
    columns = (
        counts("step", [run[0] for run in runs]),
        counts("from", [run[1] for run in runs]),
        counts("to", [run[2] for run in runs]),
        names("chunk", (f"{run[3] % cut} {of} NPU {question.origins[run[3]]}" for run in runs)),
        counts("takes", [run[4] for run in runs]),
    )
    return Section("Every send", (Table(columns, most=24),))
