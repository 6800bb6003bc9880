"""The question about strategies of layers as the user writes it in YAML: layers with a table of their strategies."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal

from crossopt.crossflow.fields import Bytes, Doc, Duration, Energy, NotNegative, Prose
from crossopt.instances.errors import Fault
from crossopt.instances.files.schema import read_as
from crossopt.instances.files.written import Written
from crossopt.instances.layers.problem import FIGURES, Pairs, Problem, problem_of
from crossopt.instances.layers.problem import Written as WrittenProblem

Objective = Literal["time", "energy", "size", "memory", "bops", "quality"]
UNITS = {"time": "s", "energy": "J", "size": "B", "memory": "B", "bops": "", "quality": ""}
MOST_LAYERS, MOST_STRATEGIES = 20_000, 64


@dataclass(frozen=True, slots=True)
class FiguresSection:
    """Additive figures of a strategy; what is left out is 0."""

    time: Annotated[Duration | None, Doc("of the layer")] = None
    energy: Annotated[Energy | None, Doc("of the layer")] = None
    size: Annotated[Bytes | None, Doc("of the weights")] = None
    memory: Annotated[Bytes | None, Doc("of weights and of what is kept")] = None
    bops: Annotated[NotNegative | None, Doc("bit operations: multiply-adds times the bits of both operands")] = None
    quality: Annotated[NotNegative | None, Doc("what is lost of the quality, as the user measured it")] = None


@dataclass(frozen=True, slots=True)
class LayerSection:
    """A layer and its strategies."""

    strategies: Annotated[dict[str, FiguresSection], Doc("by name, such as int4 and int8")]


@dataclass(frozen=True, slots=True)
class LinkSection:
    """Figures of two neighbours that depend on the strategies of both."""

    between: Annotated[tuple[str, str], Doc("the names of the two layers")]
    differ: Annotated[FiguresSection | None, Doc("wherever their strategies have different names: a conversion")] = None
    pairs: Annotated[dict[str, dict[str, FiguresSection]] | None, Doc("by the strategy of the first, then of the second")] = None


@dataclass(frozen=True, slots=True)
class LayersFile:
    """Which strategy does each layer take, within budgets?"""

    kind: Annotated[Literal["layers"], Doc("the kind of question")]
    objective: Annotated[Objective, Doc("what is to be least")]
    name: Annotated[str | None, Doc("of the question; the file's where nothing is said")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None
    budgets: Annotated[FiguresSection, Doc("the most of each figure over all layers")] = FiguresSection()
    layers: Annotated[dict[str, LayerSection] | None, Doc("layers by name, in the order of the network")] = None
    links: Annotated[tuple[LinkSection, ...], Doc("between neighbours")] = ()
    tied: Annotated[tuple[tuple[str, ...], ...], Doc("groups of layers that take the same strategy")] = ()


@dataclass(frozen=True, slots=True, eq=False)
class LayersQuestion:
    """A problem with its budgets as they were written."""

    name: str
    problem: Problem
    budgets: dict[str, float]
    document: dict[str, Any]

    @property
    def unit(self) -> str:
        """Unit of the objective."""
        return UNITS[self.problem.figures[0]]


def size_of(question: LayersQuestion) -> str:
    """How large the question is, in words."""
    problem = question.problem
    strategies = sum(len(names) for names in problem.strategies)
    count = sum(limit is not None for limit in problem.limits)
    return f"{len(problem):,} layers with {strategies:,} strategies, {len(problem.links):,} links, {count} budget{'s' * (count != 1)}"


def read(written: Written) -> LayersQuestion:
    """The question; an InstanceError with every fault."""
    faults: list[Fault] = []
    file = read_as(LayersFile, written.root, faults)
    if file is None:
        raise written.refused(faults)
    if found := [*_layer_faults(file), *_link_faults(file), *_tie_faults(file)]:
        raise written.refused(written.fault(path, message) for path, message in found)
    layers = file.layers or {}
    stated = {name: {strategy: figures_of(one) for strategy, one in section.strategies.items()} for name, section in layers.items()}
    links = [(link.between[0], link.between[1], _pairs(link, file)) for link in file.links]
    budgets = figures_of(file.budgets)
    problem = problem_of(WrittenProblem(stated, links, file.objective, budgets, file.tied))
    return LayersQuestion(file.name or Path(written.source).stem, problem, budgets, written.document)


def figures_of(section: FiguresSection) -> dict[str, float]:
    """The figures that a section states."""
    return {name: value for name in FIGURES if (value := getattr(section, name)) is not None}


def _pairs(link: LinkSection, file: LayersFile) -> Pairs:
    """Figures of pairs of strategies: those that are stated, else of the conversion where names differ."""
    first, second = ((file.layers or {})[name].strategies for name in link.between)
    found = dict[tuple[str, str], dict[str, float]]()
    if link.differ is not None:
        found |= {(one, other): figures_of(link.differ) for one in first for other in second if one != other}
    for one, row in (link.pairs or {}).items():
        found |= {(one, other): figures_of(figures) for other, figures in row.items()}
    return found


def _layer_faults(file: LayersFile) -> Iterator[tuple[str, str]]:
    layers = file.layers or {}
    if not 1 <= len(layers) <= MOST_LAYERS:
        yield "layers", f"{len(layers):,} layers are given, 1 to {MOST_LAYERS:,} are needed"
    for name, section in layers.items():
        if not 1 <= len(section.strategies) <= MOST_STRATEGIES:
            yield f"layers.{name}.strategies", f"{len(section.strategies)} strategies are given, 1 to {MOST_STRATEGIES} are needed"
        for strategy, figures in section.strategies.items():
            for figure, value in figures_of(figures).items():
                if value < 0.0 or not isfinite(value):
                    yield f"layers.{name}.strategies.{strategy}.{figure}", f"{value:g} is no figure that can be added up (give 0 or more)"
    stated = {figure for section in layers.values() for one in section.strategies.values() for figure in figures_of(one)}
    for figure in (file.objective, *figures_of(file.budgets)):
        if layers and figure not in stated:
            yield (
                ("objective" if figure == file.objective else f"budgets.{figure}"),
                f"no layer states its {figure} (add it to the strategies)",
            )


def _link_faults(file: LayersFile) -> Iterator[tuple[str, str]]:
    layers = file.layers or {}
    for place, link in enumerate(file.links):
        unknown = [name for name in link.between if name not in layers]
        if unknown:
            yield f"links[{place}].between", f"there is no layer {unknown[0]!r} (name two of the layers)"
            continue
        if link.between[0] == link.between[1]:
            yield f"links[{place}].between", f"{link.between[0]!r} is its own neighbour (name two layers)"
        first, second = (layers[name].strategies for name in link.between)
        for one, row in (link.pairs or {}).items():
            if one not in first:
                yield f"links[{place}].pairs.{one}", f"the layer {link.between[0]} has no strategy {one!r} (one of {', '.join(first)})"
            for other in row:
                if other not in second:
                    yield (
                        f"links[{place}].pairs.{one}.{other}",
                        f"the layer {link.between[1]} has no strategy {other!r} (one of {', '.join(second)})",
                    )


def _tie_faults(file: LayersFile) -> Iterator[tuple[str, str]]:
    layers = file.layers or {}
    for place, tied in enumerate(file.tied):
        unknown = [name for name in tied if name not in layers]
        if unknown:
            yield f"tied[{place}]", f"there is no layer {unknown[0]!r} (name layers)"
        elif not all(set(layers[one].strategies) == set(layers[other].strategies) for one, other in pairwise(tied)):
            yield f"tied[{place}]", "tied layers need the same strategies (give each all of them)"
