"""Black-box optimizers of the field, by optuna: they see the choices of a design and its value, and nothing of the model.

`tpe` is the tree-structured Parzen estimator (Bergstra et al., NeurIPS 2011), which models good and bad designs choice by choice;
`cma-es` the evolution strategy with covariance adaptation (Hansen, arXiv 1604.00772); `bayesian` the estimator over chips alone, each
priced with the best plan for it, as hardware is searched around a mapper (Akiba et al., KDD 2019, arXiv 1907.10902, is optuna).

All begin with the best recipe's design. A chip that breaks a budget is moved towards the recipe's until it keeps all of them: a black box
that was told of broken budgets only by a bad value would see hardly anything else.
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.instances.errors import RefusedError
from crossopt.solvers.codesign.rivals.searchers.moves import nearest
from crossopt.solvers.codesign.rivals.searchers.neighbourhood import Look, Question, alive, look, pooled, started

_BATCH: Final = 8
"""Designs that are asked for together."""
_WAY: Final = 32
"""Places at which the way from a chip to the recipe's is tried."""
_NONE: Final = 1.0e30
"""The value of a design that fits no memory: worse than all others."""


def tpe(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """Chip and plan together by the Parzen estimator."""
    yield from _designs(question, random, "tpe")


def cma_es(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """Chip and plan together by the evolution strategy, for which settings of the plan are numbers."""
    yield from _designs(question, random, "cma-es")


def bayesian(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """Chips by the Parzen estimator, each with the best of the plans that are best on the recipe's chip."""
    for first in started(question, random):
        yield first
    home = first.best[0]
    pool = yield from pooled(question, home[None])
    study = _study("tpe", random)
    while question.space.points > 1:
        trials = [study.ask() for _ in range(_BATCH)]
        chips = _repaired(question, np.array([_chip(question, trial) for trial in trials]), home)
        seen = look(question, chips, pool)
        yield seen
        _tell(study, trials, seen.values.min(axis=0))


def _designs(question: Question, random: np.random.Generator, sampler: str) -> Iterator[Look]:
    """Designs by a sampler, each setting of a plan taken as asked where such a plan is there, else the nearest plan of its layout."""
    for first in started(question, random):
        yield first
    home, row = first.best
    study = _study(sampler, random)
    levels = [np.unique(column) for column in question.settings.T]
    study.enqueue_trial(_words(question, home, row, levels))
    while True:
        trials = [study.ask() for _ in range(_BATCH)]
        chips = _repaired(question, np.array([_chip(question, trial) for trial in trials]), home)
        layouts = np.array([trial.suggest_int("layout", 0, len(question.firsts) - 1) for trial in trials])
        wanted = [[column[trial.suggest_int(f"setting {at}", 0, len(column) - 1)] for at, column in enumerate(levels)] for trial in trials]
        rows = nearest(question, layouts, np.array(wanted, np.int64).reshape(len(trials), len(levels)))
        seen = look(question, chips, rows)
        yield seen
        _tell(study, trials, seen.pairs)


def _study(sampler: str, random: np.random.Generator) -> Any:  # noqa: ANN401 - optuna's own
    """A study of optuna; a RefusedError where that package is absent."""
    try:
        import optuna  # noqa: PLC0415 - an extra, which nothing else needs
    except ImportError as error:
        raise RefusedError("this engine asks optuna, which is not installed: pip install 'crossopt[rivals]'") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    seed = int(random.integers(1 << 31))
    if sampler == "tpe":
        return optuna.create_study(
            sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=32, multivariate=True, constant_liar=True)
        )
    return optuna.create_study(sampler=optuna.samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False))


def _chip(question: Question, trial: Any) -> list[int]:  # noqa: ANN401
    """The places of the hardware choices that a trial asks for."""
    low, high = question.box.low[0], question.box.high[0]
    return [trial.suggest_int(f"chip {at}", int(least), int(most)) for at, (least, most) in enumerate(zip(low, high, strict=True))]


def _words(question: Question, home: Whole, row: int, levels: list[Whole]) -> dict[str, int]:
    """A design as a trial's parameters."""
    plan = {f"setting {at}": int(np.searchsorted(column, question.settings[row, at])) for at, column in enumerate(levels)}
    return {**{f"chip {at}": int(place) for at, place in enumerate(home)}, "layout": int(question.layouts[row]), **plan}


def _repaired(question: Question, chips: Whole, home: Whole) -> Whole:
    """Each chip, or the first one on its way to the chip at home that keeps the budgets."""
    if not chips.shape[1]:
        return chips
    shares = np.linspace(0.0, 1.0, _WAY)[None, :, None]
    way = np.rint(chips[:, None] + shares * (home - chips)[:, None]).astype(np.int64)
    kept = np.isin(np.arange(len(chips) * _WAY), alive(question, way.reshape(-1, chips.shape[1]))).reshape(len(chips), _WAY)
    kept[:, -1] = True
    return np.asarray(way[np.arange(len(chips)), np.argmax(kept, axis=1)])


def _tell(study: Any, trials: list[Any], values: Array) -> None:  # noqa: ANN401
    for trial, value in zip(trials, values, strict=True):
        study.tell(trial, min(float(value), _NONE))
