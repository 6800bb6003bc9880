"""`crossopt explain QUESTION --constants`: which constants decide the answer, printed, saved, drawn, read back and checked: every design is
priced again at its end of the range."""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance, read_question
from crossopt.instances.files.dataclass_json import from_plain, to_plain
from crossopt.instances.files.saved import read_as, write_atomically
from crossopt.instances.kinds import question_path
from crossopt.reports.commands.console import check_target, code_of, seconds_of, usage
from crossopt.reports.commands.keeper import Kept, keeper
from crossopt.reports.commands.progress import hand_over, progress_on
from crossopt.reports.render.style import alone
from crossopt.reports.render.terminal import terminal
from crossopt.reports.render.width import fitted
from crossopt.reports.sheets.codesign.deciding import deciding_picture, deciding_sheet
from crossopt.solvers.answer import Limits, Status, Watch
from crossopt.solvers.checking import Report
from crossopt.solvers.codesign.answer import ChosenDesign
from crossopt.solvers.codesign.explain.deciding import (
    Decided,
    Deciding,
    End,
    deciding,
    followed,
    kept_there,
    opened_in,
    ranked,
    same_choices,
    value_of,
)
from crossopt.solvers.codesign.family import FAMILY
from crossopt.solvers.codesign.objective import unit_of
from crossopt.solvers.family import solve

KIND = "constants"
_ENDED = "  interrupted before all of this was explained\n"


def explain_constants(options: Namespace) -> Status:
    """Ask, print, and write where a file is named."""
    if options.force or options.near is not None:
        usage(f"{'--force' if options.force else '--near'}: this does not apply to constants (force a choice with --set, and look at both)")
    question, settings = question_path(options.file), tuple(options.settings)
    for target, option in ((options.out, "--out"), (options.svg, "--svg")):
        check_target(target, option)
    instance, keep = read_instance(question, settings, options.workload), keeper()

    def ask(more: str) -> Instance:
        return read_instance(question, (*settings, more), options.workload)

    def show(known: Deciding) -> None:
        if keep is not None:
            keep.keep(Kept(None, fitted(terminal(deciding_sheet(known)) + _ENDED), code_of(_status(known), unproved=False)))

    with progress_on(sys.stderr, unit_of(instance)) as watch:
        found = deciding(instance, ask, Limits(seconds_of(options.time_limit)), watch, show)
    text = fitted(terminal(deciding_sheet(found)) + (_ENDED if found.stopped == "interrupted" else ""))
    saved, picture = to_text(instance.document, found), alone(deciding_picture(found)) if found.constants else ""
    for target, content in ((options.out, saved), (options.svg, picture)):
        if target and str(target) != "-" and content:
            write_atomically(target, content)
    hand_over(picture if str(options.svg) == "-" else saved if str(options.out) == "-" else text, code_of(_status(found), unproved=False))
    return _status(found)


def _status(found: Deciding) -> Status:
    """That of the answer with all constants as they are stated."""
    if found.central.value is None:
        return "INFEASIBLE" if found.central.proved else "UNKNOWN"
    return "OPTIMAL" if found.central.proved and found.stopped == "complete" else "FEASIBLE"


# --- the file -----------------------------------------------------------------------------------------------------------------------


def to_text(document: Mapping[str, Any], found: Deciding) -> str:
    """The file."""
    return json.dumps({"kind": KIND, "question": dict(document), **to_plain(found)}, indent=2, allow_nan=False) + "\n"


def from_json(data: Any) -> tuple[dict[str, Any], Deciding]:  # noqa: ANN401 - whatever a file may hold
    """The question and what was found; a ValueError in words if they are none."""
    if not isinstance(data, dict) or not isinstance(data.get("question"), dict) or "constants" not in data:
        names = ", ".join(field.name for field in fields(Deciding))
        raise ValueError(f"this does not say which constants decide an answer: it lacks question, {names}")
    found: Deciding = from_plain(Deciding, {key: value for key, value in data.items() if key not in {"kind", "question"}})
    return data["question"], found


def deciding_faults(document: dict[str, Any], found: Deciding) -> list[str]:
    """What is other than the question says."""
    question = read_question(document)
    claimed = (found.name, found.unit, found.objective)
    faults = (
        []
        if claimed == (question.name, unit_of(question), question.objective)
        else ["name, unit or objective: they are not the question's"]
    )
    faults += _end_faults("central", question, 1.0, found.central, found.central.design)
    known = {span.name: span for span in question.ranges}
    if ranked(found.central, found.constants) != found.constants:
        faults.append("constants: they are not in their order")
    for index, constant in enumerate(found.constants):
        path = f"constants[{index}]"
        if constant.name not in known or constant.source != known[constant.name].source:
            faults.append(f"{path}: the question has no such range")
            continue
        for side, factor in (("low", known[constant.name].low), ("high", known[constant.name].high)):
            end = getattr(constant, side)
            if end is not None:
                faults += _end_faults(f"{path}.{side}", _at(document, constant, factor), factor, end, found.central.design)
    return faults


def check(path: Path) -> Report:
    """The designs evaluated again, and every end claimed as proved solved again as a question of its own, with its proof repeated."""
    document, found = read_as(path, from_json)
    faults = deciding_faults(document, found)
    if faults:
        return Report((), tuple(faults))
    ends = [("central", read_question(document), found.central)]
    for index, constant in enumerate(found.constants):
        sides = ((side, getattr(constant, side)) for side in ("low", "high"))
        ends += [(f"constants[{index}].{side}", _at(document, constant, end.factor), end) for side, end in sides if end is not None]
    sure = [end for end in ends if end[2].proved]
    with progress_on(sys.stderr, found.unit) as watch:
        refused = [fault for path, question, end in sure for fault in _unproved(path, question, end, watch)]
        refused += [fault for path, question, end in ends for fault in _unfollowed(path, question, end, watch)]
    checked = f"{len(ends)} designs were priced anew; {len(sure)} ends were solved again, with their proofs"
    return Report((checked,), tuple(refused), unverified=len(sure) < len(ends))


def _unproved(path: str, question: Instance, end: End, watch: Watch) -> Iterator[str]:
    anew = solve(FAMILY, question, "auto", Limits(), watch)
    proved = FAMILY.prove(question, anew, watch)
    if anew.value != end.value or not anew.proved or proved.refused or proved.unverified:
        why = "".join(f" ({fault})" for fault in proved.refused)
        yield f"{path}: {end.value!r} is called proved, but solved again it is {anew.value!r}{why}"


def _unfollowed(path: str, question: Instance, end: End, watch: Watch) -> Iterator[str]:
    if end.followed is not None:
        anew = followed(question, end.design, float("inf"), watch)
        if anew is None or anew.value != end.followed.value:
            value = None if anew is None else anew.value
            yield f"{path}.followed: {end.followed.value!r} is called proved for a chip that adapts, but solved again it is {value!r}"


def _at(document: dict[str, Any], constant: Decided, factor: float) -> Instance:
    return read_question({**document, "settings": [*document["settings"], f"factors.{constant.name}={factor!r}"]})


def _end_faults(path: str, question: Instance, factor: float, end: End, before: ChosenDesign | None) -> Iterator[str]:
    value, broken = kept_there(question, end.design)
    old, why = kept_there(question, before)
    same = same_choices(end.design, before)
    if end.factor != factor:
        yield f"{path}.factor: {end.factor!r} is not the end of the range, {factor!r}"
    if end.value != value or broken:
        yield f"{path}.value: {end.value!r} is not what the design comes to, {value!r}{''.join(f' ({fault})' for fault in broken[:1])}"
    if (end.value_of_design, end.broken, end.same) != (old, why, same):
        yield f"{path}.value_of_design: {end.value_of_design!r} is not what the design with all constants as they are comes to, {old!r}"
    if (chip := end.followed) is not None:
        own = value_of(question, chip.design)
        if own != chip.value or chip.opened != opened_in(question, chip.design, chip.value):
            yield f"{path}.followed: {chip.value!r} is not what the design comes to, {own!r}, or other parts are open"
    if end.bound is not None and end.value is not None and not end.bound <= end.value:
        yield f"{path}.bound: {end.bound!r} is above the value {end.value!r}"
    if end.proved and end.value is not None and end.bound != end.value:
        yield f"{path}.proved: the bound {end.bound!r} is not the value {end.value!r}"
