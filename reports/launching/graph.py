"""The graph of a trace that a result speaks of: what a benchmark runs, or the trace with the changes that are made."""

import json
import sys
from pathlib import Path
from typing import Any

from crossopt.crossflow.traces.graph import excerpt
from crossopt.crossflow.traces.transforms import changed
from crossopt.instances.errors import RefusedError
from crossopt.instances.files.saved import kind_of, write_whole
from crossopt.instances.question import read_again
from crossopt.instances.traces.graph_file import Trace, document_of
from crossopt.reports.commands.asking import read_saved
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
