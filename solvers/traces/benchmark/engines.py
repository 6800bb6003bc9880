"""Who chooses kernels: an integer program with its bound counted in whole numbers, every choice looked at, rules, and dropping."""

from functools import partial
from math import inf
from time import monotonic

from crossopt.formulation.certificate import Certificate, packed
from crossopt.formulation.model import Model, Values
from crossopt.formulation.traces.selection import Selection, selection
from crossopt.instances.errors import RefusedError
from crossopt.instances.traces.benchmark.question import BenchmarkQuestion
from crossopt.solvers.answer import Found, Limits, Progress, Watch
from crossopt.solvers.backends.answer import Event, Spend
from crossopt.solvers.backends.milp import highs
from crossopt.solvers.backends.whole import Traced, trace
from crossopt.solvers.proofs import Counted, Integers, Word
from crossopt.solvers.traces.benchmark.answer import Runs
from crossopt.solvers.traces.benchmark.clash import clash_of
from crossopt.solvers.traces.benchmark.judge import judge
from crossopt.solvers.traces.benchmark.prove import least_of_all
from crossopt.solvers.traces.benchmark.reasons import reasons
from crossopt.solvers.traces.benchmark.rivals import apportioned, largest, rivals_of, rounded
from crossopt.solvers.traces.benchmark.shrink import shrunk
from crossopt.solvers.traces.benchmark.window import asks_for_window, window

_PATIENCE, _SHORT = 60.0, 5.0
"""Seconds where nobody gives a limit, and those for a look at which limit is in the way."""
_DROPPING, _SHORTEST, _NARROW, _LOOKING = 0.05, 1.0, 0.4, 0.75
"""The share of the time for dropping kernels, seconds of a tree at the least, the share of the time left for kernels around the bound, and
that which the solver takes, and the tree behind it of the rest."""
RULES = {"rounding": rounded, "apportion": apportioned, "largest": largest}


def program(question: BenchmarkQuestion, limits: Limits, watch: Watch) -> Found[Runs]:
    """HiGHS looks for the best benchmark, a tree of our own proves the bound."""
    if not limits.seconds:
        return Found(None, engine="highs", stopped="time limit")
    deadline = monotonic() + (limits.seconds if limits.seconds < inf else _PATIENCE)
    rivals = rivals_of(question, limits.seed, monotonic() + (deadline - monotonic()) * _DROPPING)
    judged = [(judge(question, one.answer), one.answer) for one in rivals if one.answer is not None]
    known = [(int(verdict.value), answer) for verdict, answer in judged if not verdict.violations]
    inside, outside = selection(question, inner=True), selection(question, inner=False)

    def see(event: Event) -> bool:
        watch(Progress("integer program", event.value, event.bound))
        return False

    root, start = _start(question, inside, outside.model, limits, deadline)
    if root and start and root.bound is not None and (least := sum(start[one] > 0 for one in inside.chosen)) <= root.bound:
        return Found(Runs(tuple(start[one] for one in inside.runs)), least, _proof(root.certificate), "highs", rivals=rivals)
    spend = Spend((deadline - monotonic()) * _LOOKING, workers=limits.workers, seed=limits.seed, hint=start, watch=see)
    told = highs(inside.model, spend)
    if told.values is not None and told.value is not None:
        known.insert(0, (told.value, Runs(tuple(told.values[variable] for variable in inside.runs))))
    value, answer = min(known, key=lambda one: one[0], default=(None, None))
    if answer is None and told.status == "INFEASIBLE" and (found := _refuted(question, outside.model, deadline)):
        return found
    tree = _tree(outside.model, value, deadline)
    proof = _proof(tree.certificate)
    shown = inf if tree.bound is None else tree.bound
    stopped = "time limit" if limits.seconds < inf and shown != value and told.stopped == "time limit" else "complete"
    if answer is None:
        why = reasons(question, _looking(deadline)) if shown == inf else ()
        return Found(None, shown, proof, "highs", stopped, reasons=why)
    return Found(answer, min(shown, value or 0), proof, "highs", stopped, rivals=rivals, solver=told.solver)


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

    def met(event: Event) -> bool:
        return event.value is not None and event.value <= bound

    spend = Spend((deadline - monotonic()) * _NARROW, workers=limits.workers, seed=limits.seed, watch=met)
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


def _refuted(question: BenchmarkQuestion, model: Model, deadline: float) -> Found[Runs] | None:
    """That there is no benchmark: by the root of a tree, by a tree about the limits that clash, else by the solver's word; None where it
    does not give that of the outer model."""
    root = trace(model, None, max(deadline - monotonic(), _SHORTEST), most=1)
    if root.bound is None:
        return Found(None, inf, _proof(root.certificate), "highs", reasons=reasons(question, _looking(deadline)))
    clash = clash_of(model, max(deadline - monotonic(), _SHORTEST) * _LOOKING)
    if clash is None:
        return None
    in_the_way = f"in the way: no runs of any kernels keep {', '.join(clash.limits)}, whatever else is asked"
    proof = Word("highs") if clash.tree is None else _proof(clash.tree)
    return Found(None, inf, proof, "highs", reasons=(*reasons(question, _looking(deadline)), in_the_way))


def _looking(deadline: float) -> float:
    return min(max(deadline - monotonic(), _SHORTEST), _SHORT)


def exhaustive(question: BenchmarkQuestion, limits: Limits, watch: Watch) -> Found[Runs]:
    """Every number of runs of every kernel."""
    if not limits.seconds:
        return Found(None, engine="exhaustive", stopped="time limit")
    del watch
    try:
        value, answer, count = least_of_all(question)
    except ValueError as error:
        raise RefusedError(f"{error} (`auto` answers)") from error
    proof = Counted(f"{count:,} choices looked at")
    why = () if answer else reasons(question, _SHORT)
    rivals = rivals_of(question, limits.seed, monotonic() + _SHORT)
    return Found(answer, value, proof, "exhaustive", reasons=why, rivals=rivals)


def dropping(question: BenchmarkQuestion, limits: Limits, watch: Watch) -> Found[Runs]:
    """Rounded shares, less the smallest kernels; no proof."""
    if not limits.seconds:
        return Found(None, engine="dropping", stopped="time limit")
    del watch
    deadline = monotonic() + limits.seconds
    found = shrunk(question, rounded(question), limits.seed, deadline)
    return Found(found, engine="dropping", stopped="time limit" if monotonic() > deadline else "complete")


def by_rule(name: str, question: BenchmarkQuestion, limits: Limits, watch: Watch) -> Found[Runs]:
    """A rule; no proof."""
    del limits, watch
    answer = RULES[name](question)
    return Found(None if judge(question, answer).violations else answer, engine=name)


rounding, apportion, largest_first = (partial(by_rule, name) for name in RULES)
