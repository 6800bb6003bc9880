"""Serving plans for workers of DistServe's published fits, beside its own rule: the best worker of each part alone, as often as needed.

    python -m tests.benchmarks.distserve distserve.json

The file holds the fits of LLMServe/DistServe (simdistserve/estimators, commit 82831f1): seconds of prefill and of decode steps of OPT 13B
and 66B on A100 80 GB by tensor degree. A prefill worker takes the greatest rate at which 90 of 100 requests keep the limit of the time to
first token in an M/D/1 queue; a decode worker the largest batch within the limit of the time per output token and its cache.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from math import exp
from pathlib import Path
from typing import Any

from crossopt.instances.question import read_given
from crossopt.solvers.answer import Limits, unwatched
from crossopt.solvers.serving.engines import program
from crossopt.solvers.serving.judge import judge

LEVEL = 0.9
QUESTIONS = (
    ("opt-13b", 512, 64, 10.0, 0.25, 0.1),
    ("opt-13b", 1024, 256, 20.0, 0.4, 0.06),
    ("opt-66b", 512, 128, 5.0, 0.8, 0.15),
    ("opt-66b", 1024, 256, 20.0, 2.5, 0.15),
)
"""Model, tokens in and out, requests a second, and limits in seconds."""


def prefill_seconds(fit: Mapping[str, Any], pipeline: int, tokens: int) -> float:
    """Of one prompt."""
    start, each, square = fit["prefill"]
    return ((start + each * tokens + square * tokens * tokens) / pipeline + pipeline) * 1e-3


def decode_seconds(fit: Mapping[str, Any], pipeline: int, context: float, requests: int) -> float:
    """Of a step."""
    start, each, more = fit["decode_small" if requests < fit["threshold"] else "decode_large"]
    return float((start + each * context * requests + more * requests) / pipeline) * 1e-3


def prefill_rate(service: float, limit: float) -> float:
    """The greatest rate of a worker at which so many wait no longer than the rest of the limit, where waits fall off exponentially."""
    low, high = 0.0, 1.0 / service
    for _ in range(60):
        middle = (low + high) / 2.0
        load = middle * service
        within = service <= limit and load * exp(-2.0 * (1.0 - load) / load * (limit - service) / service) <= 1.0 - LEVEL
        low, high = (middle, high) if within else (low, middle)
    return low


def workers(data: Mapping[str, Any], model: str, asked: tuple[int, int], limits: tuple[float, float]) -> Iterator[str]:
    """Lines of workers of one question."""
    room = {(row[1], row[2]): row[3] for row in data["max_tokens"] if row[0] == model}
    whole = sum(asked)
    for degree, fit in data["fits"]["distserve"][model].items():
        tensor = int(degree)
        if (tensor, 1) not in room:
            continue
        service = prefill_seconds(fit, 1, asked[0])
        rate = prefill_rate(service, limits[0])
        if rate > 1e-6:
            yield f"  p{tensor}: {{role: prefill, devices: {tensor}, rate: {rate:.9f}, ttft: {service * 1e3:.6f} ms}}"
        batches = range(1, room[tensor, 1] // whole + 1)
        steps = {batch: decode_seconds(fit, 1, asked[0] + asked[1] / 2.0, batch) for batch in batches}
        rates = {batch: batch / ((asked[1] - 1) * step) for batch, step in steps.items() if step <= limits[1]}
        if rates:
            best = max(rates, key=lambda batch: rates[batch])
            yield f"  d{tensor}: {{role: decode, devices: {tensor}, rate: {rates[best]:.9f}, tpot: {steps[best] * 1e3:.6f} ms}}"


def main(path: Path) -> None:
    """Print fewest devices by the rules and by the dynamic program."""
    data = json.loads(path.read_text())
    print(f"{'question':<44}{'proved':>8}{'part by part':>14}{'recommended':>13}{'matched':>9}")
    for model, tokens, output, rate, first, token in QUESTIONS:
        lines = list(workers(data, model, (tokens, output), (first, token)))
        text = "kind: serving\nobjective: devices\ndevices: 512\n"
        text += f"requests: {{input: {tokens}, output: {output}, rate: {rate}}}\n"
        question = read_given(text + f"limits: {{ttft: {first} s, tpot: {token} s}}\nworkers:\n" + "\n".join(lines) + "\n", "serving")
        found = program(question, Limits(), unwatched)
        if found.answer is None:
            print(f"{model}: {'; '.join(found.reasons)}")
            continue
        values = {one.name: judge(question, one.answer).value for one in found.baselines if one.answer is not None}
        names = ("part by part", "recommended", "matched")
        shown = [f"{values[name]:.0f}" if name in values else "-" for name in names]
        label = f"{model}, {tokens} in, {output} out, {rate:g}/s"
        print(f"{label:<44}{found.value:>8}{shown[0]:>14}{shown[1]:>13}{shown[2]:>9}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
