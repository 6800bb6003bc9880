"""What a comparison says in a few figures and tables: engines over the questions, distances from the bounds, courses, and then the runs."""

from collections.abc import Iterator

from crossopt.reports.render.tables import Digest, Table
from crossopt.reports.sheets.amounts import several
from crossopt.reports.sheets.sheet import Bound, Cell
from crossopt.solvers.study.figures import NEVER, Spread, asked_in_full, best_of, bound_of, cell, courses, overall, values_along
from crossopt.solvers.study.records import Study


def of_study(study: Study) -> Digest:
    """About a comparison of engines, which has as many answers as runs and no single value."""
    rows = tuple(
        (
            study.questions[run.question].name,
            run.engine,
            str(run.seed),
            run.value,
            None if run.bound is None else Bound(run.bound),
            study.questions[run.question].unit,
            "proved" if run.proved else run.note or "not proved",
            run.seconds,
        )
        for run in study.runs
    )
    heads = ("question", "engine", "seed", "value", "bound", "unit", "proof", "seconds")
    proved = sum(any(run.proved for run in study.runs_of(question)) for question in range(len(study.questions)))
    asked, count = len(asked_in_full(study)), len(study.questions)
    partial = () if study.stopped == "complete" else (("asked of every engine", f"{asked:,} of {count:,}"),)
    return Digest(
        name=study.plan.title,
        asks="several questions",
        unit="",
        value=None,
        bound=None,
        gap=None,
        verdict="proved" if proved == len(study.questions) else "not all proved",
        prover="",
        engine=", ".join(study.plan.engines),
        seconds=study.seconds,
        design=f"{several(len(study.questions), 'question')}, {several(len(study.runs), 'run')}",
        figures=(("questions", f"{count:,}"), ("runs", f"{len(study.runs):,}"), *partial),
        tables=(_engines(study), *_distances(study), *_courses(study), Table("Runs", heads, rows)),
    )


def _engines(study: Study) -> Table:
    """What each engine comes to over all questions, the least that a paper has to say: it fits a column of a page with two."""
    every = [overall(study, engine) for engine in study.plan.engines]
    none = ("no design, proved",) if any(one.refuted for one in every) else ()
    rows = tuple(
        (
            one.engine,
            _percent(one.above, "middle"),
            _percent(one.above, "most"),
            *(f"{count}/{one.questions}" for count in (one.near, one.proved, *([one.refuted] if none else []))),
        )
        for one in every
    )
    return Table("Engines over the questions, above the best bound", ("engine", "median %", "worst %", "in 1 %", "proved", *none), rows)


def _distances(study: Study) -> Iterator[Table]:
    """Each question with each engine's median distance from the bound; the ranges where several seeds ran."""
    rows, ranges, drawn = list[tuple[Cell, ...]](), list[tuple[Cell, ...]](), _drawn(study)
    for place, question in enumerate(study.questions):
        best, bound = best_of(study, place), bound_of(study, place)
        cells = [cell(study, place, engine) for engine in study.plan.engines]
        shares = [None if one is None or one.above is None else one.above for one in cells]
        proved = None if bound is None or bound == NEVER else Bound(bound)
        value = None if best is None else best.value
        rows.append((question.name, question.unit, value, proved, *(_percent(one, "middle") for one in shares)))
        if drawn:
            ranges.append((question.name, *(_percent(shares[column], end) for column in drawn for end in ("least", "most"))))
    yield Table("Above the best bound in %", ("question", "unit", "best", "bound", *study.plan.engines), tuple(rows))
    ends = (f"{study.plan.engines[column]}, {end}" for column in drawn for end in ("least", "most"))
    yield Table("Ranges over seeds above the best bound in %", ("question", *ends), tuple(ranges))


def _drawn(study: Study) -> list[int]:
    """The columns of engines that were asked a question with several seeds."""
    every = range(len(study.questions))
    return [
        column
        for column, engine in enumerate(study.plan.engines)
        if any(one is not None and one.runs > 1 for one in (cell(study, place, engine) for place in every))
    ]


def _courses(study: Study) -> Iterator[Table]:
    """The best values along the first axis."""
    if every := courses(study):
        axis, unit = study.plan.axes[0], study.questions[every[0].questions[0]].unit
        rows = tuple((one.name or axis.name, *values_along(study, one)) for one in every)
        yield Table(f"Along {axis.name}, best values in {unit}", ("", *axis.values), rows)


def _percent(shares: Spread | None, which: str) -> float | None:
    share = NEVER if shares is None else {"middle": shares.middle, "least": shares.least, "most": shares.most}[which]
    return None if share == NEVER else 100.0 * share
