"""A page about several numbers of devices: what each of them reaches, and the best one's design in full."""

from crossopt.instances.codesign.instance import Counted, Instance
from crossopt.instances.codesign.open_questions import FEWEST
from crossopt.reports.drawing.bars import Row, bars
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.facts.design import Asked, Facts
from crossopt.reports.pages.design import answer_sections, question_section
from crossopt.reports.pages.shell import Page, ProofBox, figure, heading, paragraph, section, table, tiles
from crossopt.reports.sheets.sheet import label_of
from crossopt.reports.texts.design import amount, count_of, design_words, time_of
from crossopt.reports.texts.devices import best_part, devices_in, no_design_words, why_not_looked_at
from crossopt.reports.texts.goals import run_figures
from crossopt.solvers.codesign.answer import DesignResult, design_in, evaluation_in


def counts_page(counted: Counted, result: DesignResult, asked: Asked, facts: Facts | None, data: object) -> Page:
    """The page; `facts` are those of the best design, `data` is the result as it was read."""
    head = (
        heading(counted.name, asked.sentence),
        ProofBox(label_of(result, "design"), _words(counted, result), result.proved),
    )
    question, best, numbers = question_section(result.question, asked), best_part(result), _numbers(counted, result)
    if best is None or facts is None:
        return Page(counted.name, (*head, question, numbers), data)
    return Page(counted.name, (*head, _tiles(counted, result, best), question, numbers, *answer_sections(best, facts)), data)


def _words(counted: Counted, result: DesignResult) -> str:
    if result.answer is None:
        return "No number of devices that was asked about has a design." if result.settled else f"No design was found ({result.stopped})."
    best = count_of(result.answer.devices)
    if counted.objective == FEWEST:
        return f"{best} devices are enough{', and no fewer that were asked about.' if result.settled else '; fewer may be.'}"
    if result.bound is None:
        return f"{best} devices are the best known; a better design may exist."
    bound = amount(result.bound, str(result.question["unit"]))
    none = f"with any of these numbers of devices is below {bound}"
    return f"No design {none}." if result.settled else f"A better design may exist, but none {none}."


def _tiles(counted: Counted, result: DesignResult, best: DesignResult) -> str:
    unit, evaluation = str(result.question["unit"]), evaluation_in(best)
    facts = [("devices", count_of(devices_in(result)))]
    if counted.objective != FEWEST:
        bound = "none" if result.bound is None else amount(result.bound, unit)
        facts += [(counted.objective.replace("_", " "), amount(result.value, unit)), ("lower bound", bound)]
    facts += [("gap", f"{result.gap:.2%}")] if result.gap is not None else []
    if evaluation is not None and counted.objective != "step_time":
        facts.append(("step time", time_of(evaluation["step_time"])))
    goal = counted.parts[counted.counts.index(devices_in(result))].goal
    if evaluation is not None and goal is not None:
        facts += [("the whole run", words) for words in run_figures(goal, evaluation["step_time"])]
    return tiles(facts)


def _numbers(counted: Counted, result: DesignResult) -> str:
    """Every number of devices with what it reaches."""
    rows, lines, best = list[Row](), list[tuple[str, ...]](), best_part(result)
    for place, count in enumerate(counted.counts):
        answer = result.parts[place] if place < len(result.parts) else None
        label = f"{count_of(count)} device{'s' * (count != 1)}"
        if answer is not None and answer.value is not None:
            rows.append(Row(label, answer.value, amount(answer.value, answer.question["unit"]), "best" if answer is best else ""))
        lines.append((count_of(count), *_line(answer, counted, result, counted.parts[place])))
    if not rows:
        return section("Numbers of devices", table(("devices", "value", "bound", "step time", "design"), lines, numbers=(0, 1, 2, 3)))
    asks = result.parts[0].question["objective"].replace("_", " ")
    told = "; ".join(f"{row.label}: {row.shown}" for row in rows)
    titles = Titles("counts", f"The best {asks} with each number of devices", f"{told}.")
    picture = figure(bars(titles, rows, min(row.value for row in rows), "the least"), f"The best {asks} with each number of devices.")
    heads: tuple[str, ...] = ("devices", asks, "no design below", "step time", "design")
    if asks == "step time":
        heads, lines = (*heads[:3], heads[4]), [(*line[:3], line[4]) for line in lines]
    return section("Numbers of devices", picture, table(heads, lines, numbers=range(1, len(heads) - 1)), paragraph(_left(result)))


def _line(answer: DesignResult | None, counted: Counted, result: DesignResult, part: Instance) -> tuple[str, str, str, str]:
    if answer is None:
        return "-", "-", "-", why_not_looked_at(counted, result)
    design, evaluation = design_in(answer), evaluation_in(answer)
    if design is None or evaluation is None:
        known = f", {'told' if answer.told else 'proved'}" if answer.settled else ""
        return "-", "-", "-", f"{no_design_words(answer, part)}{known}"
    unit = answer.question["unit"]
    bound = "none" if answer.bound is None else amount(answer.bound, unit)
    return amount(answer.value, unit), bound, time_of(evaluation["step_time"]), design_words(design)


def _left(result: DesignResult) -> str:
    return f"What follows is about the design on {count_of(devices_in(result))} devices." if result.answer else ""
