"""Checks saved runs without believing any: questions are read anew, and every design is priced anew in the question as it was asked.

`check` does not run engines again: it sees that no design is below any bound. `check_and_prove` carries out anew what runs claim: each
question is solved once more, and rules of thumb are asked again.

    a bound is sound    where it is not above the bound that is found anew, and refuted where a design takes less
    a rule says         the same whenever it is asked: what a run says of it is that, to the last bit

What a search did not find is its word: another machine or second would have it find something else.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import fsum, inf, isfinite
from pathlib import Path

from crossopt.crossflow.evaluate import Evaluation
from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_question
from crossopt.instances.errors import InstanceError, ModelError, RefusedError, SolverError, VerificationError
from crossopt.instances.files.dataclass_json import to_plain
from crossopt.solvers.answer import STOPPED, Limits, Verdict, Watch, gap_between, unwatched
from crossopt.solvers.checking import Report, trace_holds
from crossopt.solvers.codesign.answer import ChosenDesign, DesignResult, candidate_in, chosen_design
from crossopt.solvers.codesign.claims import PROVERS
from crossopt.solvers.codesign.engines import RULES
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.codesign.judge import verify
from crossopt.solvers.codesign.objective import UNITS
from crossopt.solvers.family import solve
from crossopt.solvers.study.columns import with_columns
from crossopt.solvers.study.figures import consistency_faults
from crossopt.solvers.study.records import Run, Study
from crossopt.solvers.sweeps.asking import turns_of
from crossopt.solvers.sweeps.listed import Point, name_faults, question_digest

_WIDEST = 1e-3
"""Largest gap of a value that counts as proved."""
_CHOSEN = ("exhaustive", "boxes")
"""Engines to one of which `auto` leaves the answer."""


def check(study: Study) -> Report:
    """Everything that the runs say, as far as it can be said again without their engines."""
    refused = _form_faults(study)
    if refused:
        return Report((), tuple(refused))
    reported, instances = False, list[Instance]()
    for number, question in enumerate(study.questions):
        runs = study.runs_of(number)
        try:
            instance = read_question(study.document(number))
        except InstanceError as error:
            refused.append(f"questions[{number}]: it cannot be read: {error}")
            continue
        instances.append(instance)
        if (question.objective, question.unit) != (instance.objective, UNITS[instance.objective]):
            refused.append(f"questions[{number}]: the question asks for {instance.objective} in {UNITS[instance.objective]}")
        seen = dict[str, Verdict[Evaluation]]()
        refused += [f"{question.name}, {run.engine}, seed {run.seed}: {fault}" for run in runs for fault in _faults(instance, run, seen)]
        reported = reported or any(run.bound is not None or run.proved for run in runs)
        try:
            consistency_faults(question.name, runs)
        except VerificationError as error:
            refused.append(str(error))
    if not refused:
        refused += _name_faults(study)
    if not refused:
        refused += _column_faults(study, instances)
    derived = ("what was derived and expected was derived anew",) if study.derived or study.findings else ()
    checked = (
        f"{were(len(study.questions), 'question')} read anew",
        f"{were(sum(run.design is not None for run in study.runs), 'design')} priced anew, each in the question as it was asked",
        "no design is below any bound of its question",
        *derived,
    )
    return Report(checked, tuple(refused), reported)


def were(number: int, what: str, plural: str = "were", singular: str = "was") -> str:
    """So many of something, and the verb that goes with them."""
    return f"{number:,} {what} {singular}" if number == 1 else f"{number:,} {what}s {plural}"


def _form_faults(study: Study) -> list[str]:
    """Faults in how the parts of a saved study refer to each other: engines, texts, axes and runs."""
    plan, faults = study.plan, list[str]()
    if unknown := sorted(set(plan.engines) - FAMILY.engines.keys()):
        faults.append(f"plan.engines: there is no engine {unknown[0]!r}")
    if any(not 0 <= question.source < len(study.sources) for question in study.questions):
        faults.append("questions: one has a text that is not there")
    if any(len(question.at) != len(plan.axes) for question in study.questions):
        faults.append("questions: each has a value on each axis")
    turns = turns_of(FAMILY, plan.engines, plan.time_limit, min(plan.seeds, len(study.runs) + 1))
    wanted = ((number, engine, limits.seed) for number in range(len(study.questions)) for engine, limits in turns)
    found = [(run.question, run.engine, run.seed) for run in study.runs]
    if found != list(islice(wanted, len(found))):
        faults.append("runs: they are not those that the plan specifies, question by question")
    if study.stopped not in {"complete", "interrupted"}:
        faults.append("stopped: this is complete or interrupted")
    if not fsum(run.seconds for run in study.runs) <= study.seconds < inf:
        faults.append("seconds: all together take less than the runs did")
    if study.stopped == "complete" and next(wanted, None) is not None:
        faults.append("runs: one is missing")
    return faults


def _name_faults(study: Study) -> list[str]:
    """What of the names of questions and axes is other than was asked."""
    documents = [study.document(number) for number in range(len(study.questions))]
    points = [
        Point(question.name, question.subject, question.at, FAMILY.kind, question_digest(FAMILY.kind, document), document)
        for question, document in zip(study.questions, documents, strict=True)
    ]
    strange = [
        f"{question.name}: its question is in {document['source']}, which is not so called"
        for question, document in zip(study.questions, documents, strict=True)
        if question.subject and (question.subject == Path(document["source"]).stem) == (question.subject in study.plan.called)
    ]
    return [*name_faults(study.plan.axes, points), *strange]


def _column_faults(study: Study, instances: Sequence[Instance]) -> list[str]:
    """Whether columns and findings are those that follow from the runs; none follows from a part of them."""
    bare = replace(study, derived=(), findings=())
    try:
        anew = with_columns(bare, instances) if study.stopped == "complete" else bare
    except ValueError as error:
        return [f"claims: {error}"]
    rules = (("derived", anew.derived == study.derived), ("findings", anew.findings == study.findings))
    return [f"{name}: these do not follow from the runs" for name, holds in rules if not holds]


def _key(design: ChosenDesign) -> str:
    return json.dumps(to_plain(design), sort_keys=True)


def _faults(instance: Instance, run: Run, seen: dict[str, Verdict[Evaluation]]) -> list[str]:
    """What of a run is not so; `seen` keeps what the full model says of designs that several engines found."""
    within = isfinite(run.seconds) and run.seconds >= 0.0 and all(at <= run.seconds for at, _, _ in run.trace)
    is_way = within and trace_holds(run.trace, run.value, run.bound)
    rules = (
        ("value, design and `verified` belong together", (run.value is None) == (run.design is None) == (not run.verified)),
        ("an optimum has a value that is its bound", run.status != "OPTIMAL" or (run.proved and run.value == run.bound)),
        ("who does not answer has no value", not run.note or run.value is None),
        ("what is feasible has a value", (run.status in {"OPTIMAL", "FEASIBLE"}) == (run.value is not None)),
        ("what is infeasible is proved", run.status != "INFEASIBLE" or (run.proved and run.bound is None)),
        (
            "an exact engine that comes to its end has a bound",
            run.engine not in {"auto", *PROVERS} or bool(run.note) or run.stopped != "complete" or _claims([run]),
        ),
        ("a proof has a bound", not run.proved or run.status == "INFEASIBLE" or run.bound is not None),
        ("what is proved is as near to its bound as was asked", _is_near(run)),
        ("the way to the answer is no way", is_way),
        (
            f"{run.answered_by} does not answer for {run.engine}",
            run.answered_by in (run.engine, *(_CHOSEN if run.engine == "auto" else ())),
        ),
        (f"{run.answered_by} proves nothing", run.answered_by in PROVERS or not (run.proved or run.bound is not None)),
    )
    faults = [sentence for sentence, holds in rules if not holds]
    if run.design is None:
        return faults
    key = _key(run.design)
    try:
        chosen = candidate_in(instance, run.design)
        verdict = seen[key] = seen[key] if key in seen else verify(instance, chosen)
    except ValueError as error:
        return [*faults, f"the design does not belong to the question: {error}"]
    if chosen_design(instance, chosen) != run.design:
        faults.append("the saved form of the design differs from the design")
    faults += [f"the design breaks a limit: {violation}" for violation in verdict.violations]
    if verdict.value != run.value:
        faults.append(f"value: the full model prices the design at {verdict.value!r}, the run says {run.value!r}")
    return faults


def _is_near(run: Run) -> bool:
    """Whether the gap is the one that was asked for, where the run claims a proof."""
    if not run.proved or run.value is None or run.bound is None:
        return True
    return 0.0 <= run.gap_asked <= _WIDEST and gap_between(run.value, run.bound) <= run.gap_asked


# --- proofs ------------------------------------------------------------------------------------------------------------------------------


_REPEATED = frozenset({*RULES, "plan-only", "hardware-only"})
"""Engines whose answer is the same whenever they end."""
ENDED = "the check was ended before all was looked at"
_FIRST = "recipes"
"""The rule with whose design searches begin."""
_TIMES, _MORE = 10.0, 30.0
"""A question has so many times what the slowest of its runs took, and so many seconds more."""


_REFUSING = 5.0
"""Seconds in which an engine says that it refuses a question."""


@dataclass(frozen=True, slots=True)
class _Again:
    """What came of a question: refusals, whether its claims were reached, and how many answers are of which sort."""

    refused: tuple[str, ...] = ()
    reached: bool = True
    repeated: int = 0
    """Answers of rules that are the same again."""
    cut: int = 0
    """Answers of rules and exact engines that ran out of time, or were interrupted."""
    below: int = 0
    """Searches that end above the design that they begin with."""


def check_and_prove(study: Study, watch: Watch = unwatched) -> Report:
    """All that runs say, and the proofs of what they claim; nothing is proved of runs that are refused before."""
    report = check(study)
    if not report.accepted:
        return report
    found = [_again(study, number, watch) for number in range(len(study.questions))]
    claimed = [number for number in range(len(found)) if _claims(study.runs_of(number))]
    proved = sum(found[number].reached for number in claimed)
    rules, cut, below = (sum(counts) for counts in zip(*((again.repeated, again.cut, again.below) for again in found), strict=True))
    searched = {run.engine for run in study.runs} - {*_REPEATED, *PROVERS, "auto"}
    checked: tuple[str, ...] = (
        *((f"{proved:,} of {were(len(claimed), 'bounded question')} solved anew as far as bounds say",) if claimed else ()),
        *((f"{were(rules, 'answer')} asked of rules again, and came out the same",) if rules else ()),
        *((f"{were(cut, 'answer')} cut short by time: what such an engine did not find is its word",) if cut else ()),
        *((f"{were(below, 'answer', 'stand', 'stands')} above the best recipe's design, with which searches begin",) if below else ()),
        *((f"what searches found no better is their word ({', '.join(sorted(searched))})",) if searched else ()),
    )
    checked += ("not verified: timings, the ways to answers with their `to 1 %` and `to proof`, and by what a bound is said to be proved",)
    return Report((*report.checked, *checked), tuple(fault for again in found for fault in again.refused), proved < len(claimed))


def _again(study: Study, number: int, watch: Watch) -> _Again:
    """One question and all that was said of it."""
    runs, instance, name = study.runs_of(number), read_question(study.document(number)), study.questions[number].name
    limits = Limits(seconds=_MORE + _TIMES * max((run.seconds for run in runs), default=0.0))
    rules, warm = [run for run in runs if run.engine in _REPEATED], study.plan.start == "recipe"
    exact = [run for run in runs if run.answered_by in _CHOSEN or run.engine in {"auto", *_CHOSEN}]
    faults = [(run, fault) for run in rules for fault in (*_early_end(study, run), *_other_answer(instance, run, limits, watch))]
    faults += [(run, fault) for run in exact for fault in (*_early_end(study, run), *_lost_claim(instance, run, watch))]
    refused = [f"{name}, {run.engine}: {fault}" for run, fault in faults]
    complete, wrong = [run for run in rules if run.stopped == "complete"], [run for run, _ in faults]
    found = _Again(
        tuple(refused),
        repeated=sum(run not in wrong for run in complete),
        cut=len(rules) - len(complete) + sum(run.stopped != "complete" for run in exact),
        below=_below(runs) if warm else 0,
    )
    if not _claims(runs):
        return found
    anew = _solved(instance, "auto", limits, watch)
    refuted = [f"{name}, {run.engine}, seed {run.seed}: {fault}" for run in runs for fault in _refutations(run, anew)]
    return replace(found, refused=(*refused, *refuted), reached=all(_reached(run, anew) for run in runs))


def _below(runs: Sequence[Run]) -> int:
    """How many searches do not come to the design that they begin with."""
    start = min((run.value for run in runs if run.engine == _FIRST and run.value is not None), default=inf)
    return sum(run.engine in FAMILY.seeded and not run.note and (inf if run.value is None else run.value) > start for run in runs)


def _solved(instance: Instance, engine: str, limits: Limits, watch: Watch) -> DesignResult:
    """The engine's answer; a KeyboardInterrupt if the check was interrupted, which says nothing about the runs."""
    found = solve(FAMILY, instance, engine, limits, watch)
    if found.stopped == "interrupted":
        raise KeyboardInterrupt(ENDED)
    return found


def _claims(runs: Sequence[Run]) -> bool:
    return any(run.proved or run.bound is not None for run in runs)


def _early_end(study: Study, run: Run) -> Iterator[str]:
    """Why a rule cannot have ended early: without a limit nothing ends it, with one it takes nearly all of it."""
    if run.stopped not in STOPPED:
        yield f"stopped: {run.stopped!r} is no way to end (one of {', '.join(STOPPED)})"
    allowed = min((limits.seconds for _, limits in turns_of(FAMILY, (run.engine,), study.plan.time_limit, 1)), default=inf)
    if run.stopped == "time limit" and run.seconds < allowed / 2.0:
        yield f"stopped: it ran out of time after {run.seconds:.3g} s, and had {'no limit' if allowed == inf else f'{allowed:.3g} s'}"
    if run.stopped == "interrupted" and study.stopped != "interrupted":
        yield "stopped: it was interrupted, and the comparison was not"


def _lost_claim(instance: Instance, run: Run, watch: Watch) -> Iterator[str]:
    """Why an exact engine that came to its end cannot have left the question open or refused it."""
    if run.note:
        try:
            _solved(instance, run.engine, Limits(seconds=_REFUSING), watch)
        except (RefusedError, ModelError, SolverError):
            return
        yield "note: asked again, the engine does not refuse the question"
    elif run.stopped == "error" and _solved(instance, run.engine, Limits(seconds=_REFUSING), watch).stopped == "complete":
        yield "stopped: asked again, the engine comes to its end without an error"


def _other_answer(instance: Instance, run: Run, limits: Limits, watch: Watch) -> Iterator[str]:
    """What a rule says now, where the run says something else; one that ended early may have found less."""
    try:
        found = _solved(instance, run.engine, limits, watch)
    except (RefusedError, ModelError, SolverError):
        if not run.note:
            yield "solved again, the engine refuses such a question"
        return
    if run.note:
        yield "note: solved again, the engine gives an answer; the run says that it refuses"
    elif found.stopped == "complete":
        least, recorded = (inf if value is None else value for value in (found.value, run.value))
        if recorded < least or (recorded > least and run.stopped in ("complete", "error")):
            yield f"value: solved again, it is {found.value!r}, the run says {run.value!r}"


def _refutations(run: Run, found: DesignResult) -> Iterator[str]:
    """Claims below which a design was found."""
    if found.value is None:
        return
    if run.status == "INFEASIBLE":
        yield f"there is a design, of {found.value!r}, where the run says that there is none"
    if run.bound is not None and run.bound > found.value:
        yield f"bound: a design takes {found.value!r}, the run claims {run.bound!r}"


def _reached(run: Run, found: DesignResult) -> bool:
    """Whether the claim of the run was proved again."""
    if run.status == "INFEASIBLE":
        return found.settled and found.value is None
    return run.bound is None or (found.bound is not None and run.bound <= found.bound)
