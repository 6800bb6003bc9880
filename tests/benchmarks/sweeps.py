"""What sweeps cost: `python -m tests.benchmarks.sweeps [PART ...]` prints, each beside what it is compared with in the same run,

    first     the first answer of sweeps of 4, 500 and 2,000 questions, and of `solve`: medians of seven rounds
    many      200 `tiny` by a sweep of two processes, and by `solve` commands one after another
    overhead  CPU of a sweep a question, and of the same work in one process
    workers   a sweep whose processes are killed while they answer, and one in peace
    shared    two sweeps in one folder at once, and one alone
    dask      the same questions by a cluster of Dask of this machine, where it is installed

Seconds are those that a user waits, but for CPU; where other work is done meanwhile only ratios mean something. What kills of the process
that orders cost, and shards, is in `.kills`.
"""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic, sleep

from tests.benchmarks.kills import answers, command, study, table
from tests.paths import INSTANCES, ROOT

ROUNDS = 7
SOLVE = (sys.executable, "-m", "crossopt.reports.cli", "solve", "tiny")
FOUR = """\
kind: study
title: Four
instances: [tiny]
engines: [auto]
sweep:
  - {setting: cluster.devices, values: [8, 16]}
  - {setting: workload.global_batch, values: [64, 128]}
"""
PLAIN = f"""
import sys
from pathlib import Path
from crossopt.instances.question import read
from crossopt.instances.studies.study import points_of, read_study
from crossopt.solvers.answer import Limits, to_text, unwatched
from crossopt.solvers.checking import solve_and_verify
from crossopt.solvers.family import family_of
for point in points_of(read_study(Path(sys.argv[1]))):
    question = read({str(INSTANCES / "tiny.yaml")!r}, tuple(setting.text for setting in point.settings))
    to_text(solve_and_verify(family_of("codesign"), question, "auto", Limits(), unwatched))
"""
"""The work itself: each question of a study read, answered and held, and its answer made a text."""


def written(folder: Path, count: int) -> Path:
    """A study of so many questions."""
    path = folder / f"study-{count}.yaml"
    path.write_text(FOUR if count == 4 else study(count // 100), encoding="utf-8")
    return path


def begun(path: Path, store: Path, *more: str) -> "subprocess.Popen[bytes]":
    """A sweep of two processes that is not waited for."""
    words = command(str(path), "--store", str(store), "--workers", "2", *more)
    return subprocess.Popen(words, cwd=ROOT.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def ran(words: Sequence[str]) -> tuple[float, float]:
    """The seconds and the CPU seconds of a command with all that it starts."""
    began, before = monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, cwd=ROOT.parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return monotonic() - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def swept(path: Path, store: Path, workers: int = 2, *more: str) -> tuple[float, float]:
    """The same of a sweep."""
    return ran(command(str(path), "--store", str(store), "--workers", str(workers), *more))


def first_answer(path: Path) -> float:
    """The seconds until a sweep has its first answer on the disk."""
    with TemporaryDirectory() as name:
        began, process = monotonic(), begun(path, Path(name) / "runs")
        while not answers(Path(name) / "runs"):
            sleep(0.002)
        seconds = monotonic() - began
        process.kill()
        process.wait()
        sleep(0.2)  # for those that it ordered, which end with it
        return seconds


def first(folder: Path) -> Iterator[str]:
    """The first answer."""
    paths = [written(folder, count) for count in (4, 500, 2000)]
    rounds = [(ran(SOLVE)[0], *map(first_answer, paths)) for _ in range(ROUNDS)]
    alone, *others = (median(column) for column in zip(*rounds, strict=True))
    yield f"`solve tiny` {alone:.2f} s"
    for path, seconds in zip(paths, others, strict=True):
        yield f"first answer of {path.stem.partition('-')[2]} {seconds:.2f} s, {seconds / alone:.2f} times `solve`"


def many(folder: Path) -> Iterator[str]:
    """Two hundred questions."""
    commands = [ran(SOLVE)[0] for _ in range(100)]
    together = swept(written(folder, 200), folder / "many")[0]
    commands += [ran(SOLVE)[0] for _ in range(100)]
    yield f"200 by a sweep {together:.1f} s, by 200 `solve` commands {sum(commands):.1f} s, {sum(commands) / together:.1f} times as long"


def overhead(folder: Path) -> Iterator[str]:
    """What is spent beside the work, without what the start takes: the difference of 500 questions and of 100, a question."""
    few, more = written(folder, 100), written(folder, 500)
    sweep = [swept(path, folder / f"overhead-{path.stem}", 1)[1] for path in (few, more)]
    plain = [ran((sys.executable, "-c", PLAIN, str(path)))[1] for path in (few, more)]
    each = [(last - begin) / 400 * 1e3 for begin, last in (sweep, plain)]
    yield f"CPU a question {each[0]:.1f} ms by a sweep, {each[1]:.1f} ms by the work alone: {each[0] - each[1]:.1f} ms beside it"


def children(pid: int) -> list[int]:
    """The processes that one has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(path.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[1]) == pid:
                found.append(int(path.parent.name))
    return found


def works(pid: int) -> bool:
    """Whether it answers questions: other processes that Python starts only keep count of what is shared."""
    with suppress(OSError):
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def workers(folder: Path) -> Iterator[str]:
    """Kill those that answer, ten times."""
    random, path, store = Random(1), written(folder, 200), folder / "workers"
    swept(path, folder / "peace")
    process, kills = begun(path, store), 0
    for number in range(10):
        while len(answers(store)) < 15 * (number + 1) and process.poll() is None:
            sleep(0.01)
        if victims := [pid for pid in children(process.pid) if works(pid)]:
            with suppress(ProcessLookupError):
                os.kill(random.choice(victims), signal.SIGKILL)
                kills += 1
    code, failed = process.wait(), len(list((store / "failed").iterdir()))
    twice, told = len(answers(store)) - 200, alike(store, folder / "peace")
    yield f"{kills} processes killed over 200 questions: exit code {code}, {failed} put aside, {twice} answered twice, tables {told}"


def shared(folder: Path) -> Iterator[str]:
    """Two at once."""
    path = written(folder, 200)
    if not (folder / "peace").exists():
        swept(path, folder / "peace")
    both = [begun(path, folder / "both") for _ in range(2)]
    codes = [process.wait() for process in both]
    twice, told = len(answers(folder / "both")) - 200, alike(folder / "both", folder / "peace")
    yield f"two sweeps at once over 200 questions: exit codes {codes}, {twice} answered twice, tables {told}"


def dask(folder: Path) -> Iterator[str]:
    """A cluster."""
    if find_spec("distributed") is None:
        yield "no Dask here (`pip install 'crossopt[dask]'`)"
        return
    path = written(folder, 200)
    if not (folder / "peace").exists():
        swept(path, folder / "peace")
    seconds = swept(path, folder / "dask", 2, "--dask", "local")[0]
    yield f"200 questions by a cluster of Dask in {seconds:.1f} s, tables {alike(folder / 'dask', folder / 'peace')}"


def alike(store: Path, other: Path) -> str:
    """Whether their tables have the same bytes."""
    return "equal" if table(store) == table(other) else "DIFFERENT"


PARTS: dict[str, Callable[[Path], Iterator[str]]] = {
    "first": first,
    "many": many,
    "overhead": overhead,
    "workers": workers,
    "shared": shared,
    "dask": dask,
}


def main() -> None:
    """Print what is asked for, or all."""
    with TemporaryDirectory() as name:
        for part in sys.argv[1:] or PARTS:
            for line in PARTS[part](Path(name)):
                sys.stdout.write(f"{part:<9} {line}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
