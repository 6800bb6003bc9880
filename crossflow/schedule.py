"""When each pipeline stage runs each microbatch: 1F1B, and its interleaved form with several chunks a stage.

A stage does its passes in a fixed order (Narayanan et al. 2021): forward passes until the pipeline is as full as memory is kept for, then
one forward and one backward in turn, then the backward passes that are left. A forward pass waits for the same microbatch on the chunk
before, a backward pass for it on the chunk after; messages are part of the passes. `crossflow.pipeline` has the end of this in closed form.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Run:
    """One pass of one microbatch through one chunk of a stage, all counted from 0."""

    stage: int
    microbatch: int
    chunk: int
    backward: bool
    start: float
    end: float


def passes_of(stage: int, stages: int, microbatches: int, chunks: int) -> list[tuple[int, int, bool]]:
    """The passes of a stage in its order: (microbatch, chunk, backward). With several chunks the stages divide the microbatches."""
    count = microbatches * chunks
    ahead = (stages - stage - 1) if chunks == 1 else (stages - stage - 1) * 2 + (chunks - 1) * stages
    ahead = min(ahead, count)
    forward = [(*_place(number, stages, chunks), False) for number in range(count)]
    backward = [(microbatch, chunks - 1 - chunk, True) for microbatch, chunk, _ in forward]
    steady = [one for pair in zip(forward[ahead:], backward, strict=False) for one in pair]
    return [*forward[:ahead], *steady, *backward[count - ahead :]]


def _place(number: int, stages: int, chunks: int) -> tuple[int, int]:
    """Which microbatch and chunk come at this place of the forward passes: through each chunk as many microbatches as there are stages."""
    if chunks == 1:
        return number, 0
    group, inside = divmod(number, stages * chunks)
    return group * stages + inside % stages, inside // stages


def schedule(forward: Sequence[float], backward: Sequence[float], microbatches: int, chunks: int) -> list[Run]:
    """All passes, those of the first stage first and each stage's in its order; `forward` and `backward` are seconds of each stage for one
    microbatch through all of its chunks."""
    stages = len(forward)
    orders = [passes_of(stage, stages, microbatches, chunks) for stage in range(stages)]
    ended, clock, at = dict[tuple[int, int, bool], float](), [0.0] * stages, [0] * stages
    runs = [list[Run]() for _ in range(stages)]
    moved = True
    while moved:
        moved = False
        for stage, order in enumerate(orders):
            took = (forward[stage] / chunks, backward[stage] / chunks)
            while at[stage] < len(order):
                microbatch, chunk, back = order[at[stage]]
                place = chunk * stages + stage
                ready = _ready(ended, microbatch, place, back, stages * chunks)
                if ready is None:
                    break
                start = max(clock[stage], ready)
                end = clock[stage] = start + took[back]
                ended[microbatch, place, back] = end
                runs[stage].append(Run(stage, microbatch, chunk, back, start, end))
                at[stage] += 1
                moved = True
    return [run for own in runs for run in own]


def _ready(ended: dict[tuple[int, int, bool], float], microbatch: int, place: int, back: bool, last: int) -> float | None:
    """When a pass has what it waits for; None while that is not known."""
    if not back:
        return 0.0 if place == 0 else ended.get((microbatch, place - 1, False))
    return ended.get((microbatch, place, False)) if place == last - 1 else ended.get((microbatch, place + 1, True))
