"""Smoothed passes at falling heat, against every choice of tiny problems and against plain passes."""

from dataclasses import replace
from functools import partial
from itertools import count

import numpy as np
import pytest

from crossopt.formulation.sharding.core import Core, unreduced
from crossopt.formulation.sharding.dual import bound_of
from crossopt.formulation.sharding.reductions import reduced
from crossopt.instances.question import read
from crossopt.solvers.sharding import messages
from crossopt.solvers.sharding.messages import (
    Ascent,
    State,
    ascent_of,
    climb,
    cool,
    cooling_of,
    network_of,
    passed,
    proof_of,
    smoothed,
    state_of,
)
from tests.every import every
from tests.instances.sharding.cores import cores
from tests.instances.sharding.tiny import choices_of
from tests.paths import reference


def _cooled(core: Core, rounds: int) -> Ascent:
    ascent, turns = ascent_of(core), count(1)
    climb(ascent, lambda _: True, 1)
    cool(ascent, cooling_of(ascent), lambda: next(turns) / rounds, lambda: True, rounds)
    return ascent


@every("core", cores)
def test_cooled_bounds_never_pass_the_optimum(core: Core) -> None:
    best = min((cost for _, cost in choices_of(core)), default=None)
    ascent = _cooled(core, 12)
    dual, bound = proof_of(ascent, partial(bound_of, core))
    assert bound == bound_of(core, dual)
    assert best is None or bound <= best
    assert bound >= ascent.best - 1e-3 * max(abs(ascent.best), 1.0)


@pytest.mark.data
@pytest.mark.slow
def test_cooling_goes_on_where_single_steps_stand_still() -> None:
    """After hundreds of rounds as many passes gain several times as much: 25 to 90 times as the last digits of floats fall."""
    core = reduced(unreduced(read(reference("sharding/asplos-2025-iopddl-V.json.gz")).problem)).core
    ascent, turns = ascent_of(core), count(1)
    climb(ascent, lambda _: True, 300)
    before = ascent.best
    stepped = replace(ascent, state=State(*(figures.copy() for figures in ascent.state)))
    climb(stepped, lambda _: True, 25 * 19 // 3)
    cool(ascent, cooling_of(ascent), lambda: next(turns) / 25, lambda: True, 25)
    assert ascent.best - before > 3.0 * (stepped.best - before)


def test_the_heat_falls_with_the_share_of_the_time_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    ascent, heats, shares = ascent_of(cores()[0]), list[float](), iter((0.0, 0.5, 1.0))
    climb(ascent, lambda _: True, 1)
    cooling = cooling_of(ascent)
    monkeypatch.setattr(messages, "smoothed", lambda network, state, weights, heat, forward: heats.append(heat) or 0.0)
    monkeypatch.setattr(messages, "_smoothed_step", lambda *_: None)
    cool(ascent, cooling, lambda: next(shares), lambda: True, 3)
    assert sorted(heats, reverse=True) == heats
    assert [heat / cooling.heat for heat in heats[:: len(heats) // 3]] == pytest.approx([1.0, 0.003**0.5, 0.003])


@every("core", lambda: cores()[:40])
@pytest.mark.parametrize("heat", [1e-3, 1.0, 100.0])
def test_a_smoothed_pass_gains_no_more_than_a_plain_one(core: Core, heat: float) -> None:
    network, weights = network_of(core), np.zeros(len(core.costs))
    plain, soft = state_of(core, network), state_of(core, network)
    gained = smoothed(network, soft, weights, heat, True)
    assert gained <= passed(network, plain, True) + 1e-9
    assert np.add.reduceat(weights, core.offsets[:-1]) == pytest.approx(1.0)
