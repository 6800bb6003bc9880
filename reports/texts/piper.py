"""Stages as text: layers, replicas and devices of each, how busy and how full they are, how far the rules are, and the proof."""

from collections.abc import Sequence
from itertools import groupby

from crossopt.instances.files.units import format_quantity
from crossopt.solvers.stages.piper.answer import NamedStage, PiperResult

_WIDTH = 16


def piper_text(result: PiperResult) -> str:
    """The answer for the terminal."""
    lines = [f"{result.instance['name']}   {_headline(result)}", ""]
    if result.value is None:
        return "\n".join([*lines, *(f"  {reason}" for reason in result.reasons), *_notes(result)]).rstrip() + "\n"
    asked = result.instance
    without = f" · without {', '.join(asked['without'])}" if asked["without"] else ""
    bound = "" if result.bound is None else f"      bound {_time(result.bound)}, gap {result.gap:.2%}"
    lines += [
        f"  time a sample       {_time(result.value)}{bound}",
        f"  devices             {result.devices_used:,} of {asked['devices']:,}, {format_quantity(asked['memory'], 'bytes')} each"
        f" · {format_quantity(asked['bandwidth'], 'bandwidth')} · {asked['microbatches']:,} microbatches a batch{without}",
        "",
    ]
    lines += [line for number, stage in enumerate(result.stages, 1) for line in _stage(number, stage, result.value, asked["memory"])]
    lines += ["", *(_rival(rival.name, rival.value, rival.note, result.value) for rival in result.rivals), *_notes(result), ""]
    return "\n".join([*lines, _certificate(result)]) + "\n"


def _headline(result: PiperResult) -> str:
    time = f"{result.seconds:.2g} s" if result.seconds < 10.0 else f"{result.seconds:,.0f} s"
    if result.status == "INFEASIBLE":
        return f"no stages keep the limits, proved in {time} by {result.proved_by}"
    if result.value is None:
        return f"no stages found ({result.stopped})"
    layers = sum(len(stage.nodes) for stage in result.stages)
    stages = f"{len(result.stages)} stage{'s' * (len(result.stages) != 1)}"
    ended = f"proved in {time}" if result.proved else f"not proved: {result.stopped} after {time}"
    return f"{layers:,} layers in {stages}, {ended}"


def _stage(number: int, stage: NamedStage, value: float, memory: int) -> list[str]:
    load = stage.load
    bar = "█" * round(load.total / value * _WIDTH) if value else ""
    times = [f"compute {_time(load.compute)}"]
    times += [f"transfer {_time(load.transfer)}"] if load.transfer else []
    times += [f"exchange {_time(load.exchange)}"] if load.exchange else []
    full = f"{load.memory / memory:.0%} of the memory" if memory else "no memory"
    kept = f"{full} with {load.under_way} microbatch{'es' * (load.under_way != 1)}"
    degrees = f"data {stage.data:<4} tensor {stage.tensor:<3}"
    return [
        f"  stage {number:<4} {degrees}{_time(load.total):>12}  |{bar:<{_WIDTH}}|  {' + '.join(times)}",
        f"             {kept}",
        f"             {_ranges(stage.nodes)} · {_configurations(stage.configurations)}",
    ]


def _ranges(nodes: Sequence[str]) -> str:
    """Ids, runs of whole numbers as their ends."""
    numbers = sorted(int(name) for name in nodes if name.isascii() and name.isdecimal())
    runs = [list(run) for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])]
    ends = [str(run[0][1]) if len(run) == 1 else f"{run[0][1]}-{run[-1][1]}" for run in runs]
    words = [*ends, *(name for name in nodes if not (name.isascii() and name.isdecimal()))]
    return f"nodes {', '.join(words[:8])}{', ...' if len(words) > 8 else ''}"


def _configurations(names: Sequence[str]) -> str:
    counts = {name: names.count(name) for name in sorted(set(names))}
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _rival(name: str, value: float | None, note: str, best: float) -> str:
    if value is None:
        return f"  {name:<22}none: {note}"
    share = value / best - 1.0 if best else 0.0
    return f"  {name:<22}{_time(value)}, {'as good' if share < 1e-9 else f'{share:.1%} above the best'}"


def _notes(result: PiperResult) -> list[str]:
    return [f"  note: {note}" for note in result.notes]


def _certificate(result: PiperResult) -> str:
    if result.bound is None:
        return "  no proof: stages without a bound."
    words = f"no stages take less than {_time(result.bound)}, by {result.proved_by}"
    return f"  certificate: {words}; judged layer by layer on the graph of the file."


def _time(seconds: float) -> str:
    return format_quantity(seconds, "time")
