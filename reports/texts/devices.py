"""Answers about several numbers of devices, networks or batches for the terminal: a row for each of them, and the best in full."""

from crossopt.instances.codesign.instance import Counted, Instance, Place
from crossopt.instances.codesign.open_questions import FEWEST
from crossopt.instances.codesign.plans.left_out import why_no_plan
from crossopt.instances.codesign.question import narrowing, several_words
from crossopt.reports.facts.chip.words import design_words
from crossopt.reports.sheets.amounts import amount, count_of, seconds_of, time_of
from crossopt.reports.texts.design import answer
from crossopt.reports.texts.width import listed, wrapped
from crossopt.solvers.codesign.answer import DesignResult, design_in, evaluation_in


def counts_answer(counted: Counted, result: DesignResult) -> str:
    """A result as text."""
    best = best_part(counted, result)
    value = "" if counted.objective in (FEWEST, "step_time") else f"{counted.objective.replace('_', ' '):>24}"
    heads = f"  {''.join(_padded(name, name, counted) for name in part_heads(counted))}{value}{'step time':>12}  design"
    lines = [*_headline(counted, result), "", heads]
    lines += [
        line
        for place, (one, part) in enumerate(zip(result.parts, counted.parts, strict=False))
        for line in _row(_start(counted, place), one, no_design_words(one, part), bool(value))
    ]
    unseen = range(len(result.parts), len(counted.parts))
    lines += [f"{_start(counted, place)}  {why_not_looked_at(counted, result)}" for place in unseen]
    lines += [line for figures, why in impossible_rows(counted) for line in wrapped(f"{_figures(counted, figures)}  ", why)]
    if best is None:
        asking = f"`crossopt explain FILE {narrowing(counted)}` names what clashes"
        return "\n".join([*lines, *(["", *wrapped("  ", asking)] if result.settled else [])]) + "\n"
    notes = [line for note in (*result.notes, *beside_batches(counted)) for line in wrapped("  ", f"{note}.")]
    part = counted.parts[best_place(counted, result)]
    last = f"with {counted.part_name(best_place(counted, result))}:"
    return "\n".join([*lines, "", *_certificate(counted, result), *notes, "", last, ""]) + answer(best, part)


def best_part(counted: Counted, result: DesignResult) -> DesignResult | None:
    """The answer for the best number of devices, the best network and the best batch."""
    place = best_place(counted, result)
    return result.parts[place] if 0 <= place < len(result.parts) else None


def best_place(counted: Counted, result: DesignResult) -> int:
    """Which part the answer is of; -1 where there is none."""
    return -1 if result.answer is None else counted.places.index(result.answer.place)


def part_heads(counted: Counted) -> tuple[str, ...]:
    """What sets the parts apart."""
    devices = ("devices",) if counted.by_devices else ()
    network = ("network",) if counted.networks else ()
    return (*devices, *network, *(("batch",) if counted.batches else ()))


def part_figures(counted: Counted, place: int) -> tuple[str, ...]:
    """The same of one part."""
    return _figures_of(counted, counted.places[place])


def part_values(counted: Counted, place: int) -> tuple[float | str, ...]:
    """The same as values, for tables."""
    devices, batch, network = counted.places[place]
    named = (network,) if counted.networks else ()
    return (*((float(devices),) if counted.by_devices else ()), *named, *((float(batch),) if batch else ()))


def _figures_of(counted: Counted, place: Place) -> tuple[str, ...]:
    devices = (count_of(place.devices),) if counted.by_devices else ()
    network = (place.network,) if counted.networks else ()
    return (*devices, *network, *((count_of(place.batch),) if place.batch else ()))


def impossible_rows(counted: Counted) -> list[tuple[tuple[str, ...], str]]:
    """The figures of those that nothing can be asked about, and why."""
    return [(_figures_of(counted, place), f"no plan at all: {why}") for place, why in counted.impossible]


def beside_batches(counted: Counted) -> tuple[str, ...]:
    """By what batches are compared, and what is not looked at."""
    if not counted.batches:
        return ()
    by = {"time_per_sample": "the time of a sample", FEWEST: "the limits of the whole run"}
    figure = by.get(counted.objective, counted.objective.replace("_", " "))
    return (f"batches are compared by {figure}, as a smaller one has the shorter step; how well each of them learns is not looked at",)


def _start(counted: Counted, place: int) -> str:
    return _figures(counted, part_figures(counted, place))


def _figures(counted: Counted, figures: tuple[str, ...]) -> str:
    return f"  {''.join(_padded(words, head, counted) for words, head in zip(figures, part_heads(counted), strict=True))}"


def _padded(words: str, head: str, counted: Counted) -> str:
    """As wide as a number, or as the longest network."""
    width = max(map(len, counted.networks), default=0) + 2 if head == "network" else 9
    return f"{words:>{width}}"


def why_not_looked_at(counted: Counted, result: DesignResult) -> str:
    """Why there is no answer about the parts that come later."""
    enough = counted.objective == FEWEST and result.answer is not None
    return "not looked at, as fewer are enough" if enough else f"not looked at ({result.stopped})"


def _headline(counted: Counted, result: DesignResult) -> list[str]:
    label, numbers = f"{counted.name}   ", several_words(counted)
    if result.answer is None:
        proof = f"none has a design, proved in {seconds_of(result.seconds)}" if result.settled else f"no design found ({result.stopped})"
        return wrapped(label, f"{numbers}, {proof}")
    named = counted.batches or counted.networks
    best = counted.part_name(best_place(counted, result)) if named else count_of(result.answer.devices)
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
    what = "" if counted.batches or counted.networks else " devices"
    words = [f"no design with {refuted}{what} keeps every limit"] if refuted else []
    words += [f"{planless}{what} have no plan at all"] if planless else []
    words += [f"whether {unknown}{what} would do is not known"] if unknown else []
    return "; ".join(words) or "the question allows no fewer devices"


def _kind(one: DesignResult, part: Instance) -> str:
    """What is known of a number of devices without a design."""
    return "unknown" if not one.settled else "planless" if why_no_plan(part) else "refuted"
