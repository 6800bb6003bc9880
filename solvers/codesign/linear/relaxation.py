"""The integer model of a question as a reader sees it: its relaxation, how branching closes the gap, and model files for other solvers."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, Literal, NamedTuple

from crossopt.crossflow.plan import plan_at
from crossopt.formulation.codesign.choices import Codesign
from crossopt.formulation.codesign.forms import FORMS
from crossopt.formulation.model import Linear, Model, Values, Variable, linearize, real
from crossopt.instances.codesign.boxes import grid, point_number
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.space import devices
from crossopt.instances.errors import RefusedError, SolverError
from crossopt.instances.files.dataclass_json import to_plain
from crossopt.instances.files.saved import check_writable, write_atomically
from crossopt.solvers.answer import Progress, Status, Watch
from crossopt.solvers.backends import Spend, backend
from crossopt.solvers.backends.cpsat import write_proto
from crossopt.solvers.backends.milp import Fractional, Relaxation, printable, problem_of, relaxation, sound
from crossopt.solvers.codesign.answer import Candidate, chosen_design, design_of
from crossopt.solvers.codesign.judge import verify
from crossopt.solvers.codesign.linear.refine import LEAST_GAP, Refined, refine, require_transformer

# The relaxation of an integer model, and a small branch and bound on it to look at: what fractions it takes, how branching closes the gap.
#
#     take the node with the least bound; choose the 0/1 variable that is nearest to one half; fix it at 1 and at 0; solve both relaxations;
#     where all choices are whole, solve the rest of the model as it stands
#
# until no bound is below the best solution. Bounds are those of linear programs in floating point, of which a millionth is given away
# before they are rounded up to integers: the report of HiGHS. Solutions are whole, and held against every row of the model.

NodeStatus = Literal["branched", "no solution", "not better", "solved", "open"]
Fixed = Mapping[Variable, int]
SolveFixed = Callable[[Fixed, float], tuple[Values, int] | None]
"""The best solution with these variables fixed and its objective, in so many seconds; None where there is none."""

_INTEGRALITY = 1e-6
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
    status: NodeStatus = "open"
    value: int | None = None
    """Of the solution that was found here."""

    @property
    def fractions(self) -> list[Variable]:
        """The choices that are not whole."""
        return [
            variable for variable, figure in self.relaxed.figures.items() if variable.choice and _INTEGRALITY < figure < 1.0 - _INTEGRALITY
        ]


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
class _Search:
    """A growing tree, and its open nodes."""

    relax: Relaxation
    solve_fixed: SolveFixed
    deadline: float
    found: Explored = field(default_factory=Explored)
    heap: list[tuple[int, int]] = field(default_factory=list)

    @property
    def left(self) -> float:
        return max(self.deadline - monotonic(), 0.0)

    @property
    def going(self) -> bool:
        return bool(self.heap) and (self.found.value is None or self.heap[0][0] < self.found.value)


def explore(model: Model, relax: Relaxation, solve_fixed: SolveFixed, watch: Watch, deadline: float, most: int) -> Explored:
    """Branch until nothing is left, at most so many nodes, or until the deadline or Ctrl-C. Only models that minimise."""
    if not model.minimise:
        raise ValueError("only models that minimise are explored")
    walk = _Search(relax, solve_fixed, deadline)
    found = walk.found
    try:
        _add(walk, None, None, {})
        while walk.going and len(found.nodes) < most:
            _look(walk, heappop(walk.heap)[1])
            found.steps.append((len(found.nodes), found.bound, found.value))
            watch(Progress(f"{len(found.nodes):,} nodes explored, {len(walk.heap):,} open", _float(found.value), _float(found.bound)))
        found.stopped = "node limit" if walk.going else "complete"
    except TimeoutError:
        found.stopped = "time limit"
    except KeyboardInterrupt:
        found.stopped = "interrupted"
    for node in found.nodes:
        if node.status == "open" and node.bound is not None and found.value is not None and node.bound >= found.value:
            node.status = "not better"
    return found


def _add(walk: _Search, parent: int | None, choice: tuple[Variable, int] | None, fixed: Fixed) -> None:
    """Solve the relaxation of a new node."""
    relaxed = walk.relax(fixed, walk.left)
    bound = None if relaxed.value is None else sound(1, relaxed.value)
    walk.found.nodes.append(Node(parent, choice, fixed, relaxed, bound, "no solution" if bound is None else "open"))
    if bound is not None:
        heappush(walk.heap, (bound, len(walk.found.nodes) - 1))


def _look(walk: _Search, number: int) -> None:
    """Branch on a node, or solve it; where time is up on the way it stays open."""
    node = walk.found.nodes[number]
    fractions = node.fractions
    if not fractions:
        _solved(walk.found, node, walk.solve_fixed({**node.fixed, **_choices(node)}, walk.left))
        return
    variable = min(fractions, key=lambda candidate: abs(node.relaxed.figures[candidate] - 0.5))
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


# The integer model of a question, its relaxation at the root, and how branching closes the gap, in the words and seconds of the question.
#
# The model is the one in which the refinement loop ends, as `crossopt export --as lp` writes it: it chooses among the plans that may be as
# good as the best design known (or a given share worse), and among all chips that prices leave. Its optimum is a bound; its solution is a
# design that the full model prices anew. Where it has no solution there may be designs, but none below the best one known.

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
    """No design is below this, by the report of HiGHS."""
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
    require_transformer(instance, "relaxation of the milp")
    deadline = monotonic() + seconds
    found = refine(instance, backend("highs"), FORMS["strong"], LEAST_GAP, seconds * _REFINING, watch, within=within)
    if found.best is None and found.bound == inf:
        return Untold("INFEASIBLE", "no design keeps every limit; without --relaxation `explain` says which limits clash")
    if found.problem is None or found.value is None or found.bound is None:
        return Untold("UNKNOWN", without_model(found))
    model, quantum, start = found.problem.model(), found.problem.quantum, found.value

    def seen(progress: Progress) -> None:
        watch(Progress(progress.label, start, None if progress.bound is None else min(progress.bound * quantum, start)))

    tree = explore(model, relaxation(model), lambda fixed, left: _rest(model, fixed, left), seen, deadline, _NODES)
    return _relaxed_proof(instance, found, found.problem, tree)


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


def _relaxed_proof(instance: Instance, found: Refined, problem: Codesign, tree: Explored) -> Relaxed:
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
    chip = [f"{_text(part.literals[point[part.name]])}" for part in problem.chip.parts]
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
        largest = sorted(((share, variable) for share, variable in taken if share > _TAKEN), key=lambda pair: -pair[0])
        shares += [Share(name, _text(variable), share) for share, variable in largest]
    return tuple(shares)


def _branch(node: Node, quantum: float) -> Branch:
    if node.choice is None:
        choice = "all designs"
    else:
        variable, value = node.choice
        choice = _text(variable) if value else f"not {_text(variable)}"
    status = "nothing below" if node.status == "no solution" else node.status
    return Branch(node.parent, choice, _seconds(node.bound, quantum), len(node.fractions), status, _seconds(node.value, quantum))


def _text(variable: Variable) -> str:
    """What a choice says, without the number of its variable."""
    return variable.name.partition(": ")[2] or variable.name


def _seconds(quanta: int | None, quantum: float) -> float | None:
    return None if quanta is None else real(quanta, quantum)


# Models as files that other programs read, with a second file that says which name stands for what.
#
#     .lp, .mps               the linear form; `x3` is the fourth variable, `r7_low` the lower side of the eighth row
#     .txt, .textproto, .pb   CP-SAT's own form, text or binary; its rows have no names
#
# Beside `model.lp` lies `model.lp.names.json` with the full names: {"variables": {"x3": "tensor = 4"}, "rows": {"r7": "memory of stage
# 0"}}. The column `one`, where there is one, is fixed at 1 and carries the constant of the objective.


def write_lp(model: Model, path: Path) -> Path:
    """Writes the linear form in CPLEX LP format; gives the path of the names."""
    linear = linearize(model)
    printable(linear)
    problem_of(linear)[0].writeLP(str(path))
    return _write_names(linear, path)


def write_mps(model: Model, path: Path) -> Path:
    """Writes the linear form in free MPS format; gives the path of its names. Only a maximum states its sense, which CBC cannot read."""
    linear = linearize(model)
    printable(linear)
    problem_of(linear)[0].writeMPS(str(path), with_objsense=not model.minimise)
    return _write_names(linear, path)


def write_cpsat(model: Model, path: Path) -> Path:
    """Writes CP-SAT's protocol buffer; gives the path of the names."""
    write_proto(model, path)
    return _write_names(model, path)


def _write_names(model: Model, path: Path) -> Path:
    """Short name to full name, in the order of the model."""
    names = path.with_name(f"{path.name}.names.json")
    variables = {f"x{index}": variable.name for index, variable in enumerate(model.variables)}
    rows = {f"r{index}": row.name for index, row in enumerate(model.constraints)}
    names.write_text(json.dumps({"variables": variables, "rows": rows}, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return names


# The integer model of a question as a file that other solvers read, with a second file that says what each name in it means.
#
#     optimum of the file  x  quantum  =  a bound that no design of the question is below
#
# The model is the one in which the refinement loop ended, refined by HiGHS: it chooses among the plans that may be as good as the best
# design known or a given share worse, all others being ruled out before, and among all chips. It is a relaxation: its optimum is the
# bound, and its solution a chip and a plan whose true time the full model says (`crossopt evaluate`).


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file: the endings its readers know it by, the usual one first, and who writes it."""

    endings: tuple[str, ...]
    write: Callable[[Model, Path], Path]
    label: str


KINDS = {
    "lp": Kind((".lp",), write_lp, "a linear model in LP format"),
    "mps": Kind((".mps",), write_mps, "a linear model in free MPS format"),
    "cpsat": Kind((".textproto", ".txt"), write_cpsat, "a model of CP-SAT as text"),
}


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What kind of model is wanted, and where."""

    kind: str
    target: Path
    within: float
    """The share above the best design up to which designs stay in the model."""
    seconds: float = inf


def target_of(kind: str, out: Path | None, name: str) -> Path:
    """The file that is meant: the one that is named, or one of the question's name in the folder that is named, or here.

    A RefusedError where its ending is not one by which readers know the kind, or where nothing can be written.
    """
    endings = KINDS[kind].endings
    target = (out or Path()) / f"{name}{endings[0]}" if out is None or out.is_dir() else out
    if target.suffix not in endings:
        raise RefusedError(f"--out {out}: --as {kind} writes a file that ends in {' or '.join(endings)} (name one, or a folder)")
    if not target.parent.is_dir():
        raise RefusedError(f"--out {out}: there is no folder {target.parent} (make it first)")
    try:
        for path in (target, names_of(target)):
            check_writable(path)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise RefusedError(f"{target}: this cannot be written, {reason} (--out names a file or a folder of yours)") from error
    return target


def names_of(target: Path) -> Path:
    """Where the names of a model's file are."""
    return target.with_name(f"{target.name}.names.json")


def write_model(instance: Instance, request: ModelRequest, watch: Watch) -> str | Untold:
    """Refine the question, write its model and the names, and say what was written, or why there is nothing to write."""
    require_transformer(instance, "integer model's")
    found = refine(instance, backend("highs"), FORMS["strong"], LEAST_GAP, request.seconds, watch, within=request.within)
    if found.best is None and found.bound == inf:
        return Untold("INFEASIBLE", "there is no model to write: no design keeps every limit; `crossopt explain` says which limits clash")
    if found.problem is None or found.least is None or found.value is None:
        return Untold("UNKNOWN", without_model(found))
    about = _about(instance, found, request.within)
    _write(found.problem.model(), KINDS[request.kind], request.target, about)
    return _report(instance, found, request, about)


def _write(model: Model, kind: Kind, target: Path, about: dict[str, Any]) -> None:
    """Both files, each whole or not at all."""
    with TemporaryDirectory() as folder:
        made = Path(folder) / target.name
        names = json.loads(kind.write(model, made).read_text(encoding="utf-8"))
        write_atomically(target, made.read_text(encoding="utf-8"))
    write_atomically(names_of(target), json.dumps({"about": about, **names}, ensure_ascii=False, indent=1) + "\n")


def _about(instance: Instance, found: Refined, within: float) -> dict[str, Any]:
    """What the figures of the file mean."""
    quantum = found.problem.quantum if found.problem else 0.0
    return {
        "question": instance.name,
        "objective": "x0, the step time in quanta, is minimised; times the quantum its optimum is a bound that no design is below",
        "quantum_seconds": quantum,
        "solved": found.stopped == "complete",
        "optimum_quanta": found.least,
        "bound_seconds": real(found.least or 0, quantum),
        "best_design_seconds": found.value,
        "best_design": to_plain(chosen_design(instance, found.best)) if found.best else None,
        "plans": found.plans,
        "plans_within": within,
    }


def _report(instance: Instance, found: Refined, request: ModelRequest, about: dict[str, Any]) -> str:
    rounds = f"{found.rounds} round{'s' * (found.rounds != 1)}"
    model = found.problem.model() if found.problem else None
    size = f"{len(model.variables):,} variables, {len(model.constraints):,} rows" if model else ""
    state = f"after {rounds} of refinement" if about["solved"] else f"stopped by the {found.stopped} after {rounds}, not refined to the end"
    least = f"{'optimum' if about['solved'] else 'bound'} {found.least:,} quanta of {about['quantum_seconds']:g} s"
    return (
        f"{request.target}: {KINDS[request.kind].label}, {size}, {state}\n"
        f"{names_of(request.target)}: what each variable and row means\n\n"
        f"{instance.name}: {least} = {about['bound_seconds']:.6g} s, a bound that no design is below; the best design known takes "
        f"{found.value:.6g} s\n"
    )
