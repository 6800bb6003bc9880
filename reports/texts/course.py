"""Grades for people, for programs and for Gradescope."""

import json

from crossopt.solvers.grading.marks import Grade, Mark

_WIDTH = 52


def grade_text(grade: Grade) -> str:
    """The points of each task and a sentence for each that was lost."""
    lines = [f"{grade.assignment}   {_points(grade.points)} of {grade.out_of} points"]
    if grade.refused:
        lines += ["", f"  {grade.refused}"]
    for mark in grade.marks:
        lines += ["", f"  {mark.name:<{_WIDTH}} {_points(mark.points):>6} of {mark.out_of}"]
        lines += [f"      {why}" for why in ([] if grade.refused else mark.why)]
    if grade.note:
        lines += ["", f"  {grade.note}"]
    return "\n".join(lines) + "\n"


def grade_json(grade: Grade) -> str:
    """The same as plain data."""
    marks = [{"name": mark.name, "points": mark.points, "out_of": mark.out_of, "why": list(mark.why)} for mark in grade.marks]
    document = {"assignment": grade.assignment, "points": grade.points, "out_of": grade.out_of, "tasks": marks}
    return _text(document | {name: text for name, text in (("refused", grade.refused), ("note", grade.note)) if text})


def grade_gradescope(grade: Grade) -> str:
    """What Gradescope reads as /autograder/results/results.json (its autograder specification)."""
    said = "\n".join(text for text in (grade.refused, grade.note) if text)
    return _text({"score": grade.points, "output": said, "tests": [_test(mark) for mark in grade.marks]})


FORMATS = {"text": grade_text, "json": grade_json, "gradescope": grade_gradescope}


def _test(mark: Mark) -> dict[str, object]:
    return {"name": mark.name, "score": mark.points, "max_score": mark.out_of, "output": "\n".join(mark.why)}


def _text(document: dict[str, object]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _points(points: float) -> str:
    return f"{points:.2f}".rstrip("0").rstrip(".")
