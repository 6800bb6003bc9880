"""Engines about one workload on one number of devices: each finds a design in its own way, and most prove a bound."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.space import combinations, hardware_points
from crossopt.solvers.answer import Limits, SearchOutcome, Watch
from crossopt.solvers.codesign.answer import Candidate, Designs, answer_of, candidate_in
from crossopt.solvers.codesign.claims import UNREPEATED, enumerated, reasons_of, too_many
from crossopt.solvers.codesign.exhaustive import conflicts_of, search
from crossopt.solvers.codesign.judge import verify
from crossopt.solvers.codesign.megatron import expert_design, expert_point, on_chip, with_plan
from crossopt.solvers.codesign.recipes import fsdp_design, pipedream_design, recipes_baselines, recipes_design
from crossopt.solvers.family import lazy_import

if TYPE_CHECKING:
    from crossopt.solvers.codesign.searchers import Searcher

_PROVING = "crossopt.solvers.codesign.boxes.engines"
_SEARCHING = "crossopt.solvers.codesign.searchers"
_CONFLICT = "crossopt.solvers.codesign.explain.conflict"
"""Modules of engines and sentences that a small question does without."""

Engine = Callable[[Instance, Limits, Watch], SearchOutcome[Designs]]
Narrow = Callable[[Instance, float], Instance | None]
"""Makes a question narrower before the deadline; None where it cannot."""
Rule = Callable[[Instance, float], Candidate | None]
"""Chooses a design without searching, before the deadline."""

ENUMERABLE = 20_000_000
"""Combinations of choices up to which `auto` prices every design, and so can say how many are near the best."""


def exhaustive(instance: Instance, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """Price every design; the least value is the answer and its own bound."""
    found = search(instance, watch, monotonic() + limits.seconds)
    complete = found.stopped == "complete"
    unrepeated = complete and too_many((instance,)) > 0
    reasons = () if unrepeated else conflicts_of(instance, found)
    seen = f"{found.space.feasible:,} of the designs that were priced keep every limit"
    return SearchOutcome(
        answer=answer_of(instance, found.best),
        bound=_least(found.value) if complete else None,
        proof=UNREPEATED if unrepeated else enumerated(found.space, reasons) if complete else None,
        engine="exhaustive",
        stopped=found.stopped,
        reasons=reasons_of(reasons),
        notes=_nearest_infeasible(instance, reasons) if complete and reasons else () if complete else (seen,),
        baselines=recipes_baselines(instance) if complete and found.best is not None else (),
        trace=found.trace,
        value=found.value,
    )


def auto(instance: Instance, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """`exhaustive` where every design can be priced in about a second, else `boxes`; with what is sold beside a chip."""
    few, began = hardware_points(instance) * combinations(instance) <= ENUMERABLE, monotonic()
    found = (exhaustive if few else ENGINES["boxes"])(instance, limits, watch)
    compared = found.stopped == "complete" and isinstance(instance.hardware, FreeHardware)
    comparison = _reference_text(instance, found.value, began + limits.seconds) if compared else ()
    return replace(found, notes=(*found.notes, *comparison))


def by_rule(name: str, rule: Rule, instance: Instance, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """What a rule of thumb alone chooses: a design without a bound, and none where it breaks a limit of which the rule knows nothing."""
    del watch
    try:
        chosen = rule(instance, monotonic() + limits.seconds)
    except TimeoutError:
        return SearchOutcome(None, engine=name, stopped="time limit")
    broken = verify(instance, chosen).violations if chosen else ()
    notes = (f"what the rule chooses breaks a limit: {'; '.join(broken)}",) if broken else ()
    return SearchOutcome(None if broken else answer_of(instance, chosen), engine=name, notes=notes)


def hardware_only(instance: Instance, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """The best hardware for the plan of the best recipe: what co-design is worth over choosing the chip alone."""
    return _restricted(instance, "hardware-only", _with_best_recipe, limits, watch)


def plan_only(instance: Instance, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """The best plan on the chip of the best recipe: what co-design is worth over choosing the plan alone."""
    return _restricted(instance, "plan-only", _with_usual_hardware, limits, watch)


RULES: dict[str, Rule] = {"recipes": recipes_design, "expert": expert_design, "fsdp": fsdp_design, "pipedream-flush": pipedream_design}
SEARCHERS: dict[str, "Searcher"] = {
    "descent": lazy_import(_SEARCHING, "descent"),
    "genetic": lazy_import(_SEARCHING, "genetic"),
    "gradient": lazy_import(_SEARCHING, "gradient"),
    "random": lazy_import(_SEARCHING, "uniform"),
    **{name: partial(lazy_import(_SEARCHING, "black_box"), name) for name in ("nsga-ii", "tpe", "cma-es")},
    "bayesian": lazy_import(_SEARCHING, "bayesian"),
}
ENGINES: dict[str, Engine] = {
    "auto": auto,
    "boxes": lazy_import(_PROVING, "boxes"),
    "cpsat": lazy_import(_PROVING, "cpsat"),
    "exhaustive": exhaustive,
    **{name: partial(by_rule, name, rule) for name, rule in RULES.items()},
    **{name: partial(lazy_import(_SEARCHING, "searched"), name, searcher) for name, searcher in SEARCHERS.items()},
    "alternating": partial(lazy_import(_SEARCHING, "alternating"), auto),
    "hardware-only": hardware_only,
    "milp": lazy_import(_PROVING, "milp"),
    "plan-only": plan_only,
}
_nearest_infeasible = lazy_import(_CONFLICT, "nearest_infeasible")
_reference_text = lazy_import(_CONFLICT, "reference_text")


def _least(value: float | None) -> float:
    """The least value of all designs, infinite where there is none."""
    return float("inf") if value is None else value


def _restricted(instance: Instance, name: str, narrow: Narrow, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """The optimum of a narrower question, which bounds and counts nothing in the whole one; no answer where the rule has none."""
    began = monotonic()
    try:
        narrowed = narrow(instance, began + limits.seconds)
    except TimeoutError:
        narrowed = None
    started = monotonic() - began
    left = replace(limits, seconds=limits.seconds - started)
    found = ENGINES["expert"](instance, left, watch) if narrowed is None else auto(narrowed, left, watch)
    chosen = candidate_in(instance, found.answer.design) if found.answer else None
    trace = tuple((started + seconds, value, None) for seconds, value, _ in found.trace)
    return SearchOutcome(answer_of(instance, chosen), engine=name, stopped=found.stopped, trace=trace)


def _with_best_recipe(instance: Instance, deadline: float) -> Instance | None:
    """The question with no plan but that of the best recipe."""
    chosen = recipes_design(instance, deadline)
    return None if chosen is None else with_plan(instance, chosen.plan)


def _with_usual_hardware(instance: Instance, deadline: float) -> Instance | None:
    """The question with no hardware but that of the best recipe, or the rule's where no recipe has a plan on its own."""
    chosen = recipes_design(instance, deadline)
    point = expert_point(instance) if chosen is None else chosen.point
    return None if point is None else on_chip(instance, point)
