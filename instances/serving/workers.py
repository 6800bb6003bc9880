"""Workers that a question offers, each priced: requests a second in whole units, latencies, and bytes of memory."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from math import floor, inf
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Array, Ints, Real
from crossopt.crossflow.hardware import Hardware
from crossopt.crossflow.serving import workers
from crossopt.crossflow.serving.flight import greatest_rate, loads_of, most_within, share_beyond, token_time_beyond
from crossopt.crossflow.serving.steps import NO_DRAFTS, Engine, Kernels, Speculation, Split
from crossopt.crossflow.workload import Transformer
from crossopt.instances.catalogue.engines import (
    CACHE_BYTES,
    WEIGHT_BYTES,
    CacheFormat,
    WeightFormat,
    constants_of_engine,
    serving_kernels,
    stored_in,
)
from crossopt.instances.files.units import exact
from crossopt.instances.serving.question import BEYOND, MOST_OF_GROUP, RATE_PLACES, DeviceKind, Level, Role, ServingQuestion, units_reached

UNITS: Final = 10**RATE_PLACES
"""Units of a request a second: rates are rounded down to whole ones, so that sums over workers are exact."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of worker: its part, and the setting of a copy; stated workers have a name alone."""

    role: Role
    name: str = ""
    weights: WeightFormat = "bf16"
    cache: CacheFormat = "bf16"
    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    batch: int = 1
    """Requests in flight; of prefill workers prompts at once."""
    chunk: int = 0
    data: int = 1
    """Groups of tensor ranks with attention of their own sequences."""
    drafted: int = 0
    """Tokens that are drafted in a step."""
    device: str = ""
    """Kind of device, where the question has several."""
    classes: str = ""
    """Classes that a pool of workers serves, where it does not serve all."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A worker with its price."""

    shape: Shape
    devices: int
    rate: int
    """Requests a second that count, in units."""
    ttft: float
    """Seconds; 0 of decode workers, as those of prefill workers hold the transfer."""
    tpot: float
    """Seconds; 0 of prefill workers. Both are means with all slots in use."""
    queue: tuple[float, ...]
    """Figures of a `Pool` in their order; none of stated workers."""
    load: tuple[tuple[float, float, float], ...]
    """Requests in flight, from few to all slots, with requests a second and seconds per output token; none where queues are not priced."""
    weights: float
    cache: float
    working: float
    """Bytes on the fullest device."""

    @property
    def memory(self) -> float:
        return self.weights + self.cache + self.working


def shapes_of(question: ServingQuestion) -> Iterator[Shape]:
    """All workers that the question offers, those of one role together, without those that the engine does not start; with them where it
    starts none."""
    every = tuple(_stated_shapes(question))
    yield from tuple(shape for shape in every if not refusal(question, shape)) or every


def left_out(question: ServingQuestion) -> tuple[str, ...]:
    """Why the engine starts only some of the workers that the options give."""
    reasons = [refusal(question, shape) for shape in _stated_shapes(question)]
    return tuple(dict.fromkeys(reason for reason in reasons if reason)) if not all(reasons) else ()


_BLOCK: Final = 128
"""Weights that share a scale, in both directions."""


def refusal(question: ServingQuestion, shape: Shape, launched: str = "") -> str:
    """Why an engine, by default that of the question, does not start a worker; empty where it does, and where none is launched."""
    model, engine = question.model, launched or question.file.engine
    if model is None or question.chip is not None or engine == "trtllm":
        return ""
    if engine != "sglang" and shape.role != "both" and shape.pipeline > 1:
        return "NixlConnector of vllm passes no caches between pipelines (take choices.pipeline: 1, or mode: together)"
    widths = [(model.expert_ffn or model.ffn, shape.tensor // shape.expert)] if model.experts > 1 else []
    widths += [(model.ffn, shape.tensor)] if model.experts == 1 or model.dense_layers else []
    for width, ranks in widths if shape.weights == "fp8-block" else ():
        if width % (_BLOCK * ranks):
            held = f"{width:,} columns on {ranks} ranks are no multiple of {_BLOCK} on each"
            return f"{engine} loads fp8-block weights in whole blocks, and {held} (take fewer ranks, or whole experts by choices.expert)"
    return ""


def handed_over(question: ServingQuestion, shape: Shape) -> tuple[str, str]:
    """Formats that prefill and decode workers have in common: of the cache, which engines pass as it is, and of weights where all devices
    are offered the same."""
    if question.model is None or question.chip is not None:
        return "", ""
    return shape.cache, shape.weights if len({kind.options.weights for kind in question.kinds}) < 2 else ""


def _stated_shapes(question: ServingQuestion) -> Iterator[Shape]:
    """All workers that the options of the question give."""
    file = question.file
    if file.workers is not None:
        for name, worker in file.workers.items():
            if ("together" if worker.role == "both" else "apart") in file.choices.mode:
                yield Shape(worker.role, name)
        return
    for kind in question.kinds:
        options, device = kind.options, kind.name if len(question.kinds) > 1 else ""
        every = product(options.weights, options.cache, options.tensor, options.pipeline, options.expert)
        splits = [split for split in every if not split[2] % split[4]]
        for role in (role for role in roles_of(question) if role in (kind.roles or (role,))):
            drafts = options.drafted[-1:] if role == "prefill" else options.drafted  # a draft model needs its cache of the prompts
            for split, chunk, data, drafted in product(splits, options.chunk, options.data, drafts):
                if split[2] % data:
                    continue
                most = inf if file.choices.batch else data * MOST_OF_GROUP
                for batch in sorted({data * item for item in options.prefill_batch}) if role == "prefill" else options.batch:
                    if batch % data or batch > most or (role != "prefill" and batch < split[3] * data):
                        continue
                    if role != "prefill" or batch == data or batch // data * max(item.computed for item in question.classes) <= chunk:
                        yield Shape(role, "", *split, batch, chunk, data, drafted, device, question.label)


def roles_of(question: ServingQuestion) -> tuple[Role, ...]:
    """Parts of workers by the modes of the question; answers of one token need no decode."""
    if question.part is not None:
        return (question.part,)
    modes, split = question.file.choices.mode, question.output > 1
    apart: tuple[Role, ...] = ("prefill", "decode") if "apart" in modes and split else ()
    return (*(("both",) if "together" in modes or not apart else ()), *apart)


def priced(question: ServingQuestion, shapes: Iterable[Shape]) -> tuple[Offer, ...]:
    """Each of the shapes with its price, in their order; the same bits alone and together with others, so that none is priced twice."""
    every = tuple(shapes)
    if question.file.workers is not None:
        return tuple(_stated(question, shape) for shape in every)
    known, groups = question.offers, dict[tuple[object, ...], list[Shape]]()
    for shape in dict.fromkeys(every):
        if shape not in known:
            groups.setdefault((shape.device, shape.role, shape.weights, shape.cache, shape.chunk, shape.drafted), []).append(shape)
    for group in groups.values():
        known.update(zip(group, _group(question, group), strict=True))
    return tuple(known[shape] for shape in every)


def units_of(rate: float) -> int:
    """A rate in whole units, never more than it is."""
    return floor(rate * UNITS)


def _stated(question: ServingQuestion, shape: Shape) -> Offer:
    worker, matching = (question.file.workers or {})[shape.name], question.file.matching
    units = floor(units_reached(question.file, worker))
    ttft = float(exact(worker.ttft) * exact(matching.ttft))
    return Offer(shape, worker.devices, units, ttft, worker.tpot, (), (), 0.0, 0.0, 0.0)


def network_of(question: ServingQuestion, shape: Shape) -> tuple[Transformer, Hardware]:
    """The model and the device of a worker, where workers are not stated."""
    if question.model is None:
        raise ValueError("workers are stated, without a model")
    return question.model, question.kind_of(shape.device).hardware


def kernels_of(question: ServingQuestion, shape: Shape) -> tuple[Kernels, tuple[str, ...]]:
    """Constants of a worker's kernels, and what of them is taken over from other devices."""
    return serving_kernels(question.kind_of(shape.device).kernels, shape.weights, shape.cache, question.file.engine)


def sent_at(question: ServingQuestion, used: Collection[str] = ()) -> float:
    """Bytes a second between prefill and decode workers: of the kinds of devices that a plan uses, or may use, the slowest network."""
    kinds = [kind for kind in question.kinds if kind.name in used] or [kind for kind in question.kinds if kind.most] or question.kinds
    return question.file.matching.link or min(_network_rate(kind) for kind in kinds)


def _network_rate(kind: DeviceKind) -> float:
    return float(kind.hardware.links[-1].bandwidth)


def by_network(question: ServingQuestion) -> Iterator[ServingQuestion]:
    """The question, then with kinds of faster networks alone, between which the cache passes faster."""
    yield question
    if question.file.matching.link or question.chip is not None or "prefill" not in roles_of(question):
        return
    for rate in sorted({_network_rate(kind) for kind in question.kinds if kind.most})[1:]:
        yield _of_kinds(question, {kind.name for kind in question.kinds if _network_rate(kind) >= rate})


def with_network(question: ServingQuestion, shapes: Iterable[Shape]) -> ServingQuestion:
    """The question of workers as the network of their kinds prices them."""
    used = {shape.device for shape in shapes}
    if len(question.kinds) < 2 or sent_at(question, used) == sent_at(question):
        return question
    return _of_kinds(question, used)


def _of_kinds(question: ServingQuestion, names: Collection[str]) -> ServingQuestion:
    return replace(question, kinds=tuple(kind if kind.name in names else replace(kind, most=0) for kind in question.kinds))


def _group(question: ServingQuestion, shapes: Sequence[Shape]) -> Iterator[Offer]:
    """Shapes of one role, format, chunk and number of drafted tokens, as columns."""
    every, places = with_fewer(question, shapes)
    figures = columns_of(question, every, network_of(question, shapes[0])[1])
    for shape, points in zip(shapes, places, strict=True):
        own = {name: float(column[points[-1]]) for name, column in figures.items()}
        load = [(float(every[one].batch), float(figures["rate"][one]), float(figures["tpot"][one])) for one in points]
        yield Offer(
            shape,
            shape.tensor * shape.pipeline,
            units_of(own["rate"]),
            own["ttft"],
            own["tpot"],
            tuple(own[name] for name in _QUEUE),
            tuple(load) if queued(question, shape) and all(rate > 0.0 for _, rate, _ in load) else (),
            own["weights"],
            own["cache"],
            own["working"],
        )


_NUMBERS: Final = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 65, 96, 128, 129, 192, 193, 256, 257, 320, 321, 384, 385, 448, 449, 512, 513)
"""Requests in flight, of each group with attention of its own, that workers are priced with: steps lengthen by leaps after each 64 rows."""


def queued(question: ServingQuestion, shape: Shape) -> bool:
    """Whether the number of requests in flight makes a worker slower or faster."""
    return shape.role != "prefill" and question.level != "mean"


def with_fewer(question: ServingQuestion, shapes: Sequence[Shape]) -> tuple[list[Shape], list[list[int]]]:
    """Shapes of one role and those with fewer requests in flight, and for each shape where these are, from few to its own batch."""
    if not queued(question, shapes[0]):
        return list(shapes), [[index] for index in range(len(shapes))]
    found: dict[Shape, int] = {}
    places = list[list[int]]()
    for shape in shapes:
        fewer = [shape.data * number for number in _NUMBERS if number >= shape.pipeline and shape.data * number < shape.batch]
        places.append([found.setdefault(replace(shape, batch=batch), len(found)) for batch in (*fewer, shape.batch)])
    return list(found), places


def columns_of(question: ServingQuestion, shapes: Sequence[Shape], hardware: Hardware, bounded: bool = False) -> dict[str, Array]:
    """Figures of shapes of one role, format, chunk and number of drafted tokens, on one device or each on its own; where bounded, without
    what more bundles add."""
    first = shapes[0]
    model = network_of(question, first)[0]
    kernels = kernels_of(question, first)[0]
    if bounded:
        kernels = replace(kernels, shared=replace(kernels.shared, reduction=0.0), alone=replace(kernels.alone, reduction=0.0))
    engine = _engine_of(question, model)
    stored = stored_in(first.weights, first.cache)
    tensor, pipeline, expert, data, batch = (
        np.array([getattr(shape, name) for shape in shapes], np.float64) for name in ("tensor", "pipeline", "expert", "data", "batch")
    )
    split, prefills, drafts = Split(tensor, pipeline, expert, data), first.role == "prefill", drafts_of(question, first)
    alone = np.ones(len(shapes))
    worker = workers.Worker(split, data if prefills else batch, float(first.chunk), batch / data if prefills else alone, drafts)
    parts = [
        (share, one, workers.worker_times(model, kernels, engine, worker, one, hardware))
        for share, one in ((share, workers.Requests(own.input, own.output, own.cached)) for share, own in question.shares)
    ]
    longest = workers.Requests(question.input, max(own.input + own.output for own in question.classes) - question.input)
    memory = workers.worker_memory(model, replace_batch(worker, batch), longest, stored)
    link = question.file.matching.link or (
        hardware.links[-1].bandwidth if question.chip is not None and len(question.kinds) < 2 else sent_at(question)
    )
    return {
        name: np.broadcast_to(np.asarray(value, np.float64), batch.shape)
        for name, value in {
            **_latencies(question, first, parts, worker, batch, link),
            "weights": memory.weights,
            "cache": memory.cache * (longest.input / (longest.input + longest.output) if prefills else 1.0),
            "working": memory.working,
        }.items()
    }


def _engine_of(question: ServingQuestion, model: Transformer) -> Engine:
    """Constants of the engine; requests arrive one by one, so that groups with attention of their own have prompts in different steps."""
    return replace(constants_of_engine(question.file.engine, experts=model.experts > 1), aligned=False)


def replace_batch(worker: workers.Worker, batch: Array) -> workers.Worker:
    """The worker with as many sequences in memory as its batch says."""
    return replace(worker, batch=batch)


def drafts_of(question: ServingQuestion, shape: Shape) -> Speculation:
    """What a worker drafts."""
    if not shape.drafted or (said := question.file.speculation) is None:
        return NO_DRAFTS
    return Speculation(float(shape.drafted), said.accepted[str(shape.drafted)], float(said.layers))


def _latencies(
    question: ServingQuestion,
    shape: Shape,
    parts: Sequence[tuple[float, workers.Requests, workers.WorkerTimes]],
    worker: workers.Worker,
    batch: Array,
    link: Real,
) -> dict[str, Real]:
    """Rate, latencies and queue of workers of one role: means over classes, and the time to first token of the longest prompts."""
    file, (model, _) = question.file, network_of(question, shape)
    engine, none, asked = (
        _engine_of(question, model),
        0.0 * batch,
        workers.Requests(question.input, question.output),
    )
    times = parts[0][2] if len(parts) == 1 else workers.mixed_times(parts, worker)
    longer = reduce(np.maximum, [own.prefill for _, _, own in parts]) - times.prefill
    if shape.role == "both":
        group, data = worker.group, worker.split.data
        first = (workers.first_token_time(times, group, engine) + engine.first * longer) * file.matching.ttft
        rate = workers.together_rate(times, batch, asked, data)
        crowd = engine.wait * np.maximum(group - 1.0, 0.0) * times.prefill * file.matching.ttft
        uneven = workers.unevenness([(share, own.slowest_stage) for share, _, own in parts])
        pool = workers.Pool(none + 1.0, first, none, none, times.slowest_stage, *(none,) * 6, uneven, none)
        if asked.output > 1:
            steps, pieces = none + (asked.output - 1.0) / times.accepted, times.pieces / worker.split.pipeline
            busy, own_steps = times.every * times.pieces, (times.decode, times.single, times.every, times.piece)
            held = [(share, own.prefill + (item.output - 1.0) / times.accepted * times.decode) for share, item, own in parts]
            beside = workers.unevenness([(share, own.every * own.pieces) for share, _, own in parts])
            pool = workers.Pool(
                group,
                first - crowd,
                crowd,
                busy,
                times.prefill,
                steps,
                *own_steps,
                none + pieces,
                workers.unevenness(held),
                beside,
                none + times.accepted,
                none + data,
            )
        return {"rate": rate, "ttft": first, "tpot": workers.output_time(times, asked), **_queue(pool)}
    if shape.role == "prefill":
        sent = workers.transfer_time(model, asked, workers.Bytes(0.0, CACHE_BYTES[shape.cache]), link)
        first = workers.own_first_token_time(times.prefill + longer, engine) * file.matching.ttft + sent
        uneven = workers.unevenness([(share, own.slowest_stage) for share, _, own in parts])
        pool = workers.Pool(none + 1.0, first, none, none, times.slowest_stage, *(none,) * 6, uneven, none)
        return {"rate": workers.prefill_rate(times, batch) * file.matching.prefill, "ttft": first, "tpot": 0.0, **_queue(pool)}
    steps = none + (asked.output - 1.0) / times.accepted
    uneven = none + workers.unevenness([(share, none + (item.output - 1.0)) for share, item, _ in parts])
    pool = workers.Pool(worker.group, *(none,) * 4, steps, *(times.decode,) * 3, none, none, uneven, none, none + times.accepted)
    token = times.decode / times.accepted
    return {"rate": workers.decode_rate(times, batch, asked) * file.matching.decode, "ttft": 0.0, "tpot": token, **_queue(pool)}


_QUEUE: Final = tuple(workers.Pool.__dataclass_fields__)


def _queue(pool: workers.Pool) -> dict[str, Real]:
    return {name: getattr(pool, name) for name in _QUEUE}


# How many requests a second may come to copies of a shape.


def latencies_at(level: str, offer: Offer, copies: int, rate: float) -> tuple[float, float]:
    """Seconds to the first token and per output token at a percentile, for requests a second of each copy."""
    share, beyond = BEYOND[level]
    loads = loads_of(offer.load) if offer.load else None
    token = token_time_beyond(loads, _known(copies), rate, beyond) if loads else 0.0
    if offer.shape.role == "decode" and loads and share_beyond(loads, loads.slots - 1, _known(copies), rate) <= 0.5 * share:
        return 0.0, token
    first = workers.first_token_beyond(
        workers.Pool(*map(np.float64, offer.queue)), np.float64(copies), np.float64(rate / _group_of(offer.shape)), share
    )
    return float(first), token


def _known(copies: int) -> int:
    """Numbers of copies whose requests in flight are counted: powers of two, so that others have as many as fewer copies."""
    return 1 << (copies.bit_length() - 1)


def _group_of(shape: Shape) -> int:
    """Prompts that are computed at once, which wait as one; of others groups with attention of their own, which have like queues."""
    return shape.batch if shape.role == "prefill" else shape.data


def units_within(level: Level, ttft: float, tpot: float, offer: Offer, copies: Ints) -> Ints:
    """The most units of a request a second that may come to each copy of a shape within the limits, for numbers of copies."""
    top = np.full(len(copies), offer.rate)
    if offer.load:
        powers = np.frexp(copies)[1] - 1
        each = [_units_in_flight(level, ttft, tpot, offer, 1 << power) for power in range(int(powers.max()) + 1)]
        top = np.array(each, np.int64)[powers]
    if offer.shape.role == "decode":
        return top
    return units_until_first(level, ttft, offer.shape, workers.Pool(*map(np.float64, offer.queue)), copies.astype(np.float64), top)


def _units_in_flight(level: Level, ttft: float, tpot: float, offer: Offer, copies: int) -> int:
    """Units with which a time per output token holds; with a limit of the time to first token, decode workers have a slot free, too."""
    loads, (share, beyond), top = loads_of(offer.load), BEYOND[level], offer.rate
    demands, most = list[tuple[int, float]](), most_within(loads, tpot)
    if not most:
        return 0
    if most < loads.slots:
        demands.append((most - 1, beyond))
        top = min(top, units_of(float(greatest_rate(loads.rates[None], loads.tokens[None], tpot)[0])))
    if offer.shape.role == "decode" and ttft < inf:
        demands.append((loads.slots - 1, 0.5 * share))
    low, high = (0, top) if demands else (top, top)
    while low < high:
        middle = high - (high - low) // 2
        within = all(share_beyond(loads, number, copies, middle / UNITS) <= part for number, part in demands)
        low, high = (middle, high) if within else (low, middle - 1)
    return high


def units_until_first(level: Level, ttft: float, shape: Shape, pool: workers.Pool, copies: Array, top: Ints, least: Ints | int = 0) -> Ints:
    """Units with which the time to first token holds, of pools of one role and batch, up to a rate of each; with a `least` width an upper
    bound that near."""
    share = BEYOND[level][0]
    low, high, middle = np.zeros(top.shape, np.int64), top, top
    while (low + least < high).any():
        within = np.asarray(workers.first_token_beyond(pool, copies, middle / UNITS / _group_of(shape), share)) <= ttft
        low, high = np.where(within, middle, low), np.where(within, high, middle - 1)
        middle = high - (high - low) // 2
    return high


def least_latencies(question: ServingQuestion, offer: Offer) -> tuple[float, float]:
    """Seconds to the first token and per output token that are to be within the limits; at a percentile those without any queue, and with
    the fewest requests in flight."""
    if question.level == "mean" or not offer.load:
        return offer.ttft, offer.tpot
    first = dict(zip(_QUEUE, offer.queue, strict=True))["first"]
    return first, offer.load[0][2]


def broken(question: ServingQuestion, offer: Offer) -> tuple[str, ...]:
    """Limits that a worker breaks, by name."""
    ttft, tpot = least_latencies(question, offer)
    held = (
        ("memory", not question.kinds or offer.memory <= question.kind_of(offer.shape.device).usable_memory),
        ("ttft", ttft <= question.ttft),
        ("tpot", tpot <= question.tpot),
        ("rate", offer.rate > 0),
    )
    return tuple(name for name, holds in held if not holds)


def floors(question: ServingQuestion) -> dict[str, float]:
    """Seconds in which the weights pass from memory once, least over all splits: nothing decodes faster. Empty for stated workers."""
    if question.model is None or not question.kinds:
        return {}
    best = inf
    for kind in question.kinds:
        for weights in kind.options.weights:
            for tensor in kind.options.tensor:
                split = Split(np.float64(tensor), np.float64(1.0))
                best = min(
                    best, float(workers.streaming_floor(question.model, split, workers.Bytes(WEIGHT_BYTES[weights], 0.0), kind.hardware))
                )
    drafts = question.file.speculation
    return {"tpot": best / max((1.0, *drafts.accepted.values()) if drafts else (1.0,))}
