"""Every engine on a question that leaves devices, network or batch open: one part after the other, the fewest devices first.

With v_k and b_k the value and the bound of the k-th part, b_k infinite where none is possible:

    value = min v_k        bound = min b_k

Where the fewest devices are asked for, v_k is the number itself if a design was found, and b_k unless none was proved possible, whatever
was looked at. Values of several batches are per sample or per token, or else a smaller batch would always be the best.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isfinite
from time import monotonic

from crossopt.instances.codesign.instance import MultiScaleQuestion
from crossopt.instances.codesign.open_questions import FEWEST
from crossopt.solvers.answer import Limits, Progress, SearchOutcome, Watch
from crossopt.solvers.codesign.answer import DesignResult, Designs
from crossopt.solvers.family import certify, family_of, simplest_of, solve
from crossopt.solvers.proofs import Parts

NOT_THE_FASTEST = "these are the fewest devices; whether another design on them is faster is not proved"


def solve_counts(question: MultiScaleQuestion, engine: str, limits: Limits, watch: Watch) -> SearchOutcome[Designs]:
    """The best of the answers for all numbers of devices, which share the time; for the fewest devices only up to the first design."""
    deadline, family = monotonic() + limits.seconds, family_of("codesign")
    answers: list[DesignResult] = []
    for index, part in enumerate(question.parts):
        left = replace(limits, seconds=max(deadline - monotonic(), 0.0))
        answers.append(solve(family, part, engine, left, _of_part(question, index, watch), simplest=simplest_of(family, part)))
        found = question.objective == FEWEST and answers[-1].value is not None
        if found or answers[-1].stopped == "interrupted":
            break
    return together(question, engine, answers)


def _of_part(question: MultiScaleQuestion, index: int, watch: Watch) -> Watch:
    """Progress of one part, by its name; where the fewest devices are asked for, a design there has their number as its value."""
    name, count = question.part_name(index), float(question.counts[index])

    def tell(progress: Progress) -> None:
        named = replace(progress, label=f"{name}: {progress.label}")
        found = count if progress.best is not None else None
        watch(replace(named, best=found, bound=None) if question.objective == FEWEST else named)

    return tell


def alone(question: MultiScaleQuestion, found: SearchOutcome[Designs], limits: Limits) -> SearchOutcome[Designs]:
    """What a design with one number of devices says of all numbers, where the others are not known."""
    family, parts = family_of("codesign"), list[DesignResult]()
    for scale, part in zip(question.scales, question.parts, strict=True):
        mine = found.answer is not None and found.answer.scale == scale
        outcome = SearchOutcome(found.answer.alone_there() if found.answer and mine else None, engine=found.engine, stopped=found.stopped)
        parts.append(certify(family, part, outcome, limits, 0.0))
        if mine:
            break
    return together(question, found.engine, parts)


def together(question: MultiScaleQuestion, engine: str, answers: Sequence[DesignResult]) -> SearchOutcome[Designs]:
    """What the answers for the first numbers of devices say about all of them."""
    fewest = question.objective == FEWEST
    values = [_value(count, answer, fewest) for count, answer in zip(question.counts, answers, strict=False)]
    value = min(values, default=inf)
    best = answers[values.index(value)] if isfinite(value) else None
    answer = best.answer.at_scale(question.scales[values.index(value)]) if best and best.answer else None
    bounds = [_bound(count, answers[index] if index < len(answers) else None, fewest) for index, count in enumerate(question.counts)]
    bound = min(bounds) if min(bounds) > -inf else None
    return SearchOutcome(
        answer=answer,
        bound=bound,
        proof=None if bound is None else Parts(f"the answers for each {' and '.join(_what(question))}"),
        engine=engine,
        stopped=next((answer.stopped for answer in answers if answer.stopped != "complete"), "complete"),
        notes=(NOT_THE_FASTEST,) if fewest and best and best.status != "OPTIMAL" else (),
        parts=tuple(answers),
        coarse=max((answer.gap_asked for answer in answers), default=0.0),
        seconds=sum(answer.seconds for answer in answers),
    )


def _what(question: MultiScaleQuestion) -> list[str]:
    """What the parts differ in."""
    devices = ["number of devices"] if question.by_devices or not question.networks else []
    return [*devices, *([question.compared_name] if question.networks else []), *(["batch"] if question.batches else [])]


def _value(count: int, answer: DesignResult, fewest: bool) -> float:
    if answer.value is None:
        return inf
    return float(count) if fewest else float(answer.value)


def _bound(count: int, answer: DesignResult | None, fewest: bool) -> float:
    """Lower bound for one number of devices; minus infinity if unknown."""
    if answer is not None and answer.value is None and answer.settled:
        return inf
    if fewest:
        return float(count)
    return -inf if answer is None or answer.bound is None else float(answer.bound)
