"""Arguments of `sweep`."""

import argparse
from pathlib import Path
from typing import Final

ACTIONS: Final = ("status", "table", "check", "index", "script")
"""What else may be done about a sweep."""
FORMS: Final = ("csv", "markdown", "parquet", "html")
RETRIED: Final = ("failed", "limit")
OF_RUNS: Final = ("settings", "dask", "store", "workers", "shard", "retry", "dry_run", "time_limit", "memory")
OF_ACTIONS: Final = {
    "status": (),
    "table": ("form", "columns", "seconds", "out"),
    "check": ("sample",),
    "index": (),
    "script": ("settings", "store", "workers", "retry", "time_limit", "memory", "slurm", "shards", "out"),
}
"""The options that say something to each of them."""

_CODES = """exit codes: 0 all answered, also where the answer is that there is none · 1 some failed · 2 usage · 3 invalid file ·
11 some are answered without a proof · 12 ended early · 30 of check: a result does not hold"""
_WORDS = (
    "a study, to answer what of it is not answered yet; or status, table, check or index and the folder of a sweep; or script and a study"
)


def add_sweep(parser: argparse.ArgumentParser) -> None:
    """Arguments of `sweep`."""
    parser.epilog, parser.formatter_class = _CODES, argparse.RawDescriptionHelpFormatter
    parser.add_argument("words", nargs="+", metavar="FILE", help=_WORDS)
    parser.add_argument("--store", type=Path, metavar="DIR", help="where answers are kept, one file each; what is there is not asked again")
    parser.add_argument("--workers", type=_count, metavar="N", help="processes that answer, each with one thread (default: one a core)")
    parser.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="of every question, as for `solve`"
    )
    parser.add_argument("--shard", type=_shard, metavar="I/N", help="only the I-th of N equal parts, counted from 0, such as 3/40")
    retry = "also ask again what failed, or what was stopped by its time limit without a proof: failed, limit, or both with a comma"
    parser.add_argument("--retry", type=_retried, metavar="WHAT", help=retry)
    parser.add_argument("--dry-run", action="store_true", help="read all questions and say how much is to be asked, and ask nothing")
    parser.add_argument("--time-limit", metavar="TIME", help="for each run, for example 60s (default: as the study says)")
    parser.add_argument("--memory", metavar="SIZE", help="of each process, such as 4GiB; a run that needs more fails, and the others go on")
    dask = "answer on a cluster of Dask, by the address of its scheduler, or on one of this machine alone: local"
    parser.add_argument("--dask", metavar="ADDRESS", help=dask)
    of_table = parser.add_argument_group("table")
    of_table.add_argument(
        "--as", dest="form", choices=FORMS, help="comma-separated values (default), Markdown, Parquet by pyarrow, or a page"
    )
    of_table.add_argument("--columns", metavar="NAMES", help="only these, with commas between")
    of_table.add_argument("--seconds", action="store_true", help="with the seconds that each run took, which differ from time to time")
    of_table.add_argument("--out", type=Path, metavar="FILE", help="of tables and scripts: into this file (default: standard output)")
    of_check = parser.add_argument_group("check")
    of_check.add_argument("--sample", type=_count, metavar="N", help="check N results, evenly chosen, instead of all")
    of_script = parser.add_argument_group("script")
    of_script.add_argument("--slurm", action="store_true", help="for sbatch: an array of jobs, one for each part")
    of_script.add_argument("--shards", type=_count, metavar="N", help="how many parts (default: 10)")
    parser.set_defaults(command="sweep")


def _count(text: str) -> int:
    if not text.isdecimal() or len(text) > 6 or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no count (write a whole number from 1 on)")
    return int(text)


def _shard(text: str) -> tuple[int, int]:
    first, slash, second = text.partition("/")
    if not slash or not (first.isdecimal() and second.isdecimal()) or len(text) > 12 or int(first) >= int(second):
        raise argparse.ArgumentTypeError(f"{text!r} is no shard (write I/N with I from 0 to N-1, such as 0/4)")
    return int(first), int(second)


def _retried(text: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(","))
    if strange := [word for word in words if word not in RETRIED]:
        raise argparse.ArgumentTypeError(f"{strange[0]!r} is nothing to ask again (one of {', '.join(RETRIED)})")
    return words
