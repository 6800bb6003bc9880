"""Asks every engine every question, and holds the engines against each other: no design may be below any bound."""

from collections.abc import Callable, Sequence
from math import fsum
from pathlib import Path
from time import monotonic

from crossopt.instances.errors import ModelError, RefusedError, SolverError
from crossopt.solvers.answer import Limits, Progress, Watch, in_words, versions
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.codesign.objective import UNITS
from crossopt.solvers.family import solve
from crossopt.solvers.study.asking import Asked, Asking
from crossopt.solvers.study.columns import with_columns
from crossopt.solvers.study.figures import hold_together
from crossopt.solvers.study.records import Plan, Question, Run, Source, Study
from crossopt.solvers.sweeps.asking import turns_of as turns_for

_SHOWN = 40

Note = Callable[[str], None]
Asker = Callable[[Asked, str, Limits, Watch], DesignResult]
"""How a run comes to its result."""


def solve_now(asked: Asked, engine: str, limits: Limits, watch: Watch) -> DesignResult:
    """By solving it."""
    return solve(FAMILY, asked.instance, engine, limits, watch)


def unheard(study: Study) -> None:
    """Nobody wants to know what there is on the way."""
    del study


def run_all(asking: Asking, note: Note, told: Callable[[Study], None] = unheard, asker: Asker = solve_now) -> Study:
    """Every run of a study; Ctrl-C ends the run and all that would come after it. What is done is told after each, as if it ended there."""
    began, runs, stopped = monotonic(), list[Run](), "complete"
    turns = turns_of(asking.plan)
    total = len(asking.questions) * len(turns)

    def numbered(words: str) -> None:
        note(f"run {len(runs) + 1} of {total}  {words}")

    try:
        for place, asked in enumerate(asking.questions):
            for engine, limits in turns:
                runs.append(_run(place, asked, engine, limits, numbered, asker))
                if runs[-1].stopped == "interrupted":
                    raise KeyboardInterrupt
                if told is not unheard:
                    told(_held(asking, runs, "interrupted", monotonic() - began))
    except KeyboardInterrupt:
        stopped = "interrupted"
    return _held(asking, runs, stopped, monotonic() - began)


def _held(asking: Asking, runs: Sequence[Run], stopped: str, seconds: float) -> Study:
    """The runs as one study, held against each other; its time is at least that of its runs, some of which may have been kept before."""
    sources, questions = _written(asking.questions)
    whole = max(seconds, fsum(run.seconds for run in runs))
    study = Study(asking.plan, sources, questions, tuple(runs), stopped, whole, versions())
    for place, asked in enumerate(asking.questions):
        hold_together(asked.name, study.runs_of(place))
    return study if stopped != "complete" else with_columns(study, [asked.instance for asked in asking.questions])


def turns_of(plan: Plan) -> list[tuple[str, Limits]]:
    """Each engine with what it may spend, once for every seed that matters to it."""
    return turns_for(FAMILY, plan.engines, plan.time_limit, plan.seeds)


def _run(place: int, asked: Asked, engine: str, limits: Limits, note: Note, asker: Asker) -> Run:
    """One run; an engine that does not answer such a question says so in its note."""
    instance, began = asked.instance, monotonic()
    name = asked.name if len(asked.name) <= _SHOWN else f"{asked.name[:_SHOWN]}..."
    label = f"{name}  {engine}{f' seed {limits.seed}' if limits.seed else ''}"

    def watch(progress: Progress) -> None:
        note(f"{label}  {in_words(progress, UNITS[instance.objective])}")

    note(label)
    try:
        result = asker(asked, engine, limits, watch)
    except (RefusedError, ModelError, SolverError) as error:
        return _unanswered(place, engine, limits.seed, monotonic() - began, str(error))
    return Run(
        question=place,
        engine=engine,
        answered_by=result.engine,
        seed=limits.seed,
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
        note="",
    )


def _unanswered(place: int, engine: str, seed: int, seconds: float, note: str) -> Run:
    return Run(place, engine, engine, seed, "UNKNOWN", "complete", None, None, 0.0, False, "", seconds, (), None, False, note)


def _written(questions: Sequence[Asked]) -> tuple[tuple[Source, ...], tuple[Question, ...]]:
    """The questions as plain data, each text once; of a file only its name is kept, as the text says all."""
    sources = list[Source]()
    found = []
    for asked in questions:
        document, objective = asked.instance.document, asked.instance.objective
        source = Source(Path(document["source"]).name, document["text"], document.get("files", {}))
        sources += [] if source in sources else [source]
        number, settings = sources.index(source), tuple(document["settings"])
        found.append(Question(asked.name, asked.subject, asked.at, objective, UNITS[objective], number, settings, document.get("workload")))
    return tuple(sources), tuple(found)
