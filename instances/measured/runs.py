"""Measured training runs: each row of a file as the workload, machine and plan that the model prices, or the reason why it cannot be one.

A row is rejected, never dropped: the reason is kept and counted. What a row leaves open is filled with what its framework does by
default (`instances.measured.words`) and named in `inferred`, so that a reader can tell what was measured from what was assumed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from crossopt.crossflow.hardware import Cluster, Hardware, at_power
from crossopt.crossflow.parameters import step_flops
from crossopt.crossflow.plan import Overlap, Plan
from crossopt.crossflow.plan_rules import broken_rules
from crossopt.crossflow.workload import Precision, Transformer
from crossopt.instances.catalogue.known_runs import is_inside
from crossopt.instances.catalogue.registry import build_device, device, launched_by
from crossopt.instances.catalogue.uncertain import doubted
from crossopt.instances.files.tables import NOTHING, Cells, count, number, read_table
from crossopt.instances.files.units import quoted
from crossopt.instances.measured.machines import Machine, gpu_named, is_certain, machine
from crossopt.instances.measured.words import (
    OTHER,
    Family,
    Framework,
    experts_of,
    family_of,
    framework_of,
    heads_told,
    is_async,
    is_derived,
    is_eager,
    precision_of,
    scaling_of,
    shard_of,
    trains_adapters,
    zero_of,
)

# --- cells ----------------------------------------------------------------------------------------------------------------------------


WORDS: Final = ("id", "source", "model", "gpu", "precision", "recompute", "zero_fsdp", "framework", "time_kind", "note")
COUNTS: Final = ("layers", "hidden", "ffn", "heads", "kv_heads", "seq", "vocab", "gpus", "tp", "pp", "dp", "cp", "ep", "mbs", "gbs")
MORE_COUNTS: Final = ("interleave", "gpus_per_node")
NUMBERS: Final = ("time_per_iter_s", "tokens_per_s_per_gpu", "inter_node_GBps")
FLAGS: Final = ("seq_parallel",)
REQUIRED: Final = ("source", "model", "layers", "hidden", "heads", "seq", "gpu", "gpus", "tp", "pp", "mbs", "gbs", "time_per_iter_s")
UNSTATED: Final = NOTHING - {"none"}
"""In a column of words, `none` is one."""

_YES_NO: Final[Mapping[str, bool]] = {
    "1": True,
    "true": True,
    "yes": True,
    "on": True,
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


@dataclass(frozen=True, slots=True)
class Row:
    """One row as its source states it; None for a count, number or flag that it does not state, the empty text for a word."""

    line: int
    words: Mapping[str, str]
    counts: Mapping[str, int | None]
    numbers: Mapping[str, float | None]
    flags: Mapping[str, bool | None]
    faults: tuple[str, ...] = ()
    """What is wrong with its cells, a sentence each."""


def read_rows(path: str | Path) -> tuple[Row, ...]:
    """The rows of a CSV file; an InstanceError if it is no table of them. Columns beyond the known ones are ignored."""
    known = {*WORDS, *COUNTS, *MORE_COUNTS, *NUMBERS, *FLAGS}
    return tuple(_row(cells) for cells in read_table(path, REQUIRED, known, "measured run").lines)


def _row(cells: Cells) -> Row:
    given, faults = cells.given, list[str]()
    words = {name: given.get(name, "") for name in WORDS}
    if cells.fault:
        return Row(cells.line, words, {}, {}, {}, (cells.fault,))
    return Row(
        line=cells.line,
        words=words,
        counts={name: count(given, name, faults) for name in (*COUNTS, *MORE_COUNTS)},
        numbers={name: number(given, name, faults) for name in NUMBERS},
        flags={name: _flag(given, name, faults) for name in FLAGS},
        faults=tuple(faults),
    )


def _flag(given: Mapping[str, str], name: str, faults: list[str]) -> bool | None:
    text = given.get(name, "").casefold().removesuffix(".0")
    if text in NOTHING:
        return None
    if text not in _YES_NO:
        faults.append(f"{name}: {quoted(given[name])} is neither 1 nor 0 (write one of them, or leave the cell empty)")
    return _YES_NO.get(text)


HEAD_SIZES: Final = (128, 64, 96, 80, 112, 120, 144)
"""The usual ones first."""
_USUAL_NODE: Final = 8
_VOCABULARY: Final = 51200
"""Megatron's default: GPT-2's 50257 tokens, filled up."""
_WIDTH_MULTIPLE: Final = 256
_KNOWS_THE_FIRST: Final = "a100"
"""Devices whose constants were fitted to fused attention of 2022 itself."""
_LARGEST_CLUSTER: Final = 1 << 22

T = TypeVar("T")
Group: TypeAlias = tuple[str, Transformer, Machine, int, str, bool]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured step time, and what to price for it."""

    line: int
    id: str
    source: str
    model: str
    machine: Machine
    workload: Transformer
    cluster: Cluster
    plan: Plan
    seconds: float
    derived: bool
    """Computed from tokens or FLOPs a second instead of read from a clock."""
    inferred: tuple[str, ...] = ()
    """Settings that the source does not state."""
    stack: str = ""
    """That launched it, of those that devices may have a set of constants for; the usual one's set where it is none of them."""

    @property
    def gpu(self) -> str:
        """The device's name in the registry."""
        return self.machine.gpu

    @property
    def group(self) -> Group:
        """Runs with equal groups differ in their plans only: the model, the batch, the devices and what is recomputed are the same."""
        question = replace(self.workload, name="")
        return self.source, question, self.machine, self.cluster.devices, self.plan.recompute, self.derived


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that cannot be priced, and why."""

    line: int
    id: str
    source: str
    model: str
    gpu: str
    reason: str


@dataclass(frozen=True, slots=True)
class Measured:
    """All rows of a file, in its order."""

    measurements: tuple[Measurement, ...]
    rejected: tuple[Rejected, ...]


def read_measured(path: str | Path) -> Measured:
    """The measured runs in a CSV file; an InstanceError if it is no table of them."""
    outcomes = [_outcome(row) for row in read_rows(path)]
    return Measured(
        measurements=tuple(outcome for outcome in outcomes if isinstance(outcome, Measurement)),
        rejected=tuple(outcome for outcome in outcomes if isinstance(outcome, Rejected)),
    )


def device_for(measurement: Measurement) -> Hardware:
    """The registry's device with the constants of the run's stack and the links of the machine on which it was measured."""
    levels = len(measurement.cluster.level_sizes)
    place = measurement.machine
    entry = device(place.gpu)
    built = build_device(entry, place.gpu, measurement.workload.precision, levels)
    built = launched_by(built, entry, measurement.stack)
    built = replace(built, dram=replace(built.dram, bandwidth=place.memory_bandwidth or built.dram.bandwidth))
    built = built if place.power is None else at_power(built, place.power)
    given = (place.node_bandwidth, place.cluster_bandwidth)[:levels]
    links = (link if bandwidth is None else replace(link, bandwidth=bandwidth) for link, bandwidth in zip(built.links, given, strict=True))
    built = replace(built, links=tuple(links))
    if is_inside(measurement.stack, place.gpu, measurement.cluster.devices):
        return built
    sections = ("node_network", "network", "network")
    return doubted(built, entry.ranges, [None if own is not None else name for name, own in zip(sections, given, strict=False)])


class _RejectedError(Exception):
    """Why a row cannot be priced."""


def _outcome(row: Row) -> Measurement | Rejected:
    words = row.words
    try:
        return _measurement(row)
    except (_RejectedError, ValueError) as error:
        name = words["id"] or str(row.line)
        return Rejected(row.line, name, words["source"], words["model"], _gpu(words["gpu"]), str(error))


def _gpu(spelling: str) -> str:
    """The registry's name of a device, or the source's own."""
    try:
        return gpu_named(spelling)
    except ValueError:
        return spelling


def _measurement(row: Row) -> Measurement:
    words, inferred = row.words, list[str]()
    if row.faults:
        raise _RejectedError("; ".join(row.faults))
    if trains_adapters(words["model"], words["note"]):
        raise _RejectedError("fine-tuning of adapters is not modelled")
    seconds, derived = _seconds(row, inferred)
    place = machine(words["gpu"], words["source"], row.counts["gpus_per_node"], row.numbers["inter_node_GBps"])
    if not is_certain(words["gpu"]):
        inferred.append("gpu")
    stack = _stated_or(row, "framework", lambda word: framework_of(word, place.gpu, words["source"], words["note"]), OTHER, inferred)
    workload = _workload(row, place.gpu, stack, inferred)
    _check_precision(place.gpu, workload.precision)
    cluster = _cluster(row, place)
    _check_time(workload, place.gpu, cluster.devices, seconds)
    plan = _plan(row, stack, cluster.level_sizes[0], inferred)
    broken = broken_rules(workload, plan, cluster.devices)
    if broken:
        raise _RejectedError(f"the plan breaks a rule: {broken[0]}")
    return Measurement(
        line=row.line,
        id=words["id"] or str(row.line),
        source=words["source"],
        model=words["model"],
        machine=place,
        workload=workload,
        cluster=cluster,
        plan=plan,
        seconds=seconds,
        derived=derived,
        inferred=tuple(inferred),
        stack=stack.stack,
    )


def _seconds(row: Row, inferred: list[str]) -> tuple[float, bool]:
    """The step time, and whether it is derived: batch x sequence tokens over the tokens a second of all devices, if not stated."""
    stated, rate = row.numbers["time_per_iter_s"], row.numbers["tokens_per_s_per_gpu"]
    if stated is not None:
        return stated, _stated_or(row, "time_kind", is_derived, False, inferred)
    batch, sequence, devices = (row.counts[name] for name in ("gbs", "seq", "gpus"))
    if rate is None or batch is None or sequence is None or devices is None:
        raise _RejectedError("no step time is stated, and none can be derived from tokens a second")
    seconds = batch * sequence / (rate * devices)
    if not isfinite(seconds):
        raise _RejectedError(f"{rate:.3g} tokens a second take no time that can be counted")
    return seconds, True


def _needed(row: Row, names: Mapping[str, str]) -> tuple[int, ...]:
    """Counts without which nothing can be priced, by column with their names in words."""
    values = {name: row.counts[name] for name in names}
    missing = [words for name, words in names.items() if values[name] is None]
    if missing:
        raise _RejectedError(f"not stated: {', '.join(missing)}")
    return tuple(value for value in values.values() if value is not None)


# --- workload ------------------------------------------------------------------------------------------------------------------------

_SHAPE: Final = {"layers": "layers", "hidden": "hidden size", "seq": "sequence", "gbs": "global batch"}


def _workload(row: Row, gpu: str, stack: Framework, inferred: list[str]) -> Transformer:
    layers, hidden, sequence, batch = _needed(row, _SHAPE)
    model, ffn = row.words["model"], row.counts["ffn"]
    family = family_of(model, hidden, ffn)
    precision = _stated_or(row, "precision", precision_of, stack.precision, inferred)
    experts = experts_of(model)
    built = Transformer(
        name=model,
        layers=layers,
        hidden=hidden,
        heads=_count_or(row, "heads", lambda: heads_told(row.words["source"], hidden) or _heads(hidden, row.counts["tp"] or 1), inferred),
        ffn=_count_or(row, "ffn", lambda: _usual_ffn(hidden, family), inferred),
        vocabulary=_count_or(row, "vocab", lambda: _VOCABULARY, inferred),
        sequence=sequence,
        global_batch=batch,
        kv_heads=row.counts["kv_heads"] or 0,
        gated=family.gated,
        tied=family.tied,
        learned_positions=family.learned_positions,
        biases=family.biases,
        experts=experts,
        experts_per_token=min(experts, family.experts_per_token),
        attention=stack.attention,
        dropout=stack.dropout,
        precision=precision,
        scaling=scaling_of(row.words["precision"], stack.scaling),
        gradient_bytes=stack.gradient_bytes.get(precision, stack.gradient_bytes[""]),
        gradient_traffic=stack.added_apart if precision in stack.all_reduces else 0.0,
        scattered_gradients=precision not in stack.all_reduces,
        broadcasts=stack.broadcasts,
        hides_publication=stack.hides_publication,
        whole_messages=stack.whole_messages,
        attention_rate=1.0 if gpu.startswith(_KNOWS_THE_FIRST) else stack.attention_rate,
        eager=is_eager(row.words["note"]),
        apart=stack.apart,
        stops_early=stack.stops_early,
    )
    return replace(built, logit_bytes=2.0, logit_peak_bytes=2.0) if stack.fused_loss else built


def _heads(hidden: int, tensor: int) -> int:
    """Heads of the most usual size that divides the hidden size into heads for every device of a node, else for the tensor ranks."""
    for ranks in (_USUAL_NODE, tensor):
        for size in HEAD_SIZES:
            if hidden % size == 0 and (hidden // size) % ranks == 0 and (hidden // size) % tensor == 0:
                return hidden // size
    raise _RejectedError("the heads are not stated, and no usual head size divides the hidden size")


def _usual_ffn(hidden: int, family: Family) -> int:
    """4 hidden sizes; two thirds of that where a gate adds a third matrix, filled up to a multiple of 256 (Touvron et al. 2023)."""
    if not family.gated:
        return 4 * hidden
    return -(-8 * hidden // (3 * _WIDTH_MULTIPLE)) * _WIDTH_MULTIPLE


def _check_precision(gpu: str, precision: Precision) -> None:
    if precision not in device(gpu).peak:
        raise _RejectedError(f"{gpu} does not compute in {precision}")


def _check_time(workload: Transformer, gpu: str, devices: int, seconds: float) -> None:
    """Useful arithmetic alone, at the peak of all devices, takes longer than a row says: its batch, shape or time is another."""
    if step_flops(workload) > seconds * devices * device(gpu).peak[workload.precision]:
        raise _RejectedError("the time is shorter than the arithmetic takes at the peak of the devices: a setting is misstated")


# --- machine and plan ----------------------------------------------------------------------------------------------------------------


def _cluster(row: Row, place: Machine) -> Cluster:
    (devices,) = _needed(row, {"gpus": "number of GPUs"})
    node = place.devices_per_node
    if devices > _LARGEST_CLUSTER:
        raise _RejectedError(f"more than {_LARGEST_CLUSTER} devices")
    if devices <= node:
        return Cluster(devices, (devices,))
    if devices % node:
        raise _RejectedError(f"the devices are no whole number of nodes of {node}")
    return Cluster(devices, (node, devices))


def _plan(row: Row, stack: Framework, node: int, inferred: list[str]) -> Plan:
    tensor, pipeline, microbatch, devices = _needed(
        row, {"tp": "tensor degree", "pp": "pipeline degree", "mbs": "microbatch", "gpus": "number of GPUs"}
    )
    if pipeline > 1 and stack.states_local_batch:
        raise _RejectedError("the microbatch of the pipeline is not stated, only the batch of one rank")
    context = row.counts["cp"] or 1
    data = row.counts["dp"] or devices // (tensor * pipeline * context)
    if tensor * pipeline * context * data != devices:
        raise _RejectedError("the degrees do not multiply to the number of GPUs")
    shares = data * context > 1
    group = shard_of(row.words["zero_fsdp"], max(node // tensor, 1))
    plan = Plan(
        tensor=tensor,
        context=context,
        pipeline=pipeline,
        data=data,
        expert=(row.counts["ep"] or 1) if experts_of(row.words["model"]) > 1 else 1,
        microbatch=microbatch,
        interleave=(row.counts["interleave"] or 1) if pipeline > 1 else 1,
        sequence_parallel=tensor > 1 and _flag_or(row, "seq_parallel", stack.sequence_parallel, inferred),
        recompute=_stated_or(row, "recompute", stack.recomputes, stack.recompute, inferred),
        zero=_zero(row, stack, shares, inferred),
        overlap=_overlap(stack.overlap, shares, pipeline > 1),
        tensor_exchange="hidden" if tensor > 1 and (stack.hides_tensor_exchange or is_async(row.words["note"])) else "exposed",
    )
    return replace(plan, shard=group) if plan.zero and group < data * context else plan


def _zero(row: Row, stack: Framework, shares: bool, inferred: list[str]) -> int:
    """The stage of sharing, none where nobody shares; a word that is no stage is refused there too."""
    stage = _stated_or(row, "zero_fsdp", zero_of, stack.zero, inferred if shares else [])
    return stage if shares else 0


def _overlap(wanted: Overlap, data: bool, pipeline: bool) -> Overlap:
    """What of the wanted overlap there is something to overlap for."""
    behind_data = data and wanted in {"data", "both"}
    behind_pipeline = pipeline and wanted in {"pipeline", "both"}
    if behind_data and behind_pipeline:
        return "both"
    return "data" if behind_data else "pipeline" if behind_pipeline else "none"


# --- what is stated, or the framework's default --------------------------------------------------------------------------------------


def _stated_or(row: Row, column: str, meaning: Callable[[str], T], otherwise: T, inferred: list[str]) -> T:
    word = row.words[column]
    if word.casefold() in UNSTATED:
        inferred.append(column)
        return otherwise
    return meaning(word)


def _count_or(row: Row, column: str, usual: Callable[[], int], inferred: list[str]) -> int:
    count = row.counts[column]
    if count is None:
        inferred.append(column)
        return usual()
    return count


def _flag_or(row: Row, column: str, otherwise: bool, inferred: list[str]) -> bool:
    flag = row.flags[column]
    if flag is None:
        inferred.append(column)
        return otherwise
    return flag
