"""What a study's sheet says beyond its runs: how it is set up, derived columns with measured points beside them, what was expected, and
what is left open."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import saved_single_scale
from crossopt.instances.studies.study import SUBJECT, Claims, MeasuredSection, as_name
from crossopt.reports.drawing.plots import Line, Mark, Row, lines, ranges
from crossopt.reports.drawing.plots import Line as Drawn
from crossopt.reports.drawing.plots import lines as drawn_lines
from crossopt.reports.drawing.svg import NARROW
from crossopt.reports.facts.chip import design_text, hardware_text
from crossopt.reports.facts.uses import UNEQUAL, Uses, saved_text, uses_named, uses_of
from crossopt.reports.sheets.amounts import amount, seconds_of, several, with_unit
from crossopt.reports.sheets.sheet import Bound, Cell, Column, Part, Picture, Section, Sheet, Table, counts, given_in, names
from crossopt.solvers.codesign.family import SEARCHING
from crossopt.solvers.study.figures import (
    NEVER,
    Course,
    Overall,
    Spread,
    best_of,
    bound_of,
    cell,
    courses,
    covered_questions,
    flips_along,
    gains_along,
    is_covered,
    level_from,
    overall,
    values_along,
)
from crossopt.solvers.study.figures import Cell as Ended
from crossopt.solvers.study.records import Derived, Finding, Plan, Run, Study

_LINES, _PAIRS, _MOST_LINES = 8, 5, 12
"""Lines that a picture can tell apart, courses where some have measured points beside them, and lines that have room for their names."""


def set_up(study: Study, limit: str) -> Section:
    """What is asked, along which axes, with what in common, and what each run may spend."""
    shared = set.intersection(*(set(question.settings) for question in study.questions)) if len(study.questions) > 1 else set()
    first = study.questions[0]
    axes = [f"{axis.name}: {', '.join(axis.values)}" for axis in study.plan.axes]
    subjects = list(dict.fromkeys(question.subject for question in study.questions if question.subject))
    sources = ", ".join(dict.fromkeys(source.source for source in study.sources))
    objectives = dict.fromkeys(question.objective.replace("_", " ") for question in study.questions)
    lines = [f"{sources}, asked for the least {' or '.join(objectives)}, by {', '.join(study.plan.engines)}"]
    lines += [f"{len(subjects)} subjects: {', '.join(subjects)}"] if len(subjects) > 1 else []
    common = [setting.partition("=")[::2] for setting in first.settings if setting in shared]
    rows = (Table((names("of all questions", (name for name, _ in common)), names("value", (value for _, value in common)))),)
    return Section("How it is set up", ((*lines, *axes, limit), *(rows if common else ())))


def derived_section(study: Study) -> Section:
    """What is derived, and a picture for each column that is drawn."""
    shown = {claim.name: claim.drawn for claim in study.plan.claims.derive}
    shown_columns = [column for column in study.derived if shown[column.name] and study.plan.axes]
    meant = tuple(f"{claim.name.replace('_', ' ')} is `{claim.formula}`" for claim in study.plan.claims.derive)
    pictures = [picture for column in shown_columns for picture in _pictures(study, column)]
    return Section("What is derived", (meant, *pictures) if study.derived else ())


def columns_section(study: Study) -> Section:
    """Every derived figure."""
    return Section("Derived figures", tuple(part for column in study.derived for part in _column_table(study, column)))


def _pictures(study: Study, column: Derived) -> Iterator[Picture]:
    """The courses of a column along the first axis, a few lines a picture, with what was measured beside them."""
    every = [(course, line) for course in courses(study) if any((line := _line(column, course)).values)]
    points = [points_of for points_of in study.plan.claims.against if points_of.column == column.name]
    size = _PAIRS if points else _LINES
    for first in range(0, len(every), size):
        part = every[first : first + size]
        curves = list[Line]()
        for course, line in part:
            curves.append(line)
            curves += [_measured(study, points_of) for points_of in points if _is_beside(study, points_of, course)]
        yield _picture(study, column, curves)


def _line(column: Derived, course: Course) -> Line:
    """The upper ends, which are known designs' figures wherever less is better and the bound's elsewhere."""
    ends = [column.ends[question] for question in course.questions]
    values = tuple(None if pair is None or pair[0] <= 0.0 else pair[1] for pair in ends)
    return Line(course.name or column.name.replace("_", " "), values, (False,) * len(values))


def _measured(study: Study, points: MeasuredSection) -> Line:
    values = tuple(points.points.get(at) for at in study.plan.axes[0].values)
    return Line(f"measured: {points.name}", values, (False,) * len(values))


def _is_beside(study: Study, points: MeasuredSection, course: Course) -> bool:
    at = dict(zip([as_name(axis.name) for axis in study.plan.axes[1:]], course.at, strict=True)) | {SUBJECT: course.subject}
    return {as_name(axis): value for axis, value in points.where.items()}.items() <= at.items()


def _picture(study: Study, column: Derived, curves: Sequence[Line]) -> Picture:
    values = [value for line in curves for value in line.values if value is not None]
    axis, what = study.plan.axes[0], column.name.replace("_", " ")
    text = "; ".join(f"{line.label}: {', '.join('none' if value is None else f'{value:.4g}' for value in line.values)}" for line in curves)
    reach, upward = (min(values), max(values)), f"{what}{f' in {column.unit}' if column.unit else ''}"
    return Picture(
        lambda titles: lines(titles, axis.values, curves, (axis.name, upward if titles.width > NARROW else what), reach),
        "",
        "",
        title=f"{what} along {axis.name}",
        described=f"{text}.",
        zooms=False,
    )


def _column_table(study: Study, column: Derived) -> Iterator[Part]:
    what = f"{column.name.replace('_', ' ')}{f' in {column.unit}' if column.unit else ''}"
    every = courses(study)
    if not every:
        yield Table((names("", (question.name for question in study.questions)), _ends(what, column.ends)))
        return
    axis, rows = study.plan.axes[0], list[tuple[str, list[Ends]]]()
    for course in every:
        rows.append((course.name or axis.name, [column.ends[question] for question in course.questions]))
        for points_of in study.plan.claims.against:
            if points_of.column == column.name and _is_beside(study, points_of, course):
                points: list[Ends] = [(value, value) if (value := points_of.points.get(at)) else None for at in axis.values]
                rows.append((f"measured: {points_of.name}", points))
    columns = (_ends(at, [cells[index] if index < len(cells) else None for _, cells in rows]) for index, at in enumerate(axis.values))
    yield Table((names("", (name for name, _ in rows)), *columns), caption=f"{what}.")


Ends = tuple[float, float] | None


def _ends(head: str, ends: Sequence[Ends]) -> Column:
    """Figures between two ends; spreadsheets have both where they differ."""
    low, high = (tuple(None if pair is None else pair[at] for pair in ends) for at in (0, 1))
    column = Column(head, tuple(map(ends_text, ends)), low)
    return column if low == high else replace(column, exact_head=f"{head}, least", more=((f"{head}, most", high),))


def first_finding(study: Study) -> list[str]:
    """What failed first, else the first that held, and how many others did: the headline of a study that expects something."""
    failed = [finding for finding in study.findings if finding.verdict == "failed"]
    holding = [finding for finding in study.findings if finding.verdict == "held"]
    if failed:
        return [f"Contrary to the expectation, it does not hold that {failed[0].says}; {verdicts_text(study)}."]
    if not holding:
        return []
    more = len(holding) - 1
    return [f"As expected {holding[0].says}{f'; so are {more} of {len(study.findings) - 1} further expectations' if more else ''}."]


def expected_section(study: Study) -> Section:
    """Each expectation with what came of it."""
    if not study.plan.claims.expect and not study.findings:
        return Section("What was expected", ())
    meant = "An expectation holds if it holds for every figure between bound and value, so that unexplored plans cannot break it."
    summary = verdicts_text(study)
    rows = [(finding.verdict, finding_text(finding)) for finding in study.findings]
    return Section("What was expected", (f"{summary[0].upper()}{summary[1:]}. {meant}", *([given_in(rows)] if rows else [])))


def open_section(study: Study) -> Section:
    """What the study does not say, and who measured."""
    sources = [f"Measured points of {points.name}: {points.source}" for points in study.plan.claims.against]
    return Section("What it does not say", ((*study.plan.claims.leaves_open, *sources),))


def verdicts_text(study: Study) -> str:
    """How much of what was expected is so."""
    if not study.findings:
        return "expectations are judged once all runs are finished"
    counts = {verdict: sum(finding.verdict == verdict for finding in study.findings) for verdict in ("held", "failed", "open")}
    return f"expected: {', '.join(f'{count} {verdict}' for verdict, count in counts.items() if count)}"


def finding_text(finding: Finding) -> str:
    """An expectation, and what came of it."""
    return f"{finding.says}: {finding.words}{f' ({finding.source})' if finding.source else ''}"


def ends_text(ends: Ends) -> str:
    """A derived figure: one number where both ends read alike."""
    if ends is None:
        return "-"
    least, most = (f"{end:.4g}" for end in ends)
    return least if least == most else f"{least} to {most}"


# The sheet of a comparison: how far each engine ends from the best bound and when, courses along an axis, and what was expected.

_FEW: Final = 12
"""Questions up to which each has rows of its own in the pictures."""
_SHOWN: Final = 40
"""Rows of a picture beyond which it is left out."""
_ABOUT: Final = (
    "Every design was priced again by the full model, on its own, after its engine; no design is below any bound. `crossopt check` reads "
    "the questions in this file again, prices every design, solves each question again as far as its bounds go, and applies the rules. "
    "What the figures assume stands on the page of a single design (`crossopt solve`, then `crossopt report`)."
)
_LATE: Final = Spread(NEVER, NEVER, NEVER)


def study_sheet(study: Study) -> Sheet:
    """What is shown."""
    plan, count = study.plan, len(study.questions)
    optima = sum(any(run.proved for run in study.runs_of(question)) for question in range(count))
    limit = "searchers have 5 s, others no limit" if plan.time_limit is None else f"each run has {seconds_of(plan.time_limit)}"
    seeds = f"; engines that draw at random run {plan.seeds} times" if plan.seeds > 1 else ""
    seconds = sum(run.seconds for run in study.runs)
    partial = () if study.stopped == "complete" else (("asked of every engine", f"{len(covered_questions(study)):,} of {count:,}"),)
    alone = count == 1
    runs = f"{several(len(study.runs), 'run')} in {seconds_of(study.seconds)}, of which the engines took {seconds_of(seconds)}"
    ended = "" if study.stopped == "complete" else f"; {study.stopped} before all were done, {partial_text(study)}"
    answered = f"{optima} of {several(count, 'question')} {'is' if alone else 'are'} answered with a proof"
    verdict = f"{answered}; distances are from the best bound that any engine proved. {runs}{ended}.{_start_text(plan)}"
    first = study.questions[0]
    title = (
        with_unit(first.objective.replace("_", " "), first.unit)
        if alone
        else f"{several(count, 'question')}, {several(len(plan.engines), 'engine')}"
    )
    return Sheet(
        name=first.name if alone else plan.title,
        sentence=plan.description or f"{several(count, 'question')}, asked of {', '.join(plan.engines)}.",
        headline=f"{title}: {' '.join(_headline(study))}".rstrip(": "),
        label="proved" if optima == count else "not all proved",
        verdict=verdict,
        proved=optima == count and study.stopped == "complete",
        asks="several questions",
        figures=(("questions", f"{count:,}"), ("runs", f"{len(study.runs):,}"), ("in all", seconds_of(study.seconds)), *partial),
        summary=" ".join(_headline(study)),
        brief=lambda: (
            *(("answer", sentence) for sentence in _headline(study)),
            ("proof", f"{answered}; distances are from the best bound that any engine proved"),
            ("runs", f"{runs}{ended}.{_start_text(plan)}"),
            ("next", "`crossopt check` solves each question again"),
        ),
        sections=(
            *((_by_engine(study), _designs_of(study), _uses(study)) if alone else (_engines(study), *_several(study))),
            *_along(study),
            expected_section(study),
            _runs(study),
        ),
        details=lambda: _details(study, f"Of each run: {limit}{seeds}. Of several seeds the median counts."),
        engine=", ".join(plan.engines),
        seconds=study.seconds,
        known=(_ABOUT,),
    )


def _start_text(plan: Plan) -> str:
    """From which design searches began, where there is a search."""
    if not {*SEARCHING, "auto", "boxes", "milp", "cpsat"} & {*plan.engines}:
        return ""
    return f" Searches start {'cold, without a recipe' if plan.start == 'cold' else 'from the design of the best recipe'}."


def _details(study: Study, limit: str) -> tuple[Section, ...]:
    set_ = (set_up(study, limit),) if study.plan.claims != Claims() else (Section("How it is set up", (limit,)),)
    return (
        derived_section(study),
        *set_,
        *_study_pictures(study),
        *([] if len(study.questions) == 1 else [_best(study)]),
        columns_section(study),
        open_section(study),
    )


def _headline(study: Study) -> list[str]:
    """What of what was expected is so, who proves the optimum, who of the others comes nearest, and who stays farthest away."""
    known = [row for row in (overall(study, engine) for engine in study.plan.engines) if row.above is not None and row.questions]
    provers = [row for row in known if row.proved == row.questions]
    others = sorted((row for row in known if row not in provers), key=lambda row: _away(row)[:2])
    sentences = first_finding(study)
    if provers:
        which = "the question" if provers[0].questions == 1 else f"all {provers[0].questions} questions"
        best = best_of(study, 0) if len(study.questions) == 1 else None
        named = " and ".join(row.engine if best is None else called(study.runs_of(0, row.engine)[0]) for row in provers)
        value = "" if best is None else f", {amount(best.value, study.questions[0].unit)}"
        sentences.append(f"{named} prove{'s' * (len(provers) == 1)} the optimum of {which}{value}.")
    if others:
        first, last = others[0], others[-1]
        if len(others) > 1 and _away(last)[1] == 0.0:
            return [*sentences, "All others reach it too."]
        if len(others) > 1 and _away(first) == _away(last):
            return [*sentences, f"All others end {_away_text(first)}."]
        farthest = f"; {last.engine} stays farthest away, {_away_text(last)}" if len(others) > 1 else ""
        sentences.append(f"Of the other{'s' * (len(others) > 1)} {first.engine} comes nearest, {_away_text(first)}{farthest}.")
    return sentences


def _away(row: Overall) -> tuple[float, float]:
    return (row.above.middle, row.above.most) if row.above else (NEVER, NEVER)


def _away_text(row: Overall) -> str:
    middle, most = _away(row)
    if row.questions == 1 or middle == most:
        return f"{share_of(middle)} above the bound"
    return f"{share_of(middle)} above the bound in the median and {share_of(most)} at worst"


def partial_text(study: Study) -> str:
    """How much was asked of a comparison that is not whole; empty of one that is."""
    if study.stopped == "complete":
        return ""
    complete, count = len(covered_questions(study)), len(study.questions)
    verb = "was" if count == 1 else "were"
    return f"not whole: {complete:,} of {several(count, 'question')} {verb} asked of every engine, the rest of some or none"


# --- a single question ---------------------------------------------------------------------------------------------------------------


def _cells(study: Study, question: int) -> list[Ended]:
    return [found for engine in study.plan.engines if (found := cell(study, question, engine)) is not None]


def _by_engine(study: Study) -> Section:
    """Each engine's value, its distance from the bound, and its times."""
    cells = _cells(study, 0)
    seeded = any(ended.runs > 1 for ended in cells)
    columns = (
        names("engine", (called(ended.run) for ended in cells)),
        _column(
            "value",
            [(_value(ended), None if ended.value.middle == NEVER else ended.value.middle) for ended in cells],
            study.questions[0].unit,
        ),
        _shares("above bound", [ended.above for ended in cells]),
        *([_ranges(cells)] if seeded else []),
        _times("to 1 %", [ended.near for ended in cells]),
        _times("to proof", [ended.proved for ended in cells]),
        _times("seconds", [ended.seconds for ended in cells]),
    )
    return Section("Engines", (Table(columns), f"{_verdict(study, 0)}."))


def _times(head: str, times: Sequence[Spread | None]) -> Column:
    """Medians of times, in seconds for spreadsheets."""
    exact = tuple(None if time is None or time.middle == NEVER else time.middle for time in times)
    return Column(
        head, tuple("" if time is None else late(time) for time in times), exact, with_unit(head, "s" if head != "seconds" else "")
    )


def _ranges(cells: Sequence[Ended]) -> Column:
    """The least and the most over seeds, above the bound where one is known."""
    above, what = any(ended.above is not None for ended in cells), "above bound in %"
    ends = [
        tuple(_percent(ended.above, end) if above else _finite(getattr(ended.value, end)) for ended in cells) for end in ("least", "most")
    ]
    texts = tuple("" if ended.runs == 1 else _range(ended) for ended in cells)
    heads = [f"{end} {what if above else 'value'}" for end in ("least", "most")]
    return Column("range over seeds", texts, ends[0], heads[0], ((heads[1], ends[1]),))


def _finite(value: float) -> float | None:
    return None if value == NEVER else value


def _value(ended: Ended) -> str:
    return "none" if ended.value.middle == NEVER else f"{ended.value.middle:.5g}"


def _column(head: str, cells: Sequence[tuple[str, Cell]], unit: str = "") -> Column:
    return Column(head, tuple(text for text, _ in cells), tuple(exact for _, exact in cells), with_unit(head, unit) if unit else "")


def _shares(head: str, gaps: Sequence[Spread | None], which: str = "middle") -> Column:
    """Distances from the bound, in percent for spreadsheets."""
    return _column(head, [("" if gap is None else share_of(getattr(gap, which)), _percent(gap, which)) for gap in gaps], "%")


def _percent(gaps: Spread | None, which: str) -> float | None:
    share = NEVER if gaps is None else float(getattr(gaps, which))
    return None if share == NEVER else 100.0 * share


def _designs_of(study: Study) -> Section:
    return Section("The designs", (given_in([(called(ended.run), _design(ended.run)) for ended in _cells(study, 0)]),))


def _design(run: Run) -> str:
    return run.note or ("no design found" if run.design is None else design_text(run.design))


def _uses(study: Study) -> Section:
    """Where each step goes, the designs beside each other, and what the best saves of the others'."""
    found = uses_in(study, 0)
    if len(found) < 2:
        return Section("Where the step goes", ())
    used = uses_named(found)
    columns = [
        _column(uses.name, [(amount(value, "s"), value) for value in (*(uses.seconds.get(name, 0.0) for name in used), uses.step)], "s")
        for uses in found
    ]
    best = min(found, key=lambda uses: uses.step)
    savings = [(uses.name, text) for uses in found if (text := saved_text(best, uses, is_proved(study, best)))]
    unequal = (f"{UNEQUAL.capitalize()}.",) if any(uses.seconds.get("unequal stages") for uses in found) else ()
    table = Table((names("use", (*used, "the whole step")), *columns))
    return Section("Where the step goes", (table, *unequal, *([given_in(savings)] if savings else [])))


def _range(ended: Ended) -> str:
    if ended.above is not None:
        return ends_of(ended.above)
    return " to ".join("none" if value == NEVER else f"{value:.4g}" for value in (ended.value.least, ended.value.most))


def uses_in(study: Study, question: int) -> list[Uses]:
    """The uses of time of what each engine chose, each plan once; none of several workloads, each of which has a step of its own."""
    instance, found = saved_single_scale(study.document(question)), dict[str, Uses]()
    for engine in study.plan.engines:
        ended = cell(study, question, engine)
        if ended is not None and ended.run.design is not None and isinstance(instance, Instance):
            found.setdefault(design_text(ended.run.design), uses_of(instance, called(ended.run), ended.run.design))
    return list(found.values())


def is_proved(study: Study, best: Uses) -> bool:
    """Whether a design of the only question is the optimum: one of a value that some engine proved."""
    values = {run.value for run in study.runs_of(0) if run.proved}
    return any(run.value in values for run in study.runs_of(0) if called(run) == best.name)


def called(run: Run) -> str:
    """The engine that answered."""
    return run.answered_by


def share_of(gap: float) -> str:
    """A distance from the bound."""
    return "none" if gap == NEVER else f"{gap:.2%}" if gap < 100.0 else f"{gap + 1.0:.3g} times"


def ends_of(gaps: Spread) -> str:
    """The range of distances from the bound, one figure where both ends read alike."""
    least, most = share_of(gaps.least), "no design" if gaps.most == NEVER else share_of(gaps.most)
    return least if least == most else f"{least} to {most}"


def time_of(seconds: float) -> str:
    """A time, or that it never came."""
    return "-" if seconds == NEVER else seconds_of(seconds) if seconds < 0.001 else f"{seconds:.3g} s"


def late(times: Spread) -> str:
    """The median of times."""
    return time_of(times.middle)


def _verdict(study: Study, question: int) -> str:
    """Who proved the best bound, or that there is no design."""
    bound, unit, runs = bound_of(study, question), study.questions[question].unit, study.runs_of(question)
    if bound == NEVER:
        provers = sorted({run.proved_by for run in runs if run.status == "INFEASIBLE"})
        return f"no design of the question keeps every limit, proved by {', '.join(provers)} (`crossopt solve` tells which limit)"
    if bound is None:
        return "no engine proved a bound"
    return f"bound {bound:.5g} {unit}, proved by {', '.join(sorted({run.proved_by for run in runs if run.bound == bound}))}"


# --- several questions ---------------------------------------------------------------------------------------------------------------


def _several(study: Study) -> Iterator[Section]:
    """Distances from the bounds, ranges over seeds, and times."""
    places, engines = range(len(study.questions)), study.plan.engines
    every = [[cell(study, index, engine) for engine in engines] for index in places]
    questions = names("question", (question.name for question in study.questions))
    bests, bounds = [best_of(study, index) for index in places], [bound_of(study, index) for index in places]
    best = [(_best_text(study, index), None if value is None else value.value) for index, value in zip(places, bests, strict=True)]
    bound = [
        (
            "no design" if bound == NEVER else "-" if bound is None else _amount(bound, study.questions[index].unit),
            None if bound in (None, NEVER) else Bound(float(bound or 0.0)),
        )
        for index, bound in zip(places, bounds, strict=True)
    ]
    gaps = [
        _column(engine, [(_gap(row[index]), None if (ended := row[index]) is None else _percent(ended.above, "middle")) for row in every])
        for index, engine in enumerate(engines)
    ]
    unit = names("unit", (question.unit for question in study.questions))
    yield Section(
        "Above the best bound in %",
        (
            f"{_measure(study)} (of several seeds the median).",
            Table((questions, unit, _column("best", best), _column("bound", bound), *gaps)),
        ),
    )
    seeded = [index for index in range(len(engines)) if any((ended := row[index]) is not None and ended.runs > 1 for row in every)]
    spread = [
        _shares(f"{engines[index]}, {end}", [None if (ended := row[index]) is None else ended.above for row in every], end)
        for index in seeded
        for end in ("least", "most")
    ]
    yield Section("Ranges over seeds above the best bound in %", (Table((questions, *spread)),) if spread else ())
    times = [_pairs(engine, [row[index] for row in every]) for index, engine in enumerate(engines)]
    yield Section("Seconds to within 1 % of the bound, and to the proof", (Table((questions, *times)),))


def _best_text(study: Study, question: int) -> str:
    best = best_of(study, question)
    if best is not None:
        return _amount(best.value, study.questions[question].unit)
    return "no design" if bound_of(study, question) == NEVER else "none found" if study.runs_of(question) else "not asked"


def _amount(value: float | None, unit: str) -> str:
    return "none" if value is None else amount(value, unit)


def _engines(study: Study) -> Section:
    """What each engine comes to over all questions: distances, which fit a column of a paper with two, and times."""
    every = [overall(study, engine) for engine in study.plan.engines]
    above = [("none" if row.above is None else share_of(row.above.middle), _percent(row.above, "middle")) for row in every]
    worst = [("" if row.above is None else _worst(row.above), _percent(row.above, "most")) for row in every]
    engines = names("engine", (row.engine for row in every))
    table = Table(
        (
            engines,
            Column("above bound", tuple(text for text, _ in above), tuple(exact for _, exact in above), "median %"),
            Column("at worst", tuple(text for text, _ in worst), tuple(exact for _, exact in worst), "worst %"),
            _of("within 1 %", "in 1 %", [(row.near, row.questions) for row in every]),
            _of("proved", "proved", [(row.proved, row.questions) for row in every]),
            *([counts("no design, proved", [row.refuted for row in every])] if any(row.refuted for row in every) else []),
        )
    )
    times = Table(
        (
            engines,
            _times("to 1 %", [row.near_after for row in every]),
            replace(_times("to proof", [row.proved_after for row in every]), more=(("questions", tuple(row.questions for row in every)),)),
        )
    )
    refuted = refuted_text(study)
    note = f"Over the questions that {coverage_text(study)}have a design and a bound: the median, and the worst."
    return Section("Engines over the questions, above the best bound", (table, times, note, *([f"{refuted}."] if refuted else [])))


def _of(head: str, short: str, pairs: Sequence[tuple[int, int]]) -> Column:
    return Column(head, tuple(f"{count} of {of}" for count, of in pairs), tuple(count for count, _ in pairs), short)


def _worst(gaps: Spread) -> str:
    return "no design" if gaps.most == NEVER else share_of(gaps.most)


def _runs(study: Study) -> Section:
    """Every run, for spreadsheets alone."""
    runs, questions = study.runs, [study.questions[run.question] for run in study.runs]
    columns = (
        names("question", (question.name for question in questions)),
        names("engine", (run.engine for run in runs)),
        counts("seed", [run.seed for run in runs]),
        Column("value", ("",) * len(runs), tuple(run.value for run in runs)),
        Column("bound", ("",) * len(runs), tuple(None if run.bound is None else Bound(run.bound) for run in runs)),
        names("unit", (question.unit for question in questions)),
        names("proof", ("proved" if run.proved else run.note or "not proved" for run in runs)),
        Column("seconds", ("",) * len(runs), tuple(run.seconds for run in runs)),
    )
    return Section("Runs", (Table(columns, most=0),))


def _best(study: Study) -> Section:
    """The best design of each question."""
    found = [
        (question.name, best.design) for number, question in enumerate(study.questions) if (best := best_of(study, number)) and best.design
    ]
    columns = (
        names("", (name for name, _ in found)),
        names("chip", (" · ".join(hardware_text(design)[1:]) or design.hardware.name for _, design in found)),
        names("plan", (design.plan_label for _, design in found)),
    )
    return Section("The best designs", (Table(columns),) if found else ())


def _measure(study: Study) -> str:
    """What the figures of engines are."""
    bounds = [bound_of(study, question) for question in range(len(study.questions))]
    if all(bound is None for bound in bounds):
        return "Values, as no engine proved a bound"
    return f"How far above the bound{', or the value where no bound was proved' if None in bounds else ''}"


def _gap(ended: Ended | None) -> str:
    if ended is None or ended.run.note:
        return "not run" if ended is None else "not answered"
    if ended.run.status == "INFEASIBLE":
        return "proved"
    return share_of(ended.above.middle) if ended.above is not None else "none" if ended.run.value is None else f"{ended.run.value:.5g}"


def _pairs(engine: str, cells: Sequence[Ended | None]) -> Column:
    """Seconds until an engine is near the bound and until it has proved, as one text and as two figures."""
    near = tuple(None if ended is None or ended.near is None else _finite(ended.near.middle) for ended in cells)
    proved = tuple(None if ended is None else _finite(ended.proved.middle) for ended in cells)
    texts = tuple("" if ended is None else _pair(ended) for ended in cells)
    return Column(engine, texts, near, f"{engine} to 1 % in s", ((f"{engine} to proof in s", proved),))


def _pair(ended: Ended) -> str:
    near = NEVER if ended.near is None else ended.near.middle
    return f"{_short(near)} / {_short(ended.proved.middle)}"


def _short(seconds: float) -> str:
    """At most five signs, so that two stand in a column."""
    return "-" if seconds == NEVER else f"{seconds:.2f}" if seconds < 100.0 else f"{seconds:.0f}"


def refuted_text(study: Study) -> str:
    """How many questions have no design, and who proved that of how many; nothing where all have one or may have one."""
    count = sum(bound_of(study, question) == NEVER for question in range(len(study.questions)))
    shares = [f"{row.engine} of {row.refuted}" for row in (overall(study, engine) for engine in study.plan.engines) if row.refuted]
    return f"{several(count, 'question')} beside these without a design, proved by {', '.join(shares)}" if count else ""


def coverage_text(study: Study) -> str:
    """Which questions count where not all were asked."""
    return "" if study.stopped == "complete" else "were asked of every engine and "


# --- along the first axis ------------------------------------------------------------------------------------------------------------


def _along(study: Study) -> Iterator[Section]:
    """A picture for each value of the third axis on, all with one scale, and a table with the steps; and where courses level off."""
    every = courses(study)
    if not every:
        return
    axis, unit = study.plan.axes[0], study.questions[every[0].questions[0]].unit
    panels = dict.fromkeys(_panel(course) for course in every)
    pictures = [
        picture for panel in panels if (picture := _panel_of(study, panel, [course for course in every if _panel(course) == panel]))
    ]
    note = "In brackets what the step from the left changes; a star: another plan."
    columns = [_column(at, [_step(study, course, index) for course in every]) for index, at in enumerate(axis.values)]
    yield Section(
        f"Along {axis.name}, best values in {unit}",
        (*pictures, Table((names("", (course.name or axis.name for course in every)), *columns)), note),
    )
    items = ["; ".join(course_text(study, course.questions)) for course in every]
    items_named = tuple(f"{course.name}: {text}" if course.name else text for course, text in zip(every, items, strict=True))
    yield Section("Where it levels off, and where the plan changes", (items_named,))


def _step(study: Study, course: Course, index: int) -> tuple[str, Cell]:
    """A value of a course and what the step to it gains."""
    if index >= len(course.questions):
        return "", None
    value, gain = list(values_along(study, course))[index], list(gains_along(values_along(study, course)))[index]
    none = "none" if is_covered(study, course.questions[index]) else "not asked"
    step = "" if gain is None else f" ({-gain:+.0%})"
    return f"{none if value is None else f'{value:.3g}'}{step}{' *' if list(flips_along(study, course))[index] else ''}", value


def _positive(study: Study, course: Course) -> list[float]:
    """The values that a scale of factors can show."""
    return [value for value in values_along(study, course) if value is not None and value > 0.0]


def _unit(study: Study, course: Course) -> str:
    return study.questions[course.questions[0]].unit


def _panel(course: Course) -> tuple[str, ...]:
    """What the courses of one picture share: all but the value on the second axis."""
    return (*([course.subject] if course.subject else []), *course.at[1:])


def _panel_text(study: Study, panel: Sequence[str]) -> str:
    """Title of a picture of courses: their subject, and their values with the names of the axes."""
    named = [axis.name for axis in study.plan.axes[2:]]
    subject, values = panel[: len(panel) - len(named)], panel[len(panel) - len(named) :]
    return ", ".join([*subject, *(f"{name} {value}" for name, value in zip(named, values, strict=True))])


def _panel_of(study: Study, panel: tuple[str, ...], members: Sequence[Course]) -> Picture | None:
    """Courses as lines, on the scale of all courses of this unit."""
    axis, question, name = study.plan.axes[0], study.questions[members[0].questions[0]], _panel_text(study, panel)
    comparable = [value for course in courses(study) if _unit(study, course) == question.unit for value in _positive(study, course)]
    if not comparable:
        return None
    lines = list[Drawn]()
    step = max(len(members) / _MOST_LINES, 1.0)
    drawn = [members[int(number * step)] for number in range(min(len(members), _MOST_LINES))]
    for course in drawn:
        values = tuple(value if value is not None and value > 0.0 else None for value in values_along(study, course))
        lines.append(Drawn(course.at[0] if course.at else course.subject or "best", values, flips_along(study, course)))
    described = "; ".join(f"{line.label}: {', '.join(_amount(value, question.unit) for value in line.values)}" for line in lines)
    objective, where = question.objective.replace("_", " "), f", {name}" if name else ""
    axes, ends = (axis.name, f"{objective} in {question.unit}{where}"), (min(comparable), max(comparable))
    caption = "A ring: the best plan is another one than to its left. Equal steps are equal factors."
    caption += f" {len(drawn)} of {len(members)} lines are drawn; the tables have all." if len(drawn) < len(members) else ""
    title = f"{objective} along {axis.name}{where}"
    return Picture(
        lambda titles: drawn_lines(titles, axis.values, lines, axes, ends), "", caption, title=title, described=f"{described}.", zooms=False
    )


def course_text(study: Study, questions: Sequence[int]) -> list[str]:
    """Of the course through these questions: from which value on no step gains a tenth, and where the plan changes; or what is missing."""
    course = next(known for known in courses(study) if known.questions == tuple(questions))
    axis, values = study.plan.axes[0], values_along(study, course)
    missing = _where(study, questions, lambda index: not is_covered(study, questions[index]))
    none = _where(study, questions, lambda index: bound_of(study, questions[index]) == NEVER)
    open_ = [at for at, value in zip(axis.values, values, strict=True) if value is None and at not in {*missing, *none}]
    gaps = (("not asked of every engine at", missing), ("no design at", none), ("none found at", open_))
    parts = [f"{what} {', '.join(places)}" for what, places in gaps if places] or [_level(axis.values, values)]
    changed = [at for at, flip in zip(axis.values, flips_along(study, course), strict=True) if flip]
    if changed:
        return [*parts, f"another plan at {', '.join(changed)}"]
    planned = sum(value is not None for value in values)
    return [*parts, *(["one plan throughout"] if planned == len(values) else ["one plan at the others"] if planned > 1 else [])]


def _where(study: Study, questions: Sequence[int], holds: Callable[[int], bool]) -> list[str]:
    """The values of the first axis at whose places this holds."""
    return [at for index, at in enumerate(study.plan.axes[0].values[: len(questions)]) if holds(index)]


def _level(places: Sequence[str], values: Sequence[float | None]) -> str:
    index = level_from(values)
    if all(gain is None or gain <= 0.0 for gain in gains_along(values)):
        return "no step makes it less"
    return "the last step still gains 10 %" if index is None else f"from {places[index]} on no step gains 10 %"


# --- pictures, on pages --------------------------------------------------------------------------------------------------------------


def _study_pictures(study: Study) -> Iterator[Section]:
    """Distances and times of each question where they are few, and of each engine over all questions where they are several."""
    gaps, times = _rows_of_questions(study) if len(study.questions) <= _FEW else ([], [])
    gaps, times = (gaps, times) if len(times) <= _SHOWN else ([], [])
    over = [(engine, overall(study, engine)) for engine in study.plan.engines]
    alone = len(study.questions) == 1
    engines = [] if alone else [_gap_row(engine, row.above) for engine, row in over if row.above is not None]
    late_ = [_time_row(engine, row.near_after, row.proved_after) for engine, row in over if row.near_after and row.proved_after]
    each = "one question with several seeds"
    yield Section("Distance of each engine from the bound", (_gaps_picture(engines, "all questions"),) if engines else ())
    yield Section("Time of each engine", (_times_picture(late_, "all questions"),) if late_ and not alone else ())
    yield Section("Distance from the bound, by question", (_gaps_picture(gaps, each),) if gaps else ())
    yield Section("Time, by question", (_times_picture(times, each),) if times else ())


def _rows_of_questions(study: Study) -> tuple[list[Row], list[Row]]:
    gaps, times = list[Row](), list[Row]()
    for question in range(len(study.questions)):
        cells = [found for engine in study.plan.engines if (found := cell(study, question, engine)) is not None]
        if any(ended.above is not None for ended in cells):
            name = study.questions[question].name
            gaps += [Row(name, (), ""), *(_gap_row(ended.engine, ended.above) for ended in cells if ended.above is not None)]
            times += [Row(name, (), ""), *(_time_row(ended.engine, ended.near or _LATE, ended.proved) for ended in cells)]
    return gaps, times


def _gaps_picture(rows: Sequence[Row], what: str) -> Picture:
    caption = f"A disc is the median, a line the range over {what}. A cross at the end: no design."
    title = "How far above the bound each engine ends"
    return Picture(
        lambda titles: ranges(titles, rows, "% above the bound", tenfold=False),
        "",
        caption,
        title=title,
        described=_rows_told(rows),
        zooms=False,
    )


def _times_picture(rows: Sequence[Row], what: str) -> Picture:
    caption = f"A disc: within 1 % of the bound; a square: proved; lines are ranges over {what}. A cross at the end: never."
    title = "When each engine is near the bound, and when it has proved"
    return Picture(
        lambda titles: ranges(titles, rows, "seconds", tenfold=True), "", caption, title=title, described=_rows_told(rows), zooms=False
    )


def _rows_told(rows: Sequence[Row]) -> str:
    return f"{'; '.join(f'{row.label} {row.shown}'.strip() for row in rows)}."


def _gap_row(engine: str, gaps: Spread) -> Row:
    shown = share_of(gaps.middle)
    if gaps.most > gaps.least:
        shown = f"{shown} ({ends_of(gaps)})"
    return Row(engine, (Mark(100.0 * gaps.middle, 100.0 * gaps.least, 100.0 * gaps.most),), shown)


def _time_row(engine: str, near: Spread, proved: Spread) -> Row:
    """Both times; of an engine that never proves only the first."""
    proves = proved.least < NEVER
    text = "never" if near.middle == NEVER else time_of(near.middle)
    marks = (_mark(near), _mark(proved)) if proves else (_mark(near),)
    proof = "in some runs" if proved.middle == NEVER else time_of(proved.middle)
    return Row(engine, marks, f"{text}, proof {proof}" if proves else text)


def _mark(times: Spread) -> Mark:
    return Mark(times.middle, times.least, times.most)
