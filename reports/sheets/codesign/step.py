"""The section about one step over time: every pass of every microbatch on every stage, and what follows once."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from crossopt.crossflow.schedule import Run
from crossopt.reports.drawing.bars import Axis, Block, Tips, draw_stages, passes_over_time, pieces_of
from crossopt.reports.drawing.svg import WIDTH, Titles, letter
from crossopt.reports.facts.schedule import Passes, Step
from crossopt.reports.sheets.amounts import time_of
from crossopt.reports.sheets.sheet import Picture, Section, Table, figures, names

_KINDS = ("forward", "backward", "recompute", "communication")
_IN_PARTS = ("forward", "gradients of inputs", "recompute", "communication", "gradients of weights")
_NEAR = 1e-9
_ONCE = 2
"""The lane of what follows the passes, which fills both of theirs."""


class Pieces(Protocol):
    """What is drawn of a step on a picture of some width."""

    def __call__(self, *, width: float) -> tuple[tuple[float, float], ...]: ...


def step_section(step: Step | None, of: str = "", uses: Sequence[str] = ()) -> Section:
    """The section; empty where no step is known. `uses` have letters and colours already, in this order, by which they are known here."""
    if step is None:
        return Section("", ())
    count, slot = len(step.passes), max(each.total for each in step.passes)
    after = step.total - min(step.drained, step.pipeline)
    ends = (sum(each.ahead for each in step.passes) / step.chunks, sum(each.back + each.weights for each in step.passes) / step.chunks)
    pieces = partial(pieces_of, step.total, slot, ends, after)
    unit, second = ("s", 1.0) if step.total >= 1.0 else ("ms", 1e-3)
    kinds, title = kinds_of(step), f"One step{of} over time"
    text = f"{step.microbatches:,} microbatch{'es' * (step.microbatches != 1)} through {_stages(step)}; {_after(step)}"
    blocks, labels = _lettered(list(blocks_of(step, draw_stages(count))), kinds, uses)
    axis = Axis(pieces(), unit, second)
    tips = {(stage, labels.index(kinds[kind])): tip for (stage, kind), tip in _tips(step, kinds).items() if kinds[kind] in labels}
    picture = partial(_drawn, (blocks, tips), count, (axis, pieces))
    lanes = (
        "The upper lane of a stage is forward, the lower one backward; recomputation is half as high, communication that nothing hides "
        "a third."
    )
    numbers = " Numbers are those of microbatches." if re.search(r'class="on"[^>]*>\d', picture(Titles("", "", "", WIDTH))) else ""
    gap = " The beginning and the end are drawn at one scale." if len(axis.pieces) > 1 else ""
    visible, described = {block.kind for block in blocks}, f"{text} The step takes {time_of(step.total)}."
    keys = tuple(label if index in visible else "" for index, label in enumerate(labels))
    parts = (Picture(picture, text, f"{lanes}{numbers}{gap}", keys=keys, described=described), _table(step), _margin(step))
    return Section(title, parts)


def _lettered(blocks: Sequence[Block], kinds: Sequence[str], uses: Sequence[str]) -> tuple[list[Block], list[str]]:
    """The blocks by their places among letters and colours, and what stands at each: uses that are known already keep theirs, whatever
    else is drawn comes behind all of them."""
    visible = [kinds[kind] for kind in sorted({block.kind for block in blocks})]
    labels = [*uses, *(name for name in visible if name not in uses)]
    found = [replace(block, kind=labels.index(kinds[block.kind])) for block in blocks]
    return [replace(block, label=letter(block.kind)) if block.lane == _ONCE else block for block in found], labels


def _drawn(blocks: tuple[Sequence[Block], Tips], count: int, time: tuple[Axis, Pieces], titles: Titles) -> str:
    axis = replace(time[0], pieces=time[1](width=titles.width))
    return passes_over_time(titles, blocks, count, axis, "left out")


def _tips(step: Step, kinds: Sequence[str]) -> Tips:
    """What the blocks of a stage and kind say: seconds of one microbatch, or of what follows once."""
    seconds = dict(step.after)
    tips = dict[tuple[int, int], str]()
    for stage, part in enumerate(step.passes):
        each = (part.forward, part.backward, part.again, part.sent + part.returned, part.weights)
        for kind, name in enumerate(kinds):
            tip = time_of(seconds[name]) if name in seconds else f"{time_of(each[kind])} a microbatch"
            tips[stage, kind] = f"stage {stage + 1}, {name}: {tip}"
    return tips


def kinds_of(step: Step) -> tuple[str, ...]:
    """What blocks are, by their number."""
    return (*_kinds(step), *(name for name, _ in step.after))


def _kinds(step: Step) -> tuple[str, ...]:
    """What stages do, backward passes in one part or in two."""
    return _IN_PARTS if any(part.weights for part in step.passes) else _KINDS


def _stages(step: Step) -> str:
    count = len(step.passes)
    chunks = f" of {step.chunks:,} chunks each" if step.chunks > 1 else ""
    return f"{count:,} stage{'s' * (count != 1)}{chunks}"


def _after(step: Step) -> str:
    if not step.after:
        return "nothing follows."
    return f"then {', '.join(f'{name} {time_of(seconds)}' for name, seconds in step.after)}."


def _margin(step: Step) -> str:
    """How far the model's closed form is from the passes in their order."""
    difference = step.pipeline - step.drained
    ends = f"The passes end after {time_of(step.drained)}"
    if abs(difference) <= _NEAR * step.pipeline:
        return f"{ends}, which is what the model charges for the pipeline; with what follows, this is the step of {time_of(step.total)}."
    charges = f"the model's closed form charges {time_of(step.pipeline)}, {abs(difference) / step.pipeline:.2%}"
    if difference > 0.0:
        return f"{ends}; {charges} more, because the stages differ. What follows is drawn after what the model charges."
    return f"{ends}; {charges} less, because the stages differ in how long backward takes to forward. What follows is drawn as charged."


def blocks_of(step: Step, stages: Sequence[int]) -> Iterator[Block]:
    """What these stages do, pass by pass, and what follows once."""
    yield from _passes(step, stages)
    yield from _following(step, stages)


def _passes(step: Step, stages: Sequence[int]) -> Iterator[Block]:
    shown, later = set(stages), step.skipped * max(part.total for part in step.passes)
    ending = max(run.end for run in step.runs) / 2.0
    for run in step.runs:
        if run.stage in shown:
            moved = step.skipped > 0 and run.start > ending
            start = run.start + later if moved else run.start
            number = run.microbatch + (step.skipped if moved else 0) + 1
            if step.both_ways:
                number = run.microbatch + step.skipped // 2 * (moved + run.chunk) + 1
            yield from _run(step.passes[run.stage], run, start, (step.chunks, f"{number:,}"))


def _run(passes: Passes, run: Run, start: float, chunk: tuple[int, str]) -> Iterator[Block]:
    """What is done in one pass, one after another."""
    parts = [(0, passes.forward, 1.0, chunk[1]), (3, passes.sent, 0.34, "")]
    if run.backward:
        parts = [(2, passes.again, 0.5, ""), (1, passes.backward, 1.0, chunk[1]), (3, passes.returned, 0.34, "")]
    if run.weights:
        parts = [(4, passes.weights, 1.0, chunk[1])]
    for kind, seconds, height, label in parts:
        if seconds > 0.0:
            end = start + seconds / chunk[0]
            yield Block(run.stage, int(run.backward), kind, height, start, end, label)
            start = end


def _following(step: Step, stages: Sequence[int]) -> Iterator[Block]:
    for stage in stages:
        start = step.pipeline
        for kind, (_, seconds) in enumerate(step.after, len(_kinds(step))):
            yield Block(stage, _ONCE, kind, 1.0, start, start + seconds, letter(kind))
            start += seconds


def _table(step: Step) -> Table:
    """What each stage does; stages that do the same in one row."""
    rows, ends, kinds = list[tuple[str, ...]](), list[tuple[int, int]](), _kinds(step)
    for number, part in enumerate(step.passes, 1):
        work = step.microbatches * part.total
        late = (part.weights,) if kinds is _IN_PARTS else ()
        ways = (part.forward, part.backward, part.again, part.sent + part.returned, *late)
        parts = (*ways, part.total, work, max(step.pipeline - work, 0.0))
        cells = tuple(time_of(part) if part > _NEAR * step.pipeline else "-" for part in parts)
        if rows and rows[-1] == cells:
            ends[-1] = (ends[-1][0], number)
        else:
            rows.append(cells)
            ends.append((number, number))
    stages = [f"stage {first}" if first == last else f"stages {first} to {last}" for first, last in ends]
    caption = f"Seconds of one microbatch, of all {step.microbatches:,}, and for how long a stage waits."
    heads = (*kinds, "one microbatch", "all", "waits")
    columns = (figures(head, [row[column] for row in rows]) for column, head in enumerate(heads))
    return Table((names("", stages), *columns), caption=caption)
