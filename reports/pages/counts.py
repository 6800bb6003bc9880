"""A page about several numbers of devices: what each of them reaches, and the best one's design in full."""

from crossopt.reports.drawing.bars import Row, bars
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.facts.design import Asked, Facts
from crossopt.reports.pages.design import answer_sections, question_section
from crossopt.reports.pages.shell import Page, figure, heading, paragraph, proof_box, section, table, tiles
from crossopt.reports.tables.digest import told_in, verdict_of
from crossopt.reports.texts.design import amount, count_of, design_words, time_of
from crossopt.solvers.codesign.combined.devices.result import CountsResult
from crossopt.solvers.codesign.result import BY_SOLVER, Result


def counts_page(result: CountsResult, asked: Asked, facts: Facts | None, data: object) -> Page:
    """The page; `facts` are those of the best design, `data` is the result as it was read."""
    name = result.instance["name"]
    head = (heading(name, asked.sentence), proof_box(verdict_of(result, "design", told_in(result)), _words(result), result.proved))
    question = question_section(result.instance, asked)
    if result.best is None or facts is None:
        return Page(name, (*head, question, _numbers(result)), data)
    best = result.answers[result.best]
    return Page(name, (*head, _tiles(result, best), question, _numbers(result), *answer_sections(best, facts)), data)


def _fewest(result: CountsResult) -> bool:
    return str(result.instance["objective"]) == "devices"


def _words(result: CountsResult) -> str:
    if result.best is None:
        return "No number of devices that was asked about has a design." if result.proved else f"No design was found ({result.stopped})."
    best = count_of(result.counts[result.best])
    if _fewest(result):
        return f"{best} devices are enough{', and no fewer that were asked about.' if result.proved else '; fewer may be.'}"
    if result.bound is None:
        return f"{best} devices are the best known; a better design may exist."
    bound = amount(result.bound, str(result.instance["unit"]))
    none = f"with any of these numbers of devices is below {bound}"
    return f"No design {none}." if result.proved else f"A better design may exist, but none {none}."


def _tiles(result: CountsResult, best: Result) -> str:
    unit, objective = str(result.instance["unit"]), str(result.instance["objective"])
    count = count_of(result.counts[result.best or 0])
    facts = [("devices", count)]
    if not _fewest(result):
        bound = "none" if result.bound is None else amount(result.bound, unit)
        facts += [(objective.replace("_", " "), amount(result.value, unit)), ("lower bound", bound)]
    facts += [("gap", f"{result.gap:.2%}")] if result.gap is not None else []
    if best.evaluation is not None and objective != "step_time":
        facts.append(("step time", time_of(best.evaluation["step_time"])))
    return tiles(facts)


def _numbers(result: CountsResult) -> str:
    """Every number of devices with what it reaches."""
    rows, lines = list[Row](), list[tuple[str, ...]]()
    for place, count in enumerate(result.counts):
        answer = result.answers[place] if place < len(result.answers) else None
        label = f"{count_of(count)} device{'s' * (count != 1)}"
        if answer is not None and answer.value is not None:
            rows.append(Row(label, answer.value, amount(answer.value, answer.instance["unit"]), "best" if place == result.best else ""))
        lines.append((count_of(count), *_line(answer, result)))
    if not rows:
        return section("Numbers of devices", table(("devices", "value", "bound", "step time", "design"), lines, numbers=(0, 1, 2, 3)))
    asks = result.answers[0].instance["objective"].replace("_", " ")
    told = "; ".join(f"{row.label}: {row.shown}" for row in rows)
    titles = Titles("counts", f"The best {asks} with each number of devices", f"{told}.")
    picture = figure(bars(titles, rows, min(row.value for row in rows), "the least"), f"The best {asks} with each number of devices.")
    heads: tuple[str, ...] = ("devices", asks, "no design below", "step time", "design")
    if asks == "step time":
        heads, lines = (*heads[:3], heads[4]), [(*line[:3], line[4]) for line in lines]
    return section("Numbers of devices", picture, table(heads, lines, numbers=range(1, len(heads) - 1)), paragraph(_left(result)))


def _line(answer: Result | None, result: CountsResult) -> tuple[str, str, str, str]:
    if answer is None:
        why = "not looked at, as fewer are enough" if _fewest(result) and result.best is not None else f"not looked at ({result.stopped})"
        return "-", "-", "-", why
    if answer.value is None or answer.evaluation is None or answer.design is None:
        return "-", "-", "-", _none(answer) if answer.proved else f"no design found ({answer.stopped})"
    unit = answer.instance["unit"]
    bound = "none" if answer.bound is None else amount(answer.bound, unit)
    return amount(answer.value, unit), bound, time_of(answer.evaluation["step_time"]), design_words(answer.design)


def _none(answer: Result) -> str:
    return f"no design keeps every limit, {'told' if answer.engine in BY_SOLVER else 'proved'}"


def _left(result: CountsResult) -> str:
    best = "" if result.best is None else count_of(result.counts[result.best])
    return f"What follows is about the design on {best} devices." if best else ""
