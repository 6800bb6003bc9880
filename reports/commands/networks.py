"""The command `import` for networks of other tools, its Python function for modules, the list of operators of graphs, and how commands
answer the question about a network that their options write."""

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from crossopt.crossflow.operator_costs import OPERATORS, kept_tensors
from crossopt.crossflow.operator_graph import OperatorGraph, shared_weights, values_in, weight_values
from crossopt.instances.errors import RefusedError, install_text
from crossopt.instances.files.careful import opened
from crossopt.instances.files.saved import write_atomically
from crossopt.instances.kinds import STANDARD_INPUT
from crossopt.instances.operators.graph_file import ONNX_NAMES, graph_text, is_operators, read_graph
from crossopt.instances.operators.torch_export import ATEN_NAMES, graph_of_module, read_torch
from crossopt.reports.commands.console import ANSWERED, check_target, code_of, saved_question, seconds_of
from crossopt.reports.commands.progress import progress_on
from crossopt.reports.render.width import fitted, listed, wrapped
from crossopt.reports.shown import text_of
from crossopt.solvers.answer import Limits, Result, SearchOutcome, to_text
from crossopt.solvers.checking import solve_and_verify
from crossopt.solvers.family import certify, family_of, simplest_of

_NETWORKS = (".onnx", ".pt2")
_LONGEST, _NAMED = 5, 60
_OF_TRACES = {"rank": "--rank", "step": "--step", "begin": "--from", "end": "--to", "kernels": "--kernels"}
_MOST_LENGTH = 10**9


# The commands `place`, `quantize` and `checkpoint`: their options write a question about a network, which is answered and may be kept.

USUAL_LIMIT = 300.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Written:
    """The question that the options ask, as files."""

    text: str
    graph_file: str = ""
    """Empty where there is no graph."""
    graph: str = ""


def answer_written(
    options: Namespace,
    kind: str,
    unit: str,
    written: Written,
    question: Any,  # noqa: ANN401 - of the kind
    usual_limit: float = USUAL_LIMIT,
) -> int:
    """Answer, print and write; the exit code is that of `solve`."""
    seconds = seconds_of(options.time_limit) if options.time_limit else usual_limit
    return code_of(result_written(options, kind, unit, written, question, seconds).status, unproved=False)


def result_written(
    options: Namespace,
    kind: str,
    unit: str,
    written: Written,
    question: Any,  # noqa: ANN401 - of the kind
    seconds: float,
    known: object = None,
    interrupted: float | None = None,
) -> Result[Any, Any]:
    """The answer, printed and written. Where the search finds nothing in time, the known answer is given; at once where Ctrl-C came after
    so many seconds."""
    limits, family = Limits(seconds), family_of(kind)
    with progress_on(sys.stderr, unit) as watch:
        if interrupted is None:
            simplest = simplest_of(family, question) if known is None else lambda _: known
            result = solve_and_verify(family, question, "auto", limits, watch, simplest=simplest)
        else:
            result = certify(family, question, SearchOutcome(known, engine="auto", stopped="interrupted"), limits, interrupted)
    if options.save is not None:
        if written.graph_file:
            write_atomically(options.save.parent / written.graph_file, written.graph)
        write_atomically(options.save, saved_question(options.command, written.text))
    if options.out is not None:
        write_atomically(options.out, to_text(result))
    sys.stdout.write(fitted(text_of(kind, question, result, options.verbose)))
    return result


def check_targets(options: Namespace) -> None:
    """Refuse files that cannot be written before anything is solved."""
    for option, path in (("--save", options.save), ("--out", options.out)):
        check_target(path, option)


@dataclass(frozen=True, slots=True)
class Network:
    """A network as a graph of operators: `print(network)` says what it consists of."""

    graph: OperatorGraph

    @property
    def macs(self) -> int:
        """Multiply-adds of a forward pass."""
        return self.graph.macs

    @property
    def parameters(self) -> int:
        """Weights that are trained; shared ones count once."""
        return self.graph.parameters

    @property
    def text(self) -> str:
        """What it consists of, as `crossopt import` prints it."""
        return "\n".join(graph_lines(self.graph, self.graph.name)) + "\n"

    def __str__(self) -> str:
        return self.text

    def save(self, path: str | Path) -> Path:
        """Write the file that questions name: `graph: resnet.json`."""
        write_atomically(Path(path), graph_text(self.graph))
        return Path(path)


def from_torch(module: Any, inputs: Any, name: str | None = None) -> Network:  # noqa: ANN401 - of torch, which may be missing
    """A module of PyTorch as a graph of operators: `from_torch(model, torch.zeros(1, 3, 224, 224)).save("model.json")`.

    Inputs are a tensor, several in order, or a mapping by name. The module is exported by `torch.export`; no weights are read, so it may
    be built under `torch.device("meta")`.
    """
    return Network(graph_of_module(module, inputs, name))


def import_files(options: Namespace) -> int:
    """Read a network or traces, write the graph, and tell; the exit code."""
    if len(options.files) == 1 and (_is_network(options.files[0]) or _is_graph(options.files[0])):
        return _import_network(options, options.files[0])
    if networks := [path for path in options.files if _is_network(path)]:
        raise RefusedError(f"{networks[0]}: networks are imported one by one (name this one alone)")
    if options.named is not None:
        raise RefusedError("--named is for models of ONNX (leave it out for traces)")
    if options.settings:
        raise RefusedError("--set gives lengths of open axes of networks (leave it out for traces)")
    from crossopt.reports.commands.traces import import_traces  # noqa: PLC0415

    return import_traces(options)


def _is_network(path: Path) -> bool:
    return path.suffix.lower() in _NETWORKS


def _is_graph(path: Path) -> bool:
    """Whether a file is a graph that was written by an import."""
    try:
        with opened(path, "name a file") as file:
            return is_operators(file.read(40).decode("latin-1"))
    except (OSError, ValueError):
        return False


def _import_network(options: Namespace, path: Path) -> int:
    check_target(options.out)
    if strange := [option for name, option in _OF_TRACES.items() if getattr(options, name) not in (None, False)]:
        raise RefusedError(f"{strange[0]} is for traces (leave it out for a network)")
    graph = read_network(path, lengths_of(options.settings))
    _write_named(options.named, path, graph)
    summary = fitted("\n".join(graph_lines(graph, str(path))) + "\n")
    if options.out is None or str(options.out) != "-":
        sys.stdout.write(summary)
    if options.out is not None:
        text = _text(graph)
        if str(options.out) == "-":
            sys.stderr.write(summary)
            sys.stdout.write(text)
        else:
            write_atomically(options.out, text)
    return ANSWERED


def _write_named(target: Path | None, path: Path, graph: OperatorGraph) -> None:
    """The copy of a model of ONNX with names of the graph."""
    if target is None:
        return
    if path.suffix.lower() != ".onnx":
        raise RefusedError(f"{path}: --named is for models of ONNX (leave it out)")
    check_target(target, "--named")
    from crossopt.instances.operators.onnx_model import named_copy  # noqa: PLC0415

    write_atomically(target, named_copy(path, graph, target))


def _text(graph: OperatorGraph) -> str:
    try:
        return graph_text(graph)
    except ValueError as error:
        raise RefusedError(f"--out: {error}") from error


def read_network(path: Path, axes: dict[str, int]) -> OperatorGraph:
    if path == STANDARD_INPUT:
        raise RefusedError(f"{path}: a graph is not read from standard input (name its file)")
    if not _is_network(path):
        if axes:
            raise RefusedError(f"--set: the axes of {path} have their lengths already (import the model itself)")
        return read_graph(path)
    if path.suffix.lower() == ".pt2":
        return read_torch(path, axes)
    if not path.is_file():
        raise RefusedError(f"{path}: there is no such file (check the name and the folder)")
    if find_spec("onnx") is None:
        raise RefusedError(f"{path}: reading ONNX needs the package onnx ({install_text('onnx')})")
    from crossopt.instances.operators.onnx_model import read_onnx  # noqa: PLC0415

    return read_onnx(path, axes)


def lengths_of(settings: Sequence[str]) -> dict[str, int]:
    """Lengths of open axes by their names."""
    found = dict[str, int]()
    for setting in settings:
        name, equals, length = setting.rpartition("=")
        if not equals or not name or not length.isdecimal() or not 1 <= int(length[:20]) <= _MOST_LENGTH:
            raise RefusedError(f"--set {setting}: a length of an axis is needed, from 1 to {_MOST_LENGTH:,} (such as batch=32)")
        if name in found:
            raise RefusedError(f"--set {setting}: the axis {name} is given twice (keep one)")
        found[name] = int(length)
    return found


def graph_lines(graph: OperatorGraph, source: str) -> Iterator[str]:
    """What a network consists of."""
    count = Counter(node.operator for node in graph.nodes)
    yield f"{source}   {len(graph):,} operators"
    yield ""
    yield from listed("  operators      ", " · ".join(f"{name} {number:,}" for name, number in count.most_common()))
    yield from listed("  inputs         ", " · ".join(f"{name} {_extents(graph.tensors[name])}" for name in graph.inputs))
    if graph.axes:
        yield from listed("  axes           ", " · ".join(f"{name} {length:,}" for name, length in graph.axes))
    yield f"  multiply-adds  {graph.macs:,} forward, {graph.macs * 2:,} FLOPs"
    buffers = f"; buffers {graph.buffers:,}" if graph.buffers else ""
    yield f"  parameters     {graph.parameters:,}{buffers}"
    stored = values_in(kept_tensors(graph), graph.tensors)
    yield f"  activations    {stored:,} values that the backward pass needs"
    blocks = [f"{group.length} operators {group.copies} times" for group in graph.groups]
    yield from listed("  repeated       ", " · ".join(blocks) or "no block of operators")
    if shared := shared_weights(graph):
        yield from listed(
            "  shared         ", " · ".join(f"{name} by {len(numbers)} operators" for name, numbers in list(shared.items())[:_LONGEST])
        )
    yield from _largest(graph)
    for remark in graph.remarks:
        yield from wrapped("  note           ", remark)


def _largest(graph: OperatorGraph) -> Iterator[str]:
    """Operators with the most multiply-adds."""
    ranked = sorted(graph.nodes, key=lambda node: -node.macs)[:_LONGEST]
    for number, node in enumerate(ranked_node for ranked_node in ranked if ranked_node.macs):
        label = "  most work      " if number == 0 else " " * 17
        share = f"{node.macs / graph.macs:>6.1%}  {node.macs:>15,}  weights {weight_values(graph, node):>11,}"
        yield f"{label}{share}  {node.name[:_NAMED]}"


def _extents(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape)) or "1"


def operator_rows() -> tuple[tuple[str, str], ...]:
    """Operators of graphs, with what they are and what ONNX and PyTorch call them."""
    rows = []
    for name, kind in OPERATORS.items():
        others = ""
        for tool, names in (("ONNX", ONNX_NAMES), ("ATen", ATEN_NAMES)):
            own = names.get(name, "").split()
            others += f"; {tool}: {', '.join(own[:4])}{', ...' if len(own) > 4 else ''}" if own else ""
        rows.append((name, f"{kind.about}{others}"))
    return tuple(rows)
