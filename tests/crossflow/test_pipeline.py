"""The step of a pipeline: against its schedule, operation by operation, and by the laws of its formula."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.crossflow.pipeline import Terms, bubble, fullest_slot, mean_slot, slots, step_time, window
from crossopt.crossflow.stages import split_layers
from tests.extent import examples

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


def schedule(stages: int, stage: int, count: int) -> list[tuple[str, int]]:
    """1F1B: warm-up forwards, one forward and one backward in turn, the last backwards."""
    warm = min(stages - 1 - stage, count)
    steady = [step for batch in range(count - warm) for step in (("forward", warm + batch), ("backward", batch))]
    return [("forward", batch) for batch in range(warm)] + steady + [("backward", batch) for batch in range(count - warm, count)]


def simulated(forward: list[float], backward: list[float], count: int) -> float:
    """Seconds of 1F1B when each stage works through its schedule as soon as its inputs are there, and transfers cost nothing."""
    stages = len(forward)
    waiting = [schedule(stages, stage, count) for stage in range(stages)]
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
