"""The sheet of several numbers of devices, networks or batches: a row for each of them, and the best one's design in full."""

from dataclasses import replace

from crossopt.instances.codesign.instance import Counted, Instance, Place
from crossopt.instances.codesign.open_questions import FEWEST
from crossopt.instances.codesign.plan_groups import why_no_plan
from crossopt.instances.codesign.question import narrowing, several_words
from crossopt.reports.facts.chip.words import design_words
from crossopt.reports.facts.question import asked_of_counts
from crossopt.reports.sheets.amounts import amount, bound_amount, count_of, time_of
from crossopt.reports.sheets.codesign.caveats import context_of
from crossopt.reports.sheets.codesign.design import (
    about,
    answer_sections,
    baselines_beside,
    details_of,
    fullness,
    open_choices,
    rates,
    sketch_of,
)
from crossopt.reports.sheets.sheet import Bar, Bars, Bound, Cell, Column, Part, Section, Sheet, Table, answer_sheet
from crossopt.solvers.codesign.answer import DesignResult


def counts_sheet(counted: Counted, result: DesignResult) -> Sheet:
    """What is shown."""
    asked, place, fewest = asked_of_counts(counted), best_place(counted, result), counted.objective == FEWEST
    best = result.parts[place] if 0 <= place < len(result.parts) else None
    context, name = context_of(counted.parts[place], best) if best else None, counted.part_name(place) if place >= 0 else ""
    shown = () if context is None else answer_sections(context)
    found = answer_sheet(
        result,
        "design",
        asked.sentence,
        asks="number of devices" if fewest else counted.objective.replace("_", " "),
        looked_at=_looked_at(counted, result, name),
        summary="" if context is None else f"{name}; {design_words(context.design)}",
        chosen="" if context is None else fullness(context.evaluation),
        sketch=None if context is None else sketch_of(context),
        figures=() if context is None else rates(context.evaluation, context.question, context.design.plan),
        beside=() if best is None else baselines_beside(best),
        given=asked.terms,
        open_choices=open_choices(asked),
        sections=(_parts_section(counted, result), *(replace(one, title=f"{one.title} with {name}") for one in shown)),
        details=lambda: () if context is None else details_of(context),
        notes=tuple(f"{note}." for note in (*result.notes, *beside_batches(counted))),
        verdict=_verdict(counted, result),
        about=about(asked),
    )
    return replace(found, engine="" if best is None else best.engine, prover="" if best is None else best.proved_by)


def best_place(counted: Counted, result: DesignResult) -> int:
    """Which part the answer is of; -1 where there is none."""
    return -1 if result.answer is None else counted.places.index(result.answer.place)


def _looked_at(counted: Counted, result: DesignResult, name: str) -> str:
    if result.answer is None:
        return ""
    what = "enough" if counted.objective == FEWEST else "best"
    return f"{several_words(counted)}, {name} {_are(counted)} {what if result.settled else 'the best known'}"


def _are(counted: Counted) -> str:
    return "is" if counted.batches or counted.networks else "are"


# --- each of them --------------------------------------------------------------------------------------------------------------------


def _parts_section(counted: Counted, result: DesignResult) -> Section:
    """Every number of devices, network or batch with what it reaches."""
    title = several_words(counted).partition(" ")[2].capitalize()
    answers = [*result.parts, *[None] * (len(counted.parts) - len(result.parts))]
    rows = [_row(counted, place, answer, result) for place, answer in enumerate(answers)]
    rows += [
        (*_cells(counted, place), ("-", None), ("-", None), ("-", None), (f"no plan at all: {why}", ""))
        for place, why in counted.impossible
    ]
    unit = result.parts[0].question["unit"] if result.parts else ""
    value = str(result.parts[0].question["objective"]).replace("_", " ") if result.parts else "value"
    heads = [*part_heads(counted), value, "lower bound", "step time", "design"]
    columns = [
        _column(head, [row[place] for row in rows], unit if head in (value, "lower bound") else "") for place, head in enumerate(heads)
    ]
    if value == "step time":
        columns.pop(-2)
    found = [(place, one) for place, one in enumerate(result.parts) if one.value is not None]
    bars = Bars(tuple(Bar(counted.part_name(place), one.value) for place, one in found), unit, None, None)
    hint = f"`crossopt explain FILE {narrowing(counted)}` names what clashes."
    parts: tuple[Part, ...] = (Table(tuple(columns)), *([bars] if found else []), *([hint] if result.settled and not found else []))
    return Section(title, parts)


def _column(head: str, cells: list[tuple[str, Cell]], unit: str) -> Column:
    exact = tuple(cell for _, cell in cells)
    is_figure = any(isinstance(cell, float | Bound) for cell in exact)
    return Column(head, tuple(words for words, _ in cells), exact if is_figure else (), f"{head} in {unit}" if unit and is_figure else "")


def _row(counted: Counted, place: int, answer: DesignResult | None, result: DesignResult) -> tuple[tuple[str, Cell], ...]:
    """The cells of a row, in words and as figures."""
    own = _cells(counted, counted.places[place])
    if answer is None:
        return (*own, ("-", None), ("-", None), ("-", None), (why_not_looked_at(counted, result), ""))
    context, unit = context_of(counted.parts[place], answer), str(answer.question["unit"])
    bound = ("none", None) if answer.bound is None else (_bound(answer, unit), Bound(answer.bound))
    if context is None:
        known = f", {'told' if answer.told else 'proved'}" if answer.settled else ""
        return (*own, ("-", None), ("-", None), ("-", None), (f"{no_design_words(answer, counted.parts[place])}{known}", ""))
    value = (amount(answer.value, unit), answer.value)
    step = context.evaluation.step_time
    return (*own, value, bound, (time_of(step), step), (design_words(context.design), ""))


def _bound(answer: DesignResult, unit: str) -> str:
    return "the same" if answer.bound == answer.value else bound_amount(float(answer.bound or 0.0), unit)


def part_heads(counted: Counted) -> tuple[str, ...]:
    """What sets the parts apart."""
    devices = ("devices",) if counted.by_devices else ()
    network = ("network",) if counted.networks else ()
    return (*devices, *network, *(("batch",) if counted.batches else ()))


def _cells(counted: Counted, place: Place) -> tuple[tuple[str, Cell], ...]:
    """The same of one part."""
    devices = ((count_of(place.devices), float(place.devices)),) if counted.by_devices else ()
    network = ((place.network, place.network),) if counted.networks else ()
    return (*devices, *network, *(((count_of(place.batch), float(place.batch)),) if place.batch else ()))


def why_not_looked_at(counted: Counted, result: DesignResult) -> str:
    """Why there is no answer about the parts that come later."""
    enough = counted.objective == FEWEST and result.answer is not None
    return "not looked at, as fewer are enough" if enough else f"not looked at ({result.stopped})"


def no_design_words(one: DesignResult, part: Instance) -> str:
    """Why there is no design with one number of devices: none was found, none is a plan, or none keeps every limit."""
    if not one.settled:
        return f"no design found ({one.stopped})"
    none = why_no_plan(part) if one.value is None else None
    missed = "; ".join(note.partition(" (")[0] for note in one.notes)
    return f"no plan at all: {none}" if none else f"no design keeps every limit{f'; {missed}' if missed else ''}"


def beside_batches(counted: Counted) -> tuple[str, ...]:
    """By what batches are compared, and what is not looked at."""
    if not counted.batches:
        return ()
    by = {"time_per_sample": "the time of a sample", FEWEST: "the limits of the whole run"}
    figure = by.get(counted.objective, counted.objective.replace("_", " "))
    return (f"batches are compared by {figure}, as a smaller one has the shorter step; how well each of them learns is not looked at",)


# --- the proof -----------------------------------------------------------------------------------------------------------------------


def _verdict(counted: Counted, result: DesignResult) -> str:
    """The proof in a sentence; each answer has its own."""
    if result.answer is None:
        what = "batch" if counted.batches else "network" if counted.networks else "number of devices"
        return f"No {what} that was asked about has a design." if result.settled else f"No design was found ({result.stopped})."
    if counted.objective == FEWEST:
        words = f"{_why_not_fewer(counted, result)}, by {result.proved_by}."
        return f"{words[0].upper()}{words[1:]}"
    if result.bound is None:
        return "Not proved, so a better design may exist."
    none = f"o design with any of them is below {bound_amount(float(result.bound), str(result.question['unit']))}, by {result.proved_by}."
    return f"N{none}" if result.settled else f"A better design may exist, but n{none}"


def _why_not_fewer(counted: Counted, result: DesignResult) -> str:
    labels = [counted.part_name(place).removesuffix(" devices") for place in range(len(counted.parts))]
    triples = zip(labels, result.parts, counted.parts, strict=False)
    without = [(name, _known(one, part)) for name, one, part in triples if one.value is None]
    refuted, planless, unknown = (
        ", ".join(count for count, kind in without if kind == asked) for asked in ("refuted", "planless", "unknown")
    )
    what = "" if counted.batches or counted.networks else " devices"
    words = [f"no design with {refuted}{what} keeps every limit"] if refuted else []
    words += [f"{planless}{what} have no plan at all"] if planless else []
    words += [f"whether {unknown}{what} would do is not known"] if unknown else []
    return "; ".join(words) or "the question allows no fewer devices"


def _known(one: DesignResult, part: Instance) -> str:
    """What is known of a number of devices without a design."""
    return "unknown" if not one.settled else "planless" if why_no_plan(part) else "refuted"
