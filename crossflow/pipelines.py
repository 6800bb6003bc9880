"""Tokens through pipelines over unequal nodes: the greatest flow from the source to the sink, in whole numbers.

A node that holds the layers [first, last) passes at most its rate. The source feeds nodes that hold the first layer, nodes that hold the
last one feed the sink, and a node that ends at layer b feeds nodes that begin there. With partial inference (Helix, arXiv:2406.01566) it
also feeds nodes that hold layer b further inside, which compute only what comes from b on. A link carries at most its rate.
"""

from collections import deque
from collections.abc import Iterator, Sequence

from crossopt.crossflow.records import dataclass

SOURCE, SINK = -1, -2
"""Ends of links beside the numbers of nodes."""


@dataclass(frozen=True, slots=True)
class Links:
    """Most tokens in a time from the source to each node, between nodes, and to the sink; 0 where there is no link."""

    source: tuple[int, ...]
    between: tuple[tuple[int, ...], ...]
    """By the node that sends, then by the one that receives."""
    sink: tuple[int, ...]

    def rate(self, sender: int, receiver: int) -> int:
        """Of one link."""
        return self.source[receiver] if sender == SOURCE else self.sink[sender] if receiver == SINK else self.between[sender][receiver]


@dataclass(frozen=True, slots=True)
class Stage:
    """A node with the layers [first, last) that it holds, and the most tokens that it passes."""

    node: int
    first: int
    last: int
    rate: int


@dataclass(frozen=True, slots=True)
class Flow:
    """A greatest flow, and a smallest cut that proves it."""

    value: int
    passed: tuple[tuple[int, int, int], ...]
    """Sender, receiver, and tokens of each link that carries any."""
    nodes: tuple[int, ...]
    """Nodes of the cut, each at its rate."""
    links: tuple[tuple[int, int], ...]
    """Links of the cut, each at its rate."""


def chained(stages: Sequence[Stage], layers: int, links: Links, partial: bool) -> Iterator[tuple[int, int, int]]:
    """Sender, receiver and rate of all links that may carry tokens."""
    starts: dict[int, list[Stage]] = {}
    for stage in stages:
        for layer in range(stage.first, stage.last if partial else stage.first + 1):
            starts.setdefault(layer, []).append(stage)
    for stage in stages:
        if stage.first == 0 and links.source[stage.node]:
            yield SOURCE, stage.node, links.source[stage.node]
        if stage.last == layers and links.sink[stage.node]:
            yield stage.node, SINK, links.sink[stage.node]
        row = links.between[stage.node]
        for receiver in starts.get(stage.last, ()):
            if row[receiver.node]:
                yield stage.node, receiver.node, row[receiver.node]


def greatest_flow(stages: Sequence[Stage], layers: int, links: Links, partial: bool = False) -> Flow:
    """The most tokens that a placement passes; its links in the order of the stages."""
    enter = {SOURCE: 0, SINK: 1, **{stage.node: 2 + 2 * place for place, stage in enumerate(stages)}}
    leave = {SOURCE: 0, **{stage.node: 3 + 2 * place for place, stage in enumerate(stages)}}
    pairs = [*chained(stages, layers, links, partial)]
    arcs = [(leave[sender], enter[receiver], rate) for sender, receiver, rate in pairs]
    arcs += [(enter[stage.node], leave[stage.node], stage.rate) for stage in stages]
    graph = _Residual(2 + 2 * len(stages), arcs)
    value = graph.fill()
    near = graph.reached()
    cut_nodes = tuple(stage.node for stage in stages if near[enter[stage.node]] >= 0 > near[leave[stage.node]])
    cut_links = tuple((sender, receiver) for sender, receiver, _ in pairs if near[leave[sender]] >= 0 > near[enter[receiver]])
    passed = [(sender, receiver, graph.room[2 * place + 1]) for place, (sender, receiver, _) in enumerate(pairs)]
    return Flow(value, tuple(link for link in passed if link[2]), cut_nodes, cut_links)


class _Residual:
    """What is left of the arcs, each with its reverse behind it (Dinitz 1970); vertex 0 is the source, 1 the sink."""

    def __init__(self, vertices: int, arcs: Sequence[tuple[int, int, int]]) -> None:
        self.heads, self.room = list[int](), list[int]()
        self.leaving: list[list[int]] = [[] for _ in range(vertices)]
        for tail, head, rate in arcs:
            for start, end, room in ((tail, head, rate), (head, tail, 0)):
                self.leaving[start].append(len(self.heads))
                self.heads.append(end)
                self.room.append(room)

    def fill(self) -> int:
        """Push all that can be pushed."""
        total = 0
        while (levels := self.reached())[1] >= 0:
            turns = [0] * len(levels)
            while path := self._path(levels, turns):
                least = min(self.room[arc] for arc in path)
                total += least
                for arc in path:
                    self.room[arc] -= least
                    self.room[arc ^ 1] += least
        return total

    def reached(self) -> list[int]:
        """Number of arcs from the source to each vertex; -1 where nothing can be pushed."""
        levels = [-1] * len(self.leaving)
        levels[0], waiting = 0, deque([0])
        while waiting:
            vertex = waiting.popleft()
            for arc in self.leaving[vertex]:
                if self.room[arc] and levels[self.heads[arc]] < 0:
                    levels[self.heads[arc]] = levels[vertex] + 1
                    waiting.append(self.heads[arc])
        return levels

    def _path(self, levels: list[int], turns: list[int]) -> list[int]:
        """Arcs of a shortest path that are not full; none where there is no more."""
        path, vertex = list[int](), 0
        while vertex != 1:
            if turns[vertex] == len(self.leaving[vertex]):
                if not path:
                    return []
                vertex = self.heads[path.pop() ^ 1]
                turns[vertex] += 1
                continue
            arc = self.leaving[vertex][turns[vertex]]
            if self.room[arc] and levels[self.heads[arc]] == levels[vertex] + 1:
                path.append(arc)
                vertex = self.heads[arc]
            else:
                turns[vertex] += 1
        return path
