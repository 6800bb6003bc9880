"""Problem types, and the only way from a question to a result: run an engine, judge its answer, certify.

A family brings only what is its own; what all families do is written here and in `solvers.checking` once. For a new one see CONTRIBUTING.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from importlib import import_module
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from crossopt.crossflow.records import dataclass
from crossopt.instances.errors import FailedError, ModelError, RefusedError, VerificationError
from crossopt.instances.files.units import nearest
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
"""Seconds for the fallback rule after a search was stopped."""


class Question(Protocol):
    """Attributes common to all questions."""

    @property
    def name(self) -> str: ...
    @property
    def document(self) -> dict[str, Any]: ...


Q = TypeVar("Q", bound=Question)
A = TypeVar("A")
D = TypeVar("D")
Engine = Callable[[Q, Limits, Watch], SearchOutcome[A]]
Judge = Callable[[Q, A], Verdict[D]]


NEVER = "(?!)"
"""Pattern of reasons of baselines that always have an answer."""
RIVAL = "engine "
"""Before the name of an engine whose answer a comparison keeps as a baseline."""


@dataclass(frozen=True, slots=True)
class BaselineName:
    """What baselines that take a search are called, and say."""

    name: str
    """A pattern, as are the others."""
    note: str = ""
    reason: str = NEVER
    """Note where there is no answer."""
    always: tuple[str, ...] = ()
    """Engines of which every search that comes to its end has it. With any entry it is there wherever another searched baseline is."""


def baseline_names(*names: str, note: str = "", reason: str = NEVER, always: tuple[str, ...] = ()) -> tuple[BaselineName, ...]:
    """Names with notes and reasons that they have in common."""
    return tuple(BaselineName(re.escape(name), note, reason, always) for name in names)


def no_names(question: Any) -> tuple[BaselineName, ...]:  # noqa: ANN401 - any question
    """No baselines that take a search."""
    del question
    return ()


def rules_of(found: Callable[[Q], Sequence[Baseline[A]]], *engines: str) -> Callable[[Q, Result[A, D]], Sequence[Baseline[A]] | None]:
    """Baselines by rules, which every answer of these engines has, and other results all of them or none."""

    def rules(question: Q, saved: Result[A, D]) -> Sequence[Baseline[A]] | None:
        needed = saved.answer is not None and saved.engine in engines
        present = any(not baseline.name.startswith(RIVAL) for baseline in saved.baselines)
        return found(question) if needed or present else None

    return rules


@dataclass(frozen=True, slots=True)
class Proved:
    """Outcome of a check of a bound: steps done, and faults; `unverified` if it rests on a claim."""

    checked: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    unverified: bool = False
    by: str = ""
    """Label of the proof with its figures; empty if only an engine knows it."""


def as_it_is(question: Any, bound: Number) -> Number:  # noqa: ANN401 - any question
    """A bound that needs no allowance for rounding."""
    del question
    return bound


def keep_all(question: Any) -> dict[str, Any]:  # noqa: ANN401 - any question
    """Additional fields of a question in results: none."""
    del question
    return {}


def no_parts(question: Any) -> tuple[Any, ...]:  # noqa: ANN401 - any question
    """Parts of a question that rests on no others: none."""
    del question
    return ()


def own_name(question: Any, part: Any) -> str:  # noqa: ANN401 - any question
    """Label of a part by its name."""
    del question
    return str(part.name)


def no_faults(question: Any, saved: Any, judge: Any) -> tuple[str, ...]:  # noqa: ANN401 - of any kind
    """Additional checks of a result: none."""
    del question, saved, judge
    return ()


def no_reasons(question: Any, saved: Any) -> None:  # noqa: ANN401 - of any kind
    """Reasons that take a search."""
    del question, saved


def no_tree(question: Any, saved: Any) -> None:  # noqa: ANN401 - of any kind
    """Proofs that are no trees about an integer model."""
    del question, saved


def found_alone(question: Any, found: SearchOutcome[A], limits: Limits) -> SearchOutcome[A]:  # noqa: ANN401 - any question
    """Outcome without parts, unchanged."""
    del question, limits
    return found


def no_fallback(question: Any, deadline: float) -> None:  # noqa: ANN401 - any question
    """No fallback rule."""
    del question, deadline


def no_floor(question: Any, figure: str) -> None:  # noqa: ANN401 - any question
    """The least of a figure takes a search."""
    del question, figure


def no_refusal(question: Any) -> str:  # noqa: ANN401 - any question
    """No reason against a front."""
    del question
    return ""


@dataclass(frozen=True, slots=True)
class FrontFigures(Generic[Q, D]):
    """Figures of answers, of which two have a Pareto front (`solvers.fronts`). Each is an objective, and may be limited."""

    example: str
    units: Callable[[Q], Mapping[str, str]]
    """Figures by name, with their units."""
    limits: Callable[[Q, str, str, float], list[str]]
    """Settings that limit a figure beside an objective, no looser than the question does."""
    keys: Mapping[str, tuple[str, ...]]
    """Beginnings of these settings for each figure by its name, in their order."""
    figure: Callable[[Q, D, str], float]
    """A figure by what a result says of its answer; nan where it has no price."""
    floor: Callable[[Q, str], float | None] = no_floor
    """A figure that no answer is below, where it is known without a search: a long front is thinned from there."""
    refusal: Callable[[Q], str] = no_refusal
    """Why there is no front of a question; empty where there is one."""


@dataclass(frozen=True, slots=True)
class ProblemType(Generic[Q, A, D]):
    """A problem type: everything specific to one kind of question."""

    kind: str
    what: str
    """Noun for an answer in messages: plan, placement, design."""
    unit: str
    """Unit of the value, unless the question states another."""
    answer: type[A]
    """Dataclass of answers, read from JSON by its annotations; likewise the details."""
    details: type[D]
    """Dataclass of the judge's details."""
    engines: Mapping[str, Engine[Q, A]]
    """Engines by name; the first one is the default."""
    judge: Judge[Q, A, D]
    """The judge, independent of the engines; a ValueError if the answer does not belong to the question."""
    judged: str
    """Short description of what the judge recomputes."""
    prove: Callable[[Q, Result[A, D], Watch], Proved]
    """Prover: repeats the proof of the bound, or reports it as unverified. It imports no engine and no solver."""
    cross_check: Callable[[Q, Result[A, D], Watch], Proved] | None = None
    """Prover for unverified bounds that compares them with an engine of our own."""
    parts: Callable[[Q], tuple[Q, ...]] = no_parts
    """Narrower questions on which an answer may rest, in the order of its parts."""
    part_name: Callable[[Q, Q], str] = own_name
    """Label of a part in messages."""
    faults: Callable[[Q, Result[A, D], Judge[Q, A, D]], Sequence[str]] = no_faults
    """What else of a result is other than its question says, such as baselines that anybody can find again, and the judge prices."""
    reasons: Callable[[Q, Result[A, D]], tuple[str, ...] | None] | None = None
    """Why nothing is feasible, by the question and a proof that was repeated, or None where that takes a search; no function where `prove`
    or `faults` compare these."""
    rules: Callable[[Q, Result[A, D]], Sequence[Baseline[A]] | None] | None = None
    """Baselines by rules that take no search, which a check carries out again; None where there is nothing to compare with."""
    searched: Callable[[Q], tuple[BaselineName, ...]] | None = None
    """Names of other baselines, beside those of engines that a comparison keeps. Without both fields `faults` checks them."""
    proof_labels: frozenset[str] = frozenset()
    """Labels of its proofs, with N for each number; empty if `faults` checks them."""
    provers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Engines of these labels, where others have none such."""
    reporting: tuple[str, ...] | None = None
    """Engines whose bounds may be those that a solver reports; None: all."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Aliases of engines."""
    searching: frozenset[str] = frozenset()
    """Anytime engines, which have five seconds in studies and sweeps without a limit."""
    seeded: frozenset[str] = frozenset()
    """Engines that depend on the seed."""
    parallel: frozenset[str] = frozenset()
    """Engines other than `milp` and `cpsat` that use several threads."""
    described: Callable[[Q], dict[str, Any]] = keep_all
    quick: Callable[[Q, float], A | None] = no_fallback
    """A fallback answer by the simplest rule before a deadline, for searches stopped without an answer."""
    with_parts: Callable[[Q, SearchOutcome[A], Limits], SearchOutcome[A]] = found_alone
    """Adds the results of parts to an intermediate answer."""
    front: FrontFigures[Q, D] | None = None
    """Figures of fronts, if it has such."""
    least_gap: float = 0.0
    """Smallest meaningful gap, given rounding."""
    integer_proof: Callable[[Q, Result[A, D]], "IntegerProof | None"] = no_tree
    """The integer model that proves a bound, with its tree; None where a proof is another one, and a ValueError where it is none."""
    lowered: Callable[[Q, Number], Number] = as_it_is
    """The bound lowered by the possible rounding error of its sums."""
    summing: float = 0.0
    """Relative error of reordered sums: a bound above a value by no more equals that value."""


def family_of(kind: str) -> ProblemType[Any, Any, Any]:
    """The problem type of this kind."""
    found: ProblemType[Any, Any, Any] = import_module(KINDS[kind].family).FAMILY
    return found


def lazy_import(module: str, name: str) -> Callable[..., Any]:
    """A function imported at its first call, so that a check loads no engine."""

    def called(*arguments: Any) -> Any:  # noqa: ANN401 - whatever the function takes and gives
        return getattr(import_module(module), name)(*arguments)

    return called


def described(family: ProblemType[Q, A, D], question: Q) -> dict[str, Any]:
    """The question as stored in a result, sufficient to solve it again."""
    return {"name": question.name, "unit": family.unit, **family.described(question), **question.document}


def unit_of(family: ProblemType[Q, A, D], question: Q) -> str:
    """Unit of the value for a question; empty if it has none."""
    return str(described(family, question)["unit"])


def _run_engine(
    name: str, ask: Callable[[Watch], SearchOutcome[A]], watch: Watch, simplest: bool, final: Callable[[SearchOutcome[A]], SearchOutcome[A]]
) -> SearchOutcome[A]:
    """Outcome of an engine, or its best intermediate answer if it was interrupted, failed, or ran out of memory.

    An interrupt before it told any goes on, unless the simplest rule is asked then.
    """
    latest, least = list[Progress](), inf

    def see(progress: Progress) -> None:
        nonlocal least
        if progress.answer is not None and progress.best is not None and progress.best <= least:
            latest[:], least = [progress], progress.best
        watch(progress)

    try:
        return ask(see)
    except KeyboardInterrupt:
        if not latest and not simplest:
            raise
        return final(incumbent_of(latest[0] if latest else None, name, "interrupted"))
    except (FailedError, MemoryError) as error:
        found: SearchOutcome[A] = incumbent_of(latest[0] if latest else None, name, "error")
        if found.answer is None:
            raise
        reason = str(error) or "there is not enough memory"
        return final(replace(found, notes=(f"the engine {name} ended early: {reason}",)))


def incumbent_of(progress: Progress | None, engine: str, stopped: str) -> SearchOutcome[Any]:
    """The incumbent of a report, with its bound where a proof comes with that; nothing without a report."""
    answer = progress.answer() if progress and progress.answer else None
    proof = progress.proof() if progress and progress.proof and answer is not None else None
    return SearchOutcome(answer, progress.bound if progress and proof is not None else None, proof, engine, stopped)


def quick_answer(family: ProblemType[Q, A, D], question: Q, seconds: float = _AT_ONCE) -> A | None:
    """The fallback answer, if the judge accepts it."""
    try:
        answer = family.quick(question, monotonic() + seconds)
        return answer if answer is not None and not family.judge(question, answer).violations else None
    except (Exception, KeyboardInterrupt):  # noqa: BLE001 - whatever a rule of last resort meets, how the search ended is what counts
        return None


def _best_baseline(family: ProblemType[Q, A, D], question: Q, found: SearchOutcome[A]) -> A | None:
    """The best of an engine's baselines that keep every limit."""
    judged = [judge_baseline(family.judge, question, baseline) for baseline in found.baselines]
    return min((one for one in judged if one.value is not None), key=lambda one: one.value or 0.0, default=Baseline[A]("", None)).answer


def simplest_of(family: ProblemType[Q, A, D], question: Q) -> Callable[[str], Any]:
    """The fallback rule, used after an interrupt; a time limit without an answer is reported as such."""
    return lambda stopped: quick_answer(family, question) if stopped == "interrupted" else None


def no_op() -> None:
    """No-op callback."""


def solve(
    family: ProblemType[Q, A, D],
    question: Q,
    engine: str,
    limits: Limits,
    watch: Watch,
    ending: Callable[[], None] = no_op,
    simplest: Callable[[str], A | None] | None = None,
) -> Result[A, D]:
    """Run an engine, judge its answer, and certify: the only place where a result is made.

    `ending` is called between engine and judge; where nothing was found before the end, the answer is the engine's best baseline, or that
    of `simplest`, which is told why it ended.
    """
    began, ask = monotonic(), engine_of(family, engine)

    def final(found: SearchOutcome[A]) -> SearchOutcome[A]:
        return family.with_parts(question, found, limits)

    found = _run_engine(family.aliases.get(engine, engine), lambda seen: ask(question, limits, seen), watch, simplest is not None, final)
    if found.answer is None and found.stopped != "complete" and (found.bound is None or abs(found.bound) < inf):
        answer = _best_baseline(family, question, found)
        found = final(replace(found, answer=simplest(found.stopped) if simplest and answer is None else answer))
    if found.engine == "auto":  # it did not say who it is
        found = replace(found, engine=family.aliases.get(engine, engine))
    if found.stopped == "interrupted" and monotonic() - began >= limits.seconds:
        found = replace(found, stopped="time limit")  # it was stopped for that reason
    seconds = monotonic() - began - found.uncounted if found.seconds is None else found.seconds
    ending()
    return certify(family, question, found, limits, seconds)


def engine_of(family: ProblemType[Q, A, D], name: str) -> Engine[Q, A]:
    """The engine of that name; a RefusedError if there is none."""
    name = family.aliases.get(name, name)
    if name not in family.engines:
        near = f"did you mean {guess[0]!r}? It is " if (guess := nearest(name, family.engines)) else ""
        raise RefusedError(f"the engine {name!r} answers no question of kind {family.kind} ({near}one of {', '.join(family.engines)})")
    return family.engines[name]


def certify(family: ProblemType[Q, A, D], question: Q, found: SearchOutcome[A], limits: Limits, seconds: float) -> Result[A, D]:
    """The result: the judge's value of the answer, and its gap to the bound, which is lowered by the rounding errors of sums. A
    VerificationError if the judge refuses the answer, or a check would refuse the bound.
    """
    verdict = None if found.answer is None else _accepted(family, question, found.answer)
    value = verdict.value if verdict else None
    found = replace(found, value=None) if found.stopped == "interrupted" else found  # one line may know an answer, the next what it costs
    baselines = tuple(judge_baseline(family.judge, question, baseline) for baseline in found.baselines)
    values = (value, *(baseline.value for baseline in baselines))
    bound = None if found.bound is None else _snap_bound_to_value(family, family.lowered(question, found.bound), values)
    if value is not None and bound is not None and bound > max(value, value if found.value is None else found.value):
        raise VerificationError(f"the judge finds {value!r} for the {family.what}, below the bound {bound!r}")
    if value is not None and found.value is not None and value != found.value:
        bound, found = _with_judged_value(family, found, found.value, value, bound)
    if faults := baseline_faults(bound, baselines):
        raise VerificationError(faults[0])
    gap = max(limits.gap, found.coarse, family.least_gap)
    settled = is_proved(value, bound, gap)
    proved = settled and not is_unverified(found.proof, found.parts)
    reported = None if value is None else bound
    _validate_engine_claim(family, found, claims=reported is not None or settled)
    return Result(
        kind=family.kind,
        question=described(family, question),
        engine=found.engine,
        status=answer_status(value, bound, proved, family.least_gap),
        stopped=found.stopped,
        value=value,
        bound=reported,
        gap=None if value is None or reported is None else gap_between(value, reported),
        gap_asked=gap,
        proved=proved,
        proof=found.proof if reported is not None or settled else None,
        answer=found.answer,
        details=verdict.details if verdict else None,
        reasons=found.reasons if settled and value is None else (),
        notes=found.notes,
        baselines=baselines,
        parts=found.parts,
        trace=_within(_closed(found.trace, value, seconds), reported),
        seconds=seconds,
        seed=limits.seed,
        versions=versions(found.solver),
    )


UNLIKE = "The judge and the engine differ: it is "
"""Prefix of the note on differing values."""


def _with_judged_value(
    family: ProblemType[Q, A, D], found: SearchOutcome[A], engine_value: Number, value: Number, bound: Number | None
) -> tuple[Number | None, SearchOutcome[A]]:
    """The bound that is left, and the outcome with a note and a trace by the judge's value, if engine and judge compute
    different values.

    A bound holds for values as the engine computes them, of which the judge's differ as they do here. By rounding they differ
    by no more than ROUNDING: the bound is lowered by that, and proves no optimum without a gap. Where they differ by more,
    none is left.
    """
    integral = isinstance(value, int) and isinstance(engine_value, int)  # of which nothing is rounded
    note = f"{UNLIKE}{value!r} for the {family.what} and not {engine_value!r}, as {found.engine} has"
    if integral or abs(value - engine_value) > ROUNDING * max(abs(value), abs(engine_value)):
        bound, note = None, f"{note}. That is more than rounding, so that the bound of the engine is omitted (please report this)"
    elif bound is not None:
        bound = min(less_rounding(value if bound >= value * (1.0 - ROUNDING) else bound), value)
        note = f"{note}. The bound is lowered by the possible rounding error"
    at_least = tuple((at, None if best is None else max(best, float(value)), below) for at, best, below in found.trace)
    return bound, replace(found, trace=at_least, notes=(*found.notes, note))


def _closed(trace: Trace, value: Number | None, seconds: float) -> Trace:
    """The trace with its last point, in case an interrupt came before it was reported."""
    if not trace or value is None or trace[-1][1] == value:
        return trace
    at, _, bound = trace[-1]
    return (*trace, (max(at, seconds), float(value), bound))


def _within(trace: Trace, bound: Number | None) -> Trace:
    """The trace with bounds capped by later ones and the final one, since reordered sums may exceed them in the last digit. All
    its bounds are None if `bound` is None.
    """
    capped, least = [], None if bound is None else float(bound)
    for at, value, below in reversed(trace):
        least = least if least is None or below is None else min(below, least)
        capped.append((at, value, None if below is None else least))
    return tuple(reversed(capped))


def _validate_engine_claim(family: ProblemType[Q, A, D], found: SearchOutcome[A], claims: bool) -> None:
    """Raise a VerificationError for claims that no check would accept: an unknown engine name or reason to stop, or a bound
    without proof.
    """
    if found.engine not in family.engines:
        raise VerificationError(
            f"an engine of kind {family.kind} reports the unknown name {found.engine!r} (known: {', '.join(family.engines)})"
        )
    if found.stopped not in STOPPED:
        raise VerificationError(
            f"the engine {found.engine} of kind {family.kind} stopped for {found.stopped!r} (one of {', '.join(STOPPED)})"
        )
    if claims and found.proof is None:
        raise VerificationError(f"the engine {found.engine} of kind {family.kind} reports a bound without the label of its proof")


def _snap_bound_to_value(family: ProblemType[Q, A, D], bound: Number, values: tuple[Number | None, ...]) -> Number:
    """The bound, or the smallest value below it if they differ by rounding only."""
    if not family.summing:
        return bound
    return min([bound, *(value for value in values if value is not None and bound * (1.0 - family.summing) <= value < bound)])


def _accepted(family: ProblemType[Q, A, D], question: Q, answer: A) -> Verdict[D]:
    """The judge's verdict; a VerificationError if the answer violates a rule."""
    try:
        verdict = family.judge(question, answer)
    except ModelError:
        raise
    except ValueError as error:
        raise VerificationError(f"the {family.what} found does not belong to the question: {error}") from error
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
