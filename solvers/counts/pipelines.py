"""Pipelines over unequal nodes as a problem type: answers, their judge by the greatest flow, and bounds proved anew."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter
from typing import Final

from crossopt.crossflow.pipelines import SINK, SOURCE, Flow, Stage, greatest_flow
from crossopt.formulation.pipelines import LargeError, Tick, best_above, chain_of, closed_bound, covering
from crossopt.instances.counts.pipelines import PipelinesQuestion
from crossopt.solvers.answer import Progress, Result, Verdict, Watch
from crossopt.solvers.family import ProblemType, Proved, lazy_import, rules_of
from crossopt.solvers.proofs import RecomputableBound, UnverifiedBound

BY_WORK: Final = "work of all nodes, and links at both ends"
BY_COVERS: Final = "a search of all covers of the layers"
BY_CHAINS: Final = "a search of all chains of nodes"
BY_PLACEMENTS: Final = "a search of all placements"


@dataclass(frozen=True, slots=True)
class NodeLayers:
    """A node with the first of its layers, counted from 0, and their number."""

    node: str
    first: int
    layers: int


@dataclass(frozen=True, slots=True)
class Placement:
    """Nodes in the order of the question; those that carry no tokens are left out."""

    nodes: tuple[NodeLayers, ...]


@dataclass(frozen=True, slots=True)
class LinkFlow:
    """Tokens a second from one end of a link to the other."""

    sender: str
    receiver: str
    rate: float


@dataclass(frozen=True, slots=True)
class TokenFlow:
    """What the judge says of a placement."""

    rate: float
    """Tokens a second."""
    passed: tuple[float, ...]
    """Tokens a second of each node."""
    able: tuple[float, ...]
    """The most that each node passes with its layers."""
    links: tuple[LinkFlow, ...]
    cut: tuple[str, ...]
    """Nodes and links, all of them full, that together pass no more: a smallest cut."""


def stages_of(question: PipelinesQuestion, answer: Placement) -> tuple[Stage, ...]:
    """Nodes with their layers; a ValueError where they are none of the question."""
    places = {name: place for place, name in enumerate(question.nodes)}
    order = [places.get(held.node, -1) for held in answer.nodes]
    if not order or order != sorted(set(order)) or order[0] < 0:
        raise ValueError("nodes of the question stand once each, in its order")
    for held, place in zip(answer.nodes, order, strict=True):
        if not (held.first >= 0 and 1 <= held.layers <= len(question.tables[place]) and held.first + held.layers <= question.layers):
            raise ValueError(f"{held.node} cannot hold {held.layers} layers from layer {held.first} on")
    return tuple(question.stage(place, held.first, held.layers) for held, place in zip(answer.nodes, order, strict=True))


def placement_of(question: PipelinesQuestion, stages: Sequence[Stage]) -> Placement:
    """The answer that says so."""
    ordered = sorted(stages, key=lambda stage: stage.node)
    return Placement(tuple(NodeLayers(question.nodes[one.node], one.first, one.last - one.first) for one in ordered))


def flow_of(question: PipelinesQuestion, stages: Sequence[Stage]) -> Flow:
    """The most tokens that a placement passes, in whichever order its nodes are given."""
    ordered = sorted(stages, key=lambda stage: stage.node)
    return greatest_flow(ordered, question.layers, question.links, question.file.partial)


def passed_by(flow: Flow) -> dict[int, int]:
    """Tokens of each node that carries any."""
    found: dict[int, int] = {}
    for sender, _, tokens in flow.passed:
        if sender != SOURCE:
            found[sender] = found.get(sender, 0) + tokens
    return found


def judge(question: PipelinesQuestion, answer: Placement) -> Verdict[TokenFlow]:
    """Time of a token at the greatest flow, which a cut of the same rate proves; a ValueError where nodes are none of the question."""
    stages = stages_of(question, answer)
    flow = flow_of(question, stages)
    passed, held = passed_by(flow), {stage.node: stage for stage in stages}
    cut = sum(held[node].rate for node in flow.nodes) + sum(question.links.rate(*link) for link in flow.links)
    if cut != flow.value:
        raise ValueError(f"the greatest flow of {flow.value} has a cut of {cut}")
    names = {SOURCE: "source", SINK: "sink", **dict(enumerate(question.nodes))}
    violations = [f"{names[stage.node]} carries no tokens (leave it out)" for stage in stages if not passed.get(stage.node)]
    use = TokenFlow(
        rate=question.rate(flow.value),
        passed=tuple(question.rate(passed.get(stage.node, 0)) for stage in stages),
        able=tuple(question.rate(stage.rate) for stage in stages),
        links=tuple(LinkFlow(names[sender], names[receiver], question.rate(tokens)) for sender, receiver, tokens in flow.passed),
        cut=(*(names[node] for node in flow.nodes), *(f"{names[sender]} to {names[receiver]}" for sender, receiver in flow.links)),
    )
    return Verdict(question.seconds(flow.value), tuple(violations), use)


def label_of(question: PipelinesQuestion, units: int, tick: Tick) -> str:
    """By what no placement passes more than this: the simplest of all proofs; empty where none was found."""
    if closed_bound(question) <= units:
        return BY_WORK
    ways: list[tuple[str, Callable[[], object]]] = [
        (BY_CHAINS, lambda: chain_of(question, tick)),
        (BY_COVERS, lambda: covering(question, units + 1, tick)),
        (BY_PLACEMENTS, lambda: best_above(question, units, tick)),
    ]
    for label, refutes in ways[units > 0 :]:
        try:
            if refutes() is None:
                return label
        except LargeError:
            continue
    return ""


def units_within(question: PipelinesQuestion, bound: float) -> int:
    """The greatest rate at which a token takes at least this time."""
    if not 0.0 < bound < inf:
        return 0 if bound > 0.0 else closed_bound(question)
    rounded = (Fraction(bound) + Fraction(nextafter(bound, 0.0))) / 2  # what is above becomes the bound as a float, or more
    found = int(10**question.places / rounded)
    return found if question.seconds(found) >= bound else found - 1


def prove(question: PipelinesQuestion, saved: Result[Placement, TokenFlow], watch: Watch) -> Proved:
    """Refute every placement below the bound once more."""
    if isinstance(saved.proof, UnverifiedBound):
        return Proved((f"the bound is reported by {saved.proof.by}, not proved again",), unverified=True)
    if not isinstance(saved.proof, RecomputableBound):
        return Proved((), ("proof: bounds on pipelines are computed again, without data",))
    watch(Progress("placements below the bound", None))
    bound = inf if saved.bound is None else saved.bound
    by = label_of(question, units_within(question, bound), _nothing)
    fault = f"bound: nothing proves that a token takes {bound!r} s or more"
    return Proved((f"no placement has a shorter time per token, by {by}",), () if by else (fault,), by=by)


def reasons_of(question: PipelinesQuestion) -> tuple[str, ...]:
    """Why no tokens pass: too few layers, no link at an end, or no chain of links."""
    most = sum(map(len, question.tables))
    if most < question.layers:
        return (f"layers: all nodes together hold {most} of {question.layers} layers",)
    for end, rates in (("source to", question.links.source), ("sink from", question.links.sink)):
        if not any(rates):
            return (f"links: there is none that links the {end} a node",)
    return ("links: no chain of nodes with links holds all layers",)


def _nothing() -> None:
    """A proof takes the time that it takes."""


_ENGINES = "crossopt.solvers.counts.pipeline_engines"
FAMILY: ProblemType[PipelinesQuestion, Placement, TokenFlow] = ProblemType(
    kind="pipelines",
    what="placement",
    unit="s",
    answer=Placement,
    details=TokenFlow,
    engines={name: lazy_import(_ENGINES, name) for name in ("auto", "exhaustive", "stages", "cpsat")},
    judge=judge,
    judged="the greatest flow through all nodes and links, and a cut that proves it",
    prove=prove,
    reasons=lambda question, _: reasons_of(question),
    rules=rules_of(lazy_import("crossopt.solvers.counts.rules", "rules_of_pipelines"), "auto", "exhaustive", "cpsat"),
    seeded=frozenset({"auto", "stages"}),
    proof_labels=frozenset({BY_WORK, BY_CHAINS, BY_COVERS, BY_PLACEMENTS}),
    reporting=("cpsat",),
)
