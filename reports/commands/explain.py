"""The command `explain`: the question solved, what clashes or binds, what near designs have in common, what a forced choice costs; or
the relaxation of its integer model."""

import json
import sys
from argparse import Namespace
from dataclasses import asdict
from time import monotonic

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.files.saved import write_whole
from crossopt.instances.kinds import question_path
from crossopt.reports.commands.console import check_target, seconds_of, spare_question, usage
from crossopt.reports.commands.progress import progress_on
from crossopt.reports.texts.explain import answer_text, clash_text, forced_text
from crossopt.reports.texts.near import near_text
from crossopt.reports.texts.width import fitted
from crossopt.solvers.answer import Limits, Status, Watch
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.explain.conflict import clash, relief
from crossopt.solvers.codesign.explain.near_optimal import near_optimum
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.codesign.objective import UNITS
from crossopt.solvers.family import solve


def explain(options: Namespace) -> Status:
    """Explain a question, and print."""
    if options.relaxation:
        return _explain_relaxation(options)
    if options.svg or options.out:
        usage(f"{'--svg' if options.svg else '--out'}: this writes the tree of --relaxation (add that, or leave it out)")
    limits, settings, forced = Limits(seconds_of(options.time_limit)), tuple(options.settings), tuple(options.force)
    instance = read_instance(question_path(options.file), settings, options.workload)
    other = read_instance(question_path(options.file), (*settings, *forced), options.workload) if forced else None
    with progress_on(sys.stderr, UNITS[instance.objective]) as watch:
        result, text = explained(instance, options.near, limits, watch)
        if other is not None:
            text += explain_with(other, forced, result, limits, watch)
    sys.stdout.write(fitted(text))
    return result.status


def explained(instance: Instance, gap: float | None, limits: Limits, watch: Watch) -> tuple[DesignResult, str]:
    """The answer, and why it is what it is; designs within a gap are told of where one is asked for."""
    result = solve(FAMILY, instance, "boxes", limits, watch)
    if result.value is None:
        no_design = f"{instance.name}: no design found in time\n"
        return result, clash_text(instance.name, clash(instance, watch)) if result.proved else no_design
    text = answer_text(result, ())
    try:
        if result.stopped == "interrupted":
            raise KeyboardInterrupt
        text = answer_text(result, relief(instance, watch, Spend(monotonic() + limits.seconds)))
        if gap is not None:
            text += near_text(near_optimum(instance, result, gap, watch, monotonic() + limits.seconds), gap)
    except KeyboardInterrupt:  # what is known by then is worth telling
        text += "  interrupted before all of this was explained\n"
    return result, text


def explain_with(other: Instance, forced: tuple[str, ...], result: DesignResult, limits: Limits, watch: Watch) -> str:
    """What the best design of the question with forced choices costs beside the answer."""
    best = solve(FAMILY, other, "boxes", limits, watch)
    return forced_text(forced, result, best, None if best.value is not None else clash(other, watch))


def _explain_relaxation(options: Namespace) -> Status:
    """Print the relaxation and its tree, and write them where a file is named."""
    from crossopt.reports.texts.relaxation import relaxation_svg, relaxation_text  # noqa: PLC0415 - only this needs integer models
    from crossopt.solvers.codesign.linear.relaxation import Untold, relaxed  # noqa: PLC0415

    if options.force:
        usage("--force: this says nothing of a relaxation (force a choice with --set, and look at both)")
    question = question_path(options.file)
    for target, option in ((options.out, "--out"), (options.svg, "--svg")):
        check_target(target, option)
        spare_question(target, question)
    instance = read_instance(question, tuple(options.settings), options.workload)
    with progress_on(sys.stderr, "s") as watch:
        found = relaxed(instance, options.near or 0.0, seconds_of(options.time_limit), watch)
    if isinstance(found, Untold):
        sys.stdout.write(fitted(f"{instance.name}: {found.why}\n"))
        return found.status
    text = json.dumps({"kind": "relaxation", "instance": instance.document, **asdict(found)}, indent=2, allow_nan=False) + "\n"
    told = relaxation_svg(found) if str(options.svg) == "-" else text if str(options.out) == "-" else fitted(relaxation_text(found))
    try:
        for target, content in ((options.out, text), (options.svg, relaxation_svg(found))):
            if target and str(target) != "-":
                write_whole(target, content)
    finally:  # a full disk must not cost the answer
        sys.stdout.write(told)
    return "FEASIBLE"
