"""What the sheets of all plans in stages share: a timeline and a table of the stages, and the plans beside."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from crossopt.reports.drawing.timeline import Segment, Track
from crossopt.reports.sheets.amounts import several, time_of
from crossopt.reports.sheets.sheet import Section, Sheet, Table, Timeline, baselines_in, memory, names, times, with_sections
from crossopt.solvers.answer import Result

_DRAWN = 64
"""Stages in the picture, the first ones; the table has all."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: seconds of each kind of work, one after another, and of what runs beside it; and the bytes on a device."""

    label: str
    runs: str
    """What it runs, in words."""
    work: tuple[float, ...]
    total: float
    memory: float | None
    beside: float = 0.0


@dataclass(frozen=True, slots=True)
class Pace:
    """What the times of stages are called."""

    work: tuple[str, ...]
    """Kinds of work."""
    of: str
    """What a stage's time is for."""
    beside: str = ""
    """What runs beside the work; empty where nothing does."""

    @property
    def kinds(self) -> tuple[str, ...]:
        return (*self.work, *((self.beside,) if self.beside else ()))


def with_stages(
    sheet: Sheet, result: Result[Any, Any], stages: Sequence[Stage], pace: Pace, capacity: float, rivals: Sequence[str]
) -> Sheet:
    """The sheet with what every stage takes, of devices with so much memory, and the plans of the rivals, which words tell."""
    beside = baselines_in("plan", result, result.rivals, rivals)
    return with_sections(sheet, *([_stages(stages, pace, capacity)] if stages else []), beside)


def _stages(stages: Sequence[Stage], pace: Pace, capacity: float) -> Section:
    slowest, drawn = max(stage.total for stage in stages), stages[:_DRAWN]
    tracks = tuple(Track(stage.label, tuple(_segments(stage, pace)), f"{stage.total * 1e3:.5g} ms") for stage in drawn)
    first = f"The slowest of {len(stages):,} stages takes {time_of(slowest)} for {pace.of}."
    beside = f" {pace.beside.capitalize()} run beside the work, in the lower lane." if pace.beside else ""
    left_out = f" The first {_DRAWN} stages are shown." if len(stages) > _DRAWN else ""
    work = [times(name, [stage.work[place] for stage in stages]) for place, name in enumerate(pace.work)]
    work += [times(pace.beside, [stage.beside for stage in stages])] if pace.beside else []
    table = Table(
        (
            names("stage", (stage.label for stage in stages)),
            names("runs", (stage.runs for stage in stages)),
            *work,
            times("in all", [stage.total for stage in stages]),
            memory([stage.memory for stage in stages], capacity),
        )
    )
    return Section(
        "The stages",
        (Timeline(pace.kinds, tracks, slowest * 1e3, f"ms for {pace.of}", "the pace", f"{first}{beside}{left_out}"), table),
    )


def _segments(stage: Stage, pace: Pace) -> Iterator[Segment]:
    at, lanes = 0.0, 2 if pace.beside else 1
    for place, part in enumerate(stage.work):
        yield Segment(at * 1e3, (at + part) * 1e3, place, 0, lanes)
        at += part
    if pace.beside:
        yield Segment(0.0, stage.beside * 1e3, len(stage.work), 1, lanes)


def on_devices(stages: int, devices: int) -> str:
    """How large a plan is."""
    return f"{several(stages, 'stage')} on {several(devices, 'device')}"
