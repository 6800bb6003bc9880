"""The question about the sends of a collective as the user writes it in YAML."""

from dataclasses import dataclass
from typing import Annotated, Literal

from crossopt.crossflow.fields import Bounds, Doc, Duration, Prose

MOST_NPUS, MOST_CHUNKS, MOST_STEPS = 9, 8, 8
Spread = Literal["all_gather", "reduce_scatter", "broadcast"]
Layout = Literal["line", "ring", "mesh", "torus", "full"]


@dataclass(frozen=True, slots=True)
class LayoutSection:
    """Links of equal length between neighbours, in both directions."""

    shape: Annotated[Layout, Doc("how NPUs are joined: along one or two sides, open or closed, or each with each")]
    size: Annotated[tuple[int, ...], Bounds(1, MOST_NPUS), Doc("NPUs along each side: one number, or two of a mesh or a torus")]


@dataclass(frozen=True, slots=True)
class LinkSection:
    """One link in one direction, NPUs by their numbers from 0."""

    from_: Annotated[int, Bounds(0, MOST_NPUS - 1), Doc("the NPU that sends")]
    to: Annotated[int, Bounds(0, MOST_NPUS - 1), Doc("the NPU that receives")]
    steps: Annotated[int, Bounds(1, MOST_STEPS), Doc("how long a chunk takes over it")] = 1


@dataclass(frozen=True, slots=True)
class SynthesisFile:
    """Over which links does each chunk of a collective go, and when, so that it is done soonest?"""

    kind: Annotated[Literal["synthesis"], Doc("the kind of question")]
    layout: Annotated[LayoutSection | None, Doc("links between neighbours")] = None
    links: Annotated[tuple[LinkSection, ...], Doc("instead of a layout: every link")] = ()
    collective: Annotated[Spread, Doc("what is exchanged; an all-reduce is a reduce-scatter and then an all-gather")] = "all_gather"
    root: Annotated[int | None, Bounds(0, MOST_NPUS - 1), Doc("of a broadcast: the NPU that has the data; 0 where nothing is said")] = None
    chunks: Annotated[int, Bounds(1, MOST_CHUNKS), Doc("into how many the data of an NPU is cut")] = 1
    step: Annotated[Duration | None, Doc("how long a chunk takes over a link of one step, to tell times in seconds")] = None
    deadline: Annotated[int | None, Bounds(1), Doc("the most steps that it may take")] = None
    name: Annotated[str | None, Doc("of the question; the file's where nothing is said")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None
