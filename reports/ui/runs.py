"""Jobs and results of the page: searches and checks in child processes, and results with their pages.

A search is the command `crossopt solve`, so that time limits, Ctrl-C and crashes keep the best answer as they do in a terminal. Its log is
read as it grows. A check is that of `crossopt check`. Children end with the server, however that ends.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any, Final, Literal

from crossopt.instances.errors import InstanceError, RefusedError, VerificationError
from crossopt.instances.files.saved import file_name, kind_of, write_atomically
from crossopt.instances.files.units import parse_quantity
from crossopt.instances.kinds import is_graph_text
from crossopt.reports.commands.report import MOST, page_of_pictures, picture_in
from crossopt.reports.render.together import Drawn, as_proved, as_reported
from crossopt.reports.ui.question import Opened
from crossopt.solvers.family import family_of, unit_of
from crossopt.solvers.processes import Process, ending_of

_TICK: Final = 0.1
"""Seconds between two polls of a log."""
_QUIET: Final = 15.0
"""Seconds without events after which a comment line keeps the connection open."""
_SAID: Final = 20_000
"""Most characters of a command's output that are shown."""
_AT_ONCE: Final = 2
"""Most concurrent processes."""


@dataclass(slots=True)
class Job:
    """A command in a child process, and the files that it writes."""

    number: int
    what: Literal["solve", "check"]
    name: str
    unit: str
    folder: Path
    process: Process | None = None
    began: float = field(default_factory=monotonic)
    took: float = 0.0
    """Seconds until it ended; 0 while it runs."""
    about: int = 0
    """The result that is checked."""

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        return None if self.process is None else self.process.code

    def end(self) -> None:
        """End it, and close its pipes."""
        if self.process is not None:
            self.process.kill()

    @property
    def log(self) -> Path:
        return self.folder / f"{self.number}.log"

    @property
    def out(self) -> Path:
        return self.folder / f"{self.number}.out.json"

    @property
    def printed(self) -> Path:
        return self.folder / f"{self.number}.txt"

    def said(self) -> str:
        """The output of the command."""
        try:
            return self.printed.read_text(encoding="utf-8", errors="replace")[-_SAID:]
        except OSError:
            return ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `crossopt check` says of a result."""

    mood: Literal["accepted", "unverified", "refused"]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Saved:
    """A result of a search or of an uploaded file."""

    number: int
    name: str
    path: Path
    drawn: Drawn
    own: bool
    """Whether this server found it; false for an uploaded file."""
    verdict: Verdict | None = None

    @property
    def row(self) -> dict[str, Any]:
        """A row of the table on the page."""
        digest = self.shown().digest
        digests = {"value": digest.value_words, "bound": digest.bound_words, "gap": digest.gap_words, "verdict": digest.verdict}
        check = None if self.verdict is None else {"mood": self.verdict.mood, "lines": self.verdict.lines}
        return {"number": self.number, "name": self.name, "asks": digest.asks, "design": digest.design, **digests, "check": check}

    def shown(self) -> Drawn:
        """The drawn result; the proof of an uploaded file counts only after a check."""
        if self.verdict is not None and self.verdict.mood == "accepted":
            return as_proved(self.drawn)
        return self.drawn if self.own and self.verdict is None else as_reported(self.drawn)


@dataclass(slots=True)
class Desk:
    """All jobs and results of one page, in a folder that goes with the server."""

    folder: Path
    jobs: dict[int, Job] = field(default_factory=dict)
    results: dict[int, Saved] = field(default_factory=dict)
    last: int = 0
    lock: Lock = field(default_factory=Lock)

    def _next(self) -> int:
        with self.lock:
            self.last += 1
            return self.last

    def solve(self, found: Opened, name: str, engine: str, limit: str) -> Job:
        """Start a search; a RefusedError for an invalid request."""
        family = family_of(found.kind)
        if engine not in family.engines:
            raise RefusedError(f"the engine {engine!r} is unknown (one of {', '.join(family.engines)})")
        try:
            seconds = parse_quantity(limit, "time")
        except ValueError as error:
            raise RefusedError(f"time limit: {error}") from error
        number = self._next()
        path = _written(found, self.folder / f"{number}-question" / found.folder.name, f"{file_name(name)}.yaml")
        arguments = ["solve", str(path), f"--engine={engine}", f"--time-limit={seconds!r}s", "--verbose"]
        arguments += [f"--out={self.folder / f'{number}.out.json'}", f"--log={self.folder / f'{number}.log'}"]
        label = name if engine == next(iter(family.engines)) else f"{name}, {engine}"
        return self._start(Job(number, "solve", label, unit_of(family, found.question), self.folder), "run_command", arguments)

    def check(self, number: int) -> Job:
        """Start a check of a result."""
        saved = self.results.get(number)
        if saved is None:
            raise RefusedError("there is no such result")
        job = Job(self._next(), "check", saved.name, "", self.folder, about=saved.number)
        return self._start(job, "run_check", str(saved.path), str(job.out))

    def _start(self, job: Job, function: str, *arguments: object) -> Job:
        if sum(other.code is None for other in self.jobs.values()) >= _AT_ONCE:
            raise RefusedError(f"{_AT_ONCE} processes are at work (stop one, or wait for it)")
        job.process = Process(f"{__name__}:{function}", [*arguments, str(job.printed)], folder=self.folder)
        self.jobs[job.number] = job
        return job

    def stop(self, number: int) -> None:
        """Ask a job to stop with its incumbent, like Ctrl-C in a terminal."""
        job = self.jobs.get(number)
        if job is not None and job.process is not None and job.code is None:
            with suppress(OSError):
                os.kill(job.process.number, signal.SIGINT)

    async def events(self, number: int) -> AsyncIterator[str]:
        """Server-sent events of a job: progress as its log grows, then its end with the outcome."""
        job, offset, quiet, rest = self.jobs[number], 0, monotonic(), b""
        yield _event("begin", {"what": job.what, "unit": job.unit, "seconds": monotonic() - job.began})
        while True:
            code = job.code
            with suppress(OSError), job.log.open("rb") as stream:
                stream.seek(offset)
                rest += (some := stream.read())
                offset += len(some)
            *lines, rest = rest.split(b"\n")
            if rows := _news([json.loads(line) for line in lines]):
                quiet = monotonic()
                yield _event("progress", rows)
            if code is not None:
                yield _event("end", await asyncio.to_thread(self.ended, job, code))
                return
            if monotonic() - quiet > _QUIET:
                quiet = monotonic()
                yield ": still at work\n\n"
            await asyncio.sleep(_TICK)

    def ended(self, job: Job, code: int) -> dict[str, Any]:
        """The outcome of a job, which may be requested several times."""
        job.end()
        job.took = job.took or monotonic() - job.began
        news: dict[str, Any] = {"code": code, "seconds": job.took, "said": job.said().strip()}
        if job.what == "check":
            saved = self.results.get(job.about)
            if saved is not None:
                verdict = _verdict(job) or Verdict("refused", (news["said"] or f"the check ended {ending_of(code)}",))
                self.results[job.about] = saved = replace(saved, verdict=verdict)
            return news | {"result": saved.row if saved is not None else None}
        if job.number not in self.results and job.out.is_file():
            try:
                self.results[job.number] = Saved(job.number, job.name, job.out, picture_in(job.out), own=True)
            except (InstanceError, VerificationError) as error:
                news["said"] = f"{news['said']}\n{error}".strip()
        found = self.results.get(job.number)
        return news if found is None else news | {"result": found.row, "best": found.drawn.digest.value, "bound": found.drawn.digest.bound}

    def open_text(self, name: str, text: str) -> Saved | None:
        """The saved result in a text; None if it may be a question, an error for anything else."""
        try:
            foreign = is_graph_text(name, text)
        except ValueError as error:
            if "this is a result" not in str(error):
                raise RefusedError(f"{name}: {error}") from error
        else:
            if foreign:
                raise RefusedError(
                    f"{name}: this is a graph of another tool (`crossopt solve` answers it; this page edits questions in YAML)"
                )
            return None
        number = self._next()
        path = self.folder / f"{number}.out.json"
        write_atomically(path, text)
        kind_of(path)
        saved = self.results[number] = Saved(number, name, path, picture_in(path), own=False)
        return saved

    def design(self, number: int, found: Opened) -> Mapping[str, Any]:
        """The choices of an answer to this question, by lever."""
        saved = self.results.get(number)
        data = {} if saved is None else json.loads(saved.path.read_text(encoding="utf-8"))
        question = data.get("question", {})
        if question.get("text") != found.text or question.get("settings"):
            raise RefusedError("this is no answer to the question above (open its question first)")
        designs = (data.get("answer") or {}).get("designs") or [{}]
        chosen = designs[0]
        return {**chosen.get("hardware", {}), **chosen.get("plan", {})}

    def page(self, numbers: Sequence[int]) -> str:
        """The page of one result, or of several side by side."""
        found = [self.results[number] for number in numbers if number in self.results]
        if not found or len(found) > MOST:
            raise RefusedError("there is no such result" if not found else f"at most {MOST} results fit on a page")
        return page_of_pictures([saved.shown() for saved in found], [saved.name for saved in found])

    def close(self) -> None:
        """End all children."""
        for job in self.jobs.values():
            job.end()


def _written(found: Opened, folder: Path, name: str) -> Path:
    """The question as a file, with links to the files that it names where it looks for them."""
    folder.mkdir(parents=True, exist_ok=True)
    for named in {os.path.normpath(name) for name in found.files if not Path(name).is_absolute()}:
        (folder / named).parent.mkdir(parents=True, exist_ok=True)
        (folder / named).symlink_to((found.folder / named).absolute())
    write_atomically(folder / name, found.text)
    return folder / name


def _event(name: str, data: object) -> str:
    return f"event: {name}\ndata: {json.dumps(data, allow_nan=False)}\n\n"


def _news(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines at which the incumbent or the bound changes, and the last one."""
    rows = list[dict[str, Any]]()
    for line in lines:
        finite = {name: value if isinstance(value, int | float) and abs(value) < float("inf") else None for name, value in line.items()}
        row = {**finite, "words": line.get("words", "")}
        if rows and (row["best"], row["bound"]) == (rows[-1]["best"], rows[-1]["bound"]):
            rows.pop()
        rows.append(row)
    return rows


def _verdict(job: Job) -> Verdict | None:
    """The outcome of a check; None if it did not finish."""
    if not job.out.is_file():
        return None
    found = json.loads(job.out.read_text(encoding="utf-8"))
    mood: Literal["unverified", "accepted"] = "unverified" if found["unverified"] else "accepted"
    return Verdict("refused", tuple(found["refused"])) if found["refused"] else Verdict(mood, tuple(found["checked"]))


def run_check(path: str, out: str, printed: str) -> None:
    """In a child: a check of a result, into a file."""
    _print_into(printed)
    from crossopt.reports.commands.families import check  # noqa: PLC0415 - it begins here

    try:
        report = check(Path(path))
        found = {"checked": report.checked, "refused": report.refused, "unverified": bool(report.unverified)}
    except (InstanceError, VerificationError) as error:
        found = {"checked": (), "refused": (str(error),), "unverified": False}
    write_atomically(Path(out), json.dumps(found))


def run_command(arguments: Sequence[str], printed: str) -> None:
    """In a child: a command of the command line; what it prints goes into a file."""
    _print_into(printed)
    sys.argv = ["crossopt", *arguments]
    from crossopt.reports.cli import main  # noqa: PLC0415 - it begins here

    raise SystemExit(main())


def _print_into(printed: str) -> None:
    stream = os.open(printed, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    os.dup2(stream, 1)
    os.dup2(stream, 2)
    os.environ["COLUMNS"] = "120"
