"""Plans that would not fit if the framework took twice what is counted for it: that count, and the key that counts more."""

from typing import Final

from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.files.units import format_quantity

_LEAST: Final = 4.0 * 2**30


def fullness_words(instance: Instance, used: float, available: float) -> str:
    """A sentence where twice the usual reserve has no room and the question does not say itself what is reserved; nothing elsewhere."""
    usual = float(instance.hardware.reserved_memory)
    reserve = max(2.0 * usual, _LEAST)
    if instance.reserve_given or not available - (reserve - usual) < used <= available:
        return ""
    counted, more = format_quantity(usual, "bytes"), format_quantity(reserve, "bytes")
    routed = isinstance(instance.workload, Transformer) and instance.workload.experts > 1
    routes = ", or its routers send more to a device than `workload.capacity_factor` says" if routed else ""
    return (
        f"memory is {used / available:.1%} full, with {counted} counted for the framework, its buffers and fragmentation: where yours "
        f"takes more{routes}, the plan does not fit (`cluster.reserved_memory: {more}` keeps so much out of every plan)"
    )
