"""Questions: YAML files and their readers, the registries of hardware, technologies and workloads, and the design space of a question."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossopt.instances.codesign.instance import FreeHardware, Instance, Portfolio
    from crossopt.instances.codesign.question import read_instance, read_question, read_single_scale, saved_single_scale
    from crossopt.instances.errors import Fault, InstanceError

_WHERE = {
    "Fault": "errors",
    "FreeHardware": "codesign.instance",
    "Instance": "codesign.instance",
    "InstanceError": "errors",
    "Portfolio": "codesign.instance",
    "saved_single_scale": "codesign.question",
    "read_single_scale": "codesign.question",
    "read_instance": "codesign.question",
    "read_question": "codesign.question",
}
__all__ = [
    "Fault",
    "FreeHardware",
    "Instance",
    "InstanceError",
    "Portfolio",
    "read_instance",
    "read_question",
    "read_single_scale",
    "saved_single_scale",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a name is fetched when it is used, so that help need not wait for numpy
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
