"""On which machine a run was measured: from the spelling of its source to a device of the registry, its nodes and its network."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from crossopt.instances.catalogue.registry import device, names
from crossopt.instances.files.units import quoted

SUSTAINED: Final = 0.8
"""Share of a port's nominal bandwidth that collectives of a training run sustain: fits those of VIA-Research/vTrain on 64 to 256 A100."""
_GIGA: Final = 1e9

_KIND: Final = re.compile(r"(?<![a-wyz])(gb300|gb200|gh200|b300|b200|h800|h200|h100|h20|a800|a100|v100)(?![0-9])")
_MEMORY: Final = re.compile(r"(?<![0-9])(\d{2,3})\s?g")
_DEVICES: Final[Mapping[str, Mapping[str, str]]] = {
    "v100": {"16": "v100-16g", "32": "v100-32g", "": "v100-32g"},
    "a100": {"40": "a100-40g", "80": "a100-80g", "": "a100-80g"},
    "h100": {"80": "h100-sxm", "": "h100-sxm"},
    "h200": {"141": "h200", "": "h200"},
    "b200": {"180": "b200", "192": "b200", "": "b200"},
    "b300": {"288": "b300", "": "b300"},
    "gb200": {"186": "gb200-nvl72", "192": "gb200-nvl72", "": "gb200-nvl72"},
}
"""The device of each kind with so many gigabytes; the one without is meant where the memory is not stated, or another."""
_ON_A_CARD: Final = re.compile(r"pcie|nvl(?![a-z0-9])")
"""Cards have other clocks and links than the modules of the registry."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A device of the registry, how many share a node, and its links where they differ from the registry's (bytes a second, sustained)."""

    gpu: str
    devices_per_node: int
    node_bandwidth: float | None = None
    cluster_bandwidth: float | None = None
    memory_bandwidth: float | None = None
    """Peak bytes a second of a device's memory."""
    power: float | None = None
    """Watts to which it is held, below its rating."""


@dataclass(frozen=True, slots=True)
class Site:
    """What is known of the machine of a source and differs from the registry: nominal gigabytes a second for each device."""

    source: str
    """A pattern that its sources match."""
    kind: str
    """The kind of device, the empty text for all."""
    inter_node: float | None = None
    intra_node: float | None = None
    devices_per_node: int | None = None
    memory: float | None = None
    power: float | None = None
    """Watts."""


SITES: Final = (
    Site("vtrain", "a100", inter_node=12.5),  # 800 Gb/s for a node of eight: VIA-Research/vTrain
    Site("bloom|bigscience|jean zay", "a100", inter_node=6.25),  # four 100 Gb/s Omni-Path links for a node of eight: model card of BLOOM
    Site("bloom|bigscience|jean zay", "v100", inter_node=12.5, devices_per_node=4),  # the same links, four devices a node
    Site("internevo", "a100", inter_node=6.25),  # four 100 Gb/s ports for a node of eight: InternLM/InternEvo
    Site("fms-fsdp", "a100", inter_node=6.25),  # 400 Gb/s for a node of eight: foundation-model-stack/fms-fsdp
    Site("fms-fsdp", "h100", inter_node=12.5),  # 800 Gb/s for a node of eight
    Site("megatron-llama", "a100", inter_node=12.5),  # four 200 Gb/s ports for a node of eight: alibaba/Megatron-LLaMA
    Site("torchtitan", "h100", memory=2400.0, power=500.0),  # Grand Teton: benchmarks/llama3_h100_202412_torchtitan.md
    Site("rapid-llm", "a100", intra_node=25.0),  # four devices on PCI Express: nanocad-lab/Rapid-LLM
)


def machine(spelling: str, source: str, devices_per_node: int | None, inter_node: float | None) -> Machine:
    """The machine of a run; what the row states of its nodes and ports (nominal gigabytes a second for each device) comes first.

    A ValueError says why the registry has no such device.
    """
    kind, name = _read(spelling)[0], gpu_named(spelling)
    site = next((site for site in SITES if site.kind in {kind, ""} and re.search(site.source, source.casefold())), Site("", ""))
    dgx_2 = 16 if "dgx 2" in _plain(spelling) else None
    return Machine(
        gpu=name,
        devices_per_node=devices_per_node or site.devices_per_node or dgx_2 or device(name).devices_per_node,
        node_bandwidth=_sustained(site.intra_node),
        cluster_bandwidth=_sustained(inter_node or site.inter_node),
        memory_bandwidth=None if site.memory is None else site.memory * _GIGA,
        power=site.power,
    )


def gpu_named(spelling: str) -> str:
    """The device of the registry that is meant, which its very name says too; a ValueError if there is none."""
    _, devices, memory = _read(spelling)
    return devices.get(memory, devices[""])


def is_certain(spelling: str) -> bool:
    """Whether the spelling leaves no doubt about the memory of its device."""
    _, devices, memory = _read(spelling)
    return memory in devices if memory else len(set(devices.values())) == 1


def _read(spelling: str) -> tuple[str, Mapping[str, str], str]:
    """The kind of device, the devices of that kind by memory, and the memory that is stated; a ValueError where there are none."""
    if spelling in _registered():
        return spelling.partition("-")[0], {"": spelling}, ""
    plain = _plain(spelling)
    if not plain:
        raise ValueError("the GPU is not stated")
    found, memory = _KIND.search(plain), _MEMORY.search(plain)
    if found is None or found[1] not in _DEVICES or _ON_A_CARD.search(plain):
        kind = found[1].upper() if found and not _ON_A_CARD.search(plain) else quoted(spelling)
        raise ValueError(f"{kind} is no device of the registry (see `crossopt list hardware`)")
    return found[1], _DEVICES[found[1]], memory[1] if memory else ""


@cache
def _registered() -> frozenset[str]:
    """The names of all devices, looked for once: a file has thousands of rows."""
    return frozenset(names("hardware"))


def _plain(spelling: str) -> str:
    """Lower case, signs as blanks, remarks in parentheses left out."""
    return re.sub(r"[_\-/]+", " ", re.sub(r"\(.*?\)", "", spelling.casefold())).strip()


def _sustained(gigabytes: float | None) -> float | None:
    return None if gigabytes is None else SUSTAINED * gigabytes * _GIGA
