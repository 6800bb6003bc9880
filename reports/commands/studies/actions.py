"""What else is done about a sweep: how far it is, as a table, checked, and as a database; and a script that answers it in parts."""

import errno
import sqlite3
import sys
from argparse import Namespace
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any, Final

from crossopt.instances.files.saved import file_name, naming, write_whole
from crossopt.instances.kinds import question_path
from crossopt.instances.studies.study import MOST_SWEPT, read_study
from crossopt.reports.commands.console import check_target, usage
from crossopt.reports.commands.exit_codes import ANSWERED
from crossopt.reports.commands.progress import notes_on
from crossopt.reports.commands.studies.answering import code_of_sweep, failures_text, remedies_text, tally_text
from crossopt.reports.render.swept import MOST, swept_page
from crossopt.reports.render.width import fitted
from crossopt.reports.tables.runs import Cells, cells_of, csv_of, markdown_of, write_parquet
from crossopt.solvers.answer import result_in
from crossopt.solvers.checking import check as report_of
from crossopt.solvers.family import family_of
from crossopt.solvers.sweeps.asking import strange_names
from crossopt.solvers.sweeps.leases import leased_runs
from crossopt.solvers.sweeps.listed import Listed, listed_faults, name_faults
from crossopt.solvers.sweeps.standing import standings, tally
from crossopt.solvers.sweeps.store import STUDY, all_kept, listing, result_of

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
    found = tally(keys, now)
    lines = [f"{folder}: {listed.title}", *tally_text(len(listed.points), found)]
    lines += [f"  {len(alive):,} being answered now"] if alive else []
    lines += [f"  {len(over):,} were being answered when their process ended"] if over else []
    lines += [*_strangers(folder, listed), *failures_text(listed, keys, now), *remedies_text(folder, found)]
    sys.stdout.write(fitted("\n".join(lines) + "\n"))
    return code_of_sweep(found)


def _strangers(folder: Path, listed: Listed) -> list[str]:
    """Results that belong to nothing that is asked."""
    known, kept = {row.key for row in listed.rows}, all_kept(folder)
    others = sum(len(paths) for key, paths in kept.items() if key and key not in known)
    lines = [f"  not used  {path.parent.name}/{path.name}: its name is none of a result" for path in kept.get("", ())]
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
        write_whole(options.out, text)
    for fault in cells.faults:
        sys.stderr.write(f"not used  {fault}\n")
    return ANSWERED


def _page(folder: Path, listed: Listed, cells: Cells) -> str:
    return swept_page(listed, cells, tally([row.key for row in listed.rows], standings(folder, listed)))


def _chosen(cells: Cells, names: str) -> Cells:
    wanted = [name.strip() for name in names.split(",")]
    if strange := [name for name in wanted if name not in cells.heads]:
        usage(f"--columns: there is no column {strange[0]!r} (one of {', '.join(cells.heads)})")
    return Cells(tuple(wanted), cells.rows, cells.faults)


def check(options: Namespace, folder: Path) -> int:
    """Every result, or some, said again from its question alone; exit code 30 where one does not hold."""
    listed, kept = listing(folder), all_kept(folder)
    rows = {row.key: row for row in listed.rows if row.key in kept}
    keys = _evenly(list(rows), options.sample) if options.sample else list(rows)
    told, faults, refused, asked = 0, _strangers(folder, listed), list[str](), dict[int, dict[str, Any]]()
    with notes_on(sys.stderr) as note:
        for number, key in enumerate(keys):
            note(f"{number:,} of {len(keys):,} checked")
            point = listed.points[rows[key].question]
            found, family = result_of(kept[key], rows[key], point), family_of(point.kind)
            refused += found.faults
            if found.data is not None and found.path is not None:
                report = report_of(family, result_in(found.data, family.answer, family.details), found.path.parent)
                told += report.told
                asked[rows[key].question] = found.data["question"]
                refused += [f"{found.path.parent.name}/{found.path.name}: {fault}" for fault in report.refused]
    points = [replace(one, document=asked.get(place)) for place, one in enumerate(listed.points)]
    refused += [f"{STUDY}: {fault}" for fault in name_faults(listed.axes, points)]
    refused += [f"{STUDY}: {fault}" for fault in listed_faults(listed)]
    beside = f", {told:,} of them but for a bound that is told and not proved anew" if told else ""
    lines = [f"  {len(keys):,} of {len(rows):,} results checked{beside}", *faults, *(f"  REFUSED  {fault}" for fault in refused)]
    sys.stdout.write(fitted("\n".join([*lines, f"{folder}: {'refused' if refused else 'accepted'}"]) + "\n"))
    return REFUSED if refused else ANSWERED


def _evenly(keys: list[str], count: int) -> list[str]:
    """So many of them, chosen evenly from their order."""
    ordered = sorted(keys)
    return ordered if count >= len(ordered) else [ordered[place * len(ordered) // count] for place in range(count)]


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
        usage("--store: say where the answers are to be kept, a folder that all machines of the cluster see (`--store /shared/runs`)")
    check_target(options.out)
    study, shards = read_study(question_path(path), strange_names, MOST_SWEPT), options.shards or _SHARDS
    given = (("--time-limit", options.time_limit), ("--memory", options.memory), ("--retry", ",".join(options.retry or ()) or None))
    settings = tuple(("--set", one) for one in options.settings)
    more = "".join(f" {flag} {quote(value)}" for flag, value in (*given, *settings) if value is not None)
    name = path if path == question_path(path) else path.name  # one that comes along has its name on all machines
    told = {
        "title": " ".join(study.file.title.split()),
        "name": file_name(study.file.title).replace(" ", "-"),
        "study": quote(str(question_path(path).resolve())) if name == path else quote(str(name)),
        "store": quote(str(options.store.absolute())),
        "workers": options.workers or 1,
        "shards": shards,
        "last": shards - 1,
        "more": more,
    }
    text = _SCRIPT.format(**told)
    if options.out is None or str(options.out) == "-":
        sys.stdout.write(text)
    else:
        write_whole(options.out, text)
    return ANSWERED
