"""Grades for people, for programs and for Gradescope."""

import argparse
import csv
import io
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from crossopt.instances.files.saved import naming, write_atomically
from crossopt.reports.commands.console import check_target, usage
from crossopt.solvers.grading import classes
from crossopt.solvers.grading.assignments.expert import question
from crossopt.solvers.grading.grade import ASSIGNMENTS, LAB, SOLUTIONS, TOLD_LESS, assignment_named, graded, notebook_of
from crossopt.solvers.grading.marks import BESIDE, HANDOUTS, PRACTICE, Assignment, Grade, Mark, seed_of
from crossopt.solvers.grading.walls import exposed, missing, unable

_WIDTH = 52
_BOARD = "% above the proved bound"
_OBEYED = ("=", "+", "-", "@")
"""What spreadsheets take for the beginning of a formula."""


def grade_text(grade: Grade) -> str:
    """The points of each task and a sentence for each that was lost."""
    lines = [f"{grade.assignment}   {_points(grade.points)} of {grade.out_of} points"]
    if grade.file:
        lines.append(f"  graded: {grade.file}")
    if grade.refused:
        lines += ["", f"  {grade.refused}"]
    for mark in grade.marks:
        lines += ["", f"  {mark.name:<{_WIDTH}} {_points(mark.points):>6} of {mark.out_of}"]
        lines += [f"      {why}" for why in ([] if grade.refused else mark.why)]
    lines += [line for text in (_less(grade) if grade.points < grade.out_of else "", grade.note) if text for line in ("", f"  {text}")]
    return "\n".join(lines) + "\n"


def grade_json(grade: Grade) -> str:
    """A grade as JSON: points of each task with the reasons of lost ones."""
    marks = [{"name": mark.name, "points": mark.points, "out_of": mark.out_of, "why": list(mark.why)} for mark in grade.marks]
    document = {"assignment": grade.assignment, "points": grade.points, "out_of": grade.out_of, "tasks": marks}
    return _text(document | {name: text for name, text in _grade_fields(grade) if text})


def _grade_fields(grade: Grade) -> tuple[tuple[str, str], ...]:
    return ("refused", grade.refused), ("graded", grade.file), ("fault", grade.fault), ("note", grade.note)


def grade_gradescope(grade: Grade) -> str:
    """What Gradescope reads as /autograder/results/results.json (its autograder specification). Marks of hidden cases, and with them the
    score, are shown when grades are published: who could see them before would hand in until all is right."""
    later = "marks and points are shown when grades are published" if grade.hidden else ""
    output = "\n".join(
        text for text in (grade.refused, f"graded: {grade.file}" if grade.file else "", later, _less(grade), grade.note) if text
    )
    shown = {"visibility": "after_published", "stdout_visibility": "hidden"} if grade.hidden else {}
    board = {} if grade.above is None else {"leaderboard": [{"name": _BOARD, "value": round(100.0 * grade.above, 2), "order": "asc"}]}
    return _text({"score": grade.points, "output": output, "tests": [_test(mark, grade.hidden) for mark in grade.marks]} | shown | board)


def class_csv(students: Sequence[str], grades: Mapping[str, Mapping[str, Grade]]) -> str:
    """A line for each student: points by assignment, empty where nothing was handed in, their sum, of how many, in per cent, and in remarks
    what could not be looked at, what of two files was, and where a program of which no function returned anything failed first."""
    names = sorted({name for by_assignment in grades.values() for name in by_assignment})
    out_of = sum(max(by_assignment[name].out_of for by_assignment in grades.values() if name in by_assignment) for name in names)
    rows = [["student", *names, "points", "out of", "per cent", "remarks"]]
    for student in students:
        own = grades.get(student, {})
        remarks = "; ".join(f"{name}: {remark}" for name in names if name in own and (remark := _remark(own[name])))
        points = [_points(own[name].points) if name in own else "" for name in names]
        reached = sum(grade.points for grade in own.values())
        rows.append([student, *points, _points(reached), str(out_of), _points(100.0 * reached / out_of) if out_of else "", remarks])
    return table_csv(rows)


def _remark(grade: Grade) -> str:
    chosen = f"graded: {grade.file}" if " beside it " in grade.file else ""
    return grade.refused or "; ".join(text for text in (f"nothing runs: {grade.fault}" if grade.fault else "", chosen) if text)


def board_text(title: str, above: Mapping[str, float]) -> str:
    """Who is nearest to the proved bound, as a table in Markdown."""
    rows = sorted(above.items(), key=lambda pair: (pair[1], pair[0]))
    lines = [f"# {title}", "", "| place | student | above the proved bound |", "|---|---|---|"]
    places = [1 + sum(other < value for _, other in rows) for _, value in rows]
    cells = [(rank, student.replace("|", "/"), f"{value:.2%}") for rank, (student, value) in zip(places, rows, strict=True)]
    return "\n".join([*lines, *(f"| {rank} | {student} | {value} |" for rank, student, value in cells)]) + "\n"


def table_csv(rows: Sequence[Sequence[str]]) -> str:
    """Rows as CSV; no cell is a formula."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([f"'{cell}" if cell.startswith(_OBEYED) else cell for cell in row] for row in rows)
    return text.getvalue()


FORMATS = {"text": grade_text, "json": grade_json, "gradescope": grade_gradescope}


def _test(mark: Mark, hidden: bool) -> dict[str, object]:
    shown = {"visibility": "after_published"} if hidden else {}
    return {"name": mark.name, "score": mark.points, "max_score": mark.out_of, "output": "\n".join(mark.why)} | shown


def _less(grade: Grade) -> str:
    return TOLD_LESS.format(grade.assignment.partition("-")[0].lstrip("0")) if grade.hidden else ""


def _text(document: dict[str, object]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _points(points: float) -> str:
    return f"{points:.2f}".rstrip("0").rstrip(".")


# The command line of the course: `grade ASSIGNMENT SUBMISSION`, `grade FOLDER` of a class, and what `course` lists and writes.

_GRADED, _REFUSED = 0, 3
_SEED = "CROSSOPT_COURSE_SEED"
_SECRET = 'python -c "import secrets; print(secrets.token_hex(16))"'
_SHORT = 16
"""Signs of a word below which it may be found by trying words until a question that was handed out comes out."""


def grade(options: argparse.Namespace) -> int:
    """Grade one submission, print and write; exit code 3 if it could not be graded. Or the submissions of a class."""
    if options.submission is None:
        return _grade_class(options)
    _only_of_a_class(options)
    assignment = _assignment(options.assignment)
    submission = options.submission
    if not submission.exists():
        usage(f"{submission}: there is no such submission (name a folder or a .zip)")
    check_target(options.out)
    walls = assignment.judge is None and not options.unconfined
    if assignment.judge is None:
        _check_walls(options.unconfined)
    found = graded(assignment, submission, _seed(options), walls)
    text = FORMATS[options.format](found)
    try:
        if options.out and str(options.out) != "-":
            write_atomically(options.out, text)
    finally:
        sys.stdout.write(text)
    return _REFUSED if found.refused else _GRADED


def _check_walls(unconfined: bool) -> None:
    if reason := unable():
        usage(reason)
    if unconfined:
        return
    if reason := missing():
        remedy = "your own program: --unconfined; of others: on Linux 5.13 or newer, or with it on a machine to throw away"
        usage(f"{reason}, so that a submission could harm it ({remedy})")
    if exposed(HANDOUTS):
        usage("the answers lie where a submission can read them (install crossopt into a virtual environment, as README says)")


_OF_A_CLASS = ("roster", "only", "feedback", "similar", "board", "jobs")


def _only_of_a_class(options: argparse.Namespace) -> None:
    if given := [f"--{'assignment' if name == 'only' else name}" for name in _OF_A_CLASS if getattr(options, name) is not None]:
        usage(f"{', '.join(given)}: this is about a class (crossopt grade FOLDER --out grades.csv)")


def _grade_class(options: argparse.Namespace) -> int:
    """A line for each student into a file; what was graded before with the same word is not graded again."""
    folder = Path(options.assignment)
    if not folder.is_dir():
        if options.assignment.isdecimal():
            usage(f"the submission to assignment {folder} is missing (write `crossopt grade {folder} FOLDER`, with a folder or a .zip)")
        usage(f"{folder}: there is no such folder of a class (`crossopt grade 1 FOLDER` grades one submission)")
    if options.out is None or str(options.out) == "-" or options.format != "text" or options.student is not None:
        usage("the grades of a class are written as CSV (--out grades.csv, without --format and --student)")
    if options.jobs is not None and options.jobs < 1:
        usage(f"--jobs {options.jobs}: one at a time at least")
    for target in (options.out, options.similar, options.board):
        check_target(target)
    _check_walls(options.unconfined)
    try:
        found = classes.find_class(folder, options.roster, _assignment(options.only) if options.only else None)
    except classes.ClassError as error:
        usage(str(error))
    asking = classes.Asking(_hidden_seed(options), not options.unconfined, options.jobs or os.cpu_count() or 1)
    journal = options.out.with_name(f"{options.out.name}.journal")
    grades: dict[str, dict[str, Grade]] = {}
    for row in classes.grade_class(found.handed, asking, journal, _progress):
        grades.setdefault(row.handed.student, {})[row.grade.assignment] = row.grade
    write_atomically(options.out, class_csv(found.students, grades))
    _write_more(options, found, grades)
    for unlisted in found.strangers:
        sys.stdout.write(f"left out: {unlisted}\n")
    sys.stdout.write(f"{options.out}: {len(found.students)} students, {len(found.handed)} submissions\n")
    return _GRADED


def _progress(done: int, of: int, row: classes.Graded) -> None:
    sys.stderr.write(
        f"{done} of {of}  {row.handed.student}  {row.grade.assignment}  {row.grade.points:g}{' !' if row.grade.refused else ''}\n"
    )


def _write_more(options: argparse.Namespace, found: classes.Class, grades: dict[str, dict[str, Grade]]) -> None:
    """Feedback, the programs that are alike, and the board, where they are asked for."""
    if options.feedback:
        for student, own in grades.items():
            directory = options.feedback / student
            directory.mkdir(parents=True, exist_ok=True)
            for name, grade in own.items():
                write_atomically(directory / f"{name}.txt", FORMATS["text"](grade))
    if options.similar:
        pairs = [(p.assignment, p.first, p.second, f"{p.share:.2f}", str(p.prints)) for p in classes.find_similar(found.handed)]
        write_atomically(options.similar, table_csv([("assignment", "student", "other", "share", "fingerprints"), *pairs]))
    if options.board:
        above = {student: grade.above for student, own in grades.items() for grade in own.values() if grade.above is not None}
        write_atomically(options.board, board_text("Above the proved bound, by hand", above))


def course(options: argparse.Namespace) -> int:
    """List the assignments, or write what students or Gradescope get."""
    if options.action not in ("release", "gradescope") and options.target is not None:
        usage(f"course {options.action} {options.target}: this takes no folder (leave {options.target} out)")
    return _ACTIONS[options.action](options)


def _list(_: argparse.Namespace) -> int:
    width = max(len(assignment.name) for assignment in ASSIGNMENTS)
    sys.stdout.writelines(f"{assignment.name:<{width}}  {assignment.title}\n" for assignment in ASSIGNMENTS)
    sys.stdout.write(f"{LAB:<{width}}  a lab, of which nothing is graded: see its README in what `course release` writes\n")
    return _GRADED


def _question(options: argparse.Namespace) -> int:
    sys.stdout.write(question(_seed(options)))
    return _GRADED


def _release_all(options: argparse.Namespace) -> int:
    target = options.target
    if target is None:
        usage("course release: name a folder to write the handouts to, such as hand-out")
    if target.exists():
        usage(f"{target}: this is there already (name a new folder)")
    if not target.absolute().parent.is_dir():
        usage(f"{target}: there is no folder {target.parent} (make it first)")
    try:
        students = classes.read_roster(options.roster) if options.roster else ()
    except classes.ClassError as error:
        usage(str(error))
    _release(target, {student: question(seed_of(_seed_of(options), student)) for student in students})
    also = f", and a question of assignment 8 for each of {len(students)} students" if students else ""
    sys.stdout.write(f"{target}: {len(ASSIGNMENTS)} assignments, without solutions{also}\n")
    return _GRADED


def _gradescope(options: argparse.Namespace) -> int:
    if options.target is None or options.only is None:
        usage("course gradescope: name a .zip and what it grades, such as autograder.zip --assignment 2")
    check_target(options.target)
    task = _assignment(options.only)
    options.target.write_bytes(classes.autograder(task, _hidden_seed(options), options.unconfined))
    sys.stdout.write(f"{options.target}: an autograder of {task.name} for Gradescope, which holds the word that cases are drawn from\n")
    return _GRADED


_ACTIONS = {"list": _list, "question": _question, "release": _release_all, "gradescope": _gradescope}


def _seed_of(options: argparse.Namespace) -> str:
    if options.seed is not None and not options.seed.strip():
        usage("--seed: this is empty (name a word, or leave --seed out)")
    seed = options.seed or os.environ.get(_SEED) or PRACTICE
    if seed != PRACTICE and len(seed) < _SHORT:
        sys.stderr.write(f"the hidden word has {len(seed)} signs: who tries words finds it from what it draws ({_SECRET} makes one)\n")
    return seed


def _hidden_seed(options: argparse.Namespace) -> str:
    """The word that hidden cases are drawn from, with a warning where it is the one of the practice cases."""
    seed = _seed_of(options)
    if seed == PRACTICE:
        sys.stderr.write(f"no hidden word was given, so that cases are those that students practise with (--seed WORD, or {_SEED})\n")
    return seed


def _seed(options: argparse.Namespace) -> str:
    if options.student is not None and not options.student.strip():
        usage("--student: this is empty (name a student, or leave --student out)")
    return seed_of(_seed_of(options), options.student)


def _release(target: Path, questions: dict[str, str]) -> None:
    """Write the whole folder or nothing."""
    with naming(target), tempfile.TemporaryDirectory(prefix=".crossopt-", dir=target.absolute().parent) as temporary:
        tree = Path(temporary) / "tree"
        shutil.copytree(HANDOUTS, tree, ignore=shutil.ignore_patterns(SOLUTIONS.name, "__pycache__", ".pytest_cache"))
        for assignment in ASSIGNMENTS:
            shutil.copy(tree / BESIDE, tree / assignment.name)
            (tree / assignment.name / f"{assignment.name}.ipynb").write_text(notebook_of(assignment.name), encoding="utf-8")
        (tree / BESIDE).unlink()
        for student, text in questions.items():
            own = tree / "questions" / student
            own.mkdir(parents=True)
            (own / "question.yaml").write_text(text, encoding="utf-8")
        tree.rename(target)


def _assignment(name: str) -> Assignment:
    found = assignment_named(name)
    if found is None:
        usage(f"there is no assignment {name!r} (one of {', '.join(assignment.name for assignment in ASSIGNMENTS)})")
    return found
