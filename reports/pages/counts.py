"""A page about several numbers of devices, networks or batches: what each of them reaches, and the best one's design in full."""

from crossopt.instances.codesign.instance import Counted, Instance
from crossopt.instances.codesign.open_questions import FEWEST
from crossopt.instances.codesign.question import several_words
from crossopt.reports.drawing.bars import Row, bars
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.facts.chip.words import design_words
from crossopt.reports.facts.design import Asked, Facts
from crossopt.reports.pages.design import answer_sections, question_section
from crossopt.reports.pages.shell import Page, ProofBox, figure, heading, paragraph, section, table, tiles
from crossopt.reports.sheets.amounts import amount, time_of
from crossopt.reports.sheets.sheet import label_of
from crossopt.reports.texts.devices import (
    beside_batches,
    best_part,
    best_place,
    impossible_rows,
    no_design_words,
    part_figures,
    part_heads,
    why_not_looked_at,
)
from crossopt.reports.texts.goals import run_figures
from crossopt.solvers.codesign.answer import DesignResult, design_in, evaluation_in


def counts_page(counted: Counted, result: DesignResult, asked: Asked, facts: Facts | None, data: object) -> Page:
    """The page; `facts` are those of the best design, `data` is the result as it was read."""
    head = (
        heading(counted.name, asked.sentence),
        ProofBox(label_of(result, "design"), _words(counted, result), result.proved),
    )
    question, best, numbers = question_section(result.question, asked), best_part(counted, result), _numbers(counted, result)
    if best is None or facts is None:
        return Page(counted.name, (*head, question, numbers), data)
    return Page(counted.name, (*head, _tiles(counted, result, best), question, numbers, *answer_sections(best, facts)), data)


def _words(counted: Counted, result: DesignResult) -> str:
    if result.answer is None:
        what = _each(counted)
        return f"No {what} that was asked about has a design." if result.settled else f"No design was found ({result.stopped})."
    best = counted.part_name(best_place(counted, result))
    if counted.objective == FEWEST:
        are = _are(counted)
        return f"{best} {are} enough{', and no fewer that were asked about.' if result.settled else '; fewer may be.'}"
    if result.bound is None:
        return f"{best} {_are(counted)} the best known; a better design may exist."
    bound = amount(result.bound, str(result.question["unit"]))
    none = f"with any of these {several_words(counted).partition(' ')[2]} is below {bound}"
    words = [f"No design {none}." if result.settled else f"A better design may exist, but none {none}."]
    return " ".join([*words, *(f"{note[0].upper()}{note[1:]}." for note in beside_batches(counted))])


def _each(counted: Counted) -> str:
    """What one of the parts is."""
    return "batch" if counted.batches else "network" if counted.networks else "number of devices"


def _are(counted: Counted) -> str:
    return "is" if counted.batches or counted.networks else "are"


def _tiles(counted: Counted, result: DesignResult, best: DesignResult) -> str:
    unit, evaluation = str(result.question["unit"]), evaluation_in(best)
    place = best_place(counted, result)
    facts = list(zip(part_heads(counted), part_figures(counted, place), strict=True))
    if counted.objective != FEWEST:
        bound = "none" if result.bound is None else amount(result.bound, unit)
        facts += [(counted.objective.replace("_", " "), amount(result.value, unit)), ("lower bound", bound)]
    facts += [("gap", f"{result.gap:.2%}")] if result.gap is not None else []
    if evaluation is not None and counted.objective != "step_time":
        facts.append(("step time", time_of(evaluation["step_time"])))
    goal = counted.parts[place].goal
    if evaluation is not None and goal is not None:
        facts += [("the whole run", words) for words in run_figures(goal, evaluation["step_time"], evaluation["likely"])]
    return tiles(facts)


def _numbers(counted: Counted, result: DesignResult) -> str:
    """Every number of devices with what it reaches."""
    rows, lines, best = list[Row](), list[tuple[str, ...]](), best_part(counted, result)
    parted = part_heads(counted)
    for place in range(len(counted.parts)):
        answer = result.parts[place] if place < len(result.parts) else None
        label = counted.part_name(place)
        if answer is not None and answer.value is not None:
            rows.append(Row(label, answer.value, amount(answer.value, answer.question["unit"]), "best" if answer is best else ""))
        lines.append((*part_figures(counted, place), *_line(answer, counted, result, counted.parts[place])))
    lines += [(*figures, "-", "-", "-", why) for figures, why in impossible_rows(counted)]
    title, at = several_words(counted).partition(" ")[2].capitalize(), len(parted)
    if not rows:
        return section(title, table((*parted, "value", "bound", "step time", "design"), lines, numbers=range(at + 3)))
    asks = result.parts[0].question["objective"].replace("_", " ")
    told = "; ".join(f"{row.label}: {row.shown}" for row in rows)
    each = f"each {_each(counted)}"
    titles = Titles("counts", f"The best {asks} with {each}", f"{told}.")
    picture = figure(
        lambda width: bars(titles.at(width), rows, min(row.value for row in rows), "the least"), f"The best {asks} with {each}."
    )
    heads: tuple[str, ...] = (*parted, asks, "no design below", "step time", "design")
    if asks == "step time":
        heads, lines = (*heads[:-2], heads[-1]), [(*line[:-2], line[-1]) for line in lines]
    return section(title, picture, table(heads, lines, numbers=range(1, len(heads) - 1)), paragraph(_left(counted, result)))


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


def _left(counted: Counted, result: DesignResult) -> str:
    return f"What follows is about the design with {counted.part_name(best_place(counted, result))}." if result.answer else ""
