"""The question about a chip of a template, schedules on its cores and stages over many chips, as the user writes it in YAML."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil, comb, inf, log10
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np

from crossopt.crossflow.accelerator import (
    BUFFER_SIZES,
    BYTES,
    CLOCK,
    MOST_CORES,
    MOST_SIDE,
    Chips,
    Cores,
    OperatorGraph,
    chip_area,
    chips_of,
    reference_area,
)
from crossopt.crossflow.arrays import Array
from crossopt.crossflow.fields import (
    Area,
    As,
    Bandwidth,
    Bounds,
    Bytes,
    Choice,
    CountChoice,
    Doc,
    Duration,
    Frequency,
    Money,
    NonZero,
    Positive,
    Power,
    PowerPerArea,
    PricePerArea,
    PricePerEnergy,
    Prose,
    Ratio,
)
from crossopt.crossflow.hardware import is_within
from crossopt.crossflow.workload import Transformer
from crossopt.instances.accelerator.built import BuiltChips, Rated, TechnologySection, built_chips
from crossopt.instances.accelerator.networks import (
    MOST_IDEALS,
    Ideals,
    Layer,
    Network,
    Operator,
    Rates,
    Stored,
    ideals_of,
    network_in,
    shape_graph_network,
    topological,
    transformer_network,
)
from crossopt.instances.catalogue.registry import model as model_entry
from crossopt.instances.files.graphs import text_of
from crossopt.instances.files.units import quoted
from crossopt.instances.files.written import Written, short_repr
from crossopt.instances.operators.graph_file import graph_in

Recompute = Literal["none", "full"]
Passes = Literal["training", "forward"]
PipelineSchedule = Literal["1f1b", "interleaved", "two-weights"]
Objective = Literal["time", "area", "devices", "energy", "cost"]
MOST_SIZE, MOST_LAYERS, MOST_OPERATORS, MOST_DEVICES, MOST_BATCH = 10**14, 1_024, 200, 1 << 16, 1 << 22
_POWERS: Final = tuple(1 << power for power in range(13))
_SIDES: Final = _POWERS[1:9]
_NETWORKS: Final = ("workload", "transformer", "layers", "graph")
_CoreCounts = Annotated[tuple[int, ...], Bounds(0, MOST_CORES), Choice()]
_Sides = Annotated[tuple[int, ...], Bounds(1, MOST_SIDE), Choice()]


@dataclass(frozen=True, slots=True)
class ChipsSection:
    """The chips to choose from: all combinations that keep the area."""

    tensor_cores: Annotated[_CoreCounts, Doc("numbers of tensor cores")] = _POWERS
    vector_cores: Annotated[_CoreCounts, Doc("numbers of vector cores")] = _POWERS
    width: Annotated[_Sides, Doc("columns of a tensor core, and lanes of a vector core: powers of two")] = _SIDES
    depth: Annotated[_Sides, Doc("rows of a tensor core: powers of two")] = _SIDES
    buffer: Annotated[tuple[int, ...], Bounds(1, 128), Choice(), Doc("MiB of the shared buffer")] = BUFFER_SIZES
    area: Annotated[Area | None, NonZero(), Doc("greatest area; default: 8 tensor cores of 128 x 128, 2 vector cores and 128 MiB")] = None
    least_share: Annotated[Ratio, Doc("share of that area that a chip has at least, unless it has a single core of a type")] = 0.3


@dataclass(frozen=True, slots=True)
class ShapeSection:
    """A transformer by its shape."""

    layers: Annotated[int, Bounds(1, MOST_LAYERS - 2), As(Transformer)]
    hidden: Annotated[int, As(Transformer)]
    heads: Annotated[int, As(Transformer)]
    ffn: Annotated[int, As(Transformer)]
    vocabulary: Annotated[int, As(Transformer)]
    sequence: Annotated[int, As(Transformer), Doc("tokens of a sample")]
    kv_heads: Annotated[int, As(Transformer)] = 0
    gated: Annotated[bool, As(Transformer)] = False
    rotary: Annotated[bool | None, Doc("rotary positions; default: where the feed-forward part is gated")] = None
    experts: Annotated[int, As(Transformer)] = 1
    experts_per_token: Annotated[int, As(Transformer)] = 1


@dataclass(frozen=True, slots=True)
class OperatorSection:
    """An operator of a layer."""

    name: Annotated[str, Doc("name of the operator")]
    cores: Annotated[Cores, Doc("tensor; vector; both: one core of each type; network: an all-reduce among the devices of a stage")]
    size: Annotated[float, Bounds(0.0, float(MOST_SIZE)), Doc("of a sample: multiplications, elements of `vector`, bytes of `network`")]
    cycles: Annotated[int, Bounds(1, 10_000), Doc("cycles for an element of `vector`")] = 1
    backward: Annotated[
        int, Bounds(0, 10_000), Doc("on the way back: products of `tensor` and `both` (usual: 2), cycles for an element of `vector`")
    ] = 0
    after: Annotated[tuple[str, ...] | None, Doc("operators before it; default: the one above")] = None
    split: Annotated[bool, Doc("whether tensor parallelism shares its size among the devices of a stage")] = True
    moved: Annotated[Bytes | None, Doc("inputs and outputs of a sample; default: values of 2 bytes in and out of `vector`, else none")] = (
        None
    )
    weights: Annotated[Bytes, Doc("weights that it reads for a microbatch of any size")] = 0.0


@dataclass(frozen=True, slots=True)
class LayerSection:
    """A layer, or several alike in a row."""

    name: Annotated[str, Doc("name of the layer")]
    operators: Annotated[tuple[OperatorSection, ...], Doc("operators, each behind those that it needs")]
    output: Annotated[Bytes, Doc("output of a sample")] = 0.0
    parameters: Annotated[Bytes, Doc("parameters of a device without tensor parallelism, which shares them")] = 0.0
    activations: Annotated[Bytes, Doc("stored for a sample until its backward pass; tensor parallelism shares them")] = 0.0
    count: Annotated[int, Bounds(1, MOST_LAYERS), Doc("number of equal layers in a row")] = 1
    after: Annotated[tuple[str, ...] | None, Doc("layers before it; default: the one above")] = None


@dataclass(frozen=True, slots=True)
class NetworkSection:
    """A network: one of `workload`, `transformer`, `layers` and `graph`."""

    workload: Annotated[str | None, Doc("a transformer of `crossopt list workloads`")] = None
    transformer: Annotated[ShapeSection | None, Doc("a transformer by its shape")] = None
    layers: Annotated[tuple[LayerSection, ...], Doc("layers with their operators")] = ()
    graph: Annotated[str | None, Doc("path of a graph that `crossopt import` wrote of one sample")] = None


@dataclass(frozen=True, slots=True)
class FixedSection:
    """A plan to compare with: as many layers to a stage as makes them even."""

    stages: Annotated[Positive, Doc("stages")]
    data: Annotated[Positive, Doc("pipelines")] = 1
    tensor: Annotated[Positive, Doc("devices of a stage")] = 1


@dataclass(frozen=True, slots=True)
class PowerSection:
    """Rated power of a chip of the template."""

    chip: Annotated[Power, Doc("of a chip of any size, with its memory")] = 0.0
    area: Annotated[PowerPerArea, Doc("of its area")] = 0.0


@dataclass(frozen=True, slots=True)
class PricesSection:
    """What a chip costs."""

    chip: Annotated[Money, Doc("of a chip of any size, with its memory and share of board and host")] = 0.0
    area: Annotated[PricePerArea, Doc("of its area")] = 0.0
    lifetime: Annotated[Duration, NonZero(), Doc("over which the price is spread")] = 4.0 * 365.25 * 86400.0
    electricity: Annotated[PricePerEnergy, Doc("at the rated power")] = 0.0


@dataclass(frozen=True, slots=True)
class AcceleratorFile:
    """Which chip, which schedules on its cores, and which stages over many chips make a batch quickest?"""

    kind: Annotated[Literal["accelerator"], Doc("problem type")]
    devices: Annotated[int, Bounds(1, MOST_DEVICES), Doc("number of chips")]
    batch: Annotated[int, Bounds(1, MOST_BATCH), Doc("samples of a batch")]
    memory: Annotated[Bytes, Doc("memory beside each chip")]
    bandwidth: Annotated[Bandwidth, NonZero(), Doc("bandwidth between any two chips")]
    memory_bandwidth: Annotated[
        Bandwidth | None, NonZero(), Doc("bandwidth of the memory beside a chip; default: it limits nothing, as in PHAZE's peak mode")
    ] = None
    workload: Annotated[str | None, Doc("a transformer of `crossopt list workloads`")] = None
    transformer: Annotated[ShapeSection | None, Doc("in place of `workload`: a transformer by its shape")] = None
    layers: Annotated[tuple[LayerSection, ...], Doc("in place of `workload`: layers with their operators")] = ()
    graph: Annotated[str | None, Doc("in place of `workload`: path of a graph that `crossopt import` wrote of one sample")] = None
    networks: Annotated[
        dict[str, NetworkSection] | None, Doc("in place of `workload`: several networks by name, of which the mean throughput counts")
    ] = None
    chips: Annotated[ChipsSection, Doc("the chips to choose from")] = ChipsSection()
    technology: Annotated[
        TechnologySection | None, Doc("in place of `chips`: chips of a technology, priced by CrossFlow's roofline; takes no `layers`")
    ] = None
    clock: Annotated[Frequency, NonZero(), Doc("clock; PHAZE's public program has 1.05 MHz, a slip of the unit")] = CLOCK
    microbatch: Annotated[CountChoice, Doc("samples of a microbatch")] = (1,)
    tensor: Annotated[CountChoice, Doc("tensor degrees of a stage")] = (1,)
    recompute: Annotated[tuple[Recompute, ...], Choice(), Doc("recomputation options of a stage")] = ("none", "full")
    passes: Annotated[Passes, Doc("training: forward and backward; forward: alone")] = "training"
    uniform: Annotated[bool, Doc("whether all stages share tensor degree and recomputation, as in PHAZE")] = False
    divisible: Annotated[bool, Doc("whether pipelines must divide chips and microbatches")] = False
    copies: Annotated[int, Bounds(1, 100), Doc("copies of the parameters in training: 2 with gradients, 3 with Adam")] = 2
    granularity: Annotated[Positive, Doc("cycles to whose multiples the cycles of operators are rounded up")] = 1
    fixed: Annotated[FixedSection | None, Doc("a plan to compare with")] = None
    objective: Annotated[
        Objective,
        Doc(
            "what is minimised: time, energy or cost of a batch, area of a chip, or chips in use; energy and cost are those of chips in use"
        ),
    ] = "time"
    time_limit: Annotated[Duration | None, NonZero(), Doc("longest time of a batch")] = None
    pipeline: Annotated[
        tuple[PipelineSchedule, ...],
        Choice(),
        Doc(
            "1f1b: each batch fills the pipeline anew; interleaved: devices hold several chunks, all stages of one tensor degree, as in "
            "Megatron-LM; two-weights: it stays full with a copy more of the parameters, as in PipeDream-2BW"
        ),
    ] = ("1f1b",)
    interleave: Annotated[CountChoice, Doc("chunks of each device in an interleaved pipeline, from 2")] = (2,)
    gradients: Annotated[
        Literal["first", "every"], Doc("stages whose gradients are waited for: the first, as in PHAZE, or the one with most of them")
    ] = "first"
    power: Annotated[PowerSection | None, Doc("rated power of a chip of the template")] = None
    prices: Annotated[PricesSection | None, Doc("prices of chips")] = None
    name: Annotated[str | None, Doc("name of the question; default: the file's")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None


@dataclass(frozen=True, slots=True, eq=False)
class AcceleratorQuestion:
    """Which chip, schedules and stages make a batch quickest?"""

    name: str
    file: AcceleratorFile
    networks: tuple[Network, ...]
    ideals: tuple[Ideals, ...]
    chips: Chips
    built: BuiltChips | None
    """Chips of a technology, in place of those of the template."""
    equal_layers: tuple[str, ...]
    """Sentences on layers that are alike under different names."""
    document: dict[str, Any] = field(repr=False)

    __repr__ = short_repr

    @property
    def directions(self) -> tuple[bool, ...]:
        """Whether a pass is backward, for each pass."""
        return (False, True) if self.file.passes == "training" else (False,)

    @property
    def rates(self) -> Rates:
        """What turns bytes into cycles."""
        file = self.file
        return Rates(file.bandwidth, inf if file.memory_bandwidth is None else file.memory_bandwidth, file.clock, file.granularity)

    def weights(self, chips: Chips | Rated) -> Array:
        """What each chip adds to the objective: area, watts or dollars a second; 1 if chips differ in none."""
        file, areas = self.file, np.asarray(chip_area(chips) if isinstance(chips, Chips) else chips.hardware.die_area)
        if file.objective in ("time", "devices"):
            return np.ones(len(areas))
        if file.objective == "area":
            return areas
        own = file.power or PowerSection()
        power = own.chip + own.area * areas if isinstance(chips, Chips) else np.asarray(chips.hardware.power)
        if file.objective == "energy":
            return np.asarray(power)
        prices = file.prices or PricesSection()
        return np.asarray((prices.chip + prices.area * areas) / prices.lifetime + prices.electricity * power)


def chip_count(question: AcceleratorQuestion) -> int:
    """Number of chips to choose from."""
    return len(question.chips) if question.built is None else len(question.built)


def size_of(question: AcceleratorQuestion) -> str:
    """How large the question is, in words."""
    layers = sum(len(network) for network in question.networks)
    several = f"{len(question.networks)} networks of " if len(question.networks) > 1 else ""
    return f"{chip_count(question):,} chips, {several}{layers:,} layers on {question.file.devices:,} devices"


def designs_of(question: AcceleratorQuestion) -> float:
    """Decimal logarithm of the number of designs: chips, microbatches, pipelines, and of each stage its end, degree and recomputation."""
    file, found = question.file, log10(chip_count(question))
    options = len(file.tensor) * (len(file.recompute) if file.passes == "training" else 1)
    for network, ideals in zip(question.networks, question.ideals, strict=True):
        most = min(len(network), file.devices // min(file.tensor))
        if len(ideals.members) == len(network) + 1:
            cuts = sum(comb(len(network) - 1, stages - 1) * (options if file.uniform else options**stages) for stages in range(1, most + 1))
        else:
            paths = [0] * (len(ideals.members) - 1) + [1]
            for ideal in range(len(paths) - 2, -1, -1):
                paths[ideal] = sum(paths[int(end)] for end in ideals.within[ideal].nonzero()[0]) * (1 if file.uniform else options)
            cuts = paths[0]
        found += log10(max(cuts, 1)) + log10(len(file.microbatch) * _schedules_of(file) * min(file.devices, file.batch))
    return found


def _schedules_of(file: AcceleratorFile) -> int:
    """Number of schedules of a pipeline."""
    return len(file.pipeline) + (len(file.interleave) - 1) * ("interleaved" in file.pipeline)


def read(written: Written) -> AcceleratorQuestion:
    """The question; an InstanceError with every fault."""
    file = written.read_as(AcceleratorFile)
    written.refuse(list(_faults(file)))
    faults, networks, equal = list[tuple[str, str]](), list[Network](), list[str]()
    for path, name, section in _sections(file):
        network = _imported(written, path, section.graph, faults) if section.graph else _network(file, path, name, section, faults, equal)
        networks += [network] if network is not None else []
    written.refuse(faults)
    name, built = file.name or Path(written.source).stem, None
    if file.technology is not None:
        written.refuse(_technology_faults(file, networks))
        try:
            built = built_chips(file.technology)
        except ValueError as error:
            raise written.refused([written.fault("technology", str(error))]) from error
    asked = file.chips
    options = (asked.tensor_cores, asked.vector_cores, asked.width, asked.depth, asked.buffer)
    most = reference_area() if asked.area is None else asked.area
    chips = chips_of(options, most, asked.least_share)
    written.refuse([] if built else _chip_faults(file, options, most, chips, networks))
    ideals = [ideals_of(network) for network in networks]
    many = [network.name for network, own in zip(networks, ideals, strict=True) if own is None]
    written.refuse([("layers", f"the graph of {quoted(many[0])} has more than {MOST_IDEALS} places to cut (join layers)")] if many else [])
    known = tuple(ideal for ideal in ideals if ideal is not None)
    return AcceleratorQuestion(name, file, tuple(networks), known, chips, built, tuple(equal), written.document)


def _sections(file: AcceleratorFile) -> Iterator[tuple[str, str, NetworkSection]]:
    """Networks with their paths and names."""
    if file.networks is None:
        name = file.workload or ("transformer" if file.transformer else "network")
        yield "", name, NetworkSection(file.workload, file.transformer, file.layers, file.graph)
        return
    for name, section in file.networks.items():
        yield f"networks.{name}.", name, section


def _faults(file: AcceleratorFile) -> Iterator[tuple[str, str]]:
    """What no single value shows."""
    alone = [key for key in _NETWORKS if getattr(file, key)]
    if file.networks is not None and (alone or not file.networks):
        yield "networks", "networks are given by name, without a workload, transformer, layers or graph beside them"
    if file.networks is None and len(alone) != 1:
        yield alone[1] if alone else "", "one of workload, transformer, layers, graph and networks is needed (such as workload: gpt3-175b)"
    for name, section in (file.networks or {}).items():
        if sum(bool(getattr(section, key)) for key in _NETWORKS) != 1:
            yield f"networks.{name}", "one of workload, transformer, layers and graph is needed"
    yield from _option_faults(file)
    yield from _objective_faults(file)


def _objective_faults(file: AcceleratorFile) -> Iterator[tuple[str, str]]:
    """Objectives that lack what they need, and pipelines."""
    if file.networks is not None and len(file.networks) > 1 and (file.objective != "time" or file.time_limit is not None):
        yield "objective", "several networks share a chip for the mean throughput alone (take objective: time, without a time_limit)"
    if file.objective in ("area", "devices") and file.time_limit is None:
        yield "time_limit", f"the least {file.objective} needs a limit of the time of a batch (such as time_limit: 10 s)"
    if file.objective == "energy" and file.technology is None and (file.power is None or not file.power.chip + file.power.area):
        yield "power", "the energy of chips of the template needs their power (such as power: {area: 0.5 W/mm^2})"
    if file.objective == "cost" and (file.prices is None or not file.prices.chip + file.prices.area + file.prices.electricity):
        yield "prices", "a cost needs prices (such as prices: {chip: 2000 USD})"
    if file.technology is not None and file.power is not None:
        yield "power", "chips of a technology have powers of their own (remove this)"
    if file.passes == "forward" and file.pipeline != ("1f1b",):
        yield "pipeline", "there is one schedule of a pipeline without a backward pass (remove this)"
    if "interleaved" in file.pipeline and file.gradients == "every":
        yield "gradients", "an interleaved pipeline waits for the gradients of its first chunk alone (take gradients: first)"
    if "interleaved" in file.pipeline and min(file.interleave) < 2:
        yield "interleave", "an interleaved pipeline has 2 chunks or more on each device (1 is pipeline: 1f1b)"


def _option_faults(file: AcceleratorFile) -> Iterator[tuple[str, str]]:
    """Options that are none."""
    for key in ("width", "depth"):
        for side in (side for side in getattr(file.chips, key) if side & (side - 1)):
            yield f"chips.{key}", f"{side} is no power of two, and the buffer of such a core has no known area (take 64 or 128)"
    for size in set(file.chips.buffer) - set(BUFFER_SIZES):
        yield "chips.buffer", f"a buffer of {size} MiB has no known area (one of {', '.join(map(str, BUFFER_SIZES))})"
    for size in (size for size in file.microbatch if file.batch % size):
        yield "microbatch", f"microbatches of {size:,} samples do not divide the batch of {file.batch:,}"
    for tensor in (tensor for tensor in file.tensor if tensor > file.devices):
        yield "tensor", f"a stage of {tensor:,} devices is larger than all {file.devices:,} (take fewer)"
    if file.passes == "forward" and file.recompute == ("full",):
        yield "recompute", "nothing is computed again without a backward pass (remove this)"
    if file.memory < 1.0:
        yield "memory", "no network keeps a memory of 0 bytes (give more)"
    if file.fixed is not None and file.fixed.tensor not in file.tensor:
        yield "fixed.tensor", f"{file.fixed.tensor} is not among the tensor degrees {', '.join(map(str, file.tensor))}"


def _network(
    file: AcceleratorFile, path: str, name: str, section: NetworkSection, faults: list[tuple[str, str]], equal: list[str]
) -> Network | None:
    """The network of a section; None where it has faults."""
    if section.layers:
        return _listed(file, path, name, section.layers, faults, equal)
    shape: ShapeSection | Transformer | None = section.transformer
    key = f"{path}transformer"
    if section.workload is not None:
        key = f"{path}workload"
        try:
            shape = model_entry(section.workload).transformer
        except ValueError as error:
            faults.append((key, str(error)))
            return None
    if shape is None:
        faults.append((key, f"{section.workload} is no transformer (give its layers)"))
        return None
    rotary = shape.rotary if isinstance(shape, ShapeSection) else not shape.learned_positions
    before = len(faults)
    for tensor in file.tensor:
        for what, count in (("heads", shape.heads), ("key-value heads", shape.kv_heads or shape.heads), ("units of the ffn", shape.ffn)):
            if count % tensor:
                faults.append(("tensor", f"{tensor} devices cannot share {count:,} {what} evenly (take divisors)"))
    if shape.hidden % shape.heads:
        faults.append((key, f"{shape.heads:,} heads do not divide the hidden size of {shape.hidden:,}"))
    if shape.layers > MOST_LAYERS - 2:
        faults.append((key, f"{shape.layers:,} layers are more than {MOST_LAYERS - 2:,}"))
    made = transformer_network if file.technology is None else shape_graph_network
    found = made(name, shape, shape.gated if rotary is None else rotary)
    _size_faults(file, key, found, faults)
    return found if len(faults) == before else None


def _imported(written: Written, path: str, name: str, faults: list[tuple[str, str]]) -> Network | None:
    """The network of a graph of operators."""
    file = written.read_as(AcceleratorFile)
    with written.reading(f"{path}graph"):
        graph = graph_in(written.files.text(name, text_of), name)
    if len(graph) > MOST_LAYERS:
        faults.append((f"{path}graph", f"{len(graph):,} operators are more than {MOST_LAYERS:,}"))
        return None
    found = network_in(graph, graph.name)
    _size_faults(file, f"{path}graph", found, faults)
    return found


def _size_faults(file: AcceleratorFile, path: str, network: Network, faults: list[tuple[str, str]]) -> None:
    for layer in network.kinds:
        for operator in layer.operators:
            most = operator.size * max(file.microbatch) * max(operator.backward, 1)
            faults += [(path, f"{operator.name} of {layer.name} is larger than {MOST_SIZE:.0e}")] if most > MOST_SIZE else []


def _listed(
    file: AcceleratorFile, path: str, name: str, sections: tuple[LayerSection, ...], faults: list[tuple[str, str]], equal: list[str]
) -> Network | None:
    """The network of the layers of a file."""
    began, kinds, kind_rows = len(faults), dict[tuple[object, ...], int](), list[Layer]()
    names, kind_of, last_of, first_of = list[str](), list[int](), dict[str, int](), dict[str, int]()
    links = list[tuple[int, tuple[str, ...] | None, str]]()
    for row, section in enumerate(sections):
        where = f"{path}layers[{row}]"
        layer = _layer(file, where, section, faults)
        if section.name in last_of:
            faults.append((f"{where}.name", f"two layers are called {quoted(section.name)} (layers in a row that are alike take count: 2)"))
        key = (layer.operators, layer.graph.before, layer.parameters, layer.activations, layer.output)
        if key in kinds and kind_rows[kinds[key]].name != section.name:
            equal.append(f"layers {kind_rows[kinds[key]].name} and {section.name} are alike under two names; they are scheduled once")
        if key not in kinds:
            kinds[key] = len(kind_rows)
            kind_rows.append(layer)
        first_of[section.name] = len(names)
        links.append((len(names), section.after, where))
        names += [section.name] if section.count == 1 else [f"{section.name}#{number}" for number in range(section.count)]
        kind_of += [kinds[key]] * section.count
        last_of[section.name] = len(names) - 1
    if len(names) > MOST_LAYERS:
        faults.append((f"{path}layers", f"{len(names):,} layers are more than {MOST_LAYERS:,}"))
        return None
    before: list[tuple[int, ...]] = [(row - 1,) if row else () for row in range(len(names))]
    for first, after, where in links:
        faults += [(f"{where}.after", f"there is no layer {quoted(item)}") for item in after or () if item not in last_of]
        if after is not None:
            before[first] = tuple(last_of[item] for item in after if item in last_of)
    order = topological(names, before, lambda one: faults.append((f"{path}layers", f"the graph of layers has a cycle through {one}")))
    if len(faults) > began:
        return None
    index = {row: number for number, row in enumerate(order)}
    moved = tuple(tuple(sorted(index[item] for item in before[row])) for row in order)
    found = Network(name, tuple(kind_rows), tuple(names[row] for row in order), tuple(kind_of[row] for row in order), moved)
    _size_faults(file, f"{path}layers", found, faults)
    return found if len(faults) == began else None


def _layer(file: AcceleratorFile, where: str, section: LayerSection, faults: list[tuple[str, str]]) -> Layer:
    """A layer of a file, its operators in topological order."""
    names = [operator.name for operator in section.operators]
    if not names:
        faults.append((f"{where}.operators", "a layer has one operator at the least"))
    if len(names) > MOST_OPERATORS:
        faults.append((f"{where}.operators", f"{len(names):,} operators are more than {MOST_OPERATORS}"))
    twice = [item for row, item in enumerate(names) if item in names[:row]]
    if twice:
        faults.append((f"{where}.operators", f"two operators are called {quoted(twice[0])}"))
    before = list[tuple[int, ...]]()
    for row, item in enumerate(section.operators):
        unknown = [other for other in item.after or () if other not in names]
        if unknown:
            faults.append((f"{where}.operators[{row}].after", f"there is no operator {quoted(unknown[0])}"))
        direct = ([row - 1] if row else []) if item.after is None else [names.index(other) for other in item.after if other in names]
        before.append(tuple(sorted(set(direct))))
    order = topological(names, before, lambda one: faults.append((f"{where}.operators", f"the operators have a cycle through {one}")))
    index = {row: number for number, row in enumerate(order)}
    operators = tuple(_operator(section.operators[row]) for row in order)
    graph = OperatorGraph(
        tuple(operator.name for operator in operators),
        tuple(operator.cores for operator in operators),
        tuple(tuple(sorted(index[item] for item in before[row])) for row in order),
    )
    return Layer(
        section.name, operators, graph, Stored(float(section.parameters)), Stored(float(section.activations)), float(section.output)
    )


def _operator(section: OperatorSection) -> Operator:
    vector, size = section.cores == "vector", ceil(section.size)
    moved = float(2 * BYTES * size if vector else 0) if section.moved is None else section.moved
    stored = Stored(split=moved) if section.split else Stored(whole=moved)
    return Operator(
        section.name, section.cores, size, section.cycles, section.backward or (1 if vector else 2), section.split, stored, section.weights
    )


def _technology_faults(file: AcceleratorFile, networks: list[Network]) -> Iterator[tuple[str, str]]:
    """What chips of a technology do not price."""
    if any(network.imported is None for network in networks):
        yield (
            "technology",
            "chips of a technology price a graph or a transformer, not layers by operators (give graph: FILE, or chips of the template)",
        )
    if file.microbatch != (1,):
        yield (
            "microbatch",
            "a microbatch on chips of a technology is a sample, or the batch of the imported graph (import it with another one)",
        )
    if file.chips != ChipsSection():
        yield "chips", "chips of the template and of a technology are not chosen together (take one of them away)"
    if file.memory_bandwidth is not None:
        yield "memory_bandwidth", "chips of a technology have the bandwidth of their stacks (remove this)"
    if file.fixed is not None:
        yield "fixed", "there is no fixed plan on chips of a technology (remove this)"


def _chip_faults(
    file: AcceleratorFile, options: tuple[tuple[int, ...], ...], most: float, chips: Chips, networks: list[Network]
) -> Iterator[tuple[str, str]]:
    """Spaces without a chip, and operators that no chip can run."""
    if not len(chips):
        least = chip_area(Chips(*(np.array([min(option)]) for option in options)))[0]
        if not is_within(least, most):
            yield "chips", f"no chip keeps the area of {most * 1e6:.6g} mm^2: the smallest takes {least * 1e6:.6g} mm^2"
        else:
            yield "chips", f"no chip has {file.chips.least_share:.0%} of {most * 1e6:.6g} mm^2 and keeps it (lower least_share)"
        return
    for network in networks:
        for layer in network.kinds:
            for operator in layer.operators:
                needs = {"tensor": ("tensor",), "both": ("tensor", "vector")}.get(operator.cores, ("vector",))
                for what, column in (("tensor", chips.tensor_cores), ("vector", chips.vector_cores)):
                    if what in needs and not column.any():
                        yield "chips", f"no chip has {what} cores, which {operator.name} of {layer.name} needs"
                        return
