"""Memory to the byte: sizes of large graphs are exact in the models; where they cannot be, no answer breaks the memory all the same."""

from dataclasses import replace

import numpy as np
import pytest

from crossopt.formulation.placement.blocks import blocks_of, figures_of
from crossopt.instances.placement.graph import Contiguity, PlacementQuestion
from crossopt.solvers.answer import Limits
from crossopt.solvers.placement.judge import judge
from tests.instances.placement.graphs import graph, question
from tests.solvers.placement.asking import answered, silent

HALF = 10_000_000_000


def tight(contiguity: Contiguity, extra: float = 0.0) -> PlacementQuestion:
    """Four blocks of which only the outer and the inner two together fit two accelerators, by a single byte."""
    sizes = [HALF + extra, 1.0 + extra, HALF - 1.0 + extra, extra]
    return question(graph([4.0, 4.0, 1.0, 1.0], [], [0.0] * 4, sizes=sizes), 2, 0, HALF + 2.0 * extra, contiguity)


@pytest.mark.parametrize(("contiguity", "bound"), [("stages", 5.0), ("no", 4.0)])
def test_one_byte_too_much_is_too_much(contiguity: Contiguity, bound: float) -> None:
    """Without stages sizes are rounded to what HiGHS can tell apart: the bound is lower, and the answer keeps the memory."""
    found = answered(tight(contiguity), "auto", Limits(), silent)
    assert found.value == 5.0
    assert found.bound is not None
    assert bound * (1.0 - 1e-6) <= found.bound <= 5.0
    assert found.answer is not None
    assert found.answer.devices["0"] == found.answer.devices["3"] != found.answer.devices["1"]


def test_whole_sizes_are_exact_over_their_divisor() -> None:
    blocks = blocks_of(graph([1.0] * 3, [], [0.0] * 3, sizes=[4096.0, 8192.0, 12288.0]), staged=False)
    figures = figures_of(blocks, 20481.0, 3.0, 1 << 20)
    assert (figures.size, figures.memory) == ([1, 2, 3], 5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_rounded_sizes_never_cost_a_bound_nor_a_rule(seed: int) -> None:
    """Sizes with fractions are rounded in the models; what is answered keeps the memory, and what is proved is right."""
    random = np.random.default_rng(seed)
    sizes = random.random(8) * 10.0**9
    asked = question(graph(random.integers(1, 9, 8) * 1.0, [], [0.0] * 8, sizes=sizes), 2, 0, float(sizes.sum() * 0.5 * 1.0001), "no")
    found = answered(asked, "auto", Limits(seconds=20.0), silent)
    values = []
    for code in range(1 << 8):
        device = np.array([code >> block & 1 for block in range(8)], np.int64)
        verdict = judge(asked, device)
        values.append(verdict.value if verdict.accepted else float("inf"))
    if found.value is None:
        assert found.status == "UNKNOWN" or min(values) == float("inf")
    else:
        assert found.bound is not None
        assert found.bound <= min(values) <= found.value


def test_a_solution_that_breaks_the_memory_by_rounding_is_dropped() -> None:
    asked = replace(tight("stages", extra=0.25), memory=HALF + 0.5)
    found = answered(asked, "auto", Limits(), silent)
    assert found.value is None or found.value == 5.0
