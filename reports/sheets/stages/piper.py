"""The sheet of the stages of a network, with replicas and splits."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from crossopt.instances.files.units import format_quantity
from crossopt.instances.stages.piper import PiperQuestion
from crossopt.reports.sheets.amounts import several
from crossopt.reports.sheets.sheet import Sheet, answer_sheet
from crossopt.reports.sheets.stages.staged import Pace, Stage, on_devices, with_stages
from crossopt.solvers.answer import Result
from crossopt.solvers.stages.piper.judge import NamedStage, PiperLoads, PiperPlan, StageLoad

_PACE = Pace(("compute", "transfer", "exchange"), "a sample")


def sheet(question: PiperQuestion, result: Result[PiperPlan, PiperLoads]) -> Sheet:
    """What is shown."""
    pairs = zip(result.answer.stages, result.details.loads, strict=True) if result.answer and result.details else ()
    stages = [
        Stage(
            label=f"stage {number}",
            runs=_runs(stage, load),
            work=(load.compute, load.transfer, load.exchange),
            total=load.total,
            memory=float(load.memory),
        )
        for number, (stage, load) in enumerate(pairs, 1)
    ]
    whole = answer_sheet(
        result,
        "plan",
        f"Which stages, replicas, splits and configurations of the layers of {question.name} make a sample quickest?",
        asks="time of a sample",
        summary=_text(result.answer),
        given=_given(question),
        notes=result.notes,
        judged="layer by layer on the graph of the file",
    )
    return with_stages(whole, result, stages, _PACE, float(question.memory), [_text(rival.answer) for rival in result.rivals])


def _given(question: PiperQuestion) -> tuple[tuple[str, str], ...]:
    offers = sum(len(options) for offer in question.graph.offers for options in offer.values())
    memory, bandwidth = format_quantity(question.memory, "bytes"), format_quantity(question.bandwidth, "bandwidth")
    return (
        ("network", f"{len(question.graph):,} layers, which offer {offers:,} configurations"),
        ("devices", f"{question.devices:,}, with {memory} and {bandwidth} each"),
        ("microbatches", f"{question.microbatches:,} in a batch"),
        *((("without", ", ".join(question.without)),) if question.without else ()),
    )


def _text(plan: PiperPlan | None) -> str:
    return on_devices(len(plan.stages), sum(stage.data * stage.tensor for stage in plan.stages)) if plan else ""


def _runs(stage: NamedStage, load: StageLoad) -> str:
    where = f"{several(stage.data, 'replica')} of {several(stage.tensor, 'device')}, microbatches under way: {load.under_way:,}"
    counted = ", ".join(f"{count:,} {name}" for name, count in sorted(Counter(stage.configurations).items()))
    return f"{where}; {several(len(stage.nodes), 'layer')}, {_ranges(stage.nodes)}: {counted}"


def _ranges(nodes: Sequence[str]) -> str:
    """Ids, runs of whole numbers as their ends."""
    numbers = sorted(int(name) for name in nodes if name.isascii() and name.isdecimal())
    runs = [list(run) for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])]
    ends = [str(run[0][1]) if len(run) == 1 else f"{run[0][1]}-{run[-1][1]}" for run in runs]
    words = [*ends, *(name for name in nodes if not (name.isascii() and name.isdecimal()))]
    return f"nodes {', '.join(words[:8])}{', ...' if len(words) > 8 else ''}"
