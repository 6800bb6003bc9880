"""What is done when, as a trace that ui.perfetto.dev opens: passes of a step, pieces and operators of a placement, work of stages, and
graphs of traces as they run again.

JSON of the Trace Event Format (Google, "Trace Event Format", complete events): `ts` and `dur` in microseconds, a thread for each device
or stage, its name in a metadata event.
"""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crossopt.crossflow.traces import KINDS as TRACE_KINDS
from crossopt.crossflow.traces import Graph, anonymous, changed, excerpt, random_like, replay
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import saved_single_scale
from crossopt.instances.errors import RefusedError
from crossopt.instances.files.saved import kind_of, read_as, write_atomically
from crossopt.instances.kinds import KINDS, holds_result, kind_of_file, question_path
from crossopt.instances.placement.question import PlacementQuestion
from crossopt.instances.question import read_again
from crossopt.instances.traces.graph_file import Trace, document_of, is_graph, read_trace
from crossopt.reports import arguments
from crossopt.reports.commands.asking import read_saved
from crossopt.reports.commands.console import ANSWERED, check_target, code_of, seconds_of, usage
from crossopt.reports.facts.schedule import Step, step_of
from crossopt.reports.sheets.codesign.step import blocks_of, kinds_of
from crossopt.reports.sheets.placement import cpu_runs
from crossopt.reports.sheets.sheet import Sheet, Timeline
from crossopt.reports.shown import sheet_of
from crossopt.solvers.checking import check, faults_but_proof

Event = dict[str, Any]
_OF = {"s": 1e6, "ms": 1e3}
"""Microseconds of the units in which times are told."""


def export_trace(path: Path, out: Path | None) -> None:
    """Write the trace of a saved result or of a graph, or print it."""
    check_target(out)
    events = of_graph(read_trace(path)) if is_graph(path) else _events(path)
    _put(json.dumps({"traceEvents": list(events), "displayTimeUnit": "ms"}, separators=(",", ":"), allow_nan=False) + "\n", out)


def _events(path: Path) -> Iterator[Event]:
    kind = kind_of(path) or "codesign"
    family, result = read_saved(path, kind)
    question = saved_single_scale(result.question) if kind == "codesign" else read_again(result.question, kind, path.parent)
    faults = faults_but_proof(family, result, read_again(result.question, kind, path.parent))
    if faults:
        raise RefusedError(f"{path}: this result is not sound: {faults[0]} (see `crossopt check`)")
    if result.answer is None:
        raise RefusedError(f"{path}: there is no answer in this result to draw over time (solve a question that has one)")
    if kind == "codesign":
        step = step_of(question, result.answer.design) if isinstance(question, Instance) else None
        if step is None:
            raise RefusedError(f"{path}: the step of this design has no passes over time (one transformer on one number of devices has)")
        return of_step(str(result.question["name"]), step)
    events = of_sheet(sheet_of(kind, question, result))
    if isinstance(question, PlacementQuestion) and question.problem == "latency":
        return iter([*(event for event in events if event["args"].get("track") != "cpu"), *_on_cpu(question, result)])
    return events


def of_graph(trace: Trace) -> Iterator[Event]:
    """Every operation but gaps, when it runs as early as what it waits for allows; a thread for each thread and stream."""
    graph, again = trace.graph, replay(trace.graph)
    yield from _named(trace.source or "graph of a trace", graph.resources)
    columns = (graph.names, graph.kinds.tolist(), graph.places.tolist(), again.begins.tolist(), again.ends.tolist())
    more = zip(graph.bytes.tolist(), graph.flops.tolist(), graph.groups, strict=True)
    for (name, kind, resource, begin, end), details in zip(zip(*columns, strict=True), more, strict=True):
        if TRACE_KINDS[kind] != "gap":
            given = {key: str(value) for key, value in zip(("bytes", "flops", "group"), details, strict=True) if value}
            yield _event(name, TRACE_KINDS[kind], resource, (begin / 1e3, end / 1e3), given)


def of_step(name: str, step: Step) -> Iterator[Event]:
    """Every pass of every microbatch that was followed; forward passes and backward ones of a stage are one thread."""
    kinds, stages = kinds_of(step), range(len(step.passes))
    yield from _named(name, [f"stage {stage + 1}" for stage in stages])
    for block in blocks_of(step, stages):
        title = f"{kinds[block.kind]} {block.label}".rstrip() if block.lane < 2 else kinds[block.kind]
        yield _event(title, kinds[block.kind], block.stage, (block.start * 1e6, block.end * 1e6), {})


def of_sheet(sheet: Sheet) -> Iterator[Event]:
    """Every segment of every time line of a sheet."""
    lines = [part for section in sheet.sections for part in section.parts if isinstance(part, Timeline)]
    for line in lines:
        yield from _named(sheet.name, [track.label for track in line.tracks])
        scale = _OF[line.axis.partition(" ")[0]]
        for thread, track in enumerate(line.tracks):
            for part in track.segments:
                if part.end > part.start:
                    kind = line.kinds[part.colour]
                    yield _event(kind, kind, thread, (part.start * scale, part.end * scale), {"track": track.label})


def _on_cpu(question: PlacementQuestion, result: Any) -> Iterator[Event]:  # noqa: ANN401 - an answer about a placement
    """Every operator on the CPU, each in the first thread that is free, as cores are not counted."""
    free = list[float]()
    for run in sorted(cpu_runs(question, result.answer, result.details.runs), key=lambda run: (run.start, run.row)):
        lane = next((lane for lane, end in enumerate(free) if end <= run.start), len(free))
        free[lane:] = [run.end, *free[lane + 1 :]]
        name = question.graph.names[run.row] or str(question.graph.ids[run.row])
        yield _event(name, "cpu", question.accelerators + lane, (run.start * 1e3, run.end * 1e3), {"track": "cpu"})
    for lane in range(len(free)):
        yield _thread(question.accelerators + lane, f"cpu, lane {lane + 1}")


def _named(process: str, threads: Sequence[str]) -> Iterator[Event]:
    yield {"ph": "M", "pid": 1, "tid": 0, "name": "process_name", "args": {"name": process}}
    for number, name in enumerate(threads):
        yield _thread(number, name)


def _thread(number: int, name: str) -> Event:
    return {"ph": "M", "pid": 1, "tid": number, "name": "thread_name", "args": {"name": name}}


def _event(name: str, category: str, thread: int, times: tuple[float, float], given: dict[str, str]) -> Event:
    start, end = times
    return {"ph": "X", "pid": 1, "tid": thread, "name": name, "cat": category, "ts": start, "dur": end - start, "args": given}


# The graph of a trace that a result speaks of: what a benchmark runs, or the trace with the changes that are made.


def export_graph(path: Path, out: Path | None) -> None:
    """Write it, or print it."""
    _put(json.dumps(document_of(_graph_of_result(path))) + "\n", out)


def _graph_of_result(path: Path) -> Trace:
    """A RefusedError in words where the result has no answer or is not sound."""
    family, result = read_saved(path, str(kind_of(path)))
    if result.answer is None:
        raise RefusedError(f"{path}: there is no {family.what} in this result (solve a question that has one)")
    report = check(family, result, path.parent)
    if not report.accepted:
        raise RefusedError(f"{path}: this result is not sound: {report.refused[0]} (see `crossopt check`)")
    question = read_again(result.question, result.kind, path.parent)
    return _benchmark(question, result.answer) if result.kind == "benchmark" else _changed(question, result.answer)


def _benchmark(question: Any, answer: Any) -> Trace:  # noqa: ANN401 - of the kind
    classes = [(kernel.operations, runs) for kernel, runs in zip(question.kernels, answer.runs, strict=True) if runs]
    source = f"{float(question.file.share):.6g} of {question.trace.source or question.name}"
    return Trace(excerpt(question.trace.graph, classes), source, assumed=question.trace.assumed)


def _changed(question: Any, answer: Any) -> Trace:  # noqa: ANN401 - of the kind
    made = [effect for name, effect in zip(question.names, question.effects, strict=True) if name in answer.changes]
    source = f"{question.trace.source or question.name}, {', '.join(answer.changes) or 'as it is'}"
    return Trace(changed(question.trace.graph, made), source, assumed=question.trace.assumed)


# The command `export`: what a result holds, in the form that another program takes, and what is written in no such form.

TRACED = ("pipedream", "piper", "chain")
"""Kinds of plans whose stages have a time line, beside placements and joint designs."""


def export(options: Namespace) -> int:
    """Write it, or print it; the exit code."""
    if not (options.stack in (arguments.TRACE, *arguments.COPIES) and is_graph(options.file)):
        _refuse(options)
    if options.stack in arguments.MODELS:
        from crossopt.reports.commands.export import export_model  # noqa: PLC0415

        return code_of(export_model(question_path(options.file), options, seconds_of(options.time_limit)), unproved=False)
    if options.stack in (arguments.TRACE, arguments.GRAPH):
        (export_trace if options.stack == arguments.TRACE else export_graph)(options.file, options.out)
    elif options.stack in arguments.COPIES:
        export_copy(options, read_trace(options.file) if is_graph(options.file) else _graph_of_result(options.file))
    elif options.stack in arguments.PLACEMENTS:
        from crossopt.reports.commands.export import export_placement  # noqa: PLC0415

        _put(export_placement(options.file, options.stack), options.out)
    elif options.stack in arguments.QUANTISED:
        from crossopt.reports.commands.export import export_strategies  # noqa: PLC0415

        export_strategies(options.file, options.stack, options.out)
    elif options.stack in arguments.SERVERS or (options.stack == arguments.REPLICAS and kind_of(options.file) == "serving"):
        from crossopt.reports.commands.serving import export_flags  # noqa: PLC0415

        _put(export_flags(options.file, options.stack), options.out)
    elif options.stack in (arguments.REPLICAS, arguments.SHARDS, arguments.SCHEDULE, arguments.POLICY):
        from crossopt.reports.commands.export import export_parts  # noqa: PLC0415

        export_parts(options.file, options.stack, options.out)
    elif options.stack in (arguments.CERTIFICATE, arguments.VIPR):
        from crossopt.reports.commands.export import export_certificate, export_vipr  # noqa: PLC0415

        (export_certificate if options.stack == arguments.CERTIFICATE else export_vipr)(options.file, options.out)
    else:
        _export_plan(options)
    return ANSWERED


def _export_plan(options: Namespace) -> None:
    """A plan as settings of a stack, or as a Chakra trace of each device."""
    from crossopt.reports.commands.export import plan_of  # noqa: PLC0415
    from crossopt.reports.launching.launch import export_named, launch_text, launched  # noqa: PLC0415

    try:
        instance, chosen = plan_of(options)
    except ValueError as error:
        usage(str(error))
    if options.stack == arguments.CHAKRA:
        from crossopt.reports.launching.chakra import export_chakra  # noqa: PLC0415

        export_chakra(options, instance, chosen)
        return
    stack = options.stack or export_named(instance.stack)
    if options.job is None:
        sys.stdout.write(launch_text(stack, instance, chosen))
        return
    from crossopt.reports.launching.jobs import job_text  # noqa: PLC0415

    _put(job_text(options.job, stack, instance, launched(stack, instance, chosen)), options.out)


def _put(text: str, out: Path | None) -> None:
    """Write what is exported to the file that is named, or print it."""
    check_target(out)
    if out is None or str(out) == "-":
        sys.stdout.write(text)
    else:
        write_atomically(out, text)


def _refuse(options: Namespace) -> None:
    """Say so where a result is of a family whose answers are not written in this form."""
    form, stacks = options.stack or "megatron", f"{', '.join(arguments.STACKS[:-1])} or {arguments.STACKS[-1]}"
    if options.job is not None and form not in arguments.STACKS:
        usage(f"--job: a job runs a training stack, and --as {form} is none (take --as {stacks})")
    saved = holds_result(options.file)
    kind = kind_of(options.file) if saved else kind_of_file(question_path(options.file))
    if options.stack == arguments.VIPR and not saved and (options.file.exists() or not options.file.suffix):
        usage(f"--as {arguments.VIPR}: {options.file} is no saved result, and only a result has a proof (solve FILE --out RESULT.json)")
    if kind is None and is_graph(options.file):
        usage(f"--as {form}: {options.file} is a graph of a trace (take --as {arguments.TRACE} or {' or '.join(arguments.COPIES)})")
    if kind is None and saved and (foreign_kind := _authors_kind(options.file)) is not None:
        what = f"this is a file of its authors that asks about {KINDS[foreign_kind].about}, and no result"
        take = "export works from a question about joint designs, in YAML, and from its saved result"
        first = f"`crossopt solve {options.file} --out RESULT.json`, then export RESULT.json"
        remedy = (
            first
            if foreign_kind == "placement" and options.stack in arguments.PLACEMENTS
            else f"{take}; `crossopt solve {options.file}` answers this one"
        )
        usage(f"--as {form}: {options.file}: {what} ({remedy})")
    if kind in ("front", "relaxation", "constants"):
        several = {"front": "a front of several designs, and one is needed", "constants": "about constants, with a design at each end"}
        what = several.get(kind, "a relaxation, which is no design")
        usage(f"--as {form}: {options.file} is {what} (export what `solve FILE --out RESULT.json` writes without --pareto)")
    others = (*arguments.PLACEMENTS, *arguments.QUANTISED, *arguments.SERVERS, *arguments.COPIES, *arguments.WRITTEN, arguments.GRAPH)
    if saved and kind == "codesign" and options.stack in others:
        usage(f"--as {form}: {options.file} is about a joint design (take --as {stacks} for its plan)")
    own = {
        "placement": (*arguments.PLACEMENTS, arguments.TRACE),
        "layers": arguments.QUANTISED,
        "instances": (arguments.REPLICAS,),
        "fleet": (arguments.REPLICAS,),
        "pipelines": (arguments.REPLICAS,),
        "embeddings": (arguments.SHARDS,),
        "accelerator": (arguments.SHARDS,),
        "memory": (arguments.SCHEDULE, arguments.POLICY),
        "serving": (*arguments.SERVERS, arguments.REPLICAS),
        "sharding": (arguments.CERTIFICATE,),
        "what-if": (arguments.GRAPH, *arguments.COPIES),
        "benchmark": (arguments.GRAPH, *arguments.COPIES),
    }
    forms = own.get(str(kind), (arguments.TRACE,) if kind in TRACED else ())
    proved = options.stack == arguments.VIPR and kind in KINDS and bool(KINDS[kind].family)
    if kind in KINDS and kind != "codesign" and options.stack not in forms and not proved:
        other = f"take --as {' or '.join(forms)}" if forms else "the result itself is JSON" if saved else "solve it, its result is JSON"
        asked = f"--job {options.job}" if options.job is not None and options.stack is None else f"--as {form}"
        usage(f"{asked}: what is about {KINDS[kind].about} is not written so ({other})")


def _authors_kind(path: Path) -> str | None:
    """What an author's file in JSON asks about; None where it is none, but perhaps a result of an older format."""

    def asks(data: object) -> bool:
        return isinstance(data, dict) and bool({"nodes", "problem", "TMPCs"} & data.keys()) and "question" not in data

    return kind_of_file(path) if read_as(path, asks) else None


# Copies of a trace for others: without names, drawn anew with the same statistics, or as a script of PyTorch operations.

_RUN = ("kernel", "copy", "collective")


def export_copy(options: Namespace, trace: Trace) -> None:
    """Write the copy in the form asked for, and the key to its names where a file for that is given."""
    for target in (options.out, options.key):
        check_target(target)
    if options.stack not in (arguments.ANONYMOUS, arguments.DRAWN):
        _put(script_of(trace), options.out)
        return
    hidden, key = anonymous(trace.graph)
    source = "a trace without names"
    if options.stack == arguments.DRAWN:
        drawn = random_like(hidden, options.seed)
        hidden = drawn.graph
        source = f"drawn from the statistics of {drawn.phases:,} phase{'s' * (drawn.phases != 1)} of a trace (seed {options.seed})"
        changes = f"span {drawn.span:+.2%}, time with a device busy {drawn.busy:+.2%}, bytes and FLOPs as in the trace"
        sys.stderr.write(f"{source}: {changes}\n")
    span = replay(hidden).span if trace.span and options.stack == arguments.DRAWN else trace.span
    _put(json.dumps(document_of(Trace(hidden, source, span, trace.assumed))) + "\n", options.out)
    if options.key is not None:
        write_atomically(options.key, json.dumps(key, indent=1) + "\n")


def script_of(trace: Trace) -> str:
    """A script that runs the device work of a graph in the order of its replay, as PyTorch operations, and times it.

    A RefusedError where no device works.
    """
    graph = trace.graph
    works = np.flatnonzero(np.isin(graph.kinds, [TRACE_KINDS.index(kind) for kind in _RUN]))
    if not len(works):
        raise RefusedError("no kernel, copy or collective is in this graph (import a trace with device work)")
    order = works[np.argsort(replay(graph).begins[works], kind="stable")].tolist()
    numbers, kernels, sequence = dict[tuple[object, ...], int](), list[dict[str, object]](), list[int]()
    for operation in order:
        own = _kernel(graph, operation)
        number = numbers.setdefault(tuple(own.values()), len(numbers))
        if number == len(kernels):
            kernels.append({**own, "ns": 0})
        kernels[number]["ns"] = int(str(kernels[number]["ns"])) + int(graph.durations[operation])
        sequence.append(number)
    texts: Mapping[str, str] = {
        "SOURCE": json.dumps(trace.source or "a graph of a trace"),
        "KERNELS": ",\n    ".join(json.dumps(kernel) for kernel in kernels),
        "SEQUENCE": json.dumps(sequence),
    }
    text = Path(__file__).with_name("replay.py.in").read_text(encoding="utf-8")
    for name, value in texts.items():
        text = text.replace(f"@{name}@", value)
    return text


def _kernel(graph: Graph, operation: int) -> dict[str, object]:
    """What makes two runs one kernel."""
    return {
        "name": graph.names[operation],
        "kind": TRACE_KINDS[int(graph.kinds[operation])],
        "inputs": graph.inputs[operation],
        "flops": int(graph.flops[operation]),
        "bytes": int(graph.bytes[operation]),
    }
