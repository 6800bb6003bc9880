"""Plans with ranks with which all known runs of the stack took longer than predicted, and the best plan without such ranks; and what
stacks exchange with every microbatch that is priced once a step."""

from dataclasses import replace
from typing import Final

import numpy as np

from crossopt.crossflow.evaluate import evaluate
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.transformer import parts_of, terms
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.known_runs import first_kind, short_alike, short_of
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.stacks.known import plans_like, stack_of
from crossopt.instances.files.units import rounded_quantity
from crossopt.reports.facts.fullness import best_soon, which_words
from crossopt.solvers.codesign.answer import ChosenDesign, candidate_in, design_of

_EACH_TIME: Final = ("fsdp", "torchtitan", "deepspeed")
_LITTLE: Final = 0.01
"""Of a step."""


def short_words(instance: Instance, plan: Plan | KernelPlan, seconds: float | None = None) -> str:
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
        f"which the likely range holds: something that {ranks} cost there is not priced{_without(instance, kind, seconds)}"
    )


def _without(instance: Instance, kind: str, seconds: float | None) -> str:
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
        f"; without them {which_words(complete)} is {best.plan}, {rounded_quantity(value, 'time')} ({value / seconds - 1.0:+.1%}): "
        "measure both before a long run"
    )


def once_words(instance: Instance, design: ChosenDesign) -> str:
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
