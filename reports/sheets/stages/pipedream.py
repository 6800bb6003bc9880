"""The sheet of the stages of a profile."""

from math import prod

from crossopt.instances.files.units import format_quantity
from crossopt.instances.stages.pipedream import PipelineQuestion
from crossopt.reports.sheets.amounts import several
from crossopt.reports.sheets.sheet import Sheet, answer_sheet
from crossopt.reports.sheets.stages.staged import Pace, Stage, on_devices, with_stages
from crossopt.solvers.answer import Result
from crossopt.solvers.stages.pipedream.judge import PipedreamLoads, PipedreamPlan, StageLoad
from crossopt.solvers.stages.pipedream.judge import Stage as Nodes

_PACE = Pace(("compute", "sum of gradients"), "a minibatch", beside="transfers")
_OF_OTHERS = "with the cuts and charges of the public optimizer"


def sheet(question: PipelineQuestion, result: Result[PipedreamPlan, PipedreamLoads]) -> Sheet:
    """What is shown."""
    left_out = question.profile.left_out
    pairs = list(zip(result.answer.stages, result.details.loads, strict=True)) if result.answer and result.details else []
    grouped = len({stage.group for stage, _ in pairs}) > 1
    stages = [
        Stage(
            label=f"stage {number} x {load.devices:,}",
            runs=_nodes(stage, load, grouped),
            work=(load.compute, load.synchronise),
            total=load.total,
            memory=load.memory,
            beside=load.transfer,
        )
        for number, (stage, load) in enumerate(pairs, 1)
    ]
    whole = answer_sheet(
        result,
        "plan",
        f"Which nodes of {question.name} form a stage, and on how many devices does each run, so that the slowest is fast?",
        asks="slowest stage",
        summary=_text(result.answer),
        given=_given(question),
        notes=(f"of no cost, inputs and unused outputs, {several(len(left_out), 'node')}: {_shortly(left_out)}",) if left_out else (),
        among=f" {_OF_OTHERS}" if question.compatible else "",
        judged="node by node on the profile of the file",
    )
    return with_stages(whole, result, stages, _PACE, question.memory, [_text(rival.answer) for rival in result.rivals])


def _given(question: PipelineQuestion) -> tuple[tuple[str, str], ...]:
    speeds = ", ".join(format_quantity(level.bandwidth, "bandwidth") for level in question.levels)
    return (
        ("profile", f"{len(question.profile.ids):,} nodes"),
        ("devices", " x ".join(f"{level.members:,}" for level in question.levels)),
        ("bandwidth of a member", speeds),
        ("memory of a device", "not limited" if question.memory == float("inf") else format_quantity(question.memory, "bytes")),
        *((("plans", f"{_OF_OTHERS} of PipeDream"),) if question.compatible else ()),
    )


def _text(plan: PipedreamPlan | None) -> str:
    return on_devices(len(plan.stages), sum(prod(stage.replicas) for stage in plan.stages)) if plan else ""


def _nodes(stage: Nodes, load: StageLoad, grouped: bool) -> str:
    """The nodes of a stage, with its group where there are several, and its parameters where its memory is open."""
    group = f" of group {'.'.join(str(place + 1) for place in stage.group)}" if grouped else ""
    kept = f", {format_quantity(load.parameters, 'bytes')} of parameters" if load.memory is None else ""
    return f"{several(len(stage.nodes), 'node')}{group}: {_shortly(stage.nodes)}{kept}"


def _shortly(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} to {names[-1]}"
