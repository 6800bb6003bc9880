"""How a design uses its machine: operators under the roofline, exchanges on the network, parts of the chip, memory of the stages."""

from collections.abc import Iterator, Sequence

from crossopt.crossflow.rare_exchanges import Groups, bandwidth_for, straggling, volume
from crossopt.instances.files.units import format_quantity
from crossopt.reports.drawing.bars import Part, Row, Units, bars, columns
from crossopt.reports.drawing.floorplan import Floor, Plan, floorplan
from crossopt.reports.drawing.roofline import Mark, Roof, roofline
from crossopt.reports.drawing.svg import letter
from crossopt.reports.facts.chip import MEMORIES, Amounts, Roofs, Watts, Work, yield_text
from crossopt.reports.facts.design import Chip
from crossopt.reports.facts.network import Exchanged, Network
from crossopt.reports.sheets.amounts import shown, time_of
from crossopt.reports.sheets.sheet import Breakdown, Pairs, Picture, Section, Table, amounts, given_in, names
from crossopt.reports.sheets.sheet import Part as SheetPart


def operators_section(roofs: Roofs | None, of: str = "") -> Section:
    """Every operator of a layer, and the head; empty where none are known."""
    if roofs is None:
        return Section("", ())
    works = [work for work in roofs.works if work.flops > 0.0 and work.seconds > 0.0 and work.moved[0] > 0.0]
    marks = [_mark(index, work, roofs) for index, work in enumerate(works)]
    pairs = zip(MEMORIES, roofs.bandwidths, strict=True)
    memories = [Roof(f"{name} {shown(speed, 'bandwidth')}", speed, name) for (name, _), speed in pairs if speed > 0.0]
    peaks = (("matrix peak", roofs.matrix), ("vector peak", roofs.vector))
    engines = [Roof(f"{name} {_rate(speed)}", speed, name) for name, speed in peaks]
    best = max(work.flops / work.seconds / roofs.matrix for work in works)
    summary = f"{len(works)} operators; the best reaches {best:.0%} of the matrix peak"
    caption = (
        "Round marks are forward passes, square ones backward (the head: both). An operator stands at the bytes that it moves from the "
        "memory; where it is nearer to the roof of another level, a hollow mark at that level's bytes is joined to it."
    )
    picture = Picture(lambda titles: roofline(titles, marks, memories, engines), "", caption, described=f"{summary}.", zooms=False)
    return Section(f"Roofline{of}", (picture, _operators(works, roofs)))


def _mark(index: int, work: Work, roofs: Roofs) -> Mark:
    uses = _uses(work, roofs)
    nearest = uses.index(max(uses))
    return Mark(
        colour=index,
        square=work.backward,
        rate=work.flops / work.seconds,
        intensity=work.flops / work.moved[0],
        nearest=work.flops / work.moved[nearest],
        tip=f"{letter(index)}  {work.name}: {time_of(work.seconds)}, {_rate(work.flops / work.seconds)}",
    )


def _uses(work: Work, roofs: Roofs) -> list[float]:
    """Of each memory's bandwidth the share that the operator uses."""
    return [moved / (work.seconds * speed) if speed > 0.0 else 0.0 for moved, speed in zip(work.moved, roofs.bandwidths, strict=True)]


def _operators(works: Sequence[Work], roofs: Roofs) -> Table:
    ways = ["both" if work.name.startswith("head") else "backward" if work.backward else "forward" for work in works]
    uses = [(work.flops / work.seconds / roofs.matrix, *_uses(work, roofs)) for work in works]
    heads = ("matrix", *(name for name, _ in MEMORIES))
    of_works = (
        names("operator", (f"{letter(index)}  {work.name}" for index, work in enumerate(works))),
        names("pass", ways),
        amounts("time", [work.seconds for work in works], time_of, "s"),
        amounts("FLOPs", [work.flops for work in works], "{:.3g}".format),
        amounts("from memory", [work.moved[0] for work in works], lambda size: shown(size, "bytes"), "bytes"),
        amounts("FLOPs a byte", [work.flops / work.moved[0] for work in works], _ratio),
        *(amounts(head, [shares[index] for shares in uses], "{:.0%}".format) for index, head in enumerate(heads)),
    )
    return Table(of_works, caption="One microbatch of one layer on one device; shares of the matrix peak and of each memory's bandwidth")


def _ratio(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100.0 else f"{ratio:.3g}"


def _rate(flops: float) -> str:
    return shown(flops, "throughput")


# --- network -------------------------------------------------------------------------------------------------------------------------


def network_section(network: Network | None, of: str = "") -> Section:
    """Bytes and seconds of every kind of exchange on every level; empty where nothing is exchanged."""
    title = f"How the network{of} is used"
    if network is None:
        return Section(title, ())
    used = [(level, kind) for level in range(len(network.sizes)) for kind in network.exchanges if kind.bytes[level] >= 1.0]
    if not used:
        return Section(title, ())
    times, sent = [kind.seconds[level] for level, kind in used], [kind.bytes[level] for level, kind in used]
    rows = [
        Row(kind.name, seconds, f"level {level + 1}: {time_of(seconds)}, {shown(size, 'bytes')}")
        for (level, kind), seconds, size in zip(used, times, sent, strict=True)
    ]
    levels = [f"{level + 1}, {network.named[level]}" for level, _ in used]
    busy = [f"of level {level + 1} for {time_of(sum(kind.seconds[level] for at, kind in used if at == level))}" for level in _levels(used)]
    notes = (
        f"Links are busy {', '.join(busy)}. An exchange may keep several levels busy at once; the step waits for the slowest.",
        *(f"{text[0].upper()}{text[1:]}." for text in (network.latencies, network.in_order, network.linked) if text),
    )
    caption = "One step of one device on the fullest stage; exchanges that hide behind computation count in full."
    described = "; ".join(f"{row.label}, {row.shown}" for row in rows) + "."
    picture = Picture(lambda titles: bars(titles, rows, max(times), "the longest"), "", caption, described=described, zooms=False)
    speeds = [size / seconds for size, seconds in zip(sent, times, strict=True)]
    of_levels = (
        names("level", levels),
        names("exchange", (kind.name for _, kind in used)),
        amounts("busy", times, time_of, "s"),
        amounts("sent", sent, lambda size: shown(size, "bytes"), "bytes"),
        amounts("reached", speeds, lambda speed: shown(speed, "bandwidth"), "B/s"),
        amounts(
            "of the link", [speed / network.bandwidths[level] for (level, _), speed in zip(used, speeds, strict=True)], "{:.0%}".format
        ),
    )
    return Section(title, (*notes, picture, Table(of_levels)))


def _levels(used: Sequence[tuple[int, Exchanged]]) -> list[int]:
    return list(dict.fromkeys(level for level, _ in used))


# --- the chip ------------------------------------------------------------------------------------------------------------------------


def chip_sections(chip: Chip) -> Iterator[Section]:
    """What the die, the power and the price of a device are made of; nothing of a device that is given."""
    floor = floor_of(chip)
    if floor is not None:
        yield Section("The chip from above", (_floorplan(chip, floor),))
    if chip.areas:
        yield Section("Die area", (Breakdown("part", chip.areas, "area", f"{shown(_sum(chip.areas), 'area')} of one device"),))
    if chip.watts is not None:
        yield Section("Power", _powers(chip.watts))
    if chip.bill is not None:
        caption = f"{chip.bill.total:,.0f} USD of one device; {yield_text(chip.bill)}."
        yield Section("Price of a device", (Breakdown("part", chip.bill.parts, "money", caption),))


def _sum(amounts: Amounts) -> float:
    return sum(value for _, value in amounts if value > 0.0)


def _floorplan(chip: Chip, floor: Floor) -> Picture:
    """The chip from above, where it is known what lies on its package."""
    listed = ", ".join(f"{part.label} {part.shown}" for part in floor.parts)
    turned = "" if floor.dies == 1 else "Dies are alike, the last one turned by half a turn, with links where they face each other. "
    limited = "that of the box around all of it" if chip.package and chip.package.boxed else "that of dies and stacks alone"
    if floor.on_dies:
        turned, limited = f"{turned}Stacks of memory lie on the dies, as outlines. ", "that of the dies"
    caption = (
        "Areas are the design's own, to scale; where a part lies is the usual order of accelerators that are sold, as the model knows no "
        "places. HBM on the die are the controllers; uncore is what is no part: host interface, schedulers, clocks and what lies between; "
        "spare multiprocessors are not used, and make up for defects; filler is what nothing takes. A die is as slender as it may be: its "
        "longer side is that of a reticle's field, 33 mm, or half longer than the other"
        f"{', unless a square holds more stacks' if floor.on_dies else ''}. "
        f"{turned}The package area is {limited}."
    )
    described = f"A die of {listed}, {floor.stacks} stacks of memory {'on it' if floor.on_dies else 'along two of its sides'}."
    title = "The chip from above, to scale"
    return Picture(lambda titles: floorplan(titles, floor), "", caption, title=title, described=described, zooms=False)


def floor_of(chip: Chip) -> Floor | None:
    """The floorplan of the package; None where its layout is unknown."""
    if chip.package is None:
        return None
    found = [Part(name, value, shown(value, "area"), index) for index, (name, value) in enumerate(chip.areas) if value > 0.0]
    parts, package = tuple(sorted(found, key=lambda part: -part.value)), chip.package
    on_die = Plan("HBM", ("node network", "network"), "L2", "links between dies", ("compute", "registers", "L1"), package.bundles)
    return Floor(parts, on_die, "filler", package.stacks, package.stack, package.die, package.rim, package.dies, package.on_dies)


def _powers(watts: Watts) -> tuple[SheetPart, ...]:
    """A bar for each further kind of kernels than the one that draws most, and up to how much each part may draw."""
    limit = "" if watts.limit == float("inf") else f", of {shown(watts.limit, 'power')} that the board bears"
    bars_of_kinds = [
        Breakdown("part", kind.watts, "power", f"Drawn in {kind.name}: {shown(kind.total, 'power')} of one device{limit}")
        for kind in watts.kinds[1:]
    ]
    most = [(part, watt) for part, watt in sorted(watts.most, key=lambda part: -part[1]) if watt > 0.0]
    note = (
        "Up to: with all of the part at work, the least power that the design has to be given for it; not all parts are so busy at once. "
        "Uncore has what regulators of the board lose, too: ratings of boards hold it, and no source tells it apart."
    )
    up_to = amounts("up to", [watt for _, watt in most], lambda watt: shown(watt, "power"), "W")
    return (*bars_of_kinds, Table((names("part", (part for part, _ in most)), up_to)), note)


# --- memory --------------------------------------------------------------------------------------------------------------------------


def stages_section(stages: Sequence[Amounts], capacity: float, of: str = "") -> Section:
    """The bytes of every stage of a pipeline; empty of a single one."""
    title = f"Memory of the stages{of}"
    if len(stages) < 2:
        return Section(title, ())
    totals, each = [sum(size for _, size in stage) for stage in stages], [dict(stage) for stage in stages]
    fullest = totals.index(max(totals))
    values = [(use, [stage[use] for stage in each]) for use in each[0] if any(stage[use] > 0.0 for stage in each)]
    least, most, there = (shown(size, "bytes") for size in (min(totals), max(totals), capacity))
    described = f"{len(totals)} columns of {least} to {most}; a device has {there}."
    unit, size = ("GiB", 2.0**30) if capacity >= 2.0**30 else ("MiB", 2.0**20)
    axis = Units(unit, size, f"capacity {there}", "pipeline stage, the first one left")
    numbers = [str(index + 1) for index in range(len(totals))]
    caption = f"The fullest stage is number {fullest + 1}: {most} of {there} on each of its devices."
    picture = Picture(lambda titles: columns(titles, numbers, values, capacity, axis), "", caption, described=described, zooms=False)
    table = Table(
        (
            names("stage", numbers),
            *(amounts(use, sizes, lambda size: shown(size, "bytes"), "bytes") for use, sizes in values),
            amounts("in all", totals, lambda size: shown(size, "bytes"), "bytes"),
        )
    )
    return Section(title, (picture, table))


# Groups that exchange rarely: every way to exchange, rules of practice, and the bandwidth that compute needs.

_SHARES = (0.5, 0.75, 0.9, 0.95, 0.99)
_MOST = 16


def sites_text(sites: Groups, step: float) -> str:
    """The way to exchange that is chosen, with what it comes to."""
    if sites.groups == 1:
        return "one group, which exchanges with no other"
    number = sites.chosen(step)
    mean = float(sites.mean_of(sites.ways[number], step))
    steps = f", {sites.steps[number]:.4g} x the steps" if sites.steps[number] != 1.0 else ""
    return f"{sites.groups} groups like this one, {sites.ways[number]}: {time_of(mean)} a step, {step / mean:.1%} of it compute{steps}"


def rivals(sites: Groups, step: float) -> Pairs:
    """Rules of practice on the same plan: exchange always, each fixed number of steps, SkewScout's climb."""
    values = [float(sites.effective(number, step)) for number in range(len(sites.ways))]
    best = min(values)

    def least(numbers: list[int]) -> str:
        number = min(numbers, key=values.__getitem__)
        return f"{time_of(values[number])}, {values[number] / best - 1.0:.1%} above ({sites.ways[number]})"

    rows = dict[str, str]()
    if always := [number for number, way in enumerate(sites.ways) if way.learns_alike]:
        rows["always"] = least(always)
    for every in sorted({way.every for way in sites.ways}):
        rows[f"fixed H = {every}"] = least([number for number, way in enumerate(sites.ways) if way.every == every])
    rows["SkewScout's climb"] = least([sites.climbed(step)])
    return tuple(rows.items())


def sites_section(sites: Groups, step: float) -> Section:
    """All ways, the best first, and the bandwidth that the chosen one needs."""
    values = [float(sites.effective(number, step)) for number in range(len(sites.ways))]
    order = sorted(range(len(values)), key=values.__getitem__)
    means = [float(sites.mean_of(sites.ways[number], step)) for number in order]
    table = Table(
        (
            names("exchange", [str(sites.ways[number]) for number in order]),
            amounts("mean step x steps", [values[number] for number in order], time_of, "s"),
            amounts("mean step", means, time_of, "s"),
            amounts("compute", [step / mean for mean in means], lambda share: f"{share:.1%}"),
            amounts("steps needed", [sites.steps[number] for number in order], lambda factor: f"{factor:.4g}"),
        ),
        most=_MOST,
    )
    way = sites.ways[order[0]]
    parts: list[SheetPart] = [table]
    if len(sites.ways) > 1:
        parts.append(given_in(rivals(sites, step)))
    if not way.asynchronous:
        size = volume(sites.parameters, sites.bytes_per_parameter, sites.groups, way)
        needed = [(share, bandwidth_for(share, way, step, size, sites.groups)) for share in _SHARES]
        texts = (format_quantity(8.0 * rate, "bandwidth").replace("B/s", "bit/s") for _, rate in needed)
        parts.append(given_in([(f"{share:.0%} compute needs", text) for (share, _), text in zip(needed, texts, strict=True)]))
    if sites.spread:
        nodes = f"{sites.nodes:,.0f} nodes of a group take {straggling(sites.spread, sites.nodes):.4g} x as long as one"
        parts.append(f"Stragglers: a spread of {sites.spread:.4g}, by which {nodes}.")
    parts.append("All other figures are those of one group.")
    if not sites.known:
        parts.append("How many steps training needs with these exchanges is not known: the mean step says nothing of it.")
    return Section(f"Exchange between {sites.groups} groups", tuple(parts))
