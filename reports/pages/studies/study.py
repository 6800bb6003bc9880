"""A page about a comparison: distances from the bound and times as pictures, courses along an axis, and every figure in tables."""

import json
from collections.abc import Sequence
from typing import Final

from crossopt.instances.studies.sections import Claims
from crossopt.reports.drawing.plots import Line as Drawn
from crossopt.reports.drawing.plots import Mark, Row, ranges
from crossopt.reports.drawing.plots import lines as drawn
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.facts.chip.words import hardware_words
from crossopt.reports.facts.uses import UNEQUAL, Uses, saved_words, uses_named
from crossopt.reports.pages.shell import TIE, Page, ProofBox, figure, folded, heading, listing, page, paragraph, section, table, tiles
from crossopt.reports.pages.studies.findings import columns_section, derived_section, expected_section, first_finding, open_section, set_up
from crossopt.reports.sheets.amounts import amount, seconds_of, several
from crossopt.reports.texts.studies.study import (
    asked_words,
    course_words,
    ends_of,
    is_proved,
    partial_words,
    refuted_words,
    share_of,
    time_of,
    uses_in,
)
from crossopt.solvers.study.figures import (
    NEVER,
    Cell,
    Course,
    Overall,
    Spread,
    best_of,
    bound_of,
    cell,
    courses,
    flips_along,
    gains_along,
    is_asked,
    overall,
    values_along,
)
from crossopt.solvers.study.records import Study, text_of

_FEW: Final = 12
"""Questions up to which each has rows of its own in the pictures."""
_SHOWN: Final = 40
"""Rows of a picture beyond which it is folded."""
_BESIDE: Final = 4
"""Engines that stand beside each other whatever the number of questions."""
_TOLD: Final = (
    "Every design was priced again by the full model, on its own, after its engine; no design is below any bound. `crossopt check` reads "
    "the questions in this file anew, prices every design anew, solves each question again as far as its bounds say, and asks rules again. "
    "What the figures assume stands on the page of a single design (`crossopt solve`, then `crossopt report`)."
)


def uses_table(beside: Sequence[Uses]) -> str:
    """Seconds of a step by use, a column for each design; nothing for a single one."""
    if len(beside) < 2:
        return ""
    rows = [(name, *(f"{one.seconds.get(name, 0.0):.4g}" for one in beside)) for name in uses_named(beside)]
    whole = ("the whole step", *(f"{one.step:.4g}" for one in beside))
    note = paragraph(f"{UNEQUAL.capitalize()}.") if any(one.seconds.get("unequal stages") for one in beside) else ""
    return table(("a step, in s", *(one.name for one in beside)), [*rows, whole], numbers=range(1, 1 + len(beside))) + note


_LATE: Final = Spread(NEVER, NEVER, NEVER)


def study_page(study: Study) -> str:
    """The page."""
    return page(study_content(study))


def study_content(study: Study) -> Page:
    """What the page says."""
    plan, count = study.plan, len(study.questions)
    bounds = [bound_of(study, question) for question in range(count)]
    optima = sum(any(run.proved for run in study.runs_of(question)) for question in range(count))
    verb = "is" if count == 1 else "are"
    words = (
        f"{optima} of {several(count, 'question')} {verb} answered with a proof; distances are from the best bound that any engine proved."
    )
    asked = sum(run.seconds for run in study.runs)
    facts = [("questions", f"{count:,}"), ("engines", f"{len(plan.engines)}"), ("runs", f"{len(study.runs):,}")]
    facts += [
        ("in all", seconds_of(study.seconds)),
        ("of it outside the engines", f"{1.0 - asked / study.seconds:.1%}" if study.seconds else "-"),
    ]
    limit = "searchers have 5 s, others no limit" if plan.time_limit is None else f"each run has {seconds_of(plan.time_limit)}"
    seeds = f"; engines that draw at random run {plan.seeds} times" if plan.seeds > 1 else ""
    stopped = "" if study.stopped == "complete" else f" It was stopped before all runs were done, and is {partial_words(study)}."
    sections: tuple[str | ProofBox, ...] = (
        heading(plan.title, plan.description or f"{several(count, 'question')}, asked of {', '.join(plan.engines)}."),
        _proof(study, optima, words + stopped, tiles(facts)),
        paragraph(f"Of each run: {limit}{seeds}. Of several seeds the median counts.", "soft"),
        derived_section(study),
        expected_section(study),
        set_up(study) if study.plan.claims != Claims() else "",
        *_along(study),
        _over_all(study),
        _pictures(study) if any(bound is not None and bound < NEVER for bound in bounds) else "",
        _each(study),
        _uses(study),
        _designs(study),
        columns_section(study),
        open_section(study),
        section("How this is known", paragraph(_TOLD)),
    )
    return Page(plan.title, sections, json.loads(text_of(study)))


def _uses(study: Study) -> str:
    """Where the steps of a single question go, the designs beside each other, and what the best saves of the others'."""
    found = uses_in(study, 0) if len(study.questions) == 1 else []
    if len(found) < 2:
        return ""
    best = min(found, key=lambda one: one.step)
    told = [(one.name, words) for one in found if (words := saved_words(best, one, is_proved(study, best)))]
    return section("Where the step goes", uses_table(found), *(paragraph(f"{name.capitalize()}: {words}.") for name, words in told))


# --- the answer ----------------------------------------------------------------------------------------------------------------------


def _proof(study: Study, optima: int, words: str, figures: str) -> ProofBox:
    count = len(study.questions)
    known = optima == count and study.stopped == "complete"
    label = "proved" if optima == count else "not all proved"
    return ProofBox(label, words, known, answer="\n".join([*(paragraph(one, "answer") for one in _headline(study)), figures]))


def _headline(study: Study) -> list[str]:
    """What of what was expected is so, who proves the optimum, who of the others comes nearest, and who stays farthest away."""
    known = [one for one in (overall(study, engine) for engine in study.plan.engines) if one.above is not None and one.questions]
    provers = [one for one in known if one.proved == one.questions]
    others = sorted((one for one in known if one not in provers), key=lambda one: _away(one)[:2])
    told = first_finding(study)
    if provers:
        which = "the question" if provers[0].questions == 1 else f"all {provers[0].questions} questions"
        named = " and ".join(one.engine for one in provers)
        told.append(f"{named} prove{'s' * (len(provers) == 1)} the optimum of {which}.")
    if others:
        first, last = others[0], others[-1]
        if len(others) > 1 and _away(first) == _away(last):
            return [*told, f"All others end {_away_words(first)}."]
        farthest = f"; {last.engine} stays farthest away, {_away_words(last)}" if len(others) > 1 else ""
        told.append(f"Of the other{'s' * (len(others) > 1)} {first.engine} comes nearest, {_away_words(first)}{farthest}.")
    return told


def _away(one: Overall) -> tuple[float, float]:
    return (one.above.middle, one.above.most) if one.above else (NEVER, NEVER)


def _away_words(one: Overall) -> str:
    middle, most = _away(one)
    if one.questions == 1 or middle == most:
        return f"{share_of(middle)} above the bound"
    return f"{share_of(middle)} above the bound in the median and {share_of(most)} at worst"


def _over_all(study: Study) -> str:
    """Each engine over all questions, as a table and a picture."""
    found = [one for one in (overall(study, engine) for engine in study.plan.engines) if one.above is not None]
    lines = [
        [
            one.engine,
            share_of(one.above.middle),
            ends_of(one.above),
            f"{one.near} of {one.questions}",
            time_of(one.near_after.middle),
            f"{one.proved} of {one.questions}",
            time_of(one.proved_after.middle),
        ]
        for one in found
        if one.above is not None and one.near_after is not None and one.proved_after is not None
    ]
    if not lines:
        return ""
    heads = ("", "above bound", "range", "within 1 %", "seconds to 1 %", "proved", "seconds to proof")
    caption = f"Over the questions that {asked_words(study)}have a design and a bound: the median, and the range."
    words = refuted_words(study)
    rows = [_gap_row(one.engine, one.above) for one in found if one.above is not None]
    titles = Titles("over-all", "How far above the bound each engine ends", "; ".join(f"{row.label} {row.shown}" for row in rows) + ".")
    drawn = figure(
        lambda width: ranges(titles.at(width), rows, "% above the bound", tenfold=False),
        "A disc is the median over all questions, a line the range. A cross at the end: no design.",
    )
    few = len(study.questions) > 1
    beside = paragraph(f"{words}.", "soft") if words else ""
    return section("Each engine over all questions", table(heads, lines, caption, range(1, 7)), beside, drawn if few else "")


# --- pictures ------------------------------------------------------------------------------------------------------------------------


def _pictures(study: Study) -> str:
    """Distances and times of each question where they are few, else times of each engine over all questions; many rows are folded."""
    gaps, times = _rows_of_questions(study) if len(study.questions) <= _FEW else ([], [])
    if len(times) > _SHOWN:
        drawn = [_times_picture("times", _rows_of_engines(study), "all questions")]
        each = [_gaps_picture(gaps), _times_picture("times-each", times, "one question with several seeds")]
        drawn.append(folded("Distance and time of each question alone", "\n".join(each)))
    elif times:
        drawn = [_gaps_picture(gaps), _times_picture("times", times, "one question with several seeds")]
    else:
        drawn = [_times_picture("times", _rows_of_engines(study), "all questions")]
    return section("Distance from the bound, and time" if gaps else "Time of each engine", *drawn)


def _rows_of_questions(study: Study) -> tuple[list[Row], list[Row]]:
    gaps, times = list[Row](), list[Row]()
    for question in range(len(study.questions)):
        cells = [found for engine in study.plan.engines if (found := cell(study, question, engine)) is not None]
        if any(one.above is not None for one in cells):
            name = study.questions[question].name
            gaps += [Row(name, (), ""), *(_gap_row(one.engine, one.above) for one in cells if one.above is not None)]
            times += [Row(name, (), ""), *(_time_row(one.engine, one.near or _LATE, one.proved) for one in cells)]
    return gaps, times


def _rows_of_engines(study: Study) -> list[Row]:
    found = [(engine, overall(study, engine)) for engine in study.plan.engines]
    return [_time_row(engine, one.near_after, one.proved_after) for engine, one in found if one.near_after and one.proved_after]


def _gaps_picture(rows: Sequence[Row]) -> str:
    titles = Titles("gaps", "How far above the bound each engine ends", _rows_told(rows))
    caption = "A disc is the median, a line the range over one question with several seeds. A cross at the end: no design."
    return figure(lambda width: ranges(titles.at(width), rows, "% above the bound", tenfold=False), caption)


def _times_picture(name: str, rows: Sequence[Row], what: str) -> str:
    titles = Titles(name, "When each engine is near the bound, and when it has proved", _rows_told(rows))
    caption = f"A disc: within 1 % of the bound; a square: proved; lines are ranges over {what}. A cross at the end: never."
    return figure(lambda width: ranges(titles.at(width), rows, "seconds", tenfold=True), caption)


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
    words = "never" if near.middle == NEVER else time_of(near.middle)
    marks = (_mark(near), _mark(proved)) if proves else (_mark(near),)
    proof = "in some runs" if proved.middle == NEVER else time_of(proved.middle)
    return Row(engine, marks, f"{words}, proof {proof}" if proves else words)


def _mark(times: Spread) -> Mark:
    return Mark(times.middle, times.least, times.most)


# --- along the first axis ------------------------------------------------------------------------------------------------------------


def _along(study: Study) -> list[str]:
    """A picture for each value of the third axis on, all with one scale, and a table with the steps."""
    every = courses(study)
    if not any(_positive(study, one) for one in every):
        return []
    figures = list[str]()
    panels = dict.fromkeys(_panel(one) for one in every)
    for number, panel in enumerate(panels):
        members = [one for one in every if _panel(one) == panel]
        alike = [value for one in every if _unit(study, one) == _unit(study, members[0]) for value in _positive(study, one)]
        if alike:
            figures.append(_panel_of(study, number, _panel_words(study, panel), members, (min(alike), max(alike))))
    axis = study.plan.axes[0].name
    caption = "A ring: the best plan is another one than to its left. Pictures of one unit have one scale; equal steps are equal factors."
    items = [
        f"{one.name}: {'; '.join(course_words(study, one.questions))}" if one.name else "; ".join(course_words(study, one.questions))
        for one in every
    ]
    return [
        section(f"Along {axis}", paragraph(caption), *figures),
        section("Where it levels off, and where the plan changes", listing(items), _steps(study, every)),
    ]


def _positive(study: Study, course: Course) -> list[float]:
    """The values that a scale of factors can show."""
    return [value for value in values_along(study, course) if value is not None and value > 0.0]


def _unit(study: Study, course: Course) -> str:
    return study.questions[course.questions[0]].unit


def _panel(course: Course) -> tuple[str, ...]:
    """What the courses of one picture share: all but the value on the second axis."""
    return (*([course.subject] if course.subject else []), *course.at[1:])


def _panel_words(study: Study, panel: Sequence[str]) -> str:
    """The same with the names of the axes."""
    names = [axis.name for axis in study.plan.axes[2:]]
    subject, values = panel[: len(panel) - len(names)], panel[len(panel) - len(names) :]
    return ", ".join([*subject, *(f"{name} {value}" for name, value in zip(names, values, strict=True))])


def _panel_of(study: Study, number: int, name: str, members: Sequence[Course], ends: tuple[float, float]) -> str:
    axis, question = study.plan.axes[0], study.questions[members[0].questions[0]]
    lines = list[Drawn]()
    for one in members:
        values = tuple(value if value is not None and value > 0.0 else None for value in values_along(study, one))
        lines.append(Drawn(one.at[0] if one.at else one.subject or "best", values, flips_along(study, one)))
    figures = "; ".join(f"{line.label}: {', '.join(_value(value, question.unit) for value in line.values)}" for line in lines)
    objective, where = question.objective.replace("_", " "), f", {name}" if name else ""
    titles = Titles(f"along-{number}", f"{objective} along {axis.name}{where}", f"{figures}.")
    axes = (axis.name, f"{objective} in {question.unit}{where}")
    return figure(lambda width: drawn(titles.at(width), axis.values, lines, axes, ends))


def _steps(study: Study, every: Sequence[Course]) -> str:
    """The values and what each step gains."""
    axis, rows = study.plan.axes[0], list[list[str]]()
    for course in every:
        values, cells = values_along(study, course), list[str]()
        steps = zip(course.questions, values, gains_along(values), flips_along(study, course), strict=True)
        for question, value, gain, flip in steps:
            none = "none" if is_asked(study, question) else "not asked"
            step = "" if gain is None else f" ({-gain:+.0%})"
            cells.append(f"{none if value is None else f'{value:.3g}'}{step}{f'{TIE}*' if flip else ''}")
        rows.append([course.name or axis.name, *cells])
    unit = study.questions[every[0].questions[0]].unit
    caption = f"Best values in {unit}, in brackets what the step from the left changes; a star: another plan."
    return table(("", *axis.values), rows, caption, range(1, len(axis.values) + 1))


def _value(value: float | None, unit: str) -> str:
    return "none" if value is None else amount(value, unit)


# --- tables --------------------------------------------------------------------------------------------------------------------------


def _each(study: Study) -> str:
    """Each question with each engine's distance from the bound. Many engines stand below each other."""
    engines, rows = study.plan.engines, list[list[str]]()
    for place, question in enumerate(study.questions):
        bound, best = bound_of(study, place), best_of(study, place)
        none = "none" if study.runs_of(place) else "not asked"
        proved = none if bound is None else "no design" if bound == NEVER else amount(bound, question.unit)
        cells = [cell(study, place, engine) for engine in engines]
        value = none if best is None else _value(best.value, question.unit)
        rows.append([question.name, value, proved, *map(_told, cells)])
    heads: tuple[str, ...] = ("", "best", "bound", *engines)
    if all(_met(study, place) for place in range(len(rows))):  # the same figures twice push those of engines off a narrow screen
        heads, rows = ("", "best, proved", *engines), [[*row[:2], *row[3:]] for row in rows]
    if len(engines) > max(len(rows), _BESIDE):
        heads, rows = (
            ("", *(row[0] for row in rows)),
            [[head, *words] for head, *words in zip(heads[1:], *(row[1:] for row in rows), strict=True)],
        )
    caption = "How far above the best bound each engine ends."
    return section("Each question", table(heads, rows, caption, range(1, len(heads))))


def _met(study: Study, place: int) -> bool:
    """Whether the best value is the bound."""
    best = best_of(study, place)
    return best is not None and best.value == bound_of(study, place)


def _told(one: Cell | None) -> str:
    if one is None:
        return "not run"
    if one.run.note:
        return "not answered"
    if one.run.status == "INFEASIBLE":
        return "proved"
    if one.above is None:
        return "none" if one.run.value is None else f"{one.run.value:.5g}"
    return share_of(one.above.middle)


def _designs(study: Study) -> str:
    """The best design of each question."""
    rows = []
    for place, question in enumerate(study.questions):
        best = best_of(study, place)
        if best is not None and best.design is not None:
            rows.append([question.name, " · ".join(hardware_words(best.design)[1:]) or best.design.hardware.name, best.design.words])
    return section("The best designs", table(("", "chip", "plan"), rows)) if rows else ""
