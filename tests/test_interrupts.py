"""An interrupt between any two lines of an engine leaves an answer that is true of what it says, and that `check` accepts."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from linecache import getline
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pytest

from crossopt import solvers
from crossopt.instances.errors import RefusedError
from crossopt.instances.question import read
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.checking import check_answer
from crossopt.solvers.family import ProblemType, family_of, simplest_of, solve
from tests.paths import ROOT
from tests.samples import SAMPLES
from tests.test_families import EACH, questions

pytestmark = pytest.mark.process

OURS = (str(Path(solvers.__file__).parent), str(ROOT / "tests" / "toy.py"))
MOST = 2_000
"""Lines of an engine that are looked at; of those that go on and on the first ones."""


@contextmanager
def interrupted_at(line: int) -> Iterator[list[int]]:
    """A KeyboardInterrupt before this line of code that solvers come to, and how many they came to."""
    seen = [0]

    def traced(frame: FrameType, event: str, what: object) -> Any:  # noqa: ANN401
        if not frame.f_code.co_filename.startswith(OURS) or letting_go(frame):
            return None
        if event == "line" and not at_a_door(frame):
            seen[0] += 1
            if seen[0] == line:
                sys.settrace(None)
                raise KeyboardInterrupt
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        yield seen
    finally:
        sys.settrace(before)


def at_a_door(frame: FrameType) -> bool:
    """Whether a `with` is being entered or left. Python looks for signals after calls and jumps, never between the last line of a block and
    its exit, where a trace sees the line of the `with` once more: what is raised there would leave a lock closed for good."""
    return getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith("with ")


def letting_go(frame: FrameType | None, depth: int = 4) -> bool:
    """Whether Python is doing away with something, where it drops what is raised."""
    return depth > 0 and frame is not None and (frame.f_code.co_filename.endswith("weakref.py") or letting_go(frame.f_back, depth - 1))


def interrupted(family: ProblemType[Any, Any, Any], engine: str, line: int, lines: list[int]) -> ProblemType[Any, Any, Any]:
    """The family with an engine that is interrupted at a line of its own; to how many it came is added to the list."""
    honest = family.engines[engine]

    def asked(*given: Any) -> Any:  # noqa: ANN401
        with interrupted_at(line) as seen:
            try:
                return honest(*given)
            finally:
                lines.append(seen[0])

    return replace(family, engines={**family.engines, engine: asked})


@EACH
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of processes that were just being started
@pytest.mark.parametrize(("samples", "count"), [(1, 8), pytest.param(None, 50, marks=pytest.mark.slow)])
def test_an_interrupt_at_any_line_of_an_engine_leaves_an_answer_that_holds(kind: str, samples: int | None, count: int) -> None:
    family, limits, tried = family_of(kind), Limits(SAMPLES[kind].seconds), 0
    for path in questions(kind)[:samples]:
        question = read(path)
        for engine in family.engines:
            lines = [MOST]
            with suppress(RefusedError):  # not every engine answers every question
                solve(interrupted(family, engine, MOST, lines), question, engine, limits, unwatched, simplest=simplest_of(family, question))
                random = Random(f"{path.name} {engine}")
                for line in sorted(random.randint(1, lines[-1]) for _ in range(count)):
                    asked = interrupted(family, engine, line, [])
                    result = solve(asked, question, engine, limits, unwatched, simplest=simplest_of(family, question))
                    report = check_answer(family, result, question)
                    assert report.accepted, (engine, line, report.refused)
                    tried += 1
    assert tried >= count
