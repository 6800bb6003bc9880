"""Checks of saved results, and comparison of fields."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from crossopt.crossflow.records import dataclass
from crossopt.instances.errors import InstanceError, VerificationError
from crossopt.instances.files.dataclass_json import to_plain
from crossopt.instances.question import read_again
from crossopt.solvers.answer import (
    STOPPED,
    Baseline,
    Limits,
    Number,
    Result,
    Trace,
    Verdict,
    Watch,
    answer_status,
    baseline_faults,
    claimed_lower_bound,
    gap_between,
    is_proved,
    unwatched,
)
from crossopt.solvers.family import (
    RIVAL,
    A,
    BaselineName,
    D,
    Judge,
    ProblemType,
    Proved,
    Q,
    baseline_names,
    described,
    judge_baseline,
    no_names,
    no_op,
    solve,
    unit_of,
)
from crossopt.solvers.proofs import UnverifiedBound

ANEW = "the proof was repeated: "


@dataclass(frozen=True, slots=True)
class Report:
    """Report of a check: steps done, and reasons for refusal; accepted if there are none."""

    checked: tuple[str, ...]
    refused: tuple[str, ...]
    unverified: bool = False
    """Whether the bound is unverified."""

    @property
    def accepted(self) -> bool:
        return not self.refused

    def __str__(self) -> str:
        ending = "refused" if self.refused else "accepted, except the bound, which is solver-reported" if self.unverified else "accepted"
        return "\n".join([*self.checked, *(f"REFUSED: {line}" for line in self.refused), ending])


def check(family: ProblemType[Q, A, D], saved: Result[A, D], folder: Path, watch: Watch = unwatched, cross_check: bool = False) -> Report:
    """Check a result against everything that follows from its question."""
    try:
        question = read_again(saved.question, family.kind, folder)
    except InstanceError as error:
        return Report((), (f"the question in the result cannot be read: {error}",))
    return check_answer(family, saved, question, watch, cross_check)


def check_answer(
    family: ProblemType[Q, A, D], saved: Result[A, D], question: Q, watch: Watch = unwatched, cross_check: bool = False
) -> Report:
    """Check a result for a question read from it: cheap checks first, then proofs of parts, then its own proof."""
    refused = faults_but_proof(family, saved, question)
    if refused:
        return Report(("the question was read again", *_judged(family, saved)), tuple(refused))
    report = _proved(family, saved, question, watch, cross_check)
    return replace(report, checked=("the question was read again", *report.checked))


def _judged(family: ProblemType[Q, A, D], saved: Result[A, D]) -> list[str]:
    """Descriptions of the cheap checks."""
    return [f"the {family.what} was evaluated again: {family.judged}"] if saved.answer is not None else []


def _proved(family: ProblemType[Q, A, D], saved: Result[A, D], question: Q, watch: Watch, cross_check: bool) -> Report:
    """Check the proofs of the parts, then the answer's own, provided that all cheap checks pass."""
    checked, refused, unverified = _judged(family, saved), list[str](), False
    for narrower, part in zip(family.parts(question), saved.parts, strict=False):
        report, name = _proved(family, part, narrower, watch, cross_check), family.part_name(question, narrower)
        checked += [f"{name}: {line}" for line in report.checked]
        refused += [f"{name}: {line}" for line in report.refused]
        unverified = unverified or report.unverified
    claims = saved.bound is not None or (saved.settled and saved.value is None)
    prove = family.cross_check if cross_check and saved.unverified and family.cross_check else family.prove
    proved = prove(question, saved, watch) if claims and not refused else Proved()
    if proved.by and proved.by != saved.proved_by and not isinstance(saved.proof, UnverifiedBound):
        refused.append(f"proof: it is {proved.by!r}, the result says {short(saved.proved_by)}")
    if family.reasons and saved.value is None and claims and not (refused or proved.refused or proved.unverified):
        reasons = family.reasons(question, saved)
        checked += ["why nothing is feasible takes a search, and is not verified"] if reasons is None and saved.reasons else []
        if reasons is not None and saved.reasons not in ((), reasons):  # none where a search ran out of time for them
            refused.append(f"reasons: {'; '.join(reasons)} follow from the proof")
    if proved.unverified and not saved.unverified:
        refused.append("proof: it cannot be repeated, and a bound without a repeatable proof must not be called proved")
    return Report((*checked, *proved.checked), (*refused, *proved.refused), unverified or proved.unverified)


def faults_but_proof(family: ProblemType[Q, A, D], saved: Result[A, D], question: Q) -> list[str]:
    """Faults of a result that do not require repeating its proof."""
    refused = [*differences("question", described(family, question), saved.question), *status_faults(family, saved)]
    refused += _part_faults(family, saved, question) if not refused else []
    refused += _answer_faults(family, saved, question, saved.answer) if saved.answer is not None else []
    refused += _faults_of_baselines(family, saved, question) if not refused else []
    return [*refused, *family.faults(question, saved, family.judge), *baseline_faults(claimed_lower_bound(saved), saved.baselines)]


def solve_and_verify(
    family: ProblemType[Q, A, D],
    question: Q,
    engine: str,
    limits: Limits,
    watch: Watch,
    ending: Callable[[], None] = no_op,
    simplest: Callable[[str], A | None] | None = None,
) -> Result[A, D]:
    """Solve, and raise a VerificationError if a check would refuse the result before its proof."""
    once = _judging_once(family)
    result = solve(once, question, engine, limits, watch, ending, simplest)
    if faults := faults_but_proof(once, result, question):
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise VerificationError(f"`crossopt check` would refuse this answer: {faults[0]}{more}")
    return result


def _judging_once(family: ProblemType[Q, A, D]) -> ProblemType[Q, A, D]:
    """The problem type with a judge that caches verdicts per question object. A check, which reads its question anew, has one who does
    not."""
    cached: list[tuple[Q, A, Verdict[D]]] = []

    def judge(question: Q, answer: A) -> Verdict[D]:
        for known, judged, verdict in cached:
            if known is question and judged == answer:
                return verdict
        verdict = family.judge(question, answer)
        cached.append((question, answer, verdict))
        return verdict

    return replace(family, judge=judge)


def _part_faults(family: ProblemType[Q, A, D], saved: Result[A, D], question: Q) -> list[str]:
    """Faults of the parts: results of other questions, or with faults of their own."""
    questions = family.parts(question)
    if len(saved.parts) > len(questions):
        return [f"parts: an answer to this question rests on {len(questions)} others at most, and here are {len(saved.parts)}"]
    pairs = enumerate(zip(questions, saved.parts, strict=False))
    return [f"parts[{number}]: {fault}" for number, (own, part) in pairs for fault in faults_but_proof(family, part, own)]


def status_faults(family: ProblemType[Q, A, D], saved: Result[A, D]) -> list[str]:
    """Inconsistencies among status, value, bound, gap and proof."""
    value, bound, what, least_gap = saved.value, saved.bound, f"a {family.what}", family.least_gap
    found, claims = saved.answer is not None, saved.bound is not None or saved.settled
    gap = None if value is None or bound is None else gap_between(value, bound)
    near = is_proved(value, bound, saved.gap_asked) and not saved.unverified
    rules = (
        ("value, answer and details belong together", found == (value is not None) == (saved.details is not None)),
        ("a proof needs a bound or infeasibility, and the reverse", (saved.proof is not None) == claims),
        ("the trace does not close in on the value", trace_holds(saved.trace, value, bound)),
        ("reasons need proved infeasibility", saved.settled or not saved.reasons),
        (f"kind: {saved.kind!r} is no {family.kind}", saved.kind == family.kind),
        (f"there is no engine {saved.engine!r}", saved.engine in family.engines),
        (f"gap: {gap!r} follows, the result says {saved.gap!r}", saved.gap == gap),
        (f"bound {bound!r} is above the value {value!r}", value is None or bound is None or bound <= value),
        (f"there is no bound without {what}", value is not None or bound is None),
        (
            "an answer is proved if its bound is within the requested gap and not solver-reported, and only then",
            value is None or saved.proved == near,
        ),
        ("infeasibility that is solver-reported is not proved", value is not None or not (saved.proved and saved.unverified)),
        ("proved_by needs a bound or infeasibility, and the reverse", bool(saved.proved_by) == claims),
        (f"proof: nothing is proved by {short(saved.proved_by)}", _is_proof_label(family, saved)),
        (f"proof: the engine {saved.engine} does not prove so", saved.engine in family.provers.get(saved.proved_by, family.engines)),
        (
            f"proof: the engine {saved.engine} reports no bound of a solver",
            not saved.unverified or family.reporting is None or saved.engine in family.reporting,
        ),
        (f"reasons are given although there is {what}", value is None or not saved.reasons),
        (f"{short(saved.stopped)} is no reason to stop", saved.stopped in STOPPED),
        (f"status: {saved.status} does not follow", saved.status == answer_status(value, bound, saved.proved, least_gap)),
        (f"{saved.seconds!r} seconds are no time", saved.seconds >= 0.0),
        ("proof: it has a limit or block below 0", min(getattr(saved.proof, name, 0) or 0 for name in ("limit", "block")) >= 0),
        (f"a gap of {saved.gap_asked!r} is none to ask for", least_gap <= saved.gap_asked < 1.0),
    )
    return [*(sentence for sentence, holds in rules if not holds), *_long_text(saved)]


def _is_proof_label(family: ProblemType[Q, A, D], saved: Result[A, D]) -> bool:
    """Whether the label of a proof is one of its kind's; labels of unverified bounds are free."""
    wordless = saved.proof is None or isinstance(saved.proof, UnverifiedBound) or not family.proof_labels
    return wordless or re.sub(r"[0-9][0-9,]*", "N", saved.proved_by) in family.proof_labels


def _long_text(saved: Result[A, D]) -> list[str]:
    """Free texts in a result that are too long or not single lines."""
    baselines = [text for baseline in saved.baselines for text in (baseline.name, baseline.note)]
    texts = {
        "notes": saved.notes,
        "reasons": saved.reasons,
        "baselines": baselines,
        "proof": (saved.proved_by,),
        "versions": (*saved.versions, *saved.versions.values()),
    }
    relaxation = getattr(saved.proof, "relaxation", None)
    texts |= {"relaxation": (relaxation.solver, relaxation.form)} if relaxation is not None else {}
    most = {"versions": _LONGEST_NAME, "relaxation": _LONGEST_NAME}
    faults = [f"{name}: more than {_MANY:,} of them cannot be" for name, several in texts.items() if len(several) > _MANY]
    for name, several in texts.items():
        longest = most.get(name, _LONGEST)
        wrong = [text for text in several if not isinstance(text, str) or len(text) > longest or not set(text).isdisjoint("\t\n\r")]
        faults += [f"{name}: {short(wrong[0])} is no line of at most {longest:,} characters"] if wrong else []
    return faults


_LONGEST, _LONGEST_NAME, _MANY = 2_000, 100, 1_000


def _answer_faults(family: ProblemType[Q, A, D], saved: Result[A, D], question: Q, answer: A) -> list[str]:
    try:
        verdict = family.judge(question, answer)
    except ValueError as error:
        return [f"the {family.what} does not belong to the question: {error}"]
    faults = [f"the {family.what} breaks a rule: {violation}" for violation in verdict.violations]
    if verdict.value != saved.value:
        faults.append(f"value: the {family.what} takes {_amount(family, question, verdict.value)}, the result says {saved.value!r}")
    return [
        *faults,
        *(_difference("details", to_plain(verdict.details), to_plain(saved.details)) if verdict.details != saved.details else []),
    ]


def _amount(family: ProblemType[Q, A, D], question: Q, value: Number | None) -> str:
    return f"{value!r} {unit_of(family, question)}".rstrip()


def _faults_of_baselines(family: ProblemType[Q, A, D], saved: Result[A, D], question: Q) -> list[str]:
    """Baselines with values, names or notes other than those that the judge and their kind have, and those that are left out."""
    declared = None if family.rules is None and family.searched is None else [*(family.searched or no_names)(question)]
    rivals = [*baseline_names(*(f"{RIVAL}{engine}" for engine in family.engines))]
    named = [_name_of(baseline, [*(declared or ()), *rivals]) for baseline in saved.baselines]
    faults = [
        fault for index, item in enumerate(saved.baselines) for fault in _baseline_faults(family, question, index, item, named[index])
    ]
    if faults or declared is None:
        return faults
    names = [baseline.name for baseline in saved.baselines]
    searched = [own for own in named if own in declared]
    by_rule = [replace(baseline, seconds=0.0) for baseline, own in zip(saved.baselines, named, strict=True) if own is None]
    complete = saved.stopped == "complete" and saved.answer is not None and saved.bound is not None
    always = [own for own in declared if own.always and (searched or by_rule or (complete and saved.engine in own.always))]
    left = [own for own in always if own not in searched]
    rules = None if family.rules is None else family.rules(question, saved)
    true = [judge_baseline(family.judge, question, own) for own in rules or ()]
    omitted = not by_rule and (rules is None or saved.stopped != "complete")
    sentences = (
        ("baselines: each of them has a name of its own", len({*names}) == len(names)),
        (f"baselines: {_listed(true)} follow by rule, and here are {_listed(by_rule)}", omitted or by_rule == true),
        (f"baselines: {', '.join(map(_plain, left))} are left out", not left),
    )
    refuted = [] if by_rule else baseline_faults(claimed_lower_bound(saved), true)  # whoever claims the bound
    return [*(sentence for sentence, holds in sentences if not holds), *refuted]


def _plain(name: BaselineName) -> str:
    return name.name.replace("\\", "")


def _name_of(baseline: Baseline[Any], names: Iterable[BaselineName]) -> BaselineName | None:
    return next((own for own in names if re.fullmatch(own.name, baseline.name)), None)


def _listed(baselines: Sequence[Baseline[Any]]) -> str:
    return ", ".join(f"{baseline.name[:40]} ({baseline.value!r})" for baseline in baselines) or "none"


def _baseline_faults(family: ProblemType[Q, A, D], question: Q, place: int, baseline: Baseline[A], named: BaselineName | None) -> list[str]:
    """Faults of one baseline, whose note begins by a pattern and ends with the first rule that it breaks."""
    violations, value, path = tuple[str, ...](), None, f"baselines[{place}]"
    if baseline.answer is not None:
        try:
            verdict = family.judge(question, baseline.answer)
        except ValueError as error:
            return [f"{path}: the {family.what} does not belong to the question: {error}"]
        violations, value = verdict.violations[:1], None if verdict.violations else verdict.value
    elif baseline.value is not None:
        return [f"{path}: there is a value and no {family.what}"]
    pattern = "" if named is None else named.reason if baseline.answer is None else named.note
    end = re.escape(violations[0]) if violations else ""
    notes = f"({pattern})" if not end else f"({pattern}; )?{end}"
    rules = (
        (f"the {family.what} takes {_amount(family, question, value)}, the result says {baseline.value!r}", baseline.value == value),
        (f"{baseline.seconds!r} seconds are no time", baseline.seconds >= 0.0),
        (f"{short(baseline.note)} is no note of it", named is None or re.fullmatch(notes, baseline.note) is not None),
    )
    return [f"{path}: {sentence}" for sentence, holds in rules if not holds]


def least_of_few(question: Q, plans: Iterable[A], judge: Judge[Q, A, D], most: int) -> float | None:
    """The least value of the plans that keep the limits, infinite where none does; None where there are more than so many."""
    least = float("inf")
    for number, plan in enumerate(plans):
        if number == most:
            return None
        verdict = judge(question, plan)
        least = least if verdict.violations else min(least, verdict.value)
    return least


def by_looking_at_all(saved: Result[A, D], least_of_all: Callable[[], Number | None], unit: str = "s") -> Proved:
    """Verification of a bound by enumeration if answers are few; otherwise it is unverified."""
    least = least_of_all()
    if least is None:
        return Proved((f"the bound is reported by {saved.proved_by}, not proved again",), unverified=True)
    true = saved.bound <= least if saved.bound is not None else least == float("inf")
    fault = f"bound: an answer takes {least!r} {unit}, the result claims {saved.bound!r}"
    return Proved(("every answer was enumerated again",), () if true else (fault,))


def differences(path: str, true: dict[str, Any], reported: object) -> list[str]:
    """Fields that differ from their expected value; integers equal their floats."""
    if not isinstance(reported, dict):
        return [f"{path} is missing"]
    return [
        fault
        for name in sorted({*true, *reported})
        if name not in reported or name not in true or true[name] != reported[name]
        for fault in _difference(f"{path}.{name}", true.get(name), reported.get(name))
    ]


def _difference(path: str, true: Any, reported: Any) -> list[str]:  # noqa: ANN401
    """Differences of two values, as deep as their shapes agree."""
    if isinstance(true, dict) and isinstance(reported, dict):
        return differences(path, true, reported)
    if isinstance(true, list | tuple) and isinstance(reported, list | tuple) and len(true) == len(reported):
        pairs = enumerate(zip(true, reported, strict=True))
        return [fault for index, (first, second) in pairs if first != second for fault in _difference(f"{path}[{index}]", first, second)]
    return [f"{path}: it is {short(true)}, the result says {short(reported)}"]


def trace_holds(trace: Trace, value: Number | None, bound: Number | None) -> bool:
    """Whether the trace is monotone: times and bounds rise, values fall. Its last value is the result's, and its last bound is
    not above the result's; both as floats.
    """
    times = [at for at, _, _ in trace]
    values = [best for _, best, _ in trace if best is not None]
    bounds = [bound for _, _, bound in trace if bound is not None]
    ends = not trace or trace[-1][1] == (None if value is None else float(value))
    rising = times == sorted(times) and all(at >= 0.0 for at in times) and bounds == sorted(bounds)
    below = not bounds or (bound is not None and bounds[-1] <= float(bound))
    return ends and rising and below and values == sorted(values, reverse=True)


def short(value: Any) -> str:  # noqa: ANN401
    """A short repr of a value."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
