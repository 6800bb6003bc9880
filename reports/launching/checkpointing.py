"""A schedule of memory as regions of activation checkpoints of PyTorch, each with a policy for every operator of its forward pass.

PyTorch computes a region again at once, when the backward pass first needs an output of it that is not kept, and in their order all
operators that are not kept up to the last one that is needed. A region is what lies between two outputs that are kept and that alone lead
from what comes before to what comes behind. The header of the file states peak and time of that order, which may be above the schedule's.
"""

from pathlib import Path

from crossopt.crossflow.operator_graph import OperatorGraph
from crossopt.instances.errors import RefusedError
from crossopt.instances.files.units import rounded_quantity
from crossopt.instances.memory.question import MemoryQuestion
from crossopt.instances.operators.graph_file import graph_in, is_operators
from crossopt.instances.operators.torch_export import ATEN_NAMES
from crossopt.solvers.answer import Result
from crossopt.solvers.memory.judge import MemoryUse, Regions, Schedule, regions_of, replay


def policy_text(question: MemoryQuestion, result: Result[Schedule, MemoryUse]) -> str:
    """The regions as a Python file."""
    answer, use, graph = result.answer, result.details, question.graph
    if answer is None or use is None:
        return ""
    if not any(graph.backward):
        raise RefusedError("no node belongs to the backward pass, so that there is nothing to checkpoint (take --as schedule)")
    if min(answer.order) < 0:
        raise RefusedError("the schedule reads outputs back from the host, which policies do not say (take --as schedule)")
    regions = regions_of(graph, answer.order)
    classes = {node.name: node.operator for source in operators_of(question) for node in source.nodes}
    lines = [f'"""{_header(question, result, use, regions)}"""', "", *_IMPORTS]
    for number, (first, end) in enumerate(regions.spans):
        names = [graph.names[node] for node in regions.nodes[first:end]]
        lines.append(f"    [  # {number}: {names[0]} to {names[-1]}")
        for index, name in zip(range(first, end), names, strict=True):
            if classes and classes.get(name) not in ATEN_NAMES:  # is computed again, as what has no class
                continue
            lines.append(f"        ({name!r}, {classes.get(name, '')!r}, {'KEEP' if regions.kept[index] else 'AGAIN'}),")
        lines.append("    ],")
    counted = {item: names for item, names in ATEN_NAMES.items() if classes and item != "view"}
    lines += ["]", "CLASSES = {", *(f"    {item!r}: {names!r}," for item, names in sorted(counted.items())), "}"]
    return "\n".join([*lines, Path(__file__).with_name("regions.py.in").read_text(encoding="utf-8")])


def operators_of(question: MemoryQuestion) -> list[OperatorGraph]:
    """The graph of operators of a question, if it has one."""
    files: dict[str, str] = question.document.get("files", {})
    return [graph_in(text, name) for name, text in files.items() if is_operators(text)]


def excess_text(question: MemoryQuestion, peak: int) -> str:
    """A sentence where the regions, which PyTorch computes again at once, need more than the budget."""
    less = 2 * question.budget - peak
    remedy = f"a budget of {_bytes(less)} leaves as much room" if less > 0 else "give the question less memory"
    return "" if peak <= question.budget else f"This is above the budget of {_bytes(question.budget)}: {remedy}."


def peak_of(question: MemoryQuestion, schedule: Schedule) -> int:
    """Bytes that the regions of a schedule need."""
    return max(replay(question.graph, regions_of(question.graph, schedule.order).order).bytes_)


def _header(question: MemoryQuestion, result: Result[Schedule, MemoryUse], use: MemoryUse, regions: Regions) -> str:
    graph = question.graph
    found = replay(graph, regions.order)
    peak, extra = max(found.bytes_), sum(graph.times[node] for node in regions.order) - graph.total_time
    excess = excess_text(question, peak)
    over = f"\n{excess}\n" if excess else ""
    if not excess and result.bound is not None and question.file.objective == "extra_time":
        over = f"\nNo schedule that is asked for takes less than {result.bound:.6g} of repetitions.\n"
    return (
        f"Activation checkpoints of {question.name}: {len(regions.spans)} region{'s' * (len(regions.spans) != 1)}.\n\n"
        f"The schedule takes {_bytes(use.peak)} at most, and {use.extra_time:.6g} {question.unit or 'units'} of repetitions. PyTorch\n"
        f"computes each region again at once: {_bytes(peak)} at most, and {question.stated_time(extra):.6g} of repetitions.\n{over}\n"
        "    y = checkpoint(region, x, use_reentrant=False, context_fn=contexts(0))   # the operators of region 0\n"
    )


def _bytes(figure: float) -> str:
    return rounded_quantity(figure, "bytes", 5) if figure else "0 B"


_IMPORTS = (
    "from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts",
    "",
    "KEEP, AGAIN = CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_RECOMPUTE",
    "REGIONS = [",
)
