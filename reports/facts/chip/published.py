"""The largest shares of the peak that were published for a class of devices in 16 bits, by their number: what an answer above should be
read with.

A100    68.0 %   on up to 128     Llama 2 7B, foundation-model-stack/fms-fsdp
        65.3 %   on up to 256     GPT 175B with attention and feed-forward parts side by side and windows, MegaScale (Jiang et al. 2024,
                                  arXiv 2402.15627, tables 2 and 3), whose Megatron-LM has 53.0 % there
        56.3 %   on more          GPT 1T on 512, Korthikanti et al. 2022 (arXiv 2205.05198), table 5
H100    62.5 %   on up to 128     Llama 3.1 8B on 8, NVIDIA DGX Cloud benchmarking recipes, April 2025
        55.5 %   on more          Llama 3.1 405B on 512, the same
GB200   47.6 %   on any           Grok-1 on 512, the same of May 2025
"""

from typing import Final

from crossopt.instances.codesign.instance import FreeHardware, Instance

_RECIPES: Final = "NVIDIA DGX Cloud benchmarking recipes, 2025"
SHARES: Final = {
    "A100": (
        (128, 0.680, "Llama 2 7B, IBM fms-fsdp"),
        (256, 0.653, "GPT 175B with parallel blocks and windows, MegaScale, Jiang et al. 2024, Tables 2 and 3"),
        (10**9, 0.563, "GPT 1T, Korthikanti et al. 2022, Table 5"),
    ),
    "H100": ((128, 0.625, f"Llama 3.1 8B, {_RECIPES}"), (10**9, 0.555, f"Llama 3.1 405B, {_RECIPES}")),
    "GB200": ((10**9, 0.476, f"Grok-1, {_RECIPES}"),),
}
"""Up to so many devices of a class the largest share, and whose."""
_CLASSES: Final = {"a100-40g": "A100", "a100-80g": "A100", "h100-sxm": "H100", "h200": "H100", "b200": "GB200", "gb200-nvl72": "GB200"}
_WIDE: Final = ("bf16", "fp16")


def published(devices: int, of: str = "A100") -> tuple[float, str]:
    """The largest share for so many devices of a class, and whose it is."""
    return next((share, words) for most, share, words in SHARES[of] if devices <= most)


def above_words(instance: Instance, utilisation: float) -> str:
    """That an answer in 16 bits claims more than was ever published for as many devices of its class; nothing of other classes, or where it
    does not."""
    own = instance.hardware
    device = own.like if isinstance(own, FreeHardware) else own.name
    if device not in _CLASSES or instance.workload.precision not in _WIDE:
        return ""
    share, words = published(instance.cluster.devices, _CLASSES[device])
    told = f"{utilisation:.1%} of the peak is more than the {share:.1%} that was published at most for as many"
    return f"{told} {_CLASSES[device]} ({words})" if utilisation > share else ""
