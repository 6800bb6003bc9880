"""A pipeline as text: what every stage does and how long it takes, how far the rules are, and the proof in one sentence."""

from crossopt.instances.files.units import format_quantity
from crossopt.solvers.stages.pipedream.answer import PipelineResult
from crossopt.solvers.stages.pipedream.judge import StageLoad
from crossopt.solvers.stages.pipedream.plan import Stage

_WIDTH = 24


def pipeline_text(result: PipelineResult) -> str:
    """The answer for the terminal."""
    lines = [f"{result.instance['name']}   {_headline(result)}", ""]
    if result.value is None:
        return "\n".join([*lines, *(f"  {reason}" for reason in result.reasons)]).rstrip() + "\n"
    bound = "" if result.bound is None else f"      bound {result.bound * 1e3:.7g} ms, gap {result.gap:.2%}"
    lines += [f"  slowest stage       {result.value * 1e3:.7g} ms a minibatch{bound}", ""]
    several = len({stage.group for stage in result.stages}) > 1
    for number, (stage, load) in enumerate(zip(result.stages, result.loads, strict=True), 1):
        lines += _stage(number, stage, load, result.value, several)
    lines += ["", *(_rival(rival.name, rival.value, rival.note, result.value) for rival in result.rivals)]
    if result.left_out:
        lines.append(f"  note: of no cost, inputs and unused outputs, {_count(len(result.left_out), 'node')}: {_shortly(result.left_out)}")
    return "\n".join([*lines, "", *_certificate(result)]) + "\n"


def _headline(result: PipelineResult) -> str:
    time = f"{result.seconds:.2g} s" if result.seconds < 10.0 else f"{result.seconds:,.0f} s"
    if result.status == "INFEASIBLE":
        return f"no plan keeps the limits, proved in {time} by {result.proved_by}"
    if result.value is None:
        return f"no plan found ({result.stopped})"
    nodes, devices = sum(len(stage.nodes) for stage in result.stages), sum(load.devices for load in result.loads)
    ended = f"proved in {time}" if result.proved else f"not proved: {result.stopped} after {time}"
    return f"{_count(nodes, 'node')} in {_count(len(result.stages), 'stage')} on {_count(devices, 'device')}, {ended}"


def _stage(number: int, stage: Stage, load: StageLoad, value: float, grouped: bool) -> list[str]:
    bar = "█" * round(load.total / value * _WIDTH) if value else ""
    parts = [f"compute {load.compute * 1e3:.5g}"]
    parts += [f"sum of gradients {load.synchronise * 1e3:.4g}"] if load.synchronise else []
    beside = f" · transfers beside it {load.transfer * 1e3:.4g} ms" if load.transfer else ""
    kept = f" · {format_quantity(load.parameters if load.memory is None else load.memory, 'bytes')}"
    group = f" of group {'.'.join(str(place + 1) for place in stage.group)}" if grouped else ""
    nodes = f"{_count(len(stage.nodes), 'node')}{group}: {_shortly(stage.nodes)}"
    return [
        f"  stage {number:<4}x {load.devices:<5}{load.total * 1e3:>10.5g} ms  |{bar:<{_WIDTH}}|  {nodes}",
        f"  {'':<17}{' + '.join(parts)} ms{beside}{kept}{' of parameters' if load.memory is None else ' a device'}",
    ]


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _shortly(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} to {names[-1]}"


def _rival(name: str, value: float | None, note: str, best: float) -> str:
    if value is None:
        return f"  {name:<20}none: {note}"
    return f"  {name:<20}{value * 1e3:.5g} ms, {value / best - 1.0:.1%} above the best" if best else f"  {name:<20}{value * 1e3:.5g} ms"


def _certificate(result: PipelineResult) -> list[str]:
    if result.bound is None:
        return ["  no proof: a plan without a bound."]
    compatible = result.instance["compatible"]
    cuts, charges = (" with cuts of the public optimizer", " by its charges") if compatible else ("", "")
    return [
        f"  certificate: no plan{cuts} is below {result.bound * 1e3:.7g} ms{charges}, by {result.proved_by};",
        "  judged node by node on the profile of the file.",
    ]
