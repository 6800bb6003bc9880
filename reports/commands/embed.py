"""The command `embed`: a question about embedding tables in one line."""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from crossopt.instances.errors import InstanceError
from crossopt.instances.files.saved import write_whole
from crossopt.instances.question import read_given
from crossopt.reports.commands.console import check_target, code_of, seconds_of, usage
from crossopt.reports.commands.progress import progress_on
from crossopt.reports.render.width import fitted
from crossopt.reports.shown import text_of
from crossopt.solvers.answer import Limits, to_text
from crossopt.solvers.checking import solve_and_verify
from crossopt.solvers.family import family_of

KIND: Final = "embeddings"
_CLUSTER: Final = ("devices", "devices_per_node", "hbm", "ddr", "ssd", "reserve", "dense")
_CHOICES: Final = ("sharding", "kernel", "columns", "cache", "narrowest")
_USUAL: Final = 30.0
"""Seconds without a time limit."""


def embed(options: Namespace) -> int:
    """Answer, print and write; the exit code is that of `solve`."""
    for option, path in (("--save", options.save), ("--out", options.out)):
        check_target(path, option)
    text = "\n".join(_lines(options)) + "\n"
    limits = Limits(seconds_of(options.time_limit) if options.time_limit else _USUAL)
    try:
        question = read_given(text, KIND)
    except InstanceError as error:
        usage("; ".join(dict.fromkeys(f"{_option(fault.path)}{fault.message}" for fault in error.faults)))
    with progress_on(sys.stderr, "ms") as watch:
        result = solve_and_verify(family_of(KIND), question, "auto", limits, watch)
    if options.save is not None:
        write_whole(options.save, text)
    if options.out is not None:
        write_whole(options.out, to_text(result))
    sys.stdout.write(fitted(text_of(KIND, question, result, options.verbose)))
    return code_of(result.status, unproved=False)


def _option(path: str) -> str:
    """The option that writes the key at a path."""
    name = path.rpartition(".")[2].partition("[")[0]
    if path.startswith("tables"):
        return "TABLES: " if path in {"tables", "tables.file"} else f"{path}: "
    return f"--{'minimize' if name == 'objective' else name.replace('_', '-')}: " if name else ""


def _lines(options: Namespace) -> Iterator[str]:
    """The question in YAML."""
    path = Path(options.tables)
    yield f"kind: {KIND}"
    yield f"name: {json.dumps(path.stem)}"
    yield f"tables: {json.dumps({'file': str(path.resolve())})}"
    cluster = {name: getattr(options, name) for name in _CLUSTER if getattr(options, name) is not None}
    choices = {name: getattr(options, name) for name in _CHOICES if getattr(options, name) is not None}
    listed = {name: text if name == "narrowest" else [part.strip() for part in text.split(",")] for name, text in choices.items()}
    yield from (f"{name}: {_plain(given)}" for name, given in (("cluster", cluster), ("choices", listed)) if given)
    for key, value in (("batch", options.batch), ("optimizer", options.optimizer), ("objective", options.minimize)):
        if value is not None:
            yield f"{key}: {json.dumps(value)[1:-1] if value.isidentifier() or value.isdecimal() else json.dumps(value)}"


def _plain(given: dict[str, str | list[str]]) -> str:
    """A mapping in YAML's flow style, in which numbers stay numbers."""

    def text(value: str) -> str:
        return value if value.replace(".", "", 1).isdecimal() else json.dumps(value)

    rows = (
        f"{key}: [{', '.join(map(text, value))}]" if isinstance(value, list) else f"{key}: {text(value)}" for key, value in given.items()
    )
    return f"{{{', '.join(rows)}}}"
