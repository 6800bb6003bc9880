"""What `crossopt export` reads and refuses: the plan of a result for a training stack, a question for a model file, or a placement as JSON
for other programs:

    devices     {id: name of its device}
    strategies  {layer: its strategy}, of layers
    modelopt    a recipe of Model-Optimizer for modules, or arguments of its quantiser of ONNX models; torchao a configuration in Python
    split       {maxLoad, fpgas: [{load, nodes}], cpus: [{load, nodes}]}, as the programs of Tarnawski et al. (NeurIPS 2020) write and judge

Strategies are written as certificates that `solvers/standalone.py` checks, and only such ones as it accepts.
"""

import gzip
import json
import os
import re
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from hashlib import sha256
from math import inf, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossopt import __version__
from crossopt.crossflow.operator_graph import Node, OperatorGraph
from crossopt.crossflow.plan import Plan
from crossopt.crossflow.workload import Transformer
from crossopt.instances.codesign.instance import Instance, MultiScaleQuestion
from crossopt.instances.codesign.question import narrowing, read_instance, read_question, saved_single_scale, several_text
from crossopt.instances.errors import Fault, InstanceError, RefusedError
from crossopt.instances.files.saved import file_name, kind_of, naming, write_atomically
from crossopt.instances.kinds import KINDS, holds_result, name_of
from crossopt.instances.layers.network import has_operands
from crossopt.instances.layers.splits import COPY, parts_of
from crossopt.instances.operators.graph_file import graph_in, is_operators
from crossopt.instances.question import read_again
from crossopt.reports.arguments import CHAKRA, MODELOPT, POLICY, REPLICAS, SCHEDULE, STRATEGIES, TORCHAO
from crossopt.reports.commands.asking import read_saved
from crossopt.reports.commands.console import refuse_overwriting_others, usage
from crossopt.reports.commands.progress import progress_on
from crossopt.reports.render.width import fitted
from crossopt.solvers.answer import Result, Status, claimed_lower_bound
from crossopt.solvers.checking import check
from crossopt.solvers.codesign.answer import Candidate, ChosenDesign, DesignResult, candidate_in
from crossopt.solvers.proofs import Parts

if TYPE_CHECKING:
    from crossopt.solvers.placement.family import Answer as PlacementAnswer


def plan_of(options: Namespace) -> tuple[Instance, Candidate]:
    """The design of a result with its question; a ValueError in words where there is none that could be launched."""
    out = None if options.stack == CHAKRA or options.job is not None else options.out
    given = {"--set": options.settings, "--out": out, "--within": options.within, "--time-limit": options.time_limit}
    for name, value in given.items():
        if value not in (None, []):
            raise ValueError(
                f"{name}: this belongs to models (--as lp, mps or cpsat); the settings of {options.stack or 'a stack'} are printed"
            )
    named = not options.file.suffix and not options.file.exists()
    if (options.file.suffix in {".yaml", ".yml"} and options.file.exists()) or (named and not holds_result(options.file)):
        raise ValueError(f"{name_of(options.file)}: a question has no plan (name a result of `solve --out`, or take --as lp, mps or cpsat)")
    instance, design = _design_of_result(options.file, options.workload)
    if design is None:
        raise ValueError(f"{name_of(options.file)}: there is no design in this result (solve a question that has one)")
    chosen = candidate_in(instance, design)
    if not isinstance(instance.workload, Transformer) or not isinstance(chosen.plan, Plan):
        raise ValueError(f"{name_of(options.file)}: only plans of transformers can be launched so")
    return instance, chosen


def export_model(question: Path, options: Namespace, seconds: float) -> Status:
    """Write the model of a question, or of the question of a result, and say what was written, or why nothing was."""
    from crossopt.solvers.codesign.linear.relaxation import ModelRequest, names_of, target_of, write_model  # noqa: PLC0415

    instance = _instance(question, tuple(options.settings), options.workload)
    target = target_of(options.stack, options.out, file_name(instance.name))
    refuse_overwriting_others(target, options.out)
    _spare_names(names_of(target))
    request = ModelRequest(options.stack, target, options.within or 0.0, seconds)
    with progress_on(sys.stderr, "s") as watch, naming(target):
        outcome = write_model(instance, request, watch)
    if isinstance(outcome, str):
        sys.stdout.write(outcome)
        return "FEASIBLE"
    sys.stderr.write(f"{instance.name}: {outcome.why}\n")
    return outcome.status


def _spare_names(path: Path) -> None:
    """What the names of a model mean goes into a file beside it, which may be there already only if it says such names."""
    if os.path.lexists(path) and not (path.is_file() and b'"about"' in path.read_bytes()[:20]):
        usage(f"{path}: this is there already, and the names of the model go there (move it, or name another file with --out)")


def _instance(question: Path, settings: tuple[str, ...], workload: str | None) -> Instance:
    """The question in a YAML file, with the settings laid over it, or the one that a result answers."""
    if not holds_result(question) or settings:
        return read_instance(question, settings, workload)
    document = _result_in(question).question
    return read_question({**document, "workload": workload} if workload else document)


def _result_in(path: Path) -> DesignResult:
    """The result in a file on one number of devices; an InstanceError in one sentence if there is none."""
    result: DesignResult = read_saved(path, "codesign")[1]
    if isinstance(result.proof, Parts):
        raise InstanceError(str(path), [Fault(1, 1, "", _of_several(result))], "nothing read")
    return result


def _of_several(result: DesignResult) -> str:
    """That one answer is needed, and how to have the best of them alone."""
    question = read_again(result.question, result.kind)
    if not isinstance(question, MultiScaleQuestion):
        return "here are answers about several questions, and one is needed (solve one of them on its own)"
    best = None if result.answer is None else question.scales.index(result.answer.scale)
    alone = f"{'the best' if result.answer else 'one'} of them on its own: crossopt solve QUESTION {narrowing(question, best)} --out FILE"
    return f"here are answers about {several_text(question)}, and one is needed (solve {alone})"


def _design_of_result(path: Path, workload: str | None) -> tuple[Instance, ChosenDesign | None]:
    """The question and the design of a result; of several workloads those of the one named."""
    result = _result_in(path)
    question = saved_single_scale(result.question)
    if isinstance(question, Instance):
        return question, result.answer.design if result.answer else None
    names = [part.name for part in question.parts]
    if workload not in names and result.answer is not None:
        message = f"there is a plan for each of several workloads (say --workload NAME, one of {', '.join(names)})"
        raise InstanceError(str(path), [Fault(1, 1, "answer", message)])
    if result.answer is None:
        return question.parts[0], None
    index = names.index(str(workload))
    return question.parts[index], result.answer.designs[index]


def export_placement(path: Path, form: str) -> str:
    """The placement of a saved result in this form."""
    family, result = read_saved(path, "placement")
    if result.answer is None:
        raise RefusedError(f"{path}: there is no placement in this result (solve a question that has one)")
    report = check(family, result, path.parent)
    if not report.accepted:
        raise RefusedError(f"{path}: this result is not sound: {report.refused[0]} (see `crossopt check`)")
    what = result.answer.devices if form == "devices" else _split(result, path.parent)
    return json.dumps(what, indent=1, allow_nan=False) + "\n"


def export_strategies(path: Path, form: str, out: Path | None) -> None:
    """Write the strategy of each layer of a saved result: as JSON, or for a quantiser."""
    family, result = read_saved(path, "layers")
    if result.answer is None:
        raise RefusedError(f"{path}: there is no choice in this result (solve a question that has one)")
    report = check(family, result, path.parent)
    if not report.accepted:
        raise RefusedError(f"{path}: this result is not sound: {report.refused[0]} (see `crossopt check`)")
    question = read_again(result.question, result.kind, path.parent)
    chosen = dict(zip(question.problem.layers, result.answer.strategies, strict=True))
    splits = {layer: parts_of(strategy) for layer, strategy in chosen.items() if not layer.startswith(COPY)} if question.types else {}
    chosen = {layer: str(parts.get("format", "bf16")) for layer, parts in splits.items()} or chosen
    if form == STRATEGIES:
        text = json.dumps(splits or chosen, indent=1) + "\n"
    else:
        graphs = (graph_in(text, name) for name, text in question.document.get("files", {}).items() if is_operators(text))
        graph = next(graphs, None)
        if form == MODELOPT and graph is not None and not any(node.source.startswith("aten.") for node in graph.nodes):
            text = json.dumps(_onnx_arguments(chosen, graph, path), indent=1) + "\n"
        else:
            formats = _module_formats(chosen, graph, form, path)
            text = "".join(f"{line}\n" for line in (_recipe if form == MODELOPT else _torchao)(formats, question.name))
    if out is None or str(out) == "-":
        sys.stdout.write(text)
    else:
        write_atomically(out, text)


def export_parts(path: Path, form: str, out: Path | None) -> None:
    """Write the instances, the fleet or the pipelines of a saved result, the shards of embedding tables, the schedule of memory, or a
    chip with its stages, as JSON."""
    from crossopt.reports.launching.checkpointing import excess_text, peak_of, policy_text  # noqa: PLC0415
    from crossopt.reports.sheets.accelerator import chip_document  # noqa: PLC0415
    from crossopt.reports.sheets.counts import replicas  # noqa: PLC0415 - of two kinds alone
    from crossopt.reports.sheets.embeddings import plan_document  # noqa: PLC0415
    from crossopt.reports.sheets.memory import schedule_rows  # noqa: PLC0415

    family, result = read_saved(path, kind_of(path) or "fleet")
    if result.answer is None:
        raise RefusedError(f"{path}: there is no {family.what} in this result (solve a question that has one)")
    report = check(family, result, path.parent)
    if not report.accepted:
        raise RefusedError(f"{path}: this result is not sound: {report.refused[0]} (see `crossopt check`)")
    plans: Any = chip_document if result.kind == "accelerator" else plan_document
    parts: Any = {REPLICAS: replicas, SCHEDULE: schedule_rows}.get(form, plans)
    question = read_again(result.question, result.kind, path.parent)
    text = policy_text(question, result) if form == POLICY else json.dumps(parts(question, result), indent=1) + "\n"
    if form == POLICY and (excess := excess_text(question, peak := peak_of(question, result.answer))):
        sys.stderr.write(f"crossopt export: as PyTorch runs it, the policy needs {peak:,} B. {excess}\n")
    if out is None or str(out) == "-":
        sys.stdout.write(text)
    else:
        write_atomically(out, text)


_UNQUANTISED = frozenset(("fp32", "tf32", "bf16", "fp16"))
_PER_BLOCK = {"num_bits": "e2m1", "block_sizes": {-1: 16, "type": "dynamic", "scale_bits": "e4m3"}}
_RECIPES = {
    "fp8": ({"num_bits": "e4m3", "axis": None}, {"num_bits": "e4m3", "axis": None}),
    "int8": ({"num_bits": 8, "axis": 0}, {"num_bits": 8, "axis": None}),
    "int4": ({"num_bits": 4, "axis": 0}, {"num_bits": 4, "axis": None}),
    "fp4": (_PER_BLOCK, _PER_BLOCK),
}
"""Quantisers of weights and of inputs by format, as recipes of Model-Optimizer state them: weights of whole numbers by output channel."""
_CONFIGS = {
    "fp8": ("torchao.quantization", "Float8DynamicActivationFloat8WeightConfig"),
    "int8": ("torchao.quantization", "Int8DynamicActivationInt8WeightConfig"),
    "fp4": ("torchao.prototype.mx_formats", "NVFP4DynamicActivationNVFP4WeightConfig"),
}
"""Configurations of torchao for both operands, by format."""


def _module_formats(chosen: dict[str, str], graph: OperatorGraph | None, form: str, path: Path) -> dict[str, str]:
    """The format of each module that is quantised, by its name; a RefusedError where a quantiser of this kind cannot do that."""
    nodes = {node.name: node for node in graph.nodes} if graph is not None else {}
    known, found, left = _RECIPES if form == MODELOPT else _CONFIGS, dict[str, str](), dict[str, str]()
    for layer, chosen_format in chosen.items():
        node = nodes.get(layer)
        if node is not None and not node.source.startswith("aten."):
            remedy = "import the module itself: `crossopt import model.pt2`, or crossopt.from_torch"
            raise RefusedError(f"{path}: its layers have the names of ONNX, and --as {form} needs those of modules ({remedy})")
        if node is not None and not (node.product and node.weights):
            continue  # its own output is written in the format, which no quantiser of weights does
        name = layer if node is None else re.sub(r" \d+$", "", layer)
        if node is not None and not _is_of_module(node, name):
            left |= {name: "weights of no linear layer or convolution"} if chosen_format in known else {}
            continue
        if found.setdefault(name, chosen_format) != chosen_format:
            raise RefusedError(
                f"{path}: {name} is called several times, in {found[name]} and {chosen_format} (fix its format, or tie layers)"
            )
        if chosen_format not in known and chosen_format not in _UNQUANTISED:
            raise RefusedError(
                f"{path}: {name} has the strategy {chosen_format}, and --as {form} writes {', '.join(known)} (take --as strategies)"
            )
        if form == TORCHAO and node is not None and node.source != "aten.linear" and chosen_format in known:
            raise RefusedError(f"{path}: {name} is no linear layer, which is all that torchao quantises so (take --as {MODELOPT})")
    quantised = {name: chosen_format for name, chosen_format in found.items() if chosen_format in known}
    _say_left_out(left, len(quantised), "quantisers", path)
    recurrent = {re.sub(r" \d+$", "", node.name) for node in nodes.values() if node.operator == "recurrent"}
    return {f"{name}.*" if name in recurrent else name: chosen_format for name, chosen_format in quantised.items()}


def _is_of_module(node: Node, name: str) -> bool:
    """Whether quantisers find the weights in a module: as its `weight`, which may be another one's too, or in a recurrence. Attention keeps
    its own, which `torch.nn.MultiheadAttention` passes to a function."""
    if node.operator == "recurrent" or f"{name}.weight" in node.weights:
        return True
    return name.rpartition(".")[2] != node.source.removeprefix("aten.") and not any(
        weight.startswith(f"{name}.") for weight in node.weights
    )


def _say_left_out(left: Mapping[str, str], others: int, quantiser: str, path: Path) -> None:
    """Name one layer that a quantiser leaves as it is, with the reason; a RefusedError where nothing else is to be quantised."""
    if not left:
        return
    first, reason = next(iter(left.items()))
    if not others:
        raise RefusedError(f"{path}: {first} has {reason}, and nothing else is to be quantised")
    more = f" and {len(left) - 1:,} more" if len(left) > 1 else ""
    verb = "leave" if quantiser.endswith("s") else "leaves"
    remedy = "fix these layers in their base format for times that include it"
    sys.stderr.write(fitted(f"left out as {quantiser} {verb} them as they are: {first}, with {reason}{more} ({remedy})\n"))


_ONNX_MODES = ("fp8", "int8")
_ONNX_QUANTISED = frozenset(("Conv", "ConvTranspose", "Gemm", "MatMul"))


def _onnx_arguments(chosen: dict[str, str], graph: OperatorGraph, path: Path) -> dict[str, Any]:
    """Arguments of Model-Optimizer's quantiser of ONNX models, which takes patterns of names of nodes, and one format for all of them."""
    kinds = {node.name: node.source for node in graph.nodes if has_operands(node)}
    found = {name: chosen[name] for name in kinds if chosen.get(name, "bf16") not in _UNQUANTISED}
    modes = list(dict.fromkeys(found.values()))
    if not found:
        raise RefusedError(f"{path}: every layer keeps its format, so that there is nothing to quantise (allow more loss of quality)")
    if len(modes) > 1 or not set(modes) <= set(_ONNX_MODES):
        known = " or ".join(_ONNX_MODES)
        raise RefusedError(
            f"{path}: Model-Optimizer quantises nodes of ONNX in {known} alone, here are {', '.join(modes)} (offer one of them in formats)"
        )
    for name in found:
        if kinds[name] not in _ONNX_QUANTISED:
            raise RefusedError(f"{path}: {name} is {kinds[name] or 'no operator of ONNX'}, which is not quantised so (fix its format)")
    nodes = {node.name: node for node in graph.nodes}
    left = {name: reason for name in found if (reason := _why_unquantised(nodes[name], graph, modes[0]))}
    _say_left_out(left, len(found) - len(left), "Model-Optimizer", path)
    wide = {"bf16": "bf16", "fp16": "fp16"}.get(next((chosen[name] for name in kinds if chosen.get(name) in _UNQUANTISED), "bf16"), "fp32")
    patterns = [f"{re.escape(name)}$" for name in found if name not in left]
    arguments = {"quantize_mode": modes[0], "high_precision_dtype": wide, "nodes_to_quantize": patterns}
    shapes = {name: graph.tensors[name] for name in graph.inputs if graph.tensors[name]} if graph.axes else {}
    stated = ",".join(f"{name}:{'x'.join(map(str, shape))}" for name, shape in shapes.items())
    return arguments | ({"calibration_shapes": stated} if shapes else {})  # an open axis would have the length 1, and products one row


_FEW, _WIDE = 16, 32


def _why_unquantised(node: Node, graph: OperatorGraph, mode: str) -> str:
    """What keeps Model-Optimizer 0.47 from quantising a node of ONNX with its usual options; empty where nothing does."""
    rows, depth, columns, count = node.product or (0, 0, 0, 0)
    if not node.window:
        return "one row or column" if 1 in (rows, columns) else f"fewer than {_FEW} features" if min(depth, columns) < _FEW else ""
    taken, made = depth // prod(node.window), columns * count
    if mode == "fp8" and node.source == "ConvTranspose":
        return "a format that transposed convolutions do not have there"
    if mode == "fp8":
        few = f"{_FEW} channels or fewer" if min(taken, made) <= _FEW else ""
        return few or (f"a kernel of more than {_WIDE} places" if prod(node.window) > _WIDE else "")
    if min(taken, made) >= _FEW:
        return ""
    wide = any(name in graph.inputs for name in node.inputs) or max(taken, made) >= _FEW
    alone = (made % 8 == 0 or taken % 8 == 0) and wide and len(set(node.window)) == 1
    grouped = made % 8 == 0 and min(node.window) >= 3
    return "" if (grouped if count > 1 else alone) else f"fewer than {_FEW} channels"


def _recipe(formats: dict[str, str], name: str) -> Iterator[str]:
    """A recipe of NVIDIA's Model-Optimizer: everything off, then the two quantisers of each module, or of each matrix of a recurrence."""
    yield "metadata:"
    yield "  recipe_type: ptq"
    yield f"  description: {json.dumps(f'formats of {len(formats)} modules by crossopt: {name}')}"
    yield "quantize:"
    yield "  algorithm: max"
    yield "  quant_cfg:"
    yield '    - {quantizer_name: "*", enable: false}'
    for module, chosen_format in formats.items():
        for part, attributes in zip(("weight", "input"), _RECIPES[chosen_format], strict=True):
            stated = json.dumps(attributes).replace('"-1"', "-1")
            separator = "_" if module.endswith("*") else "."
            yield f"    - {{quantizer_name: {json.dumps(f'{module}{separator}{part}_quantizer')}, cfg: {stated}}}"


def _torchao(formats: dict[str, str], name: str) -> Iterator[str]:
    """A module of Python with a configuration of torchao by names of modules."""
    used = [chosen_format for chosen_format in _CONFIGS if chosen_format in formats.values()]
    about = json.dumps(f"Formats of {len(formats)} modules by crossopt: {name}")[1:-1]
    yield f'"""{about}; apply: quantize_(model, config, filter_fn=None)."""'
    yield ""
    yield f"from torchao.quantization import {', '.join(('FqnToConfig', *(_CONFIGS[item][1] for item in used if item != 'fp4')))}"
    yield from (f"from {module} import {kind}" for module, kind in (_CONFIGS[item] for item in used if item == "fp4"))
    yield ""
    yield from (f"{chosen_format} = {_CONFIGS[chosen_format][1]}()" for chosen_format in used)
    yield "config = FqnToConfig({"
    yield from (f"    {json.dumps(module)}: {chosen_format}," for module, chosen_format in formats.items())
    yield "})"


def export_certificate(path: Path, out: Path | None) -> None:
    """Write the certificate of a saved result, and say what holds of it."""
    if kind_of(path) == "codesign":
        from crossopt.reports.facts.listing import certificate_of_designs  # noqa: PLC0415 - these load the whole model

        certificate = certificate_of_designs(_result_in(path))
    else:
        certificate = _of_strategies(path)
    text = json.dumps(certificate, separators=(",", ":"), allow_nan=False) + "\n"
    if out is None or str(out) == "-":
        sys.stdout.write(text)
    elif out.suffix == ".gz":
        partial_file = out.with_name(f".{out.name}.part")  # no one ever sees half of it
        partial_file.write_bytes(gzip.compress(text.encode(), mtime=0))
        partial_file.replace(out)
    else:
        write_atomically(out, text)


def _of_strategies(path: Path) -> dict[str, Any]:
    """Only what the checker accepts; says where its bound is another one than the result's."""
    from crossopt.solvers.sharding.certificate import certificate_of  # noqa: PLC0415 - most exports are of designs
    from crossopt.solvers.standalone import check as proved  # noqa: PLC0415

    family, result = read_saved(path, "sharding")
    certificate = certificate_of(read_again(result.question, family.kind, path.parent), result)
    try:
        sys.stderr.write(f"{proved(certificate)}\n")
    except ValueError as error:
        raise RefusedError(f"{path}: its certificate does not hold: {error} (`crossopt check` shows whether the result does)") from error
    if certificate["bound"] != result.bound and result.value is not None:
        sys.stderr.write(f"the bound {result.bound:,} of the result is reported by {result.proved_by}, and not in the certificate\n")
    return certificate


def export_vipr(path: Path, out: Path | None) -> None:
    """Write what proves the bound of a saved result in the format VIPR, and say what that shows."""
    from crossopt.formulation.vipr import vipr_certificate  # noqa: PLC0415 - most exports are of designs
    from crossopt.solvers import vipr  # noqa: PLC0415

    kind = kind_of(path)
    family, result = read_saved(path, kind if kind in KINDS else "codesign")
    bound = claimed_lower_bound(result)
    if bound is None:
        raise RefusedError(f"{path}: there is no bound in this result (solve it again with more time)")
    question = read_again(result.question, result.kind, path.parent)
    try:
        proof = family.integer_proof(question, result)
        if proof is None:
            raise RefusedError(f"{path}: {_no_certificate(family.what, result)}")
        certificate = vipr_certificate(proof, (*_about(result), proof.about))
        checked = vipr.check(certificate.text)
    except RefusedError:
        raise
    except vipr.MalformedError as error:
        raise RefusedError(f"{path}: {error}") from error
    except ValueError as error:
        raise RefusedError(f"{path}: the proof of this result does not hold: {error} (see `crossopt check`)") from error
    shown = proof.shown(certificate.bound)
    less = "" if shown >= bound else f" (the result says {bound!r}, which this file does not prove)"
    unit = str(result.question.get("unit") or "")
    sys.stderr.write(f"{vipr.sentence(checked)}: {_no_answer_below(family.what, shown, unit)}{less}\n")
    if out is None or str(out) == "-":
        sys.stdout.write(certificate.text)
    else:
        write_atomically(out, certificate.text)


def _no_certificate(what: str, result: Result[Any, Any]) -> str:
    """Why there is none, and what holds of the bound all the same."""
    claim = f"that there is no {what}" if result.value is None else "the bound"
    if result.unverified:
        return f"{claim} is reported by {result.proved_by} and not proved, so there is no certificate"
    how = f"{claim} is proved by {result.proved_by}, not by a tree about an integer model"
    return f"{how}, so there is no certificate (`crossopt check` repeats the proof)"


def _about(result: Result[Any, Any]) -> tuple[str, ...]:
    """Comments that bind a certificate to its question, and say what it does not cover."""
    digest = sha256(json.dumps(result.question, sort_keys=True).encode()).hexdigest()
    return (
        f"crossopt {__version__}, {result.kind}: {str(result.question.get('name', ''))[:100]}",
        f"question: sha256 {digest} (`question` of the result, as JSON with sorted keys)",
        "not verified: that this is the model of the question, which `crossopt check` of the result shows",
    )


def _no_answer_below(what: str, shown: float, unit: str) -> str:
    return f"no {what} is possible" if shown == inf else f"no {what} is below {shown!r} {unit}".rstrip()


def _split(result: "PlacementAnswer", folder: Path) -> dict[str, Any]:
    from crossopt.solvers.placement.answer import devices_in  # noqa: PLC0415 - most exports are of designs

    question = read_again(result.question, result.kind, folder)
    places = devices_in(question, result.answer.devices if result.answer else {}).tolist()
    devices = [
        {"load": load.total, "nodes": [name for name, where in zip(question.graph.ids, places, strict=True) if where == device]}
        for device, load in enumerate(result.details.loads if result.details else ())
    ]
    return {"maxLoad": result.value, "fpgas": devices[: question.accelerators], "cpus": devices[question.accelerators :]}
