"""The sheet of schedules under a memory budget: what is computed again, bytes at the peak by class, and memory over time."""

from collections.abc import Iterator
from math import ceil
from typing import Any

from crossopt.instances.files.units import rounded_quantity
from crossopt.instances.memory.graph import blocks_of
from crossopt.instances.memory.question import MemoryQuestion
from crossopt.reports.drawing.bars import Units, columns
from crossopt.reports.sheets.amounts import seconds_of, share_of
from crossopt.reports.sheets.sheet import (
    Breakdown,
    Column,
    FrontText,
    Limit,
    Limits,
    Picture,
    Section,
    Sheet,
    Table,
    answer_sheet,
    baselines_in,
    given_in,
    names,
)
from crossopt.solvers.answer import Result
from crossopt.solvers.memory.judge import MemoryUse, Schedule, chosen, node_of, parts_at, replay, stages_of

_COLUMNS, _NAMED, _ROWS = 48, 6, 40
ALLOCATED = 512
"""Bytes of a block of PyTorch's allocator."""
_ASKS = {
    "extra_time": "extra time",
    "time": "time",
    "peak": "peak",
    "throughput": "time of a sample",
    "batch": "batches above it",
}
_OVER_TIME = "Each column is the computation with the most bytes among several that follow each other."


def sheet(question: MemoryQuestion, result: Result[Schedule, MemoryUse]) -> Sheet:
    """What is shown."""
    answer, use, asked = result.answer, result.details, question
    question = question if answer is None else chosen(question, answer)  # with its batch
    graph = question.graph
    answered: tuple[Section, ...] = ()
    rows: tuple[tuple[str, str], ...] = ()
    figures: tuple[tuple[str, str], ...] = ()
    if answer is not None and use is not None:
        loaded = [node_of(item) for item in answer.order if item < 0]
        rows = (
            *((("batch", _batch(asked, result, answer.batch)),) if answer.batch is not None else ()),
            ("computed again", _repeated(question, answer)),
            *((("read back from the host", _named(question, loaded)),) if loaded else ()),
        )
        share = use.extra_time / use.total_time if use.total_time else 0.0
        figures = (
            *(_speed(asked, result) if result.value and asked.file.objective == "throughput" else ()),
            ("of all time", share_of(share)),
            *((("in seconds", seconds_of(use.extra_time / question.file.rate)),) if question.file.rate else ()),
            ("peak", f"{_bytes(use.peak)} of {_bytes(question.budget)}"),
            ("without repetitions", _bytes(graph.plain_peak)),
        )
        answered = (_budget(question, use), *_device(question, answer, use), _repetitions(question, answer))
    return answer_sheet(
        result,
        "schedule",
        "Which outputs are kept and which are computed again, so that memory suffices and time is least?",
        asks=_ASKS[asked.file.objective],
        summary=f"{len(graph.names):,} nodes",
        answer_rows=rows,
        figures=figures,
        given=_given(question),
        sections=(*answered, baselines_in("schedule", result, result.baselines)),
        details=lambda: () if answer is None else tuple(_pictures(question, answer)),
        notes=result.notes,
        judged="event by event",
        next_step="" if answer is None else "`crossopt export RESULT --as schedule` lists what is computed when",
    )


def _given(question: MemoryQuestion) -> tuple[tuple[str, str], ...]:
    """The question in short."""
    graph = question.graph
    return (
        ("nodes", f"{len(graph.names):,}"),
        ("budget", f"{question.budget:,} B"),
        *((("extra time", f"at most {question.file.most_extra_time:,}"),) if question.file.most_extra_time is not None else ()),
        ("peak without repetitions", f"{graph.plain_peak:,} B"),
        ("largest node with its inputs", f"{max(graph.floors):,} B"),
        ("repetitions of a node", f"at most {question.repetitions:,}"),
    )


def front_text(question: MemoryQuestion) -> FrontText:
    """What is said of fronts of budget against time."""

    def repeated(result: Result[Schedule, MemoryUse]) -> str:
        return "" if result.answer is None else _repeated(question, result.answer)

    return FrontText((given_in(_given(question)),), "computed again", repeated)


def _repeated(question: MemoryQuestion, answer: Schedule) -> str:
    """Nodes that are computed again, by name."""
    nodes = [node for node, stage in zip(answer.order, stages_of(answer.order), strict=True) if 0 <= node < stage]
    return f"{len(nodes):,} of {len(question.graph.names):,} nodes: {_named(question, nodes)}" if nodes else "nothing"


def _batch(question: MemoryQuestion, result: Result[Schedule, MemoryUse], batch: int) -> str:
    """The batch; where the largest one is sought and not proved, with the largest that may fit."""
    if question.file.objective != "batch" or result.proved or result.bound is None:
        return f"{batch:,}"
    return f"{batch:,}; more than {question.batches[-1] - ceil(result.bound):,} are proved not to fit"


def _speed(question: MemoryQuestion, result: Result[Schedule, MemoryUse]) -> tuple[tuple[str, str], ...]:
    """Samples a second, where the unit of times is known."""
    time = float(result.value or 0.0) / (question.file.rate or 1.0)
    return (("samples a second", f"{1.0 / time:,.5g}"),) if question.unit or question.file.rate else ()


def _bytes(figure: float) -> str:
    return rounded_quantity(figure, "bytes", 5) if figure else "0 B"


def _named(question: MemoryQuestion, nodes: list[int]) -> str:
    """The first nodes by name."""
    found = [question.graph.label(node) if question.file.graph else question.graph.names[node] for node in nodes[:_NAMED]]
    return ", ".join(found) + (f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else "")


def _budget(question: MemoryQuestion, use: MemoryUse) -> Section:
    """The budget, and what fills it at the peak; and what fills the device beside it, with whole blocks of an allocator."""
    limit = Limit("outputs and workspace", use.peak, question.budget, "bytes", satisfied=use.peak <= question.budget)
    parts = tuple((label, float(bytes_)) for label, bytes_ in use.peak_parts.items())
    return Section("Memory at the peak", (Limits((limit,)), Breakdown("class", parts, "bytes", capacity=float(question.budget))))


def _device(question: MemoryQuestion, answer: Schedule, use: MemoryUse) -> tuple[Section, ...]:
    """All bytes of the device at the peak by class, where the fixed ones are known."""
    fixed = question.file.fixed
    known = question.graph.fixed_parts if fixed is None else (("parameters, gradients and optimizer", ceil(fixed)),)
    known = known or ((("parameters, gradients and optimizer", question.graph.fixed),) if question.graph.fixed else ())
    if not known:
        return ()
    rounded = max(replay(blocks_of(question.graph, ALLOCATED), answer.order).bytes_) - use.peak
    parts = (*known, *use.peak_parts.items(), (f"rounding to blocks of {ALLOCATED} B", max(rounded, 0)))
    return (
        Section("Memory of the device at the peak", (Breakdown("class", tuple((label, float(item)) for label, item in parts), "bytes"),)),
    )


def _repetitions(question: MemoryQuestion, answer: Schedule) -> Section:
    """Every repetition, with the stage in which it runs."""
    graph, stages = question.graph, stages_of(answer.order)
    rows = [(node, stage) for node, stage in zip(answer.order, stages, strict=True) if 0 <= node < stage]
    times = [float(question.stated_time(graph.times[node])) for node, _ in rows]
    return Section(
        "Computed again",
        (
            Table(
                (
                    names("node", [graph.label(node) for node, _ in rows]),
                    names("before", [graph.label(stage) for _, stage in rows]),
                    Column("time", tuple(seconds_of(time) if question.unit else f"{time:.5g}" for time in times), tuple(times)),
                    Column("bytes", tuple(_bytes(graph.sizes[node]) for node, _ in rows), tuple(graph.sizes[node] for node, _ in rows)),
                ),
                most=_ROWS,
            )
            if rows
            else "Nothing is computed again.",
        ),
    )


def _pictures(question: MemoryQuestion, answer: Schedule) -> Iterator[Section]:
    """Bytes over time by class."""
    graph, found = question.graph, replay(question.graph, answer.order)
    count = len(answer.order)
    step = -(-count // _COLUMNS)
    events = [max(range(first, min(first + step, count)), key=lambda event: found.bytes_[event]) for first in range(0, count, step)]
    parts = [parts_at(graph, answer.order, found, event) for event in events]
    labels = [label for label in dict.fromkeys(label for part in parts for label in part) if any(part.get(label) for part in parts)]
    series = [(label, [float(part.get(label, 0)) for part in parts]) for label in labels]
    heads = [str(event) if index % 8 == 0 else "" for index, event in enumerate(events)]
    unit, name = (2.0**30, "GiB") if question.budget >= 2**30 else (2.0**20, "MiB") if question.budget >= 2**20 else (1.0, "B")
    units = Units(name, unit, "budget", "computations in their order")
    tall = max(found.bytes_)
    event = found.bytes_.index(tall)
    told = f"The most is {_bytes(tall)}, at computation {event}, {graph.label(node_of(answer.order[event]))}."
    picture = Picture(
        lambda titles: columns(titles, heads, series, float(question.budget), units), "", _OVER_TIME, described=told, zooms=False
    )
    yield Section("Memory over time", (picture,))


def schedule_rows(question: MemoryQuestion, result: Result[Schedule, MemoryUse]) -> list[dict[str, Any]]:
    """Each computation in its order, whether it is a repetition, the outputs that are dropped after it, and the bytes in memory."""
    if result.answer is None:
        return []
    graph, order = chosen(question, result.answer).graph, result.answer.order
    found, dropped = replay(graph, order), dict[int, list[str]]()
    for event, end in enumerate(found.ends):
        dropped.setdefault(end, []).append(graph.names[node_of(order[event])])
    return [
        {
            ("compute" if node >= 0 else "read back"): graph.names[node_of(node)],
            "node": node_of(node),
            "repeated": 0 <= node < stage,
            "drop": dropped.get(event, []),
            "bytes": found.bytes_[event],
        }
        for event, (node, stage) in enumerate(zip(order, stages_of(order), strict=True))
    ]
