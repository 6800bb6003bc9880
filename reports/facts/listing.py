"""Every design of a question about a device that is bought, with its value, as a certificate that `solvers/standalone.py` reads."""

from typing import Any

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.plan import Plans, code
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.boxes import corners, grid, whole
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import asked_in
from crossopt.instances.codesign.space import plan_blocks
from crossopt.instances.errors import RefusedError
from crossopt.solvers.codesign.answer import DesignResult, design_in, from_words
from crossopt.solvers.codesign.pricing import values_of
from crossopt.solvers.proofs import Boxes, Enumerated

FORMAT = 1
_FIGURES = ("step_time", "energy")
"""Objectives that an evaluation of one design tells as they are."""
_MOST = 1_000_000
"""Combinations that are listed."""
_DERIVED = "data"
"""It follows from the other degrees, so that it is no choice of its own."""


def certificate_of_designs(result: DesignResult) -> dict[str, Any]:
    """All combinations of choices as a tree, each with its value or none; refused where that would not be the whole question."""
    instance, design = asked_in(result.question), design_in(result) if result.answer else None
    if not isinstance(instance, Instance) or not isinstance(instance.hardware, Hardware) or not isinstance(instance.workload, Transformer):
        raise RefusedError(
            "designs are listed for one transformer on a device that is bought (--as certificate knows no other joint design)"
        )
    options = {name: values for name, values in instance.plan_options if name != _DERIVED}
    shape = tuple(len(values) for values in options.values())
    if np.prod(shape, dtype=float) > _MOST or instance.objective not in _FIGURES or "files" in result.question:
        raise RefusedError(f"at most {_MOST:,} combinations are listed, by {' or '.join(_FIGURES)}, of a question that names no own file")
    if design is None or not isinstance(result.proof, Enumerated | Boxes):
        raise RefusedError("there is no design in this result, or nothing but a word proves its bound")
    plan = from_words(instance, design).plan
    return {
        "kind": "codesign",
        "format": FORMAT,
        "question": result.question["text"],
        "settings": result.question["settings"],
        "choices": [[name, [_said(value) for value in values]] for name, values in options.items()],
        "answer": [values.index(getattr(plan, name)) for name, values in options.items()],
        "figure": instance.objective,
        "bound": result.bound,
        "tree": _tree(_values(instance, options, shape), 0),
    }


def _said(value: object) -> str:
    """An option as `--set` takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _values(instance: Instance, options: dict[str, tuple[Any, ...]], shape: tuple[int, ...]) -> Array:
    """What each combination is worth; infinite where it is no plan or breaks a limit."""
    found, space = np.full(shape, np.inf), grid(instance)
    chip = corners(instance, space, whole(space))
    for plans in plan_blocks(instance):
        if isinstance(plans, Plans) and len(plans):
            places = []
            for name, values in options.items():
                codes = [code(name, value) for value in values]
                order = np.argsort(codes)
                places.append(order[np.searchsorted(np.array(codes)[order], getattr(plans, name))])
            found[tuple(places)] = values_of(instance, chip, plans)[:, 0]
    return found


def _tree(values: Array, choice: int) -> Any:  # noqa: ANN401 - a number, None, or a list of the like
    """A value, None where there is no design, or a choice with a tree for each of its options."""
    if not np.isfinite(values).any():
        return None
    if not values.ndim:
        return float(values)
    return [choice, *([place, _tree(part, choice + 1)] for place, part in enumerate(values))]
