"""Asks again what nobody has to believe of saved runs: bounds are proved anew, and rules, which always choose the same, choose again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from crossopt.instances.codesign.instance import Instance
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.family import solve
from crossopt.solvers.study.records import Run

_RULES: Final = frozenset({"recipes", "expert", "fsdp", "pipedream-flush", "plan-only", "hardware-only"})


@dataclass(frozen=True, slots=True)
class Again:
    """What came of it."""

    faults: tuple[str, ...]
    proved: bool
    """Whether the optimum was proved, so that no bound is told any more."""


def asked_again(instance: Instance, runs: Sequence[Run]) -> Again:
    """What of a question's runs does not come of it again: a bound above the optimum, a proof of another value, a rule's choice."""
    faults, best = list[str](), solve(FAMILY, instance, "auto", Limits(), unwatched)
    for run in runs:
        name = f"{run.engine}, seed {run.seed}"
        if best.proved and best.value is None and run.value is not None:
            faults.append(f"{name}: there is no design at all, as is proved anew")
        elif best.proved and best.value is not None:
            faults += [f"{name}: {fault}" for fault in _beside(run, best.value)]
        if run.engine in _RULES and run.stopped == "complete" and not run.note:
            again = solve(FAMILY, instance, run.engine, Limits(), unwatched).value
            if again != run.value:
                faults.append(f"{name}: it chooses a design of {again!r} again, the run says {run.value!r}")
    return Again(tuple(faults), best.proved)


def _beside(run: Run, optimum: float) -> list[str]:
    """What a run claims against the optimum that was proved anew."""
    faults = [f"the bound {run.bound!r} is above the optimum {optimum!r}, which is proved anew"] if (run.bound or 0.0) > optimum else []
    if run.status == "INFEASIBLE":
        faults.append(f"there is a design of {optimum!r}, as is proved anew")
    if run.proved and run.gap_asked == 0.0 and run.value is not None and run.value != optimum:
        faults.append(f"{run.value!r} is called an optimum, and {optimum!r} is, as is proved anew")
    return faults
