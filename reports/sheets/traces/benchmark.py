"""The sheet of a benchmark: which kernels run how often, how each total is met, and how much of the trace they make up."""

from collections.abc import Iterator

from crossopt.instances.traces.benchmark import BenchmarkQuestion, size_of
from crossopt.reports.sheets.amounts import several
from crossopt.reports.sheets.sheet import Column, Section, Sheet, Table, answer_sheet, baselines_in, counts, names
from crossopt.solvers.answer import Result
from crossopt.solvers.traces.benchmark.judge import Runs, Stands

_MOST = 40
_LONGEST = 240
"""Characters of a kernel's name: those of C++ templates go on for lines."""


def sheet(question: BenchmarkQuestion, result: Result[Runs, Stands]) -> Sheet:
    """What is shown."""
    details, answer, sections, summary = result.details, result.answer, tuple[Section, ...](), ""
    figures = tuple[tuple[str, str], ...]()
    if details is not None and answer is not None:
        summary = f"{several(details.kernels, 'kernel')}, {several(details.runs, 'run')}"
        sections = (_totals(details), _kernels(question, answer, details))
        worst = max((one.deviation for one in details.totals), default=0.0)
        figures = (("coverage", f"{details.coverage:.2%}"), ("greatest deviation", f"{worst:.4%}"))
        figures = (*figures, ("mix off by", f"{details.mix:.2%}"))
        figures = (*figures, ("runs" if question.file.objective == "kernels" else "kernels", _other(question, details)))
    words = [_text(rival.answer) for rival in result.rivals]
    share = f"{float(100 * question.file.share):.6g}%"
    return answer_sheet(
        result,
        "benchmark",
        f"Which few kernels, each repeated how often, stand for {share} of the trace of {question.name}?",
        asks="size",
        summary=summary,
        figures=figures,
        given=tuple(_given(question)),
        sections=(*sections, baselines_in("benchmark", result, result.rivals, words)),
        notes=("each run counts for the mean of all runs of its kernel",),
        judged="total by total, as fractions",
    )


def _given(question: BenchmarkQuestion) -> Iterator[tuple[str, str]]:
    file = question.file
    yield "trace", f"{size_of(question)}{f', {question.trace.source}' if question.trace.source else ''}"
    yield "stands for", f"{float(file.share):.4%} of it, each total within {float(file.deviation):.4%}"
    yield "coverage at the least", f"{float(file.coverage):.2%} of its time"
    yield "mix of kernels", "no limit" if file.mix is None else f"off by {float(file.mix):.2%} of the time at the most"
    for key in ("kernels", "runs"):
        if getattr(file, key) is not None:
            yield f"{key} at the most", f"{getattr(file, key):,}"


def _other(question: BenchmarkQuestion, details: Stands) -> str:
    whole = sum(kernel.runs for kernel in question.kernels)
    if question.file.objective == "kernels":
        return f"{details.runs:,} of {whole:,} in the trace"
    return f"{details.kernels:,} of {len(question.kernels):,} in the trace"


def _text(answer: Runs | None) -> str:
    return "" if answer is None else f"{several(sum(one > 0 for one in answer.runs), 'kernel')}, {several(sum(answer.runs), 'run')}"


def _totals(details: Stands) -> Section:
    columns = (
        names("total", (one.total for one in details.totals)),
        Column("wanted", tuple(f"{one.wanted:,.0f}" for one in details.totals), tuple(one.wanted for one in details.totals)),
        Column("has", tuple(f"{one.has:,.0f}" for one in details.totals), tuple(one.has for one in details.totals)),
        Column("off by", tuple(f"{one.deviation:.4%}" for one in details.totals), tuple(one.deviation for one in details.totals)),
    )
    return Section("How the totals are met", (Table(columns), "Times are in ns; what is wanted is the share of the whole trace."))


def _kernels(question: BenchmarkQuestion, answer: Runs, details: Stands) -> Section:
    rows = [(kernel, runs) for kernel, runs in zip(question.kernels, answer.runs, strict=True) if runs]
    shares = [kernel.time / question.time for kernel, _ in rows]
    took = [kernel.time * runs / kernel.runs for kernel, runs in rows]
    own = [one / sum(took) for one in took]
    columns = (
        names("kernel", (kernel.name[:_LONGEST] for kernel, _ in rows)),
        counts("runs", [runs for _, runs in rows]),
        counts("in trace", [kernel.runs for kernel, _ in rows]),
        counts("ns each", [kernel.time // kernel.runs for kernel, _ in rows]),
        Column("of the time", tuple(f"{share:.2%}" for share in shares), tuple(shares)),
        Column("of the benchmark", tuple(f"{share:.2%}" for share in own), tuple(own)),
    )
    left = f"Kernels that are left out take {1 - details.coverage:.2%} of the time of the trace. "
    left += f"The benchmark gives {details.mix:.2%} of its time to other kernels than the trace"
    left += " (no limit was asked: give `mix`)." if question.file.mix is None else "."
    order = "Not held: which kernels lie on the critical path, what runs beside what, and times without work."
    return Section("Kernels", (Table(columns, most=_MOST), left, order))
