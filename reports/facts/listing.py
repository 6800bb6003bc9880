"""Joint designs of a question in boxes with their least values, as a certificate that `solvers/standalone.py` reads.

Where a device is bought, every combination of a plan's choices is a box of its own. Where a chip is designed, boxes hold hardware points
with all plans: one point each where all designs were enumerated, else those of the tree of cuts, gone down once more.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, cast

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Mask
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.plan import Plan, Plans, table
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.boxes import Boxes as Places
from crossopt.instances.codesign.boxes import Grid, Ranges, corners, full_box, grid, parted
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.plan_choices import listed_as
from crossopt.instances.codesign.question import saved_single_scale
from crossopt.instances.codesign.space import AnyPlans, plan_blocks
from crossopt.instances.errors import RefusedError
from crossopt.solvers.codesign.answer import DesignResult, candidate_in
from crossopt.solvers.codesign.boxes.branch import Node, parts_of, root_node, split_nodes
from crossopt.solvers.codesign.objective import joined, rows_of, values_of
from crossopt.solvers.proofs import Boxes, Enumerated

FORMAT = 1
_FIGURES = ("step_time", "energy")
"""Objectives that an evaluation of one design tells as they are."""
_MOST = 1_000_000
"""Boxes that are listed."""
_AT_ONCE = 1 << 22
"""Values that are held."""
_DERIVED = "data"
"""It follows from the other degrees, so that it is no choice of its own."""
_UNITS = {"area": " m^2", "power": " W", "stacks": ""}
"""Of hardware choices, by the last word of their names."""


def certificate_of_designs(result: DesignResult) -> dict[str, Any]:
    """All boxes as a tree; refused where that would not be the whole question."""
    instance, answer = saved_single_scale(result.question), result.answer
    if not isinstance(instance, Instance) or not isinstance(instance.workload, Transformer):
        raise RefusedError("--as certificate lists the designs of one transformer on one number of devices (this is another question)")
    if instance.objective not in _FIGURES or "files" in result.question or instance.ceilings:
        raise RefusedError(f"designs are listed by {' or '.join(_FIGURES)}, of a question that names no file of one's own")
    if answer is None or not isinstance(result.proof, Enumerated | Boxes):
        raise RefusedError("this result has no design, or its bound is only solver-reported")
    space, options = grid(instance), {name: values for name, values in instance.plan_options if name != _DERIVED}
    chosen = candidate_in(instance, answer.design)
    hardware = answer.design.hardware.choices
    chips = [(name, values.tolist()) for name, values in zip(space.names, space.options, strict=True)]
    return {
        "kind": "codesign",
        "format": FORMAT,
        "question": result.question["text"],
        "settings": result.question["settings"],
        "choices": [[name, [_option_text(name, value) for value in values]] for name, values in (*chips, *options.items())],
        "answer": [
            *(values.index(hardware[name]) for name, values in chips),
            *(int(listed_as(instance, table([cast("Plan", chosen.plan)]), name)[0].argmax()) for name in options),
        ],
        "figure": instance.objective,
        "bound": result.bound,
        "tree": _tree_of(instance, space, options, result),
    }


def _option_text(name: str, value: object) -> str:
    """An option as `--set` takes it; one of `recompute` with the layers that its name counts, which are a key of their own."""
    if name == "recompute" and str(value).startswith("full"):
        mode, _, layers = str(value).partition("-")
        return f"{mode}; recompute_layers={layers or 0}"
    if isinstance(value, float):
        return f"{value if name.rpartition('_')[2] in ('area', 'power') else int(value)}{_UNITS[name.rpartition('_')[2]]}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _tree_of(instance: Instance, space: Grid, options: dict[str, tuple[Any, ...]], result: DesignResult) -> Any:  # noqa: ANN401
    if isinstance(result.proof, Boxes):
        return _cut(instance, space, iter(result.proof.tree.cuts), float(result.bound or 0))
    bought = isinstance(instance.hardware, Hardware)
    shape = tuple(len(values) for values in options.values()) if bought else space.sizes
    if np.prod(shape, dtype=float) > _MOST:
        raise RefusedError(f"at most {_MOST:,} boxes are listed, and here are more (solve it by --engine boxes)")
    return _tree(_plan_values(instance, space, options, shape) if bought else _chip_values(instance, space), 0)


def _plan_values(instance: Instance, space: Grid, options: dict[str, tuple[Any, ...]], shape: tuple[int, ...]) -> Array:
    """What each combination is worth; infinite where it is no plan or breaks a limit."""
    found, chip = np.full(shape, np.inf), corners(instance, space, full_box(space))
    for plans in plan_blocks(instance):
        if isinstance(plans, Plans) and len(plans):
            values = values_of(instance, chip, plans)[:, 0]
            for rows, places in _listings([listed_as(instance, plans, name) for name in options]):
                found[places] = values[rows]
    return found


def _listings(listed: Sequence[Mask]) -> Iterator[tuple[Ints, tuple[Ints, ...]]]:
    """Rows of plans with the combination of options under which each is listed; more than one where options come to the same."""
    for ways in product(*(range(int(columns.sum(axis=1).max())) for columns in listed)):
        each = [np.cumsum(columns, axis=1) == way + 1 for columns, way in zip(listed, ways, strict=True)]
        sound = [(columns_listed & columns) for columns_listed, columns in zip(each, listed, strict=True)]
        rows = np.flatnonzero(np.all([columns_listed.any(axis=1) for columns_listed in sound], axis=0))
        yield rows, tuple(columns_listed[rows].argmax(axis=1) for columns_listed in sound)


def _chip_values(instance: Instance, space: Grid) -> Array:
    """The least of all plans at each hardware point."""
    places = np.indices(space.sizes).reshape(len(space.sizes), -1).T
    found = np.full(len(places), np.inf)
    for plans in plan_blocks(instance):
        step = max(_AT_ONCE // max(len(plans), 1), 1)
        for start in range(0, len(places), step) if len(plans) else ():
            some = places[start : start + step]
            least = values_of(instance, corners(instance, space, Places(some, some)), plans).min(axis=0)
            found[start : start + step] = np.minimum(found[start : start + step], least)
    return found.reshape(space.sizes)


def _tree(values: Array, choice: int) -> Any:  # noqa: ANN401 - a number, None, or a list of the like
    """A value, None where there is no design, or a choice with a tree for each of its options."""
    if not np.isfinite(values).any():
        return None
    if not values.ndim:
        return float(values)
    return [choice, *([option, _tree(part, choice + 1)] for option, part in enumerate(values))]


def _cut(instance: Instance, space: Grid, cuts: Iterator[Ranges | None], bound: float) -> Any:  # noqa: ANN401
    """The tree of cuts with the least value in each of its ends: of every plan that of the smallest box that bounded it."""
    root = root_node(instance)
    chip, plans, least = corners(instance, space, root.box), list[AnyPlans](), np.inf
    for block in plan_blocks(instance):
        values = values_of(instance, chip, block)[:, 0]
        plans.append(rows_of(block, np.flatnonzero(values < bound)))
        least = min(least, values[values >= bound].min(initial=np.inf))

    def down(node: Node, plans: AnyPlans, least: float) -> Any:  # noqa: ANN401
        keeps = next(cuts)
        if keeps is None:
            if len(plans):
                raise RefusedError("the tree of cuts does not prove the bound (see `crossopt check`)")
            return None if np.isinf(least) else float(least)
        [split] = split_nodes(instance, space, [node], [keeps])
        table = values_of(instance, corners(instance, space, parts_of([split])[0]), plans)
        raw, trees = parted(node.box, keeps), []
        for number, (part, values) in enumerate(zip(split.parts, table.T, strict=True)):
            lower = min(least, values[values >= bound].min(initial=np.inf))
            tree = down(part, rows_of(plans, np.flatnonzero(values < bound)), lower)
            trees.append(_within(raw.at(number), part.box, tree))
        return _joined(node.box, keeps, trees)

    return _within(full_box(space), root.box, down(root, joined(plans), least))


def _within(box: Places, smaller: Places, tree: Any) -> Any:  # noqa: ANN401
    """A box as a tree where designs are in the smaller one only."""
    differ = (box.low[0] != smaller.low[0]) | (box.high[0] != smaller.high[0])
    for choice in np.flatnonzero(differ).tolist():
        (low, high), (first, last) = ((int(places.low[0, choice]), int(places.high[0, choice])) for places in (box, smaller))
        tree = [choice, *([[first - 1, None]] if low < first else []), [last, tree], *([[high, None]] if last < high else [])]
    return tree


def _joined(box: Places, keeps: Ranges, trees: list[Any]) -> Any:  # noqa: ANN401
    """What a box keeps, and what that takes off it choice after choice, in the order of `parted`, as one tree."""
    low, high, rest, cuts = box.low[0].tolist(), box.high[0].tolist(), iter(trees[1:]), []
    for choice, first, last in keeps:
        below = [[first - 1, next(rest)]] if low[choice] < first else []
        cuts.append((choice, below, last, [[high[choice], next(rest)]] if last < high[choice] else []))
        low[choice], high[choice] = first, last
    tree = trees[0]
    for choice, below, last, above in reversed(cuts):
        tree = [choice, *below, [last, tree], *above]
    return tree
