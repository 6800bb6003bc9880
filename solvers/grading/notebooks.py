"""Assignments as notebooks, made from their README and starter, and programs out of notebooks that are handed in.

A notebook is plain JSON (nbformat 4.5): texts, a cell for each hole, and a last one that shows what the functions say of the public case,
up to the first hole that is left. That one is tagged, so that it is no part of the program.
"""

import ast
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossopt.instances.course.handed_in import SHOWN, lines_in, notebook_for, starts_of
from crossopt.solvers.grading.marks import HANDOUTS

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
    first = next(place for place, node in enumerate(body) if isinstance(node, ast.FunctionDef))
    head = "\n".join(lines[body[1].lineno - 1 : body[first - 1].end_lineno])
    *holes, last = body[first:]
    own = ["\n".join(lines[node.lineno - 1 : node.end_lineno]) for node in holes]
    if not isinstance(last, ast.If):
        raise ValueError("a starter ends with what it runs as a program")
    run = "\n".join(lines[last.body[0].lineno - 1 : last.end_lineno])
    shown = f"try:  # this cell is no part of what you hand in\n{run}\nexcept NotImplementedError as hole:\n    print(hole)"
    return [_beside(part) for part in (head, *own)], _beside(shown)


def _beside(text: str) -> str:
    """A notebook has no file of its own: it is run in its folder."""
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

    def placed(self, said: str, program: str) -> str:
        """What is said of lines of the program, said of the notebook's."""

        def place(found: re.Match[str]) -> str:
            line = int(found[1]) - 1
            there = self.lines[line] if line < len(self.lines) else None
            return f"({self.notebook})" if there is None else f"(line {there[1]} of cell {there[0]} of code in {self.notebook})"

        return re.sub(rf"\(line (\d{{1,9}}) of {re.escape(program)}\)", place, said)


def program_in(notebook: str) -> str:
    """The program of a notebook; a ValueError where it is none."""
    return "\n".join(line for _, _, line in lines_in(notebook))


def write_program(folder: Path, name: str) -> Taken | None:
    """Where one notebook is handed in instead of a program, or beside one that is all holes, write its program there; what is none is left
    to be told as missing."""
    notebook, beside = notebook_for(folder, name), (folder / name).exists()
    if notebook is None or notebook.stat().st_size > _LARGEST:
        return None
    try:
        lines = lines_in(notebook.read_text(encoding="utf-8"))
    except (ValueError, TypeError, RecursionError):
        return None
    (folder / name).write_text("\n".join(line for _, _, line in lines), encoding="utf-8")
    return Taken(notebook.name, beside, tuple((number, place) for number, place, _ in lines), tuple(starts_of(lines)))
