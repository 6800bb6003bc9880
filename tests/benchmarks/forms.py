"""The forms of the integer model side by side: `python -m tests.benchmarks.forms [--out FILE]` prints a table in Markdown.

Each form with each solver, on one core, until the loop has proved its design to the gap asked or the time is up. Seconds are those of the
processor, of which a busy machine takes as many as an idle one; the time that may be up is that of the clock. Rows and variables are
those of the last model, in the words of CP-SAT; HiGHS gets one 0/1 variable more for each row of a table.
"""

import os
from argparse import ArgumentParser
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import monotonic, process_time

os.environ.setdefault("OMP_NUM_THREADS", "1")

from crossopt.formulation.codesign.forms import FORMS
from crossopt.instances.codesign.question import read_instance
from crossopt.solvers.answer import Progress
from crossopt.solvers.backends import backend
from crossopt.solvers.codesign.boxes.search import survivors
from crossopt.solvers.codesign.linear.refine import Refined, refine_among

SOLVERS = {"milp": "highs", "cpsat": "cpsat"}
PACKAGES = {"HiGHS": "highspy", "CP-SAT": "ortools"}


@dataclass(frozen=True)
class Asked:
    """A question with its settings, the gap at which it counts as proved, and the seconds for it."""

    name: str
    settings: tuple[str, ...] = ()
    gap: float = 1e-4
    seconds: float = 120.0

    @property
    def title(self) -> str:
        return ", ".join((self.name, *self.settings))


QUESTIONS = (
    Asked("quickstart", ("budget.power=300 W",)),
    Asked("quickstart", ("workload.model=gpt3-6.7b", "budget.die_area=600 mm^2")),
    Asked("gpt3-175b-pathfinding-7nm"),
)
HEAD = ("form", "solver", "seconds", "rounds", "plans", "rows", "variables", "gap", "ended")


def main() -> None:
    """Print the tables, and write them where `--out` says."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--question", action="append", choices=sorted({asked.name for asked in QUESTIONS}))
    options = parser.parse_args()
    solvers = ", ".join(f"{name} {version(package)}" for name, package in PACKAGES.items())
    text = _INTRODUCTION.format(solvers=solvers) + "".join(
        table(asked) for asked in QUESTIONS if not options.question or asked.name in options.question
    )
    print(text, end="")
    if options.out:
        options.out.write_text(text, encoding="utf-8")


def table(asked: Asked) -> str:
    """One question, one row for each form and solver."""
    instance = read_instance(f"instances/{asked.name}.yaml", asked.settings)
    began = process_time()
    left = survivors(instance, float("inf"))
    looked = process_time() - began
    words = f"{left.seen:,} plans, {len(left.plans):,} of them better on the best chip there could be than the design to start from"
    lines = ["", f"## {asked.title}", "", f"{words}; a gap of {asked.gap:.2%} is asked, within {asked.seconds:g} s.", ""]
    lines += ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    for form in FORMS:
        for engine, solver in SOLVERS.items():
            began = process_time()
            found = refine_among(instance, left, backend(solver), FORMS[form], asked.gap, monotonic() + asked.seconds, _unwatched)
            lines.append("| " + " | ".join((form, engine, *_cells(found, looked + process_time() - began))) + " |")
            print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def _cells(found: Refined, seconds: float) -> tuple[str, ...]:
    model = None if found.problem is None else found.problem.model()
    size = (f"{len(model.constraints):,}", f"{len(model.variables):,}") if model else ("", "")
    gap = "" if found.value is None or found.bound is None else f"{(found.value - found.bound) / found.value:.4%}"
    return (f"{seconds:.1f}", f"{found.rounds}", f"{found.plans}", *size, gap, "proved" if found.stopped == "complete" else found.stopped)


def _unwatched(progress: Progress) -> None:
    del progress


_INTRODUCTION = """\
# The forms of the integer model

Written by `python -m tests.benchmarks.forms`. Seconds are of one core of a virtual machine, without what other programs take of it; a time
limit is one by the clock. What each form is stands at the top of its file in `formulation/`. "weak" is the foil, with a big M.
Bounds on the best chip and prices on the budgets come before any model, and settle `quickstart` as it is, so that it is asked with other
settings. Larger questions are not for these models: of `gpt3-175b-pathfinding-large` none saw a first round in 40 s; boxes prove it in
three.
Solvers: {solvers}.
"""


if __name__ == "__main__":
    main()
