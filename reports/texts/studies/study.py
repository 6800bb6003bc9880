"""Comparisons for the terminal: one question in full, several in tables of questions and engines, and what each engine comes to."""

from collections.abc import Callable, Iterator, Sequence

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import asked_in
from crossopt.reports.facts.chip.words import design_words
from crossopt.reports.facts.uses import UNEQUAL, Uses, saved_words, uses_named, uses_of
from crossopt.reports.sheets.amounts import amount, seconds_of
from crossopt.reports.texts.studies.findings import findings_text
from crossopt.reports.texts.width import listed, page_width, wrapped
from crossopt.solvers.study.figures import (
    NEVER,
    Cell,
    Overall,
    Spread,
    asked_in_full,
    bound_of,
    cell,
    courses,
    flips_along,
    gains_along,
    is_asked,
    level_from,
    overall,
    values_along,
)
from crossopt.solvers.study.records import Question, Run, Study

_NAME, _ENGINE, _COLUMN = 28, 16, 14
_USE, _SECONDS, _BESIDE = 22, 11, 2
"""Signs of a use of time and of what it takes, and the designs of which one stands beside another."""
_SUBJECT, _LONGEST = 13, 54
"""Signs of a name beside its values on the axes, and of a name with many of them."""


def study_text(study: Study) -> str:
    """All of it as text."""
    partial = [*wrapped("  ", f"{partial_words(study)}."), ""] if partial_words(study) else []
    blocks = [
        *partial,
        *(_one(study) if len(study.questions) == 1 else [*_several(study), *_engines(study), *_along(study)]),
        *findings_text(study),
    ]
    asked = sum(run.seconds for run in study.runs)
    words = f"{_counted(len(study.runs), 'run')} in {seconds_of(study.seconds)}, of which the engines took {seconds_of(asked)}"
    if study.stopped != "complete":
        words += f"; {study.stopped} before all were done"
    return "\n".join([*blocks, *wrapped("  ", words)]) + "\n"


def partial_words(study: Study) -> str:
    """How much was asked of a comparison that is not whole; empty of one that is."""
    if study.stopped == "complete":
        return ""
    asked, count = len(asked_in_full(study)), len(study.questions)
    verb = "was" if count == 1 else "were"
    return f"not whole: {asked:,} of {_counted(count, 'question')} {verb} asked of every engine, the rest of some or none"


def _one(study: Study) -> list[str]:
    question = study.questions[0]
    cells = _cells(study, 0)
    lines = [f"{question.name}: {question.objective.replace('_', ' ')} in {question.unit}", ""]
    seeded = any(one.runs > 1 for one in cells)
    seeds = (("range over seeds", 20),) if seeded else ()
    heads = (("value", 11), ("above bound", 13), *seeds, ("to 1 %", 11), ("to proof", 11), ("seconds", 11))
    lines += _table(heads, [_row(one, seeded) for one in cells])
    lines += ["", *(line for one in cells for line in _design(one)), "", *_uses(study)]
    return [*lines, *wrapped("  ", _verdict(study, 0)), ""]


def _cells(study: Study, question: int) -> list[Cell]:
    return [found for engine in study.plan.engines if (found := cell(study, question, engine)) is not None]


def _table(heads: Sequence[tuple[str, int]], rows: Sequence[Sequence[str]], first: str = "engine", wide: int = _ENGINE) -> Iterator[str]:
    """Figures behind the engine that each row begins with, in columns of these widths; those that find no room go on below."""
    room, start, label = page_width() - 2 - wide, 0, wide
    while start < len(heads):
        end, wide = start, 0
        while end < len(heads) and (end == start or wide + heads[end][1] <= room):
            end, wide = end + 1, wide + heads[end][1]
        for name, *figures in ([first, *(head for head, _ in heads)], *rows):
            shown = zip(figures[start:end], heads[start:end], strict=False)
            yield f"  {name:<{label}}{''.join(f'{word:>{width}}' for word, (_, width) in shown)}".rstrip()
        start = end


def _row(one: Cell, seeded: bool) -> list[str]:
    value = "none" if one.value.middle == NEVER else f"{one.value.middle:.5g}"
    gap = "" if one.above is None else share_of(one.above.middle)
    seeds = ["" if one.runs == 1 else _range(one)] if seeded else []
    near = "" if one.near is None else late(one.near)
    return [called(one.run), value, gap, *seeds, near, late(one.proved), time_of(one.seconds.middle)]


def _uses(study: Study) -> list[str]:
    """Where each step goes, the designs beside each other, and what the best saves of the others'."""
    found = uses_in(study, 0)
    if len(found) < _BESIDE:
        return []
    heads = [(name, max(len(name) + 2, _SECONDS)) for name in (one.name for one in found)]
    rows = [[name, *(amount(one.seconds.get(name, 0.0), "s") for one in found)] for name in uses_named(found)]
    lines = list(_table(heads, [*rows, ["the whole step", *(amount(one.step, "s") for one in found)]], "where the step goes", _USE))
    lines += [*(wrapped("  ", UNEQUAL) if any(one.seconds.get("unequal stages") for one in found) else []), ""]
    best = min(found, key=lambda one: one.step)
    told = [(one.name, words) for one in found if (words := saved_words(best, one, is_proved(study, best)))]
    return [*lines, *(line for name, words in told for line in wrapped(f"  {name:<{_ENGINE}}", words)), ""]


def _range(one: Cell) -> str:
    if one.above is not None:
        return ends_of(one.above)
    return " to ".join("none" if value == NEVER else f"{value:.4g}" for value in (one.value.least, one.value.most))


def uses_in(study: Study, question: int) -> list[Uses]:
    """The uses of time of what each engine chose, each plan once; none of several workloads, each of which has a step of its own."""
    asked, found = asked_in(study.document(question)), dict[str, Uses]()
    for engine in study.plan.engines:
        one = cell(study, question, engine)
        if one is not None and one.run.design is not None and isinstance(asked, Instance):
            found.setdefault(design_words(one.run.design), uses_of(asked, called(one.run), one.run.design))
    return list(found.values())


def is_proved(study: Study, best: Uses) -> bool:
    """Whether a design of the only question is the optimum: one of a value that some engine proved."""
    values = {run.value for run in study.runs_of(0) if run.proved}
    return any(run.value in values for run in study.runs_of(0) if called(run) == best.name)


def _design(one: Cell) -> list[str]:
    words = one.run.note or ("no design found" if one.run.design is None else design_words(one.run.design))
    return listed(f"  {called(one.run):<{_ENGINE}}", words)


def called(run: Run) -> str:
    """The engine that answered."""
    return run.answered_by


def share_of(gap: float) -> str:
    """A distance from the bound."""
    return "none" if gap == NEVER else f"{gap:.2%}" if gap < 100.0 else f"{gap + 1.0:.3g} times"


def ends_of(gaps: Spread) -> str:
    """The range of distances from the bound, one figure where both ends are told alike."""
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


def _several(study: Study) -> Iterator[str]:
    """Distances from the bounds, and times, with as many engines beside each other as there is room for."""
    yield study.plan.title
    yield from wrapped("  ", study.plan.description) if study.plan.description else ()
    heads = ["best", *study.plan.engines]
    yield from ("", f"  {_measure(study)} (of several seeds the median)")
    yield from _grid(study, heads, [_gaps(study, question) for question in range(len(study.questions))])
    heads = list(study.plan.engines)
    yield from ("", "  seconds to within 1 % of the bound / to the proof")
    yield from _grid(study, heads, [_times(study, question) for question in range(len(study.questions))])


def _measure(study: Study) -> str:
    """What the figures of engines are."""
    bounds = [bound_of(study, question) for question in range(len(study.questions))]
    if all(bound is None for bound in bounds):
        return "values, as no engine proved a bound"
    return f"how far above the bound{', or the value where no bound was proved' if None in bounds else ''}"


def _grid(study: Study, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    ends = [len(", ".join(question.at)) for question in study.questions]
    width = min(max(len(question.name) for question in study.questions), max(_NAME, min(max(ends) + _SUBJECT, _LONGEST)))
    room = max((page_width() - 2 - width) // _COLUMN, 1)
    for first in range(0, len(heads), room):
        chosen = slice(first, first + room)
        yield f"  {'':<{width}}" + "".join(f"{head:>{_COLUMN}}" for head in heads[chosen])
        for question, row in zip(study.questions, rows, strict=True):
            yield (f"  {_named(question, width):<{width}}" + "".join(f"{word:>{_COLUMN}}" for word in row[chosen])).rstrip()


def _named(question: Question, width: int) -> str:
    """The name, or its beginning and its values on the axes, by which its rows differ; else its beginning and its end."""
    name, end = question.name, ", ".join(question.at)
    if len(name) <= width:
        return name
    kept = width - len(end) - 5
    if end and kept > 0:
        return f"{name[:kept]}..., {end}"
    half = (width - 3) // 2
    return f"{name[: width - 3 - half]}...{name[-half:]}"


def _gaps(study: Study, question: int) -> list[str]:
    """The best value, and each engine's distance from the bound."""
    values = [run.value for run in study.runs_of(question) if run.value is not None]
    unit, bound = study.questions[question].unit, bound_of(study, question)
    none = "none found" if study.runs_of(question) else "not asked"
    best = amount(min(values), unit) if values else "no design" if bound == NEVER else none
    return [best, *(_gap(cell(study, question, engine)) for engine in study.plan.engines)]


def _gap(one: Cell | None) -> str:
    if one is None or one.run.note:
        return "not run" if one is None else "not answered"
    if one.run.status == "INFEASIBLE":
        return "proved"
    return share_of(one.above.middle) if one.above is not None else "none" if one.run.value is None else f"{one.run.value:.5g}"


def _times(study: Study, question: int) -> list[str]:
    return ["" if one is None else _pair(one) for one in (cell(study, question, engine) for engine in study.plan.engines)]


def _pair(one: Cell) -> str:
    near = NEVER if one.near is None else one.near.middle
    return f"{_short(near)} / {_short(one.proved.middle)}"


def _short(seconds: float) -> str:
    """At most five signs, so that two stand in a column."""
    return "-" if seconds == NEVER else f"{seconds:.2f}" if seconds < 100.0 else f"{seconds:.0f}"


def _engines(study: Study) -> Iterator[str]:
    """What each engine comes to over all questions."""
    yield from ("", f"  over the questions that {asked_words(study)}have a design and a bound: median and range")
    heads = (("above bound", 14), ("range", 22), ("within 1 %", 14), ("to 1 %", 11), ("proved", 10), ("to proof", 11))
    yield from _table(heads, [_overall(overall(study, engine)) for engine in study.plan.engines])
    if words := refuted_words(study):
        yield from wrapped("  ", words)
    yield ""


def refuted_words(study: Study) -> str:
    """How many questions have no design, and who proved that of how many; nothing where all have one or may have one."""
    count = sum(bound_of(study, question) == NEVER for question in range(len(study.questions)))
    shares = [f"{one.engine} of {one.refuted}" for one in (overall(study, engine) for engine in study.plan.engines) if one.refuted]
    return f"{_counted(count, 'question')} beside these without a design, proved by {', '.join(shares)}" if count else ""


def asked_words(study: Study) -> str:
    """Which questions count where not all were asked."""
    return "" if study.stopped == "complete" else "were asked of every engine and "


def _overall(one: Overall) -> list[str]:
    if one.above is None or one.near_after is None or one.proved_after is None:
        return [one.engine, "none"]
    ends = ends_of(one.above) if one.above.least < NEVER else ""
    near, proved = f"{one.near} of {one.questions}", f"{one.proved} of {one.questions}"
    return [one.engine, share_of(one.above.middle), ends, near, late(one.near_after), proved, late(one.proved_after)]


def _along(study: Study) -> Iterator[str]:
    """Of each course of a sweep: where it levels off, and where the plan changes."""
    for course in courses(study):
        yield from listed(f"  {course.name}: " if course.name else "  ", "; ".join(course_words(study, course.questions)))
    if courses(study):
        yield ""


def course_words(study: Study, questions: Sequence[int]) -> list[str]:
    """Of the course through these questions: from which value on no step gains a tenth, and where the plan changes; or what is missing."""
    course = next(one for one in courses(study) if one.questions == tuple(questions))
    axis, values = study.plan.axes[0], values_along(study, course)
    missing = _where(study, questions, lambda place: not is_asked(study, questions[place]))
    none = _where(study, questions, lambda place: bound_of(study, questions[place]) == NEVER)
    open_ = [at for at, value in zip(axis.values, values, strict=True) if value is None and at not in {*missing, *none}]
    gaps = (("not asked of every engine at", missing), ("no design at", none), ("none found at", open_))
    words = [f"{what} {', '.join(places)}" for what, places in gaps if places] or [_level(axis.values, values)]
    changed = [at for at, flip in zip(axis.values, flips_along(study, course), strict=True) if flip]
    if changed:
        return [*words, f"another plan at {', '.join(changed)}"]
    planned = sum(value is not None for value in values)
    return [*words, *(["one plan throughout"] if planned == len(values) else ["one plan at the others"] if planned > 1 else [])]


def _where(study: Study, questions: Sequence[int], holds: Callable[[int], bool]) -> list[str]:
    """The values of the first axis at whose places this holds."""
    return [at for place, at in enumerate(study.plan.axes[0].values[: len(questions)]) if holds(place)]


def _level(places: Sequence[str], values: Sequence[float | None]) -> str:
    place = level_from(values)
    if all(gain is None or gain <= 0.0 for gain in gains_along(values)):
        return "no step makes it less"
    return "the last step still gains 10 %" if place is None else f"from {places[place]} on no step gains 10 %"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
