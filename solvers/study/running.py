"""From a study, or from names on the command line, to every engine's answer to every question, held against each other: no design may be
below any bound. Answers that a folder of a sweep has are taken from there, and new ones are put there."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import fsum
from pathlib import Path
from time import monotonic

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.errors import ModelError, RefusedError, SolverError
from crossopt.instances.files.units import nearest
from crossopt.instances.kinds import question_path
from crossopt.instances.studies.study import StudyText
from crossopt.solvers.answer import Progress, Start, Watch, in_text, result_in, to_text, versions
from crossopt.solvers.checking import solve_and_verify
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.family import ALIASES, ENGINES, FAMILY
from crossopt.solvers.codesign.objective import UNITS
from crossopt.solvers.family import solve
from crossopt.solvers.study.columns import with_columns
from crossopt.solvers.study.figures import consistency_faults
from crossopt.solvers.study.records import Plan, Question, Run, Source, Study
from crossopt.solvers.sweeps.asking import Reader, turns_of
from crossopt.solvers.sweeps.listed import Listed, Point, Row, question_digest, rows_of
from crossopt.solvers.sweeps.store import forget_failure, keep, kept_at, open_store, result_of

_SHOWN = 40

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Asking:
    """What is to be run, and the questions as they were read."""

    plan: Plan
    listed: Listed
    instances: tuple[Instance, ...]


def engine_named(name: str) -> str:
    """The engine of this name or alias; a ValueError in words if there is none."""
    if (known := ALIASES.get(name, name)) in ENGINES:
        return known
    guess = nearest(name, (*ENGINES, *ALIASES))
    raise ValueError(f"there is no engine {name!r} (one of {', '.join(ENGINES)}{f'; did you mean {guess[0]!r}?' if guess else ''})")


def ask_by_names(paths: Sequence[Path], settings: tuple[str, ...], workload: str | None, plan: Plan) -> Asking:
    """Questions by their files or names; an InstanceError for the first that is none, a RefusedError where one is named twice."""
    for path, other in combinations(paths, 2):
        if question_path(path).exists() and os.path.realpath(question_path(path)) == os.path.realpath(question_path(other)):
            raise RefusedError(f"two questions are the same: {path} and {other} (name each once)")
    instances = [read_instance(question_path(path), settings, workload) for path in paths]
    twice = {instance.name for instance in instances if sum(other.name == instance.name for other in instances) > 1}
    return ask(
        plan, instances, [str(path) if instance.name in twice else instance.name for path, instance in zip(paths, instances, strict=True)]
    )


def ask(plan: Plan, instances: Sequence[Instance], names: Sequence[str]) -> Asking:
    """Questions that are called so."""
    documents = [instance.document for instance in instances]
    digests = [question_digest(FAMILY.kind, document) for document in documents]
    named = zip(names, digests, documents, strict=True)
    return ask_points(plan, [Point(name, name, (), FAMILY.kind, digest, document) for name, digest, document in named], instances)


def ask_points(plan: Plan, points: Sequence[Point], instances: Sequence[Instance]) -> Asking:
    """The questions at these points, asked of those that the plan names."""
    turns = turns_of(FAMILY, plan.engines, plan.time_limit, plan.seeds, plan.start)
    rows = tuple(row for number, point in enumerate(points) for row in rows_of(number, point, turns))
    named = [(point.subject, Path(instance.document["source"]).stem) for point, instance in zip(points, instances, strict=True)]
    plan = replace(plan, called=tuple(dict.fromkeys(subject for subject, stem in named if subject and subject != stem)))
    return Asking(plan, Listed(plan.title, plan.axes, tuple(points), rows), tuple(instances))


def ask_by_study(
    study: StudyText,
    settings: tuple[str, ...] = (),
    engines: tuple[str, ...] = (),
    time_limit: float | None = None,
    seeds: int | None = None,
    start: Start = "recipe",
) -> Asking:
    """The questions of a study, with settings laid over each of them; an InstanceError with every fault of all of them. Engines, a time
    limit and seeds that are given count in place of the study's."""
    file, reader = study.file, Reader(study, settings, only=FAMILY.kind, read_question=read_instance)
    listed = reader.sweep()
    engines = engines or tuple(dict.fromkeys(map(engine_named, file.engines)))
    limit, description = file.time_limit if time_limit is None else time_limit, " ".join((file.description or "").split())
    plan = Plan(file.title, description, engines, limit, seeds or file.seeds, listed.axes, claims=file.claims, start=start)
    return ask_points(plan, listed.points, [reader.questions[number] for number in range(reader.count)])


def run_all(asking: Asking, note: Note, after_each: Callable[[Study], None] | None = None, folder: Path | None = None) -> Study:
    """Every run of a study; Ctrl-C ends the run and all that would come after it. Each run is followed by a report of the study so far.

    With a folder each answer is kept there before the next is asked, and what is there is not asked again.
    """
    began, runs, stopped, rows = monotonic(), list[Run](), "complete", asking.listed.rows
    if folder is not None:
        open_store(folder, asking.listed)

    def numbered(message: str) -> None:
        note(f"run {len(runs) + 1} of {len(rows)}  {message}")

    try:
        for row in rows:
            runs.append(_run(asking, row, numbered, folder))
            if runs[-1].stopped == "interrupted":
                raise KeyboardInterrupt
            if after_each is not None:
                after_each(_study(asking, runs, "interrupted", monotonic() - began))
    except KeyboardInterrupt:
        stopped = "interrupted"
    return _study(asking, runs, stopped, monotonic() - began)


def _study(asking: Asking, runs: Sequence[Run], stopped: str, seconds: float) -> Study:
    """The runs as one study, held against each other; its time is at least that of its runs, some of which may have been kept before."""
    sources, questions = _written(asking)
    total = max(seconds, fsum(run.seconds for run in runs))
    study = Study(asking.plan, sources, questions, tuple(runs), stopped, total, versions())
    for number, question in enumerate(questions):
        consistency_faults(question.name, study.runs_of(number))
    return study if stopped != "complete" else with_columns(study, asking.instances)


def _run(asking: Asking, row: Row, note: Note, folder: Path | None) -> Run:
    """One run; the refusal of an engine is its note."""
    name, unit, began = asking.listed.points[row.question].name, UNITS[asking.instances[row.question].objective], monotonic()
    name = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
    label = f"{name}  {row.engine}{f' seed {row.seed}' if row.seed else ''}"

    def watch(progress: Progress) -> None:
        note(f"{label}  {in_text(progress, unit)}")

    note(label)
    try:
        result = _answer(asking, row, watch, folder)
    except (RefusedError, ModelError, SolverError) as error:
        seconds, labels = monotonic() - began, (row.question, row.engine, row.engine, row.seed)
        return Run(*labels, "UNKNOWN", "complete", None, None, 0.0, False, "", seconds, (), None, False, str(error))
    return Run(
        question=row.question,
        engine=row.engine,
        answered_by=result.engine,
        seed=row.seed,
        status=result.status,
        stopped=result.stopped,
        value=result.value,
        bound=result.bound,
        gap_asked=result.gap_asked,
        proved=result.proved,
        proved_by=result.proved_by,
        seconds=result.seconds,
        trace=result.trace,
        design=result.answer.design if result.answer else None,
        verified=result.details is not None,
    )


def _answer(asking: Asking, row: Row, watch: Watch, folder: Path | None) -> DesignResult:
    """What the folder has of a run, else what the engine says now."""
    point, instance = asking.listed.points[row.question], asking.instances[row.question]
    if folder is None:
        return solve(FAMILY, instance, row.engine, row.limits, watch)
    data = result_of(kept_at(folder, row.key), row, point).data
    if data is not None:
        return result_in(data, FAMILY.answer, FAMILY.details)
    result = solve_and_verify(FAMILY, instance, row.engine, row.limits, watch)
    if result.stopped != "interrupted":
        keep(folder, row.key, to_text(result))
        forget_failure(folder, row.key)
    return result


def _written(asking: Asking) -> tuple[tuple[Source, ...], tuple[Question, ...]]:
    """The questions as plain data, each text once; of a file only its name is kept, as the text says all."""
    sources, found = list[Source](), list[Question]()
    for point, instance in zip(asking.listed.points, asking.instances, strict=True):
        document, objective = instance.document, instance.objective
        source = Source(Path(document["source"]).name, document["text"], document.get("files", {}))
        sources += [] if source in sources else [source]
        number, settings = sources.index(source), tuple(document["settings"])
        found.append(Question(point.name, point.subject, point.at, objective, UNITS[objective], number, settings, document.get("workload")))
    return tuple(sources), tuple(found)
