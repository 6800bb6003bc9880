"""What a result says in a few figures, whatever it is about: for tables beside each other on a page, in a paper or in a spreadsheet."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import nextafter
from typing import Any

from crossopt.instances.codesign.instance import Counted
from crossopt.instances.codesign.open_questions import FEWEST
from crossopt.instances.codesign.question import several_words
from crossopt.reports.facts.chip.words import design_words
from crossopt.reports.sheets.amounts import amount, count_of, lowered, several, shown, time_of
from crossopt.reports.sheets.sheet import Bound, Cell, label_of
from crossopt.reports.texts.design import rival_label, rival_words
from crossopt.reports.texts.devices import best_part, best_place, part_heads, part_values
from crossopt.solvers.codesign.answer import DesignResult, design_in, evaluation_in
from crossopt.solvers.codesign.combined.pareto import Front, Point
from crossopt.solvers.codesign.objective import UNITS

DIGITS = 6


@dataclass(frozen=True, slots=True)
class Table:
    """Figures with their heads, which name the units."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def written(cell: Cell) -> str:
    """A cell in six digits."""
    match cell:
        case None:
            return "-"
        case Bound():
            return lowered(cell.value)
        case str():
            return "".join(sign if sign.isprintable() else " " for sign in cell)
    return f"{cell:.6g}"


def row_written(row: Sequence[Cell], figure: Callable[[float], str], digits: int) -> list[str]:
    """A row's cells; a bound that is the value beside it reads as that does, and any other is rounded down."""
    values = {cell for cell in row if isinstance(cell, int | float)}

    def of(cell: Cell) -> str:
        match cell:
            case Bound():
                return figure(cell.value) if cell.value in values else lowered(cell.value, digits)
            case float() | int():
                return figure(cell)
        return written(cell)

    return [of(cell) for cell in row]


def six_digits(value: float) -> str:
    """A figure as tables of readers have it."""
    return f"{value:.{DIGITS}g}"


def is_number(table: Table, column: int) -> bool:
    """Whether a column holds figures alone."""
    return all(not isinstance(row[column], str) for row in table.rows)


def titled(name: str, table: Table) -> str:
    """The title of a table of the result with this name."""
    return f"{name}: {table.title[0].lower()}{table.title[1:]}" if name else table.title


@dataclass(frozen=True, slots=True)
class Digest:
    """One result."""

    name: str
    asks: str
    """What is minimised."""
    unit: str
    value: float | None
    bound: float | None
    gap: float | None
    verdict: str
    prover: str
    """Who proved the bound; empty where nobody did."""
    engine: str
    seconds: float
    design: str
    figures: tuple[tuple[str, str], ...]
    """Others that a reader looks for."""
    tables: tuple[Table, ...]
    """Where time goes, limits, rivals and what else there is, in SI units where nothing else is said."""
    about: tuple[str, ...] = ()
    """The workload and the cluster, where there is one of each: values are measured against each other only where these are the same."""

    @property
    def value_words(self) -> str:
        return ("none" if self.unit else "-") if self.value is None else _with_unit(f"{self.value:.6g}", self.unit)

    @property
    def bound_words(self) -> str:
        """As the value where it is that, else never above the bound itself."""
        if self.bound is None:
            return "none" if self.unit else "-"
        return self.value_words if self.bound == self.value else _with_unit(lowered(self.bound), self.unit)

    @property
    def gap_words(self) -> str:
        return "-" if self.gap is None else f"{self.gap:.2%}"


SAID, PROVED_HERE = "as the file says", "checked here"
"""Of verdicts that a file has, where nobody carried the proof out, and where that was done."""


def with_words(verdict: str, words: str) -> str:
    """A verdict with what is to be said of it."""
    return f"{verdict}, {words}"


def of_design(result: DesignResult) -> Digest:
    """About one workload."""
    evaluation, design, instance = evaluation_in(result), design_in(result), result.question
    tables = () if evaluation is None else (_time(evaluation), _limits(evaluation["limits"]), _rivals(result))
    return Digest(
        name=instance["name"],
        asks=instance["objective"].replace("_", " "),
        unit=instance["unit"],
        value=result.value,
        bound=result.bound,
        gap=result.gap,
        verdict=label_of(result, "design"),
        prover=result.proved_by if result.bound is not None or result.settled else "",
        engine=result.engine,
        seconds=result.seconds,
        design="" if design is None else design_words(design),
        figures=() if evaluation is None else _rates(evaluation),
        tables=tables,
    )


def _rates(evaluation: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    rates = [("step time", time_of(evaluation["step_time"])), ("of peak", f"{evaluation['utilisation']:.1%}")]
    rates += [("tokens a second", count_of(round(evaluation["tokens_per_second"])))]
    rates += [("a step", shown(evaluation["energy"], "energy"))] if evaluation["energy"] > 0.0 else []
    return tuple(rates)


def _time(evaluation: dict[str, Any]) -> Table:
    total = evaluation["step_time"]
    items = sorted(evaluation["breakdown"].items(), key=lambda item: -item[1])
    rows = tuple((name, seconds, 100.0 * seconds / total) for name, seconds in items if seconds > 0.0)
    return Table("Where the step goes", ("use", "seconds", "share in %"), (*rows, ("step", total, 100.0)))


def _limits(limits: Sequence[dict[str, Any]]) -> Table:
    rows = tuple(
        (
            limit["name"],
            shown(limit["used"], limit["unit"]),
            shown(limit["available"], limit["unit"]),
            100.0 * limit["used"] / limit["available"] if limit["available"] else None,
        )
        for limit in limits
    )
    return Table("Limits", ("limit", "used", "available", "share in %"), rows)


def _rivals(result: DesignResult) -> Table:
    rows = tuple(
        (
            rival_label(rival),
            rival.value,
            _above(rival.value, result.value),
            rival_words(rival),
        )
        for rival in result.rivals
    )
    return Table("Rivals", ("rival", f"value in {result.question['unit']}", "above the answer in %", "design"), rows)


def _above(value: float | None, best: float | None) -> float | None:
    return None if value is None or not best else 100.0 * (value / best - 1.0)


def of_several(result: DesignResult) -> Digest:
    """About several workloads on one chip."""
    instance, designs = result.question, result.answer.designs if result.answer else ()
    shares = result.details.shares if result.details else ()
    rows = tuple(
        (
            share.name,
            share.evaluation["step_time"],
            share.evaluation["tokens_per_second"],
            100.0 * share.evaluation["utilisation"],
            design["words"],
        )
        for share, design in zip(shares, designs, strict=True)
    )
    heads = ("workload", "seconds a step", "tokens a second", "of peak in %", "plan")
    times = tuple(Table(f"{time.title} of {share.name}", time.heads, time.rows) for share in shares for time in (_time(share.evaluation),))
    return Digest(
        name=instance["name"],
        asks=f"{instance['combine'].replace('_', ' ')} of {instance['objective'].replace('_', ' ')}",
        unit="" if instance["combine"] == "worst_regret" else instance["unit"],
        value=result.value,
        bound=result.bound,
        gap=result.gap,
        verdict=label_of(result, "design"),
        prover=result.proved_by if result.bound is not None or result.settled else "",
        engine=result.engine,
        seconds=result.seconds,
        design="" if not designs else design_words(designs[0]),
        figures=tuple((f"a step of {share.name}", time_of(share.evaluation["step_time"])) for share in shares),
        tables=(Table("Workloads", heads, rows), *times),
    )


def of_front(figures: tuple[str, str], front: Front) -> Digest:
    """About a Pareto front, which has as many answers as points and no single value."""
    first = front.points[0].result
    names = tuple(name.replace("_", " ") for name in figures)
    units = UNITS
    rows = tuple(
        (str(place), _marked(point.first, figures[0]), _marked(point.second, figures[1]), _least(point, figures[1]), _words(point.result))
        for place, point in enumerate(front.points, 1)
    )
    marks = [{"die_area": "mm^2"}.get(key, units[key]) for key in figures]
    bound = f"no {names[1]} below, in {marks[1]}"
    heads = ("point", *(f"{name} in {mark}" for name, mark in zip(names, marks, strict=True)), bound, "design")
    ends = [(f"least {names[0]}", front.points[0].first, figures[0]), (f"least {names[1]}", front.points[-1].second, figures[1])]
    return Digest(
        name=first.question["name"],
        asks=f"{names[0]} and {names[1]}",
        unit="",
        value=None,
        bound=None,
        gap=None,
        verdict="proved" if front.proved else "not proved",
        prover="",
        engine=first.engine,
        seconds=sum(point.result.seconds for point in front.points),
        design=several(len(front.points), "design"),
        figures=tuple((label, amount(value, units[key])) for label, value, key in ends),
        tables=(Table("The front", heads, rows),),
    )


def _marked(value: float, figure: str) -> float:
    """The figure in the unit that its column names."""
    return float(Fraction(value) * 1_000_000) if figure == "die_area" else value


def _least(point: Point, figure: str) -> Bound | None:
    """The bound in the same unit, and never more than it is."""
    if point.result.bound is None:
        return None
    exact, near = Fraction(point.result.bound), _marked(point.result.bound, figure)
    scale = 1_000_000 if figure == "die_area" else 1
    return Bound(near if Fraction(near) <= exact * scale else nextafter(near, 0.0))


def _words(result: DesignResult) -> str:
    design = design_in(result)
    return "" if design is None else design_words(design)


def of_counts(counted: Counted, result: DesignResult) -> Digest:
    """About several numbers of devices, networks or batches; the design is that of the best."""
    part, fewest = best_part(counted, result), counted.objective == FEWEST
    best = None if part is None else of_design(part)
    rows = tuple(
        (
            *part_values(counted, place),
            answer.value,
            None if answer.bound is None else Bound(answer.bound),
            _words(answer) or (of_design(answer).verdict if answer.settled else ""),
        )
        for place, answer in enumerate(result.parts)
    )
    unit = result.parts[0].question["unit"] if result.parts else ""
    return Digest(
        name=counted.name,
        asks="number of devices" if fewest else counted.objective.replace("_", " "),
        unit=str(result.question["unit"]),
        value=result.value,
        bound=result.bound,
        gap=result.gap,
        verdict=label_of(result, "design"),
        prover="" if best is None else best.prover,
        engine="" if best is None else best.engine,
        seconds=result.seconds,
        design="" if best is None else f"{counted.part_name(best_place(counted, result))}; {best.design}",
        figures=() if best is None else best.figures,
        tables=(
            Table(
                several_words(counted).partition(" ")[2].capitalize(),
                (*part_heads(counted), f"value in {unit}", f"bound in {unit}", "design"),
                rows,
            ),
            *(() if best is None else best.tables),
        ),
    )


def _with_unit(number: str, unit: str) -> str:
    return f"{number} {unit}".rstrip()
