"""The commands `place` and `checkpoint`: the device of each operator of a network, or what a step computes again, in one line."""

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import cache
from math import inf
from pathlib import Path
from time import monotonic

from crossopt.instances.catalogue.registry import device
from crossopt.instances.codesign.short import device_named, groups_in
from crossopt.instances.errors import FailedError, InstanceError, RefusedError
from crossopt.instances.files.saved import write_atomically
from crossopt.instances.files.written import Files
from crossopt.instances.memory.question import MemoryQuestion
from crossopt.instances.operators.graph_file import graph_text
from crossopt.instances.placement.question import PlacementQuestion
from crossopt.instances.question import read_given
from crossopt.reports.commands import networks
from crossopt.reports.commands.console import INTERRUPTS, check_target, code_of, graph_beside, seconds_of, usage
from crossopt.reports.commands.progress import notes_on
from crossopt.solvers.answer import Limits, Progress
from crossopt.solvers.family import engine_of, family_of
from crossopt.solvers.memory.judge import Schedule
from crossopt.solvers.memory.rules import peak_of
from crossopt.solvers.proofs import UnverifiedBound

KIND = "placement"
_OPTIONS = {"graph.hardware": "--devices", "graph.precision": "--precision", "graph.bandwidth": "--bandwidth", "graph.file": "MODEL"}
"""Options by the keys of the question that they write, where they are called otherwise."""


def place(options: Namespace) -> int:
    """Answer, print and write; the exit code is that of `solve`."""
    networks.check_targets(options)
    written, question = question_written(options)
    return networks.answer_written(options, KIND, "ms", written, question)


def question_written(options: Namespace) -> tuple[networks.Written, PlacementQuestion]:
    """The question as files, and as it is read."""
    graph = graph_text(networks.read_network(options.model, networks.lengths_of(options.settings)))
    graph_file = graph_beside(options.save or options.model).name
    try:
        text = "\n".join(_lines(options, graph_file)) + "\n"
    except ValueError as error:
        raise RefusedError(f"--devices: {error}") from error
    try:
        question: PlacementQuestion = read_given(text, KIND, files=Files(Path(), {graph_file: graph}))
    except InstanceError as error:
        usage("; ".join(dict.fromkeys(f"{_option(fault.path)}: {fault.message}" for fault in error.faults)))
    return networks.Written(text, graph_file, graph), question


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
MOST_LENGTH, _SEEKING, _OF_LENGTHS, _SHARE = 1 << 20, 150.0, 0.6, 0.12
"""Longest axis, seconds for schedules of lengths and for proofs that some do not fit, their share of a time limit, and the share of what is
left for a length."""
_MEMORY_OPTIONS = {"graph": "MODEL", "hardware": "--hardware", "budget_share": "--share"}
"""Options by the keys of the question that they write, where they are called otherwise."""


def checkpoint(options: Namespace) -> int:
    """Answer, print and write; the exit code is that of `solve`."""
    networks.check_targets(options)
    check_target(options.policy, "--policy")
    lengths, known, seconds, began, ended = networks.lengths_of(options.settings), None, None, monotonic(), False
    if options.time_limit:
        seconds = seconds_of(options.time_limit)
    if options.largest is not None:
        lengths[options.largest], known, ended = _largest(options, lengths, _SEEKING if seconds is None else seconds * _OF_LENGTHS)
    left = networks.USUAL_LIMIT if seconds is None else max(seconds - (monotonic() - began), 0.0)
    written, question = memory_question(options, lengths)
    result = networks.result_written(options, KIND_OF_MEMORY, "s", written, question, left, known, monotonic() - began if ended else None)
    if options.policy is not None and result.answer is not None:
        from crossopt.reports.launching.checkpointing import policy_text  # noqa: PLC0415 - of this option alone

        write_atomically(options.policy, policy_text(question, result))
    return code_of(result.status, unproved=False)


def _largest(options: Namespace, lengths: dict[str, int], seconds: float) -> tuple[int, Schedule, bool]:
    """The greatest length of an axis for which a schedule is found, that schedule, and whether Ctrl-C came first; printed with the least
    one that is proved not to fit."""
    if options.largest in lengths:
        usage(f"--largest {options.largest}: --set {options.largest}={lengths[options.largest]} gives this axis a length (keep one)")
    if options.share is not None:
        usage("--largest: a share of the peak grows with the network (give --memory, or leave it to the device)")

    @cache
    def at(length: int) -> MemoryQuestion:
        return memory_question(options, {**lengths, options.largest: length})[1]

    top = 1
    while top <= MOST_LENGTH and not _too_large(at(top)):
        top *= 2
    fails = _bisected(top // 2, top, lambda length: not _too_large(at(length))) + 1 if top <= MOST_LENGTH else top
    fits = _bisected(0, fails, lambda length: at(length).graph.plain_peak <= at(length).budget)
    with notes_on(sys.stderr) as note:
        fits, fails, known, ended = _decided(at, fits, fails, seconds, lambda text: note(f"{options.largest}: {text}"))
    if not fits and ended:
        raise KeyboardInterrupt
    if not fits:
        proof = "as is proved" if fails == 1 else "as far as was found in time"
        raise RefusedError(f"--largest: {options.largest}=1 does not fit, {proof} (give more --memory, or --precision bf16)")
    more = f"{fails:,} does not fit, as is proved" if fails <= MOST_LENGTH else f"{fits + 1:,} was not tried"
    more += "" if fails == fits + 1 or fails > MOST_LENGTH else "; lengths between them are not decided"
    sys.stdout.write(f"{options.largest} of {fits:,} fits; {more}\n")
    return fits, known or Schedule(tuple(range(len(at(fits).graph.names)))), ended


def _too_large(question: MemoryQuestion) -> bool:
    """Whether a single node is above the budget."""
    return max(question.graph.floors) > question.budget


def _bisected(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The greatest length that keeps a condition, which the lower end keeps, and the upper end does not."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _decided(
    at: Callable[[int], MemoryQuestion], fits: int, fails: int, seconds: float, note: Callable[[str], None]
) -> tuple[int, int, Schedule | None, bool]:
    """The greatest length with a schedule, the least one with a proof that nothing fits, that schedule, and whether Ctrl-C came first.
    Bisection seeks schedules first, each of which is tried for greater lengths, and then proofs."""
    known, deadline, auto = None, monotonic() + seconds, engine_of(family_of(KIND_OF_MEMORY), "auto")

    def tried(length: int) -> bool | None:
        nonlocal fits, fails, known
        question, state = at(length), f"{fits:,} fits, {fails:,} does not, trying {length:,}"

        def watch(progress: Progress) -> None:
            del progress
            note(state)
            if INTERRUPTS:  # the engine stopped its solver for it, and goes on
                raise KeyboardInterrupt

        watch(Progress(state, None))
        found = auto(question, Limits(max((deadline - monotonic()) * _SHARE, 0.1), gap=1.0), watch)
        if found.answer is not None:
            known = schedule = found.answer
            fits = _bisected(length, fails, lambda longer: _fits(at(longer), question, schedule.order))
            return True
        fails = length if found.bound == inf and not isinstance(found.proof, UnverifiedBound) else fails
        return False if fails == length else None

    try:
        unknown = fails
        while unknown - fits > 1 and monotonic() < deadline and not INTERRUPTS:
            length = (fits + unknown) // 2
            unknown = unknown if tried(length) else length
        low = fits
        while fails - max(low, fits) > 1 and monotonic() < deadline and not INTERRUPTS:
            length = (max(low, fits) + fails) // 2 if low > fits else fits + 1
            low = length if tried(length) is None else low
    except (KeyboardInterrupt, FailedError) as error:
        if isinstance(error, FailedError) and not INTERRUPTS:
            raise
        return fits, fails, known, True
    return fits, fails, known, bool(INTERRUPTS)


def _fits(question: MemoryQuestion, shorter: MemoryQuestion, order: tuple[int, ...]) -> bool:
    """Whether a schedule for a shorter axis fits, too."""
    return question.graph.inputs == shorter.graph.inputs and peak_of(question.graph, order) <= question.budget


def memory_question(options: Namespace, lengths: dict[str, int]) -> tuple[networks.Written, MemoryQuestion]:
    """The question as files, and as it is read."""
    graph = graph_text(networks.read_network(options.model, lengths))
    graph_file = graph_beside(options.save or options.model).name
    try:
        text = "\n".join(_memory_lines(options, graph_file)) + "\n"
    except ValueError as error:
        raise RefusedError(f"--hardware: {error}") from error
    try:
        question: MemoryQuestion = read_given(text, KIND_OF_MEMORY, files=Files(Path(), {graph_file: graph}))
    except InstanceError as error:
        usage("; ".join(dict.fromkeys(f"{_MEMORY_OPTIONS.get(fault.path, f'--{fault.path}')}: {fault.message}" for fault in error.faults)))
    return networks.Written(text, graph_file, graph), question


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
    if options.policy is not None:
        yield "checkpoints: true"
    for key in ("precision", "repetitions"):
        if (value := getattr(options, key)) is not None:
            yield f"{key}: {value}"
