"""What no stages can beat, without any search: no more than all devices work, and the largest layer is somewhere."""

from crossopt.instances.files.units import quoted
from crossopt.instances.stages.piper.graph import PiperQuestion

BY_SIZES, BY_WORK, BY_CUTS = "counting", "the work of all layers over all devices", "a dynamic program over all cuts"
"""What proofs are called."""
LEAST_GAP = 1e-9
"""Sums of times in floating point lose less than this: a smaller gap is none."""
_SURE = 1.0 - 1e-11
"""Sums of times are lowered by more than rounding can have raised them."""


def load_bound(question: PiperQuestion) -> float:
    """Device-seconds of all layers over the devices, or the largest layer on as many replicas as it can have; 0 where a layer has none."""
    if not all(question.graph.offers):
        return 0.0
    work = sum(min(tensor * one.time for tensor, options in offer.items() for one in options) for offer in question.graph.offers)
    largest = 0.0
    for offer in question.graph.offers:
        fitting = {tensor: [degree for degree in question.degrees if degree * tensor <= question.devices] for tensor in offer}
        times = [one.time / max(fitting[tensor]) for tensor, options in offer.items() if fitting[tensor] for one in options]
        largest = max(largest, min(times, default=0.0))
    return max(work / question.devices, largest) * _SURE


def too_large(question: PiperQuestion) -> tuple[str, ...]:
    """Why no stages can keep the limits, whatever the order of the layers; nothing where that is not plain."""
    graph = question.graph
    for row, offer in enumerate(graph.offers):
        least = min((one.stashed + one.fixed for options in offer.values() for one in options), default=None)
        words = f"node {quoted(str(graph.ids[row]))}"
        if least is None:
            return (f"{words} has no configuration left",)
        if least > question.memory:
            return (f"{words} needs {least:,} bytes of a device, which has {question.memory:,} (--memory)",)
        if min(offer) > question.devices:
            return (f"{words} is offered on {min(offer)} devices or more, and there are {question.devices} (--devices)",)
    least = sum(min(tensor * (one.stashed + one.fixed) for tensor, options in offer.items() for one in options) for offer in graph.offers)
    if least > question.memory * question.devices:
        words = f"{least:,} bytes in all do not fit {question.devices} devices of {question.memory:,}"
        return (f"{words}; at least {-(-least // question.devices):,} bytes each would be needed",)
    return ()
