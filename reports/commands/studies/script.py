"""A script for a batch system that answers a sweep in equal parts, each a job of its own; the parts share a folder and nothing else."""

import sys
from argparse import Namespace
from pathlib import Path
from shlex import quote
from typing import Final

from crossopt.instances.files.saved import file_name, write_whole
from crossopt.instances.kinds import question_path
from crossopt.instances.studies.study import MOST_SWEPT, read_study
from crossopt.reports.commands.console import check_target, usage
from crossopt.reports.commands.families import ANSWERED
from crossopt.solvers.sweeps.asking import strange_names

SHARDS: Final = 10
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


def script(options: Namespace, path: Path) -> int:
    """Print it."""
    if not options.slurm:
        usage("sweep script: say for which batch system (`--slurm`)")
    if options.store is None:
        usage("--store: say where the answers are to be kept, a folder that all machines of the cluster see (`--store /shared/runs`)")
    check_target(options.out)
    study, shards = read_study(question_path(path), strange_names, MOST_SWEPT), options.shards or SHARDS
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
