"""Start and end of each microbatch's passes on each pipeline stage: 1F1B, and schedules with deferred weight gradients.

A stage does its passes in a fixed order (Narayanan et al. 2021): forward passes until the pipeline is as full as memory is kept for, then
one forward and one backward in turn, then the backward passes that are left. A forward pass waits for the same microbatch on the chunk
before, a backward pass for it on the chunk after; messages are part of the passes. `crossflow.pipeline` has the end of this in closed form.

Where gradients of weights are put off (`zero-bubble`) a backward pass gives those of the inputs alone. Those of the weights, for which
no stage waits, follow after as many further backward passes as there are stages before this one, so that every stage keeps as much as the
first; forward passes begin as under 1F1B (ZB-H1, Qi et al. 2023, section 2.2; of several chunks as PyTorch's InterleavedZeroBubble).

Where microbatches go both ways (`dualpipe`) the second half of them goes up the stages: a device holds the stage of its own number for
those that go down, chunk 0, and the one as far from the other end for those that go up, chunk 1. Most passes go on in pairs, a forward pass
with a whole backward pass of the other way, which begin when both may and end together; whole backward passes hand on at their end.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from crossopt.crossflow.plan import Schedule


@dataclass(frozen=True, slots=True)
class Run:
    """One pass of one microbatch through one chunk of a stage, all counted from 0."""

    stage: int
    microbatch: int
    chunk: int
    backward: bool
    start: float
    end: float
    weights: bool = False
    """Gradients of weights, separate from those of the inputs."""


FORWARD, BACKWARD, WEIGHTS = 0, 1, 2
_WAYS = {"f": (FORWARD,), "b": (BACKWARD, WEIGHTS), "i": (BACKWARD,), "w": ()}
_PAIR = 3
"""The parts of a block of two paired passes: forward, input gradients and weight gradients."""
Pass = tuple[int, int, int]
"""A microbatch, a chunk, and the kind of pass."""
Block = tuple[Pass, ...]
"""Passes that start when all of them can, and hand on together."""


def passes_of(stage: int, stages: int, microbatches: int, chunks: int, kind: Schedule = "1f1b") -> list[Pass]:
    """The passes of a stage in order. With several chunks the number of stages divides that of microbatches."""
    if kind == "zero-bubble-v":
        return _in_v(stage, stages, microbatches)
    if kind == "dualpipe":
        return [run for block in _both_ways(stage, stages, microbatches) for run in block]
    count = microbatches * chunks
    hops = (stages - stage - 1) * (1 if chunks == 1 or kind == "zero-bubble" else 2)
    ahead = min(hops + (chunks - 1) * stages, count)
    forward: list[Pass] = [(*_microbatch_and_chunk(number, stages, chunks), FORWARD) for number in range(count)]
    backward: list[Pass] = [(microbatch, chunks - 1 - chunk, BACKWARD) for microbatch, chunk, _ in forward]
    steady = [run for pair in zip(forward[ahead:], backward, strict=False) for run in pair]
    order = [*forward[:ahead], *steady, *backward[count - ahead :]]
    return order if kind == "1f1b" else _put_off(order, stage)


def _in_v(stage: int, stages: int, microbatches: int) -> list[Pass]:
    """The passes of a stage under ZB-V: two chunks, of which the second goes up the stages again (Qi et al. 2023, section 6, as
    in PyTorch's ZBVZeroBubble). Forward passes of the first chunk run until its microbatches come back, then all in turn. At
    the end input gradients come before weight gradients.
    """
    most, done, order = max(2 * stages - 1, microbatches), [[0, 0, 0], [0, 0, 0]], list[Pass]()

    def do(chunk: int, *ways: int) -> None:
        for way in ways:
            order.append((done[chunk][way], chunk, way))
            done[chunk][way] += 1

    for _ in range(2 * (stages - stage) - 1):
        do(0, FORWARD)
    for _ in range(stage):
        do(1, FORWARD)
        do(0, FORWARD)
    for _ in range(stages - stage):
        do(1, FORWARD, BACKWARD, WEIGHTS)
    while done[1][FORWARD] < done[0][FORWARD] or done[0][FORWARD] < most:
        do(0, *((FORWARD,) if done[0][FORWARD] < most else ()), BACKWARD, WEIGHTS)
        do(1, FORWARD, BACKWARD, WEIGHTS)
    for _ in range(stage):
        do(0, BACKWARD)
        do(1, BACKWARD)
    for _ in range(stages - stage):
        do(0, BACKWARD, WEIGHTS)
    for chunk in (1, 0):
        do(chunk, *[WEIGHTS] * (done[chunk][BACKWARD] - done[chunk][WEIGHTS]))
    return [run for run in order if run[0] < microbatches]


def _both_ways(stage: int, stages: int, microbatches: int) -> list[Block]:
    """The passes of a device with two stages (DualPipe), with their microbatches. Of waiting weight gradients, those that have
    waited longest come first.
    """
    near, far = (0, 1) if stage < stages // 2 else (1, 0)
    number = {(chunk, way): chunk * microbatches // 2 for chunk in (near, far) for way in (FORWARD, BACKWARD, WEIGHTS)}
    order, waiting = list[Block](), list[Pass]()
    for step in _steps_both_ways(stage, stages, microbatches):
        block = list[Pass]()
        for letter in step:
            chunk = near if letter.islower() else far
            for way in _WAYS[letter.lower()]:
                block.append((number[chunk, way], chunk, way))
                number[chunk, way] += 1
            if letter in "iI":
                waiting.append((number[chunk, WEIGHTS], chunk, WEIGHTS))
                number[chunk, WEIGHTS] += 1
        order.append(tuple(block) or (waiting.pop(0),))
    return order


def _steps_both_ways(stage: int, stages: int, microbatches: int) -> list[str]:
    """The eight steps of DeepSeek-AI's dualpipe.py as letters: forward and whole backward passes, input gradients, and deferred weight
    gradients. Two letters are a pair; lower case marks microbatches that come from the nearer end."""
    own = min(stage, stages - 1 - stage)
    left, turns = stages // 2 - own - 1, microbatches // 2 - stages + own + 1
    return [
        *["f"] * (2 * left),
        *["f", "F"] * (own + 1),
        *["I", "w", "F"] * left,
        *(["fB", "Fb"] if left else ["f", "B", "Fb"]),
        *["fB", "Fb"] * (turns - 1),
        *["B", "Fb"] * left,
        *(("Bb" if turn <= own else "Ii")[turn % 2] for turn in range(2 * (own + 1))),
        *["w", "i"] * left,
        *["w"] * (own + 1),
    ]


def _put_off(order: list[Pass], further: int) -> list[Pass]:
    """The passes with weight gradients after this many further backward passes, and the rest at the end."""
    found, waiting = list[Pass](), list[Pass]()
    for microbatch, chunk, way in order:
        found.append((microbatch, chunk, way))
        if way == BACKWARD:
            waiting.append((microbatch, chunk, WEIGHTS))
            found += [waiting.pop(0)] if len(waiting) > further else []
    return found + waiting


def _microbatch_and_chunk(number: int, stages: int, chunks: int) -> tuple[int, int]:
    """Microbatch and chunk of the forward pass with this number: each chunk takes as many microbatches as there are stages."""
    if chunks == 1:
        return number, 0
    group, inside = divmod(number, stages * chunks)
    return group * stages + inside % stages, inside // stages


@dataclass(frozen=True, slots=True)
class Work:
    """Seconds of one stage for one microbatch through all of its chunks."""

    forward: float
    backward: float
    weights: float = 0.0
    """Weight gradients if deferred; else they are part of `backward`."""
    shares: tuple[float, ...] = ()
    """Share of each chunk; equal by default."""
    together: float = 1.0
    """Duration of a pair relative to the sum of its forward and backward pass."""


def schedule(stages: Sequence[Work], microbatches: int, chunks: int, kind: Schedule = "1f1b") -> list[Run]:
    """All passes with their times, stage by stage in order."""
    count, last = len(stages), len(stages) * chunks
    orders = [_blocks_of(stage, count, microbatches, chunks, kind) for stage in range(count)]
    ended, clock, at = dict[Pass, float](), [0.0] * count, [0] * count
    runs = [list[Run]() for _ in stages]
    moved = True
    while moved:
        moved = False
        for stage, order in enumerate(orders):
            while at[stage] < len(order):
                block = order[at[stage]]
                passes = [(microbatch, path_position(stage, chunk, count, kind), way) for microbatch, chunk, way in block]
                ready = [_ready(ended, run, last) for run in passes if not (len(block) > 1 and run[2] == WEIGHTS)]
                if None in ready:
                    break
                end = max(clock[stage], *(time for time in ready if time is not None))
                for (microbatch, chunk, way), (_, chunk_index, _) in zip(block, passes, strict=True):
                    start, work = end, stages[chunk_index if kind == "dualpipe" else stage]
                    end = start + _seconds(work, chunk, way, chunks) * (work.together if len(block) == _PAIR else 1.0)
                    runs[stage].append(Run(stage, microbatch, chunk, way != FORWARD, start, end, way == WEIGHTS))
                clock[stage] = end
                ended.update(dict.fromkeys(passes, end))
                at[stage] += 1
                moved = True
    return [run for own in runs for run in own]


def _seconds(work: Work, chunk: int, way: int, chunks: int) -> float:
    """Seconds of a single pass."""
    took = (work.forward, work.backward, work.weights)[way]
    return took * work.shares[chunk] if work.shares else took / chunks


def _blocks_of(stage: int, stages: int, microbatches: int, chunks: int, kind: Schedule) -> list[Block]:
    if kind == "dualpipe":
        return _both_ways(stage, stages, microbatches)
    return [(run,) for run in passes_of(stage, stages, microbatches, chunks, kind)]


def path_position(stage: int, chunk: int, stages: int, kind: Schedule) -> int:
    """Position of a stage's chunk on the path of its microbatches. The second chunks of a V go up the stages again, and so do
    DualPipe's microbatches of chunk 1.
    """
    if chunk and kind in ("zero-bubble-v", "dualpipe"):
        return (2 * stages if kind == "zero-bubble-v" else stages) - 1 - stage
    return chunk * stages + stage


def _ready(ended: dict[tuple[int, int, int], float], which: tuple[int, int, int], last: int) -> float | None:
    """Time at which a pass has its inputs; None while unknown."""
    microbatch, position, way = which
    if way == FORWARD:
        return 0.0 if position == 0 else ended.get((microbatch, position - 1, FORWARD))
    if way == WEIGHTS:
        return ended.get((microbatch, position, BACKWARD))
    return ended.get((microbatch, position, FORWARD) if position == last - 1 else (microbatch, position + 1, BACKWARD))
