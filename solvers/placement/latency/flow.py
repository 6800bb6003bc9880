"""A graph made ready for searches: blocks that stay together, who takes whose output, how soon a sample is through, and greedy filling."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crossopt.crossflow.arrays import Ints
from crossopt.formulation.placement.blocks import Blocks, blocks_of
from crossopt.instances.placement.question import PlacementQuestion
from crossopt.solvers.answer import Baseline
from crossopt.solvers.placement.answer import Placement, baseline_of

CPU = -1
_BELOW = 1.0 - 1e-12
"""Share of a memory that is filled where sums of sizes are rounded."""


@dataclass(frozen=True, slots=True, eq=False)
class Flow:
    """Plain lists over the rows of a graph, and its blocks in an order in which all data flow forward."""

    blocks: Blocks
    rows: list[list[int]]
    """Of each block."""
    after: list[list[int]]
    """Who takes the output of each row."""
    accelerator: Sequence[float]
    cpu: Sequence[float]
    transfer: Sequence[float]
    accelerators: int
    pieces: int
    """That one accelerator runs at most."""
    memory: float
    """What may be filled by sums of floats without breaking the memory."""

    @property
    def slots(self) -> int:
        """Pieces of all accelerators: slot s is piece s % pieces of accelerator s // pieces."""
        return self.accelerators * self.pieces


def flow_of(question: PlacementQuestion) -> Flow:
    """The question for a search; all edges carry data that must have arrived, including those of a backward pass."""
    graph = question.graph
    blocks = blocks_of(replace(graph, backward=np.zeros(len(graph), bool)), staged=True)
    rows: list[list[int]] = [[] for _ in range(len(blocks))]
    for row, block in enumerate(blocks.block_of.tolist()):
        rows[block].append(row)
    after: list[list[int]] = [[] for _ in range(len(graph))]
    for start, end in zip(graph.source.tolist(), graph.target.tolist(), strict=True):
        after[start].append(end)
    integral = bool((graph.size == np.floor(graph.size)).all()) and float(graph.size.sum()) < 2.0**53
    return Flow(
        blocks=blocks,
        rows=rows,
        after=[sorted(set(ends)) for ends in after],
        accelerator=graph.accelerator_time.tolist(),
        cpu=graph.cpu_time.tolist(),
        transfer=graph.transfer.tolist(),
        accelerators=question.accelerators,
        pieces=min(question.pieces, len(graph)),
        memory=question.memory if integral else question.memory * _BELOW,
    )


def replayed(flow: Flow, slot_of: list[int]) -> float:
    """When a sample is through, for the slot of every block; infinite where pieces wait for each other in a circle."""
    return timed(flow, [slot_of[block] for block in flow.blocks.block_of.tolist()])[0]


def timed(flow: Flow, slot: list[int]) -> tuple[float, list[float]]:
    """When a sample is through, for the slot of every row, and when each row is done; infinite where pieces wait for each other in a
    circle."""
    slots, count = flow.slots, len(slot)
    step = [slots + row if slot_of_row == CPU else slot_of_row for row, slot_of_row in enumerate(slot)]
    lasts, after = [0.0] * (slots + count), [[] for _ in range(slots + count)]  # type: list[float], list[list[int]]
    waiting = [0] * (slots + count)
    for row, here in enumerate(step):
        lasts[here] += flow.cpu[row] if here >= slots else flow.accelerator[row]
        beyond = {step[other] for other in flow.after[row]} - {here}
        if not beyond:
            continue
        for other in beyond:
            waiting[other] += 1
            if other < slots:
                lasts[other] += flow.transfer[row]
        after[here] += beyond
        if here < slots:
            lasts[here] += flow.transfer[row]
    for slot_before in range(slots - 1):
        if (slot_before + 1) % flow.pieces:
            after[slot_before].append(slot_before + 1)
            waiting[slot_before + 1] += 1
    starts, done = [0.0] * (slots + count), 0
    free = [here for here in {*step, *range(slots)} if not waiting[here]]
    while free:
        here = free.pop()
        done += 1
        end = starts[here] + lasts[here]
        for other in after[here]:
            starts[other] = max(starts[other], end)
            waiting[other] -= 1
            if not waiting[other]:
                free.append(other)
    if done < len({*step, *range(slots)}):
        return float("inf"), []
    ends = [starts[here] + lasts[here] for here in step]
    return max(ends), ends


def placed(flow: Flow, slot_of: list[int]) -> tuple[Ints, Ints]:
    """The device and the piece of every row, from the slot of every block."""
    return rows_placed(flow, [slot_of[block] for block in flow.blocks.block_of.tolist()])


def rows_placed(flow: Flow, slots: list[int]) -> tuple[Ints, Ints]:
    """The device and the piece of every row, from the slot of every row."""
    slot = np.array(slots, np.int64)
    device = np.where(slot == CPU, flow.accelerators, slot // flow.pieces)
    return device, np.where(slot == CPU, 0, slot % flow.pieces)


def tidy(flow: Flow, slots: list[int]) -> list[int]:
    """The slots of the rows, with accelerators numbered by the ends of their first pieces, and pieces from the first slot on."""
    done = {slot: end for slot, end in zip(slots, timed(flow, slots)[1], strict=True) if slot != CPU}
    accelerators: dict[int, int] = {}
    pieces: dict[int, list[int]] = {}
    for slot in sorted(done, key=lambda number: (done[number], number)):
        accelerator = accelerators.setdefault(slot // flow.pieces, len(accelerators))
        pieces.setdefault(accelerator, []).append(slot)
    names = {slot: accelerator * flow.pieces + index for accelerator, places in pieces.items() for index, slot in enumerate(sorted(places))}
    return [CPU if slot == CPU else names[slot] for slot in slots]


# The usual rule: fill one accelerator after the other along the data, the rest on CPUs.


def all_on_cpus(question: PlacementQuestion, flow: Flow) -> list[int]:
    """No accelerator runs anything."""
    del question
    return [CPU] * len(flow.blocks)


def greedy(question: PlacementQuestion, flow: Flow) -> list[int]:
    """The slot of each block: along one depth-first order the first accelerator until a block does not fit, then the next, ...

    Blocks that no accelerator runs stay on CPUs. So do blocks after the last accelerator is full.
    """
    slot_of, accelerator, used = [CPU] * len(flow.blocks), 0, 0.0
    for block in depth_first(question, flow):
        size = float(flow.blocks.size[block])
        if flow.blocks.accelerator_time[block] == float("inf") or size > flow.memory:
            continue
        if used + size > flow.memory:
            accelerator, used = accelerator + 1, 0.0
        if accelerator >= flow.accelerators:
            break
        slot_of[block], used = accelerator * flow.pieces, used + size
    return slot_of


def depth_first(question: PlacementQuestion, flow: Flow) -> list[int]:
    """The blocks in reverse order of leaving them in a depth-first walk, begun at each block in the order of its least id."""
    ids = question.graph.ids
    names = [min((isinstance(ids[row], str), ids[row]) for row in rows) for rows in flow.rows]
    after: list[dict[int, None]] = [{} for _ in flow.rows]
    for start, end in zip(question.graph.source.tolist(), question.graph.target.tolist(), strict=True):
        after[flow.blocks.block_of[start]][int(flow.blocks.block_of[end])] = None
    seen, left = [False] * len(after), list[int]()
    for first in sorted(range(len(after)), key=lambda block: names[block]):
        stack = [] if seen[first] else [(first, iter(after[first]))]
        seen[first] = True
        while stack:
            following = next((other for other in stack[-1][1] if not seen[other]), None)
            if following is None:
                left.append(stack.pop()[0])
            else:
                seen[following] = True
                stack.append((following, iter(after[following])))
    return left[::-1]


# Rules that take no search, which a check carries out again.

Rule = Callable[[PlacementQuestion, Blocks], Ints | None]


def one_device(question: PlacementQuestion, blocks: Blocks) -> Ints | None:
    """Everything on the first accelerator."""
    del blocks
    return np.zeros(len(question.graph), np.int64) if question.accelerators else None


def equal_stages(question: PlacementQuestion, blocks: Blocks) -> Ints | None:
    """Along the order of the graph as many blocks to a stage as make its work an equal share."""
    if not question.accelerators or not np.isfinite(blocks.accelerator_time).all():
        return None
    total = float(blocks.accelerator_time.sum())
    middle = np.cumsum(blocks.accelerator_time) - blocks.accelerator_time / 2.0
    stage = np.minimum((middle / max(total, 1e-300) * question.accelerators).astype(np.int64), question.accelerators - 1)
    return np.asarray(np.maximum.accumulate(stage)[blocks.block_of])


BY_RULE: dict[str, Rule] = {"one device": one_device, "equal stages": equal_stages}
LATENCY_BY_RULE: dict[str, Callable[[PlacementQuestion, Flow], list[int]]] = {"all on cpus": all_on_cpus, "greedy": greedy}


def rules_of_placement(question: PlacementQuestion) -> tuple[Baseline[Placement], ...]:
    """The placement of every such rule."""
    if question.problem == "throughput":
        blocks = blocks_of(question.graph, staged=True)
        return tuple(baseline_of(question, name, rule(question, blocks)) for name, rule in BY_RULE.items())
    return latency_rules(question, flow_of(question))


def latency_rules(question: PlacementQuestion, flow: Flow) -> tuple[Baseline[Placement], ...]:
    """All on CPUs, and one accelerator filled after the other."""
    return tuple(baseline_of(question, name, *placed(flow, rule(question, flow))) for name, rule in LATENCY_BY_RULE.items())
