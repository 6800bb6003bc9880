"""A placement as JSON for other programs.

devices   {id: name of its device}
split     {maxLoad, fpgas: [{load, nodes}], cpus: [{load, nodes}]}, as the programs of Tarnawski et al. (NeurIPS 2020) write and judge them
"""

import json
from pathlib import Path
from typing import Any

from crossopt.instances.errors import RefusedError
from crossopt.instances.files.saved import read_as
from crossopt.instances.question import read_again
from crossopt.solvers.placement.answer import PlacementResult, devices_in, from_json
from crossopt.solvers.placement.check import check


def export_placement(path: Path, form: str) -> str:
    """The placement of a saved result in this form."""
    result = read_as(path, from_json)
    if result.placement is None:
        raise RefusedError(f"{path}: there is no placement in this result (solve a question that has one)")
    report = check(result)
    if not report.accepted:
        raise RefusedError(f"{path}: this result is not sound: {report.refused[0]} (`crossopt check` tells more)")
    what = result.placement if form == "devices" else _split(result)
    return json.dumps(what, indent=1, allow_nan=False) + "\n"


def _split(result: PlacementResult) -> dict[str, Any]:
    question = read_again(result.instance, "placement")
    places = devices_in(question, result.placement).tolist()
    devices = [
        {"load": load.total, "nodes": [name for name, place in zip(question.graph.ids, places, strict=True) if place == device]}
        for device, load in enumerate(result.loads)
    ]
    return {"maxLoad": result.value, "fpgas": devices[: question.accelerators], "cpus": devices[question.accelerators :]}
