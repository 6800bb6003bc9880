"""What an engine answers: a design, its evaluation, the certificate, and how it was found; as JSON both ways."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from crossflow.evaluate import Evaluation

Status = Literal["OPTIMAL", "FEASIBLE", "INFEASIBLE", "UNKNOWN"]

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Space:
    """How many designs the question allows and how they fare."""

    designs: int
    """Plans that are plans, times hardware points."""
    feasible: int
    """Designs that keep every limit."""
    ties: int
    """Designs with the very value of the best one, itself included."""
    within_1_percent: int
    within_5_percent: int
    unbuilt: int
    """Hardware points that lack cores, memory or links; their designs count as infeasible."""
    hardware_points: int
    plans: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """A limit that designs break: how many keep it, and the least that any design needs of it over what there is."""

    limit: str
    kept_by: int
    least_share: float | None
    """1 or less if some design keeps it; None where there is nothing to measure."""


@dataclass(frozen=True, slots=True)
class Rival:
    """What a rule without proof would have chosen."""

    name: str
    value: float | None
    """None where the rule finds no design that keeps the limits."""
    design: dict[str, Any] | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """An answer with its proof."""

    instance: dict[str, Any]
    """Name, objective and the text of the question."""
    engine: str
    status: Status
    stopped: str
    """Why the engine stopped: `complete`, `interrupted` or `time limit`."""
    value: float | None
    """Objective of the design, as the full model prices it."""
    bound: float | None
    """No design of the question can be below this."""
    gap: float | None
    """(value - bound) / value."""
    proved: bool
    proved_by: str
    checks: tuple[str, ...]
    """What was verified, in words."""
    design: dict[str, Any] | None
    evaluation: dict[str, Any] | None
    space: Space | None
    conflicts: tuple[Conflict, ...] = ()
    rivals: tuple[Rival, ...] = ()
    trace: tuple[tuple[float, float | None, float | None], ...] = ()
    """Seconds, best value and bound, whenever one of them changed."""
    seconds: float = 0.0
    seed: int = 0
    versions: dict[str, str] = field(default_factory=dict)


def to_json(result: Result) -> dict[str, Any]:
    """The result as plain data."""
    return {"format": FORMAT, **asdict(result)}


def from_json(data: object) -> Result:
    """The result in plain data; a ValueError in words if it is none."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise ValueError(f"this is no result of format {FORMAT} (write one with `crossopt solve FILE --out RESULT.json`)")
    given = {key: value for key, value in data.items() if key != "format"}
    try:
        if given.get("space") is not None:
            given["space"] = Space(**given["space"])
        given["conflicts"] = tuple(Conflict(**item) for item in given["conflicts"])
        given["rivals"] = tuple(Rival(**item) for item in given["rivals"])
        given["checks"] = tuple(given["checks"])
        given["trace"] = tuple((float(at), best, bound) for at, best, bound in given["trace"])
        return Result(**given)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"this result is not complete: {error}") from error


def evaluation_json(evaluation: Evaluation) -> dict[str, Any]:
    """An evaluation as plain data, with what follows from it."""
    limits = [{**asdict(limit), "kept": limit.kept} for limit in evaluation.limits]
    plain = {name: getattr(evaluation, name) for name in _PLAIN}
    return {
        **plain,
        "tokens_per_second": evaluation.tokens_per_second,
        "breakdown": dict(evaluation.breakdown),
        "memory": dict(evaluation.memory),
        "limits": limits,
        "feasible": evaluation.feasible,
        "binding": list(evaluation.binding),
    }


_PLAIN = ("step_time", "energy", "average_power", "power", "die_area", "cost", "flops", "tokens", "utilisation")
