"""Explanations for the terminal: what clashes, what binds, what more of a budget would buy, and what another choice would cost."""

from crossopt.instances.files.units import rounded_quantity
from crossopt.solvers.codesign.answer import DesignResult, design_in, evaluation_in
from crossopt.solvers.codesign.explain.conflict import Member, Relief
from crossopt.solvers.codesign.objective import DIMENSIONS

_UNITS = {**DIMENSIONS, "memory": "bytes", "package_area": "area", "power_density": "power_per_area", "reticle": "area"}
_LISTED = 8


def clash_text(name: str, members: tuple[Member, ...] | None, lacking: str | None = None) -> str:
    """Why there is no design; `lacking` says what no chip has."""
    if members is None and lacking:
        return f"{name}: no chip of the question can be built: {lacking}\n"
    if members is None:
        return f"{name}: no design keeps every limit, and none would with every limit lifted and every choice open\n"
    lines = [f"{name}: no design keeps every limit; these clash, and without any one of them there is a design:", ""]
    return "\n".join([*lines, *(f"  {_member(member)}" for member in members)]) + "\n"


def _member(member: Member) -> str:
    words = member.name.replace("_", " ")
    if member.least is None:
        listed = ", ".join(str(value) for value in member.allowed[:_LISTED]) + (", ..." if len(member.allowed) > _LISTED else "")
        return f"{words} is {'one of ' if len(member.allowed) > 1 else ''}{listed}"
    least, there = (rounded_quantity(float(value), _UNITS[member.name]) for value in (member.least, member.allowed[0]))  # type: ignore[arg-type]
    return f"{words}: {there} at most; what the others leave needs at least {least}"


def answer_text(result: DesignResult, reliefs: tuple[Relief, ...], building: tuple[str, ...] = ()) -> str:
    """What binds an answer, what a tenth more of each budget would buy, and how near a free chip is to what can be built."""
    unit = result.question["unit"]
    lines = [f"{result.question['name']}: {_value(result.value, unit)} {'is the optimum' if result.settled else 'is the best found'}", ""]
    binding = (evaluation_in(result) or {}).get("binding", [])
    lines.append(f"  binding: {', '.join(binding)}" if binding else "  no limit binds")
    lines += [f"  {_relief(relief, result.value, unit)}" for relief in reliefs]
    lines += ["", *(f"  {words}" for words in building)] if building else []
    return "\n".join(lines) + "\n"


def _relief(relief: Relief, value: float | None, unit: str) -> str:
    budget, raised = (rounded_quantity(amount, _UNITS[relief.name]) for amount in (relief.budget, relief.raised))
    head = f"{relief.name.replace('_', ' ')} {raised} instead of {budget}:"
    if relief.value is None or value is None or relief.value >= value:
        return f"{head} nothing better"
    return f"{head} {_value(relief.value, unit)}, {1.0 - relief.value / value:.2%} less"


def forced_text(forced: tuple[str, ...], result: DesignResult, other: DesignResult, members: tuple[Member, ...] | None) -> str:
    """What a forced choice costs, or why there is no design with it."""
    words, unit = ", ".join(forced), result.question["unit"]
    if other.value is None:
        return f"\n  with {words} there is no design: " + clash_text("", members).partition("these")[2].strip().join(("these ", "\n"))
    if result.value is None:
        return f"\n  with {words}: {_value(other.value, unit)}\n"
    plan = (design_in(other) or {})["words"]
    more = "the same" if other.value == result.value else f"{other.value / result.value - 1.0:.2%} more"
    return f"\n  with {words}: {_value(other.value, unit)}, {more}\n    {plan}\n"


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return "no design"
    return rounded_quantity(value, "time") if unit == "s" else f"{value:.5g} {unit}"
