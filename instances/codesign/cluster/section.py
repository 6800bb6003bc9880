"""The cluster of a question as the user writes it: devices, their network as nodes and pods or as a list of dimensions, and the host."""

from dataclasses import dataclass
from typing import Annotated, Literal

from crossopt.crossflow.fields import (
    Bandwidth,
    BandwidthChoice,
    Bytes,
    CountChoice,
    Doc,
    Duration,
    EnergyPerBit,
    Positive,
    RatioChoice,
)
from crossopt.crossflow.hardware import Shape

Links = Literal["node", "pod", "cluster"]
"""Links of the hardware."""


@dataclass(frozen=True, slots=True)
class LinkSection:
    """Figures of a network level that differ from those of the hardware."""

    bandwidth: Annotated[Bandwidth | None, Doc("what a collective sustains per device and direction, about 0.8 of a port's rating")] = None
    latency: Annotated[Duration | None, Doc("per step of a collective")] = None
    setup: Annotated[Duration | None, Doc("per collective")] = None
    ring_latency: Annotated[
        Duration | None,
        Doc("per step of a ring over all ranks that share, if longer than `latency`; the hardware's where neither is given"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionSection:
    """One dimension of a network; figures that it leaves out are those of the hardware's links."""

    size: Annotated[
        CountChoice | Literal["divisors"],
        Doc("units of the dimension inside that it joins, devices of the innermost one; of several the best is asked for"),
    ]
    shape: Annotated[
        Shape,
        Doc(
            "one switch for all devices; `rails`, a switch for those with the same place in each unit; a ring; or links from each to each, "
            "both between devices with the same place"
        ),
    ] = "switch"
    links: Annotated[
        Links | None, Doc("of the hardware, whose figures these are; `node` as far as its usual node goes, `cluster` beyond")
    ] = None
    bandwidth: Annotated[
        BandwidthChoice | None,
        Doc(
            "what a collective of all ranks sustains per device and direction, over all its links along the dimension together; of it few "
            "ranks sustain the share that the hardware's file says of switches on a node's links (an A100 84 % between two)"
        ),
    ] = None
    latency: Annotated[Duration | None, Doc("per step of a collective")] = None
    setup: Annotated[Duration | None, Doc("per collective")] = None
    ring_latency: Annotated[
        Duration | None,
        Doc("per step of a ring over all ranks that share, if longer than `latency`; the hardware's where neither is given"),
    ] = None
    share: Annotated[
        RatioChoice | None,
        Doc("of the bandwidth of those links; an equal one where several dimensions have the same ones, all of it if all are switches"),
    ] = None


@dataclass(frozen=True, slots=True)
class HostSection:
    """The memory of the host, to which plans may offload."""

    memory: Annotated[Bytes, Doc("for each device")]
    bandwidth: Annotated[Bandwidth, Doc("of each device's link to it, in either direction")]
    energy: Annotated[EnergyPerBit, Doc("of the link and the memory; an estimate where nothing is said")] = 25e-12


@dataclass(frozen=True, slots=True)
class FailuresSection:
    """How often devices fail, and what a run loses then."""

    mean_time: Annotated[Duration, Doc("between two failures of one device; 50,000 h were seen on 16,384 H100 (Llama team 2024)")]
    checkpoint: Annotated[Duration, Doc("that writing a checkpoint holds the run up")]
    restart: Annotated[Duration, Doc("from a failure until the run goes on from its last checkpoint")]


@dataclass(frozen=True, slots=True)
class ClusterSection:
    """How many devices there are and how the network joins them."""

    devices: Annotated[CountChoice, Doc("how many; of several numbers the best is asked for")]
    devices_per_node: Annotated[
        Positive | None, Doc("devices on the innermost network level; the hardware's usual number, of a technology 1")
    ] = None
    devices_per_pod: Annotated[Positive | None, Doc("devices on the middle level, for networks of three levels")] = None
    node: Annotated[LinkSection, Doc("links inside a node")] = LinkSection()
    pod: Annotated[LinkSection, Doc("links inside a pod, where there are pods")] = LinkSection()
    cluster: Annotated[LinkSection, Doc("links between nodes, or between pods")] = LinkSection()
    network: Annotated[
        tuple[DimensionSection, ...] | None, Doc("dimensions, innermost first, in place of nodes and pods and their links")
    ] = None
    network_bandwidth: Annotated[
        Bandwidth | None, Doc("the most that the bandwidths of all dimensions, each of which is given, add up to")
    ] = None
    host: Annotated[HostSection | None, Doc("the host's memory for each device; without it no plan offloads")] = None
    reserved_memory: Annotated[
        Bytes | None, Doc("of each device that no plan may use; what the framework takes by the hardware's file where nothing is said")
    ] = None
    failures: Annotated[
        FailuresSection | None,
        Doc("the answer then says how much of the time failures and checkpoints leave, and deadlines and budgets of `goal` count it"),
    ] = None

    @property
    def number(self) -> int:
        """The number of devices of a question that asks for one."""
        [number] = self.devices
        return number
