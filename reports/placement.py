"""A placement as text: how busy every device is or when it runs, how far the rules are, and the proof in one sentence."""

from instances.units import format_quantity
from solvers.placement.answer import PlacementResult
from solvers.placement.judge import Load, Run

_WIDTH = 24


def placement_text(result: PlacementResult) -> str:
    """The answer for the terminal."""
    name = result.instance["name"]
    lines = [f"{name}   {_headline(result)}", ""]
    if result.value is None:
        return "\n".join([*lines, *(f"  {reason}" for reason in result.reasons), *_notes(result)]).rstrip() + "\n"
    bound = "" if result.bound is None else f"      bound {result.bound:.7g} ms, gap {result.gap:.2%}"
    if result.instance["objective"] == "latency":
        lines += [f"  one sample          {result.value:.7g} ms{bound}", "", *_schedule(result, result.value)]
    else:
        lines += [f"  busiest device      {result.value:.7g} ms{bound}", ""]
        lines += [_load(load, result.value) for load in result.loads]
    lines += ["", *(_rival(rival.name, rival.value, rival.note, result.value) for rival in result.rivals), *_notes(result), ""]
    return "\n".join([*lines, _certificate(result)]) + "\n"


def _headline(result: PlacementResult) -> str:
    nodes = f"{len(result.placement or {}):,} nodes"
    time = f"{result.seconds:.2g} s" if result.seconds < 10.0 else f"{result.seconds:,.0f} s"
    if result.status == "INFEASIBLE":
        return f"no placement keeps the limits, proved in {time} by {result.proved_by}"
    if result.value is None:
        return f"no placement found ({result.stopped})"
    stopped = "nothing left to try" if result.stopped == "complete" else result.stopped
    ended = f"proved in {time} by {result.engine}" if result.proved else f"not proved: {stopped} after {time}"
    return f"{nodes} on {len(result.loads)} device{'s' * (len(result.loads) != 1)}, {ended}"


def _load(load: Load, value: float) -> str:
    bar = "█" * round(load.total / value * _WIDTH) if value else ""
    parts = f"compute {load.compute:.5g} + transfer {load.transfer:.4g} ms" if load.transfer else f"compute {load.compute:.5g} ms"
    memory = f" · {format_quantity(load.memory, 'bytes')}" if load.memory else ""
    return f"  {load.device:<16}{load.total:>10.5g} ms  |{bar:<{_WIDTH}}|  {load.nodes:,} nodes · {parts}{memory}"


def _schedule(result: PlacementResult, value: float) -> list[str]:
    """The pieces in the order in which they start, then what is on CPUs, and accelerators that are left idle."""
    several = len({run.device for run in result.runs}) < len(result.runs)
    lines = [_run(run, value, several) for run in sorted(result.runs, key=lambda run: (run.start, run.end))]
    memory = {load.device: load.memory for load in result.loads if load.nodes and load.device != "cpu"}
    held = ", ".join(f"{device.removeprefix('accelerator ')}: {format_quantity(size, 'bytes')}" for device, size in memory.items())
    cores = result.loads[-1]
    lines += [f"  {'cpu':<16}{cores.nodes:,} nodes · compute {cores.compute:.5g} ms on all cores together"] if cores.nodes else []
    lines += [f"  {'memory':<16}{held}"] if held else []
    idle = sum(not load.nodes for load in result.loads[:-1])
    return [*lines, f"  {'idle':<16}{idle} accelerator{'s' * (idle != 1)}"] if idle else lines


def _run(run: Run, value: float, several: bool) -> str:
    first, last = (round(moment / value * _WIDTH) if value else 0 for moment in (run.start, run.end))
    bar = " " * first + "█" * (last - first)
    name = f"{run.device}.{run.piece}" if several else run.device
    parts = f"in {run.taken_in:.4g} + compute {run.compute:.5g} + out {run.handed_out:.4g} ms"
    return f"  {name:<16}{run.start:>9.5g} to {run.end:>8.5g} ms  |{bar:<{_WIDTH}}|  {run.nodes:,} nodes · {parts}"


def _rival(name: str, value: float | None, note: str, best: float) -> str:
    if value is None:
        return f"  {name:<20}none: {note}"
    return f"  {name:<20}{value:.5g} ms, {value / best - 1.0:.1%} above the best" if best else f"  {name:<20}{value:.5g} ms"


def _notes(result: PlacementResult) -> list[str]:
    return [f"  note: {note}" for note in result.notes]


def _certificate(result: PlacementResult) -> str:
    if result.bound is None:
        return "  no proof: a placement without a bound."
    return (
        f"  certificate: no placement is below {result.bound:.7g} ms, by {result.proved_by}; judged node by node on the graph of the file."
    )
