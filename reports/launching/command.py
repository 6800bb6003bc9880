"""The graph of a trace that a result speaks of: what a benchmark runs, or the trace with the changes that are made."""

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from crossopt.crossflow.traces.graph import excerpt
from crossopt.crossflow.traces.transforms import changed
from crossopt.instances.errors import RefusedError
from crossopt.instances.files.saved import kind_of, read_as, write_whole
from crossopt.instances.kinds import KINDS, kind_asked, question_path
from crossopt.instances.question import read_again
from crossopt.instances.traces.graph_file import Trace, document_of, is_graph
from crossopt.reports.arguments import CERTIFICATE, CHAKRA, GRAPH, MODELS, PLACEMENTS, TRACE
from crossopt.reports.commands.asking import read_saved
from crossopt.reports.commands.console import seconds_of, usage
from crossopt.reports.commands.exit_codes import ANSWERED, code_of
from crossopt.solvers.checking import check


def export_graph(path: Path, out: Path | None) -> None:
    """Write it, or print it; a RefusedError in words where the result has no answer or is not sound."""
    family, result = read_saved(path, str(kind_of(path)))
    if result.answer is None:
        raise RefusedError(f"{path}: there is no {family.what} in this result (solve a question that has one)")
    report = check(family, result, path.parent)
    if not report.accepted:
        raise RefusedError(f"{path}: this result is not sound: {report.refused[0]} (`crossopt check` tells more)")
    question = read_again(result.question, result.kind, path.parent)
    made = _benchmark(question, result.answer) if result.kind == "benchmark" else _changed(question, result.answer)
    text = json.dumps(document_of(made)) + "\n"
    if out is None or str(out) == "-":
        sys.stdout.write(text)
    else:
        write_whole(out, text)


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
    if not (options.stack == TRACE and is_graph(options.file)):
        _refuse(options)
    if options.stack == TRACE:
        from crossopt.reports.launching.trace import export_trace  # noqa: PLC0415

        export_trace(options.file, options.out)
        return ANSWERED
    if options.stack == GRAPH:
        export_graph(options.file, options.out)
        return ANSWERED
    if options.stack in PLACEMENTS:
        from crossopt.reports.commands.export import export_placement  # noqa: PLC0415

        sys.stdout.write(export_placement(options.file, options.stack))
        return ANSWERED
    if options.stack == CERTIFICATE:
        from crossopt.reports.commands.export import export_certificate  # noqa: PLC0415

        export_certificate(options.file, options.out)
        return ANSWERED
    if options.stack in MODELS:
        from crossopt.reports.commands.export import export_model  # noqa: PLC0415

        return code_of(export_model(question_path(options.file), options, seconds_of(options.time_limit)), unproved=False)
    _export_plan(options)
    return ANSWERED


def _export_plan(options: Namespace) -> None:
    """A plan as settings of a stack, or as a Chakra trace of each device."""
    from crossopt.reports.commands.export import plan_of  # noqa: PLC0415
    from crossopt.reports.launching.launch import export_named, launch_text  # noqa: PLC0415

    try:
        instance, chosen = plan_of(options)
    except ValueError as error:
        usage(str(error))
    if options.stack == CHAKRA:
        from crossopt.reports.launching.chakra import export_chakra  # noqa: PLC0415

        export_chakra(options, instance, chosen)
        return
    sys.stdout.write(launch_text(options.stack or export_named(instance.stack), instance, chosen))


def _refuse(options: Namespace) -> None:
    """Say so where a result is of a family whose answers are not written in this form."""
    form = options.stack or "megatron"
    saved = options.file.suffix.lower() == ".json"
    kind = kind_of(options.file) if saved else kind_asked(question_path(options.file))
    if kind is None and is_graph(options.file):
        usage(f"--as {form}: {options.file} is a graph of a trace (take --as {TRACE})")
    if kind is None and saved and (asked := _authors_kind(options.file)) is not None:
        what = f"this is a file of its authors that asks about {KINDS[asked].about}, and no result"
        take = "export works from a question about joint designs, in YAML, and from its saved result"
        first = f"`crossopt solve {options.file} --out RESULT.json`, then export RESULT.json"
        remedy = (
            first if asked == "placement" and options.stack in PLACEMENTS else f"{take}; `crossopt solve {options.file}` answers this one"
        )
        usage(f"--as {form}: {options.file}: {what} ({remedy})")
    if kind in ("front", "relaxation", "constants"):
        several = {"front": "a front of several designs, and one is needed", "constants": "about constants, with a design at each end"}
        what = several.get(kind, "a relaxation, which is no design")
        usage(f"--as {form}: {options.file} is {what} (export what `solve FILE --out RESULT.json` writes without --pareto)")
    own = {"placement": (*PLACEMENTS, TRACE), "sharding": (CERTIFICATE,), "what-if": (GRAPH,), "benchmark": (GRAPH,)}
    forms = own.get(str(kind), (TRACE,) if kind in TRACED else ())
    if kind in KINDS and kind != "codesign" and options.stack not in forms:
        other = f"take --as {' or '.join(forms)}" if forms else "the result itself is JSON" if saved else "solve it, its result is JSON"
        usage(f"--as {form}: what is about {KINDS[kind].about} is not written so ({other})")


def _authors_kind(path: Path) -> str | None:
    """What an author's file in JSON asks about; None where it is none, but perhaps a result of an older format."""

    def asks(data: object) -> bool:
        return isinstance(data, dict) and bool({"nodes", "problem", "TMPCs"} & data.keys()) and "question" not in data

    return kind_asked(path) if read_as(path, asks) else None
