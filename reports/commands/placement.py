"""What the command `compare` does about placements."""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from crossopt.instances.kinds import KINDS
from crossopt.instances.placement.question import PlacementQuestion, read_split
from crossopt.reports.commands.console import Ending, code_of, question_of, refuse_options, seconds_of
from crossopt.reports.commands.progress import collected, keep_table, progress_on, show_table
from crossopt.reports.render.terminal import Compared, compared_text
from crossopt.reports.sheets.placement import devices_of, sheet
from crossopt.reports.sheets.sheet import Bar
from crossopt.solvers.answer import Baseline, Limits, to_text
from crossopt.solvers.family import judge_baseline
from crossopt.solvers.family import solve as solved
from crossopt.solvers.placement.answer import Placement, judge_placement
from crossopt.solvers.placement.family import FAMILY

_PROOF, _SEARCH = 60.0, 5.0
"""Seconds for the proof and for each run of a search, if no limit is given."""


def compare(options: argparse.Namespace) -> Ending:
    """The answer beside what lists, partitioners, searches and the splits that are given do."""
    from crossopt.solvers.placement.comparison import compared_latency as of_latency  # noqa: PLC0415
    from crossopt.solvers.placement.comparison import compared_throughput as of_throughput  # noqa: PLC0415

    seconds = seconds_of(options.time_limit) if options.time_limit else _PROOF
    refuse_options(options, KINDS[FAMILY.kind].options, "a graph")
    question: PlacementQuestion = question_of(options, KINDS[FAMILY.kind].options)
    splits = {path.stem: read_split(path, question) for path in options.split}
    with progress_on(sys.stderr, "ms") as watch:
        result = solved(FAMILY, question, "auto", Limits(seconds), watch)
    compared = of_latency if question.problem == "latency" else of_throughput
    own = Compared(Bar(f"crossopt ({result.engine})", result.value, "; ".join(result.reasons[:1])), None, result.seconds)
    asks = "one sample in ms" if question.problem == "latency" else f"busiest device in ms, --contiguous {question.contiguity}"

    def table(rows: list[Compared]) -> str:
        return compared_text(sheet(question, result), f"{asks}, {devices_of(question)}", rows)

    baselines = (
        () if result.stopped == "interrupted" else compared(question, seconds if options.time_limit else _SEARCH, options.seeds, splits)
    )
    found = list[Baseline[Placement]]()

    def others() -> Iterator[Compared]:
        for baseline in baselines:
            found.append(baseline)
            yield Compared(Bar(baseline.name, baseline.value, fault=baseline.note), None, baseline.seconds)

    rows, complete = collected(chain([own], others()), lambda some: keep_table(table(some)))
    complete = complete and result.stopped != "interrupted"
    unjudged = (baseline if baseline.answer is None else replace(baseline, note="") for baseline in found)
    beside = tuple(judge_baseline(judge_placement, question, baseline) for baseline in unjudged)
    written = to_text(replace(result, baselines=beside)) if options.out else None
    show_table(table(rows), code_of(result.status, unproved=False), complete, written, options.out)
    return Ending(result.status, result.proved, complete)
