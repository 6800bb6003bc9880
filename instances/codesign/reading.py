"""Conversion of the sections of a question to an `Instance`: names looked up, and faults that involve several values."""

from dataclasses import fields, replace
from itertools import takewhile
from math import inf, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossopt.crossflow.hardware import Budget, Efficiency, Hardware, Memory
from crossopt.crossflow.workload import Precision, Transformer, Workload
from crossopt.instances.catalogue.entries import CONSTANTS, constant_fault, derived_text, is_calibrated
from crossopt.instances.catalogue.known_runs import is_inside
from crossopt.instances.catalogue.registry import (
    build_device,
    constants_of,
    device_given,
    launched_by,
    set_of_device,
    set_of_technology,
    setups_of,
    technology_given,
)
from crossopt.instances.catalogue.uncertain import Fault, Range, constants_with, doubted, price_ranges, ranges_of, sets_of, varied
from crossopt.instances.catalogue.workload import build_workload
from crossopt.instances.codesign.instance import (
    FreeHardware,
    Goal,
    Instance,
    Join,
    Other,
    asks_for_slowest,
    ceilings_of,
    failures_of,
    goal_faults,
    goal_of,
    prices_of,
)
from crossopt.instances.codesign.networks import Levels, complete_link, levels_of, link_bandwidths, link_of
from crossopt.instances.codesign.open_questions import FEWEST
from crossopt.instances.codesign.plan_choices import Report, plan_options
from crossopt.instances.codesign.section import (
    BudgetSection,
    ChoicesSection,
    ClusterSection,
    CodesignFile,
    HostSection,
    LinkSection,
    TechnologySection,
)
from crossopt.instances.codesign.space import combinations, hardware_points
from crossopt.instances.codesign.stack_table import Machine, Stack
from crossopt.instances.files.units import quoted
from crossopt.instances.files.written import Written

if TYPE_CHECKING:
    from crossopt.crossflow.rare_exchanges import Groups
    from crossopt.instances.catalogue.entries import TechnologyEntry

_HARDWARE_CHOICES = ("die_area", "dies", "hbm_stacks")
_HARDWARE_ENDINGS = ("_area", "_power", "_edge")
_LARGEST_CLUSTER = 1 << 22
_LARGEST_COUNT = 1 << 31
_MOST_POINTS, _MOST_PLANS = 10**18, 10**12


def resolve(file: CodesignFile, written: Written, document: dict[str, Any], report: Report) -> Instance | None:
    """The question of one workload on one number of devices; None after faults were reported."""
    if file.workload is None:
        report("workload", "this key is missing, a mapping is needed (or `workloads`, a list of them)")
        return None
    if file.combine is not None:
        report("combine", "there is one workload only, so that nothing is combined (remove this key)")
    workload = build_workload(file.workload, written.files, lambda path, message: report(_under("workload", path), message))
    stack = _stack(file, report)
    if isinstance(workload, Transformer) and stack is not None:
        workload = stack.trained(workload, file.workload)
    whole, apart = workload, True
    if file.sites is not None or file.objective == "mean_step_time" or file.budget.mean_step_time is not None:
        from crossopt.instances.codesign.sites import one_group  # noqa: PLC0415 - few questions have sites

        file, workload, apart = one_group(file, workload, report)
    sound = _sound(file, workload, report)
    levels, cluster = levels_of(file.cluster, _usual_node(file), report)
    hardware, ranges = _hardware(file, levels, report)
    prices = prices_of(file, hardware, report)
    small = workload is not None and cluster is not None and not _too_large(file, workload)  # the divisors of others would take days
    options = plan_options(file.choices, workload, cluster, report) if small and workload is not None and cluster is not None else None
    if not (sound and apart) or workload is None or cluster is None or hardware is None or options is None:
        return None
    sites = None if file.sites is None else _groups(file, whole, report)
    goal = _goal(file, sites, workload, cluster.devices, getattr(hardware, "power", 0.0))
    instance = Instance(
        name=file.name or Path(written.source).stem,
        workload=workload,
        cluster=cluster,
        hardware=hardware,
        plan_options=options,
        budget=_budget(file.budget, hardware, goal, report),
        objective=file.objective,
        prices=prices,
        document=document,
        only=file.choices.only,
        failures=failures_of(file.cluster),
        machine=_machine(file, levels),
        stack=stack,
        goal=goal,
        ceilings=ceilings_of(file, goal),
        sites=sites,
        derived=derived_text(device_given(file.hardware)[0]) if file.hardware is not None else "",
        priced_by=_constants_text(file, stack),
        calibrated=file.hardware is None or is_calibrated(device_given(file.hardware)[0], file.launcher),
        reserve_given=file.cluster.reserved_memory is not None,
        nodes_given=file.cluster.devices_per_node is not None or file.cluster.network is not None,
        ranges=(*ranges, *(price_ranges(prices) if prices is not None and file.objective == "cost_per_token" else ())),
        others=_others(file, levels, ranges, report),
    )
    _check_size(instance, report)
    if goal is not None and not goal.lasting and (file.objective == "run_cost" or file.budget.run_cost is not None):
        report("cluster.failures", "no time is left between failures, so that no run ends and none has a cost (mend `failures`)")
    if file.objective == FEWEST:
        report("objective", "the fewest devices are found among several numbers (write cluster: {devices: [256, 512]}, or step_time here)")
    if (worst := asks_for_slowest(file)) and not (hardware.variants or instance.others):
        remedy = "such as hardware: a100-80g or technology: {base: accelerator-7nm, constants: a100-80g}, without a section `efficiency`"
        report(worst[-1], f"the worst of several sets of constants needs a device that has them ({remedy})")
    return instance


def _goal(file: CodesignFile, sites: "Groups | None", workload: Workload, devices: int, power: float) -> Goal | None:
    """The whole run, of all groups."""
    groups = 1 if sites is None else sites.groups
    return goal_of(file, groups * workload.tokens, groups * devices, power, _usual_node(file), sites)


def _groups(file: CodesignFile, workload: Workload | None, report: Report) -> "Groups | None":
    from crossopt.instances.codesign.sites import groups_of  # noqa: PLC0415 - few questions have sites

    return groups_of(file, workload, _usual_node(file), report)


def _constants_text(file: CodesignFile, stack: Stack | None) -> str:
    """Description of the constants that apply: calibration set, constants stated in the question, and stack version.
    The text says so if the constants are fitted to no run.
    """
    if file.hardware is not None:
        text = set_of_device(file.hardware, file.launcher)
    else:
        section = file.technology if isinstance(file.technology, TechnologySection) else TechnologySection(file.technology or "")
        text = set_of_technology(section.base, section.constants, file.launcher)
    own = sorted({*file.efficiency, *file.factors.get("efficiency", ())})
    text += f"; but {', '.join(own)} as the question has {'it' if len(own) == 1 else 'them'}" if own else ""
    return f"{text}; {stack.edition_label(file.stack.version)}" if stack and file.stack else text


def _stack(file: CodesignFile, report: Report) -> Stack | None:
    """The rule table of the stack that the question names, at its version."""
    if file.stack is None:
        return None
    from crossopt.instances.codesign.stack_rules import STACKS  # noqa: PLC0415 - most questions name none

    try:
        return STACKS[file.stack.name].at(file.stack.version)
    except ValueError as error:
        report("stack.version", str(error))
        return None


def _machine(file: CodesignFile, levels: Levels) -> Machine:
    """Properties of buildable hardware that stack rules depend on."""
    domain = prod(level.units for level in takewhile(lambda level: level.links == "node", levels))
    if file.hardware is not None:
        return Machine(domain, "fp4" in device_given(file.hardware)[0].peak)
    section = file.technology if isinstance(file.technology, TechnologySection) else TechnologySection(file.technology or "")
    return Machine(domain, "fp4" in technology_given(section.base)[0].core.rates)


_Made = tuple[Hardware | FreeHardware | None, tuple[Range, ...]]
"""Hardware, and its constants with ranges."""


def _hardware(file: CodesignFile, levels: Levels, report: Report) -> _Made:
    """The device or the technology, if exactly one of them is given."""
    if file.workload is None or (file.technology is None) == (file.hardware is None):
        return None, ()
    hardware, ranges = (_fixed if file.hardware is not None else _free)(file, levels, file.workload.precision, report)
    unused = {"node_network", "network"} - {"node_network" if level.links == "node" else "network" for level in levels}
    return hardware, tuple(span for span in ranges if span.section not in unused)


def _others(file: CodesignFile, levels: Levels, ranges: tuple[Range, ...], report: Report) -> tuple[Other, ...]:
    """The hardware under the alternative sets of constants in the question."""
    if file.sets and file.objective != "worst_step_time":
        report("sets", "several sets of constants are for the worst of them (write objective: worst_step_time, or remove this key)")
    found = []
    for name, factors in sets_of(file.sets, ranges, file.factors):
        variant = replace(file, factors=factors)
        hardware, _ = _hardware(variant, levels, lambda path, message: report(path.replace("factors", "sets", 1), message))
        found += [] if hardware is None else [Other(name, hardware)]
    return tuple(found)


def _sound(file: CodesignFile, workload: Workload | None, report: Report) -> bool:
    """Whether every figure has a meaning; others are reported."""
    faults = []
    if (file.technology is None) == (file.hardware is None):
        both = "hardware and technology are both given (keep `hardware` for a device that is bought, `technology` for a free chip)"
        none = "neither hardware nor technology is given (write `hardware:` and a device of `crossopt list hardware`)"
        faults.append(("", none) if file.technology is None else ("hardware", both))
    if file.stack is not None and workload is not None and not isinstance(workload, Transformer):
        faults.append(("stack", f"stacks launch transformers, and this is a {type(workload).__name__.lower()} (remove this key)"))
    if file.cluster.pod != LinkSection() and file.cluster.devices_per_pod is None:
        faults.append(("cluster.pod", "there are no pods (add devices_per_pod, or remove this link)"))
    if file.cluster.host is None and file.choices.offload != ("none",):
        faults.append(("choices.offload", "there is no host to offload to (add cluster.host: {memory: 512 GiB, bandwidth: 25 GB/s})"))
    faults += goal_faults(file)
    faults += [(f"efficiency.{name}", fault) for name, value in file.efficiency.items() if (fault := constant_fault(name, value))]
    for path, figure in _dividing(file):
        if figure is not None and figure <= 0.0:
            faults.append((path, "zero is no figure to work with (give one above 0, or remove the key)"))
    faults += _too_large(file, workload)
    for path, message in faults:
        report(path, message)
    return not faults


def _too_large(file: CodesignFile, workload: Workload | None) -> list[tuple[str, str]]:
    """Faults of numbers too large for the model, or for a search for their divisors."""
    faults = []
    if file.cluster.number > _LARGEST_CLUSTER:
        faults.append(("cluster.devices", f"{file.cluster.number} devices are more than the {_LARGEST_CLUSTER} that a question may have"))
    for field in fields(workload) if workload else ():
        count = getattr(workload, field.name)
        if isinstance(count, int) and count > _LARGEST_COUNT:
            faults.append(("workload", f"{field.name} {count} is more than the {_LARGEST_COUNT} that the model can work with"))
    return faults


def _dividing(file: CodesignFile) -> list[tuple[str, float | None]]:
    """Figures that must be above zero because the model divides by them or needs them, with their paths; None if not stated."""
    figures = link_bandwidths(file.cluster)
    figures += [(f"budget.{field.name}", getattr(file.budget, field.name)) for field in fields(BudgetSection)]
    if file.goal is not None:
        figures += [(f"goal.{name}", getattr(file.goal, name)) for name in ("deadline", "target", "budget", "rent")]
        figures += [("goal.purchase.lifetime", file.goal.purchase.lifetime)] if file.goal.purchase is not None else []
    if file.cluster.host is not None:
        figures += [(f"cluster.host.{field.name}", getattr(file.cluster.host, field.name)) for field in fields(HostSection)[:2]]
    if (failures := file.cluster.failures) is not None:
        figures += [(f"cluster.failures.{name}", getattr(failures, name)) for name in ("mean_time", "checkpoint")]
    if file.prices is not None:
        figures += [("prices.lifetime", file.prices.lifetime), ("prices.wafer_diameter", file.prices.wafer_diameter)]
    return figures


def _check_size(instance: Instance, report: Report) -> None:
    """Report a fault if there are more designs than can be counted."""
    points, plans = hardware_points(instance), combinations(instance)
    for count, most, what in ((points, _MOST_POINTS, "hardware points"), (plans, _MOST_PLANS, "combinations of plan choices")):
        if count > most:
            report("choices", f"{count:.0e} {what} are more than the {most:.0e} that a question may have (give fewer options)")


def _under(section: str, path: str) -> str:
    return f"{section}.{path}" if path else section


# --- network -------------------------------------------------------------------------------------------------------------------------


def _usual_node(file: CodesignFile) -> int:
    if file.hardware is None:
        return 1
    try:
        return device_given(file.hardware)[0].devices_per_node
    except ValueError:
        return 1


# --- hardware ------------------------------------------------------------------------------------------------------------------------


def _efficiency(usual: Efficiency, file: CodesignFile, faults: list[Fault]) -> Efficiency:
    """The constants stated in the question, or else the defaults, times its factors."""
    given = {name: value for name, value in file.efficiency.items() if name in CONSTANTS}
    return constants_with(replace(usual, **given), file.factors, faults)


def _report_faults(faults: list[Fault], report: Report) -> None:
    for path, message in faults:
        report(path, message)


def _fixed(file: CodesignFile, levels: Levels, precision: Precision, report: Report) -> _Made:
    """A device of the registry or of the user, with the cluster's own links where given."""
    for choice in _given_hardware_choices(file.choices):
        report(f"choices.{choice}", "the hardware is fixed, so nothing of it can be chosen (give technology instead of hardware)")
    faults: list[Fault] = []
    try:
        entry, name = device_given(file.hardware or "")
        entry = varied(entry, file.factors, faults)
        built = build_device(entry, name, precision, 3 if entry.network.pod and any(level.links == "pod" for level in levels) else 2)
    except ValueError as error:
        report("hardware", str(error))
        return None, ()
    usual = {"node": built.links[0], "pod": built.links[1], "cluster": built.links[-1]}
    links = tuple(link_of(level, usual[level.links]) for level in levels)
    built = launched_by(built, entry, file.launcher)
    own = _efficiency(built.efficiency, file, faults)
    variants = tuple(constants_with(variant, file.factors, []) for variant in built.variants)
    if file.efficiency:  # other constants than those that were fitted: no measured run tells how far they are off
        built, variants = replace(built, error=None), ()
    _report_faults(faults, report)
    reserved = _reserved(file, built.reserved_memory)
    built = replace(built, links=links, efficiency=own, variants=variants, host=_host(file.cluster), reserved_memory=reserved)
    if not is_inside(file.launcher or "", name, file.cluster.number):
        sections = ["node_network" if level.links == "node" else "network" for level in levels]
        vouched = [level.given.bandwidth is not None for level in levels]
        built = doubted(built, entry.ranges, [None if known else name for name, known in zip(sections, vouched, strict=True)])
    return built, ranges_of(entry, own, variants)


def _free(file: CodesignFile, levels: Levels, precision: Precision, report: Report) -> _Made:
    """A technology with its default split, and the hardware choices."""
    from crossopt.instances.catalogue import technologies  # noqa: PLC0415 - most questions name a device

    section = file.technology if isinstance(file.technology, TechnologySection) else TechnologySection(file.technology or "")
    faults: list[Fault] = []
    try:
        stated, name, node = technology_given(section.base)
        stated = technologies.with_node_links(technologies.in_package(stated, section.package), section.links)
        entry = varied(stated, file.factors, faults)
        if node is not None and section.logic is not None:
            report("technology.logic", f"{quoted(name)} names a logic node already (remove one of the two)")
        technology = technologies.build_technology(entry, name, section.logic or node, section.memory, section.network, precision)
        usual, variants = constants_of(entry, name, section.constants, file.launcher)
    except ValueError as error:
        report("technology", str(error))
        return None, ()
    if entry.die_links is None and any(dies > 1 for dies in file.choices.dies or ()):
        report("choices.dies", f"{name} has no links between dies (choose 1, or another technology)")
    split, own = entry.split, _efficiency(usual, file, faults)
    fitted = () if file.efficiency else variants  # no fit tells of other constants
    _report_faults(faults, report)
    free = FreeHardware(
        technology=technology,
        die_area=split.die_area,
        package_area=split.package_area,
        power=split.power,
        power_density=inf if entry.power_density is None else entry.power_density,
        reticle=inf if entry.reticle is None else entry.reticle,
        dies=float(split.dies),
        areas=technologies.usual_areas(stated, technology),
        sold_l2=technologies.reference_l2_banks(stated),
        powers=split.powers,
        edges=technologies.edges_of(split),
        reserved_memory=_reserved(file, entry.reserved_memory),
        host=_host(file.cluster),
        efficiency=own,
        variants=tuple(constants_with(variant, file.factors, []) for variant in fitted),
        setups=setups_of(entry, section.constants),
        levels=tuple("intra" if level.links == "node" else "inter" for level in levels),
        overrides=tuple(complete_link(level, report) for level in levels),
        joins=tuple(Join(level.shape, level.joined, level.share, level.given.reduces) for level in levels),
        options=tuple((name, getattr(file.choices, name)) for name in _given_hardware_choices(file.choices)),
        prices=technologies.usual_prices(entry, section.logic or node, section.memory),
        like=(section.constants or entry.constants) if fitted else None,
        sources=tuple(entry.sources.items()),
    )
    free = free if file.factors else replace(free, reference_device=_reference_device(free, section, node, stated, precision))
    return free, ranges_of(entry, own, free.variants, any(dies > 1 for dies in file.choices.dies or (split.dies,)))


def _reference_device(
    free: FreeHardware, section: TechnologySection, node: str | None, entry: "TechnologyEntry", precision: Precision
) -> Hardware | None:
    """The device on the market from which a technology's constants come; None for other generations than the entry's."""
    from crossopt.instances.codesign.chips import joined  # noqa: PLC0415 - most questions name a device

    generations = (section.logic or node, entry.logic_nodes), (section.memory, entry.memories), (section.network, entry.network_steps)
    own = section.constants or section.package or section.links
    if free.like is None or own or any(name not in (None, next(iter(known), None)) for name, known in generations):
        return None
    given, name = device_given(free.like)
    if precision not in given.peak:
        return None
    built = build_device(given, name, precision, 2)
    levels = zip(free.levels, free.overrides, free.joins, strict=True)
    links = tuple(own or joined(built.links[("intra", "inter").index(level)], join) for level, own, join in levels)
    return replace(
        built, links=links, efficiency=free.efficiency, variants=free.variants, host=free.host, reserved_memory=free.reserved_memory
    )


def _host(cluster: ClusterSection) -> Memory | None:
    if (host := cluster.host) is None:
        return None
    each = host.shared_by
    return Memory(host.memory / each, host.bandwidth / each, 8.0 * host.energy, host.latency * each)


def _reserved(file: CodesignFile, usual: float) -> float:
    """Reserved bytes per device: as the question states, or the hardware's default."""
    return usual if file.cluster.reserved_memory is None else file.cluster.reserved_memory


def _given_hardware_choices(choices: ChoicesSection) -> tuple[str, ...]:
    names = [field.name for field in fields(ChoicesSection) if field.name in _HARDWARE_CHOICES or field.name.endswith(_HARDWARE_ENDINGS)]
    return tuple(name for name in names if getattr(choices, name) is not None)


def _budget(section: BudgetSection, hardware: Hardware | FreeHardware, goal: Goal | None, report: Report) -> Budget:
    """Limits as given; for a technology, the usual chip's by default, otherwise none. A goal limits the step time."""
    names = ("die_area", "package_area", "power", "power_density", "reticle")
    usual = {name: getattr(hardware, name) if isinstance(hardware, FreeHardware) else inf for name in names}
    for name, what in (("power_density", "cooling"), ("reticle", "dies")):
        if isinstance(hardware, Hardware) and getattr(section, name) is not None:
            report(f"budget.{name}", f"a device that is bought comes with its {what} (remove this key, or ask for a technology)")
    limits = {name: own if (limit := getattr(section, name)) is None else limit for name, own in usual.items()}
    return Budget(**limits, step_time=min(section.step_time or inf, goal.step_time if goal and goal.sites is None else inf))
