"""The largest shares of the peak that were published for A100, by the number of devices: what an answer above them should be read with.

68.0 %   on up to 128     Llama 2 7B, foundation-model-stack/fms-fsdp
65.3 %   on up to 256     GPT 175B with attention and feed-forward parts side by side and windows, MegaScale (Jiang et al. 2024,
                          arXiv 2402.15627, tables 2 and 3), whose Megatron-LM has 53.0 % there
56.3 %   on more          GPT 1T on 512, Korthikanti et al. 2022 (arXiv 2205.05198), table 5
"""

from collections.abc import Mapping
from typing import Any, Final

from crossopt.instances.codesign.instance import FreeHardware, Instance

SHARES: Final = (
    (128, 0.680, "Llama 2 7B, IBM fms-fsdp"),
    (256, 0.653, "GPT 175B with parallel blocks and windows, MegaScale, Jiang et al. 2024, Tables 2 and 3"),
    (10**9, 0.563, "GPT 1T, Korthikanti et al. 2022, Table 5"),
)
"""Up to so many devices the largest share, and whose."""
_A100: Final = ("a100-40g", "a100-80g")


def published(devices: int) -> tuple[float, str]:
    """The largest share for so many devices, and whose it is."""
    return next((share, words) for most, share, words in SHARES if devices <= most)


def above_words(instance: Instance, evaluation: Mapping[str, Any]) -> str:
    """That an answer claims more than was ever published for as many A100; nothing of other classes of devices, or where it does not."""
    own = instance.hardware
    device = own.like if isinstance(own, FreeHardware) else own.name
    share, words = published(instance.cluster.devices)
    if device not in _A100 or not evaluation["utilisation"] > share:
        return ""
    return f"{evaluation['utilisation']:.1%} of the peak is more than the {share:.1%} that was published at most for as many A100 ({words})"
