"""What a level that is no switch makes of an exchange along it.

Of its n units a group has m, whose devices send S bytes in a gather or in an all-to-all, and have B bytes per second to all neighbours
together: B / 2 to each of two in a ring, B / (n - 1) to each of the others where all are joined (Won et al. 2024, LIBRA,
arXiv:2109.11762). Bytes are counted on every link that they pass, also through devices of other groups:

    shape             gather: steps     bytes            all-to-all: steps    bytes                   of B    message, of B
    switch            m - 1             (m - 1)/m S      one for each rank    (m - 1)/m S             1       1
    rails             m - 1             (m - 1)/m S      m - 1                (m - 1)/m S             1       1
    ring              h floor(m/2)      h (m - 1)/m S    h floor(m/2)         h floor(m^2/4)/m S      1       1/2, on h links
    part of a ring    c (m - 1)         c (m - 1)/m S    c (m - 1)            c (m^2 - 1)/(3 m) S     1/2, or what its middle leaves    1/2
    fully connected   1                 (m - 1)/m S      1                    (m - 1)/m S             (m - 1)/(n - 1)    1/(n - 1)

A gather goes both ways around a ring, half of the bytes each way (Austin et al. 2025, How to Scale Your Model, "Sharded matrices":
V / W, and a quarter of it for an all-to-all, which is floor(m^2/4)/m of the bytes for large m); where all are joined each sends straight
to each (the direct algorithm of ASTRA-sim, Won et al. 2023, arXiv:2303.14006). With h = n / m groups around one ring each has its share of
it: any of them can go around all of it, whichever devices are its own. A group that reaches over at most half of a ring
(`exchanges.spread`) stays on that part, a line, whose links it shares with the others there, c in all: itself alone where its ranks are
neighbours. In a gather each link carries (m - 1)/m S of each; of an all-to-all the middle one carries floor(m^2/4)/m S, and a mean one
(m + 1)/6 S, so that it takes as long as around a ring with 2 c groups. A message from the last rank to the first one goes back over
c (m - 1) links: all have so many steps. Where each rank sends one to the next, these go one way and that goes the other, so that each link
has c S, and a mean message passes 2 c (m - 1) / m of them. Of a group of which no more is known than its ranks, a message goes n / 2 links.

On all but switches a device reaches only those with its own place inside. What an all-to-all sends beyond first goes to that place
inside, so that levels inside carry all of it (rail-only networks: Wang et al. 2024, arXiv:2307.12169; on GPUs NCCL's PXN).
"""

from typing import Literal

import numpy as np

from crossopt.crossflow.arrays import Mask, Real
from crossopt.crossflow.hardware import Link

Kind = Literal["gather", "exchange", "handed", "message"]
"""A gather or a scatter; an all-to-all; its last leg, of bytes that are in their unit already; or one message to a neighbour."""


def steps_along(link: Link, kind: Kind, steps: Real, ranks: Real, reach: Real) -> Real:
    """Steps of an exchange that takes so many over a switch."""
    busy = np.minimum(ranks - 1.0, 1.0)
    if link.shape == "ring":
        around = (steps if kind == "message" else _passes(steps, kind, ranks) * np.floor(ranks / 2.0)) * _groups(link, ranks)
        along = (steps if kind == "message" else _passes(steps, kind, ranks)) * _between(link, ranks, reach) * (ranks - 1.0)
        return np.where(_is_line(link, reach), along, around)
    if kind == "message" or (link.shape == "rails" and kind == "gather"):
        return steps
    return _passes(steps, kind, ranks) * (busy if link.shape == "fully_connected" else ranks - 1.0)


def bytes_along(link: Link, kind: Kind, size: Real, ranks: Real, reach: Real) -> Real:
    """Bytes over all links of a device, where it sends so many over a switch. Where nothing is known of how ranks lie, two messages
    may come to one device, one of them on its way to another place inside."""
    if link.shape != "ring":
        return size * np.where(np.isinf(reach), 2.0, 1.0) if kind == "message" else size
    all_to_all = kind in ("exchange", "handed")
    around = np.floor(ranks * ranks / 4.0) / np.maximum(ranks - 1.0, 1.0) if all_to_all else 1.0
    along = (ranks + 1.0) / 3.0 if all_to_all else 2.0 * _sent_back(ranks) if kind == "message" else 1.0
    return size * np.where(_is_line(link, reach), along * _between(link, ranks, reach), around * _groups(link, ranks))


def width_of(link: Link, kind: Kind, ranks: Real, reach: Real) -> Real:
    """The share of a device's bandwidth on the level that a group of so many units uses."""
    if link.shape == "fully_connected":
        return np.minimum(np.maximum(ranks - 1.0, 1.0) / (link.size - 1.0), 1.0) if kind != "message" else 1.0 / (link.size - 1.0)
    if link.shape != "ring":
        return 1.0
    if kind == "message":
        return np.where(_is_line(link, reach), _sent_back(ranks), 0.5 if link.size > 2 else 1.0)
    along = 0.5 if kind == "gather" else np.maximum(ranks * ranks - 1.0, 3.0) / (6.0 * np.maximum(np.floor(ranks * ranks / 4.0), 1.0))
    return np.where(_is_line(link, reach), along, 1.0)


def _sent_back(ranks: Real) -> Real:
    """Half of the links that messages of a group on a line pass, from its last rank back to its first, too, over its ranks."""
    return np.maximum(ranks - 1.0, 1.0) / np.maximum(ranks, 2.0)


def _passes(steps: Real, kind: Kind, ranks: Real) -> Real:
    """How often a group gathers: twice for an all-reduce."""
    return steps / np.maximum(ranks - 1.0, 1.0) if kind == "gather" else 1.0


def _groups(link: Link, ranks: Real) -> Real:
    """Groups that share a ring; one where ranks lie so that they are counted on more units than there are."""
    return np.maximum(link.size / ranks, 1.0)


def _between(link: Link, ranks: Real, reach: Real) -> Real:
    """Links between neighbours on a line, and so groups that share each of them."""
    return np.where(_is_line(link, reach), reach, 1.0) / ranks


def _is_line(link: Link, reach: Real) -> Mask:
    """Whether a group reaches over so little of a ring that going all around it takes no less than going back and forth there."""
    return np.less_equal(2.0 * reach, link.size)
