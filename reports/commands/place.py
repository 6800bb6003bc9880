"""The commands `place` and `checkpoint`: the device of each operator of a network, or what a step computes again, in one line."""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from crossopt.instances.catalogue.registry import device
from crossopt.instances.codesign.short import device_named, groups_in
from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.instances.files.written import Files
from crossopt.instances.memory.question import MemoryQuestion
from crossopt.instances.operators.graph_file import graph_text
from crossopt.instances.placement.question import PlacementQuestion
from crossopt.instances.question import read_given
from crossopt.reports.commands.console import seconds_of, usage
from crossopt.reports.commands.networks import Written, answer_written, check_targets, lengths_of, read_network
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.checking import solve_and_verify
from crossopt.solvers.family import family_of

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


# The command `checkpoint`.

KIND_OF_MEMORY = "memory"
MOST_LENGTH, LIMIT_OF_A_LENGTH = 1 << 20, 60.0
_MEMORY_OPTIONS = {"graph": "MODEL", "hardware": "--hardware", "budget_share": "--share"}
"""Options by the keys of the question that they write, where they are called otherwise."""


def checkpoint(options: Namespace) -> int:
    """Answer, print and write; the exit code is that of `solve`."""
    check_targets(options)
    lengths = lengths_of(options.settings)
    if options.largest is not None:
        lengths[options.largest] = _largest(options, lengths)
    return answer_written(options, KIND_OF_MEMORY, "s", *memory_question(options, lengths))


def _largest(options: Namespace, lengths: dict[str, int]) -> int:
    """The greatest length of an axis for which a schedule is found, by doubling, then bisection; printed with why not one more."""
    if options.share is not None:
        usage("--largest: a share of the peak grows with the network (give --memory, or leave it to the device)")
    fits, fails, why = 0, 1, ""
    while fails <= MOST_LENGTH:
        status = _status(options, {**lengths, options.largest: fails})
        if status not in ("OPTIMAL", "FEASIBLE"):
            why = status
            break
        fits, fails = fails, 2 * fails
    while fails - fits > 1:
        middle = (fits + fails) // 2
        status = _status(options, {**lengths, options.largest: middle})
        fits, fails, why = (middle, fails, why) if status in ("OPTIMAL", "FEASIBLE") else (fits, middle, status)
    if not fits:
        proof = "as is proved" if why == "INFEASIBLE" else "as far as was found in time"
        raise RefusedError(f"--largest: {options.largest}=1 does not fit, {proof} (give more --memory, or --precision bf16)")
    more = "does not fit, as is proved" if why == "INFEASIBLE" else "was not found to fit in time"
    sys.stdout.write(f"{options.largest} of {fits:,} fits; {fits + 1:,} {more if why else 'was not tried'}\n")
    return fits


def _status(options: Namespace, lengths: dict[str, int]) -> str:
    """Of the question with axes of these lengths; without a search where everything or a single node decides."""
    _, question = memory_question(options, lengths)
    if question.graph.plain_peak <= question.budget:
        return "OPTIMAL"
    if max(question.graph.floors) > question.budget:
        return "INFEASIBLE"
    limits = Limits(seconds_of(options.time_limit) if options.time_limit else LIMIT_OF_A_LENGTH, gap=0.5)
    return solve_and_verify(family_of(KIND_OF_MEMORY), question, "auto", limits, unwatched).status


def memory_question(options: Namespace, lengths: dict[str, int]) -> tuple[Written, MemoryQuestion]:
    """The question as files, and as it is read."""
    graph = graph_text(read_network(options.model, lengths))
    graph_file = f"{(options.save or options.model).stem}-graph.json"
    try:
        text = "\n".join(_memory_lines(options, graph_file)) + "\n"
    except ValueError as error:
        raise RefusedError(f"--hardware: {error}") from error
    try:
        question: MemoryQuestion = read_given(text, KIND_OF_MEMORY, files=Files(Path(), {graph_file: graph}))
    except InstanceError as error:
        usage("; ".join(dict.fromkeys(f"{_MEMORY_OPTIONS.get(fault.path, f'--{fault.path}')}: {fault.message}" for fault in error.faults)))
    return Written(text, graph_file, graph), question


def _memory_lines(options: Namespace, graph_file: str) -> Iterator[str]:
    """The question in YAML; the memory is the device's where none is given."""
    name = device_named(options.hardware)
    yield f"kind: {KIND_OF_MEMORY}"
    yield f"name: {json.dumps(options.model.stem)}"
    yield f"graph: {json.dumps(graph_file)}"
    yield f"hardware: {json.dumps(name)}"
    if options.share is not None and options.memory is not None:
        usage("--share: give a share of the peak or --memory, not both")
    if options.share is not None:
        yield f"budget_share: {json.dumps(options.share)}"
    else:
        yield f"memory: {json.dumps(options.memory or f'{device(name).dram.capacity:.0f} B')}"
    for key in ("precision", "repetitions"):
        if (value := getattr(options, key)) is not None:
            yield f"{key}: {value}"
