"""A saved relaxation read back, and where its figures contradict each other: nobody solves its linear programs again for a page."""

from dataclasses import fields
from math import inf
from typing import Any

from crossopt.instances.files.dataclass_json import from_plain
from crossopt.solvers.codesign.linear.relaxation import Branch, Relaxed

_ENDED = frozenset({"branched", "nothing below", "not better", "solved", "open"})
_ROUNDED = 1.0 - 1e-5
"""Bounds of linear programs in floating point fall from a node to its children by no more."""


def from_json(data: Any) -> Relaxed:  # noqa: ANN401 - whatever a file may hold
    """The relaxation in plain data; a ValueError in words if it is none."""
    names = {field.name for field in fields(Relaxed)}
    inside = {key: value for key, value in data.items() if key not in {"kind", "instance"}} if isinstance(data, dict) else data
    if isinstance(inside, dict) and "nodes" not in inside:
        raise ValueError(f"this is no relaxation: it lacks {', '.join(sorted(names - inside.keys()))}")
    found: Relaxed = from_plain(Relaxed, inside)
    return found


def relaxation_faults(found: Relaxed) -> list[str]:
    """What cannot be so."""
    faults = [fault for place, node in enumerate(found.nodes) for fault in _node_faults(found, place, node)]
    if found.optimum is not None and found.root is not None and found.root * _ROUNDED > found.optimum:
        faults.append(f"root: {found.root!r} is above the solution {found.optimum!r}")
    if found.bound > found.known:
        faults.append(f"bound: {found.bound!r} is above the best design known, {found.known!r}")
    if found.known != (best := min(found.start, inf if found.value is None else found.value)):
        faults.append(f"known: {found.known!r} is not the best design of the file, {best!r}")
    solved = [node.value for node in found.nodes if node.value is not None]
    if (min(solved) if solved else None) != found.optimum:
        faults.append("optimum: it is not the best solution of the tree")
    if any(not 0.0 <= share.share <= 1.0 + 1e-6 for share in found.shares):
        faults.append("shares: a share is none")
    return faults


def _node_faults(found: Relaxed, place: int, node: Branch) -> list[str]:
    if (node.parent is None) != (place == 0) or (node.parent is not None and not 0 <= node.parent < place):
        return [f"nodes[{place}].parent: {node.parent} does not come before it"]
    above = None if node.parent is None else found.nodes[node.parent].bound
    faults = [] if node.status in _ENDED else [f"nodes[{place}].status: {node.status!r} is none"]
    if above is not None and node.bound is not None and node.bound < above * _ROUNDED:
        faults.append(f"nodes[{place}].bound: {node.bound!r} is below that of the node it comes from")
    if node.status == "branched" and not any(other.parent == place for other in found.nodes):
        faults.append(f"nodes[{place}].status: it was branched on, and no node comes from it")
    return faults
