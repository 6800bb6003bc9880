"""A plan for a profile, and its judge: what every stage takes, recomputed node by node, and which rules it keeps."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import fsum, prod

from crossopt.instances.files.units import bytes_beyond
from crossopt.instances.stages.pipedream import MOST_DEVICES, PipelineQuestion
from crossopt.solvers.answer import Verdict

# A plan: its stages in the order of the data.


@dataclass(frozen=True, slots=True)
class Stage:
    """Nodes that run together, and on how many devices."""

    nodes: tuple[str, ...]
    group: tuple[int, ...]
    """Numbers of the stages of higher levels that it is in, the highest first; none where there is one level."""
    replicas: tuple[int, ...]
    """Of it in its group, and of its groups in theirs, innermost first."""


@dataclass(frozen=True, slots=True)
class PipedreamPlan:
    """All of them."""

    stages: tuple[Stage, ...]


# The judge of pipelines: what every stage takes, recomputed from the profile node by node, and which rules it keeps.
#
# It shares nothing with the search but the formulas, which `solvers.stages.pipedream.charges` says; sums are exactly rounded (`math.fsum`).


@dataclass(frozen=True, slots=True)
class StageLoad:
    """What one stage takes for one minibatch, in seconds, and what it keeps."""

    devices: int
    compute: float
    synchronise: float
    transfer: float
    total: float
    parameters: float
    memory: float | None
    """Bytes of one device; None where groups of devices leave it open, and by the charges of the public optimizer, which is wide of it."""


@dataclass(frozen=True, slots=True)
class PipedreamLoads:
    """What every stage takes, first stage first."""

    loads: tuple[StageLoad, ...]


@dataclass(frozen=True, slots=True)
class _Range:
    """A stage of some level: leaves from one number up to another, and its place among its neighbours."""

    start: int
    stop: int
    replicas: int
    before: int
    """Replicas of the stages of its parent before it."""
    later: int
    """Stages of its parent behind it."""

    @property
    def first(self) -> bool:
        return not self.before


def judge(question: PipelineQuestion, plan: PipedreamPlan) -> Verdict[PipedreamLoads]:
    """Loads, value and broken rules of a plan; a ValueError if it does not belong to the question."""
    stages = plan.stages
    rows = _rows(question, stages)
    levels = [_ranges(stages, level, len(question.levels)) for level in range(len(question.levels))]
    loads = tuple(_load(question, stages, rows, levels, leaf) for leaf in range(len(stages)))
    broken = (*_order(question, rows), *_unseen(question, rows), *_counts(question, levels), *_memory(question, rows, levels))
    return Verdict(max(load.total for load in loads), broken, PipedreamLoads(loads))


def _rows(question: PipelineQuestion, stages: Sequence[Stage]) -> list[list[int]]:
    """The rows of the profile in each stage."""
    number = {name: row for row, name in enumerate(question.profile.ids)}
    depth = len(question.levels)
    if not stages or any(not stage.nodes for stage in stages):
        raise ValueError("a plan has stages, and each has nodes")
    if any(len(stage.replicas) != depth or len(stage.group) != depth - 1 or not _replicas_possible(stage) for stage in stages):
        raise ValueError(f"a stage needs its replicas at each of {depth} levels, and its group")
    given = [name for stage in stages for name in stage.nodes]
    if wrong := [name for name in given if name not in number]:
        raise ValueError(f"node {wrong[0]} is not a node of the profile with a cost")
    if len(given) != len(number) or len(set(given)) != len(given):
        missing = next((name for name in number if name not in given), None)
        raise ValueError(f"node {missing} is in no stage" if missing else "a node is in two stages")
    return [[number[name] for name in stage.nodes] for stage in stages]


def _replicas_possible(stage: Stage) -> bool:
    """Whether its replicas are numbers that can be."""
    return min(stage.replicas) >= 1 and max(stage.replicas) <= MOST_DEVICES


def _ranges(stages: Sequence[Stage], level: int, depth: int) -> list[_Range]:
    """The stages of one level, by what of their groups' numbers tells them apart."""
    prefix = depth - 1 - level
    keys = [(stage.group[:prefix], stage.group[prefix] if level else leaf) for leaf, stage in enumerate(stages)]
    found = list[_Range]()
    for _, siblings in groupby(range(len(stages)), lambda leaf: keys[leaf][0]):
        parts = [list(leaves) for _, leaves in groupby(siblings, lambda leaf: keys[leaf][1])]
        before = 0
        for number, leaves in enumerate(parts):
            replicas = stages[leaves[0]].replicas[level]
            if any(stages[leaf].replicas[level] != replicas for leaf in leaves):
                raise ValueError("stages of one group have different replicas")
            if level and keys[leaves[0]][1] != number:
                raise ValueError("groups are counted from 0 in their order")
            found.append(_Range(leaves[0], leaves[-1] + 1, replicas, before, len(parts) - 1 - number))
            before += replicas
    return found


def _load(question: PipelineQuestion, stages: Sequence[Stage], rows: list[list[int]], levels: list[list[_Range]], leaf: int) -> StageLoad:
    profile = question.profile
    devices = prod(stages[leaf].replicas)
    compute = fsum(profile.seconds[rows[leaf]]) / devices
    total = busy = fsum(profile.seconds[rows[leaf]]) if question.compatible else compute
    moved = 0.0
    for level, ranges in enumerate(levels):
        here = next(part for part in ranges if part.start <= leaf < part.stop)
        parameters = fsum(float(profile.parameters[row]) for part in rows[here.start : here.stop] for row in part)
        ring = (here.replicas - 1) / here.replicas * parameters / question.levels[level].bandwidth
        if question.compatible:
            ring = 4.0 * (ring / question.levels[level - 1].members if here.first and level else ring)
            total, busy = (total + ring) / here.replicas, (busy + ring) / here.replicas
        else:
            total, busy = total + 2.0 * ring, busy + 2.0 * ring
        transfer = _transfer(question, rows, here, level, prod(stages[leaf].replicas[level + 1 :]))
        total, moved = max(total, transfer), max(moved, transfer)
    size = fsum(profile.parameters[rows[leaf]])
    memory = _bytes(question, rows, next(part for part in levels[0] if part.start == leaf), 0)
    return StageLoad(devices, compute, busy - compute, moved, total, size, None if question.compatible or len(levels) > 1 else memory)


def _transfer(question: PipelineQuestion, rows: list[list[int]], here: _Range, level: int, share: int) -> float:
    """The longer of what a stage takes in and hands on at its level."""
    if question.compression is None:
        return 0.0
    rate = question.compression * question.levels[level].bandwidth * here.replicas * (1 if question.compatible else share)
    goes = not here.first if question.compatible else here.later > 0
    came = 2.0 * _crossing(question, rows, here.start) / rate if not here.first else 0.0
    return max(came, 2.0 * _crossing(question, rows, here.stop) / rate if goes else 0.0)


def _crossing(question: PipelineQuestion, rows: list[list[int]], cut: int) -> float:
    """Bytes that cross a cut between stages; nothing crosses behind the last."""
    profile = question.profile
    inside = {row for part in rows[:cut] for row in part}
    if len(inside) == len(profile):
        return 0.0
    if not question.compatible:
        out = {start for start, end in profile.edges if start in inside and end not in inside}
        return fsum(float(profile.activation[row]) for row in out)
    last = inside - {start for start, end in profile.edges if end in inside}
    sources = set(last)
    for end in last:
        before = _before(question, end)
        sources |= {start for start, other in profile.edges if start in before and other not in before and other != end}
    return fsum(float(profile.activation[row]) for row in sources)


def _before(question: PipelineQuestion, node: int) -> set[int]:
    """All nodes from which one follows."""
    feeding: dict[int, list[int]] = defaultdict(list)
    for start, end in question.profile.edges:
        feeding[end].append(start)
    found, look = set[int](), [node]
    while look:
        new = set(feeding[look.pop()]) - found
        found |= new
        look += new
    return found


def _order(question: PipelineQuestion, rows: list[list[int]]) -> tuple[str, ...]:
    stage_of = {row: number for number, part in enumerate(rows) for row in part}
    back = [(start, end) for start, end in question.profile.edges if stage_of[start] > stage_of[end]]
    ids = question.profile.ids
    return tuple(f"node {ids[end]} runs before node {ids[start]}, whose output it takes" for start, end in back[:1])


def _unseen(question: PipelineQuestion, rows: list[list[int]]) -> tuple[str, ...]:
    """A cut that is none of the public optimizer's, which grows what lies before one from the first node along edges: it hangs together."""
    if not question.compatible:
        return ()
    stage_of = {row: number for number, part in enumerate(rows) for row in part}
    inside: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for start, end in question.profile.edges:
        inside[max(stage_of[start], stage_of[end])].append((start, end))
    tree, apart = list(range(len(stage_of))), 0
    for number, part in enumerate(rows):
        apart += len(part)
        for start, end in inside[number]:
            start_root, end_root = _root(tree, start), _root(tree, end)
            apart -= start_root != end_root
            tree[start_root] = end_root
        if apart > 1 or stage_of[0] > number:
            before = f"the {number + 1:,} stages before" if number else "stage 1 before"
            first = question.profile.ids[0]
            return (f"not all nodes of {before} a cut hang together with node {first} (--compatible cuts only where they do)",)
    return ()


def _root(tree: list[int], node: int) -> int:
    """The node that stands for all that hang together with one."""
    while tree[node] != node:
        tree[node] = node = tree[tree[node]]
    return node


def _counts(question: PipelineQuestion, levels: list[list[_Range]]) -> list[str]:
    """More members than there are, fewer than the public optimizer uses, or replicas where none may be."""
    broken = list[str]()
    for number, (level, ranges) in enumerate(zip(question.levels, levels, strict=True), 1):
        used = [part.before + part.replicas for part in ranges if not part.later]
        if max(used) > level.members:
            broken.append(f"level {number}: {max(used)} members are used, there are {level.members}")
        if question.compatible and min(used) < level.members:
            broken.append(f"level {number}: {min(used)} of {level.members} members are used (--compatible uses all)")
        if question.straight and any(part.replicas > 1 for part in ranges):
            broken.append(f"level {number}: a stage of a straight pipeline is replicated")
    return broken


def _memory(question: PipelineQuestion, rows: list[list[int]], levels: list[list[_Range]]) -> list[str]:
    if question.memory == float("inf"):
        return []
    needed = [_bytes(question, rows, part, level) for level, ranges in enumerate(levels) for part in ranges]
    most = max(needed)
    return [f"a stage keeps {bytes_beyond(most, question.memory, 'on a device of')}"] if most > question.memory else []


def _bytes(question: PipelineQuestion, rows: list[list[int]], here: _Range, level: int) -> float:
    """What one device of a stage keeps."""
    inside = [row for part in rows[here.start : here.stop] for row in part]
    parameters, activation = (fsum(column[inside]) for column in (question.profile.parameters, question.profile.activation))
    if question.compatible:
        behind = question.levels[level].members - here.before - here.replicas
        return float(-(-behind // here.replicas) * (activation + parameters))
    return (here.later + 1.0) * (parameters + activation / here.replicas)
