"""Strategies as text: what the reductions left, cost, bound, memory at its peak, and the proof in one sentence."""

from collections.abc import Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING

from crossopt.instances.files.units import format_quantity
from crossopt.instances.sharding.extent import Extent
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.reports.texts.design import wrapped
from crossopt.solvers.proofs import Reductions, Steps
from crossopt.solvers.sharding.answer import IN_FLOATS, WHOLE, Answer, Chosen, Meaning
from crossopt.solvers.sharding.comparison import Row

if TYPE_CHECKING:
    from crossopt.reports.pages.shell import Page
    from crossopt.reports.tables.digest import Digest

_COLUMNS = ("nodes", "strategies", "edges", "entries", "members", "times")


def text_of(question: ShardingQuestion, result: Answer) -> str:
    """The answer for the terminal."""
    del question
    lines = [f"{result.question['name']}   {_headline(result)}", ""]
    if isinstance(result.proof, Steps):
        lines += [*_table(result.proof.reductions), ""]
    if result.value is None or result.details is None:
        return "\n".join([*lines, *(f"  {reason}" for reason in result.reasons), *_notes(result)]).rstrip() + "\n"
    unit = f" {result.question['unit']}".rstrip()
    bound = "" if result.bound is None else f"      bound {result.bound:,}{unit}, gap {_share(result.gap or 0.0)}"
    lines += [
        f"  cost                {result.value:,}{unit}{bound}",
        f"  memory at its peak  {_peak(result, result.details)}",
        *_notes(result),
        "",
    ]
    lines += [*_choices(result.details.choices), *_plans(result)]
    return "\n".join([*lines, *_certificate(result)]) + "\n"


def page_of(question: ShardingQuestion, result: Answer, data: object) -> "Page":
    """The answer as a page."""
    from crossopt.reports.pages.sharding import sharding_page  # noqa: PLC0415 - only pages need pictures

    return sharding_page(question, result, data)


def digest_of(question: ShardingQuestion, result: Answer) -> "Digest":
    """The answer as tables."""
    from crossopt.reports.pages.sharding import of_sharding  # noqa: PLC0415

    del question
    return of_sharding(result)


def comparison_text(result: Answer, rows: Sequence[Row]) -> str:
    """The answer and each rule beside it, as gaps to the bound."""
    unit = f" in {result.question['unit']}" if result.question["unit"] else ""
    lines = [f"{result.question['name']}: cost{unit}", "", f"  {'':<24}{'value':>20}{'above bound':>13}{'own bound':>20}{'seconds':>9}"]
    rows = (Row(f"crossopt ({result.engine})", result.value, result.bound, result.seconds, "; ".join(result.reasons[:1])), *rows)
    for row in rows:
        value, own = ("none" if figure is None else f"{figure:,}" for figure in (row.value, row.bound))
        above = "" if row.value is None or not result.bound else f"{row.value / result.bound - 1.0:,.2%}"
        seconds = "" if row.seconds is None else f"{row.seconds:.2f}"
        own = "" if row.bound is None else own
        lines.append(f"  {row.name:<24}{value:>20}{above:>13}{own:>20}{seconds:>9}{row.note and f'  {row.note}'}".rstrip())
    return "\n".join([*lines, "", *_notes(result), *_certificate(result)]) + "\n"


def _headline(result: Answer) -> str:
    time = f"{result.seconds:.2g} s" if result.seconds < 10.0 else f"{result.seconds:,.0f} s"
    if result.status == "INFEASIBLE":
        told = f"proved in {time} by" if result.proved_by in WHOLE else f"answered in {time} by the word of"
        return f"no choice keeps the rules, {told} {result.proved_by}"
    if result.value is None:
        return f"no choice found ({result.stopped} after {time})"
    stopped = "nothing left to try" if result.stopped == "complete" else result.stopped
    near = f"to {_share(result.gap)} " if result.gap and result.status != "OPTIMAL" else ""
    ended = f"proved {near}in {time} by {result.engine}" if result.proved else f"not proved: {stopped} after {time}"
    return f"{result.question['nodes']:,} nodes with {result.question['strategies']:,} strategies, {ended}"


def _table(reductions: Reductions) -> list[str]:
    """What there was to choose, what each kind of reduction took, and what was left."""
    width = max(len(step.name) for step in reductions.steps) + 2
    rows = [("before", _figures(reductions.before, ""), "")]
    rows += [(step.name, _figures(step.taken, "-"), f"{step.seconds:.2f} s") for step in reductions.steps if any(astuple(step.taken))]
    rows.append(("left", _figures(reductions.after, ""), f"{sum(step.seconds for step in reductions.steps):.2f} s"))
    head = f"  {'':<{width}}{''.join(f'{name:>12}' for name in _COLUMNS)}"
    lines = (f"  {name:<{width}}{''.join(f'{figure:>12}' for figure in figures)}{time:>9}" for name, figures, time in rows)
    return [head, *(line.rstrip() for line in lines)]


def _figures(extent: Extent, sign: str) -> list[str]:
    """Figures of a row; what a reduction took has a minus, what it added instead has a plus."""
    figures: list[int] = list(astuple(extent))
    if not sign:
        return [f"{figure:,}" for figure in figures]
    return ["" if not figure else f"{-figure:+,}" for figure in figures]


def _choices(choices: Sequence[Chosen]) -> list[str]:
    """What the strategies mean, the same operators of all layers in one row for each way."""
    if not choices:
        return []
    width = max(len(choice.operator) for choice in choices) + 2
    rows = [f"  {choice.operator:<{width}}{choice.count:>5}  {choice.way}" for choice in choices]
    return [f"  {'':<{width}}{'':>5}  along each axis of the mesh", *rows, ""]


_PLANS = 5
"""So many are listed."""


def _plans(result: Answer) -> list[str]:
    """Megatron-LM's best plans beside the answer."""
    fitting = [plan for plan in result.rivals if plan.value is not None]
    lines = [
        f"  {plan.value:>20,}  {plan.value / result.value - 1.0:>7.2%} above  {plan.name}"
        for plan in fitting[:_PLANS]
        if plan.value is not None and result.value
    ]
    large = len(result.rivals) - len(fitting)
    kept = f"  {large} more do not fit the memory" if large else ""
    return [f"  Megatron-LM's plans on this mesh ({len(fitting)} fit)", *lines, *([kept] if kept else []), ""] if result.rivals else []


def _peak(result: Answer, said: Meaning) -> str:
    limit = result.question["limit"]
    if limit is None:
        return f"{_bytes(said.peak)} at time {said.peak_time}, without a limit"
    share = f" ({said.peak / limit:.2%})" if limit else ""
    return f"{said.peak:,} of {limit:,} bytes{share} at time {said.peak_time}"


def _bytes(figure: int) -> str:
    return format_quantity(float(figure), "bytes")


def _share(gap: float | None) -> str:
    """A share that does not look like none where there is one."""
    figure = gap or 0.0
    return f"{figure:.2%}" if not figure or figure >= 5e-5 else f"{figure:.1e}"


def _notes(result: Answer) -> list[str]:
    return [f"  note: {note}" for note in result.notes]


def _certificate(result: Answer) -> list[str]:
    if result.value is None:
        return wrapped("  ", f"{_headline(result)}.")
    label = "certificate" if result.bound is not None else "no proof"
    return wrapped("  ", f"{label}: {certificate_sentence(result)}")


def certificate_sentence(result: Answer) -> str:
    """What is proved, by whom."""
    if result.bound is None:
        return "these are strategies without a bound, and better ones may exist."
    judged = "judged on every node and edge"
    sure = result.proof.certificate.bound if isinstance(result.proof, Steps) and result.proof.certificate else None
    own = "" if sure is None or sure == result.bound else f"; {sure:,} of it is proved by prices and messages in whole numbers"
    solver = "" if result.proved_by in WHOLE else "the word of "
    floats = ", in floating point and lowered by a millionth at least" if result.proved_by.startswith(IN_FLOATS) else ""
    return f"no choice costs less than {result.bound:,}, by {solver}{result.proved_by}{floats}{own}; {judged}."
