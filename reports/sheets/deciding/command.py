"""`crossopt explain QUESTION --constants`: which constants decide the answer, printed, saved and drawn."""

import sys
from argparse import Namespace

from crossopt.instances.codesign.instance import Instance
from crossopt.instances.codesign.question import read_instance
from crossopt.instances.files.saved import write_whole
from crossopt.instances.kinds import question_path
from crossopt.reports.commands.console import check_target, seconds_of, spare_question, usage
from crossopt.reports.commands.families import code_of
from crossopt.reports.commands.keeping.keeper import Kept, keeper
from crossopt.reports.commands.keeping.tables import hand_over
from crossopt.reports.commands.progress import progress_on
from crossopt.reports.pages.frame.style import alone
from crossopt.reports.sheets.deciding.page import deciding_picture
from crossopt.reports.sheets.deciding.saved import to_text
from crossopt.reports.sheets.deciding.text import deciding_text
from crossopt.reports.texts.width import fitted
from crossopt.solvers.answer import Limits, Status
from crossopt.solvers.codesign.explain.deciding import Deciding, deciding
from crossopt.solvers.codesign.objective import unit_of

_ENDED = "  interrupted before all of this was explained\n"


def explain_constants(options: Namespace) -> Status:
    """Ask, print, and write where a file is named."""
    if options.force or options.near is not None:
        usage(f"{'--force' if options.force else '--near'}: this says nothing of constants (force a choice with --set, and look at both)")
    question, settings = question_path(options.file), tuple(options.settings)
    for target, option in ((options.out, "--out"), (options.svg, "--svg")):
        check_target(target, option)
        spare_question(target, question)
    instance, keep = read_instance(question, settings, options.workload), keeper()

    def ask(more: str) -> Instance:
        return read_instance(question, (*settings, more), options.workload)

    def told(known: Deciding) -> None:
        if keep is not None:
            keep.keep(Kept(None, fitted(deciding_text(known) + _ENDED), code_of(_status(known), unproved=False)))

    with progress_on(sys.stderr, unit_of(instance)) as watch:
        found = deciding(instance, ask, Limits(seconds_of(options.time_limit)), watch, told)
    text = fitted(deciding_text(found) + (_ENDED if found.stopped == "interrupted" else ""))
    saved, drawn = to_text(instance.document, found), alone(deciding_picture(found)) if found.constants else ""
    for target, content in ((options.out, saved), (options.svg, drawn)):
        if target and str(target) != "-" and content:
            write_whole(target, content)
    hand_over(drawn if str(options.svg) == "-" else saved if str(options.out) == "-" else text, code_of(_status(found), unproved=False))
    return _status(found)


def _status(found: Deciding) -> Status:
    """That of the answer with all constants as they are stated."""
    if found.central.value is None:
        return "INFEASIBLE" if found.central.proved else "UNKNOWN"
    return "OPTIMAL" if found.central.proved and found.stopped == "complete" else "FEASIBLE"
