"""The passes of a pipeline: each once, after what it waits for, one at a time on a stage, and together as long as the closed form says."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as some

from crossopt.crossflow.pipeline import Terms, bubble, step_time
from crossopt.crossflow.plan import SCHEDULES, Schedule
from crossopt.crossflow.schedule import Run, Work, passes_of, place_of, schedule
from crossopt.crossflow.stages import chunk_sizes, microbatches_in_flight, split_layers

SECONDS = some.floats(0.1, 10.0)


def end(runs: list[Run]) -> float:
    return max(run.end for run in runs)


@given(
    some.lists(some.tuples(SECONDS, SECONDS, SECONDS), min_size=1, max_size=6),
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
    places = {(run.microbatch, place_of(run.stage, run.chunk, len(stages), kind), run.backward + run.weights): run for run in runs}
    assert len(runs) == len(places) == (2 if kind == "1f1b" else 3) * count * turns * len(stages)
    for (microbatch, place, way), run in places.items():
        before = [(microbatch, place - 1, 0), (microbatch, place + 1, 1), (microbatch, place, 1)][way]
        assert before not in places or places[before].end <= run.start
        assert not way or places[microbatch, place, way - 1].end <= run.start
        assert run.end - run.start == pytest.approx(stages[place if kind == "dualpipe" else run.stage][way] / turns)
    for stage in range(len(stages)):
        own = [run for run in runs if run.stage == stage]
        assert all(one.end <= other.start for one, other in pairwise(own))


@given(SECONDS, SECONDS, some.integers(1, 7), some.integers(1, 5), some.integers(1, 4))
def test_equal_stages_end_as_the_closed_form_says(forward: float, backward: float, stages: int, groups: int, chunks: int) -> None:
    """m s + (p - 1) s / v."""
    turns, count = chunks if stages > 1 else 1, stages * groups
    runs = schedule([Work(forward, backward)] * stages, count, turns)
    slot = forward + backward
    assert end(runs) == pytest.approx(count * slot + (stages - 1) * slot / turns)


@given(some.lists(SECONDS, min_size=2, max_size=6), SECONDS, some.integers(1, 20))
def test_uneven_stages_whose_last_is_the_fullest_end_as_the_closed_form_says(slots: list[float], ratio: float, count: int) -> None:
    """(m - 1) max s + sum s, where backward takes the same multiple of forward on every stage."""
    slots = sorted(slots)
    ahead = [slot / (1.0 + ratio) for slot in slots]
    runs = schedule([Work(one, slot - one) for slot, one in zip(slots, ahead, strict=True)], count, 1)
    assert end(runs) == pytest.approx((count - 1) * slots[-1] + sum(slots))


@given(some.lists(SECONDS, min_size=2, max_size=6), SECONDS, some.integers(1, 20))
def test_uneven_stages_never_take_longer_than_the_closed_form(slots: list[float], ratio: float, count: int) -> None:
    ahead = [slot / (1.0 + ratio) for slot in slots]
    runs = schedule([Work(one, slot - one) for slot, one in zip(slots, ahead, strict=True)], count, 1)
    assert end(runs) <= ((count - 1) * max(slots) + sum(slots)) * (1.0 + 1e-12)


@given(SECONDS, SECONDS, some.tuples(some.integers(2, 4), some.integers(1, 3)), some.tuples(SECONDS, SECONDS), some.integers(1, 20))
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
