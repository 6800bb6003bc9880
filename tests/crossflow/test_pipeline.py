"""Pipelines: their schedule operation by operation, the closed form of a step and its laws, and how layers are dealt to stages."""

from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from hypothesis import strategies as st

from crossopt.crossflow.pipeline import Terms, bubble, fullest_slot, mean_slot, slots, step_time, window
from crossopt.crossflow.plan import SCHEDULES, Schedule
from crossopt.crossflow.schedule import Run, Work, passes_of, path_position, schedule
from crossopt.crossflow.stages import chunk_sizes, microbatches_in_flight, split_layers, waited_for_chunks
from tests.extent import examples

# The step of a pipeline: against its schedule, operation by operation, and by the laws of its formula.

PLAIN = Terms(
    split=split_layers(8, 4),
    interleave=1.0,
    microbatches=8.0,
    forward=1.0,
    backward=2.0,
    embedding=0.0,
    head=0.0,
    transfer=0.0,
    gather_forward=0.0,
    gather_backward=0.0,
    synchronize=0.0,
    publish=0.0,
    optimizer=0.0,
    overhead=0.0,
    hidden_gather=0.0,
    hidden_transfer=0.0,
    hidden_exchange=0.0,
)
"""Four equal stages of two layers."""
TIMES = tuple(
    field.name
    for field in fields(Terms)
    if not field.name.startswith("hidden") and field.name not in ("split", "interleave", "microbatches", "schedule")
)


@pytest.mark.parametrize(("stages", "chunks", "count"), [(1, 1, 5), (2, 1, 2), (4, 1, 8), (4, 2, 8), (8, 1, 3)])
def test_the_bubble_of_equal_stages_is_the_published_share(stages: int, chunks: int, count: int) -> None:
    """(p - 1) / (v m) of the time without a bubble (Narayanan et al. 2021, section 2.2)."""
    terms = replace(PLAIN, split=split_layers(2 * stages, stages), interleave=float(chunks), microbatches=float(count))
    work = count * 2 * 3.0
    assert bubble(terms) / work == (stages - 1) / (chunks * count)
    assert step_time(terms) == work + bubble(terms)


def pipeline_schedule(stages: int, stage: int, count: int) -> list[tuple[str, int]]:
    """1F1B: warm-up forwards, one forward and one backward in turn, the last backwards."""
    warm = min(stages - 1 - stage, count)
    steady = [step for batch in range(count - warm) for step in (("forward", warm + batch), ("backward", batch))]
    return [("forward", batch) for batch in range(warm)] + steady + [("backward", batch) for batch in range(count - warm, count)]


def simulated(forward: list[float], backward: list[float], count: int) -> float:
    """Seconds of 1F1B when each stage works through its schedule as soon as its inputs are there, and transfers cost nothing."""
    stages = len(forward)
    waiting = [pipeline_schedule(stages, stage, count) for stage in range(stages)]
    done: dict[tuple[str, int, int], float] = {("forward", batch, -1): 0.0 for batch in range(count)}
    clock = [0.0] * stages
    while any(waiting):
        for stage, todo in enumerate(waiting):
            while todo and (needed := _needed(*todo[0], stage, stages)) in done:
                kind, batch = todo.pop(0)
                clock[stage] = max(clock[stage], done[needed]) + (forward if kind == "forward" else backward)[stage]
                done[kind, batch, stage] = clock[stage]
    return max(clock)


def _needed(kind: str, batch: int, stage: int, stages: int) -> tuple[str, int, int]:
    if kind == "forward":
        return ("forward", batch, stage - 1)
    return ("backward", batch, stage + 1) if stage < stages - 1 else ("forward", batch, stage)


SECONDS = st.integers(1, 9)
COUNTS = st.integers(1, 12)


def test_chunks_that_differ_are_waited_for() -> None:
    """Eighty layers in 4 x 16 chunks are four chunks of two layers and twelve of one on each stage: (p - 1) / p of a layer of 3 s more in
    each of 32 microbatches, beside 32 x 20 layers and a bubble of 3 x 20 / 16. In 4 x 5 or 4 x 20 chunks they are alike; so are those of
    the fuller stages of 126 layers in 8 x 8 chunks, of which the ends have a layer less."""
    terms = replace(PLAIN, split=split_layers(80, 4), interleave=16.0, microbatches=32.0)
    assert step_time(terms) == 3.0 * (32 * 20 + 3 * 20 / 16 + 32 * 3 / 4)
    assert bubble(terms) == step_time(terms) - 3.0 * 32 * 20
    assert step_time(replace(terms, interleave=5.0)) == 3.0 * (32 * 20 + 3 * 4)
    assert step_time(replace(terms, interleave=20.0)) == 3.0 * (32 * 20 + 3)
    ends = replace(PLAIN, split=split_layers(126, 8), interleave=8.0, microbatches=32.0)
    assert step_time(ends) == pytest.approx(3.0 * ((32 - 1 / 8) * 16 + 126 / 8), rel=1e-15)


@given(st.integers(1, 6), SECONDS, SECONDS, COUNTS)
def test_equal_stages_take_as_long_as_their_schedule(stages: int, forward: int, backward: int, count: int) -> None:
    terms = replace(PLAIN, split=split_layers(stages, stages), forward=float(forward), backward=float(backward), microbatches=float(count))
    assert step_time(terms) == simulated([float(forward)] * stages, [float(backward)] * stages, count)


@given(st.integers(2, 6), SECONDS, SECONDS, COUNTS)
def test_a_heavy_head_is_priced_as_scheduled(stages: int, layer: int, head: int, count: int) -> None:
    """Where the last stage is the fullest, all others wait for it and sum + (m - 1) max is exact."""
    terms = replace(
        PLAIN, split=split_layers(stages, stages), forward=float(layer), backward=2.0 * layer, head=3.0 * head, microbatches=float(count)
    )
    forward = [float(layer)] * (stages - 1) + [float(layer + head)]
    assert step_time(terms) == simulated(forward, [2.0 * seconds for seconds in forward], count)


@examples(100)
@given(st.integers(2, 6), st.integers(6, 20), SECONDS, st.integers(0, 9), st.integers(0, 9), COUNTS)
def test_uneven_stages_never_take_longer_than_priced(stages: int, layers: int, layer: int, embedding: int, head: int, count: int) -> None:
    """An upper estimate where backward is the same multiple of forward on every stage; never below the fullest stage's own work."""
    split = split_layers(layers, stages)
    seconds = [float(split.on(stage)) * layer for stage in range(stages)]
    seconds[0] += embedding
    seconds[-1] += head
    terms = replace(
        PLAIN,
        split=split,
        forward=float(layer),
        backward=2.0 * layer,
        embedding=3.0 * embedding,
        head=3.0 * head,
        microbatches=float(count),
    )
    scheduled = simulated(seconds, [2.0 * each for each in seconds], count)
    assert count * 3.0 * max(seconds) <= scheduled <= step_time(terms)
    assert step_time(terms) == 3.0 * (sum(seconds) + (count - 1) * max(seconds))


def test_stages_are_first_middle_and_last() -> None:
    """Ten layers of 3 s on four stages: 2, 3, 3, 2, with 5 s of embedding in front and 7 s of head behind."""
    slot = slots(replace(PLAIN, split=split_layers(10, 4), embedding=5.0, head=7.0))
    assert slot.backward == 4.0
    assert (slot.first, slot.middle, slot.last) == (2 * 3 - 4 + 5, 3 * 3 - 4, 2 * 3 - 4 + 7)
    assert slot.total == 10 * 3 - 4 * 4 + 5 + 7
    assert slot.fullest() == slot.last


def test_a_single_stage_has_embedding_and_head() -> None:
    alone = replace(PLAIN, split=split_layers(8, 1), embedding=5.0, head=7.0)
    assert step_time(alone) == 8 * (8 * 3 + 5 + 7)
    assert bubble(alone) == 0.0


def test_communication_hides_behind_its_share_of_the_computation() -> None:
    """Of 10 s, 9 can hide communication: 4 s vanish, of 12 s three remain."""
    assert window(10.0, 0.9, 4.0) == 10.0
    assert window(10.0, 0.9, 12.0) == pytest.approx(13.0)
    assert window(10.0, 0.0, 4.0) == 14.0


def test_a_hidden_exchange_slows_what_hides_it() -> None:
    """8 s of an exchange take a quarter of the speed: of 10 s of work, 6 are done meanwhile, and 4 are left."""
    assert window(10.0, 1.0, 8.0, 0.25) == 8.0 + 4.0
    assert window(10.0, 0.5, 8.0, 0.25) == 8.0 + 5.0  # half of it cannot hide: the rest is done when the exchange is
    assert window(10.0, 0.0, 8.0, 0.25) == 18.0
    assert window(10.0, 0.9, 0.0, 0.25) == 10.0


def test_transfers_are_paid_for_each_chunk_in_each_direction_on_each_stage() -> None:
    """Three microbatches more than the fill of four stages: (m + p - 1) slots of 1F1B; with two chunks, two messages each way."""
    assert step_time(replace(PLAIN, transfer=0.5)) == (8 + 3) * (2 * 3 + 2 * 0.5)
    assert step_time(replace(PLAIN, transfer=0.5, interleave=2.0)) == (8 + 3 / 2) * (2 * 3 + 2 * 2 * 0.5)
    assert step_time(replace(PLAIN, transfer=0.5, hidden_transfer=0.9)) == step_time(PLAIN)


def test_gathers_are_paid_for_each_layer_and_the_rest_once() -> None:
    gathered = replace(PLAIN, gather_forward=0.25, gather_backward=0.5)
    assert step_time(gathered) == (8 + 3) * 2 * (3 + 0.75)
    assert step_time(replace(gathered, hidden_gather=0.9)) == step_time(PLAIN)
    once = replace(PLAIN, synchronize=3.0, publish=5.0, optimizer=7.0, overhead=11.0)
    assert step_time(once) == step_time(PLAIN) + 3 + 5 + 7 + 11
    assert step_time(replace(once, hidden_exchange=1.0)) == step_time(PLAIN) + 5 + 7 + 11


@pytest.mark.parametrize("chunks", [1.0, 2.0])
def test_updated_weights_are_gathered_behind_the_first_forward_pass(chunks: float) -> None:
    """Of two layers forward, two seconds, half hides one second of a gather; of five seconds four show. At a quarter of the speed beside it
    a second costs a quarter. Split passes hide nothing."""
    plain = replace(PLAIN, interleave=chunks, embedding=3.0)
    forward = 2 * PLAIN.forward
    short, long = (replace(plain, publish=seconds, hidden_publish=0.5) for seconds in (forward / 2, 2.5 * forward))
    assert step_time(short) == pytest.approx(step_time(plain))
    assert step_time(long) == pytest.approx(step_time(plain) + 2 * forward)
    assert (short.exposed_publication(), long.exposed_publication()) == pytest.approx((0.0, 2 * forward))
    assert step_time(replace(short, lost=0.25)) == pytest.approx(step_time(plain) + forward / 8)
    split = replace(short, schedule=1.0, inputs=1.0, weights=1.0)
    assert step_time(split) == pytest.approx(step_time(replace(split, publish=0.0)) + forward / 2)


def test_the_fullest_stage_says_what_it_does_beside_its_layers() -> None:
    """The last of 2, 3, 3, 2 layers, with the head; of equal stages the first, with the embedding."""
    last = fullest_slot(replace(PLAIN, split=split_layers(10, 4), embedding=5.0, head=7.0, transfer=0.5, gather_backward=0.25))
    assert (last.layers, last.gathers, last.edges, last.transfers) == (2.0, 0.25, 7.0, 1.0)
    middle = fullest_slot(replace(PLAIN, split=split_layers(10, 4), head=2.0))
    assert (middle.layers, middle.edges) == (3.0, 0.0)
    first = fullest_slot(replace(PLAIN, embedding=7.0, head=7.0))
    assert (first.layers, first.edges) == (2.0, 7.0)


def test_the_mean_stage_and_what_the_fullest_takes_beyond_it_make_the_fullest() -> None:
    """Of 2, 3, 3, 2 layers the middle ones have half a layer more than the mean, and neither embedding nor head."""
    uneven = replace(PLAIN, split=split_layers(10, 4), embedding=0.5, head=1.0)
    mean, beyond = mean_slot(uneven)
    one = uneven.forward + uneven.backward
    assert (mean.layers, mean.edges) == (2.5, 0.375)
    assert beyond == 0.5 * one - 0.375
    even, none = mean_slot(PLAIN)
    assert (even.layers, none) == (2.0, 0.0)


@st.composite
def steps(draw: st.DrawFn) -> Terms:
    stages = draw(st.integers(1, 8))
    seconds = {name: draw(st.floats(0.0, 10.0)) for name in TIMES}
    shares: dict[str, float | None] = {
        field.name: draw(st.sampled_from([0.0, 0.9, 1.0])) for field in fields(Terms) if field.name.startswith("hidden")
    }
    shares["hidden_publish"] = draw(st.sampled_from([None, 0.0, 0.9, 1.0]))
    split, chunks = split_layers(draw(st.integers(stages, 20)), stages), float(draw(st.integers(1, 4)))
    kind = draw(st.sampled_from([0.0, 1.0, 2.0]))
    return Terms(split, chunks, float(draw(st.integers(1, 64))), **seconds, **shares, schedule=kind)


@examples(200)
@given(steps(), st.sampled_from(TIMES), st.floats(1.0, 4.0) | st.just(1.0 + 2.0**-50))
def test_a_part_that_takes_longer_never_shortens_the_step(terms: Terms, part: str, factor: float) -> None:
    """As computed, without tolerance, even when the part grows by the last few bits only."""
    longer: dict[str, float] = {part: getattr(terms, part) * factor}
    assert step_time(replace(terms, **longer)) >= step_time(terms)  # type: ignore[arg-type]


@given(steps())
def test_the_step_is_the_closed_form_of_its_stages(terms: Terms) -> None:
    """(m - 1/v) max s + (sum s) / v, when chunks are alike, and what the gradient exchange and the gather of weights show."""
    alike = terms.interleave * np.ceil(terms.split.least / terms.interleave) * terms.split.stages
    terms = replace(terms, split=split_layers(int(alike), int(terms.split.stages)), synchronize=0.0, schedule=0.0, busy=0.0)
    slot, chunks = slots(terms), terms.interleave
    longest, all_stages = slot.backward + slot.fullest(), slot.total + terms.split.stages * slot.backward
    expected = (terms.microbatches - 1 / chunks) * longest + all_stages / chunks + terms.exposed_publication()
    expected += terms.optimizer + terms.overhead
    assert step_time(terms) == pytest.approx(expected, rel=1e-12)


# The passes of a pipeline: each once, after what it waits for, one at a time on a stage, and together as long as the closed form says.

SCHEDULE_SECONDS = some.floats(0.1, 10.0)


def end(runs: list[Run]) -> float:
    return max(run.end for run in runs)


@given(
    some.lists(some.tuples(SCHEDULE_SECONDS, SCHEDULE_SECONDS, SCHEDULE_SECONDS), min_size=1, max_size=6),
    some.integers(1, 4),
    some.integers(1, 4),
    some.sampled_from(SCHEDULES),
)
def test_every_pass_runs_once_after_what_it_waits_for(
    stages: list[tuple[float, float, float]], groups: int, chunks: int, kind: Schedule
) -> None:
    count, turns = len(stages) * groups, 2 if kind == "zero-bubble-v" else chunks if len(stages) > 1 else 1
    if kind == "dualpipe":
        stages, count, turns = [*stages, *stages], 4 * len(stages) + 2 * (groups - 1), 1
    runs = schedule([Work(*stage) for stage in stages], count, turns, kind)
    places = {(run.microbatch, path_position(run.stage, run.chunk, len(stages), kind), run.backward + run.weights): run for run in runs}
    assert len(runs) == len(places) == (2 if kind == "1f1b" else 3) * count * turns * len(stages)
    for (microbatch, place, way), run in places.items():
        before = [(microbatch, place - 1, 0), (microbatch, place + 1, 1), (microbatch, place, 1)][way]
        assert before not in places or places[before].end <= run.start
        assert not way or places[microbatch, place, way - 1].end <= run.start
        assert run.end - run.start == pytest.approx(stages[place if kind == "dualpipe" else run.stage][way] / turns)
    for stage in range(len(stages)):
        own = [run for run in runs if run.stage == stage]
        assert all(one.end <= other.start for one, other in pairwise(own))


@given(SCHEDULE_SECONDS, SCHEDULE_SECONDS, some.integers(1, 7), some.integers(1, 5), some.integers(1, 4))
def test_equal_stages_end_as_the_closed_form_says(forward: float, backward: float, stages: int, groups: int, chunks: int) -> None:
    """m s + (p - 1) s / v."""
    turns, count = chunks if stages > 1 else 1, stages * groups
    runs = schedule([Work(forward, backward)] * stages, count, turns)
    slot = forward + backward
    assert end(runs) == pytest.approx(count * slot + (stages - 1) * slot / turns)


@given(some.lists(SCHEDULE_SECONDS, min_size=2, max_size=6), SCHEDULE_SECONDS, some.integers(1, 20))
def test_uneven_stages_whose_last_is_the_fullest_end_as_the_closed_form_says(slots: list[float], ratio: float, count: int) -> None:
    """(m - 1) max s + sum s, where backward takes the same multiple of forward on every stage."""
    slots = sorted(slots)
    ahead = [slot / (1.0 + ratio) for slot in slots]
    runs = schedule([Work(one, slot - one) for slot, one in zip(slots, ahead, strict=True)], count, 1)
    assert end(runs) == pytest.approx((count - 1) * slots[-1] + sum(slots))


@given(some.lists(SCHEDULE_SECONDS, min_size=2, max_size=6), SCHEDULE_SECONDS, some.integers(1, 20))
def test_uneven_stages_never_take_longer_than_the_closed_form(slots: list[float], ratio: float, count: int) -> None:
    ahead = [slot / (1.0 + ratio) for slot in slots]
    runs = schedule([Work(one, slot - one) for slot, one in zip(slots, ahead, strict=True)], count, 1)
    assert end(runs) <= ((count - 1) * max(slots) + sum(slots)) * (1.0 + 1e-12)


@given(
    SCHEDULE_SECONDS,
    SCHEDULE_SECONDS,
    some.tuples(some.integers(2, 4), some.integers(1, 3)),
    some.tuples(SCHEDULE_SECONDS, SCHEDULE_SECONDS),
    some.integers(1, 20),
)
def test_messages_over_boundaries_of_two_kinds_never_take_longer_than_those_of_both_sides(
    forward: float, backward: float, stages: tuple[int, int], messages: tuple[float, float], count: int
) -> None:
    """Stages on nodes: a forward pass ends with the message down and a backward pass with that up. A stage has one neighbour on its node,
    so that no slot is longer than s + x + max(x, y), and no way through the passes has more of them than m + p - 1."""
    (inside, nodes), (near, far) = stages, messages
    every = inside * nodes
    down = [0.0 if stage == every - 1 else far if (stage + 1) % inside == 0 else near for stage in range(every)]
    runs = schedule([Work(forward + one, backward + other) for one, other in zip(down, [0.0, *down], strict=False)], count, 1)
    assert end(runs) <= (count + every - 1) * (forward + backward + near + max(near, far)) * (1.0 + 1e-12)


@given(some.integers(1, 8), some.integers(1, 5), some.integers(1, 4), some.sampled_from(SCHEDULES))
def test_as_many_microbatches_are_under_way_as_memory_is_kept_for(stages: int, groups: int, chunks: int, kind: Schedule) -> None:
    """Until their backward pass, or the gradients of weights where these are put off."""
    turns, count = chunks if stages > 1 else 1, stages * groups
    if kind == "zero-bubble-v":
        turns, count = 2, 2 * stages - 2 + groups
    if kind == "dualpipe":
        stages, turns, count = 2 * stages, 1, 4 * stages + 2 * (groups - 1)
    for stage in range(stages):
        under_way, most = 0, 0
        for _, _, way in passes_of(stage, stages, count, turns, kind):
            under_way += {0: 1, 1: -(kind == "1f1b"), 2: -1}[way]
            most = max(most, under_way)
        kept = microbatches_in_flight(float(stage), float(stages), float(turns), float(count), float(SCHEDULES.index(kind)))
        assert most / turns == pytest.approx(float(kept) * (2 if kind == "dualpipe" else 1))


def stepping(layers: int, stages: int, parts: tuple[float, float, float], count: int, chunks: int, schedule: float = 1.0) -> Terms:
    """A step of nothing but layers whose gradients of weights are put off."""
    forward, inputs, weights = parts
    nothing = dict.fromkeys(
        ("embedding", "head", "transfer", "gather_forward", "gather_backward", "synchronize", "publish", "optimizer", "overhead"), 0.0
    )
    hidden = dict.fromkeys(("hidden_gather", "hidden_transfer", "hidden_exchange"), 0.0)
    return Terms(
        split_layers(layers, stages),
        float(chunks),
        float(count),
        forward=forward,
        backward=inputs + weights,
        inputs=inputs,
        weights=weights,
        schedule=schedule,
        **nothing,
        **hidden,
    )


PARTS = some.tuples(some.floats(0.0, 10.0), some.floats(0.0, 10.0), some.floats(0.0, 10.0))


@given(PARTS, some.integers(2, 7), some.integers(1, 15))
def test_equal_stages_that_put_off_gradients_of_weights_end_as_the_closed_form_says(
    parts: tuple[float, float, float], stages: int, count: int
) -> None:
    """However long the parts are to each other, and however few microbatches there are."""
    runs = schedule([Work(*parts)] * stages, count, 1, "zero-bubble")
    assert end(runs) == pytest.approx(float(step_time(stepping(stages, stages, parts, count, 1))))


@given(PARTS, some.integers(2, 6), some.integers(1, 4), some.integers(2, 4))
def test_so_do_those_with_several_chunks(parts: tuple[float, float, float], stages: int, groups: int, chunks: int) -> None:
    """Of one layer."""
    runs = schedule([Work(*(chunks * part for part in parts))] * stages, stages * groups, chunks, "zero-bubble")
    assert end(runs) == pytest.approx(float(step_time(stepping(stages * chunks, stages, parts, stages * groups, chunks))))


@given(PARTS, some.integers(2, 6), some.integers(0, 5), some.integers(1, 20))
def test_uneven_stages_that_put_off_gradients_of_weights_never_take_longer(
    parts: tuple[float, float, float], stages: int, extra: int, count: int
) -> None:
    layers = stages + min(extra, stages - 1)
    terms = stepping(layers, stages, parts, count, 1)
    held = [float(terms.split.on(stage)) for stage in range(stages)]
    runs = schedule([Work(*(each * part for part in parts)) for each in held], count, 1, "zero-bubble")
    assert count * max(held) * sum(parts) * (1.0 - 1e-12) <= end(runs) <= float(step_time(terms)) * (1.0 + 1e-12)


@given(PARTS, some.integers(2, 6), some.integers(2, 5), some.integers(0, 40), some.integers(1, 4), some.sampled_from(SCHEDULES[:2]))
def test_stages_whose_chunks_differ_never_take_longer_than_the_closed_form(
    parts: tuple[float, float, float], stages: int, chunks: int, more: int, groups: int, kind: Schedule
) -> None:
    """Nor less than their work; however long the parts are to each other, and with several stages fuller than others."""
    ahead, back, late = parts
    count, put_off = groups * stages, kind != "1f1b"
    terms = stepping(stages * chunks + more, stages, parts, count, chunks, schedule=float(put_off))
    held = [int(terms.split.on(stage)) for stage in range(stages)]
    each = (ahead, back, late) if put_off else (ahead, back + late, 0.0)
    shares = [tuple(size / layers for size in chunk_sizes(layers, chunks)) for layers in held]
    works = [Work(*(layers * part for part in each), share) for layers, share in zip(held, shares, strict=True)]
    ended = end(schedule(works, count, chunks, kind))
    assert count * max(held) * sum(parts) * (1.0 - 1e-12) <= ended <= float(step_time(terms)) * (1.0 + 1e-12)


@given(PARTS, some.integers(2, 6), some.integers(0, 12))
def test_stages_in_a_v_end_as_the_closed_form_says(parts: tuple[float, float, float], stages: int, more: int) -> None:
    """However long the parts are to each other."""
    count = 2 * stages - 1 + more
    runs = schedule([Work(*(2.0 * part for part in parts))] * stages, count, 2, "zero-bubble-v")
    assert end(runs) == pytest.approx(float(step_time(stepping(2 * stages, stages, parts, count, 2, schedule=2.0))))


def test_the_bubble_of_a_v_is_what_the_first_forward_pass_takes_down_the_stages() -> None:
    """No stage waits from its first pass on where all three parts are alike (Qi et al. 2023, section 6)."""
    assert bubble(stepping(8, 4, (1.0, 1.0, 1.0), 12, 2, schedule=2.0)) == pytest.approx(3)
    runs = schedule([Work(2.0, 2.0, 2.0)] * 4, 12, 2, "zero-bubble-v")
    for stage in range(4):
        own = [run for run in runs if run.stage == stage]
        assert all(one.end == other.start for one, other in pairwise(own))


@pytest.mark.parametrize(("stages", "count", "chunks"), [(2, 4, 1), (4, 8, 1), (4, 8, 2), (8, 32, 1)])
def test_the_bubble_is_the_published_one(stages: int, count: int, chunks: int) -> None:
    """(p - 1) (F + B - W) of 1F1B's (p - 1) (F + B + W) (Qi et al. 2023, section 2.2, table 1): a third of it where all three are alike."""
    layers = stages * chunks
    assert bubble(stepping(layers, stages, (1.0, 1.0, 1.0), count, chunks)) == pytest.approx((stages - 1) * 1.0)
    assert bubble(stepping(layers, stages, (3.0, 4.0, 2.0), count, chunks)) == pytest.approx((stages - 1) * 5.0)


def both_ways(layers: int, stages: int, parts: tuple[float, float, float], count: int, share: float = 1.0) -> Terms:
    """A step of nothing but layers whose microbatches go both ways, where a pair of passes takes this share of its seconds."""
    ahead, back, late = parts
    pair, alone = share * sum(parts), (stages + 1) / count
    forward, backward = (alone * one + (1.0 - alone) * part * pair for one, part in ((ahead, 1 / 3), (back + late, 2 / 3)))
    terms = stepping(layers, stages, parts, count, 1, schedule=3.0)
    return replace(terms, forward=forward, backward=backward, ahead=ahead, together=pair)


@some.composite
def pairs(draw: some.DrawFn) -> tuple[tuple[float, float, float], float]:
    """Seconds of the parts, and the share of them that a pair takes: no less than the longer of both passes."""
    ahead, back, late = draw(PARTS)
    longer = max(ahead, back + late) / max(ahead + back + late, 1e-9)
    return (ahead, back, late), draw(some.floats(min(longer, 1.0), 1.0))


@given(pairs(), some.integers(1, 5), some.integers(0, 8))
def test_stages_of_both_ways_end_as_the_closed_form_says(work: tuple[tuple[float, float, float], float], half: int, more: int) -> None:
    """However long the parts and the pairs are to each other, and no device is at work for longer."""
    (parts, share), stages, count = work, 2 * half, 4 * half + 2 * more
    runs = schedule([Work(*parts, together=share)] * stages, count, 1, "dualpipe")
    terms = both_ways(stages, stages, parts, count, share)
    assert end(runs) == pytest.approx(float(step_time(terms)), abs=1e-9)
    assert float(bubble(terms)) >= -1e-9 * float(step_time(terms))


@given(pairs(), some.integers(1, 4), some.integers(-2, 20), some.integers(0, 6))
def test_uneven_stages_of_both_ways_never_take_longer_than_the_closed_form(
    work: tuple[tuple[float, float, float], float], half: int, extra: int, more: int
) -> None:
    """Nor less than the pairs of passes on the fullest device."""
    (parts, share), stages, count = work, 2 * half, 4 * half + 2 * more
    terms = both_ways(max(stages + extra, 1), stages, parts, count, share)
    held = [float(terms.split.on(stage)) for stage in range(stages)]
    ended = end(schedule([Work(*(each * part for part in parts), together=share) for each in held], count, 1, "dualpipe"))
    least = count / 2 * max(one + other for one, other in zip(held, reversed(held), strict=True)) * share * sum(parts)
    assert least * (1.0 - 1e-9) <= ended <= float(step_time(terms)) * (1.0 + 1e-9)


@pytest.mark.parametrize(("stages", "count"), [(2, 4), (4, 8), (8, 20), (16, 120)])
@pytest.mark.parametrize(("ahead", "late", "pair"), [(1.0, 1.0, 3.0), (1.0, 0.8, 2.8), (1.0, 1.0, 2.5), (2.0, 0.5, 3.5)])
def test_the_bubble_of_both_ways_is_the_published_one(stages: int, count: int, ahead: float, late: float, pair: float) -> None:
    """(PP/2 - 1) (F&B + B - 3W) (table 2 of DeepSeek-AI 2024; 8 stages and 20 microbatches are those of its figure 5): of the devices in
    the middle, where forward takes as long as the gradients of inputs."""
    terms = both_ways(stages, stages, (ahead, ahead, late), count, pair / (2.0 * ahead + late))
    assert bubble(terms) == pytest.approx((stages / 2 - 1) * (pair + (ahead + late) - 3.0 * late))


def test_heads_and_embeddings_lie_on_both_ends_of_both_ways() -> None:
    """A device with both has half of them for each microbatch, beside half of the layers of its two stages."""
    terms = replace(both_ways(8, 4, (1.0, 1.0, 1.0), 8), embedding=1.0, head=3.0)
    plain = both_ways(8, 4, (1.0, 1.0, 1.0), 8)
    assert step_time(terms) - step_time(plain) == pytest.approx(8 * (1.0 + 3.0) / 2)


def test_a_small_step_by_hand() -> None:
    """Two stages and two microbatches of one second a pass. Stage 1: F F . B W B W; stage 2: . F B F B W W."""
    runs = schedule([Work(1.0, 1.0, 1.0)] * 2, 2, 1, "zero-bubble")
    assert [(run.start, run.backward, run.weights) for run in runs if run.stage == 0] == [
        (0.0, False, False),
        (1.0, False, False),
        (3.0, True, False),
        (4.0, True, True),
        (5.0, True, False),
        (6.0, True, True),
    ]
    assert [run.start for run in runs if run.stage == 1] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


# How layers are dealt to pipeline stages, and how many microbatches a stage holds.

PIPELINES = [(layers, stages) for layers in range(1, 31) for stages in range(1, layers + 1)]
"""Every number of layers up to thirty on every number of stages."""


def dealt(layers: int, stages: int) -> list[float]:
    split = split_layers(layers, stages)
    return [float(split.on(stage)) for stage in range(stages)]


def test_a_split_deals_every_layer_and_no_stage_has_two_more_than_another() -> None:
    for layers, stages in PIPELINES:
        held = dealt(layers, stages)
        assert sum(held) == layers
        assert max(held) - min(held) <= 1.0


def test_first_middle_and_last_are_what_the_stages_hold() -> None:
    for layers, stages in PIPELINES:
        split, held = split_layers(layers, stages), dealt(layers, stages)
        assert (split.first(), split.last()) == (held[0], held[-1])
        assert split.middle() == max(held[1:-1], default=held[-1])
        assert [float(split.before(stage)) for stage in range(stages)] == [sum(held[:stage]) for stage in range(stages)]


def test_fuller_stages_come_first_after_the_first() -> None:
    """Memory and exchanges look only at the first, the second and the last stage."""
    for layers, stages in PIPELINES:
        held = dealt(layers, stages)[1:]
        assert held == sorted(held, reverse=True)


@pytest.mark.parametrize(
    ("layers", "held"), [(8, [8]), (8, [2, 2, 2, 2]), (9, [2, 3, 2, 2]), (10, [2, 3, 3, 2]), (11, [3, 3, 3, 2]), (126, [7, *[8] * 14, 7])]
)
def test_extra_layers_go_to_the_middle_first(layers: int, held: list[int]) -> None:
    """Llama 3 405B trained 126 layers on 16 stages with one layer less on the first and the last (Llama team 2024, section 3.3.2)."""
    assert dealt(layers, len(held)) == held


ENDS = [
    (layers, stages, first, last)
    for layers in range(4, 21)
    for stages in range(2, 7)
    for first in range(layers)
    for last in range(layers)
    if first or last
    if (first + last == layers if stages == 2 and first and last else first + last + stages - 2 <= layers)
]


def test_the_ends_hold_what_they_are_told_and_the_others_share_the_rest_evenly() -> None:
    for layers, stages, first, last in ENDS:
        split = split_layers(layers, stages, first, last)
        held = [float(split.on(stage)) for stage in range(stages)]
        others = held[1 if first else 0 : -1 if last else None]
        assert sum(held) == layers
        assert (not first or held[0] == first) and (not last or held[-1] == last)
        assert max(others, default=0.0) - min(others, default=0.0) <= 1.0
        assert (split.first(), split.last(), split.least) == (held[0], held[-1], min(held))
        assert split.middle() == max(held[1:-1], default=split.least)
        assert split.extra == layers - stages * min(held)
        assert held[1:-1] == sorted(held[1:-1], reverse=True)
        assert [float(split.before(stage)) for stage in range(stages)] == [sum(held[:stage]) for stage in range(stages)]


def test_the_layers_of_deepseek_v3_by_hand() -> None:
    """61 layers on 16 stages, 4 on each and one on the last (DeepSeek-AI 2024); with 2 on the first, 3 on the last one more in between."""
    assert [float(split_layers(61, 16, 0, 1).on(stage)) for stage in range(16)] == [4.0] * 15 + [1.0]
    assert [float(split_layers(61, 16, 2, 3).on(stage)) for stage in range(16)] == [2.0, *[4.0] * 14, 3.0]
    assert [float(split_layers(61, 16, 2, 0).on(stage)) for stage in range(16)] == [2.0, *[4.0] * 14, 3.0]


def most_chunks_held(order: list[str]) -> int:
    held = [order[: end + 1].count("F") - order[:end].count("B") for end in range(len(order))]
    return max(held)


@pytest.mark.parametrize(("stages", "chunks", "count"), [(4, 1, 2), (4, 1, 8), (4, 2, 8), (2, 3, 4), (8, 3, 16)])
def test_a_stage_holds_as_many_microbatches_as_its_schedule_keeps_open(stages: int, chunks: int, count: int) -> None:
    """A stage runs its warm-up forwards, then one forward and one backward in turn (Narayanan et al. 2021, figure 4)."""
    for stage in range(stages):
        ahead = stages - stage - 1 if chunks == 1 else 2 * (stages - stage - 1) + (chunks - 1) * stages
        warm, total = min(ahead, count * chunks), count * chunks
        order = ["F"] * warm + ["F", "B"] * (total - warm) + ["B"] * warm
        assert microbatches_in_flight(stage, stages, chunks, count) == pytest.approx(most_chunks_held(order) / chunks)


def test_interleaving_costs_the_first_stage_the_published_share_more() -> None:
    """1 + (p - 1) / (p v) (Korthikanti et al. 2022, section 4.2.3)."""
    assert microbatches_in_flight(0.0, 8.0, 3.0, 64.0) == pytest.approx(8 * (1 + 7 / 24))


def test_layers_are_dealt_to_chunks_with_the_larger_ones_in_the_middle() -> None:
    """By hand; a chunk beside embedding or head may have none: the first of a stage, and the last one of another."""
    assert chunk_sizes(20, 16) == (1,) * 6 + (2,) * 4 + (1,) * 6
    assert [chunk_sizes(layers, 3) for layers in (6, 7, 8, 9)] == [(2, 2, 2), (2, 3, 2), (3, 3, 2), (3, 3, 3)]
    assert [chunk_sizes(layers, 2) for layers in (1, 2, 3)] == [(1, 0), (1, 1), (2, 1)]
    assert (chunk_sizes(7, 8, first=True), chunk_sizes(7, 8)) == ((0,) + (1,) * 7, (1,) * 7 + (0,))


def test_stages_wait_for_chunks_where_they_do_not_divide_the_fullest_stage() -> None:
    """Ten layers on four stages are 2, 3, 3 and 2: of two chunks the fuller stages have one larger, of three none. One chunk, and one
    stage, wait for nothing."""
    waited = [float(waited_for_chunks(split_layers(10, 4), float(chunks))) for chunks in (1, 2, 3)]
    assert waited == [0.0, 0.75, 0.0]
    assert float(waited_for_chunks(split_layers(10, 1), 3.0)) == 0.0
    assert float(waited_for_chunks(split_layers(10, 4, first=4), 4.0)) == 0.0
