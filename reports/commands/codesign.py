"""What commands about joint designs have of their own: fronts, single designs that are priced, explanations."""

import json
import sys
from argparse import Namespace

from crossopt.instances.catalogue.workload_words import model_words
from crossopt.instances.codesign.instance import Counted, Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.errors import Fault, InstanceError
from crossopt.instances.kinds import question_path
from crossopt.reports.commands import asking
from crossopt.reports.commands.console import question_of
from crossopt.reports.commands.families import Ending, code_of
from crossopt.reports.commands.keeping.keeper import Kept
from crossopt.solvers.answer import Status


def solve(options: Namespace) -> Ending:
    """The best design, or where one is asked for a front of several."""
    return _front(options) if options.pareto else asking.solve(options, "codesign")


def _front(options: Namespace) -> Ending:
    from crossopt.reports.commands.fronts import front_in, front_json  # noqa: PLC0415
    from crossopt.reports.texts.front import front_text  # noqa: PLC0415

    asking.refuse_before(options, "codesign")
    limits, asked = asking.limits_of(options), question_of(options, {})
    if not isinstance(asked, Instance):
        place, one, what = (
            ("cluster.devices", f"--set cluster.devices={asked.counts[-1]}", "number of devices")
            if isinstance(asked, Counted)
            else ("workloads", "--workload NAME", "workload")
        )
        message = f"a front is found for one {what} at a time (say {one})"
        raise InstanceError(str(asked.document["source"]), [Fault(1, 1, place, message)])
    first, _, second = options.pareto.partition(",")
    found = front_in(asked, options, limits)
    status: Status = "FEASIBLE" if found.points else "INFEASIBLE" if found.proved else "UNKNOWN"
    text, ending = front_json(asked, options, found), Ending(status, found.proved)
    shown = text if options.json or str(options.out) == "-" else front_text(asked.name, first, second, found)
    asking.hand_out(Kept(text, shown, code_of(ending.status, options.strict and not ending.proved)), options.out)
    return ending


def evaluate(options: Namespace) -> Ending:
    """Price the only design that the question leaves."""
    from crossopt.reports.texts.design import evaluation_text  # noqa: PLC0415
    from crossopt.solvers.codesign.explain.single import evaluate_single  # noqa: PLC0415

    instance = read_instance(question_path(options.file), tuple(options.settings), options.workload)
    single = evaluate_single(instance)
    if options.json:
        sys.stdout.write(json.dumps({"design": single.design, "evaluation": single.evaluation}, indent=2, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(evaluation_text(instance.name, single.design, single.evaluation, model_words(instance.workload)))
    return Ending("FEASIBLE" if single.evaluation["feasible"] else "INFEASIBLE", proved=True)


def explain(options: Namespace) -> Ending:
    """Why the answer is what it is."""
    from crossopt.reports.commands.explain import explain as explained  # noqa: PLC0415

    return Ending(explained(options), proved=True)
