"""What a sweep has come to, in lines."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from crossopt.reports.commands.families import ANSWERED, ENDED_EARLY, UNPROVED
from crossopt.reports.sheets.amounts import several
from crossopt.reports.texts.width import listed, wrapped
from crossopt.solvers.sweeps.asking import Reader
from crossopt.solvers.sweeps.listed import Listed
from crossopt.solvers.sweeps.standing import Standing, Tally

FAILED = 1
SHOWN = 10
"""Failures that are told one by one."""


def code_of_sweep(found: Tally) -> int:
    """The exit code: what is left counts before what failed, and that before what an engine that proves left without a proof."""
    if found.left:
        return ENDED_EARLY
    if found.failed:
        return FAILED
    return UNPROVED if found.open else ANSWERED


def tally_text(points: int, found: Tally) -> Iterator[str]:
    """How many runs there are, and what they have come to."""
    twice = f", {found.runs - found.keys:,} of which ask what another one asks" if found.keys < found.runs else ""
    parts = [f"{found.answered:,} answered"]
    parts += [f"{found.refused:,} not answered by the engine that was asked"] if found.refused else []
    parts += [f"{found.failed:,} failed"] if found.failed else []
    parts += [f"{found.left:,} not asked yet, of which nothing is said"] if found.left else []
    yield from wrapped("  ", f"{several(points, 'point')}, {several(found.runs, 'run')}{twice}: {', '.join(parts)}")
    if not found.answered:
        return
    none = f" ({found.infeasible:,} of them that there is no answer)" if found.infeasible else ""
    open_ = f", {found.open:,} without a proof" if found.open else "" if found.ruled else ", none without a proof"
    gap = f", the widest known gap {found.widest:.2%}" if found.widest is not None else ""
    late = f", {found.stopped:,} of them stopped by time" if found.stopped else ""
    ruled = f", {found.ruled:,} by engines that prove nothing" if found.ruled else ""
    yield from wrapped("  ", f"of those answered {found.proved:,} proved{none}{open_}{late}{gap}{ruled}")


def remedies_text(folder: Path, found: Tally) -> Iterator[str]:
    """What asks what is left, and what failed, FILE being the study."""
    again = f"`crossopt sweep FILE --store {folder}"
    if found.left:
        yield from wrapped("  ", f"{again}` asks what is left")
    if found.failed:
        yield from wrapped("  ", f"{again} --retry failed` asks {'these' if found.left == 0 else 'what failed'} again")


def early_text(folder: Path, reader: Reader, asked: str) -> str:
    """What is said where the end was asked for before all questions were read."""
    read = f"{reader.done:,} of {reader.count:,} points were read when it was ended; {asked}, and nothing is said of the others"
    again = f"`crossopt sweep FILE --store {folder}` goes on"
    return "\n".join([f"{folder}: {reader.study.file.title}", *wrapped("  ", read), *wrapped("  ", again)]) + "\n"


def failures_text(asked: Listed, keys: Sequence[str], standings: dict[str, Standing]) -> Iterator[str]:
    """What failed, and why; and files that were not used."""
    among, seen, told = set(keys), set[str](), 0
    for row in asked.rows:
        if row.key not in among or row.key in seen:
            continue
        seen.add(row.key)
        one = standings[row.key]
        for fault in one.faults:
            yield from listed("  not used  ", fault)
        if one.state == "failed" and one.failure:
            told += 1
            if told <= SHOWN:
                tries = f" ({one.failure.tries} tries)" if one.failure.tries > 1 else ""
                yield from listed("  failed    ", f"{asked.points[row.question].name}, {row.engine}: {one.failure.words}{tries}")
    if told > SHOWN:
        yield f"  and {told - SHOWN:,} more that failed; the table has them"
