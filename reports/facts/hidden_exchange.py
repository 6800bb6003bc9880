"""What a plan owes to hiding an exchange: the same plan priced once more without, and what the share of experts rests on, or that no stack
launches it where it is one of tensor ranks on several nodes."""

from dataclasses import replace
from typing import Final

from crossopt.crossflow.evaluate import evaluate
from crossopt.crossflow.hardware import Efficiency
from crossopt.crossflow.plan import EXPERT_EXCHANGES, TENSOR_EXCHANGES, Plan
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.files.units import rounded_quantity
from crossopt.solvers.codesign.answer import Candidate, ChosenDesign, candidate_in, design_of

_SOURCE: Final = "rests on one measured pair of runs, of DeepSeek-V3 on 64 H100 (Megatron-LM, pull request 6311)"
_GIVEN: Final = "is a constant of this question"


def hidden_words(instance: Instance, design: ChosenDesign) -> str:
    """A sentence on a plan that hides one of them; nothing of others."""
    chosen = candidate_in(instance, design)
    plan = chosen.plan
    if not isinstance(plan, Plan):
        return ""
    return "; ".join(filter(None, (_of_experts(instance, chosen, plan), _over_nodes(instance, chosen, plan))))


def _over_nodes(instance: Instance, chosen: Candidate, plan: Plan) -> str:
    """Of tensor ranks beyond the links of a node."""
    if plan.tensor_exchange == TENSOR_EXCHANGES[0] or not instance.machine.domain % plan.tensor:
        return ""
    return (
        f"no stack that is known hides an exchange of tensor ranks beyond the links of a node, as it is here: exposed, this plan takes "
        f"{_without(instance, chosen, replace(plan, tensor_exchange=TENSOR_EXCHANGES[0]))}; with `stack:` the best plan is asked for that "
        "one launches"
    )


def _without(instance: Instance, chosen: Candidate, plan: Plan) -> str:
    """The step time of the plan that does not hide it, and how much longer that is."""
    designs = (design_of(instance, chosen), design_of(instance, replace(chosen, plan=plan)))
    before, after = (evaluate(instance.workload, one, instance.budget, instance.prices).step_time for one in designs)
    return f"{rounded_quantity(after, 'time')} ({after / before - 1.0:+.1%})"


def _of_experts(instance: Instance, chosen: Candidate, plan: Plan) -> str:
    """Of experts, behind the work on another microbatch."""
    if plan.expert_exchange == EXPERT_EXCHANGES[0]:
        return ""
    hidden = design_of(instance, chosen)
    name = "queued_expert_overlap" if plan.tensor * plan.context > 1 else "expert_overlap"
    share, usual = float(getattr(hidden.hardware.efficiency, name)), float(getattr(Efficiency(), name))
    beside = ", which is less beside tensor or context ranks," if name == "queued_expert_overlap" else ""
    exposed = _without(instance, chosen, replace(plan, expert_exchange=EXPERT_EXCHANGES[0]))
    return (
        f"{share:.0%} of the exchange of experts hides behind work on another microbatch: exposed, this plan takes {exposed} "
        f"and another may be better; that share{beside} {_SOURCE if share == usual else _GIVEN}"
    )
