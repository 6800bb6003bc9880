"""Your functions, for the public tests: those of solution.py; where it is not there or all holes, those of the only notebook; else those of
starter.py. What they return is read as plain data. The grader takes programs out of notebooks, and reads what is returned, by this file."""

import __future__

import ast
import json
import re
import runpy
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from types import CodeType
from typing import Any

SHOWN = "shown"
"""The tag of a cell that is no part of the program."""
HOLE = "is still a hole"
_MAGIC = re.compile(r"\s*(?:[%!?]|[\w.]+\s*=\s*[%!]|[\w.]+(?:\(.*\))?\?{1,2}\s*$)")
"""A command of the notebook itself: `%time f()`, `!ls`, `x = !ls`, `f?`, `f(x)??`."""
_PYTHON = ("%%time", "%%capture", "%%prun")
"""What may stand over a cell that is Python all the same."""


class Functions(dict[str, Any]):
    """By their names; of one that is not there it is told why."""

    why = ""

    def __missing__(self, name: str) -> object:
        raise LookupError(f"there is no function {name}{self.why}")


def functions(folder: Path) -> Functions:
    """What is handed in here, or the starter."""
    notebook = notebook_for(folder, "solution.py")
    program = next((path for path in (folder / "solution.py", folder / "starter.py") if path.is_file()), None)
    if notebook is None and program is not None:
        return _plainly(runpy.run_path(str(program)))
    if notebook is None:
        return Functions()
    lines, names = lines_in(notebook.read_text(encoding="utf-8")), dict[str, Any](__name__="solution")
    failed = execute(statements_of("\n".join(line for _, _, line in lines), starts_of(lines), notebook.name), names)
    found = _plainly(names)
    found.why = f" in {notebook.name}{f', and a cell of it fails: {type(failed).__name__}: {failed}' if failed else ''}"
    return found


def _plainly(names: dict[str, Any]) -> Functions:
    def plainly(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *given, **named: json.loads(json.dumps(function(*given, **named), default=plain, allow_nan=False))

    return Functions({name: plainly(value) for name, value in names.items() if callable(value)})


def plain(value: object) -> object:
    """Sets, figures and arrays of numpy as Python's own lists and figures; tuples are lists in any case."""
    if isinstance(value, set | frozenset):
        try:
            return sorted(value)
        except TypeError:
            return list(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} is returned, where figures, texts, lists and dictionaries are meant")


def notebooks_in(folder: Path) -> list[Path]:
    """Those at the top of a folder."""
    return sorted(path for path in folder.glob("*.ipynb") if path.is_file())


def notebook_for(folder: Path, program: str) -> Path | None:
    """The only notebook, where the program is not there, or is all holes."""
    notebooks, own = notebooks_in(folder), folder / program
    if len(notebooks) != 1 or (own.exists() and not (own.is_file() and _all_holes(own.read_text(encoding="utf-8", errors="replace")))):
        return None
    return notebooks[0]


def _all_holes(program: str) -> bool:
    return 0 < program.count(HOLE) >= len(re.findall(r"^def ", program, re.MULTILINE))


_DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
Line = tuple[int, int, str]
"""A line of a program, with the number of its cell among those of code, and of its line there."""


def lines_in(notebook: str) -> list[Line]:
    """The program of a notebook: its cells of code, without those that only show something and without commands of the notebook itself;
    a ValueError where it is no notebook, or no text, as halves of signs are none."""
    document = json.loads(notebook)
    cells = document.get("cells") if isinstance(document, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise ValueError("this is no notebook")
    code = enumerate((cell for cell in cells if cell.get("cell_type") == "code"), start=1)
    parts = [(number, "".join(cell.get("source", ""))) for number, cell in code if SHOWN not in _tags(cell)]
    "".join(part for _, part in parts).encode()
    return [(number, place, line) for number, part in parts for place, line in enumerate([*_python(part), ""], start=1)]


def _python(cell: str) -> list[str]:
    """The lines of a cell; empty ones for those that are no Python."""
    lines = cell.splitlines()
    first = next((line.strip() for line in lines if line.strip()), "")
    foreign = first.startswith("%%") and not first.startswith(_PYTHON)
    return ["" if foreign or _MAGIC.match(line) else line for line in lines]


def _tags(cell: dict[str, Any]) -> list[Any]:
    metadata = cell.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    return tags if isinstance(tags, list) else []


def starts_of(lines: Sequence[Line]) -> list[int]:
    """In which lines of the program cells begin."""
    return [place for place, (_, line, _) in enumerate(lines, start=1) if line == 1]


Statement = tuple[CodeType | BaseException, bool]
"""A statement of a program, or why it is none, and whether it only defines something."""


def statements_of(program: str, starts: Sequence[int], name: str) -> list[Statement]:
    """The statements of a program, cell by cell; what is wrong in one cell is no other's fault."""
    lines, flags, found = program.split("\n"), 0, list[Statement]()
    for start, end in pairwise((*starts, len(lines) + 1)):
        try:
            statements = ast.parse("\n" * (start - 1) + "\n".join(lines[start - 1 : end - 1]), name).body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            found.append((error, True))
            continue
        for statement in statements:
            if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                flags |= sum(getattr(__future__, one.name).compiler_flag for one in statement.names if hasattr(__future__, one.name))
            try:
                code = compile(ast.Module([statement], []), name, "exec", flags, dont_inherit=True)
            except Exception as error:  # noqa: BLE001 - whatever a statement is
                found.append((error, isinstance(statement, _DEFINING)))
            else:
                found.append((code, isinstance(statement, _DEFINING)))
    return found


def execute(statements: Sequence[Statement], names: dict[str, Any], is_late: Callable[[], bool] = lambda: False) -> BaseException | None:
    """Run statement by statement; one that fails costs what it defines, and no other. The first failure. When it is late, of what is left
    functions, classes and imports alone are run."""
    first: BaseException | None = None
    for statement, defines in statements:
        if is_late() and not defines:
            continue
        try:
            if isinstance(statement, BaseException):
                raise statement
            exec(statement, names)  # noqa: S102 - the student's own program
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a statement does
            first = first or error
    return first
