"""Questions: the YAML files, their reading, the registries of hardware, technologies and workloads, and the designs a question allows."""

from instances.document import Fault, InstanceError
from instances.instance import FreeHardware, Instance
from instances.reading import read_instance, read_question

__all__ = ["Fault", "FreeHardware", "Instance", "InstanceError", "read_instance", "read_question"]
