"""Grades for people, for programs and for Gradescope."""

import csv
import io
import json
from collections.abc import Mapping, Sequence

from crossopt.solvers.grading.grade import TOLD_LESS
from crossopt.solvers.grading.marks import Grade, Mark

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
    lines += [line for said in (_less(grade) if grade.points < grade.out_of else "", grade.note) if said for line in ("", f"  {said}")]
    return "\n".join(lines) + "\n"


def grade_json(grade: Grade) -> str:
    """The same as plain data."""
    marks = [{"name": mark.name, "points": mark.points, "out_of": mark.out_of, "why": list(mark.why)} for mark in grade.marks]
    document = {"assignment": grade.assignment, "points": grade.points, "out_of": grade.out_of, "tasks": marks}
    return _text(document | {name: text for name, text in _said(grade) if text})


def _said(grade: Grade) -> tuple[tuple[str, str], ...]:
    return ("refused", grade.refused), ("graded", grade.file), ("fault", grade.fault), ("note", grade.note)


def grade_gradescope(grade: Grade) -> str:
    """What Gradescope reads as /autograder/results/results.json (its autograder specification). Marks of hidden cases, and with them the
    score, are shown when grades are published: who could see them before would hand in until all is right."""
    later = "marks and points are shown when grades are published" if grade.hidden else ""
    said = "\n".join(
        text for text in (grade.refused, f"graded: {grade.file}" if grade.file else "", later, _less(grade), grade.note) if text
    )
    shown = {"visibility": "after_published", "stdout_visibility": "hidden"} if grade.hidden else {}
    board = {} if grade.above is None else {"leaderboard": [{"name": _BOARD, "value": round(100.0 * grade.above, 2), "order": "asc"}]}
    return _text({"score": grade.points, "output": said, "tests": [_test(mark, grade.hidden) for mark in grade.marks]} | shown | board)


def class_csv(students: Sequence[str], grades: Mapping[str, Mapping[str, Grade]]) -> str:
    """A line for each student: points by assignment, empty where nothing was handed in, their sum, of how many, in per cent, and in remarks
    what could not be looked at, what of two files was, and where a program of which no function returned anything failed first."""
    names = sorted({name for one in grades.values() for name in one})
    out_of = sum(max(one[name].out_of for one in grades.values() if name in one) for name in names)
    rows = [["student", *names, "points", "out of", "per cent", "remarks"]]
    for student in students:
        own = grades.get(student, {})
        remarks = "; ".join(f"{name}: {said}" for name in names if name in own and (said := _remark(own[name])))
        points = [_points(own[name].points) if name in own else "" for name in names]
        reached = sum(grade.points for grade in own.values())
        rows.append([student, *points, _points(reached), str(out_of), _points(100.0 * reached / out_of) if out_of else "", remarks])
    return table_csv(rows)


def _remark(grade: Grade) -> str:
    chosen = f"graded: {grade.file}" if " beside it " in grade.file else ""
    return grade.refused or "; ".join(said for said in (f"nothing runs: {grade.fault}" if grade.fault else "", chosen) if said)


def board_text(title: str, above: Mapping[str, float]) -> str:
    """Who is nearest to the proved bound, as a table in Markdown."""
    rows = sorted(above.items(), key=lambda pair: (pair[1], pair[0]))
    lines = [f"# {title}", "", "| place | student | above the proved bound |", "|---|---|---|"]
    places = [1 + sum(other < value for _, other in rows) for _, value in rows]
    cells = [(place, student.replace("|", "/"), f"{value:.2%}") for place, (student, value) in zip(places, rows, strict=True)]
    return "\n".join([*lines, *(f"| {place} | {student} | {value} |" for place, student, value in cells)]) + "\n"


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
