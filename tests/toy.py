"""A toy kind of question, all that a kind brings: which things go into a sack, with a judge that shares nothing with its engines."""

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal

from crossopt.crossflow.fields import Bounds, Doc
from crossopt.instances.files.written import Written
from crossopt.solvers.answer import Baseline, Limits, Result, SearchOutcome, Verdict, Watch
from crossopt.solvers.checking import by_looking_at_all
from crossopt.solvers.family import ProblemType, Proved
from crossopt.solvers.proofs import RecomputableBound


@dataclass(frozen=True, slots=True)
class Thing:
    weight: Annotated[int, Bounds(1, 1_000), Doc("of the room that it takes")]
    worth: Annotated[int, Bounds(0, 1_000), Doc("what it is worth to have it")]


@dataclass(frozen=True, slots=True)
class SackFile:
    kind: Annotated[Literal["knapsack"], Doc("which question this is")]
    room: Annotated[int, Bounds(0, 10_000), Doc("of the sack")]
    least: Annotated[int, Bounds(0, 100), Doc("things to take")] = 0
    things: Annotated[tuple[Thing, ...], Doc("to choose from")] = ()


@dataclass(frozen=True, slots=True)
class Sack:
    """Which things, `least` of them or more, leave the least worth behind?"""

    name: str
    file: SackFile
    document: dict[str, Any]


def read(written: Written) -> Sack:
    return Sack(Path(written.source).stem, written.read_as(SackFile), written.document)


def size_of(question: Sack) -> str:
    return f"{len(question.file.things)} things"


@dataclass(frozen=True, slots=True)
class Taken:
    """Things by their places."""

    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """What the judge says beside the worth that is left behind."""

    weight: int


def judge(question: Sack, taken: Taken) -> Verdict[Load]:
    """The worth left behind."""
    file = question.file
    if sorted(set(taken.places)) != list(taken.places) or not all(0 <= place < len(file.things) for place in taken.places):
        raise ValueError("things are taken once each, in their order")
    weight = sum(file.things[place].weight for place in taken.places)
    enough = (weight <= file.room, f"{weight} of {file.room}"), (len(taken.places) >= file.least, f"fewer than {file.least} things")
    left = sum(thing.worth for place, thing in enumerate(file.things) if place not in taken.places)
    return Verdict(left, tuple(words for holds, words in enough if not holds), Load(weight))


def exhaustive(question: Sack, limits: Limits, watch: Watch) -> SearchOutcome[Taken]:
    """Every choice."""
    del watch
    if not limits.seconds:
        return SearchOutcome(None, engine="exhaustive", stopped="time limit")
    best = min(_all(question), key=lambda taken: judge(question, taken).value, default=None)
    bound = judge(question, best).value if best else float("inf")
    reasons = () if best else (f"no {question.file.least} things weigh {question.file.room} or less",)
    return SearchOutcome(
        best,
        bound,
        RecomputableBound("looking at every choice"),
        "exhaustive",
        reasons=reasons,
        baselines=(Baseline("dearest", None, _dearest(question)),),
    )


def greedy(question: Sack, limits: Limits, watch: Watch) -> SearchOutcome[Taken]:
    """The thing of most worth; no proof."""
    del limits, watch
    return SearchOutcome(None if judge(question, _dearest(question)).violations else _dearest(question), engine="greedy")


def _all(question: Sack) -> list[Taken]:
    places = range(len(question.file.things))
    every = [Taken(chosen) for count in range(len(places) + 1) for chosen in combinations(places, count)]
    return [taken for taken in every if not judge(question, taken).violations]


def _dearest(question: Sack) -> Taken:
    things = question.file.things
    return Taken((max(range(len(things)), key=lambda place: things[place].worth),))


def prove(question: Sack, saved: Result[Taken, Load], _: Watch) -> Proved:
    return by_looking_at_all(saved, lambda: min((judge(question, taken).value for taken in _all(question)), default=float("inf")), "")


FAMILY: ProblemType[Sack, Taken, Load] = ProblemType(
    kind="knapsack",
    what="choice",
    unit="",
    answer=Taken,
    details=Load,
    engines={"auto": exhaustive, "exhaustive": exhaustive, "greedy": greedy},
    judge=judge,
    judged="weight and worth",
    prove=prove,
)
