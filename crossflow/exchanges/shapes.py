"""What a level that is no switch makes of an exchange along it.

Of its n units a group has m, whose devices send S bytes in a gather or in an all-to-all, and have B bytes per second to all neighbours
together: B / 2 to each of two in a ring, B / (n - 1) to each of the others where all are joined (Won et al. 2024, LIBRA,
arXiv:2109.11762). Bytes are counted on every link that they pass, also through devices of other groups:

    shape             gather: steps     bytes            all-to-all: steps    bytes                   of B    message, of B
    switch            m - 1             (m - 1)/m S      one for each rank    (m - 1)/m S             1       1
    rails             m - 1             (m - 1)/m S      m - 1                (m - 1)/m S             1       1
    ring              h floor(m/2)      h (m - 1)/m S    h floor(m/2)         h floor(m^2/4)/m S      1       1/2, on h links
    fully connected   1                 (m - 1)/m S      1                    (m - 1)/m S             (m - 1)/(n - 1)    1/(n - 1)

A gather goes both ways around a ring, half of the bytes each way (Austin et al. 2025, How to Scale Your Model, "Sharded matrices":
V / W, and a quarter of it for an all-to-all, which is floor(m^2/4)/m of the bytes for large m); where all are joined each sends straight
to each (the direct algorithm of ASTRA-sim, Won et al. 2023, arXiv:2303.14006). With h = n / m groups around one ring each has its share of
it: any of them can go around all of it, whichever devices are its own. Neighbours that lie close together may do better where m < n / 2.

On all but switches a device reaches only those with its own place inside. What an all-to-all sends beyond first goes to that place
inside, so that levels inside carry all of it (rail-only networks: Wang et al. 2024, arXiv:2307.12169; on GPUs NCCL's PXN).
"""

from typing import Literal

import numpy as np

from crossopt.crossflow.arrays import Real
from crossopt.crossflow.hardware import Link

Kind = Literal["gather", "exchange", "handed", "message"]
"""A gather or a scatter; an all-to-all; its last leg, of bytes that are in their unit already; or one message to a neighbour."""


def steps_along(link: Link, kind: Kind, steps: Real, ranks: Real) -> Real:
    """Steps of an exchange that takes so many over a switch."""
    busy = np.minimum(ranks - 1.0, 1.0)
    if link.shape == "ring":
        return (steps if kind == "message" else _passes(steps, kind, ranks) * np.floor(ranks / 2.0)) * _groups(link, ranks)
    if kind == "message" or (link.shape == "rails" and kind == "gather"):
        return steps
    return _passes(steps, kind, ranks) * (busy if link.shape == "fully_connected" else ranks - 1.0)


def bytes_along(link: Link, kind: Kind, size: Real, ranks: Real) -> Real:
    """Bytes over all links of a device, where it sends so many over a switch."""
    if link.shape != "ring":
        return size
    far = np.floor(ranks * ranks / 4.0) / np.maximum(ranks - 1.0, 1.0) if kind in ("exchange", "handed") else 1.0
    return size * far * _groups(link, ranks)


def width_of(link: Link, kind: Kind, ranks: Real) -> Real:
    """The share of a device's bandwidth on the level that a group of so many units uses."""
    if link.shape == "fully_connected":
        return np.minimum(np.maximum(ranks - 1.0, 1.0) / (link.size - 1.0), 1.0) if kind != "message" else 1.0 / (link.size - 1.0)
    return 0.5 if link.shape == "ring" and kind == "message" and link.size > 2 else 1.0


def _passes(steps: Real, kind: Kind, ranks: Real) -> Real:
    """How often a group gathers: twice for an all-reduce."""
    return steps / np.maximum(ranks - 1.0, 1.0) if kind == "gather" else 1.0


def _groups(link: Link, ranks: Real) -> Real:
    """Groups that share a ring; one where ranks lie so that they are counted on more units than there are."""
    return np.maximum(link.size / ranks, 1.0)
