"""Plans priced once more for a caveat: with more memory for the framework, without a hidden exchange, beside runs that took longer."""

from dataclasses import replace
from time import monotonic
from typing import Final

import numpy as np

from crossopt.crossflow.evaluate import evaluate
from crossopt.crossflow.hardware import Efficiency, Hardware
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import EXPERT_EXCHANGES, TENSOR_EXCHANGES, Plan, table
from crossopt.crossflow.transformer import parts_of, terms
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.known_runs import first_kind, short_alike, short_of
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import combinations
from crossopt.instances.codesign.stacks.known import plans_like, stack_of
from crossopt.instances.files.units import format_quantity, rounded_quantity
from crossopt.solvers.answer import unwatched
from crossopt.solvers.codesign.answer import Candidate, ChosenDesign, candidate_in, design_of
from crossopt.solvers.codesign.boxes import search as boxes
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.exhaustive import search

# Plans that would not fit if the framework took twice what is counted for it: that count, the key that counts more, and its cost.

_LEAST: Final = 4.0 * 2**30
_OF_PYTORCH: Final = 4.0
"""Times the usual reserve that stacks of PyTorch are asked to leave: torchtitan's published peaks are 11 to 16 GiB above the model's
(crossflow/README.md, *Memory*). Others are asked for twice as much."""
_FEW: Final = 20_000
"""Combinations of settings that are all priced once more for it: a second or two."""
_SECONDS: Final = 6.0
"""For the best of more."""


def fullness_text(instance: Instance, used: float, available: float, seconds: float | None = None) -> str:
    """A sentence where a reserve of twice or four times the usual one has no room and the question does not say itself what is reserved;
    nothing elsewhere. With the step time of a best design also what the best one takes that leaves as much, where it is found soon."""
    usual = float(instance.hardware.reserved_memory)
    times = _OF_PYTORCH if instance.stack is not None and instance.stack.name in {"torchtitan", "fsdp"} else 2.0
    reserve = max(times * usual, _LEAST)
    if instance.reserve_given or not available - (reserve - usual) < used <= available:
        return ""
    counted, more = format_quantity(usual, "bytes"), format_quantity(reserve, "bytes")
    routed = isinstance(instance.workload, Transformer) and instance.workload.experts > 1
    routes = ", or its routers send more to a device than `workload.capacity_factor` says" if routed else ""
    return (
        f"memory is {used / available:.1%} full, with {counted} counted for the framework, its buffers and fragmentation: where yours "
        f"takes more{routes}, the plan does not fit (`cluster.reserved_memory: {more}` keeps so much out of every plan)"
        f"{_cost_of(instance, reserve, seconds)}"
    )


def _cost_of(instance: Instance, reserve: float, seconds: float | None) -> str:
    """The best plan that leaves so much, and what it costs."""
    device = instance.hardware
    if seconds is None or not isinstance(device, Hardware) or instance.objective != "step_time":
        return ""
    best, value, complete = best_soon(replace(instance, hardware=replace(device, reserved_memory=reserve)))
    if best is None or value is None:
        return "; with so much no plan fits" if complete else ""
    return f"; with it {which_text(complete)} is {best.plan}, {rounded_quantity(value, 'time')} ({value / seconds - 1.0:+.1%})"


def which_text(complete: bool) -> str:
    """What the best is called of those that were looked at in time."""
    return "the best" if complete else f"the best found in {_SECONDS:.0f} s"


def best_soon(instance: Instance) -> tuple[Candidate | None, float | None, bool]:
    """Its best design with the value, and whether all were looked at."""
    if combinations(instance) <= _FEW:
        priced = search(instance, unwatched)
        return priced.best, priced.value, priced.stopped == "complete"
    found = boxes.search(instance, unwatched, Spend(monotonic() + _SECONDS))
    return found.best, found.value, found.stopped == "complete"


# What a plan owes to hiding an exchange: the same plan priced once more without, and what the share of experts rests on, or that no stack
# launches it where it is one of tensor ranks on several nodes.

_SOURCE: Final = "rests on one measured pair of runs, of DeepSeek-V3 on 64 H100 (Megatron-LM, pull request 6311)"
_GIVEN: Final = "is a constant of this question"


def hidden_text(instance: Instance, design: ChosenDesign) -> str:
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


# Plans with ranks with which all known runs of the stack took longer than predicted, and the best plan without such ranks; and what
# stacks exchange with every microbatch that is priced once a step.

_EACH_TIME: Final = ("fsdp", "torchtitan", "deepspeed")
_LITTLE: Final = 0.01
"""Of a step."""


def short_text(instance: Instance, plan: Plan | KernelPlan, seconds: float | None = None) -> str:
    """A sentence on a plan with such ranks; nothing of others. With the step time of a best design also what the best one without takes,
    where that is found soon."""
    like, stack = plans_like(instance, plan), stack_of(instance)
    kind, errors = short_of(stack, like) if like else ("", ())
    ranks = f"{kind} ranks"
    if not kind and (errors := short_alike(stack, like)):
        kind, ranks = first_kind(like), like
    if not errors:
        return ""
    least, most = (-error / (1.0 + error) for error in (errors[-1], errors[0]))
    return (
        f"all {len(errors)} known runs of {stack} with {ranks} took longer than predicted, by {least:.0%} to {most:.0%}, "
        f"which the likely range holds: something that {ranks} cost there is not priced{_priced_short_without(instance, kind, seconds)}"
    )


def _priced_short_without(instance: Instance, kind: str, seconds: float | None) -> str:
    """The best plan without such ranks, and what it takes."""
    options = dict(instance.plan_options)
    if (
        seconds is None
        or not kind
        or not isinstance(instance.hardware, Hardware)
        or instance.objective != "step_time"
        or 1 not in options[kind]
    ):
        return ""
    fewer = tuple((name, (1,) if name == kind else values) for name, values in instance.plan_options)
    best, value, complete = best_soon(replace(instance, plan_options=fewer))
    if best is None or value is None:
        return ""
    return (
        f"; without them {which_text(complete)} is {best.plan}, {rounded_quantity(value, 'time')} ({value / seconds - 1.0:+.1%}): "
        "measure both before a long run"
    )


def once_text(instance: Instance, design: ChosenDesign) -> str:
    """What a step may take longer as embedding and head are gathered and scattered like any layer; nothing where that is little.

    `fully_shard` of PyTorch makes units of them (torchtitan, parallelize.py: `apply_fsdp`), and DeepSpeed fetches and reduces all modules
    in each micro step, where `crossflow.exchanges.replicas` has them once a step: of m microbatches m (s + 2 g) for s + g, of ZeRO-2 m s
    for s."""
    model, plan = instance.workload, design.plan
    if not isinstance(model, Transformer) or not isinstance(plan, Plan) or stack_of(instance) not in _EACH_TIME:
        return ""
    microbatches = model.global_batch // (plan.microbatch * plan.data)
    if plan.zero < 2 or plan.pipeline > 1 or microbatches == 1:
        return ""
    priced, plans = design_of(instance, candidate_in(instance, design)), table([plan])
    needed = terms(model, priced.hardware, plans, parts_of(model, priced.hardware, instance.cluster, plans))
    scatter, gather = (float(np.ravel(seconds)[0]) for seconds in (needed.synchronize, needed.publish))
    more = (microbatches - 1) * scatter + ((2 * microbatches - 1) * gather if plan.zero == 3 else 0.0)
    share = more / evaluate(model, priced, instance.budget, instance.prices).step_time
    if share < _LITTLE:
        return ""
    done = "gathers and scatters" if plan.zero == 3 else "scatters gradients of"
    return (
        f"{stack_of(instance)} {done} embedding and head with each of {microbatches:,} microbatches, and here they are priced once a step: "
        f"up to {rounded_quantity(more, 'time')} more ({share:+.1%}), as far as nothing hides it"
    )
