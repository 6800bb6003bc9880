"""What the command `check` says of a saved result, whatever it is about."""

import sys
from pathlib import Path

from crossopt.instances.files.saved import kind_of
from crossopt.instances.kinds import KINDS
from crossopt.reports.commands.families import check_of
from crossopt.solvers.checking import Report


def checked(path: Path, cross_check: bool = False) -> Report:
    """Everything that a saved result says, said again from its question alone."""
    kind = kind_of(path)
    if kind in KINDS and (KINDS[kind].family or KINDS[kind].commands):
        return check_of(kind)(path)
    if kind == "front":
        from crossopt.reports.commands.fronts import check_front  # noqa: PLC0415 - it asks engines

        return check_front(path, cross_check)
    from crossopt.reports.commands.files import read_any  # noqa: PLC0415
    from crossopt.reports.commands.progress import progress_on  # noqa: PLC0415
    from crossopt.solvers.codesign.combined.devices.check import check_open  # noqa: PLC0415

    result = read_any(path)
    with progress_on(sys.stderr, str(result.instance.get("unit", ""))) as watch:
        return check_open(result, watch, cross_check)
