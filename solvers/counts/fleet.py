"""Fleets of several kinds of devices as a problem type: answers, their judge in exact fractions, and bounds counted anew."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf
from typing import Final

from crossopt.formulation.certificate import Leaf, Step, bound_of_tree, integer_form, unpacked
from crossopt.formulation.fleet import bound_of_fleets, prices_of, scaled, slice_model, worth_of
from crossopt.instances.counts.fleet import FleetQuestion
from crossopt.instances.files.units import exact
from crossopt.solvers.answer import Progress, Result, Verdict, Watch
from crossopt.solvers.family import ProblemType, Proved, lazy_import, rules_of
from crossopt.solvers.proofs import Integers

_FEW = 4
"""Classes that a reason names."""

BY_PRICES: Final = "a tree of branches on counts, with prices of requests"
BY_TREE: Final = "a tree of branches in whole numbers"
MOST_STEPS, LARGEST_SCALE = 500_000, 128
"""Steps of a tree, and bits of a scale."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Devices by kind, and the share of each class that they serve, as exact fractions such as 1/3."""

    devices: dict[str, int]
    shares: dict[str, dict[str, str]]
    """By class, then by kind."""


@dataclass(frozen=True, slots=True)
class FleetUse:
    """What the judge says of a fleet beside its cost."""

    devices: int
    busy: dict[str, float]
    """By kind, the devices that all their requests keep busy."""
    utilization: float
    """Share of all devices that is busy, weighted by price."""
    cost_per_million: float
    """USD per million requests."""
    achieved: float | None = None
    """Share of the peak of all devices, each in its fastest format, that multiply-adds reach; None without networks."""


_MOST_DEVICES: Final = 10**15


def judge(question: FleetQuestion, answer: Fleet) -> Verdict[FleetUse]:
    """Cost an hour, and broken limits; a ValueError where devices or shares are none of the question."""
    places = {name: index for index, name in enumerate(question.kinds)}
    if not answer.devices or any(name not in places or count < 1 for name, count in answer.devices.items()):
        raise ValueError("devices are counted from 1 on, by kinds of the question")
    if max(answer.devices.values()) > _MOST_DEVICES:
        raise ValueError(f"no fleet has more than {_MOST_DEVICES:,} devices of a kind")
    if answer.shares.keys() != set(question.classes):
        raise ValueError("every class with requests needs its shares")
    busy = {name: Fraction(0) for name in answer.devices}
    violations = list[str]()
    for name, load, rates in zip(question.classes, question.loads, question.rates, strict=True):
        shares = {kind: _fraction(text) for kind, text in answer.shares[name].items()}
        for kind, share in shares.items():
            if kind not in busy or not rates[places[kind]]:
                raise ValueError(f"no device of kind {kind!r} serves the class {name}")
            busy[kind] += share * load / rates[places[kind]]
            if question.file.slices is not None and question.file.slices % share.denominator:
                violations.append(f"{kind} serves {share} of {name}, which is no whole number of {question.file.slices} slices")
        if (total := sum(shares.values(), start=Fraction(0))) != 1:
            violations.append(f"{total} of the class {name} is served")
    violations += _violations(question, answer, busy)
    units = sum(question.prices[places[name]] * count for name, count in answer.devices.items())
    spent = sum((question.prices[places[name]] * amount for name, amount in busy.items()), start=Fraction(0))
    allowed = exact(question.file.utilization)
    hourly = 3600 * sum(question.loads, start=Fraction(0))
    paid = sum((exact(question.file.devices[name].price) * count for name, count in answer.devices.items()), start=Fraction(0))
    use = FleetUse(
        devices=sum(answer.devices.values()),
        busy={name: float(amount * allowed) for name, amount in busy.items()},
        utilization=float(spent * allowed / units),
        cost_per_million=float(paid * 10**6 / hourly),
        achieved=_achieved(question, answer),
    )
    return Verdict(question.cost(units), tuple(violations), use)


def _achieved(question: FleetQuestion, answer: Fleet) -> float | None:
    """FLOPs of all networks in a second, over the peak of the devices."""
    if set(question.work) != set(question.classes):
        return None
    done = sum(float(load) * question.work[name] for name, load in zip(question.classes, question.loads, strict=True))
    return done / sum(question.peaks[name] * count for name, count in answer.devices.items())


def _fraction(text: str) -> Fraction:
    """A share above 0, written in the only way that it is."""
    if len(text) > 10_000 or not text.replace("/", "", 1).isdecimal():
        raise ValueError(f"{text[:40]!r} is no share")
    numerator, _, denominator = text.partition("/")
    found = Fraction(int(numerator), int(denominator or 1)) if int(denominator or 1) else Fraction(0)
    if str(found) != text or not 0 < found <= 1:
        raise ValueError(f"{text[:40]!r} is no share above 0 and up to 1 in lowest terms")
    return found


def _violations(question: FleetQuestion, answer: Fleet, busy: Mapping[str, Fraction]) -> Iterator[str]:
    limits = dict(zip(question.kinds, question.limits, strict=True))
    for name, count in answer.devices.items():
        limit = limits[name]
        if busy[name] > count:
            yield f"{count} devices of kind {name} serve less than is sent to them, which takes {float(busy[name]):.9g}"
        if limit is not None and count > limit:
            yield f"{count} devices of kind {name} are more than the {limit} available"


def _clash_of(question: FleetQuestion, leaf: Leaf) -> str:
    """Which classes ask for more than all available devices serve, by the prices that prove it."""
    form = scaled(question)
    prices = prices_of(form, leaf)
    asked = sum(price * load for price, load in zip(prices, form.loads, strict=True))
    served = sum(worth * most for worth, most in zip(worth_of(form, prices), question.most, strict=True))
    names = [name for name, price in zip(question.classes, prices, strict=True) if price]
    several = ", ".join(names[:_FEW]) + (f" and {len(names) - _FEW} more classes" if len(names) > _FEW else "")
    percent = ceil(Fraction(served, asked) * 1_000) / 10
    return f"available: all devices together serve at most {percent:g} % of the requests of {several}"


def reasons_of(question: FleetQuestion, saved: Result[Fleet, FleetUse]) -> tuple[str, ...] | None:
    """Why no fleet serves the classes, by the tree that proves it."""
    if not isinstance(saved.proof, Integers):
        return None
    if saved.proof.by == BY_TREE:
        return (slices_reason(question),)
    return (reason_of(question, unpacked(saved.proof.scale, saved.proof.steps).steps[0]),)


def slices_reason(question: FleetQuestion) -> str:
    """Why no fleet serves the classes in slices, though another split does."""
    return f"slices: other splits serve all requests, {question.file.slices} equal parts of each class do not"


def reason_of(question: FleetQuestion, step: Step) -> str:
    """Why no fleet serves the classes, by the first step of the tree that proves it."""
    return _clash_of(question, step) if isinstance(step, Leaf) else "available: all devices together do not serve all classes"


def prove(question: FleetQuestion, saved: Result[Fleet, FleetUse], watch: Watch) -> Proved:
    """Count the tree anew, in whole numbers: with prices of requests, or about the integer model of slices."""
    proof = saved.proof
    if not isinstance(proof, Integers):
        return Proved((), ("proof: bounds on fleets are proved by a tree",))
    by = BY_TREE if question.file.slices is not None and proof.by == BY_TREE else BY_PRICES
    watch(Progress("the tree", None))
    try:
        units = _units_of(question, proof, by)
    except (ValueError, OverflowError) as error:
        return Proved((), (f"proof: {error}",))
    shown, said = inf if units is None else question.cost(units), inf if saved.bound is None else saved.bound
    fault = f"bound: its proof shows {shown!r} {_unit_of(question)}, the result claims {said!r}"
    done = f"a tree of {len(proof.steps):,} steps was counted anew in whole numbers"
    return Proved((done,), () if said <= shown else (fault,), by=by)


def _units_of(question: FleetQuestion, proof: Integers, by: str) -> int | None:
    """The bound that a proof shows, in units of cost; None where it shows that no fleet serves all."""
    if len(proof.steps) > MOST_STEPS or proof.scale.bit_length() > LARGEST_SCALE:
        raise ValueError("the tree is larger than the limit of `check`")
    tree = unpacked(proof.scale, proof.steps)
    if by == BY_PRICES:
        return bound_of_fleets(scaled(question), tree)
    return bound_of_tree(integer_form(slice_model(question, inner=False).model), tree)


def _unit_of(question: FleetQuestion) -> str:
    return "USD/h" if question.file.objective == "cost" else "TFLOP/s"


_ENGINES = "crossopt.solvers.counts.fleet_engines"
FAMILY: ProblemType[FleetQuestion, Fleet, FleetUse] = ProblemType(
    kind="fleet",
    what="fleet",
    unit="USD/h",
    answer=Fleet,
    details=FleetUse,
    engines={name: lazy_import(_ENGINES, name) for name in ("auto", "tree", "slices", "cheapest")},
    judge=judge,
    judged="shares, load and number of devices of each kind",
    prove=prove,
    reasons=reasons_of,
    rules=rules_of(lazy_import("crossopt.solvers.counts.rules", "rules_of_fleet"), "tree", "slices"),
    proof_labels=frozenset({BY_PRICES, BY_TREE}),
    provers={BY_PRICES: ("tree", "slices"), BY_TREE: ("slices",)},
    reporting=(),
    described=lambda question: {"unit": _unit_of(question)},
)
