"""Engines that choose kernels: an integer program with an exact bound, enumeration, and rules."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import ceil, floor, inf
from random import Random
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Array, Ints
from crossopt.formulation.certificate import Branch, Certificate, Leaf, Split, Step, packed
from crossopt.formulation.model import Linear, Model, Values, variables_of
from crossopt.formulation.traces.selection import PARTS, Lever, Selection, limit_of, selection
from crossopt.instances.errors import RefusedError
from crossopt.instances.traces.benchmark import BenchmarkQuestion, Kernel, mix_of
from crossopt.solvers.answer import Baseline, Limits, Progress, SearchOutcome, Watch
from crossopt.solvers.backends.answer import Event, Spend
from crossopt.solvers.backends.milp import highs
from crossopt.solvers.backends.whole import Traced, trace
from crossopt.solvers.proofs import Integers, RecomputableBound, UnverifiedBound
from crossopt.solvers.traces.benchmark.family import Runs, apportioned, judge, largest, least_of_all, rounded, rules_of_benchmark

# The model where a mix leaves little to choose: kernels that a good benchmark has run in it, others do not, and those between are open.
#
# The relaxation runs most kernels wholly or not at all. Of those that it runs all but the least are held, of those that it does not all but
# the next stay out (relaxation induced neighbourhoods: Danna, Rothberg and Le Pape 2005; kernel search: Angelelli, Mansini and Speranza
# 2010). Next to it is what makes up for most of the mix, s T_k - min over x of |T_k / n_k x - s T_k|. Good benchmarks are found so, and no
# bound rests on it.

_AROUND = 20
"""Kernels on either side that are open."""
_DIGITS = 6
"""Of what the relaxation has of a kernel."""


def asks_for_window(question: BenchmarkQuestion) -> bool:
    """Whether the fewest kernels near a mix are asked, of more than a window has."""
    return question.file.mix is not None and question.file.objective == "kernels" and len(question.kernels) > 2 * _AROUND


def window(question: BenchmarkQuestion, inside: Selection, relaxed: Sequence[float]) -> Model:
    """The narrower model around what the relaxation has of each variable, kernels first."""
    taken = [round(figure, _DIGITS) for figure in relaxed[: len(question.kernels)]]
    made_up = [_made_up(kernel, question.file.share) for kernel in question.kernels]
    order = sorted(range(len(taken)), key=lambda kernel: (-taken[kernel], -made_up[kernel], kernel))
    runs, open_ = max(sum(part >= 1.0 for part in taken) - _AROUND, 0), sum(part > 0.0 for part in taken) + _AROUND
    fixed = [Linear(f"runs {kernel}", ((1, inside.chosen[kernel]),), low=1) for kernel in order[:runs]]
    none = [Linear(f"none {kernel}", ((1, inside.chosen[kernel]),), high=0) for kernel in order[open_:]]
    model = inside.model
    return Model(model.variables, (*model.constraints, *fixed, *none), model.objective)


def _made_up(kernel: Kernel, share: Fraction) -> Fraction:
    """ns by which the mix is nearer where the kernel runs as often as is best."""
    below = floor(share * kernel.runs)
    off = min(abs(Fraction(kernel.time * runs, kernel.runs) - share * kernel.time) for runs in (max(below, 1), min(below + 1, kernel.runs)))
    return share * kernel.time - off


# Limits of a benchmark that cannot all be kept, with a tree in whole numbers that proves it.
#
# Of the rows of the outer model those of one limit after another are left out, of the most kernels first, as long as the solver says that
# nothing keeps the others. A tree about the few that are left is small, as it cuts at their kernels alone; told with the places that the
# rows have in the whole model, it is a tree of that. Nothing rests on the solver's word: without a tree there is no proof.

_CLASH_SHARE, _SHORTEST_CLASH_LOOK = 0.5, 0.1
"""The share of the time for finding the limits, and seconds for a look at the least."""


@dataclass(frozen=True, slots=True)
class Clash:
    """Limits by their names, and the tree; None where it did not end in time."""

    limits: tuple[str, ...]
    tree: Certificate | None


def clash_of(model: Model, seconds: float) -> Clash | None:
    """The limits of an outer model that are in the way; None where the solver does not say that some are."""
    deadline = monotonic() + seconds
    names = [limit_of(row.name) for row in model.constraints]
    needed = set(names)
    if not _is_refuted(model, names, needed, seconds * _CLASH_SHARE):
        return None
    size = Counter[str]()
    for name, row in zip(names, model.constraints, strict=True):
        size[name] += len(list(variables_of(row)))
    for number, name in enumerate(sorted(needed - {""}, key=lambda limit: (-size[limit], limit))):
        left = (deadline - monotonic()) * _CLASH_SHARE / (len(size) - number)
        if _is_refuted(model, names, needed - {name}, max(left, _SHORTEST_CLASH_LOOK)):
            needed.remove(name)
    places = [row for row, name in enumerate(names) if name in needed]
    rows = tuple(model.constraints[row] for row in places)
    found = trace(Model(model.variables, rows), None, max(deadline - monotonic(), _SHORTEST_CLASH_LOOK))
    steps = tuple(_placed(step, places) for step in found.certificate.steps)
    return Clash(
        tuple(dict.fromkeys(name for name in names if name in needed - {""})), Certificate(1, steps) if found.bound is None else None
    )


def _is_refuted(model: Model, names: Sequence[str], limits: Collection[str], seconds: float) -> bool:
    """Whether the solver says that nothing keeps the rows of these limits."""
    rows = tuple(row for name, row in zip(names, model.constraints, strict=True) if name in limits)
    return highs(Model(model.variables, rows), Spend(seconds)).status == "INFEASIBLE"


def _placed(step: Step, places: Sequence[int]) -> Step:
    """The step with the places of rows in the whole model."""
    if isinstance(step, Branch):
        return step
    if isinstance(step, Split):
        return Split(places[step.row], step.first)
    return Leaf(tuple(places[row] for row in step.rows), step.times, step.empty)


# Why no benchmark keeps all limits: each limit that is in the way alone, with the nearest figure at which there is a benchmark.
#
# One limit after another is widened as far as it takes while the others stay. The figure is of a benchmark that was found, and the nearest
# there is where the solver had time to show that.

_SHORTEST_LOOK = 0.1
"""Seconds for any look."""


def reasons(question: BenchmarkQuestion, seconds: float) -> tuple[str, ...]:
    """In words; where no single limit is known to be in the way, what all of them ask together."""
    levers, deadline, found = _levers(question), monotonic() + seconds, list[str]()
    for index, lever in enumerate(levers):
        left = max((deadline - monotonic()) / (len(levers) - index), _SHORTEST_LOOK)
        relaxed = selection(question, inner=True, widened=lever)
        solved = highs(relaxed.model, Spend(left))
        if solved.value is not None and solved.values is not None:
            found.append(_text(question, lever, solved.value, [solved.values[variable] for variable in relaxed.runs]))
    return tuple(found) or (_together(question, max(deadline - monotonic(), _SHORTEST_LOOK)),)


def _together(question: BenchmarkQuestion, seconds: float) -> str:
    """Where no limit alone is known to be in the way: the totals that are to be met without all others."""
    file = question.file
    none = f"deviation: no runs of any kernels come within {float(file.deviation):.4%} of every total and keep the other limits"
    alone = replace(question, file=replace(file, mix=None, coverage=Fraction(0), kernels=None, runs=None))
    value = highs(selection(alone, inner=True, widened="deviation").model, Spend(seconds)).value
    return none if value is None else f"{none}; without these some come within {value / PARTS:.2%}"


def _levers(question: BenchmarkQuestion) -> tuple[Lever, ...]:
    """The limits that can be wider."""
    file = question.file
    given: tuple[tuple[Lever, bool], ...] = (
        ("deviation", file.deviation < 1),
        ("mix", file.mix is not None),
        ("coverage", file.coverage > 0),
        ("kernels", file.kernels is not None),
        ("runs", file.runs is not None),
    )
    return tuple(lever for lever, is_given in given if is_given)


def _text(question: BenchmarkQuestion, lever: Lever, value: int, runs: list[int]) -> str:
    file = question.file
    if lever == "deviation":
        none = f"deviation: no runs of any kernels come within {float(file.deviation):.4%} of every total"
        none += "" if file.mix is None else f" with a mix within {float(file.mix):.4%}"
        return f"{none}; some come within {value / PARTS:.2%}"
    if lever == "mix":
        within = ceil(mix_of(question, runs) * PARTS) / PARTS
        return f"mix: with all other limits none is within {float(file.mix or 0):.4%}; some are within {within:.2%}"
    if lever == "coverage":
        return f"coverage: with all other limits none has {float(file.coverage):.4%}; some have {float(file.coverage) - value / PARTS:.2%}"
    return f"{lever}: with all other limits none has {getattr(file, lever):,} or fewer; some have {value:,}"


# Kernels dropped one after another: rounded shares, less the smallest kernel that the others can stand in for, until there is none.
#
# After each drop runs of the others go up or down by 1 or 3, whichever comes nearest to totals and mix, until these are met or nothing
# comes nearer. The first descent drops the kernel with the least time first, further ones a drawn one. Each drop leaves one kernel fewer
# and each repair comes nearer, so that every descent ends by itself. Counted in floating point: the judge has the word.

_STARTS = 6
_STEPS = (-3, -1, 1, 3)
_EQUAL = 1e-12


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a run of each kernel adds to the share of each total, and its time, how much of it is wanted, and how far off all may be."""

    runs: Ints
    adds: Array
    times: Array
    own: Array
    deviation: float
    mix: float

    def off(self, shares: Array, away: Array) -> Array:
        """How far off shares of the totals and times away from each kernel's are, beyond what is allowed; 0 where that is met."""
        found: Array = np.maximum(np.abs(shares - 1.0) - self.deviation, 0.0).sum(-1)
        found += np.maximum(away / (2.0 * self.own.sum()) - self.mix, 0.0)
        return found


def shrunk(question: BenchmarkQuestion, rounded: Runs, seed: int, deadline: float = inf) -> Runs | None:
    """The best of all descents that keeps every limit; None where none does."""
    draw, wanted, best, value = Random(seed), _wanted(question), None, inf
    for start in range(_STARTS):
        found = Runs(tuple(_descended(question, wanted, rounded, draw if start else None, deadline).tolist()))
        verdict = judge(question, found)
        if not verdict.violations and verdict.value < value:
            best, value = found, verdict.value
        if monotonic() > deadline:
            break
    return best


def _wanted(question: BenchmarkQuestion) -> _Wanted:
    file, share = question.file, float(question.file.share)
    counts = np.array([kernel.runs for kernel in question.kernels], np.int64)
    sums = np.array([kernel.sums for kernel in question.kernels], float).reshape(len(counts), -1)
    times = np.array([kernel.time for kernel in question.kernels], float)
    adds = sums / counts[:, None] / (share * np.array(question.sums, float))
    return _Wanted(counts, adds, times / counts, share * times, float(file.deviation), inf if file.mix is None else float(file.mix))


def _descended(question: BenchmarkQuestion, wanted: _Wanted, rounded: Runs, draw: Random | None, deadline: float) -> Ints:
    """Fewer and fewer kernels, until none can go or time runs out."""
    runs = np.array(rounded.runs, np.int64)
    left = _nearer(wanted, runs, deadline)
    while left is not None:
        runs, left = left, None
        inside = [int(kernel) for kernel in np.flatnonzero(runs)]
        order = draw.sample(inside, len(inside)) if draw else sorted(inside, key=lambda kernel: question.kernels[kernel].time)
        covered = sum(question.kernels[kernel].time for kernel in inside)
        for kernel in order:
            if covered - question.kernels[kernel].time < question.file.coverage * question.time or len(inside) == 1:
                continue
            fewer = runs.copy()
            fewer[kernel] = 0
            left = _nearer(wanted, fewer, deadline)
            if left is not None or monotonic() > deadline:
                break
    return runs


def _nearer(wanted: _Wanted, runs: Ints, deadline: float) -> Ints | None:
    """Runs of the same kernels that meet all; None where no step comes nearer."""
    shares, inside = runs @ wanted.adds, np.flatnonzero(runs)
    places, steps = np.repeat(inside, len(_STEPS)), np.tile(_STEPS, len(inside))
    away = np.abs(runs * wanted.times - wanted.own).sum()
    off = float(wanted.off(shares, away))
    while off > _EQUAL and monotonic() < deadline:
        then = runs[places] + steps
        near = shares + steps[:, None] * wanted.adds[places]
        left = np.abs(then * wanted.times[places] - wanted.own[places]) - np.abs(runs[places] * wanted.times[places] - wanted.own[places])
        far = np.where((then >= 1) & (then <= wanted.runs[places]), wanted.off(near, away + left), inf)
        best = int(far.argmin()) if len(far) else 0
        if not len(far) or far[best] >= off:
            return None
        runs = runs.copy()
        runs[places[best]], shares, away, off = then[best], near[best], away + left[best], float(far[best])
    return runs if off <= _EQUAL else None


def baselines_of(question: BenchmarkQuestion, seed: int, deadline: float) -> tuple[Baseline[Runs], ...]:
    """All rules, and kernels dropped one after another from rounded shares."""
    left = shrunk(question, rounded(question), seed, deadline)
    return (*rules_of_benchmark(question), Baseline("smallest dropped", None, left, "" if left else "no descent meets every limit"))


# Engines: an integer program with an exact bound, enumeration, rules, and dropping.

_PATIENCE, _SHORT = 60.0, 5.0
"""Default time limit in seconds, and the time for finding the conflicting limit."""
_DROPPING, _SHORTEST, _NARROW, _LOOKING = 0.05, 1.0, 0.4, 0.75
"""The share of the time for dropping kernels, seconds of a tree at the least, the share of the time left for kernels around the bound, and
that which the solver takes, and the tree behind it of the rest."""
RULES = {"rounding": rounded, "apportion": apportioned, "largest": largest}


def program(question: BenchmarkQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Runs]:
    """HiGHS looks for the best benchmark, a tree of our own proves the bound."""
    if not limits.seconds:
        return SearchOutcome(None, engine="highs", stopped="time limit")
    deadline = monotonic() + (limits.seconds if limits.seconds < inf else _PATIENCE)
    baselines = baselines_of(question, limits.seed, monotonic() + (deadline - monotonic()) * _DROPPING)
    judged = [(judge(question, baseline.answer), baseline.answer) for baseline in baselines if baseline.answer is not None]
    known = [(int(verdict.value), answer) for verdict, answer in judged if not verdict.violations]
    inside, outside = selection(question, inner=True), selection(question, inner=False)

    def see(event: Event) -> bool:
        watch(Progress("integer program", event.value, event.bound))
        return False

    root, start = _start(question, inside, outside.model, limits, deadline)
    if root and start and root.bound is not None and (least := sum(start[kernel] > 0 for kernel in inside.chosen)) <= root.bound:
        return SearchOutcome(Runs(tuple(start[run] for run in inside.runs)), least, _proof(root.certificate), "highs", baselines=baselines)
    spend = Spend(max(deadline - monotonic(), 0.0) * _LOOKING, workers=limits.workers, seed=limits.seed, hint=start, watch=see)
    solved = highs(inside.model, spend)
    if solved.values is not None and solved.value is not None:
        known.insert(0, (solved.value, Runs(tuple(solved.values[variable] for variable in inside.runs))))
    value, answer = min(known, key=lambda pair: pair[0], default=(None, None))
    if answer is None and solved.status == "INFEASIBLE" and (found := _refuted(question, outside.model, deadline)):
        return found
    tree = _tree(outside.model, value, deadline)
    proof = _proof(tree.certificate)
    shown = inf if tree.bound is None else tree.bound
    stopped = "time limit" if limits.seconds < inf and shown != value and solved.stopped == "time limit" else "complete"
    if answer is None:
        why = reasons(question, _looking(deadline)) if shown == inf else ()
        return SearchOutcome(None, shown, proof, "highs", stopped, reasons=why)
    notes, shown = (solved.note,) if solved.note else (), min(shown, value or 0)
    return SearchOutcome(answer, shown, proof, "highs", stopped, notes=notes, baselines=baselines, solver=solved.solver)


def _start(
    question: BenchmarkQuestion, inside: Selection, outer: Model, limits: Limits, deadline: float
) -> tuple[Traced | None, Values | None]:
    """The root of a tree, and the best benchmark of kernels around it, where a mix makes good ones hard to find."""
    if not asks_for_window(question):
        return None, None
    root = trace(outer, None, max(deadline - monotonic(), _SHORTEST), most=1)
    if root.bound is None or root.root is None:
        return root, None
    bound = root.bound

    def stop_early(event: Event) -> bool:
        return event.value is not None and event.value <= bound

    spend = Spend(max(deadline - monotonic(), 0.0) * _NARROW, workers=limits.workers, seed=limits.seed, watch=stop_early)
    return root, highs(window(question, inside, root.root), spend).values


def _proof(tree: Certificate) -> Integers:
    return Integers("a tree of branches in whole numbers", tree.scale, packed(tree))


def _tree(model: Model, value: int | None, deadline: float) -> Traced:
    """A tree that proves as much as there is time for: its root alone first, which is nearly always enough."""
    root = trace(model, value, max(deadline - monotonic(), _SHORTEST), most=1)
    left = deadline - monotonic()
    if root.proved or left < _SHORTEST:
        return root
    further = trace(model, value, left * _LOOKING)  # it ends a little late, and what comes behind the limit is lost
    return root if further.bound is not None and further.bound < (root.bound or 0) else further


def _refuted(question: BenchmarkQuestion, model: Model, deadline: float) -> SearchOutcome[Runs] | None:
    """That there is no benchmark: by the root of a tree, by a tree about the limits that clash, else by the solver's word; None where it
    does not give that of the outer model."""
    root = trace(model, None, max(deadline - monotonic(), _SHORTEST), most=1)
    if root.bound is None:
        return SearchOutcome(None, inf, _proof(root.certificate), "highs", reasons=reasons(question, _looking(deadline)))
    clash = clash_of(model, max(deadline - monotonic(), _SHORTEST) * _LOOKING)
    if clash is None:
        return None
    in_the_way = f"in the way: no runs of any kernels keep {', '.join(clash.limits)}, regardless of the other limits"
    proof = UnverifiedBound("highs") if clash.tree is None else _proof(clash.tree)
    return SearchOutcome(None, inf, proof, "highs", reasons=(*reasons(question, _looking(deadline)), in_the_way))


def _looking(deadline: float) -> float:
    """Seconds for reasons: twice those that are enough where other processes take no processor."""
    return min(max(deadline - monotonic(), _SHORTEST), 2.0 * _SHORT)


def exhaustive(question: BenchmarkQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Runs]:
    """Every number of runs of every kernel."""
    if not limits.seconds:
        return SearchOutcome(None, engine="exhaustive", stopped="time limit")
    del watch
    try:
        value, answer, count = least_of_all(question)
    except ValueError as error:
        raise RefusedError(f"{error} (`auto` answers)") from error
    proof = RecomputableBound(f"{count:,} choices looked at")
    why = () if answer else reasons(question, _SHORT)
    baselines = baselines_of(question, limits.seed, monotonic() + _SHORT)
    return SearchOutcome(answer, value, proof, "exhaustive", reasons=why, baselines=baselines)


def dropping(question: BenchmarkQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Runs]:
    """Rounded shares, less the smallest kernels; no proof."""
    if not limits.seconds:
        return SearchOutcome(None, engine="dropping", stopped="time limit")
    del watch
    deadline = monotonic() + limits.seconds
    found = shrunk(question, rounded(question), limits.seed, deadline)
    return SearchOutcome(found, engine="dropping", stopped="time limit" if monotonic() > deadline else "complete")


def by_rule(name: str, question: BenchmarkQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Runs]:
    """A rule; no proof."""
    del limits, watch
    answer = RULES[name](question)
    return SearchOutcome(None if judge(question, answer).violations else answer, engine=name)


rounding, apportion, largest_first = (partial(by_rule, name) for name in RULES)
