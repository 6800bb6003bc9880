"""Answers for the terminal: what was chosen, where the time goes, what binds, how far the rivals are, and the proof in one sentence."""

from typing import Any

from instances.units import format_quantity
from solvers.result import Conflict, Result, Rival

_WIDTH = 24
_FULL, _EIGHTHS = "█", " ▏▎▍▌▋▊▉"
_LABEL = 20
_DIGITS = 4


def answer(result: Result) -> str:
    """A result as text."""
    if result.design is None or result.evaluation is None:
        return _no_design(result)
    lines = [_headline(result), "", *_design_lines(result.design), *_value_lines(result), "", *_evaluation_lines(result.evaluation), ""]
    lines += _rival_lines(result)
    if result.space is not None:
        lines += _space_lines(result)
    return "\n".join([*lines, "", *_certificate(result)]) + "\n"


def evaluation_text(name: str, design: dict[str, Any], evaluation: dict[str, Any]) -> str:
    """One priced design as text."""
    verdict = "keeps every limit" if evaluation["feasible"] else "BREAKS A LIMIT"
    lines = [f"{name}: one design, priced by the full model; it {verdict}", "", *_design_lines(design)]
    lines += [f"  {'step time':<{_LABEL}}{_time(evaluation['step_time'])}", *_rates(evaluation), "", *_evaluation_lines(evaluation)]
    return "\n".join(lines) + "\n"


def comparison(results: list[Result]) -> str:
    """Engines side by side, each as a gap to the best proven bound."""
    bounds = [result.bound for result in results if result.bound is not None]
    bound = max(bounds) if bounds else None
    unit = results[0].instance["unit"]
    lines = [f"{results[0].instance['name']}: {results[0].instance['objective']} in {unit}", ""]
    lines.append(f"  {'engine':<16}{'value':>12}{'above bound':>13}{'seconds':>9}  design")
    for result in results:
        value = "none" if result.value is None else f"{result.value:.5g}"
        above = "" if result.value is None or bound is None else f"{result.value / bound - 1.0:.2%}"
        words = "" if result.design is None else "; ".join([*_hardware_words(result.design)[1:], result.design["words"]])
        lines.append(f"  {result.engine:<16}{value:>12}{above:>13}{result.seconds:>9.2f}  {words}")
    lines += ["", f"  bound {bound:.5g} {unit}, proved by {_provers(results)}" if bound is not None else "  no engine proved a bound"]
    return "\n".join(lines) + "\n"


def _provers(results: list[Result]) -> str:
    return ", ".join(result.proved_by for result in results if result.proved_by)


def _headline(result: Result) -> str:
    name = f"{result.instance['name']}   "
    if result.space is None:
        return f"{name}{result.engine}: a design without a proof"
    counts = f"{_count(result.space.designs)} designs, {_count(result.space.feasible)} keep every limit"
    how = f"proved in {result.seconds:.2g} s by {result.engine}" if result.proved else f"not proved: {result.stopped}"
    return f"{name}{counts}, {how}"


def _design_lines(design: dict[str, Any]) -> list[str]:
    return [f"  {'hardware':<{_LABEL}}{' · '.join(_hardware_words(design))}", f"  {'plan':<{_LABEL}}{design['words']}"]


def _hardware_words(design: dict[str, Any]) -> list[str]:
    """The device's name, and each choice as a person would say it."""
    chosen = design["hardware"]
    return [chosen["name"], *(_choice(name, value) for name, value in chosen.items() if name != "name")]


def _choice(name: str, value: float) -> str:
    if name == "hbm_stacks":
        return f"{value:g} HBM stacks"
    part, _, kind = name.rpartition("_")
    amount = f"{value:.3g} of" if kind == "edge" else _shown(value, kind)
    return f"{part.replace('_', ' ')} {amount}" if kind != "edge" else f"{part.replace('_', ' ')} {amount} the edge"


def _value_lines(result: Result) -> list[str]:
    unit, label = result.instance["unit"], result.instance["objective"].replace("_", " ")
    value = _time(result.value) if unit == "s" and result.value is not None else f"{result.value:.5g} {unit}"
    bound = "no bound" if result.bound is None else f"bound {_time(result.bound) if unit == 's' else f'{result.bound:.5g} {unit}'}"
    gap = "" if result.gap is None else f", gap {result.gap:.2%}"
    evaluation = result.evaluation or {}
    lines = [f"  {label:<{_LABEL}}{value}      {bound}{gap}"]
    if unit != "s":
        lines.append(f"  {'step time':<{_LABEL}}{_time(evaluation['step_time'])}")
    return [*lines, *_rates(evaluation)]


def _rates(evaluation: dict[str, Any]) -> list[str]:
    rates = [f"{_count(round(evaluation['tokens_per_second']))} tokens/s", f"{evaluation['utilisation']:.1%} of peak"]
    if evaluation["energy"] > 0.0:
        rates.append(f"{evaluation['average_power']:.0f} W a device on average")
        rates.append(f"{_shown(evaluation['energy'], 'energy')} a step")
    if evaluation["cost"] is not None:
        rates.append(f"{evaluation['cost']:.4g} USD a step")
    return [f"  {'':<{_LABEL}}{' · '.join(rates)}"]


def _evaluation_lines(evaluation: dict[str, Any]) -> list[str]:
    """Where the time goes, what fills the memory, and the limits with what binds."""
    total, items = evaluation["step_time"], evaluation["breakdown"]
    lines = ["  where the step goes"]
    for name, seconds in sorted(items.items(), key=lambda item: -item[1]):
        if seconds > 0.0:
            lines.append(f"    {name:<{_LABEL}}{_time(seconds):>9}  {seconds / total:6.1%}  {_bar(seconds / total)}".rstrip())
    memory = [f"{name} {_shown(size, 'bytes')}" for name, size in evaluation["memory"].items() if size > 0.0]
    lines += ["", "  limits"]
    lines += [_limit_line(limit) for limit in evaluation["limits"]]
    return [*lines, f"    memory holds: {', '.join(memory)}"]


def _limit_line(limit: dict[str, Any]) -> str:
    used, available = _shown(limit["used"], limit["unit"]), _shown(limit["available"], limit["unit"])
    share = limit["used"] / limit["available"] if limit["available"] else float("inf")
    mark = "  BROKEN" if not limit["kept"] else "  binds" if share >= 0.95 else ""
    return f"    {limit['name']:<{_LABEL - 6}}{used:>11} of {available:<11}  {share:6.1%}  {_bar(min(share, 1.0), framed=True)}{mark}"


def _rival_lines(result: Result) -> list[str]:
    return [line for rival in result.rivals for line in _rival(rival, result)]


def _rival(rival: Rival, result: Result) -> list[str]:
    if rival.value is None or rival.design is None or result.value is None:
        return [f"  {rival.name + ' rule':<{_LABEL}}finds no design: {rival.note}"]
    distance = rival.value / result.value - 1.0
    words = "; ".join([*_hardware_words(rival.design)[1:], rival.design["words"]])
    against = "finds the same value" if distance == 0.0 else f"{distance:.1%} above the optimum"
    return [f"  {rival.name + ' rule':<{_LABEL}}{rival.value:.5g} {result.instance['unit']}, {against}", f"  {'':<{_LABEL}}{words}"]


def _space_lines(result: Result) -> list[str]:
    space = result.space
    if space is None:
        return []
    near = [f"{_count(space.within_1_percent)} designs within 1 %", f"{_count(space.within_5_percent)} within 5 %"]
    ties = "no other design ties" if space.ties == 1 else f"{_count(space.ties - 1)} other designs tie"
    return [f"  {'near the optimum':<{_LABEL}}{ties}, {', '.join(near)}"]


def _certificate(result: Result) -> list[str]:
    """The proof in a sentence."""
    checks = "; ".join(result.checks)
    if not result.proved or result.bound is None:
        return [f"  not proved ({result.engine}, {result.stopped}). Checked: {checks}."]
    unit = result.instance["unit"]
    return [f"  certificate: no design of the question is below {result.bound:.6g} {unit}, by {result.proved_by}.", f"  Checked: {checks}."]


def _no_design(result: Result) -> str:
    name = result.instance["name"]
    if result.status != "INFEASIBLE":
        return f"{name}: no design found ({result.engine}: {result.stopped})\n"
    lines = [f"{name}: no design of the question keeps every limit, proved in {result.seconds:.2g} s by {result.proved_by}", ""]
    lines += [_conflict(conflict) for conflict in sorted(result.conflicts, key=lambda item: -(item.least_share or 0.0))]
    if result.conflicts and all(conflict.kept_by for conflict in result.conflicts):
        lines.append("  each limit is kept by some design, but no design keeps them all")
    return "\n".join(lines) + "\n"


def _conflict(conflict: Conflict) -> str:
    if conflict.least_share is None:
        return f"  {conflict.limit}"
    if conflict.kept_by:
        return f"  {conflict.limit}: kept by {_count(conflict.kept_by)} designs"
    return f"  {conflict.limit}: no design keeps it; the least that any design needs is {conflict.least_share:.4g} times what there is"


def _time(seconds: float) -> str:
    return _shown(seconds, "time")


def _shown(value: float, dimension: str) -> str:
    """A quantity with four digits: more say nothing to a reader."""
    number, _, unit = format_quantity(value, dimension).partition(" ")
    return f"{float(number):.{_DIGITS}g} {unit}"


def _count(number: int) -> str:
    return f"{number:,}"


def _bar(share: float, *, framed: bool = False) -> str:
    eighths = round(share * _WIDTH * 8)
    bar = _FULL * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
    return f"|{bar:<{_WIDTH}}|" if framed else bar
