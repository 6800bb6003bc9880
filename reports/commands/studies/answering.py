"""The command `sweep STUDY`: the runs of a study answered by several processes into a folder."""

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
from crossopt.reports.commands.families import ANSWERED, ENDED_EARLY
from crossopt.reports.commands.progress import notes_on
from crossopt.reports.commands.studies.words import code_of_sweep, early_text, failures_text, remedies_text, tally_text
from crossopt.reports.sheets.amounts import several
from crossopt.reports.texts.width import fitted
from crossopt.solvers.sweeps.asking import Reader, Unanswered, ask, mark_of, strange_names
from crossopt.solvers.sweeps.leases import clear
from crossopt.solvers.sweeps.listed import Listed
from crossopt.solvers.sweeps.process import Worker
from crossopt.solvers.sweeps.standing import Standing, in_shard, is_left, standings, tally
from crossopt.solvers.sweeps.store import RESULTS, known
from crossopt.solvers.sweeps.supervisor import Supervisor
from crossopt.solvers.sweeps.worker import Job, lost_words

_MOST_WORKERS = 1_024


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
    sys.stdout.write(fitted(_dry_words(asked, keys, before, left)))
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
                raise FailedError(lost_words(error, folder)) from error
    asked_now = f"{len(crew.answered | crew.failed):,} of them asked now, in {monotonic() - began:.3g} s"
    listed = unanswered.listed
    if listed is None:
        sys.stdout.write(fitted(early_text(folder, unanswered.reader, asked_now)))
        return ENDED_EARLY
    keys = unanswered.keys(listed)
    now = unanswered.before if first is None else standings(folder, listed, set(keys))
    found = tally(keys, now)
    lines = [f"{folder}: {listed.title}", *tally_text(len(listed.points), found)]
    lines.append("  nothing was left to ask" if first is None else f"  {asked_now}")
    lines += [*failures_text(listed, keys, now), *remedies_text(folder, found), f"  `crossopt sweep table {folder}` has each of them"]
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


def _dry_words(asked: Listed, keys: Sequence[str], before: dict[str, Standing], left: set[str]) -> str:
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
