"""The question about the sends of a collective as the user writes it in YAML."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from crossopt.crossflow.fields import Bounds, Doc, Duration, Prose
from crossopt.instances.files.written import Written, short_repr

MOST_NPUS, MOST_CHUNKS, MOST_STEPS = 9, 8, 8
Spread = Literal["all_gather", "reduce_scatter", "broadcast"]
Layout = Literal["line", "ring", "mesh", "torus", "full"]


@dataclass(frozen=True, slots=True)
class LayoutSection:
    """Links of equal length between neighbours, in both directions."""

    shape: Annotated[Layout, Doc("topology: along one or two sides, open or closed, or fully connected")]
    size: Annotated[tuple[int, ...], Bounds(1, MOST_NPUS), Doc("number of NPUs along each side: one number, or two for a mesh or a torus")]


@dataclass(frozen=True, slots=True)
class LinkSection:
    """One link in one direction, NPUs by their numbers from 0."""

    from_: Annotated[int, Bounds(0, MOST_NPUS - 1), Doc("sending NPU")]
    to: Annotated[int, Bounds(0, MOST_NPUS - 1), Doc("receiving NPU")]
    steps: Annotated[int, Bounds(1, MOST_STEPS), Doc("steps that a chunk takes over the link")] = 1


@dataclass(frozen=True, slots=True)
class SynthesisFile:
    """Over which links does each chunk of a collective go, and when, so that it is done soonest?"""

    kind: Annotated[Literal["synthesis"], Doc("problem type")]
    layout: Annotated[LayoutSection | None, Doc("regular topology of the links")] = None
    links: Annotated[tuple[LinkSection, ...], Doc("every link, instead of `layout`")] = ()
    collective: Annotated[Spread, Doc("collective operation; an all-reduce is a reduce-scatter followed by an all-gather")] = "all_gather"
    root: Annotated[int | None, Bounds(0, MOST_NPUS - 1), Doc("source NPU of a broadcast; default: 0")] = None
    chunks: Annotated[int, Bounds(1, MOST_CHUNKS), Doc("number of chunks of the data of an NPU")] = 1
    step: Annotated[Duration | None, Doc("duration of one step, to show times in seconds")] = None
    deadline: Annotated[int | None, Bounds(1), Doc("largest number of steps")] = None
    name: Annotated[str | None, Doc("name of the question; default: the file's")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None


# From what is written to a question about sends: links, who has which chunk at first, and who needs it.
#
# A reduce-scatter is an all-gather of which everything is turned round: the links, and the order in time. So it is asked as one over turned
# links, where each NPU receives each chunk once: sums go up a tree as copies go down.

_UNREACHED = 1 << 20


@dataclass(frozen=True, slots=True)
class Link:
    """One direction; of a reduce-scatter turned round."""

    sender: int
    receiver: int
    steps: int


@dataclass(frozen=True, slots=True)
class SynthesisQuestion:
    """Over which links does each chunk go, and when?"""

    name: str
    file: SynthesisFile
    npus: int
    links: tuple[Link, ...]
    origins: tuple[int, ...]
    """Of every chunk the NPU that has it at first; all others need it."""
    distances: tuple[tuple[int, ...], ...]
    """Least steps from each NPU to each other."""
    document: dict[str, Any]

    __repr__ = short_repr

    @property
    def turned(self) -> bool:
        """Whether links and time run the other way round."""
        return self.file.collective == "reduce_scatter"


def size_of(question: SynthesisQuestion) -> str:
    """How large the question is, in words."""
    chunks = len(question.origins)
    return (
        f"{question.file.collective.replace('_', '-')} of {chunks} chunk{'' if chunks == 1 else 's'} "
        f"over {len(question.links)} links between {question.npus} NPUs"
    )


def read(written: Written) -> SynthesisQuestion:
    """The question; an InstanceError with every fault."""
    file = written.read_as(SynthesisFile)
    written.refuse(_faults(file))
    links = _links(file)
    npus = 1 + max(max(link.sender, link.receiver) for link in links)
    if file.collective == "reduce_scatter":
        links = tuple(Link(link.receiver, link.sender, link.steps) for link in links)
    distances = distances_of(npus, links)
    roots = (file.root or 0,) if file.collective == "broadcast" else tuple(range(npus))
    written.refuse(_unreached(file, npus, roots, distances))
    origins = tuple(root for root in roots for _ in range(file.chunks))
    return SynthesisQuestion(file.name or Path(written.source).stem, file, npus, links, origins, distances, written.document)


def distances_of(npus: int, links: tuple[Link, ...]) -> tuple[tuple[int, ...], ...]:
    """Least steps from each NPU to each other, by way of more and more of them (Floyd 1962)."""
    found = [[0 if source == target else _UNREACHED for target in range(npus)] for source in range(npus)]
    for link in links:
        found[link.sender][link.receiver] = min(found[link.sender][link.receiver], link.steps)
    for way, source, target in product(range(npus), repeat=3):
        found[source][target] = min(found[source][target], found[source][way] + found[way][target])
    return tuple(map(tuple, found))


def _links(file: SynthesisFile) -> tuple[Link, ...]:
    """Those that are listed, or those of the layout, each in both directions."""
    if file.layout is None:
        return tuple(Link(link.from_, link.to, link.steps) for link in file.links)
    pairs = dict.fromkeys(pair for first, second in _neighbours(file.layout) for pair in ((first, second), (second, first)))
    return tuple(Link(first, second, 1) for first, second in pairs)


def _neighbours(layout: LayoutSection) -> Iterator[tuple[int, int]]:
    """Pairs of NPUs, row by row; a side of two that is closed has one link in each direction."""
    rows, columns = layout.size if len(layout.size) > 1 else (1, layout.size[0])
    if layout.shape == "full":
        yield from ((lower, upper) for upper in range(columns) for lower in range(upper))
        return
    closed = layout.shape in ("ring", "torus")
    for row, column in product(range(rows), range(columns)):
        here = row * columns + column
        if column + 1 < columns or (closed and columns > 1):
            yield here, row * columns + (column + 1) % columns
        if row + 1 < rows or (closed and rows > 1):
            yield here, (row + 1) % rows * columns + column


def _faults(file: SynthesisFile) -> Iterator[tuple[str, str]]:
    """What no single value shows, as far as links can be made of it."""
    if (file.layout is None) == (not file.links):
        yield "links", "a layout or links are needed, and not both"
    if file.layout is not None:
        sides = 2 if file.layout.shape in ("mesh", "torus") else 1
        npus = file.layout.size[0] * (file.layout.size[-1] if len(file.layout.size) > 1 else 1) if file.layout.size else 0
        if len(file.layout.size) != sides:
            yield "layout.size", f"a {file.layout.shape} has {sides} side{'s' if sides > 1 else ''} (give as many numbers)"
        elif not 2 <= npus <= MOST_NPUS:
            yield "layout.size", f"these are {npus} NPUs, 2 to {MOST_NPUS} are needed, because all schedules are enumerated"
    if file.root is not None and file.collective != "broadcast":
        yield "root", "only a broadcast has a root (take it out, or ask for a broadcast)"
    pairs = [(link.from_, link.to) for link in file.links]
    for index, (sender, receiver) in enumerate(pairs):
        if sender == receiver:
            yield f"links[{index}].to", f"NPU {sender} needs no link to itself (take it out)"
        elif (sender, receiver) in pairs[:index]:
            yield f"links[{index}]", f"there is a link from {sender} to {receiver} already (take one of them out)"


def _unreached(file: SynthesisFile, npus: int, roots: tuple[int, ...], distances: tuple[tuple[int, ...], ...]) -> Iterator[tuple[str, str]]:
    """NPUs that some chunk never comes to."""
    if roots[-1] >= npus:
        yield "root", f"there is no NPU {roots[-1]} (there are {npus}, counted from 0)"
        return
    for root, npu in product(roots, range(npus)):
        if distances[root][npu] >= _UNREACHED:
            sender, receiver = (npu, root) if file.collective == "reduce_scatter" else (root, npu)
            yield ("links" if file.layout is None else "layout"), f"no links lead from NPU {sender} to NPU {receiver} (add some)"
            return
