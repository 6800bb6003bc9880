"""What may happen to a process: it is told to end, killed, or cannot write. An answer that is there afterwards is whole and holds."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import sleep, time

from tests.hunt.held import FindingError
from tests.paths import INSTANCES

QUESTIONS = (
    "quickstart",
    "tiny",
    "small",
    "placement/gpt3-13b-on-8",
    "sharding/gpt3-13b-on-4x8",
    "gpt3-175b-1024xa100",
    "two-models-one-chip",
)
LONG = 120.0
"""Seconds after which something hangs."""


def ended(random: Random) -> int:
    """A solve is ended at any moment, by any signal: no file, or a whole one that a check accepts."""
    name, sign = random.choice(QUESTIONS), random.choice((signal.SIGTERM, signal.SIGINT, signal.SIGKILL))
    with TemporaryDirectory() as folder:
        target = Path(folder) / "answer.json"
        running = _started("solve", str(INSTANCES / f"{name}.yaml"), "--out", str(target), "--time-limit", "20 s")
        sleep(random.uniform(0.05, 4.0))
        running.send_signal(sign)
        said = _finished(running, f"{name} after {sign.name}")
        if "Traceback" in said:
            raise FindingError(f"{name} after {sign.name}: {said[-400:]}", {})
        _whole(target, f"{name} after {sign.name}")
    return 1


def unwritten(random: Random) -> int:
    """A disk that is full, or an output that nobody reads: a sentence, and nothing half-written."""
    name = random.choice(QUESTIONS[:3])
    with TemporaryDirectory() as folder:
        target = Path(folder) / "answer.json"
        if random.random() < 0.5:
            running = _started("solve", str(INSTANCES / f"{name}.yaml"), "--out", "/dev/full")
        else:
            running = _started("solve", str(INSTANCES / f"{name}.yaml"), "--out", str(target))
            assert running.stdout is not None
            running.stdout.close()
            running.stdout = None
        said = _finished(running, name)
        if "Traceback" in said:
            raise FindingError(f"{name} on a full disk or a closed output: {said[-400:]}", {})
        _whole(target, name)
    return 1


def written_twice(random: Random) -> int:
    """Two of them write one file: it is one of both."""
    name = random.choice(QUESTIONS[:3])
    with TemporaryDirectory() as folder:
        target = Path(folder) / "answer.json"
        both = [_started("solve", str(INSTANCES / f"{name}.yaml"), "--out", str(target)) for _ in range(2)]
        for running in both:
            _finished(running, name)
        if not target.exists():
            raise FindingError(f"{name}: two wrote one file, and there is none", {})
        _whole(target, name)
    return 2


STUDY = """\
kind: study
title: Faults
instances: [tiny]
sweep:
  - {setting: cluster.devices, values: [8, 16, 32]}
  - {setting: workload.global_batch, values: [32, 64, 96]}
engines: [expert]
"""
REFUSED = 30
"""The exit code of a check that refuses."""
HAPPENS = ("killed", "ended", "no room", "read-only", "two writers", "clock", "cut off", "stale lease")


def swept(random: Random) -> int:
    """Something happens to a sweep, up to three times; each time one sentence, and afterwards the same command ends it, and all holds."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
        command = ("sweep", str(folder / "study.yaml"), "--store", str(folder / "runs"), "--workers", "2")
        faults = [random.choice(HAPPENS) for _ in range(random.randint(1, 3))]
        for fault in faults:
            for said in _happens(fault, random, command, folder / "runs"):
                if "Traceback" in said or "internal error" in said or "standard output" in said:
                    raise FindingError(f"sweep, {fault} of {faults}: {said[-400:]}", {})
        for words in (command, ("sweep", "check", str(folder / "runs"))):
            running = _started(*words)
            said = _finished(running, f"{words[1]} after {faults}")
            spoiled = "cut off" in faults and said.count("REFUSED") == " ".join(said.split()).count("this one may be deleted") > 0
            if running.returncode != 0 and not (spoiled and running.returncode == REFUSED):
                raise FindingError(f"sweep after {faults}: {words[1]} ends with {running.returncode}: {said[-400:]}", {})
        if left := [path.name for path in (folder / "runs").rglob("*") if path.name.startswith(".crossopt-") and "killed" not in faults]:
            raise FindingError(f"sweep after {faults}: {left} is left behind", {})
    return len(faults)


def _happens(fault: str, random: Random, command: tuple[str, ...], store: Path) -> Iterator[str]:
    """What a sweep says to which this happens."""
    files = [path for path in store.rglob("*") if path.is_file()] if store.exists() else []
    if fault == "clock":  # files of a clock that went ahead or back
        for path in files:
            moment = time() + random.uniform(-1e6, 1e6)
            os.utime(path, (moment, moment))
    elif fault == "cut off" and files:
        path = random.choice(files)
        path.write_bytes(path.read_bytes()[: random.randrange(path.stat().st_size + 1)])
    elif fault == "stale lease" and files:
        key = random.choice([path.name.partition(".")[0] for path in files])
        (store / "running").mkdir(exist_ok=True)
        (store / "running" / f"{key}.json").write_bytes(random.choice([b"", b"{", b'{"host": "elsewhere", "pid": 1, "start": "?"}']))
        os.utime(store / "running" / f"{key}.json", (0, 0))
    elif fault == "read-only" and store.exists():
        _mode(store, 0o555)
    limit = random.choice((20, 100, 500, 2_000, 8_000)) if fault == "no room" else None
    running = [_started(*command, most=limit) for _ in range(2 if fault == "two writers" else 1)]
    if fault in {"killed", "ended"}:
        sleep(random.uniform(0.05, 3.0))
        running[0].send_signal(signal.SIGKILL if fault == "killed" else random.choice((signal.SIGTERM, signal.SIGINT)))
    for one in running:
        yield _finished(one, f"sweep, {fault}")
    if fault == "read-only" and store.exists():
        _mode(store, 0o755)


def _mode(store: Path, mode: int) -> None:
    for path in [store, *store.rglob("*")]:
        if path.is_dir():
            path.chmod(mode)


def _started(*words: str, most: int | None = None) -> subprocess.Popen[str]:
    """A command, whose files may have so many bytes."""
    command = [sys.executable, "-m", "crossopt.reports.cli", *words]
    said = {**os.environ, "COLUMNS": "80", "PYTHONDONTWRITEBYTECODE": "1"}
    limit = None if most is None else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=said, preexec_fn=limit)  # noqa: PLW1509 - no other thread


def _finished(running: subprocess.Popen[str], name: str) -> str:
    try:
        said, complained = running.communicate(timeout=LONG)
    except subprocess.TimeoutExpired:
        running.kill()
        raise FindingError(f"{name}: it has not ended after {LONG:.0f} s", {}) from None
    return f"{said or ''}{complained or ''}"


def _whole(target: Path, name: str) -> None:
    """A file that is there is a result that a check accepts."""
    if not target.exists():
        return
    try:
        data = json.loads(target.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FindingError(f"{name}: a file is half-written: {error}", {}) from None
    report = _started("check", str(target))
    said = _finished(report, f"check of {name}")
    if report.returncode != 0:
        raise FindingError(f"{name}: what was written is refused: {said[-400:]}", data)


FAULTS: dict[str, Callable[[Random], int]] = {"ended": ended, "unwritten": unwritten, "written twice": written_twice, "swept": swept}
