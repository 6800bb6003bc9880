"""A placement as text: how busy every device is or when it runs, how far the rules are, and the proof in one sentence."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crossopt.instances.files.units import format_quantity
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.reports.facts.placement import beside, placed
from crossopt.solvers.answer import Rival
from crossopt.solvers.placement.answer import Placement
from crossopt.solvers.placement.family import Answer
from crossopt.solvers.placement.judge import Load, PlacementLoads, Run

if TYPE_CHECKING:
    from crossopt.reports.pages.shell import Page
    from crossopt.reports.tables.digest import Digest

_WIDTH = 24


def text_of(question: PlacementQuestion, result: Answer) -> str:
    """The answer for the terminal."""
    lines = [f"{question.name}   {_headline(result)}", ""]
    if result.value is None or result.details is None:
        return "\n".join([*lines, *(f"  {reason}" for reason in result.reasons), *_notes(question)]).rstrip() + "\n"
    bound = "" if result.bound is None else f"      bound {result.bound:.7g} ms, gap {result.gap:.2%}"
    if question.problem == "latency":
        lines += [f"  one sample          {result.value:.7g} ms{bound}", "", *_schedule(result.details, result.value)]
    else:
        lines += [f"  busiest device      {result.value:.7g} ms{bound}", ""]
        lines += [_load(load, result.value) for load in result.details.loads]
    lines += ["", *(_rival(rival, result.value) for rival in beside(question, result.rivals)), *_notes(question), ""]
    return "\n".join([*lines, _certificate(result)]) + "\n"


def _headline(result: Answer) -> str:
    time = f"{result.seconds:.2g} s" if result.seconds < 10.0 else f"{result.seconds:,.0f} s"
    if result.status == "INFEASIBLE":
        return f"no placement keeps the limits, proved in {time} by {result.proved_by}"
    if result.answer is None or result.details is None:
        return f"no placement found ({result.stopped})"
    nodes, devices = _counted(len(result.answer.devices), "node"), _counted(len(result.details.loads), "device")
    stopped = "nothing left to try" if result.stopped == "complete" else result.stopped
    near = f"to {result.gap:.2%} " if result.gap and result.status != "OPTIMAL" else ""
    ended = f"proved {near}in {time} by {result.engine}" if result.proved else f"not proved: {stopped} after {time}"
    return f"{nodes} on {devices}, {ended}"


def page_of(question: PlacementQuestion, result: Answer, data: object) -> "Page":
    """The answer as a page."""
    from crossopt.reports.pages.placement import placement_page  # noqa: PLC0415 - only pages need pictures

    return placement_page(question, result, placed(question, result), data)


def digest_of(question: PlacementQuestion, result: Answer) -> "Digest":
    """The answer as tables."""
    from crossopt.reports.tables.digest import of_placement  # noqa: PLC0415

    return of_placement(result, [(one.name, one.value, one.note) for one in beside(question, result.rivals)])


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _load(load: Load, value: float) -> str:
    bar = "█" * round(load.total / value * _WIDTH) if value else ""
    parts = f"compute {load.compute:.5g} + transfer {load.transfer:.4g} ms" if load.transfer else f"compute {load.compute:.5g} ms"
    memory = f" · {format_quantity(load.memory, 'bytes')}" if load.memory else ""
    return f"  {load.device:<16}{load.total:>10.5g} ms  |{bar:<{_WIDTH}}|  {_counted(load.nodes, 'node')} · {parts}{memory}"


def _rival(rival: Rival[Placement], best: float) -> str:
    if rival.value is None:
        return f"  {rival.name:<20}none: {rival.note}"
    above = f", {rival.value / best - 1.0:.1%} above the best" if best and not rival.note else ""
    return f"  {rival.name:<20}{rival.value:.5g} ms{above}{rival.note and f', but {rival.note}'}"


def comparison_text(question: PlacementQuestion, result: Answer, rows: Sequence[Rival[Placement]]) -> str:
    """The answer and each rule beside it, as gaps to the bound."""
    counts = ((question.accelerators, "accelerator"), (question.cpus, "CPU"))
    devices = " and ".join(_counted(number, word) for number, word in counts if number)
    what = "one sample in ms" if question.problem == "latency" else f"busiest device in ms, --contiguous {question.contiguity}"
    lines = [f"{question.name}: {what}, {devices}", ""]
    lines.append(f"  {'':<24}{'value':>10}{'above bound':>13}{'seconds':>9}")
    own: Rival[Placement] = Rival(f"crossopt ({result.engine})", result.value, None, "; ".join(result.reasons[:1]), result.seconds)
    lines += [_compared(row, result.bound) for row in (own, *rows)]
    lines += ["", *_notes(question), _certificate(result)]
    return "\n".join(lines) + "\n"


def _compared(row: Rival[Placement], bound: float | None) -> str:
    value = "none" if row.value is None else f"{row.value:.5g}"
    above = "" if row.value is None or not bound or row.note else f"{row.value / bound - 1.0:.2%}"
    return f"  {row.name:<24}{value:>10}{above:>13}{row.seconds:>9.2f}{row.note and f'  {row.note}'}"


def _schedule(details: PlacementLoads, value: float) -> list[str]:
    """The pieces in the order in which they start, then what is on CPUs, and accelerators that are left idle."""
    several = len({run.device for run in details.runs}) < len(details.runs)
    lines = [_run(run, value, several) for run in sorted(details.runs, key=lambda run: (run.start, run.end))]
    memory = {load.device: load.memory for load in details.loads if load.nodes and load.device != "cpu"}
    held = ", ".join(f"{device.removeprefix('accelerator ')}: {format_quantity(size, 'bytes')}" for device, size in memory.items())
    cores = details.loads[-1]
    lines += [f"  {'cpu':<16}{_counted(cores.nodes, 'node')} · compute {cores.compute:.5g} ms on all cores together"] if cores.nodes else []
    lines += [f"  {'memory':<16}{held}"] if held else []
    idle = sum(not load.nodes for load in details.loads[:-1])
    return [*lines, f"  {'idle':<16}{_counted(idle, 'accelerator')}"] if idle else lines


def _run(run: Run, value: float, several: bool) -> str:
    first, last = (round(moment / value * _WIDTH) if value else 0 for moment in (run.start, run.end))
    bar = " " * first + "█" * (last - first)
    name = f"{run.device}.{run.piece}" if several else run.device
    parts = f"in {run.taken_in:.4g} + compute {run.compute:.5g} + out {run.handed_out:.4g} ms"
    return f"  {name:<16}{run.start:>9.5g} to {run.end:>8.5g} ms  |{bar:<{_WIDTH}}|  {_counted(run.nodes, 'node')} · {parts}"


def _notes(question: PlacementQuestion) -> list[str]:
    return [f"  note: {note}" for note in question.notes]


def _certificate(result: Answer) -> str:
    if result.bound is None:
        return "  no proof: a placement without a bound."
    return (
        f"  certificate: no placement is below {result.bound:.7g} ms, by {result.proved_by}; judged node by node on the graph of the file."
    )
