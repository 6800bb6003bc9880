"""Plans that fill a device's memory to the brim: what is counted for the framework, and the key that counts more."""

from typing import Final

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.files.units import format_quantity

NEARLY: Final = 0.98
"""The share of the memory above which a plan has little room for what its framework takes beyond the usual."""
_LEAST: Final = 4.0 * 2**30


def fullness_words(instance: Instance, used: float, available: float) -> str:
    """A sentence where memory is nearly full and the question does not say itself what is reserved; nothing elsewhere."""
    if instance.reserve_given or not NEARLY * available < used <= available:
        return ""
    usual = float(instance.hardware.reserved_memory)
    counted, more = format_quantity(usual, "bytes"), format_quantity(max(2.0 * usual, _LEAST), "bytes")
    return (
        f"memory is {used / available:.1%} full, with {counted} counted for the framework, its buffers and fragmentation: where yours "
        f"takes more, the plan does not fit (`cluster.reserved_memory: {more}` keeps so much out of every plan)"
    )
