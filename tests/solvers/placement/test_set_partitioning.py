"""Bounds by prices: least loads and bounds as enumeration finds them, never above the truth, and better than sums of work."""

from itertools import product

import numpy as np
import pytest

from crossopt.formulation.placement.blocks import Blocks, Figures, blocks_of, figures_of
from crossopt.formulation.placement.latency import greatest_of
from crossopt.formulation.placement.throughput import Machine, machine_of
from crossopt.instances.errors import SolverError
from crossopt.instances.question import read
from crossopt.solvers.answer import Limits
from crossopt.solvers.placement.bounds import prices as counting
from crossopt.solvers.placement.bounds import set_partitioning as columns
from crossopt.solvers.placement.bounds.along import swept
from crossopt.solvers.placement.bounds.prices import (
    BEYOND,
    least_busiest_of,
    least_loads,
    least_work,
    set_of,
    taken_for,
    walk_along,
)
from crossopt.solvers.placement.bounds.set_partitioning import PROOF, priced
from tests.instances.placement.graphs import graph, question
from tests.paths import reference
from tests.solvers.placement.asking import answered, silent
from tests.solvers.placement.test_along import asked_for, truth_of
from tests.solvers.placement.test_portfolio import asked_at_random
from tests.solvers.placement.test_stages import brute_force

FOREVER = float("inf")


def bounds(blocks: Blocks, machine: Machine, limit: float) -> list[float]:
    """Better and better bounds."""
    return [found.bound for found in priced(blocks, machine, limit, 0.0, FOREVER)]


def load_of(blocks: Blocks, figures: Figures, inside: tuple[bool, ...]) -> int:
    """What an accelerator does that holds these blocks."""
    own = sum(work for work, here in zip(figures.accelerator, inside, strict=True) if here)
    return own + sum(
        cost for pins, cost in zip(blocks.nets, figures.transfer, strict=True) if 0 < sum(inside[pin] for pin in pins) < len(pins)
    )


@pytest.mark.parametrize("seed", range(10))
def test_least_loads_and_the_bound_are_what_enumeration_finds(seed: int) -> None:
    asked = asked_for(seed)
    blocks = blocks_of(asked.graph, staged=False)
    figures = figures_of(blocks, asked.memory, greatest_of(blocks), 1 << 20)
    prices = np.random.default_rng(seed).integers(0, 9, len(blocks))
    limit, total = sum(figures.accelerator) // 2 + sum(figures.transfer) // 3, int(prices.sum())
    loads, work = [BEYOND] * (total + 1), [BEYOND] * (total + 1)
    for inside in product((False, True), repeat=len(blocks)):
        worth = sum(int(price) for price, here in zip(prices, inside, strict=True) if here)
        if all(runs or not here for runs, here in zip(figures.supported, inside, strict=True)):
            load = load_of(blocks, figures, inside)
            loads[worth] = min(loads[worth], load if load <= limit else BEYOND)
        own = sum(cpu for cpu, here in zip(figures.cpu, inside, strict=True) if here)
        work[worth] = min(work[worth], own if own <= limit else BEYOND)
    for sweep in swept(blocks, figures):
        walk = walk_along(sweep, figures)
        assert walk is not None
        found, chosen = least_loads(walk, prices, limit)
        assert found.tolist() == loads
        for worth in np.flatnonzero(found < BEYOND).tolist():
            inside = set_of(walk, prices, chosen, worth)
            assert (int(prices[inside].sum()), load_of(blocks, figures, tuple(inside.tolist()))) == (worth, loads[worth])
    on_cpu, taken = least_work(prices, np.array(figures.cpu, np.int64), limit)
    assert on_cpu.tolist() == work
    for worth in np.flatnonzero(on_cpu < BEYOND).tolist():
        assert int(np.array(figures.cpu)[taken_for(prices, taken, worth)].sum()) == work[worth]
    for accelerators, cpus in ((1, 0), (2, 1), (3, 2)):
        least = least_busiest_of(found, on_cpu, accelerators, cpus)
        every = sorted({0, *loads, *work})
        assert least == next(
            busiest
            for busiest in every
            if accelerators * max(worth for worth, load in enumerate(loads) if load <= busiest)
            + cpus * max(worth for worth, own in enumerate(work) if own <= busiest)
            >= total
            or busiest == BEYOND
        )


@pytest.mark.slow
def test_no_placement_is_below_it_whatever_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_MOST", 1 << 12)
    monkeypatch.setattr(columns, "_PATIENCE", 12)
    for seed in range(30):
        asked = asked_for(seed)
        true, blocks = truth_of(seed), blocks_of(asked.graph, staged=False)
        for share in (0.5, 1.0 + 1e-9, (0.999, 1.3, 4.0)[seed % 3]):
            found = bounds(blocks, machine_of(asked), share * true)
            assert all(bound <= min(share, 1.0 + 1e-12) * true for bound in found), (seed, share)
            assert found == sorted(found), (seed, share)


def test_memory_can_only_raise_what_is_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_PATIENCE", 4)
    monkeypatch.setattr(counting, "_MOST", 1 << 12)
    for asked in map(asked_at_random, range(15)):
        true = brute_force(asked)
        if asked.contiguity == "no" and 0.0 < true < FOREVER:
            found = bounds(blocks_of(asked.graph, staged=False), machine_of(asked), true * 1.1)
            assert all(bound <= true * (1.0 + 1e-12) for bound in found)


def test_what_a_set_must_transfer_counts() -> None:
    """Four blocks of 3 ms in a ring, each joined to the next by 1 ms: whoever holds two of them pays for two nets."""
    asked = question(graph([3.0] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)], [1.0] * 4), 2, contiguity="no")
    blocks = blocks_of(asked.graph, staged=False)
    assert brute_force(asked) == pytest.approx(8.0)
    assert max(bounds(blocks, machine_of(asked), 9.0)) == pytest.approx(8.0, rel=1e-6)


def test_wide_graphs_and_hidden_transfers_are_left_alone() -> None:
    ring = [(one, other) for one in range(24) for other in range(one + 1, 24)]
    wide = question(graph([1.0] * 24, ring, [0.1] * 24), 3, contiguity="no")
    hidden = question(graph([1.0, 2.0], [(0, 1)], [0.1] * 2), 2, contiguity="no", communication="overlapped")
    cpus = question(graph([1.0, 2.0], [(0, 1)], [0.1] * 2), 0, 2, contiguity="no")
    for asked in (wide, hidden, cpus):
        assert list(priced(blocks_of(asked.graph, staged=False), machine_of(asked), 100.0, 0.0, 0.0)) == []


@pytest.mark.data
def test_a_published_graph_is_bounded_above_what_its_relaxation_says() -> None:
    """HiGHS has 33.064 ms after 150 s on this graph of six accelerators; prices in proportion to the work say more at once."""
    asked = read(reference("placement/throughput/layer/resnet50_inference.json"), ("contiguous=no",))
    assert 33.08 < next(priced(blocks_of(asked.graph, staged=False), machine_of(asked), 33.38, 0.0, FOREVER)).bound < 33.38


def test_a_solver_that_fails_leaves_the_bounds_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise SolverError("highs failed")

    monkeypatch.setattr(columns, "Session", failing)
    asked = question(graph([3.0] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)], [1.0] * 4), 2, contiguity="no")
    assert len(list(priced(blocks_of(asked.graph, staged=False), machine_of(asked), 9.0, 0.0, FOREVER))) == 1


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("operator/bert_l-3_inference", 21.9072),
        pytest.param("operator/bert_l-6_training", 71.6386, marks=pytest.mark.slow),
        pytest.param("layer/bert24_inference", 17.7138, marks=pytest.mark.slow),
        ("layer/gnmt_inference", 31.6857),
    ],
)
def test_published_graphs_are_proved_at_once(name: str, limit: float) -> None:
    """Within 1e-4 of the best placements known; integer models take up to minutes."""
    asked = read(reference(f"placement/throughput/{name}.json"), ("contiguous=no",))
    assert max(bounds(blocks_of(asked.graph, staged=False), machine_of(asked), limit)) == limit


@pytest.mark.data
@pytest.mark.slow
def test_the_answer_says_what_proved_it() -> None:
    asked = read(reference("placement/throughput/layer/bert24_inference.json"), ("contiguous=no",))
    found = answered(asked, "auto", Limits(60.0), silent)
    assert (found.proved, found.proved_by) == (True, PROOF)
