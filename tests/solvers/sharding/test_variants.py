"""Large public problems, changed: other limits, other orders, other costs, more edges; each ends with a choice and a bound that hold."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from crossopt.crossflow.arrays import Whole
from crossopt.instances.question import read
from crossopt.instances.sharding.problem import FORBIDDEN, Problem
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.solvers.answer import Limits
from crossopt.solvers.sharding.judge import Answer, peak_of, weigh
from tests.instances.sharding.files import answered
from tests.paths import reference

_SECONDS = 15.0


def _just_enough(problem: Problem) -> Problem:
    least = np.minimum.reduceat(problem.usages, problem.offsets[:-1])
    return replace(problem, limit=int(1.02 * peak_of(problem, least)[0]))


def _twice_the_memory(problem: Problem) -> Problem:
    return replace(problem, limit=2 * (problem.limit or 0))


def _no_limit(problem: Problem) -> Problem:
    return replace(problem, limit=None)


def _halved(problem: Problem) -> Problem:
    costs, entries = (np.where(figures < FORBIDDEN, figures // 2, figures) for figures in (problem.costs, problem.entries))
    return replace(problem, costs=costs, entries=entries)


def _edges_twice(problem: Problem) -> Problem:
    return replace(
        problem,
        firsts=np.tile(problem.firsts, 2),
        seconds=np.tile(problem.seconds, 2),
        entry_offsets=np.concatenate([problem.entry_offsets, problem.entry_offsets[1:] + len(problem.entries)]),
        entries=np.tile(problem.entries, 2),
    )


def _other_order(problem: Problem) -> Problem:
    order = _order(problem)
    places = np.concatenate([np.arange(problem.offsets[node], problem.offsets[node + 1]) for node in order])
    return replace(
        problem,
        offsets=np.concatenate([[0], np.cumsum(problem.counts[order])]),
        costs=problem.costs[places],
        usages=problem.usages[places],
        starts=problem.starts[order],
        ends=problem.ends[order],
        firsts=np.argsort(order)[problem.firsts],
        seconds=np.argsort(order)[problem.seconds],
    )


def _order(problem: Problem) -> Whole:
    return np.random.default_rng(11).permutation(len(problem))


@lru_cache
def _original(letter: str) -> tuple[ShardingQuestion, Answer]:
    question = read(reference(f"sharding/asplos-2025-iopddl-{letter}.json.gz"))
    return question, answered(question, "auto", Limits(_SECONDS), lambda progress: None)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("letter", ["K", "M", "R"])
@pytest.mark.parametrize("change", [_just_enough, _twice_the_memory, _no_limit, _halved, _edges_twice, _other_order])
def test_changed_problems_end_with_choices_and_bounds_that_hold(letter: str, change: Callable[[Problem], Problem]) -> None:
    """What the unchanged problem was given is priced as a choice of the changed one: no bound is above it."""
    question, before = _original(letter)
    problem = change(question.problem)
    result = answered(replace(question, problem=problem), "auto", Limits(_SECONDS), lambda progress: None)
    assert result.answer is not None
    assert result.value is not None
    assert result.bound is not None
    assert weigh(problem, result.answer.strategies).violations == ()
    assert 0 < result.bound <= result.value
    assert before.answer is not None
    known = np.asarray(before.answer.strategies)
    known = known[_order(problem)] if change is _other_order else known
    verdict = weigh(problem, known.tolist())
    assert verdict.violations or result.bound <= verdict.cost
