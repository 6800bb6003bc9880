"""What a study's sheet says beyond its runs: how it is set up, derived columns with measured points beside them, what was expected, and
what is left open."""

from collections.abc import Iterator, Sequence

from crossopt.instances.studies.study import SUBJECT, MeasuredSection, as_name
from crossopt.reports.drawing.plots import Line, lines
from crossopt.reports.drawing.svg import NARROW
from crossopt.reports.sheets.sheet import Part, Picture, Section, Table, figures, given_in, names
from crossopt.solvers.study.figures import Course, courses
from crossopt.solvers.study.records import Derived, Finding, Study

_LINES, _PAIRS = 8, 5
"""Lines that a picture can tell apart, and courses where some have measured points beside them."""


def set_up(study: Study, limit: str) -> Section:
    """What is asked, along which axes, with what in common, and what each run may spend."""
    shared = set.intersection(*(set(question.settings) for question in study.questions)) if len(study.questions) > 1 else set()
    first = study.questions[0]
    axes = [f"{axis.name}: {', '.join(axis.values)}" for axis in study.plan.axes]
    subjects = list(dict.fromkeys(question.subject for question in study.questions if question.subject))
    sources = ", ".join(dict.fromkeys(source.source for source in study.sources))
    asked = dict.fromkeys(question.objective.replace("_", " ") for question in study.questions)
    said = [f"{sources}, asked for the least {' or '.join(asked)}, by {', '.join(study.plan.engines)}"]
    said += [f"{len(subjects)} subjects: {', '.join(subjects)}"] if len(subjects) > 1 else []
    common = [setting.partition("=")[::2] for setting in first.settings if setting in shared]
    rows = (Table((names("of all questions", (name for name, _ in common)), names("value", (value for _, value in common)))),)
    return Section("How it is set up", ((*said, *axes, limit), *(rows if common else ())))


def derived_section(study: Study) -> Section:
    """What is derived, and a picture for each column that is drawn."""
    shown = {one.name: one.drawn for one in study.plan.claims.derive}
    drawn = [column for column in study.derived if shown[column.name] and study.plan.axes]
    meant = tuple(f"{one.name.replace('_', ' ')} is `{one.formula}`" for one in study.plan.claims.derive)
    pictures = [picture for column in drawn for picture in _pictures(study, column)]
    return Section("What is derived", (meant, *pictures) if study.derived else ())


def columns_section(study: Study) -> Section:
    """Every derived figure."""
    return Section("Derived figures", tuple(part for column in study.derived for part in _column_table(study, column)))


def _pictures(study: Study, column: Derived) -> Iterator[Picture]:
    """The courses of a column along the first axis, a few lines a picture, with what was measured beside them."""
    every = [(course, line) for course in courses(study) if any((line := _line(column, course)).values)]
    points = [one for one in study.plan.claims.against if one.column == column.name]
    size = _PAIRS if points else _LINES
    for first in range(0, len(every), size):
        part = every[first : first + size]
        drawn = list[Line]()
        for course, line in part:
            drawn.append(line)
            drawn += [_measured(study, one) for one in points if _is_beside(study, one, course)]
        yield _picture(study, column, drawn)


def _line(column: Derived, course: Course) -> Line:
    """The upper ends, which are known designs' figures wherever less is better and the bound's elsewhere."""
    ends = [column.ends[question] for question in course.questions]
    values = tuple(None if pair is None or pair[0] <= 0.0 else pair[1] for pair in ends)
    return Line(course.name or column.name.replace("_", " "), values, (False,) * len(values))


def _measured(study: Study, one: MeasuredSection) -> Line:
    values = tuple(one.points.get(at) for at in study.plan.axes[0].values)
    return Line(f"measured: {one.name}", values, (False,) * len(values))


def _is_beside(study: Study, one: MeasuredSection, course: Course) -> bool:
    at = dict(zip([as_name(axis.name) for axis in study.plan.axes[1:]], course.at, strict=True)) | {SUBJECT: course.subject}
    return {as_name(axis): value for axis, value in one.where.items()}.items() <= at.items()


def _picture(study: Study, column: Derived, drawn: Sequence[Line]) -> Picture:
    values = [value for line in drawn for value in line.values if value is not None]
    axis, what = study.plan.axes[0], column.name.replace("_", " ")
    words = "; ".join(f"{line.label}: {', '.join('none' if value is None else f'{value:.4g}' for value in line.values)}" for line in drawn)
    reach, upward = (min(values), max(values)), f"{what}{f' in {column.unit}' if column.unit else ''}"
    return Picture(
        lambda titles: lines(titles, axis.values, drawn, (axis.name, upward if titles.width > NARROW else what), reach),
        "",
        "",
        title=f"{what} along {axis.name}",
        described=f"{words}.",
        zooms=False,
    )


def _column_table(study: Study, column: Derived) -> Iterator[Part]:
    what = f"{column.name.replace('_', ' ')}{f' in {column.unit}' if column.unit else ''}"
    every = courses(study)
    if not every:
        yield Table((names("", (question.name for question in study.questions)), figures(what, [ends_words(pair) for pair in column.ends])))
        return
    axis, rows = study.plan.axes[0], list[tuple[str, list[str]]]()
    for course in every:
        rows.append((course.name or axis.name, [ends_words(column.ends[question]) for question in course.questions]))
        for one in study.plan.claims.against:
            if one.column == column.name and _is_beside(study, one, course):
                points = [f"{value:.4g}" if (value := one.points.get(at)) else "-" for at in axis.values]
                rows.append((f"measured: {one.name}", points))
    columns = (figures(at, [cells[place] if place < len(cells) else "" for _, cells in rows]) for place, at in enumerate(axis.values))
    yield Table((names("", (name for name, _ in rows)), *columns), caption=f"{what}.")


def first_finding(study: Study) -> list[str]:
    """What failed first, else the first that held, and how many others did: the headline of a study that expects something."""
    failed = [one for one in study.findings if one.verdict == "failed"]
    held = [one for one in study.findings if one.verdict == "held"]
    if failed:
        return [f"Otherwise than expected it is not so that {failed[0].says}; {verdicts_words(study)}."]
    if not held:
        return []
    more = len(held) - 1
    return [f"As expected {held[0].says}{f'; so it is with {more} of {len(study.findings) - 1} further expectations' if more else ''}."]


def expected_section(study: Study) -> Section:
    """Each expectation with what came of it."""
    if not study.plan.claims.expect and not study.findings:
        return Section("What was expected", ())
    meant = "Held is what holds of every figure between bound and value: no plan that nobody found can break it."
    told = verdicts_words(study)
    rows = [(one.verdict, finding_words(one)) for one in study.findings]
    return Section("What was expected", (f"{told[0].upper()}{told[1:]}. {meant}", *([given_in(rows)] if rows else [])))


def open_section(study: Study) -> Section:
    """What the study does not say, and who measured."""
    sources = [f"Measured points of {one.name}: {one.source}" for one in study.plan.claims.against]
    return Section("What it does not say", ((*study.plan.claims.leaves_open, *sources),))


def verdicts_words(study: Study) -> str:
    """How much of what was expected is so."""
    if not study.findings:
        return "what was expected is not judged before all is asked"
    counts = {verdict: sum(one.verdict == verdict for one in study.findings) for verdict in ("held", "failed", "open")}
    return f"expected: {', '.join(f'{count} {verdict}' for verdict, count in counts.items() if count)}"


def finding_words(one: Finding) -> str:
    """An expectation, and what came of it."""
    return f"{one.says}: {one.words}{f' ({one.source})' if one.source else ''}"


def ends_words(ends: tuple[float, float] | None) -> str:
    """A derived figure: one number where both ends are told alike."""
    if ends is None:
        return "-"
    least, most = (f"{end:.4g}" for end in ends)
    return least if least == most else f"{least} to {most}"
