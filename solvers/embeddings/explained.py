"""Why tables fit nowhere, and what more memory, faster links or a budget would be worth: the question again, with one thing changed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Final, get_args

from crossopt.crossflow.embeddings import Bandwidths, Sharding
from crossopt.crossflow.records import dataclass
from crossopt.instances.embeddings.question import Choosable, EmbeddingsQuestion, capacity_of
from crossopt.instances.embeddings.systems import AXES
from crossopt.solvers.answer import Limits, Result, Watch
from crossopt.solvers.checking import solve_and_verify
from crossopt.solvers.embeddings.family import FAMILY
from crossopt.solvers.embeddings.judge import EmbeddingFigures, EmbeddingPlan
from crossopt.solvers.family import solve

Found = Result[EmbeddingPlan, EmbeddingFigures]
Change = Callable[[EmbeddingsQuestion], EmbeddingsQuestion]
_GIB: Final = float(2**30)
_MORE, _HALF_AGAIN = 8.0 * _GIB, 1.5
_ENDLESS: Final = 2.0**60
_ANY: Final = 1e9
"""A gap with which any plan is good enough."""


@dataclass(frozen=True, slots=True)
class Changed:
    """The answer with one thing changed."""

    change: str
    value: float | None
    bound: float | None
    """None where nothing was proved."""


@dataclass(frozen=True, slots=True)
class Clash:
    """Limits and choices that leave no plan together, and of which each one opened alone leaves one."""

    members: tuple[str, ...]
    smallest: bool
    """Whether no fewer clash; else some were not decided in time."""


def solved(question: EmbeddingsQuestion, limits: Limits, watch: Watch) -> Found:
    """The question answered."""
    return solve_and_verify(FAMILY, question, "auto", limits, watch)


# What a little more is worth.


def with_memory(question: EmbeddingsQuestion, tier: int, size: Callable[[float], float]) -> EmbeddingsQuestion:
    """Devices with another size of a tier."""
    hbm, ddr, ssd = (size(own) if index == tier else own for index, own in enumerate(question.memory))
    memory = (hbm, ddr, ssd)
    return replace(question, memory=memory, capacity=capacity_of(question.file.cluster, memory))


def with_rate(question: EmbeddingsQuestion, name: str, factor: float) -> EmbeddingsQuestion:
    """Devices with another bandwidth."""
    rates = question.group.bandwidths
    faster = Bandwidths(**{field: getattr(rates, field) * (factor if field == name else 1.0) for field in Bandwidths.__slots__})
    return replace(question, group=replace(question.group, bandwidths=faster))


def changes_of(question: EmbeddingsQuestion) -> Iterator[tuple[str, bool, EmbeddingsQuestion]]:
    """Questions that differ in one thing, and whether every plan stays one that is no slower."""
    free = {name for name in AXES if question.file.node is not None and getattr(question.file.node, name)}
    for tier, name in enumerate(("hbm", "ddr")):
        if name not in free and (tier == 0 or {"fused_uvm", "fused_uvm_caching"} & set(question.file.choices.kernel)):
            yield f"8 GiB more {name.upper()} a device", True, with_memory(question, tier, lambda own: own + _MORE)
    rates = (
        ("hbm", "hbm", "HBM bandwidth"),
        ("ddr", "host", "bandwidth to host memory"),
        ("intra_node", "intra", "bandwidth within nodes"),
    )
    for axis, field, text in (*rates, ("inter_node", "inter", "bandwidth between nodes")):
        if axis not in free and (question.nodes > 1 or field != "inter"):
            yield f"half as much {text} again", True, with_rate(question, field, _HALF_AGAIN)
    node, dense, file = question.file.node, question.file.dense, question.file
    if node is not None and node.budget is not None:
        yield "a tenth more budget", True, replace(question, file=replace(file, node=replace(node, budget=1.1 * node.budget)))
    if dense is not None and not dense.tied and len(dense.strategies) > 1:
        yield "one strategy for both stacks", False, replace(question, file=replace(file, dense=replace(dense, tied=True)))
        for strategy in dense.strategies:
            alone = replace(dense, strategies=(strategy,))
            yield f"{strategy} alone for dense layers", False, replace(question, file=replace(file, dense=alone))
    elif dense is not None and dense.tied:
        yield "a strategy for each stack", True, replace(question, file=replace(file, dense=replace(dense, tied=False)))
    for sharding in question.file.choices.sharding if len(question.file.choices.sharding) > 1 else ():
        tied = replace(question, choices=replace(question.choices, sharding=(sharding,)))
        if all(tied.options):
            yield f"{sharding} for all tables", False, tied


def changed(question: EmbeddingsQuestion, best: Found, limits: Limits, watch: Watch) -> Iterator[Changed]:
    """The answer of each changed question; where every plan stays one, it is no worse than the best one."""
    for name, stays, other in changes_of(question):
        found = solved(other, limits, watch)
        value = found.value
        if stays and best.value is not None and best.answer is not None:
            own = FAMILY.judge(other, best.answer)
            value = min(float(own.value), best.value if value is None else value) if own.accepted else value
        yield Changed(name, None if value is None else float(value), None if found.bound is None else float(found.bound))


# Which limits and choices clash.


def _opened(question: EmbeddingsQuestion) -> Iterator[tuple[str, Change]]:
    """Limits and choices, each with how it is opened."""
    for tier, name in enumerate(("HBM", "DDR", "SSD")):
        yield f"{name} of a device", lambda other, tier=tier: _roomy(other, tier)  # type: ignore[misc]
    choices = question.file.choices
    if len(choices.sharding) < len(get_args(Sharding)):
        yield (
            f"choices.sharding: {', '.join(choices.sharding)}",
            lambda other: _offering(other, other.choices.narrowest, sharding=get_args(Sharding)),
        )
    if len(choices.kernel) < len(get_args(Choosable)):
        yield (
            f"choices.kernel: {', '.join(choices.kernel)}",
            lambda other: _offering(other, other.choices.narrowest, kernel=get_args(Choosable)),
        )
    if choices.narrowest > 1 and {"column", "table-column", "grid"} & set(choices.sharding):
        yield f"choices.narrowest: {choices.narrowest}", lambda other: _offering(other, 1)
    if any(table.sharding or table.kernel for table in question.tables):
        yield (
            "what single tables may take",
            lambda other: replace(other, tables=tuple(replace(table, sharding=(), kernel=()) for table in other.tables)),
        )
    if question.file.node is not None and question.file.node.budget is not None:
        yield "node.budget", lambda other: replace(other, file=replace(other.file, node=replace(other.file.node, budget=None)))  # type: ignore[type-var]


def _roomy(question: EmbeddingsQuestion, tier: int) -> EmbeddingsQuestion:
    """A tier without a limit."""
    node, name = question.file.node, AXES[tier]
    if node is not None and getattr(node, name):
        parts = tuple(replace(part, size=_ENDLESS) for part in getattr(node, name))
        roomy: Any = {name: parts}
        question = replace(question, file=replace(question.file, node=replace(node, **roomy)))
    return with_memory(question, tier, lambda own: _ENDLESS)


def _offering(
    question: EmbeddingsQuestion, narrowest: int, sharding: Sequence[Sharding] = (), kernel: Sequence[Choosable] = ()
) -> EmbeddingsQuestion:
    """The question with other choices for every table; empty ones stay."""
    own = question.choices
    other = replace(own, narrowest=narrowest, sharding=tuple(sharding) or own.sharding, kernel=tuple(kernel) or own.kernel)
    return replace(question, choices=other)


def clash(question: EmbeddingsQuestion, limits: Limits, watch: Watch) -> Clash:
    """A smallest set of limits and choices of a question without a plan."""
    opened = dict(_opened(question))
    quick = replace(limits, gap=_ANY)

    def stands(members: tuple[str, ...]) -> str:
        """The status with these alone in force."""
        other = question
        for name, change in opened.items():
            other = other if name in members else change(other)
        return solve(FAMILY, other, "auto", quick, watch).status

    core, decided = list[str](), True
    for name in opened:
        status = stands(tuple(other for other in opened if other != name))
        core += [name] if status != "INFEASIBLE" else []
        decided &= status != "UNKNOWN"
    others = [name for name in opened if name not in core]
    for size in range(len(others) + 1):
        for more in combinations(others, size):
            members = tuple(name for name in opened if name in core or name in more)
            status = stands(members)
            if status == "INFEASIBLE":
                return Clash(members, decided)
            decided &= status != "UNKNOWN"
    return Clash(tuple(opened), smallest=False)


def enough_memory(question: EmbeddingsQuestion, limits: Limits, watch: Watch) -> float | None:
    """Bytes of HBM of a device with which a plan was found, within a hundredth; None where none was, or HBM is chosen."""
    if question.file.node is not None and question.file.node.hbm:
        return None
    low, high, quick = question.memory[0], max(question.memory[0], _GIB / 1024), replace(limits, gap=_ANY)
    for _ in range(24):
        if solve(FAMILY, with_memory(question, 0, lambda own, size=high: size), "auto", quick, watch).value is not None:  # type: ignore[misc]
            break
        low, high = high, 2.0 * high
    else:
        return None
    while high > 1.01 * low:
        middle = 0.5 * (low + high)
        fits = solve(FAMILY, with_memory(question, 0, lambda own, size=middle: size), "auto", quick, watch).value is not None  # type: ignore[misc]
        low, high = (low, middle) if fits else (middle, high)
    return high
