"""The integer model of a question as a file that other solvers read, with a second file that says what each name in it means.

    optimum of the file  x  quantum  =  a bound that no design of the question is below

The model is the one in which the refinement loop ended, refined by HiGHS: it chooses among the plans that may be as good as the best
design known or a given share worse, all others being ruled out before, and among all chips. It is a relaxation: its optimum is the
bound, and its solution a chip and a plan whose true time the full model says (`crossopt evaluate`).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from crossopt.formulation.codesign.forms import FORMS
from crossopt.formulation.model import Model, real
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.errors import RefusedError
from crossopt.instances.files.dataclass_json import to_plain
from crossopt.instances.files.saved import check_writable, write_whole
from crossopt.solvers.answer import Watch
from crossopt.solvers.backends import backend
from crossopt.solvers.backends.export import write_cpsat, write_lp, write_mps
from crossopt.solvers.codesign.answer import chosen_design
from crossopt.solvers.codesign.linear.refine import LEAST_GAP, Refined, refine, refuse_others
from crossopt.solvers.codesign.linear.relaxation import Untold, without_model


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file: the endings its readers know it by, the usual one first, and who writes it."""

    endings: tuple[str, ...]
    write: Callable[[Model, Path], Path]
    words: str


KINDS = {
    "lp": Kind((".lp",), write_lp, "a linear model in LP format"),
    "mps": Kind((".mps",), write_mps, "a linear model in free MPS format"),
    "cpsat": Kind((".textproto", ".txt"), write_cpsat, "a model of CP-SAT as text"),
}


@dataclass(frozen=True, slots=True)
class Asked:
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


def write_model(instance: Instance, asked: Asked, watch: Watch) -> str | Untold:
    """Refine the question, write its model and the names, and say what was written, or why there is nothing to write."""
    refuse_others(instance, "integer model's")
    found = refine(instance, backend("highs"), FORMS["strong"], LEAST_GAP, asked.seconds, watch, within=asked.within)
    if found.best is None and found.bound == inf:
        return Untold("INFEASIBLE", "there is no model to write: no design keeps every limit; `crossopt explain` says which limits clash")
    if found.problem is None or found.least is None or found.value is None:
        return Untold("UNKNOWN", without_model(found))
    about = _about(instance, found, asked.within)
    _write(found.problem.model(), KINDS[asked.kind], asked.target, about)
    return _report(instance, found, asked, about)


def _write(model: Model, kind: Kind, target: Path, about: dict[str, Any]) -> None:
    """Both files, each whole or not at all."""
    with TemporaryDirectory() as folder:
        made = Path(folder) / target.name
        names = json.loads(kind.write(model, made).read_text(encoding="utf-8"))
        write_whole(target, made.read_text(encoding="utf-8"))
    write_whole(names_of(target), json.dumps({"about": about, **names}, ensure_ascii=False, indent=1) + "\n")


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


def _report(instance: Instance, found: Refined, asked: Asked, about: dict[str, Any]) -> str:
    rounds = f"{found.rounds} round{'s' * (found.rounds != 1)}"
    model = found.problem.model() if found.problem else None
    size = f"{len(model.variables):,} variables, {len(model.constraints):,} rows" if model else ""
    state = f"after {rounds} of refinement" if about["solved"] else f"stopped by the {found.stopped} after {rounds}, not refined to the end"
    least = f"{'optimum' if about['solved'] else 'bound'} {found.least:,} quanta of {about['quantum_seconds']:g} s"
    return (
        f"{asked.target}: {KINDS[asked.kind].words}, {size}, {state}\n"
        f"{names_of(asked.target)}: what each variable and row means\n\n"
        f"{instance.name}: {least} = {about['bound_seconds']:.6g} s, a bound that no design is below; the best design known takes "
        f"{found.value:.6g} s\n"
    )
