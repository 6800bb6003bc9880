"""What is asked again is solved once: answers kept by the question, which is the same object wherever it is asked."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

Answer = TypeVar("Answer")


def once(solve: Callable[..., Answer]) -> Callable[..., Answer]:
    """The function, asked once for each first argument as an object and the others by value; nobody may change an answer."""
    known: dict[tuple[Any, ...], tuple[object, Answer]] = {}
    usual = [parameter.default for parameter in signature(solve).parameters.values()]

    @wraps(solve)
    def asked(one: object, *others: Any) -> Answer:  # noqa: ANN401
        key = (id(one), *others, *usual[1 + len(others) :])  # what is left out is what stands there by default
        if key not in known:
            known[key] = one, solve(one, *others)  # the question is kept, so that no other one is given its number
        return known[key][1]

    return asked
