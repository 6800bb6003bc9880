"""How plans in stages are shown, of whichever kind: as text, as a page, as tables. The text says what was chosen, what every stage takes,
how far other plans are, and the proof in one sentence."""

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from crossopt.instances.files.units import format_quantity
from crossopt.reports.facts.stages import Staged, StageFacts, staged
from crossopt.reports.texts.design import seconds_of
from crossopt.solvers.answer import Result, Rival

if TYPE_CHECKING:
    from crossopt.reports.pages.shell import Page
    from crossopt.reports.tables.digest import Digest

_WIDTH = 24
Answer = Result[Any, Any]


def page_of(question: Any, result: Answer, data: object) -> "Page":  # noqa: ANN401 - of any of these kinds
    """The answer as a page."""
    from crossopt.reports.pages.stages import stages_page  # noqa: PLC0415 - only pages need pictures

    return stages_page(result, staged(question, result), data)


def digest_of(question: Any, result: Answer) -> "Digest":  # noqa: ANN401
    """The answer as tables."""
    from crossopt.reports.tables.digest import of_stages  # noqa: PLC0415

    return of_stages(result, staged(question, result))


def text_of(question: Any, result: Answer) -> str:  # noqa: ANN401
    """The answer for the terminal."""
    facts = staged(question, result)
    notes = [f"  note: {note}" for note in facts.notes]
    lines = [f"{facts.name}   {_headline(result, facts)}", ""]
    if result.value is None:
        return "\n".join([*lines, *(f"  {reason}" for reason in result.reasons), *notes]).rstrip() + "\n"
    bound = "" if result.bound is None else f"      bound {result.bound:.7g} s, gap {result.gap:.2%}"
    lines += [f"  {name:<22}{words}" for name, words in ((facts.value, f"{result.value:.7g} s{bound}"), *facts.terms)]
    lines.append("")
    for _, alike in groupby(enumerate(facts.stages, 1), _look):
        lines += _stage(list(alike), facts)
    lines += ["", *(_rival(*pair, result.value) for pair in zip(result.rivals, facts.rivals, strict=True)), *notes, ""]
    if result.bound is None:
        return "\n".join([*lines, "  no proof: a plan without a bound."]) + "\n"
    proof = f"no plan{facts.among} is below {result.bound:.7g} s, by {result.proved_by}"
    return "\n".join([*lines, f"  certificate: {proof};", f"  judged anew, {facts.judged}."]) + "\n"


def _headline(result: Answer, facts: Staged) -> str:
    time = seconds_of(result.seconds)
    if result.value is None:
        return f"no plan keeps the limits, proved in {time} by {result.proved_by}" if result.proved else f"no plan found ({result.stopped})"
    return f"{facts.plan}, {f'proved in {time}' if result.proved else f'not proved: {result.stopped} after {time}'}"


def _look(stage: tuple[int, StageFacts]) -> tuple[str | int, str]:
    """Stages in a row that differ in memory alone are told together."""
    return stage[1].size or stage[0], f"{stage[1].total:.5g}"


def _stage(alike: Sequence[tuple[int, StageFacts]], facts: Staged) -> list[str]:
    """Stages that take the same time, with the memory of the one that keeps the most."""
    (number, stage), slowest = alike[0], max(one.total for one in facts.stages)
    bar = "█" * round(stage.total / slowest * _WIDTH) if slowest else ""
    named = zip(facts.work, stage.work, strict=True)
    parts = [f"{name} {seconds * 1e3:.5g}" for place, (name, seconds) in enumerate(named) if seconds or not place]
    beside = f" · {facts.beside} beside it {stage.beside * 1e3:.5g} ms" if stage.beside else ""
    label, words = (stage.label, stage.words) if len(alike) == 1 else (f"stages {number} to {alike[-1][0]}", f"each {stage.size}")
    kept = [one.memory for _, one in alike if one.memory is not None]
    return [
        f"  {label:<18}{stage.total * 1e3:>10.5g} ms  |{bar:<{_WIDTH}}|  {words}",
        *([f"  {'':<18}{stage.holds}"] if stage.holds else []),
        f"  {'':<18}{' + '.join(parts)} ms{beside}{f' · {_bytes(max(kept), facts.capacity)}' if kept else ''}",
    ]


def _bytes(memory: float, capacity: float) -> str:
    share = f" ({memory / capacity:.0%})" if 0.0 < capacity < float("inf") else ""
    return f"{format_quantity(memory, 'bytes')} a device{share}"


def _rival(rival: Rival[Any], plan: str, best: float) -> str:
    if rival.value is None:
        return f"  {rival.name:<22}none: {rival.note}"
    above = f", {rival.value / best - 1.0:.1%} above the best" if best else ""
    return f"  {rival.name:<22}{rival.value:.6g} s{above}: {plan}"
