"""A sweep of 2,000 questions that is killed twenty times: `python -m tests.benchmarks.kills [KILLS [BATCHES]]` prints what was lost.

A question is `tiny` with one of twenty batches (or of BATCHES), ten numbers of devices and ten reserves of memory. The process that
orders is ended by SIGKILL at moments drawn at random, each time after some more answers, and started again; then the same study is
answered without any kill, and by four shards that share a folder. All tables must be equal byte by byte, and `sweep check` must accept
some of the results.
"""

import json
import subprocess
import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic, sleep

from tests.paths import ROOT

KILLS, BATCHES, SHARDS = 20, 20, 4
DEVICES = (8, 16, 24, 32, 40, 48, 56, 64, 72, 80)
MEMORIES = tuple(f"{size} GiB" for size in range(10))


def study(batches: int) -> str:
    """The study's text."""
    axes = {
        "workload.global_batch": [5040 * number for number in range(1, batches + 1)],
        "cluster.devices": DEVICES,
        "cluster.reserved_memory": MEMORIES,
    }
    lines = [f"  - {{setting: {key}, values: [{', '.join(map(str, values))}]}}" for key, values in axes.items()]
    return "\n".join(["kind: study", "title: Many questions", "instances: [tiny]", "engines: [auto]", "sweep:", *lines, ""])


def command(*words: str) -> list[str]:
    """The command line `crossopt sweep`, of this source tree."""
    return [sys.executable, "-m", "crossopt.reports.cli", "sweep", *words]


def answers(store: Path) -> list[Path]:
    """The files that are there."""
    return list((store / "results").glob("*/*.json"))


def killed(path: Path, store: Path, kills: int, count: int) -> tuple[int, int]:
    """Kill the sweep so often; how many answers there were after the last kill, and how many files were cut off."""
    random, cut = Random(1), 0
    for number in range(kills):
        process = subprocess.Popen(
            command(str(path), "--store", str(store), "--workers", "2"),
            cwd=ROOT.parent,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wanted = min(len(answers(store)) + random.randint(1, 2 * count // kills), count - 2)
        while len(answers(store)) < wanted and process.poll() is None:
            sleep(0.01)
        sleep(random.random() * 0.05)
        process.kill()
        process.wait()
        sleep(0.1)  # for those that it ordered, which end with it
        cut += sum(not whole(one) for one in answers(store))
        sys.stdout.write(f"  kill {number + 1}: {len(answers(store)):,} answers\n")
        sys.stdout.flush()
    return len(answers(store)), cut


def whole(path: Path) -> bool:
    """Whether a file is a whole one."""
    try:
        return "status" in json.loads(path.read_bytes())
    except ValueError:
        return False


def table(store: Path) -> bytes:
    """The table of a sweep."""
    return subprocess.run(command("table", str(store)), cwd=ROOT.parent, capture_output=True, check=True).stdout


def answered(path: Path, store: Path, *more: str) -> int:
    """The exit code of a sweep that nobody kills."""
    return subprocess.run(command(str(path), "--store", str(store), "--workers", "2", *more), cwd=ROOT.parent, check=False).returncode


def main() -> None:
    """Kill, resume, answer without a kill and in shards, and compare."""
    kills, batches = (int(word) for word in (*sys.argv[1:], *map(str, (KILLS, BATCHES)[len(sys.argv) - 1 :])))
    count = batches * len(DEVICES) * len(MEMORIES)
    with TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "study.yaml"
        path.write_text(study(batches), encoding="utf-8")
        there, cut = killed(path, folder / "killed", kills, count)
        began = monotonic()
        codes = [answered(path, folder / store) for store in ("killed", "whole")]
        codes += [answered(path, folder / "shards", "--shard", f"{number}/{SHARDS}") for number in range(SHARDS)]
        seconds, again = monotonic() - began, monotonic()
        subprocess.run(command(str(path), "--store", str(folder / "whole")), cwd=ROOT.parent, check=False)
        again = monotonic() - again
        tables = [table(folder / store) for store in ("killed", "whole", "shards")]
        left, told = len(list((folder / "killed/running").iterdir())), "equal" if len(set(tables)) == 1 else "DIFFERENT"
        sys.stdout.write(
            f"{count:,} questions, {kills} kills: {there:,} answers before the last resumption, {cut} files cut off, exit codes {codes}\n"
            f"  {len(answers(folder / 'killed')) - count:,} answered twice, {left} leases left, "
            f"{tables[0].count(b'NOT ASKED')} not asked\n"
            f"  tables of the killed one, of one without kills and of {SHARDS} shards {told} ({len(tables[0]):,} bytes)\n"
            f"  the rest, the whole and the shards in {seconds:.0f} s; a finished one again in {again:.1f} s\n"
        )
        subprocess.run(command("check", str(folder / "killed"), "--sample", "50"), cwd=ROOT.parent, check=False)


if __name__ == "__main__":
    main()
