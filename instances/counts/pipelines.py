"""Pipelines of one model over nodes of several kinds (`kind: pipelines`), in whole numbers.

A node v of kind q holds the layers [s, s + j), j up to what its memory holds, and passes T_q(j) tokens a second at most. Which node holds
which layers, so that most tokens a second flow from the source through nodes whose layers follow on each other to the sink?

    maximise    the flow from source to sink
    such that   of node v <= T_q(j),   of a link u -> v <= its rate,   and u -> v carries tokens only where v begins at the layer u ends at

With `partial`, v may begin before that layer, and computes the rest of its layers only. All rates are whole numbers of one decimal unit,
which keeps every digit of the file. The value that is minimised is the time of a token, 1 / flow.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal

from crossopt.crossflow.fields import Bounds, Doc, In, Key, NonZero, Prose, Unset
from crossopt.crossflow.pipelines import SINK, SOURCE, Links, Stage
from crossopt.instances.files.units import exact, nearest, quoted
from crossopt.instances.files.written import Written, short_repr

MOST_LAYERS, MOST_NODES, MOST_KINDS, MOST_ROWS = 1_000, 200, 50, 100_000
_SMALLEST, _LARGEST = 1e-6, 1e12
"""Of rates above 0."""
_ALL = "nodes"
_ENDS = {"source": SOURCE, "sink": SINK}
Rate = Annotated[float, Bounds(0.0, _LARGEST), In("tokens/s")]


@dataclass(frozen=True, slots=True)
class NodesSection:
    """Equal nodes: one accelerator each, or several that hold layers together."""

    rates: Annotated[
        tuple[Annotated[Rate, NonZero()], ...],
        Doc("tokens a second of one node that holds 1, 2, ... layers, as many as its memory holds; nothing is assumed of their order"),
    ]
    number: Annotated[int, Bounds(0, MOST_NODES), Doc("of nodes; several are called NAME-1, NAME-2, ...")] = 1


@dataclass(frozen=True, slots=True)
class LinkSection:
    """Links from each node of one end to each node of the other, in this direction."""

    from_: Annotated[str, Key("from"), Doc("`source`, a node, a kind for each of its nodes, or `nodes` for all")]
    to: Annotated[str, Doc("a node, a kind, `nodes`, or `sink`")]
    rate: Annotated[Rate, Doc("the most tokens a second of each of these links; 0: no link")]


@dataclass(frozen=True, slots=True)
class PipelinesFile:
    """Which node holds which layers of a model, so that most tokens a second pass?"""

    kind: Annotated[Literal["pipelines"], Doc("problem type")]
    layers: Annotated[int, Bounds(1, MOST_LAYERS), Doc("of the model")]
    nodes: Annotated[dict[str, NodesSection], Doc("kinds of nodes by name")]
    links: Annotated[
        tuple[LinkSection, ...] | None, Doc("links by pair, each once; a pair that is not named has none, unless `link_rate` says more")
    ] = None
    link_rate: Annotated[
        Rate | None, Unset(), Doc("tokens a second of each link that `links` does not name; without both keys links carry any rate")
    ] = None
    partial: Annotated[
        bool, Doc("whether a node may begin in the middle of its layers, where the one before it ends (partial inference of Helix)")
    ] = False
    name: Annotated[str | None, Doc("name of the question; default: the file's")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None


@dataclass(frozen=True)
class PipelinesQuestion:
    """Nodes with their rates and links, in units of 10^-places tokens a second."""

    name: str
    file: PipelinesFile
    nodes: tuple[str, ...]
    kinds: tuple[str, ...]
    """Kind of each node."""
    tables: tuple[tuple[int, ...], ...]
    """Rates of each node by layers that it holds, from 1 up to those of the model."""
    links: Links
    places: int
    document: dict[str, Any]

    __repr__ = short_repr

    @property
    def layers(self) -> int:
        return self.file.layers

    def stage(self, node: int, first: int, count: int) -> Stage:
        """A node with the layers that it holds."""
        return Stage(node, first, first + count, self.tables[node][count - 1])

    def rate(self, units: int) -> float:
        """Tokens a second, correctly rounded."""
        return float(Fraction(units, 10**self.places))

    def seconds(self, units: int) -> float:
        """Time of a token, correctly rounded; infinite where none passes."""
        return float(Fraction(10**self.places, units)) if units else inf

    @cached_property
    def through(self) -> tuple[int, ...]:
        """The most that links let through each node."""
        links, every = self.links, range(len(self.nodes))
        sent = [links.sink[node] + sum(links.between[node]) for node in every]
        return tuple(min(sent[node], links.source[node] + sum(row[node] for row in links.between)) for node in every)

    @cached_property
    def alike(self) -> tuple[tuple[int, ...], ...]:
        """Nodes that may be exchanged: with the same rates, and the same links to and from all others."""
        groups = list[list[int]]()
        for node in range(len(self.nodes)):
            known = next((group for group in groups if self._exchangeable(group[0], node)), None)
            if known is None:
                groups.append([node])
            else:
                known.append(node)
        return tuple(map(tuple, groups))

    def _exchangeable(self, one: int, other: int) -> bool:
        links = self.links
        return (
            self.tables[one] == self.tables[other]
            and (links.source[one], links.sink[one]) == (links.source[other], links.sink[other])
            and links.between[one][other] == links.between[other][one]
            and all(
                links.between[one][node] == links.between[other][node] and links.between[node][one] == links.between[node][other]
                for node in range(len(self.nodes))
                if node not in {one, other}
            )
        )


def size_of(question: PipelinesQuestion) -> str:
    """How large the question is, in words."""
    return f"{question.layers:,} layers on {len(question.nodes):,} nodes of {len(set(question.kinds)):,} kinds"


def read(written: Written) -> PipelinesQuestion:
    """The question; an InstanceError with every fault."""
    file = written.read_as(PipelinesFile)
    written.refuse(_faults(file))
    names = {kind: _names(kind, section.number) for kind, section in file.nodes.items()}
    nodes = tuple(name for several in names.values() for name in several)
    written.refuse(_link_faults(file, names))
    tables = [file.nodes[kind].rates for kind, several in names.items() for _ in several]
    stated = {rate for section in file.nodes.values() for rate in section.rates}
    stated |= {row.rate for row in file.links or ()} | ({file.link_rate} if file.link_rate is not None else set())
    places = next(places for places in range(_MOST_PLACES) if all((exact(rate) * 10**places).denominator == 1 for rate in stated))

    def units(rate: float) -> int:
        return int(exact(rate) * 10**places)

    never_full = 1 + sum(max(map(units, rates)) for rates in tables)
    usual = units(file.link_rate) if file.link_rate is not None else 0 if file.links is not None else never_full
    return PipelinesQuestion(
        name=file.name or Path(written.source).stem,
        file=file,
        nodes=nodes,
        kinds=tuple(kind for kind, several in names.items() for _ in several),
        tables=tuple(tuple(map(units, rates[: file.layers])) for rates in tables),
        links=_links(nodes, {pair: units(rate) for _, pair, rate in _pairs(file, names)}, usual),
        places=places,
        document=written.document,
    )


_MOST_PLACES = 40
"""More than the decimals of any rate from the smallest on."""


def _names(kind: str, number: int) -> list[str]:
    return [kind] if number == 1 else [f"{kind}-{place}" for place in range(1, number + 1)]


def _links(nodes: Sequence[str], stated: Mapping[tuple[str, str], int], usual: int) -> Links:
    """Links by numbers of nodes."""
    return Links(
        tuple(stated.get(("source", node), usual) for node in nodes),
        tuple(tuple(stated.get((node, other), usual) if node != other else 0 for other in nodes) for node in nodes),
        tuple(stated.get((node, "sink"), usual) for node in nodes),
    )


def _ends(end: str, names: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Nodes, the source or the sink, by what a row calls them; none where it is unknown."""
    every = [name for several in names.values() for name in several]
    return every if end == _ALL else [end] if end in _ENDS or end in every else names.get(end, ())


def _pairs(file: PipelinesFile, names: Mapping[str, Sequence[str]]) -> Iterator[tuple[int, tuple[str, str], float]]:
    """Rows of links by their places, with each pair and its rate."""
    for place, row in enumerate(file.links or ()):
        for sender in _ends(row.from_, names):
            for receiver in _ends(row.to, names):
                if sender != receiver:
                    yield place, (sender, receiver), row.rate


def _faults(file: PipelinesFile) -> Iterator[tuple[str, str]]:
    total, names = sum(section.number for section in file.nodes.values()), set[str]()
    if not 1 <= len(file.nodes) <= MOST_KINDS:
        yield "nodes", f"{len(file.nodes)} kinds of nodes are given, 1 to {MOST_KINDS} are needed"
    elif not 1 <= total <= MOST_NODES:
        yield "nodes", f"{total} nodes are given, 1 to {MOST_NODES} are needed (change a `number`)"
    if len(file.links or ()) > MOST_ROWS:
        yield "links", f"{len(file.links or ()):,} rows are given, {MOST_ROWS:,} are the most (name kinds instead of nodes)"
    for kind, section in file.nodes.items():
        if kind in {_ALL, *_ENDS}:
            yield f"nodes.{kind}", f"{quoted(kind)} is an end of links (give these nodes another name)"
        elif names & (own := {kind, *_names(kind, section.number)}):
            yield f"nodes.{kind}", f"{quoted(min(names & own))} is the name of another node, too (change one of the names)"
        names |= {kind, *_names(kind, section.number)}
        if not section.rates:
            yield f"nodes.{kind}.rates", "nodes of this kind hold no layer (give the rate with 1 layer, or leave the kind out)"
        for place, rate in enumerate(section.rates):
            if rate < _SMALLEST:
                yield (
                    f"nodes.{kind}.rates[{place}]",
                    f"rates are from {_SMALLEST:g} tokens/s on (leave out numbers of layers that do not fit)",
                )
    if file.link_rate is not None and 0.0 < file.link_rate < _SMALLEST:
        yield "link_rate", f"rates above 0 are from {_SMALLEST:g} tokens/s on"


def _link_faults(file: PipelinesFile, names: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    known = [*_ENDS, _ALL, *names, *(name for several in names.values() for name in several)]
    for place, row in enumerate(file.links or ()):
        for key, end, other in (("from", row.from_, "sink"), ("to", row.to, "source")):
            if end == other:
                yield f"links[{place}].{key}", f"no link goes {key} the {end} (exchange the ends)"
            elif end not in known:
                guess = nearest(end, known)
                yield (
                    f"links[{place}].{key}",
                    f"there is no node {quoted(end)} (" + (f"did you mean {guess[0]}?)" if guess else "name a kind)"),
                )
        if (row.from_, row.to) == ("source", "sink"):
            yield f"links[{place}]", "tokens go from the source to the sink through nodes (name a kind)"
        elif row.from_ == row.to and row.to != _ALL and row.to not in names:
            yield f"links[{place}]", "a node needs no link to itself (remove the row)"
        if 0.0 < row.rate < _SMALLEST:
            yield f"links[{place}].rate", f"rates above 0 are from {_SMALLEST:g} tokens/s on"
    rows = dict[tuple[str, str], int]()
    for place, pair, _ in _pairs(file, names):
        if rows.setdefault(pair, place) != place:
            yield f"links[{place}]", f"the link from {pair[0]} to {pair[1]} stands in item {rows[pair]}, too (keep one of them)"
            return
