"""The question about serving a language model as the user writes it in YAML, and its faults in sentences."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf, isfinite, isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import numpy as np

from crossopt.crossflow.fields import (
    Area,
    AreaChoice,
    Bandwidth,
    Bounds,
    Bytes,
    Choice,
    CountChoice,
    DieChoice,
    Doc,
    Duration,
    Money,
    NonZero,
    Positive,
    Power,
    PowerChoice,
    PowerPerArea,
    Prose,
    Ratio,
)
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue import engines
from crossopt.instances.catalogue.entries import DeviceEntry
from crossopt.instances.catalogue.huggingface import config_in, text_of, transformer_from_config
from crossopt.instances.catalogue.registry import build_device, device_or_file
from crossopt.instances.catalogue.registry import model as model_entry
from crossopt.instances.files.tables import text_of as text_of_table
from crossopt.instances.files.units import exact, quoted
from crossopt.instances.files.written import Written, short_repr
from crossopt.instances.serving.log import LoggedRequest, classes_of, requests_in

if TYPE_CHECKING:
    from crossopt.instances.serving.chip import FreeChip
    from crossopt.instances.serving.workers import Offer, Shape

Objective = Literal["throughput", "devices", "cost", "energy", "die_area"]
RATE_PLACES: Final = 9
"""Decimal places of rates, so that sums over workers are exact."""
FOR_RATE: Final = ("devices", "energy", "die_area")
"""Objectives of which the least is taken that serves a rate."""
Mode = Literal["together", "apart"]
Role = Literal["both", "prefill", "decode"]
Level = Literal["mean", "p90", "p95", "p99"]
Mix = Literal["one", "any"]
Pools = Literal["shared", "own", "any"]
JOINT: Final = " and "
"""Between the classes of a pool."""
BEYOND: Final[dict[str, tuple[float, float]]] = {"p50": (0.5, 0.5), "p90": (0.1, 0.05), "p95": (0.05, 0.025), "p99": (0.01, 0.005)}
"""Of percentiles the share of requests beyond, and the share of the time with more requests in flight: of limits half as much."""
MOST_DRAFTED: Final = 32
MOST_DEVICES, MOST_SHAPES, MOST_TOKENS, MOST_PIECES, MOST_KINDS, MOST_CLASSES = 100_000, 200_000, 1 << 21, 256, 4, 6
_BATCHES: Final = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
MOST_OF_GROUP: Final = _BATCHES[-1]
"""Requests in flight that are offered by default of each group of ranks with attention of its own."""
_POWERS: Final = (1, 2, 4, 8, 16)
DEFAULT_CACHE: Final[tuple[engines.CacheFormat, ...]] = ("bf16",)
"""What every engine takes where neither its options nor the checkpoint name a format: their default `auto` is the type of the model
(--kv-cache-dtype in the documentation of vLLM 0.25 and SGLang, 2026) or follows the checkpoint (KvCacheConfig of TensorRT-LLM 1.3)."""


@dataclass(frozen=True, slots=True)
class RequestsSection:
    """Requests of one kind."""

    input: Annotated[int, Bounds(1, MOST_TOKENS), Doc("tokens of a prompt")]
    output: Annotated[int, Bounds(1, MOST_TOKENS), Doc("tokens of an answer")]
    rate: Annotated[float | None, Bounds(0.0), NonZero(), Doc("requests a second that are served at least")] = None
    cached: Annotated[int, Bounds(0, MOST_TOKENS), Doc("tokens of a prompt that are in the cache already (prefix caching)")] = 0


@dataclass(frozen=True, slots=True)
class ClassSection:
    """Requests of one class of several."""

    input: Annotated[int, Bounds(1, MOST_TOKENS), Doc("tokens of a prompt")]
    output: Annotated[int, Bounds(1, MOST_TOKENS), Doc("tokens of an answer")]
    rate: Annotated[float, Bounds(0.0), NonZero(), Doc("requests a second")]
    cached: Annotated[int, Bounds(0, MOST_TOKENS), Doc("tokens of a prompt that are in the cache already (prefix caching)")] = 0


@dataclass(frozen=True, slots=True)
class LogSection:
    """A log of requests."""

    file: Annotated[str, Doc("path of a CSV file, or of JSON Lines, with arrivals, and tokens of prompts and answers")]
    run: Annotated[str | None, Doc("only requests with this text in the column `run`")] = None
    classes: Annotated[
        int, Bounds(1, MOST_CLASSES), Doc("classes of equal number, by the length of prompts, for which workers are planned")
    ] = 4


@dataclass(frozen=True, slots=True)
class LimitsSection:
    """Service levels."""

    ttft: Annotated[Duration | None, NonZero(), Doc("time to first token")] = None
    tpot: Annotated[Duration | None, NonZero(), Doc("time per output token after the first")] = None
    at: Annotated[
        Level | None,
        Doc(
            "whose latencies keep the limits: p90, p95 or p99 of requests that arrive at random, or the mean with all slots in use and no "
            "queue; default: p95, of stated workers mean"
        ),
    ] = None

    def with_level(self, name: str, limit: float | None) -> "LimitsSection":
        """The limits with one of them changed."""
        return LimitsSection(limit if name == "ttft" else self.ttft, limit if name == "tpot" else self.tpot, self.at)


@dataclass(frozen=True, slots=True)
class ChoicesSection:
    """What a copy of the model may be; what is left out takes its usual options."""

    tensor: Annotated[CountChoice | None, Doc("tensor degrees")] = None
    pipeline: Annotated[CountChoice, Doc("pipeline degrees")] = (1,)
    expert: Annotated[CountChoice | None, Doc("tensor ranks that hold whole experts; the rest split every expert")] = None
    data: Annotated[
        CountChoice | None,
        Doc(
            "groups of tensor ranks with attention of their own sequences, of models with experts; default: 1, and of models with latents "
            "(MLA) also a group for each rank of the largest tensor degree"
        ),
    ] = None
    batch: Annotated[CountChoice | None, Doc("requests of a copy in flight")] = None
    prefill_batch: Annotated[CountChoice, Doc("prompts at once of a worker that only prefills, where all fit into a step")] = (1, 2, 4, 8)
    chunk: Annotated[CountChoice | None, Doc("most tokens of prompts in a step (chunked prefill); default: the engine's")] = None
    weights: Annotated[
        tuple[engines.WeightFormat, ...],
        Choice(),
        Doc("formats of weights; default: that of `hub` (-FP8, -AWQ, -NVFP4) or `config`, else fp8 where the device has it, else bf16"),
    ] = ()
    cache: Annotated[tuple[engines.CacheFormat, ...], Choice(), Doc("formats of the cache; default: bf16, with every engine")] = ()
    mode: Annotated[
        tuple[Mode, ...], Choice(), Doc("prefill and decode together on each copy, or apart on copies of their own (disaggregated)")
    ] = ("together", "apart")
    shapes: Annotated[
        Mix | None,
        Doc("one: all workers of a part on one kind of device are alike; any: several shapes; default: one, at mean any"),
    ] = None
    pools: Annotated[Pools, Doc("classes share all workers, have their own, or any of both, class by class")] = "any"


@dataclass(frozen=True, slots=True)
class MatchingSection:
    """What is lost where prefill and decode workers are matched, and in the time to first token."""

    prefill: Annotated[Ratio, NonZero(), Doc("share of the prefill workers' rate that is reached")] = 1.0
    decode: Annotated[Ratio, NonZero(), Doc("share of the decode workers' rate that is reached")] = 1.0
    ttft: Annotated[float, Bounds(1.0, 1000.0), Doc("time to first token over that of the model: a factor for queues")] = 1.0
    link: Annotated[Bandwidth | None, NonZero(), Doc("bandwidth between prefill and decode workers; default: the device's network")] = None


@dataclass(frozen=True, slots=True)
class SpeculationSection:
    """Speculative decoding: tokens that a draft model proposes, and the network verifies in one step."""

    accepted: Annotated[
        dict[str, Annotated[float, Bounds(1.0, 100.0)]],
        Doc("mean tokens of a step by the number of drafted ones, as measured: {1: 1.8, 3: 2.6}; drafting none is offered, too"),
    ]
    layers: Annotated[int, Bounds(1, 256), Doc("layers of the draft model, each like one of the network (MTP and EAGLE: 1)")] = 1


@dataclass(frozen=True, slots=True)
class WorkerSection:
    """A worker whose figures are measured or computed elsewhere."""

    role: Annotated[Role, Doc("both, prefill or decode")]
    devices: Annotated[Positive, Doc("devices of one worker")]
    rate: Annotated[float, Bounds(0.0, 1.0e6), NonZero(), Doc("requests a second")]
    ttft: Annotated[Duration, Doc("time to first token; of decode workers none")] = 0.0
    tpot: Annotated[Duration, Doc("time per output token; of prefill workers none")] = 0.0


@dataclass(frozen=True, slots=True)
class ChipBudget:
    """Limits of a free chip."""

    die_area: Annotated[Area | None, Doc("of all dies together; default: its technology's")] = None
    package_area: Annotated[Area | None, Doc("of the interposer; default: its technology's")] = None
    power: Annotated[Power | None, Doc("default: the usual one")] = None
    power_density: Annotated[PowerPerArea | None, Doc("of the die; default: what its technology's usual cooling removes")] = None
    reticle: Annotated[Area | None, Doc("of one die; default: its technology's")] = None


@dataclass(frozen=True, slots=True)
class ChipChoices:
    """What may be chosen of a chip; what is left out is as usual."""

    compute_area: Annotated[AreaChoice | None, Doc("of the cores")] = None
    compute_power: Annotated[PowerChoice | None, Doc("of the cores")] = None
    l2_area: Annotated[AreaChoice | None, Doc("of the L2 memory")] = None
    hbm_stacks: Annotated[CountChoice | None, Doc("number of memory stacks")] = None
    node_network_area: Annotated[AreaChoice | None, Doc("of links inside a node")] = None
    network_area: Annotated[AreaChoice | None, Doc("of links between nodes")] = None
    dies: Annotated[DieChoice | None, Doc("number of equal dies in the package")] = None


@dataclass(frozen=True, slots=True)
class ChipSection:
    """A chip that is to be designed."""

    technology: Annotated[str, Doc("a technology of `crossopt list technologies`")]
    choices: Annotated[ChipChoices, Doc("options of its parts")]
    budget: Annotated[ChipBudget, Doc("limits of a chip")] = ChipBudget()
    kinds: Annotated[int, Bounds(1, 2), Doc("2: prefill and decode workers may have a chip of their own each")] = 1


Available = Annotated[int, Bounds(1, MOST_DEVICES)]
Rent = Annotated[Money, Bounds(1e-6, 1e9), NonZero()]


@dataclass(frozen=True, slots=True)
class ServingFile:
    """How is a model served within limits of latency?"""

    kind: Annotated[Literal["serving"], Doc("problem type")]
    requests: Annotated[RequestsSection | None, Doc("what is asked of the model")] = None
    classes: Annotated[dict[str, ClassSection] | None, Doc("in place of `requests`: classes of requests by name, with their rates")] = None
    log: Annotated[LogSection | None, Doc("in place of `requests`: a log of requests, which share all workers and are replayed")] = None
    model: Annotated[str | None, Doc("a name from `crossopt list workloads`")] = None
    config: Annotated[str | None, Doc("in place of `model`: path of a Hugging Face config.json, relative to this file")] = None
    hardware: Annotated[
        tuple[str, ...] | None,
        Choice(),
        Doc("devices of `crossopt list hardware`, or files of your own: one kind, or several of which plans may take some"),
    ] = None
    devices: Annotated[int | None, Bounds(1, MOST_DEVICES), Doc("devices at most, of all kinds; needed for throughput")] = None
    chip: Annotated[ChipSection | None, Doc("in place of `hardware`: a chip that is to be designed, in nodes of 8")] = None
    available: Annotated[dict[str, Available] | None, Doc("devices at most of each kind")] = None
    objective: Annotated[
        Objective,
        Doc(
            "throughput: most requests a second; devices: fewest for the rate; cost: least money for an output token, at that rate; "
            "energy: least for an output token at the rate, with all devices at their power limit; "
            "die_area: least area of all free chips for the rate"
        ),
    ] = "throughput"
    limits: Annotated[LimitsSection, Doc("service levels")] = LimitsSection()
    choices: Annotated[ChoicesSection, Doc("what may be chosen")] = ChoicesSection()
    engine: Annotated[engines.EngineName, Doc("serving engine, whose fitted constants price steps")] = "vllm"
    matching: Annotated[MatchingSection, Doc("losses of workers that are matched")] = MatchingSection()
    speculation: Annotated[SpeculationSection | None, Doc("speculative decoding by its acceptance length")] = None
    workers: Annotated[dict[str, WorkerSection] | None, Doc("in place of model and hardware: workers by name, with their figures")] = None
    context: Annotated[
        Positive | None,
        Doc("longest context of the model; longer requests are refused; default: that of the config.json, or of the published model"),
    ] = None
    memory: Annotated[Ratio | None, NonZero(), Doc("share of the memory that the engine may fill; default: the engine's")] = None
    reserve: Annotated[Bytes | None, Doc("of that for graphs and context of the engine; default: the engine's")] = None
    rent: Annotated[Rent | None, Doc("of a device and hour, for `cost`; default: the list price")] = None
    rents: Annotated[dict[str, Rent] | None, Doc("the same by kind of device")] = None
    hub: Annotated[str | None, Doc("the model's name on the hub or its folder, for exported command lines")] = None
    name: Annotated[str | None, Doc("name of the question; default: the file's")] = None
    description: Annotated[str | None, Prose(), Doc("a line for `crossopt list instances`")] = None


@dataclass(frozen=True, slots=True)
class RequestClass:
    """Requests of one length with their rate."""

    name: str
    input: int
    output: int
    rate: float | None
    cached: int = 0

    @property
    def computed(self) -> int:
        """Tokens of a prompt that are computed."""
        return self.input - self.cached


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """Options of a worker, all of them stated."""

    tensor: tuple[int, ...] = ()
    pipeline: tuple[int, ...] = ()
    expert: tuple[int, ...] = ()
    data: tuple[int, ...] = (1,)
    drafted: tuple[int, ...] = (0,)
    batch: tuple[int, ...] = ()
    prefill_batch: tuple[int, ...] = ()
    chunk: tuple[int, ...] = ()
    weights: tuple[engines.WeightFormat, ...] = ()
    cache: tuple[engines.CacheFormat, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class DeviceKind:
    """A kind of device, with what copies on it may be."""

    name: str
    hardware: Hardware
    most: int
    """Devices of this kind at most."""
    options: Options
    rent: float
    """Of a device and hour; nan if unknown."""
    usable_memory: float
    """Bytes of a device for weights, cache and activations."""
    kernels: str | engines.OwnKernels
    """What prices its kernels."""
    roles: tuple[Role, ...] = ()
    """Parts of workers that it may have; all where none is named."""


@dataclass(frozen=True, slots=True, eq=False)
class ServingQuestion:
    """Which copies of which shape serve the requests best?"""

    name: str
    file: ServingFile
    model: Transformer | None
    """None where the workers are stated."""
    kinds: tuple[DeviceKind, ...]
    """Empty where the workers are stated, or a chip is free and not chosen yet."""
    document: dict[str, Any] = field(repr=False)
    classes: tuple[RequestClass, ...]
    """Those of the question, or of a pool of workers; without a name where there are no classes."""
    chip: "FreeChip | None" = field(default=None, repr=False)
    log: tuple[LoggedRequest, ...] = field(default=(), repr=False)
    stated: engines.WeightFormat | None = None
    """The format of weights that the checkpoint states, by its name on the hub, its config.json or as its only one."""
    part: Role | None = None
    """Workers of one part alone, where a chip is sought for these."""
    offers: dict["Shape", "Offer"] = field(default_factory=dict, init=False, repr=False)
    """Workers priced so far, by their shapes."""

    __repr__ = short_repr

    @property
    def rate(self) -> float | None:
        """Requests a second that are served at least."""
        if self.log and self.file.objective == "throughput":
            return None
        rates = [item.rate for item in self.classes]
        return None if any(rate is None for rate in rates) else sum(rate or 0.0 for rate in rates)

    @property
    def shares(self) -> tuple[tuple[float, RequestClass], ...]:
        """Classes with their shares of the requests."""
        if len(self.classes) == 1:
            return ((1.0, self.classes[0]),)
        whole = sum(item.rate or 0.0 for item in self.classes)
        return tuple(((item.rate or 0.0) / whole, item) for item in self.classes)

    @property
    def output(self) -> float:
        """Mean tokens of an answer."""
        return sum(share * item.output for share, item in self.shares)

    @property
    def input(self) -> int:
        """Tokens of the longest prompt."""
        return max(item.input for item in self.classes)

    @property
    def label(self) -> str:
        """Of a pool of workers for some of the classes."""
        return "" if len(self.classes) == len(self.file.classes or "x") else JOINT.join(item.name for item in self.classes)

    @property
    def ttft(self) -> float:
        return self.file.limits.ttft or inf

    @property
    def tpot(self) -> float:
        return self.file.limits.tpot or inf

    @property
    def level(self) -> Level:
        """Whose latencies keep the limits."""
        return self.file.limits.at or ("mean" if self.model is None else "p95")

    @property
    def alike(self) -> bool:
        """Whether all workers of a part on one kind of device have one shape."""
        return (self.file.choices.shapes or ("any" if self.level == "mean" else "one")) == "one"

    @property
    def devices(self) -> int:
        """Devices of all kinds at most."""
        within = sum(kind.most for kind in self.kinds) if self.kinds else MOST_DEVICES
        return min(self.file.devices or MOST_DEVICES, within)

    @property
    def rent(self) -> float:
        """Of a device and hour, where there is one kind; nan if unknown."""
        return self.kinds[0].rent if self.kinds else (self.file.rent or nan)

    def kind_of(self, name: str) -> DeviceKind:
        """The kind of that name; the only one has none."""
        return next((kind for kind in self.kinds if kind.name == name), self.kinds[0])


def size_of(question: ServingQuestion) -> str:
    """How large the question is, in words."""
    file = question.file
    within = f"up to {question.devices:,} devices" if file.devices else "any number of devices"
    if file.workers is not None:
        return f"{len(file.workers)} kinds of workers, {within}"
    kinds = f" on {len(question.kinds)} kinds of devices" if len(question.kinds) > 1 else ""
    if question.chip is not None:
        return f"{question.chip.space.points:,} chips, {within}"
    options = question.kinds[0].options
    splits = len(options.tensor) * len(options.pipeline) * len(options.expert) * len(options.weights) * len(options.cache)
    return f"{splits:,} splits and formats, {len(options.batch)} batches{kinds}, {within}"


def read(written: Written) -> ServingQuestion:
    """The question; an InstanceError with every fault."""
    file = written.read_as(ServingFile)
    written.refuse(_faults(file))
    file, log = _with_log(file, written)
    question = _read(file, written)
    return replace(question, log=log) if log else question


def _with_log(file: ServingFile, written: Written) -> tuple[ServingFile, tuple[LoggedRequest, ...]]:
    """The file with classes in place of a log, and the requests of the log."""
    if file.log is None:
        return file, ()
    with written.reading("log.file"):
        text = written.files.text(file.log.file, text_of_table)
    try:
        log = requests_in(text, file.log.file, file.log.run)
    except ValueError as error:
        raise written.refused([written.fault("log.file", str(error))]) from error
    classes = {item.name: ClassSection(item.input, item.output, item.rate) for item in classes_of(log, file.log.classes)}
    return replace(file, classes=classes, choices=replace(file.choices, pools="shared")), log


def _read(file: ServingFile, written: Written) -> ServingQuestion:
    """The question of a file without faults of its own."""
    name = file.name or Path(written.source).stem
    if file.workers is not None:
        written.refuse(_faults_of_goal(file, file.rent))
        return ServingQuestion(name, file, None, (), written.document, _classes(file))
    shape, stated = _network(file, written)
    if file.chip is not None:
        return _of_free_chip(file, file.chip, shape, stated, written, name)
    entries = _entries(file, written)
    kinds = tuple(_device_kind(file, shape, stated, own, *entries[own]) for own in file.hardware or ())
    faults = [*_faults_of_goal(file, None if any(isnan(kind.rent) for kind in kinds) else kinds[0].rent), *_faults_of_lengths(file, shape)]
    for kind, (entry, _) in zip(kinds, entries.values(), strict=True):
        faults += _faults_of_options(file, kind.options, shape, min(entry.devices_per_node, engines.MOST_RANKS))
        faults += _faults_of_formats(file, kind.name, entry.peak)
    written.refuse(dict.fromkeys(faults))
    return ServingQuestion(name, file, shape, kinds, written.document, _classes(file), stated=stated)


def _of_free_chip(
    file: ServingFile, section: ChipSection, shape: Transformer, stated: engines.WeightFormat | None, written: Written, name: str
) -> ServingQuestion:
    from crossopt.instances.serving.chip import NODE, free_chip  # noqa: PLC0415 - most questions name a device

    chip = free_chip(written, section.technology)
    options = _options(file, shape, stated, dict(chip.peaks), NODE)
    faults = [
        *_faults_of_goal(file, file.rent),
        *_faults_of_lengths(file, shape),
        *_faults_of_options(file, options, shape, NODE),
        *_faults_of_formats(file, chip.name, dict(chip.peaks)),
    ]
    written.refuse(dict.fromkeys(faults))
    return ServingQuestion(name, file, shape, (), written.document, _classes(file), chip, stated=stated)


PREFILL_CHIP, DECODE_CHIP = "prefill chip", "decode chip"


def with_chip(question: ServingQuestion, choice: Mapping[str, float], decode: Mapping[str, float] | None = None) -> ServingQuestion:
    """The question on the chip of a design, or with another one for decode workers; a ValueError where a design is none of the question or
    breaks a budget."""
    from crossopt.instances.serving.chip import device_of_choice  # noqa: PLC0415 - most questions name a device

    if question.chip is None:
        if choice or decode:
            raise ValueError("the question has no free chip")
        return question
    if not decode:
        return on_hardware(question, device_of_choice(question.chip, choice))
    if question.file.chip is None or question.file.chip.kinds < 2:
        raise ValueError("the question has one kind of chip")
    parts: tuple[tuple[str, Role, Mapping[str, float]], ...] = ((PREFILL_CHIP, "prefill", choice), (DECODE_CHIP, "decode", decode))
    known = [(name, role, on_hardware(question, device_of_choice(question.chip, own)).kinds[0]) for name, role, own in parts]
    return replace(question, kinds=tuple(replace(kind, name=name, roles=(role,)) for name, role, kind in known))


def on_hardware(question: ServingQuestion, hardware: Hardware) -> ServingQuestion:
    """The question of a free chip on one, or on several as arrays."""
    file, model, chip = question.file, question.model, question.chip
    if model is None or chip is None:
        raise ValueError("the question has no free chip")
    options = _options(file, model, question.stated, dict(chip.peaks), hardware_node())
    memory = _usable_memory(file, hardware)
    kind = DeviceKind(chip.name, hardware, MOST_DEVICES, options, file.rent or nan, memory, chip.kernels)
    return replace(question, kinds=(kind,))


def roomier(question: ServingQuestion, what: str, factor: float) -> ServingQuestion:
    """The question with so many times as much of a resource on every device."""
    kinds = []
    for kind in question.kinds:
        hardware, room = kind.hardware, kind.usable_memory
        match what:
            case "memory":
                room += (factor - 1.0) * float(hardware.dram.capacity)
            case "memory bandwidth":
                hardware = replace(hardware, dram=replace(hardware.dram, bandwidth=hardware.dram.bandwidth * factor))
            case "throughput":
                hardware = replace(hardware, throughput=hardware.throughput * factor)
            case _:
                links = tuple(replace(link, bandwidth=link.bandwidth * factor) for link in hardware.links)
                hardware = replace(hardware, links=links)
        kinds.append(replace(kind, hardware=hardware, usable_memory=room))
    return replace(question, kinds=tuple(kinds))


def hardware_node() -> int:
    """Free chips of a node."""
    from crossopt.instances.serving.chip import NODE  # noqa: PLC0415 - most questions name a device

    return NODE


def _classes(file: ServingFile) -> tuple[RequestClass, ...]:
    if file.classes is not None:
        return tuple(RequestClass(name, own.input, own.output, own.rate, own.cached) for name, own in file.classes.items())
    own = file.requests
    return (RequestClass("", own.input, own.output, own.rate, own.cached),) if own is not None else ()


def of_classes(question: ServingQuestion, names: Collection[str]) -> ServingQuestion:
    """The question of the workers of some classes."""
    return replace(question, classes=tuple(item for item in question.classes if item.name in names))


def _entries(file: ServingFile, written: Written) -> dict[str, tuple[DeviceEntry, str]]:
    """What is known of each kind of device, registered or in a file of the user's, and its label."""
    found: dict[str, tuple[DeviceEntry, str]] = {}
    for gpu in file.hardware or ():
        try:
            with written.reading("hardware"):
                found[gpu] = device_or_file(gpu, written.files)
        except ValueError as error:
            raise written.refused([written.fault("hardware", str(error))]) from error
        peaks = found[gpu][0].peak
        if not {"bf16", "fp16"} & set(peaks):
            has = ", ".join(peaks)
            fault = f"{quoted(gpu)} has no peak in 16 bits, in which models are served (it has {has}; give bf16 or fp16)"
            raise written.refused([written.fault("hardware", fault)])
    labels = [label for _, label in found.values()]
    if twice := next((label for label in labels if labels.count(label) > 1), None):
        raise written.refused(
            [written.fault("hardware", f"two kinds of devices are called {quoted(twice)} (give one of the files a `name`)")]
        )
    return found


def _device_kind(
    file: ServingFile, shape: Transformer, stated: engines.WeightFormat | None, gpu: str, entry: DeviceEntry, name: str
) -> DeviceKind:
    hardware = build_device(entry, name, "bf16" if "bf16" in entry.peak else "fp16", 2)
    rent = (file.rents or {}).get(gpu) or file.rent or (entry.rent.price if entry.rent else nan)
    most = (file.available or {}).get(gpu, MOST_DEVICES)
    options = _options(file, shape, stated, entry.peak, min(entry.devices_per_node, engines.MOST_RANKS))
    return DeviceKind(name, hardware, most, options, rent, _usable_memory(file, hardware), engines.kernels_in(entry, name))


def _usable_memory(file: ServingFile, hardware: Hardware) -> float:
    entry = engines.ENGINES[file.engine]
    share = entry.memory if file.memory is None else file.memory
    left: Any = np.maximum(hardware.dram.capacity * share - (entry.reserve if file.reserve is None else file.reserve), 0.0)
    return left if np.ndim(left) else float(left)


def _network(file: ServingFile, written: Written) -> tuple[Transformer, engines.WeightFormat | None]:
    """The model, and the format of weights that its checkpoint states."""
    try:
        if file.model is not None:
            shape, stated = model_entry(file.model).transformer, engines.own_format(file.model)
        else:
            with written.reading("config"):
                text = written.files.text(file.config or "", text_of)
            settings = config_in(text, file.config or "")
            shape, stated = transformer_from_config(settings), engines.format_of_config(settings)
    except ValueError as error:
        hub = f"; a name on the hub belongs in hub: {file.model}" if file.model and "/" in file.model else ""
        raise written.refused([written.fault("config" if file.model is None else "model", f"{error}{hub}")]) from error
    if shape is None:
        raise written.refused([written.fault("model", f"{file.model} is no transformer, others are not served (name a language model)")])
    return shape, engines.format_in(file.hub or "") or stated


def _options(file: ServingFile, shape: Transformer, stated: engines.WeightFormat | None, peaks: dict[str, float], node: int) -> Options:
    """The options of the question with the usual ones in place of those that it leaves out."""
    choices, entry = file.choices, engines.ENGINES[file.engine]
    offered = tuple(
        weight for weight in choices.weights if len(file.hardware or ()) == 1 or engines.PEAKS.get(weight, "bf16") in (*peaks, "bf16")
    )
    weights = (
        offered or choices.weights or (engines.usual_format(stated, "fp8-block" if file.model in engines.BLOCK_SCALED else "fp8", peaks),)
    )
    tensor = choices.tensor or tuple(power for power in _POWERS if power <= node and shape.heads % power == 0)
    groups = max(tensor) if shape.latent and shape.experts > 1 and file.chip is None else 1
    most = max((*(choices.data or ()), groups))
    return Options(
        tensor=tensor,
        pipeline=choices.pipeline,
        expert=choices.expert
        or ((1,) if shape.experts == 1 else tuple(power for power in _POWERS if power <= node and shape.experts % power == 0)),
        data=choices.data or tuple(dict.fromkeys((1, groups))),
        drafted=(0, *sorted(int(count) for count in file.speculation.accepted)) if file.speculation else (0,),
        batch=choices.batch or (*_BATCHES, *(most * batch for batch in _BATCHES if most * batch > MOST_OF_GROUP)),
        prefill_batch=choices.prefill_batch,
        chunk=choices.chunk or (entry.chunk,),
        weights=weights,
        cache=choices.cache or DEFAULT_CACHE,
    )


def _faults(file: ServingFile) -> Iterator[tuple[str, str]]:
    """Faults of what is there and what is not."""
    yield from _faults_of_requests(file)
    if file.workers is not None:
        for key in ("model", "config", "hardware", "available", "rents", "chip", "speculation"):
            if getattr(file, key) is not None:
                yield key, f"{key} is not needed where workers are stated (take one of them away)"
        if not file.workers:
            yield "workers", "no worker is stated (give one by name, or model and hardware)"
        yield from _faults_of_workers(file)
        if file.limits.at not in (None, "mean"):
            yield "limits.at", "queues of stated workers are not known (state latencies at that percentile, and at: mean)"
        return
    if (file.model is None) == (file.config is None):
        yield "model" if file.model else "", "one of model and config is needed (such as model: llama3-70b)"
    yield from _faults_of_machine(file)
    yield from _faults_of_two_chips(file)
    yield from _faults_of_drafts(file)
    for key, by_kind in (("available", file.available), ("rents", file.rents)):
        for name in set(by_kind or ()) - set(file.hardware or ()):
            yield f"{key}.{name}", f"{quoted(name)} is none of the devices (add it to hardware, or take it away)"
    if file.choices.shapes == "any" and file.limits.at != "mean":
        yield "choices.shapes", "queues in front of several shapes are not priced (take shapes: one, or limits: {at: mean})"


def _faults_of_drafts(file: ServingFile) -> Iterator[tuple[str, str]]:
    """Of numbers of drafted tokens, and of those that a step gives."""
    for count, accepted in (file.speculation.accepted if file.speculation else {}).items():
        where = f"speculation.accepted.{count}"
        if not (count.isdecimal() and count == str(int(count)) and 1 <= int(count) <= MOST_DRAFTED):
            yield where, f"{quoted(count)} is no number of drafted tokens (give a whole number from 1 to {MOST_DRAFTED})"
        elif accepted > int(count) + 1:
            yield (
                where,
                f"a step that verifies {count} drafted tokens gives {int(count) + 1} at most, not {accepted:g} (count its own one, too)",
            )
    if file.speculation is not None and not file.speculation.accepted:
        yield "speculation.accepted", "no number of drafted tokens is given (such as {3: 2.6})"


def _faults_of_requests(file: ServingFile) -> Iterator[tuple[str, str]]:
    for item in _classes(file):
        if item.cached >= item.input:
            where = f"classes.{item.name}.cached" if item.name else "requests.cached"
            yield where, f"{item.cached:,} tokens are cached of a prompt of {item.input:,}, of which one at least is computed (cache fewer)"
    if sum(part is not None for part in (file.requests, file.classes, file.log)) != 1:
        where = "requests" if file.requests else ""
        yield where, "one of requests, classes and log is needed (such as requests: {input: 4000, output: 500})"
    if file.log is not None and file.workers is not None:
        yield "log", "requests of a log are replayed by a model on devices (state requests where workers are stated)"
    if file.classes is None:
        return
    if not 1 <= len(file.classes) <= MOST_CLASSES:
        yield "classes", f"{len(file.classes)} classes are given, 1 to {MOST_CLASSES} are needed"
    for name in file.classes:
        if not name or JOINT in name:
            yield f"classes.{name}", f"a class has a name without {quoted(JOINT.strip())} in it (call it otherwise)"
    if file.objective == "throughput" or file.workers is not None:
        yield "classes", "classes have rates, for which devices, cost or die_area of a model are minimised (add objective: devices)"
    if file.chip is not None and file.choices.pools != "shared":
        yield "choices.pools", "on a free chip classes share all workers (add choices: {pools: shared})"


def _faults_of_machine(file: ServingFile) -> Iterator[tuple[str, str]]:
    """Of the devices or the chip."""
    if file.chip is not None:
        for key in ("hardware", "available", "rents"):
            if getattr(file, key) is not None:
                yield key, f"{key} is not needed where the chip is free (take one of them away)"
        if file.choices.data not in (None, (1,)):
            yield "choices.data", "on a free chip all ranks share attention, as steps of groups are not bounded (leave this out)"
    elif file.hardware is None:
        yield "hardware", "a device is needed (such as hardware: h100-sxm; `crossopt list hardware` names them)"
    elif len(file.hardware) > MOST_KINDS:
        yield "hardware", f"{len(file.hardware)} kinds of devices are more than the {MOST_KINDS} of a question (name fewer)"


def _faults_of_two_chips(file: ServingFile) -> Iterator[tuple[str, str]]:
    if file.chip is None or file.chip.kinds == 1:
        return
    if file.objective not in FOR_RATE:
        yield "chip.kinds", "two chips are sought for a rate (take objective: devices, energy or die_area, or one chip)"
    if "apart" not in file.choices.mode:
        yield "choices.mode", "workers that do both have one chip (allow apart, or take chip: {kinds: 1})"


def _faults_of_workers(file: ServingFile) -> Iterator[tuple[str, str]]:
    roles = {worker.role for worker in (file.workers or {}).values()}
    for role, other in (("prefill", "decode"), ("decode", "prefill")):
        if role in roles and other not in roles:
            yield "workers", f"there are {role} workers and none for {other} (state both, or workers of the role both)"
    for name, worker in (file.workers or {}).items():
        if not (isfinite(worker.ttft) and isfinite(worker.tpot) and isfinite(worker.rate)):
            yield f"workers.{name}", "its figures are not all finite (leave the worker out where nothing was measured)"
        elif (exact(worker.rate) * 10**RATE_PLACES).denominator != 1:
            yield (
                f"workers.{name}.rate",
                f"{worker.rate} has more than {RATE_PLACES} decimal places, in which rates add up (round it)",
            )
        elif (cut := units_reached(file, worker) % 1) and cut * 1_000_000 > units_reached(file, worker):
            yield f"workers.{name}.rate", f"{worker.rate} is so small that rounding down its share loses a millionth (give a larger rate)"


def units_reached(file: ServingFile, worker: WorkerSection) -> Fraction:
    """Units of rate that a stated worker reaches, before they are rounded down."""
    share = {"both": 1.0, "prefill": file.matching.prefill, "decode": file.matching.decode}[worker.role]
    return exact(worker.rate) * exact(share) * 10**RATE_PLACES


def _faults_of_goal(file: ServingFile, rent: float | None) -> Iterator[tuple[str, str]]:
    if file.objective == "die_area" and file.chip is None:
        yield "objective", "only free chips have an area (ask for devices, or give a chip)"
    asked = _classes(file)
    rate = asked[0].rate if asked else None
    if file.objective == "energy" and file.workers is not None:
        yield "objective", "the power of stated workers is not known (ask for devices or cost)"
    if file.objective in FOR_RATE and rate is None:
        yield "requests.rate", "the fewest devices for which rate? (add requests: {rate: 40} or --rate 40, each second)"
    limited = file.devices is not None or set(file.available or ()) >= set(file.hardware or ("",))
    if file.objective not in FOR_RATE and not limited and not (file.objective == "cost" and rate):
        yield "devices", "how many devices are there at most? (add devices: 32, or objective: devices with a rate)"
    if file.objective == "cost" and rate is None and len(file.hardware or ()) > 1:
        yield (
            "requests.rate",
            "the cheapest devices of several kinds for which rate? (add requests: {rate: 40} or --rate 40, each second)",
        )
    if file.objective == "cost" and rent is None:
        yield "rent", "what does a device cost an hour? (add rent: 2.5 USD)"
    if all(item.output == 1 for item in asked) and file.choices.mode == ("apart",):
        yield "choices.mode", "answers of one token need no decode workers (allow together, or ask for output: 2 and more)"


def stated_context(file: ServingFile, shape: Transformer) -> int | None:
    """The longest context that the question or the config.json states."""
    return file.context or (shape.sequence if file.config is not None else None)


def longest_context(file: ServingFile, shape: Transformer) -> int | None:
    """The same, and of a registered model that of a published checkpoint."""
    return stated_context(file, shape) or (model_entry(file.model).context if file.model is not None else None)


def _faults_of_lengths(file: ServingFile, shape: Transformer) -> Iterator[tuple[str, str]]:
    longest = longest_context(file, shape)
    for item in _classes(file):
        whole = item.input + item.output
        if longest is None or whole <= longest:
            continue
        yield (
            f"classes.{item.name}" if item.name else "requests",
            f"{whole:,} tokens of input and output are beyond the context of {longest:,} "
            "(ask for fewer, or state a longer one by context or --context)",
        )


def _faults_of_options(file: ServingFile, options: Options, shape: Transformer, node: int) -> Iterator[tuple[str, str]]:
    for tensor in options.tensor:
        if shape.heads % tensor:
            yield "choices.tensor", f"{tensor} ranks cannot share {shape.heads} heads evenly (take divisors of {shape.heads})"
        elif tensor > node:
            yield (
                "choices.tensor",
                f"{tensor} ranks are more than the {node} of which exchanges are priced, inside a node (take {node} or fewer)",
            )
    for pipeline in options.pipeline:
        if pipeline > shape.layers:
            yield "choices.pipeline", f"{pipeline} stages are more than the {shape.layers} layers (take fewer)"
    yield from _faults_of_chunks(file, options)
    yield from _faults_of_experts(file, options, shape)
    sizes = (
        options.tensor,
        options.pipeline,
        options.expert,
        options.data,
        options.drafted,
        options.batch,
        options.chunk,
        options.weights,
        options.cache,
    )
    shapes = 1
    for column in sizes:
        shapes *= len(column)
    if shapes > MOST_SHAPES:
        yield "choices", f"{shapes:,} combinations are more than the {MOST_SHAPES:,} that are priced (leave fewer options)"


def _faults_of_experts(file: ServingFile, options: Options, shape: Transformer) -> Iterator[tuple[str, str]]:
    """Of degrees of experts, and of groups with attention of their own."""
    for expert in options.expert:
        if expert > 1 and shape.experts == 1:
            yield "choices.expert", "the model has no experts (leave this out)"
        elif shape.experts % expert:
            yield "choices.expert", f"{expert} ranks cannot share {shape.experts} experts evenly (take divisors of {shape.experts})"
    for data in file.choices.data or ():
        if data > 1 and shape.experts == 1:
            yield "choices.data", "the model has no experts, of which copies could share more than replicas do (leave this out)"
        elif not any(tensor % data == 0 for tensor in options.tensor):
            yield "choices.data", f"{data} groups divide none of the tensor degrees (groups are of tensor ranks)"
    if file.choices.expert and not any(tensor % expert == 0 for tensor in options.tensor for expert in options.expert):
        yield "choices.expert", "no degree divides a tensor degree (experts are spread over tensor ranks)"


def _faults_of_chunks(file: ServingFile, options: Options) -> Iterator[tuple[str, str]]:
    for chunk in options.chunk:
        if (pieces := -(-(tokens := max(item.computed for item in _classes(file))) // chunk)) > MOST_PIECES:
            least = -(-tokens // MOST_PIECES)
            yield "choices.chunk", f"{chunk} tokens make {pieces:,} steps of a prompt, {MOST_PIECES} are priced (take {least:,} or more)"


def _faults_of_formats(file: ServingFile, gpu: str, peaks: dict[str, float]) -> Iterator[tuple[str, str]]:
    for weights in file.choices.weights:
        needed = engines.PEAKS.get(weights)
        if needed is not None and needed not in peaks and (len(file.hardware or ()) == 1 or len(file.choices.weights) == 1):
            has = ", ".join(peaks)
            yield "choices.weights", f"{gpu} has no peak in {needed}, which {quoted(weights)} needs (it has {has}; take int8, int4 or bf16)"
