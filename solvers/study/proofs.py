"""Carries out anew what runs claim of their questions: each is solved once more, and rules of thumb are asked again.

    a bound is sound    where it is not above the bound that is found anew, and refuted where a design takes less
    a rule says         the same whenever it is asked: what a run says of it is that, to the last bit

What a search did not find is its word: another machine or second would have it find something else.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_question
from crossopt.solvers.answer import Limits, Watch, unwatched
from crossopt.solvers.checking import Report
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.claims import PROVERS
from crossopt.solvers.codesign.engines import RULES
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.family import solve
from crossopt.solvers.study.check import check
from crossopt.solvers.study.records import Run, Study

_REPEATED = frozenset({*RULES, "plan-only", "hardware-only"})
"""Engines whose answer is the same whenever they end."""
_TIMES, _MORE = 10.0, 30.0
"""A question has so many times what the slowest of its runs took, and so many seconds more."""


@dataclass(frozen=True, slots=True)
class _Again:
    """What came of a question: refusals, whether its claims were reached, and how many rules said the same."""

    refused: tuple[str, ...] = ()
    reached: bool = True
    repeated: int = 0


def check_and_prove(study: Study, watch: Watch = unwatched) -> Report:
    """All that runs say, and the proofs of what they claim; nothing is proved of runs that are refused before."""
    report = check(study)
    if not report.accepted:
        return report
    found = [_again(study, place, watch) for place in range(len(study.questions))]
    claimed = [place for place in range(len(found)) if _claims(study.runs_of(place))]
    proved = sum(found[place].reached for place in claimed)
    rules, searched = sum(one.repeated for one in found), {run.engine for run in study.runs} - {*_REPEATED, *PROVERS, "auto"}
    checked = (
        *((f"{proved} of {len(claimed)} questions with bounds were solved anew as far as these say",) if claimed else ()),
        *((f"{rules} answers of rules were asked for again, and are the same",) if rules else ()),
        *((f"what searches found no better is their word ({', '.join(sorted(searched))})",) if searched else ()),
    )
    return Report((*report.checked, *checked), tuple(fault for one in found for fault in one.refused), proved < len(claimed))


def _again(study: Study, place: int, watch: Watch) -> _Again:
    """One question and all that was said of it."""
    runs, instance, name = study.runs_of(place), read_question(study.document(place)), study.questions[place].name
    limits = Limits(seconds=_MORE + _TIMES * max((run.seconds for run in runs), default=0.0))
    rules = [run for run in runs if run.engine in _REPEATED and run.stopped == "complete" and not run.note]
    refused = [f"{name}, {run.engine}: {fault}" for run in rules for fault in _other_answer(instance, run, limits, watch)]
    same = len(rules) - len(refused)
    if not _claims(runs):
        return _Again(tuple(refused), repeated=same)
    found = solve(FAMILY, instance, "auto", limits, watch)
    refuted = [f"{name}, {run.engine}, seed {run.seed}: {fault}" for run in runs for fault in _refutations(run, found)]
    return _Again((*refused, *refuted), all(_reached(run, found) for run in runs), same)


def _claims(runs: Sequence[Run]) -> bool:
    return any(run.proved or run.bound is not None for run in runs)


def _other_answer(instance: Instance, run: Run, limits: Limits, watch: Watch) -> Iterator[str]:
    """What a rule says now, where the run says something else."""
    found = solve(FAMILY, instance, run.engine, limits, watch)
    if found.stopped == "complete" and found.value != run.value:
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
