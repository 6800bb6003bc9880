"""What commands about joint designs have of their own: fronts, single designs that are priced, explanations."""

import json
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion, Portfolio
from crossopt.instances.codesign.question import key_compared, narrowing, read_instance
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.kinds import question_path
from crossopt.reports.commands import asking
from crossopt.reports.commands.console import Ending
from crossopt.reports.render.width import fitted

if TYPE_CHECKING:
    pass


def solve(options: Namespace) -> Ending:
    """The best design, or where it is asked for a front of several, or the differences from another answer."""
    if options.against is not None:
        from crossopt.reports.commands.against import solve_against  # noqa: PLC0415 - most commands answer one question

        return solve_against(options)
    return _front(options) if options.pareto else asking.solve(options, "codesign")


def _front(options: Namespace) -> Ending:
    from crossopt.reports.commands.fronts import solve_front  # noqa: PLC0415

    return solve_front(options, "codesign", _single)


def _single(question: Instance | MultiScaleQuestion | Portfolio) -> Instance:
    """A question about one workload on one number of devices; an InstanceError for others."""
    if isinstance(question, Instance):
        return question
    key, remedy, what = _of_counts(question) if isinstance(question, MultiScaleQuestion) else ("workloads", "--workload NAME", "workload")
    message = f"a front is found for one {what} at a time (say {remedy})"
    raise InstanceError(str(question.document["source"]), [Fault(1, 1, key, message)])


def _of_counts(question: MultiScaleQuestion) -> tuple[str, str, str]:
    """Which key leaves too much open for a front, the settings that mend it, and what it is one of."""
    if question.networks:
        return key_compared(question), narrowing(question), question.compared_name
    if not question.batches:
        return "cluster.devices", narrowing(question), "number of devices"
    return "workload.global_batch", narrowing(question), "batch" if len(question.numbers) == 1 else "number of devices and one batch"


def evaluate(options: Namespace) -> Ending:
    """Price the only design that the question leaves."""
    from crossopt.reports.render.terminal import terminal  # noqa: PLC0415
    from crossopt.reports.sheets.codesign.design import evaluation_sheet  # noqa: PLC0415
    from crossopt.solvers.codesign.judge import evaluate_single  # noqa: PLC0415

    instance = read_instance(question_path(options.file), tuple(options.settings), options.workload)
    single = evaluate_single(instance)
    if options.json:
        from crossopt.reports.facts.question import evaluation_json  # noqa: PLC0415

        document = evaluation_json(instance, single.design, single.evaluation)
        sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(fitted(terminal(evaluation_sheet(instance, single.design, single.evaluation))))
    return Ending("FEASIBLE" if single.evaluation.feasible else "INFEASIBLE", proved=True)


def explain(options: Namespace) -> Ending:
    """Why the answer is what it is."""
    from crossopt.reports.commands.explain import explain as explained  # noqa: PLC0415

    return Ending(explained(options), proved=True)
