"""The command `place`: the device of each operator of a network in one line; the question that it writes can be kept."""

import json
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from crossopt.instances.codesign.short import groups_in
from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.instances.files.written import Files
from crossopt.instances.operators.graph_file import graph_text
from crossopt.instances.placement.question import PlacementQuestion
from crossopt.instances.question import read_given
from crossopt.reports.commands.console import usage
from crossopt.reports.commands.networks import Written, answer_written, check_targets, lengths_of, read_network

KIND = "placement"
_OPTIONS = {"graph.hardware": "--devices", "graph.precision": "--precision", "graph.bandwidth": "--bandwidth", "graph.file": "MODEL"}
"""Options by the keys of the question that they write, where they are called otherwise."""


def place(options: Namespace) -> int:
    """Answer, print and write; the exit code is that of `solve`."""
    check_targets(options)
    written, question = question_written(options)
    return answer_written(options, KIND, "ms", written, question)


def question_written(options: Namespace) -> tuple[Written, PlacementQuestion]:
    """The question as files, and as it is read."""
    graph = graph_text(read_network(options.model, lengths_of(options.settings)))
    graph_file = f"{(options.save or options.model).stem}-graph.json"
    try:
        text = "\n".join(_lines(options, graph_file)) + "\n"
    except ValueError as error:
        raise RefusedError(f"--devices: {error}") from error
    try:
        question: PlacementQuestion = read_given(text, KIND, files=Files(Path(), {graph_file: graph}))
    except InstanceError as error:
        usage("; ".join(dict.fromkeys(f"{_option(fault.path)}: {fault.message}" for fault in error.faults)))
    return Written(text, graph_file, graph), question


def _option(path: str) -> str:
    return _OPTIONS.get(path, f"--{path.replace('_', '-')}")


def _lines(options: Namespace, graph_file: str) -> Iterator[str]:
    """The question in YAML."""
    groups = groups_in(options.devices)
    if len(groups) > 1:
        raise ValueError("operators are placed on devices of one kind (name one, such as 4xh100)")
    section = {"file": graph_file, "hardware": groups[0].device, "training": options.training}
    section |= {key: value for key in ("precision", "bandwidth") if (value := getattr(options, key)) is not None}
    yield f"kind: {KIND}"
    yield f"name: {json.dumps(options.model.stem)}"
    yield f"graph: {json.dumps(section)}"
    yield f"devices: {groups[0].count}"
    for key in ("problem", "contiguous", "transfers", "memory"):
        if (value := getattr(options, key)) is not None:
            yield f"{key}: {json.dumps(value)}"
