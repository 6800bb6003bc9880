"""Explanations for the terminal: what clashes, what binds, what more of a budget would buy, and what another choice would cost."""

from dataclasses import dataclass

from crossopt.instances.files.units import rounded_quantity
from crossopt.reports.facts.building import Built
from crossopt.reports.facts.chip import choice_name, choice_text
from crossopt.reports.sheets.sheet import ALL_OF_IT
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.explain.conflict import BESIDE, Member
from crossopt.solvers.codesign.explain.relief import RangeEnd, Relief, Unopened, buys, gain
from crossopt.solvers.codesign.objective import DIMENSIONS

LIMIT_DIMENSIONS = {**DIMENSIONS, "memory": "bytes", "package_area": "area", "power_density": "power_per_area", "reticle": "area"}
_LISTED = 8
LITTLE = 0.005
"""Of what is asked for: a tenth more that buys less binds nothing worth a change."""


@dataclass(frozen=True, slots=True)
class Why:
    """What was asked about an answer."""

    reliefs: tuple[Relief, ...] = ()
    ends: tuple[RangeEnd, ...] = ()
    building: tuple[tuple[Built, float | None], ...] = ()
    """Each with its gain from a tenth more; None if not evaluated."""
    unopened: tuple[Unopened, ...] = ()


NOTHING = Why()


def clash_text(name: str, members: tuple[Member, ...] | None, lacking: str | None = None) -> str:
    """Why there is no design; `lacking` says what no chip has."""
    if members is None and lacking:
        return f"{name}: no chip of the question can be built: {lacking}\n"
    if members is None:
        return f"{name}: no design keeps every limit, and none would with every limit lifted and every choice open\n"
    return f"{name}: no design keeps every limit; {_clashing(members)}"


def _clashing(members: tuple[Member, ...]) -> str:
    """The restrictions that leave no design together, one a line."""
    alone = "one restriction alone leaves none" if len(members) == 1 else "these clash, and without any one of them there is a design"
    return "\n".join([f"{alone}:", "", *(f"  {member_text(member)}" for member in members)]) + "\n"


def member_text(member: Member) -> str:
    """A limit or a choice that clashes with others, and what these need."""
    name = member.name.replace("_", " ")
    if member.least is None:
        listed = ", ".join(str(value) for value in member.allowed[:_LISTED]) + (", ..." if len(member.allowed) > _LISTED else "")
        return f"{name} is {'one of ' if len(member.allowed) > 1 else ''}{listed}"
    least, there = (rounded_quantity(float(value), LIMIT_DIMENSIONS[member.name]) for value in (member.least, member.allowed[0]))  # type: ignore[arg-type]
    return f"{name}: {there} at most; every design that the others allow needs at least {least}"


def answer_text(result: DesignResult, why: Why = NOTHING) -> str:
    """What binds an answer and what is merely full, what a little more of each limit would buy, and how near a free chip is to what can be
    built."""
    unit = result.question["unit"]
    lines = [f"{result.question['name']}: {_value(result.value, unit)} {'is the optimum' if result.settled else 'is the best found'}", ""]
    lines += [f"  {note}" for note in result.notes if note.startswith(BESIDE)]
    lines += [f"  {line}" for line in (_heads(result, why) if why.reliefs else _filled(result))]
    lines += [f"  {_relief(relief, result.value, unit)}" for relief in why.reliefs]
    lines += [f"  range end: {_beyond(end)}: {_bought(end, result.value, unit)}" for end in why.ends]
    lines += [f"  {line}" for line in _parts(result, why.unopened)]
    lines += ["", *(f"  {built.sentence}{_mark(built, worth)}" for built, worth in why.building)] if why.building else []
    return "\n".join(lines) + "\n"


def _parts(result: DesignResult, parts: tuple[Unopened, ...]) -> list[str]:
    """Closed parts of which a tenth more or less gains something, the largest gain first; one line if none does."""
    better = sorted((part for part in parts if buys(part.value, result.value)), key=lambda part: part.value or 0.0)
    bought = [(part, _bought(part, result.value, result.question["unit"])) for part in better]
    lines = [f"not opened: {choice_name(part.name)} a tenth {_way(part)}: {text}" for part, text in bought]
    names = ", ".join(dict.fromkeys(choice_name(part.name) for part in parts))
    return lines or ([f"not opened, and each alone a tenth more or less buys nothing: {names}"] if parts else [])


def _filled(result: DesignResult) -> list[str]:
    """Limits that are full, before anybody asked what more of them would buy."""
    full = result.details.evaluation.binding if result.details else ()
    return [f"full: {', '.join(full)}" if full else "no limit is full"]


def _heads(result: DesignResult, why: Why) -> list[str]:
    """The limits of which more buys something, those of which it buys little, what binds beside them, and what is full and buys nothing.
    What binds beside the limits comes first where it is worth more than any of them."""
    full = result.details.evaluation.binding if result.details else ()
    worth = {_name(relief): gain(relief.value, result.value) for relief in why.reliefs}
    binding = [name for name, bought in sorted(worth.items(), key=lambda pair: -pair[1]) if bought >= LITTLE]
    little = [f"{name} ({bought:.2%} less by a tenth more)" for name, bought in worth.items() if 0.0 < bought < LITTLE]
    known_fully = {_name(relief): relief.complete for relief in why.reliefs}
    shares = {limit.name: limit.share for limit in result.details.evaluation.limits} if result.details else {}
    others = [
        (name, f" ({share:.0%} used)" if (share := shares.get(name, 1.0)) < ALL_OF_IT else "") for name in full if not worth.get(name)
    ]
    beside = _beside(result, why)
    lines = [
        f"binding: {', '.join(binding)}" if binding else f"no limit binds{' by much' if little else ''}",
        f"worth little: {', '.join(little)}" if little else "",
    ]
    told_beside = f"binds beside: {', '.join(f'{head} ({bought:.2%})' for head, bought in beside)}" if beside else ""
    most = max(worth.values(), default=0.0)
    lines = [told_beside, *lines] if beside and beside[0][1] > most else [*lines, told_beside]
    heads = (("full, worth nothing", True), ("full", False))
    groups = [(head, [f"{name}{share}" for name, share in others if bool(known_fully.get(name)) == known]) for head, known in heads]
    return [*(line for line in lines if line), *(f"{head}: {', '.join(names)}" for head, names in groups if names)]


def _beside(result: DesignResult, why: Why) -> list[tuple[str, float]]:
    """What buys more than a little and is no limit of the question: of the technology, ends of ranges, closed parts; the most
    first."""
    built = ((f"{limit.sentence.partition(':')[0]} of the technology", worth or 0.0) for limit, worth in why.building if limit.full)
    ends = ((_beyond(end), gain(end.value, result.value)) for end in why.ends)
    parts = ((f"{choice_name(part.name)} a tenth {_way(part)}", gain(part.value, result.value)) for part in why.unopened)
    return sorted((pair for pair in (*built, *ends, *parts) if pair[1] >= LITTLE), key=lambda pair: -pair[1])


def _way(part: Unopened) -> str:
    return "more" if part.more else "less"


def _name(relief: Relief) -> str:
    return relief.name.replace("_", " ")


def _relief(relief: Relief, value: float | None, unit: str) -> str:
    budget, raised = (rounded_quantity(amount, LIMIT_DIMENSIONS[relief.name]) for amount in (relief.budget, relief.raised))
    stops = [f"{_beyond(end)} with it: {_bought(end, value, unit)}" for end in relief.stopped_by]
    why = f"; range end: {'; '.join(stops)}" if stops else ""
    return f"{_name(relief)} {raised} instead of {budget}: {_bought(relief, value, unit)}{why}"


def _bought(change: Relief | RangeEnd | Unopened, value: float | None, unit: str) -> str:
    if change.value is not None and value is not None and change.value < value:
        return f"{_value(change.value, unit)}, {1.0 - change.value / value:.2%} less"
    return "nothing better" if change.complete else "nothing better found in time"


def _beyond(end: RangeEnd) -> str:
    there, chosen = (choice_text(end.name, amount).replace("given ", "") for amount in (end.beyond, end.option))
    return f"{there} instead of {chosen.removeprefix(end.name.rpartition('_')[0].replace('_', ' ')).removesuffix(' HBM stacks').strip()}"


def _mark(limit: Built, worth: float | None) -> str:
    """That all of it is used, and how much more of it would buy, where that was asked."""
    if not limit.full or worth is None:
        return "; full" if limit.full else ""
    return f"; binds: a tenth more {worth:.2%} less" if worth >= LITTLE else f"; full, worth {_little(worth)}"


def _little(worth: float) -> str:
    """What is worth next to nothing, and how much."""
    return f"little ({worth:.2%})" if worth > 0.0 else "nothing"


_LEFT_OUT, _UNPROVED = "the question itself leaves it out", "the answer above is not proved"


def forced_text(forced: tuple[str, ...], result: DesignResult, other: DesignResult, members: tuple[Member, ...] | None) -> str:
    """What a forced choice costs, or why there is no design with it."""
    choices, unit = ", ".join(forced), result.question["unit"]
    if other.value is None:
        return f"\n  with {choices} there is no design: {_clashing(members) if members else 'not even with every limit lifted'}\n"
    if result.value is None:
        return f"\n  with {choices}: {_value(other.value, unit)}\n"
    change = other.value / result.value - 1.0
    more = (
        "the same"
        if not change
        else f"{change:.2%} more"
        if change > 0.0
        else f"{-change:.2%} less: {_LEFT_OUT if result.settled else _UNPROVED}"
    )
    return f"\n  with {choices}: {_value(other.value, unit)}, {more}\n    {other.answer.design.plan_label if other.answer else ''}\n"


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return "no design"
    return rounded_quantity(value, "time") if unit == "s" else f"{value:.5g} {unit}"
