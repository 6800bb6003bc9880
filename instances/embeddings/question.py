"""The question about embedding tables as the user writes it in YAML, and its faults in sentences."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal

from crossopt.crossflow.embeddings import Bandwidths, Group, Optimizer, Pipeline, Sharding
from crossopt.crossflow.fields import (
    Bandwidth,
    Bounds,
    Bytes,
    Choice,
    Doc,
    Money,
    NonZero,
    Positive,
    Prose,
    Ratio,
    Throughput,
    Unit,
)
from crossopt.crossflow.recommendation import DenseOptimizer, Interaction, Level
from crossopt.instances.embeddings.options import Choices, PricedOption, options_of, priced
from crossopt.instances.embeddings.tables import (
    MOST_COLUMNS,
    MOST_LOOKUPS,
    MOST_ROWS,
    MOST_TABLES,
    Table,
    TableList,
    faults_of_names,
    faults_of_table,
    random_tables,
    tables_in,
)
from crossopt.instances.files.graphs import text_of
from crossopt.instances.files.units import exact, float_within, quoted
from crossopt.instances.files.written import Written, short_repr

Objective = Literal["slowest_device", "step", "fewest_devices"]
Dtype = Literal["fp32", "fp16", "bf16", "fp8", "int8", "int4", "int2"]
Choosable = Literal["fused", "fused_uvm", "fused_uvm_caching", "key_value", "dense"]
MOST_DEVICES, MOST_PARTS = 4_096, 256
_GIB, _MILLISECONDS = float(2**30), 1000.0


@dataclass(frozen=True, slots=True)
class TableSection:
    """An embedding table."""

    name: Annotated[str, Doc("of the table")]
    rows: Annotated[int, Bounds(1, MOST_ROWS), Doc("embeddings")]
    dimension: Annotated[int, Bounds(1, MOST_COLUMNS), Doc("columns")]
    pooling: Annotated[float, Bounds(0.0, MOST_LOOKUPS), Doc("lookups of a sample that has the feature")] = 1.0
    batch_fraction: Annotated[float, Bounds(0.0, MOST_LOOKUPS), Doc("share of the samples that have it, or features a sample")] = 1.0
    dtype: Annotated[Dtype, Doc("of an element")] = "fp32"
    weighted: Annotated[bool, Doc("lookups have weights")] = False
    pooled: Annotated[bool, Doc("rows of a sample are added up; false: kept apart, as sequences")] = True
    reuse: Annotated[tuple[Ratio, ...], Doc("17 shares of the lookups to rows used once, up to 2, 4 ... 32,768 times, and more")] = ()
    sharding: Annotated[tuple[Sharding, ...], Doc("those of the question that are allowed; default: all")] = ()
    kernel: Annotated[tuple[Choosable, ...], Doc("those of the question that are allowed; default: all")] = ()


@dataclass(frozen=True, slots=True)
class TablesSection:
    """Tables from a file, or drawn."""

    file: Annotated[str | None, Doc("a JSON or CSV list of tables, relative to this file")] = None
    count: Annotated[int | None, Bounds(1, MOST_TABLES), Doc("of tables drawn like those of a large model")] = None
    seed: Annotated[int, Bounds(0, 2**31), Doc("of drawn tables")] = 0


@dataclass(frozen=True, slots=True)
class ClusterSection:
    """Devices alike, in nodes alike, with their tiers of memory."""

    devices: Annotated[int | None, Bounds(1, MOST_DEVICES), Doc("how many; default: as the tables' file says")] = None
    devices_per_node: Annotated[Positive | None, Doc("default: as the tables' file says, or 8")] = None
    hbm: Annotated[Bytes | None, Doc("memory of a device; default: as the tables' file says, or 32 GiB")] = None
    ddr: Annotated[Bytes | None, Doc("host memory for a device; default: as the tables' file says, or 128 GiB")] = None
    ssd: Annotated[Bytes, Doc("storage for a device")] = 2048 * _GIB
    reserve: Annotated[Ratio, Doc("share of HBM that stays free; TorchRec's planner keeps 15 %")] = 0.0
    dense: Annotated[Bytes, Doc("HBM of the dense part and of its inputs on every device")] = 0.0
    hbm_bandwidth: Annotated[Bandwidth, NonZero(), Doc("of HBM")] = 897 * _GIB
    host_bandwidth: Annotated[Bandwidth, NonZero(), Doc("between HBM and host memory")] = 32 * _GIB
    ssd_bandwidth: Annotated[Bandwidth, NonZero(), Doc("of storage")] = 100 * 2.0**20
    intra_node_bandwidth: Annotated[Bandwidth, NonZero(), Doc("between devices of a node")] = 600 * _GIB
    inter_node_bandwidth: Annotated[Bandwidth, NonZero(), Doc("of a device between nodes")] = 12.5 * _GIB


@dataclass(frozen=True, slots=True)
class MessagesSection:
    """Bytes of an element in messages."""

    all_to_all: Annotated[float, Bounds(0.25, 8.0), Doc("forward")]
    all_to_all_backward: Annotated[float, Bounds(0.25, 8.0), Doc("backward")]
    reduce_scatter: Annotated[float, Bounds(0.25, 8.0), Doc("forward, of rows shared by devices")]
    all_gather: Annotated[float, Bounds(0.25, 8.0), Doc("backward, of rows shared by devices")]


@dataclass(frozen=True, slots=True)
class ChoicesSection:
    """What may be done with every table."""

    sharding: Annotated[tuple[Sharding, ...], Choice(), Doc("whole on a device, cut over devices or a node, or copied")] = (
        "table",
        "row",
        "column",
        "table-row",
        "table-column",
        "grid",
        "data",
    )
    kernel: Annotated[tuple[Choosable, ...], Choice(), Doc("where the rows are; copies are dense")] = (
        "fused",
        "fused_uvm",
        "fused_uvm_caching",
        "key_value",
        "dense",
    )
    columns: Annotated[tuple[Positive, ...], Choice(), Doc("equal pieces of the columns")] = (1, 2, 4)
    narrowest: Annotated[Positive, Doc("columns of a piece at least; TorchRec's planner takes 128")] = 128
    distinct: Annotated[bool, Doc("pieces of columns lie on different devices; those on SSD and in a grid always do")] = False
    cache: Annotated[tuple[Ratio, ...], Choice(), Doc("shares of the rows that fused_uvm_caching holds in HBM")] = (0.1, 0.2, 0.4)


@dataclass(frozen=True, slots=True)
class DenseSection:
    """Layers beside the tables: a bottom MLP for dense features, the interaction with the tables' vectors, and a top MLP."""

    bottom: Annotated[tuple[int, ...], Bounds(1, MOST_COLUMNS), Doc("widths from the dense features to the vector of the interaction")]
    top: Annotated[tuple[int, ...], Bounds(1, MOST_COLUMNS), Doc("widths after the interaction, whose width follows")]
    interaction: Annotated[Interaction, Doc("products of all pairs of vectors, which are equally wide; or all side by side")] = "dot"
    precision: Annotated[Literal["fp32", "fp16", "bf16"], Doc("of weights and activations")] = "fp16"
    optimizer: Annotated[DenseOptimizer, Doc("whose state lies beside the weights")] = "adagrad"
    throughput: Annotated[Throughput, NonZero(), Doc("that a device reaches; usual: half the peak of an A100")] = 156e12
    strategies: Annotated[tuple[Level, ...], Choice(), Doc("of a stack's weights within nodes and across them")] = (
        "data",
        "fsdp",
        "tensor",
    )
    tied: Annotated[bool, Doc("both stacks have the same strategy")] = False


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """A memory that may be bought."""

    size: Annotated[Bytes, Doc("for a device")]
    bandwidth: Annotated[Bandwidth | None, Doc("for a device; of ddr that of the link to it; default: as the cluster says")] = None
    price: Annotated[Money, Bounds(0.0), Doc("for a device")] = 0.0


@dataclass(frozen=True, slots=True)
class LinkPart:
    """A link that may be bought."""

    bandwidth: Annotated[Bandwidth, NonZero(), Doc("of a device")]
    price: Annotated[Money, Bounds(0.0), Doc("for a device")] = 0.0


@dataclass(frozen=True, slots=True)
class NodeSection:
    """What a node may be made of; all nodes are alike."""

    budget: Annotated[Money | None, Bounds(0.0), Doc("for all parts of a node")] = None
    hbm: Annotated[tuple[MemoryPart, ...], Doc("options of HBM; default: as the cluster says")] = ()
    ddr: Annotated[tuple[MemoryPart, ...], Doc("options of host memory")] = ()
    ssd: Annotated[tuple[MemoryPart, ...], Doc("options of storage")] = ()
    intra_node: Annotated[tuple[LinkPart, ...], Doc("options of links within a node")] = ()
    inter_node: Annotated[tuple[LinkPart, ...], Doc("options of links between nodes")] = ()


@dataclass(frozen=True, slots=True)
class EmbeddingsFile:
    """Which embedding table lies where, cut how, in which memory?"""

    kind: Annotated[Literal["embeddings"], Doc("problem type")]
    tables: Annotated[TablesSection | tuple[TableSection, ...], Doc("the tables: a list, a file, or drawn")]
    cluster: Annotated[ClusterSection, Doc("devices and memory")] = ClusterSection()
    batch: Annotated[int | None, Bounds(1, 1 << 24), Doc("samples of a device; default: as the tables' file says, or 512")] = None
    choices: Annotated[ChoicesSection, Doc("what may be chosen")] = ChoicesSection()
    objective: Annotated[Objective, Doc("time of the slowest device, sum of the slowest of each phase, or number of devices")] = (
        "slowest_device"
    )
    within: Annotated[Fraction | None, Unit("time"), NonZero(), Doc("time that the slowest of the fewest devices takes at most")] = None
    optimizer: Annotated[Optimizer, Doc("whose state lies beside the rows")] = "rowwise_adagrad"
    pipeline: Annotated[Pipeline, Doc("of training, which sizes buffers")] = "none"
    training: Annotated[bool, Doc("forward and backward pass, or forward only")] = True
    statistics: Annotated[bool, Doc("price what caches miss by the tables' reuse")] = False
    messages: Annotated[MessagesSection | None, Doc("bytes of an element that is sent; default: as wide as the table")] = None
    dense: Annotated[DenseSection | None, Doc("the layers beside the tables, whose time is added")] = None
    node: Annotated[NodeSection | None, Doc("a free node: memory and links to choose within a budget")] = None
    name: Annotated[str | None, Doc("name of the question; default: the file's")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None


@dataclass(frozen=True, eq=False)
class EmbeddingsQuestion:
    """Tables, devices, and all options with their prices."""

    name: str
    file: EmbeddingsFile
    tables: tuple[Table, ...]
    group: Group
    capacity: tuple[int, int, int]
    """Bytes of a device for tables, by tier."""
    choices: Choices
    document: dict[str, Any] = field(repr=False)
    memory: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Bytes of a device by tier, of which some are kept back."""

    __repr__ = short_repr

    @cached_property
    def types(self) -> tuple[int, ...]:
        """The type of each table, counted from 0 on in the order of their first tables."""
        places = dict[tuple[object, ...], int]()
        return tuple(places.setdefault(table.type, len(places)) for table in self.tables)

    @cached_property
    def options(self) -> tuple[tuple[PricedOption, ...], ...]:
        """Priced options by type."""
        first = dict(zip(reversed(self.types), reversed(self.tables), strict=True))
        return tuple(
            tuple(priced(first[index], option, self.choices, self.group) for option in options_of(first[index], self.choices, self.group))
            for index in range(len(first))
        )

    @property
    def nodes(self) -> int:
        return self.group.devices // self.group.per_node

    @property
    def counts(self) -> tuple[int, ...]:
        """Numbers of devices, of which the fewest may be asked for: devices of one node, and whole nodes."""
        most, node = self.group.devices, self.group.per_node
        return (*range(1, node), *range(node, most + 1, node))

    def on(self, devices: int) -> "EmbeddingsQuestion":
        """The question about the slowest device where there are so many."""
        group = replace(self.group, devices=devices, per_node=min(self.group.per_node, devices))
        return replace(self, file=replace(self.file, objective="slowest_device"), group=group)

    @property
    def within(self) -> float | None:
        """Milliseconds of the slowest device at most, where the fewest are asked for."""
        return None if self.file.within is None else float_within(self.file.within * 1000)

    @property
    def has_system(self) -> bool:
        """Whether parts of nodes or strategies of dense layers are chosen beside the tables' plan."""
        return self.file.dense is not None or self.file.node is not None


def size_of(question: EmbeddingsQuestion) -> str:
    """How large the question is, in words."""
    options, group = max(map(len, question.options), default=0), question.group
    nodes = f" in {question.nodes:,} nodes" if question.nodes > 1 else ""
    free = [f"dense layers of {len(question.file.dense.strategies)} strategies"] if question.file.dense else []
    if question.file.node is not None:
        parts = [len(getattr(question.file.node, name)) for name in ("hbm", "ddr", "ssd", "intra_node", "inter_node")]
        free.append(f"{prod(max(part, 1) for part in parts):,} nodes to choose from")
    return f"{len(question.tables):,} tables with up to {options} options on {group.devices:,} devices{nodes}{', '.join(['', *free])}"


def read(written: Written) -> EmbeddingsQuestion:
    """The question; an InstanceError with every fault."""
    file = written.read_as(EmbeddingsFile)
    written.refuse(_faults(file))
    found = _tables(file, written)
    written.refuse(_faults_of_tables(file, found.tables))
    cluster, head = file.cluster, _head_of(found.head)
    devices = cluster.devices or int(head.get("devices") or 0)
    written.refuse([] if devices else [("cluster.devices", "how many devices are there? (add cluster: {devices: 8})")])
    per_node = cluster.devices_per_node or min(int(head.get("devices_per_node") or 8), devices)
    written.refuse(_faults_of_nodes(devices, per_node))
    hbm = head.get("hbm_bytes", 32 * _GIB) if cluster.hbm is None else cluster.hbm
    ddr = head.get("ddr_bytes", 128 * _GIB) if cluster.ddr is None else cluster.ddr
    batch = file.batch or int(found.head.get("batch_per_device") or 512)
    messages = file.messages
    question = EmbeddingsQuestion(
        name=file.name or Path(written.source).stem,
        file=file,
        tables=found.tables,
        group=Group(devices, per_node, batch, _bandwidths(cluster), file.training, file.pipeline == "train_prefetch_sparse_dist"),
        capacity=capacity_of(cluster, (hbm, ddr, cluster.ssd)),
        memory=(hbm, ddr, cluster.ssd),
        choices=Choices(
            sharding=file.choices.sharding,
            kernel=file.choices.kernel,
            columns=file.choices.columns,
            cache=file.choices.cache,
            narrowest=file.choices.narrowest,
            sent=None
            if messages is None
            else (messages.all_to_all, messages.all_to_all_backward, messages.reduce_scatter, messages.all_gather),
            optimizer=file.optimizer,
            pipeline=file.pipeline,
            statistics=file.statistics,
            distinct=file.choices.distinct,
        ),
        document=written.document,
    )
    written.refuse((*_faults_of_options(question), *_faults_of_dense(question)))
    return question


def capacity_of(cluster: ClusterSection, memory: tuple[float, float, float], dense: int = 0) -> tuple[int, int, int]:
    """Bytes of a device for tables, beside so many of dense layers."""
    hbm, ddr, ssd = memory
    free = exact(hbm) * (1 - exact(cluster.reserve)) - exact(cluster.dense)
    return max(int(free) - dense, 0), int(ddr), int(ssd)


def _bandwidths(cluster: ClusterSection) -> Bandwidths:
    names = ("hbm_bandwidth", "host_bandwidth", "ssd_bandwidth", "intra_node_bandwidth", "inter_node_bandwidth")
    return Bandwidths(*(getattr(cluster, name) / _MILLISECONDS for name in names))


def _head_of(head: Mapping[str, Any]) -> dict[str, float]:
    """Figures of the devices in the head of a file of tables."""
    cluster = head.get("cluster")
    figures = cluster.items() if isinstance(cluster, Mapping) else ()
    return {str(key): float(value) for key, value in figures if isinstance(value, int | float) and 0 < value < 1e300}


def tables_text(path: Path) -> str:
    """The text of a file with tables."""
    return text_of(path, "a list of tables")


def _tables(file: EmbeddingsFile, written: Written) -> TableList:
    source = file.tables
    if isinstance(source, TablesSection):
        if source.file is None:
            return TableList(random_tables(source.count or 0, source.seed), {})
        with written.reading("tables.file"):
            text = written.files.text(source.file, tables_text)
        return tables_in(text, source.file)
    return TableList(tuple(_table(section) for section in source), {})


def _table(section: TableSection) -> Table:
    shape = section.name, section.rows, section.dimension, section.pooling, section.batch_fraction, section.dtype
    return Table(*shape, section.weighted, section.pooled, section.reuse, section.sharding, section.kernel)


def _faults(file: EmbeddingsFile) -> Iterator[tuple[str, str]]:
    source = file.tables
    if isinstance(source, TablesSection) and (source.file is None) == (source.count is None):
        yield "tables", "one of file and count is needed (such as tables: {file: tables.csv}, or {count: 80, seed: 1})"
    if not isinstance(source, TablesSection) and not 1 <= len(source) <= MOST_TABLES:
        yield "tables", f"{len(source):,} tables are given, 1 to {MOST_TABLES:,} are answered"
    if file.objective == "fewest_devices" and (file.dense is not None or file.node is not None):
        yield "objective", "the fewest devices are asked for tables alone, not beside dense layers or parts of nodes"
    if file.within is not None and file.objective != "fewest_devices":
        yield "within", "a longest time is for objective: fewest_devices"
    if "data" in file.choices.sharding and "dense" not in file.choices.kernel:
        if file.choices.sharding == ("data",):
            yield "choices.kernel", "copies of tables (data) need the kernel dense, which is not among the kernels"
    elif file.choices.kernel == ("dense",) and "data" not in file.choices.sharding:
        yield "choices.kernel", "the kernel dense is for copies of tables (data), which is not among the shardings"


def _faults_of_tables(file: EmbeddingsFile, tables: tuple[Table, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(file.tables, TablesSection):
        return
    for index, table in enumerate(tables):
        for message in faults_of_table(table):
            yield f"tables[{index}].{message.partition(':')[0]}", message.partition(": ")[2]
    for message in faults_of_names([table.name for table in tables]):
        yield "tables", message


def _faults_of_nodes(devices: int, per_node: int) -> Iterator[tuple[str, str]]:
    if devices > MOST_DEVICES:
        yield "cluster.devices", f"{devices:,} devices are more than the {MOST_DEVICES:,} that are answered"
    elif devices % per_node:
        yield "cluster.devices_per_node", f"{devices:,} devices are no whole number of nodes of {per_node:,} (nodes are alike)"


def _faults_of_dense(question: EmbeddingsQuestion) -> Iterator[tuple[str, str]]:
    """Stacks without layers, and products of vectors of unlike widths."""
    dense, node = question.file.dense, question.file.node
    if dense is not None:
        if len(dense.bottom) < 2:
            yield "dense.bottom", "two widths or more make layers (such as [13, 512, 64])"
        if not dense.top:
            yield "dense.top", "one width or more makes layers (such as [512, 256, 1])"
        unlike = [table for table in question.tables if table.dimension != dense.bottom[-1]] if dense.bottom else []
        if unlike and dense.interaction == "dot":
            table, more = unlike[0], f" and {len(unlike) - 1} more" if len(unlike) > 1 else ""
            yield (
                "dense.interaction",
                f"products of vectors need one width: the bottom ends with {dense.bottom[-1]:,}, and the table {quoted(table.name)} has "
                f"{table.dimension:,}{more} (take `interaction: concatenation`)",
            )
    if node is not None and not (node.hbm or node.ddr or node.ssd or node.intra_node or node.inter_node):
        yield "node", "there is nothing to choose (such as hbm: [{size: 32 GiB, price: 1000 USD}, {size: 80 GiB, price: 3000 USD}])"
    for name in ("hbm", "ddr", "ssd", "intra_node", "inter_node") if node is not None else ():
        if len(getattr(node, name)) > MOST_PARTS:
            yield f"node.{name}", f"{len(getattr(node, name)):,} options are more than the {MOST_PARTS:,} that are answered"


def _faults_of_options(question: EmbeddingsQuestion) -> Iterator[tuple[str, str]]:
    """Tables without any option, and cuts of columns that suit no table."""
    first = dict(zip(reversed(question.types), reversed(question.tables), strict=True))
    bare = [first[index] for index, options in enumerate(question.options) if not options]
    if bare:
        table, narrowest = bare[0], question.choices.narrowest
        more = f", nor for {len(bare) - 1} more" if len(bare) > 1 else ""
        why = "its own choices and the question's exclude each other"
        if "table" not in question.file.choices.sharding:
            why = f"rows are cut over no more devices than there are rows, columns in equal pieces of {narrowest} or more; allow `table`"
        shape = f"{table.rows:,} x {table.dimension:,}"
        yield "choices", f"no sharding and kernel is left for the table {quoted(table.name)} of {shape}{more} ({why})"
    if {"column", "table-column", "grid"} & set(question.file.choices.sharding):
        for columns in question.file.choices.columns:
            if columns > 1 and question.file.choices.columns == (columns,) and all(table.dimension % columns for table in question.tables):
                yield "choices.columns", f"the columns of no table can be cut in {columns} equal pieces"
