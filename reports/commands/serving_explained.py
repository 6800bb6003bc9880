"""`explain` of a serving question: the answer, and what the optimum would be with limits, shapes or devices changed one at a time."""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from math import inf

from crossopt.instances.kinds import KINDS
from crossopt.instances.serving.question import Level, Mode, ServingQuestion, roomier
from crossopt.reports.commands.console import Ending, question_of, seconds_of, usage
from crossopt.reports.commands.progress import progress_on
from crossopt.reports.render.width import fitted
from crossopt.reports.shown import text_of
from crossopt.solvers.answer import Limits
from crossopt.solvers.checking import solve_and_verify
from crossopt.solvers.family import family_of
from crossopt.solvers.serving import judge

KIND = "serving"
_LONGER, _MORE = 1.1, 1.5


def explain(options: Namespace) -> Ending:
    """Print the answer, and the proved optimum of each changed question."""
    for option in ("near", "relaxation", "constants", "out", "svg"):
        if getattr(options, option):
            usage(f"--{option}: this does not apply to serving (limits, modes, formats and devices are changed one by one)")
    if options.force:
        usage("--force: this does not apply to serving (`solve --set choices.mode=apart` answers with a choice)")
    question: ServingQuestion = question_of(options, KINDS[KIND].options)
    if question.chip is not None or question.model is None:
        usage("explain answers questions about a model on devices that are known (of a free chip, compare budgets by --set)")
    limits = Limits(seconds_of(options.time_limit) if options.time_limit else inf)
    with progress_on(sys.stderr, "") as watch:
        result = solve_and_verify(family_of(KIND), question, "auto", limits, watch)
    base = result.value
    rows = [(name, _value(changed)) for name, changed in changes(question)]
    if options.json:
        document = {
            "value": base,
            "objective": question.file.objective,
            "changes": [{"change": name, "value": value} for name, value in rows],
        }
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        texts = [(name, _beside(question, base, value)) for name, value in rows]
        width = max(len(name) for name, _ in texts)
        lines = ["", "  with one change", *(f"    {name:<{width}}  {text}" for name, text in texts)]
        sys.stdout.write(fitted(text_of(KIND, question, result, verbose=False)) + "\n".join(lines) + "\n")
    return Ending(result.status, result.proved)


def changes(question: ServingQuestion) -> Iterator[tuple[str, ServingQuestion]]:
    """Questions that differ in one thing."""
    file = question.file
    for name, limit in (("ttft", file.limits.ttft), ("tpot", file.limits.tpot)):
        if limit is not None:
            longer = file.limits.with_level(name, limit * _LONGER)
            yield f"10 % more {name.upper()}", replace(question, file=replace(file, limits=longer))
            yield f"no limit of {name.upper()}", replace(question, file=replace(file, limits=file.limits.with_level(name, None)))
    levels: tuple[Level, ...] = ("mean", "p90", "p95", "p99")
    for level in levels:
        if level != question.level and file.choices.shapes is None:
            yield f"limits at {level}", replace(question, file=replace(file, limits=replace(file.limits, at=level)))
    modes: tuple[Mode, ...] = ("together", "apart")
    if len(file.choices.mode) > 1 and question.output > 1:
        for mode in modes:
            yield f"{mode} alone", replace(question, file=replace(file, choices=replace(file.choices, mode=(mode,))))
    if not any("fp8" in kind.options.cache for kind in question.kinds):
        kinds = tuple(replace(kind, options=replace(kind.options, cache=("fp8",))) for kind in question.kinds)
        yield "fp8 cache", replace(question, kinds=kinds)
    for what in ("memory", "memory bandwidth", "throughput", "link bandwidth"):
        yield f"half as much {what} again", roomier(question, what, _MORE)


def _value(question: ServingQuestion) -> float | None:
    try:
        found = judge.solved(question)
    except ValueError:  # too many ways
        return None
    return None if found is None else float(found.value(question))


def _beside(question: ServingQuestion, base: float | None, value: float | None) -> str:
    """A value beside that of the question, as requests a second where these are sought."""
    if value is None:
        return "no plan"
    rate = question.file.objective == "throughput"
    shown = f"{1.0 / value:.4g} requests/s" if rate else f"{value:,.4g}"
    if base is None:
        return shown
    gain = (base / value if rate else value / base) - 1.0
    return f"{shown}  {gain:+.1%}" if abs(gain) > _SAME else f"{shown}  the same"


_SAME = 5e-4
