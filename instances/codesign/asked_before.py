"""What was worked out for a question a moment ago: an answer, its check and the rivals beside it ask the same of one question again."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

Asked = TypeVar("Asked")
Known = TypeVar("Known")

_LAST = 8
"""Questions of which the answers are kept."""


def remembered(work_out: Callable[[Asked], Known]) -> Callable[[Asked], Known]:
    """The function, which looks first whether it was asked the same just before. Questions hold documents, so that they have no hash."""
    last: list[tuple[Asked, Known]] = []

    @wraps(work_out)
    def ask(question: Asked) -> Known:
        for asked, known in last[:_LAST]:
            if asked is question or asked == question:
                return known
        known = work_out(question)
        last[:] = [(question, known), *last][:_LAST]
        return known

    return ask
