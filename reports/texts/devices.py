"""Answers about several numbers of devices or batches for the terminal: one row for each of them, and the best of them in full."""

from dataclasses import replace

from crossopt.instances.codesign.instance import Counted, Instance
from crossopt.instances.codesign.open_questions import FEWEST
from crossopt.instances.codesign.plans.left_out import why_no_plan
from crossopt.instances.codesign.question import narrowing, several_words
from crossopt.reports.facts.chip.words import design_words
from crossopt.reports.texts.design import amount, answer, seconds_of, time_of
from crossopt.reports.texts.width import count_of, listed, wrapped
from crossopt.solvers.codesign.answer import DesignResult, design_in, evaluation_in


def counts_answer(counted: Counted, result: DesignResult) -> str:
    """A result as text."""
    best = best_part(result)
    value = "" if counted.objective in (FEWEST, "step_time") else f"{counted.objective.replace('_', ' '):>24}"
    lines = [*_headline(counted, result), "", f"  {''.join(f'{name:>9}' for name in part_heads(counted))}{value}{'step time':>12}  design"]
    lines += [
        line
        for place, (one, part) in enumerate(zip(result.parts, counted.parts, strict=False))
        for line in _row(_start(counted, place), one, no_design_words(one, part), bool(value))
    ]
    unseen = range(len(result.parts), len(counted.parts))
    lines += [f"{_start(counted, place)}  {why_not_looked_at(counted, result)}" for place in unseen]
    lines += [line for figures, why in impossible_rows(counted) for line in wrapped(f"{_figures(figures)}  ", why)]
    if best is None:
        asking = f"`crossopt explain FILE {narrowing(counted)}` names what clashes"
        return "\n".join([*lines, *(["", *wrapped("  ", asking)] if result.settled else [])]) + "\n"
    notes = [line for note in (*result.notes, *beside_batches(counted)) for line in wrapped("  ", f"{note}.")]
    part = counted.parts[best_place(counted, result)]
    last = f"with {counted.part_name(best_place(counted, result))}:"
    return "\n".join([*lines, "", *_certificate(counted, result), *notes, "", last, ""]) + answer(best, part)


def devices_in(result: DesignResult) -> int:
    """How many devices the best design has."""
    return result.answer.devices if result.answer else 0


def best_part(result: DesignResult) -> DesignResult | None:
    """The answer for the best number of devices and the best batch."""
    whole = None if result.answer is None else replace(result.answer, batch=0)
    return next((part for part in result.parts if part.answer is not None and _of_it(part, result) and part.answer == whole), None)


def _of_it(part: DesignResult, result: DesignResult) -> bool:
    """Whether a part is about the batch of the answer."""
    batch = result.answer.batch if result.answer else 0
    return not batch or f"workload.global_batch={batch}" in part.question["settings"]


def best_place(counted: Counted, result: DesignResult) -> int:
    """Which part the answer is of."""
    return counted.places.index((devices_in(result), result.answer.batch if result.answer else 0))


def part_heads(counted: Counted) -> tuple[str, ...]:
    """What sets the parts apart."""
    devices = ("devices",) if counted.by_devices else ()
    return (*devices, *(("batch",) if counted.batches else ()))


def part_figures(counted: Counted, place: int) -> tuple[int, ...]:
    """The same of one part."""
    devices = (counted.counts[place],) if counted.by_devices else ()
    return (*devices, *((counted.batches[place],) if counted.batches else ()))


def impossible_rows(counted: Counted) -> list[tuple[tuple[int, ...], str]]:
    """The figures of those that nothing can be asked about, and why."""
    places = [((count,) if counted.by_devices else (), (batch,) if batch else (), why) for count, batch, why in counted.impossible]
    return [((*devices, *batches), f"no plan at all: {why}") for devices, batches, why in places]


def beside_batches(counted: Counted) -> tuple[str, ...]:
    """By what batches are compared, and what is not looked at."""
    if not counted.batches:
        return ()
    by = {"time_per_sample": "the time of a sample", FEWEST: "the limits of the whole run"}
    figure = by.get(counted.objective, counted.objective.replace("_", " "))
    return (f"batches are compared by {figure}, as a smaller one has the shorter step; how well each of them learns is not looked at",)


def _start(counted: Counted, place: int) -> str:
    return _figures(part_figures(counted, place))


def _figures(figures: tuple[int, ...]) -> str:
    return f"  {''.join(f'{count_of(figure):>9}' for figure in figures)}"


def why_not_looked_at(counted: Counted, result: DesignResult) -> str:
    """Why there is no answer about the parts that come later."""
    enough = counted.objective == FEWEST and result.answer is not None
    return "not looked at, as fewer are enough" if enough else f"not looked at ({result.stopped})"


def _headline(counted: Counted, result: DesignResult) -> list[str]:
    label, numbers = f"{counted.name}   ", several_words(counted)
    if result.answer is None:
        proof = f"none has a design, proved in {seconds_of(result.seconds)}" if result.settled else f"no design found ({result.stopped})"
        return wrapped(label, f"{numbers}, {proof}")
    best = counted.part_name(best_place(counted, result)) if counted.batches else count_of(result.answer.devices)
    if result.settled:
        what = "enough" if counted.objective == FEWEST else "best"
        return wrapped(label, f"{numbers}, {best} is {what}, {'as told,' if result.told else 'proved'} in {seconds_of(result.seconds)}")
    return wrapped(label, f"{numbers}, {best} is the best known, not proved")


def no_design_words(one: DesignResult, part: Instance) -> str:
    """Why there is no design with one number of devices: none was found, none is a plan, or none keeps every limit."""
    if not one.settled:
        return f"no design found ({one.stopped})"
    none = why_no_plan(part) if one.value is None else None
    missed = "; ".join(note.partition(" (")[0] for note in one.notes)
    return f"no plan at all: {none}" if none else f"no design keeps every limit{f'; {missed}' if missed else ''}"


def _row(start: str, one: DesignResult, none: str, valued: bool) -> list[str]:
    design, evaluation = design_in(one), evaluation_in(one)
    if design is None or evaluation is None:
        return wrapped(f"{start}  ", none)
    value = f"{amount(one.value, one.question['unit']):>24}" if valued else ""
    return listed(f"{start}{value}{time_of(evaluation['step_time']):>12}  ", design_words(design))


def _certificate(counted: Counted, result: DesignResult) -> list[str]:
    """The proof in a sentence; each answer has its own."""
    if counted.objective == FEWEST:
        return wrapped("  ", f"{_why_not_fewer(counted, result)}, by {result.proved_by}.")
    if result.bound is None:
        return ["  not proved, so a better design may exist."]
    none = f"no design with any of them is below {amount(result.bound, str(result.question['unit']))}, by {result.proved_by}."
    return wrapped("  ", none if result.settled else f"a better design may exist, but {none}")


def _why_not_fewer(counted: Counted, result: DesignResult) -> str:
    names = [counted.part_name(place).removesuffix(" devices") for place in range(len(counted.parts))]
    triples = zip(names, result.parts, counted.parts, strict=False)
    without = [(name, _kind(one, part)) for name, one, part in triples if one.value is None]
    refuted, planless, unknown = (
        ", ".join(count for count, kind in without if kind == asked) for asked in ("refuted", "planless", "unknown")
    )
    what = "" if counted.batches else " devices"
    words = [f"no design with {refuted}{what} keeps every limit"] if refuted else []
    words += [f"{planless}{what} have no plan at all"] if planless else []
    words += [f"whether {unknown}{what} would do is not known"] if unknown else []
    return "; ".join(words) or "the question allows no fewer devices"


def _kind(one: DesignResult, part: Instance) -> str:
    """What is known of a number of devices without a design."""
    return "unknown" if not one.settled else "planless" if why_no_plan(part) else "refuted"
