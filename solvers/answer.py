"""What every answer has in common: limits, progress, status, gap, and how it is written as plain data and read back."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from functools import cache
from math import inf, nextafter
from types import UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from crossopt.instances.files.saved import NEWEST
from crossopt.solvers.proofs import Proof, Relaxed, Steps, Word

Status = Literal["OPTIMAL", "FEASIBLE", "INFEASIBLE", "UNKNOWN"]


Trace = tuple[tuple[float, float | None, float | None], ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """What an engine may spend, and how near is near enough."""

    seconds: float = float("inf")
    seed: int = 0
    gap: float = 0.0
    form: str = "strong"
    """How integer models are written (`formulation.codesign.forms`)."""
    workers: int = 1
    """Threads of their solvers."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an engine is."""

    words: str
    best: float | None
    """Value of the best design so far."""
    bound: float | None = None
    """No design is below this."""
    answer: Callable[[], Any] | None = field(default=None, compare=False, repr=False)
    """Gives the best design itself, for whoever wants to keep it."""


Watch = Callable[[Progress], None]


def unwatched(progress: Progress) -> None:
    """Nobody is told how far the work is."""
    del progress


STOPPED = ("complete", "interrupted", "time limit")
"""Why an engine may stop."""
A = TypeVar("A")
D = TypeVar("D")
Number = int | float
"""Seconds and prices are floats; costs that are whole stay whole."""


@dataclass(frozen=True, slots=True)
class Rival(Generic[A]):
    """Another answer beside the one that was found: by a rule, or by a narrower search."""

    name: str
    value: Number | None
    """As the judge sees it; None where there is no such answer within the limits."""
    answer: A | None = None
    note: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict(Generic[D]):
    """The judge's word on an answer."""

    value: Number
    violations: tuple[str, ...]
    """Rules that it breaks, in words."""
    details: D

    @property
    def accepted(self) -> bool:
        return not self.violations


@dataclass(frozen=True, slots=True)
class Found(Generic[A]):
    """What an engine found, before anybody believes it."""

    answer: A | None
    bound: Number | None = None
    """No answer is below this; infinite where there is none."""
    proof: Proof | None = None
    engine: str = "auto"
    stopped: str = "complete"
    reasons: tuple[str, ...] = ()
    """Why there is no answer."""
    notes: tuple[str, ...] = ()
    rivals: tuple[Rival[A], ...] = ()
    trace: Trace = ()
    value: Number | None = None
    """What the engine thinks that its answer costs, which the judge must find too; None to leave it to the judge."""
    parts: tuple["Result[A, Any]", ...] = ()
    """Answers to narrower questions, which this one rests on."""
    coarse: float = 0.0
    """A gap that the engine cannot tell from none: where a smaller one was asked, this is."""
    seconds: float | None = None
    """Until this was known, where rivals are asked after it."""
    uncounted: float = 0.0
    """Seconds of loading code, which are not told among those of an answer; time limits count them."""
    solver: str = ""
    """Name and version of a solver that was asked, as which it is told among the versions."""


@dataclass(frozen=True, slots=True)
class Result(Generic[A, D]):
    """An answer with its proof."""

    kind: str
    question: dict[str, Any]
    """Its name, its unit, and all that is needed to ask it again."""
    engine: str
    status: Status
    stopped: str
    value: Number | None
    bound: Number | None
    gap: float | None
    """(value - bound) / value."""
    gap_asked: float
    proved: bool
    proof: Proof | None
    answer: A | None
    details: D | None
    """What the judge says of the answer beside its value."""
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    rivals: tuple[Rival[A], ...]
    parts: tuple["Result[A, D]", ...]
    """Answers to narrower questions, which this one rests on: each a result of its own."""
    trace: Trace
    """Seconds, best value and bound, whenever one of them changed."""
    seconds: float
    seed: int
    versions: dict[str, str]

    @property
    def proved_by(self) -> str:
        return self.proof.by if self.proof else ""

    @property
    def told(self) -> bool:
        """Whether somebody says more than anybody can show again."""
        return is_told(self.proof, self.parts)

    @property
    def optimal(self) -> bool:
        """Whether it is proved, or somebody says, that nothing is better at all."""
        return self.status == "OPTIMAL" or (self.settled and self.gap == 0.0)

    @property
    def settled(self) -> bool:
        """Whether it is proved, or somebody says as much: that the answer is as good as was asked, or that there is none."""
        near = self.value is None or (self.gap is not None and self.gap <= self.gap_asked)
        return self.proved or (self.proof is not None and self.told and near)


def is_told(proof: Proof | None, parts: "Sequence[Result[Any, Any]]") -> bool:
    """Whether a proof, or one of the answers that it rests on, is somebody's word."""
    own = isinstance(proof, Word | Relaxed) or (isinstance(proof, Steps) and proof.told)
    return own or any(part.told for part in parts)


def to_text(result: "Result[A, D]") -> str:
    """The result as JSON text."""
    return json.dumps({"format": NEWEST, **asdict(result)}, indent=2, allow_nan=False) + "\n"


def result_in(data: object, answer: type[A], details: type[D]) -> "Result[A, D]":
    """The result in plain data; a ValueError in words if it is none."""
    if not isinstance(data, dict) or data.get("format") != NEWEST:
        raise ValueError(f"this is no result of format {NEWEST} (solve the question again: `crossopt solve FILE --out RESULT.json`)")
    found: Result[A, D] = record(Result, {key: value for key, value in data.items() if key != "format"}, "", {"A": answer, "D": details})
    return found


def in_words(progress: Progress, unit: str) -> str:
    """How far an engine is, on one line."""
    best = "nothing yet" if progress.best is None else f"best {progress.best:.5g} {unit}"
    return f"{progress.words}  {best}{_gap(progress)}"


def _gap(progress: Progress) -> str:
    """How far the best is above the bound."""
    if progress.best is None or progress.bound is None:
        return ""
    return f"  gap {(progress.best - progress.bound) / progress.best:.2%}" if progress.best else ""


def gap_between(value: float, bound: float) -> float:
    """(value - bound) / value, and 0 for a value of 0."""
    return (value - bound) / value if value else 0.0


def status_of(value: float | None, bound: float | None, proved: bool) -> Status:
    """The only status that a value, a bound and a proof leave: an optimum is proved without any gap."""
    if value is None:
        return "INFEASIBLE" if proved else "UNKNOWN"
    return "OPTIMAL" if proved and value == bound else "FEASIBLE"


def record(kind: Any, data: object, path: str, types: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 - one reading for every dataclass of a result
    """The dataclass in plain data, with every key there, none beside them and every value of its type; `types` are a family's own."""
    hints = _fields_of(kind)
    if not isinstance(data, dict):
        raise ValueError(f"{path.rstrip('.')}: a mapping is needed")
    if wrong := sorted(hints.keys() ^ data.keys()):
        raise ValueError(f"{path}{wrong[0]}: this key is {'unknown' if wrong[0] in data else 'missing'}")
    return kind(**{name: _typed(hint, data[name], f"{path}{name}", types or {}) for name, hint in hints.items()})


@cache
def _fields_of(kind: Any) -> dict[str, Any]:  # noqa: ANN401
    """The types of a dataclass by the names of its fields, which take longer to find than most values to read."""
    return get_type_hints(kind)


def _typed(hint: Any, value: object, path: str, types: Mapping[str, Any]) -> Any:  # noqa: ANN401 - one reading for every type of a field
    """The value as a field of this type holds it; a ValueError that names the place if it is none."""
    hint = types.get(hint.__name__, hint) if isinstance(hint, TypeVar) else hint
    origin, inner = get_origin(hint), get_args(hint)
    if origin is UnionType or origin is Union:
        return None if value is None and type(None) in inner else _typed(_one_of(inner, value, path), value, path, types)
    if is_dataclass(origin or hint):
        return record(origin or hint, value, f"{path}.", types)
    if origin is tuple and isinstance(value, list):
        if inner[-1] is not Ellipsis and len(value) != len(inner):
            raise ValueError(f"{path}: {len(inner)} items are needed")
        hints = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(_typed(one, item, f"{path}[{place}]", types) for place, (one, item) in enumerate(zip(hints, value, strict=True)))
    if not _is(hint, value):
        raise ValueError(f"{path}: {str(value)[:40]!r} is no {_KINDS.get(origin or hint, 'known word')}")
    return float(value) if hint is float else value  # type: ignore[arg-type]


def _one_of(inner: tuple[Any, ...], value: object, path: str) -> Any:  # noqa: ANN401
    """Which of several types a value has: whole numbers are told from others, and dataclasses by their form."""
    options = [one for one in inner if one is not type(None)]
    if set(options) == {int, float}:
        return int if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _WHOLE else float
    if len(options) == 1:
        return options[0]
    forms = _by_form(tuple(options))
    form = value.get("form") if isinstance(value, dict) else None
    if not isinstance(form, str) or form not in forms:
        raise ValueError(f"{path}.form: {str(form)[:40]!r} is none of {', '.join(forms)}")
    return forms[form]


@cache
def _by_form(kinds: tuple[Any, ...]) -> dict[str, Any]:
    """Dataclasses by the word that their field `form` always holds."""
    return {get_args(_fields_of(one)["form"])[0]: one for one in kinds}


def _is(hint: Any, value: object) -> bool:  # noqa: ANN401
    """Whether a value of JSON is of this type; infinite figures and whole ones too large for a float are none."""
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _GREATEST
    return isinstance(value, get_origin(hint) or hint) and (hint is not int or not isinstance(value, bool))


_GREATEST, _WHOLE = 1.7e308, 1 << 63
_KINDS = {dict: "mapping", list: "list", tuple: "list", str: "text", int: "whole number", float: "finite number", bool: "true or false"}


ROUNDING = 1e-9
"""The share by which two ways to compute a value may differ, since they add up and multiply in another order: a hundred thousand operations
lose less than 1e-10. What is more is another value, not another rounding."""


def less_rounding(figure: float) -> float:
    """A bound by figures of which each may be off by rounding, and so may the value that it is a bound of."""
    return nextafter(figure - 2.0 * ROUNDING * abs(figure), -inf)


def is_proved(value: float | None, bound: float | None, gap: float) -> bool:
    """Whether the bound is as near to the value as this, or says that there is no value."""
    if value is None or bound is None:
        return value is None and bound == float("inf")
    return gap_between(value, bound) <= gap


def answer_status(value: float | None, bound: float | None, proved: bool, least_gap: float) -> "Status":
    """OPTIMAL where it is proved that nothing is better by more than rounding, which is the least gap that means anything."""
    if proved and value is not None and bound is not None and gap_between(value, bound) <= least_gap:
        return "OPTIMAL"
    return status_of(value, None if bound == value else bound, proved)


def versions(solver: str = "") -> dict[str, str]:
    """Of what an answer may depend on."""
    return {**_installed(), **({"solver": solver} if solver else {})}


@cache
def _installed() -> dict[str, str]:
    """Read once, as it takes longer than a small question does."""
    from importlib.metadata import version  # noqa: PLC0415 - slow, and only what is written down says it
    from platform import python_version  # noqa: PLC0415

    return {"crossopt": version("crossopt"), "numpy": version("numpy"), "python": python_version()}


def rival_faults(bound: float | None, rivals: Sequence[Rival[Any]]) -> list[str]:
    """Plans beside the answer that its bound denies; an infinite bound denies every plan."""
    if bound is None:
        return []
    beaten = [(rival.name, rival.value) for rival in rivals if rival.value is not None and rival.value < bound]
    denied = "that nothing is possible" if bound == float("inf") else f"that none is below {bound!r}"
    return [f"bound: {name!r} takes {value!r}, the result says {denied}" for name, value in beaten]


def denied_below(result: "Result[Any, Any]") -> float | None:
    """Below what a result says that nothing is: infinite where it says that nothing is possible."""
    return float("inf") if result.settled and result.value is None else result.bound
