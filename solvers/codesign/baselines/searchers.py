"""Searchers: baselines that look for good designs and prove nothing, as generators that yield the designs they looked at."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import product
from time import monotonic
from typing import Any, Final

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import Plan
from crossopt.instances.codesign.boxes import Boxes, corners, full_box, grid, point_number, tightened
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import hardware_points
from crossopt.instances.errors import RefusedError
from crossopt.solvers.answer import Limits, Progress, SearchOutcome, Watch, unwatched
from crossopt.solvers.codesign.answer import Candidate, Designs, answer_of, candidate_in
from crossopt.solvers.codesign.baselines.megatron import expert_point, on_chip
from crossopt.solvers.codesign.baselines.neighbourhood import (
    Look,
    Question,
    alive,
    change_chips,
    change_plans,
    draw_chips,
    draw_rows,
    look,
    nearest,
    pooled,
    started,
)
from crossopt.solvers.codesign.baselines.recipes import recipes_design
from crossopt.solvers.codesign.boxes.branch import chip_moves, incumbent_of

# Random sampling from the best recipe's design on: chips that keep the budgets and plans that fit some chip, each equally likely.


def uniform(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """The design that all searchers begin with, then some plans on some chips, again and again, whatever was found before."""
    yield from started(question, random)
    while True:
        yield look(question, draw_chips(question, random, question.width), draw_rows(question, random, question.width))


# Descents from many chips: all plans are priced once on the first chip and on some drawn ones, and the best of each are what there is to
# choose from; then from each chip, the best first, the best plan for it, the first better chip around it for the best few plans, and so on.
#
# That is how the exact search by boxes finds its designs, without its bound: what the bound is worth is what this lacks.

_DRAWN = 8
"""Chips that are drawn beside the first."""
_KEPT = 64
"""The best plans of each chip that stay."""
_DESCENT_PLANS, _DESCENT_CHIPS = 8, 256
"""Plans for which a better chip is looked for, and chips that are looked at together."""


def descent(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """From the first chip and from drawn ones, the best first, and then from others without end."""
    for first in started(question, random):
        yield first
    starts = np.concatenate([first.best[0][None], draw_chips(question, random, _DRAWN)])
    pool, values = yield from pooled(question, starts, _KEPT)
    waiting = [starts[column] for column in np.argsort(values.min(axis=0), kind="stable")]
    while True:
        chips = draw_chips(question, random, 1) if not waiting else np.array([waiting.pop(0)])
        if not len(chips):
            yield look(question, chips, pool[:1])
            continue
        yield from _down(question, random, chips[0], pool)
        if question.space.points == 1:
            return


def _down(question: Question, random: np.random.Generator, places: Whole, pool: Whole) -> Iterator[Look]:
    """The best plans for a chip, and the first better chip for them, until there is none."""
    value = np.inf
    while True:
        seen = look(question, places[None], pool)
        yield seen
        if not seen.value < np.inf:
            return
        rows, value = seen.rows[np.argsort(seen.values[:, 0], kind="stable")[:_DESCENT_PLANS]], min(value, seen.value)
        moves = random.permutation(chip_moves(question.space, places))
        for start in range(0, len(moves), _DESCENT_CHIPS):
            further = look(question, moves[start : start + _DESCENT_CHIPS], rows)
            yield further
            if further.value < value:
                value, places = further.value, further.best[0]
                break
        else:
            return


# A genetic algorithm: a population of designs, uniform crossover of their choices, mutation, and survival of the best.

_MUTATED = 0.8
"""Share of the children whose chip is changed, and of those whose plan is."""
_BASELINES = 2
"""Designs of which the better one becomes a parent."""


def genetic(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """Every child takes each choice from one of two parents; of parents, children and the best design seen, the best live on."""
    for seen in started(question, random):
        best = seen
        yield seen
    chips, rows = _first(question, random, best)
    seen = look(question, chips, rows)
    yield seen
    values = seen.pairs
    while True:
        children, plans = _children(question, random, (chips, rows, values))
        seen = look(question, children, plans)
        best = min(best, seen, key=lambda look: look.value)
        yield seen
        chips = np.concatenate([best.best[0][None], chips, children])
        rows = np.concatenate([[best.best[1]], rows, plans])
        values = np.concatenate([[best.value], values, seen.pairs])
        kept = _fittest(chips, rows, values, question.width)
        chips, rows, values = chips[kept], rows[kept], values[kept]


def _first(question: Question, random: np.random.Generator, best: Look) -> tuple[Whole, Whole]:
    """The design to start from, changed copies of it, and as many random ones."""
    places, row = best.best
    half = question.width // 2
    chips, rows = np.repeat(places[None], half, axis=0), np.full(half, row)
    chips[1:], rows[1:] = change_chips(question, random, chips[1:]), change_plans(question, random, rows[1:])
    strangers = draw_chips(question, random, half)
    return np.concatenate([chips, strangers]), np.concatenate([rows, draw_rows(question, random, len(strangers))])


def _children(question: Question, random: np.random.Generator, parents: tuple[Whole, Whole, Array]) -> tuple[Whole, Whole]:
    chips, rows, values = parents
    mothers, fathers = (_chosen(random, values, question.width) for _ in range(2))
    from_mother = random.random((question.width, chips.shape[1])) < 0.5
    children = np.where(from_mother, chips[mothers], chips[fathers])
    first, second = rows[mothers], rows[fathers]
    layouts = question.layouts[np.where(random.random(question.width) < 0.5, first, second)]
    from_mother = random.random((question.width, question.settings.shape[1])) < 0.5
    plans = nearest(question, layouts, np.where(from_mother, question.settings[first], question.settings[second]))
    changed = random.random((2, question.width)) < _MUTATED
    children[changed[0]] = change_chips(question, random, children[changed[0]])
    plans[changed[1]] = change_plans(question, random, plans[changed[1]])
    return children, plans


def _chosen(random: np.random.Generator, values: Array, count: int) -> Whole:
    """The best of a few drawn at random, so many times."""
    drawn = random.integers(len(values), size=(_BASELINES, count))
    return np.asarray(drawn[np.argmin(values[drawn], axis=0), np.arange(count)])


def _fittest(chips: Whole, rows: Whole, values: Array, count: int) -> Whole:
    """The best designs, each only once."""
    first = np.sort(np.unique(np.column_stack([rows, chips]), axis=0, return_index=True)[1])
    return first[np.argsort(values[first], kind="stable")[:count]]


# Hardware choices as shares: each option by its value between the least and the greatest one, and back to the nearest option.


def shares_of(question: Question, chips: Whole) -> Array:
    """Each choice of each chip between 0 for its least and 1 for its greatest option."""
    columns = [(options[place] - options[0]) / ((options[-1] - options[0]) or 1.0) for options, place in _by_choice(question, chips)]
    return np.column_stack([np.zeros((len(chips), 0)), *columns])


def _by_choice(question: Question, chips: Whole) -> Iterator[tuple[Array, Whole]]:
    return zip(question.space.options, chips.T, strict=True)


def rounded(question: Question, points: Array) -> Whole:
    """The chips with the options nearest to the shares."""
    found = np.zeros(points.shape, np.int64)
    for choice, options in enumerate(question.space.options):
        wished = options[0] + points[:, choice] * (options[-1] - options[0])
        above = np.clip(np.searchsorted(options, wished), 1, max(1, len(options) - 1))
        nearer = wished - options[above - 1] > options[np.minimum(above, len(options) - 1)] - wished
        found[:, choice] = np.where(nearer, np.minimum(above, len(options) - 1), above - 1)
    return found


# Projected gradient descent with momentum over areas, powers and edges, as DeepFlow searches (Ardalani et al. 2022, arXiv 2211.03309).
#
# Its search moves the shares of area, power and die edge against a gradient by finite differences, in normalised steps with momentum, back
# onto the budgets after every step, from several random starts; parallel plans are tried outside. Here the shares are the options of the
# hardware choices, rounded to the nearest one whenever a chip is priced; differences are taken on both sides; and the plan is chosen anew
# every few steps. Where the hardware is given there is nothing to descend: what is left is the best plan.

_STARTS = 12
_GRADIENT_STEPS = 60
_FIRST, _LAST = 0.05, 0.01
"""Length of a step in units of the ranges of the choices, at the start and at the end of a descent."""
_GRADIENT_KEPT = 0.5
"""Momentum: share of the last step's direction that is kept."""
_WIDTH = 0.05
"""Distance of the differences in units of a choice's range, at least one option."""
_PLANS_EVERY = 6
"""Steps after which the plans are chosen anew."""


def gradient(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """Descents from some chips at once, the best recipe's among the first; then from others."""
    for seen in started(question, random):
        first = seen
        yield seen
    chips = first.best[0][None]
    rows, values = yield from pooled(question, chips)
    pool = rows[np.argsort(values[:, 0], kind="stable")]
    while question.space.points > 1:
        chips = np.concatenate([chips, draw_chips(question, random, _STARTS - len(chips))])
        yield from _gradient_descent(question, chips, pool)
        chips = chips[:0]


def _gradient_descent(question: Question, chips: Whole, pool: Whole) -> Iterator[Look]:
    """So many steps from each of the chips."""
    points, momentum = shares_of(question, chips), np.zeros(chips.shape)
    rows = pool[:1]
    if not len(chips):
        yield look(question, chips, rows)
        return
    for number, length in enumerate(np.geomspace(_FIRST, _LAST, _GRADIENT_STEPS)):
        if number % _PLANS_EVERY == 0:
            seen = look(question, chips, pool)
            yield seen
            rows = pool[np.argmin(seen.values, axis=0)]
        seen, slope = _slope(question, chips, rows)
        yield seen
        momentum = _GRADIENT_KEPT * momentum + (1.0 - _GRADIENT_KEPT) * _unit(slope)
        points = _projected(question, points, np.clip(points - length * _unit(momentum), 0.0, 1.0))
        chips = rounded(question, points)


def _slope(question: Question, chips: Whole, rows: Whole) -> tuple[Look, Array]:
    """Differences of the logarithm of the value over those of each choice, on whichever sides there is a chip."""
    count, choices = chips.shape
    sides = np.repeat(chips[:, None, None], choices, axis=1).repeat(2, axis=2)
    for choice, size in enumerate(question.space.sizes):
        width = max(1, round(_WIDTH * (size - 1)))
        sides[:, choice, :, choice] = np.clip(chips[:, choice, None] + np.array([-width, width]), 0, size - 1)
    seen = look(question, np.concatenate([chips, sides.reshape(-1, choices)]), rows)
    own = seen.values[np.arange(count), np.arange(count)]
    around = seen.values[:, count:].reshape(count, count, choices, 2)[np.arange(count), np.arange(count)]
    at = np.einsum("icsc->ics", shares_of(question, sides.reshape(-1, choices)).reshape(sides.shape))
    here = shares_of(question, chips)
    there = np.isfinite(around)
    around = np.log(np.where(there, around, own[:, None, None]))
    at = np.where(there, at, here[:, :, None])
    apart = at[..., 1] - at[..., 0]
    with np.errstate(invalid="ignore"):
        rise = around[..., 1] - around[..., 0]
    return seen, np.where((apart > 0.0) & np.isfinite(rise), rise / np.where(apart > 0.0, apart, 1.0), 0.0)


def _projected(question: Question, points: Array, wished: Array) -> Array:
    """The points wished for, with as little as possible taken from all areas alike and all powers alike to keep the budgets.

    Where nothing that is tried keeps them, the point stays where it was.
    """
    takes = [0.0, *np.geomspace(1.0 / 64.0, 1.0, 7)]
    pairs = sorted(product(takes, takes), key=sum)
    spans = np.array([options[-1] - options[0] for options in question.space.options])
    share = np.zeros((2, len(spans)))
    for kind, suffix in enumerate(("_area", "_power")):
        of_kind = np.array([name.endswith(suffix) for name in question.space.names])
        widest = float(np.max(spans, where=of_kind, initial=0.0))
        share[kind] = np.where(of_kind & (spans > 0.0), widest / np.where(spans > 0.0, spans, 1.0), 0.0)
    tried = np.clip(wished[:, None] - (np.array(pairs) @ share)[None], 0.0, 1.0)
    chips = rounded(question, tried.reshape(-1, len(spans)))
    good = np.isin(np.arange(len(chips)), alive(question, chips)).reshape(len(points), -1)
    found = tried[np.arange(len(points)), np.argmax(good, axis=1)]
    return np.where(np.any(good, axis=1)[:, None], found, points)


def _unit(vectors: Array) -> Array:
    """The same directions with length 1."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1.0e-300))


# Black-box optimizers of the field, by optuna: they see the choices of a design and its value, and nothing of the model.
#
# `tpe` is the tree-structured Parzen estimator (Bergstra et al., NeurIPS 2011), which models good and bad designs choice by choice;
# `cma-es` the evolution strategy with covariance adaptation (Hansen, arXiv 1604.00772); `nsga-ii` a genetic algorithm (Deb et al. 2002);
# `bayesian` the estimator over chips alone, each priced with the best plan for it, as hardware is searched around a mapper (Akiba et al.,
# KDD 2019, arXiv 1907.10902, is optuna).
#
# All begin with the first design known. A chip that breaks a budget is moved towards that design's until it keeps all of them: a black box
# that was told of broken budgets only by a bad value would see hardly anything else.

SAMPLERS: Final = ("nsga-ii", "tpe", "cma-es")
BLACK_BOXES: Final = (*SAMPLERS, "bayesian")
"""All engines that need optuna."""
INSTALLED_BY: Final = "pip install 'crossopt[rivals]'"
_BATCH: Final = 8
"""Designs that are asked for together."""
_WAY: Final = 32
"""Places at which the way from a chip to the recipe's is tried."""
_NONE: Final = 1.0e30
"""The value of a design that fits no memory: worse than all others."""


def has_optuna() -> bool:
    """Whether the black-box optimizers can be asked."""
    return find_spec("optuna") is not None and find_spec("cmaes") is not None


def bayesian(question: Question, random: np.random.Generator) -> Iterator[Look]:
    """Chips by the Parzen estimator, each with the best of the plans that are best on the first chip."""
    for first in started(question, random):
        yield first
    home = first.best[0]
    pool, _ = yield from pooled(question, home[None])
    study = _study("tpe", random)
    while question.space.points > 1:
        trials = [study.ask() for _ in range(_BATCH)]
        chips = _repaired(question, np.array([_chip(question, trial) for trial in trials]), home)
        seen = look(question, chips, pool)
        yield seen
        _tell(study, trials, seen.values.min(axis=0))


def black_box(sampler: str, question: Question, random: np.random.Generator) -> Iterator[Look]:
    """Chip and plan together by a sampler of optuna, for which settings of the plan are numbers: the plan asked for, or the nearest one of
    its layout."""
    for first in started(question, random):
        yield first
    home, row = first.best
    study = _study(sampler, random)
    levels = [np.unique(column) for column in question.settings.T]
    study.enqueue_trial(_text(question, home, row, levels))
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
    if not has_optuna():
        raise RefusedError(f"this engine asks optuna, which is not installed: {INSTALLED_BY}")
    import optuna  # noqa: PLC0415 - an extra, which nothing else needs

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    seed, samplers = int(random.integers(1 << 31)), optuna.samplers
    if sampler == "tpe":
        return optuna.create_study(sampler=samplers.TPESampler(seed=seed, n_startup_trials=32, multivariate=True, constant_liar=True))
    if sampler == "nsga-ii":
        return optuna.create_study(sampler=samplers.NSGAIISampler(seed=seed))
    return optuna.create_study(sampler=samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False))


def _chip(question: Question, trial: Any) -> list[int]:  # noqa: ANN401
    """The places of the hardware choices that a trial asks for."""
    low, high = question.box.low[0], question.box.high[0]
    return [trial.suggest_int(f"chip {at}", int(least), int(most)) for at, (least, most) in enumerate(zip(low, high, strict=True))]


def _text(question: Question, home: Whole, row: int, levels: list[Whole]) -> dict[str, int]:
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


# Alternating: the best plan for a chip, the best chip for that plan, and so on until nothing changes; then again from another chip.
#
# Block coordinate descent over the two halves of a design, each half solved to its optimum by an engine that proves it. That is what two
# teams do who take turns, and the strongest simple rival of choosing both together: given the time, it never ends above the best plan on
# the best recipe's chip, nor above the best chip for that recipe's plan. Where it ends, neither half alone can be improved, and both
# together perhaps can.

Half = Callable[[Instance, Limits, Watch], SearchOutcome[Designs]]
"""An engine that finds the best plan of a question with one chip, and the best chip of one with one plan."""
Step = tuple[float, Candidate]
"""A design with its value."""
_PATIENCE = 12
"""Starts since the last better design after which the search ends."""
_DRAWS, _ROUNDS = 1024, 64
"""Chips that are drawn together, most of which break a budget, and so often in vain before none is drawn any more."""


def alternating(half: Half, instance: Instance, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """The best design at which turns end, from the best recipe's chip and from its plan first; without a bound.

    The recipe's design is there before, so that no limit ends it above that. A cold start has drawn chips alone."""
    began = monotonic()
    best: Candidate | None = None
    value, stopped, left, starts = np.inf, "complete", _PATIENCE, 0
    trace: list[tuple[float, float | None, float | None]] = []
    try:
        recipe = recipes_design(instance, began + limits.seconds) if limits.start == "recipe" else None
        if recipe is not None:
            value = incumbent_of(instance, grid(instance), recipe).value
            if value < np.inf:  # else it breaks a limit of times or of objectives
                best = recipe
                trace.append((monotonic() - began, value, None))
        for starts, turns in enumerate(_descents(half, instance, limits, began, recipe), 1):
            left -= 1
            for cost, design in turns:
                if cost < value:
                    best, value, left = design, cost, _PATIENCE
                    trace.append((monotonic() - began, value, None))
                words = f"start {starts:,}, {_PATIENCE - left} since the last better design"
                watch(Progress(words, value if best else None, answer=partial(answer_of, instance, best)))
            if left <= 0:
                break
    except TimeoutError:
        stopped = "time limit"
    except KeyboardInterrupt:
        stopped = "interrupted"
    notes = (f"turns were taken from {starts:,} {'start' if starts == 1 else 'starts'}",)
    return SearchOutcome(
        answer_of(instance, best), engine="alternating", stopped=stopped, notes=notes, trace=tuple(trace), value=value if best else None
    )


def with_plan(instance: Instance, plan: Plan | KernelPlan) -> Instance:
    """The question with no plan but one."""
    return replace(instance, plan_options=tuple((name, (getattr(plan, name),)) for name, _ in instance.plan_options))


def _descents(half: Half, instance: Instance, limits: Limits, began: float, recipe: Candidate | None) -> Iterator[Iterator[Step]]:
    """Turns from the best recipe's chip, from its plan, and from chips drawn at random; a TimeoutError where the time is over."""
    ask = partial(_ask, half, instance, limits, began)
    by_rule = limits.start == "recipe" or hardware_points(instance) == 1
    usual = recipe.point if recipe is not None else expert_point(instance) if by_rule else None
    if usual is not None:
        yield _turns(ask, instance, usual)
    if recipe is not None and (first := ask(with_plan(instance, recipe.plan))) is not None:
        yield _turns(ask, instance, first[1].point)
    for point in _drawn(instance, np.random.default_rng(limits.seed), began + limits.seconds):
        yield _turns(ask, instance, point)


def _turns(ask: Callable[[Instance], Step | None], instance: Instance, point: int) -> Iterator[Step]:
    """A plan for the chip, a chip for the plan, and so on, as long as each is better than the last."""
    value = np.inf
    narrowed = on_chip(instance, point)
    while (found := ask(narrowed)) is not None and found[0] < value:
        yield found
        value, plan = found[0], found[1].plan
        found = ask(with_plan(instance, plan))
        if found is None or not found[0] < value:
            return
        yield found
        value, narrowed = found[0], on_chip(instance, found[1].point)


def _ask(half: Half, instance: Instance, limits: Limits, began: float, narrowed: Instance) -> Step | None:
    """The best design of a narrower question, in words of the whole one; none where no plan fits the chip or no chip the plan."""
    left = limits.seconds - (monotonic() - began)
    if left <= 0.0:
        raise TimeoutError
    found = half(narrowed, replace(limits, seconds=left), unwatched)
    if found.stopped == "interrupted":
        raise KeyboardInterrupt
    if found.answer is None or found.value is None:
        return None
    return float(found.value), candidate_in(instance, found.answer.design)


def _drawn(instance: Instance, random: np.random.Generator, deadline: float) -> Iterator[int]:
    """Chips that keep the budgets, each equally likely, without end but where they are too rare; none where there is but one."""
    space = grid(instance)
    box, vain = tightened(instance, space, full_box(space)), 0
    while space.points > 1 and vain < _ROUNDS:
        places = random.integers(box.low[0], box.high[0] + 1, size=(_DRAWS, len(space.sizes)))
        kept = np.flatnonzero(corners(instance, space, Boxes(places, places)).alive)
        vain = 0 if len(kept) else vain + 1
        yield from (point_number(space, places[row]) for row in kept)
        if monotonic() >= deadline:
            raise TimeoutError
