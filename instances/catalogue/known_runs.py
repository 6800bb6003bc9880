"""Errors on public runs by training stack and device: number of runs, mean error, and the largest number of devices.

Where there is none of a stack on a device, its constants were taken over, and what that costs is known where runs came later.

Sets of constants are fitted to runs of many plans together, so that their range says little of plans of which few runs are known or none.
One rule for all stacks: where a stack has `FEW` runs or more with these ranks and bits, the range of the constants stands, which is to hold
nine in ten; where it has fewer, a range is no narrower than these were off by; and where it has none, than constants were in the mean that
had been taken over (`elsewhere`), or than all runs with one kind of these ranks were off by where all of them took longer than predicted
(`short_of`): the model lacks something then that such ranks cost.
"""

from collections.abc import Mapping
from typing import Final

from crossopt.crossflow.kernels.kernel_plan import KernelPlan
from crossopt.crossflow.plan import Plan
from crossopt.crossflow.records import dataclass
from crossopt.crossflow.workload import NARROW, Precision, Transformer
from crossopt.instances.catalogue.entries import USUAL


@dataclass(frozen=True, slots=True)
class Measured:
    """Public runs of one stack on one device."""

    runs: int
    error: float
    """Mean over the runs of |predicted / measured - 1|."""
    most: float | None
    devices: int
    """Devices of the largest run."""
    fitted: bool = False
    """Whether the constants were fitted to these runs, so that other runs may have larger errors."""
    of: str = ""
    """Source of the runs, where it is not the stack's own."""


_PYTORCH: Final = "llm-foundry, torchtitan and fms-fsdp"
MEASURED: Final[Mapping[tuple[str, str], Measured]] = {
    ("megatron-core", "a100-80g"): Measured(16, 0.078, 0.121, 1024),  # README of Megatron-LM 2020, Korthikanti et al. 2022
    ("megatron-core", "v100-32g"): Measured(4, 0.103, 0.279, 8),  # README of Megatron-LM 2020
    ("megatron-core", "h100-sxm"): Measured(77, 0.063, 0.249, 2048),  # NeMo 24.07, Megatron-Bridge, DGX Cloud recipes
    ("megatron-core", "b200"): Measured(9, 0.064, 0.123, 512),  # Megatron-Bridge, NeMo 25.02
    ("megatron-core", "gb200-nvl72"): Measured(53, 0.054, 0.162, 512, fitted=True),  # Megatron-Bridge, DGX Cloud recipes
    ("torchtitan", "h100-sxm"): Measured(24, 0.104, None, 256, fitted=True),
    ("torchtitan", "h200"): Measured(2, 0.017, 0.025, 64),
    ("fsdp", "h100-sxm"): Measured(79, 0.058, None, 512, fitted=True, of=_PYTORCH),
    ("fsdp", "a100-80g"): Measured(48, 0.03, 0.257, 128, fitted=True),  # llm-foundry, and fms-fsdp
    ("fsdp", "a100-40g"): Measured(56, 0.038, 0.224, 128, fitted=True),  # llm-foundry
}
"""All runs of dense networks."""
_MEGATRON_ELSEWHERE: Final = 0.177
"""V100 by the constants of the A100, 15 runs; H100, B200 and GB200 were 6.3, 6.4 and 12.8 % off so."""
_OTHERS_ELSEWHERE: Final = 0.17
"""FSDP on H100 by constants that know of Megatron's kernels alone, 79 runs; torchtitan's on H200 by those of H100 are 1.7 % off."""
BEYOND: Final = -0.25
"""What is predicted over what was measured, less 1, of FSDP on 2,048 H100 beside its 128: throughput falls by 16 % by the model, and by
37 % in fact (Fernandez et al. 2024, arXiv 2411.13055), 0.63 / 0.84 - 1."""


def elsewhere(stack: str) -> float:
    """Largest mean error over runs of a stack on a device with constants taken over."""
    return _MEGATRON_ELSEWHERE if stack == USUAL else _OTHERS_ELSEWHERE


def span_of(stack: str, device: str) -> int | None:
    """Devices of the largest run of a stack on a device, or on any if there is none; None if the stack has no runs."""
    if (found := MEASURED.get((stack, device))) is not None:
        return found.devices
    return max((runs.devices for (of, _), runs in MEASURED.items() if of == stack), default=None)


def is_inside(stack: str, device: str, devices: int) -> bool:
    """Whether runs of this stack on this device are known, including one on at least this many devices."""
    found = MEASURED.get((stack or USUAL, device))
    return found is not None and devices <= found.devices


# --- runs of like plans -------------------------------------------------------------------------------------------------------------------

FEW: Final = 20
_MANY: Final[tuple[float, ...]] = ()
SEEN: Final[Mapping[str, Mapping[str, tuple[float, ...]]]] = {
    "fsdp": {"data ranks in 16 bits": _MANY, "data ranks in 8 bits": (-0.014, -0.002, -0.002, -0.002, 0.004, 0.009, 0.035)},
    "megatron-core": {
        "context ranks in 16 bits": (0.078, 0.078, 0.079, 0.081, 0.084),
        "context ranks in 8 bits": (-0.071, -0.059, -0.041, 0.072, 0.079, 0.085, 0.093, 0.097),
        "data ranks in 16 bits": _MANY,
        "data ranks in 8 bits": _MANY,
        "pipeline ranks in 16 bits": _MANY,
        "pipeline ranks in 8 bits": (-0.068, -0.06, -0.011, 0.087, 0.196, 0.249),
        "tensor and pipeline ranks in 16 bits": _MANY,
        "tensor and pipeline ranks in 4 bits": (-0.162, -0.143, -0.086, -0.079, -0.065, -0.059, -0.006, 0.02, 0.036),
        "tensor and pipeline ranks in 8 bits": _MANY,
        "tensor ranks in 16 bits": _MANY,
        "tensor ranks in 8 bits": (-0.079, -0.072, -0.063),
        "tensor, context and pipeline ranks in 16 bits": (
            -0.092,
            -0.039,
            -0.039,
            -0.037,
            0.01,
            0.01,
            0.011,
            0.011,
            0.011,
            0.012,
            0.013,
            0.013,
            0.029,
        ),
        "tensor, context and pipeline ranks in 8 bits": (
            -0.113,
            -0.108,
            -0.088,
            -0.08,
            -0.071,
            -0.068,
            -0.062,
            -0.045,
            -0.041,
            -0.036,
            -0.035,
            0.009,
            0.012,
            0.015,
            0.016,
            0.018,
            0.025,
            0.026,
            0.027,
        ),
    },
    "torchtitan": {
        "context ranks in 8 bits": (-0.315, -0.281, -0.031),
        "data ranks in 16 bits": (0.005, 0.011, 0.034, 0.035),
        "data ranks in 8 bits": (-0.08, -0.034, -0.015, 0.008, 0.025),
        "tensor and pipeline ranks in 8 bits": (-0.044, -0.035, -0.024),
        "tensor ranks in 16 bits": (-0.094, -0.056, 0.011, 0.013),
        "tensor ranks in 8 bits": (-0.184, -0.152, -0.053, -0.04, -0.017, 0.019),
        "tensor ranks in 8 bits with scales of rows": (-0.329, -0.264, -0.233, -0.181),
        "tensor, context and pipeline ranks in 8 bits": (-0.311, -0.2, -0.193),
    },
}
"""Signed errors (predicted / measured - 1) on dense networks by stack, sorted; stacks with many runs are left out."""
_MEGATRON: Final = "megatron"
_KINDS: Final = ("tensor", "context", "pipeline")
_BITS: Final[Mapping[Precision, int]] = {"fp4": 4, "fp8": 8, "bf16": 16, "fp16": 16, "fp32": 32}


def features(model: Transformer, plan: Plan | KernelPlan) -> str:
    """Kinds of parallelism and precision in words, such as `tensor and pipeline ranks in 8 bits`."""
    *most, last = [name for name in _KINDS if getattr(plan, name, 1) > 1] or ["data"]
    ranks = f"{', '.join(most)} and {last}" if most else last
    rows = " with scales of rows" if model.precision in NARROW and model.scaling == "rows" else ""
    return f"{ranks} ranks in {_BITS[model.precision]} bits{rows}"


def known_errors(stack: str, plans: str) -> tuple[float, ...] | None:
    """Signed errors of a stack's runs with such plans, all Megatrons together; empty if there are many runs, None if there is none."""
    return SEEN.get(USUAL if not stack or stack.startswith(_MEGATRON) else stack, {}).get(plans)


def _ranks(plans: str) -> frozenset[str]:
    """The kinds of ranks named by `features`."""
    return frozenset(_KINDS) & frozenset(plans.partition(" ranks")[0].replace(",", "").split())


def short_of(stack: str, plans: str) -> tuple[str, tuple[float, ...]]:
    """A kind of ranks in `plans` with which every run of the stack, in any precision, took longer than predicted; and their sorted
    errors.

    Beside each set of other ranks, one run must be off by more than the error of constants taken over. Without such a kind, an empty
    string and an empty tuple.
    """
    name = USUAL if not stack or stack.startswith(_MEGATRON) else stack
    for kind in (ranks for ranks in _KINDS if ranks in _ranks(plans)):
        beside: dict[frozenset[str], list[float]] = {}
        for setting, errors in SEEN.get(name, {}).items():
            if kind in _ranks(setting):
                beside.setdefault(_ranks(setting), []).extend(errors or (0.0,))  # of many some took less time
        every = sorted(error for errors in beside.values() for error in errors)
        if every and every[-1] < 0.0 and all(min(errors) < -elsewhere(name) for errors in beside.values()):
            return kind, tuple(every)
    return "", ()


def underestimated_runs(stack: str, plans: str) -> tuple[float, ...]:
    """Sorted signed errors of runs with exactly such ranks and precision; empty unless all took longer than predicted.

    One of them must be off by more than the error of constants taken over.
    """
    errors = known_errors(stack, plans) or ()
    off = elsewhere(USUAL if not stack or stack.startswith(_MEGATRON) else stack)
    return tuple(sorted(errors)) if errors and max(errors) < 0.0 and min(errors) < -off else ()


def first_kind(plans: str) -> str:
    """The first kind of ranks named by `features`; empty for data ranks."""
    return next((kind for kind in _KINDS if kind in _ranks(plans)), "")


def errors_like(stack: str, plans: str, own: float | None = None) -> tuple[float, ...]:
    """Signed errors that a range must cover at least. For a known run, whose error is `own`, these are the errors of the others.

    Empty if many runs of such plans are known. Without other known runs: the errors of `short_of`, else minus and plus the error of
    constants taken over.
    """
    known = known_errors(stack, plans)
    if known == _MANY:
        return _MANY
    others = [*(known or ())]
    if own is not None and round(own, 3) in others:
        others.remove(round(own, 3))
    off = elsewhere(USUAL if not stack or stack.startswith(_MEGATRON) else stack)
    return tuple(others) or short_of(stack, plans)[1] or (-off, off)
