"""Facts for caveats: how far the model is off on public runs, and plans priced once more with other assumptions."""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from time import monotonic
from typing import Final

import numpy as np

from crossopt.crossflow.evaluate import evaluate
from crossopt.crossflow.hardware import Efficiency, Hardware
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import EXPERT_EXCHANGES, TENSOR_EXCHANGES, Plan, table
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.transformer import parts_of, terms
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.entries import USUAL
from crossopt.instances.catalogue.known_runs import BEYOND, MEASURED, elsewhere, first_kind, known_errors, short_of, underestimated_runs
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.known_errors import (
    ON,
    WITH_EXPERTS,
    device_of,
    has_experts,
    mean_error,
    outside,
    own_errors,
    plans_like,
    stack_of,
)
from crossopt.instances.codesign.space import combinations
from crossopt.instances.files.units import format_quantity, rounded_quantity
from crossopt.solvers.answer import unwatched
from crossopt.solvers.codesign.answer import Candidate, ChosenDesign, DesignEvaluation, candidate_in, design_of
from crossopt.solvers.codesign.exhaustive import search

# How far the model is off on public runs, by training stack and device, as `reports/gallery/accuracy.md` and the registry's files tell.

RANKED_ON: Final = "a100"
"""The kind of devices of which three plans and more of one question were measured; of others no question has two that differ."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """How the plans of measured questions are ranked."""

    questions: int
    tau: float
    """Kendall's, the mean over questions."""
    regret: float
    """What the plan ranked first takes over the best measured one, the mean over questions."""
    most: float


RANKED: Final[Mapping[str, Ranked]] = {"one node": Ranked(125, 0.87, 0.032, 0.229), "several nodes": Ranked(20, 0.59, 0.027, 0.218)}
"""vTrain and Rapid-LLM; vTrain, BLOOM's pre-runs and InternEvo: all of dense networks."""
_SHARED_WHOLE: Final = (
    "nearly all of these share optimizers (ZeRO-1): of Megatron-FSDP two runs with ZeRO-3 are known, Llama 3 8B on 8 H100, where 6.8% more "
    "is predicted than was measured, and Qwen3 235B on 256 H100, 7% more"
)
"""`reports/gallery/published-plans.md`, run 22; yanring/Megatron-MoE-ModelZoo, best_practice/Qwen3 (c1ad0b5): tensor 2, expert 8, four
samples a microbatch, full recomputation, 17.6 s; priced with gradients of two bytes, balanced routers and copies once a node, 18.8 s."""
_SHARED_EXPERTS: Final = (
    "; beside experts it was slower than going without where somebody measured both, Qwen3 30B on 32 H800 with expert 8: 111 TFLOP/s a "
    "device and 138, and 10 GB more reserved (Megatron-LM, issue 2772): run test steps of this plan and of the best one with ZeRO-1 first"
)


def measured_text(instance: Instance, plan: Plan | KernelPlan | None) -> str:
    """The model's error on public runs like the question, or that none are known; and whether their plans differ from this one."""
    return f"{_measured(instance)}{_outside_text(instance)}{_shared_text(instance, plan)}{_like_text(instance, plan)}"


def _outside_text(instance: Instance) -> str:
    """That no run had as many devices, and what more of them cost others."""
    if (span := outside(instance)) is None:
        return ""
    return (
        f"; {instance.cluster.devices:,} devices are outside the span of the runs ({span:,} at the most): with more ranks others lost more "
        f"than is predicted, and {-BEYOND:.0%} of a step was missing for FSDP on 2,048 H100"
    )


def runs_text(instance: Instance, plan: Plan | KernelPlan | None) -> str:
    """How far the model is off on public runs, and whether its ranking of plans was tested on the device."""
    return f"{measured_text(instance, plan)}; {_ranking_text(device_of(instance))}"


def _ranking_text(device: str) -> str:
    alone, several = RANKED["one node"], RANKED["several nodes"]
    taus = (
        f"Kendall's tau {alone.tau:.2f} for {alone.questions} questions on one node, {several.tau:.2f} for {several.questions} on several"
    )
    if device.startswith(RANKED_ON):
        return f"plans were ranked against measured ones with {taus}"
    return f"ranking of plans was not tested on this device: only A100 has questions with three measured plans ({taus})"


def _shared_text(instance: Instance, plan: Plan | KernelPlan | None) -> str:
    """Of plans of Megatron-FSDP what little is known."""
    if stack_of(instance) != USUAL or getattr(plan, "zero", 0) < 2:
        return ""
    return f"; {_SHARED_WHOLE}{_SHARED_EXPERTS if has_experts(instance) else ''}"


def doubt_text(error: float | None, distance: float) -> str:
    """What a gain over a rule of thumb is worth that is smaller than the model's error."""
    if error is None or not 0.0 < distance < error:
        return ""
    return f"that is less than the {error:.1%} by which the model is off on measured runs: by itself no reason to leave this plan"


def _measured(instance: Instance) -> str:
    device, stack = device_of(instance), stack_of(instance)
    if has_experts(instance):
        return _expert_text(device, stack) + _own_text(instance)
    if (found := MEASURED.get((stack, device))) is None:
        which = f"{instance.stack.name} on {device}" if instance.stack is not None else device
        whose = "Megatron" if stack == USUAL else "another stack"
        return (
            f"none of {which} was compared with the model: how far off it is there, links included, is not known; where runs of {whose} "
            f"came later, constants that had been taken over were up to {elsewhere(stack):.1%} off on average"
        )
    most = f", {found.most:.1%} at most" if found.most is not None else ""
    seen = "to which constants were fitted, so that others may be further off" if found.fitted else "none of which was fitted to"
    whose = f"{found.runs} public runs of {found.of or stack} on {device}"
    return f"{whose}, {seen}: {found.error:.1%} off on average{most}{_own_text(instance)}"


def _like_text(instance: Instance, plan: Plan | KernelPlan | None) -> str:
    """Of dense networks how far runs of such plans are off, where few are known, or that none is."""
    if plan is None or not (like := plans_like(instance, plan)):
        return ""
    stack = stack_of(instance)
    if (known := known_errors(stack, like)) is None:
        kind, _ = short_of(stack, like)
        whose = f"of those with {kind} ranks at all" if kind else "where constants were taken over"
        return f"; no run of {stack} with {like} is known: its range is no narrower than {whose}"
    few = f"; with {like} {len(known)} {'is' if len(known) == 1 else 'are'} known, for which"
    return f"{few} {_signed(min(known))} to {_signed(max(known))} is predicted" if known else ""


def _own_text(instance: Instance) -> str:
    """Of runs of the network or its family how far they are off, and to which side."""
    whose, errors = own_errors(instance)
    if not errors:
        return ""
    least, most = min(errors), max(errors)
    if len(errors) == 1:
        return f"; of {whose} one is known, for which {_signed(least)} is predicted"
    return f"; of {whose} {len(errors)} are known, for which {_signed(least)} to {_signed(most)} is predicted"


def _signed(error: float) -> str:
    return f"{abs(error):.1%} too {'little' if error < 0.0 else 'much'}"


def _expert_text(device: str, stack: str) -> str:
    """How far off runs with experts are, whether there are some of the question's device and stack, and that others are dense."""
    all_of = WITH_EXPERTS
    errors_text = (
        f"{all_of.runs} public runs with experts on {', '.join(ON.values())}, none of which was fitted to: {all_of.error:.1%} off on "
        f"average, {all_of.most:.1%} at most"
    )
    others = [] if stack == USUAL else [f"by {stack}"]
    others += [] if device in ON else [f"on {device}"]
    none = f"; none {' '.join(others)}" if others else ""
    if (dense := MEASURED.get((stack, device))) is None:
        return errors_text + none
    return f"{errors_text}{none}; the {dense.runs} of {dense.of or stack} on {device}, {dense.error:.1%} off, are dense networks"


def likely_text(question: Instance | None, evaluation: DesignEvaluation) -> str:
    """The step times that are likely, and by what; nothing where nothing is known."""
    low, high = evaluation.likely
    sets = f" and under {len(question.others)} other sets of them" if question is not None and question.others else ""
    there = question is None or (stack_of(question), device_of(question)) in MEASURED or has_experts(question)
    off = "the mean error on measured runs" if there else "the error of constants that were taken over elsewhere"
    more = "" if (low, high) == evaluation.likely_by_constants else f", and {off}"
    links = ", and what sources leave of L2 and links" if question is not None and _in_doubt(question) else ""
    least, most = (rounded_quantity(seconds, "time", 4) for seconds in (low, high))
    return f"likely {least} to {most}, by the optimistic and the pessimistic constants{sets}{links}{more}" if low < high else ""


def coverage_text(question: Instance) -> str:
    """Which share of measured runs the likely range is meant to hold (`solvers.measured.accuracy.NOMINAL`), where runs are known."""
    if (stack_of(question), device_of(question)) not in MEASURED:
        return "likely: no run of this stack on this device was measured, so that the share it holds is not known"
    return "likely: meant to hold 9 of 10 runs like those that were measured"


def covered_text(question: Instance, evaluation: DesignEvaluation) -> str:
    """The likely range, by what, and of which runs it is meant to hold how many."""
    text = likely_text(question, evaluation).removeprefix("likely ")
    return f"{text}; {coverage_text(question).removeprefix('likely: ')}" if text else ""


def _in_doubt(question: Instance) -> bool:
    return isinstance(question.hardware, Hardware) and bool(question.hardware.doubts)


# Plans priced once more for a caveat: with more memory for the framework, without a hidden exchange, beside runs that took longer.

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
    reserved, more = format_quantity(usual, "bytes"), format_quantity(reserve, "bytes")
    routed = isinstance(instance.workload, Transformer) and instance.workload.experts > 1
    routes = ", or its routers send more to a device than `workload.capacity_factor` says" if routed else ""
    return (
        f"memory is {used / available:.1%} full, with {reserved} reserved for the framework: if yours needs more{routes}, "
        f"the plan does not fit (`cluster.reserved_memory: {more}` reserves so much in every plan)"
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


_FULL: Final = 0.9
"""Share of memory from which a plan is looked for that takes less."""
_CLEARLY: Final = 0.8
"""Share of memory that such a plan takes at most."""
_SOON: Final = 3.0
"""Seconds for it."""


def safer_text(instance: Instance, evaluation: DesignEvaluation) -> str:
    """The fastest plan that takes clearly less memory than a nearly full one, where the model cannot tell both apart: by its mean error on
    measured runs, or else by the likely range; nothing elsewhere. Its memory, its time and the setting that asks for it."""
    device, error = instance.hardware, mean_error(instance)
    if error is None and instance.measures_time and evaluation.likely[0] < evaluation.likely[1]:
        error = evaluation.likely[1] / evaluation.step_time - 1.0
    memory = next((limit for limit in evaluation.limits if limit.name == "memory"), None)
    if memory is None or error is None or instance.reserve_given or not isinstance(device, Hardware) or instance.objective != "step_time":
        return ""
    if not _FULL * memory.available < memory.used <= memory.available:
        return ""
    reserve = 2.0**30 * ceil((float(device.reserved_memory) + (1.0 - _CLEARLY) * memory.available) / 2.0**30)
    best, value, _ = best_soon(replace(instance, hardware=replace(device, reserved_memory=reserve)), _SOON)
    if best is None or value is None or value > evaluation.step_time * (1.0 + error):
        return ""
    goal = instance.goal
    if goal is not None and goal.seconds(value) > goal.wanted >= goal.seconds(evaluation.step_time):
        return ""
    priced = evaluate(instance.workload, design_of(instance, best), instance.budget, instance.prices)
    used = next(limit.used for limit in priced.limits if limit.name == "memory")
    took = f"{rounded_quantity(used, 'bytes', 4)}, {rounded_quantity(value, 'time', 4)} ({value / evaluation.step_time - 1.0:+.1%})"
    return f"{took}: `--set cluster.reserved_memory={reserve / 2.0**30:.0f}GiB`"


def which_text(complete: bool) -> str:
    """The label of the best design that was found in time."""
    return "the best" if complete else f"the best found in {_SECONDS:.0f} s"


def best_soon(instance: Instance, seconds: float = _SECONDS) -> tuple[Candidate | None, float | None, bool]:
    """Its best design with the value, and whether the search was complete."""
    if combinations(instance) <= _FEW:
        outcome = search(instance, unwatched)
        return outcome.best, outcome.value, outcome.stopped == "complete"
    from crossopt.solvers.codesign.boxes import search as boxes  # noqa: PLC0415 - small questions are enumerated
    from crossopt.solvers.codesign.boxes.branch import Spend  # noqa: PLC0415

    found = boxes.search(instance, unwatched, Spend(monotonic() + seconds), counted=False)
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
    before, after = (evaluate(instance.workload, design, instance.budget, instance.prices).step_time for design in designs)
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
    if not kind and (errors := underestimated_runs(stack, like)):
        kind, ranks = first_kind(like), like
    if not errors:
        return ""
    least, most = (-error / (1.0 + error) for error in (errors[-1], errors[0]))
    return (
        f"all {len(errors)} known runs of {stack} with {ranks} took longer than predicted, by {least:.0%} to {most:.0%}, "
        f"which the likely range holds: something that {ranks} cost there is not modelled{_priced_short_without(instance, kind, seconds)}"
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
    in each micro step, where `crossflow.replica_exchange` has them once a step: of m microbatches m (s + 2 g) for s + g, of ZeRO-2 m s
    for s."""
    model, plan = instance.workload, design.plan
    if not isinstance(model, Transformer) or not isinstance(plan, Plan) or stack_of(instance) not in _EACH_TIME:
        return ""
    microbatches = model.global_batch // (plan.microbatch * plan.data)
    if plan.zero < 2 or plan.pipeline > 1 or microbatches == 1:
        return ""
    design_priced, plans = design_of(instance, candidate_in(instance, design)), table([plan])
    needed = terms(model, design_priced.hardware, plans, parts_of(model, design_priced.hardware, instance.cluster, plans))
    scatter, gather = (float(np.ravel(seconds)[0]) for seconds in (needed.synchronize, needed.publish))
    more = (microbatches - 1) * scatter + ((2 * microbatches - 1) * gather if plan.zero == 3 else 0.0)
    share = more / evaluate(model, design_priced, instance.budget, instance.prices).step_time
    if share < _LITTLE:
        return ""
    done = "gathers and scatters" if plan.zero == 3 else "scatters gradients of"
    return (
        f"{stack_of(instance)} {done} embedding and head with each of {microbatches:,} microbatches, and here they are priced once a step: "
        f"up to {rounded_quantity(more, 'time')} more ({share:+.1%}), as far as nothing hides it"
    )
