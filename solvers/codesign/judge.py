"""The judge: prices a design again by the full model, one design on its own, whoever found it and however."""

from dataclasses import dataclass
from math import isfinite

import numpy as np

from crossopt.crossflow.evaluate import Evaluation, broken_rules, evaluate
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.errors import ModelError
from crossopt.solvers.codesign.designs import Candidate, design_of
from crossopt.solvers.codesign.objective import NO_FINITE_VALUE, value


@dataclass(frozen=True, slots=True)
class Verdict:
    """The full model's word on a design."""

    value: float
    evaluation: Evaluation
    violations: tuple[str, ...]
    """Limits that the design breaks, in words."""

    @property
    def accepted(self) -> bool:
        return not self.violations


def verify(instance: Instance, chosen: Candidate) -> Verdict:
    """Generate the device anew, price the plan on it and check every limit. A plan that is none is a ValueError."""
    design = design_of(instance, chosen)
    broken = broken_rules(instance.workload, design)
    if broken:
        raise ValueError("; ".join(broken))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        evaluation = evaluate(instance.workload, design, instance.budget, instance.prices)
    if not all(map(isfinite, (evaluation.step_time, *evaluation.likely, evaluation.energy, evaluation.cost or 0.0))):
        raise ModelError(NO_FINITE_VALUE)
    violations = tuple(f"{limit.name}: {limit.used:.6g} of {limit.available:.6g}" for limit in evaluation.limits if not limit.kept)
    return Verdict(value(instance, evaluation), evaluation, violations)
