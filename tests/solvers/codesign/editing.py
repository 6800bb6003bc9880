"""Edits of saved results, one figure at a time: which of them a check would accept."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion, Portfolio
from crossopt.solvers.answer import result_in
from crossopt.solvers.checking import check_answer
from crossopt.solvers.codesign import claims
from crossopt.solvers.codesign.answer import Designs, EvaluatedDesigns
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.family import ProblemType
from crossopt.solvers.serving import judge as serving
from tests.once import once
from tests.solvers.codesign.asking import checked, reread

Path = tuple[Any, ...]


def leaves(value: object, path: Path = ()) -> Iterator[Path]:
    """The way to every scalar, and to every empty list or mapping."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        for place, inner in enumerate(value):
            yield from leaves(inner, (*path, place))
    else:
        yield path


def edits(value: object) -> list[object]:
    """Other values of the same type, near and far, and one of another type."""
    match value:
        case bool():
            return [not value, "yes"]
        case int():
            return [value + 1, -1, "1"]
        case float():
            return [value * (1 + 1e-12) + 1e-300, value * 0.5 - 1.0, None]
        case str():
            return [value + "x", value[:-1] if value else "y", 1]
        case None:
            return [0.0, "x"]
        case _:
            return [["x"], 1]


def at(data: Any, path: Path) -> Any:  # noqa: ANN401
    """What stands at the end of a way."""
    for step in path:
        data = data[step]
    return data


def edited(data: dict[str, Any], path: Path, value: object) -> dict[str, Any]:
    """The result with another value at the end of a way."""
    copy = deepcopy(data)
    at(copy, path[:-1])[path[-1]] = value
    return copy


def refused(data: dict[str, Any]) -> bool:
    """Whether an edited result is refused, be it as no result at all or by the check."""
    try:
        return not checked(reread(data)).accepted
    except ValueError:
        return True


def accepted_edits(
    question: Instance | Portfolio | MultiScaleQuestion, data: dict[str, Any], paths: Sequence[Path]
) -> list[tuple[Path, object]]:
    """The single edits of a result that would be accepted; the data is left as it was."""
    found: list[tuple[Path, object]] = []
    with remembering() as family:
        for path in paths:
            inner, key = at(data, path[:-1]), path[-1]
            true = inner[key]
            for value in edits(true):
                inner[key] = value
                passed = not refused(data) if path[0] == "question" else passes(family, question, data)
                found += [(path, value)] if passed else []
            inner[key] = true
    return found


def passes(family: ProblemType[Any, Any, Any], question: Instance | Portfolio | MultiScaleQuestion, data: dict[str, Any]) -> bool:
    """Whether a result that asks this question is one, and is accepted."""
    try:
        return check_answer(family, result_in(data, Designs, EvaluatedDesigns), question).accepted
    except ValueError:
        return False


@contextmanager
def remembering(family: ProblemType[Any, Any, Any] = FAMILY) -> Iterator[ProblemType[Any, Any, Any]]:
    """The family of questions that judges a design once, and repeats a proof once: most edits leave these as they are."""
    with pytest.MonkeyPatch.context() as patches:
        judge = _remembered(family.judge)
        if family.kind == FAMILY.kind:
            patches.setattr(claims, "judge", judge)
            patches.setattr(claims, "recipes_baselines", once(claims.recipes_baselines))
        if family.kind == "serving":
            price = once(serving.priced)
            patches.setattr(serving, "priced", lambda question, shapes: price(question, tuple(shapes)))
        yield replace(family, judge=judge, prove=_proved_once(family.prove))


def _proved_once(prove: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """By the question as an object, and all of a result that a prover may read: one that reads more finds nothing there."""
    known: dict[tuple[int, str], tuple[Any, Any]] = {}

    def proved(question: Any, result: Any, watch: Any) -> Any:  # noqa: ANN401
        bare = _bare(result)
        key = id(question), repr(bare)
        if key not in known:
            known[key] = question, prove(question, bare, watch)
        return known[key][1]

    return proved


def _bare(result: Any) -> Any:  # noqa: ANN401
    nothing: Any = None
    parts = tuple(_bare(part) for part in result.parts)
    return replace(result, baselines=nothing, trace=nothing, seconds=nothing, versions=nothing, parts=parts)


def _remembered(judge: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """By the question as an object and the design in all its digits."""
    known: dict[tuple[int, str], tuple[Any, Any]] = {}

    def remembered(question: Any, answer: Any) -> Any:  # noqa: ANN401
        key = id(question), repr(answer)
        if key not in known:
            known[key] = question, judge(question, answer)  # the question is kept, so that no other one is given its number
        return known[key][1]

    return remembered
