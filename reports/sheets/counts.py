"""Sheets of counts of kinds: instances on a server, a fleet of several kinds of devices, and pipelines over unequal nodes."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from crossopt.instances.counts.fleet import FleetQuestion
from crossopt.instances.counts.networks import NetworkRun
from crossopt.instances.counts.pipelines import PipelinesQuestion
from crossopt.instances.counts.shapes import InstancesQuestion
from crossopt.instances.files.units import format_quantity, rounded_quantity
from crossopt.reports.sheets.amounts import listed, several
from crossopt.reports.sheets.sheet import (
    Breakdown,
    Column,
    Limit,
    Limits,
    Section,
    Sheet,
    Table,
    amounts,
    answer_sheet,
    baselines_in,
    counts,
    names,
)
from crossopt.solvers.answer import Result
from crossopt.solvers.counts.fleet import Fleet, FleetUse
from crossopt.solvers.counts.instances import InstanceGroup, InstanceGroups, ServerUse
from crossopt.solvers.counts.pipelines import Placement, TokenFlow


def instances_sheet(question: InstancesQuestion, result: Result[InstanceGroups, ServerUse]) -> Sheet:
    """What is shown of instances."""
    file, answer, use = question.file, result.answer, result.details
    sought = "the slowest instance ends soonest" if file.objective == "latency" else "they answer most requests a second"
    return answer_sheet(
        result,
        "configuration",
        f"How many instances of how many threads and requests each run on {file.threads} threads, so that {sought}?",
        asks="latency" if file.objective == "latency" else "time per request",
        summary=_groups_text(answer.groups, file.sockets) if answer else "",
        answer_rows=(("instances", _groups_text(answer.groups, file.sockets)),) if answer else (),
        figures=_instance_figures(question, use) if use else (),
        given=_instances_given(question),
        sections=(
            *((_groups(question, answer.groups, use), _instance_limits(question, use)) if answer and use else ()),
            baselines_in(
                "configuration",
                result,
                result.baselines,
                [_groups_text(baseline.answer.groups, file.sockets) if baseline.answer else "" for baseline in result.baselines],
            ),
        ),
        notes=(*result.notes, *(_instance_notes(question, use) if use else ())),
        judged="instance by instance",
        next_step="`crossopt export RESULT --as replicas` writes them as JSON" if answer else "",
    )


def replicas(question: InstancesQuestion | FleetQuestion | PipelinesQuestion, result: Result[Any, Any]) -> list[dict[str, Any]]:
    """Instances with their threads, batch and latency, and their socket where there are several; replicas of each kind of device, with
    the requests a second of every class that are sent to all of them; or nodes with their layers, and the tokens a second that they send.
    """
    if result.answer is None or result.details is None:
        return []
    if isinstance(question, PipelinesQuestion):
        return [
            {"node": held.node, "kind": _kind_of(question, held.node), "first_layer": held.first, "layers": held.layers}
            | {"tokens_per_second": {link.receiver: link.rate for link in result.details.links if link.sender == held.node}}
            for held in result.answer.nodes
        ]
    if isinstance(question, FleetQuestion):
        return [
            {"device": kind, "replicas": number, "price_usd_per_hour": question.file.devices[kind].price}
            | {"requests_per_second": {name: float(rate) for name, rate in _sent(question, result.answer, kind).items()}}
            for kind, number in result.answer.devices.items()
        ]
    return [
        {**({"socket": group.socket} if question.file.sockets > 1 else {}), "instances": group.instances, "threads": group.threads}
        | {"batch": group.batch, "latency_s": latency}
        for group, latency in zip(result.answer.groups, result.details.latencies, strict=True)
    ]


def _groups_text(groups: Sequence[InstanceGroup], sockets: int) -> str:
    """Instances with their threads and batch; equal sockets together."""
    parts = [
        f"{group.instances} x ({several(group.threads, 'thread')}, batch {group.batch})"
        + (f" on socket {group.socket}" if sockets > 1 else "")
        for group in groups
    ]
    if sockets > 1:
        of_socket = [
            [(group.instances, group.threads, group.batch) for group in groups if group.socket == socket] for socket in range(sockets)
        ]
        if all(item == of_socket[0] for item in of_socket):
            parts = [part.partition(" on socket")[0] for part in parts[: len(of_socket[0])]]
            return f"{' · '.join(parts)} on each of {sockets} sockets"
    return " · ".join(parts)


def _time(seconds: float) -> str:
    return rounded_quantity(seconds, "time", 5)


def _instance_figures(question: InstancesQuestion, use: ServerUse) -> tuple[tuple[str, str], ...]:
    rest = ("latency", _time(use.latency)) if question.file.objective == "throughput" else ("requests a second", f"{use.throughput:.5g}")
    idle = question.file.threads - use.threads
    work, peak = question.file.work, question.file.peak
    share = (
        () if work is None or peak is None else (("utilisation", f"{use.throughput * work / (question.file.threads * peak):.1%} of peak"),)
    )
    return rest, *share, ("threads", f"{use.threads} of {question.file.threads}" + (f", {idle} idle" if idle else ""))


def _instances_given(question: InstancesQuestion) -> tuple[tuple[str, str], ...]:
    file = question.file
    rows = (
        ("threads", f"{file.threads}" + ("" if file.idle_threads else ", none idle")),
        ("sockets", f"{file.sockets}" if file.sockets > 1 else ""),
        ("requests in flight", "" if file.batch is None else f"{file.batch:,}"),
        ("measured shapes", f"{len(question.shapes):,}"),
        ("service level", "" if file.latency is None else format_quantity(file.latency, "time")),
        ("memory", "" if question.memory_instances is None else f"of {several(question.memory_instances, 'instance')}"),
        ("interference", ", ".join(f"{float(factor):g} from {count} instances on" for count, factor in question.factors[1:])),
    )
    return tuple(row for row in rows if row[1])


def _groups(question: InstancesQuestion, groups: Sequence[InstanceGroup], use: ServerUse) -> Section:
    socket = [counts("socket", [group.socket for group in groups])] if question.file.sockets > 1 else []
    rates = [group.instances * group.batch / latency for group, latency in zip(groups, use.latencies, strict=True)]
    table = Table(
        (
            *socket,
            counts("instances", [group.instances for group in groups]),
            counts("threads each", [group.threads for group in groups]),
            counts("batch each", [group.batch for group in groups]),
            amounts("latency", use.latencies, _time, "s"),
            Column("requests a second", tuple(f"{rate:.5g}" for rate in rates), tuple(rates)),
        )
    )
    return Section("Instances", (table,))


def _instance_limits(question: InstancesQuestion, use: ServerUse) -> Section:
    file = question.file
    rows = [Limit("latency", use.latency, file.latency, "time")] if file.latency is not None else []
    if file.memory is not None and file.memory_per_instance is not None:
        rows.append(Limit("memory", use.instances * file.memory_per_instance, file.memory, "bytes"))
    return Section("Limits", (Limits(tuple(rows)),) if rows else ())


def _instance_notes(question: InstancesQuestion, use: ServerUse) -> tuple[str, ...]:
    if use.instances > 1 and len(question.factors) == 1:
        return ("latencies were measured with one instance running; several slow each other down (state it as interference)",)
    return ()


# Fleets.


def fleet_sheet(question: FleetQuestion, result: Result[Fleet, FleetUse]) -> Sheet:
    """What is shown of a fleet."""
    answer, use = result.answer, result.details
    return answer_sheet(
        result,
        "fleet",
        f"How many devices of each kind serve all classes of requests {_SOUGHT[question.file.objective]}?",
        asks="cost" if question.file.objective == "cost" else "peak of all devices",
        summary=_fleet_text(answer) if answer else "",
        answer_rows=(("devices", _fleet_text(answer)), *_network_rows(question, answer)) if answer else (),
        figures=_fleet_figures(use) if use else (),
        given=(
            ("classes", f"{len(question.classes):,}"),
            ("requests a second", f"{float(sum(question.loads)):.6g}"),
            ("kinds of devices", f"{len(question.kinds):,}"),
            ("utilization", f"up to {question.file.utilization:.0%}"),
            ("split of a class", "any" if question.file.slices is None else f"{question.file.slices} equal slices"),
        ),
        sections=(
            *((_kinds(question, answer, use), _classes(question, answer)) if answer and use else ()),
            *((_runs(question),) if question.runs else ()),
            baselines_in(
                "fleet",
                result,
                result.baselines,
                [_fleet_text(baseline.answer) if baseline.answer else "" for baseline in result.baselines],
            ),
        ),
        notes=(*result.notes, *(_shared_notes(question, answer) if answer else ()), *((_BUSY,) if use and use.utilization > _FULL else ())),
        judged="class by class, in exact fractions",
        next_step="`crossopt export RESULT --as replicas` writes replicas and where requests go as JSON" if answer else "",
    )


_SOUGHT = {"cost": "for the least cost", "utilisation": "at the greatest utilisation"}
_FULL, _BUSY = 0.95, "nearly all devices are always busy (utilization: 80 % in the question leaves room for bursts)"
_NAMED = 8
"""Kinds of devices that a line names."""


def _fleet_text(answer: Fleet) -> str:
    parts = [f"{number:,} {kind}" for kind, number in answer.devices.items()]
    more = f" · {len(parts) - _NAMED + 1} more kinds" if len(parts) > _NAMED else ""
    return " · ".join(parts if not more else parts[: _NAMED - 1]) + more


def _fleet_figures(use: FleetUse) -> tuple[tuple[str, str], ...]:
    return (
        ("devices", f"{use.devices:,}"),
        ("busy", f"{use.utilization:.1%} of what is paid"),
        ("a million requests", f"{use.cost_per_million:.4g} USD"),
        *((("utilisation", f"{use.achieved:.1%} of peak"),) if use.achieved is not None else ()),
    )


def _sent(question: FleetQuestion, answer: Fleet, kind: str) -> dict[str, Fraction]:
    """Requests a second of each class that go to a kind."""
    loads = dict(zip(question.classes, question.loads, strict=True))
    return {name: loads[name] * Fraction(shares[kind]) for name, shares in answer.shares.items() if kind in shares}


def _network_rows(question: FleetQuestion, answer: Fleet) -> tuple[tuple[str, str], ...]:
    """Batch and format of each network where it is served."""
    return tuple(
        (name, ", ".join(f"{_run_text(question.runs[name, kind])} on {kind}" for kind in shares))
        for name, shares in answer.shares.items()
        if name in question.work
    )


def _run_text(run: NetworkRun) -> str:
    return f"batch {run.batch}{f' folded by {run.fold}' if run.fold > 1 else ''} in {run.format}"


def _shared_notes(question: FleetQuestion, answer: Fleet) -> Iterator[str]:
    """How networks are launched, which are folded, and what a request waits for where several share a device."""
    served = [(name, question.runs[name, kind]) for name, shares in answer.shares.items() if name in question.work for kind in shares]
    if served:
        yield "networks are launched operator by operator (PyTorch eager): engines that compile them, as TensorRT, may need fewer devices"
    if folds := list(dict.fromkeys(name for name, run in served if run.fold > 1)):
        yield f"{listed(folds)}: folded networks are trained anew, and what folding costs in quality is not modelled"
    for kind in answer.devices:
        times = [question.runs[name, kind].time for name in question.work if kind in answer.shares.get(name, {})]
        if len(times) > 1:
            yield f"where networks share a {kind}, a request waits for a batch of each: {_time(sum(times) + max(times))} at most"


def _runs(question: FleetQuestion) -> Section:
    """The best batch and format of each network on each kind of device."""
    runs = list(question.runs.values())
    table = Table(
        (
            names("network", [name for name, _ in question.runs]),
            names("device", [kind for _, kind in question.runs]),
            names("format", [run.format for run in runs]),
            counts("batch", [run.batch for run in runs]),
            *((counts("fold", [run.fold for run in runs]),) if any(run.fold > 1 for run in runs) else ()),
            amounts("latency", [run.latency for run in runs], _time, "s"),
            Column("requests a second", tuple(f"{run.rate:,.0f}" for run in runs), tuple(run.rate for run in runs)),
            Column("utilisation", tuple(f"{run.utilisation:.1%}" for run in runs), tuple(run.utilisation for run in runs), "busy share"),
        ),
        most=_ROWS,
    )
    return Section("Networks on each kind of device", (table,))


def _kinds(question: FleetQuestion, answer: Fleet, use: FleetUse) -> Section:
    """Devices, cost and load of each kind that is taken."""
    kinds, prices = list(answer.devices), [question.file.devices[kind].price for kind in answer.devices]
    numbers = [answer.devices[kind] for kind in kinds]
    busy = [use.busy[kind] / number for kind, number in zip(kinds, numbers, strict=True)]
    costs = [price * number for price, number in zip(prices, numbers, strict=True)]
    rates = [float(sum(_sent(question, answer, kind).values())) for kind in kinds]
    table = Table(
        (
            names("device", kinds),
            counts("number", numbers),
            Column("USD/h", tuple(f"{cost:,.2f}" for cost in costs), tuple(costs)),
            Column("busy", tuple(f"{item:.1%}" for item in busy), tuple(busy), "busy share"),
            Column("requests a second", tuple(f"{rate:.5g}" for rate in rates), tuple(rates)),
        )
    )
    cost = Breakdown("device", tuple(zip(kinds, costs, strict=True)), "money", "Cost of an hour by kind of device.")
    return Section("Devices", (table, cost) if len(kinds) > 1 else (table,))


def _classes(question: FleetQuestion, answer: Fleet) -> Section:
    """Where the requests of each class go."""
    rates = tuple(float(load) for load in question.loads)
    where = [
        ", ".join(f"{kind} {float(Fraction(share)):.2%}".replace(".00%", "%") for kind, share in answer.shares[name].items())
        for name in question.classes
    ]
    table = Table(
        (
            names("class", question.classes),
            Column("requests a second", tuple(f"{rate:.5g}" for rate in rates), rates),
            names("served by", where),
        ),
        most=_ROWS,
    )
    return Section("Where requests go", (table,))


_ROWS = 40
"""Classes that a terminal shows; spreadsheets have all."""


# Pipelines.


def pipelines_sheet(question: PipelinesQuestion, result: Result[Placement, TokenFlow]) -> Sheet:
    """What is shown of a placement of layers."""
    answer, flow, file = result.answer, result.details, question.file
    usual = "any" if file.links is None else "none"
    rate = "by pair" if file.links else usual if file.link_rate is None else f"{file.link_rate:,.6g} tokens/s"
    return answer_sheet(
        result,
        "placement",
        "Which node holds which layers, so that most tokens a second pass?",
        asks="time per token",
        summary=_stages_text(question, answer) if answer else "",
        answer_rows=(("layers", _stages_text(question, answer)),) if answer else (),
        figures=_flow_figures(question, answer, flow, result.bound) if answer and flow else (),
        given=(
            ("layers", f"{question.layers:,}"),
            ("nodes", f"{len(question.nodes):,}"),
            ("kinds of nodes", f"{len(file.nodes):,}"),
            ("links", rate),
            ("partial inference", "yes" if file.partial else "no"),
        ),
        sections=(
            *((_nodes(question, answer, flow), _links(flow)) if answer and flow else ()),
            baselines_in(
                "placement",
                result,
                result.baselines,
                [_stages_text(question, baseline.answer) if baseline.answer else "" for baseline in result.baselines],
            ),
        ),
        notes=result.notes,
        judged="by its greatest flow and a cut of the same rate",
        next_step="`crossopt export RESULT --as replicas` writes nodes, layers and flows as JSON" if answer else "",
    )


def _kind_of(question: PipelinesQuestion, node: str) -> str:
    return question.kinds[question.nodes.index(node)]


def _span(first: int, layers: int) -> str:
    """Layers from the first to the last, counted from 0."""
    return f"{first}-{first + layers - 1}" if layers > 1 else f"{first}"


def _stages_text(question: PipelinesQuestion, answer: Placement) -> str:
    """Layers with the kinds of the nodes that hold them."""
    held: dict[tuple[int, int], list[str]] = {}
    for one in sorted(answer.nodes, key=lambda one: (one.first, one.layers)):
        held.setdefault((one.first, one.layers), []).append(_kind_of(question, one.node))
    kinds = {span: " + ".join(f"{own.count(kind)} {kind}" for kind in dict.fromkeys(own)) for span, own in held.items()}
    parts = [f"{_span(*span)} on {text}" for span, text in kinds.items()]
    return " · ".join(parts if len(parts) <= _NAMED else [*parts[: _NAMED - 1], f"{len(parts) - _NAMED + 1} more"])


def _flow_figures(question: PipelinesQuestion, answer: Placement, flow: TokenFlow, bound: float | None) -> tuple[tuple[str, str], ...]:
    most = "" if bound is None or 1.0 / bound <= flow.rate * (1.0 + _SAME) else f", no placement passes over {1.0 / bound:,.6g}"
    idle = len(question.nodes) - len(answer.nodes)
    cut = [*flow.cut[:_IN_CUT], *([f"{len(flow.cut) - _IN_CUT} more"] if len(flow.cut) > _IN_CUT else [])]
    return (
        ("tokens a second", f"{flow.rate:,.6g}{most}"),
        ("nodes", f"{len(answer.nodes)} of {len(question.nodes)}" + (f", {idle} idle" if idle else "")),
        ("bottleneck", listed(cut)),
    )


_IN_CUT, _SAME = 3, 1e-12
"""Nodes and links of a cut that a line names, and by how much rates differ that are one."""


def _nodes(question: PipelinesQuestion, answer: Placement, flow: TokenFlow) -> Section:
    """What each node holds and passes, in the order of the layers."""
    rows = sorted(zip(answer.nodes, flow.passed, flow.able, strict=True), key=lambda row: (row[0].first, row[0].layers))
    busy = [passed / able for _, passed, able in rows]
    table = Table(
        (
            names("node", [held.node for held, _, _ in rows]),
            names("kind", [_kind_of(question, held.node) for held, _, _ in rows]),
            counts("first layer", [held.first for held, _, _ in rows]),
            counts("layers", [held.layers for held, _, _ in rows]),
            Column("tokens a second", tuple(f"{passed:,.6g}" for _, passed, _ in rows), tuple(passed for _, passed, _ in rows)),
            Column("at most", tuple(f"{able:,.6g}" for _, _, able in rows), tuple(able for _, _, able in rows)),
            Column("busy", tuple(f"{item:.1%}" for item in busy), tuple(busy), "busy share"),
        ),
        most=_ROWS,
    )
    return Section("Nodes", (table,))


def _links(flow: TokenFlow) -> Section:
    """Tokens over each link that carries any."""
    rates = tuple(link.rate for link in flow.links)
    table = Table(
        (
            names("from", [link.sender for link in flow.links]),
            names("to", [link.receiver for link in flow.links]),
            Column("tokens a second", tuple(f"{rate:,.6g}" for rate in rates), rates),
        ),
        most=_ROWS,
    )
    return Section("Links", (table,))
