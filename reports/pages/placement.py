"""A page about where operators run: how busy every device is or when it runs, the graph with the device of every operator, the proof."""

from collections import defaultdict
from collections.abc import Sequence

from crossopt.instances.files.units import format_quantity
from crossopt.instances.placement.graph import PlacementQuestion
from crossopt.reports.drawing.bars import Row, bars
from crossopt.reports.drawing.graph import MOST, Graph, drawn
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.drawing.timeline import Segment, Track, timeline
from crossopt.reports.facts.placement import Placed, beside
from crossopt.reports.pages.search import Search, search_section
from crossopt.reports.pages.shell import Page, figure, folded, heading, listing, paragraph, proof_box, section, swatch_row, table, tiles
from crossopt.solvers.placement.family import Answer
from crossopt.solvers.placement.judge import Load, PlacementLoads, Run

_SHOWN = 40
"""Devices in a picture, the busiest ones; tables have as many."""
_WORK = ("compute", "transfer")
_PIECE = ("compute", "take in", "hand out")


def placement_page(asked: PlacementQuestion, result: Answer, facts: Placed, data: object) -> Page:
    """The page; `data` is the result as it was read, for re-use."""
    head = (heading(asked.name, facts.sentence), _verdict(result))
    question = section("The question", table(("", "given"), facts.terms), _given(result))
    value, details = result.value, result.details
    if value is None or details is None:
        reasons = section("Why", listing(result.reasons))
        return Page(asked.name, (*head, reasons, question), data)
    busy = _schedule(details, value) if details.runs else _loads(details, facts, value)
    tiled, rivals = _tiles(asked, result, details), _rivals(asked, result)
    sections = (*head, tiled, question, busy, _graph(facts), _traffic(facts), rivals, _search(result))
    return Page(asked.name, (*sections, section("Notes", listing(asked.notes)), _proof(result)), data)


def _given(result: Answer) -> str:
    text = result.question.get("text", "")
    return folded("The question as it was written", text) if result.question["source"].endswith((".yaml", ".yml")) else ""


def _words(result: Answer) -> str:
    if result.value is None:
        return f"No placement keeps the limits, by {result.proved_by}." if result.proved else f"No placement was found ({result.stopped})."
    if result.bound is None:
        return "This is a placement without a bound: a better one may exist."
    if result.proved:
        return f"No placement is below {result.bound:.7g} ms, by {result.proved_by}."
    return f"A better placement may exist, but none below {result.bound:.7g} ms, by {result.proved_by}."


def _verdict(result: Answer) -> str:
    label = "proved optimal" if result.status == "OPTIMAL" else f"proved within {result.gap_asked:.2%}" if result.proved else "not proved"
    if result.value is None:
        label = "proved: no placement" if result.proved else "no placement found"
    return proof_box(label, _words(result), result.proved)


def _tiles(asked: PlacementQuestion, result: Answer, details: PlacementLoads) -> str:
    value, latency = result.value or 0.0, asked.problem == "latency"
    what = "for one sample" if latency else "busiest device"
    facts = [(what, f"{value:.5g} ms"), ("lower bound", "none" if result.bound is None else f"{result.bound:.5g} ms")]
    facts += [("gap", f"{result.gap:.2%}")] if result.gap is not None else []
    facts += [("samples a second", f"{1e3 / value:.5g}")] if value and not latency else []
    used = sum(load.nodes > 0 for load in details.loads)
    return tiles([*facts, ("devices at work", f"{used:,} of {len(details.loads):,}"), ("operators", f"{len(asked.graph):,}")])


# --- devices -------------------------------------------------------------------------------------------------------------------------


def _loads(details: PlacementLoads, facts: Placed, value: float) -> str:
    """How busy every device is, stacked where transfers take its time, and in two lanes where they run behind the work."""
    busy = [load for load in details.loads if load.nodes]
    loads = sorted(busy, key=lambda load: -load.total)[:_SHOWN]
    shown = [load for load in busy if load in loads][:_SHOWN]
    lanes = 2 if facts.overlapped else 1
    tracks = [Track(load.device, _segments(load, lanes), f"{load.total:.5g} ms") for load in shown]
    busiest = loads[0]
    titles = Titles(
        "loads", "How busy every device is", f"The busiest of {len(details.loads)} devices is {busiest.device} with {value:.5g} ms."
    )
    picture = timeline(titles, tracks, value, "ms for a sample", "the pace")
    idle, less = len(details.loads) - len(busy), len(busy) - len(shown)
    left_out = f" Idle: {idle:,}." if idle else ""
    left_out += f" Less busy and left out: {less:,}." if less else ""
    told = "transfers run behind the work, in the lower lane" if lanes == 2 else "transfers take a device its time, and are half as high"
    caption = f"The busiest device sets the pace; {told}.{left_out}"
    return section("How busy every device is", swatch_row(_WORK), figure(picture, caption), _load_table(shown, value, facts.memory))


def _segments(load: Load, lanes: int) -> tuple[Segment, ...]:
    if lanes == 2:
        return Segment(0.0, load.compute, 0, 0, 2), Segment(0.0, load.transfer, 1, 1, 2)
    return Segment(0.0, load.compute, 0), Segment(load.compute, load.compute + load.transfer, 1, low=True)


def _load_table(loads: Sequence[Load], value: float, memory: float) -> str:
    def kept(load: Load) -> str:
        share = f" ({load.memory / memory:.0%})" if 0.0 < memory < float("inf") else ""
        return f"{format_quantity(load.memory, 'bytes')}{share}" if load.memory else "-"

    rows = [
        (
            load.device,
            f"{load.nodes:,}",
            f"{load.compute:.5g}",
            f"{load.transfer:.5g}",
            f"{load.total:.5g}",
            _share(load.total, value),
            kept(load),
        )
        for load in loads
    ]
    return table(("device", "operators", "compute ms", "transfer ms", "busy ms", "of the pace", "memory"), rows, numbers=(1, 2, 3, 4, 5, 6))


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def _schedule(details: PlacementLoads, value: float) -> str:
    """When each accelerator runs its pieces, and what it does."""
    runs = defaultdict[str, list[Run]](list)
    for run in sorted(details.runs, key=lambda run: (run.start, run.end)):
        runs[run.device].append(run)
    tracks = [Track(device, tuple(one for run in own for one in _pieces(run)), f"to {own[-1].end:.5g} ms") for device, own in runs.items()]
    titles = Titles(
        "schedule",
        "When every accelerator runs",
        f"{len(details.runs)} pieces on {len(tracks)} accelerators; all is done after {value:.5g} ms.",
    )
    cores = details.loads[-1]
    on_cpu = (
        f" CPU cores run {cores.nodes:,} operators, {cores.compute:.5g} ms of work in all, each as soon as it can." if cores.nodes else ""
    )
    picture = (
        figure(
            timeline(titles, tracks[:_SHOWN], value, "ms", "done"),
            f"A piece takes in, computes and hands out; transfers are half as high.{on_cpu}",
        )
        if tracks
        else paragraph(on_cpu)
    )
    rows = [
        (
            f"{run.device}, piece {run.piece}",
            f"{run.nodes:,}",
            *(f"{part:.5g}" for part in (run.start, run.taken_in, run.compute, run.handed_out, run.end)),
        )
        for own in runs.values()
        for run in own
    ]
    heads = ("piece", "operators", "starts ms", "take in ms", "compute ms", "hand out ms", "ends ms")
    return section("When every device runs", swatch_row(_PIECE), picture, table(heads, rows[: 2 * _SHOWN], numbers=(1, 2, 3, 4, 5, 6)))


def _pieces(run: Run) -> tuple[Segment, ...]:
    ends = (run.start + run.taken_in, run.end - run.handed_out)
    return Segment(run.start, ends[0], 1, low=True), Segment(ends[0], ends[1], 0), Segment(ends[1], run.end, 2, low=True)


# --- the graph -----------------------------------------------------------------------------------------------------------------------


def _graph(facts: Placed) -> str:
    """Every operator with its device; of a large graph the blocks of operators that a device runs forward or backward."""
    count = len(facts.device_of)
    whole = count <= MOST
    graph = _operators(facts) if whole else _blocks(facts)
    crossing = sum(facts.device_of[start] != facts.device_of[end] for start, end in facts.arcs)
    words = f"{count:,} operators and {len(facts.arcs):,} edges, {crossing:,} of which lead from one device to another"
    try:
        picture = drawn(Titles("graph", "Where every operator runs", f"{words}."), graph)
    except ValueError:
        return section(
            "Where every operator runs",
            paragraph(f"{words}. Data come and go between all devices, so that no picture in layers can be drawn."),
        )
    marks = "Round marks are backward. " if any(facts.backward) else ""
    what = "an operator, with the number of its device (C is a CPU)" if whole else "all operators that a device runs forward or backward"
    caption = f"Each mark is {what}. {marks}Data flow down; strong lines lead from one device to another."
    strips = " A deep graph goes on at the top of the next strip." if whole else ""
    return section("Where every operator runs", paragraph(f"{words}."), figure(picture, f"{caption}{strips}"))


def _operators(facts: Placed) -> Graph:
    labels = tuple(f"C{name.removeprefix('cpu').strip()}" if name.startswith("cpu") else name.rpartition(" ")[2] for name in facts.devices)
    return Graph(facts.arcs, facts.device_of, tuple(labels[device] for device in facts.device_of), facts.backward)


def _blocks(facts: Placed) -> Graph:
    pairs = list(zip(facts.device_of, facts.backward, strict=True))
    number = {pair: place for place, pair in enumerate(sorted(set(pairs), key=lambda pair: (pair[1], pair[0])))}
    arcs = {(number[pairs[start]], number[pairs[end]]) for start, end in facts.arcs}
    kept = tuple(sorted((start, end) for start, end in arcs if start != end))
    labels = tuple(f"{facts.devices[device]}: {pairs.count((device, backward)):,}" for device, backward in number)
    return Graph(kept, tuple(device for device, _ in number), labels, tuple(backward for _, backward in number))


def _traffic(facts: Placed) -> str:
    """Which devices hand data to which, the most first."""
    outputs = defaultdict[tuple[int, int], set[int]](set)
    for start, end in facts.arcs:
        if facts.device_of[start] != facts.device_of[end]:
            outputs[facts.device_of[start], facts.device_of[end]].add(start)
    found = [(sum(facts.moved[node] for node in sorted(nodes)), pair, len(nodes)) for pair, nodes in outputs.items()]
    most = sorted(found, key=lambda item: (-item[0], item[1]))[:12]
    rows = [(facts.devices[start], facts.devices[end], f"{number:,}", f"{time:.5g}") for time, (start, end), number in most]
    caption = "Outputs that one device hands to another, with the time of one transfer of each" + (
        ", the 12 longest" if len(found) > 12 else ""
    )
    return section(
        "What moves", table(("from", "to", "outputs", "transfer ms"), rows, caption, (2, 3)) if rows else paragraph("Nothing moves.")
    )


# --- how good, and how it was found --------------------------------------------------------------------------------------------------


def _rivals(asked: PlacementQuestion, result: Answer) -> str:
    value = result.value or 0.0
    rows = [Row("this placement", value, f"{value:.5g} ms")]
    others = beside(asked, result.rivals)
    for rival in others:
        if rival.value is not None:
            above = f", {rival.value / value - 1.0:.1%} above" if value and not rival.note else ""
            rows.append(Row(rival.name, rival.value, f"{rival.value:.5g} ms{above}{' *' if rival.note else ''}"))
    if not others:
        return ""
    notes = [f"{rival.name}{'' if rival.value is None else ' *'}: {rival.note}" for rival in others if rival.note]
    titles = Titles("rivals", "What rules of thumb reach", "; ".join(f"{row.label}: {row.shown}" for row in rows) + ".")
    limit = value if result.bound is None else result.bound
    return section("Rivals", figure(bars(titles, rows, limit, "bound" if result.bound is not None else "")), listing(notes))


def _search(result: Answer) -> str:
    return search_section(Search("best placement", "ms", result.engine, result.trace, result.seconds, result.bound, result.gap))


def _proof(result: Answer) -> str:
    told = "The placement was judged anew, operator by operator, for this page; the bound is the word of who proved it."
    versions = ", ".join(f"{name} {version}" for name, version in sorted(result.versions.items()))
    made = f"Answered by the engine {result.engine} in {result.seconds:.3g} s{f', with {versions}' if versions else ''}."
    return section("How this is known", paragraph(_words(result)), paragraph(told), paragraph(made, "soft"))
