"""From a submission to a grade."""

from dataclasses import replace
from pathlib import Path

from crossopt.solvers.grading.marks import Assignment, Case, Grade, Mark, Task, Verdict, printable
from crossopt.solvers.grading.walls.running import Returned, run
from crossopt.solvers.grading.walls.submission import SubmissionError, opened

_SENTENCES = 3
"""Of a task, and names of a list; further ones are counted."""
UNCONFINED = "no walls stood around the submission: it could read and write what its grader can"


def graded(assignment: Assignment, submission: Path, seed: str, walls: bool) -> Grade:
    """The grade of a folder or a .zip; one that cannot be taken earns nothing, with the reason."""
    note = "" if walls or assignment.judge else UNCONFINED
    try:
        with opened(submission) as folder:
            if not (folder / assignment.handed).is_file():
                raise SubmissionError(_not_there(assignment, folder))
            return Grade(assignment.name, _marks(assignment, folder, seed, walls), note=note)
    except SubmissionError as error:
        why = printable(str(error))
        return Grade(assignment.name, _nothing(assignment, seed, why), why, note)


def _not_there(assignment: Assignment, folder: Path) -> str:
    """What to do about a file that is missing, by what there is instead."""
    handed, remedy = assignment.handed, "see README" if assignment.judge else f"copy starter.py to {assignment.handed} and fill its holes"
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    deeper = [name for name in files if name.rpartition("/")[2] == handed]
    if deeper:
        return f"there is no {handed} at the top, but there is {_listed(deeper)} (hand in the folder that {handed} lies in, and no other)"
    return f"there is no {handed} ({f'there is {_listed(files)}; ' if files else ''}{remedy})"


def _listed(names: list[str]) -> str:
    rest = len(names) - _SENTENCES
    return f"{', '.join(names[:_SENTENCES])}{f' and {rest} more' if rest > 0 else ''}"


def _marks(assignment: Assignment, folder: Path, seed: str, walls: bool) -> tuple[Mark, ...]:
    if assignment.judge:
        return tuple(replace(mark, why=tuple(map(printable, mark.why))) for mark in assignment.judge(folder, seed))
    program = folder / assignment.handed
    marks, unloaded = list[Mark](), tuple[Returned, ...]()
    for task in assignment.tasks(seed):
        if not unloaded:  # a program that is not loaded once is not loaded another time either
            returned = run(program, [case.call for case in task.cases], assignment.seconds, walls)
            unloaded = returned[:1] if returned[0].unloaded else ()
        marks.append(_mark(task, unloaded * len(task.cases) or returned))
    return tuple(marks)


def _nothing(assignment: Assignment, seed: str, reason: str) -> tuple[Mark, ...]:
    return tuple(Mark(task.name, 0.0, task.points, (reason,)) for task in assignment.tasks(seed))


def _mark(task: Task, returned: tuple[Returned, ...]) -> Mark:
    verdicts = [_verdict(case, value) for case, value in zip(task.cases, returned, strict=True)]
    share = sum(verdict.share for verdict in verdicts) / len(verdicts)
    return Mark(task.name, round(task.points * share, 2), task.points, _why(task, verdicts))


def _why(task: Task, verdicts: list[Verdict]) -> tuple[str, ...]:
    """A sentence for each reason that cost points, with the cases that it holds for."""
    cases: dict[str, list[str]] = {}
    for case, verdict in zip(task.cases, verdicts, strict=True):
        if verdict.share < 1.0:
            cases.setdefault(verdict.why, []).append(case.name)
    told = [f"{'every case' if len(names) == len(verdicts) else '; '.join(names)}: {printable(why)}" for why, names in cases.items()]
    rest = sum(len(names) for names in list(cases.values())[_SENTENCES:])
    return (*told[:_SENTENCES], *((f"and {rest} more of {len(verdicts)} cases",) if rest else ()))


def _verdict(case: Case, returned: Returned) -> Verdict:
    return Verdict(0.0, returned.failure) if returned.failure else case.judge(returned.value)
