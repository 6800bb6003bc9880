"""Answers about several numbers of devices for the terminal: one row for each number, and the best of them in full."""

from crossopt.instances.codesign.instance import Counted, Instance
from crossopt.instances.codesign.left_out import why_no_plan
from crossopt.instances.codesign.open_questions import FEWEST
from crossopt.reports.texts.design import amount, answer, count_of, design_words, listed, seconds_of, time_of, wrapped
from crossopt.solvers.codesign.answer import DesignResult, design_in, evaluation_in


def counts_answer(counted: Counted, result: DesignResult) -> str:
    """A result as text."""
    fewest, best = counted.objective == FEWEST, best_part(result)
    value = "" if counted.objective in (FEWEST, "step_time") else f"{counted.objective.replace('_', ' '):>24}"
    lines = [*_headline(counted, result), "", f"  {'devices':>9}{value}{'step time':>12}  design"]
    lines += [
        line
        for count, one, part in zip(counted.counts, result.parts, counted.parts, strict=False)
        for line in _row(count, one, no_design_words(one, part), bool(value))
    ]
    lines += [f"  {count_of(count):>9}  {why_not_looked_at(counted, result)}" for count in counted.counts[len(result.parts) :]]
    if best is None:
        settings = f"--set cluster.devices={counted.counts[-1]}{' --set objective=step_time' * fewest}"
        return "\n".join([*lines, *(["", f"  `crossopt explain FILE {settings}` names what clashes"] if result.settled else [])]) + "\n"
    notes = [line for note in result.notes for line in wrapped("  ", f"{note}.")]
    part = counted.parts[counted.counts.index(devices_in(result))]
    last = f"with {count_of(devices_in(result))} devices:"
    return "\n".join([*lines, "", *_certificate(counted, result), *notes, "", last, ""]) + answer(best, part)


def devices_in(result: DesignResult) -> int:
    """How many devices the best design has."""
    return result.answer.devices if result.answer else 0


def best_part(result: DesignResult) -> DesignResult | None:
    """The answer for the best number of devices."""
    return next((part for part in result.parts if part.answer is not None and part.answer == result.answer), None)


def why_not_looked_at(counted: Counted, result: DesignResult) -> str:
    """Why there is no answer about the greater numbers of devices."""
    enough = counted.objective == FEWEST and result.answer is not None
    return "not looked at, as fewer are enough" if enough else f"not looked at ({result.stopped})"


def _headline(counted: Counted, result: DesignResult) -> list[str]:
    label, numbers = f"{counted.name}   ", f"{len(counted.counts)} numbers of devices"
    if result.answer is None:
        proof = f"none has a design, proved in {seconds_of(result.seconds)}" if result.settled else f"no design found ({result.stopped})"
        return wrapped(label, f"{numbers}, {proof}")
    best = count_of(result.answer.devices)
    if result.settled:
        what = "enough" if counted.objective == FEWEST else "best"
        return wrapped(label, f"{numbers}, {best} is {what}, {'as told,' if result.told else 'proved'} in {seconds_of(result.seconds)}")
    return wrapped(label, f"{numbers}, {best} is the best known, not proved")


def no_design_words(one: DesignResult, part: Instance) -> str:
    """Why there is no design with one number of devices: none was found, none is a plan, or none keeps every limit."""
    if not one.settled:
        return f"no design found ({one.stopped})"
    none = why_no_plan(part) if one.value is None else None
    return f"no plan at all: {none}" if none else "no design keeps every limit"


def _row(count: int, one: DesignResult, none: str, valued: bool) -> list[str]:
    start, design, evaluation = f"  {count_of(count):>9}", design_in(one), evaluation_in(one)
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
    triples = zip(counted.counts, result.parts, counted.parts, strict=False)
    without = [(count_of(count), _kind(one, part)) for count, one, part in triples if one.value is None]
    refuted, planless, unknown = (
        ", ".join(count for count, kind in without if kind == asked) for asked in ("refuted", "planless", "unknown")
    )
    words = [f"no design with {refuted} devices keeps every limit"] if refuted else []
    words += [f"{planless} devices have no plan at all"] if planless else []
    words += [f"whether {unknown} devices would do is not known"] if unknown else []
    return "; ".join(words) or "the question allows no fewer devices"


def _kind(one: DesignResult, part: Instance) -> str:
    """What is known of a number of devices without a design."""
    return "unknown" if not one.settled else "planless" if why_no_plan(part) else "refuted"
