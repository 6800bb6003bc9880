"""Seconds of a collective inside one node that a library launches alone: two protocols, one for small messages and one for large ones.

    time = start + steps * step + bytes on the wire / (link's bandwidth * rate * share of n ranks)          below the switch, and above it

with n - 1 steps and (n - 1) / n of the message on the wire, twice both for an all-reduce (Thakur, Rabenseifner, Gropp 2005). Each protocol
has a start and a rate of its own: those for small messages wait less and send flags with the data (LL, LL128 and Simple of NVIDIA/nccl,
src/graph/tuning.cc). Two ranks do not keep all links busy: the share of n ranks is 1 - pairing / n.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.hardware import Hardware

OPERATIONS: Final = {"all_gather": 1.0, "reduce_scatter": 1.0, "alltoall": 1.0, "all_reduce": 2.0}
"""How often each sends its share of the message."""


@dataclass(frozen=True, slots=True)
class CollectiveConstants:
    """What is fitted of one operation of a library on one device."""

    step: Real
    """Seconds of each step."""
    start: Real
    """Seconds of a small message before its first step."""
    rate: Real
    """Of the link's bandwidth, for small messages."""
    large_start: Real
    large_rate: Real
    """The same of large ones."""
    pairing: Real
    """What two ranks miss of the bandwidth, twice."""
    switch: Real
    """Bytes from which a message is large."""


@dataclass(frozen=True, slots=True)
class CollectiveCall:
    """One message of `size` bytes, as nccl-tests counts them: whole, for a gather the gathered one."""

    ranks: Real
    size: Real
    sends: float
    """How often it goes around, as in OPERATIONS."""


def collective_time(call: CollectiveCall, constants: CollectiveConstants, hardware: Hardware) -> Real:
    """Seconds on the device's innermost links."""
    steps = call.sends * (call.ranks - 1.0)
    wire = steps / call.ranks * call.size / (hardware.links[0].bandwidth * (1.0 - constants.pairing / call.ranks))
    small, large = constants.start + wire / constants.rate, constants.large_start + wire / constants.large_rate
    return steps * constants.step + np.where(np.less(call.size, constants.switch), small, large)
