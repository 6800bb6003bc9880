"""A plan for a chain as text: what was chosen, what every stage takes, how far other plans are, and the proof in one sentence."""

from itertools import groupby
from typing import TYPE_CHECKING

from crossopt.instances.files.units import format_quantity
from crossopt.instances.stages.chain import ChainQuestion
from crossopt.solvers.answer import Result, Rival
from crossopt.solvers.stages.chain.judge import ChainLoad, ChainLoads
from crossopt.solvers.stages.chain.plan import ChainPlan

if TYPE_CHECKING:
    from crossopt.reports.pages.shell import Page
    from crossopt.reports.tables.digest import Digest

_WIDTH = 24


Answer = Result[ChainPlan, ChainLoads]


def text_of(question: ChainQuestion, result: Answer) -> str:
    """The answer for the terminal."""
    lines = [f"{question.name}   {_headline(question, result)}", ""]
    if result.value is None or result.answer is None or result.details is None:
        return "\n".join([*lines, *(f"  {reason}" for reason in result.reasons)]).rstrip() + "\n"
    bound = "" if result.bound is None else f"      bound {result.bound:.7g} s, gap {result.gap:.2%}"
    lines += [f"  plan                {_words(result.answer)}", f"  time of a batch     {result.value:.7g} s{bound}", ""]
    slowest = max(load.total for load in result.details.loads)
    lines += [_stages(list(loads), slowest, question.file.memory) for _, loads in groupby(result.details.loads, _look)]
    lines += ["", *(_rival(rival, result.value) for rival in result.rivals)]
    if question.file.profile is not None:
        lines.append("  note: layers are the nodes of the profile in one order; where it branches, another order may be better")
    if result.bound is None:
        return "\n".join([*lines, "", "  no proof: a plan without a bound."]) + "\n"
    proof = f"no plan is below {result.bound:.7g} s, by {result.proved_by}; judged layer by layer."
    return "\n".join([*lines, "", f"  certificate: {proof}"]) + "\n"


def page_of(question: ChainQuestion, result: Answer, data: object) -> "Page":
    """The answer as a page."""
    from crossopt.reports.facts.stages import staged_chain  # noqa: PLC0415 - only pages need pictures
    from crossopt.reports.pages.stages import stages_page  # noqa: PLC0415

    return stages_page(result, staged_chain(question, result), data)


def digest_of(question: ChainQuestion, result: Answer) -> "Digest":
    """The answer as tables."""
    from crossopt.reports.facts.stages import staged_chain  # noqa: PLC0415
    from crossopt.reports.tables.digest import of_stages  # noqa: PLC0415

    return of_stages(result, staged_chain(question, result), [(one.name, one.value, one.note) for one in result.rivals])


def _headline(question: ChainQuestion, result: Answer) -> str:
    time = f"{result.seconds:.2g} s" if result.seconds < 10.0 else f"{result.seconds:,.0f} s"
    if result.status == "INFEASIBLE":
        return f"no plan keeps the memory, proved in {time} by {result.proved_by}"
    if result.answer is None:
        return f"no plan found ({result.stopped})"
    used = result.answer.width * result.answer.data * len(result.answer.stages)
    ended = f"proved in {time}" if result.proved else f"not proved: {result.stopped} after {time}"
    count = len(question.layers)
    return f"{count:,} layer{'s' * (count != 1)} on {used:,} of {question.file.devices:,} devices, {ended}"


def _words(plan: ChainPlan) -> str:
    parts = [f"{len(plan.stages)} stage{'s' * (len(plan.stages) != 1)}", f"data {plan.data}", f"width {plan.width}"]
    parts += [f"{plan.microbatch} microbatches as one"] if plan.microbatch > 1 else []
    return " · ".join([*parts, "no recompute" if plan.recompute == "none" else "full recompute"])


def _look(load: ChainLoad) -> tuple[int, str]:
    """Stages that differ in memory alone are told in one line."""
    return load.layers, f"{load.total:.5g}"


def _stages(loads: list[ChainLoad], slowest: float, memory: float) -> str:
    """One line of stages that take the same time, with the one that keeps the most."""
    load, most = loads[0], max(load.memory for load in loads)
    bar = "█" * round(load.total / slowest * _WIDTH) if slowest else ""
    several = f"{len(loads)} x " if len(loads) > 1 else ""
    layers = f"{several}{load.layers} layer{'s' * (load.layers != 1)}"
    parts = f"compute {load.compute * 1e3:.5g} + transfer {load.transfer * 1e3:.4g} ms"
    kept = f"{format_quantity(most, 'bytes')} ({most / memory:.0%})" if memory else format_quantity(most, "bytes")
    return f"  {layers:<18}{load.total * 1e3:>10.5g} ms  |{bar:<{_WIDTH}}|  {parts} · {kept}"


def _rival(rival: Rival[ChainPlan], best: float) -> str:
    if rival.value is None or rival.answer is None:
        return f"  {rival.name:<20}none: {rival.note}"
    above = f", {rival.value / best - 1.0:.1%} above the best" if best else ""
    return f"  {rival.name:<20}{rival.value:.5g} s{above}: {_words(rival.answer)}"
