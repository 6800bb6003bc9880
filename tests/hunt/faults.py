"""What may happen to a process: it is told to end, killed, or cannot write. An answer that is there afterwards is whole and holds.

A tenth of the commands are new processes; the others are forked from one that has loaded everything, and so begin at once.
"""

import json
import os
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from shutil import which
from tempfile import TemporaryDirectory
from time import monotonic, sleep, time

from tests.hunt.held import FindingError
from tests.hunt.served import ENVIRONMENT, Command, Server
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
"""Seconds after which something hangs, at half of which a processor was free."""


REAL = 0.1
"""How many of the commands are new processes."""
LIMITED = (
    *("gpt3-175b-pathfinding-large", "small", "two-models-one-chip", "llama3-405b-1024xh100", "placement/gpt3-13b-on-8"),
    *("network/three-models-4096", "sharding/llama2-70b-on-8x8", "stages/gpt2-two-versions", "traces/two-weeks-of-work"),
)
"""Questions that are asked with a time limit."""


def ended(random: Random) -> Counter[str]:
    """A solve is ended at any moment, by any signal: no file, or a whole one that a check accepts."""
    name, sign = random.choice(QUESTIONS), random.choice((signal.SIGTERM, signal.SIGINT, signal.SIGKILL))
    with TemporaryDirectory() as folder:
        target = Path(folder) / "answer.json"
        running = _started(random, "solve", str(INSTANCES / f"{name}.yaml"), "--out", str(target), "--time-limit", "20 s")
        sleep(random.uniform(0.05, 4.0) if isinstance(running, New) else random.choice((0.03, 0.3, 2.0)) * random.random())
        running.send_signal(sign)
        said = _finished(running, f"{name} after {sign.name}")
        if "Traceback" in said:
            raise FindingError(f"{name} after {sign.name}: {said[-400:]}", {})
        _whole(random, target, f"{name} after {sign.name}")
    return Counter((sign.name,))


def unwritten(random: Random) -> Counter[str]:
    """A disk that is full, a folder that is read-only, or an output that nobody reads: a sentence, and nothing half-written."""
    name, fault = random.choice(QUESTIONS[1:3]), random.choice(("full disk", "full output", "closed output", "small disk", "read-only"))
    with TemporaryDirectory() as folder:
        target = Path(folder) / "answer.json"
        command = ("solve", str(INSTANCES / f"{name}.yaml"), "--out", "/dev/full" if fault == "full disk" else str(target))
        if fault == "read-only":
            Path(folder).chmod(0o555)
            running: New | Command = New(*command, bound=True)
        else:
            out = {"full output": "/dev/full", "closed output": "closed"}.get(fault)
            running = _started(random, *command, most=random.choice((0, 100, 2_000)) if fault == "small disk" else None, out=out)
        said = _finished(running, name)
        Path(folder).chmod(0o755)
        if "Traceback" in said or "internal error" in said:
            raise FindingError(f"{name}, {fault}: {said[-400:]}", {})
        if left := [path.name for path in Path(folder).iterdir() if path != target]:
            raise FindingError(f"{name}, {fault}: {left} is left behind", {})
        _whole(random, target, name)
    return Counter((fault,))


def written_twice(random: Random) -> Counter[str]:
    """Two of them write one file: it is one of both."""
    name = random.choice(QUESTIONS[1:3])
    with TemporaryDirectory() as folder:
        target = Path(folder) / "answer.json"
        both = [_started(random, "solve", str(INSTANCES / f"{name}.yaml"), "--out", str(target)) for _ in range(2)]
        for running in both:
            _finished(running, name)
        if not target.exists():
            raise FindingError(f"{name}: two wrote one file, and there is none", {})
        _whole(random, target, name)
    return Counter(("two writers",))


def limited(random: Random) -> Counter[str]:
    """A command with a time limit ends by then, and a second or a twentieth later; nothing is counted where the machine was too busy."""
    name, seconds = random.choice(LIMITED), random.choice((0.3, 0.6, 1.0, 1.5))
    _server()  # which takes seconds to start
    with TemporaryDirectory() as folder:
        target = Path(folder) / "answer.json"
        command = ("solve", str(INSTANCES / f"{name}.yaml"), "--out", str(target), "--time-limit", f"{seconds} s")
        began, waited = monotonic(), _stalled()
        said = _finished(_started(random, *command), name)
        took, waited = monotonic() - began, _stalled() - waited
        if "Traceback" in said or "internal error" in said:
            raise FindingError(f"{name} in {seconds} s: {said[-400:]}", {})
        late = took > seconds + max(1.0, 0.05 * seconds)
        if late and took - waited > seconds + max(1.0, 0.05 * seconds):
            raise FindingError(f"{name} in {seconds} s: it took {took:.2f} s, of which {waited:.2f} s something waited for a processor", {})
        _whole(random, target, f"{name} in {seconds} s")
    return Counter() if late else Counter(("time limit",))


def _stalled() -> float:
    """For how many seconds something has waited for a processor; 0 where the system does not say."""
    try:
        return int(Path("/proc/pressure/cpu").read_text(encoding="ascii").partition("total=")[2].split()[0]) / 1e6
    except (OSError, IndexError):
        return 0.0


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
HAPPENS = ("killed", "ended", "no room", "read-only", "two writers")
"""What happens to a sweep while it runs."""
SPOILED = ("clock", "cut off", "stale lease")
"""What happens to its files before."""


def swept(random: Random) -> Counter[str]:
    """Things happen to a sweep and its files; each time one sentence, and afterwards the same command ends it, and all holds."""
    with TemporaryDirectory() as name:
        folder, faults = Path(name), list[str]()
        (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
        command = ("sweep", str(folder / "study.yaml"), "--store", str(folder / "runs"), "--workers", random.choice("1112"))
        for _ in range(random.randint(2, 5)):
            faults += [fault for fault in SPOILED if random.random() < 0.5 and _spoils(fault, random, folder / "runs")]
            faults.append(random.choice(HAPPENS))
            for said in _happens(faults[-1], random, command, folder / "runs"):
                if "Traceback" in said or "internal error" in said or "standard output" in said:
                    raise FindingError(f"sweep, {faults}: {said[-400:]}", {})
        for words in (command, ("sweep", "check", str(folder / "runs"))):
            running = _started(random, *words)
            said = _finished(running, f"{words[1]} after {faults}")
            spoiled = "cut off" in faults and said.count("REFUSED") == " ".join(said.split()).count("this one may be deleted") > 0
            if running.returncode != 0 and not (spoiled and running.returncode == REFUSED):
                raise FindingError(f"sweep after {faults}: {words[1]} ends with {running.returncode}: {said[-400:]}", {})
        if left := [path.name for path in (folder / "runs").rglob("*") if path.name.startswith(".crossopt-") and "killed" not in faults]:
            raise FindingError(f"sweep after {faults}: {left} is left behind", {})
    return Counter(f"sweep: {fault}" for fault in faults)


def _spoils(fault: str, random: Random, store: Path) -> bool:
    """Whether there are files to which this happens."""
    files = [path for path in store.rglob("*") if path.is_file()] if store.exists() else []
    if not files:
        return False
    if fault == "clock":  # files of a clock that went ahead or back
        for path in files:
            moment = time() + random.uniform(-1e6, 1e6)
            os.utime(path, (moment, moment))
    elif fault == "cut off":
        path = random.choice(files)
        path.write_bytes(path.read_bytes()[: random.randrange(path.stat().st_size + 1)])
    else:
        key = random.choice([path.name.partition(".")[0] for path in files])
        (store / "running").mkdir(exist_ok=True)
        (store / "running" / f"{key}.json").write_bytes(random.choice([b"", b"{", b'{"host": "elsewhere", "pid": 1, "start": "?"}']))
        os.utime(store / "running" / f"{key}.json", (0, 0))
    return True


def _happens(fault: str, random: Random, command: tuple[str, ...], store: Path) -> Iterator[str]:
    """What a sweep says to which this happens."""
    if fault == "read-only" and store.exists():
        _mode(store, 0o555)
    limit = random.choice((20, 100, 500, 2_000, 8_000)) if fault == "no room" else None
    if fault == "read-only":
        running: list[New | Command] = [New(*command, bound=True)]
    else:
        running = [_started(random, *command, most=limit) for _ in range(2 if fault == "two writers" else 1)]
    if fault in {"killed", "ended"}:
        sleep(random.uniform(0.05, 3.0 if isinstance(running[0], New) else 1.0))
        running[0].send_signal(signal.SIGKILL if fault == "killed" else random.choice((signal.SIGTERM, signal.SIGINT)))
    for one in running:
        yield _finished(one, f"sweep, {fault}")
    if fault == "read-only" and store.exists():
        _mode(store, 0o755)


def _mode(store: Path, mode: int) -> None:
    for path in [store, *store.rglob("*")]:
        if path.is_dir():
            path.chmod(mode)


@dataclass(slots=True)
class New:
    """A command in a new process."""

    process: subprocess.Popen[str]

    def __init__(self, *words: str, most: int | None = None, out: str | None = None, bound: bool = False) -> None:
        command = [sys.executable, "-m", "crossopt", *words]
        if bound and os.geteuid() == 0 and (setpriv := which("setpriv")):  # permissions bind not even the superuser then
            command = [setpriv, "--bounding-set=-dac_override,-dac_read_search", *command]

        def limit() -> None:
            if most is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

        other = Path(out).open("w", encoding="utf-8") if out not in {None, "closed"} else subprocess.PIPE  # noqa: SIM115 - the process has it
        self.process = subprocess.Popen(
            command, stdout=other, stderr=subprocess.PIPE, text=True, env={**os.environ, **ENVIRONMENT}, preexec_fn=limit,  # noqa: PLW1509 - no other thread
        )  # fmt: skip
        if out == "closed" and self.process.stdout is not None:
            self.process.stdout.close()
            self.process.stdout = None

    @property
    def returncode(self) -> int | None:
        """The exit code, once it has ended."""
        return self.process.returncode

    def send_signal(self, number: int) -> None:
        """To this process."""
        self.process.send_signal(number)

    def finished(self, seconds: float) -> str | None:
        """What the command said; None where it has not ended by then."""
        try:
            said, complained = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
        return f"{said or ''}{complained or ''}"

    def kill(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.wait()


@cache
def _server() -> Server:
    return Server()


def _started(random: Random, *words: str, most: int | None = None, out: str | None = None) -> New | Command:
    """A command, whose files may have so many bytes, and whose output may be another one or closed."""
    return New(*words, most=most, out=out) if random.random() < REAL else _server().start(words, most, out)


def _finished(running: New | Command, name: str) -> str:
    """What a command said; seconds in which something waited for a processor do not count."""
    began, waited = monotonic(), _stalled()
    while (said := running.finished(LONG)) is None:
        if monotonic() - began - (_stalled() - waited) > LONG / 2.0:
            running.kill()
            raise FindingError(f"{name}: it has not ended after {monotonic() - began:.0f} s", {})
    return said


def _whole(random: Random, target: Path, name: str) -> None:
    """A file that is there is a result that a check accepts."""
    if not target.exists():
        return
    try:
        data = json.loads(target.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FindingError(f"{name}: a file is half-written: {error}", {}) from None
    report = _started(random, "check", str(target))
    said = _finished(report, f"check of {name}")
    if report.returncode != 0:
        raise FindingError(f"{name}: what was written is refused: {said[-400:]}", data)


FAULTS: dict[str, Callable[[Random], Counter[str]]] = {
    "ended": ended,
    "unwritten": unwritten,
    "written twice": written_twice,
    "limited": limited,
    "swept": swept,
}
