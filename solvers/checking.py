"""What a check of a saved result says, and where fields differ from what they should be."""

import re
from collections.abc import Callable
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
from crossopt.solvers.family import A, D, ProblemType, Proved, Q, described, no_op, solve, unit_of
from crossopt.solvers.proofs import UnverifiedBound

ANEW = "the proof was carried out anew: "


@dataclass(frozen=True, slots=True)
class Report:
    """What was checked, and why the result is refused; accepted if there is no reason."""

    checked: tuple[str, ...]
    refused: tuple[str, ...]
    unverified: bool = False
    """Whether a bound was told and not proved anew."""

    @property
    def accepted(self) -> bool:
        return not self.refused


def check(family: ProblemType[Q, A, D], saved: Result[A, D], folder: Path, watch: Watch = unwatched, cross_check: bool = False) -> Report:
    """Everything a result says, said again from its question alone."""
    try:
        question = read_again(saved.question, family.kind, folder)
    except InstanceError as error:
        return Report((), (f"the question in the result cannot be read: {error}",))
    return check_answer(family, saved, question, watch, cross_check)


def check_answer(
    family: ProblemType[Q, A, D], saved: Result[A, D], question: Q, watch: Watch = unwatched, cross_check: bool = False
) -> Report:
    """The same for a question that was read anew: first all that is quickly seen, then the proofs of its parts, then its own."""
    refused = faults_but_proof(family, saved, question)
    if refused:
        return Report(("the question was read anew", *_judged(family, saved)), tuple(refused))
    report = _proved(family, saved, question, watch, cross_check)
    return replace(report, checked=("the question was read anew", *report.checked))


def _judged(family: ProblemType[Q, A, D], saved: Result[A, D]) -> list[str]:
    """What was quickly seen."""
    return [f"the {family.what} was judged anew: {family.judged}"] if saved.answer is not None else []


def _proved(family: ProblemType[Q, A, D], saved: Result[A, D], question: Q, watch: Watch, cross_check: bool) -> Report:
    """The proofs of the parts, and then the answer's own, where all that is quickly seen holds of all of them."""
    checked, refused, told = _judged(family, saved), list[str](), False
    for narrower, part in zip(family.parts(question), saved.parts, strict=False):
        report, name = _proved(family, part, narrower, watch, cross_check), family.part_name(question, narrower)
        checked += [f"{name}: {line}" for line in report.checked]
        refused += [f"{name}: {line}" for line in report.refused]
        told = told or report.unverified
    claims = saved.bound is not None or (saved.settled and saved.value is None)
    prove = family.cross_check if cross_check and saved.unverified and family.cross_check else family.prove
    proved = prove(question, saved, watch) if claims and not refused else Proved()
    if proved.by and proved.by != saved.proved_by and not isinstance(saved.proof, UnverifiedBound):
        refused.append(f"proof: it is {proved.by!r}, the result says {short(saved.proved_by)}")
    if proved.unverified and not saved.unverified:
        refused.append("proof: it cannot be carried out anew, and nothing that is only told is called proved")
    return Report((*checked, *proved.checked), (*refused, *proved.refused), told or proved.unverified)


def faults_but_proof(family: ProblemType[Q, A, D], saved: Result[A, D], question: Q) -> list[str]:
    """Why a result is refused, as far as that can be said without carrying out its proof."""
    refused = [*differences("question", described(family, question), saved.question), *word_faults(family, saved)]
    refused += _part_faults(family, saved, question) if not refused else []
    refused += _answer_faults(family, saved, question, saved.answer) if saved.answer is not None else []
    for place, baseline in enumerate(saved.baselines):
        refused += _baseline_value_faults(family, question, f"baselines[{place}]", baseline)
    return [*refused, *family.faults(question, saved, family.judge), *baseline_faults(claimed_lower_bound(saved), saved.baselines)]


def solve_and_hold(
    family: ProblemType[Q, A, D],
    question: Q,
    engine: str,
    limits: Limits,
    watch: Watch,
    ending: Callable[[], None] = no_op,
    simplest: Callable[[str], A | None] | None = None,
) -> Result[A, D]:
    """A result that no check refuses before it comes to the proof; a VerificationError where one would."""
    once = _judging_once(family)
    result = solve(once, question, engine, limits, watch, ending, simplest)
    if faults := faults_but_proof(once, result, question):
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise VerificationError(f"`crossopt check` would refuse this answer: {faults[0]}{more}")
    return result


def _judging_once(family: ProblemType[Q, A, D]) -> ProblemType[Q, A, D]:
    """The family with a judge who remembers what he said of an answer to the very same question: what was found is looked at up to three
    times before anybody has it, and would be priced as before each time. A check, which reads its question anew, has one who does not."""
    said: list[tuple[Q, A, Verdict[D]]] = []

    def judge(question: Q, answer: A) -> Verdict[D]:
        for asked, judged, verdict in said:
            if asked is question and judged == answer:
                return verdict
        verdict = family.judge(question, answer)
        said.append((question, answer, verdict))
        return verdict

    return replace(family, judge=judge)


def _part_faults(family: ProblemType[Q, A, D], saved: Result[A, D], question: Q) -> list[str]:
    """Answers to other questions than the narrower ones of this, or with faults of their own."""
    questions = family.parts(question)
    if len(saved.parts) > len(questions):
        return [f"parts: an answer to this question rests on {len(questions)} others at most, and here are {len(saved.parts)}"]
    pairs = enumerate(zip(questions, saved.parts, strict=False))
    return [f"parts[{place}]: {fault}" for place, (one, part) in pairs for fault in faults_but_proof(family, part, one)]


def word_faults(family: ProblemType[Q, A, D], saved: Result[A, D]) -> list[str]:
    """Where the words of a result do not follow from its value and its bound."""
    value, bound, what, least_gap = saved.value, saved.bound, f"a {family.what}", family.least_gap
    found, claims = saved.answer is not None, saved.bound is not None or saved.settled
    gap = None if value is None or bound is None else gap_between(value, bound)
    near = is_proved(value, bound, saved.gap_asked) and not saved.unverified
    rules = (
        ("value, answer and details belong together", found == (value is not None) == (saved.details is not None)),
        ("a proof is told with what it proves, and only then", (saved.proof is not None) == claims),
        ("the trace does not close in on the value", trace_holds(saved.trace, value, bound)),
        ("reasons are told where nothing is proved", saved.settled or not saved.reasons),
        (f"kind: {saved.kind!r} is no {family.kind}", saved.kind == family.kind),
        (f"there is no engine {saved.engine!r}", saved.engine in family.engines),
        (f"gap: {gap!r} follows, the result says {saved.gap!r}", saved.gap == gap),
        (f"bound {bound!r} is above the value {value!r}", value is None or bound is None or bound <= value),
        (f"there is no bound without {what}", value is not None or bound is None),
        (
            "an answer is proved if its bound is as near as was asked and nobody's word, and only then",
            value is None or saved.proved == near,
        ),
        ("that there is none is proved by nobody's word", value is not None or not (saved.proved and saved.unverified)),
        ("what proved the bound is told without a bound", bool(saved.proved_by) == claims),
        (f"proof: nothing is proved by {short(saved.proved_by)}", _is_proof_label(family, saved)),
        (f"reasons are told where there is {what}", value is None or not saved.reasons),
        (f"{short(saved.stopped)} is no reason to stop", saved.stopped in STOPPED),
        (f"status: {saved.status} does not follow", saved.status == answer_status(value, bound, saved.proved, least_gap)),
        (f"{saved.seconds!r} seconds are no time", saved.seconds >= 0.0),
        (f"a gap of {saved.gap_asked!r} is none to ask for", least_gap <= saved.gap_asked < 1.0),
    )
    return [*(sentence for sentence, holds in rules if not holds), *_long_text(saved)]


def _is_proof_label(family: ProblemType[Q, A, D], saved: Result[A, D]) -> bool:
    """Whether a proof is called what such proofs are; a word is whoever's it is."""
    wordless = saved.proof is None or isinstance(saved.proof, UnverifiedBound) or not family.proof_labels
    return wordless or re.sub(r"[0-9][0-9,]*", "N", saved.proved_by) in family.proof_labels


def _long_text(saved: Result[A, D]) -> list[str]:
    """Words that nothing in the question says, and that are drawn all the same, so that they are no longer than an engine's."""
    baselines = [word for baseline in saved.baselines for word in (baseline.name, baseline.note)]
    told = {
        "notes": saved.notes,
        "reasons": saved.reasons,
        "baselines": baselines,
        "proof": (saved.proved_by,),
        "versions": (*saved.versions, *saved.versions.values()),
    }
    relaxation = getattr(saved.proof, "relaxation", None)
    told |= {"relaxation": (relaxation.solver, relaxation.form)} if relaxation is not None else {}
    most = {"versions": _LONGEST_NAME, "relaxation": _LONGEST_NAME}
    faults = [f"{name}: more than {_MANY:,} of them cannot be" for name, words in told.items() if len(words) > _MANY]
    for name, words in told.items():
        longest = most.get(name, _LONGEST)
        wrong = [word for word in words if not isinstance(word, str) or len(word) > longest or not set(word).isdisjoint("\t\n\r")]
        faults += [f"{name}: {short(wrong[0])} is no line of at most {longest:,} characters"] if wrong else []
    return faults


_LONGEST, _LONGEST_NAME, _MANY = 2_000, 100, 1_000


def _answer_faults(family: ProblemType[Q, A, D], saved: Result[A, D], question: Q, answer: A) -> list[str]:
    try:
        verdict = family.judge(question, answer)
    except ValueError as error:
        return [f"the {family.what} is none of the question: {error}"]
    faults = [f"the {family.what} breaks a rule: {violation}" for violation in verdict.violations]
    if verdict.value != saved.value:
        faults.append(f"value: the {family.what} takes {_amount(family, question, verdict.value)}, the result says {saved.value!r}")
    return [
        *faults,
        *(_difference("details", to_plain(verdict.details), to_plain(saved.details)) if verdict.details != saved.details else []),
    ]


def _amount(family: ProblemType[Q, A, D], question: Q, value: Number | None) -> str:
    return f"{value!r} {unit_of(family, question)}".rstrip()


def _baseline_value_faults(family: ProblemType[Q, A, D], question: Q, path: str, baseline: Baseline[A]) -> list[str]:
    if baseline.answer is None:
        return [] if baseline.value is None else [f"{path}: there is a value and no {family.what}"]
    try:
        verdict = family.judge(question, baseline.answer)
    except ValueError as error:
        return [f"{path}: the {family.what} is none of the question: {error}"]
    true = None if verdict.violations else verdict.value
    said = f"{path}: the {family.what} takes {_amount(family, question, true)}, the result says {baseline.value!r}"
    return [] if true == baseline.value else [said]


def by_looking_at_all(saved: Result[A, D], least_of_all: Callable[[], Number | None], unit: str = "s") -> Proved:
    """What is said of a bound that is held against every answer, where these are few enough to be looked at; it is told else."""
    least = least_of_all()
    if least is None:
        return Proved((f"the bound is the word of {saved.proved_by}, not proved anew",), unverified=True)
    true = saved.bound <= least if saved.bound is not None else least == float("inf")
    fault = f"bound: an answer takes {least!r} {unit}, the result says that none is below {saved.bound!r}"
    return Proved(("every answer was looked at anew",), () if true else (fault,))


def differences(path: str, true: dict[str, Any], said: object) -> list[str]:
    """Fields that are other than they should be; whole numbers and their floats are the same."""
    if not isinstance(said, dict):
        return [f"{path} is missing"]
    return [
        fault
        for name in sorted({*true, *said})
        if name not in said or name not in true or true[name] != said[name]
        for fault in _difference(f"{path}.{name}", true.get(name), said.get(name))
    ]


def _difference(path: str, true: Any, said: Any) -> list[str]:  # noqa: ANN401
    """Where two values differ, as deep inside as both have the same shape."""
    if isinstance(true, dict) and isinstance(said, dict):
        return differences(path, true, said)
    if isinstance(true, list | tuple) and isinstance(said, list | tuple) and len(true) == len(said):
        pairs = enumerate(zip(true, said, strict=True))
        return [fault for place, (one, other) in pairs if one != other for fault in _difference(f"{path}[{place}]", one, other)]
    return [f"{path}: it is {short(true)}, the result says {short(said)}"]


def trace_holds(trace: Trace, value: Number | None, bound: Number | None) -> bool:
    """Times and bounds rise, values fall, the last value is the result's, and no bound is above its own; to the digits of a float."""
    times = [at for at, _, _ in trace]
    values = [best for _, best, _ in trace if best is not None]
    bounds = [bound for _, _, bound in trace if bound is not None]
    ends = not trace or trace[-1][1] == (None if value is None else float(value))
    rising = times == sorted(times) and all(at >= 0.0 for at in times) and bounds == sorted(bounds)
    below = not bounds or (bound is not None and bounds[-1] <= float(bound))
    return ends and rising and below and values == sorted(values, reverse=True)


def short(value: Any) -> str:  # noqa: ANN401
    """What a value is, on part of a line."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
