"""What a result tells of its proof, as far as it can be held against the question without carrying the proof out: whose block it is, what
it counts, and what it says in words. Reports rely on this alone, and checks begin with it.
"""

from typing import TYPE_CHECKING

from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import combinations, hardware_points, plan_blocks
from crossopt.solvers.codesign.engines import proof_of_space, relaxation_proof, tree_proof
from crossopt.solvers.codesign.result import BY_SOLVER, Relaxation, Result, Space, Tree

if TYPE_CHECKING:
    from collections.abc import Sequence

Rules = tuple[tuple[str, bool], ...]

_FEW, _FEW_ONE_BY_ONE = 1 << 20, 1 << 14
"""Combinations of choices up to which plans are counted: together, and where they are made one by one."""


def block_faults(result: Result, instance: Instance) -> list[str]:
    """Blocks of other engines, missing ones, and what cannot be in those that are there."""
    says = result.proved or result.bound is not None
    foreign = [sentence for sentence, holds in _owners(result, says) if not holds]
    if foreign:
        return foreign
    rules: Rules = ()
    if result.space is not None:
        rules = _space_rules(result, result.space, instance, says)
    elif result.tree is not None:
        rules = _tree_rules(result, result.tree, instance)
    elif result.relaxation is not None:
        rules = _relaxation_rules(result, result.relaxation, instance)
    return [sentence for sentence, holds in rules if not holds]


def _owners(result: Result, says: bool) -> Rules:
    engine = result.engine
    exhaustive, boxes, solver = engine == "exhaustive", engine == "boxes", engine in BY_SOLVER
    return (
        (f"space: the engine {engine} does not count all designs", exhaustive or result.space is None),
        (f"tree: the engine {engine} cuts no boxes", boxes or result.tree is None),
        (f"relaxation: the engine {engine} solves none", solver or result.relaxation is None),
        ("a proof by enumeration needs its counts", not (exhaustive and says) or result.space is not None),
        ("a proof by boxes needs the tree of its cuts", not (boxes and says) or result.tree is not None),
        ("a bound by a solver needs the relaxation that it solved", not (solver and says) or result.relaxation is not None),
        (f"tree: the engine {engine} tells none without a bound", says or result.tree is None),
        (f"relaxation: the engine {engine} tells none without a bound", says or result.relaxation is None),
        (f"the engine {engine} finds no conflicts, the result tells some", exhaustive or not result.conflicts),
    )


def _space_rules(result: Result, space: Space, instance: Instance, says: bool) -> Rules:
    counts = (0, space.ties, space.within_1_percent, space.within_5_percent, space.feasible, space.designs)
    words = proof_of_space(space)
    return (
        *_designs_rules("space", space, instance, complete=says),
        (
            "space: such numbers of designs cannot be",
            list(counts) == sorted(counts) and (space.within_error or 0) in range(space.feasible + 1),
        ),
        ("space: such a number of chips that cannot be built cannot be", 0 <= space.unbuilt <= space.hardware_points),
        ("space: there are feasible designs where one was found, and only there", (space.feasible > 0) == (result.value is not None)),
        ("space: the design found is one of the best", (space.ties > 0) == (result.value is not None)),
        ("bound: enumeration has no bound but the best value", not says or result.bound == result.value),
        (f"proved_by: it is {words!r}, the result says another", not says or result.proved_by == words),
    )


def _tree_rules(result: Result, tree: Tree, instance: Instance) -> Rules:
    words = tree_proof(tree)
    return (
        *_designs_rules("tree", tree, instance, complete=True),
        ("tree: its boxes are not those of its cuts", tree.boxes == len(tree.cuts)),
        ("tree: such numbers of plans cannot be", _within(tree.plans, (tree.families, tree.promising))),
        (f"proved_by: it is {words!r}, the result says another", result.proved_by == words),
    )


def _relaxation_rules(result: Result, relaxation: Relaxation, instance: Instance) -> Rules:
    solver, words = relaxation.solver, relaxation_proof(relaxation)
    counts = (relaxation.rounds, relaxation.tangents, relaxation.plans)
    return (
        (f"engine: {result.engine} does not solve by {solver}", not solver or solver.startswith("cpsat") == (result.engine == "cpsat")),
        ("relaxation: such numbers cannot be", min(counts) >= 0 and relaxation.plans <= combinations(instance)),
        (f"proved_by: it is {words!r}, the result says another", result.proved_by == words),
    )


def _designs_rules(name: str, block: Space | Tree, instance: Instance, *, complete: bool) -> Rules:
    """Chips and plans, which are counted anew where they are few, and what they make together."""
    points, most = hardware_points(instance), plans_of(instance) if complete else None
    plans = combinations(instance) if most is None else most
    true = block.plans <= plans if most is None else block.plans == plans
    return (
        (f"{name}.hardware_points: it is {points}, the result says {block.hardware_points}", block.hardware_points == points),
        (f"{name}.plans: there are {plans:,}{' at most' * (most is None)}, the result says {block.plans:,}", block.plans >= 0 and true),
        (f"{name}.designs: {block.plans * points} follows, the result says {block.designs}", block.designs == block.plans * points),
    )


def plans_of(instance: Instance) -> int | None:
    """How many plans the question has, where that is quickly counted."""
    few = _FEW if isinstance(instance.workload, Transformer) else _FEW_ONE_BY_ONE
    return sum(len(block) for block in plan_blocks(instance)) if combinations(instance) <= few else None


def _within(most: int, counts: "Sequence[int]") -> bool:
    return all(0 <= count <= most for count in counts)
