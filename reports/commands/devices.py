"""`solve` on a question that leaves the number of devices or the workload open."""

import argparse
import sys

from crossopt.instances.codesign.instance import Counted, Portfolio
from crossopt.instances.errors import Fault, InstanceError
from crossopt.reports.commands.files import deliver
from crossopt.reports.commands.progress import logged, progress_on
from crossopt.reports.commands.workloads import solve_several
from crossopt.reports.texts.devices import counts_answer
from crossopt.solvers.answer import Limits
from crossopt.solvers.codesign.combined.devices.engine import solve_counts
from crossopt.solvers.codesign.combined.devices.result import CountsResult
from crossopt.solvers.codesign.combined.workloads.result import JointResult
from crossopt.solvers.codesign.objective import UNITS


def solve_open(options: argparse.Namespace, asked: Portfolio | Counted, limits: Limits) -> JointResult | CountsResult:
    """Answer, print and write; an InstanceError where a front is asked for."""
    if isinstance(asked, Portfolio):
        return solve_several(options, asked, limits)
    if options.pareto:
        message = f"a front is found for one number of devices at a time (say --set cluster.devices={asked.counts[-1]})"
        raise InstanceError(str(asked.document["source"]), [Fault(1, 1, "cluster.devices", message)])
    with progress_on(sys.stderr, UNITS[asked.parts[0].objective]) as shown, logged(shown, options.log) as watch:
        result = solve_counts(asked, options.engine, limits, watch)
    deliver(options, result, lambda: counts_answer(result))
    return result
