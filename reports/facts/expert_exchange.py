"""What a plan owes to hiding its exchange of experts: the same plan priced once more without, and what the share rests on."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from crossopt.crossflow.evaluate import evaluate
from crossopt.crossflow.hardware import Efficiency
from crossopt.crossflow.plan import EXPERT_EXCHANGES, Plan
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.files.units import rounded_quantity
from crossopt.solvers.codesign.answer import design_of, from_words

_SOURCE: Final = "rests on one measured pair of runs, of DeepSeek-V3 on 64 H100 (Megatron-LM, pull request 6311)"
_GIVEN: Final = "is a constant of this question"


def hidden_words(instance: Instance, design: Mapping[str, Any]) -> str:
    """A sentence on a plan that hides it; nothing of others."""
    chosen = from_words(instance, dict(design))
    plan = chosen.plan
    if not isinstance(plan, Plan) or plan.expert_exchange == EXPERT_EXCHANGES[0]:
        return ""
    hidden = design_of(instance, chosen)
    without = design_of(instance, replace(chosen, plan=replace(plan, expert_exchange=EXPERT_EXCHANGES[0])))
    before, after = (evaluate(instance.workload, one, instance.budget, instance.prices).step_time for one in (hidden, without))
    name = "queued_expert_overlap" if plan.tensor * plan.context > 1 else "expert_overlap"
    share, usual = float(getattr(hidden.hardware.efficiency, name)), float(getattr(Efficiency(), name))
    beside = ", which is less beside tensor or context ranks," if name == "queued_expert_overlap" else ""
    exposed = f"{rounded_quantity(after, 'time')} ({after / before - 1.0:+.1%})"
    return (
        f"{share:.0%} of the exchange of experts hides behind work on another microbatch: exposed, this plan takes {exposed} "
        f"and another may be better; that share{beside} {_SOURCE if share == usual else _GIVEN}"
    )
