"""What commands about joint designs have of their own: fronts, single designs that are priced, explanations."""

import json
import sys
from argparse import Namespace
from dataclasses import replace
from math import isfinite
from time import monotonic
from typing import TYPE_CHECKING

from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion
from crossopt.instances.codesign.question import key_compared, narrowing, read_instance
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.kinds import question_path
from crossopt.reports.commands import asking
from crossopt.reports.commands.console import Ending, code_of, question_of
from crossopt.reports.commands.keeper import Kept, keeper
from crossopt.reports.render.width import fitted
from crossopt.solvers.answer import Status

if TYPE_CHECKING:
    from crossopt.solvers.codesign.combined.pareto import Front


def solve(options: Namespace) -> Ending:
    """The best design, or where it is asked for a front of several, or the differences from another answer."""
    if options.against is not None:
        from crossopt.reports.commands.against import solve_against  # noqa: PLC0415 - most commands answer one question

        return solve_against(options)
    return _front(options) if options.pareto else asking.solve(options, "codesign")


def _front(options: Namespace) -> Ending:
    from crossopt.reports.commands.fronts import front_in, front_json  # noqa: PLC0415
    from crossopt.reports.render.terminal import terminal  # noqa: PLC0415
    from crossopt.reports.sheets.codesign.front import front_sheet, without_question  # noqa: PLC0415

    asking.refuse_before(options, "codesign")
    limits, keep = asking.limits_of(options), keeper()
    began = keep.began if keep else monotonic()
    question = question_of(options, {})
    limits = replace(limits, seconds=max(limits.seconds - (monotonic() - began), 0.0))
    if not isinstance(question, Instance):
        key, remedy, what = (
            _of_counts(question) if isinstance(question, MultiScaleQuestion) else ("workloads", "--workload NAME", "workload")
        )
        message = f"a front is found for one {what} at a time (say {remedy})"
        raise InstanceError(str(question.document["source"]), [Fault(1, 1, key, message)])
    first, _, second = options.pareto.partition(",")

    def written(found: "Front") -> Kept:
        text, status = front_json(question, options, found), _status(found)
        shown = (
            text
            if options.json or str(options.out) == "-"
            else fitted(terminal(without_question(front_sheet(question, (first, second), found))))
        )
        spare = status == "UNKNOWN" and found.stopped == "interrupted"
        return Kept(text, shown, code_of(status, options.strict and not found.proved), spare)

    def hand_over(found: "Front") -> None:
        stopped = "time limit" if isfinite(limits.seconds) else found.stopped
        if keep:
            keep.keep(replace(written(replace(found, stopped=stopped)), spare=not found.points))

    found, failed = front_in(question, options, limits, hand_over)
    asking.hand_out(written(found), options.out)
    for error in failed:  # which cost the log, and must not cost the answer
        raise error
    return Ending(_status(found), found.proved)


def _of_counts(question: MultiScaleQuestion) -> tuple[str, str, str]:
    """Which key leaves too much open for a front, the settings that mend it, and what it is one of."""
    if question.networks:
        return key_compared(question), narrowing(question), question.compared_name
    if not question.batches:
        return "cluster.devices", narrowing(question), "number of devices"
    return "workload.global_batch", narrowing(question), "batch" if len(question.numbers) == 1 else "number of devices and one batch"


def _status(found: "Front") -> Status:
    """What is known of the whole question."""
    return "FEASIBLE" if found.points else "INFEASIBLE" if found.proved else "UNKNOWN"


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
