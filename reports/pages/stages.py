"""A page about a plan in stages: what every stage takes, what it keeps, and how far other plans are."""

from typing import Any

from crossopt.reports.drawing.bars import Row, bars
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.drawing.timeline import Segment, Track, timeline
from crossopt.reports.facts.stages import Staged, StageFacts
from crossopt.reports.pages.shell import Page, figure, heading, listing, paragraph, proof_box, section, swatch_row, table, tiles
from crossopt.reports.texts.design import bound_amount, seconds_of, shown, time_of
from crossopt.solvers.answer import Result

_SHOWN = 64
"""Stages in the picture, the first ones; the table has all."""
Answer = Result[Any, Any]


def stages_page(result: Answer, facts: Staged, data: object) -> Page:
    """The page; `data` is the result as it was read, for re-use."""
    head = (heading(facts.name, facts.sentence), _verdict(result))
    question = section("The question", table(("", "given"), facts.terms))
    if result.value is None:
        return Page(facts.name, (*head, section("Why", listing(result.reasons)), question), data)
    sections = (
        *head,
        _tiles(result, facts),
        question,
        _stages(facts),
        _rivals(result, result.value),
        section("Notes", listing(facts.notes)),
    )
    return Page(facts.name, (*sections, _proof(result)), data)


def _words(result: Answer) -> str:
    if result.value is None:
        return f"No plan keeps the limits, by {result.proved_by}." if result.proved else f"No plan was found ({result.stopped})."
    if result.bound is None:
        return "This is a plan without a bound: a better one may exist."
    if result.proved:
        figure = f"this one's {time_of(result.value)}" if result.bound == result.value else bound_amount(result.bound, "s")
        return f"No plan is below {figure}, by {result.proved_by}."
    return f"A better plan may exist, but none below {bound_amount(result.bound, 's')}, by {result.proved_by}."


def _verdict(result: Answer) -> str:
    label = "proved optimal" if result.status == "OPTIMAL" else f"proved within {result.gap_asked:.2%}" if result.proved else "not proved"
    if result.value is None:
        label = "proved: no plan" if result.proved else "no plan found"
    return proof_box(label, _words(result), result.proved)


def _tiles(result: Answer, facts: Staged) -> str:
    bound = "none" if result.bound is None else time_of(result.bound)
    found = [(facts.value, time_of(result.value or 0.0)), ("lower bound", bound)]
    found += [("gap", f"{result.gap:.2%}")] if result.gap is not None else []
    return tiles([*found, ("stages", f"{len(facts.stages):,}")]) + paragraph(facts.plan)


def _stages(facts: Staged) -> str:
    slowest = max(stage.total for stage in facts.stages)
    first_ones = facts.stages[:_SHOWN]
    tracks = [Track(stage.label, _segments(stage, bool(facts.beside)), f"{stage.total * 1e3:.5g} ms") for stage in first_ones]
    first = f"The slowest of {len(facts.stages):,} stages takes {time_of(slowest)} for {facts.pace}."
    beside = f" {facts.beside.capitalize()} run beside the work, in the lower lane." if facts.beside else ""
    left_out = f" The first {_SHOWN} stages are shown." if len(facts.stages) > _SHOWN else ""
    picture = timeline(Titles("stages", "What every stage takes", first), tracks, slowest * 1e3, f"ms for {facts.pace}", "the pace")
    rows = [
        (
            stage.label,
            stage.runs,
            *(f"{part * 1e3:.5g}" for part in stage.work),
            *_beside(stage, facts),
            f"{stage.total * 1e3:.5g}",
            _kept(stage, facts),
        )
        for stage in facts.stages
    ]
    heads = (
        "stage",
        "runs",
        *(f"{name} ms" for name in facts.work),
        *([f"{facts.beside} ms"] if facts.beside else []),
        "in all ms",
        "memory",
    )
    kinds = (*facts.work, *([facts.beside] if facts.beside else []))
    columns = table(heads, rows, numbers=range(2, len(heads)))
    return section("The stages", swatch_row(kinds), figure(picture, f"{first}{beside}{left_out}"), columns)


def _segments(stage: StageFacts, beside: bool) -> tuple[Segment, ...]:
    segments, at, lanes = list[Segment](), 0.0, 2 if beside else 1
    for place, part in enumerate(stage.work):
        segments.append(Segment(at * 1e3, (at + part) * 1e3, place, 0, lanes))
        at += part
    return (*segments, *([Segment(0.0, stage.beside * 1e3, len(stage.work), 1, lanes)] if beside else []))


def _beside(stage: StageFacts, facts: Staged) -> list[str]:
    return [f"{stage.beside * 1e3:.5g}"] if facts.beside else []


def _kept(stage: StageFacts, facts: Staged) -> str:
    if stage.memory is None:
        return "-"
    share = f" ({stage.memory / facts.capacity:.0%})" if 0.0 < facts.capacity < float("inf") else ""
    return f"{shown(stage.memory, 'bytes')}{share}"


def _rivals(result: Answer, value: float) -> str:
    if not result.rivals:
        return ""
    found = [(rival.name, rival.value) for rival in result.rivals if rival.value is not None]
    rows = [Row("this plan", value, time_of(value))]
    rows += [Row(name, other, f"{time_of(other)}{f', {other / value - 1.0:.1%} above' if value else ''}") for name, other in found]
    titles = Titles("rivals", "What other plans take", "; ".join(f"{row.label}: {row.shown}" for row in rows) + ".")
    picture = figure(bars(titles, rows, value if result.bound is None else result.bound, "bound" if result.bound is not None else ""))
    return section("Rivals", picture, listing([f"{rival.name}: {rival.note}" for rival in result.rivals if rival.note]))


def _proof(result: Answer) -> str:
    told = (
        "The plan was judged anew for this page. The bound is told as the result tells it; `crossopt check` says how far it is proved anew."
    )
    versions = ", ".join(f"{name} {version}" for name, version in sorted(result.versions.items()))
    made = f"Answered by the engine {result.engine} in {seconds_of(result.seconds)}{f', with {versions}' if versions else ''}."
    return section("How this is known", paragraph(_words(result)), paragraph(told), paragraph(made, "soft"))
