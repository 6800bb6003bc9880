"""The command `serve`, a serving question in one line, and the command lines of engines that launch a plan."""

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import Final

from crossopt.instances.catalogue.engines import ENGINES
from crossopt.instances.codesign.short import groups_in, model_named
from crossopt.instances.errors import InstanceError, RefusedError
from crossopt.instances.files.saved import write_whole
from crossopt.instances.question import read_again, read_given
from crossopt.instances.serving.question import ServingQuestion
from crossopt.instances.serving.workers import Shape
from crossopt.reports.commands.asking import read_saved
from crossopt.reports.commands.console import check_target, code_of, seconds_of, usage
from crossopt.reports.commands.progress import progress_on
from crossopt.reports.render.width import fitted
from crossopt.reports.sheets.serving import copies_text
from crossopt.reports.shown import text_of
from crossopt.solvers.answer import Limits, to_text
from crossopt.solvers.checking import check, solve_and_verify
from crossopt.solvers.family import family_of

KIND: Final = "serving"
_OPTIONS: Final = {
    "model": "MODEL",
    "config": "MODEL",
    "hardware": "--gpus",
    "devices": "--gpus",
    "requests.input": "--input",
    "requests.output": "--output",
    "requests.rate": "--rate",
    "requests": "--input",
    "limits.ttft": "--ttft",
    "limits.tpot": "--tpot",
    "engine": "--engine",
    "choices.weights": "--weights",
    "choices.cache": "--cache",
    "choices.mode": "--mode",
    "objective": "--minimize",
    "rent": "--rent",
}
"""Options by the keys of the question that they write."""


def serve(options: Namespace) -> int:
    """Answer, print and write; the exit code is that of `solve`."""
    for option, path in (("--save", options.save), ("--out", options.out)):
        check_target(path, option)
    try:
        text = "\n".join(_lines(options)) + "\n"
    except ValueError as error:
        usage(str(error))
    limits = Limits(seconds_of(options.time_limit) if options.time_limit else 300.0)
    try:
        question = read_given(text, KIND)
    except InstanceError as error:
        usage("; ".join(dict.fromkeys(f"{_OPTIONS.get(fault.path, fault.path)}: {fault.message}" for fault in error.faults)))
    with progress_on(sys.stderr, "") as watch:
        result = solve_and_verify(family_of(KIND), question, "auto", limits, watch)
    if options.save is not None:
        write_whole(options.save, text)
    if options.out is not None:
        write_whole(options.out, to_text(result))
    sys.stdout.write(fitted(text_of(KIND, question, result, options.verbose)))
    return code_of(result.status, unproved=False)


def _lines(options: Namespace) -> Iterator[str]:
    """The question in YAML; a ValueError in a sentence where an option makes no sense."""
    groups = groups_in(options.gpus)
    if len(groups) != 1:
        raise ValueError("--gpus: one kind of device serves (name one, such as 8xh100)")
    key, value = model_named(options.model)
    requests = {"input": options.input, "output": options.output} | ({"rate": options.rate} if options.rate is not None else {})
    levels = {name: getattr(options, name) for name in ("ttft", "tpot") if getattr(options, name)}
    choices = {name: _listed(getattr(options, name)) for name in ("weights", "cache", "mode") if getattr(options, name)}
    yield f"kind: {KIND}"
    yield f"name: {json.dumps(f'{Path(value).stem} on {groups[0].count} {groups[0].device}')}"
    yield f"{key}: {json.dumps(str(Path(value).resolve()) if key == 'config' else value)}"
    yield f"hardware: {groups[0].device}"
    yield f"devices: {groups[0].count}"
    yield f"requests: {json.dumps(requests)}"
    yield f"engine: {json.dumps(options.engine)}"
    if levels:
        yield f"limits: {json.dumps(levels)}"
    if choices:
        yield f"choices: {json.dumps(choices)}"
    if options.minimize:
        yield f"objective: {json.dumps(options.minimize)}"
    if options.rent:
        yield f"rent: {json.dumps(options.rent if options.rent.strip()[-1:].isalpha() else f'{options.rent} USD')}"


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


# The command lines that launch a plan.

Flags = Iterator[tuple[str, str]]


def export_flags(path: Path, engine: str) -> str:
    """The command line of each worker of a saved plan."""
    family, result = read_saved(path, KIND)
    if result.answer is None or result.details is None:
        raise RefusedError(f"{path}: there is no plan in this result (solve a question that has one)")
    question: ServingQuestion = read_again(result.question, KIND, path.parent)
    if question.model is None:
        raise RefusedError(f"{path}: the workers of this question are stated, and nothing is known of what they run")
    report = check(family, result, path.parent)
    if not report.accepted:
        raise RefusedError(f"{path}: this result is not sound: {report.refused[0]} (see `crossopt check`)")
    lines = [f"# {result.question['name']}: {result.details.rate:.4g} requests/s on {result.details.devices} devices"]
    if engine != question.file.engine and (engine, question.file.engine) != ("vllm", "eager"):
        lines.append(f"# priced for {question.file.engine}: other engines differ (solve with engine: {engine})")
    for copies in result.answer.workers:
        lines += ["", f"# {copies_text(copies)}", command_of(engine, question, copies.shape)]
    if len(result.answer.workers) > 1:
        lines += ["", "# a router in front sends each prompt to a prefill worker and its cache to a decode worker"]
    return "\n".join(lines) + "\n"


def command_of(engine: str, question: ServingQuestion, shape: Shape) -> str:
    """One command line, an option a line."""
    start, flags = _COMMANDS[engine]
    name = question.file.model or question.file.config or "MODEL"
    rows = [f"{option} {quote(value)}".rstrip() if value else option for option, value in flags(question, shape)]
    return " \\\n  ".join([f"{start} {quote(name)}", *rows])


def _length(question: ServingQuestion) -> str:
    return str(question.file.requests.input + question.file.requests.output)


def _share(question: ServingQuestion) -> str:
    return f"{ENGINES[question.file.engine].memory if question.file.memory is None else question.file.memory:g}"


def _sequences(question: ServingQuestion, shape: Shape) -> str:
    del question
    return str(shape.batch)


def _vllm(question: ServingQuestion, shape: Shape) -> Flags:
    """https://docs.vllm.ai, engine arguments."""
    yield "--tensor-parallel-size", str(shape.tensor)
    if shape.pipeline > 1:
        yield "--pipeline-parallel-size", str(shape.pipeline)
    if shape.expert > 1:
        yield "--enable-expert-parallel", ""
    yield "--max-num-seqs", _sequences(question, shape)
    yield "--max-num-batched-tokens", str(shape.chunk)
    yield "--max-model-len", _length(question)
    yield "--gpu-memory-utilization", _share(question)
    if shape.weights in ("fp8", "fp8-block"):
        yield "--quantization", "fp8"
    yield "--kv-cache-dtype", "fp8" if shape.cache == "fp8" else "auto"
    if question.file.engine == "eager":
        yield "--enforce-eager", ""
    if shape.role != "both":
        yield "--kv-transfer-config", json.dumps({"kv_connector": "NixlConnector", "kv_role": "kv_both"})


def _sglang(question: ServingQuestion, shape: Shape) -> Flags:
    """https://docs.sglang.io, server arguments."""
    yield "--tp-size", str(shape.tensor)
    if shape.pipeline > 1:
        yield "--pp-size", str(shape.pipeline)
    if shape.expert > 1:
        yield "--ep-size", str(shape.expert)
    yield "--max-running-requests", _sequences(question, shape)
    yield "--chunked-prefill-size", str(shape.chunk)
    yield "--context-length", _length(question)
    yield "--mem-fraction-static", _share(question)
    if shape.weights in ("fp8", "fp8-block"):
        yield "--quantization", "fp8"
    yield "--kv-cache-dtype", "fp8_e4m3" if shape.cache == "fp8" else "auto"
    if shape.role != "both":
        yield "--disaggregation-mode", shape.role


def _trtllm(question: ServingQuestion, shape: Shape) -> Flags:
    """https://nvidia.github.io/TensorRT-LLM, commands of trtllm-serve."""
    yield "--tp_size", str(shape.tensor)
    if shape.pipeline > 1:
        yield "--pp_size", str(shape.pipeline)
    if shape.expert > 1:
        yield "--ep_size", str(shape.expert)
    yield "--max_batch_size", _sequences(question, shape)
    yield "--max_num_tokens", str(shape.chunk)
    yield "--max_seq_len", _length(question)
    yield "--kv_cache_free_gpu_memory_fraction", _share(question)


_COMMANDS: Final[Mapping[str, tuple[str, Callable[[ServingQuestion, Shape], Flags]]]] = {
    "vllm": ("vllm serve", _vllm),
    "sglang": ("python -m sglang.launch_server --model-path", _sglang),
    "trtllm": ("trtllm-serve", _trtllm),
}
"""How the command of each engine begins, and its options."""
