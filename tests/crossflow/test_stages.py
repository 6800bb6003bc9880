"""How layers are dealt to pipeline stages, and how many microbatches a stage holds."""

import pytest

from crossopt.crossflow.stages import chunk_sizes, microbatches_in_flight, split_layers, waited_for_chunks

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
    ("layers", "held"),
    [(8, [8]), (8, [2, 2, 2, 2]), (9, [2, 3, 2, 2]), (10, [2, 3, 3, 2]), (11, [3, 3, 3, 2]), (126, [7, *[8] * 14, 7])],
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
