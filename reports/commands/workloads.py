"""`solve` on a question with several workloads, and the plan of one of them in a result."""

import argparse
import sys
from pathlib import Path
from typing import Any

from crossopt.instances.codesign.instance import Instance, Portfolio
from crossopt.instances.codesign.question import asked_in, read_question
from crossopt.instances.errors import Fault, InstanceError
from crossopt.reports.commands.files import deliver
from crossopt.reports.commands.progress import logged, progress_on
from crossopt.reports.texts.workloads import several_answer
from crossopt.solvers.answer import Limits
from crossopt.solvers.codesign.combined.workloads.engines import ENGINES, question
from crossopt.solvers.codesign.combined.workloads.result import JointResult
from crossopt.solvers.codesign.result import Result


def solve_several(options: argparse.Namespace, portfolio: Portfolio, limits: Limits) -> JointResult:
    """Answer, print and write; an InstanceError where the engine or the front asked for is one of a single workload."""
    if options.engine not in ENGINES:
        raise _refusal(portfolio, f"the engine {options.engine} answers one workload at a time (one of {', '.join(ENGINES)}; or {_NAME})")
    if options.pareto:
        raise _refusal(portfolio, f"a front is found for one workload at a time ({_NAME})")
    with progress_on(sys.stderr, str(question(portfolio)["unit"])) as shown, logged(shown, options.log) as watch:
        result = ENGINES[options.engine](portfolio, limits, watch)
    deliver(options, result, lambda: several_answer(result))
    return result


def design_in(result: Result | JointResult, workload: str | None, path: Path) -> tuple[Instance, dict[str, Any] | None]:
    """The question and the design of a result; of several workloads those of the one named."""
    if isinstance(result, Result):
        return read_question(result.instance), result.design
    asked = asked_in(result.instance)
    names = [share.name for share in result.shares]
    if workload not in names and names:
        message = f"there is a plan for each of several workloads (say --workload NAME, one of {', '.join(names)})"
        raise InstanceError(str(path), [Fault(1, 1, "shares", message)])
    parts = asked.parts if isinstance(asked, Portfolio) else (asked,)
    if not names:
        return parts[0], None
    return parts[names.index(str(workload))], result.shares[names.index(str(workload))].design


_NAME = "say --workload NAME"


def _refusal(portfolio: Portfolio, message: str) -> InstanceError:
    return InstanceError(str(portfolio.document["source"]), [Fault(1, 1, "workloads", message)])
