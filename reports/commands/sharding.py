"""What commands about strategies have of their own: a comparison with rules, searches and others."""

import sys
from argparse import Namespace
from itertools import chain

from crossopt.instances.kinds import KINDS
from crossopt.instances.sharding.question import ShardingQuestion
from crossopt.reports.commands.console import Ending, code_of, question_of, refuse_options, seconds_of, usage
from crossopt.reports.commands.progress import collected, keep_table, progress_on, show_table
from crossopt.reports.render.terminal import Compared, compared_text
from crossopt.reports.sheets.sharding import sheet
from crossopt.reports.sheets.sheet import Bar
from crossopt.solvers.answer import Limits, to_text
from crossopt.solvers.family import solve as solved
from crossopt.solvers.sharding.comparison import Row, compared, known_best
from crossopt.solvers.sharding.family import FAMILY

_PROOF, _SEARCH = 60.0, 10.0
"""Seconds for the proof, if no limit is given, and for each baseline."""


def compare(options: Namespace) -> Ending:
    """The answer beside rules, local search, the weak model, and what others reached."""
    seconds = seconds_of(options.time_limit) if options.time_limit else _PROOF
    refuse_options(options, (*KINDS["sharding"].options, "workers"), "a problem of strategies")
    if options.split:
        usage("--split: this does not apply to a problem of strategies (leave it out)")
    question: ShardingQuestion = question_of(options, KINDS["sharding"].options)
    known = known_best(options.known, question.name) if options.known else None
    with progress_on(sys.stderr, "cost") as watch:
        result = solved(FAMILY, question, "auto", Limits(seconds), watch)
        unit = f" in {result.question['unit']}" if result.question["unit"] else ""

        def table(listed: list[Row]) -> str:
            rows = [
                Compared(Bar(rule.name, rule.value, rule.note), rule.bound, rule.seconds) for rule in (*listed, *([known] if known else []))
            ]
            return compared_text(sheet(question, result), f"cost{unit}", rows)

        own = Row(f"crossopt ({result.engine})", result.value, result.bound, result.seconds, "; ".join(result.reasons[:1]))
        baselines = () if result.stopped == "interrupted" else compared(question, min(seconds, _SEARCH), options.seeds, watch)
        listed, complete = collected(chain([own], baselines), lambda some: keep_table(table(some)))
    complete = complete and result.stopped != "interrupted"
    show_table(table(listed), code_of(result.status, unproved=False), complete, to_text(result) if options.out else None, options.out)
    return Ending(result.status, result.proved, complete)
