"""Runs of a study answered by several processes into a folder; how far a sweep is, its table, its check, and a script for parts."""

import errno
import os
import signal
import sqlite3
import sys
from argparse import Namespace
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from gzip import compress
from html import escape
from itertools import chain
from pathlib import Path
from shlex import quote
from time import monotonic
from types import FrameType
from typing import Any, Final

from crossopt.instances.errors import FailedError
from crossopt.instances.files.saved import check_writable, file_name, naming, write_atomically
from crossopt.instances.files.units import nearest
from crossopt.instances.kinds import kind_of_file, question_path
from crossopt.instances.studies.study import MOST_SWEPT, StudyText, read_study
from crossopt.reports.commands.console import ANSWERED, ENDED_EARLY, UNPROVED, check_target, seconds_of, usage
from crossopt.reports.commands.progress import notes_on
from crossopt.reports.drawing.plots import Line, lines
from crossopt.reports.drawing.svg import Titles
from crossopt.reports.render.html import ProofBox, figure, frame, heading, section, text_html
from crossopt.reports.render.html import listing as page_list
from crossopt.reports.render.html import table as page_table
from crossopt.reports.render.runs import Cells, Value, axis_columns, cells_of, csv_of, markdown_of, write_parquet
from crossopt.reports.render.width import fitted, listed, wrapped
from crossopt.reports.sheets.amounts import several, with_unit
from crossopt.solvers.answer import result_in
from crossopt.solvers.checking import check as report_of
from crossopt.solvers.family import family_of
from crossopt.solvers.sweeps import asking
from crossopt.solvers.sweeps.asking import standings
from crossopt.solvers.sweeps.leases import Worker, clear, leased_runs
from crossopt.solvers.sweeps.listed import Listed, listed_faults, name_faults
from crossopt.solvers.sweeps.store import RESULTS, STUDY, all_kept, known, listing, result_of
from crossopt.solvers.sweeps.supervisor import Supervisor
from crossopt.solvers.sweeps.worker import Job, lost_text

# The command `sweep STUDY`: the runs of a study answered by several processes into a folder, and what a sweep has come to, in lines.

_MOST_WORKERS = 1_024
_NEAR = 3
"""Columns that are suggested in place of one that does not exist."""
FAILED = 1
SHOWN = 10
"""Most failures that are listed one by one."""


def study_in(path: Path) -> StudyText:
    """The study in a file; usage where it is another question."""
    found = question_path(path)
    if found.is_file() and kind_of_file(found) != "study":
        usage(f"{path}: a sweep asks the questions of a study, and this is one question (`crossopt solve {path}` answers it)")
    return read_study(found, asking.strange_names, MOST_SWEPT)


@dataclass(slots=True)
class _Wish:
    """How often the end was asked for."""

    times: int = 0

    def __call__(self) -> int:
        return self.times


def answer(options: Namespace, path: Path, memory: int | None, begun: list[Worker], kinds: tuple[str, ...]) -> int:
    """Answer what is left, by the processes that have begun and by others; say what all of it, or of the shard, has come to."""
    folder, workers = options.store, options.workers or _cores()
    if workers > _MOST_WORKERS:
        usage(f"--workers {workers}: this is too many (write {_MOST_WORKERS} or less; more than the machine's cores gain nothing)")
    if folder is None and not options.dry_run:
        usage("--store: name a folder for the results (`--store runs/`)")
    if options.dask and options.memory:
        usage("--memory: with --dask the cluster limits its processes (leave it out)")
    study, limit = study_in(path), None if options.time_limit is None else seconds_of(options.time_limit)
    if options.dry_run:
        return _say_what_is_left(options, asking.ask(study, tuple(options.settings), limit))
    crew = Supervisor(folder, workers, memory, kinds, crew=begun)
    try:
        return _answer(options, study, limit, crew)
    finally:
        crew.dismiss()


def _say_what_is_left(options: Namespace, sweep: Listed) -> int:
    keys = [row.key for row in sweep.rows if asking.in_shard(row.key, options.shard)]
    missing = dict.fromkeys(keys, asking.Standing("not asked"))
    before = standings(options.store, sweep, set(keys)) if options.store else missing
    left = {key for key in keys if asking.is_left(before[key], options.retry or ())}
    sys.stdout.write(fitted(_dry_text(sweep, keys, before, left)))
    return ANSWERED


def _answer(options: Namespace, study: StudyText, limit: float | None, crew: Supervisor) -> int:
    """Have what is left answered, and say what came of all; questions are read where they are to be asked, or are others than before."""
    began, folder, settings, wish = monotonic(), crew.folder, tuple(options.settings), _Wish()
    mark = asking.mark_of(study, settings, limit)
    unanswered = asking.Unanswered(
        folder, asking.Reader(study, settings, limit), mark, known(folder, mark), options.shard, options.retry or ()
    )
    jobs = unanswered.jobs()
    first = next((job for job in jobs if job), None)
    if first is not None:
        with naming(folder / RESULTS):
            check_writable(folder / RESULTS / "any.json")
        clear(folder)
        crew.spoiled, crew.stopping = unanswered.spoiled, wish
        with _stop_requests(wish), notes_on(sys.stderr) as crew.note:
            try:
                _work(options.dask, crew, chain([first], jobs))
            except OSError as error:
                raise FailedError(lost_text(error, folder)) from error
    asked_now = f"{len(crew.answered | crew.failed):,} of them run now, in {monotonic() - began:.3g} s"
    full_list = unanswered.listed
    if full_list is None:
        sys.stdout.write(fitted(_early_text(folder, unanswered.reader, asked_now)))
        return ENDED_EARLY
    keys = unanswered.keys(full_list)
    now = unanswered.before if first is None else standings(folder, full_list, set(keys))
    found = asking.tally(keys, now)
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
def _stop_requests(wish: _Wish) -> Iterator[None]:
    """Ctrl-C, and how batch systems say it, as a wish that is heard between two answers."""

    def note(number: int, frame: FrameType | None) -> None:
        del number, frame
        wish.times += 1
        notice = "what is being answered is finished; once more ends it at once" if wish.times == 1 else "ended"
        sys.stderr.write(f"\n{notice}\n")

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _dry_text(sweep: Listed, keys: Sequence[str], before: dict[str, asking.Standing], left: set[str]) -> str:
    done = sum(standing.state != "not asked" for standing in before.values())
    twice = len(keys) - len(set(keys))
    lines = [f"{sweep.title}: {several(len(sweep.points), 'point')}, {several(len(keys), 'run')}"]
    lines += [f"  {twice:,} of them repeat another run, and are run once"] if twice else []
    return "\n".join([*lines, f"  {done:,} are finished, {len(left):,} would be run now"]) + "\n"


def _cores() -> int:
    """Those that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


# --- in lines ----------------------------------------------------------------------------------------------------------------------------


def code_of_sweep(found: asking.Tally) -> int:
    """The exit code: what is left counts before what failed, and that before what an engine that proves left without a proof."""
    if found.left:
        return ENDED_EARLY
    if found.failed:
        return FAILED
    return UNPROVED if found.open else ANSWERED


def tally_text(points: int, found: asking.Tally) -> Iterator[str]:
    """How many runs there are, and what they have come to."""
    twice = f", {found.runs - found.keys:,} of which repeat another run" if found.keys < found.runs else ""
    parts = [f"{found.answered:,} answered"]
    parts += [f"{found.refused:,} refused by the engine"] if found.refused else []
    parts += [f"{found.failed:,} failed"] if found.failed else []
    parts += [f"{found.left:,} not run yet"] if found.left else []
    yield from wrapped("  ", f"{several(points, 'point')}, {several(found.runs, 'run')}{twice}: {', '.join(parts)}")
    if not found.answered:
        return
    none = f" ({found.infeasible:,} of them that there is no answer)" if found.infeasible else ""
    open_ = f", {found.open:,} without a proof" if found.open else "" if found.ruled else ", none without a proof"
    gap = f", the widest known gap {found.widest:.2%}" if found.widest is not None else ""
    late = f", {found.stopped:,} of them stopped by time" if found.stopped else ""
    ruled = f", {found.ruled:,} by engines that prove nothing" if found.ruled else ""
    yield from wrapped("  ", f"of those answered {found.proved:,} proved{none}{open_}{late}{gap}{ruled}")


def remedies_text(folder: Path, found: asking.Tally) -> Iterator[str]:
    """What asks what is left, and what failed, FILE being the study."""
    again = f"`crossopt sweep FILE --store {folder}"
    if found.left:
        yield from wrapped("  ", f"{again}` runs what is left")
    if found.failed:
        yield from wrapped("  ", f"{again} --retry failed` asks {'these' if found.left == 0 else 'what failed'} again")


def _early_text(folder: Path, reader: asking.Reader, status: str) -> str:
    """What is said where the end was asked for before all questions were read."""
    read = f"{reader.done:,} of {reader.count:,} points were read before it ended; {status}, and the others are unknown"
    again = f"`crossopt sweep FILE --store {folder}` goes on"
    return "\n".join([f"{folder}: {reader.study.file.title}", *wrapped("  ", read), *wrapped("  ", again)]) + "\n"


def failures_text(sweep: Listed, keys: Sequence[str], standings: dict[str, asking.Standing]) -> Iterator[str]:
    """What failed, and why; and files that were not used."""
    among, seen, failures = set(keys), set[str](), 0
    for row in sweep.rows:
        if row.key not in among or row.key in seen:
            continue
        seen.add(row.key)
        standing = standings[row.key]
        for fault in standing.faults:
            yield from listed("  not used  ", fault)
        if standing.state == "failed" and standing.failure:
            failures += 1
            if failures <= SHOWN:
                tries = f" ({standing.failure.tries} tries)" if standing.failure.tries > 1 else ""
                yield from listed("  failed    ", f"{sweep.points[row.question].name}, {row.engine}: {standing.failure.reason}{tries}")
    if failures > SHOWN:
        yield f"  and {failures - SHOWN:,} more that failed; the table has them"


# What else is done about a sweep: how far it is, as a table, checked, and as a database; and a script that answers it in parts.

REFUSED = 30
INDEX = "index.sqlite"
_SHARDS: Final = 10
_SCRIPT: Final = """\
#!/bin/bash
# Answers {title} in {shards} parts. Submit it by `sbatch`; once more, and only what is missing is asked.
# A job that ends with 11 left answers without a proof, one with 12 was ended early: see `crossopt sweep status {store}`.
#SBATCH --job-name={name}
#SBATCH --array=0-{last}
#SBATCH --cpus-per-task={workers}
#SBATCH --requeue
# A minute before its time is over a job is told, finishes what it is answering, and begins nothing new.
#SBATCH --signal=TERM@60
set -u
exec crossopt sweep {study} --store {store} --workers {workers} --shard "$SLURM_ARRAY_TASK_ID/{shards}"{more}
"""


def status(options: Namespace, folder: Path) -> int:
    """How far it is, with what asks the rest; it ends as the sweep itself would: 12 where runs are left, 1 where some failed."""
    del options
    listed = listing(folder)
    now, (alive, over) = standings(folder, listed), leased_runs(folder)
    keys = [row.key for row in listed.rows]
    found = asking.tally(keys, now)
    lines = [f"{folder}: {listed.title}", *tally_text(len(listed.points), found)]
    lines += [f"  {len(alive):,} being answered now"] if alive else []
    lines += [f"  {len(over):,} were being answered when their process ended"] if over else []
    lines += [*_foreign_results(folder, listed), *failures_text(listed, keys, now), *remedies_text(folder, found)]
    sys.stdout.write(fitted("\n".join(lines) + "\n"))
    return code_of_sweep(found)


def _foreign_results(folder: Path, listed: Listed) -> list[str]:
    """Results that belong to nothing that is asked."""
    known, saved = {row.key for row in listed.rows}, all_kept(folder)
    others = sum(len(paths) for key, paths in saved.items() if key and key not in known)
    lines = [f"  not used  {path.parent.name}/{path.name}: its name is none of a result" for path in saved.get("", ())]
    lines += [f"  {others:,} results of other points, limits or versions are left alone"] if others else []
    return lines


def table(options: Namespace, folder: Path) -> int:
    """One row a run."""
    check_target(options.out)
    listed = listing(folder)
    cells = cells_of(folder, listed, options.seconds)
    cells = _chosen(cells, options.columns) if options.columns else cells
    if options.form == "parquet":
        if options.out is None:
            usage("--as parquet: say where it goes (`--out FILE.parquet`)")
        try:
            write_parquet(cells, options.out)
        except ImportError:
            usage("--as parquet: this needs pyarrow (`pip install pyarrow`, or take --as csv)")
        return ANSWERED
    if options.form == "html" and len(cells.rows) > MOST:
        usage(f"--as html: {len(cells.rows):,} rows are more than a page holds, {MOST:,} (take --as csv)")
    text = _page(folder, listed, cells) if options.form == "html" else markdown_of(cells) if options.form == "markdown" else csv_of(cells)
    if options.out is None or str(options.out) == "-":
        sys.stdout.write(text)
    else:
        write_atomically(options.out, text)
    for fault in cells.faults:
        sys.stderr.write(f"not used  {fault}\n")
    return ANSWERED


def _page(folder: Path, listed: Listed, cells: Cells) -> str:
    return swept_page(listed, cells, asking.tally([row.key for row in listed.rows], standings(folder, listed)))


def _chosen(cells: Cells, names: str) -> Cells:
    wanted = [name.strip() for name in names.split(",")]
    if strange := [name for name in wanted if name not in cells.heads]:
        near = nearest(strange[0], cells.heads) or [head for head in cells.heads if strange[0].casefold() in head.casefold()][:_NEAR]
        remedy = f"did you mean {' or '.join(near)}?" if near else f"one of {', '.join(cells.heads)}"
        usage(f"--columns: there is no column {strange[0]!r} ({remedy})")
    return Cells(tuple(wanted), cells.rows, cells.faults)


def check(options: Namespace, folder: Path) -> int:
    """Every result, or some, said again from its question alone; exit code 30 where one does not hold."""
    listed, saved = listing(folder), all_kept(folder)
    rows = {row.key: row for row in listed.rows if row.key in saved}
    keys = _evenly(list(rows), options.sample) if options.sample else list(rows)
    unverified, faults, refused, questions = 0, _foreign_results(folder, listed), list[str](), dict[int, dict[str, Any]]()
    with notes_on(sys.stderr) as note:
        for number, key in enumerate(keys):
            note(f"{number:,} of {len(keys):,} checked")
            point = listed.points[rows[key].question]
            found, family = result_of(saved[key], rows[key], point), family_of(point.kind)
            refused += found.faults
            if found.data is not None and found.path is not None:
                report = report_of(family, result_in(found.data, family.answer, family.details), found.path.parent)
                unverified += report.unverified
                questions[rows[key].question] = found.data["question"]
                refused += [f"{found.path.parent.name}/{found.path.name}: {fault}" for fault in report.refused]
    points = [replace(point_left, document=questions.get(index)) for index, point_left in enumerate(listed.points)]
    refused += [f"{STUDY}: {fault}" for fault in name_faults(listed.axes, points)]
    refused += [f"{STUDY}: {fault}" for fault in listed_faults(listed)]
    beside = f", {unverified:,} of them except a solver-reported bound, which was not proved again" if unverified else ""
    left = len({row.key for row in listed.rows} - set(saved))
    without = [f"  {left:,} {'run' if left == 1 else 'runs'} without a result: what the folder says of why is not verified"] if left else []
    lines = [f"  {len(keys):,} of {len(rows):,} results checked{beside}", *without, *faults, *(f"  REFUSED  {fault}" for fault in refused)]
    sys.stdout.write(fitted("\n".join([*lines, f"{folder}: {'refused' if refused else 'accepted'}"]) + "\n"))
    return REFUSED if refused else ANSWERED


def _evenly(keys: list[str], count: int) -> list[str]:
    """So many of them, chosen evenly from their order."""
    ordered = sorted(keys)
    return ordered if count >= len(ordered) else [ordered[index * len(ordered) // count] for index in range(count)]


def index(options: Namespace, folder: Path) -> int:
    """The table as a database, made anew from the files."""
    del options
    cells = cells_of(folder, listing(folder), seconds=True)
    target, beside = folder / INDEX, folder / f".{INDEX}"
    try:
        with naming(target):
            beside.unlink(missing_ok=True)
            _write_index(cells, beside)
            beside.replace(target)
    except OSError:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
    sys.stdout.write(f"{target}: {len(cells.rows):,} runs in the table `runs`\n")
    return ANSWERED


def _write_index(cells: Cells, path: Path) -> None:
    """The database; an OSError where there is no room for it."""
    heads, places = ", ".join('"' + head.replace('"', '""') + '"' for head in cells.heads), ", ".join("?" * len(cells.heads))
    try:
        with closing(sqlite3.connect(path)) as base, base:
            base.execute(f"CREATE TABLE runs ({heads})")
            base.executemany(f"INSERT INTO runs VALUES ({places})", ([row.get(head) for head in cells.heads] for row in cells.rows))
    except sqlite3.OperationalError as error:
        raise OSError(errno.EIO, str(error)) from error


def script(options: Namespace, path: Path) -> int:
    """A script for a batch system that answers a sweep in equal parts, each a job of its own, that share a folder and nothing else."""
    if not options.slurm:
        usage("sweep script: say for which batch system (`--slurm`)")
    if options.store is None:
        usage("--store: name a folder for the results that all machines of the cluster share (`--store /shared/runs`)")
    check_target(options.out)
    study, shards = read_study(question_path(path), asking.strange_names, MOST_SWEPT), options.shards or _SHARDS
    given = (("--time-limit", options.time_limit), ("--memory", options.memory), ("--retry", ",".join(options.retry or ()) or None))
    settings = tuple(("--set", setting) for setting in options.settings)
    more = "".join(f" {flag} {quote(value)}" for flag, value in (*given, *settings) if value is not None)
    name = path if path == question_path(path) else path.name  # one that comes along has its name on all machines
    values = {
        "title": " ".join(study.file.title.split()),
        "name": file_name(study.file.title).replace(" ", "-"),
        "study": quote(str(question_path(path).resolve())) if name == path else quote(str(name)),
        "store": quote(str(options.store.absolute())),
        "workers": options.workers or 1,
        "shards": shards,
        "last": shards - 1,
        "more": more,
    }
    text = _SCRIPT.format(**values)
    if options.out is None or str(options.out) == "-":
        sys.stdout.write(text)
    else:
        write_atomically(options.out, text)
    return ANSWERED


# The page of a sweep: how far it is, every run in a table that reads without any script, and axes to choose where a script may run.
#
# The link that saves the table holds it packed, and the script takes it from there: pages of some thousand runs stay small, and nobody is
# asked for anything. Columns that are the same in all rows are told once, below.

MOST: Final = 5_000
"""Rows of a page; a browser has trouble with more."""
_NOT_PROVED: Final = "No proof was repeated for this page: verdicts are those in the files; `crossopt sweep check` repeats the proofs."
_SHOWN: Final = ("engine", "seed", "status", "value", "unit", "bound", "gap", "plan", "note")
_LINES, _PLACES = 8, 24
"""Courses and places that a picture can tell apart."""
_WAYS: Final = """\
<p class="soft" id="ways" hidden>Show <select id="shown"></select> along <select id="along"></select>
where <span id="where"></span> <label>filter <input id="words" size="14"></label></p>
<noscript><p class="soft">Where scripts run, axes and figures may be chosen here; every run stands below.</p></noscript>
<div id="drawn"></div>"""


def swept_page(listed: Listed, cells: Cells, found: asking.Tally) -> str:
    """The page, which claims nothing about runs that were not asked."""
    axes = _axes(listed, cells)
    parts = [f"{found.proved:,} of {found.runs:,} runs are proved"]
    parts += [f"{found.infeasible:,} of these infeasible"] if found.infeasible else []
    parts += [f"{found.open:,} have no proof"] if found.open else []
    parts += [f"{found.refused:,} were refused by the engine"] if found.refused else []
    parts += [f"{found.failed:,} failed"] if found.failed else []
    parts += [f"{found.left:,} were not run yet"] if found.left else []
    names, label = ", ".join(axes), "proved, as the files say" if found.proved == found.runs else "not all proved"
    return frame(
        listed.title,
        (
            heading(
                listed.title, f"{several(len(listed.points), 'point')}, {several(found.runs, 'run')}{f', along {names}' if names else ''}."
            ),
            ProofBox(label, f"{', '.join(parts)}.", found.proved == found.runs, note=_NOT_PROVED, stated=True),
            section("Along the axes", _picture(listed, cells, axes), _WAYS),
            section("Every run", _saved(listed, cells), f'<div id="runs">{_table(cells, axes)}</div>'),
            section("The same of all", page_list(_shared(cells))),
            section("Not used", page_list(list(cells.faults))),
            f'<script type="application/json" id="axes">{_json(axes)}</script>',
        ),
        "\n" + Path(__file__).with_name("swept.js").read_text(encoding="utf-8"),
    )


def _axes(listed: Listed, cells: Cells) -> list[str]:
    """The columns by which runs differ: axes, and what else tells them apart."""
    return [*axis_columns(listed), *(head for head in ("subject", "engine", "seed") if len({row.get(head) for row in cells.rows}) > 1)]


def _json(axes: Sequence[str]) -> str:
    """A list of names that no tag ends early."""
    return "[" + ",".join('"' + name.translate({34: '\\"', 92: "\\\\", 60: "\\u003c", 10: " "}) + '"' for name in axes) + "]"


def _saved(listed: Listed, cells: Cells) -> str:
    """A link that saves the table, with all its columns, packed; where scripts may run it is unpacked before."""
    name = escape("".join(sign if sign.isalnum() else "-" for sign in listed.title)[:60])
    packed = b64encode(compress(csv_of(cells).encode(), 9, mtime=0)).decode()
    link = f'<a id="csv" download="{name}.csv.gz" href="data:application/gzip;base64,{packed}">Save as CSV</a>'
    return f'<p>{link}<span id="packed"> (packed by gzip)</span></p>'


def _table(cells: Cells, axes: Sequence[str]) -> str:
    every = {head: {row.get(head) for row in cells.rows} for head in _SHOWN}
    shown = [head for head in _SHOWN if head not in axes and not every[head] <= {None, ""}]
    constant = {head for head in shown if len(every[head]) == 1 and len(cells.rows) > 1}
    heads = [*(axes or ["question"]), *(head for head in shown if head not in constant or head in {"value", "bound"})]
    rows = [[_short(row.get(head)) for head in heads] for row in cells.rows]
    unit = f" in {next(iter(every['unit']))}" if "unit" in constant else ""
    titles = [f"{head}{unit}" if head in {"value", "bound"} else head for head in heads]
    return page_table(titles, rows, numbers=[column for column, head in enumerate(heads) if head in {"value", "bound", "gap"}], wide=True)


def _short(cell: Value) -> str:
    return "" if cell is None else f"{cell:.5g}" if isinstance(cell, float) else str(cell)


def _shared(cells: Cells) -> list[str]:
    """What every run has, so that no column tells it."""
    every = {head: {row.get(head) for row in cells.rows} for head in cells.heads}
    return [f"{head}: {_short(next(iter(found)))}" for head, found in every.items() if len(found) == 1 and found not in ({None}, {""})]


def _picture(listed: Listed, cells: Cells, axes: Sequence[str]) -> str:
    """The values along the first axis, where they are few and above zero."""
    if not listed.axes or not axes:
        return ""
    places = list(dict.fromkeys(str(row.get(axes[0])) for row in cells.rows))
    courses = dict[str, dict[str, float]]()
    for row in cells.rows:
        value = row.get("value")
        if isinstance(value, float | int) and value > 0.0:
            name = ", ".join(str(row.get(axis)) for axis in axes[1:] if row.get(axis)) or "value"
            courses.setdefault(name, {})[str(row.get(axes[0]))] = float(value)
    units = {str(row.get("unit")) for row in cells.rows if row.get("unit")}
    if not 0 < len(courses) <= _LINES or len(places) > _PLACES or len(units) > 1:
        return ""
    curves = [Line(name, tuple(found.get(value) for value in places), (False,) * len(places)) for name, found in courses.items()]
    values = [value for found in courses.values() for value in found.values()]
    aims = {str(row["objective"]) for row in cells.rows if row.get("objective")}
    upward = with_unit(next(iter(aims)).replace("_", " ") if len(aims) == 1 else "value", next(iter(units), ""))
    described = "; ".join(f"{line.label}: {', '.join(_short(value) or 'none' for value in line.values)}" for line in curves)
    titles = Titles("swept", f"{upward} along {text_html(axes[0])}", f"{described}.")
    return figure(lambda width: lines(titles.at(width), places, curves, (axes[0], upward), (min(values), max(values))))
