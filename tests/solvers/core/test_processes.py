"""Child processes: what they are sent and say, and how they and all that they started end."""

import os
import signal
import sys
import time
from pathlib import Path
from queue import SimpleQueue

import pytest

from crossopt.solvers.processes import GONE, Inbox, Process, ending_of, orders_answers, read_message, signal_of, write_message

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux how processes ended")
WAIT = 60.0
"""Seconds for what takes none, on a busy machine."""


def echo(printed: str | None = None) -> None:
    """Says again what it is sent, and prints beside that."""
    orders, answers = orders_answers(printed)
    while (message := read_message(orders)) is not None:
        sys.stdout.write("noise\n")
        sys.stdout.flush()
        write_message(answers, (message, sys.stdin.read()))


def parent() -> None:
    """Has a child of its own, which keeps the pipe open."""
    _, answers = orders_answers()
    child = os.fork()
    if child:
        write_message(answers, child)
    while True:
        time.sleep(60.0)


def lines() -> None:
    orders, answers = orders_answers()
    while line := orders.readline():
        answers.write(line.upper())
        answers.flush()


def child(function: object, *arguments: object, inbox: Inbox | None = None) -> Process:
    return Process(f"{__name__}:{getattr(function, '__name__', '')}", arguments, inbox=inbox)


def ended(number: int) -> bool:
    for _ in range(int(10 * WAIT)):
        status = Path(f"/proc/{number}/stat")
        if not status.exists() or status.read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.1)
    return False


def test_messages_of_any_size_come_back_and_what_is_printed_goes_to_its_file(tmp_path: Path) -> None:
    process = child(echo, str(tmp_path / "printed"))
    for message in (None, "plain", bytes(1 << 22), {"a": [1.5]}):
        process.send((message,))
        assert process.receive(WAIT) == ((message,), "")
    process.close()
    assert process.receive(WAIT) == GONE
    assert process.wait(WAIT)
    assert (process.code, (tmp_path / "printed").read_text(encoding="utf-8")) == (0, 4 * "noise\n")
    process.kill()


def test_several_children_share_an_inbox() -> None:
    inbox: Inbox = SimpleQueue()
    both = [child(echo, inbox=inbox) for _ in range(2)]
    for place, process in enumerate(both):
        process.send((place,))
    assert {(process, said[0]) for process, said in (inbox.get(timeout=WAIT) for _ in both)} == {(both[0], (0,)), (both[1], (1,))}
    for process in both:
        process.kill()


def test_the_end_of_a_child_is_the_end_of_all_that_it_started() -> None:
    process = child(parent)
    grandchild = process.receive(WAIT)
    process.kill()
    process.kill()
    assert ended(grandchild)
    assert (process.ended, process.code, process.receive(WAIT)) == (True, -signal.SIGKILL, GONE)


def test_the_end_of_the_parent_is_the_end_of_the_child() -> None:
    """The kernel closes the lifeline of a parent that is killed."""
    process = child(parent)
    grandchild = process.receive(WAIT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, process._lifeline)
    os.close(nothing)
    assert process.wait(WAIT)
    assert ended(grandchild)
    assert process.code == -signal.SIGIO
    process.kill()


def test_a_child_that_is_not_trusted_is_read_by_a_reader_of_its_own() -> None:
    process = Process(f"{__name__}:lines", read=lambda stream: stream.readline(1000) or None)
    process.send_bytes(b"one\ntwo\n")
    assert [process.receive(WAIT) for _ in range(2)] == [b"ONE\n", b"TWO\n"]
    assert process.receive(0.0) is None
    process.kill()


def test_ends_are_named() -> None:
    assert [signal_of(code) for code in (None, 0, 3, -signal.SIGSEGV)] == [None, None, None, "SIGSEGV"]
    assert [ending_of(code) for code in (3, -9, -11)] == ["with exit code 3", "by SIGKILL, perhaps out of memory", "by SIGSEGV"]
