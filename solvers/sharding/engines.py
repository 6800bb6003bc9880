"""Engines for strategies: the simplest rule without compiled code, and `search`, whose functions can be compiled ahead."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf
from time import monotonic

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.formulation.compiled import COMPILES, INSTALL
from crossopt.formulation.sharding.core import Core, unreduced
from crossopt.formulation.sharding.dual import fixed, no_dual
from crossopt.formulation.sharding.reductions import ContradictionError, Reduction, reduced
from crossopt.formulation.sharding.tree import Branch, Step
from crossopt.instances.errors import RefusedError, SolverError
from crossopt.instances.sharding.problem import FORBIDDEN, Problem, offsets_of
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.solvers.answer import Limits, Progress, SearchOutcome, Trace, Watch
from crossopt.solvers.proofs import Certificate, ProofStep, RecomputableBound, Reductions, Steps
from crossopt.solvers.sharding.exhaustive import MOST, choices_in, exhaustive
from crossopt.solvers.sharding.family import baselines_of, nothing_fits, too_much, too_much_together
from crossopt.solvers.sharding.integer import close, cpsat, milp, weak
from crossopt.solvers.sharding.judge import BY_ARCS, BY_EVERY, BY_LEAST, BY_PAIRS, BY_TREE, EXACT_PROOFS, UNKEPT, Strategies, weigh
from crossopt.solvers.sharding.local import descend, greedy, local
from crossopt.solvers.sharding.messages import ascent_of, climb, cool, cooling_of
from crossopt.solvers.sharding.run import STORED, EnoughError, Rest, Run, figures_in
from crossopt.solvers.sharding.search import pull, search_for, search_shortly, walked, walker_of

# Compiles what is not compiled yet: a small problem goes through every function that is compiled.
#
# The first run of an installation takes up to a minute for that, which its time limit counts; `crossopt compile` does it ahead. Later runs
# find the machine code on disk within a fraction of a second.

MESSAGE = "compiling, once per installation (`crossopt compile` does it ahead)"
_NODES, _STRATEGIES = 8, 3
_FAR = 10_000
"""Above all costs, so that the proof leaves nothing out."""
_LOADED = 2.0
"""Seconds in which code that is compiled has long been loaded."""


def warmed(watch: Watch, late: Callable[[], bool]) -> None:
    """Has the reductions, the rules and the proof work on a small problem; an EnoughError where it gets late."""
    tell = _telling(watch, late)
    core = unreduced(_problem())
    reduced(core, tell)
    run = Run(core, Limits(inf), lambda _: tell(), monotonic())
    descend(run)
    tell()
    fixed(core, no_dual(core), _FAR)
    tell()


def warm_search(watch: Watch, late: Callable[[], bool]) -> None:
    """Compile the ascent and the local search on a small problem; an EnoughError where it gets late."""
    tell = _telling(watch, late)
    core = unreduced(_problem())
    ascent = ascent_of(core)
    climb(ascent, lambda _: False)
    tell()
    cool(ascent, cooling_of(ascent), lambda: 0.0, lambda: True, 1)
    tell()
    walker = walker_of(core, ascent.labels, ascent.multipliers, 0)
    pull(walker, 1, _NODES, False)
    tell()
    walked(walker, 1, 1, 0.0)
    tell()


def _telling(watch: Watch, late: Callable[[], bool]) -> Callable[[], None]:
    """Tells of compiling where it takes longer than finding it compiled, and ends it where it gets late."""
    began = monotonic()

    def tell() -> None:
        if monotonic() - began > _LOADED:
            watch(Progress(MESSAGE, None))
        if late():
            raise EnoughError

    return tell


def _problem() -> Problem:
    """A ring with chords whose figures follow no pattern, with a forbidden pair and a limit that binds."""
    random = np.random.default_rng(1)
    firsts = np.concatenate([np.arange(_NODES), np.arange(0, _NODES, 2)])
    seconds = np.concatenate([(np.arange(_NODES) + 1) % _NODES, (np.arange(0, _NODES, 2) + 3) % _NODES])
    entries = random.integers(0, 50, len(firsts) * _STRATEGIES**2)
    entries[4] = FORBIDDEN
    return Problem(
        name="warm",
        offsets=offsets_of([_STRATEGIES] * _NODES),
        costs=random.integers(0, 50, _NODES * _STRATEGIES),
        usages=random.integers(1, 9, _NODES * _STRATEGIES),
        starts=np.zeros(_NODES, np.int64),
        ends=np.arange(2, 2 + _NODES),
        firsts=firsts,
        seconds=seconds,
        entry_offsets=offsets_of([_STRATEGIES**2] * len(firsts)),
        entries=entries,
        limit=4 * _NODES,
    )


# A choice by the simplest of rules, without compiled code: for who has to answer before that is there, or at once.

_MUCH = 1 << 50
"""More than all that may be chosen costs together, and many times this is still a number."""
_ROUNDS = 20


def simplest(question: ShardingQuestion) -> Strategies | None:
    """The cheapest strategy of every node, the one of least memory, or one plan for all layers: the best that keeps every rule."""
    problem = question.problem
    tried = [_least(problem, problem.costs), _least(problem, problem.usages), np.zeros(len(problem), np.int64)]
    named = () if question.network is None else [np.asarray(chosen, np.int64) for chosen in question.network.rules.values()]
    weighed = [(weigh(problem, chosen.tolist()), chosen) for chosen in (*tried, *named)]
    feasible = [(found.cost, index) for index, (found, _) in enumerate(weighed) if not found.violations]
    return Strategies(tuple(weighed[min(feasible)[1]][1].tolist())) if feasible else None


def quick(question: ShardingQuestion, deadline: float) -> Strategies | None:
    """The simplest choice, or else a greedy one node by node that fits; None if time is too short for that."""
    found = simplest(question)
    if found is not None:
        return found
    chosen = _one_by_one(question.problem, deadline)
    return None if chosen is None or weigh(question.problem, chosen).violations else Strategies(tuple(chosen))


def _least(problem: Problem, column: Ints) -> Ints:
    """The strategy of each node that has the least of this, the first of several."""
    owner = np.repeat(np.arange(len(problem)), problem.counts)
    ranked = np.lexsort((np.arange(len(column)), column, owner))
    return np.asarray(ranked[problem.offsets[:-1]] - problem.offsets[:-1])


def _one_by_one(problem: Problem, deadline: float) -> list[int] | None:
    """Every node beside those before it; then those with a forbidden neighbour again, beside all of theirs, as long as that helps."""
    chosen = _least(problem, problem.usages)
    beside: list[list[tuple[int, int]]] = [[] for _ in range(len(problem))]
    for edge, (first, second) in enumerate(zip(problem.firsts.tolist(), problem.seconds.tolist(), strict=True)):
        beside[first].append((edge, second))
        beside[second].append((edge, first))
    room = _Room(problem, chosen)
    for node in range(len(problem)):
        if monotonic() >= deadline:
            return None
        _choose(problem, chosen, room, node, [(edge, second) for edge, second in beside[node] if second <= node])
    for _ in range(_ROUNDS):
        broken = _broken(problem, chosen)
        if not broken or monotonic() >= deadline:
            break
        for node in broken:
            _choose(problem, chosen, room, node, beside[node])
    return [int(strategy) for strategy in chosen]


class _Room:
    """What is left of the memory between each moment and the next."""

    def __init__(self, problem: Problem, chosen: Ints) -> None:
        moments, places = np.unique(np.concatenate([problem.starts, problem.ends]), return_inverse=True)
        self._starts, self._ends = places[: len(problem)].tolist(), places[len(problem) :].tolist()
        self._left = np.full(len(moments), FORBIDDEN if problem.limit is None else problem.limit)
        for node, usage in enumerate(problem.usages[problem.offsets[:-1] + chosen].tolist()):
            self.of(node)[:] -= usage

    def of(self, node: int) -> Ints:
        """While the node is alive."""
        return self._left[self._starts[node] : self._ends[node]]


def _choose(problem: Problem, chosen: Ints, room: _Room, node: int, beside: list[tuple[int, int]]) -> None:
    """Gives a node the strategy that costs least beside others and fits; what is forbidden costs more than all else together."""
    first, last = int(problem.offsets[node]), int(problem.offsets[node + 1])
    costs, usages, here = np.minimum(problem.costs[first:last], _MUCH), problem.usages[first:last], room.of(node)
    for edge, other in beside:
        costs = costs + np.minimum(_paired(problem, edge, other, int(chosen[other]), node), _MUCH)
    here += usages[chosen[node]]
    costs = np.where(usages > here.min(initial=FORBIDDEN), FORBIDDEN, costs)
    costs[chosen[node]] = min(costs[chosen[node]], FORBIDDEN - 1)
    chosen[node] = int(costs.argmin())
    here -= usages[chosen[node]]


def _broken(problem: Problem, chosen: Ints) -> list[int]:
    """Nodes at forbidden pairs."""
    widths = problem.counts[problem.seconds]
    pairs = problem.entries[problem.entry_offsets[:-1] + chosen[problem.firsts] * widths + chosen[problem.seconds]]
    bad = pairs >= FORBIDDEN
    return [int(node) for node in np.unique(np.concatenate([problem.firsts[bad], problem.seconds[bad]]))]


def _paired(problem: Problem, edge: int, other: int, strategy: int, node: int) -> Ints:
    """What each strategy of a node costs beside the one that is chosen of another."""
    entries = problem.entries[problem.entry_offsets[edge] : problem.entry_offsets[edge + 1]]
    table = entries.reshape(int(problem.counts[problem.firsts[edge]]), int(problem.counts[problem.seconds[edge]]))
    if node == other:
        return np.asarray(table.diagonal())
    return np.asarray(table[strategy] if int(problem.seconds[edge]) == node else table[:, strategy])


# The engine `search`: messages, multipliers and large neighbourhoods for problems that no integer model holds.

_HORIZON = 120.0
"""Default time limit of a search in seconds."""
_SEARCHED = 10_000
"""Pairs from which a search goes before the relaxation."""
_SHARE = 0.25
"""Of the time that is left, the most that it takes."""
_FEW, _NEAR = 50_000, 200
"""Pairs of which the integer model takes seconds, and the part of the cost to which a bound has to be near before they are counted."""
_SPARED, _WRITTEN = 0.04, 1.0
"""Of the time, for the last proof, the way back and the judge; up to twice as much where that is not even the second that writing takes."""


def model_after_search(run: Run) -> None:
    """The engine `milp`: where the relaxation takes longer than a search, its bound leaves less to relax."""
    run.tick()
    if COMPILES and run.core.pairs >= _SEARCHED:
        descend(run)
        warm_search(run.watch, lambda: run.left <= 0.0)
        search_shortly(run, _SHARE * run.left)
    milp(run)


def search(run: Run, suffices: Callable[[Rest], bool] = lambda _: False) -> None:
    """Offers choices and bounds until they suffice or the time is up, or an EnoughError."""
    run.tick()
    warm_search(run.watch, lambda: run.left <= 0.0)
    run.tick()
    if run.chosen is None:
        greedy(run)
    seconds = max(min(run.left - spared(run.limits.seconds), _HORIZON if np.isinf(run.limits.seconds) else np.inf), 0.0)
    if not search_for(run, seconds, suffices) and np.isfinite(run.limits.seconds) and not run.near:
        raise EnoughError


def _few_left(run: Run, rest: Rest) -> bool:
    """Whether the bound of a search is near, and leaves so little that may be better that a model of it takes seconds."""
    return (
        run.dual_bound is not None and run.cost is not None and (run.cost - run.dual_bound) * _NEAR <= run.cost and rest.core.pairs <= _FEW
    )


def spared(seconds: float) -> float:
    """What a search leaves of its time to those who come after it."""
    return max(_SPARED * seconds, min(_WRITTEN, 2.0 * _SPARED * seconds)) if np.isfinite(seconds) else 0.0


# Engines for strategies, and the way to what they find: reduce, solve what is left, go back.
#
# An engine is a function of a Run (solvers.sharding.run): it offers choices of the reduced core and tells bounds, and ends when it is done,
# or by an EnoughError. What it offered stays, however it ends.

Engine = Callable[[Run], None]
ENGINES: dict[str, Engine] = {
    "milp": model_after_search,
    "cpsat": cpsat,
    "weak": weak,
    "exhaustive": exhaustive,
    "greedy": greedy,
    "local": local,
    "search": search,
}
_AT_ONCE = 0.3
"""Seconds for a rule that is not quite so simple, once the time is up before anything is compiled."""
_MEANWHILE = 0.3
"""Of the time limit: until then such a rule may take what it needs, where the machine code is not there yet."""
_MODELLED = 150_000
"""Pairs that the integer model takes; beyond, its first relaxation alone may take minutes."""
_UNCOMPILED = 400_000
"""Pairs of a problem up to which loops run as Python where numba is not installed: some 5 s for 300,000 pairs."""
_NOTED = 20_000
"""Pairs from which that takes long enough to be noted."""


def answered(engine: str, question: ShardingQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Strategies]:
    """The best strategies, with their proof and Megatron-LM's plans beside them."""
    noted = _uncompiled(question.problem)
    found = _found(engine, question, limits, watch)
    return replace(found, notes=(*found.notes, *noted), baselines=baselines_of(question.network))


def _uncompiled(problem: Problem) -> tuple[str, ...]:
    """What is noted where loops run as Python; a RefusedError where that would take minutes."""
    pairs = len(problem.entries)
    if COMPILES or pairs < _NOTED:
        return ()
    if pairs > _UNCOMPILED:
        raise RefusedError(f"there are {pairs:,} pairs of strategies, and without numba at most {_UNCOMPILED:,} are handled ({INSTALL})")
    return (f"numba is not installed, so that loops over the graph run as Python, some 100 times slower ({INSTALL})",)


def _found(engine: str, question: ShardingQuestion, limits: Limits, watch: Watch) -> SearchOutcome[Strategies]:
    began = monotonic()
    if reasons := too_much(question.problem):
        return SearchOutcome(None, inf, RecomputableBound(BY_LEAST), engine, reasons=reasons)
    until = began + _MEANWHILE * limits.seconds
    first = quick(question, until) if until < began + _LOADED else simplest(question)  # sooner than progress of compiling is reported
    early: SearchOutcome[Strategies] = SearchOutcome(_kept(question, first, watch), engine=engine)

    def compiling(progress: Progress) -> None:
        nonlocal early
        watch(progress)
        if early.answer is None and began <= monotonic() < until < inf:
            early = replace(early, answer=_kept(question, quick(question, until), watch))

    try:
        warmed(compiling, lambda: monotonic() - began >= limits.seconds)
        reduction = reduced(unreduced(question.problem), lambda: _reducing(limits, watch, began))
    except ContradictionError as error:
        return replace(early, answer=None, bound=inf, proof=RecomputableBound(BY_ARCS), reasons=(str(error),))
    except EnoughError:
        return replace(early, answer=early.answer or quick(question, monotonic() + _AT_ONCE), stopped="time limit")
    except KeyboardInterrupt:
        return replace(early, stopped="interrupted")
    name = _by_size(reduction.core) if engine == "auto" else engine
    run = Run(reduction.core, limits, watch, began)
    run.back = lambda chosen: Strategies(tuple(reduction.back(chosen).tolist()))
    run.bound_proved(no_dual(run.core))
    turns = engine == "auto" and name == "search"
    stopped, notes = _carried_out(name, partial(search, suffices=partial(_few_left, run)) if turns else ENGINES[name], run)
    left = run.narrowed() if turns and stopped == "complete" and not run.near else None
    if turns := left is not None and _few_left(run, left):
        name = "milp"
        stopped, notes = _carried_out(name, milp, run)
    if run.dual is not None:
        run.bound_proved(run.dual, run.rest)  # an interrupt may come between a dual and the report of its bound
    if _to_be_proved(run, turns):
        close(run)
    chosen = None if run.chosen is None else reduction.back(run.chosen)
    if chosen is None and stopped != "complete":
        early = replace(early, answer=early.answer or quick(question, monotonic() + _AT_ONCE), engine=name, stopped=stopped, notes=notes)
        if early.answer is not None:
            return early
    found = _none(question, run, reduction) if chosen is None else _chosen(question, chosen, run, reduction)
    notes = (*run.notes, *_unproved(run), *notes, *found.notes)
    return replace(found, engine=name, stopped=stopped, notes=notes, trace=_trace(run))


def _kept(question: ShardingQuestion, first: Strategies | None, watch: Watch) -> Strategies | None:
    """Shows what a rule chooses."""
    if first is not None:
        watch(Progress("reductions", float(weigh(question.problem, first.strategies).cost), answer=lambda: first))
    return first


def _to_be_proved(run: Run, few: bool) -> bool:
    """Whether an unverified claim of optimality remains to be proved, and the relaxation of the whole model, or of few pairs, is quick."""
    claimed = run.said_by or run.bound == (FORBIDDEN if run.cost is None else run.cost)
    return bool(claimed) and not _is_exact(run) and (few or run.core.pairs <= _MODELLED)


def _is_exact(run: Run) -> bool:
    """Whether whole numbers prove that nothing is better than the best choice, or that there is none."""
    return run.proved_by in EXACT_PROOFS and run.bound == (FORBIDDEN if run.cost is None else run.cost)


def _unproved(run: Run) -> tuple[str, ...]:
    """What is to be said where a solver in floating point calls something the best and nothing proves it."""
    if not run.said_by or _is_exact(run):
        return ()
    what = "there is no choice" if run.cost is None else f"nothing costs less than {run.cost:,}"
    return (f"{run.said_by} says, in floating point, that {what}; no proof in whole numbers was found, and it is not called proved",)


def _by_size(core: Core) -> str:
    """The engine that `auto` takes."""
    return "exhaustive" if choices_in(core) <= MOST else "milp" if core.pairs <= _MODELLED else "search"


def _reducing(limits: Limits, watch: Watch, began: float) -> None:
    watch(Progress("reductions", None))
    if monotonic() - began >= limits.seconds:
        raise EnoughError


def _carried_out(name: str, engine: Engine, run: Run) -> tuple[str, tuple[str, ...]]:
    """How the engine ended, and what is to be said of it; a solver that fails leaves what was known."""
    try:
        engine(run)
    except EnoughError as end:
        late = run.left <= spared(run.limits.seconds) or bool(str(end))
        return ("complete", ()) if run.near else ("time limit" if late else "interrupted", (str(end),) if str(end) else ())
    except KeyboardInterrupt:
        return "interrupted", ()
    except (SolverError, MemoryError) as error:
        return "interrupted", (f"the engine {name} ended early: {str(error) or 'there is not enough memory'}",)
    return "complete", ()


def _chosen(question: ShardingQuestion, chosen: Ints, run: Run, reduction: Reduction) -> SearchOutcome[Strategies]:
    """The best choice for the problem of the file, with what bounds it."""
    answer = Strategies(tuple(chosen.tolist()))
    return _proved(SearchOutcome(answer, run.bound, value=run.cost), run, reduction)


def _none(question: ShardingQuestion, run: Run, reduction: Reduction) -> SearchOutcome[Strategies]:
    """Why there is no choice, or how much is left to choose where that is open."""
    left = _reductions(reduction)
    if reasons := too_much_together(question.problem):
        return SearchOutcome(None, inf, Steps(BY_PAIRS, unverified=False, reductions=left, certificate=None), reasons=reasons)
    if run.bound is not None and run.bound >= FORBIDDEN:
        return _proved(SearchOutcome(None, inf, reasons=nothing_fits(question.problem)), run, reduction)
    nodes, pairs = ((getattr(left.after, name), getattr(left.before, name)) for name in ("nodes", "entries"))
    return SearchOutcome(
        None, notes=(f"reductions leave {nodes[0]:,} of {nodes[1]:,} nodes with a choice, {pairs[0]:,} of {pairs[1]:,} pairs",)
    )


def _proved(found: SearchOutcome[Strategies], run: Run, reduction: Reduction) -> SearchOutcome[Strategies]:
    """With the proof of its bound, or a note where that is too large."""
    by, certificate = run.proved_by, None
    if by != BY_EVERY and (found.answer is not None or by == BY_TREE):
        certificate = _certificate(run)
        found = found if certificate else replace(found, notes=(UNKEPT,))
    proof = Steps(by, by not in EXACT_PROOFS or UNKEPT in found.notes, _reductions(reduction), certificate)
    return replace(found, proof=proof)


def _reductions(reduction: Reduction) -> Reductions:
    return Reductions(reduction.before, reduction.after, reduction.steps)


def _trace(run: Run) -> Trace:
    """Its course, without bounds that were taken back."""
    rows, least = list[tuple[float, float | None, float | None]](), inf
    for at, cost, bound in reversed(run.trace):
        least = min(least, inf if bound is None else bound)
        rows.append((at, cost, None if bound is None else least))
    return tuple(reversed(rows))


def _certificate(run: Run) -> Certificate | None:
    """The proof in whole numbers, or else the best duals, where it is small enough to be held by a result."""
    steps: tuple[Step, ...] = run.steps or run.duals
    bound = run.aim if run.steps else run.dual_bound
    return Certificate(bound, tuple(map(_step, steps))) if steps and bound is not None and figures_in(steps) <= STORED else None


def _step(step: Step) -> ProofStep:
    if isinstance(step, Branch):
        return ProofStep(step.node, tuple(step.first.tolist()), 1, (), (), (), ())
    figures = (step.times, step.prices, step.to_firsts, step.to_seconds)
    times, prices, to_firsts, to_seconds = (tuple(figure.tolist()) for figure in figures)
    return ProofStep(None, (), step.scale, times, prices, to_firsts, to_seconds, step.below)
