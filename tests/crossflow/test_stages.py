"""How layers are dealt to pipeline stages, and how many microbatches a stage holds."""

import pytest

from crossopt.crossflow.stages import microbatches_in_flight, split_layers

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
