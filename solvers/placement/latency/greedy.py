"""The usual rule: fill one accelerator after the other along the data, the rest on CPUs."""

from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.solvers.placement.latency.flow import CPU, Flow


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
