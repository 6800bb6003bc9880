"""The command `explain`: the question solved, what clashes or binds, what near designs have in common, and what a forced choice costs."""

from time import monotonic

from instances.instance import Instance
from reports.explain import answer_text, clash_text, forced_text
from reports.near import near_text
from solvers.branch import Spend
from solvers.certify import Limits
from solvers.engines import boxes
from solvers.explain import clash, relief
from solvers.near import near_optimum
from solvers.result import Result
from solvers.watching import Watch


def explained(instance: Instance, gap: float | None, limits: Limits, watch: Watch) -> tuple[Result, str]:
    """The answer, and why it is what it is; designs within a gap are told of where one is asked for."""
    result = boxes(instance, limits, watch)
    if result.value is None:
        no_design = f"{instance.name}: no design found in time\n"
        return result, clash_text(instance.name, clash(instance, watch)) if result.proved else no_design
    text = answer_text(result, relief(instance, watch, Spend(monotonic() + limits.seconds)))
    if gap is not None:
        text += near_text(near_optimum(instance, result, gap, watch, monotonic() + limits.seconds), gap)
    return result, text


def explained_with(other: Instance, forced: tuple[str, ...], result: Result, limits: Limits, watch: Watch) -> str:
    """What the best design of the question with forced choices costs beside the answer."""
    best = boxes(other, limits, watch)
    return forced_text(forced, result, best, None if best.value is not None else clash(other, watch))
