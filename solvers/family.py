"""A kind of question, and the one way from a question to a result: ask an engine, judge its answer, certify.

A family brings only what is its own; what all families do is written here and in `solvers.checking` once. For a new one see CONTRIBUTING.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from crossopt.crossflow.records import dataclass
from crossopt.instances.errors import FailedError, ModelError, RefusedError, VerificationError
from crossopt.instances.kinds import KINDS
from crossopt.solvers.answer import (
    ROUNDING,
    STOPPED,
    Baseline,
    Limits,
    Number,
    Progress,
    Result,
    SearchOutcome,
    Trace,
    Verdict,
    Watch,
    answer_status,
    baseline_faults,
    gap_between,
    is_proved,
    is_unverified,
    less_rounding,
    versions,
)

if TYPE_CHECKING:
    from crossopt.formulation.vipr import IntegerProof

_AT_ONCE = 0.2
"""Seconds for the simplest rule, after a search was ended."""


class Question(Protocol):
    """What every question has."""

    @property
    def name(self) -> str: ...
    @property
    def document(self) -> dict[str, Any]: ...


Q = TypeVar("Q", bound=Question)
A = TypeVar("A")
D = TypeVar("D")
Engine = Callable[[Q, Limits, Watch], SearchOutcome[A]]
Judge = Callable[[Q, A], Verdict[D]]


@dataclass(frozen=True, slots=True)
class Proved:
    """What a check did about a bound, and why it does not hold; told where it is somebody's word."""

    checked: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    unverified: bool = False
    by: str = ""
    """What such a proof is called, with its figures; empty where only an engine knows."""


def as_it_is(question: Any, bound: Number) -> Number:  # noqa: ANN401 - any question
    """A bound of which rounding takes nothing."""
    del question
    return bound


def keep_all(question: Any) -> dict[str, Any]:  # noqa: ANN401 - any question
    """What a result says of a question beside its document: nothing."""
    del question
    return {}


def no_parts(question: Any) -> tuple[Any, ...]:  # noqa: ANN401 - any question
    """A question whose answer rests on no others."""
    del question
    return ()


def own_name(question: Any, part: Any) -> str:  # noqa: ANN401 - any question
    """Parts of different names."""
    del question
    return str(part.name)


def no_faults(question: Any, saved: Any, judge: Any) -> tuple[str, ...]:  # noqa: ANN401 - of any kind
    """Nothing but what is checked of every kind."""
    del question, saved, judge
    return ()


def no_tree(question: Any, saved: Any) -> None:  # noqa: ANN401 - of any kind
    """Proofs that are no trees about an integer model."""
    del question, saved


def found_alone(question: Any, found: SearchOutcome[A], limits: Limits) -> SearchOutcome[A]:  # noqa: ANN401 - any question
    """An answer that rests on no others."""
    del question, limits
    return found


def no_fallback(question: Any, deadline: float) -> None:  # noqa: ANN401 - any question
    """No rule is so simple."""
    del question, deadline


@dataclass(frozen=True, slots=True)
class ProblemType(Generic[Q, A, D]):
    """All that one kind of question brings."""

    kind: str
    what: str
    """What an answer is called in messages: plan, placement, design."""
    unit: str
    """Of the value, where a question does not say another."""
    answer: type[A]
    """Read back from JSON by its annotations; likewise the details."""
    details: type[D]
    """What the judge says of an answer beside its value."""
    engines: Mapping[str, Engine[Q, A]]
    """The first one is asked where none is named."""
    judge: Judge[Q, A, D]
    """Shares nothing with the engines; a ValueError in words where an answer is none of the question."""
    judged: str
    """What the judge looks at."""
    prove: Callable[[Q, Result[A, D], Watch], Proved]
    """The bound carried out anew, or whose word it is. It imports no engine and no solver."""
    cross_check: Callable[[Q, Result[A, D], Watch], Proved] | None = None
    """A bound that is somebody's word held against what an engine of ours proves."""
    parts: Callable[[Q], tuple[Q, ...]] = no_parts
    """The narrower questions that an answer may rest on, in the order of its parts."""
    part_name: Callable[[Q, Q], str] = own_name
    """What sets a part of a question apart from the others in messages."""
    faults: Callable[[Q, Result[A, D], Judge[Q, A, D]], Sequence[str]] = no_faults
    """What else of a result is other than its question says, such as baselines that anybody can find again, and the judge prices."""
    proof_labels: frozenset[str] = frozenset()
    """What its proofs are called, with N for each number; empty where `faults` looks at that."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other names of engines."""
    searching: frozenset[str] = frozenset()
    """Engines that go on for as long as they may, and so have five seconds where studies and sweeps give no limit."""
    seeded: frozenset[str] = frozenset()
    """Engines whose way depends on a seed."""
    described: Callable[[Q], dict[str, Any]] = keep_all
    quick: Callable[[Q, float], A | None] = no_fallback
    """An answer by the simplest of rules, before a deadline of the monotonic clock, for who was ended before there was any."""
    with_parts: Callable[[Q, SearchOutcome[A], Limits], SearchOutcome[A]] = found_alone
    """An answer that was told on the way, with the narrower answers that it rests on."""
    least_gap: float = 0.0
    """What rounding may lose: a smaller gap is none."""
    integer_proof: Callable[[Q, Result[A, D]], "IntegerProof | None"] = no_tree
    """The integer model that proves a bound, with its tree; None where a proof is another one, and a ValueError where it is none."""
    lowered: Callable[[Q, Number], Number] = as_it_is
    """A bound less what its sums of floating-point numbers may be off."""
    summing: float = 0.0
    """The share by which sums in another order differ: a bound that is above a value by no more is that value."""


def family_of(kind: str) -> ProblemType[Any, Any, Any]:
    """The family that answers questions of this kind."""
    found: ProblemType[Any, Any, Any] = import_module(KINDS[kind].family).FAMILY
    return found


def lazy_import(module: str, name: str) -> Callable[..., Any]:
    """A function that is imported when it is first called, so that a check loads no engine."""

    def called(*arguments: Any) -> Any:  # noqa: ANN401 - whatever the function takes and gives
        return getattr(import_module(module), name)(*arguments)

    return called


def described(family: ProblemType[Q, A, D], question: Q) -> dict[str, Any]:
    """What a result says of its question: enough to ask it again."""
    return {"name": question.name, "unit": family.unit, **family.described(question), **question.document}


def unit_of(family: ProblemType[Q, A, D], question: Q) -> str:
    """Of the value of an answer to a question, empty where it has none."""
    return str(described(family, question)["unit"])


def _run_engine(
    name: str, ask: Callable[[Watch], SearchOutcome[A]], watch: Watch, simplest: bool, whole: Callable[[SearchOutcome[A]], SearchOutcome[A]]
) -> SearchOutcome[A]:
    """What an engine finds, or the best that it told before it came to an end: an interrupt, a solver that failed, too little memory.

    An interrupt before it told any goes on, unless the simplest rule is asked then.
    """
    told: list[Callable[[], A | None]] = []

    def see(progress: Progress) -> None:
        if progress.answer is not None and progress.best is not None:
            told[:] = [progress.answer]
        watch(progress)

    try:
        return ask(see)
    except KeyboardInterrupt:
        if not told and not simplest:
            raise
        return whole(SearchOutcome(told[0]() if told else None, engine=name, stopped="interrupted"))
    except (FailedError, MemoryError) as error:
        answer = told[0]() if told else None
        if answer is None:
            raise
        words = str(error) or "there is not enough memory"
        return whole(SearchOutcome(answer, engine=name, stopped="interrupted", notes=(f"the engine {name} ended early: {words}",)))


def quick_answer(family: ProblemType[Q, A, D], question: Q, seconds: float = _AT_ONCE) -> A | None:
    """What the simplest rule answers at once, where the judge accepts it."""
    try:
        answer = family.quick(question, monotonic() + seconds)
        return answer if answer is not None and not family.judge(question, answer).violations else None
    except (Exception, KeyboardInterrupt):  # noqa: BLE001 - whatever a rule of last resort meets, how the search ended is what counts
        return None


def simplest_of(family: ProblemType[Q, A, D], question: Q) -> Callable[[str], Any]:
    """The simplest rule, for who is interrupted; a time limit without an answer is kept as it is."""
    return lambda stopped: quick_answer(family, question) if stopped == "interrupted" else None


def no_op() -> None:
    """Nobody wants to know that an engine ended."""


def solve(
    family: ProblemType[Q, A, D],
    question: Q,
    engine: str,
    limits: Limits,
    watch: Watch,
    ending: Callable[[], None] = no_op,
    simplest: Callable[[str], A | None] | None = None,
) -> Result[A, D]:
    """Ask, judge, certify: the only place where a result is made.

    `ending` is called between engine and judge; where nothing was found before the end, `simplest` may answer, which is told why it ended.
    """
    began, ask = monotonic(), engine_of(family, engine)

    def whole(found: SearchOutcome[A]) -> SearchOutcome[A]:
        return family.with_parts(question, found, limits)

    found = _run_engine(family.aliases.get(engine, engine), lambda seen: ask(question, limits, seen), watch, simplest is not None, whole)
    if simplest and found.answer is None and found.stopped != "complete" and found.bound is None:
        found = whole(replace(found, answer=simplest(found.stopped)))
    if found.engine == "auto":  # it did not say who it is
        found = replace(found, engine=family.aliases.get(engine, engine))
    if found.stopped == "interrupted" and monotonic() - began >= limits.seconds:
        found = replace(found, stopped="time limit")  # whoever ended it did so for that
    seconds = monotonic() - began - found.uncounted if found.seconds is None else found.seconds
    ending()
    return certify(family, question, found, limits, seconds)


def engine_of(family: ProblemType[Q, A, D], name: str) -> Engine[Q, A]:
    """The engine of that name; a RefusedError in words where there is none."""
    name = family.aliases.get(name, name)
    if name not in family.engines:
        raise RefusedError(f"the engine {name!r} answers no question of kind {family.kind} (one of {', '.join(family.engines)})")
    return family.engines[name]


def certify(family: ProblemType[Q, A, D], question: Q, found: SearchOutcome[A], limits: Limits, seconds: float) -> Result[A, D]:
    """The judge's value of what was found, and how far the bound, lowered by what sums may lose, is below it."""
    verdict = None if found.answer is None else _accepted(family, question, found.answer)
    value = verdict.value if verdict else None
    found = replace(found, value=None) if found.stopped == "interrupted" else found  # one line may know an answer, the next what it costs
    baselines = tuple(judge_baseline(family.judge, question, baseline) for baseline in found.baselines)
    values = (value, *(baseline.value for baseline in baselines))
    bound = None if found.bound is None else _snap_bound_to_value(family, family.lowered(question, found.bound), values)
    if value is not None and bound is not None and bound > max(value, value if found.value is None else found.value):
        raise VerificationError(f"the judge finds {value!r} for the {family.what}, below the bound {bound!r}")
    if value is not None and found.value is not None and value != found.value:
        bound, found = _priced_by_the_judge(family, found, found.value, value, bound)
    if faults := baseline_faults(bound, baselines):
        raise VerificationError(faults[0])
    asked = max(limits.gap, found.coarse, family.least_gap)
    settled = is_proved(value, bound, asked)
    proved = settled and not is_unverified(found.proof, found.parts)
    told = None if value is None else bound
    _validate_engine_claim(family, found, claims=told is not None or settled)
    return Result(
        kind=family.kind,
        question=described(family, question),
        engine=found.engine,
        status=answer_status(value, bound, proved, family.least_gap),
        stopped=found.stopped,
        value=value,
        bound=told,
        gap=None if value is None or told is None else gap_between(value, told),
        gap_asked=asked,
        proved=proved,
        proof=found.proof if told is not None or settled else None,
        answer=found.answer,
        details=verdict.details if verdict else None,
        reasons=found.reasons if settled and value is None else (),
        notes=found.notes,
        baselines=baselines,
        parts=found.parts,
        trace=_within(_closed(found.trace, value, seconds), told),
        seconds=seconds,
        seed=limits.seed,
        versions=versions(found.solver),
    )


UNLIKE = "The judge and the engine differ: it is "
"""How the note begins that says so."""


def _priced_by_the_judge(
    family: ProblemType[Q, A, D], found: SearchOutcome[A], priced: Number, value: Number, bound: Number | None
) -> tuple[Number | None, SearchOutcome[A]]:
    """The bound that is left, and what was found with a note and a trace by the judge's value, where the engine has another one.

    A bound holds for values as the engine computes them, of which the judge's differ as they do here. By rounding they differ by no more
    than ROUNDING: the bound is lowered by that, and proves no optimum without a gap. Where they differ by more, none is left."""
    whole = isinstance(value, int) and isinstance(priced, int)  # of which nothing is rounded
    said = f"{UNLIKE}{value!r} for the {family.what} and not {priced!r}, as {found.engine} has"
    if whole or abs(value - priced) > ROUNDING * max(abs(value), abs(priced)):
        bound, said = None, f"{said}. That is more than rounding, so that the bound of the engine is not told (please report this)"
    elif bound is not None:
        bound = min(less_rounding(value if bound >= value * (1.0 - ROUNDING) else bound), value)
        said = f"{said}. The bound is lowered by what rounding may be"
    at_least = tuple((at, None if best is None else max(best, float(value)), below) for at, best, below in found.trace)
    return bound, replace(found, trace=at_least, notes=(*found.notes, said))


def _closed(trace: Trace, value: Number | None, seconds: float) -> Trace:
    """The way to an answer, with its end, where an interrupt came between an answer and the word of it."""
    if not trace or value is None or trace[-1][1] == value:
        return trace
    at, _, bound = trace[-1]
    return (*trace, (max(at, seconds), float(value), bound))


def _within(trace: Trace, bound: Number | None) -> Trace:
    """The way to an answer with no bound above a later one or the one that is told: sums in another order may be above it in the last
    place, and so may the bound of a box that of its parts. None where none is told."""
    kept, least = [], None if bound is None else float(bound)
    for at, value, below in reversed(trace):
        least = least if least is None or below is None else min(below, least)
        kept.append((at, value, None if below is None else least))
    return tuple(reversed(kept))


def _validate_engine_claim(family: ProblemType[Q, A, D], found: SearchOutcome[A], claims: bool) -> None:
    """A VerificationError where an engine says what no check would accept: a name that it has not, or a bound that nothing proves."""
    if found.engine not in family.engines:
        raise VerificationError(f"an engine of kind {family.kind} calls itself {found.engine!r} (one of {', '.join(family.engines)})")
    if found.stopped not in STOPPED:
        raise VerificationError(
            f"the engine {found.engine} of kind {family.kind} stopped for {found.stopped!r} (one of {', '.join(STOPPED)})"
        )
    if claims and found.proof is None:
        raise VerificationError(f"the engine {found.engine} of kind {family.kind} tells a bound and does not say what proves it")


def _snap_bound_to_value(family: ProblemType[Q, A, D], bound: Number, values: tuple[Number | None, ...]) -> Number:
    """The bound, or the least of the values below it that only sums in another order put there."""
    if not family.summing:
        return bound
    return min([bound, *(value for value in values if value is not None and bound * (1.0 - family.summing) <= value < bound)])


def _accepted(family: ProblemType[Q, A, D], question: Q, answer: A) -> Verdict[D]:
    """The judge's word; a VerificationError where the answer breaks a rule."""
    try:
        verdict = family.judge(question, answer)
    except ModelError:
        raise
    except ValueError as error:
        raise VerificationError(f"the {family.what} found is none of the question: {error}") from error
    if verdict.violations:
        raise VerificationError(f"the {family.what} found breaks a rule: {'; '.join(verdict.violations)}")
    return verdict


def judge_baseline(judge: Judge[Q, A, D], question: Q, baseline: Baseline[A]) -> Baseline[A]:
    """A baseline with the judge's value of its answer, or the first rule that it breaks."""
    if baseline.answer is None:
        return baseline
    verdict = judge(question, baseline.answer)
    note = "; ".join([*([baseline.note] if baseline.note else []), *verdict.violations[:1]])
    return Baseline(baseline.name, None if verdict.violations else verdict.value, baseline.answer, note, baseline.seconds)
