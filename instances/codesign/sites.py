"""Groups of devices that exchange rarely: the share of one group in cluster and batch, and every way to exchange with its steps."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Final

from crossopt.crossflow.parameters import parameters
from crossopt.crossflow.rare_exchanges import HORIZON, Exchange, Groups, fitted_spread
from crossopt.crossflow.workload import Transformer, Workload
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.plan_choices import Report
from crossopt.instances.codesign.section import CodesignFile, SitesSection
from crossopt.instances.files.document import Node

_MOST_WAYS = 256
OBJECTIVE: Final = "mean_step_time"


def per_mean_step(file: CodesignFile, root: Node) -> CodesignFile:
    """The question with objective mean step time if it has sites and names no objective."""
    named = isinstance(root.value, dict) and "objective" in root.value
    return file if named or file.sites is None else replace(file, objective=OBJECTIVE)


def one_group(file: CodesignFile, workload: Workload | None, report: Report) -> tuple[CodesignFile, Workload | None, bool]:
    """The question of one group, with its workload, and whether sites are sound; without sites as it is."""
    if file.sites is None:
        asked = {"objective": file.objective == OBJECTIVE, "budget.mean_step_time": file.budget.mean_step_time is not None}
        for path in (path for path, given in asked.items() if given):
            report(path, "the mean step is that of groups that exchange (add a section `sites`, or write step_time)")
        return file, workload, not any(asked.values())
    faults = _faults(file, file.sites, workload)
    for path, message in faults:
        report(path, message)
    if faults or not isinstance(workload, Transformer):
        return file, workload, False
    groups, count = file.sites.groups, file.cluster.number
    own = replace(file, cluster=replace(file.cluster, devices=(count // groups,)))
    return own, replace(workload, global_batch=workload.global_batch // groups), True


def _faults(file: CodesignFile, sites: SitesSection, workload: Workload | None) -> list[tuple[str, str]]:
    """Faults of the section and of what does not go with it."""
    found, groups, devices = list[tuple[str, str]](), sites.groups, file.cluster.number
    if file.objective not in _OBJECTIVES:
        allowed = f"one of {', '.join(_OBJECTIVES)}"
        found.append(("objective", f"groups that exchange rarely are compared by their mean step, not {file.objective} ({allowed})"))
    if file.goal is not None and file.goal.by == "slowest":
        found.append(("goal.by", "with `sites` the run is that of the central constants (remove this key)"))
    for name in _TIMES:
        if getattr(file.budget, name) is not None:
            found.append((f"budget.{name}", "with `sites` a limit is one on the mean step (write mean_step_time)"))
    if devices % groups:
        found.append(("sites.groups", f"{groups} groups do not divide the {devices} devices"))
    if workload is not None and not isinstance(workload, Transformer):
        found.append(("sites", f"groups exchange the parameters of a transformer, and this is a {type(workload).__name__.lower()}"))
    if isinstance(workload, Transformer):
        if workload.global_batch % groups:
            found.append(("sites.groups", f"{groups} groups do not divide the global batch {workload.global_batch}"))
        if (most := max(sites.fragments)) > workload.stack:
            found.append(("sites.fragments", f"{most} fragments are more than the {workload.stack} layers"))
    return [*found, *_figure_faults(sites)]


_TIMES = ("step_time", "time_per_sample", "worst_step_time")
_OBJECTIVES = (OBJECTIVE, "run_cost", "die_area", "power")
"""Figures that no exchange changes, or that never fall when the mean step grows."""


def _figure_faults(sites: SitesSection) -> list[tuple[str, str]]:
    found = list[tuple[str, str]]()
    if sites.groups > 1 and not sites.bandwidth:
        found.append(("sites.bandwidth", "groups need a link between them (give a bandwidth above 0, such as 10 Gbit/s)"))
    if sites.straggler and sites.scaling:
        found.append(("sites.straggler", "the spread is fitted to the runs of `scaling` (remove one of the two)"))
    if min(sites.compression) <= 0.0:
        found.append(("sites.compression", "zero sends nothing (give a share above 0 and up to 1)"))
    if sites.bytes_per_parameter <= 0.0:
        found.append(("sites.bytes_per_parameter", "zero bytes send nothing (give a number above 0, such as 2)"))
    if max(sites.sync_every) > HORIZON:
        found.append(("sites.sync_every", f"exchanges are counted in {HORIZON} steps (give at most {HORIZON})"))
    if max(sites.overlap_steps) >= HORIZON // 2:
        found.append(("sites.overlap_steps", f"exchanges are counted in {HORIZON} steps (give less than {HORIZON // 2})"))
    if any(row.steps <= 0.0 for row in sites.quality):
        found.append(("sites.quality", "no training takes zero steps (give a factor above 0)"))
    if "synchronous" in sites.exchange and min(sites.fragments) > max(sites.sync_every):
        found.append(
            ("sites.fragments", f"{min(sites.fragments)} fragments are more than the {max(sites.sync_every)} steps between exchanges")
        )
    if (ways := _number_of_ways(sites)) > _MOST_WAYS:
        found.append(("sites", f"{ways} ways to exchange are more than the {_MOST_WAYS} allowed (give fewer options)"))
    return found


def _number_of_ways(sites: SitesSection) -> int:
    return prod(map(len, (sites.exchange, sites.sync_every, sites.fragments, sites.overlap_steps, sites.compression)))


def _ways(sites: SitesSection) -> tuple[Exchange, ...]:
    """Every way to exchange. Groups that never wait have neither fragments nor overlap; others at most a fragment a step."""
    if sites.groups == 1:
        return (Exchange(),)
    found = [Exchange(every, 1, 0, share, asynchronous=True) for every, share in product(sites.sync_every, sites.compression)]
    found = found if "asynchronous" in sites.exchange else []
    if "synchronous" in sites.exchange:
        every = product(sites.sync_every, sites.fragments, sites.overlap_steps, sites.compression)
        found += [Exchange(*way) for way in every if way[1] <= way[0]]
    return tuple(found)


def groups_of(file: CodesignFile, whole: Workload | None, usual_node: int, report: Report) -> Groups | None:
    """The groups with every way to exchange; None without sites. `file` is the question of one group."""
    sites = file.sites
    if sites is None or not isinstance(whole, Transformer):
        return None
    ways, devices = _ways(sites), file.cluster.number
    factors = [_factor(sites, way) for way in ways]
    holes = [way for way, factor in zip(ways, factors, strict=True) if factor is None]
    if holes and (sites.quality or len(ways) > 1):
        what = "the table has no row for" if sites.quality else "how many steps training needs is not known for"
        report("sites.quality", f"{what} {holes[0]} with {sites.groups} groups (add a row with `steps`, from your own runs)")
    return Groups(
        groups=sites.groups,
        parameters=float(parameters(whole)),
        bytes_per_parameter=sites.bytes_per_parameter,
        bandwidth=sites.bandwidth or 1.0,
        latency=sites.latency,
        ways=ways,
        steps=tuple(1.0 if factor is None else factor for factor in factors),
        spread=fitted_spread([(row.nodes, row.share) for row in sites.scaling]) if sites.scaling else sites.straggler,
        nodes=max(devices / (file.cluster.devices_per_node or usual_node), 1.0),
        known=bool(sites.quality) or not holes,
    )


def _factor(sites: SitesSection, way: Exchange) -> float | None:
    """Steps that a way needs, by the table; 1 for data parallelism, and for one group."""
    if sites.groups == 1 or way.learns_alike:
        return 1.0
    named = {
        "sync_every": way.every,
        "groups": sites.groups,
        "compression": way.compression,
        "overlap_steps": way.overlap,
        "exchange": "asynchronous" if way.asynchronous else "synchronous",
    }
    for row in sites.quality:
        if all(getattr(row, name) in (None, value) for name, value in named.items()):
            return row.steps
    return None


def groups_faults(parts: Sequence[Instance]) -> str:
    """Why numbers of groups cannot be compared; empty where they can."""
    if all(part.sites is None or part.sites.known for part in parts):
        return ""
    return "how many steps training needs depends on the groups (add `quality`, a table from your own runs, or give one number)"
