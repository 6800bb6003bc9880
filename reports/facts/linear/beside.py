"""What a report shows of a result that an integer model proved: each term of the step as the model's tangent has it, and as it is.

A tangent bounds a plan's step time from below by a sum with one table for each part of the chip (`codesign.separable`). It is taken at
the chip of the design, as the engines take it; so are the terms that it is the sum of. Beside the design, chips that keep the budgets are
drawn at random, always the same ones: how far from the truth the one tangent is elsewhere says why the engines need several.
"""

from dataclasses import fields
from typing import Any, Final

import numpy as np

from crossopt.crossflow.arrays import Array, Whole
from crossopt.crossflow.hardware import Hardware, take
from crossopt.crossflow.pipeline import Terms, step_time
from crossopt.crossflow.plan import Plan, table
from crossopt.crossflow.transformer import parts_of, terms
from crossopt.crossflow.workload import Transformer
from crossopt.formulation.codesign.choices import Chip, chip_of
from crossopt.formulation.codesign.tangent import at, bound_of, terms_at
from crossopt.instances.codesign.boxes import Boxes, corners, grid, places_of, whole
from crossopt.instances.codesign.instance import FreeHardware, Instance
from crossopt.reports.facts.linear.terms import STEP, Linearized, Term
from crossopt.solvers.codesign.answer import ChosenDesign, candidate_in
from crossopt.solvers.proofs import Relaxation

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
        chip = chip_of(instance, space, whole(space))
    except ValueError:
        return None
    here = places_of(space, chosen.point)
    drawn = np.random.default_rng(0).integers(np.array(space.sizes), size=(DRAWN, len(space.sizes)))
    others = np.unique(drawn, axis=0)
    places = np.concatenate([here[None], others[(others != here).any(axis=1)]])
    found = corners(instance, space, Boxes(places, places))
    literals, known = _literals(chip, places)
    kept = np.flatnonzero(found.alive & known)
    if not len(kept) or kept[0] != 0:
        return None
    literals = {name: rows[kept] for name, rows in literals.items()}
    point = {name: int(rows[0]) for name, rows in literals.items()}
    bounds = terms_at(model, instance.cluster, chip, table([plan]), point)
    full = _full(instance, model, take(found.hardware, kept), plan)
    return _compared(bounds, full, literals, point, relaxation)


def _literals(chip: Chip, places: Whole) -> tuple[dict[str, Whole], Any]:
    """The literals of each chip, and whether it has one for each part."""
    found, known = dict[str, Whole](), np.ones(len(places), bool)
    for part in chip.parts:
        same = (part.places[None] == places[:, list(part.choices)][:, None]).all(axis=2)
        found[part.name] = same.argmax(axis=1)
        known &= same.any(axis=1)
    return found, known


def _full(instance: Instance, model: Transformer, hardware: Hardware, plan: Plan) -> Terms:
    """The terms of the full model on each of the chips."""
    plans = table([plan])
    return terms(model, hardware, plans, parts_of(model, hardware, instance.cluster, plans))


def _compared(bounds: Terms, full: Terms, literals: dict[str, Whole], point: dict[str, int], relaxation: Relaxation) -> Linearized:
    count = len(next(iter(literals.values())))

    def linear(value: Any) -> Array:  # noqa: ANN401 - what numpy's functions make of bounds and numbers
        bound = bound_of(value, point)
        tables = (np.broadcast_to(one.reshape(-1, one.shape[-1])[-1], (one.shape[-1],)) for one in bound.terms.values())
        sums = sum((at(one, literals[name]) for name, one in zip(bound.terms, tables, strict=True)), np.zeros(count))
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
