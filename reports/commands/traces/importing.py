"""The command `import`: a trace of another tool as a graph that questions are asked of, and what was read of it."""

import json
import sys
from argparse import Namespace

from crossopt.instances.errors import RefusedError
from crossopt.instances.files.saved import write_whole
from crossopt.instances.traces.any_form import read_any
from crossopt.instances.traces.graph_file import document_of
from crossopt.instances.traces.packed import LARGEST, Window
from crossopt.instances.traces.ranks import joined
from crossopt.reports.commands.console import check_target, spare_data
from crossopt.reports.commands.families import ANSWERED
from crossopt.reports.commands.traces.text import text_of_trace
from crossopt.reports.render.width import fitted


def import_traces(options: Namespace) -> int:
    """Read, write the graph, and tell; the exit code."""
    check_target(options.out)
    for path in options.files:
        spare_data(options.out, path, "--out")
    window = Window(options.begin, options.end, options.step)
    if options.step is not None and window != Window(step=options.step):
        raise RefusedError("--step: a step begins and ends where it was marked (leave --from and --to out)")
    if options.begin is not None and options.end is not None and options.begin >= options.end:
        raise RefusedError("--to: the window ends before it begins (give a later time than --from)")
    found = joined(options.files, [read_any(path, window) for path in options.files], options.rank)
    told = fitted(text_of_trace(found, every=options.kernels))
    if options.out is None:
        sys.stdout.write(told)
        return ANSWERED
    graph = json.dumps(document_of(found.trace), separators=(",", ":"), allow_nan=False) + "\n"
    if len(graph) > LARGEST:
        raise RefusedError(f"--out {options.out}: the graph has more than {LARGEST >> 20} MiB, which nothing reads (trace fewer steps)")
    if str(options.out) == "-":
        sys.stderr.write(told)
        sys.stdout.write(graph)
    else:
        write_whole(options.out, graph)
        sys.stdout.write(told)
    return ANSWERED
