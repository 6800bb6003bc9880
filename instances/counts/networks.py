"""Networks on devices: the best batch and number format within a latency, priced from the operators of a graph.

With T the seconds of a forward pass of b requests, a device serves b / T requests a second. A request may just miss a batch, so that it
waits for one and is served in the next: its latency is 2 T at most (Nexus, SOSP 2019). The best batch and format are those of most requests
a second, whatever the fleet is, since devices of a kind differ in nothing else.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Annotated

from crossopt.crossflow.fields import Choice, CountChoice, Doc, Duration, NonZero
from crossopt.crossflow.operator_costs import Merging, batch_of, passes
from crossopt.crossflow.operator_graph import OperatorGraph, folded
from crossopt.instances.catalogue.entries import DeviceEntry
from crossopt.instances.catalogue.formats import BITS, Device, Format, device_in
from crossopt.instances.catalogue.registry import UnknownNameError, device_or_file
from crossopt.instances.files.graphs import text_of
from crossopt.instances.files.written import Written
from crossopt.instances.operators.graph_file import graph_in

MOST_BATCH, MOST_BATCHES, MOST_FOLD = 65_536, 64, 16
_USUAL_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_WAITS = 2.0


@dataclass(frozen=True, slots=True)
class NetworkSection:
    """A network that answers the requests of a class, one image or sample each."""

    graph: Annotated[str, Doc("a graph of operators that `crossopt import` wrote, relative to this file")]
    latency: Annotated[Duration | None, NonZero(), Doc("the most that a request may take: the batch before it and its own")] = None
    formats: Annotated[tuple[Format, ...], Choice(), Doc("offered for the whole network, on devices that have a peak in them")] = ("bf16",)
    batches: Annotated[CountChoice, Doc("requests of a batch")] = _USUAL_BATCHES
    folds: Annotated[CountChoice, Doc("requests stacked along the channels of one (FoldedCNN); 1: none")] = (1,)
    merging: Annotated[
        Merging, Doc("operators that run within the one before: batch norms behind convolutions, also activations, or none")
    ] = "activations"


@dataclass(frozen=True, slots=True)
class NetworkRun:
    """A network on a device at a batch and in a format."""

    format: Format
    batch: int
    time: float
    """Seconds of the batch."""
    rate: float
    """Requests a second."""
    utilisation: float
    """Share of the peak in that format that multiply-adds of the network, as it stands unfolded, reach."""
    fold: int = 1
    """Requests that are stacked along the channels of one."""

    @property
    def latency(self) -> float:
        """Seconds of a request that waits for the batch before."""
        return _WAITS * self.time


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """A network with what is asked of it."""

    section: NetworkSection
    graph: OperatorGraph

    @property
    def work(self) -> float:
        """FLOPs of a request."""
        return 2.0 * self.graph.macs / (batch_of(self.graph) or 1)


def formats_on(network: Network, entry: DeviceEntry) -> tuple[Format, ...]:
    """Formats of the network that the device has."""
    return tuple(dtype for dtype in network.section.formats if dtype in entry.peak or dtype in entry.integer_peak)


def device_for(network: Network, entry: DeviceEntry, name: str) -> Device | None:
    """The device in the formats of the network that it has; None where it has none."""
    formats = formats_on(network, entry)
    return device_in(entry, name, formats[0], formats, {}) if formats else None


def runs_on(network: Network, device: Device) -> Iterator[NetworkRun]:
    """All batches, folds and formats that fit into the memory."""
    section = network.section
    graphs = {fold: folded(network.graph, fold) if fold > 1 else network.graph for fold in section.folds}
    for dtype, hardware in device.formats.items():
        room, peak = float(hardware.dram.capacity - hardware.reserved_memory), float(hardware.throughput)
        for fold, graph in graphs.items():
            own, batches = fold * (batch_of(graph) or 1), [batch for batch in section.batches if batch % fold == 0]
            found = passes(graph, section.merging, [batch / own for batch in batches], BITS[dtype] / 8.0, hardware)
            for batch, time, memory in zip(batches, found.time.tolist(), found.memory.tolist(), strict=True):
                if memory <= room:
                    yield NetworkRun(dtype, batch, time, batch / time, batch * network.work / time / peak, fold)  # type: ignore[arg-type]


def best_run(network: Network, device: Device, soonest: bool = False) -> NetworkRun | None:
    """The run of most requests a second within the latency, of equal ones the one of the smallest batch, or the soonest one of all; None
    where there is none."""
    limit, runs = network.section.latency or inf, list(runs_on(network, device))
    if soonest:
        return min(runs, key=lambda run: run.time, default=None)
    return max((run for run in runs if run.latency <= limit), key=lambda run: (run.rate, -run.batch, -run.fold), default=None)


def network_faults(name: str, section: NetworkSection, graph: OperatorGraph) -> Iterator[tuple[str, str]]:
    """Faults of a network with its graph."""
    where = f"networks.{name}"
    if batch_of(graph) is None:
        yield f"{where}.graph", "the first axes of its inputs are no batch that they have in common (import the network with one)"
    if not section.formats:
        yield f"{where}.formats", "a format is needed (such as formats: [bf16, int8])"
    if not 1 <= len(section.batches) <= MOST_BATCHES or max(section.batches) > MOST_BATCH:
        yield f"{where}.batches", f"1 to {MOST_BATCHES} batches of up to {MOST_BATCH:,} are needed"
    yield from _fold_faults(f"{where}.folds", section, graph)
    narrow = next((dtype for dtype in section.formats if BITS[dtype] < BITS["bf16"]), None)
    if narrow is not None and any(node.operator == "attention" for node in graph.nodes):
        yield f"{where}.formats", f"attention is not computed in {narrow} (take bf16 or fp16; `kind: layers` mixes formats)"


def _fold_faults(where: str, section: NetworkSection, graph: OperatorGraph) -> Iterator[tuple[str, str]]:
    if max(section.folds) > MOST_FOLD:
        yield where, f"at most {MOST_FOLD} requests are folded into one"
    elif odd := [fold for fold in section.folds if not any(batch % fold == 0 for batch in section.batches)]:
        yield where, f"no batch is a multiple of {odd[0]} (add one to batches)"
    elif max(section.folds) > 1:
        try:
            folded(graph, max(section.folds))
        except ValueError as error:
            yield where, f"{error} (leave folds out)"


class PricedNetworks:
    """Networks on all kinds of devices."""

    def __init__(self, networks: Mapping[str, Network], entries: Mapping[str, DeviceEntry]) -> None:
        self.runs = dict[tuple[str, str], NetworkRun]()
        """Best runs by network and device."""
        self.fastest = dict[str, tuple[float, str]]()
        """Least latency of the networks that miss theirs somewhere, and its device."""
        self.peaks = dict[str, float]()
        """FLOP/s of each device in its fastest format of the networks."""
        for kind, entry in entries.items():
            peaks = [0.0]
            for name, network in networks.items():
                if (device := device_for(network, entry, kind)) is None:
                    continue
                peaks += [float(hardware.throughput) for hardware in device.formats.values()]
                if (run := best_run(network, device)) is not None:
                    self.runs[name, kind] = run
                elif quickest := best_run(network, device, soonest=True):
                    self.fastest[name] = min(self.fastest.get(name, (inf, "")), (quickest.latency, kind))
            self.peaks[kind] = max(peaks)


def networks_in(sections: Mapping[str, NetworkSection], written: Written) -> dict[str, Network]:
    """Networks with their graphs; an InstanceError with every fault."""
    found = dict[str, Network]()
    for name, section in sections.items():
        with written.reading(f"networks.{name}.graph"):
            found[name] = Network(section, graph_in(written.files.text(section.graph, text_of), section.graph))
    written.refuse(fault for name, network in found.items() for fault in network_faults(name, network.section, network.graph))
    return found


def entries_of(hardware: Mapping[str, str | None], written: Written) -> dict[str, DeviceEntry]:
    """What is known of kinds of devices, by their own names or others that are given; an InstanceError where one is unknown."""
    found = dict[str, DeviceEntry]()
    for kind, other in hardware.items():
        index = f"devices.{kind}" if other is None else f"devices.{kind}.hardware"
        try:
            with written.reading(index):
                found[kind], _ = device_or_file(other or kind, written.files)
        except (UnknownNameError, ValueError) as error:
            raise written.refused([written.fault(index, str(error))]) from error
    return found
