"""Runs of a comparison that survive it: each is kept in the folder of a sweep, and taken from there where it was asked before."""

from pathlib import Path
from typing import Any

from crossopt.solvers.answer import Limits, Watch, result_in, to_text
from crossopt.solvers.checking import solve_and_hold
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.study.asking import Asked, Asking
from crossopt.solvers.study.running import Asker, turns_of
from crossopt.solvers.sweeps.keys import key_of, question_digest
from crossopt.solvers.sweeps.store import Listed, Point, Row, forget_failure, keep, kept_at, open_store, result_of


def kept_in(folder: Path, asking: Asking) -> Asker:
    """Asks what is not there yet, and keeps it; the folder says what is asked, as after a sweep."""
    digests = [question_digest(FAMILY.kind, asked.instance.document) for asked in asking.questions]
    points = [Point(one.name, one.subject, one.at, FAMILY.kind, digest) for one, digest in zip(asking.questions, digests, strict=True)]
    turns = turns_of(asking.plan)
    rows = [_row(place, digest, engine, limits) for place, digest in enumerate(digests) for engine, limits in turns]
    open_store(folder, Listed(asking.plan.title, asking.plan.axes, tuple(points), tuple(rows)))
    places = {asked.name: place for place, asked in enumerate(asking.questions)}

    def ask(asked: Asked, engine: str, limits: Limits, watch: Watch) -> DesignResult:
        place = places[asked.name]
        row = _row(place, digests[place], engine, limits)
        data = result_of(kept_at(folder, row.key), row, points[place]).data
        if data is not None:
            return _read(data)
        result = solve_and_hold(FAMILY, asked.instance, engine, limits, watch)
        if result.stopped != "interrupted":
            keep(folder, row.key, to_text(result))
            forget_failure(folder, row.key)
        return result

    return ask


def _row(place: int, digest: str, engine: str, limits: Limits) -> Row:
    seconds = limits.seconds if limits.seconds < float("inf") else None
    return Row(place, engine, limits.seed, seconds, key_of(digest, engine, limits))


def _read(data: dict[str, Any]) -> DesignResult:
    return result_in(data, FAMILY.answer, FAMILY.details)
