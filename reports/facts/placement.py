"""What a report needs of a placement beside its result: the question in words, and the graph with the device of every node."""

from collections.abc import Sequence
from dataclasses import dataclass

from crossopt.instances.files.units import format_quantity
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.solvers.answer import Rival
from crossopt.solvers.placement.answer import Placement, devices_in, judged
from crossopt.solvers.placement.family import Answer


@dataclass(frozen=True, slots=True)
class Placed:
    """The graph of a placement as plain data; nodes by their rows."""

    sentence: str
    terms: tuple[tuple[str, str], ...]
    devices: tuple[str, ...]
    device_of: tuple[int, ...]
    backward: tuple[bool, ...]
    arcs: tuple[tuple[int, int], ...]
    moved: tuple[float, ...]
    """Milliseconds to move the output of each node."""
    overlapped: bool
    memory: float


_ORDERS = {
    "stages": "devices form stages that all data follow",
    "convex": "no data leave a device and come back",
    "no": "any operators on any device",
}


def placed(question: PlacementQuestion, result: Answer) -> Placed:
    """The facts of a result that was checked."""
    graph = question.graph
    device_of = () if result.answer is None else tuple(devices_in(question, result.answer.devices).tolist())
    return Placed(
        sentence=_sentence(question),
        terms=_terms(question),
        devices=question.devices,
        device_of=device_of,
        backward=tuple(graph.backward.tolist()),
        arcs=tuple(sorted(set(zip(graph.source.tolist(), graph.target.tolist(), strict=True)))),
        moved=tuple(graph.transfer.tolist()),
        overlapped=question.communication == "overlapped",
        memory=question.memory,
    )


def beside(question: PlacementQuestion, rivals: Sequence[Rival[Placement]]) -> tuple[Rival[Placement], ...]:
    """Rivals with the value also of those whose placement breaks a rule, which is no answer but a figure to look at."""
    latency = question.problem == "latency"
    return tuple(one if latency or one.answer is None or one.value is not None else judged(question, one) for one in rivals)


def _sentence(question: PlacementQuestion) -> str:
    count = question.accelerators
    where = f"{count:,} accelerator{'s' * (count != 1)}"
    if question.cpus and question.problem == "throughput":
        where += f" and {question.cpus:,} CPU{'s' * (question.cpus != 1)}"
    aim = "one sample is through soonest" if question.problem == "latency" else "the busiest device is least busy"
    return f"Where does each of the {len(question.graph):,} operators of {question.name} run, on {where}, so that {aim}?"


def _terms(question: PlacementQuestion) -> tuple[tuple[str, str], ...]:
    graph = question.graph
    backward = int(graph.backward.sum())
    parts = f", {backward:,} of them backward" if backward else ""
    memory = "not limited" if question.memory == float("inf") else format_quantity(question.memory, "bytes")
    rows = [("graph", f"{len(graph):,} operators{parts}, {len(graph.source):,} edges"), ("memory of an accelerator", memory)]
    if question.problem == "latency":
        pieces = f"{question.pieces:,} piece{'s' * (question.pieces != 1)} at the most, one after another"
        return (*rows, ("an accelerator runs", pieces))
    transfers = "behind the work" if question.communication == "overlapped" else "in a device's own time"
    return (*rows, ("order", _ORDERS[question.contiguity]), ("transfers", transfers))
