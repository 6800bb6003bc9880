"""Files that were hit by chance go through the commands that read them: each is answered or refused, soon, and no false claim passes.

A worker process calls the command's own main function, one file after the other, and is replaced where it dies or does not come back; a few
files go through new processes, as a person starts them. Every file has a seed of its own, so that
`python -m tests.hunt --only files --seed N` makes it again.
"""

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from math import inf
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

from crossopt.reports import cli
from tests import certificates
from tests.hunt.corpus import HIT, RARELY, Original, corpus
from tests.hunt.mutants import MARK, mutant
from tests.paths import ROOT

BATCH = 4_000
"""Files of one seed of the hunt, which one worker sees: that of the hunt times this is the seed of its first file."""
ALL_SOUND = 10 * BATCH
"""Of the seeds that are multiples of this, all sound files are tried before, of others one of each sort."""
SECONDS = 5.0
"""Of the processor, that a command may take with a file."""
HARD = 20
"""Seconds of the processor after which a worker that does not hear is killed."""
SILENT = 300.0
"""Seconds after which a worker that says nothing is killed, however busy the machine is."""
REAL = 0.004
"""How many of the files go through new processes."""
MEMORY = 8 << 30
"""Bytes of addresses that a worker may have."""
ENDINGS = frozenset({0, 2, 3, 10, 11, 20, 30})
FORMS = ("html", "html", "html", "latex", "csv", "markdown", "text", "runs")


class LateError(BaseException):
    """A file took longer than it may; no command catches this."""


@dataclass(slots=True)
class Seen:
    """What came of some files."""

    files: int = 0
    sorts: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    """Exit codes by command."""
    longest: tuple[float, str] = (0.0, "")
    """Seconds of the processor, and of which file."""
    findings: list[str] = field(default_factory=list)


def hit_files(
    given: Path, first: int, kept: Path, tell: Callable[[str], object], seen: Seen, count: int = BATCH, until: float = inf
) -> None:
    """So many files from this seed on, or fewer where the time is over; those in which something is wrong are kept."""
    at, last = first, first + count
    while at < last and monotonic() < until:
        for told in _worked(given, at, last):
            at = told["seed"] + 1
            _counted(seen, told, given, kept, tell)
            if monotonic() > until:
                break


def _counted(seen: Seen, told: Mapping[str, Any], given: Path, kept: Path, tell: Callable[[str], object]) -> None:
    seen.files += 1
    seen.sorts[told["sort"]] += 1
    seen.endings.update(told["endings"])
    seen.longest = max(seen.longest, (told["seconds"], f"{told['seed']} {told['name']}"))
    if told["wrong"]:
        kept.mkdir(parents=True, exist_ok=True)
        path = kept / f"{told['seed']}-{told['name']}"
        path.write_bytes((given / _place(told["name"], told["named"])).read_bytes())
        seen.findings += [f"files, seed {told['seed']}: {path}: {fault}" for fault in told["wrong"]]
        for fault in told["wrong"]:
            tell(f"FOUND  files, seed {told['seed']}: {path}: {fault}\n")


def _place(name: str, named: bool) -> str:
    """The name under which a file is hit, beside the sound ones; one that a question names keeps its own."""
    return f"asking/{name}" if named else f"{HIT}{name}"


def _worked(given: Path, first: int, last: int) -> Iterator[Mapping[str, Any]]:
    """What a worker says of each file; its death, or its silence, is what it says of the file at hand."""
    context = get_context("fork")
    here, there = context.Pipe(duplex=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer versions of Python warn of forks beside threads
        worker = context.Process(target=_work, args=(there, given, first, last), daemon=True)
        worker.start()
    there.close()
    begun: dict[str, Any] | None = None
    try:
        while True:
            told, faults = _heard(here), []
            if told is None:
                faults = [f"nothing was heard for {SILENT:.0f} s"]
            elif "gone" not in told:
                begun = None if "wrong" in told else told
                if begun is None:
                    yield told
                continue
            worker.kill() if told is None else None
            worker.join()
            if begun is not None:
                yield {**begun, "endings": {}, "seconds": float(HARD), "wrong": faults or [f"the process ended with {worker.exitcode}"]}
            elif worker.exitcode != 0:
                raise RuntimeError(f"a worker ended with {worker.exitcode} before it had a file")
            return
    finally:
        worker.kill()
        worker.join()


def _heard(here: Connection) -> dict[str, Any] | None:
    try:
        return dict(here.recv()) if here.poll(SILENT) else None
    except EOFError:
        return {"gone": True}


def _work(there: Connection, given: Path, first: int, last: int) -> None:
    """The life of a worker."""
    os.chdir(given)
    sys.setrecursionlimit(1000)
    warnings.simplefilter("default")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    originals = corpus(given)
    truths = truths_of(originals)
    tried = set[str]()
    for original in originals:  # all modules are loaded before anything is timed, and what is sound passes
        if original.often <= RARELY or (first % ALL_SOUND and original.sort in tried):
            continue
        tried.add(original.sort)
        faults = Trial(original, original.text, Random(0), truths).faults(0.0)
        if faults:
            raise RuntimeError(f"{original.name}: {faults}")
    gc.collect()
    gc.freeze()  # what is loaded stays
    for seed in range(first, last):
        random = Random(f"files {seed}")
        original = random.choices(originals, [one.often for one in originals])[0]
        others = [one.text for one in originals if one.sort == original.sort and one is not original]
        text = mutant(original.name, original.text, others, random)
        trial = Trial(original, text, random, truths)
        about = {"seed": seed, "name": original.name, "sort": original.sort, "named": trial.named}
        there.send(about)
        wrong = trial.faults(SECONDS)
        there.send({**about, "wrong": wrong, "endings": dict(trial.endings), "seconds": trial.seconds})
    there.close()


@dataclass(slots=True)
class Trial:
    """One file and its commands."""

    original: Original
    text: bytes
    random: Random
    truths: Mapping[str, "Truth"]
    endings: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def named(self) -> bool:
        """Whether another file names this one, so that it keeps its name."""
        return not any("FILE" in command for command in self.original.commands)

    def faults(self, seconds: float) -> list[str]:
        """What is wrong; no time counts where there is none."""
        path, wrong = Path(_place(self.original.name, self.named)), list[str]()
        path.write_bytes(self.text)
        before, form = _spent(), self.random.choice(FORMS)
        words, call = (
            {"FILE": str(path), "FORM": form, "PAGE": f"../page.{form}"},
            _called if self.random.random() >= REAL else _called_anew,
        )
        for command in self.original.commands:
            line = [words.get(word, word) for word in command]
            try:
                with _timed(seconds):
                    code, said = call(line)
            except LateError:
                wrong.append(f"{' '.join(line)} takes more than {seconds:.0f} s of the processor")
                continue
            self.endings[f"{command[0]} {code}"] += 1
            wrong += [f"{' '.join(line)} {fault}" for fault in _told_faults(code, said)]
            if command[0] == "check" and code == 0:
                wrong += true_of_its_model(self.text) if path.suffix == ".vipr" else passed(self.text, said, self.truths)
        page = Path(words["PAGE"])
        if page.exists():
            wrong += [f"the page has {MARK} in it"] if form == "html" and MARK in page.read_text(encoding="utf-8") else []
            page.unlink()
        self.seconds = _spent() - before
        return wrong


def _called(line: Sequence[str]) -> tuple[int, str]:
    """How a command ends, and what it says."""
    with Path("../said.txt").open("w+", encoding="utf-8") as said:
        with redirect_stdout(said), redirect_stderr(said):
            try:
                code = cli.main(line)
            except SystemExit as left:
                code = int(str(left.code))
        said.flush()
        said.seek(0)
        return code, said.read()


def _called_anew(line: Sequence[str]) -> tuple[int, str]:
    """How a command ends, and what it says, in a process of its own."""
    run = subprocess.run(
        [sys.executable, "-m", "crossopt", *line],
        capture_output=True,
        timeout=SILENT,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    return run.returncode, (run.stdout + run.stderr).decode("utf-8", "surrogateescape")


def _told_faults(code: int, said: str) -> list[str]:
    wrong = [] if code in ENDINGS else [f"ends with {code}: {said[-400:]!r}"]
    wrong += [f"says {said[-400:]!r}"] if code in ENDINGS and ("Traceback" in said or "Warning" in said) else []
    return wrong + ([f"writes {said[:300]!r}"] if any(ord(sign) < 32 and sign not in "\t\n\r" for sign in said) else [])


@contextmanager
def _timed(seconds: float) -> Iterator[None]:
    """A LateError after so many seconds of the processor, and the end of the process soon after where it cannot be raised."""

    def late(*_: object) -> None:
        raise LateError

    signal.signal(signal.SIGPROF, late)
    soft = int(_spent() + HARD) if seconds else resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@dataclass(frozen=True, slots=True)
class Truth:
    """What is known of a question's best answer from its sound results."""

    least: float | None
    """No answer is below; None where there is none at all."""
    reached: float | None
    """An answer is as good as this."""
    points: Any = None
    """The figures of a front."""


def truths_of(originals: Sequence[Original]) -> dict[str, Truth]:
    """What the proved results of a corpus say, by their questions."""
    found: dict[str, Truth] = {}
    for original in originals:
        data = json.loads(original.text) if original.sort.startswith("result") else {}
        for one in [data, *data.get("parts", ()), *(point["result"] for point in data.get("points", ()))]:
            if one.get("kind") == "front":
                found[_key(one)] = Truth(None, None, _points(one))
            elif one.get("proved") and "question" in one and "value" in one:
                found[_key(one)] = Truth(one["bound"], one["value"])
    return found


def passed(text: bytes, said: str, truths: Mapping[str, Truth]) -> list[str]:
    """What is false in a result that a check accepted, where its question is one of the corpus."""
    data = json.loads(text)
    if not isinstance(data, dict) or "question" not in data or _key(data) not in truths:
        return []
    truth, value, bound, told = truths[_key(data)], data.get("value"), data.get("bound"), "solver-reported" in said.splitlines()[-1]
    if truth.points is not None:
        false = data["proved"] and not told and _points(data) != truth.points
        return [f"check accepts another front than {truth.points}"] if false else []
    wrong = []
    if value is not None and (truth.least is None or value < truth.least):
        wrong.append(f"check accepts the value {value!r}, and none is below {truth.least!r}")
    if not told and bound is not None and truth.reached is not None and bound > truth.reached:
        wrong.append(f"check accepts the bound {bound!r}, and {truth.reached!r} is reached")
    if not told and value is None and data.get("proved") and truth.reached is not None:
        wrong.append(f"check accepts that there is no answer, and {truth.reached!r} is reached")
    return wrong


def true_of_its_model(text: bytes) -> list[str]:
    """What is false in a certificate that a check accepted, by all integer points near 0, or by a solver where they are too many."""
    words = text.decode("utf-8", "replace")
    return [] if certificates.holds(words) else ["check accepts a certificate that is not true of its model"]


def _key(result: Mapping[str, Any]) -> str:
    """A question with all that matters to its best answer."""
    front = f"front {result['figures']} {result['asked']} " if result.get("kind") == "front" else ""
    return front + json.dumps(result["question"], sort_keys=True)


def _points(front: Mapping[str, Any]) -> list[list[float]]:
    return [[point[figure] for figure in front["figures"]] for point in front["points"]]


def words_of(seen: Seen) -> str:
    """What came of the files, in a few lines."""
    sorts = ", ".join(f"{count:,} {sort}" for sort, count in seen.sorts.most_common())
    endings = ", ".join(f"{ending}: {count:,}" for ending, count in sorted(seen.endings.items()))
    return f"    {sorts}\n    exit codes: {endings}\n    the longest took {seen.longest[0]:.2f} s of the processor, {seen.longest[1]}\n"
