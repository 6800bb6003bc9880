"""Questions: the YAML files, their reading, the registries of hardware, technologies and workloads, and the designs a question allows."""

from instances.document import Fault, InstanceError
from instances.instance import FreeHardware, Instance, Portfolio
from instances.reading import asked_in, read_asked, read_instance, read_question

__all__ = [
    "Fault",
    "FreeHardware",
    "Instance",
    "InstanceError",
    "Portfolio",
    "asked_in",
    "read_asked",
    "read_instance",
    "read_question",
]
