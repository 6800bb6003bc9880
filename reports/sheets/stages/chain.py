"""The sheet of a chain of layers."""

from crossopt.instances.files.units import format_quantity
from crossopt.instances.stages.chain import ChainQuestion
from crossopt.reports.sheets.sheet import Sheet, answer_sheet
from crossopt.reports.sheets.stages.staged import Pace, Stage, on_devices, with_stages
from crossopt.solvers.answer import Result
from crossopt.solvers.stages.chain.judge import ChainLoads, ChainPlan

_PACE = Pace(("compute", "transfer that nothing hides"), "a microbatch")
_BRANCHES = "layers are the nodes of the profile in one order; where it branches, another order may be better"


def sheet(question: ChainQuestion, result: Result[ChainPlan, ChainLoads]) -> Sheet:
    """What is shown."""
    file = question.file
    each = f"{format_quantity(file.memory, 'bytes')} and {format_quantity(file.bandwidth, 'bandwidth')}"
    stages = [
        Stage(
            label=f"stage {number}",
            runs=f"layers {load.first + 1:,} to {load.first + load.layers:,}",
            work=(load.compute, load.transfer),
            total=load.total,
            memory=load.memory,
        )
        for number, load in enumerate(result.details.loads if result.details else (), 1)
    ]
    whole = answer_sheet(
        result,
        "plan",
        f"Which stages, replicas, width and recomputation make a batch of {question.name} quickest?",
        asks="time of a batch",
        summary=_text(result.answer),
        given=(
            ("chain", f"{len(question.layers):,} layers, {file.microbatches:,} microbatches in a batch"),
            ("devices", f"{file.devices:,}, with {each} each"),
            ("schedule", "the pipeline runs empty after a batch" if file.schedule == "flush" else "it never runs empty (two versions)"),
        ),
        notes=(_BRANCHES,) if file.profile else (),
        judged="layer by layer",
    )
    return with_stages(whole, result, stages, _PACE, file.memory, [_text(rival.answer) for rival in result.rivals])


def _text(plan: ChainPlan | None) -> str:
    if plan is None:
        return ""
    merged = f", {plan.microbatch} microbatches as one" if plan.microbatch > 1 else ""
    again = "no recompute" if plan.recompute == "none" else "full recompute"
    used = on_devices(len(plan.stages), plan.width * plan.data * len(plan.stages))
    return f"{used}, data {plan.data:,}, width {plan.width:,}{merged}, {again}"
