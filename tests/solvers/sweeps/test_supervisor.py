"""Several processes at work: what is lost when one is killed, never comes back or cannot write, and what when all are told to stop."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest

from crossopt.instances.errors import FailedError
from crossopt.solvers.sweeps import supervisor
from crossopt.solvers.sweeps.leases import leased_runs, release, start, take
from crossopt.solvers.sweeps.store import FAILED, RESULTS, RUNNING, failure_of, keep, kept_at
from crossopt.solvers.sweeps.supervisor import Supervisor
from crossopt.solvers.sweeps.worker import Answer, Job, failed_text
from tests.solvers.sweeps.hooks import at_once, dying, endless, idle, job, refusing, slowly


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (RESULTS, FAILED, RUNNING):
        (tmp_path / name).mkdir()
    return tmp_path


def worked(folder: Path, work: Answer, jobs: Iterable[Job | None], workers: int = 1, stopping: Callable[[], int] = lambda: 0) -> Supervisor:
    """The supervisor after its work, with nothing left of its processes."""
    found = Supervisor(folder, workers, work=work, stopping=stopping)
    try:
        found.run(jobs)
    finally:
        found.dismiss()
    assert [path.name for path in (folder / RUNNING).iterdir()] == []
    return found


def asked(folder: Path) -> list[str]:
    return [line.split()[0] for line in (folder / "asked.txt").read_text(encoding="utf-8").splitlines()]


def ended(pid: int) -> bool:
    """Whether a process is no more, or only waits for its parent to hear of that."""
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"


def test_a_killed_process_costs_one_more_try_and_what_always_kills_is_put_aside(folder: Path) -> None:
    jobs = [job("a", "first"), job("b", "unlucky"), job("c", "poison"), job("d", "last")]
    found = worked(folder, dying, jobs)
    assert found.answered == {one.key for one in jobs if one.name != "poison"}
    assert found.failed == {"c" * 32}
    assert sorted(asked(folder)) == ["first", "last", "unlucky"]  # each once, whatever happened to others
    failure = failure_of(folder, "c" * 32)
    assert failure is not None
    assert failure.reason == "it ended 2 processes, the last one by SIGKILL, perhaps out of memory"
    assert (failure.tries, failure.tail) == (2, "the last words\n")


def test_what_takes_too_long_is_ended_with_all_that_it_started(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("_BESIDE", 0.1), ("_LOADING", 0.1)):
        monkeypatch.setattr(supervisor, name, seconds)
    found = worked(folder, endless, [job("a", "endless", seconds=0.1), job("b", "other")])
    assert (found.failed, found.answered) == ({"a" * 32}, {"b" * 32})
    failure = failure_of(folder, "a" * 32)
    assert failure is not None
    assert "as it took more than 1.2 times its limit" in failure.reason
    assert ended(int((folder / "child.txt").read_text(encoding="utf-8")))


@pytest.mark.parametrize(("times", "left"), [(1, ["one"]), (2, [])])
def test_asked_to_end_it_finishes_what_it_does_and_asked_twice_it_ends_that_too(times: int, left: list[str], folder: Path) -> None:
    def wish() -> int:
        return times if (folder / "one.begun").exists() else 0

    found = worked(folder, slowly, [job("a", "one"), job("b", "two")], stopping=wish)
    assert (asked(folder) if found.answered else []) == left
    assert found.failed == set()


def test_refusals_and_mistakes_are_told_and_a_full_disk_ends_all(folder: Path) -> None:
    found = worked(folder, refusing, [job("a", "refused"), job("b", "mistake")])
    assert found.failed == {"a" * 32, "b" * 32}
    told = [failure_of(folder, key * 32) for key in "ab"]
    assert [(one.reason, one.code) for one in told if one] == [("no such questions", 2), ("internal error: AssertionError: two lines", 1)]
    with pytest.raises(FailedError, match="no space left on device"):
        worked(folder, refusing, [job("c", "full")])


@pytest.mark.parametrize("seconds", [0.0, 600.0])
def test_the_first_run_is_answered_while_others_are_still_looked_for_and_the_largest_that_is_known_comes_next(
    seconds: float, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last job is only told once the first one has its answer, beside which nothing is read for a while; words say how far all is."""
    monkeypatch.setattr(supervisor, "_ALONE", seconds)
    beside = list[int]()

    def jobs() -> Iterator[Job | None]:
        yield job("a", "first", size=1.0)
        while not kept_at(folder, "a" * 32):
            beside.append(1)
            sleep(0.01)
            yield None
        yield from (job("b", "small", size=1.0), job("c", "unproved", size=3.0), job("d", "middle", size=2.0))

    crew, said = Supervisor(folder, 1, work=at_once, stopping=lambda: 0), list[str]()
    crew.note = said.append
    crew.run(jobs())
    crew.dismiss()
    assert asked(folder) == ["first", "unproved", "middle", "small"]
    assert bool(beside) == (seconds == 0.0)
    assert any(words.startswith("0 answered of 1 read so far, 0 proved, 1 running  first") for words in said)
    assert re.fullmatch(r"3 answered of 4, 2 proved, 1 running, about \d+ s left  small", said[-1])


def test_asked_to_end_it_reads_on_so_that_the_list_is_whole_and_begins_nothing(folder: Path) -> None:
    told = iter([job("a", "one"), None, job("b", "two")])
    assert worked(folder, at_once, told, stopping=lambda: 1).answered == set()
    assert list(told) == []
    assert not (folder / "asked.txt").exists()


def test_where_python_has_no_room_to_read_its_own_files_memory_is_named() -> None:
    assert failed_text(SyntaxError("expected ':'"))[0] == failed_text(MemoryError())[0]


def test_what_another_sweep_answers_is_left_to_it_and_what_it_has_answered_is_taken(folder: Path) -> None:
    keep(folder, "a" * 32, "another's\n")
    assert take(folder, "b" * 32)
    begun = monotonic()
    crew = Supervisor(folder, 1, work=at_once, stopping=lambda: int(monotonic() - begun > 20.0))

    def note(words: str) -> None:
        if "1 with another sweep" in words and not kept_at(folder, "b" * 32):
            keep(folder, "b" * 32, "another's\n")

    crew.note = note
    crew.run([job("a"), job("b"), job("c", "ours")])
    crew.dismiss()
    assert asked(folder) == ["ours"]
    assert crew.answered == {key * 32 for key in "abc"}
    assert leased_runs(folder)[0] == {"b" * 32}


def test_what_another_sweep_answered_and_let_go_while_we_looked_is_not_asked_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "take", lambda folder, key: keep(folder, key, "another's\n").exists() and take(folder, key))
    assert worked(folder, at_once, [job("a")]).answered == {"a" * 32}
    assert not (folder / "asked.txt").exists()


def test_a_process_that_ends_while_it_waits_for_another_sweep_is_replaced(folder: Path) -> None:
    assert take(folder, "b" * 32)
    crew = Supervisor(folder, 1, work=idle, crew=[start(work=idle)])
    first = {crew.crew[0].process.number}
    crew.note = lambda words: release(folder, "b" * 32) if first.isdisjoint(one.process.number for one in crew.crew) else None
    crew.run([job("a", "first"), job("b", "second")])
    crew.dismiss()
    assert asked(folder) == ["first", "second"]


def test_processes_end_with_the_one_that_ordered_however_busy_they_are(folder: Path) -> None:
    """Closing the lifeline is what the kernel does when the first process is killed."""
    crew = Supervisor(folder, 1, work=endless)
    crew._put(job("a", "endless"), 0.0)
    while not (folder / "child.txt").exists():
        crew._hand_out()
        crew._attend()
    (worker,) = crew.crew
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, worker.process._lifeline)
    os.close(nothing)
    child = int((folder / "child.txt").read_text(encoding="utf-8"))
    while worker.process.code is None or not ended(child):
        sleep(0.01)
    crew.dismiss()
