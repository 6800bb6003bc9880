"""A question about several numbers of devices where one is needed: the fault, and what a reader of them all wants to know."""

from collections.abc import Sequence

from crossopt.instances.codesign.section import KEYS, CodesignFile
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.files.document import Node, fault_at
from crossopt.instances.files.settings import with_setting

FEWEST = "devices"
"""The objective of the fewest devices, which only a question with several numbers of them can have."""
_MOST = 64
"""Numbers of devices of a question; each is a question of its own."""


class OpenDevicesError(InstanceError):
    """Several numbers of devices are asked for; the message says how to ask for one."""

    def __init__(self, source: str, fault: Fault, file: CodesignFile) -> None:
        super().__init__(source, [fault])
        self.name = file.name
        self.objective: str = file.objective
        self.counts = file.cluster.devices


def refuse_open_devices(file: CodesignFile, root: Node, source: str, settings: Sequence[str]) -> None:
    """An OpenDevicesError where the question asks for the best of several numbers of devices; an InstanceError where they are too many."""
    counts = file.cluster.devices
    if len(counts) == 1:
        return
    remedy = f"--set cluster.devices={counts[-1]}" + (" --set objective=step_time" if file.objective == FEWEST else "")
    message = f"{len(counts)} numbers of devices are asked for, and here one is needed (say {remedy}; `solve` finds the best of them)"
    if len(counts) > _MOST:
        message = f"{len(counts)} numbers of devices are more than the {_MOST} that a question may have (give fewer, or a larger step)"
        raise InstanceError(source, [with_setting(fault_at(root, "cluster.devices", message), settings, KEYS)])
    raise OpenDevicesError(source, with_setting(fault_at(root, "cluster.devices", message), settings, KEYS), file)
