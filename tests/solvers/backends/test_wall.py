"""A wall between us and solvers: what goes wrong behind it costs one answer, and solvers that never end are ended."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from crossopt.formulation.model import ExactlyOne, Linear, Model, Table
from crossopt.instances.errors import FailedError, SolverError
from crossopt.instances.question import read
from crossopt.reports.cli import main
from crossopt.solvers.answer import Limits, Result, unwatched
from crossopt.solvers.backends import answer as patience
from crossopt.solvers.backends import arrays, backend, milp, wall
from crossopt.solvers.backends.answer import Answer, Course, Spend, Watch, attended, go_on, judged
from crossopt.solvers.backends.wall import LateError, SolverProcess
from crossopt.solvers.checking import check_answer
from crossopt.solvers.family import family_of, solve
from crossopt.solvers.placement import engines
from tests.instances.placement.samples import sample_at_random
from tests.instances.sharding.files import written
from tests.paths import INSTANCES, ROOT
from tests.reports.answers import saved
from tests.solvers.backends import rough_work as rough
from tests.solvers.backends.test_backends import ALL_BEST, SMALL, A, X
from tests.solvers.placement.test_searches import asked_at_random

# A wall between us and solvers: whatever goes wrong behind it costs the answer of that solver and nothing else.

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="asks Linux how processes ended"), pytest.mark.process]


def asked(work: Callable[..., Any], seconds: float = inf, watch: Watch = go_on) -> Answer:
    """What a solver that works so is believed about the small model."""
    spend, course = Spend(seconds=seconds, watch=watch), Course(SMALL)
    return judged(SMALL, attended("rough", "rough 1.0", work, course, spend), course, "rough 1.0", spend.hint)


def gone(process: int) -> bool:
    """Within the patience of a busy machine."""
    for _ in range(600):
        status = Path(f"/proc/{process}/stat")
        try:
            if status.read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (rough.die, r"rough 1.0 crashed \(SIGKILL\), perhaps out of memory"),
        (rough.abort, r"rough 1.0 crashed \(SIGABRT\), perhaps out of memory"),
        (rough.leave, r"rough 1.0 ended without an answer \(exit code 3\)"),
        (rough.find_and_die, r"rough 1.0 crashed \(SIGKILL\), perhaps out of memory"),
        (rough.refuse, "out of luck"),
        (rough.raise_strangely, "rough 1.0 failed: LookupError: out of luck"),
        (rough.too_few_figures, "rough 1.0 returned an invalid result: 2 values for 3 variables"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_what_fails_behind_the_wall_is_told_in_a_sentence(work: Callable[..., Any], words: str) -> None:
    with pytest.raises(SolverError, match=f"^{words}$"):
        asked(work)
    assert backend("highs")(SMALL, Spend()).value == 2


def test_who_eats_memory_is_ended_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wall, "MEMORY", 1 << 30)
    place = SolverProcess("eater", "eater 1.0")
    with pytest.raises(SolverError, match=r"eater 1.0 failed: there is not enough memory"):
        place.ask(rough.eat)
    with pytest.raises(FailedError, match=r"eater 1.0 has ended before this"):
        place.ask(rough.honest, 1, 2)
    assert SolverProcess("eater").ask(rough.honest, 1, 2) == (1, 2)


@pytest.mark.parametrize("name", ["highs", "cpsat"])
def test_a_solver_without_memory_fails_in_a_sentence_and_the_next_one_works(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wall, "_CHILDREN", [])
    with monkeypatch.context() as patch:
        patch.setattr(wall, "MEMORY", 1 << 24)
        with pytest.raises(FailedError, match=rf"{name} \S+ (failed|crashed|ended)"):
            backend(name)(SMALL, Spend())
    assert backend(name)(SMALL, Spend()).value == 2


@pytest.mark.parametrize("work", [rough.hang, rough.hang_with_the_interpreter])
def test_who_hangs_past_the_deadline_is_ended(work: Callable[..., Any]) -> None:
    answer = asked(work, seconds=0.5)
    assert (answer.status, answer.values, answer.bound, answer.stopped) == ("UNKNOWN", None, SMALL.domain_bound(), "time limit")


def test_what_was_said_before_the_end_holds() -> None:
    answer = asked(rough.find_and_hang, seconds=1.5)
    assert (answer.status, answer.value, answer.values, answer.bound) == ("FEASIBLE", 2, ALL_BEST, SMALL.domain_bound())
    assert [(event.value, event.bound) for event in answer.trace][-1] == (2, 1)


def test_what_was_said_before_the_end_is_held_against_the_model() -> None:
    with pytest.raises(SolverError, match=r"rough 1.0 returned an invalid result: cost: x = 4, y = 2 is none of 4 rows"):
        asked(rough.find_a_lie_and_hang, seconds=1.5)


def test_who_hangs_when_asked_to_stop_is_ended() -> None:
    answer = asked(rough.find_and_hang, watch=lambda event: event.value is not None)
    assert (answer.value, answer.stopped) == (2, "interrupted")


def test_a_watch_that_fails_ends_the_work_and_not_the_wall() -> None:
    def failing(event: object) -> bool:
        raise RuntimeError("watch")

    with pytest.raises(RuntimeError, match="watch"):
        asked(rough.hang, watch=failing)
    assert asked(rough.run_highs).value == 2


def test_nonsense_on_the_line_is_no_answer() -> None:
    with pytest.raises(SolverError, match=r"rough 1.0"):
        asked(rough.babble, seconds=20)


def test_what_solvers_print_is_not_seen(capfd: pytest.CaptureFixture[str]) -> None:
    assert SolverProcess("rough").ask(rough.chatter) == "done"
    assert capfd.readouterr() == ("", "")


def test_one_process_does_what_comes_one_after_another() -> None:
    def process() -> int:
        place = SolverProcess("counted")
        try:
            return int(place.ask(os_number))
        finally:
            place.close()

    one = process()
    assert process() == one
    held = SolverProcess("counted")
    assert held.ask(os_number) == process() == one


def test_a_process_that_is_ended_while_it_has_nothing_to_do_costs_nothing() -> None:
    one = SolverProcess("idle")
    number = one.ask(os_number)
    one.close()
    os.kill(number, signal.SIGKILL)
    assert gone(number)
    assert SolverProcess("idle").ask(os_number) != number


def test_a_place_that_is_collected_while_a_process_is_borrowed_waits_for_nobody() -> None:
    """Garbage is collected in any thread, also in one that the borrower waits for with the lock in its hands."""
    place = SolverProcess("highs")
    child = place._child
    assert child is not None
    held, collector = child.holders, Thread(target=place.close, daemon=True)
    with wall._LOCK:
        collector.start()
        collector.join(20.0)
        assert not collector.is_alive()
    wall.prepare("cpsat")
    assert child.holders == held - 1


def test_work_that_comes_to_a_process_as_it_ends_is_taken_to_another() -> None:
    """The system may still count a process among the living that was killed a moment ago."""
    number = SolverProcess("ending").ask(os_number)
    place = SolverProcess("ending")
    os.kill(number, signal.SIGKILL)
    assert place.ask(os_number) != number
    os.kill(place.ask(os_number), signal.SIGKILL)
    with pytest.raises(SolverError, match="SIGKILL"):  # what it kept for this place is lost, and nobody says that it is not
        place.ask(os_number)


def os_number(line: object) -> int:
    del line
    return os.getpid()


@pytest.mark.parametrize("deaf", [False, True])
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, None])
def test_no_process_outlives_ours(end: signal.Signals | None, deaf: bool) -> None:
    """However ours ends, and whatever the child has started."""
    program = (
        "import os, sys\n"
        "from crossopt.solvers.backends.wall import SolverProcess\n"
        "from tests.solvers.backends.rough_work import children\n"
        "class Enough(Exception): pass\n"
        "def hear(numbers):\n"
        "    print(*numbers, flush=True)\n"
        "    if sys.argv[1] == 'leave': raise Enough\n"
        f"try: SolverProcess('rough').ask(children, {deaf}, hear=hear)\n"
        "except Enough: pass\n"
    )
    arguments = [sys.executable, "-c", program, "leave" if end is None else "stay"]
    with subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        numbers = [int(word) for word in process.stdout.readline().split()]
        assert len(numbers) == 2
        if end is not None:
            process.send_signal(end)
        process.wait(timeout=60)
    assert [gone(number) for number in numbers] == [True, True]


def test_an_answer_through_the_wall_is_the_answer_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("highs", "cpsat", "cbc"):
        through = backend(name)(SMALL, Spend(seed=3))
        with monkeypatch.context() as patch:
            patch.setattr(wall, "INSIDE", True)
            inside = backend(name)(SMALL, Spend(seed=3))
        assert replace(through, seconds=0.0, trace=()) == replace(inside, seconds=0.0, trace=())


def test_a_machine_that_starts_no_process_has_solvers_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object, **more: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(wall, "_CHILDREN", [])
    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert backend("highs")(SMALL, Spend()).value == 2


def test_late_work_is_a_failing_solver_to_who_knows_no_better() -> None:
    with pytest.raises(SolverError, match="slow did not stop in time"):
        SolverProcess("slow").ask(rough.hang, until=0.0)
    assert issubclass(LateError, SolverError)


# Solvers that never end, asked without a time limit: every engine ends by itself, with the best answer and what is to be said.

WORDS = "did not end within 0.3 s; --time-limit allows more"


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> None:
    """All solvers hang, and we have little patience."""
    by_cpsat = sys.modules["crossopt.solvers.backends.cpsat"]  # its name is that of a function too
    for module, names in ((milp, ("run_highs", "_relax")), (by_cpsat, ("run_cpsat",)), (arrays, ("_relax", "_solve"))):
        for name in names:
            monkeypatch.setattr(module, name, rough.hang)
    monkeypatch.setattr(milp, "_RUNS", dict.fromkeys(milp.PROGRAMS, rough.hang))
    monkeypatch.setattr(patience, "LEAST", 0.3)
    monkeypatch.setattr(patience, "EACH", 0.0)


def test_patience_grows_with_the_rows_and_their_entries_between_a_minute_and_six_hours() -> None:
    assert patience.patience(0, 0) == 60.0
    assert patience.patience(100, 900) == 160.0
    assert patience.patience(10**6, 10**7) == 6 * 3600.0
    rows = (Linear("sum", ((1, A),), 0, 1), ExactlyOne("one", (A,)), Table("some", (A, X), ((0, 1), (1, 0), (1, 1))))
    assert patience.patience_for(Model((A, X), rows, ((1, A),))) == pytest.approx(60.0 + 0.1 * (3 + 1 + 1 + 6))
    assert patience.allowed(7.0, SMALL) == 7.0
    assert patience.allowed(inf, SMALL) == patience.patience_for(SMALL)


@pytest.mark.parametrize("name", ["highs", "cpsat", "cbc"])
@pytest.mark.usefixtures("hanging")
def test_a_call_without_a_limit_ends_and_says_so(name: str) -> None:
    answer = backend(name)(SMALL, Spend())
    assert (answer.status, answer.bound, answer.stopped) == ("UNKNOWN", SMALL.domain_bound(), "time limit")
    assert answer.note.startswith(f"{name} ")
    assert answer.note.endswith(WORDS)
    assert backend(name)(SMALL, Spend(seconds=0.2)).note == ""  # that time was asked for


@pytest.mark.usefixtures("hanging")
def test_what_was_found_before_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milp, "run_highs", rough.find_and_hang)
    monkeypatch.setattr(patience, "LEAST", 1.5)
    answer = backend("highs")(SMALL, Spend())
    assert (answer.status, answer.value, answer.values, answer.stopped) == ("FEASIBLE", 2, ALL_BEST, "time limit")
    assert milp.relaxed(SMALL, inf) is None


def test_the_words_are_in_minutes_and_hours_where_there_are_many() -> None:
    said = [patience.late_text("highs 1", seconds) for seconds in (61.25, 1800.0, 21_600.0)]
    assert said == [f"highs 1 did not end within {time}; --time-limit allows more" for time in ("61.2 s", "30 min", "6.0 h")]


@pytest.mark.parametrize("engine", ["milp", "cpsat"])
@pytest.mark.usefixtures("hanging")
def test_a_joint_design_keeps_the_best_one_and_is_not_proved(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "result.json"
    settings = (
        "--set=tensor=1",
        "--set=pipeline=1",
        "--set=overlap=none",
        "--set=zero=[0, 1]",
        "--set=compute_power={from: 100 W, to: 260 W, step: 20 W}",
    )
    assert main(["solve", "quickstart", *settings, "--engine", engine, "--out", str(target)]) == 0
    assert WORDS in " ".join(capsys.readouterr().out.split())
    result = saved(target)
    assert (result.status, result.stopped, result.proved) == ("FEASIBLE", "time limit", False)
    assert main(["check", str(target)]) == 0


@pytest.mark.usefixtures("hanging")
def test_placements_keep_the_best_one_and_are_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    held(asked_at_random(1005), "auto", ("highs", "cpsat"))
    held(sample_at_random(5001, nodes=5, places=2), "auto", ("cpsat",))
    without: Callable[..., None] = lambda *given: None  # noqa: E731 - stages that no program over ideals has closed
    monkeypatch.setattr(engines, "best_by_ideals", without)
    held(replace(asked_at_random(1005), contiguity="stages"), "stages", ("cpsat",))


@pytest.mark.usefixtures("hanging")
def test_strategies_keep_the_best_ones_and_are_not_proved(tmp_path: Path) -> None:
    held(read(INSTANCES / "sharding" / "llama2-70b-on-8x8.yaml", ()), "milp", ("highs",), kind="sharding")
    for engine, solver in (("weak", "highs"), ("cpsat", "cpsat")):
        held(read(written(tmp_path, 6), ()), engine, (solver,), kind="sharding")


def held(question: Any, engine: str, solvers: tuple[str, ...], kind: str = "placement") -> None:  # noqa: ANN401 - of any kind
    """An answer that is checked, that nobody calls proved, and that names who did not end."""
    family = family_of(kind)
    result: Result[Any, Any] = solve(family, question, engine, Limits(), unwatched)
    assert (result.status, result.stopped, result.proved) == ("FEASIBLE", "time limit", False)
    assert result.value is not None
    assert result.bound is None or result.bound <= result.value
    assert [note.split()[0] for note in result.notes] == list(solvers)
    assert all(note.endswith(WORDS) for note in result.notes)
    assert check_answer(family, result, question).accepted
