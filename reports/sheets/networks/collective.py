"""The sheet of a collective: when every dimension works on which chunk, which orders chunks take, and what each phase is made of."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from crossopt.crossflow.astra.collective import SETTINGS, Chunk, Network, jobs_of, npu_times
from crossopt.crossflow.astra.phases import Phase, Step, steps_of
from crossopt.instances.files.units import format_quantity
from crossopt.instances.network.collective import CollectiveQuestion, size_of
from crossopt.reports.drawing.timeline import Segment, Track
from crossopt.reports.sheets.amounts import digits, several, short
from crossopt.reports.sheets.sheet import Column, Part, Section, Sheet, Table, Timeline, answer_sheet, baselines_in, counts, names
from crossopt.solvers.answer import Result
from crossopt.solvers.network.collective.judge import Chunks, Schedule

_MESSAGES = 64
"""NPUs along a dimension of which every message is counted."""
_KINDS = ("reduce_scatter", "all_gather", "all_to_all", "all_reduce")


def sheet(question: CollectiveQuestion, result: Result[Chunks, Schedule]) -> Sheet:
    """What is shown."""
    details, answer, sections, summary = result.details, result.answer, tuple[Section, ...](), ""
    figures = tuple[tuple[str, str], ...]()
    if details is not None and answer is not None and result.value is not None:
        summary = _text(answer)
        sections = (_schedule(question, details, int(result.value)), _orders(question, answer), _phases(question, answer))
        figures = (("first come first served", short(details.fifo, "ns")),)
    sections = (*sections, _simulated(question, result.bound))
    words = [_text(rival.answer) for rival in result.rivals]
    phases = " in phases of reduce-scatter and all-gather" if question.collective == "all_reduce" else ""
    return answer_sheet(
        result,
        "schedule",
        f"How many chunks, and in which orders over the dimensions, make the {question.collective.replace('_', '-')} of "
        f"{question.name} quickest?",
        asks="time",
        summary=summary,
        figures=figures,
        given=_given(question),
        sections=(*sections, baselines_in("schedule", result, result.rivals, words)),
        among=f" of equal chunks{phases}, one chunk at a time on a dimension",
        judged="phase by phase",
    )


def _given(question: CollectiveQuestion) -> tuple[tuple[str, str], ...]:
    links = [
        f"{one.name}: {one.algorithm.replace('_', ' and ')}, {format_quantity(one.bandwidth, 'bandwidth')}, "
        f"{format_quantity(one.latency, 'time')}"
        for one in question.file.dimensions
    ]
    deadline = (("deadline", digits(question.deadline, "ns")),) if question.deadline is not None else ()
    return (("collective", size_of(question)), *(("links" if not place else "", line) for place, line in enumerate(links)), *deadline)


def _text(answer: Chunks | None) -> str:
    return "" if answer is None else f"{several(len(answer.orders), 'chunk')} in {several(len(set(answer.orders)), 'order')}"


def _schedule(question: CollectiveQuestion, details: Schedule, value: int) -> Section:
    """A lane for each dimension, and how much of the time it works."""
    tracks, used = [], [kind for kind in _KINDS if any(run.collective == kind for run in details.runs)]
    for place, dimension in enumerate(question.file.dimensions):
        runs = [run for run in details.runs if run.dimension == place]
        segments = tuple(Segment(run.start / 1e6, run.end / 1e6, used.index(run.collective)) for run in runs)
        tracks.append(Track(dimension.name, segments, f"{details.busy[place] / value:.1%} busy"))
    kinds = tuple(kind.replace("_", "-") for kind in used)
    words = f"The last chunk is done after {digits(value, 'ns')}."
    if details.fifo > value:
        words += f" ASTRA-sim serves first who came first, and can be told no other sequence: it takes {digits(details.fifo, 'ns')} so."
    drawn = Timeline(kinds, tuple(tracks), value / 1e6, "ms", "done", words)
    table = Table(
        (
            names("dimension", (one.name for one in question.file.dimensions)),
            counts("busy ns", list(details.busy)),
            Column("utilisation", tuple(f"{one / value:.1%}" for one in details.busy), tuple(one / value for one in details.busy)),
        )
    )
    return Section("When every dimension works", (drawn, table))


def _orders(question: CollectiveQuestion, answer: Chunks) -> Section:
    taken = Counter(answer.orders)
    dimensions = question.file.dimensions
    rows = [(" > ".join(dimensions[place].name for place in order), count) for order, count in taken.most_common()]
    return Section(
        "Orders of the chunks", (Table((names("order", (name for name, _ in rows)), counts("chunks", [count for _, count in rows]))),)
    )


def _phases(question: CollectiveQuestion, answer: Chunks) -> Section:
    """Each phase of a chunk in each order that is taken: a delay at first, and then its steps, one after another."""
    lines = list(_lines(question, answer))
    delay = question.network.endpoint.delay
    start = digits(delay, "ns")
    words = f"A phase takes {start} at first, and then steps x (flight of a message + {start}) + sums of what arrived."
    columns = (
        names("order", (order for order, _, _, _ in lines)),
        names("phase", (phase for _, phase, _, _ in lines)),
        counts("bytes", [size for _, _, size, _ in lines]),
        names("steps", (step for _, _, _, step in lines)),
    )
    return Section("What each phase is made of", (words, Table(columns, most=24)))


def _simulated(question: CollectiveQuestion, bound: float | None) -> Section:
    """What the simulator itself says, by its settings, of every number of chunks."""
    network = replace(question.network, active_chunks=question.file.active_chunks)
    single = len(network.dimensions) == 1
    few = max(one.size for one in network.dimensions) <= _MESSAGES
    columns, below = [names("chunks", (f"{option:,}" for option in question.options))], list[str]()
    for name, setting in SETTINGS.items():
        if setting.congestion and not (single and few):
            continue
        if not few and any(one.algorithm == "direct" and one.shape == "ring" for one in network.dimensions):
            continue
        found = [npu_times(question.collective, question.size, option, network, setting)[0] for option in question.options]
        columns.append(counts(f"{name} ns", found))
        if bound is not None and min(found) < bound:
            below.append(name)
    words = f"First come first served, {several(network.active_chunks, 'chunk')} at once on a dimension; Themis counts with single links, "
    words += "and its flexible chunks are of unequal sizes, which the answer is not compared with."
    parts: tuple[Part, ...] = (words, Table(tuple(columns)), *_other_ways(question, network, below))
    return Section("What ASTRA-sim says", parts if len(columns) > 1 else ())


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
        name = " > ".join(question.file.dimensions[place].name for place in order)
        for one in job:
            phase = one.phase
            words = f"{phase.collective.replace('_', '-')} on {question.file.dimensions[phase.dimension].name}"
            yield name, words, phase.bytes, f"{_steps(question, phase)} = {one.duration:,}"
            name = ""


def _steps(question: CollectiveQuestion, phase: Phase) -> str:
    steps = steps_of(phase, question.network.dimensions[phase.dimension], question.network.endpoint)
    delay = question.network.endpoint.delay
    return " + ".join([f"{delay:,}", *(_step(one, delay) for one in steps)])


def _step(step: Step, delay: int) -> str:
    times = f"{step.count:,} x " if step.count > 1 else ""
    return f"{times}({step.flight:,} + {delay:,})" + (f" + {step.reduction:,}" if step.reduction else "")
