"""What may happen to a process: it is told to end, killed, or cannot write. An answer that is there afterwards is whole and holds."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import sleep

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


def _started(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "crossopt.reports.cli", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "80"})


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


FAULTS: dict[str, Callable[[Random], int]] = {"ended": ended, "unwritten": unwritten, "written twice": written_twice}
