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
    from crossopt.reports.api import (
        accuracy,
        check,
        checkpoint,
        compare,
        evaluate,
        explain,
        export,
        front,
        import_graph,
        place,
        plan,
        quantize,
        read,
        report,
        solve,
        sweep,
        validate,
    )
    from crossopt.reports.commands.networks import Network, from_torch
    from crossopt.reports.comparisons import Comparison, DesignFront, Explanation, Sweep
    from crossopt.reports.results import Answer, Evaluation, Plot

__version__ = "0.1.0"
_WHERE = {
    "instances.errors": ("InstanceError",),
    "reports.commands.networks": ("Network", "from_torch"),
    "reports.comparisons": ("Comparison", "DesignFront", "Explanation", "Sweep"),
    "reports.results": ("Answer", "Evaluation", "Plot"),
    "reports.api": (
        *("accuracy", "check", "checkpoint", "compare", "evaluate", "explain", "export", "front", "import_graph", "place", "plan"),
        *("quantize", "read", "report", "solve", "sweep", "validate"),
    ),
}
"""Public names by the modules that define them."""
__all__ = [
    "Answer",
    "Comparison",
    "DesignFront",
    "Evaluation",
    "Explanation",
    "InstanceError",
    "Network",
    "Plot",
    "Sweep",
    "accuracy",
    "check",
    "checkpoint",
    "compare",
    "evaluate",
    "explain",
    "export",
    "from_torch",
    "front",
    "import_graph",
    "place",
    "plan",
    "quantize",
    "read",
    "report",
    "solve",
    "sweep",
    "validate",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a name is fetched when it is used, so that help need not wait for numpy
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{next(module for module, names in _WHERE.items() if name in names)}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
