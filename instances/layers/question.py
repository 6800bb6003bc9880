"""The question about strategies of layers as the user writes it in YAML: a table of strategies, or a graph of operators on a device."""

from collections.abc import Iterator, Mapping
from csv import DictReader
from dataclasses import dataclass, field, fields, replace
from io import StringIO
from itertools import pairwise
from math import inf, isfinite, nan, prod
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from crossopt.crossflow.fields import (
    Area,
    AreaChoice,
    Bounds,
    Bytes,
    CountChoice,
    Doc,
    Duration,
    Energy,
    NonZero,
    NotNegative,
    Positive,
    Power,
    PowerChoice,
    Prose,
    Ratio,
    Throughput,
)
from crossopt.crossflow.operator_graph import OperatorGraph
from crossopt.crossflow.operator_splits import SplitKind
from crossopt.instances.catalogue.formats import BITS, NO_DEVICE, Device, Format, device_in
from crossopt.instances.catalogue.registry import UnknownNameError, device, device_or_file, technology_named
from crossopt.instances.catalogue.registry import names as registered
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.graphs import text_of
from crossopt.instances.files.schema import read_as
from crossopt.instances.files.units import nearest, quoted
from crossopt.instances.files.written import Written, short_repr
from crossopt.instances.layers.network import (
    GraphRequest,
    Tying,
    format_problem,
    operand_formats,
    seconds_at_peak,
    sharing_operators,
    unused_losses,
    usual_state_bytes,
)
from crossopt.instances.layers.problem import FIGURES, Pairs, Problem, problem_of
from crossopt.instances.layers.problem import Written as WrittenProblem
from crossopt.instances.layers.splits import MOST_DEVICES, MOST_GROUPS, Parallel, SplitPricing, faults_of, split_problem, usual_groups
from crossopt.instances.operators.graph_file import graph_in

if TYPE_CHECKING:
    from crossopt.instances.layers.chips import Chips

Objective = Literal["time", "energy", "size", "memory", "bops", "quality"]
Rate = Annotated[float, Bounds(1e-6, 1e6)]
UNITS = {"time": "s", "energy": "J", "size": "B", "memory": "B", "bops": "", "quality": ""}
MOST_LAYERS, MOST_STRATEGIES, MOST_CHIPS = 20_000, 64, 20_000
_LOOKED_AT = 8
"""Chips of which a question remembers its problem."""
ALL_SPLITS: tuple[SplitKind, ...] = ("batch", "features", "inputs", "space")


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
class DevicesSection:
    """Devices over which operators are split, all of the hardware that the question names."""

    devices: Annotated[Positive, Doc("how many")]
    devices_per_node: Annotated[Positive | None, Doc("joined by the network inside a node; default: as a named device is sold")] = None


@dataclass(frozen=True, slots=True)
class ChipBudgetSection:
    """Limits of a free chip."""

    die_area: Annotated[Area | None, Doc("of all dies; default: of the technology's usual chip")] = None
    package_area: Annotated[Area | None, Doc("of the interposer; default: of the technology's usual chip")] = None
    power: Annotated[Power | None, Doc("of the chip with its stacks; default: of the technology's usual chip")] = None


@dataclass(frozen=True, slots=True)
class ChipChoicesSection:
    """Parts of a free chip; those that are not named are as in the technology's usual chip."""

    compute_area: Annotated[AreaChoice | None, Doc("of the cores")] = None
    compute_power: Annotated[PowerChoice | None, Doc("of the cores, which sets their clock")] = None
    l2_area: Annotated[AreaChoice | None, Doc("of the L2 memory")] = None
    hbm_stacks: Annotated[CountChoice | None, Doc("stacks of memory")] = None
    network_area: Annotated[AreaChoice | None, Doc("of links between nodes, over which operators are split")] = None
    node_network_area: Annotated[AreaChoice | None, Doc("of links inside a node")] = None


@dataclass(frozen=True, slots=True)
class LayersFile:
    """Which strategy does each layer take, within budgets?"""

    kind: Annotated[Literal["layers"], Doc("problem type")]
    objective: Annotated[Objective, Doc("what is to be least")]
    name: Annotated[str | None, Doc("name of the question; default: the file's")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None
    budgets: Annotated[FiguresSection, Doc("the most of each figure over all layers")] = FiguresSection()
    layers: Annotated[dict[str, LayerSection] | None, Doc("layers by name, in the order of the network, where no graph is given")] = None
    links: Annotated[tuple[LinkSection, ...], Doc("between neighbours")] = ()
    tied: Annotated[tuple[tuple[str, ...], ...], Doc("groups of layers that take the same strategy")] = ()
    graph: Annotated[str | None, Doc("a graph of operators that `crossopt import` wrote, relative to this file")] = None
    hardware: Annotated[str | None, Doc("a device of `crossopt list hardware`, or the path of a file of your own, for a graph")] = None
    technology: Annotated[str | None, Doc("of `crossopt list technologies`, for a graph on a free chip, in place of hardware")] = None
    choices: Annotated[ChipChoicesSection, Doc("parts of the free chip")] = ChipChoicesSection()
    budget: Annotated[ChipBudgetSection, Doc("limits of the free chip")] = ChipBudgetSection()
    rates: Annotated[dict[str, Rate] | None, Doc("of formats on the free chip, over 16 bits; default: the technology's")] = None
    format_area: Annotated[
        dict[str, Ratio] | None, Doc("by which a core grows that computes in a format; chips without it are compared")
    ] = None
    formats: Annotated[tuple[Format, ...], Doc("offered for operands, beside the base")] = ()
    base: Annotated[Format, Doc("of activations in memory, and of all that takes no other format")] = "bf16"
    peaks: Annotated[
        dict[str, Annotated[Throughput, NonZero()]] | None, Doc("of formats that the device's file lacks, or instead of its own")
    ] = None
    training: Annotated[bool, Doc("forward and backward pass, or forward only")] = False
    optimizer_bytes: Annotated[
        NotNegative | None, Doc("of each trained weight, beside its gradient; default: Adam, 12 with a 16-bit base, else 8")
    ] = None
    quality: Annotated[dict[str, dict[str, NotNegative]] | None, Doc("what is lost of it, by operator and format")] = None
    quality_file: Annotated[str | None, Doc("the same as CSV with the columns layer, format and quality")] = None
    fixed: Annotated[dict[str, Format] | None, Doc("operators that take this format")] = None
    tie: Annotated[Tying, Doc("same strategy for operators at one place of repeated blocks, or of one type")] = "none"
    cluster: Annotated[DevicesSection | None, Doc("devices over which operators of a graph are split")] = None
    splits: Annotated[tuple[SplitKind, ...], Doc("ways to split an operator, beside the whole operator on every device")] = ALL_SPLITS
    groups: Annotated[tuple[Positive, ...], Doc("devices of a group, which share features or height; default: all divisors")] = ()
    hidden_gradients: Annotated[Ratio, Doc("share of the exchange of gradients that hides behind the backward pass")] = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class LayersQuestion:
    """A problem with its budgets as they were written."""

    name: str
    problem: Problem
    budgets: dict[str, float]
    document: dict[str, Any]
    rules: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Strategies of all layers by rules to compare with, where operators are split over devices."""
    types: tuple[str, ...] = ()
    """The type of each operator that one strategy for each type ties; empty for others, and no types without splits."""
    tie: Tying = "none"
    """How operators of a graph are tied."""
    shared: tuple[tuple[int, ...], ...] = ()
    """Ties of operators that share weights, which no question leaves out."""
    devices: int = 1
    notes: tuple[str, ...] = ()
    """What is stated and not used."""
    graph: OperatorGraph | None = None
    """The operators, where the question names a graph."""
    pricing: SplitPricing | None = None
    """Prices of splits, where operators are split over devices."""
    at_peak: dict[str, dict[str, float]] = field(default_factory=dict)
    """Seconds of the multiply-adds of each operator at the device's peak, by format; none where operators are split or the chip is free."""
    chips: "Chips | None" = None
    """The chips of a question with a free one, whose problem is that of one of them."""
    on_chips: dict[int, "LayersQuestion"] = field(default_factory=dict, init=False, repr=False)
    """The question on the chips that were looked at last."""

    def on_chip(self, chip: int | None) -> "LayersQuestion":
        """The question on one of its chips, or itself where a device is named; a ValueError where there is no such chip."""
        if self.chips is None:
            if chip is not None:
                raise ValueError(f"chip {chip} is given, and the question names a device")
            return self
        if chip is None:
            raise ValueError("the chip is missing")
        if chip not in self.on_chips:
            asked = self.chips.asked(chip)
            if len(self.on_chips) == _LOOKED_AT:
                self.on_chips.clear()
            self.on_chips[chip] = replace(self, problem=problem_of(asked.written), rules=asked.rules, pricing=asked.pricing, chips=None)
        return self.on_chips[chip]

    __repr__ = short_repr

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
    checks = (_layer_faults, _link_faults, _tie_faults, _split_faults) if file.graph is None else (_graph_faults, _split_faults)
    if found := [fault for faults_of in checks for fault in faults_of(file)]:
        raise written.refused(written.fault(path, message) for path, message in found)
    budgets = figures_of(file.budgets)
    name = file.name or Path(written.source).stem
    if file.graph is None:
        return LayersQuestion(name, _integer_problem(_stated(file, budgets), written), budgets, written.document)
    request = _request(file, file.graph, written)
    notes, graph = tuple(unused_losses(request)), request.graph
    shared = len(sharing_operators(request.graph))
    if file.technology is not None:
        return _on_free_chip(name, file, request, budgets, written)
    if file.cluster is None:
        problem = _integer_problem(format_problem(request, file.objective, budgets), written)
        return LayersQuestion(
            name,
            problem,
            budgets,
            written.document,
            tie=file.tie,
            shared=problem.ties[:shared],
            notes=notes,
            graph=graph,
            at_peak=seconds_at_peak(request),
        )
    parallel = _parallel(file, file.cluster, request, written)
    split = split_problem(request, parallel, file.objective, budgets)
    return LayersQuestion(
        name=name,
        problem=(problem := _integer_problem(split.written, written)),
        budgets=budgets,
        document=written.document,
        rules=split.rules,
        types=split.types,
        tie=file.tie,
        shared=problem.ties[:shared],
        devices=parallel.devices,
        notes=notes,
        graph=graph,
        pricing=split.pricing,
    )


def _on_free_chip(name: str, file: LayersFile, request: GraphRequest, budgets: dict[str, float], written: Written) -> LayersQuestion:
    """The question about all chips, with the problem on the first one."""
    from crossopt.instances.layers.chips import ChipGrid, chips_of  # noqa: PLC0415 - most questions name a device

    options = tuple((part.name, own) for part in fields(ChipChoicesSection) if (own := getattr(file.choices, part.name)) is not None)
    limits = file.budget
    grid = ChipGrid(
        technology=file.technology or "",
        options=options,
        die_area=limits.die_area,
        package_area=limits.package_area,
        power=limits.power,
        rates=file.rates or {},
        format_area=file.format_area or {},
    )
    parallel = None if file.cluster is None else _parallel(file, file.cluster, request, written)
    try:
        chips = chips_of(grid, request, file.objective, budgets, file.formats, parallel)
    except ValueError as error:
        raise written.refused([written.fault("choices", str(error))]) from error
    asked = chips.asked(0)
    return LayersQuestion(
        name=name,
        problem=(problem := _integer_problem(asked.written, written)),
        budgets=budgets,
        document=written.document,
        types=asked.types,
        tie=file.tie,
        shared=problem.ties[: len(sharing_operators(request.graph))],
        devices=1 if parallel is None else parallel.devices,
        notes=tuple(unused_losses(request)),
        graph=request.graph,
        chips=chips,
    )


def _parallel(file: LayersFile, section: DevicesSection, request: GraphRequest, written: Written) -> Parallel:
    """The devices and splits, where groups may be all divisors; an InstanceError where nothing can be split so."""
    per_node = section.devices_per_node or request.device.per_node
    groups = tuple(dict.fromkeys(file.groups)) or usual_groups(section.devices, per_node)
    parallel = Parallel(section.devices, per_node, file.splits, groups)
    if found := list(faults_of(request, parallel, file.groups)):
        raise written.refused(written.fault(path, message) for path, message in found)
    return parallel


def _integer_problem(stated: WrittenProblem, written: Written) -> Problem:
    """The problem in whole numbers; an InstanceError where totals are beyond what a float holds."""
    try:
        return problem_of(stated)
    except ValueError as error:
        raise written.refused([written.fault("objective", str(error))]) from error


def _stated(file: LayersFile, budgets: dict[str, float]) -> WrittenProblem:
    """Figures as the file says them."""
    layers = {
        name: {strategy: figures_of(stated) for strategy, stated in section.strategies.items()}
        for name, section in (file.layers or {}).items()
    }
    links = [(link.between[0], link.between[1], _pairs(link, file)) for link in file.links]
    return WrittenProblem(layers, links, file.objective, budgets, file.tied)


def _request(file: LayersFile, name: str, written: Written) -> GraphRequest:
    """A graph on a device."""
    with written.reading("graph"):
        graph = graph_in(written.files.text(name, text_of), name)
    try:
        hardware = _device(file, written)
    except (UnknownNameError, ValueError) as error:
        raise written.refused([written.fault("hardware", str(error))]) from error
    names = {node.name: node.operator for node in graph.nodes}
    quality = _quality(file, written)
    named = [("quality", name) for name in quality or {}] + [("fixed", name) for name in file.fixed or {}]
    if strange := [(key, name) for key, name in named if name not in names]:
        raise written.refused(
            written.fault(
                f"{key}.{name}" if file.quality_file is None else key, f"the graph has no operator {quoted(name)}{_like(name, names)}"
            )
            for key, name in strange[:20]
        )
    request = GraphRequest(
        graph=graph,
        device=hardware,
        training=file.training,
        quality=quality,
        fixed=file.fixed or {},
        tie=file.tie,
        state_bytes=usual_state_bytes(file.base, file.optimizer_bytes),
        exposed_gradients=1.0 - file.hidden_gradients,
    )
    try:
        operand_formats(request)
    except ValueError as error:
        raise written.refused([written.fault("fixed" if file.fixed else "graph", str(error))]) from error
    return request


def _device(file: LayersFile, written: Written) -> Device:
    """The named device; of a free chip one without figures, with the formats that it may have."""
    if file.technology is None:
        with written.reading("hardware"):
            entry, label = device_or_file(file.hardware or "", written.files)
        return device_in(entry, label, file.base, file.formats, file.peaks or {})
    technology_named(file.technology)
    return Device(file.technology, file.base, dict.fromkeys((file.base, *file.formats), NO_DEVICE))


def _like(name: str, names: Mapping[str, str]) -> str:
    close = nearest(name, names)
    return f" (did you mean {close[0]}?)" if close else " (names are those of `crossopt import`)"


def _quality(file: LayersFile, written: Written) -> dict[str, dict[str, float]] | None:
    """Losses by operator and format; None where quality does not count."""
    counts = file.objective == "quality" or file.budgets.quality is not None
    if file.quality_file is None:
        return file.quality or ({} if counts else None)
    with written.reading("quality_file"):
        text = written.files.text(file.quality_file, text_of)
    found, faults, empty = dict[str, dict[str, float]](), list[Fault](), list[int]()
    rows = DictReader(StringIO(text.removeprefix("\ufeff")))  # a mark of the byte order, as spreadsheets write it
    if missing := [column for column in ("layer", "format", "quality") if column not in (rows.fieldnames or ())]:
        raise InstanceError(
            file.quality_file,
            [Fault(1, 1, "", f"the column {missing[0]} is missing (layer, format and quality are needed, separated by commas)")],
        )
    for line, row in enumerate(rows, 2):
        try:
            value = float(row["quality"] or "")
        except ValueError:
            value = nan
        if not (row["quality"] or "").strip():
            empty.append(line)
        elif not 0.0 <= value < inf:
            faults.append(Fault(line, 1, "quality", f"{quoted(row['quality'] or '')} is no loss of quality (give a number from 0 on)"))
        elif row["format"] in found.setdefault(row["layer"], {}):
            faults.append(Fault(line, 1, "layer", f"{row['layer']} in {row['format']} is given twice (keep one)"))
        else:
            found[row["layer"]][row["format"]] = value
    if empty:
        some = f" of this row and {len(empty) - 1:,} more is empty" if len(empty) > 1 else " of this row is empty"
        faults.append(Fault(empty[0], 1, "quality", f"the loss{some} (fill it in, or take the rows out)"))
    if faults:
        raise InstanceError(file.quality_file, faults)
    return found


def _graph_faults(file: LayersFile) -> Iterator[tuple[str, str]]:
    for key in ("layers", "links", "tied"):
        if getattr(file, key):
            yield key, f"{key} are stated where no graph is given (take one of them away)"
    yield from _chip_faults(file)
    if file.hardware is None and file.technology is None:
        yield "hardware", "a device is needed (such as hardware: h100-sxm; `crossopt list hardware` names them)"
    yield from _quality_faults(file)
    for name in file.peaks or {}:
        if name not in BITS:
            yield f"peaks.{name}", f"{quoted(name)} is no format (one of {', '.join(BITS)})"
    for name, dtype in (file.fixed or {}).items():
        if dtype not in (file.base, *file.formats):
            yield f"fixed.{name}", f"{dtype} is not among the formats of the question (add it to formats)"


def _chip_faults(file: LayersFile) -> Iterator[tuple[str, str]]:
    """What a free chip lacks, and what belongs to it alone."""
    if file.technology is None:
        for key, usual in (("choices", ChipChoicesSection()), ("budget", ChipBudgetSection()), ("rates", None), ("format_area", None)):
            if getattr(file, key) != usual:
                yield key, f"{key} is of a free chip (give technology in place of hardware, or remove it)"
        return
    for key in ("hardware", "peaks"):
        if getattr(file, key) is not None:
            yield key, f"{key} is given beside technology, whose chip is free (remove one of the two)"
    yield from _link_choice_faults(file)
    options = [own for part in fields(ChipChoicesSection) if (own := getattr(file.choices, part.name)) is not None]
    if not options:
        yield "choices", "nothing of the chip is left to choose (name options, such as hbm_stacks: [2, 4])"
    if (count := prod(map(len, options)) * 2 ** len(file.format_area or {})) > MOST_CHIPS:
        yield "choices", f"{count:,} chips are more than the {MOST_CHIPS:,} that a question may have (give fewer options)"
    for key in ("rates", "format_area"):
        for name in getattr(file, key) or {}:
            if name not in BITS:
                yield f"{key}.{name}", f"{quoted(name)} is no format (one of {', '.join(BITS)})"


def _link_choice_faults(file: LayersFile) -> Iterator[tuple[str, str]]:
    """What links of a free chip need."""
    per_node = None if file.cluster is None else file.cluster.devices_per_node or 0
    if per_node == 0:
        yield "cluster.devices_per_node", "the number of devices in a node of free chips is needed (give devices_per_node: 8)"
    inside = file.cluster is not None and per_node is not None and file.cluster.devices <= per_node
    for key, used in (("node_network_area", per_node is not None), ("network_area", per_node is not None and not inside)):
        if getattr(file.choices, key) is not None and not used:
            yield f"choices.{key}", "no operator is split over devices that these links join (give cluster, or remove this key)"


def _quality_faults(file: LayersFile) -> Iterator[tuple[str, str]]:
    if file.quality is None and file.quality_file is None and (file.objective == "quality" or file.budgets.quality is not None):
        key = "objective" if file.objective == "quality" else "budgets.quality"
        yield key, "what layers lose of the quality is needed (give quality or quality_file)"
    if file.quality is not None and file.quality_file is not None:
        yield "quality_file", "quality is given already (take one of them away)"
    for name, row in (file.quality or {}).items():
        for dtype in row:
            if dtype not in BITS:
                yield f"quality.{name}.{dtype}", f"{quoted(dtype)} is no format (one of {', '.join(BITS)})"


def _split_faults(file: LayersFile) -> Iterator[tuple[str, str]]:
    if file.cluster is None or file.graph is None:
        for key, given in (("cluster", file.cluster), ("groups", file.groups), ("splits", file.splits != ALL_SPLITS)):
            if given and (key != "cluster" or file.graph is None):
                needed = "a graph" if file.graph is None else "cluster: {devices: 8}"
                yield key, f"operators are split over devices where {needed} is given (add it, or leave out {key})"
        return
    devices, per_node = file.cluster.devices, file.cluster.devices_per_node
    if not 2 <= devices <= MOST_DEVICES:
        yield (
            "cluster.devices",
            f"operators are split over 2 to {MOST_DEVICES:,} devices, not {devices:,} (change it, or leave out cluster)",
        )
        return
    if per_node is None and file.hardware in registered("hardware"):
        per_node = device(file.hardware).devices_per_node
    if per_node and devices > per_node and devices % per_node:
        remedy = f"take a multiple of {per_node}, or give devices_per_node"
        yield "cluster.devices", f"{devices:,} devices are no whole number of nodes of {per_node} ({remedy})"
    count = len(file.groups or usual_groups(devices, per_node or devices))
    if count > MOST_GROUPS:
        yield "groups", f"{count} sizes of groups are too many to choose among (name up to {MOST_GROUPS} under groups)"
    for number, group in enumerate(file.groups):
        if devices % group:
            yield f"groups[{number}]", f"{devices:,} devices do not divide into groups of {group} (take a divisor of {devices:,})"


def figures_of(section: FiguresSection) -> dict[str, float]:
    """The figures that a section states."""
    return {name: value for name in FIGURES if (value := getattr(section, name)) is not None}


def _pairs(link: LinkSection, file: LayersFile) -> Pairs:
    """Figures of pairs of strategies: those that are stated, else of the conversion where names differ."""
    first, second = ((file.layers or {})[name].strategies for name in link.between)
    found = dict[tuple[str, str], dict[str, float]]()
    if link.differ is not None:
        found |= {(strategy, neighbour): figures_of(link.differ) for strategy in first for neighbour in second if strategy != neighbour}
    for strategy, row in (link.pairs or {}).items():
        found |= {(strategy, neighbour): figures_of(figures) for neighbour, figures in row.items()}
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
    stated = {figure for section in layers.values() for own in section.strategies.values() for figure in figures_of(own)}
    for figure in (file.objective, *figures_of(file.budgets)):
        if layers and figure not in stated:
            yield (
                ("objective" if figure == file.objective else f"budgets.{figure}"),
                f"no layer states its {figure} (add it to the strategies)",
            )


def _link_faults(file: LayersFile) -> Iterator[tuple[str, str]]:
    layers = file.layers or {}
    for number, link in enumerate(file.links):
        unknown = [name for name in link.between if name not in layers]
        if unknown:
            yield f"links[{number}].between", f"there is no layer {unknown[0]!r} (name two of the layers)"
            continue
        if link.between[0] == link.between[1]:
            yield f"links[{number}].between", f"{link.between[0]!r} is its own neighbour (name two layers)"
        first, second = (layers[name].strategies for name in link.between)
        for strategy, row in (link.pairs or {}).items():
            if strategy not in first:
                yield (
                    f"links[{number}].pairs.{strategy}",
                    f"the layer {link.between[0]} has no strategy {strategy!r} (one of {', '.join(first)})",
                )
            for neighbour in row:
                if neighbour not in second:
                    yield (
                        f"links[{number}].pairs.{strategy}.{neighbour}",
                        f"the layer {link.between[1]} has no strategy {neighbour!r} (one of {', '.join(second)})",
                    )


def _tie_faults(file: LayersFile) -> Iterator[tuple[str, str]]:
    layers = file.layers or {}
    for number, tied in enumerate(file.tied):
        unknown = [name for name in tied if name not in layers]
        if unknown:
            yield f"tied[{number}]", f"there is no layer {unknown[0]!r} (name layers)"
        elif not all(
            set(layers[first_name].strategies) == set(layers[second_name].strategies) for first_name, second_name in pairwise(tied)
        ):
            yield f"tied[{number}]", "tied layers need the same strategies (give each all of them)"
