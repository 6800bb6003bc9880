"""Replay of a serving plan, request by request: random arrivals, continuous batching, and percentiles of latencies.

Requests arrive at random (Poisson, by a seed) and go to the worker with the fewest requests for those within its limit. A worker that does
both runs steps: every sequence in its slots gets a token, and the next piece of the first waiting prompt runs beside them where a slot is
free. Apart, prefill workers take waiting prompts together, and the cache passes to the decode worker with the fewest sequences for those
within its limit. The first token counts when the sequence gets its slot there: waiting for one belongs to the time to first token.
Steps are priced as in `crossflow.serving`, for each number of sequences, at the mean context; lengths are those of the question.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import ceil, inf
from random import Random
from typing import Final

import numpy as np

from crossopt.crossflow.arrays import Array
from crossopt.crossflow.serving.flight import loads_of, most_within
from crossopt.crossflow.serving.steps import Split, Step, step_time
from crossopt.crossflow.serving.workers import Bytes, Requests, Worker, pieces_of, transfer_time, worker_times
from crossopt.instances.catalogue.engines import CACHE_BYTES, constants_of_engine
from crossopt.instances.serving.question import JOINT, RequestClass, ServingQuestion, of_classes, with_chip
from crossopt.instances.serving.workers import Shape, drafts_of, kernels_of, network_of, priced, sent_at
from crossopt.solvers.serving.judge import Copies, ServingFigures, ServingPlan, judge, needed_units, saturated, solved, units_of_copy
from crossopt.solvers.serving.logged import Logged, replay_log

LOAD: Final = 0.9
"""Share of the plan's rate at which requests arrive, where neither the question states a rate nor the plan leaves room for queues."""
_MOST_WORKERS, _FEWEST, _MOST, _WARM, _ROUNDS = 32, 200, 40_000, 0.25, 40
"""Workers that are replayed, requests, the share of them that fills the slots before latencies count, and requests of a slot."""
_PERCENTS: Final[tuple[int, int, int]] = (50, 95, 99)
_LOWER: Final = (0.95, 0.9, 0.8, 0.65, 0.5)
"""Shares of a rate at which the replay may keep limits that it exceeds."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """Latencies of a replay, in seconds."""

    requests: int
    rate: float
    """Arrivals a second, of all workers of the plan."""
    share: float
    """Of the workers that were replayed."""
    first: tuple[float, ...]
    """Times to first token at `percents_of` the question, of several classes those of the one that waits longest."""
    token: tuple[float, ...]
    """Times per output token at the same; empty where nothing is decoded."""
    whole: tuple[float, ...] = ()
    """Times of whole requests, of a log."""
    mean_token: float = 0.0


@dataclass(frozen=True, slots=True)
class _Prices:
    """Seconds of the steps of one shape by the number of sequences, without and with each piece of prompts."""

    decode: Sequence[float]
    pieces: Sequence[Sequence[Sequence[Sequence[float]]]]
    """By class, piece, number of groups with one, and number of sequences."""
    steps: Sequence[int]
    """After the first token, by class."""
    groups: int
    """With attention of their own, each of which takes a prompt at a time."""


@dataclass(slots=True)
class _Request:
    """One request on its way."""

    arrived: float
    kind: int = 0
    """Class of the request."""
    first: float = inf
    done: float = inf


@dataclass(slots=True)
class _Slots:
    """A worker with its running sequences, as the step count at which each ends, and those that wait."""

    prices: _Prices
    slots: int
    within: int
    """Requests in flight with which a time per output token is within its limit."""
    now: float = 0.0
    steps: int = 0
    ends: list[tuple[int, int]] = field(default_factory=list)
    waiting: deque[tuple[float, int]] = field(default_factory=deque)
    piece: int = 0
    taken: int = 1
    """Prompts that are computed, of groups each."""


def replay(question: ServingQuestion, plan: ServingPlan, said: ServingFigures, seed: int = 0) -> Replayed | None:
    """Percentiles of the plan's latencies at the rate that is asked for, or near its own; None for stated workers.

    Of several pools of workers the longest ones, each at its own rate.
    """
    if question.model is None:
        return None
    question, found = with_chip(question, plan.chip, plan.decode_chip), list[Replayed]()
    if question.log:
        return _of_log(question, plan, said)
    for label in dict.fromkeys(copies.shape.classes for copies in plan.workers):
        pool = of_classes(question, label.split(JOINT)) if label else question
        own = [(copies, offer) for copies, offer in zip(plan.workers, said.offers, strict=True) if copies.shape.classes == label]
        part = ServingPlan(tuple(copies for copies, _ in own))
        found.append(_replayed(pool, part, replace(said, offers=tuple(offer for _, offer in own)), seed))
    return Replayed(
        sum(item.requests for item in found),
        sum(item.rate for item in found),
        min(item.share for item in found),
        tuple(map(max, zip(*(item.first for item in found), strict=True))),
        tuple(map(max, zip(*(item.token for item in found if item.token), strict=True))),
    )


def fewest_replayed(question: ServingQuestion, plan: ServingPlan, said: ServingFigures) -> tuple[Copies, ...]:
    """Workers of the plan's shapes, fewer where the replay keeps the limits with fewer, each part with slots enough for the rate.

    The worker of most devices is left out first, as often as two replays allow it.
    """
    workers, pools = list(plan.workers), {copies.shape.classes for copies in plan.workers}
    if question.model is None or question.log or len(pools) > 1 or _few(question, plan, said)[0] != workers:
        return plan.workers
    question = with_chip(question, plan.chip, plan.decode_chip)
    for index in sorted(range(len(workers)), key=lambda one: -said.offers[one].devices):
        while workers[index].count > 1:
            fewer = [replace(copies, count=copies.count - (other == index)) for other, copies in enumerate(workers)]
            if not all(_keeps(question, fewer, said, seed) for seed in range(2)):
                break
            workers = fewer
    return tuple(workers)


def easier_replayed(question: ServingQuestion, most: int) -> tuple[tuple[Copies, ...], int] | None:
    """The workers of fewer devices than so many that are best with somewhat longer limits, where two replays keep the limits themselves."""
    limits = question.file.limits
    if len(question.kinds) != 1 or len(question.classes) > 1 or question.chip is not None or question.log or question.model is None:
        return None
    ttft, tpot = (None if limit is None else limit * factor for limit, factor in zip((limits.ttft, limits.tpot), _EASED, strict=True))
    found = solved(replace(question, file=replace(question.file, limits=replace(limits, ttft=ttft, tpot=tpot))))
    if found is None or found.devices >= most:
        return None
    plan = found.plan()
    said = judge(question, plan).details
    if _few(question, plan, said)[0] != [*plan.workers] or not all(_keeps(question, plan.workers, said, seed) for seed in range(2)):
        return None
    return plan.workers, found.devices


_EASED: Final = (1.3, 1.05)
"""Factors on the limits of the time to first token and per output token."""


def _keeps(question: ServingQuestion, workers: Sequence[Copies], said: ServingFigures, seed: int) -> bool:
    """Whether workers have slots enough for the rate, and keep the limits in a replay."""
    totals: dict[str, int] = {}
    for copies, offer in zip(workers, said.offers, strict=True):
        totals[copies.shape.role] = totals.get(copies.shape.role, 0) + copies.count * offer.rate
    if min(totals.values()) < needed_units(question):
        return False
    return _within(question, _replayed(question, ServingPlan(tuple(workers)), said, seed))


def _within(question: ServingQuestion, found: Replayed) -> bool:
    """Whether the latencies of a replay keep the limits."""
    at = judged_at(question)
    return found.first[at] <= question.ttft and (not found.token or found.token[at] <= question.tpot)


def lower_replayed(question: ServingQuestion, plan: ServingPlan, said: ServingFigures, rate: float) -> float | None:
    """The first of some lower rates at which two replays keep the limits; None of logs and several pools, or where none does."""
    if question.log or len({copies.shape.classes for copies in plan.workers}) > 1:
        return None
    question = with_chip(question, plan.chip, plan.decode_chip)
    rates = (float(f"{rate * share:.3g}") for share in _LOWER)
    return next(
        (lower for lower in rates if all(_within(question, _replayed(question, plan, said, seed, lower)) for seed in range(2))), None
    )


def percents_of(question: ServingQuestion) -> tuple[int, int, int]:
    """Percentiles of a replay, with 90 in place of 95 where limits hold for that."""
    return (50, 90, 99) if question.level == "p90" else _PERCENTS


def judged_at(question: ServingQuestion) -> int:
    """Place of the percentile that limits hold for, or of the 95th where they hold for means."""
    return 2 if question.level == "p99" else 1


def _of_log(question: ServingQuestion, plan: ServingPlan, said: ServingFigures) -> Replayed:
    """The requests of a log, as they came."""
    requests, before = [Logged(item.arrived, item.input, item.output) for item in question.log[:_MOST]], _before(question)
    replay_log(question, [(copies.count, offer) for copies, offer in zip(plan.workers, said.offers, strict=True)], requests)
    tokens, percents = [request.token_time for request in requests if request.output > 1], percents_of(question)
    return Replayed(
        len(requests),
        len(requests) / max(requests[-1].arrived, 1e-9),
        1.0,
        percentiles([request.first - request.arrived + before for request in requests], percents),
        percentiles(tokens, percents) if tokens else (),
        percentiles([request.done - request.arrived + before for request in requests], percents),
        sum(tokens) / len(tokens) if tokens else 0.0,
    )


def _replayed(question: ServingQuestion, plan: ServingPlan, said: ServingFigures, seed: int, rate: float | None = None) -> Replayed:
    """Percentiles of one pool, at the rate that is given, or that of the question, or the plan's."""
    workers, share = _few(question, plan, said)
    rate = rate or question.rate or (LOAD if question.level == "mean" or saturated(question, max(said.loads)) else 1.0) * said.rate
    slots = sum(copies.count * copies.shape.batch for copies in workers)
    count = min(max(_FEWEST, _ROUNDS * slots), _MOST)
    random, at, requests = Random(seed), 0.0, list[_Request]()
    kinds, weights = range(len(question.classes)), [part for part, _ in question.shares]
    for _ in range(count):
        at += random.expovariate(rate * share)
        requests.append(_Request(at, random.choices(kinds, weights)[0] if len(kinds) > 1 else 0))
    if workers[0].shape.role == "both":
        _together(question, workers, requests)
    else:
        _apart(question, workers, requests)
    first, token = _by_class(question, requests[int(_WARM * count) :])
    return Replayed(count, rate, share, first, token)


def _by_class(question: ServingQuestion, requests: list[_Request]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Percentiles of the times to first token and per output token, each those of the class that has the longest."""
    steps, before, percents = _steps(question), _before(question), percents_of(question)
    classes = [[item for item in requests if item.kind == kind] for kind in range(len(steps))]
    first = [[item.first - item.arrived + before for item in own] for own in classes]
    token = [[(item.done - item.first) / steps[item.kind] for item in own if steps[item.kind]] for own in classes]
    found = [[percentiles(times, percents) for times in part if times] for part in (first, token)]
    return tuple(map(max, zip(*found[0], strict=True))), tuple(map(max, zip(*found[1], strict=True)))


def _before(question: ServingQuestion) -> float:
    """Seconds of a request outside all steps."""
    return float(constants_of_engine(question.file.engine).arrival)


def _steps(question: ServingQuestion) -> list[int]:
    """Steps after the first token, by class."""
    return [item.output - 1 for item in question.classes]


def _few(question: ServingQuestion, plan: ServingPlan, said: ServingFigures) -> tuple[list[Copies], float]:
    """The workers of a plan, or few of them in about the same proportion, and the share of its rate that so few reach within the limits."""
    total, slots = sum(copies.count for copies in plan.workers), sum(copies.count * copies.shape.batch for copies in plan.workers)
    factor = max(total / _MOST_WORKERS, _ROUNDS * slots / _MOST)
    if factor <= 1.0:
        return list(plan.workers), 1.0
    few = [Copies(max(1, round(copies.count / factor)), copies.shape) for copies in plan.workers]
    shares = list[float]()
    for role in {copies.shape.role for copies in few}:
        own = [index for index, copies in enumerate(few) if copies.shape.role == role]
        replayed, whole = (
            sum(workers[index].count * units_of_copy(question, said.offers[index], workers[index].count) for index in own)
            for workers in (few, plan.workers)
        )
        shares.append(replayed / whole)
    return few, min(shares)


def percentiles(values: list[float], percents: tuple[int, int, int] = _PERCENTS) -> tuple[float, ...]:
    ordered = sorted(values)
    return tuple(ordered[ceil(percent / 100 * len(ordered)) - 1] for percent in percents)


def _prices(question: ServingQuestion, shape: Shape, most: int) -> _Prices:
    """Steps of 0 to `most` sequences; of prefill workers pieces are those of 1 to `batch` prompts at once."""
    (model, hardware), file = network_of(question, shape), question.file
    kernels = kernels_of(question, shape)[0]
    split = Split(*(np.float64(value) for value in (shape.tensor, shape.pipeline, shape.expert, shape.data)))
    numbers, stages, drafts = np.ceil(np.arange(most + 1) / shape.data), float(shape.pipeline), drafts_of(question, shape)
    engine, tokens = constants_of_engine(file.engine), sum(part * item.output for part, item in question.shares)
    middle = sum(part * item.output * (item.input + item.output / 2.0) for part, item in question.shares) / tokens

    def seconds(step: Step) -> Array:
        return np.broadcast_to(np.asarray(step_time(model, kernels, engine, split, step, hardware, drafts)), numbers.shape)

    alone = seconds(Step(numbers / stages, middle))
    found = list[list[list[list[float]]]]()
    for item in question.classes:
        whole = float(item.input)
        found.append([])
        for tokens, share in pieces_of(item.input, float(shape.chunk), float(item.cached)):
            found[-1].append([])
            for groups in range(1, shape.data + 1):
                mixed = seconds(Step(numbers / stages, middle, tokens, share, whole, groups=float(groups)))
                found[-1][-1].append((alone + (mixed - alone) / stages).tolist())
    return _Prices(alone.tolist(), found, [ceil(steps / drafts.accepted) for steps in _steps(question)], shape.data)


def _prefills(question: ServingQuestion, shape: Shape, one: RequestClass) -> list[tuple[float, float]]:
    """Seconds in which a prefill worker computes 1, 2, ... prompts of a class at once, and after which it takes the next ones."""
    (model, hardware), file = network_of(question, shape), question.file
    kernels = kernels_of(question, shape)[0]
    prompts, data = np.ceil(np.arange(1, shape.batch + 1) / shape.data), float(shape.data)
    split = Split(*(np.full(len(prompts), float(value)) for value in (shape.tensor, shape.pipeline, shape.expert, data)))
    worker = Worker(split, np.full(len(prompts), data), float(shape.chunk), prompts, drafts_of(question, shape))
    asked = Requests(one.input, one.output, one.cached)
    times = worker_times(model, kernels, constants_of_engine(file.engine), worker, asked, hardware)
    return list(zip(np.asarray(times.prefill).tolist(), np.asarray(times.slowest_stage).tolist(), strict=True))


def _idle(question: ServingQuestion, workers: Sequence[Copies]) -> list[_Slots]:
    """Idle workers; those of one shape share its seconds of steps."""
    own = list[_Slots]()
    for shape, count in ((copies.shape, copies.count) for copies in workers):
        load, prices = priced(question, [shape])[0].load, _prices(question, shape, shape.batch)
        within = most_within(loads_of(load), question.tpot) if load else shape.batch
        own += [_Slots(prices, shape.batch, max(within, 1)) for _ in range(count)]
    return own


def _together(question: ServingQuestion, workers: Sequence[Copies], requests: list[_Request]) -> None:
    """Fill in first and last tokens of all requests on workers that do both."""
    own = _idle(question, workers)
    for number, request in enumerate(requests):
        for worker in own:
            _run(worker, request.arrived, requests)
        _emptiest(own).waiting.append((request.arrived, number))
    for worker in own:
        _run(worker, inf, requests)


def _emptiest(own: Sequence[_Slots]) -> _Slots:
    """The worker with the fewest requests for those within its limit: under load each takes its share of the rate."""
    loads = [(len(worker.ends) + len(worker.waiting) + 1) / worker.within for worker in own]
    return own[loads.index(min(loads))]


def _run(worker: _Slots, until: float, requests: list[_Request]) -> None:
    """Run the steps that begin before a time."""
    steps = worker.prices.steps
    while worker.now < until and (worker.ends or worker.waiting):
        running = len(worker.ends)
        if worker.waiting and running < worker.slots:
            worker.now = max(worker.now, worker.waiting[0][0])
            if worker.now >= until:
                return
            pieces = worker.prices.pieces[requests[worker.waiting[0][1]].kind]
            if not worker.piece:
                worker.taken = _taken(worker, requests)
            worker.now += pieces[worker.piece][worker.taken - 1][running]
            worker.steps += 1
            worker.piece += 1
            if worker.piece == len(pieces):
                worker.piece = 0
                for _ in range(worker.taken):
                    _, number = worker.waiting.popleft()
                    requests[number].first = worker.now
                    if steps[requests[number].kind]:
                        heappush(worker.ends, (worker.steps + steps[requests[number].kind], number))
                    else:
                        requests[number].done = worker.now
        else:
            each = worker.prices.decode[running]
            many = worker.ends[0][0] - worker.steps
            if until < inf:
                many = min(many, max(ceil((until - worker.now) / each), 1))
            worker.now += many * each
            worker.steps += many
        while worker.ends and worker.ends[0][0] <= worker.steps:
            requests[heappop(worker.ends)[1]].done = worker.now


def _taken(worker: _Slots, requests: list[_Request]) -> int:
    """Prompts of the first one's class that are there, at most one for each group and free slot."""
    free, kind, count = min(worker.prices.groups, worker.slots - len(worker.ends)), requests[worker.waiting[0][1]].kind, 1
    while count < min(free, len(worker.waiting)):
        arrived, number = worker.waiting[count]
        if arrived > worker.now or requests[number].kind != kind:
            break
        count += 1
    return count


def _apart(question: ServingQuestion, workers: Sequence[Copies], requests: list[_Request]) -> None:
    """Fill in first and last tokens of all requests on prefill and decode workers."""
    first = [copies for copies in workers if copies.shape.role == "prefill"]
    (model, _), link = network_of(question, first[0].shape), sent_at(question, {copies.shape.device for copies in workers})
    free = [(0.0, index) for index, copies in enumerate(first) for _ in range(copies.count)]
    times = [[_prefills(question, copies.shape, item) for item in question.classes] for copies in first]
    lengths = [Requests(item.input, item.output) for item in question.classes]
    sent = [[float(transfer_time(model, own, Bytes(0.0, CACHE_BYTES[copies.shape.cache]), link)) for own in lengths] for copies in first]
    ready, index = list[tuple[float, int]](), 0
    while index < len(requests):
        at, kind = heappop(free)
        start = max(at, requests[index].arrived)
        latest = min(index + first[kind].shape.batch, len(requests))
        end = next((number for number in range(index, latest) if requests[number].arrived > start), latest)
        of_kinds = {request.kind for request in requests[index:end]}
        latency, busy = map(max, zip(*(times[kind][own][end - index - 1] for own in of_kinds), strict=True))
        ready += [(start + latency + sent[kind][requests[number].kind], number) for number in range(index, end)]
        heappush(free, (start + busy, kind))
        index = end
    second = [copies for copies in workers if copies.shape.role == "decode"]
    _decode_all(_idle(question, second), ready, requests)


def _decode_all(own: Sequence[_Slots], ready: Sequence[tuple[float, int]], requests: list[_Request]) -> None:
    """Send prompts that are ready to decode workers, and fill in their first and last tokens."""
    for at, number in sorted(ready):
        for worker in own:
            if worker.now < at and (worker.ends or worker.waiting):  # most of many have nothing to do between two prompts
                _decode(worker, at, requests)
        _emptiest(own).waiting.append((at, number))
    for worker in own:
        _decode(worker, inf, requests)


def _decode(worker: _Slots, until: float, requests: list[_Request]) -> None:
    """Run decode steps that begin before a time; sequences enter between two steps where a slot is free."""
    steps = worker.prices.steps
    while worker.now < until and (worker.ends or worker.waiting):
        if not worker.ends:
            worker.now = max(worker.now, worker.waiting[0][0])
        while worker.waiting and len(worker.ends) < worker.slots and worker.waiting[0][0] <= worker.now:
            _, number = worker.waiting.popleft()
            requests[number].first = worker.now
            heappush(worker.ends, (worker.steps + steps[requests[number].kind], number))
        if worker.now >= until or not worker.ends:
            return
        each = worker.prices.decode[len(worker.ends)]
        many = worker.ends[0][0] - worker.steps
        limit = until if not worker.waiting or len(worker.ends) == worker.slots else worker.waiting[0][0]
        if limit < inf:
            many = min(many, max(ceil((limit - worker.now) / each), 1))
        worker.now += many * each
        worker.steps += many
        while worker.ends and worker.ends[0][0] <= worker.steps:
            requests[heappop(worker.ends)[1]].done = worker.now
