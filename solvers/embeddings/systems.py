"""The judge and the proof of nodes within a budget and strategies of dense layers, chosen with the plan of the tables.

No choice of a box is better than tables on the largest and fastest parts of the box, beside the least time and memory of its dense layers.
A tree of boxes is walked again; each of its leaves has a bound on such a plain question about tables, or exceeds the budget.
"""

from dataclasses import replace
from math import inf

from crossopt.formulation.embeddings import whole
from crossopt.instances.embeddings import systems
from crossopt.instances.embeddings.question import EmbeddingsQuestion
from crossopt.solvers.answer import Result, Verdict, Watch
from crossopt.solvers.embeddings import judge as tables
from crossopt.solvers.embeddings.judge import EmbeddingFigures, EmbeddingPlan
from crossopt.solvers.family import Proved
from crossopt.solvers.proofs import PricedCounts, PricedSystems, SystemLeaf, UnverifiedBound

BY_SYSTEMS = "boxes of choices with prices of memory"


def judge(question: EmbeddingsQuestion, answer: EmbeddingPlan) -> Verdict[EmbeddingFigures]:
    """Value, broken limits and figures; a ValueError where something is chosen that the question does not offer."""
    system = answer.system
    if not question.has_system:
        if system is not None:
            raise ValueError("the question offers nothing but plans of tables")
        return tables.judge(question, answer)
    if system is None:
        raise ValueError("the question asks for more than a plan of tables")
    parts = systems.chosen_parts(question, system)
    found = tables.judge(systems.fixed_at(question, system), answer)
    costs = systems.dense_costs(question, parts, (system.bottom, system.top))
    time = 0.0 if costs is None else sum(cost.time for cost in costs)
    price = float(systems.node_price(question, parts))
    over = () if systems.within_budget(question, parts) else (f"a node costs {price:,.2f} USD, more than the budget",)
    details = replace(found.details, system=systems.SystemFigures(price, *(costs or ())))
    return Verdict(found.value + time, (*over, *found.violations), details)


def full_box(space: systems.Space) -> systems.Box:
    """All choices."""
    return tuple((0, size - 1) for size in space.sizes)


def least_of(question: EmbeddingsQuestion, space: systems.Space, box: systems.Box) -> tuple[EmbeddingsQuestion, float]:
    """The plain question that no choice of a box is better than, and the least time of dense layers."""
    parts, (low, high) = systems.best_parts(space, box), box[-1]
    figures = [systems.dense_figures(question, parts, pair) for pair in space.pairs[low : high + 1]]
    return systems.at(question, parts, min(memory for _, memory in figures)), min(time for time, _ in figures)


def halves(box: systems.Box, axis: int, last: int) -> tuple[systems.Box, systems.Box]:
    """Both parts of a box, of which the first ends with this place of an axis."""
    low, high = box[axis]
    return tuple(
        tuple(ends if index == axis else own for index, own in enumerate(box))  # type: ignore[return-value]
        for ends in ((low, last), (last + 1, high))
    )


def prove(question: EmbeddingsQuestion, saved: Result[EmbeddingPlan, EmbeddingFigures], watch: Watch) -> Proved:
    """Walk the tree of boxes again, and prove the bound of each leaf."""
    proof = saved.proof
    if not question.has_system:
        return tables.prove(question, saved, watch)
    if isinstance(proof, UnverifiedBound):
        return Proved((f"the bound is reported by {proof.by}, not proved again",), unverified=True)
    if not isinstance(proof, PricedSystems):
        return Proved((), ("proof: bounds on nodes and dense layers are proved by boxes",))
    claimed = inf if saved.bound is None else float(saved.bound)
    try:
        least = _least_leaf(question, saved, proof, watch)
    except ValueError as error:
        return Proved((), (f"proof: {error}",))
    faults = () if claimed <= least else (f"bound: the boxes show {least!r} ms, the result claims {claimed!r}",)
    return Proved((f"the bounds of {len(proof.leaves):,} boxes of choices were evaluated again",), faults, by=BY_SYSTEMS)


def _least_leaf(question: EmbeddingsQuestion, saved: Result[EmbeddingPlan, EmbeddingFigures], proof: PricedSystems, watch: Watch) -> float:
    """The least bound of all leaves of the tree; a ValueError where they do not cover all choices."""
    space = systems.space_of(question)

    def cut_box(box: systems.Box, cut: tuple[int, int]) -> tuple[systems.Box, systems.Box]:
        axis, last = cut
        if not 0 <= axis <= len(systems.AXES) or not box[axis][0] <= last < box[axis][1]:
            raise ValueError("a cut is outside of its box")
        return halves(box, axis, last)

    parts = tables.leaves_of(full_box(space), proof.cuts, proof.leaves, cut_box)
    return min((_leaf_bound(question, saved, space, box, leaf, watch) for box, leaf in parts), default=inf)


def _leaf_bound(
    question: EmbeddingsQuestion,
    saved: Result[EmbeddingPlan, EmbeddingFigures],
    space: systems.Space,
    box: systems.Box,
    leaf: SystemLeaf,
    watch: Watch,
) -> float:
    """What no choice of a box is below; a ValueError where that is not shown."""
    within = systems.tightened(question, space, box)
    if leaf.proof is None:
        if within is not None:
            raise ValueError("a box is left out that the budget allows")
        return inf
    if within is None:
        raise ValueError("a box exceeds the budget, and has a bound")
    plain, time = least_of(question, space, within)
    shown = tables.prove(plain, replace(saved, proof=leaf.proof, bound=leaf.bound), watch)
    if shown.refused or shown.by != leaf.proof.by:
        raise ValueError((*shown.refused, f"a box is bounded by {shown.by}, not by {leaf.proof.by}")[0])
    return inf if leaf.bound is None else leaf.bound + time


def reasons_of(question: EmbeddingsQuestion, proof: PricedSystems) -> tuple[str, ...]:
    """Why there is no plan: no node within the budget, or tables on the largest one of each part."""
    space, node = systems.space_of(question), question.file.node
    if systems.tightened(question, space, full_box(space)) is None and node is not None and node.budget is not None:
        least = float(systems.node_price(question, [own[0] for own in space.axes]))
        return (f"the cheapest node costs {least:,.2f} USD, more than the budget of {node.budget:,.2f} USD",)
    if len(proof.leaves) > 1:
        return ("no node within the budget, of any parts, has room for all tables",)
    plain, _ = least_of(question, space, full_box(space))
    first, *others = tables.reasons_of(plain, whole(plain))
    beside = "on the largest parts of each kind: " if node is not None else "beside the dense layers: "
    return (f"{beside}{first}", *others)


def sentences_of(question: EmbeddingsQuestion, saved: Result[EmbeddingPlan, EmbeddingFigures]) -> tuple[str, ...]:
    """Why nothing is feasible."""
    if isinstance(saved.proof, PricedSystems):
        return reasons_of(question, saved.proof)
    return (tables.fewest_reason(question),) if isinstance(saved.proof, PricedCounts) else tables.reasons_of(question, whole(question))
