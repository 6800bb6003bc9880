"""The command `compare`: questions and engines side by side, as arguments name them or as a study does; and saved runs checked."""

import json
import sys
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from crossopt.instances.errors import RefusedError
from crossopt.instances.files.saved import read_as, write_atomically
from crossopt.instances.kinds import KINDS, kind_of_file, question_path
from crossopt.instances.studies.study import MOST_SWEPT, read_study
from crossopt.reports.commands.console import (
    ENDED_EARLY,
    Ending,
    check_target,
    code_of_ending,
    refuse_options,
    seconds_of,
    usage,
)
from crossopt.reports.commands.families import command_of
from crossopt.reports.commands.keeper import Kept, keeper
from crossopt.reports.commands.progress import hand_over, notes_on, progress_on
from crossopt.solvers.checking import Report
from crossopt.solvers.study.check import check_and_prove
from crossopt.solvers.study.records import Plan, Study, from_json, text_of

if TYPE_CHECKING:
    from crossopt.solvers.answer import Start, Status


COMPARED = (
    "auto,recipes,expert,fsdp,pipedream-flush,descent,genetic,gradient,random,nsga-ii,tpe,cma-es,bayesian,alternating,hardware-only,"
    "plan-only"
)
"""Engines that are asked where none is named."""


def compare(options: Namespace) -> Ending:
    """Run all, print what comes of it, and write the runs and the page."""
    kinds = [kind_of_file(question_path(path)) for path in options.files]
    if len(kinds) == 1 and kinds[0] not in {"codesign", "study"}:
        return _of_family(options, kinds[0])
    _refuse_mixtures(options, kinds)
    refuse_options(options, ("workload",), "a joint design")
    if options.split:
        usage("--split: this does not apply to a joint design (leave it out)")
    for target, flag in ((options.out, "--out"), (options.chart, "--chart")):
        check_target(target, flag)
    by_study = kinds == ["study"]
    study = _run(options, by_study)
    refused = bool(refused_in(study)) and (by_study or options.engines is not None)
    as_expected = all(finding.verdict != "failed" for finding in study.findings)
    complete = study.stopped == "complete" or not study.runs
    ending = Ending(_status(study), all(run.proved for run in study.runs), complete, refused, as_expected)
    _deliver(options, study, code_of_ending(ending))
    return ending


def refused_in(study: Study) -> dict[tuple[str, str], str]:
    """Why engines do not answer questions, by both their names."""
    return {(run.engine, study.questions[run.question].name): run.note for run in study.runs if run.note}


def _status(study: Study) -> "Status":
    """What came of all together: a design somewhere, or the proof that there is none, or neither."""
    found = {run.status for run in study.runs}
    if found & {"OPTIMAL", "FEASIBLE"}:
        return "FEASIBLE"
    return "INFEASIBLE" if "INFEASIBLE" in found else "UNKNOWN"


def solve(options: Namespace) -> Ending:
    """A study asks many engines; one answer it has not."""
    raise RefusedError(f"{options.file}: a study is run by `crossopt compare {options.file}`")


def validate(options: Namespace) -> Ending:
    """Say how much a study asks, after all of its questions were read, whatever kinds they are of."""
    from crossopt.solvers.sweeps.asking import ask, strange_names  # noqa: PLC0415 - a check of saved runs needs none of it

    sweep = ask(read_study(question_path(options.file), strange_names, MOST_SWEPT), tuple(options.settings))
    count, runs = len(sweep.points), len(sweep.rows)
    turns = {sum(row.question == 0 for row in sweep.rows)} if len({point.kind for point in sweep.points}) == 1 else set()
    each = f"{(each := turns.pop()):,} run{'s' * (each != 1)} of each" if turns else f"{runs:,} runs, of several kinds (`crossopt sweep`)"
    sys.stdout.write(f"{options.file}: valid: {count:,} question{'s' * (count != 1)}, {each}\n")
    return Ending("FEASIBLE", proved=True)


def check(path: Path) -> Report:
    """What can be said of saved runs from their questions alone: each is solved anew."""
    with progress_on(sys.stderr, "") as watch:
        return check_and_prove(read_as(path, from_json), watch)


def _of_family(options: Namespace, family: str) -> Ending:
    """The comparison of another family, which has one question and a table."""
    engines = options.engines if KINDS[family].commands or not KINDS[family].family else None  # asked by all kinds alike
    for given, flag in ((options.chart, "--chart"), (engines, "--engines"), (options.store, "--store"), (options.start, "--start")):
        if given is not None:
            usage(f"{flag}: this is for joint designs, and does not apply to {KINDS[family].about} (leave it out)")
    check_target(options.out)
    options.file, options.seeds = options.files[0], options.seeds or 1
    return command_of(family, "compare")(options)


def _refuse_mixtures(options: Namespace, kinds: list[str]) -> None:
    for path, kind in zip(options.files, kinds, strict=True):
        if kind == "study" and len(kinds) > 1:
            usage(f"{path}: a study names all of its questions itself (compare it alone)")
        if kind not in {"codesign", "study"}:
            usage(f"{path} asks about {KINDS[kind].about}; several questions in one comparison are joint designs (compare it alone)")


def _run(options: Namespace, by_study: bool) -> Study:
    from crossopt.solvers.codesign.family import FAMILY  # noqa: PLC0415 - a check loads no engine
    from crossopt.solvers.study.running import ask_by_names, ask_by_study, run_all  # noqa: PLC0415
    from crossopt.solvers.sweeps.asking import strange_names  # noqa: PLC0415

    given, seconds, settings = _engines(options.engines), _limit(options.time_limit), tuple(options.settings)
    start: Start = options.start or "recipe"
    if by_study:
        if options.workload is not None:
            usage("--workload: a study names the workloads of its questions itself (leave it out)")
        study = read_study(question_path(options.files[0]), partial(strange_names, only=FAMILY.kind))
        asking = ask_by_study(study, settings, given, seconds, options.seeds, start)
    else:
        if options.store is not None:
            usage("--store: the runs of a study are kept, and these are questions by their names (write a study, see instances/README.md)")
        plan = Plan("Engines side by side", "", given or _usual_engines(), seconds, options.seeds or 1, start=start)
        asking = ask_by_names(options.files, settings, options.workload, plan)
    keep = keeper()
    with notes_on(sys.stderr) as note:
        if keep is None:
            return run_all(asking, note, folder=options.store)
        keep.searching = True
        return run_all(asking, note, lambda study: keep.keep(Kept(*_written_and_shown(options, study), ENDED_EARLY)), options.store)


def _engines(names: str | None) -> tuple[str, ...]:
    """The engines that are named; an empty tuple where nothing is said."""
    from crossopt.solvers.study.running import engine_named  # noqa: PLC0415

    if names is None:
        return ()
    try:
        return tuple(dict.fromkeys(engine_named(name.strip()) for name in names.split(",") if name.strip() or not names.strip(", ")))
    except ValueError as error:
        usage(str(error))


def _usual_engines() -> tuple[str, ...]:
    """All that can be asked here; of those that cannot, one line says why."""
    from crossopt.solvers.codesign.searchers import BLACK_BOXES, INSTALLED_BY, has_optuna  # noqa: PLC0415

    engines = _engines(COMPARED)
    if has_optuna() or not (missing := [name for name in engines if name in BLACK_BOXES]):
        return engines
    sys.stderr.write(f"left out: {', '.join(missing)} (optuna is not installed: {INSTALLED_BY})\n")
    return tuple(name for name in engines if name not in missing)


def _limit(text: str | None) -> float | None:
    return None if text is None else seconds_of(text)


def _written_and_shown(options: Namespace, study: Study) -> tuple[str | None, str]:
    """The runs for the file that is named, and what is shown of them."""
    from crossopt.reports.render.terminal import refused_text, terminal  # noqa: PLC0415
    from crossopt.reports.render.width import fitted  # noqa: PLC0415
    from crossopt.reports.sheets.study import study_sheet  # noqa: PLC0415

    text, refused = text_of(study), refused_in(study) if len(study.questions) > 1 else {}  # of one question the table says it
    return text if options.out else None, text if str(options.out) == "-" else fitted(terminal(study_sheet(study)) + refused_text(refused))


def _deliver(options: Namespace, study: Study, code: int) -> None:
    if keep := keeper():
        keep.finish()
    written, shown = _written_and_shown(options, study)
    try:
        if options.chart:
            from crossopt.reports.render.paper import sheet_in  # noqa: PLC0415
            from crossopt.reports.sheets.study import study_sheet  # noqa: PLC0415

            write_atomically(options.chart, sheet_in("html", study_sheet(study), json.loads(text_of(study))))
    finally:  # a full disk must not cost the answer
        hand_over(shown, code, written, options.out)
