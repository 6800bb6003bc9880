"""Engines: each answers a question with a Result. They find in their own ways and are judged in one way."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import monotonic

from crossopt.crossflow.hardware import Hardware
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.space import broken_everywhere, combinations, hardware_choice, hardware_points
from crossopt.solvers.answer import Limits, Status, Watch
from crossopt.solvers.codesign.boxes import search as by_boxes
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.certify import Outcome, certified
from crossopt.solvers.codesign.designs import Candidate, from_words, to_words
from crossopt.solvers.codesign.exhaustive import Found, search
from crossopt.solvers.codesign.result import Conflict, Relaxation, Result, Space, Tree
from crossopt.solvers.codesign.rivals.megatron import expert_design, expert_point
from crossopt.solvers.codesign.rivals.schools import fsdp_design, pipedream_design
from crossopt.solvers.codesign.rivals.searchers.anneal import anneal
from crossopt.solvers.codesign.rivals.searchers.driver import Searcher, searched
from crossopt.solvers.codesign.rivals.searchers.genetic import genetic
from crossopt.solvers.codesign.rivals.searchers.gradient import gradient
from crossopt.solvers.codesign.rivals.searchers.greedy import greedy
from crossopt.solvers.codesign.rivals.searchers.local import local
from crossopt.solvers.codesign.rivals.searchers.random import uniform

Engine = Callable[[Instance, Limits, Watch], Result]
Narrow = Callable[[Instance, float], Instance | None]
"""Makes a question narrower before the deadline; None where it cannot."""
Rule = Callable[[Instance, float], Candidate | None]
"""Chooses a design without searching, before the deadline."""

COUNTED = 20_000_000
"""Combinations of choices up to which `auto` prices every design, and so can say how many are near the best."""


def exhaustive(instance: Instance, limits: Limits, watch: Watch) -> Result:
    """Price every design; the least value is the answer and its own bound."""
    began = monotonic()
    found = search(instance, watch, began + limits.seconds)
    bound = (float("inf") if found.value is None else found.value) if found.stopped == "complete" else None
    outcome = Outcome(
        best=found.best,
        value=found.value,
        bound=bound,
        proof=proof(found),
        stopped=found.stopped,
        space=found.space,
        conflicts=conflicts(instance, found),
        trace=found.trace,
    )
    return certified(instance, "exhaustive", limits, began, outcome)


def boxes(instance: Instance, limits: Limits, watch: Watch) -> Result:
    """Branch and bound over boxes of hardware points, with the tree of its cuts as the certificate."""
    began = monotonic()
    found = by_boxes.search(instance, watch, Spend(began + limits.seconds, limits.gap))
    tree = None if found.bound is None else tree_of(instance, found)
    outcome = Outcome(found.best, found.value, found.bound, tree_proof(tree), found.stopped, tree=tree, trace=found.trace)
    return certified(instance, "boxes", limits, began, outcome)


def milp(instance: Instance, limits: Limits, watch: Watch) -> Result:
    """A refined integer model, solved by HiGHS."""
    return _by_refinement(instance, "milp", "highs", limits, watch)


def cpsat(instance: Instance, limits: Limits, watch: Watch) -> Result:
    """A refined integer model, solved by CP-SAT of OR-Tools."""
    return _by_refinement(instance, "cpsat", "cpsat", limits, watch)


def auto(instance: Instance, limits: Limits, watch: Watch) -> Result:
    """`exhaustive` where every design can be priced in about a second, else `boxes`."""
    few = hardware_points(instance) * combinations(instance) <= COUNTED
    return (exhaustive if few else boxes)(instance, limits, watch)


def by_rule(name: str, rule: Rule, instance: Instance, limits: Limits, watch: Watch) -> Result:
    """What a rule of thumb alone chooses: a design without a bound."""
    del watch
    began = monotonic()
    chosen: Candidate | None = None
    stopped = "complete"
    try:
        chosen = rule(instance, began + limits.seconds)
    except TimeoutError:
        stopped = "time limit"
    return certified(instance, name, limits, began, Outcome(chosen, None, stopped=stopped))


def hardware_only(instance: Instance, limits: Limits, watch: Watch) -> Result:
    """The best hardware for the expert rule's plan: what co-design is worth over choosing the chip alone."""
    return _restricted(instance, "hardware-only", _with_expert_plan, limits, watch)


def plan_only(instance: Instance, limits: Limits, watch: Watch) -> Result:
    """The best plan on the expert rule's hardware: what co-design is worth over choosing the plan alone."""
    return _restricted(instance, "plan-only", _with_expert_hardware, limits, watch)


RULES: dict[str, Rule] = {"expert": expert_design, "fsdp": fsdp_design, "pipedream-flush": pipedream_design}
SEARCHERS: dict[str, Searcher] = {
    "greedy": greedy,
    "local": local,
    "anneal": anneal,
    "genetic": genetic,
    "gradient": gradient,
    "random": uniform,
}
ENGINES: dict[str, Engine] = {
    "auto": auto,
    "boxes": boxes,
    "cpsat": cpsat,
    "exhaustive": exhaustive,
    **{name: partial(by_rule, name, rule) for name, rule in RULES.items()},
    **{name: partial(searched, name, searcher) for name, searcher in SEARCHERS.items()},
    "hardware-only": hardware_only,
    "milp": milp,
    "plan-only": plan_only,
}
ALIASES = {"megatron": "expert", "deepflow": "gradient"}
"""Other names: whose rule the expert's is, and whose search the gradient one follows."""


def proof(found: Found) -> str:
    """Who proved the bound, in words."""
    return proof_of_space(found.space)


def proof_of_space(space: Space) -> str:
    """The same for what enumeration counted."""
    return f"exhaustive enumeration of {space.designs:,} designs"


def tree_of(instance: Instance, seen: "by_boxes.Found | by_boxes.Reread") -> Tree:
    """The tree of cuts and what it leaves of the plans."""
    points = hardware_points(instance)
    return Tree(seen.plans * points, points, seen.plans, seen.families, seen.promising, len(seen.cuts), seen.cuts)


def tree_proof(tree: Tree | None) -> str:
    """The same for a tree of boxes."""
    return "" if tree is None else f"monotone branch and bound: {tree.boxes:,} box{'es' * (tree.boxes != 1)} of {tree.designs:,} designs"


def relaxation_proof(relaxation: Relaxation | None) -> str:
    """The same for an integer model that was refined."""
    if relaxation is None:
        return ""
    if not relaxation.rounds:
        return "bounds on the best chip and prices on the budgets, without a solver"
    rounds = f"{relaxation.rounds:,} round{'s' * (relaxation.rounds != 1)}"
    words = f"{relaxation.plans:,} plans and {relaxation.tangents:,} tangents"
    return f"{relaxation.solver} on {rounds} of a relaxation in the {relaxation.form} form with {words}"


def conflicts(instance: Instance, found: Found) -> tuple[Conflict, ...]:
    """Why there is no design: rules that no plan keeps, chips that cannot be built, limits that no design keeps."""
    if found.stopped != "complete" or found.space.feasible:
        return ()
    if not found.space.plans:
        return tuple(Conflict(f"rule: {sentence}", 0, None) for sentence in broken_everywhere(instance))
    if found.space.unbuilt == found.space.hardware_points:
        return (Conflict("cores, memory and links: every split leaves the chip without one of them", 0, None),)
    return found.conflicts


def _by_refinement(instance: Instance, engine: str, solver: str, limits: Limits, watch: Watch) -> Result:
    """The refinement loop with a solver. Costs are rounded to quanta, so that a smaller gap than `LEAST_GAP` cannot be asked for."""
    from crossopt.formulation.codesign.forms import FORMS  # noqa: PLC0415 - checking a result loads no model
    from crossopt.solvers import backends  # noqa: PLC0415
    from crossopt.solvers.codesign.linear.refine import LEAST_GAP, refine, refuse_others  # noqa: PLC0415

    began = monotonic()
    refuse_others(instance, engine)
    near = replace(limits, gap=max(limits.gap, LEAST_GAP))
    base = backends.Spend(workers=limits.workers, seed=limits.seed)
    found = refine(instance, backends.backend(solver), FORMS[limits.form], near.gap, limits.seconds, watch, base)
    relaxation = None if found.bound is None else Relaxation(found.solver, found.rounds, found.tangents, limits.form, found.plans)
    proof_words, bound = relaxation_proof(relaxation), found.bound
    outcome = Outcome(found.best, found.value, bound, proof_words, found.stopped, relaxation=relaxation, trace=found.trace)
    return certified(instance, engine, near, began, outcome)


def _restricted(instance: Instance, name: str, narrow: Narrow, limits: Limits, watch: Watch) -> Result:
    """The optimum of a narrower question, which bounds and counts nothing in the whole one; no answer where the rule has none."""
    began = monotonic()
    try:
        narrowed = narrow(instance, began + limits.seconds)
    except TimeoutError:
        narrowed = None
    started = monotonic() - began
    left = replace(limits, seconds=limits.seconds - started)
    answer = ENGINES["expert"](instance, left, watch) if narrowed is None else auto(narrowed, left, watch)
    status: Status = "FEASIBLE" if answer.value is not None else "UNKNOWN"
    if answer.design is not None:
        answer = replace(answer, design=to_words(instance, from_words(instance, answer.design)))
    unproved = replace(answer, bound=None, gap=None, proved=False, proved_by="", space=None, tree=None, relaxation=None)
    unproved = replace(unproved, rivals=(), conflicts=())
    trace = tuple((started + seconds, value, None) for seconds, value, _ in answer.trace)
    return replace(unproved, engine=name, status=status, trace=trace, seconds=monotonic() - began)


def _with_expert_plan(instance: Instance, deadline: float) -> Instance | None:
    """The question with no plan but the rule's."""
    chosen = expert_design(instance, deadline)
    if chosen is None:
        return None
    options = tuple((name, (getattr(chosen.plan, name),)) for name, _ in instance.plan_options)
    return replace(instance, plan_options=options)


def _with_expert_hardware(instance: Instance, deadline: float) -> Instance | None:
    """The question with no hardware but the rule's."""
    del deadline
    point = expert_point(instance)
    if point is None:
        return None
    if isinstance(instance.hardware, Hardware):
        return instance
    options = tuple((name, (value,)) for name, value in hardware_choice(instance, point).items())
    free: FreeHardware = replace(instance.hardware, options=options)
    return replace(instance, hardware=free)
