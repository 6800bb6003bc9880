"""From a YAML question to an `Instance`: names looked up, units in SI, and every fault of the file at once, with its place."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

from crossflow.cost import Prices
from crossflow.evaluate import Budget
from crossflow.generator import Edges
from crossflow.hardware import Cluster, Efficiency, Hardware, Link
from crossflow.plan import PLACEMENTS
from crossflow.workload import Lstm, Transformer, Workload
from instances.codesign import BudgetSection, ChoicesSection, ClusterSection, CodesignFile, LinkSection, PricesSection, TechnologySection
from instances.document import Entry, Fault, InstanceError, Node, fault_at, read_file, read_text
from instances.instance import FreeHardware, Instance, Options
from instances.registry import build_device, build_technology, device, efficiency_with, parts_of, technology_named
from instances.schema import read_as
from instances.units import quoted
from instances.workloads import build_workload

Report = Callable[[str, str], None]
"""Takes the path of a fault in the file, and what is wrong with the remedy."""

_HARDWARE_CHOICES = ("die_area", "hbm_stacks")
_HARDWARE_ENDINGS = ("_area", "_power", "_edge")
_TRANSFORMER_CHOICES = (
    "tensor",
    "context",
    "pipeline",
    "data",
    "expert",
    "microbatch",
    "interleave",
    "sequence_parallel",
    "recompute",
    "zero",
    "overlap",
    "placement",
)
_KERNEL_CHOICES = ("split", "rows", "columns", "layers", "data")
_LARGEST_CLUSTER = 1 << 22


def read_instance(path: str | Path, settings: tuple[str, ...] = ()) -> Instance:
    """The question in a file, with `key=value` settings laid over it; an InstanceError with every fault."""
    root = read_file(path)
    text = Path(path).read_text(encoding="utf-8")
    return _instance(root, text, str(path), settings)


def read_question(question: Mapping[str, Any]) -> Instance:
    """The question inside a saved result."""
    text, source, settings = question.get("text"), question.get("source"), question.get("settings")
    if not isinstance(text, str) or not isinstance(source, str) or not isinstance(settings, list | tuple):
        raise InstanceError("result", [Fault(1, 1, "instance", "the text of the question is missing")])
    return _instance(read_text(text, source), text, source, tuple(str(setting) for setting in settings))


def _instance(root: Node, text: str, source: str, settings: tuple[str, ...]) -> Instance:
    for setting in settings:
        root = _laid_over(root, setting, source)
    faults: list[Fault] = []
    file = read_as(CodesignFile, root, faults)
    if file is None:
        raise InstanceError(source, faults)
    document = {"source": source, "text": text, "settings": list(settings)}
    instance = _resolved(file, Path(source), document, lambda path, message: faults.append(fault_at(root, path, message)))
    if faults or instance is None:
        raise InstanceError(source, faults)
    return instance


def _laid_over(root: Node, setting: str, source: str) -> Node:
    """The file with one value replaced: `tensor=8` sets a choice, `cluster.devices=128` any other value."""
    key, equals, value = setting.partition("=")
    if not equals or not key.strip():
        raise InstanceError(f"--set {setting}", [Fault(1, 1, "", "a setting is written KEY=VALUE, for example tensor=8")])
    path = key.strip().split(".")
    node = read_text(value, f"--set {setting}") if value.strip() else Node(read_text("''", source).value, 1, 1)
    return _replaced(root, path if len(path) > 1 or path[0] in _top_keys() else ["choices", path[0]], node)


def _top_keys() -> set[str]:
    return {field.name for field in fields(CodesignFile)}


def _replaced(node: Node, path: list[str], value: Node, at: str = "") -> Node:
    here = f"{at}.{path[0]}" if at else path[0]
    entries: dict[str, Entry] = dict(node.value) if isinstance(node.value, dict) else {}
    old = entries.get(path[0], Entry(node.line, node.column, Node({}, node.line, node.column, here)))
    inner = (
        replace(value, line=old.node.line, column=old.node.column, path=here)
        if len(path) == 1
        else _replaced(old.node, path[1:], value, here)
    )
    return replace(node, value={**entries, path[0]: Entry(old.line, old.column, inner)})


def _resolved(file: CodesignFile, source: Path, document: dict[str, Any], report: Report) -> Instance | None:
    workload = build_workload(file.workload, source.parent, lambda path, message: report(_under("workload", path), message))
    if (file.technology is None) == (file.hardware is None):
        both = file.technology is not None
        report("hardware" if both else "", f"{'both' if both else 'neither'} of technology and hardware are given, exactly one is needed")
        return None
    if file.cluster.devices > _LARGEST_CLUSTER:
        report("cluster.devices", f"{file.cluster.devices} devices are more than the {_LARGEST_CLUSTER} that a question may have")
        return None
    names, cluster = _levels(file, report)
    if cluster is None or workload is None:
        return None
    hardware = _fixed(file, names, report) if file.hardware is not None else _free(file, names, report)
    options = _plan_options(file.choices, workload, cluster, report)
    prices = _prices(file, report)
    if hardware is None:
        return None
    return Instance(
        name=file.name or source.stem,
        workload=workload,
        cluster=cluster,
        hardware=hardware,
        plan_options=options,
        budget=_budget(file.budget, hardware),
        objective=file.objective,
        prices=prices,
        document=document,
    )


def _under(section: str, path: str) -> str:
    return f"{section}.{path}" if path else section


# --- network -------------------------------------------------------------------------------------------------------------------------


def _levels(file: CodesignFile, report: Report) -> tuple[tuple[str, ...], Cluster | None]:
    """Names and sizes of the network levels that join more devices than the one inside."""
    section = file.cluster
    per_node = min(section.devices_per_node or _usual_node(file), section.devices)
    sizes = [("node", per_node), *([("pod", min(section.devices_per_pod, section.devices))] if section.devices_per_pod else [])]
    kept: list[tuple[str, int]] = []
    for name, size in [*sizes, ("cluster", section.devices)]:
        if size > (kept[-1][1] if kept else 1):
            kept.append((name, size))
    kept = kept or [("node", 1)]
    for (_, inner), (name, outer) in pairwise(kept):
        if outer % inner:
            place = "cluster.devices" if name == "cluster" else f"cluster.devices_per_{name}"
            report(place, f"{outer} devices are no whole number of groups of {inner} (make it a multiple of {inner})")
            return (), None
    return tuple(name for name, _ in kept), Cluster(section.devices, tuple(size for _, size in kept))


def _usual_node(file: CodesignFile) -> int:
    if file.hardware is None:
        return 1
    try:
        return device(file.hardware).devices_per_node
    except ValueError:
        return 1


def _overridden(given: LinkSection, usual: Link) -> Link:
    return Link(
        bandwidth=usual.bandwidth if given.bandwidth is None else given.bandwidth,
        latency=usual.latency if given.latency is None else given.latency,
        setup=usual.setup if given.setup is None else given.setup,
        energy=usual.energy,
    )


def _link_section(cluster: ClusterSection, level: str) -> LinkSection:
    return {"node": cluster.node, "pod": cluster.pod, "cluster": cluster.cluster}[level]


# --- hardware ------------------------------------------------------------------------------------------------------------------------


def _efficiency(usual: Efficiency, given: dict[str, float], report: Report) -> Efficiency:
    known = [field.name for field in fields(Efficiency)]
    for name, value in given.items():
        if name not in known:
            report(f"efficiency.{name}", f"the model has no such constant (one of {', '.join(known)})")
        elif not 0.0 <= value < float("inf") or (name in _SHARES and not 0.0 < value <= 1.0):
            report(
                f"efficiency.{name}",
                f"{value} is out of range, {'a share above 0 and up to 1' if name in _SHARES else '0 or more'} is needed",
            )
    return replace(usual, **{name: value for name, value in given.items() if name in known})


_SHARES = {"matrix", "attention", "stream", "resident", "data_overlap", "pipeline_overlap", "gather_overlap"}


def _fixed(file: CodesignFile, names: tuple[str, ...], report: Report) -> Hardware | None:
    """A device of the registry with the cluster's own links where it gives them."""
    for choice in _given_hardware_choices(file.choices):
        report(f"choices.{choice}", "the hardware is fixed, so nothing of it can be chosen (give technology instead of hardware)")
    try:
        entry = device(str(file.hardware))
        built = build_device(entry, str(file.hardware), file.workload.precision, 3 if "pod" in names and entry.network.pod else 2)
    except ValueError as error:
        report("hardware", str(error))
        return None
    usual = {"node": built.links[0], "pod": built.links[1], "cluster": built.links[-1]}
    links = tuple(_overridden(_link_section(file.cluster, name), usual[name]) for name in names)
    return replace(built, links=links, efficiency=_efficiency(built.efficiency, file.efficiency, report))


def _free(file: CodesignFile, names: tuple[str, ...], report: Report) -> FreeHardware | None:
    """A technology with its usual split, and the choices of hardware."""
    section = file.technology if isinstance(file.technology, TechnologySection) else TechnologySection(str(file.technology))
    try:
        entry, node = technology_named(section.base)
        if node is not None and section.logic is not None:
            report("technology.logic", f"{quoted(section.base)} names a logic node already (remove one of the two)")
        technology = build_technology(entry, section.base, section.logic or node, section.memory, section.network)
    except ValueError as error:
        report("technology", str(error))
        return None
    if file.workload.precision not in {"bf16", "fp16"}:
        report("workload.precision", f"the cores of a technology compute in 16 bits, not {file.workload.precision} (use bf16 or fp16)")
    split, budget = entry.split, file.budget
    return FreeHardware(
        technology=technology,
        die_area=budget.die_area or split.die_area,
        package_area=budget.package_area or split.package_area,
        power=budget.power or split.power,
        areas=parts_of(split.areas),
        powers=parts_of(split.powers),
        edges=Edges(split.hbm_edge, split.node_network_edge, split.network_edge),
        idle_share=entry.idle_share,
        reserved_memory=entry.reserved_memory,
        efficiency=_efficiency(efficiency_with(entry.efficiency), file.efficiency, report),
        levels=tuple("intra" if name == "node" else "inter" for name in names),
        overrides=tuple(_given_link(file.cluster, name, report) for name in names),
        options=tuple((name, getattr(file.choices, name)) for name in _given_hardware_choices(file.choices)),
    )


def _given_link(cluster: ClusterSection, level: str, report: Report) -> Link | None:
    """A link that the question gives; none where it follows from the technology."""
    section = _link_section(cluster, level)
    if section == LinkSection():
        return None
    if section.bandwidth is None:
        report(f"cluster.{level}", "a link of a technology is given whole or not at all (add its bandwidth)")
        return None
    return Link(section.bandwidth, section.latency or 0.0, section.setup or 0.0)


def _given_hardware_choices(choices: ChoicesSection) -> tuple[str, ...]:
    names = [field.name for field in fields(ChoicesSection) if field.name in _HARDWARE_CHOICES or field.name.endswith(_HARDWARE_ENDINGS)]
    return tuple(name for name in names if getattr(choices, name) is not None)


def _budget(section: BudgetSection, hardware: Hardware | FreeHardware) -> Budget:
    """The budget; free hardware may not exceed what its technology's chips usually have where nothing is said."""
    if isinstance(hardware, FreeHardware):
        return Budget(hardware.die_area, hardware.package_area, hardware.power)
    infinite = float("inf")
    return Budget(section.die_area or infinite, section.package_area or infinite, section.power or infinite)


def _prices(file: CodesignFile, report: Report) -> Prices | None:
    section: PricesSection | None = file.prices
    if section is None:
        if file.objective == "cost_per_token":
            report("objective", "a cost needs prices (add a section `prices` with electricity, lifetime and device or wafer)")
        return None
    if (section.device is None) == (section.wafer is None):
        report("prices", "exactly one of device and wafer is needed: the price of a whole device, or of a wafer")
    if section.lifetime <= 0.0:
        report("prices.lifetime", "a lifetime above 0 is needed")
    return Prices(
        electricity=section.electricity,
        lifetime=section.lifetime,
        device=section.device,
        wafer=section.wafer,
        wafer_diameter=section.wafer_diameter,
        defect_density=section.defects_per_square_metre,
        clustering=section.clustering,
        stack=section.stack,
        package=section.package,
    )


# --- choices -------------------------------------------------------------------------------------------------------------------------


def _plan_options(choices: ChoicesSection, workload: Workload, cluster: Cluster, report: Report) -> Options:
    """The options of every field of a plan, with `divisors` spelled out; faults for options that no plan can have."""
    transformer = isinstance(workload, Transformer)
    names, others = (_TRANSFORMER_CHOICES, _KERNEL_CHOICES) if transformer else (_KERNEL_CHOICES, _TRANSFORMER_CHOICES)
    for name in others:
        if name not in names and getattr(choices, name) != _usual(name):
            report(f"choices.{name}", f"this is no choice for a {type(workload).__name__.lower()} (one of {', '.join(names)})")
    options = tuple((name, _spelled(name, getattr(choices, name), workload, cluster)) for name in names)
    for name, values in options:
        _check_options(name, values, workload, cluster, report)
    degrees = ("tensor", "context", "pipeline", "data") if transformer else ("rows", "columns", "layers", "data")
    _check_product(dict(options), degrees, cluster, report)
    return options


def _usual(name: str) -> object:
    return next(field.default for field in fields(ChoicesSection) if field.name == name)


def _spelled(name: str, values: tuple[Any, ...] | str, workload: Workload, cluster: Cluster) -> tuple[Any, ...]:
    return divisors(_whole(name, workload, cluster)) if isinstance(values, str) else values


def _whole(name: str, workload: Workload, cluster: Cluster) -> int:
    """The number that a degree must divide."""
    if isinstance(workload, Transformer):
        wholes = {"microbatch": workload.global_batch, "interleave": workload.layers, "expert": workload.experts}
        return wholes.get(name, cluster.devices)
    return cluster.devices


_WHOLES = {"microbatch": "samples of the global batch", "expert": "experts"}


def _check_options(name: str, values: tuple[Any, ...], workload: Workload, cluster: Cluster, report: Report) -> None:
    """Faults for a choice of which no option can ever be part of a plan."""
    if name == "placement":
        for value in values:
            if value not in PLACEMENTS:
                report(
                    "choices.placement", f"{quoted(value)} is no order of tensor, context, data and pipeline (for example {PLACEMENTS[0]})"
                )
    elif name in {"tensor", "context", "pipeline", "data", "expert", "microbatch", "rows", "columns", "layers"}:
        whole = _whole(name, workload, cluster)
        if not any(whole % value == 0 for value in values):
            listed = ", ".join(str(value) for value in values[:5])
            report(f"choices.{name}", f"none of {listed} divides the {whole} {_WHOLES.get(name, 'devices')} (or write `divisors`)")
    if name == "layers" and isinstance(workload, Lstm | Transformer) and not any(value >= 1 for value in values):
        report("choices.layers", "at least 1 is needed")


def _check_product(options: dict[str, tuple[Any, ...]], degrees: tuple[str, ...], cluster: Cluster, report: Report) -> None:
    """A fault if no product of the degrees is the number of devices."""
    reachable = {1}
    for name in degrees:
        reachable = {inner * value for inner in reachable for value in options[name] if cluster.devices % (inner * value) == 0}
    if cluster.devices not in reachable:
        most = prod(max(options[name]) for name in degrees)
        names = ", ".join(degrees)
        report("choices", f"no product of {names} is the {cluster.devices} devices (the options reach at most {most})")


def divisors(whole: int) -> tuple[int, ...]:
    """All divisors, ascending."""
    small = [part for part in range(1, int(whole**0.5) + 1) if whole % part == 0]
    return tuple(sorted({*small, *(whole // part for part in small)}))
