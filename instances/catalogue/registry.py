"""Registries of devices, technologies and networks: one YAML file each in the folder `registry`, and their conversion for crossflow."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypeVar
from unicodedata import normalize

from crossopt.crossflow.fields import Given
from crossopt.crossflow.hardware import Efficiency, Hardware, Link, headroom_of
from crossopt.crossflow.parameters import active_parameters, parameters
from crossopt.crossflow.workload import NARROW, Gemm, Lstm, Precision, Transformer
from crossopt.instances.catalogue import entries
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.document import Entry, Node, Scalar, node_of, read_file, read_text, text_of
from crossopt.instances.files.schema import read_as
from crossopt.instances.files.units import format_quantity, nearest, quoted
from crossopt.instances.files.written import Files, graft

Kind = Literal["hardware", "technologies", "workloads"]
Listed = Literal["hardware", "technologies", "workloads", "instances"]
LISTED: Final[tuple[Listed, ...]] = ("hardware", "technologies", "workloads", "instances")
T = TypeVar("T")
_Sets = tuple[Efficiency, tuple[Efficiency, ...]]
"""Central, optimistic and pessimistic constants."""

_SHIPPED: Final = Path(__file__).parents[1]
_FOLDER: Final = _SHIPPED / "registry"
_ONE_OF: Final = {"hardware": "device", "technologies": "technology", "workloads": "workload", "instances": "instance"}
_FITTED: Final = ("efficiency", "optimistic", "pessimistic", "calibration", "versions", "taken_over", "stacks", "kernels", "ranges", "rent")
"""Sections of a device's file that come from measurements, not from a data sheet."""


class UnknownNameError(ValueError):
    """An unknown name in a registry; the message suggests similar names and where all are listed."""


def names(kind: Kind) -> tuple[str, ...]:
    """All names of a registry, sorted. A technology can also be named with one of its logic nodes as a suffix."""
    return tuple(sorted(path.stem for path in (_FOLDER / kind).glob("*.yaml")))


def ladder() -> dict[str, Path]:
    """The joint-design questions in the package: their paths by name, sorted."""
    return {path.stem: path for path in sorted(_SHIPPED.glob("*.yaml"))}


@cache
def shipped() -> dict[str, Path]:
    """All questions in the package: joint designs, and those of each other problem type in its own folder."""
    others = (path for path in sorted(_SHIPPED.glob("*/*.yaml")) if path.parent != _FOLDER)
    return ladder() | {path.stem: path for path in others}


@cache
def device(name: str) -> entries.DeviceEntry:
    """The device of that name; an UnknownNameError if there is none."""
    return entries.completed(_entry(Given[entries.DeviceEntry], "hardware", name), device)


@cache
def technology(name: str) -> entries.TechnologyEntry:
    """The technology of that name, at its base generation; an UnknownNameError if there is none."""
    return _entry(entries.TechnologyEntry, "technologies", name)


@cache
def model(name: str) -> entries.ModelEntry:
    """The network of that name; an UnknownNameError if there is none."""
    return _entry(entries.ModelEntry, "workloads", name)


def technology_named(name: str) -> tuple[entries.TechnologyEntry, str | None]:
    """The technology and the logic node that the name ends in, if it does: `v100-class-7nm` is `v100-class` at `7nm`."""
    known = names("technologies")
    if name in known:
        return technology(name), None
    base, _, logic = name.rpartition("-")
    if base in known and logic in technology(base).logic_nodes:
        return technology(base), logic
    nodes = (f"{base}-{logic}" for base in known for logic in technology(base).logic_nodes)
    raise _unknown("technologies", name, (*known, *nodes))


def device_given(given: str | Given[entries.DeviceEntry]) -> tuple[entries.DeviceEntry, str]:
    """The device that a question names or describes, and its label."""
    if isinstance(given, str):
        return device(given), given
    entry = entries.completed(given, device)
    return entry, entry_label(entry.name or "own device", entry, names("hardware"), device)


def technology_given(given: str | entries.TechnologyEntry) -> tuple[entries.TechnologyEntry, str, str | None]:
    """The technology that a question names or describes, its label, and the logic node in its name."""
    if isinstance(given, str):
        entry, node = technology_named(given)
        return entry, given, node
    known = names("technologies")
    at_nodes = (f"{base}-{logic}" for base in known for logic in technology(base).logic_nodes)
    return given, entry_label(given.name or "own technology", given, (*known, *at_nodes), lambda name: technology_named(name)[0]), None


def entry_label(name: str, given: object, known: Iterable[str], entry_of: Callable[[str], object]) -> str:
    """Label of a user's entry: a registry name gets a remark if the figures differ from the registry's."""
    same = next((other for other in known if _plain_name(other) == _plain_name(name)), None)
    return name if same is None or _figures(given) == _figures(entry_of(same)) else f"{name} with own figures"


def _plain_name(name: str) -> str:
    """A name as displayed: without invisible characters, case-folded."""
    return "".join(letter for letter in normalize("NFKC", name).casefold() if letter.isprintable() and not letter.isspace())


def _figures(entry: object) -> object:
    """The figures of an entry, without its name, its sources and what it rents for."""
    apart = {"name", "sources", "derived", "like", "rent"}
    cleared = {field.name for field in fields(entry)} & apart if is_dataclass(entry) and not isinstance(entry, type) else set()
    return replace(entry, **dict.fromkeys(cleared)) if cleared else entry  # type: ignore[type-var]


def entry_text(kind: Listed | None, name: str) -> str:
    """The file of a registry entry, as a template; an UnknownNameError if there is none."""
    if kind is None:
        raise UnknownNameError(f"say of which kind {quoted(name)} is, as in `crossopt list hardware --show {name}`")
    known = shipped() if kind == "instances" else {path.stem: path for path in (_FOLDER / kind).glob("*.yaml")}
    if name not in known:
        raise _unknown(kind, name, sorted(known))
    text = known[name].read_text(encoding="utf-8")
    if kind != "hardware":
        return text
    entry = device(name)
    left_out = f"# Left out above, and derived {derived}\n" if (derived := entries.derived_text(entry)) else ""
    sets = "".join(f"#   {line}\n" for line in _set_lines(entry))
    return f"{text}{left_out}# What prices runs on it:\n{sets}"


def sheet_text(name: str) -> str:
    """The data sheet of a device as a template for another: its file without fitted constants."""
    if name not in (known := names("hardware")):
        raise _unknown("hardware", name, known)
    sections = re.split(r"(?m)^(?=\S)", (_FOLDER / "hardware" / f"{name}.yaml").read_text(encoding="utf-8"))
    text = "".join(section for section in sections if section.partition(":")[0] not in _FITTED)
    return re.sub(rf"(?m)^  (?:{'|'.join(_FITTED)}): .*\n", "", text)


def descriptions(kind: Listed | None) -> tuple[tuple[str, str], ...]:
    """Names of a registry, or of the questions in the package, with one line each. None gives these four lists and their lengths."""
    match kind:
        case None:
            return tuple((kind_name, f"{len(shipped() if kind_name == 'instances' else names(kind_name))} names") for kind_name in LISTED)
        case "hardware":
            return tuple((name, _device_line(device(name))) for name in names(kind))
        case "technologies":
            return tuple((name, _technology_line(technology(name))) for name in names(kind))
        case "workloads":
            return tuple((name, _model_line(name, model(name))) for name in names(kind))
        case "instances":
            return tuple((name, _instance_line(path)) for name, path in shipped().items())


def build_device(entry: entries.DeviceEntry, name: str, precision: Precision, levels: int) -> Hardware:
    """The device in that precision, with the links of a network of `levels` levels (see `links_of`)."""
    for figures in (entry.peak, entry.energy_per_flop):
        if precision not in figures:
            raise ValueError(f"{name} does not compute in {precision} (one of {', '.join(entry.peak)})")
    return Hardware(
        name=name,
        throughput=entry.peak[precision],
        wide_share=entry.peak["bf16"] / entry.peak[precision] if precision in NARROW else 1.0,
        vector_throughput=entry.vector_peak,
        bundles=float(entry.bundles),
        dram=entry.dram,
        l2=entry.l2,
        l1=entry.l1,
        registers=entry.registers,
        links=links_of(entry.network, levels),
        register_traffic=entry.register_traffic,
        energy_per_flop=entry.energy_per_flop[precision],
        idle_power=entry.idle_power,
        running_power=(1.0 - entries.ARITHMETIC) * (entry.power - entry.idle_power),
        power=entry.power,
        headroom=headroom_of(entry.power, entry.idle_power),
        die_area=entry.die_area,
        package_area=entry.package_area,
        reserved_memory=entry.reserved_memory,
        efficiency=efficiency_with(entry.efficiency),
        variants=_variants(entry),
        error=entry.calibration.error if entry.calibration else None,
    )


def launched_by(device: Hardware, entry: entries.DeviceEntry, stack: str | None) -> Hardware:
    """The device with the calibration set of a stack (default stack if none is named); unchanged if its own constants apply."""
    if not (constants := entries.constants_for(entry.stacks, stack)):
        return device
    usual, variants = _with_set(device.efficiency, device.variants, constants)
    return replace(device, efficiency=usual, variants=variants, error=None)  # of the fit to another stack


def _with_set(usual: Efficiency, variants: tuple[Efficiency, ...], constants: Mapping[str, float]) -> _Sets:
    """The constants of a set; the optimistic and pessimistic ones are scaled by the same factors."""
    shares = {name: value / getattr(usual, name) for name, value in constants.items()}
    varied = (replace(variant, **{name: share * getattr(variant, name) for name, share in shares.items()}) for variant in variants)
    return replace(usual, **constants), tuple(varied)


IDEAL = "ideal"
"""In place of a device's: the model's default constants, not fitted to runs."""


def constants_of(entry: entries.TechnologyEntry, name: str, device_name: str | None, stack: str | None = None) -> _Sets:
    """Central, optimistic and pessimistic constants of a technology's chips: of the device that the question names, else of the entry. They
    are of one fit, so that a technology with constants of its own has none."""
    fitted = entry.constants if device_name is None else device_name
    if fitted is None or fitted == IDEAL:
        return efficiency_with(entry.efficiency), ()
    if entry.efficiency:
        raise ValueError(f"{name} has constants of its own, with which those of {fitted} do not go together (remove `constants`)")
    given = device(fitted)
    if not (variants := _variants(given)):
        others = ", ".join(other for other in names("hardware") if _variants(device(other)))
        raise ValueError(f"{fitted} has no optimistic and pessimistic constants (one of {others})")
    return _with_set(efficiency_with(given.efficiency), variants, entries.constants_for(given.stacks, stack))


def set_of_device(given: str | Given[entries.DeviceEntry], stack: str | None) -> str:
    """Description of the calibration set for a device that a question names or describes."""
    entry, name = device_given(given)
    return entries.set_text(name, entry, stack)


def set_of_technology(given: str | entries.TechnologyEntry, device_name: str | None, stack: str | None) -> str:
    """Description of the calibration set for a technology's chips."""
    entry, name, _ = technology_given(given)
    fitted = entry.constants if device_name is None else device_name
    if fitted is None or fitted == IDEAL:
        return f"the own constants of {name}, fitted to no run" if entry.efficiency else "the model's defaults, fitted to no run"
    return entries.set_text(fitted, device(fitted), stack)


def setups_of(entry: entries.TechnologyEntry, device_name: str | None) -> tuple[float, float]:
    """Start-up seconds of a collective inside a node and between nodes, of the device whose constants apply to the technology's chips."""
    fitted = entry.constants if device_name is None else device_name
    if fitted is None or fitted == IDEAL:
        return 0.0, 0.0
    network = device(fitted).network
    return float(network.node.setup), float(network.cluster.setup)


def _variants(entry: entries.DeviceEntry) -> tuple[Efficiency, ...]:
    """Optimistic and pessimistic constants; missing ones equal the central ones."""
    return tuple(efficiency_with({**entry.efficiency, **other}) for other in (entry.optimistic, entry.pessimistic) if other)


def links_of(network: entries.NetworkEntry, levels: int) -> tuple[Link, ...]:
    """The links of a network of one level (a single node), two (nodes in a cluster) or three (nodes in pods), innermost first."""
    if levels == 3 and network.pod is None:
        raise ValueError("a network of three levels needs the link between the nodes of a pod (give its bandwidth and latency)")
    chosen = {1: (network.node,), 2: (network.node, network.cluster), 3: (network.node, network.pod, network.cluster)}
    if levels not in chosen:
        raise ValueError(f"a network has one, two or three levels, not {levels}")
    return tuple(link for link in chosen[levels] if link is not None)


def efficiency_with(constants: Mapping[str, float]) -> Efficiency:
    """The default efficiency with these constants; a ValueError for unknown constants."""
    known = [field.name for field in fields(Efficiency)]
    for name in constants:
        if name not in known:
            remedy = _remedy(name, known, f"one of {', '.join(known)}")
            raise ValueError(f"{quoted(name)} is no constant of the model ({remedy})")
    return replace(Efficiency(), **constants)


def _entry(cls: type[T], kind: Kind, name: str) -> T:
    if name not in (known := names(kind)):
        raise _unknown(kind, name, known)
    path, faults = _FOLDER / kind / f"{name}.yaml", list[Fault]()
    entry = read_as(cls, read_file(path), faults)
    if entry is None:
        raise InstanceError(str(path), faults)
    return entry


def _device_line(entry: entries.DeviceEntry) -> str:
    peaks = ", ".join(f"{precision} {format_quantity(peak, 'throughput')}" for precision, peak in entry.peak.items())
    capacity, bandwidth = format_quantity(float(entry.dram.capacity), "bytes"), format_quantity(float(entry.dram.bandwidth), "bandwidth")
    derived = f"; derived: {', '.join(text.split()[0] for text in entry.derived)}" if entry.derived else ""
    power = format_quantity(entry.power, "power")
    rent = f"; {entry.rent.price:.4g} USD/h ({entry.rent.month})" if entry.rent else ""
    nodes = f"nodes of {entry.devices_per_node}{rent}"
    return f"{peaks}; {capacity} at {bandwidth}; {power}; {nodes}; constants: {_where_from(entry)}{derived}"


def _where_from(entry: entries.DeviceEntry) -> str:
    """Short provenance of its constants."""
    if fitted := [name for name, constants in entry.stacks.items() if constants.rows]:
        return f"fitted for {' and '.join(fitted)}"
    usual = entry.stacks.get(entries.USUAL)
    return "fitted" if entry.calibration else (entries.stack_text(usual) if usual else entries.own_text(entry)).partition(",")[0]


def _set_lines(entry: entries.DeviceEntry) -> Iterator[str]:
    """The device's own constants and each stack's set, with versions and provenance."""
    yield f"its own constants{f' ({entry.versions})' if entry.versions else ''}: {entries.own_text(entry)}"
    for name, constants in entry.stacks.items():
        yield f"stack: {name}{f' ({constants.versions})' if constants.versions else ''}: {entries.stack_text(constants, named=True)}"


def _technology_line(entry: entries.TechnologyEntry) -> str:
    parts = (("logic", entry.logic_nodes), ("memory", entry.memories), ("network", entry.network_steps))
    generations = [f"{part} {_first_to_last(list(named))}" for part, named in parts]
    links = [f"{name}{f' (up to {link.reach:g} m)' if link.reach else ''}" for name, link in entry.node_links.items()]
    others = (("package", entry.packages), ("links", links))
    return "; ".join([*generations, *(f"{part} {', '.join(named)}" for part, named in others if named)])


def _first_to_last(generations: list[str]) -> str:
    return f"{generations[0]} to {generations[-1]}" if len(generations) > 1 else "".join(generations)


def _model_line(name: str, entry: entries.ModelEntry) -> str:
    match entry:
        case entries.ModelEntry(transformer=Transformer() as shape):
            experts = f", {shape.experts} experts" if shape.experts > 1 else ""
            active = f", {active_parameters(shape) / 1e9:.4g}e9 active" if shape.experts > 1 else ""
            size = f"{parameters(shape) / 1e9:.4g}e9 weights{active}"
            return f"{size}: {shape.layers} layers of {shape.hidden}{experts}, sequence {shape.sequence}"
        case entries.ModelEntry(lstm=Lstm() as shape):
            return f"LSTM: {shape.layers} layers of {shape.hidden}, vocabulary {shape.vocabulary}, sequence {shape.sequence}"
        case entries.ModelEntry(gemm=Gemm() as shape):
            return f"matrix product: {shape.rows} x {shape.depth} by {shape.depth} x {shape.columns}"
        case _:
            raise ValueError(f"the registry's entry {name} has no shape")


def _instance_line(path: Path) -> str:
    """The `description` of a question on one line; empty if it has none."""
    match read_file(path).value:
        case {"description": Entry(node=Node(value=Scalar(text=text)))}:
            return " ".join(text.split())
        case _:
            return ""


def _unknown(kind: Kind | Literal["instances"], name: str, known: Iterable[str]) -> UnknownNameError:
    listing = f"see `crossopt list {kind}`"
    guess = _remedy(name, known, "")
    hub = (
        ", or name the config.json of a model of the hub: `config: config.json`"
        if kind == "workloads" and "/" in name and not guess
        else ""
    )
    return UnknownNameError(f"{quoted(name)} is no known {_ONE_OF[kind]} ({f'{guess} ' if guess else ''}{listing}{hub})")


def _remedy(name: str, known: Iterable[str], otherwise: str) -> str:
    """Suggestion of up to three names with this prefix, else of the most similar name."""
    known, name = tuple(known), name.partition("/")[2] if name.count("/") == 1 else name  # Hugging Face has the owner before a name
    longer = [other for other in known if name and other.casefold().startswith(name.casefold())]
    guesses = longer[:3] or nearest(name.casefold(), known)
    return f"did you mean {' or '.join(quoted(guess) for guess in guesses)}?" if guesses else otherwise


# Devices and technologies in files of the user's, named in a question by their path: `hardware: ./my-chip.yaml`.
#
# Such a file is read as the registry reads its own, and put into the tree of the question where its name stood; after that the question is
# one that describes its hardware in place.

_ENDINGS: Final = (".yaml", ".yml")
_PLACES: Final[tuple[tuple[tuple[str, ...], type[Any]], ...]] = (
    (("hardware",), Given[entries.DeviceEntry]),
    (("technology",), entries.TechnologyEntry),
    (("technology", "base"), entries.TechnologyEntry),
)


def with_own_files(root: Node, files: Files) -> Node:
    """The question with the user's files inlined; an InstanceError with every fault of a file."""
    for path, kind in _PLACES:
        name = _name_at(root, path)
        if name is not None and is_path(name):
            keys = path if path != ("technology",) else ("technology", "base")
            known, entry = _own_entry(name, kind, files)
            own = known.get("name") if isinstance(known, Given) else known.name
            root = graft(graft(root, keys, entry), (*keys, "name"), node_of(own or Path(name).stem))
    return root


def _own_entry(name: str, kind: type[T], files: Files) -> tuple[T, Node]:
    """What a user's file describes, and its tree; an InstanceError with every fault."""
    source, faults = str(files.path(name)), list[Fault]()
    entry = read_text(files.text(name, text_of), source)
    known = read_as(kind, entry, faults)
    if known is None:
        raise InstanceError(source, faults)
    return known, entry


def device_or_file(name: str, files: Files) -> tuple[entries.DeviceEntry, str]:
    """The device of this name, or of a user's file at this path, and its label."""
    if not is_path(name):
        return device_given(name)
    known: Given[entries.DeviceEntry] = _own_entry(name, Given[entries.DeviceEntry], files)[0]
    entry = entries.completed(known, device)
    return entry, entry_label(entry.name or Path(name).stem, entry, names("hardware"), device)


def is_path(name: str) -> bool:
    """Whether a name means a file rather than a registry entry."""
    return "/" in name or name.endswith(_ENDINGS)


def _name_at(node: Node, path: tuple[str, ...]) -> str | None:
    """The text at a path; None if there is none."""
    for key in path:
        entry = node.value.get(key) if isinstance(node.value, dict) else None
        if entry is None:
            return None
        node = entry.node
    return node.value.text if isinstance(node.value, Scalar) else None


# Which networks of the registry a network is by its shapes, so that known runs are found whatever its file is called.

Shapes = tuple[object, ...]


def known_as(network: Transformer) -> tuple[str, ...]:
    """Registry names of a network: its own if the shapes match or are unknown, else those with equal shapes."""
    own = network.name.lower()
    if own in _networks() and (shape := model(own).transformer) is not None and _shapes(shape) == _shapes(network):
        return (own,)  # no other file is read
    return _names_by_shapes().get(_shapes(network), (own,))


def same_shapes_text(network: Transformer) -> str:
    """Remark that a network of another name has the shapes of a registry entry."""
    known = known_as(network)
    return "" if known == (network.name.lower(),) else f"shapes of {' and '.join(known)}, of which measured runs and recipes are looked up"


@cache
def _networks() -> frozenset[str]:
    """Names of all networks; listing them takes longer than all else that prices a design knows of runs."""
    return frozenset(names("workloads"))


@cache
def _names_by_shapes() -> dict[Shapes, tuple[str, ...]]:
    found: dict[Shapes, tuple[str, ...]] = {}
    for name in names("workloads"):
        if (shape := model(name).transformer) is not None:
            found[_shapes(shape)] = (*found.get(_shapes(shape), ()), name)
    return found


def _shapes(network: Transformer) -> Shapes:
    """Numbers of layers, heads, experts and vocabulary tokens, and layer widths: equal for networks of the same shapes."""
    dense = network.ffn if network.experts == 1 or network.dense_layers else 0
    attention = (network.heads, network.kv_heads or network.heads, network.head_size or network.hidden // network.heads, network.kv_rank)
    experts = (network.experts, network.experts_per_token, (network.expert_ffn or network.ffn) if network.experts > 1 else 0)
    return (network.layers, network.hidden, dense, network.vocabulary, *attention, *experts)
