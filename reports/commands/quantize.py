"""The command `quantize`: a number format, or a split over devices, for each layer of a network in one line; its question can be kept."""

import json
import re
import sys
from argparse import Namespace
from collections.abc import Iterator
from os.path import relpath
from pathlib import Path

from crossopt.crossflow.operator_graph import weight_values
from crossopt.instances.catalogue.formats import BITS
from crossopt.instances.catalogue.registry import is_path
from crossopt.instances.codesign.short import device_named
from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.instances.files.careful import why_unreadable
from crossopt.instances.files.graphs import text_of as text_of_file
from crossopt.instances.files.saved import write_atomically
from crossopt.instances.files.units import quoted
from crossopt.instances.files.written import Files
from crossopt.instances.layers.network import has_operands
from crossopt.instances.layers.problem import FIGURES
from crossopt.instances.layers.question import LayersQuestion
from crossopt.instances.operators.graph_file import graph_text
from crossopt.instances.question import read_given
from crossopt.reports.commands.console import check_target, graph_beside, usage
from crossopt.reports.commands.networks import Written, answer_written, check_targets, lengths_of, read_network

KIND = "layers"
_OPTIONS = {
    "objective": "--minimize",
    "hardware": "--hardware",
    "formats": "--formats",
    "peaks": "--peak",
    "base": "--base",
    "quality_file": "--losses",
    "tie": "--tie",
    "cluster": "--devices",
    "splits": "--splits",
    "graph": "MODEL",
}
"""Options by the keys of the question that they write."""
_LOSSES = "give quality or quality_file"
_WITH_LOSSES = "add --losses FILE.csv; --losses-template FILE.csv writes its rows"
_BATCH = "take a batch that is a multiple of them, or give `splits` without batch"
_WITH_BATCH = "take a multiple of them as the batch, such as --set batch={0}, or --splits features,inputs,space"
_CLUSTER = "cluster: {devices: 8}"
_PEAKS = re.compile(r"state one: `peaks: {(\w+): [^`]*`")


def quantize(options: Namespace) -> int:
    """Answer, print and write; the exit code is that of `solve`."""
    check_targets(options)
    check_target(options.losses_template, "--losses-template")
    if options.losses_template is not None:
        return _write_template(options)
    written, question = question_written(options)
    return answer_written(options, KIND, question.unit, written, question)


def _write_template(options: Namespace) -> int:
    """Write a table of losses to be filled in, a row for each layer and format, in the order of the network."""
    graph, formats = read_network(options.model, lengths_of(options.settings)), _names(options.formats or "")
    if strange := [name for name in formats if name not in BITS]:
        known = f"one of {', '.join(BITS)}"
        usage(f"--formats: {quoted(strange[0]) if strange[0] else 'names of formats are needed'} ({known}; the table has a row for each)")
    layers = [node for node in graph.nodes if has_operands(node)]
    rows = [f"{_cell(node.name)},{item},,{node.operator},{weight_values(graph, node)},{node.macs}" for node in layers for item in formats]
    write_atomically(options.losses_template, "\n".join(("layer,format,quality,operator,weights,macs", *rows, "")))
    sys.stdout.write(
        f"{options.losses_template}: {len(rows):,} rows; fill in the column quality with what is lost where this layer alone has the "
        "format, or take the row out: layers without one keep the base format\n"
    )
    return 0


def _cell(text: str) -> str:
    """A cell of CSV."""
    doubled = text.replace('"', '""')
    return f'"{doubled}"' if any(mark in text for mark in ',"\n') else text


def question_written(options: Namespace) -> tuple[Written, LayersQuestion]:
    """The question as files, and as it is read."""
    graph = graph_text(read_network(options.model, lengths_of(options.settings)))
    graph_file = graph_beside(options.save or options.model).name
    text = "\n".join(_lines(options, graph_file, options.save.parent if options.save else Path())) + "\n"
    texts = {graph_file: graph}
    if options.losses:
        texts[_losses_name(options, Path())] = _losses_text(options.losses)
    try:
        question: LayersQuestion = read_given("\n".join(_lines(options, graph_file, Path())) + "\n", KIND, files=Files(Path(), texts))
    except InstanceError as error:
        if error.source in texts:  # a fault of a file, with its line
            raise
        usage(
            "; ".join(
                dict.fromkeys(
                    f"{_option(fault.path) or error.source}: {_as_option_fault(fault.message, options.devices)}" for fault in error.faults
                )
            )
        )
    return Written(text, graph_file, graph), question


def _option(path: str) -> str:
    """The option that wrote what is at this path of the question."""
    first, _, rest = path.partition(".")
    return f"--budget {rest}" if first == "budgets" and rest else _OPTIONS.get(first.partition("[")[0], path)


def _as_option_fault(message: str, devices: str) -> str:
    """A fault with its remedy as an option."""
    return (
        _PEAKS.sub(r"say its dense peak by --peak \1=SPEED, such as int4=2PFLOP/s", message)
        .replace(_LOSSES, _WITH_LOSSES)
        .replace(_BATCH, _WITH_BATCH.format(devices))
        .replace(_CLUSTER, "--devices")
    )


def _losses_text(path: Path) -> str:
    try:
        return text_of_file(path, "a CSV file of losses")
    except OSError as error:
        raise RefusedError(f"--losses {path}: {why_unreadable(error)}") from error


def _losses_name(options: Namespace, folder: Path) -> str:
    return relpath(options.losses, folder)


def _lines(options: Namespace, graph_file: str, folder: Path) -> Iterator[str]:
    """The question in YAML, to be read in this folder."""
    yield f"kind: {KIND}"
    yield f"name: {json.dumps(options.model.stem)}"
    yield f"objective: {json.dumps(options.minimize)}"
    yield f"graph: {json.dumps(graph_file)}"
    yield f"hardware: {json.dumps(_device(options.hardware, folder))}"
    if options.formats:
        yield f"formats: {json.dumps(_names(options.formats))}"
    elif options.devices is None:
        usage("--formats: name those to choose among, such as fp8, or give --devices")
    if options.devices is not None:
        count = str(options.devices)
        yield f"cluster: {{devices: {count if count.isdecimal() else json.dumps(count)}}}"
    if options.splits:
        yield f"splits: {json.dumps(_names(options.splits))}"
    if options.base:
        yield f"base: {json.dumps(options.base)}"
    if budgets := _budgets(options.budget):
        yield f"budgets: {json.dumps(budgets)}"
    if options.losses:
        yield f"quality_file: {json.dumps(_losses_name(options, folder))}"
    if options.peak:
        yield f"peaks: {json.dumps(_peaks(options.peak))}"
    if options.tie:
        yield f"tie: {json.dumps(options.tie)}"
    if options.training:
        yield "training: true"


def _device(given: str, folder: Path) -> str:
    """The device that the beginning of its name says, as in `--gpus`, or a file from this folder; the question reports what is none."""
    if is_path(given):
        return relpath(given, folder)
    try:
        return device_named(given)
    except ValueError:
        return given


def _names(given: str) -> list[str]:
    return [name.strip() for name in given.split(",")]


def _peaks(given: list[str]) -> dict[str, str]:
    """Peaks of formats that the device's file lacks."""
    found = dict[str, str]()
    for text in given:
        name, equals, amount = text.partition("=")
        if not equals:
            usage(f"--peak {text}: FORMAT=SPEED is needed (such as int4=2PFLOP/s)")
        found[name] = amount
    return found


def _budgets(given: list[str]) -> dict[str, str | float]:
    """The most of each figure, as it is written."""
    found = dict[str, str | float]()
    for text in given:
        name, equals, amount = text.partition("=")
        if not equals or name not in FIGURES:
            usage(f"--budget {text}: FIGURE=AMOUNT is needed, of {', '.join(FIGURES)} (such as time=2ms or quality=0.5)")
        if name in found:
            usage(f"--budget {text}: {name} is given twice (keep one)")
        try:
            found[name] = float(amount)
        except ValueError:
            found[name] = amount
    return found
