"""`solve` on a question that leaves the number of devices or the workload open, and what `validate` says of any question."""

import argparse
import sys

from instances.counts import Counted
from instances.document import Fault, InstanceError
from instances.instance import Instance, Portfolio
from reports.counts import counts_answer
from solvers.certify import Limits
from solvers.counts.engine import solve_counts
from solvers.counts.result import CountsResult
from solvers.files import deliver
from solvers.objective import UNITS
from solvers.progress import logged, progress_on
from solvers.several.command import size_of, solve_several
from solvers.several.result import JointResult


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


def size_in_words(asked: Instance | Portfolio | Counted) -> str:
    """How large a question is, for each number of devices."""
    if not isinstance(asked, Counted):
        return size_of(asked)
    return "; ".join(f"{count:,} devices: {size_of(part)}" for count, part in zip(asked.counts, asked.parts, strict=True))
