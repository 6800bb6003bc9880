"""The command `embed`: a question about embedding tables in one line."""

import json
import re
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from crossopt.instances.embeddings.question import tables_text
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.careful import why_unreadable
from crossopt.instances.files.units import NUMBER
from crossopt.instances.files.written import Files
from crossopt.instances.question import read_given
from crossopt.reports.commands.console import usage
from crossopt.reports.commands.networks import Written, answer_written, check_targets

KIND: Final = "embeddings"
_CLUSTER: Final = ("devices", "devices_per_node", "hbm", "ddr", "ssd", "reserve", "dense")
_CHOICES: Final = ("sharding", "kernel", "columns", "cache", "narrowest")
_USUAL: Final = 30.0
"""Seconds without a time limit."""


def embed(options: Namespace) -> int:
    """Answer, print and write; the exit code is that of `solve`."""
    check_targets(options)
    path, text = Path(options.tables), "\n".join(_lines(options)) + "\n"
    try:
        question = read_given(text, KIND, files=Files(Path(), {str(path.resolve()): tables_text(path)}))
    except OSError as error:
        usage(f"{path}: {why_unreadable(error)}")
    except InstanceError as error:
        usage("; ".join(dict.fromkeys(f"{_option(fault, options.tables)}{fault.message}" for fault in error.faults)))
    return answer_written(options, KIND, "" if options.minimize == "fewest_devices" else "ms", Written(text), question, _USUAL)


def _option(fault: Fault, tables: str) -> str:
    """The option that writes the key at a path, or the place in the file of the tables."""
    path, name = fault.path, fault.path.rpartition(".")[2].partition("[")[0]
    if not path and (fault.line, fault.column) != (1, 1):
        return f"{tables}:{fault.line}:{fault.column}: "
    if path.startswith("tables"):
        return f"{tables}: " if path in {"tables", "tables.file"} else f"{tables}: {path}: "
    return f"--{'minimize' if name == 'objective' else name.replace('_', '-')}: " if name else f"{tables}: "


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
            yield f"{key}: {value if value.isidentifier() else _scalar(value)}"


def _scalar(value: str) -> str:
    """A value in YAML: a number as it is, and any other text in quotes."""
    return value if re.fullmatch(NUMBER, value) else json.dumps(value)


def _plain(given: dict[str, str | list[str]]) -> str:
    """A mapping in YAML's flow style."""
    rows = (
        f"{key}: [{', '.join(map(_scalar, value))}]" if isinstance(value, list) else f"{key}: {_scalar(value)}"
        for key, value in given.items()
    )
    return f"{{{', '.join(rows)}}}"
