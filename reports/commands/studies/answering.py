"""The command `sweep STUDY`: the runs of a study answered by several processes into a folder, and what a sweep has come to, in lines."""

import os
import signal
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from time import monotonic
from types import FrameType

from crossopt.instances.errors import FailedError
from crossopt.instances.files.saved import check_writable, naming
from crossopt.instances.kinds import kind_asked, question_path
from crossopt.instances.studies.study import MOST_SWEPT, StudyText, read_study
from crossopt.reports.commands.console import seconds_of, usage
from crossopt.reports.commands.exit_codes import ANSWERED, ENDED_EARLY, UNPROVED
from crossopt.reports.commands.progress import notes_on
from crossopt.reports.render.width import fitted, listed, wrapped
from crossopt.reports.sheets.amounts import several
from crossopt.solvers.sweeps.asking import Reader, Unanswered, ask, mark_of, strange_names
from crossopt.solvers.sweeps.leases import Worker, clear
from crossopt.solvers.sweeps.listed import Listed
from crossopt.solvers.sweeps.standing import Standing, Tally, in_shard, is_left, standings, tally
from crossopt.solvers.sweeps.store import RESULTS, known
from crossopt.solvers.sweeps.supervisor import Supervisor
from crossopt.solvers.sweeps.worker import Job, lost_text

_MOST_WORKERS = 1_024
FAILED = 1
SHOWN = 10
"""Failures that are told one by one."""


def study_in(path: Path) -> StudyText:
    """The study in a file; usage where it is another question."""
    found = question_path(path)
    if found.is_file() and kind_asked(found) != "study":
        usage(f"{path}: a sweep asks the questions of a study, and this is one question (`crossopt solve {path}` answers it)")
    return read_study(found, strange_names, MOST_SWEPT)


@dataclass(slots=True)
class _Wish:
    """How often somebody asked for the end."""

    times: int = 0

    def __call__(self) -> int:
        return self.times


def answer(options: Namespace, path: Path, memory: int | None, begun: list[Worker], kinds: tuple[str, ...]) -> int:
    """Answer what is left, by the processes that have begun and by others; say what all of it, or of the shard, has come to."""
    folder, workers = options.store, options.workers or _cores()
    if workers > _MOST_WORKERS:
        usage(f"--workers {workers}: this is too many (write {_MOST_WORKERS} or less; more than the machine's cores gain nothing)")
    if folder is None and not options.dry_run:
        usage("--store: say where the answers are to be kept (`--store runs/`)")
    if options.dask and options.memory:
        usage("--memory: with --dask the cluster says what a process may take (leave it out)")
    study, limit = study_in(path), None if options.time_limit is None else seconds_of(options.time_limit)
    if options.dry_run:
        return _say_what_is_left(options, ask(study, tuple(options.settings), limit))
    crew = Supervisor(folder, workers, memory, kinds, crew=begun)
    try:
        return _answer(options, study, limit, crew)
    finally:
        crew.dismiss()


def _say_what_is_left(options: Namespace, asked: Listed) -> int:
    keys = [row.key for row in asked.rows if in_shard(row.key, options.shard)]
    missing = dict.fromkeys(keys, Standing("not asked"))
    before = standings(options.store, asked, set(keys)) if options.store else missing
    left = {key for key in keys if is_left(before[key], options.retry or ())}
    sys.stdout.write(fitted(_dry_text(asked, keys, before, left)))
    return ANSWERED


def _answer(options: Namespace, study: StudyText, limit: float | None, crew: Supervisor) -> int:
    """Have what is left answered, and say what came of all; questions are read where they are to be asked, or are others than before."""
    began, folder, settings, wish = monotonic(), crew.folder, tuple(options.settings), _Wish()
    mark = mark_of(study, settings, limit)
    unanswered = Unanswered(folder, Reader(study, settings, limit), mark, known(folder, mark), options.shard, options.retry or ())
    jobs = unanswered.jobs()
    first = next((job for job in jobs if job), None)
    if first is not None:
        with naming(folder / RESULTS):
            check_writable(folder / RESULTS / "any.json")
        clear(folder)
        crew.spoiled, crew.stopping = unanswered.spoiled, wish
        with _heard(wish), notes_on(sys.stderr) as crew.note:
            try:
                _work(options.dask, crew, chain([first], jobs))
            except OSError as error:
                raise FailedError(lost_text(error, folder)) from error
    asked_now = f"{len(crew.answered | crew.failed):,} of them asked now, in {monotonic() - began:.3g} s"
    full_list = unanswered.listed
    if full_list is None:
        sys.stdout.write(fitted(_early_text(folder, unanswered.reader, asked_now)))
        return ENDED_EARLY
    keys = unanswered.keys(full_list)
    now = unanswered.before if first is None else standings(folder, full_list, set(keys))
    found = tally(keys, now)
    lines = [f"{folder}: {full_list.title}", *tally_text(len(full_list.points), found)]
    lines.append("  nothing was left to ask" if first is None else f"  {asked_now}")
    lines += [*failures_text(full_list, keys, now), *remedies_text(folder, found), f"  `crossopt sweep table {folder}` has each of them"]
    sys.stdout.write(fitted("\n".join(lines) + "\n"))
    return code_of_sweep(found)


def _work(dask: str | None, crew: Supervisor, jobs: Iterator[Job | None]) -> None:
    """By processes of this machine, or by those of a cluster."""
    if dask is None:
        crew.run(jobs)
        return
    from crossopt.solvers.sweeps.on_dask import run_on_dask  # noqa: PLC0415 - few have it

    run_on_dask(dask, crew, jobs)


@contextmanager
def _heard(wish: _Wish) -> Iterator[None]:
    """Ctrl-C, and how batch systems say it, as a wish that is heard between two answers."""

    def note(number: int, frame: FrameType | None) -> None:
        del number, frame
        wish.times += 1
        told = "what is being answered is finished; once more ends it at once" if wish.times == 1 else "ended"
        sys.stderr.write(f"\n{told}\n")

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _dry_text(asked: Listed, keys: Sequence[str], before: dict[str, Standing], left: set[str]) -> str:
    done = sum(one.state != "not asked" for one in before.values())
    twice = len(keys) - len(set(keys))
    lines = [f"{asked.title}: {several(len(asked.points), 'point')}, {several(len(keys), 'run')}"]
    lines += [f"  {twice:,} of them ask what another one asks, and are asked once"] if twice else []
    return "\n".join([*lines, f"  {done:,} have come to something before, {len(left):,} would be asked now"]) + "\n"


def _cores() -> int:
    """Those that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


# --- in lines ----------------------------------------------------------------------------------------------------------------------------


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


def _early_text(folder: Path, reader: Reader, asked: str) -> str:
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
