"""What a placement is in a few words, for a reader's first look: which layers each device runs, or which device is the busiest and why."""

import re
from collections.abc import Sequence
from typing import Final

from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.reports.sheets.amounts import several
from crossopt.solvers.placement.answer import Placement, devices_in
from crossopt.solvers.placement.judge import Load

_LAYER: Final = re.compile(r"layer (\d+)\b")
_FEW: Final = 16
"""Devices whose layers are told."""


def cut_words(question: PlacementQuestion, placement: Placement, loads: Sequence[Load]) -> str:
    """The cut of stages where the graph has layers, else the busiest device; nothing where a latency is asked."""
    if question.problem == "latency":
        return ""
    held = _held(question, placement) if question.contiguity == "stages" else []
    if held and len(held) <= _FEW:
        twice = " A layer named twice is cut." if any(one[0] == other[1] for one, other in zip(held[1:], held, strict=False)) else ""
        return f"Layers: {', '.join(words for _, _, words in held)}.{twice}"
    busiest = max(loads, key=lambda load: load.total)
    runs = f"{several(busiest.nodes, 'operator')}, {busiest.compute:.5g} ms of work and {busiest.transfer:.5g} ms of transfers"
    return f"The busiest is {busiest.device}: {runs}."


def _held(question: PlacementQuestion, placement: Placement) -> list[tuple[int, int, str]]:
    """Of each device its first and last layer and both in words, in the order of the layers; nothing where any device has none."""
    found: dict[int, set[int]] = {}
    for name, device in zip(question.graph.names, devices_in(question, placement.devices).tolist(), strict=True):
        layer = _LAYER.match(name)
        found.setdefault(device, set()).update([int(layer[1])] if layer else [])
    if not all(found.values()):
        return []
    ends = sorted((min(layers), max(layers), device) for device, layers in found.items())
    return [(first, last, f"{_span(first, last)} on {question.devices[device]}") for first, last, device in ends]


def _span(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first}-{last}"
