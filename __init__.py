"""Which chip, memory, parallel plan and placement train this model best, how far is anything else from it, and how do you know?

import crossopt

answer = crossopt.solve("tiny", settings={"tensor": [1, 2, 4]})
answer.value, answer.bound, answer.proved
crossopt.check(answer).accepted
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossopt.instances.errors import InstanceError
    from crossopt.reports.api import accuracy, check, compare, evaluate, explain, plan, read, report, solve
    from crossopt.reports.results import Answer, Evaluation, Plot

__version__ = "0.1.0"
_WHERE = {"InstanceError": "instances.errors", "Answer": "reports.results", "Evaluation": "reports.results", "Plot": "reports.results"}
__all__ = [
    "Answer",
    "Evaluation",
    "InstanceError",
    "Plot",
    "accuracy",
    "check",
    "compare",
    "evaluate",
    "explain",
    "plan",
    "read",
    "report",
    "solve",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a name is fetched when it is used, so that help need not wait for numpy
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE.get(name, 'reports.api')}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
