"""Sections about how a design uses its machine: operators under the roofs of memories and engines, and exchanges on the network."""

from collections.abc import Sequence

from crossopt.reports.drawing.bars import Row, bars
from crossopt.reports.drawing.roofline import Mark, Roof, roofline
from crossopt.reports.drawing.svg import Titles, letter
from crossopt.reports.facts.network import Network
from crossopt.reports.facts.roofline import MEMORIES, Roofs, Work
from crossopt.reports.pages.evaluated import ALONE, Of
from crossopt.reports.pages.shell import figure, paragraph, section, table
from crossopt.reports.sheets.amounts import shown, time_of


def operators_section(roofs: Roofs | None, of: Of = ALONE) -> str:
    """Every operator of a layer, and the head; nothing where none are known."""
    if roofs is None:
        return ""
    works = [work for work in roofs.works if work.flops > 0.0 and work.seconds > 0.0 and work.moved[0] > 0.0]
    marks = [_mark(place, work, roofs) for place, work in enumerate(works)]
    pairs = zip(MEMORIES, roofs.bandwidths, strict=True)
    memories = [Roof(f"{name} {shown(speed, 'bandwidth')}", speed, name) for (name, _), speed in pairs if speed > 0.0]
    peaks = (("matrix peak", roofs.matrix), ("vector peak", roofs.vector))
    engines = [Roof(f"{name} {_rate(speed)}", speed, name) for name, speed in peaks]
    best = max(work.flops / work.seconds / roofs.matrix for work in works)
    told = f"{len(works)} operators; the best reaches {best:.0%} of the matrix peak"
    titles = Titles(f"roofline{of.mark}", f"Operators{of.words} under their roofs", f"{told}.")
    caption = (
        "Round marks are forward passes, square ones backward (the head: both). An operator stands at the bytes that it moves from the "
        "memory; where it is nearer to the roof of another level, a hollow mark at that level's bytes is joined to it."
    )
    picture = figure(lambda width: roofline(titles.at(width), marks, memories, engines), caption)
    return section(f"Operators{of.words} under their roofs", picture, _operators(works, roofs))


def _mark(place: int, work: Work, roofs: Roofs) -> Mark:
    uses = _uses(work, roofs)
    nearest = uses.index(max(uses))
    return Mark(
        place=place,
        square=work.backward,
        rate=work.flops / work.seconds,
        intensity=work.flops / work.moved[0],
        nearest=work.flops / work.moved[nearest],
        tip=f"{letter(place)}  {work.name}: {time_of(work.seconds)}, {_rate(work.flops / work.seconds)}",
    )


def _uses(work: Work, roofs: Roofs) -> list[float]:
    """Of each memory's bandwidth the share that the operator uses."""
    return [moved / (work.seconds * speed) if speed > 0.0 else 0.0 for moved, speed in zip(work.moved, roofs.bandwidths, strict=True)]


def _operators(works: Sequence[Work], roofs: Roofs) -> str:
    rows = []
    for place, work in enumerate(works):
        way = "both" if work.name.startswith("head") else "backward" if work.backward else "forward"
        shares = [f"{share:.0%}" for share in (work.flops / work.seconds / roofs.matrix, *_uses(work, roofs))]
        amounts = (time_of(work.seconds), f"{work.flops:.3g}", shown(work.moved[0], "bytes"), _ratio(work.flops / work.moved[0]))
        rows.append((f"{letter(place)}  {work.name}", way, *amounts, *shares))
    caption = "One microbatch of one layer on one device; shares of the matrix peak and of each memory's bandwidth"
    heads = ("operator", "pass", "time", "FLOPs", "from memory", "FLOPs a byte", "matrix", *(name for name, _ in MEMORIES))
    return table(heads, rows, caption, range(2, len(heads)), wide=True)


def _ratio(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 100.0 else f"{ratio:.3g}"


def _rate(flops: float) -> str:
    return shown(flops, "throughput")


# --- network -------------------------------------------------------------------------------------------------------------------------


def network_section(network: Network | None, of: Of = ALONE) -> str:
    """Bytes and seconds of every kind of exchange on every level; nothing where nothing is exchanged."""
    if network is None or not network.exchanges:
        return ""
    rows, lines, busy = list[Row](), [], list[str]()
    for level, (size, speed) in enumerate(zip(network.sizes, network.bandwidths, strict=True)):
        shape = f"{network.shapes[level]}, " if network.shapes else ""
        for one in network.exchanges:
            seconds, sent = one.seconds[level], one.bytes[level]
            if sent < 1.0:
                continue
            amount = f"{time_of(seconds)}, {shown(sent, 'bytes')}"
            rows.append(Row(one.name, seconds, f"level {level + 1}: {amount}"))
            cells = (time_of(seconds), shown(sent, "bytes"), shown(sent / seconds, "bandwidth"), f"{sent / seconds / speed:.0%}")
            lines.append((f"level {level + 1}, {shape}{size:,} devices", one.name, *cells))
        busy.append(f"of level {level + 1} for {time_of(sum(one.seconds[level] for one in network.exchanges if one.bytes[level] >= 1.0))}")
    if not rows:
        return ""
    busiest = max(row.value for row in rows)
    titles = Titles(f"network{of.mark}", f"How the network{of.words} is used", "; ".join(f"{row.label}, {row.shown}" for row in rows) + ".")
    caption = "One step of one device on the fullest stage; exchanges that hide behind computation count in full."
    heads = ("level", "exchange", "busy", "sent", "reached", "of the link")
    return section(
        f"How the network{of.words} is used",
        paragraph(
            f"Links are busy {', '.join(busy)}. An exchange may keep several levels busy at once; the step waits for the slowest."
            + "".join(f" {told[0].upper()}{told[1:]}." for told in (network.in_order, network.crowded) if told)
        ),
        figure(lambda width: bars(titles.at(width), rows, busiest, "the longest"), caption),
        table(heads, lines, numbers=(2, 3, 4, 5)),
    )
