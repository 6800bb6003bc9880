"""What a study's page says beyond its runs: how it is set up, derived columns with measured points beside them, what was expected, and what
is left open."""

from collections.abc import Iterator, Sequence

from crossopt.instances.studies.sections import SUBJECT, MeasuredSection, as_name
from crossopt.reports.drawing.plots import Line, lines
from crossopt.reports.drawing.svg import NARROW, Titles
from crossopt.reports.pages.shell import figure, listing, paragraph, section, table
from crossopt.reports.texts.studies.findings import ends_words, verdicts_words
from crossopt.solvers.study.figures import Course, courses
from crossopt.solvers.study.records import Derived, Study

_LINES, _PAIRS = 8, 5
"""Lines that a picture can tell apart, and courses where some have measured points beside them."""


def set_up(study: Study) -> str:
    """What is asked, along which axes, with what in common."""
    shared = set.intersection(*(set(question.settings) for question in study.questions)) if len(study.questions) > 1 else set()
    first = study.questions[0]
    axes = [f"{axis.name}: {', '.join(axis.values)}" for axis in study.plan.axes]
    subjects = list(dict.fromkeys(question.subject for question in study.questions if question.subject))
    names = ", ".join(dict.fromkeys(source.source for source in study.sources))
    asked = dict.fromkeys(question.objective.replace("_", " ") for question in study.questions)
    said = [f"{names}, asked for the least {' or '.join(asked)}, by {', '.join(study.plan.engines)}"]
    said += [f"{len(subjects)} subjects: {', '.join(subjects)}"] if len(subjects) > 1 else []
    common = [setting for setting in first.settings if setting in shared]
    return section("How it is set up", listing([*said, *axes]), *(_settings(common) if common else ()))


def _settings(common: Sequence[str]) -> Iterator[str]:
    rows = [list(setting.partition("=")[::2]) for setting in common]
    yield table(("of all questions", "value"), rows)


def derived_section(study: Study) -> str:
    """What is derived, and a picture for each column that is drawn."""
    shown = {one.name: one.drawn for one in study.plan.claims.derive}
    drawn = [(number, column) for number, column in enumerate(study.derived) if shown[column.name] and study.plan.axes]
    meant = [f"{one.name.replace('_', ' ')} is `{one.formula}`" for one in study.plan.claims.derive]
    pictures = [picture for number, column in drawn for picture in _pictures(study, number, column)]
    return section("What is derived", listing(meant), *pictures) if study.derived else ""


def columns_section(study: Study) -> str:
    """Every derived figure."""
    return section("Derived figures", *(_column_table(study, column) for column in study.derived))


def _pictures(study: Study, number: int, column: Derived) -> Iterator[str]:
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
        yield _picture(study, f"derived-{number}-{first}", column, drawn)


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


def _picture(study: Study, name: str, column: Derived, drawn: Sequence[Line]) -> str:
    values = [value for line in drawn for value in line.values if value is not None]
    axis, what = study.plan.axes[0], column.name.replace("_", " ")
    words = "; ".join(f"{line.label}: {', '.join('none' if value is None else f'{value:.4g}' for value in line.values)}" for line in drawn)
    titles = Titles(name, f"{what} along {axis.name}", f"{words}.")
    reach, upward = (min(values), max(values)), f"{what}{f' in {column.unit}' if column.unit else ''}"
    return figure(lambda width: lines(titles.at(width), axis.values, drawn, (axis.name, upward if width > NARROW else what), reach))


def _column_table(study: Study, column: Derived) -> str:
    what = f"{column.name.replace('_', ' ')}{f' in {column.unit}' if column.unit else ''}"
    every = courses(study)
    if not every:
        rows = [[question.name, ends_words(pair)] for question, pair in zip(study.questions, column.ends, strict=True)]
        return table(("", what), rows, numbers=(1,))
    axis, rows = study.plan.axes[0], list[list[str]]()
    for course in every:
        rows.append([course.name or axis.name, *(ends_words(column.ends[question]) for question in course.questions)])
        for one in study.plan.claims.against:
            if one.column == column.name and _is_beside(study, one, course):
                rows.append([f"measured: {one.name}", *(f"{value:.4g}" if (value := one.points.get(at)) else "-" for at in axis.values)])
    return table(("", *axis.values), rows, f"{what}.", range(1, len(axis.values) + 1))


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


def expected_section(study: Study) -> str:
    """Each expectation with what came of it."""
    rows = [[one.verdict, f"{one.says}{f' ({one.source})' if one.source else ''}", one.words] for one in study.findings]
    meant = "Held is what holds of every figure between bound and value: no plan that nobody found can break it."
    words = paragraph(f"{verdicts_words(study).capitalize()}. {meant}")
    return section("What was expected", words, table(("", "expected", "where"), rows)) if rows else ""


def open_section(study: Study) -> str:
    """What the study does not say, and who measured."""
    sources = [f"Measured points of {one.name}: {one.source}" for one in study.plan.claims.against]
    return section("What it does not say", listing([*study.plan.claims.leaves_open, *sources]))
