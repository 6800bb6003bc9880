"""Checks saved runs without believing any: questions are read anew, and every design is priced anew in the question as it was asked.

The judge prices one design after another; where time is short, designs are priced in blocks, and the judge hears what is not alike.

Bounds are told here, as the engines that proved them are not run again (proofs.py does that); that no design is below any bound is seen.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import fsum, inf, isfinite
from pathlib import Path

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_question
from crossopt.instances.errors import InstanceError, ModelError, VerificationError
from crossopt.instances.files.dataclass_json import to_plain
from crossopt.solvers.answer import gap_between
from crossopt.solvers.checking import Report, trace_holds
from crossopt.solvers.codesign.answer import Candidate, ChosenDesign, candidate_in, chosen_design
from crossopt.solvers.codesign.claims import PROVERS
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.codesign.judge import verify
from crossopt.solvers.codesign.objective import UNITS
from crossopt.solvers.study.columns import with_columns
from crossopt.solvers.study.figures import hold_together
from crossopt.solvers.study.pricing import price_together
from crossopt.solvers.study.records import Run, Study
from crossopt.solvers.sweeps.keys import question_digest
from crossopt.solvers.sweeps.names import Named, name_faults

_WIDEST = 1e-3
"""Gap beyond which nobody calls a value proved here."""


def check(study: Study, in_blocks: bool = False) -> Report:
    """Everything that the runs say, as far as it can be said again without their engines."""
    refused = _form(study)
    if refused:
        return Report((), tuple(refused))
    told, instances = False, list[Instance]()
    for place, asked in enumerate(study.questions):
        runs = study.runs_of(place)
        try:
            instance = read_question(study.document(place))
        except InstanceError as error:
            refused.append(f"questions[{place}]: it cannot be read: {error}")
            continue
        instances.append(instance)
        if (asked.objective, asked.unit) != (instance.objective, UNITS[instance.objective]):
            refused.append(f"questions[{place}]: the question asks for {instance.objective} in {UNITS[instance.objective]}")
        seen = _priced_in_blocks(instance, runs) if in_blocks else dict[str, _Seen]()
        refused += [f"{asked.name}, {run.engine}, seed {run.seed}: {fault}" for run in runs for fault in _faults(instance, run, seen)]
        told = told or any(run.bound is not None or run.proved for run in runs)
        try:
            hold_together(asked.name, runs)
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
    return Report(checked, tuple(refused), told)


def were(number: int, what: str, several: str = "were", one: str = "was") -> str:
    """So many of something, and the verb that goes with them."""
    return f"{number:,} {what} {one}" if number == 1 else f"{number:,} {what}s {several}"


def _form(study: Study) -> list[str]:
    """Whether the parts belong together."""
    plan, faults = study.plan, list[str]()
    if any(not 0 <= question.source < len(study.sources) for question in study.questions):
        faults.append("questions: one has a text that is not there")
    if any(len(question.at) != len(plan.axes) for question in study.questions):
        faults.append("questions: each has a value on each axis")
    strange = [run for run in study.runs if not 0 <= run.question < len(study.questions) or run.engine not in plan.engines]
    if strange:
        faults.append("runs: one is of a question or an engine that is not asked")
    if study.stopped not in {"complete", "interrupted"}:
        faults.append("stopped: this is complete or interrupted")
    if any(run.question > after.question for run, after in pairwise(study.runs)):
        faults.append("runs: they stand question by question")
    if not fsum(run.seconds for run in study.runs) <= study.seconds < inf:
        faults.append("seconds: all together take less than the runs did")
    keys = [(run.question, run.engine, run.seed) for run in study.runs]
    if len(set(keys)) < len(keys):
        faults.append("runs: one is told twice")
    if study.stopped == "complete" and any(not _whole(study, engine) for engine in plan.engines):
        faults.append("runs: one is missing")
    return faults


def _name_faults(study: Study) -> list[str]:
    """What of the names of questions and axes is other than was asked."""
    documents = [study.document(place) for place in range(len(study.questions))]
    points = [
        Named(one.name, one.subject, one.at, FAMILY.kind, question_digest(FAMILY.kind, document), document)
        for one, document in zip(study.questions, documents, strict=True)
    ]
    strange = [
        f"{one.name}: its question is in {document['source']}, which is not so called"
        for one, document in zip(study.questions, documents, strict=True)
        if one.subject and (one.subject == Path(document["source"]).stem) == (one.subject in study.plan.called)
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


def _whole(study: Study, engine: str) -> bool:
    """Whether an engine was asked every question with the same seeds, from 0 on: one, or all of them."""
    found = {tuple(run.seed for run in study.runs_of(question, engine)) for question in range(len(study.questions))}
    return found in ({(0,)}, {tuple(range(study.plan.seeds))})


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the full model says of a design: its value, and the limits that it breaks."""

    value: float
    violations: tuple[str, ...]


def _judged(instance: Instance, chosen: Candidate) -> _Seen:
    verdict = verify(instance, chosen)
    return _Seen(verdict.value, verdict.violations)


def _priced_in_blocks(instance: Instance, runs: Sequence[Run]) -> dict[str, _Seen]:
    """The designs whose values are found again in a block; all others are left to the judge."""
    chosen = dict[str, tuple[Candidate, float | None]]()
    for run in runs:
        if run.design is not None:
            try:
                chosen[_key(run.design)] = candidate_in(instance, run.design), run.value
            except ValueError:
                continue
    try:
        values = price_together(instance, [one for one, _ in chosen.values()])
    except ModelError:
        return {}
    pairs = zip(chosen.items(), values, strict=True)
    return {key: _Seen(value, ()) for (key, (_, told)), value in pairs if value is not None and value == told}


def _key(design: ChosenDesign) -> str:
    return json.dumps(to_plain(design), sort_keys=True)


def _faults(instance: Instance, run: Run, seen: dict[str, _Seen]) -> list[str]:
    """What of a run is not so; `seen` keeps what the full model says of designs that several engines found."""
    rules = (
        ("value, design and `verified` belong together", (run.value is None) == (run.design is None) == (not run.verified)),
        ("an optimum has a value that is its bound", run.status != "OPTIMAL" or (run.proved and run.value == run.bound)),
        ("who does not answer has no value", not run.note or run.value is None),
        ("what is feasible has a value", (run.status in {"OPTIMAL", "FEASIBLE"}) == (run.value is not None)),
        ("what is infeasible is proved", run.status != "INFEASIBLE" or (run.proved and run.bound is None)),
        ("a proof has a bound", not run.proved or run.status == "INFEASIBLE" or run.bound is not None),
        ("what is proved is as near to its bound as was asked", _is_near(run)),
        ("the way to the answer is no way", _is_way(run)),
        (f"{run.answered_by} does not answer for {run.engine}", _answers(run)),
        (f"{run.answered_by} proves nothing", run.answered_by in PROVERS or not (run.proved or run.bound is not None)),
    )
    faults = [sentence for sentence, holds in rules if not holds]
    if run.design is None:
        return faults
    key = _key(run.design)
    try:
        chosen = candidate_in(instance, run.design)
        verdict = seen[key] = seen[key] if key in seen else _judged(instance, chosen)
    except ValueError as error:
        return [*faults, f"the design is none of the question: {error}"]
    if chosen_design(instance, chosen) != run.design:
        faults.append("the design is told in other words than it has")
    faults += [f"the design breaks a limit: {violation}" for violation in verdict.violations]
    if verdict.value != run.value:
        faults.append(f"value: the full model prices the design at {verdict.value!r}, the run says {run.value!r}")
    return faults


def _is_near(run: Run) -> bool:
    """Whether the gap is the one that was asked for, where the run claims a proof."""
    if not run.proved or run.value is None or run.bound is None:
        return True
    return 0.0 <= run.gap_asked <= _WIDEST and gap_between(run.value, run.bound) <= run.gap_asked


def _is_way(run: Run) -> bool:
    """Whether values fall to the answer and bounds rise to its bound, at times that rise within those of the run."""
    within = isfinite(run.seconds) and run.seconds >= 0.0 and all(at <= run.seconds for at, _, _ in run.trace)
    return within and trace_holds(run.trace, run.value, run.bound)


def _answers(run: Run) -> bool:
    """Whether an engine answered itself; `auto` leaves that to one of two."""
    return run.answered_by == run.engine or (run.engine == "auto" and run.answered_by in {"exhaustive", "boxes"})
