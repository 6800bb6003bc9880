"""The command `serve`, a serving question in one line, and the command lines of engines that launch a plan."""

import json
import re
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import Any, Final, NamedTuple

from crossopt.instances.catalogue.engines import BLOCK_SCALED_ALONE, ENGINES, is_blackwell
from crossopt.instances.catalogue.registry import is_path
from crossopt.instances.codesign.short import count_of, groups_in, model_named
from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.instances.files.units import quoted
from crossopt.instances.question import read_again, read_given
from crossopt.instances.serving.question import ServingQuestion, stated_context
from crossopt.instances.serving.workers import Shape, priced, refusal
from crossopt.reports.commands.asking import read_saved
from crossopt.reports.commands.console import usage
from crossopt.reports.commands.networks import Written, answer_written, check_targets
from crossopt.reports.sheets.serving import copies_text
from crossopt.solvers.checking import check
from crossopt.solvers.serving.judge import Copies, ServingFigures

KIND: Final = "serving"
_OPTIONS: Final = {
    "model": "MODEL",
    "config": "MODEL",
    "hardware": "--gpus",
    "devices": "--gpus",
    "available": "--gpus",
    "requests.input": "--input",
    "requests.output": "--output",
    "requests.rate": "--rate",
    "requests.cached": "--cached",
    "requests": "--input",
    "limits.ttft": "--ttft",
    "limits.tpot": "--tpot",
    "limits.at": "--at",
    "engine": "--engine",
    "choices.weights": "--weights",
    "choices.cache": "--cache",
    "choices.mode": "--mode",
    "choices.shapes": "--shapes",
    "choices.data": "--data",
    "speculation.accepted": "--drafts",
    "objective": "--minimize",
    "rent": "--rent",
    "context": "--context",
    "matching.prefill": "--prefill-share",
    "matching.decode": "--decode-share",
    "matching.ttft": "--ttft-factor",
}
"""Options by the keys of the question that they write."""


def serve(options: Namespace) -> int:
    """Answer, print and write; the exit code is that of `solve`."""
    check_targets(options)
    try:
        text = "\n".join(_lines(options)) + "\n"
    except ValueError as error:
        usage(str(error))
    try:
        question = read_given(text, KIND)
    except InstanceError as error:
        if Path(error.source).is_absolute():  # a file of a device
            raise
        usage("; ".join(dict.fromkeys(f"{_option(fault.path)}: {fault.message}" for fault in error.faults)))
    return answer_written(options, KIND, "", Written(text), question)


def _option(path: str) -> str:
    """The option that writes a key of the question, or the list or table around it."""
    around = [key for key in _OPTIONS if path == key or path.startswith((f"{key}.", f"{key}["))]
    return _OPTIONS[max(around, key=len)] if around else path


def _lines(options: Namespace) -> Iterator[str]:
    """The question in YAML; a ValueError in a sentence where an option makes no sense."""
    groups = groups_in(options.gpus, files=True)
    if len({group.device for group in groups}) < len(groups):
        raise ValueError("--gpus: a kind of device is named twice (name each once)")
    key, value = model_named(options.model)
    devices = " and ".join(f"{group.count} {Path(group.device).stem if is_path(group.device) else group.device}" for group in groups)
    requests: dict[str, float] = {name: _tokens(f"--{name}", getattr(options, name)) for name in ("input", "output")}
    requests |= {"cached": _tokens("--cached", options.cached)} if options.cached else {}
    requests |= {"rate": options.rate} if options.rate is not None else {}
    shares = {"prefill": options.prefill_share, "decode": options.decode_share, "ttft": options.ttft_factor}
    levels = {name: getattr(options, name) for name in ("ttft", "tpot", "at") if getattr(options, name)}
    choices: dict[str, Any] = {name: _listed(getattr(options, name)) for name in ("weights", "cache", "mode") if getattr(options, name)}
    choices |= {"shapes": options.shapes} if options.shapes else {}
    data = [_tokens("--data", part) for part in _listed(options.data)] if options.data else []
    yield f"kind: {KIND}"
    named = Path(value).stem if key == "config" else value
    yield f"name: {json.dumps(f'{named} on {devices}')}"
    yield f"{key}: {json.dumps(str(Path(value).resolve()) if key == 'config' else value)}"
    if key == "model" and _HUB.fullmatch(options.model):
        yield f"hub: {json.dumps(options.model)}"
    if options.context:
        yield f"context: {_tokens('--context', options.context)}"
    if len(groups) == 1:
        yield f"hardware: {json.dumps(groups[0].device)}"
        yield f"devices: {groups[0].count}"
    else:
        yield f"hardware: {json.dumps([group.device for group in groups])}"
        yield f"available: {json.dumps({group.device: group.count for group in groups})}"
    yield f"requests: {json.dumps(requests)}"
    yield f"engine: {json.dumps(options.engine)}"
    if levels:
        yield f"limits: {json.dumps(levels)}"
    if choices or data:
        yield f"choices: {json.dumps({**choices, **({'data': data} if data else {})})}"
    if options.drafts:
        yield f"speculation: {json.dumps({'accepted': dict(_drafts(options.drafts))})}"
    if matching := {name: share for name, share in shares.items() if share is not None}:
        yield f"matching: {json.dumps(matching)}"
    if options.minimize:
        yield f"objective: {json.dumps(options.minimize)}"
    if options.rent:
        yield f"rent: {json.dumps(options.rent if options.rent.strip()[-1:].isalpha() else f'{options.rent} USD')}"


def _drafts(text: str) -> Iterator[tuple[str, float]]:
    """Pairs such as 3:2.6 of drafted tokens and mean tokens of a step."""
    for part in _listed(text):
        count, _, accepted = part.partition(":")
        try:
            yield count.strip(), float(accepted)
        except ValueError:
            raise ValueError(f"--drafts: {quoted(part)} is no pair of drafted tokens and tokens of a step (such as 3:2.6)") from None


def _tokens(option: str, text: str) -> float:
    """A count of tokens such as 4000 or 4k; those that are not whole are left to the question."""
    try:
        count = count_of(text, 1024)
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from None
    return int(count) if count.is_integer() else count


_HUB: Final = re.compile(r"[\w.-]+/[\w.-]+")
"""The name of a model on the hub."""


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


# The command lines that launch a plan.

Flags = Iterator[tuple[str, str]]


def export_flags(path: Path, form: str) -> str:
    """A saved plan as the command line of each worker, as a manifest of all of them for Kubernetes, or as a table in JSON."""
    family, result = read_saved(path, KIND)
    if result.answer is None or result.details is None:
        raise RefusedError(f"{path}: there is no plan in this result (solve a question that has one)")
    question: ServingQuestion = read_again(result.question, KIND, path.parent)
    if question.model is None:
        raise RefusedError(f"{path}: the workers of this question are stated, and nothing is known of what they run")
    if question.chip is not None:
        raise RefusedError(f"{path}: the chip of this plan is not built, and no engine runs on it")
    report = check(family, result, path.parent)
    if not report.accepted:
        raise RefusedError(f"{path}: this result is not sound: {report.refused[0]} (see `crossopt check`)")
    if form == "replicas":
        return f"{json.dumps(_replicas(result.answer.workers, result.details), indent=2)}\n"
    engine = question.file.engine if form == "dynamo" else form
    if form == "dynamo" and engine not in _DYNAMO:
        raise RefusedError(f"{path}: no manifest is written for {engine} (solve with engine: vllm or sglang, or export --as {engine})")
    lines = [f"# {result.question['name']}: {result.details.rate:.4g} requests/s on {result.details.devices} devices"]
    if engine != question.file.engine and (engine, question.file.engine) != ("vllm", "eager"):
        lines.append(f"# priced for {question.file.engine}: other engines differ (solve with engine: {engine})")
    shapes = [copies.shape for copies in result.answer.workers]
    if form == "dynamo":
        lines += [f"# {text}" for text in (*_remarks_of_shapes(engine, question, shapes), *_remarks_of_manifests(question, shapes))]
        return "\n".join([*lines, *_manifest(question, result.answer.workers)]) + "\n"
    lines += [f"# {text}" for text in (*_remarks(engine, question, shapes), *_remarks_of_shapes(engine, question, shapes))]
    for index, copies in enumerate(result.answer.workers):
        lines += ["", f"# {copies_text(copies)}", command_of(engine, question, copies.shape, index, shapes)]
    if any(shape.classes for shape in shapes):
        lines += ["", "# a router in front sends each class of requests to its own workers"]
    if any(shape.role != "both" for shape in shapes):
        lines += ["", *_front(engine, result.answer.workers)]
    return "\n".join(lines) + "\n"


def _replicas(workers: Sequence[Copies], figures: ServingFigures) -> list[dict[str, Any]]:
    """Replicas of each shape, with the devices of one."""
    return [
        {"replicas": copies.count, "devices": offer.devices, **{name: value for name, value in asdict(copies.shape).items() if value != ""}}
        for copies, offer in zip(workers, figures.offers, strict=True)
    ]


# A plan as a manifest of NVIDIA Dynamo: https://docs.nvidia.com/dynamo, DynamoGraphDeployment.

_DYNAMO: Final[Mapping[str, str]] = {"vllm": "--model", "sglang": "--model-path"}
"""How workers of Dynamo take the model; their other options are the engine's own."""
_OWN: Final = ("--port", "--disaggregation-bootstrap-port")
"""Options that Dynamo sets itself."""


def _manifest(question: ServingQuestion, workers: Sequence[Copies]) -> Iterator[str]:
    """Lines of YAML: a frontend, and a component of so many replicas for each shape."""
    engine = question.file.engine
    yield from ("apiVersion: nvidia.com/v1beta1", "kind: DynamoGraphDeployment", "metadata:", "  name: crossopt", "spec:", "  components:")
    router = " --router-mode kv --no-router-kv-events" if any(item.cached for item in question.classes) else ""
    yield from _component("Frontend", "frontend", 1, None, engine, f"python3 -m dynamo.frontend --http-port 8000{router}")
    for index, copies in enumerate(workers):
        shape, options = copies.shape, _options_of(engine, question, copies.shape, index, [own.shape for own in workers])
        words = [f"{option} {quote(value)}" if value else option for option, value in options if option not in _OWN]
        if engine == "vllm" and shape.role != "both":
            words.append(f"--disaggregation-mode {shape.role}")
        name = f"{ {'both': 'Worker', 'prefill': 'Prefill', 'decode': 'Decode'}[shape.role] }{index + 1}"
        start = f"python3 -m dynamo.{engine} {_DYNAMO[engine]} {quote(_checkpoint(engine, question, shape))}"
        yield from _component(name, "worker", copies.count, shape.tensor * shape.pipeline, engine, " ".join([start, *words]))


def _component(name: str, kind: str, replicas: int, devices: int | None, engine: str, command: str) -> Iterator[str]:
    yield from (f"  - name: {name}", f"    type: {kind}", f"    replicas: {replicas}")
    yield from ("    podTemplate:", "      spec:", "        containers:", "        - name: main")
    yield f"          image: nvcr.io/nvidia/ai-dynamo/{engine}-runtime:VERSION"
    yield from ('          command: ["/bin/sh", "-c"]', f"          args: [{json.dumps(command)}]")
    if devices is not None:
        yield from ("          resources:", "            limits:", f'              nvidia.com/gpu: "{devices}"')


def _remarks_of_manifests(question: ServingQuestion, shapes: Sequence[Shape]) -> Iterator[str]:
    """What a manifest leaves to the reader."""
    yield "VERSION is the release of Dynamo's images, 1.3 or later; probes, secrets of the hub and volumes of the model are yours to add"
    if question.file.hub is None and question.file.config is None:
        yield f"{question.file.model} is the name in the registry: put that on the hub, or a folder, in its place"
    if any(shape.classes for shape in shapes):
        yield "a router in front sends each class of requests to its own workers"
    if len({shape.device for shape in shapes}) > 1:
        yield "nodeSelector: workers are of several kinds of devices (see --as replicas)"


def command_of(engine: str, question: ServingQuestion, shape: Shape, place: int, shapes: Sequence[Shape] = ()) -> str:
    """One command line, an option a line, of the first copy of a shape on a host, in a plan of these shapes."""
    start, options = _COMMANDS[engine].start, (("--port", str(_port(engine, place))), *_options_of(engine, question, shape, place, shapes))
    rows = [f"{option} {quote(value)}" if value else option for option, value in options]
    side = f"VLLM_NIXL_SIDE_CHANNEL_PORT={_SIDE + _APART * place} " if engine == "vllm" and shape.role != "both" else ""
    file = _written(_settings_name(place), _trtllm_settings(question, shape)) if engine == "trtllm" else ""
    return file + " \\\n  ".join([f"{side}{start} {quote(_checkpoint(engine, question, shape))}", *rows])


def _options_of(engine: str, question: ServingQuestion, shape: Shape, place: int, shapes: Sequence[Shape]) -> Flags:
    """Options of a worker without its port."""
    yield from _COMMANDS[engine].flags(question, shape, place)
    if engine == "vllm" and shape.role != "both":
        yield from _transfer(question, [own for own in shapes if own.role != "both"])
    if (context := _context(question)) is not None:
        yield _COMMANDS[engine].length, str(context)


def _transfer(question: ServingQuestion, shapes: Sequence[Shape]) -> Flags:
    """https://docs.vllm.ai, the guide of NixlConnector, which compares names of models and attention backends of both sides."""
    settings: dict[str, object] = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
    if len({_checkpoint("vllm", question, shape) for shape in shapes}) > 1:
        settings["kv_connector_extra_config"] = {"enforce_handshake_compat": False}
    yield "--kv-transfer-config", json.dumps(settings)
    if backend := _backend(question, shapes):
        yield "--attention-backend", backend


def _backend(question: ServingQuestion, shapes: Sequence[Shape]) -> str:
    """The attention backend of vLLM that Blackwell and earlier devices have in common, where caches pass between them."""
    if len({is_blackwell(question.kind_of(shape.device).kernels) for shape in shapes}) < 2:
        return ""
    return "FLASHMLA" if question.model is not None and question.model.latent else "FLASHINFER"


def _written(name: str, lines: Iterable[str]) -> str:
    """A command of the shell that writes a file."""
    return "\n".join([f"cat > {name} <<'END'", *lines, "END", ""])


def _name(question: ServingQuestion) -> str:
    """The model as engines load it: its name on the hub, the folder of its config.json, or its name in the registry."""
    file = question.file
    return file.hub or (str(Path(file.config).parent) if file.config else file.model) or "MODEL"


def _checkpoint(engine: str, question: ServingQuestion, shape: Shape) -> str:
    """The model that a worker loads: what is named, or a name to fill in where that has weights in another format."""
    name, form = _name(question), shape.weights
    stated = question.stated or ("fp8-block" if question.file.model in BLOCK_SCALED_ALONE else "bf16")
    if question.file.config or form == stated or (stated, form) == ("fp4", "int4") or _quantizes(engine, question, shape):
        return name
    if name.startswith("Qwen/Qwen3") and (stated, form) == ("bf16", "fp8-block"):
        return f"{name}-FP8"
    return f"MODEL_{form.upper().replace('-', '_')}"


def _quantizes(engine: str, question: ServingQuestion, shape: Shape) -> bool:
    """Whether the engine makes 8-bit weights of a checkpoint in 16 bits, which it holds at first."""
    if engine == "trtllm" or shape.weights != "fp8" or question.stated is not None:
        return False
    return 2.0 * priced(question, [shape])[0].weights <= question.kind_of(shape.device).usable_memory


def _context(question: ServingQuestion) -> int | None:
    return stated_context(question.file, question.model) if question.model is not None else None


def _port(engine: str, place: int) -> int:
    """Of the first copy on a host of a shape by its place in the plan."""
    return _PORTS[engine] + _APART * place


def _remarks(engine: str, question: ServingQuestion, shapes: Sequence[Shape]) -> Iterator[str]:
    """What the command lines leave to the reader."""
    yield "copies on one host count all ports up from those below, and take devices of their own (CUDA_VISIBLE_DEVICES)"
    if engine == "vllm" and (ranks := max((shape.data for shape in shapes if shape.role != "both"), default=1)) > 1:
        yield f"VLLM_NIXL_SIDE_CHANNEL_PORT is that of the first data-parallel rank: count it up by {ranks}"
    if question.file.hub is None and question.file.config is None:
        yield f"{question.file.model} is the name in the registry: put that on the hub, or a folder, in its place"
    if _context(question) is None:
        yield f"{_COMMANDS[engine].length} is left out, as no context is stated (serve --context 40960): the engine takes the model's own"


def _remarks_of_shapes(engine: str, question: ServingQuestion, shapes: Sequence[Shape]) -> Iterator[str]:
    """What drafts, pipelines, and groups with attention of their own need beside the options."""
    drafted, data = max(shape.drafted for shape in shapes), [shape for shape in shapes if shape.data > 1]
    if drafted and not (question.model and question.model.prediction_layers):
        yield "DRAFT_MODEL is the name of an EAGLE-3 draft model for this model"
    yield from dict.fromkeys(f"these workers do not start: {reason}" for shape in shapes if (reason := refusal(question, shape, engine)))
    if data and engine == "vllm":
        yield "--max-num-seqs counts the requests of each data-parallel rank"
    if engine == "trtllm":
        yield "options are those of TensorRT-LLM 1.3; --max_batch_size counts the requests of each rank with attention of its own"
    if engine == "trtllm" and any(shape.data != shape.tensor for shape in data):
        yield "enable_attention_dp gives each rank a group of its own: other groups are not launched (solve with choices.data = tensor)"
    if any(_quantizes(engine, question, shape) for shape in shapes):
        yield "--quantization fp8 is for a checkpoint in 16 bits: name one with 8-bit weights without it, as some engines refuse both"
        yield "a checkpoint with scales of blocks (weight_block_size) keeps them (solve with weights: fp8-block)"
    if any(item.cached for item in question.classes):
        yield "cached tokens of prompts are found on every worker: send equal prefixes to the same workers where not all hold them"
    for name, form in dict.fromkeys((_checkpoint(engine, question, shape), shape.weights) for shape in shapes):
        if name.startswith("MODEL_"):
            yield f"{name} is a checkpoint of {_name(question)} with {form} weights, which {engine} takes as it is"
        elif question.file.config and form != "bf16" and (engine == "trtllm" or form != "fp8"):
            yield f"{form} weights: the model must be a checkpoint in that format, which {engine} takes as it is"
    yield from _remarks_of_transfers(engine, question, shapes)
    if engine == "trtllm" and any(shape.cache == "bf16" for shape in shapes):
        yield "bf16 cache: a checkpoint whose hf_quant_config.json has a kv_cache_quant_algo gets that format instead"


def _remarks_of_transfers(engine: str, question: ServingQuestion, shapes: Sequence[Shape]) -> Iterator[str]:
    """What prefill and decode workers need to hand caches over."""
    parts = [shape for shape in shapes if shape.role != "both"]
    if len({_checkpoint(engine, question, shape) for shape in parts}) > 1:
        off = ", whose handshake compares names of models (enforce_handshake_compat: false)" if engine == "vllm" else ""
        yield f"prefill and decode workers load different checkpoints{off}: compare the quality of answers with that of one format"
    if engine == "vllm" and (backend := _backend(question, parts)):
        yield f"--attention-backend {backend}: one on both sides is needed; defaults are priced (TRITON_ATTN where it refuses the model)"
    if len({shape.tensor // shape.data for shape in parts}) > 1 and not (engine == "sglang" and question.model and question.model.latent):
        known = {"vllm": "see whether the compatibility matrix of NixlConnector has them", "sglang": "crashes under load are known"}
        if engine in known:
            yield f"tensor degrees of prefill and decode workers differ: {known[engine]} for this model"


def _front(engine: str, workers: Sequence[Copies]) -> Iterator[str]:
    """Lines about what stands in front of prefill and decode workers."""
    yield from (f"# {text}" for text in _router(engine, [copies.shape for copies in workers]))
    if engine == "trtllm":
        yield _written("disaggregated.yaml", _disaggregated(workers)) + "trtllm-serve disaggregated -c disaggregated.yaml"


def _router(engine: str, shapes: Sequence[Shape]) -> Iterator[str]:
    """What prefill and decode workers need in front of them."""
    yield "a router in front sends each prompt to a prefill worker, and its cache to a decode worker with few requests for its slots"
    ports = {shape.role: _port(engine, index) for index, shape in reversed(list(enumerate(shapes)))}
    match engine:
        case "vllm":
            yield "such as that of vLLM's NixlConnector guide, or llm-d; across hosts VLLM_NIXL_SIDE_CHANNEL_HOST is needed (own address)"
        case "sglang":
            prefill, decode = f"--prefill http://HOST:{ports['prefill']} {_BOOTSTRAP}", f"--decode http://HOST:{ports['decode']}"
            yield "with --prefill and --decode again for every worker:"
            yield f"python -m sglang_router.launch_router --pd-disaggregation {prefill} {decode}"
        case _:
            yield "in disaggregated.yaml below each HOST is that of one copy, with its port"


_PORTS: Final = {"vllm": 8100, "sglang": 30000, "trtllm": 8100}
_APART, _SIDE, _BOOTSTRAP = 100, 5600, 8998
"""Between the ports of shapes; of vLLM's side channel, and of SGLang's bootstrap, by their defaults."""


def _share(question: ServingQuestion) -> str:
    return f"{ENGINES[question.file.engine].memory if question.file.memory is None else question.file.memory:g}"


def _sequences(question: ServingQuestion, shape: Shape) -> str:
    """Of a group with attention of its own, whose scheduler takes them."""
    del question
    return str(shape.batch // shape.data)


def _draft_of(question: ServingQuestion, said: dict[str, object]) -> dict[str, object]:
    """The draft model of vLLM: layers of the network's own for multi-token prediction, or one that is named by hand."""
    if question.model is not None and question.model.prediction_layers:
        return {"method": "mtp", **said}
    return {"method": "eagle3", "model": "DRAFT_MODEL", **said}


def _vllm(question: ServingQuestion, shape: Shape, place: int) -> Flags:
    """https://docs.vllm.ai, engine arguments and the guide of NixlConnector."""
    del place
    yield "--tensor-parallel-size", str(shape.tensor // shape.data)
    if shape.data > 1:
        yield "--data-parallel-size", str(shape.data)
    if shape.pipeline > 1:
        yield "--pipeline-parallel-size", str(shape.pipeline)
    if shape.expert > 1:
        yield "--enable-expert-parallel", ""
    yield "--max-num-seqs", _sequences(question, shape)
    if shape.drafted:
        yield "--speculative-config", json.dumps(_draft_of(question, {"num_speculative_tokens": shape.drafted}))
    yield "--max-num-batched-tokens", str(shape.chunk)
    yield "--gpu-memory-utilization", _share(question)
    if _quantizes("vllm", question, shape):
        yield "--quantization", "fp8"
    yield "--kv-cache-dtype", "fp8" if shape.cache == "fp8" else "auto"
    if question.file.engine == "eager":
        yield "--enforce-eager", ""


def _sglang(question: ServingQuestion, shape: Shape, place: int) -> Flags:
    """https://docs.sglang.io, server arguments and disaggregation."""
    yield "--host", "0.0.0.0"
    yield "--tp-size", str(shape.tensor)
    if shape.pipeline > 1:
        yield "--pp-size", str(shape.pipeline)
    if shape.expert > 1:
        yield "--ep-size", str(shape.expert)
    if shape.data > 1:
        yield "--dp-size", str(shape.data)
        yield "--enable-dp-attention", ""
    if shape.role == "prefill":  # a prompt whose cache is being sent still counts as running
        yield "--prefill-max-requests", _sequences(question, shape)
    else:
        yield "--max-running-requests", str(shape.batch)
        yield "--cuda-graph-max-bs", _sequences(question, shape)  # by default graphs end at 160 or 256 requests on some devices
    if shape.drafted:
        own = question.model is not None and question.model.prediction_layers > 0
        yield "--speculative-algorithm", "EAGLE" if own else "EAGLE3"
        if not own:
            yield "--speculative-draft-model-path", "DRAFT_MODEL"
        yield "--speculative-num-steps", str(shape.drafted)
        yield "--speculative-eagle-topk", "1"
        yield "--speculative-num-draft-tokens", str(shape.drafted + 1)
    yield "--chunked-prefill-size", str(shape.chunk * shape.data)  # the engine divides it by --dp-size
    yield "--mem-fraction-static", _share(question)
    if _quantizes("sglang", question, shape):
        yield "--quantization", "fp8"
    yield "--kv-cache-dtype", "fp8_e4m3" if shape.cache == "fp8" else "auto"
    if shape.role != "both":
        yield "--disaggregation-mode", shape.role
        yield "--disaggregation-transfer-backend", "nixl"
    if shape.role == "prefill":
        yield "--disaggregation-bootstrap-port", str(_BOOTSTRAP + _APART * place)


def _trtllm(question: ServingQuestion, shape: Shape, place: int) -> Flags:
    """https://nvidia.github.io/TensorRT-LLM, commands of trtllm-serve, 1.3."""
    yield "--host", "0.0.0.0"
    yield "--tp_size", str(shape.tensor)
    if shape.pipeline > 1:
        yield "--pp_size", str(shape.pipeline)
    if shape.expert > 1:
        yield "--ep_size", str(shape.expert)
    yield "--max_batch_size", _sequences(question, shape)
    yield "--max_num_tokens", str(shape.chunk)
    yield "--extra_llm_api_options", _settings_name(place)


def _settings_name(place: int) -> str:
    """The file with what trtllm-serve has no options for."""
    return f"worker{place + 1}.yaml"


def _trtllm_settings(question: ServingQuestion, shape: Shape) -> Iterator[str]:
    """https://nvidia.github.io/TensorRT-LLM, LLM API of 1.3 (TorchLlmArgs, KvCacheConfig) and its guide of disaggregated serving."""
    cache = "fp8" if shape.cache == "fp8" else "auto"
    yield f"kv_cache_config: {{dtype: {cache}, free_gpu_memory_fraction: {_share(question)}}}"
    if shape.role != "decode":
        yield "enable_chunked_prefill: true"
    if shape.role != "prefill":  # by default graphs end at 128 requests, and are not for all numbers before
        yield f"cuda_graph_config: {{enable_padding: true, max_batch_size: {_sequences(question, shape)}}}"
    if shape.data > 1:
        yield "enable_attention_dp: true"
    if shape.drafted:
        own = question.model is not None and question.model.prediction_layers > 0
        kind = "MTP, num_nextn_predict_layers" if own else "Eagle3, speculative_model: DRAFT_MODEL, max_draft_len"
        yield f"speculative_config: {{decoding_type: {kind}: {shape.drafted}}}"
    if shape.role == "prefill":
        yield "disable_overlap_scheduler: true"
    if shape.role != "both":
        yield f"cache_transceiver_config: {{backend: UCX, max_tokens_in_buffer: {question.input}}}"


def _disaggregated(workers: Sequence[Copies]) -> Iterator[str]:
    """The server of TensorRT-LLM in front of prefill and decode workers."""
    yield from ("hostname: 0.0.0.0", "port: 8000", "backend: pytorch")
    for name, role in (("context_servers", "prefill"), ("generation_servers", "decode")):
        places = [(index, copies.count) for index, copies in enumerate(workers) if copies.shape.role == role]
        yield from (f"{name}:", f"  num_instances: {sum(count for _, count in places)}", "  urls:")
        yield from (f"  - HOST:{_port('trtllm', index)}" for index, count in places for _ in range(count))


class _Command(NamedTuple):
    """How the command of an engine begins, its options, and the one of the longest context."""

    start: str
    flags: Callable[[ServingQuestion, Shape, int], Flags]
    length: str


_COMMANDS: Final[Mapping[str, _Command]] = {
    "vllm": _Command("vllm serve", _vllm, "--max-model-len"),
    "sglang": _Command("python -m sglang.launch_server --model-path", _sglang, "--context-length"),
    "trtllm": _Command("trtllm-serve", _trtllm, "--max_seq_len"),
}
