"""The assignments by name, their notebooks, and the grading of a submission."""

import ast
import builtins
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crossopt.instances.course.handed_in import SHOWN, lines_in, notebook_for, notebooks_in, starts_of
from crossopt.solvers.grading.assignments.alternating import ALTERNATING
from crossopt.solvers.grading.assignments.checkpoints import CHECKPOINTS
from crossopt.solvers.grading.assignments.chips import CHIPS
from crossopt.solvers.grading.assignments.collectives import COLLECTIVES
from crossopt.solvers.grading.assignments.curves import CURVES
from crossopt.solvers.grading.assignments.expert import EXPERT
from crossopt.solvers.grading.assignments.knapsack import KNAPSACK
from crossopt.solvers.grading.assignments.layer import LAYER
from crossopt.solvers.grading.assignments.phaze import PHAZE
from crossopt.solvers.grading.assignments.precision import PRECISION
from crossopt.solvers.grading.assignments.serving import SERVING
from crossopt.solvers.grading.assignments.stages import STAGES
from crossopt.solvers.grading.assignments.tradeoffs import TRADEOFFS
from crossopt.solvers.grading.assignments.trees import TREES
from crossopt.solvers.grading.marks import HANDOUTS, NEARLY, PRACTICE, Assignment, Case, Grade, Mark, Task, Verdict, printable, wrong
from crossopt.solvers.grading.running import STOPPED, Call, Returned, SubmissionError, opened, refuse_ours, run
from crossopt.solvers.grading.walls import NOT_FINITE, TOO_MUCH, no_function

# Assignments as notebooks, made from their README and starter, and programs out of notebooks that are handed in.
#
# A notebook is plain JSON (nbformat 4.5): texts, a cell for each hole, and a last one that shows what the functions say of the public case,
# up to the first hole that is left. That one is tagged, so that it is no part of the program.

_LARGEST = 4 << 20


def notebook_of(assignment: str) -> str:
    """The notebook of a handout."""
    readme, starter = ((HANDOUTS / assignment / name).read_text(encoding="utf-8") for name in ("README.md", "starter.py"))
    parts = readme.split("\n## ")
    texts = [parts[0], *(f"## {part}" for part in parts[1:])]
    program, last = _cells_of(starter)
    cells = (
        [_text(text) for text in texts[:1]] + [_code(part) for part in program] + [_code(last, SHOWN)] + [_text(part) for part in texts[1:]]
    )
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    document = {"cells": cells, "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _cells_of(starter: str) -> tuple[list[str], str]:
    """What stands before the first function, each function, and what is run in the end."""
    lines, body = starter.splitlines(), ast.parse(starter).body
    first = next(index for index, node in enumerate(body) if isinstance(node, ast.FunctionDef))
    head = "\n".join(lines[body[1].lineno - 1 : body[first - 1].end_lineno])
    *holes, last = body[first:]
    own = ["\n".join(lines[node.lineno - 1 : node.end_lineno]) for node in holes]
    if not isinstance(last, ast.If):
        raise ValueError("a starter ends with what it runs as a program")
    run = "\n".join(lines[last.body[0].lineno - 1 : last.end_lineno])
    shown = f"try:  # this cell is no part of what you hand in\n{run}\nexcept NotImplementedError as hole:\n    print(hole)"
    return [_beside(part) for part in (head, *own)], _beside(shown)


def _beside(text: str) -> str:
    """Run in the folder of the notebook, as a notebook has no `__file__`."""
    return text.replace("Path(__file__).with_name(", "Path(")


def _text(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.strip().splitlines(keepends=True)}


def _code(text: str, *tags: str) -> dict[str, Any]:
    metadata = {"tags": list(tags)} if tags else {}
    return {"cell_type": "code", "execution_count": None, "metadata": metadata, "outputs": [], "source": text.splitlines(keepends=True)}


@dataclass(frozen=True, slots=True)
class Taken:
    """A notebook that was taken for the program, whether that lies beside it and is all holes, which line of which cell of code stands
    behind each of the program's lines, and in which of these cells begin."""

    notebook: str
    beside: bool
    lines: tuple[tuple[int, int], ...]
    starts: tuple[int, ...]

    def placed(self, message: str, program: str) -> str:
        """A message with line numbers of the program replaced by cells and lines of the notebook."""

        def in_notebook(found: re.Match[str]) -> str:
            line = int(found[1]) - 1
            there = self.lines[line] if line < len(self.lines) else None
            return f"({self.notebook})" if there is None else f"(line {there[1]} of cell {there[0]} of code in {self.notebook})"

        return re.sub(rf"\(line (\d{{1,9}}) of {re.escape(program)}\)", in_notebook, message)


def program_in(notebook: str) -> str:
    """The program of a notebook; a ValueError where it is none."""
    return "\n".join(line for _, _, line in lines_in(notebook))


def write_program(folder: Path, name: str) -> Taken | None:
    """Write the program of a notebook that is handed in instead of a program, or beside one that is all holes. A notebook that holds none
    counts as missing."""
    notebook, beside = notebook_for(folder, name), (folder / name).exists()
    if notebook is None or notebook.stat().st_size > _LARGEST:
        return None
    try:
        lines = lines_in(notebook.read_text(encoding="utf-8"))
    except (ValueError, TypeError, RecursionError):
        return None
    (folder / name).write_text("\n".join(line for _, _, line in lines), encoding="utf-8")
    return Taken(notebook.name, beside, tuple((number, line) for number, line, _ in lines), tuple(starts_of(lines)))


# From a submission to a grade.
#
# Reported of hidden cases: which are right, known mistakes, and type and line of an error.
#
# A program sees what it is asked, so that whatever it says or returns may carry that out, and a figure's ratio to the right one is the
# right one. Who may hand in again would need nothing else.

TOLD_LESS = "how far off an answer is, and what a program says, is told of the cases that one practises with (crossopt grade {} FOLDER)"
_NOT_RIGHT = "not right"
_LINE_OF = re.compile(r" \(line (\d{1,7}) of [^()\n]{1,120}\)\Z")
_KIND = re.compile(r"\w{1,60}")


def is_hidden(seed: str) -> bool:
    """Whether cases are drawn from another seed than that of the practice cases."""
    return seed.partition("/")[0] != PRACTICE


def without_text(returned: Returned, call: Call, program: Path) -> Returned:
    """The failure without what the program may have chosen of it, but for a kind of error that Python itself has, and a line of its own."""
    nothing_to_hide = (TOO_MUCH, NOT_FINITE, f"AttributeError: {no_function(call.function, program.name)}")
    if not returned.from_program or returned.failure in nothing_to_hide:
        return returned
    kind, position = _KIND.match(returned.failure), _LINE_OF.search(returned.failure)
    known = getattr(builtins, kind[0], None) if kind else None
    name = known.__name__ if isinstance(known, type) and issubclass(known, BaseException) else "an error of its own kind"
    own = position and position[0].endswith(f" of {program.name})") and int(position[1]) <= len(program.read_bytes().splitlines())
    return replace(returned, failure=f"{name}{position[0] if position and own else ''}")


def without_figures(found: Verdict, returned: Returned) -> Verdict:
    """The verdict with known mistakes only, without figures."""
    return replace(found, why=returned.failure or ("" if found.mistakes else _NOT_RIGHT))


_PATIENCE = 2
"""Functions that may take all their time; after so many that were stopped each further one has a fifth of it."""
_SENTENCES = 3
"""Of a task, and names of a list; further ones are counted."""
UNCONFINED = "no walls stood around the submission: it could read and write what its grader can"


def graded(assignment: Assignment, submission: Path, seed: str, walls: bool) -> Grade:
    """The grade of a folder or a .zip; an invalid one earns nothing, with the reason."""
    note = "" if walls or assignment.judge else UNCONFINED
    try:
        with opened(submission) as folder:
            if assignment.judge is None:
                refuse_ours(folder)
            notebooks = tuple(path.name for path in notebooks_in(folder))
            taken = write_program(folder, assignment.handed) if assignment.judge is None else None
            if taken and (other := Path(taken.notebook).stem) != assignment.name and (HANDOUTS / other / "starter.py").is_file():
                raise SubmissionError(
                    f"{taken.notebook} is the notebook of the assignment {other} (crossopt grade {other[:2].lstrip('0')} FOLDER)"
                )
            if not (folder / assignment.handed).is_file():
                raise SubmissionError(_not_there(assignment, folder))
            marks, fault = _judged(assignment, folder, seed) if assignment.judge else _marks(assignment, folder, seed, walls, taken)
            above = assignment.rank(folder, seed) if assignment.rank else None
            file, hidden = _file(assignment, taken, notebooks), assignment.judge is None and is_hidden(seed)
            return Grade(assignment.name, together(marks, assignment.total), "", note, above, file, fault, hidden)
    except SubmissionError as error:
        return replace(refused(assignment, str(error)), note=note)


def refused(assignment: Assignment, why: str) -> Grade:
    """A grade of zero, with one reason."""
    reason = printable(why)
    marks = tuple(Mark(task.name, 0.0, task.points, (reason,)) for task in assignment.tasks("practice"))
    return Grade(assignment.name, together(marks, assignment.total), reason)


def _not_there(assignment: Assignment, folder: Path) -> str:
    """The remedy for a missing file, by the files that are there."""
    handed = assignment.handed
    remedy = "see README" if assignment.judge else f"copy starter.py to {handed} and fill its holes, or hand in the notebook alone"
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    deeper = [name for name in files if name.rpartition("/")[2] == handed]
    if deeper:
        return f"there is no {handed} at the top, but there is {_list_of(deeper)} (hand in the folder that {handed} lies in, and no other)"
    notebooks = [path.name for path in notebooks_in(folder)] if assignment.judge is None else []
    if len(notebooks) > 1:
        return f"there is no {handed}, and which of {_list_of(notebooks)} is meant is not known (hand in one notebook, or {handed})"
    if notebooks:
        return f"there is no {handed}, and {notebooks[0]} cannot be read as a notebook (save it anew in Jupyter, or hand in {handed})"
    neither = " and no notebook" if assignment.judge is None else ""
    return f"there is no {handed}{neither} ({f'there is {_list_of(files)}; ' if files else ''}{remedy})"


def _list_of(names: list[str]) -> str:
    rest = len(names) - _SENTENCES
    return f"{', '.join(names[:_SENTENCES])}{f' and {rest} more' if rest > 0 else ''}"


def _file(assignment: Assignment, taken: Taken | None, notebooks: tuple[str, ...]) -> str:
    """Which file was graded, and which notebooks were not."""
    if taken:
        cells = f"{taken.notebook}, its cells of code"
        return f"{cells}; {assignment.handed} beside it is all holes" if taken.beside else f"{cells}, as there is no {assignment.handed}"
    beside = assignment.judge is None and notebooks
    return f"{assignment.handed}{f'; {_list_of(list(notebooks))} beside it is not looked at' if beside else ''}"


def _judged(assignment: Assignment, folder: Path, seed: str) -> tuple[tuple[Mark, ...], str]:
    """The marks of a file that is not a program."""
    found = assignment.judge(folder, seed) if assignment.judge else ()
    return tuple(replace(mark, why=tuple(map(printable, mark.why))) for mark in found), ""


def _marks(assignment: Assignment, folder: Path, seed: str, walls: bool, taken: Taken | None) -> tuple[tuple[Mark, ...], str]:
    """What each task earns; and the first failure, where no function returned anything."""
    program = folder / assignment.handed
    marks, unloaded, failures, quiet, stopped = list[Mark](), tuple[Returned, ...](), list[str](), is_hidden(seed), 0
    for task in assignment.tasks(seed):
        if not unloaded:  # a program that fails to load once fails again
            calls = [case.call for case in task.cases]
            seconds = assignment.seconds if stopped < _PATIENCE else max(1, assignment.seconds // 5)
            returned = run(program, calls, seconds, walls, taken.starts if taken else ())
            stopped += any(result.failure.startswith(STOPPED) and not result.from_program for result in returned)
            if quiet:
                returned = tuple(without_text(result, call, program) for result, call in zip(returned, calls, strict=True))
            returned = tuple(_placed(result, taken, program.name) for result in returned)
            unloaded = returned[:1] if returned[0].unloaded else ()
            failures += [result.failure for result in returned]
        marks.append(mark_of(task, unloaded * len(task.cases) or returned, quiet))
    return tuple(marks), printable(failures[0]) if failures and all(failures) else ""


def _placed(returned: Returned, taken: Taken | None, program: str) -> Returned:
    if not taken or not returned.failure:
        return returned
    missing = returned.failure.endswith(f" in {program}")
    return replace(
        returned, failure=returned.failure.removesuffix(program) + taken.notebook if missing else taken.placed(returned.failure, program)
    )


def together(marks: tuple[Mark, ...], bonus: int) -> tuple[Mark, ...]:
    """The marks, and one for all of them: what is counted, modelled and chosen by several formulas is wrong where one of them is."""
    open_ones = [mark.name for mark in marks if mark.points < mark.out_of]
    why = (f"not yet right: {_list_of(open_ones)}",) if open_ones else ()
    return (*marks, Mark("all of it, without a mistake", 0.0 if open_ones else float(bonus), bonus, why)) if bonus else marks


def mark_of(task: Task, returned: tuple[Returned, ...], quiet: bool = False) -> Mark:
    """What a task earns by its hidden cases: all, a part where one mistake with a name explains all that fail, or nothing. A quiet mark
    tells nothing that one could hand in again by."""
    verdicts = [_verdict(case, value) for case, value in zip(task.cases, returned, strict=True)]
    if quiet:
        verdicts = [without_figures(found, value) for found, value in zip(verdicts, returned, strict=True)]
    failing = [found for case, found in zip(task.cases, verdicts, strict=True) if found.share < 1.0 and not case.public]
    common = [name for name in (failing[0].mistakes if failing else ()) if all(name in found.mistakes for found in failing)]
    explained = bool(common) and all(found.share == NEARLY for found in failing)
    share = 1.0 if not failing else NEARLY if explained else 0.0
    return Mark(task.name, round(task.points * share, 2), task.points, _why(task, verdicts, common[:1]))


def _why(task: Task, verdicts: list[Verdict], common: list[str]) -> tuple[str, ...]:
    """A sentence for each mistake, or each reason that has no name, with the cases that it holds for; what is hidden first."""
    cases: dict[str, list[str]] = {}
    reasons: dict[str, str] = {}
    for case, verdict in sorted(zip(task.cases, verdicts, strict=True), key=lambda pair: pair[0].public):
        if verdict.share < 1.0:
            name = next((name for name in (*common, *verdict.mistakes) if name in verdict.mistakes), "")
            key = name or verdict.why
            reasons.setdefault(key, f"{name} ({verdict.why})" if name and verdict.why else key)
            cases.setdefault(key, []).append(f"{case.name}{' (public, no points)' if case.public else ''}")
    sentences = [
        f"{'every case' if len(names) == len(verdicts) else '; '.join(names)}: {printable(reasons[key])}" for key, names in cases.items()
    ]
    rest = sum(len(names) for names in list(cases.values())[_SENTENCES:])
    return (*sentences[:_SENTENCES], *((f"and {rest} more of {len(verdicts)} cases",) if rest else ()))


def _verdict(case: Case, returned: Returned) -> Verdict:
    return wrong(returned.failure) if returned.failure else case.judge(returned.value)


# The assignments by name, and where their solutions lie.

ASSIGNMENTS: tuple[Assignment, ...] = (
    LAYER,
    KNAPSACK,
    STAGES,
    CHIPS,
    CURVES,
    TRADEOFFS,
    TREES,
    EXPERT,
    ALTERNATING,
    COLLECTIVES,
    PRECISION,
    CHECKPOINTS,
    SERVING,
    PHAZE,
)
LAB = "phaze-lab"
"""A folder beside the assignments."""
SOLUTIONS = HANDOUTS / "solutions"
"""Reference solutions and notes for instructors, which no student gets."""


def assignment_named(name: str) -> Assignment | None:
    """The assignment of that name or number: `1`, `01` and `01-transformer-layer` are the same."""
    number = name.zfill(2)
    return next((assignment for assignment in ASSIGNMENTS if name == assignment.name or number == assignment.name[:2]), None)
