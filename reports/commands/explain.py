"""The command `explain`: the question solved, what clashes or binds, what near designs have in common, what a forced choice costs; or
the relaxation of its integer model."""

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import isfinite
from time import monotonic
from typing import Any, Final

from crossopt.instances.codesign.instance import Instance, Portfolio
from crossopt.instances.codesign.plan_groups import why_no_chip
from crossopt.instances.codesign.question import read_instance, read_single_scale
from crossopt.instances.errors import InstanceError
from crossopt.instances.files.dataclass_json import to_plain
from crossopt.instances.files.saved import write_atomically
from crossopt.instances.kinds import question_path
from crossopt.reports.commands.console import check_target, code_of, seconds_of, usage
from crossopt.reports.commands.keeper import Keeping, Kept, keeper
from crossopt.reports.commands.progress import hand_over, progress_on
from crossopt.reports.facts.building import building_of
from crossopt.reports.render.width import fitted
from crossopt.reports.sheets.codesign.design import near_text
from crossopt.reports.sheets.codesign.explain import NOTHING, Why, answer_text, clash_text, forced_text, impossible_text, terms_of
from crossopt.solvers.answer import Limits, Status, Watch
from crossopt.solvers.codesign.answer import DesignResult
from crossopt.solvers.codesign.boxes.branch import Spend
from crossopt.solvers.codesign.explain.conflict import Member, UndecidedError, clash
from crossopt.solvers.codesign.explain.near_optimal import Near, near_optimum
from crossopt.solvers.codesign.explain.relief import range_ends, relief, unopened, with_stops, worth_easing
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.codesign.objective import UNITS
from crossopt.solvers.family import solve

ENDED = "  interrupted before all of this was explained\n"
"""What stands below what was known when Ctrl-C came."""
_WORST: Final[tuple[Status, ...]] = ("UNKNOWN", "INFEASIBLE", "FEASIBLE")
ShowExplained = Callable[[DesignResult, str], None]
"""Takes the answer, and what is explained of it so far."""


@dataclass(frozen=True, slots=True)
class Explained:
    """An answer with what was asked about it, and its text."""

    result: DesignResult
    text: str
    why: Why = NOTHING
    clash: tuple[Member, ...] | None = None
    """The limits and choices that leave no design together, where that was decided."""
    near: Near | None = None
    """What designs within the gap have in common, where one was given."""


def explain(options: Namespace) -> Status:
    """Explain a question, and print."""
    if options.json and (options.relaxation or options.constants):
        usage("--json: --relaxation and --constants are printed as JSON with --out - (leave --json out)")
    if options.relaxation:
        return _explain_relaxation(options)
    if options.constants:
        from crossopt.reports.commands.constants import explain_constants  # noqa: PLC0415 - others need none of its pictures

        return explain_constants(options)
    if options.svg or options.out:
        usage(f"{'--svg' if options.svg else '--out'}: this writes what --relaxation or --constants finds (add one, or leave it out)")
    limits, settings, forced = Limits(seconds_of(options.time_limit)), tuple(options.settings), tuple(options.force)
    parts = parts_of(read_single_scale(question_path(options.file), settings, options.workload))
    others = _forced_parts(options, settings, forced)
    text, ended, records = alone_text(parts), list[Status](), list[dict[str, object]]()
    for instance, other in zip(parts, others, strict=True):
        with progress_on(sys.stderr, UNITS[instance.objective]) as watch:
            part = explained(instance, options.near, limits, watch, _told_to(text), text)
            result, own, best = part.result, part.text, None
            if forced and not own.endswith(ENDED):
                try:
                    more, best = explain_with((instance, other), forced, result, limits, watch)
                    own += more
                except KeyboardInterrupt:
                    own += ENDED
        text += own + ("\n" if instance is not parts[-1] else "")
        records.append(_record(instance, part, forced, best))
        ended.append(result.status)
        if own.endswith(ENDED):
            break
    status = next((status_name for status_name in _WORST if status_name in ended), ended[0])
    as_json = f"{json.dumps(_finite(records), indent=2, ensure_ascii=False, allow_nan=False)}\n"
    hand_over(as_json if options.json else fitted(text), code_of(status, unproved=False))
    return status


def _finite(data: Any) -> Any:  # noqa: ANN401 - plain data
    """The same without infinite figures, which JSON has no word for."""
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not isfinite(data) else data


def _record(instance: Instance, part: Explained, forced: tuple[str, ...], best: DesignResult | None) -> dict[str, object]:
    """What is explained of a workload, with figures as figures in SI units."""
    result, why, goal = part.result, part.why, instance.goal
    evaluation = None if result.details is None else result.details.evaluation
    figures = {name: getattr(result, name) for name in ("status", "value", "bound", "proved")}
    return {
        "name": instance.name,
        "objective": instance.objective,
        "unit": UNITS[instance.objective],
        **figures,
        "run_seconds": None if evaluation is None or goal is None else goal.seconds(evaluation.step_time),
        "run_usd": None if evaluation is None or goal is None else goal.money(evaluation.step_time),
        "binding": [] if evaluation is None else list(evaluation.binding),
        "reliefs": to_plain(why.reliefs),
        "ends": to_plain(why.ends),
        "unopened": to_plain(why.unopened),
        "building": [{"sentence": limit.sentence, "full": limit.full, "eased_value": worth} for limit, worth in why.building],
        "conflict": None if part.clash is None else to_plain(part.clash),
        "near": None if part.near is None else to_plain(part.near),
        "forced": {"settings": list(forced), "value": best.value, "proved": best.proved} if best is not None else None,
        "interrupted": part.text.endswith(ENDED),
    }


def parts_of(question: Instance | Portfolio) -> tuple[Instance, ...]:
    """The question of each workload, on a chip of its own."""
    return question.parts if isinstance(question, Portfolio) else (question,)


def alone_text(parts: tuple[Instance, ...]) -> str:
    """How several workloads are explained."""
    return f"{len(parts)} workloads, each alone with a chip of its own; `solve` answers them on one chip\n\n" if len(parts) > 1 else ""


def _told_to(before: str) -> ShowExplained:
    """What is known so far goes to who keeps answers for this process, in case that it is ended."""
    keep = keeper()

    def tell(result: DesignResult, text: str) -> None:
        if keep is not None:
            keep.keep(Kept(None, fitted(before + text + ENDED), code_of(result.status, unproved=False)))

    return tell


def explained(
    instance: Instance, gap: float | None, limits: Limits, watch: Watch, show: ShowExplained = lambda result, text: None, before: str = ""
) -> Explained:
    """The answer, and why it is what it is; designs within a gap are told of where one is asked for. `before`
    is what is known of other workloads."""
    result = _solved(instance, limits, watch, before)
    found = Explained(result, _answer(instance, result))
    show(result, found.text)
    try:
        if result.stopped == "interrupted":
            raise KeyboardInterrupt
        if result.value is None:
            return _clash_of(instance, found, limits, watch) if result.proved else found
        for known in _whys(instance, found, limits, watch):
            found = known
            show(result, found.text)
        if gap is not None:
            near = near_optimum(instance, result, gap, watch, monotonic() + limits.seconds)
            found = replace(found, text=found.text + near_text(near, gap), near=near)
            show(result, found.text)
    except KeyboardInterrupt:  # what is known by then is worth telling
        found = replace(found, text=found.text + ENDED)
    return found


_UNDECIDED = "which limits clash was not decided in time (--time-limit)"


def _clash_of(instance: Instance, found: Explained, limits: Limits, watch: Watch) -> Explained:
    """Which limits and choices leave no design, as far as time allows."""
    try:
        members = clash(instance, watch, monotonic() + limits.seconds)
    except UndecidedError:
        return replace(found, text=f"{instance.name}: no design keeps every limit; {_UNDECIDED}\n")
    return replace(found, text=clash_text(found.result, members, terms_of(instance), why_no_chip(instance)), clash=members)


def _whys(instance: Instance, found: Explained, limits: Limits, watch: Watch) -> Iterator[Explained]:
    """What a little more would buy, each time that more of it is known."""
    result, spend = found.result, Spend(monotonic() + limits.seconds)

    def known(why: Why) -> Explained:
        return replace(found, text=answer_text(result, terms_of(instance), why), why=why)

    reliefs, building = relief(instance, result, watch, spend), building_of(instance, result)
    why = Why(reliefs, building=tuple((limit, None) for limit in building))
    yield known(why)
    ends = range_ends(instance, result, watch, spend)
    why = replace(why, reliefs=with_stops(instance, result, reliefs, ends, watch, spend), ends=ends)
    yield known(why)
    worth = ((limit, None if limit.eased is None else worth_easing(instance, limit.eased, result, watch, spend)) for limit in building)
    why = replace(why, building=tuple(worth))
    yield known(why)
    yield known(replace(why, unopened=unopened(instance, result, watch, spend)))


def _solved(instance: Instance, limits: Limits, watch: Watch, before: str) -> DesignResult:
    """The answer; a search that is ended leaves its best one, also where it hears no signal."""
    keep = keeper()
    if keep is None:
        return solve(FAMILY, instance, "auto", limits, watch)

    def written(result: DesignResult) -> Kept:
        return Kept(None, fitted(before + _answer(instance, result) + ENDED), code_of(result.status, unproved=False))

    keeping = Keeping(keep, FAMILY, instance, "auto", limits, watch, written)
    return solve(FAMILY, instance, "auto", limits, keeping, simplest=keeping.simplest_answer)


def _answer(instance: Instance, result: DesignResult) -> str:
    """What is full; that there is no design where none was found."""
    if result.value is None:
        return f"{result.question['name']}: no design {'keeps every limit' if result.proved else 'found in time'}\n"
    return answer_text(result, terms_of(instance))


def _forced_parts(options: Namespace, settings: tuple[str, ...], forced: tuple[str, ...]) -> tuple[Instance, ...]:
    """The questions with the forced choices; faults of these name the option that they came by."""
    try:
        return parts_of(read_single_scale(question_path(options.file), (*settings, *forced), options.workload))
    except InstanceError as error:

        def renamed(text: str) -> str:
            for setting in forced:
                text = text.replace(f"--set {setting}", f"--force {setting}")
            return text

        faults = [replace(fault, message=renamed(fault.message)) for fault in error.faults]
        raise InstanceError(renamed(error.source), faults, error.undone) from error


def explain_with(
    questions: tuple[Instance, Instance], forced: tuple[str, ...], result: DesignResult, limits: Limits, watch: Watch
) -> tuple[str, DesignResult]:
    """What the best design of the second question, with forced choices, costs beside the answer of the first."""
    other = questions[1]
    best = solve(FAMILY, other, "boxes", limits, watch)
    if best.value is not None or not best.proved:
        return forced_text(forced, questions, (result, best)), best
    try:
        return impossible_text(forced, other, clash(other, watch, monotonic() + limits.seconds)), best
    except UndecidedError:
        return f"\n  with {', '.join(forced)} there is no design; {_UNDECIDED}\n", best


def _explain_relaxation(options: Namespace) -> Status:
    """Print the relaxation and its tree, and write them where a file is named."""
    from crossopt.reports.render.terminal import terminal  # noqa: PLC0415 - only this needs integer models
    from crossopt.reports.sheets.codesign.relaxation import relaxation_sheet, relaxation_svg  # noqa: PLC0415
    from crossopt.solvers.codesign.linear.relaxation import Untold, relaxed  # noqa: PLC0415

    if options.force:
        usage("--force: this does not apply to a relaxation (force a choice with --set, and look at both)")
    question = question_path(options.file)
    for target, option in ((options.out, "--out"), (options.svg, "--svg")):
        check_target(target, option)
    instance = read_instance(question, tuple(options.settings), options.workload)
    with progress_on(sys.stderr, "s") as watch:
        found = relaxed(instance, options.near or 0.0, seconds_of(options.time_limit), watch)
    if isinstance(found, Untold):
        sys.stdout.write(fitted(f"{instance.name}: {found.why}\n"))
        return found.status
    text = json.dumps({"kind": "relaxation", "instance": instance.document, **to_plain(found)}, indent=2, allow_nan=False) + "\n"
    page = fitted(terminal(relaxation_sheet(found)))
    printed = relaxation_svg(found) if str(options.svg) == "-" else text if str(options.out) == "-" else page
    try:
        for target, content in ((options.out, text), (options.svg, relaxation_svg(found))):
            if target and str(target) != "-":
                write_atomically(target, content)
    finally:  # a full disk must not cost the answer
        sys.stdout.write(printed)
    return "FEASIBLE"
