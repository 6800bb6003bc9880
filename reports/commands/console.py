"""What commands do with their arguments before the work begins, and how a command ended, with its exit code."""

import argparse
import hashlib
import os
import re
import sys
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.kinds import question_path

if TYPE_CHECKING:
    from crossopt.solvers.answer import Status


# How a command ended, and the exit code that says so.


class Ending(NamedTuple):
    """How a command ended."""

    status: "Status"
    proved: bool
    complete: bool = True
    """Whether it came to its end; a comparison that did not has a table of what was done."""
    refused: bool = False
    """Whether an engine that was named does not answer a question that was asked."""
    as_expected: bool = True
    """Whether nothing that a study expects is otherwise."""


ANSWERED, NO_DESIGN, UNPROVED, ENDED_EARLY, OTHERWISE, INFEASIBLE = 0, 10, 11, 12, 13, 20
"""Exit codes of answers."""
NOT_ANSWERED = 2
"""Of a comparison with an engine that does not answer, as of `solve` with that engine."""


def code_of(status: "Status", unproved: bool) -> int:
    """The exit code that tells of an answer."""
    if status == "INFEASIBLE":
        return INFEASIBLE
    if status == "UNKNOWN":
        return NO_DESIGN
    return UNPROVED if unproved else ANSWERED


def code_of_ending(ending: Ending) -> int:
    """The exit code of a comparison: ended early, with engines that refused, against what its study expects, or that of its answer."""
    if not ending.complete:
        return ENDED_EARLY
    if ending.refused:
        return NOT_ANSWERED
    return code_of(ending.status, unproved=False) if ending.as_expected else OTHERWISE


INTERRUPTS: list[int] = []
"""Signals that came to this process. An engine that stops its solver on the first one may go on; a command of many searches must not."""


def interrupt(number: int, frame: object) -> NoReturn:
    """Handler of signals that end a command."""
    del frame
    INTERRUPTS.append(number)
    raise KeyboardInterrupt


# What commands do with their arguments before the work begins: places that can be written, files that are meant, times, threads.

USAGE = 2
_PLAIN = re.compile(r"(?!null$)[\w.+-][\w.+/^ -]*")
"""Texts that YAML reads as they are."""
_NUMBER = re.compile(r"[\d.]+(e[+-]?\d+)?")
_HEAD = 4096
"""Bytes of a page in which its title stands."""


_WRITTEN = ("save", "out", "log", "policy", "losses_template", "named", "chart", "svg", "plot", "key")
"""Options that name files to write, by their names in the code."""


def refuse_lost_files(options: argparse.Namespace) -> None:
    """Refuse to write over a file that is read, or two things into one file, before any work is done."""
    given = vars(options)
    read = [path for name, value in given.items() if name not in (*_WRITTEN, "command") for path in _paths_in(value)]
    written: dict[str, Path] = {}
    for name in _WRITTEN:
        path = given.get(name)
        if not isinstance(path, Path) or str(path) == "-" or (_is_there(path) and not _is_file(path)):
            continue
        option = f"--{name.replace('_', '-')}"
        for other in read:
            refuse_overwriting(path, other, option)
        if same := [before for before, known in written.items() if _is_same(path, known)]:
            usage(f"{option} {path}: {same[0]} is written there (name another file)")
        written[option] = path
        if name == "save":
            _refuse_unsaved(path, options.command)
        if name == "save" and options.command in _WITH_GRAPHS:
            written["the graph of --save"] = graph_beside(path)


def saved_question(command: str, text: str) -> str:
    """A question as `--save` writes it: below a line with the command and a digest, by which a later run knows its own unedited file."""
    return f"# written by crossopt {command} --save, {hashlib.sha256(text.encode()).hexdigest()[:16]}\n{text}"


def _refuse_unsaved(path: Path, command: str) -> None:
    """Refuse a question over a file that `--save` of this command did not write, or that was edited since."""
    if path.suffix.lower() in {".json", ".gz"}:
        usage(f"--save {path}: a question is written as YAML (name it {path.stem}.yaml)")
    is_small = _is_file(path) and path.stat().st_size < _LARGEST_SCANNED
    found = path.read_text(encoding="utf-8", errors="replace") if is_small else ""
    if found == saved_question(command, found.partition("\n")[2]):
        return
    for target in (path, *([graph_beside(path)] if command in _WITH_GRAPHS else [])):
        if _is_file(target) and target.stat().st_size:
            why = f"{target.name} is there, and `crossopt {command} --save` did not write it, or it was edited since"
            usage(f"--save {path}: {why} (name another file, or remove {target.name})")


_WITH_GRAPHS = ("place", "checkpoint", "quantize")
"""Commands that write the graph of a question beside it."""


def graph_beside(path: Path) -> Path:
    """Where the graph of a question goes that is written as this file."""
    return path.with_name(f"{path.stem}-graph.json")


def refuse_overwriting(path: Path, read: Path, option: str = "--out") -> None:
    """Refuse to write over a file that is read, or over a file that this names."""
    if _is_same(path, read):
        usage(f"{option} {path}: this file is read, and would be written over (name another file)")
    if read.suffix in _QUESTIONS and _is_file(path) and _is_file(read) and read.stat().st_size < _LARGEST_SCANNED:
        words = set(re.findall(r"[\w./-]+", read.read_text(encoding="utf-8", errors="replace")))
        if any(_is_same(path, read.parent / word) for word in words if word.endswith(path.name)):
            usage(f"{option} {path}: {read} reads this file (name another file)")


_QUESTIONS, _LARGEST_SCANNED = (".yaml", ".yml"), 1 << 20


def _paths_in(value: object) -> Iterator[Path]:
    """The files that an argument may name: paths, and texts that are a file or a setting to one."""
    if isinstance(value, Path):
        yield question_path(value)
    elif isinstance(value, str) and not set(value).isdisjoint("./"):
        yield Path(value.rpartition("=")[2])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _paths_in(item)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # such as a name that is too long
        return False


def _is_file(path: Path) -> bool:
    return _is_there(path) and path.is_file()


def _is_same(path: Path, other: Path) -> bool:
    return os.path.realpath(path) == os.path.realpath(other) or (_is_there(path) and _is_there(other) and path.samefile(other))


SHORT_FOR_SETTINGS = (
    *("bandwidth", "compatible", "compression", "contiguous", "cpus", "devices", "edge_unit", "memory", "microbatches", "pieces"),
    *("problem", "straight", "time_unit", "transfers", "without"),
)
"""Options that are short for settings of a question: `--edge-unit s` for `--set edge_unit=s`."""
FLAGS = {name: f"--{name.replace('_', '-')}" for name in (*SHORT_FOR_SETTINGS, "against", "form", "pareto", "workers", "workload")}
"""Options of `solve` that mean something for some questions only, by their names in the code."""


def refuse_options(options: argparse.Namespace, used: Container[str], question: str) -> None:
    """Refuse options that say nothing of a question instead of passing over them."""
    from crossopt.reports.arguments import parser_of_commands  # noqa: PLC0415

    plain = parser_of_commands().parse_args(["solve", "-"])
    for name, flag in FLAGS.items():
        if name not in used and getattr(options, name, getattr(plain, name)) != getattr(plain, name):
            usage(f"{flag}: this does not apply to {question} (leave it out)")


USUAL_LIMIT = 21_600.0
"""Seconds after which `solve` ends its search where no limit is given: six hours."""


def seconds_of(text: str | None) -> float:
    if text is None:
        return float("inf")
    from crossopt.instances.files.units import parse_quantity  # noqa: PLC0415

    try:
        return parse_quantity(text, "time")
    except ValueError:
        known = f"{text} has no unit (write {text}s for seconds" if text.isdecimal() else f"{text!r} is no time (write for example 60s"
        usage(f"--time-limit: {known}, 5min or 2h)")


def question_of(options: argparse.Namespace, keys: Mapping[str, str]) -> Any:  # noqa: ANN401 - of any kind
    """The question in the file that is named, with its options, by their names in the code, as settings of these keys."""
    from crossopt.instances.question import read  # noqa: PLC0415

    stated = {name: getattr(options, name, None) for name in keys}
    given = {f"{keys[name]}={_as_value(name, value)}": name for name, value in stated.items() if value is not None and value is not False}
    for setting in options.settings:
        if name := next((own for own in given if setting != own and setting.partition("=")[0].strip() == own.partition("=")[0]), ""):
            usage(f"{FLAGS[given[name]]}: --set {setting} says otherwise (keep one)")
    try:
        return read(question_path(options.file), (*options.settings, *given), getattr(options, "workload", None))
    except InstanceError as error:
        messages = [(fault, _of_option(fault, given)) for fault in error.faults]
        if all(message for _, message in messages):
            usage("; ".join(dict.fromkeys(message for _, message in messages)))
        faults = [replace(fault, message=message, path="") if message else fault for fault, message in messages]
        raise InstanceError(error.source, faults, error.undone) from error


def _of_option(fault: Fault, given: Mapping[str, str]) -> str:
    """The words of a fault that an option brought in, with its name; nothing of other faults."""
    for setting, name in given.items():
        message = fault.message.removesuffix(f" [from --set {setting}]").removesuffix(f" [from --set {setting.partition('=')[0]}]")
        if message != fault.message:
            return f"{FLAGS[name]}: {message}"
    return ""


def _as_value(name: str, value: object) -> str:
    """What was given as the value of a setting: lists where there are several, and numbers of bytes with their unit."""
    if isinstance(value, tuple):
        return str(value[0]) if len(value) == 1 else f"[{', '.join(map(str, value))}]"
    if not isinstance(value, str):
        return str(value).lower()
    parts = [part.strip() for part in value.split(",")]
    if name == "bandwidth":
        parts = [f"{part} B/s" if _NUMBER.fullmatch(part) else part for part in parts]
    quoted = [part if _PLAIN.fullmatch(part) else "'" + part.replace("'", "''") + "'" for part in parts]
    return quoted[0] if len(parts) == 1 else f"[{', '.join(quoted)}]"


def refuse_overwriting_others(path: Path, named: Path | None) -> None:
    """Refuse to overwrite an existing file under a default name, unless it is an older page of ours; a link that
    leads nowhere yet is one too."""
    if path != named and os.path.lexists(path) and not _is_page(path):
        usage(f"{path}: this is there already (say --out {path} to write over it, or name another file)")


def _is_page(path: Path) -> bool:
    """Whether a file is a page that was drawn here."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return b"crossopt report</title>" in file.read(_HEAD)


def check_target(path: Path | None, option: str = "--out") -> None:
    """Refuse a place that cannot be written before hours of work are lost on it."""
    if path is None or str(path) == "-":
        return
    from crossopt.instances.files.saved import check_writable  # noqa: PLC0415

    try:
        if path.is_dir():
            usage(f"{option} {path}: this is a directory (name a file)")
        if not path.parent.is_dir():
            usage(f"{option} {path}: there is no folder {path.parent} (make it first)")
        check_writable(path)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        usage(f"{option} {path}: this cannot be written, {reason} (name a file in a folder of yours)")


def load_numpy_without_threads() -> None:
    """The threads that numpy starts for products of matrices take longer to start than these commands need for all else."""
    name = "OPENBLAS_NUM_THREADS"
    if "numpy" in sys.modules or name in os.environ:
        return
    os.environ[name] = "1"
    try:
        import numpy  # noqa: F401, PLC0415 - it looks at the variable once, and processes that this one starts shall not
    finally:
        del os.environ[name]


def say(message: str) -> None:
    """A line on standard error; signs of a file's name that would act on a terminal are written as their numbers."""
    sys.stderr.write("".join(sign if sign == "\n" or sign.isprintable() else ascii(sign)[1:-1] for sign in f"{message}\n"))


def usage(message: str) -> NoReturn:
    say(f"crossopt: {message}")
    raise SystemExit(USAGE)
