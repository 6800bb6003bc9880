"""Commands about questions whose kind has a family: read, solve, judge, show; written once for all of them."""

import sys
from argparse import Namespace
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from crossopt.instances.errors import RefusedError
from crossopt.instances.files.saved import read_as
from crossopt.instances.kinds import KINDS
from crossopt.reports.commands.console import (
    Ending,
    check_target,
    code_of,
    code_of_ending,
    question_of,
    refuse_options,
    seconds_of,
    usage,
)
from crossopt.reports.commands.keeper import Keeping, Kept, keeper, put
from crossopt.reports.commands.progress import collected, keep_table, log_to, progress_on, show_table
from crossopt.reports.render.terminal import Compared, compared_text, refused_text
from crossopt.reports.render.width import fitted
from crossopt.reports.sheets.sheet import Bar, Sheet
from crossopt.reports.shown import sheet_of, text_of
from crossopt.solvers.answer import Baseline, Limits, Result, Watch, result_in, to_text
from crossopt.solvers.checking import Report, solve_and_verify
from crossopt.solvers.checking import check as report_of
from crossopt.solvers.family import RIVAL, ProblemType, engine_of, family_of, judge_baseline, no_op, simplest_of, unit_of
from crossopt.solvers.family import solve as solved

COMPARED = 60.0
"""Of each engine that is compared, if no limit is given."""
_SEEDS = 2**31
"""As many as every solver knows."""
_WORKERS = 256


def solve(options: Namespace, kind: str) -> Ending:
    """Answer, print and write."""
    family, row = family_of(kind), KINDS[kind]
    name = family.aliases.get(options.engine, options.engine)
    refuse_before(options, kind)
    keep, failed = keeper(), list[OSError]()
    limits, began = limits_of(options, family.parallel), keep.began if keep else monotonic()
    question = question_of(options, row.options)

    def written(result: Result[Any, Any]) -> Kept:
        return saved_of(options, result, lambda: text_of(kind, question, result, options.verbose))

    with progress_on(sys.stderr, unit_of(family, question) or "value") as shown, log_to(shown, options.log, failed) as watch:
        keeping = Keeping(keep, family, question, name, limits, watch, written) if keep else None
        left = max(limits.seconds - (monotonic() - began), 0.0)  # large files take seconds to be read
        simple = keeping.simplest_answer if keeping else simplest_of(family, question)
        spent, ending = replace(limits, seconds=left), keep.finish if keep else no_op
        try:
            result = solve_and_verify(family, question, name, spent, keeping or watch, ending, simple)
        except Exception as cause:
            if keeping:
                keeping.fail(cause)
            raise
    hand_out(written(result), options.out)
    for error in failed:  # which cost the log, and must not cost the answer
        raise error
    return Ending(result.status, result.proved)


def saved_of(options: Namespace, result: Result[Any, Any], text_of_answer: Callable[[], str]) -> Kept:
    """An answer as the options want it written: in words or as JSON."""
    text = to_text(result) if options.json or options.out else ""
    shown = text if options.json or str(options.out) == "-" else fitted(text_of_answer())
    code, spare = (
        code_of(result.status, options.strict and not result.proved),
        result.status == "UNKNOWN" and result.stopped == "interrupted",
    )
    return Kept(text if options.out else None, shown, code, spare)


def refuse_before(options: Namespace, kind: str) -> None:
    """Whatever of the options makes no sense for this kind of question, before any work is done."""
    family, row = family_of(kind), KINDS[kind]
    refuse_options(options, (*row.options, *row.also, *_of_engines(family)), f"a question about {row.about}")
    engine_of(family, options.engine)
    check_target(options.log, "--log")
    check_target(options.out)


def _of_engines(family: ProblemType[Any, Any, Any]) -> tuple[str, ...]:
    """Options of engines that use several threads, where there are such."""
    return ("workers",) if "milp" in family.engines or family.parallel else ()


def limits_of(options: Namespace, parallel: Container[str] = ()) -> Limits:
    """What an engine may spend and how it shall work; refused where it makes no sense, or where the engine has no use for it.

    Engines in `parallel` use several threads without an integer model.
    """
    seconds, modelled = seconds_of(options.time_limit), options.engine in {"milp", "cpsat"}
    for name, value in (("--form", options.form), ("--workers", options.workers)):
        if value is not None and not modelled and not (name == "--workers" and options.engine in parallel):
            usage(f"{name} {value}: the engine {options.engine} solves no integer model (take --engine milp or cpsat)")
    if not 0 <= options.seed < _SEEDS:
        usage(f"--seed {options.seed}: this is no seed (write a whole number from 0 to {_SEEDS - 1})")
    workers = options.workers or 1
    if workers > _WORKERS:
        usage(f"--workers {workers}: this is too many (write {_WORKERS} or less; more than the machine's cores gain nothing)")
    return Limits(seconds, options.seed, options.gap, options.form or "strong", workers)


def hand_out(last: Kept, out: Path | None) -> None:
    """Write the last answer, or give it to who keeps answers for this process."""
    keep = keeper()
    if keep is None:
        put(last, out)
    else:
        keep.finish()
        keep.keep(last)


def compare(options: Namespace, kind: str) -> Ending:
    """Every engine that is asked, and the baselines of the first, beside the best bound."""
    family = family_of(kind)
    refuse_options(options, KINDS[kind].options, f"a question about {KINDS[kind].about}")
    if options.split:
        usage(f"--split: this does not apply to {KINDS[kind].about} (leave it out)")
    names = options.engines.split(",") if options.engines else list(family.engines)
    question, seconds = question_of(options, KINDS[kind].options), seconds_of(options.time_limit) if options.time_limit else COMPARED
    refused = dict[tuple[str, str], str]()

    def refuse(name: str, why: RefusedError) -> None:
        refused[name, question.name] = str(why)

    with progress_on(sys.stderr, unit_of(family, question) or "value") as watch:
        answers = _until_interrupted(answers_of(family, question, names, Limits(seconds), watch, refuse))
        found, complete = collected(answers, lambda some: keep_table(_table(kind, question, dict(some))))
    first = found[0][1]
    ending = Ending(first.status, first.proved, complete, bool(refused) and options.engines is not None)
    written = to_text(_joined(family, question, dict(found))) if options.out else None
    show_table(_table(kind, question, dict(found)) + refused_text(refused), code_of_ending(ending), complete, written, options.out)
    return ending


def _until_interrupted(answers: Iterable[tuple[str, Result[Any, Any]]]) -> Iterator[tuple[str, Result[Any, Any]]]:
    """The answers up to one that was interrupted, which tells what it had and ends them all."""
    for name, result in answers:
        yield name, result
        if result.stopped == "interrupted":
            raise KeyboardInterrupt


def _table(kind: str, question: Any, results: dict[str, Result[Any, Any]]) -> str:  # noqa: ANN401 - of any kind
    first, *_ = results.values()
    name = max(results, key=lambda engine: float("-inf") if (bound := results[engine].bound) is None else bound)
    sheets = {name: sheet_of(kind, question, result) for name, result in results.items()}
    rows = [_compared(name, sheet) for name, sheet in sheets.items()]
    rows += [Compared(Bar(rule.name, rule.value, "" if rule.note else "a rule beside it", rule.note)) for rule in first.baselines]
    sheet = sheets[name]
    return compared_text(sheet, f"{sheet.asks}{f' in {sheet.unit}' if sheet.unit else ''}", rows)


def _joined(family: ProblemType[Any, Any, Any], question: Any, results: dict[str, Result[Any, Any]]) -> Result[Any, Any]:  # noqa: ANN401
    """The answer with the best bound, with what the other engines found as its baselines beside those that it has."""
    name, best = max(results.items(), key=lambda pair: float("-inf") if pair[1].bound is None else pair[1].bound)
    others = [
        Baseline(f"{RIVAL}{other}", None, result.answer, "", result.seconds)
        for other, result in results.items()
        if other != name and result.answer is not None
    ]
    judged = (judge_baseline(family.judge, question, result) for result in others)
    return replace(best, baselines=(*best.baselines, *judged))


def answers_of(
    family: ProblemType[Any, Any, Any],
    question: Any,  # noqa: ANN401 - of any kind
    names: Sequence[str],
    limits: Limits,
    watch: Watch,
    on_refusal: Callable[[str, RefusedError], None] = lambda name, why: None,
) -> Iterator[tuple[str, Result[Any, Any]]]:
    """The name and the result of each engine. Engines that refuse such a question are reported and left out, unless all do."""
    refused = list[RefusedError]()
    for name in names:
        engine_of(family, name)
    for name in names:
        try:
            result = solved(family, question, name, limits, watch)
        except RefusedError as error:
            refused.append(error)
            on_refusal(name, error)
        else:
            yield name, result
    if refused and len(refused) == len(names):
        raise refused[0]


def _compared(name: str, sheet: Sheet) -> Compared:
    return Compared(Bar(name, sheet.value, sheet.label), sheet.bound, sheet.seconds)


def check(path: Path, kind: str, cross_check: bool = False) -> Report:
    """What can be said of a saved result from its question alone."""
    family, result = read_saved(path, kind)
    with progress_on(sys.stderr, str(result.question.get("unit", ""))) as watch:
        return report_of(family, result, path.parent, watch, cross_check)


def read_saved(path: Path, kind: str) -> tuple[ProblemType[Any, Any, Any], Result[Any, Any]]:
    """The result in a file, with its family."""
    family = family_of(kind)
    return family, read_as(path, lambda data: result_in(data, family.answer, family.details))
