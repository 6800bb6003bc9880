"""How far the model is off on public runs, by training stack and device, as `reports/gallery/accuracy.md` and the registry's files tell."""

from collections.abc import Mapping
from typing import Final

from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import Plan
from crossopt.crossflow.records import dataclass
from crossopt.instances.catalogue.entries import USUAL
from crossopt.instances.catalogue.known_runs import BEYOND, MEASURED, elsewhere, known_errors, short_of
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.stacks.known import (
    ON,
    WITH_EXPERTS,
    device_of,
    has_experts,
    outside,
    own_errors,
    plans_like,
    stack_of,
)
from crossopt.instances.files.units import rounded_quantity
from crossopt.solvers.codesign.answer import DesignEvaluation

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
    """How far the model is off on public runs like the question, or that nobody knows; and where those have other plans than this."""
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
    said = (
        f"{all_of.runs} public runs with experts on {', '.join(ON.values())}, none of which was fitted to: {all_of.error:.1%} off on "
        f"average, {all_of.most:.1%} at most"
    )
    others = [] if stack == USUAL else [f"by {stack}"]
    others += [] if device in ON else [f"on {device}"]
    none = f"; none {' '.join(others)}" if others else ""
    if (dense := MEASURED.get((stack, device))) is None:
        return said + none
    return f"{said}{none}; the {dense.runs} of {dense.of or stack} on {device}, {dense.error:.1%} off, are dense networks"


def likely_text(asked: Instance | None, evaluation: DesignEvaluation) -> str:
    """The step times that are likely, and by what; nothing where nothing is known."""
    low, high = evaluation.likely
    sets = f" and under {len(asked.others)} other sets of them" if asked is not None and asked.others else ""
    there = asked is None or (stack_of(asked), device_of(asked)) in MEASURED or has_experts(asked)
    off = "the mean error on measured runs" if there else "the error of constants that were taken over elsewhere"
    more = "" if (low, high) == evaluation.likely_by_constants else f", and {off}"
    links = ", and what sources leave of L2 and links" if asked is not None and _in_doubt(asked) else ""
    least, most = (rounded_quantity(seconds, "time", 4) for seconds in (low, high))
    return f"likely {least} to {most}, by the optimistic and the pessimistic constants{sets}{links}{more}" if low < high else ""


def _in_doubt(asked: Instance) -> bool:
    return isinstance(asked.hardware, Hardware) and bool(asked.hardware.doubts)
