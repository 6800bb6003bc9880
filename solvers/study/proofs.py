"""Carries out anew what runs claim of their questions: each is solved once more, and rules of thumb are asked again.

    a bound is sound    where it is not above the bound that is found anew, and refuted where a design takes less
    a rule says         the same whenever it is asked: what a run says of it is that, to the last bit

What a search did not find is its word: another machine or second would have it find something else.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_question
from crossopt.instances.errors import ModelError, RefusedError, SolverError
from crossopt.solvers.answer import Limits, Watch, unwatched
from crossopt.solvers.checking import Report
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.claims import PROVERS
from crossopt.solvers.codesign.engines import RULES
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.family import solve
from crossopt.solvers.study.check import check, were
from crossopt.solvers.study.records import Run, Study
from crossopt.solvers.study.running import turns_of

_REPEATED = frozenset({*RULES, "plan-only", "hardware-only"})
"""Engines whose answer is the same whenever they end."""
ENDED = "the check was ended before all was looked at"
_FIRST = "recipes"
"""The rule with whose design searches begin."""
_TIMES, _MORE = 10.0, 30.0
"""A question has so many times what the slowest of its runs took, and so many seconds more."""


@dataclass(frozen=True, slots=True)
class _Again:
    """What came of a question: refusals, whether its claims were reached, and how many answers are of which sort."""

    refused: tuple[str, ...] = ()
    reached: bool = True
    repeated: int = 0
    """Answers of rules that are the same again."""
    cut: int = 0
    """Answers of rules that ran out of time, or were interrupted."""
    below: int = 0
    """Searches that end above the design that they begin with."""


def check_and_prove(study: Study, watch: Watch = unwatched) -> Report:
    """All that runs say, and the proofs of what they claim; nothing is proved of runs that are refused before."""
    report = check(study)
    if not report.accepted:
        return report
    found = [_again(study, place, watch) for place in range(len(study.questions))]
    claimed = [place for place in range(len(found)) if _claims(study.runs_of(place))]
    proved = sum(found[place].reached for place in claimed)
    rules, cut, below = (sum(one) for one in zip(*((one.repeated, one.cut, one.below) for one in found), strict=True))
    searched = {run.engine for run in study.runs} - {*_REPEATED, *PROVERS, "auto"}
    checked: tuple[str, ...] = (
        *((f"{proved:,} of {were(len(claimed), 'bounded question')} solved anew as far as bounds say",) if claimed else ()),
        *((f"{were(rules, 'answer')} asked of rules again, and came out the same",) if rules else ()),
        *((f"{were(cut, 'answer')} cut short by time: what such a rule did not find is its word",) if cut else ()),
        *((f"{were(below, 'answer', 'stand', 'stands')} above the best recipe's design, with which searches begin",) if below else ()),
        *((f"what searches found no better is their word ({', '.join(sorted(searched))})",) if searched else ()),
    )
    checked += ("nothing checks seconds, the ways to answers with their `to 1 %` and `to proof`, and by what a bound is said to be proved",)
    return Report((*report.checked, *checked), tuple(fault for one in found for fault in one.refused), proved < len(claimed))


def _again(study: Study, place: int, watch: Watch) -> _Again:
    """One question and all that was said of it."""
    runs, instance, name = study.runs_of(place), read_question(study.document(place)), study.questions[place].name
    limits = Limits(seconds=_MORE + _TIMES * max((run.seconds for run in runs), default=0.0))
    rules = [run for run in runs if run.engine in _REPEATED]
    faults = [(run, fault) for run in rules for fault in (*_early_end(study, run), *_other_answer(instance, run, limits, watch))]
    refused = [f"{name}, {run.engine}: {fault}" for run, fault in faults]
    whole, wrong = [run for run in rules if run.stopped == "complete"], [run for run, _ in faults]
    found = _Again(tuple(refused), repeated=sum(run not in wrong for run in whole), cut=len(rules) - len(whole), below=_below(runs))
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
    """What an engine says; a check that is ended says nothing, as what was not looked at is not the fault of the runs."""
    found = solve(FAMILY, instance, engine, limits, watch)
    if found.stopped == "interrupted":
        raise KeyboardInterrupt(ENDED)
    return found


def _claims(runs: Sequence[Run]) -> bool:
    return any(run.proved or run.bound is not None for run in runs)


def _early_end(study: Study, run: Run) -> Iterator[str]:
    """Why a rule cannot have ended early: without a limit nothing ends it, with one it takes nearly all of it."""
    allowed = min((limits.seconds for engine, limits in turns_of(study.plan) if engine == run.engine), default=inf)
    if run.stopped == "time limit" and run.seconds < allowed / 2.0:
        yield f"stopped: it ran out of time after {run.seconds:.3g} s, and had {'no limit' if allowed == inf else f'{allowed:.3g} s'}"
    if run.stopped == "interrupted" and study.stopped != "interrupted":
        yield "stopped: it was interrupted, and the comparison was not"


def _other_answer(instance: Instance, run: Run, limits: Limits, watch: Watch) -> Iterator[str]:
    """What a rule says now, where the run says something else; one that ended early may have found less."""
    try:
        found = _solved(instance, run.engine, limits, watch)
    except (RefusedError, ModelError, SolverError):
        if not run.note:
            yield "asked again it does not answer such a question"
        return
    if run.note:
        yield "note: asked again it answers, the run says that it does not"
    elif found.stopped == "complete":
        least, said = (inf if one is None else one for one in (found.value, run.value))
        if said < least or (said > least and run.stopped == "complete"):
            yield f"value: asked again it comes to {found.value!r}, the run says {run.value!r}"


def _refutations(run: Run, found: DesignResult) -> Iterator[str]:
    """Claims below which a design was found."""
    if found.value is None:
        return
    if run.status == "INFEASIBLE":
        yield f"there is a design, of {found.value!r}, where the run says that there is none"
    if run.bound is not None and run.bound > found.value:
        yield f"bound: a design takes {found.value!r}, the run says that none is below {run.bound!r}"


def _reached(run: Run, found: DesignResult) -> bool:
    """Whether what the run claims was proved anew."""
    if run.status == "INFEASIBLE":
        return found.settled and found.value is None
    return run.bound is None or (found.bound is not None and run.bound <= found.bound)
