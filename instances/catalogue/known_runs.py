"""Public runs with which the model was compared, by training stack and device: how many, how far off, on how many devices at the most.

Where there is none of a stack on a device, its constants were taken over, and what that costs is known where runs came later.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from crossopt.instances.catalogue.stack_sets import USUAL


@dataclass(frozen=True, slots=True)
class Measured:
    """Public runs of one stack on one device."""

    runs: int
    error: float
    """Of |predicted / measured - 1|, the mean over the runs."""
    most: float | None
    devices: int
    """Of the largest run."""
    fitted: bool = False
    """Whether constants were fitted to them, so that others may be further off."""
    of: str = ""
    """Whose they are, where not the stack's alone."""


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
"""All of dense networks."""
_MEGATRON_ELSEWHERE: Final = 0.177
"""V100 by the constants of the A100, 15 runs; H100, B200 and GB200 were 6.3, 6.4 and 12.8 % off so."""
_OTHERS_ELSEWHERE: Final = 0.17
"""FSDP on H100 by constants that know of Megatron's kernels alone, 79 runs; torchtitan's on H200 by those of H100 are 1.7 % off."""
BEYOND: Final = -0.25
"""What is predicted over what was measured, less 1, of FSDP on 2,048 H100 beside its 128: throughput falls by 16 % by the model, and by
37 % in fact (Fernandez et al. 2024, arXiv 2411.13055), 0.63 / 0.84 - 1."""


def elsewhere(stack: str) -> float:
    """The most by which the model was off, in the mean over runs, of a stack on a device whose constants were taken over."""
    return _MEGATRON_ELSEWHERE if stack == USUAL else _OTHERS_ELSEWHERE


def span_of(stack: str, device: str) -> int | None:
    """Devices of the largest run of a stack on a device, or on any where there is none; None where the stack has none at all."""
    if (found := MEASURED.get((stack, device))) is not None:
        return found.devices
    return max((one.devices for (of, _), one in MEASURED.items() if of == stack), default=None)


def is_inside(stack: str, device: str, devices: int) -> bool:
    """Whether runs of that stack on that device are known, and some on as many devices."""
    found = MEASURED.get((stack or USUAL, device))
    return found is not None and devices <= found.devices
