"""One design, given by a question whose choices leave nothing open: priced as the verifier prices it."""

from dataclasses import dataclass

from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.codesign.plan_groups import broken_everywhere
from crossopt.instances.codesign.space import device_at, hardware_points, plan_blocks
from crossopt.instances.errors import Fault, InstanceError
from crossopt.solvers.codesign.answer import Candidate, ChosenDesign, DesignEvaluation, candidate, chosen_design, evaluation_of
from crossopt.solvers.codesign.judge import verify


@dataclass(frozen=True, slots=True)
class Single:
    """A design and its evaluation."""

    design: ChosenDesign
    evaluation: DesignEvaluation


def evaluate_single(instance: Instance) -> Single:
    """Price the only design that the question allows; an InstanceError that names the open choices if there are several."""
    chosen = _only(instance)
    verdict = verify(instance, chosen)
    return Single(chosen_design(instance, chosen), evaluation_of(instance, verdict.details, chosen.plan))


def _only(instance: Instance) -> Candidate:
    found: list[Candidate] = []
    for plans in plan_blocks(instance):
        found += [candidate(plans, row, 0) for row in range(min(len(plans), 2))]
        if len(found) > 1 or hardware_points(instance) > 1:
            raise _refusal(instance, f"several designs are left, one is needed (still open: {_open(instance)}; use --set, as in tensor=8)")
    if not found:
        raise _refusal(instance, "no plan is left: " + "; ".join(broken_everywhere(instance)))
    try:
        device_at(instance, 0)
    except ValueError as error:
        raise _refusal(instance, str(error)) from error
    return found[0]


def _open(instance: Instance) -> str:
    options = instance.hardware.options if isinstance(instance.hardware, FreeHardware) else ()
    return ", ".join(f"{name} ({len(values)} options)" for name, values in (*options, *instance.plan_options) if len(values) > 1)


def _refusal(instance: Instance, message: str) -> InstanceError:
    return InstanceError(str(instance.document["source"]), [Fault(1, 1, "choices", message)])
