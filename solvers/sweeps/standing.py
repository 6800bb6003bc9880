"""How far a sweep is: what each run has come to, as the files of its folder say, and what is left to be asked."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from crossopt.solvers.family import family_of
from crossopt.solvers.sweeps.listed import Listed, Point, Row
from crossopt.solvers.sweeps.store import Failure, all_kept, failure_of, result_of
from crossopt.solvers.sweeps.worker import REFUSED

State = Literal["answered", "refused", "failed", "not asked"]


@dataclass(frozen=True, slots=True)
class Standing:
    """What a run has come to."""

    state: State
    status: str = ""
    proved: bool = False
    stopped: str = ""
    gap: float | None = None
    failure: Failure | None = None
    files: int = 0
    """How many files it has, sound ones and others."""
    faults: tuple[str, ...] = ()
    """What is wrong with files that were not used."""
    ruled: bool = False
    """Whether it has no proof because its engine, a rule or a searcher that did all it was asked, proves nothing."""


def standings(folder: Path, listed: Listed, only: Container[str] | None = None) -> dict[str, Standing]:
    """What each run has come to, by its key; of all, or of some."""
    found, now = all_kept(folder), dict[str, Standing]()
    for row in listed.rows:
        if row.key not in now and (only is None or row.key in only):
            now[row.key] = standing_at(folder, row, listed.points[row.question], found.get(row.key, ()))
    return now


def standing_at(folder: Path, row: Row, point: Point, paths: Sequence[Path]) -> Standing:
    """What one run has come to, whose files are these."""
    kept = result_of(paths, row, point)
    if kept.data is None:
        failure = failure_of(folder, row.key)
        state: State = "not asked" if failure is None else "refused" if failure.code == REFUSED else "failed"
        return Standing(state, failure=failure, files=len(paths), faults=kept.faults)
    data = kept.data
    return Standing(
        state="answered",
        status=data["status"],
        proved=data["proved"],
        stopped=data["stopped"],
        gap=data["gap"],
        files=len(paths),
        faults=kept.faults,
        ruled=not data["proved"] and _proves_nothing(row.engine, data),
    )


def _proves_nothing(engine: str, data: dict[str, Any]) -> bool:
    """Whether the engine is none that proves: it ended without a bound, by itself or as searchers do, when its time was over. The first
    engine of a kind, which chooses among all, is none of these."""
    family = family_of(data["kind"])
    ended = data["stopped"] == "complete" or (engine in family.searching and data["stopped"] == "time limit")
    return engine != next(iter(family.engines)) and data["bound"] is None and ended


def is_left(standing: Standing, retry: Container[str]) -> bool:
    """Whether a run is to be asked: it never was, or it shall be asked again as it failed, or as its time was over before a proof."""
    if standing.state != "answered":
        return standing.state == "not asked" or "failed" in retry
    lost = standing.stopped == "interrupted" and "failed" in retry
    return lost or (standing.stopped == "time limit" and not standing.proved and "limit" in retry)


def in_shard(key: str, shard: tuple[int, int] | None) -> bool:
    """Whether a run belongs to this of so many shards; which one it is of does not change with what else is asked."""
    return shard is None or int(key, 16) % shard[1] == shard[0]


@dataclass(frozen=True, slots=True)
class Tally:
    """How many runs have come to what; a run that stands in several places of the study counts in each."""

    runs: int
    keys: int
    answered: int
    proved: int
    infeasible: int
    """Of the proved ones those that prove that there is no answer."""
    ruled: int
    """Answered by engines that prove nothing."""
    open: int
    """Answered without a proof by others."""
    widest: float | None
    """The widest gap of the open ones that have a bound."""
    stopped: int
    """Of the open ones those whose time was over."""
    refused: int
    failed: int
    left: int


def tally(keys: Sequence[str], standings: dict[str, Standing]) -> Tally:
    """How many of these runs have come to what."""
    found = [standings[key] for key in keys]
    answered = [one for one in found if one.state == "answered"]
    unproved = [one for one in answered if not one.proved and not one.ruled]
    return Tally(
        runs=len(found),
        keys=len(set(keys)),
        answered=len(answered),
        proved=sum(one.proved for one in answered),
        infeasible=sum(one.status == "INFEASIBLE" for one in answered),
        ruled=sum(one.ruled for one in answered),
        open=len(unproved),
        widest=max((one.gap for one in unproved if one.gap is not None), default=None),
        stopped=sum(one.stopped == "time limit" for one in unproved),
        refused=sum(one.state == "refused" for one in found),
        failed=sum(one.state == "failed" for one in found),
        left=sum(one.state == "not asked" for one in found),
    )
