"""What a result of throughput holds of its proof is counted again: honest ones are no word, and none shows more than the best placement."""

from dataclasses import replace
from math import fsum, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossopt.formulation.placement.blocks import blocks_of
from crossopt.formulation.placement.throughput import contract, machine_of
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.instances.question import read
from crossopt.solvers.answer import Limits, SearchOutcome
from crossopt.solvers.checking import check_answer
from crossopt.solvers.family import certify
from crossopt.solvers.placement.bounds import along as along_bound
from crossopt.solvers.placement.bounds import blocks as blocks_bound
from crossopt.solvers.placement.bounds import set_partitioning
from crossopt.solvers.placement.bounds.along import MOST_REPEATED, along
from crossopt.solvers.placement.bounds.blocks import least_busiest
from crossopt.solvers.placement.bounds.set_partitioning import priced
from crossopt.solvers.placement.family import FAMILY, Answer
from crossopt.solvers.placement.shown import shown_by
from crossopt.solvers.placement.throughput import portfolio
from crossopt.solvers.placement.throughput.run import Run
from crossopt.solvers.proofs import MultiplierBound, OnPath, Proof, Surrounded, Swept, UnverifiedBound
from tests.extent import examples
from tests.instances.placement.graphs import graph, question
from tests.paths import reference
from tests.solvers.placement.asking import answered, checked, silent
from tests.solvers.placement.test_along import asked_for, truth_of
from tests.solvers.placement.test_portfolio import asked_at_random
from tests.solvers.placement.test_stages import brute_force

RING = question(graph([3.0] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)], [1.0] * 4), 2, contiguity="no")
"""Four blocks of 3 ms in a ring, each joined to the next by 1 ms: the best placement is busy for 8 ms."""


def proofs_of(asked: PlacementQuestion, limit: float) -> list[tuple[float, Proof]]:
    """The last bound of each engine, and what shows it."""
    blocks, machine = blocks_of(asked.graph, asked.contiguity != "no"), machine_of(asked)
    held = least_busiest(asked, blocks, limit)
    found: list[tuple[float, Proof]] = [(held.bound, Surrounded(blocks_bound.PROOF, limit, held.block))]
    found += [
        (one.bound, MultiplierBound(set_partitioning.PROOF, limit, tuple(one.prices.tolist())))
        for one in [*priced(blocks, machine, limit, 0.0, inf)][-1:]
    ]
    return found + [(one.bound, Swept(along_bound.PROOF, limit, one.states)) for one in [*along(blocks, machine, limit, 0.0)][-1:]]


def result_of(asked: PlacementQuestion, bound: float, proof: Proof) -> Answer:
    """The best placement with this bound and this proof."""
    best = answered(asked, "auto", Limits(), silent)
    return certify(FAMILY, asked, SearchOutcome(best.answer, bound, proof, "portfolio", rivals=best.rivals), Limits(), 0.0)


@pytest.mark.parametrize("seeds", [range(0, 24, 8), pytest.param(range(4, 24, 8), marks=pytest.mark.slow)], ids=str)
def test_what_engines_found_is_shown_again_to_the_last_bit(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(set_partitioning, "_PATIENCE", 3)
    for seed in seeds:
        asked, true = asked_for(seed), truth_of(seed)
        for share in (0.7, 1.0, 1.4) if true else ():
            for bound, proof in proofs_of(asked, share * true):
                assert shown_by(asked, proof) == bound, (seed, share, proof)
                assert (shown_by(asked, proof, 0.5 * bound) or 0.0) >= 0.5 * bound
    assert {type(proof) for _, proof in proofs_of(RING, 9.0)} == {Surrounded, MultiplierBound, Swept}


def test_an_honest_result_is_accepted_and_not_told() -> None:
    for bound, proof in proofs_of(RING, 8.0):
        report = check_answer(FAMILY, result_of(RING, bound, proof), RING)
        assert (report.refused, report.told) == ((), False)
        assert report.checked[-1].startswith("the bound was proved anew by ")


@pytest.mark.parametrize("change", [0.001, 0.4, 3.9])
def test_a_bound_above_what_its_proof_shows_is_refused(change: float) -> None:
    """Four blocks of 3 ms on three devices: 8 ms are the best, and what is shown is less."""
    asked = replace(RING, accelerators=3)
    shown = [(bound, proof) for bound, proof in proofs_of(asked, 7.5) if bound < 7.5]
    assert shown
    for bound, proof in shown:
        report = check_answer(FAMILY, result_of(asked, min(bound + change, 8.0), proof), asked)
        assert any(line.startswith("proof: ") for line in report.refused)


def test_proofs_of_another_question_or_of_none_show_nothing() -> None:
    wrong: list[Proof] = [
        *(MultiplierBound("", 8.0, prices) for prices in ((), (1,), (1,) * 5, (-1, 5, 5, 5), (1 << 40,) * 4, (10**400, 1, 1, 1))),
        *(MultiplierBound("", limit, (1, 1, 1, 1)) for limit in (0.0, -1.0, inf, float("nan"))),
        *(Surrounded("", limit, 0) for limit in (-1.0, inf, float("nan"))),
        *(Surrounded("", 8.0, block) for block in (-1, 4, 10**400)),
        *(Swept("", limit, 100) for limit in (0.0, -1.0, inf, float("nan"))),
        *(Swept("", 8.0, states) for states in (-1, MOST_REPEATED + 1, 10**400)),
        OnPath("", "cpu", 0),
        UnverifiedBound(""),
    ]
    assert [proof for proof in wrong if shown_by(RING, proof) is not None] == []
    sample = replace(RING, problem="latency")
    assert [proof for _, proof in proofs_of(RING, 8.0) if shown_by(sample, proof) is not None] == []
    hidden = replace(RING, communication="overlapped")
    assert [proof for _, proof in proofs_of(RING, 8.0) if (shown_by(hidden, proof) or 0.0) > brute_force(hidden)] == []


def test_a_proof_does_not_show_that_there_is_none() -> None:
    for _, proof in proofs_of(RING, 8.0):
        none = replace(
            result_of(RING, 8.0, UnverifiedBound("nobody")),
            value=None,
            bound=None,
            gap=None,
            answer=None,
            details=None,
            rivals=(),
            trace=(),
        )
        report = check_answer(FAMILY, replace(none, status="INFEASIBLE", proved=True, proof=proof, reasons=("no",)), RING)
        assert any(line.startswith("proof: ") for line in report.refused)


@examples(60)
@given(st.integers(0, 29), st.floats(-3.0, 3.0), st.integers(0, 1 << 30), st.sampled_from([1, 3, 100, 1 << 14]))
def test_no_prices_and_no_limit_show_more_than_the_best_placement(seed: int, power: float, draw: int, most: int) -> None:
    asked, true = asked_for(seed), truth_of(seed)
    limit = (true or 1.0) * 2.0**power
    left = contract(blocks_of(asked.graph, staged=False), machine_of(asked), limit)
    prices = np.random.default_rng(draw).integers(0, most, len(left))
    assert (shown_by(asked, MultiplierBound("", limit, tuple(prices.tolist()))) or 0.0) <= true


@examples(50)
@given(st.integers(0, 39), st.floats(-3.0, 3.0), st.integers(0, 9), st.integers(0, 2_000))
def test_no_block_and_no_rounds_show_more_than_the_best_placement(seed: int, power: float, block: int, states: int) -> None:
    """Of any contiguity, with memory that binds and transfers that hide."""
    asked = asked_at_random(seed)
    true = brute_force(asked)
    limit = (1.0 if true in {0.0, inf} else true) * 2.0**power
    for proof in (Surrounded("", limit, block), Swept("", limit, states)):
        assert (shown_by(asked, proof) or 0.0) <= true


@pytest.mark.slow
@examples(60)
@given(st.integers(0, 23), st.floats(-1.0, 1.0), st.sampled_from([0, 10, 100, 5_000]))
def test_rounds_that_end_early_show_less_and_never_too_much(seed: int, power: float, states: int) -> None:
    asked, true = asked_for(seed), truth_of(seed)
    limit = (true or 1.0) * 2.0**power
    assert shown_by(asked, Swept("", limit, 0)) in (None, limit)
    few, all_of_them = (shown_by(asked, Swept("", limit, most)) or 0.0 for most in (states, MOST_REPEATED))
    assert few <= all_of_them <= true


def test_what_anybody_can_show_again_is_taken_before_a_higher_word_within_the_gap() -> None:
    run = Run(RING, np.array([0, 0, 1, 1]), 8.0, near=1e-3)
    run.raise_bound(7.9, Surrounded("cut", 8.0, 0))
    run.raise_bound(8.0, UnverifiedBound("somebody"))
    assert (run.found().bound, run.found().proof) == (8.0, UnverifiedBound("somebody"))
    run.raise_bound(7.995, MultiplierBound("prices", 8.0, (1,)))
    assert (run.found().bound, run.found().proof) == (7.995, MultiplierBound("prices", 8.0, (1,)))


def test_rounds_of_too_many_states_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only they say enough, and repeating them would take more than a check may."""
    monkeypatch.setattr(portfolio, "_SHORTEST_PRICING", inf)
    chain = graph([5.0, 4.0, 3.0, 3.0, 3.0], [(0, 1), (1, 2), (2, 3), (3, 4)], [0.1] * 5)
    asked = question(chain, 2, contiguity="no")
    assert isinstance(answered(asked, "auto", Limits(), silent).proof, Swept)
    monkeypatch.setattr(portfolio, "MOST_REPEATED", -1)
    assert isinstance(answered(asked, "auto", Limits(), silent).proof, UnverifiedBound)


@pytest.mark.data
@pytest.mark.slow
def test_a_published_graph_is_proved_anew_by_prices() -> None:
    asked = read(reference("placement/throughput/layer/bert24_inference.json"), ("contiguous=no",))
    found = answered(asked, "auto", Limits(60.0), silent)
    report = checked(found)
    assert (report.refused, report.told) == ((), False)
    assert isinstance(found.proof, MultiplierBound)
    cheaper = replace(found.proof, prices=(0, *found.proof.prices[1:]))
    assert not checked(replace(found, proof=replace(cheaper, prices=cheaper.prices[1:]))).accepted
    assert not checked(replace(found, proof=replace(found.proof, limit=0.99 * found.proof.limit))).accepted


def with_decimals(seed: int) -> PlacementQuestion:
    """Blocks of several nodes, whose sums are rounded otherwise by the judge than one after the other; memory that one of them fills."""
    random = np.random.default_rng(seed)
    count, colours = 9, 3
    colour = [*range(colours), *random.integers(0, colours, count - colours).tolist()]
    times, sizes, transfer = (random.integers(1, 1000, count) / 1000.0 for _ in range(3))
    of = graph(times, [(row, row + 1) for row in range(count - 1)], transfer * (seed % 2), sizes, colour=colour, cpu=times * 1.1)
    full = max(fsum(sizes[np.array(colour) == one].tolist()) for one in range(colours))
    return question(of, 1 + seed % 3, seed % 4 == 0, full if seed % 3 else inf, contiguity="no")


@pytest.mark.slow
@examples(120)
@given(st.integers(0, 199), st.integers(-4, 4))
def test_limits_and_memory_that_are_met_to_the_last_digit_show_nothing_too_much(seed: int, digits: int) -> None:
    asked = with_decimals(seed)
    true = brute_force(asked)
    limit = (1.0 if true == inf else true) * (1.0 + digits * 2.0**-52)
    left = contract(blocks_of(asked.graph, staged=False), machine_of(asked), limit)
    proofs = [
        *(Surrounded("", limit, block) for block in range(3)),
        Swept("", limit, 10_000),
        MultiplierBound("", limit, (1000,) * len(left)),
    ]
    assert [proof for proof in proofs if (shown_by(asked, proof) or 0.0) > true] == []
