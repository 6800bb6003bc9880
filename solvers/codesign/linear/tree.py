"""The relaxation of an integer model, and a small branch and bound on it to look at: what fractions it takes, how branching closes the gap.

    take the node with the least bound; choose the 0/1 variable that is nearest to one half; fix it at 1 and at 0; solve both relaxations;
    where all choices are whole, solve the rest of the model as it stands

until no bound is below the best solution. Bounds are those of linear programs in floating point, of which a millionth is given away before
they are rounded up to integers: the word of HiGHS. Solutions are whole, and held against every row of the model.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from time import monotonic
from typing import Literal

from crossopt.formulation.model import Model, Values, Variable
from crossopt.solvers.answer import Progress, Watch
from crossopt.solvers.backends.milp import Fractional, Relaxation, sound

Status = Literal["branched", "no solution", "not better", "solved", "open"]
Fixed = Mapping[Variable, int]
Whole = Callable[[Fixed, float], tuple[Values, int] | None]
"""The best solution with these variables fixed and its objective, in so many seconds; None where there is none."""

_WHOLE = 1e-6
"""How near to an integer a figure is one."""


@dataclass(slots=True)
class Node:
    """A relaxation: the node it comes from, what was fixed there last, and what became of it."""

    parent: int | None
    choice: tuple[Variable, int] | None
    fixed: Fixed
    relaxed: Fractional
    bound: int | None
    """No solution here is below this; None where there is none at all."""
    status: Status = "open"
    value: int | None = None
    """Of the solution that was found here."""

    @property
    def fractions(self) -> list[Variable]:
        """The choices that are not whole."""
        return [variable for variable, figure in self.relaxed.figures.items() if variable.choice and _WHOLE < figure < 1.0 - _WHOLE]


@dataclass(slots=True)
class Explored:
    """The tree, and what it proves."""

    nodes: list[Node] = field(default_factory=list)
    values: Values | None = None
    value: int | None = None
    steps: list[tuple[int, int | None, int | None]] = field(default_factory=list)
    """After so many nodes: what no solution is below, and the best one known."""
    stopped: str = "complete"

    @property
    def bound(self) -> int | None:
        """No solution is below this; None where there is none, or where not even the root was solved."""
        bounds = [node.bound for node in self.nodes if node.status == "open" and node.bound is not None]
        return min([*bounds, *([] if self.value is None else [self.value])], default=None)


@dataclass(slots=True)
class _Walk:
    """A tree that is grown, and what waits to be looked at."""

    relax: Relaxation
    whole: Whole
    deadline: float
    found: Explored = field(default_factory=Explored)
    heap: list[tuple[int, int]] = field(default_factory=list)

    @property
    def left(self) -> float:
        return max(self.deadline - monotonic(), 0.0)

    @property
    def going(self) -> bool:
        return bool(self.heap) and (self.found.value is None or self.heap[0][0] < self.found.value)


def explore(model: Model, relax: Relaxation, whole: Whole, watch: Watch, deadline: float, most: int) -> Explored:
    """Branch until nothing is left, at most so many nodes, or until the deadline or Ctrl-C. Only models that minimise."""
    if not model.minimise:
        raise ValueError("only models that minimise are explored")
    walk = _Walk(relax, whole, deadline)
    found = walk.found
    try:
        _add(walk, None, None, {})
        while walk.going and len(found.nodes) < most:
            _look(walk, heappop(walk.heap)[1])
            found.steps.append((len(found.nodes), found.bound, found.value))
            watch(Progress(f"{len(found.nodes):,} nodes, {len(walk.heap):,} open", _float(found.value), _float(found.bound)))
        found.stopped = "node limit" if walk.going else "complete"
    except TimeoutError:
        found.stopped = "time limit"
    except KeyboardInterrupt:
        found.stopped = "interrupted"
    for node in found.nodes:
        if node.status == "open" and node.bound is not None and found.value is not None and node.bound >= found.value:
            node.status = "not better"
    return found


def _add(walk: _Walk, parent: int | None, choice: tuple[Variable, int] | None, fixed: Fixed) -> None:
    """Solve the relaxation of a new node."""
    relaxed = walk.relax(fixed, walk.left)
    bound = None if relaxed.value is None else sound(1, relaxed.value)
    walk.found.nodes.append(Node(parent, choice, fixed, relaxed, bound, "no solution" if bound is None else "open"))
    if bound is not None:
        heappush(walk.heap, (bound, len(walk.found.nodes) - 1))


def _look(walk: _Walk, number: int) -> None:
    """Branch on a node, or solve it; where time is up on the way it stays open."""
    node = walk.found.nodes[number]
    fractions = node.fractions
    if not fractions:
        _solved(walk.found, node, walk.whole({**node.fixed, **_choices(node)}, walk.left))
        return
    variable = min(fractions, key=lambda one: abs(node.relaxed.figures[one] - 0.5))
    for value in (1, 0):
        _add(walk, number, (variable, value), {**node.fixed, variable: value})
    node.status = "branched"


def _choices(node: Node) -> Fixed:
    """The choices of a node without fractions, as integers."""
    return {variable: round(figure) for variable, figure in node.relaxed.figures.items() if variable.choice}


def _solved(found: Explored, node: Node, solution: tuple[Values, int] | None) -> None:
    """Take in what the rest of the model says where all choices are whole."""
    if solution is None:
        node.status, node.bound = "no solution", None
        return
    node.status, node.value = "solved", solution[1]
    if found.value is None or solution[1] < found.value:
        found.values, found.value = solution


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)
