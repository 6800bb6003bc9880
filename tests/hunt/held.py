"""What must hold of every answer, and of every edit of one: nothing that is called proved is false, and what is false is refused."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from random import Random
from typing import Any

from crossopt.instances.errors import RefusedError
from crossopt.solvers.answer import Limits, Result, result_in, to_text, unwatched
from crossopt.solvers.checking import Report, check_answer
from crossopt.solvers.family import UNLIKE, ProblemType, family_of, solve
from tests.hunt.drawn import Drawn
from tests.hunt.mutants import lie
from tests.hunt.relations import related
from tests.solvers.codesign.editing import at, edits, leaves, remembering

Data = dict[str, Any]
SECONDS = 5.0
"""Of each engine, at most."""
_KEPT_AS_ASKED = ("question",)
"""Where an edit asks another question, which has another best answer."""


class FindingError(Exception):
    """Something that must not be, with what shows it again."""

    def __init__(self, said: str, data: Data) -> None:
        super().__init__(said)
        self.data = data


def hunt(drawn: Drawn, random: Random, tries: int) -> Counter[str]:
    """Ask every engine, check what it says, and edit that so many times; how many results and edits were looked at, and what was said."""
    count, best = Counter[str](), None
    with remembering(family_of(drawn.kind)) as family:
        for engine in drawn.engines:
            try:
                result = solve(family, drawn.question, engine, Limits(SECONDS), unwatched)
            except RefusedError:
                continue
            count += _attacked(family, drawn, result, random, tries)
            best = result
        for relation, other in related(drawn, best, random) if best is not None else ():
            for engine in other.engines:
                try:
                    result = solve(family, other.question, engine, Limits(SECONDS), unwatched)
                except RefusedError:
                    continue
                try:
                    _attacked(family, other, result, random, 0)
                except FindingError as found:
                    raise FindingError(f"{relation}: {found}", found.data) from found
                count["related"] += 1
    return count


def _attacked(family: ProblemType[Any, Any, Any], drawn: Drawn, result: Result[Any, Any], random: Random, tries: int) -> Counter[str]:
    """Check a result, and edits of it."""
    data, engine, count = data_of(result), result.engine, Counter[str]()
    report = accepted(family, drawn, data)
    if unlike := [note for note in result.notes if note.startswith(UNLIKE)]:
        raise FindingError(f"{engine}: {unlike[0]}", data)
    if ended := [note for note in result.notes if "ended early" in note]:
        raise FindingError(f"{engine}: {ended[0]}", data)
    if report is None or not report.accepted:
        raise FindingError(f"{engine}: an honest result is refused: {report and report.refused}", data)
    if result.proved and report.unverified:
        raise FindingError(f"{engine}: it is called proved and only told", data)
    hold(drawn, result, report, data)
    count["answered"] += 1
    count["compared"] += result.value is not None or result.proved
    count["told" if report.unverified else "proved" if result.proved else "not proved"] += 1
    count["without an answer"] += drawn.least == inf and result.proved
    worse = with_rival(family, drawn, result)
    for forged in forgeries([data, *([worse] if worse else [])], random, tries):
        report = accepted(family, drawn, forged)
        if report is not None and report.accepted:
            hold(drawn, result_in(forged, family.answer, family.details), report, forged)
        count["forged"] += 1
    return count


def data_of(result: Result[Any, Any]) -> Data:
    """A result as its file has it."""
    return dict(json.loads(to_text(result)))


def accepted(family: ProblemType[Any, Any, Any], drawn: Drawn, data: Data) -> Report | None:
    """What a check says of a result; None where it is none at all."""
    try:
        return check_answer(family, result_in(json.loads(json.dumps(data)), family.answer, family.details), drawn.question)
    except ValueError:
        return None


def hold(drawn: Drawn, result: Result[Any, Any], report: Report, data: Data) -> None:
    """A result that was accepted is true, as far as it is not only told."""
    least = drawn.least
    if result.value is not None and result.value < least * (1.0 - drawn.nearness):
        raise FindingError(f"{result.engine}: {result.value!r} is better than everything that was tried, {least!r}", data)
    if report.unverified:
        return
    if result.bound is not None and result.bound > least * (1.0 + drawn.nearness):
        raise FindingError(f"{result.engine}: nothing is below {result.bound!r}, it says, and {least!r} is", data)
    if result.value is None and result.proved and least < inf:
        raise FindingError(f"{result.engine}: it proves that there is nothing, and {least!r} is", data)


def with_rival(family: ProblemType[Any, Any, Any], drawn: Drawn, result: Result[Any, Any]) -> Data | None:
    """The same claim about the best baseline, all of whose figures are true of it; None where no baseline is worse than the answer."""
    baselines = [baseline for baseline in result.baselines if baseline.value is not None and baseline.answer is not None]
    best = min(baselines, key=lambda baseline: baseline.value or 0.0, default=None)
    if best is None or result.value is None or best.value == result.value:
        return None
    verdict = family.judge(drawn.question, best.answer)
    claim = replace(result, answer=best.answer, details=verdict.details, value=verdict.value, bound=verdict.value, gap=0.0, trace=())
    return data_of(replace(claim, proved=not claim.unverified, status="FEASIBLE" if claim.unverified else "OPTIMAL"))


def forgeries(truths: Sequence[Data], random: Random, tries: int) -> Iterator[Data]:
    """Results, be they honest or a liar's, with one value changed, or with several that belong together."""
    yield from truths[1:]
    texts = [json.dumps(truth) for truth in truths]
    ways = [[path for path in leaves(truth) if path[0] not in _KEPT_AS_ASKED] for truth in truths]
    for _ in range(tries):
        number = random.randrange(len(truths))
        forged, places = json.loads(texts[number]), ways[number]
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            path = random.choice(places)
            inner = at(forged, path[:-1])
            if path[-1] in (inner if isinstance(inner, dict) else range(len(inner))):
                inner[path[-1]] = random.choice(edits(inner[path[-1]]))
        if random.random() < 0.5:
            lie(forged, random)
        yield forged


def kept(folder: Path, name: str, seed: int, data: Data) -> Path:
    """A finding as a file, to be asked again."""
    path = folder / f"{name.replace(' ', '-')}-{seed}.json"
    path.write_text(json.dumps(data, indent=1), encoding="utf-8")
    return path
