"""The toy kind in solvers/: two engines, a judge that shares nothing with them, and a proof that anybody can count again."""

from dataclasses import dataclass
from itertools import combinations

from crossopt.solvers.answer import Counted, Found, Limits, Result, Rival, Verdict, Watch
from crossopt.solvers.checking import by_looking_at_all
from crossopt.solvers.family import Family, Proved
from tests.toy.question import Sack, read_again


@dataclass(frozen=True, slots=True)
class Taken:
    """Things by their places."""

    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """What the judge says beside the worth that is left behind."""

    weight: int
    free: int


def judge(question: Sack, taken: Taken) -> Verdict[Load]:
    """The worth left behind."""
    file = question.file
    if sorted(set(taken.places)) != list(taken.places) or not all(0 <= place < len(file.things) for place in taken.places):
        raise ValueError("things are taken once each, in their order")
    weight = sum(file.things[place].weight for place in taken.places)
    rules = ((weight <= file.room, f"{weight} of {file.room}"), (len(taken.places) >= file.least, f"fewer than {file.least} things"))
    left = sum(thing.worth for place, thing in enumerate(file.things) if place not in taken.places)
    return Verdict(left, tuple(words for holds, words in rules if not holds), Load(weight, file.room - weight))


def exhaustive(question: Sack, limits: Limits, watch: Watch) -> Found[Taken]:
    """Every choice."""
    del watch
    if not limits.seconds:
        return Found(None, engine="exhaustive", stopped="time limit")
    best = min(_all(question), key=lambda taken: judge(question, taken).value, default=None)
    bound = float("inf") if best is None else judge(question, best).value
    reasons = () if best else (f"no {question.file.least} things weigh {question.file.room} or less",)
    return Found(best, bound, Counted("looking at every choice"), "exhaustive", reasons=reasons, rivals=(_greedy(question),))


def greedy(question: Sack, limits: Limits, watch: Watch) -> Found[Taken]:
    """The things of most worth first; no proof."""
    del limits, watch
    taken = _greedy(question).answer
    return Found(taken if taken is not None and not judge(question, taken).violations else None, engine="greedy")


def _all(question: Sack) -> list[Taken]:
    places = range(len(question.file.things))
    every = [Taken(chosen) for count in range(len(places) + 1) for chosen in combinations(places, count)]
    return [taken for taken in every if not judge(question, taken).violations]


def _greedy(question: Sack) -> Rival[Taken]:
    things, room, taken = question.file.things, question.file.room, list[int]()
    for place in sorted(range(len(things)), key=lambda place: -things[place].worth):
        if things[place].weight <= room:
            taken.append(place)
            room -= things[place].weight
    return Rival("greedy", None, Taken(tuple(sorted(taken))))


def prove(question: Sack, saved: Result[Taken, Load]) -> Proved:
    return by_looking_at_all(saved, lambda: min((judge(question, taken).value for taken in _all(question)), default=float("inf")), "")


FAMILY: Family[Sack, Taken, Load] = Family(
    kind="knapsack",
    what="choice",
    unit="",
    answer=Taken,
    details=Load,
    again=read_again,
    engines={"auto": exhaustive, "exhaustive": exhaustive, "greedy": greedy},
    judge=judge,
    judged="weight and worth",
    prove=prove,
)
