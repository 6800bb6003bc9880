"""Joint designs as a family of questions: of one workload or several, on one number of devices or several; who answers, judges, proves."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf, nan
from time import monotonic
from typing import Any

from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion, Portfolio
from crossopt.instances.errors import RefusedError
from crossopt.solvers.answer import Limits, SearchOutcome, Watch
from crossopt.solvers.codesign.answer import Designs, EvaluatedDesigns
from crossopt.solvers.codesign.claims import Question, faults_of
from crossopt.solvers.codesign.devices import alone, solve_counts
from crossopt.solvers.codesign.judge import judge
from crossopt.solvers.codesign.objective import DIMENSIONS, OBJECTIVES, UNITS, figure_in, unit_of
from crossopt.solvers.family import FrontFigures, ProblemType, lazy_import, quick_answer

ENGINES = (
    "auto",
    "boxes",
    "cpsat",
    "exhaustive",
    "recipes",
    "expert",
    "fsdp",
    "pipedream-flush",
    "descent",
    "genetic",
    "gradient",
    "random",
    "nsga-ii",
    "tpe",
    "cma-es",
    "bayesian",
    "alternating",
    "hardware-only",
    "milp",
    "plan-only",
)
"""By their names, which are known before any of them is loaded."""
SEARCHING = frozenset({"descent", "genetic", "gradient", "random", "nsga-ii", "tpe", "cma-es", "bayesian", "alternating"})
"""Those that go on until their time is over."""
OF_SEVERAL = ("auto", "boxes", "exhaustive", "recipes", "expert", "plan-only")
"""Those that answer questions about several workloads."""
ALIASES = {"megatron": "expert", "deepflow": "gradient"}
"""Other names: whose rule the expert's is, and whose search the gradient one follows."""


def _answer(engine: str, question: Question, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """What the engine of that name finds; a RefusedError where it answers one workload at a time."""
    if isinstance(question, Portfolio) and engine not in OF_SEVERAL:
        known = ", ".join(OF_SEVERAL)
        raise RefusedError(f"the engine {engine} answers one workload at a time (one of {known}; or say --workload NAME)")
    if isinstance(question, MultiScaleQuestion):
        return solve_counts(question, engine, limits, watch)
    began = monotonic()
    find: Callable[..., SearchOutcome[Designs]]
    if isinstance(question, Portfolio):
        from crossopt.solvers.codesign.combined.engines import solve_together  # noqa: PLC0415 - a check loads no engine

        find = partial(solve_together, question, engine)
    else:
        from crossopt.solvers.codesign.engines import ENGINES as OF_ONE  # noqa: PLC0415

        find = partial(OF_ONE[engine], question)
    loading = monotonic() - began
    limits = replace(limits, seconds=max(limits.seconds - loading, 0.0))
    found = find(limits, watch)
    return replace(found, uncounted=found.uncounted + loading)


def _quick(question: Question, deadline: float) -> Designs | None:
    """The simplest rule: for each workload, or with the first number of devices with which it keeps every limit."""
    from crossopt.solvers.codesign.answer import answer_of, chosen_design  # noqa: PLC0415
    from crossopt.solvers.codesign.megatron import on_chip, usual_points  # noqa: PLC0415 - a check loads no rule
    from crossopt.solvers.codesign.recipes import simplest_design  # noqa: PLC0415

    if isinstance(question, MultiScaleQuestion):
        found = (
            (quick_answer(FAMILY, part, deadline - monotonic()), scale) for part, scale in zip(question.parts, question.scales, strict=True)
        )
        return next((answer.at_scale(scale) for answer, scale in found if answer is not None), None)
    if isinstance(question, Instance):
        return answer_of(question, simplest_design(question, deadline))
    if question.combine == "worst_regret":  # regret needs the optima of each workload alone
        return None
    for point in usual_points(question.parts[0]):
        chosen = [(part, simplest_design(on_chip(part, point), deadline)) for part in question.parts]
        if all(candidate for _, candidate in chosen):
            designs = tuple(chosen_design(part, replace(candidate, point=point)) for part, candidate in chosen if candidate)
            return Designs(question.parts[0].cluster.devices, designs)
    return None


def _with_parts(question: Question, found: SearchOutcome[Designs], limits: Limits) -> SearchOutcome[Designs]:
    """On several numbers of devices an answer is one of its own to each of them; about several workloads it says which engine it is of."""
    if isinstance(question, Portfolio) and found.engine == "auto":
        return replace(found, engine="expert" if found.answer else "boxes")  # none of the others tells an answer on the way
    return alone(question, found, limits) if isinstance(question, MultiScaleQuestion) else found


def _described(question: Question) -> dict[str, Any]:
    combine = {"combine": question.combine} if isinstance(question, Portfolio) else {}
    return {"objective": question.objective, "unit": unit_of(question), **combine}


def _parts(question: Question) -> tuple[Question, ...]:
    """Each number of devices, or each workload alone where regrets are asked for."""
    if isinstance(question, Instance):
        return ()
    regrets = isinstance(question, Portfolio) and question.combine == "worst_regret"
    return question.parts if isinstance(question, MultiScaleQuestion) or regrets else ()


def _part_name(question: Question, part: Question) -> str:
    """A workload, or how many devices there are, which network or which batch."""
    if isinstance(question, MultiScaleQuestion):
        return next(question.part_name(index) for index, known in enumerate(question.parts) if known is part)
    return part.name


_WRITTEN = {"time": "s", "area": "m^2", "power": "W", "energy": "J", "money": "USD"}
"""Units in which limits of each dimension are written."""


def _limits(question: Question, objective: str, name: str, limit: float) -> list[str]:
    """The limit on a figure in the budget."""
    del objective
    single = _single(question)
    least = min(limit, dict(single.ceilings).get(name, inf), getattr(single.budget, name, inf))
    return [f"budget.{name}={least!r} {_WRITTEN[DIMENSIONS[name]]}"] if least < inf else []


def _figure(question: Question, details: EvaluatedDesigns, name: str) -> float:
    if name == "cost_per_token" and details.evaluation.cost is None:  # the least of the other figure was asked without prices
        return nan
    return figure_in(_single(question), details.evaluation, name)


def _single(question: Question) -> Instance:
    """A question about one workload and one number of devices, of which alone there are fronts."""
    if not isinstance(question, Instance):
        raise RefusedError("a front is found for one workload and one number of devices")
    return question


def _no_front(question: Question) -> str:
    if not _single(question).others:
        return ""
    return (
        "a front is not drawn over several sets of constants (`sets`): its points ask for other figures than the worst step time "
        "(add `--set sets=null` for a front by the first set, or leave --pareto out for the best design by the worst set)"
    )


FAMILY: ProblemType[Question, Designs, EvaluatedDesigns] = ProblemType(
    kind="codesign",
    what="design",
    unit="s",
    answer=Designs,
    details=EvaluatedDesigns,
    engines={name: partial(_answer, name) for name in ENGINES},
    judge=judge,
    judged="priced by the full model, one plan on its own; plan rules; memory, area and power limits",
    prove=lazy_import("crossopt.solvers.codesign.prove", "prove"),
    faults=faults_of,
    aliases=ALIASES,
    searching=SEARCHING,
    seeded=SEARCHING | {"milp", "cpsat"},
    cross_check=lazy_import("crossopt.solvers.codesign.prove", "cross_check"),
    parts=_parts,
    part_name=_part_name,
    described=_described,
    front=FrontFigures(
        example="step_time,power",
        units=lambda _: UNITS,
        limits=_limits,
        keys={name: (f"budget.{name}=",) for name in OBJECTIVES},
        figure=_figure,
        refusal=_no_front,
    ),
    integer_proof=lazy_import("crossopt.solvers.codesign.linear.whole", "integer_proof"),
    quick=_quick,
    with_parts=_with_parts,
)
