"""Every plan of a small profile, one after the other: the slow path beside the search, which shares no code with it."""

from collections.abc import Iterator

from crossopt.instances.stages.pipedream.question import PipelineQuestion
from crossopt.solvers.stages.pipedream.judge import judge
from crossopt.solvers.stages.pipedream.plan import PipedreamPlan, Stage

MOST_NODES, MOST_PLANS = 10, 3_000
_Nodes = frozenset[int]
_Part = tuple[_Nodes, _Nodes, int]


def least_of_all(question: PipelineQuestion) -> float | None:
    """The least value of any plan, infinite where none keeps the limits; None where there are too many."""
    if len(question.profile) > MOST_NODES:
        return None
    least = float("inf")
    for number, plan in enumerate(every_plan(question)):
        if number == MOST_PLANS:
            return None
        verdict = judge(question, plan)
        least = least if verdict.violations else min(least, verdict.value)
    return least


def every_plan(question: PipelineQuestion) -> Iterator[PipedreamPlan]:
    """All plans whose stages follow the data on the devices there are."""
    everything = frozenset(range(len(question.profile)))
    yield from map(PipedreamPlan, _inside(question, len(question.levels) - 1, frozenset(), everything, (), ()))


def _inside(
    question: PipelineQuestion, level: int, start: _Nodes, stop: _Nodes, group: tuple[int, ...], replicas: tuple[int, ...]
) -> Iterator[tuple[Stage, ...]]:
    """All plans of some nodes on the members of one level."""
    for parts in _parts(question, start, stop, question.levels[level].members):
        if not level:
            yield tuple(
                Stage(tuple(question.profile.ids[row] for row in sorted(nodes - before)), group, (count, *replicas))
                for before, nodes, count in parts
            )
            continue
        yield from _together(question, level, parts, group, replicas)


def _together(
    question: PipelineQuestion, level: int, parts: tuple[_Part, ...], group: tuple[int, ...], replicas: tuple[int, ...], number: int = 0
) -> Iterator[tuple[Stage, ...]]:
    """All plans of the parts from one on, each on a group of its own; one after the other, since few may be asked for of very many."""
    if number == len(parts):
        yield ()
        return
    before, nodes, count = parts[number]
    for plan in _inside(question, level - 1, before, nodes, (*group, number), (count, *replicas)):
        for rest in _together(question, level, parts, group, replicas, number + 1):
            yield (*plan, *rest)


def _parts(question: PipelineQuestion, start: _Nodes, stop: _Nodes, members: int) -> Iterator[tuple[_Part, ...]]:
    """All ways to cut some nodes, with the replicas of each part."""
    if start == stop:
        yield ()
        return
    if not members:
        return
    for end in _further(question, start, stop):
        for count in range(1, (1 if question.straight else members) + 1):
            if count <= members:
                for rest in _parts(question, end, stop, members - count):
                    yield ((start, end, count), *rest)


def _further(question: PipelineQuestion, start: _Nodes, stop: _Nodes) -> set[_Nodes]:
    """The sets between the two that hold all that their nodes need, without the smaller one."""
    found, last = set[_Nodes](), {start}
    while last:
        last = {
            nodes | {row}
            for nodes in last
            for row in stop - nodes
            if all(before in nodes for before, after in question.profile.edges if after == row)
        }
        found |= last
    return found
