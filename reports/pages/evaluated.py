"""Sections about one priced design: what was chosen, where its time goes, what its chip is made of, what its memory holds, its limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crossopt.reports.drawing.bars import Part, Row, Units, bars, columns, stacked
from crossopt.reports.drawing.die import Plan
from crossopt.reports.drawing.floorplan import Floor, floorplan
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.facts.chip.bill import DeviceBill, yield_words
from crossopt.reports.facts.chip.watts import Amounts, Kernels, Watts
from crossopt.reports.facts.chip.words import chip_words, hardware_words
from crossopt.reports.facts.design import Facts
from crossopt.reports.facts.uses import UNEQUAL, Uses, uses_named
from crossopt.reports.pages.shell import figure, named, paragraph, parts_columns, parts_table, section, table
from crossopt.reports.sheets.amounts import shown, time_of

FULL = 0.95


@dataclass(frozen=True, slots=True)
class Of:
    """Whose section it is, where a page has several of a kind: a name, and the number of its pictures."""

    name: str = ""
    number: int = 0

    @property
    def words(self) -> str:
        return f" of {self.name}" if self.name else ""

    @property
    def mark(self) -> str:
        return f"-{self.number}" if self.name else ""


ALONE = Of()
"""Of a page with one of each kind."""


def design_section(design: dict[str, Any], evaluation: dict[str, Any], facts: Facts) -> str:
    """Chip and plan."""
    return section("The design", table(("", ""), [*chip_rows(design, evaluation, facts), ("plan", design["words"])]))


def chip_rows(design: dict[str, Any], evaluation: dict[str, Any], facts: Facts) -> list[tuple[str, str]]:
    """What was chosen of the chip, and what it offers."""
    offered = chip_words(evaluation, facts.l2, facts.network.shapes if facts.network else ())
    rows = [("hardware", " · ".join(hardware_words(design, dict(facts.needed)))), ("a device offers", offered)]
    ends = [named(end) for end in design["at_end_of_range"]]
    rows += [("at a range end", f"{', '.join(ends)}: a wider range may hold a better design")] if ends else []
    return rows + ([("at the most", facts.held)] if facts.held else [])


def time_section(evaluation: dict[str, Any], of: Of = ALONE) -> str:
    parts = _parts(sorted(evaluation["breakdown"].items(), key=lambda item: -item[1]), "time")
    low, high = evaluation["likely"]
    likely = f"By constants and public runs a step likely takes {time_of(low)} to {time_of(high)}." if low < high else ""
    total = time_of(evaluation["step_time"])
    titles = Titles(f"time{of.mark}", f"Where the step{of.words} goes", f"A bar of {total}, cut into {_listed(parts)}.")
    whole = figure(lambda width: stacked(titles.at(width), parts), f"A step of {total} on the fullest stage. {likely}".strip())
    return section(f"Where the step{of.words} goes", whole, parts_table(("use", "time"), parts))


def uses_lettered(evaluation: dict[str, Any]) -> tuple[str, ...]:
    """Where the time goes, by letters of the picture of the step."""
    return tuple(part.label for part in _parts(sorted(evaluation["breakdown"].items(), key=lambda item: -item[1]), "time"))


def _parts(items: Any, dimension: str) -> list[Part]:  # noqa: ANN401 - pairs of a name and an amount, from a mapping or a tuple
    """What is there at all, the most first."""
    found = [Part(name, value, shown(value, dimension), place) for place, (name, value) in enumerate(items) if value > 0.0]
    return sorted(found, key=lambda part: -part.value)


def _listed(parts: Sequence[Part]) -> str:
    return ", ".join(f"{part.label} {part.shown}" for part in parts)


def chip_section(facts: Facts) -> str:
    if not facts.areas:
        return ""
    return section("The chip", *_floor(facts), *_areas(facts.areas), *_powers(facts.watts), *_bill(facts.bill))


def _bill(bill: DeviceBill | None) -> tuple[str, ...]:
    """What a device costs, where the question asks for a cost."""
    if bill is None:
        return ()
    parts = _parts(bill.parts, "money")
    titles = Titles("price", "Price by part", f"A bar of {bill.total:,.0f} USD, cut into {_listed(parts)}.")
    told = f"{bill.total:,.0f} USD of one device; {yield_words(bill)}."
    return "<h3>Price of a device</h3>", figure(lambda width: stacked(titles.at(width), parts), told), parts_table(("part", "price"), parts)


def _floor(facts: Facts) -> tuple[str, ...]:
    """The chip from above, where it is known what lies on its package."""
    floor = floor_of(facts)
    if floor is None:
        return ()
    around = f", {floor.stacks} stacks of memory along two of its sides"
    titles = Titles("floorplan", "The chip from above, to scale", f"A die of {_listed(floor.parts)}{around}.")
    turned = "" if floor.dies == 1 else "Dies are alike, the last one turned by half a turn, with links where they face each other. "
    limited = "that of the box around all of it" if facts.package and facts.package.boxed else "that of dies and stacks alone"
    caption = (
        "Areas are the design's own, to scale; where a part lies is the usual order of accelerators that are sold, as the model knows no "
        "places. HBM on the die are the controllers; uncore is what is no part: host interface, schedulers, clocks and what lies between; "
        "spare multiprocessors are not used, and make up for defects; filler is what nothing takes. A die is as slender as it may be: its "
        "longer side is that of a reticle's field, 33 mm, or half longer than the other. "
        f"{turned}The package area is {limited}."
    )
    return "<h3>From above</h3>", figure(lambda width: floorplan(titles.at(width), floor), caption)


def floor_of(facts: Facts) -> Floor | None:
    """What lies on the package; None where nobody knows."""
    if facts.package is None:
        return None
    parts, package = tuple(_parts(facts.areas, "area")), facts.package
    on_die = Plan("HBM", ("node network", "network"), "L2", "links between dies", ("compute", "registers", "L1"), package.bundles)
    return Floor(parts, on_die, "filler", package.stacks, package.stack, package.die, package.rim, package.dies)


def _areas(amounts: Amounts) -> tuple[str, str, str]:
    parts = _parts(amounts, "area")
    total = shown(sum(part.value for part in parts), "area")
    titles = Titles("area", "Die area by part", f"A bar of {total}, cut into {_listed(parts)}.")
    picture = figure(lambda width: stacked(titles.at(width), parts), f"{total} of one device")
    return "<h3>Die area</h3>", picture, parts_table(("part", "of the die"), parts)


def _powers(watts: Watts | None) -> tuple[str, ...]:
    """A bar for each kind of kernels, and a table of all of them, with up to how much each part may draw."""
    if watts is None:
        return ()
    limit = "" if watts.limit == float("inf") else f", of {shown(watts.limit, 'power')} that the board bears"
    bars_of = [_drawn(kind, limit) for kind in watts.kinds]
    most, kinds = dict(watts.most), [dict(kind.watts) for kind in watts.kinds]
    rows = [(part, [_watts(of, part.label) for of in (*kinds, most)]) for part in _parts(watts.kinds[0].watts, "power")]
    totals = ("all parts together", *(shown(kind.total, "power") for kind in watts.kinds), "")
    heads = ("power of a part", *(f"drawn in {kind.name}" for kind in watts.kinds), "up to")
    note = (
        "Up to: with all of the part at work, the least power that the design has to be given for it; not all parts are so busy at once. "
        "Uncore has what regulators of the board lose, too: ratings of boards hold it, and no source tells it apart."
    )
    return "<h3>Power</h3>", *bars_of, parts_columns(heads, rows, totals), paragraph(note, "soft")


def _drawn(kind: Kernels, limit: str) -> str:
    parts, total = _parts(kind.watts, "power"), shown(kind.total, "power")
    name = f"power-{kind.name.replace(' ', '-')}"
    titles = Titles(name, f"Power in {kind.name} by part", f"A bar of {total}, cut into {_listed(parts)}.")
    return figure(lambda width: stacked(titles.at(width), parts), f"Drawn in {kind.name}: {total} of one device{limit}")


def _watts(amounts: Mapping[str, float], part: str) -> str:
    return shown(amounts[part], "power") if part in amounts else ""


def memory_section(facts: Facts, evaluation: dict[str, Any], of: Of = ALONE) -> str:
    """The bytes of every stage of a pipeline; of a single stage, as the fullest device has them."""
    if len(facts.stages) > 1:
        return _stages(facts, of)
    parts = _parts(evaluation["memory"].items(), "bytes")
    used, capacity = (shown(size, "bytes") for size in (sum(part.value for part in parts), facts.capacity))
    titles = Titles(f"memory{of.mark}", f"Memory of a device{of.words}", f"A bar of {capacity}, filled with {_listed(parts)}.")
    picture = figure(lambda width: stacked(titles.at(width), parts, facts.capacity), f"{used} of {capacity} of a device")
    return section(f"Memory{of.words}", picture, parts_table(("use", "memory"), parts))


def _stages(facts: Facts, of: Of) -> str:
    totals, stages = [sum(size for _, size in stage) for stage in facts.stages], [dict(stage) for stage in facts.stages]
    fullest = totals.index(max(totals))
    values = [(use, [stage[use] for stage in stages]) for use in stages[0] if any(stage[use] > 0.0 for stage in stages)]
    least, most, capacity = (shown(size, "bytes") for size in (min(totals), max(totals), facts.capacity))
    titles = Titles(
        f"memory{of.mark}", f"Memory of each stage{of.words}", f"{len(totals)} columns of {least} to {most}; a device has {capacity}."
    )
    unit, one = ("GiB", 2.0**30) if facts.capacity >= 2.0**30 else ("MiB", 2.0**20)
    axis = Units(unit, one, f"capacity {capacity}", "pipeline stage, the first one left")
    names = [str(place + 1) for place in range(len(totals))]
    parts = [Part(use, sizes[fullest], shown(sizes[fullest], "bytes"), place) for place, (use, sizes) in enumerate(values)]
    caption = f"The fullest stage is number {fullest + 1}: {most} of {capacity} on each of its devices."
    picture = figure(lambda width: columns(titles.at(width), names, values, facts.capacity, axis), caption)
    return section(f"Memory{of.words}", picture, parts_table((f"stage {fullest + 1}", "memory"), parts))


def limits_section(limits: Sequence[dict[str, Any]]) -> str:
    rows, lines = [], []
    for limit in limits:
        share = limit["used"] / limit["available"] if limit["available"] > 0.0 else 1.0
        used, available = shown(limit["used"], limit["unit"]), shown(limit["available"], limit["unit"])
        rows.append(Row(limit["name"], share, f"{share:.1%}", "full" if share >= FULL else ""))
        lines.append((limit["name"], used, available, _slack(share, available), "yes" if share >= FULL else "no"))
    said_rows = "; ".join(f"{row.label} {row.shown}{' full' if row.note else ''}" for row in rows)
    titles = Titles("limits", "How much of each limit is used", f"{said_rows}.")
    heads = ("limit", "used", "of", "slack", "full")
    caption = f"A limit is full where {FULL:.0%} or more of it are used; `crossopt explain` says which of them bind."
    return section(
        "Limits",
        figure(lambda width: bars(titles.at(width), rows, 1.0, "the limit"), caption),
        table(heads, lines, numbers=(1, 2, 3)),
    )


def _slack(share: float, available: str) -> str:
    """What is left of a limit, in the unit of the limit."""
    number, _, unit = available.partition(" ")
    return f"{(1.0 - share) * float(number.replace(',', '')):.4g} {unit}"


def uses_table(beside: Sequence[Uses]) -> str:
    """Seconds of a step by use, a column for each design; nothing for a single one."""
    if len(beside) < 2:
        return ""
    rows = [(name, *(f"{one.seconds.get(name, 0.0):.4g}" for one in beside)) for name in uses_named(beside)]
    whole = ("the whole step", *(f"{one.step:.4g}" for one in beside))
    note = paragraph(f"{UNEQUAL.capitalize()}.") if any(one.seconds.get("unequal stages") for one in beside) else ""
    return table(("a step, in s", *(one.name for one in beside)), [*rows, whole], numbers=range(1, 1 + len(beside))) + note
