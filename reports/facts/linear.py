"""A saved relaxation read back, and where its figures contradict each other: a page does not solve its linear programs again."""

from dataclasses import fields
from math import inf
from typing import Any, Final

import numpy as np

from crossopt.crossflow.arrays import Array, Ints
from crossopt.crossflow.hardware import Hardware, take
from crossopt.crossflow.pipeline import Terms, step_time
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.transformer import parts_of, terms
from crossopt.crossflow.workload import Transformer
from crossopt.formulation.codesign.choices import Chip, chip_of
from crossopt.formulation.codesign.tangent import at, bound_of, terms_at
from crossopt.instances.codesign.boxes import Boxes, corners, full_box, grid, option_indices
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.instances.files.dataclass_json import from_plain
from crossopt.reports.facts.uses import STEP, Linearized, Term
from crossopt.solvers.codesign.answer import ChosenDesign, candidate_in
from crossopt.solvers.codesign.linear.relaxation import Branch, Relaxed
from crossopt.solvers.proofs import Relaxation

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
    faults = [fault for index, node in enumerate(found.nodes) for fault in _node_faults(found, index, node)]
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


def _node_faults(found: Relaxed, index: int, node: Branch) -> list[str]:
    if (node.parent is None) != (index == 0) or (node.parent is not None and not 0 <= node.parent < index):
        return [f"nodes[{index}].parent: {node.parent} does not come before it"]
    above = None if node.parent is None else found.nodes[node.parent].bound
    faults = [] if node.status in _ENDED else [f"nodes[{index}].status: {node.status!r} is none"]
    if above is not None and node.bound is not None and node.bound < above * _ROUNDED:
        faults.append(f"nodes[{index}].bound: {node.bound!r} is below that of the node it comes from")
    if node.status == "branched" and not any(other.parent == index for other in found.nodes):
        faults.append(f"nodes[{index}].status: it was branched on, and no node comes from it")
    return faults


# What a report shows of a result that an integer model proved: each term of the step as the model's tangent has it, and as it is.
#
# A tangent bounds a plan's step time from below by a sum with one table for each part of the chip (`codesign.separable`). It is taken at
# the chip of the design, as the engines take it; so are the terms that it is the sum of. Beside the design, chips that keep the budgets are
# drawn at random, always the same ones: how far from the truth the one tangent is elsewhere says why the engines need several.

DRAWN: Final = 400
"""Chips that are drawn, of which those count that keep the budgets."""
_NAMES: Final = {
    "forward": "forward pass of a layer",
    "backward": "backward pass of a layer",
    "embedding": "embedding",
    "head": "head",
    "transfer": "message to the next stage",
    "gather_forward": "weight gather, forward",
    "gather_backward": "weight gather, backward",
    "synchronize": "gradient exchange",
    "publish": "weight publication",
    "optimizer": "optimizer",
    "host_forward": "link to the host, forward",
    "host_backward": "link to the host, backward",
}
"""Terms of the step that depend on the chip; the first ones are for one microbatch."""


def linear_of(instance: Instance, design: ChosenDesign, relaxation: Relaxation) -> Linearized | None:
    """The terms of a checked design; None for other workloads than a transformer, and where the chip has too many literals."""
    chosen = candidate_in(instance, design)
    model, plan = instance.workload, chosen.plan
    if not isinstance(model, Transformer) or not isinstance(plan, Plan):
        return None
    if not isinstance(instance.hardware, FreeHardware) or not instance.hardware.options:
        return Linearized(relaxation.form, relaxation.rounds, relaxation.tangents, (), 0)
    space = grid(instance)
    try:
        chip = chip_of(instance, space, full_box(space))
    except ValueError:
        return None
    here = option_indices(space, chosen.point)
    sampled = np.random.default_rng(0).integers(np.array(space.sizes), size=(DRAWN, len(space.sizes)))
    others = np.unique(sampled, axis=0)
    places = np.concatenate([here[None], others[(others != here).any(axis=1)]])
    found = corners(instance, space, Boxes(places, places))
    literals, known = _literals(chip, places)
    usable = np.flatnonzero(found.alive & known)
    if not len(usable) or usable[0] != 0:
        return None
    literals = {name: rows[usable] for name, rows in literals.items()}
    point = {name: int(rows[0]) for name, rows in literals.items()}
    bounds = terms_at(model, instance.cluster, chip, table([plan]), point)
    full = _full(instance, model, take(found.hardware, usable), plan)
    return _compared(bounds, full, literals, point, relaxation)


def _literals(chip: Chip, places: Ints) -> tuple[dict[str, Ints], Any]:
    """The literals of each chip, and whether it has one for each part."""
    found, known = dict[str, Ints](), np.ones(len(places), bool)
    for part in chip.parts:
        same = (part.places[None] == places[:, list(part.choices)][:, None]).all(axis=2)
        found[part.name] = same.argmax(axis=1)
        known &= same.any(axis=1)
    return found, known


def _full(instance: Instance, model: Transformer, hardware: Hardware, plan: Plan) -> Terms:
    """The terms of the full model on each of the chips."""
    plans = table([plan])
    return terms(model, hardware, plans, parts_of(model, hardware, instance.cluster, plans))


def _compared(bounds: Terms, full: Terms, literals: dict[str, Ints], point: dict[str, int], relaxation: Relaxation) -> Linearized:
    count = len(next(iter(literals.values())))

    def linear(value: Any) -> Array:  # noqa: ANN401 - what numpy's functions make of bounds and numbers
        bound = bound_of(value, point)
        tables = (np.broadcast_to(terms.reshape(-1, terms.shape[-1])[-1], (terms.shape[-1],)) for terms in bound.terms.values())
        sums = sum((at(terms, literals[name]) for name, terms in zip(bound.terms, tables, strict=True)), np.zeros(count))
        return np.asarray(float(np.asarray(bound.constant).reshape(-1)[0]) + sums)

    def true(value: Any) -> Array:  # noqa: ANN401
        return np.broadcast_to(np.asarray(value, np.float64).reshape(-1), (count,))

    names = [field.name for field in fields(Terms) if field.name in _NAMES]
    pairs = [(_NAMES[name], linear(getattr(bounds, name)), true(getattr(full, name))) for name in names]
    pairs.append((STEP, linear(step_time(bounds)), true(step_time(full))))
    found = tuple(_term(name, low, exact) for name, low, exact in pairs if exact[0] > 0.0)
    _, low, exact = pairs[-1]
    pairs_of_steps = tuple(zip(low[1:].tolist(), exact[1:].tolist(), strict=True))
    return Linearized(relaxation.form, relaxation.rounds, relaxation.tangents, found, count - 1, pairs_of_steps)


def _term(name: str, low: Array, exact: Array) -> Term:
    worst = float((1.0 - low[1:] / exact[1:]).max()) if len(low) > 1 else None
    return Term(name, float(low[0]), float(exact[0]), worst)
