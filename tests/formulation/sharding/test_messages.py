"""Rows of memory, messages and multipliers, against every choice of tiny problems."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from crossopt.formulation.sharding.core import Core, in_use, timeline_of
from crossopt.formulation.sharding.dual import bound_of
from crossopt.solvers.sharding.messages import ascent_of, climb, priced, proof_of
from tests.every import every
from tests.instances.sharding.cores import cores
from tests.instances.sharding.tiny import choices_of, peak


@every("core", cores)
def test_rows_of_the_timeline_tell_the_peak(core: Core) -> None:
    random = np.random.default_rng(7)
    timeline = timeline_of(core)
    for _ in range(5):
        chosen = random.integers(0, core.counts)
        used = in_use(core, timeline, chosen)
        assert used.max(initial=0) == (peak(core, chosen) if core.limit is not None else 0)
        multipliers = random.random(len(timeline.times))
        paid = priced(core, timeline, multipliers)[core.offsets[:-1] + chosen].sum()
        assert paid * max(core.limit or 0, 1) == pytest.approx(float(used @ multipliers))


@every("core", cores)
def test_messages_never_pass_the_optimum(core: Core) -> None:
    best = min((cost for _, cost in choices_of(core)), default=None)
    ascent = ascent_of(core)
    bounds: list[float] = []

    def going(bound: float) -> bool:
        bounds.append(bound)
        return len(bounds) < 60

    climb(ascent, going)
    dual, bound = proof_of(ascent, partial(bound_of, core))
    assert bound == bound_of(core, dual)
    assert best is None or bound <= best
    assert bound >= ascent.best - 1e-3 * max(abs(ascent.best), 1.0)
    if core.limit is None:
        assert all(later >= sooner - 1e-6 for sooner, later in pairwise(bounds))


@every("core", lambda: [core for core in cores() if core.limit])
def test_directions_that_cancel_lead_nowhere_far(core: Core) -> None:
    """The step stays within a few times what one along the last excess of memory would be."""
    ascent = ascent_of(core)
    over = np.zeros(len(ascent.multipliers))

    def cancelling(bound: float) -> bool:
        over[:] = in_use(core, ascent.timeline, ascent.labels) / (core.limit or 1) - 1.0
        over[over < 0.0] = 0.0
        ascent.direction = -over / 9.0 * (1.0 - 1e-2)
        return True

    climb(ascent, cancelling, 1)
    far = float(np.linalg.norm(ascent.multipliers)) * float(np.linalg.norm(over))
    assert far <= 0.5 * ascent.stride * (abs(ascent.best) + 1.0)


def test_messages_on_trees_without_limit_reach_the_optimum() -> None:
    """There the relaxation is exact, whatever the costs."""
    seen = 0
    for core in cores():
        if core.limit is not None or not _forest(core):
            continue
        ascent = ascent_of(core)
        climb(ascent, lambda _: True, 30)
        assert proof_of(ascent, partial(bound_of, core))[1] == min(cost for _, cost in choices_of(core))
        seen += 1
    assert seen > 3


def _forest(core: Core) -> bool:
    roots = list(range(len(core)))

    def root(node: int) -> int:
        return node if roots[node] == node else root(roots[node])

    for first, second in zip(core.firsts.tolist(), core.seconds.tolist(), strict=True):
        if root(first) == root(second):
            return False
        roots[root(first)] = root(second)
    return True
