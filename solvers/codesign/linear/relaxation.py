"""The integer model of a question, its relaxation at the root, and how branching closes the gap, in the words and seconds of the question.

The model is the one in which the refinement loop ends, as `crossopt export --as lp` writes it: it chooses among the plans that may be as
good as the best design known (or a given share worse), and among all chips that prices leave. Its optimum is a bound; its solution is a
design that the full model prices anew. Where it has no solution there may be designs, but none below the best one known.
"""

from dataclasses import dataclass, replace
from math import inf
from time import monotonic
from typing import NamedTuple

from crossopt.crossflow.plan import plan_at
from crossopt.formulation.codesign.choices import Codesign
from crossopt.formulation.codesign.forms import FORMS
from crossopt.formulation.model import Linear, Model, Values, Variable, real
from crossopt.instances.codesign.boxes import grid, point_number
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import devices
from crossopt.instances.errors import SolverError
from crossopt.solvers.answer import Progress, Status, Watch
from crossopt.solvers.backends import Spend, backend
from crossopt.solvers.backends.milp import relaxation
from crossopt.solvers.codesign.answer import Candidate, design_of
from crossopt.solvers.codesign.judge import verify
from crossopt.solvers.codesign.linear.refine import LEAST_GAP, Refined, refine, refuse_others
from crossopt.solvers.codesign.linear.tree import Explored, Fixed, Node, explore

_NODES = 2_000
"""Relaxations that are solved at most."""
_REFINING = 0.6
"""Of the time that there is."""
_TAKEN = 1e-6
"""Shares of a choice below this are none."""


@dataclass(frozen=True, slots=True)
class Branch:
    """A node: what was chosen there, its bound in seconds, how many choices are fractions, and what became of it."""

    parent: int | None
    choice: str
    bound: float | None
    fractions: int
    status: str
    value: float | None


@dataclass(frozen=True, slots=True)
class Share:
    """What the root takes of a choice."""

    part: str
    choice: str
    share: float


@dataclass(frozen=True, slots=True)
class Relaxed:
    """The relaxation of a question and its tree, times in seconds."""

    name: str
    variables: int
    rows: int
    plans: int
    rounds: int
    refined: bool
    quantum: float
    solver: str
    shares: tuple[Share, ...]
    root: float | None
    """The optimum of the relaxation, in floating point; None where there was no time for it."""
    bound: float
    """No design is below this, by the word of HiGHS."""
    optimum: float | None
    """The best solution of the model that the tree found."""
    design: str
    value: float | None
    """What the full model says of the design of that solution."""
    start: float
    """The best design that the refinement found: the model was written for designs that are no worse."""
    known: float
    """The best design that is known in the end."""
    nodes: tuple[Branch, ...]
    steps: tuple[tuple[int, float | None, float | None], ...]
    """After so many nodes: bound and best solution."""
    stopped: str


class Untold(NamedTuple):
    """Why there is no model to relax."""

    status: Status
    why: str


def relaxed(instance: Instance, within: float, seconds: float, watch: Watch) -> Relaxed | Untold:
    """Refine the question, solve the relaxation of its model and branch."""
    refuse_others(instance, "relaxation of the milp")
    deadline = monotonic() + seconds
    found = refine(instance, backend("highs"), FORMS["strong"], LEAST_GAP, seconds * _REFINING, watch, within=within)
    if found.best is None and found.bound == inf:
        return Untold("INFEASIBLE", "no design keeps every limit; without --relaxation `explain` says which limits clash")
    if found.problem is None or found.value is None or found.bound is None:
        return Untold("UNKNOWN", without_model(found))
    model, quantum, start = found.problem.model(), found.problem.quantum, found.value

    def seen(progress: Progress) -> None:
        watch(Progress(progress.words, start, None if progress.bound is None else min(progress.bound * quantum, start)))

    tree = explore(model, relaxation(model), lambda fixed, left: _rest(model, fixed, left), seen, deadline, _NODES)
    return _told(instance, found, found.problem, tree)


def without_model(found: Refined) -> str:
    """What is known where time was up before a model was solved, and the remedy."""
    known = "no design is known" if found.value is None else f"the best design known takes {found.value:.6g} s"
    bound = "" if found.bound is None else f", and none is below {found.bound:.6g} s"
    return f"{found.stopped} before there was an integer model; {known}{bound} (a longer --time-limit has it written)"


def _rest(model: Model, fixed: Fixed, seconds: float) -> tuple[Values, int] | None:
    """The best solution with some variables fixed."""
    rows = tuple(Linear(f"fixed: {variable.name}", ((1, variable),), value, value) for variable, value in fixed.items())
    answer = backend("highs")(replace(model, constraints=(*model.constraints, *rows)), Spend(seconds))
    if answer.status == "INFEASIBLE":
        return None
    if answer.status != "OPTIMAL" or answer.values is None or answer.value is None:
        raise TimeoutError
    return answer.values, answer.value


def _told(instance: Instance, found: Refined, problem: Codesign, tree: Explored) -> Relaxed:
    quantum, model = problem.quantum, problem.model()
    root = tree.nodes[0].relaxed.value if tree.nodes else None
    bound = found.bound if tree.bound is None or found.bound is None else max(found.bound, real(tree.bound, quantum))
    if bound is None or found.value is None:
        raise SolverError("a model without a bound was branched on")
    design, value = ("", None) if tree.values is None else _judged(instance, problem, tree.values)
    return Relaxed(
        name=instance.name,
        variables=len(model.variables),
        rows=len(model.constraints),
        plans=found.plans,
        rounds=found.rounds,
        refined=found.stopped == "complete",
        quantum=quantum,
        solver=found.solver,
        shares=_shares(problem, tree.nodes[0]) if tree.nodes else (),
        root=None if root is None else root * quantum,
        bound=min(bound, found.value),
        optimum=_seconds(tree.value, quantum),
        design=design,
        value=value,
        start=found.value,
        known=min(found.value, inf if value is None else value),
        nodes=tuple(_branch(node, quantum) for node in tree.nodes),
        steps=tuple((count, _seconds(bound, quantum), _seconds(best, quantum)) for count, bound, best in tree.steps),
        stopped=tree.stopped,
    )


def _judged(instance: Instance, problem: Codesign, values: Values) -> tuple[str, float | None]:
    """The design of a solution in words, and the full model's word on it; none where such a chip cannot be built."""
    point, plan = problem.decoded(values)
    number = point_number(grid(instance), problem.chip.places(point))
    chosen = Candidate(number, plan_at(problem.plans, plan))
    chip = [f"{_words(part.literals[point[part.name]])}" for part in problem.chip.parts]
    if devices(instance, number, number + 1).unbuilt:
        return f"{'; '.join(chip)}: no chip that can be built", None
    verdict = verify(instance, chosen)
    return "; ".join([*chip, str(design_of(instance, chosen).plan)]), verdict.value


def _shares(problem: Codesign, root: Node) -> tuple[Share, ...]:
    """The choices that the root takes, largest shares first, part by part."""
    groups = (("plan", problem.choices), *((part.name, part.literals) for part in problem.chip.parts))
    shares = []
    for name, variables in groups:
        taken = [(root.relaxed.figures.get(variable, 0.0), variable) for variable in variables]
        kept = sorted(((share, variable) for share, variable in taken if share > _TAKEN), key=lambda pair: -pair[0])
        shares += [Share(name, _words(variable), share) for share, variable in kept]
    return tuple(shares)


def _branch(node: Node, quantum: float) -> Branch:
    if node.choice is None:
        choice = "all designs"
    else:
        variable, value = node.choice
        choice = _words(variable) if value else f"not {_words(variable)}"
    status = "nothing below" if node.status == "no solution" else node.status
    return Branch(node.parent, choice, _seconds(node.bound, quantum), len(node.fractions), status, _seconds(node.value, quantum))


def _words(variable: Variable) -> str:
    """What a choice says, without the number of its variable."""
    return variable.name.partition(": ")[2] or variable.name


def _seconds(quanta: int | None, quantum: float) -> float | None:
    return None if quanta is None else real(quanta, quantum)
