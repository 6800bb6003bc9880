"""Answers about joint designs, found and read back as the commands do."""

from pathlib import Path
from typing import Any

from crossopt.instances.codesign.instance import Counted, Instance, Portfolio
from crossopt.reports.commands.asking import read_saved
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.codesign.answer import DesignResult, design_in, evaluation_in
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.family import solve

ENGINES = FAMILY.engines
COUNTED = """\
kind: codesign
workload: {transformer: {layers: 4, hidden: 512, heads: 8, ffn: 2048, vocabulary: 8192, sequence: 512}, global_batch: 64}
cluster: {devices: [2, 4, 8, 16], devices_per_node: 2}
hardware: a100-40g
prices: {electricity: 0.1 USD/kWh, lifetime: 4 year, device: 15000 USD}
choices: {tensor: [1, 2], pipeline: [1, 2], microbatch: [1, 2], recompute: [none, full]}
"""
"""On several numbers of devices."""


def answered(asked: Instance | Portfolio | Counted, engine: str = "exhaustive", seconds: float = float("inf")) -> DesignResult:
    return solve(FAMILY, asked, engine, Limits(seconds), unwatched)


def saved(path: Path) -> DesignResult:
    """The result in a file."""
    result: DesignResult = read_saved(path, "codesign")[1]
    return result


def design_of(result: DesignResult) -> dict[str, Any]:
    """The design of a result that has one, of the first workload where there are several."""
    design = design_in(result)
    assert design is not None
    return design


def evaluation_of(result: DesignResult) -> dict[str, Any]:
    """What the full model says of it."""
    evaluation = evaluation_in(result)
    assert evaluation is not None
    return evaluation
