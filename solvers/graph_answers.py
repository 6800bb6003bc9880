"""What the answers about graphs, profiles and chains have in common: how they are called proved, written, and held to their own words."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from platform import python_version
from typing import TYPE_CHECKING, Any, Protocol

from solvers.certify import gap_between, status_of
from solvers.check import Report

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from solvers.result import Status

_STOPPED = ("complete", "time limit", "interrupted")


class Answer(Protocol):
    """The fields of a result that say how good it is."""

    @property
    def kind(self) -> str: ...
    @property
    def engine(self) -> str: ...
    @property
    def status(self) -> "Status": ...
    @property
    def stopped(self) -> str: ...
    @property
    def value(self) -> float | None: ...
    @property
    def bound(self) -> float | None: ...
    @property
    def gap(self) -> float | None: ...
    @property
    def gap_asked(self) -> float: ...
    @property
    def proved(self) -> bool: ...
    @property
    def proved_by(self) -> str: ...
    @property
    def reasons(self) -> tuple[str, ...]: ...
    @property
    def seconds(self) -> float: ...


class Rival(Protocol):
    """A plan beside the answer, by a rule or a narrower search."""

    @property
    def name(self) -> str: ...
    @property
    def value(self) -> float | None: ...


def is_proved(value: float | None, bound: float | None, gap: float) -> bool:
    """Whether the bound is as near to the value as this, or says that there is no value."""
    if value is None or bound is None:
        return value is None and bound == float("inf")
    return gap_between(value, bound) <= gap


def answer_status(value: float | None, bound: float | None, proved: bool, least_gap: float) -> "Status":
    """OPTIMAL where nothing is better by more than rounding, which is the least gap that means anything."""
    if value is not None and bound is not None and gap_between(value, bound) <= least_gap:
        return "OPTIMAL"
    return status_of(value, None if bound == value else bound, proved)


def versions() -> dict[str, str]:
    """Of what an answer may depend on."""
    return {"crossopt": version("crossopt"), "numpy": version("numpy"), "python": python_version()}


def text_of(result: "DataclassInstance") -> str:
    """The result as JSON text."""
    return json.dumps(asdict(result), indent=2, allow_nan=False) + "\n"


def certificate_faults(result: Answer, kind: str, engines: tuple[str, ...], least_gap: float, what: str) -> list[str]:
    """Where the words of a result do not follow from its value and its bound; `what` is what it should hold."""
    value, bound = result.value, result.bound
    gap = None if value is None or bound is None else gap_between(value, bound)
    near = is_proved(value, bound, max(result.gap_asked, least_gap))
    rules = (
        (f"kind: {result.kind!r} is no {kind}", result.kind == kind),
        (f"there is no engine {result.engine!r}", result.engine in engines),
        (f"gap: {gap!r} follows, the result says {result.gap!r}", result.gap == gap),
        (f"bound {bound!r} is above the value {value!r}", value is None or bound is None or bound <= value),
        (f"there is no bound without {what}", value is not None or bound is None),
        ("an answer is proved if its bound is as near as was asked, and only then", value is None or result.proved == near),
        ("what proved the bound is told without a bound", bool(result.proved_by) == (bound is not None or result.proved)),
        (f"reasons are told where there is {what}", value is None or not result.reasons),
        (f"{result.stopped!r} is no reason to stop", result.stopped in _STOPPED),
        (f"status: {result.status} does not follow", result.status == answer_status(value, bound, result.proved, least_gap)),
        (f"{result.seconds!r} seconds are no time", result.seconds >= 0.0),
        (f"a gap of {result.gap_asked!r} is none to ask for", 0.0 <= result.gap_asked < 1.0),
    )
    return [sentence for sentence, holds in rules if not holds]


def rival_faults(bound: float | None, rivals: Sequence[Rival]) -> list[str]:
    """Plans beside the answer that its bound denies; an infinite bound denies every plan."""
    if bound is None:
        return []
    beaten = [(rival.name, rival.value) for rival in rivals if rival.value is not None and rival.value < bound]
    denied = "that there is no plan" if bound == float("inf") else f"that none is below {bound!r}"
    return [f"bound: the plan of {name!r} takes {value!r} s, the result says {denied}" for name, value in beaten]


def denied_below(result: Answer) -> float | None:
    """Below what a result says that nothing is: infinite where it proves that there is no plan at all."""
    return float("inf") if result.proved and result.value is None else result.bound


def enumerated(result: Answer, checked: list[str], refused: list[str], least_of_all: Callable[[], float | None]) -> Report:
    """What is said of a result whose bound is held against every plan, where these are few enough to be looked at, and told else."""
    told = result.bound is not None or (result.proved and result.value is None)
    least = least_of_all() if told and not refused else None
    if least is not None:
        true = result.bound <= least if result.bound is not None else least == float("inf")
        faults = [] if true else [f"bound: a plan takes {least!r} s, the result says that none is below {result.bound!r}"]
        return Report((*checked, "every plan was looked at anew"), (*refused, *faults))
    word = [f"the bound is the word of {result.proved_by}, not proved anew"] if told else []
    return Report((*checked, *word), tuple(refused), told=told)


def differences(path: str, true: dict[str, Any], said: dict[str, Any]) -> list[str]:
    """Fields that are other than they should be."""
    return [
        f"{path}.{name}: it is {str(true.get(name))[:60]}, the result says {str(said.get(name))[:60]}"
        for name in sorted({*true, *said})
        if name not in true or name not in said or true[name] != said[name]
    ]
