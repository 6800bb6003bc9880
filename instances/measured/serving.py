"""Measured serving: each row of a file as a worker with its requests, or the reason why it cannot be priced.

The columns are those of the runs of ai-dynamo/aiconfigurator: one setting a row, with the mean time to first token and per output token.
A table of whole requests states `latency_s` in their place. A row is rejected, never dropped: the reason is kept and counted.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.engines import BLOCK_SCALED, ENGINES, MOST_RANKS, PEAKS, CacheFormat, EngineName, WeightFormat
from crossopt.instances.catalogue.registry import device, model, names
from crossopt.instances.files.tables import Cells, columns_of, count, number, read_table
from crossopt.instances.files.units import quoted
from crossopt.instances.measured.runs import gpu_named

REQUIRED: Final = ("model", "gpu", "tp", "isl", "osl", "batch")
TIMES: Final = ("tpot_ms", "latency_s")
"""Columns of times, one of which is needed."""
_FURTHER: Final = (
    *("id", "checkpoint", "moe", "gpus", "engine", "engine_version", "mode", "precision", "weights", "expert_weights"),
    *(
        "pp",
        "dp",
        "moe_tp",
        "moe_ep",
        "concurrency",
        "cache",
        "ttft_ms",
        "tpot_ms",
        "latency_s",
        "date",
        "flag",
        "p_workers",
        "d_workers",
        "recv_interval",
    ),
    *(f"{side}_{name}" for side in "pd" for name in ("batch", "tp", "pp", "dp", "moe_tp", "moe_ep")),
)
_ALIASES: Final = {
    "deepseekr1": "deepseek-v3",
    "kimik2.5": "kimi-k2",
    "minimaxm2.1": "minimax-m2",
    "minimaxm2.5": "minimax-m2",
    "deepseekv3.1": "deepseek-v3",
    "llama3.170b": "llama3-70b",
    "llama3.370b": "llama3-70b",
    "llama3.1405b": "llama3-405b",
}
"""Models of the same shapes as one of the registry."""
_WEIGHTS: Final[dict[str, WeightFormat]] = {
    "bf16": "bf16",
    "bfloat16": "bf16",
    "fp16": "bf16",
    "float16": "bf16",
    "": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8-block",
    "fp8-block": "fp8-block",
    "fp4": "fp4",
    "nvfp4": "fp4",
    "mxfp4": "fp4",
    "int8": "int8",
    "int4": "int4",
}
_REJECTED: Final = {
    "kv8": "weights and cache of all requests in flight do not fit, so that requests wait",
    "queue": "the time to first token is that of a queue",
    "copies": "requests in flight are those of several copies, of which the number is not stated",
    "tp": "the tensor degree is beyond a node",
    "shape": "degrees of experts differ from those of the rest",
}
"""Flags of rows that are not what they seem."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy of the model."""

    tensor: int
    pipeline: int
    expert: int
    batch: int
    data: int
    waiting: int = 0
    """Requests in flight for each group of workers that only prefill, beside the one that is computed."""


@dataclass(frozen=True, slots=True)
class Served:
    """One measured setting."""

    line: int
    model: str
    """As the file names it."""
    shape: Transformer
    gpu: str
    engine: EngineName
    version: str
    weights: WeightFormat
    cache: CacheFormat
    tensor: int
    pipeline: int
    expert: int
    batch: int
    input: int
    output: int
    output_time: float | None
    """Seconds per output token."""
    first_token: float | None
    whole: float | None
    """Seconds of a whole request."""
    data: int = 1
    """Groups of ranks with attention of their own sequences; tensor and batch are those of all."""
    polled: int = 1
    """Steps after which the scheduler takes in new requests."""
    prefill: Copy | None = None
    """Where prefill and decode are apart, the worker that prefills; the figures above are of the one that decodes."""

    @property
    def queued(self) -> bool:
        """Whether queues rule the time to first token: on average more than one request of a group waits for it.

        By Little's law that number is the requests in flight by the share of their time before the first token. Prefills follow each other,
        so that with more than one some requests wait for others.
        """
        if self.first_token is None or self.output_time is None:
            return False
        flight = self.batch / self.data if self.prefill is None else self.prefill.waiting + 1
        return flight * self.first_token > self.first_token + (self.output - 1) * self.output_time

    @property
    def group(self) -> tuple[object, ...]:
        """Rows of one group differ in their split and batch alone."""
        apart = self.prefill is not None
        return self.model, self.gpu, self.engine, self.version, self.weights, self.input, self.output, apart


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A rejected row and the reason."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class ServedRuns:
    """All rows of a file in order."""

    measured: tuple[Served, ...]
    rejected: tuple[RejectedRow, ...]


class _RejectedError(Exception):
    """Raised to reject a row."""


def is_serving(path: str | Path) -> bool:
    """Whether a file holds measured serving, by its columns."""
    columns = set(columns_of(path))
    return not columns.isdisjoint(("isl", "osl")) and len(columns.intersection(REQUIRED)) >= len(REQUIRED) - 1


def read_served(path: str | Path) -> ServedRuns:
    """The rows of a CSV file; an InstanceError if it is no table of measured serving."""
    needed = (*REQUIRED, *(() if set(TIMES).intersection(columns_of(path)) else TIMES[:1]))
    outcomes = [_outcome(cells) for cells in read_table(path, needed, {*REQUIRED, *_FURTHER}, "measured setting").lines]
    return ServedRuns(
        tuple(outcome for outcome in outcomes if isinstance(outcome, Served)),
        tuple(outcome for outcome in outcomes if isinstance(outcome, RejectedRow)),
    )


def _outcome(cells: Cells) -> Served | RejectedRow:
    try:
        if cells.fault:
            raise _RejectedError(cells.fault)
        return _served(cells)
    except (_RejectedError, ValueError) as error:
        return RejectedRow(cells.line, str(error))


def _served(cells: Cells) -> Served:
    given, faults = cells.given, list[str]()
    if (mode := given.get("mode", "") or "together") not in ("together", "apart"):
        raise _RejectedError(f"mode: {quoted(mode)} is unknown (together or apart)")
    for flag in given.get("flag", "").split("+"):
        if flag in _REJECTED:
            raise _RejectedError(_REJECTED[flag])
    counts = {name: count(given, name, faults) for name in ("isl", "osl")}
    sides = {
        side: {name: count(given, f"{side}{name}", faults) for name in _DEGREES} for side in (("d_", "p_") if mode == "apart" else ("",))
    }
    stated_counts = {name: count(given, name, faults) for name in ("concurrency", "d_workers", "p_workers", "recv_interval")}
    if mode == "apart":
        _fill_batches(sides, stated_counts)
    times = {name: number(given, name, faults) for name in ("tpot_ms", "ttft_ms", "latency_s")}
    if faults:
        raise _RejectedError("; ".join(faults))
    stated = {**counts, **{f"{side}{name}": own[name] for side, own in sides.items() for name in ("tp", "batch")}}
    if missing := [
        name for name in ("tp", "isl", "osl", "batch", "d_tp", "d_batch", "p_tp", "p_batch") if name in stated and stated[name] is None
    ]:
        raise _RejectedError(f"not stated: {', '.join(missing)}")
    if times["tpot_ms"] is None and times["latency_s"] is None:
        raise _RejectedError("no time is stated")
    gpu, name, shape = gpu_named(given["gpu"]), given["model"], _shape(given["model"])
    copies = [_copy(own, shape, gpu) for own in sides.values()]
    first = copies[0]
    engine = _one_of(given.get("engine", "") or ("vllm" if times["latency_s"] is None else "eager"), ENGINES, "engine")
    flight = stated_counts["concurrency"] or first.batch
    if mode == "apart" and (workers := stated_counts["p_workers"]):
        copies[1] = replace(copies[1], waiting=max(flight // (workers * copies[1].data) - 1, 0))
    weights = _format(given.get("precision", ""), gpu)
    if weights == "fp8" and _registered(name) in BLOCK_SCALED:
        weights = "fp8-block"
    return Served(
        line=cells.line,
        model=name,
        shape=shape,
        gpu=gpu,
        engine=engine,
        version=given.get("engine_version", ""),
        weights=weights,
        cache=_cache(given.get("cache", ""), engine, weights, given.get("precision", "")),
        tensor=first.tensor,
        pipeline=first.pipeline,
        expert=first.expert,
        batch=first.batch,
        input=counts["isl"] or 1,
        output=counts["osl"] or 1,
        output_time=None if times["tpot_ms"] is None else times["tpot_ms"] * 1e-3,
        first_token=None if times["ttft_ms"] is None else times["ttft_ms"] * 1e-3,
        whole=times["latency_s"],
        data=first.data,
        polled=stated_counts["recv_interval"] or _polled(engine, name, gpu, flight),
        prefill=copies[1] if mode == "apart" else None,
    )


def _polled(engine: EngineName, name: str, gpu: str, flight: int) -> int:
    """Steps between the scheduler's polls for requests; of public runs that do not state it, by the scripts that launched them.

    SGLang served DeepSeek on B200 with `--scheduler-recv-interval 10`, and with 30 from 16 requests in flight on
    (SemiAnalysisAI/InferenceX, benchmarks/dsr1_fp8_b200.sh and dsr1_fp4_b200.sh, 1fc5d73).
    """
    if engine == "sglang" and gpu == "b200" and _registered(name) == "deepseek-v3":
        return 10 if flight < 16 else 30
    return 1


def _fill_batches(sides: dict[str, dict[str, int | None]], stated: dict[str, int | None]) -> None:
    """Batches that rows leave out: prompts one by one, and all requests in flight on the workers that decode."""
    flight, workers = stated["concurrency"], stated["d_workers"]
    if sides["d_"]["batch"] is None and flight is not None:
        if workers is None:
            raise _RejectedError("requests in flight are those of several decode workers, of which the number is not stated")
        sides["d_"]["batch"] = -(-flight // (workers * (sides["d_"]["dp"] or 1)))
    sides["p_"]["batch"] = sides["p_"]["batch"] or 1


_DEGREES: Final = ("tp", "batch", "pp", "dp", "moe_ep")


def _copy(counts: dict[str, int | None], shape: Transformer, gpu: str) -> Copy:
    data = counts["dp"] or 1
    if data > 1 and shape.experts == 1:
        raise _RejectedError("data-parallel ranks of a model without experts are copies")
    tensor = (counts["tp"] or 1) * data
    most = min(device(gpu).devices_per_node, MOST_RANKS)
    if tensor > most:
        raise _RejectedError(f"exchanges of more than {most} tensor ranks are not priced")
    if shape.heads % tensor:
        raise _RejectedError(f"{tensor} tensor ranks do not share {shape.heads} heads evenly")
    expert = min(counts["moe_ep"] or 1, tensor) if shape.experts > 1 else 1
    return Copy(tensor, counts["pp"] or 1, expert, (counts["batch"] or 1) * data, data)


@lru_cache(maxsize=64)
def _registered(name: str) -> str | None:
    """The name in the registry of a model with these shapes."""
    plain = _plain(name)
    return _ALIASES.get(plain) or {_plain(known): known for known in names("workloads")}.get(plain)


@lru_cache(maxsize=64)
def _shape(name: str) -> Transformer:
    """The network of the registry that is meant."""
    found = _registered(name)
    shape = model(found).transformer if found else None
    if shape is None:
        raise ValueError(f"{quoted(name)} is no model of the registry (see `crossopt list workloads`)")
    return shape


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", name.casefold().rpartition("/")[2])


def _one_of(word: str, known: Collection[EngineName], what: str) -> EngineName:
    for item in known:
        if word == item:
            return item
    raise ValueError(f"{what}: {quoted(word)} is unknown (one of {', '.join(known)})")


def _format(word: str, gpu: str) -> WeightFormat:
    """The format of the weights; 4 bits are weights alone where the device does not compute in them."""
    plain = word.casefold()
    if plain not in _WEIGHTS:
        raise ValueError(f"precision: {quoted(word)} is unknown (one of {', '.join(filter(None, _WEIGHTS))})")
    found, peaks = _WEIGHTS[plain], device(gpu).peak
    needed = PEAKS.get(found)
    if needed is None or needed in peaks:
        return found
    if found == "fp4":
        return "int4"
    raise ValueError(f"{gpu} does not compute in {found}")


def _cache(word: str, engine: EngineName, weights: WeightFormat, precision: str) -> CacheFormat:
    """The stated format of the cache, else the engine's for checkpoints in 8 and 4 bits."""
    if word:
        return "fp8" if word.casefold().startswith("fp8") else "bf16"
    return ENGINES[engine].cache if weights in PEAKS or precision == "fp4" else "bf16"
