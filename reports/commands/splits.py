"""A placement as JSON for other programs.

devices   {id: name of its device}
split     {maxLoad, fpgas: [{load, nodes}], cpus: [{load, nodes}]}, as the programs of Tarnawski et al. (NeurIPS 2020) write and judge them
"""

import json
from pathlib import Path
from typing import Any

from crossopt.instances.errors import RefusedError
from crossopt.instances.question import read_again
from crossopt.reports.commands.asking import saved_in
from crossopt.solvers.checking import check
from crossopt.solvers.placement.answer import Placement, devices_in
from crossopt.solvers.placement.family import FAMILY, Answer


def export_placement(path: Path, form: str) -> str:
    """The placement of a saved result in this form."""
    _, result = saved_in(path, FAMILY.kind)
    if result.answer is None:
        raise RefusedError(f"{path}: there is no placement in this result (solve a question that has one)")
    report = check(FAMILY, result, path.parent)
    if not report.accepted:
        raise RefusedError(f"{path}: this result is not sound: {report.refused[0]} (`crossopt check` tells more)")
    what = result.answer.devices if form == "devices" else _split(result, result.answer, path.parent)
    return json.dumps(what, indent=1, allow_nan=False) + "\n"


def _split(result: Answer, placement: Placement, folder: Path) -> dict[str, Any]:
    question = read_again(result.question, FAMILY.kind, folder)
    places = devices_in(question, placement.devices).tolist()
    devices = [
        {"load": load.total, "nodes": [name for name, place in zip(question.graph.ids, places, strict=True) if place == device]}
        for device, load in enumerate(result.details.loads if result.details else ())
    ]
    return {"maxLoad": result.value, "fpgas": devices[: question.accelerators], "cpus": devices[question.accelerators :]}
