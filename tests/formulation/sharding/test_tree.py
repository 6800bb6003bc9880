"""Proofs in whole numbers: they close at the optimum, never above it, and not with a step less."""

from contextlib import suppress
from dataclasses import replace
from time import monotonic

import numpy as np
import pytest

from crossopt.formulation.sharding.core import Core, unreduced
from crossopt.formulation.sharding.dual import Dual, message_offsets, no_dual
from crossopt.formulation.sharding.tree import Branch, branched, closes
from crossopt.instances.errors import SolverError
from crossopt.solvers.answer import Limits
from crossopt.solvers.sharding import integer as closing
from crossopt.solvers.sharding.integer import close, milp
from crossopt.solvers.sharding.run import EnoughError, Run
from tests.every import every
from tests.instances.sharding.tiny import choices_of, tiny


def _closed(core: Core) -> Run:
    run = Run(core, Limits(), lambda progress: None, monotonic())
    with suppress(EnoughError):
        milp(run)
    close(run)
    return run


def _proves(core: Core, value: int, steps: tuple[Dual | Branch, ...]) -> bool:
    try:
        return closes(core, value, iter(steps))
    except ValueError:  # with another value other strategies are left, and the next step is none of that core
        return False


def test_steps_close_at_the_optimum_and_not_above() -> None:
    branches = proofs = 0
    for seed in range(48):
        core = unreduced(tiny(seed, nodes=6))
        best = min((cost for _, cost in choices_of(core)), default=None)
        if best is None:
            continue
        run = _closed(core)
        assert run.cost == best
        if not run.steps:
            continue
        proofs += 1
        branches += sum(isinstance(step, Branch) for step in run.steps)
        assert closes(core, best, iter(run.steps))
        assert not _proves(core, best + 1, run.steps)
        assert not _proves(core, best, run.steps[:-1])
    assert proofs > 16
    assert branches > 2


def _random_steps(core: Core, random: np.random.Generator) -> list[Dual | Branch]:
    """Duals of the core as it stands first, then whatever: nothing that they close may be false."""
    first, second = (int(offsets[-1]) for offsets in message_offsets(core))
    times = np.arange(0, 9, 2)
    prices = random.integers(0, 3, len(times)) * (core.limit is not None)
    dual = Dual(1, times, prices, random.integers(-2, 3, first), random.integers(-2, 3, second))
    return [dual, *(Branch(int(random.integers(0, 3)), random.integers(0, 4, 2)) for _ in range(30))]


@every("seed", range(40))
def test_no_steps_close_above_the_optimum(seed: int) -> None:
    core, random = unreduced(tiny(seed)), np.random.default_rng(seed)
    best = min((cost for _, cost in choices_of(core)), default=None)
    if best is None:
        return
    for _ in range(10):
        with suppress(ValueError):
            assert not closes(core, best + 1, iter(_random_steps(core, random)))


def test_a_branch_parts_all_choices() -> None:
    for seed in range(20):
        core = unreduced(tiny(seed))
        node = int(core.counts.argmax())
        parts = [part for part in branched(core, Branch(node, np.array([0]))) if part is not None]
        costs = [cost for part in parts for _, cost in choices_of(part)]
        assert min(costs, default=None) == min((cost for _, cost in choices_of(core)), default=None)


def test_steps_of_another_core_are_refused() -> None:
    core = unreduced(tiny(2))
    with pytest.raises(ValueError, match="no node 99"):
        closes(core, 10**9, iter([Branch(99, np.array([0]))]))
    none = no_dual(core)
    with pytest.raises(ValueError, match="none of this core"):
        closes(core, 10**9, iter([replace(none, to_firsts=np.zeros(len(none.to_firsts) + 1, np.int64))]))


@pytest.mark.parametrize("failure", [SolverError, MemoryError, KeyboardInterrupt])
def test_a_failure_while_closing_leaves_the_answer_as_it_was(failure: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def fails(*_: object) -> None:
        nonlocal asked
        asked += 1
        raise failure

    monkeypatch.setattr(closing, "relaxation", fails)
    for seed in range(10):
        run = _closed(unreduced(tiny(seed, nodes=6)))
        assert run.steps == () or len(run.steps) == 1
    assert asked > 0


def test_a_proof_is_given_up_where_its_branches_would_be_too_deep(monkeypatch: pytest.MonkeyPatch) -> None:
    def depths_tried(deepest: int) -> int:
        monkeypatch.setattr(closing, "DEEPEST", deepest)
        return sum(bool(_closed(unreduced(tiny(seed, nodes=6))).steps) for seed in range(25))

    assert depths_tried(0) < depths_tried(200)
